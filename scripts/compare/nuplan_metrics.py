#!/usr/bin/env python3
"""Compares the metrics of stored drives with those of nuPlan's devkit, by the devkit's own functions.

    git clone https://github.com/motional/nuplan-devkit
    python3 -m venv venv && venv/bin/pip install numpy scipy shapely
    swerve run scenarios/longtail.json --world object --store runs.db
    venv/bin/python scripts/compare/nuplan_metrics.py --devkit nuplan-devkit --swerve build/worker/swerve --store runs.db

For every drive that passed or failed (branches too): comfort (filters, derivatives, bounds), the weighted score,
and time to collision. Modules of the devkit that need databases, maps or PyTorch are replaced by empty ones: no
function that is called needs them. TTC counts agents beside ego where ego is between lanes or in a junction, which
depends on the map; it is computed with and without them, and compared where both agree, else bounded by the two.
"""
import argparse
import importlib.abc
import importlib.machinery
import json
import math
import subprocess
import sys
import types
from unittest.mock import MagicMock

ABSENT = {"pytest", "pandas", "geopandas", "pyquaternion", "ray", "hydra", "omegaconf", "bokeh", "tqdm", "boto3", "botocore",
          "aioboto3", "aiofiles", "cachetools", "retry", "sqlalchemy", "rasterio", "fiona", "torch", "pyarrow", "cv2",
          "matplotlib", "PIL", "tornado", "descartes", "pyogrio", "ujson", "msgpack", "control", "psutil", "joblib", "sklearn",
          "rtree", "urllib3", "requests", "s3fs", "casadi", "sympy"}
TICK_US = 100_000
HORIZON_S = 2.95  # the devkit looks at 0.1 .. 2.9 s, swerve also at 3.0
BOUNDS = {"lon": (-4.05, 2.40), "lat": (-4.89, 4.89), "lon_jerk": (-4.13, 4.13), "jerk": (-8.37, 8.37),
          "yaw_rate": (-0.95, 0.95), "yaw_accel": (-1.93, 1.93)}


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        absent = name.split(".")[0] in ABSENT or name.startswith(("nuplan.database", "nuplan.common.maps.nuplan_map"))
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec):
        module = MagicMock()
        module.__path__, module.__name__, module.__spec__ = [], spec.name, spec
        return module

    def exec_module(self, module):
        pass


class Reader:
    def __init__(self, swerve: str, store: str):
        self.swerve, self.store, self.scenarios = swerve, store, {}

    def run(self, *arguments: str) -> str:
        command = [self.swerve, "show", *arguments, "--store", self.store]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def outcomes(self) -> list[dict]:
        return [json.loads(line) for line in self.run("--all").splitlines()]

    def ticks(self, outcome: dict) -> list[dict]:
        lines = [json.loads(line) for line in self.run(str(outcome["id"]), "--trace").splitlines()]
        return [line for line in lines if "x_m" in line]

    def scenario(self, outcome: dict) -> dict:
        key = outcome["scenario_hash"]
        if key not in self.scenarios:
            self.scenarios[key] = json.loads(self.run(str(outcome["id"]), "--scenario"))
        return self.scenarios[key]


