/*
 * State of the git working tree that a command stands in, as git itself says it: only git knows
 * whether files differ from a commit. It is asked without locks, hooks and monitors, which would
 * run code that the tree names.
 */
#include "cli/label/label_options.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ANSWER_BYTES = 4096 };

/* Whether a folder from here upwards has a ".git": only then git is started. */
static bool is_in_tree(void)
{
    char path[LIMIT_PATH_BYTES];
    if (getcwd(path, sizeof path - sizeof "/.git") == NULL) {
        return false;
    }
    for (char *end = path + strlen(path);; end = strrchr(path, '/')) {
        if (end == NULL) {
            return false;
        }
        memcpy(end, "/.git", sizeof "/.git");
        if (access(path, F_OK) == 0) {
            return true;
        }
        *end = '\0';
    }
}

/* The beginning of what git says; false: it cannot be started, or fails. */
static bool ask(char answer[ANSWER_BYTES])
{
    static const char *const words[] = {"git",
                                        "--no-optional-locks",
                                        "-c",
                                        "core.fsmonitor=false",
                                        "status",
                                        "--porcelain=v2",
                                        "--branch",
                                        "--untracked-files=no",
                                        "--ignore-submodules=all",
                                        NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t child = -1;
    int how = 0;
    size_t bytes = 0;
    ssize_t got = 1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure == 0) {
        failure = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        failure = failure != 0 ? failure
                               : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                                                  "/dev/null", O_WRONLY, 0);
        failure = failure != 0 ? failure
                               : posix_spawnp(&child, "git", &actions, NULL,
                                              (char *const *)(uintptr_t)words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    while (failure == 0 && got > 0) {
        char rest[ANSWER_BYTES]; /* what does not fit is read and dropped */
        bool fits = bytes < ANSWER_BYTES - 1;
        got = fits ? read(ends[0], answer + bytes, ANSWER_BYTES - 1 - bytes)
                   : read(ends[0], rest, sizeof rest);
        bytes += fits && got > 0 ? (size_t)got : 0;
        got = got < 0 && errno == EINTR ? 1 : got;
    }
    close(ends[0]);
    answer[bytes] = '\0';
    while (failure == 0 && waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    return failure == 0 && WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

void git_commit(char out[LABEL_BYTES])
{
    static const char head[] = "# branch.oid ";
    char answer[ANSWER_BYTES];
    bool changed = false;
    out[0] = '\0';
    if (!is_in_tree() || !ask(answer)) {
        return;
    }
    for (const char *line = answer; *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        if (strncmp(line, head, sizeof head - 1) == 0) {
            const char *hash = line + sizeof head - 1;
            size_t bytes = strspn(hash, "0123456789abcdef");
            if (bytes >= 40 && bytes <= 64) {
                snprintf(out, LABEL_BYTES, "%.*s", (int)bytes, hash);
            }
        }
        changed = changed || (*line != '#' && *line != '\0' && *line != '\n');
    }
    size_t used = strlen(out);
    if (used > 0 && changed) {
        snprintf(out + used, LABEL_BYTES - used, " with changes");
    }
}
