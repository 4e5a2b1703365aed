"""Film strips: the recorded row above the generated row, BEV and front camera, as PNG.

BEV colours: grey road, white markings, dark where unseen, orange surfaces, magenta vulnerable road
users, a blue box for ego. The picture's top is the anchor's u, its left the anchor's v.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

import numpy as np
from torch import Tensor

GAP = 3


def write_png(path: Path, image: np.ndarray) -> None:
    """uint8 [rows][columns][3]."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows, cols = image.shape[:2]
    raw = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", cols, rows, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(raw, 9))
        + chunk(b"IEND", b"")
    )


def plane(frame: np.ndarray, first: int) -> np.ndarray:
    """Four sub-cell channels as an image in 0..1."""
    side = frame.shape[0]
    x = frame[..., first : first + 4].reshape(side, side, 2, 2).transpose(0, 2, 1, 3)
    return x.reshape(2 * side, 2 * side, 1) / 255.0


def draw_bev(frame: Tensor, ego: Tensor) -> np.ndarray:
    f = frame.numpy()
    image = np.full((192, 192, 3), 40.0)
    for first, colour in ((12, (90, 90, 90)), (16, (230, 230, 230))):
        share = plane(f, first)
        image = image * (1 - share) + share * np.array(colour)
    image *= 1 - 0.6 * plane(f, 8)
    for first, colour in ((0, (255, 150, 20)), (4, (255, 60, 220))):
        share = plane(f, first)
        image = image * (1 - share) + share * np.array(colour)
    draw_ego(image, ego.tolist())
    return image[::-1, ::-1].round().astype(np.uint8)


def draw_ego(image: np.ndarray, ego: list[float]) -> None:
    """A 4.5 m x 1.8 m box; ego is (u, v, heading, ..) from the window's corner."""
    r, c = np.mgrid[0:192, 0:192] * 0.5 + 0.25
    du, dv = r - ego[0], c - ego[1]
    along = du * math.cos(ego[2]) + dv * math.sin(ego[2])
    across = dv * math.cos(ego[2]) - du * math.sin(ego[2])
    image[(abs(along) < 2.25) & (abs(across) < 0.9)] = (60, 130, 255)


def draw_camera(packed: Tensor) -> np.ndarray:
    """The front camera, twice as large."""
    x = packed.numpy()[1].reshape(32, 48, 2, 2, 3).transpose(0, 2, 1, 3, 4).reshape(64, 96, 3)
    return x.repeat(2, 0).repeat(2, 1)


def write_film(path: Path, shots: list[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]) -> None:
    """shots: recorded and generated BEV, recorded and generated cameras, ego in the window."""
    columns = []
    for seen_bev, bev, seen_cam, cam, ego in shots:
        parts = [
            draw_bev(seen_bev, ego),
            draw_bev(bev, ego),
            draw_camera(seen_cam),
            draw_camera(cam),
        ]
        gap = np.full((GAP, 192, 3), 255, np.uint8)
        columns.append(np.concatenate([x for part in parts for x in (part, gap)][:-1]))
    gap = np.full((columns[0].shape[0], GAP, 3), 255, np.uint8)
    write_png(path, np.concatenate([x for column in columns for x in (column, gap)][:-1], 1))
