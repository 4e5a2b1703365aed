#!/usr/bin/env python3
"""Makes tracker_lqr.txt: what nuplan-devkit's LQRTracker answers to trajectories that were really driven.

usage: tracker_vectors.py SWERVE STORE > tracker_lqr.txt      with nuplan-devkit on PYTHONPATH

References are pieces of the drives in STORE (`swerve run scenarios/longtail.json --world object`), some every 0.1 s,
some every 0.5 s; ego is where such a drive was, put aside, turned, and at another speed. Run again only when the
cases change: the devkit needs numpy, scipy and a dozen packages more, the test needs the text alone.

A line is `case WHEELBASE X Y HEADING SPEED STEER COUNT ACCEL STEER_RATE`, then COUNT lines `T X Y HEADING SPEED`.
Poses are those of the box's centre; ACCEL and STEER_RATE are the devkit's.
"""
import json
import math
import random
import subprocess
import sys

import numpy as np
from nuplan.common.actor_state.ego_state import EgoState
from nuplan.common.actor_state.state_representation import StateSE2, StateVector2D, TimePoint
from nuplan.common.actor_state.vehicle_parameters import VehicleParameters
from nuplan.planning.simulation.controller.tracker.lqr import LQRTracker
from nuplan.planning.simulation.simulation_time_controller.simulation_iteration import SimulationIteration
from nuplan.planning.simulation.trajectory.interpolated_trajectory import InterpolatedTrajectory

# nuplan/planning/script/config/simulation/ego_controller/tracker/lqr_tracker.yaml
PARAMETERS = dict(q_longitudinal=[10.0], r_longitudinal=[1.0], q_lateral=[1.0, 10.0, 0.0], r_lateral=[1.0],
                  discretization_time=0.1, tracking_horizon=10, jerk_penalty=1e-4, curvature_rate_penalty=1e-2,
                  stopping_proportional_gain=0.5, stopping_velocity=0.2)
WHEELBASE_M = 2.8


def vehicle():
    return VehicleParameters(width=1.9, front_length=3.7, rear_length=0.9, cog_position_from_rear_axle=1.4,
                             wheel_base=WHEELBASE_M, vehicle_name="swerve", vehicle_type="car", height=1.5)


def state(t_s, x, y, heading, speed, steer):
    """An EgoState of a pose of the box's centre, half a wheelbase before the rear axle."""
    rear = StateSE2(x - WHEELBASE_M / 2 * math.cos(heading), y - WHEELBASE_M / 2 * math.sin(heading), heading)
    return EgoState.build_from_rear_axle(rear, StateVector2D(speed, 0.0), StateVector2D(0.0, 0.0), steer,
                                         TimePoint(int(round(t_s * 1e6))), vehicle())


def drive(swerve, store, outcome):
    lines = subprocess.run([swerve, "show", str(outcome), "--store", store, "--trace"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines if '"tick"' in line]


def main():
    swerve, store = sys.argv[1:]
    draw = random.Random(7)
    tracker = LQRTracker(**PARAMETERS, vehicle=vehicle())
    made = 0
    outcome = 0
    while made < 36:
        outcome += 19
        ticks = drive(swerve, store, outcome)
        step = draw.choice((1, 5))
        first = draw.randrange(0, max(1, len(ticks) // 2))
        piece = ticks[first : first + 81 : step][:80]
        if len(piece) < (10 if step == 1 else 4):
            continue
        points = [(round(0.1 * step * i, 1), tick["x_m"], tick["y_m"], tick["heading_rad"], tick["speed_mps"])
                  for i, tick in enumerate(piece)]
        late = made % 3 == 2  # begins later than now: where ego is comes first
        offset = 0.0 if made % 5 == 4 else draw.uniform(-1.5, 1.5)
        heading = points[0][3] + draw.uniform(-0.3, 0.3)
        ego = (points[0][1] - offset * math.sin(heading), points[0][2] + offset * math.cos(heading), heading,
               0.1 if made % 12 == 11 else max(0.0, points[0][4] + draw.uniform(-3, 3)), draw.uniform(-0.2, 0.2))
        points = points[1:] if late else points
        states = [state(*point, 0.0) for point in points]
        now = state(0.0, *ego)
        trajectory = InterpolatedTrajectory(([now] if late else []) + states)
        answer = tracker.track_trajectory(SimulationIteration(TimePoint(0), 0), SimulationIteration(TimePoint(100000), 1),
                                          now, trajectory)
        command = (answer.rear_axle_acceleration_2d.x, answer.tire_steering_rate)
        print("case", *(f"{value:.17g}" for value in (WHEELBASE_M,) + ego), len(points),
              *(f"{value:.17g}" for value in command))
        for point in points:
            print(*(f"{value:.17g}" for value in point))
        made += 1


main()
