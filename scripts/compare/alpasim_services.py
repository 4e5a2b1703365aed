#!/usr/bin/env python3
"""Every call of AlpaSim's that `swerve alpasim` serves, made through AlpaSim's own contract, and what comes of it.

Usage: alpasim_services.py CHECKOUT [--build BUILD] [--suite SUITE]
CHECKOUT is a clone of NVlabs/alpasim, of whose .proto files the stubs are made, with grpcio-tools, which is installed
from PyPI into build-test/alpasim once. A row per call: what was found, or what is wrong. A scene is rendered alone, in
a batch and aggregated, which must be the same bytes; a world model's session draws two chunks; traffic is driven twice
with one seed around an ego that keeps its speed. Calls that are not served must say UNIMPLEMENTED. Exit 1: a row is wrong.
"""
import argparse
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import uuid
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
try:
    import grpc
    from grpc_tools import protoc
    from PIL import Image
except ImportError:  # begins again in the environment that has them
    folder = ROOT / "build-test" / "alpasim"
    if not (folder / "bin" / "python3").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "grpcio-tools==1.85.1", "pillow"], check=True)
    os.execv(folder / "bin" / "python3", [str(folder / "bin" / "python3"), *sys.argv])

TICK_US, DEADLINE_S, BEGIN_US = 100_000, 60, 1_000_000
rows = []


def row(call, wrong, found=""):
    rows.append(bool(wrong))
    print(f"{'WRONG' if wrong else 'ok   '} {call:40} {wrong or found}", flush=True)


def load_contract(checkout, folder):
    """Modules made of the checkout's contract."""
    protos = checkout / "src" / "grpc"
    names = [str(path.relative_to(protos)) for path in sorted((protos / "alpasim_grpc" / "v0").glob("*.proto"))]
    if protoc.main(["protoc", f"-I{protos}", f"--python_out={folder}", f"--grpc_python_out={folder}", *names]) != 0:
        sys.exit(f"{protos}: expected .proto files that compile")
    sys.path.insert(0, str(folder))
    from alpasim_grpc.v0 import common_pb2, sensorsim_pb2, sensorsim_pb2_grpc, traffic_pb2, traffic_pb2_grpc, video_model_pb2, video_model_pb2_grpc
    return common_pb2, sensorsim_pb2, sensorsim_pb2_grpc, traffic_pb2, traffic_pb2_grpc, video_model_pb2, video_model_pb2_grpc


def pose(common, x_m, y_m, z_m=0.0):
    return common.Pose(vec=common.Vec3(x=x_m, y=y_m, z=z_m), quat=common.Quat(w=1.0))


def refused(call, stub, question):
    """A call that must be unimplemented."""
    try:
        stub(question, timeout=DEADLINE_S)
        row(call, "expected UNIMPLEMENTED, found an answer")
    except grpc.RpcError as fault:
        wrong = fault.code() != grpc.StatusCode.UNIMPLEMENTED
        row(call, f"expected UNIMPLEMENTED, found {fault.code()}" if wrong else "", fault.details())


