#!/usr/bin/env python3
"""Checks the shape of the house: who includes whom, how full rooms and files are, what tests are called.

Usage: check_arrows.py [--write]
A room is a folder of sources. ROOMS says what each holds and may include; the plan must be free of circles.
docs/rooms.md shows it as a table, CONTRIBUTING.md that of the houses; --write brings both up to date. A test of FILE.c is tests/ROOM/../test_FILE.c
(the folder's name may stand in front), or test_FILE_PART.c for a part of what it does. See CONTRIBUTING.md.
"""
import pathlib
import re
import subprocess
import sys

# House, a top-level folder of sources: what goes in and comes out.
HOUSES = {
    "base": "what every program needs, whatever it is about",
    "schemas": "records, contracts, their codecs and limits, SQL",
    "kernels": "numbers in, numbers out: matrices, pictures, traffic, for each instruction set and for CUDA",
    "engine": "a scenario and actions in, scenes and pictures out, bit for bit",
    "scenarios": "suites; in scenarios/import a foreign file in, our JSON out, in a program of its own",
    "store": "jobs, leases, outcomes, money: embedded, over HTTP, in PostgreSQL",
    "scheduler": "decisions: pure functions over records, the clock an argument",
    "worker": "a job in, outcomes out",
    "report": "outcomes in, pages out",
    "cli": "words to calls",
}

