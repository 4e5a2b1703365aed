#!/usr/bin/env python3
"""Shows one policy the same scene twice, through the fake loop of carla-driver-interface and through Swerve.

Usage: egodriver_scene.py [--binary SWERVE] [--ticks N]
The scene is the fake loop's: a straight road, ego in the middle of a lane, one level camera. A recorder behind the
package's own server writes down all that a policy is given, and answers as the package's route follower does. Compared
are the declared camera, times, poses, routes, what the pictures show of the road, and the two closed loops. Exit 1: a
bound is passed. Installs the package from PyPI into build-test/egodriver once.
"""
import argparse
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import egodriver

try:
    import numpy as np
    from PIL import Image
    from carla_driver_interface import testing
    from carla_driver_interface.geometry import Pose
    from carla_driver_interface.policies import RouteFollowerPolicy
except ImportError:  # begins again in the environment that has them
    program = egodriver.serve_program().parent / "python3"
    os.execv(program, [str(program), *sys.argv])

WHEELBASE_M, HORIZON_S = 2.8, 20
LANE_M, SHOULDER_M = 3.5, 1.75
EDGES_M = (-5.25, 5.25)  # solid markings of the fake road
BOUNDS = {"camera": 1e-6, "camera's place, m": 1e-6, "pose at the start, m": 1e-6, "route off the lane's middle, m": 1e-3,
          "plan from the same start, m": 1e-4, "edge lines, m on the road": 0.05, "loops apart, m": 5.0}


class Recorder(RouteFollowerPolicy):
    """The route follower, which keeps all that it was given: one JSON line a call of drive, and each picture as it came."""

    def drive(self, ctx):
        folder, session = pathlib.Path(os.environ["EGODRIVER_RECORD"]), ctx.session
        result = super().drive(ctx)
        pose, frame = session.latest_pose(), session.latest_frame("camera_front")
        camera = session.cameras["camera_front"]
        mount, lens = Pose.from_proto(camera.rig_to_camera), camera.intrinsics.opencv_pinhole_param
        (folder / f"{session.drive_count}.jpeg").write_bytes(frame.image_bytes)
        line = {
            "times_us": [ctx.time_now_us, ctx.time_query_us - ctx.time_now_us, frame.frame_start_us, frame.frame_end_us, session.route_timestamp_us],
            "pose": [*map(float, pose.position), pose.yaw], "speed_mps": session.speed_mps(),
            "route": session.route_waypoints_in_rig.tolist(),
            "camera": [camera.intrinsics.resolution_w, camera.intrinsics.resolution_h, lens.principal_point_x, lens.principal_point_y,
                       lens.focal_length_x, lens.focal_length_y, *map(float, lens.radial_coeffs), *map(float, lens.tangential_coeffs)],
            "mount": [*map(float, mount.position), *map(float, mount.quat_xyzw)],
            "plan": [list(map(float, p.position)) for p in result.trajectory_in_rig.poses],
        }
        with open(folder / "drives.jsonl", "a") as out:
            out.write(json.dumps(line) + "\n")
        return result


