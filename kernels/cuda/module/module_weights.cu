/*
 * A model to the device: one allocation, filled by one copy. The list of what a model has is walked
 * twice, to count and to fill, so that the two cannot differ. Products that take the same input are
 * stacked to one.
 */
#include "kernels/cuda/module/module.cuh"

#include <stdlib.h>
#include <string.h>

struct packer {
    uint8_t *host;   /* NULL in the first walk */
    uint8_t *device; /* the same place on the device */
    size_t used;
};

/* Room for `bytes`; their place on the device, and on the host in *host. */
static void *reserve(struct packer *p, size_t bytes, void **host)
{
    *host = p->host != NULL ? p->host + p->used : NULL;
    void *device = p->device != NULL ? p->device + p->used : NULL;
    p->used += (bytes + 255) / 256 * 256;
    return device;
}

static const float *put_floats(struct packer *p, const float *values, size_t count)
{
    void *host;
    void *device = reserve(p, count * sizeof *values, &host);
    if (host != NULL) {
        memcpy(host, values, count * sizeof *values);
    }
    return (const float *)device;
}

/* Products of the same k, one after the other, as one. */
static struct module_matmul put_stack(struct packer *p, const struct device_matmul *const *list,
                                      uint32_t count)
{
    struct module_matmul out = {0, list[0]->k, NULL, NULL};
    for (uint32_t i = 0; i < count; i++) {
        out.n += list[i]->n;
    }
    void *weights;
    void *biases;
    out.w = (const uint16_t *)reserve(p, (size_t)out.n * out.k * sizeof(uint16_t), &weights);
    out.bias = (const float *)reserve(p, out.n * sizeof(float), &biases);
    size_t row = 0;
    for (uint32_t i = 0; i < count && weights != NULL; i++) {
        const struct device_matmul *matmul = list[i];
        memcpy((uint16_t *)weights + row * out.k, matmul->weights,
               (size_t)matmul->n * matmul->k * sizeof(uint16_t));
        memcpy((float *)biases + row, matmul->bias, matmul->n * sizeof(float));
        row += matmul->n;
    }
    return out;
}

static struct module_matmul put(struct packer *p, const struct device_matmul *matmul)
{
    return put_stack(p, &matmul, 1);
}

static void put_part(struct packer *p, const struct device_part *from, int index,
                     struct module_part *to)
{
    to->shape = shape_part_of(index);
    to->channels = from->channels;
    to->ctx = put(p, &from->ctx);
    to->in = put(p, &from->in);
    to->mid = put(p, &from->mid);
    to->embed = put(p, &from->embed);
    to->unembed = put(p, &from->unembed);
    to->head = put(p, &from->head);
    to->out = put(p, &from->out);
    to->memory = put(p, &from->memory);
}

static void put_block(struct packer *p, const struct device_model *model,
                      const struct device_block *from, struct module_block *to)
{
    uint32_t d = model->width;
    to->joint = from->joint;
    to->qkv = put(p, &from->qkv);
    to->o = put(p, &from->o);
    to->tq = put(p, &from->tq);
    to->to = put(p, &from->to);
    to->fc1 = put(p, &from->fc1);
    to->fc2 = put(p, &from->fc2);
    to->norm_weight = put_floats(p, from->norm_weight, d);
    to->norm_bias = put_floats(p, from->norm_bias, d);
    to->tbias = put_floats(p, from->tbias, (size_t)d / SHAPE_HEAD * model->window);
    to->null_k = put_floats(p, from->null_k, d);
    to->null_v = put_floats(p, from->null_v, d);
}

static const float *put_tables(struct packer *p, const struct device_model *model)
{
    size_t row = 6 * (size_t)model->width;
    void *host;
    void *device = reserve(p, model->layers * row * sizeof(float), &host);
    for (uint32_t layer = 0; layer < model->layers && host != NULL; layer++) {
        memcpy((float *)host + layer * row, model->blocks[layer].table, row * sizeof(float));
    }
    return (const float *)device;
}

/* b / 127.5 - 1 in bf16, to nearest even. */
static const uint16_t *put_bytes(struct packer *p)
{
    void *host;
    void *device = reserve(p, 256 * sizeof(uint16_t), &host);
    for (uint32_t b = 0; b < 256 && host != NULL; b++) {
        float x = (float)(b / 127.5 - 1.0);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        ((uint16_t *)host)[b] = (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
    }
    return (const uint16_t *)device;
}

static void put_model(struct packer *p, const struct device_model *model,
                      struct module_weights *out)
{
    out->features = put_floats(p, model->features, (size_t)model->steps * DEVICE_FEATURES);
    out->bytes = put_bytes(p);
    out->time1 = put(p, &model->time1);
    out->time2 = put(p, &model->time2);
    const struct device_matmul *mods[] = {&model->ada, &model->final, &model->part[0].mod,
                                          &model->part[1].mod};
    out->mod = put_stack(p, mods, 4);
    const struct device_matmul *kv[2 * DEVICE_LAYERS_MAX] = {NULL};
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        kv[2 * layer] = &model->blocks[layer].tk;
        kv[2 * layer + 1] = &model->blocks[layer].tv;
    }
    out->kv = put_stack(p, kv, 2 * model->layers);
    out->pos = put_floats(p, model->pos, (size_t)DEVICE_TOKENS * model->width);
    out->table = put_tables(p, model);
    for (int i = 0; i < SHAPE_PARTS; i++) {
        put_part(p, &model->part[i], i, &out->part[i]);
    }
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        put_block(p, model, &model->blocks[layer], &out->blocks[layer]);
    }
}

int module_weights_load(const struct device_model *model, struct module_weights *out, void **memory,
                        uint64_t *bytes, struct device_text *why)
{
    struct packer packer = {NULL, NULL, 0};
    *out = {};
    out->width = model->width;
    out->layers = model->layers;
    out->window = model->window;
    out->steps = model->steps;
    memcpy(out->weight, model->weight, model->steps * sizeof out->weight[0]);
    memcpy(out->camera_yaw_rad, model->camera_yaw_rad, sizeof out->camera_yaw_rad);
    put_model(&packer, model, out);
    size_t total = packer.used;
    uint8_t *host = (uint8_t *)calloc(total, 1);
    uint8_t *device = NULL;
    cudaError_t error = cudaMalloc(&device, total);
    if (host == NULL || error != cudaSuccess) {
        free(host);
        cudaFree(device);
        return module_fault(why, DEVICE_FAULT_MEMORY, "memory for the model's weights", error);
    }
    packer = {host, device, 0};
    put_model(&packer, model, out);
    error = cudaMemcpy(device, host, total, cudaMemcpyHostToDevice);
    free(host);
    if (error != cudaSuccess) {
        cudaFree(device);
        return module_fault(why, DEVICE_FAULT_LOST, "copying the model's weights", error);
    }
    *memory = device;
    *bytes = total;
    return DEVICE_OK;
}
