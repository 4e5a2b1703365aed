/*
 * Parts that the store's benchmarks share: time, medians, the disk's pace, and the job that all of
 * them claim and complete. Private to the store room.
 */
#ifndef SWERVE_STORE_BENCH_BENCH_PARTS_H
#define SWERVE_STORE_BENCH_BENCH_PARTS_H

#include "store/api/store.h"

enum { BENCH_SUBMIT_CHUNK = 1000 };

int64_t bench_now_ns(void);

/* Element count * percent / 100 of the sorted samples, which are sorted in place; 0: none. */
int64_t bench_percentile(int64_t *samples, size_t count, unsigned percent);
double bench_median(double *samples, size_t count);

/* Median of a 4 KiB write and fdatasync to a scratch file in the directory. */
enum status bench_fsync_p50(const char *directory, int64_t *p50_ns, struct error *error);

void bench_make_spec(struct job_spec *spec, const char *suite, uint32_t serial);
/* The one outcome that every completion brings. */
void bench_make_outcome(struct outcome *outcome, const struct job_spec *spec);
/* A completion of one lease with that outcome, which is borrowed. */
void bench_make_completion(struct job_completion *completion, const struct job_lease *lease,
                           const char *worker_id, struct outcome *outcome);
/* Jobs [first, first + count) of the suite. */
enum status bench_submit(struct store *store, const char *suite, uint32_t first, uint32_t count,
                         struct error *error);

/* Removes a store's files: database, log, shared memory, (empty) artifact directories. */
void bench_remove_store(const char *path);

#endif
