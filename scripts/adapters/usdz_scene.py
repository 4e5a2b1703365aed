#!/usr/bin/env python3
"""Scenes of AlpaSim (NuRec's USDZ) as scenarios and rigs, and back.

    swerve import usdz SCENE.usdz -o scene.json [--rig rig.json] [--map MAP.json]
    swerve run scene.json --world replay --planner builtin:log
    swerve rig from-usdz SCENE.usdz > rig.json
    swerve export usdz scene.json [--rig rig.json] -o SCENE.usdz

The program carries this adapter; it runs by itself too (python3 scripts/adapters/usdz_scene.py --help).

Taken over: ego's box and drive as its `log`, tracks as agents that replay, lanes of the Parquet map within 150 m of
ego's drive (pyarrow of PyPI reads and writes them; a scene without them needs --map), cameras with their lenses. Lanes
have no successors there: one is joined to another where its end lies within 1 m of the other's beginning and both point
the same way; how many were joined is said. Ego's centre is that of its box, and the wheelbase is twice the way from the
rear axle to it. Elevation, roll and pitch, meshes, images, lidars, lights and speed limits stay behind.

A USDZ that is packed here has those files alone: AlpaSim's renderers need more.
"""
import sys

if sys.path and sys.path[0] == "":  # as a text of the program: what lies in the working folder is no module of it
    del sys.path[0]

# pylint: disable=wrong-import-position
import argparse
import io
import json
import math
import os
import pathlib
import re
import zipfile

NEAR_M, JOIN_M, JOIN_RAD = 150.0, 1.0, 0.5
KINDS = {"automobile": "car", "car": "car", "heavy_truck": "truck", "truck": "truck", "trailer": "truck", "bus": "bus", "van": "van",
         "person": "pedestrian", "pedestrian": "pedestrian", "rider": "cyclist", "bicycle": "cyclist", "cyclist": "cyclist",
         "motorcycle": "motorcycle", "animal": "animal"}
CLASSES = {"car": "automobile", "van": "automobile", "truck": "heavy_truck", "cyclist": "rider", "pedestrian": "person"}
LANE_KINDS = {"SHOULDER_LANE": "shoulder", "BICYCLE": "cycle"}
SHUTTERS = {"ROLLING_TOP_TO_BOTTOM": "rolling_top", "ROLLING_BOTTOM_TO_TOP": "rolling_bottom", "ROLLING_LEFT_TO_RIGHT": "rolling_left",
            "ROLLING_RIGHT_TO_LEFT": "rolling_right"}


def fail(text):
    sys.exit(f"usdz_scene: {text}")


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def heading_of(matrix):
    return math.atan2(matrix[1][0], matrix[0][0])


def with_speeds(points):
    """[t, x, y, heading] with the speed between neighbours behind each."""
    made = []
    for i, point in enumerate(points):
        a, b = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
        made.append(point + [math.dist(a[1:3], b[1:3]) / (b[0] - a[0]) if b[0] > a[0] else 0.0])
    return made


# ---- cameras ----

def turn_of(matrix):
    """Yaw, pitch and roll of a camera whose axes are right, down and ahead."""
    ahead, left, up = ([row[2] for row in matrix[:3]], [-row[0] for row in matrix[:3]], [-row[1] for row in matrix[:3]])
    return math.atan2(ahead[1], ahead[0]), -math.asin(max(-1.0, min(1.0, ahead[2]))), math.atan2(left[2], up[2])


