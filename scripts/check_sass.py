#!/usr/bin/env python3
"""Judges what ptxas made of the kernels that take the time: the machine code in object files of nvcc.

Rules, for each kernel of the files and each machine code it was compiled for:
  no local memory anywhere (LDL, STL: spills, or arrays that found no registers), where a kernel may multiply
  on tensor cores or is in the table;
  no call within a loop that multiplies;
  in the loop of attention on a warpgroup (wide_kernel, sm_90a) the last exponential stands before the last
  wait for products: else the softmax of a tile and the values' product of the last do not run side by side.
For the machine codes that the table has (kernels/cuda/machine_code.txt) it holds a row of every kernel, and:
  a row without a kernel, or a kernel without a row, is a fault: a kernel that was renamed is not left out;
  instructions, of the kernel up to its last EXIT and of its loop (the one that multiplies most, else the
  longest), are at most a sixteenth above the row, and at most an eighth below it, where the row is to be brought
  up to date;
  products in that loop, waits for products there (how many groups each leaves under way) and accesses of
  global memory of fewer than 16 bytes are the row's; a kernel without such a loop counts as a whole.

Use: check_sass.py --cuobjdump FILE [--table FILE] [--write] [--sass FILE..] OBJECT..
--sass: what cuobjdump printed, instead of an object. --write: makes the table of what is found, for a change
that means it. Prints a line per fault; exits 1 where a rule is broken.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

MULTIPLIES = re.compile(r"^(HMMA|HGMMA|QMMA|QGMMA|OMMA)\b")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;")
BRANCH = re.compile(r"^BRA\S*(?:\s+!?U?P\w+,)?\s+(?:\S+,\s*)?0x([0-9a-f]+)")
CALL = re.compile(r"^CALL\S*\s+(?:`?\(?\S*\)?,\s*)?0x([0-9a-f]+)")
OVERLAPS = ("wide_kernel", "sm_90a")
WAIT = re.compile(r"^WARPGROUP\.DEPBAR\.LE\s+gsb0,\s*0x([0-9a-f]+)")
GLOBAL = re.compile(r"^(?:LDG|STG|LDGSTS)\.(\S+)")
TABLE = Path(__file__).resolve().parent.parent / "kernels/cuda/machine_code.txt"
TABLE_HEAD = """\
# Machine code of the kernels that take the time, as scripts/check_sass.py --write found it (scripts/check_cuda).
# Columns: machine code; instructions of the kernel up to its last EXIT; those of its loop, the one that multiplies
# most, else the longest (0: it has none); products on tensor cores in that loop; accesses of global memory of fewer
# than 16 bytes in it; waits for products of a warpgroup in it, each as the groups that it leaves under way (-: none);
# kernel. Of a kernel without a loop the last three are of the whole.
"""


@dataclass
class Kernel:
    arch: str
    name: str
    lines: list[tuple[int, str]] = field(default_factory=list)  # address, text

    def loops(self) -> list[list[tuple[int, str]]]:
        """Bodies of branches backwards, but for the one onto itself that ends each kernel."""
        found = []
        for at, text in self.lines:
            branch = BRANCH.match(text)
            if branch and int(branch[1], 16) < at:
                start = int(branch[1], 16)
                found.append([line for line in self.lines if start <= line[0] <= at])
        return found

    def main_loop(self) -> list[tuple[int, str]]:
        """The loop with most products, and of those the shortest; where none multiplies, the longest."""
        def products(loop):
            return sum(bool(MULTIPLIES.match(text)) for _, text in loop)
        return max(self.loops(), key=lambda loop: (products(loop), -len(loop) if products(loop) else len(loop)),
                   default=[])

    def body(self) -> list[tuple[int, str]]:
        """All up to the last EXIT: behind it stand subroutines, lanes that have gone apart, and filling."""
        end = max((at for at, text in self.lines if text.startswith("EXIT")), default=self.lines[-1][0])
        return [line for line in self.lines if line[0] <= end]


@dataclass(frozen=True)
class Row:
    """Columns of the table, but for its key."""
    instructions: int
    loop: int
    products: int
    narrow: int
    waits: str

    @staticmethod
    def of(kernel: Kernel) -> Row:
        loop = kernel.main_loop()
        texts = [text for _, text in loop or kernel.lines]
        waits = [str(int(found[1], 16)) for text in texts if (found := WAIT.match(text))]
        return Row(len(kernel.body()), len(loop), sum(bool(MULTIPLIES.match(text)) for text in texts),
                   sum(bool(found := GLOBAL.match(text)) and "128" not in found[1].split(".") for text in texts),
                   ",".join(waits) or "-")


def read_table(path: Path) -> dict[tuple[str, str], Row]:
    table = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#") or not line.strip():
            continue
        cells = line.split(None, 6)
        if len(cells) != 7 or not all(cell.isdigit() for cell in cells[1:5]):
            sys.exit(f"{path}:{number}: expected a machine code, four counts, waits and a kernel, found '{line}'")
        key = cells[0], cells[6]
        if key in table:
            sys.exit(f"{path}:{number}: {cells[6]} of {cells[0]} is there twice")
        table[key] = Row(*(int(cell) for cell in cells[1:5]), cells[5])
    return table


def write_table(path: Path, kernels: list[Kernel]) -> None:
    rows = []
    for kernel in sorted(kernels, key=lambda k: (k.arch, k.name)):
        row = Row.of(kernel)
        rows.append(f"{kernel.arch:<7}{row.instructions:>5}{row.loop:>5}{row.products:>4}{row.narrow:>4} {row.waits:<4} "
                    f"{kernel.name}\n")
    path.write_text(TABLE_HEAD + "".join(rows), encoding="utf-8")


def against_row(kernel: Kernel, row: Row) -> list[str]:
    """Differences of a kernel from its row."""
    found = Row.of(kernel)
    faults = []
    for what, allowed, there in (("instructions", row.instructions, found.instructions),
                                 ("instructions in its loop", row.loop, found.loop)):
        if there > allowed + allowed // 16:
            faults.append(f"{there} {what}, expected at most {allowed + allowed // 16}")
        elif there < allowed - allowed // 8:
            faults.append(f"{there} {what}, expected about {allowed}: bring the table up to date")
    if found.products != row.products:
        faults.append(f"{found.products} products in its loop, expected {row.products}")
    if found.narrow > row.narrow:
        faults.append(f"{found.narrow} accesses of global memory of fewer than 16 bytes, expected {row.narrow}")
    if found.waits != row.waits:
        faults.append(f"waits for products that leave {found.waits} groups under way, expected {row.waits}: "
                      "products wait for each other")
    return faults


def against_table(kernels: list[Kernel], table: dict[tuple[str, str], Row]) -> list[str]:
    """Faults of all kernels whose machine code the table has; a row must have its kernel."""
    faults = []
    archs = {kernel.arch for kernel in kernels}
    there = {(kernel.arch, kernel.name): kernel for kernel in kernels}
    for key, row in table.items():
        if key[0] not in archs:
            continue
        kernel = there.pop(key, None)
        if kernel is None:
            faults.append(f"{key[1]} {key[0]}: the table has it, the machine code has not")
        else:
            faults += [f"{key[1]} {key[0]}: {fault}" for fault in against_row(kernel, row)]
    for arch, name in there:
        if arch in {key[0] for key in table}:
            faults.append(f"{name} {arch}: the table has no row of it")
    return faults


def subroutine_calls(kernel: Kernel, loop: list[tuple[int, str]]) -> list[int]:
    """Subroutines stand behind the kernel's last EXIT; a CALL.REL.NOINC to elsewhere is a plain jump."""
    end = max((at for at, text in kernel.lines if text.startswith("EXIT")), default=0)
    return [at for at, text in loop if (call := CALL.match(text)) and int(call[1], 16) > end]


