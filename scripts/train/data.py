"""Training shards of `swerve datagen`, mapped from disk, and the clips that training draws from them.

A Stream is one rollout in training or evaluation: a place in a clip, the pages that the model sees
(recorded frames, or frames that it generated itself), and a degree of layout. Batches of streams become
a model.Tick. Nothing is copied from a shard until a frame is used.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from model import BEV, CAM, CAM_COLS, CAM_ROWS, CAMERAS, DEGREES, PATCHES, SIDE, Tick

DTYPES = {"U8": np.uint8, "I32": np.int32, "I64": np.int64, "F32": np.float32}
AGENTS, MAP, NONE = range(3)


class Shard:
    """One mapped file; `tensors` are read-only arrays."""

    def __init__(self, path: Path):
        with open(path, "rb") as f:
            (length,) = struct.unpack("<Q", f.read(8))
            header = json.loads(f.read(length))
        meta = header.pop("__metadata__", {})
        if meta.get("format") != "swerve-shard/1":
            raise ValueError(
                f"{path}: __metadata__.format: expected swerve-shard/1, found {meta.get('format')!r}"
            )
        self.path, self.meta = path, meta
        data = np.memmap(path, np.uint8, "r", 8 + length)
        self.tensors = {}
        for name, entry in header.items():
            first, end = entry["data_offsets"]
            self.tensors[name] = (
                data[first:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
            )
        self.clips, self.ticks = self.tensors["bev"].shape[:2]


@dataclass(frozen=True)
class Clip:
    """One clip of a shard."""

    shard: Shard
    row: int

    @property
    def ticks(self) -> int:
        return self.shard.ticks

    def get(self, name: str, tick: int, cut: "Cut | None" = None) -> Tensor:
        """A copy of one tick of a tensor, of BEV tensors only what lies in the cut-out."""
        frame = self.shard.tensors[name][self.row, tick]
        if cut:
            frame = cut.of(frame, self.shard.tensors["window"][self.row, tick])
        return torch.from_numpy(np.array(frame))

    def scenario(self) -> str:
        index = int(self.shard.tensors["clip"][self.row, 1])
        names = json.loads(self.shard.meta.get("scenarios", "[]"))
        return names[index] if index < len(names) else str(index)


def load_clips(pattern: str) -> list[Clip]:
    """All clips of the shards that match, in a fixed order."""
    path = Path(pattern)
    files = sorted(path.parent.glob(path.name))
    if not files:
        raise FileNotFoundError(f"{pattern}: no shards")
    return [Clip(shard, row) for shard in map(Shard, files) for row in range(shard.clips)]


@dataclass
class Page:
    bev: Tensor
    cam: Tensor | None
    window: Tensor


@dataclass(frozen=True)
class Cut:
    """A square of the world that a stream is cut to, in patches of the anchored grid."""

    i: int
    j: int
    patches: int
    cameras: bool

    def inside(self, window: Tensor) -> bool:
        r, c = self.i - int(window[0]), self.j - int(window[1])
        return 0 <= r <= PATCHES - self.patches and 0 <= c <= PATCHES - self.patches

    def of(self, frame: np.ndarray, window: np.ndarray) -> np.ndarray:
        r, c, n = 8 * (self.i - int(window[0])), 8 * (self.j - int(window[1])), 8 * self.patches
        return frame[r : r + n, c : c + n]

    def origin(self) -> Tensor:
        return torch.tensor([self.i, self.j])


@dataclass
class Stream:
    """A rollout: `tick` is the frame to generate next, `pages` are newest first."""

    clip: Clip
    tick: int
    degree: int
    pages: list[Page] = field(default_factory=list)
    left: int = 0  # own frames still to be fed back
    rolled: int = 0
    cut: Cut | None = None

    def window(self, k: int) -> Tensor:
        """The tick's window; of a cut stream its square, wherever the window is."""
        return self.cut.origin() if self.cut else self.clip.get("window", k).long()

    def covered(self, k: int) -> bool:
        return 0 <= k < self.clip.ticks and (
            self.cut is None or self.cut.inside(self.clip.get("window", k))
        )

    def has_cameras(self) -> bool:
        return self.cut is None or self.cut.cameras

    def recorded(self, history: int) -> "Stream":
        """Takes the last `history` recorded frames as pages."""
        self.pages = []
        for k in range(self.tick - 1, self.tick - 1 - history, -1):
            if not self.covered(k):
                break
            self.pages.append(self.page(k))
        return self

    def page(self, k: int) -> Page:
        cam = self.clip.get("camera", k) if self.has_cameras() else None
        return Page(self.clip.get("bev", k, self.cut), cam, self.window(k))

    def advance(self, bev: Tensor, cam: Tensor | None, window: int) -> None:
        """Commits a generated frame."""
        page = Page(bev, cam, self.window(self.tick))
        self.pages = [page] + self.pages[: window - 1]
        self.tick, self.left, self.rolled = self.tick + 1, self.left - 1, self.rolled + 1


