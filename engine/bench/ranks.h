/*
 * Ranks: processes of this machine that do one piece of work together, each on a device of its own.
 * They are forks of the caller, which waits for all of them: it owns no device, so that none of its
 * state is shared. A rank that fails, dies or is late ends the others; none is left behind, not
 * even when the caller is killed.
 */
#ifndef SWERVE_ENGINE_BENCH_RANKS_H
#define SWERVE_ENGINE_BENCH_RANKS_H

#include "base/status.h"
#include "kernels/device.h"

#include <stddef.h>
#include <stdint.h>

struct ranks_job {
    uint32_t ranks;      /* 1 to DEVICE_RANKS_MAX */
    int64_t limit_ms;    /* for all of it, above 0 */
    size_t shared_bytes; /* of struct device_ranks; 0: none */
    size_t result_bytes; /* of each rank */
    /* A rank's work, in its own process, with descriptors and memory as they were. Fills *result
     * where it returns STATUS_OK. `place` lasts until the process ends. */
    enum status (*work)(void *context, const struct device_ranks *place, void *result,
                        struct error *error);
    void *context;
};

/* Fills results[ranks][result_bytes], in order of ranks. The caller has started no thread and no
 * device's library: neither survives a fork. On failure the sentence names the rank, and the status
 * is what it returned; STATUS_DEVICE: it died; STATUS_TIMEOUT: the limit passed; STATUS_USAGE: so
 * many ranks are never possible. */
enum status ranks_run(const struct ranks_job *job, void *results, struct error *error);

#endif
