/*
 * Foresight of a recorded scene beside what became of it: foreseen, accelerating and straight
 * vehicles against recorded ones, by place and by the cells under them; what a network of token
 * traffic learns from. Private to correlate.
 */
#ifndef SWERVE_REPORT_CORRELATE_CORRELATE_FORESIGHT_H
#define SWERVE_REPORT_CORRELATE_CORRELATE_FORESIGHT_H

#include "base/status.h"
#include "base/units.h"
#include "engine/sensors/prepared.h"
#include "engine/worlds/tokens.h"
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

/* Horizon that ends at that tick of a window; -1: none does. */
int correlate_horizon_at(uint32_t ticks);

/* Adds the errors of one vehicle at a horizon to the model's. */
void correlate_compare(struct correlate *correlate, enum correlate_model model, int horizon,
                       const struct trajectory_point *recorded, double x_m, double y_m,
                       double speed_mps);

/* From the first sample on, every tenth of a second, straight between samples. */
enum status recording_make(const struct trajectory *trajectory, struct recording *out,
                           struct error *error);

/* A scene that is foreseen, tick by tick. */
struct foreseen;

/* From the scene at tick 0; prepared is borrowed and outlives it, and so are tokens; these NULL: as
 * engine/sensors/foresee.h. */
enum status foreseen_create(struct prepared *prepared, const struct scene *start,
                            const struct tokens *tokens, struct foreseen **out,
                            struct error *error);
void foreseen_destroy(struct foreseen *foreseen); /* accepts NULL */

/* Moves the agents by a tick; then takes ego, the lights and the tick from where ego drives. */
void foreseen_step(struct foreseen *foreseen);
void foreseen_see(struct foreseen *foreseen, const struct scene *scene);

/* Compares the places of tokens' vehicles, and those of the default drivers of `other`, with
 * recordings[agent_count] at this tick, the horizon's. */
void foreseen_compare_tokens(const struct foreseen *foreseen, const struct foreseen *other,
                             const struct recording *recordings, int horizon,
                             struct correlate *correlate);

/* Compares with recordings[agent_count] that begin at the start and reach this tick, the horizon's.
 */
enum status foreseen_compare(const struct foreseen *foreseen, const struct scenario *scenario,
                             const struct recording *recordings, int horizon,
                             struct correlate *correlate, struct error *error);

/* Writes what token traffic sees of the recorded vehicles, and what they do then, to
 * correlate->rows. */
struct token_rows;
enum status token_rows_create(struct prepared *prepared, const struct scene *start,
                              const struct correlate *correlate, struct token_rows **out,
                              struct error *error);
void token_rows_destroy(struct token_rows *rows); /* accepts NULL */

/* Moves the vehicles by a tick, to where they were recorded; `scene` is that after it. */
enum status token_rows_step(struct token_rows *rows, const struct scene *scene,
                            struct error *error);

#endif
