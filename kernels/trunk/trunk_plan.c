/*
 * The operations of a world step, in order: the formulas of trunk.h as a list.
 */
#include "kernels/trunk/trunk.h"

struct plan {
    const struct trunk *t;
    const struct trunk_config *c;
    const struct trunk_buffers *b;
    const struct trunk_weights *w;
    const struct trunk_sink *sink;
};

/* Places of numbers behind others of an array, which may not be placed yet. */
static uint16_t *behind(uint16_t *first, size_t count)
{
    return first != NULL ? first + count : NULL;
}

static const float *row(const float *table, size_t count)
{
    return table != NULL ? table + count : NULL;
}

static void say(const struct plan *p, const struct trunk_op *op)
{
    p->sink->take(p->sink->context, op);
}

/* out = a w, bf16 or float. */
static void say_matmul(const struct plan *p, const struct trunk_matmul *w, uint32_t rows,
                       const void *a, const float *a_scale, void *out, bool to_float)
{
    const struct gpu_gemm call = {.type = w->type,
                                  .epilogue = to_float ? NN_STORE : NN_STORE_ACT,
                                  .items = 1,
                                  .rows = rows,
                                  .n = w->n,
                                  .k = w->k,
                                  .a = a,
                                  .lda = w->k,
                                  .b = w->w,
                                  .a_scale = a_scale,
                                  .b_scale = w->scale,
                                  .c = to_float ? (float *)out : NULL,
                                  .out = to_float ? NULL : out,
                                  .ldc = w->n,
                                  .wgmma = p->t->wgmma};
    say(p, &(struct trunk_op){.kind = TRUNK_MATMUL, .name = w->name, .matmul = call});
}

/* A norm's modulation: rows of a table, or weights. */
struct modulation {
    float one;
    const float *scale, *shift;
};

/* tokens += gate * y, and normed of that type; the first of a step adds to the positions. */
static void say_residual(const struct plan *p, bool first, const float *gate, struct modulation m,
                         enum gpu_type type)
{
    const struct gpu_residual call = {.rows = p->t->tokens,
                                      .width = p->c->width,
                                      .in_type = first ? GPU_F32 : p->c->stream,
                                      .x_type = p->c->stream,
                                      .x_in = first ? p->w->pos : p->b->tokens,
                                      .x = p->b->tokens,
                                      .y = p->b->y,
                                      .gate = gate,
                                      .one = m.one,
                                      .scale = m.scale,
                                      .shift = m.shift,
                                      .group_rows = p->t->tokens,
                                      .out_type = type,
                                      .out = p->b->normed,
                                      .row_scale = p->b->normed_scale};
    say(p, &(struct trunk_op){.kind = TRUNK_RESIDUAL, .residual = call});
}

/* y = w x: in fp8 x [T][w.k] is quantised first; with silu it is applied on the way. */
static void say_activated(const struct plan *p, const struct trunk_matmul *w, uint16_t *x,
                          bool silu)
{
    const bool fp8 = w->type == GPU_E4M3;
    if (fp8 || silu) {
        const struct gpu_activate call = {.rows = p->t->tokens,
                                          .width = w->k,
                                          .x = x,
                                          .silu = silu,
                                          .out_type = fp8 ? GPU_E4M3 : GPU_BF16,
                                          .out = fp8 ? p->b->packed : x,
                                          .row_scale = p->b->packed_scale};
        say(p, &(struct trunk_op){.kind = TRUNK_ACTIVATE, .activate = call});
    }
    say_matmul(p, w, p->t->tokens, fp8 ? p->b->packed : x, p->b->packed_scale, p->b->y, false);
}

static void say_all_to_all(const struct plan *p, const void *send, void *receive, size_t bytes_each)
{
    say(p, &(struct trunk_op){.kind = TRUNK_ALL_TO_ALL, .all_to_all = {send, receive, bytes_each}});
}

