"""swerve.run(), swerve.load() and swerve.compare(): the commands of the same names."""

import contextlib
import json
import os
import tempfile

from swerve import _program, _served
from swerve.comparison import Comparison
from swerve.results import Result, Store

_DONE = (0, 1, 6)


@contextlib.contextmanager
def _suite_file(suite):
    """A path or name as it is; a mapping as a file for as long as this lasts."""
    if isinstance(suite, (str, os.PathLike)):
        yield os.fspath(suite)
        return
    with tempfile.TemporaryDirectory(prefix="swerve-") as folder:
        path = os.path.join(folder, "suite.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(suite, file)
        yield path


def run(
    suite,
    planner="builtin:reference",
    *,
    world="auto",
    seeds=None,
    store=None,
    wants=0,
    workers=None,
    report=None,
    gate_rate=None,
    deadline_ms=None,
    options=(),
):
    """Drives a suite in closed loop and returns its Result.

    suite       a file, the name of one of the library ("smoke", "ncap", "longtail"), or a scenario or
                suite as a dict
    planner     a spec ("builtin:reference", "exec:python3 my_planner.py", "plugin:./mine.so"); a
                function of an observation that returns (accel_mps2, steer_rad); or a class derived
                from swerve.planner.Planner or BatchPlanner
    world       "auto", "replay", "object", "student", "teacher" or "golden:NAME"
    seeds       N drives seeds 1 to N, 0 is the nominal drive; None: the suite's own
    store       a path or URL; None: a store that goes when the result does
    wants       what a function is shown: swerve.planner.BEV, CAMERAS or both
    workers     processes that simulate; None: one per core
    report      a file for the HTML report
    gate_rate   the rate of passes that Result.gate_met asks for
    deadline_ms longest answer of a planner
    options     further words for `swerve run`

    Raises PlannerError when the planner cannot start, fails in every rollout, or jobs are dead; its
    `result` has the outcomes that there are. Functions are driven anew each time; everything else is
    simulated once per store.
    """
    home = Store(store)
    with contextlib.ExitStack() as stack:
        words = ["run", stack.enter_context(_suite_file(suite)), "--json", "--store", home.url]
        words += ["--world", world]
        spec = planner
        if _served.is_served(planner):
            served = stack.enter_context(_served.Served(planner, wants))
            spec = served.spec
            # One object answers for sessions by their numbers, which are those of one process.
            workers = 1 if served.alone else workers
        words += ["--planner", spec]
        if seeds is not None:
            words += ["--nominal"] if seeds == 0 else ["--seeds", str(seeds)]
        for name, value in (
            ("--workers", workers),
            ("--report", report),
            ("--gate-rate", gate_rate),
            ("--planner-deadline-ms", deadline_ms),
        ):
            if value is not None:
                words += [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
        code, summary, said = _program.call_json([*words, *options], _DONE)
    result = Result(home, summary) if summary is not None else None
    if code == 6 or result is None:
        error = _program.error_of(code, said + _first_fault(result))
        error.result = result
        raise error
    return result


def _first_fault(result):
    """Text of a run's first planner error, a traceback where there is one."""
    for outcome in result or ():
        if outcome["verdict"] == "planner_error":
            return f"\n{outcome['scenario_id']}: {outcome['error']}"
    return ""


def load(store, suite=None):
    """The Result of a suite that a store (a path or URL) holds; None: the newest one."""
    home = Store(store)
    words = ["report", "--store", home.url, "--json"]
    _, summary, _ = _program.call_json(words[:1] + ([suite] if suite else []) + words[1:])
    return Result(home, summary)


def compare(a, b, *, store=None, suite=None, report=None):
    """Points in which `b` does better and worse than `a`: a Comparison.

    `a` and `b` are Results, or what `swerve compare` takes: two stores, or with `store` two suites of
    it or two planners of `suite`. `report` is a file for the page with both sides' pictures.
    """
    words = ["compare", "--json"]
    if isinstance(a, Result) != isinstance(b, Result):
        raise TypeError("compare: expected two Results, or two names")
    if isinstance(a, Result):
        words += _sides(a, b)
    else:
        words += [os.fspath(a), os.fspath(b)]
        words += ["--store", os.fspath(store)] if store is not None else []
        words += ["--suite", suite] if suite is not None else []
    if report is not None:
        words += ["--report", os.fspath(report)]
    _, found, _ = _program.call_json(words)
    return Comparison(found)


def _sides(a, b):
    """The words that name two Results: stores, suites of one store, or planners of one suite."""
    if a.store != b.store:
        return [a.store, b.store]
    if a.suite != b.suite:
        return [a.suite, b.suite, "--store", a.store]
    return [a.planner, b.planner, "--store", a.store, "--suite", a.suite]
