/*
 * From tensors to packed weights. One list says which tensors a model has (model_walk); it is
 * walked twice: to check each and count the bytes, then to fill one allocation. So nothing is
 * packed of a file that is wrong anywhere, and the list cannot differ between the two.
 */
#include "engine/learned/model_internal.h"

#include "base/check.h"
#include "base/rng.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    const char *source;
    const struct safetensors *file; /* NULL: random */
    const struct nn_kernels *kernels;
    bool device;
    enum model_type type;
    uint64_t seed;
    uint8_t *base;     /* NULL in the first walk */
    size_t used_bytes; /* of what base is or will be */
    float *scratch;    /* the largest tensor as floats; NULL in the first walk */
    size_t scratch_count;
    uint32_t taken; /* tensors */
    uint8_t *seen;  /* [tensors of the file], first walk */
    enum status status;
    struct error *error;
};

static void fail(struct loader *loader, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct loader *loader, enum status status, const char *format, ...)
{
    if (loader->status == STATUS_OK) {
        va_list args;
        va_start(args, format);
        loader->status = error_setv(loader->error, status, format, args);
        va_end(args);
    }
}

/* The next `bytes` of the allocation, NULL in the first walk. */
static void *reserve(struct loader *loader, size_t bytes)
{
    void *at = loader->base != NULL ? loader->base + loader->used_bytes : NULL;
    loader->used_bytes += (bytes + 63) / 64 * 64;
    return at;
}

/* ---- one tensor ---- */

static void shape_text(uint32_t rank, const uint64_t *shape, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "[");
    for (uint32_t i = 0; i < rank && used < room; i++) {
        used += (size_t)snprintf(out + used, room - used, i > 0 ? ", %llu" : "%llu",
                                 (unsigned long long)shape[i]);
    }
    if (used < room) {
        snprintf(out + used, room - used, "]");
    }
}

/* First value that is not finite, or count. Exponent bits all ones: infinite or NaN; of e4m3, all
 * bits but the sign: NaN. */
static uint64_t first_bad(const struct safetensors_tensor *tensor)
{
    for (uint64_t i = 0; i < tensor->count; i++) {
        if (tensor->dtype == SAFETENSORS_F8_E4M3) {
            if ((((const uint8_t *)tensor->data)[i] & 0x7f) == 0x7f) {
                return i;
            }
        } else if (tensor->dtype == SAFETENSORS_F32) {
            uint32_t bits = ((const uint32_t *)tensor->data)[i];
            if ((bits & 0x7f800000u) == 0x7f800000u) {
                return i;
            }
        } else if ((((const uint16_t *)tensor->data)[i] & 0x7f80u) == 0x7f80u) {
            return i;
        }
    }
    return tensor->count;
}

/* fp8: whether it may be of e4m3 too. */
static const struct safetensors_tensor *check_tensor(struct loader *loader, const char *name,
                                                     uint32_t rank, const uint64_t *shape, bool fp8)
{
    const struct safetensors_tensor *tensor = safetensors_find(loader->file, name);
    char expected[128];
    char found[128];
    shape_text(rank, shape, expected, sizeof expected);
    if (tensor == NULL) {
        fail(loader, STATUS_BAD_INPUT, "%s: tensor \"%s\": expected shape %s, found no such tensor",
             loader->source, name, expected);
        return NULL;
    }
    if (tensor->rank != rank || memcmp(tensor->shape, shape, rank * sizeof *shape) != 0) {
        shape_text(tensor->rank, tensor->shape, found, sizeof found);
        fail(loader, STATUS_BAD_INPUT, "%s: tensor \"%s\": expected shape %s, found %s",
             loader->source, name, expected, found);
        return NULL;
    }
    if (tensor->dtype != SAFETENSORS_F32 && tensor->dtype != SAFETENSORS_BF16 &&
        !(fp8 && tensor->dtype == SAFETENSORS_F8_E4M3)) {
        fail(loader, STATUS_BAD_INPUT, "%s: tensor \"%s\": expected F32 or BF16, found %s",
             loader->source, name, safetensors_dtype_names[tensor->dtype]);
        return NULL;
    }
    uint64_t bad = first_bad(tensor);
    if (bad < tensor->count) {
        fail(loader, STATUS_BAD_INPUT,
             "%s: tensor \"%s\": expected finite values, found NaN or infinity at element %llu",
             loader->source, name, (unsigned long long)bad);
        return NULL;
    }
    loader->seen[tensor - safetensors_at(loader->file, 0)] = 1;
    return tensor;
}

