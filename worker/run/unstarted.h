/*
 * Planners and worlds that do not start on this host. Their jobs go back to the store uncharged,
 * and claims leave them to workers elsewhere; unless the store answers that the planner does not
 * start there either: then it is the planner's fault, and its jobs are tried, and fail, like
 * others. A world (its model's files, its device) or a release of the simulation is never the job's
 * fault, wherever it is missing.
 */
#ifndef SWERVE_WORKER_RUN_UNSTARTED_H
#define SWERVE_WORKER_RUN_UNSTARTED_H

#include "base/log.h"
#include "schemas/rig/rig.h"
#include "store/api/store.h"

enum {
    UNSTARTED_JOBS_MAX = 64, /* handed back and looked for at the end */
    UNSTARTED_RIGS_MAX = 16,
};

/* A rig with which a planner that starts here does not, or that is not the job's. */
struct unstarted_rig {
    struct store_planner planner; /* in its world */
    char rig[SHA256_HEX_BYTES];   /* of the scenario; "": the built-in one */
    char job_rig[SHA256_HEX_BYTES];
    struct error why;
};

struct unstarted {
    uint32_t count;
    struct store_planner planners[STORE_WITHOUT_MAX];
    bool told[STORE_WITHOUT_MAX]; /* that this host leaves the planner alone */
    struct error why;             /* of the last one */
    uint32_t job_count;
    int64_t jobs[UNSTARTED_JOBS_MAX];
    uint32_t rig_count; /* ever; the newest UNSTARTED_RIGS_MAX are kept */
    struct unstarted_rig rigs[UNSTARTED_RIGS_MAX];
};

void unstarted_planner(const struct job_spec *spec, struct store_planner *out);
/* The planner's jobs in the world of the job. */
void unstarted_world(const struct job_spec *spec, struct store_planner *out);
/* Those of them that ask for the job's revision, which is not this worker's. */
void unstarted_release(const struct job_spec *spec, struct store_planner *out);

/* Adds the planner in the world of the spec to a list of `count`, [STORE_WITHOUT_MAX], unless it is
 * there or the list is full. Returns the new count. */
uint32_t unstarted_list(struct store_planner *list, uint32_t count, const struct job_spec *spec);

bool unstarted_has(const struct unstarted *unstarted, const struct store_planner *planner);

/* The sentence with which a job of this planner and rig (NULL: the built-in one) failed here
 * before, so that the planner is not started for it again; NULL: none did. */
const struct error *unstarted_refused(const struct unstarted *unstarted,
                                      const struct job_spec *spec, const struct rig *rig);
void unstarted_refuse(struct unstarted *unstarted, const struct job_spec *spec,
                      const struct rig *rig, const struct error *why);

/* From now on its jobs are handed back unseen. False: there are too many. */
bool unstarted_add(struct unstarted *unstarted, const struct store_planner *planner,
                   const struct error *why);

/* The store took the job back: the host is at fault (excused), or the planner, which is forgotten.
 */
void unstarted_judge(struct unstarted *unstarted, const struct store_planner *planner,
                     int64_t job_id, bool excused, const struct logger *logger);

/* A job of a world that does not start here goes back. */
void unstarted_hand_back(struct unstarted *unstarted, const struct store_planner *planner,
                         int64_t job_id, const struct logger *logger);

/* STATUS_PLANNER, or STATUS_DEVICE, with a sentence for the user: jobs that were handed back still
 * wait for somebody.
 */
enum status unstarted_left(const struct unstarted *unstarted, struct store *store,
                           struct error *error);

#endif
