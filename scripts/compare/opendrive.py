#!/usr/bin/env python3
"""Compares lanes of OpenDRIVE files with where esmini's road manager puts them.

    git clone --recurse-submodules https://github.com/esmini/esmini
    cmake -S esmini -B made -DUSE_OSG=OFF -DUSE_OSI=OFF -DUSE_SUMO=OFF -DUSE_GTEST=OFF -DDOWNLOAD_EXTERNALS=OFF
    make -C made RoadManager
    meson compile -C build test_opendrive_place
    scripts/compare/opendrive.py --esmini esmini --made made [--table] FILE_OR_FOLDER..

Every lane of every section is sampled at 20 places, reference lines too. esmini tilts roads by their superelevation and
slope, Swerve is flat: both read a copy without them. Prints per file what was compared, the largest distance, and
what Swerve notes; with --table in Markdown. Files that either refuses are named with the reason.
"""
import argparse
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROFILES = re.compile(r"<(elevationProfile|lateralProfile)\b(?:[^>]*/>|.*?</\1\s*>)", re.DOTALL)


def sampler_module():
    spec = importlib.util.spec_from_file_location("opendrive_vectors", ROOT / "tests/vectors/opendrive_vectors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(program: pathlib.Path, sampler: pathlib.Path, vectors, file: pathlib.Path, folder: pathlib.Path) -> list[str]:
    flat = folder / "flat.xodr"
    flat.write_text(PROFILES.sub("", file.read_text(errors="replace")))
    ours = subprocess.run([program, flat], input="\n".join(vectors.sample(sampler, flat, 20)), capture_output=True,
                          text=True, timeout=300)
    words = ours.stdout.strip().split(" ", 5)
    if ours.returncode != 0 or len(words) < 5:
        return [file.name, "refused", ours.stdout.strip().replace(str(flat), file.name), "", ""]
    count, missing, worst, roads, lanes = words[:5]
    if int(count) == 0:
        return [file.name, f"{roads} / {lanes}", "0", "esmini reads nothing", ""]
    return [file.name, f"{roads} / {lanes}", count + (f" ({missing} not there)" if missing != "0" else ""), f"{worst} m",
            words[5] if len(words) > 5 else ""]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--esmini", type=pathlib.Path, required=True, help="its sources")
    parser.add_argument("--made", type=pathlib.Path, required=True, help="where it was built")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/tests/scenarios/test_opendrive_place")
    parser.add_argument("--table", action="store_true", help="Markdown")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    given = parser.parse_args()
    files = [file for path in given.paths for file in (sorted(path.rglob("*.xodr")) if path.is_dir() else [path])]
    vectors = sampler_module()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sampler = vectors.build(given.esmini, given.made, folder)
        for file in files:
            row = compare(given.program, sampler, vectors, file, folder)
            print("| " + " | ".join(row) + " |" if given.table else "\t".join(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
