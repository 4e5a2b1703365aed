/*
 * The launches of a tick, in the order of engine/model.md, and the buffers between them. The list
 * depends on the model's shape and the number of slots alone; which slots are active, and all that
 * a tick is about, the kernels read from the slots' records.
 */
#include "base/rng.h"
#include "kernels/cuda/module/module.cuh"

/* ---- buffers ---- */

struct carver {
    uint8_t *memory; /* NULL: only count */
    size_t used;
    uint32_t slots;
};

/* `count` elements of `bytes` for every slot. */
static void *carve(struct carver *c, size_t count, size_t bytes)
{
    void *at = c->memory != NULL ? c->memory + c->used : NULL;
    c->used += (c->slots * count * bytes + 255) / 256 * 256;
    return at;
}

static uint16_t *carve_act(struct carver *c, size_t count)
{
    return (uint16_t *)carve(c, count, sizeof(uint16_t));
}

static float *carve_floats(struct carver *c, size_t count)
{
    return (float *)carve(c, count, sizeof(float));
}

static void carve_images(struct carver *c, const struct module_part *part,
                         struct module_images *out)
{
    const struct shape_part *shape = &part->shape;
    size_t map = shape_map_positions(shape);
    size_t positions = shape_positions(shape);
    uint32_t widest = part->channels > SHAPE_LATENT ? part->channels : (uint32_t)SHAPE_LATENT;
    out->context = carve_act(c, map * shape->context_channels);
    out->latent = carve_act(c, map * SHAPE_LATENT);
    out->a = carve_act(c, map * part->channels);
    out->h = carve_act(c, map * part->channels);
    out->u = carve_act(c, map * part->channels);
    out->g = carve_act(c, map * part->channels);
    out->add = carve_floats(c, positions * part->channels);
    out->out = carve_floats(c, positions * SHAPE_LATENT);
    out->x = carve_floats(c, positions * shape->channels);
    out->base = carve_floats(c, positions * shape->channels);
    out->patches = carve_act(c, (size_t)shape->tokens * SHAPE_PATCH_POSITIONS * widest);
}

/* The arrays that context_unpack fills, for `slots` of the carver. */
static void carve_slots(struct carver *c, uint32_t window, struct device_slot **records,
                        struct context_slots *out)
{
    *records = (struct device_slot *)carve(c, 1, sizeof(struct device_slot));
    out->slots = *records;
    out->count = c->slots;
    out->window = window;
    out->active = (uint32_t *)carve(c, 1, sizeof(uint32_t));
    out->table = (int32_t *)carve(c, window, sizeof(int32_t));
    out->keys = (uint64_t *)carve(c, 1, sizeof(uint64_t));
    out->ticks = (uint32_t *)carve(c, 1, sizeof(uint32_t));
    out->write = (int32_t *)carve(c, 1, sizeof(int32_t));
}

size_t module_buffers_place(const struct module_weights *w, uint32_t slot_count, void *memory,
                            struct module_buffers *out)
{
    struct carver c = {(uint8_t *)memory, 0, 1};
    size_t d = w->width;
    out->maps = (struct raster_map *)carve(&c, DEVICE_MAPS_MAX, sizeof(struct raster_map));
    carve_slots(&c, w->window, &out->maker_record, &out->maker);
    c.slots = slot_count;
    carve_slots(&c, w->window, &out->slot_records, &out->slots);
    out->counts = (struct device_counts *)carve(&c, 1, sizeof(struct device_counts));
    out->layouts = (uint8_t *)carve(&c, DEVICE_FRAME_BYTES, 1);
    out->slots.layouts = out->layouts;
    out->draw_lists = (uint8_t *)carve(&c, DRAW_LIST_BYTES_MAX, 1);
    out->boxes = (struct lidar_box *)carve(&c, DRAW_LIST_AGENTS_MAX, sizeof(struct lidar_box));
    out->frames = (uint8_t *)carve(&c, DEVICE_FRAME_BYTES, 1);
    for (int i = 0; i < SHAPE_PARTS; i++) {
        carve_images(&c, &w->part[i], &out->part[i]);
    }
    out->cond = carve_act(&c, w->steps * (size_t)(DEVICE_COND + DEVICE_FEATURES));
    out->hidden = carve_act(&c, w->steps * d);
    out->e = carve_act(&c, w->steps * d);
    out->mod = carve_floats(&c, (size_t)w->steps * w->mod.n);
    out->table = carve_floats(&c, w->layers * 6 * d);
    out->cosine = carve_floats(&c, (size_t)DEVICE_TOKENS * SHAPE_ROTARY);
    out->sine = carve_floats(&c, (size_t)DEVICE_TOKENS * SHAPE_ROTARY);
    out->index = (int16_t *)carve_act(&c, (size_t)w->window * DEVICE_TOKENS);
    out->tokens = carve_floats(&c, DEVICE_TOKENS * d);
    out->normed = carve_act(&c, DEVICE_TOKENS * d);
    out->qkv = carve_floats(&c, DEVICE_TOKENS * 3 * d);
    out->mixed = carve_act(&c, DEVICE_TOKENS * d);
    out->query = carve_floats(&c, DEVICE_TOKENS * d);
    out->wide = carve_act(&c, DEVICE_TOKENS * 4 * d);
    out->kv = carve_act(&c, DEVICE_TOKENS * 2 * d * w->layers);
    return c.used;
}

