/*
 * Full-scale model: configurations, memory, random weights and running. See scale.h.
 */
#include "kernels/cuda/common/token_order.h"
#include "kernels/cuda/scale/scale.cuh"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Views of 45 x 80 are 720p in patches of 16 x 16 pixels, the BEV has 32 x 64. */
/* clang-format off */
static const struct scale_config configs[] = {
    {"student-3b", 3072, 28, 24, 8, 128, 9216, 64, 256, 3, 45, 80, 32, 64, 12, 4, 4, 0, 0, GPU_E4M3, 1, 0},
    {"student-3b-window", 3072, 28, 24, 8, 128, 9216, 64, 256, 3, 45, 80, 32, 64, 12, 4, 4, 8, 3, GPU_E4M3, 1, 0},
    {"toy", 64, 3, 4, 2, 32, 96, 32, 32, 2, 1, 11, 2, 5, 3, 2, 2, 0, 0, GPU_E4M3, 1, 0},
    {"toy-window", 64, 3, 4, 2, 32, 96, 32, 32, 1, 9, 9, 3, 11, 3, 1, 2, 4, 2, GPU_E4M3, 1, 0},
    {"toy-128", 64, 3, 3, 1, 128, 96, 32, 32, 2, 1, 11, 2, 5, 3, 2, 2, 0, 0, GPU_E4M3, 1, 0},
};
/* clang-format on */

extern "C" const struct scale_config *scale_config_find(const char *name)
{
    for (const struct scale_config &config : configs) {
        if (strcmp(config.name, name) == 0) {
            return &config;
        }
    }
    return NULL;
}

extern "C" uint32_t scale_reading(const struct scale_config *c, uint32_t token)
{
    const uint32_t view_tokens = c->view_rows * c->view_cols;
    const uint32_t view = token / view_tokens;
    const struct gpu_grid g = scale_grid(c, view < c->view_count ? view : c->view_count);
    uint32_t row;
    uint32_t col;
    if (g.tiled == 0) {
        return token;
    }
    token_order_place(g.rows, g.cols, token - g.first, &row, &col);
    return g.first + row * g.cols + col;
}

static int lost(struct device_text *why, const char *what, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "%s: %s", what, gpu_error_text(error));
    return error == cudaErrorMemoryAllocation ? DEVICE_FAULT_MEMORY : DEVICE_FAULT_LOST;
}

/* ---- memory ---- */

/* Places arrays one after the other from base, or only counts while base is NULL. */
struct carver {
    uint8_t *base;
    size_t used;

    template <class T> void take(T **out, size_t bytes)
    {
        *out = base != NULL ? reinterpret_cast<T *>(base + used) : NULL;
        used += (bytes + 255) / 256 * 256;
    }
};

static void place_matmul(struct carver *at, struct scale_matmul *p, enum gpu_type type, uint32_t n,
                         uint32_t k)
{
    p->n = n;
    p->k = k;
    p->type = type;
    p->scale = NULL;
    at->take(&p->w, (size_t)n * k * scale_type_bytes(type));
    if (type == GPU_E4M3) {
        at->take(&p->scale, n * sizeof(float));
    }
}

