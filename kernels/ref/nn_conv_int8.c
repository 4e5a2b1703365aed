/*
 * Reference 3 x 3 convolution of integers (NN_INT8), one output at a time, as kernels/nn.h
 * states it. Weights are packed as [n] scales, then [n][k] bytes, k in the order of the file.
 */
#include "kernels/ref/nn_ref.h"
#include "kernels/ref/nn_scalar.h"

#include "base/check.h"

#include <string.h>

size_t nn_conv_packed_bytes_int8_ref(uint32_t n, uint32_t in_count, const uint32_t in_channels[2])
{
    return nn_packed_bytes_int8_ref(n, 9 * nn_conv_depth(in_count, in_channels));
}

void nn_conv_pack_int8_ref(const float *w, uint32_t n, uint32_t in_count,
                           const uint32_t in_channels[2], const uint32_t in_used[2], void *out)
{
    const uint32_t depth = nn_conv_depth(in_count, in_channels);
    nn_pack_int8_ref(w, n, 9 * depth, out);
    int8_t *tap = (int8_t *)((float *)out + n);
    for (uint32_t i = 0; i < 9 * n; i++, tap += depth) {
        memset(tap + in_used[0], 0, in_channels[0] - in_used[0]);
        if (in_count > 1) {
            memset(tap + in_channels[0] + in_used[1], 0, in_channels[1] - in_used[1]);
        }
    }
}

/* The steps of a line of an input map, border included. */
static struct nn_int8_line line_steps(const struct nn_conv *c, uint32_t input, uint32_t line)
{
    const size_t count = (size_t)(c->cols + 2) * c->in_channels[input];
    const uint16_t *x = (const uint16_t *)c->in[input] + line * count;
    int16_t least = 0;
    int16_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const int16_t key = nn_bf16_key(x[i]);
        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    return nn_int8_line(least, most);
}

static int32_t in_steps(uint16_t bits, struct nn_int8_line line)
{
    return line.inverse == 0.0f ? 0 : (int32_t)rintf(nn_from_bf16(bits) * line.inverse);
}

static float conv_one(const struct nn_conv *c, const struct nn_int8_line lines[3][2], uint32_t row,
                      uint32_t col, uint32_t o)
{
    const uint32_t depth = nn_conv_depth(c->in_count, c->in_channels);
    const float *scale = c->b;
    const int8_t *w = (const int8_t *)(scale + c->out_channels) + (size_t)o * 9 * depth;
    float total = 0.0f;
    for (uint32_t dy = 0; dy < 3; dy++) {
        uint32_t offset = 0;
        for (uint32_t input = 0; input < c->in_count; input++) {
            const uint32_t channels = c->in_channels[input];
            int32_t sum = 0;
            for (uint32_t dx = 0; dx < 3; dx++) {
                const size_t at = (size_t)(row + dy) * (c->cols + 2) + col + dx;
                const uint16_t *a = (const uint16_t *)c->in[input] + at * channels;
                const int8_t *tap = w + (dy * 3 + dx) * depth + offset;
                for (uint32_t i = 0; i < channels; i++) {
                    sum += in_steps(a[i], lines[dy][input]) * tap[i];
                }
            }
            total = fmaf((float)sum, lines[dy][input].scale, total);
            offset += channels;
        }
    }
    return total * scale[o];
}

void nn_conv3x3_int8_ref(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    CHECK(c->cols <= NN_CONV_INT8_COLS_MAX);
    for (uint32_t row = first_row; row < end_row; row++) {
        struct nn_int8_line lines[3][2];
        memset(lines, 0, sizeof lines);
        for (uint32_t dy = 0; dy < 3; dy++) {
            for (uint32_t input = 0; input < c->in_count; input++) {
                lines[dy][input] = line_steps(c, input, row + dy);
            }
        }
        for (uint32_t col = 0; col < c->cols; col++) {
            for (uint32_t o = 0; o < c->out_channels; o++) {
                nn_conv_store_ref(NN_BF16, c, row, col, o, conv_one(c, lines, row, col, o));
            }
        }
    }
}
