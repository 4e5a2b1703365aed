/*
 * Drives of a suite that are done again, one after the other: by the runner that each asks for,
 * opened anew where it differs from the one before.
 */
#ifndef SWERVE_CLI_KEPT_AGAIN_H
#define SWERVE_CLI_KEPT_AGAIN_H

#include "cli/kept/replay_planner.h"
#include "scenarios/scenarios.h"
#include "store/api/store.h"

struct again {
    struct store *store; /* borrowed, like all that follows */
    const char *url;     /* of the store, as the user names it */
    const struct planner_confinement *confinement;
    struct models *models;       /* NULL: learned worlds cannot be asked */
    bool truth;                  /* worlds that generate are the object world */
    int64_t planner_deadline_ms; /* of an answer; 0: a second */
    struct replay_planner planner;
    struct job_spec spec; /* the runner's, with the hash of its planner */
};

/* Row of a command's option table. */
#define AGAIN_DEADLINE_ROW(again_)                                                 \
    {                                                                              \
        "--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)", \
            .number = &(again_).planner_deadline_ms                                \
    }

/* Loads the outcome's scenario and sees that the runner of its drive is open
 * (again->planner.open.runner). The caller destroys *out. */
enum status again_begin(struct again *again, const struct outcome *outcome,
                        struct scenario_document **out, struct error *error);
void again_close(struct again *again);

/* Order of drives: by logical scenario, scenario, planner, and when they were stored, as rates
 * want it (scheduler/rate.h). And keys of the next one, from those of the one before it, which is
 * NULL at the first. */
int again_compare(const struct outcome *a, const struct outcome *b);
void again_keys(const struct outcome *before, const struct outcome *outcome, int64_t *logical_key,
                int64_t *case_key);

/* Main lines of a suite that have no drive to be done again, by why: its jobs that are dead,
 * cancelled or waiting, and main lines that neither passed nor failed, which the caller has counted
 * by verdict. */
enum { AGAIN_LEFT_OUT_KINDS = 6, AGAIN_LEFT_OUT_BYTES = 256 };

struct again_left_out {
    const char *name; /* static */
    int64_t count;
};

void again_left_out(const struct store_suite_status *status, const int64_t without[VERDICT_COUNT],
                    struct again_left_out out[AGAIN_LEFT_OUT_KINDS]);

/* ": 2 dead, 1 flagged"; "" of none. Returns `out`. */
const char *again_left_out_text(const struct store_suite_status *status,
                                const int64_t without[VERDICT_COUNT],
                                char out[AGAIN_LEFT_OUT_BYTES]);

#endif
