#!/usr/bin/env python3
"""Compares progress, driving direction and speed limit of stored drives with nuPlan's devkit, by its own classes.

    git clone https://github.com/motional/nuplan-devkit
    python3 -m venv venv && venv/bin/pip install numpy scipy shapely
    swerve run scenarios/longtail.json --world object --store runs.db
    venv/bin/python scripts/compare/nuplan_routes.py --devkit nuplan-devkit --swerve build/worker/swerve --store runs.db

The devkit asks a map and an expert. The map is the scenario's lanes (see nuplan_collisions.py) with their centre lines as
baselines; neighbours of one direction are a roadblock, as are the connectors of a junction between the same two. The expert
drives evenly along the lanes of ego's route, as far as worker/METRICS.md expects (a log is the expert itself). Metres
are compared against an expert who goes on as far as ego. Invariant: no metric is computed here, only handed over.
"""
import argparse
import math
import sys
import types

from nuplan_collisions import border
from nuplan_metrics import TICK_US, Absent, Reader

FLOOR_M = 0.1  # of the documented ratio; the shipped configuration says 2
EQUAL = 1e-6
STANDING_MPS, RISE_MPS2, UNPOSTED_MPS = 1.0, 1.0, 30 / 3.6


def free_flow_m(ego, lane, horizon_s):
    """The third rule of METRICS.md, without the end of the route."""
    speed, limit = ego["speed_mps"], lane.get("speed_limit_mps") or 0
    if speed > STANDING_MPS:
        return (min(speed, limit) if limit > 0 else speed) * horizon_s
    target = limit if limit > 0 else UNPOSTED_MPS
    rising = min(max((target - speed) / RISE_MPS2, 0), horizon_s)
    return (speed + RISE_MPS2 * rising / 2) * rising + (speed + RISE_MPS2 * rising) * (horizon_s - rising)


def make_map(scenario, shapely, maps, layers):
    """A map as far as the devkit's functions on routes ask for it."""
    from shapely.geometry import LineString, Point, Polygon
    from shapely.ops import unary_union

    class Area:
        def __init__(self, polygon):
            self.polygon = polygon
            shapely.prepare(polygon)

        def contains_point(self, point):
            return self.polygon.contains(Point(point.x, point.y))

    class Edge(Area):
        def __init__(self, lane):
            line, width = lane["centre_line"], lane.get("width_m", 3.5)
            widths = width if isinstance(width, list) else [width] * len(line)
            super().__init__(Polygon(border(line, widths, 1) + border(line, widths, -1)[::-1]).buffer(1e-9))
            self.id, self.group = lane["id"], lane["id"]
            self.baseline_path = types.SimpleNamespace(linestring=LineString(line))
            self.speed_limit_mps = lane.get("speed_limit_mps")
            self.outgoing_edges, self.incoming_edges = [], []

        def get_roadblock_id(self):
            return self.group

    class MapLane(Edge):
        pass

    class MapConnector(Edge):
        pass

    maps.Lane.register(MapLane)
    maps.LaneConnector.register(MapConnector)
    roads = [lane for lane in scenario["map"]["lanes"] if lane.get("kind", "driving") == "driving"]
    edges = {lane["id"]: (MapConnector if lane.get("intersection") else MapLane)(lane) for lane in roads}
    for lane in roads:
        for after in lane.get("successors", []):
            if after in edges:
                edges[lane["id"]].outgoing_edges.append(edges[after])
                edges[after].incoming_edges.append(edges[lane["id"]])
    join_roadblocks(roads, edges)
    blocks = {}
    for edge in edges.values():
        blocks.setdefault(edge.group, []).append(edge.polygon)
    blocks = {name: Area(unary_union(polygons)) for name, polygons in blocks.items()}
    junctions = Area(unary_union([edge.polygon for edge in edges.values() if isinstance(edge, MapConnector)]))

    def found(point, layer):
        wanted = MapConnector if layer == layers.LANE_CONNECTOR else MapLane
        return [edge for edge in edges.values() if isinstance(edge, wanted) and edge.contains_point(point)]

    return types.SimpleNamespace(
        edges=edges, get_all_map_objects=found, get_one_map_object=lambda point, layer: (found(point, layer) or [None])[0],
        get_map_object=lambda name, layer: blocks[name], is_in_layer=lambda point, layer: junctions.contains_point(point))


