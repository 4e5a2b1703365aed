/*
 * Which attention a device gets for what suits a warpgroup. Both kernels run once on a small fixed
 * input, and attention_wgmma.cu is taken only where they agree: a GPU on which nobody tried it must
 * not give wrong numbers. Called when a session opens, never while a stream is captured.
 */
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/matrix.h"
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
};

struct trial {
    uint16_t *input, *out; /* device: [TOKENS][ROW]; two times [OUTPUTS] */
    uint32_t *there;       /* device */
    uint16_t *host;        /* as large as both together */
};

/* Whether this machine code has products of a warpgroup. */
static __global__ void probe_kernel(uint32_t *there)
{
    *there = GPU_WGMMA_THERE;
}

static bool good(cudaError_t error, const char *what, struct device_text *why)
{
    if (error != cudaSuccess) {
        snprintf(why->text, sizeof why->text, "attention on mma.sync: %s: %s", what,
                 cudaGetErrorString(error));
    }
    return error == cudaSuccess;
}

/* Queries of up to 6, so that softmax prefers some keys; the rest up to 1. By a fixed sequence
 * (Knuth's MMIX constants). */
static void fill(uint16_t *out)
{
    uint64_t state = 1;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float size = i % ROW < HEADS * DIM ? 6.0f : 1.0f;
        float x = (float)(int32_t)(state >> 32) * 0x1p-31f * size;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        out[i] = (uint16_t)(bits >> 16);
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
    t->host = static_cast<uint16_t *>(malloc((NUMBERS + 2 * OUTPUTS) * sizeof(uint16_t)));
    if (t->host == NULL) {
        snprintf(why->text, sizeof why->text, "attention on mma.sync: no host memory to try wgmma");
        return false;
    }
    fill(t->host);
    return good(cudaMalloc(&t->input, NUMBERS * sizeof(uint16_t)), "memory", why) &&
           good(cudaMalloc(&t->out, 2 * OUTPUTS * sizeof(uint16_t)), "memory", why) &&
           good(cudaMalloc(&t->there, sizeof(uint32_t)), "memory", why) &&
           good(cudaMemcpyAsync(t->input, t->host, NUMBERS * sizeof(uint16_t),
                                cudaMemcpyHostToDevice, stream),
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
                 "attention on mma.sync: wgmma is of compute capability 9.0, this device has %d.%d",
                 properties.major, properties.minor);
        return false;
    }
    LAUNCH(probe_kernel, 1, 1, 0, stream, t->there);
    if (!good(cudaGetLastError(), "asking for wgmma", why) ||
        !good(cudaMemcpyAsync(&there, t->there, sizeof there, cudaMemcpyDeviceToHost, stream),
              "asking for wgmma", why) ||
        !good(cudaStreamSynchronize(stream), "asking for wgmma", why)) {
        return false;
    }
    if (there == 0) {
        snprintf(why->text, sizeof why->text,
                 "attention on mma.sync: the module was compiled without code for sm_90a");
    }
    return there != 0;
}

static bool run_both(struct trial *t, cudaStream_t stream, struct device_text *why)
{
    struct gpu_attention a = {};
    a.q_type = a.kv_type = GPU_BF16;
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
    return good(cudaGetLastError(), "trying wgmma", why) &&
           good(cudaMemcpyAsync(t->host, t->out, 2 * OUTPUTS * sizeof(uint16_t),
                                cudaMemcpyDeviceToHost, stream),
                "trying wgmma", why) &&
           good(cudaStreamSynchronize(stream), "trying wgmma", why);
}

/* The largest difference; a number that is none counts as infinite. */
static float difference(const uint16_t *host)
{
    float largest = 0.0f;
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        float apart = fabsf(value(host[i]) - value(host[OUTPUTS + i]));
        largest = apart <= largest ? largest : isfinite(apart) ? apart : INFINITY;
    }
    return largest;
}

extern "C" uint32_t gpu_attention_choose(float tolerance, void *stream, struct device_text *why)
{
    struct trial t = {};
    cudaStream_t own = (cudaStream_t)stream;
    bool chosen = prepare(&t, own, why) && capable(&t, own, why) && run_both(&t, own, why);
    if (chosen) {
        float apart = difference(t.host);
        chosen = apart <= tolerance;
        snprintf(
            why->text, sizeof why->text,
            "attention on %s: on a fixed input it differs from mma.sync by %.5f, %.5f is allowed",
            chosen ? "wgmma" : "mma.sync, for wgmma gave something else", (double)apart,
            (double)tolerance);
    }
    cudaStreamSynchronize(own); /* what an error left under way */
    cudaFree(t.input);
    cudaFree(t.out);
    cudaFree(t.there);
    free(t.host);
    return chosen ? 1 : 0;
}
