#!/usr/bin/env python3
"""Writes a C file with the SHA-256 of the sources that decide an outcome: the simulation revision.

Usage: revision.py ROOT             lists the files that count
       revision.py ROOT OUT.c [FLAG...]
FLAG is one of the compiler's that decides what arithmetic gives: it counts. OUT.c is rewritten only when the
hash changed, so that a build without changes stays a no-op.

Everything in ROOMS counts but what EXCLUDED names, with its reason: what is forgotten there costs a result that
is driven again, what is forgotten in a list of what counts costs a false one. tests/worker/test_revision.py asks
the objects of a build whether what counts needs nothing that does not.

A file counts as the tokens that a compiler sees, so comments, line breaks and indentation do not, nor do the
names of files and their order: a source that only moves leaves the revision as it is. A move edits included paths
(the base name counts), the order of includes side by side (they are sorted), include guards and the texts of
#error (left out). What is renamed, cut in two or reordered within a file counts.
"""
import fnmatch
import hashlib
import pathlib
import re
import sys

# Rooms with code that a worker, or the module that it opens for a GPU, is made of.
ROOMS = ["base", "schemas", "kernels", "engine", "scenarios", "scheduler", "store", "worker", "report", "cli"]
SUFFIXES = {".c", ".h", ".cu", ".cuh", ".proto"}

# Data that decide what an outcome says and that no hash in a question names: the bounds beyond which a frame of
# a shipped model is flagged, and the network of token traffic. (Weights of world models, scenarios, planners and worlds are named by hashes of their own.)
DATA = ["engine/models/*.health.json", "engine/worlds/tokens.safetensors"]

# Code that is not on the path from a scenario's text to the row of an outcome: a folder and all below it, or files.
EXCLUDED = {
    "base/program/streams.*": "standard streams of commands: what is printed is in no row",
    "base/program/cli_options.*": "options of commands: what they pass on is in the job or decides no bit",
    "base/websocket/": "carries messages of sessions, whose drives people save as questions",
    # Keepers of questions and answers, and who decides which are asked.
    "store/": "keeps rows as they are given, and hands them on",
    "scheduler/": "decides which questions are asked, and what is told of many answers",
    "worker/submission/*": "asks questions; what it decides is in the job",
    "worker/run/lease_keeper.*": "keeps leases alive beside the drives",
    "worker/run/unstarted.*": "remembers what did not start here, so that its jobs are left to others",
    "worker/models/precision.*": "proves precisions and takes the fastest, which is in the question",
    "worker/versions/": "brings models here; a job names its own by hash",
    # Makers of scenarios: the text that is driven is what the question's hash is of.
    "scenarios/import/": "another program's, which makes scenarios",
    "scenarios/choice/": "lists scenarios",
    "scenarios/coverage/": "counts what suites have",
    "scenarios/plausible/": "warns of what is written in a file",
    "scenarios/skeleton/": "writes a file to begin with",
    "scenarios/protocol/": "judges finished drives by protocols",
    "scenarios/ranges/": "makes scenarios",
    "scenarios/expand.c": "makes scenarios",
    "scenarios/json_place.*": "says where in a file an error is",
    "scenarios/suite*.c": "lists scenarios",
    # Readers of answers, and measures of the program.
    "engine/bench/bench*": "measures speed",
    "engine/bench/ranks.*": "measures speed",
    "engine/bench/scale_ranks.*": "measures speed",
    "schemas/careful/": "answers of drives for reports",
    "worker/careful/careful_drivers.*": "drives of its own, for reports",
    "worker/careful/futures_share.*": "tells of many answers",
    "worker/careful/futures_job.*": "asks questions; what it decides is in the job",
    "worker/alpasim/": "serves pictures to other people's simulators",
    "worker/grpc/grpc_server.*": "serves other people's simulators",
    "cli/": "commands: what they pass on is in the job or decides no bit",
    "worker/datagen/": "writes drives down as training data",
    "worker/env/": "drives for learners, who keep what comes of them",
    "worker/interactive/": "drives of people, who save them as questions",
    "worker/frozen/": "compares models with drives",
    "worker/golden/golden_make.*": "records goldens, which are named by hash",
    "report/": "tells of answers",
    "worker/run/avoidance.*": "drives of its own, for reports",
    "worker/run/calibrate.*": "makes health bounds",
    "worker/run/replay_compare.*": "compares two drives",
}

