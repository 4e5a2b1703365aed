"""The world model of engine/model.md in PyTorch: the same network, names and axis orders.

Frames enter as bytes, channels last; positions are laid out so that a patch of 8 x 8 positions is one
token. Parameters stay in single precision, products are computed in `compute` (bfloat16 to train,
float64 for references). The only names that differ from the weights file are in RENAME, because
Python or PyTorch keeps the originals for itself.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BEV, CAM = 22, 12
PATCHES, SIDE = 12, 96
CAMERAS, CAM_ROWS, CAM_COLS = 3, 32, 48
BEV_TOKENS, CAM_TOKENS = 144, 24
TOKENS = BEV_TOKENS + CAMERAS * CAM_TOKENS
PADDED, HEAD = 32, 32
COND = 64
YAWS = (math.pi / 3, 0.0, -math.pi / 3)
RAY_DISTANCE = (8.0, 5.0, 2.5, 1.0)
EMPTY = 128 / 127.5 - 1
CARRY, STILL = 20, 2  # a velocity unit is 1/20 cell a tick; slower is noise
DEGREES = ("agents", "map", "none")
RENAME = {"inp": "in", "tout": "to"}

Probe = Callable[[int, str, Tensor], None]


@dataclass
class Config:
    """A model's dimensions: the `config` of the weights file."""

    name: str = "student"
    tier: str = "student"
    width: int = 128
    layers: int = 4
    bev_channels: int = 32
    camera_channels: int = 32
    window: int = 6
    schedule: list[float] = field(default_factory=lambda: [0.0, 0.5, 1.0])
    joint: list[int] = field(default_factory=lambda: [1, 0, 1, 0])
    horizon_ticks: dict[str, int] = field(default_factory=lambda: {d: 1 for d in DEGREES})

    def as_dict(self) -> dict:
        return asdict(self)


@dataclass
class Tick:
    """Inputs of one tick of a batch; frames are bytes, pages newest first.

    Training may show a square cut-out of the window instead of all of it, with or without cameras
    (camera tensors None): then `window` is the cut-out's own and `corner` its place in the tick's window.
    """

    degree: Tensor  # int64 [B]
    cond: Tensor  # float [B][64], one-hot degree set
    window: Tensor  # int64 [B][2]
    ego: Tensor  # float [B][3]: u, v, heading in the anchor
    layout_bev: Tensor  # uint8 [B][96][96][22], of the degree
    layout_cam: Tensor | None  # uint8 [B][3][32][48][12]
    page_bev: Tensor  # uint8 [B][W][96][96][22]
    page_cam: Tensor | None  # uint8 [B][W][3][32][48][12]
    page_window: Tensor  # int64 [B][W][2]
    page_valid: Tensor  # bool [B][W]; valid ones come first
    corner: Tensor | None = None  # int64 [B][2], patches; None: the whole window

    def patches(self) -> int:
        return self.layout_bev.shape[1] // 8


