/*
 * One step of the sampler: convolutions in, the transformer over the tokens, convolutions out. The
 * formulas and their order are those of engine/model.md, "Network".
 */
#include "engine/learned/forward_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- convolutions ---- */

static const void *image_of(const struct workspace *w, const struct part_space *p, const void *maps,
                            uint32_t image, uint32_t channels)
{
    return (const uint8_t *)maps + image * map_elements(p, channels) * w->act_bytes;
}

/* A convolution of one image: input, weights and output map. */
static struct nn_conv conv_of(const struct workspace *w, const struct part_space *p,
                              const struct model_matmul *matmul, uint32_t image, const void *in,
                              uint32_t in_channels, void *out)
{
    return (struct nn_conv){
        .rows = p->rows,
        .cols = p->cols,
        .in_count = 1,
        .in = {image_of(w, p, in, image, in_channels)},
        .in_channels = {in_channels},
        .out_channels = matmul->n,
        .b = matmul->packed,
        .bias = matmul->bias,
        .silu = 1,
        .out = out == NULL ? NULL : (void *)image_of(w, p, out, image, matmul->n),
    };
}

static void in_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                    uint32_t end)
{
    uint32_t channels = p->model->channels;
    struct nn_conv c = conv_of(w, p, &p->model->in, image, p->latent, LATENT_CHANNELS, p->a);
    c.add = p->add + (size_t)image * p->rows * p->cols * channels;
    c.scale = p->mod + (size_t)w->step * 4 * channels;
    c.shift = c.scale + channels;
    forward_conv(w, &p->model->in, &c, first, end);
}

static void mid_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                     uint32_t end)
{
    struct nn_conv c = conv_of(w, p, &p->model->mid, image, p->a, p->model->channels, p->h);
    forward_conv(w, &p->model->mid, &c, first, end);
}

static void head_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                      uint32_t end)
{
    uint32_t channels = p->model->channels;
    struct nn_conv c = conv_of(w, p, &p->model->head, image, p->u, channels, p->g);
    c.in_count = 2;
    c.in[1] = image_of(w, p, p->h, image, channels);
    c.in_channels[1] = channels;
    c.scale = p->mod + ((size_t)w->step * 4 + 2) * channels;
    c.shift = c.scale + channels;
    forward_conv(w, &p->model->head, &c, first, end);
}

/* The last convolution, then the sampler's step on what it gave; the last step ends in bytes. */
static void out_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                     uint32_t end)
{
    const struct model_config *config = &w->model->config;
    struct nn_conv c = conv_of(w, p, &p->model->out, image, p->g, p->model->channels, NULL);
    c.silu = 0;
    c.out_f32 = p->out + (size_t)image * p->rows * p->cols * LATENT_CHANNELS;
    forward_conv(w, &p->model->out, &c, first, end);

    bool last = w->step + 1 == w->steps;
    float weight = model_step_weight(config, w->steps, w->step);
    size_t line = (size_t)image * p->rows + first;
    size_t position = line * p->cols;
    size_t count = (size_t)(end - first) * p->cols;
    float *x = p->x + position * p->channels;
    w->kernels->euler(x, p->base + position * p->channels, p->out + position * LATENT_CHANNELS,
                      count, p->channels, LATENT_CHANNELS, weight);
    if (last) {
        uint8_t *bytes = w->output->frame + p->first_element + position * p->channels;
        size_t row = p == &w->part[PART_BEV] ? line : WINDOW_SIDE + line;
        w->kernels->quantise(x, bytes, count * p->channels, &w->counts[row]);
    } else {
        forward_latent_rows(w, p, image, first, end);
    }
}

/* ---- tokens ---- */

/* Calls work for the tokens of each part within first .. end - 1, counted from the part's first. */
static void by_part(struct workspace *w, uint32_t first, uint32_t end,
                    void (*work)(struct workspace *w, struct part_space *p, uint32_t first,
                                 uint32_t end))
{
    for (uint32_t i = 0; i < PART_COUNT; i++) {
        struct part_space *p = &w->part[i];
        uint32_t low = first > p->first_token ? first : p->first_token;
        uint32_t high = end < p->first_token + p->tokens ? end : p->first_token + p->tokens;
        if (low < high) {
            work(w, p, low - p->first_token, high - p->first_token);
        }
    }
}

