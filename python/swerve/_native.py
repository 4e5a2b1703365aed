"""libswerve_env.so through ctypes: a batch of environments whose rows are numpy arrays without copies.

The C side is worker/env/env.h; names and units here are those of its structs.
"""

import collections.abc
import ctypes
import functools
import json
import os
import pathlib
import weakref

import numpy

from swerve import _program

ABI_VERSION = 1
BEV, CAMERAS, HASH = 1, 2, 4
GOES_ON, HORIZON, COLLISION, SICK, EMPTY = range(5)
COUNT_MAX = 1024
EGO = ("x_m", "y_m", "heading_rad", "speed_mps", "accel_mps2", "lat_accel_mps2", "yaw_rate_rps", "steer_rad")
ROUTE_SHAPE = (32, 7)
BEV_SHAPE = (4, 192, 96)
CAMERA_SHAPE = (3, 64, 96, 3)
CONTROLS = 5  # of a log's row: target_mps2, roll_lataccel_mps2, v_ego_mps, a_ego_mps2, steer
MODELS = ("student", "teacher", "tinyphysics")  # worlds that are made of a model
_OUTCOME_BYTES = 16384
_ERROR_BYTES = 1024
_FOLDERS_ABOVE = 4  # the program in which its library is looked for, as in base/file.h


class _Config(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("wants", ctypes.c_uint32),
        ("world", ctypes.c_char_p),
        ("suite", ctypes.c_char_p),
    ]


class _Model(ctypes.Structure):
    _fields_ = [
        ("models", ctypes.c_char_p),
        ("layout", ctypes.c_char_p),
        ("precision", ctypes.c_char_p),
        ("skip_steps", ctypes.c_uint32),
    ]


_ROWS = (
    ("actions", numpy.float64, (2,)),
    ("ego", numpy.float64, (len(EGO),)),
    ("route", numpy.float32, ROUTE_SHAPE),
    ("bev", numpy.uint8, BEV_SHAPE),
    ("cameras", numpy.uint8, CAMERA_SHAPE),
    ("advance_m", numpy.float64, ()),
    ("contact", numpy.uint8, ()),
    ("end", numpy.uint8, ()),
    ("tick", numpy.uint32, ()),
    ("scenario", numpy.uint32, ()),
    ("seed", numpy.uint64, ()),
)


class _Sensor(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_char_p),
        ("is_grid", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("height", ctypes.c_uint32),
        ("rows", ctypes.c_void_p),
    ]


class _Rows(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name, _, _ in _ROWS]


class _Moment(ctypes.Structure):
    _fields_ = [
        ("tick", ctypes.c_uint32),
        ("agent_count", ctypes.c_uint32),
        ("ego", ctypes.c_void_p),
        ("agents", ctypes.c_void_p),
        ("weather", ctypes.c_char_p),
        ("light", ctypes.c_char_p),
        ("visibility_m", ctypes.c_double),
    ]


def _library_path():
    named = os.environ.get("SWERVE_ENV_LIBRARY")
    if named:
        return named
    folder = pathlib.Path(_program.program()).resolve().parent
    tried = [folder.parent / "share/swerve", folder]
    tried += [folder.parent / "lib", *sorted((folder.parent / "lib").glob("*-linux-*"))]
    for place in tried:
        if (place / "libswerve_env.so").is_file():
            return str(place / "libswerve_env.so")
    raise _program.Error(
        "no libswerve_env.so beside the swerve program: looked in "
        + ", ".join(map(str, tried))
        + "; set SWERVE_ENV_LIBRARY to it"
    )


def whole(name, value, most=2**32 - 1):
    """The number as an int; ctypes would cut one that is too large, and int() one that is not whole."""
    number = int(value)
    if number != value or not 0 <= number <= most:
        raise ValueError(f"{name}: expected a whole number from 0 to {most}, found {value!r}")
    return number


def _seed(value):
    return whole("seed", value, 2**64 - 1)


