/*
 * Full-scale model: memory, random weights and running. See scale.h.
 */
#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/scale/scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct scale : trunk {
    struct scale_options options;
    struct trunk_op *ops;
    uint32_t op_count;
    uint8_t *weight_memory, *workspace;
};

static int lost(struct device_text *why, const char *what, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "%s: %s", what, gpu_error_text(error));
    return error == cudaErrorMemoryAllocation ? DEVICE_FAULT_MEMORY : DEVICE_FAULT_LOST;
}

/* ---- random weights ---- */

enum { THREADS = 256 };

/* out[i] = centre + spread u, u uniform in [-1, 1) and a function of seed and first + i. */
static __global__ void __launch_bounds__(THREADS)
    fill_kernel(enum gpu_type type, void *out, uint64_t count, uint64_t first, uint64_t seed,
                float centre, float spread)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    uint64_t z =
        seed + (first + i + 1) * 0x9E3779B97F4A7C15u; /* splitmix64 (Steele et al., 2014) */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    float u = (float)(int32_t)((z ^ z >> 31) >> 32) * 0x1p-31f;
    float x = fmaf(u, spread, centre);
    if (type == GPU_F32) {
        static_cast<float *>(out)[i] = x;
    } else if (type == GPU_BF16) {
        static_cast<uint16_t *>(out)[i] = gpu_act_bf16(x);
    } else {
        static_cast<uint8_t *>(out)[i] = gpu_e4m3_from_float(x);
    }
}

struct filler {
    uint64_t seed;
    uint64_t number; /* of the array: each has its own stream */

    void fill(enum gpu_type type, void *out, uint64_t count, float centre, float spread,
              uint64_t first = 0)
    {
        uint64_t stream_seed = seed * 0xD1342543DE82EF95u + ++number * 0xDA942042E4DD58B5u;
        LAUNCH(fill_kernel, (unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, NULL, type,
               out, count, first, stream_seed, centre, spread);
    }

    /* Outputs of about the size of the inputs. */
    void matmul(const struct trunk_matmul &p)
    {
        float size = sqrtf(3.0f / (float)p.k);
        bool fp8 = p.type == GPU_E4M3;
        fill(p.type, p.w, (uint64_t)p.n * p.k, 0.0f, fp8 ? 448.0f : size);
        if (fp8) {
            fill(GPU_F32, p.scale, p.n, size / 448.0f, 0.25f * size / 448.0f);
        }
    }
};

extern "C" void scale_fill(enum gpu_type type, void *out, uint64_t count, uint64_t seed)
{
    struct filler f = {seed, 0};
    f.fill(type, out, count, 0.0f, type == GPU_E4M3 ? 448.0f : 1.0f);
}

static void fill_weights(struct scale *s)
{
    const struct trunk_config &c = s->config;
    const struct trunk_weights &w = s->weights;
    const uint32_t d = c.width;
    struct filler f = {s->options.seed, 0};
    const struct trunk_matmul *outer[] = {&w.time1, &w.time2,   &w.ada,   &w.final,
                                          &w.embed, &w.unembed, &w.memory};
    for (const struct trunk_matmul *p : outer) {
        f.matmul(*p);
    }
    f.fill(GPU_F32, w.table, (uint64_t)c.layers * 6 * d, 0.0f, 0.5f);
    f.fill(GPU_F32, w.pos, (uint64_t)s->tokens * d, 0.0f, 1.0f, (uint64_t)s->rank * s->tokens * d);
    f.fill(GPU_BF16, w.features, (uint64_t)c.steps * c.features, 0.0f, 1.0f);
    for (uint32_t layer = 0; layer < c.layers; layer++) {
        const struct trunk_block &b = w.block[layer];
        const struct trunk_matmul *matmuls[] = {&b.qkv, &b.o, &b.tq, &b.to, &b.fc1, &b.fc2, &b.kv};
        for (const struct trunk_matmul *p : matmuls) {
            f.matmul(*p);
        }
        f.fill(GPU_F32, b.norm_weight, d, 1.0f, 0.2f);
        f.fill(GPU_F32, b.norm_bias, d, 0.0f, 0.2f);
        f.fill(GPU_F32, b.bias, (uint64_t)c.heads * c.window, 0.0f, 1.0f);
    }
}

/* Angles of a token: its number times frequencies from 1 down to 1/10000. */
static int fill_rotary(struct scale *s, struct device_text *why)
{
    const uint32_t pairs = s->config.head_dim / 2;
    const size_t count = (size_t)s->all_tokens * pairs;
    float *angles = static_cast<float *>(malloc(2 * count * sizeof(float)));
    if (angles == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for the angles of %u tokens",
                 s->all_tokens);
        return DEVICE_FAULT_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        double angle = (double)(i / pairs) * pow(1e-4, (double)(i % pairs) / pairs);
        angles[i] = (float)cos(angle);
        angles[count + i] = (float)sin(angle);
    }
    cudaError_t error =
        cudaMemcpy(s->weights.cosine, angles, count * sizeof(float), cudaMemcpyHostToDevice);
    if (error == cudaSuccess) {
        error = cudaMemcpy(s->weights.sine, angles + count, count * sizeof(float),
                           cudaMemcpyHostToDevice);
    }
    free(angles);
    return error == cudaSuccess ? DEVICE_OK : lost(why, "angles of the tokens", error);
}

