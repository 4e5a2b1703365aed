#!/bin/bash
# Goal: swerve compare tells what one planner does better and worse than another, and gates on it.
# Method: a small suite under two planners, in two stores and in one; answers are counted from what
# `show --all` says of both.
#
# Usage: test_compare.sh SWERVE
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
work=$(mktemp -d /tmp/swerve-compare-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$here/tap.sh"

cat >drive.json <<'JSON'
{"id": "drive", "parameters": {"gap_m": 40},
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 4,
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": "=20 + gap_m"}, "speed_mps": 0, "behaviour": "static"}],
 "branches": [{"id": "brake", "at_tick": 10, "interventions": [{"kind": "ego_brake", "tick": 10, "decel_mps2": 8}]}]}
JSON
suite() { # suite FILE PLANNERS
    cat >"$1" <<JSON
{"id": "x", "title": "x", "planners": [$2],
 "scenarios": [{"file": "drive.json", "grid": {"gap_m": [30, 40, 45, 80, 150]}}]}
JSON
}
suite good.json '"builtin:reference"'
suite bad.json '"builtin:maintain"'
suite both.json '"builtin:reference", "builtin:maintain"'

runs() {
    code 0 "$swerve" run good.json --world object --store a.db
    code 0 "$swerve" run bad.json --world object --store b.db
    code 0 "$swerve" run both.json --world object --store ab.db
}
counts_what_changed() {
    code 0 "$swerve" compare a.db b.db --json
    cp out found.json
    "$swerve" show --all --store a.db >a.jsonl
    "$swerve" show --all --store b.db >b.jsonl
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import json
def main(path):
    rows = map(json.loads, open(path))
    return {(r["scenario_id"], r["seed"]): r["verdict"] == "pass" for r in rows if r["branch_id"] == ""}
a, b, found = main("a.jsonl"), main("b.jsonl"), json.load(open("found.json"))
broken = {k for k in a if a[k] and not b[k]}
assert len(broken) >= 3, broken
assert found["all"]["broken"] == len(broken) and found["all"]["fixed"] == 0, found["all"]
assert {(f["scenario_id"], f["seed"]) for f in found["flips"] if not f["branch_id"]} == broken
assert abs(found["all"]["a"]["rate"] - sum(a.values()) / len(a)) < 1e-12
assert found["cluster"] == "scenario" and found["compared"] == 10
assert found["regression"].startswith(str(len(broken)))
PY
}
one_store_answers_the_same() {
    code 0 "$swerve" compare builtin:reference builtin:maintain --store ab.db --json
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import json
a, b = json.load(open("found.json")), json.load(open("out"))
assert a["all"] == b["all"] and a["measures"] == b["measures"]
PY
}
# Each run with another planner is a suite of its own: a planner's name finds the newest that it drove.
planners_find_their_suites() {
    code 0 "$swerve" run good.json --world object --store two.db
    code 0 "$swerve" run bad.json --world object --store two.db
    code 0 "$swerve" compare builtin:reference builtin:maintain --store two.db --json
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import json
a, b = json.load(open("found.json")), json.load(open("out"))
assert a["all"] == b["all"] and a["a"]["suite"] != a["b"]["suite"], b["all"]
PY
}
equal_sides_have_no_flips() {
    code 0 "$swerve" compare a.db a.db --fail-on-regression
    says out "main lines: 0 fixed, 0 broken, 0 lost; branches: 0 fixed, 0 broken"
}
gates() {
    code 1 "$swerve" compare a.db b.db --fail-on-regression
    says err "regression"
    "$swerve" compare a.db b.db --fail-on-regression >both 2>&1
    tail -1 both | grep -q '^swerve: regression: ' || fail "the verdict is not the last line of both streams"
    says out "swerve replay"
    if grep -q 'u000a' out; then fail "a line feed is spelled out: $(grep u000a out | head -1)"; fi
    code 0 "$swerve" compare b.db a.db --fail-on-regression
    tail -1 out | grep -q "^no regression$" || fail "the verdict is not the last line"
    code 1 "$swerve" compare a.db b.db --fail-on-regression --margin 0.1
    code 0 "$swerve" compare a.db b.db --fail-on-regression --margin 1
}
# Files for a CI system: the verdict first, and each case once, with what broke among the failures.
writes_what_ci_shows() {
    code 1 "$swerve" compare a.db b.db --fail-on-regression --summary ci.md --junit ci.xml
    grep -q '^## Swerve: regression$' ci.md && grep -q '^## Broken: A passes, B does not$' ci.md || fail "$(head -3 ci.md)"
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import json, re, xml.etree.ElementTree
found = json.load(open("found.json"))
suite = xml.etree.ElementTree.parse("ci.xml").getroot().find("testsuite")
cases = suite.findall("testcase")
broken = sorted(f["scenario_id"] for f in found["flips"] if f["change"] == "broken" and not f["branch_id"])
assert len(cases) == int(suite.get("tests")) == found["all"]["main_lines"], suite.attrib
assert sorted(c.get("name").split(" [")[0] for c in cases if c.find("failure") is not None) == broken, suite.attrib
assert int(suite.get("failures")) == len(broken) and suite.get("time") is None, suite.attrib
rows = re.findall(r"^\| (\S+) .* `swerve show \d+ --store a.db` \| `swerve show \d+ --store b.db` \|$", open("ci.md").read(), re.M)
assert sorted(row.replace("\\", "") for row in rows) == broken, rows
PY
    code 0 "$swerve" compare b.db a.db --fail-on-regression --summary ci.md --junit ci.xml
    grep -q '^## Swerve: no regression$' ci.md && grep -q '^## Fixed: ' ci.md || fail "$(head -3 ci.md)"
    grep -q 'failures="0" errors="0"' ci.xml || fail "$(head -2 ci.xml)"
    code 1 "$swerve" compare a.db lost.db --fail-on-regression --summary ci.md --junit ci.xml
    grep -q 'failures="0" errors="2"' ci.xml && grep -q '^## Lost: ' ci.md || fail "$(head -2 ci.xml)"
}
# A pass that B has no result for is none: B left the models' bounds, drove less, or another scenario.
lost_passes_are_regressions() {
    cp -r a.db lost.db
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import sqlite3
store = sqlite3.connect("lost.db")
ids = [r[0] for r in store.execute("SELECT id FROM outcomes WHERE branch_id = '' AND verdict = 0 ORDER BY id LIMIT 2")]
for id in ids:
    store.execute("UPDATE outcomes SET verdict = 4, health_check = 'mass' WHERE id = ?", (id,))
store.commit()
PY
    code 1 "$swerve" compare a.db lost.db --fail-on-regression
    says err "regression: 2 main lines passed with A and have no result with B (2 invalid): drive/gap_m="
    says out "lost: A passes, B has no result"
    grep -q u000a out && fail "an escaped line end"
    cp -r lost.db less.db
    python3 -c 'import sqlite3; at = sqlite3.connect("less.db"); at.execute("UPDATE suites SET jobs_cancelled = 2"); at.commit()'
    code 0 "$swerve" compare a.db less.db --report page.html
    says out "NOTE: 0 jobs of A's suite and 2 of B's are dead, cancelled or wait"
    says page.html "and 2 of B&#39;s are dead"
    code 1 "$swerve" compare a.db lost.db --fail-on-regression --allow-invalid 1
    code 0 "$swerve" compare a.db lost.db --fail-on-regression --allow-invalid 2
    code 0 "$swerve" compare a.db lost.db --json
    says out '"kind": "invalid"'
    sed 's/80, 150/200, 250/' good.json >part.json
    code 0 "$swerve" run part.json --world object --store part.db
    code 1 "$swerve" compare a.db part.db --fail-on-regression
    says err "(2 missing)"
    sed 's/"horizon_s": 4/"horizon_s": 5/' drive.json >drive5.json
    sed 's/drive.json/drive5.json/' good.json >changed.json
    code 0 "$swerve" run changed.json --world object --store changed.db
    code 1 "$swerve" compare a.db changed.db --fail-on-regression
    says err "(5 changed)"
}
a_page_has_both_strips() {
    code 0 "$swerve" compare a.db b.db --report page.html
    [ "$(grep -o 'class="strip"' page.html | wc -l)" -ge 6 ] || fail "strips"
    grep -q "<td><abbr title=\"NAVSIM&#39;s extended score[^<]*>epdms</abbr></td>" page.html ||
        fail "epdms is not explained"
    grep -q '<script src\|http://\|https://' page.html && fail "the page needs other files"
}
# Another revision of the simulation is told where nobody overlooks it.
another_revision_is_a_notice() {
    cp -r b.db c.db
    cp -r b.db.artifacts c.db.artifacts
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import sqlite3
store = sqlite3.connect("c.db")
assert store.execute("UPDATE contexts SET revision = ?", ("f" * 64,)).rowcount > 0
store.commit()
PY
    code 0 "$swerve" compare a.db b.db --report page.html
    grep -q 'NOTE' out && fail "the same revision has a notice"
    grep -q 'class="notice"' page.html && fail "the same revision has a notice on the page"
    code 0 "$swerve" compare a.db c.db --report page.html
    grep -q '^NOTE: A and B were simulated by different revisions (.*, ffffffffffff)' out || fail "no notice: $(head -3 out)"
    grep -q '<p class="notice">A and B were simulated by different revisions (.*, ffffffffffff)' page.html || fail "no notice"
    code 0 "$swerve" compare a.db c.db --json
    says out '"revisions": "A and B were simulated by different revisions'
}
wrong_uses_are_named() {
    code 4 "$swerve" compare a.db nowhere.db
    says err 'store nowhere.db: expected a database, found no such file'
    [ -e nowhere.db ] && fail "a store was made"
    code 2 "$swerve" compare a.db builtin:reference
    says err '"builtin:reference": expected a store'
    code 2 "$swerve" compare ab.db a.db
    says err "builtin:reference, builtin:maintain"
    code 2 "$swerve" compare good-1 good-2
    says err '"good-1": expected a store'
    code 2 "$swerve" compare a.db b.db --margin 0.1
    code 2 "$swerve" compare a.db b.db --allow-invalid 1
    code 2 "$swerve" compare a.db b.db --fail-on-regression --margin 2
    code 3 "$swerve" compare builtin:reference nobody --store ab.db
    says err "nobody: no suite, run or baseline has this name: "
    says err "no results of planner nobody; expected one of builtin:"
}

one_name_twice_is_two_versions() {
    code 0 "$swerve" run good.json --world object --name night --store n.db
    code 2 "$swerve" compare night night --store n.db
    says err 'night: A and B are the same: expected two runs of this name, found night-'
    code 2 "$swerve" compare builtin:reference builtin:reference --store n.db
    says err 'expected two versions of this planner in the newest suites, found one'
    code 0 "$swerve" run bad.json --world object --name night --store n.db
    code 0 "$swerve" compare night night --store n.db --json
    python3 -c 'import json; c = json.load(open("out")); assert (c["a"]["planner"], c["b"]["planner"]) == ("builtin:reference", "builtin:maintain"), c' ||
        fail "$(head -c 300 out)"
    code 0 "$swerve" report night --store n.db --json
    says out 'builtin:maintain'
    code 2 "$swerve" run good.json --world object --name 'a b' --store n.db
}

# A baseline is a name for one run, which moves; what people say of a run comes back.
baselines_have_names() {
    code 3 "$swerve" baseline compare main --store n.db
    says err 'baseline main: the store has none of that name; expected one that "swerve baseline set" made'
    code 0 "$swerve" run good.json --world object --name main --tag nightly --tag fog --note "as it was" --store n.db
    code 0 "$swerve" baseline set main main --store n.db
    says out 'baseline main: main-'
    code 2 "$swerve" baseline compare main --store n.db
    says err 'is the baseline itself: expected another run'
    code 0 "$swerve" run bad.json --world object --name change --tag nightly --store n.db
    code 1 "$swerve" baseline compare main --fail-on-regression --summary ci.md --store n.db
    grep -q '^## Swerve: regression$' ci.md || fail "$(head -3 ci.md)"
    code 1 "$swerve" compare main change --fail-on-regression --store n.db
    code 0 "$swerve" baseline set main change --store n.db
    says out '(was main-'
    code 0 "$swerve" baseline compare main night --fail-on-regression --store n.db
    code 0 "$swerve" baseline show --store n.db
    [ "$(wc -l <out)" = 1 ] || fail "$(cat out)"
    grep -q '^main  *change-' out || fail "$(cat out)"
    code 0 "$swerve" baseline set other night --store n.db
    code 0 "$swerve" baseline rm other --store n.db
    says out 'baseline other: gone (was night-'
    code 3 "$swerve" baseline rm other --store n.db
    says err 'baseline other: the store has none of that name; expected main'
    code 2 "$swerve" baseline rm --store n.db
    code 2 "$swerve" baseline set 'a b' --store n.db
    code 2 "$swerve" baseline set --store n.db
    code 2 "$swerve" baseline show --margin 1 --store n.db
}
runs_are_found_by_what_was_said() {
    code 0 "$swerve" status --store n.db --tag nightly --trend
    [ "$(wc -l <out)" = 5 ] || fail "$(cat out)"
    sed -n 2p out | grep -qx 'main, builtin:reference, world object' || fail "$(cat out)"
    sed -n 3p out | grep -q 'main-.* 100.0%  *-  *-  as it was$' || fail "$(cat out)"
    sed -n 4p out | grep -qx 'change, builtin:maintain, world object' || fail "$(cat out)"
    sed -n 5p out | grep -q 'change-.* 40.0%  *-  *-$' || fail "$(cat out)"
    # Runs of one name by two planners are two series; a rate moves within one alone.
    sed 's/"horizon_s": 4/"horizon_s": 6/' drive.json >drive6.json
    sed 's/drive.json/drive6.json/' good.json >longer.json
    code 0 "$swerve" run longer.json --world object --name night --store n.db
    code 0 "$swerve" status --store n.db --name night --trend
    [ "$(wc -l <out)" = 6 ] || fail "$(cat out)"
    sed -n 2p out | grep -qx 'night, builtin:reference, world object' || fail "$(cat out)"
    sed -n 4p out | grep -q 'night-.* [+-][0-9.]*  *-$' || fail "$(cat out)"
    sed -n 5p out | grep -qx 'night, builtin:maintain, world object' || fail "$(cat out)"
    sed -n 6p out | grep -q 'night-.*%  *-  *-$' || fail "$(cat out)"
    # A tag comes and goes without another run.
    code 0 "$swerve" tag add late night --store n.db
    says out ': late'
    code 0 "$swerve" status --store n.db --tag late
    [ "$(grep -c '^night-' out)" = 1 ] || fail "$(cat out)"
    code 0 "$swerve" tag rm late night --store n.db
    says out ': no tags'
    code 0 "$swerve" status --store n.db --tag late
    [ -s out ] && fail "$(cat out)"
    code 2 "$swerve" tag set late --store n.db
    code 2 "$swerve" tag add 'a b' --store n.db
    code 0 "$swerve" status --store n.db --tag fog --json
    python3 - <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import json
suites = json.load(open("out"))["suites"]
assert len(suites) == 1, suites
assert suites[0]["tags"] == ["nightly", "fog"] and suites[0]["note"] == "as it was" and suites[0]["baselines"] == [], suites
open("hash", "w").write(suites[0]["planner_hash"][:8])
PY
    code 0 "$swerve" status --store n.db --planner "$(cat hash)" --name main
    [ "$(grep -c pass out)" = 1 ] || fail "$(cat out)"
    code 0 "$swerve" status --store n.db --planner builtin:maintain --tag fog
    [ -s out ] && fail "$(cat out)"
    code 2 "$swerve" run good.json --world object --tag 'a b' --store n.db
    says err 'swerve: --tag: expected'
    code 2 "$swerve" submit good.json --note '' --store n.db
    code 2 "$swerve" submit good.json --note $'caf\xe9' --store n.db
    says err 'swerve: --note: expected 1 to 255 bytes of UTF-8 in one line'
    # The commit that the client stands in, and whether what git tracks differs from it.
    command -v git >/dev/null || return 0
    mkdir tree && cd tree || return
    git init -q . && cp ../drive.json ../good.json . && git add . && git -c user.name=t -c user.email=t@t commit -qm t
    code 0 "$swerve" submit good.json --world object --name clean --store ../n.db
    echo >>good.json
    code 0 "$swerve" submit good.json --world object --name dirty --store ../n.db
    code 0 "$swerve" status clean --store ../n.db
    grep -q "commit: $(git rev-parse HEAD)$" out || fail "$(cat out)"
    code 0 "$swerve" status dirty --store ../n.db
    says out "commit: $(git rev-parse HEAD) with changes"
    cd ..
}

t runs
t one_name_twice_is_two_versions
t baselines_have_names
t runs_are_found_by_what_was_said
t counts_what_changed
t one_store_answers_the_same
t planners_find_their_suites
t equal_sides_have_no_flips
t gates
t lost_passes_are_regressions
t writes_what_ci_shows
t a_page_has_both_strips
t another_revision_is_a_notice
t wrong_uses_are_named
echo "1..$count" >&3
[ "$failed" = 0 ]
