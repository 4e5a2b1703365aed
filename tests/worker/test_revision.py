#!/usr/bin/env python3
"""Goal: the simulation's revision is another one whenever something changed on the path from a scenario's text to the
row of an outcome, and only then: a source that moves, is commented or wrapped otherwise leaves it as it is.
Method: symbols and includes of a build. What counts may refer to nothing that is excluded, but where EXCEPTIONS says
why; whatever the program's own entries reach counts. Then a copy of the sources, in which one thing is changed at a
time.

Usage: test_revision.py SWERVE SOURCE_ROOT BUILD_ROOT FLAG...
"""
import collections
import fnmatch
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SWERVE = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(os.path.realpath(sys.argv[2]))
BUILD = pathlib.Path(os.path.realpath(sys.argv[3]))
FLAGS = sys.argv[4:]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "scripts")]
import revision  # noqa: E402
import tap  # noqa: E402

# Most files are the same from one question to the next.
revision.tokens = functools.lru_cache(None)(revision.tokens)
revision.is_excluded = functools.lru_cache(None)(revision.is_excluded)

# Functions at which drives begin and end, also those that are entered by a table of functions alone.
ENTRIES = ["claim_loop_run", "scenario_load_text", "job_run_create", "runner_tick", "outcome_build", "trace_pack",
           "snapshot_png", "outcome_decode", "world_golden_ops", "world_exec_ops", "world_onnx_ops", "world_replay_ops",
           "world_student_ops"]
# Generated sources that they reach.
# The latter two of a .proto and of a network, which count.
GENERATED = {"worker/revision.c", "schemas/proto/egodriver.pb-c.c", "engine/token_weights.c"}
# References of what counts to what does not: from, to, why they decide nothing that an outcome says.
EXCEPTIONS = [
    ("worker/run/claim_loop*", "worker/run/lease_keeper.*", "leases are kept alive beside the drives"),
    ("worker/run/claim_loop*", "worker/run/unstarted.*", "which jobs are left to other workers"),
    ("worker/run/*", "store/api/*", "the store's table of functions; keys of jobs"),
    ("worker/golden/golden_library.h", "store/api/*", "the store's table of functions"),
]


def is_exception(user, used):
    return any(fnmatch.fnmatchcase(user, row[0]) and fnmatch.fnmatchcase(used, row[1]) for row in EXCEPTIONS)


# ---- the build ----


def commands():
    """(source, object, command) of the product's objects, the source by its name in the tree or the build."""
    for row in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(os.path.realpath(os.path.join(row["directory"], row["file"])))
        built = BUILD / row["output"]
        tree = BUILD if path.is_relative_to(BUILD) else ROOT
        name = path.relative_to(tree).as_posix()
        if not name.startswith("tests/") and built.exists():
            yield name, built, row["command"]


@functools.lru_cache(None)
def references():
    """By source: the sources that define what it leaves open, with the symbols; and who defines each symbol."""
    source_of = {str(built): name for name, built, _ in commands()}
    listed = subprocess.run(["nm", "-A", "-P", *source_of], capture_output=True, text=True, check=True).stdout
    defined, wanted = collections.defaultdict(set), collections.defaultdict(set)
    for line in listed.splitlines():
        built, symbol = line.split(": ", 1)
        name, kind = symbol.split()[:2]
        if kind in "Uw":
            wanted[source_of[built]].add(name)
        elif kind.isupper():
            defined[name].add(source_of[built])
    used = collections.defaultdict(lambda: collections.defaultdict(set))
    for source, names in wanted.items():
        for name in names:
            for other in defined[name] - {source}:
                used[source][other].add(name)
    return used, defined


def stray(is_excluded):
    """References of what counts to what does not, that nobody explained."""
    sources = set(revision.sources(ROOT))
    return [f"{source} uses {', '.join(sorted(names))} of {other}"
            for source, others in references()[0].items() if source in sources and not is_excluded(source)
            for other, names in others.items() if is_excluded(other) and not is_exception(source, other)]


def what_counts_refers_to_nothing_that_does_not():
    found = stray(revision.is_excluded)
    assert not found, "EXCLUDED in scripts/revision.py is false:\n" + "\n".join(found)


def an_excluded_file_on_the_path_is_found():
    for name in ("engine/trace/trace.c", "worker/wire/planner_wire.c", "worker/golden/golden_library.c",
                 "schemas/scenario_map_json.c", "schemas/storyboard/storyboard_json.c", "worker/run/outcome_build.c"):
        found = stray(lambda source: revision.is_excluded(source) or source == name)
        assert found and all(name in line for line in found), name


