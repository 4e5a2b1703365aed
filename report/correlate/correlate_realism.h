/*
 * States of one scene's traffic for realism.h: as recorded, as simulated, and going straight on
 * from the start. Objects are the agents, then ego. Evaluated are those with a recording from the
 * start; the others stand or drive as simulated in all three.
 */
#ifndef SWERVE_REPORT_CORRELATE_CORRELATE_REALISM_H
#define SWERVE_REPORT_CORRELATE_CORRELATE_REALISM_H

#include "base/geom.h"
#include "report/correlate/correlate.h"

struct roadmap;

enum traffic_source { TRAFFIC_RECORDED = 0, TRAFFIC_SIMULATED, TRAFFIC_STRAIGHT, TRAFFIC_SOURCES };

struct traffic_states {
    uint32_t objects, steps;
    struct realism_object *object; /* owned, as all of these */
    struct realism_state *states;  /* [source][object][step] */
    double *scratch;               /* [steps] */
};

/* Room for `steps` ticks; what it made is destroyed by the caller, also after an error. */
enum status traffic_states_create(const struct scenario *scenario, uint32_t steps,
                                  struct traffic_states *out, struct error *error);
void traffic_states_destroy(struct traffic_states *states);

/* An object at a tick, and its `count` recorded ticks from the start (0: it has none). */
void traffic_states_note(struct traffic_states *states, const struct roadmap *roadmap,
                         uint32_t object, uint32_t tick, struct pose pose, bool present,
                         const struct trajectory_point *recorded, uint32_t count);

/* Adds the scene's likelihoods, once all ticks are noted. */
void traffic_states_judge(struct traffic_states *states, struct correlate *correlate);

#endif
