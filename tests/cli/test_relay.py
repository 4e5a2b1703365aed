#!/usr/bin/env python3
"""Goal: sessions of workers that attach to a store's server are those of `swerve session serve`: the same frames to the
byte, on whichever worker; a worker that dies is told to its clients and to nobody else's; who reads slowly gets the newest
frame and costs little memory; nobody gets in without a driver's token, from another site's page or beyond the quota; with TLS too.
Method: a server, two workers of a small scenario, the Python client, and bytes of its own.

Usage: test_relay.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import tap
from relay_site import (BINARY, ROOT, SWERVE, TEXT, WALL, Session, SessionError, attach, begun, closed, complaint, dial, envelope, memory_kib,
                        site, token)

TIMES = {"wait_ms", "compute_ms", "slack_ms", "late"}  # of a frame: what its tick took on the machine
AT_ONCE_S = 5  # on a busy machine; pings alone notice it after 10


def frames_at(session, tick):
    """Frame and pictures of a tick of a drive that holds still there."""
    session.begin("wall", seed=3, deadline_ms=1000, rate=0.5)
    session.act(accel=-1.0, steer=0.01)
    session.go()
    while session.frame()["tick"] < tick:
        pass
    frame = session.pause()
    frame = session.back(frame["tick"] - tick)
    session.send("ticks")  # behind the pictures of the frame
    session._want("ticks")
    return {key: value for key, value in frame.items() if key not in TIMES}, session.cameras, session.windscreen


def frames_are_those_of_one_process():
    server = subprocess.Popen([SWERVE, "session", "serve", "wall.json", "--listen", "127.0.0.1:0", "--save", "saved"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with Session(server.stdout.readline().strip()) as session:
        alone = frames_at(session, 7)
        hello = (session.world, session.tiers, session.scenarios)
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    with site() as here:
        names = [here.worker("--sessions", "2")[1] for _ in range(2)]
        for name in names:
            with Session(here.place, worker=name) as session:
                assert (session.world, session.tiers, session.scenarios) == hello
                found = frames_at(session, 7)
                assert found[0] == alone[0], (found[0], alone[0])
                assert found[1] == alone[1] and found[2] == alone[2] and len(found[2]) > 1000
                try:
                    session.begin("nothing")
                    raise AssertionError("there is no such scenario")
                except SessionError as error:
                    assert "as \"hello\" lists them" in str(error), error
                assert session.pause()["tick"] == 7  # the session before goes on
        code, body = here.ask("/v1/scenario?scenario=wall")
        assert code == 200 and json.loads(body)["scenario"] == "wall", (code, body[:200])
        assert here.ask("/v1/scenario?scenario=none")[0] == 404
        listed = here.workers()
        assert sorted(one["worker"] for one in listed) == sorted(names)
        assert all(one["places"] == 2 and one["scenarios"] == ["wall"] and one["world"] == "object" for one in listed), listed
        for page in ("wheel.html", "wheel.js", "wheel.css"):
            assert here.ask(f"/web/{page}", role=None)[0] == 200, page


def a_worker_that_dies_takes_its_own_sessions_alone():
    with site() as here:
        workers = dict(reversed(here.worker()) for _ in range(2))
        (one, first), (two, second) = workers.items()
        with begun(here.place, worker=one) as lost, begun(here.place, worker=two) as kept:
            for session in (lost, kept):
                session.act(accel=0.5)
                session.go()
                session.frame()
            begin = time.monotonic()
            first.kill()
            try:
                while True:
                    lost.frame()
            except SessionError as error:
                assert "worker of this session has gone, and did not keep it: begin again" in str(error), error
            took_s = time.monotonic() - begin
            assert took_s < AT_ONCE_S, took_s
            try:
                lost.frame()
            except SessionError as error:
                assert "(1012)" in str(error), error
            tick = kept.frame()["tick"]
            while kept.frame()["tick"] < tick + 10:
                pass
            with begun(here.place) as third:  # at the one that is left
                assert third.pause()["tick"] == 0
            here.wait(lambda: [row["taken"] for row in here.workers()] == [1])
        here.wait(lambda: [row["taken"] for row in here.workers()] == [0])


def a_server_that_dies_is_attached_to_again():
    with site() as here:
        here.worker("--sessions", "1")
        session = begun(here.place)
        here.server.kill()
        here.server.wait()
        try:
            while True:
                session.frame()
        except (SessionError, OSError):
            pass
        here.serve()
        here.wait(lambda: len(here.workers()) == 1)
        with begun(here.place) as again:  # the only seat is free
            assert again.pause()["tick"] == 0
        last = begun(here.place)
        here.server.send_signal(signal.SIGTERM)
        assert here.server.wait(30) == 0
        try:
            while True:
                last.frame()
        except SessionError as error:
            assert "(1001)" in str(error) or "has gone" in str(error), error


def a_kept_session_is_its_tenants_alone():
    bob = token("bob", "driver", "--tenant", "be/ta")
    with site() as here:
        here.worker("--keep", "kept")
        theirs = f"{here.url}/#{bob}"
        own = {}
        for who, place, folder in (("ann", here.place, "kept/acme"), ("bob", theirs, "kept/be%2fta"),
                                   ("eve", f"{here.url}/#{token('eve', 'driver')}", "kept")):
            with begun(place) as session:
                own[who] = session.name
                drive = session.back(0)
                assert (pathlib.Path(folder) / f"{session.name}.session").exists(), (who, os.listdir("kept"))
        with begun(theirs) as session:
            strange = complaint(session.resume, own["ann"])
            assert strange.replace(own["ann"], "0" * 32) == complaint(session.resume, "0" * 32) and "No such file" in strange, strange
            assert "No such file" in complaint(session.resume, own["eve"])
            assert session.resume(own["bob"], rate=0.25, deadline_ms=1000)["tick"] == drive["tick"]
        with begun(here.place) as session:
            assert session.resume(own["ann"], rate=0.25, deadline_ms=1000)["paused"] and session.name == own["ann"]


def a_token_that_is_revoked_ends_its_sessions():
    token("cid", "driver", "--tenant", "acme")
    with site() as here:
        worker, _ = here.worker("--sessions", "2")
        place = f"{here.url}/#{token('cid', 'driver')}"
        with begun(place) as idle, begun(place) as drives:
            drives.go()
            drives.frame()
            subprocess.run([SWERVE, "token", "revoke", "cid", "--store", "jobs.db"], check=True, stdout=subprocess.DEVNULL)
            here.wait(lambda: [row["taken"] for row in here.workers()] == [0], AT_ONCE_S)  # though neither says a word
            for session in (idle, drives):
                said = complaint(lambda one=session: [one.frame() for _ in range(100)])
                assert said == "the token has expired or was revoked", said
                assert closed(session.socket) == 3000
        with begun(here.place) as other:
            assert other.pause()["tick"] == 0
        subprocess.run([SWERVE, "token", "revoke", "w", "--store", "jobs.db"], check=True, stdout=subprocess.DEVNULL)
        assert worker.wait(AT_ONCE_S) == 4, worker.returncode  # nothing passed either
        here.processes.remove(worker)
        assert "HTTP 401" in pathlib.Path("worker.log").read_text()
    for name in ("cid", "w"):
        pathlib.Path(f"{name}.token").unlink()


class Proxy:
    """In front of a server, with a path before its own: `url` has it."""

    def __init__(self, url):
        self.behind = urllib.parse.urlsplit(url)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/sites/one"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                front, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(front,), daemon=True).start()

    def carry(self, front):
        head = b""
        while b"\r\n\r\n" not in head:
            head += front.recv(1 << 16)
        assert head.startswith(b"GET /sites/one/v1/"), head
        back = socket.create_connection((self.behind.hostname, self.behind.port))
        back.sendall(head.replace(b"/sites/one", b"", 1))
        threading.Thread(target=self.pipe, args=(back, front), daemon=True).start()
        self.pipe(front, back)

    @staticmethod
    def pipe(one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def a_proxy_may_put_a_path_in_front():
    with site() as here:
        proxy = Proxy(here.url)
        key = here.place.split("#")[1]
        here.url, direct = proxy.url, here.url
        process = subprocess.Popen([SWERVE, "session", "serve", "wall.json", "--relay", f"{proxy.url}/"], text=True, env=here.env,
                                   stdout=subprocess.PIPE, stderr=open("worker.log", "a"))
        here.processes.append(process)
        here.url = direct
        here.wait(lambda: len(here.workers()) == 1, 5)
        with begun(f"{proxy.url}/#{key}") as session:
            assert session.pause()["tick"] == 0
        proxy.listener.close()


def a_worker_that_dies_says_how_its_session_goes_on():
    with site() as here:
        first, _ = here.worker("--keep", "kept")
        with begun(here.place) as lost:
            name = lost.name
            first.kill()
            said = complaint(lambda: [lost.frame() for _ in range(100)])
            assert f'"resume": "{name}"' in said, said
        here.worker("--keep", "kept")
        with begun(here.place) as again:
            assert again.resume(name, deadline_ms=1000, rate=0.25)["tick"] == 0


def a_slow_reader_gets_the_newest_frame():
    with site() as here:
        here.worker()
        with begun(here.place) as slow:
            slow.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            before = memory_kib(here.server)
            count = 150
            for _ in range(count):  # each is answered with a frame of some 70 KB
                slow.send("pause")
            with begun(here.place) as quick:  # who reads is not held up, and is told as much meanwhile
                for _ in range(count):
                    quick.pause()
            grown = memory_kib(here.server) - before
            assert grown < 6 << 10, grown
            slow.go()
            slow.socket.socket.settimeout(10)
            seen = [slow.frame()]
            while seen[-1]["tick"] < 3:
                seen.append(slow.frame())
            ticks = [frame["tick"] for frame in seen]
            assert ticks == sorted(ticks) and len(seen) < count * 3 // 4, ticks


def who_writes_too_much_is_held_back():
    """Orders without end while the worker is stopped: they are read no further, and all are obeyed when it goes on."""
    with site() as here:
        worker, _ = here.worker()
        with begun(here.place) as hostile:
            worker.send_signal(signal.SIGSTOP)
            before = memory_kib(here.server)
            hostile.socket.socket.settimeout(0.5)
            text = json.dumps({"type": "act", "accel": 0.25}).ljust(4000).encode()
            head = bytes([0x81, 0x80 | 126]) + struct.pack(">H", len(text)) + bytes(4)
            sent = 0
            try:
                while sent < 64 << 20:
                    sent += hostile.socket.socket.send(head + text)
                raise AssertionError(f"{sent} bytes were taken")
            except TimeoutError:
                pass
            assert memory_kib(here.server) - before < 6 << 10
            worker.send_signal(signal.SIGCONT)


def nobody_gets_in_who_may_not():
    made = subprocess.run([SWERVE, "token", "add", "dan", "--role", "driver", "--tenant", "acme", "--store", "jobs.db"], text=True,
                          capture_output=True, check=True)
    assert " for dan (driver, tenant acme) added to " in made.stderr and made.stderr.endswith("; it is not shown again\n"), made.stderr
    with site("--sessions", "2") as here:
        driver = token("ann", "driver")
        assert dial(here.url, f"/v1/sessions?key={driver}") == 503  # nobody is attached
        assert complaint(Session, here.place) == f"{here.listen}: no worker for sessions is attached, try again later"
        here.worker("--sessions", "3")
        assert dial(here.url, f"/v1/sessions?key={driver}") == 101
        assert dial(here.url, "/v1/sessions") == 401
        assert dial(here.url, f"/v1/sessions?key={driver[:-1]}{'0' if driver[-1] != '0' else '1'}") == 401
        assert dial(here.url, f"/v1/sessions?key={driver}&worker=nobody") == 404
        assert dial(here.url, f"/v1/sessions?key={driver}", ["Origin: http://elsewhere.example"]) == 403
        assert dial(here.url, f"/v1/sessions?key={driver}", [f"Origin: {here.url}"]) == 101
        assert dial(here.url, "/v1/sessions", [f"Authorization: Bearer {token('reader', 'read')}"]) == 403
        assert dial(here.url, f"/v1/sessions?key={token('w', 'worker')}") == 403
        assert dial(here.url, f"/v1/sessions?key={token('boss', 'admin')}") == 403  # an address is no place for it
        assert dial(here.url, "/v1/sessions", [f"Authorization: Bearer {token('boss', 'admin')}"]) == 101
        assert dial(here.url, "/v1/sessions/worker", [f"Authorization: Bearer {driver}"]) == 403
        assert here.ask("/v1/suites", key=driver)[0] == 403
        assert here.ask("/v1/sessions/worker", key=token("w", "worker"))[0] == 426
        here.wait(lambda: [row["taken"] for row in here.workers()] == [0])
        with begun(here.place), begun(here.place):
            assert dial(here.url, f"/v1/sessions?key={driver}") == 429  # of the tenant
            assert complaint(Session, here.place) == f"{here.listen}: tenant acme: 2 sessions at once, no more may be"
            other = token("bob", "driver", "--tenant", "beta")
            with begun(f"{here.url}/#{other}"):
                assert dial(here.url, f"/v1/sessions?key={token('eve', 'driver')}") == 503  # every place is taken
    done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--relay", "jobs.db"], text=True, capture_output=True)
    assert done.returncode == 2 and "expected the http(s):// address" in done.stderr, done.stderr
    for other in (("--listen", "127.0.0.1:0"), ("--allow-remote",)):
        done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--relay", "http://127.0.0.1:1", *other], text=True,
                              capture_output=True, timeout=20)
        assert done.returncode == 2 and f"expected --relay or {other[0]}, found both" in done.stderr, done.stderr


def figure(here, name):
    code, text = here.ask("/metrics", role="boss")
    assert code == 200, text
    return int(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[1])


def a_tenant_has_a_quota_of_sessions():
    """Its own, below what the server lets any tenant; above it that counts. Each that is refused is counted."""
    token("boss", "admin")
    beta = token("ben", "driver", "--tenant", "beta")

    def quota(tenant, sessions):
        done = subprocess.run([SWERVE, "tenant", "set", tenant, "--sessions", str(sessions), "--store", here.url], text=True, capture_output=True,
                              env={**os.environ, "SWERVE_TOKEN_FILE": "boss.token"})
        assert done.returncode == 0 and f"sessions at once {sessions or 'any'}\n" in done.stdout, (done.stdout, done.stderr)

    with site("--sessions", "2") as here:
        here.worker("--sessions", "8")
        quota("acme", 1)
        quota("beta", 9)
        refused = figure(here, "swerve_relay_refused_total")
        with begun(here.place) as only:
            driver = token("ann", "driver")
            assert dial(here.url, f"/v1/sessions?key={driver}") == 429
            assert complaint(Session, here.place) == (f"{here.listen}: tenant acme: 1 session at once, no more may be by its quota "
                                                      "(swerve tenant set)")
            assert figure(here, "swerve_relay_refused_total") == refused + 2
            with begun(f"{here.url}/#{beta}"), begun(f"{here.url}/#{beta}"):
                assert complaint(Session, f"{here.url}/#{beta}") == f"{here.listen}: tenant beta: 2 sessions at once, no more may be"
            quota("acme", 0)
            with begun(here.place):
                quota("acme", 1)  # ends nobody's
                only.begin("wall", deadline_ms=1000, rate=0.25)
                assert dial(here.url, f"/v1/sessions?key={driver}") == 429
        quota("acme", 0)


def a_tenants_worker_serves_its_sessions_alone():
    """It takes no other tenant's session, neither new nor one that moves, shows them nothing of itself, and takes no jobs."""
    beta = f"/#{token('ben', 'driver', '--tenant', 'beta')}"
    nobody = f"/#{token('eve', 'driver')}"
    own = token("aw", "worker", "--pool", "bulk", "--tenant", "acme")
    done = subprocess.run([SWERVE, "token", "ls", "--store", "jobs.db", "--json"], text=True, capture_output=True, check=True)
    assert [one["tenant"] for one in json.loads(done.stdout)["tokens"] if one["name"] == "aw"] == ["acme"], done.stdout
    keep = ("--keep", "tenants", "--sessions", "4")
    with site() as here:
        anybody, shared = here.worker(*keep)  # whose token is of no tenant
        here.env["SWERVE_TOKEN_FILE"] = "aw.token"
        _, bound = here.worker(*keep)
        listed = {who: {row["worker"] for row in json.loads(here.ask("/v1/sessions", key=key)[1])["workers"]}
                  for who, key in (("ann", token("ann", "driver")), ("ben", beta[2:]), ("reader", token("reader", "read")))}
        assert listed == {"ann": {shared, bound}, "ben": {shared}, "reader": {shared, bound}}, listed
        for place in (beta, nobody):
            assert f'no worker for sessions is called "{bound}"' in complaint(Session, here.url + place, worker=bound)
        with begun(here.place, worker=bound) as ours:  # acme's at its own
            assert ours.pause()["tick"] == 0
        with begun(here.url + nobody) as free, begun(here.url + beta) as theirs:
            with begun(here.url + beta) as more:
                assert more.pause()["tick"] == 0
            # That of acme, at the worker of nobody, goes on at acme's; beta's ends, though its folder is there.
            filler = [Session(here.place, worker=bound) for _ in range(4)]
            with begun(here.place) as moved:  # the only place left
                for one in filler:
                    one.close()
                here.wait(lambda: {row["worker"]: row["taken"] for row in here.workers()} == {shared: 3, bound: 0})
                anybody.kill()
                for one in (theirs, free):
                    said = complaint(lambda one=one: [one.frame() for _ in range(100)])
                    assert "the worker of this session has gone" in said and theirs.name != free.name, said
                    assert closed(one.socket) == 1012
                while not moved.moves:
                    moved.pause()
                assert moved.pause()["tick"] == 0 and moved.moves == 1
                here.wait(lambda: {row["worker"]: row["taken"] for row in here.workers()} == {bound: 1})
                assert "no worker for sessions is attached" in complaint(Session, here.url + beta)
                assert here.ask("/v1/scenario?scenario=wall", key=beta[2:])[0] == 404
                assert here.ask("/v1/scenario?scenario=wall")[0] == 200
        for path in ("/v1/jobs/1", "/v1/models", "/v1/health"):
            code, text = here.ask(path, key=own)
            assert code == 403 and "serves its sessions alone" in text, (code, text)
        done = subprocess.run([SWERVE, "worker", "--store", here.url, "--idle-exit"], text=True, capture_output=True, env=here.env, timeout=30)
        assert done.returncode != 0, done.stdout


