/*
 * Validity: whether a rollout can be believed as physics, so that its verdict means something.
 * Health checks ask whether a world is sick and discard it; these ask whether a sound world was
 * taken beyond what its models hold for. Such a rollout ends with the verdict `invalid`, which is
 * neither a pass nor a failure, and with the first check that did not hold as its reason.
 *
 * Looked at up to ego's first contact: no world has a physics of impacts. Definitions, bounds and
 * sources: worker/METRICS.md.
 */
#ifndef SWERVE_WORKER_SCORE_VALIDITY_H
#define SWERVE_WORKER_SCORE_VALIDITY_H

#include "engine/sensors/prepared.h"
#include "schemas/scene.h"

#include <stddef.h>

enum validity_check {
    VALIDITY_OK = 0,
    VALIDITY_IMPORT,       /* the scenario says that it is not what was recorded */
    VALIDITY_FRICTION_USE, /* ego turned harder than the kinematic bicycle holds for */
    VALIDITY_TELEPORT,     /* a body moved farther than its speed takes it */
    VALIDITY_OVERLAP,      /* two agents were in one place */
    VALIDITY_AGENT,        /* an agent took more than the surface gives */
    VALIDITY_SIDESLIP,     /* ego slid sideways farther than the single-track model holds for */
    VALIDITY_CUT_SHORT,    /* somebody ran into ego before it could do what it is blamed for */
    VALIDITY_CHECK_COUNT
};

extern const char *const validity_check_names[VALIDITY_CHECK_COUNT];

/* A plain value: a fork copies it. */
struct validity {
    /* First check that did not hold; check == OK: everything has held so far. */
    enum validity_check check;
    uint32_t tick;
    int32_t agent;    /* index, -1: ego */
    int32_t other;    /* the second of an overlap, else -1 */
    double value;     /* what was measured */
    double threshold; /* what it may be at most */
    /* of the tick before */
    bool started;
    double friction;
    struct ego_state ego;
    struct agent_state agents[LIMIT_AGENTS];
};

/* Looks at the next tick. `follows_logs`: agents that have a log are where it has them (the replay
 * world). `true_agents`: an index is the same agent in every tick; without it only ego is looked
 * at. */
void validity_update(struct validity *validity, const struct prepared *prepared,
                     const struct scene *scene, bool follows_logs, bool true_agents);

/* A contact that was not ego's fault ended the rollout at `tick`; nothing was amiss before. */
void validity_cut_short(struct validity *validity, uint32_t tick, int32_t agent, double impact_mps);

/* A sentence about what did not hold; check != OK. */
void validity_sentence(const struct validity *validity, const struct scenario *scenario, char *out,
                       size_t bytes);

#endif
