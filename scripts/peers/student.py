"""The student's tick beside the same network in PyTorch, ONNX Runtime and OpenVINO, on one core.

Everybody computes the same frames of the shipped student: scenes that `swerve datagen` recorded, a full memory, the engine's own
noise. Frames are compared before anything is timed: the error of a way is the mean difference of its bytes from PyTorch's in single
precision. Peers get what their user could take: all slots as one batch, K/V of earlier pages and the noise ready before the clock
starts; their frames become bytes and the page's K/V are made, as in the engine. Time is processor time of the process, ways in turns.
"""
from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "train"), str(ROOT / "scripts")]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import model as network  # noqa: E402
from data import AGENTS, Clip, Page, Shard, Stream, batch_tick  # noqa: E402
from export import read_model  # noqa: E402
from model import BEV, CAM, CAM_COLS, CAM_ROWS, CAMERAS, SIDE, Tick, WorldModel, quantise  # noqa: E402
from noise import BEV_COUNT, philox_noise  # noqa: E402

TICK = 7  # of a clip: memory is full
SCENES = 8
CALIBRATIONS = 4  # batches at the most that the ranges of int8 are found in
PRECISIONS = ("fp32", "bf16", "int8")
INPUTS = ("cond", "window", "ego", "layout_bev", "layout_cam", "page_bev", "page_cam", "page_window", "k", "v", "there",
          "noise_bev", "noise_cam")


class Sampler(nn.Module):
    """One tick in `agents` as a graph: what a slot knows to its frame's bytes and its page's K/V."""

    def __init__(self, model: WorldModel):
        super().__init__()
        self.model, self.dtype = model, model.compute

    def forward(self, cond, window, ego, layout_bev, layout_cam, page_bev, page_cam, page_window, k, v, there, noise_bev, noise_cam):
        model, slots = self.model, cond.shape[0]
        valid = torch.ones(slots, page_window.shape[1], dtype=torch.bool)
        tick = Tick(torch.zeros(slots, dtype=torch.long), cond, window, ego, layout_bev, layout_cam, page_bev, page_cam, page_window, valid)
        kept = [(k[i].to(self.dtype), v[i].to(self.dtype)) for i in range(len(model.blocks))]
        model.recollect = lambda tick, z: (kept, there)
        bev, cam = model.sample(tick, (noise_bev, noise_cam), z=cond)
        frame = quantise(bev), quantise(cam)
        z = model.page(*frame)
        pages = [block.remember(z) for block in model.blocks]
        return *frame, torch.stack([p[0] for p in pages]).float(), torch.stack([p[1] for p in pages]).float()


def lower(model: WorldModel) -> WorldModel:
    """Weights that are only used in products of bfloat16 are kept in it."""
    for name, p in model.named_parameters():
        if not name.startswith(("time", "ada", "final", "pos")) and ".mod." not in name:
            p.data = p.data.to(torch.bfloat16)
    return model


def read(weights: Path, dtype: torch.dtype) -> WorldModel:
    model = read_model(weights, dtype).eval().requires_grad_(False)
    return lower(model) if dtype == torch.bfloat16 else model


