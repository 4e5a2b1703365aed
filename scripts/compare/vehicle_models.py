#!/usr/bin/env python3
"""Compares ego's dynamic single-track model with CommonRoad's published vehicle models on the same inputs.

    python3 -m venv venv && venv/bin/pip install commonroad-vehicle-models==3.0.2 scipy
    venv/bin/python scripts/compare/vehicle_models.py --swerve build/worker/swerve

Vehicle 2 (BMW 320i) on friction 1.0489, that of its tyres. Swerve drives each manoeuvre; the steering angle and the
acceleration that its recording shows are then the inputs of the package's single-track model (linear tyres) and of its
multi-body model with 29 states (Magic Formula tyres), integrated by SciPy. The multi-body model is the reference; how far
the package's own single-track model is from it says what such a model can do.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from scipy.integrate import solve_ivp
from vehiclemodels.init_mb import init_mb
from vehiclemodels.parameters_vehicle2 import parameters_vehicle2
from vehiclemodels.vehicle_dynamics_mb import vehicle_dynamics_mb
from vehiclemodels.vehicle_dynamics_st import vehicle_dynamics_st

TICK_S, SECONDS, G = 0.1, 4.0, 9.81
# name: speed, then (from tick on, acceleration, front-wheel angle)
MANOEUVRES = {
    "step steer, 20 m/s, 0.5 deg": (20, [(5, 0, 0.00873)]),
    "step steer, 20 m/s, 1 deg": (20, [(5, 0, 0.01745)]),
    "step steer, 20 m/s, 2 deg": (20, [(5, 0, 0.0349)]),
    "step steer, 20 m/s, 3 deg": (20, [(5, 0, 0.0524)]),
    "step steer, 30 m/s, 1 deg": (30, [(5, 0, 0.01745)]),
    "turn at 15 m/s, 0.15 rad": (15, [(0, 0, 0.15)]),
    "lane change, 20 m/s": (20, [(5, 0, 0.02), (15, 0, -0.02), (25, 0, 0)]),
    "brake 3 m/s2 from 27.8 m/s": (27.8, [(5, -3, 0)]),
    "brake 6 m/s2 from 27.8 m/s": (27.8, [(5, -6, 0)]),
    "brake 3 m/s2 in a turn, 20 m/s": (20, [(0, 0, 0.02), (15, -3, 0.02)]),
    "brake 6 m/s2 in a turn, 20 m/s": (20, [(0, 0, 0.02), (15, -6, 0.02)]),
}


def scenario(index, speed, p):
    field = [[-100, -600], [600, -600], [600, 600], [-100, 600]]
    return {"id": f"m{index}", "horizon_s": SECONDS, "conditions": {"friction": p.tire.p_dy1},
            "map": {"lanes": [{"id": "east", "centre_line": [[-100, 0], [600, 0]], "width_m": 4}], "drivable": [field]},
            "ego": {"pose": {"lane": "east", "s_m": 100}, "speed_mps": speed, "route": ["east"], "wheelbase_m": p.a + p.b,
                    "dynamics": "single_track"}}


PLANNER = """
import json, swerve_planner
PLANS = json.load(open("plans.json"))
class Mine(swerve_planner.Planner):
    def reset(self, episode):
        self.plan, self.tick = PLANS[episode.scenario_id], 0
    def act(self, observation):
        now = [step for step in self.plan if step[0] <= self.tick]
        self.tick += 1
        return (now[-1][1], now[-1][2]) if now else (0.0, 0.0)
swerve_planner.run(Mine)
"""


def drive(swerve, p):
    """Recordings of the manoeuvres, in order."""
    root = pathlib.Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory(prefix="swerve-models-") as work:
        env = {**os.environ, "PYTHONPATH": str(root)}
        files = []
        for index, (speed, _) in enumerate(MANOEUVRES.values()):
            files.append({"file": f"m{index}.json"})
            pathlib.Path(work, f"m{index}.json").write_text(json.dumps(scenario(index, speed, p)))
        plans = {f"m{index}": plan for index, (_, plan) in enumerate(MANOEUVRES.values())}
        pathlib.Path(work, "plans.json").write_text(json.dumps(plans))
        pathlib.Path(work, "planner.py").write_text(PLANNER)
        pathlib.Path(work, "suite.json").write_text(json.dumps({"id": "models", "seeds": [0], "scenarios": files}))

        def run(*words):
            done = subprocess.run([swerve, *words, "--store", "a.db"], cwd=work, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

        run("run", "suite.json", "--world", "object", "--planner", "exec:python3 planner.py")
        ids = {outcome["scenario_id"]: outcome["id"] for outcome in run("show", "--all")}
        return [[tick for tick in run("show", str(ids[f"m{index}"]), "--trace") if "x_m" in tick] for index in range(len(files))]


def integrate(model, start, ticks, p):
    """x, y, yaw rate, speed at each tick, under the recorded steering and acceleration."""
    state, found = np.array(start, dtype=float), []
    for at, after in zip(ticks, ticks[1:] + ticks[-1:]):
        across = model is vehicle_dynamics_mb and state[10] or 0.0
        found.append((state[0], state[1], state[5], math.hypot(state[3], across)))
        inputs = [(after["steer_rad"] - at["steer_rad"]) / TICK_S, (after["speed_mps"] - at["speed_mps"]) / TICK_S]
        done = solve_ivp(lambda _, x: model(list(x), inputs, p), (0, TICK_S), state, rtol=1e-6, atol=1e-8, max_step=0.02)
        state = done.y[:, -1]
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swerve", default="swerve")
    options = parser.parse_args()
    p = parameters_vehicle2()
    print("differences to the multi-body model, of swerve's and of the package's single-track model: position at most, of the way;")
    print("yaw rate at the end, of the multi-body model's")
    print(f"{'manoeuvre':32} {'a_lat':>6} {'position m':>13} {'of m':>6} {'yaw rate mrad/s':>16} {'of':>5}")
    for name, ticks in zip(MANOEUVRES, drive(os.path.realpath(options.swerve), p)):
        core = [ticks[0]["x_m"], ticks[0]["y_m"], 0, ticks[0]["speed_mps"], 0, 0, 0]
        linear = integrate(vehicle_dynamics_st, core, ticks, p)
        body = integrate(vehicle_dynamics_mb, init_mb(core, p), ticks, p)
        ours = np.array([(t["x_m"], t["y_m"], t["yaw_rate_rps"], t["speed_mps"]) for t in ticks])
        far = [np.hypot(*(one[:, :2] - body[:, :2]).T).max() for one in (ours, linear)]
        turn = [1000 * abs(one[-1, 2] - body[-1, 2]) for one in (ours, linear)]
        way = np.hypot(*np.diff(body[:, :2], axis=0).T).sum()
        lateral = max(abs(t["lat_accel_mps2"]) for t in ticks)
        print(f"{name:32} {lateral:6.2f} {far[0]:6.2f} {far[1]:6.2f} {way:6.0f} {turn[0]:8.1f} {turn[1]:7.1f} {1000 * abs(body[-1, 2]):5.0f}")


if __name__ == "__main__":
    sys.exit(main())
