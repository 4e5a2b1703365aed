/*
 * Means, distances and horizons of frozen seeds. See frozen.h.
 */
#include "scheduler/frozen.h"

#include <math.h>
#include <string.h>

/* Of a feature's recorded mean: the least that counts as its spread, for a scene in which it hardly
 * changes is no measure of what a difference means. */
#define SPREAD_LEAST 0.05

enum { JACOBI_SWEEPS = 32 };

const char *const frozen_measure_names[FROZEN_MEASURES] = {
    "occupancy", "area", "permanence", "kinematics", "camera", "views", "frechet"};

const uint32_t frozen_span_ticks[FROZEN_SPANS] = {10,  30,  50,  100, 200,
                                                  300, 450, 600, 900, UINT32_MAX};

double frozen_mean(const struct frozen_mean *mean)
{
    return mean->count > 0 ? mean->sum / (double)mean->count : NAN;
}

void frozen_features_add(struct frozen_features *features, const double value[FROZEN_FEATURES])
{
    features->count++;
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        features->sum[i] += value[i];
        for (int j = i; j < FROZEN_FEATURES; j++) {
            features->product[i][j] += value[i] * value[j];
        }
    }
}

/* Mean and covariance in units of `scale`. */
static void moments(const struct frozen_features *features, const double scale[FROZEN_FEATURES],
                    double mean[FROZEN_FEATURES],
                    double covariance[FROZEN_FEATURES][FROZEN_FEATURES])
{
    double n = (double)features->count;
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        mean[i] = features->sum[i] / n / scale[i];
    }
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        for (int j = i; j < FROZEN_FEATURES; j++) {
            double product = features->product[i][j] / n / (scale[i] * scale[j]);
            covariance[i][j] = covariance[j][i] = product - mean[i] * mean[j];
        }
    }
}

/* Rotates rows and columns p and q of a symmetric matrix so that a[p][q] becomes 0. */
static void rotate(double a[FROZEN_FEATURES][FROZEN_FEATURES],
                   double vectors[FROZEN_FEATURES][FROZEN_FEATURES], int p, int q)
{
    double theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
    double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    double c = 1.0 / sqrt(t * t + 1.0);
    double s = t * c;
    for (int k = 0; k < FROZEN_FEATURES; k++) {
        double kp = a[k][p];
        double kq = a[k][q];
        a[k][p] = c * kp - s * kq;
        a[k][q] = s * kp + c * kq;
    }
    for (int k = 0; k < FROZEN_FEATURES; k++) {
        double pk = a[p][k];
        double qk = a[q][k];
        a[p][k] = c * pk - s * qk;
        a[q][k] = s * pk + c * qk;
        double vp = vectors[k][p];
        double vq = vectors[k][q];
        vectors[k][p] = c * vp - s * vq;
        vectors[k][q] = s * vp + c * vq;
    }
}

/* Jacobi's method: `a` becomes diagonal, its columns of `vectors` are the eigenvectors. */
static void diagonalise(double a[FROZEN_FEATURES][FROZEN_FEATURES],
                        double vectors[FROZEN_FEATURES][FROZEN_FEATURES])
{
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        for (int j = 0; j < FROZEN_FEATURES; j++) {
            vectors[i][j] = i == j;
        }
    }
    for (int sweep = 0; sweep < JACOBI_SWEEPS; sweep++) {
        for (int p = 0; p < FROZEN_FEATURES; p++) {
            for (int q = p + 1; q < FROZEN_FEATURES; q++) {
                if (a[p][q] * a[p][q] > 1e-30 * fabs(a[p][p] * a[q][q]) && a[p][q] != 0.0) {
                    rotate(a, vectors, p, q);
                }
            }
        }
    }
}