static size_t place_weights(struct scale *s, uint8_t *base)
{
    const struct scale_config &c = s->config;
    struct scale_weights &w = s->weights;
    struct carver at = {base, 0};
    const uint32_t d = c.width;
    const uint32_t h = c.heads * c.head_dim;
    const uint32_t kv = c.kv_heads * c.head_dim;
    place_matmul(&at, &w.time1, GPU_BF16, d, c.features);
    place_matmul(&at, &w.time2, GPU_BF16, d, d);
    place_matmul(&at, &w.ada, GPU_BF16, 6 * d, d);
    place_matmul(&at, &w.final, GPU_BF16, 2 * d, d);
    place_matmul(&at, &w.embed, GPU_BF16, d, c.latent);
    place_matmul(&at, &w.unembed, GPU_BF16, c.latent, d);
    place_matmul(&at, &w.memory, GPU_BF16, d, c.latent);
    at.take(&w.table, (size_t)c.layers * 6 * d * sizeof(float));
    at.take(&w.pos, (size_t)s->tokens * d * sizeof(float));
    at.take(&w.features, (size_t)c.steps * c.features * sizeof(uint16_t));
    at.take(&w.cosine, (size_t)s->all_tokens * c.head_dim / 2 * sizeof(float));
    at.take(&w.sine, (size_t)s->all_tokens * c.head_dim / 2 * sizeof(float));
    at.take(&w.reading, (size_t)s->all_tokens * sizeof(uint32_t));
    for (uint32_t layer = 0; layer < c.layers; layer++) {
        struct scale_block *b = &w.block[layer];
        enum gpu_type type = scale_layer_type(&c, layer);
        place_matmul(&at, &b->qkv, type, h + 2 * kv, d);
        place_matmul(&at, &b->o, type, d, h);
        place_matmul(&at, &b->fc1, type, c.hidden, d);
        place_matmul(&at, &b->fc2, type, d, c.hidden);
        place_matmul(&at, &b->kv, type, 2 * kv, d);
        if (scale_layer_window(&c, layer)) {
            continue;
        }
        place_matmul(&at, &b->tq, type, h, d);
        place_matmul(&at, &b->to, type, d, h);
        at.take(&b->norm_weight, d * sizeof(float));
        at.take(&b->norm_bias, d * sizeof(float));
        at.take(&b->bias, (size_t)c.heads * c.window * sizeof(float));
    }
    return at.used;
}

static size_t place_buffers(struct scale *s, uint8_t *base)
{
    const struct scale_config &c = s->config;
    struct scale_buffers &b = s->buffers;
    struct carver at = {base, 0};
    const size_t t = s->tokens;
    const size_t d = c.width;
    const size_t h = (size_t)c.heads * c.head_dim;
    const size_t kv = (size_t)c.kv_heads * c.head_dim;
    const size_t widest = h > d ? h : d;
    at.take(&b.x, t * c.latent * sizeof(float));
    at.take(&b.base, t * c.latent * sizeof(float));
    at.take(&b.x_act, t * c.latent * 2);
    at.take(&b.out, t * c.latent * sizeof(float));
    at.take(&b.tokens, t * d * sizeof(float));
    at.take(&b.normed, t * d * 2);
    at.take(&b.packed, t * (c.hidden > widest ? c.hidden : widest));
    at.take(&b.normed_scale, t * sizeof(float));
    at.take(&b.packed_scale, t * sizeof(float));
    at.take(&b.qkv, t * (h + 2 * kv) * 2);
    if (s->exchanged) {
        at.take(&b.sent, t * (h + 2 * kv) * 2);
        at.take(&b.given, t * (h + 2 * kv) * 2);
        at.take(&b.mixed_all, t * h * 2);
    }
    at.take(&b.mixed, t * h * 2);
    at.take(&b.y, t * d * 2);
    at.take(&b.query, t * h * 2);
    at.take(&b.wide, t * c.hidden * 2);
    at.take(&b.kv, t * 2 * kv * 2);
    if (c.reach != 0) {
        at.take(&b.present, s->layer_bytes);
        at.take(&b.first_page, sizeof(int32_t));
    }
    at.take(&b.hidden, c.steps * d * 2);
    at.take(&b.e, c.steps * d * 2);
    at.take(&b.ada, c.steps * 6 * d * sizeof(float));
    at.take(&b.final, c.steps * 2 * d * sizeof(float));
    at.take(&b.table, c.layers * 6 * d * sizeof(float));
    at.take(&b.inputs, sizeof(struct scale_inputs));
    return at.used;
}

/* A page: of every layer k, v, then for fp8 their scales. */
static void place_page(struct scale *s)
{
    const struct scale_config &c = s->config;
    const size_t bytes = (size_t)s->tokens * c.kv_heads * c.head_dim * scale_type_bytes(c.type);
    const size_t scale_bytes = (size_t)s->tokens * c.kv_heads * sizeof(float);
    struct carver at = {NULL, 0};
    uint8_t *none;
    s->page.rows = s->tokens;
    s->page.heads = c.kv_heads;
    s->page.head_dim = c.head_dim;
    s->page.kv_row = (size_t)2 * c.kv_heads * c.head_dim;
    s->page.type = c.type;
    at.take(&none, bytes);
    s->page.v_offset = at.used;
    at.take(&none, bytes);
    s->page.k_scale_offset = at.used;
    at.take(&none, c.type == GPU_E4M3 ? scale_bytes : 0);
    s->page.v_scale_offset = at.used;
    at.take(&none, c.type == GPU_E4M3 ? scale_bytes : 0);
    s->layer_bytes = at.used;
    s->page.page_bytes = at.used * c.layers;
}

