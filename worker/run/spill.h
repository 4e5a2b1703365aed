/*
 * Spill: where a learned world's pages go when memory is short: compressed records in one unlinked
 * temporary file, so that nothing is left behind however the process ends. Bounded; when the bound
 * or the disk is reached a write is refused and the world says what that means. One owner calls;
 * one other thread may peek (struct spill_ops).
 */
#ifndef SWERVE_WORKER_RUN_SPILL_H
#define SWERVE_WORKER_RUN_SPILL_H

#include "base/status.h"
#include "engine/learned/spill_ops.h"

#include <stddef.h>
#include <stdint.h>

struct spill;

struct spill_stats {
    uint64_t records;      /* held now */
    uint64_t stored_bytes; /* compressed, held now */
    uint64_t refused;      /* writes that found no room */
};

/* directory NULL: $TMPDIR, else /tmp. bytes_max bounds what is held, compressed. Nothing is opened
 * before the first write. */
enum status spill_create(const char *directory, uint64_t bytes_max, struct spill **out,
                         struct error *error);
void spill_destroy(struct spill *spill); /* accepts NULL */

/* For struct world_config; valid until spill_destroy. */
const struct spill_ops *spill_ops_of(struct spill *spill);

struct spill_stats spill_stats(const struct spill *spill);

#endif
