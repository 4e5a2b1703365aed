#!/usr/bin/env python3
"""Makes nuplan.txt: what nuplan-devkit's own metrics answer to the scenes of its golden JSON files.

usage: PYTHONPATH=NUPLAN_DEVKIT nuplan_vectors.py NUPLAN_DEVKIT > nuplan.txt      (a checkout, with what it imports)

The golden files stand on maps that nuPlan's users have to register for, so a lane stands in for the map: straight on from
ego's first pose or along the expert's way, its limit the 30 mph of the golden speeds. Each scene goes
twice through the devkit's metric classes, unchanged, with the parameters of its configuration:

* with the time steps that the file has: what the devkit's own test expects of the file, to its own 0.01, is then compared;
  stderr says of which files the lane gives what the real map gave. Where it does not, the file's name gets `~`.
* with samples 0.1 s apart, as Swerve's are: the answers that the test compares with worker/score.

Behind them come drives made at random, long enough for the filters.

Lines: `scene NAME SAMPLES AGENTS EXPERT WIDTH`, two lines of X Y of the centre line, EXPERT lines of X Y HEADING, for each sample
X Y HEADING SPEED ALONG ACROSS of ego's centre and for each agent PRESENT X Y HEADING SPEED LENGTH WIDTH; then the answers,
`nan` where the devkit has none (a single sample has no derivatives). Their order is ANSWERS below; scores, then the score of the
whole, then figures behind them. Run again only when the devkit changes; the test needs the text alone.
"""
import copy
import glob
import json
import math
import os
import sys
import types

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/compare"))
from nuplan_metrics import Absent

sys.meta_path.insert(0, Absent())
from nuplan.common.maps.abstract_map_objects import Lane
from nuplan.common.maps.maps_datatypes import SemanticMapLayer
from nuplan.planning.metrics.aggregator.weighted_average_metric_aggregator import WeightedAverageMetricAggregator
from nuplan.planning.metrics.evaluation_metrics.common import (
    drivable_area_compliance, driving_direction_compliance, ego_is_comfortable, ego_is_making_progress, ego_jerk, ego_lane_change,
    ego_lat_acceleration, ego_lon_acceleration, ego_lon_jerk, ego_progress_along_expert_route, ego_yaw_acceleration, ego_yaw_rate,
    no_ego_at_fault_collisions, speed_limit_compliance, time_to_collision_within_bound)
from nuplan.planning.metrics.utils import testing_utils
from shapely.geometry import LineString, Point

LIMIT_MPS = 13.4112
WIDTH_M = 16.0  # the whole road: ego of most files goes aside in it
REACH_M = 200.0
ALONG_EXPERT = {"ego_progress_along_expert_route", "ego_is_making_progress"}
WIDTHS_M = {"drivable_area_compliance": 4.0, "no_ego_at_fault_collision": 4.0, "no_drivable_area_violation": 24.0}
DRIVES, DRIVE_SAMPLES, DRIVE_AGENTS = 12, 41, 2
OTHERS = ("planner_", "ego_expert_", "ego_lane_change", "ego_mean_speed", "ego_lat_jerk", "ego_acceleration")
PRODUCT = ["no_ego_at_fault_collisions", "drivable_area_compliance", "ego_is_making_progress", "driving_direction_compliance"]
WEIGHTS = {"ego_progress_along_expert_route": 5.0, "time_to_collision_within_bound": 5.0, "speed_limit_compliance": 4.0,
           "ego_is_comfortable": 2.0, "default": 1.0}
SCORES = PRODUCT + ["ego_progress_along_expert_route", "time_to_collision_within_bound", "speed_limit_compliance",
                    "ego_is_comfortable"]
ANSWERS = SCORES + ["score", "min_ttc_s", "contacts", "first_contact", "expected_m", "progress_m", "against_m", "lon_accel_min",
                    "lon_accel_max", "lat_accel_max", "lon_jerk_max", "jerk_max", "yaw_rate_max", "yaw_accel_max"]


class StandIn:
    """A lane, and the roadblock that it is all of."""

    id = "lane"
    speed_limit_mps = LIMIT_MPS
    outgoing_edges, incoming_edges = [], []

    def __init__(self, points, width_m):
        self.points, self.width_m = points, width_m
        self.baseline_path = types.SimpleNamespace(linestring=LineString(points))
        self.polygon = self.baseline_path.linestring.buffer(width_m / 2, cap_style=2, join_style=2, mitre_limit=10)

    def contains_point(self, point):
        return self.polygon.contains(Point(point.x, point.y))

    def get_roadblock_id(self):
        return "block"


