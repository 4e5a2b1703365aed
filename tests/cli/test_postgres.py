#!/usr/bin/env python3
"""Goal: commands on a store in PostgreSQL do what they do on a file where the site does what sites do: rows are held by
somebody's transaction, all connections are ended, the server is stopped for a while. Method: a server of the test's own; psql
as the somebody.

Usage: test_postgres.py SWERVE SOURCE_ROOT
"""
import glob
import json
import os
import pathlib
import pwd
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
SMOKE = str(ROOT / "scenarios/smoke.json")


ROAD = """{"id": "road", "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [500, 0]], "width_m": 3.5,
 "speed_limit_mps": 15}]}, "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 9, "route": ["east"]}, "horizon_s": 1}"""
BYTES = """
import os, sys
import swerve_planner
class Mine(swerve_planner.Planner):
    def act(self, observation):
        os.write(2, b"half \\xc3 of a character\\xff\\n")
        raise ValueError("as planned")
swerve_planner.run(Mine)
"""


class Site:
    """A server with one database, in a directory of its own."""

    def __init__(self, directory):
        self.programs = os.path.dirname(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1])
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self.directory = directory
        self.url = "postgresql://swerve@/postgres?host=" + directory
        if self.user:
            os.chown(directory, self.user.pw_uid, self.user.pw_gid)
        self.program("initdb", "-A", "trust", "-U", "swerve", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def program(self, name, *words):
        how = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}
        subprocess.run([f"{self.programs}/{name}", "-D", self.directory + "/data", *words], check=True, timeout=100,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/", **how)

    def start(self):
        self.program("pg_ctl", "-w", "-l", self.directory + "/log", "-o",
                     f"-c listen_addresses= -c unix_socket_directories={self.directory} -c fsync=off", "start")

    def stop(self, how):
        self.program("pg_ctl", "-w", "-m", how, "stop")

    def begin(self, sql):
        return subprocess.Popen([self.programs + "/psql", "-qAt", "-d", self.url, "-c", sql], stdout=subprocess.DEVNULL)

    def ask(self, sql, database="postgres"):
        return subprocess.run([self.programs + "/psql", "-qAt", "-d", self.url.replace("/postgres?", f"/{database}?"), "-c", sql], check=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()

    def store(self, schema):
        """URL of a store in a schema of its own."""
        self.ask(f"CREATE SCHEMA {schema}")
        return f"{self.url}&options=-csearch_path%3D{schema}&artifacts={self.directory}"


class Pooler:
    """Stands between clients and a server as pgbouncer does: each transaction of a client, or its session, gets the process of
    the server that was given back last."""

    def __init__(self, site, schema, mode):
        self.site, self.schema, self.mode, self.free = site, schema, mode, []
        self.lock = threading.Lock()
        self.listening = socket.create_server(("127.0.0.1", 0))
        port = self.listening.getsockname()[1]
        self.url = f"postgresql://swerve@127.0.0.1:{port}/postgres?sslmode=disable&artifacts={site.directory}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listening.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    @staticmethod
    def read(end, count):
        data = b""
        while len(data) < count:
            more = end.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def message(self, end):
        kind = self.read(end, 1)
        length = self.read(end, 4)
        return kind, kind + length + self.read(end, struct.unpack("!I", length)[0] - 4)

    def take(self):
        with self.lock:
            if self.free:
                return self.free.pop()
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.site.directory + "/.s.PGSQL.5432")
        words = b"".join(word.encode() + b"\0" for word in ("user", "swerve", "database", "postgres", "options",
                                                           f"-csearch_path={self.schema}", "application_name", "pooler"))
        server.sendall(struct.pack("!II", len(words) + 9, 196608) + words + b"\0")
        while self.message(server)[0] != b"Z":
            pass
        return server

    def give(self, server):
        with self.lock:
            self.free.append(server)

    def serve(self, client):
        self.read(client, struct.unpack("!I", self.read(client, 4))[0] - 4)
        greeting = struct.pack("!cII", b"R", 8, 0)
        for name, value in (("server_version", "15.0"), ("client_encoding", "UTF8"), ("standard_conforming_strings", "on")):
            text = name.encode() + b"\0" + value.encode() + b"\0"
            greeting += struct.pack("!cI", b"S", len(text) + 4) + text
        client.sendall(greeting + struct.pack("!cIII", b"K", 12, 7, 7) + b"Z\0\0\0\5I")
        server = None
        try:
            while True:
                kind, data = self.message(client)
                if kind == b"X":
                    break
                server = server or self.take()
                server.sendall(data)
                if kind not in (b"Q", b"S"):
                    continue
                while kind != b"Z":
                    kind, data = self.message(server)
                    client.sendall(data)
                if data[-1:] == b"I" and self.mode == "transaction":
                    self.give(server)
                    server = None
        except (EOFError, OSError):
            pass
        client.close()


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
    assert done.returncode == code, (words, done)
    return done


def jobs(site, schema, state):
    return int(site.ask(f"SELECT COUNT(*) FROM {schema}.jobs WHERE state = {state}"))


def await_true(what):
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def a_drain_waits_for_rows_that_others_hold(site):
    store = site.store("held")
    swerve("submit", SMOKE, "--world", "object", "--store", store)
    queued = jobs(site, "held", 0)
    assert queued >= 8, queued
    holder = site.begin("BEGIN; SELECT id FROM held.jobs FOR UPDATE; SELECT pg_sleep(3); COMMIT")
    await_true(lambda: site.ask("SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3)%' AND"
                                " wait_event = 'PgSleep'") == "1")
    swerve("worker", "--pool", "bulk", "--drain", "--store", store)
    assert jobs(site, "held", 2) == queued, jobs(site, "held", 2)
    assert holder.wait(timeout=60) == 0


def a_run_outlives_its_connections(site):
    store = site.store("ended")
    with open("run.json", "w") as out, open("run.err", "w") as err:
        run = subprocess.Popen([SWERVE, "run", SMOKE, "--world", "object", "--seeds", "6", "--workers", "2", "--json", "--store",
                                store], stdout=out, stderr=err)
        for _ in range(25):
            if run.poll() is not None:
                break
            site.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'swerve%'")
            time.sleep(0.1)
        if run.poll() is None:
            site.stop("fast")
            time.sleep(1)  # what it is to outlive
            site.start()
        assert run.wait(timeout=150) == 0, pathlib.Path("run.err").read_text()
    assert jobs(site, "ended", 2) >= 48 and jobs(site, "ended", 0) + jobs(site, "ended", 1) + jobs(site, "ended", 4) == 0
    assert json.loads(pathlib.Path("run.json").read_text())


def a_pooler_of_transactions_is_refused(site):
    store = site.store("pooled")
    swerve("submit", SMOKE, "--world", "object", "--store", store)
    said = swerve("status", "--store", Pooler(site, "pooled", "transaction").url, code=2).stderr
    assert "pooler" in said and "pool_mode = session" in said, said
    swerve("status", "--store", Pooler(site, "pooled", "session").url)


DAMAGE = [  # a kind of finding, and what brings it about where the server enforces nothing
    ("counter", "UPDATE suites SET jobs_done = jobs_done + 1"),
    ("counter", "UPDATE pool_jobs SET jobs = jobs + 1"),
    ("digest", "UPDATE outcomes SET score = 0.25 WHERE id = 1"),
    ("suite digest", "UPDATE suites SET outcomes_digest = decode(repeat('00', 32), 'hex')"),
    ("missing", "DELETE FROM outcomes WHERE id = 2"),
    ("outcome", "UPDATE outcomes SET verdict = 3 WHERE id = 1"),
    ("money", "UPDATE attempts SET cost_uusd = cost_uusd + 1000000 WHERE job = 1"),
    ("money", "DELETE FROM accounts"),
    ("ledger", "UPDATE ledger SET device_ns = device_ns + 1"),
    ("ledger", "DELETE FROM ledger_totals"),
    ("spec", "DELETE FROM job_specs WHERE job = 1"),
    ("spec", "UPDATE jobs SET audit = 1 WHERE id = 1"),
    ("state", "UPDATE jobs SET epoch = 0 WHERE id = 1"),
    ("attempt", "DELETE FROM attempts WHERE job = 1"),
    ("text", "UPDATE suites SET name = ''"),
    ("scenario", "UPDATE scenarios SET body = body || convert_to(' ', 'UTF8') WHERE id = 1"),
    ("scenario", "UPDATE scenarios SET ticks = ticks + 1 WHERE id = 1"),
    ("worker", "UPDATE jobs SET claim_id = claim_id + 100 WHERE id = 1"),
    ("progress", "UPDATE jobs SET progress_ns = -1 WHERE id = 1"),
    ("driven", "UPDATE contexts SET driven = 0"),
    ("reference", "UPDATE outcomes SET context = 999 WHERE id = 1"),
    ("reference", "ALTER TABLE attempts ADD CONSTRAINT loose FOREIGN KEY (job) REFERENCES jobs (id) NOT VALID"),
    ("artifact", "UPDATE outcomes SET artifact_hash = 'none' WHERE id = 1"),
    ("unreadable", "ALTER TABLE log_losses DROP COLUMN lost"),
    ("model", "INSERT INTO model_events (id, model, kind, from_state, to_state, canary_percent, forced, jobs_moved, passed,"
              " expires_s, against, report_hash, actor, evidence, at_s, digest, after_outcome)"
              " VALUES (1, 7, 0, 0, 0, 0, 0, 0, 0, 0, '', '', '', '', 0, '', 0)"),
    ("unstarted", "INSERT INTO unstarted (planner, planner_hash, host, driven, suite, worker, error)"
                  " VALUES ('p', 'h', 'x', 0, 1, 99, '')"),
]


def check(store, code=0):
    return json.loads(swerve("check", "--json", "--store", store, code=code).stdout)


def damage_is_found(site):
    site.ask("CREATE DATABASE whole")
    store = site.url.replace("/postgres?", "/whole?")
    swerve("run", SMOKE, "--world", "object", "--workers", "2", "--store", store + "&artifacts=" + site.directory)
    whole = check(store)
    assert whole["faults"] == 0 and whole["jobs"] >= 8 and whole["outcomes"] >= 8 and whole["artifacts"] > 0, whole
    for number, (kind, sql) in enumerate(DAMAGE):
        site.ask(f"CREATE DATABASE d{number} TEMPLATE whole")
        site.ask("SET session_replication_role = replica; " + sql, f"d{number}")
        found = check(site.url.replace("/postgres?", f"/d{number}?"), code=4)
        kinds = {one["kind"] for one in found["findings"] if one["severity"] == "fault"}
        assert kind in kinds, (kind, sql, found["findings"])
        assert kind == "unreadable" or "unreadable" not in kinds, (sql, found["findings"])
        assert found["outcomes"] >= whole["outcomes"] - 1, (sql, found)  # it went on behind what it found
    name = site.ask("SELECT artifact_hash FROM outcomes WHERE id = 1", "whole")
    gone = pathlib.Path(site.directory, "swerve.artifacts", name[:2], name + ".zst")
    gone.rename(gone.with_suffix(".kept"))
    found = check(store, code=4)
    assert [one["kind"] for one in found["findings"] if one["severity"] == "fault"] == ["artifact"], found
    gone.with_suffix(".kept").rename(gone)
    assert check(store)["digest"] == whole["digest"]


def a_restored_copy_is_checked(site):
    store = site.url.replace("/postgres?", "/whole?")
    site.ask("CREATE DATABASE again")
    subprocess.run(f"{site.programs}/pg_dump -d '{store}' | {site.programs}/psql -qAt -v ON_ERROR_STOP=1 -d"
                   f" '{store.replace('/whole?', '/again?')}'", shell=True, check=True, timeout=100,
                   stdout=subprocess.DEVNULL)
    again = check(store.replace("/whole?", "/again?"))
    assert again["faults"] == 0 and again["digest"] == check(store)["digest"], again
    swerve("status", "--store", store.replace("/whole?", "/again?"))


def a_check_reads_beside_workers(site):
    store = site.url.replace("/postgres?", "/whole?")
    run = subprocess.Popen([SWERVE, "run", SMOKE, "--world", "object", "--seeds", "6", "--fresh", "--workers", "2", "--store",
                            store], stdout=subprocess.DEVNULL)
    checks = 0
    while run.poll() is None or checks == 0:
        assert check(store)["faults"] == 0
        checks += 1
    assert run.wait() == 0


def bytes_that_are_no_text_end_no_worker(site):
    """Output of planners is kept, "?" in place of what PostgreSQL does not take."""
    store = site.store("bytes")
    pathlib.Path("road.json").write_text(ROAD)
    shutil.copy(ROOT / "scripts/swerve_planner.py", ".")
    pathlib.Path("bytes.py").write_text(BYTES)
    swerve("run", "road.json", "--world", "object", "--workers", "1", "--store", store, "--planner", "exec:python3 -S bytes.py",
           "--planner-path", ".", code=6)
    errors = site.ask("SELECT error FROM bytes.outcomes")
    assert "half ? of a character?" in errors and "as planned" in errors, errors


def main():
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        print("1..0 # SKIP no PostgreSQL server is installed (scripts/setup test)")
        return 1 if os.environ.get("CI") else 0
    directory = tempfile.mkdtemp(prefix="swerve-pg-", dir="/tmp")
    os.chmod(directory, 0o755)
    os.makedirs(directory + "/work")
    site = Site(directory)
    os.chdir(directory + "/work")
    try:
        return tap.run([a_drain_waits_for_rows_that_others_hold, a_run_outlives_its_connections,
                        a_pooler_of_transactions_is_refused, damage_is_found, a_restored_copy_is_checked,
                        a_check_reads_beside_workers, bytes_that_are_no_text_end_no_worker], site)
    finally:
        os.chdir("/")
        site.stop("immediate")
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
