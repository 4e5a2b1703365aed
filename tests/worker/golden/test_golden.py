#!/usr/bin/env python3
"""Goal: drives of a world that are recorded once answer the planner that was recorded bit for bit, and any other one
while it is near them; further away they give no answer, or the world that generated them does; nothing that a set of
them needs is ever taken from a store, and everything when it is let go.
Method: a plugin world over a small suite with branches of ego, of an agent, of the weather and of a sensor, recorded
and driven live; both compared by trace hash. A property over the recorded paths for another planner. The collector with
artifacts that look old. One value of the tables at a time, and one byte of a recording.

Usage: test_golden.py SWERVE SOURCE_ROOT EXAMPLE_SO LIAR_SO
"""
import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
PLUGINS = [os.path.realpath(path) for path in sys.argv[3:5]]
sys.path.insert(0, str(ROOT / "tests/cli"))
import tap  # noqa: E402

LANES = """"map": {"lanes": [
  {"id": "east", "centre_line": [[0, 0], [400, 0]], "width_m": 3.5, "speed_limit_mps": 15}]}"""
SCENARIOS = {
    "road": """{"id": "road", %s,
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 14, "route": ["east"]},
 "agents": [
  {"id": "truck", "kind": "truck", "pose": {"lane": "east", "s_m": 65}, "speed_mps": 13, "behaviour": "idm"}],
 "horizon_s": 1.6,
 "branches": [
  {"id": "agent", "at_tick": 3, "interventions": [{"kind": "agent_brake", "agent": "truck", "decel_mps2": 4}]},
  {"id": "ego", "at_tick": 4, "interventions": [{"kind": "ego_brake", "decel_mps2": 3}]},
  {"id": "fog", "at_tick": 5, "interventions": [{"kind": "conditions", "conditions": {"weather": "fog"}}]}]}""" % LANES,
    "free": """{"id": "free", %s,
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 14, "route": ["east"]},
 "agents": [], "horizon_s": 2}""" % LANES,
}
STOP = """import os, signal, sys
sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))
import swerve_planner
acts = 0
class Stop(swerve_planner.Planner):
    def act(self, observation):
        if os.path.exists("stop"):
            with open("/proc/%d/stat" % os.getppid()) as file: # of the keeper, whose parent is the command
                os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGINT)
        global acts
        acts += 1
        if os.path.exists("kill") and acts > 120:
            with open("kill") as file: # 2: the worker, 3: the command
                ancestors = int(file.read())
            os.remove("kill")
            victim = os.getpid()
            for _ in range(ancestors):
                with open("/proc/%d/stat" % victim) as file:
                    victim = int(file.read().rpartition(")")[2].split()[1])
            os.kill(victim, signal.SIGKILL)
        return 0.0, 0.0
swerve_planner.run(Stop)
"""
SEES = """import hashlib, sys
sys.path.insert(0, sys.argv[1] + "/scripts")
import swerve_planner
class Sees(swerve_planner.Planner):
    sensors = [("front", sys.argv[2]) if len(sys.argv) > 2 else "front"]
    def reset(self, episode):
        self.past = 0
    def act(self, observation):
        for frame in observation.sensors["front"].frames:
            self.past = (self.past * 31 + hashlib.sha256(bytes(frame)).digest()[0]) % 997
        return 0.5 + self.past / 997, 0.002 * (self.past % 3 - 1)
swerve_planner.run(Sees)
"""
RIG = {"id": "small", "cameras": [{"id": "front", "width": 64, "height": 36, "rate_hz": 30,
                                   "pose": {"x_m": 0.8, "y_m": 0, "z_m": 1.5}, "lens": {"fx": 42}}]}
EXAMPLE = "plugin:./example.so"
OTHER = "builtin:reference?speed_factor=0.5"
THIRD = "builtin:reference?speed_factor=0.51"
MAKE = ("golden", "make", "suite.json", "--models", "models", "--store", "g.db")
RUN = ("run", "suite.json", "--models", "models", "--workers", "1", "--audit", "off", "--json", "--attempts", "1")