/* ---- the pieces of a tick ---- */

/* Data that every launch needs, and how many there were. */
struct plan {
    struct device_session *session;
    const struct module_kernels *k;
    const struct module_weights *w;
    const struct module_buffers *b;
    struct context_slots slots;
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
    p.stream = (void *)session->stream;
    return p;
}

/* A product of `rows` rows per slot that lie one after the other; the caller sets the epilogue. */
static struct gpu_gemm matmul_of(const struct plan *p, const struct module_matmul *matmul,
                                 uint32_t rows, const uint16_t *a)
{
    struct gpu_gemm g = {};
    g.type = GPU_BF16;
    g.items = p->slots.count;
    g.rows = rows;
    g.n = matmul->n;
    g.k = matmul->k;
    g.a = a;
    g.lda = matmul->k;
    g.a_item = (size_t)rows * matmul->k;
    g.b = matmul->w;
    g.bias = matmul->bias;
    g.ldc = matmul->n;
    g.c_item = (size_t)rows * matmul->n;
    g.active = p->slots.active;
    return g;
}

static void run_matmul(struct plan *p, const struct gpu_gemm *g)
{
    p->k->gemm(g, p->stream);
    p->launches++;
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
    struct gpu_gemm g = matmul_of(p, matmul, DEVICE_TOKENS, a);
    g.epilogue = NN_ADD_GATED;
    g.gate = gate;
    g.gate_item = (size_t)p->w->layers * 6 * p->w->width;
    g.c = p->b->tokens;
    run_matmul(p, &g);
}

/* mod_stride: from a slot's scale and shift to the next one's. */
static void norm(struct plan *p, const float *x, float one, const float *scale, const float *shift,
                 size_t mod_stride)
{
    struct gpu_norm n = {};
    n.rows = p->slots.count * DEVICE_TOKENS;
    n.width = p->w->width;
    n.x = x;
    n.x_type = GPU_F32;
    n.one = one;
    n.scale = scale;
    n.shift = shift;
    n.group_rows = DEVICE_TOKENS;
    n.group_stride = mod_stride;
    n.out_type = GPU_BF16;
    n.out = p->b->normed;
    p->k->norm(&n, p->stream);
    p->launches++;
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
    c.active = p->slots.active;
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
    context_conditions(&p->slots, w->features, w->steps, b->cond, p->stream);
    matmul_act(p, &w->time1, w->steps, b->cond, NN_SILU_ACT, b->hidden);
    matmul_act(p, &w->time2, w->steps, b->hidden, NN_SILU_ACT, b->e); /* e = silu(c) */
    matmul_floats(p, &w->mod, w->steps, b->e, b->mod);
    struct context_places places = {};
    for (int i = 0; i < SHAPE_CAMERAS; i++) {
        places.camera_yaw_rad[i] = w->camera_yaw_rad[i];
    }
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
    l.active = p->slots.active;
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
    g.channels = p->w->part[part].channels;
    g.element_bytes = sizeof(uint16_t);
    g.map = map;
    g.patches = p->b->part[part].patches;
    g.back = back;
    g.active = p->slots.active;
    gpu_patches_launch(&g, p->stream);
    p->launches++;
}

/* X = embed(patches of h) + pos */
static void plan_embed(struct plan *p)
{
    const struct module_weights *w = p->w;
    context_spread(&p->slots, w->pos, DEVICE_TOKENS * w->width, p->b->tokens, p->stream);
    p->launches++;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        run_patches(p, i, p->b->part[i].h, 0);
        struct gpu_gemm g = matmul_of(p, &part->embed, part->shape.tokens, p->b->part[i].patches);
        g.epilogue = NN_ADD_GATED;
        g.c = p->b->tokens + (size_t)part->shape.first_token * w->width;
        g.c_item = (size_t)DEVICE_TOKENS * w->width;
        run_matmul(p, &g);
    }
}

static void plan_temporal(struct plan *p, uint32_t layer)
{
    const struct module_weights *w = p->w;
    const struct module_block *block = &w->blocks[layer];
    norm(p, p->b->tokens, 0.0f, block->norm_weight, block->norm_bias, 0);
    matmul_floats(p, &block->tq, DEVICE_TOKENS, p->b->normed, p->b->query);
    size_t d = w->width;
    size_t matrix_bytes = DEVICE_TOKENS * d * sizeof(uint16_t);
    struct gpu_temporal t = {};
    t.q_type = GPU_F32;
    t.kv_type = GPU_BF16;
    t.items = p->slots.count;
    t.tokens = DEVICE_TOKENS;
    t.heads = t.kv_heads = w->width / SHAPE_HEAD;
    t.head_dim = SHAPE_HEAD;
    t.page_count = w->window;
    t.q = p->b->query;
    t.q_row = d;
    t.q_item = DEVICE_TOKENS * d;
    t.pages.arena = p->slots.arena;
    t.pages.page_bytes = p->slots.page_bytes;
    t.pages.k_offset = DEVICE_FRAME_BYTES + 2 * layer * matrix_bytes;
    t.pages.v_offset = t.pages.k_offset + matrix_bytes;
    t.pages.table = p->slots.table;
    t.pages.table_stride = w->window;
    t.kv_row = d;
    t.index = p->b->index;
    t.bias = block->tbias;
    t.bias_stride = w->window;
    t.null_k = block->null_k;
    t.null_v = block->null_v;
    t.out = p->b->mixed;
    t.out_row = d;
    t.out_item = DEVICE_TOKENS * d;
    t.active = p->slots.active;
    p->k->temporal(&t, p->stream);
    p->launches++;
    matmul_add(p, &block->to, p->b->mixed, NULL);
}

