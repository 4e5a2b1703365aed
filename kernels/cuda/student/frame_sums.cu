/*
 * The sums of the frames that a tick wrote (kernels/frame_sums.h), made where the frames lie: of a
 * slot's written page, its newest page and its layout. One thread per position; a block adds what
 * its threads found and then adds that to the slot's sums. All are integers, so the order does
 * not matter and they equal engine/learned/frame_measure.c's. A slot's depend on its own record,
 * pages and layout.
 */
#include "kernels/cuda/student/past.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    BEV_SUMS = 9,
    CAMERA_SUMS = 9,
    BEV_BLOCKS = SHAPE_BEV_POSITIONS / THREADS,
    CAMERA_POSITIONS = SHAPE_CAMERAS * SHAPE_CAMERA_POSITIONS,
    CAMERA_BLOCKS = CAMERA_POSITIONS / THREADS,
    VRU = 4,       /* channels of a position */
    CHANNELS = 12, /* of a camera's */
    WORDS = CHANNELS / 4,
};

static_assert(BEV_BLOCKS * THREADS == SHAPE_BEV_POSITIONS &&
                  CAMERA_BLOCKS * THREADS == CAMERA_POSITIONS,
              "no thread is left over");
static_assert((int)CHANNELS == (int)SHAPE_CAMERA_CHANNELS && SHAPE_BEV_BYTES % 4 == 0 &&
                  (int)DEVICE_FRAME_BYTES % 4 == 0,
              "cameras are read in words");
static_assert(offsetof(struct frame_sums, camera_change) == BEV_SUMS * sizeof(int64_t) &&
                  sizeof(struct frame_sums) == (BEV_SUMS + CAMERA_SUMS) * sizeof(int64_t),
              "sums are numbered as they lie");
/* A block's sum of products, the largest of all, fits 31 bits. */
static_assert((int64_t)THREADS * CHANNELS * 255 * 255 < INT32_MAX, "sums of a block fit");

/* Four bytes at an even address. */
GPU_FN uint32_t four_bytes(const uint8_t *at)
{
    const uint16_t *pairs = (const uint16_t *)at;
    return pairs[0] | (uint32_t)pairs[1] << 16;
}

GPU_FN int32_t byte_of(uint32_t word, int i)
{
    return (int32_t)(word >> 8 * i & 255);
}

GPU_FN int32_t distance(int32_t a, int32_t b)
{
    return a < b ? b - a : a - b;
}

/* Sums that one position of the BEV adds, in the order of struct frame_sums. */
GPU_FN void sum_bev(const struct context_slots *s, uint32_t number, uint32_t position,
                    int32_t sums[BEV_SUMS])
{
    const struct device_slot *slot = &s->slots[number];
    const uint8_t *frame = s->arena + slot->write_page * s->page_bytes;
    const uint8_t *now = frame + (size_t)position * SHAPE_BEV_CHANNELS;
    uint32_t occupancy = four_bytes(now);
    uint32_t vru = four_bytes(now + VRU);
    struct past past = past_of(s, slot);
    int32_t row = (int32_t)(position / SHAPE_BEV_SIDE);
    int32_t col = (int32_t)(position % SHAPE_BEV_SIDE);
    bool compared = past_has(&past, row, col);
    uint32_t then = compared ? four_bytes(past_at(&past, row, col)) : 0;
    bool given = slot->conditioning == CONDITION_AGENTS;
    const uint8_t *layout = s->layouts + (size_t)number * DEVICE_FRAME_BYTES;
    uint32_t drawn = given ? four_bytes(layout + (size_t)position * SHAPE_BEV_CHANNELS) : 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int32_t a = byte_of(occupancy, i);
        int32_t b = byte_of(drawn, i);
        sums[0] += a;
        sums[1] += byte_of(vru, i);
        sums[2] += compared ? distance(a, byte_of(then, i)) : 0;
        sums[3] += compared ? 1 : 0;
        sums[4] += b;
        sums[5] += a < b ? a : b;
        sums[6] += !given ? 0 : a < b ? b : a;
    }
    if (given && (occupancy | vru) != 0) {
        for (int32_t i = 0; i < 4; i++) {
            sums[7] += agent_surplus(frame, layout, 2 * row + (i >> 1), 2 * col + (i & 1), false);
            sums[8] += agent_surplus(frame, layout, 2 * row + (i >> 1), 2 * col + (i & 1), true);
        }
    }
}

/* The bytes of a camera position. */
struct pixels {
    uint32_t word[WORDS];
};