def empty_frame(side: int) -> Tensor:
    bev = torch.zeros(side, side, BEV, dtype=torch.uint8)
    bev[..., 20:] = 128
    return bev


def truth(clip: Clip, k: int, cut: Cut | None = None) -> Tensor:
    """The noise-free BEV, all 22 channels."""
    return torch.cat([clip.get("clean", k, cut), clip.get("bev", k, cut)[..., 12:]], -1)


def layout_bev(clip: Clip, k: int, degree: int, cut: Cut | None) -> Tensor:
    if degree == AGENTS:
        return truth(clip, k, cut)
    bev = empty_frame(8 * cut.patches if cut else SIDE)
    if degree == MAP:
        bev[..., 12:20] = clip.get("bev", k, cut)[..., 12:20]
    return bev


def layout_cam(clip: Clip, k: int, degree: int) -> Tensor:
    if degree == NONE:
        return torch.full((CAMERAS, CAM_ROWS, CAM_COLS, CAM), 128, dtype=torch.uint8)
    return clip.get("camera_agents" if degree == AGENTS else "camera_map", k)


def batch_tick(streams: list[Stream], window: int) -> Tick:
    """Inputs of the model for the next frame of each stream; all are cut alike, or none."""
    b, cut = len(streams), streams[0].cut
    side, cams = 8 * cut.patches if cut else SIDE, streams[0].has_cameras()
    pages_bev = torch.zeros(b, window, side, side, BEV, dtype=torch.uint8)
    pages_cam = (
        torch.zeros(b, window, CAMERAS, CAM_ROWS, CAM_COLS, CAM, dtype=torch.uint8)
        if cams
        else None
    )
    page_window = torch.zeros(b, window, 2, dtype=torch.long)
    valid = torch.zeros(b, window, dtype=torch.bool)
    cond, lay_bev, lay_cam, windows, ego, corner = [], [], [], [], [], []
    for i, s in enumerate(streams):
        for age, page in enumerate(s.pages[:window]):
            pages_bev[i, age], page_window[i, age], valid[i, age] = page.bev, page.window, True
            if pages_cam is not None:
                pages_cam[i, age] = page.cam
        c = s.clip.get("cond", s.tick)
        c[:3] = 0
        c[s.degree] = 1
        cond.append(c)
        lay_bev.append(layout_bev(s.clip, s.tick, s.degree, s.cut))
        if cams:
            lay_cam.append(layout_cam(s.clip, s.tick, s.degree))
        windows.append(s.window(s.tick))
        corner.append(s.window(s.tick) - s.clip.get("window", s.tick).long())
        ego.append(s.clip.get("ego", s.tick)[:3])
    return Tick(
        torch.tensor([s.degree for s in streams]),
        torch.stack(cond),
        torch.stack(windows),
        torch.stack(ego),
        torch.stack(lay_bev),
        torch.stack(lay_cam) if cams else None,
        pages_bev,
        pages_cam,
        page_window,
        valid,
        torch.stack(corner) if cut else None,
    )


