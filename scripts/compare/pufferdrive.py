#!/usr/bin/env python3
"""Agent-steps per second of PufferDrive's Drive environment and of Swerve, of the same scenes, by turns, in one thread.

    python3 -m venv venv && venv/bin/pip install numpy gymnasium tqdm
    PYTHONPATH=scripts:python venv/bin/python scripts/compare/pufferdrive.py CHECKOUT SCENE.json... --swerve build/worker/swerve

CHECKOUT is PufferDrive's source tree as its setup.py leaves it, with raylib unpacked in it (its renderer, which is linked and
never called) and inih, or Debian's libinih-dev. SCENE is a scene of WOMD in GPUDrive's JSON. Of each only the objects are kept
that PufferDrive controls (vehicles, there at the start, with 2 m or more to go; 31 and the recording vehicle at most), so that
both have the same agents and move all of them; PufferDrive's own converter and `swerve import womd` read this file.

PufferDrive is compiled with -O3 -march=native (its setup.py has -O2). Its step checks each agent against the others, road
edges and lanes; without observations means its step with the calls of compute_observations left out. Swerve's is what people
get. Time is processor time; figures are medians, ratios medians of the rounds' ratios. Prints JSON and Markdown rows.
"""
import argparse
import importlib.util
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time

import numpy

from swerve import _native
from swerve.gym import SwerveVectorEnv

HERE = pathlib.Path(__file__).resolve().parent
OTHERS_MAX, TO_GO_MIN_M = 31, 2.0
BENCH_SLOTS = 16  # of `swerve bench world --scene`
PARTS = ("ego", "route")


def controlled(scene):
    """The scene with no other objects than PufferDrive would control, and the recording vehicle as the last."""
    objects, ego = scene["objects"], scene["metadata"]["sdc_track_index"]

    def moves(item):
        start, goal = item["position"][0], item["goalPosition"]
        return math.hypot(start["x"] - goal["x"], start["y"] - goal["y"]) >= TO_GO_MIN_M

    kept = [
        item
        for index, item in enumerate(objects)
        if index != ego and item["type"] == "vehicle" and item["valid"][0] and not item.get("mark_as_expert") and moves(item)
    ][:OTHERS_MAX] + [objects[ego]]
    about = {**scene["metadata"], "sdc_track_index": len(kept) - 1, "objects_of_interest": [], "tracks_to_predict": []}
    return {**scene, "objects": kept, "metadata": about}


