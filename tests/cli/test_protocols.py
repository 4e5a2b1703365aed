#!/usr/bin/env python3
"""Goal: protocol scenarios meet ego where their protocol says, in rollouts and not only on paper.

Method: the Euro NCAP suite, without branches and nominal, under a planner that keeps speed and lane.
Every scenario ends in a contact; where a protocol prescribes a place on ego's width, the tick of the
first contact in the trace shows it. A tick is 0.1 s of the other's motion, which is the tolerance.

usage: test_protocols.py SWERVE SOURCE_ROOT
"""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import tap

EGO_WIDTH_M = 1.9
# Scenario: share of ego's width from the side that the other comes from, and its speed.
PLACES = {
    "cpna/impact=0.25": (0.25, 5), "cpna/impact=0.75": (0.75, 5), "cpna_lht": (0.75, 5),
    "cpfa_50": (0.5, 8), "cpnco_50": (0.5, 5), "cbna_50": (0.5, 15), "cbfa_50": (0.5, 20),
    "cbnao_50": (0.5, 10), "cpta_near": (0.5, 5), "cpta_far": (0.5, 5),
}
FROM_LEFT = ("cpfa_50", "cbfa_50", "cpna_lht", "cpta_far")


def swerve(*arguments):
    done = subprocess.run([SWERVE, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit {done.returncode}: {done.stderr[:300]}")
    return done.stdout


def lateral_m(outcome, store):
    """Of the other's centre from ego's centre line at the first contact, left positive."""
    metrics = outcome.get("metrics", outcome)
    trace = swerve("show", str(outcome["id"]), "--trace", "--store", store).splitlines()
    tick = json.loads(trace[metrics["collision_tick"]])
    other = next(a for a in tick["agents"] if a["agent"] == metrics["collision_agent"])
    dx, dy = other["x_m"] - tick["x_m"], other["y_m"] - tick["y_m"]
    return dy * math.cos(tick["heading_rad"]) - dx * math.sin(tick["heading_rad"])


def drive(directory):
    shutil.copytree(ROOT / "scenarios", directory / "scenarios")
    suite = json.loads((ROOT / "scenarios/ncap.json").read_text())
    for entry in suite["scenarios"]:
        entry["branches"] = []
    path = directory / "scenarios/keep.json"
    path.write_text(json.dumps(suite))
    store = str(directory / "keep.db")
    swerve("run", str(path), "--world", "object", "--planner", "builtin:maintain", "--store", store,
           "--json")
    lines = swerve("show", "--all", "--store", store).splitlines()
    return [json.loads(line) for line in lines], store


def every_conflict_is_one(outcomes, _):
    calm = [o["scenario_id"] for o in outcomes
            if o.get("metrics", o)["collision_count"] == 0 or o["verdict"] != "fail"]
    assert len(outcomes) == 54 and not calm, f"{len(outcomes)} drives, without a contact: {calm}"


def contacts_are_where_the_protocol_says(outcomes, store):
    seen = 0
    for outcome in outcomes:
        name = outcome["scenario_id"]
        place = next((PLACES[key] for key in PLACES if name.startswith(key)), None)
        if place is None:
            continue
        side = -1 if name.startswith(FROM_LEFT) else 1
        share = 0.5 + side * lateral_m(outcome, store) / EGO_WIDTH_M
        slack = 0.1 * place[1] / 3.6 / EGO_WIDTH_M + 0.02
        print(f"# {name}: {share:.2f}, prescribed {place[0]}, within {slack:.2f}")
        assert abs(share - place[0]) <= slack, f"{name}: {share:.2f} is not {place[0]}"
        seen += 1
    assert seen >= 20, f"only {seen} places were looked at"


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-protocols-") as name:
        outcomes, store = drive(pathlib.Path(name))
        return tap.run([every_conflict_is_one, contacts_are_where_the_protocol_says], outcomes, store) > 0


if __name__ == "__main__":
    SWERVE = sys.argv[1]
    ROOT = pathlib.Path(sys.argv[2])
    sys.exit(main())
