"""Runs the cells of notebooks one after the other, as a kernel would, and sees that none holds outputs.

usage: run_notebook.py FILE.ipynb...
"""

import json
import os
import sys
import traceback

os.environ.setdefault("MPLBACKEND", "agg")


def run(path):
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    space = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        if cell["outputs"] or cell["execution_count"] is not None:
            sys.exit(f"{path}: cell {number} holds outputs: clear them before they are committed")
        try:
            exec(compile("".join(cell["source"]), f"{path}, cell {number}", "exec"), space)
        except Exception:
            traceback.print_exc()
            sys.exit(f"{path}: cell {number} failed")
    print(f"{path}: {len(cells)} cells")


for name in sys.argv[1:]:
    run(name)
