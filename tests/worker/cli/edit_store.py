#!/usr/bin/env python3
"""Edits one value of a finished store at a time and asks `swerve check` whether it notices.

usage: edit_store.py SWERVE STORE SEED [ROWS]

Every column of every table is tried, in ROWS rows of each (1), so that a column that is added later
is tried as well. What need not be noticed is listed below with the reason.
"""
import json, os, random, shutil, sqlite3, subprocess, sys

# Not noticed, and why. Of jobs that took their result over from another (memo_of), only what ties
# them to it is looked at; of jobs without outcomes, only what cannot be.
UNNOTICED = {
    "suites.weight": "a wish about the future",
    "suites.name": "of a suite that has no outcomes of its own",
    "workers.id": "of a worker that ended no attempt; else it is noticed",
    "workers.name": "who did it; no figure depends on it",
    "workers.pool": "likewise",
    "workers.device": "likewise; an attempt has its own, which chose its price",
    "contexts.driven": "spares a planner that works the blame of a host; the next completion sets it",
    "workers.holder": "which token may speak for a worker; the next claims show it",
    "workers.host": "which machine; used while planners cannot be started",
    "workers.openings": "how long a worker is waited for",
    "jobs.progress_ns": "used while a job runs, and then replaced by its attempt's",
    "jobs.progress_mm": "likewise",
    "jobs.progress_mflop": "likewise",
    "prices.pool": "prices of attempts to come; each attempt keeps its own",
    "prices.device": "likewise",
    "prices.price_uusd_per_hour": "likewise",
    "attempts.error": "what a planner or a worker wrote",
}
UNNOTICED_TAKEN_OVER = {"jobs.priority", "jobs.pool", "jobs.prefix", "job_specs.scenario_id",
                        "job_specs.context", "job_specs.attempts_max", "job_specs.parent_job"}

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
taken_over = {job for job, in source.execute("SELECT id FROM jobs WHERE memo_of IS NOT NULL")}
tried = caught = 0
slipped = []
for table in tables:
    columns = source.execute(f"PRAGMA table_info({table})").fetchall()
    count, = source.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    keys = [c[1] for c in columns if c[5]]
    for _, column, kind, *_ in columns:
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
            if found is None and name not in UNNOTICED and not (name in UNNOTICED_TAKEN_OVER and row[0] in taken_over):
                slipped.append(f"{table}.{column} of {dict(zip(keys, row))}: {row[-1]!r:.80} -> {value!r:.80}")
print(f"{caught} noticed of {tried} edits of {sum(len(source.execute(f'PRAGMA table_info({t})').fetchall()) for t in tables)} columns")
for line in slipped:
    print("not noticed:", line)
sys.exit(bool(slipped))
