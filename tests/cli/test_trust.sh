#!/bin/bash
# Goal: nobody is asked for longer than he is trusted, and it is said before anything is spent;
# agreement is counted over a whole store, and a teacher that disagrees is heard.
# Method: scenarios longer than the shipped models' horizons, with each policy; a store whose every
# job was audited, then with the teacher's verdicts turned round.
#
# Usage: test_trust.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-trust-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/tap.sh"

export SWERVE_MODELS=$root/engine/models SWERVE_MODEL_CACHE=$work/cache
# holds EXPRESSION FILE: a Python expression over d, the JSON object in the file.
holds() {
    python3 -c "import json,sys; d=json.load(open(sys.argv[2])); sys.exit(not eval(sys.argv[1]))" "$1" "$2" ||
        fail "$1 is false of $(head -c 400 "$2")"
}
scenario() { # scenario ID SECONDS
    cat >"$1.json" <<JSON
{"id": "$1", "question": "perception",
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": $2,
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 10, "behaviour": "idm"}],
 "branches": [{"id": "brake", "at_tick": 3, "interventions": [{"kind": "ego_brake", "tick": 3, "decel_mps2": 3}]}]}
JSON
}
scenario long 30.5
scenario short 2

a_scenario_beyond_the_horizon_costs_nothing() {
    code 3 "$swerve" run long.json --store none.db --workers 1 --world student
    says err "long.json: scenario long: expected at most 30 s, for which the student is trusted here, found 30.5 s"
    code 3 "$swerve" run short.json --store none.db --workers 1 --layout map
    says err "short.json: scenario short: expected at most 1 s"
    code 3 "$swerve" submit short.json --store none.db --layout map --world teacher
    says err "for which the teacher is trusted"
    [ ! -e none.db ] || fail "a store was made for a refused suite"
    code 2 "$swerve" run long.json --store none.db --workers 1 --horizon maybe
    says err "expected refuse, clip or route"
}
what_is_trusted_is_driven_and_said() {
    code 0 "$swerve" run short.json --store clip.db --workers 1 --layout map --horizon clip --audit off --json
    holds 'd["clipped"] == 1 and d["rerouted"] == 0 and d["flagged"] == 0 and d["ticks"] <= 17' out
    holds 'list(d["pass_rates"]) == ["student"]' out
    code 0 "$swerve" replay --all --store clip.db
    code 0 "$swerve" submit long.json --store clip.db --horizon clip --audit off
    says out "1 scenario longer than the model's trusted horizon: driven as far as the model is trusted"
}
# Two tiers that could answer alike: by what a tick of each costs at the price in force. A suite that was sent stays as it was
# sent, whatever prices do meanwhile.
the_cheaper_of_two_that_answer_alike() {
    echo '{"rate": 1, "safety_critical_rate": 1}' >every.json
    code 0 "$swerve" submit short.json --store market.db --audit every.json
    says err "1 job in the student world: a question of perception, which needs learned sensors"
    code 0 "$swerve" price set bulk cpu 9000 --store market.db
    code 0 "$swerve" price set teacher cpu 0.01 --store market.db
    code 0 "$swerve" run short.json --store market.db --audit every.json --workers 1 --json
    holds 'd["routes"][0]["route_reason"] == "sensors" and d["routes"][0]["tier"] == "student"' out
    code 0 "$swerve" submit short.json --store market.db --audit every.json --json
    holds 'd["memoised"] == 0 and [(r["tier"], r["route_reason"]) for r in d["routes"]] == [("student", "price"), ("teacher", "audit")]' out
    code 0 "$swerve" submit short.json --store market.db --audit every.json --seeds 2 --json
    holds '[(r["tier"], r["route_reason"], r["jobs"]) for r in d["routes"]] == [("teacher", "price", 2)]' out
    holds '0 < d["routes"][0]["route_own"] < d["routes"][0]["route_other"] and "the student could answer too" in d["routes"][0]["why"]' out
    code 0 "$swerve" price set bulk cpu 0 --store market.db
    code 0 "$swerve" submit short.json --store market.db --audit every.json --seeds 2 --json
    holds '[r["tier"] for r in d["routes"]] == ["teacher"]' out
    code 0 "$swerve" submit short.json --store market.db --audit every.json --seeds 3 --json # a suite that is new, at the new price
    holds '[r["tier"] for r in d["routes"]] == ["student", "teacher"] and d["routes"][0]["route_reason"] == "price"' out
    code 0 "$swerve" submit short.json --store market.db --audit every.json --seeds 2 --world student
    says err "2 jobs in the student world: its submitter named it"
    code 0 "$swerve" show 1 --store market.db
    says out "route     a question of perception, which needs learned sensors"
    code 0 "$swerve" check --store market.db
}
# Whole, its trace would take more than an artifact may; the part that is driven does not.
what_is_clipped_is_measured_clipped() {
    python3 - <<'PY'
import json
d = json.load(open("long.json"))
d.update(id="wide", horizon_s=600)
d["agents"] = [{**d["agents"][0], "id": f"a{i}", "pose": {"lane": "east", "s_m": 60 + 30 * i}} for i in range(60)]
d["branches"] = [{**d["branches"][0], "id": f"b{i}"} for i in range(20)]
json.dump(d, open("wide.json", "w"))
PY
    code 3 "$swerve" submit wide.json --store wide.db --world object
    says err "its trace may take"
    code 0 "$swerve" submit wide.json --store wide.db --horizon clip --audit off
}
another_world_answers_and_it_is_said() {
    code 0 "$swerve" run long.json --store route.db --workers 1 --horizon route --json
    holds 'd["rerouted"] == 1 and d["clipped"] == 0 and d["degraded"] == 0' out
    holds 'list(d["pass_rates"]) == ["object"]' out
    code 0 "$swerve" run long.json --store route.db --workers 1 --horizon route
    says out "answered by another world, trusted for longer (--horizon route)"
}
validate_warns_beforehand() {
    code 0 "$swerve" validate long.json short.json
    says err "warning: long.json: scenario long lasts 30.5 s, the student is trusted for 30 s"
    code 0 "$swerve" validate long.json short.json --json
    holds '[len(f["warnings"]) for f in d["files"]] == [1, 0]' out
    python3 - short.json lights.json <<'PY' || fail "lights.json"
import json, sys
scenario = json.load(open(sys.argv[1]))
lane = scenario["ego"]["route"][0] if "route" in scenario["ego"] else scenario["map"]["lanes"][0]["id"]
scenario["map"]["signals"] = [{"id": "s", "lanes": [lane], "phases": [{"light": "red", "duration_s": 9}]}]
json.dump(scenario, open(sys.argv[2], "w"))
PY
    code 0 "$swerve" validate lights.json
    says err "learned worlds show no lights"
}