/* Uniform with the standard deviation of the usual initialisation, 1 / sqrt(inputs). */
static void draw(struct loader *loader, uint64_t count, double deviation)
{
    uint64_t key = rng_mix(loader->seed + loader->taken);
    for (uint64_t i = 0; i < count; i++) {
        double uniform = rng_uniform(key, RNG_STREAM_TEST, 0, (uint32_t)i);
        loader->scratch[i] = (float)((2.0 * uniform - 1.0) * 1.7320508 * deviation);
    }
}

/* The tensor's values as floats; in the first walk only its presence is checked (NULL). */
static const float *take(struct loader *loader, const char *name, uint32_t rank,
                         const uint64_t *shape, double deviation)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    loader->taken++;
    if (loader->status != STATUS_OK) {
        return NULL;
    }
    if (loader->base == NULL) {
        if (count > loader->scratch_count) {
            loader->scratch_count = count;
        }
        if (loader->file != NULL) {
            check_tensor(loader, name, rank, shape, false);
        }
        return NULL;
    }
    if (loader->file == NULL) {
        draw(loader, count, deviation);
        return loader->scratch;
    }
    const struct safetensors_tensor *tensor = safetensors_find(loader->file, name);
    if (tensor->dtype == SAFETENSORS_F32) {
        return tensor->data;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)((const uint16_t *)tensor->data)[i] << 16;
        memcpy(&loader->scratch[i], &bits, sizeof bits);
    }
    return loader->scratch;
}

/* The scales of a product's e4m3 weights, one a channel: there, and not negative. */
static void check_scales(struct loader *loader, const char *name, uint64_t channels)
{
    const struct safetensors_tensor *scales = check_tensor(loader, name, 1, &channels, false);
    if (scales != NULL && scales->dtype != SAFETENSORS_F32) {
        fail(loader, STATUS_BAD_INPUT, "%s: tensor \"%s\": expected F32, found %s", loader->source,
             name, safetensors_dtype_names[scales->dtype]);
        return;
    }
    for (uint64_t i = 0; scales != NULL && i < channels; i++) {
        double scale = (double)((const float *)scales->data)[i];
        if (scale < 0.0) {
            fail(loader, STATUS_BAD_INPUT,
                 "%s: tensor \"%s\": expected scales from 0, found %g at element %llu",
                 loader->source, name, scale, (unsigned long long)i);
            return;
        }
    }
}

/* Weights that a file has in e4m3, beside "NAME.scale", are kept as they are: true where it has. */
static bool take_e4m3(struct loader *loader, const char *name, uint32_t rank, const uint64_t *shape,
                      const struct model_matmul *matmul, void *packed)
{
    char text[SAFETENSORS_NAME_BYTES];
    char scale[SAFETENSORS_NAME_BYTES];
    snprintf(text, sizeof text, "%s.weight", name);
    snprintf(scale, sizeof scale, "%s.scale", name);
    const struct safetensors_tensor *weights =
        loader->file != NULL && matmul->e4m3 ? safetensors_find(loader->file, text) : NULL;
    if (weights == NULL || weights->dtype != SAFETENSORS_F8_E4M3 || loader->status != STATUS_OK) {
        return false;
    }
    loader->taken += 2;
    if (loader->base == NULL) {
        check_tensor(loader, text, rank, shape, true);
        check_scales(loader, scale, matmul->n);
    } else {
        loader->kernels->keep_e4m3(weights->data, safetensors_find(loader->file, scale)->data,
                                   matmul->n, matmul->k, packed);
    }
    return true;
}

