"""Checks model.moved_frame against a plain loop over cells, byte by byte, on random frames.

Use: check_moved.py; exits with 1 where a byte differs.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from model import BEV, DEGREES, Tick, bev_context, latent, moved_frame


def nearest(total: int, mass: int) -> int:
    """total / mass to the nearest integer, halves away from zero."""
    size = (2 * abs(total) + mass) // (2 * mass)
    return size if total >= 0 else -size


def slow(f: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """One frame, cell by cell."""
    side = f.shape[0]
    cells, places = {}, {}
    for r, c, s in np.argwhere((f[..., :4] > 0) & valid[..., None]).tolist():
        a, b = (int(x) - 128 for x in f[r, c, 20:])
        if abs(a) <= 2 and abs(b) <= 2:
            a = b = 0
        o, vru = int(f[r, c, s]), int(f[r, c, s + 4])
        q, g = divmod(20 * (2 * r + (s >> 1)) + a, 20)
        p, h = divmod(20 * (2 * c + (s & 1)) + b, 20)
        for y, wy in ((q, 20 - g), (q + 1, g)):
            for x, wx in ((p, 20 - h), (p + 1, h)):
                if 0 <= y < 2 * side and 0 <= x < 2 * side:
                    w = wy * wx
                    have = cells.get((y, x), (0, 0))
                    cells[y, x] = have[0] + w * o, have[1] + w * vru
                    m = places.get((y // 2, x // 2), (0, 0, 0))
                    m = m[0] + w * o, m[1] + w * o * a, m[2] + w * o * b
                    places[y // 2, x // 2] = m
    out = np.zeros_like(f)
    out[..., 8:20] = f[..., 8:20] * valid[..., None]
    out[..., 20:] = 128
    for (y, x), sums in cells.items():
        s = 2 * (y & 1) + (x & 1)
        out[y // 2, x // 2, [s, s + 4]] = [min(255, (t + 200) // 400) for t in sums]
    for (r, c), (mass, *speed) in places.items():
        if mass:
            out[r, c, 20:] = [128 + nearest(t, mass) for t in speed]
    return out


def random_frames(rng: np.random.Generator, count: int, side: int, share: float) -> np.ndarray:
    f = rng.integers(0, 256, (count, side, side, BEV), np.uint8)
    f[..., :4] *= rng.random((count, side, side, 4)) < share
    calm = rng.random((count, side, side)) < 0.5
    f[calm, 20:] = rng.integers(125, 132, (int(calm.sum()), 2), np.uint8)
    return f


def check_frames(rng: np.random.Generator) -> None:
    for share in (0.0, 0.02, 0.3, 1.0):
        f = random_frames(rng, 2, 24, share)
        valid = rng.random((2, 24, 24)) < 0.8
        fast = moved_frame(torch.from_numpy(f), torch.from_numpy(valid)).numpy()
        for i in range(2):
            want = slow(f[i], valid[i])
            if not np.array_equal(fast[i], want):
                at = np.argwhere(fast[i] != want)[0].tolist()
                sys.exit(
                    f"moved frame, occupancy {share}, frame {i}, byte {at}: "
                    f"expected {want[tuple(at)]}, found {fast[i][tuple(at)]}"
                )


def check_slot(rng: np.random.Generator) -> None:
    """The slot and the base per degree, with the page one patch behind."""
    side, patches = 24, 3
    page = torch.from_numpy(random_frames(rng, 1, side, 0.1))
    layout = torch.from_numpy(random_frames(rng, 1, side, 0.1))
    f, valid = np.zeros((side, side, BEV), np.uint8), np.zeros((side, side), bool)
    f[: side - 8], valid[: side - 8] = page[0, 8:], True
    for degree, name in enumerate(DEGREES):
        tick = Tick(
            torch.tensor([degree]),
            torch.zeros(1, 64),
            torch.tensor([[1, 0]]),
            torch.zeros(1, 3),
            layout,
            None,
            page[None].expand(-1, 2, -1, -1, -1).contiguous(),
            None,
            torch.zeros(1, 2, 2, dtype=torch.long),
            torch.tensor([[True, True]]),
            torch.zeros(1, 2, dtype=torch.long),
        )
        assert tick.patches() == patches
        context, base = bev_context(tick, torch.float32)
        want = slow(f, valid) if degree else layout[0].numpy().copy()
        if name == "map":
            want[..., 12:20] = layout[0, ..., 12:20]
        for what, x in (("base", base), ("layout slot", context[..., 32:54])):
            if not torch.equal(x[0], latent(torch.from_numpy(want))):
                sys.exit(f"{name}: the {what} is not what model.md says")


def main() -> None:
    rng = np.random.default_rng(1)
    check_frames(rng)
    check_slot(rng)
    print("moved frame: as the plain loop")


if __name__ == "__main__":
    main()
