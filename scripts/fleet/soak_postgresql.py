#!/usr/bin/env python3
"""The fleet's soak (../soak.py) on a PostgreSQL server of its own, which is killed too.

Beside workers and `swerve serve`, the database's server is killed (-9) every --postgresql-kill-s
seconds, or whenever --postgresql-kill-jobs more jobs have ended, and started again, with fsync on. The audit asks the database through psql. It needs Debian's
package postgresql, and as root its user; everything is in temporary directories.
"""

import glob
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import soak  # noqa: E402

START_S_MAX = 120


class Database:
    """Stand-in for the sqlite3 connection of the audit: psql answers. Rows come as JSON, members in order."""

    def __init__(self, url):
        self.url = url

    def execute(self, sql):
        # Semicolons are none of the audit's.
        done = subprocess.run(["psql", "-XqAt", self.url, "-v", "ON_ERROR_STOP=1", "-c",
                               "SELECT row_to_json(q) FROM (%s) q" % sql],
                              stdout=subprocess.PIPE, check=True, timeout=600)
        self.found = [json.loads(line, object_pairs_hook=lambda pairs: tuple(v for _, v in pairs))
                      for line in done.stdout.splitlines()]
        return self

    def fetchall(self):
        return self.found

    def __iter__(self):
        return iter(self.found)

    def close(self):
        pass


class Server:
    """A cluster in a directory of its own, whose server can be killed."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="swerve-pgsoak-")
        self.programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not self.programs:
            raise SystemExit("soak_postgresql: no initdb; install Debian's package postgresql")
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        self.url = "postgresql://swerve@/postgres?host=" + self.directory
        self.log = open(os.path.join(self.directory, "log"), "ab")
        self.spawn("initdb", "-A", "trust", "-U", "swerve", "-E", "UTF8", "--locale=C").wait()
        self.process = None
        self.start()

    def spawn(self, name, *words):
        identity = {} if self.user is None else {"user": self.user.pw_uid, "group": self.user.pw_gid}
        return subprocess.Popen(
            [os.path.join(os.path.dirname(self.programs[-1]), name), "-D",
             os.path.join(self.directory, "data"), *words],
            stdout=self.log, stderr=self.log, start_new_session=True, **identity)

    def start(self):
        until_s = time.monotonic() + START_S_MAX
        while subprocess.run(["psql", "-XqAt", self.url, "-c", "SELECT 1"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=60).returncode != 0:
            if time.monotonic() > until_s:
                raise RuntimeError("PostgreSQL does not start: see %s/log" % self.directory)
            # A new server refuses to start while processes of a killed one are still there.
            if self.process is None or self.process.poll() is not None:
                self.process = self.spawn("postgres", "-c", "listen_addresses=", "-c",
                                          "unix_socket_directories=" + self.directory, "-c",
                                          "dynamic_shared_memory_type=mmap", "-c", "fsync=on")
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def remove(self):
        self.kill()
        self.log.close()
        time.sleep(1)  # its processes see that it is gone
        shutil.rmtree(self.directory, ignore_errors=True)


class PostgresSoak(soak.FleetSoak):
    def __init__(self, options, directory):
        if options.audit is not None or options.mode != "fleet":
            raise SystemExit("soak_postgresql: a fleet alone, and no later audit")
        super().__init__(options, directory)
        self.site = Server()
        self.store = "%s&artifacts=%s" % (self.site.url, directory)
        self.artifacts = os.path.join(directory, "swerve.artifacts")
        self.command[self.command.index("--store") + 1] = self.store
        self.ending = threading.Event()
        self.database_kills = 0

    def connect(self):
        return Database(self.site.url)

    def check_database(self):
        left = self.rows("SELECT conname FROM pg_constraint WHERE NOT convalidated")
        self.check(left == [], "constraints that do not hold: %s" % left)

    def start_server(self):
        until_s = time.monotonic() + START_S_MAX
        while True:  # the database may be away
            try:
                return super().start_server()
            except RuntimeError:
                if time.monotonic() > until_s:
                    raise

    def ended(self):
        try:
            return super().ended()
        except (KeyError, ValueError):  # 503: the database is away
            return 0

    def kill_database(self):
        moments = soak.Moments(self.options.postgresql_kill_s, self.options.postgresql_kill_jobs)
        while not self.ending.wait(0.05):
            if moments.due(self.ended_jobs) and not self.calm():
                self.site.kill()
                self.database_kills += 1
                self.site.start()
                moments.wait(self.ended_jobs)

    def run(self):
        killer = threading.Thread(target=self.kill_database, daemon=True)
        killer.start()
        try:
            super().run()
        finally:
            self.ending.set()
            killer.join()
        self.check(self.database_kills > 0, "the jobs ended before PostgreSQL was killed")
        self.say("%d kills of PostgreSQL" % self.database_kills)

    def audit(self):
        try:
            super().audit()
        finally:
            if self.problems:
                print("kept: " + self.site.directory)
                self.site.kill()
            else:
                self.site.remove()


def options_of(parser):
    parser.add_argument("--postgresql-kill-s", type=float, default=30,
                        help="period of the kills of PostgreSQL")
    parser.add_argument("--postgresql-kill-jobs", type=int, default=0,
                        help="kill it whenever so many more jobs have ended, whatever the time")


if __name__ == "__main__":
    sys.exit(soak.main(PostgresSoak, options_of))
