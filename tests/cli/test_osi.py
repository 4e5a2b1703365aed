#!/usr/bin/env python3
"""Goal: an exported OSI trace holds the drive. Method: a scenario with each kind of thing and a branch that holds a
signal is driven; its files are taken apart by the wire format of Protocol Buffers and the standard's field numbers, and
compared with `show --trace` and the scenario, tick by tick.

Usage: test_osi.py SWERVE
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

SWERVE = os.path.realpath(sys.argv[1])
VECTOR = {1: ("x", "double"), 2: ("y", "double"), 3: ("z", "double")}
ID = {1: ("value", "int")}
CLASS = {1: ("type", "int")}
BASE = {1: ("size", VECTOR), 2: ("position", VECTOR), 3: ("turned", VECTOR), 4: ("velocity", VECTOR),
        5: ("acceleration", VECTOR), 6: ("rate", VECTOR)}
SOURCE = {2: ("type", "text"), 3: ("id", "text")}
TRUTH = {
    1: ("version", {1: ("major", "int"), 2: ("minor", "int"), 3: ("patch", "int")}),
    2: ("time", {1: ("s", "int"), 2: ("ns", "int")}),
    3: ("host", ID),
    4: ("standing", {1: ("id", ID), 2: ("base", BASE), 3: ("class", CLASS), 5: ("source", SOURCE)}),
    5: ("moving", {1: ("id", ID), 2: ("base", BASE), 3: ("type", "int"), 6: ("vehicle", CLASS),
                   5: ("attributes", {4: ("rear", VECTOR), 5: ("front", VECTOR)}), 9: ("class", {1: ("lane", ID)}),
                   10: ("source", SOURCE)}),
    7: ("lights", {1: ("id", ID), 2: ("base", BASE),
                   3: ("class", {1: ("colour", "int"), 2: ("icon", "int"), 3: ("mode", "int"), 5: ("lane", ID), 6: ("dark", "int")}),
                   5: ("source", SOURCE)}),
    9: ("boundaries", {1: ("id", ID), 2: ("line", {1: ("at", VECTOR), 2: ("width", "double"), 3: ("height", "double")}),
                       3: ("class", {1: ("type", "int"), 2: ("colour", "int")})}),
    10: ("lanes", {1: ("id", ID), 3: ("source", SOURCE),
                   2: ("class", {1: ("type", "int"), 2: ("host", "int"), 3: ("line", VECTOR), 4: ("ahead", "int"), 5: ("left", ID),
                                 6: ("right", ID), 7: ("pairs", {1: ("from", ID), 2: ("to", ID)}), 8: ("right_boundary", ID),
                                 9: ("left_boundary", ID), 12: ("subtype", "int")})}),
    12: ("around", {1: ("light", "int"), 6: ("rain", "int"), 7: ("fog", "int")}),
    15: ("map", "text"),
}
RED, YELLOW, GREEN, CONSTANT, OFF = 2, 3, 4, 3, 2

SCENARIO = {
    "id": "drive", "horizon_s": 3, "conditions": {"weather": "fog", "light": "night", "visibility_m": 45},
    "map": {"id": "street", "lanes": [
        {"id": "in", "centre_line": [[0, 0], [60, 0], [100, 0]], "width_m": 3.5, "successors": ["out"], "left": "back", "left_opposite": True,
         "left_marking": "dashed", "speed_limit_mps": 15},
        {"id": "back", "centre_line": [[100, 3.5], [0, 3.5]], "width_m": 3.5, "left": "in", "left_opposite": True},
        {"id": "out", "centre_line": [[100, 0], [400, 0]], "width_m": 3.5, "right": "walk"},
        {"id": "walk", "kind": "sidewalk", "centre_line": [[100, -3], [400, -3]], "width_m": 2.5}],
        "signals": [{"id": "ahead", "lanes": ["in"], "stop_m": 2, "phases": [
            {"light": "red_yellow", "duration_s": 1}, {"light": "green", "duration_s": 60}]}]},
    "ego": {"pose": {"lane": "in", "s_m": 80}, "speed_mps": 12, "route": ["in", "out"]},
    "agents": [
        {"id": "lead", "kind": "truck", "pose": {"lane": "out", "s_m": 60}, "speed_mps": 8, "behaviour": "script",
         "manoeuvres": [{"when": "time", "value": 0.5, "do": "speed", "speed_mps": 2, "rate_mps2": 3}]},
        {"id": "crate", "kind": "object", "pose": {"x_m": 300, "y_m": 5, "heading_rad": 0.5}, "behaviour": "static",
         "length_m": 1, "width_m": 0.5, "height_m": 0.4},
        {"id": "walker", "kind": "pedestrian", "pose": {"x_m": 200, "y_m": -3, "heading_rad": 1.5}, "speed_mps": 1,
         "behaviour": "script"}],
    "branches": [{"id": "dark", "at_tick": 10, "interventions": [
        {"kind": "signal", "tick": 10, "signal": "ahead", "light": "red"}]}],
}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def message(data, fields):
    """Every field as a list, by name; an unknown number or another wire type is a fault."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind = fields[tag >> 3]
        wire = tag & 7
        assert wire == {"int": 0, "double": 1}.get(kind if isinstance(kind, str) else "", 2), (name, wire)
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        else:
            size, at = varint(data, at)
            assert at + size <= len(data), name
            value, at = data[at:at + size], at + size
            value = value.decode() if kind == "text" else message(value, kind)
        found.setdefault(name, []).append(value)
    return found


