/*
 * The door: what clients send is looked at here before the store takes it. Contents against
 * store/door/invariants.h, names by one rule (text_name_check), and what one record says against
 * what another does. Nothing here reads the database.
 */
#ifndef SWERVE_STORE_DOOR_DOOR_H
#define SWERVE_STORE_DOOR_DOOR_H

#include "base/status.h"
#include "schemas/job.h"
#include "schemas/scenario.h"
#include "store/api/store.h"
#include "store/api/trust.h"
#include "store/artifacts/artifacts.h"

#include <stdint.h>

/* A suite may have this id. */
enum status door_suite(const char *suite_id, struct error *error);
/* It may have that budget; 0: none is asked for. */
enum status door_budget(const char *suite_id, int64_t budget_uusd, struct error *error);
enum status door_class(const char *suite_id, enum suite_class of_class, struct error *error);
/* A job may be submitted as number `index` of a call to that suite. */
enum status door_spec(const struct job_spec *spec, const char *suite_id, uint32_t index,
                      struct error *error);
/* Its id, pool, device and host may be a worker's. */
enum status door_worker(const struct store_worker *worker, struct error *error);
enum status door_progress(const struct store_progress *progress, struct error *error);
/* A completion may be queued: it fits, is in range, and its artifacts are there. */
enum status door_completion(const struct artifacts *artifacts,
                            const struct job_completion *completion, struct error *error);

/* Facts that a scenario's body says of it. */
struct door_facts {
    struct slices slices;
    uint32_t horizon_ticks;
    uint32_t branch_count;
    bool no_fault;                  /* a collision at fault fails it */
    bool controls;                  /* a log of the controls challenge: nobody else answers it */
    const struct slices *of_branch; /* borrowed [branch_count]; NULL: each as the main line */
};

/* A scenario, as far as it is known. */
struct door_scenario {
    uint32_t count;
    const char (*names)[LIMIT_ID_BYTES]; /* of its branches [count], borrowed */
    bool known;                     /* as many as the job has, and each has a name of its own */
    const struct door_facts *facts; /* borrowed; NULL: its body is no scenario */
};

/* Slices of a branch (""; the main line) at its end; NULL: nothing is known of the scenario. */
const struct slices *door_slices(const struct door_scenario *scenario, const char *branch_id);
/* Whether the main line or a branch of it belongs to the slice. */
bool door_has_slice(const struct door_facts *facts, const struct trust_slice *slice);

/* A job has the rollouts of its scenario: the main line and each branch. CONFLICT. */
enum status door_rollout_count(const struct job_spec *spec, const struct door_scenario *scenario,
                               struct error *error);

/* The rollouts that a completion brings are the job's: no two outcomes of one, DONE each of them,
 * FLAGGED at least the one that was, none is longer than its scenario, and none that is at fault
 * has passed one that forbids it. Names of branches are not looked at where the job has one
 * rollout. CONFLICT. */
enum status door_rollouts(const struct job_completion *completion, uint32_t rollout_count,
                          const struct door_scenario *scenario, struct error *error);

#endif
