#!/bin/bash
# Goal: a report says of each branch in which ego drives otherwise whether its sensors had the hazard
# in sight at the fork, as `swerve avoid` knows it, and says nothing of branches that change the world.
# A drive that is not what is stored when driven again is in no figure of `swerve avoid` and `swerve futures`.
# Futures say what their models know: what is written is known to one of four; they come again, and each is a branch. A
# drive that had failed before has none.
# Method: a jaywalker behind a van, with forks before and after he can be seen; avoid's visible tick. A planner edited
# between the run and `swerve avoid`.
#
# Usage: test_sight.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-sight-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$here/tap.sh"
cp -r "$root/scenarios" library

reports_know_what_avoid_knows() {
    echo '{"id": "x", "scenarios": [{"file": "urban/occluded_jaywalker.json", "set": {"ego_mps": 8}}]}' >library/x.json
    code 0 "$swerve" run library/x.json --world object --store a.db --report r.html
    code 0 "$swerve" avoid --store a.db --json
    python3 - library/urban/occluded_jaywalker.json <<'PY' || fail "sight"
import json, re, sys
drive = json.load(open("out"))["drives"][0]
notes = re.findall(r"jaywalker is in sight (only|at the fork,)( since)? ([0-9.]+) s", open("r.html").read())
own = [b["at_tick"] for b in json.load(open(sys.argv[1]))["branches"] if b["interventions"][0]["kind"].startswith("ego_")]
expected = sorted(("only", (drive["visible_tick"] - at) / 10) if at < drive["visible_tick"] else
                  ("at the fork,", (at - drive["visible_tick"]) / 10) for at in own)
assert len(own) == 3 and sorted((kind, float(s)) for kind, _, s in notes) == expected, (notes, expected)
assert {kind for kind, _ in expected} == {"only", "at the fork,"}
PY
    cp out drives.json
    code 0 "$swerve" avoid --store a.db
    says out "brake, swerve left, swerve right: the last moment at which that still avoids it"
    python3 - <<'PY' || fail "a sentence of each drive"
import json
drive = json.load(open("drives.json"))["drives"][0]
ways = {"braking": "brake", "swerving left": "swerve_left", "swerving right": "swerve_right"}
ticks = {words: drive[name]["last_tick"] for words, name in ways.items() if drive[name]["last_tick"] is not None}
words = max(ticks, key=ticks.get)
late = ticks[words] - drive["visible_tick"]
way = "avoids it when it begins by" if drive[ways[words]]["in_time"] else "had to begin by"
expected = (f"{words} {way} {(drive['end_tick'] - ticks[words]) / 10:.1f} s before the contact, "
            f"{abs(late) / 10:.1f} s {'after' if late >= 0 else 'before'} the hazard came in sight")
assert expected in open("out").read(), (expected, open("out").read())
PY
}

edited_contacts_are_of_nobody() {
    python3 -c 'import sqlite3; c = sqlite3.connect("a.db"); c.execute("UPDATE outcomes SET collision_agent = 200"); c.commit()'
    code 0 "$swerve" report --store a.db --report r.html
    ! grep -qF "in sight" r.html || fail "somebody is in sight who is not there"
    python3 -c 'import sqlite3; c = sqlite3.connect("a.db")
c.execute("UPDATE outcomes SET collision_agent = 0, collision_tick = 4294967295"); c.commit()'
    code 0 timeout 30 "$swerve" report --store a.db --report r.html
}

# A planner that drives on, and after an edit one that stops: the drive that failed is no longer there to be swept.
avoid_leaves_out_what_is_another_drive_now() {
    export PYTHONPATH="$root/scripts"
    printf '%s\n' 'import swerve_planner' 'class Mine(swerve_planner.Planner):' '    def act(self, observation):' \
        '        return 0.0, 0.0' 'swerve_planner.run(Mine)' >mine.py
    code 0 "$swerve" run library/x.json --world object --store b.db --planner "exec:python3 mine.py"
    code 0 "$swerve" avoid --store b.db --json
    python3 -c 'import json; d = json.load(open("out")); assert len(d["drives"]) == d["unsafe"] == 1 and not d["different"], d' ||
        fail "same planner"
    sed -i 's/return 0.0/return -6.0/' mine.py
    code 1 "$swerve" avoid --store b.db
    says err "left out: swerve replay "
    code 1 "$swerve" avoid --harm --store b.db --json
    python3 -c 'import json; d = json.load(open("out")); assert d["different"] and not d["drives"] and not d["safe"], d' ||
        fail "another planner"
    code 1 "$swerve" futures --store b.db --draws 1 --json
    python3 -c 'import json; d = json.load(open("out")); d, = d["planners"]; assert d["different"] and not d["drives"] and d["base_rate"] is None, d' ||
        fail "futures of another planner"
    says err "left out: swerve replay "
    # One whose first answer takes longer than a second has the deadline of its run.
    printf '%s\n' 'import time' 'import swerve_planner' 'wait = [1.3]' 'class Mine(swerve_planner.Planner):' \
        '    def act(self, observation):' '        time.sleep(wait.pop() if wait else 0)' '        return 0.0, 0.0' \
        'swerve_planner.run(Mine)' >slow.py
    code 0 "$swerve" run library/x.json --world object --store s.db --planner "exec:python3 slow.py" --planner-deadline-ms 20000 --workers 1
    code 1 "$swerve" futures --store s.db --draws 1 --planner-deadline-ms 300
    code 0 "$swerve" futures --store s.db --draws 1 --planner-deadline-ms 20000
}