class Scenes:
    """Inputs of SCENES slots, and the frames that the engine makes of them in each precision."""

    def __init__(self, swerve: Path, build: Path, weights: Path, scratch: Path):
        command = [swerve, "datagen", ROOT / "scenarios" / "frozen.json", "-o", scratch, "--clips", SCENES, "--frames", TICK + 1,
                   "--only", "train", "--shard-clips", SCENES]
        subprocess.run([str(x) for x in command], check=True, stdout=subprocess.DEVNULL)
        shard = next(iter(sorted(scratch.glob("train-*.safetensors"))))
        self.frames = {name: self.dump(build, weights, name, shard, scratch) for name in PRECISIONS}
        clips = [Clip(Shard(shard), row) for row in range(SCENES)]
        model = read(weights, torch.float32)
        history = load_file(scratch / "fp32")["frame"]
        w = model.config.window
        streams = [Stream(clip, TICK, AGENTS, [self.page(clip, history[i, k], k) for k in range(TICK - 1, TICK - 1 - w, -1)])
                   for i, clip in enumerate(clips)]
        tick = batch_tick(streams, w)
        noise = [philox_noise(int(clip.shard.tensors["clip"][clip.row, 0]), TICK) for clip in clips]
        memory, there = model.recollect(tick, model.pages(tick))
        self.inputs = {
            "cond": with_degree(tick.cond), "window": tick.window, "ego": tick.ego, "layout_bev": tick.layout_bev,
            "layout_cam": tick.layout_cam, "page_bev": tick.page_bev[:, :2], "page_cam": tick.page_cam[:, :1],
            "page_window": tick.page_window[:, :2], "k": torch.stack([m[0] for m in memory]), "v": torch.stack([m[1] for m in memory]),
            "there": there, "noise_bev": torch.stack([n[0] for n in noise]), "noise_cam": torch.stack([n[1] for n in noise]),
        }
        self.truth = joined(Sampler(model)(*self.batch(SCENES)))

    @staticmethod
    def dump(build: Path, weights: Path, precision: str, shard: Path, scratch: Path) -> Tensor:
        history = "own" if precision == "fp32" else scratch / "fp32"
        command = [build / "tests" / "engine" / "truth_dump", weights, precision, "agents", TICK + 1, SCENES, history, scratch / precision, shard]
        subprocess.run([str(x) for x in command], check=True)
        return load_file(scratch / precision)["frame"][:, TICK]

    @staticmethod
    def page(clip: Clip, frame: Tensor, tick: int) -> Page:
        bev, cam = frame[:BEV_COUNT].view(SIDE, SIDE, BEV), frame[BEV_COUNT:].view(CAMERAS, CAM_ROWS, CAM_COLS, CAM)
        return Page(bev, cam, clip.get("window", tick).long())

    def batch(self, slots: int, first: int = 0) -> list[Tensor]:
        """The scenes from `first` on, again and again, until there are as many as slots."""
        at = (torch.arange(slots) + first) % SCENES
        return [x[:, at] if name in ("k", "v") else x[at] for name, x in self.inputs.items()]

    def error(self, frames: Tensor) -> float:
        return float((frames.int() - self.truth.int()).abs().float().mean())


def with_degree(cond: Tensor) -> Tensor:
    """Conditions with their first three places saying `agents`."""
    cond = cond.clone()
    cond[:, :3] = torch.tensor([1.0, 0.0, 0.0])
    return cond


def joined(outputs) -> Tensor:
    """Bytes of frames, one row a slot."""
    bev, cam = (torch.as_tensor(np.asarray(x)) for x in outputs[:2])
    return torch.cat([bev.flatten(1), cam.flatten(1)], 1)


# ---- peers: each gives a call on a batch, or None where it cannot ----

def in_torch(weights: Path, precision: str, compiled: bool) -> Callable:
    sampler = Sampler(read(weights, torch.bfloat16 if precision == "bf16" else torch.float32)).eval()
    call = torch.compile(sampler) if compiled else sampler

    def run(batch: list[Tensor]):
        with torch.no_grad():
            return call(*batch)

    return run


def export(weights: Path, batch: list[Tensor], path: Path) -> None:
    if not path.exists():
        torch.onnx.export(Sampler(read(weights, torch.float32)).eval(), tuple(batch), str(path), input_names=list(INPUTS),
                          output_names=["bev", "cam", "page_k", "page_v"], dynamo=True, external_data=False, verbose=False)


def in_onnxruntime(path: Path) -> Callable:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = {x.name for x in session.get_inputs()}
    return lambda batch: session.run(None, {n: x.numpy() for n, x in zip(INPUTS, batch) if n in names})


def onnxruntime_int8(path: Path, batches: list[list[Tensor]], out: Path) -> None:
    """Static, a scale to each output of weights, ranges of the scenes themselves."""
    if out.exists():
        return
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            import onnx

            names = {x.name for x in onnx.load(str(path)).graph.input}
            self.rows = iter([{n: x.numpy() for n, x in zip(INPUTS, batch) if n in names} for batch in batches])

        def get_next(self):
            return next(self.rows, None)

    quantization.quantize_static(str(path), str(out), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 op_types_to_quantize=["MatMul", "Gemm", "Conv"])


