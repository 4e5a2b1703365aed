/*
 * Planted mistakes around products of a warpgroup; see planted.h. One kernel, 64 x 128 sums of
 * sixteen ones, less what they are to lack, so that 1 is left in each.
 */
#include "tests/simt/planted.h"

#include "kernels/cuda/common/gpu.h"

#include <string.h>

enum { THREADS = 128, LEFT_BYTES = 64 * 128, RIGHT_BYTES = 128 * 128 };
enum { SHARED_BYTES = 1024 + LEFT_BYTES + RIGHT_BYTES };

enum slip {
    NONE,
    FROM_REGISTERS,
    FROM_COPIES,
    TWO_GROUPS,
    /* mistakes from here on */
    READS_EARLY,
    WRITES_EARLY,
    WEIGHTS_EARLY,
    WAITS_FOR_OTHERS,
    NO_PROXY_FENCE,
    PROXY_FENCE_LATE,
    COPY_FENCED_EARLY,
    COPY_NOT_WAITED,
    NO_BARRIER,
    OVERWRITES,
    COPIES_OVER,
    REUSES,
    BEYOND,
    MISALIGNED,
    STRIDE_MISALIGNED,
    NO_SWIZZLE,
    NO_FENCE,
    TOUCHED_AFTER_FENCE,
    HALF,
    OTHER_TILES,
    OTHER_PLACES,
    NO_WAIT,
};

#define ONE_PAIR 0x3F803F80u /* bf16 */

/* Rows of ones, or of 0, 1, 0, 1 .. by copies. */
template <enum slip slip> GPU_FN void fill(uint8_t *left, uint8_t *right, const float *in)
{
    const bool copies = slip == FROM_COPIES || slip == COPY_FENCED_EARLY || slip == COPY_NOT_WAITED;
    for (uint32_t piece = 0; piece < 8; piece++) {
        uint32_t at = wgmma_place(threadIdx.x, piece);
        if (copies) {
            gpu_copy_async(right + at, in + 4 * threadIdx.x % 64, true);
        } else {
            *(uint4 *)(right + at) = make_uint4(ONE_PAIR, ONE_PAIR, ONE_PAIR, ONE_PAIR);
        }
        if (threadIdx.x < 64) {
            *(uint4 *)(left + at) = make_uint4(ONE_PAIR, ONE_PAIR, ONE_PAIR, ONE_PAIR);
        }
    }
    gpu_copy_commit();
    if (slip == COPY_FENCED_EARLY) {
        gpu_proxy_fence();
    }
    if (slip != COPY_NOT_WAITED) {
        gpu_copy_wait<0>();
    }
    if (slip != NO_PROXY_FENCE && slip != PROXY_FENCE_LATE && slip != COPY_FENCED_EARLY) {
        gpu_proxy_fence();
    }
    if (slip != NO_BARRIER) {
        __syncthreads();
    }
    if (slip == PROXY_FENCE_LATE) {
        gpu_proxy_fence();
    }
}

