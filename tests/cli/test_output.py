#!/usr/bin/env python3
"""Goal: what a planner writes is kept with the outcome of the session that wrote it, whatever the verdict,
shown by `show`, in the report and by `replay`; a silent planner costs nothing. Method: a planner that
prints, logs and raises, by what its scenario is called, drives several at a time with branches.

Usage: test_output.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))

PLANNER = """
import logging, os, sys
import swerve_planner
logging.basicConfig(level=logging.INFO, format="log %(message)s")
class Mine(swerve_planner.Planner):
    def reset(self, episode):
        self.id = episode.scenario_id
        self.say(f"begin {self.id}")
    def say(self, text):
        if self.id != "silent":
            print(text)
    def act(self, observation):
        if observation.tick == 5 and self.id != "silent":
            sys.stderr.write(f"<b>half</b> {self.id}")
            logging.info("five %s", self.id)
        if observation.tick == 8 and self.id == "raises":
            raise ValueError("as planned")
        if self.id == "floods":
            print("x" * 99, observation.tick)
        if self.id == "child" and observation.tick == 2:
            os.system("echo from the shell >&2")
        if self.id == "forgets":
            return
        return 0.0, 0.0
    def end(self):
        self.say("too late")
swerve_planner.run(Mine)
"""
SCENARIO = """{"id": "%s",
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 4,
 "branches": [{"id": "later", "at_tick": 20, "interventions": [{"kind": "ego_brake", "decel_mps2": 3}]}]}"""
IDS = ["talks", "raises", "floods", "silent", "child", "forgets"]


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code, (words, done)
    return done


def outcome(scenario, branch=""):
    rows = map(json.loads, swerve("show", "--all", "--store", "a.db").stdout.splitlines())
    found = next(row for row in rows if row["scenario_id"] == scenario and row["branch_id"] == branch)
    return json.loads(swerve("show", str(found["id"]), "--json", "--store", "a.db").stdout)


def each_session_has_its_own():
    assert outcome("talks")["verdict"] == "pass"
    for scenario in IDS:
        text = outcome(scenario).get("planner_output", "")
        assert not any(other in text for other in IDS if other != scenario), text
        assert "too late" not in text


def a_log_line_follows_half_a_line():
    assert outcome("talks")["planner_output"] == "begin talks\n<b>half</b> talkslog five talks\n", outcome("talks")


def a_branch_has_what_was_written_since_its_fork():
    assert outcome("floods", "later")["planner_output"].startswith("x" * 99 + " 20\n")
    assert "planner_output" not in outcome("talks", "later")


def a_flood_is_cut_at_its_front():
    text = outcome("floods")["planner_output"]
    assert 3900 < len(text) <= 4096 and text.endswith(" 39\n"), text
    assert text.startswith("(") and "bytes before this were not kept" in text.splitlines()[0]


def an_exception_is_told_once_and_whole():
    row = outcome("raises")
    assert row["verdict"] == "planner_error" and row["planner_output"].count("ValueError: as planned") == 1
    assert "Traceback" in row["error"] and "floods" not in row["error"], row["error"]


def a_missing_return_is_named():
    row = outcome("forgets")
    assert row["verdict"] == "planner_error" and "tick 0: act() returned None, expected" in row["error"], row["error"]


def silence_keeps_nothing():
    row = outcome("silent")
    assert "planner_output" not in row
    assert swerve("show", str(row["id"]), "--stderr", "--store", "a.db").stdout == ""


def it_is_shown_as_text_and_in_the_report():
    row = outcome("talks")
    shown = swerve("show", str(row["id"]), "--stderr", "--store", "a.db").stdout
    assert shown == row["planner_output"]
    swerve("run", "bad.json", "--world", "object", "--store", "a.db", "--planner", "exec:python3 mine.py",
           "--report", "a.html")
    page = pathlib.Path("a.html").read_text()
    assert "&lt;b&gt;half&lt;/b&gt; crashes" in page and "<b>half" not in page


def a_replay_streams_it():
    done = swerve("replay", str(outcome("talks")["id"]), "--store", "a.db")
    assert done.stdout == "1 identical, 0 different\n"
    assert "planner: begin talks\n" in done.stderr and "planner: <b>half</b> talkslog five talks\n" in done.stderr
    assert swerve("replay", "--all", "--store", "a.db").stderr == ""


TESTS = [a_log_line_follows_half_a_line, each_session_has_its_own, a_branch_has_what_was_written_since_its_fork,
         a_flood_is_cut_at_its_front, an_exception_is_told_once_and_whole, a_missing_return_is_named,
         silence_keeps_nothing,
         it_is_shown_as_text_and_in_the_report, a_replay_streams_it]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-output-") as work:
        os.chdir(work)
        shutil.copy(ROOT / "scripts/swerve_planner.py", ".")
        pathlib.Path("mine.py").write_text(PLANNER)
        for name in IDS:
            pathlib.Path(name + ".json").write_text(SCENARIO % name)
        wall = json.loads(SCENARIO % "crashes")
        wall["agents"] = [{"id": "wall", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 0}]
        pathlib.Path("crashes.json").write_text(json.dumps(wall))
        pathlib.Path("all.json").write_text(json.dumps({"id": "all", "scenarios": [{"file": n + ".json"} for n in IDS]}))
        pathlib.Path("bad.json").write_text(json.dumps({"id": "bad", "scenarios": [{"file": "crashes.json"}]}))
        swerve("run", "all.json", "--world", "object", "--store", "a.db", "--workers", "1", "--planner",
               "exec:python3 mine.py")
        failed = tap.run(TESTS)
    sys.exit(1 if failed else 0)


main()