# A suite FILE.json of a scenario's file under as many ids: each is a logical scenario of its own.
many() {
    python3 - "$@" <<'PY' || fail "$1.json"
import json, sys
name, file, count = sys.argv[1:]
json.dump({"id": name, "scenarios": [{"file": file, "id": f"{name}{i}"} for i in range(int(count))]}, open(name + ".json", "w"))
PY
}
# Twelve scenarios of one tick, each repeated by the teacher, and by the object world.
agreement_is_counted_over_every_suite() {
    sed -e 's/"horizon_s": 2/"horizon_s": 0.1/' -e 's/"branches": .*/"slices": {"weather": "clear"}}/' short.json >tiny.json
    echo '{"rate": 1.0, "safety_critical_rate": 1.0}' >all.json
    many eight tiny.json 8
    many four tiny.json 4
    code 0 "$swerve" run eight.json --store pairs.db --workers 1 --audit all.json --json
    code 0 "$swerve" run four.json --store pairs.db --workers 1 --audit all.json --json
    cp pairs.db bare.db
    cp -r pairs.db.artifacts bare.db.artifacts
    code 0 "$swerve" run eight.json --store pairs.db --workers 1 --world object --json
    code 0 "$swerve" agreement --store pairs.db --gate --json
    holds 'd["frozen"] == 0 and d["missing"] == 0 and d["students"][0]["drives"] == 12' out
    holds 'd["health_drift"] == []' out
    holds 'd["rows"][0]["slice"] == {} and d["rows"][0]["pairs"] == 12' out
    holds 'd["rows"][0]["agree"]["verdict"]["pairs"] == 12 and d["rows"][0]["optimistic"] == 0' out
    holds 'd["rows"][0]["object"] == {"pairs": 8, "student_agrees": 8, "teacher_agrees": 8, "teacher_wrong": 0}' out
    holds 'any(r["slice"] == {"weather": "clear"} for r in d["rows"])' out
    code 0 "$swerve" agreement --store pairs.db
    says out "how sensitive the planner is to the drawing"
}
# One file in two precisions is two students: what one is asked or flagged for says nothing of the other.
precisions_are_students_of_their_own() {
    code 0 "$swerve" model add "$SWERVE_MODELS/student.safetensors" --name eight --precision int8 --store apart.db
    code 0 "$swerve" model promote eight --force --evidence "a test" --store apart.db
    code 0 "$swerve" run tiny.json --store apart.db --workers 1 --seeds 2 --audit off --json
    code 0 "$swerve" run tiny.json --store apart.db --workers 1 --seeds 3 --audit off --models "$SWERVE_MODELS" --json
    code 0 "$swerve" agreement --store apart.db --json
    holds '{s["sampler"]: s["drives"] for s in d["students"]} == {"euler2/int8": 2, "euler2/bf16": 3}' out
    holds 'len({s["student"] for s in d["students"]}) == 1' out
    code 0 "$swerve" agreement --store apart.db
    says out "(euler2/int8): 0 of 2 main lines were flagged"
}
# A suite asks again, and has audited what it need not drive again.
audits_of_results_that_were_taken_over_count() {
    code 0 "$swerve" run tiny.json --store taken.db --workers 1 --seeds 2 --audit off
    echo '{"id": "again", "scenarios": [{"file": "tiny.json"}]}' >again.json
    code 0 "$swerve" run again.json --store taken.db --workers 1 --seeds 2 --audit all.json --json
    holds 'd["memoised_jobs"] == 2 and d["audit_rollouts"] == 2' out
    code 0 "$swerve" agreement --store taken.db --json
    holds 'd["missing"] == 0 and d["rows"][0]["pairs"] == 2' out
}
# The teacher fails what the student passes, from then on: the table says so, and the gate closes. Where the object world
# passes it too, the teacher is wrong, and nothing sounds.
disagreement_sounds_and_closes_the_gate() {
    cp pairs.db arbitrated.db
    cp bare.db sick.db
    cp -r bare.db.artifacts sick.db.artifacts
    python3 -c 'import sqlite3
for name in ("sick.db", "arbitrated.db"):
  with sqlite3.connect(name) as db:
    db.execute("UPDATE outcomes SET verdict = 1 WHERE context IN (SELECT id FROM contexts WHERE tier = 3)")'
    code 0 "$swerve" agreement --store arbitrated.db --gate --json
    holds 'd["frozen"] == 0 and d["rows"][0]["optimistic"] == 4' out
    holds 'd["rows"][0]["object"] == {"pairs": 8, "student_agrees": 8, "teacher_agrees": 0, "teacher_wrong": 8}' out
    code 1 "$swerve" agreement --store sick.db --gate --json
    holds 'd["frozen"] == 1 and d["rows"][0]["optimistic"] == 12' out
    holds 'd["rows"][0]["monitor"]["alarm"] == "trend" and d["rows"][0]["monitor"]["alarm_jobs"] == 6' out
    code 0 "$swerve" agreement --store sick.db
    says out "FROZEN to the teacher"
    last=$(python3 -c 'import sqlite3; print(sqlite3.connect("sick.db").execute("SELECT MAX(id) FROM outcomes").fetchone()[0])')
    echo '{"format": "swerve-trust/1", "thawed": [{"slice": {}, "after_outcome": '"$last"', "evidence": "evaluation"}]}' >thaw.json
    code 0 "$swerve" agreement --store sick.db --policy thaw.json --gate --json
    holds 'd["thawed"] == 12 and d["rows"][0]["optimistic"] == 12' out
    code 0 "$swerve" agreement --store sick.db --policy thaw.json --gate
    says out "12 audited jobs are history by the policy's \"thawed\": no monitor above sees them"
    code 3 "$swerve" agreement --store sick.db --policy all.json
    says err "all.json"
    echo '{"format": "swerve-trust/1", "crossed": [{"weather": "frog"}]}' >frog.json
    code 3 "$swerve" agreement --store sick.db --policy frog.json
    says err 'frog.json: $.crossed[0].weather: expected weather such as "clear" or "rain", found "frog"'
    code 4 "$swerve" agreement --store nothing.db
}