/* out = sqrt(a) b sqrt(a), symmetric; `a` is lost. */
static void between_roots(double a[FROZEN_FEATURES][FROZEN_FEATURES],
                          double b[FROZEN_FEATURES][FROZEN_FEATURES],
                          double out[FROZEN_FEATURES][FROZEN_FEATURES])
{
    double vectors[FROZEN_FEATURES][FROZEN_FEATURES];
    double root[FROZEN_FEATURES][FROZEN_FEATURES] = {{0}};
    double half[FROZEN_FEATURES][FROZEN_FEATURES] = {{0}};
    diagonalise(a, vectors);
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        for (int j = 0; j < FROZEN_FEATURES; j++) {
            for (int k = 0; k < FROZEN_FEATURES; k++) {
                root[i][j] += vectors[i][k] * sqrt(fmax(a[k][k], 0.0)) * vectors[j][k];
            }
        }
    }
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        for (int j = 0; j < FROZEN_FEATURES; j++) {
            for (int k = 0; k < FROZEN_FEATURES; k++) {
                half[i][j] += root[i][k] * b[k][j];
            }
        }
    }
    memset(out, 0, sizeof(double[FROZEN_FEATURES][FROZEN_FEATURES]));
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        for (int j = i; j < FROZEN_FEATURES; j++) {
            for (int k = 0; k < FROZEN_FEATURES; k++) {
                out[i][j] += 0.5 * (half[i][k] * root[k][j] + half[j][k] * root[k][i]);
            }
            out[j][i] = out[i][j];
        }
    }
}

double frozen_frechet(const struct frozen_features *generated,
                      const struct frozen_features *recorded)
{
    double scale[FROZEN_FEATURES];
    double mean[2][FROZEN_FEATURES];
    double covariance[2][FROZEN_FEATURES][FROZEN_FEATURES];
    double product[FROZEN_FEATURES][FROZEN_FEATURES];
    double vectors[FROZEN_FEATURES][FROZEN_FEATURES];
    double distance = 0.0;
    if (generated->count < FROZEN_FRECHET_LEAST || recorded->count < FROZEN_FRECHET_LEAST) {
        return NAN;
    }
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        double middle = recorded->sum[i] / (double)recorded->count;
        double square = recorded->product[i][i] / (double)recorded->count;
        double spread = sqrt(fmax(square - middle * middle, 0.0));
        scale[i] = fmax(spread, SPREAD_LEAST * fabs(middle));
        scale[i] = scale[i] > 0.0 ? scale[i] : 1.0;
    }
    moments(generated, scale, mean[0], covariance[0]);
    moments(recorded, scale, mean[1], covariance[1]);
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        double step = mean[0][i] - mean[1][i];
        distance += step * step + covariance[0][i][i] + covariance[1][i][i];
    }
    between_roots(covariance[0], covariance[1], product);
    diagonalise(product, vectors);
    for (int i = 0; i < FROZEN_FEATURES; i++) {
        distance -= 2.0 * sqrt(fmax(product[i][i], 0.0));
    }
    return fmax(distance, 0.0);
}

uint32_t frozen_span(uint32_t tick)
{
    uint32_t span = 0;
    while (tick > frozen_span_ticks[span]) {
        span++;
    }
    return span;
}

struct frozen_bands frozen_bands_default(void)
{
    return (struct frozen_bands){
        .worse_max = 0.005,
        .least = {[FROZEN_OCCUPANCY] = 0.5,
                  [FROZEN_AREA] = 0.8,
                  [FROZEN_PERMANENCE] = 0.9,
                  [FROZEN_KINEMATICS] = 0.95},
        .cosine_least = 0.999,
        .error_max = 0.1,
    };
}

bool frozen_worse(const struct frozen_bands *bands, double candidate, double incumbent)
{
    return candidate < incumbent - bands->worse_max;
}

uint32_t frozen_horizon(const struct frozen_bands *bands, uint32_t driven_ticks,
                        struct frozen_mean spans[FROZEN_SPANS][FROZEN_MEASURES])
{
    uint32_t ticks = 0;
    for (uint32_t span = 0; span < FROZEN_SPANS; span++) {
        bool any = false;
        for (int i = 0; i < FROZEN_MEASURES; i++) {
            double mean = frozen_mean(&spans[span][i]);
            any |= !isnan(mean);
            if (mean < bands->least[i]) {
                return ticks;
            }
        }
        if (!any) {
            return ticks;
        }
        ticks = driven_ticks < frozen_span_ticks[span] ? driven_ticks : frozen_span_ticks[span];
    }
    return ticks;
}
