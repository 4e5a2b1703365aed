#!/usr/bin/env python3
"""Goal: `swerve draw` says and shows what a scenario holds, and `swerve show --video` writes the same frames
through ffmpeg and as an animated PNG, says what it did where there is no ffmpeg, and leaves nothing half.
Method: a scenario whose crossing point is known; pictures are decoded here; ffmpeg is a script that keeps
what it is given, so its frames can be compared with those of the PNG one by one.

Usage: test_draw.py SWERVE SOURCE_ROOT
"""
import base64
import ctypes
import itertools
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
import zlib

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
HOSTILE = "a<b> \u001b[31m&\"'</text>"
SCENARIO = {
    "id": "sketch", "title": HOSTILE,
    "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [400, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
    "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 10, "route": ["east"]},
    "agents": [{"id": "walker", "kind": "pedestrian", "pose": {"x_m": 60, "y_m": -6, "heading_rad": 1.5707963},
                "speed_mps": 0, "behaviour": "script",
                "manoeuvres": [{"when": "ego_tta", "value": 2.5, "do": "path", "path": [[60, -6], [60, 8]],
                                "speed_mps": 1.5, "rate_mps2": 2}]},
               {"id": "ghost", "kind": "car", "pose": {"lane": "east", "s_m": 120}, "hidden": True, "behaviour": "static"}],
    "branches": [{"id": "brake", "at_tick": 10, "interventions": [{"kind": "ego_brake", "tick": 10, "decel_mps2": 4}]}],
    "horizon_s": 4}
KEEPER = """#!/bin/sh
# Stands in for ffmpeg: keeps its words and what comes in, and writes a file where it is told to.
for last; do :; done
printf '%s\\n' "$@" >{work}/words
cat >{work}/raw
printf made >"${{last#file:}}"
"""
BROKEN = "#!/bin/sh\necho 'no such encoder' >&2\nexit 1\n"


def swerve(*arguments, path=None):
    environment = dict(os.environ, PATH=path) if path else None
    return subprocess.run([SWERVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env=environment)


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body), kind
        yield kind, body
        at += 12 + size


def unfilter(data, width, height):
    """Lines of RGB; filters none, sub, up, average, Paeth. Sums of whole lines are made at once: frames have megabytes."""
    stride, lines, above = width * 3, [], bytes(width * 3)
    low, high = (int.from_bytes(bytes([bits]) * stride, "little") for bits in (0x7F, 0x80))
    for y in range(height):
        kind, line = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        if kind == 1:
            for channel in range(3):
                line[channel::3] = bytes(map((255).__and__, itertools.accumulate(line[channel::3])))
        elif kind == 2:
            a, b = int.from_bytes(line, "little"), int.from_bytes(above, "little")
            line = (((a & low) + (b & low)) ^ ((a ^ b) & high)).to_bytes(stride, "little")
        elif kind:
            for i, up in enumerate(above):
                left, corner = (line[i - 3], above[i - 3]) if i >= 3 else (0, 0)
                if kind == 3:
                    guess = (left + up) // 2
                else:
                    a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                    guess = left if a <= b and a <= c else up if b <= c else corner
                line[i] = (line[i] + guess) & 255
        lines.append(bytes(line))
        above = lines[-1]
    return lines


def frames(path):
    """(width, height, the frames of an animated PNG as raw RGB)."""
    canvas, count, sequence, found, place = [], None, 0, [], None
    for kind, body in chunks(pathlib.Path(path).read_bytes()):
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert (depth, colour) == (8, 2)
            canvas = [bytearray(width * 3) for _ in range(height)]
        elif kind == b"acTL":
            count = struct.unpack(">I", body[:4])[0]
        elif kind == b"fcTL":
            number, *place = struct.unpack(">IIIII", body[:20])
            assert number == sequence and struct.unpack(">HHBB", body[20:]) == (1, 10, 0, 0), body
            sequence += 1
        elif kind in (b"IDAT", b"fdAT"):
            if kind == b"fdAT":
                assert struct.unpack(">I", body[:4])[0] == sequence
                sequence += 1
                body = body[4:]
            w, h, x, y = place
            for i, line in enumerate(unfilter(zlib.decompress(body), w, h)):
                canvas[y + i][3 * x:3 * (x + w)] = line
            found.append(b"".join(canvas))
    assert len(found) == count, (len(found), count)
    return width, height, found