/* Within a frame: over all tokens, or over the BEV's and each camera's. */
static void plan_attention(struct plan *p, bool joint)
{
    size_t d = p->w->width;
    struct gpu_attention a = {};
    a.q_type = a.kv_type = GPU_F32;
    a.items = p->slots.count;
    a.heads = a.kv_heads = p->w->width / SHAPE_HEAD;
    a.head_dim = SHAPE_HEAD;
    a.range_count = joint ? 1 : 1 + SHAPE_CAMERAS;
    a.range[0] = {0, joint ? (uint32_t)DEVICE_TOKENS : (uint32_t)SHAPE_TOKENS_BEV};
    for (uint32_t i = 1; i < a.range_count; i++) {
        a.range[i] = {SHAPE_TOKENS_BEV + (i - 1) * SHAPE_TOKENS_CAMERA, SHAPE_TOKENS_CAMERA};
    }
    a.q = p->b->qkv;
    a.k = p->b->qkv + d;
    a.v = p->b->qkv + 2 * d;
    a.q_row = a.kv_row = 3 * d;
    a.q_item = a.kv_item = DEVICE_TOKENS * 3 * d;
    a.kv_tokens = DEVICE_TOKENS;
    a.cosine = p->b->cosine;
    a.sine = p->b->sine;
    a.rotary_item = (size_t)DEVICE_TOKENS * SHAPE_ROTARY;
    a.rotate_k = 1;
    a.out = p->b->mixed;
    a.out_row = d;
    a.out_item = DEVICE_TOKENS * d;
    a.active = p->slots.active;
    p->k->attention(&a, p->stream);
    p->launches++;
}

static void plan_layer(struct plan *p, uint32_t layer)
{
    const struct module_weights *w = p->w;
    const struct module_buffers *b = p->b;
    const struct module_block *block = &w->blocks[layer];
    size_t d = w->width;
    size_t stride = w->layers * 6 * d;
    const float *table = b->table + layer * 6 * d;
    norm(p, b->tokens, 1.0f, table, table + d, stride);
    matmul_floats(p, &block->qkv, DEVICE_TOKENS, b->normed, b->qkv);
    plan_attention(p, block->joint != 0);
    matmul_add(p, &block->o, b->mixed, table + 2 * d);
    plan_temporal(p, layer);
    norm(p, b->tokens, 1.0f, table + 3 * d, table + 4 * d, stride);
    matmul_act(p, &block->fc1, DEVICE_TOKENS, b->normed, NN_SILU_ACT, b->wide);
    matmul_add(p, &block->fc2, b->wide, table + 5 * d);
}

/* u = unembed(Y), back to positions */
static void plan_unembed(struct plan *p, uint32_t step)
{
    const struct module_weights *w = p->w;
    size_t d = w->width;
    const float *scale = p->b->mod + (size_t)step * w->mod.n + 6 * d;
    norm(p, p->b->tokens, 1.0f, scale, scale + d, (size_t)w->steps * w->mod.n);
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        struct gpu_gemm g = matmul_of(p, &part->unembed, part->shape.tokens,
                                      p->b->normed + part->shape.first_token * d);
        g.a_item = DEVICE_TOKENS * d;
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
    q.active = p->slots.active;
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
        e.weight = p->w->weight[step];
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

static void plan_step(struct plan *p, uint32_t step)
{
    const struct module_weights *w = p->w;
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
    f.channels = shape->channels;
    f.patch_channels = SHAPE_LATENT;
    f.arena = p->slots.arena;
    f.page_bytes = p->slots.page_bytes;
    f.offset = shape->first_element;
    f.page = p->slots.write;
    f.table = p->w->bytes;
    f.patches = p->b->part[part].patches;
    f.active = p->slots.active;
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
        g.c_item = DEVICE_TOKENS * d;
        run_matmul(p, &g);
    }
    norm(p, p->b->query, 1.0f, NULL, NULL, 0);
    matmul_act(p, &w->kv, DEVICE_TOKENS, p->b->normed, NN_STORE_ACT, p->b->kv);
    context_store_memory(&p->slots, p->b->kv, w->layers, w->width, p->stream);
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
    context_sums(&p.slots, p.b->counts, p.stream);
    context_agents(&p.slots, p.b->counts, p.stream);
    context_copy_frames(&p.slots, p.b->frames, p.stream);
    p.launches += 3;
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