# Twelve audits on four days, the last of which the store kept no time of; from the third day on the teacher fails.
days_show_when_it_began() {
    cp bare.db days.db
    cp -r bare.db.artifacts days.db.artifacts
    python3 - <<'PY' || fail "days.db"
import sqlite3
with sqlite3.connect("days.db") as db:
    ids = [row[0] for row in db.execute("SELECT o.id FROM outcomes o JOIN contexts c ON c.id = o.context WHERE c.tier = 3 ORDER BY o.id")]
    assert len(ids) == 12 and not db.execute("SELECT 1 FROM outcomes WHERE at_ms IS NULL").fetchall()
    for at, id in enumerate(ids):
        day = 1763424000000 + 86400000 * (at // 3)  # 2025-11-18, midnight
        db.execute("UPDATE outcomes SET at_ms = ?, verdict = ? WHERE id = ?", (None if at == 11 else day + at, 1 if at >= 6 else 0, id))
PY
    code 0 "$swerve" agreement --store days.db --by-day --json
    holds '[(e["day"], e["pairs"], e["agree"]) for e in d["rows"][0]["by_day"]] == [
        ("2025-11-21", 2, 0), ("2025-11-20", 3, 0), ("2025-11-19", 3, 3), ("2025-11-18", 3, 3)]' out
    holds 'all(e["optimistic"] == e["pairs"] - e["agree"] for e in d["rows"][0]["by_day"])' out
    holds 'd["rows"][0]["undated_pairs"] == 1 and d["rows"][0]["older_pairs"] == 0' out
    holds 'd["rows"][0]["by_day"][2]["rate"] == 1 and d["rows"][0]["by_day"][1]["high"] < 1 and len(d["rows"]) > 2' out
    holds 'd["rows"][0]["monitor"]["alarm"] == "trend" and d["rows"][0]["monitor"]["alarm_jobs"] == 12' out
    holds 'd["rows"][0]["monitor"]["alarm_at_ms"] is None' out
    code 0 "$swerve" agreement --store days.db --by-day --before 2025-11-20 --json
    holds '[e["day"] for e in d["rows"][0]["by_day"]] == ["2025-11-19", "2025-11-18"]' out
    code 0 "$swerve" agreement --store days.db --json
    holds '"by_day" not in d["rows"][0]' out
    code 0 "$swerve" agreement --store days.db --by-day
    says out "after 12 jobs, not known, FROZEN"
    grep -q "^weather=clear  *2025-11-21  *2  *0  *0.0%" out || fail "no row of a slice and day: $(cat out)"
    python3 -c 'import sqlite3
with sqlite3.connect("days.db") as db: db.execute("UPDATE outcomes SET at_ms = 1763683261000 WHERE at_ms IS NULL")'
    code 0 "$swerve" agreement --store days.db
    says out "after 12 jobs, 2025-11-21 00:01:01 UTC, FROZEN"
    code 2 "$swerve" agreement --store days.db --by-day --before 2025-02-30
    says err "--before: expected a date such as"
    code 2 "$swerve" agreement --store days.db --before 2025-02-01
    python3 -c 'import sqlite3
with sqlite3.connect("days.db") as db: db.execute("UPDATE outcomes SET at_ms = -5 WHERE id = 1")'
    code 4 "$swerve" check --store days.db
    says out "outcome 1: came at millisecond -5, which cannot be"
}

