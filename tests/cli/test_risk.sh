#!/bin/bash
# Goal: swerve risk says what exposures and outcomes say, names what has no exposure, plans jobs and
# writes them as a suite that runs; wrong files are refused with their place.
# Method: a small suite with contacts that are known; figures in --json against arithmetic.
#
# Usage: test_risk.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-risk-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$here/tap.sh"

cat >drive.json <<'JSON'
{"id": "drive", "parameters": {"gap_m": 40},
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 4,
 "criteria": {"no_collision": true},
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": "=20 + gap_m"}}]}
JSON
sed 's/"drive"/"other"/' drive.json >other.json
cat >s.json <<'JSON'
{"id": "x", "planners": ["builtin:maintain"],
 "scenarios": [{"file": "drive.json", "grid": {"gap_m": [20, 30, 150, 200]}}, {"file": "other.json"}]}
JSON
cat >e.json <<'JSON'
{"title": "made up", "basis": "encounters", "mean_speed_kmh": 40,
 "exposures": [{"id": "standing", "per_hour": 0.02, "low": 0.01, "high": 0.04, "source": "nobody", "scenarios": ["dri*"]},
               {"id": "never", "per_million_km": 3, "source": "nobody", "verified": false,
                "scenarios": [{"scenario": "not_there", "weight": 2}]}]}
JSON

figures_are_those_of_the_outcomes() {
    code 0 "$swerve" run s.json --world object --seeds 2 --store a.db
    code 0 "$swerve" risk --store a.db --exposure e.json --json; cp out r.json
    python3 - <<'PY' || fail "figures"
import json
study = json.load(open("r.json"))["studies"]
assert len(study) == 1
study = study[0]
by_name = {at["scenario"]: at for at in study["logical_scenarios"]}
assert set(by_name) == {"drive", "not_there"}
drive = by_name["drive"]
assert study["without_exposure"] == ["other"]
# 0.02 an hour at 40 km/h are 500 per million km; two of four concrete scenarios touch, once each.
assert abs(drive["exposure_per_million_km"] - 500) < 1e-9
assert drive["contact"]["events"] == 2 and drive["contact"]["cases"] == 4 and drive["drives"] == 8
contact = study["events"]["contact"]
assert abs(contact["observed"] - 250) < 1e-9
assert contact["low"] < 250 < contact["high"] and contact["low"] < contact["per_million_km"] < contact["high"]
assert abs(contact["not_driven_per_million_km"] - 3) < 1e-9
assert abs(contact["per_hour"] - contact["per_million_km"] * 40 / 1e6) < 1e-12
assert len(study["contacts"]) == 4
for at in study["contacts"]:
    # Two cars of one mass, one of which stands.
    assert abs(at["impact_mps"] - 2 * at["ego_delta_v_mps"]) < 1e-9 and at["with"] == "car"
    assert 11 < at["impact_mps"] < 13.5 and at["vru_severe"] == 0 and 0 < at["fatal"] < 0.05
# Contacts with cars tell nothing of what one with a person would do.
injured = study["events"]["vru_severe"]
assert injured["per_million_km"] is None and injured["observed"] == 0 and injured["high"] > 1, injured
PY
    code 0 "$swerve" risk --store a.db --exposure e.json; cp out r.txt
    says r.txt "without a contact with somebody outside a car nothing tells how severe one would be"
    says r.txt "1 of 2 classes rest on figures that were not read"
    says r.txt "without an exposure, in no rate: other (1 logical scenario)"
    says r.txt "not driven, though with an exposure, so taken to be like the others: not_there (1 logical scenario)"
}

plans_are_suites_that_run() {
    # An exposure that is known to a factor of two says when no number of jobs will do.
    run=$("$swerve" status --store a.db --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["suites"][0]["suite"].rsplit("-", 1)[0])')
    code 0 "$swerve" risk "$run" --store a.db --exposure e.json --precision 0.2; cp out r.txt # by the run's name
    says r.txt "exposures alone leave"
    sed 's/"low": 0.01, "high": 0.04, //' e.json >exact.json
    code 0 "$swerve" risk --store a.db --exposure exact.json --plan plan.json --from s.json --json; cp out r.json
    python3 - <<'PY' || fail "figures"
import json
study = json.load(open("r.json"))["studies"][0]
jobs = {at["scenario"]: at["jobs"] for at in study["logical_scenarios"]}
assert study["plan"]["enough"] and sum(jobs.values()) == study["plan"]["jobs"] and jobs["drive"] > 5
plan = json.load(open("plan.json"))["scenarios"]
assert len(plan) == jobs["drive"], (len(plan), jobs)
gaps = [at["grid"]["gap_m"][0] for at in plan]
assert len(set(gaps)) == len(gaps) and all(20 <= gap <= 200 for gap in gaps)
PY
    code 0 "$swerve" validate plan.json
    code 0 "$swerve" run plan.json --planner builtin:maintain --world object --store b.db
    mkdir -p elsewhere
    code 3 "$swerve" risk --store a.db --exposure exact.json --plan elsewhere/plan.json --from s.json
}

plans_of_narrow_ranges_name_each_point_once() {
    sed 's/\[20, 30, 150, 200\]/[30, 30.4]/' s.json >narrow.json
    sed 's/"low": 0.01, "high": 0.04, //' e.json >exact.json
    code 0 "$swerve" run narrow.json --world object --store n.db
    code 0 "$swerve" risk --store n.db --exposure exact.json --precision 0.05 --plan plan.json --from narrow.json
    python3 - <<'PY' || fail "points"
import json
gaps = [at["grid"]["gap_m"][0] for at in json.load(open("plan.json"))["scenarios"]]
assert len(gaps) > 41 and len(set(gaps)) == len(gaps), (len(gaps), len(set(gaps)))  # hundredths are 41
PY
    code 0 "$swerve" validate plan.json
}

wrong_files_are_refused() {
    sed 's/"source": "nobody", "scenarios": \["dri/"scenarios": ["dri/' e.json >bad.json
    code 3 "$swerve" risk --store a.db --exposure bad.json
    says err 'exposures[0]'
    says err source
    sed 's/"not_there"/"dri*"/' e.json >bad.json
    code 3 "$swerve" risk --store a.db --exposure bad.json
    says err once
    sed 's/"high": 0.04, //' e.json >bad.json
    code 3 "$swerve" risk --store a.db --exposure bad.json
    code 2 "$swerve" risk --store a.db
    code 2 "$swerve" risk --store a.db --exposure e.json --event crash
    code 2 "$swerve" risk --store a.db --exposure e.json --precision 0
}

# Every logical scenario that the shipped file names is one of the library.
shipped_exposures_are_of_the_library() {
    code 0 "$swerve" run "$root/scenarios/smoke.json" --world object --store c.db
    code 0 "$swerve" risk --store c.db --exposure "$root/scenarios/exposure_us2004.json" --json; cp out r.json
    code 0 "$swerve" coverage "$root/scenarios/longtail.json" --json; cp out c.json
    python3 - <<'PY' || fail "unknown names"
import json, os
named = {at["scenario"] for at in json.load(open("r.json"))["studies"][0]["logical_scenarios"]}
known = {os.path.basename(at["file"])[:-5] for at in json.load(open("c.json"))["logical"]}
assert named <= known, named - known
PY
}

t figures_are_those_of_the_outcomes
t plans_are_suites_that_run
t plans_of_narrow_ranges_name_each_point_once
t wrong_files_are_refused
t shipped_exposures_are_of_the_library
echo "1..$count" >&3
[ "$failed" = 0 ]
