#!/bin/bash
# Goal: a matrix has every path that register and scenarios link, results by the reasons that break a
# requirement, and names what nobody tries; suites hand down what scenarios lack.
# Method: a suite of three scenarios with known verdicts; JSON against what it must say.
#
# Usage: test_traceability.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-traceability-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$here/tap.sh"

drive() { # drive ID TRACEABILITY
    cat >"$1.json" <<JSON
{"id": "$1", "parameters": {"gap_m": 40}, $2
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 4,
 "criteria": {"no_collision": true},
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": "=20 + gap_m"}}]}
JSON
}
drive own '"traceability": {"hazards": ["H1"], "triggering_conditions": ["C1"], "requirements": ["R1", "R2"]},'
drive bare ''
cat >s.json <<'JSON'
{"id": "x", "title": "A | suite", "planners": ["builtin:maintain"], "traceability": {"hazards": ["H2"], "requirements": ["R2"]},
 "scenarios": [{"file": "own.json", "grid": {"gap_m": [20, 200]}}, {"file": "bare.json", "set": {"gap_m": 200}},
               {"file": "bare.json", "id": "nearer", "set": {"gap_m": 20}, "traceability": {"hazards": ["H1"]}}]}
JSON
cat >r.json <<'JSON'
{"title": "Register", "hazards": [{"id": "H1", "text": "one"}, {"id": "H2", "text": "two, \"quoted\""}, {"id": "H3", "text": "three"}],
 "triggering_conditions": [{"id": "C1", "text": "dark", "hazards": ["H1"]}],
 "requirements": [{"id": "R1", "text": "stay on the road", "hazards": ["H1"], "reasons": ["off_drivable"]},
                  {"id": "R2", "text": "touch nothing", "hazards": ["H1", "H2"], "reasons": ["collision"], "source": "us"},
                  {"id": "R3", "text": "nobody tries it", "hazards": ["H3"]}]}
JSON

paths_and_results_are_right() {
    code 0 "$swerve" run s.json --world object --store a.db
    code 0 "$swerve" traceability s.json --register r.json --store a.db --format json
    python3 - <<'PY' || fail "matrix"
import json
d = json.load(open("out"))
rows = {(r["hazard"], r["triggering_condition"], r["requirement"], r["scenario"]):
        (r["concrete"], r["driven"], r["passed"], r["verdict"]) for r in d["matrix"]}
assert rows == {
    ("H1", "C1", "R1", "own"): (2, 2, 2, "pass"),   # a contact is not off the road
    ("H1", "C1", "R2", "own"): (2, 2, 1, "fail"),
    ("H2", None, "R2", "bare"): (1, 1, 1, "pass"),  # inherited from the suite
    ("H1", None, "R2", "nearer"): (1, 1, 0, "fail"),  # hazard of the entry, requirement of the suite
}, rows
kinds = {k: {i["id"]: i["verdict"] for i in d[k]} for k in ("hazards", "triggering_conditions", "requirements")}
assert kinds["hazards"] == {"H1": "fail", "H2": "pass", "H3": "no scenario"}
assert kinds["requirements"] == {"R1": "pass", "R2": "fail", "R3": "no scenario"}
PY
    local id
    id=$(python3 -c 'import json; print([r["failed_outcome"] for r in json.load(open("out"))["matrix"] if r["scenario"] == "nearer"][0])')
    code 0 "$swerve" show "$id" --json --store a.db
    says out nearer
    # Rows that the store keeps are read back, ids included.
    code 0 "$swerve" replay --all --store a.db
}
# Of several planners all have to pass, and who fails is named; what has no result is no pass.
planners_are_named() {
    sed 's/"builtin:maintain"/"builtin:maintain", "builtin:reference"/' s.json >both.json
    code 0 "$swerve" run both.json --world object --store both.db
    code 0 "$swerve" traceability both.json --register r.json --store both.db
    says out 'Passed means with each of builtin:maintain, builtin:reference.'
    code 0 "$swerve" traceability both.json --register r.json --store both.db --format markdown
    grep -q '| H1 | - | R2 | nearer | 1 | 1 | 0 | fail | [0-9]* builtin:maintain |' out || fail "$(grep nearer out)"
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import sqlite3
store = sqlite3.connect("a.db")
store.execute("UPDATE outcomes SET verdict = 4 WHERE verdict = 0 AND id = (SELECT MIN(id) FROM outcomes WHERE verdict = 0)")
store.commit()
PY
    code 0 "$swerve" traceability s.json --register r.json --store a.db --format json
    holds '"pass in part" in {r["verdict"] for r in d["matrix"]} | {i["verdict"] for i in d["hazards"]}' out
}
a_spreadsheet_runs_no_cell() {
    sed 's/"one"/"=HYPERLINK(\\"http:\/\/x\\")"/; s/"dark"/"-1+1"/' r.json >formulas.json
    code 0 "$swerve" traceability s.json --register formulas.json --format csv -o f.csv
    python3 - <<'PY' || fail "CSV"
import csv
rows = list(csv.DictReader(open("f.csv", newline="")))
assert any(r["hazard_text"] == "'=HYPERLINK(\"http://x\")" for r in rows), rows
assert any(r["triggering_condition_text"] == "'-1+1" for r in rows), rows
PY
}
every_format_has_the_same() {
    code 0 "$swerve" traceability s.json --register r.json --store a.db --format csv -o m.csv
    python3 - <<'PY' || fail "CSV"
import csv
rows = list(csv.DictReader(open("m.csv", newline="")))
assert len(rows) == 6 and {r["verdict"] for r in rows} == {"pass", "fail", "no scenario"}
assert any(r["hazard_text"] == 'two, "quoted"' for r in rows)
assert [r["requirement"] for r in rows if r["verdict"] == "no scenario"] == ["", "R3"]
PY
    code 0 "$swerve" traceability s.json --register r.json --store a.db --format markdown
    says out '# Traceability: A \| suite'
    says out '| R3 | nobody tries it |  | 0 | 0 | 0 | no scenario |'
    says out '| H1 | C1 | R2 | own | 2 | 2 | 1 | fail |'
    code 0 "$swerve" traceability s.json --register r.json
    says out 'requirements: 3, without a scenario 1'
}
a_hazard_without_own_parts_has_a_path() {
    sed 's/"hazards": \["H1", "H2"\], "reasons"/"hazards": ["H2"], "reasons"/' r.json >split.json
    drive apart '"traceability": {"hazards": ["H1", "H2"], "triggering_conditions": ["C1"], "requirements": ["R2"]},'
    code 0 "$swerve" traceability apart.json --register split.json --format json
    python3 - <<'PY' || fail "matrix"
import json
rows = {(r["hazard"], r["triggering_condition"], r["requirement"]) for r in json.load(open("out"))["matrix"]}
assert rows == {("H1", "C1", None), ("H2", None, "R2")}, rows
PY
}
mistakes_have_a_place() {
    sed 's/"C1", "text"/"C9", "text"/' r.json >bad.json
    code 3 "$swerve" traceability s.json --register bad.json
    says err 's.json: $.scenarios[0]'
    says err '"C1"'
    sed 's/"dark", "hazards": \["H1"\]/"dark", "hazards": ["H3"]/' r.json >bad.json
    code 3 "$swerve" traceability s.json --register bad.json
    says err 'belong to one of its hazards'
    sed 's/"hazards": \["H3"\]/"hazards": ["H4"]/' r.json >bad.json
    code 3 "$swerve" traceability s.json --register bad.json
    says err 'requirements[2].hazards[0]'
    drive twice '"traceability": {"hazards": ["H1", "H1"]},'
    code 3 "$swerve" validate twice.json
    says err 'traceability.hazards[1]'
    drive wrong '"traceability": {"hazard": ["H1"]},'
    code 3 "$swerve" validate wrong.json
    sed 's/"requirements": \["R2"\]/"requirements": "R2"/' s.json >bad_suite.json
    code 3 "$swerve" validate bad_suite.json
    says err 'bad_suite.json: $.traceability.requirements'
    code 2 "$swerve" traceability s.json --register r.json --format xml
}
# The shipped register knows every id of the library, and each scenario says why it is there.
the_library_is_traced() {
    code 0 "$swerve" traceability "$root/scenarios/longtail.json" --register "$root/scenarios/traceability_register.json"
    says out '0 of 223 concrete scenarios name no hazard'
    code 0 "$swerve" traceability "$root/scenarios/signals.json" --register "$root/scenarios/traceability_register.json"
    says out '0 of 8 concrete scenarios name no hazard'
    grep -q '  RQ-SIGNALS  *7 scenarios' out || fail "traffic lights: $(grep RQ-SIGNALS out)"
}

t paths_and_results_are_right
t every_format_has_the_same
t a_spreadsheet_runs_no_cell
t a_hazard_without_own_parts_has_a_path
t mistakes_have_a_place
t the_library_is_traced
t planners_are_named
echo "1..$count" >&3
[ "$failed" = 0 ]
