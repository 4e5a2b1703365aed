#!/usr/bin/env python3
"""Makes r157_jrc.txt: what the driver models of UN R157 do in cut-ins, by their authors' own program.

usage: r157_vectors.py JRC-FSM > r157_jrc.txt      JRC-FSM: a checkout of github.com/ec-jrc/JRC-FSM (needs numpy)

Its functions run unchanged at its own 10 Hz: CC_human_driver with the distance at which it reacts as the program
computes it for a lane of 3.5 m, and FSM. Ego drives at constant speed until the model reacts; another car of the same
size comes from the lane beside at constant speeds. Run again only when the cases change.

A line is `case MODEL COUNT` (0: careful driver, 1: FSM), then COUNT lines `EGO_X EGO_SPEED X Y VX VY ACCEL`: both
boxes' centres, and what the model does with ego in the step from there. A case ends where the model first holds the
situation safe again, where the boxes lie side by side, and for the careful driver where ego comes no nearer: what the
program does then is no part of the regulation.
"""
import sys
import types

import numpy as np

LENGTH_M, WIDTH_M, LANE_M, FREQ = 4.3, 1.9, 3.5, 10
# km/h of ego and of the other, its lateral speed in m/s, the gap between the boxes in m.
CASES = [(v, v - less, lateral, gap) for v in (50, 90, 130) for less in (20, 40) for lateral in (0.7, 1.5)
         for gap in (16, 31)]


def load(path):
    """The program's modules; numba is there for speed alone."""
    numba = types.ModuleType("numba")
    numba.njit = lambda function: function
    sys.modules["numba"] = numba
    sys.path.insert(0, path)
    from utility import models, movement
    return models, movement


def drive(models, movement, model, case, steps=70):
    ego_kph, other_kph, lateral, gap = case
    other = movement.create_profile_cutting_in(np.array([gap + LENGTH_M, LANE_M]), other_kph / 3.6, -lateral, steps, FREQ)
    ego = movement.create_profile_cutting_in(np.array([0.0, 0.0]), ego_kph / 3.6, 0, steps, FREQ)
    for vehicle in (ego, other):
        vehicle.length, vehicle.width = LENGTH_M, WIDTH_M
    ego.dist_to_react = models.CC_calc_dist_to_react(LANE_M, WIDTH_M, (LANE_M - WIDTH_M) / 2)
    check = models.FSM_check_safety if model else models.CC_check_safety_lane_info
    react = models.FSM_react if model else models.CC_react
    rows = []
    for i in range(steps - 1):
        safe = check(ego, other, ego.speed_profile_long[i], 0.0, FREQ, i)
        gap_m = other.pos_profile_long[i] - ego.pos_profile_long[i] - LENGTH_M
        opening = ego.speed_profile_long[i] <= other.speed_profile_long[i]
        if (safe and not ego.safe) or gap_m <= 0 or (opening and not model):
            break
        movement.control(ego, other, FREQ, check, react, i)
        v, after = ego.speed_profile_long[i:i + 2]
        rows.append((ego.pos_profile_long[i], v, other.pos_profile_long[i], other.pos_profile_lat[i],
                     other.speed_profile_long[i], other.speed_profile_lat[i], (after - v) * FREQ))
    return rows, not ego.safe


def main():
    models, movement = load(sys.argv[1])
    for model in (0, 1):
        for case in CASES:
            rows, reacted = drive(models, movement, model, case)
            if not reacted or len(rows) < 10:
                continue
            print(f"case {model} {len(rows)}")
            for row in rows:
                print(" ".join(f"{value:.9g}" for value in row))


if __name__ == "__main__":
    main()
