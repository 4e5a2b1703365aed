/*
 * Matrix product and 3 x 3 convolution in NN_BF16 on tiles (AMX). A block is 32 rows by 32 columns:
 * two left tiles, two right tiles, four tiles of sums. A convolution reads its left tiles straight
 * from the padded map: 16 neighbouring positions are 16 rows, one pixel apart.
 *
 * The tile multiplier works beside the vector units, so a block's epilogue is spread over the steps
 * of the next block. Weights: panels of 32 columns, each [k / 32] pairs of right tiles, each
 * [16 pairs of k][16 columns][2] bfloat16.
 */
#include "kernels/x86/nn_amx.h"
#include "kernels/x86/nn_epilogue.h"
#include "kernels/x86/nn_matmul.h"
#include "kernels/x86/nn_tiles_amx.h"

enum { BLOCK_ROWS = 2 * TILE_ROWS, BLOCK_COLUMNS = 2 * TILE_COLUMNS };

size_t nn_packed_bytes_amx(uint32_t n, uint32_t k)
{
    return (size_t)n * k * sizeof(uint16_t);
}

void nn_pack_bf16_amx(const float *w, uint32_t n, uint32_t k, void *out)
{
    uint16_t *to = out;
    for (uint32_t col = 0; col < n; col += TILE_COLUMNS) {
        size_t panel = (size_t)(col / BLOCK_COLUMNS) * BLOCK_COLUMNS * k;
        size_t half = col / TILE_COLUMNS % 2 * (TILE_BYTES / 2);
        for (uint32_t j = 0; j < TILE_COLUMNS; j++) {
            for (uint32_t i = 0; i < k; i += NN_LANES) {
                const float *from = w + (size_t)(col + j) * k + i;
                uint16_t row[NN_LANES];
                v16_store_bf16(row, v16_load(from));
                for (uint32_t l = 0; l < NN_LANES; l++) {
                    size_t step = (i + l) / NN_BLOCK * (size_t)TILE_BYTES;
                    size_t pair = (i + l) % NN_BLOCK / 2;
                    to[panel + step + half + pair * NN_BLOCK + 2 * j + l % 2] = row[l];
                }
            }
        }
    }
}

/* Use that a call makes of its sums: an epilogue of the matrix product, or the convolution's. */
enum { FINISH_CONV = NN_SILU_ACT + 1 };

/* 16 rows of a product, and from which on to keep them (the last tile of a range may reach back
 * over the one before). */
struct tile_place {
    size_t first; /* row of the product: of the matrix, or a position of the padded map */
    size_t row;   /* of the output: matrix row or image row */
    size_t col;   /* image column */
    uint32_t skip;
};

/* A block of sums whose epilogue is still to do. */
struct pending {
    const void *call;  /* struct nn_gemm or struct nn_conv */
    const float *sums; /* [32][32] */
    struct tile_place place[2];
    uint32_t column;
    uint32_t next; /* row of the block */
    uint32_t end;
};

NN_INLINE void finish_some(const struct pending *p, uint32_t i, const int rows, const int finish)
{
    const struct tile_place *place = &p->place[i / TILE_ROWS];
    const struct sums sums = {p->sums + i * BLOCK_COLUMNS, BLOCK_COLUMNS};
    const uint32_t r = i % TILE_ROWS;
    if (finish == FINISH_CONV) {
        conv_finish(NN_BF16, p->call, place->row, place->col + r, p->column, sums, rows, 2);
    } else {
        gemm_finish(NN_BF16, (enum nn_epilogue)finish, p->call, place->row + r, p->column, sums,
                    rows, 2);
    }
}

/* The next `count` rows of the block, an even number, as far as there are: two at a time. */
NN_INLINE void finish_rows(struct pending *p, uint32_t count, const int finish)
{
    uint32_t end = p->next + count < p->end ? p->next + count : p->end;
    for (; p->next < end; p->next += 2) {
        const uint32_t skip = p->place[p->next / TILE_ROWS].skip;
        const uint32_t r = p->next % TILE_ROWS;
        const bool second = r + 1 >= skip && p->next + 1 < p->end;
        if (r >= skip && second) {
            finish_some(p, p->next, 2, finish);
        } else if (r >= skip) {
            finish_some(p, p->next, 1, finish);
        } else if (second) {
            finish_some(p, p->next + 1, 1, finish);
        }
    }
}

/* Left operands of a block: from a map, whose taps use them again; or rows of a matrix, which pass
 * through without staying in the first-level cache, where the panel lies. Rows that lie far apart
 * load slowly, so the first panel copies them, tile after tile, for the others. */
enum left { LEFT_MAP, LEFT_ROWS, LEFT_COPY, LEFT_COPIED };