/* ---- the kinds of tensors ---- */

static const float *take_floats(struct loader *loader, const char *name, uint32_t rank, uint64_t a,
                                uint64_t b)
{
    const uint64_t shape[] = {a, b};
    uint64_t count = rank == 2 ? a * b : a;
    const float *values = take(loader, name, rank, shape, 0.1);
    float *kept = reserve(loader, (size_t)count * sizeof *kept);
    if (values != NULL) {
        memcpy(kept, values, (size_t)count * sizeof *kept);
    }
    return kept;
}

/* Form in which a product is computed: LAYER, of a layer that is not a reference, as the
 * configuration's type says; in NN_INT8 all but FLOATS in integers (engine/model.md, "Precision").
 */
enum numbers { FLOATS, WHOLE, LAYER };

/* The maps that a convolution takes. */
struct inputs {
    uint32_t count;
    uint32_t channels[2];
    uint32_t used[2]; /* of them; the others are zero */
};

/* inputs: NULL for a linear layer. */
static size_t packed_bytes(const struct nn_kernels *kernels, const struct model_matmul *matmul,
                           const struct inputs *inputs)
{
    if (matmul->e4m3) {
        return kernels->packed_bytes_e4m3(matmul->n, matmul->k);
    }
    if (!matmul->int8) {
        return kernels->packed_bytes(matmul->n, matmul->k);
    }
    if (inputs == NULL) {
        return kernels->packed_bytes_int8(matmul->n, matmul->k);
    }
    return kernels->conv_packed_bytes_int8(matmul->n, inputs->count, inputs->channels);
}

static void pack(const struct nn_kernels *kernels, const struct model_matmul *matmul,
                 const struct inputs *inputs, const float *values, void *out)
{
    if (matmul->e4m3) {
        kernels->pack_e4m3(values, matmul->n, matmul->k, out);
    } else if (!matmul->int8) {
        kernels->pack(values, matmul->n, matmul->k, out);
    } else if (inputs == NULL) {
        kernels->pack_int8(values, matmul->n, matmul->k, out);
    } else {
        kernels->conv_pack_int8(values, matmul->n, inputs->count, inputs->channels, inputs->used,
                                out);
    }
}

static void take_matmul(struct loader *loader, const char *name, uint32_t rank,
                        const uint64_t *shape, const struct inputs *inputs, enum numbers numbers,
                        struct model_matmul *out)
{
    const struct nn_kernels *kernels = loader->kernels;
    char text[SAFETENSORS_NAME_BYTES];
    uint64_t k = 1;
    for (uint32_t i = 1; i < rank; i++) {
        k *= shape[i];
    }
    *out = (struct model_matmul){
        .n = (uint32_t)shape[0],
        .k = (uint32_t)k,
        .int8 = numbers != FLOATS && kernels->precision == NN_INT8,
        .e4m3 = numbers == LAYER && loader->type == MODEL_E4M3,
    };
    snprintf(text, sizeof text, "%s.weight", name);
    void *packed = reserve(loader, packed_bytes(kernels, out, inputs));
    const bool kept = take_e4m3(loader, name, rank, shape, out, packed);
    const float *values = kept ? NULL : take(loader, text, rank, shape, 1.0 / sqrt((double)k));
    if (values != NULL) {
        pack(kernels, out, inputs, values, packed);
    }
    out->packed = packed;
    if (loader->device && !out->e4m3) { /* which are packed as devices take them */
        uint64_t count = out->n * k;
        uint16_t *plain = reserve(loader, (size_t)count * sizeof *plain);
        if (values != NULL) {
            kernels->to_act(values, plain, (size_t)count);
        }
        out->plain = plain;
    }
    snprintf(text, sizeof text, "%s.bias", name);
    out->bias = take_floats(loader, text, 1, out->n, 1);
}

