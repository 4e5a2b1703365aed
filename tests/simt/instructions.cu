/*
 * One warp, or warpgroup, per instruction; see instructions.h. Fragments are put together as the
 * PTX ISA draws them, not by the emulator's own reading of it.
 */
#include "tests/simt/instructions.h"

#include "kernels/cuda/common/gpu.h"

__global__ void mma_bf16_kernel(const uint16_t *a, const uint16_t *b, float *c, int b_transposed)
{
    SHARED(uint16_t[16 * 16], tile);
    SHARED(uint16_t[16 * 8], other);
    uint32_t lane = threadIdx.x;
    for (uint32_t i = lane; i < 256; i += 32) {
        tile[i] = a[i];
    }
    for (uint32_t i = lane; i < 128; i += 32) {
        other[i] = b[i];
    }
    __syncwarp();
    uint32_t left[4];
    uint32_t right[4];
    gpu_ldmatrix_x4(left, tile + lane % 16 * 16 + lane / 16 * 8);
    if (b_transposed != 0) { /* [k][n]: rows of 8 */
        gpu_ldmatrix_x4_transposed(right, other + lane % 16 * 8);
    } else { /* [n][k]: rows of 16, two halves */
        gpu_ldmatrix_x2(right, other + lane % 8 * 16 + lane / 8 % 2 * 8);
    }
    /* Rows lane / 4 and 8 below, columns 2 (lane % 4) and the next. */
    float *at = c + lane / 4 * 8 + lane % 4 * 2;
    float sums[4] = {at[0], at[1], at[64], at[65]};
    gpu_mma_bf16(sums, left, right);
    at[0] = sums[0];
    at[1] = sums[1];
    at[64] = sums[2];
    at[65] = sums[3];
}

__global__ void mma_e4m3_kernel(const uint8_t *a, const uint8_t *b, float *c)
{
    uint32_t lane = threadIdx.x;
    const uint32_t *row = (const uint32_t *)(a + lane / 4 * 32);
    const uint32_t *below = (const uint32_t *)(a + (lane / 4 + 8) * 32);
    const uint32_t *column = (const uint32_t *)(b + lane / 4 * 32);
    uint32_t k = lane % 4;
    const uint32_t left[4] = {row[k], below[k], row[k + 4], below[k + 4]};
    const uint32_t right[2] = {column[k], column[k + 4]};
    float *at = c + lane / 4 * 8 + lane % 4 * 2;
    float sums[4] = {at[0], at[1], at[64], at[65]};
    gpu_mma_e4m3(sums, left, right);
    at[0] = sums[0];
    at[1] = sums[1];
    at[64] = sums[2];
    at[65] = sums[3];
}

enum { GROUP = 128, LEFT_BYTES = 64 * 128, RIGHT_BYTES = 128 * 128 };

/* The first multiple of 1,024 of dynamic shared memory. */
GPU_FN uint8_t *aligned(uint8_t *room)
{
    return room + (1024 - gpu_shared_address(room) % 1024) % 1024;
}

/* `rows` rows of 128 bytes, `stride` two bytes apart, to a tile. Bytes are placed as the PTX ISA's
 * figures of the 128-byte swizzle show them, 16 by 16. */
GPU_FN void fill_rows(const uint16_t *from, uint32_t rows, uint32_t stride, uint8_t *tile)
{
    for (uint32_t i = threadIdx.x; i < rows * 8; i += GROUP) {
        uint32_t row = i / 8;
        uint32_t line = i % 8;
        const uint4 piece = *(const uint4 *)(from + row * stride + line * 8);
        *(uint4 *)(tile + row * 128 + (line ^ (row & 7)) * 16) = piece;
    }
}

/* Rows 16 w + lane / 4 and 8 below; of each 8 columns 2 (lane % 4) and the next. */
GPU_FN float *own_sums(float *c, uint32_t i)
{
    uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 % 2 * 8;
    return c + row * 128 + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

template <bool e4m3> __global__ void wgmma_kernel(const uint16_t *a, const uint16_t *b, float *c)
{
    SHARED_DYNAMIC(uint8_t, room);
    uint8_t *left = aligned(room);
    uint8_t *right = left + LEFT_BYTES;
    float sums[64];
    fill_rows(a, 64, 64, left);
    fill_rows(b, 128, 64, right);
    gpu_proxy_fence();
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < 64; i++) {
        sums[i] = *own_sums(c, i);
    }
    gpu_wgmma_hold(sums);
    gpu_wgmma_fence();
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        uint64_t rows = gpu_wgmma_tile(left + k * 32, 16, 1024);
        uint64_t channels = gpu_wgmma_tile(right + k * 32, 16, 1024);
        if (e4m3) {
            gpu_wgmma_e4m3<true>(sums, rows, channels);
        } else {
            gpu_wgmma<true>(sums, rows, channels);
        }
    }
    gpu_wgmma_commit();
    gpu_wgmma_wait<0>();
    gpu_wgmma_hold(sums);
