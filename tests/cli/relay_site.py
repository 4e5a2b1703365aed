"""Tests of relayed sessions share this: a store's server with workers, clients of bytes of their own, workers that lie."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
import urllib.parse

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "scripts"))

from swerve.session import Session, SessionError, _Socket  # noqa: E402

ROAD = {"lanes": [{"id": "east", "centre_line": [[0, 0], [500, 0]], "width_m": 3.5, "speed_limit_mps": 15}]}
WALL = {"id": "wall", "title": "a parked car ahead", "map": ROAD, "horizon_s": 30,
        "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]},
        "agents": [{"id": "parked", "kind": "car", "pose": {"lane": "east", "s_m": 450}, "behaviour": "static"}]}
TEXT, BINARY = 1, 2


def token(name, role, *options):
    """A token of the store, in a file of its own."""
    path = pathlib.Path(f"{name}.token")
    if not path.exists():
        subprocess.run([SWERVE, "token", "add", name, "--role", role, "--store", "jobs.db", "--output", str(path), *options], check=True,
                       stderr=subprocess.DEVNULL)
    return path.read_text().strip()


class Site:
    """A server with workers; `url` is the server's, `place` that with a driver's key."""

    def __init__(self, server_options=(), scheme_env=()):
        token("w", "worker", "--pool", "bulk")
        self.env = {**os.environ, "SWERVE_TOKEN_FILE": "w.token", **dict(scheme_env)}
        self.options = server_options
        self.processes = []
        self.listen = "127.0.0.1:0"
        self.serve()

    def serve(self):
        # A sanitizer keeps what was freed for a while; here its memory is looked at.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
        self.server = subprocess.Popen([SWERVE, "serve", "--store", "jobs.db", "--listen", self.listen, "--verbose", *self.options],
                                       text=True, env=env, stdout=subprocess.PIPE, stderr=open("server.log", "a"))
        self.processes.append(self.server)
        self.url = self.server.stdout.readline().strip()
        self.listen = self.url.split("//")[1]
        self.place = f"{self.url}/#{token('ann', 'driver', '--tenant', 'acme')}"

    def worker(self, *options, suite="wall.json"):
        """A worker, once it is attached, and its name."""
        process = subprocess.Popen([SWERVE, "session", "serve", suite, "--relay", self.url, "--save", "saved", *options], text=True,
                                   env=self.env, stdout=subprocess.PIPE, stderr=open("worker.log", "a"))
        self.processes.append(process)
        name = process.stdout.readline().split()[-1]
        self.wait(lambda: any(one["worker"] == name for one in self.workers()))
        return process, name

    def ask(self, path, role="ann", headers=(), key=None):
        """(code, body) of a GET."""
        place = urllib.parse.urlsplit(self.url)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        more = {"context": ssl.create_default_context(cafile="cert.pem")} if place.scheme == "https" else {}
        connection = kind(place.hostname, place.port, timeout=20, **more)
        bearer = {"Authorization": f"Bearer {key or token(role, role)}"} if role or key else {}
        connection.request("GET", path, headers={**bearer, **dict(headers)})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def workers(self):
        code, body = self.ask("/v1/sessions")
        assert code == 200, (code, body)
        return json.loads(body)["workers"]

    def wait(self, true, seconds=20):
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, (pathlib.Path("server.log").read_text(), pathlib.Path("worker.log").read_text())
            time.sleep(0.02)

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        codes = [process.wait(30) for process in self.processes]
        assert all(code in (0, -signal.SIGKILL) for code in codes), codes


@contextlib.contextmanager
def site(*server_options, **env):
    made = Site(server_options, env.items())
    try:
        yield made
    finally:
        made.stop()


def begun(place, **options):
    """A session that has begun: slowly, since a pool refuses whom a busy machine would make late; once the seat of whom it follows
    is free."""
    end = time.monotonic() + 20
    while True:
        session = None
        try:
            session = Session(place, **options)
            session.begin("wall", deadline_ms=1000, rate=0.25)
            return session
        except SessionError as error:
            if session is not None:
                session.close()
            if not any(full in str(error) for full in ("seats are taken", "every place")) or time.monotonic() > end:
                raise
        time.sleep(0.05)


def complaint(call, *arguments, **named):
    """The sentence with which it is refused."""
    try:
        call(*arguments, **named)
    except SessionError as error:
        return str(error)
    raise AssertionError((call, arguments))


def memory_kib(process):
    return int(next(line for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])


def dial(url, path, headers=()):
    """Code of the answer to a request for a WebSocket."""
    place = urllib.parse.urlsplit(url)
    with socket.create_connection((place.hostname, place.port), 20) as one:
        lines = [f"GET {path} HTTP/1.1", f"Host: {place.netloc}", "Upgrade: websocket", "Connection: Upgrade",
                 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13", *headers]
        one.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(one.recv(1 << 16).split()[1])


def closed(connection):
    """The code by which the server ends it."""
    try:
        while True:
            connection.receive()
    except SessionError as error:
        return int(str(error).rsplit("(", 1)[1].rstrip(")"))


def envelope(session, kind, text=b"", more=b""):
    return struct.pack("<QII", session, kind, len(text)) + text + more


def attach(here):
    """A worker's connection, of which nothing is said yet."""
    place = urllib.parse.urlsplit(here.url)
    made = _Socket.__new__(_Socket)
    made.socket = socket.create_connection((place.hostname, place.port), 20)
    made.left = b""
    made.socket.sendall((f"GET /v1/sessions/worker HTTP/1.1\r\nHost: {place.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         f"Authorization: Bearer {token('w', 'worker')}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                         "Sec-WebSocket-Version: 13\r\n\r\n").encode())
    while b"\r\n\r\n" not in made.left:
        made._more()
    made.left = made.left.split(b"\r\n\r\n", 1)[1]
    return made
