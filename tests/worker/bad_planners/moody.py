"""A planner with a memory that comes to grief in one scenario, as its argument says.

    moody.py MODE,TICK     modes: good, crash, hang, resetdie, forkdie

The scenario is the one named "guilty".
"""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

MODE, TICK = sys.argv[1].split(",")
TICK = int(TICK)


def die(last_words):
    print("a long story\n" * 400 + last_words, file=sys.stderr, flush=True)
    os.abort()


class Moody(swerve_planner.BatchPlanner):
    name = "moody"

    def __init__(self):
        self.memory = {}
        self.guilty = {}

    def reset(self, session, episode):
        self.memory[session] = float(episode.seed)
        self.guilty[session] = episode.scenario_id == "guilty"
        if MODE == "resetdie" and self.guilty[session]:
            die("not again")

    def act(self, observations):
        answers = []
        for observation in observations:
            session = observation.session
            if self.guilty[session] and observation.tick == TICK:
                if MODE == "crash":
                    die("at my wit's end")
                if MODE == "hang":
                    print("guilty is tiring", file=sys.stderr, flush=True)
                    while True:
                        signal.pause()
            self.memory[session] = self.memory[session] * 0.5 + observation.speed_mps
            answers.append((self.memory[session] % 3.0 - 1.4, 0.0))
        return answers

    def fork(self, source, target):
        if MODE == "forkdie" and self.guilty[source]:
            die("split personality")
        self.memory[target] = self.memory[source]
        self.guilty[target] = self.guilty[source]


swerve_planner.run(Moody)
