#!/usr/bin/env python3
"""Goal: suites of logs of the controls challenge go through store and workers as every suite does, with the costs of
`swerve controls` to the last bit, replayed bit for bit, whoever steers: the builtin, the challenge's own classes alone
or batched. Method: made-up logs and a made-up model; the same controller three times; files and worlds that do not go
together.

Usage: test_controls.py SWERVE SOURCE_ROOT WRITER RUNTIME_SO
"""
import json
import math
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
WRITER, RUNTIME = (os.path.realpath(path) for path in sys.argv[3:5])
LOGS, ROWS = 3, 130
FLAGGED = 3  # enum verdict of schemas/outcome.h
ADAPTER = ROOT / "scripts/adapters/controls_controller.py"

CONTROLLERS = """
class Controller:
    def __init__(self):
        self.sum = self.last = 0
    def update(self, target_lataccel, current_lataccel, state, future_plan):
        assert len(future_plan.lataccel) == len(future_plan.a_ego) <= 49
        assert state.v_ego > 10 and abs(state.roll_lataccel) < 1
        error = target_lataccel - current_lataccel
        self.sum += error
        change, self.last = error - self.last, error
        return 0.195 * error + 0.100 * self.sum + -0.053 * change

class Batched:
    def __init__(self):
        self.drives = {}
    def start(self, session):
        self.drives[session] = Controller()
    def update_batch(self, sessions, *queries):
        return [self.drives[session].update(*query) for session, *query in zip(sessions, *queries)]

class Broken(Controller):
    def update(self, *query, **more):
        return float("nan")
"""


