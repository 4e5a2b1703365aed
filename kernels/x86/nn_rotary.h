/*
 * The rotary turn of 16 columns of a query or key row, shared by the vector and the tile attention.
 */
#ifndef SWERVE_KERNELS_X86_NN_ROTARY_H
#define SWERVE_KERNELS_X86_NN_ROTARY_H

#include "kernels/x86/nn_lanes.h"

#if defined(__AVX2__)

/* Columns c .. c + 15 of a head, eight pairs: (a cos - b sin, b cos + a sin). */
NN_INLINE v16 rotary_turn(const struct nn_attention *a, uint32_t token, uint32_t c, v16 x)
{
    size_t pair = (size_t)token * (NN_HEAD / 2) + c / 2;
    v16 side = v16_mul(v16_swap_pairs(x), v16_load_doubled(a->sine + pair));
    return v16_fma_alternate(x, v16_load_doubled(a->cosine + pair), side);
}

#endif

#endif
