#!/usr/bin/env python3
"""Processor time that a chunk of eight frames of 1280 x 720 takes the client of a world model, beside decoding them.

Usage: omnidreams_client.py [--build BUILD] [--chunks N] [--rounds N]
The server is `swerve alpasim`, which draws them in a process of its own. Exit 1: the median of the rounds is over 5 ms.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT, BOUND_MS = pathlib.Path(__file__).resolve().parents[2], 5.0
SCENE = ROOT / "scenarios" / "urban" / "following.json"
RIG = {"id": "wide", "cameras": [{"id": "front", "width": 1280, "height": 720, "rate_hz": 30, "pose": {"x_m": 1.5, "y_m": 0, "z_m": 1.5},
                                  "lens": {"model": "ftheta", "cx": 639.5, "cy": 359.5, "angle_to_pixels": [0, 800], "max_angle_rad": 1.2}}]}


def build_program(build, path):
    libraries = sorted(str(library) for library in build.rglob("lib*.a")
                       if library.parent.parent == build or library.parent.name in ("program", "proto", "ref", "x86"))
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{build}", str(ROOT / "scripts/compare/omnidreams_client.c"), "-o", path,
                    "-Wl,--start-group", *libraries, "-Wl,--end-group", "-ljansson", "-lpng", "-ljpeg", "-lzstd", "-lnghttp2", "-lprotobuf-c", "-lm",
                    "-ldl", "-lpthread"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--chunks", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "rig.json").write_text(json.dumps(RIG))
        build_program(options.build, folder / "client")
        server = subprocess.Popen([options.build / "worker" / "swerve", "alpasim", SCENE, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip()
            rounds = [[float(word) for word in subprocess.run([folder / "client", address, str(options.chunks), folder / "rig.json", SCENE], check=True,
                                                              capture_output=True, text=True).stdout.split()] for _ in range(options.rounds)]
        finally:
            server.terminate()
            server.wait()
    beside = statistics.median(used - decoded for used, decoded in rounds)
    print(f"a chunk of 8 frames: {statistics.median(used for used, _ in rounds):.2f} ms of processor, {statistics.median(d for _, d in rounds):.2f} ms of "
          f"them decoding, {beside:.2f} ms beside it (at most {BOUND_MS})")
    sys.exit(beside > BOUND_MS)


if __name__ == "__main__":
    main()