def ask_sensors(channel, contract):
    """SensorsimService; the scenes, and the cameras and drive of the first."""
    common, sensors, stubs, *_ = contract
    stub = stubs.SensorsimServiceStub(channel)
    version = stub.get_version(common.Empty(), timeout=DEADLINE_S)
    row("sensorsim get_version", not version.version_id, version.version_id)
    scenes = list(stub.get_available_scenes(common.Empty(), timeout=DEADLINE_S).scene_ids)
    row("sensorsim get_available_scenes", not scenes and "none", f"{len(scenes)}, the first {scenes[0]}")
    cameras = stub.get_available_cameras(sensors.AvailableCamerasRequest(scene_id=scenes[0]), timeout=DEADLINE_S).available_cameras
    row("sensorsim get_available_cameras", not cameras and "none", ", ".join(camera.logical_id for camera in cameras))
    drives = stub.get_available_trajectories(sensors.AvailableTrajectoriesRequest(scene_id=scenes[0]), timeout=DEADLINE_S).available_trajectories
    poses = drives[0].trajectory.poses if drives else []
    row("sensorsim get_available_trajectories", not poses and "none", f"{len(poses)} poses")
    camera, rig = cameras[0], poses[0].pose.vec
    # The declared pose is of the camera's optical frame on the rig, and the first pose of the drive is turned too: what is
    # drawn here looks from above ego in the map's frame, which is enough to compare the three ways to ask.
    place = common.Pose(vec=common.Vec3(x=rig.x, y=rig.y, z=1.5), quat=camera.rig_to_camera.quat)
    spec = camera.intrinsics
    question = sensors.RGBRenderRequest(
        scene_id=scenes[0], resolution_h=spec.resolution_h, resolution_w=spec.resolution_w, camera_intrinsics=spec, frame_start_us=BEGIN_US,
        frame_end_us=BEGIN_US, sensor_pose=sensors.PosePair(start_pose=place, end_pose=place), image_format=sensors.PNG)
    alone = stub.render_rgb(question, timeout=DEADLINE_S).image_bytes
    size = Image.open(io.BytesIO(alone)).size
    row("sensorsim render_rgb", size != (spec.resolution_w, spec.resolution_h) and f"{size}", f"{size[0]} x {size[1]}, {len(alone)} bytes of PNG")
    half = sensors.RGBRenderRequest()
    half.CopyFrom(question)
    half.resolution_w, half.resolution_h = spec.resolution_w // 2, spec.resolution_h // 2
    size = Image.open(io.BytesIO(stub.render_rgb(half, timeout=DEADLINE_S).image_bytes)).size
    row("sensorsim render_rgb, half the size", size != (half.resolution_w, half.resolution_h) and f"{size}", f"{size[0]} x {size[1]}")
    item = sensors.BatchRGBRenderRequestItem(camera_name=camera.logical_id, request=question)
    batch = stub.batch_render_rgb(sensors.BatchRGBRenderRequest(items=[item, item]), timeout=DEADLINE_S).items
    same = [one.success and one.camera_name == camera.logical_id and one.result.image_bytes == alone for one in batch]
    row("sensorsim batch_render_rgb", same != [True, True] and f"not the picture of render_rgb: {same}", "the same bytes twice")
    told = stub.render_aggregated(sensors.AggregatedRenderRequest(rgb_requests=[question]), timeout=DEADLINE_S)
    row("sensorsim render_aggregated", [one.image_bytes for one in told.rgb_returns] != [alone] and "not the picture of render_rgb", "the same bytes")
    loaded = [scene.scene_id for scene in stub.get_loaded_scenes(common.Empty(), timeout=DEADLINE_S).scenes]
    row("sensorsim get_loaded_scenes", loaded != scenes[:1] and f"{loaded}", loaded[0] if loaded else "")
    refused("sensorsim render_lidar", stub.render_lidar, sensors.LidarRenderRequest(scene_id=scenes[0]))
    row("sensorsim get_available_ego_masks", len(stub.get_available_ego_masks(common.Empty(), timeout=DEADLINE_S).ego_mask_metadata), "none")
    return scenes, cameras, list(poses)


def ask_world_model(channel, contract, scene, cameras, poses):
    common, sensors, _, _, _, video, stubs = contract
    stub = stubs.WorldModelServiceStub(channel)
    row("world model get_version", not stub.get_version(common.Empty(), timeout=DEADLINE_S).version_id)
    packed, black = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr(f"{scene.replace('/', '-')}.lane.parquet", b"")
    spec = cameras[0].intrinsics
    Image.new("RGB", (spec.resolution_w, spec.resolution_h)).save(black, "JPEG")
    session = stub.start_session(video.SessionRequest(
        static_world_map=video.StaticWorldMap(hdmap_parquets=packed.getvalue()), camera_specs=[spec], rig_to_camera=[cameras[0].rig_to_camera],
        initial_frames=[video.Image(data=black.getvalue(), format=video.JPEG)], random_seed=7), timeout=DEADLINE_S)
    row("world model start_session", not session.session_id and "no id", session.session_id)
    frames, moment_us = [], BEGIN_US
    for count in (5, 8):
        way = [common.PoseAtTime(pose=poses[0].pose, timestamp_us=moment_us + 33_333 * i) for i in range(count)]
        moment_us = way[-1].timestamp_us + 33_333
        told = stub.render_video_chunk(video.VideoChunkRequest(session_id=session, rig_trajectory=common.Trajectory(poses=way)), timeout=DEADLINE_S)
        frames.append([len(output.rgb_frames) for output in told.camera_outputs])
        sizes = {Image.open(io.BytesIO(frame.data)).size for output in told.camera_outputs for frame in output.rgb_frames}
        row(f"world model render_video_chunk of {count}", (frames[-1] != [count] or sizes != {(spec.resolution_w, spec.resolution_h)}) and
            f"{frames[-1]} frames of {sizes}", f"{frames[-1][0]} frames")
    stub.close_session(video.SessionCloseRequest(session_id=session.session_id), timeout=DEADLINE_S)
    row("world model close_session", "")


