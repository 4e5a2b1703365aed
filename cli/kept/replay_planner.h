/*
 * Planner of a drive that is done again: the one that drove an outcome, by its files as they are
 * now, or by those that the store kept; where neither is it, that is said and the files as they are
 * now drive.
 */
#ifndef SWERVE_CLI_KEPT_REPLAY_PLANNER_H
#define SWERVE_CLI_KEPT_REPLAY_PLANNER_H

#include "store/api/store.h"
#include "worker/run/runner_open.h"

enum { REPLAY_PATHS_MAX = 64 }; /* shown to a planner whose files the store kept */

struct replay_planner {
    struct open_runner open;
    char files[SHA256_HEX_BYTES];           /* identity of the planner that was opened, */
    char hash[SHA256_HEX_BYTES];            /* and with what it loaded */
    char kept[LIMIT_PATH_BYTES];            /* folder of files that the store kept; "": none */
    struct planner_confinement confinement; /* of those */
    const char *paths[REPLAY_PATHS_MAX];    /* that are shown to it */
};

/* The store that may have kept a planner's files. */
struct replay_files {
    struct store *store; /* borrowed; NULL: any version of the planner will do */
    const char *url;     /* for commands that are shown */
    /* Of kept files, beside the sandbox: borrowed until the planner is closed. */
    const struct planner_confinement *confinement;
};

/* Opens a runner for `spec` with the sensors of a rig (NULL: the built-in one). Where the planner
 * has changed and the store has none of its files, that is said on stderr. To be closed after
 * failures too. PLANNER: kept files run in the sandbox alone, and there is none here. */
enum status replay_planner_open(const struct runner_source *source, const struct job_spec *spec,
                                const struct rig *rig, const struct replay_files *files,
                                const struct outcome *outcome, struct replay_planner *out,
                                struct error *error);

/* The same by the files as they are in this folder, whatever the store has. */
enum status replay_planner_open_here(const struct runner_source *source,
                                     const struct job_spec *spec, const struct rig *rig,
                                     struct replay_planner *out, struct error *error);

/* The same by the files in out->kept, which are removed with it, in the sandbox. */
enum status replay_planner_open_kept(const struct runner_source *source,
                                     const struct job_spec *spec, const struct rig *rig,
                                     const struct planner_confinement *confinement,
                                     struct replay_planner *out, struct error *error);
void replay_planner_close(struct replay_planner *planner);

/* Whether the planner that was opened is the one that drove the outcome. */
bool replay_planner_is(const struct replay_planner *planner, const struct outcome *outcome);

#endif
