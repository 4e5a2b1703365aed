/*
 * Work on rows of tokens between the large products of a full-scale model, fused so that
 * each number passes through memory once: a residual with the norm that follows, activations
 * quantised for the next product, keys turned, keys and values of a frame written to its page.
 *
 * A row belongs to one block (or a warp) and is held in registers; sums and maxima run in a fixed
 * order, so a row's bits depend on that row alone.
 */
#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/matrix.h"

#define NORM_EPSILON 1e-6f
#define E4M3_MAX 448.0f

enum { WARPS = GPU_ROW_WARPS, THREADS = 32 * WARPS, VECTOR = 4, ROUND = GPU_ROW_COLUMNS };

/* x / (1 + exp(-x)), to a few units in the last place: results are rounded to 8 bits. */
GPU_FN float silu(float x)
{
    return __fdividef(x, 1.0f + gpu_exp2(-1.4426950408889634f * x));
}

GPU_FN void load4_bf16(const uint16_t *from, float x[VECTOR])
{
    uint2 pairs = *reinterpret_cast<const uint2 *>(from);
    x[0] = __uint_as_float(pairs.x << 16);
    x[1] = __uint_as_float(pairs.x & 0xFFFF0000u);
    x[2] = __uint_as_float(pairs.y << 16);
    x[3] = __uint_as_float(pairs.y & 0xFFFF0000u);
}

GPU_FN void load4(const float *from, float x[VECTOR])
{
    float4 four = *reinterpret_cast<const float4 *>(from);
    x[0] = four.x;
    x[1] = four.y;
    x[2] = four.z;
    x[3] = four.w;
}

/* Sum or maximum over the block, the same in all threads. `room` is reused from call to call. */
template <bool maximum> GPU_FN float block_reduce(float x, float *room)
{
    x = maximum ? gpu_warp_max(x) : gpu_warp_sum(x);
    __syncthreads(); /* nobody reads the previous values any more */
    if (threadIdx.x % 32 == 0) {
        room[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = room[0];
    for (int i = 1; i < WARPS; i++) {
        x = maximum ? fmaxf(x, room[i]) : x + room[i];
    }
    return x;
}

/* The step of a row or head whose largest magnitude this is: 1 where there is nothing to scale. */
GPU_FN float e4m3_step(float largest)
{
    return largest > 0.0f && largest <= 3.402823466e+38f ? largest / E4M3_MAX : 1.0f;
}

GPU_FN void store4_bf16(uint16_t *to, const float y[VECTOR])
{
    *reinterpret_cast<uint2 *>(to) =
        make_uint2(gpu_pack_bf16(y[0], y[1]), gpu_pack_bf16(y[2], y[3]));
}

GPU_FN void store4_e4m3(uint8_t *to, const float y[VECTOR], float factor)
{
    const float scaled[VECTOR] = {y[0] * factor, y[1] * factor, y[2] * factor, y[3] * factor};
    *reinterpret_cast<uint32_t *>(to) = gpu_e4m3_pack(scaled);
}

/* A row held by the block to `out`, quantised with its own scale where that is e4m3. */
template <int chunks>
GPU_FN void store_row(enum gpu_type type, void *out, float *row_scale, uint32_t row, uint32_t width,
                      const float y[chunks][VECTOR], float *room)
{
    float factor = 1.0f;
    if (type == GPU_E4M3) {
        float largest = 0.0f;
#pragma unroll
        for (int c = 0; c < chunks; c++) {
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                largest = fmaxf(largest, fabsf(y[c][i])); /* what is past the width is 0 */
            }
        }
        float step = e4m3_step(block_reduce<true>(largest, room));
        factor = 1.0f / step;
        if (threadIdx.x == 0) {
            row_scale[row] = step;
        }
    }
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        uint32_t column = c * ROUND + threadIdx.x * VECTOR;
        size_t at = (size_t)row * width + column;
        if (column < width) {
            if (type == GPU_E4M3) {
                store4_e4m3(static_cast<uint8_t *>(out) + at, y[c], factor);
            } else {
                store4_bf16(static_cast<uint16_t *>(out) + at, y[c]);
            }
        }
    }
}

/* ---- residual and norm ---- */

