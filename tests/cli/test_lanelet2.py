#!/usr/bin/env python3
"""Lanelet2 maps become maps of scenarios.

Method: a map of which everything is known is written here as Autoware writes them; scripts/adapters/lanelet2_map.py turns
it into a map, whose lanes and links are compared, and on which Swerve drives. Skipped where lanelet2 is not installed.
"""
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

if importlib.util.find_spec("lanelet2") is None:
    print("skipped: lanelet2 is not installed")
    sys.exit(77)

SWERVE, ROOT = os.path.realpath(sys.argv[1]), pathlib.Path(os.path.realpath(sys.argv[2]))
ROWS_M, COLUMNS_M = (0.0, 3.5, 7.0, 10.5), (0.0, 50.0, 120.0)
STYLES = {0: ("road_border", ""), 1: ("line_thin", "dashed"), 2: ("line_thin", "solid"), 3: ("road_border", "")}
# id: rows of its left and right bounds, column, whether it runs west, subtype, speed limit
LANELETS = {501: (1, 0, 0, False, "road", "50"), 502: (1, 0, 1, False, "road", "30 mph"), 503: (2, 1, 0, False, "road", "50"),
            504: (2, 3, 0, True, "road", "50"), 505: (1, 0, 2, False, "crosswalk", ""), 506: (3, 2, 1, False, "walkway", "")}


def tags(**values):
    return "".join(f'<tag k="{name}" v="{value}"/>' for name, value in values.items() if value != "")


def write_map(path, local):
    lines = ['<osm version="0.6" generator="test">']
    for row, y in enumerate(ROWS_M):
        for column, x in enumerate((*COLUMNS_M, 55.0)):
            place = {"local_x": x + 1000, "local_y": y + 2000} if local else {}
            lines.append(f'<node id="{10 * row + column + 1}" lat="{49 + y / 111000:.12f}" lon="{8 + x / (111320 * math.cos(math.radians(49))):.12f}">{tags(ele=3, **place)}</node>')
    for row, (kind, subtype) in STYLES.items():
        for column, (a, b) in enumerate(((0, 1), (1, 2), (1, 3))):
            lines.append(f'<way id="{100 + 10 * row + column}"><nd ref="{10 * row + a + 1}"/><nd ref="{10 * row + b + 1}"/>{tags(type=kind, subtype=subtype)}</way>')
    for name, (left, right, column, west, subtype, limit) in LANELETS.items():
        ways = [100 + 10 * row + column for row in (left, right)]
        lines.append(f'<relation id="{name}"><member type="way" role="left" ref="{ways[0]}"/><member type="way" role="right" ref="{ways[1]}"/>'
                     f'{tags(type="lanelet", subtype=subtype, speed_limit=limit, location="urban", one_way="yes")}</relation>')
    path.write_text("\n".join(lines + ["</osm>"]))


def lanes_of(folder):
    run = subprocess.run([sys.executable, ROOT / "scripts/adapters/lanelet2_map.py", folder / "town.osm", "-o", folder / "town.json"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "4 lanes, 1 crosswalks; 1 lanelets of other kinds left out" in run.stdout, run.stdout
    chart = json.loads((folder / "town.json").read_text())
    return {lane["id"]: lane for lane in chart["lanes"]}, chart


def check(lanes, chart, offset, bound_m):
    first, second, beside, west = (lanes[f"lanelet_{name}"] for name in (501, 502, 503, 504))
    for lane, y, (begin, end) in ((first, 1.75, (0, 50)), (second, 1.75, (50, 120)), (beside, 5.25, (0, 50)), (west, 8.75, (50, 0))):
        line = lane["centre_line"]
        assert math.dist(line[0], [begin + offset[0], y + offset[1]]) < bound_m and math.dist(line[-1], [end + offset[0], y + offset[1]]) < bound_m, lane
        assert all(abs(width - 3.5) < bound_m for width in lane["width_m"])
    assert first["successors"] == ["lanelet_502"] and not second["successors"] and not beside["successors"] and not west["successors"]
    assert first["left"] == "lanelet_503" and beside["right"] == "lanelet_501" and "right" not in first and "left" not in second
    assert beside["left"] == "lanelet_504" and beside["left_opposite"] and west["left"] == "lanelet_503" and west["left_opposite"]
    assert (first["left_marking"], first["right_marking"], beside["left_marking"]) == ("dashed", "solid", "solid")
    assert abs(first["speed_limit_mps"] - 50 / 3.6) < 1e-9 and abs(second["speed_limit_mps"] - 30 * 0.44704) < 1e-9
    assert len(chart["crosswalks"]) == 1 and len(chart["crosswalks"][0]) == 4


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_map(folder / "town.osm", local=False)
        check(*lanes_of(folder), (0, 0), 2.0)  # degrees were made by rule of thumb, and the grid of UTM is turned by 0.75 degrees
        write_map(folder / "town.osm", local=True)
        check(*lanes_of(folder), (1000, 2000), 1e-9)
        scene = {"id": "town", "map": {"file": "town.json"}, "horizon_s": 3,
                 "ego": {"pose": {"lane": "lanelet_501", "s_m": 10}, "speed_mps": 8, "route": ["lanelet_501", "lanelet_502"]}}
        (folder / "drive.json").write_text(json.dumps(scene))
        run = subprocess.run([SWERVE, "run", "drive.json", "--world", "object", "--planner", "builtin:idm", "--nominal", "--store", "town.db", "--json"],
                             capture_output=True, text=True, cwd=folder)
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout)["passed"] == 1, run.stdout
        text = re.sub('lat="[^"]*" lon="[^"]*"', 'lat="" lon=""', (folder / "town.osm").read_text())  # as where local_x and local_y say it all
        (folder / "town.osm").write_text(re.sub('(<node id="11".*?local_y" v=")[0-9.]*', r"\g<1>2000.0", text))  # lanelet 501 ends in a point
        tapering = lanes_of(folder)[0]["lanelet_501"]
        assert sorted(tapering["width_m"]) == [0.5, 3.5], tapering
        (folder / "town.osm").write_text("no map")
        run = subprocess.run([sys.executable, ROOT / "scripts/adapters/lanelet2_map.py", folder / "town.osm", "-o", folder / "x.json"], capture_output=True, text=True)
        assert run.returncode != 0 and "town.osm" in run.stderr and "Traceback" not in run.stderr, run.stderr


if __name__ == "__main__":
    main()
