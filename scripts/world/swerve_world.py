"""Swerve world client: serve a world model of yours to `--world "exec:python3 my_world.py"` in a few lines.

One file, standard library only; with numpy installed frames are numpy arrays, without it memoryviews
(and a NaN is yours to find). The protocol underneath is documented in schemas/world/world.md.

    import swerve_world

    class MyWorld(swerve_world.World):
        name, version = "mine", "1.0"
        def reset(self, given):                 # given.raster: the first frame, as the sensors saw it
            return self.net.first(given.raster.bev)
        def step(self, states, batch):          # one list element per rollout
            ...
            return new_states, bevs, cameras    # u8, or floats in [0, 1]

    swerve_world.run(MyWorld())

A state is whatever reset() and step() return for a rollout. Never change one in place: make a new one, and a
fork costs nothing, because both branches hold the same state until they are stepped. (A world that must write
in place overrides fork() and makes a copy.)

Frames are bytes. In the form EGO, what planners see: bev [4][192][96] (occupancy, unseen,
drivable, marking), cameras [3][64][96][3] (left, front, right; RGB). In the form WINDOW, what the shipped
models compute: bev [96][96][22], cameras [3][32][48][12] (engine/model.md). A frame that has a NaN is reported
and ends that rollout alone.

In the form RIG a world makes pictures of the cameras of any rig, several frames at a time: begin() and make() take the
place of reset() and step(). It needs numpy.

    class MyWorld(swerve_world.World):
        name, version, form = "mine", "1.0", swerve_world.RIG
        flags = swerve_world.DETERMINISTIC | swerve_world.CAMERAS
        rate_hz, first_frames, chunk_frames = 30, 9, 12
        def begin(self, chunk):                 # chunk.frames: frame 0 of each camera, as the sensors saw it
            return self.net.first(chunk.frames["front"][0])
        def make(self, states, chunks):         # fills chunk.frames[id], u8 [count][height][width][3]
            ...
            return new_states

stdout carries the protocol: what print() writes goes to stderr.
"""

import functools
import gc
import itertools
import json
import math
import mmap
import operator
import os
import struct
import sys
import traceback

try:
    import numpy
except ImportError:
    numpy = None

EGO, WINDOW, RIG = 0, 1, 2
DETERMINISTIC, BEV, CAMERAS, MOVES_AGENTS, READS_RASTER = 1, 2, 4, 8, 16
AGENTS, MAP, NONE = 0, 1, 2  # conditioning: who moves the agents

SHAPES = {EGO: ((4, 192, 96), (3, 64, 96, 3)), WINDOW: ((96, 96, 22), (3, 32, 48, 12))}

ABI_VERSION = 1  # of hello; the form RIG asks for 2
MAGIC = 0x4C575753
HELLO, WELCOME, RESET, DONE, STEP, MADE, FORK, DROP, ERROR, BYE, PARK, RESTORE, VERSION_2, RIG_TEXT, RESET_RIG, STEP_RIG = range(1, 17)
OK, FAILED, NOT_FINITE = 0, 1, 2
HEADER = struct.Struct("<IIII")
AGENT = struct.Struct("<IIdddd")
MADE_RECORD = struct.Struct("<IIII")


def _layout():
    """Members of struct swerve_world_given: where each is, and its format."""
    doubles = "x_m y_m heading_rad speed_mps accel_mps2 yaw_rate_rps steer_rad action_accel_mps2 action_steer_rad"
    doubles += " moved_x_m moved_y_m turned_rad local_x_m local_y_m local_heading_rad"
    members = [("state", "I"), ("tick", "I"), ("seed", "Q")] + [(name, "d") for name in doubles.split()]
    members += [("window_i", "i"), ("window_j", "i"), ("weather", "I"), ("light", "I"), ("friction", "d")]
    members += [("visibility_m", "d"), ("conditions", "64f"), ("raster_bev", "Q"), ("raster_cameras", "Q")]
    members += [("frame_bev", "Q"), ("frame_cameras", "Q"), ("agents", "Q")]
    layout, at = {}, 0
    for name, code in members:
        layout[name] = struct.Struct("<" + code), at
        at += layout[name][0].size
    return layout, at


