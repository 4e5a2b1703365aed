"""A planner that does what it can to go on when its worker is gone.

    outlive.py NAME [spin] [world]

It takes back the signal that its parent's death sends, leaves group and session, forks away twice, and
attacks process 1: with signals, its priority, its limits. With "spin" it keeps all processors busy; as
a "world" it never answers. All of its processes have NAME on their command lines.
"""

import ctypes
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PRIO_PROCESS, PRIO_PGRP, SCHED_IDLE, RLIMIT_NOFILE = 1, 0, 1, 5, 7


def stay():
    LIBC.prctl(PR_SET_PDEATHSIG, 0)
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        if "spin" not in sys.argv:
            signal.pause()


def attack_keeper():
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGSTOP, signal.SIGKILL):
        os.kill(1, number)
    parameters = (ctypes.c_int * 1)(0)
    LIBC.sched_setscheduler(1, SCHED_IDLE, parameters)
    LIBC.setpriority(PRIO_PROCESS, 1, 19)
    LIBC.setpriority(PRIO_PGRP, 1, 19)
    LIBC.prlimit(1, RLIMIT_NOFILE, (ctypes.c_ulong * 2)(0, 0), None)


def leave():
    """A process that nobody here is the parent of any more."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.write(tell, b"x")
            stay()
        os._exit(0)
    os.wait()
    os.read(ready, 1)


if os.getppid() == 1:  # in a sandbox; elsewhere process 1 is the machine's
    attack_keeper()
for _ in range(16 if "spin" in sys.argv else 3):
    leave()
LIBC.prctl(PR_SET_PDEATHSIG, 0)
if "world" in sys.argv:
    stay()


class Straight(swerve_planner.Planner):
    def reset(self, episode):
        pass

    def act(self, observation):
        return 0.5, 0.0


swerve_planner.run(Straight)
stay()  # its input has ended
