#!/usr/bin/env python3
"""Edits one value of a finished store at a time and asks `swerve check` whether it notices.

usage: edit_store.py SWERVE STORE SEED [ROWS [TABLE]]

Every column of every table (or of TABLE) is tried, in ROWS rows of each (1), so that a column that is added later
is tried as well. What need not be noticed is listed below with the reason.
"""
import json, os, random, shutil, sqlite3, subprocess, sys

# Values that are not noticed where they could have been stored, and why. Others of these columns must be: whether a
# value could have been is said by a function of (row, value), the row with all its columns. Of jobs that took their
# result over from another (memo_of), only what ties them to it is looked at; of jobs without outcomes, only what cannot
# be.
def text(least, most):
    return lambda row, value: value is None or least <= len(value.encode()) <= most


def number(least, most):
    return lambda row, value: least <= value <= most


def reported(most):  # of a job that was claimed; what a lost attempt was charged is compared
    return lambda row, value: 0 <= value <= most and row["epoch"] > 0 and row["id"] not in lost


def idle(row, value):
    return row["id"] not in busy


UNNOTICED = {
    "suites.weight": ("a wish about the future", number(1, 100)),
    "suites.class": ("likewise", number(1, 3)),
    "suites.budget_uusd": ("likewise, where it has not cost as much", number(0, 10**15)),
    "suite_progress.wall_ns": ("how fast jobs went, for estimates", number(0, 2**63 - 1)),
    "workers.id": ("of a worker that nothing refers to", idle),
    "workers.name": ("who did it; no figure depends on it", text(1, 63)),
    "workers.pool": ("of a worker that ended no attempt", idle),
    "workers.device": ("likewise", idle),
    "workers.holder": ("which token may speak for a worker; the next claims show it", text(0, 63)),
    "workers.host": ("which machine; compared where a planner did not start there", text(0, 63)),
    "workers.token": ("likewise", text(0, 63)),
    "workers.openings": ("how long a worker is waited for", number(0, 1000000)),
    "jobs.claimed_ns": ("when it was claimed, if its attempt has not ended; bills to come are held against it",
                        lambda row, value: row["id"] in running and value >= 1),
    "attempts.claimed_ns": ("of an attempt that its job has left behind",
                            lambda row, value: (row["job"], row["epoch"]) not in latest and value >= 1),
    "tenants.version": ("how often its settings were changed", lambda row, value: value >= 1),
    "workers.claim_id": ("its claims go on above it", lambda row, value: value >= claims.get(row["id"], 0)),
    "jobs.claim_id": ("which of the worker's claims leased it; used while the job runs",
                      lambda row, value: 0 <= value <= last_claims.get(row["worker"], 0)),
    "contexts.driven": ("another context of its planner says the same",
                        lambda row, value: value in (0, 1) and planners[row["planner"], row["planner_hash"]] > 1),
    "job_specs.asked_key": ("a question's earlier key, by which it is found again", lambda row, value:
                            value is None or len(value.encode()) == 64 and row["job"] in following),
    "jobs.progress_ns": ("used while a job runs, and then replaced by its attempt's", reported(10**15)),
    "jobs.progress_mm": ("likewise", reported(10**13)),
    "jobs.progress_mflop": ("likewise", reported(10**15)),
    "jobs.progress_ticks": ("how far a job has come, for estimates", reported(10**12)),
    "pool_jobs.state": ("of a count of no jobs", lambda row, value: row["jobs"] == 0),
    "prices.pool": ("prices of attempts to come; each attempt keeps its own", text(0, 63)),
    "prices.device": ("likewise", text(1, 63)),
    "prices.price_uusd_per_hour": ("likewise", number(0, 10**12)),
    "attempts.error": ("what a planner or a worker wrote", text(1, 2047)),
    "audit_log.id": ("in which order calls came", lambda row, value: True),
    "audit_log.at_s": ("what a server wrote of a call: nothing else keeps it", lambda row, value: True),
    "audit_log.name": ("likewise", lambda row, value: True),
    "audit_log.role": ("likewise", lambda row, value: True),
    "audit_log.action": ("likewise", lambda row, value: True),
    "audit_log.subject": ("likewise", lambda row, value: True),
    "audit_log.code": ("likewise", lambda row, value: True),
    "job_specs.escalation": ("who answers if it is flagged: another teacher's context of the same planner",
                             lambda row, value: value is None),
    "job_specs.route_reason": ("why its tier answers, told and never used", number(0, 12)),
    "job_specs.route_own": ("likewise", number(0, 2**63 - 1)),
    "job_specs.route_other": ("likewise", number(0, 2**63 - 1)),
    "jobs.evaluates": ("what a submitter asked of a student", lambda row, value: value in (0, 1)),
    "log_losses.id": ("in which order they were found", lambda row, value: True),
    "log_losses.frames": ("what an opening found: nothing else keeps it", lambda row, value: value >= row["commits"]),
    "log_losses.commits": ("likewise", lambda row, value: row["frames"] >= value >= row["lost"]),
}
# Of jobs without outcomes, and of contexts of such jobs alone: what they will be is said by their outcomes.
UNNOTICED_UNANSWERED = {"jobs.priority", "jobs.follows", "job_specs.key", "job_specs.scenario_id", "job_specs.seed",
                        "job_specs.attempts_max", "job_specs.parent_job", "job_specs.context", "jobs.prefix",
                        "contexts.model_hash", "contexts.sampler", "contexts.backend", "contexts.revision"}
UNNOTICED_TAKEN_OVER = {"jobs.priority", "jobs.follows", "jobs.pool", "jobs.prefix", "job_specs.scenario_id",
                        "job_specs.context", "job_specs.attempts_max", "job_specs.parent_job"}

