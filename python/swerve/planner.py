"""Planners in Python: the classes of the planner client, which is the module swerve_planner.

A planner class is given to swerve.run() as it is, or served as a program of its own:

    swerve.planner.run(MyPlanner)       # in my_planner.py, for --planner "exec:python3 my_planner.py"
"""

from swerve_planner import (
    BEV,
    CAMERAS,
    BatchPlanner,
    Episode,
    LogPoint,
    Observation,
    Planner,
    RoutePoint,
    World,
    run,
)

__all__ = [
    "BEV",
    "CAMERAS",
    "BatchPlanner",
    "Episode",
    "LogPoint",
    "Observation",
    "Planner",
    "RoutePoint",
    "World",
    "run",
]
