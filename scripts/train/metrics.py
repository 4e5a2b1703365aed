"""Closed-loop figures of generated frames against the noise-free visible truth.

Tally sums counts over clips for one horizon, so that a figure weighs every cell alike. Frames are bytes
[B][96][96][22] in the window of their tick; cameras [B][3][32][48][12].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from model import SIDE, shift_frame
from training import agent_pixels, dilate, moving_mask

THRESHOLD = 63  # a cell counts as occupied from a quarter of it on
SHIFT_CELLS = 4


def cells(x: Tensor) -> Tensor:
    """[B][96][96][4] -> [B][192][192]."""
    b = x.shape[0]
    return x.reshape(b, SIDE, SIDE, 2, 2).permute(0, 1, 3, 2, 4).reshape(b, 2 * SIDE, 2 * SIDE)


def near(mask: Tensor, by: int) -> Tensor:
    return F.max_pool2d(mask[:, None].float(), 2 * by + 1, 1, by)[:, 0] > 0.5


def components(mask: np.ndarray) -> list[np.ndarray]:
    """Connected groups (8 neighbours) of a boolean image."""
    left = set(zip(*(a.tolist() for a in np.nonzero(mask))))
    out = []
    while left:
        stack, group = [left.pop()], []
        while stack:
            r, c = stack.pop()
            group.append((r, c))
            for n in [(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]:
                if n in left:
                    left.remove(n)
                    stack.append(n)
        out.append(np.array(group))
    return out


def best_shift(p: Tensor, g: Tensor) -> float | None:
    """Metres by which static occupancy p must move to overlap g best; None if there is too little."""
    if int(g.sum()) < 20 or int(p.sum()) < 10:
        return None
    best, at = -1.0, 0.0
    for i in range(-SHIFT_CELLS, SHIFT_CELLS + 1):
        for j in range(-SHIFT_CELLS, SHIFT_CELLS + 1):
            overlap = float((torch.roll(p, (i, j), (0, 1)) & g).sum()) - 1e-3 * (abs(i) + abs(j))
            if overlap > best:
                best, at = overlap, 0.5 * (i * i + j * j) ** 0.5
    return at


@dataclass
class Tally:
    """Counts of one generator, degree and horizon."""

    moving: np.ndarray
    surface: np.ndarray
    vru: np.ndarray
    area: np.ndarray
    sensor: np.ndarray
    agents: np.ndarray
    camera: np.ndarray
    shifts: list[float]
    agent_pixels: list[np.ndarray]

    @classmethod
    def new(cls) -> "Tally":
        return cls(*(np.zeros(2) for _ in range(7)), [], [])

    def add(
        self,
        bev: Tensor,
        cam: Tensor,
        recorded: tuple[Tensor, Tensor, Tensor],
        layouts: tuple[Tensor, Tensor],
    ) -> None:
        """Frames against those of data.targets; camera layouts with agents and without tell where they are."""
        sensed, seen, truth = recorded
        p, g = cells(bev[..., :4]) > THRESHOLD, cells(truth[..., :4]) > THRESHOLD
        moves = moving_mask(truth)
        at = dilate(moves, 3).repeat_interleave(2, 1).repeat_interleave(2, 2)
        self.moving += [(p & g & at).sum().item(), ((p | g) & at).sum().item()]
        self.surface += [(p & g).sum().item(), (p | g).sum().item()]
        pv, gv = cells(bev[..., 4:8]) > THRESHOLD, cells(truth[..., 4:8]) > THRESHOLD
        self.vru += [(near(pv, 1) & gv).sum().item(), gv.sum().item()]
        self.area += [bev[..., :4].sum().item() / 255, truth[..., :4].sum().item() / 255]
        off = (bev[..., :4].float() - sensed[..., :4].float()).abs()
        self.sensor += [off.sum().item(), sensed[..., :4].float().sum().item()]
        self.add_agents(
            near(p, 2), (g & moves.repeat_interleave(2, 1).repeat_interleave(2, 2)) | gv
        )
        static = ~near(at, 2)
        for i in range(p.shape[0]):
            shift = best_shift(p[i] & static[i], g[i] & static[i])
            if shift is not None:
                self.shifts.append(shift)
        self.add_camera(cam, seen, *layouts)

    def add_agents(self, there: Tensor, truth: Tensor) -> None:
        for hit, mask in zip(there.numpy(), truth.numpy()):
            for group in components(mask):
                self.agents += [float(hit[group[:, 0], group[:, 1]].any()), 1.0]

    def add_camera(self, cam: Tensor, seen: Tensor, agents: Tensor, empty: Tensor) -> None:
        self.camera += [(cam.float() - seen.float()).abs().sum().item(), cam.numel()]
        at = agent_pixels(agents, empty)
        if at.any():
            self.agent_pixels.append(torch.stack([cam[at], seen[at]]).numpy())

    def figures(self) -> dict[str, float]:
        def share(x: np.ndarray) -> float:
            return float(x[0] / x[1]) if x[1] else float("nan")

        pixels = np.concatenate(self.agent_pixels, 1) if self.agent_pixels else np.zeros((2, 0))
        corr = (
            float(np.corrcoef(pixels.astype(np.float64))[0, 1])
            if pixels.shape[1] > 50
            else float("nan")
        )
        shifts = np.array(self.shifts)
        return {
            "moving": share(self.moving),
            "surface": share(self.surface),
            "vru": share(self.vru),
            "area": share(self.area),
            "sensor": share(self.sensor),
            "agents": share(self.agents),
            "camera": share(self.camera) / 255,
            "consistency": corr,
            "response": float((shifts <= 0.5).mean()) if len(shifts) else float("nan"),
        }


def copied(page_bev: Tensor, page_window: Tensor, window: Tensor) -> Tensor:
    """The last frame, moved to the present window: what a world that stands still would show."""
    moved, valid = shift_frame(page_bev, page_window, window)
    return moved * valid[..., None]


def constant_velocity(
    truth: Tensor, truth_window: Tensor, window: Tensor, seconds: float
) -> Tensor:
    """Every true surface cell moved on with its velocity; an oracle that knows the start exactly."""
    out = torch.zeros_like(truth)
    for b in range(truth.shape[0]):
        r, c, s = torch.nonzero(truth[b, ..., :4] > THRESHOLD, as_tuple=True)
        v = (truth[b, r, c, 20:22].float() - 128) / 4
        row = (
            2 * r
            + s // 2
            + 16 * int(truth_window[b, 0] - window[b, 0])
            + (v[:, 0] * seconds * 2).round().long()
        )
        col = (
            2 * c
            + s % 2
            + 16 * int(truth_window[b, 1] - window[b, 1])
            + (v[:, 1] * seconds * 2).round().long()
        )
        inside = (row >= 0) & (row < 2 * SIDE) & (col >= 0) & (col < 2 * SIDE)
        r2, c2, s2 = row[inside] // 2, col[inside] // 2, 2 * (row[inside] % 2) + col[inside] % 2
        out[b, r2, c2, s2] = truth[b, r[inside], c[inside], s[inside]]
        out[b, r2, c2, s2 + 4] = truth[b, r[inside], c[inside], s[inside] + 4]
    return out
