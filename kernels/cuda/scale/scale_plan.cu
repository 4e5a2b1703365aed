/*
 * The launches of a full-scale model's world step, in order: the formulas of scale.h as a list.
 */
#include "kernels/cuda/scale/scale.cuh"

static struct scale_op *push(struct scale *s, enum scale_kind kind)
{
    struct scale_op *op = s->ops != NULL ? &s->ops[s->op_count] : &s->spare;
    s->op_count++;
    *op = {};
    op->kind = kind;
    return op;
}

/* out = a w, bf16 or float. */
static void push_matmul(struct scale *s, const struct scale_matmul &w, uint32_t rows, const void *a,
                        const float *a_scale, void *out, bool to_float)
{
    struct gpu_gemm &g = push(s, SCALE_MATMUL)->matmul;
    g.type = w.type;
    g.epilogue = to_float ? NN_STORE : NN_STORE_ACT;
    g.items = 1;
    g.rows = rows;
    g.n = w.n;
    g.k = w.k;
    g.a = a;
    g.lda = w.k;
    g.b = w.w;
    g.a_scale = a_scale;
    g.b_scale = w.scale;
    g.c = to_float ? static_cast<float *>(out) : NULL;
    g.out = to_float ? NULL : out;
    g.ldc = w.n;
    g.wgmma = s->options.wgmma;
}

/* A norm's modulation: rows of a table, or weights. */
struct modulation {
    float one;
    const float *scale, *shift;
};

/* tokens = from + gate * y, and normed of that type. */
static void push_residual(struct scale *s, const float *from, const float *gate,
                          const struct modulation &m, enum gpu_type type)
{
    const struct scale_buffers &b = s->buffers;
    struct gpu_residual &r = push(s, SCALE_RESIDUAL)->residual;
    r.rows = s->tokens;
    r.width = s->config.width;
    r.x_in = from;
    r.x = b.tokens;
    r.y = b.y;
    r.gate = gate;
    r.one = m.one;
    r.scale = m.scale;
    r.shift = m.shift;
    r.group_rows = s->tokens;
    r.out_type = type;
    r.out = b.normed;
    r.row_scale = b.normed_scale;
}

/* y = w x: in fp8 x [T][w.k] is quantised first; with silu it is applied on the way. */
static void push_activated(struct scale *s, const struct scale_matmul &w, uint16_t *x, bool silu)
{
    const struct scale_buffers &b = s->buffers;
    const bool fp8 = w.type == GPU_E4M3;
    if (fp8 || silu) {
        struct gpu_activate &a = push(s, SCALE_ACTIVATE)->activate;
        a.rows = s->tokens;
        a.width = w.k;
        a.x = x;
        a.silu = silu;
        a.out_type = fp8 ? GPU_E4M3 : GPU_BF16;
        a.out = fp8 ? b.packed : x;
        a.row_scale = b.packed_scale;
    }
    push_matmul(s, w, s->tokens, fp8 ? b.packed : x, b.packed_scale, b.y, false);
}

static void push_all_to_all(struct scale *s, const void *send, void *receive, size_t bytes_each)
{
    struct scale_op *op = push(s, SCALE_ALL_TO_ALL);
    op->all_to_all.send = send;
    op->all_to_all.receive = receive;
    op->all_to_all.bytes_each = bytes_each;
}

/* Keys of this rank's share of the heads, of all tokens: once, not once per tile of queries. */
static void push_rotate(struct scale *s, uint16_t *keys, size_t row)
{
    struct gpu_rotate &r = push(s, SCALE_ROTATE)->rotate;
    r.rows = s->all_tokens;
    r.heads = s->config.kv_heads / s->ranks;
    r.head_dim = s->config.head_dim;
    r.x = keys;
    r.row = row;
    r.cosine = s->weights.cosine;
    r.sine = s->weights.sine;
}

/* Queries of a share of the heads, all tokens; rows of qkv have that share side by side. */
static struct gpu_attention queries_of(const struct scale *s, const uint16_t *qkv, uint16_t *out)
{
    const struct scale_config &c = s->config;
    struct gpu_attention a = {};
    a.q_type = GPU_BF16;
    a.items = 1;
    a.heads = c.heads / s->ranks;
    a.kv_heads = c.kv_heads / s->ranks;
    a.head_dim = c.head_dim;
    a.q = qkv;
    a.q_row = (size_t)(a.heads + 2 * a.kv_heads) * c.head_dim;
    a.kv_tokens = s->all_tokens;
    a.cosine = s->weights.cosine;
    a.sine = s->weights.sine;
    a.wgmma = s->options.wgmma;
    a.out = out;
    a.out_row = (size_t)a.heads * c.head_dim;
    return a;
}

