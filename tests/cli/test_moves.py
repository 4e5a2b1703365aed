#!/usr/bin/env python3
"""Goal: when the worker of a session dies, another one goes on with it by itself, on the same connection: at the tick at which it stood, with the
same bits; each order that was on its way is obeyed once; a session of which workers die ends few of them; who lies gets nothing of others.
Method: workers that are killed, beside drives that nobody disturbs; a relay and workers of bytes of their own.

Usage: test_moves.py SWERVE SOURCE_ROOT
"""
import base64
import hashlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import tap
from relay_site import BINARY, ROOT, SWERVE, WALL, Session, _Socket, attach, begun, closed, complaint, envelope, memory_kib, site, token

SHORT = {**WALL, "id": "short", "horizon_s": 3}
TERMS = {"deadline_ms": 1000, "rate": 0.25}  # slowly, as on a busy machine
GAP_S = 2
ATTACH, OPEN, SAY, SHOW, TAKEN, ASK, CLOSE, GO_ON = range(1, 9)
NAME = "0123456789abcdef" * 2


def ends(session):
    """Frames until the drive has ended."""
    frames = [session.frame()]
    while not frames[-1]["end"]:
        frames.append(session.frame())
    return frames


def told(here, name):
    """A figure of the server's, or of its workers' all together."""
    text = here.ask("/metrics", role=None, key=token("reader", "read"))[1]
    lines = [line.split() for line in text.splitlines() if line.split("{")[0].split()[0] == name]
    assert lines, (name, text)
    return sum(float(line[-1]) for line in lines)


# ---- workers that die ----


def a_session_goes_on_at_another_worker(world=("object",)):
    with site() as here:
        keep = ("--keep", "kept", "--world", *world)
        first, _ = here.worker(*keep, suite="short.json")
        with Session(here.place) as session:
            session.begin("short", seed=5, **TERMS)
            name = session.name
            here.worker(*keep, suite="short.json")
            session.act(accel=-1.0, steer=0.002)
            session.go()
            seen = [session.frame()]
            while seen[-1]["tick"] < 26:
                seen.append(session.frame())
            begin = time.monotonic()
            first.kill()
            while session.moves == 0:
                seen.append(session.frame())
            gap_s = time.monotonic() - begin
            print(f"# {world[0]}: goes on at tick {seen[-1]['tick']} after {gap_s:.3f} s")
            assert gap_s < GAP_S, gap_s
            seen += ends(session)
            ticks = [frame["tick"] for frame in seen]
            assert ticks == sorted(ticks) and ticks[-1] == 30 and session.moves == 1, ticks
            assert all(frame["tier"] == "" for frame, before in zip(seen[1:], seen) if frame["tick"] == before["tick"]), ticks
            moved = session.outcome()
            saved = session.save("moved")
            session.begin("short", seed=5, **TERMS)
            assert session.name != name
            session.act(accel=-1.0, steer=0.002)
            session.go()
            alone = ends(session)
            assert not pathlib.Path(f"kept/acme/{name}.session").exists()
            assert session.outcome() == moved and len(moved["trace_hash"]) == 64, moved
            by_tick = {frame["tick"]: (frame["ego"], frame["agents"]) for frame in alone}
            assert all(by_tick[frame["tick"]] == (frame["ego"], frame["agents"]) for frame in seen[1:] if frame["tick"] in by_tick)
            assert pathlib.Path(saved["path"]).exists()
        assert [told(here, f"swerve_relay_{what}_total") for what in ("sessions", "workers", "workers_gone", "moved", "ended")] == [1, 2, 1, 1, 0]
        assert 0 < told(here, "swerve_relay_gap_seconds_total") < GAP_S
        assert told(here, "swerve_relay_frames_total") >= 30 and told(here, "swerve_relay_messages_total") == 9
        # Four parts of each tick of the drive that was alone, at the least: the worker tells of them each second.
        here.wait(lambda: told(here, "swerve_session_tick_seconds_count") >= 4 * 30)
        assert told(here, "swerve_session_ticks_late_total") <= told(here, "swerve_session_tick_seconds_count") / 4
    drives_the_same(saved["path"], moved, world)


