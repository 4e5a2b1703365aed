"""Steps per second of processor time of the environments, beside the bare C loop under them and Gymnasium's own batching.

usage: bench_env.py [--suite NAME] [--rounds N] [--seconds S]

Of each number of environments and each observation, in turns, N rounds of S processor seconds: the C function
alone (same drives, nothing but it called), SwerveVectorEnv with and without copies, and SyncVectorEnv of
single ones. Actions are drawn beforehand. Prints medians, and ratios to the C function as medians of the
rounds' ratios.
"""

import argparse
import itertools
import statistics
import time

import numpy
from gymnasium.vector import SyncVectorEnv

from swerve import _native
from swerve.gym import SwerveEnv, SwerveVectorEnv

PARTS = {"ego, route": ("ego", "route"), "and bev": ("ego", "route", "bev")}


def actions_of(count):
    random = numpy.random.default_rng(1)
    return random.uniform([-1.0, -0.01], [1.5, 0.01], (16, count, 2)).astype(numpy.float32)


def per_second(step, count, seconds):
    """Environment steps of step(i) in a second of this process's processor time: other work on the
    machine takes turns with it, but is not counted."""
    began = time.process_time()
    done = 0
    for index in itertools.count():
        step(index)
        done += count
        if time.process_time() - began > seconds:
            return done / (time.process_time() - began)


def bare(suite, count, parts, threads):
    """The C function, and the resets that its drives need."""
    wants = _native.BEV if "bev" in parts else 0
    batch = _native.Batch(suite, count, "object", threads, wants)
    random = numpy.random.default_rng(2)
    actions = actions_of(count)

    def begin(which):
        scenarios = random.integers(len(batch.scenarios), size=len(which)).tolist()
        batch.reset(which, scenarios, random.integers(1, 2**31, size=len(which)).tolist())

    def step(index):
        batch.actions[:] = actions[index % 16]
        batch.step()
        ended = numpy.flatnonzero(batch.end != _native.GOES_ON)
        if len(ended):
            begin(ended.tolist())

    begin(list(range(count)))
    return step


def through(env):
    env.reset(seed=1)
    actions = actions_of(env.num_envs)
    return lambda index: env.step(actions[index % 16])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="smoke")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print("envs observation   C, steps/s  copy=False   copy=True  SyncVectorEnv")
    for label, parts in PARTS.items():
        for count in options.counts:
            ways = {
                "C": bare(options.suite, count, parts, options.threads),
                "shared": through(
                    SwerveVectorEnv(options.suite, count, observation=parts, copy=False, threads=options.threads)
                ),
                "copied": through(
                    SwerveVectorEnv(options.suite, count, observation=parts, threads=options.threads)
                ),
            }
            if count <= 64:
                one = lambda: SwerveEnv(options.suite, observation=parts)  # noqa: E731
                ways["sync"] = through(SyncVectorEnv([one] * count))
            for step in ways.values():
                per_second(step, count, options.seconds)
            rounds = [
                {name: per_second(step, count, options.seconds) for name, step in ways.items()}
                for _ in range(options.rounds)
            ]
            cells = []
            for name in ("shared", "copied", "sync"):
                if name in ways:
                    figure = statistics.median(r[name] for r in rounds)
                    ratio = statistics.median(r[name] / r["C"] for r in rounds)
                    cells.append(f"{figure:8.0f} {ratio:.2f}")
            base = statistics.median(r["C"] for r in rounds)
            print(f"{count:4} {label:12} {base:12.0f}  {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
