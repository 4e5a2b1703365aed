/*
 * One tick of a world model, see forward.h: conditions, context, then the sampler's steps. This
 * file owns the workspace and says in which order things happen.
 */
#include "engine/learned/forward_internal.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

void forward_begin(const struct model *model, struct workspace *w,
                   const struct forward_input *input, struct forward_output *output)
{
    CHECK(w->model == model);
    CHECK(input->page_count <= model->config.window);
    CHECK(input->skipped <= model->config.steps);
    w->input = input;
    w->output = output;
    w->step = 0;
    w->steps = model->config.steps - input->skipped;
    memset(w->counts, 0, sizeof w->counts);
    if (w->steps == 0) {
        CHECK(input->conditioning == CONDITIONING_AGENTS);
        memcpy(output->frame, input->layout_bev, FRAME_BEV_BYTES);
        memcpy(output->frame + FRAME_BEV_BYTES, input->layout_cameras, FRAME_CAMERA_BYTES);
        return;
    }
    forward_conditions(w);
    forward_geometry(w);
    forward_mark_phase(w, "conditions");
    forward_context(w);
}

bool forward_advance(struct workspace *w)
{
    if (w->step == w->steps) {
        return false;
    }
    forward_step(w);
    w->step++;
    return true;
}

void forward_finish(struct workspace *w)
{
    struct nn_counts *counts = &w->output->counts;
    CHECK(w->step == w->steps);
    *counts = (struct nn_counts){0, 0};
    for (uint32_t i = 0; i < IMAGE_ROWS; i++) {
        counts->not_finite += w->counts[i].not_finite;
        counts->saturated += w->counts[i].saturated;
    }
}

void forward_tick(const struct model *model, struct workspace *w, const struct forward_input *input,
                  struct forward_output *output)
{
    forward_begin(model, w, input, output);
    while (forward_advance(w)) {
    }
    forward_finish(w);
}

/* ---- the memory of a committed frame ---- */

size_t forward_memory_bytes(const struct model *model)
{
    return model_page_layout(&model->config, nn_act_bytes(model->kernels.precision)).memory_bytes;
}

/* A patch of the frame's bytes, padded to LATENT_CHANNELS, as row `token` of patches. */
static void gather_frame(struct workspace *w, struct part_space *p, const uint8_t *frame,
                         uint32_t token)
{
    uint32_t image = token / p->image_tokens;
    uint32_t row = token % p->image_tokens / p->token_cols * p->patch;
    uint32_t col = token % p->token_cols * p->patch;
    uint32_t positions = p->patch * p->patch;
    size_t at = (size_t)token * positions * LATENT_CHANNELS;
    memset((uint8_t *)p->patches + at * w->act_bytes, 0,
           positions * LATENT_CHANNELS * w->act_bytes);
    for (uint32_t i = 0; i < positions; i++, at += LATENT_CHANNELS) {
        size_t position =
            ((size_t)image * p->rows + row + i / p->patch) * p->cols + col + i % p->patch;
        forward_bytes(w, frame + position * p->channels, p->channels, p->patches, at);
    }
}

static void memory_part(struct workspace *w, struct part_space *p, uint32_t first, uint32_t end)
{
    const uint8_t *frame = w->frame + p->first_element;
    for (uint32_t token = first; token < end; token++) {
        gather_frame(w, p, frame, token);
    }
    struct nn_gemm g = forward_gemm(&p->model->memory, p->tokens, p->patches);
    g.c = w->query + (size_t)p->first_token * g.n;
    forward_matmul(w, &p->model->memory, &g, p->first_token, first, end);
}

/* K (which 0) or V of a layer to the page. */
static void store_page(struct workspace *w, const struct model_matmul *matmul, struct nn_gemm *g,
                       uint32_t layer, uint32_t which, uint32_t first, uint32_t end)
{
    const struct page_layout *page = &w->page;
    uint8_t *to = w->memory + layer * page->layer_bytes;
    uint8_t *numbers = to + (which == 0 ? page->k : page->v);
    const uint32_t heads = w->heads.kv_heads;
    g->out = w->kv != NULL ? w->kv : numbers;
    forward_multiply(w, matmul, g, first, end);
    if (w->kv != NULL) {
        float *scale = (float *)(void *)(to + (which == 0 ? page->k_scale : page->v_scale));
        w->kernels->heads_to_e4m3(w->kv, w->heads.dim, numbers, scale, first * heads, end * heads);
    }
}

