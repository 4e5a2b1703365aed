/*
 * Layer norm with modulation, and the same with a quantised result for FP8 products.
 *
 * A row is held in registers by one warp (up to 1,024 columns) or by a block of eight warps, read
 * once, 16 or 8 bytes at a time. Sums: each thread in column order, then butterflies, then warps in
 * order; so a row's bits depend on its width alone.
 */
#include "kernels/cuda/common/act.cuh"

#define E4M3_MAX 448.0f

enum { NORM_THREADS = 256, NORM_WARPS = NORM_THREADS / 32 };

/* A row's sum or maximum, the same in all of its threads. `room` has a float per warp. */
template <int row_warps> GPU_FN float row_sum(float x, float *room)
{
    x = gpu_warp_sum(x);
    if (row_warps == 1) {
        return x;
    }
    __syncthreads(); /* nobody reads the previous values any more */
    if (threadIdx.x % 32 == 0) {
        room[threadIdx.x / 32] = x;
    }
    __syncthreads();
    float sum = room[0];
    for (int i = 1; i < row_warps; i++) {
        sum += room[i];
    }
    return sum;
}

template <int row_warps> GPU_FN float row_max(float x, float *room)
{
    x = gpu_warp_max(x);
    if (row_warps == 1) {
        return x;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        room[threadIdx.x / 32] = x;
    }
    __syncthreads();
    float largest = room[0];
    for (int i = 1; i < row_warps; i++) {
        largest = fmaxf(largest, room[i]);
    }
    return largest;
}

/* Four results; a NaN becomes 0x7f in e4m3 and makes no scale (fmaxf ignores it). */
GPU_FN void store4(const struct gpu_norm &n, size_t at, const float y[4], float factor)
{
    if (n.out_type != GPU_E4M3) {
        gpu_act_put4(n.out_type, n.out, at, make_float4(y[0], y[1], y[2], y[3]));
    } else {
        const float scaled[4] = {y[0] * factor, y[1] * factor, y[2] * factor, y[3] * factor};
        *(uint32_t *)((uint8_t *)n.out + at) = gpu_e4m3_pack(scaled);
    }
}

/* row_warps: 1, or all of the block's. chunks: vectors of four that a thread holds. */
template <int row_warps, int chunks>
__global__ void __launch_bounds__(NORM_THREADS, 1) norm_kernel(struct gpu_norm n, float per_column)
{
    SHARED(float[NORM_WARPS], room);
    const unsigned row_threads = row_warps * 32;
    const unsigned thread = threadIdx.x % row_threads;
    const size_t row =
        (size_t)blockIdx.x * (NORM_THREADS / row_threads) + threadIdx.x / row_threads;
    const bool there = row < n.rows; /* of a warp, or of the whole block: all lanes alike */
    float v[chunks][4];
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        unsigned column = (c * row_threads + thread) * 4;
        float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (there && column < n.width) {
            four = gpu_act_get4(n.x_type, n.x, row * n.width + column);
        }
        v[c][0] = four.x;
        v[c][1] = four.y;
        v[c][2] = four.z;
        v[c][3] = four.w;
        sum += (four.x + four.y) + (four.z + four.w);
    }
    const float mean = row_sum<row_warps>(sum, room) * per_column;
    float square = 0.0f;
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        unsigned column = (c * row_threads + thread) * 4;
        for (int i = 0; i < 4; i++) {
            v[c][i] -= mean;
            square = column < n.width ? __fmaf_rn(v[c][i], v[c][i], square) : square;
        }
    }
    const float variance = row_sum<row_warps>(square, room) * per_column;
    const float inverse = rsqrtf(variance + NN_NORM_EPSILON);
    const size_t group = n.group_rows > 0 ? row / n.group_rows : 0;
    float largest = 0.0f;
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        unsigned column = (c * row_threads + thread) * 4;
        bool inside = there && column < n.width;
        float4 scale = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float4 shift = scale;
        if (inside && n.scale != NULL) {
            scale = *(const float4 *)(n.scale + group * n.group_stride + column);
            shift = *(const float4 *)(n.shift + group * n.group_stride + column);
        }
        const float scales[4] = {scale.x, scale.y, scale.z, scale.w};
        const float shifts[4] = {shift.x, shift.y, shift.z, shift.w};
        for (int i = 0; i < 4; i++) {
            float y = v[c][i] * inverse;
            y = n.scale != NULL ? __fmaf_rn(y, n.one + scales[i], shifts[i]) : y;
            v[c][i] = n.rounded != 0 ? gpu_bf16_to_float(gpu_act_bf16(y)) : y;
            largest = inside ? fmaxf(largest, fabsf(v[c][i])) : largest;
        }
    }
    float factor = 1.0f;
    if (n.out_type == GPU_E4M3) {
        largest = row_max<row_warps>(largest, room);
        float step = largest > 0.0f && largest <= 3.402823466e+38f ? largest / E4M3_MAX : 1.0f;
        factor = 1.0f / step;
        if (there && thread == 0) {
            n.row_scale[row] = step;
        }
    }
#pragma unroll
    for (int c = 0; c < chunks; c++) {
        unsigned column = (c * row_threads + thread) * 4;
        if (there && column < n.width) {
            store4(n, row * n.width + column, v[c], factor);
        }
    }
}

extern "C" void gpu_norm_launch(const struct gpu_norm *norm, void *stream)
{
    unsigned rows = norm->rows;
    float per_column = 1.0f / (float)norm->width;
    unsigned by_warp = (rows + NORM_WARPS - 1) / NORM_WARPS;
    if (rows == 0) {
        return;
    }
    if (norm->width <= 256) {
        LAUNCH((norm_kernel<1, 2>), by_warp, NORM_THREADS, 0, stream, *norm, per_column);
    } else if (norm->width <= 512) {
        LAUNCH((norm_kernel<1, 4>), by_warp, NORM_THREADS, 0, stream, *norm, per_column);
    } else if (norm->width <= 1024) {
        LAUNCH((norm_kernel<1, 8>), by_warp, NORM_THREADS, 0, stream, *norm, per_column);
    } else if (norm->width <= 4096) {
        LAUNCH((norm_kernel<NORM_WARPS, 4>), rows, NORM_THREADS, 0, stream, *norm, per_column);
    } else {
        LAUNCH((norm_kernel<NORM_WARPS, 8>), rows, NORM_THREADS, 0, stream, *norm, per_column);
    }
}
