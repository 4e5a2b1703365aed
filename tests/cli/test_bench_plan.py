#!/usr/bin/env python3
"""`swerve bench engine --plan`: one configuration, counted three times.

The plan's list of operations, the shapes of a file's tensors, and the sums below, by hand from engine/model.md, must
have the same numbers: of parameters, and of operations by weights. What is no such file is refused with a sentence.
usage: test_bench_plan.py SWERVE
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import wide_model  # noqa: E402

PARTS = {"bev": (96 * 96, 64), "cam": (3 * 32 * 48, 32)}  # positions; channels of the context
CASES = {
    "tiny": {"layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 32, "reference_layers": 1, "schedule": [0, 0.5, 1],
             "joint": [0, 1, 0], "window": 3},
    "windows": {"patch": 8, "layers": 2, "joint": [1, 0], "window": 3, "reach": 3, "past": 2, "heads": 2, "kv_heads": 1,
                "head_dim": 32, "type": "bf16"},
    "large patches": {"patch": 8, "heads": 2, "kv_heads": 1, "head_dim": 32, "width": 64, "type": "bf16"},
}
LARGE = {"name": "student-3b-served", "width": 3072, "layers": 28, "bev_channels": 64, "window": 12, "patch": 1,
         "schedule": [0, 0.25, 0.5, 0.75, 1], "joint": [0, 0, 0, 1] * 7, "heads": 24, "kv_heads": 8, "head_dim": 128,
         "reference_layers": 1}


def near(count, reach):
    """Pairs of places in a row that are at most so far apart."""
    return sum(abs(one - other) <= reach for one in range(count) for other in range(count))


def by_hand(config):
    """Operations by weights, and of attention within the frame and over the past."""
    d, steps, layers, patch = config["width"], len(config["schedule"]) - 1, config["layers"], config["patch"]
    q, kv = config["heads"] * config["head_dim"], config["kv_heads"] * config["head_dim"]
    bev, camera = 96 * 96 // patch**2, 32 * 48 // patch**2
    tokens = bev + 3 * camera
    found = {"time1": 2 * steps * 128 * d, "time2": 2 * steps * d * d, "ada": 12 * steps * d * d, "final": 4 * steps * d * d}
    for name, (positions, context) in PARTS.items():
        c, rows = config["bev_channels" if name == "bev" else "camera_channels"], positions // patch**2
        found[f"{name}.mod"] = 2 * steps * 4 * c * d
        found[f"{name}.ctx"] = 18 * positions * c * context
        for conv, n, k in (("in", c, 32), ("mid", c, c), ("head", c, 2 * c), ("out", 32, c)):
            found[f"{name}.{conv}"] = 18 * steps * positions * n * k
        found[f"{name}.embed"] = found[f"{name}.unembed"] = 2 * steps * rows * patch**2 * c * d
        found[f"{name}.memory"] = 2 * rows * patch**2 * 32 * d
    reach = config.get("reach", 0)
    past = layers - sum(config["joint"]) if reach else layers  # layers with attention over the past of its own
    for name, numbers, count in (("qkv", (q + 2 * kv) * d, layers), ("o", q * d, layers), ("tq", q * d, past),
                                 ("to", q * d, past), ("fc1", 4 * d * d, layers), ("fc2", 4 * d * d, layers)):
        found[name] = 2 * steps * count * tokens * numbers
    found["kv"] = 2 * layers * tokens * 2 * kv * d
    joint_pairs = tokens**2
    if reach:
        joint_pairs = (1 + config["past"]) * (near(96 // patch, reach)**2 + 3 * near(32 // patch, reach) * near(48 // patch, reach))
    pairs = sum(joint_pairs if joint else bev**2 + 3 * camera**2 for joint in config["joint"])
    found["attention"] = 4 * steps * q * pairs
    found["temporal"] = 4 * steps * past * q * tokens * (config["window"] + 1)
    return found


def by_header(path, config):
    """Parameters, and operations by weights: a row of numbers is met as often as there are rows."""
    data = path.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    del header["__metadata__"]
    steps, patch = len(config["schedule"]) - 1, config["patch"]
    tokens = {name: positions // patch**2 for name, (positions, _) in PARTS.items()}
    parameters, found = 0, {}
    for name, tensor in header.items():
        count = 1
        for side in tensor["shape"]:
            count *= side
        parameters += count if not name.endswith(".scale") else 0  # of weights in e4m3
        if not name.endswith(".weight") or len(tensor["shape"]) < 2:
            continue
        name = name.removesuffix(".weight")
        part, _, what = name.rpartition(".")
        if part in PARTS:
            rows = tokens[part] if what in ("embed", "unembed", "memory") else PARTS[part][0]
            rows = 1 if what == "mod" else rows
        else:
            rows = sum(tokens.values()) if part else 1
            name = {"tk": "kv", "tv": "kv"}.get(what, what)
        once = what in ("ctx", "memory", "tk", "tv")
        found[name] = found.get(name, 0) + 2 * count * rows * (1 if once else steps)
    return parameters, found


def main():
    swerve = sys.argv[1]
    faults = []

    def run(code, *words):
        done = subprocess.run([swerve, "bench", "engine", "--plan", *map(str, words)], capture_output=True, text=True,
                              check=False)
        if done.returncode != code:
            faults.append(f"{words}: expected exit {code}, found {done.returncode}: {done.stderr}")
        return done

    def expect(what, found, expected):
        if found != expected:
            faults.append(f"{what}: expected {expected}, found {found}")

    def operations(plan):
        found = {}
        for row in plan["rows"]:
            name = row["weights"] or row["kernel"]
            if row["flop"]:
                found[name] = found.get(name, 0) + round(row["flop"])
        return found

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, members in CASES.items():
            config, path, text = wide_model.CONFIG | members, folder / "model.safetensors", folder / "config.json"
            wide_model.write(path, config, fp8=name == "tiny")
            text.write_text(json.dumps(config))
            plan = json.loads(run(0, "--model", path, "--json").stdout)
            parameters, products = by_header(path, config)
            expect(f"{name}: parameters", plan["parameters"], parameters)
            expect(f"{name}: operations by hand", operations(plan), by_hand(config))
            expect(f"{name}: operations by the header", {key: value for key, value in operations(plan).items()
                                                         if key not in ("attention", "temporal")}, products)
            expect(f"{name}: of the text", json.loads(run(0, "--config", text, "--json").stdout), plan)
        damaged = wide_model.CONFIG | CASES["tiny"]
        data = path.read_bytes()
        path.write_bytes(data.replace(b'\\"window\\": 2', b'\\"window\\": 4'))
        expect("numbers", "numbers, by the configuration, found" in run(3, "--model", path).stderr, True)
        text.write_text(json.dumps(damaged | {"patch": 3}))
        expect("a patch", "patch: expected 8, 4, 2 or 1, found 3" in run(3, "--config", text).stderr, True)
        text.write_text(json.dumps(wide_model.CONFIG | LARGE))
        large = json.loads(run(0, "--config", text, "--ranks", 4, "--json").stdout)
        expect("tokens of the large one", large["tokens"], 13824)
        expect("its operations, by a rank", {k: v * 4 for k, v in operations(large).items() if k in ("qkv", "attention")},
               {k: v for k, v in by_hand(wide_model.CONFIG | LARGE).items() if k in ("qkv", "attention")})
        expect("a table", "H200" in run(0, "--config", "student-3b").stdout, True)
        text.write_text(json.dumps(wide_model.CONFIG | CASES["windows"]))
        expect("ranks with windows", "expected none with windows" in run(2, "--config", text, "--ranks", 1).stderr, True)
        run(2, "--config", "student-3b", "--ranks", 5)
        run(2, "--config", "student-3b", "--model", path)
        run(2)
        run(3, "--config", folder / "nothing.json")
    print("1..1")
    print("\n".join(f"# {fault}" for fault in faults))
    print("not ok 1 - counts" if faults else "ok 1 - counts")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