def swerve(*arguments, code=0):
    done = subprocess.run([SWERVE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout if code in (0, 6) or "--json" in arguments else done.stdout + done.stderr


def drive(world, planner, seeds, *more, store="g.db", code=0):
    """Outcomes of a run by scenario, branch and seed: those of goldens, those of other worlds, and what `run` says."""
    result = json.loads(swerve(*RUN, "--world", world, "--planner", planner, "--seeds", seeds, "--store", store, *more,
                               code=code))
    text = swerve("show", "--all", "--suite", result["suite"], "--store", store)
    found = ({}, {})
    for row in map(json.loads, text.splitlines()):
        found[row["tier"] != "golden"][row["scenario_id"], row["branch_id"], row["seed"]] = row
    return *found, result


def the_recorded_planner_sees_the_same_bits():
    made = json.loads(swerve(*MAKE, "--seeds", "2", "--name", "set", "--world", EXAMPLE, "--json"))
    assert made["recordings"] == 4 and made["rollouts"] == 10 and made["left_out"] == 0, made
    listed = json.loads(swerve("golden", "ls", "--store", "g.db", "--json"))["goldens"]
    assert [one["name"] for one in listed] == ["set"] and listed[0]["recordings"] == 4, listed
    assert listed[0]["hash"] == made["hash"] and listed[0]["bytes"] == made["bytes"], (listed, made)
    _, live, _ = drive(EXAMPLE, "builtin:reference", "2", store="live.db")
    golden, _, result = drive("golden:set", "builtin:reference", "2")
    assert set(live) == set(golden) and len(live) == 10
    for key, row in golden.items():
        assert row["trace_hash"] == live[key]["trace_hash"] and row["verdict"] == live[key]["verdict"], key
        assert row["tier"] == "golden" and row["model_hash"] == made["hash"], row
    tried = json.loads(swerve("golden", "verify", "set", "--store", "g.db", "--json"))
    assert tried["ok"] and tried["recordings"] == 4 and tried["rollouts"] == 10, tried
    replayed = swerve("replay", "--all", "--store", "g.db", "--world", "golden:set", "--suite", result["suite"])
    assert "10 identical, 0 different" in replayed, replayed


def another_planner_is_answered_while_it_is_near():
    golden, _, result = drive("golden:set", OTHER, "2", code=6)
    flagged = [row for row in golden.values() if row["verdict"] == "flagged"]
    left = [row for row in flagged if row["health_check"]]  # the others are of a job of which one left
    assert left and len(golden) == 10 and {row["job_id"] for row in left} == {row["job_id"] for row in flagged}, golden
    for row in left:
        assert row["health_check"] == "diverged" and row["health_value"] > row["health_threshold"], row
        assert "diverged at tick" in row["error"], row
        assert row["ticks"] == row["health_tick"] > 2, row
    replayed = swerve("replay", "--all", "--store", "g.db", "--world", "golden:set", "--suite", result["suite"])
    assert "10 identical, 0 different" in replayed, replayed


def the_world_that_generated_answers_where_they_end():
    made = json.loads(swerve(*MAKE, "--seeds", "1", "--name", "judge", "--world", "teacher", "--audit-world", EXAMPLE,
                             "--json"))
    assert made["recordings"] == 2, made
    _, live, _ = drive(EXAMPLE, THIRD, "1", store="live.db")
    for name, tier in (("set", "student"), ("judge", "teacher")):
        asked, answered, _ = drive(f"golden:{name}?diverged=live", THIRD, "1", "--audit-world", EXAMPLE)
        lost = {key for key, row in asked.items() if row["verdict"] == "flagged"}
        assert lost and lost <= set(answered), (lost, set(answered))
        for key, row in answered.items():
            assert row["tier"] == tier and row["trace_hash"] == live[key]["trace_hash"], (row, live[key])


def what_was_not_recorded_is_refused():
    text = swerve(*RUN[:-3], "--nominal", "--world", "golden:set", "--store", "g.db", code=3)
    assert "has no recording of it with seed 0" in text, text
    changed = SCENARIOS["free"].replace('"speed_mps": 14', '"speed_mps": 13')
    pathlib.Path("free.json").write_text(changed)
    text = swerve(*RUN[:-3], "--world", "golden:set", "--store", "g.db", code=3)
    assert "is another than golden" in text, text
    pathlib.Path("free.json").write_text(SCENARIOS["free"])
    text = swerve(*RUN[:-3], "--world", "golden:none", "--store", "g.db", code=3)
    assert "no set of that name" in text, text
    for world, more in (("object", ()), (EXAMPLE, ("--layout", "none"))):
        swerve(*MAKE, "--name", "other", "--world", world, *more, code=2)
    text = swerve(*MAKE, "--name", "set", "--planner", OTHER, "--world", EXAMPLE, code=4)
    assert "golden make: \"set\": a set of that name" in text, text  # before anything is driven


def stored(store):
    """Hashes of the artifacts that are there."""
    return {path.name.split(".")[0] for path in pathlib.Path(store + ".artifacts").rglob("*")
            if path.is_file() and path.stat().st_size > 0}


def two_models(store, model):
    """A copy of h.db where one set is of another model; digits with which both begin."""
    shutil.copy("h.db", store)
    database = sqlite3.connect(store)
    database.execute("UPDATE goldens SET model_hash = ? WHERE name = 'set'", (model[:12] + model[:-13:-1] + model[24:],))
    database.commit()
    database.close()
    return model[:12]


def nothing_that_a_set_needs_is_taken():
    shutil.copy("g.db", "h.db")
    shutil.copytree("g.db.artifacts", "h.db.artifacts")
    year_ago = os.stat("h.db").st_mtime - 400 * 86400
    for path in pathlib.Path("h.db.artifacts").rglob("*"):
        os.utime(path, (year_ago, year_ago))
    pathlib.Path("policy.json").write_text('{"format": "swerve-retention/1", "rules": [{"keep_days": 1}]}')
    swerve("store", "gc", "--policy", "policy.json", "--apply", "--older-than", "1", "--store", "h.db")
    assert json.loads(swerve("golden", "verify", "set", "--store", "h.db", "--json"))["ok"]
    swerve("check", "--store", "h.db")
    model = json.loads(swerve("golden", "ls", "--store", "h.db", "--json"))["goldens"][0]["model_hash"]
    database = sqlite3.connect("h.db")
    kept = {row[0] for row in database.execute("SELECT hash FROM goldens UNION SELECT hash FROM golden_artifacts")}
    database.close()
    assert len(kept) >= 4 and kept <= stored("h.db"), kept
    digits = two_models("two.db", model)
    assert "tell one model" in swerve("golden", "expire", "--model", digits, "--store", "two.db", code=2)
    assert len(json.loads(swerve("golden", "ls", "--store", "two.db", "--json"))["goldens"]) == 2
    gone = json.loads(swerve("golden", "expire", "--model", model[:12], "--store", "h.db", "--json"))["expired"]
    assert gone == ["judge", "set"], gone
    for path in pathlib.Path("h.db.artifacts").rglob("*"):
        os.utime(path, (year_ago, year_ago))
    swerve("store", "gc", "--apply", "--older-than", "1", "--store", "h.db")
    assert not kept & stored("h.db"), kept & stored("h.db")
    swerve("golden", "verify", "set", "--store", "h.db", code=3)
    swerve("golden", "expire", "set", "--store", "h.db", code=3)
    swerve("check", "--store", "h.db")


def damage_is_found():
    for table in ("goldens", "golden_artifacts"):
        subprocess.run([sys.executable, str(ROOT / "tests/cli/edit_store.py"), SWERVE, "g.db", "1", "1", table],
                       check=True, stdout=subprocess.DEVNULL)
    database = sqlite3.connect("g.db")
    hash, = database.execute("SELECT hash FROM golden_artifacts ORDER BY hash LIMIT 1").fetchone()
    database.close()
    largest, = pathlib.Path("g.db.artifacts").rglob(hash + "*")
    kept = largest.read_bytes()
    largest.write_bytes(kept[:-9] + bytes([kept[-9] ^ 4]) + kept[-8:])
    results = [json.loads(subprocess.run([SWERVE, "golden", "verify", name, "--store", "g.db", "--json"], check=False,
                                         stdout=subprocess.PIPE).stdout) for name in ("set", "judge")]
    assert any(result["damaged"] > 0 and not result["ok"] for result in results), results
    largest.write_bytes(kept)


def a_list_that_names_a_drive_twice_is_refused():
    """Either recording would answer. The list is an artifact that was put there."""
    zstd = ctypes.CDLL("libzstd.so.1")
    shutil.copy("g.db", "twice.db")
    shutil.copytree("g.db.artifacts", "twice.db.artifacts")
    database = sqlite3.connect("twice.db")
    hash, = database.execute("SELECT hash FROM goldens WHERE name = 'set'").fetchone()
    path, = pathlib.Path("twice.db.artifacts").rglob(hash + "*")
    room = ctypes.create_string_buffer(1 << 20)
    packed = path.read_bytes()
    size = zstd.ZSTD_decompress(room, len(room), packed, len(packed))
    document = json.loads(room.raw[:size])
    document["recordings"].append(document["recordings"][0])
    text = json.dumps(document).encode()
    other = hashlib.sha256(text).hexdigest()
    path = path.parent.parent / other[:2] / (other + ".zst")
    path.parent.mkdir(exist_ok=True)
    size = zstd.ZSTD_compress(room, len(room), text, len(text), 3)
    path.write_bytes(room.raw[:size])
    database.execute("UPDATE goldens SET hash = ? WHERE name = 'set'", (other,))
    database.commit()
    database.close()
    said = swerve("golden", "verify", "set", "--store", "twice.db", code=3)
    assert "expected each scenario and seed once, found" in said, said


def a_name_that_is_none_is_refused_before_anything_is_driven():
    for name in ("a/b", "set?diverged=live", "n" * 64):
        said = swerve(*MAKE, "--name", name, "--world", EXAMPLE, "--planner", "exec:touch driven", code=3)
        assert "expected a name of at most 63" in said and not os.path.exists("driven"), said


def options_that_would_do_nothing_are_refused():
    for words, said in (((*MAKE, "--name", "x", "--audit", "off"), "unknown option --audit"),
                        ((*MAKE, "--name", "x", "--weight", "3"), "unknown option --weight"),
                        ((*MAKE, "--name", "x", "--model", "ab"), "--model goes with expire alone"),
                        (("golden", "verify", "set", "--planner", EXAMPLE), "--planner goes with make alone"),
                        (("golden", "verify", "set", "--seeds", "3"), "--seeds goes with make alone"),
                        (("golden", "ls", "--threads", "2"), "--threads goes with make verify alone"),
                        (("golden", "expire", "set", "--name", "x"), "--name goes with make alone")):
        found = swerve(*words, code=2)
        assert said in found, (words, found)
    swerve("golden", "verify", "set", "--store", "g.db", "--threads", "2", "--slots", "3", "--planner-deadline-ms", "900")


def what_is_interrupted_verifies_nothing():
    planner = f"exec:python3 -S stop.py {ROOT}"
    pathlib.Path("stop.py").write_text(STOP)
    swerve(*MAKE, "--name", "stop", "--world", EXAMPLE, "--planner", planner)
    swerve("golden", "verify", "stop", "--store", "g.db")
    pathlib.Path("stop").touch()
    assert "nothing is verified" in swerve("golden", "verify", "stop", "--store", "g.db", code=130)
    os.remove("stop")
    swerve("golden", "expire", "stop", "--store", "g.db")


def listed(store):
    """The list of the set, which names every recording by its hash, and what its jobs cost: ticks and metres."""
    one, = json.loads(swerve("golden", "ls", "--store", store, "--json"))["goldens"]
    database = sqlite3.connect(store)
    ledger = database.execute("SELECT SUM(metres_mm) FROM attempts WHERE ending = 0").fetchone()
    ends = dict(database.execute("SELECT ending, COUNT(*) FROM attempts GROUP BY ending"))
    database.close()
    return (one["hash"], ledger), ends


def a_set_is_whole_though_its_workers_are_killed():
    planner = f"exec:python3 -S stop.py {ROOT}"
    make = ("golden", "make", "suite.json", "--models", "models", "--seeds", "3", "--name", "set", "--world", EXAMPLE,
            "--planner", planner, "--planner-deadline-ms", "30000", "--slots", "2", "--json")
    calm = json.loads(swerve(*make, "--store", "calm.db"))
    expected, ends = listed("calm.db")
    assert calm["recordings"] == 6 and ends == {0: 6}, (calm, ends)
    pathlib.Path("kill").write_text("2")
    swerve(*make, "--store", "worker.db")
    found, ends = listed("worker.db")
    assert found == expected and ends[0] == 6 and ends[4] > 0, (found, expected, ends)  # 4: lost with its worker
    pathlib.Path("kill").write_text("3")
    swerve(*make, "--store", "command.db", code=-signal.SIGKILL)
    assert json.loads(swerve("golden", "ls", "--store", "command.db", "--json"))["goldens"] == []
    swerve(*make, "--store", "command.db")
    found, ends = listed("command.db")
    assert found == expected and ends[0] == 6, (found, expected, ends)
    for store in ("worker.db", "command.db"):
        swerve("check", "--store", store)
        suite, = json.loads(swerve("status", "--store", store, "--json"))["suites"]
        assert suite["done"] == 6 and suite["rollouts_audit"] == 15 and suite["main_lines"] == {}, suite
        assert suite["rollouts"] == suite["rollouts_pass"] == suite["rollouts_fail"] == 0, suite
        assert json.loads(swerve("golden", "verify", "set", "--store", store, "--json"))["ok"]


def a_set_says_how_sure_its_verdicts_are():
    """A car just ahead that keeps its speed, which half of the futures do not; and a free road."""
    pathlib.Path("toss.json").write_text(SCENARIOS["free"].replace('"free"', '"toss"').replace('"agents": []', """
 "criteria": {"no_collision": true}, "agents": [{"id": "lead", "kind": "car", "behaviour": "script", "speed_mps": 13.2,
  "pose": {"lane": "east", "s_m": 27.1}}]"""))
    pathlib.Path("sure.json").write_text('{"id": "sure", "planners": ["builtin:maintain"], "scenarios": '
                                         '[{"file": "toss.json"}, {"file": "free.json"}]}')
    make = ("golden", "make", "sure.json", "--models", "models", "--name", "sure", "--world", EXAMPLE, "--json")
    made = json.loads(swerve(*make, "--futures", "--store", "sure.db"))
    assert made["recordings"] == made["futures"] == 2 and made["doubtful"] == 1, made
    one, = json.loads(swerve("golden", "ls", "--store", "sure.db", "--json"))["goldens"]
    doubt, = one["doubts"]
    assert one["futures"] == 2 and (doubt["scenario"], doubt["answer"]) == ("toss", "undecided"), one
    assert 0 < doubt["low"] + doubt["p_fail"] and doubt["low"] < 0.5 < doubt["high"], doubt
    assert "in doubt: toss, seed 1: from " in swerve("golden", "ls", "--store", "sure.db")
    assert "[orphan]" not in swerve("check", "--store", "sure.db")  # their traces are kept
    run = ("run", "sure.json", "--models", "models", "--world", "golden:sure", "--store", "sure.db")
    assert "rest on a recording in doubt" in swerve(*run) and "toss, seed 1: from " in swerve(*run)
    told, = json.loads(swerve(*run, "--json"))["golden_doubts"]
    assert told == doubt, told
    # The same set, whoever else asks; another one where nobody asks.
    assert json.loads(swerve(*make, "--futures", "--store", "again.db"))["hash"] == made["hash"]
    plain = json.loads(swerve(*make, "--store", "plain.db"))
    assert plain["futures"] == plain["doubtful"] == 0 and plain["hash"] != made["hash"], plain
    assert json.loads(swerve("golden", "ls", "--store", "plain.db", "--json"))["goldens"][0]["doubts"] == []


def pictures_of_a_rig_are_shown_as_they_were():
    """A world that makes chunks of 8 frames, to the end of which ego is committed: `verify` compares trace hashes, and the planner
    drives by every byte that it is shown."""
    os.environ["PYTHONPATH"] = str(ROOT / "scripts/world")
    for name, rig in (("rig", RIG), ("wide", {"id": "wide", "cameras": [{**RIG["cameras"][0], "width": 80}]})):
        pathlib.Path(f"{name}.json").write_text(json.dumps(rig))
    pathlib.Path("sees.py").write_text(SEES)
    pathlib.Path("one.json").write_text('{"id": "one", "scenarios": [{"file": "road.json"}]}')
    planner = f"exec:{sys.executable} sees.py {ROOT}"
    make = ("golden", "make", "one.json", "--models", "models", "--store", "rig.db", "--name", "seen", "--world",
            f"exec:{sys.executable} {ROOT}/scripts/world/chunks.py 8", "--rig", "rig.json", "--planner")
    said = swerve(*make, planner, code=3)
    assert 'sensor front of the rig small: expected JPEG ("jpeg:90"), which is what goldens keep, found plain bytes' in said, said
    made = json.loads(swerve(*make, planner + " jpeg:90", "--json"))
    assert (made["recordings"], made["rollouts"]) == (1, 4), made
    tried = json.loads(swerve("golden", "verify", "seen", "--store", "rig.db", "--json"))
    assert tried["ok"] and tried["rollouts"] == 4, tried
    run = ("run", "one.json", "--models", "models", "--workers", "1", "--audit", "off", "--attempts", "1", "--world",
           "golden:seen", "--store", "rig.db", "--planner")
    for rig, packed, words in (("rig", "", "expected cameras in JPEG, as they were recorded, found sensor front of the rig small"),
                               ("wide", " jpeg:90", "that was recorded, found wide")):
        said = swerve(*run, planner + packed, "--rig", f"{rig}.json", code=3)
        assert words in said, said
    swerve(*run, planner + " jpeg:80", "--rig", "rig.json", code=6)
    rows = map(json.loads, swerve("show", "--all", "--store", "rig.db").splitlines())
    row = next(row for row in rows if row["tier"] == "golden")
    assert "no frames of camera 0 in jpeg:80 were recorded" in row["error"] and row["given"] == "cameras,chunks:8+8@30", row


def tensors(path):
    data = pathlib.Path(path).read_bytes()
    header = int.from_bytes(data[:8], "little")
    table = json.loads(data[8:8 + header])
    return table.pop("__metadata__"), {
        name: data[8 + header + one["data_offsets"][0]:8 + header + one["data_offsets"][1]] for name, one in table.items()}


def shards_hold_what_a_world_generated():
    make = ("datagen", "suite.json", "--models", "models", "--clips", "2", "--frames", "4", "--held-out", "0")
    swerve(*make, "-o", "plain")
    swerve(*make, "-o", "seen", "--world", EXAMPLE)
    swerve(*make, "-o", "again", "--world", EXAMPLE)
    swerve(*make, "-o", "lies", "--world", "plugin:./liar.so?lie=nan")
    metadata, plain = tensors("plain/train-00000.safetensors")
    assert "model_hash" not in metadata and "health" not in plain
    metadata, seen = tensors("seen/train-00000.safetensors")
    model = json.loads(swerve("golden", "ls", "--store", "g.db", "--json"))["goldens"][0]["model_hash"]
    assert metadata["model_hash"] == model and metadata["sampler"] == "agents/example/exact", metadata
    assert len(seen["seen_bev"]) == 8 * 4 * 192 * 96 and len(seen["seen_camera"]) == 8 * 3 * 64 * 96 * 3
    assert any(seen["seen_bev"]) and any(seen["seen_camera"])
    assert pathlib.Path("again/train-00000.safetensors").read_bytes() == \
        pathlib.Path("seen/train-00000.safetensors").read_bytes()
    metadata, lies = tensors("lies/train-00000.safetensors")
    names = json.loads(metadata["health_checks"])
    said = {names[number] for number in lies["health"]}
    assert "world" in said, said
    assert "world" not in {names[number] for number in seen["health"]}
    assert len(lies["health"]) == 8


folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
for name, text in SCENARIOS.items():
    pathlib.Path(f"{name}.json").write_text(text)
pathlib.Path("suite.json").write_text(
    '{"id": "goldens", "scenarios": [{"file": "road.json"}, {"file": "free.json"}]}')
pathlib.Path("models").mkdir()
for plugin, name in zip(PLUGINS, ("example.so", "liar.so")):
    shutil.copy(plugin, name)
failed = tap.run([the_recorded_planner_sees_the_same_bits, another_planner_is_answered_while_it_is_near,
                  the_world_that_generated_answers_where_they_end, what_was_not_recorded_is_refused,
                  a_name_that_is_none_is_refused_before_anything_is_driven, options_that_would_do_nothing_are_refused,
                  what_is_interrupted_verifies_nothing, a_set_is_whole_though_its_workers_are_killed,
                  a_set_says_how_sure_its_verdicts_are, pictures_of_a_rig_are_shown_as_they_were,
                  damage_is_found, a_list_that_names_a_drive_twice_is_refused, nothing_that_a_set_needs_is_taken,
                  shards_hold_what_a_world_generated])
folder.cleanup()
sys.exit(failed > 0)
