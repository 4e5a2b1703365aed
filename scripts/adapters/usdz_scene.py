#!/usr/bin/env python3
"""Scenes of AlpaSim (NuRec's USDZ) as scenarios and rigs, and back.

    swerve import usdz SCENE.usdz -o scene.json [--rig rig.json] [--map MAP.json]
    swerve run scene.json --world replay --planner builtin:log
    swerve rig from-usdz SCENE.usdz > rig.json
    swerve export usdz scene.json [--rig rig.json] -o SCENE.usdz

The program carries this adapter and checks and writes what it makes (cli/alpasim/usdz.c); the adapter prints it:

    usdz_scene.py import SCENE.usdz [MAP.json]    {"scenario", "rig", "said"}
    usdz_scene.py rig SCENE.usdz                  {"rig"}
    usdz_scene.py export NAME                     the archive, of {"scenario", "rig"} on stdin as the program completes them

Taken over: ego's box and drive as its `log`, tracks as agents that replay, lanes of the Parquet map within 150 m of
ego's drive (pyarrow of PyPI reads and writes them; a scene without them needs --map), cameras with their lenses. Lanes
have no links there: one is joined to another where its end lies within 1 m of the other's beginning and both point
the same way, and driving lanes are neighbours where the left edge of one is the right edge of the other; how many is said.
Ego's centre is that of its box, and the wheelbase is twice the way from the rear axle to it. Elevation, roll and pitch,
meshes, images, lidars, lights, marks and speed limits stay behind.

A USDZ that is packed here has those files alone: AlpaSim's renderers need more.
"""
import sys

if sys.path and sys.path[0] == "":  # as a text of the program: what lies in the working folder is no module of it
    del sys.path[0]

# pylint: disable=wrong-import-position
import gc
import io
import json
import math
import os
import re
import resource
import zipfile
import zlib

NEAR_M, JOIN_M, JOIN_RAD, WAY_STEP_M, WAY_POINTS = 150.0, 1.0, 0.5, 10.0, 2000
PLACE_M, EPOCH_US, MEMBER_BYTES, TEXT_BYTES, RIGID = 1e6, 2**63, 256 << 20, 64 << 20, 1e-3  # JSON takes some twenty times its bytes
LANES, ROWS, LOOKS, MEMORY_BYTES = 2048, 1 << 16, 1 << 26, 4 << 30  # lanes of a map, of the table; looks at pieces of lines, a minute
KINDS = {"automobile": "car", "car": "car", "heavy_truck": "truck", "truck": "truck", "trailer": "truck", "bus": "bus", "van": "van",
         "person": "pedestrian", "pedestrian": "pedestrian", "rider": "cyclist", "bicycle": "cyclist", "cyclist": "cyclist",
         "motorcycle": "motorcycle", "animal": "animal"}
CLASSES = {"car": "automobile", "van": "automobile", "truck": "heavy_truck", "cyclist": "rider", "pedestrian": "person"}
LANE_KINDS = {"SHOULDER_LANE": "shoulder", "BICYCLE": "cycle"}
SHUTTERS = {"ROLLING_TOP_TO_BOTTOM": "rolling_top", "ROLLING_BOTTOM_TO_TOP": "rolling_bottom", "ROLLING_LEFT_TO_RIGHT": "rolling_left",
            "ROLLING_RIGHT_TO_LEFT": "rolling_right"}


def fail(text):
    sys.exit(f"usdz_scene: {text}")


# ---- reading: every value knows its place ----

ABSENT = object()


def told(held):
    """A value in a few words, for a message."""
    if held is ABSENT or held is None:
        return "none"
    if isinstance(held, (dict, list)):
        return f"{'an object' if isinstance(held, dict) else 'a list'} of {len(held)}"
    if isinstance(held, int) and abs(held) > 10**18:
        return "a larger number"
    return json.dumps(held, default=lambda other: type(other).__name__)[:60]


