#!/usr/bin/env python3
"""Counts the test cases of a meson test run: prints each failed one with what its program said of
it, then "PASSED FAILED".

Usage: count_tests.py NAME LOG, the run's log without its ending. Cases come from LOG.junit.xml; how each
program ended comes from LOG.json, because a program that dies after its last
case, or before it, has no failed case of its own. A missing log counts as one failure.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as tree

GOOD = {"OK", "SKIP", "EXPECTEDFAIL"}
RESULTS = ("ok ", "not ok ", "1..")
SAID_LINES = 12  # of a failed case, or of a program that ended badly


def said_of(output: str, case: str) -> list[str]:
    """The lines around a case's "not ok", between the results of the cases before and behind it; where it
    has no such line, the program's last lines, its "not ok" among them."""
    lines = output.splitlines()
    ends = [i for i, line in enumerate(lines)
            if line.startswith("not ok ") and line.endswith(f"- {case.partition(' - ')[2]}")]
    if not ends:
        return [line for line in lines if not line.startswith("ok ")][-SAID_LINES:]
    at = ends[0]
    begin, end = at, at + 1
    while begin > 0 and not lines[begin - 1].startswith(RESULTS):
        begin -= 1
    while end < len(lines) and not lines[end].startswith(RESULTS):
        end += 1
    return (lines[begin:at] + lines[at + 1:end])[-SAID_LINES:]


def count_cases(root: tree.Element) -> tuple[int, list[tuple[str, str]]]:
    """Number of cases that passed, and the failed ones: (program, case)."""
    passed = 0
    failed = []
    for suite in root.iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                # A program without cases is itself the case; else its suite is PROJECT.PROGRAM, or
                # PROJECT.PROJECT:SUITES / PROGRAM.
                program = str(suite.get("name")).partition(".")[2].rpartition(" / ")[2]
                title = str(case.get("name"))
                failed.append((program or title.rpartition(" / ")[2], title))
            elif case.find("skipped") is None:
                passed += 1
    return passed, failed


def main() -> int:
    name, log = sys.argv[1], sys.argv[2]
    try:
        root = tree.parse(f"{log}.junit.xml").getroot()
        lines = pathlib.Path(f"{log}.json").read_text().splitlines()
        programs = [json.loads(line) for line in lines]
    except (OSError, ValueError, tree.ParseError) as problem:
        print(f"FAILED  {name}: no test log: {problem}")
        print("0 1")
        return 1
    passed, failed = count_cases(root)
    outputs = {}
    told = {program for program, case in failed if case.rpartition(" / ")[2] != program}
    failed = [(program, case) for program, case in failed if program in told]
    for program in programs:
        title = program["name"].rpartition(" / ")[2]
        outputs[title] = program.get("stdout", "")
        errors = program.get("stderr", "").splitlines()[-SAID_LINES:]
        outputs[title] += "".join(f"\n{line}" for line in errors if title not in told)
        if program["result"] not in GOOD and title not in told:
            failed.append((title, f"{program['result']}, ended with status "
                           f"{program['returncode']}"))
    if passed + len(failed) == 0:
        failed.append((name, "the log names no test"))
    for program, case in failed:
        print(f"FAILED  {name}: {program}: {case}" if case != program else f"FAILED  {name}: {program}")
        for line in said_of(outputs.get(program, ""), case):
            print(f"        {line}")
    print(f"{passed} {len(failed)}")
    return 0 if not failed else 1


if __name__ == "__main__":
    sys.exit(main())