def a_worker_that_is_refused_says_why():
    with site() as here:
        here.env["SWERVE_TOKEN_FILE"] = "reader.token"
        token("reader", "read")
        done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--relay", here.url], text=True, capture_output=True, env=here.env,
                              timeout=30)
        assert done.returncode == 4 and "HTTP 403" in done.stderr and "the role read" in done.stderr, (done.returncode, done.stderr)
    with site("--sessions", "0") as here:
        done = subprocess.run([SWERVE, "session", "serve", "wall.json", "--relay", here.url], text=True, capture_output=True, env=here.env,
                              timeout=30)
        assert done.returncode == 4 and "relays none" in done.stderr, (done.returncode, done.stderr)


def who_comes_goes_where_there_is_time():
    """A worker of many places that says how many it has time for: it is offered by that."""
    with site() as here:
        _, small = here.worker("--sessions", "2")
        large = attach(here)
        large.send(BINARY, envelope(0, 1, json.dumps({"worker": "large", "places": 64, "world": "object", "model": "", "tiers": [],
                                                      "scenarios": ["wall"]}).encode()))
        large.send(BINARY, envelope(0, 3, b"0"))
        here.wait(lambda: {row["worker"]: row["room"] for row in here.workers()} == {small: 2, "large": 0})
        with begun(here.place):
            assert {row["worker"]: row["taken"] for row in here.workers()} == {small: 1, "large": 0}
            with begun(here.place):  # a place is a place: the one that has time first
                place = urllib.parse.urlsplit(here.place)
                assert dial(here.url, f"/v1/sessions?key={place.fragment}") == 101  # who goes slowly may be let in
        large.send(BINARY, envelope(0, 3, b"64"))
        here.wait(lambda: {row["worker"]: row["room"] for row in here.workers()}["large"] == 64)
        for wrong in (b"65", b"-1", b"", b"1.0", b"0001", b"{}"):
            again = attach(here)
            again.send(BINARY, envelope(0, 1, json.dumps({"worker": "other", "places": 64, "world": "w", "model": "", "tiers": [],
                                                          "scenarios": ["wall"]}).encode()))
            again.send(BINARY, envelope(0, 3, wrong))
            assert closed(again) == 1002, wrong


