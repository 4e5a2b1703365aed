#!/usr/bin/env python3
"""Checks that every room includes only what it may, and that guarded headers stay where they belong.

The arrows (who may include whom) are the architecture: see CONTRIBUTING.md.
"""
import pathlib
import re
import subprocess
import sys

DIRECT = {
    "base": [],
    "schemas": ["base"],
    "kernels": ["base"],
    "engine": ["kernels", "schemas"],
    "scenarios": ["schemas"],
    "store": ["schemas"],
    "scheduler": ["scenarios", "store"],
    "worker": ["base", "schemas", "engine", "scenarios", "store", "scheduler"],
}
# Room -> room arrows that reachability would allow but the plan does not.
FORBIDDEN = {("worker", "kernels")}
# Headers that one file (or folder) alone may include.
HOST_CUDA = {"tests/cuda/occupancy.cpp"}  # asks a header of CUDA on the host, no kernel

GUARDED = {
    "sqlite3.h": ["store/sqlite/sqlite_db.c"],
    "libpq-fe.h": ["store/postgres_db.c"],
    "expat.h": ["scenarios/import/commonroad_xml.c"],
    "microhttpd.h": ["store/server/http_server.c"],
    "gnutls/abstract.h": ["store/server/tls.h"],
    "gnutls/gnutls.h": ["store/server/tls.c"],
    "gnutls/x509.h": ["store/server/tls.c"],
    "curl/curl.h": ["store/client/http_transport.c"],
}
# The engine builds with libc alone: of schemas it may use data records, not the JSON codecs.
ENGINE_SCHEMAS = re.compile(r"schemas/(limits|scenario|observation|scene|outcome|trace|job|planner)\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def reachable(room: str) -> set[str]:
    seen, queue = {room}, [room]
    while queue:
        for below in DIRECT[queue.pop()]:
            if below not in seen:
                seen.add(below)
                queue.append(below)
    return seen


def problems(path: str, text: str) -> list[str]:
    room = path.split("/")[0]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(2)
        where = f"{path}:{number}: includes {header}"
        for guarded, homes in GUARDED.items():
            if header == guarded and path not in homes and room in DIRECT:
                found.append(f"{where}; only {', '.join(homes)} may")
        if header.startswith("cuda") and not path.startswith("kernels/cuda/") and path not in HOST_CUDA:
            found.append(f"{where}; CUDA headers stay under kernels/cuda/")
        target = header.split("/")[0]
        if match.group(1) != '"' or target not in DIRECT or room not in DIRECT:
            continue
        if target not in reachable(room) or (room, target) in FORBIDDEN:
            found.append(f"{where}; {room} may not include {target}")
        if room == "engine" and target == "schemas" and not ENGINE_SCHEMAS.fullmatch(header):
            found.append(f"{where}; the engine uses data records only")
    return found


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    files = subprocess.run(
        ["git", "ls-files", "*.c", "*.h", "*.cpp", "*.cu"], cwd=root, check=True, capture_output=True, text=True
    ).stdout.split()
    found = [p for path in files for p in problems(path, (root / path).read_text())]
    print("\n".join(found) if found else f"{len(files)} files, every arrow points the right way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
