#!/usr/bin/env python3
"""Scenes of AlpaSim become scenarios and rigs, and scenarios become scenes.

Method: a USDZ is written here in AlpaSim's form, of which everything is known: a drive along a bend in a world that is
turned and moved, a track, three lenses. `swerve import usdz` makes a scenario and a rig of it, which are checked and
driven, and `swerve export usdz` packs both again: poses must come back to 1 mm and lenses to the bit. Lanes are read where pyarrow
is installed; where it is not, that must be said.
"""
import importlib.util
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

SWERVE, ROOT = os.path.realpath(sys.argv[1]), pathlib.Path(os.path.realpath(sys.argv[2]))
CENTRE_M, BEGIN_US = 1.45, 1_700_000_000_123_456
TURN, SHIFT = 0.3, (40.0, -7.0)
OPTICAL = [[0, 0, 1, 1.7], [-1, 0, 0, 0.1], [0, -1, 0, 1.4], [0, 0, 0, 1]]
FTHETA = {"resolution": [1920, 1080], "principal_point": [958.3125, 541.7], "max_angle": 1.2217, "reference_poly": "ANGLE_TO_PIXELDIST",
          "angle_to_pixeldist_poly": [0.0, 931.1, -3.3, 17.1, -41.7, 9.1], "pixeldist_to_angle_poly": [], "linear_cde": None,
          "shutter_type": "ROLLING_TOP_TO_BOTTOM"}
FISHEYE = {"resolution": [1280, 800], "principal_point": [640.1, 399.9], "focal_length": [410.7, 411.3], "radial_coeffs": [0.01, -0.002, 0.0, 0.0],
           "max_angle": 1.4}
PINHOLE = {"resolution": [640, 360], "principal_point": [320.0, 180.0], "focal_length": [656.1, 656.1]}


def turned(x, y, heading):
    return x * math.cos(heading) - y * math.sin(heading), x * math.sin(heading) + y * math.cos(heading)


def drive():
    """Ego's rear axle, as it shall be in the scenario: 8 m/s along y = 3.6 with a slow weave, at 30 Hz."""
    return [(k / 30, 100 + 8 * k / 30, 3.6 + 0.2 * math.sin(k / 60), 0.4 / 8 * 0.5 / 2 * math.cos(k / 60)) for k in range(91)]


def in_world(x, y, heading):
    """The other way of world_to_nre."""
    x, y = turned(x - SHIFT[0], y - SHIFT[1], -TURN)
    c, s = math.cos(heading - TURN), math.sin(heading - TURN)
    return [[c, -s, 0, x], [s, c, 0, y], [0, 0, 1, 0.2], [0, 0, 0, 1]]


