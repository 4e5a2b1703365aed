/*
 * Filters of system calls: short programs that the kernel runs on every call. See syscall_filter.h.
 *
 * Refused calls answer EPERM, so a library that probes goes on without. clone3 answers ENOSYS: its
 * flags are in memory where a filter cannot look, and libraries then use clone, whose are not.
 */
#include "base/program/syscall_filter.h"

#include "base/check.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#define FILTER_ARCH 0 /* not known here: see enter */
#endif

/* Calls from this number on are newer than the list below (Linux 6.10), and so are those of 32-bit
 * pointers (x32): nobody has decided about them. Libraries do without what does not exist. */
enum { CALLS_KNOWN = 463 };

#define NAMESPACE_FLAGS                                                                        \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
     CLONE_NEWCGROUP)

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447 /* the same number on every machine */
#endif

#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define DENY(code) (SECCOMP_RET_ERRNO | (code))
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
/* The call's number is loaded: refuses this one. */
#define REFUSE_AS(number, code) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), RETURN(DENY(code))
#define REFUSE(name) REFUSE_AS(SYS_##name, EPERM)
/* Refuses it where the first argument names process 1, the planner's keeper. */
#define REFUSE_OF_KEEPER(name)                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[0]),  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), RETURN(DENY(EPERM)), \
        RETURN(SECCOMP_RET_ALLOW)
/* The same of calls whose first argument says what the second one names: a process, as `kind` does,
 * and no group or user, for the keeper can be of both. */
#define REFUSE_OF_MANY(name, kind)                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 6), LOAD(args[0]),  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (kind), 0, 2), LOAD(args[1]),  \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), RETURN(DENY(EPERM)), \
        RETURN(SECCOMP_RET_ALLOW)
#define ALLOW_DOMAIN(domain) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (domain), 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* Jumps count instructions, so the order of these is their meaning. */
static const struct sock_filter common[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, CALLS_KNOWN, 0, 1),
    RETURN(DENY(ENOSYS)),
    /* Other processes. */
    REFUSE(ptrace),
    REFUSE(process_vm_readv),
    REFUSE(process_vm_writev),
    REFUSE(pidfd_getfd),
    REFUSE(process_madvise),
    REFUSE(process_mrelease),
    REFUSE(kcmp),
    /* Mounts and namespaces. */
    REFUSE(mount),
    REFUSE(umount2),
    REFUSE(pivot_root),
    REFUSE(chroot),
    REFUSE(move_mount),
    REFUSE(open_tree),
    REFUSE(fsopen),
    REFUSE(fsconfig),
    REFUSE(fsmount),
    REFUSE(fspick),
    REFUSE(mount_setattr),
    REFUSE(statmount),
    REFUSE(listmount),
    REFUSE(unshare),
    REFUSE(setns),
    REFUSE(open_by_handle_at),
    REFUSE(name_to_handle_at),
    /* Wide doors into the kernel. */
    REFUSE(bpf),
    REFUSE(perf_event_open),
    REFUSE(userfaultfd),
    REFUSE(fanotify_init),
    REFUSE(lookup_dcookie),
    REFUSE(io_uring_setup),
    REFUSE(io_uring_enter),
    REFUSE(io_uring_register),
    REFUSE(add_key),
    REFUSE(request_key),
    REFUSE(keyctl),
    REFUSE(init_module),
    REFUSE(finit_module),
    REFUSE(delete_module),
    REFUSE(kexec_load),
    REFUSE(kexec_file_load),
    /* Memory that belongs to no process, which no limit on processes sees. */
    REFUSE(memfd_create),
    REFUSE(memfd_secret),
    REFUSE(shmget),
    REFUSE(msgget),
    REFUSE(semget),
    REFUSE(mq_open),
    /* The machine. */
    REFUSE(reboot),
    REFUSE(swapon),
    REFUSE(swapoff),
    REFUSE(acct),
    REFUSE(quotactl),
    REFUSE(quotactl_fd),
    REFUSE(vhangup),
#if defined(__x86_64__)
    REFUSE(iopl),
    REFUSE(ioperm),
    REFUSE(modify_ldt),
