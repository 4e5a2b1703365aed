/*
 * The order of a view's tokens: over all sizes up to a few tiles and some large ones, every index
 * is one place and every place one index, a tile is one run in reading order, squares of tiles are
 * runs, whole powers of two have the bits of Morton's code, and a place's neighbours are near.
 */
#include "kernels/cuda/common/token_order.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 41, LARGE_MAX = 1 << 14 };

static const uint32_t large[][2] = {{45, 80}, {32, 64}, {64, 64}, {1, 300}, {300, 1}, {97, 129}};

/* Each index from 0 up has a place of its own, and that place has this index. */
static void check_bijection(uint32_t rows, uint32_t cols)
{
    static uint8_t met[LARGE_MAX];
    EXPECT(rows * cols <= LARGE_MAX);
    memset(met, 0, sizeof met);
    for (uint32_t index = 0; index < rows * cols; index++) {
        uint32_t row = UINT32_MAX;
        uint32_t col = UINT32_MAX;
        token_order_place(rows, cols, index, &row, &col);
        EXPECT(row < rows && col < cols);
        EXPECT_INT(met[row * cols + col]++, 0);
        EXPECT_INT(token_order_index(rows, cols, row, col), index);
    }
}

static void every_place_has_one_index(void)
{
    for (uint32_t rows = 1; rows <= SIDE_MAX; rows++) {
        for (uint32_t cols = 1; cols <= SIDE_MAX; cols++) {
            check_bijection(rows, cols);
        }
    }
    for (uint32_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        check_bijection(large[i][0], large[i][1]);
    }
}

/* Square of `side` places whose corner is a multiple of it: a run, whatever the view leaves of it.
 */
static void check_run(uint32_t rows, uint32_t cols, uint32_t top, uint32_t left, uint32_t side)
{
    uint32_t height = rows - top < side ? rows - top : side;
    uint32_t width = cols - left < side ? cols - left : side;
    uint32_t first = token_order_tile(rows, cols, top, left);
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;
    for (uint32_t i = 0; i < height * width; i++) {
        uint32_t row = top + i / width;
        uint32_t col = left + i % width;
        uint32_t index = token_order_index(rows, cols, row, col);
        least = index < least ? index : least;
        most = index > most ? index : most;
        if (side == TOKEN_ORDER_SIDE) { /* a tile: in reading order */
            EXPECT_INT(index, first + i);
            EXPECT_INT(token_order_tile(rows, cols, row, col), first);
        }
    }
    EXPECT_INT(least, first);
    EXPECT_INT(most, first + height * width - 1);
}

static void tiles_and_squares_of_tiles_are_runs(void)
{
    for (uint32_t rows = 1; rows <= SIDE_MAX; rows += 3) {
        for (uint32_t cols = 1; cols <= SIDE_MAX; cols++) {
            for (uint32_t side = TOKEN_ORDER_SIDE; side <= 64; side *= 2) {
                for (uint32_t top = 0; top < rows; top += side) {
                    for (uint32_t left = 0; left < cols; left += side) {
                        check_run(rows, cols, top, left, side);
                    }
                }
            }
        }
    }
}

/* Bits of the tile's column and row, one from each in turn. */
static uint32_t morton(uint32_t row, uint32_t col)
{
    uint32_t code = 0;
    for (uint32_t bit = 0; bit < 16; bit++) {
        code |= (col >> bit & 1) << 2 * bit | (row >> bit & 1) << (2 * bit + 1);
    }
    return code;
}

/* Whole squares have Morton's code; of others, tiles come in the order of their codes. */
static void tiles_follow_the_curve(void)
{
    for (uint32_t i = 0; i < 64; i++) {
        EXPECT_INT(token_order_tile(64, 64, i / 8 * 8, i % 8 * 8), morton(i / 8, i % 8) * 64);
    }
    for (uint32_t n = 0; n < sizeof large / sizeof large[0]; n++) {
        uint32_t rows = large[n][0];
        uint32_t cols = large[n][1];
        uint32_t last_code = 0;
        uint32_t last_tile = 0;
        for (uint32_t index = 0; index < rows * cols; index++) {
            uint32_t row, col;
            token_order_place(rows, cols, index, &row, &col);
            uint32_t code = morton(row / 8, col / 8);
            uint32_t tile = row / 8 * ((cols + 7) / 8) + col / 8;
            EXPECT(index == 0 || code > last_code || tile == last_tile);
            last_code = code;
            last_tile = tile;
        }
    }
}

/* Distance of neighbours on average, in both directions; in reading order that is half of
 * 1 + cols. */
static double distance_of_neighbours(uint32_t rows, uint32_t cols)
{
    double sum = 0.0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows * cols; i++) {
        uint32_t row = i / cols;
        uint32_t col = i % cols;
        int index = (int)token_order_index(rows, cols, row, col);
        if (row + 1 < rows) {
            sum += abs((int)token_order_index(rows, cols, row + 1, col) - index);
            count++;
        }
        if (col + 1 < cols) {
            sum += abs((int)token_order_index(rows, cols, row, col + 1) - index);
            count++;
        }
    }
    return sum / count;
}

/* Most neighbours share a tile: the window of a tile of queries touches few others. What counts is
 * the share of neighbours within one run of 64. */
static void neighbours_share_tiles(void)
{
    const uint32_t rows = 45;
    const uint32_t cols = 80;
    uint32_t pairs = 0;
    uint32_t near = 0;
    for (uint32_t i = 0; i < rows * cols; i++) {
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t row = i / cols + (side == 0 ? 1 : 0);
            uint32_t col = i % cols + side;
            if (row < rows && col < cols) {
                int there = (int)token_order_index(rows, cols, row, col);
                pairs++;
                near += abs(there - (int)token_order_index(rows, cols, i / cols, i % cols)) < 64;
            }
        }
    }
    printf("# 45 x 80: %.3f of neighbours lie less than 64 tokens apart (in reading order 0.5); on "
           "average they are %.1f apart (40.5)\n",
           (double)near / pairs, distance_of_neighbours(rows, cols));
    EXPECT(near > pairs * 85 / 100);
}

int main(void)
{
    return TEST_RUN(TEST(every_place_has_one_index), TEST(tiles_and_squares_of_tiles_are_runs),
                    TEST(tiles_follow_the_curve), TEST(neighbours_share_tiles));
}