# Room: what it holds; what it may include besides itself, and so what that may include.
ROOMS = {
    "base": ("status, arena, clock, rng, log, check, units, geometry, deterministic math, text, JSON scanner",
        []),
    "base/png": ("PNG in memory, through libpng",
        ["base"]),
    "base/jpeg": ("JPEG in memory, through libjpeg-turbo",
        ["base"]),
    "base/websocket": ("WebSockets over a connection that stands, through libwslay; envelopes of relayed sessions",
        ["base"]),
    "base/program": ("what executables share: options of a command line, filters of system calls",
        ["base"]),
    "schemas": ("records and contracts, limits, codecs, JSON schemas, SQL",
        ["base"]),
    "schemas/storyboard": ("storyboards of scenarios: records and their JSON",
        ["schemas"]),
    "schemas/rig": ("sensors that a planner, a scenario or a world declares: records and their JSON",
        ["schemas"]),
    "schemas/controls": ("logs of the controls challenge in scenarios: their JSON",
        ["schemas"]),
    "schemas/world": ("the C ABI of world models and their protocol ([world.md](../schemas/world/world.md))",
        ["base"]),
    "schemas/field": ("scores that others publish: PDMS, EPDMS, two stages",
        ["schemas"]),
    "schemas/proto": ("messages of other people's contracts: records that a compiler writes",
        []),
    "schemas/ticks": ("histograms of what ticks of sessions took",
        ["schemas"]),
    "schemas/careful": ("answers of careful drivers",
        ["schemas"]),
    # Mathematics on plain pointers.
    "kernels": ("tables of math on plain pointers, one per family, and what CPU and GPU share",
        ["base"]),
    "kernels/ref": ("plain C",
        ["kernels"]),
    "kernels/x86": ("AVX2, AVX-512, AMX",
        ["kernels/ref"]),
    "kernels/cuda/common": ("the CUDA header, launchers, kernels that every network uses",
        ["kernels"]),
    "kernels/cuda/student": ("the plan of the shipped models",
        ["kernels/cuda/common"]),
    "kernels/trunk": ("operations of a world step, from its configuration: listed, counted, placed",
        ["kernels/cuda/common"]),
    "kernels/cuda/scale": ("what products run on, by time; launches of a full-scale model, over several GPUs",
        ["kernels/trunk"]),
    "kernels/cuda/tinyphysics": ("drives of the controls challenge",
        ["kernels/cuda/common"]),
    "kernels/cuda/module": ("the shared module that the engine opens ([README](../kernels/cuda/README.md))",
        ["kernels/cuda/student", "kernels/cuda/scale", "kernels/cuda/tinyphysics"]),
    # Worlds.
    "engine/traffic": ("roads, routes, agents, ego's motion",
        ["schemas", "kernels"]),
    "engine/story": ("storyboards: what agents do when, run in parts of a tick",
        ["schemas/storyboard"]),
    "engine/lens": ("lenses of cameras: directions of pixels, pixels of directions",
        ["kernels", "schemas/rig"]),
    "engine/sensors": ("prepared scenarios; lidar grid and cameras; conditioning rasters; who is foreseen",
        ["engine/traffic", "engine/lens"]),
    "engine/rigs": ("points of lidars of a rig, frames of its cameras between ticks, measures of pictures",
        ["engine/sensors"]),
    "engine/learned": ("models, the forward pass, frame pages and their tiers, devices",
        ["engine/sensors"]),
    "engine/tinyphysics": ("the network and the simulator of comma.ai's controls challenge",
        ["engine/learned"]),
    "engine/worlds": ("the table of functions and what fills it: replay, object, student, teacher, foreign, tinyphysics",
        ["engine/tinyphysics", "engine/story", "engine/rigs", "schemas/world"]),
    "engine/bench": ("benchmarks that need the engine's insides",
        ["engine/worlds", "kernels/trunk"]),
    "engine/trace": ("recordings of drives: traces, keyframes, frames of goldens",
        ["engine/worlds"]),
    # Suites.
    "scenarios": ("suites: load, validate, expand",
        ["schemas/storyboard"]),
    "scenarios/import": ("CommonRoad; recorded drives",
        ["scenarios"]),
    "scenarios/import/womd": ("scenes of the Waymo Open Motion Dataset, as JSON",
        ["scenarios/import"]),
    "scenarios/import/opendrive": ("OpenDRIVE: roads, lanes, links, places on them; scenarios of them",
        ["scenarios/import"]),
    "scenarios/import/openscenario": ("OpenSCENARIO XML: catalogs, expressions, positions, storyboards; scenarios of them",
        ["scenarios/import/opendrive", "schemas/storyboard"]),
    "scenarios/import/program": ("the `swerve-import` binary: its options, what it may do",
        ["scenarios/import/openscenario", "scenarios/import/womd", "base/program"]),
    "scenarios/protocol": ("values of test protocols",
        ["scenarios"]),
    "scenarios/ranges": ("logical scenarios with the ranges of their parameters, for searches",
        ["scenarios"]),
    "scenarios/choice": ("which scenarios of a suite a user means, and the parameters that he sets",
        ["scenarios"]),
    "scenarios/plausible": ("what is allowed, but hardly meant",
        ["schemas"]),
    "scenarios/skeleton": ("a scenario to begin with, and the schemas for an editor",
        ["schemas"]),
    "scenarios/coverage": ("what a suite covers",
        ["scenarios"]),
    # The job store.
    "store/api": ("the job store's table of functions",
        ["schemas"]),
    "store/curl": ("what every call by libcurl needs alike",
        ["base"]),
    "store/objects": ("object storage that speaks S3: put, get, look",
        ["store/curl", "schemas"]),
    "store/artifacts": ("files of traces, in a folder or a bucket",
        ["store/api", "store/objects"]),
    "store/log": ("what a damaged write-ahead log holds",
        ["schemas"]),
    "store/turns": ("whose jobs are claimed next, between tenants and their suites, and which make way for them",
        ["schemas"]),
    "store/door": ("what clients send, looked at before it is stored; the table of what numbers and texts may be, which checks are made of too",
        ["store/artifacts"]),
    "store/statements": ("texts of SQL: the kept statements, and which columns the members of records are",
        ["store/api"]),
    "store/sql": ("the store in SQL: life cycle, leases, ledger, tenants, models, freezes; SQLite as the driver of its database",
        ["store/door", "store/log", "store/statements", "store/turns"]),
    "store/wire": ("records as JSON",
        ["store/api"]),
    "store/client": ("the HTTP client",
        ["store/wire", "store/artifacts", "store/curl", "base/websocket"]),
    "store/server/web": ("the dashboard's page: HTML, style, plain JavaScript, and their lookup by name",
        ["base"]),
    "store/relay": ("sessions that pass between clients and workers: connections that become WebSockets, who there is, what goes on elsewhere",
        ["schemas", "schemas/ticks", "base/websocket"]),
    "store/server": ("the HTTP server, TLS, tokens",
        ["store/wire", "store/artifacts", "store/server/web", "store/relay"]),
    "store/postgres": ("the store in PostgreSQL: driver, dialect, leases that processes share ([postgresql.md](postgresql.md))",
        ["store/sql"]),
    "store/ownership": ("opening by path or URL: one process owns a file and serves the others",
        ["store/client", "store/server", "store/postgres"]),
    "store/check": ("what in a store does not fit together",
        ["store/sql"]),
    "store/keep": ("keeping house: checks of files and databases, backups and the way back, artifacts that nothing refers to",
        ["store/postgres", "store/check"]),
    "store/bench": ("benchmarks of the store",
        ["store/client", "store/server", "store/postgres"]),
    "scheduler": ("routing, audit sampling, agreement, decisions of a search: pure functions over records",
        ["scenarios", "store/api"]),
    # Outcomes in, pages out.
    "report/page": ("pages in three forms, terminal, HTML and Markdown: headings, facts, tables; definitions of metrics",
        ["base/png", "schemas"]),
    "report/trust": ("audited pairs of a store, their agreement by slice, what monitors say; what a store has decided",
        ["report/page", "scheduler"]),
    "report/plan": ("a fleet on paper: mixes and cards, a simulated day on the real store",
        ["scheduler"]),
    "report": ("summaries, tables, HTML, drives as JSON; the player of `web`",
        ["report/page", "engine/trace", "engine/rigs", "schemas/careful", "schemas/field", "scheduler"]),
    "report/compare": ("two sides joined, tested and shown",
        ["report"]),
    "report/export": ("outcomes and drives in the formats of other tools",
        ["report/draw"]),
    "report/draw": ("pictures of scenarios and videos of drives: a painter of pixels or SVG",
        ["report", "schemas/rig", "engine/rigs", "base/jpeg"]),
    "report/correlate": ("ego's models and reactive traffic against recorded drives",
        ["engine/worlds", "report/page", "scheduler"]),
    "report/traceability": ("hazards, triggering conditions, requirements against scenarios and results",
        ["report"]),
    "report/risk": ("events per distance and time: exposures, severity, plans of further jobs",
        ["report", "scenarios/coverage"]),
    "report/dossier": ("credibility dossiers",
        ["report/risk", "report/traceability", "scenarios/protocol", "scenarios/coverage"]),
    # One job in, outcomes out.
    "worker/tracker": ("what turns a planner's trajectory into actions",
        ["schemas"]),
    "worker/wire": ("the bytes of the exec protocol",
        ["schemas"]),
    "worker/grpc": ("a gRPC client, through libnghttp2",
        ["base"]),
    "worker/contract": ("what AlpaSim's contracts have alike: names and addresses, versions, cameras",
        ["worker/grpc", "schemas/proto", "schemas/rig"]),
    "worker/egodriver": ("planners behind AlpaSim's EgodriverService",
        ["worker/contract"]),
    "worker/planner/builtin": ("planners that are built in",
        ["schemas"]),
    "worker/planner": ("planners: their host, plugins, processes, their sandbox",
        ["worker/planner/builtin", "worker/egodriver", "worker/tracker", "worker/wire", "base/program", "schemas/rig"]),
    "worker/given": ("objects, map and frames of sensors that planners are given",
        ["engine/rigs", "engine/trace", "base/jpeg"]),
    "worker/score": ("metrics, guardian",
        ["engine/sensors"]),
    "worker/score/field": ("plans along a drive, branches as second stages",
        ["worker/score", "worker/tracker", "schemas/field"]),
    "worker/models": ("which models there are, the health of what they generate, pictures as evidence",
        ["engine/bench", "base/png"]),
    "worker/onnx": ("ONNX Runtime, opened at run time",
        ["base"]),
    "worker/omnidreams": ("world models behind AlpaSim's WorldModelService",
        ["worker/contract", "worker/given", "base/jpeg", "base/png", "engine/worlds"]),
    "worker/world": ("world models of the user's: specs, plugins, processes, ONNX files, servers, conformance",
        ["worker/planner", "worker/models", "worker/onnx", "worker/omnidreams"]),
    "worker/run": ("claims, runners, rollouts, forks, outcomes",
        ["schemas/careful", "worker/planner", "worker/given", "worker/score/field", "worker/models", "engine/trace", "scheduler"]),
    "worker/alpasim": ("scenarios as services of AlpaSim: sensors, world model, traffic",
        ["worker/contract", "worker/run", "engine/worlds", "base/jpeg", "base/png"]),
    "worker/submission": ("job rows of a suite: made page by page, named, sent",
        ["worker/run"]),
    "worker/careful": ("what a careful driver would have done, and how a drive might have ended",
        ["worker/run"]),
    "worker/versions": ("models that a store keeps: which answer, and their files here",
        ["worker/models", "store/api"]),
    "worker/datagen": ("training shards, and the clips in them, which jobs make",
        ["worker/submission"]),
    "worker/frozen": ("models beside what the sensors recorded, under the same actions",
        ["worker/datagen"]),
    "worker/golden": ("drives of a learned world, recorded once, that answer other planners: recordings, lists, their world",
        ["worker/submission"]),
    "worker/env": ("environments that a learner steps, as a C ABI",
        ["worker/run"]),
    "worker/interactive": ("sessions that somebody steers in real time, and the thread that keeps their deadlines",
        ["worker/env", "scheduler", "schemas/ticks"]),
    # Words to calls.
    "cli/watch": ("canaries beside the promoted version, and their rollback",
        ["worker/versions", "scheduler"]),
    "cli/choice": ("which scenarios of a suite a command takes: words, ids, those that failed; parameters that it sets",
        ["scenarios/choice", "store/api", "base/program"]),
    "cli/kept": ("files of planners that a store keeps with a suite: packed, found, put back; drives that are done again, one or those of a suite; outcomes that are missing, or that rest on a golden in doubt",
        ["report", "store/api", "worker/golden", "worker/submission"]),
    "cli/budget": ("what a suite may cost, what it is expected to, and who answers it at what price",
        ["report", "worker/submission", "base/program"]),
    "cli/label": ("labels of the suite that a command sends: tags, a note, the commit that it stands in",
        ["store/api", "base/program"]),
    "cli/notify": ("notices to a webhook: ends of suites, alarms",
        ["store/api", "store/curl"]),
    "cli/serving": ("a store that a command owns and serves while it runs: address, tokens, TLS, what is refused; what it tells of trust and scaling",
        ["report/draw", "report/trust", "store/server"]),
    "cli/bench": ("`swerve bench`",
        ["engine/rigs", "worker/run", "engine/bench", "engine/tinyphysics", "store/bench"]),
    "cli/dump": ("`--debug-dump`: observations as NumPy files and PNG",
        ["worker/run", "report/draw"]),
    "cli": ("commands, their options, what they print",
        ["cli/bench", "cli/budget", "cli/choice", "cli/dump", "cli/kept", "cli/label", "cli/notify", "cli/serving", "cli/watch", "report/compare", "report/correlate", "report/dossier", "report/draw", "report/export", "report/risk", "report/traceability", "worker/careful", "worker/frozen", "worker/golden", "worker/versions", "worker/world", "base/program", "scenarios/protocol", "scenarios/coverage", "scenarios/plausible", "store/server", "store/keep"]),
    "cli/alpasim": ("`swerve alpasim`; scenes of AlpaSim as files",
        ["cli", "worker/alpasim"]),
    "cli/session": ("`swerve session`: a page at which somebody drives, its WebSockets",
        ["cli", "worker/interactive", "report"]),
    "cli/controls": ("`swerve controls`",
        ["cli", "engine/tinyphysics"]),
    "cli/fleet": ("`swerve demand`, `swerve fleet`: what waits, how many workers there should be, scripts that start them; `swerve plan`; `swerve tenant`",
        ["cli", "cli/budget", "report/plan"]),
    "cli/scenario": ("`swerve scenario`",
        ["cli", "scenarios/skeleton"]),
    "cli/search": ("`swerve search`: what is driven, clusters, boundaries",
        ["cli", "scenarios/ranges"]),
    "cli/draw": ("`swerve draw`, `swerve rig`: what a scenario holds, what sensors see",
        ["cli", "schemas/rig"]),
    "cli/world": ("`swerve world`",
        ["cli"]),
    "cli/futures": ("`swerve futures`: how drives might have ended, and what settles a disagreement",
        ["cli"]),
    "cli/golden": ("`swerve golden`",
        ["cli"]),
    "cli/model": ("`swerve model`, `swerve trust`",
        ["cli"]),
    "cli/keep": ("`swerve store`",
        ["cli", "store/keep"]),
}
# Arrows that the plan would allow but that are not to be.
FORBIDDEN = [("worker/", "kernels"), ("report", "kernels"), ("cli", "kernels"), ("report", "engine/learned"),
             *((house, "scenarios/import") for house in ("store/", "scheduler", "report", "worker/", "cli"))]
