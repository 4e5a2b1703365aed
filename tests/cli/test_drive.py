#!/usr/bin/env python3
"""Goal: a drive that a server hands to the player is the drive that was recorded, to half a unit of its
whole numbers, for main lines and branches, and nobody gets it without a token that may read.
Method: a scenario with branches and an agent that comes and goes is driven, every drive is fetched over
HTTP, its columns are summed up again and compared with `swerve show --trace`, which reads the trace itself.

Usage: test_drive.py SWERVE SOURCE_ROOT
"""
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import tap

SWERVE = os.path.realpath(sys.argv[1])
HOSTILE = "</script><b>\u202e'\"& \\"
SCENARIO = {
    "id": "drive", "title": HOSTILE,
    "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [150, 0], [300, 20], [2000, 20]], "width_m": 3.5,
                       "speed_limit_mps": 15}]},
    "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
    "agents": [
        {"id": "lead", "kind": "car", "pose": {"lane": "east", "s_m": 60}, "speed_mps": 6, "behaviour": "idm"},
        {"id": "ghost", "kind": "pedestrian", "pose": {"x_m": 70, "y_m": 6, "heading_rad": -1.5}, "hidden": True,
         "speed_mps": 1, "behaviour": "script", "manoeuvres": [
             {"when": "time", "value": 1, "do": "appear"}, {"when": "time", "value": 3, "do": "vanish"}]}],
    "branches": [{"id": "brake", "at_tick": 10, "interventions": [{"kind": "ego_brake", "tick": 12, "decel_mps2": 4}]},
                 {"id": "hold", "at_tick": 25, "interventions": [{"kind": "ego_maintain", "tick": 25}]}],
    "horizon_s": 6}

# Member of the trace, column of the drive, units of the column, how often it is summed up.
EGO = [("x_m", "x", 100, 2), ("y_m", "y", 100, 2), ("heading_rad", "heading", 1000, 1), ("speed_mps", "speed", 100, 1),
       ("accel_mps2", "accel", 100, 1), ("lat_accel_mps2", "lat_accel", 100, 1), ("steer_rad", "steer", 1000, 1),
       ("action_accel_mps2", "action_accel", 100, 1), ("action_steer_rad", "action_steer", 1000, 1)]
AGENT = [row for row in EGO if row[1] in ("x", "y", "heading", "speed")]

server = url = None


