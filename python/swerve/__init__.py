"""Swerve from Python: run suites, read results, compare planners, train in a vector environment.

    import swerve

    result = swerve.run("smoke", planner=lambda seen: (0.0, 0.0))
    print(result.pass_rate, result.passed)
    frame = result.frame()                      # pandas, one row per outcome

The package drives the `swerve` program that is installed with it; nothing here simulates or judges
by itself. `swerve.planner` has the classes for planners, `swerve.gym` the Gymnasium environments
(imported by name, for they need gymnasium). docs/python.md describes all of it.
"""

from swerve import planner
from swerve._program import (
    BusyError,
    DeviceError,
    Error,
    InputError,
    PlannerError,
    StoreError,
    UsageError,
    program,
    version as _version,
)
from swerve._run import compare, load, run
from swerve.comparison import Comparison
from swerve.results import Outcome, Result, Trace

__all__ = [
    "BusyError",
    "Comparison",
    "DeviceError",
    "Error",
    "InputError",
    "Outcome",
    "PlannerError",
    "Result",
    "StoreError",
    "Trace",
    "UsageError",
    "compare",
    "load",
    "planner",
    "program",
    "run",
]


def __getattr__(name):
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'swerve' has no attribute {name!r}")