Lane.register(StandIn)


class Map:
    def __init__(self, lane):
        self.lane = lane

    def get_all_map_objects(self, point, layer):
        return [self.lane] if layer == SemanticMapLayer.LANE and self.lane.contains_point(point) else []

    def get_one_map_object(self, point, layer):
        return next(iter(self.get_all_map_objects(point, layer)), None)

    def is_in_layer(self, point, layer):
        return layer == SemanticMapLayer.DRIVABLE_AREA and self.lane.polygon.intersects(Point(point.x, point.y))

    def get_distance_to_nearest_map_object(self, point, layer):
        return "lane", self.lane.polygon.distance(Point(point.x, point.y))

    def get_map_object(self, object_id, layer):
        return self.lane


def metrics(file=""):
    """The devkit's metrics by name, in the order in which they need one another; where `file` is one whose test has parameters
    of its own, with these."""
    tested_yaw = 5.0 if file == "ego_yaw_rate" else 0.95
    tested_against = 15 if file == "ego_slightly_drives_backward" else 6
    lane = ego_lane_change.EgoLaneChangeStatistics("ego_lane_change", "", 0.3)
    fault = no_ego_at_fault_collisions.EgoAtFaultCollisionStatistics("no_ego_at_fault_collisions", "", lane, 0, 0, 1)
    along = ego_progress_along_expert_route.EgoProgressAlongExpertRouteStatistics("ego_progress_along_expert_route", "", 2)
    parts = {
        "ego_jerk": ego_jerk.EgoJerkStatistics("ego_jerk", "", 8.37),
        "ego_lat_acceleration": ego_lat_acceleration.EgoLatAccelerationStatistics("ego_lat_acceleration", "", 4.89),
        "ego_lon_acceleration": ego_lon_acceleration.EgoLonAccelerationStatistics("ego_lon_acceleration", "", -4.05, 2.40),
        "ego_lon_jerk": ego_lon_jerk.EgoLonJerkStatistics("ego_lon_jerk", "", 4.13),
        "ego_yaw_acceleration": ego_yaw_acceleration.EgoYawAccelerationStatistics("ego_yaw_acceleration", "", 1.93),
        "ego_yaw_rate": ego_yaw_rate.EgoYawRateStatistics("ego_yaw_rate", "", tested_yaw)}
    by_parameter = {f"{name}_metric": metric for name, metric in parts.items()}
    listed = [lane, fault, along, *parts.values(),
              ego_is_making_progress.EgoIsMakingProgressStatistics("ego_is_making_progress", "", along, 0.2),
              ego_is_comfortable.EgoIsComfortableStatistics("ego_is_comfortable", "", **by_parameter),
              drivable_area_compliance.DrivableAreaComplianceStatistics("drivable_area_compliance", "", lane, 0.3),
              driving_direction_compliance.DrivingDirectionComplianceStatistics("driving_direction_compliance", "", lane, 2,
                                                                                tested_against, 1),
              speed_limit_compliance.SpeedLimitComplianceStatistics("speed_limit_compliance", "", lane, 1, 2.23),
              time_to_collision_within_bound.TimeToCollisionStatistics("time_to_collision_within_bound", "", lane, fault, 0.1, 3.0,
                                                                       0.95)]
    return {metric.name: metric for metric in listed}


def answer(scene, lane, file=""):
    """Answers of each metric, with the metrics themselves; none where the devkit refuses the scene. Its comfort fails silently
    where its parts were not computed."""
    testing_utils.get_maps_api = lambda *ignored: Map(lane)
    history, scenario = testing_utils.build_mock_history_scenario_test(scene)
    found, all_metrics = {}, metrics(file)
    for name, metric in all_metrics.items():
        try:
            found[name] = metric.compute(history, scenario)[0]
        except (ValueError, IndexError, AssertionError):
            pass
    if "ego_yaw_acceleration" not in found or "ego_jerk" not in found:
        del found["ego_is_comfortable"]
    return history, scenario, found, all_metrics


