/*
 * Planner specs: taking `builtin:NAME[?config]`, `plugin:FILE.so[?config]`, `exec:COMMAND LINE` and
 * `egodriver:NAME[?options]` apart. Pure text and file-system look-ups; nothing is run here.
 *
 * The command line of an exec planner is split into words the way a shell quotes, but no shell is
 * involved: no variables, globs, pipes or redirections, so a spec means the same everywhere.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_SPEC_H
#define SWERVE_WORKER_PLANNER_PLANNER_SPEC_H

#include "base/status.h"
#include "schemas/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum planner_spec_kind {
    PLANNER_SPEC_BUILTIN = 0,
    PLANNER_SPEC_PLUGIN,
    PLANNER_SPEC_EXEC,
    PLANNER_SPEC_EGODRIVER,
    PLANNER_SPEC_COUNT
};

struct planner_spec {
    enum planner_spec_kind kind;
    char target[LIMIT_SPEC_BYTES]; /* name, plugin file, or the whole command line */
    char config[LIMIT_SPEC_BYTES]; /* text after the first "?", "" for none and for exec */
};

/* "guarded+SPEC" is the planner SPEC with the guardian acting for it (worker/METRICS.md), and
 * "seen+SPEC" the one that is shown of the objects around it only what its sensors see: other
 * stacks, and so other planners. "guarded+seen+SPEC" is both. The text behind them. */
const char *planner_spec_bare(const char *text);
bool planner_spec_guarded(const char *text);
bool planner_spec_seen(const char *text);

/* Whether the planner runs in a process of its own or behind a service: what it is, beyond its
 * spec, is known once it has started. */
bool planner_spec_is_apart(const char *text);

enum { PLANNER_ARGV_MAX = 128 };

/* A command line as words. argv[count] is NULL; the words live in `text`. */
struct planner_argv {
    uint32_t count;
    char *argv[PLANNER_ARGV_MAX + 1];
    char text[LIMIT_SPEC_BYTES + 1];
};

enum status planner_spec_parse(const char *text, struct planner_spec *spec, struct error *error);

/* Words are separated by blanks. '..' keeps everything, ".." keeps everything but \" and \\, a
 * backslash outside quotes keeps the next character. An open quote, a trailing backslash or no word
 * at all is STATUS_BAD_INPUT. The result points into itself: do not copy it. */
enum status planner_argv_parse(const char *command, struct planner_argv *out, struct error *error);

/* Path where execvp finds the program: `program` itself when it holds a slash, else the first match
 * in PATH. STATUS_NOT_FOUND names what was searched. path has LIMIT_PATH_BYTES. */
enum status planner_program_find(const char *program, char *path, struct error *error);

#endif
