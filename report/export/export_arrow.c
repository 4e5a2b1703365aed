/*
 * Arrow and Parquet: rows go through a pipe to Python with pyarrow, Apache's own library.
 */
#include "report/export/export.h"

#include "base/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct embedded_text export_assets[];
extern char **environ;

enum { EXIT_NO_PYARROW = 3, EXIT_NO_PROGRAM = 127 };

static enum status missing(const char *format, struct error *error)
{
    return error_set(error, STATUS_DEVICE,
                     "export: %s is written by python3 with pyarrow, which is not there: \"pip "
                     "install pyarrow\" into the python3 of PATH; csv, jsonl, junit, markdown and "
                     "mcap need nothing",
                     format);
}

static enum status start_python(const char *format, const char *path, pid_t *pid, FILE **rows,
                                struct error *error)
{
    int ends[2];
    char *words[] = {"python3",
                     "-c",
                     (char *)(uintptr_t)export_assets[0].text,
                     (char *)(uintptr_t)format,
                     (char *)(uintptr_t)path,
                     NULL};
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_IO, "export: cannot make a pipe: %s", strerror(errno));
    }
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure == 0) {
        failure = posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
        if (failure == 0) {
            failure = posix_spawnp(pid, words[0], &actions, NULL, words, environ);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[0]);
    if (failure != 0) {
        close(ends[1]);
        return failure == ENOENT ? missing(format, error)
                                 : error_set(error, STATUS_IO, "export: cannot start python3: %s",
                                             strerror(failure));
    }
    *rows = fdopen(ends[1], "w");
    if (*rows == NULL) {
        close(ends[1]);
        waitpid(*pid, NULL, 0);
        return error_set(error, STATUS_NO_MEMORY, "export: out of memory");
    }
    return STATUS_OK;
}

enum status export_arrow(const struct export_request *request, const char *format, const char *path,
                         struct error *error)
{
    pid_t pid;
    FILE *rows;
    int exit_status = 0;
    TRY(start_python(format, path, &pid, &rows, error));
    struct export_request piped = *request;
    piped.out = rows;
    piped.place = "rows for python3";
    enum status status = export_rows(&piped, error);
    fclose(rows);
    while (waitpid(pid, &exit_status, 0) < 0 && errno == EINTR) {
    }
    int code = WIFEXITED(exit_status) ? WEXITSTATUS(exit_status) : -1;
    if (code == EXIT_NO_PYARROW || code == EXIT_NO_PROGRAM) {
        return missing(format, error);
    }
    if (code != 0) { /* which is why the rows could not be written, if so */
        return error_set(error, STATUS_IO, "%s: python3 could not write it; it says why above",
                         path);
    }
    return status;
}
