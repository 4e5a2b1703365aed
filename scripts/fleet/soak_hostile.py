#!/usr/bin/env python3
"""A soak beside hostile workers: 5% of the attempts lie, die, double, delay, or bill falsely.

A server with tokens, honest workers of one token, and a program that holds another worker token and
speaks the API itself. It claims jobs like any worker, and then

  question   completes them as another planner, model, tier, scenario, seed or revision
  verdict    reports a verdict that nobody drove: the one lie that only a replay finds
  double     reports that twice, and once more with another verdict
  bill       bills a million seconds, or 10^15 million operations
  successor  flags them and names pool, model and key of the job that is to follow
  poison     leaves partial outcomes of unknown branches and of others' artifacts, and says gone
  partial    leaves false partial outcomes, and says gone
  delay      reports long after its lease has ended
  die        is never heard of again
  foreign    reads, completes and hands back jobs that others hold

When every job has ended, the store is read: each outcome is an answer to its job's question; each
false verdict is under the hostile token; no bill is above the time that its attempt had; `swerve
check` finds nothing; a sampled replay finds false outcomes. Then the token is taken back, one
command drops what it reported, honest workers drive that and what it had killed again, and nothing
false is left.

Prints what it did; exit status 0 when everything held, else 1. Needs --jobs (20000) and --share
(0.05) and what ../soak.py takes.
"""

import hashlib
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import soak  # noqa: E402

LIES = ("question", "verdict", "verdict", "verdict", "double", "bill", "successor", "poison", "partial",
        "delay", "die", "foreign")
QUESTION = ("planner", "planner_hash", "tier", "pool", "model_hash", "sampler", "backend", "revision",
            "scenario_id", "scenario_hash", "seed")
BILL_SLACK_NS = 2 * 10**9  # the store's, and what a call takes
LEASE_S = 15


class Api:
    """Calls with a token over one connection."""

    def __init__(self, port, token):
        self.port = port
        self.headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self.connection = None

    def call(self, method, path, body=None, raw=None):
        """(status, answer); (0, None): nobody answered."""
        data = raw if raw is not None else json.dumps(body) if body is not None else None
        for _ in range(2):  # once more where an idle connection was closed
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                headers = dict(self.headers)
                if raw is not None:
                    headers["Content-Type"] = "application/octet-stream"
                self.connection.request(method, path, data, headers)
                reply = self.connection.getresponse()
                text = reply.read()
                return reply.status, json.loads(text) if text[:1] in (b"{", b"[") else text
            except (OSError, http.client.HTTPException):
                self.connection = None
        return 0, None


