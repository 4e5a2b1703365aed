#!/bin/bash
# Goal: the command-line contract, end to end with the built binary: what is printed, which exit
# codes, that results do not depend on workers, slots, kills or who owns the store.
# Method: small suites in a directory of their own; two runs are compared as sorted lists of
# (scenario, branch, seed, trace hash, verdict). Waiting is by polling for a state, never by time.
#
# Usage: test_cli.sh SWERVE SOURCE_ROOT PLUGIN_MOODY
set -u -o pipefail
tap=$(dirname "$(realpath "$0")")/tap.sh
swerve=$(realpath "$1")
root=$(realpath "$2")
moody=$(realpath "$3")
work=$(mktemp -d /tmp/swerve-cli-XXXXXX)
background=()
cleanup() {
    for pid in "${background[@]}"; do kill -9 "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$tap"

# holds PYTHON FILE: an expression over the JSON `d` of the file is true.
holds() {
    python3 -c 'import json,sys; d=json.load(open(sys.argv[2])); assert eval(sys.argv[1]), sys.argv[1]' \
        "$1" "$2" 2>pyerr || fail "$2: $(tail -1 pyerr)"
}
# results STORE [SUITE]: the comparable list of its outcomes.
results() {
    "$swerve" show --all --store "$1" ${2:+--suite "$2"} | python3 -c '
import json, sys
for o in sorted((d["scenario_id"], d["branch_id"], d["seed"], d["trace_hash"], d["verdict"]) for d in map(json.loads, sys.stdin)):
    print(*o)'
}
# same FILE FILE: two lists of results are equal and not empty.
same() {
    [ -s "$1" ] && cmp -s "$1" "$2" || fail "$1 and $2 differ: $(diff "$1" "$2" | head -4)"
}
# until_true COMMAND..: polls until it succeeds; gives up after many tries.
until_true() {
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "never happened: $*"; return 1; }
        read -r -t 0.01 _ <> <(:) || true
    done
}
# counted STORE STATE: jobs in that state.
counted() {
    "$swerve" status --store "$1" --json 2>/dev/null | python3 -c '
import json, sys
print(sum(s[sys.argv[1]] for s in json.load(sys.stdin)["suites"]))' "$2" 2>/dev/null || echo 0
}
some_done() { [ "$(counted "$1" done)" -gt "$2" ]; }
gone() { ! kill -0 "$1" 2>/dev/null; }
served() { [ -S "$1.sock" ]; }

cat >drive.json <<'JSON'
{"id": "drive", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5,
 "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 6,
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 9, "behaviour": "idm"}],
 "branches": [{"id": "brake", "at_tick": 20, "interventions": [{"kind": "ego_brake", "decel_mps2": 4}]}]}
JSON
# Waits in jobs of seed 4 and more until the file "go" is there, so that a kill meets work in progress.
cat >hold.py <<'PY'
import os, sys, time
sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))
import swerve_planner
class Hold(swerve_planner.Planner):
    def reset(self, episode):
        self.seed = episode.seed
    def act(self, observation):
        while self.seed >= 4 and observation.tick == 30 and not os.path.exists("go"):
            time.sleep(0.005)
        return (self.seed % 5) * 0.125 - 0.25, observation.route[2].y_m * 0.03125
swerve_planner.run(Hold)
PY
# -S: without site packages, a tenth of the start-up time.
held=(--planner "exec:python3 -S hold.py $root" --planner-deadline-ms 60000)
echo '{"id": "pair", "seeds": 2, "scenarios": [{"file": "drive.json"}]}' >pair.json
echo '{"id": "many", "seeds": 12, "scenarios": [{"file": "drive.json"}]}' >many.json
echo '{"id": "forty", "seeds": 40, "scenarios": [{"file": "drive.json"}]}' >forty.json

run_json_has_what_it_promises() {
    code 0 "$swerve" run "$root/scenarios/smoke.json" --store a.db --workers 2 --json --report a.html
    cp out run.json
    [ -s err ] && fail "stderr is not empty: $(head -c 200 err)"
    holds 'all(k in d for k in "store rollouts passed failed flagged errors ticks prefix_ticks_saved miles usd wall_s by_slice by_tier outcomes".split())' run.json
    holds 'd["rollouts"] == len(d["outcomes"]) == len(set(d["outcomes"])) == 35' run.json
    holds 'd["rollouts"] == d["passed"] + d["failed"] + d["flagged"] + d["errors"]' run.json
    holds 'all(sum(r["rollouts"] for r in g.values()) == d["rollouts"] for g in d["by_slice"].values())' run.json
    holds 'all(sum(r[k] for r in d["by_tier"].values()) == d[k] for k in ("rollouts", "passed", "failed", "ticks"))' run.json
    holds 'abs(sum(r["miles"] for r in d["by_tier"].values()) - d["miles"]) < 1e-9 and d["miles"] > 0' run.json
    holds 'abs(sum(r["usd"] for r in d["by_tier"].values()) - d["usd"]) < 1e-12 and d["usd"] > 0' run.json
    holds 'd["prefix_ticks_saved"] > 0 and d["wall_s"] > 0' run.json
    head -c 15 a.html | grep -qi '<!doctype html>' || fail "no report"
    results a.db >a.txt
}
a_second_run_simulates_nothing() {
    code 0 "$swerve" run "$root/scenarios/smoke.json" --store a.db --json
    cp out again.json
    python3 - run.json again.json <<'PY' 2>pyerr || fail "the second run differs: $(tail -1 pyerr)"
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert a["ledger"] == b["ledger"], "it cost something"
assert a["outcomes"] == b["outcomes"]
PY
    echo "{\"id\": \"other\", \"scenarios\": [{\"file\": \"drive.json\"}]}" >one.json
    code 0 "$swerve" run one.json --store memo.db --json
    echo "{\"id\": \"third\", \"scenarios\": [{\"file\": \"drive.json\"}]}" >two.json
    code 0 "$swerve" run two.json --store memo.db --json
    holds 'd["memoised_jobs"] == 1 and d["rollouts"] == 2 and sum(r["attempts"] for r in d["ledger"]) == 0' out
}
replays_are_identical() {
    local slots
    for slots in 1 16; do
        code 0 "$swerve" replay --all --store a.db --slots $slots --json
        holds 'd["identical"] == 35 and d["different"] == 0 and len(d["outcomes"]) == 35' out
    done
    code 0 "$swerve" replay 3 4 --store a.db
    says out "2 identical, 0 different"
    # A main line that is invalid by itself, of a job whose branch is flagged.
    cat >flags.json <<'EOF'
{"id": "flags", "map": {"lanes": [{"id": "m", "centre_line": [[0, 0], [900, 0]], "width_m": 3.5}]},
 "ego": {"pose": {"lane": "m", "s_m": 300}, "speed_mps": 8, "route": ["m"]}, "horizon_s": 3,
 "agents": [{"id": "w", "kind": "car", "behaviour": "script", "pose": {"x_m": 240, "y_m": 30, "heading_rad": 0}, "speed_mps": 10},
  {"id": "v", "kind": "car", "behaviour": "static", "pose": {"x_m": 255, "y_m": 30, "heading_rad": 0}, "speed_mps": 0},
  {"id": "f", "kind": "car", "behaviour": "script", "hidden": true, "pose": {"x_m": 300, "y_m": 60, "heading_rad": 0}, "speed_mps": 140}],
 "branches": [{"id": "fast", "at_tick": 5, "interventions": [{"kind": "agent_appear", "agent": "f"}]}]}
EOF
    code 6 "$swerve" run flags.json --nominal --world object --store flags.db
    "$swerve" show --all --store flags.db | grep -q '"health_check": *"overlap"' || fail "the main line is not invalid"
    code 0 "$swerve" replay --all --store flags.db
    says out "2 identical, 0 different"
}
workers_and_slots_do_not_matter() {
    code 0 "$swerve" run "$root/scenarios/smoke.json" --store b.db --workers 1 --slots 1
    code 0 "$swerve" run "$root/scenarios/smoke.json" --store c.db --workers 4 --slots 3
    results b.db >b.txt
    results c.db >c.txt
    same a.txt b.txt
    same a.txt c.txt
    code 0 "$swerve" replay --all --store c.db --slots 16
}
exit_1_gate_and_mismatch() {
    code 0 "$swerve" run drive.json --store gate.db --gate
    sed 's/"branches"/"criteria": {"progress_min": 1, "expected_progress_m": 1000}, "branches"/' drive.json >hard.json
    code 1 "$swerve" run hard.json --store gate.db --gate
    says err "gate not met"
    code 0 "$swerve" run hard.json --store gate.db
    code 0 "$swerve" run hard.json --store gate.db --gate-rate 0
    code 0 "$swerve" avoid --store gate.db --harm --json
    holds 'd["unsafe"] + d["safe"] == len(d["drives"]) > 0 and "rate" in d["harm"]["brake"]' out
    code 0 "$swerve" avoid --store gate.db
    says out "none of 1 main lines was unsafe"
    code 2 "$swerve" run hard.json --store gate.db --gate --gate-rate most
    # A planner whose answers differ from process to process cannot be replayed.
    cat >drift.py <<'PY'
import os, sys
sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))
import swerve_planner
class Drift(swerve_planner.Planner):
    def act(self, observation):
        return (os.getpid() % 1000) / 1000, 0.0