def read_kernels(text: str) -> list[Kernel]:
    kernels: list[Kernel] = []
    arch = ""
    for line in text.splitlines():
        if line.startswith("arch = "):
            arch = line[7:].strip()
        elif line.strip().startswith("Function :"):
            kernels.append(Kernel(arch, line.split(":", 1)[1].strip()))
        elif kernels:
            found = INSTRUCTION.match(line)
            if found:
                kernels[-1].lines.append((int(found[1], 16), found[2]))
    return kernels


def demangle(kernels: list[Kernel]) -> None:
    names = "\n".join(kernel.name for kernel in kernels)
    plain = subprocess.run(["c++filt"], input=names, text=True, capture_output=True, check=True).stdout
    for kernel, name in zip(kernels, plain.splitlines()):
        kernel.name = re.sub(r"\(\w+\)$", "", re.sub(r"^void ", "", name))


def overlap(kernel: Kernel) -> list[str]:
    """Faults of attention's loop: products are started, then exponentials, then the last wait."""
    loops = [loop for loop in kernel.loops() if any(text.startswith("HGMMA") for _, text in loop)]
    if not loops:
        return ["no loop with products of a warpgroup"]
    loop = min(loops, key=len)
    waits = [at for at, text in loop if text.startswith("WARPGROUP.DEPBAR")]
    exponentials = [at for at, text in loop if text.startswith("MUFU.EX2")]
    if len(waits) < 2 or not exponentials:
        return [f"expected two waits and exponentials in the loop, found {len(waits)} and {len(exponentials)}"]
    late = [at for at in exponentials if at > waits[-1]]
    if late:
        return [f"{len(late)} of {len(exponentials)} exponentials stand behind the last wait, "
                f"at 0x{waits[-1]:x}: the softmax does not run beside the values' product"]
    return []


def judge(kernel: Kernel) -> list[str]:
    faults = []
    local = [text for _, text in kernel.lines if re.match(r"(LDL|STL)\b", text)]
    if local:
        faults.append(f"{len(local)} accesses of local memory: {local[0]}")
    for loop in kernel.loops():
        multiplies = any(MULTIPLIES.match(text) for _, text in loop)
        calls = subroutine_calls(kernel, loop)
        if multiplies and calls:
            faults.append(f"a call at 0x{calls[0]:x} within a loop that multiplies")
    if kernel.name.startswith(OVERLAPS[0]) and kernel.arch == OVERLAPS[1]:
        faults += overlap(kernel)
    return faults


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--sass", action="append", default=[])
    parser.add_argument("objects", nargs="*")
    options = parser.parse_args(words)
    texts = [Path(path).read_text(encoding="utf-8") for path in options.sass]
    for path in options.objects:
        texts.append(subprocess.run([options.cuobjdump, "-sass", path], text=True, capture_output=True,
                                    check=True).stdout)
    kernels = [kernel for text in texts for kernel in read_kernels(text)]
    if not kernels:
        print("no kernel in what was given: nothing was checked")
        return 1
    demangle(kernels)
    if options.write:
        write_table(options.table, kernels)
    table = read_table(options.table)
    archs = sorted({kernel.arch for kernel in kernels})
    held = sorted({arch for arch, _ in table} & set(archs))
    faults = [f"{kernel.name} {kernel.arch}: {fault}" for kernel in kernels for fault in judge(kernel)]
    faults += against_table(kernels, table)
    if not held:
        faults.append(f"none of {', '.join(archs)} is in {options.table}: no kernel was held against it")
    for fault in faults:
        print(fault)
    print(f"{len(kernels)} kernels of {', '.join(archs)}, those of {', '.join(held)} against the table: "
          f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
