/*
 * The plan of a retraining, plan.json in its folder: of each stage what it was made from, what it
 * made, as digests, and how long it took. It is replaced whole after each step, so whoever is
 * killed goes on where the plan is. A folder has one retraining, and one process at a time works at
 * it, its children included.
 */
#ifndef SWERVE_CLI_MODEL_RETRAIN_PLAN_H
#define SWERVE_CLI_MODEL_RETRAIN_PLAN_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"

#include <jansson.h>
#include <stdint.h>

enum retrain_stage {
    RETRAIN_CHOOSE = 0,
    RETRAIN_DATA,
    RETRAIN_TRAIN,
    RETRAIN_CALIBRATE,
    RETRAIN_ADD,
    RETRAIN_EVALUATE,
    RETRAIN_SHADOW,
    RETRAIN_STAGES
};
extern const char *const retrain_stage_names[RETRAIN_STAGES];

enum retrain_state { RETRAIN_OPEN = 0, RETRAIN_BEGUN, RETRAIN_DONE };

struct retrain_plan {
    const char *folder; /* borrowed */
    char path[LIMIT_PATH_BYTES];
    json_t *root; /* owned */
    int lock;
};

/* Makes the folder where there is none, waits ten seconds for children of who was killed there,
 * which it says, and reads plan.json. CONFLICT: it is of another store; BUSY: somebody works there;
 * BAD_INPUT names what is wrong with the file. Nothing is to be closed on failure. */
enum status retrain_plan_begin(const char *folder, const char *store_url, struct retrain_plan *plan,
                               struct error *error);
void retrain_plan_end(struct retrain_plan *plan);

/* "FOLDER/NAME". LIMIT. */
enum status retrain_plan_path(const struct retrain_plan *plan, const char *name,
                              char out[LIMIT_PATH_BYTES], struct error *error);

enum retrain_state retrain_plan_state(const struct retrain_plan *plan, enum retrain_stage stage);
/* A text that the stage made or rests on; "": there is none. Borrowed. */
const char *retrain_plan_made(const struct retrain_plan *plan, enum retrain_stage stage,
                              const char *name);
/* Of all runs of the command; of the stage since it was begun. */
double retrain_plan_spent_s(const struct retrain_plan *plan);
double retrain_plan_stage_s(const struct retrain_plan *plan, enum retrain_stage stage);

/* Compares what a stage that has begun was made from, or what it made, with what there is now
 * (borrowed). CONFLICT names the first member that differs, with both values. */
enum status retrain_plan_compare(const struct retrain_plan *plan, enum retrain_stage stage,
                                 const char *what, const json_t *now, struct error *error);

/* The stage has begun, from these inputs; it is done, and made this. Both take the object over and
 * save the plan. */
enum status retrain_plan_start(struct retrain_plan *plan, enum retrain_stage stage, json_t *inputs,
                               struct error *error);
enum status retrain_plan_finish(struct retrain_plan *plan, enum retrain_stage stage, json_t *made,
                                struct error *error);
/* So many seconds more of the stage; saves the plan. */
enum status retrain_plan_spend(struct retrain_plan *plan, enum retrain_stage stage, double seconds,
                               struct error *error);
/* Forgets this stage and what follows, but not what they cost; saves the plan. */
enum status retrain_plan_reset(struct retrain_plan *plan, enum retrain_stage from,
                               struct error *error);

/* SHA-256 of a file of at most a gigabyte. */
enum status retrain_plan_digest(const char *path, char out[SHA256_HEX_BYTES], struct error *error);

#endif
