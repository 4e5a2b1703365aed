"""Trains a model on its own rollouts, the student with its teacher's frames among the targets.

First a model learns its steps from recorded clips (train_teacher.py, for a student with --tier student;
give the checkpoint with --init). Here it then takes all its sampler steps as in use, from noise to frame,
each step's prediction judged against one target:

  with --teacher, on a share of the batches, in the degree `agents`, the frame that the teacher samples
  from the same noise in the same context, so that a given noise means one frame;
  else the recorded frame.

The frame that comes out is fed back, so the contexts are the model's own (self-forcing); a rollout that
has lost its agents starts anew. No extra pass is needed to roll on. The teacher's own last stage is this
one without --teacher.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from data import AGENTS
from export import read_any
from model import Tick, WorldModel
from training import Batch, Pools, Trainer, Weights, begin, common_arguments, frame_loss

Frames = tuple[Tensor, Tensor | None]


def unrolled(
    model: WorldModel, tick: Tick, noise: Frames, want: Frames, weights: Weights, cam_weight: float
) -> tuple[Tensor, Frames]:
    """All steps of the sampler with gradients within each; the loss, and the frame that came out."""
    times = model.config.schedule
    ready = model.prepare(tick)
    x, losses, out = noise, [], noise
    for n in range(len(times) - 1):
        t = torch.full((x[0].shape[0],), times[n], device=x[0].device)
        out = model.denoise(*x, t, ready)
        losses.append(frame_loss(out, want, weights, cam_weight).mean() / max(0.2, 1 - times[n]))
        share = (times[n + 1] - times[n]) / (1 - times[n])
        x = tuple(a if a is None else a + (b.detach() - a) * share for a, b in zip(x, out))
    return sum(losses) / len(losses), tuple(o if o is None else o.detach() for o in out)


def train(args: argparse.Namespace) -> None:
    rng, _, device = begin(args)
    teacher = read_any(args.teacher).to(device).eval() if args.teacher else None
    model = read_any(args.init).to(device)
    trainer = Trainer(model, args, args.rate)
    recipe = {
        "window": model.config.window,
        "full_history": args.full_history,
        "one_page": args.one_page,
        "roll": args.roll,
        "roll_ticks": args.roll_ticks,
    }
    pools = Pools(args, recipe, rng, device)
    while trainer.budget.spent < 1:
        pool, batch = pools.next()
        want = batch.want
        if teacher and rng.random() < args.teacher_share:
            want = from_teacher(teacher, batch)
        loss, out = unrolled(
            model, batch.tick, batch.noise, want, batch.weights, args.camera_weight
        )
        trainer.step(loss, len(batch.streams))
        chosen = pool.going_on()
        if chosen:
            pool.commit(
                chosen,
                tuple(o if o is None else o[chosen] for o in out),
                batch.want[0][chosen],
                batch.truth[chosen],
            )
        trainer.report(60, f"rolled {np.mean([s.rolled for s in batch.streams]):.1f}")
    trainer.save()


def from_teacher(teacher: WorldModel, batch: Batch) -> Frames:
    """The teacher's frames where it is given the agents; where it must move them, the record is better."""
    out = teacher.sample(batch.tick, batch.noise)
    given = (batch.tick.degree == AGENTS).view(-1, 1, 1, 1)
    bev = torch.where(given, out[0].clamp(-1, 1), batch.want[0])
    if out[1] is None:
        return bev, None
    return bev, torch.where(given[..., None], out[1].clamp(-1, 1), batch.want[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common_arguments(parser)
    parser.add_argument("--teacher", type=Path, default=None)
    parser.add_argument("--init", type=Path, required=True, help="the model after its first phase")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument(
        "--teacher-share", type=float, default=0.15, help="share of batches with teacher targets"
    )
    parser.add_argument("--roll", type=float, default=0.7)
    parser.add_argument("--roll-ticks", type=int, default=10)
    parser.add_argument("--full-history", type=float, default=0.3)
    parser.add_argument("--one-page", type=float, default=0.4)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
