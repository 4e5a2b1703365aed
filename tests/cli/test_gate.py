#!/usr/bin/env python3
"""Goal: gates by slice and beside an earlier run fail exactly where a rate is too low, and name it; retry drives again
what is asked for, and nothing else. Method: a suite in fog and in clear weather in which a planner fails where a file says
so; gates of each kind on what is known, and the jobs of a retry counted.

Usage: test_gate.py SWERVE SOURCE_ROOT
"""
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))

PLANNER = """
import swerve_planner
class Mine(swerve_planner.Planner):
    def reset(self, episode):
        self.what = open("faults").read().split()
        self.id = episode.scenario_id
    def act(self, observation):
        if "raise:" + self.id in self.what:
            raise ValueError("as planned")
        return (-3.0 if "brake:" + self.id in self.what else 0.0), 0.0
swerve_planner.run(Mine)
"""


def scenario(name, weather, fails):
    wall = [{"id": "wall", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "behaviour": "static"}] if fails else []
    return {"id": name, "horizon_s": 4, "agents": wall, "conditions": {"weather": weather},
            "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
            "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}}


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == code, (words, done)
    return done


def run(*options, code=0, store="a.db"):
    return swerve("run", "all.json", "--world", "object", "--store", store, "--planner", "exec:python3 -S mine.py", *options,
                  code=code)


def a_slice_that_passes_meets_its_gate():
    run("--gate-slice", "weather=clear>=1", "--gate-slice", "weather=fog>=0.5")


def a_slice_that_fails_is_named():
    done = run("--gate-slice", "weather=clear>=1", "--gate-slice", "weather=fog>=0.75", code=1)
    assert "gate not met: weather=fog: 50.0% of main lines passed, 75.0% wanted" in done.stderr, done.stderr
    assert "clear" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("swerve: gate not met: "), done.stderr
    row = json.loads(run("--gate-slice", "weather=fog>=0.75", "--json", code=1).stdout)
    assert row["gate_met"] is False and len(row["gate_missed"]) == 1, row["gate_missed"]


def a_slice_that_is_not_there_is_missed():
    assert "no main line of the suite is in this slice" in run("--gate-slice", "weather=frog>=0", code=1).stderr


def wrong_gates_are_refused():
    for words in (["--gate-slice", "fog"], ["--gate-slice", "weather=fog>=2"], ["--gate-slice", "=fog>=1"], ["--gate-slice", "wether=fog>=0"],
                  ["--gate-margin", "0.1"], ["--gate-rate", "most"]):
        run(*words, code=2)
    assert "--gate-baseline beside it" in run("--gate-margin", "0.1", code=2).stderr
    assert "nosuch.json: cannot open: No such file" in run("--gate-baseline", "nosuch.json", code=3).stderr
    pathlib.Path("no.json").write_text("{")
    assert "line 1" in run("--gate-baseline", "no.json", code=3).stderr
    pathlib.Path("no.json").write_text("{}")
    assert "pass_rates" in run("--gate-baseline", "no.json", code=3).stderr


def a_baseline_holds_every_slice():
    pathlib.Path("before.json").write_text(run("--json").stdout)
    before = json.loads(pathlib.Path("before.json").read_text())
    assert before["gate_met"] is None and before["gate_missed"] == [], before["gate_met"]
    assert run("--gate-baseline", "before.json").stdout.splitlines()[-1] == "gate met"
    before["pass_rates"]["object"]["scenarios"] += 3
    pathlib.Path("more.json").write_text(json.dumps(before))
    assert "in the baseline: what is missing is not known to pass" in run("--gate-baseline", "more.json", code=1).stderr
    pathlib.Path("faults").write_text("raise:clear1")
    done = run("--gate-baseline", "before.json", "--fresh", code=1)
    assert "weather=clear: 50.0% of main lines passed in the object world, 100.0% in the baseline" in done.stderr, done
    assert "fog" not in done.stderr
    run("--gate-baseline", "before.json", "--gate-margin", "0.5")
    pathlib.Path("faults").write_text("")


def costs_are_held_against_a_baseline():
    """Dearer or slower by more than 5% is missed, by less or cheaper is not; what cannot be compared is."""
    run("--json")
    before = json.loads(run("--json").stdout)  # of the same outcomes as what follows: the store has them
    assert [(meter["pool"], meter["tier"], meter["device"], meter["model"]) for meter in before["meters"]] == [
        ("bulk", "object", "cpu", "")], before["meters"]
    meter = before["meters"][0]
    assert meter["rollouts"] == len(before["outcomes"]) and meter["mfu"] is None, meter
    for name in ("tick_ms", "rollout_s"):
        assert 0 < meter[name]["p50"] <= meter[name]["p95"] <= meter[name]["p99"], meter
    assert math.isclose(meter["miles_per_device_hour"], meter["miles"] / meter["device_s"] * 3600, rel_tol=1e-9)
    assert math.isclose(meter["usd_per_mile"] * meter["miles"], sum(tier["usd"] for tier in before["by_tier"].values()), rel_tol=1e-9)
    for what, change, code in (("usd_per_mile", 1, 0), ("usd_per_mile", 1 / 1.04, 0), ("usd_per_mile", 1 / 1.06, 1), ("usd_per_mile", 2, 0),
                               ("p99", 1 / 1.04, 0), ("p99", 1 / 1.06, 1)):
        other = json.loads(json.dumps(before))
        where = other["meters"][0] if what == "usd_per_mile" else other["meters"][0]["tick_ms"]
        where[what] *= change
        pathlib.Path("cost.json").write_text(json.dumps(other))
        done = run("--gate-cost", "cost.json", code=code)
        said = {"usd_per_mile": "$/mile", "p99": "ms/tick p99"}[what] + ", pool bulk, object on cpu, model -: "
        assert code == 0 or ("gate not met: " + said in done.stderr and " and 5% more are allowed" in done.stderr), done.stderr
    for damage, said in (({"tick_ms": {}}, "p99"), ({"tick_ms": {"p99": "1"}}, "p99"), ({"usd_per_mile": True}, "usd_per_mile"),
                         ({"pool": None}, "pool")):
        pathlib.Path("cost.json").write_text(json.dumps({"meters": [{**meter, **damage}]}))
        done = run("--gate-cost", "cost.json", code=3).stderr
        assert "--gate-cost: cost.json: $.meters[0]" in done and said in done, done
    pathlib.Path("cost.json").write_text(json.dumps({"meters": [{**meter, "pool": "elsewhere"}]}))
    assert "no meter of this run" in run("--gate-cost", "cost.json", code=1).stderr
    standing = scenario("standing", "clear", False)
    standing["ego"]["speed_mps"] = 0
    pathlib.Path("standing.json").write_text(json.dumps(standing))
    pathlib.Path("cost.json").write_text(json.dumps({"meters": [meter]}))
    done = swerve("run", "standing.json", "--world", "object", "--store", "s.db", "--planner", "exec:python3 -S mine.py", "--gate-cost",
                  "cost.json", code=1)
    assert "$/mile, pool bulk, object on cpu, model -: none, for nothing moved; the baseline's " in done.stderr, done.stderr
    mixed = [scenario("logged", "clear", False) | {"question": "regression"}, scenario("driven", "clear", False)]
    for one in mixed:
        pathlib.Path(one["id"] + ".json").write_text(json.dumps(one))
    pathlib.Path("mixed.json").write_text(json.dumps({"id": "mixed", "scenarios": [{"file": one["id"] + ".json"} for one in mixed]}))
    tiers = json.loads(swerve("run", "mixed.json", "--store", "m.db", "--json").stdout)["meters"]
    assert {one["tier"] for one in tiers} == {"replay", "object"}, tiers
    pathlib.Path("cost.json").write_text(json.dumps({"meters": tiers}))
    swerve("run", "mixed.json", "--store", "m.db", "--gate-cost", "cost.json")
    pathlib.Path("cost.json").write_text(json.dumps({"meters": [one for one in tiers if one["tier"] == "replay"]}))
    done = swerve("run", "mixed.json", "--store", "m.db", "--gate-cost", "cost.json", code=1)
    assert "pool bulk, object on cpu, model -: 1 rollouts, and no meter of the baseline has" in done.stderr, done.stderr
    pathlib.Path("cost.json").write_text("{}")
    assert 'expected "meters"' in run("--gate-cost", "cost.json", code=3).stderr


def a_baseline_may_be_of_another_planner():
    """Sights differ from planner to planner, and is no slice of the suite."""
    pathlib.Path("other.json").write_text(run("--json").stdout)
    assert json.loads(pathlib.Path("other.json").read_text())["by_slice"]["given"].keys() == {"route"}
    done = swerve("run", "all.json", "--world", "object", "--store", "a.db", "--planner", "builtin:idm", "--gate-baseline",
                  "other.json", "--gate-margin", "1", "--json")
    assert json.loads(done.stdout)["by_slice"]["given"].keys() == {"objects:true"}, done.stdout


def a_damaged_baseline_is_refused():
    """A rate that cannot be read must not become a gate that is met, nor a pipe one that waits for ever."""
    before = json.loads(run("--json").stdout)
    rate = before["pass_rates"]["object"]["rate"]
    for wrong in (str(rate), None, True, 7, -1, [rate]):
        for place in (before["pass_rates"], before["by_slice"]["weather"]["fog"]["pass_rates"]):
            kept = place["object"]
            place["object"] = {**kept, "rate": wrong}
            pathlib.Path("damaged.json").write_text(json.dumps(before))
            assert "rate" in run("--gate-baseline", "damaged.json", code=3).stderr, wrong
            place["object"] = kept
    for damage in ({"pass_rates": {"objekt": {"rate": rate}}}, {"pass_rates": []}, {"by_slice": {"weather": []}},
                   {"by_slice": {"weather": {"fog": {}}}}, {"by_slice": None}, {"pass_rates": {}},
                   {"pass_rates": {"object": {"drives": 3}}}):
        pathlib.Path("damaged.json").write_text(json.dumps({**before, **damage}))
        assert "--gate-baseline: damaged.json: $" in run("--gate-baseline", "damaged.json", code=3).stderr, damage
    text = json.dumps(before)
    pathlib.Path("damaged.json").write_text('{"pass_rates": {}, ' + text[1:])
    assert "duplicate" in run("--gate-baseline", "damaged.json", code=3).stderr
    pathlib.Path("damaged.json").write_text('{"deep": ' + "[" * 1000 + "]" * 1000 + ", " + text[1:])
    assert "nested" in run("--gate-baseline", "damaged.json", code=3).stderr
    os.mkfifo("pipe.json")
    assert "regular file" in run("--gate-baseline", "pipe.json", code=3).stderr
    pathlib.Path("damaged.json").write_text(text)
    run("--gate-baseline", "damaged.json")


def planner_errors_come_before_tables():
    pathlib.Path("faults").write_text("raise:fog1 raise:clear1")
    done = run("--fresh", store="e.db")
    assert done.stdout.index("ValueError: as planned") < done.stdout.index("geography"), done.stdout
    pathlib.Path("faults").write_text("")


def retry(*options, code=0):
    done = swerve("retry", *options, "--store", "e.db", "--json", code=code)
    return json.loads(done.stdout) if code == 0 else done.stderr


def retry_drives_planner_errors_again():
    first = retry()
    assert first["jobs"] == 2, first
    assert "drives these jobs again and has 2 left" in retry(first["of"], code=4)
    swerve("worker", "--store", "e.db", "--pool", "bulk", "--drain")
    suites = {row["suite"]: row for row in json.loads(swerve("status", "--store", "e.db", "--json").stdout)["suites"]}
    assert suites[first["suite"]]["done"] == 2 and suites[first["suite"]]["rollouts_planner_error"] == 0, suites
    assert suites[first["of"]]["rollouts_planner_error"] == 2
    assert "no job ended like that" in retry(first["suite"], code=3)


def retry_goes_by_verdict_and_reason():
    suite = json.loads(run("--fresh", "--json", store="e.db").stdout)["suite"]
    for options, jobs in ((["--verdict", "fail"], 1), (["--reason", "at_fault_collision"], 1),
                          (["--verdict", "pass", "--verdict", "fail"], 4)):
        again = retry(suite, *options)
        assert again["jobs"] == jobs, (options, again)
        swerve("cancel", again["suite"], "--store", "e.db")
    retry(suite, "--reason", "uncomfortable", code=3)
    retry(suite, "--verdict", "bad", code=2)
    retry(suite, "--reason", "bad", code=2)
    retry("nosuch", code=3)


def retry_answers_what_a_teacher_did_not():
    """The job of a teacher that died is another try at the flagged job before it: that one is driven again."""
    pathlib.Path("faults").write_text("raise:fog1")
    suite = json.loads(run("--fresh", "--json", store="e.db").stdout)["suite"]
    pathlib.Path("faults").write_text("")
    rows = [json.loads(line) for line in swerve("show", "--all", "--suite", suite, "--store", "e.db").stdout.splitlines()]
    jobs = {row["scenario_id"]: row["job_id"] for row in rows}
    edit = sqlite3.connect("e.db")
    edit.execute("UPDATE job_specs SET parent_job = ? WHERE job = ?", (jobs["clear1"], jobs["fog1"]))
    edit.commit()
    edit.close()
    again = retry(suite)
    assert again["jobs"] == 1, again
    swerve("worker", "--store", "e.db", "--pool", "bulk", "--drain")
    rows = swerve("show", "--all", "--suite", again["suite"], "--store", "e.db").stdout.splitlines()
    assert [json.loads(row)["scenario_id"] for row in rows] == ["clear1"], rows


def retry_takes_the_planner_as_it_is_now():
    suite = json.loads(run("--fresh", "--json", store="e.db").stdout)["suite"]
    pathlib.Path("mine.py").write_text(PLANNER + "# edited\n")
    again = retry(suite, "--verdict", "fail")
    swerve("worker", "--store", "e.db", "--pool", "bulk", "--drain")
    hashes = [{json.loads(line)["planner_hash"] for line in swerve("show", "--all", "--suite", name, "--store", "e.db")
               .stdout.splitlines()} for name in (suite, again["suite"])]
    assert len(hashes[0]) == len(hashes[1]) == 1 and hashes[0] != hashes[1], hashes


def files_that_were_kept_drive_again():
    """An edited planner is no longer the one that drove: that is said, and kept files drive in its place, in the sandbox."""
    home = os.getcwd()
    os.makedirs("kept/parts")
    for name in ("clear1.json", "swerve_planner.py"):
        shutil.copy(name, "kept")
    os.chdir("kept")
    planner = pathlib.Path("plan.py")
    part = pathlib.Path("parts/brake.py")
    planner.write_text("import swerve_planner\nfrom parts import brake\nclass Mine(swerve_planner.Planner):\n"
                       "    def reset(self, episode):\n        pass\n    def act(self, observation):\n        return brake.ACCEL, 0.0\n"
                       "swerve_planner.run(Mine)\n")
    try:
        for accel, store, options in ((-3.0, "k.db", ["--keep-planner"]), (-2.0, "k.db", []), (-1.0, "n.db", [])):
            part.write_text(f"ACCEL = {accel}\n")
            swerve("run", "clear1.json", "--world", "object", "--planner", "exec:python3 plan.py", "--store", store, *options)
        done = swerve("replay", "1", "--store", "k.db")
        assert "1 identical" in done.stdout and "driven by those that the store kept, in the sandbox" in done.stderr, done
        done = swerve("replay", "2", "--store", "k.db", code=1)
        assert "the planner is not the one of outcome 2 (" in done.stderr and "swerve show 2 --video" in done.stderr, done.stderr
        done = swerve("replay", "1", "--store", "n.db")
        assert "1 identical" in done.stdout and done.stderr == "", done
        planner.rename("gone.py")
        assert "1 identical" in swerve("replay", "1", "--store", "k.db").stdout
        # Nobody drives by another version where the store has the files: neither the debugger nor the forks of `avoid`.
        done = swerve("debug", "1", "--store", "k.db")
        assert "1 identical" in done.stdout and "in the sandbox, where breakpoint() finds no terminal" in done.stderr, done
        done = swerve("avoid", "--harm", "--store", "k.db", json.loads(swerve("show", "1", "--json", "--store", "k.db").stdout)["suite_id"])
        assert "driven by those that the store kept" in done.stderr and "left out" not in done.stderr, done
        pathlib.Path("gone.py").rename("plan.py")
        done = swerve("compare", "exec:python3 plan.py", "exec:python3 plan.py", "--store", "k.db")
        assert "NOTE: A and B are two versions of one planner" in done.stdout, done.stdout
        # Files that do not make the same planner, are too many, or would be read by others are not kept.
        words = ["run", "clear1.json", "--world", "object", "--keep-planner", "--store"]
        said = swerve(*words, "x.db", "--planner", f"exec:python3 {os.getcwd()}/plan.py", code=3).stderr
        assert "expected a file below this folder, named by a relative path; found none" in said, said
        assert "where others could read the files" in swerve(*words, "postgresql://127.0.0.1/x", code=2).stderr
        pathlib.Path("parts/much.py").write_bytes(b"#" * (9 << 20))
        assert "much.py" in swerve(*words, "x.db", "--planner", "exec:python3 plan.py", code=3).stderr
        assert not os.path.exists("x.db"), "a store was made"
        # Weights that are opened once a drive begins are missed at once, unless the command line names them.
        pathlib.Path("late.py").write_text(
            "import swerve_planner\nclass Late(swerve_planner.Planner):\n    def reset(self, episode):\n"
            "        self.accel = float(open('weights.txt').read())\n    def act(self, observation):\n        return self.accel, 0.0\n"
            "swerve_planner.run(Late)\n")
        pathlib.Path("weights.txt").write_text("-2.5")
        pathlib.Path("parts/much.py").unlink()
        said = swerve(*words, "l.db", "--planner", "exec:python3 late.py", code=3).stderr
        assert "does not drive the first 10 ticks (name what it opens" in said and "weights.txt" in said, said
        assert not os.path.exists("l.db"), "a store was made"
        swerve(*words, "l.db", "--planner", "exec:python3 late.py weights.txt")
        pathlib.Path("weights.txt").write_text("0.5")
        done = swerve("replay", "1", "--store", "l.db")
        assert "1 identical" in done.stdout and "those that the store kept" in done.stderr, done
        # One that fails by its own files too is nothing that a copy misses.
        pathlib.Path("late.py").write_text("import swerve_planner\nclass Bad(swerve_planner.Planner):\n    def reset(self, episode):\n"
                                           "        raise ValueError('no road')\nswerve_planner.run(Bad)\n")
        done = subprocess.run([SWERVE, *words, "l.db", "--planner", "exec:python3 late.py"], capture_output=True, text=True)
        assert "--keep-planner" not in done.stderr and "no road" in done.stdout + done.stderr, done
        # A pack that leads out of its folder is refused; one that is lost is missed.
        edit = sqlite3.connect("k.db")
        text, suite = edit.execute("SELECT text, suite FROM labels WHERE kind = 4").fetchone()
        assert swerve("check", "--store", "k.db").stdout.count("everything fits together") == 1
        next(pathlib.Path("k.db.artifacts").rglob(text.split()[1] + "*")).unlink()
        assert text.split()[1][:16] in swerve("check", "--store", "k.db", code=4).stdout
        out = pathlib.Path("../../led-out").resolve()
        pack = json.dumps({"files": [{"path": "parts/../../" + out.name, "bytes": 2}]}).encode() + b"\nno"
        name = hashlib.sha256(pack).hexdigest()
        place = pathlib.Path("k.db.artifacts", name[:2], name + ".zst")
        place.parent.mkdir(exist_ok=True)
        # A frame of zstd (RFC 8878) with one raw block.
        place.write_bytes(b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(pack)) + struct.pack("<I", len(pack) << 3 | 1)[:3] + pack)
        edit.execute("UPDATE labels SET text = ?", (text.split()[0] + " " + name,))
        edit.commit()
        edit.close()
        done = swerve("replay", "1", "--store", "k.db", code=3)
        assert "expected a path within a folder, found" in done.stderr and not out.exists(), done.stderr
    finally:
        os.chdir(home)