class Value:
    """A value of a scene and its place: archive, member of the archive, path. What it is asked to be, it is, or the run ends."""

    def __init__(self, place, held):
        self.place, self.held = place, held

    def refuse(self, expected, found=None):
        return fail(f"{self.place}: expected {expected}, found {told(self.held) if found is None else found}")

    def __getitem__(self, name):
        if not isinstance(self.held, dict):
            self.refuse("an object")
        return Value(f"{self.place}.{name if re.fullmatch('[A-Za-z_][A-Za-z0-9_]*', name) else json.dumps(name)[:60]}", self.held.get(name, ABSENT))

    def given(self):
        return self.held is not ABSENT and self.held is not None

    def items(self):
        if not isinstance(self.held, dict):
            self.refuse("an object")
        return [(name, self[name]) for name in self.held]

    def list(self, count=None, least=0):
        if not isinstance(self.held, list) or len(self.held) < least or count not in (None, len(self.held)):
            self.refuse(f"a list of {count}" if count is not None else f"a list of at least {least}" if least else "a list")
        return [Value(f"{self.place}[{i}]", held) for i, held in enumerate(self.held)]

    def number(self, most=PLACE_M, whole=False):
        kind = int if whole else (int, float)
        if not isinstance(self.held, kind) or isinstance(self.held, bool) or not -most <= self.held <= most:
            self.refuse(f"a{' whole' if whole else ''} number of at most {most:g}")
        return self.held

    def numbers(self, count=None, least=0, most=PLACE_M, whole=False):
        return [each.number(most, whole) for each in self.list(count, least)]

    def times(self, count=None):
        made = self.numbers(count, 1, EPOCH_US, True)
        for i in range(1, len(made)):
            if made[i] <= made[i - 1]:
                Value(f"{self.place}[{i}]", made[i]).refuse(f"a later time than {made[i - 1]}")
        return made

    def text(self):
        return self.held if isinstance(self.held, str) and self.held else self.refuse("a text")

    def label(self):
        """A text or a number that names something, as an id may be spelt."""
        text = str(self.held) if isinstance(self.held, int) and not isinstance(self.held, bool) else self.text()
        return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:57]

    def motion(self):
        """A matrix that turns and moves."""
        made = [row.numbers(4, most=10 * PLACE_M) for row in self.list(4)]
        axes = [row[:3] for row in made[:3]]
        turns = all(abs(sum(x * y for x, y in zip(a, b)) - (i == j)) < RIGID for i, a in enumerate(axes) for j, b in enumerate(axes))
        (a, b, c), (d, e, f), (g, h, i) = axes
        if not turns or a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0 or made[3] != [0, 0, 0, 1]:
            self.refuse("a rotation and a translation above [0, 0, 0, 1]", "another matrix")
        return made


def once(pairs):
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a member stands twice in an object")
    return made