/* Attention of a share of the heads within views, or over all tokens. */
static void push_ranges(struct scale *s, uint32_t layer, uint16_t *qkv, uint16_t *out)
{
    const struct scale_config &c = s->config;
    struct gpu_attention a = queries_of(s, qkv, out);
    uint16_t *keys = qkv + (size_t)a.heads * c.head_dim;
    push_rotate(s, keys, a.q_row);
    a.kv_type = GPU_BF16;
    a.k = keys;
    a.v = keys + (size_t)a.kv_heads * c.head_dim;
    a.kv_row = a.q_row;
    if (scale_layer_joint(&c, layer)) {
        a.range[a.range_count++] = {0, s->all_tokens};
    } else {
        for (uint32_t view = 0; view <= c.view_count; view++) {
            const struct gpu_grid grid = scale_grid(&c, view);
            a.range[a.range_count++] = {grid.first, grid.rows * grid.cols};
        }
    }
    push(s, SCALE_ATTENTION)->attention = a;
}

/* Place of a layer's keys and values in the pages. */
static struct gpu_pages pages_of(const struct scale *s, uint32_t layer)
{
    const size_t offset = layer * s->layer_bytes;
    struct gpu_pages pages = {};
    pages.arena = s->arena;
    pages.page_bytes = s->page.page_bytes;
    pages.k_offset = s->page.k_offset + offset;
    pages.v_offset = s->page.v_offset + offset;
    pages.k_scale_offset = s->page.k_scale_offset + offset;
    pages.v_scale_offset = s->page.v_scale_offset + offset;
    pages.table = s->buffers.inputs->table; /* an address, nothing is read here */
    pages.table_stride = GPU_PAGES_MAX;
    return pages;
}

/* A page of one layer, for windows: all tokens, this rank's share of the heads. */
static struct gpu_page_store window_store(const struct scale *s, const uint16_t *kv, size_t kv_row)
{
    struct gpu_page_store p = s->page;
    p.rows = s->all_tokens;
    p.heads = s->config.kv_heads / s->ranks;
    p.kv = kv;
    p.kv_row = kv_row;
    return p;
}

/* Attention of a share of the heads within windows of each view, present and past. */
static void push_windows(struct scale *s, uint32_t layer, uint16_t *qkv, uint16_t *out)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    struct gpu_attention a = queries_of(s, qkv, out);
    uint16_t *keys = qkv + (size_t)a.heads * c.head_dim;
    push_rotate(s, keys, a.q_row);
    struct gpu_page_store &p = push(s, SCALE_PAGE_STORE)->page_store;
    p = window_store(s, keys, a.q_row);
    p.arena = b.present;
    p.page_bytes = s->layer_bytes;
    p.page = b.first_page;
    a.kv_type = p.type;
    a.k = b.present + p.k_offset;
    a.v = b.present + p.v_offset;
    a.k_scale = reinterpret_cast<const float *>(b.present + p.k_scale_offset);
    a.v_scale = reinterpret_cast<const float *>(b.present + p.v_scale_offset);
    a.kv_row = (size_t)a.kv_heads * c.head_dim;
    a.pages = pages_of(s, layer);
    for (uint32_t view = 0; view <= c.view_count; view++) {
        a.grid = scale_grid(&c, view);
        push(s, SCALE_ATTENTION)->attention = a;
    }
}

static void push_attention(struct scale *s, uint32_t layer, uint16_t *qkv, uint16_t *out)
{
    if (scale_layer_window(&s->config, layer)) {
        push_windows(s, layer, qkv, out);
    } else {
        push_ranges(s, layer, qkv, out);
    }
}

