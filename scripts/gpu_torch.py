#!/usr/bin/env python3
"""The same world models in PyTorch on a GPU, as a baseline for scripts/gpu_check.

The shipped student's shape (scripts/train/model.py, random weights) over batches of slots, and a world step
at full scale (the configuration student-3b of kernels/cuda/scale/scale.h), in bfloat16 with flash attention (SDPA),
eager and compiled, each replayed as a CUDA graph; the fastest counts. The 3B student is compiled layer by layer:
its 112 layers of a world step share two programs, and what lies between layers is a few launches. K/V of earlier
pages and the noise are ready before the clock starts. Flags are PyTorch's own. Prints one JSON object per figure,
full scale first; with --budget nothing is compiled any more once two thirds of that many seconds are over.

Use: gpu_torch.py [--slots 1,64,1024] [--budget SECONDS] [--no-compile] [--no-scale]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "train"))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import model as network  # noqa: E402
from model import BEV, CAM, CAM_COLS, CAM_ROWS, CAMERAS, COND, SIDE  # noqa: E402
from model import Block, Config, Tick, WorldModel, quantise  # noqa: E402

START = time.monotonic()
REPEATS = 5
COMPILE_SLOTS_MAX = 64  # compiling larger batches costs more time than the check has


def figure(name: str, value: float, unit: str) -> None:
    print(json.dumps({"name": "PyTorch: " + name, "value": value, "unit": unit}), flush=True)


def graph_of(call):
    """The call captured after a warm-up on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def seconds(call, at_least_s: float = 0.2) -> float:
    """Median of a few timings by events, each of several calls."""
    call()
    torch.cuda.synchronize()
    start = time.monotonic()
    call()
    torch.cuda.synchronize()
    calls = max(1, int(at_least_s / max(time.monotonic() - start, 1e-5)))
    times = []
    for _ in range(REPEATS):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(calls):
            call()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b) / 1e3 / calls)
    return statistics.median(times)


def best(name: str, call, compiled=None) -> float:
    """The fastest of eager and compiled, as graphs; what fails is said and does not count.

    compiled: makes the compiled twin of call; None: too late for that.
    """
    found = []
    for way, make in [("eager", lambda: call)] + ([("compiled", compiled)] if compiled else []):
        try:
            begun = time.monotonic()
            found.append(seconds(graph_of(make())))
            print(f"# {name}, {way}: {found[-1] * 1e3:.3f} ms, {time.monotonic() - begun:.0f} s to get there",
                  flush=True)
        except Exception as error:  # noqa: BLE001: a baseline that cannot run is no reason to stop
            print(f"# {name}, {way}: {type(error).__name__}: {str(error)[:200]}", flush=True)
    return min(found, default=math.nan)


def may_compile(options: argparse.Namespace) -> bool:
    return not options.no_compile and time.monotonic() - START < options.budget * 2 / 3


# ---- the student ----


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
    return y.transpose(1, 2).flatten(2)


def student_tick(slots: int, window: int) -> Tick:
    def bytes_of(*shape: int) -> Tensor:
        return torch.randint(0, 256, shape, dtype=torch.uint8)

    return Tick(
        torch.zeros(slots, dtype=torch.long), torch.rand(slots, COND), torch.zeros(slots, 2, dtype=torch.long),
        torch.tensor([[16.0, 48.0, 0.1]]).repeat(slots, 1), bytes_of(slots, SIDE, SIDE, BEV),
        bytes_of(slots, CAMERAS, CAM_ROWS, CAM_COLS, CAM), bytes_of(slots, window, SIDE, SIDE, BEV),
        bytes_of(slots, window, CAMERAS, CAM_ROWS, CAM_COLS, CAM),
        torch.zeros(slots, window, 2, dtype=torch.long), torch.ones(slots, window, dtype=torch.bool),
    )


ROTARY = network.rotary_table


def settle(tick: Tick) -> None:
    """Steps that a capture does not allow are done before it: constants that come from the host, and a question
    to the device that only ticks without a layout ask."""
    table = ROTARY(tick)
    network.rotary_table = lambda tick: table
    network.layout_slot = lambda tick, frame, valid: tick.layout_bev


@torch.no_grad()
def student(slots: int, compiled: bool) -> None:
    config = Config()
    model = WorldModel(config, torch.bfloat16).cuda().eval().requires_grad_(False)
    for name, p in model.named_parameters():
        if not name.startswith(("time", "ada", "final", "pos")) and ".mod." not in name:
            p.data = p.data.to(torch.bfloat16)
    tick = student_tick(slots, config.window)
    noise = torch.randn(slots, SIDE, SIDE, BEV), torch.randn(slots, CAMERAS, CAM_ROWS, CAM_COLS, CAM)
    memory, there = model.recollect(tick, model.pages(tick))
    model.recollect = lambda tick, z: (memory, there)
    settle(tick)
    zeros = torch.zeros(slots, 1)

    def generate():
        bev, cam = model.sample(tick, noise, z=zeros)
        frame = quantise(bev), quantise(cam)
        z = model.page(*frame)
        return frame, [block.remember(z) for block in model.blocks]

    def compile_all():
        return torch.compile(generate, dynamic=False)

    took = best(f"student, {slots} slots", generate, compile_all if compiled and slots <= COMPILE_SLOTS_MAX else None)
    if took == took:
        figure(f"slot-ticks per second, {slots} slots", slots / took, "1/s")


