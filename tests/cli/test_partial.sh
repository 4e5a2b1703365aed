#!/bin/bash
# Goal: a drain finishes what a worker held that was killed. What a killed or interrupted worker finished of a job is kept: the next one drives the rest,
# the outcomes are those of a run that nothing happened to, the ledger adds up; a store in the middle
# of such a job is whole, counts none of it, and shows what is damaged.
# Method: the built binary; a planner that stands still in the third rollout to come near its end, so
# that a kill meets two finished ones, which the store itself shows to be there. Waiting is by polling
# for a state, never by time.
#
# Usage: test_partial.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-partial-XXXXXX)
run=0
server=0
cleanup() {
    touch "$work/go"
    [ "$run" = 0 ] || kill -9 "$run" 2>/dev/null
    [ "$server" = 0 ] || kill -9 "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$here/tap.sh"

cat >fan.json <<'JSON'
{"id": "fan", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5,
 "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 4,
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 90}, "speed_mps": 12, "behaviour": "idm"}],
 "branches": [{"id": "a", "at_tick": 10, "interventions": [{"kind": "ego_brake", "decel_mps2": 2}]},
  {"id": "b", "at_tick": 12, "interventions": [{"kind": "ego_brake", "decel_mps2": 3}]},
  {"id": "c", "at_tick": 30, "interventions": [{"kind": "ego_brake", "decel_mps2": 4}]}]}
JSON
echo '{"id": "fans", "scenarios": [{"file": "fan.json"}]}' >fans.json
cat >hold.py <<'PY'
import os, sys, time
sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))
import swerve_planner
ended = 0
class Hold(swerve_planner.Planner):
    def act(self, observation):
        global ended
        while ended == 2 and observation.tick == 36 and not os.path.exists("go"):
            time.sleep(0.005)
        ended += observation.tick == 39
        return 0.125, observation.route[2].y_m * 0.03125
swerve_planner.run(Hold)
PY
options=(--workers 1 --slots 1 --keep-every-ms 0 --planner "exec:python3 -S hold.py $root"
    --planner-deadline-ms 60000)

cat >look.py <<'PY'
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
def rows(sql): return db.execute(sql).fetchall()
kept = sorted(b for b, in rows("SELECT branch_id FROM partial_outcomes"))
drives = rows("SELECT branch_id, verdict, ticks, prefix_ticks, metres_mm, trace_hash, score, progress_m FROM outcomes ORDER BY branch_id")
metres = {d[0]: d[4] for d in drives}
attempts = rows("SELECT epoch, ending, metres_mm, device_ns FROM attempts ORDER BY epoch")
assert eval(sys.argv[2]), (sys.argv[2], kept, drives, attempts)
PY
# look STORE EXPRESSION: over what the file holds.
look() { python3 look.py "$@" 2>pyerr; }
until_true() {
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "never happened: $*: $(tail -1 pyerr)"; return 1; }
        read -r -t 0.01 _ <> <(:) || true
    done
}
# start STORE: a run that stands still with two of four rollouts finished.
start() {
    rm -f go
    "$swerve" run fans.json --store "$1" "${options[@]}" --json >"$1.json" 2>"$1.err" 3>&- &
    run=$!
    until_true look "$1" 'kept == ["", "a"]'
}
# ended STORE FIRST: the outcomes are the calm run's; FIRST is how the first attempt ended. The
# second one drove the two rollouts that were left, and of the main line its past.
ended() {
    look "$1" 'not kept and attempts[0][1] == '"$2"' and [a[0] for a in attempts] == [1, 2]' || fail "$(tail -1 pyerr)"
    look "$1" 'attempts[0][2] >= metres[""] + metres["a"]' || fail "$(tail -1 pyerr)"
    look "$1" 'metres["b"] + metres["c"] < attempts[1][2] < metres["b"] + metres["c"] + metres[""] * 30 // 36' ||
        fail "$(tail -1 pyerr)"
    python3 look.py "$1" 'print(*drives, sep="\n") or True' >"$1.txt" 2>&1
    cmp -s calm.txt "$1.txt" || fail "$(diff calm.txt "$1.txt" | head -4)"
    code 0 "$swerve" check --store "$1"
    code 0 "$swerve" replay --all --store "$1"
    says out "4 identical, 0 different"
}

touch go
"$swerve" run fans.json --store calm.db "${options[@]}" >out 2>err || { cat err; exit 1; }
python3 look.py calm.db 'print(*drives, sep="\n") or True' >calm.txt

