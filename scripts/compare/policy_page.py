#!/usr/bin/env python3
"""From `pip install` of a policy to its report and its replay, as docs/alpasim.md has it: the first block of commands, run as
it stands, in bash, in an empty folder, with nothing but an installed Swerve.

Usage: policy_page.py BIN       BIN: the folder of an installed `swerve`; PyPI is asked for the policy
Says the seconds of each line. Exit 1: a line fails, the report has no branches or no price, a replay is another, or all of
it takes more than ten minutes.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT, BOUND_S = pathlib.Path(__file__).resolve().parent.parent.parent, 600


def main():
    page = (ROOT / "docs" / "alpasim.md").read_text()
    block = re.search(r"\n\n((?:    .*\n)+)", page[page.index("## From a policy"):]).group(1)
    lines = [line[4:] for line in block.splitlines()]
    script = "set -m\n" + "\n".join(f"{line}\necho \"line {number}: status $?, $SECONDS s\"" for number, line in enumerate(lines, 1))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="swerve-policy-") as home:
        run = subprocess.run(["bash", "-c", script], cwd=home, env={"PATH": f"{sys.argv[1]}:/usr/local/bin:/usr/bin:/bin", "HOME": home},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    spent_s = time.monotonic() - began
    ended = re.findall(r"^line (\d+): status (\d+), \d+ s$", run.stdout, re.M)
    for number, status in ended:
        print(f"status {status}  {lines[int(number) - 1]}")
    wrong = [what for what, fits in (
        ("every line ends with 0", [status for _, status in ended] == ["0"] * len(lines)),
        ("a report of branches, with its price", re.search(r"branches pass .*\$/1000 miles", run.stdout) and re.search(r"bill: \$0\.\d+", run.stdout)),
        ("replays are identical", re.search(r"^[1-9]\d* identical, 0 different$", run.stdout, re.M)),
        (f"at most {BOUND_S} s", spent_s <= BOUND_S)) if not fits]
    print(f"{spent_s:.0f} s" + "".join(f"; expected: {what}" for what in wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
