/*
 * Parts that the store's benchmarks share: time, medians, the disk's pace, and the job that all of
 * them claim and complete. Private to the store room.
 */
#ifndef SWERVE_STORE_BENCH_BENCH_PARTS_H
#define SWERVE_STORE_BENCH_BENCH_PARTS_H

#include "store/api/store.h"

enum { BENCH_SUBMIT_CHUNK = 1000 };

/* Place of a benchmark's stores, borrowed: files in a directory, or schemas of their own in a
 * PostgreSQL database, whose artifacts lie in the directory. */
struct bench_place {
    const char *directory;
    const char *url; /* NULL: files */
};

struct db;
/* Opens the store with this name, [a-z_]; `fresh`: what an earlier run left is removed. */
enum status bench_place_open(const struct bench_place *place, const char *name, bool fresh,
                             struct store **out, struct error *error);
/* A writer's connection to it and nothing else. */
enum status bench_place_db(const struct bench_place *place, const char *name, struct db **out,
                           struct error *error);
void bench_place_remove(const struct bench_place *place, const char *name);

/* Element count * percent / 100 of the sorted samples, which are sorted in place; 0: none. */
int64_t bench_percentile(int64_t *samples, size_t count, unsigned percent);
double bench_median(double *samples, size_t count);
/* Processor time of this process so far, in microseconds. */
double bench_cpu_us(void);

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

#endif