def write_usdz(path, lanes=None):
    c, s = math.cos(TURN), math.sin(TURN)
    times = [BEGIN_US + round(t * 1e6) for t, *_ in drive()]
    cameras = {"front@x": ("front", "ftheta", FTHETA), "left@x": ("left", "opencv_fisheye", FISHEYE), "tele@x": ("tele", "opencv_pinhole", PINHOLE)}
    rigs = {"T_world_base": [[1, 0, 0, 5e6], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
            "world_to_nre": {"matrix": [[c, -s, 0, SHIFT[0]], [s, c, 0, SHIFT[1]], [0, 0, 1, 0], [0, 0, 0, 1]]},
            "camera_calibrations": {name: {"logical_sensor_name": logical, "T_sensor_rig": OPTICAL, "camera_model": {"type": kind, "parameters": numbers}}
                                    for name, (logical, kind, numbers) in cameras.items()},
            "rig_trajectories": [{"sequence_id": "x", "T_rig_world_timestamps_us": times, "T_rig_worlds": [in_world(*pose) for _, *pose in drive()],
                                  "cameras_frame_timestamps_us": {}, "rig_bbox": {"centroid": [CENTRE_M, 0, 0.75], "dim": [4.9, 2.0, 1.5], "rot": [0, 0, 0]}}]}
    tracks = {"x": {"tracks_data": {"tracks_id": ["7", "8"], "tracks_label_class": ["automobile", "cone"], "tracks_flags": [["CONTROLLABLE"], []],
                                    "tracks_timestamps_us": [[times[0] - 100_000, times[0], times[30]], [times[0]]],
                                    "tracks_poses": [[[139, 7.2, 1, 0, 0, 0, 1], [140, 7.2, 1, 0, 0, 0, 1], [150, 7.2, 1, 0, 0, 0, 1]],
                                                     [[130, -4, 0.4, 0, 0, math.sin(0.5), math.cos(0.5)]]]},
                    "cuboidtracks_data": {"cuboids_dims": [[4.5, 1.8, 1.5], [0.4, 0.4, 0.8]]}}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.yaml", "version_string: '1'\nscene_id: clipgt-of a test\n")
        archive.writestr("rig_trajectories.json", json.dumps(rigs))
        archive.writestr("sequence_tracks.json", json.dumps(tracks))
        if lanes is not None:
            archive.writestr("clipgt/lane.parquet", lanes)


def adapter(*arguments, environment=None):
    words = ["export", "usdz", *arguments[1:]] if arguments[0] == "--pack" else ["import", "usdz", *arguments]
    return subprocess.run([SWERVE, *words], capture_output=True, text=True, env=environment)


def swerve(*arguments, cwd):
    run = subprocess.run([SWERVE, *arguments], capture_output=True, text=True, cwd=cwd)
    assert run.returncode == 0, run.stderr + run.stdout
    return run.stdout


def same_lens(lens, numbers):
    assert [lens["cx"] + 0.5, lens["cy"] + 0.5] == numbers["principal_point"], lens
    for ours, theirs in (("angle_to_pixels", "angle_to_pixeldist_poly"), ("k", "radial_coeffs"), ("max_angle_rad", "max_angle")):
        assert lens.get(ours, []) == numbers.get(theirs, []), (ours, lens)
    if "focal_length" in numbers:
        assert [lens["fx"], lens["fy"]] == numbers["focal_length"]


def a_scene_becomes_a_scenario_and_a_rig(folder):
    write_usdz(folder / "scene.usdz")
    run = adapter("scene.usdz", "-o", "scene.json", "--rig", "rig.json", "--map", "freeway.json")
    assert run.returncode == 0, run.stderr
    assert "3.0 s, 2 agents, 3 cameras, 0 lanes" in run.stdout, run.stdout
    scene, rig = json.loads((folder / "scene.json").read_text()), json.loads((folder / "rig.json").read_text())
    assert scene["id"] == "clipgt-of_a_test" and scene["ego"]["wheelbase_m"] == 2 * CENTRE_M
    for (t, x, y, heading), point in zip(drive(), scene["ego"]["log"], strict=True):
        expected = (t, x + CENTRE_M * math.cos(heading), y + CENTRE_M * math.sin(heading), heading)
        assert max(abs(a - b) for a, b in zip(expected, point)) < 1e-5 and math.dist(expected[1:3], point[1:3]) < 1e-3, (expected, point)
        assert abs(point[4] - 8) < 0.05
    car, cone = scene["agents"]
    assert (car["kind"], car["behaviour"], len(car["trajectory"])) == ("car", "replay", 2) and car["trajectory"][1][:3] == [1.0, 150, 7.2]
    assert (cone["kind"], cone["behaviour"]) == ("object", "static") and abs(cone["pose"]["heading_rad"] - 1) < 1e-9
    for camera, numbers in zip(rig["cameras"], (FTHETA, FISHEYE, PINHOLE), strict=True):
        same_lens(camera["lens"], numbers)
        assert math.dist([camera["pose"][name] for name in ("x_m", "y_m", "z_m")], [1.7 - CENTRE_M, 0.1, 1.4]) < 1e-12
        assert all(abs(camera["pose"][name]) < 1e-12 for name in ("yaw_rad", "pitch_rad", "roll_rad"))
    assert rig["cameras"][0]["shutter"] == "rolling_top"
    assert json.loads(swerve("rig", "from-usdz", "scene.usdz", cwd=folder)) == rig
    swerve("rig", "check", "rig.json", cwd=folder)
    swerve("validate", "scene.json", cwd=folder)
    run = json.loads(swerve("run", "scene.json", "--world", "replay", "--planner", "builtin:log", "--nominal", "--store", "usdz.db", "--json", cwd=folder))
    assert run["rollouts"] == 1 and run["errors"] == 0 and run["ticks"] == 30, run


def a_scenario_becomes_a_scene(folder):
    rig = json.loads((folder / "rig.json").read_text())
    rig["cameras"][1]["pose"] |= {"yaw_rad": 1.1, "pitch_rad": 0.2, "roll_rad": -0.1}
    (folder / "rig.json").write_text(json.dumps(rig))
    run = adapter("--pack", "scene.json", "--rig", "rig.json", "-o", "again.usdz")
    assert run.returncode == 0, run.stderr
    run = adapter("again.usdz", "-o", "again.json", "--rig", "again_rig.json", "--map", "freeway.json")
    assert run.returncode == 0, run.stderr
    first, again = (json.loads((folder / name).read_text()) for name in ("scene.json", "again.json"))
    assert [agent["id"] for agent in first["agents"]] == [agent["id"] for agent in again["agents"]]
    pairs = [(first["ego"]["log"], again["ego"]["log"]), (first["agents"][0]["trajectory"], again["agents"][0]["trajectory"])]
    for a, b in pairs:
        assert max(max(abs(x - y) for x, y in zip(p[:4], q[:4])) for p, q in zip(a, b, strict=True)) < 1e-3
    for a, b in zip(rig["cameras"], json.loads((folder / "again_rig.json").read_text())["cameras"], strict=True):
        same_lens(b["lens"], {"principal_point": [a["lens"]["cx"] + 0.5, a["lens"]["cy"] + 0.5]} | {
            theirs: a["lens"][ours] for ours, theirs in (("angle_to_pixels", "angle_to_pixeldist_poly"), ("k", "radial_coeffs"),
                                                         ("max_angle_rad", "max_angle")) if a["lens"].get(ours)})
        assert max(abs(a["pose"][name] - b["pose"][name]) for name in a["pose"]) < 1e-9, (a, b)


def lanes_are_read_and_written(folder):
    lanes = {"lanes": [{"id": "lane_a", "centre_line": [[90.0, 3.6], [120.0, 3.6]], "width_m": 3.5},
                       {"id": "lane_b", "centre_line": [[120.5, 3.6], [400.0, 3.6]], "width_m": 3.5},
                       {"id": "lane_c", "kind": "shoulder", "centre_line": [[90.0, 7.2], [400.0, 7.2]], "width_m": 2.0}]}
    scene = json.loads((folder / "scene.json").read_text()) | {"map": lanes}
    (folder / "lanes.json").write_text(json.dumps(scene))
    run = adapter("--pack", "lanes.json", "-o", "lanes.usdz")
    assert run.returncode == 0 and "3 lanes" in run.stdout, run.stderr
    run = adapter("lanes.usdz", "-o", "back.json")
    assert run.returncode == 0 and "3 lanes, 1 ends joined" in run.stdout, run.stdout + run.stderr
    back = json.loads((folder / "back.json").read_text())["map"]["lanes"]
    assert [lane["successors"] for lane in back] == [["lane_b"], [], []] and back[2]["kind"] == "shoulder"
    for a, b in zip(lanes["lanes"], back):
        assert max(math.dist(p, q) for p, q in zip(a["centre_line"], b["centre_line"], strict=True)) < 1e-3
        assert all(abs(width - a["width_m"]) < 1e-9 for width in b["width_m"])
    swerve("validate", "back.json", cwd=folder)


def what_is_wrong_is_said(folder):
    write_usdz(folder / "lanes.usdz", b"PAR1")
    (folder / "bare").mkdir()
    (folder / "bare" / "pyarrow.py").write_text("raise ImportError('no pyarrow here')\n")
    run = adapter("lanes.usdz", "-o", "x.json", environment=os.environ | {"PYTHONPATH": str(folder / "bare")})
    assert run.returncode != 0 and "pip install pyarrow" in run.stderr, run.stderr
    run = adapter("scene.usdz", "-o", "x.json")
    assert run.returncode != 0 and "the scene has no lanes" in run.stderr, run.stderr
    (folder / "no.usdz").write_text("no zip")
    run = adapter("no.usdz", "-o", "x.json")
    assert run.returncode == 3 and "usdz_scene: no.usdz: File is not a zip file" in run.stderr, run.stderr
    with zipfile.ZipFile(folder / "part.usdz", "w") as archive:
        archive.writestr("rig_trajectories.json", "{}")
    run = adapter("part.usdz", "-o", "x.json")
    assert run.returncode != 0 and "found a member missing or of another kind" in run.stderr and "Traceback" not in run.stderr, run.stderr
    assert not (folder / "x.json").exists()


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        shutil.copy(ROOT / "scenarios" / "maps" / "freeway.json", folder)
        a_scene_becomes_a_scenario_and_a_rig(folder)
        a_scenario_becomes_a_scene(folder)
        if importlib.util.find_spec("pyarrow") is not None:
            lanes_are_read_and_written(folder)
        what_is_wrong_is_said(folder)


if __name__ == "__main__":
    main()