static void say_heads_out(const struct plan *p, uint32_t heads, const uint16_t *in)
{
    const struct gpu_heads_out call = {p->t->ranks,    p->t->tokens, heads,     p->c->kv_heads,
                                       p->c->head_dim, in,           p->b->sent};
    say(p, &(struct trunk_op){.kind = TRUNK_HEADS_OUT, .heads_out = call});
}

/* ---- attention within a frame ---- */

/* Some heads of this rank's share, of all tokens: once, not once per tile of queries. */
static void say_rotate(const struct plan *p, uint16_t *first, uint32_t heads, size_t stride)
{
    const struct gpu_rotate call = {.rows = p->t->all_tokens,
                                    .heads = heads / p->t->ranks,
                                    .head_dim = p->c->head_dim,
                                    .width = heads / p->t->ranks * p->c->head_dim,
                                    .type = GPU_BF16,
                                    .x = first,
                                    .row = stride,
                                    .out = first,
                                    .cosine = p->w->cosine,
                                    .sine = p->w->sine};
    say(p, &(struct trunk_op){.kind = TRUNK_ROTATE, .rotate = call});
}

/* Queries of a share of the heads, all tokens; rows of qkv have that share side by side. */
static struct gpu_attention queries_of(const struct plan *p, const uint16_t *qkv, uint16_t *out)
{
    const uint32_t heads = p->c->heads / p->t->ranks;
    const uint32_t kv_heads = p->c->kv_heads / p->t->ranks;
    return (struct gpu_attention){.items = 1,
                                  .heads = heads,
                                  .kv_heads = kv_heads,
                                  .head_dim = p->c->head_dim,
                                  .q = qkv,
                                  .q_row = (size_t)(heads + 2 * kv_heads) * p->c->head_dim,
                                  .kv_tokens = p->t->all_tokens,
                                  .wgmma = p->t->wgmma,
                                  .out = out,
                                  .out_row = (size_t)heads * p->c->head_dim};
}

/* Attention of a share of the heads within views, or over all tokens. */
static void say_ranges(const struct plan *p, uint32_t layer, uint16_t *qkv, uint16_t *out)
{
    struct trunk_op op = {.kind = TRUNK_ATTENTION, .attention = queries_of(p, qkv, out)};
    struct gpu_attention *a = &op.attention;
    uint16_t *keys = behind(qkv, (size_t)a->heads * p->c->head_dim);
    say_rotate(p, qkv, p->c->heads + p->c->kv_heads, a->q_row);
    a->k = keys;
    a->v = behind(keys, (size_t)a->kv_heads * p->c->head_dim);
    a->kv_row = a->q_row;
    if (trunk_layer_joint(p->c, layer)) {
        a->range[a->range_count++] = (struct gpu_range){0, p->t->all_tokens};
    } else {
        for (uint32_t view = 0; view <= p->c->view_count; view++) {
            const struct gpu_grid grid = trunk_grid(p->c, view);
            a->range[a->range_count++] = (struct gpu_range){grid.first, grid.rows * grid.cols};
        }
    }
    say(p, &op);
}

/* Place of a layer's keys and values in the pages. */
static struct gpu_pages pages_of(const struct plan *p, uint32_t layer)
{
    const struct gpu_page_store *page = &p->t->page;
    const size_t offset = layer * p->t->layer_bytes;
    return (struct gpu_pages){.arena = page->arena,
                              .page_bytes = page->page_bytes,
                              .k_offset = page->k_offset + offset,
                              .v_offset = page->v_offset + offset,
                              .k_scale_offset = page->k_scale_offset + offset,
                              .v_scale_offset = page->v_scale_offset + offset,
                              .table = p->b->inputs != NULL ? p->b->inputs->table
                                                            : NULL, /* an address, not read here */
                              .table_stride = GPU_PAGES_MAX};
}