def make_compare(devkit: str):
    """The comparison, over the devkit's modules."""
    sys.path.insert(0, devkit)
    sys.meta_path.append(Absent())
    import numpy as np
    from nuplan.common.actor_state.agent import Agent
    from nuplan.common.actor_state.oriented_box import OrientedBox
    from nuplan.common.actor_state.state_representation import StateSE2
    from nuplan.planning.metrics.aggregator.weighted_average_metric_aggregator import WeightedAverageMetricAggregator
    from nuplan.planning.metrics.evaluation_metrics.common import time_to_collision_within_bound as ttc
    from nuplan.planning.metrics.utils import state_extractors as extract

    class Track(Agent):
        """Interface that TTC wants of a tracked object."""

        def __init__(self, box, speed, token):
            self._own = (box, abs(speed), token)

        center = property(lambda self: self._own[0].center)
        box = property(lambda self: self._own[0])
        velocity = property(lambda self: types.SimpleNamespace(magnitude=lambda: self._own[1]))
        track_token = property(lambda self: self._own[2])

    def ego_state(tick: dict, index: int, ego: dict):
        center = StateSE2(tick["x_m"], tick["y_m"], tick["heading_rad"])
        back = ego["wheelbase_m"] / 2
        rear = StateSE2(center.x - back * math.cos(center.heading), center.y - back * math.sin(center.heading), center.heading)
        accel = types.SimpleNamespace(x=tick["accel_mps2"], y=tick["lat_accel_mps2"])
        return types.SimpleNamespace(
            center=center, rear_axle=rear, time_point=types.SimpleNamespace(time_us=index * TICK_US),
            dynamic_car_state=types.SimpleNamespace(
                center_acceleration_2d=accel, acceleration=math.hypot(accel.x, accel.y), speed=tick["speed_mps"]),
            car_footprint=types.SimpleNamespace(oriented_box=OrientedBox(center, ego["length_m"], ego["width_m"], ego["height_m"])))

    def comfort(states) -> dict:
        signals = {
            "lon": extract.extract_ego_acceleration(states, "x"), "lat": extract.extract_ego_acceleration(states, "y"),
            "lon_jerk": extract.extract_ego_jerk(states, "x"), "jerk": extract.extract_ego_jerk(states, "magnitude"),
            "yaw_rate": extract.extract_ego_yaw_rate(states),
            "yaw_accel": extract.extract_ego_yaw_rate(states, deriv_order=2, poly_order=3)}
        within = all(low < value < high for name, (low, high) in BOUNDS.items() for value in signals[name])
        return {"comfort": float(within), "accel_min_mps2": float(signals["lon"].min()),
                "jerk_max_mps3": float(abs(signals["jerk"]).max())}

    def score(m: dict) -> float:
        aggregator = WeightedAverageMetricAggregator.__new__(WeightedAverageMetricAggregator)
        aggregator._metric_weights = {"default": 1.0, "progress": 5.0, "ttc": 5.0, "speed_limit": 4.0, "comfort": 2.0}
        aggregator._multiple_metrics = ["no_at_fault_collision", "drivable_area", "making_progress", "driving_direction"]
        names = aggregator._multiple_metrics + ["progress", "ttc", "speed_limit", "comfort"]
        columns = {"drive": {name: m[name] for name in names}}
        aggregator._compute_scenario_score(columns)
        return columns["drive"]["score"]

    def least_ttc(states, ticks, scenario, m, beside: bool) -> float:
        observed = []
        for index, tick in enumerate(ticks):
            tracks = []
            for at in tick["agents"]:
                kept = scenario["agents"][at["agent"]]
                touched = at["agent"] == m["collision_agent"] and index >= m["collision_tick"]
                box = OrientedBox(StateSE2(at["x_m"], at["y_m"], at["heading_rad"]), *(kept[k] for k in ("length_m", "width_m", "height_m")))
                if not touched:
                    tracks.append(Track(box, at["speed_mps"], str(at["agent"])))
            observed.append(types.SimpleNamespace(tracked_objects=tracks))
        times = np.array([state.time_point.time_us for state in states])
        fault = [m["collision_tick"] * TICK_US] if m["at_fault"] else []
        off_map = types.SimpleNamespace(is_in_layer=lambda *a, **k: False)
        found = ttc.compute_time_to_collision(states, times, observed, [] if beside else list(times), [], fault, off_map, 0.1, 3.0)
        finite = [float(value) for value in found if value is not None and not math.isnan(value)]
        return min(finite + [math.inf])

    def compare(outcome: dict, ticks: list[dict], scenario: dict) -> dict:
        m = outcome["metrics"]
        states = [ego_state(tick, index, scenario["ego"]) for index, tick in enumerate(ticks)]
        theirs = comfort(states)
        result = {name: abs(value - m[name]) for name, value in theirs.items()}
        result["score"] = abs(score(m) - m["score"])
        if m["collision_count"] <= 1:  # who was touched second is not in the outcome
            ours = math.inf if m["min_ttc_s"] is None or float(m["min_ttc_s"]) > HORIZON_S else float(m["min_ttc_s"])
            pair = [least_ttc(states, ticks, scenario, m, beside) for beside in (False, True)]
            same = [ours == value or abs(ours - value) < 1e-6 for value in pair]
            result["ttc"] = ("equal" if same[0] else "differs") if pair[0] == pair[1] else \
                "within" if any(same) or pair[1] <= ours <= pair[0] else "outside"
        return result

    return compare


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devkit", required=True)
    parser.add_argument("--swerve", default="swerve")
    parser.add_argument("--store", required=True)
    options = parser.parse_args()
    compare = make_compare(options.devkit)
    reader = Reader(options.swerve, options.store)
    drives, skipped, worst, ttc, bad = 0, 0, {}, {}, []
    for outcome in reader.outcomes():
        if outcome["verdict"] not in ("pass", "fail"):
            continue
        try:
            found = compare(outcome, reader.ticks(outcome), reader.scenario(outcome))
        except ValueError:  # the devkit refuses a drive that is shorter than its filters
            skipped += 1
            continue
        drives += 1
        kind = found.pop("ttc", "not compared")
        ttc[kind] = ttc.get(kind, 0) + 1
        for name, value in found.items():
            worst[name] = max(worst.get(name, 0.0), value)
        if kind in ("differs", "outside") or any(value > 1e-6 for value in found.values()):
            bad.append(f"{outcome['id']} {outcome['scenario_id']} {outcome['branch_id']}: {kind} {found}")
    print(f"{drives} drives, {skipped} too short for the devkit")
    print("largest differences:", ", ".join(f"{name} {value:.2g}" for name, value in sorted(worst.items())))
    print("time to collision:", ", ".join(f"{name} {count}" for name, count in sorted(ttc.items())))
    print("\n".join(bad[:20]) if bad else "no drive differs")
    return 1 if bad or drives == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
