#!/usr/bin/env python3
"""Goal: the tutorial works as it is written. Method: its code blocks are taken from the page in order; a
block with a file's name is saved, one of shell is run, all in one folder.

Usage: test_tutorial.py SWERVE SOURCE_ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SWERVE = pathlib.Path(os.path.realpath(sys.argv[1]))
PAGE = pathlib.Path(sys.argv[2], "docs/tutorial.md").read_text()


def main():
    blocks = re.findall(r"^```(\w+) ?([\w.]*)\n(.*?)^```$", PAGE, re.S | re.M)
    script = ["set -euo pipefail"]
    for number, (language, name, text) in enumerate(blocks):
        if name:
            script.append(f"cat >{name} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK")
        else:
            assert language == "sh", language
            script.append(f"{text}echo 'ok {number + 1} - block {number + 1}' >&3")
    shells = sum(1 for _, name, _ in blocks if not name)
    assert shells >= 6, "blocks of shell"
    with tempfile.TemporaryDirectory(prefix="swerve-tutorial-") as work:
        path = f"{SWERVE.parent}:{os.environ['PATH']}"
        done = subprocess.run(["bash", "-c", "exec 3>steps\n" + "\n".join(script)], cwd=work, timeout=100,
                              env={**os.environ, "PATH": path}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        steps = pathlib.Path(work, "steps").read_text().splitlines()
        made = [name for name in ("before.html", "compared.html", "junit.xml", "summary.markdown", "outcomes.csv",
                                  "drive.mcap") if pathlib.Path(work, name).stat().st_size > 100] \
            if done.returncode == 0 else []
    fixed = re.search(r"main lines: (\d+) fixed, 0 broken", done.stdout)
    results = [(f"{len(steps)} of {shells} blocks of shell", done.returncode == 0 and len(steps) == shells),
               ("the fix fixes something and breaks nothing", bool(fixed) and int(fixed.group(1)) > 0),
               ("every file that it speaks of is there", len(made) == 6)]
    print(f"1..{len(results)}")
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not all(good for _, good in results):
        print("# " + done.stdout[-3000:].replace("\n", "\n# "))
        sys.exit(1)


main()
