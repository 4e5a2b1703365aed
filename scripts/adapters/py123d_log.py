#!/usr/bin/env python3
"""Recorded drives of py123d's logs (nuPlan, WOMD, Argoverse 2, nuScenes, PandaSet, KITTI-360, CARLA ..) as scenarios.

    python3 scripts/adapters/py123d_log.py --logs LOGS --maps MAPS [--log NAME] [--begin S] [--seconds S] -o scene.json
    swerve import womd scene.json -o drive.json
    swerve run drive.json --world replay --planner builtin:log

LOGS and MAPS are the folders that `py123d-conversion` writes (py123d of PyPI, 0.7): Arrow files, one for each modality
of a log, and maps. py123d reads them; this writes what `swerve import womd` reads, at 10 Hz, whatever rate the log has:
places and headings between two samples lie on a straight line, and nothing is seen between samples that are more than
two and a half iterations apart. Without --log the names of the logs are printed.

Taken over: ego's box and poses, boxes with their tracks, lights by the lane that they are for (at its beginning), lanes
with mean width and speed limit, crosswalks, car parks and other drivable areas. Boxes of traffic signs and traffic
lights are not agents. Sensors, elevation, stop zones, road lines and edges stay behind.
"""
import argparse
import json
import math
import os
import sys

from py123d.api.scene.arrow.arrow_scene_builder import ArrowSceneBuilder
from py123d.api.scene.scene_filter import SceneFilter
from py123d.common.execution import SequentialExecutor
from py123d.datatypes.detections.box_detection_label import DefaultBoxDetectionLabel as Label
from py123d.datatypes.detections.traffic_light_detections import TrafficLightStatus
from py123d.datatypes.map_objects.map_layer_types import LaneType, MapLayer

STEP_S = 0.1
APART_MAX = 2.5  # iterations between two samples of one track
LOOK_M = 20.0  # along ego's drive, between places where the map is asked
WIDTHS_M = (2.0, 8.0)
TYPES = {Label.VEHICLE: "vehicle", Label.TRAIN: "vehicle", Label.TWO_WHEELER: "cyclist", Label.PERSON: "pedestrian"}
NO_AGENTS = (Label.EGO, Label.TRAFFIC_SIGN, Label.TRAFFIC_LIGHT)
LIGHTS = {TrafficLightStatus.GREEN: "go", TrafficLightStatus.YELLOW: "caution", TrafficLightStatus.RED: "stop",
          TrafficLightStatus.OFF: "flashing_caution", TrafficLightStatus.UNKNOWN: "unknown"}
ELEMENTS = {LaneType.FREEWAY: 1, LaneType.BIKE_LANE: 3}
AREAS = {MapLayer.CROSSWALK: "crosswalk", MapLayer.CARPARK: "driveway", MapLayer.GENERIC_DRIVABLE: "driveway"}


def fail(text):
    sys.exit(f"py123d_log: {text}")


def scenes_of(logs, maps, name):
    """Scenes that are whole logs, by name."""
    log_filter = SceneFilter(log_names=[name] if name is not None else None)
    return list(ArrowSceneBuilder(logs, maps).get_scenes(log_filter, SequentialExecutor()))