# A slice that the audits froze the teacher answers from then on, in that slice alone, until it is thawed.
a_frozen_slice_goes_to_the_teacher() {
    echo '{"format": "swerve-trust/1"}' >trust.json
    sed 's/"weather": "clear"/"weather": "rain"/; s/"id": "short"/"id": "rainy"/' tiny.json >rainy.json
    code 0 "$swerve" run tiny.json --store fresh.db --workers 1 --trust trust.json --audit off --json
    holds 'd["frozen"] == 0 and list(d["pass_rates"]) == ["student"]' out
    # Jobs of another weather agree: then it is not all of the student that is sick.
    cp sick.db slice.db
    many rain rainy.json 12
    code 0 "$swerve" run rain.json --store slice.db --workers 1 --audit all.json --json
    code 0 "$swerve" agreement --store slice.db --json
    holds '[r["slice"] for r in d["rows"] if r["frozen"]] == [{"weather": "clear"}]' out
    code 0 "$swerve" submit tiny.json --store slice.db --seeds 20 --trust trust.json --json
    holds 'd["frozen"] == 1 and d["audits"] == 0' out
    code 0 "$swerve" run tiny.json --store slice.db --workers 1 --seeds 9 --trust trust.json --json
    holds 'd["frozen"] == 1 and list(d["pass_rates"]) == ["teacher"]' out
    code 0 "$swerve" run rainy.json --store slice.db --workers 1 --seeds 13 --trust trust.json --audit off --json
    holds 'd["frozen"] == 0 and list(d["pass_rates"]) == ["student"]' out
    mkdir -p alone
    cp "$SWERVE_MODELS"/student.* alone/
    code 3 "$swerve" run tiny.json --store slice.db --workers 1 --seeds 9 --trust trust.json --models alone
    says err "the student is frozen in its slice"
}

