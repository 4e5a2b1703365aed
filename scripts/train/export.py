"""Writes a model as the engine reads it: safetensors, bfloat16, with its config in the metadata.

Use: export.py CHECKPOINT OUT [--note TEXT] [--horizon agents=600,map=20,none=5]
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save, save_file
from safetensors import safe_open

from model import Config, WorldModel, export_tensors, import_tensors

FORMAT = "swerve-world-model/1"


def data_digest(data: bytes) -> str:
    """SHA-256 of all bytes of a file behind its header."""
    return hashlib.sha256(data[8 + int.from_bytes(data[:8], "little") :]).hexdigest()


def write_model(model: WorldModel, path: Path, note: str) -> str:
    """Writes the file and returns its SHA-256."""
    tensors = {k: v.to(torch.bfloat16) for k, v in export_tensors(model).items()}
    for name, value in tensors.items():
        if not torch.isfinite(value).all():
            raise ValueError(f"{path}: {name} is not finite")
    meta = {"format": FORMAT, "config": json.dumps(model.config.as_dict()), "note": note}
    meta["data_sha256"] = data_digest(save(tensors))
    save_file(tensors, path, meta)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_model(path: Path, compute: torch.dtype = torch.bfloat16) -> WorldModel:
    """The model of a weights file."""
    with safe_open(path, "pt") as f:
        config = Config(**json.loads(f.metadata()["config"]))
    model = WorldModel(config, compute)
    import_tensors(model, load_file(path))
    return model


def read_checkpoint(path: Path, compute: torch.dtype = torch.bfloat16) -> tuple[WorldModel, dict]:
    """The averaged model of a training checkpoint, and what it says about its training."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model = WorldModel(Config(**saved["config"]), compute)
    model.load_state_dict(saved["ema"])
    return model, saved["info"]


def read_any(path: Path) -> WorldModel:
    """The model of a weights file or of a checkpoint."""
    return read_model(path) if path.suffix == ".safetensors" else read_checkpoint(path)[0]


def parse_horizon(text: str) -> dict[str, int]:
    return {k: int(v) for k, v in (item.split("=") for item in text.split(","))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--note", default="")
    parser.add_argument("--horizon", type=parse_horizon, default=None)
    args = parser.parse_args()
    model, info = read_checkpoint(args.checkpoint)
    if args.horizon:
        model.config.horizon_ticks = args.horizon
    note = args.note or json.dumps(info)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    digest = write_model(model, args.out, note)
    print(f"{args.out}: {args.out.stat().st_size} bytes, sha256 {digest}")


if __name__ == "__main__":
    main()
