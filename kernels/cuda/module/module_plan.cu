/*
 * The launches of a tick, in the order of engine/model.md. The list depends on the model's shape
 * and the number of slots alone; which slots are active, and all that a tick is about, the kernels
 * read from the slots' records.
 */
#include "base/rng.h"
#include "kernels/cuda/module/module.cuh"

/* ---- the pieces of a tick ---- */

/* Data that every launch needs, and how many there were. */
struct plan {
    struct device_session *session;
    const struct module_kernels *k;
    const struct module_weights *w;
    const struct module_buffers *b;
    struct context_slots slots;
    const uint32_t *active; /* [slots]: those that the next launches are for */
    void *stream;
    uint32_t launches;
};

static struct plan plan_make(struct device_session *session, const struct context_slots *slots)
{
    struct plan p = {};
    p.session = session;
    p.k = &session->kernels;
    p.w = &session->weights;
    p.b = &session->buffers;
    p.slots = *slots;
    p.active = slots->active;
    p.stream = (void *)session->stream;
    return p;
}

/* The rows of all slots, rounded to e4m3 with a scale each, before a product that takes them. */
static void pack_rows(struct plan *p, uint32_t rows, uint32_t width, const uint16_t *x)
{
    struct gpu_activate a = {};
    a.rows = p->slots.count * rows;
    a.width = width;
    a.x = x;
    a.out_type = GPU_E4M3;
    a.out = p->b->packed;
    a.row_scale = p->b->packed_scale;
    gpu_activate_launch(&a, p->stream);
    p->launches++;
}

/* A product of `rows` rows per slot that lie one after the other, or of the packed ones, where `a`
 * is NULL; the caller sets the epilogue and runs it before it makes the next one. */
static struct gpu_gemm matmul_of(struct plan *p, const struct module_matmul *matmul, uint32_t rows,
                                 const uint16_t *a)
{
    struct gpu_gemm g = {};
    g.type = matmul->type;
    g.items = p->slots.count;
    g.rows = rows;
    g.n = matmul->n;
    g.k = matmul->k;
    g.a = a;
    if (matmul->type == GPU_E4M3) {
        if (a != NULL) {
            pack_rows(p, rows, matmul->k, a);
        }
        g.a = p->b->packed;
        g.a_scale = p->b->packed_scale;
        g.b_scale = matmul->scale;
        g.wgmma = p->session->options.wgmma;
    }
    g.lda = matmul->k;
    g.a_item = (size_t)rows * matmul->k;
    g.b = matmul->w;
    g.bias = matmul->bias;
    g.ldc = matmul->n;
    g.c_item = (size_t)rows * matmul->n;
    g.active = p->active;
    return g;
}

static void run_matmul(struct plan *p, const struct gpu_gemm *g)
{
    p->launches += module_product_run(p->session, g);
}

static void matmul_floats(struct plan *p, const struct module_matmul *matmul, uint32_t rows,
                          const uint16_t *a, float *c)
{
    struct gpu_gemm g = matmul_of(p, matmul, rows, a);
    g.epilogue = NN_STORE;
    g.c = c;
    run_matmul(p, &g);
}

static void matmul_act(struct plan *p, const struct module_matmul *matmul, uint32_t rows,
                       const uint16_t *a, enum nn_epilogue epilogue, uint16_t *out)
{
    struct gpu_gemm g = matmul_of(p, matmul, rows, a);
    g.epilogue = epilogue;
    g.out = out;
    run_matmul(p, &g);
}

/* X += gate * product; gate NULL: none. */
static void matmul_add(struct plan *p, const struct module_matmul *matmul, const uint16_t *a,
                       const float *gate)
{
    struct gpu_gemm g = matmul_of(p, matmul, p->w->tokens, a);
    g.epilogue = NN_ADD_GATED;
    g.gate = gate;
    g.gate_item = (size_t)p->w->layers * 6 * p->w->width;
    g.c = p->b->tokens;
    run_matmul(p, &g);
}

/* Rows for a product (NULL: for several) as matmul_of takes them, packed at once where it takes
 * e4m3. mod_stride: from a slot's scale and shift to the next one's. */
