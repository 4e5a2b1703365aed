#!/bin/bash
# Goal: what a store reports cannot be edited unnoticed: replay compares every figure that a replay
# makes, and check finds everything that does not fit together.
# Method: a small finished store; one value, row or artifact at a time is changed in a copy of it,
# and the commands must say so. edit_store.py lists what can be changed from the schema itself, so that a
# new column is tried as well.
#
# Usage: test_check.sh SWERVE SOURCE_ROOT
set -u -o pipefail
here=$(dirname "$(realpath "$0")")
swerve=$(realpath "$1")
root=$(realpath "$2")
work=$(mktemp -d /tmp/swerve-check-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset SWERVE_STORE
. "$here/tap.sh"

# holds PYTHON FILE: an expression over the JSON `d` of the file is true.
holds() {
    python3 -c 'import json,sys; d=json.load(open(sys.argv[2])); assert eval(sys.argv[1]), sys.argv[1]' \
        "$1" "$2" 2>pyerr || fail "$2: $(tail -1 pyerr)"
}
# sql STORE STATEMENT: changes the file as any SQLite client could.
sql() {
    python3 -c 'import sqlite3,sys
db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit(); db.close()' "$@"
}
# fresh: a copy of the finished store, in x.db.
fresh() {
    rm -rf x.db*
    cp -r a.db.artifacts x.db.artifacts
    cp a.db x.db
}

cat >drive.json <<'JSON'
{"id": "drive", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5,
 "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 3,
 "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 9, "behaviour": "idm"}],
 "branches": [{"id": "brake", "at_tick": 20, "interventions": [{"kind": "ego_brake", "decel_mps2": 4}]}]}
JSON
echo '{"id": "pair", "seeds": 2, "scenarios": [{"file": "drive.json"}]}' >pair.json
"$swerve" run pair.json --store a.db >out 2>err || { cat err; exit 1; }

# Each figure is edited in another outcome of one store.
replay_compares_every_figure() {
    echo '{"id": "many", "seeds": 22, "scenarios": [{"file": "drive.json"}]}' >many.json
    code 0 "$swerve" run many.json --store x.db
    cat >figures.py <<'PY'
import json, sqlite3, subprocess, sys
# Everything that a replay makes; the rest of a row is check's to guard.
slices = "weather light road geography actor scenario_type".split()
own = "scenario_id verdict ticks prefix_ticks metres_mm trace_hash safety_critical artifact_hash error".split()
metrics = """no_at_fault_collision drivable_area driving_direction making_progress progress ttc
speed_limit comfort score min_ttc_s min_distance_m impact_speed_mps progress_m distance_m
speed_max_mps accel_min_mps2 jerk_max_mps3 intervention_count collision_count collision_tick
collision_agent collision_kind at_fault goal_reached lataccel_cost jerk_cost total_cost""".split()
names = {c: "slices." + c for c in slices} | {c: c for c in own} | {c: "metrics." + c for c in metrics}
names["reasons"] = "reasons"
def edited(column, value):
    if column in slices or column in ("scenario_id", "error"):
        return "edited"
    if column.endswith("_hash"):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    if column in ("verdict", "collision_kind", "safety_critical", "at_fault", "goal_reached"):
        return 1 - min(value, 1)
    return 3 if value is None or abs(value) > 1e300 else value + 3
db = sqlite3.connect("x.db")
for i, column in enumerate(names):
    value, = db.execute(f"SELECT {column} FROM outcomes WHERE id = ?", (i + 1,)).fetchone()
    db.execute(f"UPDATE outcomes SET {column} = ? WHERE id = ?", (edited(column, value), i + 1))
db.commit()
db.close()
run = subprocess.run([sys.argv[1], "replay", "--all", "--store", "x.db", "--json"], stdout=subprocess.PIPE)
assert run.returncode == 1, run.returncode
found = json.loads(run.stdout)
fields = {o["outcome"]: [r["field"] for r in o["differences"]] for o in found["outcomes"]}
for i, (column, name) in enumerate(names.items()):
    assert fields[i + 1] == [name], (column, fields[i + 1])
assert found["different"] == len(names) and found["identical"] == 44 - len(names), found["different"]
PY
    python3 figures.py "$swerve" 2>pyerr || fail "$(tail -1 pyerr)"
}
replay_names_stored_and_replayed_values() {
    fresh
    sql x.db "UPDATE outcomes SET score = 0.25 WHERE id = 1"
    code 1 "$swerve" replay --all --store x.db --json
    holds '[(o["outcome"], r["field"], r["stored"]) for o in d["outcomes"] for r in o["differences"]] == [(1, "metrics.score", "0.25")]' out
    holds 'all(float(r["replayed"]) != 0.25 for o in d["outcomes"] for r in o["differences"])' out
    holds 'd["identical"] == 3 and d["different"] == 1 and d["missing"] == 0' out
    code 1 "$swerve" replay 1 --store x.db
    says out "stored   0.25"
    code 0 "$swerve" replay 2 --store x.db
}
replay_tells_other_revisions_from_differences() {
    fresh
    sql x.db "UPDATE outcomes SET score = 0.25 WHERE id = 1"
    sql x.db "UPDATE contexts SET revision = replace(hex(zeroblob(32)), '0', 'a')"
    code 1 "$swerve" replay --all --store x.db
    says out "outcome 1: OF ANOTHER REVISION (drive, seed 1)"
    says out "recorded by simulation revision aaaaaaaaaaaa, this is"
    says out "3 identical, 0 different, 1 of another revision, which may differ"
    code 1 "$swerve" replay --all --store x.db --json
    holds 'd["identical"] == 3 and d["different"] == 1 and d["of_another_revision"] == 1' out
}
replay_misses_deleted_outcomes() {
    fresh
    sql x.db "DELETE FROM outcomes WHERE id = 2"
    code 1 "$swerve" replay --all --store x.db
    says out "job 1: OUTCOME MISSING (drive, branch brake, seed 1): the job is done, with 2 rollouts"
    says out "3 identical, 0 different, 1 missing"
    sql x.db "DELETE FROM outcomes WHERE job = 2"
    code 1 "$swerve" replay --all --store x.db --json
    holds '[(m["job"], m["branch"]) for m in d["missing_outcomes"]] == [(1, "brake"), (2, ""), (2, "brake")]' out
    sql x.db "DELETE FROM outcomes"
    code 1 "$swerve" replay --all --store x.db --suite "$(python3 -c 'import sqlite3
print(sqlite3.connect("x.db").execute("SELECT name FROM suites").fetchone()[0])')"
    says out "0 identical, 0 different, 4 missing"
    code 0 "$swerve" submit drive.json --store waits.db
    code 3 "$swerve" replay --all --store waits.db
    says err "expected outcomes to drive again, found none in the store"
}
replay_opens_artifacts() {
    fresh
    local file
    file=$(find x.db.artifacts -name '*.zst' | sort | head -1)
    rm "$file"
    code 1 "$swerve" replay --all --store x.db
    says out "there is no such artifact"
    says out "2 identical, 2 different"
    fresh
    printf X | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null
    code 1 "$swerve" replay --all --store x.db
    says out "the artifact is damaged"
    # Each whole, under its own name, but the other job's. Both seeds drive alike, so only a
    # recording of another drive differs.
    fresh
    sed 's/"speed_mps": 12/"speed_mps": 11/; s/"drive"/"slower"/' drive.json >slower.json
    cp a.db.artifacts/*/*.zst . 2>/dev/null
    code 0 "$swerve" run slower.json --store x.db
    sql x.db "UPDATE outcomes SET artifact_hash = (SELECT artifact_hash FROM outcomes WHERE id = 5) WHERE id = 1"
    code 1 "$swerve" replay 1 --store x.db
    says out "  artifact "
    says out "stored   tick 0: x"
}
replay_reads_the_scenario_under_its_hash() {
    fresh
    sql x.db "UPDATE scenarios SET body = CAST(replace(CAST(body AS TEXT), '2000', '2001') AS BLOB)"
    code 4 "$swerve" replay --all --store x.db
    says err "the store's text of it is another one"
}
numbers_that_name_nothing_are_refused() {
    local edit
    for edit in "outcomes SET collision_kind = 99" "contexts SET tier = 99"; do
        fresh
        sql x.db "UPDATE $edit"
        code 4 "$swerve" replay --all --store x.db
        says err "is none that there is"
        code 4 "$swerve" show 1 --store x.db
        says err "is none that there is"
    done
}

check_finds_nothing_in_a_good_store() {
    fresh
    sha256sum x.db >before
    code 0 "$swerve" check --store x.db
    says out "1 suite, 2 jobs, 2 attempts, 4 outcomes"
    says out "everything fits together"
    sha256sum x.db | cmp -s - before || fail "the store was changed"
    code 0 "$swerve" check --store x.db --json
    holds 'd["faults"] == d["notes"] == 0 and d["findings"] == [] and d["artifacts"] == len(d["digest"]) / 32' out
    code 4 "$swerve" check --store nothing.db
    code 2 "$swerve" check --store http://localhost:1
    says err "reads the store's files: run it on the machine that has them"
    code 7 "$swerve" check --store 'postgresql:///swerve?host=/nowhere'
    says err "does not answer"
    code 2 "$swerve" store backup x --store postgresql://localhost/swerve
    says err "a store in PostgreSQL has none: back it up with pg_dump"
    code 2 "$swerve" check --store x.db --findings 0
}
check_notices_every_edit() {
    fresh
    echo '{"id": "again", "scenarios": [{"file": "drive.json"}]}' >again.json
    code 0 "$swerve" run again.json --store x.db
    # Rows of every table: a planner that does not start, a log that was damaged a little.
    printf '#!/bin/sh\nexit 1\n' >bad.sh
    chmod +x bad.sh
    code 0 "$swerve" submit again.json --store x.db --planner "exec:./bad.sh"
    code 6 "$swerve" worker --store x.db --drain
    sql x.db "INSERT INTO log_losses VALUES (1, 5, 2, 0)"
    code 0 "$swerve" check --store x.db
    code 0 python3 "$here/edit_store.py" "$swerve" x.db "${SWERVE_TEST_SEED:-1}" "${SWERVE_TEST_ROWS:-1}"
    grep -q "^not noticed" out && fail "$(cat out)"
}
check_notices_rows_that_come_and_go() {
    local edit
    for edit in "DELETE FROM outcomes WHERE id = 2" "DELETE FROM attempts WHERE job = 1" \
        "DELETE FROM ledger" "DELETE FROM accounts" "DELETE FROM job_specs WHERE job = 2" \
        "UPDATE outcomes SET digest = NULL" \
        "UPDATE outcomes SET pages_used_percent = pages_used_percent + 4294967296 WHERE id = 1" \
        "INSERT INTO attempts SELECT job, 2, worker, pool, device, tier, ending, 0, 0, price_uusd_per_hour, 0, NULL, NULL, NULL, 0, NULL FROM attempts WHERE job = 1" \
        "UPDATE jobs SET state = 0 WHERE id = 1" "UPDATE jobs SET epoch = 0" \
        "UPDATE outcomes SET score = 0.5, digest = randomblob(32) WHERE id = 1" \
        "UPDATE suites SET jobs_handed_back = 1" "UPDATE pools SET jobs_handed_back = 1" \
        "INSERT INTO hand_backs VALUES (1, 9, 1, 0)" \
        "UPDATE outcomes SET id = 9 - id WHERE id IN (4, 3)"; do
        fresh
        sql x.db "$edit"
        code 4 "$swerve" check --store x.db
        says out "fault: "
    done
}
outcomes_from_before_digests_are_told() {
    fresh
    sql x.db "UPDATE outcomes SET digest = NULL; UPDATE suites SET outcomes_digested = 0, outcomes_digest = zeroblob(32)"
    code 0 "$swerve" check --store x.db --json
    holds 'd["outcomes_undigested"] == 4 and [f["kind"] for f in d["findings"]] == ["undigested"]' out
    # New outcomes beside them are guarded.
    code 0 "$swerve" run many.json --store x.db
    code 0 "$swerve" check --store x.db
    sql x.db "UPDATE outcomes SET score = score / 2 WHERE id = 40"
    code 4 "$swerve" check --store x.db
    says out "fault: outcome 40: is not what was stored"
}
check_notices_artifacts() {
    fresh
    local file other
    file=$(find x.db.artifacts -name '*.zst' | sort | head -1)
    printf X | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null
    code 4 "$swerve" check --store x.db
    says out "the artifact is damaged"
    code 0 "$swerve" check --store x.db --skip-artifacts
    truncate -s 50 "$file"
    code 4 "$swerve" check --store x.db
    : >"$file"
    code 4 "$swerve" check --store x.db
    rm "$file"
    code 4 "$swerve" check --store x.db --json
    holds '[(f["severity"], f["kind"]) for f in d["findings"]] == [("fault", "artifact")]' out
    holds '"of outcome" in d["findings"][0]["place"] and "is not there" in d["findings"][0]["text"]' out
    # Another one, whole, under its name: the contents are not those of the name.
    fresh
    other=$(find x.db.artifacts -name '*.zst' | sort | tail -1)
    [ "$other" != "$file" ] || fail "one artifact for both seeds"
    cp "$other" "$file"
    code 4 "$swerve" check --store x.db
    says out "its contents are not those of its name"
    # One that nobody refers to does no harm, and is told.
    fresh
    sed 's/"speed_mps": 12/"speed_mps": 11/; s/"drive"/"slower"/' drive.json >slower.json
    code 0 "$swerve" run slower.json --store y.db
    cp -r y.db.artifacts/. x.db.artifacts/
    touch -d "1 hour ago" x.db.artifacts/*/*.zst
    code 0 "$swerve" check --store x.db
    says out "nothing refers to 1 artifacts"
}
# A stranger's openssl verifies the text that is signed; each edit of the store, the text, its signature or the key shows.
a_check_can_be_signed() {
    fresh
    openssl genpkey -algorithm ed25519 -out key.pem
    openssl pkey -in key.pem -pubout -out public.pem
    code 0 "$swerve" check --store x.db --sign-key key.pem
    code 0 openssl pkeyutl -verify -rawin -pubin -inkey public.pem -in x.db.statement -sigfile x.db.statement.sig
    code 0 "$swerve" check --store x.db --verify-key public.pem --json
    holds 'd["suites_verified"] == 1 and d["faults"] == 0 and not d["signed"]' out
    openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out other.pem
    code 1 "$swerve" check --store x.db --verify-key other.pem
    says err "the signature is not of this text by the key in other.pem"
    openssl genpkey -algorithm x25519 | openssl pkey -pubout -out wrong.pem
    code 3 "$swerve" check --store x.db --verify-key wrong.pem
    says err "wrong.pem: expected a public key of Ed25519, found"
    code 3 "$swerve" check --store x.db --sign-key public.pem
    says err "public.pem: expected a private key of Ed25519"
    cp x.db.statement said
    cp x.db.statement.sig said.sig
    code 0 "$swerve" run pair.json --seeds 3 --store x.db
    code 0 "$swerve" check --store x.db --verify-key public.pem
    says out "1 of 2 suites were not signed"
    sql x.db "UPDATE outcomes SET at_ms = at_ms + 1 WHERE id = 1"
    code 4 "$swerve" check --store x.db --verify-key public.pem
    says out "outcome 1: is not what was stored"
    # Digests that fit are forged with the store's own program: a suite of the same name, driven anew.
    rm -rf y.db*
    code 0 "$swerve" run pair.json --store y.db
    code 0 "$swerve" check --store y.db
    code 4 "$swerve" check --store y.db --statement said --verify-key public.pem
    says out "is not what was signed: it had 4 outcomes, and has 4, of other figures"
    sed -i 's/suites 1/suites 2/' said
    code 1 "$swerve" check --store y.db --statement said --verify-key public.pem
    : >said.sig
    code 3 "$swerve" check --store y.db --statement said --verify-key public.pem
    says err "said.sig: expected 64 bytes, found 0"
    code 4 "$swerve" check --store x.db --sign-key key.pem
    says err "not signed: the store has"
    # The name of a suite may begin with a blank.
    rm -rf z.db*
    code 0 "$swerve" submit pair.json --store z.db
    sql z.db "UPDATE suites SET name = ' a', digest = NULL"
    code 0 "$swerve" check --store z.db --sign-key key.pem
    code 0 "$swerve" check --store z.db --verify-key public.pem
}
# When a suite was submitted, by whom and under which name is part of what is stored.
check_notices_another_time_of_submission() {
    fresh
    sql x.db "UPDATE suites SET submitted_s = submitted_s + 1"
    code 4 "$swerve" check --store x.db
    says out "its name, tenant or time of submission is not what was stored"
}
check_reads_a_store_that_is_in_use() {
    fresh
    "$swerve" serve --store x.db --listen 127.0.0.1:0 >serve.out 2>&1 &
    local server=$! tries=0
    until [ -S x.db.sock ]; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "the server did not start: $(cat serve.out)"; break; }
        read -r -t 0.01 _ <> <(:) || true
    done
    code 0 "$swerve" submit slower.json --store x.db
    code 0 "$swerve" check --store x.db
    says out "2 suites, 3 jobs, 2 attempts, 4 outcomes"
    code 0 "$swerve" worker --store x.db --drain
    code 0 "$swerve" check --store x.db
    says out "2 suites, 3 jobs, 3 attempts, 6 outcomes"
    kill "$server"
    wait "$server"
    code 0 "$swerve" check --store x.db
}

