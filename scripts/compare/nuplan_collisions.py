#!/usr/bin/env python3
"""Compares contacts, faults and the drivable area of stored drives with those of nuPlan's devkit, by its own functions.

    git clone https://github.com/motional/nuplan-devkit
    python3 -m venv venv && venv/bin/pip install numpy scipy shapely
    swerve run scenarios/longtail.json --world object --store runs.db
    venv/bin/python scripts/compare/nuplan_collisions.py --devkit nuplan-devkit --swerve build/worker/swerve --store runs.db

The devkit asks a map: here one whose lanes are polygons between the scenario's borders, those of junctions lane
connectors, with their successors. Its functions find the contacts of each tick, name their kind, follow ego's corners
through the lanes, decide on fault, and measure how far corners leave the drivable area.
"""
import argparse
import math
import sys
import types

from nuplan_metrics import TICK_US, Absent, Reader

OFF_M = 0.3
KINDS = {"stopped_ego": 0, "stopped_track": 1, "front": 2, "rear": 3, "lateral": 4}


def border(line, widths, side):
    points = []
    for i, (x, y) in enumerate(line):
        a, b = line[max(i - 1, 0)], line[min(i + 1, len(line) - 1)]
        dx, dy = b[0] - a[0], b[1] - a[1]
        shift = side * widths[i] / 2 / (math.hypot(dx, dy) or 1)
        points.append((x - dy * shift, y + dx * shift))
    return points


def make_map(scenario, shapely, layers):
    """A map as far as the devkit's functions ask for it."""
    from shapely.geometry import Point, Polygon
    from shapely.ops import unary_union

    class Object:
        def __init__(self, lane):
            line, width = lane["centre_line"], lane.get("width_m", 3.5)
            widths = width if isinstance(width, list) else [width] * len(line)
            self.id, self.kind = lane["id"], lane.get("kind", "driving")
            self.junction = lane.get("intersection", False)
            self.polygon = Polygon(border(line, widths, 1) + border(line, widths, -1)[::-1]).buffer(1e-9)
            self.outgoing_edges, self.incoming_edges = [], []

        def contains_point(self, point):
            return self.polygon.contains(Point(point.x, point.y))

    lanes = {lane["id"]: Object(lane) for lane in scenario["map"]["lanes"]}
    for lane in scenario["map"]["lanes"]:
        for after in lane.get("successors", []):
            lanes[lane["id"]].outgoing_edges.append(lanes[after])
            lanes[after].incoming_edges.append(lanes[lane["id"]])
    roads = [lane for lane in lanes.values() if lane.kind == "driving"]
    areas = [lane.polygon for lane in lanes.values() if lane.kind != "sidewalk"]
    area = unary_union(areas + [Polygon(points).buffer(0) for points in scenario["map"].get("drivable", [])])
    shapely.prepare(area)

    def found(point, layer):
        wanted = layer == layers.LANE_CONNECTOR
        return [lane for lane in roads if lane.junction == wanted and lane.contains_point(point)]

    return types.SimpleNamespace(
        get_all_map_objects=found, get_one_map_object=lambda point, layer: (found(point, layer) or [None])[0],
        is_in_layer=lambda point, layer: area.intersects(Point(point.x, point.y)),
        get_distance_to_nearest_map_object=lambda point, layer: ("area", area.distance(Point(point.x, point.y))))


