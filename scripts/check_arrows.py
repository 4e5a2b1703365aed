#!/usr/bin/env python3
"""Checks the shape of the house: who includes whom, how full rooms and files are, what tests are called.

A room is a folder of sources. ROOMS says what each may include besides itself; what those may include
below them is allowed as well. The plan must be free of circles, and CONTRIBUTING.md's table must say the
same. A test of FILE.c is tests/ROOM/../test_FILE.c
(the folder's name may stand in front), or test_FILE_PART.c for a part of what it does. See CONTRIBUTING.md.
"""
import pathlib
import re
import subprocess
import sys

ROOMS = {
    "base": [],
    "schemas": ["base"],
    "schemas/storyboard": ["schemas"],
    "schemas/controls": ["schemas"],
    "schemas/world": ["base"],
    # Mathematics on plain pointers.
    "kernels": ["base"],
    "kernels/ref": ["kernels"],
    "kernels/x86": ["kernels/ref"],
    "kernels/cuda/common": ["kernels"],
    "kernels/cuda/student": ["kernels/cuda/common"],
    "kernels/cuda/scale": ["kernels/cuda/common"],
    "kernels/cuda/tinyphysics": ["kernels/cuda/common"],
    "kernels/cuda/module": ["kernels/cuda/student", "kernels/cuda/scale", "kernels/cuda/tinyphysics"],
    # Worlds.
    "engine/traffic": ["schemas"],
    "engine/story": ["schemas/storyboard"],
    "engine/sensors": ["engine/traffic", "kernels"],
    "engine/learned": ["engine/sensors"],
    "engine/tinyphysics": ["engine/learned"],
    "engine/worlds": ["engine/tinyphysics", "engine/story", "schemas/world"],
    "engine/bench": ["engine/worlds"],
    # Suites.
    "scenarios": ["schemas"],
    "scenarios/import": ["scenarios"],
    "scenarios/import/womd": ["scenarios"],
    "scenarios/import/opendrive": ["scenarios/import"],
    "scenarios/import/openscenario": ["scenarios/import/opendrive", "schemas/storyboard"],
    "scenarios/protocol": ["scenarios"],
    "scenarios/ranges": ["scenarios"],
    "scenarios/coverage": ["scenarios"],
    # The job store.
    "store/api": ["schemas"],
    "store/curl": ["base"],
    "store/objects": ["store/curl", "schemas"],
    "store/artifacts": ["store/api", "store/objects"],
    "store/log": ["schemas"],
    "store/turns": ["schemas"],
    "store/door": ["store/artifacts"],
    "store/sql": ["store/door", "store/log", "store/turns"],
    "store/wire": ["store/api"],
    "store/client": ["store/wire", "store/artifacts", "store/curl"],
    "store/server/web": ["base"],
    "store/server": ["store/wire", "store/artifacts", "store/server/web"],
    "store/postgres": ["store/sql"],
    "store/ownership": ["store/client", "store/server", "store/postgres"],
    "store/check": ["store/sql"],
    "store/keep": ["store/postgres", "store/check"],
    "store/bench": ["store/client", "store/server", "store/postgres"],
    "scheduler": ["scenarios", "store/api"],
    # The program.
    "worker/tracker": ["schemas"],
    "worker/wire": ["schemas"],
    "worker/planner/builtin": ["schemas"],
    "worker/planner": ["worker/planner/builtin", "worker/tracker", "worker/wire"],
    "worker/given": ["engine/sensors"],
    "worker/score": ["engine/sensors"],
    "worker/score/field": ["worker/score", "worker/tracker"],
    "worker/models": ["engine/bench"],
    "worker/onnx": ["base"],
    "worker/world": ["worker/planner", "worker/models", "worker/onnx"],
    "worker/trace": ["engine/worlds"],
    "worker/run": ["worker/planner", "worker/given", "worker/score/field", "worker/models", "worker/trace", "scheduler"],
    "worker/careful": ["worker/run"],
    "worker/report": ["worker/careful", "worker/trace", "scheduler", "engine/bench", "worker/score/field"],
    "worker/trust": ["scheduler"],
    "worker/versions": ["worker/models", "store/api"],
    "worker/watch": ["worker/versions", "scheduler"],
    "worker/serving": ["worker/report", "worker/trust", "store/server"],
    "worker/compare": ["worker/report"],
    "worker/export": ["worker/report"],
    "worker/draw": ["worker/report"],
    "worker/correlate": ["engine/worlds", "scheduler"],
    "worker/traceability": ["worker/report"],
    "worker/risk": ["worker/report", "scenarios/coverage"],
    "worker/dossier": ["worker/risk", "worker/traceability", "scenarios/protocol", "scenarios/coverage"],
    "worker/datagen": ["worker/run"],
    "worker/frozen": ["worker/datagen"],
    "worker/golden": ["worker/run"],
    "worker/env": ["worker/run"],
    "worker/bench": ["worker/run", "engine/bench", "engine/tinyphysics", "store/bench"],
    "worker/cli": ["worker/golden", "worker/trust", "worker/versions", "worker/watch", "worker/world", "worker/frozen", "worker/bench", "worker/compare", "worker/export", "worker/dossier",
                   "worker/risk", "worker/draw", "worker/traceability", "worker/correlate",
                   "worker/serving", "scenarios/import/openscenario", "scenarios/import/womd",
                   "scenarios/protocol", "scenarios/coverage", "store/server", "store/keep"],
    "worker/cli/controls": ["worker/cli", "engine/tinyphysics"],
    "worker/plan": ["scheduler"],
    "worker/cli/fleet": ["worker/cli", "worker/plan"],
    "worker/cli/search": ["worker/cli", "scenarios/ranges"],
    "worker/cli/world": ["worker/cli"],
    "worker/cli/golden": ["worker/cli"],
    "worker/cli/model": ["worker/cli"],
    "worker/cli/keep": ["worker/cli", "store/keep"],
}
# Arrows that the plan would allow but that are not to be.
FORBIDDEN = [("worker/", "kernels")]
# Headers that one file (or folder) alone may include.
GUARDED = {
    "sqlite3.h": ["store/sql/sqlite_db.c"],
    "libpq-fe.h": [f"store/postgres/postgres_{name}" for name in ("columns.c", "connect.c", "db.c", "listen.c", "locks.c", "pipeline.c", "transaction.c", "url.c")],
    "expat.h": ["scenarios/import/commonroad_xml.c"],
    "microhttpd.h": ["store/server/http_server.c", "store/server/http_response.c"],
    "gnutls/abstract.h": ["store/server/tls.h"],
    "gnutls/gnutls.h": ["store/server/tls.c"],
    "gnutls/x509.h": ["store/server/tls.c"],
    "curl/curl.h": ["store/curl/curl_call.h"],
}
# The engine builds with libc alone: of schemas it may use data records, not the JSON codecs.
ENGINE_SCHEMAS = re.compile(r"schemas/(limits|scenario|observation|scene|outcome|trace|job|planner|world/world)\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
SOURCES = (".c", ".h", ".cu", ".cuh", ".cpp")

# Sources that a folder of tests is about, where they are not in the folder of that name.
TESTED = {"cuda": "kernels/cuda", "simt": "tests/simt"}
# Tests of no file in particular, and what they are of.
WIDE_TESTS = {
    "tests/cuda/test_ranks.c": "several processes that share one world step",
    "tests/cuda/test_world.c": "the whole module, driven by the engine",
    "tests/scenarios/test_library.c": "the shipped scenarios",
    "tests/sim/test_sim.c": "the simulated fleet",
    "tests/worker/test_library_drives.c": "the shipped scenarios, driven",
}

ROOM_FILES_MAX = 40
FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70


def reachable(room: str) -> set[str]:
    seen, queue = set(), [room]
    while queue:
        for below in ROOMS[queue.pop()]:
            if below not in seen:
                seen.add(below)
                queue.append(below)
    return seen


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def arrows(path: str, text: str) -> list[str]:
    room = folder(path)
    found = []
    product = room.split("/")[0] in {name.split("/")[0] for name in ROOMS}
    if product and room not in ROOMS:
        return [f"{path}: {room} is no room of the plan (ROOMS in scripts/check_arrows.py)"]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(2)
        where = f"{path}:{number}: includes {header}"
        if product and path not in GUARDED.get(header, [path]):
            found.append(f"{where}; only {', '.join(GUARDED[header])} may")
        if product and header.startswith("cuda") and not path.startswith("kernels/cuda/"):
            found.append(f"{where}; CUDA headers stay under kernels/cuda/")
        if product and header.startswith("tests/"):
            found.append(f"{where}; the product knows no tests")
        target = folder(header)
        if match.group(1) != '"' or not product or target not in ROOMS or target == room:
            continue
        forbidden = any(room.startswith(a) and (target + "/").startswith(b + "/") for a, b in FORBIDDEN)
        if target not in reachable(room) or forbidden:
            found.append(f"{where}; {room} may not include {target}")
        if room.startswith("engine/") and target == "schemas" and not ENGINE_SCHEMAS.fullmatch(header):
            found.append(f"{where}; the engine uses data records only")
    return found


def sizes(path: str, text: str) -> list[str]:
    """Files and functions of the product that no longer fit on a few screens."""
    if folder(path) not in ROOMS:
        return []
    found = []
    lines = text.splitlines()
    if len(lines) > FILE_LINES_MAX:
        found.append(f"{path}: {len(lines)} lines, at most {FILE_LINES_MAX}")
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            if number - start - 1 > FUNCTION_LINES_MAX:
                found.append(f"{path}:{start}: a function of {number - start - 1} lines, at most {FUNCTION_LINES_MAX}")
            start = None
    return found


def rooms(paths: list[str]) -> list[str]:
    found = [f"{room}: the plan has a circle through it" for room in ROOMS if room in reachable(room)]
    for room in ROOMS:
        count = sum(folder(path) == room for path in paths)
        if count > ROOM_FILES_MAX:
            found.append(f"{room}: {count} files, at most {ROOM_FILES_MAX}")
    return found


def test_names(paths: list[str]) -> list[str]:
    """Tests in C whose name does not say which file they are of."""
    names = [pathlib.PurePosixPath(path) for path in paths if path.endswith(SOURCES)]
    found = [f"{path}: no such test (WIDE_TESTS in scripts/check_arrows.py)" for path in WIDE_TESTS if path not in paths]
    for test in names:
        if not str(test).startswith("tests/") or not test.name.startswith("test_") or test.suffix != ".c":
            continue
        home = TESTED.get(test.parts[1], test.parts[1]) + "/"
        sources = [name for name in names if str(name).startswith(home) and not name.name.startswith("test_")]
        stems = {name.stem for name in sources} | {f"{name.parent.name}_{name.stem}" for name in sources}
        what = test.stem.removeprefix("test_")
        if str(test) not in WIDE_TESTS and not any(what == stem or what.startswith(stem + "_") for stem in stems):
            found.append(f"{test}: no file of {home} is called {what}, nor as it begins")
    return found


def meant(room: str, name: str) -> str:
    """The room that the table calls NAME in ROOM's row: its path may lack what both paths begin with."""
    above = room
    while above and f"{above}/{name}" not in ROOMS:
        above = folder(above)
    return f"{above}/{name}" if above and name not in ROOMS else name


def table(text: str) -> list[str]:
    """Differences of the plan and the table of CONTRIBUTING.md. "all of worker" stands for rooms below worker/."""
    said: dict[str, set[str]] = {}
    found = []
    for line in text[text.index("| room |"):].split("\n\n")[0].splitlines()[2:]:
        names, _, below = (cell.strip() for cell in line.strip("|").split("|"))
        below = {name for name in re.split(r"[,;] *", re.sub(r" *\(.*\)", "", below)) if name not in ("", "libc")}
        for room in re.findall(r"`([^`]+)`", names):
            found += [f"CONTRIBUTING.md: {room} stands twice in the table of rooms"] if room in said else []
            said[room] = below
    for room, allowed in ROOMS.items():
        names = said.get(room, set())
        below = {meant(room, name) for name in names if name != "all of worker"}
        plan = {name for name in allowed if "all of worker" not in names or not name.startswith("worker/")}
        if room not in said:
            found.append(f"CONTRIBUTING.md: {room} is not in the table of rooms")
        elif below != plan:
            found.append(f"CONTRIBUTING.md: {room} may include {', '.join(sorted(plan))}, the table says {', '.join(sorted(below))}")
    tops = {room.split("/")[0] for room in ROOMS}
    return found + [f"CONTRIBUTING.md: {room} is no room" for room in said if room not in ROOMS and room.split("/")[0] in tops]


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    paths = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
    found = rooms(paths) + test_names(paths) + table((root / "CONTRIBUTING.md").read_text())
    sources = [path for path in paths if path.endswith(SOURCES)]
    for path in sources:
        text = (root / path).read_text()
        found += arrows(path, text) + sizes(path, text)
    print("\n".join(found) if found else f"{len(sources)} files in {len(ROOMS)} rooms, every arrow points the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