static const uint16_t *norm(struct plan *p, const struct module_matmul *taker, const float *x,
                            float one, const float *scale, const float *shift, size_t mod_stride)
{
    const bool packed = taker != NULL && taker->type == GPU_E4M3;
    struct gpu_norm n = {};
    n.rows = p->slots.count * p->w->tokens;
    n.width = p->w->width;
    n.x = x;
    n.x_type = GPU_F32;
    n.one = one;
    n.scale = scale;
    n.shift = shift;
    n.group_rows = p->w->tokens;
    n.group_stride = mod_stride;
    n.out_type = packed ? GPU_E4M3 : GPU_BF16;
    n.out = packed ? (void *)p->b->packed : p->b->normed;
    n.row_scale = packed ? p->b->packed_scale : NULL;
    n.rounded = packed;
    p->k->norm(&n, p->stream);
    p->launches++;
    return packed ? NULL : p->b->normed;
}

static struct gpu_conv conv_of(const struct plan *p, int part, const struct module_matmul *matmul,
                               const uint16_t *in, uint32_t channels)
{
    const struct shape_part *shape = &p->w->part[part].shape;
    struct gpu_conv c = {};
    c.type = GPU_BF16;
    c.slots = p->slots.count;
    c.images = shape->images;
    c.rows = shape->rows;
    c.cols = shape->cols;
    c.in_count = 1;
    c.in[0] = in;
    c.in_channels[0] = channels;
    c.out_channels = matmul->n;
    c.w = matmul->w;
    c.bias = matmul->bias;
    c.mod_stride = (size_t)p->w->steps * p->w->mod.n;
    c.active = p->active;
    return c;
}

static void run_conv(struct plan *p, const struct gpu_conv *c)
{
    p->k->conv(c, p->stream);
    p->launches++;
}

/* Modulation `which` (scale1, shift1, scale2, shift2) of a part in a step; see module_weights.mod.
 */
static const float *part_mod(const struct plan *p, int part, uint32_t step, uint32_t which)
{
    const struct module_weights *w = p->w;
    size_t at = (size_t)step * w->mod.n + 8 * (size_t)w->width + which * w->part[part].channels;
    return p->b->mod + at + (part == 1 ? 4 * (size_t)w->part[0].channels : 0);
}

/* ---- before the first step ---- */

/* Fill for the part of the layouts that is not given. */
static void plan_layouts(struct plan *p)
{
    struct draw_list_slots s = {};
    s.slots = p->slots.slots;
    s.count = p->slots.count;
    s.source = p->session->host_draw_lists;
    s.draw_lists = p->b->draw_lists;
    s.boxes = p->b->boxes;
    s.maps = p->b->maps;
    s.layouts = p->b->layouts;
    draw_list_fetch(&s, p->stream);
    draw_list_bev(&s, p->stream);
    draw_list_camera(&s, p->stream);
    p->launches += 4;
}

static void plan_conditions(struct plan *p)
{
    const struct module_weights *w = p->w;
    const struct module_buffers *b = p->b;
    context_conditions(&p->slots, w->features, b->cond, p->stream);
    matmul_act(p, &w->time1, w->steps, b->cond, NN_SILU_ACT, b->hidden);
    matmul_act(p, &w->time2, w->steps, b->hidden, NN_SILU_ACT, b->e); /* e = silu(c) */
    matmul_floats(p, &w->mod, w->steps, b->e, b->mod);
    struct context_places places = {};
    for (int i = 0; i < SHAPE_CAMERAS; i++) {
        places.camera_yaw_rad[i] = w->camera_yaw_rad[i];
    }
    places.bev = w->part[0].shape;
    places.camera = w->part[1].shape;
    places.pairs = w->head_dim / 2;
    places.ratio = w->rotary_ratio;
    places.cosine = b->cosine;
    places.sine = b->sine;
    places.index = b->index;
    context_places_fill(&p->slots, &places, p->stream);
    p->launches += 2;
}

/* x to the map that the network reads. */
static void run_latent(struct plan *p, int part)
{
    const struct shape_part *shape = &p->w->part[part].shape;
    struct gpu_latent l = {};
    l.type = GPU_BF16;
    l.slots = p->slots.count;
    l.images = shape->images;
    l.rows = shape->rows;
    l.cols = shape->cols;
    l.channels = shape->channels;
    l.map_channels = SHAPE_LATENT;
    l.x = p->b->part[part].x;
    l.map = p->b->part[part].latent;
    l.active = p->active;
    gpu_latent_launch(&l, p->stream);
    p->launches++;
}

