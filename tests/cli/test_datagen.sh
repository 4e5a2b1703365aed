#!/bin/bash
# Goal: swerve datagen writes what engine/model.md says, reproducibly, and keeps held-out scenarios
# apart; its faults name the file and leave nothing half-written behind.
# Method: small sets from the smoke suite, read with plain Python; every rule that can be computed
# from the records (windows, headings, one-hot conditions, distances driven) is computed again.
#
# Usage: test_datagen.sh SWERVE SOURCE_ROOT
set -u -o pipefail
tap=$(dirname "$(realpath "$0")")/tap.sh
swerve=$(realpath "$1")
root=$(realpath "$2")
suite=$root/scenarios/smoke.json
work=$(mktemp -d /tmp/swerve-datagen-XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$tap"

# py ARGUMENTS: the script on stdin, with shard.py beside it.
py() {
    PYTHONPATH=$work python3 - "$@" 2>pyerr || fail "line ${BASH_LINENO[0]}: $(tail -1 pyerr)"
}

cat >shard.py <<'PY'
import json, math, struct
WIDTH = {"U8": ("B", 1), "I32": ("i", 4), "I64": ("q", 8), "F32": ("f", 4)}

class Shard:
    """A safetensors file, checked byte by byte as it is opened."""
    def __init__(self, path):
        data = open(path, "rb").read()
        (n,) = struct.unpack("<Q", data[:8])
        assert n % 8 == 0, "header is not aligned"
        header = json.loads(data[8:8 + n])
        self.metadata = header.pop("__metadata__")
        assert all(isinstance(v, str) for v in self.metadata.values())
        self.shape, self.raw, self.kind, end = {}, {}, {}, 0
        for name, t in header.items():
            a, b = t["data_offsets"]
            assert b - a == math.prod(t["shape"]) * WIDTH[t["dtype"]][1], name
            self.shape[name], self.kind[name] = t["shape"], t["dtype"]
            self.raw[name] = memoryview(data)[8 + n + a:8 + n + b]
            assert (8 + n + a) % WIDTH[t["dtype"]][1] == 0, name + " is not aligned"
        spans = sorted(t["data_offsets"] for t in header.values())
        for a, b in spans:
            assert a == end, "a gap"
            end = b
        assert 8 + n + end == len(data), "the file's length"
        self.scenarios = json.loads(self.metadata["scenarios"])

    def rows(self, name):
        """The tensor as tuples of its last dimension (not for the big ones)."""
        letter, _ = WIDTH[self.kind[name]]
        width = self.shape[name][-1]
        return [r for r in struct.iter_unpack("<%d%s" % (width, letter), self.raw[name])]

    def frame(self, name, index):
        size = math.prod(self.shape[name][2:])
        return self.raw[name][index * size:(index + 1) * size]
PY

a_shard_is_what_the_page_says() {
    code 0 "$swerve" datagen "$suite" -o a --clips 6 --frames 4 --held-out 0
    says out "6 clips of 4 frames in 1 shard,"
    [ "$(ls a)" = "train-00000.safetensors" ] || fail "files: $(ls a)"
    py <<'PY'
from shard import *
s = Shard("a/train-00000.safetensors")
assert s.metadata["format"] == "swerve-shard/1" and s.metadata["suite"] == "smoke"
assert len(s.metadata["revision"]) == 64 and len(s.scenarios) == 8
cam = [6, 4, 3, 32, 48, 12]
assert s.shape == {"bev": [6, 4, 96, 96, 22], "clean": [6, 4, 96, 96, 12], "camera": cam,
                   "camera_agents": cam, "camera_map": cam, "window": [6, 4, 2],
                   "ego": [6, 4, 4], "cond": [6, 4, 64], "clip": [6, 4]}, s.shape
assert {k: v for k, v in s.kind.items() if v != "U8"} == {
    "window": "I32", "ego": "F32", "cond": "F32", "clip": "I64"}
def first(middle, share):
    p = (middle - 48) / 8
    return math.ceil(p) if share > 0.38 else math.floor(p) if share < -0.38 else math.floor(p + 0.5)
ego, window, cond, clip = (s.rows(n) for n in ("ego", "window", "cond", "clip"))
for seed, scenario, start, held_out in clip:
    assert seed >= 0 and 0 <= scenario < 8 and start >= 0 and held_out == 0
for i, ((u, v, h, speed), w, c) in enumerate(zip(ego, window, cond)):
    assert w == (first(u + 32 * math.cos(h), math.cos(h)), first(v + 32 * math.sin(h), math.sin(h)))
    assert c[:3] == (0, 0, 0) and sum(c[3:8]) == 1 and sum(c[8:11]) == 1 and not any(c[40:])
    assert abs(c[13] * 20 - speed) < 1e-4 and abs(c[17] - math.cos(h)) < 1e-6
    assert abs(c[22] - (u - 8 * w[0] - 48) / 48) < 1e-4
    if i % 4:
        pu, pv = ego[i - 1][:2]
        moved = math.hypot(u - pu, v - pv)
        assert abs(moved - 2 * math.hypot(c[19], c[20])) < 1e-3
        assert moved < 0.1 * speed + 0.6
    bev, clean = s.frame("bev", i), s.frame("clean", i)
    assert set(bev[20::22]) | set(bev[21::22]) >= {128}
    for k in range(4):
        seen = sum(bev[k::22]); true = sum(clean[k::12])
        assert seen <= 1.2 * true + 8 * 96 * 4
    assert max(s.frame("camera", i)) > min(s.frame("camera", i))
turned = sum(abs(math.remainder(e[2], 2 * math.pi)) > 0.3 for e in ego)
assert turned >= 4, "no anchor was turned"
PY
}

the_same_options_give_the_same_bytes() {
    code 0 "$swerve" datagen "$suite" -o b --clips 6 --frames 4 --held-out 0 --json
    python3 -c 'import json; d=json.load(open("out")); assert (d["train_clips"], d["held_out_clips"], d["shards"], d["frames"]) == (6, 0, 1, 24)' || fail "$(cat out)"
    cmp -s a/train-00000.safetensors b/train-00000.safetensors || fail "a and b differ"
    code 0 "$swerve" datagen "$suite" -o c --clips 6 --frames 4 --held-out 0 --seed 2
    cmp -s a/train-00000.safetensors c/train-00000.safetensors && fail "another seed, the same bytes"
    code 0 "$swerve" datagen "$suite" -o d --clips 6 --frames 4 --held-out 0 --shard-clips 4
    [ "$(ls d | tr '\n' ' ')" = "train-00000.safetensors train-00001.safetensors " ] || fail "files: $(ls d)"
    py <<'PY'
from shard import *
whole = Shard("a/train-00000.safetensors")
parts = [Shard("d/train-0000%d.safetensors" % i) for i in range(2)]
for name in whole.raw:
    assert bytes(whole.raw[name]) == b"".join(bytes(p.raw[name]) for p in parts), name
PY
}

held_out_scenarios_are_never_trained_on() {
    code 0 "$swerve" datagen "$suite" -o e --clips 24 --frames 2 --held-out 0.4
    code 0 "$swerve" datagen "$suite" -o f --clips 3 --frames 2 --held-out 0.4 --only held-out
    [ "$(ls f)" = "heldout-00000.safetensors" ] || fail "files: $(ls f)"
    py <<'PY'
from shard import *
train, held, only = (Shard(p + "-00000.safetensors") for p in ("e/train", "e/heldout", "f/heldout"))
a = {c[1] for c in train.rows("clip")}
b = {c[1] for c in held.rows("clip")}
assert a and b and not a & b and a | b == set(range(8)), (a, b)
assert {c[3] for c in train.rows("clip")} == {0} and {c[3] for c in held.rows("clip")} == {1}
assert {c[1] for c in only.rows("clip")} <= b
assert abs(len(held.rows("clip")) - 24 * len(b) / 8) < 1
PY
}

planners_drive_differently() {
    code 0 "$swerve" datagen "$suite" -o g --clips 4 --frames 8 --held-out 0 --planner builtin:maintain
    code 0 "$swerve" datagen "$suite" -o h --clips 4 --frames 8 --held-out 0 --planner builtin:brake
    cmp -s g/train-00000.safetensors h/train-00000.safetensors && fail "two planners, the same bytes"
    code 3 "$swerve" datagen "$suite" -o i --clips 4 --frames 8 --planner builtin:nobody
    says err "nobody"
}

mistakes_are_named() {
    code 2 "$swerve" datagen "$suite"
    says err "-o DIR"
    code 2 "$swerve" datagen "$suite" -o x --clips 0
    says err "--clips: expected 1 to"
    code 2 "$swerve" datagen "$suite" -o x --frames 601
    says err "--frames"
    code 3 "$swerve" datagen "$suite" -o large --clips 1 --frames 600
    says err "a clip of 600 frames takes 275 MiB, expected at most 256"
    code 2 "$swerve" datagen "$suite" -o x --held-out 1.5
    says err '"1.5"'
    code 2 "$swerve" datagen "$suite" -o x --only some
    says err '"some"'
    [ -e x ] && fail "a directory was made for nothing"
    code 3 "$swerve" datagen nowhere.json -o x
    says err "nowhere.json"
    code 3 "$swerve" datagen "$suite" -o x --held-out 0 --only held-out
    says err "found none"
    code 4 "$swerve" datagen "$suite" -o no/such/place
    says err "no/such/place"
    touch file
    code 4 "$swerve" datagen "$suite" -o file
    says err "file"
}

# Sandbox and limits go one way to a planner: where one holds, so does the other.
planners_are_confined_as_asked() {
    code 6 timeout 15 "$swerve" datagen "$suite" -o confined --clips 2 --planner "exec:sleep 60" --planner-start-ms 200
    says err "no answer within 200 ms"
}

# A planner that started and dies in a drive breaks its clips; nobody goes on for ever.
a_planner_that_dies_in_a_clip_is_told() {
    cat >mortal.py <<'PY'
import os, sys
sys.path.insert(0, sys.argv[1])
import swerve_planner
class Mortal(swerve_planner.Planner):
    def act(self, observation):
        os._exit(7)
swerve_planner.run(Mortal)
PY
    code 6 timeout 30 "$swerve" datagen "$suite" -o mortal --clips 2 --frames 4 --workers 1 --planner "exec:python3 -S mortal.py $root/scripts"
    says err "could not be made: planner exec:python3 -S mortal.py"
}

# Sensors of a rig beside: cameras of 10 and 30 Hz agree at the tick, all else is as without.
sensors_of_a_rig_have_a_tensor_each() {
    cat >rig.json <<'JSON'
{"id": "pair", "cameras": [
  {"id": "slow", "width": 40, "height": 24, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5}, "lens": {"fx": 30}},
  {"id": "fast", "width": 40, "height": 24, "rate_hz": 30, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5}, "lens": {"fx": 30}}],
 "lidars": [{"id": "roof", "pose": {"x_m": 0, "y_m": 0, "z_m": 2}, "azimuths": 32, "range_m": 60, "elevations_rad": [-0.3, -0.1]}]}
