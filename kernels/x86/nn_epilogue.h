/*
 * Epilogue of a finished sum: bias, gate, modulation, SiLU, rounding, and its place in the
 * output. Works on a tile of sums that lies in the first-level cache, so that the tile multiplier
 * and the vector units share one epilogue. Its arithmetic is that of ref/nn_gemm.c.
 */
#ifndef SWERVE_KERNELS_X86_NN_EPILOGUE_H
#define SWERVE_KERNELS_X86_NN_EPILOGUE_H

#include "kernels/x86/nn_lanes.h"

#if defined(__AVX2__)

/* Sums of `rows` rows of 16 * `vectors` columns, `stride` floats apart; both constants, their
 * product at most 4. */
struct sums {
    const float *first;
    size_t stride;
};

/* y = sum + bias, then by epilogue, which is a constant where speed matters; row and col of the
 * output. */
NN_INLINE void gemm_finish(enum nn_precision precision, enum nn_epilogue epilogue,
                           const struct nn_gemm *g, size_t row, uint32_t col, struct sums sums,
                           const int rows, const int vectors)
{
    v16 y[SILU_MAX];
    for (int i = 0; i < rows * vectors; i++) {
        y[i] = v16_load(sums.first + (size_t)(i / vectors) * sums.stride + i % vectors * NN_LANES);
        if (g->bias != NULL) {
            y[i] = v16_add(y[i], v16_load(g->bias + col + i % vectors * NN_LANES));
        }
    }
    if (epilogue == NN_SILU_ACT) {
        v16_silu_many(y, rows * vectors, precision == NN_BF16);
    }
    for (int i = 0; i < rows * vectors; i++) {
        size_t index = (row + (size_t)(i / vectors)) * g->ldc + col + i % vectors * NN_LANES;
        if (epilogue == NN_STORE) {
            v16_store(g->c + index, y[i]);
        } else if (epilogue != NN_ADD_GATED) {
            act_store(precision, g->out, index, y[i]);
        } else if (g->gate != NULL) {
            v16 gate = v16_load(g->gate + col + i % vectors * NN_LANES);
            v16_store(g->c + index, v16_fma(gate, y[i], v16_load(g->c + index)));
        } else {
            v16_store(g->c + index, v16_add(v16_load(g->c + index), y[i]));
        }
    }
}

/* The same for output channels from `o` on of `rows` neighbouring positions from (row, col) on. */
NN_INLINE void conv_finish(enum nn_precision precision, const struct nn_conv *c, size_t row,
                           size_t col, uint32_t o, struct sums sums, const int rows,
                           const int vectors)
{
    const size_t flat = (row * c->cols + col) * c->out_channels + o;
    const size_t mapped = ((row + 1) * (c->cols + 2) + col + 1) * c->out_channels + o;
    v16 y[SILU_MAX];
    for (int i = 0; i < rows * vectors; i++) {
        const uint32_t at = (uint32_t)(i % vectors * NN_LANES);
        const size_t place = (size_t)(i / vectors);
        y[i] = v16_load(sums.first + place * sums.stride + at);
        y[i] = v16_add(y[i], v16_load(c->bias + o + at));
        if (c->add != NULL) {
            y[i] = v16_add(y[i], v16_load(c->add + flat + place * c->out_channels + at));
        }
        if (c->scale != NULL) {
            v16 scale = v16_add(v16_set1(1.0f), v16_load(c->scale + o + at));
            y[i] = v16_fma(y[i], scale, v16_load(c->shift + o + at));
        }
    }
    if (c->silu) {
        v16_silu_many(y, rows * vectors, precision == NN_BF16);
    }
    for (int i = 0; i < rows * vectors; i++) {
        const size_t at = (size_t)(i / vectors) * c->out_channels + i % vectors * NN_LANES;
        if (c->out_f32 != NULL) {
            v16_store(c->out_f32 + flat + at, y[i]);
        } else {
            act_store(precision, c->out, mapped + at, y[i]);
        }
    }
}

#endif

#endif
