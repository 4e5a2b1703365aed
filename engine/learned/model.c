/*
 * Opening a model: the file is read once into private memory, so that the hash, the checks and the
 * weights are of the same bytes, then packed for the kernels and let go.
 */
#include "engine/learned/model_internal.h"

#include "base/check.h"
#include "base/dmath.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "swerve-world-model/1"

/* sin and cos of t w_i, w_i = 0.628 * 1000^(i / 31). */
static void fill_features(struct model *model)
{
    enum { HALF = MODEL_FEATURES / 2 };
    for (uint32_t step = 0; step < model->config.steps; step++) {
        for (int i = 0; i < HALF; i++) {
            double w = 0.628 * dmath_exp(dmath_log(1000.0) * i / (HALF - 1));
            double sine;
            double cosine;
            dmath_sincos(model->config.schedule[step] * w, &sine, &cosine);
            model->features[step][i] = (float)sine;
            model->features[step][HALF + i] = (float)cosine;
        }
    }
}

static enum status require(const char *path, const struct safetensors *file, const char *key,
                           const char **out, struct error *error)
{
    *out = safetensors_metadata(file, key);
    return *out != NULL ? STATUS_OK
                        : error_set(error, STATUS_BAD_INPUT,
                                    "%s: __metadata__: expected \"%s\", found none", path, key);
}

/* Metadata and configuration. */
static enum status open_config(struct model *model, const char *path,
                               const struct safetensors *file, struct error *error)
{
    const char *format;
    const char *config;
    const char *note;
    TRY(require(path, file, "format", &format, error));
    TRY(require(path, file, "config", &config, error));
    TRY(require(path, file, "note", &note, error));
    if (strcmp(format, FORMAT) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: __metadata__: format: expected \"%s\", found \"%.64s\"", path, FORMAT,
                         format);
    }
    return model_config_parse(path, config, strlen(config), &model->config, error);
}

/* The tensors' bytes, all behind the header, are those that were written: a damaged weight is
 * seldom NaN, and a rollout on it need not look sick. */
static enum status check_data(const char *path, const struct safetensors *file, struct error *error)
{
    char found[SHA256_HEX_BYTES];
    const char *expected;
    size_t bytes;
    const void *data = safetensors_data(file, &bytes);
    TRY(require(path, file, "data_sha256", &expected, error));
    sha256_hex(data, bytes, found);
    return strcmp(found, expected) == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "%s: %zu bytes of tensors: expected SHA-256 %.64s, found %s; the file "
                           "is damaged",
                           path, bytes, expected, found);
}

static enum status model_new(const struct model_open_options *options, struct model **out,
                             struct error *error)
{
    struct model *model = calloc(1, sizeof *model);
    TRY(memory_check(model, error, "no memory for a model"));
    nn_kernels_init(&model->kernels, options->precision, options->cpu_flags);
    model->device = options->device && options->precision == NN_BF16;
    model->peak_flops = options->peak_flops;
    *out = model;
    return STATUS_OK;
}

/* Numbers of e4m3 stand among those of bf16. */
static enum status check_precision(const struct model *model, const char *source,
                                   struct error *error)
{
    enum nn_precision precision = model->kernels.precision;
    const bool products = model->config.type == MODEL_E4M3;
    return (!products && model->config.pages != MODEL_E4M3) || precision == NN_BF16
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "%s: config: %s: e4m3 is computed in precision bf16, found %s", source,
                           products ? "type" : "pages", nn_precision_names[precision]);
}

enum status model_open(const char *path, const struct model_open_options *options,
                       struct model **out, struct error *error)
{
    struct safetensors *file = NULL;
    struct model *model = NULL;
    enum status status = safetensors_open(path, SAFETENSORS_COPY, &file, error);
    THEN(status, model_new(options, &model, error));
    THEN(status, open_config(model, path, file, error));
    THEN(status, check_precision(model, path, error));
    THEN(status, model_load_weights(model, path, file, 0, error));
    THEN(status, check_data(path, file, error));
    if (status != STATUS_OK) {
        safetensors_close(file);
        model_close(model);
        return status;
    }
    size_t bytes;
    const void *data = safetensors_bytes(file, &bytes);
    sha256_hex(data, bytes, model->hash);
    safetensors_close(file);
    fill_features(model);
    *out = model;
    return STATUS_OK;
}

enum status model_random(const struct model_config *config,
                         const struct model_open_options *options, uint64_t seed,
                         struct model **out, struct error *error)
{
    struct model *model = NULL;
    struct model_config complete = *config;
    model_config_complete(&complete);
    TRY(model_config_check("random weights", &complete, error));
    TRY(model_new(options, &model, error));
    model->config = complete;
    enum status status = check_precision(model, "random weights", error);
    THEN(status, model_load_weights(model, "random weights", NULL, seed, error));
    if (status != STATUS_OK) {
        model_close(model);
        return status;
    }
    sha256_hex(&seed, sizeof seed, model->hash);
    fill_features(model);
    *out = model;
    return STATUS_OK;
}