/* Attention within windows of each view, present and past. */
static void say_windows(const struct plan *p, uint32_t layer, uint16_t *qkv, uint16_t *out)
{
    const size_t kv = (size_t)p->c->kv_heads * p->c->head_dim;
    struct trunk_op op = {.kind = TRUNK_ATTENTION, .attention = queries_of(p, qkv, out)};
    struct gpu_attention *a = &op.attention;
    a->k = behind(qkv, (size_t)a->heads * p->c->head_dim);
    a->v = behind(qkv, (size_t)a->heads * p->c->head_dim + kv);
    a->kv_row = a->q_row;
    say_rotate(p, qkv, p->c->heads + p->c->kv_heads, a->q_row);
    const struct gpu_gather call = {.items = 1,
                                    .tokens = p->t->all_tokens,
                                    .heads = p->c->kv_heads,
                                    .head_dim = p->c->head_dim,
                                    .page_count = p->c->past,
                                    .pages = pages_of(p, layer),
                                    .type = p->t->page.type,
                                    .cosine = p->w->cosine,
                                    .sine = p->w->sine,
                                    .out = p->b->past};
    if (p->c->past > 0) {
        say(p, &(struct trunk_op){.kind = TRUNK_GATHER, .gather = call});
    }
    a->past = (struct gpu_past){.k = p->b->past,
                                .v = behind(p->b->past, kv),
                                .row = 2 * kv,
                                .table = call.pages.table,
                                .stride = call.pages.table_stride};
    for (uint32_t view = 0; view <= p->c->view_count; view++) {
        a->grid = trunk_grid(p->c, view);
        say(p, &op);
    }
}

static void say_attention(const struct plan *p, uint32_t layer, uint16_t *qkv, uint16_t *out)
{
    (trunk_layer_window(p->c, layer) ? say_windows : say_ranges)(p, layer, qkv, out);
}

/* From qkv to mixed: all heads of this rank's tokens. */
static void say_spatial(const struct plan *p, uint32_t layer)
{
    const struct trunk_config *c = p->c;
    const struct trunk_buffers *b = p->b;
    const uint32_t tokens = p->t->tokens;
    if (!p->t->exchanged) {
        say_attention(p, layer, b->qkv, b->mixed);
        return;
    }
    const size_t token_bytes = (size_t)c->head_dim * 2 / p->t->ranks;
    say_heads_out(p, c->heads, b->qkv);
    say_all_to_all(p, b->sent, b->given, (c->heads + 2 * c->kv_heads) * token_bytes * tokens);
    say_attention(p, layer, b->given, b->mixed_all);
    say_all_to_all(p, b->mixed_all, b->sent, c->heads * token_bytes * tokens);
    const struct gpu_heads_in call = {p->t->ranks, tokens,  c->heads,
                                      c->head_dim, b->sent, b->mixed};
    say(p, &(struct trunk_op){.kind = TRUNK_HEADS_IN, .heads_in = call});
}

/* ---- a layer ---- */

static void say_temporal(const struct plan *p, uint32_t layer)
{
    const struct trunk_config *c = p->c;
    const size_t width = (size_t)c->heads * c->head_dim;
    const struct gpu_temporal call = {.q_type = GPU_BF16,
                                      .kv_type = p->t->page.type,
                                      .items = 1,
                                      .tokens = p->t->tokens,
                                      .heads = c->heads,
                                      .kv_heads = c->kv_heads,
                                      .head_dim = c->head_dim,
                                      .page_count = c->window,
                                      .q = p->b->query,
                                      .q_row = width,
                                      .pages = pages_of(p, layer),
                                      .kv_row = (size_t)c->kv_heads * c->head_dim,
                                      .bias = p->w->block[layer].bias,
                                      .bias_stride = c->window,
                                      .out = p->b->mixed,
                                      .out_row = width};
    say(p, &(struct trunk_op){
               .kind = TRUNK_TEMPORAL, .own_keys = c->patch != 0 ? 1 : 0, .temporal = call});
}