class Scene:
    """An archive whose members are read whole."""

    def __init__(self, path):
        self.path = path
        if os.path.exists(path) and not os.path.isfile(path):
            fail(f"{path}: expected a USDZ, found no file")
        try:
            self.archive = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            fail(f"{path}: expected a USDZ, found that it cannot be read: {getattr(error, 'strerror', None) or error}")
        names = set()
        for info in self.archive.infolist():
            if info.filename in names:
                fail(f"{path}: {info.filename}: expected this member of the archive once, found it twice")
            names.add(info.filename)

    def bytes(self, member, most):
        try:
            info = self.archive.getinfo(member)
            if info.file_size > most:
                fail(f"{self.path}: {member}: expected at most {most} bytes, found {info.file_size}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others unpack all that they are given
                fail(f"{self.path}: {member}: expected a member that is stored or deflated, found compression {info.compress_type}")
            with self.archive.open(info) as stream:
                return stream.read(info.file_size + 1)
        except KeyError:
            return fail(f"{self.path}: {member}: expected this member of the archive, found none")
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
            return fail(f"{self.path}: {member}: expected a member that unpacks, found: {error}")

    def text(self, member):
        try:
            return self.bytes(member, TEXT_BYTES).decode()
        except UnicodeDecodeError as error:
            return fail(f"{self.path}: {member}: expected UTF-8, found {error.reason} at byte {error.start}")

    def json(self, member):
        try:
            return Value(f"{self.path}: {member}: $", json.loads(self.text(member), object_pairs_hook=once))
        except RecursionError:
            return fail(f"{self.path}: {member}: expected JSON, found that it is nested too deeply")
        except ValueError as error:
            return fail(f"{self.path}: {member}: expected JSON, found: {error}")


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def with_speeds(points):
    """[t, x, y, heading] with the speed between neighbours behind each."""
    made = []
    for i, point in enumerate(points):
        a, b = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
        made.append(point + [math.dist(a[1:3], b[1:3]) / (b[0] - a[0]) if b[0] > a[0] else 0.0])
    return made


def in_tenths(points, end_s):
    """[t, x, y, heading] of a track with points at least every tenth of a second, and two: AlpaSim smooths tracks, which bends
    sparse ones by metres, and takes none of one pose."""
    if len(points) == 1:
        return [points[0][:4], [max(end_s, points[0][0] + 0.1), *points[0][1:4]]]
    made = []
    for a, b in zip(points, points[1:]):
        parts, turn = max(1, math.ceil((b[0] - a[0]) / 0.1 - 1e-9)), math.remainder(b[3] - a[3], 2 * math.pi)
        made += [[a[k] + (b[k] - a[k]) * i / parts for k in range(3)] + [a[3] + turn * i / parts] for i in range(parts)]
    return made + [points[-1][:4]]


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


def lens_of(model):
    """A lens. Principal points there count from the corner of the first pixel, ours from its centre."""
    kind, numbers = model["type"].text().replace("-", "_"), model["parameters"]
    if kind not in ("ftheta", "opencv_fisheye", "opencv_pinhole", "pinhole"):
        model["type"].refuse("a lens ftheta, opencv_fisheye or opencv_pinhole")
    lens = dict(zip(("cx", "cy"), (at - 0.5 for at in numbers["principal_point"].numbers(2))))
    if kind == "ftheta":
        if numbers["linear_cde"].given() and numbers["linear_cde"].numbers() not in ([], [1, 0, 0]):
            numbers["linear_cde"].refuse("[1, 0, 0]", numbers["linear_cde"].held)
        return lens | {"model": "ftheta", "angle_to_pixels": numbers["angle_to_pixeldist_poly"].numbers(), "max_angle_rad": numbers["max_angle"].number()}
    lens |= dict(zip(("fx", "fy"), numbers["focal_length"].numbers(2)))
    if kind == "opencv_fisheye":
        return lens | {"model": "fisheye", "k": numbers["radial_coeffs"].numbers(), "max_angle_rad": numbers["max_angle"].number()}
    named = (("k", numbers["radial_coeffs"]), ("p", numbers["tangential_coeffs"]))
    return lens | {"model": "pinhole"} | {member: values.numbers() for member, values in named if values.given() and values.numbers()}


def padded(terms, count):
    """The terms with the zeros behind them that a rig leaves out and AlpaSim's lenses have."""
    return terms + [0.0] * (count - len(terms))


def model_of(camera):
    lens = camera["lens"]
    numbers = {"resolution": [camera["width"], camera["height"]], "shutter_type": "GLOBAL",
               "principal_point": [lens.get("cx", (camera["width"] - 1) / 2) + 0.5, lens.get("cy", (camera["height"] - 1) / 2) + 0.5]}
    if lens.get("model") == "ftheta":
        numbers |= {"reference_poly": "ANGLE_TO_PIXELDIST", "angle_to_pixeldist_poly": padded(lens["angle_to_pixels"], 6), "pixeldist_to_angle_poly": [],
                    "max_angle": lens["max_angle_rad"]}
        return {"type": "ftheta", "parameters": numbers}
    numbers |= {"focal_length": [lens["fx"], lens.get("fy", lens["fx"])]}
    if lens.get("model") == "fisheye":
        return {"type": "opencv_fisheye", "parameters": numbers | {"radial_coeffs": padded(lens.get("k", []), 4), "max_angle": lens["max_angle_rad"]}}
    bent = {"radial_coeffs": padded(lens.get("k", []), 6), "tangential_coeffs": padded(lens.get("p", []), 2)} if lens.get("k") or lens.get("p") else {
        "radial_coeffs": [], "tangential_coeffs": []}
    return {"type": "opencv_pinhole", "parameters": numbers | bent}


def rig_of(rigs, behind_m, scene):
    cameras = []
    for _, entry in rigs["camera_calibrations"].items():
        matrix, model = entry["T_sensor_rig"].motion(), entry["camera_model"]
        turn = dict(zip(("yaw_rad", "pitch_rad", "roll_rad"), turn_of(matrix)))
        place = {"x_m": matrix[0][3] - behind_m, "y_m": matrix[1][3], "z_m": matrix[2][3]}
        width, height = model["parameters"]["resolution"].numbers(2, whole=True)
        shutter = model["parameters"]["shutter_type"]
        cameras.append({"id": entry["logical_sensor_name"].text(), "width": width, "height": height, "pose": place | turn, "lens": lens_of(model)}
                       | ({"shutter": SHUTTERS[shutter.text()]} if shutter.given() and shutter.text() in SHUTTERS else {}))
    return {"id": scene, "cameras": cameras}


# ---- lanes ----

def parquet():
    try:
        import pyarrow.parquet
    except ImportError:
        fail("lanes lie in Parquet: pip install pyarrow (an import may have a map of your own, --map)")
    return pyarrow


def lane_rows(scene):
    """Rows of the table of lanes."""
    names = [name for name in scene.archive.namelist() if re.fullmatch(r"(clipgt|map_data)/([^/]*\.)?lane\.parquet", name)]
    if not names:
        fail(f"{scene.path}: the scene has no lanes (clipgt/lane.parquet or map_data/lane.parquet): give a map, --map MAP.json")
    data, arrow = io.BytesIO(scene.bytes(names[0], MEMBER_BYTES)), parquet()
    try:
        table = arrow.parquet.ParquetFile(data)
        unpacked = sum(table.metadata.row_group(i).total_byte_size for i in range(table.metadata.num_row_groups))
        for found, most, what in ((table.metadata.num_rows, ROWS, "rows"), (unpacked, MEMBER_BYTES, "bytes")):
            if not 0 <= found <= most:
                fail(f"{scene.path}: {names[0]}: expected a table of at most {most} {what}, found {found}")
        return Value(f"{scene.path}: {names[0]}: $", table.read().to_pylist()).list()
    except Exception as error:  # pylint: disable=broad-exception-caught  # of pyarrow's own, and of what it is built on
        return fail(f"{scene.path}: {names[0]}: expected a Parquet table, found: {str(error).splitlines()[0] if str(error) else type(error).__name__}")


def from_segment_m(at, a, b):
    dx, dy = b[0] - a[0], b[1] - a[1]
    length2 = dx * dx + dy * dy
    share = max(0.0, min(1.0, ((at[0] - a[0]) * dx + (at[1] - a[1]) * dy) / length2)) if length2 > 0 else 0.0
    return math.hypot(a[0] + share * dx - at[0], a[1] + share * dy - at[1])


class Looks:
    """Looks at pieces of lines, which a scene has so many of."""

    def __init__(self, scene):
        self.place, self.left = scene.path, LOOKS

    def from_segment_m(self, at, a, b):
        self.left -= 1
        if self.left < 0:
            fail(f"{self.place}: expected lanes that are told apart by {LOOKS} looks at their points, found more: give a map, --map MAP.json")
        return from_segment_m(at, a, b)

    def are_near(self, at, line, within_m):
        return any(self.from_segment_m(at, a, b) <= within_m for a, b in zip(line, line[1:]))


def way_of(log):
    """Points of a drive, none of its parts farther than some metres from one of them."""
    places = [point[1:3] for point in log]
    step_m = max(WAY_STEP_M, sum(math.dist(a, b) for a, b in zip(places, places[1:])) / WAY_POINTS)
    way = [places[0]]
    for a, b in zip(places, places[1:]):
        if math.dist(way[-1], b) >= step_m:
            parts = math.ceil(math.dist(a, b) / step_m)
            way += [[p + (q - p) * k / parts for p, q in zip(a, b)] for k in range(1, parts + 1)]
    return way + [places[-1]]


def near(line, way, looks):
    """Whether a lane's line comes within NEAR_M of the drive."""
    boxes = [[(min(point[i] for point in points), max(point[i] for point in points)) for i in (0, 1)] for points in (line, way)]
    if any(a[0] > b[1] + NEAR_M or b[0] > a[1] + NEAR_M for a, b in zip(*boxes)):
        return False
    at_hand = [at for at in way if all(low - NEAR_M <= at[i] <= high + NEAR_M for i, (low, high) in enumerate(boxes[0]))]
    return any(looks.are_near(at, line, NEAR_M) for at in at_hand)


def turn_between(first, second):
    (a, b), (c, d) = first, second
    return abs(math.remainder(math.atan2(d[1] - c[1], d[0] - c[0]) - math.atan2(b[1] - a[1], b[0] - a[0]), 2 * math.pi))


def share_edge(left, right, looks):
    """Whether the left edge of one lane is the right edge of another, which runs the same way."""
    if max(math.dist(left[i], right[i]) for i in (0, -1)) > JOIN_M or turn_between(left[:2], right[:2]) > JOIN_RAD:
        return False
    return all(looks.are_near(at, other, JOIN_M) for line, other in ((left, right), (right, left)) for at in line)


def link(lanes, rails, looks):
    """Joins ends to beginnings and neighbours to neighbours; how many of each."""
    joined, beside = 0, 0
    for lane in lanes:
        for other in lanes:
            end, begin = lane["centre_line"], other["centre_line"]
            if lane is not other and math.dist(end[-1], begin[0]) <= JOIN_M and turn_between(end[-2:], begin[:2]) < JOIN_RAD:
                lane["successors"].append(other["id"])
                joined += 1
            drives = lane is not other and lane["kind"] == other["kind"] == "driving" and "left" not in lane and "right" not in other
            if drives and share_edge(rails[lane["id"]][0], rails[other["id"]][1], looks):
                lane["left"], other["right"] = other["id"], lane["id"]
                beside += 1
    return joined, beside


def lanes_of(scene, world, way):
    """Lanes near ego's way, linked; how many ends and neighbours were."""
    lanes, edges, looks = [], {}, Looks(scene)
    for row in lane_rows(scene):
        rails = []
        for side in ("left_rail", "right_rail"):
            points = [[point[axis].number(10 * PLACE_M) for axis in ("x", "y", "z")] + [1.0] for point in row["lane"][side].list(least=2)]
            rails.append([[sum(a * b for a, b in zip(world[i], point)) for i in (0, 1)] for point in points])
        if len(rails[0]) != len(rails[1]):
            row["lane"]["right_rail"].refuse(f"as many points as left_rail has, {len(rails[0])}")
        centre = [[(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] for a, b in zip(*rails)]
        identity = f"lane_{row['key']['map_id'].label()}"
        if identity in edges:
            row["key"]["map_id"].refuse("an id of its own")
        edges[identity] = rails
        if near(centre, way, looks):
            if len(lanes) == LANES:
                fail(f"{scene.path}: expected at most {LANES} lanes within {NEAR_M:g} m of ego's drive, found more: give a map, --map MAP.json")
            uses = [use.text() for use in row["lane"]["use_types"].list()] if row["lane"]["use_types"].given() else []
            kind = next((LANE_KINDS[use] for use in uses if use in LANE_KINDS), "driving")
            lanes.append({"id": identity, "kind": kind, "centre_line": centre, "width_m": [math.dist(a, b) for a, b in zip(*rails)], "successors": []})
    if not lanes:
        fail(f"{scene.path}: expected a lane within {NEAR_M:g} m of ego's drive, found none of {len(edges)}: give a map, --map MAP.json")
    return (lanes, *link(lanes, edges, looks))


def rails_of(lane):
    """Left and right edges of a lane whose centre line has points."""
    line, sides = lane["centre_line"], ([], [])
    widths = lane["width_m"]
    for i, at in enumerate(line):
        a, b = line[max(i - 1, 0)], line[min(i + 1, len(line) - 1)]
        heading, half = math.atan2(b[1] - a[1], b[0] - a[0]), (widths[i] if isinstance(widths, list) else widths) / 2
        for side, sign in zip(sides, (1, -1)):
            side.append({"x": at[0] - sign * half * math.sin(heading), "y": at[1] + sign * half * math.cos(heading), "z": 0.0})
    return sides


# ---- scenes ----

def agent_of(track, label, size, points):
    points = points if any(point[1:] != points[0][1:] for point in points) else points[:1]
    made = {"id": track, "kind": KINDS.get(label.lower(), "object"), "behaviour": "replay" if len(points) > 1 else "static"}
    made |= dict(zip(("length_m", "width_m", "height_m"), size))
    if len(points) > 1:
        return made | {"trajectory": with_speeds(points)}
    return made | {"pose": dict(zip(("x_m", "y_m", "heading_rad"), points[0][1:]))}


def heading_of(pose):
    """Heading of a track's pose [x, y, z, qx, qy, qz, qw]."""
    qx, qy, qz, qw = pose.numbers(7)[3:]
    if abs(math.hypot(qx, qy, qz, qw) - 1) > 10 * RIGID:
        pose.refuse("a quaternion of length 1 behind the place", f"{math.hypot(qx, qy, qz, qw):g}")
    return math.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))


