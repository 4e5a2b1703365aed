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
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable

LOGICAL = re.compile(r"/[^/=,]+=[^/=,]+(,[^/=,]+=[^/=,]+)*$")  # what a grid adds to an id
SLICES = ["weather", "light", "road", "geography", "actor", "scenario_type"]


def outcomes(binary: str, store: str) -> Iterable[dict]:
    """Every stored outcome of a store."""
    with subprocess.Popen([binary, "show", "--all", "--store", store], stdout=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode != 0:
        raise SystemExit(f"{store}: swerve show ended with {process.returncode}")


T95 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622}
Z95 = 1.959964


def wilson(share: float, draws: float) -> tuple[float, float]:
    """95% interval of a share."""
    scale = 1 + Z95 * Z95 / draws
    middle = (share + Z95 * Z95 / (2 * draws)) / scale
    half = Z95 / scale * math.sqrt(share * (1 - share) / draws + Z95 * Z95 / (4 * draws * draws))
    return max(0.0, middle - half), min(1.0, middle + half)


def estimate(rollouts: list[tuple[str, bool]]) -> tuple[float, float, float]:
    """Rate and interval of what holds in rollouts of scenarios, as scheduler/rate.c has it."""
    scenarios: dict[str, list[bool]] = defaultdict(list)
    for scenario, holds in rollouts:
        scenarios[scenario].append(holds)
    logical: dict[str, list[float]] = defaultdict(list)
    for scenario, values in scenarios.items():
        logical[LOGICAL.sub("", scenario)].append(sum(values) / len(values))
    count, parts = len(scenarios), list(logical.values())
    rate = sum(map(sum, parts)) / count
    failing = sum(sum(part) < len(part) - 1e-9 for part in parts)
    passing = sum(sum(part) > 1e-9 for part in parts)
    if len(parts) < 2 or not failing or not passing:
        return (rate, *wilson(rate, len(parts)))
    variance = (sum((sum(part) - rate * len(part)) ** 2 for part in parts)
                * len(parts) / (len(parts) - 1) / count**2)
    most = min(len(rollouts), count * (1 + min(failing, passing) / 10))
    draws = min(rate * (1 - rate) / variance, most) if variance > 0 else most
    draws *= (Z95 / T95.get(len(parts) - 1, Z95 + 2.4 / (len(parts) - 1))) ** 2
    return (rate, *wilson(rate, max(draws, count**2 / sum(len(part) ** 2 for part in parts))))


def cell(rollouts: list[tuple[str, bool]]) -> str:
    rate, low, high = estimate(rollouts)
    hits = sum(holds for _, holds in rollouts)
    return f"{100 * rate:.1f}% ({hits}/{len(rollouts)}, {100 * low:.0f} to {100 * high:.0f})"


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
