/*
 * Foresight of a recorded scene beside what became of it: foreseen, accelerating and straight
 * vehicles against recorded ones, by place and by the cells under them. Private to correlate.
 */
#ifndef SWERVE_REPORT_CORRELATE_CORRELATE_FORESIGHT_H
#define SWERVE_REPORT_CORRELATE_CORRELATE_FORESIGHT_H

#include "base/status.h"
#include "base/units.h"
#include "engine/sensors/prepared.h"
#include "report/correlate/correlate.h"
#include "schemas/scene.h"

/* A recording at the ticks of the simulation. */
struct recording {
    uint32_t count;
    struct trajectory_point *ticks; /* owned */
};

static inline bool recording_from_start(const struct recording *recording)
{
    return recording->count > 0 && recording->ticks[0].t_s < TICK_S / 2;
}

/* Adds the errors of one vehicle at a horizon to the model's. */
void correlate_compare(struct correlate *correlate, enum correlate_model model, int horizon,
                       const struct trajectory_point *recorded, double x_m, double y_m,
                       double speed_mps);

/* A scene that is foreseen, tick by tick. */
struct foreseen;

/* From the scene at tick 0; prepared is borrowed and outlives it. */
enum status foreseen_create(struct prepared *prepared, const struct scene *start,
                            struct foreseen **out, struct error *error);
void foreseen_destroy(struct foreseen *foreseen); /* accepts NULL */

/* Moves the agents by a tick; then takes ego, the lights and the tick from where ego drives. */
void foreseen_step(struct foreseen *foreseen);
void foreseen_see(struct foreseen *foreseen, const struct scene *scene);

/* Compares with recordings[agent_count] that begin at the start and reach this tick, the horizon's.
 */
enum status foreseen_compare(const struct foreseen *foreseen, const struct scenario *scenario,
                             const struct recording *recordings, int horizon,
                             struct correlate *correlate, struct error *error);

#endif