GIVEN, GIVEN_BYTES = _layout()
PLACES = struct.Struct("<I420x5Q")  # of a record, what every tick needs: the state and where its memory is
assert GIVEN_BYTES == PLACES.size == 464
PAIR = struct.Struct("<II")
READ_BYTES = 1 << 16
CHUNK = struct.Struct("<8IQ2dQ16Q160d")
BODY = "present kind x_m y_m heading_rad speed_mps length_m width_m height_m".split()
BODY_FORMATS = ["u4", "u4"] + 7 * ["f8"]
POSE = "time_s x_m y_m heading_rad speed_mps".split()
assert CHUNK.size == 1472


@functools.lru_cache(64)
def _places(count, record_bytes):
    """PLACES of a whole batch, one after the other."""
    return struct.Struct("<" + f"I420x5Q{record_bytes - PLACES.size}x" * count)


class Setup:
    """Figures of the worker: state_count, batch_max, thread_count, conditioning; of the form RIG the rig, a dict as in
    schemas/rig/rig.schema.json, or None, where the world is only asked what it declares."""

    def __init__(self, fields, rig=None):
        self.state_count, self.batch_max, self.thread_count, self.conditioning = fields
        self.rig = rig


class Pictures:
    """A grid and three cameras, views of the shared memory; None where the world does not read them."""

    __slots__ = ("bev", "cameras")

    def __init__(self, bev, cameras):
        self.bev, self.cameras = bev, cameras


class Given(tuple):
    """Inputs of one rollout for one frame. Members of schemas/world/world.h (x_m, speed_mps, action_accel_mps2,
    moved_x_m, weather, conditions ..) are attributes; `raster` is the conditioning raster, at reset the first frame;
    `frame` is where the new frame goes, for who writes it there; `index` is the place in the batch."""

    __slots__ = ()
    index, raster, _record, _at, _server = (property(operator.itemgetter(i)) for i in range(5))

    def __getattr__(self, name):
        try:
            code, offset = GIVEN[name]
        except KeyError:
            raise AttributeError(name) from None
        values = code.unpack_from(self._record, self._at + offset)
        return values[0] if len(values) == 1 else values

    @property
    def frame(self):
        return self._server.pictures(*PLACES.unpack_from(self._record, self._at)[3:5])


class Chunk:
    """Frames of one rollout that are to be made: members of swerve_world_chunk. `poses` [count] and `bodies` [count][agents] are
    numpy records; `frames` has by a camera's id the place of its pictures, u8 [count][height][width][3]."""

    def __init__(self, data, start, server):
        fields = CHUNK.unpack_from(data, start)
        self.state, self.first_frame, self.frame_count, cameras, agents, self.weather, self.light, _ = fields[:8]
        self.seed, self.friction, self.visibility_m, bodies = fields[8:12]
        self.poses = numpy.frombuffer(data, [(name, "f8") for name in POSE], self.frame_count, start + CHUNK.size - 1280)
        record = numpy.dtype(list(zip(BODY, BODY_FORMATS)))
        self.bodies = server.part(bodies, self.frame_count * agents * record.itemsize).view(record).reshape(self.frame_count, agents)
        self.frames = {}
        for camera, offset in zip(server.rig["cameras"], fields[12 : 12 + cameras]):
            shape = self.frame_count, camera["height"], camera["width"], 3
            self.frames[camera["id"]] = server.part(offset, math.prod(shape)).reshape(shape)


