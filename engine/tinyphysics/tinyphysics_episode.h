/*
 * Tinyphysics episode: the controls challenge's simulator around the network
 * (TinyPhysicsSimulator of tinyphysics.py at commit be8edfa), to the digit. One drive of a log: 20
 * rows of context, the log's own steering to row 99, the controller's from row 100 on, costs over
 * rows 100 to 499.
 *
 * A step's lateral acceleration is a bin drawn from the network's distribution: logits / 0.8,
 * softmax in single precision, cumulative sum in double divided by its last, one number of NumPy's
 * legacy generator (MT19937), the count of sums that are not above it; then at most 0.5 m/s2 from
 * the step before. Until row 100 a number is drawn and the log's target stands in its place, so no
 * network is evaluated.
 *
 * Same log, seed, model and actions: same bits, on every machine and in every batch.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_EPISODE_H
#define SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_EPISODE_H

#include "engine/tinyphysics/controls_log.h"
#include "engine/tinyphysics/tinyphysics_model.h"

#include <stdbool.h>

enum {
    TINYPHYSICS_CONTROL_STEP = CONTROLS_FIRST_COST, /* first row that the controller steers */
    TINYPHYSICS_COST_END = CONTROLS_COST_END,       /* row after the last that costs */
    TINYPHYSICS_PLAN_STEPS = 50, /* rows ahead that a controller is shown: 49 of them */
    TINYPHYSICS_EPISODE_VALUES = 2 * TINYPHYSICS_COST_END, /* memory of an episode */
};

/* NumPy's MT19937. */
struct tinyphysics_random {
    uint32_t words[624];
    uint32_t next;
};

struct tinyphysics_episode {
    const struct controls_log *log; /* borrowed */
    uint32_t step;                  /* row that the next step is about */
    uint32_t end;                   /* row at which it ends: COST_END, or the log's last */
    struct tinyphysics_random random;
    double *lataccel_mps2;      /* [COST_END], known below `step` */
    double *actions;            /* [COST_END], clipped, known below `step` */
    double uniform, cdf_margin; /* of the last draw: the number, its distance from the next sum */
    uint16_t token;             /* that it drew */
    uint16_t tokens[TINYPHYSICS_CONTEXT]; /* bins of the last rows, that of row r at r % CONTEXT */
};

struct tinyphysics_costs {
    double lataccel, jerk, total; /* lataccel_cost, jerk_cost, total_cost */
};

/* `seed`: the reference's is md5(path of the file as typed) mod 10,000. */
enum status tinyphysics_episode_start(struct tinyphysics_episode *episode,
                                      const struct controls_log *log, uint32_t seed,
                                      struct error *error);
/* The same in memory of the caller's: TINYPHYSICS_EPISODE_VALUES numbers, which live as long. It is
 * not ended. */
void tinyphysics_episode_begin(struct tinyphysics_episode *episode, const struct controls_log *log,
                               uint32_t seed, double *values);
void tinyphysics_episode_end(struct tinyphysics_episode *episode);

/* The numbers that are drawn at rows TINYPHYSICS_CONTEXT to `end` - 1, by row. */
void tinyphysics_episode_uniforms(uint32_t seed, uint32_t end, double *uniforms);

static inline bool tinyphysics_episode_done(const struct tinyphysics_episode *episode)
{
    return episode->step >= episode->end;
}

/* The lateral acceleration that a controller is shown: that of the step before. */
static inline double tinyphysics_episode_lataccel(const struct tinyphysics_episode *episode)
{
    return episode->lataccel_mps2[episode->step - 1];
}

/* Advances 1 .. TINYPHYSICS_BATCH episodes that are not done by one step; actions[i] is their
 * controller's, which counts from row 100 on (clipped to -2 .. 2). Fails with the network, and only
 * where it is computed outside: these episodes are not to be used any more. */
enum status tinyphysics_episode_step(const struct tinyphysics_model *model,
                                     struct tinyphysics_workspace *workspace,
                                     struct tinyphysics_episode *const *episodes,
                                     const double *actions, uint32_t count, struct error *error);

/* Over the rows that were reached; two of them at least. */
struct tinyphysics_costs tinyphysics_episode_costs(const struct tinyphysics_episode *episode);

#endif
