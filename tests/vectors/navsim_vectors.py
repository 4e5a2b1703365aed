#!/usr/bin/env python3
"""Makes navsim.txt: what navsim 2.1.2's own functions answer to random subscores and signals.

usage: PYTHONPATH=NAVSIM:NUPLAN_DEVKIT navsim_vectors.py > navsim.txt      (checkouts of both)

Called are: PDMScorer._aggregate_pdm_scores, _calculate_lane_keeping and _calculate_driving_direction_compliance on objects
that hold their arrays alone, ego_is_comfortable, calculate_rms over extract_features, ego_is_two_frame_extended_comfort,
PDMSimulator.simulate_proposals, SceneAggregator._compute_two_frame_comfort, compute_final_scores, calculate_pseudo_closed_loop_weights, calculate_individual_mapping_scores. Needs numpy, scipy, pandas,
shapely and what nuplan-devkit imports; other modules are replaced by empty ones, for no function that is called needs them.
Run again only when the cases change; the test needs the text alone.

Lines: `pdm N` and N lines of PROGRESS_M NC DAC DDC TLC TTC LK HC EC | NORMALISED PDM_SCORE SCORE; `comfort N STEP`, N lines
of ALONG ACROSS LENGTH HEADING, six flags; `extended N STEP`, twice N lines of LENGTH HEADING, four differences and a
flag; `lane N STEP SCORE` and `direction N STEP SCORE`, N lines each; `stage N X Y`, N lines of X Y SCORE WEIGHT, then
FIRST TOTAL; `plan N WHEELBASE`, twice (the plan of 0.5 s before, the plan) X Y HEADING SPEED ACCEL YAW_RATE STEER of the rear axle, N
lines of X Y HEADING every 0.1 s from 0.1 s on and N + 1 lines of LENGTH HEADING as simulated, then a flag.
"""
import importlib.abc
import importlib.machinery
import sys
import types
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
from shapely import LineString