/* X = embed(patches of h) + pos */
static void embed_part(struct workspace *w, struct part_space *p, uint32_t first, uint32_t end)
{
    for (uint32_t token = first; token < end; token++) {
        forward_gather(w, p, p->h, p->model->channels, token);
    }
    struct nn_gemm g = forward_gemm(&p->model->embed, p->tokens, p->patches);
    g.epilogue = NN_ADD_GATED; /* onto pos */
    g.c = w->tokens + (size_t)p->first_token * g.n;
    forward_matmul(w, &p->model->embed, &g, p->first_token, first, end);
}

/* u = unembed(Y), back to positions */
static void unembed_part(struct workspace *w, struct part_space *p, uint32_t first, uint32_t end)
{
    struct nn_gemm g =
        forward_gemm(&p->model->unembed, p->tokens,
                     (const uint8_t *)w->normed +
                         (size_t)p->first_token * w->model->config.width * w->act_bytes);
    g.epilogue = NN_STORE_ACT;
    g.out = p->patches;
    forward_matmul(w, &p->model->unembed, &g, p->first_token, first, end);
    for (uint32_t token = first; token < end; token++) {
        forward_scatter(w, p, p->u, p->model->channels, token);
    }
}

/* Past frames that windows look at. */
static uint32_t window_pages(const struct workspace *w)
{
    uint32_t past = w->model->config.past;
    return past < w->input->page_count ? past : w->input->page_count;
}

/* K (which 0) or V of a layer in a page; scale: of e4m3, NULL else. */
struct page_part {
    const void *numbers;
    const float *scale;
};

static struct page_part page_part(const struct workspace *w, uint32_t page, uint32_t layer,
                                  int which)
{
    const struct page_layout *l = &w->page;
    const uint8_t *from = (const uint8_t *)w->input->pages[page].memory + layer * l->layer_bytes;
    return (struct page_part){
        .numbers = from + (which == 0 ? l->k : l->v),
        .scale = w->kv != NULL
                     ? (const float *)(const void *)(from + (which == 0 ? l->k_scale : l->v_scale))
                     : NULL,
    };
}

/* A token's keys or values as numbers. */
static void read_row(const struct workspace *w, const struct page_part *part, size_t row, float *to)
{
    const struct nn_heads *h = &w->heads;
    const size_t kv = (size_t)h->kv_heads * h->dim;
    if (part->scale == NULL) {
        forward_floats(w, part->numbers, row * kv, kv, to);
        return;
    }
    w->kernels->heads_from_e4m3((const uint8_t *)part->numbers + row * kv, h->dim,
                                part->scale + row * h->kv_heads, to, 0, h->kv_heads);
}

/* The layer's K and V of past frames where a token of the present is there: K turned by the
 * present's angles, as the token's own is. */
static void past_tokens(struct workspace *w, uint32_t layer, uint32_t first, uint32_t end)
{
    const size_t kv = model_kv_width(&w->model->config);
    const struct nn_heads keys = {0, w->heads.kv_heads, w->heads.dim};
    for (uint32_t page = 0; page < window_pages(w); page++) {
        const struct page_part part[] = {page_part(w, page, layer, 0),
                                         page_part(w, page, layer, 1)};
        for (uint32_t token = first; token < end; token++) {
            int16_t row = w->index[page][token];
            float *to = w->past[page] + token * 2 * kv;
            for (int which = 0; which < 2 && row >= 0; which++) {
                read_row(w, &part[which], (size_t)row, to + which * kv);
            }
        }
        w->kernels->turn(&keys, w->cosine, w->sine, w->past[page], first, end);
    }
}

/* q, k, v of layer w->layer */
static void qkv_tokens(struct workspace *w, uint32_t layer, uint32_t first, uint32_t end)
{
    uint32_t d = w->model->config.width;
    const float *table = w->table + (size_t)layer * 6 * d;
    w->kernels->norm(w->tokens, d, 1.0f, table, table + d, w->normed, first, end);
    const struct model_matmul *qkv = &w->model->blocks[layer].qkv;
    struct nn_gemm g = forward_gemm(qkv, w->token_count, w->normed);
    g.c = w->qkv;
    forward_matmul(w, qkv, &g, 0, first, end);
    if (w->wide_heads) {
        w->kernels->turn(&w->heads, w->cosine, w->sine, w->qkv, first, end);
    }
    if (model_layer_window(&w->model->config, layer)) {
        past_tokens(w, layer, first, end);
    }
}

static void embed_tokens(struct workspace *w, uint32_t first, uint32_t end)
{
    size_t d = w->model->config.width;
    memcpy(w->tokens + first * d, w->model->pos + first * d, (end - first) * d * sizeof(float));
    by_part(w, first, end, embed_part);
    qkv_tokens(w, 0, first, end);
}

