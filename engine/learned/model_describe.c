/*
 * A model as devices take it (kernels/device.h): the same weights under the same names, unpacked.
 */
#include "engine/learned/model_internal.h"

static struct device_matmul matmul_of(const struct model_matmul *matmul)
{
    return (struct device_matmul){matmul->n, matmul->k, matmul->plain, matmul->bias};
}

static struct device_part part_of(const struct model_part *part)
{
    return (struct device_part){
        .channels = part->channels,
        .context_channels = part->context_channels,
        .mod = matmul_of(&part->mod),
        .ctx = matmul_of(&part->ctx),
        .in = matmul_of(&part->in),
        .mid = matmul_of(&part->mid),
        .embed = matmul_of(&part->embed),
        .unembed = matmul_of(&part->unembed),
        .head = matmul_of(&part->head),
        .out = matmul_of(&part->out),
        .memory = matmul_of(&part->memory),
    };
}

static struct device_block block_of(const struct model_block *block, bool joint)
{
    return (struct device_block){
        .joint = joint,
        .table = block->table,
        .qkv = matmul_of(&block->qkv),
        .o = matmul_of(&block->o),
        .tq = matmul_of(&block->tq),
        .tk = matmul_of(&block->tk),
        .tv = matmul_of(&block->tv),
        .to = matmul_of(&block->to),
        .fc1 = matmul_of(&block->fc1),
        .fc2 = matmul_of(&block->fc2),
        .norm_weight = block->norm_weight,
        .norm_bias = block->norm_bias,
        .tbias = block->tbias,
        .null_k = block->null_k,
        .null_v = block->null_v,
    };
}

enum { WIDTH_MAX = 1024 }; /* of models that devices were tried with */

float model_step_weight(const struct model_config *config, uint32_t steps, uint32_t step)
{
    double from = config->schedule[model_time(config, steps, step)];
    double to = config->schedule[model_time(config, steps, step + 1)];
    return step + 1 == steps ? 1.0f : (float)((to - from) / (1.0 - from));
}

enum status model_describe(const struct model *model, struct model_device *out, struct error *error)
{
    const struct model_config *config = &model->config;
    if (!model->device) {
        return error_set(error, STATUS_DEVICE,
                         "model %s: opened in %s for the CPU alone; devices take bf16",
                         config->name, nn_precision_names[model->kernels.precision]);
    }
    if (model_plain(config) || config->patch != WINDOW_PATCH ||
        config->layers > DEVICE_LAYERS_MAX || config->width > WIDTH_MAX) {
        return error_set(
            error, STATUS_DEVICE,
            "model %s: for the CPU alone; devices take patches of %d, heads of %d with "
            "keys and values of their own, bf16, at most %d layers, a width of at most "
            "%d",
            config->name, WINDOW_PATCH, NN_HEAD, DEVICE_LAYERS_MAX, WIDTH_MAX);
    }
    for (uint32_t step = 0; step < config->steps; step++) {
        out->weight[step] = model_step_weight(config, config->steps, step);
    }
    struct device_model *to = &out->description;
    *to = (struct device_model){
        .width = config->width,
        .layers = config->layers,
        .window = config->window,
        .steps = config->steps,
        .features = model->features[0],
        .weight = out->weight,
        .time1 = matmul_of(&model->time1),
        .time2 = matmul_of(&model->time2),
        .ada = matmul_of(&model->ada),
        .final = matmul_of(&model->final),
        .pos = model->pos,
    };
    for (int i = 0; i < CAMERA_COUNT; i++) {
        to->camera_yaw_rad[i] = camera_calibrations[i].yaw_rad;
    }
    for (int i = 0; i < PART_COUNT; i++) {
        to->part[i] = part_of(&model->part[i]);
    }
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        to->blocks[layer] = block_of(&model->blocks[layer], config->joint[layer]);
    }
    return STATUS_OK;
}
