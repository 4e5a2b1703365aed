#!/usr/bin/env python3
"""Counts the test cases of a meson JUnit log: prints each failed one, then "PASSED FAILED".

Usage: count_tests.py NAME JUNIT.xml. A missing log counts as one failure.
"""
import sys
import xml.etree.ElementTree as tree


def main() -> int:
    name, path = sys.argv[1], sys.argv[2]
    try:
        root = tree.parse(path).getroot()
    except (OSError, tree.ParseError) as problem:
        print(f"FAILED  {name}: no test log: {problem}")
        print("0 1")
        return 1
    passed = failed = 0
    for suite in root.iter("testsuite"):
        cases = list(suite.iter("testcase"))
        bad = 0
        for case in cases:
            if case.find("failure") is not None or case.find("error") is not None:
                bad += 1
                print(f"FAILED  {name}: {suite.get('name')}: {case.get('name')}")
            elif case.find("skipped") is None:
                passed += 1
        # A program that crashed before printing its plan has no failed case of its own.
        if bad == 0 and int(suite.get("failures", 0)) + int(suite.get("errors", 0)) > 0:
            bad = 1
            print(f"FAILED  {name}: {suite.get('name')} ended badly")
        failed += bad
    if passed + failed == 0:
        print(f"FAILED  {name}: the log names no test")
        failed = 1
    print(f"{passed} {failed}")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
