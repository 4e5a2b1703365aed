#!/usr/bin/env python3
"""Compares the lenses of rigs with OpenCV's pinhole and fisheye models, and with NumPy's polynomials for f-theta.

    python3 -m venv venv && venv/bin/pip install opencv-python-headless==5.0.0.93 numpy
    venv/bin/python scripts/compare/lenses.py --build build

Random lenses of each model, with every coefficient, and random directions up to a model's angle. Each is projected by
Swerve (scripts/compare/lenses.c, linked with a build's libraries) and by the other side. Then the direction that Swerve
says the pixel looks in is projected by the other side, and must land there again. Fails where a bound is passed.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LENSES, POINTS = 5, 2000
# model: largest angle to the axis, bounds in pixels of a projection and of the way back
MODELS = {"pinhole": (0.65, 1e-4, 1e-4), "fisheye": (1.3, 1e-4, 1e-4), "ftheta": (1.0, 1e-4, 1e-3)}


def lens_of(model, rng):
    focal = rng.uniform(300, 1500)
    lens = {"model": model, "cx": rng.uniform(600, 680), "cy": rng.uniform(330, 390)}
    if model == "ftheta":
        return lens | {"angle_to_pixels": [0, focal, rng.uniform(-5, 5), rng.uniform(-60, 10), rng.uniform(-5, 5)]}
    lens |= {"fx": focal, "fy": focal * rng.uniform(0.95, 1.05)}
    if model == "fisheye":
        return lens | {"k": list(rng.uniform(-0.02, 0.02, 4) * [1, 0.5, 0.2, 0.05])}
    return lens | {"k": list(rng.uniform(-0.1, 0.1, 6) * [2, 1, 0.2, 0.5, 0.3, 0.1]), "p": list(rng.uniform(-2e-3, 2e-3, 2))}


def project(lens, directions):
    """The other side's pixels of directions [n, 3]."""
    if lens["model"] == "ftheta":
        side = np.hypot(directions[:, 0], directions[:, 1])
        radius = np.polynomial.polynomial.polyval(np.arctan2(side, directions[:, 2]), lens["angle_to_pixels"])
        return np.array([lens["cx"], lens["cy"]]) + directions[:, :2] * (radius / side)[:, None]
    camera = np.array([[lens["fx"], 0, lens["cx"]], [0, lens["fy"], lens["cy"]], [0, 0, 1]])
    zero, k = np.zeros(3), lens["k"]
    if lens["model"] == "fisheye":
        pixels, _ = cv2.fisheye.projectPoints(directions[:, None, :], zero, zero, camera, np.array(k))
    else:
        pixels, _ = cv2.projectPoints(directions[:, None, :], zero, zero, camera, np.array(k[:2] + lens["p"] + k[2:]))
    return pixels[:, 0, :]


def build_program(build, path):
    libraries = sorted(str(library) for library in build.rglob("lib*.a") if library.parent.name in ("engine", "kernels", "schemas", "base"))
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", f"-I{SOURCE}", str(SOURCE / "scripts/compare/lenses.c"), "-o", path, "-Wl,--start-group", *libraries,
                    "-Wl,--end-group", "-ljansson", "-lpng", "-lzstd", "-lm", "-ldl", "-lpthread"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build", help="a build directory (build)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    lenses = [lens_of(model, rng) for model in MODELS for _ in range(LENSES)]
    cameras = [{"id": f"camera{i}", "width": 1280, "height": 720, "pose": {"x_m": 0, "y_m": 0, "z_m": 1}, "lens": lens}
               for i, lens in enumerate(lenses)]
    directions = []
    for lens in lenses:
        angle = MODELS[lens["model"]][0] * np.sqrt(rng.uniform(1e-6, 1, POINTS))
        turn = rng.uniform(0, 2 * math.pi, POINTS)
        directions.append(np.stack([np.sin(angle) * np.cos(turn), np.sin(angle) * np.sin(turn), np.cos(angle)], axis=1))
    with tempfile.TemporaryDirectory() as folder:
        program, rig = f"{folder}/lenses", pathlib.Path(folder, "rig.json")
        build_program(options.build, program)
        rig.write_text(json.dumps({"id": "lenses", "cameras": cameras}))
        lines = "".join(f"{i} {x!r} {y!r} {z!r}\n" for i, rows in enumerate(directions) for x, y, z in rows.tolist())
        told = subprocess.run([program, rig], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    failed = 0
    for name, (_, bound, bound_back) in MODELS.items():
        off = off_back = missing = 0
        for i, lens in enumerate(lenses):
            if lens["model"] != name:
                continue
            words = [line.split() for line in told[i * POINTS:(i + 1) * POINTS]]
            seen = np.array([len(line) == 5 for line in words])
            found = np.array([line for line in words if len(line) == 5], dtype=float)
            missing += int((~seen).sum())
            off = max(off, float(np.abs(found[:, :2] - project(lens, directions[i][seen])).max()))
            off_back = max(off_back, float(np.abs(found[:, :2] - project(lens, found[:, 2:])).max()))
        bad = off > bound or off_back > bound_back or missing > 0
        failed += bad
        print(f"{name:8} {LENSES} lenses, {LENSES * POINTS} directions: {off:.1e} pixels, back {off_back:.1e}, {missing} not seen"
              f"{'  FAILED' if bad else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
