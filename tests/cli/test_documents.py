#!/usr/bin/env python3
"""Goal: every command that a page shows works. Method: lines of shell are taken from the pages, in order, and run, each
page in a folder of its own that holds what pages speak of: stores, planners, the library of scenarios. Suites there have
the names of the shipped ones and a few of their scenarios. Placeholders get values; what cannot run here is listed below
with its reason, and printed. Commands that pages name within a sentence are held against `--help`: their options exist.

docs/faq.md has a test of its own (cli_faq), so have the blocks marked as `sh` (docs/tutorial.md, cli_tutorial);
docs/transcript.md is a recording.

Usage: test_documents.py SWERVE SOURCE_ROOT
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SWERVE = pathlib.Path(os.path.realpath(sys.argv[1]))
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
RECORDED = {"docs/faq.md", "docs/transcript.md"}


def pages(*patterns):
    return sorted({str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)} - RECORDED)


RUN = pages("README.md", "docs/*.md", "scenarios/*.md")
NAMED = pages("README.md", *(room + "/**/*.md" for room in ("docs", "scenarios", "schemas", "store", "worker", "engine", "kernels")))

NOT_RUN = [  # in which command, why
    (r"scripts/(demo|test|setup)\b", "installs packages; CI runs these by themselves"),
    (r"meson setup", "builds what is under test"),
    (r"meson test|build/tests/", "the tests of a build, which run these by themselves or take half an hour"),
    (r"scripts/foresight\.py|scripts/train/traffic\.py", "drives thousands of scenes, or trains on them; cli_correlate writes and measures few"),
    (r"soak_postgresql\.py", "takes minutes and a PostgreSQL server; store_postgres kills one of its own"),
    (r"export PATH", "the program of the test is on PATH"),
    (r"postgresql://", "needs a PostgreSQL server; tests/store/postgres has one"),
    (r"--tls-cert|https://store:", "a certificate that the test's folder lacks; cli_serve makes one"),
    (r"apt-get", "installs; packaging/try_tutorial does in a bare Debian"),
    (r"examples/policy\.py", "needs Pillow; cli_draw drives a planner with sensors of a rig"),
    (r"session serve|drives/wheel\.json", "somebody drives in between; tests/cli/test_session.py does"),
    (r"omnidreams:|swerve alpasim", "needs a server, or is one that goes on; worker_omnidreams and worker_alpasim have theirs"),
    (r"egodriver|carla-driver-interface|--store rf\.db", "needs a policy's server; scripts/compare/egodriver.py starts one"),
    (r"pip install|-m venv policy", "fetches packages; python/check installs the wheel"),
    (r"swerve trust (freeze|thaw)", "a student and a freeze that the test's folder lacks; cli_trust runs these"),
    (r"swerve model .*--store", "weights that the test's folder lacks; cli_model_store runs these"),
    (r"swerve (controls|import controls)|tinyphysics", "needs the model of the controls challenge, which is not shipped; cli_controls runs these"),
    (r"my_world\.py|onnx:|/mine\.so|/a\.so|my_world\.so", "a world of the reader's; worker_world drives the examples"),
    (r"store redrive --token", "a token that the test's folder lacks; store_conformance drops what workers reported"),
    (r"swerve golden|golden:longtail", "a world model at work takes minutes; worker_golden drives a plugin"),
    (r"py123d_log\.py|import womd scene\.json -o drive\.json", "needs py123d (PyPI) and its logs; cli_py123d makes and imports some"),
    (r" usdz |from-usdz|lanelet2_map\.py|swerve run scene\.json", "needs a scene of AlpaSim or a Lanelet2 map; cli_usdz makes some"),
    (r"--world student", "a world model at work takes minutes under a sanitizer; worker_learned_jobs drives it"),
]
CODES = [  # besides 0, and why
    (r"--gate-rate|--gate-slice|--fail-on-regression", {1}),  # bad planners miss gates
    (r"--failed-in", {2}),  # the newest suite of the test's folder is of other scenarios
    (r"swerve doctor", {5}),  # a build without world models
]
VALUES = [(r"\bSUITE\b", "scenarios/longtail.json"), (r"swerve run longtail\b", "swerve run scenarios/longtail.json"),
          (r"\bUSA_US101-4_1_T-1\.xml\b", "scene.xml"), (r"(swerve worker .*)", r"\1 --drain"),
          (r"(swerve plan .*) --suite longtail (.*--day)", r"\1 --suite scenarios/longtail.json \2 --jobs 200")]
SHELL = ("swerve", "python3", "curl", "scripts/", "pip", "meson", "export", "build/", "apt-get")

SMALL = {"longtail": ["ncap/ccrs.json", "urban/ball_then_child.json", "motorway/debris_couch.json"],
         "ncap": ["ncap/ccrs.json"], "demo": ["ncap/ccrs.json"], "urban": ["urban/ball_then_child.json"]}
MINE = {"docs/risk.md": "scenarios/exposure_us2004.json", "scenarios/traceability.md": "both.json"}  # what mine.json is there
STORES = {"jobs.db": "both.db", "mine.db": "both.db", "demo/demo.db": "both.db", "runs.db": "main.db", "tiers.db": "main.db"}


def commands(page):
    """(line number, command) of the blocks of shell; what a line says behind three spaces is prose or a further command."""
    found, fence, before, text = [], None, "", ""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:].strip()
            before = ""
            continue
        indented = fence is None and line.startswith("    ") and (before == "" or before.startswith("    "))
        before = line
        if not indented:
            continue
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        for piece in re.split(r"\s{3,}", text):
            words = re.sub(r"^(\w+=\S+ )+", "", piece)
            if words.startswith(SHELL) and not re.match(r"\w+ =", words):
                found.append((number, re.sub(r"\s+# .*", "", piece)))
        text = ""
    return found


def furnish(home):
    """The folder that pages are run in, as far as it is the same for all."""
    (home / "demo").mkdir()
    (home / "scripts").symlink_to(ROOT / "scripts")
    shutil.copytree(ROOT / "scenarios", home / "scenarios", ignore=shutil.ignore_patterns("*.c", "*.h", "import"))
    for name, files in SMALL.items():
        suite = {"id": name, "scenarios": [{"file": file} for file in files]}
        (home / f"scenarios/{name}.json").write_text(json.dumps(suite))
    planner = re.search(r"```python\n(import math.*?)```", (ROOT / "docs/start.md").read_text(), re.S).group(1)
    (home / "my_planner.py").write_text(planner)
    example = re.search(r"```json\n(.*?)```", (ROOT / "schemas/scenario.md").read_text(), re.S).group(1)
    (home / "scenarios/mine.json").write_text(example)
    policy = re.search(r"```json\n(.*?)```", (ROOT / "docs/fleet.md").read_text(), re.S).group(1)
    (home / "policy.json").write_text(policy)
    mix = re.search(r"```json\n(.*?)```", (ROOT / "docs/plan.md").read_text(), re.S).group(1)
    (home / "mix.json").write_text(mix)
    days = re.search(r'\{"format": "swerve-retention/1".*?\]\}', (ROOT / "docs/keeping.md").read_text(), re.S).group()
    (home / "retention.json").write_text(days)
    planners = ["builtin:reference", "exec:python3 my_planner.py"]
    (home / "both.json").write_text(json.dumps({"id": "both", "suites": ["scenarios/longtail.json"], "planners": planners}))
    shutil.copy(ROOT / "scenarios/traceability_register.json", home / "mine_register.json")


    shutil.copy(ROOT / "tests/scenarios/data/commonroad_2020a.xml", home / "scene.xml")
    shutil.copy(ROOT / "tests/scenarios/data/commonroad_2018b.xml", home / "peach.xml")
    shutil.copy(ROOT / "tests/fuzz/corpus/womd/scene.json", home / "tfrecord-00000-of-01000_4.json")


def call(command, home):
    env = {**os.environ, "PATH": f"{SWERVE.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "scripts")}
    env.pop("SWERVE_STORE", None)
    try:
        return subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=home, env=env, stdin=subprocess.DEVNULL, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, "no end within 100 s", (late.stdout or b"").decode())


def fill(home):
    """Stores with drives of two planners, of which one hits what it meets."""
    made = call("swerve run scenarios/longtail.json --world object --store main.db && cp main.db both.db && "
                "cp -r main.db.artifacts both.db.artifacts && swerve run both.json --world object --store both.db && "
                "swerve run scenarios/longtail.json --world object --store branch.db --planner 'exec:python3 my_planner.py' && "
                "swerve import commonroad peach.xml -o peach.json", home)
    assert made.returncode == 0, made.stdout
    for name, source in STORES.items():
        shutil.copy(home / source, home / name)
        shutil.copytree(home / (source + ".artifacts"), home / (name + ".artifacts"))
    shown = call("swerve show --all --store both.db", home).stdout
    outcomes = [json.loads(line) for line in shown.splitlines()]
    failed = [one for one in outcomes if one["verdict"] == "fail" and one["branch_id"] == "" and one["planner"].startswith("exec")]
    assert failed, "no drive fails"
    return failed[0]


class Server:
    """`swerve serve` of a page, on a port of the system's choice."""

    def __init__(self, command, home):
        env = {**os.environ, "PATH": f"{SWERVE.parent}:{os.environ['PATH']}"}
        self.process = subprocess.Popen(["bash", "-c", f"exec {command} --listen 127.0.0.1:0"], cwd=home, env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = ""
        self.url = None
        while self.url is None:
            line = self.process.stdout.readline()
            self.said += line
            found = re.search(r"http://127\.0\.0\.1:\d+(/#\w+)?", line)
            self.url = found.group() if found else None
            if not line:
                break

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.said += self.process.communicate(timeout=60)[0]
        return self.process.returncode


def results(page, template, failed):
    """(command as the page has it, None or a fault or why it is not run) of a page's commands."""
    done, server = [], None
    with tempfile.TemporaryDirectory(prefix="swerve-page-") as name:
        home = pathlib.Path(name, "page")
        shutil.copytree(template, home, symlinks=True, ignore=shutil.ignore_patterns("scenarios", "both.db*"))
        (home / "scenarios").symlink_to(template / "scenarios")
        if page in MINE:
            shutil.copy(home / MINE[page], home / "mine.json")
        if "127.0.0.1:8080" in (ROOT / page).read_text() and not any("serve" in shown for _, shown in commands(page)):
            server = Server("swerve serve --store jobs.db", home)
        for number, shown in commands(page):
            place = f"{page}:{number}: {shown}"
            reason = next((why for pattern, why in NOT_RUN if re.search(pattern, shown)), None)
            if reason is not None:
                done.append((place, "not run", reason))
                continue
            command = shown
            for pattern, value in [*VALUES, (r"\bID\b", failed["suite_id"]),
                                   (r"\b(show|debug|replay|export) \d+", rf"\1 {failed['id']}")]:
                command = re.sub(pattern, value, command)
            if command.startswith("swerve serve"):
                server = Server(command, home)
                done.append((place, None if server.url else "failed", server.said))
                server = server if server.url else None
                continue
            if server is not None:
                command = command.replace("http://127.0.0.1:8080", server.url)
            result = call(command, home)
            if "No module named 'numpy'" in result.stdout:
                done.append((place, "not run", "this Python has no numpy"))
                continue
            codes = {0}.union(*(more for pattern, more in CODES if re.search(pattern, command)))
            done.append((place, None if result.returncode in codes else "failed", f"{command}: {result.returncode}\n{result.stdout[-1500:]}"))
        if server is not None and server.stop() != 0:
            done.append((f"{page}: the server stops", "failed", server.said))
    return done


def program_of_sessions():
    """(place, fault or None): the program of docs/interactive.md drives the server that the page begins with, as printed but
    for the address, and what it saves is driven."""
    page = (ROOT / "docs/interactive.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    with tempfile.TemporaryDirectory(prefix="swerve-session-") as name:
        home = pathlib.Path(name)
        server = Server(commands("docs/interactive.md")[0][1], home)
        (home / "drive.py").write_text(program.replace("http://127.0.0.1:8090/#KEY", server.url or "no server"))
        result = call(f"PYTHONPATH={ROOT / 'python'}:{ROOT / 'scripts'} python3 drive.py", home)
        said = result.stdout + server.said * (server.stop() != 0)
        saved = re.match(r"(pass|fail) .*'command': '(.*?)'", result.stdout)
        driven = call(saved.group(2) + " --store mine.db", home) if saved else result
        good = server.process.returncode == 0 and saved and driven.returncode == 0 and (home / "drives/mine.json").exists()
    return "docs/interactive.md: the program", None if good else "failed", said + driven.stdout[-1500:]


def named():
    """(place, fault or None) of the commands that pages have in code: those that there are, with options that they have."""
    helps, found = {}, {}
    for page in NAMED:
        for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
            code = [line] if line.startswith("    ") else re.findall(r"`([^`]+)`", line)
            for part in code:
                for word, rest in re.findall(r"(?:^|\s|=)swerve ([a-z]+)((?: [^|;#]*)?)", part):
                    rest = re.sub(r'"[^"]*"', "", rest).split("  ")[0]
                    found.setdefault((word, *re.findall(r"(?<!\S)--[a-z][a-z0-9-]+", rest)), f"{page}:{number}")
    for command, place in found.items():
        if command[0] not in helps:
            said = subprocess.run([SWERVE, command[0], "--help"], stdout=subprocess.PIPE, text=True)
            helps[command[0]] = said.stdout if said.returncode == 0 else None
        text = helps[command[0]]
        if text is None:
            yield f"{place}: swerve {command[0]}", "there is no such command"
            continue
        missing = [option for option in command[1:] if option != "--help" and not re.search(re.escape(option) + r"\b(?!-)", text)]
        yield f"{place}: swerve {' '.join(command)}", f"no such option: {missing}" if missing else None


def main():
    with tempfile.TemporaryDirectory(prefix="swerve-documents-") as name:
        template = pathlib.Path(name)
        furnish(template)
        failed = fill(template)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            session = pool.submit(program_of_sessions)
            done = [one for page in pool.map(lambda page: results(page, template, failed), filter(commands, RUN)) for one in page]
    done.append(session.result())
    wrong = [(place, "failed", fault) for place, fault in named() if fault is not None]
    done += wrong or [("commands and options that pages name exist", None, "")]
    print(f"1..{len(done)}")
    for at, (place, fault, said) in enumerate(done, 1):
        skipped = f" # SKIP {said}" if fault == "not run" else ""
        print(f"{'not ok' if fault == 'failed' else 'ok'} {at} - {place.replace('#', chr(92) + '#')}{skipped}")
        if fault == "failed":
            print("# " + said.replace("\n", "\n# "))
    sys.exit(any(fault == "failed" for _, fault, _ in done))


main()
