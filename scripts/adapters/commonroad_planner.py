#!/usr/bin/env python3
"""Drives Swerve with CommonRoad's reactive planner (commonroad-reactive-planner, BSD, from PyPI; Python 3.9 to 3.11).

    swerve run SUITE --world object --planner-start-ms 120000 --planner-deadline-ms 20000 \\
      --planner "exec:python3 scripts/adapters/commonroad_planner.py KEY=VALUE.."

KEY=VALUE set numbers of the planner's configuration, such as planning.replanning_frequency=3 or sampling.d_max=2.

The planner gets what its own examples give it: a CommonRoad scenario with the lanelets of the map and the objects as
dynamic obstacles that go on at their velocity, ego's state at its rear axle, and a reference path along the centres of
the route. It plans anew every planning.replanning_frequency ticks; its trajectory is followed by nuPlan's LQR tracker
and moves Swerve's car. Where it finds no trajectory ego brakes with 3 m/s2 and keeps its wheels. It knows no traffic
lights. `seen+exec:..` leaves of the objects what sensors see.
"""
import logging
import math
import os
import sys

import numpy as np
from commonroad.geometry.shape import Rectangle
from commonroad.prediction.prediction import TrajectoryPrediction
from commonroad.scenario.lanelet import Lanelet, LaneletNetwork
from commonroad.scenario.obstacle import DynamicObstacle, ObstacleType
from commonroad.scenario.scenario import Scenario
from commonroad.scenario.state import CustomState, InitialState
from commonroad.scenario.trajectory import Trajectory
from commonroad_dc.boundary.boundary import create_road_boundary_obstacle
from commonroad_rp.reactive_planner import ReactivePlanner
from commonroad_rp.state import ReactivePlannerState
from commonroad_rp.utility.config import ReactivePlannerConfiguration
from commonroad_rp.utility.utils_coordinate_system import create_coordinate_system

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import swerve_planner

KINDS = {"truck": ObstacleType.TRUCK, "bus": ObstacleType.BUS, "motorcycle": ObstacleType.MOTORCYCLE,
         "cyclist": ObstacleType.BICYCLE, "pedestrian": ObstacleType.PEDESTRIAN}
BEFORE_M, BEYOND_M, BRAKE_MPS2 = 30.0, 250.0, 3.0
FIRST_OBSTACLE = 1_000_000  # ids of lanelets are below
UNPOSTED_MPS = 13.9


def lanelets(lanes):
    """The driving lanes as a network: lane i is lanelet i + 1."""
    driving = {lane.index for lane in lanes if lane.kind == "driving"}
    network = LaneletNetwork()
    for lane in lanes:
        if lane.index not in driving:
            continue
        beside = {}
        for side, opposite in (("left", swerve_planner.LEFT_OPPOSITE), ("right", swerve_planner.RIGHT_OPPOSITE)):
            if getattr(lane, side) in driving:
                beside[f"adjacent_{side}"] = getattr(lane, side) + 1
                beside[f"adjacent_{side}_same_direction"] = not lane.flags & opposite
        network.add_lanelet(Lanelet(
            np.array(lane.left_border), np.array(lane.centre), np.array(lane.right_border), lane.index + 1,
            predecessor=[i + 1 for i in lane.predecessors if i in driving],
            successor=[i + 1 for i in lane.successors if i in driving], **beside))
    return network


