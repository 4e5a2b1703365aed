"""A planner that takes more memory than it may, one way after the other.

    hoard.py WAY MIB

WAY: processes (each below the limit, together above), orphans (the same, after each one's first
thread has ended), memfd, sysv, mapping (shared and anonymous), zero (shared, of /dev/zero), shm
(files in /dev/shm), inodes (empty files), sockets (the kernel's). Those that are refused say "NAME
kept" on stderr and serve; the others go on until they are stopped.
"""

import contextlib
import ctypes
import mmap
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

WAY, MIB = sys.argv[1], int(sys.argv[2])
LIBC = ctypes.CDLL(None, use_errno=True)
BLOCK = bytes(1 << 20)


def filled():
    """A quarter of the whole, each page written, and never a second copy of it: a process that
    meets its own limit before anybody has looked would end with a MemoryError of its own."""
    held = bytearray(MIB // 4 << 20)
    for place in range(0, len(held), 4096):
        held[place] = 1
    return held


def processes():
    """Each child holds a quarter of the whole."""
    for _ in range(8):
        if os.fork() == 0:
            held = filled()
            time.sleep(600)
            sys.exit(len(held) % 2)
    time.sleep(600)


def orphans():
    """Each child's memory is a second thread's; its first thread ends, but not the process."""
    for _ in range(8):
        if os.fork() == 0:
            threading.Thread(target=hold).start()
            LIBC.syscall(60, 0)  # exit, of this thread alone
    time.sleep(600)


def hold():
    with open("/proc/self/stat", encoding="ascii") as file:  # of the process: its first thread's state
        while ") Z " not in file.read():
            file.seek(0)
            time.sleep(0.01)
    held = filled()
    time.sleep(600)
    sys.exit(len(held) % 2)


def memfd():
    fd = os.memfd_create("hoard")
    for _ in range(MIB):
        os.write(fd, BLOCK)


def sysv():
    if LIBC.shmget(0, ctypes.c_size_t(MIB << 20), 0o1600) < 0:
        raise OSError(ctypes.get_errno(), "shmget")


def mapping():
    held = mmap.mmap(-1, MIB << 20)
    held.write(BLOCK * MIB)


def zero():
    fd = os.open("/dev/zero", os.O_RDWR)
    held = mmap.mmap(fd, MIB << 20)
    held.write(BLOCK * MIB)


def shm():
    with open("/dev/shm/hoard", "wb") as file:
        for _ in range(MIB):
            file.write(BLOCK)


def inodes():
    for number in range(1 << 20):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT))


def sockets():
    """Each pair holds what its buffers take; nobody reads."""
    held = []
    for _ in range(4):
        if os.fork() == 0:
            for _ in range(400):
                held.append(socket.socketpair())
                for end in held[-1]:
                    end.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            end.send(BLOCK[:65536])
            time.sleep(600)
    time.sleep(600)


class Straight(swerve_planner.Planner):
    def act(self, observation):
        return 0.0, 0.0


try:
    globals()[WAY]()
    print(f"{WAY} ESCAPED", file=sys.stderr, flush=True)
except (OSError, MemoryError) as error:
    print(f"{WAY} kept: {error}", file=sys.stderr, flush=True)
swerve_planner.run(Straight)