# Headers that one file (or folder) alone may include.
GUARDED = {
    "sqlite3.h": ["store/sql/sqlite_db.c"],
    "libpq-fe.h": [f"store/postgres/postgres_{name}" for name in ("columns.c", "connect.c", "db.c", "listen.c", "locks.c", "pipeline.c", "transaction.c", "url.c")],
    "expat.h": ["scenarios/import/commonroad_xml.c"],
    "microhttpd.h": ["store/server/http_server.c", "store/server/http_response.c", "store/relay/http_socket.c", "cli/session/session_server.c"],
    "wslay/wslay.h": ["base/websocket/wire.c"],
    "gnutls/abstract.h": ["store/server/tls.h", "store/keep/signature.c"],
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
    "tests/worker/test_keyframes.c": "keyframes of whole drives (engine/trace)",
    "tests/worker/test_library_drives.c": "the shipped scenarios, driven",
}

ROOM_FILES_MAX = 40
FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70


def reachable(room: str) -> set[str]:
    seen, queue = set(), [room]
    while queue:
        for below in ROOMS[queue.pop()][1]:
            if below not in seen:
                seen.add(below)
                queue.append(below)
    return seen


def forbidden(room: str, target: str) -> bool:
    return any(room.startswith(a) and (target + "/").startswith(b + "/") for a, b in FORBIDDEN)


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
        if target not in reachable(room) or forbidden(room, target):
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
    found += [f"{room}: its house has no sentence (HOUSES)" for room in ROOMS if house(room) not in HOUSES]
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


