"""Parts that teacher and student training share: losses, averaging, learning rate, checkpoints, rollouts.

A training run is bounded by wall-clock seconds; it writes a checkpoint every few minutes and at its end,
so that an interrupted run still exports.
"""

from __future__ import annotations

import argparse
import copy
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from data import (
    AGENTS,
    Clip,
    Cut,
    Recipe,
    Stream,
    batch_tick,
    camera_layouts,
    interest_of,
    load_clips,
    targets,
    to_device,
)
from model import Config, Tick, WorldModel, latent, layout_slot, previous_frame, quantise
from noise import byte_noise

CHANNEL_WEIGHT = [1.0] * 4 + [2.0] * 4 + [0.5] * 4 + [0.5] * 8 + [0.0] * 2  # velocities are held
NEAR, FAINT = 3, 31  # positions around what is there that occupancy may come up in; what is haze
FAR_WEIGHT = 4.0  # of occupancy elsewhere
BORDER = 3  # positions at the edge of a cut-out that something may have crossed within the tick
SURFACE_WEIGHT, AGENT_WEIGHT, VRU_WEIGHT = 8.0, 16.0, 24.0
AGENT_PIXEL_WEIGHT = 8.0
OVERSHOOT = 0.1
ROUND, PLAIN_SCALE = 0.05, 0.5  # errors below ROUND count as squares where larger ones count as they are
DIVERGED_IOU = 0.35


def dilate(mask: Tensor, by: int) -> Tensor:
    """Boolean [B][R][C] grown by `by` positions."""
    return F.max_pool2d(mask[:, None].float(), 2 * by + 1, 1, by)[:, 0] > 0.5


def moving_mask(truth: Tensor) -> Tensor:
    """Mask of where the noise-free BEV (bytes) holds something that moves at 0.5 m/s or more."""
    v = truth[..., 20:22].float() - 128
    return (v.pow(2).sum(-1) >= 4.0) & (truth[..., :4].amax(-1) > 0)


@dataclass
class Weights:
    """Weight of an error: in the BEV [B][96][96][22], in the cameras [B][3][32][48][1] (None without
    them), and in which occupancy [B][96][96][8] it counts as it is, not squared."""

    bev: Tensor
    cam: Tensor | None
    plain: Tensor


def agent_pixels(agents: Tensor, without: Tensor) -> Tensor:
    """Pixels at which camera layouts (bytes) with and without agents differ by more than noise."""
    return (agents.short() - without.short()).abs() > 24


def camera_weights(streams: list[Stream], given: Tensor) -> Tensor | None:
    """More where the layout shows agents, which fill few of the pixels."""
    if not streams[0].has_cameras():
        return None
    shown = agent_pixels(*camera_layouts(streams)).any(-1, keepdim=True).to(given.device)
    return 1 + AGENT_PIXEL_WEIGHT * (shown & given.view(-1, 1, 1, 1, 1))


def bev_weights(slot: Tensor, cut: Cut | None) -> Tensor:
    """Loss weights [B][96][96][22] from the layout slot (bytes): more at surfaces, moving agents and
    vulnerable road users, which are few.

    They depend on what is given, never on what is wanted: else the model would draw a haze wherever
    something comes into sight once in a while. The edge of a cut-out has none, because what comes
    from outside cannot be known.
    """
    surface = dilate(slot[..., :4].amax(-1) > 0, 1)
    agents = dilate(moving_mask(slot), 3)
    vru = dilate(slot[..., 4:8].amax(-1) > 0, 2)
    weights = 1 + SURFACE_WEIGHT * surface + AGENT_WEIGHT * agents + VRU_WEIGHT * vru
    if cut:
        weights = weights * inner(slot.shape[1], slot.device)
    channel = torch.tensor(CHANNEL_WEIGHT, device=slot.device)
    return weights[..., None] * channel


def inner(side: int, device: torch.device) -> Tensor:
    """False in the border of a cut-out, [side][side]."""
    mask = torch.zeros(side, side, dtype=torch.bool, device=device)
    mask[BORDER:-BORDER, BORDER:-BORDER] = True
    return mask


