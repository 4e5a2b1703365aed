#!/usr/bin/env python3
"""Goal: the fleet on paper is the product of what it says, and the simulated day is the same for the same seed and near the
closed form. Method: the arithmetic again, from the figures that it prints; days of two seeds; a day with nothing that goes
wrong, in which each job ends and the ledger has each tick once.

Usage: test_plan.py SWERVE SOURCE_ROOT
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
MIX = {"format": "swerve-plan/1", "shares": {"object": 0.8, "student": 0.2}, "tick_ms": {"student": 350, "teacher": 3000},
       "audit_rate": 0.05, "flag_rate": 0.02, "failed_share": 0.01, "load_max": 0.7, "losses_per_hour": 0.05,
       "usd_per_hour": {"cpu": 0.04, "student": 2, "teacher": 2}}
QUIET = {**MIX, "audit_rate": 0, "flag_rate": 0, "failed_share": 0, "losses_per_hour": 0, "hours": [1] * 20 + [0] * 4}


def swerve(*words, code=0):
    done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert done.returncode == code, (words, done)
    return done


def plan(mix, *words, miles=20000):
    pathlib.Path("mix.json").write_text(json.dumps(mix))
    return json.loads(swerve("plan", "--miles-per-day", str(miles), "--suite", "all.json", "--mix", "mix.json", "--json", *words).stdout)


def near(a, b, share):
    return abs(a - b) <= share * max(abs(a), abs(b))


def cards_are_the_product():
    made = plan(MIX)
    ticks = 20000 * 1609.344 / 1.2  # 12 m/s at the start
    student = 0.2 * ticks
    teacher = student * (0.05 + 0.02)
    assert near(made["tiers"]["student"]["ticks"], student, 1e-9) and near(made["tiers"]["teacher"]["ticks"], teacher, 1e-9), made
    busy_s = {"student": student * 0.35 / 0.99, "teacher": teacher * 3 / 0.99}
    for pool, device_s in busy_s.items():
        assert near(made["pools"][pool]["device_s"], device_s, 1e-9), made
        assert made["pools"][pool]["cards"] == math.ceil(device_s / 86400 / 0.7), made
    assert near(sum(tier["miles"] for tier in made["tiers"].values()), 20000, 1e-9), made
    usd = sum(made["pools"][pool]["cards"] * 24 * MIX["usd_per_hour"][pool] for pool in made["pools"])
    assert near(made["usd_per_day"], usd, 1e-9) and near(made["usd_per_mile"], usd / 20000, 1e-9), made


def a_table_has_no_exponents():
    pathlib.Path("mix.json").write_text(json.dumps({**MIX, "tick_ms": {"student": 350, "teacher": 27900.4}}))
    table = swerve("plan", "--miles-per-day", "20000", "--suite", "all.json", "--mix", "mix.json").stdout
    assert re.search(r"^teacher .* 27900 p ", table, re.M) and not re.search(r"\de[+-]\d", table), table


def the_same_seed_gives_the_same_day():
    first, again, other = (plan({**MIX, "audit_rate": 0.3, "flag_rate": 0.3}, "--day", "--jobs", "150", "--seed", seed)["day"] for seed in ("5", "5", "6"))
    assert first == again, (first, again)
    assert first["digest"] != other["digest"]
    assert first["audits"] > 0 and first["flagged"] > 0, first


def a_quiet_day_is_the_closed_form():
    day = plan(QUIET, "--day", "--jobs", "300")["day"]
    assert day["jobs"] == 300, day
    assert sum(pool["jobs"] for pool in day["pools"].values()) == 300, day
    assert all(pool["queued"] == 0 and pool["losses"] == 0 and pool["attempts"] == pool["jobs"] for pool in day["pools"].values())
    student = day["pools"]["student"]
    assert near(student["usd_ledger"], student["busy_s"] / 3600 * 2, 1e-3), student
    # Of 300 jobs a fifth are the student's: four standard deviations of the draw.
    assert abs(student["jobs"] - 60) <= 4 * math.sqrt(300 * 0.2 * 0.8), student
    assert near(student["load"] / student["jobs"], student["load_planned"] / 60, 0.02), student


def what_goes_wrong_shows():
    calm = plan(QUIET, "--day", "--jobs", "150")["day"]
    hit = plan({**QUIET, "losses_per_hour": 2, "freeze": {"from_hour": 2, "hours": 6, "share": 1},
                "rollback": {"at_hour": 12, "hours": 4}}, "--day", "--jobs", "150")["day"]
    assert hit["frozen"] > 0 and hit["redriven"] > 0 and hit["jobs"] == calm["jobs"] + hit["redriven"], hit
    assert hit["pools"]["student"]["losses"] > 0, hit
    assert not list(pathlib.Path(os.environ["TMPDIR"]).iterdir())


def a_budget_ends_the_day():
    """Goal: the simulated day stops at its budget, by the store's own books. Method: the ledger of a day that is stopped halfway."""
    free = plan(QUIET, "--day", "--jobs", "400")["day"]
    usd = sum(pool["usd_ledger"] for pool in free["pools"].values())
    assert free["stopped_h"] is None and free["cancelled"] == 0
    part = plan(QUIET, "--day", "--jobs", "400", "--budget", f"{usd / 2 / free['fraction']:.6f}")["day"]
    spent = sum(pool["usd_ledger"] for pool in part["pools"].values())
    assert usd / 2 <= spent < 0.7 * usd and 0 < part["stopped_h"] < 24 and part["cancelled"] > 0, (usd, spent, part)
    rich = plan(QUIET, "--day", "--jobs", "400", "--budget", f"{2 * usd / free['fraction']:.6f}")["day"]
    assert rich["stopped_h"] is None and sum(pool["usd_ledger"] for pool in rich["pools"].values()) > 0.9 * usd, rich


def mistakes_are_told():
    base = ("plan", "--miles-per-day", "1000", "--suite", "all.json")
    assert "h100, h200" in swerve(*base, "--card", "a1", code=2).stderr
    assert "--suite" in swerve("plan", "--miles-per-day", "1000", code=2).stderr
    for mix, says in (({**MIX, "shares": {"object": 0.5}}, "sum 1"), ({"format": "x"}, "swerve-plan/1"),
                      ({**MIX, "hours": [0] * 24}, "submissions"), ({**MIX, "typo": 1}, "typo")):
        pathlib.Path("bad.json").write_text(json.dumps(mix))
        assert says in swerve(*base, "--mix", "bad.json", code=3).stderr, mix


def main():
    with tempfile.TemporaryDirectory(prefix="swerve_plan_") as folder:
        os.chdir(folder)
        os.mkdir("tmp")
        os.environ["TMPDIR"] = os.path.realpath("tmp")
        lane = {"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}
        ego = {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}
        pathlib.Path("road.json").write_text(json.dumps({"id": "road", "horizon_s": 20, "map": {"lanes": [lane]}, "ego": ego,
                                                         "agents": []}))
        pathlib.Path("all.json").write_text(json.dumps({"id": "plan", "scenarios": [{"file": "road.json"}]}))
        return tap.run([cards_are_the_product, a_table_has_no_exponents, the_same_seed_gives_the_same_day, a_quiet_day_is_the_closed_form,
                        what_goes_wrong_shows, a_budget_ends_the_day, mistakes_are_told])


if __name__ == "__main__":
    sys.exit(main())
