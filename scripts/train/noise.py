"""The sampler's noise, as the engine draws it: Philox4x32-10, four bytes summed and standardised.

`philox_noise` reproduces the engine's bits for one rollout and tick; `byte_noise` draws from the same
distribution with a PyTorch generator, for training.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from model import BEV, CAM, CAM_COLS, CAM_ROWS, CAMERAS, SIDE

STREAM_NOISE = 7
BEV_COUNT = SIDE * SIDE * BEV
CAM_COUNT = CAMERAS * CAM_ROWS * CAM_COLS * CAM


def philox(key: int, counter: np.ndarray) -> np.ndarray:
    """Counters [N][4] uint32 -> words [N][4] uint32 (Salmon et al., SC'11)."""
    c = counter.astype(np.uint64).T.copy()
    k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        high0, high1 = p0 >> np.uint64(32), p1 >> np.uint64(32)
        c = np.stack(
            [high1 ^ c[1] ^ np.uint64(k0), p1 & low, high0 ^ c[3] ^ np.uint64(k1), p0 & low]
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c.T.astype(np.uint32)


def standardise(words: np.ndarray) -> np.ndarray:
    """Words to the standardised sum of their four bytes."""
    total = sum((words >> np.uint32(8 * i)) & np.uint32(255) for i in range(4))
    return (total.astype(np.float32) - np.float32(510)) / np.float32(147.80)


def philox_noise(seed: int, tick: int) -> tuple[Tensor, Tensor]:
    """BEV [96][96][22] and cameras [3][32][48][12] of one tick."""
    blocks = (BEV_COUNT + CAM_COUNT) // 4
    counter = np.zeros((blocks, 4), np.uint32)
    counter[:, 0], counter[:, 1], counter[:, 2] = tick, STREAM_NOISE, np.arange(blocks)
    x = torch.from_numpy(standardise(philox(seed, counter)).reshape(-1))
    return x[:BEV_COUNT].view(SIDE, SIDE, BEV), x[BEV_COUNT:].view(CAMERAS, CAM_ROWS, CAM_COLS, CAM)


def byte_noise(shape: torch.Size, generator: np.random.Generator) -> Tensor:
    """The same distribution in any shape, from a numpy generator."""
    return torch.from_numpy(standardise(generator.integers(0, 1 << 32, tuple(shape), np.uint32)))
