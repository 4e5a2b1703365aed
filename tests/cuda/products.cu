/*
 * Parts of a module of tests that chooses products without a clock: the arithmetic of the
 * made-up cuBLASLt (cublaslt/cublaslt.c), by our kernel, and times by which the library is the
 * faster, or our large tiles are.
 */
#include "kernels/cuda/module/module.cuh"
#include "tests/cuda/cublaslt/double.h"

#include <stdlib.h>

extern "C" __attribute__((visibility("default"))) void products_compute(
    const struct cublaslt_product *p)
{
    struct gpu_gemm g = {};
    g.type = p->e4m3 ? GPU_E4M3 : GPU_BF16;
    g.epilogue = p->out_bf16 ? NN_STORE_ACT : NN_STORE;
    g.items = 1;
    g.rows = p->columns;
    g.n = p->rows;
    g.k = p->k;
    g.a = p->b;
    g.lda = p->b_stride;
    g.b = p->a;
    g.a_scale = p->b_scale;
    g.b_scale = p->a_scale;
    g.c = p->out_bf16 ? NULL : (float *)p->d;
    g.out = p->out_bf16 ? p->d : NULL;
    g.ldc = p->d_stride;
    gpu_gemm_launch(&g, p->stream);
}

extern "C" double module_measured(void *context, const struct gpu_gemm *g,
                                  const struct gemm_tuner_choice *choice, double ms)
{
    const bool library = getenv("PRODUCTS_OWN") == NULL;
    (void)context;
    (void)g;
    (void)ms;
    return choice->way == GEMM_TUNER_LIBRARY ? (library ? 1.0 : 9.0)
           : choice->tile == GPU_TILE_LARGE  ? 2.0
                                             : 5.0;
}