def who_breaks_the_rules_is_cut_off():
    with site() as here:
        here.worker()
        for data, opcode, code in [(b"x" * 4097, TEXT, 1009), (b"x", BINARY, 1003), (b"{\0}", TEXT, 1002)]:
            with Session(here.place) as session:
                session.socket.send(opcode, data)
                assert closed(session.socket) == code, (data[:8], opcode)
        own = {"worker": "mine", "places": 1, "world": "w", "model": "", "tiers": [], "scenarios": ["wall"]}
        good = envelope(0, 1, json.dumps(own).encode())
        for wrong in (b"", b"x" * 15, envelope(0, 0), envelope(0, 8), envelope(0, 9), envelope(0, 1, b"{}"), envelope(0, 1, b"[]"), envelope(0, 2),
                      envelope(1, 1, json.dumps(own).encode()), envelope(0, 1, json.dumps({**own, "places": 65}).encode()),
                      envelope(0, 1, json.dumps({**own, "scenarios": [1]}).encode()), envelope(0, 3, b"\xff"), envelope(0, 3, b"a", b"b"),
                      struct.pack("<QII", 0, 3, 1 << 31)):
            one = attach(here)
            one.send(BINARY, wrong)
            assert closed(one) == 1002, wrong[:40]
        one = attach(here)
        one.send(BINARY, good)
        one.send(BINARY, envelope(77, 4, b"{}", b"pictures of nobody"))  # its client may have gone
        one.send(BINARY, good)
        assert closed(one) == 1002
        one = attach(here)
        one.send(TEXT, b"{}")
        assert closed(one) == 1003
        with begun(here.place) as session:
            assert session.pause()["tick"] == 0