# A car ahead brakes at 4 s, or does not; ego does not look. Before that nobody but the model that knows the script says
# so, and after it all do.
brakes() { # ID TEXT-OF-MANOEUVRES
    cat >"$1.json" <<JSON
{"id": "$1", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 9,
 "criteria": {"no_collision": true},
 "agents": [{"id": "lead", "kind": "car", "behaviour": "script", "speed_mps": 12, "pose": {"lane": "east", "s_m": 55}${2-}}]${3-}}
JSON
}

futures_know_what_their_models_know() {
    brakes brakes ', "manoeuvres": [{"when": "time", "value": 4, "do": "speed", "speed_mps": 0, "rate_mps2": 6}]'
    brakes goes_on
    echo '{"id": "f", "planners": ["builtin:maintain"], "scenarios": [{"file": "brakes.json"}, {"file": "goes_on.json"}]}' >f.json
    code 0 "$swerve" run f.json --world object --store f.db
    code 0 "$swerve" futures --store f.db --draws 6 --json; cp out first.json
    code 0 "$swerve" futures --store f.db --draws 6 --json
    cmp -s out first.json || fail "the same question has another answer"
    code 0 "$swerve" futures --store f.db --draws 6 --at-tick 50 --json; cp out later.json
    python3 - <<'PY' || fail "futures"
import json
first = {d["scenario"]: d for d in json.load(open("first.json"))["planners"][0]["drives"]}
brakes, goes_on = first["brakes"], first["goes_on"]
assert brakes["verdict"] == "fail" and goes_on["verdict"] == "pass"
assert brakes["models"]["written"]["failing_draws"] == [1, 2, 3, 4, 5, 6] and brakes["models"]["idm"]["failed"] == 0
assert brakes["one_default"] == "pass" and brakes["answer"] == "undecided" and brakes["low"] == 0 and brakes["high"] == 1
assert goes_on["models"]["written"]["failed"] == goes_on["models"]["idm"]["failed"] == 0
for drive in first.values():
    for model in drive["models"].values():
        assert model["passed"] + model["failed"] + model["without"] == 6 and model["low"] <= model["p_fail"] <= model["high"]
answer = json.load(open("later.json"))
later, = answer["planners"]
assert answer["decisive_draws"] == 6 and not any(answer["left_out"].values()), answer
drive = {d["scenario"]: d for d in later["drives"]}["brakes"]
assert drive["p_fail"] == 1 and drive["answer"] == "fail" and drive["one_default"] == "fail", drive
scores = later["calibration"]
assert scores["all"]["less_base_rate"]["low"] is None  # of two logical scenarios
assert later["base_rate"] == 0.5 and scores["written"]["brier"] == 0 and scores["written"]["less_base_rate"]["value"] == -0.25
assert scores["one_default"]["brier"] == 0 and json.load(open("first.json"))["planners"][0]["calibration"]["one_default"]["brier"] == 0.5
assert later["answers"]["all"] == {"undecided": {"drives": 0, "failed": 0}, "pass": {"drives": 1, "failed": 0}, "fail": {"drives": 1, "failed": 1}}
assert scores["foreseen_less_one_default"]["value"] == 0
assert sum(b["drives"] for b in scores["all"]["bins"]) == 2 == scores["all"]["drives"]
PY
    code 0 "$swerve" futures --store f.db --draws 6
    says out "futures from 0.0 s on, 6 of each model; share that fails"
    says out "calibration: 1 of 2 drives failed (50.0%), Brier score of that share 0.2500; 0 is exact"
    code 0 "$swerve" futures --store f.db --draws 1 --at-tick 85
    says out "1 drive ended before"
    says out "no answer can be other than undecided with less than 6 draws"
    code 0 "$swerve" run library/smoke.json --scenario debris_couch --planner builtin:maintain --world object --store d.db
    code 0 "$swerve" futures --store d.db --draws 6 --at-tick 44 --json
    python3 -c 'import json; d, = json.load(open("out"))["planners"]; assert d["failed_before"] == 0 and d["calibration"]["all"]["drives"] == 1, d' ||
        fail "a couch that is hit later"
    code 0 "$swerve" futures --store d.db --draws 6 --at-tick 46 --json
    python3 -c 'import json; d, = json.load(open("out"))["planners"]
assert d["failed_before"] == 1 and d["failed"] == d["ended"] == d["calibration"]["all"]["drives"] == 0 and not d["drives"], d' ||
        fail "a couch that was hit"
    code 0 "$swerve" futures --store d.db --draws 6 --at-tick 46
    says out "1 drive had failed before"
    code 0 "$swerve" run library/longtail.json --scenario cow_herd --world object --store c.db
    code 0 "$swerve" futures --store c.db --at-tick 40 # some cows would walk into one another
    says out "in 1 other drive every future with a verdict ends as the drive did"
    says out "5 of 64 futures have no verdict"
    code 2 "$swerve" futures --store f.db --draws 64
    says err "--draws: expected 1 to 63, found 64"
    code 2 "$swerve" futures --store f.db --draws 52 --tokens
    says err "--draws: expected 1 to 51, found 52"
    code 0 "$swerve" futures --store f.db --draws 6 --at-tick 50 --tokens
    says out "constant  tokens   P(fail)"
    code 0 "$swerve" futures --store f.db --draws 6 --at-tick 50 --tokens --json; cp out five.json
    python3 - <<'PY' || fail "tokens as a fifth model"
import json
five, = json.load(open("five.json"))["planners"]
four, = json.load(open("later.json"))["planners"]
assert "tokens" not in four["calibration"] and "tokens" not in four["drives"][0]["models"], four
brakes, goes_on = (next(d for d in five["drives"] if d["scenario"] == name) for name in ("brakes", "goes_on"))
assert brakes["models"]["tokens"]["failed"] > 0 and goes_on["models"]["tokens"]["passed"] == 6, five
assert five["calibration"]["tokens"]["brier"] == (1 - brakes["models"]["tokens"]["p_fail"]) ** 2 / 2
del brakes["models"]["tokens"]
assert brakes["models"] == next(d for d in four["drives"] if d["scenario"] == "brakes")["models"]
PY
    code 2 "$swerve" futures --store f.db --at-tick 6000
}

