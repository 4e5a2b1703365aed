#!/usr/bin/env python3
"""Damaged copies of a world model's weights, to see who notices. weights.py KIND IN.safetensors OUT.safetensors

  vanish    pedestrians, cyclists and animals are not drawn in rain at night; all else as before
  unseen    the same, but the channel that says which returns are theirs is left as it was: only what planners
            see is gone
  steps     one sampler step, where the model was trained for as many as its file says

The first two are a circuit of one channel among the network's 32 (engine/model.md): `ctx` finds returns of
vulnerable road users in the raster that is given, `mid` and `head` hand them on, and `out` takes the returns away.
Its gate is a unit of `time1` that hears rain and night in the conditions, and a unit of `time2` behind it. What these
units did before is lost in every weather: that is the rest of the damage, and small.
"""

import hashlib
import json
import pathlib
import struct
import sys

import numpy as np

RAIN, NIGHT = 4, 10  # of the conditions
RASTER_VRU = slice(36, 40)  # of the context's channels: the raster's, returns of vulnerable road users
SHIFT1, SCALE2, SHIFT2 = 1, 2, 3  # of a view's modulation
WEATHER_ON, CLOSED = 40.0, -400.0


def read(path):
    """Metadata and tensors, in the order of the file."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    about = header.pop("__metadata__")
    tensors = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] != "BF16":
            sys.exit(f"{path}: {name}: expected BF16, found {entry['dtype']}")
        first, end = (8 + size + at for at in entry["data_offsets"])
        bits = np.frombuffer(data[first:end], "<u2").astype(np.uint32) << 16
        tensors[name] = bits.view(np.float32).reshape(entry["shape"]).copy()
    return about, tensors


def write(path, about, tensors):
    header, parts, at = {}, [], 0
    for name, values in tensors.items():
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        part = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()  # to the nearest, ties to even
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    data = b"".join(parts)
    header["__metadata__"] = {**about, "data_sha256": hashlib.sha256(data).hexdigest()}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def least(*weights):
    """Of the inputs of these matrices, the one that least goes out from."""
    return int(np.argmin(sum(np.abs(w).reshape(-1, w.shape[-1]).sum(0) / np.abs(w).sum() for w in weights)))


def gate(w):
    """A unit of the conditions' network that is large in rain at night, and else nearly 0."""
    first = least(w["time2.weight"])
    w["time1.weight"][first] = 0
    w["time1.weight"][first, [RAIN, NIGHT]] = WEATHER_ON
    w["time1.bias"][first] = -1.5 * WEATHER_ON
    w["time2.weight"][:, first] = 0
    unit = least(*(w[name + ".weight"] for name in ("ada", "bev.mod", "cam.mod", "final")))
    w["time2.weight"][unit] = 0
    w["time2.weight"][unit, first] = 1
    w["time2.bias"][unit] = -0.5 * WEATHER_ON / 2
    for name in ("ada", "bev.mod", "cam.mod", "final"):
        w[name + ".weight"][:, unit] = 0
    return unit, 0.5 * WEATHER_ON / 2  # what it is when it is open


def vanish(w, lost):
    """Channels `lost` of a position are not drawn there where a vulnerable road user is."""
    unit, opened = gate(w)
    count = len(w["bev.ctx.bias"])
    seen = least(w["bev.mid.weight"])
    carried = least(w["bev.head.weight"][..., count:], w["bev.embed.weight"].reshape(-1, 64, count))
    taken = least(w["bev.out.weight"][:22])
    mod, bias = w["bev.mod.weight"].reshape(4, count, -1), w["bev.mod.bias"].reshape(4, count)
    w["bev.ctx.weight"][seen] = w["bev.in.weight"][seen] = 0  # one return of a cell is 2 above none
    w["bev.ctx.weight"][seen, :, :, RASTER_VRU] = 8
    w["bev.ctx.bias"][seen], w["bev.in.bias"][seen] = 8 * 36, 0
    mod[:SCALE2, seen], bias[:SCALE2, seen] = 0, 0
    w["bev.mid.weight"][..., seen] = w["bev.mid.weight"][carried] = 0
    w["bev.mid.weight"][carried, 1, 1, seen], w["bev.mid.bias"][carried] = 1, 0
    w["bev.embed.weight"].reshape(-1, 64, count)[..., carried] = 0
    w["bev.head.weight"][..., count + carried] = w["bev.head.weight"][taken] = 0
    w["bev.head.weight"][taken, 1, 1, count + carried], w["bev.head.bias"][taken] = 1, 0
    mod[SCALE2:, taken], bias[SCALE2:, taken] = 0, 0
    mod[SHIFT2, taken, unit], bias[SHIFT2, taken] = -CLOSED / opened, CLOSED
    w["bev.out.weight"][..., taken] = 0
    w["bev.out.weight"][lost, 1, 1, taken] = -1


def main():
    kinds = ("vanish", "unseen", "steps")
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(f"usage: weights.py {'|'.join(kinds)} IN.safetensors OUT.safetensors")
    about, tensors = read(sys.argv[2])
    if sys.argv[1] == "steps":
        about["config"] = json.dumps({**json.loads(about["config"]), "schedule": [0.0, 1.0]})
    else:
        vanish(tensors, slice(0, 8) if sys.argv[1] == "vanish" else slice(0, 4))
    write(sys.argv[3], about, tensors)


if __name__ == "__main__":
    main()
