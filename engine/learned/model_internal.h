/*
 * Model internals: a world model's packed weights as the forward pass reads them. Private to
 * model*.c and forward*.c; the names are those of engine/model.md.
 */
#ifndef SWERVE_ENGINE_LEARNED_MODEL_INTERNAL_H
#define SWERVE_ENGINE_LEARNED_MODEL_INTERNAL_H

#include "base/scan.h"
#include "engine/learned/model.h"
#include "engine/learned/safetensors.h"
#include "engine/sensors/layout.h"
#include "kernels/device.h"
#include "kernels/page_layout.h"

enum {
    MODEL_WIDTH_MAX = 6144,
    MODEL_CHANNELS_MAX = 256,
    MODEL_REACH_MAX = 58, /* whose window is NN_WIDE_TOKENS_MAX, near enough */
    MODEL_FEATURES = 64,  /* of a time */
    LATENT_CHANNELS = 32, /* of x and of a frame, padded */
    CONTEXT_BEV_CHANNELS = 64,
    CONTEXT_CAMERA_CHANNELS = 32,
};

/* A linear layer or a convolution (k = 9 in): y = w x + bias. */
struct model_matmul {
    uint32_t n, k;
    const void *packed;
    bool int8;             /* packed for integers; the rule is in engine/model.md, "Precision" */
    bool e4m3;             /* packed for e4m3, of the configuration's type */
    const uint16_t *plain; /* bf16 [n][k], NULL unless opened for devices */
    const float *bias;     /* [n] */
};

/* Parts that BEV and cameras each have. */
enum { PART_BEV = 0, PART_CAMERA, PART_COUNT };
struct model_part {
    uint32_t channels;         /* C */
    uint32_t context_channels; /* 64, 32 */
    uint32_t latents;          /* channels of x that are no padding: 22, 12 */
    struct model_matmul mod, ctx, in, mid, embed, unembed, head, out, memory;
};

struct model_block {
    const float *table; /* [6][d] */
    struct model_matmul qkv, o, tq, tk, tv, to, fc1, fc2;
    /* NULL in a layer with windows, as tq and to. */
    const float *norm_weight; /* [d], of tnorm */
    const float *norm_bias;
    const float *tbias;  /* [heads][window] */
    const float *null_k; /* [kv_heads * head_dim] */
    const float *null_v;
};

struct model {
    struct model_config config;
    struct nn_kernels kernels;
    bool device; /* plain weights are there */
    double peak_flops;
    char hash[SHA256_HEX_BYTES];
    struct model_matmul time1, time2, ada, final;
    const float *pos; /* [tokens][d] */
    struct model_part part[PART_COUNT];
    struct model_block blocks[MODEL_LAYERS_MAX];
    float features[MODEL_STEPS_MAX][MODEL_FEATURES]; /* of every step's time */
    void *weights;                                   /* holds all of the above */
};

/* Parses and checks the text of `config`; errors name `source`, offset, expected, found. */
enum status model_config_parse(const char *source, const char *text, size_t bytes,
                               struct model_config *out, struct error *error);
/* Puts in what the configuration leaves out. */
void model_config_complete(struct model_config *config);
/* Tokens of the BEV, and of one camera. */
static inline uint32_t model_tokens_bev(const struct model_config *config)
{
    uint32_t side = WINDOW_SIDE / config->patch;
    return side * side;
}
static inline uint32_t model_tokens_camera(const struct model_config *config)
{
    return FRAME_CAMERA_POSITIONS / (config->patch * config->patch);
}
/* Numbers of a token's queries, and of its keys or values. */
static inline uint32_t model_query_width(const struct model_config *config)
{
    return config->heads * config->head_dim;
}
static inline uint32_t model_kv_width(const struct model_config *config)
{
    return config->kv_heads * config->head_dim;
}
/* Whether the layer looks at windows of space and time: then it has no attention over the past
 * beside it, and none of its weights. */
static inline bool model_layer_window(const struct model_config *config, uint32_t layer)
{
    return config->reach != 0 && config->joint[layer];
}
/* Of keys and values in its pages, as activations of `act_bytes` or in e4m3. */
static inline struct page_layout model_page_layout(const struct model_config *config,
                                                   size_t act_bytes)
{
    const struct page_shape shape = {
        .layers = config->layers,
        .tokens = model_tokens(config),
        .kv_heads = config->kv_heads,
        .head_dim = config->head_dim,
        .number_bytes = config->pages == MODEL_E4M3 ? 1 : (uint32_t)act_bytes,
    };
    return page_layout_of(&shape);
}
static inline struct nn_heads model_heads(const struct model_config *config)
{
    return (struct nn_heads){config->heads, config->kv_heads, config->head_dim};
}

/* Checks that the text above cannot express: multiples, limits, a schedule from 0 to 1. */
enum status model_config_check(const char *source, const struct model_config *config,
                               struct error *error);

/* Checks and packs every tensor into model->weights; config and kernels are set. file NULL: values
 * are drawn from `seed` instead. */
enum status model_load_weights(struct model *model, const char *source,
                               const struct safetensors *file, uint64_t seed, struct error *error);

/* Place in the schedule of the time at which a step begins, of a sampler that takes `steps` (1 to
 * config->steps): evenly chosen. That of step `steps` is the schedule's end. */
static inline uint32_t model_time(const struct model_config *config, uint32_t steps, uint32_t step)
{
    return step * config->steps / steps;
}
/* The weight of x0 - x in a step of that sampler: 1 in the last. */
float model_step_weight(const struct model_config *config, uint32_t steps, uint32_t step);

/* The model as a device takes it; refers to the model's own memory and to `weight`. */
struct model_device {
    struct device_model description;
    float weight[MODEL_STEPS_MAX * MODEL_STEPS_MAX];
};
/* STATUS_DEVICE when it was not opened for devices. */
enum status model_describe(const struct model *model, struct model_device *out,
                           struct error *error);

#endif
