#!/bin/bash
# Goal: a report says of each branch in which ego drives otherwise whether its sensors had the hazard
# in sight at the fork, as `swerve avoid` knows it, and says nothing of branches that change the world.
# A drive that is not what is stored when driven again is in no figure of `swerve avoid`.
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
}

t reports_know_what_avoid_knows
t edited_contacts_are_of_nobody
t avoid_leaves_out_what_is_another_drive_now
echo "1..$count" >&3
[ "$failed" = 0 ]
