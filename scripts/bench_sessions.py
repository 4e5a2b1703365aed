#!/usr/bin/env python3
"""Sessions of a learned world in real time: how many are let in, and what their ticks wait and take.

Usage: scripts/bench_sessions.py [--binary SWERVE] [--seconds N] [--ask N] [--least STEPS] [--suite SUITE] [-- SERVE-OPTIONS]

Starts `swerve session serve` with the student; clients at 10 Hz with a deadline of 100 ms ask for sessions, one
after the other, and drive on from the start when a line ends. Prints how many were let in, ticks by tier, lates, the
most in a row, and 50th, 95th and 99th percentiles (upper bounds of their buckets). Start it with a priority above that
of what else the machine does, as by `nice -n -10`.
"""
import argparse
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from swerve.session import Session, SessionError  # noqa: E402


class Driver(threading.Thread):
    """One session; unlabelled: frames of a tick without a tier."""

    def __init__(self, session: Session, scenario: str, least: int, end_s: float):
        super().__init__()
        self.session, self.scenario, self.least, self.end_s = session, scenario, least, end_s
        self.ticks = self.lates = self.most = self.unlabelled = 0

    def run(self) -> None:
        row = 0
        while time.monotonic() < self.end_s:
            frame = self.session.frame()
            if frame["deadline_ms"] > 0:  # of a tick
                self.ticks += 1
                self.lates += frame["late"]
                self.unlabelled += frame["tier"] == ""
                row = row + 1 if frame["late"] else 0
                self.most = max(self.most, row)
            if frame["end"]:
                self.session.back(6000)
                self.session.go()
        self.session.close()


def let_in(url: str, asked: int, least: int, end_s: float) -> list[Driver]:
    drivers: list[Driver] = []
    for i in range(asked):
        session = Session(url)
        scenario = session.scenarios[i % len(session.scenarios)]
        try:
            session.begin(scenario, steps_least=least)
        except SessionError as refusal:
            print(f"refused: {refusal}")
            session.close()
            continue
        session.go()
        drivers.append(Driver(session, scenario, least, end_s))
        drivers[-1].start()
        time.sleep(2)  # it counts by then
    return drivers


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--binary", default=str(ROOT / "build/worker/swerve"))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--ask", type=int, default=20)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--suite", default="ncap")
    parser.add_argument("serve", nargs="*")
    options = parser.parse_args()
    command = [options.binary, "session", "serve", options.suite, "--world", "student", "--sessions", "32", "--listen",
               "127.0.0.1:0", "--save", "/dev/shm", *options.serve]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        if not re.match("http://", url):
            raise SystemExit(server.stderr.read())
        time.sleep(20)  # what ticks cost is known by then
        drivers = let_in(url, options.ask, options.least, time.monotonic() + options.seconds)
        load = os.getloadavg()[0]
        for driver in drivers:
            driver.join()
        print(f"load {load:.0f} at the begin, {os.getloadavg()[0]:.0f} at the end; {len(drivers)} of {options.ask} let in")
        ticks, lates = sum(d.ticks for d in drivers), sum(d.lates for d in drivers)
        print(f"{ticks} frames of ticks read, {100 * lates / max(ticks, 1):.2f}% late, "
              f"{max((d.most for d in drivers), default=0)} in a row at most, {sum(d.unlabelled for d in drivers)} unlabelled")
        server.terminate()
        print(server.stderr.read(), end="")


if __name__ == "__main__":
    main()
