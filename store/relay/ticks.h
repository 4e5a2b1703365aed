/*
 * Ticks of sessions on their way to who is scraped: a worker tells its relay what came since it
 * told last, the relay adds it up over its workers, and both print it alike for Prometheus.
 *
 *     [{"tier": "student", "steps": 2, "lates": 0,
 *       "parts": [[sum_ms, count, ..], ..]}, ..]
 *
 * Parts are those of enum tick_part, counts those of the buckets of a tick_histogram.
 */
#ifndef SWERVE_STORE_RELAY_TICKS_H
#define SWERVE_STORE_RELAY_TICKS_H

#include "base/status.h"
#include "schemas/ticks/tick_histogram.h"

#include <stddef.h>
#include <stdio.h>

/* Rows that a relay tells apart; what comes in further ones is added up in the last, "other". */
enum { TICKS_ROWS_MAX = 32 };

struct ticks {
    uint32_t count;
    struct tick_tier rows[TICKS_ROWS_MAX];
};

/* A document of what `now` has beyond `told`, both [count] of the same tiers; `told` is `now`
 * afterwards. Malloc'ed; "": nothing came. NULL: out of memory, and `told` stays. */
char *ticks_tell(const struct tick_tier *now, struct tick_tier *told, uint32_t count);

/* Adds a document; of one that is refused nothing. BAD_INPUT. */
enum status ticks_take(struct ticks *ticks, const char *text, size_t bytes, struct error *error);

/* The families swerve_session_ticks_late_total and swerve_session_tick_seconds. */
void ticks_print(FILE *out, const struct tick_tier *rows, uint32_t count);

#endif
