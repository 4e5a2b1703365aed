"""Swerve planner client: write a planner for `exec:python3 my_planner.py` in a few lines.

One file, standard library only; with numpy installed the grids and images are numpy arrays, without
it they are memoryviews. The protocol underneath is documented in schemas/planner.md.

    import swerve_planner

    class MyPlanner(swerve_planner.Planner):
        wants = swerve_planner.BEV
        def reset(self, episode):
            self.ticks = 0
        def act(self, observation):
            self.ticks += 1
            return -1.0, 0.0            # acceleration in m/s2, front-wheel angle in rad, left positive

    swerve_planner.run(MyPlanner)

One Planner object is one session (one rollout). A fork makes a deep copy of the object, so keep the
session's memory in its attributes and share nothing mutable between objects. For models that want
the whole batch at once, derive from BatchPlanner instead.

stdout carries the protocol: what print(), logging and exceptions write goes to stderr, and Swerve
keeps it with the outcome of the session during whose call it was written.
"""

import copy
import hashlib
import io
import logging
import mmap
import os
import pdb
import struct
import sys
import sysconfig
import traceback

try:
    import numpy
except ImportError:
    numpy = None

BEV = 1
CAMERAS = 2

PROTOCOL_VERSION = 1
LABELS, LOADED = 1, 2  # features of a worker
MAGIC = 0x4C505753
HELLO, WELCOME, RESET, DONE, ACT, ACTIONS, FORK, END, ERROR, BYE = range(1, 11)

_HEADER = struct.Struct("<4I")
_HELLO = struct.Struct("<16I4d15d")
_WELCOME = struct.Struct("<4I")
_RESET = struct.Struct("<2IQ4d4I")
_LOG_POINT = struct.Struct("<5d")
_ACT = struct.Struct("<2I")
_QUERY = struct.Struct("<2I5q8d2I")
_ROUTE_POINT = struct.Struct("<7f")
_ANSWER = struct.Struct("<2I2d")
_PAIR = struct.Struct("<2I")


class Record:
    """A plain bag of attributes with a readable repr."""

    def __init__(self, **members):
        self.__dict__.update(members)

    def __repr__(self):
        members = ", ".join(f"{key}={value!r}" for key, value in self.__dict__.items())
        return f"{type(self).__name__}({members})"


class Episode(Record):
    """What is known when a rollout begins: session, horizon_ticks, seed, tick_s, scenario_id, prompt,
    ego_length_m, ego_width_m, ego_wheelbase_m, log (list of LogPoint), world (see World)."""


class LogPoint(Record):
    """t_s, x_m, y_m, heading_rad, speed_mps of a logged or expert drive, world frame."""


class RoutePoint(Record):
    """x_m, y_m (ego frame), speed_limit_mps (0: none posted), left_m, right_m, adjacent_left_m,
    adjacent_right_m."""


class World(Record):
    """Constants of the hello message: session_count, tick_deadline_ms, route_step_m, bev_shape
    (channels, rows, cols), bev_cell_m, bev_x_min_m, bev_y_min_m, camera_shape (rows, cols, 3),
    cameras (three Record with x_m, y_m, z_m, yaw_rad, hfov_rad)."""


class Observation(Record):
    """One tick of one session: session, tick, time_ns, bev_time_ns, camera_time_ns (3), x_m, y_m,
    heading_rad, speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad, route (list of
    RoutePoint), bev and camera (3).

    bev is [channel][row][col] of bytes (occupancy, unseen, drivable, marking), camera[i] is
    [row][col][3]; None where not asked for. They are read-only views of shared memory that the next
    tick overwrites: copy what you want to keep.
    """


class Planner:
    """One session. Override act(), and reset() and end() where needed."""

    wants = 0
    name = "python"
    files = ()  # what it reads besides modules (weights, tables): part of the planner's identity

    def reset(self, episode):
        """A rollout begins."""

    def act(self, observation):
        """Returns (accel_mps2, steer_rad). An exception fails this session alone."""
        raise NotImplementedError

    def end(self):
        """The rollout is over."""