def latent(frame: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes to [-1, 1]; in bfloat16 b - 127.5 is exact, so one rounding remains."""
    if dtype == torch.bfloat16:
        return frame.to(dtype).sub_(127.5).mul_(1 / 127.5)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return (frame.to(wide) / 127.5 - 1).to(dtype)


def quantise(x: Tensor) -> Tensor:
    """Latents to bytes."""
    return (x.clamp(-1, 1) * 127.5 + 128).floor().clamp(max=255).to(torch.uint8)


def bev_patches(x: Tensor) -> Tensor:
    """[N][96][96][C] -> [N][144][64 C]."""
    n, p, c = x.shape[0], x.shape[1] // 8, x.shape[-1]
    x = x.reshape(n, p, 8, p, 8, c).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(n, p * p, 64 * c)


def bev_positions(x: Tensor) -> Tensor:
    """[N][144][64 C] -> [N][96][96][C]."""
    n, p, c = x.shape[0], math.isqrt(x.shape[1]), x.shape[-1] // 64
    x = x.reshape(n, p, p, 8, 8, c).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(n, 8 * p, 8 * p, c)


def cam_patches(x: Tensor) -> Tensor:
    """[N][3][32][48][C] -> [N][72][64 C]."""
    n, c = x.shape[0], x.shape[-1]
    x = x.reshape(n, CAMERAS, 4, 8, 6, 8, c).permute(0, 1, 2, 4, 3, 5, 6)
    return x.reshape(n, CAMERAS * CAM_TOKENS, 64 * c)


def cam_positions(x: Tensor) -> Tensor:
    """[N][72][64 C] -> [N][3][32][48][C]."""
    n, c = x.shape[0], x.shape[-1] // 64
    x = x.reshape(n, CAMERAS, 4, 6, 8, 8, c).permute(0, 1, 2, 4, 3, 5, 6)
    return x.reshape(n, CAMERAS, CAM_ROWS, CAM_COLS, c)


def page_index(
    window: Tensor, page_window: Tensor, patches: int = PATCHES
) -> tuple[Tensor, Tensor]:
    """For each BEV token its row in each page, [B][W][144], and whether it is there."""
    at = torch.arange(patches, device=window.device)
    shift = window[:, None] - page_window
    r = at[None, None, :, None] + shift[..., 0, None, None]
    c = at[None, None, None, :] + shift[..., 1, None, None]
    there = (r >= 0) & (r < patches) & (c >= 0) & (c < patches)
    index = r.clamp(0, patches - 1) * patches + c.clamp(0, patches - 1)
    return index.flatten(2), there.flatten(2)


def shift_frame(frame: Tensor, window: Tensor, to: Tensor) -> tuple[Tensor, Tensor]:
    """Byte frames [B][96][96][C] moved into window `to`, and their validity [B][96][96]."""
    p, c = frame.shape[1] // 8, frame.shape[-1]
    index, there = page_index(to, window[:, None], p)
    patches = bev_patches(frame)
    moved = patches.gather(1, index[:, 0, :, None].expand(-1, -1, patches.shape[-1]))
    valid = there[:, 0, :, None].expand(-1, -1, 64)
    return bev_positions(moved), bev_positions(valid).squeeze(-1)


def geometry(tick: Tick) -> Tensor:
    """[B][96][96][5]: from ego to each position."""
    at = torch.arange(8 * tick.patches(), device=tick.ego.device, dtype=tick.ego.dtype) + 0.5
    du = (8.0 * tick.window[:, 0, None] + at - tick.ego[:, 0, None])[:, :, None]
    dv = (8.0 * tick.window[:, 1, None] + at - tick.ego[:, 1, None])[:, None, :]
    du, dv = torch.broadcast_tensors(du, dv)
    r = (du * du + dv * dv).sqrt().clamp(min=1e-3)
    return torch.stack([du / 64, dv / 64, r / 64, du / r, dv / r], -1)


def carried(f: Tensor, valid: Tensor) -> tuple[Tensor, ...]:
    """Places of occupied sub-cells after a tick, in twentieths of a cell: batch, row, column, then
    its occupancy, its vulnerable part and its velocity, all int64 [N]."""
    n, r, c, s = torch.nonzero((f[..., :4] > 0) & valid[..., None], as_tuple=True)
    v = f[n, r, c, 20:].long() - 128
    v = v * (v.abs() > STILL).any(-1, keepdim=True)
    a, b = v[:, 0], v[:, 1]
    row, col = CARRY * (2 * r + s // 2) + a, CARRY * (2 * c + s % 2) + b
    return n, row, col, f[n, r, c, s].long(), f[n, r, c, s + 4].long(), a, b


def moved_frame(f: Tensor, valid: Tensor) -> Tensor:
    """The previous frame (bytes, in the present window) with what it holds moved on by its velocity.

    Channels 12..19 are f's. Integers alone, so the order of the sums does not matter.
    """
    count, side = f.shape[0], f.shape[1]
    cells = torch.zeros(2, count * 4 * side * side, dtype=torch.int64, device=f.device)
    places = torch.zeros(3, count * side * side, dtype=torch.int64, device=f.device)
    n, row, col, o, vru, a, b = carried(f, valid)
    q, p = row.div(CARRY, rounding_mode="floor"), col.div(CARRY, rounding_mode="floor")
    for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)):
        # The share of a neighbour is how far its centre lies from the cell's, from a whole one.
        y, x = q + i, p + j
        w = (CARRY - (row - CARRY * y).abs()) * (CARRY - (col - CARRY * x).abs())
        w = w * ((y >= 0) & (y < 2 * side) & (x >= 0) & (x < 2 * side))
        y, x = y.clamp(0, 2 * side - 1), x.clamp(0, 2 * side - 1)
        cells.index_add_(1, (n * 2 * side + y) * 2 * side + x, torch.stack([w * o, w * vru]))
        at = (n * side + y // 2) * side + x // 2
        places.index_add_(1, at, torch.stack([w * o, w * o * a, w * o * b]))
    whole = CARRY * CARRY
    out = torch.zeros_like(f)
    for k in range(2):
        x = ((cells[k] + whole // 2) // whole).clamp(max=255).view(count, side, 2, side, 2)
        out[..., 4 * k : 4 * k + 4] = x.permute(0, 1, 3, 2, 4).flatten(3)
    out[..., 8:20] = f[..., 8:20] * valid[..., None]
    mass, speed = places[0], places[1:]
    mean = (2 * speed.abs() + mass) // (2 * mass).clamp(min=1) * speed.sign()
    out[..., 20:] = (128 + mean).t().reshape(count, side, side, 2)
    return out


def previous_frame(tick: Tick, age: int) -> tuple[Tensor, Tensor]:
    """The page of that age (bytes) in the present window, and where it is there."""
    f, there = shift_frame(tick.page_bev[:, age], tick.page_window[:, age], tick.window)
    return f, there & tick.page_valid[:, age, None, None]


def layout_slot(tick: Tick, f: Tensor, valid: Tensor) -> Tensor:
    """Bytes [B][96][96][22] of the layout slot and residual base: the layout in `agents`, else the
    moved frame, in `map` with the given map."""
    own = tick.degree != 0
    if not own.any():
        return tick.layout_bev
    moved = moved_frame(f[own], valid[own])
    given = (tick.degree[own] == 1)[:, None, None, None]
    moved[..., 12:20] = torch.where(given, tick.layout_bev[own][..., 12:20], moved[..., 12:20])
    slot = tick.layout_bev.clone()
    slot[own] = moved
    return slot


def bev_context(tick: Tick, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Context [B][96][96][64] and residual base [B][96][96][22]."""
    slot, moved, valid = tick.layout_bev, [], []
    for age in range(2):
        f, ok = previous_frame(tick, age)
        if age == 0:
            slot = layout_slot(tick, f, ok)
        moved.append(latent(f, dtype))
        valid.append(ok[..., None])
    base = latent(slot, dtype)
    last = torch.where(valid[0], moved[0], torch.zeros_like(moved[0]))
    before = torch.cat([moved[1][..., :8], moved[1][..., 20:]], -1)
    before = torch.where(valid[1], before, torch.zeros_like(before))
    zeros = torch.zeros_like(last[..., :3])
    parts = [
        last,
        before,
        base,
        geometry(tick).to(dtype),
        valid[0].to(dtype),
        valid[1].to(dtype),
        zeros,
    ]
    return torch.cat(parts, -1), base


def cam_context(tick: Tick, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Context [B][3][32][48][32] and residual base [B][3][32][48][12]."""
    layout = latent(tick.layout_cam, dtype)
    valid = tick.page_valid[:, 0, None, None, None, None].expand(layout.shape[:-1] + (1,))
    moved = latent(tick.page_cam[:, 0], dtype)
    last = torch.where(valid, moved, torch.zeros_like(moved))
    dev, wide = layout.device, tick.ego.dtype
    row = (torch.arange(CAM_ROWS, device=dev, dtype=wide) + 0.5) / 16 - 1
    col = (torch.arange(CAM_COLS, device=dev, dtype=wide) + 0.5) / 24 - 1
    place = torch.stack(torch.broadcast_tensors(row[:, None], col[None, :]), -1).to(dtype)
    place = place.expand(layout.shape[:-1] + (2,))
    zeros = torch.zeros_like(last[..., :5])
    context = torch.cat([last, layout, place, valid.to(dtype), zeros], -1)
    base = torch.where(valid, moved, torch.full_like(moved, EMPTY))
    degree = tick.degree[:, None, None, None, None]
    return context, torch.where(degree == 0, layout, base)


def token_places(tick: Tick) -> Tensor:
    """[B][216][2]: where each token lies in the window, in patches."""
    dev, wide = tick.ego.device, tick.ego.dtype
    at = torch.arange(tick.patches(), device=dev, dtype=wide) + 0.5
    bev = torch.stack(torch.broadcast_tensors(at[:, None], at[None, :]), -1).reshape(1, -1, 2)
    if tick.corner is not None:
        bev = bev + tick.corner[:, None].to(wide)
    if tick.layout_cam is None:
        return bev
    c = torch.arange(6, device=dev, dtype=wide)
    yaw = torch.tensor(YAWS, device=dev, dtype=wide)
    ray = yaw[:, None] - torch.atan((16 * c + 8 - 48) / 62.55)
    angle = tick.ego[:, 2, None, None] + ray[None]
    away = torch.tensor(RAY_DISTANCE, device=dev, dtype=wide)[None, None, :, None, None]
    ahead = torch.stack([angle.cos(), angle.sin()], -1)[:, :, None] * away
    window = tick.window if tick.corner is None else tick.window - tick.corner
    ego = tick.ego[:, :2] / 8 - window.to(wide)
    cam = (ego[:, None, None, None] + ahead).reshape(-1, CAMERAS * CAM_TOKENS, 2)
    return torch.cat([bev.expand(cam.shape[0], -1, -1), cam], 1)


def rotary_table(tick: Tick) -> tuple[Tensor, Tensor]:
    """cos and sin, [B][216][16]."""
    places = token_places(tick)
    w = 2 * 0.6 ** torch.arange(8, device=places.device, dtype=places.dtype)
    angle = torch.cat([places[..., :1] * w, places[..., 1:] * w], -1)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [B][N][h][32]; cos, sin [B][N][16]."""
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, :, None].to(x.dtype), sin[:, :, None].to(x.dtype)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def time_features(t: Tensor) -> Tensor:
    """[B] -> [B][64]."""
    i = torch.arange(32, device=t.device, dtype=t.dtype)
    angle = t[:, None] * (0.628 * 1000 ** (i / 31))
    return torch.cat([angle.sin(), angle.cos()], -1)


def norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), eps=1e-6)


