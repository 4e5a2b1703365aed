#!/bin/bash
# Goal: exports hold what the store holds, in forms that readers of the Python library take.
# Method: a small suite with a failing planner, a grid and branches; CSV against `show --all`, XML by
# a parser, MCAP by its structure. Readers of other projects: scripts/check_exports.
#
# Usage: test_export.sh SWERVE
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
work=$(mktemp -d /tmp/swerve-export-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/tap.sh"

cat >drive.json <<'JSON'
{"id": "drive", "parameters": {"gap_m": 40, "light": "day"},
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 3,
 "conditions": {"light": "=light"},
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": "=20 + gap_m"}, "speed_mps": 0, "behaviour": "static"}],
 "branches": [{"id": "brake", "at_tick": 10, "interventions": [{"kind": "ego_brake", "tick": 10, "decel_mps2": 8}]}]}
JSON
cat >suite.json <<'JSON'
{"id": "x", "title": "x", "planners": ["builtin:maintain"],
 "scenarios": [{"file": "drive.json", "grid": {"gap_m": [12, 60], "light": ["day", "night"]}}]}
JSON

python() { python3 -c "$@" 2>pyerr || fail "$(tail -1 pyerr)"; }

suite_runs() {
    code 0 "$swerve" run suite.json --world object --store a.db
    export SWERVE_STORE=a.db
    "$swerve" show --all >all.jsonl
}
csv_is_the_store() {
    code 0 "$swerve" export --format csv -o t.csv
    python '
import csv, json
rows = list(csv.DictReader(open("t.csv", newline="")))
all_ = [json.loads(l) for l in open("all.jsonl")]
assert len(rows) == len(all_) == 8, len(rows)
for r, o in zip(rows, all_):
    for k, v in {**{k: v for k, v in o.items() if k not in ("metrics", "slices", "reasons")}, **o["metrics"]}.items():
        if isinstance(v, bool): assert r[k] == str(v).lower(), (k, r[k], v)
        elif isinstance(v, (int, float)): assert float(r[k]) == v, (k, r[k], v)
        else: assert r[k] == ("" if v is None else v), (k, r[k], v)
    assert r["reasons"] == ";".join(o["reasons"])
    gap, light = o["scenario_id"].split("gap_m=")[1].split(",light=")
    assert float(r["parameter_gap_m"]) == float(gap) and r["parameter_light"] == light
    assert r["logical_scenario"] == "drive" and r["slice_light"] == o["slices"]["light"]
'
}
# Scores by their formulas of the row's own metrics; a drive beside the lane's middle keeps no lane.
scores_of_the_field() {
    code 0 "$swerve" export --format csv --field -o f.csv
    sed 's/"id": "drive"/"id": "aside"/; s/"gap_m": 40/"gap_m": 90/; s/"at_tick": 10/"at_tick": 1/
        s/"ego_brake", "tick": 10, "decel_mps2": 8/"ego_swerve", "offset_m": 1.2, "duration_s": 1/' drive.json >aside.json
    code 0 "$swerve" run aside.json --world object --planner builtin:maintain --store aside.db
    code 0 "$swerve" export --format csv --field --store aside.db -o aside.csv
    python '
import csv
def scores(name):
    rows = list(csv.DictReader(open(name, newline="")))
    for r in rows:
        n = {k: float(v) for k, v in r.items() if k in ("no_at_fault_collision", "drivable_area", "driving_direction",
             "progress", "ttc", "comfort", "pdms", "epdms", "lane_keeping", "traffic_light")}
        product = n["no_at_fault_collision"] * n["drivable_area"]
        parts = 5 * n["progress"] + 5 * n["ttc"] + 2 * n["comfort"]
        assert abs(n["pdms"] - product * parts / 12) < 1e-12, r
        assert abs(n["epdms"] - product * n["driving_direction"] * n["traffic_light"] * (parts + 2 * n["lane_keeping"]) / 14) < 1e-12, r
    return [float(r["lane_keeping"]) for r in rows]
assert scores("f.csv") == [1] * 8
assert scores("aside.csv") == [1, 0], scores("aside.csv")
assert "epdms" not in open("t.csv").readline().strip().split(",")
'
    # The same figures wherever they are shown.
    code 0 "$swerve" report --store aside.db --json --report aside.html
    cp out aside.json
    code 0 "$swerve" compare aside.db aside.db --json
    cp out same.json
    python '
import csv, json
main = [r for r in csv.DictReader(open("aside.csv", newline="")) if r["branch_id"] == ""]
field = json.load(open("aside.json"))["field"]["object"]
same = json.load(open("same.json"))["measures"]
for name in ("pdms", "epdms"):
    mean = sum(float(r[name]) for r in main) / len(main)
    assert abs(field[name] - mean) < 1e-12 and abs(same[name]["a"] - mean) < 1e-12, (name, mean, field, same)
page = open("aside.html").read()
assert "Scores of the field" in page and page.count("EPDMS") > 2
'
    code 2 "$swerve" export --format junit --field -o x.xml
    says err "--field: expected a table (csv, jsonl, parquet, arrow), found junit"
}
junit_has_a_case_per_main_line() {
    code 0 "$swerve" export --format junit -o t.xml
    python '
import json, xml.etree.ElementTree as E
root = E.parse("t.xml").getroot()
mains = [o for o in map(json.loads, open("all.jsonl")) if o["branch_id"] == ""]
cases = root.findall(".//testcase")
assert len(cases) == len(mains) == 4
failed = sum(o["verdict"] == "fail" for o in mains)
assert failed > 0 and len(root.findall(".//failure")) == failed == int(root.get("failures"))
assert "swerve replay" in root.find(".//failure").text
'
}
markdown_lists_what_failed() {
    code 0 "$swerve" export --format markdown
    [ "$(grep -c 'swerve replay' out)" = "$(grep -c '"verdict":"fail"' <(grep '"branch_id":""' all.jsonl))" ] ||
        fail "failures listed: $(cat out)"
    grep 'swerve replay' out | grep -vq -- '--store ' && fail "a command without its store: $(cat out)"
}
mcap_has_its_magic_at_both_ends() {
    code 0 "$swerve" export 1 --format mcap -o t.mcap
    python '
d = open("t.mcap", "rb").read(); m = b"\x89MCAP0\r\n"
assert d.startswith(m) and d.endswith(m)
at, ops = 8, []
while at < len(d) - 8:
    n = int.from_bytes(d[at+1:at+9], "little"); ops.append(d[at]); at += 9 + n
assert at == len(d) - 8, "records do not add up"
assert ops[0] == 1 and ops[-1] == 2 and 15 in ops and 6 in ops and 11 in ops, ops
'
}
run_writes_for_ci() {
    code 0 "$swerve" run suite.json --world object --store a.db --summary run.md --junit run.xml
    cmp run.xml t.xml || fail "another JUnit file than export's"
    says run.md "Did not pass"
    code 3 "$swerve" run suite.json --world object --store a.db --summary /nope/run.md
    says err "/nope/run.md"
}
wrong_uses_are_named() {
    code 2 "$swerve" export --format xls
    says err 'found "xls"'
    code 2 "$swerve" export --format mcap -o t.mcap
    says err "one OUTCOME"
    code 2 "$swerve" export 1 --format csv
    code 2 "$swerve" export --format parquet
    says err "-o FILE"
    code 3 "$swerve" export 99 --format mcap -o no.mcap
    [ -e no.mcap ] && fail "a file of a failed export"
    code 3 "$swerve" export --format csv --suite nope
    code 4 "$swerve" export --format csv -o /nope/t.csv
    says err "/nope/t.csv"
    ls ./*.part >/dev/null 2>&1 && fail "left a part"
}
without_pyarrow_it_says_what_to_install() {
    mkdir -p bin
    printf '#!/bin/sh\nexit 3\n' >bin/python3
    chmod +x bin/python3
    PATH=$work/bin:$PATH code 5 "$swerve" export --format parquet -o t.parquet
    says err "pip install pyarrow"
    [ -e t.parquet ] && fail "a file of a failed export"
}
# Folders of scenarios and results are other people's: a module in one must not run.
modules_of_the_current_folder_do_not_run() {
    local module
    mkdir -p foreign
    for module in json pyarrow sitecustomize; do
        echo 'open("ran", "w")' >foreign/$module.py
    done
    (cd foreign && "$swerve" export --store ../a.db --format parquet -o t.parquet) >out 2>err
    case $? in 0 | 5) ;; *) fail "exit code: $(cat err)" ;; esac
    [ -e foreign/ran ] && fail "a module of the current folder ran"
}
# The part's name ends in the process's number, which a shell that becomes swerve knows before.
a_part_follows_no_link() {
    echo precious >victim
    rm -f t.csv
    # shellcheck disable=SC2016 # for the inner shell
    code 0 bash -c 'ln -s victim t.csv.$$.part && exec "$0" export --format csv -o t.csv' "$swerve"
    says victim precious
    [ -s t.csv ] && [ ! -L t.csv ] || fail "no export"
}
a_full_disk_is_an_error() {
    [ -w /dev/full ] || return
    "$swerve" export --format csv >/dev/full 2>err && fail "exit 0 on a full disk"
    says err "cannot write"
}

t suite_runs
t csv_is_the_store
t scores_of_the_field
t junit_has_a_case_per_main_line
t markdown_lists_what_failed
t mcap_has_its_magic_at_both_ends
t run_writes_for_ci
t wrong_uses_are_named
t without_pyarrow_it_says_what_to_install
t modules_of_the_current_folder_do_not_run
t a_part_follows_no_link
t a_full_disk_is_an_error
echo "1..$count" >&3
[ "$failed" = 0 ]
