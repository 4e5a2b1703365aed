/*
 * Invariants of every store's database file at every moment, checked by SQL from outside.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_INVARIANTS_H
#define SWERVE_TESTS_STORE_FAULTS_INVARIANTS_H

#include <stdbool.h>
#include <stddef.h>

/* Integrity, references, counters and ledger equal to what they count, finished jobs with exactly
 * their outcomes. False: `why` says what does not hold. */
bool invariants_hold(const char *path, char *why, size_t why_bytes);

#endif
