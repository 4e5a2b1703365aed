#!/usr/bin/env python3
"""Scenes of AlpaSim become scenarios and rigs, and scenarios become scenes.

Method: a USDZ is written here in AlpaSim's form, of which everything is known: a drive along a bend in a world that is
turned and moved, a track, three lenses. `swerve import usdz` makes a scenario and a rig of it, which are checked and
driven, and `swerve export usdz` packs both again: poses must come back to 1 mm and lenses to the bit. Where pyarrow is not
installed, a module that keeps tables as JSON stands for it. Scenes are damaged in every member that is read: most are given to the
adapter's own functions, which is where a value is refused by its place, and some to the binary, which must write nothing then.
"""
import copy
import importlib.util
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
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


def scene_parts():
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
    return {"rigs": rigs, "tracks": tracks}


def write_usdz(path, lanes=None, parts=None):
    parts = parts or scene_parts()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.yaml", "version_string: '1'\nscene_id: clipgt-of a test\n")
        archive.writestr("rig_trajectories.json", json.dumps(parts["rigs"]))
        archive.writestr("sequence_tracks.json", json.dumps(parts["tracks"]))
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
    assert "3.0 s, 2 agents, 3 cameras, map freeway.json" in run.stdout, run.stdout
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
    moves, stands = again["agents"]
    assert stands["behaviour"] == "static" and stands["pose"] == first["agents"][1]["pose"], stands
    times = [point[0] for point in moves["trajectory"]]
    assert max(b - a for a, b in zip(times, times[1:])) < 0.1 + 1e-6, times
    with zipfile.ZipFile(folder / "again.usdz") as scene:  # AlpaSim takes no track of one pose
        tracks = json.loads(scene.read("sequence_tracks.json"))["clipgt-of_a_test"]["tracks_data"]
    assert [len(poses) for poses in tracks["tracks_poses"]] == [len(times), 2], tracks
    given = first["agents"][0]["trajectory"]
    kept = [point for point in moves["trajectory"] if any(abs(point[0] - one[0]) < 1e-6 for one in given)]
    pairs = [(first["ego"]["log"], again["ego"]["log"]), (given, kept)]
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
                       {"id": "b", "kind": "shoulder", "centre_line": [[90.0, 7.2], [400.0, 7.2]], "width_m": 2.0}]}
    scene = json.loads((folder / "scene.json").read_text()) | {"map": lanes}
    (folder / "lanes.json").write_text(json.dumps(scene))
    run = adapter("--pack", "lanes.json", "-o", "lanes.usdz")
    assert run.returncode == 0 and "3 lanes" in run.stdout, run.stderr
    run = adapter("lanes.usdz", "-o", "back.json")
    assert run.returncode == 0 and "3 lanes, 1 ends joined to beginnings within 1.0 m, 0 pairs of neighbours" in run.stdout, run.stdout + run.stderr
    back = json.loads((folder / "back.json").read_text())["map"]["lanes"]
    assert [lane["successors"] for lane in back] == [["lane_lane_b"], [], []] and back[2]["kind"] == "shoulder"
    for a, b in zip(lanes["lanes"], back):
        assert max(math.dist(p, q) for p, q in zip(a["centre_line"], b["centre_line"], strict=True)) < 1e-3
        assert all(abs(width - a["width_m"]) < 1e-9 for width in b["width_m"])


def the_librarys_scenario_comes_back(folder):
    """Its map is a file, its sizes are defaults, and its lanes are straight lines of two points, each far from the drive."""
    run = adapter("--pack", str(ROOT / "scenarios" / "regression" / "log_cut_in.json"), "-o", "log.usdz")
    assert run.returncode == 0 and "0 cameras, 4 lanes" in run.stdout, run.stderr
    run = adapter("log.usdz", "-o", "log.json")
    assert run.returncode == 0 and "4 lanes, 0 ends joined to beginnings within 1.0 m, 2 pairs of neighbours" in run.stdout, run.stdout + run.stderr
    back = json.loads((folder / "log.json").read_text())
    lanes = {lane["id"]: (lane.get("left"), lane.get("right")) for lane in back["map"]["lanes"]}
    assert lanes == {"lane_0": ("lane_1", None), "lane_1": ("lane_2", "lane_0"), "lane_2": (None, "lane_1"), "lane_shoulder": (None, None)}, lanes
    assert (back["ego"]["length_m"], back["ego"]["wheelbase_m"], back["agents"][0]["length_m"]) == (4.8, 2.8, 4.5), back["ego"]
    swerve("validate", "log.json", cwd=folder)