swerve_planner.run(Drift)
PY
    code 0 "$swerve" run drive.json --store drift.db --workers 1 --planner "exec:python3 -S drift.py $root"
    code 1 "$swerve" replay --all --store drift.db
    says out "DIFFERENT"
}
exit_2_usage() {
    code 2 "$swerve"
    code 2 "$swerve" fly
    code 2 "$swerve" run
    code 2 "$swerve" run drive.json --seeds many
    says err '--seeds: expected a whole number from 0 to 10^12, found "many"'
    code 2 "$swerve" import opendrive -o x.json
    says err "too few arguments"
    grep -q 'u000a' err && fail "the usage of two lines is one"
    code 2 "$swerve" replay --all --threads 65 --store a.db
    says err "replay: --threads: expected 1 to 64, found 65"
    code 2 "$swerve" replay 1 --all --store a.db
    says err "expected outcomes or --all, found both"
    code 2 "$swerve" store gc --older-than 0 --store a.db
    says err "--older-than: expected 1 to 876000 hours, found 0"
    code 2 "$swerve" run drive.json --colour red
    code 2 "$swerve" run drive.json --workers 0
    code 2 "$swerve" run drive.json --store
    code 2 "$swerve" run drive.json extra.json
    code 2 "$swerve" run drive.json --world moon --store u.db
    code 2 "$swerve" run drive.json --device gpu --store u.db
    code 2 "$swerve" show nobody --store a.db
    code 2 "$swerve" show 1 --all --store a.db
    code 2 "$swerve" replay --store a.db
    code 2 "$swerve" cancel --store a.db
    [ -e u.db ] && fail "a store was made"
    code 2 "$swerve" show 1 --trace --scenario --store a.db
    code 2 "$swerve" show 1 --trace --evidence e.png --store a.db
    code 0 "$swerve" bench store --directory . --jobs 10 --workers 1
    says out "store.claim_complete.batch_1 "
    code 2 "$swerve" bench hash --scene drive.json
    says err "expected no --scene, found drive.json"
    code 3 "$swerve" bench world --scene nowhere.json
    says err "nowhere.json"
    code 2 "$swerve" bench engine --random-weights --model m.safetensors
    says err "expected --model or --random-weights"
    code 2 "$swerve" bench engine --config toy --random-weights --ranks 9
    says err "expected --ranks 1 to 8 and --limit 1 to 86400, found 9 and 600"
    code 2 "$swerve" bench engine --config toy --random-weights --ranks 2 --limit 0
    code 2 "$swerve" bench engine --config toy --random-weights --ranks 2 --device cpu
    says err "expected --device cuda:N, the first of them, found \"cpu\""
    code 2 "$swerve" bench engine --tune
    says err "bench engine --tune: expected --model and one number of --slots, found no model and \"1,8,32\""
    code 5 "$swerve" bench engine --tune --model m.safetensors --slots 8 --device cpu
    says err "bench engine --tune: expected a device, found cpu"
    code 2 "$swerve" bench engine --random-weights --ranks 2
    says err "--ranks share a --config"
    code 2 "$swerve" validate drive.json --colour
    says err "swerve validate: unknown option --colour"
    [ "$(wc -l <err)" = 2 ] || fail "expected the fault and the usage, found: $(cat err)"
    code 2 "$swerve" model ls --bogus
    grep -q 'u000a' err && fail "the usage has no line breaks: $(cat err)"
    code 2 "$swerve" run drive.json --sedes 3
    says err "unknown option --sedes; did you mean --seeds?"
    code 2 "$swerve" rnu
    says err 'unknown command "rnu"; did you mean run?'
    code 2 "$swerve" run drive.json --seeds 0 --store u.db
    says err "--seeds: expected 1 to 10000, found 0"
    code 2 "$swerve" run drive.json --seeds 1 --store u.db --seeds=0
    says err "swerve run: warning: --seeds is given twice; 0 counts"
    code 0 "$swerve" help
    says out "usage: swerve COMMAND"
    code 0 "$swerve" --help
    code 0 "$swerve" run --help
    says out "Planner and world:"
    cp out run_help.txt
    code 0 "$swerve" help run
    cmp -s out run_help.txt || fail "help run is not run --help"
    code 2 "$swerve" help rnu
}
exit_2_options_of_importers_say_whose_they_are() {
    code 2 "$swerve" import openscenario none.xosc --speed 4 -o none.json
    says err "--from, --to, --speed, --reach and --priority-right are for"
    code 2 "$swerve" import commonroad none.xml --horizon 4 -o none.json
    says err "--horizon is for opendrive and openscenario"
    code 2 "$swerve" import opendrive none.xodr --horizon 0 -o none.json
    says err "--horizon: expected a number of 0.1 to 600, found \"0\""
}
# Importers are a program of their own, which lies beside swerve: it gets the words as they are and no secret, and its exit
# code is the command's. Without it one sentence says where it was looked for.
importers_are_a_program_of_their_own() {
    mkdir alone
    cp "$swerve" alone/swerve
    code 4 alone/swerve import opendrive none.xodr -o none.json
    says err "import: $work/alone/swerve-import: cannot start the importers"
    says err "No such file or directory"
    printf '#!/bin/sh\nprintf "<%%s>" "$@"; env; exit 42\n' >alone/swerve-import
    chmod +x alone/swerve-import
    SWERVE_TOKEN=secret LD_LIBRARY_PATH=$work code 42 alone/swerve import opendrive "a b" '' --help
    says out "<opendrive><a b><><--help>"
    says out "LD_LIBRARY_PATH=$work"
    grep -q secret out && fail "the importers see a token"
    code 2 "$swerve-import" controls a.csv
    says err "run swerve import controls"
    rm -r alone
    # No text of a file makes a line of its own.
    cat >forged.xosc <<'EOT'
<OpenSCENARIO><FileHeader revMajor="1" revMinor="0" date="2026-01-01T00:00:00" description="" author=""/><CatalogLocations/>
<RoadNetwork><LogicFile filepath="a&#10;::error::forged"/></RoadNetwork><Entities/><Storyboard><Init><Actions/></Init></Storyboard></OpenSCENARIO>
EOT
    code 3 "$swerve" import openscenario forged.xosc -o forged.json
    [ "$(wc -l <err)" = 1 ] || fail "expected one line, found: $(cat err)"
    says err '::error::forged'
}
# Of several scenarios on one map the map is written once, and each is what it is with its own copy.
a_map_that_several_have_is_written_once() {
    cp "$root/tests/scenarios/data/opendrive/shapes.xodr" a.xodr
    cp "$root/tests/scenarios/data/opendrive/shapes.xodr" b.xodr
    cp "$root/tests/scenarios/data/opendrive/crossing.xodr" c.xodr
    code 0 "$swerve" import opendrive a.xodr --horizon 2 -o one.json
    code 0 "$swerve" import opendrive a.xodr b.xodr c.xodr a.xodr --horizon 2 -o four.json
    holds 'd["map"] == {"file": "four-map-1.json"}' four-1.json
    holds 'd["map"] == {"file": "four-map-1.json"}' four-2.json
    holds 'len(d["map"]["lanes"]) > 1' four-3.json
    holds 'd["map"] == {"file": "four-map-1.json"} and d["id"] == "a-2"' four-4.json
    [ -e four-map-2.json ] && fail "a map of one scenario has a file"
    code 0 "$swerve" run one.json --planner builtin:maintain --store maps.db
    code 0 "$swerve" run four.json --planner builtin:maintain --store maps.db
    "$swerve" show --all --store maps.db | python3 -c '
import json, sys
hashes = {}
for outcome in map(json.loads, sys.stdin):
    hashes.setdefault(outcome["scenario_id"], set()).add(outcome["scenario_hash"])
assert len(hashes) == 4 and len(hashes["a"]) == 1, hashes' || fail "a map in a file makes another scenario"
    rm -f [a-c].xodr one.json four*.json maps.db*
}
# A file that waits or never ends when it is opened is refused, in every place where a file may be named.
exit_3_only_regular_files_are_read() {
    mkfifo pipe.xml pipe.json pipe.safetensors pipe.py
    local path
    for path in pipe.xml /dev/zero .; do
        code 3 timeout 20 "$swerve" import commonroad "$path" -o imported.json
        says err "expected a regular file"
    done
    code 3 timeout 20 "$swerve" validate pipe.json
    says err "expected a regular file, found a pipe"
    code 3 timeout 20 "$swerve" submit pipe.json --store pipe.db
    code 3 timeout 20 "$swerve" run pair.json --audit pipe.json --store pipe.db
    says err "expected a regular file, found a pipe"
    code 3 timeout 20 "$swerve" model add pipe.safetensors --models .
    says err "expected a regular file, found a pipe"
    code 3 timeout 20 "$swerve" run pair.json --planner plugin:./pipe.py --store pipe.db
    [ -e pipe.db ] && fail "a store was made"
    [ -e imported.json ] && fail "something was imported"
    rm -f pipe.*
}
# 22 MB of attributes: expat alone takes seconds for them; the processor time of a refusal is bounded.
exit_3_a_tag_of_many_attributes_is_refused_early() {
    python3 -c 'print("<commonRoad " + " ".join("a%d=\"\"" % i for i in range(2000000)) + "/>")' >wide.xml
    code 3 bash -c "ulimit -t 2; exec '$swerve' import commonroad wide.xml -o wide.json"
    says err "expected a tag or comment of at most 1048576 bytes"
    printf '<commonRoad%s/>' "$(printf ' a%d="1"' {1..40})" >forty.xml
    code 3 "$swerve" import commonroad forty.xml -o wide.json
    says err "expected at most 32 attributes, found 40"
    rm -f wide.xml forty.xml
}
exit_3_bad_input_names_the_place_and_submits_nothing() {
    code 3 "$swerve" run missing.json --store bad.db
    says err "missing.json"
    sed 's/"speed_mps": 12/"speed_mps": "fast"/' drive.json >bad.json
    code 3 "$swerve" run bad.json --store bad.db
    says err "bad.json: \$.ego.speed_mps"
    sed 's/"horizon_s": 6/"horizon_s": 6, "horizont": 1/' drive.json >bad2.json
    echo '{"id": "mixed", "scenarios": [{"file": "drive.json"}, {"file": "bad2.json"}]}' >mixed.json
    code 3 "$swerve" run mixed.json --store bad.db
    says err "bad2.json"
    says err "horizont"
    says err "mixed.json: \$.scenarios[1]: "
    sed 's/"speed_mps": 12/"speed_mps": "=v_mps"/; s/"horizon_s": 6/"horizon_s": 6, "paramters": {"v_mps": 12}/' \
        drive.json >bad3.json
    code 3 "$swerve" validate bad3.json
    says err 'unknown member "paramters"; did you mean "parameters"?'
    echo '{"id": "slip", "planners": ["builtin:refrence"], "scenarios": [{"file": "drive.json"}]}' >slip.json
    code 3 "$swerve" validate slip.json
    says err "slip.json: \$.scenarios[0]: "
    says err "refrence"
    # Several mistakes of one file, each with its line and column, and the file after it.
    cat >wrong.json <<'JSON'
{"id": "wrong", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [500, 0]]}]},
 "ego": {"pose": {"lane": "east", "s_m": 20},
         "speed_mps": "fast"},
 "agents": [{"id": "lead", "kind": "tram", "pose": {"lane": "west", "s_m": 60}}],
 "horizon_s": 6, "horizont": 1}
