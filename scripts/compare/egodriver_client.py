#!/usr/bin/env python3
"""Processor time that a tick with four images of 1280 x 720 takes the client of a driving policy: Swerve's and Python's.

Usage: egodriver_client.py [--build BUILD] [--ticks N] [--rounds N]
Both send the same pictures (quad.json, drawn by Swerve, JPEG of quality 90) to an unmodified policy of
carla-driver-interface, which is installed from PyPI into build-test/egodriver once. In turns; the median of the rounds'
ratios. Making the pictures is no part of it: that is the world's work. Exit 1: a tick takes Swerve over 0.5 ms.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

import egodriver

try:
    import grpc
    from PIL import Image
    from carla_driver_interface.geometry import Pose, Trajectory
    from carla_driver_interface import protocol as wire
except ImportError:  # begins again in the environment that has them
    program = egodriver.serve_program().parent / "python3"
    os.execv(program, [str(program), *sys.argv])

ROOT, BOUND_MS, WARM_TICKS = egodriver.ROOT, 0.5, 20
RIG = ROOT / "scripts" / "examples" / "rigs" / "quad.json"
SCENE = ROOT / "scenarios" / "urban" / "school_bus.json"
CAMERAS = ["front", "left", "right", "rear"]


def build_program(build, path):
    libraries = sorted(str(library) for library in build.rglob("lib*.a") if library.parent.parent == build or library.parent.name in ("program", "proto", "ref", "x86"))
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}", str(ROOT / "scripts/compare/egodriver_client.c"), "-o", path, "-Wl,--start-group",
                    *libraries, "-Wl,--end-group", "-ljansson", "-lpng", "-ljpeg", "-lzstd", "-lnghttp2", "-lprotobuf-c", "-lm", "-ldl", "-lpthread"],
                   check=True)


def draw_pictures(build, folder):
    subprocess.run([build / "worker" / "swerve", "rig", "draw", RIG, SCENE, "-o", folder / "rig"], check=True, stdout=subprocess.DEVNULL)
    made = []
    for camera in CAMERAS:
        drawn, = (folder / "rig").glob(f"*{camera}*.png")
        made.append(folder / f"{camera}.jpeg")
        Image.open(drawn).convert("RGB").save(made[-1], quality=90)
    return made


def drive_python(port, pictures, ticks):
    """Milliseconds of processor a tick of what the package's fake loop does beside drawing."""
    images = [(camera, picture.read_bytes()) for camera, picture in zip(CAMERAS, pictures)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=wire.channel_options()) as channel:
        stub, session, began = wire.EgodriverServiceStub(channel), str(uuid.uuid4()), 0.0
        request = wire.DriveSessionRequest(session_uuid=session)
        for camera in CAMERAS:
            request.rollout_spec.vehicle.available_cameras.add(logical_id=camera)
        stub.start_session(request)
        for tick in range(WARM_TICKS + ticks):
            if tick == WARM_TICKS:
                began = time.process_time()
            now_us = tick * 100000
            motion = wire.RolloutEgoTrajectory(session_uuid=session)
            motion.trajectory.CopyFrom(Trajectory([now_us], [Pose.from_xyz_yaw(0.5 * tick, 0.0, 0.0, 0.0)]).to_proto())
            motion.dynamic_states.append(wire.DynamicState(linear_velocity=wire.Vec3(x=5.0)))
            stub.submit_egomotion_observation(motion)
            points = [wire.Vec3(x=4.0 * i) for i in range(33)]
            stub.submit_route(wire.RouteRequest(session_uuid=session, route=wire.Route(timestamp_us=now_us, waypoints=points)))
            for camera, data in images:
                image = wire.RolloutCameraImage(session_uuid=session)
                image.camera_image.logical_id = camera
                image.camera_image.frame_start_us = image.camera_image.frame_end_us = now_us
                image.camera_image.image_bytes = data
                stub.submit_image_observation(image)
            answer = stub.drive(wire.DriveRequest(session_uuid=session, time_now_us=now_us, time_query_us=now_us + 100000))
            Trajectory.from_proto(answer.trajectory)
        return 1e3 * (time.process_time() - began) / ticks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--ticks", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    port = egodriver.free_port()
    server = egodriver.serve("constant_speed", port)
    rounds = []
    try:
        egodriver.wait_for(port, server)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            build_program(options.build.resolve(), folder / "client")
            pictures = draw_pictures(options.build.resolve(), folder)
            sizes = " + ".join(str(round(picture.stat().st_size / 1e3)) for picture in pictures)
            for _ in range(options.rounds):
                ours = subprocess.run([folder / "client", f"127.0.0.1:{port}", str(options.ticks), RIG, *pictures], check=True, text=True,
                                      stdout=subprocess.PIPE)
                forked, ours_ms = map(float, ours.stdout.split())
                rounds.append((ours_ms, forked, drive_python(port, pictures, options.ticks)))
    finally:
        server.kill()
        server.wait()
    ours_ms, forked_ms, theirs_ms = (statistics.median(column) for column in zip(*rounds))
    ratio = statistics.median(ours / theirs for ours, _, theirs in rounds)
    print(f"a tick with {sizes} KB of JPEG, {options.rounds} rounds of {options.ticks} ticks: Swerve {ours_ms:.3f} ms of processor "
          f"({min(ours for ours, *_ in rounds):.3f} to {max(ours for ours, *_ in rounds):.3f}; {forked_ms:.3f} ms where forks may follow), "
          f"Python {theirs_ms:.3f} ms, ratio {ratio:.3f}")
    sys.exit(0 if ours_ms <= BOUND_MS else 1)


if __name__ == "__main__":
    main()
