#!/bin/bash
# Goal: a store that keeps models decides who answers, whatever lies in a worker's folder, and what
# happened to a model can be read and cannot be edited unnoticed.
# Method: the shipped student in two precisions as two versions; a worker without any model.
#
# Usage: test_models.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-models-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/tap.sh"

export SWERVE_MODELS=$root/engine/models SWERVE_MODEL_CACHE=$work/cache USER=tester
student=$root/engine/models/student.safetensors
mkdir none
cat >short.json <<'JSON'
{"id": "short", "question": "perception",
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 0.5}
JSON
# samplers STATE [STORE]: of the jobs of m.db in that state, one per line
samplers() {
    python3 - "$1" "${2:-m.db}" <<'PY'
import sqlite3, sys
for row in sqlite3.connect(f"file:{sys.argv[2]}?mode=ro", uri=True).execute(
        "SELECT c.sampler FROM jobs j JOIN job_specs s ON s.job = j.id JOIN contexts c ON c.id = s.context"
        " WHERE j.state = ? ORDER BY j.id", (int(sys.argv[1]),)):
    print(*row)
PY
}

versions_are_added_once() {
    code 0 "$swerve" model add "$student" --name one --note "clips" --parents "nobody" --store m.db
    code 0 "$swerve" model add "$student" --name two --precision int8 --store m.db
    code 0 "$swerve" model add "$student" --name one --note "clips" --parents "nobody" --store m.db
    code 4 "$swerve" model add "$student" --name one --note "other clips" --store m.db
    says err "versions do not change"
    code 0 "$swerve" model ls --store m.db
    grep -q "^one .*student .*candidate .*bf16" out || fail "$(cat out)"
    grep -q "^two .*student .*candidate .*int8" out || fail "$(cat out)"
    code 3 "$swerve" model show three --store m.db
    code 2 "$swerve" model promote one --force
    says err "--force is for versions that a store keeps"
}
nobody_answers_unseen() {
    code 1 "$swerve" model promote one --store m.db
    says err "it was never evaluated"
    code 0 "$swerve" model promote one --force --evidence "the shipped one" --store m.db
    says out "candidate -> promoted, FORCED by tester: the shipped one"
    code 4 "$swerve" model retire one --store m.db
    says err "until another takes its place"
}
queued_jobs_go_along() {
    code 0 "$swerve" submit short.json --store m.db --world student --seeds 3 --audit off
    [ "$(samplers 0 | sort | uniq -c | tr -s ' ')" = " 3 agents/euler2/bf16" ] || fail "$(samplers 0)"
    code 0 "$swerve" submit short.json --store m.db --world student --seeds 1 --audit off --fresh \
        --models "$SWERVE_MODELS"
    code 0 "$swerve" model promote two --force --store m.db
    says out "3 queued jobs moved"
    [ "$(samplers 0 | sort | uniq -c | tr -s ' ' | tr '\n' ,)" = " 1 agents/euler2/bf16, 3 agents/euler2/int8," ] ||
        fail "$(samplers 0)"
}
one_tiers_precision_is_not_anothers() {
    code 0 "$swerve" model add "$root/engine/models/teacher.safetensors" --name t --precision fp32 --store p.db
    code 0 "$swerve" model promote t --force --store p.db
    code 0 "$swerve" submit short.json --store p.db --world student --seeds 1 --audit off
    [ "$(samplers 0 p.db)" = agents/euler2/bf16 ] || fail "$(samplers 0 p.db)"
    code 0 "$swerve" submit short.json --store p.db --world teacher --seeds 1 --audit off
    [ "$(samplers 0 p.db | tail -1)" = agents/euler2/fp32 ] || fail "$(samplers 0 p.db)"
}
workers_bring_what_they_lack() {
    code 0 "$swerve" worker --store m.db --drain --models none
    [ "$(samplers 2 | wc -l)" = 4 ] || fail "$(samplers 2)"
    [ "$(ls cache/*.safetensors | wc -l)" = 2 ] || fail "$(ls cache)"
    [ "$(ls cache/*.health.json | wc -l)" = 2 ] || fail "$(ls cache)"
    code 0 "$swerve" replay --all --store m.db --models none
}
damaged_files_are_brought_again() {
    local file
    for file in cache/*.safetensors; do
        printf x | dd of="$file" bs=1 seek=9000 conv=notrunc 2>/dev/null
    done
    code 0 "$swerve" replay --all --store m.db --models none
}
the_one_before_comes_back() {
    code 0 "$swerve" model rollback student --store m.db --evidence "two is worse"
    says out "retired -> promoted by tester: two is worse"
    code 0 "$swerve" model show one --store m.db
    says out "promoted -> retired"
    code 0 "$swerve" model show one --store m.db --json
    code 4 "$swerve" model canary two --force --store m.db
    says err "is retired"
    code 0 env -u USER "$swerve" model candidate two --store m.db # as a timer or a container calls
    says out "retired -> candidate by $(id -un 2>/dev/null || echo "uid $(id -u)")"
    code 0 "$swerve" model canary two --share 50 --force --store m.db
    code 0 "$swerve" model ls --store m.db
    says out "canary 50%"
    code 2 "$swerve" model canary two --share 200 --force --store m.db
    says err "--share: expected 1 to 100 percent, found 200"
    code 2 "$swerve" model evaluate two --days 0 --store m.db
    says err "--days: expected 1 to 3650, found 0"
}
a_canary_is_looked_at() {
    code 0 "$swerve" model watch student --store m.db
    says out "two stays canary at 50%: 0 jobs"
    echo '{"format": "swerve-trust/1", "rollback": {"samples": 600, "runs": 3}}' >limits.json
    code 0 "$swerve" model watch student --policy limits.json --store m.db --json
    python3 -c 'import json; d = json.load(open("out")); assert d["canary"] == "two" and not d["rolled_back"], d' ||
        fail "$(cat out)"
    echo '{"format": "swerve-trust/1", "rollback": {"samples": 6}}' >few.json
    code 3 "$swerve" model watch student --policy few.json --store m.db
    says err 'few.json: $.rollback.samples: expected an integer from 500'
    code 2 "$swerve" model watch teacher --store m.db
    code 0 "$swerve" model shadow two --store m.db
    code 0 "$swerve" model watch student --store m.db
    says out "no version of the student is a canary"
}
the_gate_says_what_is_missing() {
    code 1 "$swerve" model evaluate two --store m.db
    says err "the store has no audited job of it"
    echo '{"rate": 1}' >all.json
    # A directory of its own: the store's pointers are not asked, the weights are those of "one".
    code 0 "$swerve" run short.json --store g.db --workers 1 --world student --seeds 2 --audit all.json
    code 0 "$swerve" model add "$student" --name one --store g.db
    code 1 "$swerve" model evaluate one --store g.db --json
    python3 - out <<'PY' || fail "$(cat out)"
import json, sys
report = json.load(open(sys.argv[1]))
slices = {s["slice"]: s for s in report["slices"]}
assert not report["passed"] and slices["all"]["result"] == "not shown", report
assert slices["all"]["scenarios_needed"] == 35 and slices["all"]["agreement"] == 1, report
PY
    says err "all (not shown)"
    # More slices than a sentence holds: names stay whole, and the others are counted.
    python3 - <<'PY'
import itertools, json
values = {"weather": "clear", "light": "day", "road": "unspecified", "geography": "unspecified", "actor": "unspecified"}
crossed = [dict(pair) for count in (2, 3) for pair in itertools.combinations(values.items(), count)]
json.dump({"format": "swerve-trust/1", "crossed": crossed}, open("crossed.json", "w"))
PY
    code 1 "$swerve" model evaluate one --policy crossed.json --store g.db
    grep -qE '[(]not shown[)] and [0-9]+ more$' err || fail "$(cat err)"
    code 0 "$swerve" model show one --store g.db
    grep -qE 'not passed.*: .*[(]not shown[)] and [0-9]+ more$' out || fail "$(cat out)"
    code 1 "$swerve" model promote one --store g.db
    says err "its last evaluation did not pass"
    echo '{"format": "swerve-trust/1", "band": 0.01, "safety_critical_band": 0.01}' >bands.json
    code 0 "$swerve" model evaluate one --policy bands.json --store g.db
    says out "passed"
    code 0 "$swerve" model promote one --store g.db
    code 0 "$swerve" model show one --store g.db
    says out "evaluated against nothing: passed"
    code 0 "$swerve" check --store g.db
    rm bands.json
    code 3 "$swerve" model evaluate one --policy bands.json --store g.db
}
edits_are_noticed() {
    code 0 "$swerve" check --store m.db
    local table
    for table in models model_events; do
        code 0 python3 "$here/edit_store.py" "$swerve" m.db 5 1 $table
        grep -q "^not noticed" out && fail "$(cat out)"
    done
}

echo 1..10 >&3
t versions_are_added_once
t nobody_answers_unseen
t queued_jobs_go_along
t one_tiers_precision_is_not_anothers
t workers_bring_what_they_lack
t damaged_files_are_brought_again
t the_one_before_comes_back
t a_canary_is_looked_at
t the_gate_says_what_is_missing
t edits_are_noticed
[ "$failed" = 0 ]
