/*
 * Precision of a model: which of those that it was proven in is the fastest here. Proof is a file
 * beside the weights, NAME.PRECISION.parity.json, that `swerve model parity` writes when every
 * layer is as close to single precision as it has to be in every weather, light and conditioning;
 * it is bound to the weights' hash. Health bounds of the precision belong to it: without them
 * nobody would notice what it does to a drive.
 *
 * What is chosen becomes part of a job's sampler, or of a version, and so of keys: nobody chooses
 * again when a job is run.
 */
#ifndef SWERVE_WORKER_MODELS_PRECISION_H
#define SWERVE_WORKER_MODELS_PRECISION_H

#include "worker/models/models.h"

#include <jansson.h>

#define PRECISION_AUTO "auto" /* as options name it */

enum { PRECISION_FRAMES_LEAST = 500, PRECISION_WHY_BYTES = 160 };

struct precision_proof {
    char hash[SHA256_HEX_BYTES]; /* of the model */
    enum nn_precision precision;
    char suite[LIMIT_ID_BYTES];
    char suite_hash[SHA256_HEX_BYTES];
    int64_t frames; /* that were compared */
};

/* The name's end of the file that proves a model in this precision. */
const char *precision_extension(enum nn_precision precision);

/* Writes the file of a model that passed. layers: what was found, stolen. */
enum status precision_save(const struct precision_proof *proof, json_t *layers,
                           const char *directory, const char *name, struct error *error);
/* Takes the file away, of a model that did not pass. */
void precision_forget(const char *directory, const char *name, enum nn_precision precision);

struct precision_choice {
    enum nn_precision precision;
    double tick_ns[NN_PRECISION_COUNT];                    /* 0: it was not in the race */
    char why_not[NN_PRECISION_COUNT][PRECISION_WHY_BYTES]; /* it was not */
};

/* Races the precisions in which the model of this name in the directory may be driven: bf16, the
 * default, and others with health bounds of their own and a proof of PRECISION_FRAMES_LEAST frames,
 * which single precision does not need. A processor second or less; none where only bf16 may.
 * BAD_INPUT: a file of proof is damaged or of other weights. */
enum status precision_choose(struct models *models, const char *name, struct precision_choice *out,
                             struct error *error);

/* "student: int8, 61 ms a tick; bf16 98; not fp32: no health bounds of its own" */
void precision_describe(const struct precision_choice *choice, const char *name, char *text,
                        size_t text_bytes);

#endif
