#!/usr/bin/env python3
"""Compares the engine with PyTorch on recorded scenes, tick by tick, and prints a Markdown table.

The engine drives the scenes on the history that it generates in single precision
(tests/engine/truth_dump.c), in every precision. For every tick PyTorch computes the same frame in
single precision from the same inputs: layouts and conditions of the shards, those earlier frames, the
same noise. Compared are the intermediate results of every layer and step, and the bytes of the frame.
Exits with 1 when the smallest cosine of any layer, scene, tick and step is not above its precision's gate.

Use: truth.py MODEL SHARD.. [--ticks 50] [--clips 4] [--build build]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "train"))

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch import Tensor  # noqa: E402

from data import AGENTS, MAP, NONE, Clip, Page, Shard, Stream, batch_tick  # noqa: E402
from export import read_model  # noqa: E402
from model import BEV, CAM, CAM_COLS, CAM_ROWS, CAMERAS, SIDE, quantise  # noqa: E402
from noise import BEV_COUNT, philox_noise  # noqa: E402

STRIDE = 61
GATES = {"fp32": 0.999999, "bf16": 0.9995, "int8": 0.999}
DEGREES = {"agents": AGENTS, "map": MAP, "none": NONE}


class Account:
    """Relative errors and cosines of one probe, one value per scene, tick and step."""

    def __init__(self) -> None:
        self.errors: list[Tensor] = []
        self.cosines: list[Tensor] = []

    def add(self, found: Tensor, truth: Tensor) -> None:
        """[scenes][values] each."""
        found, truth = found.double(), truth.double()
        size = truth.norm(dim=1)
        self.errors.append((found - truth).norm(dim=1) / size)
        self.cosines.append((found * truth).sum(1) / (size * found.norm(dim=1)))

    def least(self) -> float:
        """The smallest cosine; NaN if any is."""
        return float(torch.cat(self.cosines).min())

    def row(self) -> str:
        e, c = torch.cat(self.errors), 1 - torch.cat(self.cosines)
        return f"{e.mean():.1e} | {e.max():.1e} | {1 - c.mean():.7f} | {1 - c.max():.7f}"


def split_frame(frame: Tensor) -> tuple[Tensor, Tensor]:
    """A frame's bytes as BEV and cameras."""
    return frame[:BEV_COUNT].view(SIDE, SIDE, BEV), frame[BEV_COUNT:].view(CAMERAS, CAM_ROWS, CAM_COLS, CAM)


def page_of(clip: Clip, frame: Tensor, tick: int) -> Page:
    bev, cam = split_frame(frame)
    return Page(bev, cam, clip.get("window", tick).long())


class Comparison:
    """One precision in one degree: accounts per probe, and what became of the bytes."""

    def __init__(self, dump: dict[str, Tensor]):
        self.dump, self.accounts = dump, {}
        self.bytes, self.different, self.largest = 0, 0, 0

    def probe(self, tick: int, step: int, name: str, truth: Tensor) -> None:
        self.accounts.setdefault(name, Account()).add(self.dump[name][:, tick, step], truth)

    def frame(self, tick: int, truth: Tensor) -> None:
        gap = (truth.int() - self.dump["frame"][:, tick].int()).abs()
        self.bytes += gap.numel()
        self.different += int((gap > 0).sum())
        self.largest = max(self.largest, int(gap.max()))

    def table(self, title: str) -> str:
        share = 100 * self.different / self.bytes
        lines = [f"**{title}**: {share:.3f}% of the frames' bytes differ, by at most {self.largest}\n"]
        lines += ["| layer | relative error, mean | max | cosine, mean | min |", "|---|---|---|---|---|"]
        return "\n".join(lines + [f"| {name} | {account.row()} |" for name, account in self.accounts.items()]) + "\n"

    def missed(self, gate: float) -> list[str]:
        """The layers whose smallest cosine is not above the gate."""
        return [f"{name} {account.least():.6f}" for name, account in self.accounts.items() if not account.least() > gate]


def compare(model, clips: list[Clip], degree: int, history: Tensor, comparisons: list[Comparison], ticks: int) -> None:
    """Runs PyTorch once per tick for all comparisons."""
    window = model.config.window
    for tick in range(ticks):
        streams = [
            Stream(clip, tick, degree, [page_of(clip, history[i, k], k) for k in range(tick - 1, max(-1, tick - 1 - window), -1)])
            for i, clip in enumerate(clips)
        ]
        noise = [philox_noise(int(clip.shard.tensors["clip"][clip.row, 0]), tick) for clip in clips]

        def probe(step: int, name: str, x: Tensor) -> None:
            truth = x.reshape(len(clips), -1)[:, ::STRIDE]
            for comparison in comparisons:
                comparison.probe(tick, step, name, truth)

        bev, cam = model.sample(batch_tick(streams, window), tuple(torch.stack(x) for x in zip(*noise)), probe=probe)
        frame = torch.cat([quantise(bev).flatten(1), quantise(cam).flatten(1)], 1)
        for comparison in comparisons:
            comparison.frame(tick, frame)


def drive(args: argparse.Namespace, precision: str, degree: str, history: str, out: Path) -> dict[str, Tensor]:
    command = [args.build / "tests" / "engine" / "truth_dump", args.model, precision, degree, args.ticks, args.clips, history, out, *args.shards]
    subprocess.run([str(x) for x in command], check=True)
    return load_file(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("shards", type=Path, nargs="+")
    parser.add_argument("--ticks", type=int, default=50)
    parser.add_argument("--clips", type=int, default=4, help="of each shard")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--degrees", default="agents,map,none")
    args = parser.parse_args()
    clips = [Clip(shard, row) for shard in map(Shard, args.shards) for row in range(args.clips)]
    model = read_model(args.model, torch.float32)
    print(f"{args.model.name}, {len(clips)} scenes, {args.ticks} ticks each, {len(model.config.schedule) - 1} steps a tick; PyTorch in fp32\n")
    missed: list[str] = []
    for degree in args.degrees.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            own = Path(scratch) / "fp32"
            dumps = [drive(args, name, degree, "own" if name == "fp32" else str(own), Path(scratch) / name) for name in GATES]
            comparisons = [Comparison(dump) for dump in dumps]
            compare(model, clips, DEGREES[degree], dumps[0]["frame"], comparisons, args.ticks)
        for (name, gate), comparison in zip(GATES.items(), comparisons):
            print(comparison.table(f"{name}, {degree}"), flush=True)
            missed += [f"{name}, {degree}: {layer}, expected above {gate}" for layer in comparison.missed(gate)]
    for line in missed:
        print(f"truth.py: the smallest cosine of {line}", file=sys.stderr)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
