#!/usr/bin/env python3
"""Times the world model in PyTorch beside `swerve bench engine`, alternated, on the same shapes.

Both sides generate frames from a full memory with the same number of threads. PyTorch gets every
advantage that its user could take: all rollouts as one batch, K/V of earlier pages and the noise ready
before the clock starts, eager and compiled, single precision and bfloat16; the best of these counts.
Its frame still becomes bytes and its page's K/V are made, as the engine does.

Use: bench_torch.py [--shape 128x4] [--slots 1,8,32] [--threads 2] [--rounds 5] [--no-compile]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "train"))

import torch  # noqa: E402

from model import CAM_COLS, CAM_ROWS, CAMERAS, BEV, CAM, COND, SIDE, Config, Tick, WorldModel, quantise  # noqa: E402


def config_of(shape: str) -> Config:
    """The same shape as the engine's random weights (engine/bench/bench_model.h)."""
    width, layers = (int(x) for x in shape.split("x"))
    wide = 64 if width >= 192 else 32
    joint = [1 - i % 2 for i in range(layers)]
    return Config("random", "student", width, layers, wide, 32, 6, [0.0, 0.5, 1.0], joint)


def make_tick(slots: int, window: int) -> Tick:
    g = torch.Generator().manual_seed(1)

    def bytes_of(*shape: int) -> torch.Tensor:
        return torch.randint(0, 256, shape, generator=g, dtype=torch.uint8)

    return Tick(
        torch.zeros(slots, dtype=torch.long), torch.rand(slots, COND, generator=g),
        torch.zeros(slots, 2, dtype=torch.long), torch.tensor([[16.0, 48.0, 0.1]]).repeat(slots, 1),
        bytes_of(slots, SIDE, SIDE, BEV), bytes_of(slots, CAMERAS, CAM_ROWS, CAM_COLS, CAM),
        bytes_of(slots, window, SIDE, SIDE, BEV), bytes_of(slots, window, CAMERAS, CAM_ROWS, CAM_COLS, CAM),
        torch.zeros(slots, window, 2, dtype=torch.long), torch.ones(slots, window, dtype=torch.bool),
    )


class Runner:
    """One way to run the model in PyTorch."""

    def __init__(self, config: Config, dtype: torch.dtype, compiled: bool, slots: int):
        torch.manual_seed(0)
        self.name = f"{'compiled' if compiled else 'eager'} {'bf16' if dtype == torch.bfloat16 else 'fp32'}"
        self.model = WorldModel(config, dtype).eval().requires_grad_(False)
        if dtype == torch.bfloat16:
            self.lower(dtype)
        self.tick = make_tick(slots, config.window)
        self.noise = (torch.randn(slots, SIDE, SIDE, BEV), torch.randn(slots, CAMERAS, CAM_ROWS, CAM_COLS, CAM))
        self.memory, self.there = self.model.recollect(self.tick, self.model.pages(self.tick))
        self.model.recollect = lambda tick, z: (self.memory, self.there)
        self.zeros = torch.zeros(slots, 1)  # stands for the pages' z, which the line above ignores
        self.call = torch.compile(self.generate) if compiled else self.generate

    def lower(self, dtype: torch.dtype) -> None:
        """Weights that are only used in products of that type are kept in it."""
        for name, p in self.model.named_parameters():
            if not name.startswith(("time", "ada", "final", "pos")) and ".mod." not in name:
                p.data = p.data.to(dtype)

    def generate(self, noise):
        bev, cam = self.model.sample(self.tick, noise, z=self.zeros)
        frame = quantise(bev), quantise(cam)
        z = self.model.page(*frame)
        return frame, [block.remember(z) for block in self.model.blocks]

    @torch.no_grad()
    def time(self) -> float:
        start = time.perf_counter()
        self.call(self.noise)
        return time.perf_counter() - start


def engine_ticks(args: argparse.Namespace, slots: int, precision: str) -> float:
    command = [args.swerve, "bench", "engine", "--json", "--shape", args.shape, "--slots", str(slots),
               "--threads", str(args.threads), "--ticks", str(max(args.ticks, slots)), "--precision", precision]
    out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return max(r["value"] for r in out["results"] if r["unit"] == "ticks/s")


def compare(args: argparse.Namespace, slots: int) -> list[str]:
    config = config_of(args.shape)
    kinds = [(d, c) for d in (torch.bfloat16, torch.float32) for c in ((False, True) if args.compile else (False,))]
    runners = [Runner(config, d, c, slots) for d, c in kinds]
    rates: dict[str, list[float]] = {}
    for runner in runners:
        runner.time()  # compiles, warms up
        runner.time()
    for _ in range(args.rounds):
        for precision in ("int8", "bf16", "fp32"):
            rates.setdefault(f"swerve {precision}", []).append(engine_ticks(args, slots, precision))
        for runner in runners:
            rates.setdefault(runner.name, []).append(slots / min(runner.time() for _ in range(3)))
    best = {name: sorted(values)[len(values) // 2] if args.median else max(values) for name, values in rates.items()}
    theirs = max(v for k, v in best.items() if not k.startswith("swerve"))
    return [f"| {slots} | {name} | {value:.2f} | {value / theirs:.2f} |" for name, value in best.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--swerve", default=str(ROOT / "build" / "worker" / "swerve"))
    parser.add_argument("--shape", default="128x4", help="WIDTHxLAYERS")
    parser.add_argument("--slots", default="1,8,32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--median", action="store_true", help="medians instead of the best of the rounds")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{args.shape}, {args.threads} threads, {'median' if args.median else 'best'} of {args.rounds} alternated rounds\n")
    print("| slots | what | ticks/s | to the best PyTorch |\n|---|---|---|---|")
    for slots in (int(s) for s in args.slots.split(",")):
        print("\n".join(compare(args, slots)), flush=True)


if __name__ == "__main__":
    main()