class Track:
    """Samples of one box: time, place, heading, velocity where it is known."""

    def __init__(self, kind, length, width, height):
        self.kind, self.size = kind, (length, width, height)
        self.samples = []

    def add(self, time_s, pose, velocity):
        self.samples.append((time_s, float(pose.x), float(pose.y), float(pose.yaw), velocity))

    def record(self, index, times_s, apart_s):
        """The track on the grid of times, as the Waymo Open Motion Dataset's JSON has tracks."""
        record = {"id": index, "type": self.kind, "length": self.size[0], "width": self.size[1], "height": self.size[2],
                  "position": [], "heading": [], "velocity": [], "valid": []}
        after = 0
        for time_s in times_s:
            while after < len(self.samples) and self.samples[after][0] < time_s - 1e-6:
                after += 1
            pose = self.between(after, time_s, apart_s)
            record["valid"].append(pose is not None)
            x, y, heading, vx, vy = pose or (0.0, 0.0, 0.0, 0.0, 0.0)
            record["position"].append({"x": x, "y": y, "z": 0.0})
            record["heading"].append(heading)
            record["velocity"].append({"x": vx, "y": vy})
        return record

    def between(self, after, time_s, apart_s):
        if after == len(self.samples):
            return None
        late = self.samples[after]
        exact = abs(late[0] - time_s) < 1e-6
        if after == 0 and not exact:
            return None
        early = self.samples[after - 1] if after > 0 else self.samples[min(1, len(self.samples) - 1)]
        span_s = late[0] - early[0]
        if not exact and span_s > apart_s:
            return None
        share = 1.0 if exact else (time_s - early[0]) / span_s
        x, y = (early[i] + share * (late[i] - early[i]) for i in (1, 2))
        turn = math.remainder(late[3] - early[3], 2 * math.pi)
        heading = math.remainder(early[3] + share * turn, 2 * math.pi)
        velocity = late[4]
        if velocity is None and abs(span_s) > 1e-6:
            velocity = ((late[1] - early[1]) / span_s, (late[2] - early[2]) / span_s)
        return (x, y, heading, *(velocity or (0.0, 0.0)))


def velocity_of(vector):
    pair = (float(vector.x), float(vector.y)) if vector is not None else (math.nan, math.nan)
    return pair if all(map(math.isfinite, pair)) else None


class Recording:
    """Ego, tracks and lights of a part of a scene."""

    def __init__(self, scene, begin_s, seconds):
        times = [stamp.time_us * 1e-6 for stamp in scene.get_all_iteration_timestamps()]
        chosen = [i for i, t in enumerate(times) if begin_s - 1e-6 <= t - times[0] <= begin_s + seconds + 1e-6]
        if len(chosen) < 2:
            fail(f"{scene.log_name}: expected at least two iterations from {begin_s} s on, found {len(chosen)} of "
                 f"{len(times)} over {times[-1] - times[0]:.1f} s")
        start_s = times[chosen[0]]
        size = scene.get_ego_state_se3_metadata()
        if size is None:
            fail(f"{scene.log_name}: expected ego's states, found none")
        self.apart_s = APART_MAX * (times[chosen[-1]] - start_s) / (len(chosen) - 1)
        self.ego = Track("vehicle", size.length, size.width, size.height)
        self.tracks = {}
        self.lights = []  # (time, {lane: state})
        self.left_out = 0
        for i in chosen:
            self.read(scene, i, times[i] - start_s)
        count = int(round((times[chosen[-1]] - start_s) / STEP_S)) + 1
        self.times_s = [k * STEP_S for k in range(count)]

    def read(self, scene, iteration, time_s):
        state = scene.get_ego_state_se3_at_iteration(iteration)
        if state is not None:
            self.ego.add(time_s, state.center_se2, None)
        for box in scene.get_box_detections_se3_at_iteration(iteration) or ():
            label = box.attributes.default_label
            if label in NO_AGENTS:
                self.left_out += 1
                continue
            token, body = box.attributes.track_token, box.bounding_box_se3
            if token not in self.tracks:
                self.tracks[token] = Track(TYPES.get(label, "other"), body.length, body.width, body.height)
            self.tracks[token].add(time_s, box.center_se2, velocity_of(box.velocity_2d))
        lights = scene.get_traffic_light_detections_at_iteration(iteration)
        if lights is not None:
            self.lights.append((time_s, {str(light.lane_id): LIGHTS[light.status] for light in lights}))

    def objects(self):
        tracks = [self.ego, *self.tracks.values()]
        return [track.record(i, self.times_s, self.apart_s) for i, track in enumerate(tracks)]

    def states(self, lane):
        """States of a lane's light at each time of the grid; unknown before the first and where it was not seen."""
        states, at = [], -1
        for time_s in self.times_s:
            while at + 1 < len(self.lights) and self.lights[at + 1][0] <= time_s + 1e-6:
                at += 1
            states.append(self.lights[at][1].get(lane, "unknown") if at >= 0 else "unknown")
        return states


def xyz(point):
    return {"x": float(point[0]), "y": float(point[1]), "z": 0.0}