def truths(path):
    data, at, found = open(path, "rb").read(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        assert at + 4 + size <= len(data), "a message is cut"
        found.append(message(data[at + 4:at + 4 + size], TRUTH))
        at += 4 + size
    return found


def vector(found):
    return tuple(found[0][axis][0] for axis in "xyz")


def number(found):
    return found[0]["value"][0]


def close(a, b):
    return all(math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-9) for x, y in zip(a, b))


def by_source(things):
    return {thing["source"][0]["id"][0]: thing for thing in things}


def drives_are_the_recordings(runs):
    for osi, trace in runs:
        assert len(osi) == len(trace) > 20
        for truth, tick in zip(osi, trace):
            time = truth["time"][0]
            assert time["s"][0] * 10 + time["ns"][0] // 10 ** 8 == tick["tick"] and time["ns"][0] % 10 ** 8 == 0
            moving = by_source(truth["moving"])
            ego = moving["ego"]
            assert number(truth["host"]) == number(ego["id"])
            base = ego["base"][0]
            assert close(vector(base["position"]), (tick["x_m"], tick["y_m"], 0.75))
            assert close(vector(base["turned"]), (0, 0, tick["heading_rad"]))
            ahead = math.cos(tick["heading_rad"]), math.sin(tick["heading_rad"])
            assert close(vector(base["velocity"]), (tick["speed_mps"] * ahead[0], tick["speed_mps"] * ahead[1], 0))
            assert close(vector(base["acceleration"]),
                         (tick["accel_mps2"] * ahead[0] - tick["lat_accel_mps2"] * ahead[1],
                          tick["accel_mps2"] * ahead[1] + tick["lat_accel_mps2"] * ahead[0], 0))
            assert close(vector(base["rate"]), (0, 0, tick["yaw_rate_rps"]))
            things = {**moving, **by_source(truth["standing"])}
            for state in tick["agents"]:
                agent = SCENARIO["agents"][state["agent"]]
                where = things[agent["id"]]["base"][0]
                assert close(vector(where["position"])[:2], (state["x_m"], state["y_m"])), agent["id"]
            assert len(things) == 1 + len(tick["agents"])


def rates_follow_from_the_drive(runs):
    osi, trace = runs[0]
    for before, truth, tick in zip(trace, osi[1:], trace[1:]):
        lead = by_source(truth["moving"])["lead"]["base"][0]
        change = (tick["agents"][0]["speed_mps"] - before["agents"][0]["speed_mps"]) / 0.1
        assert math.isclose(vector(lead["acceleration"])[0], change, abs_tol=1e-9)
    assert any(vector(by_source(truth["moving"])["lead"]["base"][0]["acceleration"])[0] < -2.9 for truth in osi)