/* x_in + gate * y of this thread's columns; what is past the width is 0. */
template <int chunks, bool in_bf16, bool x_bf16>
GPU_FN void add_residual(const struct gpu_residual &r, uint32_t row, float x[chunks][VECTOR])
{
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        uint32_t column = c * ROUND + threadIdx.x * VECTOR;
        size_t at = (size_t)row * r.width + column;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            x[c][i] = 0.0f;
        }
        if (column < r.width) {
            float y[VECTOR];
            float gate[VECTOR] = {1.0f, 1.0f, 1.0f, 1.0f};
            if (in_bf16) {
                load4_bf16(static_cast<const uint16_t *>(r.x_in) + at, x[c]);
            } else {
                load4(static_cast<const float *>(r.x_in) + at, x[c]);
            }
            load4_bf16(static_cast<const uint16_t *>(r.y) + at, y);
            if (r.gate != NULL) {
                load4(r.gate + row / r.group_rows * r.group_stride + column, gate);
            }
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                x[c][i] = fmaf(gate[i], y[i], x[c][i]);
            }
            if (x_bf16) {
                store4_bf16(static_cast<uint16_t *>(r.x) + at, x[c]);
            } else {
                *reinterpret_cast<float4 *>(static_cast<float *>(r.x) + at) =
                    make_float4(x[c][0], x[c][1], x[c][2], x[c][3]);
            }
        }
    }
}

/* LN(x) * (one + scale) + shift in place. */
template <int chunks>
GPU_FN void normalise(const struct gpu_residual &r, uint32_t row, float x[chunks][VECTOR],
                      float *room)
{
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        sum += (x[c][0] + x[c][1]) + (x[c][2] + x[c][3]);
    }
    const float mean = block_reduce<false>(sum, room) / (float)r.width;
    float square = 0.0f;
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        bool inside = c * ROUND + threadIdx.x * VECTOR < r.width;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            x[c][i] = inside ? x[c][i] - mean : 0.0f;
            square = fmaf(x[c][i], x[c][i], square);
        }
    }
    const float variance = block_reduce<false>(square, room) / (float)r.width;
    const float inverse = 1.0f / sqrtf(variance + NORM_EPSILON);
    const size_t group = row / r.group_rows * r.group_stride;
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        uint32_t column = c * ROUND + threadIdx.x * VECTOR;
        if (column < r.width) {
            float scale[VECTOR];
            float shift[VECTOR];
            load4(r.scale + group + column, scale);
            load4(r.shift + group + column, shift);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                x[c][i] = fmaf(x[c][i] * inverse, r.one + scale[i], shift[i]);
            }
        }
    }
}

template <int chunks, bool in_bf16, bool x_bf16>
static __global__ void __launch_bounds__(THREADS) residual_kernel(const struct gpu_residual r)
{
    SHARED(float[WARPS], room);
    const uint32_t row = blockIdx.x;
    float x[chunks][VECTOR];
    add_residual<chunks, in_bf16, x_bf16>(r, row, x);
    if (r.out != NULL) {
        normalise<chunks>(r, row, x, room);
        store_row<chunks>(r.out_type, r.out, r.row_scale, row, r.width, x, room);
    }
}

template <bool in_bf16, bool x_bf16>
static void launch_residual(const struct gpu_residual *r, void *stream)
{
    switch (gpu_residual_vectors(r->width)) {
    case 1:
        LAUNCH((residual_kernel<1, in_bf16, x_bf16>), r->rows, THREADS, 0, stream, *r);
        break;
    case 3:
        LAUNCH((residual_kernel<3, in_bf16, x_bf16>), r->rows, THREADS, 0, stream, *r);
        break;
    default:
        LAUNCH((residual_kernel<6, in_bf16, x_bf16>), r->rows, THREADS, 0, stream, *r);
        break;
    }
}

extern "C" void gpu_residual_launch(const struct gpu_residual *r, void *stream)
{
    const bool in_bf16 = r->in_type == GPU_BF16;
    if (r->rows == 0) {
        return;
    }
    if (r->x_type == GPU_BF16) {
        (in_bf16 ? launch_residual<true, true> : launch_residual<false, true>)(r, stream);
    } else {
        (in_bf16 ? launch_residual<true, false> : launch_residual<false, false>)(r, stream);
    }
}

/* ---- activations for the next product ---- */

template <int chunks>
static __global__ void __launch_bounds__(THREADS, 2) activate_kernel(const struct gpu_activate a)
{
    SHARED(float[WARPS], room);
    const uint32_t row = blockIdx.x;
    float x[chunks][VECTOR];
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        uint32_t column = c * ROUND + threadIdx.x * VECTOR;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            x[c][i] = 0.0f;
        }
        if (column < a.width) {
            load4_bf16(static_cast<const uint16_t *>(a.x) + (size_t)row * a.width + column, x[c]);
        }
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            x[c][i] = a.silu != 0 ? silu(x[c][i]) : x[c][i];
        }
    }
    store_row<chunks>(a.out_type, a.out, a.row_scale, row, a.width, x, room);
}

