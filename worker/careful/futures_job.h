/*
 * Jobs that make futures (schemas/job.h, `makes`): of which drive, and from which tick on. A tick
 * is chosen from what was recorded alone, so that the same records ask for the same futures.
 */
#ifndef SWERVE_WORKER_CAREFUL_FUTURES_JOB_H
#define SWERVE_WORKER_CAREFUL_FUTURES_JOB_H

#include "engine/trace/trace.h"
#include "schemas/job.h"
#include "schemas/outcome.h"
#include "store/api/store.h"

/* Two drives are at the same place as long as ego is, as for goldens. */
#define FUTURES_APART_M 0.5
#define FUTURES_TURNED_RAD (2.0 * 3.14159265358979323846 / 180.0)

enum {
    FUTURES_PARTED_TICKS = 10, /* before two drives part: the planner can still act */
    FUTURES_CRUX_TICKS = 20,   /* before a drive is at its narrowest */
};

/* The tick from which futures settle which of two drives is right: that at which the main lines of
 * their records part, where ego is further apart than above or one of them ends, less
 * FUTURES_PARTED_TICKS; and no earlier than FUTURES_CRUX_TICKS before the first contact of the one
 * that fails (`contact`; UINT32_MAX: none), since nobody foresees what has not begun. 0 at the
 * least. */
uint32_t futures_tick_parted(const struct trace_reader *a, const struct trace_reader *b,
                             uint32_t contact);

/* The tick at which the main line of a record is at its narrowest, its first contact (`contact`;
 * UINT32_MAX: none), else where somebody's middle is nearest to ego's, the first such, less
 * FUTURES_CRUX_TICKS; 0 at the least, and where nobody was there. */
uint32_t futures_tick_crux(const struct trace_reader *record, uint32_t contact);

/* The job of the futures of job `of`, in its suite, by all that it says of its question. MISMATCH:
 * it is of another revision than this program, whose drives are others. */
enum status futures_job(const struct job_spec *of, uint32_t tick, uint32_t draws,
                        struct job_spec *out, struct error *error);

/* Submits the jobs of futures of jobs of a suite; each is there once, whoever asks and how often.
 */
enum status futures_jobs_send(struct store *store, const char *suite_id,
                              const struct job_spec *specs, uint32_t count, struct error *error);

#endif