/* The sums of one block; meanwhile `pace` rows of the pending one per step. */
NN_INLINE void block(const struct matmul *matmul, const struct tile_place place[2], const int tiles,
                     const enum left left, uint8_t *copy, const uint8_t *b, struct pending *pending,
                     uint32_t pace, const int finish, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (uint32_t s = 0; s < matmul->count; s++) {
        const struct segment *segment = &matmul->segments[s];
        size_t stride = segment->stride * sizeof(uint16_t);
        size_t step = TILE_ROW_BYTES;
        const uint8_t *a0 = (const uint8_t *)segment->base + place[0].first * stride;
        const uint8_t *a1 = (const uint8_t *)segment->base + place[tiles - 1].first * stride;
        if (left == LEFT_COPIED) {
            a0 = copy;
            a1 = copy + TILE_BYTES;
            stride = TILE_ROW_BYTES;
            step = 2 * TILE_BYTES;
        }
        for (uint32_t k = 0; k < segment->length; k += NN_BLOCK) {
            _tile_loadd(6, b, TILE_ROW_BYTES);
            if (left == LEFT_MAP) {
                _tile_loadd(4, a0, stride);
            } else {
                _tile_stream_loadd(4, a0, stride);
            }
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b + TILE_BYTES, TILE_ROW_BYTES);
            _tile_dpbf16ps(1, 4, 7);
            if (tiles == 2) {
                if (left == LEFT_MAP) {
                    _tile_loadd(5, a1, stride);
                } else {
                    _tile_stream_loadd(5, a1, stride);
                }
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            if (left == LEFT_COPY) {
                _tile_stored(4, copy, TILE_ROW_BYTES);
                if (tiles == 2) {
                    _tile_stored(5, copy + TILE_BYTES, TILE_ROW_BYTES);
                }
                copy += 2 * TILE_BYTES;
            }
            a0 += step;
            a1 += step;
            b += 2 * TILE_BYTES;
            finish_rows(pending, pace, finish);
        }
    }
    finish_rows(pending, BLOCK_ROWS, finish);
    enum { STRIDE = BLOCK_COLUMNS * sizeof(float) };
    _tile_stored(0, sums, STRIDE);
    _tile_stored(1, sums + TILE_COLUMNS, STRIDE);
    if (tiles == 2) {
        _tile_stored(2, sums + TILE_ROWS * BLOCK_COLUMNS, STRIDE);
        _tile_stored(3, sums + TILE_ROWS * BLOCK_COLUMNS + TILE_COLUMNS, STRIDE);
    }
}

/* A call cut into tiles of 16 rows. */
struct tiling {
    const void *call;
    struct matmul matmul;
    uint32_t terms; /* of a sum */
    uint32_t columns;
    const uint8_t *b;
    uint32_t first; /* rows of the range */
    uint32_t end;
    uint32_t tile_rows;
    uint32_t count; /* tiles */
    uint32_t width; /* of the image, 0 for a matrix */
};

static struct tile_place place_of(const struct tiling *t, uint32_t index)
{
    if (t->width != 0) {
        uint32_t per_row = t->width / TILE_ROWS;
        size_t row = t->first + index / per_row;
        size_t col = (size_t)(index % per_row) * TILE_ROWS;
        return (struct tile_place){row * (t->width + 2) + col, row, col, 0};
    }
    uint32_t row = t->first + index * TILE_ROWS;
    uint32_t from = row + t->tile_rows > t->end ? t->end - t->tile_rows : row;
    return (struct tile_place){from, from, 0, row - from};
}

enum { COPY_BYTES = 256 * 1024 };

/* Tiles first .. end - 1 (at most two) with all that a block needs. */
NN_INLINE void run_block(const struct tiling *t, uint32_t panel, uint32_t first, uint32_t end,
                         const enum left left, uint8_t *copy, struct pending *pending,
                         const int finish, float sums[2][BLOCK_ROWS * BLOCK_COLUMNS])
{
    const bool pair = end - first > 1;
    const struct tile_place place[2] = {place_of(t, first), place_of(t, pair ? first + 1 : first)};
    const uint32_t steps = t->terms / NN_BLOCK;
    const uint32_t pace = (BLOCK_ROWS / 2 + steps - 1) / steps * 2;
    const uint8_t *b = t->b + (size_t)panel * t->terms * BLOCK_COLUMNS * sizeof(uint16_t);
    float *to = pending->sums == sums[0] ? sums[1] : sums[0];
    if (pair) {
        block(&t->matmul, place, 2, left, copy, b, pending, pace, finish, to);
    } else {
        block(&t->matmul, place, 1, left, copy, b, pending, pace, finish, to);
    }
    *pending = (struct pending){
        t->call,
        to,
        {place[0], place[1]},
        panel * BLOCK_COLUMNS,
        0,
        pair ? BLOCK_ROWS : t->tile_rows,
    };
}