def words_say_what_the_scenario_holds():
    made = swerve("draw", "sketch.json")
    assert made.returncode == 0 and made.stderr == "", made
    for part in ["sketch\n", "; 1 lane\n", "10 m/s, 1 lane of route", "1  walker: pedestrian", "when ego is less than 2.5 s away",
                 "2  ghost: car", "hidden", "at 1.0 s  brake: ego_brake"]:
        assert part in made.stdout, (part, made.stdout)
    assert "\u001b" not in made.stdout, "a title may not move the cursor"
    crossing = next(line for line in made.stdout.splitlines() if "crosses" in line)
    assert abs(float(crossing.split("route ")[1].split()[0]) - 40) < 0.3, crossing


def pictures_decode_and_texts_are_inert():
    assert swerve("draw", "sketch.json", "-o", "a.svg").returncode == 0
    root = tree.parse("a.svg").getroot()
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text and text.startswith("a<b>") for text in texts), texts
    kinds = {one.tag.split("}")[1] for one in root.iter()}
    assert kinds <= {"svg", "rect", "polygon", "polyline", "text"}, kinds
    assert swerve("draw", "sketch.json", "-o", "a.png").returncode == 0
    parts = list(chunks(pathlib.Path("a.png").read_bytes()))
    width, height = struct.unpack(">II", parts[0][1][:8])
    lines = unfilter(zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT")), width, height)
    found = {bytes(line[i:i + 3]) for line in lines for i in range(0, len(line), 3)}
    for colour in [(0x23, 0x62, 0xc9), (0xc8, 0x35, 0x2b), (0xc3, 0xca, 0xd1)]:  # ego, a pedestrian, road
        assert bytes(colour) in found, colour


def numbers_cover_neither_each_other_nor_anybody():
    crowd = json.loads(json.dumps(SCENARIO))
    crowd["id"] = "crowd"
    crowd["agents"] = [{"id": f"walker_{i}", "kind": "pedestrian", "behaviour": "static",
                        "pose": {"x_m": 60 + 0.8 * (i % 4), "y_m": -5 - 0.8 * (i // 4), "heading_rad": 0}} for i in range(12)]
    crowd["branches"] = []
    pathlib.Path("crowd.json").write_text(json.dumps(crowd))
    made = swerve("draw", "crowd.json", "-o", "crowd.svg")
    assert made.returncode == 0, made
    texts = [one for one in tree.parse("crowd.svg").getroot().iter("{http://www.w3.org/2000/svg}text")]
    numbers = {one.text: (float(one.get("x")), float(one.get("y"))) for one in texts if one.text and one.text.isdigit()}
    assert sorted(map(int, numbers)) == list(range(1, 13)), numbers
    for one, (x, y) in numbers.items():
        for other, (u, v) in numbers.items():
            assert one == other or abs(x - u) >= 6 or abs(y - v) >= 9, (one, other, numbers)


def stop_lines_are_in_words_and_legend():
    made = swerve("draw", str(ROOT / "scenarios/signals/red_ahead.json"), "-o", "lights.svg")
    assert made.returncode == 0 and "stop lines of traffic lights at the start: 2 red, 2 green\n" in made.stdout, made
    legend = pathlib.Path("lights.svg").read_text()
    assert "bars across lanes: stop lines" in legend and "dashed: of stop" in legend


def wrong_uses_are_named():
    for code, arguments in [(2, ["draw", "sketch.json", "-o", "a.jpg"]), (3, ["draw", "sketch.json", "--scenario", "x"]),
                            (3, ["draw", "none.json"]), (2, ["show", "1", "--store", "a.db", "--video", "a.avi"]),
                            (3, ["show", "1", "--store", "a.db", "--video", "nowhere/a.png"]),
                            (3, ["show", "999", "--store", "a.db", "--video", "a.png"])]:
        made = swerve(*arguments)
        assert made.returncode == code and made.stderr.startswith("swerve: "), (arguments, made)


def both_ways_write_the_same_frames():
    work = pathlib.Path("keeper")
    work.mkdir()
    (work / "ffmpeg").write_text(KEEPER.format(work=work.resolve()))
    (work / "ffmpeg").chmod(0o755)
    made = swerve("show", "1", "--store", "a.db", "--video", "-v.mp4", path=f"{work.resolve()}:{os.environ['PATH']}")
    assert made.returncode == 0 and pathlib.Path("-v.mp4").read_text() == "made", made
    words = (work / "words").read_text().splitlines()
    assert words[-1].startswith("file:-v.mp4."), words
    assert swerve("show", "1", "--store", "a.db", "--video", "v.png").returncode == 0
    width, height, pictures = frames("v.png")
    ticks = len(swerve("show", "1", "--store", "a.db", "--trace").stdout.splitlines())
    raw = (work / "raw").read_bytes()
    assert len(pictures) == ticks and f"{width}x{height}" in words, (len(pictures), ticks)
    assert raw == b"".join(pictures), "ffmpeg is shown other frames"
    # The road is large, and each camera stands beside it pixel by pixel: no column is the next one's copy.
    assert (width, height) == (1280, 720), (width, height)
    column = lambda camera, x: bytes(pictures[0][3 * (y * width + width - 312 + 104 * camera + x) + c] for y in range(8, 72) for c in range(3))
    for camera in range(3):
        shown = [column(camera, x) for x in range(96)]
        assert sum(one != other for one, other in zip(shown, shown[1:])) > 80, f"camera {camera}"
    assert column(0, 40) != column(1, 40) != column(2, 40)
    assert len(set(pictures)) == ticks, "a drive at 10 m/s looks different at each tick"


def without_ffmpeg_it_says_so():
    os.mkdir("empty")
    made = swerve("show", "1", "--store", "a.db", "--video", "w.mp4", path=os.path.realpath("empty"))
    assert made.returncode == 0 and made.stdout.startswith("w.png: there is no ffmpeg"), made
    assert not os.path.exists("w.mp4") and frames("w.png")[2] == frames("v.png")[2]


def what_fails_leaves_nothing():
    work = pathlib.Path("broken")
    work.mkdir()
    (work / "ffmpeg").write_text(BROKEN)
    (work / "ffmpeg").chmod(0o755)
    before = sorted(os.listdir("."))
    made = swerve("show", "1", "--store", "a.db", "--video", "x.gif", path=f"{work.resolve()}:{os.environ['PATH']}")
    assert made.returncode == 4 and "no such encoder" in made.stderr, made
    assert sorted(os.listdir(".")) == before, os.listdir(".")


def rigs_are_looked_through():
    rig = {"id": "two", "cameras": [
        {"id": "flat", "width": 320, "height": 180, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5}, "lens": {"fx": 200}},
        {"id": "round", "width": 120, "height": 100, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5, "pitch_rad": 0.2},
         "lens": {"model": "fisheye", "fx": 40}}],
        "lidars": [{"id": "roof", "pose": {"x_m": 0, "y_m": 0, "z_m": 1.9}, "azimuths": 360, "range_m": 100, "elevations_rad": [-0.1]}]}
    pathlib.Path("two.json").write_text(json.dumps(rig))
    for words in (["sketch.json"], ["--outcome", "1", "--tick", "5", "--store", "a.db"]):
        made = swerve("rig", "draw", "two.json", *words, "-o", "through")
        assert made.returncode == 0, made
        for name, size in (("flat", (320, 180)), ("round", (120, 100)), ("roof", (800, 800))):
            head = pathlib.Path(f"through/{name}.png").read_bytes()
            assert struct.unpack(">II", head[16:24]) == size, name
    late = swerve("rig", "draw", "two.json", "--outcome", "1", "--tick", "9999", "--store", "a.db", "-o", "through")
    assert late.returncode != 0 and "found 9999" in late.stderr, late
    told = json.loads(swerve("rig", "show", "two.json", "--json").stdout)
    assert told["cameras"][0]["lens"]["cx"] == 159.5, told
    rig["cameras"][0]["lens"] = {"fx": 200, "k": [-9000]}
    pathlib.Path("two.json").write_text(json.dumps(rig))
    bad = swerve("rig", "check", "two.json")
    assert bad.returncode == 3 and bad.stderr.startswith("swerve: two.json: camera flat: expected a lens"), bad
    # Everything that is wrong is said at once.
    rig["cameras"][0].update(width=1, rate_hz=15, lens={"fx": 0})
    rig["cameras"][1]["pose"]["z_m"] = -3
    rig["lidars"][0]["range_m"] = "far"
    pathlib.Path("two.json").write_text(json.dumps(rig))
    bad = swerve("rig", "check", "two.json")
    said = bad.stderr.splitlines()
    assert bad.returncode == 3 and len(said) == 5, bad
    for line, place in zip(said, ("cameras[0].width", "cameras[0].rate_hz", "cameras[0].lens.fx", "cameras[1].pose.z_m", "lidars[0].range_m")):
        assert line.startswith(f"swerve: two.json: $.{place}: expected"), line


def nuscenes(folder, data=None, calibrated=None):
    """Tables of a made-up car, in the shape of v1.0-mini's."""
    folder.mkdir(exist_ok=True)
    half = math.sqrt(0.5)
    front = {"token": "c1", "sensor_token": "s1", "translation": [1.7, 0.02, 1.51], "rotation": [0.5, -0.5, 0.5, -0.5],
             "camera_intrinsic": [[1266.4, 0, 816.3], [0, 1266.4, 491.5], [0, 0, 1]]}
    tables = {
        "sensor": [{"token": "s1", "channel": "CAM_FRONT", "modality": "camera"},
                   {"token": "s2", "channel": "LIDAR_TOP", "modality": "lidar"},
                   {"token": "s3", "channel": "RADAR_FRONT", "modality": "radar"},
                   {"token": "s4", "channel": "CAM_LEFT", "modality": "camera"}],
        "calibrated_sensor": [
            {**front, **(calibrated or {})},
            {"token": "c9", "sensor_token": "s1", "translation": [9, 9, 9], "rotation": [1, 0, 0, 0], "camera_intrinsic": []},
            {"token": "c2", "sensor_token": "s2", "translation": [0.94, 0, 1.84], "rotation": [half, 0, 0, -half],
             "camera_intrinsic": []},
            {"token": "c3", "sensor_token": "s3", "translation": [3, 0, 0.5], "rotation": [1, 0, 0, 0], "camera_intrinsic": []},
            {"token": "c4", "sensor_token": "s4", "translation": [1.5, 0.5, 1.5], "rotation": left_and_down(0.1),
             "camera_intrinsic": front["camera_intrinsic"]}],
        "sample_data": data or [
            {"token": "d0", "sample_token": "a", "calibrated_sensor_token": "c9", "is_key_frame": False, "width": 1600, "height": 900},
            {"token": "d1", "sample_token": "a", "calibrated_sensor_token": "c1", "is_key_frame": True, "width": 1600, "height": 900},
            {"token": "d2", "sample_token": "a", "calibrated_sensor_token": "c2", "is_key_frame": True, "width": 0, "height": 0},
            {"token": "d3", "sample_token": "a", "calibrated_sensor_token": "c3", "is_key_frame": True, "width": 0, "height": 0},
            {"token": "d4", "sample_token": "b", "calibrated_sensor_token": "c4", "is_key_frame": True, "width": 800, "height": 450}],
    }
    for name, rows in tables.items():
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1))


def left_and_down(pitch_rad):
    """Of a camera (x right, y down, z ahead) that looks to the left of the car and then down."""
    def times(a, b):
        return [a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
                a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]]
    half = math.sqrt(0.5)
    left, down = [half, 0, 0, half], [math.cos(pitch_rad / 2), 0, math.sin(pitch_rad / 2), 0]
    return times(times(left, down), [0.5, -0.5, 0.5, -0.5])