# ---- full scale ----


class Wide(nn.Module):
    """A layer of student-3b: shared K/V heads, per-view or joint attention, memory, feed-forward."""

    width, heads, kv_heads, head, hidden = 3072, 24, 8, 128, 9216

    def __init__(self, joint: bool):
        super().__init__()
        d, kv = self.width, self.kv_heads * self.head
        self.joint = joint
        self.qkv, self.o = nn.Linear(d, d + 2 * kv, bias=False), nn.Linear(d, d, bias=False)
        self.tq, self.tout = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.fc1, self.fc2 = nn.Linear(d, self.hidden, bias=False), nn.Linear(self.hidden, d, bias=False)
        self.kv = nn.Linear(d, 2 * kv, bias=False)

    def attend(self, n: Tensor, views: list[int]) -> Tensor:
        t = n.shape[0]
        kv = self.kv_heads * self.head
        q, k, v = self.qkv(n).split([self.width, kv, kv], -1)
        q = q.view(t, self.heads, self.head).transpose(0, 1)[None]
        k = k.view(t, self.kv_heads, self.head).transpose(0, 1)[None]
        v = v.view(t, self.kv_heads, self.head).transpose(0, 1)[None]
        ends = [t] if self.joint else views
        parts = [
            F.scaled_dot_product_attention(a, b, c, enable_gqa=True)
            for a, b, c in zip(q.split(ends, 2), k.split(ends, 2), v.split(ends, 2))
        ]
        return torch.cat(parts, 2)[0].transpose(0, 1).reshape(t, self.width)

    def recall(self, n: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        q = self.tq(n).view(-1, self.heads, 1, self.head)
        y = F.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        return self.tout(y.reshape(-1, self.width))

    def forward(self, x: Tensor, m: Tensor, views: list[int], keys: Tensor, values: Tensor) -> Tensor:
        def norm(scale: int, shift: int) -> Tensor:
            return (F.layer_norm(x, (self.width,)) * (1 + m[scale]) + m[shift]).to(torch.bfloat16)

        x = x + m[2] * self.o(self.attend(norm(0, 1), views))
        x = x + self.recall(norm(3, 4), keys, values)
        return x + m[5] * self.fc2(F.silu(self.fc1(norm(3, 4))))


@torch.no_grad()
def full_scale(compiled: bool, layers: int = 28, views: list[int] | None = None) -> None:
    steps, window, views = 4, 12, views or [3600, 3600, 3600, 2048]
    tokens = sum(views)
    torch.set_default_dtype(torch.bfloat16)
    blocks = nn.ModuleList(Wide(i % 4 == 3) for i in range(layers)).eval().requires_grad_(False)
    torch.set_default_dtype(torch.float32)
    embed, unembed = (nn.Linear(a, b, bias=False, dtype=torch.bfloat16) for a, b in [(64, Wide.width), (Wide.width, 64)])
    x = torch.randn(tokens, 64)
    m = torch.randn(6, Wide.width) * 0.1
    memory = torch.randn(2, tokens, Wide.kv_heads, window, Wide.head, dtype=torch.bfloat16)

    def world_step(run=blocks):
        y = x
        for _ in range(steps):
            h = embed(y.to(torch.bfloat16)).float()
            for block in run:
                h = block(h, m, views, memory[0], memory[1])
            y = y + (unembed(h.to(torch.bfloat16)).float() - y) * 0.25
        z = embed(y.to(torch.bfloat16))
        return y, [block.kv(z) for block in blocks]

    def compile_layers():
        run = [torch.compile(block, dynamic=False) for block in blocks]
        return lambda: world_step(run)

    took = best("student-3b", world_step, compile_layers if compiled else None)
    if took == took:
        figure("student-3b, world step", took * 1e3, "ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--slots", default="1,64,1024")
    parser.add_argument("--budget", type=float, default=1e9)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--no-scale", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu_torch.py: PyTorch sees no GPU")
    torch.set_default_device("cuda")
    torch._dynamo.config.recompile_limit = 64  # layers share programs; where they cannot, none may fall back
    Block.heads_of = staticmethod(fused)
    if not options.no_scale:
        full_scale(may_compile(options))
        torch.cuda.empty_cache()
    for slots in (int(n) for n in options.slots.split(",")):
        student(slots, may_compile(options))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
