#!/usr/bin/env python3
"""Soak: many short jobs while processes are killed, then an audit of what is left.

A fleet (the default): `swerve serve` and workers that know nothing but its URL. A worker is killed
(-9) every --kill-ms milliseconds and replaced, the server every --server-kill-s seconds and started
again, from before the jobs are submitted until all have ended. With --kill-jobs and --server-kill-jobs
not time says when, but how many jobs have ended since the last kill: a slow machine is then killed as
often as a fast one, and always gets on. Beside it, small batches of jobs that nobody claims are
submitted one after the other: what was acknowledged must be there at the end.

The main job (--mode run): a worker of `swerve run` is killed every --kill-ms milliseconds, and
`swerve run` itself --kills-of-run times: once while it submits, then while it runs; each time the
same command is started again.

When all has ended, the store is read with SQLite and through the command line: every job ended
exactly once, no outcome is lost or doubled, the money adds up to the last unit, the files are
whole, no process is left, and replays give the same drives.

Prints what it did and one line of verdict; exit status 0 when everything held, else 1.
"""

import argparse
import ctypes
import ctypes.util
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIOS = 20
STATES = ("queued", "leased", "done", "flagged", "dead", "cancelled")
VERDICTS = ("pass", "fail", "planner_error", "flagged", "invalid")
ENDINGS = ("done", "flagged", "failed", "released", "lost", "stale")
LOST_MAX = 5  # workers that vanish under a job before it is taken to be what kills them
NS_PER_HOUR = 3600 * 10**9


# ---- the suite ----

def straight_road():
    """Two lanes, one each way, long enough for every scenario here."""
    def lane(name, other, points):
        return {"id": name, "centre_line": points, "width_m": 3.5, "speed_limit_mps": 14,
                "left": other, "left_opposite": True, "left_marking": "dashed",
                "right_marking": "solid"}
    return {"id": "road", "lanes": [lane("east", "west", [[-100, -1.75], [500, -1.75]]),
                                    lane("west", "east", [[500, 1.75], [-100, 1.75]])]}


def agents_of(index):
    gap_m = 12 + 2 * index
    ahead = {"id": "ahead", "kind": "car", "pose": {"lane": "east", "s_m": 40 + gap_m}}
    kind = index % 4
    if kind == 0:
        return [dict(ahead, behaviour="static")]
    if kind == 1:
        return [dict(ahead, behaviour="idm", speed_mps=8 + index % 5)]
    if kind == 2:
        oncoming = {"id": "oncoming", "kind": "van", "pose": {"lane": "west", "s_m": 430 - index},
                    "behaviour": "idm", "speed_mps": 9}
        return [dict(ahead, behaviour="idm", speed_mps=11), oncoming]
    return []


def branches_of(index):
    brake = {"id": "brake", "at_tick": 5,
             "interventions": [{"kind": "ego_brake", "decel_mps2": 4}]}
    late = {"id": "late", "at_tick": 3, "interventions": [
        {"kind": "stack_latency", "latency_ms": 120, "jitter_ms": 60}]}
    return [[], [brake], [], [brake, late], []][index % 5]


def write_suite(directory, jobs):
    """Returns the branch ids of every scenario. The seeds are spread so that the sum is `jobs`."""
    branches = {}
    entries = []
    for index in range(min(SCENARIOS, jobs)):
        name = "short_%02d" % index
        scenario = {
            "id": name, "title": "Soak, scenario %d" % index, "map": straight_road(),
            "ego": {"pose": {"lane": "east", "s_m": 40}, "speed_mps": 6 + index % 8,
                    "route": ["east"]},
            "agents": agents_of(index),
            "slices": {"road": "urban", "geography": "europe", "actor": "car",
                       "scenario_type": "soak_%d" % (index % 4), "safety_critical": False},
            "horizon_s": 1 + index % 3 * 0.5,
            "criteria": {"no_collision": True},
            "branches": branches_of(index),
        }
        branches[name] = sorted([""] + [branch["id"] for branch in scenario["branches"]])
        with open(os.path.join(directory, name + ".json"), "w") as file:
            json.dump(scenario, file)
        share = jobs // SCENARIOS + (index < jobs % SCENARIOS)
        for first in range(0, share, 10000):
            seeds = list(range(first, min(first + 10000, share)))
            entries.append({"file": name + ".json", "seeds": seeds})
    path = os.path.join(directory, "soak.json")
    with open(path, "w") as file:
        json.dump({"id": "soak", "scenarios": entries}, file)
    return path, branches


