/*
 * Replay, compared: everything that running an outcome's rollout again makes anew, beside what the
 * store says: verdict, reasons, ticks, every metric, miles, health evidence, slices, trace hash,
 * the sentence of a check or of a planner's failure or death, and the artifact's ticks and
 * keyframes.
 *
 * Not compared, because a replay does not make them: what identifies the result (ids, seed,
 * planner, model ..), device time and operations, which depend on what ran beside it, what a
 * planner wrote to stderr and its worker allowed it, deaths among neighbours, and the picture of a
 * flagged frame, which must only be whole. `swerve check` guards these.
 */
#ifndef SWERVE_WORKER_RUN_REPLAY_COMPARE_H
#define SWERVE_WORKER_RUN_REPLAY_COMPARE_H

#include "engine/trace/trace.h"
#include "schemas/outcome.h"
#include "store/api/store.h"
#include "worker/run/rollout.h"

#include <stdint.h>

enum { REPLAY_DIFFERENCES_MAX = 112, REPLAY_FIELD_BYTES = 64, REPLAY_VALUE_BYTES = 192 };

struct replay_difference {
    char field[REPLAY_FIELD_BYTES];
    char stored[REPLAY_VALUE_BYTES]; /* JSON, or words */
    char replayed[REPLAY_VALUE_BYTES];
};

struct replay_differences {
    uint32_t count; /* none: identical */
    struct replay_difference rows[REPLAY_DIFFERENCES_MAX];
};

/* The artifact looked at last: the outcomes of a job share one. Zeroed at first. */
struct replay_artifact {
    char hash[SHA256_HEX_BYTES]; /* "": none */
    void *data;                  /* owned */
    struct trace_reader reader;
};

void replay_artifact_finish(struct replay_artifact *artifact);

/* Compares a stored outcome with rollout `rollout` of `job`, which ran alone from tick 0 and
 * finished. An artifact that is lost or damaged is a difference; a store that does not answer is an
 * error. Of a world that is not deterministic (models_sampler_exact) only the verdict is compared.
 */
enum status replay_compare(struct store *store, struct replay_artifact *artifact,
                           const struct outcome *stored, const struct job_run *job,
                           uint32_t rollout, struct replay_differences *out, struct error *error);

#endif