def drives_the_same(path, outcome, world):
    """Drives by `swerve run` what was done at each tick of a session that moved: to the same end."""
    store = f"{path}.db"
    subprocess.run([SWERVE, "run", path, "--world", world[0], "--store", store], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shown = subprocess.run([SWERVE, "show", "--all", "--store", store], check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [row for row in map(json.loads, shown.splitlines()) if row["branch_id"] == "wheel-1" and not row["audit_of"]]
    assert len(rows) == 1 and all(rows[0][key] == outcome[key] for key in ("verdict", "ticks", "metrics", "model_hash")), (rows, outcome)


def a_learned_session_goes_on_at_another_worker():
    a_session_goes_on_at_another_worker(("student", "--steps", "1"))


def orders_that_were_on_their_way_are_obeyed():
    """The worker is stopped, told to go back and to drive otherwise, and killed: the next one does that, once."""
    with site() as here:
        first, _ = here.worker("--keep", "kept", suite="short.json")
        with Session(here.place) as session:
            session.begin("short", **TERMS)
            here.worker("--keep", "kept", suite="short.json")
            session.act(accel=1.0)
            session.go()
            while session.frame()["tick"] < 12:
                pass
            stood = session.pause()["tick"]
            first.send_signal(signal.SIGSTOP)
            session.send("back", ticks=5)
            session.act(accel=-3.0)
            session.send("outcome")  # is refused, once
            time.sleep(0.2)
            first.kill()
            said = complaint(lambda: [session.frame() for _ in range(10)])
            assert "expected a drive that has ended" in said, said
            assert session.moves == 1 and session.pause()["tick"] == stood - 5
            session.go()
            while session.frame()["tick"] == stood - 5:
                pass
            assert session.frame()["action"] == [-3.0, 0]


def none_is_attached_and_it_ends_as_ever():
    with site() as here:
        first, name = here.worker("--keep", "kept")
        with begun(here.place) as session:
            first.kill()
            said = complaint(lambda: [session.frame() for _ in range(100)])
            assert f'"resume": "{session.name}" goes on at one that sees its folder' in said.replace('""', '"'), said
            assert closed(session.socket) == 1012
        second, name = here.worker("--keep", "kept")
        with begun(here.place) as lost, begun(here.place, worker=name) as asked:  # one for that worker by its name
            here.worker("--keep", "elsewhere")  # does not see the folder
            second.kill()
            said = complaint(lambda: [lost.frame() for _ in range(100)])
            assert f"none does by itself: elsewhere/acme/{lost.name}.session: cannot be opened: No such file" in said, said
            said = complaint(lambda: [asked.frame() for _ in range(100)])
            assert "goes on at one that sees its folder" in said and "by itself" not in said, said


def a_worker_that_is_stopped_hands_its_sessions_on():
    with site() as here:
        first, _ = here.worker("--keep", "kept")
        with begun(here.place) as one, begun(here.place) as other:
            here.worker("--keep", "kept")
            one.go()
            one.frame()
            first.send_signal(signal.SIGTERM)
            assert first.wait(30) == 0
            for session in (one, other):
                assert session.pause()["paused"]
                while session.moves == 0:
                    session.pause()
            here.wait(lambda: [row["taken"] for row in here.workers()] == [2])


def a_machine_that_goes_with_two_workers_ends_nothing():
    """Whichever of them is asked first."""
    with site() as here:
        first, _ = here.worker("--keep", "kept")
        with begun(here.place) as session:
            second, _ = here.worker("--keep", "kept")
            here.worker("--keep", "kept")
            for process in (first, second):
                process.kill()
            while session.moves == 0:
                session.pause()
            assert session.pause()["tick"] == 0


# ---- a relay of bytes of its own ----


class Relay(_Socket):
    """A store's server that says to its worker what a test wants."""

    def __init__(self, *options):
        token("w", "worker", "--pool", "bulk")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.worker = subprocess.Popen([SWERVE, "session", "serve", "short.json", "--relay", f"http://127.0.0.1:{listener.getsockname()[1]}",
                                            "--keep", "kept", *options], stdout=subprocess.DEVNULL, stderr=open("worker.log", "a"),
                                           env={**os.environ, "SWERVE_TOKEN_FILE": "w.token"})
            listener.settimeout(20)
            self.socket, _ = listener.accept()
        self.left = b""
        while b"\r\n\r\n" not in self.left:
            self._more()
        head, self.left = self.left.split(b"\r\n\r\n", 1)
        key = next(line.split(b":")[1].strip() for line in head.splitlines() if line.lower().startswith(b"sec-websocket-key:"))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
        self.socket.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                            .encode())
        session, kind, self.kin = self.next()  # before it attaches
        assert session == 0 and kind == TAKEN and len(self.kin) == 64, self.kin
        assert self.next()[1] == ATTACH

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.worker.send_signal(signal.SIGTERM)
        assert self.worker.wait(30) in (0, 4), self.worker.returncode

    def put(self, session, kind, text):
        data = envelope(session, kind, text.encode())
        length = bytes([len(data)]) if len(data) < 126 else bytes([126]) + struct.pack(">H", len(data))
        self.socket.sendall(bytes([0x82]) + length + data)

    def next(self):
        """(session, kind, text) of its next envelope but for frames' pictures and how many it has time for."""
        while True:
            first, size = self._take(2)
            size &= 0x7f
            if size >= 126:
                size = struct.unpack(*((">H", self._take(2)) if size == 126 else (">Q", self._take(8))))[0]
            mask = self._take(4)
            data = self._take(size)
            whole = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
            assert first & 0x80, first
            if first & 15 == 2:
                session, kind, count = struct.unpack("<QII", whole[:16])
                if session or kind in (ATTACH, TAKEN):
                    return session, kind, whole[16:16 + count].decode()

    def until(self, session, kind, wanted=""):
        """Text of the next envelope of that kind, of a message of that type."""
        while True:
            number, found, text = self.next()
            if number != session:
                continue
            if found == CLOSE and kind != CLOSE:
                raise AssertionError(text)
            if found == kind and (not wanted or json.loads(text)["type"] == wanted):
                return text


def a_way_back_that_was_driven_is_not_driven_twice():
    """The worker died behind a way back, before it said that it had obeyed: whoever takes the session up is sent the order again."""
    with Relay() as relay:
        relay.put(1, GO_ON, "acme")
        relay.until(1, SAY, "hello")
        relay.put(1, SAY, json.dumps({"type": "begin", "scenario": "short", **TERMS}))
        relay.until(1, SAY, "begun")
        name, state = relay.until(1, TAKEN).split("\n")
        assert json.loads(state) == {**TERMS, "steps_least": 0, "model_alone": False, "hardware": False, "accel": 0,
                                     "steer": 0, "paused": True, "turns": 0}, state
        for order in ({"type": "act", "accel": 2}, {"type": "go"}):
            relay.put(1, SAY, json.dumps(order))
            before = relay.until(1, TAKEN)
        assert json.loads(before.split("\n")[1])["accel"] == 2 and not json.loads(before.split("\n")[1])["paused"]
        while json.loads(relay.until(1, SHOW))["tick"] < 12:
            pass
        relay.put(1, SAY, json.dumps({"type": "back", "ticks": 5}))
        after = json.loads(relay.until(1, TAKEN).split("\n")[1])
        assert after["turns"] == 1 and after["paused"] and after["accel"] == 0, after
        there = json.loads(relay.until(1, SHOW))
        relay.put(1, CLOSE, "")
        relay.put(2, GO_ON, f"acme\n{before}")
        for order in ({"type": "go"}, {"type": "back", "ticks": 5}, {"type": "act", "accel": 1}):
            relay.put(2, SAY, json.dumps(order))
        assert json.loads(relay.until(2, SAY)) == {"type": "moved", "session": name}
        states = [json.loads(relay.until(2, TAKEN).split("\n")[1]) for _ in range(3)]
        assert [(one["turns"], one["accel"], one["paused"]) for one in states] == [(0, 0, True), (1, 0, True), (1, 1, True)], states
        relay.put(2, SAY, json.dumps({"type": "pause"}))
        relay.until(2, TAKEN)  # frames come behind texts
        stands = json.loads(relay.until(2, SHOW))
        assert stands["tick"] == there["tick"] and stands["ego"] == there["ego"] and stands["paused"], (stands, there)
        relay.put(2, SAY, json.dumps({"type": "back", "ticks": 2}))
        assert json.loads(relay.until(2, TAKEN).split("\n")[1])["turns"] == 2
        assert json.loads(relay.until(2, SHOW))["tick"] == there["tick"] - 2
        relay.put(2, CLOSE, "")
        lost = {**json.loads(before.split("\n")[1]), "turns": 3}  # the log has two
        relay.put(3, GO_ON, f"acme\n{name}\n{json.dumps(lost)}")
        assert "expected 3 ways back in its log, found 2: its end is lost" in relay.until(3, CLOSE)
        relay.put(4, GO_ON, f"acme\n{name}\n{json.dumps({**lost, 'turns': 2})}")
        assert json.loads(relay.until(4, SAY)) == {"type": "moved", "session": name}


def a_begin_that_was_obeyed_is_obeyed_again():
    """The worker died behind it, before it said so: what stood before is still there to go on with."""
    with Relay() as relay:
        begin = json.dumps({"type": "begin", "scenario": "short", **TERMS})
        relay.put(1, GO_ON, "acme")
        relay.put(1, SAY, begin)
        before = relay.until(1, TAKEN)
        name = before.split("\n")[0]
        relay.put(1, SAY, begin)
        assert relay.until(1, TAKEN).split("\n")[0] != name
        relay.put(1, CLOSE, "")
        relay.put(2, GO_ON, f"acme\n{before}")
        relay.put(2, SAY, begin)
        assert json.loads(relay.until(2, SAY)) == {"type": "moved", "session": name}
        assert relay.until(2, TAKEN).split("\n")[0] != name
        relay.put(2, SAY, json.dumps({"type": "pause"}))
        relay.until(2, TAKEN)
        assert not pathlib.Path(f"kept/acme/{name}.session").exists()


def who_finds_no_seat_is_told_once():
    """And at once: waiting is for sessions that another worker still holds."""
    told_before = pathlib.Path("worker.log").stat().st_size if pathlib.Path("worker.log").exists() else 0
    with Relay("--sessions", "1") as relay:
        relay.put(1, GO_ON, "acme")
        relay.put(1, SAY, json.dumps({"type": "begin", "scenario": "short", **TERMS}))
        luggage = relay.until(1, TAKEN)
        relay.put(2, GO_ON, f"acme\n{luggage}")
        assert "all 1 seats are taken" in relay.until(2, CLOSE)
    assert "swerve: 1 session, 1 refused" in pathlib.Path("worker.log").read_text()[told_before:]


def what_does_not_fit_is_not_taken_up():
    good = {"rate": 0.5, "deadline_ms": 1000, "accel": 0, "steer": 0, "paused": True, "turns": 0}
    with Relay() as relay:
        relay.put(1, GO_ON, "acme")
        relay.put(1, SAY, json.dumps({"type": "begin", "scenario": "short", **TERMS}))
        name, state = relay.until(1, TAKEN).split("\n")
        number = 1
        for luggage, why in ((f"beta\n{name}\n{state}", "No such file"), (f"\n{name}\n{state}", "No such file"),
                             (f"acme\n../acme/{name}\n{state}", "expected the name"), (f"acme\n\n{state}", "expected the name"),
                             (f"acme\n{name}\n", "state"), (f"acme\n{name}\n[]", "state"), (f"acme\n{name}", "state"),
                             (f"acme\n{name}\n{{}}", "accel"), (f"acme\n{name}\n{json.dumps({**good, 'turns': -1})}", "turns"),
                             (f"acme\n{name}\n{json.dumps({**good, 'accel': 1e9})}", "accel"),
                             (f"acme\n{name}\n{json.dumps({**good, 'resume': 'x'})}", "resume"),
                             (f"acme\n{name}\n{json.dumps({**good, 'hardware': 1})}", "hardware"),
                             (f"acme\n{name}\n{state}", "somebody goes on with this drive"), ("x" * 300 + f"\n{name}\n{state}", "tenant")):
            number += 1
            relay.put(number, GO_ON, luggage)
            said = relay.until(number, CLOSE)
            assert why in said, (luggage, said)
        relay.put(1, SAY, json.dumps({"type": "pause"}))  # the session that lives is as it was
        relay.until(1, TAKEN)


# ---- workers of bytes of their own ----


class Liar:
    """A worker that says what a test wants."""

    def __init__(self, here, name, kin="k", places=4, attaches=True):
        self.socket = attach(here)
        if kin:
            self.say(0, TAKEN, kin)
        self.say(0, ATTACH, json.dumps({"worker": name, "places": places, "world": "object", "model": "", "tiers": [], "scenarios": ["wall"]}))
        here.wait(lambda: not attaches or any(one["worker"] == name for one in here.workers()))

    def say(self, session, kind, text, more=b""):
        data = envelope(session, kind, text.encode(), more)
        self.socket.send(BINARY, data)

    def next(self):
        kind, data = self.socket.receive()
        assert kind == BINARY
        session, kind, count = struct.unpack("<QII", data[:16])
        return session, kind, data[16:16 + count].decode()

    def die(self):
        self.socket.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def raw(here):
    """A client's connection that looks at nothing."""
    made = Session.__new__(Session)
    place = here.place.split("//")[1]
    host, port = place.split("/")[0].split(":")
    made.socket = _Socket(host, int(port), f"/v1/sessions?key={place.split('#')[1]}", 20)
    made.moves = 0
    return made


def kept(liar, client):
    """A session of the client at the liar, which says that it keeps it."""
    session, kind, tenant = liar.next()
    assert kind == GO_ON and tenant == "acme", (kind, tenant)
    client.send("begin", scenario="wall")
    assert liar.next()[1] == SAY
    liar.say(session, TAKEN, f"{NAME}\n{{state}}")
    return session


def floods(here, client, worker, session):
    """Neither a client that writes and does not read nor a worker that shows without end costs the server more than a few messages."""
    before = memory_kib(here.server)
    connection = client.socket.socket
    connection.settimeout(0.5)
    text = json.dumps({"type": "act", "accel": 0.25}).ljust(4000).encode()
    sent = 0
    try:
        while sent < 64 << 20:
            sent += connection.send(bytes([0x81, 0x80 | 126]) + struct.pack(">H", len(text)) + bytes(4) + text)
        raise AssertionError(f"{sent} bytes were taken")
    except TimeoutError:
        pass
    for _ in range(100):
        worker.say(session, SHOW, '{"type": "frame"}', bytes(60000))
    here.wait(lambda: told(here, "swerve_relay_frames_total") >= 100)
    assert memory_kib(here.server) - before < 6 << 10
    told_first = [worker.next() for _ in range(4)]
    assert all(number == session and kind == SAY for number, kind, _ in told_first), told_first


def the_next_is_given_what_the_last_had_not_taken():
    with site() as here:
        first = Liar(here, "first")
        with raw(here) as client:
            strange = Liar(here, "strange", kin="other", places=64)
            plain = Liar(here, "plain", kin="", places=64)
            session = kept(first, client)
            for number in range(5):
                client.send("act", accel=number)
            orders = [first.next() for _ in range(5)]
            first.say(session, TAKEN, f"{NAME}\nafter the first")
            second = Liar(here, "second")
            here.wait(lambda: told(here, "swerve_relay_messages_total") == 6)
            time.sleep(0.2)
            first.die()
            moved, kind, text = second.next()
            assert kind == GO_ON and text == f"acme\n{NAME}\nafter the first" and moved != session, (kind, text)
            assert [second.next() for _ in range(4)] == [(moved, SAY, order[2]) for order in orders[1:]]
            second.say(session, SHOW, '{"type": "frame", "tick": 66}')  # of a number that is nobody's
            second.say(moved, SAY, '{"type": "moved"}')
            assert [json.loads(client.socket.receive()[1])["type"] for _ in range(2)] == ["moving", "moved"]
            assert told(here, "swerve_relay_moved_total") == 1
            floods(here, client, second, moved)
            rows = {row["worker"]: row["taken"] for row in here.workers()}
            assert rows == {"strange": 0, "plain": 0, "second": 1}, rows
        del strange, plain


def who_cannot_says_so_and_the_next_is_asked():
    with site() as here:
        first = Liar(here, "first")
        with raw(here) as client:
            kept(first, client)
            others = [Liar(here, f"other{i}", places=i + 2) for i in range(6)]
            first.die()
            for i in (5, 4, 3, 2):  # by their room; no more than four
                session, kind, _ = others[i].next()
                assert kind == GO_ON, kind
                others[i].say(session, CLOSE, f"no {i}")
            said = complaint(lambda: [client._want("frame")])
            assert said.endswith("goes on at one that sees its folder; none does by itself: no 2") and NAME in said, said
            assert closed(client.socket) == 1012
            here.wait(lambda: all(row["taken"] == 0 for row in here.workers()))
        assert told(here, "swerve_relay_ended_total") == 1 and told(here, "swerve_relay_moved_total") == 0


def a_session_of_which_workers_die_ends_few_of_them():
    with site() as here:
        for frames, deaths in ((0, 3), (1, 2), (19, 2), (20, 3)):  # shown by each before it dies; 0: it says nothing
            liars = [Liar(here, "liar0")]
            with raw(here) as client:
                kept(liars[0], client)
                liars += [Liar(here, f"liar{i}", places=20 - i) for i in range(1, 5)]
                for died in range(1, deaths + 1):
                    liars[died - 1].die()
                    if died < deaths:
                        session, kind, _ = liars[died].next()
                        assert kind == GO_ON
                        shown = told(here, "swerve_relay_frames_total") + frames
                        for _ in range(frames):
                            liars[died].say(session, SHOW, '{"type": "frame"}', b"pictures")
                        here.wait(lambda shown=shown: told(here, "swerve_relay_frames_total") == shown)
                said = complaint(lambda: [client._want("never")])
                assert said.endswith("none does by itself: it has moved as often as it may"), said
                here.wait(lambda: len(here.workers()) == 5 - deaths)
                assert all(row["taken"] == 0 for row in here.workers())
            for liar in liars[deaths:]:
                liar.die()
            here.wait(lambda: not here.workers())


def who_lies_about_what_it_keeps_is_cut_off():
    with site() as here:
        for text in (f"{NAME}\n" + "x" * 1025, "x" * 64, "x" * 64 + "\nstate"):
            liar = Liar(here, "liar")
            with raw(here) as client:
                session = liar.next()[0]
                liar.say(session, TAKEN, text)
                assert closed(liar.socket) == 1002, text[:40]
                assert "did not keep it: begin again" in complaint(lambda one=client: one._want("never"))
            here.wait(lambda: not here.workers())
        liar = Liar(here, "liar", kin="x" * 80, attaches=False)
        assert closed(liar.socket) == 1002
        here.wait(lambda: not here.workers())
        liar = Liar(here, "liar")
        with raw(here) as client:  # tells without end; the newest is kept
            session = liar.next()[0]
            for first, last in ((0, 2000), (2000, 26000)):  # 24 MB, once what a sanitizer keeps is there
                before = memory_kib(here.server)
                for i in range(first, last):
                    liar.say(session, TAKEN, f"{NAME}\n" + str(i).rjust(1024))
                liar.say(session, SAY, '{"type": "hello"}')
                client._want("hello")
            assert memory_kib(here.server) - before < 8 << 10
            other = Liar(here, "other")
            liar.die()
            assert other.next()[2] == f"acme\n{NAME}\n" + "25999".rjust(1024)


TESTS = [a_session_goes_on_at_another_worker, a_learned_session_goes_on_at_another_worker, orders_that_were_on_their_way_are_obeyed,
         none_is_attached_and_it_ends_as_ever, a_worker_that_is_stopped_hands_its_sessions_on, a_machine_that_goes_with_two_workers_ends_nothing,
         a_way_back_that_was_driven_is_not_driven_twice, a_begin_that_was_obeyed_is_obeyed_again, who_finds_no_seat_is_told_once,
         what_does_not_fit_is_not_taken_up, the_next_is_given_what_the_last_had_not_taken, who_cannot_says_so_and_the_next_is_asked,
         a_session_of_which_workers_die_ends_few_of_them, who_lies_about_what_it_keeps_is_cut_off]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-moves-") as work:
        os.chdir(work)
        pathlib.Path("wall.json").write_text(json.dumps(WALL))
        pathlib.Path("short.json").write_text(json.dumps(SHORT))
        failed = tap.run([test for test in TESTS if not sys.argv[3:] or test.__name__ in sys.argv[3:]])
    sys.exit(1 if failed else 0)


main()