class Linear(nn.Linear):
    """A linear layer that computes in the dtype of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))

    def leading(self, x: Tensor, channels: int) -> Tensor:
        """As if x's `channels` per position were padded with zeros to 32."""
        w = self.weight.view(self.out_features, 64, PADDED)[:, :, :channels].reshape(
            self.out_features, -1
        )
        return F.linear(x, w.to(x.dtype), self.bias.to(x.dtype))


class Conv(nn.Conv2d):
    """3 x 3, zero border; input channels last, [N][rows][cols][C]; missing channels are zeros."""

    def __init__(self, cin: int, cout: int):
        super().__init__(cin, cout, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        w = self.weight[:, : x.shape[-1]].to(x.dtype).contiguous(memory_format=torch.channels_last)
        y = F.conv2d(x.permute(0, 3, 1, 2), w, self.bias.to(x.dtype), padding=1)
        return y.permute(0, 2, 3, 1)


class Stem(nn.Module):
    """Full-resolution convolutions around the tokens, for BEV or cameras."""

    def __init__(self, width: int, channels: int, context: int, latents: int):
        super().__init__()
        self.channels, self.latents = channels, latents
        self.mod = Linear(width, 4 * channels)
        self.ctx = Conv(context, channels)
        self.inp = Conv(PADDED, channels)
        self.mid = Conv(channels, channels)
        self.embed = Linear(64 * channels, width)
        self.memory = Linear(64 * PADDED, width)
        self.unembed = Linear(width, 64 * channels)
        self.head = Conv(2 * channels, channels)
        self.out = Conv(channels, PADDED)

    def modulation(self, e: Tensor, dtype: torch.dtype) -> list[Tensor]:
        m = self.mod(e).to(dtype).view(e.shape[0], 4, 1, 1, self.channels)
        return [m[:, i] for i in range(4)]

    @staticmethod
    def spread(m: Tensor, n: int) -> Tensor:
        """Per-rollout [B][1][1][C] for n images, n a multiple of B."""
        return m if m.shape[0] == n else m.repeat_interleave(n // m.shape[0], 0)

    def enter(self, context: Tensor, x: Tensor, m: list[Tensor]) -> Tensor:
        n = x.shape[0]
        a = F.silu(
            torch.addcmul(self.spread(m[1], n), context + self.inp(x), 1 + self.spread(m[0], n))
        )
        return F.silu(self.mid(a))

    def leave(self, u: Tensor, h: Tensor, m: list[Tensor]) -> Tensor:
        n = h.shape[0]
        g = self.head(torch.cat([u, h], -1))
        g = F.silu(torch.addcmul(self.spread(m[3], n), g, 1 + self.spread(m[2], n)))
        w = self.out
        y = F.conv2d(
            g.permute(0, 3, 1, 2),
            w.weight[: self.latents].to(g.dtype),
            w.bias[: self.latents].to(g.dtype),
            padding=1,
        )
        return y.permute(0, 2, 3, 1)


class Block(nn.Module):
    """Spatial attention, temporal attention over memory, and a feed-forward layer."""

    def __init__(self, width: int, window: int, joint: bool):
        super().__init__()
        self.joint, self.heads = joint, width // HEAD
        self.table = nn.Parameter(torch.randn(6, width) * 0.02)
        self.qkv, self.o = Linear(width, 3 * width), Linear(width, width)
        self.tnorm = nn.LayerNorm(width, eps=1e-6)
        self.tq, self.tk = Linear(width, width), Linear(width, width)
        self.tv, self.tout = Linear(width, width), Linear(width, width)
        self.tbias = nn.Parameter(torch.zeros(self.heads, window))
        self.null_k = nn.Parameter(torch.randn(width) * 0.02)
        self.null_v = nn.Parameter(torch.zeros(width))
        self.fc1, self.fc2 = Linear(width, 4 * width), Linear(4 * width, width)

    def attend(self, n: Tensor, cos: Tensor, sin: Tensor, bev_tokens: int) -> Tensor:
        b, t, d = n.shape
        q, k, v = self.qkv(n).view(b, t, 3, self.heads, HEAD).unbind(2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.joint:
            return self.heads_of(q, k, v)
        if bev_tokens == t:
            return self.heads_of(q, k, v)
        parts = [
            (
                x[:, :bev_tokens],
                x[:, bev_tokens:].reshape(b * CAMERAS, CAM_TOKENS, self.heads, HEAD),
            )
            for x in (q, k, v)
        ]
        bev = self.heads_of(*(p[0] for p in parts))
        cam = self.heads_of(*(p[1] for p in parts)).reshape(b, CAMERAS * CAM_TOKENS, d)
        return torch.cat([bev, cam], 1)

    @staticmethod
    def heads_of(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = q.transpose(1, 2), k.permute(0, 2, 3, 1), v.transpose(1, 2)
        y = ((q / math.sqrt(HEAD)) @ k).softmax(-1) @ v
        return y.transpose(1, 2).flatten(2)

    def remember(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.tk(z), self.tv(z)

    def recall(self, x: Tensor, memory: tuple[Tensor, Tensor], there: Tensor) -> Tensor:
        """x [B][N][d]; memory K, V [B][W][N][d]; there [B][W][N]."""
        k, v = memory
        b, w, t, d = k.shape
        q = self.tq(
            F.layer_norm(
                x, (d,), self.tnorm.weight.to(x.dtype), self.tnorm.bias.to(x.dtype), 1e-6
            ).to(k.dtype)
        )
        wide = torch.float64 if k.dtype == torch.float64 else torch.float32
        logit = (q[:, None] * k).view(b, w, t, self.heads, HEAD).sum(-1, dtype=wide) / math.sqrt(
            HEAD
        )
        logit = logit + self.tbias.to(wide).t()[None, :w, None]
        logit = logit.masked_fill(~there[..., None], -1e30)
        null = (q * self.null_k.to(q.dtype)).view(b, 1, t, self.heads, HEAD).sum(
            -1, dtype=wide
        ) / math.sqrt(HEAD)
        p = torch.cat([logit, null], 1).softmax(1).to(k.dtype)
        y = (p[:, :w, ..., None] * v.view(b, w, t, self.heads, HEAD)).sum(1)
        y = y + p[:, w, ..., None] * self.null_v.to(k.dtype).view(self.heads, HEAD)
        return self.tout(y.flatten(2))

    def forward(
        self,
        x: Tensor,
        ada: Tensor,
        rot: tuple[Tensor, Tensor],
        memory,
        there,
        bev_tokens: int,
        dtype: torch.dtype,
    ) -> Tensor:
        m = ada + self.table.to(ada.dtype)
        n = norm(x) * (1 + m[:, 0:1]) + m[:, 1:2]
        x = x + m[:, 2:3] * self.o(self.attend(n.to(dtype), *rot, bev_tokens))
        if memory is not None:
            x = x + self.recall(x, memory, there)
        n = norm(x) * (1 + m[:, 3:4]) + m[:, 4:5]
        return x + m[:, 5:6] * self.fc2(F.silu(self.fc1(n.to(dtype))))


class WorldModel(nn.Module):
    """The network. `denoise` is one step, `sample` one tick."""

    def __init__(self, config: Config, compute: torch.dtype = torch.bfloat16):
        super().__init__()
        self.config, self.compute = config, compute
        d = config.width
        self.bev = Stem(d, config.bev_channels, 64, BEV)
        self.cam = Stem(d, config.camera_channels, 32, CAM)
        self.pos = nn.Parameter(torch.randn(TOKENS, d) * 0.02)
        self.time1, self.time2 = Linear(COND + 64, d), Linear(d, d)
        self.ada, self.final = Linear(d, 6 * d), Linear(d, 2 * d)
        self.blocks = nn.ModuleList(Block(d, config.window, bool(j)) for j in config.joint)
        self.start()

    def start(self) -> None:
        """Starts as the identity on the residual base, with open gates."""
        zero = [self.ada, self.final]
        for stem in (self.bev, self.cam):
            zero += [stem.mod, stem.out]
        for block in self.blocks:
            zero.append(block.tout)
        for layer in zero:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        with torch.no_grad():
            self.ada.bias.view(6, -1)[[2, 5]] = 0.5

    def page(self, bev: Tensor, cam: Tensor | None) -> Tensor:
        """Part of frames that memory keeps, [N]: z [N][216][d]."""
        zb = self.bev.memory.leading(latent(bev_patches(bev), self.compute), BEV)
        if cam is None:
            return norm(zb)
        zc = self.cam.memory.leading(latent(cam_patches(cam), self.compute), CAM)
        return norm(torch.cat([zb, zc], 1))

    def pages(self, tick: Tick) -> Tensor:
        """[B][W][216][d]."""
        b, w = tick.page_bev.shape[:2]
        cam = None if tick.page_cam is None else tick.page_cam.flatten(0, 1)
        return self.page(tick.page_bev.flatten(0, 1), cam).unflatten(0, (b, w))

    def recollect(self, tick: Tick, z: Tensor):
        """Per layer K and V of the pages in the present window, and where they exist."""
        index, there = page_index(tick.window, tick.page_window, tick.patches())
        count, valid = index.shape[2], tick.page_valid[..., None]
        bev = z[:, :, :count].gather(2, index[..., None].expand(-1, -1, -1, z.shape[-1]))
        cams = valid.expand(-1, -1, z.shape[2] - count)
        z = torch.cat([bev, z[:, :, count:]], 2)
        there = torch.cat([there & valid, cams], 2)
        return [block.remember(z) for block in self.blocks], there

    def prepare(self, tick: Tick, z: Tensor | None = None) -> dict:
        """Everything that does not depend on the step."""
        dt = self.compute
        bev, base_bev = bev_context(tick, dt)
        memory, there = self.recollect(tick, self.pages(tick) if z is None else z)
        ready = {
            "bev": self.bev.ctx(bev),
            "base_bev": base_bev,
            "memory": memory,
            "there": there,
            "rot": tuple(r.to(dt) for r in rotary_table(tick)),
            "cond": tick.cond,
            "pos": self.places(tick),
        }
        if tick.layout_cam is not None:
            cam, ready["base_cam"] = cam_context(tick, dt)
            ready["cam"] = self.cam.ctx(cam.flatten(0, 1))
        return ready

    def places(self, tick: Tick) -> Tensor:
        """The learned part of the tokens' places."""
        if tick.corner is None:
            return self.pos
        at = torch.arange(tick.patches(), device=tick.corner.device)
        r, c = tick.corner[:, 0, None] + at, tick.corner[:, 1, None] + at
        bev = self.pos[(r[:, :, None] * PATCHES + c[:, None, :]).flatten(1)]
        if tick.layout_cam is None:
            return bev
        return torch.cat([bev, self.pos[BEV_TOKENS:].expand(bev.shape[0], -1, -1)], 1)

    def denoise(
        self,
        x_bev: Tensor,
        x_cam: Tensor | None,
        t: Tensor,
        ready: dict,
        probe: Probe | None = None,
        step: int = 0,
    ) -> tuple[Tensor, Tensor | None]:
        """x0 of BEV [B][96][96][22] and cameras [B][3][32][48][12]."""
        dt, b = self.compute, x_bev.shape[0]
        wide = torch.float64 if dt == torch.float64 else torch.float32
        see = probe or (lambda *_: None)
        c = self.time2(
            F.silu(self.time1(torch.cat([ready["cond"].to(wide), time_features(t.to(wide))], -1)))
        )
        e = F.silu(c)
        mb, mc = self.bev.modulation(e, dt), self.cam.modulation(e, dt)
        hb = self.bev.enter(ready["bev"], x_bev.to(dt), mb)
        see(step, "bev.h", hb)
        tokens = [self.bev.embed(bev_patches(hb))]
        if x_cam is not None:
            hc = self.cam.enter(ready["cam"], x_cam.to(dt).flatten(0, 1), mc)
            tokens.append(self.cam.embed(cam_patches(hc.unflatten(0, (b, CAMERAS)))))
        count = tokens[0].shape[1]
        x = torch.cat(tokens, 1).to(wide) + ready["pos"].to(wide)
        see(step, "embed", x)
        ada = self.ada(e).view(b, 6, -1)
        for i, block in enumerate(self.blocks):
            x = block(x, ada, ready["rot"], ready["memory"][i], ready["there"], count, dt)
            see(step, f"block.{i}", x)
        f = self.final(e).view(b, 2, 1, -1)
        y = (norm(x) * (1 + f[:, 0]) + f[:, 1]).to(dt)
        see(step, "final", y)
        ub = bev_positions(self.bev.unembed(y[:, :count]))
        x0_bev = ready["base_bev"].to(wide) + self.bev.leave(ub, hb, mb).to(wide)
        see(step, "bev.x0", x0_bev)
        if x_cam is None:
            return x0_bev, None
        uc = cam_positions(self.cam.unembed(y[:, count:])).flatten(0, 1)
        x0_cam = ready["base_cam"].to(wide) + self.cam.leave(uc, hc, mc).to(wide).unflatten(
            0, (b, CAMERAS)
        )
        see(step, "camera.x0", x0_cam)
        return x0_bev, x0_cam

    @torch.no_grad()
    def sample(
        self,
        tick: Tick,
        noise: tuple[Tensor, Tensor | None],
        schedule: list[float] | None = None,
        z: Tensor | None = None,
        probe: Probe | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """One tick: the next frame's latents."""
        times = schedule or self.config.schedule
        ready = self.prepare(tick, z)
        xb, xc = noise
        for n in range(len(times) - 1):
            t = torch.full((xb.shape[0],), times[n], dtype=xb.dtype, device=xb.device)
            x0b, x0c = self.denoise(xb, xc, t, ready, probe, n)
            if n == len(times) - 2:
                return x0b, x0c
            share = (times[n + 1] - times[n]) / (1 - times[n])
            xb = xb + (x0b - xb) * share
            xc = xc if xc is None else xc + (x0c - xc) * share
        raise ValueError("an empty schedule")


def export_tensors(model: WorldModel) -> dict[str, Tensor]:
    """Parameters under their names in the file, convolutions as [out][3][3][in]."""
    out = {}
    for name, p in model.state_dict().items():
        name = ".".join(RENAME.get(part, part) for part in name.split("."))
        out[name] = (p.permute(0, 2, 3, 1) if p.dim() == 4 else p).contiguous()
    return out


def import_tensors(model: WorldModel, tensors: dict[str, Tensor]) -> None:
    """The inverse of export_tensors."""
    back = {v: k for k, v in RENAME.items()}
    state = {}
    for name, p in tensors.items():
        name = ".".join(back.get(part, part) for part in name.split("."))
        state[name] = (p.permute(0, 3, 1, 2) if p.dim() == 4 else p).float()
    model.load_state_dict(state)
