/*
 * Frozen seeds: drives a suite in the object world and, under the same actions tick by tick, in a
 * candidate and in an incumbent model; measures both beside what the sensors recorded, occupancy
 * beside what sensors without noise would see (scheduler/frozen.h), by slice and by how long the
 * drive has lasted. No health check ends anything, so that drives go on beyond the horizon for
 * which a model says it is trusted.
 *
 * On the CPU the same suite, models and planner give the same figures to the last bit.
 */
#ifndef SWERVE_WORKER_FROZEN_FROZEN_H
#define SWERVE_WORKER_FROZEN_FROZEN_H

#include "scheduler/frozen.h"
#include "scheduler/trust.h"
#include "worker/models/models.h"

#include <jansson.h>
#include <stdio.h>

enum { FROZEN_SLICES_MAX = 192, FROZEN_LAYERS_MAX = 128, FROZEN_LAYER_BYTES = 32 };

enum frozen_side { FROZEN_CANDIDATE = 0, FROZEN_INCUMBENT, FROZEN_RECORDED, FROZEN_SIDES };

struct frozen_options {
    const struct models_model *candidate;
    const struct models_model *incumbent; /* NULL: none */
    /* The candidate's weights in single precision, to compare layers with; NULL: they are not. */
    const struct models_model *exact;
    const char *suite;   /* file */
    const char *planner; /* spec */
    uint32_t thread_count;
    bool conditionings[CONDITIONING_COUNT]; /* that are driven */
    const struct trust_policy *policy;
    const struct world_ops *(*world_for_tier)(enum tier tier); /* NULL: the engine's */
};

/* Ticks within the horizon for which the candidate says it is trusted. */
struct frozen_slice {
    struct trust_slice slice;
    int64_t drives;
    struct frozen_mean mean[FROZEN_RECORDED][FROZEN_MEASURES];
    struct frozen_features features[FROZEN_SIDES];
};

struct frozen_conditioning {
    bool driven;
    uint32_t stated_ticks;
    uint32_t longest_ticks; /* of a drive */
    uint32_t slice_count;
    struct frozen_slice *slices; /* owned, FROZEN_SLICES_MAX of them */
    struct frozen_mean spans[FROZEN_RECORDED][FROZEN_SPANS][FROZEN_MEASURES];
    struct frozen_mean alike; /* overlap of the occupancy of both models */
};

/* Worst of a layer over all ticks and steps that were compared. */
struct frozen_layer {
    char name[FROZEN_LAYER_BYTES];
    double cosine;
    double error; /* norm of the difference over the layer's norm */
};

struct frozen {
    char suite[LIMIT_ID_BYTES];
    char suite_hash[SHA256_HEX_BYTES]; /* over what it expands to */
    char planner[LIMIT_SPEC_BYTES];
    int64_t drives;
    int64_t ticks; /* of each side */
    struct frozen_conditioning conditionings[CONDITIONING_COUNT];
    uint32_t layer_count;
    struct frozen_layer layers[FROZEN_LAYERS_MAX];
};

/* Heap. *out is the caller's also where it fails half way: frozen_destroy. */
enum status frozen_run(const struct frozen_options *options, struct frozen **out,
                       struct error *error);
void frozen_destroy(struct frozen *frozen); /* accepts NULL */

/* A figure of a slice, Frechet included. NAN: none. */
double frozen_slice_value(const struct frozen_slice *slice, enum frozen_side side,
                          enum frozen_measure measure);

/* Layers of the candidate beside those of `exact` in the first ticks of the suite's drives, on the
 * same past (frozen_parity.c). */
enum status frozen_parity(const struct frozen_options *options, const struct scenario *scenario,
                          uint64_t seed, struct frozen *frozen, struct error *error);

/* One verdict that did not pass. */
struct frozen_miss {
    const char *part; /* "frozen seeds", "drift", "layers" */
    char name[TRUST_SLICE_TEXT_BYTES];
    char reason[128];
};

/* Calls `missed` for each figure outside the bands; returns how many verdicts there were. */
uint32_t frozen_judge(const struct frozen *frozen, const struct frozen_bands *bands,
                      void (*missed)(void *context, const struct frozen_miss *miss), void *context);

json_t *frozen_json(const struct frozen *frozen, const struct frozen_bands *bands);
void frozen_print(const struct frozen *frozen, const struct frozen_bands *bands, FILE *stream);

#endif
