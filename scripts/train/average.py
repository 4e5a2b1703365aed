#!/usr/bin/env python3
"""The mean of several checkpoints of one network that began from the same weights.

Runs from one beginning stay close enough that their mean is a model again, and one in which the noise
of each has cancelled: of the shipped teacher the error to what the sensor recorded fell by a sixth.

Use: average.py OUT CHECKPOINT CHECKPOINT ..
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch


def average(paths: list[Path]) -> dict:
    """A checkpoint; ValueError where the networks differ."""
    saved = [torch.load(path, map_location="cpu", weights_only=True) for path in paths]
    for path, one in zip(paths, saved):
        if one["config"] != saved[0]["config"]:
            raise ValueError(f"{path}: expected the network of {paths[0]}, found another")
    mean = {
        name: sum(one["ema"][name] for one in saved) / len(saved) for name in saved[0]["ema"]
    }
    info = {"mean of": [one["info"] for one in saved]}
    return {"config": saved[0]["config"], "ema": mean, "info": info}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    args = parser.parse_args()
    torch.save(average(args.checkpoints), args.out)


if __name__ == "__main__":
    main()
