/*
 * The process at the other end of a Unix socket. See unix_peer.h.
 *
 * User namespaces are told apart by the device and inode of their descriptors (namespaces(7)). The
 * peer's comes from its process descriptor where the kernel can (Linux 6.11), else from /proc, and
 * is believed only if the process still lives afterwards.
 */
#include "store/server/unix_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers of Debian 12: Linux 6.5, Linux 6.11. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define GET_USER_NAMESPACE _IO(0xFF, 9) /* PIDFD_GET_USER_NAMESPACE */

/* A descriptor of the peer's process; -1 with errno. */
static int process_of(int fd, pid_t pid)
{
    int process = -1;
    socklen_t bytes = sizeof process;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &bytes) == 0) {
        return process;
    }
    if (errno != ENOPROTOOPT || pid <= 0) {
        errno = ESRCH;
        return -1;
    }
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* A descriptor of the user namespace of a process; -1 with errno. */
static int namespace_of(int process, pid_t pid)
{
    char path[64];
    int space = ioctl(process, GET_USER_NAMESPACE, 0);
    if (space >= 0 || errno == EACCES || errno == EPERM || errno == ESRCH || pid <= 0) {
        return space;
    }
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    space = open(path, O_RDONLY | O_CLOEXEC);
    struct pollfd watched = {.fd = process, .events = POLLIN};
    if (space >= 0 && poll(&watched, 1, 0) != 0) {
        close(space); /* it has ended: the number may be another process's by now */
        errno = ESRCH;
        return -1;
    }
    return space;
}

/* Whether a namespace is ours. */
static bool is_ours(int space)
{
    struct stat theirs;
    struct stat ours;
    return fstat(space, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

enum status unix_peer_check(int fd, struct error *error)
{
    struct ucred peer = {0};
    int domain = AF_UNSPEC;
    socklen_t bytes = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain != AF_UNIX) {
        return STATUS_OK;
    }
    bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        return error_set(error, STATUS_USAGE, "this socket does not say who connected: %s",
                         strerror(errno));
    }
    if (peer.uid != geteuid() && peer.uid != 0) {
        return error_set(error, STATUS_USAGE,
                         "this socket serves the user that owns the store alone (user id %u), and "
                         "you are user id %u: others use swerve serve",
                         (unsigned)geteuid(), (unsigned)peer.uid);
    }
    int process = process_of(fd, peer.pid);
    int space = process >= 0 ? namespace_of(process, peer.pid) : -1;
    int reason = errno;
    bool root = peer.uid == 0 && geteuid() != 0 && (reason == EACCES || reason == EPERM);
    bool good = space >= 0 ? is_ours(space) : root;
    if (process >= 0) {
        close(process);
    }
    if (space < 0 && !good) {
        bool busy = reason == EMFILE || reason == ENFILE || reason == ENOMEM;
        return error_set(error, busy ? STATUS_BUSY : STATUS_USAGE,
                         "this socket serves processes of the store's user namespace alone, and "
                         "process %d cannot be looked at: %s",
                         (int)peer.pid, strerror(reason));
    }
    if (space >= 0) {
        close(space);
    }
    if (!good) {
        return error_set(error, STATUS_USAGE,
                         "this socket serves processes of the store's user namespace alone, and "
                         "process %d runs in another one (a container or a sandbox): such use "
                         "swerve serve",
                         (int)peer.pid);
    }
    return STATUS_OK;
}
