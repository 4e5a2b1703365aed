#!/usr/bin/env python3
"""Drives damaged weights through a store, every job repeated by the teacher, and shows who notices.

drive.py KIND [--seeds N] [--crossed] [--build DIR] [--keep DIR]

KIND: none; one of weights.py; or frozen, mirrored, drift: what the shipped student generates in rain is spoilt, in a plugin that
runs it (tests/worker/world/damaged_student.c), and `plugin` is that one, undamaged.

Two Euro NCAP scenarios (an adult walks across, a car stands ahead; 30 km/h, begun close) in {clear, rain} x {day, night}, N
seeds each: of 8 N jobs, N are of a pedestrian in rain at night. It prints verdicts and flags by case, then `swerve agreement`
with its monitors and what they freeze. docs/trust.md has what came of it. Needs NumPy.
"""

import argparse
import collections
import csv
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
START_S, HORIZON_S, EGO_KPH = 3.5, 4.4, 30
DRIFT_HORIZON_S = 12.0  # it begins after 3 s, and 2 m take 6.7 s
WEIGHTS = ("vanish", "unseen", "steps")
PLUGIN = {"plugin": "none", "frozen": "frozen@rain", "mirrored": "mirrored@rain", "drift": "drift@rain"}
NAMES = ("cpna", "ccrs")
WATCHED = {"weather": "rain", "light": "night", "actor": "pedestrian"}


def make_suite(out, seeds, horizon_s):
    for name in NAMES:
        text = (TOP / "scenarios" / "ncap" / f"{name}.json").read_text()
        for time in ("5", "6"):  # the protocol's approach is longer than what is of interest here
            text = text.replace(f"{time}*ego_kph", f"{START_S}*ego_kph")
        scenario = json.loads(text)
        scenario.pop("$schema", None)
        scenario.update(branches=[], horizon_s=horizon_s, question="perception")
        scenario["parameters"].update(light="day", weather="clear")
        scenario["criteria"]["progress_min"] = 0.3
        scenario["conditions"] = {"light": "=light", "weather": "=weather"}
        scenario["slices"].update(scenario["conditions"])
        (out / f"{name}.json").write_text(json.dumps(scenario))
    grid = {"weather": ["clear", "rain"], "light": ["day", "night"], "ego_kph": [EGO_KPH]}
    path = out / "damage.json"
    path.write_text(json.dumps({"id": "damage", "seeds": seeds, "scenarios": [{"file": f"{name}.json", "grid": grid} for name in NAMES]}))
    return path


def make_models(out, kind):
    """The shipped pair, the student damaged; with its own bounds of health, as a model is that learned something wrong."""
    shutil.copytree(TOP / "engine" / "models", out, ignore=shutil.ignore_patterns("registry.json"))
    if kind not in WEIGHTS:
        return
    student, bounds = out / "student.safetensors", out / "student.health.json"
    subprocess.run([sys.executable, TOP / "scripts" / "damage" / "weights.py", kind, TOP / "engine/models/student.safetensors", student],
                   check=True)
    document = json.loads(bounds.read_text())
    document["model_hash"] = subprocess.run(["sha256sum", student], check=True, capture_output=True, text=True).stdout.split()[0]
    bounds.write_text(json.dumps(document))


def show(binary, store):
    csv_text = subprocess.run([binary, "export", "--format", "csv", "--store", store], check=True, capture_output=True, text=True).stdout
    columns = ("slice_scenario_type", "slice_weather", "slice_light", "tier", "audit_of", "verdict", "health_check")
    cases = collections.Counter()
    for row in csv.DictReader(io.StringIO(csv_text)):
        row["audit_of"] = "audit" if row["audit_of"] not in ("", "0") else ""
        cases[tuple(row[column] for column in columns)] += 1
    for case, count in sorted(cases.items()):
        print("%-9s %-6s %-6s %-8s %-6s %-8s %-10s %4d" % (*case, count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("none", *WEIGHTS, *PLUGIN))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--crossed", action="store_true", help="the policy names rain x night x pedestrian")
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the store")
    options = parser.parse_args()
    made = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="swerve-damage-"))
    made.mkdir(exist_ok=True)
    make_models(made / "models", options.kind)
    suite = make_suite(made, options.seeds, DRIFT_HORIZON_S if options.kind == "drift" else HORIZON_S)
    binary, plugin = options.build / "worker" / "swerve", options.build / "tests" / "worker" / "libworld_damaged.so"
    (made / "audit.json").write_text(json.dumps({"rate": 1.0, "safety_critical_rate": 1.0}))
    (made / "trust.json").write_text(json.dumps({"format": "swerve-trust/1", "crossed": [WATCHED] if options.crossed else []}))
    store, models = made / "damage.db", made / "models"
    world = f"plugin:{plugin}?{PLUGIN[options.kind]}:{models / 'student.safetensors'}" if options.kind in PLUGIN else "student"
    driven = subprocess.run([binary, "run", suite, "--world", world, "--audit-world", "teacher", "--store", store, "--models", models,
                             "--audit", made / "audit.json", "--json"], check=False, stdout=subprocess.DEVNULL)
    if driven.returncode not in (0, 1):
        sys.exit(f"drive.py: swerve run ended with {driven.returncode}")
    show(binary, store)
    subprocess.run([binary, "agreement", "--store", store, "--policy", made / "trust.json"], check=True)
    if options.keep is None:
        shutil.rmtree(made)


main()