/* From qkv to mixed: all heads of this rank's tokens. */
static void push_spatial(struct scale *s, uint32_t layer)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    if (!s->exchanged) {
        push_attention(s, layer, b.qkv, b.mixed);
        return;
    }
    const size_t token_bytes = (size_t)c.head_dim * 2 / s->ranks;
    struct gpu_heads_out &out = push(s, SCALE_HEADS_OUT)->heads_out;
    out = {s->ranks, s->tokens, c.heads, c.kv_heads, c.head_dim, b.qkv, b.sent};
    push_all_to_all(s, b.sent, b.given, (c.heads + 2 * c.kv_heads) * token_bytes * s->tokens);
    push_attention(s, layer, b.given, b.mixed_all);
    push_all_to_all(s, b.mixed_all, b.sent, c.heads * token_bytes * s->tokens);
    struct gpu_heads_in &in = push(s, SCALE_HEADS_IN)->heads_in;
    in = {s->ranks, s->tokens, c.heads, c.head_dim, b.sent, b.mixed};
}

static void push_temporal(struct scale *s, uint32_t layer)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    struct gpu_temporal &t = push(s, SCALE_TEMPORAL)->temporal;
    t.q_type = GPU_BF16;
    t.kv_type = s->page.type;
    t.items = 1;
    t.tokens = s->tokens;
    t.heads = c.heads;
    t.kv_heads = c.kv_heads;
    t.head_dim = c.head_dim;
    t.page_count = c.window;
    t.q = b.query;
    t.q_row = (size_t)c.heads * c.head_dim;
    t.pages = pages_of(s, layer);
    t.kv_row = (size_t)c.kv_heads * c.head_dim;
    t.bias = s->weights.block[layer].bias;
    t.bias_stride = c.window;
    t.out = b.mixed;
    t.out_row = (size_t)c.heads * c.head_dim;
}

static void push_layer(struct scale *s, uint32_t layer, const struct modulation &after,
                       enum gpu_type after_type)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    const struct scale_block &w = s->weights.block[layer];
    const enum gpu_type type = scale_layer_type(&c, layer);
    const float *table = b.table + (size_t)layer * 6 * c.width;
    push_matmul(s, w.qkv, s->tokens, b.normed, b.normed_scale, b.qkv, false);
    push_spatial(s, layer);
    push_activated(s, w.o, b.mixed, false);
    const struct modulation feed = {1.0f, table + 3 * c.width, table + 4 * c.width};
    if (scale_layer_window(&c, layer)) { /* has seen the past already */
        push_residual(s, b.tokens, table + 2 * c.width, feed, type);
    } else {
        push_residual(s, b.tokens, table + 2 * c.width, {0.0f, w.norm_weight, w.norm_bias}, type);
        push_matmul(s, w.tq, s->tokens, b.normed, b.normed_scale, b.query, false);
        push_temporal(s, layer);
        push_activated(s, w.to, b.mixed, false);
        push_residual(s, b.tokens, NULL, feed, type);
    }
    push_matmul(s, w.fc1, s->tokens, b.normed, b.normed_scale, b.wide, false);
    push_activated(s, w.fc2, b.wide, true);
    push_residual(s, b.tokens, table + 5 * c.width, after, after_type);
}

static void push_convert(struct scale *s, const void *x, enum gpu_type type, size_t count,
                         uint16_t *out, bool silu)
{
    struct gpu_convert &v = push(s, SCALE_CONVERT)->convert;
    v.count = count;
    v.x = x;
    v.x_type = type;
    v.out_type = GPU_BF16;
    v.out = out;
    v.silu = silu;
}

/* Noise, and the modulations of all steps. */
static void push_start(struct scale *s)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    const struct scale_weights &w = s->weights;
    const size_t count = (size_t)c.steps * c.width;
    struct gpu_noise &noise = push(s, SCALE_NOISE)->noise;
    noise.slots = 1;
    noise.count = s->tokens * c.latent;
    noise.rows = w.reading + (size_t)s->rank * s->tokens;
    noise.width = c.latent;
    noise.keys = &b.inputs->seed;
    noise.ticks = &b.inputs->tick;
    noise.out = b.x;
    push_convert(s, b.x, GPU_F32, (size_t)s->tokens * c.latent, b.x_act, false);
    push_matmul(s, w.time1, c.steps, w.features, NULL, b.hidden, false);
    push_convert(s, b.hidden, GPU_BF16, count, b.hidden, true);
    push_matmul(s, w.time2, c.steps, b.hidden, NULL, b.e, false);
    push_convert(s, b.e, GPU_BF16, count, b.e, true);
    push_matmul(s, w.ada, c.steps, b.e, NULL, b.ada, true);
    push_matmul(s, w.final, c.steps, b.e, NULL, b.final, true);
}