def agents_of(scene, begin_us):
    agents, ids = [], set()
    for _, sequence in scene.json("sequence_tracks.json").items():
        tracks, sizes = sequence["tracks_data"], sequence["cuboidtracks_data"]["cuboids_dims"]
        names = tracks["tracks_id"].list()
        columns = [tracks[name].list(len(names)) for name in ("tracks_label_class", "tracks_timestamps_us", "tracks_poses")]
        for name, size, label, times, poses in zip(names, sizes.list(len(names)), *columns):
            track = "track_" + name.label()
            if track in ids:
                name.refuse("an id of its own")
            ids.add(track)
            made_us = times.times()
            points = [[(at_us - begin_us) / 1e6, *pose.numbers(7)[:2], heading_of(pose)] for at_us, pose in zip(made_us, poses.list(len(made_us)))]
            points = [point for point in points if point[0] >= 0]
            if points:
                agents.append(agent_of(track, label.text(), size.numbers(3), points))
    return agents


def read_rigs(scene):
    """Content of rig_trajectories.json, its rig trajectory, and the id of the scene."""
    rigs = scene.json("rig_trajectories.json")
    ego = rigs["rig_trajectories"].list(1)[0]
    found = re.search(r"^scene_id:\s*['\"]?([^'\"\n]+)", scene.text("metadata.yaml"), re.M)
    return rigs, ego, re.sub(r"[^A-Za-z0-9_.-]", "_", found.group(1) if found else ego["sequence_id"].text())[:60]


