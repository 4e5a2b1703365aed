#!/usr/bin/env python3
"""Judges what ptxas made of the kernels that take the time: the machine code in object files of nvcc.

Rules, for each kernel that multiplies on tensor cores and each machine code it was compiled for:
  no local memory anywhere (LDL, STL: spills, or arrays that found no registers);
  no call within a loop that multiplies;
  in the loop of attention on a warpgroup (wide_kernel, sm_90a) the last exponential stands before the last
  wait for products: else the softmax of a tile and the values' product of the last do not run side by side.

Use: check_sass.py --cuobjdump FILE [--sass FILE..] OBJECT..
--sass: what cuobjdump printed, instead of an object. Prints a line per kernel; exits 1 where a rule is broken.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass, field

MULTIPLIES = re.compile(r"^(HMMA|HGMMA|QMMA|QGMMA|OMMA)\b")
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;")
BRANCH = re.compile(r"^BRA\S*(?:\s+!?U?P\w+,)?\s+(?:\S+,\s*)?0x([0-9a-f]+)")
CALL = re.compile(r"^CALL\S*\s+(?:`?\(?\S*\)?,\s*)?0x([0-9a-f]+)")
OVERLAPS = ("wide_kernel", "sm_90a")


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
        kernel.name = re.sub(r"^void ", "", name)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--sass", action="append", default=[])
    parser.add_argument("objects", nargs="*")
    options = parser.parse_args()
    texts = [open(path, encoding="utf-8").read() for path in options.sass]
    for path in options.objects:
        texts.append(subprocess.run([options.cuobjdump, "-sass", path], text=True, capture_output=True,
                                    check=True).stdout)
    kernels = [kernel for text in texts for kernel in read_kernels(text)]
    kernels = [k for k in kernels if any(MULTIPLIES.match(text) for _, text in k.lines)]
    if not kernels:
        print("no kernel with products on tensor cores: nothing was checked")
        return 1
    demangle(kernels)
    bad = 0
    for kernel in kernels:
        faults = judge(kernel)
        bad += bool(faults)
        for fault in faults:
            print(f"{kernel.name} {kernel.arch}: {fault}")
    archs = sorted({kernel.arch for kernel in kernels})
    overlapping = any(k.name.startswith(OVERLAPS[0]) and k.arch == OVERLAPS[1] for k in kernels)
    if not overlapping:
        print(f"{OVERLAPS[0]} of {OVERLAPS[1]} is not among them: its overlap was not checked")
    print(f"{len(kernels)} kernels on tensor cores of {', '.join(archs)}: {bad} break a rule")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
