/*
 * Frozen seeds: how close a model's frames are to what sensors see in the same drive, and
 * until when, beside another model's. Both are driven over the same scenarios, seeds and actions,
 * which nobody chooses by what he sees, so every tick is a pair and nothing is drawn by chance.
 * Pure functions over sums: the same sums give the same verdict.
 *
 * Each measure is a number from 0 to 1 per tick, greater is better. A candidate may be below the
 * incumbent in none, in no slice and at no time of a drive, by more than `worse_max`. It is
 * trusted until the first span of time in which a measure's mean is below the policy's least, or
 * in which nothing was measured.
 */
#ifndef SWERVE_SCHEDULER_FROZEN_H
#define SWERVE_SCHEDULER_FROZEN_H

#include <stdbool.h>
#include <stdint.h>

enum frozen_measure {
    FROZEN_OCCUPANCY = 0, /* soft overlap of occupancy with the true one (IoU) */
    FROZEN_AREA,          /* occupied area over the true one, or its inverse if above 1 */
    FROZEN_PERMANENCE,    /* agents of the start that are there yet, of those still in the window */
    FROZEN_KINEMATICS,    /* of them, those that moved as vehicles and people can */
    FROZEN_CAMERA,        /* correlation of the cameras with the recorded images */
    FROZEN_VIEWS,   /* correlation of the cameras with the layout that the BEV is drawn from */
    FROZEN_FRECHET, /* 1 / (1 + Frechet distance): of slices alone */
    FROZEN_MEASURES
};
extern const char *const frozen_measure_names[FROZEN_MEASURES];

struct frozen_mean {
    double sum;
    int64_t count;
};
/* NAN: nothing was measured. */
double frozen_mean(const struct frozen_mean *mean);

/* Features of a tick whose distributions are compared: occupied and unseen cells, change of the
 * BEV, mean, spread and change of the cameras. */
enum { FROZEN_FEATURES = 6 };

/* Their moments. Begins as zeros. */
struct frozen_features {
    int64_t count;
    double sum[FROZEN_FEATURES];
    double product[FROZEN_FEATURES][FROZEN_FEATURES]; /* sums of x_i x_j, i <= j */
};
void frozen_features_add(struct frozen_features *features, const double value[FROZEN_FEATURES]);

/* Squared Frechet distance of the normal distributions with these moments (Dowson and Landau, J.
 * Multivariate Anal. 12, 1982), each feature in units of its standard deviation in `recorded`,
 * or of a twentieth of its mean there if that is more.
 * NAN: one has fewer than FROZEN_FRECHET_LEAST ticks. */
enum { FROZEN_FRECHET_LEAST = 20 };
double frozen_frechet(const struct frozen_features *generated,
                      const struct frozen_features *recorded);

/* Spans of a drive, each from the end of the one before. */
enum { FROZEN_SPANS = 10 };
extern const uint32_t frozen_span_ticks[FROZEN_SPANS]; /* where they end; the last: never */
uint32_t frozen_span(uint32_t tick);                   /* of ticks from 1 on */

struct frozen_bands {
    double worse_max;              /* below the incumbent, at most */
    double least[FROZEN_MEASURES]; /* in every span within the trusted horizon; 0: any */
    double cosine_least;           /* of each layer of a quantised model, to single precision */
    double error_max;              /* of each layer, relative to its norm */
};
struct frozen_bands frozen_bands_default(void);

/* Whether a mean is worse than the incumbent's by more than the bands allow. False where either is
 * NAN. */
bool frozen_worse(const struct frozen_bands *bands, double candidate, double incumbent);

/* Ticks for which a model can be trusted, by the means of spans, of drives the longest of which had
 * `driven_ticks`. */
uint32_t frozen_horizon(const struct frozen_bands *bands, uint32_t driven_ticks,
                        struct frozen_mean spans[FROZEN_SPANS][FROZEN_MEASURES]);

#endif
