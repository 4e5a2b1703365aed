/*
 * Scenarios of a store as a suite in a folder: a file for each, named by its hash, and suite.json
 * with their seeds, for whatever drives suites.
 */
#ifndef SWERVE_REPORT_TRUST_SUITE_FOLDER_H
#define SWERVE_REPORT_TRUST_SUITE_FOLDER_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct suite_folder {
    const char *path; /* borrowed */
    json_t *entries;  /* owned */
};

/* The folder is made where there is none; its parent has to be there. */
enum status suite_folder_begin(struct suite_folder *folder, const char *path, struct error *error);

/* A scenario, whose canonical text has this hash, without a seed yet. */
enum status suite_folder_add(struct suite_folder *folder, const char *hash, const char *text,
                             size_t bytes, struct error *error);
/* A seed of the scenario that was added last. */
enum status suite_folder_seed(struct suite_folder *folder, uint64_t seed, struct error *error);

/* Writes suite.json. Whatever came of it, suite_folder_finish() follows. */
enum status suite_folder_write(const struct suite_folder *folder, const char *id, const char *title,
                               struct error *error);
void suite_folder_finish(struct suite_folder *folder);

#endif