def import_scene(path, map_file):
    scene = Scene(path)
    rigs, ego, name = read_rigs(scene)
    world = rigs["world_to_nre"]["matrix"].motion()
    behind_m, (length_m, width_m, height_m) = ego["rig_bbox"]["centroid"].numbers(3)[0], ego["rig_bbox"]["dim"].numbers(3)
    times = ego["T_rig_world_timestamps_us"].times()
    log = []
    for at_us, matrix in zip(times, ego["T_rig_worlds"].list(len(times), 2)):
        pose = product(world, matrix.motion())
        heading = math.atan2(pose[1][0], pose[0][0])
        log.append([(at_us - times[0]) / 1e6, pose[0][3] + behind_m * math.cos(heading), pose[1][3] + behind_m * math.sin(heading), heading])
    agents = agents_of(scene, times[0])
    rig = rig_of(rigs, behind_m, name)
    if map_file is not None:
        chart, said = {"file": map_file}, f"map {map_file}"
    else:
        lanes, joined, beside = lanes_of(scene, world, way_of(log))
        chart = {"lanes": lanes}
        said = f"{len(lanes)} lanes, {joined} ends joined to beginnings within {JOIN_M} m, {beside} pairs of neighbours"
    made = {"id": name, "title": f"AlpaSim's scene {name}"[:200], "source": "AlpaSim, USDZ", "map": chart, "agents": agents,
            "horizon_s": math.floor(min(log[-1][0], 600.0) * 10 + 1e-9) / 10,
            "ego": {"pose": dict(zip(("x_m", "y_m", "heading_rad"), log[0][1:])), "speed_mps": with_speeds(log)[0][4], "length_m": length_m,
                    "width_m": width_m, "height_m": height_m, "wheelbase_m": 2 * behind_m, "log": with_speeds(log)}}
    return {"scenario": made, "rig": rig, "said": f"{made['horizon_s']} s, {len(agents)} agents, {len(rig['cameras'])} cameras, {said}"}


