/*
 * Configurations of a trunk, their checks, and where its arrays lie: weights, buffers, pages. See
 * trunk.h. An array is placed where it is counted, so sizes and addresses cannot differ.
 */
#include "kernels/trunk/trunk.h"

#include <stdio.h>
#include <string.h>

/* Views of 45 x 80 are 720p in patches of 16 x 16 pixels, the BEV has 32 x 64; every fourth layer
 * of a large model is joint. The teacher is a model of 30 G parameters in 30 steps. */
/* clang-format off */
static const struct trunk_config configs[] = {
    {"student-3b", 3072, 28, 24, 8, 128, 9216, 64, 256, 3, 45, 80, 32, 64, 12, 4, 0x8888888, 0, 0, GPU_E4M3, 0, 0, {{0}}, GPU_BF16, GPU_F32},
    {"teacher-30b", 6144, 62, 48, 8, 128, 24576, 64, 256, 3, 45, 80, 32, 64, 12, 30, 0x888888888888888, 0, 0, GPU_E4M3, 1, 0, {{0}}, GPU_F32, GPU_F32},
    {"toy", 64, 3, 4, 2, 32, 96, 32, 32, 2, 1, 11, 2, 5, 3, 2, 2, 0, 0, GPU_E4M3, 1, 0, {{0}}, GPU_F32, GPU_F32},
    {"toy-128", 64, 3, 3, 1, 128, 96, 32, 32, 2, 1, 11, 2, 5, 3, 2, 2, 0, 0, GPU_E4M3, 1, 0, {{0}}, GPU_F32, GPU_F32},
};
/* clang-format on */

const struct trunk_config *trunk_config_find(const char *name)
{
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        if (strcmp(configs[i].name, name) == 0) {
            return &configs[i];
        }
    }
    return NULL;
}

/* ---- arrays ---- */

/* Places arrays one after the other from base, or only counts while base is NULL. */
struct carver {
    uint8_t *base;
    size_t used;
    double parameters;
    bool biased; /* products have a bias each */
};

static void *take(struct carver *at, size_t bytes)
{
    void *out = at->base != NULL ? at->base + at->used : NULL;
    at->used += (bytes + 255) / 256 * 256;
    return out;
}

static float *take_floats(struct carver *at, size_t count)
{
    return (float *)take(at, count * sizeof(float));
}

static uint16_t *take_acts(struct carver *at, size_t count)
{
    return (uint16_t *)take(at, count * sizeof(uint16_t));
}

/* The same, and they are parameters. */
static float *take_weights(struct carver *at, size_t count)
{
    at->parameters += (double)count;
    return take_floats(at, count);
}

static struct trunk_matmul take_matmul(struct carver *at, const char *name, enum gpu_type type,
                                       uint32_t n, uint32_t k)
{
    struct trunk_matmul out = {name, n, k, type, NULL, NULL};
    at->parameters += (double)n * k;
    out.w = take(at, (size_t)n * k * trunk_type_bytes(type));
    if (type == GPU_E4M3) {
        out.scale = take_floats(at, n);
    }
    if (at->biased) {
        take_weights(at, n);
    }
    return out;
}

static void place_block(struct trunk *t, struct carver *at, uint32_t layer)
{
    const struct trunk_config *c = &t->config;
    struct trunk_block *b = &t->weights.block[layer];
    const enum gpu_type type = trunk_layer_type(c, layer);
    const uint32_t d = c->width;
    const uint32_t h = c->heads * c->head_dim;
    const uint32_t kv = c->kv_heads * c->head_dim;
    b->qkv = take_matmul(at, "qkv", type, h + 2 * kv, d);
    b->o = take_matmul(at, "o", type, d, h);
    b->fc1 = take_matmul(at, "fc1", type, c->hidden, d);
    b->fc2 = take_matmul(at, "fc2", type, d, c->hidden);
    b->kv = take_matmul(at, "kv", type, 2 * kv, d);
    if (trunk_layer_window(c, layer)) {
        return;
    }
    b->tq = take_matmul(at, "tq", type, h, d);
    b->to = take_matmul(at, "to", type, d, h);
    b->norm_weight = take_weights(at, d);
    b->norm_bias = take_weights(at, d);
    b->bias = take_weights(at, (size_t)c->heads * c->window);
    if (c->patch != 0) {
        take_weights(at, 2 * kv); /* the key and the value beside the pages */
    }
}

