/*
 * Story: runs a scenario's storyboard. Internal to the engine.
 *
 *   every tick, in STORY_SUBSTEPS parts: acts and events whose triggers hold start -> actions set
 *   speed, offset and path of their actors -> actors move -> poses of agents
 *
 * Ego between two ticks goes straight on at its speed. Semantics are those of ASAM OpenSCENARIO XML
 * 1.3; where the standard leaves a choice, the one of esmini is taken and said beside it.
 * Invariant: the state is a plain value of fixed size, so that forking is copying; nothing is drawn
 * at random and no libm is called.
 */
#ifndef SWERVE_ENGINE_STORY_STORY_H
#define SWERVE_ENGINE_STORY_STORY_H

#include "schemas/scenario.h"
#include "schemas/scene.h"
#include "schemas/storyboard/storyboard.h"

#include <stdbool.h>
#include <stdint.h>

enum { STORY_SUBSTEPS = 50 };

/* A change of speed or offset: from + (to - from) f(done / whole). */
struct story_transition {
    double from;
    double to;
    double done;
    double whole; /* seconds, or metres */
};

struct story_actor_state {
    double s_m;
    double offset_m;
    double x_m; /* of the reference point */
    double y_m;
    double heading_rad;
    double turn_rad; /* heading minus the path's */
    double speed_mps;
    double accel_mps2;
    double lat_accel_mps2; /* left positive */
    double travelled_m;
    double standing_s;
    double braked_mps2; /* > 0: an intervention has it brake, and its actions rest */
    struct story_transition speed;
    struct story_transition lateral;
    double last_m; /* synchronise: distances of the step before */
    double last_other_m;
    double ux; /* of heading_rad */
    double uy;
    struct pose frame; /* where the path's origin lies, where it is laid from the actor */
    uint32_t hint;     /* segment of the path that s_m lies in */
    int16_t speed_action;
    int16_t lateral_action;
    uint16_t path;
    uint8_t present;
    uint8_t phase;   /* of a synchronisation */
    uint8_t framed;  /* frame holds */
    uint8_t backing; /* faces against its path, along which a negative speed leads */
};

struct story_event_state {
    double start_s; /* of the latest run; -1: none */
    double end_s;
    uint16_t runs;
    uint8_t running;
    uint8_t stopped; /* its latest end was a stop */
};

enum { STORY_TURNS = 8 }; /* of a condition within its delay */

struct story_condition_state {
    double turned_s[STORY_TURNS]; /* came to hold, or not to any more, in turn; not told so far */
    uint8_t turn_count;           /* of those with a delay */
    uint8_t told;                 /* what was told last: whether it held */
    uint8_t known;
    uint8_t last;
    uint8_t lasts;  /* off the road or at its end, for however long .. */
    double since_s; /* .. from then on */
};

struct story_action_state {
    double start_s;
    double end_s;
    uint8_t running;
    uint8_t stopped;
};

struct story_state {
    struct story_actor_state actors[LIMIT_STORY_ACTORS];
    struct story_event_state events[LIMIT_STORY_EVENTS];
    struct story_condition_state conditions[LIMIT_STORY_CONDITIONS];
    struct story_action_state actions[LIMIT_STORY_ACTIONS];
};

/* Tick 0: places the actors and their agents in the scene. */
void story_reset(const struct scenario *scenario, struct scene *scene, struct story_state *state);

/* Copies what the storyboard uses; the rest is never read. */
void story_copy(const struct storyboard *board, struct story_state *to,
                const struct story_state *from);

/* One tick: moves actors and their agents from scene->tick to the next; ego in the scene is as at
 * scene->tick and is not changed. */
void story_step(const struct scenario *scenario, struct scene *scene, struct story_state *state);

/* An agent of the storyboard brakes from now on. False: no actor moves it. */
bool story_brake(const struct scenario *scenario, struct story_state *state, uint32_t agent,
                 double decel_mps2);

/* Whether the storyboard may put that agent at once to a place so near to `at`. */
bool story_may_put(const struct scenario *scenario, uint32_t agent, struct vec2 at,
                   double within_m);

#endif