def join_roadblocks(roads, edges):
    """Names the roadblock of each edge."""
    def rename(old, new):
        for edge in edges.values():
            edge.group = new if edge.group == old else edge.group

    for lane in roads:
        for side in ("left", "right"):
            if lane.get(side) in edges and not lane.get(side + "_opposite"):
                rename(edges[lane[side]].group, edges[lane["id"]].group)
    between = {}
    for lane in roads:
        edge = edges[lane["id"]]
        if lane.get("intersection") and edge.incoming_edges and edge.outgoing_edges:
            ends = (edge.incoming_edges[0].group, edge.outgoing_edges[0].group)
            rename(edge.group, between.setdefault(ends, edge.group))


def route_line(scenario, shapely, length_m):
    """The centre lines of ego's route from where it starts, and of what follows until that length."""
    from shapely.geometry import LineString, Point
    lanes = {lane["id"]: lane for lane in scenario["map"]["lanes"]}
    names, start = list(scenario["ego"]["route"]), scenario["ego"]["pose"]
    ego = Point(start["x_m"], start["y_m"])
    points, i = [], 0
    while i < len(names):
        lane, after = lanes[names[i]], names[i + 1] if i + 1 < len(names) else None
        line = [tuple(point) for point in lane["centre_line"]]
        if after is not None and after not in lane.get("successors", []):  # a change of lane: the rest is the neighbour's
            at = LineString(line).project(ego) if i == 0 else 0
            line = list(shapely.ops.substring(LineString(line), 0, at + 20).coords)
            beside = LineString(lanes[after]["centre_line"])
            rest = shapely.ops.substring(beside, beside.project(Point(line[-1])) + 20, beside.length)
            lanes = {**lanes, after: {**lanes[after], "centre_line": list(rest.coords)}}
        points += line if not points or line[0] != points[-1] else line[1:]
        if after is None and lane.get("successors") and LineString(points).length < length_m + LineString(points).project(ego):
            names.append(lane["successors"][0])
        i += 1
    return LineString(points), LineString(points).project(ego)