/* X += to(temporal attention) */
static void temporal_tokens(struct workspace *w, uint32_t first, uint32_t end)
{
    const struct model_config *config = &w->model->config;
    const struct model_block *block = &w->model->blocks[w->layer];
    const struct nn_kernels *kernels = w->kernels;
    uint32_t d = config->width;
    kernels->norm(w->tokens, d, 0.0f, block->norm_weight, block->norm_bias, w->normed, first, end);
    struct nn_gemm g = forward_gemm(&block->tq, w->token_count, w->normed);
    g.c = w->query;
    forward_matmul(w, &block->tq, &g, 0, first, end);
    struct nn_temporal t = {
        .tokens = w->token_count,
        .width = d,
        .pages = w->input->page_count,
        .q = w->query,
        .bias = block->tbias,
        .bias_stride = config->window,
        .null_k = block->null_k,
        .null_v = block->null_v,
        .out = w->mixed,
    };
    for (uint32_t page = 0; page < t.pages; page++) {
        const struct page_part k = page_part(w, page, w->layer, 0);
        const struct page_part v = page_part(w, page, w->layer, 1);
        t.k[page] = k.numbers;
        t.v[page] = v.numbers;
        t.k_scale[page] = k.scale;
        t.v_scale[page] = v.scale;
        t.index[page] = w->index[page];
    }
    if (w->wide_heads || w->kv != NULL) {
        kernels->temporal_wide(&t, &w->heads, first, end);
    } else {
        kernels->temporal(&t, first, end);
    }
    g = forward_gemm(&block->to, w->token_count, w->mixed);
    g.epilogue = NN_ADD_GATED;
    g.c = w->tokens;
    forward_matmul(w, &block->to, &g, 0, first, end);
}

/* The part behind a layer's attention, and that before the next one's. */
static void block_tokens(struct workspace *w, uint32_t first, uint32_t end)
{
    const struct model_config *config = &w->model->config;
    const struct model_block *block = &w->model->blocks[w->layer];
    uint32_t d = config->width;
    const float *table = w->table + (size_t)w->layer * 6 * d;
    struct nn_gemm g = forward_gemm(&block->o, w->token_count, w->mixed);
    g.epilogue = NN_ADD_GATED;
    g.gate = table + 2 * d;
    g.c = w->tokens;
    forward_matmul(w, &block->o, &g, 0, first, end);

    if (!model_layer_window(config, w->layer)) {
        temporal_tokens(w, first, end);
    }
    w->kernels->norm(w->tokens, d, 1.0f, table + 3 * d, table + 4 * d, w->normed, first, end);
    g = forward_gemm(&block->fc1, w->token_count, w->normed);
    g.epilogue = NN_SILU_ACT;
    g.out = w->wide;
    forward_matmul(w, &block->fc1, &g, 0, first, end);
    g = forward_gemm(&block->fc2, w->token_count, w->wide);
    g.epilogue = NN_ADD_GATED;
    g.gate = table + 5 * d;
    g.c = w->tokens;
    forward_matmul(w, &block->fc2, &g, 0, first, end);

    if (w->layer + 1 < config->layers) {
        qkv_tokens(w, w->layer + 1, first, end);
        return;
    }
    const float *scale = w->final + (size_t)w->step * 2 * d;
    w->kernels->norm(w->tokens, d, 1.0f, scale, scale + d, w->normed, first, end);
    by_part(w, first, end, unembed_part);
}

/* ---- attention ---- */

/* Attention of heads that plain C alone has: of `tokens` from `token` on, in rows of `cols`. */
static struct nn_wide_attention wide_of(const struct workspace *w, size_t token, uint32_t tokens,
                                        uint32_t cols)
{
    const size_t query = (size_t)w->heads.heads * w->heads.dim;
    const size_t kv = (size_t)w->heads.kv_heads * w->heads.dim;
    struct nn_wide_attention a = {
        .heads = w->heads,
        .tokens = tokens,
        .qkv = w->qkv + token * (query + 2 * kv),
        .out = (uint8_t *)w->mixed + token * query * w->act_bytes,
    };
    if (model_layer_window(&w->model->config, w->layer)) {
        a.cols = cols;
        a.reach = w->model->config.reach;
        a.pages = window_pages(w);
        for (uint32_t page = 0; page < a.pages; page++) {
            a.past[page] = w->past[page] + token * 2 * kv;
            a.index[page] = w->index[page] + token;
        }
    }
    return a;
}

/* Whether a layer's tokens see all others of the frame. */
static bool sees_all(const struct workspace *w)
{
    const struct model_config *config = &w->model->config;
    return config->joint[w->layer] && !model_layer_window(config, w->layer);
}

