/*
 * Making of each stage of a retraining, and a look at what is there of it.
 */
#ifndef SWERVE_CLI_MODEL_RETRAIN_MAKE_H
#define SWERVE_CLI_MODEL_RETRAIN_MAKE_H

#include "cli/model/retrain.h"
#include "cli/model/retrain_choose.h"
#include "cli/model/retrain_plan.h"
#include "worker/planner/planner_spec.h"

#include <stdatomic.h>

struct retrain {
    const struct retrain_options *options;
    struct retrain_plan plan;
    enum retrain_stage stage; /* the present one */
    double hours;             /* INFINITY: as long as it takes */
    double held_out;
    const char *store_url;
    char trainer_text[LIMIT_SPEC_BYTES];
    struct planner_argv trainer; /* words of it */
    const atomic_int *interrupted;
    struct retrain_model student, teacher; /* of the first stage */
};

/* Which program trains: the option, else $SWERVE_TRAINER, else the one that lies with the sources
 * or beside an installed binary. NOT_FOUND. */
enum status retrain_find_trainer(struct retrain *self, struct error *error);
/* Whether it can: "TRAINER --check". DEVICE: its last words, which say what it lacks. */
enum status retrain_check_trainer(struct retrain *self, struct error *error);

/* The suite for health bounds: the option's, else the library's. */
const char *retrain_calibration(const struct retrain_options *options);

/* Seconds that --hours leaves. */
double retrain_left_s(const struct retrain *self);
/* LIMIT: says before or in which stage, and how to go on. */
enum status retrain_out_of_time(const struct retrain *self, struct error *error);

/* Removes what was left of the present stage. */
enum status retrain_make_clear(struct retrain *self, struct error *error);
/* Makes it, or goes on. *made: a new object, of digests and names; a text "refused" in it says why
 * the retraining ends there. */
enum status retrain_make(struct retrain *self, json_t **made, struct error *error);
/* Digests of what is there of it: a new object, or NULL where the store has it. */
enum status retrain_make_look(struct retrain *self, json_t **made, struct error *error);

#endif