# ---- processes ----

def processes_with(text):
    """(pid, parent, arguments) of every process whose command line holds the text."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                arguments = file.read().decode(errors="replace").split("\0")
            with open("/proc/%s/stat" % name) as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if fields[0] != "Z" and any(text in argument for argument in arguments):
            found.append((int(name), int(fields[1]), arguments))
    return found


class Moments:
    """Moments of kills: every period_s; or, where jobs is not 0, whenever so many more have ended."""

    def __init__(self, period_s, jobs=0):
        self.jobs = jobs
        self.step = jobs or period_s
        self.wait(0)

    def now(self, ended):
        return ended if self.jobs else time.monotonic()

    def wait(self, ended):
        self.at = self.now(ended) + self.step

    def due(self, ended):
        return self.now(ended) >= self.at


class Killer(threading.Thread):
    """Kills one random worker at each moment."""

    def __init__(self, find, moments, seed, ended=lambda: 0):
        super().__init__(daemon=True)
        self.find = find  # the pids of those who may be killed
        self.moments = moments
        self.ended = ended
        self.random = random.Random(seed)
        self.kills = 0
        self.idle = 0
        self.ending = threading.Event()

    def run(self):
        while not self.ending.wait(0.01):
            if not self.moments.due(self.ended()):
                continue
            self.moments.wait(self.ended())
            workers = self.find()
            if not workers:
                self.idle += 1
                continue
            try:
                os.kill(self.random.choice(workers), signal.SIGKILL)
                self.kills += 1
            except ProcessLookupError:
                self.idle += 1


class Soak:
    dead_endings = "3, 4"  # of attempts at a job that is dead: handed back, lost

    def __init__(self, options, directory):
        self.options = options
        self.directory = directory
        self.store = os.path.join(directory, "soak.db")
        self.artifacts = self.store + ".artifacts"
        self.run_code = None  # of `swerve run`, once it has ended by itself
        self.suite_path, self.branches = write_suite(directory, options.jobs)
        self.command = [options.binary, "run", self.suite_path, "--store", self.store,
                        "--workers", str(options.workers), "--json",
                        "--planner", options.planner]
        if options.planner.startswith("exec:"):
            self.command[-1] += " " + directory  # an argument to know its processes by
        self.run_pid = 0
        self.random = random.Random(options.seed)
        self.log = open(os.path.join(directory, "stderr.log"), "wb")
        self.problems = []

    def say(self, text):
        print("%8.1f s  %s" % (time.monotonic() - self.start_s, text), flush=True)

    def check(self, held, text):
        if not held:
            self.problems.append(text)
            print("     WRONG  " + text, flush=True)

    def swerve(self, *arguments, codes=(0,)):
        done = subprocess.run([self.options.binary, *arguments, "--store", self.store],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        self.check(done.returncode in codes, "swerve %s: exit status %d: %s" % (
            " ".join(arguments), done.returncode, done.stderr.decode(errors="replace")[-500:]))
        return done.stdout

    def progress(self):
        """(jobs there, jobs ended) as the command line sees them; None before the store is."""
        if not os.path.exists(self.store):
            return 0, 0
        done = subprocess.run([self.options.binary, "status", "--json", "--store", self.store],
                              stdout=subprocess.PIPE, stderr=self.log, timeout=120)
        if done.returncode != 0:
            return 0, 0
        suites = json.loads(done.stdout)["suites"]
        there = sum(suite[state] for suite in suites for state in STATES)
        ended = sum(suite[state] for suite in suites for state in STATES[2:])
        return there, ended

    # ---- the run ----

    def begin(self):
        self.start_s = time.monotonic()

    def start(self):
        out = open(os.path.join(self.directory, "run.json"), "wb")
        process = subprocess.Popen(self.command, stdout=out, stderr=self.log)
        out.close()
        self.run_pid = process.pid
        return process

    def workers_of_run(self):
        return [pid for pid, parent, arguments in processes_with(self.directory)
                if parent == self.run_pid and "worker" in arguments[1:2]]

    def kill_run(self, process):
        self.run_pid = 0
        process.kill()
        process.wait()

    def run(self):
        self.killer = Killer(self.workers_of_run, Moments(self.options.kill_ms / 1000),
                             self.options.seed)
        self.killer.start()
        jobs = self.options.jobs
        marks = [(k + 0.8 * self.random.random()) * jobs / max(self.options.kills_of_run - 1, 1)
                 for k in range(self.options.kills_of_run - 1)]
        process = self.start()
        if self.options.kills_of_run > 0:
            self.kill_while_submitting(process)
            process = self.start()
        shown_s = 0.0
        while process.poll() is None:
            there, ended = self.progress()
            if marks and ended >= marks[0] and ended < jobs:
                marks.pop(0)
                self.kill_run(process)
                self.say("swerve run killed with %d of %d jobs ended" % (ended, jobs))
                process = self.start()
            if time.monotonic() - shown_s > 10:
                shown_s = time.monotonic()
                self.say("%d of %d jobs ended, %d kills of workers" % (
                    ended, jobs, self.killer.kills))
            if time.monotonic() - self.start_s > self.options.limit_s:
                self.check(False, "not done after %d s" % self.options.limit_s)
                process.terminate()
            time.sleep(0.05 if marks else 0.2)
        self.wall_s = time.monotonic() - self.start_s
        self.killer.ending.set()
        self.killer.join()
        self.run_code = process.returncode
        self.check(not marks, "the jobs ended before every kill of swerve run")
        self.say("done: %.0f jobs/s, %d kills of workers" % (jobs / self.wall_s,
                                                            self.killer.kills))

    def kill_while_submitting(self, process):
        """Some of the jobs are in the store when it dies, by luck all."""
        deadline_s = time.monotonic() + 60
        while self.progress()[0] == 0 and time.monotonic() < deadline_s:
            time.sleep(0.001)
        self.kill_run(process)
        there = self.progress()[0]
        self.say("swerve run killed with %d of %d jobs submitted" % (there, self.options.jobs))

    # ---- the audit ----

    def audit(self):
        self.check_processes()
        self.database = self.connect()
        names = self.rows("SELECT name FROM suites WHERE name LIKE 'soak-%'")
        self.check(len(names) == 1, "expected one suite of the soak, found %s" % names)
        self.suite = names[0][0]
        self.check_database()
        self.check_jobs()
        if self.run_code is not None:  # 6: jobs without an answer
            self.check(self.run_code == (6 if self.dead else 0), "swerve run: exit status %d" % self.run_code)
        self.check_outcomes()
        self.check_attempts()
        self.check_money()
        self.check_artifacts()
        ids = [row[0] for row in self.database.execute("SELECT id FROM outcomes ORDER BY id")]
        totals = self.totals()
        self.database.close()
        self.check_command_line(ids, totals)
        self.check_replays(ids)
        self.check_again(totals)
        self.check_processes()

    def connect(self):
        return sqlite3.connect("file:%s?mode=ro" % self.store, uri=True)

    def rows(self, sql):
        return self.database.execute(sql).fetchall()

    def none(self, text, sql):
        """The query finds violations of what the text says."""
        rows = self.rows(sql)
        self.check(not rows, "not true: %s: %d times, first %s" % (
            text, len(rows), rows[0] if rows else ""))

    def processes(self):
        """Of ours: not those who called this script with the directory's name."""
        return [found for found in processes_with(os.path.basename(self.directory))
                if "--audit" not in found[2]]

    def check_processes(self):
        deadline_s = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline_s:
            time.sleep(0.05)
        self.check(not self.processes(), "processes are left: %s" % self.processes())

    def check_database(self):
        self.check(self.rows("PRAGMA integrity_check") == [("ok",)], "PRAGMA integrity_check")
        self.check(self.rows("PRAGMA foreign_key_check") == [], "PRAGMA foreign_key_check")

    def check_jobs(self):
        states = dict(self.rows("SELECT state, COUNT(*) FROM jobs WHERE suite IN"
                                " (SELECT id FROM suites WHERE name LIKE 'soak-%') GROUP BY state"))
        self.dead = {row[0]: row[1] for row in self.rows(
            "SELECT j.id, s.scenario_id FROM jobs j JOIN job_specs s ON s.job = j.id"
            " WHERE j.state = 4")}
        done = self.options.jobs - len(self.dead)
        expected = {state: count for state, count in ((2, done), (4, len(self.dead))) if count}
        self.check(states == expected, "expected %d jobs, all done; found %s" % (
            self.options.jobs, {STATES[state]: count for state, count in states.items()}))
        self.none("every job has ended", "SELECT id FROM jobs WHERE state < 2")
        # A job is given up when LOST_MAX workers or more vanish while they run it; that a killer
        # meets one by chance so often must be rare.
        self.check(len(self.dead) <= max(3, self.options.jobs // 1000), "%d jobs are dead" % len(self.dead))
        self.none("a dead job lost its workers, and nothing else", "SELECT id FROM jobs j"
                  " WHERE state = 4 AND (lost < %d OR EXISTS (SELECT 1 FROM attempts a"
                  " WHERE a.job = j.id AND a.ending NOT IN (%s)) OR EXISTS"
                  " (SELECT 1 FROM outcomes o WHERE o.job = j.id))" % (LOST_MAX, self.dead_endings))
        self.none("a job has one spec and a key of its own",
                  "SELECT key FROM job_specs GROUP BY suite, key HAVING COUNT(*) <> 1"
                  " UNION SELECT CAST(id AS TEXT) FROM jobs WHERE id NOT IN (SELECT job FROM job_specs)")
        self.none("a scenario and a seed are one job",
                  "SELECT scenario_id, seed FROM job_specs GROUP BY suite, 1, 2"
                  " HAVING COUNT(*) <> 1")
        counted = self.rows("SELECT jobs_queued, jobs_leased, jobs_done, jobs_flagged, jobs_dead,"
                            " jobs_cancelled FROM suites WHERE name LIKE 'soak-%'")
        self.check(counted == [(0, 0, done, 0, len(self.dead), 0)],
                   "the suite's counters: %s" % counted)

    def check_outcomes(self):
        found = {}
        for job, branch in self.rows("SELECT job, branch_id FROM outcomes"):
            found.setdefault(job, []).append(branch)
        wrong = [job for job, scenario in self.rows(
            "SELECT job, scenario_id FROM job_specs WHERE suite IN"
            " (SELECT id FROM suites WHERE name LIKE 'soak-%')")
                 if job not in self.dead and sorted(found.pop(job, [])) != self.branches[scenario]]
        self.check(not wrong and not found, "outcomes lost or doubled in %d jobs, first %s" % (
            len(wrong) + len(found), (wrong + sorted(found))[:1]))
        self.none("an outcome is of its job's current epoch",
                  "SELECT o.id FROM outcomes o JOIN jobs j ON j.id = o.job"
                  " WHERE o.epoch <> j.epoch")
        self.none("the same work has the same result",
                  "SELECT MIN(o.id) FROM outcomes o JOIN job_specs s ON s.job = o.job"
                  " GROUP BY s.scenario_id, s.seed, o.branch_id"
                  " HAVING COUNT(DISTINCT o.trace_hash) <> 1")
        counted = self.rows("SELECT rollouts_pass, rollouts_fail, rollouts_planner_error,"
                            " rollouts_flagged, rollouts_invalid FROM suites WHERE name LIKE 'soak-%'")[0]
        verdicts = dict(self.rows("SELECT verdict, COUNT(*) FROM outcomes GROUP BY verdict"))
        self.check(counted == tuple(verdicts.get(v, 0) for v in range(len(VERDICTS))),
                   "the suite's verdicts: %s, the outcomes': %s" % (counted, verdicts))

    def check_attempts(self):
        self.none("every epoch ended exactly once",
                  "SELECT j.id FROM jobs j WHERE (SELECT COUNT(*) FROM attempts a"
                  " WHERE a.job = j.id AND a.epoch BETWEEN 1 AND j.epoch) <> j.epoch"
                  " OR (SELECT COUNT(*) FROM attempts a WHERE a.job = j.id) <> j.epoch")
        self.none("a job was accepted once, in its current epoch",
                  "SELECT j.id FROM jobs j LEFT JOIN attempts a ON a.job = j.id AND a.ending = 0"
                  " WHERE j.state = 2 GROUP BY j.id HAVING COUNT(a.epoch) <> 1 OR MAX(a.epoch) <> j.epoch")
        # All attempts together: what was kept of a lost one is an outcome of the one that finished the job.
        self.none("the attempts at a job cost at least what its outcomes cost",
                  "SELECT o.job FROM (SELECT job, SUM(device_ns) AS device_ns, SUM(metres_mm) AS metres_mm"
                  " FROM outcomes GROUP BY job) o WHERE"
                  " o.device_ns > (SELECT SUM(a.device_ns) FROM attempts a WHERE a.job = o.job) OR"
                  " o.metres_mm > (SELECT SUM(a.metres_mm) FROM attempts a WHERE a.job = o.job)")

    def check_money(self):
        keys = "pool, device, tier, audit, ending"
        sums = {}
        accounts = {}
        for row in self.rows("SELECT j.suite, a.pool, a.device, a.tier, j.audit, a.ending,"
                             " a.device_ns, a.metres_mm, a.mflop, a.cost_uusd, a.price_uusd_per_hour"
                             " FROM attempts a JOIN jobs j ON j.id = a.job"):
            key, (device_ns, metres_mm, mflop, cost, price) = row[:6], row[6:]
            entry = sums.setdefault(key, [0, 0, 0, 0, 0])
            for place, value in enumerate((1, device_ns, metres_mm, mflop, cost)):
                entry[place] += value
            account = accounts.setdefault((row[1], row[2], price), [0, 0])
            account[0] += device_ns * price
            account[1] += cost
            low = device_ns * price // NS_PER_HOUR
            # A carried remainder makes an entry one unit dearer; a late report splits it once more.
            self.check(low <= cost <= low + 2, "an attempt's cost: %s" % (row,))
        ledger = {row[:6]: list(row[6:]) for row in self.rows(
            "SELECT suite, %s, attempts, device_ns, metres_mm, mflop, cost_uusd FROM ledger"
            " WHERE attempts <> 0" % keys)}
        self.check(ledger == sums, "the ledger is not the sum of the attempts")
        carries = {row[:3]: row[3] for row in self.rows(
            "SELECT pool, device, price_uusd_per_hour, carry FROM accounts")}
        for key, (owed, cost) in accounts.items():
            self.check(cost == owed // NS_PER_HOUR and carries.get(key) == owed % NS_PER_HOUR,
                       "account %s: cost %d and carry %s, owed %d / %d" % (
                           key, cost, carries.get(key), owed, NS_PER_HOUR))
        ends = {ENDINGS[key[5]]: value for key, value in sums.items()}
        self.say("attempts: " + ", ".join("%d %s ($%.6f)" % (value[0], end, value[4] / 1e6)
                                          for end, value in sorted(ends.items())))

    def check_artifacts(self):
        library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
        library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
        library.ZSTD_decompress.restype = ctypes.c_size_t
        referred = {row[0] for row in self.rows(
            "SELECT artifact_hash FROM outcomes UNION"
            " SELECT evidence_hash FROM outcomes WHERE evidence_hash IS NOT NULL UNION"
            " SELECT artifact_hash FROM attempts WHERE artifact_hash IS NOT NULL")}
        self.check("" not in referred, "an outcome without a trace")
        for name in sorted(referred - {""}):
            path = os.path.join(self.artifacts, name[:2], name + ".zst")
            try:
                with open(path, "rb") as file:
                    packed = file.read()
            except OSError as problem:
                self.check(False, "artifact: %s" % problem)
                continue
            size = library.ZSTD_getFrameContentSize(packed, ctypes.c_size_t(len(packed)))
            plain = ctypes.create_string_buffer(max(size, 1) if size < 1 << 28 else 1)
            got = library.ZSTD_decompress(plain, ctypes.c_size_t(len(plain)), packed,
                                          ctypes.c_size_t(len(packed)))
            self.check(got == size and hashlib.sha256(plain.raw[:got]).hexdigest() == name,
                       "artifact %s is damaged" % name)
        kept = sum(len(files) for _, _, files in os.walk(self.artifacts))
        self.say("%d artifacts, all whole; %d more that nobody refers to" % (
            len(referred), kept - len(referred)))

    def totals(self):
        ledger = self.rows("SELECT p.name, l.device, l.ending, SUM(l.attempts), SUM(l.device_ns),"
                           " SUM(l.metres_mm), SUM(l.cost_uusd) FROM ledger l JOIN pools p"
                           " ON p.id = l.pool GROUP BY 1, 2, 3 HAVING SUM(l.attempts) <> 0")
        return {
            "outcomes": self.rows("SELECT COUNT(*), MAX(id), SUM(device_ns), SUM(ticks),"
                                  " SUM(prefix_ticks) FROM outcomes")[0],
            "ledger": {(row[0], row[1], ENDINGS[row[2]]): list(row[3:]) for row in ledger},
            "epochs": self.rows("SELECT SUM(epoch) FROM jobs")[0],
        }

    def check_command_line(self, ids, totals):
        expected = sum(len(self.branches["short_%02d" % index]) *
                       (self.options.jobs // SCENARIOS + (index < self.options.jobs % SCENARIOS))
                       for index in range(min(SCENARIOS, self.options.jobs)))
        total = expected
        expected -= sum(len(self.branches[scenario]) for scenario in self.dead.values())
        self.check(len(ids) == expected, "%d outcomes, expected %d" % (len(ids), expected))
        reports = {"report": json.loads(self.swerve("report", self.suite, "--json") or "{}")}
        if self.options.mode == "run":
            with open(os.path.join(self.directory, "run.json")) as file:
                try:
                    reports["run"] = json.load(file)
                except ValueError as problem:
                    return self.check(False, "run --json: %s" % problem)
        for name, report in reports.items():
            listed = report.get("outcomes", [])
            self.check(report.get("rollouts") == expected and sorted(listed) == ids,
                       "%s --json: %s rollouts, %d outcomes" % (
                           name, report.get("rollouts"), len(listed)))
            ledger = {}
            for row in report.get("ledger", []):
                entry = ledger.setdefault((row["pool"], row["device"], row["end"]), [0] * 4)
                for place, key in enumerate(("attempts", "device_ns", "metres_mm", "cost_uusd")):
                    entry[place] += row[key]
            ledger = {key: value for key, value in ledger.items() if value[0] != 0}
            self.check(ledger == totals["ledger"], "%s --json: the ledger differs" % name)
            cost = sum(value[3] for value in totals["ledger"].values())
            self.check(round(report.get("billed_usd", -1) * 1e6) == cost,
                       "%s --json: billed_usd" % name)
        status = json.loads(self.swerve("status", self.suite, "--json") or '{"suites": [{}]}')
        status = status["suites"][0]
        self.check(status.get("done") == self.options.jobs - len(self.dead) and
                   status.get("dead") == len(self.dead) and status.get("rollouts") == total,
                   "status --json: %s" % status)

    def check_replays(self, ids):
        chosen = self.random.sample(ids, min(self.options.replays, len(ids)))
        same = 0
        for outcome in chosen:
            answer = json.loads(self.swerve("replay", str(outcome), "--json") or "{}")
            same += answer.get("identical") == 1 and answer.get("different") == 0
        self.check(same == len(chosen), "%d of %d replays differ" % (len(chosen) - same,
                                                                     len(chosen)))
        self.say("%d of %d replays identical; %d jobs given up, because %d workers or more were killed"
                 " under each" % (same, len(chosen), len(self.dead), LOST_MAX))

    def check_again(self, totals):
        """The same command once more finds everything done and changes nothing, or does what was
        given up."""
        done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=self.log, timeout=600)
        self.check(done.returncode == 0, "once more: exit status %d" % done.returncode)
        if self.dead:
            return
        self.database = self.connect()
        self.check(self.totals() == totals, "running the same command again changed the store")
        self.database.close()


class Acknowledged(threading.Thread):
    """Submits batches of jobs that nobody claims, and remembers those that were acknowledged."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.keys = []
        self.unanswered = 0
        self.ending = threading.Event()

    def job(self, number):
        return {"key": "key-%d" % number, "suite_id": "acknowledged", "scenario_id": "none",
                "scenario_hash": "", "planner": "builtin:reference", "planner_hash": "a" * 64,
                "pool": "nobody", "tier": "object", "model_hash": "", "sampler": "",
                "backend": "cpu", "revision": "b" * 64, "seed": number, "priority": 0,
                "rollout_count": 1, "attempts_max": 3, "parent_job_id": 0, "prefix_key": "",
                "audit_key": ""}

    def run(self):
        number = 0
        while not self.ending.wait(0.02):
            batch = [self.job(number + i) for i in range(5)]
            number += len(batch)
            try:
                code, _ = call(self.port, "POST", "/v1/suites/acknowledged/jobs", {"jobs": batch})
            except (OSError, http.client.HTTPException):
                self.unanswered += 1
                continue
            if code == 200:
                self.keys += [job["key"] for job in batch]


def call(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": "application/json"} if body is not None else {})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


class FleetSoak(Soak):
    """A server, and workers that know nothing but its URL."""

    def __init__(self, options, directory):
        super().__init__(options, directory)
        self.port = 0
        self.workers = {}  # pid: process
        self.mutex = threading.Lock()
        self.server_kills = 0
        self.ended_jobs = 0  # as last seen

    def start_server(self):
        server = subprocess.Popen(
            [self.options.binary, "serve", "--store", self.store, "--listen",
             "127.0.0.1:%d" % self.port], stdout=subprocess.PIPE, stderr=self.log)
        line = server.stdout.readline().decode().strip()
        if not line:
            raise RuntimeError("swerve serve: exit status %d" % server.wait())
        self.port = int(line.rpartition(":")[2])
        return server

    def start_worker(self):
        worker = subprocess.Popen(
            [self.options.binary, "worker", "--store", "http://127.0.0.1:%d" % self.port, "--pool",
             "bulk", "--slots", "4", "--with-parent", "--id", os.path.basename(self.directory)],
            stderr=self.log)
        with self.mutex:
            self.workers[worker.pid] = worker

    def killable(self):
        """Those who are up and about: a process that has not begun its main is no test."""
        with self.mutex:
            return [pid for pid, worker in self.workers.items() if worker.poll() is None]

    def replace_workers(self):
        with self.mutex:
            gone = [pid for pid, worker in self.workers.items() if worker.poll() is not None]
            for pid in gone:
                code = self.workers.pop(pid).returncode
                if code != -signal.SIGKILL:
                    self.check(False, "a worker ended by itself: exit status %d" % code)
        for _ in gone:
            self.start_worker()

    def ended(self):
        try:
            _, text = call(self.port, "GET", "/v1/suites")
            names = [name for name in json.loads(text)["suites"] if name.startswith("soak-")]
            if not names:
                return 0
            code, text = call(self.port, "GET", "/v1/suites/" + names[0])
        except (OSError, http.client.HTTPException):
            return 0
        jobs = json.loads(text)["jobs"] if code == 200 else {}
        return sum(jobs.get(state, 0) for state in STATES[2:])

    def calm(self):
        return self.ended_jobs >= self.options.calm * self.options.jobs

    def finish_server(self, server):
        server.send_signal(signal.SIGTERM)
        self.check(server.wait(60) == 0, "swerve serve: exit status %d" % server.returncode)

    def run(self):
        server = self.start_server()
        self.killer = Killer(
            self.killable, Moments(self.options.kill_ms / 1000, self.options.kill_jobs),
            self.options.seed, lambda: self.ended_jobs)
        self.acknowledged = Acknowledged(self.port)
        self.acknowledged.start()
        submit = subprocess.Popen(
            [self.options.binary, "submit", self.suite_path, "--store",
             "http://127.0.0.1:%d" % self.port, "--planner", self.options.planner],
            stdout=subprocess.DEVNULL, stderr=self.log)
        for _ in range(self.options.workers):
            self.start_worker()
        self.killer.start()
        moments = Moments(self.options.server_kill_s, self.options.server_kill_jobs)
        look_s = 0.1 if self.options.kill_jobs or self.options.server_kill_jobs else 0.5
        looked_s = shown_s = 0.0
        while self.ended_jobs < self.options.jobs:
            now_s = time.monotonic()
            self.replace_workers()
            if moments.due(self.ended_jobs) and not self.calm():
                server.kill()
                server.wait()
                self.server_kills += 1
                server = self.start_server()
                moments.wait(self.ended_jobs)
            if now_s - looked_s > look_s:
                looked_s = now_s
                self.ended_jobs = max(self.ended_jobs, self.ended())
                if self.calm():
                    self.killer.ending.set()
            if now_s - shown_s > 10:
                shown_s = now_s
                self.say("%d of %d jobs ended, %d kills of workers, %d of the server" % (
                    self.ended_jobs, self.options.jobs, self.killer.kills, self.server_kills))
            if now_s - self.start_s > self.options.limit_s:
                self.check(False, "not done after %d s" % self.options.limit_s)
                break
            time.sleep(0.02)
        self.wall_s = time.monotonic() - self.start_s
        self.killer.ending.set()
        self.killer.join()
        self.check(submit.wait(60) == 0, "swerve submit: exit status %d" % submit.returncode)
        self.acknowledged.ending.set()
        self.acknowledged.join()
        self.stop_workers()
        self.finish_server(server)
        self.check(self.server_kills > 0, "the jobs ended before the server was killed")
        self.say("done: %.0f jobs/s, %d kills of workers, %d of the server" % (
            self.options.jobs / self.wall_s, self.killer.kills, self.server_kills))
        self.check_acknowledged()

    def stop_workers(self):
        with self.mutex:
            for worker in self.workers.values():
                if worker.poll() is None:
                    worker.terminate()
            for worker in self.workers.values():
                code = worker.wait(60)
                # SIGTERM: it had only just been started, and had no handler yet.
                self.check(code in (0, -signal.SIGKILL, -signal.SIGTERM),
                           "a worker: exit status %d" % code)

    def check_acknowledged(self):
        """Then nobody wants these jobs any more."""
        database = self.connect()
        there = {row[0] for row in database.execute(
            "SELECT key FROM job_specs WHERE suite IN"
            " (SELECT id FROM suites WHERE name = 'acknowledged')")}
        database.close()
        missing = set(self.acknowledged.keys) - there
        self.check(not missing, "%d acknowledged jobs are lost, first %s" % (
            len(missing), sorted(missing)[:1]))
        self.check(len(self.acknowledged.keys) > 0, "no submission was acknowledged")
        self.say("%d jobs acknowledged beside it, all there; %d batches unanswered" % (
            len(self.acknowledged.keys), self.acknowledged.unanswered))
        self.swerve("cancel", "acknowledged")


def main(fleet=FleetSoak, also=lambda parser: None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    also(parser)
    parser.add_argument("--mode", choices=("fleet", "run"), default="fleet")
    parser.add_argument("--jobs", type=int, default=20000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--server-kill-s", type=float, default=5,
                        help="fleet: period of the kills of the server")
    parser.add_argument("--kill-ms", type=int, default=200, help="period of the kills of workers")
    parser.add_argument("--kill-jobs", type=int, default=0,
                        help="fleet: kill a worker whenever so many more jobs have ended, whatever the time")
    parser.add_argument("--server-kill-jobs", type=int, default=0, help="fleet: likewise the server")
    parser.add_argument("--kills-of-run", type=int, default=2, help="mode run")
    parser.add_argument("--calm", type=float, default=1,
                        help="fleet: kill until this share of the jobs has ended (1)")
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen by chance")
    parser.add_argument("--planner", default="builtin:reference")
    parser.add_argument("--limit-s", type=int, default=3600, help="give up after this")
    parser.add_argument("--audit", metavar="DIR", help="only audit what an earlier run has kept")
    parser.add_argument("--keep", action="store_true", help="keep the directory with the store")
    parser.add_argument("--binary", default=os.path.join(TOP, "build", "worker", "swerve"))
    options = parser.parse_args()
    if not os.access(options.binary, os.X_OK):
        parser.error("%s: no such program; build first or name it with --binary" % options.binary)
    directory = options.audit or tempfile.mkdtemp(prefix="swerve-soak-")
    options.keep = options.keep or options.audit is not None
    fleet_mode = options.mode == "fleet"
    of_workers = ("%d jobs" % options.kill_jobs if fleet_mode and options.kill_jobs else
                  "%d ms" % options.kill_ms)
    of_whom = ("swerve run killed %d times" % options.kills_of_run if not fleet_mode else
               "server killed every %d jobs" % options.server_kill_jobs if options.server_kill_jobs
               else "server killed every %g s" % options.server_kill_s)
    print("%d jobs, %d workers, one killed every %s, %s; seed %d; %s" % (
        options.jobs, options.workers, of_workers, of_whom, options.seed, directory), flush=True)
    soak = (fleet if fleet_mode else Soak)(options, directory)
    try:
        soak.begin()
        if options.audit is None:
            soak.run()
        soak.audit()
    finally:
        soak.log.close()
        with open(os.path.join(directory, "stderr.log"), errors="replace") as file:
            lines = re.sub(r"worker \S+ is gone; \d+ of", "worker .. is gone; some of",
                           file.read()).splitlines()
        for line in sorted(set(lines))[:20]:
            print("    stderr  %d times: %s" % (lines.count(line), line))
        if options.keep or soak.problems:
            print("kept: " + directory)
        else:
            shutil.rmtree(directory)
    verdict = "soak FAILED" if soak.problems else "soak passed"
    if options.audit is not None:
        print("%s: audit of %d jobs, %d problems" % (verdict, options.jobs, len(soak.problems)))
    else:
        print("%s: %d jobs in %.1f s, %d kills of workers, %d of %s, %d problems" % (
            verdict, options.jobs, soak.wall_s, soak.killer.kills,
            *((soak.server_kills, "the server") if fleet_mode else
              (options.kills_of_run, "swerve run")), len(soak.problems)))
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
