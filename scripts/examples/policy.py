"""A planner that is shaped as end-to-end policies are: four cameras of 1280 x 720 come as JPEG, an encoder makes a
token of each patch, a few layers of attention join the cameras with ego's state and route, and a head gives a
trajectory of three seconds. Its weights are random, so it sees and does not understand: what it learns to add to the
route is kept to centimetres. It shows the way from pictures to answers, and what that costs.

swerve run scenarios/ncap.json --world object --rig scripts/examples/rigs/quad.json \
    --planner 'exec:python3 scripts/examples/policy.py'

Needs numpy and Pillow.
"""

import io
import math
import os
import sys

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import swerve_planner  # noqa: E402

CAMERAS = ("front", "left", "right", "rear")
ROWS, COLS, PATCH = 96, 160, 16  # of a picture as the encoder sees it
WIDTH, HEADS, LAYERS, POINTS = 128, 4, 3, 30
REACH_M = 0.05  # that the head may move a point to the side


class Weights:
    """Random, and the same in every process."""

    def __init__(self):
        draw = np.random.default_rng(1)

        def matrix(rows, cols):
            return (draw.standard_normal((rows, cols)) / math.sqrt(rows)).astype(np.float32)

        patches = (ROWS // PATCH) * (COLS // PATCH)
        self.embed = matrix(PATCH * PATCH * 3, WIDTH)
        self.place = matrix(len(CAMERAS) * patches + 1, WIDTH)
        self.state = matrix(4 + 2 * 8, WIDTH)
        self.layers = [
            {name: matrix(*shape) for name, shape in (
                ("query", (WIDTH, WIDTH)), ("key", (WIDTH, WIDTH)), ("value", (WIDTH, WIDTH)),
                ("out", (WIDTH, WIDTH)), ("up", (WIDTH, 4 * WIDTH)), ("down", (4 * WIDTH, WIDTH)))}
            for _ in range(LAYERS)
        ]
        self.head = matrix(WIDTH, POINTS)


WEIGHTS = Weights()


def normal(x):
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)


def attend(layer, x):
    count = len(x)

    def split(name):
        return (normal(x) @ layer[name]).reshape(count, HEADS, -1).transpose(1, 0, 2)

    scores = split("query") @ split("key").transpose(0, 2, 1) / math.sqrt(WIDTH / HEADS)
    share = np.exp(scores - scores.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    x = x + (share @ split("value")).transpose(1, 0, 2).reshape(count, WIDTH) @ layer["out"]
    return x + np.maximum(normal(x) @ layer["up"], 0.0) @ layer["down"]


def patches(jpeg):
    """[patches][PATCH * PATCH * 3] of a JPEG file, which is decoded at a reduced size."""
    with Image.open(io.BytesIO(jpeg)) as image:
        image.draft("RGB", (COLS, ROWS))
        pixels = np.asarray(image.convert("RGB").resize((COLS, ROWS)), dtype=np.float32) / 127.5 - 1.0
    tiles = pixels.reshape(ROWS // PATCH, PATCH, COLS // PATCH, PATCH, 3).transpose(0, 2, 1, 3, 4)
    return tiles.reshape(-1, PATCH * PATCH * 3)


class Policy(swerve_planner.Planner):
    name = "example-policy"
    sensors = [(camera, "jpeg:90") for camera in CAMERAS]
    tracker = swerve_planner.LQR

    def act(self, observation):
        pictures = [patches(bytes(observation.sensors[camera].frame)) for camera in CAMERAS]
        tokens = np.concatenate(pictures) @ WEIGHTS.embed
        x = np.concatenate([tokens, self.state(observation) @ WEIGHTS.state]) + WEIGHTS.place
        for layer in WEIGHTS.layers:
            x = attend(layer, x)
        aside = REACH_M * np.tanh(normal(x)[-1] @ WEIGHTS.head)
        return self.trajectory(observation, aside)

    def state(self, observation):
        route = [value for point in observation.route[:8] for value in (point.x_m / 30, point.y_m / 30)]
        ego = [observation.speed_mps / 15, observation.accel_mps2, observation.yaw_rate_rps, observation.steer_rad]
        return np.array([ego + route], dtype=np.float32)

    def trajectory(self, observation, aside):
        """Along the route towards the limit, with the head's step to the side."""
        route, speed, at = observation.route, observation.speed_mps, 0.0
        cos, sin = math.cos(observation.heading_rad), math.sin(observation.heading_rad)
        points = []
        for i in range(POINTS):
            limit = route[0].speed_limit_mps or 10.0
            speed += max(-0.3, min(0.1, 0.5 * (limit - speed)))
            at += 0.1 * speed
            index = min(int(at / 4.0), len(route) - 2)
            a, b, share = route[index], route[index + 1], at / 4.0 - index
            heading = math.atan2(b.y_m - a.y_m, b.x_m - a.x_m)
            x = a.x_m + share * (b.x_m - a.x_m) - float(aside[i]) * math.sin(heading)
            y = a.y_m + share * (b.y_m - a.y_m) + float(aside[i]) * math.cos(heading)
            points.append(swerve_planner.Point(
                0.1 * (i + 1), observation.x_m + cos * x - sin * y, observation.y_m + sin * x + cos * y,
                observation.heading_rad + heading, speed))
        return points


swerve_planner.run(Policy)
