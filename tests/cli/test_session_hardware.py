#!/usr/bin/env python3
"""Goal: hardware on the same machine drives by a Unix socket with its cameras in shared memory, to the bits of a session over a
WebSocket; it is hardware, whatever it says; who dies, reads nothing, writes into the memory or talks rubbish disturbs nobody else and
leaves its seat; the socket is the user's alone, takes the place of one that was left, and of nothing else.
Method: servers of a small scenario, the Python client, and bytes of its own.

Usage: test_session_hardware.py SWERVE SOURCE_ROOT
"""
import contextlib
import json
import mmap
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "scripts"))

import tap  # noqa: E402
from swerve.session import CAMERA_BYTES, Session, SessionError, _Memory  # noqa: E402

ROAD = {"lanes": [{"id": "east", "centre_line": [[0, 0], [500, 0]], "width_m": 3.5, "speed_limit_mps": 15}]}
WALL = {"id": "wall", "title": "a parked car ahead", "map": ROAD, "horizon_s": 3,
        "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
        "agents": [{"id": "parked", "kind": "car", "pose": {"lane": "east", "s_m": 50}, "behaviour": "static"}]}
TIMES = {"wait_ms", "compute_ms", "slack_ms", "late", "deadline_ms", "slot", "number"}  # of a frame: no part of the drive
HERE = "unix:wheel.sock"


@contextlib.contextmanager
def served(*options, path="wheel.sock"):
    """A server's process and its address, beside which hardware comes by the path."""
    with open("server.log", "w") as log:
        # A sanitizer keeps what was freed for a while; here its memory is looked at.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
        server = subprocess.Popen([SWERVE, "session", "serve", "wall.json", "--listen", "127.0.0.1:0", "--save", "saved", "--verbose",
                                   "--hardware", path, *options], text=True, env=env,
                                  stdout=subprocess.PIPE, stderr=log)
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0, (server.returncode, pathlib.Path("server.log").read_text())
    assert not os.path.exists(path)


def begun(url, **members):
    """A session that has begun: a busy machine may refuse, and a seat becomes free when its connection has ended."""
    end = time.monotonic() + 30
    while True:
        session = Session(url)
        try:
            return session, session.begin("wall", **{"rate": 1, "deadline_ms": 1000, **members})
        except SessionError as error:
            session.close()
            if not any(word in str(error) for word in ("seats", "late", "longer", "no room")) or time.monotonic() > end:
                raise
        time.sleep(0.1)


def drive(session, accel, until):
    session.act(accel=accel, steer=0.01)
    session.go()
    frame = session.frame()
    while not frame["end"] and frame["tick"] < until:
        frame = session.frame()
    return frame


def pictures(session):
    """The cameras of the frame that was read last: over a WebSocket they come behind it."""
    session.ticks()
    return session.cameras


def whole(url, **members):
    """A drive, whoever asks: frames at two ticks with their cameras, and the outcome."""
    session, first = begun(url, **members)
    with session:
        seen = [(first, pictures(session))]
        drive(session, -1.0, 7)
        at = session.pause()["tick"]
        seen.append((session.back(at - 7), pictures(session)))
        last = drive(session, -6.0, 1000)
        seen.append((last, pictures(session)))
        assert last["end"] == "horizon", last
        outcome = session.outcome()
    assert all(len(cameras) == CAMERA_BYTES for _, cameras in seen)
    return [({key: value for key, value in frame.items() if key not in TIMES}, cameras) for frame, cameras in seen], outcome


def a_drive_by_memory_is_that_by_a_websocket():
    with served() as (_, url):
        far, outcome = whole(url)
        near, same = whole(HERE)
        assert near == far
        assert len(outcome["trace_hash"]) == 64 and same["trace_hash"] == outcome["trace_hash"]
        assert same == outcome


def who_comes_by_the_socket_is_hardware():
    with served("--world", "student", "--steps", "2,0") as (_, url):
        with Session(HERE) as session:
            assert session.tiers == [("student", 2), ("drawn", 0)]
            for members in ({}, {"hardware": False}):
                session.send("begin", scenario="wall", rate=0.2, deadline_ms=1000, **members)
                try:
                    session.frame()
                    raise AssertionError("nothing is known of drawn frames")
                except SessionError as error:
                    assert "tier drawn of 0 steps is refused to hardware" in str(error), error
        session, _ = begun(HERE, steps_least=2, rate=0.2)
        with session:
            assert drive(session, 0.0, 2)["tier"] == "student" and session.windscreen == b""
        begun(url)[0].close()  # people
    with served() as (_, url):
        end = time.monotonic() + 30
        while True:
            with Session(HERE) as session:
                session.send("begin", scenario="wall", rate=0.2)
                try:
                    told = session._want("begun")
                    break
                except SessionError as error:  # of a busy machine
                    assert "deadline of 40.0 ms" in str(error) and time.monotonic() < end, error
            time.sleep(0.1)
        assert told["deadline_ms"] == 40, told