def targets(streams: list[Stream]) -> tuple[Tensor, Tensor | None, Tensor]:
    """Bytes of the next frames as sensed (BEV, cameras), and the noise-free BEV."""
    bev = torch.stack([s.clip.get("bev", s.tick, s.cut) for s in streams])
    cam = (
        torch.stack([s.clip.get("camera", s.tick) for s in streams])
        if streams[0].has_cameras()
        else None
    )
    return bev, cam, torch.stack([truth(s.clip, s.tick, s.cut) for s in streams])


def camera_layouts(streams: list[Stream]) -> tuple[Tensor, Tensor]:
    """Camera layouts of the next frames, with agents and without."""
    stacks = [
        torch.stack([s.clip.get(name, s.tick) for s in streams])
        for name in ("camera_agents", "camera_map")
    ]
    return stacks[0], stacks[1]


def to_device(tick: Tick, device: torch.device) -> Tick:
    return (
        tick
        if device.type == "cpu"
        else Tick(**{k: None if v is None else v.to(device) for k, v in vars(tick).items()})
    )


def interest_of(clips: list[Clip]) -> np.ndarray:
    """Content of each clip, 0 to 6: at three ticks, whether something moves or is vulnerable."""
    interest = np.zeros(len(clips))
    for i, clip in enumerate(clips):
        for k in (0, clip.ticks // 2, clip.ticks - 1):
            frame = clip.shard.tensors["bev"][clip.row, k]
            interest[i] += bool((frame[..., 20:] != 128).any()) + bool(frame[..., 4:8].any())
    return interest


@dataclass
class Recipe:
    """Ways to draw streams for training."""

    window: int = 6
    shares: tuple[float, float, float] = (0.55, 0.35, 0.10)
    full_history: float = 0.5
    one_page: float = 0.3
    roll: float = 0.0  # share of streams that feed their own frames back
    roll_ticks: int = 12
    cut: int = 0  # patches per side of a cut-out around something that moves; 0: whole frames
    cameras: bool = True  # with a cut-out too

    def draw(self, clips: list[Clip], interest: np.ndarray, rng: np.random.Generator) -> Stream:
        clip = clips[int(rng.choice(len(clips), p=interest))]
        degree = int(rng.choice(len(DEGREES), p=self.shares))
        history = self.draw_history(rng)
        left = int(rng.integers(1, self.roll_ticks + 1)) if rng.random() < self.roll else 0
        first = min(history, clip.ticks - 1)
        tick = int(rng.integers(first, max(first + 1, clip.ticks - left)))
        stream = Stream(clip, tick, degree, left=left)
        if self.cut:
            stream.cut = self.draw_cut(clip, tick, rng)
        return stream.recorded(history)

    def draw_history(self, rng: np.random.Generator) -> int:
        """All pages, or the single one that a rollout begins with, or any number."""
        kind = rng.random()
        if kind < self.full_history:
            return self.window
        if kind < self.full_history + self.one_page:
            return 1
        return int(rng.integers(0, self.window + 1))

    def draw_cut(self, clip: Clip, tick: int, rng: np.random.Generator) -> Cut:
        """A square that holds a random position of interest, if there is one."""
        bev = clip.shard.tensors["bev"][clip.row, tick]
        busy = (bev[..., 20:] != 128).any(-1) | bev[..., 4:8].any(-1)
        if rng.random() < 0.1 or not busy.any():
            busy = bev[..., :4].any(-1)
        places = np.argwhere(busy) if busy.any() else np.array([[SIDE // 2, SIDE // 2]])
        at = places[int(rng.integers(len(places)))] // 8
        last = PATCHES - self.cut
        edge = 1 if self.cut > 2 else 0  # what is looked at stays off the edge
        low = [min(last, max(0, int(a) - self.cut + 1 + edge)) for a in at]
        high = [min(last, max(0, int(a) - edge)) for a in at]
        r, c = (int(rng.integers(lo, hi + 1)) for lo, hi in zip(low, high))
        window = clip.get("window", tick)
        return Cut(int(window[0]) + r, int(window[1]) + c, self.cut, self.cameras)
