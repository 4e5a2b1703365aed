#!/usr/bin/env python3
"""Goal: swerve debug gives an exec planner the terminal: breakpoints and post mortems work, nothing is
timed out, and what it saw and did is written; without a terminal a breakpoint ends the planner.
Method: a small suite, then `swerve debug` on a pseudo-terminal that is typed into.

Usage: test_debug.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))

PLANNER = """
import os, sys, time
import swerve_planner
class Mine(swerve_planner.Planner):
    wants = swerve_planner.BEV
    def act(self, observation):
        if observation.tick == 3 and os.path.exists("stop"):
            breakpoint()
        if observation.tick == 4 and os.path.exists("slow"):
            time.sleep(1.5)
        if observation.tick == 5 and os.path.exists("break"):
            raise ValueError("as planned")
        if observation.tick == 6 and os.path.exists("other"):
            return 1.0, 0.0
        if observation.tick >= 6 and os.path.exists("brake"):
            return -6.0, 0.0
        return -0.5, 0.0
swerve_planner.run(Mine)
"""
SCENARIO = """{"id": "drive",
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 2}"""


def debug(typed, *options):
    """(exit code, what the terminal showed); typed: a line for each prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(SWERVE, [SWERVE, "debug", "1", "--store", "a.db", *options])
    shown, answered = b"", 0
    while select.select([terminal], [], [], 60)[0]:
        try:
            block = os.read(terminal, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
        if answered < len(typed) and shown.count(b"(Pdb) ") > answered:
            os.write(terminal, typed[answered].encode() + b"\n")
            answered += 1
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def with_file(name, run):
    pathlib.Path(name).touch()
    try:
        return run()
    finally:
        os.unlink(name)


def a_breakpoint_stops_at_the_terminal():
    code, shown = with_file("stop", lambda: debug(["p observation.tick * 111", "c"]))
    assert "333" in shown and "identical" in shown, shown
    assert code == 0, (code, shown)


def an_exception_is_looked_at_afterwards():
    code, shown = with_file("break", lambda: debug(["p 'at', observation.tick", "q"]))
    assert "('at', 5)" in shown and "as planned" in shown, shown
    assert code == 1, (code, shown)


def there_is_no_deadline():
    code, shown = with_file("slow", lambda: debug([]))
    assert code == 0, (code, shown)


def the_first_tick_that_differs_is_named():
    code, shown = with_file("other", lambda: debug([]))
    assert code == 1 and "tick 6" in shown, (code, shown)


def the_first_tick_is_named_where_one_drive_is_longer():
    scenario = json.loads(SCENARIO)
    scenario["agents"] = [{"id": "wall", "kind": "car", "pose": {"lane": "east", "s_m": 50}, "behaviour": "static"}]
    pathlib.Path("wall.json").write_text(json.dumps({**scenario, "id": "wall", "horizon_s": 5}))
    swerve = lambda *words: subprocess.run([SWERVE, *words, "--store", "w.db"], stdin=subprocess.DEVNULL, timeout=60,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True)
    made = swerve("run", "wall.json", "--world", "object", "--planner", "exec:python3 mine.py")
    assert made.returncode == 0 and "collision" in made.stdout, made
    done = with_file("brake", lambda: swerve("debug", "1"))
    assert done.returncode == 1 and "  ticks  " in done.stdout, done
    assert "  artifact                 stored   tick 6: x" in done.stdout, done.stdout


def what_it_saw_and_did_is_written():
    code, shown = debug([], "--dump", "dump")
    assert code == 0 and "dump: 20 ticks, each tNNNN.npz" in shown, (code, shown)
    with zipfile.ZipFile("dump/t0007.npz") as archive:
        assert archive.testzip() is None
        action = archive.read("action_accel_mps2.npy")
        assert action[:6] == b"\x93NUMPY" and struct.unpack("<d", action[-8:])[0] == -0.5
        assert len(archive.read("bev.npy")) % 64 == 0 and b"(4,192,96,)" in archive.read("bev.npy")[:128]
        cameras = "camera_front.npy" in archive.namelist()
    # Four pixels a cell, so that somebody on foot can be seen.
    picture = pathlib.Path("dump/t0007.png").read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1152 if cameras else 384, 768 + 256 * cameras), picture[:32]


def without_a_terminal_a_breakpoint_ends_it():
    run = lambda: subprocess.run([SWERVE, "debug", "1", "--store", "a.db"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                 timeout=60, text=True)
    done = with_file("stop", run)
    assert done.returncode == 1 and "BdbQuit" in done.stdout, done


def wrong_uses_are_named():
    for words, code in ((["debug"], 2), (["debug", "x"], 2), (["debug", "99", "--store", "a.db"], 3),
                        (["debug", "1", "--store", "a.db", "--dump", "/nope/dump"], 4)):
        done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == code, (words, done)


TESTS = [a_breakpoint_stops_at_the_terminal, an_exception_is_looked_at_afterwards, there_is_no_deadline,
         the_first_tick_that_differs_is_named, the_first_tick_is_named_where_one_drive_is_longer, what_it_saw_and_did_is_written,
         without_a_terminal_a_breakpoint_ends_it, wrong_uses_are_named]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-debug-") as work:
        os.chdir(work)
        shutil.copy(ROOT / "scripts/swerve_planner.py", ".")
        pathlib.Path("mine.py").write_text(PLANNER)
        pathlib.Path("drive.json").write_text(SCENARIO)
        made = subprocess.run([SWERVE, "run", "drive.json", "--world", "object", "--store", "a.db", "--planner",
                               "exec:python3 mine.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            sys.exit(f"Bail out! {made.stdout}")
        failed = tap.run(TESTS)
        os.chdir("/")
    sys.exit(failed > 0)


main()