def a_slot_that_was_written_again_says_so():
    with served() as _:
        session, frame = begun(HERE)
        with session:
            old = frame["slot"], frame["number"]
            assert session.memory.cameras(*old) == session.cameras
            for _ in range(session.memory.slots - 1):
                session.pause()
                assert session.memory.cameras(*old) is not None
            assert session.pause()["number"] == old[1] + session.memory.slots
            assert session.memory.cameras(*old) is None


def raw():
    """A connection, and the descriptor of its memory."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(20)
    made.connect("wheel.sock")
    head, fds, _, _ = socket.recv_fds(made, _Memory.GREETING.size, 1)
    assert len(head) == _Memory.GREETING.size and len(fds) == 1, (head, fds)
    return made, fds[0]


def tried(call, *arguments):
    """Whether it is refused."""
    try:
        call(*arguments)
    except (PermissionError, OSError, ValueError):
        return True
    return False


def nobody_disturbs_another():
    alone = None
    with served("--sessions", "2") as (server, _):
        _, alone = whole(HERE)
        made, fd = raw()
        size = os.fstat(fd).st_size
        assert size >= 4 * CAMERA_BYTES
        # No byte of it can be written, nor the memory taken away from under the server.
        assert tried(mmap.mmap, fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        assert tried(os.pwrite, fd, b"rubbish" * 1000, 0) and tried(os.ftruncate, fd, 0) and tried(os.ftruncate, fd, 2 * size)
        os.close(fd)
        made.sendall(b"rubbish" * 5000)  # no frames of a WebSocket
        while made.recv(1 << 16):
            pass
        made.close()
        before = memory_kib(server)
        silent, fd = raw()  # reads nothing
        text = b'{"type":"begin","scenario":"wall","rate":1,"deadline_ms":1000}'
        silent.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)
        silent.sendall(b"".join(bytes([0x81, 0x80 | len(one)]) + bytes(4) + one for one in [b'{"type":"go"}'] + [b'{"type":"pause"}'] * 2000))
        dying = subprocess.Popen([sys.executable, __file__, SWERVE, str(ROOT), "die"], stdout=subprocess.PIPE)
        assert dying.stdout.readline() == b"drives\n"  # both seats are taken
        os.kill(dying.pid, signal.SIGKILL)
        dying.wait()
        assert whole(HERE)[1] == alone  # in the seat of the one that died, beside the one that is silent
        assert memory_kib(server) - before < 8 << 10
        os.close(fd)
        silent.close()
        assert whole(HERE)[1] == alone


def descriptors_are_given_back():
    with served() as (server, _):
        def count():
            return len(os.listdir(f"/proc/{server.pid}/fd"))

        Session(HERE).close()
        end = time.monotonic() + 20
        before = count()
        for _ in range(30):
            Session(HERE).close()
        while count() > before and time.monotonic() < end:
            time.sleep(0.05)
        assert count() <= before, (count(), before)


def memory_kib(process):
    return int(next(line for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])


def the_socket_is_the_users_alone():
    refused = [SWERVE, "session", "serve", "wall.json", "--listen", "127.0.0.1:0", "--hardware"]
    with served() as _:
        assert stat.S_IMODE(os.stat("wheel.sock").st_mode) == 0o600
        done = subprocess.run([*refused, "wheel.sock"], text=True, capture_output=True, timeout=30)
        assert done.returncode == 2 and "a socket that somebody serves" in done.stderr, done.stderr
        Session(HERE).close()  # the first goes on
    pathlib.Path("file").write_text("mine")
    for path, code, said in (("file", 2, "one that is no socket"), ("no/such", 4, "cannot open the directory"), ("x" * 200, 2, "a path of at most")):
        done = subprocess.run([*refused, path], text=True, capture_output=True, timeout=30)
        assert done.returncode == code and said in done.stderr, (path, done.returncode, done.stderr)
    assert pathlib.Path("file").read_text() == "mine"
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind("wheel.sock")
    left.close()
    with served() as _:
        Session(HERE).close()
        ended = Session(HERE)
    try:
        ended.frame()
        raise AssertionError("the server has ended")
    except SessionError as error:
        assert "(1001)" in str(error), error


def die():
    session, _ = begun(HERE)
    drive(session, 0.5, 2)
    print("drives", flush=True)
    time.sleep(60)


TESTS = [a_drive_by_memory_is_that_by_a_websocket, who_comes_by_the_socket_is_hardware, a_slot_that_was_written_again_says_so,
         nobody_disturbs_another, descriptors_are_given_back, the_socket_is_the_users_alone]


def main():
    if sys.argv[3:] == ["die"]:
        return die()
    with tempfile.TemporaryDirectory(prefix="swerve-hardware-") as work:
        os.chdir(work)
        pathlib.Path("wall.json").write_text(json.dumps(WALL))
        failed = tap.run(TESTS)
    sys.exit(1 if failed else 0)


main()
