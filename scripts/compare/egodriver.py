#!/usr/bin/env python3
"""Drives a suite with an unmodified policy of the package carla-driver-interface, behind the egodriver contract.

Usage: egodriver.py [--binary SWERVE] [--suite FILE] [--main-lines] [--fan N] [--policy NAME] [--servers N] [--keep FOLDER]
                    [--sample SHARE] [-- OPTIONS OF RUN]
Installs the package from PyPI into build-test/egodriver once, serves the policy on free ports, runs the suite, replays
a share of it, and says outcomes, forks and processor time. `--main-lines`: the suite without its branches. `--fan N`: in
place of a suite one drive of 200 ticks on an empty motorway, with N branches spread over it, and what they cost beside
N + 1 drives. Exit 1: a rollout has no answer, or a replay differs.
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

DEADLINE = ["--planner-deadline-ms", "60000"]  # a busy machine is no fault of the policy
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


def serve(policy, port, environment=None):
    """A server of a policy, which the caller ends."""
    return subprocess.Popen([serve_program(), "serve", "--policy", policy, "--host", "127.0.0.1", "--port", str(port)],
                            stderr=subprocess.DEVNULL, env=environment)


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


def main_lines(path, library):
    """The scenarios of a suite and of the suites that it names, without branches; `library` stands for the suite's folder."""
    suite = json.loads(path.read_text())
    lines = [line for part in suite.get("suites", []) for line in main_lines(path.parent / part, library)]
    return lines + [{**entry, "file": f"{library}/{entry['file']}", "branches": []} for entry in suite.get("scenarios", [])]


def write_main_lines(path, folder):
    """A suite of the main lines alone, in a folder of its own."""
    (folder / "library").symlink_to(path.parent, target_is_directory=True)
    made = folder / "main_lines.json"
    made.write_text(json.dumps({"id": "main_lines", "title": f"Main lines of {path.name}", "seeds": 1,
                                "scenarios": main_lines(path, "library")}))
    return str(made)


def write_fan(count, folder):
    """A drive of 200 ticks, with branches spread over it that brake."""
    branches = [{"id": f"at_{tick}", "at_tick": tick, "interventions": [{"kind": "ego_brake", "decel_mps2": 1}]}
                for tick in (200 * (k + 1) // (count + 1) for k in range(count))]
    (folder / "maps").symlink_to(ROOT / "scenarios" / "maps", target_is_directory=True)
    made = folder / "fan.json"
    made.write_text(json.dumps({"id": "fan", "title": "An empty motorway", "map": {"file": "maps/freeway.json"}, "horizon_s": 20,
                                "ego": {"pose": {"lane": "lane_1", "s_m": 100}, "speed_mps": 8, "route": ["lane_1"]}, "branches": branches}))
    return str(made)


def drive(options, places, store):
    """Runs and replays. The summary of the run, processor seconds of the run, and whether replays are the same."""
    swerve = [str(options.binary)]
    before = processor_s()
    run = subprocess.run(swerve + ["run", options.suite, "--world", "object", "--planner", f"egodriver:policy{options.spec}",
                                   "--egodriver", places, "--store", store, "--json", *DEADLINE, *options.rest],
                         stdout=subprocess.PIPE, text=True)
    used_s = processor_s() - before
    if run.returncode not in (0, 1):
        sys.exit(f"run ended with {run.returncode}")
    replay = subprocess.run(swerve + ["replay", "--all", "--sample", str(options.sample), "--slots", "16", "--egodriver", places, "--store", store,
                                      *DEADLINE])
    return json.loads(run.stdout), used_s, replay.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build" / "worker" / "swerve")
    parser.add_argument("--suite", default=str(ROOT / "scenarios" / "smoke.json"))
    parser.add_argument("--main-lines", action="store_true", help="the suite without its branches")
    parser.add_argument("--fan", type=int, help="branches of one drive, in place of a suite")
    parser.add_argument("--sample", type=float, default=1.0, help="share of the outcomes that is replayed")
    parser.add_argument("--policy", default="route_follower")
    parser.add_argument("--spec", default="", help="options of the planner spec, as ?cameras=none")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--keep", help="folder for the store")
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args()
    ports = [free_port() for _ in range(options.servers)]
    servers = [serve(options.policy, port) for port in ports]
    try:
        for port, server in zip(ports, servers):
            wait_for(port, server)
        with tempfile.TemporaryDirectory() as folder:
            store = str(pathlib.Path(options.keep or folder) / "egodriver.db")
            if options.fan:
                options.suite = write_fan(options.fan, pathlib.Path(folder))
            elif options.main_lines:
                options.suite = write_main_lines(pathlib.Path(options.suite).resolve(), pathlib.Path(folder))
            summary, used_s, same = drive(options, "policy=" + ",".join(f"127.0.0.1:{port}" for port in ports), store)
    finally:
        for server in servers:
            server.kill()
            server.wait()
    ticks = summary["ticks"]
    lost = summary["dead_jobs"] + summary["unfinished_jobs"] + summary["errors"]
    if options.fan:
        alone = ticks + summary["prefix_ticks_saved"]
        print(f"{ticks} ticks of the world where {options.fan + 1} drives take {alone}: {100 * ticks / alone:.1f}%; "
              f"{summary['prefix_ticks_saved']} ticks were sent again")
    print(f"{summary['rollouts']} rollouts, {summary['errors']} errors, {lost} without an answer, {ticks} ticks and "
          f"{summary['prefix_ticks_saved']} shared by branches, {1000 * used_s / max(ticks, 1):.2f} ms of processor a tick "
          f"(world, planner's client, store); replays {'are identical' if same else 'differ'}")
    sys.exit(0 if same and lost == 0 else 1)


if __name__ == "__main__":
    main()