static void plan_context(struct plan *p)
{
    context_move(&p->slots, p->stream);
    p->launches++;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &p->w->part[i];
        const struct module_images *images = &p->b->part[i];
        context_fill(&p->slots, &part->shape, images->context, images->base, p->stream);
        struct gpu_noise noise = {};
        noise.slots = p->slots.count;
        noise.stream = RNG_STREAM_NOISE;
        noise.first = part->shape.first_element;
        noise.count = shape_positions(&part->shape) * part->shape.channels;
        noise.keys = p->slots.keys;
        noise.ticks = p->slots.ticks;
        noise.out = images->x;
        noise.slot_stride = noise.count;
        gpu_noise_launch(&noise, p->stream);
        run_latent(p, i);
        p->launches += 2;
        struct gpu_conv c =
            conv_of(p, i, &part->ctx, images->context, part->shape.context_channels);
        c.out_f32 = images->add;
        run_conv(p, &c);
    }
}

/* ---- a step ---- */

/* a, h and the patches of h. */
static void plan_images_in(struct plan *p, uint32_t step)
{
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &p->w->part[i];
        const struct module_images *images = &p->b->part[i];
        struct gpu_conv c = conv_of(p, i, &part->in, images->latent, SHAPE_LATENT);
        c.add = images->add;
        c.scale = part_mod(p, i, step, 0);
        c.shift = part_mod(p, i, step, 1);
        c.silu = 1;
        c.out = images->a;
        run_conv(p, &c);
        c = conv_of(p, i, &part->mid, images->a, part->channels);
        c.silu = 1;
        c.out = images->h;
        run_conv(p, &c);
    }
}

static void run_patches(struct plan *p, int part, uint16_t *map, int back)
{
    const struct shape_part *shape = &p->w->part[part].shape;
    struct gpu_patches g = {};
    g.slots = p->slots.count;
    g.images = shape->images;
    g.rows = shape->rows;
    g.cols = shape->cols;
    g.patch = shape->patch;
    g.channels = p->w->part[part].channels;
    g.element_bytes = sizeof(uint16_t);
    g.map = map;
    g.patches = p->b->part[part].patches;
    g.back = back;
    g.active = p->active;
    gpu_patches_launch(&g, p->stream);
    p->launches++;
}

/* X = embed(patches of h) + pos */
static void plan_embed(struct plan *p)
{
    const struct module_weights *w = p->w;
    context_spread(&p->slots, w->pos, w->tokens * w->width, p->b->tokens, p->stream);
    p->launches++;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        run_patches(p, i, p->b->part[i].h, 0);
        struct gpu_gemm g = matmul_of(p, &part->embed, part->shape.tokens, p->b->part[i].patches);
        g.epilogue = NN_ADD_GATED;
        g.c = p->b->tokens + (size_t)part->shape.first_token * w->width;
        g.c_item = (size_t)w->tokens * w->width;
        run_matmul(p, &g);
    }
}

static void plan_temporal(struct plan *p, uint32_t layer)
{
    const struct module_weights *w = p->w;
    const struct module_block *block = &w->blocks[layer];
    const uint16_t *normed =
        norm(p, &block->tq, p->b->tokens, 0.0f, block->norm_weight, block->norm_bias, 0);
    matmul_floats(p, &block->tq, w->tokens, normed, p->b->query);
    struct gpu_temporal t = {};
    t.q_type = GPU_F32;
    t.kv_type = w->page_type;
    t.items = p->slots.count;
    t.tokens = w->tokens;
    t.heads = w->heads;
    t.kv_heads = w->kv_heads;
    t.head_dim = w->head_dim;
    t.page_count = w->window;
    t.q = p->b->query;
    t.q_row = w->query;
    t.q_item = (size_t)w->tokens * w->query;
    t.pages = module_pages_of(w, &p->slots, layer);
    t.kv_row = w->kv;
    t.index = p->b->index;
    t.bias = block->tbias;
    t.bias_stride = w->window;
    t.null_k = block->null_k;
    t.null_v = block->null_v;
    t.out = p->b->mixed;
    t.out_row = w->query;
    t.out_item = (size_t)w->tokens * w->query;
    t.active = p->active;
    p->k->temporal(&t, p->stream);
    p->launches++;
    matmul_add(p, &block->to, p->b->mixed, NULL);
}