def all_that_drives_reach_counts():
    used, defined = references()
    waiting = set()
    for entry in ENTRIES:
        assert defined[entry], f"{entry}: no such function"
        waiting |= defined[entry]
    reached = set()
    while waiting:
        source = waiting.pop()
        reached.add(source)
        waiting |= {other for other in used[source] if not revision.is_excluded(other)} - reached
    lost = reached - set(revision.counted(ROOT)) - GENERATED
    assert not lost, f"on the path, and no source that counts: {sorted(lost)}"
    assert len(reached) > 200, f"only {len(reached)} sources are reached: is this the whole build?"


def what_counts_includes_nothing_that_does_not():
    sources = set(revision.sources(ROOT))
    exceptions = set()
    for source in (name for name in sources if not revision.is_excluded(name)):
        for other in re.findall(r'^\s*#\s*include\s*"([^"]*)"', (ROOT / source).read_text(), re.M):
            if other == "simt.h":  # the emulator's, in place of CUDA's
                continue
            other = re.sub(r"\.pb-c\.h$", ".proto", other)
            assert other in sources, f"{source} includes {other}, which is in none of the rooms"
            if revision.is_excluded(other):
                assert is_exception(source, other), f"{source} includes {other}, which is excluded"
                exceptions.add((source, other))
    used, _ = references()
    exceptions |= {(source, other) for source in used for other in used[source] if revision.is_excluded(other)}
    for row in EXCEPTIONS:
        assert any(fnmatch.fnmatchcase(source, row[0]) and fnmatch.fnmatchcase(other, row[1])
                   for source, other in exceptions), f"no such reference any more: {row}"


def every_row_names_something():
    names = revision.sources(ROOT)
    for row in revision.EXCLUDED:
        assert any(name.startswith(row) or fnmatch.fnmatchcase(name, row) for name in names), f"no such source: {row}"
    for pattern in revision.DATA:
        assert list(ROOT.glob(pattern)), f"no such file: {pattern}"


def all_is_compiled_with_the_flags_that_count():
    counted = set(revision.counted(ROOT))
    for name, _, command in commands():
        words = command.split()
        if name in counted:
            own = [flag for flag in FLAGS if (flag == "-fmad=false") == name.endswith(".cu")]
            missing = [flag for flag in own if flag not in words]
            assert not missing, f"{name} is compiled without {missing}"
            assert not {"-ffast-math", "-Ofast", "-ffp-contract=fast"} & set(words), name


def the_program_has_the_revision_of_its_sources():
    said = subprocess.run([SWERVE, "--version"], capture_output=True, text=True, check=True).stdout
    assert revision.revision(ROOT, FLAGS)[:12] in said, said
    assert revision.revision(ROOT, FLAGS[1:]) != revision.revision(ROOT, FLAGS)


# ---- copies ----


class Copy:
    """The rooms' code elsewhere, in which things change and change back."""

    def __init__(self, directory):
        self.root = pathlib.Path(directory) / "elsewhere"
        data = [path.relative_to(ROOT).as_posix() for pattern in revision.DATA for path in ROOT.glob(pattern)]
        for name in reversed(revision.sources(ROOT) + data):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.before = self.now()
        assert self.before == revision.revision(ROOT, FLAGS), "a copy has another revision"

    def now(self):
        return revision.revision(self.root, FLAGS)

    def changed(self, name, edit):
        """Whether an edit of a file changes the revision."""
        path = self.root / name
        kept = path.read_bytes()
        path.write_bytes(edit(kept.decode()).encode())
        assert path.read_bytes() != kept, f"{name} has nothing to edit"
        now = self.now()
        path.write_bytes(kept)
        return now != self.before


def in_copy(test):
    @functools.wraps(test)
    def run():
        with tempfile.TemporaryDirectory() as directory:
            test(Copy(directory))
    return run


@in_copy
def a_change_on_the_path_changes_it(copy):
    for name in ("worker/wire/planner_wire.c", "worker/wire/planner_wire.h", "worker/golden/golden_world.c",
                 "worker/golden/golden_library.h", "engine/trace/trace.c", "schemas/scenario_json.c",
                 "schemas/scenario_agent_json.c", "schemas/storyboard/storyboard_json.c", "worker/run/outcome_build.c",
                 "scenarios/resolve.c", "kernels/cuda/student/conv.cu", "engine/models/student.health.json"):
        assert copy.changed(name, lambda text: text + "int more;\n"), name
    for name in ("cli/main.c", "store/sql/lifecycle.c", "report/report.c"):
        assert not copy.changed(name, lambda text: text + "int more;\n"), name
    path = copy.root / "base/more.c"
    path.write_text("int more;\n")
    assert copy.now() != copy.before
    path.write_text("/* nothing */\n")
    (copy.root / "base/.#more.c").write_text("int more;\n")  # an editor's lock
    path.unlink()
    assert copy.now() == copy.before