JSON
    code 3 "$swerve" validate wrong.json drive.json
    says err '"horizont"; did you mean "horizon_s"? (wrong.json:5:18)'
    says err '$.ego.speed_mps: expected a number, found text "fast" (wrong.json:3:23)'
    says err '(wrong.json:4:36)'
    says err '$.agents[0].pose.lane: expected the id of a lane, found "west", which there is not (wrong.json:4:61)'
    [ "$(wc -l <err)" = 4 ] || fail "expected four errors, found: $(cat err)"
    says out "drive.json: ok"
    code 3 "$swerve" validate drive.json wrong.json --json
    holds '[len(f.get("errors", [])) for f in d["files"]] == [0, 4]' out
    holds '{(e["path"], e["line"], e["column"]) for e in d["files"][1]["errors"]} >= {("$.agents[0].kind", 4, 36)}' out
    # A map that no world can draw is refused here, not when it is driven.
    sed 's/"map": {/"map": {"drivable": [[[-100000, -100000], [100000, -100000], [100000, 100000]]], /' \
        wrong.json | sed 's/"fast"/9/; s/tram/car/; s/"west"/"east"/; s/, "horizont": 1//' >wide.json
    code 3 "$swerve" validate wide.json
    says err "wide.json: scenario wrong: map"
    says err "is too large to draw"
    code 0 "$swerve" validate drive.json
    says out "1 scenario, "
    cat >register.json <<'JSON'
{"protocols": {"p": {"title": "A protocol", "version": "1"}},
 "files": [{"file": "drive.json", "protocol": "p", "clause": "1",
            "values": [{"quantity": "ego_speed_kph", "allowed": [50], "source": "table 1"}]}]}
