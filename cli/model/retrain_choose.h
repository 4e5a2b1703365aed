/*
 * First stage of a retraining: who is retrained, who teaches, and the suites to learn from, to hold
 * out and to be judged by, in FOLDER/suite and beside it.
 */
#ifndef SWERVE_CLI_MODEL_RETRAIN_CHOOSE_H
#define SWERVE_CLI_MODEL_RETRAIN_CHOOSE_H

#include "cli/model/retrain.h"
#include "cli/model/retrain_plan.h"
#include "store/api/store.h"

/* Of a model that the retraining rests on. */
struct retrain_model {
    char name[LIMIT_ID_BYTES];
    char hash[SHA256_HEX_BYTES];
    char precision[LIMIT_ID_BYTES];
};

struct retrain_chosen {
    uint32_t differing, healthy;          /* scenarios */
    uint32_t families, families_held_out; /* logical scenarios */
};

/* The promoted student of the store, and its promoted teacher, else that of the directory.
 * NOT_FOUND, DEVICE: there is none. */
enum status retrain_choose_models(const struct retrain_options *options, struct store *store,
                                  struct retrain_model *student, struct retrain_model *teacher,
                                  struct error *error);

/* Writes FOLDER/base.safetensors, FOLDER/teacher.safetensors and the suites "train", "held-out" and
 * "evaluate" in FOLDER/suite. The last is what was held out, or of the suite that the gate is to
 * drive all that is of no logical scenario that is trained on. */
enum status retrain_choose(const struct retrain_options *options, double held_out,
                           const struct retrain_plan *plan, struct store *store,
                           const struct retrain_model *student, const struct retrain_model *teacher,
                           struct retrain_chosen *out, struct error *error);

/* Digests of what is there of it. The caller owns *out. */
enum status retrain_choose_look(const struct retrain_plan *plan, json_t **out, struct error *error);

#endif
