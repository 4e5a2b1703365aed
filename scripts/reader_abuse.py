#!/usr/bin/env python3
"""Readers against workers: many clients with the worst questions to a store of many outcomes.

Makes a store with --outcomes finished rollouts, serves it with tokens, and measures workers
(heartbeat, claim) alone; then again beside --readers clients whose tokens may only look, and which
ask without a pause for what takes longest: outcomes of a scenario that does not exist, of a verdict
that never came, the whole ledger, metrics. Then ends the server with SIGTERM while they ask.

Holds when every heartbeat and claim was answered with 200, the slowest heartbeat took less than a
third of a lease, no reader waited for longer than --reader-s without an answer of some kind, and
the server ended within its grace. Prints the ratio of the heartbeats' p99 beside the readers to that
alone. Exit status 0 when everything held, else 1.
"""

import argparse
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEASE_S = 15.0
GRACE_S = 10.0  # store/SERVER.md
WORKERS = 8
READER_TOKENS = 3
QUESTIONS = [
    "/v1/outcomes?scenario=nope", "/v1/outcomes?verdict=planner_error&limit=1000",
    "/v1/outcomes?suite=big&scenario=nope", "/v1/outcomes?suite=big&verdict=flagged",
    "/v1/outcomes?suite=big&limit=1000", "/v1/outcomes?scenario=common&verdict=flagged",
    "/v1/ledger", "/v1/suites/big", "/v1/suites/big/dead", "/metrics",
]


# ---- the store ----

def fill(path, outcomes):
    """Finished jobs of one suite, four rollouts each, as rows: through the API it would take hours."""
    jobs = outcomes // 4
    with sqlite3.connect(path) as db:
        db.executescript("""
            PRAGMA synchronous = OFF;
            BEGIN;
            INSERT INTO suites (id, name, weight, jobs_done, rollouts_total, rollouts_pass)
                VALUES (1, 'big', 1, %(jobs)d, 4 * %(jobs)d, 4 * %(jobs)d);
            INSERT OR IGNORE INTO pools (id, name) VALUES (1, 'bulk');
            INSERT INTO workers (id, name, pool, device) VALUES (1, 'old', 1, 'cpu');
            INSERT INTO contexts VALUES (1, 'p', 'h', 'bulk', 1, '', '', 'cpu', 'r', 1);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %(jobs)d)
                INSERT INTO jobs (id, suite, pool, state, priority, rollouts, epoch, attempts, worker)
                SELECT i, 1, 1, 2, 0, 4, 1, 1, 1 FROM n;
            INSERT INTO job_specs (job, suite, key, scenario_id, context, seed, attempts_max)
                SELECT id, 1, printf('%%064x', id), CASE WHEN id %% 2 THEN 'common'
                       ELSE 'scenario' || id / 50 END, 1, id, 3 FROM jobs WHERE suite = 1;
            INSERT INTO attempts (job, epoch, worker, pool, device, tier, ending, device_ns,
                metres_mm, price_uusd_per_hour, cost_uusd)
                SELECT id, 1, 1, 1, 'cpu', 1, 0, 1000, 1000, 40000, 0 FROM jobs WHERE suite = 1;
            INSERT INTO outcomes (job, epoch, suite, context, branch_id, verdict, reasons, ticks,
                prefix_ticks, metres_mm, device_ns, trace_hash, artifact_hash, weather, light, road,
                geography, actor, scenario_type, safety_critical, error, intervention_count,
                collision_count, collision_agent, collision_kind, at_fault, goal_reached)
                SELECT id, 1, 1, 1, branch, 0, 0, 9, 0, 50, 3600, printf('%%064x', id), '',
                'rain', 'day', 'urban', 'x', 'car', 'cut_in', 0, '', 0, 0, -1, 0, 0, 1
                FROM jobs CROSS JOIN (SELECT '' AS branch UNION ALL SELECT 'brake' UNION ALL
                SELECT 'swerve' UNION ALL SELECT 'hold') WHERE suite = 1;
            COMMIT;""" % {"jobs": jobs})


