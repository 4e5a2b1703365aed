#!/usr/bin/env python3
"""Episodes of comma.ai's controls challenge per processor-second: this program, the unmodified reference, and a batched
rollout on ONNX Runtime, in turns; and what bf16 changes of the costs.

usage: controls.py SWERVE CHALLENGE LOGS [--model FILE] [--batch N] [--repeats N] [--reference N] [--device cuda:N]

CHALLENGE: a checkout of github.com/commaai/controls_challenge at be8edfa, whose tinyphysics.py runs unchanged (onnxruntime, numpy,
pandas, matplotlib, seaborn, tqdm). LOGS: a folder of its CSV files, or of some that tests/vectors/tinyphysics_vectors.py made up.

The batched rollout is what a careful user of ONNX Runtime writes: all episodes of a batch in one run of the published file on
one thread, NumPy for the rest, and no network before row 100, where the reference runs one and drops what it says. Costs of
all three are compared, so that nobody is fast by doing something else. Figures are medians of the repeats.
"""
import argparse
import hashlib
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

CONTEXT, START, END, BINS = 20, 100, 500, 1024


def batched(simulator, session, paths):
    """[{cost: ..}] of the logs under the PID controller, in one batch."""
    data = [simulator.TinyPhysicsSimulator.get_data(None, path) for path in paths]
    state = np.stack([d[["roll_lataccel", "v_ego", "a_ego"]].values[:END] for d in data])
    target = np.stack([d["target_lataccel"].values[:END] for d in data])
    action = np.stack([d["steer_command"].values[:END] for d in data])
    action[:, CONTEXT:START] = np.clip(action[:, CONTEXT:START], -2, 2)
    draws = [np.random.RandomState(int(hashlib.md5(path.encode()).hexdigest(), 16) % 10**4) for path in paths]
    uniform = np.stack([draw.random_sample(END - CONTEXT) for draw in draws])
    bins = np.linspace(-5, 5, BINS)
    actual = target.copy()
    total = np.zeros(len(paths))
    last = np.zeros(len(paths))
    for row in range(CONTEXT, END):
        error = target[:, row] - actual[:, row - 1]
        total += error
        steer = 0.195 * error + 0.100 * total + -0.053 * (error - last)
        last = error
        if row < START:
            continue
        action[:, row] = np.clip(steer, -2, 2)
        window = slice(row + 1 - CONTEXT, row + 1)
        states = np.concatenate([action[:, window, None], state[:, window]], axis=2).astype(np.float32)
        before = np.clip(actual[:, row - CONTEXT:row], -5, 5)
        tokens = np.digitize(before, bins, right=True).astype(np.int64)
        logits = session.run(None, {"states": states, "tokens": tokens})[0][:, -1] / 0.8
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        sums = np.cumsum((weights / weights.sum(axis=1, keepdims=True)).astype(np.float64), axis=1)
        sums /= sums[:, -1:]
        token = (sums <= uniform[:, row - CONTEXT, None]).sum(axis=1)
        actual[:, row] = np.clip(bins[token], actual[:, row - 1] - 0.5, actual[:, row - 1] + 0.5)
    lataccel = np.mean((target[:, START:] - actual[:, START:])**2, axis=1) * 100
    jerk = np.mean((np.diff(actual[:, START:], axis=1) / 0.1)**2, axis=1) * 100
    return [{"lataccel_cost": a, "jerk_cost": b, "total_cost": 50 * a + b} for a, b in zip(lataccel, jerk)]