void model_close(struct model *model)
{
    if (model != NULL) {
        free(model->weights);
        free(model);
    }
}

const struct model_config *model_config(const struct model *model)
{
    return &model->config;
}

const char *model_hash(const struct model *model)
{
    return model->hash;
}

void model_sampler(const struct model *model, enum conditioning conditioning,
                   char out[LIMIT_ID_BYTES])
{
    model_sampler_taking(model, conditioning, model->config.steps, model->config.steps, out);
}

void model_sampler_taking(const struct model *model, enum conditioning conditioning, uint32_t least,
                          uint32_t most, char out[LIMIT_ID_BYTES])
{
    char range[24] = "";
    if (least != most) {
        snprintf(range, sizeof range, "-%u", most);
    }
    snprintf(out, LIMIT_ID_BYTES, "%s/euler%u%s/%s", conditioning_names[conditioning], least, range,
             nn_precision_names[model->kernels.precision]);
}

static double matmul_flop(const struct model_matmul *matmul, double rows)
{
    return 2.0 * rows * matmul->n * matmul->k;
}

static void part_flop(const struct model_part *part, double positions, double tokens,
                      double *per_tick, double *per_step)
{
    *per_tick += matmul_flop(&part->ctx, positions) + matmul_flop(&part->memory, tokens);
    *per_step += matmul_flop(&part->mod, 1) + matmul_flop(&part->in, positions) +
                 matmul_flop(&part->mid, positions) + matmul_flop(&part->head, positions) +
                 matmul_flop(&part->out, positions) + matmul_flop(&part->embed, tokens) +
                 matmul_flop(&part->unembed, tokens);
}

double model_peak_flops(const struct model *model)
{
    return model->peak_flops;
}

bool model_skips_past(const struct model *model, uint32_t skipped)
{
    return skipped > model->config.steps;
}

uint32_t model_previous_skips(const struct model *model, uint32_t skipped)
{
    CHECK(model_skips_past(model, skipped));
    return skipped - model->config.steps - 1;
}

uint32_t model_skips_to_previous(const struct model *model, uint32_t previous_skips)
{
    return model->config.steps + 1 + previous_skips;
}

/* Pairs of places of a grid at most `reach` rows and columns apart. */
static double window_pairs(uint32_t rows, uint32_t cols, uint32_t reach)
{
    const uint32_t sides[] = {rows, cols};
    double pairs = 1.0;
    for (int i = 0; i < 2; i++) {
        double row = 0.0;
        for (uint32_t at = 0; at < sides[i]; at++) {
            uint32_t after = sides[i] - 1 - at;
            row += 1.0 + (at < reach ? at : reach) + (after < reach ? after : reach);
        }
        pairs *= row;
    }
    return pairs;
}

/* Pairs of a query and a key in a layer, all past frames there. */
static double attention_pairs(const struct model_config *config, uint32_t layer)
{
    double bev = model_tokens_bev(config);
    double camera = model_tokens_camera(config);
    double tokens = model_tokens(config);
    if (model_layer_window(config, layer)) {
        uint32_t side = WINDOW_SIDE / config->patch;
        double views =
            window_pairs(side, side, config->reach) +
            CAMERA_COUNT * window_pairs(FRAME_CAMERA_ROWS / config->patch,
                                        FRAME_CAMERA_COLS / config->patch, config->reach);
        return views * (1.0 + config->past);
    }
    double pairs =
        config->joint[layer] ? tokens * tokens : bev * bev + CAMERA_COUNT * camera * camera;
    return pairs + tokens * (config->window + 1);
}

double model_tick_flop(const struct model *model, uint32_t skipped)
{
    const struct model_config *config = &model->config;
    double tick = 0.0;
    double step = matmul_flop(&model->time1, 1) + matmul_flop(&model->time2, 1) +
                  matmul_flop(&model->ada, 1) + matmul_flop(&model->final, 1);
    double bev = model_tokens_bev(config);
    double camera = model_tokens_camera(config);
    double tokens = model_tokens(config);
    part_flop(&model->part[PART_BEV], WINDOW_POSITIONS, bev, &tick, &step);
    part_flop(&model->part[PART_CAMERA], CAMERA_COUNT * FRAME_CAMERA_POSITIONS,
              CAMERA_COUNT * camera, &tick, &step);
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        const struct model_block *block = &model->blocks[layer];
        const struct model_matmul *const matmuls[] = {&block->qkv, &block->o,   &block->tq,
                                                      &block->to,  &block->fc1, &block->fc2};
        for (size_t i = 0; i < sizeof matmuls / sizeof matmuls[0]; i++) {
            step += matmul_flop(matmuls[i], tokens);
        }
        /* logits and weighted sum, two operations each */
        step += 4.0 * model_query_width(config) * attention_pairs(config, layer);
        tick += matmul_flop(&block->tk, tokens) + matmul_flop(&block->tv, tokens);
    }
    return tick + step * (config->steps - skipped);
}
