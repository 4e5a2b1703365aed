/*
 * Conformance of a world: drives short rollouts alone, in batches, forked, parked and in states
 * that were used before, and compares every frame. What `swerve world check` prints; the worlds of
 * this repository pass it as any other does.
 */
#ifndef SWERVE_WORKER_WORLD_WORLD_CHECK_H
#define SWERVE_WORKER_WORLD_WORLD_CHECK_H

#include "engine/worlds/world.h"
#include "worker/models/health_bounds.h"

#include <stdbool.h>

enum {
    WORLD_CHECK_ROWS_MAX = 12,
    WORLD_CHECK_TEXT_BYTES = 480,
    WORLD_CHECK_TICKS_MAX = 200,
    WORLD_CHECK_SLOTS = 4,
    WORLD_CHECK_TIMED = 16,
};

struct world_check_row {
    const char *name;
    enum { WORLD_CHECK_OK = 0, WORLD_CHECK_BAD, WORLD_CHECK_SKIPPED } verdict;
    char text[WORLD_CHECK_TEXT_BYTES];
};

struct world_check {
    uint32_t row_count;
    struct world_check_row rows[WORLD_CHECK_ROWS_MAX];
    uint32_t bad_count;
};

struct world_check_options {
    const struct world_ops *ops;
    struct world_config config;         /* slot_count is the check's; `rig` is given */
    bool exact;                         /* it says that it is deterministic */
    const struct health_bounds *bounds; /* that `run` applies, borrowed */
    struct prepared *prepared;
    uint32_t ticks; /* of a rollout, 8 to WORLD_CHECK_TICKS_MAX */
};

/* Not OK: the check itself could not be made (memory). What the world does wrong is in *out. */
enum status world_check_run(const struct world_check_options *options, struct world_check *out,
                            struct error *error);

#endif
