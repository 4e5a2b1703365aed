#!/bin/bash
# Goal: `swerve serve` end to end: it says where it listens, serves workers and users, survives
# kill -9 without losing or doubling work, drains on a signal, and refuses what is not safe.
# Method: the built binary on free ports of the loopback device, with small suites. Waiting is by
# polling for a state, never by time.
#
# Usage: test_serve.sh SWERVE
set -u -o pipefail
tap=$(dirname "$(realpath "$0")")/tap.sh
swerve=$(realpath "$1")
work=$(mktemp -d /tmp/swerve-serve-XXXXXX)
secrets=$(mktemp -d /tmp/swerve-serve-XXXXXX) # planners can see what lies in the worker's directory
server=0
cleanup() {
    [ "$server" = 0 ] || kill -9 "$server" 2>/dev/null
    rm -rf "$work" "$secrets"
}
trap cleanup EXIT
cd "$work" || exit 1
unset SWERVE_STORE SWERVE_TOKEN_FILE SWERVE_CA_FILE
# The planners here are builtin ones.
"$swerve" doctor | grep -q "cannot be confined" && export SWERVE_PLANNER_SANDBOX=off
. "$tap"

# until_true COMMAND..: polls until it succeeds; gives up after many tries.
until_true() {
    local tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 3000 ] || { fail "still not so: $*"; return 1; }
        sleep 0.02
    done
}
# phase NAME COUNT: so many connections are in that phase. (grep reads to the end: a curl that cannot
# write would fail the pipe.)
phase() { curl -s "$url/metrics" | grep "^swerve_http_connections{phase=\"$1\"} $2\$" >/dev/null; }
# start ARGUMENTS..: a server; its process in $server, its URL in $url.
start() {
    : >serve.out
    "$swerve" serve "$@" >serve.out 2>serve.err &
    server=$!
    until [ -s serve.out ]; do
        kill -0 "$server" 2>/dev/null || { fail "the server ended: $(cat serve.err)"; return 1; }
        sleep 0.02
    done
    url=$(head -1 serve.out)
}
# stop SIGNAL EXPECTED: ends the server; its exit code.
stop() {
    kill "-$1" "$server"
    wait "$server" 2>/dev/null
    local found=$?
    server=0
    [ "$found" = "$2" ] || fail "expected the server to exit with $2, found $found: $(cat serve.err)"
}

cat >drive.json <<'JSON'
{"id": "drive", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5,
 "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 6,
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 9, "behaviour": "idm"}]}
JSON
echo '{"id": "small", "seeds": 4, "scenarios": [{"file": "drive.json"}]}' >suite.json