static void take_linear(struct loader *loader, const char *prefix, const char *name, uint32_t n,
                        uint32_t k, enum numbers numbers, struct model_matmul *out)
{
    char text[SAFETENSORS_NAME_BYTES - 8];
    const uint64_t shape[] = {n, k};
    snprintf(text, sizeof text, "%s%s", prefix, name);
    take_matmul(loader, text, 2, shape, NULL, numbers, out);
}

static void take_conv(struct loader *loader, const char *prefix, const char *name, uint32_t n,
                      struct inputs inputs, enum numbers numbers, struct model_matmul *out)
{
    char text[SAFETENSORS_NAME_BYTES - 8];
    const uint64_t shape[] = {n, 3, 3, nn_conv_depth(inputs.count, inputs.channels)};
    snprintf(text, sizeof text, "%s%s", prefix, name);
    take_matmul(loader, text, 4, shape, &inputs, numbers, out);
}

/* ---- the list ---- */

static void walk_part(struct loader *loader, const char *prefix, const struct model_config *config,
                      struct model_part *part)
{
    uint32_t c = part->channels;
    uint32_t d = config->width;
    uint32_t positions = config->patch * config->patch;
    take_linear(loader, prefix, "mod", 4 * c, d, FLOATS, &part->mod);
    const struct inputs context = {1, {part->context_channels}, {part->context_channels}};
    const struct inputs latents = {1, {LATENT_CHANNELS}, {(part->latents + 3) / 4 * 4}};
    const struct inputs one = {1, {c}, {c}};
    const struct inputs both = {2, {c, c}, {c, c}};
    take_conv(loader, prefix, "ctx", c, context, FLOATS, &part->ctx);
    take_conv(loader, prefix, "in", c, latents, WHOLE, &part->in);
    take_conv(loader, prefix, "mid", c, one, FLOATS, &part->mid);
    take_linear(loader, prefix, "embed", d, positions * c, WHOLE, &part->embed);
    take_linear(loader, prefix, "unembed", positions * c, d, WHOLE, &part->unembed);
    take_conv(loader, prefix, "head", c, both, WHOLE, &part->head);
    take_conv(loader, prefix, "out", LATENT_CHANNELS, one, WHOLE, &part->out);
    take_linear(loader, prefix, "memory", d, positions * LATENT_CHANNELS, WHOLE, &part->memory);
}

static const float *block_floats(struct loader *loader, const char *prefix, const char *name,
                                 uint32_t rank, uint64_t a, uint64_t b)
{
    char text[SAFETENSORS_NAME_BYTES];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    return take_floats(loader, text, rank, a, b);
}

static void walk_block(struct loader *loader, const struct model_config *config, uint32_t layer,
                       struct model_block *block)
{
    uint32_t d = config->width;
    uint32_t q = model_query_width(config);
    uint32_t kv = model_kv_width(config);
    bool reference =
        layer < config->reference_layers || layer + config->reference_layers >= config->layers;
    enum numbers numbers = reference ? WHOLE : LAYER;
    char prefix[32];
    snprintf(prefix, sizeof prefix, "blocks.%u.", layer);
    block->table = block_floats(loader, prefix, "table", 2, 6, d);
    take_linear(loader, prefix, "qkv", q + 2 * kv, d, numbers, &block->qkv);
    take_linear(loader, prefix, "o", d, q, numbers, &block->o);
    const bool past = !model_layer_window(config, layer); /* of its own */
    if (past) {
        block->norm_weight = block_floats(loader, prefix, "tnorm.weight", 1, d, 1);
        block->norm_bias = block_floats(loader, prefix, "tnorm.bias", 1, d, 1);
        take_linear(loader, prefix, "tq", q, d, numbers, &block->tq);
    }
    take_linear(loader, prefix, "tk", kv, d, numbers, &block->tk);
    take_linear(loader, prefix, "tv", kv, d, numbers, &block->tv);
    if (past) {
        take_linear(loader, prefix, "to", d, q, numbers, &block->to);
        block->tbias = block_floats(loader, prefix, "tbias", 2, config->heads, config->window);
        block->null_k = block_floats(loader, prefix, "null_k", 1, kv, 1);
        block->null_v = block_floats(loader, prefix, "null_v", 1, kv, 1);
    }
    take_linear(loader, prefix, "fc1", 4 * d, d, numbers, &block->fc1);
    take_linear(loader, prefix, "fc2", d, 4 * d, numbers, &block->fc2);
}

