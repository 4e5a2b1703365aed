#!/usr/bin/env python3
"""Goal: a search finds a boundary that is known in closed form to 1%, the same one again from what is stored, and says
plainly what it cannot search. Method: a planner that brakes constantly before a car that stands, whose stopping distance is
the sum of a geometric series (the lag of the brakes); searches over ranges, grids and words; mistakes in ranges.

Usage: test_search.py SWERVE SOURCE_ROOT
"""
import collections
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
BRAKE_MPS2, TICK_S, LAG_S = 6.0, 0.1, 0.2

PLANNER = f"""
import swerve_planner
class Brake(swerve_planner.Planner):
    def act(self, observation):
        return (-{BRAKE_MPS2}, 0.0)
swerve_planner.run(Brake)
"""


def search(*words, code=0):
    done = subprocess.run([SWERVE, "search", *words, "--store", "s.db", "--workers", "2"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == code, (words, done)
    return done


def found(*words):
    return json.loads(search(*words, "--json").stdout)


def stopping_m(speed_mps):
    """Brakes reach 1 - q^k of what is asked by the end of sub-step k, q = exp(-h / lag), and act with their mean over each:
    what is lost is a geometric series."""
    h = TICK_S / 2
    q = math.exp(-h / LAG_S)
    mean = lambda k: 1 - q ** (k - 1) * (1 - q) * LAG_S / h
    lost = lambda k: k - (1 - q**k) * LAG_S / h  # sum of the means, 1..k
    k = 0
    distance, speed = 0.0, speed_mps
    while speed > 0:
        k += 1
        after = speed_mps - BRAKE_MPS2 * h * lost(k)
        decel = BRAKE_MPS2 * mean(k)
        distance += (speed + after) / 2 * h if after > 0 else speed**2 / (2 * decel)
        speed = after
    return distance


def a_known_boundary_is_found_to_one_percent():
    row = found("ccr_brake.json", "--planner", "exec:python3 -S brake.py", "--resolution", "400")["scenarios"][0]
    cluster = row["clusters"][0]  # another one, of a standing ego that touches, may lie on the boundary itself
    assert all(other["reasons"] == "collision" for other in row["clusters"][1:]), row
    assert cluster["side"] == "front" and cluster["way"] == "same" and cluster["agent"] == 0 and cluster["agent_id"] == "target", cluster
    lines = [line for line in cluster["boundaries"] if line["parameter"] == "gap_m" and line["towards"] == "high"]
    closest = [line for line in cluster["boundaries"] if line["parameter"] is None]
    assert len(lines) == 1 and len(closest) == 1 and lines[0]["state"] == "found", cluster["boundaries"]
    fails, passes = lines[0]["fails"], lines[0]["passes"]
    truth = stopping_m(fails["ego_mps"])
    middle = (fails["gap_m"] + passes["gap_m"]) / 2
    assert fails["gap_m"] <= truth + 1e-6 and truth <= passes["gap_m"] + 1e-6, (fails, truth, passes)
    assert abs(middle / truth - 1) < 0.01, (middle, truth)
    said = search("ccr_brake.json", "--planner", "exec:python3 -S brake.py", "--resolution", "400").stdout
    assert f"in words: it fails while gap_m is at most {fails['gap_m']:.6g}" in said, said
    # The picture has a circle for each point, red where it failed, one for each boundary, and the sentence.
    for name in ("b.svg", "b.png"):
        search("ccr_brake.json", "--planner", "exec:python3 -S brake.py", "--resolution", "400", "--draw", name)
    assert pathlib.Path("b.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    drawn = pathlib.Path("b.svg").read_text()
    lines = [line for c in row["clusters"] for line in c["boundaries"] if line["state"] == "found"]
    circles = collections.Counter(re.findall(r'stroke-width="2.00" stroke="([^"]*)"', drawn))
    assert circles["rgb(200,53,43)"] == row["failures"] and circles["rgb(23,32,43)"] == len(lines), (circles, row["failures"], len(lines))
    assert f"gap_m is at most {fails['gap_m']:.6g}" in " ".join(re.findall("<text[^>]*>([^<]*)", drawn)), drawn[-2000:]
    assert "expected FILE.png or FILE.svg" in search("ccr_brake.json", "--draw", "b.txt", code=2).stderr
    # In both numbers at once: each end is on its side of the curve.
    assert closest[0]["fails"]["gap_m"] <= stopping_m(closest[0]["fails"]["ego_mps"]) + 1e-6, closest
    assert closest[0]["passes"]["gap_m"] >= stopping_m(closest[0]["passes"]["ego_mps"]) - 1e-6, closest


def the_same_search_drives_nothing_again():
    words = ("ccr_brake.json", "--budget", "60")
    first = found(*words)
    count = lambda: json.loads(subprocess.run([SWERVE, "status", first["suite"], "--store", "s.db", "--json"],
                                              stdout=subprocess.PIPE, check=True).stdout)
    before = count()
    assert found(*words) == first
    assert count() == before
    other = found(*words, "--search-seed", "2")
    assert other["suite"] != first["suite"] and other != first
    assert first["drives"] <= 60, first["drives"]


def grids_and_words_are_ranges_too():
    suite = {"id": "grid", "scenarios": [
        {"file": "ccr_brake.json", "id": "a", "grid": {"gap_m": [10, 50, 30], "ego_mps": [12]}},
        {"file": "word.json", "id": "b", "set": {"ego_mps": 12}, "ranges": {"weather": ["clear", "snow"]}}]}
    pathlib.Path("grid.json").write_text(json.dumps(suite))
    rows = found("grid.json", "--planner", "builtin:maintain", "--budget", "40")["scenarios"]
    assert [row["scenario"] for row in rows] == ["a", "b"], rows
    assert {"gap_m", "ego_mps"} == set(rows[0]["clusters"][0]["point"]), rows[0]
    assert all(row["failures"] == row["points"] > 0 for row in rows), rows
    assert rows[1]["clusters"][0]["point"]["weather"] in ("clear", "snow")
    assert "gap_m 10..50" in search("grid.json", "--planner", "builtin:maintain", "--budget", "40").stdout


def a_suite_with_ranges_runs_at_its_defaults():
    plain = json.loads(pathlib.Path("ccr_brake.json").read_text())
    del plain["ranges"]
    pathlib.Path("plain.json").write_text(json.dumps(plain))
    suites = [json.loads(subprocess.run([SWERVE, "run", name, "--store", "plain.db", "--json"], stdout=subprocess.PIPE,
                                        check=True).stdout)["suite"] for name in ("ccr_brake.json", "plain.json")]
    assert suites[0] == suites[1], suites  # it is made of the hashes of all scenarios


def points_that_make_no_scenario_are_counted():
    scenario = json.loads(pathlib.Path("ccr_brake.json").read_text())
    scenario["ranges"] = {"gap_m": [-4, 60]}
    pathlib.Path("wide.json").write_text(json.dumps(scenario))
    done = found("wide.json", "--budget", "40")["scenarios"][0]
    assert done["impossible"] > 0, done
    assert "cannot be driven" in search("wide.json", "--budget", "40").stdout


def mistakes_are_named():
    scenario = json.loads(pathlib.Path("ccr_brake.json").read_text())
    for ranges, words in (({"gap": [1, 2]}, "found \"gap\""), ({"gap_m": [2, 1]}, "$.ranges.gap_m: expected the lowest"),
                          ({"gap_m": [1, 2, 3]}, "found 3"), ({"gap_m": [1, "x"]}, "$.ranges.gap_m[1]"),
                          ({}, "$.ranges: expected an object"), ({"gap_m": 3}, "$.ranges.gap_m")):
        scenario["ranges"] = ranges
        pathlib.Path("bad.json").write_text(json.dumps(scenario))
        done = search("bad.json", code=3)
        assert words in done.stderr and "bad.json" in done.stderr, (ranges, done.stderr)
    suite = {"id": "s", "scenarios": [{"file": "ccr_brake.json", "set": {"gap_m": 9}, "ranges": {"gap_m": [1, 2]}}]}
    pathlib.Path("bad.json").write_text(json.dumps(suite))
    assert "expected a parameter that the entry does not set" in search("bad.json", code=3).stderr
    assert "expected scenarios with \"ranges\"" in search("plain.json", code=3).stderr
    assert "--budget: expected 10 to" in search("ccr_brake.json", "--budget", "3", code=2).stderr
    suite = {"id": "s", "scenarios": [{"file": "ccr_brake.json", "id": name} for name in "abc"]}
    pathlib.Path("bad.json").write_text(json.dumps(suite))
    for more, least in (((), 30), (("--seeds", "4"), 120), (("--nominal",), 30)):
        words = f"--budget: expected at least {least} drives, 10 points for each of 3 logical scenarios, found 20"
        assert words in search("bad.json", "--budget", "20", *more, code=2).stderr, (more, least)


def validate(name, code=0):
    done = subprocess.run([SWERVE, "validate", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == code, done
    return done.stderr


def a_new_scenario_is_one():
    pathlib.Path("new").mkdir()
    command = [SWERVE, "scenario", "new", "new/steps out.json"]
    subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert validate("new/steps out.json") == ""
    scenario = json.loads(pathlib.Path("new/steps out.json").read_text())
    schema = json.loads(pathlib.Path("new", scenario["$schema"]).read_text())
    assert scenario["id"] == "steps_out" and set(scenario) <= set(schema["properties"]), scenario
    assert "found one that is there" in subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr
    assert found("new/steps out.json", "--budget", "20")["drives"] > 0
    scenario["agents"][0]["manoeuvres"][0]["speed_mps"] = "=20*child_mps"
    scenario["ego"]["speed_mps"] = "=ego_kph"
    pathlib.Path("new/fast.json").write_text(json.dumps(scenario))
    said = validate("new/fast.json")
    assert 'agent "child": a pedestrian at 28 m/s (101 km/h); was it meant in km/h' in said, said
    assert "ego: starts at 40 m/s (144 km/h), where 13.89 m/s" in said, said


def every_mistake_of_an_entry_is_said():
    entry = {"file": "ccr_brake.json", "grid": {"gap": [1], "ego_mps": [[1]]}, "ranges": {"gap_n": [1, 2], "ego_mps": [3, 2]}}
    pathlib.Path("bad.json").write_text(json.dumps({"id": "s", "scenarios": [entry]}))
    said = validate("bad.json", code=3)
    for words in ('ranges.gap_n: expected the name of a parameter of ccr_brake.json, found "gap_n", which it has not; did you mean "gap_m"?',
                  "ranges.ego_mps: expected the lowest", 'grid.gap: expected the name', "grid.ego_mps: expected a number"):
        assert words in said, (words, said)
    both = {"file": "ccr_brake.json", "grid": {"gap_m": [20, 30]}, "ranges": {"gap_m": [-1, 60]}}
    pathlib.Path("both.json").write_text(json.dumps({"id": "s", "scenarios": [both]}))
    assert validate("both.json") == ""
    assert "gap_m -1..60" in search("both.json", "--budget", "20").stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["PYTHONPATH"] = str(ROOT / "scripts")
        shutil.copy(ROOT / "scenarios/search/ccr_brake.json", ".")
        pathlib.Path("brake.py").write_text(PLANNER)
        word = json.loads(pathlib.Path("ccr_brake.json").read_text())
        word["parameters"]["weather"] = "clear"
        word["conditions"] = {"weather": "=weather"}
        del word["ranges"]
        pathlib.Path("word.json").write_text(json.dumps(word))
        sys.exit(tap.run([a_known_boundary_is_found_to_one_percent, the_same_search_drives_nothing_again,
                          grids_and_words_are_ranges_too, a_suite_with_ranges_runs_at_its_defaults,
                          points_that_make_no_scenario_are_counted, mistakes_are_named, a_new_scenario_is_one,
                          every_mistake_of_an_entry_is_said]))