/* Items are pairs of a token range (the BEV and each camera, or all) and a head. */
static void attention_entry(void *context, uint32_t first, uint32_t end)
{
    struct workspace *w = context;
    const struct nn_heads *h = &w->heads;
    uint32_t heads = h->heads;
    size_t query = (size_t)heads * h->dim;
    size_t row = query + 2 * (size_t)h->kv_heads * h->dim;
    size_t pairs = h->dim / 2;
    bool joint = sees_all(w);
    for (uint32_t item = first; item < end;) {
        uint32_t range = item / heads;
        uint32_t head = item % heads;
        uint32_t count = heads - head < end - item ? heads - head : end - item;
        const struct part_space *p = &w->part[range == 0 ? PART_BEV : PART_CAMERA];
        size_t token = range == 0 ? 0 : p->first_token + (size_t)(range - 1) * p->image_tokens;
        uint32_t tokens = joint ? w->token_count : p->image_tokens;
        const float *qkv = w->qkv + token * row;
        void *out = (uint8_t *)w->mixed + token * query * w->act_bytes;
        if (w->wide_heads) {
            const struct nn_wide_attention a = wide_of(w, token, tokens, p->token_cols);
            w->kernels->attention_wide(&a, head, head + count);
        } else {
            const struct nn_attention a = {
                .tokens = tokens,
                .width = (uint32_t)query,
                .qkv = qkv,
                .cosine = w->cosine + token * pairs,
                .sine = w->sine + token * pairs,
                .out = out,
            };
            w->kernels->attention(&a, head, head + count);
        }
        item += count;
    }
}

static void attend(struct workspace *w)
{
    uint32_t ranges = sees_all(w) ? 1 : 1 + CAMERA_COUNT;
    threads_run(w->threads, ranges * w->heads.heads, 1, attention_entry, w);
}

/* ---- the step ---- */

/* T of every layer: what the conditions say, plus the layer's own. */
static void fill_table(struct workspace *w)
{
    size_t count = 6 * (size_t)w->model->config.width;
    const float *ada = w->ada + w->step * count;
    for (uint32_t layer = 0; layer < w->model->config.layers; layer++) {
        const float *own = w->model->blocks[layer].table;
        float *out = w->table + layer * count;
        for (size_t i = 0; i < count; i++) {
            out[i] = ada[i] + own[i];
        }
    }
}

/* x0 = base + o, for probes alone. */
static void probe_x0(struct workspace *w, const char *name, const struct part_space *p)
{
    if (w->output->probe == NULL) {
        return;
    }
    size_t positions = (size_t)p->images * p->rows * p->cols;
    for (size_t i = 0; i < positions; i++) {
        for (uint32_t c = 0; c < p->channels; c++) {
            w->probe[i * p->channels + c] =
                p->base[i * p->channels + c] + p->out[i * LATENT_CHANNELS + c];
        }
    }
    forward_probe_floats(w, name, w->probe, positions * p->channels);
}

static void blocks(struct workspace *w)
{
    size_t count = (size_t)w->token_count * w->model->config.width;
    for (w->layer = 0; w->layer < w->model->config.layers; w->layer++) {
        attend(w);
        forward_mark_phase(w, "attention");
        forward_tokens(w, block_tokens);
        forward_mark_phase(w, "tokens");
        char name[16];
        snprintf(name, sizeof name, "block.%u", w->layer);
        forward_probe_floats(w, name, w->tokens, count);
    }
    forward_probe_act(w, "final", w->normed, count);
}

void forward_step(struct workspace *w)
{
    const struct part_space *bev = &w->part[PART_BEV];
    const struct part_space *cameras = &w->part[PART_CAMERA];
    fill_table(w);
    forward_rows(w, in_rows);
    forward_mark_phase(w, "conv in");
    forward_rows(w, mid_rows);
    forward_mark_phase(w, "conv mid");
    forward_probe_map(w, "bev.h", bev, bev->h, bev->model->channels);
    forward_probe_map(w, "cam.h", cameras, cameras->h, cameras->model->channels);
    forward_tokens(w, embed_tokens);
    forward_mark_phase(w, "embed");
    forward_probe_floats(w, "embed", w->tokens, (size_t)w->token_count * w->model->config.width);
    blocks(w);
    forward_rows(w, head_rows);
    forward_mark_phase(w, "conv head");
    forward_rows(w, out_rows);
    forward_mark_phase(w, "conv out");
    probe_x0(w, "bev.x0", bev);
    probe_x0(w, "camera.x0", cameras);
}