def put(parts, path, value):
    """Sets, or with ABSENT removes, what a path of names and indices says."""
    *way, last = path
    for step in way:
        parts = parts[step]
    if value is ABSENT:
        del parts[last]
    else:
        parts[last] = value


EGO, TRACKS, FRONT = ("rigs", "rig_trajectories", 0), ("tracks", "x", "tracks_data"), ("rigs", "camera_calibrations", "front@x")
ABSENT, HUGE, ZEROS = object(), 10**400, [[0] * 4] * 4
DAMAGES = [  # what is damaged, by what, and which place is named
    ((*EGO, "T_rig_worlds", 3, 0, 3), math.nan, "rig_trajectories.json: $.rig_trajectories[0].T_rig_worlds[3][0][3]: expected a number"),
    ((*EGO, "T_rig_worlds", 3, 0, 3), math.inf, "T_rig_worlds[3][0][3]: expected a number"),
    ((*EGO, "T_rig_worlds", 3, 0, 3), 1e308, "T_rig_worlds[3][0][3]: expected a number"),
    ((*EGO, "T_rig_worlds", 3), ZEROS, "T_rig_worlds[3]: expected a rotation"),
    ((*EGO, "T_rig_worlds", 3), "up", 'T_rig_worlds[3]: expected a list of 4, found "up"'),
    ((*EGO, "T_rig_worlds"), [], "T_rig_worlds: expected a list of 91, found a list of 0"),
    ((*EGO, "T_rig_world_timestamps_us", 3), BEGIN_US, f"T_rig_world_timestamps_us[3]: expected a later time than {BEGIN_US + 66667}"),
    ((*EGO, "T_rig_world_timestamps_us", 3), 1e30, "T_rig_world_timestamps_us[3]: expected a whole number"),
    ((*EGO, "T_rig_world_timestamps_us", 3), HUGE, "T_rig_world_timestamps_us[3]: expected a whole number"),
    ((*EGO, "rig_bbox"), None, "$.rig_trajectories[0].rig_bbox: expected an object, found none"),
    (("rigs", "rig_trajectories"), [], "$.rig_trajectories: expected a list of 1, found a list of 0"),
    (("rigs", "world_to_nre", "matrix"), ZEROS, "$.world_to_nre.matrix: expected a rotation"),
    ((*FRONT, "T_sensor_rig"), ZEROS, '$.camera_calibrations."front@x".T_sensor_rig: expected a rotation'),
    ((*FRONT, "logical_sensor_name"), None, '"front@x".logical_sensor_name: expected a text, found none'),
    ((*FRONT, "camera_model", "type"), "glass", 'camera_model.type: expected a lens ftheta, opencv_fisheye or opencv_pinhole, found "glass"'),
    ((*FRONT, "camera_model", "parameters", "max_angle"), math.nan, "parameters.max_angle: expected a number"),
    ((*TRACKS, "tracks_id"), ABSENT, "sequence_tracks.json: $.x.tracks_data.tracks_id: expected a list, found none"),
    ((*TRACKS, "tracks_id", 1), "7", 'tracks_id[1]: expected an id of its own, found "7"'),
    ((*TRACKS, "tracks_label_class"), ["automobile"], "tracks_label_class: expected a list of 2, found a list of 1"),
    ((*TRACKS, "tracks_timestamps_us"), ABSENT, "tracks_timestamps_us: expected a list of 2, found none"),
    ((*TRACKS, "tracks_timestamps_us", 0, 2), 5, "tracks_timestamps_us[0][2]: expected a later time"),
    ((*TRACKS, "tracks_poses", 0), [], "tracks_poses[0]: expected a list of 3, found a list of 0"),
    ((*TRACKS, "tracks_poses", 1, 0), [130, -4, 0.4, 0, 0, 0, 0], "tracks_poses[1][0]: expected a quaternion of length 1"),
    (("tracks", "x", "cuboidtracks_data", "cuboids_dims", 0), [4.5, 1.8], "cuboids_dims[0]: expected a list of 3, found a list of 2"),
    (("tracks",), [], "sequence_tracks.json: $: expected an object, found a list of 0"),
]


