#!/usr/bin/env python3
"""Goal: an edited import is another planner, an unchanged one is not; --fresh drives again; what comes too late is
said; limits of ours say so. Method: a planner with a module, a data file and a late import, run and edited.

Usage: test_identity.py SWERVE SOURCE_ROOT
"""
import json
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

PLANNER = """
import swerve_planner
import gain
class Mine(swerve_planner.Planner):
    files = ["weights.txt"]
    def act(self, observation):
        if observation.tick == 3:
            import late
        return gain.ACCEL, 0.0
swerve_planner.run(Mine)
"""
SCENARIO = """{"id": "drive",
 "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
 "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "horizon_s": 1}"""


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == code, (words, done)
    return done


def run(*options, store="a.db", planner="exec:python3 mine.py"):
    done = swerve("run", "drive.json", "--world", "object", "--store", store, "--planner", planner, "--json", *options)
    return json.loads(done.stdout)


def known(*options, **more):
    return run(*options, **more)["known_jobs"] == 1


def write(name, text):
    pathlib.Path(name).write_text(text)


def the_same_planner_is_not_driven_again():
    assert not known()
    assert known()


def an_edited_import_is_another_planner():
    write("gain.py", "ACCEL = 0.25\n")
    assert not known()
    write("gain.py", "ACCEL = 0.5\n")
    assert known(), "back to what it was"


def a_moved_import_is_the_same():
    os.mkdir("lib")
    os.rename("gain.py", "lib/gain.py")
    os.environ["PYTHONPATH"] = "lib"
    try:
        assert known()
    finally:
        del os.environ["PYTHONPATH"]
        os.rename("lib/gain.py", "gain.py")


def an_edited_data_file_is_another_planner():
    write("weights.txt", "2")
    assert not known()
    write("weights.txt", "1")
    assert known()


def files_of_one_name_are_told_apart():
    for folder, text in (("left", "1"), ("right", "2")):
        os.mkdir(folder)
        write(f"{folder}/weights.bin", text)
    write("two.py", PLANNER.replace('"weights.txt"', '"left/weights.bin", "right/weights.bin"'))
    assert not known(planner="exec:python3 two.py", store="b.db")
    assert known(planner="exec:python3 two.py", store="b.db")
    write("left/weights.bin", "2")
    write("right/weights.bin", "1")
    assert not known(planner="exec:python3 two.py", store="b.db"), "they changed places"


def a_late_import_does_not_count_and_is_said():
    write("late.py", "# edited\n")
    assert known()
    row = json.loads(swerve("show", "1", "--json", "--store", "a.db").stdout)
    assert "module late was imported after run()" in row["planner_output"], row


def fresh_drives_again_to_the_same_end():
    first = run()
    assert first["known_jobs"] == 1
    again = run("--fresh")
    other = run("--fresh")
    assert again["known_jobs"] == other["known_jobs"] == 0
    assert len({first["suite"], again["suite"], other["suite"]}) == 3
    hashes = {json.loads(line)["trace_hash"] for line in swerve("show", "--all", "--suite", again["suite"], "--store",
                                                                "a.db").stdout.splitlines()}
    assert len(hashes) == 1 and known()


def jobs_of_another_version_are_refused():
    swerve("submit", "drive.json", "--world", "object", "--store", "b.db", "--planner", "exec:python3 mine.py",
           "--attempts", "1")
    write("gain.py", "ACCEL = 0.125\n")
    done = swerve("worker", "--store", "b.db", "--pool", "bulk", "--drain", code=6)
    assert "its files changed, or what it imports, since the job was submitted" in done.stderr, done
    write("gain.py", "ACCEL = 0.5\n")
    swerve("worker", "--store", "b.db", "--pool", "bulk", "--drain")


def replay_knows_versions():
    assert "identical" in swerve("replay", "1", "--store", "a.db").stdout
    write("gain.py", "ACCEL = 0.125\n")
    assert "another version of the planner" in swerve("replay", "1", "--store", "a.db", code=1).stdout
    write("gain.py", "ACCEL = 0.5\n")