/* ---- random weights ---- */

enum { THREADS = 256 };

/* Which numbers of an array these are: rows of `width`, NULL: all from the first on. */
struct fill_rows {
    const uint32_t *rows;
    uint32_t width;
};

/* out[i] = centre + spread u, u uniform in [-1, 1) and a function of seed and i, or of what that is
 * by `which`. */
static __global__ void __launch_bounds__(THREADS)
    fill_kernel(enum gpu_type type, void *out, uint64_t count, const struct fill_rows which,
                uint64_t seed, float centre, float spread)
{
    uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) {
        return;
    }
    uint64_t number = i;
    if (which.rows != NULL) {
        number = (uint64_t)which.rows[i / which.width] * which.width + i % which.width;
    }
    uint64_t z = seed + (number + 1) * 0x9E3779B97F4A7C15u; /* splitmix64 (Steele et al., 2014) */
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
              const struct fill_rows &which = {NULL, 0})
    {
        uint64_t stream_seed = seed * 0xD1342543DE82EF95u + ++number * 0xDA942042E4DD58B5u;
        LAUNCH(fill_kernel, (unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, NULL, type,
               out, count, which, stream_seed, centre, spread);
    }

    /* Outputs of about the size of the inputs. */
    void matmul(const struct scale_matmul &p)
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
    const struct scale_config &c = s->config;
    const struct scale_weights &w = s->weights;
    const uint32_t d = c.width;
    struct filler f = {s->options.seed, 0};
    const struct scale_matmul *outer[] = {&w.time1, &w.time2,   &w.ada,   &w.final,
                                          &w.embed, &w.unembed, &w.memory};
    for (const struct scale_matmul *p : outer) {
        f.matmul(*p);
    }
    f.fill(GPU_F32, w.table, (uint64_t)c.layers * 6 * d, 0.0f, 0.5f);
    f.fill(GPU_F32, w.pos, (uint64_t)s->tokens * d, 0.0f, 1.0f,
           {w.reading + (size_t)s->rank * s->tokens, d});
    f.fill(GPU_BF16, w.features, (uint64_t)c.steps * c.features, 0.0f, 1.0f);
    for (uint32_t layer = 0; layer < c.layers; layer++) {
        const struct scale_block &b = w.block[layer];
        const struct scale_matmul *matmuls[] = {&b.qkv, &b.o, &b.tq, &b.to, &b.fc1, &b.fc2, &b.kv};
        for (const struct scale_matmul *p : matmuls) {
            if (p->w != NULL) {
                f.matmul(*p);
            }
        }
        if (!scale_layer_window(&c, layer)) {
            f.fill(GPU_F32, b.norm_weight, d, 1.0f, 0.2f);
            f.fill(GPU_F32, b.norm_bias, d, 0.0f, 0.2f);
            f.fill(GPU_F32, b.bias, (uint64_t)c.heads * c.window, 0.0f, 1.0f);
        }
    }
}

/* Which token lies where. On the default stream, where the weights follow it. */
static int fill_reading(struct scale *s, struct device_text *why)
{
    auto *reading = static_cast<uint32_t *>(malloc(s->all_tokens * sizeof(uint32_t)));
    if (reading == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for the order of %u tokens",
                 s->all_tokens);
        return DEVICE_FAULT_MEMORY;
    }
    for (uint32_t i = 0; i < s->all_tokens; i++) {
        reading[i] = scale_reading(&s->config, i);
    }
    cudaError_t error = cudaMemcpy(s->weights.reading, reading, s->all_tokens * sizeof(uint32_t),
                                   cudaMemcpyHostToDevice);
    free(reading);
    return error == cudaSuccess ? DEVICE_OK : lost(why, "order of the tokens", error);
}