static void memory_tokens(struct workspace *w, uint32_t first, uint32_t end)
{
    const struct model *model = w->model;
    uint32_t d = model->config.width;
    for (uint32_t i = 0; i < PART_COUNT; i++) {
        struct part_space *p = &w->part[i];
        uint32_t low = first > p->first_token ? first : p->first_token;
        uint32_t high = end < p->first_token + p->tokens ? end : p->first_token + p->tokens;
        if (low < high) {
            memory_part(w, p, low - p->first_token, high - p->first_token);
        }
    }
    w->kernels->norm(w->query, d, 1.0f, NULL, NULL, w->normed, first, end);
    /* All layers' products have one shape, and those of one type take the same activations. */
    struct nn_gemm g = {0};
    for (uint32_t layer = 0; layer < model->config.layers; layer++) {
        const struct model_matmul *tk = &model->blocks[layer].tk;
        if (layer == 0 || tk->e4m3 != model->blocks[layer - 1].tk.e4m3) {
            g = forward_gemm(tk, w->token_count, w->normed);
            g.epilogue = NN_STORE_ACT;
            forward_take_activations(w, tk, &g, 0, first, end);
        }
        const struct model_matmul *matmuls[2] = {&model->blocks[layer].tk,
                                                 &model->blocks[layer].tv};
        for (uint32_t i = 0; i < 2; i++) {
            g.b = matmuls[i]->packed;
            g.bias = matmuls[i]->bias;
            store_page(w, matmuls[i], &g, layer, i, first, end);
        }
    }
}

void forward_memory(const struct model *model, struct workspace *w, const uint8_t *frame,
                    void *memory)
{
    CHECK(w->model == model);
    w->frame = frame;
    w->memory = memory;
    forward_tokens(w, memory_tokens);
}

/* ---- the workspace ---- */

/* The next `bytes` of base, NULL while base is NULL and only the sum is wanted. */
static void *carve(struct workspace *w, size_t *used, size_t bytes)
{
    void *at = w->base != NULL ? (uint8_t *)w->base + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return at;
}

static void carve_part(struct workspace *w, struct part_space *p, size_t *used)
{
    uint32_t c = p->model->channels;
    uint32_t widest = c > LATENT_CHANNELS ? c : LATENT_CHANNELS;
    size_t act = w->act_bytes;
    size_t positions = (size_t)p->images * p->rows * p->cols;
    p->context = carve(w, used, p->images * map_elements(p, p->model->context_channels) * act);
    p->latent = carve(w, used, p->images * map_elements(p, LATENT_CHANNELS) * act);
    void **maps[] = {&p->a, &p->h, &p->u, &p->g};
    for (size_t i = 0; i < COUNT_OF(maps); i++) {
        *maps[i] = carve(w, used, p->images * map_elements(p, c) * act);
    }
    p->add = carve(w, used, positions * c * sizeof *p->add);
    p->out = carve(w, used, positions * LATENT_CHANNELS * sizeof *p->out);
    p->x = carve(w, used, positions * p->channels * sizeof *p->x);
    p->base = carve(w, used, positions * p->channels * sizeof *p->base);
    p->patches = carve(w, used, (size_t)p->tokens * p->patch * p->patch * widest * act);
    p->mod = carve(w, used, (size_t)w->model->config.steps * 4 * c * sizeof *p->mod);
}

/* Terms of the widest product over tokens. The rows lie a line further apart, so that they do not
 * all fall into the same places of a cache. */
static size_t widest_row(const struct workspace *w)
{
    size_t most = 4 * (size_t)w->model->config.width;
    size_t query = model_query_width(&w->model->config);
    most = query > most ? query : most;
    for (uint32_t i = 0; i < PART_COUNT; i++) {
        size_t channels = w->part[i].model->channels;
        size_t terms = (size_t)w->part[i].patch * w->part[i].patch *
                       (channels > LATENT_CHANNELS ? channels : LATENT_CHANNELS);
        most = terms > most ? terms : most;
    }
    return most + 64;
}