# A freeze by --trust stands in the store, with its evidence: whoever submits obeys, until an event thaws it.
a_freeze_is_a_fact_of_the_store() {
    code 0 "$swerve" trust ls --store slice.db --json
    holds '[e["kind"] for e in d["events"]] == ["freeze"] and d["floor"] is None' out
    holds 'd["events"][0]["slice"] == {"weather": "clear"} and d["events"][0]["disagreed"] == 12' out
    holds 'd["events"][0]["sounded_at"] > 0 and len(d["events"][0]["policy_hash"]) == 64' out
    cp slice.db held.db
    code 0 "$swerve" run tiny.json --store slice.db --workers 1 --seeds 10 --json
    holds 'd["frozen"] == 1 and list(d["pass_rates"]) == ["teacher"]' out
    code 0 "$swerve" run tiny.json --store slice.db --workers 1 --seeds 9 --trust thaw.json --audit off --json
    holds 'd["frozen"] == 1 and list(d["pass_rates"]) == ["teacher"]' out # a file thaws no store
    code 3 "$swerve" submit tiny.json --store slice.db --seeds 9 --models alone
    says err "the student is frozen in its slice"
    code 1 "$swerve" agreement --store slice.db --policy thaw.json --gate --json
    holds 'd["frozen"] == 0 and [f["id"] for f in d["freezes"]] == [1]' out
    code 1 "$swerve" trust thaw 1 --store slice.db
    says err "expected an evaluation that student"
    says err "none was named; or force it"
    code 3 "$swerve" trust thaw 1 --store slice.db --force
    says err "expected a reason"
    code 0 "$swerve" trust thaw 1 --store slice.db --force --evidence "the teacher was turned round"
    says out "FORCED"
    code 0 "$swerve" trust thaw 1 --store slice.db --force --evidence "the teacher was turned round"
    code 4 "$swerve" trust thaw 1 --store slice.db --force --evidence "something else"
    says err "freeze 1 is thawed already, by event"
    code 0 "$swerve" run tiny.json --store slice.db --workers 1 --seeds 11 --trust trust.json --audit off --json
    holds 'd["frozen"] == 0 and list(d["pass_rates"]) == ["student"]' out
    code 0 "$swerve" agreement --store slice.db --gate
}
# From freeze to evaluation to thaw in one store: what froze the slice is no evidence any more, and without new evidence nothing passes.
what_is_frozen_is_evaluated_where_it_is() {
    cp sick.db judged.db
    cp -r sick.db.artifacts judged.db.artifacts
    echo '{"format": "swerve-trust/1", "band": 0.01, "safety_critical_band": 0.01}' >low.json
    code 0 "$swerve" model add "$SWERVE_MODELS/student.safetensors" --name shipped --store judged.db
    code 0 "$swerve" trust freeze shipped --teacher "$(sha256sum <"$SWERVE_MODELS/teacher.safetensors" | cut -c-64):euler2/bf16" \
        --slice weather=clear --evidence "its audits" --store judged.db
    code 1 "$swerve" model evaluate shipped --policy low.json --store judged.db
    says err "no audited job of it since its slices were frozen; drive it with --evaluation"
    code 1 "$swerve" golden make tiny.json --name pictures --seeds 1 --store judged.db
    says err 'is of the slice weather=clear, in which student'
    code 0 "$swerve" capacity --store judged.db --json
    holds 'd["frozen_share"] == 1' out
    code 0 "$swerve" run tiny.json --store judged.db --workers 1 --seeds 2 --json
    holds 'd["frozen"] == 1 and list(d["pass_rates"]) == ["teacher"]' out
    code 2 "$swerve" run tiny.json --store judged.db --world object --evaluation
    says err "--evaluation: expected jobs of a student, whom it is to evaluate: --world student, or a world of yours with --audit-world; found --world object"
    code 0 "$swerve" run tiny.json --store judged.db --workers 1 --seeds 2 --audit off --evaluation --json
    holds 'd["frozen"] == 0 and list(d["pass_rates"]) == ["student"] and d["audit_rollouts"] == 2 and d["memoised_jobs"] == 0' out
    code 0 "$swerve" run tiny.json --store judged.db --workers 1 --seeds 2 --evaluation --json # which asks nothing twice
    code 0 "$swerve" model evaluate shipped --policy low.json --store judged.db --json
    holds 'd["passed"] and d["left_out"] == 12 and d["jobs_judged"] == 2' out
    code 0 "$swerve" model show shipped --store judged.db --json
    event=$(python3 -c 'import json; print(json.load(open("out"))["events"][-1]["id"])')
    code 0 "$swerve" trust thaw 1 --evaluation "$event" --store judged.db --json
    holds 'd["evaluation"] == '"$event"' and not d.get("forced")' out
    code 0 "$swerve" run tiny.json --store judged.db --workers 1 --seeds 3 --audit off --json
    holds 'd["frozen"] == 0 and list(d["pass_rates"]) == ["student"]' out
    code 0 "$swerve" capacity --store judged.db --json
    holds 'd["frozen_share"] == 0' out
}
# Jobs that wait when the freeze comes run on the teacher; the one that is on its way says so.
what_waits_goes_to_the_teacher() {
    cat >hold.py <<PY
import os, sys, time
sys.path.insert(0, "$root/scripts")
import swerve_planner
class Hold(swerve_planner.Planner):
    def act(self, observation):
        open("$work/holding", "w").close()
        while not os.path.exists("$work/go"):
            time.sleep(0.01)
        return 0.0, 0.0
swerve_planner.run(Hold)
PY
    student=$(sha256sum <"$SWERVE_MODELS/student.safetensors" | cut -c-64):euler2/bf16
    teacher=$(sha256sum <"$SWERVE_MODELS/teacher.safetensors" | cut -c-64):euler2/bf16
    code 0 "$swerve" submit tiny.json --store wait.db --seeds 5 --audit off --planner "exec:python3 hold.py"
    "$swerve" worker --store wait.db --slots 1 --drain --planner-deadline-ms 60000 >worker.out 2>&1 &
    worker=$!
    for _ in $(seq 600); do [ -e holding ] && break; sleep 0.05; done
    code 2 "$swerve" trust freeze "$student" --teacher "$teacher" --slice weather=rain,weather=clear --evidence "a test" --store wait.db
    says err "--slice: expected weather once, found it twice"
    code 3 "$swerve" trust freeze "$student" --teacher "$teacher" --slice weather=claer --evidence "a test" --store wait.db
    says err 'expected a weather of clear, rain, heavy_rain, fog, snow, found "claer"'
    code 3 "$swerve" trust freeze "$student" --teacher "$student" --slice weather=clear --evidence "a test" --store wait.db
    says err "found the student itself"
    # Nothing said is not everything, and what names no teacher, no sampler or no model is refused.
    code 2 "$swerve" trust freeze "$student" --teacher "$teacher" --slice "" --evidence "a test" --store wait.db
    says err "or all for every scenario, found nothing"
    code 3 "$swerve" trust freeze "$student" --teacher "$(printf 'a%.0s' $(seq 64)):euler2/bf16" --slice weather=clear --evidence "a test" --store wait.db
    says err "no teacher has a hash of aaaaaaaa"
    code 2 "$swerve" trust freeze "$student" --teacher "${teacher%%:*}:rubbish" --slice weather=clear --evidence "a test" --store wait.db
    says err 'expected a sampler like euler2/bf16 behind the colon, found "rubbish"'
    code 3 "$swerve" trust freeze "$student" --slice weather=clear --evidence "a test" --store wait.db # without a teacher
    # The first digits do, as outputs show them.
    code 0 "$swerve" trust freeze "$(echo "$student" | cut -c-12):euler2/bf16" --teacher "$(echo "$teacher" | cut -c-12):euler2/bf16" --slice weather=clear --evidence "a test" --store wait.db --json
    holds 'd["jobs_moved"] + d["jobs_in_flight"] == 5 and d["jobs_moved"] > 0 and d["jobs_in_flight"] > 0' out
    holds 'len(d["student_hash"]) == len(d["teacher_hash"]) == 64' out
    moved=$(python3 -c 'import json; print(json.load(open("out"))["jobs_moved"])')
    # The same again is the same freeze; other evidence is told that it is not kept.
    code 0 "$swerve" trust freeze "$student" --teacher "$teacher" --slice weather=clear --evidence "a test" --store wait.db
    code 4 "$swerve" trust freeze "$student" --teacher "$teacher" --slice weather=clear --evidence "another" --store wait.db
    says err 'freeze 1 holds for this student and slice already'
    code 0 "$swerve" trust freeze "$student" --teacher "$teacher" --slice scenario_type=none_such,weather=clear --evidence "a test" --store wait.db
    says err "no outcome of the store has scenario_type=none_such"
    touch go
    wait $worker || fail "the worker: $(cat worker.out)"
    code 0 "$swerve" worker --store wait.db --pool teacher --drain
    for id in 1 2 3 4 5; do "$swerve" show $id --json --store wait.db; done >shown
    python3 - shown "$moved" <<'PY' || fail "what was shown: $(cut -c-300 shown)"
import json, sys
rows, text = [], open(sys.argv[1]).read()
while text.strip():
    row, end = json.JSONDecoder().raw_decode(text.lstrip())
    rows.append(row)
    text = text.lstrip()[end:]
moved = int(sys.argv[2])
assert sorted(r["tier"] for r in rows) == (5 - moved) * ["student"] + moved * ["teacher"]
assert all(r.get("in_flight", False) == (r["tier"] == "student") and r["freeze"] == 1 for r in rows)
PY
    code 0 "$swerve" check --store wait.db
}

