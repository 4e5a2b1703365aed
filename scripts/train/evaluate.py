"""Closed-loop evaluation on held-out clips: ego acts as recorded, frames are the model's own.

Every rollout begins as in the engine, with one recorded frame as context. Rows: each model, the last
frame copied in the anchored grid, the constant-velocity oracle, and the recorded frame itself (what a
perfect generator of the sensor's noise would score). Everything is judged against the noise-free
visible truth. Writes a Markdown table and, with --films, film strips.

Use: evaluate.py --data 'DIR/heldout-*.safetensors' --model engine/models/student.safetensors [--model ..]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Iterator

import torch
from torch import Tensor

from data import AGENTS, MAP, Clip, Stream, batch_tick, camera_layouts, load_clips, targets, truth
from export import read_any
from film import write_film
from metrics import Tally, constant_velocity, copied
from model import DEGREES, Tick, WorldModel, quantise
from noise import philox_noise

HORIZONS = {1: "0.1 s", 5: "0.5 s", 10: "1 s", 30: "3 s", 50: "5 s", 100: "10 s"}
BASELINES = ("copy", "velocity", "recorded")
COLUMNS = {
    "moving": "moving IoU",
    "surface": "all IoU",
    "vru": "VRU recall",
    "agents": "permanence",
    "area": "area ratio",
    "sensor": "BEV error",
    "response": "within 0.5 m",
    "camera": "camera error",
    "consistency": "agents in camera",
}


def noises(streams: list[Stream]) -> tuple[Tensor, Tensor]:
    """The engine's noise: the clip's seed, the tick within the clip."""
    drawn = [
        philox_noise(int(s.clip.shard.tensors["clip"][s.clip.row, 0]), s.tick) for s in streams
    ]
    return torch.stack([d[0] for d in drawn]), torch.stack([d[1] for d in drawn])


def rollout(
    model: WorldModel, clips: list[Clip], degree: int, ticks: int
) -> Iterator[tuple[list[Stream], Tensor, Tensor, Tick]]:
    """Yields, for each tick, the streams (before they advance) and the generated frames."""
    streams = [Stream(clip, 1, degree).recorded(1) for clip in clips]
    for _ in range(ticks):
        tick = batch_tick(streams, model.config.window)
        bev, cam = (quantise(x) for x in model.sample(tick, noises(streams)))
        yield streams, bev, cam, tick
        for s, b, c in zip(streams, bev, cam):
            s.advance(b, c, model.config.window)


def score_model(
    model: WorldModel, clips: list[Clip], degree: int, horizons: list[int], batch: int
) -> dict[int, dict]:
    tallies = {h: Tally.new() for h in horizons}
    for first in range(0, len(clips), batch):
        for k, (streams, bev, cam, _) in enumerate(
            rollout(model, clips[first : first + batch], degree, max(horizons)), 1
        ):
            if k in tallies:
                tallies[k].add(bev, cam, targets(streams), camera_layouts(streams))
    return {h: t.figures() for h, t in tallies.items()}


def score_baseline(
    name: str, clips: list[Clip], horizons: list[int], batch: int
) -> dict[int, dict]:
    out = {}
    for h in horizons:
        tally = Tally.new()
        for first in range(0, len(clips), batch):
            streams = [Stream(c, h, AGENTS) for c in clips[first : first + batch]]
            recorded = targets(streams)
            windows = [
                torch.stack([s.clip.get("window", k).long() for s in streams]) for k in (0, h)
            ]
            start = torch.stack([s.clip.get("bev", 0) for s in streams])
            cam = torch.stack([s.clip.get("camera", 0) for s in streams])
            bev = copied(start, *windows)
            if name == "velocity":
                begin = torch.stack([truth(s.clip, 0) for s in streams])
                bev = constant_velocity(begin, *windows, 0.1 * h)
            elif name == "recorded":
                bev, cam, _ = recorded
            tally.add(bev, cam, recorded, camera_layouts(streams))
        out[h] = tally.figures()
    return out


def table(title: str, rows: dict[str, dict[int, dict]]) -> str:
    lines = [
        f"### {title}",
        "",
        "| | horizon | " + " | ".join(COLUMNS.values()) + " |",
        "|---" * (2 + len(COLUMNS)) + "|",
    ]
    for name, by_horizon in rows.items():
        for h, figures in by_horizon.items():
            row = " | ".join(
                "-" if figures[c] != figures[c] else f"{figures[c]:.3f}" for c in COLUMNS
            )
            lines.append(f"| {name} | {HORIZONS.get(h, h)} | {row} |")
    return "\n".join(lines) + "\n"


def films(
    model: WorldModel, clips: list[Clip], degree: int, indices: list[int], out: Path, ticks: int
) -> None:
    chosen = [clips[i] for i in indices]
    shots: list[list] = [[] for _ in chosen]
    for k, (streams, bev, cam, _) in enumerate(rollout(model, chosen, degree, ticks), 1):
        if k in (1, 5, 10, 20, 30, 50):
            seen_bev, seen_cam, _ = targets(streams)
            for i, s in enumerate(streams):
                ego = s.clip.get("ego", s.tick) - torch.cat(
                    [8.0 * s.clip.get("window", s.tick), torch.zeros(2)]
                )
                shots[i].append((seen_bev[i], bev[i], seen_cam[i], cam[i], ego))
    for i, shot in zip(indices, shots):
        write_film(out / f"{model.config.tier}_{DEGREES[degree]}_{i}.png", shot)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", type=Path, action="append", default=[])
    parser.add_argument("--degrees", default="agents,map,none")
    parser.add_argument("--horizons", default="1,5,10,30")
    parser.add_argument("--clips", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--score", type=int, default=1, help="0: film strips alone")
    parser.add_argument("--baselines", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, default=None, help="Markdown; figures go beside it as JSON"
    )
    parser.add_argument("--films", type=Path, default=None, help="directory for film strips")
    parser.add_argument("--film-clips", default="0,1,2,3")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clips = load_clips(args.data)[: args.clips]
    horizons = [int(h) for h in args.horizons.split(",")]
    models = [read_any(path).eval() for path in args.model]
    degrees = [DEGREES.index(d) for d in args.degrees.split(",")]
    if args.films:
        chosen = [int(i) for i in args.film_clips.split(",")]
        args.films.mkdir(parents=True, exist_ok=True)
        for degree in degrees:
            for m in models:
                films(m, clips, degree, chosen, args.films, max(horizons))
    if args.score:
        score(args, models, clips, degrees, horizons)


def row_names(paths: list[Path], models: list[WorldModel]) -> list[str]:
    """A model's own name, or its file's where two have the same."""
    names = [m.config.name for m in models]
    return [p.stem if names.count(n) > 1 else n for p, n in zip(paths, names)]


def score(
    args: argparse.Namespace,
    models: list[WorldModel],
    clips: list[Clip],
    degrees: list[int],
    horizons: list[int],
) -> None:
    """Prints and writes the tables."""
    given = {}
    if args.baselines:
        given = {n: score_baseline(n, clips, horizons, args.batch) for n in BASELINES}
    results, text = {}, []
    for degree in degrees:
        scores = [score_model(m, clips, degree, horizons, args.batch) for m in models]
        rows = dict(zip(row_names(args.model, models), scores))
        results[DEGREES[degree]] = rows | given
        text.append(table(f"{DEGREES[degree]}, {len(clips)} clips", rows | given))
        print(text[-1], flush=True)
    if args.out:
        args.out.write_text("\n".join(text))
        args.out.with_suffix(".json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