def make_compare(devkit):
    sys.path.insert(0, devkit)
    sys.meta_path.append(Absent())
    import shapely
    from nuplan.common.actor_state.agent import Agent
    from nuplan.common.actor_state.oriented_box import OrientedBox
    from nuplan.common.actor_state.state_representation import StateSE2
    from nuplan.common.actor_state.tracked_objects_types import TrackedObjectType
    from nuplan.common.maps.maps_datatypes import SemanticMapLayer
    from nuplan.planning.metrics.evaluation_metrics.common import drivable_area_compliance as drivable
    from nuplan.planning.metrics.evaluation_metrics.common import no_ego_at_fault_collisions as fault
    from nuplan.planning.metrics.utils import route_extractor as route

    class Track(Agent):
        def __init__(self, box, speed, token):
            self._own = (box, abs(speed), token)

        center = property(lambda self: self._own[0].center)
        box = property(lambda self: self._own[0])
        velocity = property(lambda self: types.SimpleNamespace(magnitude=lambda: self._own[1]))
        track_token = property(lambda self: self._own[2])
        tracked_object_type = property(lambda self: TrackedObjectType.VEHICLE)

    def tracks_of(tick, scenario):
        for at in tick["agents"]:
            size = [scenario["agents"][at["agent"]][name] for name in ("length_m", "width_m", "height_m")]
            yield Track(OrientedBox(StateSE2(at["x_m"], at["y_m"], at["heading_rad"]), *size), at["speed_mps"], str(at["agent"]))

    def contacts(states, ticks, scenario):
        known, result = set(), []
        for state, tick in zip(states, ticks):
            observed = types.SimpleNamespace(tracked_objects=list(tracks_of(tick, scenario)))
            known, new = fault.find_new_collisions(state, observed, known)
            if new:
                result.append(fault.Collisions(state.time_point.time_us, new))
        return result

    def on_road(states, map_api, corners):
        centers = [state.center.point for state in states]
        metric = drivable.DrivableAreaComplianceStatistics.__new__(drivable.DrivableAreaComplianceStatistics)
        metric._max_violation_threshold = OFF_M
        far = False
        for state, corner_route, center_route in zip(states, corners, route.get_route(map_api, centers)):
            box = state.car_footprint.oriented_box
            _, far = metric.compute_violation_for_iteration(map_api, box.all_corners(), corner_route, center_route, far)
        return not far

    def compare(outcome, ticks, scenario):
        m, ego = outcome["metrics"], scenario["ego"]
        states = []
        for index, tick in enumerate(ticks):
            center, back = StateSE2(tick["x_m"], tick["y_m"], tick["heading_rad"]), ego["wheelbase_m"] / 2
            rear = StateSE2(center.x - back * math.cos(center.heading), center.y - back * math.sin(center.heading), center.heading)
            states.append(types.SimpleNamespace(
                center=center, rear_axle=rear, time_point=types.SimpleNamespace(time_us=index * TICK_US),
                dynamic_car_state=types.SimpleNamespace(speed=tick["speed_mps"]),
                car_footprint=types.SimpleNamespace(oriented_box=OrientedBox(center, ego["length_m"], ego["width_m"], ego["height_m"]))))
        map_api = make_map(scenario, shapely, SemanticMapLayer)
        corners = route.extract_corners_route(map_api, [state.car_footprint.oriented_box for state in states])
        common = route.get_common_or_connected_route_objs_of_corners(corners)
        times = [state.time_point.time_us for state in states]
        inside = route.get_timestamps_in_common_or_connected_route_objs(common, times)
        found = contacts(states, ticks, scenario)
        faults, _ = fault.classify_at_fault_collisions(found, inside)
        theirs = {"contacts": sum(len(at.collisions_id_data) for at in found), "at_fault": bool(faults),
                  "first_tick": found[0].timestamp // TICK_US if found else None, "drivable_area": float(on_road(states, map_api, corners))}
        ours = {"contacts": m["collision_count"], "at_fault": bool(m["at_fault"]),
                "first_tick": m["collision_tick"] if m["collision_count"] > 0 else None, "drivable_area": float(m["drivable_area"])}
        return {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}, ours

    return compare


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devkit", required=True)
    parser.add_argument("--swerve", default="swerve")
    parser.add_argument("--store", required=True)
    options = parser.parse_args()
    compare = make_compare(options.devkit)
    reader = Reader(options.swerve, options.store)
    drives, touched, blamed, off, bad = 0, 0, 0, 0, []
    for outcome in reader.outcomes():
        if outcome["verdict"] not in ("pass", "fail"):
            continue
        differs, ours = compare(outcome, reader.ticks(outcome), reader.scenario(outcome))
        drives += 1
        touched += ours["contacts"] > 0
        blamed += ours["at_fault"]
        off += ours["drivable_area"] < 1
        if differs:
            bad.append(f"{outcome['id']} {outcome['scenario_id']} {outcome['branch_id']}: ours, theirs: {differs}")
    print(f"{drives} drives, {touched} with a contact, {blamed} of them ego's fault, {off} off the drivable area; {len(bad)} differ")
    print("\n".join(bad[:40]))
    return 1 if bad or drives == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