def lane_of(folder, name, scene):
    """Straight on from ego's first pose; in scenes about an expert's progress along it, bent where it bends."""
    pose, states = scene["ego"]["pose"], scene["expert_ego_states"]
    heading = pose[2]
    ahead = lambda at, by: (at[0] + by * math.cos(heading), at[1] + by * math.sin(heading))
    if folder in ALONG_EXPERT:
        first, last = states[0]["pose"], states[-1]["pose"]
        heading = math.atan2(last[1] - first[1], last[0] - first[0])
    return StandIn([ahead(pose, -REACH_M), ahead(pose, REACH_M)], WIDTHS_M.get(name, WIDTHS_M.get(folder, WIDTH_M)))


def moved(scene):
    """The scene about ego's first position, so that figures keep their digits; an expert where the file has none."""
    scene = copy.deepcopy(scene)
    x, y = scene["ego"]["pose"][:2]
    states = [scene["ego"], *scene.get("ego_future_states", []), *scene.get("expert_ego_states", [])]
    worlds = [scene["world"], *scene.get("world_future_states", [])]
    poses = [state["pose"] for state in states]
    poses += [thing["box"]["pose"] for world in worlds for kind in ("vehicles", "bicycles", "pedestrians")
              for thing in world.get(kind, [])]
    for pose in poses:
        pose[0], pose[1] = pose[0] - x, pose[1] - y
    if not scene.get("expert_ego_states"):
        scene["expert_ego_states"] = copy.deepcopy([scene["ego"], *scene.get("ego_future_states", [])])
    return scene


def at_our_rate(scene):
    scene = copy.deepcopy(scene)
    for states in ([scene["ego"], *scene.get("ego_future_states", [])], scene["expert_ego_states"]):
        for index, state in enumerate(states):
            state["time_us"] = 1_000_000 + 100_000 * index
    return scene


def as_golden(name, scene, found):
    """Whether the devkit says on the stand-in what its own test expects of the file; none where nothing here is that metric."""
    folder = {"no_ego_at_fault_collision": "no_ego_at_fault_collisions", "drivable_area_compliance": "drivable_area_compliance"}
    metric = found.get(folder.get(name, name))
    if metric is None:
        return None
    expected = scene["expected"][0] if isinstance(scene["expected"], list) else scene["expected"]
    pairs = list(zip(expected["statistics"], metric.statistics))
    return len(expected["statistics"]) == len(metric.statistics) and all(
        np.isclose(value, said.value, atol=1e-2) for (_, value), said in pairs)


def score_of(found):
    """The weighted score, by the devkit's aggregator, where all of its parts are there."""
    if any(name not in found for name in SCORES):
        return math.nan
    aggregator = WeightedAverageMetricAggregator.__new__(WeightedAverageMetricAggregator)
    aggregator._metric_weights, aggregator._multiple_metrics = WEIGHTS, PRODUCT
    columns = {"scene": {name: found[name].metric_score for name in SCORES}}
    aggregator._compute_scenario_score(columns)
    return columns["scene"]["score"]


def figures(found, all_metrics, times):
    def said(name, index):
        return found[name].statistics[index].value if name in found else math.nan

    def largest(name, sign=None):
        if name not in found:
            return math.nan
        values = np.array(found[name].time_series.values)
        return float(np.abs(values).max() if sign is None else (sign * values).max() * sign)

    contacts = all_metrics["no_ego_at_fault_collisions"].all_collisions
    result = {name: found[name].metric_score if name in found else math.nan for name in SCORES}
    result |= {
        "score": score_of(found), "min_ttc_s": said("time_to_collision_within_bound", 0),
        "contacts": sum(len(at.collisions_id_data) for at in contacts),
        "first_contact": times.index(contacts[0].timestamp) if contacts else math.nan,
        "expected_m": said("ego_progress_along_expert_route", 0), "progress_m": said("ego_progress_along_expert_route", 1),
        "against_m": abs(said("driving_direction_compliance", 1)), "lon_accel_min": largest("ego_lon_acceleration", -1),
        "lon_accel_max": largest("ego_lon_acceleration", 1), "lat_accel_max": largest("ego_lat_acceleration"),
        "lon_jerk_max": largest("ego_lon_jerk"), "jerk_max": largest("ego_jerk"), "yaw_rate_max": largest("ego_yaw_rate"),
        "yaw_accel_max": largest("ego_yaw_acceleration")}
    return [result[name] for name in ANSWERS]