def _index(value):
    return whole("environment", value)


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(_library_path())
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    text = (ctypes.c_char_p, u32)
    for name, result, arguments in (  # as in env.h
        ("revision", ctypes.c_char_p, ()),
        ("open", ctypes.c_int, (ctypes.POINTER(_Config), ctypes.POINTER(pointer), *text)),
        ("open_sensors", ctypes.c_int,
         (ctypes.POINTER(_Config), ctypes.c_char_p, u64, ctypes.POINTER(pointer), *text)),
        ("open_model", ctypes.c_int,
         (ctypes.POINTER(_Config), ctypes.POINTER(_Model), ctypes.POINTER(pointer), *text)),
        ("controls", ctypes.POINTER(ctypes.c_double), (pointer, u32, ctypes.POINTER(u32))),
        ("sensors", u32, (pointer, u32, ctypes.POINTER(_Sensor))),
        ("close", None, (pointer,)),
        ("scenarios", u32, (pointer,)),
        ("scenario", ctypes.c_char_p, (pointer, u32, ctypes.POINTER(u32))),
        ("rows", None, (pointer, ctypes.POINTER(_Rows))),
        ("reset", ctypes.c_int, (pointer, u32, ctypes.POINTER(u32), ctypes.POINTER(u32), ctypes.POINTER(u64), *text)),
        ("step", ctypes.c_int, (pointer, pointer, *text)),
        ("fork", ctypes.c_int, (pointer, u32, u32, *text)),
        ("save", ctypes.c_int, (pointer, u32, ctypes.POINTER(pointer), *text)),
        ("restore", ctypes.c_int, (pointer, pointer, u32, *text)),
        ("state_free", None, (pointer, pointer)),
        ("outcome", ctypes.c_int, (pointer, u32, *text, *text)),
        ("drawing_open", ctypes.c_int, (ctypes.c_char_p, u64, u64, ctypes.POINTER(pointer), *text)),
        ("drawing_close", None, (pointer,)),
        ("draw", ctypes.c_int, (pointer, ctypes.POINTER(_Moment), pointer, pointer, *text)),
    ):
        function = getattr(library, "swerve_env_" + name)
        function.restype = result
        function.argtypes = arguments
    return library


def revision():
    """Of the simulation in the library; equal to outcome["revision"] of the same build."""
    return _library().swerve_env_revision().decode()


def suite_path(name):
    """The file of a suite, as the program finds it: a path, or a name of its library.

    A folder without scenarios, such as one for reports that is called like the suite, is no suite.
    """
    name = os.fspath(name)
    if os.path.isabs(name):
        return name
    if os.path.isdir(name):
        if any(entry.endswith(".json") for entry in os.listdir(name)):
            return name
    elif os.path.exists(name):
        return name
    program = pathlib.Path(_program.program()).resolve()
    for folder in list(program.parents)[:_FOLDERS_ABOVE]:
        for place in (folder / "scenarios", folder / "share/swerve/scenarios"):
            for ending in ("", ".json"):
                if (place / (name + ending)).is_file():
                    return str(place / (name + ending))
    return name


def _models_path():
    """Folder of the models that the program would take; None: it is for the library to say where none are."""
    if os.environ.get("SWERVE_MODELS"):
        return None
    program = pathlib.Path(_program.program()).resolve()
    for folder in list(program.parents)[:_FOLDERS_ABOVE]:
        for place in (folder / "engine/models", folder / "share/swerve/models"):
            if place.is_dir():
                return str(place)
    return None


def _model(world, wanted):
    """The _Model that a world is made of: `wanted` is a dict of its members, or None; None: of none."""
    if world not in MODELS:
        if wanted is not None:
            raise ValueError(f"model: expected none of the world {world}")
        return None
    members = {"models": _models_path(), "layout": None, "precision": None, "skip_steps": 0}
    strange = set(wanted or ()) - set(members)
    if strange:
        raise ValueError(f"model: expected {', '.join(members)}, found {', '.join(sorted(strange))}")
    members.update(wanted or {})
    texts = [None if members[name] is None else os.fsencode(members[name]) for name in ("models", "layout", "precision")]
    return _Model(*texts, whole("skip_steps", members["skip_steps"]))