def a_server_keeps_files_for_their_tenant():
    """Files of a suite on a server, which was told to keep some, drive a replay of its tenant's, and of nobody else's."""
    os.makedirs("served")
    shutil.copy("swerve_planner.py", "served")
    shutil.copy("clear1.json", "served")
    tokens = {}
    for name, words in (("ann", ["--role", "submit", "--tenant", "acme"]), ("bob", ["--role", "submit", "--tenant", "beta"]),
                        ("all", ["--role", "admin"])):
        tokens[name] = os.path.realpath(name + ".token")
        swerve("token", "add", name, *words, "--store", "served.db", "--output", tokens[name])
    planner = pathlib.Path("served/plan.py")
    planner.write_text("import swerve_planner\nclass Mine(swerve_planner.Planner):\n    def reset(self, episode):\n        pass\n"
                       "    def act(self, observation):\n        return -3.0, 0.0\nswerve_planner.run(Mine)\n")

    def ask(who, *words, code=0):
        done = subprocess.run([SWERVE, *words, "--store", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100,
                              env={**os.environ, "SWERVE_TOKEN_FILE": tokens[who]}, cwd="served")
        assert done.returncode == code, (words, done)
        return done

    submit = ["submit", "clear1.json", "--world", "object", "--planner", "exec:python3 plan.py", "--keep-planner"]
    for kept in ([], ["--keep-planners", "1"]):
        server = subprocess.Popen([SWERVE, "serve", "--store", "served.db", "--listen", "127.0.0.1:0", *kept], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().split()[-1]
            if not kept:
                said = ask("ann", *submit, code=4).stderr
                assert "--keep-planner: " in said and "keeps no files of planners (swerve serve --keep-planners N)" in said, said
                assert "/v1" not in ask("ann", "status").stdout, "a suite was sent all the same"
                continue
            ask("ann", *submit)
            ask("all", "worker", "--pool", "bulk", "--drain", "--planner-sandbox", "off")
            planner.write_text("edited\n")
            done = ask("ann", "replay", "1", "--planner-sandbox", "off")
            assert "1 identical" in done.stdout and "driven by those that the store kept, in the sandbox" in done.stderr, done
            done = ask("bob", "replay", "1", "--planner-sandbox", "off", code=4)
            assert "belongs to another tenant" in done.stderr, done
        finally:
            server.terminate()
            server.wait(timeout=30)
            server.stdout.close()


def ids_of(suite, store):
    return sorted({json.loads(line)["scenario_id"] for line in
                   swerve("show", "--all", "--suite", suite, "--store", store).stdout.splitlines()})


def what_failed_is_driven_alone():
    run("--seeds", "2", store="f.db")
    again = json.loads(run("--failed-in", "last", "--json", store="f.db").stdout)
    assert ids_of(again["suite"], "f.db") == ["fog2"], again
    elsewhere = json.loads(run("--failed-in", "f.db", "--json", store="g.db").stdout)
    assert ids_of(elsewhere["suite"], "g.db") == ["fog2"], elsewhere
    assert "neither --seeds nor --nominal" in run("--failed-in", "last", "--seeds", "2", store="f.db", code=2).stderr
    run("-k", "clear", store="f.db")
    assert "every main line of its newest suite all-" in run("--failed-in", "last", store="f.db", code=2).stderr


def a_failure_is_told_in_ten_lines():
    row = next(row for row in map(json.loads, swerve("show", "--all", "--store", "f.db").stdout.splitlines()) if row["verdict"] == "fail")
    text = swerve("show", str(row["id"]), "--store", "f.db").stdout
    lines = text.splitlines()
    assert 8 <= len(lines) <= 12 and lines[0].startswith(f"outcome {row['id']}: fail: at_fault_collision"), text
    assert re.search(r"^contact   \d\.\d s: contact with something that stood, the car \"wall\", impact [\d.]+ m/s .*ego's fault", text, re.M), text
    assert re.search(r"^saved by  .*a careful driver \(UN R157\)", text, re.M) and f"swerve debug {row['id']} --store f.db" in text, text
    assert json.loads(swerve("show", str(row["id"]), "--json", "--store", "f.db").stdout)["metrics"]["collision_agent"] == 0


def words_and_ids_choose():
    some = json.loads(run("-k", "fog and not fog1", "--json", store="f.db").stdout)
    assert ids_of(some["suite"], "f.db") == ["fog2"], some
    two = json.loads(run("--scenario", "clear1", "--scenario=fog1", "--json", store="f.db").stdout)
    assert ids_of(two["suite"], "f.db") == ["clear1", "fog1"], two
    assert "did you mean clear1?" in run("--scenario", "clear", store="f.db", code=2).stderr
    queued = json.loads(swerve("submit", "all.json", "-k", "weather=fog", "--store", "h.db", "--json").stdout)
    assert queued["jobs"] == 2, queued
    done = swerve("run", "smoke", "--set", "ego_kpg=40", "--store", "h.db", code=2)
    assert "did you mean ego_kph?" in done.stderr, done


def what_a_budget_cancelled_is_counted_everywhere():
    """Method: a budget that one job exceeds; status, gate, exit code, JSON, JUnit, Markdown and comparison agree on how many main
    lines have no result, and on the rate had they failed."""
    words = ["all.json", "--world", "object", "--store", "b.db", "--budget", "0.000001"]
    swerve("submit", *words)
    swerve("price", "set", "bulk", "cpu", "1000000", "--store", "b.db")
    swerve("worker", "--store", "b.db", "--drain", "--slots", "1")
    row = json.loads(swerve("status", "--store", "b.db", "--json").stdout)["suites"][0]
    mains, done, gone = row["main_lines"]["object"], row["done"], row["cancelled"]
    assert gone > 0 and done + gone == 4 and mains["cancelled"] == gone and mains["waiting"] == 0, row
    worst = mains["pass"] / 4
    assert math.isclose(mains["if_missing_fail"], worst) and mains["if_missing_fail"] < mains["rate"], mains
    assert f"; {gone} without a result ({gone} cancelled): {100 * worst:.1f}% to" in swerve("status", "--store", "b.db").stdout
    said = swerve("run", *words, "--junit", "b.xml", "--summary", "b.md", "--json", code=1)
    assert f"{gone} main line" in said.stderr and f"({gone} cancelled): budget of $" in said.stderr, said.stderr
    part = json.loads(said.stdout)["pass_rates"]["object"]
    assert part["cancelled"] == gone and math.isclose(part["if_missing_fail"], worst), part
    said = swerve("run", *words, "--gate", code=1).stderr
    assert f"without a result ({gone} cancelled), {100 * worst:.1f}% had they failed" in said, said
    assert f'tests="4" failures="0" errors="{gone}"' in pathlib.Path("b.xml").read_text()
    text = pathlib.Path("b.md").read_text()
    assert f"no result ({gone} cancelled): budget of $" in text and f"Did not pass: {gone}" in text, text


TESTS = [what_a_budget_cancelled_is_counted_everywhere, what_failed_is_driven_alone, a_failure_is_told_in_ten_lines, words_and_ids_choose, a_slice_that_passes_meets_its_gate, a_slice_that_fails_is_named, a_slice_that_is_not_there_is_missed,
         wrong_gates_are_refused, a_baseline_holds_every_slice, costs_are_held_against_a_baseline,
         a_baseline_may_be_of_another_planner,
         a_damaged_baseline_is_refused, planner_errors_come_before_tables, retry_drives_planner_errors_again,
         files_that_were_kept_drive_again, a_server_keeps_files_for_their_tenant, retry_goes_by_verdict_and_reason, retry_answers_what_a_teacher_did_not, retry_takes_the_planner_as_it_is_now]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-gate-") as work:
        os.chdir(work)
        shutil.copy(ROOT / "scripts/swerve_planner.py", ".")
        pathlib.Path("mine.py").write_text(PLANNER)
        pathlib.Path("faults").write_text("")
        names = [("clear1", "clear", False), ("clear2", "clear", False), ("fog1", "fog", False), ("fog2", "fog", True)]
        for name, weather, fails in names:
            pathlib.Path(name + ".json").write_text(json.dumps(scenario(name, weather, fails)))
        pathlib.Path("all.json").write_text(json.dumps({"id": "all", "scenarios": [{"file": n + ".json"} for n, _, _ in names]}))
        failed = tap.run(TESTS)
    sys.exit(1 if failed else 0)


main()
