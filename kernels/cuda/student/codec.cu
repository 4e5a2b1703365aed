/*
 * Between bytes and numbers: latents to a frame's bytes with a count of what does not fit
 * them, bytes and latents to what the network reads, patches of maps, pages to and from a staging
 * buffer. Counts are of integers, so their order does not matter; everything else moves or rounds
 * single numbers. Results have the bits of kernels/ref.
 */
#include "kernels/cuda/common/act.cuh"

enum {
    CODEC_THREADS = 256,
    CODEC_WARPS = CODEC_THREADS / 32,
    QUANTISE_ROUNDS = 4, /* of four values per thread */
};

static unsigned blocks_for(size_t threads)
{
    return (unsigned)((threads + CODEC_THREADS - 1) / CODEC_THREADS);
}

GPU_FN size_t thread_number(void)
{
    return (size_t)blockIdx.x * CODEC_THREADS + threadIdx.x;
}

GPU_FN bool is_active(const uint32_t *active, size_t slot)
{
    return active == NULL || active[slot] != 0;
}

/* Sum over the block, in thread 0. Called by all threads; `room` has a word per warp. */
GPU_FN uint32_t block_sum(uint32_t x, uint32_t *room)
{
    x = __reduce_add_sync(0xffffffffu, x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        room[threadIdx.x / 32] = x;
    }
    __syncthreads();
    uint32_t sum = 0;
    for (int i = 0; i < CODEC_WARPS; i++) {
        sum += room[i];
    }
    return sum;
}

/* ---- latents to bytes ---- */

GPU_FN uint32_t quantise_one(float x, struct gpu_health *t)
{
    float magnitude = fabsf(x);
    if (!(magnitude <= 3.402823466e+38f)) {
        t->not_finite++;
        return 128;
    }
    t->saturated += magnitude > NN_SATURATION;
    float clamped = x < -1.0f ? -1.0f : x;
    clamped = clamped > 1.0f ? 1.0f : clamped;
    int byte = (int)__fmaf_rn(clamped, 127.5f, 128.0f);
    return (uint32_t)(byte > 255 ? 255 : byte);
}

__global__ void __launch_bounds__(CODEC_THREADS) quantise_kernel(struct gpu_quantise q)
{
    SHARED(uint32_t[CODEC_WARPS], room);
    size_t slot = blockIdx.y;
    if (!is_active(q.active, slot)) {
        return;
    }
    const float *x = q.x + slot * q.count;
    uint8_t *out = q.arena + (size_t)q.page[slot] * q.page_bytes + q.offset;
    struct gpu_health t = {0, 0};
    for (int round = 0; round < QUANTISE_ROUNDS; round++) {
        size_t at =
            (((size_t)blockIdx.x * QUANTISE_ROUNDS + round) * CODEC_THREADS + threadIdx.x) * 4;
        if (at + 4 <= q.count) {
            float4 four = *(const float4 *)(x + at);
            const float values[4] = {four.x, four.y, four.z, four.w};
            uint32_t word = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                word |= quantise_one(values[i], &t) << 8 * i;
            }
            *(uint32_t *)(out + at) = word;
            continue;
        }
        for (; at < q.count; at++) {
            out[at] = (uint8_t)quantise_one(x[at], &t);
        }
    }
    uint32_t not_finite = block_sum(t.not_finite, room);
    uint32_t saturated = block_sum(t.saturated, room);
    if (threadIdx.x == 0) {
        struct gpu_health *h = (struct gpu_health *)((uint8_t *)q.health + slot * q.health_stride);
        atomicAdd(&h->not_finite, not_finite);
        atomicAdd(&h->saturated, saturated);
    }
}

extern "C" void gpu_quantise_launch(const struct gpu_quantise *q, void *stream)
{
    if (q->count > 0 && q->slots > 0) {
        dim3 grid(blocks_for((q->count + 4 * QUANTISE_ROUNDS - 1) / (4 * QUANTISE_ROUNDS)),
                  q->slots);
        LAUNCH(quantise_kernel, grid, CODEC_THREADS, 0, stream, *q);
    }
}

/* ---- what the network reads ---- */

/* A thread moves two channels of a position. */
__global__ void __launch_bounds__(CODEC_THREADS) latent_kernel(struct gpu_latent l)
{
    size_t i = thread_number();
    size_t slot = blockIdx.y;
    uint32_t pairs = l.channels / 2;
    uint32_t positions = l.rows * l.cols;
    if (i >= (size_t)l.images * positions * pairs || !is_active(l.active, slot)) {
        return;
    }
    size_t position = i / pairs;
    uint32_t channel = (uint32_t)(i % pairs) * 2;
    uint32_t image = (uint32_t)(position / positions);
    uint32_t row = (uint32_t)(position % positions) / l.cols;
    uint32_t col = (uint32_t)(position % positions) % l.cols;
    float2 x =
        *(const float2 *)(l.x + (slot * l.images * positions + position) * l.channels + channel);
    size_t at = (((slot * l.images + image) * (l.rows + 2) + row + 1) * (l.cols + 2) + col + 1) *
                    l.map_channels +
                channel;
    if (l.type == GPU_F32) {
        *(float2 *)((float *)l.map + at) = x;
    } else {
        *(uint32_t *)((uint16_t *)l.map + at) = gpu_act_pair(x.x, x.y);
    }
}

