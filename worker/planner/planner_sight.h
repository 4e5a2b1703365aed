/*
 * Sight of a confined planner: the list of files and directories that its sandbox holds. Everything
 * on it is there for a reason; what is not on it does not exist for the planner.
 *
 *   system      programs and libraries of the system, the few settings that they read, devices
 *   program     the program of the command line, found as the worker finds it, and the
 *               installation that it belongs to (a virtual environment, pyenv, conda ..): its bin,
 *               lib and the like
 *   code        of the worker's directory, and of those in PYTHONPATH and LD_LIBRARY_PATH: Python
 *               files, packages and shared objects
 *   named       files below the worker's directory that the command line names, of the kinds that
 *               planners are made of: programs, code (with that of the directories up to the
 *               worker's), weights, settings that others may read
 *   given       what the worker's owner names with --planner-path
 *
 * The command line is chosen by whoever submitted the job, so naming a file there shows nothing
 * outside the worker's directory, and nothing hidden (a name that begins with a dot) in it. It is
 * the real path that is judged, links in every component resolved: a link in the directory shows
 * what it leads to only where naming that would show it, or where it is in sight anyhow. A home
 * directory is nobody's planner directory: a worker that runs in one, or above one, shows nothing
 * of it. A directory that holds a store is never shown as a whole.
 *
 * Private to the planner host.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_SIGHT_H
#define SWERVE_WORKER_PLANNER_PLANNER_SIGHT_H

#include "base/status.h"
#include "worker/planner/planner.h"
#include "worker/planner/planner_spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SIGHT_ITEMS_MAX = 1024, SIGHT_UNSEEN_BYTES = 480 };

enum sight_kind {
    SIGHT_DIRECTORY = 0,
    SIGHT_FILE,
    SIGHT_DEVICE,
    SIGHT_LINK,  /* `source` is its text */
    SIGHT_EMPTY, /* a directory that holds other items alone; no source */
};

struct sight_item {
    enum sight_kind kind;
    char *place;  /* absolute: where the planner sees it */
    char *source; /* its real path */
    dev_t device; /* of the source, when it was judged */
    ino_t inode;
};

struct planner_sight {
    uint32_t count;
    char directory[LIMIT_PATH_BYTES]; /* the worker's, to work in */
    /* A sentence about the first word of the command line that a link leads to where naming shows
     * nothing; "": none does. */
    char unseen[SIGHT_UNSEEN_BYTES];
    struct sight_item items[SIGHT_ITEMS_MAX];
};

/* The list for a command line, whose program was found at `program`. STATUS_USAGE: a secret or a
 * store would be in sight. */
enum status planner_sight_make(const struct planner_confinement *confinement,
                               const struct planner_argv *words, const char *program,
                               struct planner_sight **out, struct error *error);
void planner_sight_free(struct planner_sight *sight); /* accepts NULL */

/* Whether an absolute path, as it stands, is in sight. */
bool planner_sight_holds(const struct planner_sight *sight, const char *path);

/* Adds a path, at its own name and, where links lead to it, at its real one; what is in sight
 * already is not added again. STATUS_NOT_FOUND; STATUS_LIMIT: too many. */
enum status planner_sight_add(struct planner_sight *sight, const char *path, struct error *error);

/* Adds the Python files, packages and shared objects of a directory. */
enum status planner_sight_add_code(struct planner_sight *sight, const char *directory,
                                   struct error *error);

/* Adds a program and what it needs to start: see "program" above. (planner_sight_program.c) */
enum status planner_sight_add_program(struct planner_sight *sight, const char *program,
                                      struct error *error);

/* Whether a program belongs to an installation: a virtual environment's python is a link to one
 * that lies elsewhere. (planner_sight_program.c) */
bool planner_sight_is_installed(const char *program);

/* Looks for a store or a socket in a directory, a few levels down, or at a file; true: `found`
 * names it.
 * (planner_sight_store.c) */
bool planner_sight_find_store(const char *path, char found[LIMIT_PATH_BYTES]);

/* Whether a directory is a home, or lies above one. */
bool planner_sight_is_home(const char *directory);

/* a/b into out; false: too long. */
bool planner_sight_join(char out[LIMIT_PATH_BYTES], const char *a, const char *b);

#endif
