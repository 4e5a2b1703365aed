/*
 * Who may use the socket beside a store.
 *
 * Goal: a process of another user or of another user namespace is refused with a sentence and
 * changes nothing, even where the path's mode lets it connect and even when the process that
 * connected has ended since; processes of the same user are served.
 * Method: real processes: a child in a user namespace of its own in which it is the same user, as a
 * planner's sandbox has it; a child that is another user; a child that connects, hands the
 * connection over and ends. Where the machine forbids namespaces that part says so.
 */
#include "store/server/unix_peer.h"
#include "tests/store/http/http_stack.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPLY_BYTES = 8192, OTHER_USER = 65534 };

static struct stack stack;
static char reply[REPLY_BYTES];

static const char cancel[] = "/v1/suites/s/cancel";

/* Work of a child; its result is its exit status. */
static int cancels(void)
{
    int code = support_call(stack.socket_path, "POST", cancel, "{}", reply, sizeof reply);
    return code == 403 && strstr(reply, "user namespace") != NULL ? 0 : 1;
}

static int cancels_as_another(void)
{
    if (syscall(SYS_setresuid, OTHER_USER, OTHER_USER, OTHER_USER) != 0) {
        return 2;
    }
    int code = support_call(stack.socket_path, "POST", cancel, "{}", reply, sizeof reply);
    return code == 403 && strstr(reply, "others use swerve serve") != NULL ? 0 : 1;
}

/* The descriptor of the directory is what may leak into a sandbox. */
static int cancels_through_a_descriptor(void)
{
    char path[108];
    int directory = open(support_directory(), O_PATH | O_DIRECTORY);
    snprintf(path, sizeof path, "/proc/self/fd/%d/s.sock", directory);
    int code = support_call(path, "POST", cancel, "{}", reply, sizeof reply);
    return directory >= 0 && code == 403 ? 0 : 1;
}

static bool write_map(pid_t child, const char *file, unsigned id)
{
    char path[64];
    char text[32];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)child, file);
    int bytes = snprintf(text, sizeof text, "%u %u 1\n", id, id);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool well = fd >= 0 && write(fd, text, (size_t)bytes) == bytes;
    close(fd);
    return well;
}

/* The exit status of `work` in a child made with clone flags; -1: there cannot be such a child. */
static int child_does(unsigned long flags, int (*work)(void))
{
    int go[2];
    int how = 0;
    CHECK(pipe2(go, O_CLOEXEC) == 0);
    fflush(stdout);
    pid_t child = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        char byte;
        close(go[1]);
        _exit(read(go[0], &byte, 1) == 1 ? work() : 3);
    }
    close(go[0]);
    bool may =
        child > 0 && ((flags & CLONE_NEWUSER) == 0 || write_map(child, "uid_map", geteuid()));
    CHECK(!may || write(go[1], "g", 1) == 1);
    close(go[1]);
    while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    return may && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void the_same_user_is_served(void)
{
    stack_start(&stack);
    EXPECT_INT(support_call(stack.socket_path, "POST", cancel, "{}", reply, sizeof reply), 200);
    EXPECT(atomic_load(&stack.control.calls) > 0);
    stack_stop(&stack);
}

static void another_namespace_is_refused(void)
{
    static int (*const ways[])(void) = {cancels, cancels_through_a_descriptor};
    stack_start(&stack);
    int calls = atomic_load(&stack.control.calls);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        int result = child_does(CLONE_NEWUSER, ways[i]);
        if (result == -1) {
            printf("# not tested: user namespaces are forbidden here\n");
            break;
        }
        EXPECT_INT(result, 0);
        EXPECT_INT(child_does(CLONE_NEWUSER | CLONE_NEWPID, ways[i]), 0);
    }
    EXPECT_INT(atomic_load(&stack.control.calls), calls);
    stack_stop(&stack);
}

static void another_user_is_refused(void)
{
    if (geteuid() != 0) {
        printf("# not tested: only root can become another user\n");
        return;
    }
    stack_start(&stack);
    CHECK(chmod(support_directory(), 0755) == 0 && chmod(stack.socket_path, 0666) == 0);
    int calls = atomic_load(&stack.control.calls);
    EXPECT_INT(child_does(0, cancels_as_another), 0);
    EXPECT_INT(atomic_load(&stack.control.calls), calls);
    stack_stop(&stack);
}

/* By a child that ends: a connection to `path`, over a socket pair. */
static int connection_of_the_dead(const char *path)
{
    int pair[2];
    char byte = 'x';
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr head;
    } control = {{0}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int fd = support_connect(path);
        control.head = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        _exit(sendmsg(pair[1], &message, 0) == 1 ? 0 : 1);
    }
    int fd = -1;
    CHECK(recvmsg(pair[0], &message, MSG_CMSG_CLOEXEC) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    CHECK(waitpid(child, NULL, 0) == child);
    close(pair[0]);
    close(pair[1]);
    return fd;
}

/* Its number may be anybody's by now. */
static void who_has_ended_is_refused(void)
{
    char path[108];
    struct error error = {0};
    snprintf(path, sizeof path, "%s/dead.sock", support_directory());
    int listening = support_listen(path);
    int theirs = connection_of_the_dead(path);
    int ours = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    CHECK(ours >= 0 && theirs >= 0);
    EXPECT_INT(unix_peer_check(ours, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, "cannot be looked at");
    close(theirs);
    close(ours);
    theirs = support_connect(path);
    ours = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    EXPECT_OK(unix_peer_check(ours, &error), error);
    close(theirs);
    close(ours);
    close(listening);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    return TEST_RUN(TEST(the_same_user_is_served), TEST(another_namespace_is_refused),
                    TEST(another_user_is_refused), TEST(who_has_ended_is_refused));
}