/* Angles of a token: its number in reading order times frequencies from 1 down to 1/10000. */
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
        double number = scale_reading(&s->config, (uint32_t)(i / pairs));
        double angle = number * pow(1e-4, (double)(i % pairs) / pairs);
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

static int check_config(const struct scale *s, struct device_text *why)
{
    const struct scale_config &c = s->config;
    const char *wrong = NULL;
    if (c.layers == 0 || c.layers > SCALE_LAYERS_MAX) {
        wrong = "layers are not 1 to 64";
    } else if (c.steps == 0 || c.steps > SCALE_STEPS_MAX) {
        wrong = "steps are not 1 to 16";
    } else if (c.window > GPU_PAGES_MAX || s->options.page_count < c.window + 1) {
        wrong = "the window is over 16 pages, or there are not as many pages and one more";
    } else if (c.width % 32 != 0 || c.width > 6144 || c.hidden % 32 != 0 || c.hidden > 12288 ||
               c.latent % 16 != 0 || c.features % 16 != 0) {
        wrong = "width, hidden, latent or features do not suit the kernels";
    } else if (c.view_count >= GPU_RANGES_MAX || c.view_rows * c.view_cols == 0 ||
               c.bev_rows * c.bev_cols == 0) {
        wrong = "views are more than 7 or have no tokens";
    } else if (c.past > c.window) {
        wrong = "windows of space and time reach further back than the memory";
    }
    if (wrong != NULL) {
        snprintf(why->text, sizeof why->text, "configuration %s: %s", c.name, wrong);
        return DEVICE_FAULT_INPUT;
    }
    return all_to_all_check(s->ranks, s->all_tokens, c.heads, c.kv_heads, why);
}

int scale_prepare(struct scale *s, const struct scale_config *config,
                  const struct scale_options *options, struct device_text *why)
{
    s->config = *config;
    s->options = *options;
    s->exchanged = options->all_to_all.ranks > 0;
    s->ranks = s->exchanged ? options->all_to_all.ranks : 1;
    s->rank = s->exchanged ? options->all_to_all.rank : 0;
    const struct gpu_grid last = scale_grid(config, config->view_count);
    s->all_tokens = last.first + last.rows * last.cols;
    int fault = check_config(s, why);
    if (fault != DEVICE_OK) {
        return fault;
    }
    s->tokens = s->all_tokens / s->ranks;
    place_page(s);
    s->weight_bytes = place_weights(s, NULL);
    s->workspace_bytes = place_buffers(s, NULL);
    scale_plan(s);
    s->ops = static_cast<struct scale_op *>(malloc(s->op_count * sizeof *s->ops));
    if (s->ops == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for %u launches", s->op_count);
        return DEVICE_FAULT_MEMORY;
    }
    scale_plan(s);
    return DEVICE_OK;
}

static int allocate(struct scale *s, struct device_text *why)
{
    const size_t arena_bytes = s->page.page_bytes * s->options.page_count;
    cudaError_t error = cudaMalloc(&s->weight_memory, s->weight_bytes);
    if (error == cudaSuccess) {
        error = cudaMalloc(&s->workspace, s->workspace_bytes);
    }
    if (error == cudaSuccess) {
        error = cudaMalloc(&s->arena, arena_bytes);
    }
    if (error != cudaSuccess) {
        snprintf(why->text, sizeof why->text,
                 "%zu MB of weights, %zu of workspace, %zu of %u pages: %s", s->weight_bytes >> 20,
                 s->workspace_bytes >> 20, arena_bytes >> 20, s->options.page_count,
                 gpu_error_text(error));
        return DEVICE_FAULT_MEMORY;
    }
    place_weights(s, s->weight_memory);
    place_buffers(s, s->workspace);
    s->page.arena = s->arena;
    scale_plan(s);
    return DEVICE_OK;
}

static int initialise(struct scale *s, struct device_text *why)
{
    cudaError_t error = cudaMemset(s->workspace, 0, s->workspace_bytes);
    int fault = fill_reading(s, why);
    if (fault == DEVICE_OK) {
        fill_weights(s);
        fault = fill_rotary(s, why);
    }
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
        cudaFree(s->arena);
        free(s->ops);
        free(s);
    }
}

