/*
 * Random calls of every role, honest and hostile, against a store: what the property test plays.
 *
 * A caller keeps what it was answered (leases, keys, artifacts), so that its calls collide: foreign
 * jobs, replays, doubled and partial completions, flags, goners, cancels. Any record of a call may
 * be changed in one member, by the record's own table, to a number or text that is odd.
 * One seed makes one sequence of calls.
 */
#ifndef SWERVE_TESTS_STORE_PROPERTY_PROPERTY_H
#define SWERVE_TESTS_STORE_PROPERTY_PROPERTY_H

#include "store/api/store.h"
#include "tests/store/manual_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum property_role {
    PROPERTY_ADMIN = 0,
    PROPERTY_READ,
    PROPERTY_SUBMIT,        /* of nobody */
    PROPERTY_SUBMIT_TENANT, /* of "acme" */
    PROPERTY_WORKER,        /* of the pool "bulk" */
    PROPERTY_WORKER_OTHER,  /* of "bulk", another token */
    PROPERTY_TEACHER,       /* of "teacher" */
    PROPERTY_ROLE_COUNT
};

struct property_play;

struct property_config {
    struct store *stores[PROPERTY_ROLE_COUNT]; /* one handle may serve several roles */
    struct manual_clock *clock;
    uint64_t seed;
    bool raw; /* records reach the store as they are: texts without an end, numbers of no name */
};

struct property_play *property_begin(const struct property_config *config);
/* The handles may be others, after the store was opened again. */
void property_stores(struct property_play *play, const struct property_config *config);
/* One call. False: it was answered with an error that no call may bring about (property_last says
 * what, where `strict`). */
bool property_step(struct property_play *play, bool strict);
/* The last call and its answer. */
const char *property_last(const struct property_play *play);
/* Calls that were answered OK. */
uint64_t property_accepted(const struct property_play *play);
void property_end(struct property_play *play);

#endif