JSON
    code 3 "$swerve" validate --protocols register.json drive.json
    says err "drive.json: drive: ego_speed_kph: expected 50 (table 1), found "
    code 3 "$swerve" validate --protocols register.json drive.json --json
    holds 'd["protocols"]["problems"] > 0 and d["files"][0]["valid"]' out
    code 3 "$swerve" validate --protocols drive.json drive.json
    says err "protocols"
    code 0 "$swerve" validate --protocols "$root/scenarios/protocols.json" "$root/scenarios/ncap.json"
    says out "54 scenarios"
    says out " 0 problems"
    code 3 "$swerve" submit mixed.json --store bad.db
    [ -e bad.db ] && fail "a store was made for a bad suite"
    code 3 "$swerve" submit mixed.json --store a.db
    code 3 "$swerve" validate mixed.json drive.json --json
    holds '[f["valid"] for f in d["files"]] == [False, True]' out
    code 3 "$swerve" run drive.json --store bad.db --planner builtin:nobody
    says err "nobody"
    code 3 "$swerve" show 999999 --store a.db
    code 3 "$swerve" show 1 --evidence e.png --store a.db
    says err "expected a rollout flagged in a learned world"
    [ -e e.png ] && fail "a picture of nothing"
    code 3 "$swerve" replay 1 999999 --store a.db
    code 3 "$swerve" report nosuchsuite --store a.db
    results a.db >after.txt
    same a.txt after.txt
}
# One of two main lines is invalid, then the only one: in no rate, but in the gate's way.
what_is_invalid_is_neither_pass_nor_fail() {
    sed 's/"horizon_s": 6/"horizon_s": 6, "invalid": "ego was moved by 143 m"/; 1s/"id": "drive"/"id": "moved"/' \
        drive.json >moved.json
    echo '{"id": "mixed", "scenarios": [{"file": "drive.json"}, {"file": "moved.json"}]}' >halves.json
    code 0 "$swerve" run halves.json --store halves.db --json
    holds 'd["invalid"] > 0 and d["invalid_checks"] == {"import": d["invalid"]}' out
    holds 'd["main_rollouts"] == 1 and d["pass_rate"] == d["main_passed"]' out
    code 0 "$swerve" report --store halves.db
    says out "invalid, neither pass nor fail"
    says out "ego was moved by 143 m"
    code 0 "$swerve" status --store halves.db
    grep -q '  since [0-9-]\{10\} [0-9]\{2\}:[0-9]\{2\}:[0-9]\{2\} UTC' out || fail "expected a date in UTC, found $(cat out)"
    says out "rollouts invalid"
    says out ', pass in 100.0%; 1 without a result (1 invalid): 50.0% to 100.0%'
    code 0 "$swerve" replay --all --store halves.db
    code 0 "$swerve" check --store halves.db
    code 1 "$swerve" run halves.json --store halves.db --gate --gate-rate 0
    says err "1 main line without a result (1 invalid), 50.0% had they failed"
    code 3 "$swerve" run moved.json --store halves.db
    says err "not one of 1 main lines is valid"
}
exit_4_store() {
    local command
    code 4 "$swerve" run drive.json --store "$work/no/such/place.db"
    for command in "status" "report" "show 1" "replay --all" "cancel x"; do
        # shellcheck disable=SC2086
        code 4 "$swerve" $command --store typo.db
    done
    [ -e typo.db ] && fail "looking at a store made one"
    head -c 5000 /dev/urandom >junk.db
    code 4 "$swerve" status --store junk.db
}
# Output that could not be written is told, but to a reader that has left; a stream that is closed is nobody's file:
# lines do not end up in the store, and workers start.
standard_streams_are_what_they_are() {
    local last=0
    "$swerve" validate drive.json 2>err | true
    last=${PIPESTATUS[0]}
    [ "$last" = 0 ] || fail "exit $last without a reader: $(cat err)"
    "$swerve" run drive.json --store closed.db --world object --report closed.html >&- 2>&- || fail "exit $?"
    code 0 "$swerve" check --store closed.db
    says closed.html '<!doctype html>'
    [ -w /dev/full ] || return
    for words in --version "status --store closed.db" "import --help"; do
        # shellcheck disable=SC2086 # words
        "$swerve" $words >/dev/full 2>err && fail "exit 0 on a full disk: $words"
        says err "stdout: cannot write: No space left on device"
    done
}
# A file that lies where artifacts' folders would be is in their way, as a full disk is.
a_store_that_fails_every_worker_is_given_up() {
    local i
    mkdir full.db.artifacts
    for i in {0..255}; do : >"$(printf 'full.db.artifacts/%02x' "$i")"; done
    code 4 timeout 60 "$swerve" run many.json --store full.db --workers 2 --json
    [ -s out ] && fail "on stdout: $(head -c 200 out)"
    tail -1 err >last
    says last "swerve: 5 workers in a row ended because the store failed them; the last said: $work/full.db.artifacts/"
    says last "Not a directory"
    says err "jobs of suite"
    says err "stay queued in full.db: the same command goes on"
    rm -r full.db.artifacts
    code 0 "$swerve" run many.json --store full.db --workers 2 --json
    holds 'd["rollouts"] == 24' out
}
a_lost_trace_is_recorded_again() {
    local file
    code 0 "$swerve" run pair.json --store lost.db --json
    cp out before.json
    file=$(find lost.db.artifacts -name '*.zst' | sort | head -1)
    find lost.db.artifacts -name '*.zst' -exec sh -c 'head -c 100 "$1" >cut && cat cut >"$1"' _ {} \;
    code 4 "$swerve" show 1 --store lost.db --trace
    says err "delete this file and give the command again that made it (run, golden make, model add)"
    find lost.db.artifacts -name '*.zst' -delete
    code 4 "$swerve" show 1 --store lost.db --trace
    says err "run the suite again"
    code 0 "$swerve" run pair.json --store lost.db --json
    holds 'd["rollouts"] == 4 and sum(r["attempts"] for r in d["ledger"]) > 0' out
    python3 - before.json out <<'PY' 2>pyerr || fail "the old outcomes again: $(tail -1 pyerr)"
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert not set(a["outcomes"]) & set(b["outcomes"])
PY
    [ -s "$file" ] || fail "$file is not there again"
    for id in 1 2 3 4 5 6 7 8; do code 0 "$swerve" show $id --store lost.db --trace; done
    code 0 "$swerve" run pair.json --store lost.db --json # all there: nothing is simulated
    python3 - before.json out <<'PY' 2>pyerr || fail "simulated once more: $(tail -1 pyerr)"
import json, sys
a, b = (json.load(open(p)) for p in sys.argv[1:])
assert a["outcomes"] == b["outcomes"]
PY
}
workers_of_one_name_have_ids_of_their_own() {
    code 0 "$swerve" submit pair.json --store ids.db
    code 0 "$swerve" worker --store ids.db --drain --id twin
    code 0 "$swerve" submit many.json --store ids.db
    code 0 "$swerve" worker --store ids.db --drain --id twin
    python3 - ids.db <<'PY' 2>pyerr || fail "worker ids: $(tail -1 pyerr)"
import re, sqlite3, sys
names = [row[0] for row in sqlite3.connect(sys.argv[1]).execute("SELECT name FROM workers")]
assert len(set(names)) == 2 and all(re.fullmatch(r"twin-\d+-[0-9a-f]{8}", n) for n in names), names
PY
    "$swerve" worker --help | grep -q exact && fail "help shows a hidden option"
}
exit_5_device() {
    SWERVE_CUDA_MODULE=/nonexistent.so code 5 "$swerve" run drive.json --store dev.db --device cuda:0
    SWERVE_CUDA_MODULE=/nonexistent.so code 5 "$swerve" bench engine --config student-3b --random-weights
    SWERVE_CUDA_MODULE=/nonexistent.so code 5 "$swerve" bench engine --config toy --random-weights --ranks 2
    says err "of 2: device module: "
    SWERVE_CUDA_MODULE=/nonexistent.so code 5 "$swerve" worker --store a.db --device cuda:1
    [ -e dev.db ] && fail "a store was made"
}
exit_6_planner() {
    code 6 "$swerve" run drive.json --store pl.db --planner 'exec:false'
    code 6 "$swerve" run drive.json --store pl.db --planner "plugin:$moody?1"
    says err "config"
    [ -e pl.db ] && fail "a store was made"
    # Starts once, for the trial, and never again: this host is at fault, until another says the same.
    printf '#!/bin/sh\n[ -e tried ] && exit 1\ntouch tried\nexec python3 hold.py "%s"\n' "$root" >once.sh
    code 6 "$swerve" run drive.json --store once.db --workers 1 --planner "exec:sh once.sh"
    says err "no attempt was charged"
    code 6 "$swerve" run drive.json --store once.db --workers 1 --planner "exec:sh once.sh" --gate --json
    rm -f tried
    code 0 "$swerve" submit drive.json --store loud.db --planner "exec:sh once.sh"
    touch tried
    code 6 "$swerve" worker --drain --store loud.db
    says err "takes no more of them"
    code 0 "$swerve" worker --drain --store loud.db --host another
    says err "job 1: "
    code 0 "$swerve" report --store loud.db
    says out "1 job has no answer:"
}
a_planner_fault_is_an_outcome() {
    code 6 "$swerve" run drive.json --store fault.db --planner "plugin:$moody?die,30,drive"
    grep -q "known already" out && fail "a first run knows nothing"
    # A deadline is no part of what a result depends on: that an old one is shown must be said.
    code 6 "$swerve" run drive.json --store fault.db --planner "plugin:$moody?die,30,drive" \
        --planner-deadline-ms 5000
    says out "1 of 1 jobs were known already and were not run again"
    says out "planner errors are results like others"
    code 6 "$swerve" run drive.json --store fault.db --planner "plugin:$moody?die,30,drive" --json
    holds 'd["known_jobs"] == 1' out
    says err "the planner failed in every one of 2 rollouts"
    holds 'd["errors"] == 2 and d["rollouts"] == 2' out
    code 0 "$swerve" show 1 --json --store fault.db
    holds 'd["verdict"] == "planner_error" and "out of sorts" in d["error"]' out
    code 0 "$swerve" replay --all --store fault.db
    said() {
        python3 -c 'import sqlite3, sys; db = sqlite3.connect("fault.db"); db.execute("UPDATE outcomes SET error = " + sys.argv[1]); db.commit()' "$1"
    }
    said "error || char(10) || 'stderr: hello'"
    code 0 "$swerve" replay --all --store fault.db # what a planner writes is its own
    said "replace(error, 'out of sorts', 'at its best')"
    code 1 "$swerve" replay --all --store fault.db --json
    holds '[[r["field"] for r in o["differences"]] for o in d["outcomes"]] == [["error"]] * 2' out
}
# It starts when it is tried, and in no worker after that: the run ends, and nothing is charged.
a_planner_that_stops_starting_ends_the_run() {
    cp hold.py once.py
    sed -i '1i import os\ntry:\n    os.rename("once", "used")\nexcept OSError:\n    raise SystemExit("not twice")' once.py
    touch once
    code 6 "$swerve" run drive.json --seeds 3 --store stops.db --workers 2 --planner "exec:python3 once.py $root"
    says err "not twice"
    says err "no attempt was charged"
    [ "$(counted stops.db queued)" = 3 ] || fail "$(counted stops.db queued) jobs queued"
    # Who started it ignores SIGCHLD, which children inherit: ends of workers are seen all the same.
    mv used once
    code 6 timeout 60 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$swerve" run drive.json --store deaf.db --workers 2 --planner "exec:python3 once.py $root"
    says err "not twice"
}
replay_names_another_planner() {
    sed 's/- 0.25,/- 0.5,/' hold.py >other.py
    cp hold.py mine.py
    code 0 "$swerve" run drive.json --store mine.db --planner "exec:python3 mine.py $root"
    cp other.py mine.py
    code 1 "$swerve" replay 1 --store mine.db
    says out "DIFFERENT"
    says out "recorded with another version of the planner (hash "
    cp hold.py mine.py
    code 0 "$swerve" replay 1 --store mine.db
}
a_crashing_plugin_costs_one_job() {
    # A sanitizer would turn the signal into an exit of its own.
    code 6 env ASAN_OPTIONS="${ASAN_OPTIONS:-}:handle_segv=0" \
        TSAN_OPTIONS="${TSAN_OPTIONS:-}:handle_segv=0" "$swerve" run "$root/scenarios/smoke.json" \
        --store crash.db --workers 2 --planner "plugin:$moody?crash,20,following" --json
    cp err crash.err
    holds 'd["dead_jobs"] == 1 and d["errors"] == 0' out
    says crash.err "was ended by signal 11"
    [ "$(grep -c "its jobs are run again" crash.err)" -le 5 ] || fail "too many lines"
    [ "$(counted crash.db dead)" = 1 ] || fail "$(counted crash.db dead) dead jobs"
    [ "$(counted crash.db done)" = 7 ] || fail "$(counted crash.db done) jobs done"
    code 0 "$swerve" report --store crash.db -o crash.html
    says crash.html "5 workers vanished"
}
a_failure_says_what_a_careful_driver_would_have_done() {
    code 0 "$swerve" run "$root/scenarios/r157/cut_in_alks.json" --world object --planner builtin:maintain \
        --store careful.db --report careful.html
    grep -q 'A careful driver</abbr> would have <b class="good">avoided</b>' careful.html || fail "the card says nothing"
    code 0 "$swerve" show 1 --json --store careful.db
    holds 'd["verdict"] == "fail" and d["careful"]["driver"]["avoids"] is True' out
    code 0 "$swerve" avoid --store careful.db --json
    holds 'd["drives"][0]["careful"]["driver"]["avoids"] is True' out
    code 0 "$swerve" report --store careful.db --json
    holds 'len(d["careful"]) == 1 and d["careful"][0]["outcome"] == 1 and d["careful"][0]["driver"]["avoids"] is True' out
    cp careful.db lost.db # a scenario that cannot be read has no answer, and the rest of the report stands
    python3 -c 'import sqlite3
with sqlite3.connect("lost.db") as db:
    db.execute("UPDATE scenarios SET body = CAST(? AS BLOB)", ("{}",))'
    code 0 "$swerve" report --store lost.db --json
    holds 'd["rollouts"] >= 1 and "expected text" in d["careful"][0]["outside"]' out
    code 0 "$swerve" run "$root/scenarios/urban/dog_runs.json" --world object --planner builtin:maintain --nominal --store careful.db \
        --report careful.html
    grep -q 'is not known: an animal takes part' careful.html || fail "the card says too much"
    code 0 "$swerve" show --all --store careful.db
    ! grep -q careful out || fail "all outcomes were driven again"
}
a_plugin_that_exits_is_seen() {
    code 6 "$swerve" run drive.json --store quit.db --workers 1 --planner "plugin:$moody?quit,20,drive"
    says err "ended with status 0; its jobs are run again"
    says out "1 job has no answer:"
}
what_a_plugin_prints_stays_out_of_stdout() {
    code 0 "$swerve" run drive.json --store chat.db --workers 1 --planner "plugin:$moody?chatty,10,drive" --json
    holds 'd["rollouts"] == 2 and d["errors"] == 0' out
    says err '{"planner": "tick 10"}'
    code 0 "$swerve" run drive.json --store chat2.db --workers 1 --planner "plugin:$moody?chatty,10,drive"
    grep -q "opened with\|tick 10" out && fail "on stdout: $(head -c 400 out)"
    says err "opened with chatty,10,drive"
}
# Such a copy would speak to the store beside the worker, and stay when the run is over.
no_twin() { ! pgrep -f -- "--store ../twin-[onf]*[.]db" >left; }
copies_that_a_plugin_forked_are_ended() {
    local sandbox levels="off on"
    # A plugin's own process may not reserve the addresses that a sanitizer wants.
    grep -aqE '__[at]san_init' "$swerve" && levels=off
    mkdir -p aside
    cd aside || return
    for sandbox in $levels; do
        code 0 "$swerve" run ../drive.json --store ../twin-$sandbox.db --workers 1 --json \
            --planner-sandbox $sandbox --planner-path "$(dirname "$moody")" \
            --planner "plugin:$moody?twin,10,drive"
        holds 'd["rollouts"] == 2 and d["errors"] == 0 and d["dead_jobs"] == 0' out
        [ $sandbox = on ] || says err "came back from the plugin's function; it was ended"
    done
    until_true no_twin
    cd ..
}
the_example_of_the_scenario_page_runs() {
    mkdir -p example && cp -r "$root/scenarios/maps" example/
    sed -n '/^```json$/,/^```$/p' "$root/schemas/scenario.md" | sed -n '2,/^```$/p' | sed '$d' >example/page.json
    code 0 "$swerve" run example/page.json --store page.db --workers 1 --json
    holds 'd["rollouts"] == 3 and d["errors"] == 0' out
}
commands_alone() {
    code 0 "$swerve" submit pair.json --store q.db --json
    holds 'd["jobs"] == 2 and d["rollouts"] == 4 and d["memoised"] == 0' out
    suite=$(python3 -c 'import json; print(json.load(open("out"))["suite"])')
    code 0 "$swerve" status --store q.db --json
    holds 'd["suites"][0]["queued"] == 2' out
    code 0 "$swerve" worker --store q.db --drain
    says err ' works for q.db: pool bulk, 16 slots, cpu, until nothing is left'
    says err 'ended because the pool has nothing left, after 2 jobs of '
    code 0 "$swerve" status "$suite" --store q.db --json
    holds 'd["suites"][0]["done"] == 2 and d["suites"][0]["queued"] == 0' out
    code 0 "$swerve" report --store q.db --json
    holds 'd["rollouts"] == 4 and len(d["outcomes"]) == 4' out
    code 0 "$swerve" report "$suite" --store q.db -o q.html
    [ -s q.html ] || fail "no report"
    code 0 "$swerve" show 2 --store q.db --trace
    python3 - out <<'PY' 2>pyerr || fail "trace: $(tail -1 pyerr)"
import json, sys
ticks = [json.loads(line) for line in open(sys.argv[1])]
assert [t["tick"] for t in ticks] == list(range(61)), len(ticks)
assert all("x_m" in t and "agents" in t for t in ticks)
PY
    code 0 "$swerve" show 2 --store q.db --scenario
    holds 'd["id"] == "drive"' out
    code 0 "$swerve" submit forty.json --store q.db
    many=$(cut -d: -f1 out)
    code 0 "$swerve" cancel "$many" --store q.db --json
    holds 'd["cancelled"] == 38' out # two of them were known
    code 0 "$swerve" worker --store q.db --drain
    code 0 "$swerve" status "$many" --store q.db --json
    holds 'd["suites"][0]["cancelled"] == 38 and sum(d["suites"][0][k] for k in ("queued", "leased")) == 0' out
    code 0 "$swerve" store log --store q.db
    says out "no entries: a server with tokens"
    code 0 "$swerve" store log --store q.db --json
    [ -s out ] && fail "lines of JSON: $(cat out)"
    code 2 "$swerve" store backup --store q.db
    says err "store: expected backup DIRECTORY"
}
# An hour costs a million dollars here, so that every job costs more than a cent.
a_suite_has_a_class() {
    code 2 "$swerve" submit pair.json --store none.db --class urgent
    says err "--class: expected interactive, regression or mining, found \"urgent\""
    code 2 "$swerve" submit pair.json --store none.db --class ""
    [ ! -e none.db ] || fail "a store was made for a refused suite"
    code 0 "$swerve" submit pair.json --store class.db --class mining
    code 0 "$swerve" status --store class.db
    says out "class mining"
    code 0 "$swerve" submit pair.json --store class.db # leaves it as it is
    code 0 "$swerve" status --store class.db --json
    holds '[s["class"] for s in d["suites"]] == ["mining"]' out
    code 0 "$swerve" submit forty.json --store class.db
    code 0 "$swerve" submit pair.json --store class.db --class interactive
    code 0 "$swerve" status --store class.db --json
    holds 'sorted(s["class"] for s in d["suites"]) == ["interactive", "regression"]' out
    code 0 "$swerve" check --store class.db
}
a_budget_stops_a_run_and_a_larger_one_goes_on() {
    for text in 0 0.0 -1 1e3 x 1.2.3 5. .5 "" 0.0000001 1000000000.000001 99999999999999999999; do
        code 2 "$swerve" submit pair.json --store none.db --budget "$text"
        says err "--budget: expected dollars above 0"
    done
    [ -e none.db ] && fail "a store was made"
    code 0 "$swerve" submit pair.json --store budget.db --budget 25
    says err "forecast: no measure yet of the object world in pool bulk"
    says err "the budget is \$25.00, and nothing says yet what the suite will cost"
    code 0 "$swerve" price set bulk cpu 1000000 --store budget.db
    code 0 "$swerve" worker --store budget.db --drain
    code 1 "$swerve" run forty.json --store budget.db --budget 0.01 --workers 1 --slots 1 --json
    says err "waiting jobs are driven; the budget is \$0.01"
    says err "the forecast exceeds the budget"
    holds 'd["budget_usd"] == 0.01 and d["stopped_by_budget"] and d["cancelled_jobs"] > 0' out
    code 0 "$swerve" status --store budget.db --json
    holds 'd["suites"][0]["budget_usd"] == 0.01 and d["suites"][0]["stopped_by_budget"]' out
    holds 'd["suites"][0]["cancelled"] > 0 and d["suites"][0]["queued"] + d["suites"][0]["leased"] == 0' out
    holds 'd["suites"][1]["budget_usd"] == 25' out
    code 0 "$swerve" status --store budget.db
    says out "budget of \$0.01 spent"
    code 0 "$swerve" report --store budget.db -o b.html
    says b.html "cancelled: budget of \$0.01 spent"
    code 0 "$swerve" report --store budget.db
    says out "cancelled, budget of \$0.01 spent"
    code 1 "$swerve" run forty.json --store budget.db --budget 0.01 --json # which is spent
    holds 'd["stopped_by_budget"] and d["cancelled_jobs"] > 0' out
    code 0 "$swerve" run forty.json --store budget.db --budget 1000000 --json
    code 0 "$swerve" status --store budget.db --json
    holds 'len(d["suites"]) == 2 and d["suites"][0]["done"] == 40 and not d["suites"][0]["stopped_by_budget"]' out
    code 0 "$swerve" submit many.json --store budget.db --budget 1000000 --json # of forty's seeds
    holds 'd["budget_usd"] == 1000000 and d["forecast_usd"] == 0 and d["known"] == 12' out
    code 0 "$swerve" submit many.json --fresh --store budget.db --budget 1000000 --json
    holds 'd["budget_usd"] == 1000000 and 0 < d["forecast_usd"] < 1000000' out
    mv out before.json
    code 0 "$swerve" price set bulk cpu 250000 --store budget.db # the price in force from here on
    code 0 "$swerve" submit many.json --fresh --store budget.db --budget 1000000 --json
    holds 'abs(d["forecast_usd"] / json.load(open("before.json"))["forecast_usd"] - 0.25) < 1e-3' out
    code 0 "$swerve" submit pair.json --planner builtin:idm --store budget.db --budget 1000
    says err "builtin:idm has not driven in the object world of pool bulk yet"
    code 0 "$swerve" run pair.json --store budget.db --budget 1000 # done long ago
    says err "no job waits, every answer is known"
    code 0 "$swerve" price set bulk cpu 250000 --store alone.db # where no other suite takes a slot
    code 0 "$swerve" run pair.json --store alone.db
    code 0 "$swerve" run pair.json --fresh --store alone.db --budget 0.01 --workers 1 --slots 2 --json
    says err "jobs that run then go on, up to 2 at once, which cost some"
    code 0 "$swerve" run pair.json --store budget.db --budget 0.01 --report b.html # less than it has cost
    says err "no job waits, every answer is known; budget of \$0.01 spent (\$"
    says out "when every job had been claimed: none was cancelled"
    says b.html "when every job had been claimed: none was cancelled"
    code 0 "$swerve" check --store budget.db
}
# Goal: a worker that is told to end waits for one planner that does not start, and begins no other.
a_worker_that_starts_planners_ends_soon() {
    local i started pid
    for i in 1 2 3 4; do
        code 0 "$swerve" submit pair.json --planner "exec:sleep 100$i" --store slow.db
    done
    "$swerve" worker --store slow.db --planner-start-ms 4000 >out 2>err &
    pid=$!
    sleep 1
    started=$SECONDS
    kill -TERM $pid
    wait $pid
    [ $((SECONDS - started)) -le 9 ] || fail "it took $((SECONDS - started)) s"
    code 0 "$swerve" check --store slow.db
}
# Goal: whoever meets a suite that its budget has stopped is told so, and how it goes on.
a_stopped_suite_says_how_it_goes_on() {
    code 0 "$swerve" price set bulk cpu 1000000 --store stop.db # before anything is sent
    says err "stop.db: a new store"
    code 0 "$swerve" submit forty.json --store stop.db --budget 0.01
    code 0 "$swerve" worker --store stop.db --drain --slots 1
    code 0 "$swerve" submit forty.json --store stop.db --budget 0.01
    says out "known already, none queued: budget of \$0.01 spent"
    says err " jobs are cancelled, and a larger --budget queues them again"
    code 0 "$swerve" submit forty.json --store stop.db --budget 0.01 --json
    holds '0 < d["known"] == 40 - d["cancelled"] and d["cancelled"] > 20 and d["open"] == 0' out
    mv out stopped.json
    code 3 "$swerve" retry --store stop.db
    says err " jobs were cancelled: the command that sent it goes on with a larger --budget"
    local worker
    worker=$(python3 -c 'import sqlite3; print(sqlite3.connect("stop.db").execute("SELECT name FROM workers").fetchone()[0])')
    code 0 "$swerve" store redrive --worker "$worker" --store stop.db
    says out "outcomes dropped, driven again but where a budget is spent"
    says out "budget of \$0.01 spent"
    code 0 "$swerve" run forty.json --store stop.db --workers 1
    says err "so this is a suite of its own"
    code 0 "$swerve" run forty.json --store stop.db --budget 1000000 --json # all but what was dropped
    holds 'd["known_jobs"] == json.load(open("stopped.json"))["cancelled"] and "-2" not in d["suite"]' out
    code 0 "$swerve" submit forty.json --store stop.db --planner builtin:idm --budget 0.01 --json
    name=$(python3 -c 'import json; print(json.load(open("out"))["suite"])')
    code 0 "$swerve" worker --store stop.db --drain --slots 1
    code 0 "$swerve" cancel "$name" --store stop.db
    grep -q ": 0 jobs" out && fail "nothing was cancelled"
    code 0 "$swerve" submit forty.json --store stop.db --planner builtin:idm --budget 1000000 --json
    holds "d['suite'] == '$name-2' and 0 < d['known'] == 40 - d['open'] and d['open'] > 20" out
    code 0 "$swerve" status "$name" --store stop.db --json # as it ended
    holds 'd["suites"][0]["stopped_by_budget"] and d["suites"][0]["budget_usd"] < 1000000' out
    code 0 "$swerve" submit forty.json --store stop.db --planner builtin:idm
    says err "the suite keeps its budget of \$1000000.00"
    code 0 "$swerve" retry "$name" --verdict pass --verdict fail --store stop.db --budget 0.01 --json
    mv out again.json
    code 0 "$swerve" status --store stop.db --json
    holds '[s["budget_usd"] for s in d["suites"] if s["suite"] == json.load(open("again.json"))["suite"]] == [0.01]' out
    code 0 "$swerve" worker --store stop.db --drain --slots 1
    code 0 "$swerve" retry "$name" --verdict pass --verdict fail --store stop.db
    says err "a suite of its own, without a limit unless --budget sets one"
    code 0 "$swerve" check --store stop.db
}
a_larger_budget_and_a_retry_keep_to_quotas() {
    code 0 "$swerve" submit forty.json --store quota.db --tenant bob --budget 0.01
    code 0 "$swerve" price set bulk cpu 1000000 --store quota.db
    code 0 "$swerve" worker --store quota.db --drain --slots 1
    code 0 "$swerve" tenant set bob --usd-day 0.01 --store quota.db
    code 3 "$swerve" submit forty.json --store quota.db --tenant bob --budget 1000
    says err "that it may in a day"
    code 3 "$swerve" retry --verdict pass --tenant bob --store quota.db
    says err "that it may in a day"
    code 0 "$swerve" tenant set bob --usd-day 0 --store quota.db
    code 0 "$swerve" retry --verdict pass --tenant bob --store quota.db
    code 0 "$swerve" tenant ls --store quota.db
    grep -q "queued 0 of any" out && fail "the retry is nobody's"
}
commands_while_another_process_owns_the_store() {
    "$swerve" worker --store shared.db --id keeper >/dev/null 2>&1 3>&- &
    local owner=$!
    background+=("$owner")
    until_true served shared.db || return
    code 0 "$swerve" submit pair.json --store shared.db --json
    suite=$(python3 -c 'import json; print(json.load(open("out"))["suite"])')
    until_true some_done shared.db 1
    code 0 "$swerve" run drive.json --store shared.db --workers 2 --json
    holds 'd["rollouts"] == 2' out
    code 0 "$swerve" report "$suite" --store shared.db --json
    holds 'd["rollouts"] == 4' out
    code 0 "$swerve" show 1 --store shared.db --trace
    [ "$(wc -l <out)" = 61 ] || fail "trace of $(wc -l <out) lines"
    code 0 "$swerve" submit forty.json --store shared.db
    many=$(cut -d: -f1 out)
    code 0 "$swerve" worker --store shared.db --drain --slots 2
    code 0 "$swerve" cancel "$many" --store shared.db
    code 0 "$swerve" replay --all --store shared.db --suite "$suite"
    kill -TERM "$owner"
    wait "$owner" || fail "the owner ended with $?"
    code 0 "$swerve" status --store shared.db
}
# start STORE: a run of two workers that stands still with work done and work in progress; its pid in
# $run.
start() {
    rm -f go
    "$swerve" run many.json --store "$1" --workers 2 --slots 1 "${held[@]}" --json >"$1.json" \
        2>"$1.err" 3>&- &
    run=$!
    background+=("$run")
    until_true some_done "$1" 1
}
a_killed_worker_changes_nothing() {
    local run pid
    start kill.db || return
    for pid in $(pgrep -P "$run"); do kill -9 "$pid"; done
    touch go
    wait "$run" || fail "the run ended with $?: $(cat kill.db.err)"
    holds 'd["rollouts"] == 24 and d["dead_jobs"] == 0 and d["errors"] == 0' kill.db.json
    holds 'any(r["end"] == "lost" for r in d["ledger"])' kill.db.json
    code 0 "$swerve" run many.json --store calm.db --workers 1 --slots 5 "${held[@]}"
    results kill.db >kill.txt
    results calm.db >calm.txt
    same calm.txt kill.txt
    code 0 "$swerve" replay --all --store kill.db --slots 16
}
a_killed_run_is_resumed() {
    local run pid workers
    start resume.db || return
    workers=$(pgrep -P "$run")
    kill -9 "$run"
    touch go
    wait "$run" 2>/dev/null
    for pid in $workers; do until_true gone "$pid"; done
    [ "$(counted resume.db done)" -lt 12 ] || fail "it was done before it was killed"
    code 0 "$swerve" run many.json --store resume.db --workers 2 "${held[@]}" --json
    holds 'd["rollouts"] == 24 and d["dead_jobs"] == 0' out
    results resume.db >resume.txt
    same calm.txt resume.txt
}
an_interrupted_run_is_resumed() {
    local run
    start int.db || return
    kill -INT "$run"
    touch go
    wait "$run"
    [ $? = 130 ] || fail "expected exit 130 after SIGINT"
    says int.db.err "run the same command again"
    [ "$(counted int.db done)" -lt 12 ] || fail "it was done before it was interrupted"
    code 0 "$swerve" run many.json --store int.db --workers 2 "${held[@]}" --json
    results int.db >int.txt
    same calm.txt int.txt
}
# timeout sends its signal to the process, and to its group, workers and the process again among it.
a_signal_to_a_group_is_one_signal() {
    local run
    start group.db || return
    # shellcheck disable=SC2046
    kill -TERM "$run" $(pgrep -P "$run") "$run"
    touch go
    wait "$run"
    [ $? = 143 ] || fail "expected exit 143 after SIGTERM"
    says group.db.err "run the same command again"
    [ "$(counted group.db leased)" = 0 ] || fail "jobs were left leased"
}

