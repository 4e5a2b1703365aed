#!/usr/bin/env python3
"""Counts the test cases of a meson test run: prints each failed one, then "PASSED FAILED".

Usage: count_tests.py NAME LOGS, the run's folder meson-logs. Cases come from its testlog.junit.xml;
how each program ended comes from its testlog.json, because a program that dies after its last
case, or before it, has no failed case of its own. A missing log counts as one failure.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as tree

GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}


def count_cases(root: tree.Element) -> tuple[int, list[tuple[str, str]]]:
    """Number of cases that passed, and the failed ones: (program, what to print)."""
    passed = 0
    failed = []
    for suite in root.iter("testsuite"):
        for case in suite.iter("testcase"):
            text = f"{suite.get('name')}: {case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                # A program without cases is itself the case; else its suite is PROJECT.PROGRAM.
                project, _, program = str(suite.get("name")).partition(".")
                failed.append((program or str(case.get("name")), text))
            elif case.find("skipped") is None:
                passed += 1
    return passed, failed


def main() -> int:
    name, logs = sys.argv[1], pathlib.Path(sys.argv[2])
    try:
        root = tree.parse(logs / "testlog.junit.xml").getroot()
        lines = (logs / "testlog.json").read_text().splitlines()
        programs = [json.loads(line) for line in lines]
    except (OSError, ValueError, tree.ParseError) as problem:
        print(f"FAILED  {name}: no test log: {problem}")
        print("0 1")
        return 1
    passed, failed = count_cases(root)
    told = {program for program, _ in failed}
    for program in programs:
        title = program["name"].rpartition(" / ")[2]
        if program["result"] not in GOOD and title not in told:
            failed.append((title, f"{title}: {program['result']}, "
                           f"ended with status {program['returncode']}"))
    if passed + len(failed) == 0:
        failed.append((name, "the log names no test"))
    for _, text in failed:
        print(f"FAILED  {name}: {text}")
    print(f"{passed} {len(failed)}")
    return 0 if not failed else 1


if __name__ == "__main__":
    sys.exit(main())