LITERAL = r"""["](?:[^"\\\n]|\\.)*["]|'(?:[^'\\\n]|\\.)*'"""
# A comment, or a literal that may hold what looks like one.
COMMENT = re.compile(rf"/\*.*?\*/|//[^\n]*|({LITERAL})", re.S)
# Operators as the longest that there are.
TOKEN = re.compile(rf"""[A-Za-z_]\w*|[(){{}}\[\],;?~]|\.?\d(?:[eEpP][+-]|[\w.])*|{LITERAL}"""
                   r"""|<<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||::|<<|>>|[-+*/%&|^=!<>]=|\S""")
SPACE = re.compile(rf"({LITERAL})|\s+")
# Unknown to the three above: raw literals, and numbers with a ' in them, which begins no literal.
UNKNOWN = re.compile(r"""\b(?:u8|[uUL])?R["]|\d'\d""")
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w*)[^\n]*", re.M)
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]*)"')
GUARD = re.compile(r"\bSWERVE_\w+_C?U?H\b")


def tokens(text: str) -> bytes:
    """Tokens that a compiler sees, but for what a move edits; a token is a line, a directive too."""
    if UNKNOWN.search(text):
        return text.encode()  # as it stands
    text = COMMENT.sub(lambda match: match.group(1) or " ", text.replace("\r\n", "\n").replace("\\\n", ""))
    found, includes, end = [], [], 0
    for directive in DIRECTIVE.finditer(text):
        words = TOKEN.findall(text, end, directive.start())
        end = directive.end()
        if words or directive.group(1) != "include":
            found += sorted(includes) + words
            includes = []
        if directive.group(1) == "include":
            own = INCLUDE.match(directive.group())
            includes.append(f'#include "{own.group(1).rpartition("/")[2]}"' if own else directive.group().strip())
        elif directive.group(1) in ("error", "warning"):
            found.append("#error")
        else:
            line = SPACE.sub(lambda match: match.group(1) or " ", GUARD.sub("", directive.group()))
            found.append(line.strip())
    return "\n".join(found + sorted(includes) + TOKEN.findall(text, end)).encode()


def is_excluded(name: str) -> bool:
    return any(name.startswith(row) if row.endswith("/") else fnmatch.fnmatchcase(name, row) for row in EXCLUDED)


def sources(root: pathlib.Path) -> list:
    """All code of the rooms, by its name in the tree; what counts of it, excluded() says."""
    return sorted(path.relative_to(root).as_posix() for room in ROOMS for path in (root / room).rglob("*")
                  if path.suffix in SUFFIXES and not path.name.startswith(".") and path.is_file())


def counted(root: pathlib.Path) -> list:
    data = [path.relative_to(root).as_posix() for pattern in DATA for path in root.glob(pattern)]
    return [name for name in sources(root) if not is_excluded(name)] + sorted(data)


def digest(root: pathlib.Path, name: str) -> bytes:
    content = (root / name).read_bytes()
    code = pathlib.PurePosixPath(name).suffix in SUFFIXES
    return hashlib.sha256(tokens(content.decode()) if code else content).digest()


def revision(root: pathlib.Path, flags=()) -> str:
    whole = hashlib.sha256("\n".join(flags).encode())
    whole.update(b"".join(sorted(digest(root, name) for name in counted(root))))
    return whole.hexdigest()


def main() -> None:
    root = pathlib.Path(sys.argv[1])
    if len(sys.argv) == 2:
        print("\n".join(counted(root)))
        return
    out = pathlib.Path(sys.argv[2])
    text = (
        "/* Generated by scripts/revision.py. */\n"
        '#include "worker/run/revision.h"\n\n'
        f'const char revision_hash[] = "{revision(root, sys.argv[3:])}";\n'
    )
    if not out.exists() or out.read_text() != text:
        out.write_text(text)


if __name__ == "__main__":
    main()