# Models of random weights: every rollout blooms, so all of them go to the teacher, who has no better
# answer.
model_files() {
    mkdir -p models
    cp "$root/tests/engine/data/tiny.safetensors" models/student.safetensors
    LC_ALL=C sed 's/tier\\": \\"student/tier\\": \\"teacher/' models/student.safetensors \
        >models/teacher.safetensors
}
models_are_promoted_and_rolled_back() {
    model_files
    cp models/student.safetensors newer.safetensors
    code 0 "$swerve" model ls --models models --json
    holds 'sorted(m["tier"] for m in d["models"]) == ["student", "teacher"]' out
    holds 'all(m["promoted"] and not m["calibrated"] for m in d["models"])' out
    code 0 "$swerve" model add newer.safetensors --models models
    code 4 "$swerve" model add newer.safetensors --models models
    code 4 "$swerve" model rollback student --models models
    code 0 "$swerve" model promote newer --models models
    says out "answers for tier student now; not calibrated: built-in health bounds; a directory asks for no"
    code 0 "$swerve" submit "$root/scenarios/smoke.json" --models models --world student --horizon clip \
        --store untried.db
    says err "not calibrated, built-in health bounds; promoted in its directory, without an evaluation"
    code 0 "$swerve" model show newer --models models
    holds 'd["promoted"] and [e["name"] for e in d["history"]] == ["student", "newer"]' out
    code 0 "$swerve" model rollback student --models models
    code 0 "$swerve" model show newer --models models
    holds 'not d["promoted"]' out
    code 3 "$swerve" model promote nothing --models models
    echo junk >models/junk.safetensors
    code 3 "$swerve" model promote junk --models models
    says err junk.safetensors
    rm models/junk.safetensors models/newer.safetensors models/registry.json
    code 2 "$swerve" model calibrate student --models models
    code 2 "$swerve" model improve student --models models
    code 3 "$swerve" model ls --models nowhere
}
# Patches of 4, heads that share keys, products and pages of e4m3, windows in the first of two layers: two branches a seed that share
# the main line's pages, and a worker that is killed while it drives. Slots, company and the second attempt change nothing.
a_model_of_other_tokens_and_heads_is_driven() {
    local run pid shared=(--world student --models wide --audit off)
    mkdir wide
    python3 "$root/tests/cli/wide_model.py" wide/student.safetensors fp8=true layers=2 'joint=[1,0]' reach=2 past=2 'pages="e4m3"'
    code 0 "$swerve" model ls --models wide
    says out "plain C computes its attention or products: slow"
    sed 's/== 30/== 1/; s/>= 4/>= 2/' hold.py >hold_wide.py
    sed 's/"horizon_s": 6/"horizon_s": 0.3/; s/"at_tick": 20/"at_tick": 1/
        s/\("branches": \[\)\({.*}\)]/\1\2, {"id": "gently", "at_tick": 1, "interventions": [{"kind": "ego_brake", "decel_mps2": 2}]}]/' drive.json >wide.json
    local planner=(--planner "exec:python3 -S hold_wide.py $root" --planner-deadline-ms 60000)
    rm -f go
    "$swerve" run wide.json --seeds 2 --store wide.db --workers 2 --slots 1 "${shared[@]}" "${planner[@]}" --json \
        >wide.out 2>wide.err 3>&- &
    run=$!
    background+=("$run")
    until_true some_done wide.db 0 || return
    for pid in $(pgrep -P "$run"); do kill -9 "$pid"; done
    touch go
    wait "$run" || fail "the run ended with $?: $(cat wide.err)"
    holds 'd["rollouts"] == d["passed"] == 6 and d["dead_jobs"] == 0 and d["prefix_ticks_saved"] == 4' wide.out
    holds 'any(r["end"] == "lost" for r in d["ledger"])' wide.out
    code 0 "$swerve" run wide.json --seeds 2 --store wide_calm.db --workers 1 --slots 5 "${shared[@]}" "${planner[@]}"
    results wide.db >wide.txt
    results wide_calm.db >wide_calm.txt
    same wide_calm.txt wide.txt
    [ "$(cut -d ' ' -f 4 wide.txt | sort -u | wc -l)" = 6 ] || fail "rollouts are alike: $(cat wide.txt)"
}
# A copy elsewhere, as an installed binary would be.
a_binary_without_models_says_so_before_it_answers() {
    [ -e /usr/share/swerve/models ] && return
    mkdir -p prefix/bin
    cp "$swerve" prefix/bin/swerve
    code 5 prefix/bin/swerve model ls
    says err "no student model: looked for engine/models in the 4 folders above $work/prefix/bin/swerve"
    says err "--models DIR or SWERVE_MODELS"
    [ -s out ] && fail "an error on stdout: $(head -c 200 out)"
    code 5 prefix/bin/swerve model ls --json
    code 5 prefix/bin/swerve doctor
    says out "BAD  models     no student model: looked for"
    code 5 prefix/bin/swerve run "$root/scenarios/demo.json" --store elsewhere.db
    says err "18 scenarios ask about perception"
    code 5 prefix/bin/swerve run "$root/scenarios/demo.json" --store elsewhere.db --world student
    says err "no student model: looked for"
    [ -e elsewhere.db ] && fail "something was simulated"
    # A binary that was built here finds its source's; so does an installed one with models beside it.
    code 0 "$swerve" model ls
    says out "student "
    mkdir -p prefix/share/swerve
    ln -s "$root/engine/models" prefix/share/swerve/models
    code 0 prefix/bin/swerve model ls
    code 0 prefix/bin/swerve doctor
    says out "answers for the teacher ($work/prefix/share/swerve/models)"
}
who_answered_a_question_about_perception_is_said_as_it_was() {
    sed 's/"id": "drive",/"id": "drive", "question": "perception",/' drive.json >seen.json
    mkdir -p empty
    code 5 "$swerve" run seen.json --store seen.db --models empty --workers 1
    says err "1 scenario asks about perception, which a world model answers (or the object world, with --allow-degraded): no student model answers from empty"
    code 5 "$swerve" submit seen.json --store seen.db --models empty
    [ -e seen.db ] && fail "something was simulated before it was allowed"
    code 0 "$swerve" run seen.json --store seen.db --models empty --workers 1 --allow-degraded
    says out "1 scenario asks about perception; without a world model the object world answered it"
    code 0 "$swerve" run seen.json --store seen.db --world object --workers 1
    says out "1 scenario asks about perception; the object world answered it, as --world object says"
    ! grep -q "without a world model" out || fail "the user asked for the object world"
}
a_flagged_student_is_answered_by_the_teacher() {
    model_files
    cat >learned.json <<'END'
{"id":"learned","map":{"lanes":[{"id":"east","centre_line":[[0,0],[900,0]],"width_m":3.5,
"speed_limit_mps":15}]},"ego":{"pose":{"lane":"east","s_m":20},"speed_mps":12,"route":["east"]},
"horizon_s":1.0,"agents":[{"id":"lead","kind":"car","pose":{"lane":"east","s_m":70},
"speed_mps":10,"behaviour":"idm"}]}
END
    mkdir -p empty
    code 5 "$swerve" run learned.json --models empty --world student --store learned.db
    code 6 "$swerve" run learned.json --models models --world student --store learned.db \
        --audit off --workers 1 --json
    holds 'd["flagged"] > 0 and d["dead_jobs"] == 1' out
    code 0 "$swerve" status --store learned.db --json
    holds 'd["suites"][0]["flagged"] == 1 and d["suites"][0]["dead"] == 1' out
    code 0 "$swerve" show 1 --json --store learned.db
    holds 'd["tier"] == "student" and d["health_check"] == "mass" and d["job_state"] == "flagged"' out
    holds 'd["sampler"] == "agents/euler2/bf16" and d["mflop"] > 0' out
    code 0 "$swerve" show 2 --json --store learned.db
    holds 'd["tier"] == "teacher" and d["parent_job_id"] == 1 and d["job_state"] == "dead"' out
    code 0 "$swerve" show 2 --evidence flagged.png --store learned.db
    [ "$(head -c 4 flagged.png | tail -c 3)" = PNG ] || fail "flagged.png is no picture"
    code 0 "$swerve" replay --all --store learned.db --models models
    says out "2 identical, 0 different"
    cp learned.db edited.db
    cp -r learned.db.artifacts edited.db.artifacts
    python3 -c 'import sqlite3
with sqlite3.connect("edited.db") as db:
    db.execute("UPDATE outcomes SET health_value = health_value * 2 WHERE id = 1")'
    code 1 "$swerve" replay --all --store edited.db --models models
    says out "health_value "
    says out "1 identical, 1 different"
    code 5 "$swerve" replay 1 --store learned.db --models empty
    says err "does not have it"
}