ABSENT = {"aioboto3", "aiofiles", "bokeh", "boto3", "botocore", "cachetools", "casadi", "cv2", "descartes", "einops", "joblib",
          "pyarrow", "pytorch_lightning", "ray", "requests", "sklearn", "timm", "torch", "torchvision", "tornado", "urllib3"}


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stand-ins for modules that are not called, installed or not."""

    def find_spec(self, name, path, target=None):
        absent = name.split(".")[0] in ABSENT or name.startswith(("navsim.agents", "navsim.common.dataloader"))
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if absent else None

    def create_module(self, spec):
        module = MagicMock()
        module.__path__, module.__name__, module.__spec__, module.__version__ = [], spec.name, spec, "9.9"
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Absent())
from navsim.planning.simulation.planner.pdm_planner.scoring import pdm_comfort_metrics as comfort  # noqa: E402
from navsim.planning.simulation.planner.pdm_planner.scoring.pdm_scorer import PDMScorer, PDMScorerConfig  # noqa: E402
from navsim.planning.simulation.planner.pdm_planner.scoring.scene_aggregator import SceneAggregator  # noqa: E402
from navsim.planning.simulation.planner.pdm_planner.simulation.pdm_simulator import PDMSimulator  # noqa: E402
from navsim.planning.simulation.planner.pdm_planner.utils.pdm_enums import (  # noqa: E402
    BBCoordsIndex, EgoAreaIndex, MultiMetricIndex, StateIndex, WeightedMetricIndex)
from navsim.planning.script import run_pdm_score  # noqa: E402
from nuplan.common.actor_state.ego_state import EgoState  # noqa: E402
from nuplan.common.actor_state.state_representation import StateSE2, StateVector2D, TimePoint  # noqa: E402
from nuplan.planning.simulation.trajectory.trajectory_sampling import TrajectorySampling  # noqa: E402

RNG = np.random.default_rng(1)
STEP = 0.1


def show(*values):
    print(*(format(float(value), ".12g") for value in values))


def pdm(count):
    parts = {name: RNG.choice([0, 1], count, p=[0.2, 0.8]).astype(float) for name in ("dac", "tlc", "ttc", "lk", "hc", "ec")}
    parts["nc"], parts["ddc"] = (RNG.choice([0, 0.5, 1], count, p=[0.1, 0.2, 0.7]) for _ in range(2))
    progress = RNG.uniform(0, RNG.choice([4.0, 60.0]), count)
    scorer = types.SimpleNamespace(_config=PDMScorerConfig(), _progress_raw=progress,
                                   _multi_metrics=np.zeros((len(MultiMetricIndex), count)),
                                   _weighted_metrics=np.zeros((len(WeightedMetricIndex), count)))
    for index, name in ((MultiMetricIndex.NO_COLLISION, "nc"), (MultiMetricIndex.DRIVABLE_AREA, "dac"),
                        (MultiMetricIndex.DRIVING_DIRECTION, "ddc"), (MultiMetricIndex.TRAFFIC_LIGHT_COMPLIANCE, "tlc")):
        scorer._multi_metrics[index] = parts[name]
    for index, name in ((WeightedMetricIndex.TTC, "ttc"), (WeightedMetricIndex.LANE_KEEPING, "lk"),
                        (WeightedMetricIndex.HISTORY_COMFORT, "hc")):
        scorer._weighted_metrics[index] = parts[name]
    scores = PDMScorer._aggregate_pdm_scores(scorer)
    table = pd.DataFrame({"multiplicative_metrics_prod": scorer._multi_metrics.prod(axis=0),
                          "weighted_metrics": list(scorer._weighted_metrics.T),
                          "weighted_metrics_array": [scorer._config.weighted_metrics_array] * count,
                          "two_frame_extended_comfort": parts["ec"]})
    final = run_pdm_score.compute_final_scores(table)["score"].to_numpy()
    print("pdm", count)
    for i in range(count):
        show(progress[i], *(parts[name][i] for name in ("nc", "dac", "ddc", "tlc", "ttc", "lk", "hc", "ec")),
             scorer._weighted_metrics[WeightedMetricIndex.PROGRESS, i], scores[i], final[i])


def states(count, rough):
    made = np.zeros((1, count, StateIndex.size()))
    time = np.arange(count) * STEP
    wave = lambda size: size * np.sin(RNG.uniform(0.3, 2) * time + RNG.uniform(0, 6)) + rough * RNG.normal(0, 0.3, count)
    made[0, :, StateIndex.ACCELERATION_X] = wave(2.5)
    made[0, :, StateIndex.ACCELERATION_Y] = wave(2.0)
    heading = 3.0 + np.cumsum(wave(0.05))
    made[0, :, StateIndex.HEADING] = (heading + np.pi) % (2 * np.pi) - np.pi
    made[0, :, StateIndex.ANGULAR_VELOCITY] = wave(0.2)
    made[0, :, StateIndex.ANGULAR_ACCELERATION] = wave(0.2)
    return made


def comforts(count, rough):
    made = states(count, rough)
    vehicle = comfort.get_pacifica_parameters()
    centre = comfort.state_array_to_center_state_array(made, vehicle)[0]
    within = comfort.ego_is_comfortable(made, np.arange(count) * STEP)[0]
    print("comfort", count, STEP)
    for i in range(count):
        row = made[0, i]
        show(centre[i, StateIndex.ACCELERATION_X], centre[i, StateIndex.ACCELERATION_Y],
             np.hypot(row[StateIndex.ACCELERATION_X], row[StateIndex.ACCELERATION_Y]), row[StateIndex.HEADING])
    # The original's order: along, across, jerk, jerk along, yaw acceleration, yaw rate.
    show(*within)


def extended(count, near):
    now = states(count, 0.2)
    before = now + near * states(count, 0.2)
    times = np.arange(count) * STEP
    one, two = (comfort.extract_features(each, times) for each in (now, before))
    print("extended", count, STEP)
    for each in (now, before):
        for row in each[0]:
            show(np.hypot(row[StateIndex.ACCELERATION_X], row[StateIndex.ACCELERATION_Y]), row[StateIndex.HEADING])
    show(*(comfort.calculate_rms(one[name] - two[name])[0] for name in ("acceleration", "jerk", "yaw_rate", "yaw_accel")),
         comfort.ego_is_two_frame_extended_comfort(now, before, times)[0])


class Mask:
    """A map that is a junction at some instants: the scorer asks it about ego's points, whose x is the instant."""

    def __init__(self, mask):
        self.mask = mask

    def is_in_layer(self, point, layer):
        return bool(self.mask[int(round(point.x))])