def _check(code, text):
    if code != 0:
        kind = _program.UsageError if code == 1 else _program.InputError
        raise kind(text.value.decode(errors="replace"))


class Drawing:
    """Pictures of recorded ticks of one scenario and seed."""

    def __init__(self, scenario, seed):
        self._text = ctypes.create_string_buffer(_ERROR_BYTES)
        data = scenario.encode()
        handle = ctypes.c_void_p()
        _check(
            _library().swerve_env_drawing_open(data, len(data), _seed(seed), handle, self._text, _ERROR_BYTES),
            self._text,
        )
        self.handle = handle
        self._close = weakref.finalize(self, _library().swerve_env_drawing_close, handle)

    def draw(self, tick, ego, agents, weather, light, visibility_m, bev=None, cameras=None):
        """Fills bev and cameras, arrays of uint8. ego: as EGO; agents: [n][4], NaN while absent."""
        ego = numpy.ascontiguousarray(ego, numpy.float64)
        agents = numpy.ascontiguousarray(agents, numpy.float64)
        moment = _Moment(
            tick,
            len(agents),
            ego.ctypes.data,
            agents.ctypes.data,
            weather.encode(),
            light.encode(),
            visibility_m,
        )
        pictures = [None if array is None else array.ctypes.data for array in (bev, cameras)]
        _check(
            _library().swerve_env_draw(self.handle, moment, *pictures, self._text, _ERROR_BYTES),
            self._text,
        )


class DriveOutcome(collections.abc.Mapping):
    """Verdict, reasons, metrics and what else an outcome has, by name. (No dict: Gymnasium would take one
    apart into an array per member, of the type that the first drive has there.)"""

    def __init__(self, members):
        metrics = members["metrics"].items()
        infinite = {"inf": float("inf"), "-inf": float("-inf")}
        members["metrics"] = {
            name: infinite.get(value, value) if isinstance(value, str) else value for name, value in metrics
        }
        self._members = members

    def __getitem__(self, name):
        return self._members[name]

    def __iter__(self):
        return iter(self._members)

    def __len__(self):
        return len(self._members)

    def __repr__(self):
        return f"<DriveOutcome {self['scenario_id']}, seed {self['seed']}: {self['verdict']}>"

    @property
    def passed(self):
        return self["verdict"] == "pass"


class _Memory:
    """Memory of a handle, closed with the last reference: its batch's, its arrays', its states'. It refers to
    none of them, for arrays in a circle are never collected."""

    def __init__(self, handle):
        self.handle = handle
        self._close = weakref.finalize(self, _close, handle, os.getpid())

    def free_state(self, pointer):
        _library().swerve_env_state_free(self.handle, pointer)


def _close(handle, process):
    if os.getpid() == process:  # a fork has no threads that could be waited for; its copy goes with it
        _library().swerve_env_close(handle)


class State:
    """State that Batch.save() kept; freed with the last reference."""

    def __init__(self, memory, pointer):
        self.pointer = pointer
        self.memory = memory
        self._free = weakref.finalize(self, memory.free_state, ctypes.c_void_p(pointer))


