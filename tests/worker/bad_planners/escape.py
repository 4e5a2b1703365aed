"""A planner that tries to get out of its sandbox, and tells on stderr what came of each attempt.

    escape.py PORT ABSTRACT_NAME SECRET_FILE WORKER_PID WRITABLE_DIRECTORY [harmless]

One line each: "NAME kept" when it could not, "NAME ESCAPED: .." when it could. "NAME ok" or "NAME
BROKEN: .." for what it must be able to do. The last line is "attempts made". Afterwards it serves.
With "harmless" it leaves out what would hurt the machine, for a run without a sandbox.
"""

import ctypes
import errno
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../scripts"))
import swerve_planner  # noqa: E402

PORT, ABSTRACT, SECRET, WORKER, WRITABLE = (int(sys.argv[1]), sys.argv[2], sys.argv[3],
                                            int(sys.argv[4]), sys.argv[5])
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16
CLONE_NEWUSER, MS_BIND = 0x10000000, 4096
PROCESSES_MAX = 2000
# Credentials whose names begin as those of settings do.
SETTING_LIKE = ["NVIDIA_API_KEY", "CUDA_REGISTRY_PASSWORD", "TORCH_HUB_TOKEN", "PYTHON_KEYRING_KEY",
                "OMP_SECRET", "MKL_LICENSE_KEY", "OPENBLAS_X", "NUMEXPR_X", "LC_SECRET",
                "SWERVE_PLANNER_KEY", "PATH_SECRET"]


def tell(text):
    print(text, file=sys.stderr, flush=True)


def kept(name, attempt):
    """The attempt must raise OSError."""
    try:
        tell(f"{name} ESCAPED: {attempt()}")
    except OSError:
        tell(f"{name} kept")


def works(name, attempt):
    try:
        attempt()
        tell(f"{name} ok")
    except OSError as error:
        tell(f"{name} BROKEN: {error}")


def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"


def write(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("I was here")
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as end:
        end.settimeout(5)
        end.connect(address)
    return address


def fill_tmp():
    """More than the sandbox's /tmp holds."""
    try:
        with open("/tmp/big", "wb") as file:
            for _ in range(400):
                file.write(bytes(1 << 20))
        return "400 MiB written to /tmp"
    finally:
        os.unlink("/tmp/big")


def fork_bomb():
    children = []
    try:
        while len(children) < PROCESSES_MAX:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
        return f"{len(children)} processes"
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def privileges():
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines()
                  if ":\t" in line)
    if (os.geteuid() != 0 and int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0
            and status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"):
        raise OSError(errno.EPERM, "none")
    return f"uid {os.geteuid()}, {status['CapEff']}, {status['CapBnd']}"


def strangers():
    numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    if numbers == [str(os.getpid())]:  # its keeper is not to be seen either
        raise OSError(errno.ESRCH, "alone")
    return f"processes {numbers}"


def environment(name):
    if name not in os.environ:
        raise OSError(errno.ENOENT, name)
    return os.environ[name]


def main():
    kept("connect", lambda: connect(socket.AF_INET, ("127.0.0.1", PORT)))
    kept("abstract", lambda: connect(socket.AF_UNIX, "\0" + ABSTRACT))
    kept("secret", lambda: read(SECRET))
    kept("write-outside", lambda: write(os.path.join(WRITABLE, "swerve-escape")))
    kept("signal", lambda: os.kill(WORKER, 0))
    kept("strangers", strangers)
    kept("privileges", privileges)
    kept("token-name", lambda: environment("SWERVE_TOKEN_FILE"))
    kept("other-name", lambda: environment("A_SECRET_OF_THE_MACHINE"))
    kept("setting-like", lambda: "".join(name for name in SETTING_LIKE if name in os.environ)
         or environment("none of them"))
    if "harmless" not in sys.argv:
        kept("write-here", lambda: write("swerve-escape"))
        kept("write-system", lambda: write("/usr/swerve-escape"))
        kept("write-root", lambda: write("/swerve-escape"))
        kept("shadow", lambda: read("/etc/shadow"))
        kept("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
        kept("ptrace", lambda: call(LIBC.ptrace, PTRACE_ATTACH, WORKER, 0, 0))
        kept("userns", lambda: call(LIBC.unshare, CLONE_NEWUSER))
        kept("mount", lambda: call(LIBC.mount, b"/usr", b"/tmp", None, MS_BIND, None))
        kept("setuid", lambda: os.setuid(0))
        kept("big-tmp", fill_tmp)
        kept("fork-bomb", fork_bomb)
    works("own-tmp", lambda: write("/tmp/swerve-escape-mine"))
    works("own-shm", lambda: write("/dev/shm/swerve-escape-mine"))
    works("null", lambda: write("/dev/null"))
    works("named-name", lambda: environment("A_NAME_THAT_MAY_PASS"))
    works("setting", lambda: environment("CUDA_VISIBLE_DEVICES"))
    tell("attempts made")


main()


class Straight(swerve_planner.Planner):
    def reset(self, episode):
        pass

    def act(self, observation):
        return 0.5, 0.0


swerve_planner.run(Straight)
