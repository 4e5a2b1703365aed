#!/usr/bin/env python3
"""Goal: `swerve model retrain` goes from a store's disagreements to a version in shadow; killed at any moment, the same
command ends as if nobody had; what changed since is named; a budget stops it, and what is worse is not added.
Method: shipped models over scenarios of two ticks, a teacher whose verdicts were turned round, and a trainer that writes
the base's weights with another note, for which each step of training is a file. Kills are planted by the trainer, and by
whoever watches the plan, after each stage.

Usage: test_retrain.py SWERVE SOURCE_ROOT
"""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
STAGES = ["choose", "data", "train", "calibrate", "add", "evaluate", "shadow"]

TRAINER = '''
import hashlib, json, os, pathlib, struct, sys
if "--check" in sys.argv:
    if os.path.exists("lacks"):
        print("trainer: numbers are lacking: install numbers", file=sys.stderr)
    sys.exit(os.path.exists("lacks"))
a = dict(zip(sys.argv[1::2], sys.argv[2::2]))
said = json.load(open("say.json"))
state = pathlib.Path(a["--state"], "steps")
steps = int(state.read_text()) if state.exists() else 0
pathlib.Path("began").open("a").write(f"{steps} {a['--seconds']}\\n")
while steps < 4:
    steps += 1
    state.write_text(str(steps))
    if said.get("kill") == steps:
        pathlib.Path("say.json").write_text("{}")
        os.kill(os.getppid(), 9)
        import time; time.sleep(60)  # it does not outlive its parent
if said.get("hang"):
    import time; time.sleep(60)
data = open(a["--base"], "rb").read()
size, = struct.unpack("<Q", data[:8])
head = json.loads(data[8:8 + size])
seen = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(pathlib.Path(a["--data"]).rglob("*.safetensors"))))
head["__metadata__"]["note"] = f"{seen.hexdigest()} {steps} {a['--seed']}"
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(a["--out"], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + size:])
json.dump({"held_out_base": 1.0, "held_out": said.get("error", 0.5)}, open(a["--report"], "w"))
'''