def drive(rng):
    """A drive made at random: ego on a bicycle of changing acceleration and steering, agents ahead of it, an expert that goes
    straight on; positions of the rear axle."""
    x, y, heading, speed, states, worlds = 0.0, rng.uniform(-1, 1), rng.uniform(-0.02, 0.02), rng.uniform(4, 13), [], []
    accel, wheel, rough = rng.uniform(-1, 1.5), 0.0, rng.choice([0.3, 2.0])
    agents = [[rng.uniform(8, 45), rng.uniform(-3, 3), rng.uniform(-0.1, 0.1), rng.choice([0, rng.uniform(0, 12)])]
              for _ in range(DRIVE_AGENTS)]
    for index in range(DRIVE_SAMPLES):
        time_us = 1_000_000 + 100_000 * index
        states.append({"time_us": time_us, "pose": [x, y, heading], "velocity": [speed, 0.0],
                       "acceleration": [accel, speed * speed * math.tan(wheel) / 3.089]})
        worlds.append({"vehicles": [{"id": number, "speed": agent[3], "box": {"pose": agent[:3], "size": [1.9, 4.6]}}
                                    for number, agent in enumerate(agents)]})
        accel = min(max(accel + rough * rng.normal(0, 0.3), -4), 2.5)
        wheel = min(max(0.8 * wheel + rough * rng.normal(0, 0.004) - 0.02 * (y / 8 + heading), -0.1), 0.1)
        speed = max(0.0, speed + 0.1 * accel)
        x, y = x + 0.1 * speed * math.cos(heading), y + 0.1 * speed * math.sin(heading)
        heading += 0.1 * speed * math.tan(wheel) / 3.089
        for agent in agents:
            agent[0] += 0.1 * agent[3] * math.cos(agent[2])
            agent[1] += 0.1 * agent[3] * math.sin(agent[2])
    expert = [dict(state, pose=[rng_x, 0.0, 0.0]) for state, rng_x in zip(states, np.linspace(0, rng.uniform(15, 60), DRIVE_SAMPLES))]
    return {"ego": states[0], "ego_future_states": states[1:], "world": worlds[0], "world_future_states": worlds[1:],
            "expert_ego_states": expert, "map": {"area": "none"}}


def show(*values):
    print(*(format(float(value), ".12g") for value in values))


def write(name, lane, history, scenario, answers):
    egos = [sample.ego_state for sample in history.data]
    expert = scenario.get_expert_ego_trajectory()
    tokens = sorted({thing.token for sample in history.data for thing in sample.observation.tracked_objects})
    print("scene", name, len(egos), len(tokens), len(expert), lane.width_m)
    for point in lane.points:
        show(*point)
    for state in expert:
        show(state.center.x, state.center.y, state.center.heading)
    for sample, ego in zip(history.data, egos):
        car = ego.dynamic_car_state
        show(ego.center.x, ego.center.y, ego.center.heading, car.speed, car.center_acceleration_2d.x, car.center_acceleration_2d.y)
        there = {thing.token: thing for thing in sample.observation.tracked_objects}
        for token in tokens:
            thing = there.get(token)
            show(*([0] * 7 if thing is None else [1, *thing.center, thing.velocity.x, thing.box.length, thing.box.width]))
    show(*answers)


def main():
    root = os.path.join(sys.argv[1], "nuplan/planning/metrics/evaluation_metrics/common/test/json")
    for path in sorted(glob.glob(f"{root}/*/*.json")):
        folder, name = os.path.basename(os.path.dirname(path)), os.path.basename(path)[:-len(".json")]
        if folder.startswith(OTHERS):
            print(f"{name}: of open loop, or of nothing that the closed-loop score has", file=sys.stderr)
            continue
        with open(path) as file:
            scene = moved(json.load(file))
        lane = lane_of(folder, name, scene)
        _, _, found, _ = answer(scene, lane, name)
        same = as_golden(folder, scene, found)
        print(f"{folder}/{name}: {'as its test expects' if same else 'otherwise than its test expects'}", file=sys.stderr)
        history, scenario, found, all_metrics = answer(at_our_rate(scene), lane)
        times = [sample.ego_state.time_point.time_us for sample in history.data]
        write(folder + "/" + name + ("" if same else "~"), lane, history, scenario, figures(found, all_metrics, times))
    rng = np.random.default_rng(1)
    lane = StandIn([(-REACH_M, 0.0), (REACH_M, 0.0)], WIDTH_M)
    for number in range(DRIVES):
        history, scenario, found, all_metrics = answer(drive(rng), lane)
        times = [sample.ego_state.time_point.time_us for sample in history.data]
        write(f"drive/{number}", lane, history, scenario, figures(found, all_metrics, times))


if __name__ == "__main__":
    main()
