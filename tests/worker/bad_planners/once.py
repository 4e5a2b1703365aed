"""A planner that comes to grief once at tick 5, and never again.

    once.py MODE FILE     modes: interrupt, exit, segv, hang

FILE is made when it happens; where it is there already, the planner is well.
"""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

MODE, FILE = sys.argv[1:3]


class Once(swerve_planner.Planner):
    def reset(self, episode):
        pass

    def act(self, observation):
        if observation.tick == 5 and not os.path.exists(FILE):
            with open(FILE, "w", encoding="ascii"):
                pass
            print("my last words", file=sys.stderr, flush=True)
            if MODE == "interrupt":
                raise KeyboardInterrupt
            if MODE == "exit":
                os._exit(0)
            if MODE == "segv":
                os.kill(os.getpid(), signal.SIGSEGV)
            signal.pause()
        return 0.2, 0.0


swerve_planner.run(Once)
