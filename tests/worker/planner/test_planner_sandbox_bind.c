/*
 * Goal: a sandbox binds the files that were judged, and says which link kept a word from being
 * shown. Method: files change places between the two steps; a planner names a file behind a link
 * and fails.
 *
 * Where the machine forbids namespaces there is nothing to be bound.
 */
#include "tests/harness.h"
#include "worker/planner/planner.h"
#include "worker/planner/planner_sandbox.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64];

static bool possible(void)
{
    struct error error = {0};
    const struct planner_confinement confined = {.sandbox = true};
    if (planner_confinement_check(&confined, &error) == STATUS_OK) {
        return true;
    }
    printf("# not tested: %s\n", error.text);
    return false;
}

static bool write_new(const char *path)
{
    FILE *file = fopen(path, "w");
    return file != NULL && fputs("x", file) >= 0 && fclose(file) == 0;
}

/* In the child of a sandbox: what comes of building its root. */
_Noreturn static void build_root(const struct sandbox *sandbox, int go_fd, int tell_fd)
{
    char byte;
    struct sandbox_fault fault = {.code = 0};
    if (read(go_fd, &byte, 1) == 1) {
        (void)sandbox_enter(sandbox, &fault);
    }
    _exit(write(tell_fd, &fault, sizeof fault) == (ssize_t)sizeof fault ? 0 : 1);
}

/* Goal: what is shown is what was judged, whatever takes its place before it is bound. Method: a
 * file changes places between the two steps. */
static void what_is_bound_is_what_was_judged(void)
{
    static const int expected[] = {0, ESTALE, ELOOP};
    char path[96];
    char other[96];
    char secret[96];
    const char *const given[] = {path};
    const struct planner_confinement confined = {.sandbox = true, .paths = given, .path_count = 1};
    if (!possible()) {
        return;
    }
    snprintf(secret, sizeof secret, "%s/secret", top);
    CHECK(write_new(secret));
    snprintf(path, sizeof path, "%s/weights", top);
    snprintf(other, sizeof other, "%s/other", top);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct planner_argv words = {.count = 1, .argv = {(char *)(uintptr_t) "/bin/true"}};
        struct sandbox *sandbox = NULL;
        struct sandbox_fault fault;
        struct error error = {0};
        char text[512] = "";
        int go[2];
        int tell[2];
        CHECK(write_new(path) && write_new(other));
        CHECK(pipe2(go, O_CLOEXEC) == 0 && pipe2(tell, O_CLOEXEC) == 0);
        EXPECT_OK(sandbox_prepare(&confined, &words, "/bin/true", &sandbox, &error), error);
        CHECK(expected[i] != ESTALE || rename(other, path) == 0);
        CHECK(expected[i] != ELOOP || (unlink(path) == 0 && symlink(secret, path) == 0));
        pid_t child = sandbox_clone();
        if (child == 0) {
            build_root(sandbox, go[0], tell[1]);
        }
        EXPECT(child > 0 && sandbox_map_users(child) == 0 && write(go[1], "g", 1) == 1);
        EXPECT_INT(read(tell[0], &fault, sizeof fault), (int)sizeof fault);
        EXPECT(waitpid(child, NULL, 0) == child);
        EXPECT_INT(fault.code, expected[i]);
        if (fault.code != 0) {
            sandbox_fault_text(sandbox, &fault, text, sizeof text);
            EXPECT_CONTAINS(text, path);
            EXPECT_CONTAINS(text, "was replaced while the sandbox was made");
        }
        sandbox_free(sandbox);
        unlink(path);
        unlink(other);
        close(go[0]);
        close(go[1]);
        close(tell[0]);
        close(tell[1]);
    }
    unlink(secret);
}

/* Goal: who named a file behind a link learns where it leads, and what shows it. */
static void the_link_is_told_of(void)
{
    char here[96];
    char weights[96];
    char link[112];
    struct planner *planner = NULL;
    struct error error = {0};
    const struct planner_confinement confined = {.sandbox = true};
    const struct planner_config config = {.session_count = 1, .confinement = &confined};
    if (!possible()) {
        return;
    }
    snprintf(here, sizeof here, "%s/here", top);
    snprintf(weights, sizeof weights, "%s/weights.npz", top);
    snprintf(link, sizeof link, "%s/data", here);
    CHECK(mkdir(here, 0755) == 0 && write_new(weights) && symlink("..", link) == 0 &&
          chdir(here) == 0);
    EXPECT_INT(planner_open("exec:/bin/cat data/weights.npz", &config, &planner, &error),
               STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "data/weights.npz of the command line is not shown");
    EXPECT_CONTAINS(error.text, link);
    EXPECT_CONTAINS(error.text, " leads to ");
    EXPECT_CONTAINS(error.text, "--planner-path");
    CHECK(chdir("/") == 0 && unlink(link) == 0 && unlink(weights) == 0 && rmdir(here) == 0);
}

int main(void)
{
    strcpy(top, "/tmp/swerve-bind-XXXXXX");
    CHECK(mkdtemp(top) != NULL && chmod(top, 0755) == 0);
    int failed = TEST_RUN(TEST(what_is_bound_is_what_was_judged), TEST(the_link_is_told_of));
    rmdir(top);
    return failed;
}