/* Queries and keys turned, and all rounded: once, not once per tile of queries. */
static void plan_rotate(struct plan *p)
{
    const struct module_weights *w = p->w;
    struct gpu_rotate r = {};
    r.rows = p->slots.count * w->tokens;
    r.heads = w->heads + w->kv_heads;
    r.head_dim = w->head_dim;
    r.width = w->query + 2 * w->kv;
    r.type = GPU_F32;
    r.x = p->b->qkv;
    r.row = r.width;
    r.out = p->b->turned;
    r.cosine = p->b->cosine;
    r.sine = p->b->sine;
    gpu_rotate_launch(&r, p->stream);
    p->launches++;
}

static void run_attention(struct plan *p, const struct gpu_attention *a)
{
    p->k->attention(a, p->stream);
    p->launches++;
}

/* Of all queries, keys and values of the frame. */
static struct gpu_attention attention_of(const struct plan *p)
{
    const struct module_weights *w = p->w;
    size_t row = w->query + 2 * (size_t)w->kv;
    struct gpu_attention a = {};
    a.items = p->slots.count;
    a.heads = w->heads;
    a.kv_heads = w->kv_heads;
    a.head_dim = w->head_dim;
    a.q = p->b->turned;
    a.k = p->b->turned + w->query;
    a.v = p->b->turned + w->query + w->kv;
    a.q_row = a.kv_row = row;
    a.q_item = a.kv_item = w->tokens * row;
    a.kv_tokens = w->tokens;
    a.wgmma = p->session->options.wgmma;
    a.out = p->b->mixed;
    a.out_row = w->query;
    a.out_item = (size_t)w->tokens * w->query;
    a.active = p->active;
    return a;
}

/* Within a frame: over all tokens, or over the BEV's and each camera's. */
static void plan_ranges(struct plan *p, bool joint)
{
    const struct shape_part *bev = &p->w->part[0].shape;
    const struct shape_part *camera = &p->w->part[1].shape;
    struct gpu_attention a = attention_of(p);
    a.range_count = joint ? 1 : 1 + camera->images;
    a.range[0] = {0, joint ? p->w->tokens : bev->tokens};
    for (uint32_t i = 1; i < a.range_count; i++) {
        a.range[i] = {camera->first_token + (i - 1) * camera->image_tokens, camera->image_tokens};
    }
    run_attention(p, &a);
}

/* Within windows of the BEV and of each camera, of this frame and of past ones. */
static void plan_windows(struct plan *p, uint32_t layer)
{
    const struct module_weights *w = p->w;
    struct gpu_gather g = {};
    g.items = p->slots.count;
    g.tokens = w->tokens;
    g.heads = w->kv_heads;
    g.head_dim = w->head_dim;
    g.page_count = w->past;
    g.pages = module_pages_of(w, &p->slots, layer);
    g.type = w->page_type;
    g.index = p->b->index;
    g.cosine = p->b->cosine;
    g.sine = p->b->sine;
    g.out = p->b->past;
    g.active = p->active;
    gpu_gather_launch(&g, p->stream);
    p->launches += w->past != 0 ? 1 : 0;
    struct gpu_attention a = attention_of(p);
    a.past.k = p->b->past;
    a.past.v = p->b->past + w->kv;
    a.past.row = 2 * (size_t)w->kv;
    a.past.table = p->slots.table;
    a.past.index = p->b->index;
    a.past.stride = w->window;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct shape_part *shape = &w->part[i].shape;
        for (uint32_t image = 0; image < shape->images; image++) {
            a.grid.first = shape->first_token + image * shape->image_tokens;
            a.grid.rows = shape->rows / shape->patch;
            a.grid.cols = shape->token_cols;
            a.grid.reach_rows = a.grid.reach_cols = w->reach;
            a.grid.past = w->past;
            run_attention(p, &a);
        }
    }
}

static void plan_layer(struct plan *p, uint32_t layer)
{
    const struct module_weights *w = p->w;
    const struct module_buffers *b = p->b;
    const struct module_block *block = &w->blocks[layer];
    size_t d = w->width;
    size_t stride = w->layers * 6 * d;
    const float *table = b->table + layer * 6 * d;
    const uint16_t *normed = norm(p, &block->qkv, b->tokens, 1.0f, table, table + d, stride);
    matmul_floats(p, &block->qkv, w->tokens, normed, b->qkv);
    plan_rotate(p);
    if (block->window) {
        plan_windows(p, layer);
    } else {
        plan_ranges(p, block->joint != 0);
    }
    matmul_add(p, &block->o, b->mixed, table + 2 * d);
    if (!block->window) {
        plan_temporal(p, layer);
    }
    normed = norm(p, &block->fc1, b->tokens, 1.0f, table + 3 * d, table + 4 * d, stride);
    matmul_act(p, &block->fc1, w->tokens, normed, NN_SILU_ACT, b->wide);
    matmul_add(p, &block->fc2, b->wide, table + 5 * d);
}