def rigs_come_from_nuscenes():
    folder = pathlib.Path("v1.0-mini")
    nuscenes(folder)
    made = swerve("rig", "from-nuscenes", str(folder))
    assert made.returncode == 0 and "1 cameras, 1 lidars" in made.stderr, made
    pathlib.Path("zoe.json").write_text(made.stdout)
    assert swerve("rig", "check", "zoe.json").returncode == 0
    rig = json.loads(made.stdout)
    camera, lidar = rig["cameras"][0], rig["lidars"][0]
    assert (camera["id"], camera["width"], camera["lens"]["fx"], camera["lens"]["cy"]) == ("CAM_FRONT", 1600, 1266.4, 491.5), rig
    assert lidar["id"] == "LIDAR_TOP" and len(lidar["elevations_rad"]) == 32, rig
    for sensor, x_m in ((camera, 1.7), (lidar, 0.94)):
        pose = sensor["pose"]
        assert abs(pose["x_m"] - (x_m - 1.294)) < 1e-9, pose
        assert all(abs(pose.get(name, 0)) < 1e-9 for name in ("roll_rad", "pitch_rad", "yaw_rad")), pose
    other = json.loads(swerve("rig", "from-nuscenes", str(folder), "--sample", "b", "--rear-axle", "1.5").stdout)["cameras"]
    assert [one["id"] for one in other] == ["CAM_LEFT"] and abs(other[0]["pose"]["x_m"]) < 1e-9, other
    angles = [other[0]["pose"].get(name, 0) for name in ("roll_rad", "pitch_rad", "yaw_rad")]
    assert all(abs(found - right) < 1e-9 for found, right in zip(angles, (0, 0.1, math.pi / 2))), angles
    none = swerve("rig", "from-nuscenes", str(folder), "--sample", "z")
    assert none.returncode != 0 and 'found none of "z"' in none.stderr, none
    nuscenes(folder, calibrated={"rotation": [1, 1, 0, 0]})
    long = swerve("rig", "from-nuscenes", str(folder))
    assert long.returncode == 3 and "$[0]: rotation: expected a quaternion" in long.stderr, long
    (folder / "sample_data.json").write_text('[{"is_key_frame": true}]')
    short = swerve("rig", "from-nuscenes", str(folder))
    assert short.returncode == 3 and "sample_data.json: $[0].sample_token" in short.stderr, short
    (folder / "sample_data.json").write_text("{}")
    assert "expected an array of records" in swerve("rig", "from-nuscenes", str(folder)).stderr
    (folder / "sample_data.json").write_text('[{"x": "' + 100000 * "y" + '"}]')
    assert "record 0: expected at most 65536 bytes" in swerve("rig", "from-nuscenes", str(folder)).stderr
    (folder / "sample_data.json").unlink()
    os.mkfifo(folder / "sample_data.json")
    assert "sample_data.json: expected a regular file" in swerve("rig", "from-nuscenes", str(folder)).stderr