serves_until_it_is_told_to_stop() {
    start --store a.db --listen 127.0.0.1:0 || return
    [[ $url == http://127.0.0.1:* ]] || fail "expected a URL, found $url"
    code 0 "$swerve" submit suite.json --store "$url"
    code 0 "$swerve" worker --store "$url" --drain
    code 0 "$swerve" status --store "$url"
    says out small
    stop TERM 0
    start --store a.db --listen 127.0.0.1:0 || return
    stop INT 0
}

one_process_owns_the_store() {
    start --store a.db --listen 127.0.0.1:0 || return
    code 4 "$swerve" serve --store a.db --listen 127.0.0.1:0
    says err "process $server owns the store"
    code 4 "$swerve" serve --store b.db --listen "${url#http://}"
    says err "cannot listen on"
    # The path itself still works on this machine: it leads to the server.
    code 0 "$swerve" status --store a.db
    stop TERM 0
}

a_killed_server_loses_nothing() {
    start --store k.db --listen 127.0.0.1:0 || return
    local place=${url#http://}
    code 0 "$swerve" submit suite.json --store "$url"
    # A claim whose worker never comes back, then the server goes down hard.
    curl -sf "$url/v1/workers/lost/claim" \
        -d '{"pool":"bulk","device":"cpu","max":1,"claim_id":1}' >claim.json || fail "no claim"
    says claim.json '"epoch":1'
    stop KILL 137
    start --store k.db --listen "$place" || return
    # The same claim again gets the same lease.
    curl -sf "$url/v1/workers/lost/claim" \
        -d '{"pool":"bulk","device":"cpu","max":1,"claim_id":1}' >again.json || fail "no claim"
    cmp -s claim.json again.json || fail "the repeated claim got something else"
    # Told that the worker is dead, its job comes back under a new epoch and all are done once.
    curl -sf "$url/v1/workers/lost/gone" -d '{}' >/dev/null || fail "gone"
    code 0 "$swerve" worker --store "$url" --drain
    curl -sf "$url/v1/suites/$(curl -sf "$url/v1/suites" | grep -o "small-[0-9a-f]*")" >suite.status ||
        fail "no status"
    says suite.status '"done":4'
    stop TERM 0
}

# A limit on the size of files is an answer to who submits, not a signal that ends the server.
a_damaged_artifact_is_in_the_log() {
    local file
    code 0 "$swerve" run drive.json --world object --store damaged.db
    file=$(find damaged.db.artifacts -name '*.zst' | head -1)
    printf 'xxxx' | dd of="$file" bs=1 seek=40 conv=notrunc status=none
    start --store damaged.db --listen 127.0.0.1:0 || return
    curl -s "$url/v1/artifacts/$(basename "$file" .zst)" >out
    says out "the artifact is damaged"
    stop TERM 0
    says serve.err "is answered 500: "
    says serve.err "the artifact is damaged"
}
a_limit_on_files_does_not_kill_the_server() {
    ulimit -S -f 1000
    start --store limit.db --listen 127.0.0.1:0 || return
    ulimit -S -f "$(ulimit -H -f)"
    echo '{"id": "wide", "seeds": 3000, "scenarios": [{"file": "drive.json"}]}' >wide.json
    local tries=0
    while "$swerve" submit wide.json --store "$url" >out 2>err; do
        tries=$((tries + 1))
        [ $tries -lt 20 ] || { fail "20 suites fit into a file of 1 MB"; break; }
        sed -i "s/\"wide[0-9]*\"/\"wide$tries\"/" wide.json
    done
    says err "disk"
    code 0 "$swerve" status --store "$url"
    stop TERM 0
    code 0 "$swerve" check --store limit.db
}

refuses_the_clear_beyond_loopback() {
    code 2 "$swerve" serve --store r.db --listen 0.0.0.0:0
    says err "to everybody on 0.0.0.0:"
    code 0 "$swerve" token add root --role admin --tokens r.tokens
    code 2 "$swerve" serve --store r.db --listen 0.0.0.0:0 --tokens r.tokens
    says err "refusing to listen in the clear on 0.0.0.0:"
    [ ! -e r.db ] || fail "the store was made all the same"
    code 2 "$swerve" serve --store r.db --listen nonsense
    says err "expected ADDR:PORT"
    code 2 "$swerve" serve --store http://127.0.0.1:1 --listen 127.0.0.1:0
    says err "the path of a database"
}

# A claim that waits for a minute ends with the server; a client that sends slowly is given time,
# unless a second signal says that there is none.
insist() { # again until it is gone: one that comes within a second of the first says nothing new
    kill -TERM "$server" 2>/dev/null
    ! kill -0 "$server" 2>/dev/null
}
a_signal_drains_and_a_second_one_does_not() {
    start --store d.db --listen 127.0.0.1:0 --verbose || return
    curl -s "$url/v1/workers/w/claim" \
        -d '{"pool":"bulk","device":"cpu","max":1,"wait_ms":60000,"claim_id":1}' >claim.json &
    local claim=$!
    until_true phase handling 2 || return # it and the question
    stop TERM 0
    wait "$claim"
    says claim.json '"leases":[]'
    start --store d.db --listen 127.0.0.1:0 --verbose || return
    exec 4<>"/dev/tcp/127.0.0.1/${url##*:}"
    printf 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{' >&4
    until_true phase receiving 1 || return
    kill -TERM "$server"
    until_true grep -q "finishing the requests" serve.err || return
    kill -0 "$server" 2>/dev/null || fail "the server did not wait for the request"
    until_true insist
    wait "$server" 2>/dev/null
    [ $? = 143 ] || fail "expected the server to exit with 143: $(cat serve.err)"
    server=0
    exec 4>&-
}

# as NAME COMMAND..: with that token, trusting the first certificate.
as() { SWERVE_CA_FILE=one.cert SWERVE_TOKEN_FILE="$secrets/$1" "${@:2}"; }
certificate() { # NAME: NAME.cert and NAME.key
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$1.key" -out "$1.cert" 2>/dev/null
}

tokens_and_tls_from_end_to_end() {
    certificate one
    certificate two
    cp one.cert now.cert && cp -p one.key now.key
    code 0 "$swerve" token add alice --role submit --store t.db --output "$secrets/alice"
    code 0 "$swerve" token add workers --role worker --pool bulk --store t.db --output "$secrets/worker"
    [ "$(stat -c %a "$secrets"/* t.db.tokens | sort -u)" = 600 ] || fail "tokens can be read by others"
    start --store t.db --listen 0.0.0.0:0 --tls-cert now.cert --tls-key now.key || return
    local https="https://127.0.0.1:${url##*:}"
    [[ $url == https://0.0.0.0:* ]] || fail "expected an https URL, found $url"
    code 4 env SWERVE_CA_FILE=one.cert "$swerve" status --store "$https"
    code 4 as alice "$swerve" status --store "http://${https#https://}"
    says err "name it with https://"
    code 0 as alice "$swerve" submit suite.json --store "$https"
    code 4 as alice "$swerve" worker --store "$https" --drain
    code 0 as worker "$swerve" worker --store "$https" --drain
    code 0 as alice "$swerve" status --store "$https"
    says out "4 done"
    # A revoked token and a new certificate take effect while the server runs.
    code 0 "$swerve" token revoke workers --store t.db
    code 4 as worker "$swerve" worker --store "$https" --drain
    cp two.cert now.cert && cp -p two.key now.key
    kill -HUP "$server"
    until_true curl -sf -o healthz --cacert two.cert "$https/healthz"
    ! grep -q "$(tail -c 60 "$secrets/alice")" serve.err t.db.tokens || fail "a token was written down"
    stop TERM 0
}

token_command_says_what_is_wrong() {
    code 0 "$swerve" token add bob --role read --tokens b.tokens
    grep -qx 'swt_[0-9a-f]\{64\}' out || fail "expected a token on stdout, found $(cat out)"
    code 0 "$swerve" token ls --tokens b.tokens
    grep -q '^[^ ]* *bob .* [0-9-]\{10\} [0-9]\{2\}:[0-9]\{2\}:[0-9]\{2\} UTC ' out || fail "expected a date in UTC, found $(cat out)"
    ! grep -q swt_ out || fail "a secret is listed"
    code 0 "$swerve" token ls --tokens b.tokens --json
    says out '"role": "read"'
    code 2 "$swerve" token add eve --role root --tokens b.tokens
    says err "expected read, submit, worker, admin or driver"
    code 2 "$swerve" token add eve --role worker --tokens b.tokens
    says err "needs the pool"
    chmod 644 b.tokens
    code 3 "$swerve" token ls --tokens b.tokens
    says err "0600"
    code 3 "$swerve" serve --store b.db --tokens b.tokens --listen 127.0.0.1:0
    says err "0600"
}

# A submitter's token speaks for its tenant alone: no other name, no other's suite, no quota of its own making.
tenants_keep_to_themselves() {
    code 0 "$swerve" token add boss --role admin --store tenants.db --output "$secrets/tenants-boss"
    code 0 "$swerve" token add ann --role submit --tenant acme --store tenants.db --output "$secrets/ann"
    code 0 "$swerve" token add bob --role submit --tenant beta --store tenants.db --output "$secrets/bob"
    code 2 "$swerve" token add eve --role read --tenant acme --store tenants.db
    code 0 "$swerve" token add eve --role worker --pool bulk --tenant acme --store tenants.db --output "$secrets/eve"
    code 0 "$swerve" token ls --store tenants.db
    says out "acme"
    start --store tenants.db --listen 127.0.0.1:0 || return
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 0 "$swerve" tenant set beta --weight 3 --jobs-queued 1 --store "$url"
    says out "beta                     weight 3, queued 0 of 1,"
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 3 "$swerve" tenant set beta --weight 0 --store "$url"
    says err "expected a weight from 1 to 100"
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 2 "$swerve" tenant set beta --usd-day 0.0000001 --store "$url"
    says err "with at most 6 decimals"
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 0 "$swerve" tenant set gamma --usd-day 0.000001 --usd-month 50 --store "$url"
    says out "today \$0.00 of \$0.000001, this month \$0.00 of \$50.00"
    SWERVE_TOKEN_FILE="$secrets/ann" code 4 "$swerve" tenant set acme --weight 100 --store "$url"
    says err "has the role submit, which may not PUT"
    # Two who set different things at one time do not undo each other.
    local round kept=0
    for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        SWERVE_TOKEN_FILE="$secrets/tenants-boss" "$swerve" tenant set gamma --jobs-queued "$round" --store "$url" >/dev/null &
        SWERVE_TOKEN_FILE="$secrets/tenants-boss" "$swerve" tenant set gamma --weight "$((20 + round))" --store "$url" >/dev/null
        wait $!
        SWERVE_TOKEN_FILE="$secrets/ann" "$swerve" tenant ls --store "$url" |
            grep -q "^gamma  *weight $((20 + round)), queued 0 of $round," && kept=$((kept + 1))
    done
    [ "$kept" = 15 ] || fail "of 15 settings made at one time with others $kept were kept"
    SWERVE_TOKEN_FILE="$secrets/ann" code 0 "$swerve" submit suite.json --store "$url"
    suite=$(cut -d: -f1 out)
    SWERVE_TOKEN_FILE="$secrets/bob" code 4 "$swerve" cancel "$suite" --store "$url"
    says err "belongs to another tenant"
    SWERVE_TOKEN_FILE="$secrets/bob" code 4 "$swerve" submit suite.json --tenant acme --store "$url"
    says err "submits for tenant beta, not for tenant \"acme\""
    SWERVE_TOKEN_FILE="$secrets/bob" code 3 "$swerve" submit suite.json --store "$url"
    says err "may have 1 jobs queued and has 0"
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 0 "$swerve" tenant set beta --jobs-queued 0 --store "$url"
    SWERVE_TOKEN_FILE="$secrets/bob" code 0 "$swerve" submit suite.json --store "$url" # a name of its own
    says out "$suite-2"
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 0 "$swerve" tenant set beta --jobs-queued 5000 --store "$url"
    SWERVE_TOKEN_FILE="$secrets/bob" code 3 "$swerve" submit suite.json --seeds 6000 --store "$url"
    says err "3999 of the suite's"
    SWERVE_TOKEN_FILE="$secrets/ann" code 0 "$swerve" tenant ls --store "$url"
    says out "beta                     weight 3, queued"
    # Scenarios that are in the store already were ann's to bring; another text is bob's, and beyond his quota.
    says out "scenarios 0 of any bytes"
    sed 's/"horizon_s": [0-9.]*/"horizon_s": 3/' drive.json >brief.json
    sed 's/drive.json/brief.json/; s/"id": "[a-z]*"/"id": "brief"/' suite.json >briefs.json
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 0 "$swerve" tenant set beta --jobs-queued 0 --scenario-bytes 100 --store "$url"
    SWERVE_TOKEN_FILE="$secrets/bob" code 3 "$swerve" submit briefs.json --store "$url"
    says err "may have 100 bytes of scenarios stored and has 0"
    SWERVE_TOKEN_FILE="$secrets/tenants-boss" code 3 "$swerve" submit briefs.json --tenant beta --store "$url"
    SWERVE_TOKEN_FILE="$secrets/ann" code 0 "$swerve" submit briefs.json --store "$url"
    SWERVE_TOKEN_FILE="$secrets/bob" code 0 "$swerve" submit briefs.json --store "$url"
    says out "-2: 4 jobs"
    SWERVE_TOKEN_FILE="$secrets/ann" code 0 "$swerve" tenant ls --store "$url" --json
    python3 -c 'import json; print([t["scenario_bytes"] > 100 for t in json.load(open("out"))["tenants"]])' |
        grep -qF "[True, False, False]" || fail "scenarios are counted otherwise: $(cat out)"
    stop TERM 0
}

# A price is charged to attempts from then on, over HTTP as in the file; only an administrator sets one.
prices_are_set_by_administrators() {
    code 0 "$swerve" run suite.json --store price.db --json
    python3 -c 'import json; print(json.load(open("out"))["usd"] > 0)' | grep -q True || fail "nothing was charged"
    code 0 "$swerve" token add boss --role admin --store price.db --output "$secrets/boss"
    code 0 "$swerve" token add carol --role submit --store price.db --output "$secrets/carol"
    start --store price.db --listen 127.0.0.1:0 || return
    SWERVE_TOKEN_FILE="$secrets/carol" code 4 "$swerve" price set bulk cpu 0 --store "$url"
    says err "has the role submit, which may not PUT"
    SWERVE_TOKEN_FILE="$secrets/carol" code 0 "$swerve" price ls --store "$url"
    says out "bulk                     cpu      \$0.04 per device-hour"
    SWERVE_TOKEN_FILE="$secrets/boss" code 0 "$swerve" price set bulk cpu 0.25 --store "$url" --json
    says out '"usd_per_hour": 0.25'
    SWERVE_TOKEN_FILE="$secrets/boss" code 0 "$swerve" price set mine tpu 3 --store "$url"
    # Who may not work submits nothing for workers of its own.
    SWERVE_TOKEN_FILE="$secrets/carol" code 4 "$swerve" run suite.json --seeds 7 --store "$url"
    says err "nothing was submitted"
    says err "has the role submit, which may not POST"
    SWERVE_TOKEN_FILE="$secrets/carol" code 0 "$swerve" status --store "$url"
    ! grep -q "[1-9][0-9]* queued" out || fail "jobs were left queued: $(cat out)"
    SWERVE_TOKEN_FILE="$secrets/boss" code 0 "$swerve" run suite.json --seeds 7 --store "$url" --json
    SWERVE_TOKEN_FILE="$secrets/carol" code 0 "$swerve" price show mine tpu --store "$url"
    says out "\$3.00 per device-hour"
    stop TERM 0
    code 0 "$swerve" price show bulk cpu --store price.db
    says out "\$0.25 per device-hour"
    code 0 "$swerve" price set bulk cpu 0 --store price.db
    sed 's/"id": "[a-z]*"/"id": "free"/; s/"seeds": [0-9]*/"seeds": 3/' suite.json >free.json
    sed -i 's/"horizon_s": [0-9.]*/"horizon_s": 4/' drive.json
    code 0 "$swerve" run free.json --store price.db --json
    python3 -c 'import json; d = json.load(open("out")); print(d["rollouts"] > 0 and d["usd"] == 0)' | grep -q True ||
        fail "a free device was charged: $(head -c 300 out)"
    code 3 "$swerve" price show nothing tpu --store price.db
    says err "swerve price set"
    code 2 "$swerve" price set bulk cpu dear --store price.db
    code 2 "$swerve" price set bulk cpu nan --store price.db
    code 2 "$swerve" price set bulk --store price.db
    code 4 "$swerve" price ls --store nowhere.db
}

working() { curl -sf "$url/v1/overview" >overview.json && grep -q '"long-' overview.json &&
    curl -sf "$url/v1/workers" | grep 'bulk-' >/dev/null; }
closed() { ! curl -s "$url/healthz" >/dev/null; }
# A run that would take minutes is looked at and cannot be changed; its dashboard goes with it.
a_run_is_shown_while_it_lasts() {
    sed 's/"id": "drive"/"id": "long"/; s/"horizon_s": [0-9.]*/"horizon_s": 600/' drive.json >long.json
    echo '{"id": "long", "seeds": 5000, "scenarios": [{"file": "long.json"}]}' >longs.json
    "$swerve" run --dashboard longs.json --store show.db --workers 1 >run.out 2>run.err &
    server=$!
    until_true grep -q '^dashboard: ' run.err || return
    url=$(sed -n 's|^dashboard: \(.*\)/ (read-only.*|\1|p' run.err)
    [[ $url == http://127.0.0.1:* ]] || fail "expected a URL, found $(cat run.err)"
    curl -sf "$url/" >page.html || fail "there is no page"
    says page.html "<html"
    until_true working || return
    local before
    before=$(curl -s -o refused.json -w '%{http_code}' "$url/v1/suites/long/cancel" -d '{}')
    [ "$before" = 403 ] || fail "expected 403, found $before"
    says refused.json "changes nothing"
    code 4 "$swerve" run suite.json --store other.db --dashboard "${url#http://}"
    says err "cannot listen on"
    [ ! -e other.db ] || fail "a store was made without the dashboard that was asked for"
    stop TERM 143
    [ ! -s run.out ] || fail "an interrupted run wrote to stdout: $(head -c 300 run.out)"
    closed || fail "the dashboard outlived the run"
    # Its store is as any other.
    start --store show.db --listen 127.0.0.1:0 || return
    working || curl -sf "$url/v1/overview" | grep '"long-' >/dev/null || fail "the suite is gone"
    code 4 "$swerve" run suite.json --store show.db --dashboard=127.0.0.1:0
    says err "process $server owns the store"
    stop TERM 0
}

a_dashboard_is_for_this_machine_unless_there_are_tokens() {
    code 0 "$swerve" run suite.json --store small.db --json --dashboard 127.0.0.1:0
    says err "dashboard: http://127.0.0.1:"
    says out '"store": "small.db"'
    code 2 "$swerve" run suite.json --store wide.db --dashboard 0.0.0.0:0
    says err "to everybody on 0.0.0.0:"
    code 2 "$swerve" run suite.json --store http://127.0.0.1:1 --dashboard
    says err "expected --store with the path of a database"
    code 2 "$swerve" run suite.json --store wide.db --tokens w.tokens
    says err "go with --dashboard"
    code 0 "$swerve" token add me --role admin --store wide.db
    code 2 "$swerve" run suite.json --store wide.db --dashboard 0.0.0.0:0
    says err "refusing to listen in the clear on 0.0.0.0:"
    [ ! -e wide.db ] || fail "the store was made all the same"
    code 0 "$swerve" run suite.json --store wide.db --dashboard 0.0.0.0:0 --insecure
    says err "dashboard: http://0.0.0.0:"
}

# Each connection has a thread, and each thread all of the program's own variables: what one command needs would cost all of them.
threads_have_little_of_their_own() {
    grep -qa "__asan_init\|__tsan_init" "$swerve" && return
    local bytes
    bytes=$(python3 - "$swerve" <<'PY'
import struct, sys
image = open(sys.argv[1], "rb").read()
(start,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
headers = [struct.unpack_from("<IIQQQQQQ", image, start + i * size) for i in range(count)]
print(sum(header[6] for header in headers if header[0] == 7))  # PT_TLS
PY
    )
    [ "$bytes" -lt 4096 ] || fail "a thread begins with $bytes bytes of variables"
}

# Goal: whoever is named by --notify is told once of each suite's end, one that was done in a moment too; one
# that fails is told of no other suite before the next look.
a_webhook_is_told_of_ends() {
    cat >hook.py <<'PY'
import http.server, sys
class Hook(http.server.BaseHTTPRequestHandler):
    refused = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Hook.refused += 1
        self.send_response(500 if Hook.refused == 1 else 204)
        self.end_headers()
        with open("told", "a") as told:
            print(self.headers["Content-Type"], Hook.refused, body, file=told)
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
open("hook.port", "w").write(str(server.server_port))
server.serve_forever()
PY
    (exec python3 -S hook.py) >hook.out 2>&1 3>&- &
    local hook=$!
    until_true [ -s hook.port ]
    code 0 "$swerve" run suite.json --store hook.db
    start --store hook.db --listen 127.0.0.1:0 --notify "http://127.0.0.1:$(cat hook.port)/secret"
    code 0 "$swerve" submit suite.json --store "$url" --fresh --name one
    code 0 "$swerve" submit suite.json --store "$url" --fresh --name two
    code 0 "$swerve" run suite.json --store "$url" --fresh --name again
    code 0 "$swerve" worker --store "$url" --drain
    until_true grep -q '^application/json 4 ' told
    stop TERM 0
    kill "$hook"
    [ "$(wc -l <told)" = 4 ] || fail "told: $(cat told)"
    [ "$(sed -n 1,2p told | grep -o '"suite":"[^"]*"' | sort -u | wc -l)" = 1 ] || fail "told: $(cat told)"
    says told '"event":"suite_ended","suite":"again-'
    says told '"of":"main_lines"'
    says serve.err 'not delivered: http://127.0.0.1:'
    grep -q secret serve.err && fail "the webhook's path was told"
    code 2 "$swerve" serve --store hook.db --listen 127.0.0.1:0 --notify nowhere
    says err '--notify: expected an address'
}

echo "1..15" >&3
t threads_have_little_of_their_own
t serves_until_it_is_told_to_stop
t one_process_owns_the_store
t a_killed_server_loses_nothing
t a_damaged_artifact_is_in_the_log
t a_limit_on_files_does_not_kill_the_server
t refuses_the_clear_beyond_loopback
t a_signal_drains_and_a_second_one_does_not
t tokens_and_tls_from_end_to_end
t token_command_says_what_is_wrong
t prices_are_set_by_administrators
t tenants_keep_to_themselves
t a_run_is_shown_while_it_lasts
t a_webhook_is_told_of_ends
t a_dashboard_is_for_this_machine_unless_there_are_tokens
exit $((failed > 0))