/* u = unembed(Y), back to positions */
static void plan_unembed(struct plan *p, uint32_t step)
{
    const struct module_weights *w = p->w;
    size_t d = w->width;
    const float *scale = p->b->mod + (size_t)step * w->mod.n + 6 * d;
    norm(p, NULL, p->b->tokens, 1.0f, scale, scale + d, (size_t)w->steps * w->mod.n);
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        struct gpu_gemm g = matmul_of(p, &part->unembed, part->shape.tokens,
                                      p->b->normed + part->shape.first_token * d);
        g.a_item = w->tokens * d;
        g.epilogue = NN_STORE_ACT;
        g.out = p->b->part[i].patches;
        run_matmul(p, &g);
        run_patches(p, i, p->b->part[i].u, 1);
    }
}

/* x to the bytes of the pages that are written. */
static void run_quantise(struct plan *p, int part)
{
    const struct shape_part *shape = &p->w->part[part].shape;
    struct gpu_quantise q = {};
    q.slots = p->slots.count;
    q.count = shape_positions(shape) * shape->channels;
    q.x = p->b->part[part].x;
    q.arena = p->slots.arena;
    q.page_bytes = p->slots.page_bytes;
    q.offset = shape->first_element;
    q.page = p->slots.write;
    q.health = (struct gpu_health *)p->b->counts;
    q.health_stride = sizeof *p->b->counts;
    q.active = p->active;
    gpu_quantise_launch(&q, p->stream);
    p->launches++;
}

static_assert(offsetof(struct device_counts, not_finite) == 0 &&
                  offsetof(struct device_counts, saturated) ==
                      offsetof(struct gpu_health, saturated) &&
                  offsetof(struct device_counts, sums) == sizeof(struct gpu_health),
              "the kernel fills what the caller reads");

/* g, o, and the sampler's step on what it gave; the last step ends in bytes. */
static void plan_images_out(struct plan *p, uint32_t step)
{
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &p->w->part[i];
        const struct module_images *images = &p->b->part[i];
        struct gpu_conv c = conv_of(p, i, &part->head, images->u, part->channels);
        c.in_count = 2;
        c.in[1] = images->h;
        c.in_channels[1] = part->channels;
        c.scale = part_mod(p, i, step, 2);
        c.shift = part_mod(p, i, step, 3);
        c.silu = 1;
        c.out = images->g;
        run_conv(p, &c);
        c = conv_of(p, i, &part->out, images->g, part->channels);
        c.out_f32 = images->out;
        run_conv(p, &c);
        struct gpu_euler e = {};
        e.positions = (size_t)p->slots.count * shape_positions(&part->shape);
        e.channels = part->shape.channels;
        e.o_stride = SHAPE_LATENT;
        e.slot_positions = shape_positions(&part->shape);
        e.weights = p->slots.weights + (size_t)step * p->slots.count;
        e.active = p->active;
        e.x = images->x;
        e.base = images->base;
        e.o = images->out;
        gpu_euler_launch(&e, p->stream);
        p->launches++;
        if (step + 1 < p->w->steps) {
            run_latent(p, i);
        } else {
            run_quantise(p, i);
        }
    }
}

/* Of the slots that take part in it. */
static void plan_step(struct plan *p, uint32_t step)
{
    const struct module_weights *w = p->w;
    p->active = p->slots.runs + (size_t)step * p->slots.count;
    struct gpu_table table = {};
    table.slots = p->slots.count;
    table.layers = w->layers;
    table.width = 6 * w->width;
    table.ada = p->b->mod + (size_t)step * w->mod.n;
    table.ada_stride = (size_t)w->steps * w->mod.n;
    table.own = w->table;
    table.out = p->b->table;
    gpu_table_launch(&table, p->stream);
    p->launches++;
    plan_images_in(p, step);
    plan_embed(p);
    for (uint32_t layer = 0; layer < w->layers; layer++) {
        plan_layer(p, layer);
    }
    plan_unembed(p, step);
    plan_images_out(p, step);
}

