#!/bin/bash
# Goal: text that others wrote (scenarios, planners, a server) reaches a terminal without anything
# that the terminal would obey, hide or reorder; what is printed as JSON keeps its meaning.
# Method: hostile titles, tags, file names, planners and a server that answers with hostile ids; every
# command's stdout and stderr is read byte by byte.
#
# Usage: test_terminal.sh SWERVE SOURCE_ROOT
set -u -o pipefail
tap=$(dirname "$(realpath "$0")")/tap.sh
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-terminal-XXXXXX)
server=0
cleanup() {
    [ "$server" = 0 ] || kill -9 "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1
unset SWERVE_STORE SWERVE_TOKEN_FILE SWERVE_CA_FILE
export SWERVE_PLANNER_SANDBOX=off # the planner here is ours, and the machine may have no sandbox
. "$tap"

# ESC, C1's CSI as UTF-8 and as a bare byte, a bidirectional override, a zero-width space, BEL, DEL.
evil=$'\e]0;owned\a\xc2\x9b31m\xe2\x80\xae\xe2\x80\x8b\x7f'
raw=$evil$'\x9b2J'

# Controls, bytes that are no UTF-8, characters that are not seen.
hostile='[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|(?<![\x80-\xf4])[\x80-\xbf]|\xe2\x80[\x8b-\x8f\xa8-\xae]'
hostile+='|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf'

# plain COMMAND..: whatever its exit code, nothing hostile in what it prints.
plain() {
    "$@" >out 2>err
    LC_ALL=C grep -aqP "$hostile" out err &&
        fail "$(printf '%q ' "$@"): $(LC_ALL=C grep -anP "$hostile" out err | head -c 300 | cat -v)"
}
# shows COMMAND..: the same, and it prints something of the hostile text, spelled out.
shows() {
    plain "$@"
    grep -qE 'u001b|u009b|\?\]0;owned' out err || fail "$(printf '%q ' "$@"): nothing hostile was shown: $(head -c 300 out err)"
}

python3 - "$evil" <<'PY'
import json, sys
evil = sys.argv[1]
drive = {"id": "drive", "title": "title " + evil, "source": evil, "prompt": evil,
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 2,
 "branches": [{"id": "brake", "at_tick": 5, "interventions": [{"kind": "ego_brake", "decel_mps2": 4}]}]}
json.dump(drive, open("drive.json", "w"))
json.dump({"id": "suite", "title": evil, "scenarios": [{"file": "drive.json"}]}, open("suite.json", "w"))
json.dump({"id": "bad" + evil, "scenarios": [{"file": "drive.json"}]}, open("bad.json", "w"))
PY
cat >planner.py <<'PY'
import os, sys
sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))
import swerve_planner
class Hostile(swerve_planner.Planner):
    def act(self, observation):
        if observation.tick == 3:
            sys.stderr.buffer.write(b"\x1b[2J\xc2\x9b31m\xe2\x80\xae\x9b stderr of the planner\n")
            sys.stderr.flush()
            os._exit(3)
        return 0.0, 0.0
swerve_planner.run(Hostile)
PY