def reference_path(lanes, route):
    """The centres of the route, with a way before its first lane and on behind its last."""
    by_index = {lane.index: lane for lane in lanes}
    chosen = list(route)
    beyond_m = 0.0
    while beyond_m < BEYOND_M and by_index[chosen[-1]].successors:
        after = by_index[chosen[-1]].successors[0]
        if after in chosen:
            break
        chosen.append(after)
        centre = by_index[after].centre
        beyond_m += sum(math.dist(a, b) for a, b in zip(centre, centre[1:]))
    points = []
    for at, lane in enumerate(chosen):
        if at > 0 and lane not in by_index[chosen[at - 1]].successors:
            points = points[:len(points) // 2]  # a change of lanes: over the second half of the one before
        for point in by_index[lane].centre:
            if not points or math.dist(points[-1], point) > 0.5:
                points.append(tuple(point))
    first, last = np.array(points[0]), np.array(points[-1])
    back = (first - points[1]) / math.dist(points[0], points[1])
    on = (last - points[-2]) / math.dist(points[-1], points[-2])
    return np.array([first + BEFORE_M * back, *points, last + BEYOND_M * on])


def obstacle(one, steps, dt):
    """An object as a dynamic obstacle that goes on as it does."""
    shape = Rectangle(one.length_m, one.width_m)
    speed = math.hypot(one.vx_mps, one.vy_mps)

    def state(make, k):
        return make(time_step=k, orientation=one.heading_rad, velocity=speed,
                    position=np.array([one.x_m + k * dt * one.vx_mps, one.y_m + k * dt * one.vy_mps]))
    states = [state(CustomState, k) for k in range(1, steps + 1)]
    return DynamicObstacle(FIRST_OBSTACLE + one.id, KINDS.get(one.kind, ObstacleType.CAR), shape, state(InitialState, 0),
                           TrajectoryPrediction(Trajectory(1, states), shape))


class Adapter(swerve_planner.Planner):
    wants = swerve_planner.OBJECTS | swerve_planner.MAP
    tracker = swerve_planner.LQR
    name = "commonroad_reactive"

    def reset(self, episode):
        config = ReactivePlannerConfiguration()
        for key, value in settings:
            part, _, name = key.partition(".")
            if not hasattr(getattr(config, part, None), name):
                raise ValueError(f"{key}: the planner's configuration has no such number")
            setattr(getattr(config, part), name, type(getattr(getattr(config, part), name))(value))
        vehicle = config.vehicle
        vehicle.length, vehicle.width = episode.ego_length_m, episode.ego_width_m
        vehicle.wb_front_axle = vehicle.wb_rear_axle = episode.ego_wheelbase_m / 2
        vehicle.wheelbase = episode.ego_wheelbase_m
        vehicle.kappa_max = math.tan(vehicle.delta_max) / vehicle.wheelbase
        config.debug.logging_level, config.debug.multiproc = "CRITICAL", False
        self.network = lanelets(episode.map.lanes)
        config.scenario = self.scenario([])
        _, self.boundary = create_road_boundary_obstacle(config.scenario)
        self.planner = ReactivePlanner(config)
        path = reference_path(episode.map.lanes, episode.map.route)
        self.planner.set_reference_path(coordinate_system=create_coordinate_system(path))
        self.config = config
        self.planned = None  # (tick, points)

    def scenario(self, obstacles):
        scenario = Scenario(dt=0.1)
        scenario.add_objects(self.network)
        scenario.add_objects(obstacles)
        return scenario

    def act(self, observation):
        due = self.planned is None or observation.tick - self.planned[0] >= self.config.planning.replanning_frequency
        if due:
            points = self.plan(observation)
            self.planned = (observation.tick, points) if points else None
        if self.planned is None:
            return (-BRAKE_MPS2, observation.steer_rad)
        since_s = 0.1 * (observation.tick - self.planned[0])
        return [swerve_planner.Point(p.t_s - since_s, p.x_m, p.y_m, p.heading_rad, p.speed_mps)
                for p in self.planned[1] if p.t_s > since_s - 1e-9]

    def plan(self, observation):
        """Points of the planner's trajectory from now on; None: it finds none."""
        planner, steps = self.planner, self.config.planning.time_steps_computation
        half = self.config.vehicle.wb_rear_axle
        c, s = math.cos(observation.heading_rad), math.sin(observation.heading_rad)
        speed = max(observation.speed_mps, 0.01)
        ego = ReactivePlannerState(
            time_step=0, position=np.array([observation.x_m - half * c, observation.y_m - half * s]),
            steering_angle=observation.steer_rad, velocity=speed, orientation=observation.heading_rad,
            acceleration=observation.accel_mps2, yaw_rate=observation.yaw_rate_rps)
        obstacles = [obstacle(one, steps, 0.1) for one in observation.objects]
        try:
            planner.set_collision_checker(scenario=self.scenario(obstacles), road_boundary_obstacle=self.boundary)
            planner.reset(initial_state_cart=ego, collision_checker=planner.collision_checker,
                          coordinate_system=planner.coordinate_system)
            posted = observation.route[0].speed_limit_mps if observation.route else 0.0
            planner.set_desired_velocity(desired_velocity=posted or UNPOSTED_MPS, current_speed=speed)
            found = planner.plan()
        except ValueError as error:  # ego is off its reference path
            print(f"tick {observation.tick}: {error}", file=sys.stderr)
            return None
        if found is None:
            return None
        centres = [ReactivePlannerState.shift_state_to_center(state, half) for state in found[0].state_list]
        return [swerve_planner.Point(0.1 * k, *map(float, state.position), float(state.orientation), float(state.velocity))
                for k, state in enumerate(centres)][:swerve_planner.TRAJECTORY_POINTS]


if any("=" not in word for word in sys.argv[1:]):
    sys.exit("usage: commonroad_planner.py KEY=VALUE..")
settings = [(key, float(value)) for key, _, value in (word.partition("=") for word in sys.argv[1:])]
logging.disable(logging.ERROR)
swerve_planner.run(Adapter)
