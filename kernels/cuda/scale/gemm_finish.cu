/*
 * Ends of products whose sums the vendor's library made: bias, epilogue and stores of
 * our own kernels (gemm_store.cuh), and their bits. A thread does two neighbours.
 */
#include "kernels/cuda/common/gemm_store.cuh"
#include "kernels/cuda/scale/gemm_tuner.h"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    finish_kernel(const struct gpu_gemm g, const float *sums)
{
    const size_t at = 2 * ((size_t)blockIdx.x * THREADS + threadIdx.x);
    const uint32_t row = (uint32_t)(at / g.n);
    if (gemm_row_wanted(g, row)) {
        const float2 pair = *reinterpret_cast<const float2 *>(sums + at);
        gemm_store_pair(g, row, (uint32_t)(at % g.n), pair.x, pair.y);
    }
}

extern "C" void gpu_gemm_finish_launch(const struct gpu_gemm *g, const float *sums, void *stream)
{
    const size_t pairs = (size_t)g->rows * g->n / 2;
    LAUNCH(finish_kernel, (unsigned)((pairs + THREADS - 1) / THREADS), THREADS, 0, stream, *g,
           sums);
}