# A program that has the store to itself is waited for, for so long; then check says whom it met, and that it looked at
# nothing.
check_waits_for_a_store_in_use() {
    fresh
    mkfifo hold
    command python3 -c 'import sqlite3, sys
db = sqlite3.connect("x.db", isolation_level=None)
db.execute("PRAGMA locking_mode = EXCLUSIVE")
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()' <hold >held &
    local holder=$! tries=0
    exec 5>hold
    until grep -q held held; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "nobody holds the store"; break; }
        read -r -t 0.01 _ <> <(:) || true
    done
    code 7 "$swerve" check --store x.db --wait 0
    says err "is in use: process $holder has it to itself"
    says err "Nothing was checked"
    code 2 "$swerve" check --store x.db --wait 100000
    "$swerve" check --store x.db --wait 60 >waited 2>&1 &
    local waiting=$!
    code 7 "$swerve" check --store x.db --wait 0
    echo go >&5
    exec 5>&-
    wait "$waiting" || fail "exit code $?: $(cat waited)"
    grep -q "everything fits together" waited || fail "$(cat waited)"
    wait "$holder"
}

# Its commits follow one another, and the log begins anew again and again.
check_of_a_busy_store_finds_nothing() {
    fresh
    "$swerve" serve --store x.db --listen 127.0.0.1:0 >serve.out 2>&1 &
    local server=$! tries=0
    until [ -S x.db.sock ]; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "the server did not start: $(cat serve.out)"; break; }
        read -r -t 0.01 _ <> <(:) || true
    done
    echo '{"id": "wide", "seeds": 300, "scenarios": [{"file": "slower.json"}]}' >wide.json
    (for i in 1 2 3 4 5 6; do
        sed "s/\"wide\"/\"wide$i\"/" wide.json >busy.json
        "$swerve" submit busy.json --store x.db
    done) >/dev/null 2>&1 &
    local busy=$!
    while kill -0 $busy 2>/dev/null; do
        code 0 "$swerve" check --store x.db --skip-artifacts
    done
    kill "$server"
    wait "$server" "$busy"
}

