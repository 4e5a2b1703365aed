/*
 * The order of a view's tokens in memory, and the only place that knows it: the view is cut into
 * tiles of 8 x 8 places (fewer at its lower and right edges), tiles lie in Z-order (Morton, 1966),
 * and the tokens of a tile in reading order. So a tile is one run of tokens in every array and in
 * every page, squares of 2, 4, 8 .. tiles are runs too, and what is near in the view is near in
 * memory, as far as one line can have it.
 *
 *      0  1  4  5     tiles of a view of 3 x 4 tiles; where a square of the curve is not
 *      2  3  6  7     whole (a third row of tiles, here), it goes on with the next one
 *      8  9 10 11     that is there, so that indices have no gaps, whatever the size
 *
 * Host and device, C and CUDA. A place is (row, column), rows first; an index is where the token
 * lies, counted from the view's first one.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_TOKEN_ORDER_H
#define SWERVE_KERNELS_CUDA_COMMON_TOKEN_ORDER_H

#include <stdint.h>

#ifdef __CUDACC__
#define TOKEN_ORDER_FN static __host__ __device__ __forceinline__
#else
#define TOKEN_ORDER_FN static inline
#endif

enum { TOKEN_ORDER_SIDE = 8 };

/* A view, and the part of it that a square of the curve holds: at most `side` places each way. */
struct token_order_square {
    uint32_t top, left, side;
};

TOKEN_ORDER_FN uint32_t token_order_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The square that holds all of a view: the least power of two of tiles. */
TOKEN_ORDER_FN struct token_order_square token_order_whole(uint32_t rows, uint32_t cols)
{
    struct token_order_square square = {0, 0, TOKEN_ORDER_SIDE};
    while (square.side < rows || square.side < cols) {
        square.side *= 2;
    }
    return square;
}

/* Goes down into the quarter of the square: lower or upper, right or left. Returns how many tokens
 * of the square lie before that quarter. The square begins within the view; so must the quarter. */
TOKEN_ORDER_FN uint32_t order_enter(struct token_order_square *square, uint32_t rows, uint32_t cols,
                                    uint32_t lower, uint32_t right)
{
    const uint32_t half = square->side / 2;
    const uint32_t height = token_order_least(rows - square->top, square->side);
    const uint32_t width = token_order_least(cols - square->left, square->side);
    const uint32_t upper_height = token_order_least(height, half);
    const uint32_t left_width = token_order_least(width, half);
    const uint32_t above = lower != 0 ? upper_height * width : 0;
    const uint32_t own_height = lower != 0 ? height - upper_height : upper_height;
    square->side = half;
    square->top += lower != 0 ? half : 0;
    square->left += right != 0 ? half : 0;
    return above + (right != 0 ? own_height * left_width : 0);
}

/* The index of the first token of the tile that holds a place of the view. */
TOKEN_ORDER_FN uint32_t token_order_tile(uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    struct token_order_square square = token_order_whole(rows, cols);
    uint32_t index = 0;
    while (square.side > TOKEN_ORDER_SIDE) {
        const uint32_t half = square.side / 2;
        index += order_enter(&square, rows, cols, row - square.top >= half ? 1 : 0,
                             col - square.left >= half ? 1 : 0);
    }
    return index;
}

/* The index of the token at a place of the view. */
TOKEN_ORDER_FN uint32_t token_order_index(uint32_t rows, uint32_t cols, uint32_t row, uint32_t col)
{
    const uint32_t width =
        token_order_least(cols - col / TOKEN_ORDER_SIDE * TOKEN_ORDER_SIDE, TOKEN_ORDER_SIDE);
    return token_order_tile(rows, cols, row, col) + row % TOKEN_ORDER_SIDE * width +
           col % TOKEN_ORDER_SIDE;
}

/* The place of the token at an index below rows * cols. */
TOKEN_ORDER_FN void token_order_place(uint32_t rows, uint32_t cols, uint32_t index, uint32_t *row,
                                      uint32_t *col)
{
    struct token_order_square square = token_order_whole(rows, cols);
    while (square.side > TOKEN_ORDER_SIDE) {
        const uint32_t half = square.side / 2;
        const uint32_t height = token_order_least(rows - square.top, square.side);
        const uint32_t width = token_order_least(cols - square.left, square.side);
        const uint32_t upper = token_order_least(height, half);
        const uint32_t lower = index >= upper * width ? 1 : 0;
        const uint32_t own_height = lower != 0 ? height - upper : upper;
        const uint32_t within = index - (lower != 0 ? upper * width : 0);
        const uint32_t right = within >= own_height * token_order_least(width, half) ? 1 : 0;
        index -= order_enter(&square, rows, cols, lower, right);
    }
    const uint32_t width = token_order_least(cols - square.left, TOKEN_ORDER_SIDE);
    *row = square.top + index / width;
    *col = square.left + index % width;
}

#endif