#endif
    REFUSE(syslog),
    REFUSE(settimeofday),
    REFUSE(clock_settime),
    REFUSE(clock_adjtime),
    REFUSE(adjtimex),
    /* When the keeper runs, and what it may open: users may do this to their processes. */
    REFUSE_OF_KEEPER(sched_setscheduler),
    REFUSE_OF_KEEPER(sched_setparam),
    REFUSE_OF_KEEPER(sched_setattr),
    REFUSE_OF_KEEPER(sched_setaffinity),
    REFUSE_OF_KEEPER(prlimit64),
    REFUSE_OF_MANY(setpriority, PRIO_PROCESS),
    REFUSE_OF_MANY(ioprio_set, IOPRIO_WHO_PROCESS),
    REFUSE_AS(SYS_clone3, ENOSYS),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
    LOAD(args[3]),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 2),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 1), /* and MAP_SHARED_VALIDATE */
    RETURN(DENY(EPERM)),
    RETURN(SECCOMP_RET_ALLOW),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACE_FLAGS, 0, 1),
    RETURN(DENY(EPERM)),
    RETURN(SECCOMP_RET_ALLOW),
    /* Domains that a network namespace covers; VM sockets, for one, reach the host. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
    RETURN(SECCOMP_RET_ALLOW),
    LOAD(args[0]),
    ALLOW_DOMAIN(AF_UNIX),
    ALLOW_DOMAIN(AF_INET),
    ALLOW_DOMAIN(AF_INET6),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0),
    RETURN(DENY(EAFNOSUPPORT)),
    /* The list of interfaces, which libraries ask for; no other of its families. */
    LOAD(args[2]),
    ALLOW_DOMAIN(NETLINK_ROUTE),
    RETURN(DENY(EAFNOSUPPORT)),
};

/* Leaves a process to compute, read and write. The architecture is judged above. */
static const struct sock_filter alone[] = {
    LOAD(nr),
    /* Programs, processes and threads. */
    REFUSE(execve),
    REFUSE(execveat),
    REFUSE(clone),
    /* The network, and sockets of this machine. */
    REFUSE(socket),
    REFUSE(socketpair),
    REFUSE(connect),
    /* Processes of the same user. */
    REFUSE(kill),
    REFUSE(tkill),
    REFUSE(rt_sigqueueinfo),
    REFUSE(rt_tgsigqueueinfo),
    REFUSE(pidfd_open),
    REFUSE(sched_setscheduler),
    REFUSE(sched_setparam),
    REFUSE(sched_setattr),
    REFUSE(sched_setaffinity),
    REFUSE(setpriority),
    REFUSE(ioprio_set),
    /* Files as they are listed: names, modes, owners, times, attributes. */
    REFUSE(unlinkat),
    REFUSE(renameat2),
    REFUSE(linkat),
    REFUSE(symlinkat),
    REFUSE(mkdirat),
    REFUSE(mknodat),
    REFUSE(truncate),
    REFUSE(fchmod),
    REFUSE(fchmodat),
    REFUSE(fchmodat2),
    REFUSE(fchown),
    REFUSE(fchownat),
    REFUSE(utimensat),
    REFUSE(setxattr),
    REFUSE(lsetxattr),
    REFUSE(fsetxattr),
    REFUSE(removexattr),
    REFUSE(lremovexattr),
    REFUSE(fremovexattr),
#if defined(SYS_renameat)
    REFUSE(renameat),
#endif
#if defined(__x86_64__) /* the older calls of the same */
    REFUSE(fork),
    REFUSE(vfork),
    REFUSE(unlink),
    REFUSE(rmdir),
    REFUSE(rename),
    REFUSE(link),
    REFUSE(symlink),
    REFUSE(mkdir),
    REFUSE(mknod),
    REFUSE(chmod),
    REFUSE(chown),
    REFUSE(lchown),
    REFUSE(utime),
    REFUSE(utimes),
    REFUSE(futimesat),
#endif
    /* Words put into the terminal as if they were typed. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5),
    LOAD(args[1]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 0, 1),
    RETURN(DENY(EPERM)),
    RETURN(SECCOMP_RET_ALLOW),
    /* Limits of others; 0 is oneself. */
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
    RETURN(DENY(EPERM)),
    RETURN(SECCOMP_RET_ALLOW),
};

/* A machine whose numbers nobody has looked at has no filter, and so no sandbox. */
static int enter(const struct sock_filter *program, size_t count)
{
    const struct sock_fprog filter = {(unsigned short)count,
                                      (struct sock_filter *)(uintptr_t)program};
    errno = ENOSYS;
    return FILTER_ARCH == 0 ? -1 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

int syscall_filter_enter(void)
{
    return enter(common, COUNT_OF(common));
}

int syscall_filter_enter_alone(void)
{
    /* abort() signals its own thread. */
    const struct sock_filter own_signals[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 3),
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 1, 0),
        RETURN(DENY(EPERM)),
        RETURN(SECCOMP_RET_ALLOW),
    };
    bool entered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall_filter_enter() == 0 &&
                   enter(own_signals, COUNT_OF(own_signals)) == 0 &&
                   enter(alone, COUNT_OF(alone)) == 0;
    return entered ? 0 : -1;
}
