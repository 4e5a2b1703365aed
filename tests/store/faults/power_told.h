/*
 * Record of answers to the callers of a store, and when: a store is held against it after a loss of
 * power. It knows no rules (tests/store/model has them), and nothing of SQL or files.
 *
 * An operation is a set of facts between two moments of the disk's log: before `begin` none of them
 * is true, from `end` on (it was acknowledged) all are, for ever or until a later operation; in
 * between it is in doubt: all of them or none. One that answered with an error is in doubt until
 * somebody has looked what became of it.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_POWER_TOLD_H
#define SWERVE_TESTS_STORE_FAULTS_POWER_TOLD_H

#include "store/api/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOLD_CLIENTS = 3, TOLD_JOBS_MAX = 512 };

struct fact {
    int64_t job_id; /* 0: the artifact alone */
    enum job_state state;
    int64_t epoch;
    uint32_t rollouts;
    char artifact[SHA256_HEX_BYTES]; /* of a finished job; "": none */
};

struct told_op {
    size_t begin;
    size_t end;
    bool failed; /* in doubt, anything may have become of jobs that were not finished */
    size_t fact_first;
    size_t fact_count;
};

/* One caller; its suite, pools and workers are its own, so callers do not meet. */
struct told_client {
    struct told_op *ops;
    size_t op_count;
    size_t op_capacity;
    struct fact *facts;
    size_t fact_count;
    size_t fact_capacity;
};

struct told {
    struct told_client clients[TOLD_CLIENTS];
};

void told_finish(struct told *told);

/* An operation of the client; facts are added to the last one begun. */
void told_op(struct told_client *client, size_t begin, size_t end, bool failed);
void told_fact(struct told_client *client, const struct fact *fact);

/* Forgets everything that began after `position`; what was in doubt there is forgotten too. Moments
 * count from the start of a new log: everything known is old. */
void told_cut(struct told_client *client, size_t position);

void told_suite(int client, char name[LIMIT_ID_BYTES]);

/* The store, opened after a loss of power at `position`, holds what it must and nothing else of
 * these clients. Reads only. `seed` chooses which artifacts are read. False: `why`. */
bool told_holds(const struct told *told, struct store *store, size_t position, uint64_t seed,
                char *why, size_t why_bytes);

#endif