PLANNER = """
import json
import sys
sys.path.insert(0, {scripts!r})
import swerve_planner
class Eyes(swerve_planner.Planner):
    rig = {rig!r}
    sensors = {sensors!r}
    wants = {wants}
    def act(self, observation):
        for id, shape in {shapes!r}.items():
            frame = observation.sensors[id].frame
            size = tuple(getattr(frame, "shape", (len(bytes(frame)),)))
            assert size == shape or shape is None and bytes(frame)[:2] == b"\\xff\\xd8", (id, size)
            assert observation.sensors[id].time_ns[-1] == observation.time_ns
        if "quick" in observation.sensors:
            self.moments(observation.sensors["quick"], observation.sensors["roof"], observation.time_ns)
            if observation.tick == 5:
                with open("seen.json", "w") as out:
                    json.dump({{name: [bytes(part).hex() for part in observation.sensors[name].frames] for name in
                               ("quick", "back", "roof") if name != "roof" or hasattr(observation.sensors[name].frame, "dtype")}}, out)
        return -1.0, 0.0
    def moments(self, quick, roof, now_ns):
        assert len(quick.frames) == len(quick.time_ns) == (3 if now_ns > 0 else 1), quick.time_ns
        assert all(frame.shape == (20, 32, 3) for frame in quick.frames)
        rows = quick.row_times_ns(0)
        assert (quick.shutter, len(rows), rows[0] - rows[-1]) == ("bottom", 20, 25_000_000), rows
        assert rows[0] == now_ns - (len(quick.frames) - 1) * 100_000_000 // 3, rows
        times, points = roof.point_times_ns(), roof.frame
        def column(name):
            return points[name].tolist() if hasattr(points, "dtype") else [getattr(point, name) for point in points]
        assert len(times) == len(points) > 50 and set(column("ring")) <= {{0, 1, 2}}, len(points)
        assert now_ns - 100_000_000 <= times[0] <= times[-1] < now_ns, times
        ground = [z_m for z_m, ring in zip(column("z_m"), column("ring")) if ring == 2]
        assert any(abs(z_m + 2) < 1e-3 for z_m in ground), ground
swerve_planner.run(Eyes)
"""


