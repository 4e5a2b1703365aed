/*
 * Health: is this still a believable world? Checked every tick while a rollout runs. A rollout that
 * fails a check is discarded, never kept: its job goes to the teacher pool, or ends dead with the
 * evidence where no teacher exists. These checks need only the scene; learned worlds add their own.
 */
#ifndef SWERVE_WORKER_MODELS_HEALTH_H
#define SWERVE_WORKER_MODELS_HEALTH_H

#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

/* The window is checked against health_bounds.h's table there. */
enum { HEALTH_WINDOW = 24, HEALTH_SAID_BYTES = 384 };

enum health_check {
    HEALTH_OK = 0,
    HEALTH_NOT_FINITE, /* a NaN or infinity anywhere in the state or the latents */
    HEALTH_TELEPORT,   /* an actor, or the scene, moved further in one tick than any vehicle can */
    HEALTH_KINEMATICS, /* ego's speed changed faster than tyres allow */
    HEALTH_FROZEN,     /* the world's tick does not advance, or its picture while ego moves */
    /* of learned worlds alone, see health_world.h */
    HEALTH_SATURATED,  /* latents at the end of their range */
    HEALTH_MASS,       /* occupied area blooms or dwindles */
    HEALTH_LAYOUT,     /* occupancy is not where the layout has it */
    HEALTH_CAMERA,     /* cameras do not show what the layout has */
    HEALTH_PERMANENCE, /* agents vanished in view */
    HEALTH_HORIZON,    /* beyond the ticks for which the model is trusted */
    HEALTH_ABSENT,     /* an agent that was given is not drawn */
    HEALTH_OFFSET,     /* .. or is drawn elsewhere */
    HEALTH_PHANTOM,    /* something is drawn where nobody is: a clone, say */
    HEALTH_WORLD,      /* a foreign world broke its word: `said` names it and how */
    HEALTH_DIVERGED,   /* the drive has left what was recorded (tier golden) */
    HEALTH_CHECK_COUNT
};

extern const char *const health_check_names[HEALTH_CHECK_COUNT];

struct health_verdict {
    enum health_check check;
    uint32_t tick;
    int32_t agent;    /* index, -1: ego or the world */
    double value;     /* what was measured */
    double threshold; /* what it may be at most */
    char said[HEALTH_SAID_BYTES];
};

/* Memory of health_world.h of the last ticks, by tick modulo HEALTH_WINDOW. */
struct health_world {
    uint32_t seen;
    double mass_cells;
    double recent[MEASURE_COUNT][HEALTH_WINDOW];
    int32_t agent[MEASURE_COUNT]; /* whose value it is, -1: nobody's */
    /* Of each agent: share that is missing, in 1/255, and offset, in decimetres. An agent that was
     * not judged had none of either. */
    uint8_t missing[LIMIT_AGENTS][HEALTH_WINDOW];
    uint8_t offset_dm[LIMIT_AGENTS][HEALTH_WINDOW];
    /* Of the whole drive: the means are sums of `applied` ticks still. */
    struct drive_health drive;
    uint32_t applied[MEASURE_COUNT];
};

/* Memory of the checks of the tick before. A plain value: a fork copies it. */
struct health {
    bool started;
    uint32_t tick;
    struct pose ego_pose;
    double ego_speed_mps;
    struct vec2 agent_position[LIMIT_AGENTS];
    bool agent_present[LIMIT_AGENTS];
    struct health_world world;
};

/* Looks at the scene of the scenario's next tick; *out is written when the answer is false. Work
 * per agent is constant but where one jumps, no allocation. An agent may jump to where its
 * storyboard puts it. `true_agents`: an index is the same agent in every tick, so that its steps
 * can be judged (a world that extracts its agents judges them itself). */
bool health_update(struct health *health, const struct scenario *scenario,
                   const struct scene *scene, bool true_agents, struct health_verdict *out);

#endif