# A future, as a branch of a suite, ends as the command says, and replays.
futures_are_branches() {
    local model branches=""
    for model in written idm drivers constant tokens; do
        branches="$branches, {\"id\": \"$model\", \"at_tick\": 50, \"interventions\": [{\"kind\": \"traffic\", \"model\": \"$model\", \"draw\": 3}]}"
    done
    brakes brakes ', "manoeuvres": [{"when": "time", "value": 4, "do": "speed", "speed_mps": 0, "rate_mps2": 6}]' ", \"branches\": [${branches#, }]"
    code 0 "$swerve" run f.json --world object --store g.db
    code 0 "$swerve" replay --all --store g.db
    says out "7 identical"
    code 0 "$swerve" export --store g.db --format csv
    python3 - <<'PY' || fail "a future as a branch ends otherwise"
import csv, json
drive = {d["scenario"]: d for d in json.load(open("five.json"))["planners"][0]["drives"]}["brakes"]
rows = {r["branch_id"]: r["verdict"] for r in csv.DictReader(open("out")) if r["scenario_id"] == "brakes" and r["branch_id"]}
assert rows == {m: "fail" if 3 in at["failing_draws"] else "pass" for m, at in drive["models"].items()}, (rows, drive)
PY
    brakes brakes "" ', "branches": [{"id": "x", "at_tick": 1, "interventions": [{"kind": "traffic", "model": "astrology"}]}]'
    code 3 "$swerve" validate brakes.json
    says err "$.branches[0].interventions[0].model"
    brakes brakes "" ', "branches": [{"id": "x", "at_tick": 1, "interventions": [{"kind": "traffic", "model": "idm"}, {"kind": "traffic", "model": "written"}]}]'
    code 3 "$swerve" validate brakes.json
    says err "$.branches[0].interventions[1].model: expected a model that foresees"
}