def make_compare(devkit):
    sys.path.insert(0, devkit)
    sys.meta_path.append(Absent())
    import numpy as np
    import shapely
    import shapely.ops
    from nuplan.common.actor_state.state_representation import StateSE2
    from nuplan.common.maps import abstract_map_objects as maps
    from nuplan.common.maps.maps_datatypes import SemanticMapLayer
    from nuplan.planning.metrics.evaluation_metrics.common import driving_direction_compliance as direction
    from nuplan.planning.metrics.evaluation_metrics.common import ego_is_making_progress as making
    from nuplan.planning.metrics.evaluation_metrics.common import ego_progress_along_expert_route as progress
    from nuplan.planning.metrics.evaluation_metrics.common import speed_limit_compliance as speed
    from nuplan.planning.metrics.utils import route_extractor as route

    def state(x_m, y_m, heading_rad, speed_mps, index):
        return types.SimpleNamespace(
            center=StateSE2(x_m, y_m, heading_rad), time_point=types.SimpleNamespace(time_us=index * TICK_US),
            dynamic_car_state=types.SimpleNamespace(speed=speed_mps))

    def drive_of(states, map_api):
        data = [types.SimpleNamespace(ego_state=at) for at in states]
        return types.SimpleNamespace(extract_ego_state=states, map_api=map_api, data=data)

    def expert_of(scenario, length_m, ticks):
        line, start = route_line(scenario, shapely, length_m)
        length = min(length_m, line.length - start)
        places = [line.interpolate(start + length * i / (ticks - 1)) for i in range(ticks)]
        return types.SimpleNamespace(get_expert_ego_trajectory=lambda: [state(at.x, at.y, 0, 0, i) for i, at in enumerate(places)])

    def expected_m(scenario):
        """The expected progress of METRICS.md; None: a log is the expert."""
        given = scenario["criteria"].get("expected_progress_m")
        if given is not None or scenario["ego"].get("log"):
            return given
        line, start = route_line(scenario, shapely, 0)
        lanes, horizon = {lane["id"]: lane for lane in scenario["map"]["lanes"]}, scenario["horizon_s"]
        goal = scenario["ego"].get("goal")
        end = line.project(shapely.geometry.Point(goal["x_m"], goal["y_m"])) if goal else line.length
        return min(max(0, end - start), free_flow_m(scenario["ego"], lanes[scenario["ego"]["route"][0]], horizon))

    def logged(scenario):
        points = np.array(scenario["ego"]["log"])  # rows of time, x, y, heading and speed
        times = np.arange(0, min(scenario["horizon_s"], points[-1, 0]) + 1e-9, 0.1)
        places = [np.interp(times, points[:, 0], points[:, column]).tolist() for column in (1, 2)]
        return types.SimpleNamespace(get_expert_ego_trajectory=lambda: [state(*at, 0, 0, i) for i, at in enumerate(zip(*places))])

    def along(history, expert, floor_m):
        metric = progress.EgoProgressAlongExpertRouteStatistics("progress", "planning", floor_m)
        found = metric.compute(history, expert)[0].statistics
        makes = making.EgoIsMakingProgressStatistics("making", "planning", metric, 0.2).compute(history, expert)
        metres = found[1].value if len(found) == 3 else math.nan
        return metres, found[-1].value, float(makes[0].statistics[0].value)

    def ends_on_route(history, expert):
        """Off its roadblocks the devkit counts no progress, so what ego drove since it left them is missing at the end."""
        path = route.get_route(history.map_api, [at.center.point for at in expert.get_expert_ego_trajectory()])
        blocks = {objects[0].get_roadblock_id() for objects in path if objects}
        last = history.extract_ego_state[-1].center.point
        return any(history.map_api.get_map_object(name, None).contains_point(last) for name in blocks)

    def compare(outcome, ticks, scenario):
        m = outcome["metrics"]
        states = [state(at["x_m"], at["y_m"], at["heading_rad"], at["speed_mps"], i) for i, at in enumerate(ticks)]
        map_api = make_map(scenario, shapely, maps, SemanticMapLayer)
        history = drive_of(states, map_api)
        lane = types.SimpleNamespace(ego_driven_route=route.get_route(map_api, [at.center.point for at in states]))
        expected = expected_m(scenario)
        expert = logged(scenario) if expected is None else expert_of(scenario, expected, round(scenario["horizon_s"] * 10) + 1)
        far = expert_of(scenario, max(expected or 0, m["progress_m"]) + 10, 200)
        _, ratio, makes = along(history, expert, FLOOR_M)
        heading = direction.DrivingDirectionComplianceStatistics("direction", "planning", lane).compute(history, None)
        limit = speed.SpeedLimitComplianceStatistics("speed", "violations", lane, 0, 2.23).compute(history, None)
        return {"progress_m": along(history, far, FLOOR_M)[0], "progress": ratio, "making_progress": makes,
                "progress, floor 2 m": along(history, expert, 2)[1],
                "driving_direction": heading[0].metric_score, "speed_limit": limit[0].metric_score}, ends_on_route(history, far)

    return compare


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devkit", required=True)
    parser.add_argument("--swerve", default="swerve")
    parser.add_argument("--store", required=True)
    parser.add_argument("--list", type=int, default=10, help="drives named of each metric, those that differ most")
    options = parser.parse_args()
    compare = make_compare(options.devkit)
    reader = Reader(options.swerve, options.store)
    found, drives, off = {}, 0, 0
    for outcome in reader.outcomes():
        if outcome["verdict"] not in ("pass", "fail"):
            continue
        metrics, on_route = compare(outcome, reader.ticks(outcome), reader.scenario(outcome))
        drives += 1
        off += not on_route
        for name, theirs in metrics.items():
            ours = outcome["metrics"][name.split(",")[0]]
            found.setdefault(name, []).append((abs(ours - theirs), on_route, outcome, ours, theirs))
    print(f"{drives} drives, {off} of them end off the roadblocks of their route\n\n"
          "| metric | differ | by more than 0.01 | most | end on the route: differ | by more than 0.01 | most |\n|---|---|---|---|---|---|---|")
    for name, rows in found.items():
        rows.sort(key=lambda row: -row[0])
        cells = []
        for kept in (rows, [row for row in rows if row[1]]):
            far = [sum(row[0] > limit for row in kept) for limit in (EQUAL, 0.01)]
            cells += [*map(str, far), f"{kept[0][0]:.2g}" if kept else "-"]
        print(f"| `{name}` | {' | '.join(cells)} |")
    for name, rows in found.items():
        for difference, on_route, outcome, ours, theirs in rows[:options.list]:
            if difference > EQUAL:
                print(f"{name}: {outcome['id']} {outcome['scenario_id']} {outcome['branch_id']}"
                      f"{'' if on_route else ' (off)'}: ours {ours:.6g}, theirs {theirs:.6g}")
    return 0 if drives > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