static size_t carve_all(struct workspace *w)
{
    const struct model_config *config = &w->model->config;
    size_t d = config->width;
    size_t tokens = w->token_count;
    size_t query = model_query_width(config);
    size_t kv = model_kv_width(config);
    size_t steps = config->steps;
    size_t used = 0;
    carve_part(w, &w->part[PART_BEV], &used);
    carve_part(w, &w->part[PART_CAMERA], &used);
    w->cond = carve(w, &used, steps * (COND_COUNT + MODEL_FEATURES) * w->act_bytes);
    w->hidden = carve(w, &used, steps * d * w->act_bytes);
    w->e = carve(w, &used, steps * d * w->act_bytes);
    w->ada = carve(w, &used, steps * 6 * d * sizeof(float));
    w->final = carve(w, &used, steps * 2 * d * sizeof(float));
    w->table = carve(w, &used, config->layers * 6 * d * sizeof(float));
    w->motion_sums = carve(w, &used, sizeof *w->motion_sums);
    w->motion = carve(w, &used, FRAME_BEV_BYTES);
    w->cosine = carve(w, &used, sizeof(float) * tokens * (config->head_dim / 2));
    w->sine = carve(w, &used, sizeof(float) * tokens * (config->head_dim / 2));
    w->tokens = carve(w, &used, tokens * d * sizeof(float));
    w->normed = carve(w, &used, tokens * d * w->act_bytes);
    w->qkv = carve(w, &used, tokens * (query + 2 * kv) * sizeof(float));
    w->mixed = carve(w, &used, tokens * query * w->act_bytes);
    w->query = carve(w, &used, tokens * (d > query ? d : query) * sizeof(float));
    w->wide = carve(w, &used, tokens * 4 * d * w->act_bytes);
    for (uint32_t page = 0; page < config->window; page++) {
        w->index[page] = carve(w, &used, tokens * sizeof *w->index[page]);
    }
    for (uint32_t page = 0; page < config->past; page++) {
        w->past[page] = carve(w, &used, tokens * 2 * kv * sizeof *w->past[page]);
    }
    if (w->kernels->precision == NN_INT8 || config->type == MODEL_E4M3) {
        w->int8_stride = widest_row(w);
        w->int8 = carve(w, &used, tokens * w->int8_stride);
        w->int8_rows = carve(w, &used, tokens * sizeof *w->int8_rows);
    }
    if (config->pages == MODEL_E4M3) {
        w->kv = carve(w, &used, tokens * kv * w->act_bytes);
    }
    size_t bev = (size_t)WINDOW_POSITIONS * config->bev_channels;
    size_t cameras = (size_t)CAMERA_COUNT * FRAME_CAMERA_POSITIONS * config->camera_channels;
    w->probe = carve(w, &used, (bev > cameras ? bev : cameras) * sizeof(float));
    return used;
}

static void place_parts(struct workspace *w)
{
    const struct model_config *config = &w->model->config;
    const uint32_t bev = model_tokens_bev(config);
    const uint32_t camera = model_tokens_camera(config);
    w->token_count = model_tokens(config);
    w->heads = model_heads(config);
    w->page = model_page_layout(config, w->act_bytes);
    w->wide_heads = model_wide(config);
    w->part[PART_BEV] = (struct part_space){
        .model = &w->model->part[PART_BEV],
        .images = 1,
        .rows = WINDOW_SIDE,
        .cols = WINDOW_SIDE,
        .patch = config->patch,
        .token_cols = WINDOW_SIDE / config->patch,
        .image_tokens = bev,
        .tokens = bev,
        .channels = FRAME_BEV_CHANNELS,
    };
    w->part[PART_CAMERA] = (struct part_space){
        .model = &w->model->part[PART_CAMERA],
        .images = CAMERA_COUNT,
        .rows = FRAME_CAMERA_ROWS,
        .cols = FRAME_CAMERA_COLS,
        .patch = config->patch,
        .token_cols = FRAME_CAMERA_COLS / config->patch,
        .image_tokens = camera,
        .first_token = bev,
        .tokens = CAMERA_COUNT * camera,
        .channels = FRAME_CAMERA_CHANNELS,
        .first_element = FRAME_BEV_BYTES,
    };
}

enum status workspace_create(const struct model *model, uint32_t thread_count,
                             struct workspace **out, struct error *error)
{
    struct workspace *w = calloc(1, sizeof *w);
    TRY(memory_check(w, error, "no memory for a workspace"));
    w->model = model;
    w->kernels = &model->kernels;
    w->act_bytes = nn_act_bytes(model->kernels.precision);
    place_parts(w);
    size_t bytes = carve_all(w);
    w->base = aligned_alloc(64, bytes);
    if (w->base == NULL) {
        workspace_destroy(w);
        return error_set(error, STATUS_NO_MEMORY, "no memory for a workspace of %zu bytes", bytes);
    }
    memset(w->base, 0, bytes); /* the borders of maps stay zero from here on */
    carve_all(w);
    enum status status = threads_create(thread_count, &w->threads, error);
    if (status != STATUS_OK) {
        workspace_destroy(w);
        return status;
    }
    forward_tables(w);
    *out = w;
    return STATUS_OK;
}

void workspace_destroy(struct workspace *w)
{
    if (w != NULL) {
        threads_destroy(w->threads);
        free(w->base);
        free(w);
    }
}