static void push_step(struct scale *s, uint32_t step)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    const struct scale_weights &w = s->weights;
    const float *final = b.final + (size_t)step * 2 * c.width;
    struct gpu_table &table = push(s, SCALE_TABLE)->table;
    table.slots = 1;
    table.layers = c.layers;
    table.width = 6 * c.width;
    table.ada = b.ada + (size_t)step * 6 * c.width;
    table.own = w.table;
    table.out = b.table;
    push_matmul(s, w.embed, s->tokens, b.x_act, NULL, b.y, false);
    push_residual(s, w.pos, NULL, {1.0f, b.table, b.table + c.width}, scale_layer_type(&c, 0));
    for (uint32_t layer = 0; layer < c.layers; layer++) {
        const float *next = b.table + (size_t)(layer + 1) * 6 * c.width;
        if (layer + 1 < c.layers) {
            push_layer(s, layer, {1.0f, next, next + c.width}, scale_layer_type(&c, layer + 1));
        } else {
            push_layer(s, layer, {1.0f, final, final + c.width}, GPU_BF16);
        }
    }
    push_matmul(s, w.unembed, s->tokens, b.normed, NULL, b.out, true);
    struct gpu_euler &euler = push(s, SCALE_EULER)->euler;
    euler.positions = s->tokens;
    euler.channels = c.latent;
    euler.o_stride = c.latent;
    euler.weight = 1.0f / (float)(c.steps - step); /* steps of equal length */
    euler.x = b.x;
    euler.base = b.base;
    euler.o = b.out;
    push_convert(s, b.x, GPU_F32, (size_t)s->tokens * c.latent, b.x_act, false);
}

static void push_norm(struct scale *s, enum gpu_type type, void *out, float *row_scale)
{
    struct gpu_norm &n = push(s, SCALE_NORM)->norm;
    n.rows = s->tokens;
    n.width = s->config.width;
    n.x = s->buffers.y;
    n.x_type = GPU_BF16;
    n.one = 1.0f;
    n.out_type = type;
    n.out = out;
    n.row_scale = row_scale;
}

/* A layer's keys and values of the frame, in b.kv, to its page: for windows, turned and with all
 * tokens of a share of the heads. */
static void push_store(struct scale *s, uint32_t layer)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    const size_t offset = layer * s->layer_bytes;
    struct gpu_page_store p = s->page;
    p.kv = b.kv;
    if (scale_layer_window(&c, layer)) {
        const size_t row = (size_t)2 * c.kv_heads / s->ranks * c.head_dim;
        uint16_t *kv = b.kv;
        if (s->exchanged) {
            struct gpu_heads_out &out = push(s, SCALE_HEADS_OUT)->heads_out;
            out = {s->ranks, s->tokens, 0, c.kv_heads, c.head_dim, b.kv, b.sent};
            push_all_to_all(s, b.sent, b.given, row * sizeof(uint16_t) * s->tokens);
            kv = b.given;
        }
        push_rotate(s, kv, row);
        p = window_store(s, kv, row);
    }
    p.k_offset += offset;
    p.v_offset += offset;
    p.k_scale_offset += offset;
    p.v_scale_offset += offset;
    p.page = &b.inputs->write_page;
    push(s, SCALE_PAGE_STORE)->page_store = p;
}

/* The frame's keys and values to its page. */
static void push_commit(struct scale *s)
{
    const struct scale_config &c = s->config;
    const struct scale_buffers &b = s->buffers;
    push_matmul(s, s->weights.memory, s->tokens, b.x_act, NULL, b.y, false);
    push_norm(s, GPU_BF16, b.normed, NULL);
    if (c.type == GPU_E4M3) {
        push_norm(s, GPU_E4M3, b.packed, b.packed_scale);
    }
    for (uint32_t layer = 0; layer < c.layers; layer++) {
        const struct scale_matmul &w = s->weights.block[layer].kv;
        const bool fp8 = w.type == GPU_E4M3;
        push_matmul(s, w, s->tokens, fp8 ? b.packed : b.normed, b.packed_scale, b.kv, false);
        push_store(s, layer);
    }
}

void scale_plan(struct scale *s)
{
    s->op_count = 0;
    push_start(s);
    for (uint32_t step = 0; step < s->config.steps; step++) {
        push_step(s, step);
    }
    push_commit(s);
}