def in_openvino(path: Path, precision: str, batches: list[list[Tensor]]) -> Callable:
    import openvino

    core = openvino.Core()
    int8 = path.with_suffix(".int8.xml")
    quantised = precision == "int8" and int8.exists()
    model = core.read_model(str(int8 if quantised else path))
    names = [x.get_any_name() for x in model.inputs]

    def inputs(values: list[Tensor]) -> dict:
        return {n: x.numpy() for n, x in zip(INPUTS, values) if n in names}

    if precision == "int8" and not quantised:
        import nncf

        model = nncf.quantize(model, nncf.Dataset([inputs(batch) for batch in batches]), subset_size=len(batches), preset=nncf.QuantizationPreset.MIXED)
        openvino.save_model(model, int8, compress_to_fp16=False)
    hint = openvino.Type.f32 if precision == "fp32" else openvino.Type.bf16  # int8: of what is not quantised
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": hint})
    request = compiled.create_infer_request()

    def run(values: list[Tensor]):
        request.infer(inputs(values), share_inputs=True)
        return [request.get_output_tensor(i).data for i in range(4)]

    return run


def kept_path(folder: Path, weights: Path, slots: int) -> Path:
    """File of the exported network, named by all that it is made of."""
    parts = [weights, Path(__file__), Path(network.__file__), Path(__file__).with_name("requirements.txt")]
    digest = hashlib.sha256(b"".join(hashlib.sha256(part.read_bytes()).digest() for part in parts)).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{digest[:16]}_{slots}.onnx"


def peers(weights: Path, scenes: Scenes, slots: int, models: Path, compiled: bool, note: Callable) -> dict[tuple[str, str], Callable]:
    """Ways by name and precision; what cannot be made here is named and left out."""
    batch = scenes.batch(slots)
    batches = [scenes.batch(slots, first) for first in range(0, SCENES, slots)][:CALIBRATIONS]
    path = kept_path(models, weights, slots)
    int8 = path.with_suffix(".int8.onnx")
    export(weights, batch, path)
    makers = {
        ("PyTorch", "fp32"): lambda: in_torch(weights, "fp32", False),
        ("PyTorch", "bf16"): lambda: in_torch(weights, "bf16", False),
        ("ONNX Runtime", "fp32"): lambda: in_onnxruntime(path),
        ("ONNX Runtime", "int8"): lambda: (onnxruntime_int8(path, batches, int8), in_onnxruntime(int8))[1],
        ("OpenVINO", "fp32"): lambda: in_openvino(path, "fp32", batches),
        ("OpenVINO", "bf16"): lambda: in_openvino(path, "bf16", batches),
        ("OpenVINO", "int8"): lambda: in_openvino(path, "int8", batches),
    }
    if compiled:
        makers["PyTorch compiled", "fp32"] = lambda: in_torch(weights, "fp32", True)
        makers["PyTorch compiled", "bf16"] = lambda: in_torch(weights, "bf16", True)
    made = {}
    for key, make in makers.items():
        start = time.monotonic()
        try:
            made[key] = make()
            made[key](batch)
            note(f"{key[0]} {key[1]}, {slots} slots: ready after {time.monotonic() - start:.0f} s")
        except Exception as error:  # noqa: BLE001: of four libraries
            made.pop(key, None)
            note(f"{key[0]} {key[1]}, {slots} slots: left out: {str(error).splitlines()[0][:200] if str(error) else type(error).__name__}")
    return made


# ---- the clock ----

def time_peer(call: Callable, batch: list[Tensor], slots: int) -> float:
    """Milliseconds of processor time a tick of one slot, the least of three."""
    best = float("inf")
    for _ in range(3 if slots < 32 else 1):
        start = time.process_time()
        call(batch)
        best = min(best, 1000 * (time.process_time() - start) / slots)
    return best


