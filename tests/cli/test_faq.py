#!/usr/bin/env python3
"""Goal: every message that docs/faq.md quotes is one that the program says, or that a user of it meets.
Method: faults are made, and what is printed is kept beside the texts of the sources; a quoted message is looked for in
both, `...` standing for anything within a line.

Usage: test_faq.py SWERVE SOURCE_ROOT
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
PAGE = (ROOT / "docs/faq.md").read_text()

SCENARIO = {"id": "drive", "horizon_s": 1,
            "map": {"lanes": [{"id": "east", "centre_line": [[0, 0], [2000, 0]], "width_m": 3.5, "speed_limit_mps": 15}]},
            "ego": {"pose": {"lane": "east", "s_m": 20}, "speed_mps": 12, "route": ["east"]}}
PLANNER = """
import sys, time
import swerve_planner
class Mine(swerve_planner.Planner):
    def act(self, observation):
        %s
        return 0.0, 0.0
swerve_planner.run(Mine)
"""
ACTS = {"sleeps": "time.sleep(0.4)", "raises": "raise ValueError('x')", "nan": "return float('nan'), 0.0",
        "huge": "return 99.0, 0.0", "stops": "breakpoint()", "grows": "self.big = bytearray(10**9)", "late": "import late_module",
        "good": "pass"}


def said():
    """Messages that a user who meets each fault reads."""
    printed = []

    def swerve(*words):
        done = subprocess.run([SWERVE, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        printed.append(done.stdout)

    def run(planner, *options, store="a.db", suite="drive.json"):
        swerve("run", suite, "--world", "object", "--workers", "1", "--store", store, "--planner", planner, *options)

    for name, act in ACTS.items():
        pathlib.Path(name + ".py").write_text(PLANNER % act)
        run(f"exec:python3 {name}.py", "--planner-deadline-ms", "200", "--planner-memory-mib", "512")
    printed.append(subprocess.run([sys.executable, "good.py"], stderr=subprocess.PIPE, text=True).stderr)
    for number in range(1, len(ACTS) + 1):
        swerve("show", str(number), "--store", "a.db", "--stderr")
    run("exec:python3 good.py")
    run("exec:python3 absent.py")
    run("exec:absent")
    pathlib.Path("hungry.py").write_text("big = bytearray(10**9)\n")
    run("exec:python3 hungry.py", "--planner-memory-mib", "512")
    swerve("submit", "drive.json", "--world", "object", "--store", "e.db", "--planner", "exec:python3 imports.py")
    pathlib.Path("late_module.py").write_text("# edited\n")
    swerve("worker", "--store", "e.db", "--pool", "bulk", "--drain")
    run("exec:sleep 5", "--planner-start-ms", "50")
    run("builtin:reference", suite="wrong.json")
    run("builtin:maintain", "--gate", suite="fails.json", store="b.db")
    swerve("status", "--store", "absent.db")
    shutil.rmtree("b.db.artifacts")
    swerve("show", "1", "--trace", "--store", "b.db")
    os.environ["SWERVE_MODELS"] = "/nonexistent"
    swerve("run", str(ROOT / "scenarios/demo.json"), "--store", "c.db")
    return "\n".join(printed)


def literals():
    """Texts of the sources, adjacent ones joined, what a conversion prints written as '...'."""
    texts = []
    files = [path for room in ("base", "schemas", "scenarios", "store", "report", "cli", "worker") for path in (ROOT / room).rglob("*.c")]
    for path in [*files, ROOT / "scripts/swerve_planner.py"]:
        text = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", path.read_text())
        for literal in re.findall(r'"((?:\\.|[^"\\\n])*)"', text):
            literal = literal.replace('\\"', '"').replace("%%", "%")
            texts.append(re.sub(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:ll|l|z|h)?[a-zA-Z]|\{[^{}]*\}|%$", "...", literal))
    return "\n".join(texts)


def main():
    quoted = [block.strip() for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.S | re.M)]
    with tempfile.TemporaryDirectory(prefix="swerve-faq-") as work:
        os.chdir(work)
        shutil.copy(ROOT / "scripts/swerve_planner.py", ".")
        pathlib.Path("late_module.py").write_text("")
        pathlib.Path("imports.py").write_text("import late_module\n" + PLANNER % "pass")
        pathlib.Path("drive.json").write_text(json.dumps(SCENARIO))
        pathlib.Path("wrong.json").write_text(json.dumps({**SCENARIO, "speed": 3}))
        wall = {"id": "wall", "kind": "car", "pose": {"lane": "east", "s_m": 40}, "behaviour": "static"}
        pathlib.Path("fails.json").write_text(json.dumps({**SCENARIO, "horizon_s": 4, "agents": [wall]}))
        texts = said()
        os.chdir("/")
    print(f"1..{len(quoted) + 2}")
    bad = 0
    produced = 0
    sources = literals()
    for number, message in enumerate(quoted, 1):
        pattern = ".*?".join(re.escape(part) for part in re.sub(r"\s+", " ", message).split("..."))
        met = re.search(pattern, re.sub(r"[ \t]+", " ", texts)) is not None
        produced += met
        good = met or re.search(pattern, sources) is not None
        bad += not good
        print(f"{'ok' if good else 'not ok'} {number} - {'met' if met else 'in the sources'}: {message[:90]}")
    enough = len(quoted) >= 20 and produced >= 19
    print(f"{'ok' if enough else 'not ok'} {len(quoted) + 1} - {produced} of {len(quoted)} messages were met")
    names = re.search(r"health_check_names\[HEALTH_CHECK_COUNT\] = \{(.*?)\}", (ROOT / "worker/models/health.c").read_text(), re.S).group(1)
    explained = re.findall(r'<a id="(\w+)"></a>`\1`', (ROOT / "docs/health.md").read_text())
    whole = sorted(explained) == sorted(set(re.findall(r'"(\w+)"', names)) - {"ok"})
    print(f"{'ok' if whole else 'not ok'} {len(quoted) + 2} - docs/health.md has each health check once")
    bad += not whole
    if bad or not enough:
        print("# " + texts[-6000:].replace("\n", "\n# "))
    sys.exit(1 if bad or not enough else 0)


main()
