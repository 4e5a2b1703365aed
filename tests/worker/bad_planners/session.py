"""A planner that follows a simple law, and at a given tick misbehaves as its first argument says.

    session.py MODE [TICK]

The law (also written in C in test_planner_exec.c) uses only + - * and exactly representable
constants, so both give the same bits.
"""

import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
TICK = int(sys.argv[2]) if len(sys.argv) > 2 else 0


def misbehave():
    if MODE == "hang":
        while True:
            signal.pause()
    elif MODE == "spin":
        while True:
            pass
    elif MODE == "abort":
        print("about to abort", file=sys.stderr, flush=True)
        os.abort()
    elif MODE == "exit":
        os._exit(0)
    elif MODE == "exit3":
        os._exit(3)
    elif MODE == "orphan":
        if os.fork() == 0:
            time.sleep(60)  # and holds every descriptor
        os._exit(3)
    elif MODE == "flood":
        block = b"x" * 4095 + b"\n"
        for _ in range(256):
            os.write(2, block)
        os.write(2, b"the end of the flood\n")
    elif MODE == "slow":
        time.sleep(0.15)
    elif MODE == "raise":
        raise ValueError("no idea")
    elif MODE == "interrupt":
        raise KeyboardInterrupt("no wish to go on")
    elif MODE == "sysexit":
        sys.exit("no wish to go on")
    elif MODE == "memory":
        hog = []
        while True:
            hog.append(bytearray(1 << 24))
    elif MODE == "write":
        import mmap

        mmap.mmap(int(os.environ["SWERVE_SHM_FD"]), 4096, access=mmap.ACCESS_WRITE)
    elif MODE == "print":
        print("a word on stdout")
    elif MODE == "limits":
        import resource

        core = resource.getrlimit(resource.RLIMIT_CORE)
        assert core == (0, 0), core
        assert os.getpgrp() == os.getpid()
        assert sorted(os.listdir("/proc/self/fd"), key=int)[:4] == ["0", "1", "2", "3"]


class Law(swerve_planner.Planner):
    wants = swerve_planner.BEV | swerve_planner.CAMERAS
    name = "law"

    def reset(self, episode):
        if MODE == "reset":
            raise ValueError("this episode is not to my taste")
        self.memory = 0.0
        self.bias = len(episode.prompt) * 0.125 + len(episode.scenario_id) * 0.25
        self.bias += (episode.seed % 7) * 0.5 + episode.horizon_ticks * 0.0625
        for point in episode.log:
            self.bias += point.x_m * 0.5 - point.speed_mps * 0.25 + point.heading_rad
        self.bias += episode.ego_length_m - episode.ego_width_m * episode.ego_wheelbase_m
        rows, cols = episode.world.bev_shape[1:]
        self.corner = (3, rows - 1, cols - 1)

    def act(self, observation):
        if observation.tick == TICK:
            misbehave()
        if MODE == "nan" and observation.tick == TICK and observation.session == 1:
            return float("nan"), 0.0
        if MODE == "huge" and observation.tick == TICK and observation.session == 1:
            return 51.0, 0.0
        if MODE == "none" and observation.tick == TICK and observation.session == 1:
            return None
        self.memory = self.memory * 0.5 + observation.speed_mps
        seen = int(observation.bev[0, 5, 7]) + 3 * int(observation.bev[self.corner])
        seen += int(observation.camera[0][1, 2, 0]) + 5 * int(observation.camera[2][63, 95, 2])
        last = observation.route[-1]
        accel = self.memory * 0.015625 + self.bias * 0.0009765625 + seen * 0.0009765625
        steer = last.y_m * 0.015625 + last.adjacent_right_m * 0.03125
        steer += observation.steer_rad * 0.5 + (observation.bev_time_ns % 1000) * 0.0009765625
        return accel, steer


class Confused(swerve_planner.BatchPlanner):
    """Answers fewer observations than it was given."""

    def act(self, observations):
        return [(0.0, 0.0)] * (len(observations) - 1)


if MODE == "start_hang":
    while True:
        signal.pause()
if MODE == "start_exit":
    print("cannot find my weights", file=sys.stderr)
    sys.exit(7)
if MODE == "start_long":
    sys.exit("x" * 300 + ": the end says why")
if MODE == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if MODE == "child":
    # A grandchild that holds a lock for as long as it lives; the parent goes on once it has it.
    import fcntl

    ready, tell = os.pipe()
    if os.fork() == 0:
        lock = open(sys.argv[3], "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(tell, b"x")
        while True:
            signal.pause()
    os.read(ready, 1)
swerve_planner.run(Confused if MODE == "confused" else Law)
if MODE == "stubborn":
    while True:
        signal.pause()