a_killed_worker_keeps_what_it_finished() {
    start kill.db || return
    code 0 "$swerve" status --store kill.db --json
    grep -q '"done": 0' out || fail "$(head -c 300 out)"
    grep -q '"leased": 1' out || fail "$(head -c 300 out)"
    look kill.db 'not drives' || fail "partial outcomes are among the outcomes"
    python3 -c 'import sqlite3; sqlite3.connect("kill.db").backup(sqlite3.connect("middle.db"))'
    cp -r kill.db.artifacts middle.db.artifacts
    kill -9 $(pgrep -P "$run")
    touch go
    wait "$run" || fail "the run ended with $?: $(cat kill.db.err)"
    run=0
    ended kill.db 4
}
an_interrupted_worker_keeps_what_it_finished() {
    start int.db || return
    kill -INT "$run"
    touch go
    wait "$run"
    [ $? = 130 ] || fail "expected exit 130 after SIGINT"
    run=0
    look int.db 'len(kept) >= 2 and "" in kept and "a" in kept and attempts[0][1] == 3' || fail "$(tail -1 pyerr)"
    code 0 "$swerve" run fans.json --store int.db "${options[@]}"
    look int.db 'len(attempts) == 2 and attempts[1][2] < sum(metres.values()) - metres["a"] and not kept' ||
        fail "$(tail -1 pyerr)"
    python3 look.py int.db 'print(*drives, sep="\n") or True' >int.txt 2>&1
    cmp -s calm.txt int.txt || fail "$(diff calm.txt int.txt | head -4)"
    code 0 "$swerve" check --store int.db
    code 0 "$swerve" replay --all --store int.db
    says out "4 identical, 0 different"
}
a_store_in_the_middle_is_whole_and_shows_damage() {
    code 0 "$swerve" check --store middle.db
    python3 "$here/edit_store.py" "$swerve" middle.db 7 2 partial_outcomes >out 2>err ||
        fail "$(grep 'not noticed' out | head -3) $(tail -1 err)"
    grep -q '^[0-9]* noticed of 1[0-9] edits' out || fail "$(head -c 300 out)"
    local edit
    for edit in "jobs SET state = 2" "partial_outcomes SET epoch = 2" "partial_outcomes SET job = 99" \
        "partial_outcomes SET outcome = replace(outcome, '\"verdict\":\"', '\"verdict\":\"x')" \
        "job_specs SET seed = seed + 1"; do
        python3 -c 'import sqlite3,sys
db = sqlite3.connect("middle.db"); to = sqlite3.connect("bad.db"); db.backup(to)
to.execute("UPDATE " + sys.argv[1]); to.commit()' "$edit" || fail "$edit"
        code 4 "$swerve" check --store bad.db
        says out "partial"
    done
    # Its artifact is wanted although no outcome has it yet.
    find middle.db.artifacts -name '*.zst' -delete
    code 4 "$swerve" check --store middle.db
    says out "is not there"
}
# drained NAME STORE: a worker is killed with jobs in its hands; another one that drains leaves nothing. Why not is in
# NAME.why.
drained() {
    local worker tries=0
    "$swerve" submit fans.json --seeds 6 --planner "exec:python3 -S hold.py $root" --store "$2" >"$1.out" 2>&1
    "$swerve" worker --store "$2" --slots 4 --planner-deadline-ms 60000 --planner-sandbox off >"$1.dead" 2>&1 &
    worker=$!
    until "$swerve" status --store "$2" --json | grep -q '"leased": [1-9]'; do
        tries=$((tries + 1))
        [ "$tries" -lt 500 ] || { echo "nothing was leased: $(cat "$1.dead")" >"$1.why"; return; }
        sleep 0.02
    done
    kill -9 "$worker"
    touch "go-$1"
    until [ -e go ]; do
        sleep 0.02
    done
    "$swerve" worker --store "$2" --drain --planner-deadline-ms 60000 --planner-sandbox off >"$1.drain" 2>&1 ||
        { echo "the drain ended with $?: $(cat "$1.drain")" >"$1.why"; return; }
    grep -q "waits up to [0-9]* s for [1-9][0-9]* jobs of workers that may have gone" "$1.drain" ||
        { echo "it does not say that it waits: $(cat "$1.drain")" >"$1.why"; return; }
    "$swerve" status --store "$2" --json >"$1.status"
    for state in '"queued": 0' '"leased": 0' '"done": 6'; do
        grep -q "$state" "$1.status" || { echo "expected $state, found $(cat "$1.status")" >"$1.why"; return; }
    done
    : >"$1.why"
}
a_drain_finishes_what_a_killed_worker_held() {
    local url
    rm -f go
    "$swerve" serve --store served.db --listen 127.0.0.1:0 >serve.out 2>serve.err &
    server=$!
    until [ -s serve.out ]; do
        kill -0 "$server" 2>/dev/null || { fail "the server ended: $(cat serve.err)"; return; }
        sleep 0.02
    done
    url=$(head -1 serve.out)
    drained path path.db &
    local path=$!
    drained url "$url" &
    local served=$!
    until { [ -e go-path ] || [ -s path.why ]; } && { [ -e go-url ] || [ -s url.why ]; }; do
        sleep 0.02
    done
    touch go
    wait "$path" "$served"
    kill "$server"
    wait "$server" 2>/dev/null
    server=0
    for place in path url; do
        [ -e "$place.why" ] && [ ! -s "$place.why" ] || fail "$place: $(cat "$place.why")"
    done
    code 0 "$swerve" check --store path.db
}
echo 1..4
t a_killed_worker_keeps_what_it_finished
t an_interrupted_worker_keeps_what_it_finished
t a_store_in_the_middle_is_whole_and_shows_damage
t a_drain_finishes_what_a_killed_worker_held
[ "$failed" = 0 ]
