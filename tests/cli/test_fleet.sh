#!/bin/bash
# Goal: a worker of a store at http(s):// end to end: it confines the planners that others name, with
# the same results; says what stands in the way; hands back what it cannot finish.
# Method: the built binary against `swerve serve` on a free port of the loopback device. Waiting is by
# polling for a state, never by time.
#
# Usage: test_fleet.sh SWERVE SOURCE_ROOT
set -u -o pipefail
tap=$(dirname "$(realpath "$0")")/tap.sh
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-fleet-XXXXXX)
server=0
cleanup() {
    [ "$server" = 0 ] || kill -9 "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
chmod 755 "$work"
cd "$work" || exit 1
unset SWERVE_STORE SWERVE_TOKEN_FILE SWERVE_CA_FILE SWERVE_PLANNER_SANDBOX
. "$tap"

cp "$root/scripts/swerve_planner.py" .
# The worst place for a planner: the directory that the store, its key and tokens lie in, the worker
# being the same user as the server.
cat >planner.py <<'END'
import os, socket, sys, swerve_planner, package

SIGHT = {"package", "planner.py", "port.txt", "swerve_planner.py", "__pycache__"}

def connects(family, address):
    try:
        with socket.socket(family, socket.SOCK_STREAM) as end:
            end.settimeout(5)
            end.connect(address)
        return True
    except OSError:
        return False

class Careful(swerve_planner.Planner):
    """Brakes when it finds a way out."""
    wants = swerve_planner.BEV

    def reset(self, episode):
        here = os.path.dirname(os.path.abspath(__file__))
        found = set(os.listdir(here)) - SIGHT
        ways = [connects(socket.AF_INET, ("127.0.0.1", int(open(sys.argv[1]).read()))),
                connects(socket.AF_UNIX, here + "/jobs.db.sock"),
                connects(socket.AF_UNIX, "jobs.db.sock"),
                any(name.startswith("SWERVE_") and "SHM" not in name for name in os.environ),
                "NVIDIA_API_KEY" in os.environ]
        for name in ["jobs.db", "key.pem", "token", "drive.json", os.path.expanduser("~root/.ssh")]:
            ways.append(os.path.exists(name))
        self.out = 6.0 if found or any(ways) else 0.0
        if self.out:
            print("a way out", found, ways, file=sys.stderr, flush=True)

    def act(self, observation):
        return 0.25 * (package.SPEED - observation.speed_mps) - self.out, 0.0

swerve_planner.run(Careful)
END
mkdir package
echo "SPEED = 12.0" >package/__init__.py
cat >drive.json <<'END'
{"id": "drive", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5,
 "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 3}
END
echo '{"id": "small", "seeds": 3, "scenarios": [{"file": "drive.json"}]}' >suite.json
echo '{"id": "long", "seeds": 40, "scenarios": [{"file": "drive.json"}]}' >long.json
printf 'a-token-of-forty-characters-0123456789ab\n' >token
printf -- '-----BEGIN PRIVATE KEY-----\n' >key.pem
chmod -R u=rwX,go=rX .
chmod 600 token
: >serve.out
"$swerve" serve --store jobs.db --listen 127.0.0.1:0 >serve.out 2>serve.err &
server=$!
until [ -s serve.out ]; do
    kill -0 "$server" 2>/dev/null || { cat serve.err; exit 1; }
    sleep 0.02
done
url=$(head -1 serve.out)
printf %s "${url##*:}" >port.txt
planner="exec:/usr/bin/python3 -S planner.py port.txt"
confined=yes
"$swerve" doctor | grep -q "cannot be confined" && confined=no
[ $confined = yes ] || echo "# not tested: planners cannot be confined here" >&3

# drove_freely OUTCOME: its planner found no way out.
drove_freely() {
    code 0 "$swerve" show "$1" --json --store "$url"
    python3 -c 'import json; d=json.load(open("out")); assert d["metrics"]["speed_max_mps"] < 12.5 and \
        d["metrics"]["distance_m"] > 30' 2>pyerr || fail "it braked, so it found a way out: $(head -c 900 out)"
}
others_planners_are_confined() {
    [ $confined = yes ] || return
    code 0 "$swerve" submit suite.json --store "$url" --planner "$planner"
    code 0 env NVIDIA_API_KEY=nvapi-x SWERVE_TOKEN_FILE="$work/token" "$swerve" worker --store "$url" --drain
    code 0 "$swerve" status --store "$url"
    says out "3 done"
    drove_freely 1
}
what_must_not_be_in_sight_is_refused() {
    [ $confined = yes ] || return
    code 2 "$swerve" worker --store "$url" --drain --planner-path "$work"
    says err "a store or socket lies where planners can see it ($work/jobs.db"
    mkdir -p given
    cp token given/
    code 2 env SWERVE_TOKEN_FILE="$work/given/token" "$swerve" worker --store "$url" --drain --planner-path given
    says err "where planners can see it"
}
# Named by whoever submits, which shows nothing of it.
names_of_others_show_nothing() {
    [ $confined = yes ] || return
    code 0 "$swerve" submit suite.json --store "$url" \
        --planner "$planner jobs.db key.pem token ../../etc/shadow --x=jobs.db package"
    code 0 "$swerve" worker --store "$url" --drain
    drove_freely 4
}
forbidden_namespaces_need_a_word() {
    [ $confined = yes ] || return
    cat >inside.sh <<'END'
echo 0 >/proc/sys/user/max_user_namespaces || exit 77
"$@"
END
    unshare -Ur sh inside.sh true 2>/dev/null || return # nor may this test
    code 6 unshare -Ur sh inside.sh "$swerve" worker --store "$url" --drain
    says err "--planner-sandbox off"
    # A store in PostgreSQL is others' too; this is settled before anything connects.
    code 6 unshare -Ur sh inside.sh "$swerve" worker --store "postgresql://nobody@/none?host=/nowhere" --drain
    says err "--planner-sandbox off"
    code 0 unshare -Ur sh inside.sh "$swerve" worker --store "$url" --drain --planner-sandbox off
    code 0 unshare -Ur env SWERVE_PLANNER_SANDBOX=off sh inside.sh "$swerve" worker --store "$url" --drain
    code 2 "$swerve" worker --store "$url" --drain --planner-sandbox perhaps
}
# A worker that is told to stop ends, and without an error.
ends_well() {
    kill -TERM "$1"
    wait "$1"
    local found=$?
    [ $found = 0 ] || fail "expected exit 0 after SIGTERM, found $found: $(cat worker.err)"
}
a_stopped_worker_hands_back() {
    code 0 "$swerve" submit long.json --store "$url" --planner builtin:reference
    "$swerve" worker --store "$url" --slots 2 --planner-sandbox off --grace-ms 60000 2>worker.err &
    local worker=$!
    until "$swerve" status --store "$url" | grep -q "[0-9] leased"; do
        kill -0 $worker 2>/dev/null || break
        sleep 0.01
    done
    ends_well $worker
    code 0 "$swerve" status --store "$url" --json
    python3 -c 'import json; d=json.load(open("out")); assert all(s["leased"] == 0 for s in d["suites"])' \
        2>pyerr || fail "something is still leased: $(head -c 400 out)"
    code 0 "$swerve" worker --store "$url" --drain --planner-sandbox off
    code 0 "$swerve" status --store "$url"
    says out "40 done"
}
# A claim waits at the server, beside this request. (grep reads to the end: a curl that cannot write
# all fails.)
waits() { curl -s "$url/metrics" | grep 'connections{phase="handling"} 2$' >/dev/null; }
an_idle_worker_wakes_and_stops() {
    "$swerve" worker --store "$url" --planner-sandbox off --verbose 2>worker.err &
    local worker=$!
    until waits; do
        kill -0 $worker 2>/dev/null || break
        sleep 0.01
    done
    code 0 "$swerve" submit suite.json --store "$url" --planner builtin:maintain
    until "$swerve" status --store "$url" --json | python3 -c 'import json, sys; d=json.load(sys.stdin);
sys.exit(any(s["queued"] or s["leased"] for s in d["suites"]))'; do
        kill -0 $worker 2>/dev/null || break
        sleep 0.01
    done
    until waits; do
        kill -0 $worker 2>/dev/null || break
        sleep 0.01
    done
    ends_well $worker
    grep -q " 3 jobs" worker.err || fail "expected it to have run 3 jobs: $(cat worker.err)"
}
# One host without the planner's file neither burns attempts nor bounces jobs; another host does them.
one_badly_set_up_host_costs_nothing() {
    echo 'import swerve_planner
class Still(swerve_planner.Planner):
    def act(self, observation):
        return 0.0, 0.0
swerve_planner.run(Still)' >still.py
    local planner="exec:/usr/bin/python3 -S still.py"
    code 0 "$swerve" submit suite.json --store "$url" --planner "$planner"
    mv still.py elsewhere.py
    for life in 1 2 3; do
        code 6 "$swerve" worker --store "$url" --drain --planner-sandbox off --host a
        says err "no attempt was charged"
        says err "takes no more of them"
    done
    code 0 "$swerve" status --store "$url"
    says out "3 queued"
    says out "a planner does not start on 1 host"
    mv elsewhere.py still.py
    code 0 "$swerve" worker --store "$url" --drain --planner-sandbox off --host b
    code 0 "$swerve" status --store "$url"
    ! grep -q "queued\|dead\|leased" out || fail "expected all to be done: $(cat out)"
}
# A planner that starts on neither of two hosts dies of its attempts.
two_hosts_blame_the_planner() {
    echo 'raise SystemExit("nothing to see")' >still.py
    code 0 "$swerve" submit suite.json --store "$url" --planner "exec:/usr/bin/python3 -S still.py" --attempts 2
    code 6 "$swerve" worker --store "$url" --drain --planner-sandbox off --host a
    code 0 "$swerve" worker --store "$url" --drain --planner-sandbox off --host b
    says err "nothing to see"
    code 0 "$swerve" status --store "$url"
    says out "3 dead"
}

echo 1..8 >&3
t others_planners_are_confined
t what_must_not_be_in_sight_is_refused
t names_of_others_show_nothing
t forbidden_namespaces_need_a_word
t a_stopped_worker_hands_back
t an_idle_worker_wakes_and_stops
t one_badly_set_up_host_costs_nothing
t two_hosts_blame_the_planner
kill -TERM "$server"
wait "$server"
server=0
[ "$failed" = 0 ]