def swerve(options, *arguments):
    return subprocess.run([options.binary] + list(arguments), check=True, capture_output=True,
                          text=True).stdout


def make(options, directory):
    """A filled store and its tokens: readers' first, then a worker's."""
    path = os.path.join(directory, "readers.db")
    server, _ = serve(options, path, insecure=True)  # makes the schema
    server.send_signal(signal.SIGTERM)
    server.wait(30)
    start_s = time.monotonic()
    fill(path, options.outcomes)
    print("%d outcomes in %.1f s" % (options.outcomes, time.monotonic() - start_s), flush=True)
    files = []
    for i in range(READER_TOKENS):
        files.append(os.path.join(directory, "reader%d" % i))
        swerve(options, "token", "add", "reader%d" % i, "--role", "read", "--store", path,
               "--output", files[-1])
    files.append(os.path.join(directory, "worker"))
    swerve(options, "token", "add", "bulk", "--role", "worker", "--pool", "bulk", "--store", path,
           "--output", files[-1])
    return path, [open(name).read().strip() for name in files]


def serve(options, path, insecure=False):
    server = subprocess.Popen([options.binary, "serve", "--store", path, "--listen", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, stderr=None if insecure else sys.stderr)
    line = server.stdout.readline().decode().strip()
    return server, int(line.rpartition(":")[2])


# ---- clients ----

class Client:
    def __init__(self, port, token):
        self.port, self.headers = port, {"Authorization": "Bearer " + token}
        self.connection = None

    def ask(self, method, path, body=None):
        """The code, 0 for none, and the Retry-After."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            text = json.dumps(body) if body is not None else None
            headers = dict(self.headers)
            if body is not None:
                headers["Content-Type"] = "application/json"
            self.connection.request(method, path, text, headers)
            reply = self.connection.getresponse()
            reply.read()
            if reply.getheader("Connection") == "close":
                self.connection.close()
            return reply.status, reply.getheader("Retry-After")
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            return 0, None


def work(port, token, name, ending, figures, mutex):
    client = Client(port, token)
    claim_id = 0
    worker = {"pool": "bulk", "device": "cpu"}
    while not ending.is_set():
        claim_id += 1
        for call, body in (("heartbeat", dict(worker, progress=[])),
                           ("claim", dict(worker, max=1, wait_ms=0, claim_id=claim_id))):
            start_s = time.monotonic()
            code, _ = client.ask("POST", "/v1/workers/%s/%s" % (name, call), body)
            with mutex:
                figures[call].append(time.monotonic() - start_s)
                if code != 200:
                    figures["wrong"].append("%s: %d" % (call, code))
        ending.wait(0.05)


def read(port, token, first, ending, answers, mutex):
    client = Client(port, token)
    at = first
    while not ending.is_set():
        start_s = time.monotonic()
        code, retry = client.ask("GET", QUESTIONS[at % len(QUESTIONS)])
        with mutex:
            answers.append((code, time.monotonic() - start_s))
        if code == 0:
            ending.wait(0.2)
        elif retry is not None:
            ending.wait(float(retry))
        at += 1


def percentile_ms(values, percent):
    ordered = sorted(values)
    return 1000 * ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]


def measure(options, port, token, prefix):
    figures = {"heartbeat": [], "claim": [], "wrong": []}
    ending, mutex = threading.Event(), threading.Lock()
    threads = [threading.Thread(target=work, args=(port, token, "%s%d" % (prefix, i), ending, figures, mutex))
               for i in range(WORKERS)]
    for thread in threads:
        thread.start()
    time.sleep(options.seconds)
    ending.set()
    for thread in threads:
        thread.join()
    return figures


def report(name, figures):
    print("%s: %d heartbeats, p50 %.1f ms, p99 %.1f ms, slowest %.0f ms; claims p99 %.1f ms" % (
        name, len(figures["heartbeat"]), percentile_ms(figures["heartbeat"], 50),
        percentile_ms(figures["heartbeat"], 99), 1000 * max(figures["heartbeat"]),
        percentile_ms(figures["claim"], 99)), flush=True)


def run_readers(options):
    """A process of its own, so that it does not share an interpreter with the workers."""
    port, tokens = int(options.read[0]), options.read[1].split(",")
    answers, ending, mutex = [], threading.Event(), threading.Lock()
    threads = [threading.Thread(target=read, daemon=True, args=(
        port, tokens[i % len(tokens)], i, ending, answers, mutex)) for i in range(options.readers)]
    for thread in threads:
        thread.start()
    sys.stdin.readline()
    with mutex:
        counts = {}
        for code, _ in answers:
            counts[str(code)] = counts.get(str(code), 0) + 1
        answered = [seconds for code, seconds in answers if code == 200] or [0.0]
        print(json.dumps({"codes": counts, "slowest_s": max([s for _, s in answers] or [0.0]),
                          "p50_s": percentile_ms(answered, 50) / 1000}), flush=True)
    os._exit(0)


def run(options):
    problems = []
    with tempfile.TemporaryDirectory(prefix="swerve-readers-") as directory:
        path, tokens = make(options, directory)
        server, port = serve(options, path)
        alone = measure(options, port, tokens[READER_TOKENS], "alone")
        report("workers alone", alone)
        readers = subprocess.Popen(
            [sys.executable, __file__, "--readers", str(options.readers), "--read", str(port),
             ",".join(tokens[:READER_TOKENS])], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(2)
        beside = measure(options, port, tokens[READER_TOKENS], "beside")
        report("beside %d readers" % options.readers, beside)
        start_s = time.monotonic()
        server.send_signal(signal.SIGTERM)
        try:
            code = server.wait(options.stop_s)
        except subprocess.TimeoutExpired:
            code = None
            server.kill()
            server.wait()
        stop_s = time.monotonic() - start_s
        looked = json.loads(readers.communicate(b"\n")[0])
    print("readers: %s, answered p50 %.3f s, slowest %.1f s; SIGTERM: %.1f s, exit status %s" % (
        looked["codes"], looked["p50_s"], looked["slowest_s"], stop_s, code))
    ratio = percentile_ms(beside["heartbeat"], 99) / percentile_ms(alone["heartbeat"], 99)
    print("ratio of the heartbeats' p99: %.1f" % ratio)
    if alone["wrong"] or beside["wrong"]:
        problems.append("workers were refused: %s" % (alone["wrong"] + beside["wrong"])[:3])
    if max(beside["heartbeat"]) > LEASE_S / 3:
        problems.append("a heartbeat took %.1f s of a lease of %.0f s" % (
            max(beside["heartbeat"]), LEASE_S))
    if looked["slowest_s"] > options.reader_s:
        problems.append("a reader waited for %.1f s" % looked["slowest_s"])
    if looked["codes"].get("200", 0) == 0:
        problems.append("no reader was answered")
    if code != 0 or stop_s > GRACE_S:
        problems.append("SIGTERM took %.1f s, exit status %s" % (stop_s, code))
    for problem in problems:
        print("     WRONG  " + problem)
    print("readers %s: %d problems" % ("FAILED" if problems else "passed", len(problems)))
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outcomes", type=int, default=1000000, help="(%(default)s)")
    parser.add_argument("--readers", type=int, default=150, help="clients (%(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="each of both measurements")
    parser.add_argument("--reader-s", type=float, default=30, help="longest wait of a reader")
    parser.add_argument("--stop-s", type=float, default=120, help="wait for SIGTERM to end it")
    parser.add_argument("--binary", default=os.path.join(TOP, "build", "worker", "swerve"))
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return run_readers(options) if options.read else run(options)


if __name__ == "__main__":
    sys.exit(main())