class World:
    """Derive from it. `form`, `flags` and `horizon_s` say what the world is; all of it is checked."""

    name = "world"
    version = "1"
    form = EGO
    flags = DETERMINISTIC | BEV | CAMERAS | READS_RASTER
    horizon_s = 30.0
    rate_hz, chunk_frames, first_frames, states_max = 0, 0, 0, 0  # of RIG; first_frames 0: as any chunk

    def open(self, setup):
        """Once, before anything else. Raise Refused to say why it cannot be, as of a rig that the world cannot make."""

    def reset(self, given):
        """A rollout begins; returns its state."""
        return None

    def step(self, states, batch):
        """One tick: states and batch (Given) are lists of one length. Returns the new states, grids and cameras,
        each a list or an array of that length (None: the frame was written to given.frame already, or is not
        declared; given.raster.bev and .cameras are not copied); with MOVES_AGENTS also a list of agents per state: rows
        (index, x_m, y_m, heading_rad, speed_mps).
        An exception in place of an element's frame fails that rollout alone."""
        raise NotImplementedError

    def begin(self, chunk):
        """Of RIG: a rollout begins; returns its state. chunk.frames: frame 0."""
        return None

    def make(self, states, chunks):
        """Of RIG: the next frames of each state, into chunk.frames; returns the new states. An exception in place of a state
        fails that rollout alone."""
        raise NotImplementedError

    def fork(self, state):
        """The state of a branch that begins here. The same object, where states are never changed in place."""
        return state

    def drop(self, state):
        """The rollout is over."""


class Refused(Exception):
    """The worker is told what it says."""


PARTS = (BEV, operator.attrgetter("bev")), (CAMERAS, operator.attrgetter("cameras"))  # bits of `places`, from the lowest


def _bytes_of(frame, shape):
    """A frame as bytes, None where it has a NaN or an infinity."""
    size = math.prod(shape)
    if numpy is None or isinstance(frame, (bytes, bytearray, memoryview)):
        data = memoryview(frame).cast("B")
        if len(data) != size:
            raise Refused(f"a frame of {len(data)} bytes, expected {size}")
        return data
    array = numpy.asarray(frame)
    if array.shape != shape:
        raise Refused(f"a frame of shape {list(array.shape)}, expected {list(shape)}")
    if array.dtype == numpy.uint8:
        return numpy.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind != "f":
        raise Refused(f"a frame of type {array.dtype}, expected uint8 or floats in [0, 1]")
    if not numpy.isfinite(array).all():
        return None
    return (numpy.clip(array, 0.0, 1.0) * 255.0 + 0.5).astype(numpy.uint8).reshape(-1)


