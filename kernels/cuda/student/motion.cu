/*
 * The motion-compensated frame on the device (engine/model.md): one thread per position gathers the
 * returns that come to its four cells. The engine scatters them instead (engine/learned/motion.c);
 * the sums are of integers, so the bits are the same. A slot's bits depend on its record, page and
 * layout alone.
 */
#include "kernels/cuda/student/past.cuh"

enum {
    THREADS = 128,
    PARTS = 20, /* of a cell; a velocity's unit is one of them in a tick */
    ONE = PARTS * PARTS,
    STILL = 128,
    STILL_MAX = 2,
    REACH = 4, /* positions: no velocity goes further */
    MAP_FIRST = 12,
    MAP_END = 20,
    VELOCITY = 20,
};

/* ---- sums ---- */

/* Of the four cells of a position, and of the position. Indexed by constants alone once loops are
 * unrolled, so that they stay in registers. */
struct sums {
    uint32_t occupancy[4], vru[4];
    int64_t weight, u, v;
};

/* A return's share of a cell whose centre is `away` twentieths from where it comes to. */
GPU_FN int32_t share(int32_t away)
{
    int32_t distance = away < 0 ? -away : away;
    return distance < PARTS ? PARTS - distance : 0;
}

/* The four sub-cells of a position that is `rows` and `cols` positions away. */
GPU_FN void add_position(struct sums *sums, const uint8_t *from, int32_t rows, int32_t cols)
{
    const uint16_t *pairs = (const uint16_t *)from; /* a position has an even number of bytes */
    uint32_t occupancy = pairs[0] | (uint32_t)pairs[1] << 16;
    if (occupancy == 0) {
        return;
    }
    uint32_t vru = pairs[2] | (uint32_t)pairs[3] << 16;
    int32_t u = (int32_t)from[VELOCITY] - STILL;
    int32_t v = (int32_t)from[VELOCITY + 1] - STILL;
    if (u >= -STILL_MAX && u <= STILL_MAX && v >= -STILL_MAX && v <= STILL_MAX) {
        u = v = 0;
    }
#pragma unroll
    for (int pair = 0; pair < 16; pair++) {
        int from_cell = pair >> 2;
        int to_cell = pair & 3;
        int32_t row = PARTS * (2 * rows + (from_cell >> 1) - (to_cell >> 1)) + u;
        int32_t col = PARTS * (2 * cols + (from_cell & 1) - (to_cell & 1)) + v;
        uint32_t weight = (uint32_t)(share(row) * share(col));
        uint32_t mass = weight * (occupancy >> 8 * from_cell & 255);
        sums->occupancy[to_cell] += mass;
        sums->vru[to_cell] += mass > 0 ? weight * (vru >> 8 * from_cell & 255) : 0;
        sums->weight += mass;
        sums->u += (int64_t)mass * u;
        sums->v += (int64_t)mass * v;
    }
}

GPU_FN void gather(struct sums *sums, const struct past *past, int32_t row, int32_t col)
{
    int32_t first_row = row - REACH > past->first[0] ? row - REACH : past->first[0];
    int32_t first_col = col - REACH > past->first[1] ? col - REACH : past->first[1];
    int32_t end_row = row + REACH < past->end[0] ? row + REACH + 1 : past->end[0];
    int32_t end_col = col + REACH < past->end[1] ? col + REACH + 1 : past->end[1];
    for (int32_t r = first_row; r < end_row; r++) {
        for (int32_t c = first_col; c < end_col; c++) {
            add_position(sums, past_at(past, r, c), r - row, c - col);
        }
    }
}

/* ---- bytes ---- */

GPU_FN uint8_t cell_byte(uint32_t sum)
{
    uint32_t byte = (sum + ONE / 2) / ONE;
    return (uint8_t)(byte < 255 ? byte : 255);
}

/* The mean to the nearest integer, halves away from zero, which is within a byte: eight steps of a
 * division by hand, because that of 64 bits is a call. */
GPU_FN uint8_t velocity_byte(int64_t sum, int64_t weight)
{
    uint64_t left = 2 * (uint64_t)(sum < 0 ? -sum : sum) + (uint64_t)weight;
    int32_t mean = 0;
    for (int bit = 7; bit >= 0 && weight > 0; bit--) {
        uint64_t part = 2 * (uint64_t)weight << bit;
        if (left >= part) {
            left -= part;
            mean |= 1 << bit;
        }
    }
    return (uint8_t)(STILL + (sum < 0 ? -mean : mean));
}

__global__ void __launch_bounds__(THREADS) k_motion(struct context_slots s)
{
    uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (position >= SHAPE_BEV_POSITIONS || !slot->active ||
        slot->conditioning == CONDITION_AGENTS) {
        return;
    }
    int32_t row = (int32_t)(position / SHAPE_BEV_SIDE);
    int32_t col = (int32_t)(position % SHAPE_BEV_SIDE);
    struct past past = past_of(&s, slot);
    struct sums sums = {};
    gather(&sums, &past, row, col);
    uint8_t *out =
        s.layouts + (size_t)blockIdx.y * DEVICE_FRAME_BYTES + (size_t)position * SHAPE_BEV_CHANNELS;
#pragma unroll
    for (int cell = 0; cell < 4; cell++) {
        out[cell] = cell_byte(sums.occupancy[cell]);
        out[4 + cell] = cell_byte(sums.vru[cell]);
    }
    const uint8_t *stays = past_has(&past, row, col) ? past_at(&past, row, col) : NULL;
    int end = slot->conditioning == CONDITION_MAP ? (int)MAP_FIRST : (int)MAP_END;
    for (int i = 8; i < end; i++) {
        out[i] = stays != NULL ? stays[i] : (uint8_t)0;
    }
    out[VELOCITY] = velocity_byte(sums.u, sums.weight);
    out[VELOCITY + 1] = velocity_byte(sums.v, sums.weight);
}

void context_move(const struct context_slots *s, void *stream)
{
    dim3 grid((SHAPE_BEV_POSITIONS + THREADS - 1) / THREADS, s->count);
    LAUNCH(k_motion, grid, dim3(THREADS), 0, (cudaStream_t)stream, *s);
}