def import_rig(path):
    rigs, ego, name = read_rigs(Scene(path))
    return {"rig": rig_of(rigs, ego["rig_bbox"]["centroid"].numbers(3)[0], name)}


def bare(named, prefix):
    """Ids as they were before an import put the prefix in front, but where another one has what is left."""
    ids = [each["id"] for each in named]
    return [identity if identity.removeprefix(prefix) in ids else identity.removeprefix(prefix) for identity in ids]


def write_scene(archive, scene, rig):
    ego = scene["ego"]
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
    for name, agent in zip(bare(scene["agents"], "track_"), scene["agents"]):
        pose, size = agent["pose"], [agent[name] for name in ("length_m", "width_m", "height_m")]
        given = agent.get("trajectory") or [[0.0, pose["x_m"], pose["y_m"], pose["heading_rad"], 0.0]]
        points = in_tenths(given, ego["log"][-1][0])
        row = (name, CLASSES.get(agent["kind"], agent["kind"]), ["CONTROLLABLE"] if len(given) > 1 else [],
               [round(point[0] * 1e6) for point in points],
               [[x, y, size[2] / 2, 0, 0, math.sin(h / 2), math.cos(h / 2)] for _, x, y, h in points])
        for column, value in zip(tracks.values(), row):
            column.append(value)
        sizes.append(size)
    archive.writestr("sequence_tracks.json", json.dumps({scene["id"]: {"tracks_data": tracks, "cuboidtracks_data": {"cuboids_dims": sizes}}}))
    archive.writestr("metadata.yaml", f"scene_id: {scene['id']}\nversion_string: swerve\ntraining_date: ''\ndataset_hash: ''\nuuid: ''\n"
                     f"is_resumable: false\nsensors: {{camera_ids: {json.dumps(list(cameras))}, lidar_ids: []}}\nlogger: {{}}\n"
                     f"time_range: {{start: {times_us[0] / 1e6}, end: {times_us[-1] / 1e6}}}\n")
    lanes, uses = scene["map"]["lanes"], {kind: use for use, kind in LANE_KINDS.items()}
    rows = [{"key": {"map_id": name}, "lane": dict(zip(("left_rail", "right_rail"), rails_of(lane))) | {
        "use_types": [uses[lane["kind"]]] if lane["kind"] in uses else []}} for name, lane in zip(bare(lanes, "lane_"), lanes)]
    arrow, data = parquet(), io.BytesIO()
    arrow.parquet.write_table(arrow.Table.from_pylist(rows), data)
    archive.writestr("clipgt/lane.parquet", data.getvalue())


