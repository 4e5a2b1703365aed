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

Version 3: with `wants = OBJECTS | MAP` an observation has `objects` and an episode has a `map`, as lists of
records, and with numpy as arrays per kind (`observation.object_arrays`, `episode.map.lanes_array`); act() may
return a trajectory (a list of Point, or an array of rows t_s, x_m, y_m, heading_rad, speed_mps) instead.

Version 4: with `sensors = ["front", ("left", "jpeg:90"), "bev"]` an observation has `sensors`, by their ids in the
rig of the run (`swerve run --rig`), or in the planner's own, which `rig` names:

    class Eyes(swerve_planner.Planner):
        rig = "surround.json"
        sensors = ["front"]
        def act(self, observation):
            image = observation.sensors["front"].frame      # [height][width][3]

A camera of 30 Hz has three `frames` a tick, each with its `time_ns`; a shutter that rolls has the time of each row
(`row_times_ns()`); a lidar's frame is an array of points.

One Planner object is one session (one rollout). A fork makes a deep copy of the object, so keep the
session's memory in its attributes and share nothing mutable between objects. For models that want
the whole batch at once, derive from BatchPlanner instead.

stdout carries the protocol: what print(), logging and exceptions write goes to stderr, and Swerve
keeps it with the outcome of the session during whose call it was written.
"""

import copy
import hashlib
import io
import json
import mmap
import os
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
OBJECTS = 16  # a list of what is around ego, where the world has one
SEEN = 32  # with OBJECTS: only what ego's sensors see
MAP = 64  # once per episode
SIGNALS = 128  # what the map's signals show
CONTROLS = 256  # the rows of a log of the controls challenge, once per episode

LQR = 0  # nuPlan's tracker, with its parameters
PURSUIT = 1

OBJECT_KINDS = ("car", "van", "truck", "bus", "motorcycle", "cyclist", "pedestrian", "animal", "object")
OBJECT_SOURCES = ("none", "true", "seen", "generated")
LANE_KINDS = ("driving", "shoulder", "cycle", "sidewalk")
MARKINGS = ("none", "dashed", "solid")
LIGHTS = ("off", "red", "red_yellow", "green", "yellow", "stop_sign", "yield_sign", "priority_sign", "give_way",
          "give_way_right", "give_way_oncoming")
SIGNS = ("none", "stop", "yield", "priority", "give_way", "give_way_right", "give_way_oncoming")
INTERSECTION, LEFT_OPPOSITE, RIGHT_OPPOSITE, ON_ROUTE = 1, 2, 4, 8  # flags of a lane
TRAJECTORY_POINTS = 80

PROTOCOL_VERSION = 1  # that every hello begins with
PROTOCOL_PLANS = 3  # with objects, maps and trajectories
PROTOCOL_SENSORS = 4  # with the sensors of a rig
LABELS, LOADED, RIG = 1, 2, 4  # features of a worker
RGB8, JPEG, GRID, POINTS = range(4)  # formats of frames
SHUTTERS = ("none", "top", "bottom", "left", "right")
MAGIC = 0x4C505753
HELLO, WELCOME, RESET, DONE, ACT, ACTIONS, FORK, END, ERROR, BYE = range(1, 11)

_HEADER = struct.Struct("<4I")
_HELLO = struct.Struct("<16I4d15d")
_WELCOME = struct.Struct("<2H3I")
_RESET = struct.Struct("<2IQ4d4I")
_LOG_POINT = struct.Struct("<5d")
_CONTROLS_ROW = struct.Struct("<4d")
_ACT = struct.Struct("<2I")
_QUERY = struct.Struct("<2I5q8d2I")
_ROUTE_POINT = struct.Struct("<7f")
_ANSWER = struct.Struct("<2I2d")
_PAIR = struct.Struct("<2I")
_MAP = struct.Struct("<8I3d2I")
_AROUND = struct.Struct("<4Iq")
_PLAN = struct.Struct("<2I2d2I")
_POINT = struct.Struct("<5d")
_DIRECTORY = struct.Struct("<2IQ")
_SENSOR = struct.Struct("<48s4I2Q12I12qq4I")

# Records of version 3 as (name, format) pairs in their order: struct reads them one by one, numpy whole.
_OBJECT = (("id", "I"), ("kind", "I")) + tuple((name, "d") for name in (
    "length_m", "width_m", "height_m", "x_m", "y_m", "heading_rad", "vx_mps", "vy_mps", "ax_mps2", "ay_mps2",
    "yaw_rate_rps"))
_LANE = (("id", "64s"),) + tuple((name, "I") for name in (
    "kind", "flags", "first_point", "point_count", "first_successor", "successor_count", "first_predecessor",
    "predecessor_count")) + (("left", "i"), ("right", "i"), ("left_marking", "I"), ("right_marking", "I"),
                             ("speed_limit_mps", "d"))
_MAP_POINT = tuple((name, "d") for name in ("x_m", "y_m", "left_x_m", "left_y_m", "right_x_m", "right_y_m"))
_AREA = tuple((name, "I") for name in ("kind", "first_vertex", "vertex_count", "reserved"))
_VERTEX = (("x_m", "d"), ("y_m", "d"))
_STOP_LINE = tuple((name, "d") for name in ("left_x_m", "left_y_m", "right_x_m", "right_y_m")) + (
    ("lane", "i"), ("signal", "i"))
_SIGNAL = (("id", "64s"), ("first_lane", "I"), ("lane_count", "I"), ("first_stop_line", "I"), ("sign", "I"))
_SIGNAL_STATE = (("signal", "I"), ("light", "I"), ("stop_ahead_m", "d"))
_LINK = (("lane", "I"),)
_RETURN = (("x_m", "f"), ("y_m", "f"), ("z_m", "f"), ("intensity", "B"), ("ring", "B"), ("time_2us", "H"))


class Record:
    """A plain bag of attributes with a readable repr."""

    def __init__(self, **members):
        self.__dict__.update(members)

    def __repr__(self):
        members = ", ".join(f"{key}={value!r}" for key, value in self.__dict__.items())
        return f"{type(self).__name__}({members})"


class Episode(Record):
    """Facts known when a rollout begins: session, horizon_ticks, seed, tick_s, scenario_id, prompt,
    ego_length_m, ego_width_m, ego_wheelbase_m, log (list of LogPoint), world (see World), map (see Map; None
    where it was not asked for), controls (where CONTROLS was asked for and the scenario has such a log: a tuple
    target_mps2, roll_lataccel_mps2, v_ego_mps, a_ego_mps2 for each tick, and for some beyond the last; else empty)."""


class LogPoint(Record):
    """t_s, x_m, y_m, heading_rad, speed_mps of a logged or expert drive, world frame."""


class RoutePoint(Record):
    """x_m, y_m (ego frame), speed_limit_mps (0: none posted), left_m, right_m, adjacent_left_m,
    adjacent_right_m."""


class Object(Record):
    """Something around ego: id, kind (of OBJECT_KINDS), length_m, width_m, height_m, x_m, y_m, heading_rad (box
    centre, world frame), vx_mps, vy_mps, ax_mps2, ay_mps2, yaw_rate_rps."""


class Lane(Record):
    """index, id, kind (of LANE_KINDS), flags, centre, left_border, right_border (lists of (x_m, y_m), in the
    direction of travel, world frame), successors, predecessors (lane indices), left, right (neighbours, None:
    none), left_marking, right_marking (of MARKINGS), speed_limit_mps (0: none posted), intersection, on_route."""


class Map:
    """The map of an episode. As records: lanes (list of Lane), route (lane indices that ego is to drive),
    crossings, drivable (lists of polygons), stop_lines (left_x_m, left_y_m, right_x_m, right_y_m, lane, signal) and
    signals (index, id, lanes, stop_lines, sign: of SIGNS). As arrays, with numpy: lanes_array, points_array,
    links_array, areas_array, vertices_array, as schemas/planner.md describes them. goal is (x_m, y_m, radius_m)
    or None. It does not change: forks share it."""

    def __init__(self, payload):
        counts = _MAP.unpack_from(payload)
        layouts = (_LANE, _MAP_POINT, _LINK, _AREA, _VERTEX, _STOP_LINE, _SIGNAL, _LINK)
        at = _MAP.size
        self._parts = []
        for count, layout in zip(counts, layouts):
            self._parts.append((layout, count, payload, at))
            at += (count * _size(layout) + 7) // 8 * 8
        self.goal = counts[8:11] if counts[10] > 0 else None
        self.route = [record.lane for record in _records(Record, *self._parts[7])]
        self._lanes = None

    def __deepcopy__(self, memo):
        return self

    lanes_array = property(lambda self: _array(*self._parts[0]))
    points_array = property(lambda self: _array(*self._parts[1]))
    links_array = property(lambda self: _array(*self._parts[2]))
    areas_array = property(lambda self: _array(*self._parts[3]))
    vertices_array = property(lambda self: _array(*self._parts[4]))
    stop_lines = property(lambda self: _records(Record, *self._parts[5]))
    crossings = property(lambda self: self._polygons(0))
    drivable = property(lambda self: self._polygons(1))

    @property
    def lanes(self):
        if self._lanes is None:
            points = _records(Record, *self._parts[1])
            links = [record.lane for record in _records(Record, *self._parts[2])]
            self._lanes = [
                _lane(index, record, points, links) for index, record in enumerate(_records(Lane, *self._parts[0]))
            ]
        return self._lanes

    @property
    def signals(self):
        links = [record.lane for record in _records(Record, *self._parts[2])]
        lines = self.stop_lines
        found = _records(Record, *self._parts[6])
        for index, signal in enumerate(found):
            signal.index = index
            signal.sign = SIGNS[signal.sign]
            signal.id = signal.id.partition(b"\0")[0].decode("utf-8", "replace")
            signal.lanes = links[signal.first_lane : signal.first_lane + signal.lane_count]
            signal.stop_lines = lines[signal.first_stop_line : signal.first_stop_line + signal.lane_count]
        return found

    def _polygons(self, kind):
        vertices = [(record.x_m, record.y_m) for record in _records(Record, *self._parts[4])]
        return [
            vertices[area.first_vertex : area.first_vertex + area.vertex_count]
            for area in _records(Record, *self._parts[3])
            if area.kind == kind
        ]


def _size(layout):
    return struct.calcsize("<" + "".join(form for _, form in layout))


def _records(kind, layout, count, payload, at):
    reader = struct.Struct("<" + "".join(form for _, form in layout))
    names = [name for name, _ in layout]
    return [
        kind(**dict(zip(names, values))) for values in reader.iter_unpack(payload[at : at + count * reader.size])
    ]


def _array(layout, count, payload, at):
    """The same as one structured array, a view of the frame."""
    if numpy is None:
        raise RuntimeError("arrays need numpy, which is not installed")
    forms = {"I": "<u4", "i": "<i4", "d": "<f8", "q": "<i8", "64s": "S64", "f": "<f4", "B": "u1", "H": "<u2"}
    return numpy.frombuffer(payload, [(name, forms[form]) for name, form in layout], count, at)


def _lane(index, lane, points, links):
    """Resolves what a lane's record points to."""
    own = points[lane.first_point : lane.first_point + lane.point_count]
    lane.index = index
    lane.id = lane.id.partition(b"\0")[0].decode("utf-8", "replace")
    lane.centre = [(point.x_m, point.y_m) for point in own]
    lane.left_border = [(point.left_x_m, point.left_y_m) for point in own]
    lane.right_border = [(point.right_x_m, point.right_y_m) for point in own]
    lane.successors = links[lane.first_successor : lane.first_successor + lane.successor_count]
    lane.predecessors = links[lane.first_predecessor : lane.first_predecessor + lane.predecessor_count]
    lane.kind = LANE_KINDS[lane.kind]
    lane.left_marking, lane.right_marking = MARKINGS[lane.left_marking], MARKINGS[lane.right_marking]
    lane.left = lane.left if lane.left >= 0 else None
    lane.right = lane.right if lane.right >= 0 else None
    lane.intersection = bool(lane.flags & INTERSECTION)
    lane.on_route = bool(lane.flags & ON_ROUTE)
    return lane