def swerve(*arguments, code=0):
    run = subprocess.run([SWERVE, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == code, (arguments, run.returncode, run.stdout[-2000:], run.stderr[-2000:])
    return run


def prepare():
    pathlib.Path("steering.py").write_text(CONTROLLERS)
    pathlib.Path("logs").mkdir()
    for log in range(LOGS):
        lines = ["t,vEgo,aEgo,roll,targetLateralAcceleration,steerCommand"]
        for row in range(ROWS):
            wave = math.sin(0.05 * row + log)
            lines.append(f"{row / 10},{20 + wave!r},{0.1 * wave!r},{0.02 * wave!r},{1.5 * wave!r},{-0.3 * wave!r}")
        pathlib.Path(f"logs/{log:05d}.csv").write_text("\n".join(lines) + "\n")
    subprocess.run([WRITER, "--write", "made_up.onnx"], check=True)
    swerve("import", "controls", "logs", "-o", "suite.json")
    pathlib.Path("broken.csv").write_text("t,vEgo\n")
    swerve("import", "controls", "broken.csv", "-o", "broken.json", code=3)
    assert not pathlib.Path("broken").exists() and not pathlib.Path("broken.json").exists()
    assert "opendrive, openscenario, usdz or womd" in swerve("import", "lanes", "a", "-o", "b.json", code=2).stderr


WORLD = "tinyphysics:made_up.onnx"


def outcomes(store):
    with sqlite3.connect(store) as db:
        return db.execute("SELECT s.scenario_id, o.lataccel_cost, o.jerk_cost, o.total_cost, o.trace_hash, o.verdict,"
                          " o.given FROM outcomes o JOIN job_specs s ON s.job = o.job ORDER BY 1").fetchall()


def costs_and_replays_are_those_of_the_command():
    told = json.loads(swerve("run", "suite.json", "--world", WORLD, "--planner", "builtin:pid", "--store", "a.db", "--seeds",
                             1, "--json").stdout)
    alone = json.loads(swerve("controls", "logs", "--model", "made_up.onnx", "--json").stdout)
    rows = outcomes("a.db")
    assert [row[0] for row in rows] == [f"{log:05d}" for log in range(LOGS)], rows
    for row, log in zip(rows, alone["logs"]):
        assert row[1:4] == (log["lataccel_cost"], log["jerk_cost"], log["total_cost"]), (row, log)
        assert row[6] == "controls", row
    mean = told["field"]["student"]["controls"]
    assert mean["drives"] == LOGS and abs(mean["total_cost"] / alone["mean"]["total_cost"] - 1) < 1e-12, mean
    assert "3 identical, 0 different" in swerve("replay", "--all", "--store", "a.db", "--world", WORLD).stdout
    swerve("check", "--store", "a.db")


def environments_are_the_drives_of_run():
    """All logs side by side, and a copy of the first from tick 50 on, steered by the challenge's PID."""
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts"), "."]
    os.environ["SWERVE_PROGRAM"] = SWERVE
    from steering import Controller
    from swerve import _native, _program
    pathlib.Path("of_env").mkdir()
    shutil.copy("made_up.onnx", "of_env/tinyphysics.onnx")
    batch = _native.Batch("suite.json", LOGS + 1, "tinyphysics", 2, _native.HASH, model={"models": "of_env"})
    batch.reset(range(LOGS + 1), [*range(LOGS), 0], [1] * LOGS + [7])
    drivers = [Controller() for _ in range(LOGS + 1)]
    ticks = batch.horizon_ticks[0]
    lateral = _native.EGO.index("lat_accel_mps2")
    for tick in range(ticks):
        if tick == 50:
            batch.fork(0, LOGS)
            drivers[LOGS].__dict__.update(drivers[0].__dict__)
        for index, driver in enumerate(drivers):
            rows = batch.controls[batch.scenario[index]]
            error = rows[tick, 0] - batch.ego[index, lateral]
            driver.sum += error
            change, driver.last = error - driver.last, error
            batch.actions[index] = 0.0, min(2.0, max(-2.0, 0.195 * error + 0.100 * driver.sum - 0.053 * change))
        batch.step()
    rows = outcomes("a.db")
    for index in range(LOGS + 1):
        outcome, row = batch.outcome(index), rows[index % LOGS]
        assert outcome["scenario_id"] == row[0] and outcome["trace_hash"] == row[4], (outcome, row)
        assert outcome["metrics"]["total_cost"] == row[3], (outcome["metrics"], row)
    for model, text in (({"models": "logs"}, "tinyphysics.onnx"), ({"models": "of_env", "layout": "map"}, "neither layout"),
                        ({"models": "of_env", "precision": "int8"}, "int8")):
        try:
            _native.Batch("suite.json", 1, "tinyphysics", model=model)
            raise AssertionError(model)
        except _program.Error as error:
            assert text in str(error), error


def classes_of_the_challenge_steer_unchanged():
    for number, name in enumerate(("steering", "steering:Batched")):
        planner = f"exec:{sys.executable} {ADAPTER} {name}"
        swerve("run", "suite.json", "--world", WORLD, "--planner", planner, "--planner-deadline-ms", 60000, "--store",
               f"p{number}.db", "--seeds", 1)
        assert outcomes(f"p{number}.db") == outcomes("a.db"), (name, outcomes(f"p{number}.db"))
    swerve("run", "suite.json", "--world", WORLD, "--planner", f"exec:{sys.executable} {ADAPTER} steering:Broken",
           "--store", "broken.db", "--seeds", 1, code=6)


def a_precision_is_a_world_of_its_own():
    world = WORLD.replace("tinyphysics:", "tinyphysics-bf16:")
    swerve("run", "suite.json", "--world", world, "--planner", "builtin:pid", "--store", "h.db", "--seeds", 1)
    rows = outcomes("h.db")
    alone = json.loads(swerve("controls", "logs", "--model", "made_up.onnx", "--json", "--precision", "bf16").stdout)
    assert alone["precision"] == "bf16", alone
    assert [row[3] for row in rows] == [log["total_cost"] for log in alone["logs"]], (rows, alone)
    assert [row[3] for row in rows] != [row[3] for row in outcomes("a.db")], "costs of fp32"
    assert "3 identical, 0 different" in swerve("replay", "--all", "--store", "h.db", "--world", world).stdout
    swerve("replay", "--all", "--store", "h.db", "--world", WORLD, code=5)
    assert "fp32 or bf16" in swerve("controls", "logs", "--model", "made_up.onnx", "--precision", "int8", code=2).stderr
    swerve("controls", "logs", "--model", "made_up.onnx", "--device", "cuda:99", code=5)


MANIFEST = {"name": "exported", "version": "1", "form": "controls", "deterministic": True,
            "inputs": {"states": "states", "tokens": "tokens"}, "outputs": {"logits": "output"}}


def the_exported_file_drives_by_a_runtime_as_natively():
    """The runtime is a double that has the engine compute the file: a wrong row, token or order of drives changes costs."""
    world = "onnx:made_up.onnx"
    pathlib.Path("made_up.json").write_text(json.dumps(MANIFEST))
    os.environ["SWERVE_ONNXRUNTIME"] = RUNTIME
    swerve("run", "suite.json", "--world", world, "--planner", "builtin:pid", "--store", "o.db", "--seeds", 1)
    assert [row[:4] for row in outcomes("o.db")] == [row[:4] for row in outcomes("a.db")], outcomes("o.db")
    assert "3 identical, 0 different" in swerve("replay", "--all", "--slots", 3, "--threads", 2, "--store", "o.db",
                                                "--world", world).stdout
    swerve("replay", "--all", "--store", "o.db", "--world", WORLD, code=5)  # another world, whatever it computes
    os.environ["SWERVE_CONTROLS_RUNS"] = "12"  # one tries the file out
    told = swerve("run", "suite.json", "--world", world, "--planner", "builtin:pid", "--store", "tired.db", "--seeds", 1, code=6)
    said = told.stdout + told.stderr
    assert said.count("world exported 1: tick 92: run: the runtime is tired") == LOGS, said
    assert {row[5] for row in outcomes("tired.db")} == {FLAGGED}, outcomes("tired.db")
    del os.environ["SWERVE_CONTROLS_RUNS"]
    for member, value in (("inputs", {"states": "states"}), ("outputs", {}), ("horizon_s", 30), ("version", "")):
        pathlib.Path("made_up.json").write_text(json.dumps(MANIFEST | {member: value}))
        swerve("run", "suite.json", "--world", world, "--planner", "builtin:pid", "--store", "none.db", code=3)
    del os.environ["SWERVE_ONNXRUNTIME"]


def other_seeds_draw_anew():
    swerve("run", "suite.json", "--world", WORLD, "--planner", "builtin:zero", "--store", "s.db", "--seeds", 2)
    drives = outcomes("s.db")
    assert len({row[4] for row in drives}) == 2 * LOGS, drives


def a_cost_is_a_criterion():
    limit = sorted(row[3] for row in outcomes("a.db"))[1]
    swerve("import", "controls", "logs", "-o", "gated.json", "--cost", repr(limit))
    swerve("validate", "gated.json")
    told = json.loads(swerve("run", "gated.json", "--world", WORLD, "--planner", "builtin:pid", "--store", "g.db", "--seeds",
                             1, "--gate", "--json", code=1).stdout)
    assert (told["passed"], told["failed"]) == (2, 1), told
    assert '"cost"' in swerve("show", "3", "--json", "--store", "g.db").stdout + swerve("show", "2", "--json", "--store", "g.db").stdout + \
        swerve("show", "1", "--json", "--store", "g.db").stdout


def logs_and_worlds_go_together():
    for world in ("object", "auto"):
        assert "--world tinyphysics" in swerve("run", "suite.json", "--world", world, "--store", "o.db", code=3).stderr
    assert "found none" in swerve("run", "smoke", "--world", WORLD, "--store", "o.db", code=3).stderr
    assert "tinyphysics:MODEL.onnx" in swerve("run", "suite.json", "--world", "tinyphysics:", "--store", "o.db", code=2).stderr
    swerve("run", "suite.json", "--world", "tinyphysics:logs/00000.csv", "--store", "o.db", code=3)


def a_directory_of_models_may_hold_it():
    os.mkdir("models")
    shutil.copy("made_up.onnx", "tinyphysics.onnx")
    swerve("model", "add", "tinyphysics.onnx", "--models", "models")
    swerve("model", "add", "tinyphysics.onnx", "--models", "models", code=4)
    assert swerve("model", "ls", "--models", "models").stdout.startswith("tinyphysics "), "a model that was added is listed"
    swerve("run", "suite.json", "--world", "tinyphysics", "--models", "models", "--planner", "builtin:pid", "--store", "m.db",
           "--seeds", 1)
    assert outcomes("m.db") == outcomes("a.db")


def damaged_scenarios_are_refused():
    whole = json.loads(pathlib.Path("suite/00000.json").read_text())
    for change, said in ((lambda s: s["controls"]["rows"].pop(), "horizon"),
                         (lambda s: s["controls"]["rows"][7].pop(), "$.controls.rows[7]"),
                         (lambda s: s["controls"].update(seed=10000), "$.controls.seed"),
                         (lambda s: s["controls"].update(rows=[]), "$.controls.rows")):
        scenario = json.loads(json.dumps(whole))
        change(scenario)
        pathlib.Path("damaged.json").write_text(json.dumps(scenario))
        assert said in swerve("validate", "damaged.json", code=3).stderr, said


def what_is_written_loads_again():
    header, *rows = pathlib.Path("logs/00000.csv").read_text().splitlines()
    fast = [",".join([row.split(",")[0], "9000", *row.split(",")[2:]]) for row in rows * 5]
    pathlib.Path("fast.csv").write_text("\n".join([header, *fast]) + "\n")
    assert "fast.csv: vEgo: expected a drive of at most" in \
        swerve("import", "controls", "fast.csv", "-o", "fast.json", code=3).stderr
    assert not os.path.exists("fast.json")
    told = subprocess.run([SWERVE, "import", "controls", "logs", "-o", b"caf\xe9.json"], capture_output=True, text=True)
    assert told.returncode == 2 and "UTF-8" in told.stderr and not os.path.exists(b"caf\xe9.json"), told


TESTS = [costs_and_replays_are_those_of_the_command, environments_are_the_drives_of_run, a_precision_is_a_world_of_its_own,
         classes_of_the_challenge_steer_unchanged, the_exported_file_drives_by_a_runtime_as_natively, other_seeds_draw_anew,
         a_cost_is_a_criterion, logs_and_worlds_go_together, a_directory_of_models_may_hold_it, damaged_scenarios_are_refused,
         what_is_written_loads_again]
if not (pathlib.Path(SWERVE).parent / "libswerve_env.so").exists():  # which sanitized builds have not
    TESTS.remove(environments_are_the_drives_of_run)
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    prepare()
    failed = tap.run(TESTS)
    os.chdir("/")
sys.exit(failed > 0)
