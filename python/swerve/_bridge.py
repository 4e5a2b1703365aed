"""A planner process that is none: it hands its pipes to the Python program that called swerve.run()
with a function or a class, and waits there until that program has done with them.

usage: _bridge.py SOCKET NONCE   (started by Swerve, for planners that live in another process)
"""

import os
import socket
import sys


def main():
    path, nonce = sys.argv[1:]
    home = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        home.connect(path)
    except OSError:
        sys.exit(
            "this planner was a function of a Python program that has ended: "
            "call swerve.run() with it again"
        )
    descriptors = [0, 1, 2, int(os.environ["SWERVE_SHM_FD"])]
    socket.send_fds(home, [nonce.encode()], descriptors)
    # Only the other program's copies are left: it sees the end of input as we would.
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    home.recv(1)


main()