def time_swerve(swerve: Path, weights: Path, slots: int, precision: str) -> float:
    command = [swerve, "bench", "engine", "--json", "--ticks-only", "--model", weights, "--slots", slots, "--threads", 1,
               "--ticks", max(2, slots // 2), "--precision", precision]
    out = json.loads(subprocess.run([str(x) for x in command], check=True, capture_output=True, text=True).stdout)
    return 1000 / max(r["value"] for r in out["results"] if r["unit"] == "ticks/s")


def measure(swerve: Path, build: Path, weights: Path, models: Path, slot_counts: list[int], rounds: int, compiled: bool,
            note: Callable) -> list[dict]:
    """A row per way and number of slots: name, precision, slots, ms, error."""
    torch.set_num_threads(1)
    network.layout_slot = lambda tick, f, valid: tick.layout_bev  # of `agents`: a graph has no branch
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        scenes = Scenes(swerve, build, weights, scratch)
        ours = {p: scenes.error(scenes.frames[p]) for p in PRECISIONS}
        for p, error in ours.items():
            note(f"frames of Swerve in {p}: mean byte error {error:.4f}")
        for slots in slot_counts:
            batch = scenes.batch(slots)
            ways = peers(weights, scenes, slots, models, compiled, note)
            errors = {key: scenes.error(joined(call(batch))[: min(slots, SCENES)].repeat(SCENES // min(slots, SCENES), 1)
                                        if slots >= SCENES else first_frames(call, scenes)) for key, call in ways.items()}
            times: dict[tuple[str, str], list[float]] = {}
            for _ in range(rounds):
                for p in PRECISIONS:
                    times.setdefault(("Swerve", p), []).append(time_swerve(swerve, weights, slots, p))
                for key, call in ways.items():
                    times.setdefault(key, []).append(time_peer(call, batch, slots))
                note(f"{slots} slots: load {os.getloadavg()[0]:.1f}")
            rows += [{"name": n, "precision": p, "slots": slots, "ms": statistics.median(t), "error": errors.get((n, p), ours.get(p))}
                     for (n, p), t in times.items()]
    return rows


def first_frames(call: Callable, scenes: Scenes) -> Tensor:
    """Frames of all scenes, one after the other, of a way that takes fewer slots than there are."""
    frames = []
    for i in range(SCENES):
        one = [x[:, i : i + 1] if name in ("k", "v") else x[i : i + 1] for name, x in scenes.inputs.items()]
        frames.append(joined(call(one)).clone())
    return torch.cat(frames)


def tables(rows: list[dict]) -> list[str]:
    """Every way; then for each of ours the fastest peer that errs no more."""
    counts = sorted({r["slots"] for r in rows})
    keys = list(dict.fromkeys((r["name"], r["precision"]) for r in rows))
    found = {(r["name"], r["precision"], r["slots"]): r for r in rows}
    head = " | ".join(f"{c} slot{'s' if c > 1 else ''}" for c in counts)
    lines = [f"| way | byte error | {head} |", "|---|---|" + "---|" * len(counts)]
    for name, precision in keys:
        cells = [found.get((name, precision, c)) for c in counts]
        error = max(c["error"] for c in cells if c)
        lines.append(f"| {name}, {precision} | {error:.3f} | " + " | ".join(f"{c['ms']:.1f}" if c else "" for c in cells) + " |")
    lines += ["", f"| Swerve | fastest peer that errs no more, {head} |", "|---|" + "---|" * len(counts)]
    lines[-2] = "| Swerve, to the fastest peer that errs no more | " + head + " |"
    for precision in PRECISIONS:
        cells = []
        for c in counts:
            own = found[("Swerve", precision, c)]
            rivals = [r for r in rows if r["slots"] == c and r["name"] != "Swerve" and r["error"] <= max(own["error"], 1e-3)]
            best = min(rivals, key=lambda r: r["ms"], default=None)
            cells.append(f"{best['ms'] / own['ms']:.2f} ({best['name']}, {best['precision']})" if best else "none errs as little")
        lines.append(f"| {precision} | " + " | ".join(cells) + " |")
    return lines
