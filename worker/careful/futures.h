/*
 * Futures: how a drive might have ended. The drive is run again up to a tick, and forks there as
 * often as there are futures: in each a traffic model (`traffic` of a branch, engine/sensors/
 * foresee.h) moves the other agents from then on, while the planner drives ego. The share of them
 * that fails is P(fail), by model and over all.
 *
 * Nobody knows which model is right. So the interval of the whole reaches from the lowest end of
 * the models' intervals to their highest: it has P(fail) in it whichever of them is.
 *
 * Bits depend on (scenario, seed, planner, world, tick, draws) alone.
 */
#ifndef SWERVE_WORKER_CAREFUL_FUTURES_H
#define SWERVE_WORKER_CAREFUL_FUTURES_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "worker/run/runner.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FUTURES_DRAWS = 16,
    FUTURES_DRAWS_MAX = 63, /* of four models, and the nominal one, as branches of a scenario */
    FUTURES_DRAWS_WITH_TOKENS_MAX = 51, /* of all five */
};

struct futures_of_model {
    uint32_t passed;
    uint32_t failed;
    uint32_t without; /* a verdict: invalid, or the planner failed */
    uint64_t failing; /* a bit for each draw that failed, the first of draw 1 */
};

struct futures {
    bool same;            /* the drive, run again, is what its outcome says */
    bool begun;           /* it lasts until the tick, else nothing below holds */
    bool failed_before;   /* for good, by what it did up to the tick: nothing is left to foretell */
    enum verdict verdict; /* of the drive, run again */
    enum verdict nominal; /* of the one nominal future of default drivers */
    uint32_t draws;       /* of each model */
    bool tokens;          /* TRAFFIC_MODEL_TOKENS is one of them */
    struct futures_of_model models[TRAFFIC_MODEL_COUNT];
};

/* Drives the futures of one drive in a runner that is idle, of its planner, and of a world that
 * knows the truth. `draws`: 1 to FUTURES_DRAWS_MAX, draw 1 being the first; with tokens to
 * FUTURES_DRAWS_WITH_TOKENS_MAX. */
enum status futures_drive(struct runner *runner, const struct scenario *scenario,
                          const struct outcome *outcome, uint32_t tick, uint32_t draws, bool tokens,
                          struct futures *out, struct error *error);

/* Whether a model is one of those of the futures. */
bool futures_have(const struct futures *futures, enum traffic_model model);

struct futures_share {
    double value; /* P(fail); NAN: no future has a verdict */
    double low;   /* of the 95% interval */
    double high;
};

/* Of one model: the interval of its draws (rate_interval). */
struct futures_share futures_share_of(const struct futures *futures, enum traffic_model model);

/* Of several models, a bit each, as far as the futures have them; each has the same weight. */
enum {
    FUTURES_ALL = (1 << TRAFFIC_MODEL_COUNT) - 1,
    FUTURES_FORESEEN = FUTURES_ALL & ~(1 << TRAFFIC_MODEL_WRITTEN), /* not knowing the scenario */
};
struct futures_share futures_share_over(const struct futures *futures, uint32_t models);

/* Answer: the verdict that an interval on one side of a half means. */
enum futures_answer { FUTURES_UNDECIDED = 0, FUTURES_PASS, FUTURES_FAIL, FUTURES_ANSWERS };
extern const char *const futures_answer_names[FUTURES_ANSWERS]; /* "undecided", "pass", "fail" */
enum futures_answer futures_answer(const struct futures_share *share);

/* Draws of a model from which on an answer can be another than undecided. */
uint32_t futures_draws_decisive(void);

#endif
