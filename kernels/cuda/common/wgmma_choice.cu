/*
 * Choice of a device that computes on warpgroups what suits them. Attention and fp8 products run
 * once on small fixed inputs, by attention_wgmma.cu and gemm_wgmma.cu and by the kernels on
 * mma.sync, and only where both agree are the first taken: a GPU on which nobody tried them must
 * not give wrong numbers. Called when a session opens, never while a stream is captured.
 */
#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/matrix.h"
#include "kernels/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TOKENS = 300, /* ranges of one tile of keys and of three, neither whole */
    FIRST_TOKENS = 41,
    HEADS = 3, /* that share one of keys and values */
    DIM = 128,
    ROW = (HEADS + 2) * DIM, /* queries, keys, values */
    NUMBERS = TOKENS * ROW,
    OUTPUTS = TOKENS * HEADS * DIM,
    MATMUL_ROWS = 150, /* two tiles each way, three chunks of k, none whole */
    MATMUL_COLS = 136,
    MATMUL_K = 304,
    MATMUL_NUMBERS = (MATMUL_ROWS + MATMUL_COLS) * MATMUL_K,
    MATMUL_OUTPUTS = MATMUL_ROWS * MATMUL_COLS,
};

struct trial_host {
    uint16_t input[NUMBERS], out[2 * OUTPUTS];
    uint8_t operands[MATMUL_NUMBERS];
    float scales[MATMUL_ROWS], sums[2 * MATMUL_OUTPUTS];
};

struct trial {
    uint16_t *input, *out; /* device: [TOKENS][ROW]; two times [OUTPUTS] */
    uint8_t *operands;     /* device: e4m3, rows then channels */
    float *scales;         /* device: of ones, for either */
    float *sums;           /* device: two times [MATMUL_OUTPUTS] */
    uint32_t *there;       /* device */
    struct trial_host *host;
    bool never; /* the device, or the machine code, has no such products */
};

/* Whether this machine code has products of a warpgroup, or those of e4m3 on mma.sync. */
template <bool warpgroup> static __global__ void probe_kernel(uint32_t *there)
{
    *there = (warpgroup ? GPU_WGMMA_THERE : gpu_has_e4m3()) ? 1 : 0;
}

static bool good(cudaError_t error, const char *what, struct device_text *why)
{
    if (error != cudaSuccess) {
        snprintf(why->text, sizeof why->text, "mma.sync: %s: %s", what, gpu_error_text(error));
    }
    return error == cudaSuccess;
}

/* The next of a fixed sequence (Knuth's MMIX constants). */
static uint32_t next_word(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Queries of up to 6, so that softmax prefers some keys; keys and values up to 1; of e4m3 all
 * exponents but the largest. */
static void fill(struct trial *t)
{
    uint64_t state = 1;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        float size = i % ROW < HEADS * DIM ? 6.0f : 1.0f;
        float x = (float)(int32_t)next_word(&state) * 0x1p-31f * size;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        t->host->input[i] = (uint16_t)(bits >> 16);
    }
    for (uint32_t i = 0; i < MATMUL_NUMBERS; i++) {
        t->host->operands[i] = (uint8_t)(next_word(&state) >> 24 & 0xB7);
    }
    for (float &scale : t->host->scales) {
        scale = 1.0f;
    }
}

static float value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool prepare(struct trial *t, cudaStream_t stream, struct device_text *why)
{
    t->host = static_cast<struct trial_host *>(malloc(sizeof *t->host));
    if (t->host == NULL) {
        snprintf(why->text, sizeof why->text, "mma.sync: no host memory to try wgmma");
        return false;
    }
    fill(t);
    const cudaMemcpyKind up = cudaMemcpyHostToDevice;
    return good(cudaMalloc(&t->input, sizeof t->host->input), "memory", why) &&
           good(cudaMalloc(&t->out, sizeof t->host->out), "memory", why) &&
           good(cudaMalloc(&t->operands, sizeof t->host->operands), "memory", why) &&
           good(cudaMalloc(&t->scales, sizeof t->host->scales), "memory", why) &&
           good(cudaMalloc(&t->sums, sizeof t->host->sums), "memory", why) &&
           good(cudaMalloc(&t->there, sizeof *t->there), "memory", why) &&
           good(cudaMemcpyAsync(t->input, t->host->input, sizeof t->host->input, up, stream),
                "an input", why) &&
           good(cudaMemcpyAsync(t->operands, t->host->operands, sizeof t->host->operands, up,
                                stream),
                "an input", why) &&
           good(cudaMemcpyAsync(t->scales, t->host->scales, sizeof t->host->scales, up, stream),
                "an input", why);
}

/* The device's generation, and what was compiled for it. */
static bool capable(struct trial *t, cudaStream_t stream, struct device_text *why)
{
    cudaDeviceProp properties;
    uint32_t there = 0;
    int device = 0;
    if (!good(cudaGetDevice(&device), "the device", why) ||
        !good(cudaGetDeviceProperties(&properties, device), "the device", why)) {
        return false;
    }
    if (properties.major != 9 || properties.minor != 0) {
        snprintf(why->text, sizeof why->text,
                 "mma.sync: wgmma is of compute capability 9.0, this device has %d.%d",
                 properties.major, properties.minor);
        t->never = true;
        return false;
    }
    LAUNCH((probe_kernel<true>), 1, 1, 0, stream, t->there);
    if (!good(cudaGetLastError(), "asking for wgmma", why) ||
        !good(cudaMemcpyAsync(&there, t->there, sizeof there, cudaMemcpyDeviceToHost, stream),
              "asking for wgmma", why) ||
        !good(cudaStreamSynchronize(stream), "asking for wgmma", why)) {
        return false;
    }
    if (there == 0) {
        snprintf(why->text, sizeof why->text,
                 "mma.sync: the module was compiled without code for sm_90a");
        t->never = true;
    }
    return there != 0;
}