def drive(name, store, *words, rig=None, sensors=(), wants=0, shapes=None):
    text = PLANNER.format(scripts=str(ROOT / "scripts"), rig=rig, sensors=list(sensors), wants=wants, shapes=shapes or {})
    pathlib.Path(f"{name}.py").write_text(text)
    return swerve("run", "sketch.json", "--world", "object", "--nominal", "--store", store, "--json", "--planner",
                  f"exec:{sys.executable} {name}.py", *words)


def mcap_messages(path):
    """Messages of a file, whose chunks are compressed with zstd: {topic: [(time_ns, message)]}."""
    zstd, data = ctypes.CDLL("libzstd.so.1"), path.read_bytes()
    zstd.ZSTD_decompress.restype = ctypes.c_size_t

    def records(data, at, end):
        while at < end:
            size = int.from_bytes(data[at + 1:at + 9], "little")
            yield data[at], data[at + 9:at + 9 + size]
            at += 9 + size
    topics, found, last = {}, {}, 0
    for kind, chunk in records(data, 8, len(data) - 8):
        if kind != 6:
            continue
        whole, name = int.from_bytes(chunk[16:24], "little"), int.from_bytes(chunk[28:32], "little")
        out, packed = ctypes.create_string_buffer(whole), chunk[32 + name + 8:]
        assert zstd.ZSTD_decompress(out, ctypes.c_size_t(whole), packed, ctypes.c_size_t(len(packed))) == whole
        for inner, record in records(out.raw, 0, whole):
            if inner == 4:
                size = int.from_bytes(record[4:8], "little")
                topics[record[:2]] = record[8:8 + size].decode()
            elif inner == 5:
                time_ns = int.from_bytes(record[6:14], "little")
                assert time_ns >= last, (time_ns, last)
                last = time_ns
                found.setdefault(topics[record[:2]], []).append((time_ns, json.loads(record[22:])))
    return found


