"""Writes the tiny random model and its reference results that the engine's tests compare against.

tiny.safetensors is a complete model of 64 channels and 2 layers with seeded random weights, none of
them zero by construction, so that every term of engine/model.md counts. tiny_expected.safetensors
holds what this implementation computes from it in double precision, for three ticks:

  map.*     degree map, 2 pages whose windows are (-3, -6) and (-4, -6), present window (-3, -6)
  none.*    degree none, the same pages, present window (-4, -5)
  agents.*  degree agents, no pages, present window (-3, -6)

Inputs are procedural: byte k of buffer b is ((k * 2654435761 + b * 40503) mod 2^32) >> 24, with b = 0
layout_bev, 1 layout_cameras, 2 and 3 the frames of page 0 and 1 (BEV bytes, then camera bytes);
cond[k] = ((k * 7 + 3) mod 11) / 11, but cond[0..2] is the one-hot degree; ego is at (6.0, -3.0), heading
0.3; seed 1234, tick 7. Tensors are named <tick>.<step>.<probe>, flattened in the order of model.md;
all but `final` keep every 61st element, from element 0. <tick>.frame holds every 61st byte of the
generated frame (BEV, then cameras), as U8; a byte may differ by one where rounding decides.
<tick>.given holds every 61st byte of what stands in the BEV context's layout slot, as U8, exactly.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from export import write_model
from model import (
    BEV,
    CAM,
    CAM_COLS,
    CAM_ROWS,
    CAMERAS,
    COND,
    SIDE,
    Config,
    Tick,
    WorldModel,
    import_tensors,
    layout_slot,
    quantise,
    previous_frame,
)
from noise import BEV_COUNT, CAM_COUNT, philox_noise

STRIDE = 61
FULL = ("final",)


def procedural(buffer: int, count: int) -> Tensor:
    k = np.arange(count, dtype=np.uint64)
    words = (k * np.uint64(2654435761) + np.uint64(buffer * 40503)) & np.uint64(0xFFFFFFFF)
    return torch.from_numpy((words >> np.uint64(24)).astype(np.uint8))


def frame(buffer: int) -> tuple[Tensor, Tensor]:
    x = procedural(buffer, BEV_COUNT + CAM_COUNT)
    return x[:BEV_COUNT].view(1, 1, SIDE, SIDE, BEV), x[BEV_COUNT:].view(
        1, 1, CAMERAS, CAM_ROWS, CAM_COLS, CAM
    )


def make_tick(degree: int, pages: int, window: int, place: tuple[int, int] = (-3, -6)) -> Tick:
    cond = torch.tensor([((k * 7 + 3) % 11) / 11 for k in range(COND)], dtype=torch.float64)
    cond[:3] = 0
    cond[degree] = 1
    frames = [frame(2), frame(3)] + [frame(2)] * (window - 2)
    places = [[-3, -6], [-4, -6]] + [[0, 0]] * (window - 2)
    return Tick(
        torch.tensor([degree]),
        cond.float().double()[None],
        torch.tensor([place]),
        torch.tensor([[6.0, -3.0, 0.3]], dtype=torch.float64),
        procedural(0, BEV_COUNT).view(1, SIDE, SIDE, BEV),
        procedural(1, CAM_COUNT).view(1, CAMERAS, CAM_ROWS, CAM_COLS, CAM),
        torch.cat([f[0] for f in frames], 1),
        torch.cat([f[1] for f in frames], 1),
        torch.tensor([places]),
        torch.tensor([[i < pages for i in range(window)]]),
    )


def random_weights(model: WorldModel, seed: int) -> None:
    """Every tensor random, scaled so that activations stay of order one."""
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        fan_in = p[0].numel() if p.dim() > 1 and name.endswith("weight") else 1
        scale = (1.0 / fan_in) ** 0.5 if fan_in > 1 else 0.2
        values = torch.randn(p.shape, generator=g) * scale
        if name.endswith("tnorm.weight"):
            values = 1 + values
        p.data.copy_(values)


def expected(model: WorldModel, name: str, tick: Tick) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}

    def probe(step: int, what: str, x: Tensor) -> None:
        flat = x.detach().reshape(-1)
        out[f"{name}.{step}.{what}"] = (
            (flat if what in FULL else flat[::STRIDE]).float().contiguous()
        )

    noise = tuple(x[None].double() for x in philox_noise(1234, 7))
    bev, cam = model.sample(tick, noise, probe=probe)
    frame_bytes = torch.cat([quantise(bev).reshape(-1), quantise(cam).reshape(-1)])
    out[f"{name}.frame"] = frame_bytes[::STRIDE].contiguous()
    given = layout_slot(tick, *previous_frame(tick, 0)).reshape(-1)
    out[f"{name}.given"] = given[::STRIDE].contiguous()
    return out


def main() -> None:
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=root / "tests" / "engine" / "data")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    config = Config(
        "tiny",
        "student",
        64,
        2,
        32,
        32,
        3,
        [0.0, 0.4, 1.0],
        [1, 0],
        {"agents": 100, "map": 10, "none": 5},
    )
    model = WorldModel(config, torch.float64)
    random_weights(model, 20260817)
    write_model(model, args.out / "tiny.safetensors", "random weights for tests")
    import_tensors(model, load_file(args.out / "tiny.safetensors"))
    model.double()
    results = (
        expected(model, "map", make_tick(1, 2, 3))
        | expected(model, "none", make_tick(2, 2, 3, (-4, -5)))
        | expected(model, "agents", make_tick(0, 0, 3))
    )
    save_file(results, args.out / "tiny_expected.safetensors", {"stride": str(STRIDE)})
    for key, value in results.items():
        x = value.float()
        print(
            f"{key:24s} {tuple(value.shape)!s:12s} mean {x.mean():8.4f} rms {x.pow(2).mean().sqrt():8.4f}"
        )


if __name__ == "__main__":
    main()
