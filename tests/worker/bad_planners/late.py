"""A planner that ends itself at tick 5, and never starts again.

    late.py FILE     FILE is made when it ends
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

FILE = sys.argv[1]


class Late(swerve_planner.Planner):
    def reset(self, episode):
        pass

    def act(self, observation):
        if observation.tick == 5:
            with open(FILE, "w", encoding="ascii"):
                pass
            os._exit(0)
        return 0.2, 0.0


while os.path.exists(FILE):
    time.sleep(60)
swerve_planner.run(Late)
