#!/usr/bin/env python3
"""Trainer of `swerve model retrain` (docs/models.md#retraining): goes on from a student's weights on shards of
scenarios that it got wrong, until clips of held-out scenarios get no better.

    retrain.py --data DIR --base FILE --teacher FILE --state DIR --out FILE --report FILE --seconds S --seed N
    retrain.py --check

DIR holds train/train-*.safetensors and held-out/heldout-*.safetensors. The recipe is distill_student.py's:
all sampler steps as in use, a share of the batches with the teacher's frames as target. Every LOOK seconds
of training the averaged weights are judged on the same held-out batches with the same noise; the best are
kept, and PATIENCE looks without a better one end the training. `--out` gets the best, `--report` the errors.
--state keeps what a run that was killed goes on from: the newest look, with the seconds that it took.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import sys
import sysconfig
import time
from pathlib import Path

NEEDED = ("numpy", "safetensors", "torch")
LOOK_SHARE, LOOK_LEAST_S, PATIENCE, BATCHES = 0.05, 15.0, 5, 6


def lacking() -> str:
    """A sentence that says what to install; "" where nothing lacks."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    python, before, after = shlex.quote(sys.executable), "", ""
    if (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").exists():  # as Debian's is
        before = f"{python} -m venv ~/swerve-train && "
        python, after = "~/swerve-train/bin/python3", ", then again with ~/swerve-train/bin first in PATH"
    lock = shlex.quote(str(Path(__file__).resolve().parent / "requirements.txt"))
    return (
        f"retrain: {sys.executable} lacks {', '.join(missing)}, by which it trains: "
        f"{before}{python} -m pip install --require-hashes -r {lock}{after}"
    )


class Judge:
    """Error of a model in held-out clips: the same batches and noise at each look."""

    def __init__(self, args: argparse.Namespace, device):
        import numpy as np

        from training import Pools

        held_out = argparse.Namespace(**vars(args))
        held_out.data = str(args.data / "held-out" / "heldout-*.safetensors")
        recipe = {"window": args.window, "full_history": 0.5, "one_page": 0.3, "roll": 0.0}
        pools = Pools(held_out, recipe, np.random.default_rng(args.seed + 1), device)
        self.batches, self.weight = [pools.next()[1] for _ in range(BATCHES)], args.camera_weight

    def error(self, model) -> float:
        import torch

        from distill_student import unrolled

        with torch.no_grad():
            losses = [
                unrolled(model, b.tick, b.noise, b.want, b.weights, self.weight)[0]
                for b in self.batches
            ]
        return float(sum(losses) / len(losses))


class Course:
    """The training so far, kept so that it goes on after a kill."""

    def __init__(self, state: Path, base_error: float):
        self.path = state / "course.pt"
        self.base_error = self.best_error = base_error
        self.seconds, self.looks, self.since_best, self.steps, self.best = 0.0, 0, 0, 0, None

    def load(self, model) -> bool:
        import torch

        if not self.path.exists():
            return False
        saved = torch.load(self.path, map_location="cpu", weights_only=True)
        model.load_state_dict(saved.pop("model"))
        for name, value in saved.items():
            setattr(self, name, value)
        return True

    def save(self, model) -> None:
        import torch

        names = ("base_error", "best_error", "seconds", "looks", "since_best", "steps", "best")
        temporary = self.path.with_suffix(".tmp")
        torch.save({name: getattr(self, name) for name in names} | {"model": model.state_dict()}, temporary)
        os.replace(temporary, self.path)

    def look(self, error: float, model) -> None:
        self.looks, self.since_best = self.looks + 1, self.since_best + 1
        if error < self.best_error:
            self.best_error, self.since_best = error, 0
            self.best = {name: value.clone() for name, value in model.state_dict().items()}


def settings(args: argparse.Namespace, more: list[str]):
    """Arguments that the parts of training.py take, with their defaults."""
    from training import common_arguments

    parser = argparse.ArgumentParser()
    common_arguments(parser)
    # Clips of what went wrong are few: more of them whole, and a rate that leaves what is learnt.
    for name, value in (("teacher-share", 0.15), ("roll", 0.7), ("full-history", 0.3), ("one-page", 0.4), ("rate", 1e-4)):
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--roll-ticks", type=int, default=10)
    data = str(args.data / "train" / "train-*.safetensors")
    words = ["--data", data, "--out", str(args.out), "--seconds", str(args.seconds), "--seed", str(args.seed)]
    return parser.parse_args(words + more)


def steps(model, teacher, pools, trainer, how, rng):
    """Training, a batch each time that it is asked for, as distill_student.py does it."""
    from distill_student import from_teacher, unrolled

    while trainer.budget.spent < 1:
        pool, batch = pools.next()
        want = from_teacher(teacher, batch) if rng.random() < how.teacher_share else batch.want
        loss, out = unrolled(
            model, batch.tick, batch.noise, want, batch.weights, how.camera_weight
        )
        trainer.step(loss, len(batch.streams))
        chosen = pool.going_on()
        if chosen:
            frames = tuple(o if o is None else o[chosen] for o in out)
            pool.commit(chosen, frames, batch.want[0][chosen], batch.truth[chosen])
        yield trainer.budget.spent >= 1


def train(args: argparse.Namespace, more: list[str]) -> None:
    from export import read_any, write_model
    from training import Pools, Trainer, begin

    how = settings(args, more)
    rng, _, device = begin(how)
    model, teacher = read_any(args.base).to(device), read_any(args.teacher).to(device).eval()
    judging = vars(how) | {"data": args.data, "window": model.config.window}
    judge = Judge(argparse.Namespace(**judging), device)
    course = Course(args.state, judge.error(model.eval()))
    if course.load(model):
        print(f"goes on after {course.seconds:.0f} s", flush=True)
    model.train()
    trainer = Trainer(model, how, how.rate)
    recipe = {
        "window": model.config.window,
        "full_history": how.full_history,
        "one_page": how.one_page,
        "roll": how.roll,
        "roll_ticks": how.roll_ticks,
    }
    pools = Pools(how, recipe, rng, device)
    print(f"held-out error {course.base_error:.6f} of the base", flush=True)
    between = max(LOOK_LEAST_S, LOOK_SHARE * args.seconds)
    began = looked = time.monotonic()
    spent, stepped, stopped = course.seconds, course.steps, "seconds"
    for last in steps(model, teacher, pools, trainer, how, rng):
        now = time.monotonic()
        if now - looked < between and not last:
            continue
        course.seconds, course.steps = spent + now - began, stepped + trainer.budget.steps
        error = judge.error(trainer.average.model)
        course.look(error, trainer.average.model)
        course.save(model)
        print(
            f"look {course.looks}: {course.seconds:.0f} s, {course.steps} steps, held-out error {error:.6f}",
            flush=True,
        )
        looked = time.monotonic()
        if course.since_best >= PATIENCE:
            stopped = "held-out"
            break
    best = read_any(args.base)
    if course.best is not None:
        best.load_state_dict(course.best)
    write_model(best, args.out, json.dumps({"retrained": args.seed, "steps": course.steps}))
    report(args.report, course, stopped)


def report(path: Path, course: Course, stopped: str) -> None:
    """Replaces the report in one step."""
    said = {
        "held_out_base": course.base_error,
        "held_out": course.best_error,
        "stopped": stopped,
        "steps": course.steps,
        "seconds": round(course.seconds, 1),
        "looks": course.looks,
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(said, indent=1) + "\n")
    os.replace(temporary, path)
    print(json.dumps(said), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="say what lacks to train, and exit 5")
    for name in ("data", "base", "teacher", "state", "out", "report"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    args, more = parser.parse_known_args()
    sentence = lacking()
    if sentence or args.check:
        if sentence:
            print(sentence, file=sys.stderr)
        return 5 if sentence else 0
    train(args, more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
