#!/usr/bin/env python3
"""Checks that files of a room do not call each other in circles. Usage: check_circles.py BUILD

By the symbols that the objects of a build have and lack. NAMED says which files may, and why; a circle of fewer
of them is one of theirs. Rooms cannot: scripts/check_arrows.py.
"""
import json
import pathlib
import subprocess
import sys

HOUSES = ("base", "schemas", "engine", "scenarios", "store", "scheduler", "worker", "report", "cli")
TREE = "what holds parts is read and written part by part, and parts hold others"
TABLE = "a table names its entries, which share what stands beside the table"
# A folder or the beginnings of files, and why they may.
NAMED = {
    ("base/status", "base/text"): "a sentence is made printable, and a text that cannot be is an error",
    ("base/sha256",): "the variant for a processor takes its constants from the plain one",
    ("schemas/",): TREE,
    ("engine/worlds/world",): TABLE,
    ("scenarios/import/commonroad_",): "lanes are linked with each other by the map that is being made",
    ("scenarios/import/opendrive/opendrive_map",): "lanes are linked with each other by the map that is being made",
    ("scenarios/import/openscenario/",): TREE,
    ("store/sql/",): "transitions of jobs end in each other: a lease that ends may kill, queue or hand on",
    ("store/server/",): TABLE,
    ("store/check/",): TABLE,
    ("store/artifacts/",): "a file is verified in a stream, which ends as files do",
    ("store/postgres/postgres_db", "store/postgres/postgres_transaction"): "a transaction settles the statements that run in it",
    ("worker/planner/builtin/",): TABLE,
    ("worker/planner/planner_sight",): "what is in sight is made of parts, which add to it",
    ("worker/golden/",): "a list opens its world, which reads the list",
    ("report/summary", "report/meters"): "a summary is made of parts, which count in its rows",
    ("cli/model/",): TABLE,
}


def objects(build: pathlib.Path) -> dict[str, pathlib.Path]:
    """Source in the tree: its object."""
    found = {}
    for row in json.loads((build / "compile_commands.json").read_text()):
        source = (pathlib.Path(row["directory"]) / row["file"]).resolve()
        place = pathlib.Path(row["directory"]) / row["output"]
        root = pathlib.Path(__file__).resolve().parent.parent
        if source.is_relative_to(root) and place.exists() and ".a.p/" in row["output"]:
            name = source.relative_to(root).as_posix()
            if name.startswith(HOUSES):
                found[name] = place
    return found


def calls(found: dict[str, pathlib.Path]) -> dict[str, set[str]]:
    """Who needs a symbol of whom."""
    owner, needs = {}, {name: set() for name in found}
    names = {str(place): name for name, place in found.items()}
    # One nm for all: starting it costs ten times what it does for a file.
    told = subprocess.run(["nm", "--print-file-name", *names], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        place, _, rest = line.rpartition(":") # FILE:ADDRESS KIND SYMBOL; what is needed has no address
        word = rest.split()
        if len(word) == 3 and word[1] in "TDRBVW":
            owner[word[2]] = names[place]
        elif len(word) == 2 and word[0] == "U":
            needs[names[place]].add(word[1])
    return {name: {owner[symbol] for symbol in symbols if owner.get(symbol, name) != name} for name, symbols in needs.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of files of which each reaches each."""
    reach = {}
    for name in graph:
        seen, queue = set(), [name]
        while queue:
            for below in graph[queue.pop()] - seen:
                seen.add(below)
                queue.append(below)
        reach[name] = seen
    sets = {frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]}
    return sorted(sorted(files) for files in sets)


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    found = objects(build)
    if not found:
        print(f"{build}: no object of this tree's sources")
        return 1
    seen = circles(calls(found))
    bad = [files for files in seen if not any(all(name.startswith(row) for name in files) for row in NAMED)]
    idle = [row for row in NAMED if not any(all(name.startswith(row) for name in files) for files in seen)]
    for files in bad:
        print("files that call each other in a circle:", " ".join(files))
    for row in idle:
        print("check_circles.py: NAMED has", ", ".join(row), "but there is no such circle")
    if not bad and not idle:
        print(f"{len(found)} files, {len(seen)} circles, each named with its reason")
    return 1 if bad or idle else 0


if __name__ == "__main__":
    sys.exit(main())