/* Groups of rows outside, as many as the copy holds; panels next; rows inside. */
NN_INLINE void run_gemm(const struct tiling *t, const int finish)
{
    _Alignas(64) uint8_t copies[COPY_BYTES];
    _Alignas(64) float sums[2][BLOCK_ROWS * BLOCK_COLUMNS];
    struct pending pending = {.next = 0, .end = 0};
    const size_t pair_bytes = (size_t)BLOCK_ROWS * t->terms * sizeof(uint16_t);
    const uint32_t panels = t->columns / BLOCK_COLUMNS;
    const bool copied = pair_bytes <= COPY_BYTES && panels > 1;
    const uint32_t group = copied ? 2 * (uint32_t)(COPY_BYTES / pair_bytes) : t->count;
    tiles_configure(t->tile_rows);
    for (uint32_t base = 0; base < t->count; base += group) {
        const uint32_t stop = t->count - base < group ? t->count : base + group;
        for (uint32_t panel = 0; panel < panels; panel++) {
            uint8_t *copy = copies;
            for (uint32_t index = base; index < stop; index += 2, copy += pair_bytes) {
                uint32_t end = stop - index < 2 ? stop : index + 2;
                if (!copied) {
                    run_block(t, panel, index, end, LEFT_ROWS, NULL, &pending, finish, sums);
                    copy = copies;
                } else if (panel == 0) {
                    run_block(t, panel, index, end, LEFT_COPY, copy, &pending, finish, sums);
                } else {
                    run_block(t, panel, index, end, LEFT_COPIED, copy, &pending, finish, sums);
                }
            }
        }
    }
    _tile_release();
    finish_rows(&pending, BLOCK_ROWS, finish);
}

static void run_conv(const struct tiling *t)
{
    _Alignas(64) float sums[2][BLOCK_ROWS * BLOCK_COLUMNS];
    struct pending pending = {.next = 0, .end = 0};
    tiles_configure(t->tile_rows);
    for (uint32_t panel = 0; panel < t->columns / BLOCK_COLUMNS; panel++) {
        for (uint32_t index = 0; index < t->count; index += 2) {
            uint32_t end = t->count - index < 2 ? t->count : index + 2;
            run_block(t, panel, index, end, LEFT_MAP, NULL, &pending, FINISH_CONV, sums);
        }
    }
    _tile_release();
    finish_rows(&pending, BLOCK_ROWS, FINISH_CONV);
}

/* One copy of the loops per epilogue. */
static __attribute__((noinline)) void run_store(const struct tiling *t)
{
    run_gemm(t, NN_STORE);
}

static __attribute__((noinline)) void run_add(const struct tiling *t)
{
    run_gemm(t, NN_ADD_GATED);
}

static __attribute__((noinline)) void run_act(const struct tiling *t)
{
    run_gemm(t, NN_STORE_ACT);
}

static __attribute__((noinline)) void run_silu(const struct tiling *t)
{
    run_gemm(t, NN_SILU_ACT);
}

void nn_gemm_bf16_amx(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    if (first_row >= end_row) {
        return;
    }
    const struct tiling t = {
        .call = g,
        .matmul = {.segments = {{g->a, g->lda, g->k}}, .count = 1},
        .terms = g->k,
        .columns = g->n,
        .b = g->b,
        .first = first_row,
        .end = end_row,
        /* With 16 rows below the end, the last tile reaches back; rows are read, not kept. */
        .tile_rows = end_row >= TILE_ROWS ? TILE_ROWS : end_row - first_row,
        .count = (end_row - first_row + TILE_ROWS - 1) / TILE_ROWS,
    };
    switch (g->epilogue) {
    case NN_STORE:
        run_store(&t);
        break;
    case NN_ADD_GATED:
        run_add(&t);
        break;
    case NN_STORE_ACT:
        run_act(&t);
        break;
    case NN_SILU_ACT:
        run_silu(&t);
        break;
    }
}

void nn_conv3x3_bf16_amx(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    if (first_row >= end_row) {
        return;
    }
    const struct tiling t = {
        .call = c,
        .matmul = conv_matmul(NN_BF16, c),
        .terms = 9 * nn_conv_depth(c->in_count, c->in_channels),
        .columns = c->out_channels,
        .b = c->b,
        .first = first_row,
        .end = end_row,
        .tile_rows = TILE_ROWS,
        .count = (end_row - first_row) * (c->cols / TILE_ROWS),
        .width = c->cols,
    };
    run_conv(&t);
}