scenarios_and_suites() {
    plain "$swerve" validate suite.json
    plain "$swerve" coverage suite.json
    plain "$swerve" coverage suite.json --json
    plain "$swerve" dossier suite.json
    shows "$swerve" validate bad.json
    shows "$swerve" validate "$raw.json"
    shows "$swerve" run bad.json --store a.db
    shows "$swerve" run "$raw.json" --store a.db
    shows "$swerve" import commonroad "$raw.xml" -o out.json
    shows "$swerve" submit "$raw.json" --store a.db
    shows "$swerve" datagen "$raw.json" -o shards
}
words_of_planners() {
    shows "$swerve" run suite.json --store a.db --planner "exec:python3 -S planner.py $root $evil" --workers 1 --verbose
    shows "$swerve" run suite.json --store b.db --planner "exec:python3 -S planner.py $root $evil" --workers 1 --json
    shows "$swerve" run suite.json --store c.db --planner "exec:$raw" --workers 1
    shows "$swerve" run suite.json --store c.db --planner "plugin:$raw.so" --workers 1
    shows "$swerve" report --store a.db
    shows "$swerve" report --store a.db --json
    shows "$swerve" show 1 --store a.db
    shows "$swerve" show --all --store a.db
    shows "$swerve" show 1 --scenario --store a.db
    plain "$swerve" show 1 --trace --store a.db
    shows "$swerve" show 1 --stderr --store a.db
    shows "$swerve" export --format csv --store a.db
    shows "$swerve" export --format jsonl --store a.db
    shows "$swerve" export --format junit --store a.db
    plain "$swerve" export --format markdown --store a.db
    plain "$swerve" replay --all --store a.db
    plain "$swerve" replay --all --store a.db --json
}
# A database that somebody edited: ids that no submission could make.
names_in_the_store() {
    code 0 "$swerve" run suite.json --store d.db
    grep -aF 'u000a' out err && fail "a line feed of our own is spelled out" # text_print keeps those at the ends of a format alone
    python3 - "$evil" <<'PY' || fail "the database cannot be edited"
import re, sqlite3, sys
db = sqlite3.connect("d.db")
db.execute("PRAGMA foreign_keys=OFF")
for table, column in [(t, c[1]) for (t,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
                      for c in db.execute(f"PRAGMA table_info({t})").fetchall()]:
    if column in ("scenario_id", "branch_id", "value"):
        try:
            db.execute(f"UPDATE {table} SET {column} = 'x' || ?", (sys.argv[1],))
        except sqlite3.Error:
            pass
db.commit()
PY
    local command
    for command in status report "show --all" "replay --all" "show 1" "show 2"; do
        # shellcheck disable=SC2086 # words of a command
        plain "$swerve" $command --store d.db
        # shellcheck disable=SC2086
        plain "$swerve" $command --store d.db --json
    done
    shows "$swerve" show --all --store d.db
}
json_keeps_its_meaning() {
    "$swerve" show 1 --scenario --store a.db >scenario.json
    python3 - "$evil" <<'PY' 2>pyerr || fail "$(tail -1 pyerr)"
import json, sys
assert json.load(open("scenario.json"))["title"] == "title " + sys.argv[1]
PY
}
words_of_a_server() {
    cat >server.py <<'PY'
import http.server, json, sys
evil = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.startswith("/v1/suites") and self.path.count("/") == 2:
            code, body = 200, {"suites": ["id\n" + evil]}
        else:
            code, body = 409, {"error": {"status": "conflict", "text": "refused " + evil}, "status": "conflict", "text": "refused " + evil, "message": evil}
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_PUT = do_POST = answer
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
    command python3 server.py "$evil" >port 2>server.err & # the process itself: it is killed
    server=$!
    until [ -s port ]; do
        kill -0 "$server" || { fail "$(cat server.err)"; return; }
        sleep 0.02
    done
    local url command
    url=http://127.0.0.1:$(cat port)
    for command in "status" "report" "show 1" "cancel suite" "show --all" "submit suite.json" "replay 1"; do
        # shellcheck disable=SC2086
        plain "$swerve" $command --store "$url"
        [ -s err ] || fail "$command: expected an error"
    done
    kill -9 "$server"
    wait "$server" 2>/dev/null
    server=0
}
command_lines() {
    shows "$swerve" "$raw"
    shows "$swerve" status "--$raw"
    shows "$swerve" status --store "$raw/x.db"
    shows "$swerve" cancel "$raw" --store a.db
    shows "$swerve" cancel "$raw" --store a.db --json
    shows "$swerve" status "$raw" --store a.db
    shows "$swerve" report "$raw" --store a.db
    shows "$swerve" show "$raw" --store a.db
    shows "$swerve" run suite.json --world "$raw" --store a.db
    shows "$swerve" model ls --models "$raw"
    shows "$swerve" model promote "$raw"
    shows "$swerve" worker --store "$raw/x.db"
    shows "$swerve" serve --store "$raw/x.db" --listen "$raw"
    mkdir -p models && printf 'x' >"models/$raw.safetensors"
    shows "$swerve" model ls --models models
    plain "$swerve" doctor
}
# Sources: a command that printed by itself would not be seen by the tests above until it met such text. The one line that
# may, numbers that are written again and again, shows that this looks where it should.
commands_print_through_one_place() {
    local found
    found=$(cd "$root" && grep -rnE --include='*.c' '(^|[^a-z_])(printf|puts|putchar|perror)\(|fprintf\((stdout|stderr|stream)|fputs\([^;]*(stdout|stderr)\)|json_dumpf\([^;]*stdout' \
        cli report worker)
    [ "$(grep -c 'fprintf(stderr, "%s%s%s%lld/%lld rollouts' <<<"$found")" = 1 ] && [ "$(wc -l <<<"$found")" = 1 ] ||
        fail "use text_print: $found"
}

t scenarios_and_suites
t words_of_planners
t names_in_the_store
t json_keeps_its_meaning
t words_of_a_server
t command_lines
t commands_print_through_one_place
echo "1..$count"
[ "$failed" = 0 ]