JSON
    code 0 "$swerve" datagen "$suite" -o rig --clips 6 --frames 4 --held-out 0 --rig rig.json
    py <<'PY'
from shard import *
plain, s = Shard("a/train-00000.safetensors"), Shard("rig/train-00000.safetensors")
assert set(s.shape) - set(plain.shape) == {"rig_slow", "rig_fast", "rig_roof"}, s.shape
assert all(bytes(s.raw[name]) == bytes(plain.raw[name]) for name in plain.raw)
assert (s.shape["rig_slow"], s.shape["rig_fast"], s.shape["rig_roof"]) == ([6, 4, 1, 24, 40, 3], [6, 4, 3, 24, 40, 3], [6, 4, 64, 16])
assert json.loads(s.metadata["rig"])["id"] == "pair" and "rig" not in plain.metadata
for i in range(24):
    slow, fast = bytes(s.frame("rig_slow", i)), bytes(s.frame("rig_fast", i))
    # Rain and snow fall anew in each camera.
    assert len(set(slow)) > 5 and (fast[2 * len(slow):] == slow or s.rows("cond")[i][3] == 0), i
points = [struct.unpack("<fffBBH", bytes(s.raw["rig_roof"][k:k + 16])) for k in range(0, len(s.raw["rig_roof"]), 16)]
hits = [p for p in points if p[:3] != (0.0, 0.0, 0.0)]
assert 24 * 20 < len(hits) < 24 * 64 and all(0.5 < math.hypot(*p[:3]) <= 60.001 and p[4] < 2 for p in hits), len(hits)
PY
    code 3 "$swerve" datagen "$suite" -o none --clips 1 --rig missing.json
    says err "missing.json"
}

