/*
 * Health: is this still a believable world? Checked every tick while a rollout runs. A rollout that
 * fails a check is discarded, never kept: its job goes to the teacher pool, or ends dead with the
 * evidence where no teacher exists. These checks need only the scene; learned worlds add their own.
 */
#ifndef SWERVE_WORKER_HEALTH_H
#define SWERVE_WORKER_HEALTH_H

#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

enum health_check {
    HEALTH_OK = 0,
    HEALTH_NOT_FINITE, /* a NaN or infinity anywhere in the state */
    HEALTH_TELEPORT,   /* an actor moved further in one tick than any vehicle can */
    HEALTH_KINEMATICS, /* ego's speed changed faster than tyres allow */
    HEALTH_FROZEN,     /* the world's tick does not advance */
    HEALTH_CHECK_COUNT
};

extern const char *const health_check_names[HEALTH_CHECK_COUNT];

struct health_verdict {
    enum health_check check;
    uint32_t tick;
    int32_t agent;    /* index, -1: ego or the world */
    double value;     /* what was measured */
    double threshold; /* what it may be at most */
};

/* What the checks remember of the tick before. A plain value: a fork copies it. */
struct health {
    bool started;
    uint32_t tick;
    struct pose ego_pose;
    double ego_speed_mps;
    struct vec2 agent_position[LIMIT_AGENTS];
    bool agent_present[LIMIT_AGENTS];
};

/* Looks at the scene of the next tick; *out is written when the answer is false. Constant work per
 * agent, no allocation. */
bool health_update(struct health *health, const struct scene *scene, struct health_verdict *out);

#endif
