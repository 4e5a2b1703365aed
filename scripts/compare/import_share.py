#!/usr/bin/env python3
"""Imports every file of collections and writes which share comes in, and why the others do not.

    scripts/compare/import_share.py --binary build/worker/swerve FOLDER...
    scripts/compare/import_share.py --binary build/worker/swerve --drive --search ROADS FOLDER...

A row per folder: files of OpenSCENARIO (catalogs left out) and of OpenDRIVE, how many of them become scenarios, and
the reasons of the rest, the most frequent first. With --drive what comes in is driven in the object world, and a
further row counts the verdicts: an `invalid` one names the check that did not hold.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import tempfile

KINDS = {".xosc": "openscenario", ".xodr": "opendrive"}


def files_of(folder, suffix):
    for directory, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(directory, name)
            if name.endswith(suffix) and not is_catalog(path):
                yield path


def is_catalog(path):
    with open(path, errors="replace") as stream:
        return path.endswith(".xosc") and re.search(r"<Catalog\s", stream.read()) is not None


def reason_of(text):
    """The last sentence without what differs from file to file."""
    line = text.strip().splitlines()[-1] if text.strip() else "no message"
    line = re.sub(r"^swerve: (combination \d+ of \d+: )?\S*: (line \d+: )?", "", line)
    return re.sub(r"\"[^\"]*\"|-?\d+(\.\d+)?|/\S+", "..", line)[:150]


def verdict_of(args, scenario, folder):
    store = os.path.join(folder, "store.db")
    subprocess.run([args.binary, "run", scenario, "--world", "object", "--planner", args.planner, "--nominal",
                    "--store", store], capture_output=True, check=False)
    shown = subprocess.run([args.binary, "show", "1", "--json", "--store", store], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        return "not driven"
    outcome = json.loads(shown.stdout)
    check = outcome.get("health_check")
    return f"invalid ({check})" if outcome["verdict"] == "invalid" and check else outcome["verdict"]


def try_file(args, path):
    kind = KINDS[os.path.splitext(path)[1]]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        command = [args.binary, "import", kind, path, "-o", out]
        if kind == "openscenario":
            command += [word for place in args.search for word in ("--search", place)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            return reason_of(made.stderr), None
        return None, verdict_of(args, out, folder) if args.drive else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--drive", action="store_true")
    parser.add_argument("--planner", default="builtin:reference")
    parser.add_argument("--files", action="store_true", help="also a line per file that does not come in")
    parser.add_argument("--search", action="append", default=[], help="where roads and catalogs are looked for too")
    parser.add_argument("--every", type=int, default=1, help="one in so many files, from the first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    print("| collection | files | come in | refused because of |\n|---|---|---|---|")
    for folder in args.folders:
        for suffix in KINDS:
            paths = list(files_of(folder, suffix))[:: args.every]
            with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                results = list(pool.map(lambda path: try_file(args, path), paths))
            reasons = collections.Counter(reason for reason, _ in results if reason)
            verdicts = collections.Counter(verdict for _, verdict in results if verdict)
            if paths:
                refused = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
                print(f"| {folder} `{suffix}` | {len(paths)} | {len(paths) - sum(reasons.values())} | {refused} |")
            if verdicts:
                print(f"| .. driven | {sum(verdicts.values())} | " +
                      ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) + " | |")
            for path, (reason, verdict) in zip(paths, results):
                if args.files and (reason or (verdict or "").startswith(("invalid", "flagged"))):
                    print(f"  {path}: {reason or verdict}")


if __name__ == "__main__":
    main()
