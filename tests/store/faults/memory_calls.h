/*
 * The calls of the store's table, each with what has to precede it and with what must be true after
 * it, for a caller who repeats what failed. Every function here says with a status and a sentence
 * what was refused or, with STATUS_MISMATCH, what is not as it should be.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_MEMORY_CALLS_H
#define SWERVE_TESTS_STORE_FAULTS_MEMORY_CALLS_H

#include "store/api/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_JOBS = 4, MEMORY_RESULT_BYTES = 1 << 20 };

/* Arguments of calls, and what they answered. Too large for a stack. */
struct memory_caller {
    struct store *store; /* borrowed; the one that is open now */
    const char *path;    /* borrowed; of the database, beside which artifacts lie */
    int64_t suite_jobs;  /* in the database, before the call */

    /* Arguments of the call. Names are new with each `serial`. */
    int serial;
    struct store_worker worker;
    int64_t claim_id;
    struct job_spec specs[MEMORY_JOBS];
    struct job_lease leases[MEMORY_JOBS];
    struct outcome outcomes[MEMORY_JOBS][2];
    struct job_completion completions[MEMORY_JOBS];
    char scenario_hash[SHA256_HEX_BYTES];
    char artifact[SHA256_HEX_BYTES];
    uint8_t artifact_data[3000];

    /* Answer of the call; memory_caller_listen begins with nothing. */
    struct store_submit_result submitted[MEMORY_JOBS];
    struct store_completion_result completed[MEMORY_JOBS];
    int64_t told[2 * MEMORY_JOBS]; /* ids of leases, by claims */
    uint32_t told_count;
    uint8_t result[MEMORY_RESULT_BYTES]; /* the rest, byte by byte; of reading calls */
    size_t result_bytes;
};

struct memory_call {
    const char *name;
    enum status (*before)(struct memory_caller *caller, struct error *error);
    enum status (*run)(struct memory_caller *caller, struct error *error); /* may be repeated */
    enum status (*after)(struct memory_caller *caller, struct error *error);
    bool reads; /* changes nothing */
};

extern const struct memory_call memory_calls[];
extern const size_t memory_call_count;

/* Nothing precedes it. */
enum status memory_nothing(struct memory_caller *caller, struct error *error);

/* Gives an empty store a scenario and jobs that came to every end; then takes new names. */
enum status memory_caller_begin(struct memory_caller *caller, struct error *error);

/* Forgets what was answered. */
void memory_caller_listen(struct memory_caller *caller);

#endif
