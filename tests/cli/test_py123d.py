#!/usr/bin/env python3
"""Drives that py123d recorded become scenarios.

Method: py123d's own writers make a log and a map of which everything is known (skipped where py123d is not
installed); scripts/adapters/py123d_log.py turns it into a scene, `swerve import womd` that into a scenario, which is
compared with what was written, and driven. A log of 2 Hz must give what one of 10 Hz gives on a straight drive.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from py123d.api.map.arrow.arrow_map_writer import ArrowMapWriter
    from py123d.api.scene.arrow.arrow_log_writer import ArrowLogWriter
    from py123d.api.scene.arrow.utils.log_writer_config import LogWriterConfig
    from py123d.datatypes.detections.box_detection_label import DefaultBoxDetectionLabel as Label
    from py123d.datatypes.detections.box_detections import (BoxDetectionAttributes, BoxDetectionSE3, BoxDetectionsSE3)
    from py123d.datatypes.detections.box_detections_metadata import BoxDetectionsSE3Metadata
    from py123d.datatypes.detections.traffic_light_detections import (TrafficLightDetection, TrafficLightDetections,
                                                                      TrafficLightStatus)
    from py123d.datatypes.map_objects.map_layer_types import LaneType
    from py123d.datatypes.map_objects.map_objects import Crosswalk, Lane
    from py123d.datatypes.metadata.log_metadata import LogMetadata
    from py123d.datatypes.metadata.map_metadata import MapMetadata
    from py123d.datatypes.time.timestamp import Timestamp
    from py123d.datatypes.vehicle_state.ego_state import EgoStateSE3
    from py123d.datatypes.vehicle_state.ego_state_metadata import EgoStateSE3Metadata
    from py123d.geometry import BoundingBoxSE3, Polyline3D, PoseSE3, Vector3D
    from py123d.parser.base_dataset_parser import ModalitiesSync
except ImportError as error:
    print(f"skipped: py123d is not installed ({error})")
    sys.exit(77)

SWERVE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SECONDS = 8
EGO_MPS, CAR_MPS = 10.0, 8.0
LANES = {7: (0.0, 3.5, 13.0), 8: (3.5, 3.0, None)}  # by id: y, width, limit; the first is in two parts: 7 and 9


def pose(x, y, yaw=0.0):
    return PoseSE3(x=x, y=y, z=1.0, qw=math.cos(yaw / 2), qx=0.0, qy=0.0, qz=math.sin(yaw / 2))


def line(x_from, x_to, y):
    return Polyline3D.from_array(np.array([[x, y, 1.0] for x in np.linspace(x_from, x_to, 21)]))


def write_map(folder):
    writer = ArrowMapWriter(True, folder / "maps", folder / "logs")
    metadata = MapMetadata(dataset="nuplan", location="sg-one-north", map_has_z=True, map_is_per_log=False)
    assert writer.reset(metadata)
    parts = [(7, -50.0, 60.0, [9]), (9, 60.0, 300.0, []), (8, -50.0, 300.0, [])]
    for name, x_from, x_to, after in parts:
        y, width, limit = LANES[8 if name == 8 else 7]
        writer.write_map_object(Lane(
            object_id=name, lane_type=LaneType.SURFACE_STREET, left_boundary=line(x_from, x_to, y + width / 2),
            right_boundary=line(x_from, x_to, y - width / 2), centerline=line(x_from, x_to, y), successor_ids=after,
            predecessor_ids=[7] if name == 9 else [], speed_limit_mps=limit))
    corners = np.array([[40, -2, 1], [44, -2, 1], [44, 6, 1], [40, 6, 1], [40, -2, 1]], dtype=np.float64)
    writer.write_map_object(Crosswalk(object_id=1, outline=Polyline3D.from_array(corners)))
    writer.close()
    return metadata


def boxes_at(time_s, time, metadata):
    def box(label, token, x, y, size, vx):
        return BoxDetectionSE3(BoxDetectionAttributes(label=label, track_token=token),
                               BoundingBoxSE3(pose(x, y), *size), Vector3D(vx, 0.0, 0.0))

    boxes = [box(Label.VEHICLE, "car", 30 + CAR_MPS * time_s, 3.5, (4.4, 1.8, 1.5), CAR_MPS),
             box(Label.TRAFFIC_SIGN, "sign", 20, -4, (0.2, 0.8, 0.8), 0.0)]
    if 2.0 <= time_s <= 6.0:
        boxes.append(box(Label.PERSON, "walker", 42.0, -6.0 + time_s, (0.6, 0.6, 1.8), 0.0))
    return BoxDetectionsSE3(boxes, time, metadata)


def write_log(folder, name, step_s, map_metadata):
    writer = ArrowLogWriter(LogWriterConfig(force_log_conversion=True), folder / "logs", folder / "sensors")
    assert writer.reset(LogMetadata(dataset="nuplan", split="nuplan_val", log_name=name, location="sg-one-north",
                                    map_metadata=map_metadata))
    ego = EgoStateSE3Metadata(vehicle_name="car", width=2.0, length=5.0, height=1.7, wheel_base=3.0,
                              center_to_imu_se3=pose(1.5, 0.0), rear_axle_to_imu_se3=pose(0.0, 0.0))
    boxes = BoxDetectionsSE3Metadata(Label)
    for i in range(round(SECONDS / step_s) + 1):
        time_s = i * step_s
        time = Timestamp.from_s(1000.0 + time_s)
        light = TrafficLightStatus.RED if time_s < 3.0 else TrafficLightStatus.GREEN
        writer.write_sync(ModalitiesSync(timestamp=time, modalities=[
            EgoStateSE3.from_center(pose(EGO_MPS * time_s, 0.0), ego, time), boxes_at(time_s, time, boxes),
            TrafficLightDetections([TrafficLightDetection(9, light)], time)]))
    writer.close()


def run(*arguments, code=0):
    found = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300)
    assert found.returncode == code, (arguments, found.returncode, found.stdout, found.stderr)
    return found.stdout + found.stderr


def scenario_of(folder, name, *options):
    scene, out = folder / f"{name}.scene.json", folder / f"{name}.json"
    says = run(sys.executable, ROOT / "scripts/adapters/py123d_log.py", "--logs", folder / "logs", "--maps",
               folder / "maps", "--log", name, *options, "-o", scene)
    run(SWERVE, "import", "womd", scene, "-o", out)
    run(SWERVE, "validate", out)
    return says, json.loads(out.read_text())


def close(a, b, slack=1e-6):
    return abs(a - b) < slack


def check(scenario, step_s):
    assert scenario["source"].startswith("nuplan by py123d; origin"), scenario["source"]
    assert scenario["slices"]["geography"] == "asia"
    ego = scenario["ego"]
    assert close(ego["length_m"], 5.0) and close(ego["width_m"], 2.0) and close(ego["speed_mps"], EGO_MPS, 1e-3)
    assert len(ego["log"]) == SECONDS * 10 + 1 and scenario["horizon_s"] >= SECONDS - 0.1
    x0, y0 = ego["log"][0][1:3]
    for t, x, y, heading, speed in ego["log"]:
        assert close(x - x0, EGO_MPS * t, 1e-3) and close(y, y0) and close(heading, 0.0) and close(speed, EGO_MPS, 1e-3)
    agents = {a["kind"]: a for a in scenario["agents"]}
    assert sorted(agents) == ["car", "pedestrian"], sorted(agents)
    for t, x, y, _, speed in agents["car"]["trajectory"]:
        assert close(x - x0, 30 + CAR_MPS * t, 1e-3) and close(y - y0, 3.5) and close(speed, CAR_MPS, 1e-3)
    walk = agents["pedestrian"]["trajectory"]
    assert close(walk[0][0], 2.0) and close(walk[-1][0], 6.0), (walk[0], walk[-1])
    lanes = scenario["map"]["lanes"]
    assert len(lanes) == 3, [lane["id"] for lane in lanes]
    width = {round(w if isinstance(w, float) else w[0], 3) for w in (lane["width_m"] for lane in lanes)}
    assert width == {3.0, 3.5}, width
    assert sorted(lane.get("speed_limit_mps", 0) for lane in lanes) == [0, 13.0, 13.0]
    assert sum(len(lane.get("successors", [])) for lane in lanes) == 1
    assert len(scenario["map"]["crosswalks"]) == 1
    light, = scenario["map"]["signals"]
    assert [phase["light"] for phase in light["phases"]] == ["red", "green"]
    assert close(light["phases"][0]["duration_s"], 3.0, step_s + 1e-6), light["phases"]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        metadata = write_map(folder)
        for step_s in (0.1, 0.5):
            write_log(folder, f"log_{step_s}", step_s, metadata)
            says, scenario = scenario_of(folder, f"log_{step_s}")
            assert "left out" in says and f"{SECONDS * 10 + 1} samples, 2 tracks, 4 roads, 1 lights" in says, says
            check(scenario, step_s)
        listed = run(sys.executable, ROOT / "scripts/adapters/py123d_log.py", "--logs", folder / "logs", "--maps",
                     folder / "maps")
        assert sorted(listed.split()) == ["log_0.1", "log_0.5"], listed
        _, part = scenario_of(folder, "log_0.1", "--begin", "2", "--seconds", "3")
        assert len(part["ego"]["log"]) == 31
        wrong = run(sys.executable, ROOT / "scripts/adapters/py123d_log.py", "--logs", folder / "logs", "--maps",
                    folder / "maps", "--log", "other", "-o", folder / "x.json", code=1)
        assert "expected one of log_0.1, log_0.5, found other" in wrong, wrong
        for world in ("replay", "object"):
            run(SWERVE, "run", folder / "log_0.1.json", "--world", world, "--planner", "builtin:log", "--store",
                folder / f"{world}.db")
    print("ok")


main()
