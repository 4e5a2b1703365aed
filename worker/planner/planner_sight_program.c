/*
 * Files that a program needs in order to start: itself, the installation that it belongs to, and
 * the same for the interpreter that its first line names. See planner_sight.h.
 *
 * A program of the system has all of this under /usr. A virtual environment's python is a link to
 * one that lies elsewhere, often below a home directory; pyenv puts a script in front of it. Each
 * link on the way is followed, and of each installation that it passes through only the
 * directories of programs and libraries are shown.
 */
#include "worker/planner/planner_sight.h"

#include "base/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 16, SCRIPTS_MAX = 4, LINE_BYTES = 512 };

static bool exists(const char *directory, const char *name)
{
    char path[LIMIT_PATH_BYTES];
    return planner_sight_join(path, directory, name) && access(path, F_OK) == 0;
}

/* Adds what there is of these names; the system's installations are in sight already. */
static enum status add_parts(struct planner_sight *sight, const char *directory,
                             const char *const *names, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        char path[LIMIT_PATH_BYTES];
        if (exists(directory, names[i]) && planner_sight_join(path, directory, names[i])) {
            TRY(planner_sight_add(sight, path, error));
        }
    }
    return STATUS_OK;
}

/* Cuts the last component off; false: there is none. */
static bool cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* Whether `directory` is an installation of its own: a Python environment, or a directory with a
 * library named as the program is. */
static bool is_installation(const char *directory, const char *name)
{
    char library[LIMIT_PATH_BYTES];
    snprintf(library, sizeof library, "lib/%.255s", name);
    return !planner_sight_is_home(directory) &&
           (exists(directory, "pyvenv.cfg") || exists(directory, "conda-meta") ||
            exists(directory, library));
}

bool planner_sight_is_installed(const char *program)
{
    char directory[LIMIT_PATH_BYTES];
    snprintf(directory, sizeof directory, "%s", program);
    const char *name = strrchr(program, '/') + 1;
    return cut(directory) && strcmp(strrchr(directory, '/') + 1, "bin") == 0 && cut(directory) &&
           is_installation(directory, name);
}

static enum status add_installation(struct planner_sight *sight, const char *program,
                                    struct error *error)
{
    static const char *const usual[] = {"bin",     "lib",        "lib32",      "lib64", "libexec",
                                        "include", "pyvenv.cfg", "conda-meta", "ssl"};
    static const char *const pyenv[] = {"bin",     "completions", "libexec", "plugins",
                                        "pyenv.d", "shims",       "version", "versions"};
    char directory[LIMIT_PATH_BYTES];
    snprintf(directory, sizeof directory, "%s", program);
    const char *name = strrchr(program, '/') + 1;
    if (cut(directory)) {
        const char *last = strrchr(directory, '/') + 1;
        bool bin = strcmp(last, "bin") == 0;
        bool shims = strcmp(last, "shims") == 0;
        if (cut(directory) && bin && is_installation(directory, name)) {
            return add_parts(sight, directory, usual, COUNT_OF(usual), error);
        }
        if (shims && exists(directory, "versions") && exists(directory, "libexec")) {
            return add_parts(sight, directory, pyenv, COUNT_OF(pyenv), error);
        }
    }
    return STATUS_OK;
}

/* Follows a link, one step, without ".." in it; false: it is none. */
static bool follow(char path[LIMIT_PATH_BYTES])
{
    char text[LIMIT_PATH_BYTES];
    char directory[PATH_MAX];
    char joined[LIMIT_PATH_BYTES];
    ssize_t bytes = readlink(path, text, sizeof text - 1);
    if (bytes <= 0) {
        return false;
    }
    text[bytes] = '\0';
    if (text[0] != '/') {
        if (!cut(path) || !planner_sight_join(joined, path, text)) {
            return false;
        }
        memcpy(text, joined, sizeof text);
    }
    memcpy(joined, text, sizeof joined);
    return cut(joined) && realpath(joined, directory) != NULL &&
           planner_sight_join(path, directory, strrchr(text, '/') + 1);
}

/* The interpreter of a script, by its first line: a path, or with `env` a name for PATH. False:
 * `program` is no script. */
static bool interpreter_of(const char *program, char out[LIMIT_PATH_BYTES])
{
    char line[LINE_BYTES] = "";
    struct error ignored;
    int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    ssize_t bytes = read(fd, line, sizeof line - 1);
    close(fd);
    line[bytes > 0 ? bytes : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) != 0) {
        return false;
    }
    char *rest = NULL;
    const char *word = strtok_r(line + 2, " \t", &rest);
    if (word == NULL) {
        return false;
    }
    const char *name = strrchr(word, '/');
    if (name != NULL && strcmp(name, "/env") == 0) {
        do {
            word = strtok_r(NULL, " \t", &rest);
        } while (word != NULL && (word[0] == '-' || strchr(word, '=') != NULL));
        return word != NULL && planner_program_find(word, out, &ignored) == STATUS_OK &&
               out[0] == '/';
    }
    if (word[0] != '/' || access(word, X_OK) != 0) {
        return false;
    }
    snprintf(out, LIMIT_PATH_BYTES, "%s", word);
    return true;
}

enum status planner_sight_add_program(struct planner_sight *sight, const char *program,
                                      struct error *error)
{
    char script[LIMIT_PATH_BYTES];
    char path[LIMIT_PATH_BYTES];
    enum status status = STATUS_OK;
    snprintf(script, sizeof script, "%s", program);
    for (int scripts = 0; scripts < SCRIPTS_MAX && status == STATUS_OK; scripts++) {
        memcpy(path, script, sizeof path);
        for (int links = 0; links < LINKS_MAX && status == STATUS_OK; links++) {
            status = add_installation(sight, path, error);
            if (!follow(path)) {
                break;
            }
        }
        THEN(status, planner_sight_add(sight, script, error));
        if (!interpreter_of(script, script)) {
            break;
        }
    }
    return status;
}
