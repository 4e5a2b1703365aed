"""Trains token traffic (engine/worlds/tokens.h), the network of `swerve correlate --tokens`, on the CPU.

    mkdir drives && scripts/foresight.py build/worker/swerve --keep drives --seed 2000 --scenes 400 --rows
    python scripts/train/traffic.py drives/*.rows --out tokens.safetensors [--leave bend,merge]

A row is what `swerve correlate --rows` writes: the scene, the acceleration beyond IDM's that a vehicle
has over the next half second, and what the network sees. The loss is the cross entropy of the tokens
(the acceleration shared between the two next to it) and a quarter of the squared error of their mean, which
the nominal future takes. Weights are averaged over the last fifth of the steps.
"""

import argparse
import math
import pathlib
import time

import numpy as np
import torch
from torch import Tensor, nn

INPUTS = 73
BATCH, RATE, DECAY, MEAN_SHARE = 256, 1.5e-3, 1e-4, 0.25
CENTRES_MPS2 = [-9, -7, -5, -3.6, -2.6, -1.9, -1.4, -1.0, -0.7, -0.45, -0.25, -0.1, 0,
                0.1, 0.25, 0.45, 0.7, 1.0, 1.4, 1.9, 2.6, 3.8, 5.5, 8, 11]  # fmt: skip


def read_rows(paths: list[pathlib.Path]) -> tuple[Tensor, Tensor]:
    """Inputs [rows, INPUTS] and accelerations [rows]."""
    rows = [np.fromfile(path, "<f4") for path in paths]
    for path, found in zip(paths, rows):
        if found.size == 0 or found.size % (INPUTS + 2):
            raise SystemExit(f"{path}: expected rows of {INPUTS + 2} numbers, found {found.size} numbers")
    joined = torch.from_numpy(np.concatenate(rows).reshape(-1, INPUTS + 2))
    return joined[:, 2:].contiguous(), joined[:, 1].contiguous()


def shares(accel: Tensor, centres: Tensor) -> Tensor:
    """Targets [rows, tokens]: each acceleration shared between the two tokens about it."""
    within = accel.clamp(float(centres[0]), float(centres[-1]))
    low = torch.searchsorted(centres, within).sub(1).clamp(0, len(centres) - 2)
    share = (within - centres[low]) / (centres[low + 1] - centres[low])
    out = torch.zeros(len(accel), len(centres))
    rows = torch.arange(len(accel))
    out[rows, low] = 1 - share
    out[rows, low + 1] = share
    return out


def network(tokens: int, hidden: int) -> nn.Sequential:
    net = nn.Sequential(nn.Linear(INPUTS, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                        nn.Linear(hidden, tokens))  # fmt: skip
    for layer in net[::2]:
        nn.init.normal_(layer.weight, 0, math.sqrt(2 / layer.in_features))
        nn.init.zeros_(layer.bias)
    with torch.no_grad():
        net[4].weight.mul_(0.1)
    return net


def loss_of(logits: Tensor, accel: Tensor, centres: Tensor) -> Tensor:
    logs = torch.log_softmax(logits, 1)
    entropy = -(shares(accel, centres) * logs).sum(1).mean()
    mean = (logs.exp() * centres).sum(1)
    within = accel.clamp(float(centres[0]), float(centres[-1]))
    return entropy + MEAN_SHARE * (mean - within).square().mean()


def train(inputs: Tensor, accel: Tensor, centres: Tensor, steps: int, hidden: int) -> nn.Sequential:
    net = network(len(centres), hidden)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY / RATE)
    average = [torch.zeros_like(p) for p in net.parameters()]
    began, seen, kept = time.process_time(), 0.0, 0
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min((step + 1) / 200, 1) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        rows = torch.randint(len(inputs), (BATCH,))
        loss = loss_of(net(inputs[rows]), accel[rows], centres)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        seen = loss.item() if step == 0 else 0.99 * seen + 0.01 * loss.item()
        if step >= steps * 4 // 5:
            kept += 1
            with torch.no_grad():
                for mean, p in zip(average, net.parameters()):
                    mean += (p - mean) / kept
        if (step + 1) % 1000 == 0:
            print(f"step {step + 1} of {steps}, loss {seen:.4f}, {time.process_time() - began:.0f} s", flush=True)
    with torch.no_grad():
        for mean, p in zip(average, net.parameters()):
            p.copy_(mean)
    return net


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=pathlib.Path, nargs="+")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--leave", default="", help="families to leave out, with commas: names of files")
    parser.add_argument("--hidden", type=int, default=128, help="width (128)")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    from safetensors.numpy import save_file  # after the options: --help needs no package

    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    left = set(args.leave.split(",")) if args.leave else set()
    unknown = left - {path.stem for path in args.rows}
    if unknown:
        raise SystemExit(f"--leave: no rows of {', '.join(sorted(unknown))}")
    inputs, accel = read_rows([path for path in args.rows if path.stem not in left])
    centres = torch.tensor(CENTRES_MPS2, dtype=torch.float32)
    net = train(inputs, accel, centres, args.steps, args.hidden)
    tensors = {"centres": centres.numpy()}
    for i, layer in enumerate(net[::2]):
        tensors[f"weight_{i}"] = np.ascontiguousarray(layer.weight.detach().numpy().T)
        tensors[f"bias_{i}"] = layer.bias.detach().numpy()
    save_file(tensors, args.out, {"rows": str(len(inputs)), "left_out": args.leave})


if __name__ == "__main__":
    main()