def adapter_module():
    spec = importlib.util.spec_from_file_location("usdz_scene", ROOT / "scripts" / "adapters" / "usdz_scene.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def what_is_too_much_is_refused(folder):
    """Members that would unpack without a bound, and tables and lanes beyond limits that are lowered here."""
    with zipfile.ZipFile(folder / "scene.usdz") as whole, zipfile.ZipFile(folder / "hurt.usdz", "w", zipfile.ZIP_BZIP2) as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name))
    cases = [({}, "hurt.usdz", "rig_trajectories.json: expected a member that is stored or deflated, found compression 12"),
             ({"TEXT_BYTES": 99}, "scene.usdz", "rig_trajectories.json: expected at most 99 bytes, found"),
             ({"ROWS": 2}, "lanes.usdz", "clipgt/lane.parquet: expected a table of at most 2 rows, found 3"),
             ({"LANES": 2}, "lanes.usdz", "expected at most 2 lanes within 150 m of ego's drive, found more"),
             ({"LOOKS": 2}, "lanes.usdz", "expected lanes that are told apart by 2 looks at their points, found more")]
    if os.environ.get("PYTHONPATH", "").endswith("stand_in"):  # whose tables say that they unpack to a hundred times what they are
        cases.append(({"MEMBER_BYTES": 1 << 16}, "lanes.usdz", "clipgt/lane.parquet: expected a table of at most 65536 bytes, found"))
    with zipfile.ZipFile(folder / "scene.usdz") as whole, zipfile.ZipFile(folder / "twice.usdz", "w") as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name))
        with warnings.catch_warnings(action="ignore"):
            archive.writestr("metadata.yaml", "scene_id: y")
    cases.append(({}, "twice.usdz", "metadata.yaml: expected this member of the archive once, found it twice"))
    for limits, scene, expected in cases:
        module = adapter_module()
        for name, value in limits.items():
            assert hasattr(module, name), name
            setattr(module, name, value)
        try:
            module.import_scene(scene, None)
            said = "taken"
        except SystemExit as refusal:
            said = str(refusal)
        assert said.startswith(f"usdz_scene: {scene}: ") and expected in said, (limits, said)
    parts = scene_parts() | {"tracks": {"x": [[]] * 3_000_000}}
    write_usdz(folder / "hurt.usdz", parts=parts)
    words = [sys.executable, ROOT / "scripts" / "adapters" / "usdz_scene.py", "import", "hurt.usdz", "freeway.json"]
    run = subprocess.run(["bash", "-c", 'ulimit -d 131072; exec "$@"', "bash", *words], capture_output=True, text=True)
    assert run.returncode == 1 and "hurt.usdz: expected a scene that takes at most 4 GiB of memory" in run.stderr, run.stderr


def damage_is_refused_by_its_place(folder):
    module, sound = adapter_module(), scene_parts()
    for path, value, expected in DAMAGES:
        parts = copy.deepcopy(sound)
        put(parts, path, value)
        write_usdz(folder / "hurt.usdz", parts=parts)
        try:
            module.import_scene("hurt.usdz", "freeway.json")
            said = "taken"
        except SystemExit as refusal:
            said = str(refusal)
        assert said.startswith("usdz_scene: hurt.usdz: ") and expected in said, (path, said)
    for member in ("metadata.yaml", "rig_trajectories.json", "sequence_tracks.json"):
        for text, expected in ((b"\xff", "expected UTF-8"), (b"[" * 200000, "expected JSON, found that it is nested too deeply"),
                               (b'{"a": 1, "a": 2}', "expected JSON, found: a member stands twice"), (b"", "expected JSON, found: Expecting value")):
            with zipfile.ZipFile(folder / "scene.usdz") as whole, \
                    zipfile.ZipFile(folder / "hurt.usdz", "w") as archive:
                for name in whole.namelist():
                    archive.writestr(name, text if name == member else whole.read(name))
            try:
                module.import_scene("hurt.usdz", "freeway.json")
                assert member == "metadata.yaml" and text != b"\xff", (member, text[:20])
            except SystemExit as refusal:
                assert f"hurt.usdz: {member}: {expected}" in str(refusal), (member, str(refusal))


def nothing_is_written_of_what_no_scenario_may_be(folder):
    """Tells apart what AlpaSim's form allows and ours does not: the binary looks at the result, and what was there before stays."""
    (folder / "kept.json").write_text("kept")
    cases = [((*EGO, "rig_bbox", "dim"), [4.9, 0, 1.5], "hurt.usdz: nothing is written: kept.json: $.ego.width_m: expected"),
             ((*FRONT, "camera_model", "parameters", "resolution"), [0, 0], "hurt.usdz: nothing is written: kept_rig.json: $.cameras[0].width"),
             (("rigs", "camera_calibrations"), {}, "hurt.usdz: nothing is written: kept_rig.json: $: expected"),
             ((*EGO, "T_rig_worlds", 3, 0, 3), 5e5, "hurt.usdz: nothing is written: kept.json: $.ego.log[2][4]: expected a number from 0 to 150")]
    for path, value, expected in cases:
        parts = scene_parts()
        put(parts, path, value)
        write_usdz(folder / "hurt.usdz", parts=parts)
        run = adapter("hurt.usdz", "-o", "kept.json", "--rig", "kept_rig.json", "--map", "freeway.json")
        assert run.returncode == 3 and expected in run.stderr, (path, run.stdout, run.stderr)
        assert (folder / "kept.json").read_text() == "kept" and not (folder / "kept_rig.json").exists()