def frame_loss(
    out: tuple[Tensor, Tensor | None],
    want: tuple[Tensor, Tensor | None],
    weights: Weights,
    cam_weight: float,
) -> Tensor:
    """Weighted error per rollout, [B]: squared, but for the surfaces of a layout that gives the agents.

    There each error counts as it is, so that a cell shows the value that the sensor reports most often.
    Squares would ask for the mean of hits and losses, a half-occupied cell that no sensor reports.
    Where the model moves the agents itself the mean says how sure it is.

    Below -1 a frame's byte is 0 all the same, so going there costs little: else the thousands of empty
    cells would keep a faint haze, which piles up in rollouts.
    """
    error = out[0] - want[0]
    error = torch.where((error < 0) & (want[0] <= -1), OVERSHOOT * error, error)
    square = error.pow(2)
    plain = PLAIN_SCALE * ((square[..., :8] + ROUND * ROUND).sqrt() - ROUND)
    occupancy = torch.where(weights.plain, plain, square[..., :8])
    bev = (torch.cat([occupancy, square[..., 8:]], -1) * weights.bev).flatten(1).mean(1)
    if want[1] is None:
        return bev
    return bev + cam_weight * ((out[1] - want[1]).pow(2) * weights.cam).flatten(1).mean(1)


def draw_times(batch: int, generator: torch.Generator) -> Tensor:
    """Logit-normal times, four in ten at 0, where all must come from the context."""
    t = torch.sigmoid(torch.randn(batch, generator=generator) - 0.4)
    return torch.where(torch.rand(batch, generator=generator) < 0.4, torch.zeros(batch), t)


def mix(noise: Tensor | None, data: Tensor | None, t: Tensor) -> Tensor | None:
    if data is None:
        return None
    t = t.view(-1, *([1] * (data.dim() - 1)))
    return (1 - t) * noise + t * data


class Average:
    """Exponential moving average of a model's weights."""

    def __init__(self, model: WorldModel, decay: float = 0.998):
        self.model, self.decay, self.updates = copy.deepcopy(model).eval(), decay, 0
        self.model.requires_grad_(False)

    @torch.no_grad()
    def update(self, model: WorldModel) -> None:
        self.updates += 1
        decay = min(self.decay, 1 - 1 / (self.updates + 1) ** 0.8)
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - decay)


@dataclass
class Budget:
    """Wall-clock seconds, and the learning rate that goes with what is spent of them."""

    seconds: float
    rate: float
    warmup: int = 100
    decay_from: float = 0.5

    def __post_init__(self) -> None:
        self.start, self.steps = time.monotonic(), 0

    @property
    def spent(self) -> float:
        return (time.monotonic() - self.start) / self.seconds

    def learning_rate(self) -> float:
        self.steps += 1
        fall = min(1.0, max(0.02, (1 - self.spent) / (1 - self.decay_from)))
        return self.rate * min(1.0, self.steps / self.warmup) * fall


@torch.no_grad()
def hold_velocities(model: WorldModel) -> None:
    """Velocities leave the network as they stand in the base: they are exact there, and an error of
    1 m/s in each tick would carry an agent off within a second."""
    model.bev.out.weight[20:22] = 0
    model.bev.out.bias[20:22] = 0


