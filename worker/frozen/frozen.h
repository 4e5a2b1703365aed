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

#include "scenarios/scenarios.h"
#include "scheduler/frozen.h"
#include "scheduler/trust.h"
#include "schemas/scenario_json.h"
#include "worker/models/models.h"

#include <jansson.h>
#include <stdio.h>

enum {
    FROZEN_SLICES_MAX = 192,
    FROZEN_LAYERS_MAX = 128,
    FROZEN_LAYER_BYTES = 32,
    FROZEN_PARITY_FRAMES = 500, /* that an evaluation compares layers in, over all strata */
};

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

/* Frames of one conditioning, weather and light: rounding that is harmless by day may not be by
 * night, and one in a hundred frames would not show in a mean. */
struct frozen_stratum {
    enum conditioning conditioning;
    enum weather weather;
    enum light light;
};
enum { FROZEN_STRATA = CONDITIONING_COUNT * WEATHER_COUNT * LIGHT_COUNT };
struct frozen_stratum frozen_stratum_of(uint32_t index); /* of FROZEN_STRATA */
uint32_t frozen_stratum_index(const struct frozen_stratum *stratum);

/* Worst of a layer over the ticks and steps of each stratum that were compared. */
struct frozen_layer {
    char name[FROZEN_LAYER_BYTES];
    struct frozen_parity_worst {
        double cosine;
        double error; /* norm of the difference over the layer's norm */
    } worst[FROZEN_STRATA];
};

struct frozen_parity {
    int64_t frames[FROZEN_STRATA]; /* that were compared */
    uint32_t layer_count;
    struct frozen_layer layers[FROZEN_LAYERS_MAX];
};

struct frozen {
    char suite[LIMIT_ID_BYTES];
    char suite_hash[SHA256_HEX_BYTES]; /* over what it expands to */
    char planner[LIMIT_SPEC_BYTES];
    int64_t drives;
    int64_t ticks; /* of each side */
    struct frozen_conditioning conditionings[CONDITIONING_COUNT];
    struct frozen_parity parity;
};

/* Heap. *out is the caller's also where it fails half way: frozen_destroy. */
enum status frozen_run(const struct frozen_options *options, struct frozen **out,
                       struct error *error);
void frozen_destroy(struct frozen *frozen); /* accepts NULL */

/* A figure of a slice, Frechet included. NAN: none. */
double frozen_slice_value(const struct frozen_slice *slice, enum frozen_side side,
                          enum frozen_measure measure);

/* Two models of the same weights, one in single precision, over a suite's scenarios. */
struct frozen_parity_options {
    const struct model *candidate;
    const struct model *exact;
    uint32_t thread_count;
    bool conditionings[CONDITIONING_COUNT];
    int64_t frames; /* over all strata */
    bool filled;    /* with seeds beyond the suite's, until each stratum has its share of them */
};

/* Layers of the candidate beside those of `exact` in the first ticks of drives, on the same past
 * (frozen_parity.c). Each stratum that the suite has gets the same share of the frames, of as many
 * scenarios and seeds as it takes. out is zero-initialised. */
enum status frozen_parity_run(const struct frozen_parity_options *options,
                              const struct suite *suite, struct frozen_parity *out,
                              struct error *error);

/* One verdict that did not pass. */
struct frozen_miss {
    const char *part; /* "frozen seeds", "drift", "layers" */
    char name[TRUST_SLICE_TEXT_BYTES];
    char reason[128];
};

/* Calls `missed` for each figure outside the bands; returns how many verdicts there were. */
uint32_t frozen_parity_judge(const struct frozen_parity *parity, const struct frozen_bands *bands,
                             void (*missed)(void *context, const struct frozen_miss *miss),
                             void *context);
uint32_t frozen_parity_missed(const struct frozen_parity *parity, const struct frozen_bands *bands);
uint32_t frozen_judge(const struct frozen *frozen, const struct frozen_bands *bands,
                      void (*missed)(void *context, const struct frozen_miss *miss), void *context);

/* [{name, conditioning, weather, light, frames, cosine, error}] */
json_t *frozen_parity_json(const struct frozen_parity *parity);
void frozen_parity_print(const struct frozen_parity *parity, FILE *stream);
json_t *frozen_json(const struct frozen *frozen, const struct frozen_bands *bands);
void frozen_print(const struct frozen *frozen, const struct frozen_bands *bands, FILE *stream);

#endif