def recorded(folder, call):
    """All that the recorder was given while `call` drove it."""
    folder.mkdir()
    port = egodriver.free_port()
    environment = os.environ | {"EGODRIVER_RECORD": str(folder), "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    server = egodriver.serve("egodriver_scene:Recorder", port, environment)
    try:
        egodriver.wait_for(port, server)
        call(port)
    finally:
        server.kill()
        server.wait()
    drives = [json.loads(line) for line in (folder / "drives.jsonl").read_text().splitlines()]
    for index, drive in enumerate(drives):
        drive["picture"] = np.asarray(Image.open(io.BytesIO((folder / f"{index}.jpeg").read_bytes())).convert("L"), dtype=float)
    return drives


def scenario(camera):
    """The fake loop's road and ego as a scenario. Poses of ours are those of the box's centre."""
    lane = {"width_m": LANE_M, "speed_limit_mps": 25}

    def line(y_m):
        return [[-100, y_m], [600, y_m]]

    lanes = [{"id": "middle", "centre_line": line(0), "left": "left", "right": "right", "left_marking": "dashed", "right_marking": "dashed", **lane},
             {"id": "left", "centre_line": line(LANE_M), "right": "middle", "left_marking": "solid", "right_marking": "dashed", **lane},
             {"id": "right", "centre_line": line(-LANE_M), "left": "middle", "left_marking": "dashed", "right_marking": "solid", **lane}]
    for name, side in (("verge_left", 1), ("verge_right", -1)):
        lanes.append({"id": name, "kind": "shoulder", "width_m": SHOULDER_M, "centre_line": line(side * (EDGES_M[1] + SHOULDER_M / 2)),
                      "left_marking": "none", "right_marking": "none"})
    sensor = {"id": camera.logical_id, "width": camera.width, "height": camera.height, "lens": {"fx": camera.focal_px},
              "pose": {"x_m": camera.x - WHEELBASE_M / 2, "y_m": camera.y, "z_m": camera.z}}
    return {"id": "fake_road", "title": "The road of the fake loop", "map": {"lanes": lanes},
            "ego": {"pose": {"x_m": WHEELBASE_M / 2, "y_m": 0, "heading_rad": 0}, "wheelbase_m": WHEELBASE_M, "route": ["middle"]},
            "horizon_s": HORIZON_S, "rig": {"id": "fake", "cameras": [sensor]}}


def brightest(row, column):
    """The middle of the bright line near a column, to a fraction of one; NaN where there is none."""
    first = int(column) - 15
    part = row[first:first + 31]
    light = np.clip(part - (part.min() + part.max()) / 2, 0, None)
    return first + np.average(np.arange(len(part)), weights=light) if part.max() - part.min() > 60 else math.nan


def edges_apart(ours, camera):
    """Metres on the road between the solid lines of a picture of ours and of the fake loop's from the same place."""
    pose = Pose.from_xyz_yaw(*ours["pose"][:2], 0.0, ours["pose"][3])
    theirs = np.asarray(Image.fromarray(testing.render_road(camera, pose)).convert("L"), dtype=float)
    apart = []
    for row in range(camera.height // 2 + 30, camera.height, 5):
        far_m = camera.z * camera.focal_px / (row + 0.5 - camera.height / 2)
        for edge_m in EDGES_M:
            column = camera.width / 2 - (edge_m - ours["pose"][1]) / far_m * camera.focal_px
            if 16 < column < camera.width - 16:
                columns = brightest(ours["picture"][row], column) - brightest(theirs[row], column)
                apart.append(columns * far_m / camera.focal_px)
    return apart


def distance(a, b):
    return float(np.max(np.abs(np.array(a, dtype=float) - np.array(b, dtype=float))))


def padded(camera):
    """Numbers of a camera's lens, with zeros for coefficients that are not said."""
    return camera + [0.0] * (14 - len(camera))


def compare(ours, theirs, camera):
    """Differences by name, in the units of BOUNDS; and lines that tell what cannot be compared by a bound."""
    ticks = min(len(ours), len(theirs))
    edges = np.array([column for drive in ours[:ticks:5] for column in edges_apart(drive, camera)])
    mount = [np.array(drive[0]["mount"]) for drive in (ours, theirs)]
    mount[1][3:] *= math.copysign(1, mount[0][3:] @ mount[1][3:])  # q and -q are one turn
    apart = [math.hypot(a["pose"][0] - b["pose"][0], a["pose"][1] - b["pose"][1]) for a, b in zip(ours, theirs)]
    found = {
        "camera": distance(padded(ours[0]["camera"]), padded(theirs[0]["camera"])),
        "camera's place, m": distance(*mount),
        "pose at the start, m": distance(ours[0]["pose"], theirs[0]["pose"]),
        "route off the lane's middle, m": max(abs(d["pose"][1] + x * math.sin(d["pose"][3]) + y * math.cos(d["pose"][3]))
                                              for d in ours[:ticks] for x, y, _ in d["route"]),
        "plan from the same start, m": distance(ours[0]["plan"], theirs[0]["plan"]),
        "edge lines, m on the road": float(np.max(np.abs(edges))),
        "loops apart, m": max(apart),
    }
    if any(a["times_us"] != b["times_us"] for a, b in zip(ours, theirs)):
        sys.exit("times of drive, query, frame or route differ")
    if np.isnan(edges).any():
        sys.exit(f"{np.isnan(edges).sum()} of {len(edges)} places of edge lines show none")
    told = [f"{ticks} ticks; times of drive, query, frame and route are equal",
            f"routes: {len(ours[0]['route'])} points to {ours[0]['route'][-1][0]:.1f} m ahead; the fake loop {len(theirs[0]['route'])} to "
            f"{theirs[0]['route'][-1][0]:.1f} m",
            f"{len(edges)} places of edge lines, {abs(np.mean(edges)):.3f} m apart in the mean",
            f"after {ticks} ticks {apart[-1]:.3f} m and {abs(ours[ticks - 1]['speed_mps'] - theirs[ticks - 1]['speed_mps']):.3f} m/s apart "
            "(the fake loop's ego jumps to the plan; ours drives there)"]
    return found, told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=egodriver.ROOT / "build" / "worker" / "swerve")
    parser.add_argument("--ticks", type=int, default=100)
    options = parser.parse_args()
    camera = testing.FakeCamera()

    def fake_loop(port):
        with testing.FakeLoop(f"127.0.0.1:{port}", [camera]) as loop:
            loop.run(options.ticks)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "fake_road.json").write_text(json.dumps(scenario(camera) | {"horizon_s": options.ticks / 10}))

        def swerve(port):
            run = subprocess.run([options.binary, "run", folder / "fake_road.json", "--world", "object", "--nominal", "--workers", "1", "--planner",
                                  "egodriver:recorder", "--egodriver", f"recorder=127.0.0.1:{port}", "--store", folder / "scene.db"],
                                 stdout=subprocess.DEVNULL)
            if run.returncode not in (0, 1):
                sys.exit(f"swerve run ended with {run.returncode}")

        theirs = recorded(folder / "theirs", fake_loop)
        ours = recorded(folder / "ours", swerve)
    found, told = compare(ours, theirs, camera)
    print("\n".join(told))
    for name, value in found.items():
        print(f"{name}: {value:.3g} (at most {BOUNDS[name]:g})")
    sys.exit(0 if all(value <= BOUNDS[name] for name, value in found.items()) else 1)


if __name__ == "__main__":
    main()
