/*
 * Planner of a replay: the one that drove an outcome, by its files as they are now, or by those
 * that the store kept; where neither is it, that is said and the files as they are now drive.
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

/* Opens a runner for `spec` with the sensors of a rig (NULL: the built-in one). `store`, borrowed:
 * may have kept the files, and it is said on stderr where they have changed; NULL: any version of
 * the planner will do. To be closed after failures too. PLANNER: kept files run in the sandbox
 * alone, and there is none here. */
enum status replay_planner_open(const struct runner_source *source, const struct job_spec *spec,
                                const struct rig *rig, struct store *store, const char *store_url,
                                const struct outcome *outcome, struct replay_planner *out,
                                struct error *error);
void replay_planner_close(struct replay_planner *planner);

/* Whether the planner that was opened is the one that drove the outcome. */
bool replay_planner_is(const struct replay_planner *planner, const struct outcome *outcome);

#endif