class Trainer:
    """Optimizer, average, checkpoints and the log of one run."""

    def __init__(self, model: WorldModel, args: argparse.Namespace, rate: float):
        self.model, self.args = model, args
        hold_velocities(model)
        self.average = Average(model)
        decay = [p for n, p in model.named_parameters() if p.dim() > 1]
        plain = [p for n, p in model.named_parameters() if p.dim() <= 1]
        groups = [{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, rate, betas=(0.9, 0.95))
        self.budget = Budget(args.seconds, rate)
        self.samples, self.losses, self.saved = 0, [], time.monotonic()

    def step(self, loss: Tensor, samples: int) -> None:
        rate = self.budget.learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        hold_velocities(self.model)
        self.average.update(self.model)
        self.samples += samples
        self.losses.append(float(loss.detach()))

    def report(self, every: int, extra: str = "") -> None:
        if self.budget.steps % every == 0:
            elapsed = time.monotonic() - self.budget.start
            mean = float(np.mean(self.losses[-every:]))
            print(
                f"step {self.budget.steps} {elapsed:.0f} s {self.samples / elapsed:.1f} samples/s loss {mean:.5f} {extra}",
                flush=True,
            )
        if time.monotonic() - self.saved > self.args.checkpoint_s:
            self.save()

    def save(self) -> None:
        """Replaces the checkpoint in one step."""
        elapsed = time.monotonic() - self.budget.start
        info = {
            "steps": self.budget.steps,
            "samples": self.samples,
            "seconds": round(elapsed),
            "seed": self.args.seed,
        }
        state = {
            "config": self.model.config.as_dict(),
            "ema": self.average.model.state_dict(),
            "info": info,
        }
        temporary = self.args.out.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.rename(self.args.out)
        self.saved = time.monotonic()


def soft_iou(a: Tensor, b: Tensor) -> Tensor:
    """Of occupancy bytes, per rollout; 1 where both are empty."""
    p, g = a[..., :4] > 127, b[..., :4] > 127
    return ((p & g).flatten(1).sum(1) + 4.0) / ((p | g).flatten(1).sum(1) + 4.0)


class Pool:
    """The streams of a batch: each goes on with its own frames until its time or its patience ends."""

    def __init__(
        self,
        clips: list[Clip],
        interest: np.ndarray,
        recipe: Recipe,
        batch: int,
        rng: np.random.Generator,
    ):
        self.clips, self.recipe, self.batch, self.rng = clips, recipe, batch, rng
        self.interest = interest / interest.sum()
        self.streams: list[Stream] = []

    def fill(self) -> list[Stream]:
        """Streams that end are replaced by fresh ones."""
        kept = [s for s in self.streams if s.left > 0 and s.covered(s.tick)]
        self.streams = kept + [
            self.recipe.draw(self.clips, self.interest, self.rng)
            for _ in range(self.batch - len(kept))
        ]
        return self.streams

    def going_on(self) -> list[int]:
        return [i for i, s in enumerate(self.streams) if s.left > 0 and s.covered(s.tick + 1)]

    def commit(
        self,
        chosen: list[int],
        out: tuple[Tensor, Tensor | None],
        want: Tensor,
        truth: Tensor,
    ) -> None:
        """Feeds generated frames back, in a cut-out with the wanted edge, so that what enters does so
        in sight; a stream that lost its agents starts anew."""
        bev = quantise(out[0])
        if self.recipe.cut:
            bev = torch.where(inner(bev.shape[1], bev.device)[..., None], bev, quantise(want))
        moving = dilate(moving_mask(truth), 3)[..., None]
        iou = soft_iou(bev * moving, truth * moving).tolist()
        bev = bev.cpu()
        cam = [None] * len(chosen) if out[1] is None else quantise(out[1]).cpu()
        for j, i in enumerate(chosen):
            self.streams[i].advance(bev[j], cam[j], self.recipe.window)
            if iou[j] < DIVERGED_IOU:
                self.streams[i].left = 0
        for i, s in enumerate(self.streams):
            if i not in chosen:
                s.left = 0


@dataclass
class Batch:
    """One training batch: what is given, what is wanted, the noise, and the loss weights."""

    streams: list[Stream]
    tick: Tick
    want: tuple[Tensor, Tensor | None]
    truth: Tensor
    noise: tuple[Tensor, Tensor | None]
    weights: Weights


class Pools:
    """Whole frames with cameras, cut-outs around what moves, and cameras with hardly any BEV, in turn.

    A cut-out of 3 x 3 patches costs a twentieth of a whole frame and holds most of what there is to
    learn: of 36,864 cells of a frame only some twenty are occupied.
    """

    def __init__(
        self, args: argparse.Namespace, recipe: dict, rng: np.random.Generator, device: torch.device
    ):
        clips = load_clips(args.data)
        interest = interest_of(clips)
        self.rng, self.device, self.turn = rng, device, 0
        recipe = recipe | {"shares": args.shares}
        whole = Pool(clips, 1 + interest, Recipe(**recipe), args.batch, rng)
        cut = Pool(
            clips,
            0.05 + interest,
            Recipe(**(recipe | {"shares": args.cut_shares}), cut=args.cut, cameras=False),
            args.cut_batch,
            rng,
        )
        views = Pool(clips, 1 + interest, Recipe(**recipe, cut=2), args.batch, rng)
        self.order = [whole] + [cut] * args.cut_turns + [views] * args.camera_turns
        print(f"{len(clips)} clips", flush=True)

    def next(self) -> tuple[Pool, Batch]:
        pool = self.order[self.turn % len(self.order)]
        self.turn += 1
        return pool, self.batch(pool, pool.fill())

    def batch(self, pool: Pool, streams: list[Stream]) -> Batch:
        tick = to_device(batch_tick(streams, pool.recipe.window), self.device)
        bev, cam, truth = (x if x is None else x.to(self.device) for x in targets(streams))
        # Things that the model moves by itself are drawn without the sensor's noise, or each frame fed back
        # would lose a few cells more.
        # Nor does it invent anything: a guess far from all that is there would be a haze that stays.
        own = (tick.degree != AGENTS).view(-1, 1, 1, 1)
        slot = layout_slot(tick, *previous_frame(tick, 0))
        near = dilate(slot[..., :4].amax(-1) > FAINT, NEAR)[..., None]
        bev = torch.where(own, torch.cat([truth[..., :8] * near, bev[..., 8:]], -1), bev)
        want = latent(bev), None if cam is None else latent(cam)
        given = tick.degree == AGENTS
        weights = Weights(
            bev_weights(slot, streams[0].cut),
            camera_weights(streams, given),
            given.view(-1, 1, 1, 1) & (slot[..., :8] > 0),
        )
        weights.bev[..., :8] *= torch.where(own & ~near, FAR_WEIGHT, 1.0)
        return Batch(streams, tick, want, truth, self.noise(want), weights)

    def noise(self, like: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor | None]:
        return tuple(
            x if x is None else byte_noise(x.shape, self.rng).to(self.device) for x in like
        )

    def set_roll(self, share: float) -> None:
        for pool in self.order:
            pool.recipe.roll = share


def parse_shares(text: str) -> tuple[float, ...]:
    return tuple(float(x) for x in text.split(","))


def common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", required=True, help="shards, e.g. data/train-*.safetensors")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint to write")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=4, help="whole frames")
    parser.add_argument("--cut", type=int, default=3, help="patches per side of a cut-out")
    parser.add_argument(
        "--cut-shares",
        type=parse_shares,
        default=(0.3, 0.55, 0.15),
        help="of the degrees in cut-outs",
    )
    parser.add_argument(
        "--shares", type=parse_shares, default=(0.35, 0.5, 0.15), help="of the degrees elsewhere"
    )
    parser.add_argument("--cut-batch", type=int, default=24)
    parser.add_argument(
        "--cut-turns", type=int, default=6, help="batches of cut-outs after one of whole frames"
    )
    parser.add_argument(
        "--camera-turns", type=int, default=2, help="batches of cameras after those"
    )
    parser.add_argument("--camera-weight", type=float, default=2.0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--checkpoint-s", type=float, default=180)


def begin(args: argparse.Namespace) -> tuple[np.random.Generator, torch.Generator, torch.device]:
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    return (
        np.random.default_rng(args.seed),
        torch.Generator().manual_seed(args.seed),
        torch.device(args.device),
    )


def build(config: Config, device: torch.device) -> WorldModel:
    return WorldModel(config).to(device)
