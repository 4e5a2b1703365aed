#!/usr/bin/env python3
"""Goal: the Grafana board asks for nothing that a server does not export, and for everything that it does.
Method: a small suite is driven and repeated by the teacher, its store served, and a session relayed; the names of metrics in
the board's expressions and in the text of /metrics are compared, and so are the labels.

Usage: test_grafana.py SWERVE BOARD
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]

from swerve.session import Session, SessionError  # noqa: E402

SWERVE = os.path.realpath(sys.argv[1])
SCENARIO = {
    "id": "cruise", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [400, 0]], "width_m": 3.5,
                                       "speed_limit_mps": 15}]},
    "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}, "question": "perception", "horizon_s": 0.1}

failures = 0


def check(condition, what):
    global failures
    print(("ok - " if condition else "not ok - ") + what, flush=True)
    failures += not condition


def drive(url, work, left):
    """A session of the whole scenario, at a worker of the server's, which is killed where it is left."""
    worker = subprocess.Popen([SWERVE, "session", "serve", str(work / "cruise.json"), "--relay", url, "--save", str(work)],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    left.callback(worker.kill)
    worker.stdout.readline()
    end_s = time.monotonic() + 20
    while True:
        try:
            with Session(url + "/#open") as session:
                session.begin("cruise", deadline_ms=1000)
                session.go()
                while not session.frame()["end"]:
                    pass
                return worker
        except SessionError:  # it is not attached yet
            assert time.monotonic() < end_s
            time.sleep(0.05)


def scrape(work, left):
    """Until a scrape's own request is counted in a later one: a server counts a request behind its answer."""
    store = str(work / "jobs.db")
    (work / "cruise.json").write_text(json.dumps(SCENARIO), encoding="utf-8")
    (work / "all.json").write_text('{"rate": 1.0, "safety_critical_rate": 1.0}', encoding="utf-8")
    subprocess.run([SWERVE, "run", str(work / "cruise.json"), "--store", store, "--audit", str(work / "all.json")],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = subprocess.Popen([SWERVE, "serve", "--store", store, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    left.callback(server.kill)
    url = server.stdout.readline().strip()
    worker = drive(url, work, left)
    text, end_s = "", time.monotonic() + 60
    wanted = ("swerve_http_request_seconds_count", "swerve_session_tick_seconds_count")
    while not all(name in text for name in wanted) and time.monotonic() < end_s:
        with urllib.request.urlopen(url + "/metrics") as answer:
            text = answer.read().decode()
    worker.terminate()
    check(worker.wait(timeout=30) == 0, "the worker ends in order")
    server.terminate()
    check(server.wait(timeout=30) == 0, "the server ends in order")
    return text


def main():
    board = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="swerve-grafana-") as directory, contextlib.ExitStack() as left:
        text = scrape(pathlib.Path(directory), left)
    exported = {}
    for name, labels in re.findall(r"^(swerve_\w+)(?:\{([^}]*)\})? ", text, re.M):
        exported.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    used = set()
    for panel in board["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            names = set(re.findall(r"swerve_\w+", expression))
            used |= names
            check(names and names <= exported.keys(), f"{panel['title']}: {', '.join(sorted(names))} exported")
            labels = {label for name in names for label in exported.get(name, ())}
            wanted = set(re.findall(r"[{,]\s*(\w+)\s*=~?\"|(\w+)!=\"", expression))
            wanted = {label for pair in wanted for label in pair if label}
            for group in re.findall(r"by \(([^)]*)\)", expression):
                wanted |= {label.strip() for label in group.split(",")}
            wanted |= set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            check(wanted <= labels, f"{panel['title']}: labels {sorted(wanted)}")
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported}
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
    check(families == shown, f"every family is shown; not: {sorted(families - shown)}")
    ids = [panel["id"] for panel in board["panels"]]
    check(len(ids) == len(set(ids)) and board["uid"] and board["title"] == "Swerve", "a board that Grafana can import")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