class PufferDrive:
    """A checkout, built into `folder`: the stepping program, the Python binding, the converter of scenes."""

    def __init__(self, checkout, folder):
        self.root, self.folder = checkout.resolve(), folder
        source = self.root / "pufferlib/ocean/drive"
        header = (source / "drive.h").read_text()
        switched, calls = re.subn(r"(?m)^(\s+)compute_observations\(env\);", r"\1if (observing) compute_observations(env);", header)
        if calls != 2:
            sys.exit(f"{source}/drive.h: expected 2 calls of compute_observations, found {calls}")
        (folder / "drive_switched.h").write_text(switched)
        raylib = next(iter(sorted(self.root.glob("raylib-*linux*"))), None)
        if raylib is None:
            sys.exit(f"{self.root}: expected raylib-*_linux_amd64 in it, as its setup.py unpacks it, found none")
        inih = next(iter(self.root.glob("inih-*/ini.c")), None)
        flags = "-O3 -march=native -fwrapv -w -DPLATFORM_DESKTOP".split()
        flags += [f"-I{path}" for path in (folder, source, source.parent, raylib / "include", *([inih.parent] if inih else []))]
        after = ([str(inih)] if inih else []) + [str(raylib / "lib/libraylib.a")] + ([] if inih else ["-linih"])
        after += ["-lm", "-lpthread", "-ldl"]
        self.program = folder / "step"
        subprocess.run(["gcc", *flags, HERE / "pufferdrive.c", "-o", self.program, *after], check=True)
        python = ["-shared", "-fPIC", f"-I{sysconfig.get_paths()['include']}", f"-I{numpy.get_include()}"]
        binding = folder / "binding.so"
        subprocess.run(["gcc", *flags, *python, source / "binding.c", "-o", binding, *after], check=True)
        self.module = self._load(binding)

    def _load(self, binding):
        os.chdir(self.root)  # it opens its settings by a relative path
        sys.path.insert(0, str(self.root))
        spec = importlib.util.spec_from_file_location("binding", binding)
        sys.modules["pufferlib.ocean.drive.binding"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        spec = importlib.util.spec_from_file_location("pufferdrive_drive", self.root / "pufferlib/ocean/drive/drive.py")
        drive = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(drive)
        return drive

    def convert(self, scene, folder):
        folder.mkdir()
        self.module.load_map(str(scene), 0, str(folder / "map_000.bin"))
        return folder

    def stepped(self, folder, observed, count, seconds):
        """(agents, steps of an environment per second) of `count` environments in C"""
        command = [self.program, folder / "map_000.bin", observed, str(count), str(seconds)]
        out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return out["agents"], out["steps"] / out["seconds"]

    def vector(self, folder, agents, count, control):
        """A function that steps `count` environments of `agents` controlled agents, as its users do."""
        env = self.module.Drive(
            num_agents=agents * count, num_maps=1, map_dir=str(folder), control_mode=control, episode_length=91,
            resample_frequency=0, report_interval=1 << 30, termination_mode=1,
        )
        if env.num_envs != count:
            sys.exit(f"PufferDrive: expected {count} environments of {agents} agents, found {env.num_envs}")
        env.reset()
        drawn = numpy.random.default_rng(1).integers(0, 7 * 13, (16, *env.actions.shape)).astype(env.actions.dtype)
        return lambda index: env.step(drawn[index % 16])


def per_second(step, count, seconds):
    """Calls of step() by processor time, times count."""
    calls, began = 0, time.process_time()
    while (took := time.process_time() - began) < seconds or calls == 0:
        for _ in range(8):
            step(calls)
            calls += 1
    return calls * count / took


def drawn_actions(count):
    return numpy.random.default_rng(1).uniform([-1.0, -0.01], [1.5, 0.01], (16, count, 2)).astype(numpy.float32)


def bare(scene, world, count):
    """The C function of Swerve's environments, and the resets that its drives need."""
    batch, actions = _native.Batch(scene, count, world, 1, 0), drawn_actions(count)
    batch.reset(list(range(count)), [0] * count, [1] * count)

    def step(index):
        batch.actions[:] = actions[index % 16]
        batch.step()
        ended = numpy.flatnonzero(batch.end != _native.GOES_ON).tolist()
        if ended:
            batch.reset(ended, [0] * len(ended), [1] * len(ended))

    return step


def vector(scene, world, count):
    env = SwerveVectorEnv(scene, count, world=world, observation=PARTS)
    env.reset(seed=1)
    actions = drawn_actions(count)
    return lambda index: env.step(actions[index % 16])


def physics(swerve, scene):
    """{name: value} of `swerve bench world --scene`."""
    out = subprocess.run([swerve, "bench", "world", "--scene", scene, "--json"], check=True, capture_output=True, text=True)
    return {row["name"]: row["value"] for row in json.loads(out.stdout)["results"]}


def compared(rounds, ours, theirs):
    """(median of ours, median of theirs, median of the ratios)"""
    return tuple(statistics.median(values) for values in (
        [r[ours] for r in rounds], [r[theirs] for r in rounds], [r[ours] / r[theirs] for r in rounds]))


def measure(drive, folder, scene, options):
    name = re.sub(r"^tfrecord-|\.json$", "", scene.name)
    kept = folder / scene.name
    kept.write_text(json.dumps(controlled(json.loads(scene.read_text()))))
    imported = folder / f"{name}.swerve.json"
    subprocess.run([options.swerve, "import", "womd", kept, "-o", imported], check=True, stdout=subprocess.DEVNULL)
    maps = drive.convert(kept, folder / f"{name}.maps")
    agents, _ = drive.stepped(maps, "blind", 1, 0.1)
    count = options.envs
    ways = {
        "C object": bare(imported, "object", count), "C replay": bare(imported, "replay", count),
        "env object": vector(imported, "object", count), "env replay": vector(imported, "replay", count),
        "env theirs": drive.vector(maps, agents, count, "control_vehicles"),
        "env theirs, ego": drive.vector(maps, 1, count, "control_sdc_only"),
    }
    for step in ways.values():
        per_second(step, count, 0.2)
    rounds = []
    for _ in range(options.rounds):
        row = {
            f"{kind} theirs": drive.stepped(maps, kind, number, options.seconds)[1] * agents
            for kind, number in (("blind", BENCH_SLOTS), ("observed", count))
        }
        row |= physics(options.swerve, imported)
        row |= {way: per_second(step, count, options.seconds) for way, step in ways.items()}
        for world in ("object", "replay"):  # environments' steps to agents'
            for kind in ("C", "env"):
                row[f"{kind} {world}, agents"] = row[f"{kind} {world}"] * row[f"{world}.agents"]
        row["env theirs, agents"] = row["env theirs"] * agents
        rounds.append(row)
    pairs = [(f"{kind}, {world}", ours.format(world), theirs) for kind, ours, theirs in (
        ("agent-steps, physics", "{}.physics", "blind theirs"),
        ("agent-steps, observed", "C {}, agents", "observed theirs"),
        ("agent-steps, Python", "env {}, agents", "env theirs, agents"),
        ("environment steps, Python", "env {}", "env theirs"),
        ("environment steps, Python, ego alone controlled", "env {}", "env theirs, ego"),
    ) for world in ("object", "replay")]
    return {"scene": name, "agents": agents, "rows": {label: compared(rounds, ours, theirs) for label, ours, theirs in pairs}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("scenes", type=pathlib.Path, nargs="+")
    parser.add_argument("--swerve", type=lambda text: str(pathlib.Path(text).resolve()), required=True)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    scenes = [scene.resolve() for scene in options.scenes]
    with tempfile.TemporaryDirectory() as folder:
        drive = PufferDrive(options.checkout, pathlib.Path(folder))
        for scene in scenes:
            found = measure(drive, pathlib.Path(folder), scene, options)
            print(json.dumps(found))
            for label, (ours, theirs, ratio) in found["rows"].items():
                print(f"| {found['scene']}, {found['agents']} agents | {label} | {ours:,.0f} | {theirs:,.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
