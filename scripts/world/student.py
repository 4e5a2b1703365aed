"""The shipped student as a world in NumPy. swerve run smoke --world "exec:python3 scripts/world/student.py"

What engine/model.md defines, in single precision, in the conditioning `agents`, read from the weights file that
the engine reads (the first argument; else the shipped one). It gives the engine's verdicts, not its bits: sums run in
another order. An example of the WINDOW form; a world of your own shape is shorter (echo.py, recurrent.py).
"""

import json
import pathlib
import struct
import sys

import swerve_world

try:
    import numpy as np
except ImportError:
    sys.exit("student.py: needs numpy")

SIDE, PATCHES, HEAD = 96, 12, 32
YAWS = np.array([np.pi / 3, 0.0, -np.pi / 3])
FRAMES = ((SIDE, SIDE, 22), (3, 32, 48, 12))
COUNTS = [int(np.prod(shape)) for shape in FRAMES]
STREAM_NOISE = 7


def read(path):
    """Config and tensors of a safetensors file, widened to single precision."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        first, end = (8 + size + at for at in about["data_offsets"])
        if about["dtype"] == "BF16":
            values = (np.frombuffer(data[first:end], "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data[first:end], "<f4")
        tensors[name] = values.reshape(about["shape"])
    return json.loads(header["__metadata__"]["config"]), tensors


def silu(x):
    return x / (1 + np.exp(-x))


def norm(x):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6))


def softmax(x, axis):
    x = np.exp(x - x.max(axis, keepdims=True))
    return x / x.sum(axis, keepdims=True)


def latent(frame):
    return frame.astype(np.float32) / np.float32(127.5) - 1


def pack(x):
    """Positions [..][8 R][8 C][K] to tokens [.. R C][64 K]."""
    *n, rows, cols, k = x.shape
    x = x.reshape(-1, rows // 8, 8, cols // 8, 8, k).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, 64 * k)


def unpack(x, shape):
    """And back, to positions of shape [images][rows][cols][K]."""
    images, rows, cols, k = shape
    x = x.reshape(images, rows // 8, cols // 8, 8, 8, k).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(shape)


def pad(x, channels):
    return np.concatenate([x, np.zeros((*x.shape[:-1], channels - x.shape[-1]), np.float32)], -1)


def noise(seed, tick):
    """The engine's: Philox4x32-10 (Salmon et al., SC'11), four bytes of a word summed and standardised."""
    blocks = sum(COUNTS) // 4
    low, c = np.uint64(0xFFFFFFFF), np.zeros((4, blocks), np.uint64)
    c[0], c[1], c[2] = tick, STREAM_NOISE, np.arange(blocks)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = np.stack([(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low,
                      (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low])
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    words = c.T.astype(np.uint32).reshape(-1)
    total = sum((words >> np.uint32(8 * i)) & np.uint32(255) for i in range(4)).astype(np.float32)
    x = (total - np.float32(510)) / np.float32(147.80)
    return x[: COUNTS[0]].reshape(1, *FRAMES[0]), x[COUNTS[0] :].reshape(FRAMES[1])


class Network:
    def __init__(self, path):
        self.config, self.w = read(path)
        self.heads = self.config["width"] // HEAD

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def conv(self, name, x):
        """3 x 3, zero border, on [images][rows][cols][K]."""
        _, rows, cols, k = x.shape
        weight = self.w[name + ".weight"]
        x = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        y = self.w[name + ".bias"]
        for i in range(3):
            for j in range(3):
                y = y + x[:, i : i + rows, j : j + cols] @ weight[:, i, j, :k].T
        return y

    def page(self, bev, cameras, window):
        """Memory of a frame: it, where it lies, and K and V per layer. Never changed afterwards."""
        z = [self.linear(stem + ".memory", pack(pad(latent(frame), 32))) for stem, frame in (("bev", bev[None]), ("cam", cameras))]
        z = norm(np.concatenate(z))
        memory = [(self.linear(f"blocks.{i}.tk", z), self.linear(f"blocks.{i}.tv", z)) for i in range(self.config["layers"])]
        return bev, cameras, window, memory

    def modulation(self, stem, e):
        return self.linear(stem + ".mod", e).reshape(4, -1)

    def attend(self, i, n, rotation):
        """Spatial attention of layer i over [216][d]."""
        q, k, v = self.linear(f"blocks.{i}.qkv", n).reshape(len(n), 3, self.heads, HEAD).transpose(1, 2, 0, 3)
        cos, sin = rotation

        def rotate(x):
            a, b = x[..., 0::2], x[..., 1::2]
            return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)

        q, k = rotate(q) / np.float32(np.sqrt(HEAD)), rotate(k)
        groups = [slice(None)] if self.config["joint"][i] else [slice(0, 144), slice(144, 168), slice(168, 192), slice(192, 216)]
        parts = [softmax(q[:, g] @ k[:, g].transpose(0, 2, 1), -1) @ v[:, g] for g in groups]
        return np.concatenate(parts, 1).transpose(1, 0, 2).reshape(len(n), -1)

    def recall(self, i, x, past):
        """Temporal attention: each token over the same patch in `past`, (rows, there, memory) of each page."""
        name = f"blocks.{i}."
        q = self.linear(name + "tq", norm(x) * self.w[name + "tnorm.weight"] + self.w[name + "tnorm.bias"])
        split = (len(x), self.heads, HEAD)
        scale = np.float32(np.sqrt(HEAD))
        logits, values = [], []
        for age, (rows, there, memory) in enumerate(past):
            key, value = (part[rows] for part in memory[i])
            logit = (q * key).reshape(split).sum(-1) / scale + self.w[name + "tbias"][:, age]
            logits.append(np.where(there[:, None], logit, np.float32(-1e30)))
            values.append(value.reshape(split))
        logits.append((q * self.w[name + "null_k"]).reshape(split).sum(-1) / scale)
        values.append(np.broadcast_to(self.w[name + "null_v"].reshape(1, self.heads, HEAD), split))
        share = softmax(np.stack(logits), 0)
        return self.linear(name + "to", (share[..., None] * np.stack(values)).sum(0).reshape(x.shape))

    def blocks(self, x, e, rotation, past):
        ada = self.linear("ada", e).reshape(6, -1)
        for i in range(self.config["layers"]):
            name = f"blocks.{i}."
            t = ada + self.w[name + "table"]
            x = x + t[2] * self.linear(name + "o", self.attend(i, norm(x) * (1 + t[0]) + t[1], rotation))
            x = x + self.recall(i, x, past)
            hidden = silu(self.linear(name + "fc1", norm(x) * (1 + t[3]) + t[4]))
            x = x + t[5] * self.linear(name + "fc2", hidden)
        scale, shift = self.linear("final", e).reshape(2, -1)
        return norm(x) * (1 + scale) + shift

    def denoise(self, t, xs, ready):
        """x0 of both views from their latents xs at time t."""
        angle = np.float32(t) * (0.628 * 1000 ** (np.arange(32) / 31)).astype(np.float32)
        known = np.concatenate([ready["cond"], np.sin(angle), np.cos(angle)]).astype(np.float32)
        e = silu(self.linear("time2", silu(self.linear("time1", known))))
        hidden, tokens, mods = [], [], []
        for stem, x, context in zip(("bev", "cam"), xs, ready["context"]):
            m = self.modulation(stem, e)
            a = silu((context + self.conv(stem + ".in", x)) * (1 + m[0]) + m[1])
            hidden.append(silu(self.conv(stem + ".mid", a)))
            tokens.append(self.linear(stem + ".embed", pack(hidden[-1])))
            mods.append(m)
        y = self.blocks(np.concatenate(tokens) + self.w["pos"], e, ready["rotation"], ready["past"])
        made = []
        for stem, part, h, m, base in zip(("bev", "cam"), (y[:144], y[144:]), hidden, mods, ready["base"]):
            u = unpack(self.linear(stem + ".unembed", part), h.shape)
            g = silu(self.conv(stem + ".head", np.concatenate([u, h], -1)) * (1 + m[2]) + m[3])
            made.append(base + self.conv(stem + ".out", g)[..., : base.shape[-1]])
        return made

    def prepare(self, pages, given):
        """All of a tick that does not depend on the sampler's step."""
        raster = [latent(np.asarray(given.raster.bev))[None], latent(np.asarray(given.raster.cameras))]
        window, past, shifted = (given.window_i, given.window_j), [], []
        at = np.arange(PATCHES)
        for bev, _, where, memory in pages:
            row, col = np.meshgrid(at + window[0] - where[0], at + window[1] - where[1], indexing="ij")
            there = ((row >= 0) & (row < PATCHES) & (col >= 0) & (col < PATCHES)).reshape(-1)
            rows = (np.clip(row, 0, PATCHES - 1) * PATCHES + np.clip(col, 0, PATCHES - 1)).reshape(-1)
            past.append((np.concatenate([rows, np.arange(144, 216)]), np.concatenate([there, np.ones(72, bool)]), memory))
            if len(shifted) < 2:
                frame = np.where(there[:, None], pack(latent(bev)[None])[rows], np.float32(0))
                valid = np.repeat(there[:, None], 64, 1).astype(np.float32)
                shifted.append((unpack(frame, (1, *FRAMES[0])), unpack(valid, (1, SIDE, SIDE, 1))))
        while len(shifted) < 2:
            shifted.append((np.zeros((1, *FRAMES[0]), np.float32), np.zeros((1, SIDE, SIDE, 1), np.float32)))
        (last, valid), (before, valid_before) = shifted
        before = np.concatenate([before[..., :8], before[..., 20:]], -1)
        geometry = self.geometry(window, given)
        bev = np.concatenate([last, before, raster[0], geometry, valid, valid_before], -1)
        row = np.broadcast_to(((np.arange(32) + 0.5) / 16 - 1)[None, :, None, None], (3, 32, 48, 1))
        col = np.broadcast_to(((np.arange(48) + 0.5) / 24 - 1)[None, None, :, None], (3, 32, 48, 1))
        cameras = np.concatenate([latent(pages[0][1]), raster[1], row, col, np.ones((3, 32, 48, 1))], -1).astype(np.float32)
        return {
            "cond": np.array(given.conditions, np.float32),
            "context": [self.conv("bev.ctx", bev), self.conv("cam.ctx", cameras)],
            "base": raster,
            "past": past,
            "rotation": self.rotation(window, given),
        }

    @staticmethod
    def geometry(window, given):
        at = np.arange(SIDE) + 0.5
        du = np.broadcast_to((8 * window[0] + at - given.local_x_m)[:, None], (SIDE, SIDE))
        dv = np.broadcast_to((8 * window[1] + at - given.local_y_m)[None, :], (SIDE, SIDE))
        r = np.maximum(np.sqrt(du * du + dv * dv), 1e-3)
        return np.stack([du / 64, dv / 64, r / 64, du / r, dv / r], -1).astype(np.float32)[None]

    @staticmethod
    def rotation(window, given):
        at = np.arange(PATCHES) + 0.5
        bev = np.stack(np.meshgrid(at, at, indexing="ij"), -1).reshape(-1, 2)
        angle = given.local_heading_rad + YAWS[:, None] - np.arctan((16 * np.arange(6) + 8 - 48) / 62.55)
        ahead = np.stack([np.cos(angle), np.sin(angle)], -1)[:, None] * np.array([8.0, 5.0, 2.5, 1.0])[None, :, None, None]
        ego = np.array([given.local_x_m, given.local_y_m]) / 8 - np.array(window)
        places = np.concatenate([bev, (ego + ahead).reshape(-1, 2)])
        turn = 2 * 0.6 ** np.arange(8)
        angle = np.concatenate([places[:, :1] * turn, places[:, 1:] * turn], -1)
        return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)

    def sample(self, pages, given):
        """The next page."""
        times = self.config["schedule"]
        ready, xs = self.prepare(pages, given), noise(given.seed, given.tick)
        for now, then in zip(times, times[1:]):
            x0 = self.denoise(now, xs, ready)
            share = np.float32((then - now) / (1 - now))
            xs = x0 if then == times[-1] else [x + (made - x) * share for x, made in zip(xs, x0)]
        bev, cameras = (np.minimum(np.floor(np.clip(x, -1, 1) * np.float32(127.5) + 128), 255).astype(np.uint8) for x in xs)
        return self.page(bev[0], cameras, (given.window_i, given.window_j))


class Student(swerve_world.World):
    name, version, form = "numpy-student", "1.0", swerve_world.WINDOW

    def __init__(self, path):
        self.network = Network(path)
        self.horizon_s = self.network.config["horizon_ticks"]["agents"] / 10

    def open(self, setup):
        if setup.conditioning != swerve_world.AGENTS:
            sys.exit("student.py: serves the conditioning \"agents\" alone")

    def reset(self, given):
        frames = [np.array(part) for part in (given.raster.bev, given.raster.cameras)]
        return (self.network.page(*frames, (given.window_i, given.window_j)),)

    def step(self, states, batch):
        pages = [self.network.sample(state, given) for state, given in zip(states, batch)]
        most = self.network.config["window"]
        return ([(page, *state[: most - 1]) for page, state in zip(pages, states)],
                [page[0] for page in pages], [page[1] for page in pages])


if __name__ == "__main__":
    shipped = pathlib.Path(__file__).resolve().parents[2] / "engine/models/student.safetensors"
    swerve_world.run(Student(sys.argv[1] if len(sys.argv) > 1 else shipped))
