#!/usr/bin/env python3
"""The gate of the machine code lets no planted fault through.

scripts/check_sass.py is given machine code as cuobjdump prints it, written here, and a table made of it; then one
fault at a time. scripts/check_cuda runs in a tree of its own, whose compiler and tools are shell scripts.
Called with the source tree.
"""
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
ROOT = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import check_sass  # noqa: E402
import tap  # noqa: E402

LOOP = ["LDGSTS.E.BYPASS.128 [R2], desc[UR4][R4.64]", "HGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24, gsb0",
        "WARPGROUP.DEPBAR.LE gsb0, 0x1", "FADD R2, R3, R4"]
KERNELS = {
    ("sm_90a", "wide_gemm_kernel(gpu_gemm)"): ["MOV R1, c[0x0][0x28]", *LOOP, *["FFMA R1, R2, R3, R4"] * 28, "LOOP", "EXIT"],
    ("sm_90a", "wide_kernel(gpu_attention)"): [
        "MOV R1, c[0x0][0x28]", "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], !UPT, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x1",
        "MUFU.EX2 R3, R4", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "LOOP", "EXIT"],
    ("sm_80", "void temporal_kernel<128, false>(gpu_temporal)"): [
        *["LDG.E.128 R4, [R2.64]"] * 4, "LDG.E R8, [R2.64]", *["FFMA R1, R2, R3, R4"] * 30, "EXIT"],
}


def sass(kernels):
    """The text of cuobjdump -sass; LOOP is a branch to the second instruction."""
    lines = []
    for (arch, name), texts in kernels.items():
        lines += [f"arch = {arch}", f"\t\tFunction : {name}"]
        for number, text in enumerate(texts):
            text = "@P0 BRA 0x10" if text == "LOOP" else text
            lines.append(f"        /*{16 * number:04x}*/                   {text} ;       /* 0x0 */")
    return "\n".join(lines) + "\n"


class Judge:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.table = Path(self.folder.name) / "table.txt"
        assert self.of(KERNELS, "--write")[0] == 0
        self.written = self.table.read_text()

    def of(self, kernels, *options):
        path = Path(self.folder.name) / "code.sass"
        path.write_text(sass(kernels))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = check_sass.main(["--table", str(self.table), "--sass", str(path), *options])
        return status, said.getvalue()

    def finds(self, kernels, fault):
        status, said = self.of(kernels)
        assert status == 1 and re.search(fault, said), (fault, status, said)


def changed(name, edit):
    """The kernels, one of them with its instructions edited."""
    return {key: edit(list(texts)) if name in key[1] else texts for key, texts in KERNELS.items()}


def swapped(old, new):
    return lambda texts: [text.replace(old, new) for text in texts]


def machine_code_that_the_table_is_of_passes(judge):
    status, said = judge.of(KERNELS)
    assert status == 0 and "0 faults" in said, said
    assert "temporal_kernel<128, false>" in judge.written and " 1,0 " in judge.written, judge.written


def renamed_kernel_is_a_fault_twice(judge):
    renamed = {(arch, name.replace("wide_kernel", "broad_kernel")): texts for (arch, name), texts in KERNELS.items()}
    judge.finds(renamed, r"wide_kernel sm_90a: the table has it, the machine code has not")
    judge.finds(renamed, r"broad_kernel sm_90a: the table has no row of it")


def kernel_without_products_is_not_dropped(judge):
    gone = {key: texts for key, texts in KERNELS.items() if "temporal" not in key[1]}
    gone["sm_80", "other_kernel(int)"] = ["EXIT"]
    judge.finds(gone, r"temporal_kernel<128, false> sm_80: the table has it")
    judge.finds(changed("temporal", lambda texts: ["STL [R1], R2", *texts[1:]]), r"temporal.*1 accesses of local memory")


def products_that_wait_for_each_other_are_found(judge):
    judge.finds(changed("wide_gemm", swapped("gsb0, 0x1", "gsb0, 0x0")),
                r"wide_gemm_kernel sm_90a: waits for products that leave 0 groups under way, expected 1")
    judge.finds(changed("wide_kernel", swapped("gsb0, 0x1", "gsb0, 0x0")), r"wide_kernel sm_90a: .*leave 0,0 .*expected 1,0")
    late = changed("wide_kernel", lambda texts: [*texts[:3], texts[4], texts[3], *texts[5:]])
    judge.finds(late, r"1 of 1 exponentials stand behind the last wait")


def budgets_of_instructions_hold_in_both_directions(judge):
    more = changed("temporal", lambda texts: ["FADD R1, R2, R3"] * 4 + texts)
    judge.finds(more, r"temporal.* 40 instructions, expected at most 38")
    fewer = changed("temporal", lambda texts: texts[:4] + texts[10:])
    judge.finds(fewer, r"temporal.* 30 instructions, expected about 36: bring the table up to date")
    inner = changed("wide_gemm", lambda texts: texts[:1] + ["FADD R1, R2, R3"] * 3 + texts[1:])
    judge.finds(inner, r"wide_gemm.* 36 instructions in its loop, expected at most 35")


