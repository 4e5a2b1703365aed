#!/usr/bin/env python3
"""Goal: the batch script of `swerve fleet slurm` starts workers that do the work, hands on what a site's scheduler sends, and
holds no word of the user's unquoted. Method: the script is run as a plain program, with Slurm's commands replaced by a file
that notes how it was called; a planner that dawdles until a file is there makes a job last 20 s at least, so that
signals meet it half done. The
Kubernetes files are checked where the schemas are at hand (scripts/fleet/kubernetes/check.py).

Usage: test_fleet_scripts.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
PLANNER = """
import os, time
import swerve_planner
class Mine(swerve_planner.Planner):
    def act(self, observation):
        open("begun", "w").close()
        if not os.path.exists("go"):
            time.sleep(0.05)
        return 0.0, 0.0
swerve_planner.run(Mine)
"""


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == code, (words, done)
    return done


def environment():
    return {**os.environ, "PATH": os.getcwd() + ":" + os.environ["PATH"], "SLURM_JOB_ID": "77",
            "PYTHONPATH": str(ROOT / "scripts"), "SWERVE_WORKER_OPTIONS": "--planner-deadline-ms 80000"}


def write(*options):
    swerve("fleet", "slurm", "--store", "a.db", "--write", "a.sbatch", *options)
    return pathlib.Path("a.sbatch").read_text()


def jobs():
    return {row["tier"]: (row["jobs_queued"], row["jobs_leased"])
            for row in json.loads(swerve("demand", "--store", "a.db", "--json").stdout)["rows"]}


def end_of(process):
    """The exit code; what hangs is a failure."""
    return process.wait(timeout=90)


def start_held():
    """The script, once its worker drives."""
    pathlib.Path("go").unlink(missing_ok=True)
    pathlib.Path("begun").unlink(missing_ok=True)
    process = subprocess.Popen(["bash", "a.sbatch"], env=environment(), start_new_session=True)
    for _ in range(9000):
        if pathlib.Path("begun").exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    assert process.poll() is None, process.returncode
    return process


def a_script_has_the_facts_of_its_store():
    swerve("submit", "all.json", "--store", "a.db", "--world", "object", "--planner", "exec:python3 held.py")
    text = write("--cpus", "2", "--gpus", "1", "--time", "08:00:00", "--partition", "gpu")
    for line in ("--array=1-3", "--cpus-per-task=2", "--gpus-per-task=1", "--time=08:00:00", "--partition=gpu",
                 "--signal=B:USR1@50", "--requeue"):
        assert f"#SBATCH {line}\n" in text, (line, text)
    assert "the tier object had 3 jobs queued, of 1200 ticks" in text, text
    assert f"SWERVE_STORE='{os.getcwd()}/a.db'" in text, text
    assert subprocess.run(["bash", "-n", "a.sbatch"]).returncode == 0


def preemption_hands_back():
    write("--grace-s", "1")
    process = start_held()
    os.killpg(process.pid, signal.SIGTERM)  # as Slurm does: the script and, at the same time, its worker
    assert end_of(process) == 0
    assert jobs()["object"] == (3, 0), jobs()
    assert not pathlib.Path("asked").exists()


def a_time_limit_queues_again():
    process = start_held()
    process.send_signal(signal.SIGUSR1)
    assert end_of(process) == 0
    assert jobs()["object"] == (3, 0), jobs()
    assert pathlib.Path("asked").read_text() == "requeue 77\n"
    pathlib.Path("asked").unlink()


def workers_end_when_nothing_is_left():
    pathlib.Path("go").touch()
    done = subprocess.run(["bash", "a.sbatch"], env=environment(), timeout=90)
    assert done.returncode == 0 and not pathlib.Path("asked").exists()
    assert jobs()["object"] == (0, 0), jobs()


def a_failure_is_the_element_s():
    text = pathlib.Path("a.sbatch").read_text().replace("/a.db'", "/none/a.db'")
    pathlib.Path("broken.sbatch").write_text(text)
    assert subprocess.run(["bash", "broken.sbatch"], env=environment(), stderr=subprocess.DEVNULL, timeout=90).returncode == 4


def words_are_quoted_or_refused():
    nasty = "it's; touch owned $(touch owned) `touch owned`"
    text = write("--pool", nasty, "--command", "/bin/true")
    assert subprocess.run(["bash", "a.sbatch"], env=environment(), timeout=90).returncode == 0, text
    assert not pathlib.Path("owned").exists()
    for option in ("--partition", "--time", "--log-dir"):
        assert option in swerve("fleet", "slurm", "--store", "a.db", option, "x y", code=2).stderr
        assert option in swerve("fleet", "slurm", "--store", "a.db", option, "x\n#SBATCH --y", code=2).stderr
    assert "one line" in swerve("fleet", "slurm", "--store", "a.db", "--pool", "a\nb", code=2).stderr
    assert "slurm" in swerve("fleet", "lsf", "--store", "a.db", code=2).stderr


def the_kubernetes_files_are_valid():
    done = subprocess.run([sys.executable, str(ROOT / "scripts/fleet/kubernetes/check.py"), SWERVE], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=90)
    if "ModuleNotFoundError" in done.stderr:
        print("# not checked here: " + done.stderr.strip().splitlines()[-1])
        return
    assert done.returncode == 0, done


def main():
    with tempfile.TemporaryDirectory(prefix="swerve_fleet_") as folder:
        os.chdir(folder)
        lane = {"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}
        ego = {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}
        pathlib.Path("road.json").write_text(json.dumps({"id": "road", "horizon_s": 40, "map": {"lanes": [lane]}, "ego": ego,
                                                         "agents": []}))
        pathlib.Path("all.json").write_text(json.dumps({"id": "fleet", "scenarios": [
            {"file": "road.json", "id": f"s{i}"} for i in range(3)]}))
        pathlib.Path("held.py").write_text(PLANNER)
        pathlib.Path("scontrol").write_text('#!/bin/sh\necho "$@" >> asked\n')
        pathlib.Path("scontrol").chmod(0o755)
        return tap.run([a_script_has_the_facts_of_its_store, preemption_hands_back, a_time_limit_queues_again,
                        workers_end_when_nothing_is_left, a_failure_is_the_element_s, words_are_quoted_or_refused,
                        the_kubernetes_files_are_valid])


if __name__ == "__main__":
    sys.exit(main())