def what_cannot_be_packed_is_refused(folder):
    scene = json.loads((folder / "scene.json").read_text())
    lidars = {"id": "lidars", "lidars": json.loads(swerve("rig", "show", "swerve", "--json", cwd=folder)).get("lidars") or
              [{"id": "top", "pose": {"x_m": 0, "y_m": 0, "z_m": 1.8}, "azimuths": 360, "elevations_rad": [0.0], "range_m": 100}]}
    (folder / "lidars.json").write_text(json.dumps(lidars))
    (folder / "narrow.json").write_text(json.dumps(scene | {"ego": scene["ego"] | {"width_m": 0}}))
    (folder / "still.json").write_text(json.dumps(scene | {"ego": {name: value for name, value in scene["ego"].items() if name != "log"}}))
    for words, expected in ((("narrow.json",), "narrow.json: $.ego.width_m: expected"), (("still.json",), "still.json: $.ego.log: expected a drive"),
                            (("demo",), "demo: expected one scenario, found a suite"), (("nowhere",), "nowhere: there is no such file"),
                            (("scene.json", "--rig", "nowhere"), "swerve: nowhere: "),
                            (("scene.json", "--rig", "lidars.json"), "lidars.json: $.cameras: expected a camera, found none")):
        run = adapter("--pack", *words, "-o", "x.usdz")
        assert run.returncode != 0 and expected in run.stderr and "usdz_scene" not in run.stderr, (words, run.stderr)
    assert not (folder / "x.usdz").exists()


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
    assert run.returncode == 3 and "usdz_scene: no.usdz: expected a USDZ, found that it cannot be read: File is not a zip file" in run.stderr, run.stderr
    write_usdz(folder / "table.usdz", b"no table")
    run = adapter("table.usdz", "-o", "x.json")
    assert run.returncode == 3 and "table.usdz: clipgt/lane.parquet: expected a Parquet table, found: " in run.stderr, run.stderr
    with zipfile.ZipFile(folder / "part.usdz", "w") as archive:
        archive.writestr("metadata.yaml", "scene_id: x")
    run = adapter("part.usdz", "-o", "x.json")
    assert run.returncode == 3 and "part.usdz: rig_trajectories.json: expected this member of the archive, found none" in run.stderr, run.stderr
    assert not (folder / "x.json").exists()


def stand_in_for_pyarrow(folder):
    """A module of its name that keeps a table as JSON, where there is none."""
    if importlib.util.find_spec("pyarrow") is None:
        (folder / "stand_in" / "pyarrow").mkdir(parents=True)
        (folder / "stand_in" / "pyarrow" / "__init__.py").write_text(
            "class Table:\n    def __init__(self, rows):\n        self.rows = rows\n    from_pylist = classmethod(lambda kind, rows: kind(rows))\n"
            "    def to_pylist(self):\n        return self.rows\n")
        (folder / "stand_in" / "pyarrow" / "parquet.py").write_text(
            "import json, pyarrow\ndef write_table(table, out):\n    out.write(json.dumps(table.rows).encode())\n"
            "class ParquetFile:\n    num_row_groups = 1\n    def __init__(self, data):\n"
            "        text = data.read()\n        self.rows = json.loads(text)\n"
            "        self.metadata, self.num_rows, self.total_byte_size = self, len(self.rows), 100 * len(text)\n"
            "    def row_group(self, i):\n        return self\n"
            "    def read(self):\n        return pyarrow.Table(self.rows)\n")
        os.environ["PYTHONPATH"] = str(folder / "stand_in")
        sys.path.insert(0, os.environ["PYTHONPATH"])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        shutil.copy(ROOT / "scenarios" / "maps" / "freeway.json", folder)
        stand_in_for_pyarrow(folder)
        a_scene_becomes_a_scenario_and_a_rig(folder)
        a_scenario_becomes_a_scene(folder)
        lanes_are_read_and_written(folder)
        the_librarys_scenario_comes_back(folder)
        what_is_too_much_is_refused(folder)
        damage_is_refused_by_its_place(folder)
        nothing_is_written_of_what_no_scenario_may_be(folder)
        what_cannot_be_packed_is_refused(folder)
        what_is_wrong_is_said(folder)


if __name__ == "__main__":
    main()
