#!/usr/bin/env python3
"""Compares the verdicts that two stores hold on the same rollouts.

Usage: scripts/verdicts.py [--binary SWERVE] [--slice NAME] A.db B.db

Joins outcomes on scenario, branch, planner and seed and prints, as a Markdown
table by slice, how often pass/fail and collision yes/no agree. Each scenario
counts once, with the mean of its rollouts; the 95% interval takes logical
scenarios for what is drawn (worker/METRICS.md, Rates and their intervals). Flagged rollouts are nobody's verdict: they are counted, not compared.
"""
import argparse
import json
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "compare"))
from recompute_rates import logical_of, rate  # noqa: E402

SLICES = ["weather", "light", "road", "geography", "actor", "scenario_type"]


def outcomes(binary: str, store: str) -> Iterable[dict]:
    """Every stored outcome of a store."""
    with subprocess.Popen([binary, "show", "--all", "--store", store], stdout=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode != 0:
        raise SystemExit(f"{store}: swerve show ended with {process.returncode}")


def cell(rollouts: list[tuple[str, bool]]) -> str:
    found = rate((logical_of(scenario), scenario, holds) for scenario, holds in rollouts)
    hits = sum(holds for _, holds in rollouts)
    low, high = math.floor(100 * found["low"]), math.ceil(100 * found["high"])
    return f"{100 * found['rate']:.1f}% ({hits}/{len(rollouts)}, {low} to {high})"


def verdicts(binary: str, store: str) -> tuple[dict[tuple, dict], int]:
    """Verdicts by rollout, and how many were flagged."""
    found, flagged = {}, 0
    for outcome in outcomes(binary, store):
        if outcome["verdict"] == "flagged":
            flagged += 1
        else:
            key = tuple(outcome[k] for k in ("scenario_id", "branch_id", "planner", "seed"))
            found[key] = outcome
    return found, flagged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/worker/swerve")
    parser.add_argument("--slice", default="weather", choices=SLICES)
    parser.add_argument("--differences", action="store_true", help="list the rollouts that differ")
    parser.add_argument("a")
    parser.add_argument("b")
    options = parser.parse_args()
    a, a_flagged = verdicts(options.binary, options.a)
    b, b_flagged = verdicts(options.binary, options.b)
    rows: dict[str, list[list[tuple[str, bool]]]] = defaultdict(lambda: [[], []])
    differences = []
    for key in sorted(a.keys() & b.keys()):
        same = a[key]["verdict"] == b[key]["verdict"]
        hit = [x["metrics"]["collision_count"] > 0 for x in (a[key], b[key])]
        for name in (a[key]["slices"][options.slice], "all"):
            rows[name][0].append((key[0], same))
            rows[name][1].append((key[0], hit[0] == hit[1]))
        if not same:
            differences.append((key, a[key]["verdict"], b[key]["verdict"]))
    print(f"| {options.slice} | pass or fail | collision |\n|---|---|---|")
    for name in sorted(rows, key=lambda n: (n == "all", n)):
        print(f"| {name} | {cell(rows[name][0])} | {cell(rows[name][1])} |")
    print(f"\nflagged: {a_flagged} in {options.a}, {b_flagged} in {options.b}; "
          f"in one store alone: {len(a.keys() ^ b.keys())}")
    if options.differences:
        for key, first, second in differences:
            print(f"{'/'.join(map(str, key))}: {first}, {second}")


if __name__ == "__main__":
    main()
