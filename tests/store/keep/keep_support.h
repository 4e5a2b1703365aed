/*
 * Stores for the tests of keeping house: small ones, made through the store's own calls, whose
 * jobs bring an artifact each.
 */
#ifndef SWERVE_TESTS_STORE_KEEP_KEEP_SUPPORT_H
#define SWERVE_TESTS_STORE_KEEP_KEEP_SUPPORT_H

#include "base/sha256.h"
#include "store/api/store.h"
#include "store/check/check.h"

#include <stdbool.h>

enum { KEEP_SUITE_JOBS = 4 };

/* A fresh directory, removed with everything in it at exit. */
const char *keep_directory_new(void);

struct store *keep_open(const char *path);

/* Submits suite `number` and finishes its jobs, each with an artifact of its own; false: a call
 * failed. */
bool keep_finish_suite(struct store *store, int number);

/* Faults that `swerve check` finds, -1 when it could not look; *digest and *outcomes of what is
 * there, either may be NULL. */
int keep_faults(const char *path, struct digest *digest, int64_t *outcomes);

/* The artifact of one job of a suite that keep_finish_suite finished. */
void keep_artifact_hash(int suite, int job, char hash[SHA256_HEX_BYTES]);

#endif
