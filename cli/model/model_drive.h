/*
 * `swerve model evaluate --drive SUITE`: drives what an evaluation lacks, with the version as the
 * student, its teacher and the object world, widest slice first, and looks after each step, until
 * every slice that decides has passed, one is below its band, or the budget is used up.
 */
#ifndef SWERVE_CLI_MODEL_MODEL_DRIVE_H
#define SWERVE_CLI_MODEL_MODEL_DRIVE_H

#include "report/trust/pairs.h"
#include "report/trust/reach.h"
#include "store/api/store.h"

#include <jansson.h>

enum { MODEL_DRIVE_STEP = 8 }; /* logical scenarios between two looks */

struct model_drive_options {
    const struct model_version *version;
    const struct model_version *incumbent; /* NULL: nobody is */
    const struct trust_policy *policy;
    const char *suite;
    const char *planner;
    const char *models; /* directory; NULL: as workers find it */
    const char *store_url;
    int64_t budget;  /* jobs of the version at the most */
    int64_t workers; /* processes */
    bool plan;       /* only says what the suite can show */
    bool json;
    /* Leaves out what counts for nothing, before a look; how much that was. */
    int64_t (*leave_out)(const struct model_version *version, struct pairs *pairs);
};

/* Reason for which it ended. */
enum model_drive_end {
    MODEL_DRIVE_PASSED = 0,
    MODEL_DRIVE_BELOW,  /* a slice that decides is, or was optimistic */
    MODEL_DRIVE_BEYOND, /* the suite cannot show what is left */
    MODEL_DRIVE_BUDGET,
    MODEL_DRIVE_PLANNED, /* nothing was to be driven */
    MODEL_DRIVE_ENDS
};
extern const char *const model_drive_end_names[MODEL_DRIVE_ENDS];

/* *out: a new reference: what the suite can show, jobs, looks and how it ended. */
enum status model_drive(const struct model_drive_options *options, struct store *store,
                        json_t **out, struct error *error);

#endif