def another_program_is_named_by_its_place():
    """The files are the same: it is the interpreter that is another."""
    path = os.environ["PATH"]
    for name in ("one", "two"):
        os.mkdir(name)
        write(f"{name}/py", f"#!/bin/sh\n# {name}\nexec python3 \"$@\"\n")
        os.chmod(f"{name}/py", 0o755)
    os.environ["PATH"] = f"{os.getcwd()}/one:{path}"
    run(store="i.db", planner="exec:py mine.py")
    assert "NOTE" not in swerve("replay", "1", "--store", "i.db").stderr
    os.environ["PATH"] = f"{os.getcwd()}/two:{path}"
    done = swerve("replay", "1", "--store", "i.db")
    os.environ["PATH"] = path
    assert f"or its program (here {os.getcwd()}/two/py) changed since" in done.stderr and "1 identical" in done.stdout, done


def another_simulation_drives_anew_and_says_so():
    run(store="o.db")
    assert swerve("run", "drive.json", "--world", "object", "--store", "o.db", "--planner", "exec:python3 mine.py",
                  "--fresh").stderr.count("simulation revision") == 0
    for command, digit in (("run", "5"), ("submit", "6")):  # the newest run of the planner is what counts
        with sqlite3.connect("o.db") as store:
            store.execute("UPDATE contexts SET revision = ? WHERE revision <> ?", (digit * 64, "5" * 64))
        store.close()
        done = swerve(command, "drive.json", "--world", "object", "--store", "o.db", "--planner", "exec:python3 mine.py", "--fresh")
        assert f"are of simulation revision {digit * 12}, this program's is " in done.stderr, done
        assert "so everything is driven anew" in done.stderr, done
    write("gain.py", "ACCEL = 0.25\n")  # another planner, whom nothing was known of
    done = swerve("run", "drive.json", "--world", "object", "--store", "o.db", "--planner", "exec:python3 mine.py", "--fresh")
    write("gain.py", "ACCEL = 0.5\n")
    assert "simulation revision" not in done.stderr, done


def a_planner_for_elsewhere_is_submitted():
    done = swerve("submit", "drive.json", "--world", "object", "--store", "c.db", "--planner", "exec:python3 absent.py")
    assert "submitted for workers elsewhere" in done.stderr and "1 jobs" in done.stdout, done


def the_start_limit_is_ours_and_named():
    done = swerve("run", "drive.json", "--world", "object", "--store", "d.db", "--planner", "exec:sleep 9",
                  "--planner-start-ms", "50", code=6)
    assert "no answer within 50 ms (--planner-start-ms raises this limit of ours)" in done.stderr, done
    assert not os.path.exists("d.db")
    done = swerve("submit", "drive.json", "--world", "object", "--store", "d.db", "--planner", "exec:sleep 9", "--planner-start-ms", "50")
    assert "no answer within 50 ms" in done.stderr and "submitted for workers elsewhere" in done.stderr, done


def workers_of_a_run_wait_as_long():
    """The planner writes down the command lines of the processes above it: the worker's among them."""
    write("seen.py", """
import os
import swerve_planner
pid, lines = os.getppid(), []
while pid > 1:
    lines.append(open(f"/proc/{pid}/cmdline").read().replace("\\0", " "))
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
class Seen(swerve_planner.Planner):
    def act(self, observation):
        with open(os.environ["SEEN"], "w") as file:
            file.write("\\n".join(lines))
        return 0.0, 0.0
swerve_planner.run(Seen)
""")
    os.environ["SEEN"] = os.path.abspath("seen.txt")
    run("--planner-start-ms", "45678", store="s.db", planner="exec:python3 seen.py")
    above = pathlib.Path("seen.txt").read_text()
    assert any(" worker " in line and "--planner-start-ms 45678" in line for line in above.splitlines()), above


TESTS = [the_same_planner_is_not_driven_again, an_edited_import_is_another_planner, a_moved_import_is_the_same,
         an_edited_data_file_is_another_planner, files_of_one_name_are_told_apart, a_late_import_does_not_count_and_is_said,
         fresh_drives_again_to_the_same_end, jobs_of_another_version_are_refused, replay_knows_versions,
         another_program_is_named_by_its_place, another_simulation_drives_anew_and_says_so,
         a_planner_for_elsewhere_is_submitted, the_start_limit_is_ours_and_named,
         workers_of_a_run_wait_as_long]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-identity-") as work:
        os.chdir(work)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        shutil.copy(ROOT / "scripts/swerve_planner.py", ".")
        write("mine.py", PLANNER)
        write("gain.py", "ACCEL = 0.5\n")
        write("late.py", "")
        write("weights.txt", "1")
        write("drive.json", SCENARIO)
        failed = tap.run(TESTS)
    sys.exit(1 if failed else 0)


main()
