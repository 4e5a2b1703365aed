#!/usr/bin/env python3
"""Goal: a suite's slices are counted whole, however many values there are. Method: a suite whose scenarios have three
values of their own each, more than a page of the API holds; its pages are added up and compared with the outcomes.

Usage: test_slices.py SWERVE
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

SWERVE = os.path.realpath(sys.argv[1])
SCENARIOS = 420
LANE = {"id": "east", "centre_line": [[0, 0], [500, 0]], "width_m": 3.5}


def scenario(number):
    return {"id": f"s{number}", "horizon_s": 0.5, "map": {"lanes": [LANE]},
            "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 5, "route": ["east"]},
            "slices": {"road": f"r{number}", "actor": f"a{number}", "geography": f"g{number}", "scenario_type": f"t{number % 3}"}}


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-slices-") as work:
        os.chdir(work)
        for number in range(SCENARIOS):
            with open(f"s{number}.json", "w") as out:
                json.dump(scenario(number), out)
        with open("suite.json", "w") as out:
            json.dump({"id": "many", "scenarios": [{"file": f"s{number}.json"} for number in range(SCENARIOS)]}, out)
        subprocess.run([SWERVE, "run", "suite.json", "--world", "object", "--store", "a.db"], check=True, stdout=subprocess.DEVNULL)
        server = subprocess.Popen([SWERVE, "serve", "--store", "a.db", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        url = None
        while url is None:
            line = server.stdout.readline()
            assert line, "the server ended"
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            url = found and found.group()

        def get(path):
            with urllib.request.urlopen(url + path, timeout=60) as answer:
                return json.load(answer)

        suite = get("/v1/suites")["suites"][0]
        suite = suite if isinstance(suite, str) else suite["suite"]
        counted, after, pages = collections.Counter(), 0, 0
        while True:
            data = get(f"/v1/suites/{suite}/slices?after={after}")
            pages += 1
            for row in data["slices"]:
                assert row["tier"] == "object", row
                counted[row["kind"], row["value"]] += sum(row["rollouts"].values())
            if not data.get("next"):
                break
            after = data["next"]
        server.terminate()
        server.communicate(timeout=60)
        os.chdir("/")
    results = [("more values than a page holds take several", pages > 1),
               ("every value is counted", all(counted[kind, f"{kind[0]}{number}"] == 1 for kind in ("road", "actor", "geography")
                                              for number in range(SCENARIOS))),
               ("and none twice", counted["", ""] == SCENARIOS and counted["scenario_type", "t1"] == SCENARIOS / 3)]
    print(f"1..{len(results)}")
    for at, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {at} - {name}")
    sys.exit(0 if all(good for _, good in results) else 1)


main()