GPU_FN struct pixels pixels_at(const uint8_t *frame, uint32_t position)
{
    const uint32_t *words = (const uint32_t *)(frame + SHAPE_BEV_BYTES) + (size_t)position * WORDS;
    struct pixels p;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        p.word[i] = words[i];
    }
    return p;
}

GPU_FN int32_t pixel(const struct pixels *p, int channel)
{
    return byte_of(p->word[channel / 4], channel % 4);
}

/* Relation that frame x and layout y have with each other in one position, and what is left of both
 * without the mirrored position. */
GPU_FN void sum_products(const struct pixels *x, const struct pixels *x_mirror,
                         const struct pixels *y, const struct pixels *y_mirror,
                         int32_t sums[CAMERA_SUMS])
{
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        /* channel 3 s + rgb; the sub-pixel beside s is s ^ 1 */
        int beside = (c / 3 ^ 1) * 3 + c % 3;
        int32_t a = pixel(x, c);
        int32_t b = pixel(y, c);
        int32_t side_a = a - pixel(x_mirror, beside);
        int32_t side_b = b - pixel(y_mirror, beside);
        sums[1] += a;
        sums[2] += b;
        sums[3] += a * a;
        sums[4] += b * b;
        sums[5] += a * b;
        sums[6] += side_a * side_a;
        sums[7] += side_b * side_b;
        sums[8] += side_a * side_b;
    }
}

/* Sums that one position of the cameras adds, in the order of struct frame_sums. */
GPU_FN void sum_cameras(const struct context_slots *s, uint32_t number, uint32_t position,
                        int32_t sums[CAMERA_SUMS])
{
    const struct device_slot *slot = &s->slots[number];
    const uint8_t *frame = s->arena + slot->write_page * s->page_bytes;
    struct pixels now = pixels_at(frame, position);
    if (slot->page_count > 0) {
        struct pixels then = pixels_at(s->arena + slot->page[0] * s->page_bytes, position);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            sums[0] += distance(pixel(&now, c), pixel(&then, c));
        }
    }
    if (slot->conditioning != CONDITION_NONE) {
        uint32_t col = position % SHAPE_CAMERA_COLS;
        uint32_t mirror = position - col + SHAPE_CAMERA_COLS - 1 - col;
        const uint8_t *layout = s->layouts + (size_t)number * DEVICE_FRAME_BYTES;
        struct pixels drawn = pixels_at(layout, position);
        struct pixels now_mirror = pixels_at(frame, mirror);
        struct pixels drawn_mirror = pixels_at(layout, mirror);
        sum_products(&now, &now_mirror, &drawn, &drawn_mirror, sums);
    }
}

/* The block's sums, added to `out`: within warps, then over them, then to what other blocks found.
 * Called by all threads; `room` has a row per warp. */
template <int COUNT>
GPU_FN void add_sums(const int32_t sums[COUNT], int32_t room[WARPS][CAMERA_SUMS], int64_t *out)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        /* modulo 2^32, which a signed sum survives */
        uint32_t sum = __reduce_add_sync(0xffffffffu, (uint32_t)sums[i]);
        if (threadIdx.x % 32 == 0) {
            room[threadIdx.x / 32][i] = (int32_t)sum;
        }
    }
    __syncthreads();
    if (threadIdx.x < COUNT) {
        int64_t sum = 0;
        for (int warp = 0; warp < WARPS; warp++) {
            sum += room[warp][threadIdx.x];
        }
        atomicAdd((unsigned long long *)&out[threadIdx.x], (unsigned long long)sum);
    }
}

/* The BEV's blocks, then the cameras'. */
__global__ void __launch_bounds__(THREADS)
    k_sums(struct context_slots s, struct device_counts *counts)
{
    SHARED(int32_t[WARPS][CAMERA_SUMS], room);
    uint32_t number = blockIdx.y;
    if (!s.slots[number].active) {
        return;
    }
    struct frame_sums *out = &counts[number].sums;
    if (blockIdx.x < BEV_BLOCKS) {
        int32_t sums[BEV_SUMS] = {};
        sum_bev(&s, number, blockIdx.x * THREADS + threadIdx.x, sums);
        add_sums<BEV_SUMS>(sums, room, &out->occupancy);
    } else {
        int32_t sums[CAMERA_SUMS] = {};
        sum_cameras(&s, number, (blockIdx.x - BEV_BLOCKS) * THREADS + threadIdx.x, sums);
        add_sums<CAMERA_SUMS>(sums, room, &out->camera_change);
    }
}

void context_sums(const struct context_slots *s, struct device_counts *counts, void *stream)
{
    LAUNCH(k_sums, dim3(BEV_BLOCKS + CAMERA_BLOCKS, s->count), dim3(THREADS), 0,
           (cudaStream_t)stream, *s, counts);
}