def scorer_of(count, mask, across):
    coords = np.zeros((1, count, len(BBCoordsIndex), 2))
    coords[0, :, BBCoordsIndex.CENTER, 0] = np.arange(count)
    coords[0, :, BBCoordsIndex.CENTER, 1] = across
    sampling = types.SimpleNamespace(num_poses=count - 1, interval_length=STEP)
    return types.SimpleNamespace(_config=PDMScorerConfig(), _num_proposals=1, _ego_coords=coords, proposal_sampling=sampling,
                                 _drivable_area_map=Mask(mask), _weighted_metrics=np.zeros((len(WeightedMetricIndex), 1)),
                                 _multi_metrics=np.zeros((len(MultiMetricIndex), 1)),
                                 _centerline=types.SimpleNamespace(linestring=LineString([(-9, 0), (count + 9, 0)])))


def lane(count):
    mask = np.repeat(RNG.random(count // 4 + 1) < 0.2, 4)[:count]
    across = np.repeat(RNG.uniform(-1.2, 1.2, count // 12 + 1), 12)[:count] * RNG.choice([0.5, 2])
    scorer = scorer_of(count, mask, across)
    PDMScorer._calculate_lane_keeping(scorer)
    print("lane", count, STEP, scorer._weighted_metrics[WeightedMetricIndex.LANE_KEEPING, 0])
    for i in range(count):
        show(abs(across[i]), mask[i])


def direction(count):
    oncoming = np.repeat(RNG.random(count // 5 + 1) < 0.4, 5)[:count]
    steps = RNG.uniform(0, RNG.choice([0.3, 1.4]), count)
    scorer = scorer_of(count, np.zeros(count + 2000, bool), 0.0)
    scorer._ego_coords[0, :, BBCoordsIndex.CENTER, 0] = np.cumsum(steps)
    scorer._ego_areas = np.zeros((1, count, len(EgoAreaIndex)), bool)
    scorer._ego_areas[0, :, EgoAreaIndex.ONCOMING_TRAFFIC] = oncoming
    PDMScorer._calculate_driving_direction_compliance(scorer)
    print("direction", count, STEP, scorer._multi_metrics[MultiMetricIndex.DRIVING_DIRECTION, 0])
    for i in range(count):
        show(steps[i] if i > 0 and oncoming[i] else 0)


def stage(count, spread):
    x, y, first = RNG.uniform(-50, 50, 2).tolist() + [RNG.random()]
    second = pd.DataFrame({"token": [f"t{i}" for i in range(count)], "start_point_x": x + RNG.normal(0, spread, count),
                           "start_point_y": y + RNG.normal(0, spread, count), "score": RNG.random(count)}).set_index("token")
    aggregator = SceneAggregator("now", "before", second, None)
    weights = aggregator.calculate_pseudo_closed_loop_weights({"endpoint_x": x, "endpoint_y": y}, second)["weight"].to_numpy()
    rows = [{"token": "now", "score": first, "weight": 1.0}, {"token": "before", "score": first, "weight": 1.0}]
    rows += [{"token": f"{side}{i}", "score": second["score"].iloc[i], "weight": weights[i]} for i in range(count) for side in "np"]
    mapping = {("now", "before"): [(f"n{i}", f"p{i}") for i in range(count)]}
    total = run_pdm_score.calculate_individual_mapping_scores(pd.DataFrame(rows), mapping)[0]["score"]
    print("stage", count, format(x, ".17g"), format(y, ".17g"))
    for i in range(count):
        show(second["start_point_x"].iloc[i], second["start_point_y"].iloc[i], second["score"].iloc[i], weights[i])
    show(first, total)


def plan_of(start, accel, turn, rough):
    """Rear-axle poses of 4 s from {x, y, heading, speed} on, at an acceleration and a curvature, and noise."""
    x, y, heading, speed = start
    poses = [(x, y, heading)]
    for _ in range(40):
        step = max(speed, 0.0) * STEP
        x, y, heading = x + step * np.cos(heading), y + step * np.sin(heading), heading + step * turn
        speed += accel * STEP
        poses.append((x + rough * RNG.normal(0, 0.02), y + rough * RNG.normal(0, 0.02), heading))
    return np.array(poses)


def plans(speed, accels, turns, rough):
    """A plan and that of 0.5 s before, each from where ego is then, as both are simulated."""
    simulator = PDMSimulator(TrajectorySampling(num_poses=40, interval_length=STEP))
    vehicle = comfort.get_pacifica_parameters()
    x, y, heading = RNG.uniform(-80, 80), RNG.uniform(-80, 80), RNG.uniform(-3.1, 3.1)
    simulated = []
    print("plan", 40, format(vehicle.wheel_base, ".17g"))
    for k, (accel, turn) in enumerate(zip(accels, turns)):
        poses = plan_of((x, y, heading, speed), accel, turn, rough)
        steer, yaw_rate = np.arctan(turn * vehicle.wheel_base), speed * turn
        ego = EgoState.build_from_rear_axle(StateSE2(*poses[0]), StateVector2D(speed, 0.0),
                                            StateVector2D(accel, speed * yaw_rate), steer, TimePoint(int(5e5 * k)), vehicle,
                                            angular_vel=yaw_rate)
        states = np.zeros((1, 41, StateIndex.size()))
        states[0, :, StateIndex.STATE_SE2] = poses
        made = simulator.simulate_proposals(states, ego)[0]
        print(*(format(float(v), ".17g") for v in (*poses[0], speed, accel, yaw_rate, steer)))
        for row in poses[1:]:
            print(*(format(float(v), ".17g") for v in row))
        for row in made:
            show(np.hypot(row[StateIndex.ACCELERATION_X], row[StateIndex.ACCELERATION_Y]), row[StateIndex.HEADING])
        simulated.append(made)
        x, y, heading = made[5, StateIndex.STATE_SE2]
        speed = made[5, StateIndex.VELOCITY_X]
    table = pd.DataFrame({"ego_simulated_states": simulated, "start_time": [0.0, 0.5]}, index=["before", "now"])
    aggregator = SceneAggregator("now", "before", table, TrajectorySampling(num_poses=40, interval_length=STEP))
    show(aggregator._compute_two_frame_comfort("now", "before"))


for _ in range(6):
    pdm(8)
for count in (9, 15, 41, 60):
    comforts(count, 0.0)
    comforts(count, 0.3)
for near in (0.02, 0.1, 0.3, 1.0):
    extended(36, near)
    extended(15, near)
for count in (41, 80):
    for _ in range(4):
        lane(count)
        direction(count)
for spread in (0.1, 0.3, 1.0, 30.0):
    stage(5, spread)
for case in ((10.0, (0.5, 0.5), (0.01, 0.01), 0), (12.0, (1.0, -1.5), (0.0, 0.0), 0), (7.0, (0.0, 0.1), (0.02, 0.06), 0),
             (6.0, (-2.0, -2.0), (0.03, 0.03), 0), (0.0, (1.0, 1.0), (0.0, 0.0), 0), (0.0, (0.0, 0.0), (0.0, 0.0), 0),
             (15.0, (0.2, 0.3), (-0.01, -0.012), 1), (9.0, (-0.4, -0.4), (0.05, 0.05), 1)):
    plans(*case)
