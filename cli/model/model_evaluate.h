/*
 * `swerve model evaluate NAME --store URL`: the gate of scheduler/gate.h over a store's audits and,
 * with frozen seeds, that of scheduler/frozen.h; the report kept in the store, and the event that
 * promoting asks for.
 */
#ifndef SWERVE_CLI_MODEL_MODEL_EVALUATE_H
#define SWERVE_CLI_MODEL_MODEL_EVALUATE_H

#include "base/status.h"
#include "store/api/store.h"

#include <stdbool.h>
#include <stdint.h>

struct model_evaluate_options {
    const char *name;
    const char *against; /* a version's name; NULL: whoever is promoted, if anybody is */
    const char *policy;  /* file of bands (docs/trust.md); NULL: the defaults */
    /* Frozen seeds: a suite that the version and the other one are driven over here; NULL: neither
     * is driven. */
    const char *frozen;
    const char *planner;
    const char *layouts;   /* "agents,map": NULL: those for which the version is trusted */
    struct models *models; /* that bring the weights */
    /* Suites of which what is lacking is driven first, and of which is only said what they can
     * show; NULL: none. */
    const char *drive;
    const char *plan;
    int64_t jobs;    /* of the version at the most, that --drive drives */
    int64_t workers; /* likewise, processes */
    const char *store_url;
    const char *models_directory; /* NULL: as workers find it */
    int64_t days;                 /* for which a pass counts */
    bool json;
};

/* MISMATCH: recorded, and not passed; the error names the slices. NOT_FOUND: no such version. */
enum status model_evaluate(const struct model_evaluate_options *options, struct store *store,
                           struct error *error);

#endif