def own(options, precision, controller):
    """(costs of every log, processor seconds) of `swerve controls` on one thread."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([options.swerve, "controls", options.logs, "--model", options.model, "--threads", "1", "--json",
                          "--precision", precision, "--controller", controller], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(run.stdout)["logs"], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def on_device(options):
    """Episodes per second of a GPU, without the copies, whose costs have to be those of the CPU to the last bit."""
    command = [options.swerve, "controls", options.logs, "--model", options.model, "--json"]
    cpu, gpu = (json.loads(subprocess.run([*command, "--device", device], check=True, capture_output=True, text=True).stdout)
                for device in ("cpu", options.device))
    assert cpu["logs"] == gpu["logs"], "the device's costs are not those of the CPU"
    for name, run in (("all threads of the CPU", cpu), (options.device, gpu)):
        print(f"{name}: {len(run['logs']) / run['seconds']:.3f} episodes per second")


def differ(name, found, expected):
    """Prints how many episodes have the expected costs, to nine digits."""
    same = sum(abs(a["total_cost"] / b["total_cost"] - 1) < 1e-9 for a, b in zip(found, expected))
    print(f"{name}: {same} of {len(found)} episodes have the costs of swerve in fp32")


def precisions(options):
    """Changes by bf16: a drive that draws one other token is another drive, so means are compared."""
    exact, rounded = [], []
    for controller in ("pid", "zero"):
        exact += own(options, "fp32", controller)[0]
        rounded += own(options, "bf16", controller)[0]
    for cost in ("lataccel_cost", "jerk_cost", "total_cost"):
        a = np.array([log[cost] for log in exact])
        b = np.array([log[cost] for log in rounded])
        error = np.std(b - a, ddof=1) / len(a)**0.5
        print(f"bf16, {len(a)} episodes, {cost}: mean {b.mean():.6g}, fp32 {a.mean():.6g}, difference {b.mean() / a.mean() - 1:+.2%}"
              f" (standard error {error / a.mean():.2%}), median of an episode's {np.median(np.abs(b / a - 1)):.2%},"
              f" equal in {np.sum(a == b)}")


def measure(options, simulator):
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(options.model, settings, ["CPUExecutionProvider"])
    controller = importlib.import_module("controllers.pid").Controller
    network = simulator.TinyPhysicsModel(options.model, False)
    paths = sorted(os.path.join(options.logs, name) for name in os.listdir(options.logs) if name.endswith(".csv"))
    rates = {"reference": [], "batched": [], "fp32": [], "bf16": []}
    for repeat in range(options.repeats):
        logs, seconds = own(options, "fp32", "pid")
        rates["fp32"].append(len(logs) / seconds)
        rates["bf16"].append(len(logs) / own(options, "bf16", "pid")[1])
        start = time.process_time()
        costs = [cost for at in range(0, len(paths), options.batch)
                 for cost in batched(simulator, session, paths[at:at + options.batch])]
        rates["batched"].append(len(paths) / (time.process_time() - start))
        start = time.process_time()
        few = paths[repeat % len(paths):][:options.reference]
        reference = [simulator.TinyPhysicsSimulator(network, path, controller=controller()).rollout() for path in few]
        rates["reference"].append(len(few) / (time.process_time() - start))
        if repeat == 0:
            differ("batched ONNX Runtime", costs, logs)
            differ("reference", reference, logs)
    for name, values in rates.items():
        print(f"{name}: {statistics.median(values):.3f} episodes per processor-second ({min(values):.3f} to {max(values):.3f})")
    for name in ("reference", "batched"):
        for precision in ("fp32", "bf16"):
            ratios = [a / b for a, b in zip(rates[precision], rates[name])]
            print(f"{precision} is {statistics.median(ratios):.2f} times {name} ({min(ratios):.2f} to {max(ratios):.2f})")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("swerve")
    parser.add_argument("challenge")
    parser.add_argument("logs")
    parser.add_argument("--model")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--reference", type=int, default=4, help="logs that the reference drives in a repeat")
    parser.add_argument("--device", help="measure this GPU too, as `swerve controls --device` names it")
    options = parser.parse_args()
    options.model = os.path.abspath(options.model or os.path.join(options.challenge, "models/tinyphysics.onnx"))
    options.swerve = os.path.abspath(options.swerve)
    sys.path.insert(0, os.path.abspath(options.challenge))
    measure(options, importlib.import_module("tinyphysics"))
    precisions(options)
    if options.device:
        on_device(options)


if __name__ == "__main__":
    main()