/* `after`: of the norm behind the layer. */
static void say_layer(const struct plan *p, uint32_t layer, struct modulation after,
                      enum gpu_type after_type)
{
    const struct trunk_buffers *b = p->b;
    const struct trunk_block *w = &p->w->block[layer];
    const enum gpu_type type = trunk_layer_type(p->c, layer);
    const uint32_t tokens = p->t->tokens;
    const size_t d = p->c->width;
    const float *table = row(b->table, layer * 6 * d);
    say_matmul(p, &w->qkv, tokens, b->normed, b->normed_scale, b->qkv, false);
    say_spatial(p, layer);
    say_activated(p, &w->o, b->mixed, false);
    const struct modulation feed = {1.0f, row(table, 3 * d), row(table, 4 * d)};
    if (trunk_layer_window(p->c, layer)) { /* has seen the past already */
        say_residual(p, false, row(table, 2 * d), feed, type);
    } else {
        const struct modulation past = {0.0f, w->norm_weight, w->norm_bias};
        say_residual(p, false, row(table, 2 * d), past, type);
        say_matmul(p, &w->tq, tokens, b->normed, b->normed_scale, b->query, false);
        say_temporal(p, layer);
        say_activated(p, &w->to, b->mixed, false);
        say_residual(p, false, NULL, feed, type);
    }
    say_matmul(p, &w->fc1, tokens, b->normed, b->normed_scale, b->wide, false);
    say_activated(p, &w->fc2, b->wide, true);
    say_residual(p, false, row(table, 5 * d), after, after_type);
}

/* ---- around the layers ---- */

static void say_convert(const struct plan *p, const void *x, enum gpu_type type, size_t count,
                        uint16_t *out, bool silu)
{
    const struct gpu_convert call = {count, x, type, GPU_BF16, out, silu};
    say(p, &(struct trunk_op){.kind = TRUNK_CONVERT, .convert = call});
}

/* x of the frame, as the network reads it. */
static void say_latents(const struct plan *p)
{
    say_convert(p, p->b->x, GPU_F32, (size_t)p->t->tokens * p->c->latent, p->b->x_act, false);
}

static void say_euler(const struct plan *p, size_t positions, uint32_t channels, uint32_t o_stride,
                      uint32_t step)
{
    const struct gpu_euler call = {.positions = positions,
                                   .channels = channels,
                                   .o_stride = o_stride,
                                   /* steps of equal length */
                                   .weight = 1.0f / (float)(p->c->steps - step),
                                   .x = p->b->x,
                                   .base = p->b->base,
                                   .o = p->b->out};
    say(p, &(struct trunk_op){.kind = TRUNK_EULER, .euler = call});
}

/* A convolution of a served model's maps, which lie with the module that runs it
 * (kernels/cuda/module): in, of one map or of two alike. */
static void say_conv(const struct plan *p, int part, const struct trunk_matmul *w,
                     uint32_t channels, uint32_t maps)
{
    const struct trunk_maps *m = &p->c->maps[part];
    const struct gpu_conv call = {.type = GPU_BF16,
                                  .slots = 1,
                                  .images = m->images,
                                  .rows = m->rows,
                                  .cols = m->cols,
                                  .in_count = maps,
                                  .in_channels = {channels, maps > 1 ? channels : 0},
                                  .out_channels = w->n,
                                  .w = w->w};
    say(p, &(struct trunk_op){.kind = TRUNK_CONV, .name = w->name, .conv = call});
}

/* Patches of a map as rows, or back. */
static void say_patches(const struct plan *p, int part, uint32_t channels, bool back)
{
    const struct trunk_maps *m = &p->c->maps[part];
    const struct gpu_patches call = {.slots = 1,
                                     .images = m->images,
                                     .rows = m->rows,
                                     .cols = m->cols,
                                     .patch = p->c->patch,
                                     .channels = channels,
                                     .element_bytes = 2,
                                     .back = back};
    say(p, &(struct trunk_op){.kind = TRUNK_PATCHES, .patches = call});
}