# A planner that ends its worker (2) or the command (3) in the middle, as the file "kill" says.
a_set_is_whole_though_its_makers_are_killed() {
    cat >killer.py <<'PY'
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import swerve_planner
acts = 0
class Killer(swerve_planner.Planner):
    def act(self, observation):
        global acts
        acts += 1
        if acts > 300 and os.path.exists("kill"):
            ancestors = int(open("kill").read())
            os.remove("kill")
            victim = os.getpid()
            for _ in range(ancestors):
                victim = int(open("/proc/%d/stat" % victim).read().rpartition(")")[2].split()[1])
            os.kill(victim, signal.SIGKILL)
        return 0.0, 0.0
swerve_planner.run(Killer)
PY
    set -- datagen "$suite" --clips 8 --frames 4 --held-out 0.3 --workers 1 --planner "exec:python3 -S killer.py $root/scripts"
    code 0 "$swerve" "$@" -o calm --store calm.db
    echo 2 >kill
    code 0 "$swerve" "$@" -o worker --store worker.db
    echo 3 >kill
    code 137 "$swerve" "$@" -o command --store command.db
    [ "$(ls -A command)" = .set ] || fail "left: $(ls -A command)"
    code 0 "$swerve" "$@" -o command --store command.db
    echo 3 >kill
    code 137 "$swerve" "$@" -o own
    [ "$(echo $(ls -A own))" = ".clips .set" ] || fail "left: $(ls -A own)"
    code 0 "$swerve" "$@" -o own
    for made in worker command own; do
        diff -r calm $made || fail "$made differs"
    done
    py <<'PY'
import sqlite3
def books(name):
    database = sqlite3.connect(name)
    jobs = database.execute("SELECT COUNT(*) FROM jobs").fetchone()
    paid = database.execute("SELECT COUNT(*), SUM(metres_mm) FROM attempts WHERE ending = 0").fetchone()
    lost = database.execute("SELECT COUNT(*) FROM attempts WHERE ending = 4").fetchone()[0]
    rates = database.execute("SELECT SUM(rollouts_pass + rollouts_fail) FROM suites").fetchone()
    return (jobs, paid, rates), lost
calm, none = books("calm.db")
assert calm[0][0] == calm[1][0] >= 8 and calm[2] == (0,) and none == 0, calm
for name in ("worker.db", "command.db"):
    found, lost = books(name)
    assert found == calm and (lost > 0 or name == "command.db"), (name, found, calm, lost)
PY
    code 0 "$swerve" check --store worker.db
    code 0 "$swerve" status --store worker.db
    says out "in no rate"
    code 0 "$swerve" replay --all --store worker.db
    says out "0 identical, 0 different, 8 clips of training data left out"
    code 2 "$swerve" replay 1 --store worker.db
    says err "a clip of training data, not a drive"
    code 0 "$swerve" show 1 --store worker.db
    says out "none: the artifact is the clip"
}