extern "C" void gpu_activate_launch(const struct gpu_activate *a, void *stream)
{
    if (a->rows == 0) {
        return;
    }
    switch (gpu_activate_vectors(a->width)) {
    case 1:
        LAUNCH((activate_kernel<1>), a->rows, THREADS, 0, stream, *a);
        break;
    case 3:
        LAUNCH((activate_kernel<3>), a->rows, THREADS, 0, stream, *a);
        break;
    case 9:
        LAUNCH((activate_kernel<9>), a->rows, THREADS, 0, stream, *a);
        break;
    default:
        LAUNCH((activate_kernel<12>), a->rows, THREADS, 0, stream, *a);
        break;
    }
}

/* ---- heads turned ---- */

/* Eight numbers, four pairs, of a head, with their angles. */
GPU_FN void turn8(const float *cosines, const float *sines, float x[2 * VECTOR])
{
    float cosine[VECTOR];
    float sine[VECTOR];
    load4(cosines, cosine);
    load4(sines, sine);
#pragma unroll
    for (int p = 0; p < VECTOR; p++) {
        const float first = x[2 * p];
        const float second = x[2 * p + 1];
        x[2 * p] = fmaf(first, cosine[p], -(second * sine[p]));
        x[2 * p + 1] = fmaf(second, cosine[p], first * sine[p]);
    }
}

GPU_FN void load8_bf16(const uint16_t *from, float x[2 * VECTOR])
{
    const uint4 bits = *reinterpret_cast<const uint4 *>(from);
    const uint32_t word[VECTOR] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int p = 0; p < VECTOR; p++) {
        x[2 * p] = __uint_as_float(word[p] << 16);
        x[2 * p + 1] = __uint_as_float(word[p] & 0xFFFF0000u);
    }
}

GPU_FN void load8_e4m3(const uint8_t *from, float scale, float x[2 * VECTOR])
{
    gpu_e4m3_unpack(*reinterpret_cast<const uint2 *>(from), x);
#pragma unroll
    for (int i = 0; i < 2 * VECTOR; i++) {
        x[i] *= scale;
    }
}

GPU_FN void store8_bf16(uint16_t *to, const float x[2 * VECTOR])
{
    *reinterpret_cast<uint4 *>(to) =
        make_uint4(gpu_pack_bf16(x[0], x[1]), gpu_pack_bf16(x[2], x[3]), gpu_pack_bf16(x[4], x[5]),
                   gpu_pack_bf16(x[6], x[7]));
}

static __global__ void __launch_bounds__(THREADS) rotate_kernel(const struct gpu_rotate r)
{
    const uint32_t pieces = r.width / 8;
    const uint64_t number = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (number >= (uint64_t)r.rows * pieces) {
        return;
    }
    const uint32_t row = (uint32_t)(number / pieces);
    const uint32_t column = (uint32_t)(number % pieces) * 8;
    const size_t at = row * r.row + column;
    float x[2 * VECTOR];
    if (r.type == GPU_F32) {
        load4(static_cast<const float *>(r.x) + at, x);
        load4(static_cast<const float *>(r.x) + at + VECTOR, x + VECTOR);
    } else {
        load8_bf16(static_cast<const uint16_t *>(r.x) + at, x);
    }
    if (column < r.heads * r.head_dim) {
        const size_t angle = ((size_t)row * r.head_dim + column % r.head_dim) / 2;
        turn8(r.cosine + angle, r.sine + angle, x);
    }
    store8_bf16(static_cast<uint16_t *>(r.out) + at, x);
}

extern "C" void gpu_rotate_launch(const struct gpu_rotate *r, void *stream)
{
    const uint64_t pieces = (uint64_t)r->rows * r->width / 8;
    if (pieces != 0) {
        LAUNCH(rotate_kernel, (unsigned)((pieces + THREADS - 1) / THREADS), THREADS, 0, stream, *r);
    }
}

/* ---- past frames for windows ---- */

