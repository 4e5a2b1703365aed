"""The `swerve` program: where it is, calling it, and its exit codes as exceptions."""

import functools
import importlib.metadata
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import warnings


class Error(Exception):
    """Message of `swerve` when it could not do what it was asked. `code` is its exit code."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code


class UsageError(Error):
    """Options that make no sense together (exit code 2)."""


class InputError(Error):
    """A scenario, suite or other file is not what it should be (3)."""


class StoreError(Error):
    """The store or the system refused (4)."""


class DeviceError(Error):
    """A device or a world model is not there (5)."""


class PlannerError(Error):
    """A planner cannot start or failed in every rollout, or jobs are dead (6). `result` holds what
    there is of outcomes, or None."""

    result = None


class BusyError(Error):
    """Another program has the store to itself (7)."""


_ERRORS = {2: UsageError, 3: InputError, 4: StoreError, 5: DeviceError, 6: PlannerError, 7: BusyError}


def _candidates():
    """SWERVE_PROGRAM; the one that came with the package; a build of the sources; PATH."""
    named = os.environ.get("SWERVE_PROGRAM")
    if named:
        yield named
        return
    top = pathlib.Path(__file__).resolve().parents[2]
    if (top / "cli/main.c").is_file():
        yield str(top / "build/worker/swerve")
    schemes = [None, sysconfig.get_preferred_scheme("user")]
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        yield os.path.join(folder, "swerve")
    yield os.path.join(os.path.dirname(sys.executable), "swerve")
    yield shutil.which("swerve") or ""


@functools.lru_cache(maxsize=None)
def version():
    """Of the package; of one that no installer put there that of the program."""
    try:
        return importlib.metadata.version("swerve")
    except importlib.metadata.PackageNotFoundError:
        return subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]


@functools.lru_cache(maxsize=None)
def _find(_environment):
    tried = list(_candidates())
    for path in tried:
        if path and os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    raise Error(
        "no swerve program: looked for "
        + ", ".join(path for path in tried if path)
        + "; set SWERVE_PROGRAM to it"
    )


def program():
    """Path of the `swerve` program that this package calls. SWERVE_PROGRAM overrules it."""
    return _find(os.environ.get("SWERVE_PROGRAM"))


def error_of(code, text):
    """The exception for an exit code."""
    said = text.strip() or f"swerve ended with {code} and said nothing"
    if code < 0:
        said = f"swerve was killed by {signal.Signals(-code).name}: {said}"
    return _ERRORS.get(code, Error)(said.removeprefix("swerve: "), code)


def call(words, accepted=(0,)):
    """(exit code, stdout as text, stderr as text). A code that is not in `accepted` is raised. An
    interrupt is passed on, so that what is finished is kept."""
    # The command called python3 there, in an exec planner or an export, is this Python.
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            [program(), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env={**os.environ, "PATH": path},
        )
        try:
            out = child.communicate()[0]
        except BaseException:
            child.send_signal(signal.SIGINT)
            try:
                child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
            raise
        said.seek(0)
        errors = said.read()
    if child.returncode not in accepted:
        raise error_of(child.returncode, errors)
    return child.returncode, out, errors


def call_json(words, accepted=(0,)):
    """As call(), of a command that prints one JSON object; what it says besides is a warning."""
    code, out, errors = call(words, accepted)
    if errors.strip() and code == 0:
        warnings.warn(errors.strip(), stacklevel=3)
    return code, json.loads(out) if out.strip() else None, errors