def things_are_classified(runs):
    for truth in runs[0][0]:
        moving, standing = by_source(truth["moving"]), by_source(truth["standing"])
        assert list(standing) == ["crate"] and standing["crate"]["class"][0]["type"] == [1]
        assert vector(standing["crate"]["base"][0]["size"]) == (1, 0.5, 0.4)
        assert moving["lead"]["type"] == [2] and moving["lead"]["vehicle"][0]["type"] == [7]
        assert moving["walker"]["type"] == [3] and "vehicle" not in moving["walker"]
        assert vector(moving["ego"]["attributes"][0]["rear"])[0] == -1.4
        assert truth["around"][0] == {"light": [3], "rain": [2], "fog": [9]} and truth["map"] == ["street"]
        assert truth["version"][0]["major"] == [3]


def roads_hold_together(runs):
    for truth in runs[0][0]:
        lanes = by_source(truth["lanes"])
        name = {number(lane["id"]): key for key, lane in lanes.items()}
        edges = {number(edge["id"]): edge for edge in truth["boundaries"]}
        assert set(name.values()) == {"in", "back", "out", "walk"} and len(edges) == 8
        one = {key: lane["class"][0] for key, lane in lanes.items()}
        assert [vector([point])[:2] for point in one["in"]["line"]] == [(0, 0), (60, 0), (100, 0)]
        assert "line" not in one["walk"] and one["walk"]["type"] == [3] and one["walk"]["subtype"] == [4]
        assert name[number(one["in"]["left"])] == "back" and name[number(one["out"]["right"])] == "walk"
        links = {(key, *(name[number(pair[end])] if end in pair else None for end in ("from", "to")))
                 for key, lane in one.items() for pair in lane.get("pairs", [])}
        assert links == {("in", None, "out"), ("out", "in", None)}, links
        left = edges[number(one["in"]["left_boundary"])]
        assert left["class"][0]["type"] == [4] and all(close(vector(p["at"])[1:], (1.75, 0)) for p in left["line"])
        assert edges[number(one["in"]["right_boundary"])]["class"][0]["type"] == [3]
        host = [key for key, lane in one.items() if lane["host"] == [1]]
        ego = by_source(truth["moving"])["ego"]
        assert host == [name[number(ego["class"][0]["lane"])]]
    assert host == ["out"], "ego goes on into the next lane"
    ids = [number(thing["id"]) for kind in ("moving", "standing", "lights", "lanes", "boundaries") for thing in truth[kind]]
    assert len(ids) == len(set(ids))


def signals_show_what_holds(runs):
    for (osi, _), branch in zip(runs, (False, True)):
        for tick, truth in enumerate(osi):
            lit = {light["class"][0]["colour"][0] for light in truth["lights"] if light["class"][0]["mode"] == [CONSTANT]}
            held = {RED} if branch and tick >= 10 else None
            assert lit == (held or ({RED, YELLOW} if tick < 10 else {GREEN})), (branch, tick, lit)
            assert all(light["class"][0]["mode"] in ([CONSTANT], [OFF]) for light in truth["lights"])
            assert len(truth["lights"]) == 3 and vector(truth["lights"][0]["base"][0]["position"])[:2] == (98, 0)


def main():
    def swerve(*words):
        return subprocess.run([SWERVE, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout

    with tempfile.TemporaryDirectory(prefix="swerve-osi-") as work:
        os.chdir(work)
        with open("drive.json", "w") as out:
            json.dump(SCENARIO, out)
        swerve("run", "drive.json", "--world", "object", "--store", "a.db")
        runs = []
        for outcome in map(json.loads, swerve("show", "--all", "--store", "a.db").splitlines()):
            number_ = str(outcome["id"])
            swerve("export", number_, "--store", "a.db", "--format", "osi", "-o", "t.osi")
            trace = swerve("show", number_, "--trace", "--store", "a.db").splitlines()
            runs.append((outcome["branch_id"], truths("t.osi"), [json.loads(line) for line in trace]))
        os.chdir("/")
    runs = [run[1:] for run in sorted(runs, key=lambda run: run[0])]
    cases = [drives_are_the_recordings, rates_follow_from_the_drive, things_are_classified, roads_hold_together,
             signals_show_what_holds]
    bad = 0
    print(f"1..{len(cases)}")
    for at, case in enumerate(cases, 1):
        try:
            case(runs)
            print(f"ok {at} - {case.__name__}")
        except (AssertionError, KeyError, IndexError) as fault:
            bad += 1
            print(f"not ok {at} - {case.__name__}\n# {type(fault).__name__} {fault} at line {fault.__traceback__.tb_next.tb_lineno}")
    sys.exit(1 if bad else 0)


main()
