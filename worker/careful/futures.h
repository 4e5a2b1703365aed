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
    /* Of four models, and the nominal one, as branches of a scenario. */
    FUTURES_DRAWS_MAX = OUTCOME_DRAWS_MAX,
    FUTURES_DRAWS_WITH_TOKENS_MAX = 51, /* of all five */
};

struct futures_of_model {
    uint32_t passed;
    uint32_t failed;
    uint32_t without; /* a verdict: invalid, or the planner failed */
    uint64_t failing; /* a bit for each draw that failed, the first of draw 1 */
};

/* Models, a bit each. */
enum {
    FUTURES_ALL = (1 << TRAFFIC_MODEL_COUNT) - 1,
    FUTURES_FOUR = FUTURES_ALL & ~(1 << TRAFFIC_MODEL_TOKENS),
    FUTURES_FORESEEN = FUTURES_ALL & ~(1 << TRAFFIC_MODEL_WRITTEN), /* not knowing the scenario */
    /* Those whose draws an outcome keeps. */
    FUTURES_KEPT = FUTURES_FOUR & FUTURES_FORESEEN,
};

struct futures {
    bool same;            /* the drive, run again, is what its outcome says */
    bool begun;           /* it lasts until the tick, else nothing below holds */
    bool failed_before;   /* for good, by what it did up to the tick: nothing is left to foretell */
    enum verdict verdict; /* of the drive, run again */
    enum verdict nominal; /* of the one nominal future of default drivers */
    uint32_t draws;       /* of each model */
    uint32_t have;        /* models that were driven, a bit each */
    struct futures_of_model models[TRAFFIC_MODEL_COUNT];
};

/* Of everything that was driven, futures that were cut short included. */
struct futures_cost {
    int64_t device_ns;
    int64_t metres_mm;
};

/* Question; all borrowed. */
struct futures_task {
    const struct job_lease *lease; /* of the drive: its seed and tier, and names in errors */
    const struct scenario *scenario;
    const char *trace_hash; /* of the drive; NULL: it is in no store, and is the same */
    uint32_t tick;
    uint32_t draws;            /* 1 to FUTURES_DRAWS_MAX, draw 1 being the first; of five models to
                                  FUTURES_DRAWS_WITH_TOKENS_MAX */
    uint32_t have;             /* as of struct futures */
    struct futures_cost *cost; /* is added to, on failure too; NULL: nobody asks */
    /* Asked before each tick; false: CANCELLED. NULL: it goes on. */
    bool (*goes_on)(void *context);
    /* Shown the drive with its futures, in a job of its own, before it goes. NULL: nobody is. */
    enum status (*shown)(void *context, const struct job_run *job, struct error *error);
    void *context; /* of both */
};

/* Drives the futures of one drive in a runner that is idle, of its planner, and of a world that
 * knows the truth. */
enum status futures_drive(struct runner *runner, const struct futures_task *task,
                          struct futures *out, struct error *error);

/* Whether a model is one of those of the futures. */
bool futures_have(const struct futures *futures, enum traffic_model model);

#endif