template <enum slip slip> __global__ void matmul_kernel(float *out, const float *in)
{
    SHARED_DYNAMIC(uint8_t, room);
    uint8_t *left = room + (1024 - gpu_shared_address(room) % 1024) % 1024;
    uint8_t *right = left + LEFT_BYTES;
    float sums[64];
    float others[64];
    uint32_t weights[4] = {ONE_PAIR, ONE_PAIR, ONE_PAIR, ONE_PAIR};
    fill<slip>(left, right, in);
    for (int i = 0; i < 64; i++) {
        sums[i] = slip == FROM_COPIES ? -7.0f : -15.0f;
        others[i] = 0.0f;
    }
    float early = 0.0f;
    uint64_t a = gpu_wgmma_tile(left + (slip == MISALIGNED ? 128 : 0), 16, 1024);
    uint64_t b = gpu_wgmma_tile(right + (slip == BEYOND ? 8192 : 0), 16,
                                slip == STRIDE_MISALIGNED ? 512 : 1024);
    b = slip == NO_SWIZZLE ? b & ~(1ull << 62) : b;
    b = slip == OTHER_TILES && threadIdx.x == 7 ? b ^ 64 : b;
    if (slip == HALF && threadIdx.x >= 64) {
        return;
    }
    if (slip != NO_FENCE) {
        gpu_wgmma_fence();
    }
    if (slip == FROM_REGISTERS || slip == WEIGHTS_EARLY) { /* 16 rows of k, 64 n each */
        gpu_wgmma_values<true>(sums, weights, gpu_wgmma_tile(right, 2048, 1024));
    } else if (slip == OTHER_PLACES && threadIdx.x >= 96) {
        gpu_wgmma<true>(sums, a, b);
    } else {
        gpu_wgmma<true>(sums, a, b);
    }
    gpu_wgmma_commit();
    if (slip == TWO_GROUPS || slip == WAITS_FOR_OTHERS) {
        gpu_wgmma<false>(others, a, b);
        gpu_wgmma_commit();
        gpu_wgmma_wait<1>();
        early = slip == WAITS_FOR_OTHERS ? others[9] : sums[3] - 1.0f;
    }
    if (slip == READS_EARLY) {
        early = sums[3];
    } else if (slip == WRITES_EARLY) {
        sums[3] = 1.0f;
    } else if (slip == WEIGHTS_EARLY) {
        weights[1] = 0;
    } else if (slip == OVERWRITES && threadIdx.x == 5) {
        *(volatile uint32_t *)(right + 64) = ONE_PAIR; /* a piece that is read: 4 of row 0 */
        *(volatile uint32_t *)(right + 16) = ONE_PAIR;
    } else if (slip == COPIES_OVER && threadIdx.x == 5) {
        gpu_copy_async(right, in, true);
    }
    if (slip != NO_WAIT) {
        gpu_wgmma_wait<0>();
    }
    if (slip == COPIES_OVER) {
        gpu_copy_commit();
        gpu_copy_wait<0>();
    }
    if (slip == TOUCHED_AFTER_FENCE) {
        gpu_wgmma_fence();
        sums[threadIdx.x % 64] -= 16.0f;
        gpu_wgmma<true>(sums, a, b);
        gpu_wgmma_commit();
        gpu_wgmma_wait<0>();
    }
    if (slip == REUSES && threadIdx.x == 5) {
        *(volatile uint32_t *)right = 0;
    }
    /* Held in memory by their address, as all that products use. */
    float x = slip == NO_WAIT ? 1.0f : sums[threadIdx.x % 64];
    out[blockIdx.x * THREADS + threadIdx.x] = x + early + 0.0f * (float)weights[2];
}

static const struct {
    const char *name;
    void (*kernel)(float *, const float *);
} cases[] = {
    {"wgmma", matmul_kernel<NONE>},
    {"wgmma from registers", matmul_kernel<FROM_REGISTERS>},
    {"wgmma of copies", matmul_kernel<FROM_COPIES>},
    {"wgmma in two groups", matmul_kernel<TWO_GROUPS>},
    {"wgmma, sums read early", matmul_kernel<READS_EARLY>},
    {"wgmma, sums written early", matmul_kernel<WRITES_EARLY>},
    {"wgmma, operands written early", matmul_kernel<WEIGHTS_EARLY>},
    {"wgmma, another group waited for", matmul_kernel<WAITS_FOR_OTHERS>},
    {"wgmma without proxy fence", matmul_kernel<NO_PROXY_FENCE>},
    {"wgmma, proxy fence behind the barrier", matmul_kernel<PROXY_FENCE_LATE>},
    {"wgmma, proxy fence before the copies", matmul_kernel<COPY_FENCED_EARLY>},
    {"wgmma, copies not waited for", matmul_kernel<COPY_NOT_WAITED>},
    {"wgmma without barrier", matmul_kernel<NO_BARRIER>},
    {"wgmma, tile overwritten", matmul_kernel<OVERWRITES>},
    {"wgmma, tile copied over", matmul_kernel<COPIES_OVER>},
    {"wgmma, tile used again without barrier", matmul_kernel<REUSES>},
    {"wgmma beyond shared memory", matmul_kernel<BEYOND>},
    {"wgmma of a misaligned tile", matmul_kernel<MISALIGNED>},
    {"wgmma of a misaligned stride", matmul_kernel<STRIDE_MISALIGNED>},
    {"wgmma without swizzle", matmul_kernel<NO_SWIZZLE>},
    {"wgmma without fence", matmul_kernel<NO_FENCE>},
    {"wgmma, sums touched behind the fence", matmul_kernel<TOUCHED_AFTER_FENCE>},
    {"wgmma of half a warpgroup", matmul_kernel<HALF>},
    {"wgmma of other tiles", matmul_kernel<OTHER_TILES>},
    {"wgmma in two places", matmul_kernel<OTHER_PLACES>},
    {"wgmma without wait", matmul_kernel<NO_WAIT>},
};

extern "C" bool planted_wgmma(const char *name, float *out, const float *in, void *stream)
{
    for (const auto &c : cases) {
        if (strcmp(name, c.name) == 0) {
            LAUNCH(c.kernel, 2, THREADS, SHARED_BYTES, stream, out, in);
            return true;
        }
    }
    return false;
}
