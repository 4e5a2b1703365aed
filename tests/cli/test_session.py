#!/usr/bin/env python3
"""Goal: a session at the wheel is a drive of `swerve run` under the same actions: what it saves is driven there to the
same figures, whatever was gone back over, in a learned world too; ticks come in real time and say what they cost; nobody gets in without the
key, from another site's page, or in the clear from other machines; wrong messages are answered and change nothing.
Method: sessions of a small scenario over WebSockets, by the Python client and by bytes of its own.

Usage: test_session.py SWERVE SOURCE_ROOT
"""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "scripts"))

import tap  # noqa: E402
from swerve.session import Session, SessionError  # noqa: E402

ROAD = {"lanes": [{"id": "east", "centre_line": [[0, 0], [500, 0]], "width_m": 3.5, "speed_limit_mps": 15}]}
WALL = {"id": "wall", "title": "a parked car ahead", "map": ROAD, "horizon_s": 3,
        "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
        "agents": [{"id": "parked", "kind": "car", "pose": {"lane": "east", "s_m": 50}, "behaviour": "static"}],
        "branches": [{"id": "old", "at_tick": 5, "interventions": [{"kind": "ego_brake", "tick": 5, "decel_mps2": 2}]}]}


closing = []  # of each server: its last lines


@contextlib.contextmanager
def served(*options):
    """The address of a server of the scenario, with its key."""
    server = subprocess.Popen([SWERVE, "session", "serve", "wall.json", "--listen", "127.0.0.1:0", "--save", "saved", *options],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield server.stdout.readline().strip()
    finally:
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=30)[1]
        assert server.returncode == 0 and "late" in said and "\\u000a" not in said, (server.returncode, said)
        closing.append(said)


def taken_up(session, name, **members):
    """The frame at which a session stands whose connection has just ended, once the server knows that."""
    end = time.monotonic() + 20
    while True:
        try:
            return session.resume(name, **members)
        except SessionError as error:
            if "somebody goes on with this drive" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)


def drive(session, accel, steer=0.0, until=1000):
    """Goes on under one action; the frame of that tick or of the end, and all until then."""
    session.act(accel, steer)
    session.go()
    frames = [session.frame()]
    while not frames[-1]["end"] and frames[-1]["tick"] < until:
        frames.append(session.frame())
    return frames


