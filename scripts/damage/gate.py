#!/usr/bin/env python3
"""Puts a student to the gate of models through a store: a copy of the teacher, the shipped student, or damaged weights.

gate.py copy|none|KIND [--scenarios N] [--build DIR] [--keep DIR]

KIND is one of weights.py. N logical scenarios (45) of an adult who walks across, at speeds, paces and places of their own, each in
clear weather by day and in rain at night; the policy decides by both, with a band of 0.90. `swerve model evaluate --drive`
drives what is missing until each has passed, is below, or has no scenario left. docs/models.md has what came of it. Needs NumPy.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import weights

TOP = pathlib.Path(__file__).resolve().parents[2]
START_S, HORIZON_S = 3.5, 4.4
CLEAR, WATCHED = {"weather": "clear", "light": "day"}, {"weather": "rain", "light": "night"}
POLICY = {"format": "swerve-trust/1", "band": 0.9, "safety_critical_band": 0.9, "crossed": [CLEAR, WATCHED],
          "decides": [CLEAR, WATCHED]}


def make_scenario(number):
    """One of its own: 25 to 40 km/h, impact at 25 to 75% of the width, an adult of 1.2 to 1.6 m/s."""
    text = (TOP / "scenarios" / "ncap" / "cpna.json").read_text()
    for time in ("5", "6"):
        text = text.replace(f"{time}*ego_kph", f"{START_S}*ego_kph")
    text = text.replace("1.39", f"{1.2 + 0.1 * (number // 3 % 5):.2f}")
    scenario = json.loads(text)
    scenario.pop("$schema", None)
    scenario.update(id=f"crossing-{number:02}", branches=[], horizon_s=HORIZON_S, question="perception")
    scenario["parameters"] = {"light": "day", "weather": "clear", "ego_kph": 25 + 5 * (number // 15 % 3),
                              "impact": 0.25 * (1 + number % 3)}
    scenario["criteria"]["progress_min"] = 0.3
    scenario["conditions"] = {"light": "=light", "weather": "=weather"}
    scenario["slices"].update(scenario["conditions"])
    return scenario


def make_suite(out, count):
    entries = []
    for number in range(count):
        (out / f"crossing-{number:02}.json").write_text(json.dumps(make_scenario(number)))
        entries += [{"file": f"crossing-{number:02}.json", "grid": {name: [value] for name, value in case.items()}}
                    for case in (CLEAR, WATCHED)]
    path = out / "crossings.json"
    path.write_text(json.dumps({"id": "crossings", "seeds": 1, "scenarios": entries}))
    return path


def make_student(out, kind):
    """Weights and bounds of health of who is put to the gate."""
    shipped = TOP / "engine" / "models" / ("teacher" if kind == "copy" else "student")
    student, bounds = out / "student.safetensors", out / "student.health.json"
    if kind == "copy":  # the same weights, which call themselves a student
        about, tensors = weights.read(shipped.with_suffix(".safetensors"))
        about["config"] = json.dumps({**json.loads(about["config"]), "name": "copy", "tier": "student"})
        weights.write(student, about, tensors)
    elif kind == "none":
        shutil.copy(shipped.with_suffix(".safetensors"), student)
    else:
        subprocess.run([sys.executable, TOP / "scripts" / "damage" / "weights.py", kind,
                        shipped.with_suffix(".safetensors"), student], check=True)
    document = json.loads(shipped.with_suffix(".health.json").read_text())
    document["model_hash"] = hashlib.sha256(student.read_bytes()).hexdigest()
    bounds.write_text(json.dumps(document))
    return student


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("copy", "none", "vanish", "unseen", "steps"))
    parser.add_argument("--scenarios", type=int, default=45)
    parser.add_argument("--workers", default="1")
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the store")
    options = parser.parse_args()
    made = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="swerve-gate-"))
    made.mkdir(exist_ok=True)
    suite = make_suite(made, options.scenarios)
    student = make_student(made, options.kind)
    policy, store = made / "bands.json", made / "gate.db"
    policy.write_text(json.dumps(POLICY))
    swerve = [options.build / "worker" / "swerve", "model"]

    def call(*words, ends=(0,)):
        code = subprocess.run([*swerve, *words, "--store", store], check=False).returncode
        if code not in ends:
            sys.exit(f"gate.py: swerve model {words[0]} ended with {code}")

    call("add", student, "--name", "student-1")
    call("add", TOP / "engine" / "models" / "teacher.safetensors", "--name", "teacher-1")
    call("promote", "teacher-1", "--force", "--evidence", "the shipped one")
    call("evaluate", "student-1", "--drive", suite, "--policy", policy, "--workers", options.workers, ends=(0, 1))
    if options.keep is None:
        shutil.rmtree(made)


main()