# Rain comes after an evaluation that saw clear weather alone: said before agreement moves.
an_input_that_no_evaluation_saw_raises_the_audit() {
    last=$(python3 -c 'import sqlite3; print(sqlite3.connect("sick.db").execute("SELECT MAX(id) FROM outcomes").fetchone()[0])')
    echo '{"format": "swerve-trust/1", "evaluated_until": '"$last"', "thawed": [{"slice": {}, "after_outcome": '"$last"', "evidence": "e"}]}' >seen.json
    code 0 "$swerve" agreement --store slice.db --policy seen.json --json
    holds 'd["students"][0]["drifted"] and d["students"][0]["drift"]["weather"]["unseen"] == 1' out
    holds 'd["students"][0]["drift"]["weather"]["unseen_value"] == "rain"' out
    holds 'd["students"][0]["drift"]["light"]["index"] == 0' out
    code 0 "$swerve" agreement --store slice.db --policy seen.json
    says out 'INPUT DRIFT in weather: 1 value that its evaluation never saw, such as "rain"'
    code 0 "$swerve" submit tiny.json --store slice.db --seeds 40 --audit off --trust seen.json --json
    holds '10 <= d["audits"] <= 30 and d["frozen"] == 0' out
    says err "re-validation is due"
    code 0 "$swerve" submit tiny.json --store pairs.db --seeds 40 --audit off --trust seen.json --json
    holds 'd["audits"] == 0' out
}
no_submission_audits_less_than_the_floor() {
    echo '{"format": "swerve-trust/1", "audit_floor": {"rate": 1.0}}' >floor.json
    code 0 "$swerve" submit tiny.json --store floor.db --seeds 5 --audit off --trust floor.json --json
    holds 'd["jobs"] == 10 and d["audits"] == 5' out
    code 0 "$swerve" submit tiny.json --store floor2.db --seeds 5 --audit off --trust trust.json --json
    holds 'd["audits"] == 0' out
}
# A server's policy is written down by the server; who submits to it needs no policy.
a_server_freezes_by_its_policy() {
    cp sick.db served.db
    cp -r sick.db.artifacts served.db.artifacts
    "$swerve" serve --store served.db --trust floor.json --listen 127.0.0.1:0 >url 2>serve.err &
    server=$!
    for _ in $(seq 600); do
        [ -s url ] && "$swerve" trust ls --store "$(cat url)" 2>/dev/null | grep -q HOLDS && break
        sleep 0.05
    done
    code 0 "$swerve" trust ls --store "$(cat url)" --json
    holds '[(e["kind"], e["evidence"][:5]) for e in d["events"]] == [("floor", "the p"), ("freeze", "12 of")]' out
    code 0 "$swerve" submit tiny.json --store "$(cat url)" --seeds 20 --audit off --json
    holds 'd["frozen"] == 1 and d["audits"] == 0' out
    for _ in $(seq 100); do
        python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + "/metrics").read().decode())' "$(cat url)" >metrics
        grep -q "^swerve_trust_freezes_holding 1" metrics && break
        sleep 0.05
    done
    grep -q "^swerve_trust_freezes_holding 1" metrics || fail "metrics: $(grep trust metrics)"
    kill $server
    wait $server
}
# The store's floor is above every submission, and a policy of the server's raises it.
the_store_holds_a_floor() {
    code 0 "$swerve" submit tiny.json --store high.db --seeds 5 --audit off --json
    code 2 "$swerve" trust floor --store high.db
    says err "expected --rate"
    code 0 "$swerve" trust floor --store high.db --rate 0.05
    says out "floor   0.05 of jobs audited, 0.1 of safety-critical ones: HOLDS"
    grep -q "^ *1  20[0-9-]* [0-9:]* UTC  floor" out || fail "no time with a zone: $(cat out)"
    code 0 "$swerve" trust ls --store high.db --json
    says out '"audit_rate": 0.05,' # and no digit more
    holds 'd["floor"] == {"event": 1, "audit_rate": 0.05, "audit_rate_safety_critical": 0.1}' out
    code 0 "$swerve" submit tiny.json --store high.db --seeds 200 --audit off --json
    holds '2 <= d["audits"] <= 30' out
    code 0 "$swerve" trust floor --store high.db --rate 0 --safety-critical-rate 0
    code 0 "$swerve" trust ls --store high.db --json
    holds 'd["floor"]["event"] == 2 and d["floor"]["audit_rate"] == 0 and len(d["events"]) == 2' out
    code 0 "$swerve" submit tiny.json --store high.db --seeds 190 --audit off --json
    holds 'd["audits"] == 0' out
    code 2 "$swerve" trust floor --store high.db --rate 5
}
flags_have_a_monitor_of_their_own() {
    cp pairs.db flagged.db
    python3 -c 'import sqlite3
with sqlite3.connect("flagged.db") as db:
    db.execute("UPDATE outcomes SET verdict = 3 WHERE id IN (SELECT o.id FROM outcomes o JOIN contexts c ON c.id = o.context WHERE c.tier = 2 LIMIT 5)")'
    code 1 "$swerve" agreement --store flagged.db --gate --json
    holds 'd["sounding_flags"] > 0 and d["rows"][0]["flags"]["flagged"] == 5' out
    holds 'd["frozen"] == 0 and d["rows"][0]["incomplete"] == 5 and d["rows"][0]["pairs"] == 7' out
    code 0 "$swerve" agreement --store flagged.db
    says out "FLAGS of student"
    says out "5 of 12 main lines were flagged"
}
# A worker names the file that is not the model whose bounds stand beside it.
a_damaged_model_is_named() {
    cp -r "$SWERVE_MODELS" flipped
    code 0 "$swerve" submit tiny.json --store flipped.db --audit off
    printf x | dd of=flipped/student.safetensors bs=1 seek=100000 conv=notrunc 2>/dev/null
    SWERVE_MODEL_CACHE=$work/none "$swerve" worker --store flipped.db --drain --models flipped >out 2>err
    says err "flipped/student.safetensors has its health bounds and is not it: expected SHA-256 $(sha256sum <"$SWERVE_MODELS/student.safetensors" | cut -c-64), found $(sha256sum <flipped/student.safetensors | cut -c-64)"
}
# Answers of the teacher for flagged drives are results, wherever they are told; one that was cancelled is one main line.
what_the_teacher_answered_is_answered() {
    cp -r "$SWERVE_MODELS" strict
    sed -e 's/"horizon_s": 0.1/"horizon_s": 0.4/' -e 's/"id": "short"/"id": "strict"/' tiny.json >strict.json
    python3 - <<'PY'
import json, pathlib
for path in pathlib.Path("strict").glob("student*.health.json"):
    bounds = json.loads(path.read_text())
    for degree in bounds["degrees"].values():
        degree["mass_low"]["bound"] = 0.9999
    path.write_text(json.dumps(bounds))
PY
    code 0 "$swerve" run strict.json --store strict.db --workers 1 --models strict --seeds 2 --audit off --gate --junit strict.xml --summary strict.md
    says out "gate met"
    grep -q 'tests="2" failures="0" errors="0" skipped="0"' strict.xml || fail "$(cat strict.xml)"
    ! grep -q "no result\|Did not pass" strict.md || fail "$(cat strict.md)"
    code 0 "$swerve" submit strict.json --store strict.db --models strict --seeds 3 --fresh --audit off --json
    suite=$(python3 -c 'import json; print(json.load(open("out"))["suite"])')
    code 0 "$swerve" worker --store strict.db --pool bulk --drain --models strict
    code 0 "$swerve" cancel "$suite" --store strict.db
    code 0 "$swerve" export --format markdown --suite "$suite" --store strict.db
    says out "3 main lines have no result (3 cancelled)."
    says out "Did not pass: 3"
    code 0 "$swerve" export --format junit --suite "$suite" --store strict.db
    says out 'tests="3" failures="0" errors="3" skipped="0"'
}