class Batch:
    """Environments of one suite. Attributes named as the rows of worker/env/env.h are arrays over its
    memory: they change with every call. choice: sensors of a rig, as planners answer with; `sensors` has
    an array for each, by id. model: of a world that is made of one. `controls` has the rows of each scenario's
    log of the controls challenge, from tick 0 on, or None."""

    def __init__(self, suite, count, world="object", threads=1, wants=0, choice=None, model=None):
        if not 1 <= count <= COUNT_MAX:
            raise ValueError(f"expected 1 to {COUNT_MAX} environments, found {count}")
        self._text = ctypes.create_string_buffer(_ERROR_BYTES)
        config = _Config(
            ABI_VERSION, count, whole("threads", threads), wants, world.encode(), os.fsencode(suite_path(suite))
        )
        handle = ctypes.c_void_p()
        self.handle = None
        model = _model(world, model)
        if model is not None and choice is not None:
            raise ValueError(f"rig: expected none in the world {world}, which shows the built-in one")
        if model is not None:
            self._check(_library().swerve_env_open_model(config, model, handle, self._text, _ERROR_BYTES))
        elif choice is None:
            self._check(_library().swerve_env_open(config, handle, self._text, _ERROR_BYTES))
        else:
            chosen = json.dumps(choice).encode()
            self._check(
                _library().swerve_env_open_sensors(config, chosen, len(chosen), handle, self._text, _ERROR_BYTES)
            )
        self.handle = handle
        self.memory = _Memory(handle)
        self.count = count
        rows = _Rows()
        _library().swerve_env_rows(handle, rows)
        for name, dtype, shape in _ROWS:
            setattr(self, name, self._array(getattr(rows, name), dtype, (count, *shape)))
        self.sensors, sensor = {}, _Sensor()
        for index in range(_library().swerve_env_sensors(handle, 0, None)):
            _library().swerve_env_sensors(handle, index, sensor)
            size = sensor.height, sensor.width
            shape = (count, 4, *size) if sensor.is_grid else (count, *size, 3)
            self.sensors[sensor.id.decode()] = self._array(sensor.rows, numpy.uint8, shape)
        self.scenarios, self.horizon_ticks, self.controls = [], [], []
        ticks = ctypes.c_uint32()
        for index in range(_library().swerve_env_scenarios(handle)):
            self.scenarios.append(_library().swerve_env_scenario(handle, index, ticks).decode())
            self.horizon_ticks.append(ticks.value)
            log = _library().swerve_env_controls(handle, index, ticks)
            rows = numpy.ctypeslib.as_array(log, (ticks.value, CONTROLS)).copy() if ticks.value else None
            self.controls.append(rows)

    def _array(self, address, dtype, shape):
        if address is None:
            return None
        size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        memory = (ctypes.c_uint8 * size).from_address(address)
        memory.owner = self.memory  # an array keeps the memory, and so the handle
        return numpy.frombuffer(memory, dtype).reshape(shape)

    def _check(self, code):
        _check(code, self._text)

    def reset(self, which, scenarios, seeds):
        """which[i] begins scenarios[i] with seeds[i]; sequences of integers of one length."""
        count = len(which)
        self._check(
            _library().swerve_env_reset(
                self.handle,
                count,
                (ctypes.c_uint32 * count)(*map(_index, which)),
                (ctypes.c_uint32 * count)(*(whole("scenario", index) for index in scenarios)),
                (ctypes.c_uint64 * count)(*map(_seed, seeds)),
                self._text,
                _ERROR_BYTES,
            )
        )

    def step(self, idle=None):
        """One tick under self.actions; idle: uint8 [count], 1 stays as it is."""
        pointer = None if idle is None else idle.ctypes.data
        self._check(_library().swerve_env_step(self.handle, pointer, self._text, _ERROR_BYTES))

    def fork(self, source, target):
        self._check(
            _library().swerve_env_fork(self.handle, _index(source), _index(target), self._text, _ERROR_BYTES)
        )

    def save(self, index):
        pointer = ctypes.c_void_p()
        self._check(
            _library().swerve_env_save(self.handle, _index(index), pointer, self._text, _ERROR_BYTES)
        )
        return State(self.memory, pointer.value)

    def restore(self, state, index):
        if state.memory is not self.memory:
            raise ValueError("a state belongs to the environments that saved it")
        self._check(
            _library().swerve_env_restore(self.handle, state.pointer, _index(index), self._text, _ERROR_BYTES)
        )

    def outcome(self, index):
        """Of a drive that has ended, the members that `swerve show` prints, as a DriveOutcome."""
        out = ctypes.create_string_buffer(_OUTCOME_BYTES)
        self._check(
            _library().swerve_env_outcome(
                self.handle, _index(index), out, _OUTCOME_BYTES, self._text, _ERROR_BYTES
            )
        )
        return DriveOutcome(json.loads(out.value))