class _Server:
    def __init__(self, world, source, sink, memory_fd):
        self.world, self.source, self.sink, self.memory_fd = world, source, sink, memory_fd
        self.states = {}
        self.pending, self.at = b"", 0  # what was read, and how far it was looked at
        self.ahead = None  # of a step that is there but for its last byte: its payload, and it taken apart
        self.batch = None  # places of the last step, and what follows from them alone
        self.numbers, self.rasters, self.grids, self.cameras, self.kept_made = (), (), (), (), {}
        self.seen = {0: Pictures(None, None)}  # pictures by where cameras are, for the memory stays there; at 0: not drawn
        self.shapes = SHAPES.get(world.form, ((0,), (0,)))
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.fields, self.rig = (), None  # of hello; of the form RIG

    def part(self, offset, size):
        return self.arrays[offset : offset + size]

    def pictures(self, bev, cameras):
        if cameras not in self.seen:
            parts = []
            for offset, size, shape in zip((bev, cameras), self.sizes, self.shapes):
                part = self.memory[offset : offset + size]
                parts.append(part if numpy is None else numpy.frombuffer(part, numpy.uint8).reshape(shape))
            self.seen[cameras] = Pictures(*parts)
        return self.seen[cameras]

    def read(self):
        """The next frame: its type, sequence and payload as bytes and where in them. As many are taken from the system at
        once as are there, ordinarily one frame, which is then not copied."""
        while True:
            left = len(self.pending) - self.at
            if left >= HEADER.size:
                _, kind, count, sequence = HEADER.unpack_from(self.pending, self.at)
                if left >= HEADER.size + count:
                    start = self.at + HEADER.size
                    self.at = start + count
                    return kind, sequence, self.pending, start, count
                if kind == STEP and left == HEADER.size + count - 1:
                    try:
                        self.take_apart(self.pending + b"\0", self.at + HEADER.size)  # while the worker draws rasters
                    except (KeyError, struct.error):  # `step` meets it again, and answers with the error
                        self.ahead = None
            got = os.read(self.source, READ_BYTES)
            if not got:
                raise EOFError
            self.pending, self.at = self.pending[self.at :] + got if left else got, 0

    def answer(self, kind, sequence, payload=b""):
        data = memoryview(HEADER.pack(MAGIC, kind, len(payload), sequence) + payload)
        while data:
            data = data[os.write(self.sink, data) :]

    def hello(self, payload):
        version, *fields, newest, memory_bytes = struct.unpack("<6IQ", payload)
        if version != ABI_VERSION:
            raise Refused(f"the worker speaks version {version} of the world protocol, this client {ABI_VERSION}")
        self.memory = memoryview(mmap.mmap(self.memory_fd, memory_bytes))
        self.arrays = None if numpy is None else numpy.frombuffer(self.memory, numpy.uint8)
        self.fields = fields
        if self.world.form != RIG:
            return WELCOME, self.welcome()
        if newest < 2 or numpy is None:
            raise Refused("the form RIG needs numpy" if newest >= 2 else
                          f"the worker speaks version {version} of the world protocol, the form RIG is of version 2")
        return VERSION_2, b""

    def welcome(self):
        world = self.world
        world.open(Setup(self.fields, self.rig))
        sizes = [size if world.flags & flag else 0 for size, flag in zip(self.sizes, (BEV, CAMERAS))]
        declared = struct.pack("<32s32s6Id", world.name.encode(), world.version.encode(), world.form, world.flags,
                               *sizes, round(world.horizon_s * 10), 0, 0.1)
        if world.form == RIG:
            declared += struct.pack("<4I", world.rate_hz, world.chunk_frames, world.first_frames or world.chunk_frames,
                                    world.states_max)
        gc.freeze()  # what is there now stays, so that no collection in a tick goes through it
        return declared

    def chunks(self, data, start):
        """A step in the form RIG; what was made of it."""
        count, record_bytes = PAIR.unpack_from(data, start)
        chunks = [Chunk(data, start + PAIR.size + i * record_bytes, self) for i in range(count)]
        made = []
        for chunk, state in zip(chunks, self.world.make([self.states[chunk.state] for chunk in chunks], chunks)):
            failed = isinstance(state, Exception)
            if failed:
                traceback.print_exception(state)
            else:
                self.states[chunk.state] = state
            made.append(MADE_RECORD.pack(chunk.state, FAILED if failed else OK, 0, 0))
        return b"".join(made)

    def kept(self, bevs, cameras):
        """Bits of `places` where every rollout's frames are its raster, or are not to be put anywhere; else None."""
        places, flags = 0, self.world.flags
        for bit, flag, part, own in (1, BEV, bevs, self.grids), (2, CAMERAS, cameras, self.cameras):
            if part is None or not flags & flag:
                continue
            if not flags & READS_RASTER or len(part) != len(own) or not all(map(operator.is_, part, own)):
                return None
            places |= bit
        return places

    def look(self, batch):
        """Numbers and rasters of a batch whose places are not those of the one before."""
        self.batch, self.kept_made = batch, {}
        self.numbers = batch[::6]
        self.rasters = list(map(self.pictures, batch[1::6], batch[2::6]))
        self.grids, self.cameras = ([of(raster) for raster in self.rasters] for _, of in PARTS)

    def put(self, where, frames, rasters):
        """Copies a rollout's frames to where they belong; what to say of it, and which of them are the raster itself, so
        that nothing was to be copied."""
        places = 0
        for i, (frame, (flag, of), offset, size, shape) in enumerate(
                zip(frames, PARTS, where[3:5], self.sizes, self.shapes)):
            if isinstance(frame, Exception):
                return FAILED, 0
            if frame is None or not self.world.flags & flag:
                continue
            if frame is of(rasters):
                places |= 1 << i
                continue
            if numpy is not None and isinstance(frame, numpy.ndarray) and frame.shape == shape and frame.dtype == numpy.uint8:
                numpy.copyto(self.arrays[offset : offset + size].reshape(shape), frame)
                continue
            data = _bytes_of(frame, shape)
            if data is None:
                return NOT_FINITE, 0
            self.memory[offset : offset + size] = data
        return OK, places

    def put_agents(self, where, agents):
        for i, (index, *pose) in enumerate(agents):
            AGENT.pack_into(self.memory, where[5] + i * AGENT.size, index, 1, *pose)
        return len(agents)

    def take_apart(self, data, start):
        """Keeps in `ahead` what the world is called with."""
        count, record_bytes = PAIR.unpack_from(data, start)
        start += PAIR.size
        places = _places(count, record_bytes).unpack_from(data, start)
        if places != self.batch:
            self.look(places)
        batch = list(map(Given, zip(range(count), self.rasters, itertools.repeat(data),
                                    itertools.count(start, record_bytes), itertools.repeat(self))))
        self.ahead = data, list(map(self.states.__getitem__, self.numbers)), batch

    def step(self, data, start):
        if self.ahead is None or data[-1] != 0:
            self.take_apart(data, start)
        _, states, batch = self.ahead
        self.ahead = None
        numbers, rasters, places = self.numbers, self.rasters, self.batch
        states, bevs, cameras, *agents = self.world.step(states, batch)
        self.states.update(zip(numbers, states))
        kept = None if agents else self.kept(bevs, cameras)
        if kept is not None:
            if kept not in self.kept_made:
                self.kept_made[kept] = b"".join([MADE_RECORD.pack(number, OK, 0, kept) for number in numbers])
            return self.kept_made[kept]
        made = []
        for i, number in enumerate(numbers):
            agent_count, where = 0, places[6 * i : 6 * i + 6]
            result, kept = self.put(where, [None if part is None else part[i] for part in (bevs, cameras)], rasters[i])
            if agents and result == OK:
                agent_count = self.put_agents(where, agents[0][i])
            made.append(MADE_RECORD.pack(number, result, agent_count, kept))
        return b"".join(made)

    def handle(self, kind, data, start, count):
        """The answer's type and payload; None: there is none."""
        if kind == STEP:
            return MADE, self.step(data, start)
        if kind == HELLO:
            return self.hello(data[start : start + count])
        if kind == RIG_TEXT:
            self.rig = json.loads(bytes(data[start : start + count])) if count else None
            return WELCOME, self.welcome()
        if kind == STEP_RIG:
            return MADE, self.chunks(data, start)
        if kind == RESET_RIG:
            chunk = Chunk(data, start, self)
            self.states[chunk.state] = self.world.begin(chunk)
            return DONE, b""
        if kind == RESET:
            number, bev, cameras, *_ = PLACES.unpack_from(data, start)
            self.states[number] = self.world.reset(Given((0, self.pictures(bev, cameras), data, start, self)))
            return DONE, b""
        if kind == FORK:
            source, target = PAIR.unpack_from(data, start)
            self.states[target] = self.world.fork(self.states[source])
            return DONE, b""
        if kind == DROP:
            self.world.drop(self.states.pop(struct.unpack_from("<I", data, start)[0], None))
        return None

    def serve(self):
        while True:
            try:
                kind, sequence, *payload = self.read()
            except EOFError:
                return
            if kind == BYE:
                return
            try:
                answer = self.handle(kind, *payload)
            except Refused as fault:
                answer = ERROR, str(fault).encode()[:4096]
            except Exception as fault:  # pylint: disable=broad-except
                traceback.print_exc()
                answer = ERROR, _place(fault).encode()[:4096]
            if answer is not None:
                self.answer(answer[0], sequence, answer[1])


def _place(fault):
    """Place where an exception arose in the world's own file, else at all, and what it says, in one line."""
    frames = traceback.extract_tb(fault.__traceback__)
    own = [frame for frame in frames if os.path.abspath(frame.filename) == os.path.abspath(sys.argv[0])]
    frame = (own or frames)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno}: {type(fault).__name__}: {fault}"


def run(world):
    """Serves a World until the worker is done with it."""
    if "SWERVE_SHM_FD" not in os.environ:
        sys.exit(f"{sys.argv[0]}: a world for swerve; start it with: swerve run SUITE --world \"exec:python3 {sys.argv[0]}\"")
    sink = os.dup(1)
    os.dup2(2, 1)
    _Server(world, 0, sink, int(os.environ["SWERVE_SHM_FD"])).serve()
