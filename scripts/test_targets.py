#!/usr/bin/env python3
"""Prints what ninja has to build for the tests of some suites, one target a line.

Usage: scripts/test_targets.py BUILD [SUITE..] [-SUITE..] [+installed]
  -SUITE       leave a suite out; of none named, all others
  +installed   what a package has, too
"""
import json
import os
import subprocess
import sys


def introspect(build: str, what: str) -> list[dict]:
    command = ["meson", "introspect", build, what]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, words = sys.argv[1], sys.argv[2:]
    without = {w[1:] for w in words if w.startswith("-")}
    suites = {w for w in words if w[0] not in "-+"}
    targets = introspect(build, "--targets")
    files = {t["id"]: t["filename"] for t in targets}
    wanted: set[str] = set()
    if "+installed" in words:
        wanted.update(os.path.relpath(f, build) for t in targets if t["installed"] for f in t["filename"])
    for test in introspect(build, "--tests"):
        # A suite is PROJECT:NAME, or PROJECT alone.
        own = {s.partition(":")[2] for s in test["suite"]}
        if (not suites or suites & own) and not without & own:
            for name in test["depends"]:
                wanted.update(os.path.relpath(f, build) for f in files[name])
    if not wanted:
        sys.exit(f"{build}: no test of {' '.join(words)}")
    print("\n".join(sorted(wanted)))


if __name__ == "__main__":
    main()