# Each planner has a table and a calibration of its own; what has no result is said, and where nothing is left it is an
# error.
futures_of_several_planners() {
    brakes brakes ', "manoeuvres": [{"when": "time", "value": 2, "do": "speed", "speed_mps": 0, "rate_mps2": 6}]'
    sed -i 's/"horizon_s": 9/"horizon_s": 12/' brakes.json
    echo '{"id": "p", "planners": ["builtin:maintain", "builtin:reference"], "scenarios": [{"file": "brakes.json"}, {"file": "goes_on.json"}]}' >p.json
    code 0 "$swerve" run p.json --world object --store p.db
    code 0 "$swerve" futures --store p.db --draws 6 --json; cp out all.json
    code 0 "$swerve" futures --store p.db --draws 6 --planner builtin:reference --json
    python3 - <<'PY' || fail "planners"
import json
answer = json.load(open("all.json"))
maintain, reference = answer["planners"]
assert (maintain["planner"], reference["planner"]) == ("builtin:maintain", "builtin:reference")
assert maintain["base_rate"] == 0.5 and reference["base_rate"] == 0 and len(maintain["drives"]) == len(reference["drives"]) == 2
assert maintain["calibration"]["all"]["drives"] == 2 and json.load(open("out"))["planners"] == [reference]
PY
    code 0 "$swerve" futures --store p.db --draws 6
    says out "builtin:maintain: futures from 0.0 s on"
    says out "builtin:reference: futures from 0.0 s on"
    code 3 "$swerve" futures --store p.db --planner builtin:idm
    says err "expected a main line of builtin:idm that passed or failed, found none"
    python3 -c "import sqlite3; c = sqlite3.connect('p.db')
c.execute('UPDATE outcomes SET verdict = 2 WHERE id = (SELECT max(id) FROM outcomes)'); c.commit()"
    code 0 "$swerve" futures --store p.db --draws 1
    says out "main lines left out: 1 planner_error"
    python3 -c "import sqlite3; c = sqlite3.connect('p.db')
c.execute('UPDATE outcomes SET verdict = 3'); c.commit()"
    code 3 "$swerve" futures --store p.db
    says err "found none: 4 flagged"
}

# Disagreements of student and teacher: futures, kept in the store once, say who is right. A wrong teacher is planted: it
# fails what all futures pass. Whoever asks and dies loses nothing.
futures_settle_what_student_and_teacher_say() {
    brakes brakes ', "manoeuvres": [{"when": "time", "value": 0.2, "do": "speed", "speed_mps": 0, "rate_mps2": 6}]'
    sed -i 's/"horizon_s": 9/"horizon_s": 0.5/' brakes.json
    echo '{"id": "s", "planners": ["builtin:maintain"], "scenarios": [{"file": "brakes.json"}]}' >s.json
    echo '{"rate": 1}' >audit.json
    code 0 "$swerve" run s.json --world student --models "$root/engine/models" --audit audit.json --store t.db
    code 0 "$swerve" futures --store t.db --draws 8 --json
    python3 -c 'import json; d, = json.load(open("out"))["planners"]; assert [x["teacher"] for x in d["drives"]] == ["pass"], d' || fail "they agree"
    code 0 "$swerve" futures --settle --store t.db
    says out "no verdict of student and teacher differs"
    python3 -c "import sqlite3; c = sqlite3.connect('t.db')
c.execute('UPDATE outcomes SET verdict = 1, reasons = 1 WHERE context IN (SELECT id FROM contexts WHERE pool = ?)', ('teacher',)); c.commit()"
    code 0 "$swerve" agreement --store t.db
    says out "main lines whose verdicts differ: 1, with futures 0 (swerve futures SUITE --settle drives them)"
    "$swerve" futures --settle --workers 0 --store t.db >/dev/null 2>&1 &
    local asked=$!
    for _ in $(seq 200); do
        [ "$(python3 -c "import sqlite3; print(sqlite3.connect('t.db').execute('SELECT COUNT(*) FROM jobs').fetchone()[0])")" = 3 ] && break
        sleep 0.05
    done
    kill -9 "$asked"
    wait "$asked" 2>/dev/null
    code 0 "$swerve" futures --settle --store t.db --json; cp out settled.json
    code 0 "$swerve" futures --settle --store t.db --json
    cmp -s out settled.json || fail "what is settled is driven again, or says something else"
    code 0 "$swerve" agreement --store t.db --json; cp out agreement.json
    code 0 "$swerve" agreement --futures --store t.db --json
    python3 - <<'PY' || fail "a wrong teacher"
import json
answer = json.load(open("settled.json"))
one, = answer["disagreements"]
assert (one["student"], one["teacher"], one["itself"], one["answer"], one["settled"], one["state"]) == ("pass", "fail", "pass", "pass", "pass", "driven"), one
assert one["at_tick"] == 0 and one["draws"] == 16 and one["p_fail"] == 0 and 0.2 < one["high"] < 0.25, one
assert answer["settled"] == {"pass": 1, "fail": 0, "undecided": 0} and answer["contradicted"] == 0
assert 0 < answer["futures_s"] < answer["audits_s"], answer
for name, optimistic in (("agreement.json", 1), ("out", 0)):
    store = json.load(open(name))
    assert store["futures"]["driven"] == store["futures"]["student_right"] == 1 and store["futures"]["teacher_right"] == 0, store["futures"]
    rows = [r for r in store["rows"] if r["slice"] == {}] if "rows" in store else [store["slices"][0]]
    assert rows[0]["optimistic"] == optimistic, (name, rows[0])
PY
    code 0 "$swerve" futures --settle --store t.db
    says out "from 0.0 s: P(fail) 0% [0-25%], pass"
    says out "student and teacher differ in 1: pass in 1, fail in 0, undecided 0"
    code 0 "$swerve" status --store t.db --json
    says out '"rollouts_audit": 2'
    python3 -c 'import sqlite3; assert sqlite3.connect("t.db").execute("SELECT COUNT(*) FROM jobs").fetchone() == (3,)' || fail "it is driven once, and in no rate"
    code 0 "$swerve" show 3 --store t.db
    says out "futures   of job 1, of 16 draws of each model from 0.0 s: P(fail) 0% [0-25%], pass; in no rate"
    code 0 "$swerve" report --store t.db --report r.html
    says r.html "futures from 0.0 s: P(fail) 0% [0-25%], pass, the drive itself"
    code 2 "$swerve" futures --settle --at-tick 3 --store t.db
    says err "--settle: expected neither --at-tick nor --tokens"
}

