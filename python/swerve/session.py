"""A session at the wheel from a program, in real time or slower.

    from swerve.session import Session

    with Session("http://127.0.0.1:8090/#KEY") as session:    # as `swerve session serve` prints it
        frame = session.begin("cut_in")
        session.act(accel=1.0)
        session.go()
        while not frame["end"]:
            frame = session.frame()
            session.act(accel=-3.0 if frame["tick"] > 20 else 1.0)
        print(session.outcome()["verdict"], session.save("mine"))

docs/interactive.md has the messages and their members. Needs Python's library alone.
"""

import base64
import json
import mmap
import os
import socket
import ssl
import struct
import urllib.parse

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_CLOSED = {1001: "it stops", 1002: "a frame was wrong", 1003: "expected text, found bytes", 1008: "too much was left unread",
           1009: "a message was too long", 1012: "its worker has gone or has no place", 3000: "the token has expired or was revoked"}
CAMERA_BYTES = 3 * 64 * 96 * 3


class SessionError(RuntimeError):
    """Sentence of the server about a message that it does not obey, or of a connection that has ended."""


class _Socket:
    """The client's side of a WebSocket (RFC 6455): whole messages, no extension."""

    def __init__(self, host, port, path, timeout_s, secure=False):
        self.socket = socket.create_connection((host, port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure:
            context = ssl.create_default_context(cafile=os.environ.get("SWERVE_CA_FILE") or None)
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        self.left = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.left:
            self._more()
        head, self.left = self.left.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise SessionError(f"{host}:{port}: {self._refusal(head)}")

    @classmethod
    def _standing(cls, made):
        """One whose connection stands, without a handshake."""
        whole = cls.__new__(cls)
        whole.socket, whole.left = made, b""
        return whole

    def _refusal(self, head):
        """The sentence of an answer that is no upgrade: a store's server has it in JSON."""
        length = next((int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length:")), 0)
        text = self._take(length).decode(errors="replace").strip()
        try:
            return json.loads(text)["error"]["text"]
        except (ValueError, LookupError, TypeError):
            return text or head.splitlines()[0].decode(errors="replace")

    def _more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise SessionError("the server has ended the connection")
        self.left += data

    def _take(self, count):
        while len(self.left) < count:
            self._more()
        data, self.left = self.left[:count], self.left[count:]
        return data

    def send(self, opcode, data):
        mask = os.urandom(4)
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack(">H", size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | opcode]) + length + mask + masked)

    def receive(self):
        """(opcode, bytes) of the next message of text or bytes."""
        whole, kind = b"", 0
        while True:
            first, size = self._take(2)
            size &= 0x7f
            if size >= 126:  # the size itself comes behind
                size = struct.unpack(*((">H", self._take(2)) if size == 126 else (">Q", self._take(8))))[0]
            data = self._take(size)
            opcode = first & 15
            if opcode == _PING:
                self.send(_PONG, data)
            elif opcode == _CLOSE:
                code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
                raise SessionError(f"the server has ended the session: {_CLOSED.get(code, 'close code')} ({code})")
            elif opcode != _PONG:
                kind = opcode or kind
                whole += data
                if first & 0x80:
                    return kind, whole

    def close(self):
        self.socket.close()


class _Memory:
    """Pictures of a server on this machine (--hardware), in memory that it shares: slots as the exec planner protocol has them
    (schemas/planner.md), each behind a page that begins with two numbers."""

    GREETING = struct.Struct("<8sIIQ")
    NUMBERS = struct.Struct("<QQ")
    DIRECTORY = struct.Struct("<2IQ")
    SENSOR = struct.Struct("<48s4I2Q12I12qq4I")
    PAGE = 4096

    def __init__(self, connection):
        head, fds, _, _ = socket.recv_fds(connection, self.GREETING.size, 1)
        if not fds:
            raise SessionError("the server lets nobody in, or has no room: its log says why")
        try:
            magic, version, self.slots, self.slot_bytes = self.GREETING.unpack(head)
            if magic != b"swervehw" or version != 1:
                raise SessionError(f"expected the greeting of a server's --hardware, version 1, found {head!r}")
            self.bytes = mmap.mmap(fds[0], self.slots * self.slot_bytes, prot=mmap.PROT_READ)
        finally:
            os.close(fds[0])

    def cameras(self, slot, number):
        """The cameras of a frame, one behind the other; None: its slot has been written again."""
        first = slot * self.slot_bytes
        at = first + self.PAGE
        count, record_bytes, _ = self.DIRECTORY.unpack_from(self.bytes, at)
        parts = []
        for i in range(count):
            record = self.SENSOR.unpack_from(self.bytes, at + self.DIRECTORY.size + i * record_bytes)
            begin = at + record[5]  # one frame each
            parts.append(self.bytes[begin:begin + record[7]])
        return b"".join(parts) if self.NUMBERS.unpack_from(self.bytes, first) == (number, number) else None

    def close(self):
        self.bytes.close()


class Session:
    """One connection, one drive at a time. `cameras` are the bytes of the newest frame's cameras (left, front,
    right; 64 x 96 x 3), `windscreen` its JPEG, or b"" where the world shows none, or to hardware: its URL is unix:PATH, as of
    `swerve session serve --hardware PATH`. Of a store's server KEY is a
    driver's token, and `worker` may name the worker that drives. `moves`: how often another worker took the session up, which its
    own had kept when it went."""

    memory = None  # of a server on this machine

    def __init__(self, url, timeout_s=30, worker=None):
        if url.startswith("unix:"):
            self._connect_here(url[len("unix:"):], timeout_s)
        else:
            self._connect(url, timeout_s, worker)
        self.cameras = self.windscreen = b""
        self.name = ""
        self.moves = 0
        hello = self._want("hello")
        self.world = hello["world"]
        self.tiers = [(one["tier"], one["steps"]) for one in hello["tiers"]]
        self.scenarios = [one["id"] for one in hello["scenarios"]]

    def _connect_here(self, path, timeout_s):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.settimeout(timeout_s)
        try:
            made.connect(path)
            self.memory = _Memory(made)
        except BaseException:
            made.close()
            raise
        self.socket = _Socket._standing(made)

    def _connect(self, url, timeout_s, worker):
        place = urllib.parse.urlsplit(url)
        if place.scheme not in ("http", "https") or place.port is None or not place.fragment:
            raise ValueError(f"expected http(s)://ADDR:PORT/#KEY, with a proxy's path before # where there is one, found {url!r}")
        path = f"{place.path.rstrip('/')}/v1/sessions?key={place.fragment}" + (f"&worker={urllib.parse.quote(worker, safe='')}" if worker else "")
        self.socket = _Socket(place.hostname, place.port, path, timeout_s, place.scheme == "https")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()
        if self.memory:
            self.memory.close()

    def send(self, kind, **members):
        self.socket.send(_TEXT, json.dumps({"type": kind, **members}).encode())

    def _next(self):
        """The next message; pictures behind a frame are kept."""
        while True:
            kind, data = self.socket.receive()
            if kind == _BINARY:
                if not self.memory:
                    self.cameras, self.windscreen = data[:CAMERA_BYTES], data[CAMERA_BYTES:]
                continue
            message = json.loads(data)
            if self.memory and message["type"] == "frame":
                cameras = self.memory.cameras(message["slot"], message["number"])
                if cameras is None:
                    continue  # a newer one is on its way
                self.cameras = cameras
            if message["type"] == "error":
                raise SessionError(message["text"])
            self.moves += message["type"] == "moved"
            return message

    def _want(self, kind):
        while True:
            message = self._next()
            if message["type"] == kind:
                return message

    def begin(self, scenario, seed=0, rate=1.0, deadline_ms=None, steps_least=0, model_alone=False, hardware=False):
        """A new drive, paused at its first frame, which is returned. rate: of time, 0.1 to 1; steps_least: of a learned world's sampler, that
        each frame is to be made by; 0: one that is drawn will do. model_alone: none by the previous model, nor drawn.
        hardware: refused, unless the verdicts of every tier that is accepted are known to be those of all steps; who comes by
        unix:PATH is. deadline_ms: 100; of unix:PATH 40."""
        self.send("begin", scenario=scenario, seed=seed, **self._terms(rate, deadline_ms, steps_least, model_alone, hardware))
        return self._begun()

    @staticmethod
    def _terms(rate, deadline_ms, steps_least, model_alone, hardware):
        terms = {"rate": rate, "steps_least": steps_least, "model_alone": model_alone, "hardware": hardware}
        return terms if deadline_ms is None else {**terms, "deadline_ms": deadline_ms}

    def resume(self, name, rate=1.0, deadline_ms=None, steps_least=0, model_alone=False, hardware=False):
        """Takes up the session of that name (`name` of another Session), which this server or another one kept (--keep).
        Returns the frame at which it stands, paused: the tick after the last one that was driven."""
        self.send("begin", resume=name, **self._terms(rate, deadline_ms, steps_least, model_alone, hardware))
        return self._begun()

    def _begun(self):
        self.name = self._want("begun")["session"]
        return self.frame()

    def frame(self):
        return self._want("frame")

    def act(self, accel=None, steer=None):
        """Tells what ego does from the next tick on: m/s2 along its heading, rad of the front wheels, left positive.
        One that is not given holds."""
        given = {"accel": accel, "steer": steer}
        self.send("act", **{name: value for name, value in given.items() if value is not None})

    def go(self):
        self.send("go")

    def pause(self):
        """The frame at which it stands."""
        self.send("pause")
        return self._paused()

    def _paused(self):
        frame = self.frame()
        while not frame["paused"]:
            frame = self.frame()
        return frame

    def back(self, ticks=None, keep=False):
        """Goes back so many ticks, None: to the start, paused; with `keep` the line that is left stays. Returns the frame
        there."""
        self.send("back", keep=keep, **({} if ticks is None else {"ticks": ticks}))
        return self._paused()

    def outcome(self):
        """Of a line that has ended, with the members that `swerve show --json` prints; those of a store are empty."""
        self.send("outcome")
        return self._want("outcome")["outcome"]

    def ticks(self):
        """Histograms of what its ticks took, by tier: counts by bounds_ms, of wait, compute, overhead and slack."""
        self.send("ticks")
        return self._want("ticks")

    def save(self, name):
        """Writes the lines as a scenario where the server keeps them; returns path and command."""
        self.send("save", name=name)
        return self._want("saved")