/* Around the layers of a served model (engine/model.md, "Tensors"). */
static void place_part(struct trunk *t, struct carver *at, int which)
{
    static const char *const names[TRUNK_PARTS][9] = {
        {"bev.mod", "bev.ctx", "bev.in", "bev.mid", "bev.embed", "bev.unembed", "bev.head",
         "bev.out", "bev.memory"},
        {"cam.mod", "cam.ctx", "cam.in", "cam.mid", "cam.embed", "cam.unembed", "cam.head",
         "cam.out", "cam.memory"}};
    const struct trunk_maps *m = &t->config.maps[which];
    struct trunk_part *p = &t->weights.part[which];
    const uint32_t d = t->config.width;
    const uint32_t positions = t->config.patch * t->config.patch;
    const struct {
        struct trunk_matmul *out;
        uint32_t n, k;
    } all[] = {
        {&p->mod, 4 * m->channels, d},
        {&p->ctx, m->channels, 9 * m->context_channels},
        {&p->in, m->channels, 9 * m->latents_padded},
        {&p->mid, m->channels, 9 * m->channels},
        {&p->embed, d, positions * m->channels},
        {&p->unembed, positions * m->channels, d},
        {&p->head, m->channels, 9 * 2 * m->channels},
        {&p->out, m->latents_padded, 9 * m->channels},
        {&p->memory, d, positions * m->latents_padded},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        *all[i].out = take_matmul(at, names[which][i], GPU_BF16, all[i].n, all[i].k);
    }
}

static void place_weights(struct trunk *t, void *base)
{
    const struct trunk_config *c = &t->config;
    struct trunk_weights *w = &t->weights;
    struct carver at = {(uint8_t *)base, 0, 0.0, c->patch != 0};
    const uint32_t d = c->width;
    w->time1 = take_matmul(&at, "time1", GPU_BF16, d, c->features);
    w->time2 = take_matmul(&at, "time2", GPU_BF16, d, d);
    w->ada = take_matmul(&at, "ada", GPU_BF16, 6 * d, d);
    w->final = take_matmul(&at, "final", GPU_BF16, 2 * d, d);
    if (c->patch == 0) {
        w->embed = take_matmul(&at, "embed", GPU_BF16, d, c->latent);
        w->unembed = take_matmul(&at, "unembed", GPU_BF16, c->latent, d);
        w->memory = take_matmul(&at, "memory", GPU_BF16, d, c->latent);
    }
    for (int part = 0; c->patch != 0 && part < TRUNK_PARTS; part++) {
        place_part(t, &at, part);
    }
    w->table = take_weights(&at, (size_t)c->layers * 6 * d);
    w->pos = take_floats(&at, (size_t)t->tokens * d); /* a rank's own, of all that there are */
    at.parameters += (double)t->all_tokens * d;
    w->features = take_acts(&at, (size_t)c->steps * c->features);
    w->cosine = take_floats(&at, (size_t)t->all_tokens * c->head_dim / 2);
    w->sine = take_floats(&at, (size_t)t->all_tokens * c->head_dim / 2);
    for (uint32_t layer = 0; layer < c->layers; layer++) {
        place_block(t, &at, layer);
    }
    t->weight_bytes = at.used;
    t->parameters = at.parameters;
}

/* Maps of a served model: as many as the launches need at once (module.cuh, struct module_images).
 */
static void place_maps(const struct trunk *t, struct carver *at)
{
    for (int part = 0; t->config.patch != 0 && part < TRUNK_PARTS; part++) {
        const struct trunk_maps *m = &t->config.maps[part];
        const size_t positions = (size_t)m->images * m->rows * m->cols;
        const size_t bordered = (size_t)m->images * (m->rows + 2) * (m->cols + 2);
        take_acts(at, bordered * (m->context_channels + m->latents_padded + 4 * m->channels));
        take_floats(at, positions * (m->channels + m->latents_padded + 2 * m->latents));
        take_acts(at,
                  positions * (m->channels > m->latents_padded ? m->channels : m->latents_padded));
    }
}

static void place_buffers(struct trunk *t, void *base)
{
    const struct trunk_config *c = &t->config;
    struct trunk_buffers *b = &t->buffers;
    struct carver at = {(uint8_t *)base, 0, 0.0, false};
    const size_t n = t->tokens;
    const size_t d = c->width;
    const size_t h = (size_t)c->heads * c->head_dim;
    const size_t kv = (size_t)c->kv_heads * c->head_dim;
    const size_t widest = h > d ? h : d;
    b->x = take_floats(&at, n * c->latent);
    b->base = take_floats(&at, n * c->latent);
    b->x_act = take_acts(&at, n * c->latent);
    b->out = take_floats(&at, n * c->latent);
    place_maps(t, &at);
    b->tokens = take(&at, n * d * trunk_type_bytes(c->stream));
    b->normed = take(&at, n * d * 2);
    b->packed = take(&at, n * (c->hidden > widest ? c->hidden : widest));
    b->normed_scale = take_floats(&at, n);
    b->packed_scale = take_floats(&at, n);
    b->qkv = take_acts(&at, n * (h + 2 * kv));
    if (t->exchanged) {
        b->sent = take_acts(&at, n * (h + 2 * kv));
        b->given = take_acts(&at, n * (h + 2 * kv));
        b->mixed_all = take_acts(&at, n * h);
    }
    b->mixed = take_acts(&at, n * h);
    b->y = take_acts(&at, n * d);
    b->query = take_acts(&at, n * h);
    b->wide = take_acts(&at, n * c->hidden);
    b->kv = take_acts(&at, n * 2 * kv);
    if (c->reach != 0) {
        b->past = take_acts(&at, c->past * t->all_tokens * 2 * kv);
    }
    b->hidden = take_acts(&at, c->steps * d);
    b->e = take_acts(&at, c->steps * d);
    b->ada = take_floats(&at, c->steps * 6 * d);
    b->final = take_floats(&at, c->steps * 2 * d);
    b->table = take_floats(&at, c->layers * 6 * d);
    b->inputs = (struct trunk_inputs *)take(&at, sizeof(struct trunk_inputs));
    t->workspace_bytes = at.used;
}