/* ---- the memory of the written frames ---- */

static void run_frame_patches(struct plan *p, int part)
{
    const struct shape_part *shape = &p->w->part[part].shape;
    struct gpu_frame_patches f = {};
    f.type = GPU_BF16;
    f.slots = p->slots.count;
    f.images = shape->images;
    f.rows = shape->rows;
    f.cols = shape->cols;
    f.patch = shape->patch;
    f.channels = shape->channels;
    f.patch_channels = SHAPE_LATENT;
    f.arena = p->slots.arena;
    f.page_bytes = p->slots.page_bytes;
    f.offset = shape->first_element;
    f.page = p->slots.write;
    f.table = p->w->bytes;
    f.patches = p->b->part[part].patches;
    f.active = p->active;
    gpu_frame_patches_launch(&f, p->stream);
    p->launches++;
}

static void plan_memory(struct plan *p)
{
    const struct module_weights *w = p->w;
    size_t d = w->width;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        uint16_t *patches = p->b->part[i].patches;
        run_frame_patches(p, i);
        struct gpu_gemm g = matmul_of(p, &part->memory, part->shape.tokens, patches);
        g.epilogue = NN_STORE;
        g.c = p->b->query + part->shape.first_token * d;
        g.c_item = w->tokens * d;
        run_matmul(p, &g);
    }
    norm(p, NULL, p->b->query, 1.0f, NULL, NULL, 0);
    const uint32_t row = 2 * w->kv * w->layers;
    for (uint32_t i = 0; i < w->memory_count; i++) {
        const struct module_memory *memory = &w->memory[i];
        struct gpu_gemm g = matmul_of(p, &memory->matmul, w->tokens, p->b->normed);
        g.epilogue = NN_STORE_ACT;
        g.out = p->b->kv + (size_t)2 * w->kv * memory->first_layer;
        g.ldc = row;
        g.c_item = (size_t)w->tokens * row;
        run_matmul(p, &g);
    }
    const struct context_memory memory = {p->b->kv, w->page_shape, w->page};
    context_store_memory(&p->slots, &memory, p->stream);
    p->launches++;
}

uint32_t module_plan_maker(struct device_session *session)
{
    struct plan p = plan_make(session, &session->buffers.maker);
    cudaMemcpyAsync(p.b->maker_record, session->host_slots + session->options.slot_count,
                    sizeof *p.b->maker_record, cudaMemcpyHostToDevice, session->stream);
    context_unpack(&p.slots, p.stream);
    p.launches++;
    plan_memory(&p);
    return p.launches;
}

uint32_t module_plan_tick(struct device_session *session)
{
    struct plan p = plan_make(session, &session->buffers.slots);
    size_t slots = session->options.slot_count;
    cudaMemcpyAsync(p.b->slot_records, session->host_slots, slots * sizeof *p.b->slot_records,
                    cudaMemcpyHostToDevice, session->stream);
    cudaMemsetAsync(p.b->counts, 0, slots * sizeof *p.b->counts, session->stream);
    context_unpack(&p.slots, p.stream);
    p.launches++;
    plan_layouts(&p);
    plan_conditions(&p);
    plan_context(&p);
    for (uint32_t step = 0; step < p.w->steps; step++) {
        plan_step(&p, step);
    }
    p.active = p.slots.active;
    context_draw(&p.slots, p.stream);
    context_sums(&p.slots, p.b->counts, p.stream);
    context_agents(&p.slots, p.b->counts, p.stream);
    context_copy_frames(&p.slots, p.b->frames, p.stream);
    p.launches += 4;
    plan_memory(&p);
    cudaMemcpyAsync(session->host_counts, p.b->counts, slots * sizeof *p.b->counts,
                    cudaMemcpyDeviceToHost, session->stream);
    return p.launches;
}

bool module_kernels_init(struct module_kernels *kernels, bool reference)
{
    const struct module_kernels fast = {gpu_gemm_launch, gpu_conv_launch, gpu_norm_launch,
                                        gpu_attention_launch, gpu_temporal_launch};
    const struct module_kernels *simple =
        module_kernels_reference != NULL ? module_kernels_reference() : NULL;
    *kernels = reference && simple != NULL ? *simple : fast;
    return !reference || simple != NULL;
}