static void walk(struct loader *loader, struct model *model)
{
    const struct model_config *config = &model->config;
    uint32_t d = config->width;
    take_linear(loader, "", "time1", d, COND_COUNT + MODEL_FEATURES, FLOATS, &model->time1);
    take_linear(loader, "", "time2", d, d, FLOATS, &model->time2);
    take_linear(loader, "", "ada", 6 * d, d, FLOATS, &model->ada);
    take_linear(loader, "", "final", 2 * d, d, FLOATS, &model->final);
    model->pos = take_floats(loader, "pos", 2, model_tokens(config), d);
    model->part[PART_BEV].channels = config->bev_channels;
    model->part[PART_BEV].context_channels = CONTEXT_BEV_CHANNELS;
    model->part[PART_BEV].latents = FRAME_BEV_CHANNELS;
    model->part[PART_CAMERA].channels = config->camera_channels;
    model->part[PART_CAMERA].context_channels = CONTEXT_CAMERA_CHANNELS;
    model->part[PART_CAMERA].latents = FRAME_CAMERA_CHANNELS;
    walk_part(loader, "bev.", config, &model->part[PART_BEV]);
    walk_part(loader, "cam.", config, &model->part[PART_CAMERA]);
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        walk_block(loader, config, layer, &model->blocks[layer]);
    }
}

/* A tensor that nobody asked for means that the file is of another network. */
static void check_extra(struct loader *loader)
{
    for (size_t i = 0; i < safetensors_count(loader->file); i++) {
        if (!loader->seen[i]) {
            fail(loader, STATUS_BAD_INPUT,
                 "%s: tensor \"%s\": expected only the %u tensors of this configuration",
                 loader->source, safetensors_at(loader->file, i)->name, loader->taken);
            return;
        }
    }
}

enum status model_load_weights(struct model *model, const char *source,
                               const struct safetensors *file, uint64_t seed, struct error *error)
{
    struct loader loader = {
        .source = source,
        .file = file,
        .kernels = &model->kernels,
        .device = model->device,
        .type = model->config.type,
        .seed = seed,
        .error = error,
    };
    if (file != NULL) {
        loader.seen = calloc(safetensors_count(file) + 1, 1);
        TRY(memory_check(loader.seen, error, "%s: no memory to check it", source));
    }
    walk(&loader, model);
    if (file != NULL && loader.status == STATUS_OK) {
        check_extra(&loader);
    }
    free(loader.seen);
    if (loader.status != STATUS_OK) {
        return loader.status;
    }
    size_t bytes = loader.used_bytes;
    float *scratch = malloc(loader.scratch_count * sizeof *scratch);
    uint8_t *base = aligned_alloc(64, bytes);
    if (scratch == NULL || base == NULL) {
        free(scratch);
        free(base);
        return error_set(error, STATUS_NO_MEMORY, "%s: no memory for %zu bytes of packed weights",
                         source, bytes);
    }
    loader.base = base;
    loader.scratch = scratch;
    loader.used_bytes = 0;
    loader.taken = 0;
    walk(&loader, model);
    CHECK(loader.used_bytes == bytes);
    free(scratch);
    model->weights = base;
    return STATUS_OK;
}
