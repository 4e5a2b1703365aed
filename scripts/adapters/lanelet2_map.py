#!/usr/bin/env python3
"""Lanelet2 maps (Autoware's, CARLA's) as maps of scenarios.

    pip install lanelet2
    python3 scripts/adapters/lanelet2_map.py MAP.osm -o map.json [--origin LAT,LON]

lanelet2 reads the file and orients the lanelets; this writes a map for `"map": {"file": "map.json"}`. Points lie where
their tags `local_x` and `local_y` say, as in Autoware's maps; where one has none, all are projected by UTM about the
origin, which is the first point unless --origin says another.

Taken over: lanelets of roads, bicycle lanes and shoulders, with centres, widths, marks and speed limits (`speed_limit` in
km/h); a lanelet follows another where both bounds go on in the same points, and lies beside another where they share a
bound; crosswalks. Other lanelets, areas, lights, signs and elevation stay behind; how many lanelets is said.
"""
import argparse
import bisect
import json
import math
import pathlib
import re
import sys
import xml.etree.ElementTree

try:
    import lanelet2
except ImportError:
    sys.exit("lanelet2_map: lanelet2 is missing: pip install lanelet2")

KINDS = {"road": "driving", "highway": "driving", "play_street": "driving", "bus_lane": "driving", "emergency_lane": "shoulder",
         "road_shoulder": "shoulder", "bicycle_lane": "cycle"}
POINT_STEP_M, WIDTHS_M = 2.0, (0.5, 50.0)  # lanelets may taper to a point, or be a square


def origin_of(path):
    found = False
    for _, element in xml.etree.ElementTree.iterparse(path):
        found = found or element.tag == "node"
        if element.tag == "node" and element.attrib["lat"] and element.attrib["lon"]:
            return float(element.attrib["lat"]), float(element.attrib["lon"])
    return (0.0, 0.0) if found else sys.exit(f"lanelet2_map: {path}: expected points, found none")  # of points with local_x alone


def tag(element, name):
    return element.attributes[name] if name in element.attributes else ""


def places_of(chart):
    """Place of each point by its id."""
    points = list(chart.pointLayer)
    local = all("local_x" in point.attributes and "local_y" in point.attributes for point in points)
    return {point.id: (float(point.attributes["local_x"]), float(point.attributes["local_y"])) if local else (point.x, point.y) for point in points}


def along(line, count):
    """That many points at equal ways along a line."""
    ways = [0.0]
    for a, b in zip(line, line[1:]):
        ways.append(ways[-1] + math.dist(a, b))
    made = []
    for k in range(count):
        way = ways[-1] * k / (count - 1)
        i = min(max(bisect.bisect_right(ways, way), 1), len(line) - 1)
        part = (way - ways[i - 1]) / (ways[i] - ways[i - 1]) if ways[i] > ways[i - 1] else 0.0
        made.append([a + part * (b - a) for a, b in zip(line[i - 1], line[i])])
    return made


def mark_of(bound):
    subtype = tag(bound, "subtype")
    return "dashed" if "dashed" in subtype else "none" if tag(bound, "type") == "virtual" else "solid"


def limit_of(lanelet):
    found = re.fullmatch(r"([0-9.]+)\s*(km/h|kmh|mph)?", tag(lanelet, "speed_limit").strip())
    return float(found.group(1)) * (0.44704 if found.group(2) == "mph" else 1 / 3.6) if found else 0


def lane_of(lanelet, places):
    bounds = [[places[point.id] for point in bound] for bound in (lanelet.leftBound, lanelet.rightBound)]
    length_m = max(sum(math.dist(a, b) for a, b in zip(bound, bound[1:])) for bound in bounds)
    count = max(2, len(bounds[0]), len(bounds[1]), math.ceil(length_m / POINT_STEP_M) if any(len(bound) > 2 for bound in bounds) else 2)
    left, right = (along(bound, count) for bound in bounds)
    return {"id": f"lanelet_{lanelet.id}", "kind": KINDS[tag(lanelet, "subtype")], "successors": [], "speed_limit_mps": limit_of(lanelet),
            "centre_line": [[(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] for a, b in zip(left, right)], "width_m": [min(max(math.dist(a, b), WIDTHS_M[0]), WIDTHS_M[1]) for a, b in zip(left, right)],
            "left_marking": mark_of(lanelet.leftBound), "right_marking": mark_of(lanelet.rightBound)}


def join(lanes):
    """Links of (lanelet, lane): those that follow, and one neighbour a side where a bound is shared by no third."""
    ends = {}
    sides = {"left": {}, "right": {}}
    for lanelet, lane in lanes:
        ends.setdefault((lanelet.leftBound[0].id, lanelet.rightBound[0].id), []).append(lane)
        sides["left"].setdefault(lanelet.leftBound.id, []).append(lane)
        sides["right"].setdefault(lanelet.rightBound.id, []).append(lane)
    for lanelet, lane in lanes:
        lane["successors"] = [after["id"] for after in ends.get((lanelet.leftBound[-1].id, lanelet.rightBound[-1].id), [])]
        for side, other in (("left", "right"), ("right", "left")):
            bound = (lanelet.leftBound if side == "left" else lanelet.rightBound).id
            same, opposite = sides[other].get(bound, []), sides[side][bound]
            if len(opposite) == 1 and len(same) == 1:
                lane[side] = same[0]["id"]
            elif len(opposite) == 2 and not same:
                lane[side] = next(beside["id"] for beside in opposite if beside is not lane)
                lane[f"{side}_opposite"] = True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("map", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--origin", help="LAT,LON")
    options = parser.parse_args()
    try:
        latitude, longitude = map(float, options.origin.split(",")) if options.origin else origin_of(options.map)
        projector = lanelet2.projection.UtmProjector(lanelet2.io.Origin(latitude, longitude))
        chart, errors = lanelet2.io.loadRobust(str(options.map), projector)
    except (OSError, RuntimeError, ValueError, KeyError, xml.etree.ElementTree.ParseError) as error:
        sys.exit(f"lanelet2_map: {options.map}: {error}")
    for error in errors:
        print(f"lanelet2_map: {options.map}: {error}", file=sys.stderr)
    places, lanes, crosswalks, left = places_of(chart), [], [], 0
    for lanelet in sorted(chart.laneletLayer, key=lambda lanelet: lanelet.id):
        if tag(lanelet, "subtype") == "crosswalk":
            crosswalks.append([list(places[point.id]) for point in [*lanelet.leftBound, *reversed(list(lanelet.rightBound))]])
        elif tag(lanelet, "subtype") in KINDS:
            lanes.append((lanelet, lane_of(lanelet, places)))
        else:
            left += 1
    if not lanes:
        sys.exit(f"lanelet2_map: {options.map}: expected lanelets of roads, found none")
    join(lanes)
    made = {"id": re.sub(r"[^A-Za-z0-9_.-]", "_", options.map.stem)[:60], "lanes": [lane for _, lane in lanes]}
    options.output.write_text(json.dumps(made | ({"crosswalks": crosswalks} if crosswalks else {})))
    print(f"{options.output}: {len(lanes)} lanes, {len(crosswalks)} crosswalks; {left} lanelets of other kinds left out")


if __name__ == "__main__":
    main()
