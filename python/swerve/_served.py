"""Planners that live in this very process: functions, lambdas, classes of a notebook.

Swerve starts planners as processes. Here the process that it starts is a small bridge (_bridge.py)
that passes its pipes and its shared memory back over a socket; a thread answers on them. So a planner
may be anything that Python can call: nothing is pickled, nothing is imported again, and what it
appends to a list is in that list afterwards. What a process of its own gives (a deadline that can be
enforced, a limit of memory) it does not have.
"""

import inspect
import os
import secrets
import shlex
import shutil
import socket
import sys
import tempfile
import threading

import swerve_planner


def spec_text(*words):
    return "exec:" + " ".join(shlex.quote(word) for word in words)


def is_served(planner):
    return not isinstance(planner, str)


def _factory(planner, wants):
    """Argument of swerve_planner.serve(): a Planner class, or a BatchPlanner."""
    if isinstance(planner, swerve_planner.BatchPlanner):
        return planner
    if isinstance(planner, type) and issubclass(
        planner, (swerve_planner.Planner, swerve_planner.BatchPlanner)
    ):
        return planner
    if inspect.isclass(planner) or not callable(planner):
        raise TypeError(
            "planner: expected a spec such as 'builtin:reference', a function that takes an observation, "
            f"or a class derived from swerve.planner.Planner, found {planner!r}"
        )

    class Function(swerve_planner.Planner):
        name = getattr(planner, "__name__", type(planner).__name__)

        def act(self, observation):
            return planner(observation)

        def __deepcopy__(self, memo):
            return Function()

    Function.wants = wants or getattr(planner, "wants", 0)
    return Function


class Served:
    """A context: `spec` names the planner while it lasts."""

    def __init__(self, planner, wants):
        self.planner = _factory(planner, wants)
        self.alone = isinstance(self.planner, swerve_planner.BatchPlanner)
        # Never the same twice: what a function does is not in its text, so no result may be reused.
        self.nonce = secrets.token_hex(8)
        self.threads = []
        self.closing = False

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="swerve-")
        path = os.path.join(self.folder, "planner")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(64)
        bridge = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bridge.py")
        self.spec = spec_text(sys.executable, "-I", bridge, path, self.nonce)
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()
        return self

    def __exit__(self, *_):
        self.closing = True
        # A thread in accept() is not woken by closing: call it.
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            knock.connect(self.listener.getsockname())
        self.acceptor.join()
        self.listener.close()
        for thread in self.threads:
            thread.join(1.0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self):
        while True:
            connection = self.listener.accept()[0]
            if self.closing:
                connection.close()
                return
            thread = threading.Thread(target=self._answer, args=(connection,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _answer(self, connection):
        with connection:
            nonce, descriptors, _, _ = socket.recv_fds(connection, 64, 4)
            if nonce.decode() != self.nonce or len(descriptors) != 4:
                for descriptor in descriptors:
                    os.close(descriptor)
                return
            source, sink, said, memory = descriptors
            with os.fdopen(said, "w", buffering=1, errors="backslashreplace") as errors:
                try:
                    swerve_planner.serve(self.planner, source, sink, memory, errors)
                except OSError:
                    pass  # Swerve has ended the bridge, as it ends any planner