class Point(Record):
    """Of a trajectory: t_s (from this tick on), x_m, y_m, heading_rad (ego's box centre, world frame), speed_mps."""

    def __init__(self, t_s, x_m, y_m, heading_rad, speed_mps):
        super().__init__(t_s=t_s, x_m=x_m, y_m=y_m, heading_rad=heading_rad, speed_mps=speed_mps)

    def __iter__(self):
        return iter((self.t_s, self.x_m, self.y_m, self.heading_rad, self.speed_mps))


class World(Record):
    """Constants of the hello message: session_count, tick_deadline_ms, route_step_m, bev_shape
    (channels, rows, cols), bev_cell_m, bev_x_min_m, bev_y_min_m, camera_shape (rows, cols, 3),
    cameras (three Record with x_m, y_m, z_m, yaw_rad, hfov_rad), rig (the rig.json of the sensors, a dict; None: the
    built-in rig, whose cameras these are)."""


class Sensor(Record):
    """Frames that one sensor of a rig has taken since the tick before: id, width, height, frames (the newest last; at a
    drive's first tick there is one) and time_ns (of each, when its last row was taken; -1: the sensor has been dark from
    the start, and shows black). A frame is [height][width][3] of bytes, RGB; of the grid "bev" [channel][row][col]; of
    one packed as JPEG the bytes of a JPEG file. shutter_ns is the time from the first row to the last, shutter the side
    that is first (of SHUTTERS). A lidar's frame is a turn, of `width` azimuths and `height` rings, which ends at its
    time: a structured array of x_m, y_m, z_m (the lidar's own frame at the point's moment), intensity (of 255), ring and
    time_2us (since the turn began), or without numpy a list of records of these. Frames are views of shared
    memory that the next tick overwrites."""

    frame = property(lambda self: self.frames[-1])

    def row_times_ns(self, index=-1):
        """When each row (column, where the shutter rolls from a side) of a frame was taken."""
        size = self.width if self.shutter in ("left", "right") else self.height
        steps = [self.shutter_ns * i // max(size - 1, 1) for i in range(size)]
        if self.shutter in ("top", "left"):
            steps.reverse()
        times = [self.time_ns[index] - step for step in steps]
        return times if numpy is None else numpy.array(times, dtype=numpy.int64)

    def point_times_ns(self, index=-1):
        """When each point of a lidar's turn was taken."""
        began_ns = self.time_ns[index] - self.shutter_ns
        if numpy is None:
            return [began_ns + 2000 * point.time_2us for point in self.frames[index]]
        return began_ns + 2000 * self.frames[index]["time_2us"].astype(numpy.int64)


class Observation(Record):
    """One tick of one session: session, tick, time_ns, bev_time_ns, camera_time_ns (3), x_m, y_m,
    heading_rad, speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad, route (list of
    RoutePoint), bev and camera (3). Where sensors were chosen: sensors (Sensor by id). Where objects were asked for:
    objects (list of Object), objects_source (of OBJECT_SOURCES), objects_time_ns, signals (signal: index in the map;
    light: of LIGHTS; stop_ahead_m: from ego's front along its route to the stop line, negative: none). history:
    earlier observations of this session, oldest first, as many as the planner's history_ticks, without pictures.

    bev is [channel][row][col] of bytes (occupancy, unseen, drivable, marking), camera[i] is
    [row][col][3]; None where not asked for. They are read-only views of shared memory that the next
    tick overwrites: copy what you want to keep.
    """

    history = ()
    sensors = {}
    objects_source = "none"
    _around = None

    @property
    def objects(self):
        if self._around is None:
            return []
        found = _records(Object, _OBJECT, *self._around)
        for one in found:
            one.kind = OBJECT_KINDS[one.kind]
        return found

    @property
    def object_array(self):
        """All objects as one structured array; kind is an index of OBJECT_KINDS."""
        return _array(_OBJECT, *(self._around or (0, b"", 0)))

    @property
    def object_arrays(self):
        """An array for each kind of object, by its name."""
        everything = self.object_array
        return {name: everything[everything["kind"] == kind] for kind, name in enumerate(OBJECT_KINDS)}

    def without_pictures(self):
        """For the history: pictures are views of memory that the next tick overwrites."""
        kept = copy.copy(self)
        kept.bev, kept.camera, kept.sensors, kept.history = None, [None] * 3, {}, ()
        return kept


class Planner:
    """One session. Override act(), and reset() and end() where needed."""

    wants = 0
    name = "python"
    files = ()  # what it reads besides modules (weights, tables): part of the planner's identity
    history_ticks = 0  # of earlier observations, at most 50
    tracker = LQR  # of its trajectories
    sensors = ()  # ids, or pairs of an id and "rgb" or "jpeg:1" to "jpeg:100"
    rig = None  # the file, or the dict, that they are of, in place of the rig of the run

    def reset(self, episode):
        """A rollout begins."""

    def act(self, observation):
        """Returns (accel_mps2, steer_rad), or a trajectory: 1 to 80 rows (t_s, x_m, y_m, heading_rad, speed_mps).
        An exception fails this session alone."""
        raise NotImplementedError

    def end(self):
        """The rollout is over."""


class BatchPlanner:
    """All sessions in one object; session numbers name them."""

    wants = 0
    name = "python"
    files = ()  # as in Planner
    history_ticks = 0  # of earlier observations, at most 50
    tracker = LQR  # of its trajectories
    sensors = ()  # as in Planner
    rig = None

    def reset(self, session, episode):
        """A rollout begins in `session`."""

    def act(self, observations):
        """Returns one (accel_mps2, steer_rad), or trajectory, per observation, in order; None fails that
        session."""
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
    logging = sys.modules.get("logging")  # with pdb half of a start's time: who imports it later finds the streams above
    if logging is None:
        return
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
        self.history_ticks = getattr(factory, "history_ticks", 0)
        self.tracker = getattr(factory, "tracker", LQR)
        self.sensors = getattr(factory, "sensors", ())
        self.rig = getattr(factory, "rig", None)
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
                if answers[-1] is None:  # a missing `return`, mostly
                    _tell(self.errors, observation, "act() returned None, expected (accel, steer) or a trajectory")
            except BaseException as problem:
                if _ends_process(problem, self.errors):
                    raise
                # Many sessions often fail alike; what is kept of stderr has room for few tracebacks.
                trace = traceback.format_exc()
                if _terminal():
                    import pdb

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
    roots = tuple({find(path) + os.sep for path in installed if path for find in (os.path.realpath, os.path.abspath)})
    found = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        # The script itself stands on the command line; this client is a part of Swerve.
        script = name == "__main__" and getattr(module, "__spec__", None) is None
        if not path or script or name == __name__:
            continue
        place = os.path.abspath(path)  # Debian's sitecustomize is a link to a file in /etc, which no sandbox has
        path = os.path.realpath(path)
        if place.startswith(roots) or path.startswith(roots) or "/dist-packages/" in path or "/site-packages/" in path:
            continue
        while not os.path.exists(path):  # in an archive, or a name that a module only claims: PyTorch's "_ops.py"
            path = os.path.dirname(path)
        if os.path.isfile(path):
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
    names = [os.path.basename(path) for path in files]
    for i, path in enumerate(files):
        # Of several with one name each counts in its place: what changes places is another planner.
        place = names[: i + 1].count(names[i])
        lines.append(f"file {names[i]} {_file_hash(path)}" + (f" {place}" if place > 1 else ""))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest() if lines else ""


def _read_answer(answer):
    """accel, steer and the packed points of one answer; TypeError or ValueError for anything else."""
    rows = list(answer)
    if len(rows) == 2 and not hasattr(rows[0], "__iter__"):
        return float(rows[0]), float(rows[1]), b""
    if not 1 <= len(rows) <= TRAJECTORY_POINTS:
        raise ValueError(f"{len(rows)} points, expected 1 to {TRAJECTORY_POINTS}")
    packed = []
    for row in rows:
        t_s, x_m, y_m, heading_rad, speed_mps = row
        numbers = (t_s, x_m, y_m, heading_rad, speed_mps)
        packed.append(_POINT.pack(*(float(number) for number in numbers)))
    return 0.0, 0.0, b"".join(packed)


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


def _ends_process(problem, errors):
    """Whether what was raised is not the planner's failure: somebody at a terminal, or in a process that does
    other things too, wants to end. Else KeyboardInterrupt and SystemExit are failures as others are: a process
    that ended by them would be started again, and asked again."""
    return not isinstance(problem, Exception) and (errors is not None or _terminal())


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
        self.history = {}  # of each session
        self.choice = None  # of sensors
        self.rig = None  # the planner's own

    # ---- decoding ----

    def hello(self, payload):
        fields = _HELLO.unpack_from(payload)
        if fields[0] != PROTOCOL_VERSION:
            raise RuntimeError(f"expected protocol version {PROTOCOL_VERSION}, found {fields[0]}")
        # An older worker does not know what is newer. Pictures and actions alone need nothing of it.
        self.version = PROTOCOL_PLANS if fields[15] >= PROTOCOL_PLANS else PROTOCOL_VERSION
        if self.planner.sensors or self.planner.rig is not None:
            self.choose_sensors(fields[15])
        if self.version == PROTOCOL_VERSION and self.planner.wants & ~(BEV | CAMERAS):
            raise RuntimeError("this swerve is too old for objects and maps: it speaks protocol version 1 alone")
        if not 0 <= self.planner.history_ticks <= 50:
            raise RuntimeError(f"expected history_ticks from 0 to 50, found {self.planner.history_ticks}")
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
            rig=self.rig or (json.loads(payload[_HELLO.size :]) if self.features & RIG else None),
        )
        if self.version == PROTOCOL_SENSORS:
            self.slot_bytes = os.fstat(self.memory_fd).st_size // self.world.session_count
        if self.planner.wants & (BEV | CAMERAS) or self.version == PROTOCOL_SENSORS:
            size = self.slot_bytes * self.world.session_count
            self.memory = mmap.mmap(self.memory_fd, size, access=mmap.ACCESS_READ)

    def choose_sensors(self, newest):
        """Fills self.choice, the JSON of the welcome."""
        if newest < PROTOCOL_SENSORS:
            raise RuntimeError("this swerve is too old for sensors of a rig: it does not speak protocol version 4")
        if self.planner.wants & (BEV | CAMERAS):
            raise RuntimeError('expected the grid and cameras among `sensors` ("bev", "front" ..), found them in `wants`')
        self.version = PROTOCOL_SENSORS
        sensors = [
            each if isinstance(each, str) else {"id": each[0], "encoding": each[1]} for each in self.planner.sensors
        ]
        self.choice = {"sensors": sensors}
        self.rig = self.planner.rig
        if isinstance(self.rig, (str, os.PathLike)):
            with open(self.rig, encoding="utf-8") as file:
                self.rig = json.load(file)
        if self.rig is not None:
            self.choice["rig"] = self.rig

    def look(self, session):
        """Sensors of a session by their ids, from the directory of its slot."""
        base = session * self.slot_bytes
        count, record_bytes, _ = _DIRECTORY.unpack_from(self.memory, base)
        found = {}
        for i in range(count):
            fields = _SENSOR.unpack_from(self.memory, base + _DIRECTORY.size + i * record_bytes)
            name = fields[0].partition(b"\0")[0].decode()
            form, width, height, frames, offset, stride = fields[1:7]
            places = [(base + offset + k * stride, fields[7 + k]) for k in range(frames)]
            found[name] = Sensor(
                id=name,
                width=width,
                height=height,
                frames=[self.frame(form, place, size, height, width) for place, size in places],
                time_ns=fields[19 : 19 + frames],
                shutter_ns=fields[31],
                shutter=SHUTTERS[fields[32]],
            )
        return found

    def frame(self, form, offset, size, height, width):
        if form == JPEG:
            return memoryview(self.memory)[offset : offset + size]
        if form == POINTS:
            count = size // _size(_RETURN)
            return _records(Record, _RETURN, count, self.memory, offset) if numpy is None else _array(
                _RETURN, count, self.memory, offset)
        return self.view(offset, (size // (height * width), height, width) if form == GRID else (height, width, 3))

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
        log_count, id_bytes, prompt_bytes, map_bytes = fields[7:11]
        at = _RESET.size
        names = ("t_s", "x_m", "y_m", "heading_rad", "speed_mps")
        log = [
            LogPoint(**dict(zip(names, _LOG_POINT.unpack_from(payload, at + i * _LOG_POINT.size))))
            for i in range(log_count)
        ]
        at += log_count * _LOG_POINT.size
        map_at = at
        at += map_bytes
        end = at + id_bytes + prompt_bytes
        rows = payload[(end + 7) // 8 * 8 :]  # of a worker that sends them; else there is nothing
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
            map=Map(payload[map_at:at]) if map_bytes > 0 else None,
            controls=list(_CONTROLS_ROW.iter_unpack(rows)),
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

    def look_around(self, payload, at, observation):
        """Adds what version 3 has beside the query; returns where the next one's begins."""
        source, object_count, signal_count, _, time_ns = _AROUND.unpack_from(payload, at)
        at += _AROUND.size
        observation._around = (object_count, payload, at)
        observation.objects_source = OBJECT_SOURCES[source]
        observation.objects_time_ns = time_ns
        at += object_count * _size(_OBJECT)
        observation.signals = _records(Record, _SIGNAL_STATE, signal_count, payload, at)
        for signal in observation.signals:
            signal.light = LIGHTS[signal.light]
        return at + signal_count * _size(_SIGNAL_STATE)

    def remember(self, observation):
        """Shows a session its history, and adds to it."""
        earlier = self.history.setdefault(observation.session, [])
        observation.history = tuple(earlier)
        earlier.append(observation.without_pictures())
        del earlier[: max(0, len(earlier) - self.planner.history_ticks)]

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
        tracker = self.planner.tracker if self.version >= PROTOCOL_PLANS else 0
        head = _WELCOME.pack(self.version, tracker, self.planner.wants, len(name), len(loaded))
        choice = json.dumps(self.choice).encode() if self.version == PROTOCOL_SENSORS else b""
        return head + name + loaded + choice

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
        if self.version == PROTOCOL_SENSORS:
            for observation in observations:
                observation.sensors = self.look(observation.session)
        if self.version >= PROTOCOL_PLANS:
            at = _ACT.size + count * record_bytes
            for observation in observations:
                at = self.look_around(payload, at, observation)
        if self.planner.history_ticks > 0:
            for observation in observations:
                self.remember(observation)
        _speak(observations[0].session if count == 1 else None)
        answers = self.planner.act(observations)
        self.note_late_modules()
        if len(answers) != count:
            raise RuntimeError(f"act() gave {len(answers)} answers to {count} observations")
        if self.version >= PROTOCOL_PLANS:
            return self.plans(observations, answers)
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

    def plans(self, observations, answers):
        """Actions and trajectories, as version 3 has them."""
        records, points = [], []
        for observation, answer in zip(observations, answers):
            failed, accel, steer, rows = 0, 0.0, 0.0, b""
            try:
                accel, steer, rows = _read_answer(answer)
            except (TypeError, ValueError) as problem:
                failed = 1
                if answer is not None:
                    text = f"expected (accel, steer) or a trajectory, found {repr(answer)[:300]}: {problem}"
                    _tell(self.errors, observation, text)
            records.append(
                _PLAN.pack(observation.session, failed, accel, steer, len(rows) // _POINT.size, 0)
            )
            points.append(rows)
        return b"".join([_ACT.pack(len(records), _PLAN.size)] + records + points)

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
            except BaseException as problem:
                if _ends_process(problem, self.errors):
                    raise
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
            self.history.pop(episode.session, None)
            self.planner.reset(episode.session, episode)
            return DONE, b""
        if kind == FORK:
            source, target = _PAIR.unpack_from(payload)
            _speak(target)
            self.planner.fork(source, target)
            self.history[target] = list(self.history.get(source, ()))
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