/* Tokens of a part of a served model. */
static uint32_t part_tokens(const struct plan *p, int part)
{
    const struct trunk_maps *m = &p->c->maps[part];
    return m->images * m->rows * m->cols / (p->c->patch * p->c->patch) / p->t->ranks;
}

/* Noise, and the modulations of all steps. */
static void say_start(const struct plan *p)
{
    const struct trunk_config *c = p->c;
    const struct trunk_buffers *b = p->b;
    const struct trunk_weights *w = p->w;
    const size_t count = (size_t)c->steps * c->width;
    if (c->patch == 0) {
        const struct gpu_noise call = {.slots = 1,
                                       .count = p->t->tokens * c->latent,
                                       .first = p->t->rank * p->t->tokens * c->latent,
                                       .keys = b->inputs != NULL ? &b->inputs->seed : NULL,
                                       .ticks = b->inputs != NULL ? &b->inputs->tick : NULL,
                                       .out = b->x};
        say(p, &(struct trunk_op){.kind = TRUNK_NOISE, .noise = call});
        say_latents(p);
    }
    say_matmul(p, &w->time1, c->steps, w->features, NULL, b->hidden, false);
    say_convert(p, b->hidden, GPU_BF16, count, b->hidden, true);
    say_matmul(p, &w->time2, c->steps, b->hidden, NULL, b->e, false);
    say_convert(p, b->e, GPU_BF16, count, b->e, true);
    say_matmul(p, &w->ada, c->steps, b->e, NULL, b->ada, true);
    say_matmul(p, &w->final, c->steps, b->e, NULL, b->final, true);
    for (int part = 0; c->patch != 0 && part < TRUNK_PARTS; part++) {
        const struct trunk_maps *m = &c->maps[part];
        say_matmul(p, &w->part[part].mod, c->steps, b->e, NULL, NULL, true);
        const struct gpu_noise call = {.slots = 1,
                                       .count = m->images * m->rows * m->cols * m->latents};
        say(p, &(struct trunk_op){.kind = TRUNK_NOISE, .noise = call});
        say_conv(p, part, &w->part[part].ctx, m->context_channels, 1);
    }
}

/* y = embed of the frame's tokens. */
static void say_embed(const struct plan *p)
{
    if (p->c->patch == 0) {
        say_matmul(p, &p->w->embed, p->t->tokens, p->b->x_act, NULL, p->b->y, false);
        return;
    }
    for (int part = 0; part < TRUNK_PARTS; part++) {
        const struct trunk_part *w = &p->w->part[part];
        const struct trunk_maps *m = &p->c->maps[part];
        say_conv(p, part, &w->in, m->latents_padded, 1);
        say_conv(p, part, &w->mid, m->channels, 1);
        say_patches(p, part, m->channels, false);
        say_matmul(p, &w->embed, part_tokens(p, part), NULL, NULL, p->b->y, false);
    }
}

/* The sampler's step on what the tokens say. */
static void say_unembed(const struct plan *p, uint32_t step)
{
    if (p->c->patch == 0) {
        say_matmul(p, &p->w->unembed, p->t->tokens, p->b->normed, NULL, p->b->out, true);
        say_euler(p, p->t->tokens, p->c->latent, p->c->latent, step);
        say_latents(p);
        return;
    }
    for (int part = 0; part < TRUNK_PARTS; part++) {
        const struct trunk_part *w = &p->w->part[part];
        const struct trunk_maps *m = &p->c->maps[part];
        const size_t positions = (size_t)m->images * m->rows * m->cols;
        say_matmul(p, &w->unembed, part_tokens(p, part), p->b->normed, NULL, NULL, false);
        say_patches(p, part, m->channels, true);
        say_conv(p, part, &w->head, m->channels, 2);
        say_conv(p, part, &w->out, m->channels, 1);
        say_euler(p, positions, m->latents, m->latents_padded, step);
        say_convert(p, NULL, GPU_F32, positions * m->latents, NULL, false);
    }
}