# Arithmetic of what the ledger says; a policy's audit rate in place of the measured one.
the_teacher_keeps_up_or_it_is_said() {
    code 0 "$swerve" capacity --store pairs.db --json
    holds 'd["student_jobs"] == 12 and d["teacher_jobs"] == 12 and d["audit_share"] == 1' out
    holds 'd["flag_share"] == 0 and d["frozen_share"] == 0 and d["load"] is None' out
    holds 'abs(d["teachers_per_student"] - d["cost_ratio"]) < 1e-9' out
    holds 'abs(d["cost_ratio"] - d["teacher_s"] / d["student_s"]) < 1e-9' out
    code 1 "$swerve" capacity --store pairs.db --students 1000 --teachers 1 --gate
    says out "OVER: their queue grows for ever"
    code 0 "$swerve" capacity --store pairs.db --students 1000 --teachers 1 --audit-rate 0 --gate --json
    holds 'd["load"] == 0 and not d["over"]' out
    code 0 "$swerve" capacity --store held.db --audit-rate 0 --json
    holds '0 < d["frozen_share"] < 1' out
    holds 'abs(d["teachers_per_student"] - d["frozen_share"] / (1 - d["frozen_share"]) * d["cost_ratio"]) < 1e-9' out
    code 2 "$swerve" capacity --store pairs.db --audit-rate 2
    code 2 "$swerve" capacity --store pairs.db --gate
    says err "expected --students and --teachers"
    code 0 "$swerve" run rainy.json --world object --store unmeasured.db
    code 1 "$swerve" capacity --store unmeasured.db --students 1 --teachers 1 --gate
}
what_they_differ_on_is_a_suite() {
    code 0 "$swerve" agreement --store pairs.db --disagreements differ
    says out "no verdict differs: nothing was written"
    [ ! -e differ ] || fail "a suite of nothing was written"
    code 0 "$swerve" agreement --store sick.db --disagreements differ
    says out "12 scenarios with different verdicts: differ/suite.json"
    code 0 "$swerve" validate differ/suite.json
    holds '[len(e["seeds"]) for e in d["scenarios"]] == [1] * 12' differ/suite.json
    code 0 "$swerve" submit differ/suite.json --store sick.db --world student --audit off --json
    holds 'd["rollouts"] == 12 and d["memoised"] == 12' out # the same scenarios, by their hashes
}

echo 1..24 >&3
t a_scenario_beyond_the_horizon_costs_nothing
t what_is_trusted_is_driven_and_said
t the_cheaper_of_two_that_answer_alike
t what_is_clipped_is_measured_clipped
t another_world_answers_and_it_is_said
t validate_warns_beforehand
t agreement_is_counted_over_every_suite
t precisions_are_students_of_their_own
t audits_of_results_that_were_taken_over_count
t disagreement_sounds_and_closes_the_gate
t days_show_when_it_began
t a_frozen_slice_goes_to_the_teacher
t a_freeze_is_a_fact_of_the_store
t what_is_frozen_is_evaluated_where_it_is
t what_waits_goes_to_the_teacher
t an_input_that_no_evaluation_saw_raises_the_audit
t no_submission_audits_less_than_the_floor
t a_server_freezes_by_its_policy
t the_store_holds_a_floor
t flags_have_a_monitor_of_their_own
t what_the_teacher_answered_is_answered
t a_damaged_model_is_named
t the_teacher_keeps_up_or_it_is_said
t what_they_differ_on_is_a_suite
[ "$failed" = 0 ]
