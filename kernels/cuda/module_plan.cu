/*
 * The launches of a tick, in the order of engine/model.md, and the buffers between them. The list
 * depends on the model's shape and the number of slots alone; which slots are active, and all that
 * a tick is about, the kernels read from the slots' records.
 */
#include "kernels/cuda/module.cuh"
#include "kernels/cuda/plain.h"

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

size_t module_buffers_place(const struct module_weights *w, uint32_t slot_count, void *memory,
                            struct module_buffers *out)
{
    struct carver c = {(uint8_t *)memory, 0, slot_count};
    size_t d = w->width;
    out->slots = (struct device_slot *)carve(&c, 1, sizeof(struct device_slot));
    out->maker = (struct device_slot *)carve(&c, 1, sizeof(struct device_slot));
    out->counts = (struct device_counts *)carve(&c, 1, sizeof(struct device_counts));
    out->layouts = (uint8_t *)carve(&c, DEVICE_FRAME_BYTES, 1);
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
    out->index = (int16_t *)carve_act(&c, (size_t)DEVICE_PAGES_MAX * DEVICE_TOKENS);
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

/* What every launch needs to know, and how many there were. */
struct plan {
    struct device_session *session;
    const struct module_weights *w;
    const struct module_buffers *b;
    struct context_slots slots;
    void *stream;
    uint32_t launches;
};

static struct plan plan_make(struct device_session *session)
{
    struct plan p = {};
    p.session = session;
    p.w = &session->weights;
    p.b = &session->buffers;
    p.slots.slots = session->buffers.slots;
    p.slots.count = session->options.slot_count;
    p.slots.arena = session->arena;
    p.slots.page_bytes = session->page_bytes;
    p.slots.layouts = session->buffers.layouts;
    p.stream = (void *)session->stream;
    return p;
}

/* A product of `rows` rows per slot that lie one after the other; the caller sets the epilogue. */
static struct plain_gemm product_of(const struct plan *p, const struct module_product *product,
                                    uint32_t rows, const uint16_t *a)
{
    struct plain_gemm g = {};
    g.slots = p->slots.slots;
    g.slot_count = p->slots.count;
    g.slot_rows = rows;
    g.n = product->n;
    g.k = product->k;
    g.a = a;
    g.a_stride = (size_t)rows * product->k;
    g.w = product->w;
    g.bias = product->bias;
    g.out_stride = (size_t)rows * product->n;
    return g;
}

static void run_product(struct plan *p, const struct plain_gemm *g)
{
    plain_gemm_launch(g, p->stream);
    p->launches++;
}

static void product_floats(struct plan *p, const struct module_product *product, uint32_t rows,
                           const uint16_t *a, float *c)
{
    struct plain_gemm g = product_of(p, product, rows, a);
    g.epilogue = PLAIN_STORE;
    g.c = c;
    run_product(p, &g);
}

static void product_act(struct plan *p, const struct module_product *product, uint32_t rows,
                        const uint16_t *a, enum plain_epilogue epilogue, uint16_t *out)
{
    struct plain_gemm g = product_of(p, product, rows, a);
    g.epilogue = epilogue;
    g.out = out;
    run_product(p, &g);
}

/* X += gate * product; gate NULL: none. */
static void product_add(struct plan *p, const struct module_product *product, const uint16_t *a,
                        const float *gate)
{
    struct plain_gemm g = product_of(p, product, DEVICE_TOKENS, a);
    g.epilogue = PLAIN_ADD;
    g.gate = gate;
    g.gate_stride = (size_t)p->w->layers * 6 * p->w->width;
    g.c = p->b->tokens;
    run_product(p, &g);
}

static void norm(struct plan *p, const float *x, float one, const float *scale, const float *shift,
                 size_t mod_stride)
{
    struct plain_norm n = {};
    n.slots = p->slots.slots;
    n.slot_count = p->slots.count;
    n.slot_rows = DEVICE_TOKENS;
    n.width = p->w->width;
    n.x = x;
    n.one = one;
    n.scale = scale;
    n.shift = shift;
    n.mod_stride = mod_stride;
    n.out = p->b->normed;
    plain_norm_launch(&n, p->stream);
    p->launches++;
}

static struct plain_conv conv_of(const struct plan *p, int part,
                                 const struct module_product *product, const uint16_t *in,
                                 uint32_t channels)
{
    struct plain_conv c = {};
    c.slots = p->slots.slots;
    c.slot_count = p->slots.count;
    c.part = p->w->part[part].shape;
    c.in_count = 1;
    c.in[0] = in;
    c.in_channels[0] = channels;
    c.out_channels = product->n;
    c.w = product->w;
    c.bias = product->bias;
    c.mod_stride = (size_t)p->w->steps * p->w->mod.n;
    return c;
}

static void run_conv(struct plan *p, const struct plain_conv *c)
{
    plain_conv_launch(c, p->stream);
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

static void plan_conditions(struct plan *p)
{
    const struct module_weights *w = p->w;
    const struct module_buffers *b = p->b;
    context_conditions(&p->slots, w->features, w->steps, b->cond, p->stream);
    product_act(p, &w->time1, w->steps, b->cond, PLAIN_SILU_ACT, b->hidden);
    product_act(p, &w->time2, w->steps, b->hidden, PLAIN_SILU_ACT, b->e); /* e = silu(c) */
    product_floats(p, &w->mod, w->steps, b->e, b->mod);
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

static void plan_context(struct plan *p)
{
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &p->w->part[i];
        const struct module_images *images = &p->b->part[i];
        context_fill(&p->slots, &part->shape, images->context, images->base, p->stream);
        context_noise(&p->slots, &part->shape, images->x, p->stream);
        context_latent(&p->slots, &part->shape, images->x, images->latent, p->stream);
        p->launches += 3;
        struct plain_conv c =
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
        struct plain_conv c = conv_of(p, i, &part->in, images->latent, SHAPE_LATENT);
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

static void run_patches(struct plan *p, int part, uint16_t *map, uint32_t back)
{
    struct plain_patches g = {};
    g.slots = p->slots.slots;
    g.slot_count = p->slots.count;
    g.part = p->w->part[part].shape;
    g.channels = p->w->part[part].channels;
    g.map = map;
    g.rows = p->b->part[part].patches;
    g.back = back;
    plain_patches_launch(&g, p->stream);
    p->launches++;
}

/* X = embed(patches of h) + pos */
static void plan_embed(struct plan *p)
{
    const struct module_weights *w = p->w;
    plain_start(p->slots.slots, p->slots.count, w->pos, DEVICE_TOKENS * w->width, p->b->tokens,
                p->stream);
    p->launches++;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        run_patches(p, i, p->b->part[i].h, 0);
        struct plain_gemm g =
            product_of(p, &part->embed, part->shape.tokens, p->b->part[i].patches);
        g.epilogue = PLAIN_ADD;
        g.c = p->b->tokens + (size_t)part->shape.first_token * w->width;
        g.out_stride = (size_t)DEVICE_TOKENS * w->width;
        run_product(p, &g);
    }
}

static void plan_temporal(struct plan *p, uint32_t layer)
{
    const struct module_weights *w = p->w;
    const struct module_block *block = &w->blocks[layer];
    norm(p, p->b->tokens, 0.0f, block->norm_weight, block->norm_bias, 0);
    product_floats(p, &block->tq, DEVICE_TOKENS, p->b->normed, p->b->query);
    struct plain_temporal t = {};
    t.slots = p->slots.slots;
    t.slot_count = p->slots.count;
    t.width = w->width;
    t.layer = layer;
    t.q = p->b->query;
    t.arena = p->slots.arena;
    t.page_bytes = p->slots.page_bytes;
    t.index = p->b->index;
    t.bias = block->tbias;
    t.bias_stride = w->window;
    t.null_k = block->null_k;
    t.null_v = block->null_v;
    t.out = p->b->mixed;
    plain_temporal_launch(&t, p->stream);
    p->launches++;
    product_add(p, &block->to, p->b->mixed, NULL);
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
    product_floats(p, &block->qkv, DEVICE_TOKENS, b->normed, b->qkv);
    struct plain_attention a = {};
    a.slots = p->slots.slots;
    a.slot_count = p->slots.count;
    a.width = w->width;
    a.joint = block->joint;
    a.qkv = b->qkv;
    a.cosine = b->cosine;
    a.sine = b->sine;
    a.out = b->mixed;
    plain_attention_launch(&a, p->stream);
    p->launches++;
    product_add(p, &block->o, b->mixed, table + 2 * d);
    plan_temporal(p, layer);
    norm(p, b->tokens, 1.0f, table + 3 * d, table + 4 * d, stride);
    product_act(p, &block->fc1, DEVICE_TOKENS, b->normed, PLAIN_SILU_ACT, b->wide);
    product_add(p, &block->fc2, b->wide, table + 5 * d);
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
        struct plain_gemm g = product_of(p, &part->unembed, part->shape.tokens,
                                         p->b->normed + part->shape.first_token * d);
        g.a_stride = DEVICE_TOKENS * d;
        g.epilogue = PLAIN_ACT;
        g.out = p->b->part[i].patches;
        run_product(p, &g);
        run_patches(p, i, p->b->part[i].u, 1);
    }
}

/* g, o, and the sampler's step on what it gave; the last step ends in bytes. */
static void plan_images_out(struct plan *p, uint32_t step)
{
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &p->w->part[i];
        const struct module_images *images = &p->b->part[i];
        struct plain_conv c = conv_of(p, i, &part->head, images->u, part->channels);
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
        struct plain_euler e = {};
        e.slots = p->slots.slots;
        e.slot_count = p->slots.count;
        e.part = part->shape;
        e.x = images->x;
        e.base = images->base;
        e.o = images->out;
        e.weight = p->w->weight[step];
        plain_euler_launch(&e, p->stream);
        p->launches++;
        if (step + 1 < p->w->steps) {
            context_latent(&p->slots, &part->shape, images->x, images->latent, p->stream);
            p->launches++;
            continue;
        }
        struct plain_quantise q = {};
        q.slots = p->slots.slots;
        q.slot_count = p->slots.count;
        q.part = part->shape;
        q.x = images->x;
        q.arena = p->slots.arena;
        q.page_bytes = p->slots.page_bytes;
        q.counts = p->b->counts;
        plain_quantise_launch(&q, p->stream);
        p->launches++;
    }
}

static void plan_step(struct plan *p, uint32_t step)
{
    const struct module_weights *w = p->w;
    plain_table(p->slots.slots, p->slots.count, p->b->mod + (size_t)step * w->mod.n,
                (size_t)w->steps * w->mod.n, w->table, w->layers, w->width, p->b->table, p->stream);
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

static void plan_memory(struct plan *p)
{
    const struct module_weights *w = p->w;
    size_t d = w->width;
    for (int i = 0; i < SHAPE_PARTS; i++) {
        const struct module_part *part = &w->part[i];
        uint16_t *patches = p->b->part[i].patches;
        context_frame_patches(&p->slots, &part->shape, patches, p->stream);
        p->launches++;
        struct plain_gemm g = product_of(p, &part->memory, part->shape.tokens, patches);
        g.epilogue = PLAIN_STORE;
        g.c = p->b->query + part->shape.first_token * d;
        g.out_stride = DEVICE_TOKENS * d;
        run_product(p, &g);
    }
    norm(p, p->b->query, 1.0f, NULL, NULL, 0);
    product_act(p, &w->kv, DEVICE_TOKENS, p->b->normed, PLAIN_ACT, p->b->kv);
    context_store_memory(&p->slots, p->b->kv, w->layers, w->width, p->stream);
    p->launches++;
}

uint32_t module_plan_memory(struct device_session *session, const struct context_slots *slots)
{
    struct plan p = plan_make(session);
    p.slots = *slots;
    plan_memory(&p);
    return p.launches;
}

uint32_t module_plan_tick(struct device_session *session)
{
    struct plan p = plan_make(session);
    size_t slots = session->options.slot_count;
    cudaMemcpyAsync(p.b->slots, session->host_slots, slots * sizeof *p.b->slots,
                    cudaMemcpyHostToDevice, session->stream);
    cudaMemcpyAsync(p.b->layouts, session->host_layouts, slots * DEVICE_FRAME_BYTES,
                    cudaMemcpyHostToDevice, session->stream);
    cudaMemsetAsync(p.b->counts, 0, slots * sizeof *p.b->counts, session->stream);
    plan_conditions(&p);
    plan_context(&p);
    for (uint32_t step = 0; step < p.w->steps; step++) {
        plan_step(&p, step);
    }
    context_copy_frames(&p.slots, p.b->frames, p.stream);
    p.launches++;
    plan_memory(&p);
    cudaMemcpyAsync(session->host_frames, p.b->frames, slots * DEVICE_FRAME_BYTES,
                    cudaMemcpyDeviceToHost, session->stream);
    cudaMemcpyAsync(session->host_counts, p.b->counts, slots * sizeof *p.b->counts,
                    cudaMemcpyDeviceToHost, session->stream);
    return p.launches;
}