/* ---- life cycle ---- */

/* Reason why the kernels here cannot run a configuration, or NULL. */
static const char *wrong_of(const struct trunk_config *c, const struct scale_options *options)
{
    if (c->patch != 0) {
        return "a model with a patch is run by its own module";
    }
    if (options->page_count < c->window + 1) {
        return "there are not as many pages as the window has, and one more";
    }
    return c->hidden > 12288 ? "hidden is over 12,288" : NULL;
}

static int prepare(struct scale *s, const struct trunk_config *config,
                   const struct scale_options *options, struct device_text *why)
{
    const struct all_to_all *ranks = &options->all_to_all;
    const char *wrong = wrong_of(config, options);
    if (wrong != NULL) {
        snprintf(why->text, sizeof why->text, "configuration %s: %s", config->name, wrong);
        return DEVICE_FAULT_INPUT;
    }
    int fault = trunk_prepare(config, ranks->rank, ranks->ranks, s, why);
    s->options = *options;
    s->wgmma = options->wgmma;
    return fault;
}

static void list_op(void *context, const struct trunk_op *op)
{
    auto *s = static_cast<struct scale *>(context);
    s->ops[s->op_count++] = *op;
}

static int allocate(struct scale *s, struct device_text *why)
{
    const size_t arena_bytes = s->page.page_bytes * s->options.page_count;
    cudaError_t error = cudaMalloc(&s->weight_memory, s->weight_bytes);
    if (error == cudaSuccess) {
        error = cudaMalloc(&s->workspace, s->workspace_bytes);
    }
    if (error == cudaSuccess) {
        error = cudaMalloc(&s->page.arena, arena_bytes);
    }
    if (error != cudaSuccess) {
        snprintf(why->text, sizeof why->text,
                 "%zu MB of weights, %zu of workspace, %zu of %u pages: %s", s->weight_bytes >> 20,
                 s->workspace_bytes >> 20, arena_bytes >> 20, s->options.page_count,
                 gpu_error_text(error));
        return DEVICE_FAULT_MEMORY;
    }
    struct trunk_cost cost;
    trunk_count(s, &cost);
    s->ops = static_cast<struct trunk_op *>(malloc(cost.launches * sizeof *s->ops));
    if (s->ops == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for %u launches", cost.launches);
        return DEVICE_FAULT_MEMORY;
    }
    const struct trunk_sink list = {list_op, s};
    trunk_place(s, s->weight_memory, s->workspace);
    trunk_plan(s, &list);
    return DEVICE_OK;
}

static int initialise(struct scale *s, struct device_text *why)
{
    cudaError_t error = cudaMemset(s->workspace, 0, s->workspace_bytes);
    fill_weights(s);
    int fault = fill_rotary(s, why);
    if (fault != DEVICE_OK) {
        return fault;
    }
    /* All of this is on the default stream, which the caller's may ignore: not even cudaMemcpy
     * waits until the device has bytes that were pageable. */
    error = error == cudaSuccess ? cudaDeviceSynchronize() : error;
    return error == cudaSuccess ? DEVICE_OK : lost(why, "random weights", error);
}

extern "C" void scale_close(struct scale *s)
{
    if (s != NULL) {
        cudaFree(s->weight_memory);
        cudaFree(s->workspace);
        cudaFree(s->page.arena);
        free(s->ops);
        free(s);
    }
}

