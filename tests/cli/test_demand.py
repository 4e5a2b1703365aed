#!/usr/bin/env python3
"""Goal: what a store says to wait is what was submitted, and the advice follows from it, the same from the command line and
from a server. Method: the smoke suite, queued, driven and looked at in between; a policy whose thresholds are passed at once.

Usage: test_demand.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
POLICY = {"format": "swerve-scaling/1", "pools": [
    {"pool": "bulk", "workers_min": 1, "workers_max": 5, "starts_max": 3, "age_s": 0, "drain_s": 1,
     "planned_tick_ms": {"replay": 1000, "object": 1000}}]}


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == code, (words, done)
    return done


def demand(*words):
    return json.loads(swerve("demand", "--store", "a.db", "--json", *words).stdout)


def planned_ticks(path):
    """Of a suite's scenarios without branches or seeds."""
    return sum(round(10 * one["horizon_s"]) for one in json.loads(path.read_text())["scenarios"])


def write_suite():
    lane = {"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}
    ego = {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}
    pathlib.Path("road.json").write_text(json.dumps({"id": "road", "horizon_s": 2, "map": {"lanes": [lane]}, "ego": ego,
                                                     "agents": []}))
    pathlib.Path("all.json").write_text(json.dumps({"id": "demand", "scenarios": [
        {"file": "road.json", "id": f"s{i}", "horizon_s": 2 + i} for i in range(4)]}))


def what_is_submitted_waits():
    swerve("submit", "all.json", "--store", "a.db", "--world", "object")
    rows = demand()["rows"]
    assert [(r["pool"], r["tier"], r["jobs_queued"], r["jobs_leased"]) for r in rows] == [("bulk", "object", 4, 0)], rows
    assert rows[0]["ticks_queued"] == planned_ticks(pathlib.Path("all.json")), rows
    assert rows[0]["device_s_queued"] is None and rows[0]["rollouts_seen"] == 0, rows
    table = swerve("demand", "--store", "a.db").stdout.splitlines()
    assert table[1].split()[:4] == ["bulk", "object", "4", "0"], table


def advice_is_remembered_in_a_file():
    advised = demand("--policy", "policy.json", "--state", "state")["pools"]
    assert len(advised) == 1 and 1 <= advised[0]["workers"] <= 3, advised
    text = swerve("demand", "--store", "a.db", "--policy", "policy.json", "--state", "state", "--workers", "bulk").stdout
    assert 1 <= int(text) <= 3, text
    assert json.loads(pathlib.Path("state").read_text())["pools"][0]["workers"] <= 3
    pathlib.Path("state").write_text("{}")
    assert "state" in swerve("demand", "--store", "a.db", "--policy", "policy.json", "--state", "state", code=3).stderr


def a_server_advises():
    with subprocess.Popen([SWERVE, "serve", "--store", "a.db", "--listen", "127.0.0.1:0", "--scaling", "policy.json"],
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            rows = json.load(urllib.request.urlopen(url + "/v1/demand"))["rows"]
            assert rows[0]["jobs_queued"] == 4, rows
            assert demand()["rows"][0]["jobs_queued"] == 4  # through the socket beside the file
            advice = json.load(urllib.request.urlopen(url + "/v1/scaling/bulk"))
            assert 1 <= advice["workers"] <= 3 and advice["device_ms_queued"] == 1000 * rows[0]["ticks_queued"], advice
            try:
                urllib.request.urlopen(url + "/v1/scaling/teacher")
                raise AssertionError("a pool without a policy was advised")
            except urllib.error.HTTPError as error:
                assert error.code == 404 and "no policy" in error.read().decode()
        finally:
            server.terminate()


def what_is_driven_waits_no_more():
    swerve("run", "all.json", "--store", "a.db", "--world", "object")
    rows = demand()["rows"]
    assert rows[0]["jobs_queued"] == rows[0]["jobs_leased"] == rows[0]["ticks_queued"] == rows[0]["age_ms"] == 0, rows
    assert rows[0]["rollouts_seen"] == 4 and 0 < rows[0]["tick_ns"] <= rows[0]["tick_p99_ns"], rows


def edited_stores_are_shown():
    shutil.copy("a.db", "edited.db")
    db = sqlite3.connect("edited.db")
    db.execute("UPDATE outcomes SET ticks = 1 << 62")
    db.execute("INSERT INTO audit_log (at_s, name, role, action, subject, code) VALUES (1 << 60, 'n', 'r', 'a', 's', 200)")
    db.commit()
    db.close()
    assert json.loads(swerve("demand", "--store", "edited.db", "--json").stdout)["rows"] == []  # no drive is as long
    assert swerve("store", "log", "--store", "edited.db").stdout.split() == ["1", "-", "n", "r", "200", "a", "s"]


def mistakes_are_told():
    assert "--policy FILE" in swerve("demand", "--store", "a.db", "--workers", "bulk", code=2).stderr
    assert "no policy for pool" in swerve("demand", "--store", "a.db", "--policy", "policy.json", "--workers", "x",
                                          code=2).stderr
    swerve("demand", "--store", "none.db", code=4)
    assert "all.json" in swerve("serve", "--store", "b.db", "--listen", "127.0.0.1:0", "--scaling", "all.json", code=3).stderr


def the_schema_takes_what_the_program_takes():
    try:
        import jsonschema
    except ImportError:
        return
    schema = json.loads((ROOT / "schemas/fleet/scaling.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(POLICY)


def main():
    with tempfile.TemporaryDirectory(prefix="swerve_demand_") as folder:
        os.chdir(folder)
        write_suite()
        pathlib.Path("policy.json").write_text(json.dumps(POLICY))
        return tap.run([what_is_submitted_waits, advice_is_remembered_in_a_file, a_server_advises,
                        what_is_driven_waits_no_more, edited_stores_are_shown, mistakes_are_told,
                        the_schema_takes_what_the_program_takes])


if __name__ == "__main__":
    sys.exit(main())