def swerve(*arguments):
    return subprocess.run([SWERVE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def get(path, token=None):
    """(code, body)"""
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def summed(column, count, order):
    values = list(column) + [0] * (count - len(column))
    for done in range(order, 0, -1):
        for i in range(done, len(values)):
            values[i] += values[i - 1]
    return values


def within(runs, tick):
    return any(first <= tick <= last for first, last in runs)


def at_tick(drive, rollout, tick):
    """(rollout that holds the tick, index of the tick in it), up the parents."""
    by_number = {one["rollout"]: one for one in drive["rollouts"]}
    while rollout["ticks"] == 0 or tick < rollout["first_tick"]:
        rollout = by_number[rollout["parent"]]
    return rollout, tick - rollout["first_tick"]


def compare(drive, rollout, trace):
    tables = {}
    for row in trace:
        holder, i = at_tick(drive, rollout, row["tick"])
        number = holder["rollout"]
        if number not in tables:
            tables[number] = (
                {key: summed(holder["ego"][key], holder["ticks"], order) for _, key, _, order in EGO},
                {one["agent"]: {key: summed(one[key], holder["ticks"], order) for _, key, _, order in AGENT}
                 for one in holder["agents"]},
                {one["agent"]: one["present"] for one in holder["agents"]})
        ego, agents, present = tables[number]
        for member, key, units, _ in EGO:
            assert abs(ego[key][i] / units - row[member]) <= 0.5001 / units, (number, row["tick"], key)
        assert within(holder["guardian"], row["tick"]) == row["guardian"], row["tick"]
        there = {one["agent"] for one in row["agents"]}
        assert there == {one for one in present if within(present[one], row["tick"])}, (row["tick"], there, present)
        for one in row["agents"]:
            for member, key, units, _ in AGENT:
                found = agents[one["agent"]][key][i] / units
                assert abs(found - one[member]) <= 0.5001 / units, (number, row["tick"], one["agent"], key, found)


def every_drive_is_the_recorded_one():
    token = pathlib.Path("reader").read_text().strip()
    outcomes = [json.loads(line) for line in swerve("show", "--all", "--store", url).stdout.splitlines()]
    assert sorted(one["branch_id"] for one in outcomes) == ["", "brake", "hold"], outcomes
    came = went = False
    for outcome in outcomes:
        code, body = get(f"/v1/outcomes/{outcome['id']}/drive", token)
        drive = json.loads(body)
        assert code == 200 and drive["format"] == "swerve-drive/1" and drive["left_out"] == 0, body[:300]
        assert drive["title"] == HOSTILE, drive["title"]
        rollout = next(one for one in drive["rollouts"] if one.get("outcome") == outcome["id"])
        assert rollout["branch"] == outcome["branch_id"] and rollout["verdict"] == outcome["verdict"]
        lines = swerve("show", str(outcome["id"]), "--trace", "--store", url).stdout.splitlines()
        trace = [json.loads(line) for line in lines]
        assert len(trace) > 50, len(trace)
        compare(drive, rollout, trace)
        counts = [len(row["agents"]) for row in trace]
        came, went = came or counts[0] == 1 and 2 in counts, went or counts[-1] == 1
        frames = {one["rollout"]: len(one.get("frames", [])) for one in drive["rollouts"]}
        assert frames.pop(rollout["rollout"]) > 5 and not any(frames.values()), frames
    assert came and went, "the agent that comes and goes did not"


def frames_are_the_rig_s_at_its_own_sizes():
    token = pathlib.Path("reader").read_text().strip()
    code, body = get("/v1/outcomes/1/frames/5", token)
    frames = json.loads(body)
    assert code == 200 and (frames["rig"], frames["tick"]) == ("swerve", 5), body[:300]
    assert [(one["id"], one["width"], one["height"]) for one in frames["cameras"]] == [(name, 96, 64) for name in ("left", "front", "right")], body[:300]
    assert all(base64.b64decode(one["jpeg"]).startswith(b"\xff\xd8") for one in frames["cameras"])
    for path, expected, words in (("1/frames/3000", 404, "outcome 1: expected a recorded tick, found 3000 of "), ("1/frames/-1", 400, "tick"),
                                  ("1/frames/x", 400, "tick"), ("999/frames/5", 404, "outcome 999")):
        code, body = get(f"/v1/outcomes/{path}", token)
        assert code == expected and words in (body if isinstance(body, str) else body.decode()), (path, code, body)
    assert get("/v1/outcomes/1/frames/5")[0] == 401


def roads_and_sizes_are_the_scenario_s():
    drive = json.loads(get("/v1/outcomes/1/drive", pathlib.Path("reader").read_text().strip())[1])
    lane = drive["map"]["lanes"][0]
    assert summed(lane["x"], lane["count"], 2) == [0, 15000, 30000, 200000], lane
    assert summed(lane["y"], lane["count"], 2) == [0, 0, 2000, 2000], lane
    assert summed(lane["width"], lane["count"], 1) == [350] * 4, lane
    assert drive["ego"]["route"] == [0] and [one["id"] for one in drive["agents"]] == ["lead", "ghost"]


def who_may_not_read_gets_none():
    assert get("/v1/outcomes/1/drive")[0] == 401
    assert get("/v1/outcomes/1/drive", "x" * 43)[0] == 401
    assert get("/v1/outcomes/1/drive", pathlib.Path("hand").read_text().strip())[0] == 403


def what_is_not_there_is_said():
    token = pathlib.Path("reader").read_text().strip()
    code, body = get("/v1/outcomes/999/drive", token)
    assert code == 404 and "outcome 999" in body, body
    for stored in pathlib.Path("a.db.artifacts").rglob("*"):
        if stored.is_file():
            stored.rename(stored.name)
            try:
                code, body = get("/v1/outcomes/1/drive", token)
                assert code == 404, (code, body)
            finally:
                os.replace(stored.name, stored)
    assert get("/v1/outcomes/1/drive", token)[0] == 200


def the_layout_of_foxglove_names_what_is_exported():
    root = pathlib.Path(os.path.realpath(sys.argv[2])) if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2]
    layout = (root / "docs/foxglove-layout.json").read_text()
    topics = set(re.findall(r'\{"(/[a-z/]+)", "', (root / "report/export/export_mcap.c").read_text()))
    members = set(json.loads((root / "report/export/swerve.EgoState.json").read_text())["properties"])
    panels = json.loads(layout)["configById"]
    named = set(re.findall(r'"(/[a-z/]+)["."]', layout))
    assert len(topics) == 7 and named == topics - {"/tf"}, (named, topics)
    assert set(re.findall(r'"/ego\.(\w+)"', layout)) <= members, members
    assert all(f'"{panel}"' in layout.split('"layout"')[1] for panel in panels), panels


TESTS = [the_layout_of_foxglove_names_what_is_exported, every_drive_is_the_recorded_one, frames_are_the_rig_s_at_its_own_sizes, roads_and_sizes_are_the_scenario_s, who_may_not_read_gets_none,
         what_is_not_there_is_said]


def main():
    global server, url
    with tempfile.TemporaryDirectory(prefix="swerve-drive-") as work:
        os.chdir(work)
        pathlib.Path("drive.json").write_text(json.dumps(SCENARIO))
        made = swerve("run", "drive.json", "--world", "object", "--store", "a.db", "--planner", "builtin:reference")
        swerve("token", "add", "reader", "--role", "read", "--store", "a.db", "--output", "reader")
        swerve("token", "add", "hand", "--role", "worker", "--pool", "bulk", "--store", "a.db", "--output", "hand")
        os.environ["SWERVE_TOKEN_FILE"] = os.path.realpath("reader")
        server = subprocess.Popen([SWERVE, "serve", "--store", "a.db", "--listen", "127.0.0.1:0"], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        url = server.stdout.readline().strip()
        if made.returncode > 1 or not url:
            sys.exit(f"Bail out! {made.stderr}")
        failed = tap.run(TESTS)
        server.terminate()
        server.wait()
        os.chdir("/")
    sys.exit(failed > 0)


main()