exec >/dev/null 2>&1 # bash reports killed jobs
echo 1..45 >&3
t models_are_promoted_and_rolled_back
t a_binary_without_models_says_so_before_it_answers
t who_answered_a_question_about_perception_is_said_as_it_was
t a_flagged_student_is_answered_by_the_teacher
t run_json_has_what_it_promises
t a_second_run_simulates_nothing
t replays_are_identical
t workers_and_slots_do_not_matter
t exit_1_gate_and_mismatch
t exit_2_usage
t exit_2_options_of_importers_say_whose_they_are
t importers_are_a_program_of_their_own
t a_map_that_several_have_is_written_once
t exit_3_only_regular_files_are_read
t exit_3_a_tag_of_many_attributes_is_refused_early
t exit_3_bad_input_names_the_place_and_submits_nothing
t what_is_invalid_is_neither_pass_nor_fail
t exit_4_store
t standard_streams_are_what_they_are
t a_store_that_fails_every_worker_is_given_up
t a_lost_trace_is_recorded_again
t workers_of_one_name_have_ids_of_their_own
t exit_5_device
t exit_6_planner
t a_planner_fault_is_an_outcome
t a_planner_that_stops_starting_ends_the_run
t replay_names_another_planner
t a_crashing_plugin_costs_one_job
t a_failure_says_what_a_careful_driver_would_have_done
t a_plugin_that_exits_is_seen
t what_a_plugin_prints_stays_out_of_stdout
t copies_that_a_plugin_forked_are_ended
t the_example_of_the_scenario_page_runs
t commands_alone
t a_suite_has_a_class
t a_budget_stops_a_run_and_a_larger_one_goes_on
t a_worker_that_starts_planners_ends_soon
t a_stopped_suite_says_how_it_goes_on
t a_larger_budget_and_a_retry_keep_to_quotas
t commands_while_another_process_owns_the_store
t a_killed_worker_changes_nothing
t a_killed_run_is_resumed
t a_model_of_other_tokens_and_heads_is_driven
t an_interrupted_run_is_resumed
t a_signal_to_a_group_is_one_signal
[ "$failed" = 0 ]
