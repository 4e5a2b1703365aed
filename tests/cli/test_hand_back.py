#!/usr/bin/env python3
"""Goal: a worker whose slots are full of long mined drives takes up an interactive suite before any of them ends: it hands back
as many as wait, and these have the outcomes of a run that nothing happened to. Each attempt is in the ledger once, and the store
says what was handed back, and for whom. Method: the built binary, a worker at a server's store and one at a file's; a planner
that is slow while a file is there. Waiting is for a state, never for a time; how long it took is told.

Usage: test_hand_back.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
MINED = 3  # jobs, of which a worker holds two; rollouts of the one with a branch take both of its slots
PLANNER = f"exec:python3 -S slow.py {ROOT}"
SLOW = """import os, sys, time
sys.path.insert(0, os.path.join(sys.argv[1], "scripts"))
import swerve_planner
class Slow(swerve_planner.Planner):
    def act(self, observation):
        if os.path.exists("slow"):
            time.sleep(0.03)
        return 0.125, observation.route[2].y_m * 0.03125
swerve_planner.run(Slow)
"""
processes = []


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == code, (words, done)
    return done


def write_suites():
    lane = {"id": "east", "centre_line": [[0, 0], [9000, 0]], "width_m": 3.5, "speed_limit_mps": 15}
    lead = {"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 90}, "speed_mps": 12, "behaviour": "idm"}
    road = {"id": "road", "horizon_s": 40, "map": {"lanes": [lane]}, "agents": [lead],
            "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}}
    branch = {"id": "brake", "at_tick": 20, "interventions": [{"kind": "ego_brake", "decel_mps2": 2}]}
    pathlib.Path("road.json").write_text(json.dumps(road))
    pathlib.Path("fan.json").write_text(json.dumps({**road, "id": "fan", "branches": [branch]}))
    pathlib.Path("mined.json").write_text(json.dumps({"id": "mined", "scenarios": [
        {"file": ("fan.json", "road.json")[i % 2], "id": f"m{i}"} for i in range(MINED)]}))
    for name in ("asked", "other"):
        pathlib.Path(name + ".json").write_text(json.dumps({"id": name, "scenarios": [
            {"file": "road.json", "id": name, "horizon_s": 1}]}))
    pathlib.Path("slow.py").write_text(SLOW)


def rows(path, sql):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def drives(path):
    return rows(path, "SELECT s.scenario_id, o.branch_id, o.verdict, o.ticks, o.metres_mm, o.trace_hash FROM outcomes o"
                      " JOIN job_specs s ON s.job = o.job JOIN suites u ON u.id = s.suite WHERE u.name LIKE 'mined-%'"
                      " ORDER BY 1, 2")


def start(*words):
    process = subprocess.Popen([SWERVE, *words], stdout=subprocess.PIPE, stderr=open("err", "a"), text=True)
    processes.append(process)
    return process


def end(process):
    process.terminate()
    process.wait(60)
    processes.remove(process)


def until(what, *given):
    for _ in range(6000):
        found = what(*given)
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError((what.__name__, given, pathlib.Path("err").read_text()[-2000:]))


def name_of(path, suite):
    return rows(path, f"SELECT name FROM suites WHERE name LIKE '{suite}-%'")[0][0]


def is_busy(path):
    return rows(path, "SELECT COUNT(*) = 2 AND SUM(progress_ticks) > 30 FROM jobs WHERE state = 1")[0][0]


def is_done(path, suite):
    return rows(path, f"SELECT jobs_done = 1 FROM suites WHERE name LIKE '{suite}-%'")[0][0]


def overtake(path, store, suite, planner):
    """A suite comes and is done while no mined job is."""
    until(is_busy, path)
    began = time.monotonic()
    swerve("submit", suite + ".json", "--store", store, "--class", "interactive", "--planner", planner)
    until(is_done, path, suite)
    print(f"# {suite} was done after {time.monotonic() - began:.2f} s", flush=True)
    assert rows(path, "SELECT jobs_done FROM suites WHERE name LIKE 'mined-%'") == [(0,)]


def judge(path, store):
    until(lambda: rows(path, "SELECT jobs_done FROM suites WHERE name LIKE 'mined-%'") == [(MINED,)])
    mined = name_of(path, "mined")
    found, = json.loads(swerve("status", mined, "--store", store, "--json").stdout)["suites"]
    assert found["jobs_handed_back"] == 2 and found["class"] == "mining", found
    assert "handed back 2 times" in swerve("status", mined, "--store", store).stdout
    assert drives(path) == drives("calm.db"), (drives(path), drives("calm.db"))
    ends = dict(rows(path, "SELECT a.ending, COUNT(*) FROM attempts a GROUP BY 1"))
    assert ends == {0: MINED + 2, 3: 2}, ends  # done, released
    assert rows(path, "SELECT SUM(device_ns), SUM(cost_uusd) FROM attempts") == rows(
        path, "SELECT SUM(device_ns), SUM(cost_uusd) FROM ledger")
    assert rows(path, "SELECT MIN(device_ns) > 0 FROM attempts WHERE ending = 3") == [(1,)]
    job, suite = rows(path, "SELECT h.job, u.name FROM hand_backs h JOIN suites u ON u.id = h.for_suite"
                            " WHERE h.returned = 1 ORDER BY h.epoch DESC, h.job LIMIT 1")[0]
    outcome = rows(path, f"SELECT id FROM outcomes WHERE job = {job} ORDER BY id LIMIT 1")[0][0]
    shown = json.loads(swerve("show", str(outcome), "--store", store, "--json").stdout)
    assert shown["handed_back"] >= 1 and shown["handed_back_for"] == suite, shown
    assert f"for suite {suite}" in swerve("show", str(outcome), "--store", store).stdout


def play(path, store):
    pathlib.Path("slow").touch()
    swerve("submit", "mined.json", "--store", store, "--class", "mining", "--planner", PLANNER)
    worker = start("worker", "--store", store, "--slots", "2", "--planner-sandbox", "off")
    overtake(path, store, "asked", PLANNER)  # in the same world, with the same planner
    overtake(path, store, "other", "builtin:reference")
    os.remove("slow")
    judge(path, store)
    end(worker)


def mined_drives_make_way_in_a_file():
    play("file.db", "file.db")
    swerve("check", "--store", "file.db")
    assert "0 different" in swerve("replay", "--all", "--store", "file.db").stdout


def mined_drives_make_way_at_a_server():
    server = start("serve", "--store", "served.db", "--listen", "127.0.0.1:0")
    url = server.stdout.readline().strip()
    play("served.db", url)
    metrics = urllib.request.urlopen(url + "/metrics", timeout=60).read().decode()
    assert 'swerve_store_jobs_handed_back_total{pool="bulk"} 2' in metrics, metrics
    end(server)
    swerve("check", "--store", "served.db")


def main():
    os.environ.pop("SWERVE_STORE", None)
    work = tempfile.mkdtemp(prefix="swerve-hand-back-")
    os.chdir(work)
    try:
        write_suites()
        swerve("run", "mined.json", "--store", "calm.db", "--planner", PLANNER)
        return tap.run([mined_drives_make_way_in_a_file, mined_drives_make_way_at_a_server])
    finally:
        for process in processes:
            process.kill()
            process.wait()
        os.chdir("/")
        shutil.rmtree(work)


sys.exit(1 if main() else 0)