def outcomes(path, *options, world=("object",)):
    """The rows of a run by branch. A draw of the teacher's audit is of the same branch, and left out."""
    store = str(path) + ".db"
    subprocess.run([SWERVE, "run", str(path), "--world", *world, "--store", store, *options], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shown = subprocess.run([SWERVE, "show", "--all", "--store", store], check=True, stdout=subprocess.PIPE, text=True)
    return {one["branch_id"]: one for one in map(json.loads, shown.stdout.splitlines()) if not one["audit_of"]}


OWN = {"id", "job_id", "suite_id", "scenario_id", "scenario_hash", "branch_id", "planner", "planner_hash", "pool", "backend",
       "metres_mm", "device_ns", "trace_hash", "artifact_hash", "given"}  # of the job, not of the drive


def a_saved_drive_is_the_same_drive():
    for seed in (0, 3):
        with served() as url, Session(url) as session:
            session.begin("wall", seed=seed)
            drive(session, 0.0, until=7)
            hit = drive(session, -1.0, 0.01)[-1]
            assert hit["end"] == "collision" and hit["touched"], hit
            first = session.outcome()
            assert first["verdict"] == "fail"
            back = session.back(12, keep=True)
            assert back["tick"] == hit["tick"] - 12 and back["lines"] == 2 and not back["touched"], back
            end = drive(session, -7.0)[-1]
            assert end["end"] == "horizon" and end["tick"] == 30, end
            second = session.outcome()
            assert second["verdict"] == "pass", second
            saved = session.save(f"drive{seed}")
        path = pathlib.Path(saved["path"])
        assert json.loads(pathlib.Path(f"saved/drive{seed}.json").read_text())["branches"][0]["id"] == "wheel-1"
        assert saved["command"].startswith(f"swerve run {path}")
        found = outcomes(path, *(["--nominal"] if seed == 0 else []))
        assert sorted(found) == ["", "wheel-1", "wheel-2"], sorted(found)
        for mine, name in ((first, "wheel-1"), (second, "wheel-2")):
            differs = {key for key in mine if key not in OWN and mine[key] != found[name].get(key)}
            assert not differs, {key: (mine[key], found[name].get(key)) for key in differs}
            assert mine["planner"] == "human" and len(mine["scenario_hash"]) == 64, mine
            assert abs(mine["metres_mm"] - found[name]["metres_mm"]) <= 1, (mine["metres_mm"], found[name]["metres_mm"])


def a_line_that_stopped_goes_on_with_the_planner():
    with served() as url, Session(url) as session:
        session.begin("wall")
        drive(session, -6.0, until=5)
        tick = session.pause()["tick"]
        saved = session.save("stopped")
        again = session.save("stopped")  # never over a file that is there
    assert again["name"] == "stopped-2" and pathlib.Path("saved/stopped-2.json").exists()
    branch = json.loads(pathlib.Path(saved["path"]).read_text())["branches"][0]
    assert len(branch["interventions"][0]["actions"]) == tick
    assert branch["interventions"][1] == {"kind": "ego_planner", "tick": tick}, branch["interventions"][1]
    assert outcomes(pathlib.Path(saved["path"]), "--nominal")["wheel-1"]["ticks"] == 30


def ticks_come_in_time_and_say_what_they_cost():
    with served() as url, Session(url) as session:
        begin = time.monotonic()
        session.begin("wall", rate=0.5, deadline_ms=150)
        frames = drive(session, -8.0, until=10)
        took_s = time.monotonic() - begin
    assert took_s > 9 * 0.2, took_s  # ten ticks at half of the rate
    timed = [frame for frame in frames if frame["tier"]]
    assert timed and all(frame["tier"] == "object" and frame["compute_ms"] > 0 for frame in timed)
    for frame in timed:
        assert abs(frame["wait_ms"] + frame["compute_ms"] + frame["slack_ms"] - 150) < 1e-3, frame
        assert frame["late"] == (frame["slack_ms"] < 0), frame
    assert len(session.cameras) == 3 * 64 * 96 * 3 and session.windscreen[:2] == b"\xff\xd8"


def a_learned_world_says_by_what_its_frames_were_made():
    pathlib.Path("models").mkdir()
    shutil.copy(ROOT / "tests/engine/data/tiny.safetensors", "models/student.safetensors")
    world = ("student", "--models", "models")
    with served("--world", *world) as url, Session(url) as session:
        assert session.tiers == [("student", 2), ("student", 1), ("drawn", 0)], session.tiers
        session.begin("wall", rate=0.1, deadline_ms=1000)
        session.go()
        made = [session.frame() for _ in range(3)]
        timed = [frame for frame in made if frame["tier"]]
        assert timed
        for frame in timed:
            assert frame["tier"] == ("student" if frame["steps"] else "drawn") and frame["steps"] <= 2, frame
            assert (len(frame["model"]) == 64) == (frame["steps"] > 0) and frame["deadline_ms"] == 1000, frame
        session.pause()  # behind the account of every tick so far
        counted = session.ticks()
        assert sum(tier["ticks"] for tier in counted["tiers"]) >= len(timed), counted
        assert all(sum(tier["slack"]) == tier["ticks"] and len(tier["wait"]) == len(counted["bounds_ms"]) + 1
                   for tier in counted["tiers"]), counted
        text = urllib.request.urlopen(url.replace("#", "v1/metrics?key=")).read().decode()
        assert 'swerve_session_tick_seconds_count{tier="drawn",steps="0",part="slack"}' in text, text
        assert "swerve_sessions 1\n" in text, text
    with served("--world", *world, "--steps", "0") as url, Session(url) as session:  # what a model of no use drew is sick
        session.begin("wall", rate=0.2, deadline_ms=1000)
        end = drive(session, -7.0)[-1]
        assert end["end"] == "horizon" and end["tier"] == "drawn" and end["steps"] == 0 and not session.windscreen, end
        mine = session.outcome()
        assert mine["sampler"] == "agents/euler0/bf16" and mine["verdict"] == "pass", mine
        saved = session.save("drawn")
    actions = json.loads(pathlib.Path(saved["path"]).read_text())["branches"][0]["interventions"][0]
    assert actions["skipped_steps"] == [2] * 30, actions["skipped_steps"]
    found = outcomes(pathlib.Path(saved["path"]), "--nominal", "--skip-steps", "2", world=world)["wheel-1"]
    assert all(found[key] == mine[key] for key in ("verdict", "ticks", "metrics", "sampler", "model_hash")), found
    done = subprocess.run([SWERVE, "run", saved["path"], "--world", *world, "--skip-steps", "3"], text=True, capture_output=True)
    assert done.returncode != 0 and "at most 2 steps" in done.stderr, done.stderr
    done = subprocess.run([SWERVE, "run", saved["path"], "--world", *world, "--skip-steps", "most"], text=True, capture_output=True)
    assert done.returncode == 2 and "from 0 to 64, or all, found" in done.stderr, done.stderr
    a_drive_of_skipped_steps_says_so(pathlib.Path(saved["path"]), ("student",))  # of use


def a_drive_of_skipped_steps_says_so(path, world):
    """By its job's sampler it is one of all steps, and it is none: its row says so, and no tier is compared with it."""
    asked = ["--nominal", "--audit", "off"]
    store = str(path) + ".tiers.db"
    for skip in ((), ("--skip-steps", "all")):
        done = subprocess.run([SWERVE, "run", str(path), *asked, *skip, "--world", *world, "--store", store], text=True, capture_output=True)
        assert done.returncode in (0, 1), done.stderr
    shown = subprocess.run([SWERVE, "show", "--all", "--store", store], check=True, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {row["sampler"] for row in rows} == {"agents/euler2/bf16", "agents/euler0/bf16"}, rows
    for row in rows:
        one, told = (subprocess.run([SWERVE, "show", str(row["id"]), *form, "--store", store], check=True, stdout=subprocess.PIPE,
                                    text=True).stdout for form in (["--json"], []))
        ticks = row["ticks"] if row["branch_id"] else None
        assert json.loads(one).get("skipped_ticks") == ticks, one
        assert (f"({ticks} of {ticks} ticks by fewer steps)" in told) == (ticks is not None), told
    told = json.loads(subprocess.run([SWERVE, "agreement", "--tiers", "--store", store, "--json"], check=True, stdout=subprocess.PIPE,
                                     text=True).stdout)
    rows = [row for row in told["rows"] if row["slice"] == {}]
    assert [row["pairs"] for row in rows] == [1], rows  # the main line's


def hardware_is_shown_what_gives_the_verdicts_of_all_steps():
    """One scenario shows nothing by the usual bands: they are lowered to what one agreeing pair shows."""
    for skip in ("0", "1", "all"):
        done = subprocess.run([SWERVE, "run", "wall.json", "--nominal", "--world", "student", "--skip-steps", skip, "--audit",
                               "off", "--store", "tiers.db"], text=True, capture_output=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
    low = {"format": "swerve-trust/1", "band": 0.001, "safety_critical_band": 0.001}
    pathlib.Path("low.json").write_text(json.dumps(low))
    told = json.loads(subprocess.run([SWERVE, "agreement", "--tiers", "--store", "tiers.db", "--json"], text=True,
                                     capture_output=True, check=True).stdout)
    rows = [row for row in told["rows"] if row["slice"] == {}]
    assert [(row["sampler"], row["teacher_sampler"], row["pairs"], row["gate"]["result"]) for row in rows] == [
        (f"agents/euler{steps}/bf16", "agents/euler2/bf16", 2, "not shown") for steps in (1, 0)], rows
    for policy, code in ((), 1), (("--policy", "low.json"), 0):
        done = subprocess.run([SWERVE, "agreement", "--tiers", "--gate", "--store", "tiers.db", *policy], text=True, capture_output=True)
        assert done.returncode == code and "tier " in done.stdout, (done.stdout, done.stderr)
        assert ("beside agents/euler2/bf16, slice all: not shown" in done.stderr) == (code == 1), done.stderr
    refused = "tier student of 1 steps is refused to hardware"
    for options, text in [((), f"{refused}: expected its verdicts beside those of all steps, found none"),
                          (("--agreement", "tiers.db"), f"{refused}: in slice all 100.0% of its verdicts"),
                          (("--agreement", "tiers.db", "--policy", "low.json"), None)]:
        with served("--world", "student", *options) as url, Session(url) as session:
            session.begin("wall", steps_least=2, deadline_ms=1000, rate=0.1, hardware=True)
            session.begin("wall", deadline_ms=1000, rate=0.1)  # people
            try:
                session.begin("wall", deadline_ms=1000, rate=0.1, hardware=True)
                assert text is None, text
            except SessionError as error:
                assert text and text in str(error), error
        assert f"swerve: {2 if text else 3} sessions, {1 if text else 0} refused," in closing[-1], closing[-1]
    done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--agreement", "tiers.db"], text=True, capture_output=True)
    assert done.returncode == 2 and "--agreement" in done.stderr, done.stderr


def hardware_takes_up_no_drawn_drive():
    """The rows of tiers.db, under low.json, let hardware have any tier; without them none but all steps."""
    keep = ("--world", "student", "--keep", "seats")
    slow = {"rate": 0.2, "deadline_ms": 1000}
    with served(*keep, "--steps", "0") as url, Session(url) as session:  # people
        session.begin("wall", **slow)
        name = session.name
        drive(session, -7.0, until=3)
        session.pause()
    whole = {**slow, "steps_least": 2, "hardware": True}
    refused = "tick 1: session: tier drawn of 0 steps is refused to hardware: expected its verdicts"
    for options, least, text in [((), 2, refused), (("--steps", "2"), 2, "tick 1: session: a tier that leaves out 2 steps is refused"),
                                 (("--agreement", "tiers.db", "--policy", "low.json"), 0, None)]:
        with served(*keep, *options) as url, Session(url) as session:
            session.begin("wall", **slow)  # goes on where the other is refused
            try:
                frame = session.resume(name, **{**whole, "steps_least": least})
                assert text is None and frame["tick"] >= 3, (text, frame)
            except SessionError as error:
                assert text and text in str(error) and f"{name}.session" in str(error) and "begin its scenario anew" in str(error), error
                session.act(1.0)
                session.go()
                assert session.frame()["tick"] >= 0
                session.pause()
        assert f"{1 if text else 0} refused," in closing[-1], closing[-1]
    with served(*keep) as url, Session(url) as session:  # a drive by all steps alone is hardware's
        session.begin("wall", rate=0.1, deadline_ms=1000, steps_least=2)
        name = session.name
        drive(session, -7.0, until=3)
        session.close()
        with Session(url) as another:
            assert taken_up(another, name, **whole)["tick"] >= 3


def another_model(path):
    """The shipped student with the last bits of every 16th weight turned: what it makes is as healthy, and is not the same."""
    whole = bytearray((ROOT / "engine/models/student.safetensors").read_bytes())
    size = 8 + struct.unpack("<Q", whole[:8])[0]
    head = json.loads(whole[8:size])
    for at in range(size, len(whole), 32):
        whole[at] ^= 7
    head["__metadata__"]["data_sha256"] = hashlib.sha256(whole[size:]).hexdigest()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + whole[size:])
    health = json.loads((ROOT / "engine/models/student.health.json").read_text())
    health["model_hash"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".health.json").write_text(json.dumps(health))


def the_previous_model_takes_over_and_drives_again():
    pathlib.Path("two").mkdir()
    for name in ("student.safetensors", "student.health.json"):
        shutil.copy(ROOT / "engine/models" / name, f"two/{name}")
    another_model(pathlib.Path("two/older.safetensors"))
    world = ("student", "--models", "two", "--previous", "older")
    with served("--world", *world) as url, Session(url) as session:
        assert session.tiers == [("student", 2), ("student", 1), ("previous", 2), ("previous", 1), ("drawn", 0)], session.tiers
    with served("--world", *world, "--steps", "p1") as url, Session(url) as session:
        try:
            session.begin("wall", model_alone=True)
            raise AssertionError("there is no tier of the model's own")
        except SessionError as error:
            assert "expected tiers of the model's own" in str(error), error
        session.begin("wall", rate=0.2, deadline_ms=1000)
        made = drive(session, -7.0)
        assert made[-1]["end"] == "horizon", made[-1]
        assert len({frame["model"] for frame in made if frame["tier"]}) == 1 and made[-1]["tier"] == "previous", made[-1]
        mine = session.outcome()
        model = next(frame["model"] for frame in made if frame["tier"])
        assert mine["sampler"] == f"agents/euler1+{model[:32]}/bf16" and mine["model_hash"] != model, (mine, model)
        saved = session.save("older")
        assert saved["command"].endswith("--previous older"), saved
    actions = json.loads(pathlib.Path(saved["path"]).read_text())["branches"][0]["interventions"][0]
    assert set(actions["skipped_steps"]) == {4}, actions["skipped_steps"]
    found = outcomes(pathlib.Path(saved["path"]), "--nominal", world=world)["wheel-1"]
    assert all(found[key] == mine[key] for key in ("verdict", "ticks", "metrics", "model_hash")), (found, mine)
    assert found["sampler"] == f"agents/euler2+{model[:32]}/bf16", found
    done = subprocess.run([SWERVE, "run", saved["path"], "--nominal", "--world", *world[:3]], text=True, capture_output=True)
    assert done.returncode != 0 and "there is no previous model" in done.stderr + done.stdout, (done.stdout, done.stderr)
    the_previous_models_tier_is_that_model(pathlib.Path(saved["path"]), mine)
    hardware_is_shown_a_previous_model_that_answers_alike(world, model)


def the_previous_models_tier_is_that_model(path, mine):
    """Alone, by as many steps in every tick, it drives the bits that it drove as the previous one: so its answers are that tier's."""
    pathlib.Path("alone").mkdir()
    for suffix in (".safetensors", ".health.json"):
        shutil.copy(f"two/older{suffix}", f"alone/student{suffix}")
    drive = json.loads(path.read_text())
    del drive["branches"][0]["interventions"][0]["skipped_steps"]
    path.with_name("alone.json").write_text(json.dumps(drive))
    found = outcomes(path.with_name("alone.json"), "--nominal", "--skip-steps", "1", world=("student", "--models", "alone"))["wheel-1"]
    differs = {key for key in mine if key not in OWN and mine[key] != found.get(key)}  # of its health and figures none
    assert differs == {"model_hash", "sampler", "mflop"}, {key: (mine[key], found.get(key)) for key in differs}


def hardware_is_shown_a_previous_model_that_answers_alike(world, previous):
    for models in ("two", "alone"):
        done = subprocess.run([SWERVE, "run", "wall.json", "--nominal", "--world", "student", "--models", models, "--audit", "off",
                               "--store", "previous.db"], text=True, capture_output=True)
        assert done.returncode == 0, (done.stdout, done.stderr)
    tiers = [SWERVE, "agreement", "--tiers", "--store", "previous.db", "--policy", "low.json", "--json"]
    for named, pairs in ((), 0), (("--previous", previous[:12]), 2):
        told = json.loads(subprocess.run([*tiers, *named], text=True, capture_output=True, check=True).stdout)
        assert sum(row["pairs"] for row in told["rows"] if row["slice"] == {}) == pairs, told["rows"]
    for wrong in (("--previous", previous[:7]), ("--previous", "older")):
        done = subprocess.run([*tiers, *wrong], text=True, capture_output=True)
        assert done.returncode == 2 and "first digits of a model's hash" in done.stderr, done.stderr
    for options, text in [((), "found none of sampler agents/euler2/bf16 of model " + previous[:12]),
                          (("--agreement", "previous.db", "--policy", "low.json"), None)]:
        with served("--world", *world, "--steps", "2,p2", *options) as url, Session(url) as session:
            try:
                session.begin("wall", deadline_ms=1000, rate=0.1, hardware=True)
                assert text is None, text
            except SessionError as error:
                assert text and text in str(error), error


def start(*options):
    """A server that is ended by the caller, and its address."""
    server = subprocess.Popen([SWERVE, "session", "serve", "wall.json", "--listen", "127.0.0.1:0", "--save", "saved", *options],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return server, server.stdout.readline().strip()


def a_session_outlives_its_server(world=("object",)):
    """Killed at tick 26 or behind it, its session goes on in another server, and is there the drive that nobody disturbed."""
    keep = ("--world", *world, "--keep", "kept")
    server, url = start(*keep)
    with Session(url) as session:
        session.begin("wall", seed=5, rate=0.5, deadline_ms=1000)
        name = session.name
        drive(session, -3.0, until=26)
        server.kill()
    server.wait()
    log = pathlib.Path("kept") / f"{name}.session"
    assert log.stat().st_mode & 0o777 == 0o600
    with served(*keep) as url, Session(url) as session:
        begin = time.monotonic()
        frame = session.resume(name, rate=0.5, deadline_ms=1000)
        print(f"# {world[0]}: at tick {frame['tick']} after {time.monotonic() - begin:.2f} s")
        assert session.name == name and frame["tick"] >= 26 and frame["paused"], frame
        for other in (name, "0" * 32, "../" + name):
            with Session(url) as another:
                try:
                    another.resume(other)
                    raise AssertionError(other)
                except SessionError as error:
                    expected = ("somebody goes on with this drive" if other == name else
                                "No such file" if other[0] == "0" else "expected the name of a kept session")
                    assert expected in str(error) or other.startswith(".."), error
        end = drive(session, -3.0)[-1]
        assert end["end"] == "horizon", end
        mine = session.outcome()
        saved = session.save("taken_up")
        session.begin("wall")
        session.pause()
        assert not log.exists()  # another drive has its place
    found = outcomes(pathlib.Path(saved["path"]), world=[part for part in world if part != "--threads"])["wheel-1"]
    assert all(found[key] == mine[key] for key in ("verdict", "ticks", "metrics", "model_hash")), (found, mine)
    with served("--world", *world) as url, Session(url) as session:
        try:
            session.resume(name)
            raise AssertionError("nothing is kept there")
        except SessionError as error:
            assert "a server that keeps sessions" in str(error), error


def a_learned_session_outlives_its_server():
    a_session_outlives_its_server(("student",))


def refused(url, path, headers=""):
    """The status line of an upgrade that is asked for."""
    host, port = url[7:].split("/")[0].split(":")
    with socket.create_connection((host, int(port)), 10) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n".encode())
        return link.recv(4096).decode(errors="replace").split("\r\n")[0]


def nobody_gets_in_without_the_key():
    with served() as url:
        place, key = url.split("/#")
        assert " 401 " in refused(url, "/v1/sessions")
        assert " 401 " in refused(url, "/v1/sessions?key=" + "0" * len(key))
        assert " 401 " in refused(url, "/v1/scenario?scenario=wall")
        assert " 403 " in refused(url, f"/v1/sessions?key={key}", "Origin: http://elsewhere.example\r\n")
        assert " 101 " in refused(url, f"/v1/sessions?key={key}", f"Origin: {place}\r\n")
        try:
            Session(place + "/#" + "0" * len(key))
            raise AssertionError("it got in")
        except SessionError as error:
            assert "key" in str(error), error
    done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--listen", "0.0.0.0:0"], text=True, capture_output=True)
    assert done.returncode == 2 and "--allow-remote" in done.stderr, done.stderr
    for options, code, part in [(("--save", "/proc/x"), 4, "--save /proc/x: expected a folder"),
                                (("--save", "wall.json"), 4, "--save wall.json: expected a folder"),
                                (("--sessions", "65"), 2, "--sessions: expected 1 to 64, found 65"),
                                (("--sessions", str(2**32 + 1)), 2, "--sessions: expected 1 to 64")]:
        done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--listen", "127.0.0.1:0", *options], text=True,
                              capture_output=True, timeout=100)
        assert done.returncode == code and part in done.stderr, (options, done.returncode, done.stderr)


def wrong_messages_change_nothing():
    def complaint(send):
        try:
            send()
            session.frame()
        except SessionError as error:
            return str(error)
        return ""

    with served() as url, Session(url) as session:
        assert "no session has begun" in complaint(lambda: session.act(1))
        session.begin("wall")
        session.socket.socket.settimeout(20)

        def send(kind, **members):
            return lambda: session.send(kind, **members)

        def raw(text):
            return lambda: session.socket.send(1, text)

        for wrong, part in [
                (send("begin", scenario="nowhere"), '$.scenario: expected the id of a scenario of the suite, as "hello" lists them, '
                                                    'found "nowhere"'),
                (send("begin", scenario=5), "$.scenario: expected text, found an integer"),
                (send("begin"), 'expected "scenario" or "resume", found neither'),
                (send("begin", scenario="wall", rate=2), "$.rate: expected a number from 0.1 to 1, found 2"),
                (send("begin", scenario="wall", deadline_ms=0), "$.deadline_ms: expected a number from 1 to 1000, found 0"),
                (send("begin", scenario="wall", seed=1.5), "$.seed: expected an integer, found"),
                (send("begin", scenario="wall", seed=-1), "$.seed: expected an integer from 0 to 9007199254740991, found -1"),
                (send("begin", scenario="wall", seed=2**63), str(2**63)),
                (send("begin", scenario="wall", steps_least=0.5), "$.steps_least: expected an integer"),
                (send("begin", scenario="wall", steps_least=1), "found 1"),
                (send("begin", scenario="wall", foo=1), '$: unknown member "foo"; legal are "type", "scenario"'),
                (send("act", acel=3), '$: unknown member "acel"; did you mean "accel"?'),
                (send("act", **{"x" + "\u00e9" * 60: 3}), "$: unknown member"),
                (send("go", ticks=3), '$: unknown member "ticks"'),
                (send("back", ticks=1.5), "$.ticks: expected an integer, found"),
                (send("back", ticks=-1), "$.ticks: expected an integer from 0 to 6000, found -1"),
                (send("back", keep="yes"), '$.keep: expected true or false, found text "yes"'),
                (send("act", accel=51), "$.accel: expected a number from -50 to 50, found 51"),
                (send("act", accel="much"), '$.accel: expected a number, found text "much"'),
                (send("act", steer=None), "$.steer: expected a number, found null"),
                (send("act"), '$: expected "accel" or "steer", found neither'),
                (send("fly"), 'found "fly"'),
                (raw(b'{"typ": "go"}'), '$: unknown member "typ"; did you mean "type"?'),
                (raw(b"{}"), "$.type: expected text, found nothing"),
                (send("save", name="../x"), 'found "../x"'),
                (send("save", name="x" * 65), "$.name: expected at most 64 bytes of text, found 65"),
                (lambda: session.save("early"), "nothing has been driven"),
                (send("outcome"), "expected a drive that has ended, found one at tick 0 of 30"),
                (raw(b"[1]"), "$: expected an object, found an array"),
                (raw(b"{"), "expected JSON")]:
            said = complaint(wrong)
            assert part in said, (part, said)
        assert not pathlib.Path("saved/early.json").exists()
        assert drive(session, -8.0, until=3)[-1]["tick"] >= 3


def a_control_that_is_not_given_holds():
    def driven():
        session.go()
        frame = session.frame()
        while frame["paused"]:
            frame = session.frame()
        last = session.frame()["action"]
        session.pause()
        return last

    with served("--keep", "held") as url, Session(url) as session:
        session.begin("wall")
        session.act(accel=0.5)
        session.act(steer=0.05)
        assert driven() == [0.5, 0.05]
        session.act(accel=-0.5)
        assert driven() == [-0.5, 0.05]
        session.act(accel=0.0, steer=0.0)
        session.act(accel=0.25)
        assert driven() == [0.25, 0]
        session.act(steer=0.05)
        assert session.back()["tick"] == 0  # all the way
        session.act(accel=0.5)
        assert driven() == [0.5, 0]  # who goes back lets go, as does who takes a session up
        name = session.name
        session.close()
        with Session(url) as session:
            taken_up(session, name)
            session.act(steer=0.01)
            assert driven() == [0, 0.01]


def closed(session):
    """The code by which the server ends it."""
    session.socket.socket.settimeout(20)
    try:
        while True:
            session.frame()
    except SessionError as error:
        return int(str(error).rsplit("(", 1)[1].rstrip(")"))


def a_client_that_breaks_off_leaves_its_seat():
    with served("--sessions", "1") as url:
        first = Session(url)
        first.begin("wall")
        first.begin("wall", rate=0.5)  # another in the place of its own
        try:
            first.begin("wall", steps_least=9)
            raise AssertionError("there is no sampler")
        except SessionError as error:
            assert "steps of a sampler" in str(error), error
        assert drive(first, 1.0, until=2)[-1]["tick"] >= 2  # the one before goes on
        with Session(url) as second:
            second.send("begin", scenario="wall")
            said = json.loads(second.socket.receive()[1])  # and not "begun" before
            assert said["type"] == "error" and "seats are taken" in said["text"], said
        first.socket.socket.close()
        for _ in range(100):
            with Session(url) as third:
                try:
                    assert third.begin("wall")["tick"] == 0
                    break
                except SessionError:
                    time.sleep(0.05)
        else:
            raise AssertionError("the seat stayed taken")


def who_is_cut_off_is_told_why():
    with served() as url:
        for opcode, data, code in [(1, b"x" * 4097, 1009), (1, b"x" * 60000, 1009), (9, b"x" * 126, 1002), (2, b"x", 1003), (8, b"", 1005)]:
            with Session(url) as session:
                session.socket.send(opcode, data)
                assert closed(session) == code, (opcode, len(data))
        last = Session(url)
        last.begin("wall")
    assert closed(last) == 1001
    last.close()


def a_client_that_floods_is_held_back():
    """Pings without end, whose answers nobody reads: the client's sends come to a halt, and the server ends when told to."""
    with served() as url, Session(url) as hostile:
        hostile.begin("wall")
        hostile.socket.socket.settimeout(0.5)
        pings = (bytes([0x89, 0xfd]) + bytes(4) + b"x" * 125) * 1000
        sent = 0
        try:
            while sent < 256 << 20:
                sent += hostile.socket.socket.send(pings)
            raise AssertionError(f"{sent} bytes of pings were taken")
        except TimeoutError:
            pass
        begin = time.monotonic()
    assert time.monotonic() - begin < 5, "the server went on"


def strangers_who_say_little_keep_nobody_out():
    with served() as url, contextlib.ExitStack() as open_sockets:
        place = urllib.parse.urlsplit(url)
        for _ in range(200):
            half = open_sockets.enter_context(socket.create_connection((place.hostname, place.port)))
            half.sendall(b"GET / HTTP/1.1\r\nHo")
        assert " 200 " in refused(url, "/")
        with Session(url) as session:
            assert session.begin("wall")["tick"] == 0


def sessions_side_by_side_do_not_meet():
    results = {}

    def one(name, url, accel):
        with Session(url) as session:
            session.begin("wall", rate=0.5, deadline_ms=1000)
            results[name] = drive(session, accel, until=15)[-1]["ego"][:4]

    with served() as url:
        for names in (["alone"], ["a", "b", "c"]):
            threads = [threading.Thread(target=one, args=(name, url, -4.0)) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert results["a"] == results["b"] == results["c"] == results["alone"], results


TESTS = [a_saved_drive_is_the_same_drive, a_line_that_stopped_goes_on_with_the_planner,
         hardware_is_shown_what_gives_the_verdicts_of_all_steps,
         hardware_takes_up_no_drawn_drive, a_control_that_is_not_given_holds,
         ticks_come_in_time_and_say_what_they_cost, a_learned_world_says_by_what_its_frames_were_made,
         the_previous_model_takes_over_and_drives_again, a_session_outlives_its_server,
         a_learned_session_outlives_its_server,
         nobody_gets_in_without_the_key, wrong_messages_change_nothing, a_client_that_breaks_off_leaves_its_seat,
         who_is_cut_off_is_told_why, a_client_that_floods_is_held_back,
         strangers_who_say_little_keep_nobody_out, sessions_side_by_side_do_not_meet]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-session-") as work:
        os.chdir(work)
        pathlib.Path("wall.json").write_text(json.dumps(WALL))
        failed = tap.run(TESTS)
    sys.exit(1 if failed else 0)


main()