class Hostile(threading.Thread):
    def __init__(self, fleet, token, name):
        super().__init__(daemon=True)
        self.fleet = fleet
        self.api = Api(fleet.port, token)
        self.reader = Api(fleet.port, fleet.secrets["admin"])
        self.name = name
        self.random = random.Random(fleet.options.seed + hash(name) % 1000)
        self.ending = threading.Event()
        self.lives = 0
        self.late = []  # (time, completion, claimed at)

    def be_born(self):
        self.lives += 1
        self.worker = "%s-%d" % (self.name, self.lives)
        self.claim_id = 1

    # ---- what it says ----

    def outcome(self, spec, branch, **changed):
        trace = "%064x" % self.random.getrandbits(256)
        self.fleet.false_traces.add(trace)
        found = self.fleet.template(self.reader, spec, branch)
        found.update(trace_hash=trace, artifact_hash=self.fleet.artifact, branch_id=branch, verdict="pass",
                     reasons=[], health_check="")
        found.update(changed)
        return found

    def completion(self, lease, kind, **changed):
        done = {"job_id": lease["job_id"], "epoch": lease["epoch"], "worker_id": self.worker, "kind": kind,
                "device_ns": 10**6, "metres_mm": 1000, "mflop": 0, "artifact_hash": "", "escalate_pool": "",
                "escalate_tier": "replay", "escalate_model_hash": "", "escalate_sampler": "", "escalate_key": "",
                "error": "", "outcomes": []}
        done.update(changed)
        return done

    def branches(self, spec):
        return self.fleet.branches[spec["scenario_id"]]

    def send(self, completion, claimed_s):
        """Remembers how long the attempt had at most. Returns the status of HTTP and of the element."""
        code, answer = self.api.call("POST", "/v1/completions", {"completions": [completion]})
        key = (completion["job_id"], completion["epoch"])
        with self.fleet.mutex:
            self.fleet.held_ns[key] = int((time.monotonic() - claimed_s) * 1e9)
            self.fleet.answers[code] = self.fleet.answers.get(code, 0) + 1
            if code == 400:
                self.fleet.refused.add(answer["error"]["text"][:200])
        return code, answer["results"][0]["status"] if code == 200 else None

    def false_result(self, lease, **changed):
        return self.completion(lease, "done", outcomes=[
            self.outcome(lease["spec"], branch, **changed) for branch in self.branches(lease["spec"])])

    # ---- what it does ----

    def must_fail(self, what, code, status):
        self.fleet.check(code != 200 or status != "ok", "%s: answered %d, %s" % (what, code, status))

    def question(self, lease, claimed_s):
        member = self.random.choice(QUESTION)
        spec = lease["spec"]
        other = {"seed": spec["seed"] + 1, "tier": "teacher"}.get(member, "exec:rival"[:10])
        code, status = self.send(self.false_result(lease, **{member: other}), claimed_s)
        self.must_fail("another %s" % member, code, status)
        self.release(lease, claimed_s)

    def release(self, lease, claimed_s):
        self.send(self.completion(lease, "released"), claimed_s)

    def verdict(self, lease, claimed_s):
        code, _ = self.send(self.false_result(lease), claimed_s)
        if code != 200:  # beside what it had left behind before: who lives on would hold the job for ever
            self.release(lease, claimed_s)

    def double(self, lease, claimed_s):
        first = self.false_result(lease)
        self.send(first, claimed_s)
        code, _ = self.send(first, claimed_s)
        if code != 200:
            self.release(lease, claimed_s)
        second = self.false_result(lease)
        for outcome in second["outcomes"]:
            outcome.update(verdict="fail", reasons=["ttc"])
        self.send(second, claimed_s)

    def bill(self, lease, claimed_s):
        kind = self.random.choice(("failed", "released"))  # to fail uses up attempts, until the redrive
        if self.random.random() < 0.5:
            self.send(self.completion(lease, kind, device_ns=10**15, metres_mm=10**13), claimed_s)
        else:
            self.send(self.completion(lease, kind, mflop=10**15), claimed_s)
            self.release(lease, claimed_s)

    def successor(self, lease, claimed_s):
        spec = lease["spec"]
        outcomes = [self.outcome(spec, "", verdict="flagged", health_check="mass", health_tick=1, health_value=9.0,
                                 health_threshold=3.0)]
        code, status = self.send(self.completion(
            lease, "flagged", outcomes=outcomes, escalate_pool="bulk", escalate_tier="object",
            escalate_key="%064x" % self.random.getrandbits(256)), claimed_s)
        self.must_fail("a successor of its own", code, status)
        self.release(lease, claimed_s)

    def gone(self):
        self.api.call("POST", "/v1/workers/%s/gone" % self.worker, {})
        self.be_born()

    def poison(self, lease, claimed_s):
        spec = lease["spec"]
        wrong = self.random.choice(({"branch_id": "no_such"}, {"artifact_hash": "0" * 64}, {"seed": spec["seed"] + 1}))
        outcome = self.outcome(spec, "")
        outcome.update(wrong)
        code, status = self.send(self.completion(lease, "partial", outcomes=[outcome]), claimed_s)
        self.must_fail("a poisoned partial outcome", code, status)
        self.gone()

    def partial(self, lease, claimed_s):
        self.send(self.completion(lease, "partial", outcomes=[
            self.outcome(lease["spec"], branch) for branch in self.branches(lease["spec"])]), claimed_s)
        self.gone()

    def delay(self, lease, claimed_s):
        self.late.append((claimed_s + 2 * LEASE_S, self.false_result(lease), claimed_s))
        self.be_born()

    def die(self, lease, claimed_s):
        self.be_born()

    def foreign(self, lease, claimed_s):
        other = lease["job_id"] + self.random.randint(1, 50)
        for path in ("/v1/jobs/%d" % other, "/v1/jobs/%d/partials?max=10" % other):
            code, _ = self.api.call("GET", path)
            self.fleet.check(code in (0, 403, 404) or (code == 200 and other in self.fleet.hostile_jobs),
                             "%s: answered %d" % (path, code))
        for kind in ("done", "released", "failed"):
            false = self.completion(dict(lease, job_id=other, epoch=1), kind)
            if kind == "done":
                false["outcomes"] = [self.outcome(lease["spec"], "")]
            self.send(false, claimed_s)
        self.release(lease, claimed_s)

    def send_late(self):
        now_s = time.monotonic()
        for entry in [e for e in self.late if e[0] <= now_s]:
            self.late.remove(entry)
            self.send(entry[1], entry[2])

    def run(self):
        self.be_born()
        while not self.ending.is_set():
            self.send_late()
            if self.fleet.hostile_leases >= self.fleet.options.share * (self.fleet.ended_jobs + 500):
                time.sleep(0.02)
                continue
            claimed_s = time.monotonic()
            code, answer = self.api.call("POST", "/v1/workers/%s/claim" % self.worker, {
                "pool": "bulk", "device": "cpu", "max": 4, "wait_ms": 0, "claim_id": self.claim_id})
            if code != 200:
                time.sleep(0.05)
                continue
            self.claim_id = answer["next_claim_id"]
            with self.fleet.mutex:
                self.fleet.hostile_leases += len(answer["leases"])
                self.fleet.hostile_jobs.update(lease["job_id"] for lease in answer["leases"])
            for lease in answer["leases"]:
                lie = self.random.choice(LIES)
                with self.fleet.mutex:
                    self.fleet.lies[lie] = self.fleet.lies.get(lie, 0) + 1
                getattr(self, lie)(lease, claimed_s)
            if not answer["leases"]:
                time.sleep(0.05)