#pragma unroll
    for (uint32_t i = 0; i < 64; i++) {
        *own_sums(c, i) = sums[i];
    }
}

__global__ void wgmma_values_kernel(const uint16_t *a, const uint16_t *b, float *c)
{
    SHARED_DYNAMIC(uint8_t, room);
    uint8_t *right = aligned(room);
    float sums[64];
    uint32_t weights[4][4];
    fill_rows(b, 64, 128, right); /* columns 0 to 63, then the rest */
    fill_rows(b + 64, 64, 128, right + 64 * 128);
    gpu_proxy_fence();
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < 64; i++) {
        sums[i] = *own_sums(c, i);
    }
#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 2 * 8;
        uint32_t column = i / 4 * 16 + i / 2 % 2 * 8 + threadIdx.x % 4 * 2;
        weights[i / 4][i % 4] = *(const uint32_t *)(a + row * 64 + column);
    }
    gpu_wgmma_hold(sums);
    gpu_wgmma_fence();
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        gpu_wgmma_values<true>(sums, weights[k],
                               gpu_wgmma_tile(right + k * 16 * 128, 64 * 128, 1024));
    }
    gpu_wgmma_commit();
    gpu_wgmma_wait<0>();
    gpu_wgmma_hold(sums);
#pragma unroll
    for (uint32_t i = 0; i < 64; i++) {
        *own_sums(c, i) = sums[i];
    }
}

__global__ void shuffles_kernel(float *out)
{
    uint32_t lane = threadIdx.x;
    float x = (float)lane;
    out[lane] = __shfl_sync(0xffffffffu, x, 5);
    out[32 + lane] = __shfl_xor_sync(0xffffffffu, x, 3);
    out[64 + lane] = __shfl_up_sync(0xffffffffu, x, 2);
    out[96 + lane] = __shfl_down_sync(0xffffffffu, x, 4);
    out[128 + lane] = __shfl_xor_sync(0xffffffffu, x, 4, 8);
    out[160 + lane] = __shfl_down_sync(0xffffffffu, x, 1, 8);
    out[192 + lane] = (float)__popc(__ballot_sync(0xffffffffu, lane % 3 == 0));
    out[224 + lane] = (float)__reduce_add_sync(0xffffffffu, lane) + gpu_warp_sum(x);
}

__global__ void convert_kernel(const float *x, uint32_t count, uint8_t *bytes, float *back,
                               uint32_t *halves)
{
    uint32_t i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) {
        return;
    }
    const uint32_t next = i + 1 < count ? i + 1 : i;
    const uint16_t pair = i % 2 != 0 ? gpu_e4m3_from_floats(x[i - 1], x[i]) >> 8
                                     : gpu_e4m3_from_floats(x[i], x[next]);
    bytes[i] = (uint8_t)pair;
    halves[i] = gpu_pack_bf16(x[i], x[next]);
    if (i < 256) {
        back[i] = gpu_e4m3_to_floats((uint16_t)i).x;
        back[256 + i] = gpu_e4m3_to_floats((uint16_t)(i << 8)).y;
    }
}

extern "C" void instruction_mma_bf16(const uint16_t *a, const uint16_t *b, float *c,
                                     int b_transposed, void *stream)
{
    LAUNCH(mma_bf16_kernel, 1, 32, 0, stream, a, b, c, b_transposed);
}

extern "C" void instruction_mma_e4m3(const uint8_t *a, const uint8_t *b, float *c, void *stream)
{
    LAUNCH(mma_e4m3_kernel, 1, 32, 0, stream, a, b, c);
}

extern "C" void instruction_wgmma(const uint16_t *a, const uint16_t *b, float *c, void *stream)
{
    LAUNCH(wgmma_kernel<false>, 1, GROUP, 1024 + LEFT_BYTES + RIGHT_BYTES, stream, a, b, c);
}

extern "C" void instruction_wgmma_e4m3(const uint8_t *a, const uint8_t *b, float *c, void *stream)
{
    LAUNCH(wgmma_kernel<true>, 1, GROUP, 1024 + LEFT_BYTES + RIGHT_BYTES, stream,
           (const uint16_t *)a, (const uint16_t *)b, c); /* rows of 128 bytes */
}

extern "C" void instruction_wgmma_values(const uint16_t *a, const uint16_t *b, float *c,
                                         void *stream)
{
    LAUNCH(wgmma_values_kernel, 1, GROUP, 1024 + RIGHT_BYTES, stream, a, b, c);
}

extern "C" void instruction_shuffles(float *out, void *stream)
{
    LAUNCH(shuffles_kernel, 1, 32, 0, stream, out);
}

extern "C" void instruction_convert(const float *x, uint32_t count, uint8_t *bytes, float *back,
                                    uint32_t *halves, void *stream)
{
    LAUNCH(convert_kernel, (count + 255) / 256, 256, 0, stream, x, count, bytes, back, halves);
}