extern "C" int scale_open(const struct scale_config *config, const struct scale_options *options,
                          struct scale **out, struct device_text *why)
{
    auto *s = static_cast<struct scale *>(calloc(1, sizeof(struct scale)));
    if (s == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for a model");
        return DEVICE_FAULT_MEMORY;
    }
    int fault = scale_prepare(s, config, options, why);
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
static __global__ void begin_kernel(struct scale_inputs *to, const struct scale_inputs from)
{
    to->seed = from.seed;
    to->tick = from.tick;
#pragma unroll
    for (int i = 0; i < GPU_PAGES_MAX; i++) {
        to->table[i] = from.table[i];
    }
    to->write_page = from.write_page;
}

extern "C" int scale_begin(struct scale *s, const struct scale_inputs *inputs, void *stream,
                           struct device_text *why)
{
    LAUNCH(begin_kernel, 1, 1, 0, stream, s->buffers.inputs, *inputs);
    cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess ? DEVICE_OK : lost(why, "inputs of a world step", error);
}

extern "C" int scale_op_run(struct scale *s, uint32_t index, void *stream, struct device_text *why)
{
    const struct scale_op *op = &s->ops[index];
    switch (op->kind) {
    case SCALE_MATMUL:
        if (s->options.matmul != NULL) {
            return s->options.matmul(s->options.matmul_context, &op->matmul, stream, why);
        }
        gpu_gemm_launch(&op->matmul, stream);
        break;
    case SCALE_ATTENTION:
        gpu_attention_launch(&op->attention, stream);
        break;
    case SCALE_TEMPORAL:
        gpu_temporal_launch(&op->temporal, stream);
        break;
    case SCALE_RESIDUAL:
        gpu_residual_launch(&op->residual, stream);
        break;
    case SCALE_ACTIVATE:
        gpu_activate_launch(&op->activate, stream);
        break;
    case SCALE_ROTATE:
        gpu_rotate_launch(&op->rotate, stream);
        break;
    case SCALE_NORM:
        gpu_norm_launch(&op->norm, stream);
        break;
    case SCALE_PAGE_STORE:
        gpu_page_store_launch(&op->page_store, stream);
        break;
    case SCALE_HEADS_OUT:
        gpu_heads_out_launch(&op->heads_out, stream);
        break;
    case SCALE_HEADS_IN:
        gpu_heads_in_launch(&op->heads_in, stream);
        break;
    case SCALE_ALL_TO_ALL:
        return s->options.all_to_all.all_to_all(&s->options.all_to_all, op->all_to_all.send,
                                                op->all_to_all.receive, op->all_to_all.bytes_each,
                                                stream, why);
    case SCALE_TABLE:
        gpu_table_launch(&op->table, stream);
        break;
    case SCALE_NOISE:
        gpu_noise_launch(&op->noise, stream);
        break;
    case SCALE_EULER:
        gpu_euler_launch(&op->euler, stream);
        break;
    case SCALE_CONVERT:
        gpu_convert_launch(&op->convert, stream);
        break;
    case SCALE_KIND_COUNT:
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

extern "C" const char *scale_kind_name(enum scale_kind kind)
{
    static const char *const names[SCALE_KIND_COUNT] = {
        "product",  "attention", "temporal",   "residual",  "activate",
        "rotate",   "norm",      "page store", "heads out", "heads in",
        "exchange", "table",     "noise",      "euler",     "convert"};
    return names[kind];
}

extern "C" uint32_t scale_op_count(const struct scale *s)
{
    return s->op_count;
}

extern "C" const struct scale_op *scale_op_at(const struct scale *s, uint32_t index)
{
    return &s->ops[index];
}

extern "C" uint32_t scale_tokens(const struct scale *s)
{
    return s->tokens;
}

extern "C" const struct scale_weights *scale_weights_of(const struct scale *s)
{
    return &s->weights;
}

extern "C" const float *scale_latents(const struct scale *s)
{
    return s->buffers.x;
}

extern "C" uint8_t *scale_arena(struct scale *s)
{
    return s->arena;
}