extern "C" int gpu_e4m3_there(uint32_t *there)
{
    uint32_t *device = NULL;
    cudaError_t error = cudaMalloc(&device, sizeof *device);
    if (error == cudaSuccess) {
        LAUNCH((probe_kernel<false>), 1, 1, 0, NULL, device);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess) {
        error = cudaMemcpy(there, device, sizeof *there, cudaMemcpyDeviceToHost);
    }
    cudaFree(device);
    return (int)error;
}

static bool run_attention(struct trial *t, cudaStream_t stream, struct device_text *why)
{
    struct gpu_attention a = {};
    a.items = 1;
    a.heads = HEADS;
    a.kv_heads = 1;
    a.head_dim = DIM;
    a.range_count = 2;
    a.range[0] = {0, FIRST_TOKENS};
    a.range[1] = {FIRST_TOKENS, TOKENS - FIRST_TOKENS};
    a.q = t->input;
    a.k = t->input + HEADS * DIM;
    a.v = t->input + (HEADS + 1) * DIM;
    a.q_row = a.kv_row = ROW;
    a.kv_tokens = TOKENS;
    a.out_row = HEADS * DIM;
    for (uint32_t way = 0; way < 2; way++) {
        a.wgmma = way;
        a.out = t->out + way * OUTPUTS;
        gpu_attention_launch(&a, (void *)stream);
    }
    return good(cudaGetLastError(), "trying attention", why) &&
           good(cudaMemcpyAsync(t->host->out, t->out, sizeof t->host->out, cudaMemcpyDeviceToHost,
                                stream),
                "trying attention", why) &&
           good(cudaStreamSynchronize(stream), "trying attention", why);
}

static bool run_matmul(struct trial *t, cudaStream_t stream, struct device_text *why)
{
    struct gpu_gemm g = {};
    g.type = GPU_E4M3;
    g.epilogue = NN_STORE;
    g.items = 1;
    g.rows = MATMUL_ROWS;
    g.n = MATMUL_COLS;
    g.ldc = MATMUL_COLS;
    g.k = MATMUL_K;
    g.lda = MATMUL_K;
    g.a = t->operands;
    g.b = t->operands + MATMUL_ROWS * MATMUL_K;
    g.a_scale = g.b_scale = t->scales;
    for (uint32_t way = 0; way < 2; way++) {
        g.wgmma = way;
        g.c = t->sums + way * MATMUL_OUTPUTS;
        gpu_gemm_launch(&g, (void *)stream);
    }
    return good(cudaGetLastError(), "trying a product", why) &&
           good(cudaMemcpyAsync(t->host->sums, t->sums, sizeof t->host->sums,
                                cudaMemcpyDeviceToHost, stream),
                "trying a product", why) &&
           good(cudaStreamSynchronize(stream), "trying a product", why);
}

/* The larger of both; a number that is none counts as infinite. */
static float larger(float largest, float apart)
{
    return apart <= largest ? largest : isfinite(apart) ? apart : INFINITY;
}

/* The largest difference of an output of attention, which are up to 1. */
static float attention_difference(const uint16_t *out)
{
    float largest = 0.0f;
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        largest = larger(largest, fabsf(value(out[i]) - value(out[OUTPUTS + i])));
    }
    return largest;
}

/* The same of a product, in units of the root of the mean square. */
static float matmul_difference(const float *sums)
{
    float largest = 0.0f;
    float square = 0.0f;
    for (uint32_t i = 0; i < MATMUL_OUTPUTS; i++) {
        largest = larger(largest, fabsf(sums[i] - sums[MATMUL_OUTPUTS + i]));
        square += sums[i] * sums[i] / MATMUL_OUTPUTS;
    }
    return largest / sqrtf(square);
}

extern "C" int gpu_wgmma_choose(float tolerance, void *stream, struct device_text *why)
{
    struct trial t = {};
    cudaStream_t own = (cudaStream_t)stream;
    const bool tried = prepare(&t, own, why) && capable(&t, own, why) &&
                       run_attention(&t, own, why) && run_matmul(&t, own, why);
    bool chosen = false;
    if (tried) {
        float attention = attention_difference(t.host->out);
        float matmul = matmul_difference(t.host->sums);
        chosen = attention <= tolerance && matmul <= tolerance;
        snprintf(why->text, sizeof why->text,
                 "%s: on fixed inputs it differs from mma.sync by %.5f in attention and %.5f in an "
                 "fp8 product, %.5f is allowed",
                 chosen ? "wgmma" : "mma.sync, for wgmma gave something else", (double)attention,
                 (double)matmul, (double)tolerance);
    }
    cudaStreamSynchronize(own); /* what an error left under way */
    cudaFree(t.input);
    cudaFree(t.out);
    cudaFree(t.operands);
    cudaFree(t.scales);
    cudaFree(t.sums);
    cudaFree(t.there);
    free(t.host);
    gpu_error_take(); /* work goes on by mma.sync */
    return chosen ? 1 : tried || t.never ? 0 : -1;
}