def scenario(name):
    return {"id": name, "question": "perception", "horizon_s": 0.2,
            "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
            "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
            "conditions": {"weather": "rain" if "wet" in name else "clear"}, "slices": {"weather": "rain" if "wet" in name else "clear"},
            "agents": [{"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 10, "behaviour": "idm"}]}


def swerve(*words, code=0, **more):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, **more)
    assert done.returncode == code, (words, done.returncode, done.stdout[-800:], done.stderr[-800:])
    return done


def say(**what):
    pathlib.Path("say.json").write_text(json.dumps(what))


def words(store, *more, work="work"):
    return ["model", "retrain", "--store", store, "--work", work, "--trainer", "python3 -S trainer.py", "--clips", "3",
            "--clip-frames", "3", "--suite", "wet0.json", "--policy", "low.json", "--workers", "1", "--seconds", "50", *more]


def retrain(store, *more, code=0, work="work"):
    return swerve(*words(store, *more, work=work), code=code)


def plan(work="work"):
    return json.loads(pathlib.Path(work, "plan.json").read_text())


def made(work="work"):
    """Digests that the stages made; a report of an evaluation has numbers of jobs, which differ where attempts were lost."""
    return {name: {key: value for key, value in stage["made"].items() if key != "report"}
            for name, stage in plan(work)["stages"].items()}


def fresh(name):
    """A copy of the store in which three of the student's verdicts, of six of its audits, are not the teacher's."""
    for suffix in ("", ".artifacts"):
        (shutil.copytree if suffix else shutil.copy)("first.db" + suffix, name + suffix)
    return name


def prepare():
    names = [f"wet{i}" for i in range(5)] + [f"dry{i}" for i in range(5)]
    for name in names:
        pathlib.Path(name + ".json").write_text(json.dumps(scenario(name)))
    pathlib.Path("all.json").write_text('{"rate": 1, "safety_critical_rate": 1}')
    pathlib.Path("low.json").write_text('{"format": "swerve-trust/1", "band": 0.01, "safety_critical_band": 0.01}')
    pathlib.Path("suite.json").write_text(json.dumps({"id": "suite", "scenarios": [{"file": name + ".json"} for name in names]}))
    pathlib.Path("trainer.py").write_text(TRAINER)
    say()
    swerve("model", "add", str(ROOT / "engine/models/student.safetensors"), "--name", "one", "--store", "first.db")
    swerve("model", "promote", "one", "--force", "--evidence", "a test", "--store", "first.db")
    swerve("run", "suite.json", "--world", "student", "--audit", "all.json", "--workers", "1", "--store", "first.db")
    with contextlib.closing(sqlite3.connect("first.db")) as db, db:
        db.execute("UPDATE outcomes SET verdict = 1 WHERE context IN (SELECT id FROM contexts WHERE tier = 3)"
                   " AND job IN (SELECT job FROM job_specs WHERE scenario_id IN ('wet0', 'wet1', 'wet2'))")


def models(store):
    found = json.loads(swerve("model", "ls", "--store", store, "--json").stdout)["models"]
    return {model["name"]: (model["state"], model["hash"]) for model in found}


def attempts(store, tier):
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute("SELECT COUNT(*) FROM attempts a JOIN job_specs s ON s.job = a.job JOIN contexts c ON c.id = s.context"
                          " WHERE c.tier = ?", (tier,)).fetchone()[0]


def the_whole_way():
    store = fresh("whole.db")
    before = attempts(store, 3)
    done = retrain(store)
    assert "3 scenarios with another verdict or a flag, 3 healthy ones" in done.stdout, done.stdout
    assert "passed the gate and is a shadow" in done.stdout, done.stdout
    stages = plan()["stages"]
    assert list(stages) == STAGES and all(stage["state"] == "done" for stage in stages.values()), stages
    name = stages["add"]["made"]["version"]
    weights = pathlib.Path("work/train/weights.safetensors").read_bytes()
    found = models(store)
    assert found[name] == ("shadow", hashlib.sha256(weights).hexdigest()) and found["one"][0] == "promoted", found
    version = json.loads(swerve("model", "show", name, "--store", store, "--json").stdout)
    assert version["parents"].startswith(f"one {found['one'][1]}; teacher "), version["parents"]
    for stage, member in (("data", "shards"), ("choose", "train"), ("choose", "held-out")):
        assert stages[stage]["made"][member] in version["data_note"], version["data_note"]
    assert version["health_hash"], version
    shutil.copytree("work", "undisturbed")
    # The teacher had answered all that the gate asked.
    assert attempts(store, 3) == before, (attempts(store, 3), before)


def healthy_ones_are_of_the_same_slices_and_families_are_on_one_side():
    sides = {side: json.loads(pathlib.Path(f"work/suite/{side}/suite.json").read_text())["scenarios"]
             for side in ("train", "held-out", "evaluate")}
    ids = {side: {json.loads(pathlib.Path(f"work/suite/{side}", entry["file"]).read_text())["id"] for entry in entries}
           for side, entries in sides.items()}
    chosen = ids["train"] | ids["held-out"]
    assert {"wet0", "wet1", "wet2", "wet3", "wet4"} <= chosen and len(chosen) == 6, ids  # two wet ones were healthy
    assert not ids["train"] & ids["held-out"] and ids["train"] & {"wet0", "wet1", "wet2"}, ids
    assert ids["evaluate"] == ids["held-out"], ids


def what_was_trained_on_judges_nothing():
    store = fresh("judge.db")
    retrain(store, "--drive", "suite.json", work="judge")
    ids = {side: {json.loads(path.read_text())["id"] for path in pathlib.Path("judge/suite", side).glob("*.json")
                  if path.name != "suite.json"} for side in ("train", "evaluate")}
    everything = {f"{kind}{i}" for kind in ("wet", "dry") for i in range(5)}
    assert ids["train"] and ids["evaluate"] == everything - ids["train"], ids


def the_same_command_does_nothing_again():
    began = pathlib.Path("began").read_text()
    trained = os.stat("work/train/weights.safetensors").st_mtime_ns
    done = retrain("whole.db", "--json")
    told = json.loads(done.stdout)
    assert told["passed"] and told["shadow"] and told["version"] in models("whole.db"), told
    assert pathlib.Path("began").read_text() == began and os.stat("work/train/weights.safetensors").st_mtime_ns == trained


def run_until(store, work, stage):
    """Starts it and kills it, with SIGKILL, as soon as the plan says that the stage is done."""
    child = subprocess.Popen([SWERVE, *words(store, work=work)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = pathlib.Path(work, "plan.json")
    until = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < until:
        if path.exists() and json.loads(path.read_text())["stages"].get(stage, {}).get("state") == "done":
            break
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()


def killed_after_each_stage_it_ends_the_same():
    store = fresh("killed.db")
    for stage in STAGES:
        run_until(store, "killed", stage)
        assert plan("killed")["stages"][stage]["state"] == "done", (stage, plan("killed"))
    retrain(store, work="killed")
    assert made("killed") == made("undisturbed"), (made("killed"), made("undisturbed"))
    assert models(store) == models("whole.db"), models(store)


def killed_within_the_training_it_goes_on_there():
    store = fresh("within.db")
    os.remove("began")
    say(kill=2)
    assert subprocess.run([SWERVE, *words(store, work="within")], stdout=subprocess.DEVNULL).returncode == -9
    retrain(store, work="within")
    began = [line.split() for line in pathlib.Path("began").read_text().splitlines()]
    assert [line[0] for line in began] == ["0", "2"], began
    assert made("within") == made("undisturbed"), made("within")


def what_changed_is_named():
    for more, words_of in ((["--clips", "4"], "$.stages.data.inputs.clips: expected 3, as when it was made, found 4"),
                           (["--seed", "2"], "$.stages.data.inputs.seed"), (["--healthy", "2"], "$.stages.choose.inputs.healthy"),
                           (["--seconds", "60"], "$.stages.train.inputs.seconds")):
        said = retrain("whole.db", *more, code=4).stderr
        assert words_of in said and "--again" in said, said
    weights = pathlib.Path("work/models/candidate.health.json")
    kept = weights.read_bytes()
    weights.write_bytes(kept + b"\n")
    assert "$.stages.calibrate.made.bounds" in retrain("whole.db", code=4).stderr
    weights.unlink()
    assert "what calibrate made is not there" in retrain("whole.db", code=4).stderr
    weights.write_bytes(kept)
    retrain("whole.db")
    assert "found one from" in retrain(fresh("another.db"), code=4).stderr
    pathlib.Path("work2").mkdir()
    pathlib.Path("work2/plan.json").write_text('{"format": "swerve-retrain/9", "store": "whole.db", "spent_s": 0, "stages": {}}')
    assert "$.format: expected swerve-retrain/1" in retrain("whole.db", work="work2", code=3).stderr


def again_makes_it_and_what_follows():
    store = fresh("again.db")
    retrain(store, work="again")
    first = made("again")
    retrain(store, "--seed", "2", "--again", work="again")
    second = made("again")
    assert second["choose"] == first["choose"] and second["data"] != first["data"], second
    assert second["add"]["version"] != first["add"]["version"] and len(models(store)) == 3, models(store)


def what_is_no_better_is_not_added():
    store = fresh("worse.db")
    say(error=1.5)
    said = retrain(store, work="worse", code=1).stderr
    assert "training made nothing better: the error in what was held out is 1.5, that of the promoted student 1" in said, said
    assert list(models(store)) == ["one"]
    say()
    assert retrain(store, work="worse", code=1).stderr == said  # it is not trained until it fits


def what_does_not_pass_is_a_candidate_and_slices_are_named():
    store = fresh("below.db")
    policy = {"format": "swerve-trust/1", "band": 0.01, "safety_critical_band": 0.01, "decides": [{}, {"weather": "fog"}]}
    pathlib.Path("fog.json").write_text(json.dumps(policy))
    said = retrain(store, "--policy", "fog.json", work="below", code=1).stderr
    assert "did not pass: weather=fog (no audited job)" in said, said
    assert models(store)[made("below")["add"]["version"]][0] == "candidate", models(store)
    assert retrain(store, "--policy", "fog.json", work="below", code=1).stderr == said
    policy["decides"] = [{}, {"weather": "rain"}]  # declared after the fact: no stage before the gate is made anew
    pathlib.Path("fog.json").write_text(json.dumps(policy))
    assert "$.stages.evaluate.inputs.policy" in retrain(store, "--policy", "fog.json", work="below", code=4).stderr
    retrain(store, "--policy", "fog.json", "--again", work="below")
    assert models(store)[made("below")["add"]["version"]][0] == "shadow", models(store)


def a_budget_stops_it_and_more_goes_on():
    store = fresh("budget.db")
    say(hang=True)
    for _ in range(2):  # 5 s, half of what is left of them for a training that hangs
        said = retrain(store, "--hours", "0.0014", work="budget", code=3).stderr
        assert re.search(r"stopped by --hours 0\.0014 (in|before) \w+, after .* goes on", said), said
        assert plan("budget")["spent_s"] >= 2.5 or "before train" in said, said
    say()
    retrain(store, "--hours", "1", work="budget")
    assert made("budget") == made("undisturbed"), made("budget")


def misuse_and_what_lacks_are_said_before_anything():
    store = fresh("misuse.db")
    assert "expected --work DIR" in swerve("model", "retrain", "--store", store, code=2).stderr
    assert "expected --store URL" in swerve("model", "retrain", "--work", "misuse", code=2).stderr
    assert "--hours" in retrain(store, "--hours", "soon", work="misuse", code=2).stderr
    assert "--clips goes with retrain alone" in swerve("model", "ls", "--clips", "2", code=2).stderr
    assert not pathlib.Path("misuse").exists()
    pathlib.Path("lacks").touch()
    said = retrain(store, work="misuse", code=5).stderr
    assert said == "swerve: trainer: numbers are lacking: install numbers\n", said
    os.remove("lacks")
    assert not plan("misuse")["stages"]
    retrain("nowhere.db", work="misuse2", code=4)
    assert "nosuch: there is no such program" in swerve(*words(store, work="m3"), "--trainer", "nosuch", code=3).stderr
    swerve("model", "add", str(ROOT / "engine/models/student.safetensors"), "--name", "lone", "--store", "lone.db")
    assert "expected a promoted student" in retrain("lone.db", work="misuse4", code=3).stderr
    swerve("model", "promote", "lone", "--force", "--evidence", "a test", "--store", "lone.db")
    assert "nothing to learn from" in retrain("lone.db", work="misuse4", code=3).stderr
    # The trainer that is shipped says by itself what it lacks.
    done = subprocess.run([sys.executable, "-S", ROOT / "scripts/train/retrain.py", "--check"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5 and "-m pip install --require-hashes -r" in done.stderr and "torch" in done.stderr, done


def what_later_stages_refuse_is_refused_before_the_first():
    store = fresh("ahead.db")
    pathlib.Path("bad.json").write_text('{"format": "swerve-trust/1", "bandd": 1}')
    pathlib.Path("sick.py").write_text("raise SystemExit('no planner today')")
    for more, code, words_of in ((["--share", "200"], 2, "--share: expected 0 to 100, found 200"), (["--workers", "0"], 2, "--workers"),
                                 (["--days", "0"], 2, "--days"), (["--name", "a b"], 3, "letters, digits"), (["--name", "n" * 99], 2, "--name"),
                                 (["--precision", "int8"], 2, "found int8: a retrained student has that of the promoted one")):
        said = retrain(store, *more, work="ahead", code=code).stderr
        assert words_of in said and not pathlib.Path("ahead").exists(), (more, said)
    for more, code, words_of in ((["--name", "one"], 4, 'expected one that is free, found "one"'), (["--suite", "nope"], 3, "nope"),
                                 (["--planner", "foo"], 3, "foo"), (["--planner", "exec:python3 sick.py"], 6, "no planner today"),
                                 (["--policy", "bad.json"], 3, "bandd"), (["--models", "nowhere"], 3, "nowhere"), (["--drive", "nope.json"], 3, "nope.json")):
        done = retrain(store, *more, work="ahead", code=code)
        assert words_of in done.stderr and "choose.." not in done.stdout and not plan("ahead")["stages"], (more, done)
    retrain(store, "--name", "mine", work="ahead")
    assert retrain(store, "--name", "mine", "--json", work="ahead").returncode == 0  # it is its own
    before = plan("ahead")
    assert "found \"mine\"" in retrain(store, "--name", "mine", "--seed", "2", "--again", work="ahead", code=4).stderr
    assert plan("ahead") == before


def a_trainer_that_fails_is_told():
    store = fresh("fails.db")
    said = retrain(store, "--trainer", "true", work="fails", code=5).stderr
    assert "train: the trainer ended well, but what it made does not do: expected weights in fails/train/weights.safetensors, found none" in said, said
    for text, words_of in (("sys.exit(3)", "train: it failed without a word on stderr (exit code 3; nothing is in fails/train.log)"),
                           ("sys.exit('no room')", "train: no room (exit code 1; all of it is in fails/train.log)"),
                           ("os.kill(os.getpid(), 9)", "ended by signal 9, Killed"),
                           ("open(a['--out'], 'w').write('weights')", "what it made does not do: fails/train/weights.safetensors"),
                           ("shutil.copy(a['--teacher'], a['--out'])", "expected a student, found a teacher"),
                           ("shutil.copy(a['--base'], a['--out'])", "fails/train/report.json")):
        pathlib.Path("fails.py").write_text("import os, shutil, sys\nif '--check' in sys.argv: sys.exit()\n"
                                            "a = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n" + text)
        said = retrain(store, "--trainer", "python3 -S fails.py", "--again", work="fails", code=5).stderr
        assert words_of in said, said
    retrain(store, "--again", work="fails")


def two_do_not_work_in_one_folder():
    store = fresh("busy.db")
    say(hang=True)
    child = subprocess.Popen([SWERVE, *words(store, work="busy")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    path = pathlib.Path("busy/train/state/steps")
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text() == "4") and time.monotonic() < until:
        time.sleep(0.01)
    said = retrain(store, work="busy", code=7).stderr.splitlines()
    assert said[0] == ("swerve: busy: another swerve model retrain works there, or what is left of one: waiting for it, 10 s at the most"), said
    assert said[1:] == ["swerve: busy: another swerve model retrain works there"], said
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130 and "interrupted in train" in child.stderr.read()
    say()
    retrain(store, work="busy")
    assert made("busy") == made("undisturbed")


TESTS = [the_whole_way, healthy_ones_are_of_the_same_slices_and_families_are_on_one_side, the_same_command_does_nothing_again,
         what_was_trained_on_judges_nothing, killed_after_each_stage_it_ends_the_same, killed_within_the_training_it_goes_on_there, what_changed_is_named,
         again_makes_it_and_what_follows, what_is_no_better_is_not_added, what_does_not_pass_is_a_candidate_and_slices_are_named,
         a_budget_stops_it_and_more_goes_on, what_later_stages_refuse_is_refused_before_the_first, a_trainer_that_fails_is_told, misuse_and_what_lacks_are_said_before_anything, two_do_not_work_in_one_folder]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-retrain-") as work:
        os.chdir(work)
        os.environ.update(SWERVE_MODELS=str(ROOT / "engine/models"), SWERVE_MODEL_CACHE=work + "/cache", USER="tester")
        os.environ.pop("SWERVE_TRAINER", None)
        prepare()
        failed = tap.run(TESTS)
    sys.exit(1 if failed else 0)


main()
