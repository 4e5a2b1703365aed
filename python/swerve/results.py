"""Results: what a store holds of one suite, as Python values, Arrow, pandas and NumPy."""

import collections.abc
import json
import os
import shutil
import tempfile
import weakref

from swerve import _program


class Store:
    """A store by its path or URL. One without a name is a temporary folder that goes with the last
    result that refers to it."""

    def __init__(self, url=None):
        if url is None:
            folder = tempfile.mkdtemp(prefix="swerve-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            url = os.path.join(folder, "swerve.db")
        self.url = os.fspath(url)

    def call(self, *words):
        """stdout of a command about this store."""
        return _program.call([*words, "--store", self.url])[1]


# 64-bit integers beyond 2^53 and infinities are texts in JSON.
_READ = {"uint64": int, "double": float}


def _read_rows(text):
    """(columns, rows) of `swerve export --format jsonl`; columns are (name, type)."""
    lines = text.splitlines()
    columns = [(column["name"], column["type"]) for column in json.loads(lines[0])["columns"]]
    readers = [(index, _READ[kind]) for index, (_, kind) in enumerate(columns) if kind in _READ]
    rows = []
    for line in lines[1:]:
        row = json.loads(line)
        for index, read in readers:
            if row[index] is not None:
                row[index] = read(row[index])
        rows.append(row)
    return columns, rows


class Outcome(collections.abc.Mapping):
    """One rollout: a main line, or a branch of it. A mapping from the columns that `swerve export`
    writes (scenario_id, branch_id, seed, verdict, reasons, score, min_ttc_s, ...) to values."""

    def __init__(self, store, row):
        self._store = store
        self._row = row

    def __getitem__(self, name):
        return self._row[name]

    def __iter__(self):
        return iter(self._row)

    def __len__(self):
        return len(self._row)

    def __repr__(self):
        branch = f" {self['branch_id']}" if self["branch_id"] else ""
        return f"<Outcome {self.id}: {self['scenario_id']}{branch}, seed {self['seed']}, {self['verdict']}>"

    @property
    def id(self):
        return self["id"]

    @property
    def passed(self):
        return self["verdict"] == "pass"

    def _scenario_text(self):
        return self._store.call("show", str(self.id), "--scenario").strip()

    def scenario(self):
        """Its scenario document, as a dict."""
        return json.loads(self._scenario_text())

    def trace(self):
        """Drive tick by tick, as a Trace. Needs numpy."""
        return Trace(self, self._store.call("show", str(self.id), "--trace"))


class Result(collections.abc.Sequence):
    """The outcomes of one suite, in ascending order of their numbers.

    summary  what `swerve run --json` says: counts, rates with intervals, slices, miles, dollars
    store    the store's path or URL
    suite    the suite's id in it
    """

    def __init__(self, store, summary):
        self._store = store
        self._table = None
        self.summary = summary

    @property
    def store(self):
        return self._store.url

    @property
    def suite(self):
        return self.summary["suite"]

    @property
    def planner(self):
        """The planner's spec."""
        return self[0]["planner"]

    @property
    def passed(self):
        """Whether every main line passed."""
        return 0 < self.summary["main_rollouts"] == self.summary["main_passed"]

    @property
    def gate_met(self):
        """Whether the rate of passes that was asked for is reached; without one, `passed`."""
        return self.passed if self.summary.get("gate_met") is None else self.summary["gate_met"]

    @property
    def pass_rate(self):
        """Of main lines, the mean over concrete scenarios; None where worlds are mixed."""
        return self.summary.get("pass_rate")

    @property
    def pass_rate_interval(self):
        """Its 95% interval, (low, high)."""
        return self.summary.get("pass_rate_low"), self.summary.get("pass_rate_high")

    @property
    def slices(self):
        """{kind: {value: summary}}, as in {"weather": {"fog": {"main_rollouts": 3, ...}}}."""
        return self.summary["by_slice"]

    def _rows(self):
        if self._table is None:
            text = self._store.call("export", "--format", "jsonl", "--suite", self.suite)
            self._table = _read_rows(text)
        return self._table

    @property
    def outcomes(self):
        """A list of Outcomes: main lines and branches."""
        return list(self)

    @property
    def failures(self):
        """The main lines that did not pass."""
        return [o for o in self if o["branch_id"] == "" and not o["audit_of"] and not o.passed]

    def __len__(self):
        return len(self._rows()[1])

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        columns, rows = self._rows()
        return Outcome(self._store, {name: value for (name, _), value in zip(columns, rows[index])})

    def table(self):
        """The outcomes as a pyarrow.Table."""
        import pyarrow

        types = {
            "int64": pyarrow.int64(),
            "uint64": pyarrow.uint64(),
            "double": pyarrow.float64(),
            "bool": pyarrow.bool_(),
            "string": pyarrow.string(),
        }
        columns, rows = self._rows()
        arrays = [
            pyarrow.array([row[index] for row in rows], types[kind])
            for index, (_, kind) in enumerate(columns)
        ]
        return pyarrow.Table.from_arrays(arrays, names=[name for name, _ in columns])

    def frame(self):
        """The outcomes as a pandas.DataFrame. Where a column has gaps, integers are Int64."""
        import pandas

        columns, rows = self._rows()
        series = {}
        for index, (name, kind) in enumerate(columns):
            values = [row[index] for row in rows]
            gaps = any(value is None for value in values)
            dtype = {"double": "float64", "string": "object"}.get(kind, kind)
            if gaps and kind in ("int64", "uint64", "bool"):
                dtype = {"int64": "Int64", "uint64": "UInt64", "bool": "boolean"}[kind]
            series[name] = pandas.Series(values, dtype=dtype)
        return pandas.DataFrame(series)

    def report(self, path):
        """Writes the HTML report."""
        self._store.call("report", self.suite, "--report", os.fspath(path))

    def __repr__(self):
        rate = "" if self.pass_rate is None else f", pass rate {self.pass_rate:.3f}"
        return (
            f"<Result {self.suite}: {self.summary['main_passed']} of {self.summary['main_rollouts']} "
            f"main lines passed{rate}>"
        )


class Trace:
    """The recording of one rollout: an array per quantity with one value per tick.

    tick, t_s, x_m, y_m, heading_rad, speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad,
    action_accel_mps2, action_steer_rad, guardian, skipped_steps, sensors_dark, weather, light,
    friction, visibility_m     [ticks]
    agents    {"x_m", "y_m", "heading_rad", "speed_mps"}, each [ticks, agents], NaN while one is absent
    """

    def __init__(self, outcome, text):
        import numpy

        self.outcome = outcome
        self._drawing = None
        rows = [json.loads(line) for line in text.splitlines()]
        self.columns = [name for name in rows[0] if name != "agents"]
        for name in self.columns:
            setattr(self, name, numpy.array([row[name] for row in rows]))
        count = 1 + max((a["agent"] for row in rows for a in row["agents"]), default=-1)
        names = ("x_m", "y_m", "heading_rad", "speed_mps")
        self.agents = {name: numpy.full((len(rows), count), numpy.nan) for name in names}
        for at, row in enumerate(rows):
            for agent in row["agents"]:
                for name in names:
                    self.agents[name][at, agent["agent"]] = agent[name]

    def __len__(self):
        return len(self.tick)

    def _draw(self, tick, **pictures):
        from swerve import _native

        outcome = self.outcome
        if outcome["tier"] not in ("object", "replay"):
            raise ValueError(
                f"what the {outcome['tier']} world generated cannot be drawn again; "
                "the report has the frames that were kept"
            )
        if self._drawing is None:
            self._drawing = _native.Drawing(outcome._scenario_text(), outcome["seed"])
        agents = [self.agents[name][tick] for name in ("x_m", "y_m", "heading_rad", "speed_mps")]
        self._drawing.draw(
            int(self.tick[tick]),
            [getattr(self, name)[tick] for name in _native.EGO],
            [list(agent) for agent in zip(*agents)],
            str(self.weather[tick]),
            str(self.light[tick]),
            float(self.visibility_m[tick]),
            **pictures,
        )

    def bev(self, tick):
        """The lidar grid at a tick, uint8 [occupancy, unseen, drivable, marking][row][column], drawn again:
        what the sensors saw then (a dark one showed its last frame instead)."""
        import numpy

        out = numpy.empty((4, 192, 96), numpy.uint8)
        self._draw(tick, bev=out)
        return out

    def cameras(self, tick):
        """The images at a tick, uint8 [left, front, right][row][column][rgb], drawn again."""
        import numpy

        out = numpy.empty((3, 64, 96, 3), numpy.uint8)
        self._draw(tick, cameras=out)
        return out

    def frame(self):
        """Ego's part as a pandas frame, indexed by tick."""
        import pandas

        return pandas.DataFrame({name: getattr(self, name) for name in self.columns}).set_index("tick")

    def __repr__(self):
        agents = self.agents["x_m"].shape[1]
        return f"<Trace of outcome {self.outcome.id}: {len(self)} ticks, {agents} agents>"