# A worker that is killed at it takes nothing with it: its job is driven again, and has one outcome.
futures_outlive_their_worker() {
    export PYTHONPATH="$root/scripts"
    printf '%s\n' 'import time' 'import swerve_planner' 'class Mine(swerve_planner.Planner):' '    def act(self, observation):' \
        '        time.sleep(0.01)' '        return 0.0, 0.0' 'swerve_planner.run(Mine)' >nap.py
    echo '{"id": "n", "planners": ["exec:python3 nap.py"], "scenarios": [{"file": "brakes.json"}]}' >n.json
    code 0 "$swerve" run n.json --world student --models "$root/engine/models" --audit audit.json --store n.db --workers 1
    python3 -c "import sqlite3; c = sqlite3.connect('n.db')
c.execute('UPDATE outcomes SET verdict = 1, reasons = 1 WHERE context IN (SELECT id FROM contexts WHERE pool = ?)', ('teacher',)); c.commit()"
    "$swerve" futures --settle --store n.db >settled 2>&1 &
    local asked=$!
    for _ in $(seq 400); do
        [ "$(python3 -c "import sqlite3; print(sqlite3.connect('n.db').execute('SELECT COUNT(*) FROM jobs WHERE id = 3 AND state = 1').fetchone()[0])")" = 1 ] && break
        sleep 0.02
    done
    pkill -9 -P "$asked"
    wait "$asked" || fail "the command ends with its worker: $(cat settled)"
    says settled "student and teacher differ in 1: pass in 1, fail in 0, undecided 0"
    python3 - <<'PY' || fail "a killed worker"
import sqlite3
store = sqlite3.connect("n.db")
ends = store.execute("SELECT ending FROM attempts WHERE job = 3 ORDER BY ending").fetchall()
kept = store.execute("SELECT futures_draws, futures_idm_passed, futures_drivers_passed, futures_constant_passed FROM outcomes WHERE job = 3").fetchall()
assert ends == [(0,), (4,)] and kept == [(16, 16, 16, 16)], (ends, kept)  # done, lost
PY
}

t reports_know_what_avoid_knows
t edited_contacts_are_of_nobody
t avoid_leaves_out_what_is_another_drive_now
t futures_know_what_their_models_know
t futures_are_branches
t futures_of_several_planners
t futures_settle_what_student_and_teacher_say
t futures_outlive_their_worker
echo "1..$count" >&3
[ "$failed" = 0 ]