def matrix_of(pose, behind_m):
    """Camera to rig, the other way."""
    (cy, sy), (cp, sp), (cr, sr) = ((math.cos(pose.get(name, 0.0)), math.sin(pose.get(name, 0.0))) for name in ("yaw_rad", "pitch_rad", "roll_rad"))
    body = product(product([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]], [[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]]), [[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    turned = product(body, [[0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    place = [pose["x_m"] + behind_m, pose["y_m"], pose["z_m"]]
    return [row + [at] for row, at in zip(turned, place)] + [[0, 0, 0, 1]]


def lens_of(name, model):
    """A lens. Principal points there count from the corner of the first pixel, ours from its centre."""
    kind, numbers = model["type"], model["parameters"]
    lens = {"cx": numbers["principal_point"][0] - 0.5, "cy": numbers["principal_point"][1] - 0.5}
    if kind == "ftheta":
        if (numbers.get("linear_cde") or [1, 0, 0]) != [1, 0, 0]:
            fail(f"camera {name}: expected linear_cde [1, 0, 0], found {numbers['linear_cde']}")
        return lens | {"model": "ftheta", "angle_to_pixels": numbers["angle_to_pixeldist_poly"], "max_angle_rad": numbers["max_angle"]}
    lens |= dict(zip(("fx", "fy"), numbers["focal_length"]))
    if kind in ("opencv-fisheye", "opencv_fisheye"):
        return lens | {"model": "fisheye", "k": numbers["radial_coeffs"], "max_angle_rad": numbers["max_angle"]}
    if kind in ("opencv-pinhole", "opencv_pinhole", "pinhole"):
        named = (("k", numbers.get("radial_coeffs")), ("p", numbers.get("tangential_coeffs")))
        return lens | {"model": "pinhole"} | {member: values for member, values in named if values}
    return fail(f"camera {name}: expected a lens ftheta, opencv_fisheye or opencv_pinhole, found {kind}")


def model_of(camera):
    lens = camera["lens"]
    numbers = {"resolution": [camera["width"], camera["height"]], "shutter_type": "GLOBAL",
               "principal_point": [lens.get("cx", (camera["width"] - 1) / 2) + 0.5, lens.get("cy", (camera["height"] - 1) / 2) + 0.5]}
    if lens.get("model") == "ftheta":
        numbers |= {"reference_poly": "ANGLE_TO_PIXELDIST", "angle_to_pixeldist_poly": lens["angle_to_pixels"], "pixeldist_to_angle_poly": [],
                    "max_angle": lens["max_angle_rad"]}
        return {"type": "ftheta", "parameters": numbers}
    numbers |= {"focal_length": [lens["fx"], lens.get("fy", lens["fx"])], "radial_coeffs": lens.get("k", [])}
    if lens.get("model") == "fisheye":
        return {"type": "opencv_fisheye", "parameters": numbers | {"max_angle": lens["max_angle_rad"]}}
    return {"type": "opencv_pinhole", "parameters": numbers | {"tangential_coeffs": lens.get("p", [])}}


def rig_of(rigs, behind_m, scene):
    cameras = []
    for name, entry in rigs["camera_calibrations"].items():
        matrix, model = entry["T_sensor_rig"], entry["camera_model"]
        turn = dict(zip(("yaw_rad", "pitch_rad", "roll_rad"), turn_of(matrix)))
        place = {"x_m": matrix[0][3] - behind_m, "y_m": matrix[1][3], "z_m": matrix[2][3]}
        width, height = model["parameters"]["resolution"]
        shutter = SHUTTERS.get(model["parameters"].get("shutter_type", ""))
        cameras.append({"id": entry["logical_sensor_name"], "width": width, "height": height, "pose": place | turn, "lens": lens_of(name, model)}
                       | ({"shutter": shutter} if shutter else {}))
    return {"id": scene, "cameras": cameras}


# ---- lanes ----

def parquet():
    try:
        import pyarrow.parquet
    except ImportError:
        fail("lanes lie in Parquet: pip install pyarrow (or give a map of your own, --map)")
    return pyarrow


def lanes_of(archive, world, way):
    """Lanes near ego's way, joined where ends meet; how many were joined."""
    names = [name for name in archive.namelist() if re.fullmatch(r"(clipgt|map_data)/([^/]*\.)?lane\.parquet", name)]
    if not names:
        fail("the scene has no lanes (clipgt/lane.parquet or map_data/lane.parquet): give a map, --map MAP.json")
    lanes = []
    for row in parquet().parquet.read_table(io.BytesIO(archive.read(names[0]))).to_pylist():
        rails = [[[sum(world[i][j] * at for j, at in enumerate((point["x"], point["y"], point["z"], 1.0))) for i in (0, 1)]
                  for point in row["lane"][side]] for side in ("left_rail", "right_rail")]
        if len(rails[0]) != len(rails[1]) or len(rails[0]) < 2:
            fail(f"lane {row['key']['map_id']}: expected two rails of the same number of points, found {len(rails[0])} and {len(rails[1])}")
        centre = [[(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] for a, b in zip(*rails)]
        if min(math.dist(a, b) for a in centre for b in way) < NEAR_M:
            kind = next((LANE_KINDS[use] for use in row["lane"].get("use_types") or [] if use in LANE_KINDS), "driving")
            lanes.append({"id": f"lane_{row['key']['map_id']}", "kind": kind, "centre_line": centre, "width_m": [math.dist(a, b) for a, b in zip(*rails)],
                          "successors": []})
    joined = 0
    for lane in lanes:
        for other in lanes:
            end, begin = lane["centre_line"], other["centre_line"]
            turn = math.atan2(begin[1][1] - begin[0][1], begin[1][0] - begin[0][0]) - math.atan2(end[-1][1] - end[-2][1], end[-1][0] - end[-2][0])
            if lane is not other and math.dist(end[-1], begin[0]) <= JOIN_M and abs(math.remainder(turn, 2 * math.pi)) < JOIN_RAD:
                lane["successors"].append(other["id"])
                joined += 1
    return lanes, joined


def rails_of(lane):
    """Left and right edges of a lane whose centre line has points."""
    line, sides = lane["centre_line"], ([], [])
    widths = lane.get("width_m", 3.5)
    for i, at in enumerate(line):
        a, b = line[max(i - 1, 0)], line[min(i + 1, len(line) - 1)]
        heading, half = math.atan2(b[1] - a[1], b[0] - a[0]), (widths[i] if isinstance(widths, list) else widths) / 2
        for side, sign in zip(sides, (1, -1)):
            side.append({"x": at[0] - sign * half * math.sin(heading), "y": at[1] + sign * half * math.cos(heading), "z": 0.0})
    return sides


# ---- scenes ----

def agent_of(track, label, size, points):
    kind = KINDS.get(label.lower(), "object")
    made = {"id": "track_" + re.sub(r"[^A-Za-z0-9_.-]", "_", str(track))[:50], "kind": kind, "behaviour": "replay" if len(points) > 1 else "static"}
    made |= dict(zip(("length_m", "width_m", "height_m"), size))
    if len(points) > 1:
        return made | {"trajectory": with_speeds(points)}
    return made | {"pose": dict(zip(("x_m", "y_m", "heading_rad"), points[0][1:]))}


def read_rigs(archive):
    """Content of rig_trajectories.json, and the id of the scene."""
    rigs = json.loads(archive.read("rig_trajectories.json"))
    if len(rigs["rig_trajectories"]) != 1:
        fail(f"rig_trajectories.json: expected one rig trajectory, found {len(rigs['rig_trajectories'])}")
    ego = rigs["rig_trajectories"][0]
    found = re.search(r"^scene_id:\s*['\"]?([^'\"\n]+)", archive.read("metadata.yaml").decode(), re.M)
    scene = re.sub(r"[^A-Za-z0-9_.-]", "_", found.group(1) if found else ego["sequence_id"])[:60]
    if not ego.get("rig_bbox"):
        fail("rig_trajectories.json: rig_bbox: expected ego's box, found none")
    return rigs, scene


def read_scene(archive, map_file):
    rigs, scene = read_rigs(archive)
    ego, world = rigs["rig_trajectories"][0], rigs["world_to_nre"]["matrix"]
    behind_m, (length_m, width_m, height_m) = ego["rig_bbox"]["centroid"][0], ego["rig_bbox"]["dim"]
    begin_us = ego["T_rig_world_timestamps_us"][0]
    log = []
    for at_us, matrix in zip(ego["T_rig_world_timestamps_us"], ego["T_rig_worlds"]):
        pose = product(world, matrix)
        heading = heading_of(pose)
        log.append([(at_us - begin_us) / 1e6, pose[0][3] + behind_m * math.cos(heading), pose[1][3] + behind_m * math.sin(heading), heading])
    agents = []
    for sequence in json.loads(archive.read("sequence_tracks.json")).values():
        tracks = sequence["tracks_data"]
        for track, label, size, times, poses in zip(tracks["tracks_id"], tracks["tracks_label_class"], sequence["cuboidtracks_data"]["cuboids_dims"],
                                                    tracks["tracks_timestamps_us"], tracks["tracks_poses"]):
            points = [[(at_us - begin_us) / 1e6, x, y, math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))]
                      for at_us, (x, y, _, qx, qy, qz, qw) in zip(times, poses) if at_us >= begin_us]
            if points:
                agents.append(agent_of(track, label, size, points))
    if map_file is not None:
        chart, joined = {"file": map_file}, 0
    else:
        lanes, joined = lanes_of(archive, world, [point[1:3] for point in log[::10]])
        chart = {"lanes": lanes}
    made = {"id": scene, "title": f"AlpaSim's scene {scene}"[:200], "source": "AlpaSim, USDZ", "map": chart, "agents": agents,
            "horizon_s": math.floor(min(log[-1][0], 600.0) * 10 + 1e-9) / 10,
            "ego": {"pose": dict(zip(("x_m", "y_m", "heading_rad"), log[0][1:])), "speed_mps": with_speeds(log)[0][4], "length_m": length_m,
                    "width_m": width_m, "height_m": height_m, "wheelbase_m": 2 * behind_m, "log": with_speeds(log)}}
    return made, rig_of(rigs, behind_m, scene), joined


def write_scene(archive, scene, rig):
    ego = scene["ego"]
    if "log" not in ego:
        fail(f"{scene['id']}: ego.log: expected a drive, found none")
    behind_m = ego["wheelbase_m"] / 2
    times_us = [round(point[0] * 1e6) for point in ego["log"]]
    poses = [[[math.cos(h), -math.sin(h), 0, x - behind_m * math.cos(h)], [math.sin(h), math.cos(h), 0, y - behind_m * math.sin(h)], [0, 0, 1, 0],
              [0, 0, 0, 1]] for _, x, y, h, _ in ego["log"]]
    cameras = {f"{camera['id']}@{scene['id']}": {"logical_sensor_name": camera["id"], "sequence_id": scene["id"], "unique_sensor_idx": index,
                                                 "T_sensor_rig": matrix_of(camera["pose"], behind_m), "camera_model": model_of(camera)}
               for index, camera in enumerate(rig["cameras"])}
    same = [[float(i == j) for j in range(4)] for i in range(4)]
    box = {"centroid": [behind_m, 0, ego["height_m"] / 2], "dim": [ego["length_m"], ego["width_m"], ego["height_m"]], "rot": [0, 0, 0]}
    archive.writestr("rig_trajectories.json", json.dumps({
        "T_world_base": same, "world_to_nre": {"matrix": same}, "camera_calibrations": cameras, "rig_trajectories": [{
            "sequence_id": scene["id"], "T_rig_world_timestamps_us": times_us, "T_rig_worlds": poses, "rig_bbox": box,
            "cameras_frame_timestamps_us": {name: [[at, at + 1] for at in times_us] for name in cameras}}]}))
    tracks = {name: [] for name in ("tracks_id", "tracks_label_class", "tracks_flags", "tracks_timestamps_us", "tracks_poses")}
    sizes = []
    for agent in scene.get("agents", []):
        pose = agent.get("pose", {})
        points = agent.get("trajectory") or [[0.0, pose.get("x_m"), pose.get("y_m"), pose.get("heading_rad"), 0.0]]
        size = [agent.get(name) for name in ("length_m", "width_m", "height_m")]
        if None in points[0] or None in size:
            fail(f"agent {agent['id']}: expected a size, and a trajectory or a pose x_m, y_m, heading_rad")
        row = (agent["id"].removeprefix("track_"), CLASSES.get(agent["kind"], agent["kind"]), ["CONTROLLABLE"] if len(points) > 1 else [],
               [round(point[0] * 1e6) for point in points],
               [[x, y, size[2] / 2, 0, 0, math.sin(h / 2), math.cos(h / 2)] for _, x, y, h, _ in points])
        for column, value in zip(tracks.values(), row):
            column.append(value)
        sizes.append(size)
    archive.writestr("sequence_tracks.json", json.dumps({scene["id"]: {"tracks_data": tracks, "cuboidtracks_data": {"cuboids_dims": sizes}}}))
    archive.writestr("metadata.yaml", f"scene_id: {scene['id']}\nversion_string: swerve\ntraining_date: ''\ndataset_hash: ''\nuuid: ''\n"
                     f"is_resumable: false\nsensors: {{camera_ids: {json.dumps(list(cameras))}, lidar_ids: []}}\nlogger: {{}}\n"
                     f"time_range: {{start: {times_us[0] / 1e6}, end: {times_us[-1] / 1e6}}}\n")
    lanes = [lane for lane in scene["map"].get("lanes", []) if isinstance(lane["centre_line"], list)]
    if lanes:
        arrow = parquet()
        uses = {kind: use for use, kind in LANE_KINDS.items()}
        rows = [{"key": {"map_id": lane["id"].removeprefix("lane_")}, "lane": dict(zip(("left_rail", "right_rail"), rails_of(lane))) | {
            "use_types": [uses[lane["kind"]]] if lane.get("kind") in uses else []}} for lane in lanes]
        data = io.BytesIO()
        arrow.parquet.write_table(arrow.Table.from_pylist(rows), data)
        archive.writestr("clipgt/lane.parquet", data.getvalue())
    return len(lanes)


def put(path, data):
    """Writes a file whole: what was there stays until the new one is."""
    made = path.with_name(path.name + ".part")
    try:
        made.write_bytes(data)
        os.replace(made, path)
    except OSError as error:
        made.unlink(missing_ok=True)
        fail(f"{path}: cannot be written: {error.strerror}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", type=pathlib.Path, help="SCENE.usdz; with --pack a scenario whose ego has a log")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--rig", type=pathlib.Path, help="where the cameras go; with --pack: where they are")
    parser.add_argument("--map", help="map file of the scenario, in place of the scene's lanes")
    parser.add_argument("--pack", action="store_true", help="a scenario into a USDZ")
    parser.add_argument("--rig-only", action="store_true", help="the scene's cameras alone, as a rig; -o -: on stdout")
    options = parser.parse_args()
    try:
        if options.pack:
            rig = json.loads(options.rig.read_text()) if options.rig else {"cameras": []}
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:  # stored, as USDZ wants it
                lanes = write_scene(archive, json.loads(options.scene.read_text()), rig)
            put(options.output, packed.getvalue())
            print(f"{options.output}: {len(rig['cameras'])} cameras, {lanes} lanes")
            return
        with zipfile.ZipFile(options.scene) as archive:
            if options.rig_only:
                rigs, scene = read_rigs(archive)
                rig = json.dumps(rig_of(rigs, rigs["rig_trajectories"][0]["rig_bbox"]["centroid"][0], scene), indent=2) + "\n"
                sys.stdout.write(rig) if str(options.output) == "-" else put(options.output, rig.encode())
                return
            scene, rig, joined = read_scene(archive, options.map)
    except (OSError, zipfile.BadZipFile, json.JSONDecodeError) as error:
        fail(f"{options.scene}: {error}")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        fail(f"{options.scene}: expected AlpaSim's form, found a member missing or of another kind ({type(error).__name__}: {error})")
    put(options.output, json.dumps(scene).encode())
    if options.rig:
        put(options.rig, json.dumps(rig).encode())
    print(f"{options.output}: {scene['horizon_s']} s, {len(scene['agents'])} agents, {len(rig['cameras'])} cameras, "
          f"{len(scene['map'].get('lanes', []))} lanes, {joined} ends joined to beginnings within {JOIN_M} m")


if __name__ == "__main__":
    main()