extern "C" void gpu_latent_launch(const struct gpu_latent *l, void *stream)
{
    size_t threads = (size_t)l->images * l->rows * l->cols * (l->channels / 2);
    if (threads > 0 && l->slots > 0) {
        LAUNCH(latent_kernel, dim3(blocks_for(threads), l->slots), CODEC_THREADS, 0, stream, *l);
    }
}

GPU_FN void put_byte(enum gpu_type type, void *out, size_t at, const void *table, uint32_t byte)
{
    if (type == GPU_F32) {
        ((float *)out)[at] = ((const float *)table)[byte];
    } else {
        ((uint16_t *)out)[at] = ((const uint16_t *)table)[byte];
    }
}

/* ---- patches ---- */

/* Position of a patch's line: images one after the other, patches in reading order. */
struct patch_place {
    uint32_t image, row, col;
};

GPU_FN struct patch_place patch_place_of(uint32_t token, uint32_t line, uint32_t rows,
                                         uint32_t cols, uint32_t patch)
{
    uint32_t across = cols / patch;
    uint32_t per_image = across * (rows / patch);
    struct patch_place p;
    p.image = token / per_image;
    p.row = token % per_image / across * patch + line;
    p.col = token % per_image % across * patch;
    return p;
}

/* A thread moves 16 bytes; the positions of a patch's line lie one after the other on both
 * sides. */
__global__ void __launch_bounds__(CODEC_THREADS) patches_kernel(struct gpu_patches p)
{
    size_t slot = blockIdx.y;
    uint32_t line_vectors = p.patch * p.channels * p.element_bytes / 16;
    uint32_t tokens = p.images * (p.rows / p.patch) * (p.cols / p.patch);
    size_t i = thread_number();
    if (i >= (size_t)tokens * p.patch * line_vectors || !is_active(p.active, slot)) {
        return;
    }
    uint32_t line = (uint32_t)(i / line_vectors);
    struct patch_place place =
        patch_place_of(line / p.patch, line % p.patch, p.rows, p.cols, p.patch);
    size_t position =
        ((slot * p.images + place.image) * (p.rows + 2) + place.row + 1) * (p.cols + 2) +
        place.col + 1;
    uint4 *map = (uint4 *)p.map + position * p.channels * p.element_bytes / 16 + i % line_vectors;
    uint4 *patches = (uint4 *)p.patches + slot * tokens * p.patch * line_vectors + i;
    if (p.back) {
        *map = *patches;
    } else {
        *patches = *map;
    }
}

extern "C" void gpu_patches_launch(const struct gpu_patches *p, void *stream)
{
    size_t threads = (size_t)p->images * p->rows * p->cols * p->channels * p->element_bytes / 16;
    if (threads > 0 && p->slots > 0) {
        LAUNCH(patches_kernel, dim3(blocks_for(threads), p->slots), CODEC_THREADS, 0, stream, *p);
    }
}

/* A thread makes one number; channels from p.channels on are zero. */
__global__ void __launch_bounds__(CODEC_THREADS) frame_patches_kernel(struct gpu_frame_patches p)
{
    size_t slot = blockIdx.y;
    uint32_t tokens = p.images * (p.rows / p.patch) * (p.cols / p.patch);
    size_t i = thread_number();
    size_t count = (size_t)tokens * p.patch * p.patch * p.patch_channels;
    if (i >= count || !is_active(p.active, slot)) {
        return;
    }
    uint32_t channel = (uint32_t)(i % p.patch_channels);
    size_t position = i / p.patch_channels; /* within the patches */
    uint32_t line = (uint32_t)(position / p.patch);
    struct patch_place place =
        patch_place_of(line / p.patch, line % p.patch, p.rows, p.cols, p.patch);
    size_t at = slot * count + i;
    if (channel >= p.channels) {
        if (p.type == GPU_F32) {
            ((float *)p.patches)[at] = 0.0f;
        } else {
            ((uint16_t *)p.patches)[at] = 0;
        }
        return;
    }
    const uint8_t *frame = p.arena + (size_t)p.page[slot] * p.page_bytes + p.offset;
    size_t from =
        ((size_t)place.image * p.rows + place.row) * p.cols + place.col + position % p.patch;
    put_byte(p.type, p.patches, at, p.table, frame[from * p.channels + channel]);
}

extern "C" void gpu_frame_patches_launch(const struct gpu_frame_patches *p, void *stream)
{
    size_t threads = (size_t)p->images * p->rows * p->cols * p->patch_channels;
    if (threads > 0 && p->slots > 0) {
        LAUNCH(frame_patches_kernel, dim3(blocks_for(threads), p->slots), CODEC_THREADS, 0, stream,
               *p);
    }
}

/* ---- pages ---- */

__global__ void __launch_bounds__(CODEC_THREADS) page_move_kernel(const struct gpu_page_move m)
{
    size_t i = thread_number();
    size_t vectors = m.bytes / 16;
    if (i >= vectors || m.page[blockIdx.y] < 0) {
        return;
    }
    uint4 *page = (uint4 *)(m.arena + (size_t)m.page[blockIdx.y] * m.page_bytes + m.offset) + i;
    uint4 *staging = (uint4 *)m.staging + blockIdx.y * vectors + i;
    if (m.back) {
        *page = *staging;
    } else {
        *staging = *page;
    }
}

extern "C" void gpu_page_move_launch(const struct gpu_page_move *m, void *stream)
{
    if (m->count > 0 && m->bytes > 0) {
        LAUNCH(page_move_kernel, dim3(blocks_for(m->bytes / 16), m->count), CODEC_THREADS, 0,
               stream, *m);
    }
}