class BatchPlanner:
    """All sessions in one object; session numbers name them."""

    wants = 0
    name = "python"
    files = ()  # as in Planner

    def reset(self, session, episode):
        """A rollout begins in `session`."""

    def act(self, observations):
        """Returns one (accel_mps2, steer_rad) per observation, in order; None fails that session."""
        raise NotImplementedError

    def fork(self, source, target):
        """Makes `target` an independent copy of `source`. Required if sessions hold memory."""
        raise NotImplementedError("this planner does not support forks")

    def end(self, session):
        """The rollout in `session` is over."""


class _Labelled(io.TextIOWrapper):
    """Text to stderr, each line with the number of the session that is spoken for, which Swerve
    takes off again (schemas/planner.md)."""

    def __init__(self, fd):
        binary = io.BufferedWriter(io.FileIO(fd, "w", closefd=False))
        super().__init__(binary, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self.session = None
        self.fresh = True  # the next character begins a line

    def write(self, text):
        lines = text.split("\n")
        for line in lines[:-1]:
            super().write(self._label() + line + "\n")
            self.fresh = True
        if lines[-1]:
            super().write(self._label() + lines[-1])
            self.fresh = False
        return len(text)

    def _label(self):
        return f"\x1e{self.session} " if self.fresh and self.session is not None else ""

    def speak(self, session):
        """From here on lines are this session's; None: nobody's."""
        if not self.fresh:
            self.write("\n")
        self.flush()
        self.session = session


_said = None  # the _Labelled of this process


def _speak(session):
    if _said is not None and _said.session != session:
        _said.speak(session)


def _label_output():
    """Takes over stdout, stderr and the log handlers that were made for them."""
    global _said
    before = (sys.stdout, sys.stderr)
    _said = sys.stdout = sys.stderr = _Labelled(2)
    loggers = [logging.getLogger()]
    loggers += [each for each in logging.Logger.manager.loggerDict.values() if hasattr(each, "handlers")]
    for logger in loggers:
        for handler in logger.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream in before:
                handler.setStream(_said)


def _tell(errors, observation, text):
    """To stderr, and there before the answer is: Swerve keeps it with the session's outcome."""
    text = f"tick {observation.tick}: {text.rstrip()}"
    if errors is not None:
        text = "\n".join(f"\x1e{observation.session} {line}" for line in text.split("\n"))
    elif _said is None:
        text = f"session {observation.session}, {text}"
    _speak(observation.session)
    print(text, file=errors or sys.stderr, flush=True)


class _Sessions(BatchPlanner):
    """Presents one Planner object per session as a BatchPlanner."""

    def __init__(self, factory, errors=None):
        self.factory = factory
        self.errors = errors  # a text stream; None: sys.stderr
        self.told = None  # the last exception that stands in full on stderr
        self.wants = factory.wants
        self.name = factory.name
        self.files = getattr(factory, "files", ())
        self.planners = {}

    def reset(self, session, episode):
        _speak(session)
        self.planners[session] = self.factory()
        self.planners[session].reset(episode)

    def act(self, observations):
        answers = []
        for observation in observations:
            _speak(observation.session)
            try:
                answers.append(self.planners[observation.session].act(observation))
            except Exception as problem:
                # Many sessions often fail alike; what is kept of stderr has room for few tracebacks.
                trace = traceback.format_exc()
                if _terminal():
                    print(trace)
                    pdb.post_mortem(problem.__traceback__)
                again = f"act() raised the same: {type(problem).__name__}: {problem}"
                known = _said is None and self.errors is None and trace == self.told
                _tell(self.errors, observation, again if known else "act() raised\n" + trace)
                self.told = trace
                answers.append(None)
        return answers

    def fork(self, source, target):
        _speak(target)
        self.planners[target] = copy.deepcopy(self.planners[source])

    def end(self, session):
        planner = self.planners.pop(session, None)
        _speak(None)  # the session's result is complete
        if planner is not None:
            planner.end()


def _own_modules():
    """{name: file} of the modules that were imported and belong to no installed Python or package."""
    installed = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    installed |= {sys.prefix, sys.base_prefix} - {"/usr", "/"}
    roots = tuple(os.path.realpath(path) + os.sep for path in installed if path)
    found = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        # The script itself stands on the command line; this client is a part of Swerve.
        script = name == "__main__" and getattr(module, "__spec__", None) is None
        if not path or script or name == __name__:
            continue
        path = os.path.realpath(path)
        if path.startswith(roots) or "/dist-packages/" in path or "/site-packages/" in path:
            continue
        found[name] = path
    return found


def _file_hash(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _loaded(files):
    """SHA-256 over names and contents of modules and files; "" for none. Places do not count."""
    lines = [f"module {name} {_file_hash(path)}" for name, path in _own_modules().items()]
    lines += [f"file {os.path.basename(path)} {_file_hash(path)}" for path in files]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest() if lines else ""


class _Connection:
    """Frames on two descriptors, which it owns."""

    def __init__(self, source, sink):
        self.input = os.fdopen(source, "rb", buffering=1 << 16)
        self.output = sink

    @classmethod
    def of_process(cls):
        """On stdin and stdout, which are this process's own no longer."""
        connection = cls(os.dup(0), os.dup(1))
        # From here on whatever prints to stdout, C libraries included, goes to stderr.
        os.dup2(2, 1)
        # Nor may anybody read our frames: not breakpoint() either, which ends the planner. Under
        # `swerve debug` the terminal is ours.
        terminal = os.open("/dev/tty" if _terminal() else os.devnull, os.O_RDWR)
        os.dup2(terminal, 0)
        if _terminal():
            os.dup2(terminal, 1)
        os.close(terminal)
        # Not a terminal, so Python would keep lines back; a planner that is killed never flushes.
        sys.stdout.reconfigure(line_buffering=True)
        return connection

    def close(self):
        self.input.close()
        os.close(self.output)

    def read(self):
        """(type, sequence, payload), or None at the end of input."""
        header = self.input.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        magic, kind, size, sequence = _HEADER.unpack(header)
        if magic != MAGIC:
            raise RuntimeError(f"expected a frame, found magic {magic:#x}")
        payload = self.input.read(size)
        if len(payload) < size:
            return None
        return kind, sequence, payload

    def write(self, kind, sequence, payload=b""):
        data = memoryview(_HEADER.pack(MAGIC, kind, len(payload), sequence) + payload)
        while data:
            data = data[os.write(self.output, data) :]


def _terminal():
    """Whether somebody debugs this planner at a terminal."""
    if os.environ.get("SWERVE_DEBUG") != "1":
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


class _Client:
    def __init__(self, planner, connection, memory_fd, errors=None):
        self.planner = planner
        self.connection = connection
        self.memory_fd = memory_fd  # of the shared memory, borrowed
        self.errors = errors  # a text stream; None: sys.stderr
        self.world = None
        self.views = {}
        self.memory = None
        self.modules = 0  # how many there were when what is loaded was last looked at
        self.known = set()  # those that count as ours

    # ---- decoding ----

    def hello(self, payload):
        fields = _HELLO.unpack_from(payload)
        if fields[0] != PROTOCOL_VERSION:
            raise RuntimeError(f"expected protocol version {PROTOCOL_VERSION}, found {fields[0]}")
        names = ("x_m", "y_m", "z_m", "yaw_rad", "hfov_rad")
        cameras = [Record(**dict(zip(names, fields[20 + 5 * i : 25 + 5 * i]))) for i in range(3)]
        self.features = fields[14]
        self.slot_bytes = fields[2]
        self.bev_offset = fields[3]
        self.camera_offset = fields[4:7]
        self.world = World(
            session_count=fields[1],
            bev_shape=fields[7:10],
            camera_shape=(fields[10], fields[11], 3),
            tick_deadline_ms=fields[12],
            route_points_max=fields[13],
            route_step_m=fields[16],
            bev_cell_m=fields[17],
            bev_x_min_m=fields[18],
            bev_y_min_m=fields[19],
            cameras=cameras,
        )
        if self.planner.wants:
            size = self.slot_bytes * self.world.session_count
            self.memory = mmap.mmap(self.memory_fd, size, access=mmap.ACCESS_READ)

    def view(self, offset, shape):
        """A read-only array over shared memory; made once per place."""
        found = self.views.get(offset)
        if found is None:
            size = shape[0] * shape[1] * shape[2]
            if numpy is not None:
                found = numpy.frombuffer(self.memory, numpy.uint8, size, offset).reshape(shape)
            else:
                found = memoryview(self.memory)[offset : offset + size].cast("B", shape)
            self.views[offset] = found
        return found

    def episode(self, payload):
        fields = _RESET.unpack_from(payload)
        session, horizon, seed, tick_s, length, width, wheelbase = fields[:7]
        log_count, id_bytes, prompt_bytes = fields[7:10]
        at = _RESET.size
        names = ("t_s", "x_m", "y_m", "heading_rad", "speed_mps")
        log = [
            LogPoint(**dict(zip(names, _LOG_POINT.unpack_from(payload, at + i * _LOG_POINT.size))))
            for i in range(log_count)
        ]
        at += log_count * _LOG_POINT.size
        return Episode(
            session=session,
            horizon_ticks=horizon,
            seed=seed,
            tick_s=tick_s,
            ego_length_m=length,
            ego_width_m=width,
            ego_wheelbase_m=wheelbase,
            log=log,
            scenario_id=payload[at : at + id_bytes].decode("utf-8", "replace"),
            prompt=payload[at + id_bytes : at + id_bytes + prompt_bytes].decode("utf-8", "replace"),
            world=self.world,
        )

    def observation(self, payload, at):
        fields = _QUERY.unpack_from(payload, at)
        session, route_count, present = fields[0], fields[15], fields[16]
        names = ("x_m", "y_m", "speed_limit_mps", "left_m", "right_m")
        names += ("adjacent_left_m", "adjacent_right_m")
        start = at + _QUERY.size
        stop = start + route_count * _ROUTE_POINT.size
        route = [
            RoutePoint(**dict(zip(names, point)))
            for point in _ROUTE_POINT.iter_unpack(payload[start:stop])
        ]
        base = session * self.slot_bytes
        bev = self.view(base + self.bev_offset, self.world.bev_shape) if present & 1 else None
        camera = [
            self.view(base + self.camera_offset[i], self.world.camera_shape)
            if present & (2 << i)
            else None
            for i in range(3)
        ]
        return Observation(
            session=session,
            tick=fields[1],
            time_ns=fields[2],
            bev_time_ns=fields[3],
            camera_time_ns=fields[4:7],
            x_m=fields[7],
            y_m=fields[8],
            heading_rad=fields[9],
            speed_mps=fields[10],
            accel_mps2=fields[11],
            lat_accel_mps2=fields[12],
            yaw_rate_rps=fields[13],
            steer_rad=fields[14],
            route=route,
            bev=bev,
            camera=camera,
        )

    # ---- messages ----

    def welcome(self, payload):
        self.hello(payload)
        loaded = b""
        if self.features & LABELS and self.errors is None:
            _label_output()
        if self.features & LOADED and self.errors is None:
            loaded = _loaded(getattr(self.planner, "files", ())).encode()
            self.known, self.modules = set(_own_modules()), len(sys.modules)
        name = self.planner.name.encode("ascii", "replace")[:63]
        head = _WELCOME.pack(PROTOCOL_VERSION, self.planner.wants, len(name), len(loaded))
        return head + name + loaded

    def note_late_modules(self):
        """Says so where a module comes too late to be part of the planner's identity."""
        if self.modules == 0 or len(sys.modules) == self.modules:
            return
        self.modules = len(sys.modules)
        late = sorted(set(_own_modules()) - self.known)
        self.known.update(late)
        for name in late:
            print(f"swerve_planner: module {name} was imported after run(): a change in it does not "
                  "make another planner; import it before", file=sys.stderr)

    def act(self, payload):
        count, record_bytes = _ACT.unpack_from(payload)
        observations = [
            self.observation(payload, _ACT.size + i * record_bytes) for i in range(count)
        ]
        _speak(observations[0].session if count == 1 else None)
        answers = self.planner.act(observations)
        self.note_late_modules()
        if len(answers) != count:
            raise RuntimeError(f"act() gave {len(answers)} answers to {count} observations")
        parts = [_ACT.pack(count, _ANSWER.size)]
        for observation, answer in zip(observations, answers):
            try:
                accel, steer = answer
                parts.append(_ANSWER.pack(observation.session, 0, float(accel), float(steer)))
            except (TypeError, ValueError):
                if answer is not None:
                    _tell(self.errors, observation, f"expected (accel, steer), found {answer!r}")
                parts.append(_ANSWER.pack(observation.session, 1, 0.0, 0.0))
        return b"".join(parts)

    def serve(self):
        """Answers questions until bye or the end of input."""
        while True:
            frame = self.connection.read()
            if frame is None or frame[0] == BYE:
                return
            kind, sequence, payload = frame
            try:
                answer = self.handle(kind, payload)
                _speak(None)  # and what was written is there before the answer is
            except Exception as problem:
                traceback.print_exc(file=self.errors)
                (self.errors or sys.stderr).flush()
                if kind != END:
                    text = f"{type(problem).__name__}: {problem}".encode()[:4000]
                    self.connection.write(ERROR, sequence, text)
                continue
            if answer is not None:
                self.connection.write(answer[0], sequence, answer[1])

    def handle(self, kind, payload):
        if kind == ACT:
            return ACTIONS, self.act(payload)
        if kind == HELLO:
            return WELCOME, self.welcome(payload)
        if kind == RESET:
            episode = self.episode(payload)
            _speak(episode.session)
            self.planner.reset(episode.session, episode)
            return DONE, b""
        if kind == FORK:
            source, target = _PAIR.unpack_from(payload)
            _speak(target)
            self.planner.fork(source, target)
            return DONE, b""
        if kind == END:
            self.planner.end(_PAIR.unpack_from(payload)[0])
            return None
        raise RuntimeError(f"unknown frame type {kind}")


def run(planner):
    """Serves a Planner class (or factory with `wants` and `name`), or a BatchPlanner object, until
    Swerve ends the process."""
    if "SWERVE_SHM_FD" not in os.environ:
        sys.exit(f"{sys.argv[0]}: this is a planner; start it with --planner 'exec:...'")
    connection = _Connection.of_process()
    _Client(_batched(planner), connection, int(os.environ["SWERVE_SHM_FD"])).serve()


def serve(planner, source, sink, memory_fd, errors):
    """Does what run() does on the descriptors of some other process, until they are closed there; they
    are this function's to close. `errors` is a text stream that is told of exceptions."""
    connection = _Connection(source, sink)
    try:
        _Client(_batched(planner, errors), connection, memory_fd, errors).serve()
    finally:
        connection.close()
        os.close(memory_fd)


def _batched(planner, errors=None):
    if isinstance(planner, type) and issubclass(planner, BatchPlanner):
        return planner()
    return planner if isinstance(planner, BatchPlanner) else _Sessions(planner, errors)