class HostileSoak(soak.FleetSoak):
    dead_endings = "3, 4, 5"  # .. or lost and reported too late

    def __init__(self, options, directory):
        super().__init__(options, directory)
        self.tokens = os.path.join(directory, "tokens")
        self.false_traces = set()
        self.held_ns = {}
        self.answers = {}
        self.refused = set()  # first sentences of 400s
        self.lies = {}
        self.hostile_jobs = set()
        self.hostile_leases = 0
        self.templates = {}
        self.artifact = ""
        self.secrets = {name: self.make_token(name, *role) for name, role in (
            ("admin", ("admin",)), ("submitter", ("submit",)), ("honest", ("worker", "--pool", "bulk")),
            ("rogue", ("worker", "--pool", "bulk")))}

    def make_token(self, name, *role):
        path = os.path.join(self.directory, name + ".token")
        subprocess.run([self.options.binary, "token", "add", name, "--role", *role, "--tokens", self.tokens,
                        "--output", path], check=True, stdout=subprocess.DEVNULL)
        with open(path) as file:
            return file.read().strip()

    def environment(self, name):
        return dict(os.environ, SWERVE_TOKEN_FILE=os.path.join(self.directory, name + ".token"))

    def token_id(self, name):
        done = subprocess.run([self.options.binary, "token", "ls", "--json", "--tokens", self.tokens], check=True,
                              stdout=subprocess.PIPE)
        return next(token["id"] for token in json.loads(done.stdout)["tokens"] if token["name"] == name)

    # ---- the parts of a fleet ----

    def start_server(self):
        server = subprocess.Popen(
            [self.options.binary, "serve", "--store", self.store, "--tokens", self.tokens, "--listen",
             "127.0.0.1:%d" % self.port], stdout=subprocess.PIPE, stderr=self.log)
        line = server.stdout.readline().decode().strip()
        if not line:
            raise RuntimeError("swerve serve: exit status %d" % server.wait())
        self.port = int(line.rpartition(":")[2])
        return server

    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def start_worker(self, *more):
        worker = subprocess.Popen(
            [self.options.binary, "worker", "--store", self.url(), "--pool", "bulk", "--slots", "4",
             "--with-parent", "--id", os.path.basename(self.directory), *more], stderr=self.log,
            env=self.environment("honest"))
        with self.mutex:
            self.workers[worker.pid] = worker
        return worker

    def ended(self):
        code, answer = self.admin.call("GET", "/v1/suites/" + self.suite)
        jobs = answer["jobs"] if code == 200 else {}
        return sum(jobs.get(state, 0) for state in soak.STATES[2:])

    def template(self, api, spec, branch):
        """An outcome of the scenario as honest workers report it, with this job's question."""
        key = (spec["scenario_id"], branch)
        with self.mutex:
            if key not in self.templates:
                code, answer = api.call("GET", "/v1/outcomes?suite=%s&scenario=%s&limit=50" % (
                    self.suite, spec["scenario_id"]))
                for outcome in answer["outcomes"] if code == 200 else []:
                    self.templates.setdefault((spec["scenario_id"], outcome["branch_id"]), outcome)
            found = dict(self.templates.get(key) or next(iter(self.templates.values())))
        for name in QUESTION:
            found[name] = spec[name]
        return found

    def submit(self):
        done = subprocess.run(
            [self.options.binary, "submit", self.suite_path, "--store", self.url(), "--planner",
             self.options.planner, "--json"], stdout=subprocess.PIPE, stderr=self.log,
            env=self.environment("submitter"))
        self.check(done.returncode == 0, "swerve submit: exit status %d" % done.returncode)
        self.suite = json.loads(done.stdout)["suite"]

    def run(self):
        server = self.start_server()
        self.admin = Api(self.port, self.secrets["admin"])
        self.submit()
        for _ in range(self.options.workers):
            self.start_worker()
        while self.ended() < min(200, self.options.jobs // 10):  # templates of what is honest
            time.sleep(0.05)
        code, answer = self.admin.call("GET", "/v1/outcomes?suite=%s&limit=1" % self.suite)
        self.artifact = answer["outcomes"][0]["artifact_hash"]
        self.hostiles = [Hostile(self, self.secrets["rogue"], "rogue-%d" % i) for i in range(2)]
        for hostile in self.hostiles:
            hostile.start()
        shown_s = 0.0
        while self.ended_jobs < self.options.jobs:
            self.ended_jobs = self.ended()
            if time.monotonic() - shown_s > 10:
                shown_s = time.monotonic()
                self.say("%d of %d jobs ended, %d hostile leases" % (
                    self.ended_jobs, self.options.jobs, self.hostile_leases))
            if time.monotonic() - self.start_s > self.options.limit_s:
                self.check(False, "not done after %d s" % self.options.limit_s)
                break
            time.sleep(0.1)
        self.wall_s = time.monotonic() - self.start_s
        for hostile in self.hostiles:
            hostile.ending.set()
        for hostile in self.hostiles:
            hostile.join()
        self.say("done: %.0f jobs/s, %d hostile leases: %s; answers %s" % (
            self.options.jobs / self.wall_s, self.hostile_leases,
            ", ".join("%d %s" % (self.lies[lie], lie) for lie in sorted(self.lies)), self.answers))
        for sentence in sorted(self.refused)[:10]:
            self.say("refused: " + sentence)
        self.look()
        self.mend()
        self.stop_workers()
        self.finish_server(server)
        self.killer = type("Killer", (), {"kills": 0})()

    # ---- what came of it ----

    def swerve(self, *arguments, codes=(0,)):
        """As an administrator, by the server where there is one."""
        if self.port == 0:
            return super().swerve(*arguments, codes=codes)
        done = subprocess.run([self.options.binary, *arguments, "--store", self.url()], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=3600, env=self.environment("admin"))
        self.check(done.returncode in codes, "swerve %s: exit status %d: %s" % (
            " ".join(arguments), done.returncode, done.stderr.decode(errors="replace")[-500:]))
        return done.stdout

    def false_outcomes(self):
        return [(outcome, trace, holder) for outcome, trace, holder in self.rows(
            "SELECT o.id, o.trace_hash, w.token FROM outcomes o JOIN jobs j ON j.id = o.job"
            " JOIN workers w ON w.id = j.worker") if trace in self.false_traces]

    def look(self):
        self.database = self.connect()
        rogue = self.token_id("rogue")
        false = self.false_outcomes()
        self.check(all(holder == rogue for _, _, holder in false), "a false outcome is not its author's")
        self.none("an outcome answers its job's question",
                  "SELECT o.id FROM outcomes o JOIN job_specs s ON s.job = o.job WHERE o.context <> s.context"
                  " OR o.scenario_id IS NOT NULL OR o.scenario_hash IS NOT NULL OR o.seed IS NOT NULL")
        self.none("nobody made a job", "SELECT s.job FROM job_specs s WHERE s.parent_job IS NOT NULL")
        bills = self.rows("SELECT a.job, a.epoch, a.device_ns FROM attempts a JOIN workers w ON w.id = a.worker"
                          " WHERE w.token = '%s'" % rogue)
        above = [row for row in bills if (row[0], row[1]) in self.held_ns and
                 row[2] > self.held_ns[row[0], row[1]] + BILL_SLACK_NS]
        self.check(not above, "%d bills above the time of their attempts, first %s" % (len(above), above[:1]))
        total = self.rows("SELECT COUNT(*) FROM outcomes")[0][0]
        self.database.close()
        found = subprocess.run([self.options.binary, "check", "--store", self.store], stdout=self.log,
                               stderr=self.log)
        self.check(found.returncode == 0, "swerve check: exit status %d" % found.returncode)
        share = self.options.sample
        answer = json.loads(self.swerve("replay", "--all", "--sample", str(share), "--json", codes=(0, 1)) or "{}")
        expected = share * len(false)
        self.say("%d of %d outcomes are false verdicts, all under the hostile token; a replay of %g%% found %d,"
                 " %.1f expected" % (len(false), total, 100 * share, answer.get("different", -1), expected))
        self.check(abs(answer.get("different", -1) - expected) <= 5 * max(expected, 1) ** 0.5,
                   "the sample found %s of %d" % (answer.get("different"), len(false)))

    def mend(self):
        rogue = self.token_id("rogue")
        subprocess.run([self.options.binary, "token", "revoke", "rogue", "--tokens", self.tokens], check=True,
                       stdout=subprocess.DEVNULL)
        answer = json.loads(self.swerve("store", "redrive", "--token", rogue, "--json") or "{}")
        deadline_s = time.monotonic() + self.options.limit_s
        while self.ended() < self.options.jobs and time.monotonic() < deadline_s:
            time.sleep(0.1)
        self.database = self.connect()
        false = self.false_outcomes()
        self.check(not false, "%d false outcomes are left" % len(false))
        self.none("what the hostile token failed or lost counts in no dead job",
                  "SELECT j.id FROM jobs j JOIN attempts a ON a.job = j.id JOIN workers w ON w.id = a.worker"
                  " WHERE j.state = 4 AND a.ending IN (2, 4, 5) AND w.token = '%s'" % rogue)
        self.database.close()
        self.say("one command dropped the outcomes of %s jobs; they were driven again, %d false ones are left" % (
            answer.get("jobs"), len(false)))

    def audit(self):
        self.port = 0
        self.check_processes()
        self.database = self.connect()
        self.check_database()
        self.check_jobs()
        self.check_outcomes()
        self.check_attempts()
        self.check_money()
        self.check_artifacts()
        ids = [row[0] for row in self.database.execute("SELECT id FROM outcomes ORDER BY id")]
        self.database.close()
        self.swerve("check")
        self.check_replays(ids)


def also(parser):
    parser.add_argument("--share", type=float, default=0.05, help="of attempts that are hostile")
    parser.add_argument("--sample", type=float, default=0.02, help="of outcomes that are replayed")


if __name__ == "__main__":
    sys.exit(soak.main(HostileSoak, also))