def main():
    if len(sys.argv) < 3:
        fail(f"expected a verb and a file\n{__doc__}")
    verb, name, *rest = sys.argv[1:]
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    gc.disable()  # which looks at all of a large scene again and again, and finds nothing: values refer to no one above them
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES if most == resource.RLIM_INFINITY else min(most, MEMORY_BYTES), most))
    try:
        if verb == "export":
            given = json.load(sys.stdin)
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:  # stored, as USDZ wants it
                write_scene(archive, given["scenario"], given["rig"])
            sys.stdout.buffer.write(packed.getvalue())
        else:
            json.dump(import_rig(name) if verb == "rig" else import_scene(name, *(rest or [None])), sys.stdout, allow_nan=False)
    except MemoryError:
        fail(f"{name}: expected a scene that takes at most {MEMORY_BYTES >> 30} GiB of memory, found more")
    except Exception as error:  # pylint: disable=broad-exception-caught  # a fault of this adapter, told as one
        fail(f"{name}: the adapter failed, which is a fault of swerve's ({type(error).__name__}: {error})")


if __name__ == "__main__":
    code = 0
    try:
        main()
        sys.stdout.flush()
    except (SystemExit, OSError) as end:
        print(end, file=sys.stderr, flush=True)
        code = 1
    os._exit(code)  # at once: threads of pyarrow's now and then abort an interpreter that ends in order