def drive_traffic(stub, contract, scene, poses, agents):
    """Places by tick of everybody who is told of, around an ego that goes on from the first pose of its drive; the agents'
    logs stand far away, so that who is told of elsewhere is driven."""
    common, _, _, traffic, *_ = contract
    first, session = poses[0].pose.vec, str(uuid.uuid4())
    away = [common.PoseAtTime(pose=pose(common, first.x + 500.0, first.y), timestamp_us=BEGIN_US + i * TICK_US) for i in range(2)]
    logged = [traffic.ObjectTrajectory(object_id="EGO", trajectory=common.Trajectory(poses=[common.PoseAtTime(pose=poses[0].pose, timestamp_us=BEGIN_US)]))]
    logged += [traffic.ObjectTrajectory(object_id=agent, trajectory=common.Trajectory(poses=away)) for agent in agents]
    stub.start_session(traffic.TrafficSessionRequest(session_uuid=session, scene_id=scene, random_seed=3, logged_object_trajectories=logged,
                                                     handover_time_us=BEGIN_US + TICK_US), timeout=DEADLINE_S)
    told = []
    for tick in range(1, 31):
        now_us = BEGIN_US + tick * TICK_US
        at = common.PoseAtTime(pose=pose(common, first.x + 0.8 * tick, first.y, first.z), timestamp_us=now_us)
        update = traffic.ObjectTrajectoryUpdate(object_id="EGO", trajectory=common.Trajectory(poses=[at]))
        answer = stub.simulate(traffic.TrafficRequest(session_uuid=session, time_query_us=now_us, object_trajectory_updates=[update]), timeout=DEADLINE_S)
        told.append([(one.object_id, one.trajectory.poses[0].timestamp_us - now_us, one.trajectory.poses[0].pose.vec.x, one.trajectory.poses[0].pose.vec.y)
                     for one in answer.object_trajectory_updates])
    stub.close_session(traffic.TrafficSessionCloseRequest(session_uuid=session), timeout=DEADLINE_S)
    return told


def ask_traffic(channel, contract, scenes, poses, agents):
    common, _, _, traffic, stubs, *_ = contract
    stub = stubs.TrafficServiceStub(channel)
    row("traffic get_metadata", not stub.get_metadata(common.Empty(), timeout=DEADLINE_S).version_id.version_id)
    row("traffic get_available_scenes", list(stub.get_available_scenes(common.Empty(), timeout=DEADLINE_S).scene_ids) != scenes)
    first, again = (drive_traffic(stub, contract, scenes[0], poses, agents) for _ in range(2))
    there = {one[0] for tick in first[1:] for one in tick}
    late = [one for tick in first for one in tick if one[1] != 0]
    row("traffic start_session, simulate", (late and f"poses at other times: {late[:3]}") or (not there and "nobody is there"), f"30 ticks, {len(there)} agents")
    row("traffic, the same seed again", first != again and "other places", "the same places")
    row("traffic close_session", "")


def agents_of(scene):
    """Ids of a scenario's agents, from the library."""
    for path in (ROOT / "scenarios").rglob("*.json"):
        document = json.loads(path.read_text())
        if isinstance(document, dict) and document.get("id") == scene:
            return [agent["id"] for agent in document.get("agents", [])]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--suite", default=str(ROOT / "scenarios" / "ncap" / "ccrs.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swerve-alpasim-") as name:
        contract = load_contract(options.checkout.resolve(), name)
        server = subprocess.Popen([options.build.resolve() / "worker" / "swerve", "alpasim", options.suite, "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            with grpc.insecure_channel(server.stdout.readline().strip()) as channel:
                scenes, cameras, poses = ask_sensors(channel, contract)
                ask_world_model(channel, contract, scenes[0], cameras, poses)
                ask_traffic(channel, contract, scenes, poses, agents_of(scenes[0].split("/")[0]))
        finally:
            server.terminate()
            server.wait()
    sys.exit(any(rows))


if __name__ == "__main__":
    main()
