#!/usr/bin/env python3
"""Writes a world model of random weights whose tokens and heads are not the shipped ones'.

Usage: wide_model.py FILE [MEMBER=VALUE..]: members of the configuration, as JSON, in the place of those below;
fp8=true: weights of layers that are no reference ones in e4m3, beside a scale a channel.
Patches of 4, eight heads of 16 that share four of keys and values, products of e4m3: engine/model.md has the names.
The last convolutions are nearly still, and darken a little: frames stay near what the model is given, and what is empty
stays so, lest a health check flags them.
"""
import bisect
import hashlib
import json
import random
import struct
import sys

CONFIG = {"name": "tiny-wide", "tier": "student", "width": 32, "layers": 1, "bev_channels": 32, "camera_channels": 32,
          "window": 2, "schedule": [0.0, 1.0], "joint": [0],
          "horizon_ticks": {"agents": 100, "map": 100, "none": 100},
          "patch": 4, "heads": 8, "kv_heads": 4, "head_dim": 16, "type": "e4m3"}


def shapes(config):
    """Tensors by name, in the order of engine/model.md."""
    d, positions = config["width"], config["patch"] ** 2
    q, kv = config["heads"] * config["head_dim"], config["kv_heads"] * config["head_dim"]
    tokens = (96 * 96 + 3 * 32 * 48) // positions
    found = {"pos": [tokens, d]}

    def matmul(name, *shape):
        found[name + ".weight"] = list(shape)
        found[name + ".bias"] = [shape[0]]

    for name, n, k in (("time1", d, 128), ("time2", d, d), ("ada", 6 * d, d), ("final", 2 * d, d)):
        matmul(name, n, k)
    for part, c, context in (("bev", config["bev_channels"], 64), ("cam", config["camera_channels"], 32)):
        matmul(f"{part}.mod", 4 * c, d)
        for name, n, k in (("ctx", c, context), ("in", c, 32), ("mid", c, c), ("head", c, 2 * c), ("out", 32, c)):
            matmul(f"{part}.{name}", n, 3, 3, k)
        for name, n, k in (("embed", d, positions * c), ("unembed", positions * c, d), ("memory", d, positions * 32)):
            matmul(f"{part}.{name}", n, k)
    for layer in range(config["layers"]):
        block = f"blocks.{layer}."
        past = not (config.get("reach") and config["joint"][layer])  # beside what the layer's windows see
        found[block + "table"] = [6, d]
        if past:
            found |= {block + "tnorm.weight": [d], block + "tnorm.bias": [d],
                      block + "tbias": [config["heads"], config["window"]], block + "null_k": [kv], block + "null_v": [kv]}
        for name, n, k in (("qkv", q + 2 * kv, d), ("o", d, q), ("tq", q, d), ("tk", kv, d), ("tv", kv, d), ("to", d, q),
                           ("fc1", 4 * d, d), ("fc2", d, 4 * d)):
            if past or name not in ("tq", "to"):
                matmul(block + name, n, k)
    return found


def e4m3_numbers():
    """Those that are not negative, by their bytes."""
    return [byte * 2.0**-9 if byte < 8 else (8 + byte % 8) * 2.0**(byte // 8 - 10) for byte in range(127)]


def to_e4m3(values, channels):
    """Bytes and scales of rows of numbers: the largest of each is 448 times its scale."""
    numbers, data, scales = e4m3_numbers(), bytearray(), []
    terms = len(values) // channels
    for first in range(0, len(values), terms):
        row = values[first:first + terms]
        scales.append(max(map(abs, row)) / 448 or 1.0)
        for value in row:
            size = min(abs(value) / scales[-1], 448.0)
            above = min(bisect.bisect_left(numbers, size), 126)
            nearest = min((above, max(above - 1, 0)), key=lambda byte: abs(numbers[byte] - size))
            data.append(nearest | (0x80 if value < 0 else 0))
    return bytes(data), scales


def write(path, config, fp8=False):
    draw = random.Random(1)
    reference = config.get("reference_layers", 0)
    header, data, quantised, all_shapes = {}, bytearray(), {}, shapes(config)

    def put(name, dtype, shape, values):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data.extend(values)

    for name, shape in all_shapes.items():
        count = 1
        for side in shape:
            count *= side
        deviation = (count / shape[0]) ** -0.5 if name.endswith(".weight") and len(shape) > 1 else 0.1
        mean = 0.0
        if ".out." in name:
            deviation, mean = 0.02 * deviation, -0.05 if name.endswith(".bias") else 0.0
        values = [mean + draw.uniform(-1.7, 1.7) * deviation for _ in range(count)]
        layer = int(name.split(".")[1]) if name.startswith("blocks.") else -1
        if fp8 and len(shape) > 1 and name.endswith(".weight") and reference <= layer < config["layers"] - reference:
            quantised[name] = to_e4m3(values, shape[0])
            name, values, shape = name.removesuffix(".weight") + ".scale", quantised[name][1], shape[:1]
        put(name, "F32", list(shape), struct.pack(f"<{len(values)}f", *values))
    for name, (numbers, _) in quantised.items():  # behind what must lie at multiples of four
        put(name, "F8_E4M3", all_shapes[name], numbers)
    header["__metadata__"] = {"format": "swerve-world-model/1", "config": json.dumps(config), "note": "random weights",
                              "data_sha256": hashlib.sha256(data).hexdigest()}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    members = dict((word.split("=")[0], json.loads(word.split("=")[1])) for word in sys.argv[2:])
    write(sys.argv[1], CONFIG | {key: value for key, value in members.items() if key != "fp8"}, members.get("fp8", False))
