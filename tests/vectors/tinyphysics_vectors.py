#!/usr/bin/env python3
"""Makes tinyphysics.txt: what the controls challenge's own simulator does, drive by drive.

usage: tinyphysics_vectors.py CHALLENGE > tinyphysics.txt
       tinyphysics_vectors.py CHALLENGE --model FILE --logs DIR [--controller pid]

CHALLENGE: a checkout of github.com/commaai/controls_challenge at be8edfa; its tinyphysics.py runs unchanged (onnxruntime,
numpy, pandas, matplotlib, seaborn, tqdm). The published weights are not ours to keep, so the vectors are of the published
graph with weights made up from a hash, on logs made up the same way: tests/engine/test_tinyphysics_episode.c makes both again. With
--model and --logs the same lines for real files, to compare by hand.

A line is `LOG CONTROLLER SEED LATACCEL_COST JERK_COST TOTAL_COST`, then the tokens drawn at rows 100 to 499.
"""
import argparse
import hashlib
import importlib
import os
import sys
import tempfile

import numpy as np

ROWS, LOGS = 600, 4
SHARES = {"norm": (1.0, 0.25), "shift": (0.0, 0.125), "wide": (0.0, 1.0), "half": (0.0, 0.5), "fourth": (0.0, 0.25),
          "eighth": (0.0, 0.125)}


def mix(x):
    """A 32-bit hash (Wellons' lowbias32) of an array of 32-bit numbers."""
    x = np.asarray(x, dtype=np.uint32).copy()
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def made_up(tensor, shape, kind):
    """Tensor number `tensor`: base + share * a number of -1 .. 1 with 16 bits."""
    base, share = SHARES[kind]
    words = mix(np.arange(np.prod(shape), dtype=np.uint32) + np.uint32(tensor << 20))
    values = ((words >> np.uint32(16)).astype(np.int64) - 32768) / 32768.0
    return (base + share * values).astype(np.float32).reshape(shape)


def tensors():
    """(initialiser, or node whose weights are meant; shape as stored; kind), in the order of their numbers."""
    yield "transformer.wt_embedding.bias", (64,), "wide"
    yield "/wt_embedding/MatMul", (4, 64), "fourth"
    yield "transformer.wt2_embedding.weight", (1024, 64), "half"
    yield "transformer.wp_embedding.weight", (20, 128), "fourth"
    for i in range(4):
        for part in ("attn", "mlp"):
            yield f"transformer.h.{i}.{part}.layer_norm.weight", (128,), "norm"
            yield f"transformer.h.{i}.{part}.layer_norm.bias", (128,), "shift"
        yield f"/h.{i}/attn/c_attn/MatMul", (128, 384), "fourth"
        yield f"/h.{i}/attn/c_proj/MatMul", (128, 128), "fourth"
        yield f"/h.{i}/mlp/c_fc/MatMul", (128, 512), "fourth"
        yield f"/h.{i}/mlp/c_proj/MatMul", (512, 128), "fourth"
    yield "transformer.layer_norm_f.weight", (128,), "norm"
    yield "transformer.layer_norm_f.bias", (128,), "shift"
    yield "/lm_head/MatMul", (128, 1024), "eighth"


def make_model(published, path):
    import onnx
    from onnx import numpy_helper
    model = onnx.load(published)
    nodes = {node.name: node for node in model.graph.node}
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for number, (name, shape, kind) in enumerate(tensors()):
        name = nodes[name].input[1] if name.startswith("/") else name
        assert tuple(stored[name].dims) == shape
        stored[name].CopyFrom(numpy_helper.from_array(made_up(number, shape, kind), name))
    onnx.save(model, path)


def thousandths(x):
    return f"{'-' if x < 0 else ''}{abs(x) // 1000}.{abs(x) % 1000:03d}"


def make_log(number, path):
    words = mix(np.arange(ROWS * 5, dtype=np.uint32) + np.uint32(0x40000000 + (number << 16))).reshape(ROWS, 5)
    target = 0
    with open(path, "w") as out:
        out.write("t,vEgo,aEgo,roll,targetLateralAcceleration,steerCommand\n")
        for row in range(ROWS):
            speed, accel, roll, step, steer = (int(word) for word in words[row])
            target = max(-4000, min(4000, target + step % 401 - 200))
            cells = [thousandths(100 * row), thousandths(20000 + speed % 2000), thousandths(accel % 2001 - 1000),
                     thousandths(roll % 101 - 50), thousandths(target), thousandths(steer % 2001 - 1000) if row < 100 else ""]
            out.write(",".join(cells) + "\n")


def drive(simulator, model, log, controller):
    """One line: the unmodified simulator with its draws noted."""
    network = simulator.TinyPhysicsModel(model, False)
    tokens = []
    predict = network.predict

    def noted(*arguments, **options):
        tokens.append(int(predict(*arguments, **options)))
        return tokens[-1]

    network.predict = noted
    one = importlib.import_module("controllers." + controller).Controller()
    costs = simulator.TinyPhysicsSimulator(network, log, controller=one).rollout()
    seed = int(hashlib.md5(log.encode()).hexdigest(), 16) % 10**4
    figures = [repr(float(costs[name])) for name in ("lataccel_cost", "jerk_cost", "total_cost")]
    print(log, controller, seed, *figures, *tokens[80:480], flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("challenge")
    parser.add_argument("--model")
    parser.add_argument("--logs")
    parser.add_argument("--controller")
    options = parser.parse_args()
    sys.path.insert(0, os.path.abspath(options.challenge))
    published = os.path.abspath(options.model or os.path.join(options.challenge, "models/tinyphysics.onnx"))
    logs = os.path.abspath(options.logs) if options.logs else None
    simulator = importlib.import_module("tinyphysics")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(logs or folder)
        model = published
        if logs is None:
            model = "made_up.onnx"
            make_model(published, model)
            for number in range(LOGS):
                make_log(number, f"{number}.csv")
        for log in sorted(name for name in os.listdir(".") if name.endswith(".csv")):
            for controller in [options.controller] if options.controller else ["pid", "zero"]:
                drive(simulator, model, log, controller)


if __name__ == "__main__":
    main()