a_damaged_log_is_told() {
    "$swerve" serve --store w.db --listen 127.0.0.1:0 >serve.out 2>&1 &
    local server=$! tries=0
    until [ -S w.db.sock ]; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "the server did not start: $(cat serve.out)"; break; }
        read -r -t 0.01 _ <> <(:) || true
    done
    for i in 1 2 3 4 5 6; do
        sed "s/\"pair\"/\"pair$i\"/" pair.json >one.json
        code 0 "$swerve" submit one.json --store w.db
    done
    kill -9 "$server"
    wait "$server"
    # One bit, in the first frame of the transaction before the last two.
    python3 - w.db-wal <<'PY' || fail "no such frame"
import struct, sys
with open(sys.argv[1], "r+b") as log:
    data = log.read()
    page = struct.unpack(">I", data[8:12])[0]
    frames = range(32, len(data) - 24 - page + 1, 24 + page)
    commits = [at for at in frames if struct.unpack(">I", data[at + 4 : at + 8])[0]]
    at = commits[-4] + 24 + page + 24 + 7
    log.seek(at)
    log.write(bytes([data[at] ^ 1]))
PY
    code 4 "$swerve" check --store w.db --json
    holds '[f["severity"] for f in d["findings"] if f["kind"] == "log"] == ["fault"]' out
    code 0 "$swerve" status --store w.db
    says err "had been acknowledged"
    code 4 "$swerve" check --store w.db
    says out "a damaged log was opened and"
    # Also by a process that has the store from another one, later.
    "$swerve" serve --store w.db --listen 127.0.0.1:0 >serve.out 2>&1 &
    server=$! tries=0
    until [ -S w.db.sock ]; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || { fail "the server did not start: $(cat serve.out)"; break; }
        read -r -t 0.01 _ <> <(:) || true
    done
    code 0 "$swerve" status --store w.db
    says out "damaged logs took"
    code 0 "$swerve" status --store "$(grep -m 1 ^http serve.out)" --json
    holds 'd["commits_lost"] > 0' out
    kill "$server"
    wait "$server"
}

exec >/dev/null 2>&1
echo 1..18 >&3
t replay_compares_every_figure
t replay_names_stored_and_replayed_values
t replay_tells_other_revisions_from_differences
t replay_misses_deleted_outcomes
t replay_opens_artifacts
t replay_reads_the_scenario_under_its_hash
t numbers_that_name_nothing_are_refused
t check_finds_nothing_in_a_good_store
t check_notices_every_edit
t check_notices_rows_that_come_and_go
t outcomes_from_before_digests_are_told
t check_notices_artifacts
t a_check_can_be_signed
t check_notices_another_time_of_submission
t check_reads_a_store_that_is_in_use
t check_waits_for_a_store_in_use
t check_of_a_busy_store_finds_nothing
t a_damaged_log_is_told
[ "$failed" = 0 ]
