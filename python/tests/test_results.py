"""swerve.run(), load() and compare() against what the program itself says.

Method: properties over the shipped suite "smoke", driven in the object world. What is served from this
process must be what a process of its own gives, bit for bit; what pandas and Arrow hold must be what
`swerve export` writes.
"""

import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy
import pandas

import swerve

# Option that later versions of pandas set unasked.
ROUND_TRIP = {"float_precision": "round_trip"} if pandas.__version__ < "3" else {}

HOLD = """
    import swerve_planner
    class Hold(swerve_planner.Planner):
        wants = swerve_planner.BEV
        def reset(self, episode):
            self.seen = 0
        def act(self, observation):
            self.seen = (7 * self.seen + int(observation.bev.sum())) % 1000
            return -self.seen / 1000.0, 0.0
    if __name__ == "__main__":
        swerve_planner.run(Hold)
"""


def hold(observation):
    return 0.0, 0.0


class Hold(swerve.planner.Planner):
    """The planner of HOLD; its memory shows whether a fork copies it."""

    wants = swerve.planner.BEV

    def reset(self, episode):
        self.seen = 0

    def act(self, observation):
        self.seen = (7 * self.seen + int(observation.bev.sum())) % 1000
        return -self.seen / 1000.0, 0.0


class Everyone(swerve.planner.BatchPlanner):
    """The same for all sessions in one object."""

    wants = swerve.planner.BEV

    def __init__(self):
        self.seen = {}

    def reset(self, session, episode):
        self.seen[session] = 0

    def act(self, observations):
        answers = []
        for o in observations:
            self.seen[o.session] = (7 * self.seen[o.session] + int(o.bev.sum())) % 1000
            answers.append((-self.seen[o.session] / 1000.0, 0.0))
        return answers

    def fork(self, source, target):
        self.seen[target] = self.seen[source]


def drive(planner="builtin:reference", suite="smoke", **options):
    return swerve.run(suite, planner, world="object", **options)


def hashes(result):
    return {(o["scenario_id"], o["branch_id"], o["seed"]): o["trace_hash"] for o in result}


class Served(unittest.TestCase):
    def test_bits_are_those_of_a_process(self):
        with tempfile.TemporaryDirectory(prefix="swerve planner's ") as folder:
            path = pathlib.Path(folder, "hold.py")
            path.write_text(textwrap.dedent(HOLD))
            alone = drive(f"exec:python3 \"{path}\"")
        self.assertEqual(alone.summary["errors"], 0)
        for planner in (Hold, Everyone, Everyone()):
            self.assertEqual(hashes(drive(planner)), hashes(alone), planner)

    def test_what_it_remembers_is_here(self):
        seen = []
        threads = threading.active_count()
        result = drive(lambda o: seen.append(o.tick) or (0.0, 0.0))
        self.assertEqual(len(seen), result.summary["ticks"])
        self.assertEqual(threading.active_count(), threads)

    def test_wants(self):
        shapes = set()

        def look(observation):
            shapes.add((observation.bev.shape, observation.camera[1].shape))
            return 0.0, 0.0

        drive(look, wants=swerve.planner.BEV | swerve.planner.CAMERAS)
        self.assertEqual(shapes, {((4, 192, 96), (64, 96, 3))})

    def test_a_changed_function_is_another_planner(self):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "s.db")
            first = drive(hold, store=store)
            second = drive(lambda o: (-3.0, 0.0), store=store)
            self.assertEqual(second.summary["memoised_jobs"] + second.summary["known_jobs"], 0)
            self.assertNotEqual(hashes(first), hashes(second))
            self.assertEqual(hashes(swerve.load(store, first.suite)), hashes(first))
            self.assertEqual(hashes(swerve.load(store)), hashes(second))
            self.assertIn("flips", swerve.compare(first, second).data)
            with self.assertRaisesRegex(swerve.UsageError, "A and B are the same"):
                swerve.compare(first, first)

    def test_a_fault_is_told(self):
        def fault(observation):
            if observation.tick >= 0:
                raise KeyError("here")
            return 0.0, 0.0

        with self.assertRaises(swerve.PlannerError) as caught:
            drive(fault)
        self.assertIn("KeyError: 'here'", str(caught.exception))
        self.assertIn("in fault", str(caught.exception))
        self.assertEqual(len(caught.exception.result), caught.exception.result.summary["errors"])

    def test_no_planner(self):
        for planner in (7, dict, None):
            with self.assertRaises(TypeError):
                drive(planner)