def with_tls_too():
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True,
                   stderr=subprocess.DEVNULL)
    os.environ["SWERVE_CA_FILE"] = "cert.pem"
    with site("--tls-cert", "cert.pem", "--tls-key", "key.pem") as here:
        assert here.url.startswith("https://")
        workers = dict(reversed(here.worker()) for _ in range(2))
        (one, first), (two, _) = workers.items()
        with begun(here.place, worker=one) as lost, begun(here.place, worker=two) as kept:
            for session in (lost, kept):
                session.go()
                session.frame()
            gone = begun(here.place, worker=two)
            gone.socket.socket.shutdown(socket.SHUT_RDWR)
            gone.close()
            begin = time.monotonic()
            here.wait(lambda: {row["worker"]: row["taken"] for row in here.workers()} == {one: 1, two: 1})
            assert time.monotonic() - begin < AT_ONCE_S
            begin = time.monotonic()
            first.kill()
            try:
                while True:
                    lost.frame()
            except SessionError as error:
                assert "worker of this session has gone" in str(error), error
            assert time.monotonic() - begin < AT_ONCE_S
            tick = kept.frame()["tick"]
            while kept.frame()["tick"] < tick + 5:
                pass
            assert len(kept.cameras) == 3 * 64 * 96 * 3 and kept.windscreen[:2] == b"\xff\xd8"
    del os.environ["SWERVE_CA_FILE"]


TESTS = [frames_are_those_of_one_process, a_worker_that_dies_takes_its_own_sessions_alone, a_server_that_dies_is_attached_to_again,
         a_kept_session_is_its_tenants_alone, a_proxy_may_put_a_path_in_front,
         a_worker_that_dies_says_how_its_session_goes_on, a_token_that_is_revoked_ends_its_sessions,         a_slow_reader_gets_the_newest_frame, who_writes_too_much_is_held_back, nobody_gets_in_who_may_not,
         a_tenant_has_a_quota_of_sessions, a_tenants_worker_serves_its_sessions_alone, a_worker_that_is_refused_says_why, who_comes_goes_where_there_is_time, who_breaks_the_rules_is_cut_off, with_tls_too]


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-relay-") as work:
        os.chdir(work)
        pathlib.Path("wall.json").write_text(json.dumps(WALL))
        failed = tap.run([test for test in TESTS if not sys.argv[3:] or test.__name__ in sys.argv[3:]])
    sys.exit(1 if failed else 0)


main()