BEGIN, END = "<!-- {}: scripts/check_arrows.py --write -->\n", "<!-- end of {} -->\n"


def house(room: str) -> str:
    return room.partition("/")[0]


def table_of_rooms() -> list[str]:
    rows = ["| room | holds | may include |", "|---|---|---|"]
    return rows + [f"| `{room}` | {holds} | {', '.join(below) or 'libc'} |" for room, (holds, below) in ROOMS.items()]


def table_of_houses() -> list[str]:
    rows = ["| house | in one sentence | may include | rooms |", "|---|---|---|---|"]
    for name, sentence in HOUSES.items():
        own = [room for room in ROOMS if house(room) == name]
        below = {house(target) for room in own for target in reachable(room) if not forbidden(room, target)} - {name}
        rows.append(f"| `{name}` | {sentence} | {', '.join(h for h in HOUSES if h in below) or 'libc'} | {len(own)} |")
    return rows


# Document: the table that stands in it between two comments.
TABLES = {"CONTRIBUTING.md": ("houses", table_of_houses), "docs/rooms.md": ("rooms", table_of_rooms)}


def tables(root: pathlib.Path, write: bool) -> list[str]:
    """Documents whose table is an older one, which it is no more with `write`."""
    found = []
    for path, (what, rows) in TABLES.items():
        text = (root / path).read_text()
        begin, end = BEGIN.format(what), END.format(what)
        shown = text[:text.index(begin)] + begin + "\n".join(rows()) + "\n" + text[text.index(end):]
        if write:
            (root / path).write_text(shown)
        elif shown != text:
            found.append(f"{path}: the table of {what} is an older one; scripts/check_arrows.py --write")
    return found


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    paths = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")
    found = rooms(paths) + test_names(paths) + tables(root, "--write" in sys.argv)
    sources = [path for path in paths if path.endswith(SOURCES)]
    for path in sources:
        text = (root / path).read_text()
        found += arrows(path, text) + sizes(path, text)
    print("\n".join(found) if found else f"{len(sources)} files in {len(ROOMS)} rooms, every arrow points the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
