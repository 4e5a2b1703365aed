/*
 * The network of tinyphysics (engine/tinyphysics/tinyphysics_model.h) and the arithmetic of the
 * controls challenge's simulator, as CPU and GPU share them: the weights as the file has them, the
 * bins, the baseline controller. C17 and C++17 at once (base/both.h).
 */
#ifndef SWERVE_KERNELS_TINYPHYSICS_H
#define SWERVE_KERNELS_TINYPHYSICS_H

#include "base/both.h"

#include <stdint.h>

enum {
    TINYPHYSICS_CONTEXT = 20, /* steps that it sees */
    TINYPHYSICS_INPUTS = 4,   /* steer action, roll lataccel m/s2, v_ego m/s, a_ego m/s2 */
    TINYPHYSICS_BINS = 1024,
    TINYPHYSICS_WIDTH = 128,
    TINYPHYSICS_HALF = TINYPHYSICS_WIDTH / 2, /* of a token: its state, its bin */
    TINYPHYSICS_HEADS = 4,
    TINYPHYSICS_COLUMNS = 3 * TINYPHYSICS_WIDTH, /* of queries, keys and values */
    TINYPHYSICS_MLP = 512,
    TINYPHYSICS_BLOCKS = 4,
};

#define TINYPHYSICS_LATACCEL_LIMIT 5.0 /* of the bins, m/s2 */
#define TINYPHYSICS_STEER_LIMIT 2.0
#define TINYPHYSICS_STEP_LIMIT 0.5 /* change of lateral acceleration in a step, m/s2 */
#define TINYPHYSICS_TEMPERATURE 0.8f

struct tinyphysics_norm {
    float scale[TINYPHYSICS_WIDTH], shift[TINYPHYSICS_WIDTH];
};

/* Matrices are [inputs][outputs]. */
struct tinyphysics_block {
    struct tinyphysics_norm attention_norm, mlp_norm;
    float qkv[TINYPHYSICS_WIDTH][TINYPHYSICS_COLUMNS]; /* queries, keys, values */
    float attention_out[TINYPHYSICS_WIDTH][TINYPHYSICS_WIDTH];
    float up[TINYPHYSICS_WIDTH][TINYPHYSICS_MLP];
    float down[TINYPHYSICS_MLP][TINYPHYSICS_WIDTH];
};

struct tinyphysics_weights {
    float state_bias[TINYPHYSICS_HALF];
    float state[TINYPHYSICS_INPUTS][TINYPHYSICS_HALF];
    float bins[TINYPHYSICS_BINS][TINYPHYSICS_HALF];
    float positions[TINYPHYSICS_CONTEXT][TINYPHYSICS_WIDTH];
    struct tinyphysics_block blocks[TINYPHYSICS_BLOCKS];
    struct tinyphysics_norm last_norm;
    float head[TINYPHYSICS_WIDTH][TINYPHYSICS_BINS];
};

/* Images in block 0's queries, keys and values: these are (state's + bin's + position's) / the
 * deviation of the token's row + shift (struct nn_causal_entry). */
struct tinyphysics_entry {
    float state[TINYPHYSICS_INPUTS][TINYPHYSICS_COLUMNS];
    float bins[TINYPHYSICS_BINS][TINYPHYSICS_COLUMNS];
    float positions[TINYPHYSICS_CONTEXT][TINYPHYSICS_COLUMNS]; /* and that of the state's bias */
    float shift[TINYPHYSICS_COLUMNS];
};

/* numpy.linspace(-5, 5, 1024): a product and a sum, each rounded. */
BOTH_FN double tinyphysics_bin_value(uint32_t token)
{
    const double step = 2.0 * TINYPHYSICS_LATACCEL_LIMIT / (TINYPHYSICS_BINS - 1);
    const double offset = (double)token * step;
    return token == TINYPHYSICS_BINS - 1 ? TINYPHYSICS_LATACCEL_LIMIT
                                         : offset + -TINYPHYSICS_LATACCEL_LIMIT;
}

/* numpy.digitize(.., right=True): bins that are below the value. */
BOTH_FN uint32_t tinyphysics_bin_of(double value)
{
    uint32_t low = 0;
    uint32_t high = TINYPHYSICS_BINS - 1; /* the last is not below */
    value = both_clamp(value, -TINYPHYSICS_LATACCEL_LIMIT, TINYPHYSICS_LATACCEL_LIMIT);
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (tinyphysics_bin_value(middle) < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The first of the ascending sums that is above uniform times the last: numpy's
 * searchsorted(sums / sums[-1], uniform, side="right"). */
BOTH_FN uint32_t tinyphysics_draw(const double *sums, double uniform)
{
    const double sum = sums[TINYPHYSICS_BINS - 1];
    uint32_t low = 0;
    uint32_t high = TINYPHYSICS_BINS - 1;
    while (low < high) { /* quotients ascend as the sums do */
        const uint32_t middle = (low + high) / 2;
        if (sums[middle] / sum <= uniform) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The lateral acceleration that a token leads to. */
BOTH_FN double tinyphysics_drawn(uint32_t token, double before_mps2)
{
    return both_clamp(tinyphysics_bin_value(token), before_mps2 - TINYPHYSICS_STEP_LIMIT,
                      before_mps2 + TINYPHYSICS_STEP_LIMIT);
}

/* The challenge's baseline controller. Zero-initialise; asked at every row from 20 on. */
struct tinyphysics_pid {
    double error_sum, last_error;
};

BOTH_FN double tinyphysics_pid_update(struct tinyphysics_pid *pid, double target_mps2,
                                      double lataccel_mps2)
{
    const double error = target_mps2 - lataccel_mps2;
    const double change = error - pid->last_error;
    pid->error_sum += error;
    pid->last_error = error;
    return 0.195 * error + 0.100 * pid->error_sum + -0.053 * change;
}

#endif
