#!/usr/bin/env python3
"""Drives a suite with an unmodified policy of the package carla-driver-interface, behind the egodriver contract.

Usage: egodriver.py [--binary SWERVE] [--suite FILE] [--policy NAME] [--servers N] [--keep FOLDER] [-- OPTIONS OF RUN]
Installs the package from PyPI into build-test/egodriver once, serves the policy on free ports, runs the suite, replays
all of it, and says outcomes, forks and processor time. Exit 1: a rollout has no answer, or a replay differs.
"""
import argparse
import json
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["carla-driver-interface==2.3.1", "grpcio", "pillow"]


def serve_program():
    """The package's command, from an environment of its own."""
    folder = ROOT / "build-test" / "egodriver"
    program = folder / "bin" / "carla-driver-interface"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True)
    return program


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port, server):
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"the server on port {port} does not listen")


def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def drive(options, places, store):
    """Runs and replays. The summary of the run, processor seconds of the run, and whether replays are the same."""
    swerve = [str(options.binary)]
    before = processor_s()
    run = subprocess.run(swerve + ["run", options.suite, "--world", "object", "--planner", f"egodriver:policy{options.spec}",
                                   "--egodriver", places, "--store", store, "--json", *options.rest],
                         stdout=subprocess.PIPE, text=True)
    used_s = processor_s() - before
    if run.returncode not in (0, 1):
        sys.exit(f"run ended with {run.returncode}")
    replay = subprocess.run(swerve + ["replay", "--all", "--egodriver", places, "--store", store], text=True)
    return json.loads(run.stdout), used_s, replay.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "worker" / "swerve")
    parser.add_argument("--suite", default=str(ROOT / "scenarios" / "smoke.json"))
    parser.add_argument("--policy", default="route_follower")
    parser.add_argument("--spec", default="", help="options of the planner spec, as ?cameras=none")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--keep", help="folder for the store")
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    ports = [free_port() for _ in range(options.servers)]
    servers = [subprocess.Popen([serve_program(), "serve", "--policy", options.policy, "--host", "127.0.0.1", "--port", str(port)],
                                stderr=subprocess.DEVNULL) for port in ports]
    try:
        for port, server in zip(ports, servers):
            wait_for(port, server)
        with tempfile.TemporaryDirectory() as folder:
            store = str(pathlib.Path(options.keep or folder) / "egodriver.db")
            summary, used_s, same = drive(options, "policy=" + ",".join(f"127.0.0.1:{port}" for port in ports), store)
    finally:
        for server in servers:
            server.kill()
            server.wait()
    ticks = summary["ticks"]
    lost = summary["dead_jobs"] + summary["unfinished_jobs"] + summary["errors"]
    print(f"{summary['rollouts']} rollouts, {summary['errors']} errors, {lost} without an answer, {ticks} ticks and "
          f"{summary['prefix_ticks_saved']} shared by branches, {1000 * used_s / max(ticks, 1):.2f} ms of processor a tick "
          f"(world, planner's client, store); replays {'are identical' if same else 'differ'}")
    sys.exit(0 if same and lost == 0 else 1)


if __name__ == "__main__":
    main()
