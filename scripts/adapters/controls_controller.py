#!/usr/bin/env python3
"""Steers logs of comma.ai's controls challenge with the challenge's own controllers, unchanged.

    PYTHONPATH=controls_challenge swerve run logs.json --world tinyphysics \\
      --planner "exec:python3 scripts/adapters/controls_controller.py controllers.pid"

The argument is a module with a class Controller (or MODULE:CLASS). Each drive has an object of its own, asked from row 20
on as the challenge asks it: update(target_lataccel, current_lataccel, state, future_plan), where state has roll_lataccel,
v_ego and a_ego, and future_plan lists of lataccel, roll_lataccel, v_ego and a_ego of the next 49 rows. A class that has
update_batch is one object for all drives of the process: update_batch(sessions, targets, currents, states, plans) returns
a list of actions, in order, and start(session) is called when a drive begins, fork(source, target) for branches, where it
has them. Numbers are NumPy's float64 where there is NumPy, as pandas makes them there.
"""
import collections
import copy
import importlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(1, os.getcwd())
import swerve_planner

State = collections.namedtuple("State", ["roll_lataccel", "v_ego", "a_ego"])
FuturePlan = collections.namedtuple("FuturePlan", ["lataccel", "roll_lataccel", "v_ego", "a_ego"])
PLAN_ROWS = 49
STEER_MAX = 2.0  # to which the simulator clips; a planner may not answer more

number = swerve_planner.numpy.float64 if swerve_planner.numpy is not None else float


def clip(action):
    return min(max(float(action), -STEER_MAX), STEER_MAX)


def query(rows, observation):
    """Target, current lateral acceleration, state and plan of a tick."""
    target, roll, speed, accel = rows[observation.tick]
    ahead = rows[observation.tick + 1 : observation.tick + 1 + PLAN_ROWS]
    plan = FuturePlan(*([row[column] for row in ahead] for column in range(4)))
    state = State(number(roll), number(speed), number(accel))
    return number(target), number(observation.lat_accel_mps2), state, plan


def rows_of(episode):
    if not episode.controls:
        raise RuntimeError("expected a log of the controls challenge (--world tinyphysics), found none")
    return episode.controls


class Alone(swerve_planner.Planner):
    """A controller object for each drive."""

    wants = swerve_planner.CONTROLS
    controller = None  # its class

    def reset(self, episode):
        self.rows = rows_of(episode)
        self.steers = self.controller()

    def act(self, observation):
        target, current, state, plan = query(self.rows, observation)
        return 0.0, clip(self.steers.update(target, current, state, future_plan=plan))

    def __deepcopy__(self, memo):
        twin = type(self)()
        twin.rows, twin.steers = self.rows, copy.deepcopy(self.steers, memo)
        return twin


class Together(swerve_planner.BatchPlanner):
    """One controller object for all."""

    wants = swerve_planner.CONTROLS

    def __init__(self, controller):
        self.steers = controller()
        self.rows = {}

    def reset(self, session, episode):
        self.rows[session] = rows_of(episode)
        if hasattr(self.steers, "start"):
            self.steers.start(session)

    def act(self, observations):
        queries = [query(self.rows[seen.session], seen) for seen in observations]
        actions = self.steers.update_batch([seen.session for seen in observations], *map(list, zip(*queries)))
        return [(0.0, clip(action)) for action in actions]

    def fork(self, source, target):
        self.rows[target] = self.rows[source]
        self.steers.fork(source, target)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: controls_controller.py MODULE[:CLASS]")
    module, _, name = sys.argv[1].partition(":")
    controller = getattr(importlib.import_module(module), name or "Controller")
    if hasattr(controller, "update_batch"):
        swerve_planner.run(Together(controller))
    else:
        swerve_planner.run(type("Alone", (Alone,), {"controller": controller, "name": module[:63]}))


if __name__ == "__main__":
    main()
