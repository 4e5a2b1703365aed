#!/usr/bin/env python3
"""Goal: a command that asks or orders makes nothing where there is no store, whatever it is called; an address without
its scheme is no path, to any command; a path with a colon is one.
Method: each command that `swerve help` lists, in an empty folder, which stays empty; a command that is new has to be
put into the lists here.

Usage: test_reads.py SWERVE
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ASK = ["status", "status demo", "status --json", "demand", "demand --json", "fleet slurm", "report", "report demo", "show 1", "show --all",
       "capacity", "agreement", "export --format csv", "export 1 --format mcap -o drive.mcap", "export --format junit -o report.xml",
       "avoid", "futures", "risk --exposure risk.json", "retry", "retry demo --verdict fail", "cancel demo", "check", "store backup copy",
       "store gc", "store log", "replay 1", "replay --all", "debug 1", "rig draw swerve --outcome 1", "price ls", "price show bulk cpu",
       "tenant ls", "dossier demo", "traceability demo", "trust ls", "trust floor --rate 0.1 --evidence why",
       "trust thaw 1 --force --evidence why", "model watch student", "model report mine", "model evaluate mine", "golden ls", "golden verify mine", "golden expire mine", "model ls", "model show mine",
       "model retrain --work w --trainer true", "model promote mine", "model rollback student", "compare demo other", "baseline show", "baseline set mine", "baseline compare mine", "baseline rm mine", "tag add mine", "tag rm mine", "worker --drain", "plan --miles-per-day 1 --suite demo --rates"]
MAKE = ["run demo", "submit demo", "worker", "serve --listen 127.0.0.1:0", "token add me --role read", "token ls", "search demo --budget 490",
        "price set bulk cpu 1", "tenant set us --weight 2", "golden make demo --name mine", "model add weights.swv --name mine", "store restore copy"]
NEITHER = {"correlate", "controls", "coverage", "draw", "validate", "scenario", "session", "alpasim", "import", "datagen", "world", "bench", "doctor"}


def swerve(words, store, left=()):
    """Exit code and what was said, of a command that leaves the folder as it was."""
    option = [] if store is None else [store] if words.endswith("--rates") else ["--store", store]
    done = subprocess.run([SWERVE, *words.split(), *option], capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    found = sorted(str(path) for path in pathlib.Path(".").rglob("*"))
    assert found == sorted(left), f"{words} --store {store} made {found}"
    return done.returncode, done.stderr


def every_command_is_in_a_list():
    text = subprocess.run([SWERVE, "help"], capture_output=True, text=True, check=True).stdout
    listed = {line.split()[0] for line in text.splitlines()[1:]}
    known = {words.split()[0] for words in ASK + MAKE} | NEITHER
    assert listed == known, listed ^ known


def asking_makes_nothing():
    for words in ASK:
        for store in ("missing.db", "no/folder/missing.db"):
            code, said = swerve(words, store)
            assert code == 4 and store in said, (words, store, code, said)
        if not words.startswith(("dossier", "traceability", "compare", "model", "plan")):  # which have no usual store
            code, said = swerve(words, None)
            assert code == 4 and "swerve.db" in said, (words, code, said)


def an_empty_file_is_no_store():
    pathlib.Path("empty.db").touch()
    try:
        for words in ASK:
            code, said = swerve(words, "empty.db", ["empty.db"])
            assert code == 4 and "empty" in said, (words, code, said)
    finally:
        os.remove("empty.db")


def an_address_without_its_scheme_is_said():
    for words in ASK + MAKE:
        code, said = swerve(words, "localhost:8080")
        assert code == 2 and "http://localhost:8080" in said, (words, code, said)
    for words in ("status", "submit demo", "store gc"):
        for store, right in [("[::1]:80/", "http://[::1]:80/"), ("http:server", "http://server"),
                             ("postgresql:/server/db", "postgresql://server/db"), ("ftp://server/x", 'scheme "ftp"')]:
            code, said = swerve(words, store)
            assert code == 2 and right in said, (words, store, code, said)


def a_path_may_have_colons():
    for name in ("here:80", "a:b.db", "2026-11-28T10:00:00.db"):
        subprocess.run([SWERVE, "submit", "smoke", "--store", f"./{name}"], check=True, env=ENVIRONMENT, capture_output=True)
        for words in ("status", "check", "export --format csv"):
            done = subprocess.run([SWERVE, *words.split(), "--store", name], env=ENVIRONMENT, capture_output=True, text=True)
            assert done.returncode == 0, (words, name, done.stderr)


ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("SWERVE_")}
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    failed = tap.run([every_command_is_in_a_list, asking_makes_nothing, an_empty_file_is_no_store, an_address_without_its_scheme_is_said,
                      a_path_may_have_colons])
    os.chdir("/")
sys.exit(failed > 0)
