/*
 * A model as devices take it (kernels/device.h): the same weights under the same names, unpacked.
 */
#include "engine/learned/model_internal.h"

static struct device_matmul matmul_of(const struct model_matmul *matmul)
{
    const float *scale = matmul->e4m3 ? matmul->packed : NULL;
    return (struct device_matmul){
        .n = matmul->n,
        .k = matmul->k,
        .weights = matmul->plain,
        .bias = matmul->bias,
        .e4m3 = scale != NULL ? (const uint8_t *)(scale + matmul->n) : NULL,
        .scale = scale,
    };
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
    const uint32_t dim = config->head_dim;
    const bool e4m3 = config->type == MODEL_E4M3;
    if ((dim != DEVICE_HEAD_MIN && dim != 2 * DEVICE_HEAD_MIN && dim != 4 * DEVICE_HEAD_MIN) ||
        (e4m3 && 4 * config->width > DEVICE_E4M3_TERMS_MAX)) {
        return error_set(error, STATUS_DEVICE,
                         "model %s: for the CPU alone; devices take heads of 32, 64 or 128 "
                         "numbers, in e4m3 a width of at most %d",
                         config->name, DEVICE_E4M3_TERMS_MAX / 4);
    }
    for (uint32_t taken = 1; taken <= config->steps; taken++) {
        for (uint32_t step = 0; step < taken; step++) {
            out->weight[(taken - 1) * config->steps + step] =
                model_step_weight(config, taken, step);
        }
    }
    struct device_model *to = &out->description;
    *to = (struct device_model){
        .width = config->width,
        .layers = config->layers,
        .window = config->window,
        .steps = config->steps,
        .patch = config->patch,
        .tokens = model_tokens(config),
        .heads = config->heads,
        .kv_heads = config->kv_heads,
        .head_dim = config->head_dim,
        .reach = config->reach,
        .past = config->past,
        .pages_e4m3 = config->pages == MODEL_E4M3,
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