/* Grid: x over eight numbers of the rows of all tokens, y over frames, z over items. */
template <bool fp8>
static __global__ void __launch_bounds__(THREADS) gather_kernel(const struct gpu_gather g)
{
    const uint32_t width = g.heads * g.head_dim;
    const uint32_t pieces = 2 * width / 8;
    const uint32_t number = blockIdx.x * THREADS + threadIdx.x;
    if (number >= g.tokens * pieces || (g.active != NULL && g.active[blockIdx.z] == 0)) {
        return;
    }
    const uint32_t token = number / pieces;
    const uint32_t column = number % pieces * 8;
    const size_t known = (size_t)blockIdx.z * g.pages.table_stride + blockIdx.y;
    const int page = g.pages.table[known];
    const int row = page >= 0 ? g.index[known * g.tokens + token] : -1;
    float x[2 * VECTOR] = {};
    if (row >= 0) {
        const bool value = column >= width;
        const uint8_t *base = g.pages.arena + (size_t)page * g.pages.page_bytes;
        const uint8_t *numbers = base + (value ? g.pages.v_offset : g.pages.k_offset);
        const size_t at = (size_t)row * width + (value ? column - width : column);
        if (fp8) {
            const size_t scales = value ? g.pages.v_scale_offset : g.pages.k_scale_offset;
            load8_e4m3(numbers + at,
                       reinterpret_cast<const float *>(base + scales)[at / g.head_dim], x);
        } else {
            load8_bf16(reinterpret_cast<const uint16_t *>(numbers) + at, x);
        }
        if (!value) {
            const size_t angle =
                (((size_t)blockIdx.z * g.tokens + token) * g.head_dim + column % g.head_dim) / 2;
            turn8(g.cosine + angle, g.sine + angle, x);
        }
    }
    const size_t frame = (size_t)blockIdx.z * g.page_count + blockIdx.y;
    store8_bf16(static_cast<uint16_t *>(g.out) + (frame * g.tokens + token) * 2 * width + column,
                x);
}

extern "C" void gpu_gather_launch(const struct gpu_gather *g, void *stream)
{
    const uint32_t pieces = g->tokens * 2 * g->heads * g->head_dim / 8;
    if (pieces != 0 && g->page_count != 0 && g->items != 0) {
        const dim3 grid((pieces + THREADS - 1) / THREADS, g->page_count, g->items);
        if (g->type == GPU_E4M3) {
            LAUNCH(gather_kernel<true>, grid, THREADS, 0, stream, *g);
        } else {
            LAUNCH(gather_kernel<false>, grid, THREADS, 0, stream, *g);
        }
    }
}

/* ---- a frame's keys and values to its page ---- */

/* A warp takes one head of one token, of keys (blockIdx.y 0) or values (1). */
static __global__ void __launch_bounds__(THREADS) page_store_kernel(const struct gpu_page_store p)
{
    const uint32_t number = blockIdx.x * WARPS + threadIdx.x / 32;
    const uint32_t lane = threadIdx.x % 32;
    if (number >= p.rows * p.heads || *p.page < 0) {
        return;
    }
    const uint32_t row = number / p.heads;
    const uint32_t head = number % p.heads;
    const bool value = blockIdx.y != 0;
    uint8_t *base = p.arena + (size_t)*p.page * p.page_bytes;
    const uint16_t *from = static_cast<const uint16_t *>(p.kv) + row * p.kv_row +
                           (value ? p.heads * p.head_dim : 0) + head * p.head_dim;
    const size_t to = (size_t)number * p.head_dim;
    const uint32_t column = lane * VECTOR; /* head_dim is at most 128 */
    float x[VECTOR] = {};
    if (column < p.head_dim) {
        load4_bf16(from + column, x);
    }
    if (p.type == GPU_BF16) {
        uint16_t *out = reinterpret_cast<uint16_t *>(base + (value ? p.v_offset : p.k_offset));
        if (column < p.head_dim) {
            store4_bf16(out + to + column, x);
        }
        return;
    }
    float largest = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
    float step = e4m3_step(gpu_warp_max(largest));
    if (column < p.head_dim) {
        store4_e4m3(base + (value ? p.v_offset : p.k_offset) + to + column, x, 1.0f / step);
    }
    if (lane == 0) {
        reinterpret_cast<float *>(base + (value ? p.v_scale_offset : p.k_scale_offset))[number] =
            step;
    }
}

extern "C" void gpu_page_store_launch(const struct gpu_page_store *p, void *stream)
{
    const uint32_t warps = p->rows * p->heads;
    if (warps != 0) {
        LAUNCH(page_store_kernel, dim3((warps + WARPS - 1) / WARPS, 2), THREADS, 0, stream, *p);
    }
}