# A sanitizer looks at what reads a store: every sixth column, where no table is named.
INSTRUMENTED = any(word in open(sys.argv[1], "rb").read() for word in (b"__asan_init", b"__tsan_init"))
COLUMNS_STEP = 6 if INSTRUMENTED and len(sys.argv) <= 5 else 1

swerve, store, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
rows_per_column = int(sys.argv[4]) if len(sys.argv) > 4 else 1
rng = random.Random(seed)
copy = "edited.db"
if not os.path.exists(copy + ".artifacts"):
    shutil.copytree(store + ".artifacts", copy + ".artifacts")


def edited(value, kind):
    """Another value of the same kind, or of the column's where there was none."""
    if value is None:
        return {"INTEGER": rng.randrange(1 << 20, 1 << 30), "REAL": 0.5, "TEXT": "edited", "BLOB": b"edited"}[kind]
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, value + (1 << 32), -value - 3])
    if isinstance(value, float):
        return 0.25 if value in (float("inf"), 0.25) else rng.choice([value + 0.125, value * 1.0000001 + 1e-9, None])
    if isinstance(value, bytes):
        at = rng.randrange(len(value))
        return value[:at] + bytes([value[at] ^ 1 << rng.randrange(8)]) + value[at + 1:]
    if len(value) == 64 and all(c in "0123456789abcdef" for c in value):
        return value[:-1] + ("1" if value[-1] == "0" else "0")
    return rng.choice([value + "x", value[:-1]]) if value else "x"


def noticed():
    run = subprocess.run([swerve, "check", "--store", copy, "--json"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    if run.returncode == 0:
        return None
    assert run.returncode == 4, (run.returncode, run.stderr)
    if not run.stdout:
        return [run.stderr.strip()]
    return [f["place"] + " " + f["text"] for f in json.loads(run.stdout)["findings"] if f["severity"] == "fault"]


source = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
tables = [t for t, in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
tables = [t for t in tables if t in sys.argv[5:] or len(sys.argv) <= 5]
taken_over = {job for job, in source.execute("SELECT id FROM jobs WHERE memo_of IS NOT NULL")}
answered = {
    "contexts": {c for c, in source.execute(
        "SELECT context FROM outcomes UNION SELECT s.context FROM outcomes o JOIN job_specs s ON s.job = o.job")},
    "jobs": {job for job, in source.execute("SELECT job FROM outcomes")} | taken_over,
}
answered["job_specs"] = answered["jobs"]
lost = {job for job, in source.execute("SELECT j.id FROM jobs j JOIN attempts a ON a.job = j.id AND a.epoch = j.epoch"
                                       " WHERE a.ending = 4")}
running = {job for job, in source.execute("SELECT id FROM jobs WHERE state = 1")}
latest = {(job, epoch) for job, epoch in source.execute("SELECT id, epoch FROM jobs")}
following = {job for job, in source.execute("SELECT id FROM jobs WHERE follows = 1")}
busy = {worker for worker, in source.execute("SELECT worker FROM attempts UNION SELECT worker FROM jobs"
                                             " UNION SELECT worker FROM unstarted")}
claims = dict(source.execute("SELECT worker, MAX(claim_id) FROM jobs WHERE worker IS NOT NULL GROUP BY worker"))
last_claims = dict(source.execute("SELECT id, claim_id FROM workers"))
planners = {(planner, digest): n for planner, digest, n in source.execute(
    "SELECT planner, planner_hash, COUNT(*) FROM contexts GROUP BY 1, 2")}
tried = caught = 0
slipped = []
for table in tables:
    columns = source.execute(f"PRAGMA table_info({table})").fetchall()
    count, = source.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    keys = [c[1] for c in columns if c[5]]
    for _, column, kind, *_ in columns[tables.index(table) % COLUMNS_STEP::COLUMNS_STEP]:
        for _ in range(rows_per_column if count else 0):
            at = rng.randrange(count)
            row = source.execute(f"SELECT {', '.join(keys)}, {column} FROM {table} LIMIT 1 OFFSET {at}").fetchone()
            value = edited(row[-1], kind)
            shutil.copyfile(store, copy)
            for rest in ("-wal", "-shm"):
                if os.path.exists(copy + rest):
                    os.remove(copy + rest)
            db = sqlite3.connect(copy)
            db.execute("PRAGMA ignore_check_constraints = ON")
            try:
                db.execute(f"UPDATE {table} SET {column} = ? WHERE " + " AND ".join(f"{k} = ?" for k in keys),
                           (value, *row[:-1]))
            except sqlite3.IntegrityError:
                db.close()
                continue  # the file itself refuses it
            db.commit()
            db.close()
            tried += 1
            name = f"{table}.{column}"
            found = noticed()
            caught += found is not None
            whole = dict(zip([c[1] for c in columns], source.execute(f"SELECT * FROM {table} WHERE " + " AND ".join(
                f"{k} = ?" for k in keys), row[:-1]).fetchone()))
            excused = name in UNNOTICED and UNNOTICED[name][1](whole, value)
            excused |= name in UNNOTICED_UNANSWERED and row[0] not in answered[table]
            if found is None and not excused and not (name in UNNOTICED_TAKEN_OVER and row[0] in taken_over):
                slipped.append(f"{table}.{column} of {dict(zip(keys, row))}: {row[-1]!r:.80} -> {value!r:.80}")
print(f"{caught} noticed of {tried} edits of {sum(len(source.execute(f'PRAGMA table_info({t})').fetchall()) for t in tables)} columns")
for line in slipped:
    print("not noticed:", line)
sys.exit(bool(slipped))