class Faults(unittest.TestCase):
    def test_the_version_is_the_programs(self):
        said = subprocess.run([swerve.program(), "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(swerve.__version__, said.split()[1])
        self.assertFalse(hasattr(swerve, "__versions__"))

    def test_exit_codes(self):
        with self.assertRaises(swerve.InputError):
            drive(suite="no such suite")
        with self.assertRaises(swerve.InputError):
            drive(suite={"id": "x"})
        with self.assertRaises(swerve.UsageError):
            drive(options=["--no-such-option"])
        with self.assertRaises(swerve.PlannerError) as caught:
            drive("exec:python3 /no/such/planner.py")
        self.assertIsNone(caught.exception.result)
        self.assertEqual(caught.exception.code, 6)

    def test_no_program(self):
        os.environ["SWERVE_PROGRAM"] = sys.executable
        try:
            self.assertEqual(swerve.program(), sys.executable)
        finally:
            del os.environ["SWERVE_PROGRAM"]


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = drive()

    def test_summary(self):
        mains = [o for o in self.result if o["branch_id"] == ""]
        self.assertEqual(len(mains), self.result.summary["main_rollouts"])
        self.assertEqual(self.result.passed, all(o.passed for o in mains))
        self.assertEqual(self.result.failures, [o for o in mains if not o.passed])
        low, high = self.result.pass_rate_interval
        self.assertTrue(low <= self.result.pass_rate <= high)
        self.assertEqual(self.result.slices["weather"]["clear"]["main_rollouts"], len(mains))

    def test_frame_is_the_export(self):
        frame = self.result.frame()
        text = swerve._program.call(["export", "--format", "csv", "--store", self.result.store])[1]
        other = pandas.read_csv(io.StringIO(text), **ROUND_TRIP)
        self.assertEqual(list(frame.columns), list(other.columns))
        for name in frame.columns:
            for at, (value, expected) in enumerate(zip(frame[name], other[name])):
                if isinstance(expected, float) and math.isnan(expected):
                    gone = value is None or value is pandas.NA or value == "" or value != value
                    self.assertTrue(gone, (name, at, value))
                else:
                    self.assertEqual(value, expected, (name, at))
        self.assertEqual(str(frame.seed.dtype), "uint64")

    def test_arrow_is_the_frame(self):
        table, frame = self.result.table(), self.result.frame()
        self.assertEqual(table.num_rows, len(frame))
        for name in table.column_names:
            for value, expected in zip(table[name].to_pylist(), frame[name]):
                if value is None:
                    self.assertTrue(expected is None or expected is pandas.NA or expected != expected)
                else:
                    self.assertEqual(value, expected, name)

    def test_trace(self):
        outcome = next(o for o in self.result if o["branch_id"] != "")
        trace = outcome.trace()
        text = swerve._program.call(["show", str(outcome.id), "--trace", "--store", self.result.store])[1]
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(len(trace), outcome["ticks"] + 1)
        for at, row in enumerate(rows):
            for name in trace.columns:
                self.assertEqual(getattr(trace, name)[at], row[name])
            present = {a["agent"]: a["x_m"] for a in row["agents"]}
            for agent, x_m in enumerate(trace.agents["x_m"][at]):
                self.assertEqual(present.get(agent), None if numpy.isnan(x_m) else x_m)

    def test_pictures_are_what_the_planner_saw(self):
        """Drawn from the recording, byte for byte, in clear weather and in fog at night."""
        document = next(o for o in self.result if o["scenario_id"] == "cut_in").scenario()
        document["branches"] = []
        foggy = {"weather": "fog", "light": "night", "visibility_m": 50.0, "friction": 0.9}
        for conditions in (document["conditions"], foggy):
            seen = {}

            def look(observation):
                seen[observation.tick] = observation.bev.copy(), numpy.stack(observation.camera)
                return -1.0, 0.0

            document["conditions"] = conditions
            wants = swerve.planner.BEV | swerve.planner.CAMERAS
            result = drive(look, suite=document, wants=wants, seeds=1)
            trace = result[0].trace()
            self.assertEqual(set(trace.weather), {conditions["weather"]})
            for tick in range(0, len(trace) - 1, 13):
                bev, cameras = seen[tick]
                self.assertTrue(numpy.array_equal(trace.bev(tick), bev), tick)
                self.assertTrue(numpy.array_equal(trace.cameras(tick), cameras), tick)
        with self.assertRaises(IndexError):
            trace.bev(len(trace))

    def test_scenario_as_a_dict(self):
        document = self.result[0].scenario()
        again = drive(suite=document)
        known = hashes(self.result)
        self.assertEqual({key: known[key] for key in hashes(again)}, hashes(again))

    def test_compare(self):
        worse = drive(hold)
        comparison = swerve.compare(self.result, worse)
        verdict = [{(o["scenario_id"], o["branch_id"]): o.passed for o in r} for r in (self.result, worse)]
        broken = {key for key, passed in verdict[0].items() if passed and not verdict[1][key]}
        found = {(flip["scenario_id"], flip["branch_id"]) for flip in comparison.broken}
        self.assertEqual(found, broken)
        self.assertEqual(len(comparison.fixed) + len(comparison.broken), len(comparison.data["flips"]))
        self.assertEqual(len(comparison.frame()), 1 + len(comparison.slices))
        self.assertLess(comparison.difference[0], 0)
        again = drive()
        self.assertEqual(swerve.compare(self.result.store, again.store).data["flips"], [])


if __name__ == "__main__":
    unittest.main()