a_full_disk_leaves_no_shard() {
    mkdir full
    (
        trap '' XFSZ
        ulimit -f 4000
        exec "$swerve" datagen "$suite" -o full --clips 2 --frames 8 --held-out 0 >out 2>err
    )
    [ $? = 4 ] || fail "expected exit 4: $(cat err)"
    says err "full/train-00000.safetensors"
    [ "$(echo $(ls -A full))" = ".clips .set" ] || fail "left behind: $(ls -A full)"
}

# Shards of two sets in one folder would train on what is held out.
a_folder_holds_one_set() {
    code 0 "$swerve" datagen "$suite" -o one --clips 6 --frames 2 --held-out 0.4
    cp -r one before
    touch one/train-00007.safetensors.123.tmp
    code 4 "$swerve" datagen "$suite" -o one --clips 4 --frames 2 --held-out 0
    says err "one: holds shards of another set"
    code 0 "$swerve" datagen "$suite" -o one --clips 6 --frames 2 --held-out 0.4
    diff -r before one || fail "the same command made other files"
    rm one/*.safetensors
    code 0 "$swerve" datagen "$suite" -o one --clips 4 --frames 2 --held-out 0
    flock one/.set sleep 20 &
    while flock -n one/.set true; do sleep 0.05; done
    code 7 "$swerve" datagen "$suite" -o one --clips 4 --frames 2 --held-out 0
    says err "one: another swerve datagen makes shards there"
    kill $! && wait 2>/dev/null
    mkdir unknown && touch unknown/heldout-00000.safetensors
    code 4 "$swerve" datagen "$suite" -o unknown --clips 4 --frames 2
}

echo 1..11
t a_shard_is_what_the_page_says
t the_same_options_give_the_same_bytes
t held_out_scenarios_are_never_trained_on
t planners_drive_differently
t mistakes_are_named
t planners_are_confined_as_asked
t a_planner_that_dies_in_a_clip_is_told
t sensors_of_a_rig_have_a_tensor_each
t a_set_is_whole_though_its_makers_are_killed
t a_full_disk_leaves_no_shard
t a_folder_holds_one_set
[ "$failed" = 0 ]