extern "C" int scale_open(const struct trunk_config *config, const struct scale_options *options,
                          struct scale **out, struct device_text *why)
{
    auto *s = static_cast<struct scale *>(calloc(1, sizeof(struct scale)));
    if (s == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for a model");
        return DEVICE_FAULT_MEMORY;
    }
    int fault = prepare(s, config, options, why);
    if (fault == DEVICE_OK) {
        fault = allocate(s, why);
    }
    if (fault == DEVICE_OK) {
        fault = initialise(s, why);
    }
    if (fault != DEVICE_OK) {
        scale_close(s);
        return fault;
    }
    *out = s;
    return DEVICE_OK;
}

/* ---- running ---- */

/* The inputs come as an argument, so they are copied when it is queued. One thread. */
static __global__ void begin_kernel(struct trunk_inputs *to, const struct trunk_inputs from)
{
    to->seed = from.seed;
    to->tick = from.tick;
#pragma unroll
    for (int i = 0; i < GPU_PAGES_MAX; i++) {
        to->table[i] = from.table[i];
    }
    to->write_page = from.write_page;
}

extern "C" int scale_begin(struct scale *s, const struct trunk_inputs *inputs, void *stream,
                           struct device_text *why)
{
    LAUNCH(begin_kernel, 1, 1, 0, stream, s->buffers.inputs, *inputs);
    cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess ? DEVICE_OK : lost(why, "inputs of a world step", error);
}

extern "C" int scale_op_run(struct scale *s, uint32_t index, void *stream, struct device_text *why)
{
    const struct trunk_op *op = &s->ops[index];
    switch (op->kind) {
    case TRUNK_MATMUL:
        gpu_gemm_launch(&op->matmul, stream);
        break;
    case TRUNK_ATTENTION:
        gpu_attention_launch(&op->attention, stream);
        break;
    case TRUNK_TEMPORAL:
        gpu_temporal_launch(&op->temporal, stream);
        break;
    case TRUNK_RESIDUAL:
        gpu_residual_launch(&op->residual, stream);
        break;
    case TRUNK_ACTIVATE:
        gpu_activate_launch(&op->activate, stream);
        break;
    case TRUNK_ROTATE:
        gpu_rotate_launch(&op->rotate, stream);
        break;
    case TRUNK_NORM:
        gpu_norm_launch(&op->norm, stream);
        break;
    case TRUNK_PAGE_STORE:
        gpu_page_store_launch(&op->page_store, stream);
        break;
    case TRUNK_HEADS_OUT:
        gpu_heads_out_launch(&op->heads_out, stream);
        break;
    case TRUNK_HEADS_IN:
        gpu_heads_in_launch(&op->heads_in, stream);
        break;
    case TRUNK_ALL_TO_ALL:
        return s->options.all_to_all.all_to_all(&s->options.all_to_all, op->all_to_all.send,
                                                op->all_to_all.receive, op->all_to_all.bytes_each,
                                                stream, why);
    case TRUNK_TABLE:
        gpu_table_launch(&op->table, stream);
        break;
    case TRUNK_NOISE:
        gpu_noise_launch(&op->noise, stream);
        break;
    case TRUNK_EULER:
        gpu_euler_launch(&op->euler, stream);
        break;
    case TRUNK_CONVERT:
        gpu_convert_launch(&op->convert, stream);
        break;
    case TRUNK_CONV: /* of models with a patch alone */
    case TRUNK_PATCHES:
    case TRUNK_GATHER:
    case TRUNK_KIND_COUNT:
        break;
    }
    return DEVICE_OK;
}

extern "C" int scale_step(struct scale *s, void *stream, struct device_text *why)
{
    for (uint32_t i = 0; i < s->op_count; i++) {
        int fault = scale_op_run(s, i, stream, why);
        if (fault != DEVICE_OK) {
            return fault;
        }
    }
    cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess ? DEVICE_OK : lost(why, "launches of a world step", error);
}

/* ---- looking ---- */

extern "C" uint32_t scale_op_count(const struct scale *s)
{
    return s->op_count;
}

extern "C" const struct trunk_op *scale_op_at(const struct scale *s, uint32_t index)
{
    return &s->ops[index];
}

extern "C" const struct trunk *scale_trunk(const struct scale *s)
{
    return s;
}