def narrow_accesses_and_lost_products_are_found(judge):
    judge.finds(changed("wide_gemm", swapped("LDGSTS.E.BYPASS.128", "LDGSTS.E.BYPASS.64")),
                r"wide_gemm.* 1 accesses of global memory of fewer than 16 bytes, expected 0")
    judge.finds(changed("temporal", swapped("LDG.E.128", "LDG.E.64")), r"temporal.* 5 accesses .*expected 1")
    judge.finds(changed("wide_gemm", lambda texts: [*texts[:2], texts[2], *texts[2:]]), r"2 products in its loop, expected 1")
    called = changed("wide_gemm", lambda texts: [*texts[:4], "CALL.REL.NOINC 0x240", *texts[5:], "RET.REL.NODEC R2 0x0"])
    judge.finds(called, r"a call at 0x40 within a loop that multiplies")


def table_that_holds_nothing_of_the_machine_code_fails(judge):
    other = {("sm_75", name): texts for (_, name), texts in KERNELS.items()}
    judge.finds(other, r"none of sm_75 is in .*: no kernel was held against it")
    judge.table.write_text(judge.written + "sm_80 many 0 0 0 - odd_kernel\n")
    try:
        judge.of(KERNELS)
        raise AssertionError("a table with a word for a count was read")
    except SystemExit as fault:
        assert re.search(r"table.txt:\d+: expected a machine code, four counts", str(fault)), fault
    judge.table.write_text(judge.written)


FAKE = {
    "nvcc": '''[ "$1" = --list-gpu-code ] && { echo sm_80; exit; }
while [ $# -gt 0 ]; do [ "$1" = -o ] && touch "$2"; shift; done''',
    "g++": '''while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; [ "$1" = -MF ] && list=$2; shift; done
printf '#!/bin/sh\\necho asked\\n' >"$out"; chmod +x "$out"; echo "$out" >>compiled
[ -z "${list:-}" ] || printf '%s: tests/cuda/wgmma_layout.cpp \\\\\\n tests/simt/wgmma_fragments.h\\n' "$out" >"$list"''',
    "cuobjdump": 'echo "arch = sm_80"',
}


def tree(folder):
    """As much of the source tree as scripts/check_cuda reads; the tools of PyPI are there."""
    for name in ("scripts/check_cuda", "scripts/cuda_archs", "kernels/capability.h"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    site = folder / "build-test/cuda-tools/lib/python3/site-packages"
    for name in ("kernels/cuda/common/gemm.cu", "tests/cuda/wgmma_layout.cpp", "tests/cuda/occupancy.cpp",
                 "tests/cuda/reference.cu", "tests/simt/wgmma_fragments.h", "tests/simt/instructions.cu"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (site / "cutlass_library/source/include").mkdir(parents=True)
    scripts = {f"path/{name}": FAKE[name] for name in ("nvcc", "g++")}
    scripts |= {str((site / "nvidia/cu13/bin/cuobjdump").relative_to(folder)): FAKE["cuobjdump"],
                "build-test/cuda-tools/bin/pip": "exit 0", "scripts/check_sass.py": "exit 0"}
    for name, text in scripts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)


def check_cuda(folder):
    path = f"{folder / 'path'}:{os.environ['PATH']}"
    done = subprocess.run(["scripts/check_cuda"], cwd=folder, env=os.environ | {"PATH": path}, text=True, capture_output=True)
    listed = folder / "compiled"
    compiled = listed.read_text() if listed.exists() else ""
    listed.unlink(missing_ok=True)
    return done.returncode, done.stdout + done.stderr, "wgmma_layout" in compiled


def edit_of_a_header_of_the_layouts_compiles_them_again(_):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree(folder)
        assert check_cuda(folder)[::2] == (0, True)
        status, said, compiled = check_cuda(folder)
        assert (status, compiled) == (0, False), said
        newer = (folder / "build-test/cuda-tools/wgmma_layout").stat().st_mtime + 10
        os.utime(folder / "tests/simt/wgmma_fragments.h", (newer, newer))
        assert check_cuda(folder)[2]


def packages_out_of_reach_fail(_):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree(folder)
        (folder / "build-test/cuda-tools/bin/pip").write_text("#!/bin/bash\necho 'no route to host'; exit 1\n")
        status, said, _ = check_cuda(folder)
        assert status == 1 and "no route to host" in said and "machine code and layouts not checked" in said, said


if __name__ == "__main__":
    sys.exit(tap.run([machine_code_that_the_table_is_of_passes, renamed_kernel_is_a_fault_twice,
                      kernel_without_products_is_not_dropped, products_that_wait_for_each_other_are_found,
                      budgets_of_instructions_hold_in_both_directions, narrow_accesses_and_lost_products_are_found,
                      table_that_holds_nothing_of_the_machine_code_fails,
                      edit_of_a_header_of_the_layouts_compiles_them_again, packages_out_of_reach_fail], Judge()))
