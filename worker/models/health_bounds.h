/*
 * Health bounds: what a learned world's frame statistics may be before they count as sick, per
 * conditioning. Calibrated on healthy rollouts of one model in one precision (`swerve model
 * calibrate`), stored beside it as NAME.health.json (of bf16) or NAME.PRECISION.health.json, and
 * bound to its hash and precision; without such a file wide built-in bounds are used.
 *
 * A measure is a number per tick, judged where it is beyond its bound in `ticks` ticks in a row, in
 * ticks + 1 of the last 2 * ticks + 2, or in 2 * ticks of the last 8 * ticks: the statistic of a
 * tick is the worst value that so many reach. So a world that is well in between, again and again,
 * is found too. A measure of one tick is judged by that alone.
 */
#ifndef SWERVE_WORKER_MODELS_HEALTH_BOUNDS_H
#define SWERVE_WORKER_MODELS_HEALTH_BOUNDS_H

#include "base/sha256.h"
#include "base/status.h"
#include "engine/learned/model.h"
#include "engine/rigs/watch.h"
#include "engine/sensors/conditioning.h"
#include "worker/models/health.h"

#include <stdbool.h>
#include <stdint.h>

struct health_measure_info {
    enum health_check check; /* that it raises */
    uint32_t ticks;          /* as above, at most HEALTH_TICKS_MAX */
    double slack;            /* that calibration leaves beyond the worst healthy tick, at least */
    double floor;   /* calibrated bounds stay within floor .. ceiling, so that a fault that must */
    double ceiling; /* never pass (nothing moves at all) does not become healthy by calibration */
    double builtin[CONDITIONING_COUNT];
};

enum { HEALTH_TICKS_MAX = 3 };

extern const struct health_measure_info health_measures[MEASURE_COUNT];

struct health_bounds {
    bool calibrated;
    char hash[SHA256_HEX_BYTES]; /* of the model; "" for the built-in ones */
    enum nn_precision precision; /* that it was driven in */
    double bound[CONDITIONING_COUNT][MEASURE_COUNT];
    double pictures[WATCH_MEASURE_COUNT]; /* of worlds that make pictures of any rig */
};

struct health_bounds health_bounds_builtin(void);

/* The name's end of the file that has a model's bounds in this precision. */
const char *health_bounds_extension(enum nn_precision precision);

/* The model's file in the directory, or the built-in bounds where there is none, or for measures
 * that it does not have yet. BAD_INPUT: it was made for another model than the one of `hash` or for
 * another precision than its name says (one that names none is of bf16). */
enum status health_bounds_load(const char *directory, const char *name, const char *hash,
                               enum nn_precision precision, struct health_bounds *out,
                               struct error *error);
/* Whether both judge alike: calibrated or not, the same bound of each measure. */
bool health_bounds_same(const struct health_bounds *a, const struct health_bounds *b);

/* The same of a file's text; `label` names it in errors. `any_precision`: bounds of another one are
 * as good as none, of a store that took them before that was refused. */
enum status health_bounds_parse(const char *label, const char *text, size_t bytes, const char *hash,
                                enum nn_precision precision, bool any_precision,
                                struct health_bounds *out, struct error *error);

/* Range of healthy rollouts: extremes and a histogram-free sketch of the middle. */
struct health_sample {
    uint64_t count;
    double least;
    double most;
    double mean;
};
struct health_calibration {
    uint64_t rollouts;
    uint64_t ticks;
    struct health_sample sample[CONDITIONING_COUNT][MEASURE_COUNT];
    struct watch_tally pictures;
};

/* Adds one tick's statistics (NAN: does not apply). */
void health_calibration_add(struct health_calibration *calibration, enum conditioning conditioning,
                            const double statistic[MEASURE_COUNT]);

/* Bounds half as far beyond the worst healthy tick as that is from the mean, but at least the
 * measure's slack; conditionings that were not seen keep the built-in ones. */
struct health_bounds health_calibration_bounds(const struct health_calibration *calibration,
                                               const char *hash, enum nn_precision precision);

/* Writes the model's file, extremes and bounds. */
enum status health_calibration_save(const struct health_calibration *calibration,
                                    const struct health_bounds *bounds, const char *directory,
                                    const char *name, struct error *error);

#endif
