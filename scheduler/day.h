/*
 * Days: times of outcomes as people read them, and agreement by day. Pure functions.
 *
 * A day is counted from 1970-01-01 in UTC. A pair belongs to the day on which the repeat was
 * answered (the audit job's outcome, or the shadow's): then a day that is over is told the same for
 * ever. Clocks may be set, so days need not ascend with the ids of outcomes.
 */
#ifndef SWERVE_SCHEDULER_DAY_H
#define SWERVE_SCHEDULER_DAY_H

#include "base/status.h"
#include "scheduler/rate.h"

#include <stdbool.h>
#include <stdint.h>

enum { DAY_MAX = 90, DAY_TEXT_BYTES = 16, DAY_MOMENT_BYTES = 32 };
#define DAY_NOT_KNOWN INT64_MIN
#define DAY_NEVER INT64_MAX /* after all days */

/* The day of a time in milliseconds since 1970; of 0 DAY_NOT_KNOWN. */
int64_t day_of_ms(int64_t at_ms);
/* "2026-11-27", "not known"; returns `out`. Years 1970 to 9999. */
const char *day_text(int64_t day, char out[DAY_TEXT_BYTES]);
/* "2026-11-27 20:44:06 UTC", "not known"; returns `out`. */
const char *day_moment_text(int64_t at_ms, char out[DAY_MOMENT_BYTES]);
/* A date as day_text writes it, which there is. BAD_INPUT says what was expected. */
enum status day_parse(const char *text, int64_t *day, struct error *error);

/* A pair with a verdict on both sides; keys and order as for rate_add(). */
struct day_pair {
    int64_t day; /* may be DAY_NOT_KNOWN */
    int64_t logical_key;
    int64_t case_key;
    bool agrees;
    bool optimistic; /* the student passes, the teacher fails */
};

struct day_agreement {
    int64_t day;
    int64_t pairs;
    int64_t agree;
    int64_t optimistic;
    struct rate_estimate rate; /* of those that agree */
};

struct day_table {
    uint32_t count;
    struct day_agreement days[DAY_MAX]; /* newest first, those that have a pair */
    int64_t older;                      /* pairs of earlier days than these */
    int64_t not_known;                  /* pairs of no known day */
};

/* The newest days before `before` (DAY_NEVER: all). scratch[count] is overwritten. */
void day_table_make(const struct day_pair *pairs, uint32_t count, int64_t before, int64_t *scratch,
                    struct day_table *out);

#endif