@in_copy
def comments_and_layout_do_not_change_it(copy):
    edits = [
        lambda text: "/* // \" ' */ // it's \\\n still\n" + text,
        lambda text: text.replace("    ", "\t").replace("\n\n", "\n\n\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: re.sub(r"(?<=[;{}])\n\s*(?=\w)", " ", text),
        lambda text: re.sub(r"(?<=[,(]) ?(?=\w)", "\n            ", text),
    ]
    for number, edit in enumerate(edits):
        assert not copy.changed("worker/score/score_ttc.c", edit), number


@in_copy
def a_move_does_not_change_it(copy):
    """A header and its source to another room: its guard, and the includes of all, put in order again."""
    old, new = "engine/traffic/track", "worker/score/track"
    for suffix in (".c", ".h"):
        (copy.root / (old + suffix)).rename(copy.root / (new + suffix))
    users = 0
    for path in (copy.root / name for name in revision.sources(copy.root)):
        text = path.read_text()
        moved = text.replace(f'"{old}.h"', f'"{new}.h"').replace("SWERVE_ENGINE_TRAFFIC_TRACK_H", "SWERVE_WORKER_SCORE_TRACK_H")
        if moved != text:
            users += 1
            path.write_text(re.sub(r'(?:^#include "[^"]*"\n)+', lambda run: "".join(sorted(run.group().splitlines(True))),
                                   moved, flags=re.M))
    assert users > 4
    assert copy.now() == copy.before


# ---- tokens ----

SAME = [
    ("int a;", "int\ta /* b */ ; // c"),
    ("f(a, b);", "f(\n  a,\n  b\n);"),
    ('char *s = "/* no */ // comment";', 'char *s =\n"/* no */ // comment";'),
    ("char c = '\"'; /* ' */ int b;", "char c = '\"';\nint b;"),
    ("#define A(x) x + \\\n    1\n", "  #  define A(x)   x + 1 /* one\ntwo */\n"[2:].replace("#  ", "#")),
    ("#ifndef SWERVE_A_B_H\n#define SWERVE_A_B_H\n#endif\n", "#ifndef SWERVE_C_CUH\n#define SWERVE_C_CUH\n#endif\n"),
    ('#include "a/x.h"\n#include "b/y.h"\n\n#include <c.h>\nint d;', '#include <c.h>\n#include "a/y.h"\n#include "q/x.h"\nint d;'),
    ('#error "see a/x.h"\n', '#error "see b/x.h"\n'),
]
OTHER = [
    ('s = "a  b";', 's = "a b";'),
    ('s = "a";', 's = "b";'),
    ("a = b + +c;", "a = b ++ c;"),
    ("a = b - -c;", "a = b-- c;"),
    ("a < b;", "a <= b;"),
    ("1.5e-3f", "1.5e+3f"),
    ("x = 10;", "x = 1 0;"),
    ("#define A (x)\n", "#define A(x)\n"),
    ('#define A "b  c"\n', '#define A "b c"\n'),
    ("#define A 1\nint b;", "#define A 1 int b;"),
    ("#if A\nint b;\n#endif\n", "#if !A\nint b;\n#endif\n"),
    ('#include "a/x.h"\nint d;', '#include "a/y.h"\nint d;'),
    ('#define N 1\n#include "a/x.h"\n', '#include "a/x.h"\n#define N 1\n'),
    ('#define N 1\n#include "x.h"\n#define N 2\n#include "y.h"\n', '#define N 1\n#include "y.h"\n#define N 2\n#include "x.h"\n'),
    ("int a; // b \\\nint c;\n", "int a; // b\nint c;\n"),
    ('s = R"(a // b)";', 's = R"(a // c)";'),
    ("n = 1'000; // '\nm = 2;", "n = 1'000; // '\nm = 3;"),
]


def tokens_are_what_a_compiler_sees():
    for one, two in SAME:
        assert revision.tokens(one) == revision.tokens(two), f"{one!r} and {two!r} differ"
    for one, two in OTHER:
        assert revision.tokens(one) != revision.tokens(two), f"{one!r} and {two!r} are one"


TESTS = [tokens_are_what_a_compiler_sees, every_row_names_something, what_counts_refers_to_nothing_that_does_not,
         an_excluded_file_on_the_path_is_found, all_that_drives_reach_counts, what_counts_includes_nothing_that_does_not,
         all_is_compiled_with_the_flags_that_count, the_program_has_the_revision_of_its_sources,
         a_change_on_the_path_changes_it, comments_and_layout_do_not_change_it, a_move_does_not_change_it]

if __name__ == "__main__":
    sys.exit(tap.run(TESTS) > 0)
