"""Trains the many-step teacher by flow matching on recorded clips, then on its own rollouts.

The model predicts the clean frame from a mix of noise and data at a random time; the loss weighs late
times up. After the first part of the budget a share of the streams feeds generated frames back, so that
the model learns to continue from its own errors; a stream that has lost its agents starts anew.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from export import read_any
from model import Config
from training import (
    Pool,
    Pools,
    Trainer,
    begin,
    build,
    common_arguments,
    draw_times,
    frame_loss,
    mix,
)

WEIGHT_FLOOR = 0.15


def schedule_of(steps: int) -> list[float]:
    return [i / steps for i in range(steps + 1)]


def make_config(args: argparse.Namespace) -> Config:
    joint = [1 - i % 2 for i in range(args.layers)]
    schedule = schedule_of(args.steps)
    return Config(
        args.tier,
        args.tier,
        args.width,
        args.layers,
        args.bev_channels,
        args.cam_channels,
        args.window,
        schedule,
        joint,
    )


def train(args: argparse.Namespace) -> None:
    rng, generator, device = begin(args)
    model = read_any(args.init) if args.init else build(make_config(args), device)
    model = model.to(device)
    trainer = Trainer(model, args, args.rate)
    pools = Pools(args, {"window": model.config.window}, rng, device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    while trainer.budget.spent < 1:
        pools.set_roll(args.roll if trainer.budget.spent > args.roll_from else 0.0)
        pool, batch = pools.next()
        t = draw_times(len(batch.streams), generator).to(device)
        x = tuple(mix(n, w, t) for n, w in zip(batch.noise, batch.want))
        out = model.denoise(*x, t, model.prepare(batch.tick))
        weight = 1 / (1 - t).clamp(min=WEIGHT_FLOOR)
        trainer.step(
            (frame_loss(out, batch.want, batch.weights, args.camera_weight) * weight).mean(),
            len(batch.streams),
        )
        roll(pools, pool, trainer, args.roll_steps)
        trainer.report(60, f"rolled {np.mean([s.rolled for s in batch.streams]):.1f}")
    trainer.save()


def roll(pools: Pools, pool: Pool, trainer: Trainer, steps: int) -> None:
    """The averaged model generates the next frame of the streams that go on."""
    chosen = pool.going_on()
    if chosen:
        batch = pools.batch(pool, [pool.streams[i] for i in chosen])
        out = trainer.average.model.sample(batch.tick, batch.noise, schedule_of(steps))
        pool.commit(chosen, out, batch.want[0], batch.truth)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common_arguments(parser)
    parser.add_argument("--tier", default="teacher")
    parser.add_argument("--init", type=Path, default=None, help="checkpoint to go on from")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--bev-channels", type=int, default=64)
    parser.add_argument("--cam-channels", type=int, default=32)
    parser.add_argument("--window", type=int, default=6)
    parser.add_argument("--steps", type=int, default=6, help="of the sampler")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--roll", type=float, default=0.5, help="share of streams that roll on")
    parser.add_argument(
        "--roll-from", type=float, default=0.4, help="from this part of the budget on"
    )
    parser.add_argument("--roll-steps", type=int, default=2)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
