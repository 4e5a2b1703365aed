/*
 * Fake store: the store API over arrays in memory, small enough to be right by reading. Tests of
 * the HTTP stack and of ownership run over it where a database would only be in the way, and it can
 * be told to misbehave. It does no fairness, backoff, memoisation or prices per attempt.
 */
#ifndef SWERVE_TESTS_STORE_HTTP_FAKE_STORE_H
#define SWERVE_TESTS_STORE_HTTP_FAKE_STORE_H

#include "store/api/store.h"

#include <stdatomic.h>

/* Behaviour of the fake, and what it saw; shared between the test and the store, outlives the
 * store. */
struct fake_control {
    atomic_int fail_calls; /* the next so many calls answer STATUS_STORE .. */
    atomic_int fail_as;    /* .. or this; 0: none */
    atomic_int block;      /* suite_status waits while this is set */
    atomic_int blocked;    /* calls that wait so */
    atomic_int stands;     /* pages begin anew while this is set, and demand is beyond sums */
    atomic_int claim_calls;
    atomic_int calls;
};

/* control may be NULL. */
enum status fake_store_open(struct fake_control *control, struct store **out, struct error *error);

#endif