def map_of(scene, recording, reach_m):
    """Roads near ego's drive, and lights by the lane's number."""
    api = scene.get_map_api()
    if api is None:
        fail(f"{scene.log_name}: expected a map, found none; give --maps")
    layers = [layer for layer in (MapLayer.LANE, *AREAS) if layer in api.get_available_map_layers()]
    found, last = {}, None
    for time_s, x, y, _, _ in recording.ego.samples:
        if last is not None and math.hypot(x - last[0], y - last[1]) < LOOK_M:
            continue
        last = (x, y)
        point = scene_point(x, y)
        for layer, objects in api.get_map_objects_in_radius(point, reach_m, layers).items():
            for item in objects:
                found.setdefault((layer, str(item.object_id)), item)
    roads, lights = [], {}
    for number, ((layer, name), item) in enumerate(found.items()):
        if layer != MapLayer.LANE:
            roads.append({"id": number, "type": AREAS[layer], "geometry": [xyz(p) for p in item.outline.array]})
            continue
        line = item.centerline
        width_m = item.shapely_polygon.area / max(line.linestring.length, 0.1)
        road = {"id": number, "type": "lane", "map_element_id": ELEMENTS.get(item.lane_type, 2),
                "geometry": [xyz(p) for p in line.array], "width_m": min(max(width_m, WIDTHS_M[0]), WIDTHS_M[1])}
        if item.speed_limit_mps is not None and item.speed_limit_mps > 0:
            road["speed_limit_mps"] = float(item.speed_limit_mps)
        roads.append(road)
        if any(name in seen for _, seen in recording.lights):
            begin, count = line.array[0], len(recording.times_s)
            lights[str(number)] = {"state": recording.states(name), "time_index": list(range(count)),
                                   "x": [float(begin[0])] * count, "y": [float(begin[1])] * count}
    return roads, lights


def scene_point(x, y):
    from py123d.geometry import Point2D  # py123d's geometry is slow to load

    return Point2D(x, y)


def geography_of(scene):
    place = f"{scene.location or ''} {scene.dataset}".lower()
    if place.startswith("sg") or "singapore" in place:
        return "asia"
    american = ("us-", "us_", "boston", "vegas", "pittsburgh", "av2", "wod", "waymo", "womd", "pandaset")
    if any(word in place for word in american):
        return "north_america"
    return "europe" if "kitti" in place else "unspecified"


def write(scene, options):
    recording = Recording(scene, options.begin, options.seconds)
    roads, lights = map_of(scene, recording, options.reach)
    name = f"{scene.log_name}_{options.begin:g}"
    document = {"name": name, "scenario_id": name, "dataset": f"{scene.dataset} by py123d",
                "geography": geography_of(scene), "objects": recording.objects(), "roads": roads, "tl_states": lights,
                "metadata": {"sdc_track_index": 0}}
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(document, file, allow_nan=False)
    print(f"{options.output}: {len(recording.times_s)} samples, {len(recording.tracks)} tracks, {len(roads)} roads, "
          f"{len(lights)} lights; {recording.left_out} boxes of signs and lights left out")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--logs", required=True, help="py123d's folder of logs")
    parser.add_argument("--maps", required=True, help="py123d's folder of maps")
    parser.add_argument("--log", help="name of the log")
    parser.add_argument("--begin", type=float, default=0.0, help="seconds from the log's start (0)")
    parser.add_argument("--seconds", type=float, default=20.0, help="length (20)")
    parser.add_argument("--reach", type=float, default=100.0, help="metres of map beside ego's drive (100)")
    parser.add_argument("-o", "--output", help="the scene's JSON")
    options = parser.parse_args()
    if not os.path.isdir(options.logs):
        fail(f"--logs: expected a folder, found {options.logs}")
    scenes = scenes_of(options.logs, options.maps, options.log)
    if options.log is None:
        for scene in scenes:
            print(scene.log_name)
        return
    if len(scenes) != 1:
        names = sorted(scene.log_name for scene in scenes_of(options.logs, options.maps, None))
        fail(f"--log: expected one of {', '.join(names[:20])}, found {options.log}")
    if options.output is None:
        fail("expected -o scene.json")
    write(scenes[0], options)


if __name__ == "__main__":
    main()
