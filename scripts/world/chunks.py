"""A world that makes pictures of any rig in chunks, by arithmetic alone:

    swerve world check "exec:python3 scripts/world/chunks.py 8" --rig scripts/examples/rigs/wide.json
    swerve run smoke --world "exec:python3 scripts/world/chunks.py 12 9" --rig scripts/examples/rigs/wide.json --planner ..

Each frame is the sky over a striped ground that goes by as ego drives, with a grey box for each agent ahead. The stripes
are bent by a number that the state carries from chunk to chunk, so that a frame depends on the rollout's whole past, as
that of a world model does.

Usage: chunks.py FRAMES [FIRST_FRAMES [STATES_MAX]]
"""

import math
import sys

import numpy

import swerve_world

HEIGHT_M = 1.5  # of the cameras above the ground
FAR_M = 60.0


class View:
    """A camera: for each row below the horizon how far ahead its ground is, and its sky."""

    def __init__(self, camera):
        self.id, self.height, self.width = camera["id"], camera["height"], camera["width"]
        lens, pose = camera["lens"], camera["pose"]
        self.focal, self.yaw = lens.get("fx", self.width / 2), pose.get("yaw_rad", 0.0)
        self.horizon = self.height // 2
        rows = numpy.arange(self.horizon, self.height) - self.horizon + 1.0
        self.ahead_m = numpy.minimum(HEIGHT_M * self.focal / rows, FAR_M).astype(numpy.float32)
        self.sky = numpy.linspace(150, 220, self.horizon).astype(numpy.uint8)
        cols = numpy.arange(self.width) - self.width / 2
        self.texture = (40 * numpy.abs(numpy.sin(cols * 24.0 / self.width))).astype(numpy.uint8)


def draw(view, pose, bodies, bend, out):
    """One frame into out[height][width][3]."""
    heading = pose["heading_rad"] + view.yaw
    along = pose["x_m"] * math.cos(heading) + pose["y_m"] * math.sin(heading)
    stripes = (60 + 50 * numpy.sin((view.ahead_m + along) * 1.3 + bend)).astype(numpy.uint8)
    out[: view.horizon] = view.sky[:, None, None]
    out[view.horizon :] = (stripes[:, None] + view.texture)[:, :, None]
    for body in bodies:
        dx, dy = body["x_m"] - pose["x_m"], body["y_m"] - pose["y_m"]
        ahead = dx * math.cos(heading) + dy * math.sin(heading)
        left = dy * math.cos(heading) - dx * math.sin(heading)
        if not body["present"] or not 1.0 < ahead < FAR_M:
            continue
        scale = view.focal / ahead
        middle, bottom = view.width / 2 - left * scale, view.horizon + HEIGHT_M * scale
        cols = slice(max(int(middle - body["width_m"] * scale / 2), 0), max(int(middle + body["width_m"] * scale / 2), 0))
        out[max(int(bottom - body["height_m"] * scale), 0) : int(bottom), cols] = 128 + 8 * (int(body["kind"]) % 4)


class Chunks(swerve_world.World):
    name, version, form = "chunks", "1.0", swerve_world.RIG
    flags = swerve_world.DETERMINISTIC | swerve_world.CAMERAS
    rate_hz = 30

    def __init__(self, frames, first=0, states=0):
        self.chunk_frames, self.first_frames, self.states_max = frames, first, states

    def open(self, setup):
        cameras = setup.rig["cameras"] if setup.rig else []
        for camera in cameras:
            model = camera["lens"].get("model", "pinhole")
            if model != "pinhole":
                raise swerve_world.Refused(f"camera {camera['id']}: expected a pinhole lens, found {model}")
        self.views = [View(camera) for camera in cameras]

    def begin(self, chunk):
        return sum(int(frames[0].astype(numpy.uint32).sum()) for frames in chunk.frames.values()) % 997

    def make(self, states, chunks):
        return [self.continued(state, chunk) for state, chunk in zip(states, chunks)]

    def continued(self, state, chunk):
        for i in range(chunk.frame_count):
            state = (state * 31 + int(chunk.poses[i]["speed_mps"] * 1000) + chunk.seed) % 997
            for view in self.views:
                draw(view, chunk.poses[i], chunk.bodies[i], state / 997 * 0.2, chunk.frames[view.id][i])
        return state


if __name__ == "__main__":
    swerve_world.run(Chunks(*map(int, sys.argv[1:])))