/* A page: the frame's bytes where the model is served, then its memory. */
static void place_page(struct trunk *t)
{
    const struct trunk_config *c = &t->config;
    const enum gpu_type type = c->pages != 0 ? c->pages : c->type;
    const struct page_shape shape = {c->layers, t->tokens, c->kv_heads, c->head_dim,
                                     (uint32_t)trunk_type_bytes(type)};
    const struct page_layout layout = page_layout_of(&shape);
    const size_t frame = c->patch != 0 ? DEVICE_FRAME_BYTES : 0;
    t->page.rows = t->tokens;
    t->page.heads = c->kv_heads;
    t->page.head_dim = c->head_dim;
    t->page.kv_row = (size_t)2 * c->kv_heads * c->head_dim;
    t->page.type = type;
    t->page.k_offset = frame + layout.k;
    t->page.v_offset = frame + layout.v;
    t->page.k_scale_offset = frame + layout.k_scale;
    t->page.v_scale_offset = frame + layout.v_scale;
    t->page.page_bytes = frame + layout.memory_bytes;
    t->layer_bytes = layout.layer_bytes;
}

void trunk_place(struct trunk *t, void *weights, void *workspace)
{
    place_weights(t, weights);
    place_buffers(t, workspace);
}

/* ---- checks ---- */

int trunk_ranks_check(uint32_t ranks, uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                      struct device_text *why)
{
    if (ranks == 0 || ranks > DEVICE_RANKS_MAX) {
        snprintf(why->text, sizeof why->text, "ranks: expected 1 to %d, found %u", DEVICE_RANKS_MAX,
                 ranks);
        return DEVICE_FAULT_INPUT;
    }
    if (tokens % ranks != 0 || heads % ranks != 0 || kv_heads % ranks != 0) {
        snprintf(
            why->text, sizeof why->text,
            "ranks: expected a divisor of %u tokens, %u heads and %u key/value heads, found %u",
            tokens, heads, kv_heads, ranks);
        return DEVICE_FAULT_INPUT;
    }
    return DEVICE_OK;
}

static const char *wrong_of(const struct trunk_config *c)
{
    if (c->layers == 0 || c->layers > TRUNK_LAYERS_MAX) {
        return "layers are not 1 to 64";
    }
    if (c->steps == 0 || c->steps > TRUNK_STEPS_MAX) {
        return "steps are not 1 to 64";
    }
    if (c->window > GPU_PAGES_MAX) {
        return "the window is over 16 pages";
    }
    if (c->width % 32 != 0 || c->width > 6144 || c->hidden % 32 != 0 || c->hidden > 24576 ||
        c->latent % 16 != 0 || c->features % 16 != 0) {
        return "width, hidden, latent or features do not suit the kernels";
    }
    if (c->view_count >= GPU_RANGES_MAX || c->view_rows * c->view_cols == 0 ||
        c->bev_rows * c->bev_cols == 0) {
        return "views are more than 7 or have no tokens";
    }
    if (c->reach != 0 && c->patch == 0) {
        return "windows of space and time are of served models alone";
    }
    return c->past > c->window ? "windows of space and time reach further back than the memory"
                               : NULL;
}

int trunk_prepare(const struct trunk_config *config, uint32_t rank, uint32_t ranks,
                  struct trunk *out, struct device_text *why)
{
    const struct gpu_grid last = trunk_grid(config, config->view_count);
    const char *wrong = wrong_of(config);
    if (wrong != NULL) {
        snprintf(why->text, sizeof why->text, "configuration %s: %s", config->name, wrong);
        return DEVICE_FAULT_INPUT;
    }
    memset(out, 0, sizeof *out);
    if (config->reach != 0 && ranks > 0) {
        snprintf(why->text, sizeof why->text,
                 "ranks: expected none with windows of space and time, found %u", ranks);
        return DEVICE_FAULT_INPUT;
    }
    out->config = *config;
    out->exchanged = ranks > 0;
    out->ranks = out->exchanged ? ranks : 1;
    out->rank = rank;
    out->all_tokens = last.first + last.rows * last.cols;
    int fault =
        trunk_ranks_check(out->ranks, out->all_tokens, config->heads, config->kv_heads, why);
    if (fault != DEVICE_OK) {
        return fault;
    }
    out->tokens = out->all_tokens / out->ranks;
    place_page(out);
    trunk_place(out, NULL, NULL);
    return DEVICE_OK;
}