def a_recording_has_what_the_planner_saw():
    made = swerve("export", "1", "--store", "ours.db", "--format", "mcap", "-o", "ours.mcap")
    assert made.returncode == 0, made
    found = mcap_messages(pathlib.Path("ours.mcap"))
    assert "/camera/front" not in found and len(found["/camera/quick"]) == 3 * len(found["/camera/flat"]) - 2, found.keys()
    seen = json.loads(pathlib.Path("seen.json").read_text())
    at = {topic: [base64.b64decode(message["data"]) for time_ns, message in found[topic] if 400_000_000 < time_ns <= 500_000_000]
          for topic in ("/camera/quick", "/camera/back", "/lidar/roof")}
    assert [len(at[topic]) for topic in at] == [3, 1, 1] and all(file[:2] == b"\xff\xd8" for file in at["/camera/quick"]), at
    assert at["/camera/back"][0].hex() == seen["back"][0], "the JPEG file that the planner had"
    cloud = found["/lidar/roof"][5][1]
    if "roof" in seen:
        assert at["/lidar/roof"][0].hex() == seen["roof"][0], "the points that the planner had"
    points = list(struct.iter_unpack("<3f2BH", at["/lidar/roof"][0]))
    assert cloud["point_stride"] == 16 and {field["name"]: field["offset"] for field in cloud["fields"]}["ring"] == 13, cloud["fields"]
    assert len(points) > 50 and {point[4] for point in points} <= {0, 1, 2}, len(points)
    lens = found["/camera/quick/calibration"][0][1]
    assert (lens["width"], lens["K"][0], lens["K"][2], len(lens["D"])) == (32, 20, 15.5, 8), lens
    places = {message["child_frame_id"]: message for _, message in found["/tf"]}
    assert set(places) == {"ego", "flat", "back", "quick", "roof"}, places.keys()

    def ahead(name, axis):
        """Direction of a sensor's axis on ego."""
        x, y, z, w = (places[name]["rotation"][key] for key in "xyzw")
        matrix = [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                  [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                  [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
        return [row[axis] for row in matrix]
    for name, axis, right in (("quick", 2, (math.cos(0.1), 0, -math.sin(0.1))), ("quick", 0, (0, -1, 0)), ("roof", 0, (1, 0, 0)),
                              ("back", 2, (math.cos(3.1), math.sin(3.1), 0))):
        assert all(abs(a - b) < 1e-6 for a, b in zip(ahead(name, axis), right)), (name, ahead(name, axis))
    shown = swerve("rig", "draw", "pair.json", "--outcome", "1", "--tick", "5", "--store", "ours.db", "-o", "five")
    assert shown.returncode == 0, shown
    parts = [body for kind, body in chunks(pathlib.Path("five/flat.png").read_bytes()) if kind == b"IDAT"]
    flat = unfilter(zlib.decompress(b"".join(parts)), 64, 36)
    work = pathlib.Path("raw").resolve()
    work.mkdir()
    (work / "ffmpeg").write_text(KEEPER.format(work=work))
    (work / "ffmpeg").chmod(0o755)
    film = swerve("show", "1", "--store", "ours.db", "--video", "r.mp4", "--rig", "pair.json", path=f"{work}:{os.environ['PATH']}")
    assert film.returncode == 0, film
    at = 5 * 1280 * 720 * 3
    fifth = (work / "raw").read_bytes()[at:at + 1280 * 720 * 3]
    for row in range(36):  # seven times as large, in the middle of 480 x 360
        line = fifth[((54 + 7 * row) * 1280 + 16) * 3:][:448 * 3]
        assert b"".join(line[21 * col:21 * col + 3] for col in range(64)) == flat[row], row
    alone = swerve("show", "1", "--store", "ours.db", "--rig", "pair.json")
    assert alone.returncode == 2 and "--video (with --rig)" in alone.stderr, alone
    wrong = swerve("export", "1", "--store", "ours.db", "--format", "osi", "-o", "no.osi", "--rig", "pair.json")
    assert wrong.returncode == 2 and "expected --format mcap" in wrong.stderr, wrong


def rigs_are_driven_with():
    rig = {"id": "pair", "bev": True, "cameras": [
        {"id": "flat", "width": 64, "height": 36, "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5}, "lens": {"fx": 40}},
        {"id": "back", "width": 33, "height": 20, "pose": {"x_m": -1, "y_m": 0, "z_m": 1.5, "yaw_rad": 3.1},
         "lens": {"fx": 30}},
        {"id": "quick", "width": 32, "height": 20, "rate_hz": 30, "shutter": "rolling_bottom", "shutter_ms": 25,
         "pose": {"x_m": 1, "y_m": 0, "z_m": 1.5, "pitch_rad": 0.1}, "lens": {"fx": 20}}],
        "lidars": [{"id": "roof", "azimuths": 180, "elevations_rad": [0.1, 0, -0.2], "range_m": 80,
                    "pose": {"x_m": 0, "y_m": 0, "z_m": 2}}]}
    pathlib.Path("pair.json").write_text(json.dumps(rig))
    ours = drive("ours", "ours.db", "--rig", "pair.json", sensors=["flat", ("back", "jpeg:90"), "bev", "quick", "roof"],
                 shapes={"flat": (36, 64, 3), "back": None, "bev": (4, 192, 96)})
    assert ours.returncode == 0 and "sees 5 sensors of the rig pair: 0.1 MB a drive" in ours.stderr, ours
    a_recording_has_what_the_planner_saw()
    own = drive("own", "own.db", rig=str(pathlib.Path("pair.json").resolve()), sensors=["flat"], shapes={"flat": (36, 64, 3)})
    builtin = drive("builtin", "builtin.db", sensors=["front"], shapes={"front": (64, 96, 3)})
    assert own.returncode == 0 and builtin.returncode == 0, (own, builtin)
    told = {name: json.loads(swerve("show", "1", "--json", "--store", f"{name}.db").stdout) for name in ("ours", "own", "builtin")}
    hashes = {name: told[name].get("rig", "") for name in told}
    assert len(hashes["ours"]) == 64 and hashes["own"] == hashes["ours"] and hashes["builtin"] == "", hashes
    assert told["ours"]["given"] == "bev,cameras,lidars" and told["own"]["given"] == "cameras", told
    again = swerve("replay", "1", "--store", "ours.db")
    assert again.returncode == 0 and "1 identical" in again.stdout, again
    mixed = swerve("compare", "ours.db", "builtin.db")
    assert mixed.returncode != 0 and "expected two sides of one rig" in mixed.stderr, mixed
    old = drive("old", "old.db", "--rig", "pair.json", wants=2)
    assert old.returncode == 6 and "the built-in rig alone, the job's rig is pair" in old.stderr, old
    none = drive("none", "none.db", "--rig", "pair.json", sensors=["cellar"])
    assert none.returncode == 6 and 'found "cellar"' in none.stderr, none
    for name, more in (("with", {"rig": rig}), ("without", {})):
        wall = [{"id": "wall", "kind": "car", "pose": {"lane": "east", "s_m": 45}, "behaviour": "static"}]
        pathlib.Path(f"{name}.json").write_text(json.dumps({**SCENARIO, "id": name, "agents": wall, **more}))
    pathlib.Path("two.json").write_text(json.dumps({"id": "two", "scenarios": [{"file": "with.json"}, {"file": "without.json"}]}))
    both = swerve("run", "two.json", "--world", "object", "--planner", "builtin:maintain", "--store", "two.db")
    assert both.returncode in (0, 1), both
    shown = [swerve("show", str(outcome), "--json", "--store", "two.db") for outcome in range(1, 9)]
    rigs = {(d["scenario_id"], d.get("rig", "")) for d in (json.loads(one.stdout) for one in shown if one.returncode == 0)}
    assert rigs == {("with", hashes["ours"]), ("without", "")}, rigs
    # A rig is named where its scenario has it, and the pictures of failures are those of its cameras.
    assert f"rig pair ({hashes['ours'][:12]})" in swerve("show", "1", "--store", "ours.db").stdout
    assert f"rig {hashes['own'][:12]};" in swerve("show", "1", "--store", "own.db").stdout
    swerve("run", "without.json", "--world", "object", "--store", "wall.db", "--planner", f"exec:{sys.executable} own.py")
    for name, cameras, says in (("two", {"camera flat", "camera back", "camera quick", "left camera", "front camera", "right camera"}, False),
                                ("wall", {"left camera", "front camera", "right camera"}, True)):
        swerve("report", "--store", f"{name}.db", "--report", f"{name}.html")
        text = pathlib.Path(f"{name}.html").read_text()
        found = set(re.findall('alt="([a-z]+ camera|camera [a-z]+)"', text))
        assert found == cameras and ("brought a rig of its own" in text) == says, (name, found)


TESTS = [rigs_are_looked_through, rigs_come_from_nuscenes, rigs_are_driven_with, words_say_what_the_scenario_holds, pictures_decode_and_texts_are_inert,
         numbers_cover_neither_each_other_nor_anybody, stop_lines_are_in_words_and_legend, wrong_uses_are_named,
         both_ways_write_the_same_frames, without_ffmpeg_it_says_so, what_fails_leaves_nothing]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-draw-") as work:
        os.chdir(work)
        pathlib.Path("sketch.json").write_text(json.dumps(SCENARIO))
        made = swerve("run", "sketch.json", "--world", "object", "--store", "a.db", "--planner", "builtin:maintain")
        if made.returncode > 1:
            sys.exit(f"Bail out! {made.stderr}")
        failed = tap.run(TESTS)
        os.chdir("/")
    sys.exit(failed > 0)


main()
