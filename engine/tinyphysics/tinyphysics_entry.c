/*
 * The images of states, bins and positions in block 0's queries, keys and values. A norm's scale
 * goes into the matrix; what its mean takes off a row is taken off the matrix's columns, as their
 * scaled mean. Sums are in double precision, each of one chain, so every machine makes the same.
 */
#include "engine/tinyphysics/tinyphysics_entry.h"

enum {
    WIDTH = TINYPHYSICS_WIDTH,
    HALF = TINYPHYSICS_HALF,
    COLUMNS = TINYPHYSICS_COLUMNS,
    STRIP = 64, /* columns at a time */
};

_Static_assert(COLUMNS % STRIP == 0, "strips are whole");

/* sums[] += `count` numbers times their rows of the strip. */
static void add(double sums[STRIP], const float *numbers, uint32_t count,
                const double matrix[][STRIP])
{
    for (uint32_t i = 0; i < count; i++) {
        const double number = (double)numbers[i];
        for (uint32_t c = 0; c < STRIP; c++) {
            sums[c] += number * matrix[i][c];
        }
    }
}

static void store(const double sums[STRIP], float *out)
{
    for (uint32_t c = 0; c < STRIP; c++) {
        out[c] = (float)sums[c];
    }
}

/* matrix = columns `first` and on of qkv, scaled, less their means; shift[] of the norm's shift. */
static void make_strip(const struct tinyphysics_block *block, uint32_t first,
                       double matrix[WIDTH][STRIP], float *shift)
{
    double means[STRIP] = {0};
    double shifts[STRIP] = {0};
    for (uint32_t i = 0; i < WIDTH; i++) {
        const double scale = (double)block->attention_norm.scale[i];
        for (uint32_t c = 0; c < STRIP; c++) {
            const double weight = (double)block->qkv[i][first + c];
            matrix[i][c] = scale * weight;
            means[c] += matrix[i][c] / WIDTH;
            shifts[c] += (double)block->attention_norm.shift[i] * weight;
        }
    }
    for (uint32_t i = 0; i < WIDTH; i++) {
        for (uint32_t c = 0; c < STRIP; c++) {
            matrix[i][c] -= means[c];
        }
    }
    store(shifts, shift);
}

void tinyphysics_entry_make(const struct tinyphysics_weights *weights,
                            struct tinyphysics_entry *entry)
{
    double matrix[WIDTH][STRIP];
    for (uint32_t first = 0; first < COLUMNS; first += STRIP) {
        make_strip(&weights->blocks[0], first, matrix, entry->shift + first);
        for (uint32_t i = 0; i < TINYPHYSICS_INPUTS; i++) {
            double sums[STRIP] = {0};
            add(sums, weights->state[i], HALF, matrix);
            store(sums, entry->state[i] + first);
        }
        for (uint32_t i = 0; i < TINYPHYSICS_BINS; i++) {
            double sums[STRIP] = {0};
            add(sums, weights->bins[i], HALF, matrix + HALF);
            store(sums, entry->bins[i] + first);
        }
        for (uint32_t i = 0; i < TINYPHYSICS_CONTEXT; i++) {
            double sums[STRIP] = {0};
            add(sums, weights->state_bias, HALF, matrix);
            add(sums, weights->positions[i], WIDTH, matrix);
            store(sums, entry->positions[i] + first);
        }
    }
}
