/*
 * Goal: an importer reads what it was named and writes beside its output, and nothing else, however
 * it was turned.
 * Method: a child of its own for each attempt, confined or not. All attempts succeed in one that is
 * not, which shows that they are attempts at all. Sanitized builds are not confined.
 */
#include "scenarios/import/program/import_confine.h"
#include "tests/harness.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[] = "/tmp/swerve-confine-XXXXXX";

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0644);
    return fd < 0 ? errno : close(fd);
}

static int read_named(void)
{
    return try_open("in.xml", O_RDONLY);
}
static int write_output(void)
{
    return try_open("out/made.json", O_WRONLY | O_CREAT | O_TRUNC);
}
static int write_beside_output(void)
{
    return try_open("out/made-1.json", O_WRONLY | O_CREAT | O_TRUNC);
}
static int write_where_a_link_leads(void)
{
    return try_open("out/link.json", O_WRONLY | O_CREAT | O_TRUNC);
}
static int read_other(void)
{
    return try_open("secret", O_RDONLY);
}
static int list_folder(void)
{
    return try_open(".", O_RDONLY | O_DIRECTORY);
}
static int write_other(void)
{
    return try_open("secret", O_WRONLY);
}
static int make_other(void)
{
    return try_open("new", O_WRONLY | O_CREAT);
}
static int shorten_other(void)
{
    return truncate("secret", 0) == 0 ? 0 : errno;
}
static int remove_beside_output(void)
{
    return unlink("out/old.json") == 0 ? 0 : errno;
}
static int rename_beside_output(void)
{
    return rename("out/kept.json", "out/moved.json") == 0 ? 0 : errno;
}
static int change_mode(void)
{
    return chmod("in.xml", 0666) == 0 ? 0 : errno;
}
static int open_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? errno : close(fd);
}
static int open_local_socket(void)
{
    int fds[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0 ? 0 : errno;
}
static int start_process(void)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    return child < 0 ? errno : 0;
}
static int start_program(void)
{
    execl("/bin/true", "true", (char *)NULL);
    return errno;
}
static int signal_parent(void)
{
    return kill(getppid(), 0) == 0 ? 0 : errno;
}
static int signal_thread_of_parent(void)
{
    return (int)syscall(SYS_tgkill, getppid(), getppid(), 0) == 0 ? 0 : errno;
}

/* Errors of an attempt once confined, where files that others name are not to be read and where
 * they are. */
static const struct attempt {
    const char *name;
    int (*try)(void);
    int refused;
    int refused_naming;
    bool landlock; /* decides it */
} attempts[] = {
    {"read_named", read_named, 0, 0, false},
    {"write_output", write_output, 0, 0, false},
    {"write_beside_output", write_beside_output, 0, 0, false},
    {"write_where_a_link_leads", write_where_a_link_leads, 0, 0, false},
    {"read_other", read_other, EACCES, 0, true},
    {"list_folder", list_folder, EACCES, 0, true},
    {"write_other", write_other, EACCES, EACCES, true},
    {"make_other", make_other, EACCES, EACCES, true},
    {"shorten_other", shorten_other, EPERM, EPERM, false},
    {"remove_beside_output", remove_beside_output, EPERM, EPERM, false},
    {"rename_beside_output", rename_beside_output, EPERM, EPERM, false},
    {"change_mode", change_mode, EPERM, EPERM, false},
    {"open_socket", open_socket, EPERM, EPERM, false},
    {"open_local_socket", open_local_socket, EPERM, EPERM, false},
    {"start_process", start_process, EPERM, EPERM, false},
    {"start_program", start_program, EPERM, EPERM, false},
    {"signal_parent", signal_parent, EPERM, EPERM, false},
    {"signal_thread_of_parent", signal_thread_of_parent, EPERM, EPERM, false},
};

static void write_file(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");
    EXPECT(stream != NULL && fputs(text, stream) != EOF && fclose(stream) == 0);
}

static void fill_folder(void)
{
    write_file("in.xml", "<x/>");
    write_file("secret", "secret");
    write_file("elsewhere/target.json", "old");
    write_file("out/old.json", "old");
    write_file("out/kept.json", "old");
}

static void confine(bool naming)
{
    static const char *const inputs[] = {"in.xml", "missing.xml"};
    import_confine(&(const struct import_files){.inputs = inputs,
                                                .input_count = COUNT_OF(inputs),
                                                .inputs_name_others = naming,
                                                .output = "out/link.json"});
}

/* The end of a child that is confined (or not) and tries. */
static int outcome(const struct attempt *attempt, bool confined, bool naming)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (confined) {
            confine(naming);
        }
        _exit(attempt->try());
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void an_importer_does_what_it_has_to_and_no_more(void)
{
    long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    for (size_t i = 0; i < COUNT_OF(attempts); i++) {
        const struct attempt *attempt = &attempts[i];
        fill_folder();
        int open_result = outcome(attempt, false, false);
        fill_folder();
        int kept = outcome(attempt, true, false);
        fill_folder();
        int naming = outcome(attempt, true, true);
        printf("# %s: %d, confined %d, confined and naming others %d\n", attempt->name, open_result,
               kept, naming);
        EXPECT_INT(open_result, 0);
#if !defined(TEST_WITH_ASAN) && !defined(TEST_WITH_TSAN)
        if (landlock >= 1 || !attempt->landlock) {
            EXPECT_INT(kept, attempt->refused);
            EXPECT_INT(naming, attempt->refused_naming);
        }
#endif
    }
    if (landlock < 1) {
        printf("# without Landlock here: files were not kept from anybody\n");
    }
}

static int end_by_abort(void)
{
    signal(SIGABRT, SIG_DFL);
    abort();
}

/* A bug ends in CHECK, which is to be seen as one. */
static void an_importer_can_still_abort(void)
{
    const struct attempt aborting = {.try = end_by_abort};
    EXPECT_INT(outcome(&aborting, true, false), -SIGABRT);
}

int main(void)
{
    char command[64];
    CHECK(mkdtemp(top) != NULL && chdir(top) == 0 && mkdir("out", 0755) == 0 &&
          mkdir("elsewhere", 0755) == 0 &&
          symlink("../elsewhere/target.json", "out/link.json") == 0);
    int failed = TEST_RUN(TEST(an_importer_does_what_it_has_to_and_no_more),
                          TEST(an_importer_can_still_abort));
    snprintf(command, sizeof command, "rm -rf %s", top);
    return system(command) == 0 ? failed : 1;
}