static void say_step(const struct plan *p, uint32_t step)
{
    const struct trunk_config *c = p->c;
    const struct trunk_buffers *b = p->b;
    const size_t d = c->width;
    const float *final = row(b->final, step * 2 * d);
    const struct gpu_table call = {.slots = 1,
                                   .layers = c->layers,
                                   .width = 6 * c->width,
                                   .ada = row(b->ada, step * 6 * d),
                                   .own = p->w->table,
                                   .out = b->table};
    say(p, &(struct trunk_op){.kind = TRUNK_TABLE, .table = call});
    say_embed(p);
    const struct modulation first = {1.0f, b->table, row(b->table, d)};
    say_residual(p, true, NULL, first, trunk_layer_type(c, 0));
    for (uint32_t layer = 0; layer < c->layers; layer++) {
        const bool last = layer + 1 == c->layers;
        const float *next = last ? final : row(b->table, (layer + 1) * 6 * d);
        say_layer(p, layer, (struct modulation){1.0f, next, row(next, d)},
                  last ? GPU_BF16 : trunk_layer_type(c, layer + 1));
    }
    say_unembed(p, step);
}

/* ---- the page ---- */

static void say_norm(const struct plan *p, enum gpu_type type, void *out, float *row_scale)
{
    const struct gpu_norm call = {.rows = p->t->tokens,
                                  .width = p->c->width,
                                  .x = p->b->y,
                                  .x_type = GPU_BF16,
                                  .one = 1.0f,
                                  .out_type = type,
                                  .out = out,
                                  .row_scale = row_scale};
    say(p, &(struct trunk_op){.kind = TRUNK_NORM, .norm = call});
}

/* A layer's keys and values of the frame, in b->kv, to its page. */
static void say_store(const struct plan *p, uint32_t layer)
{
    const size_t offset = layer * p->t->layer_bytes;
    struct trunk_op op = {.kind = TRUNK_PAGE_STORE, .page_store = p->t->page};
    struct gpu_page_store *s = &op.page_store;
    s->kv = p->b->kv;
    s->k_offset += offset;
    s->v_offset += offset;
    s->k_scale_offset += offset;
    s->v_scale_offset += offset;
    s->page = p->b->inputs != NULL ? &p->b->inputs->write_page : NULL;
    say(p, &op);
}

/* y = memory of the frame's tokens. */
static void say_memory(const struct plan *p)
{
    if (p->c->patch == 0) {
        say_matmul(p, &p->w->memory, p->t->tokens, p->b->x_act, NULL, p->b->y, false);
        return;
    }
    for (int part = 0; part < TRUNK_PARTS; part++) {
        say_patches(p, part, p->c->maps[part].latents_padded, false);
        say_matmul(p, &p->w->part[part].memory, part_tokens(p, part), NULL, NULL, p->b->y, false);
    }
}

/* The frame's keys and values to its page. */
static void say_commit(const struct plan *p)
{
    const struct trunk_config *c = p->c;
    const struct trunk_buffers *b = p->b;
    say_memory(p);
    say_norm(p, GPU_BF16, b->normed, NULL);
    if (c->type == GPU_E4M3) {
        say_norm(p, GPU_E4M3, b->packed, b->packed_scale);
    }
    for (uint32_t layer = 0; layer < c->layers; layer++) {
        const struct trunk_matmul *w = &p->w->block[layer].kv;
        const bool fp8 = w->type == GPU_E4M3;
        say_matmul(p, w, p->t->tokens, fp8 ? b->packed : b->normed, b->packed_scale, b->kv, false);
        say_store(p, layer);
    }
}

void trunk_plan(const struct trunk *trunk, const struct trunk_sink *sink)
{
    const struct plan p = {trunk, &trunk->config, &trunk->buffers, &trunk->weights, sink};
    say_start(&p);
    for (uint32_t step = 0; step < trunk->config.steps; step++) {
        say_step(&p, step);
    }
    say_commit(&p);
}
