/*
 * A model to the device: one allocation, filled by one copy. The list of what a model has is walked
 * twice, to count and to fill, so that the two cannot differ. Products that take the same input are
 * stacked to one.
 */
#include "kernels/cuda/module/module.cuh"

#include <math.h>
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

/* Products of the same k and type, one after the other, as one. */
static struct module_matmul put_stack(struct packer *p, const struct device_matmul *const *list,
                                      uint32_t count)
{
    struct module_matmul out = {};
    const bool e4m3 = list[0]->e4m3 != NULL;
    out.type = e4m3 ? GPU_E4M3 : GPU_BF16;
    out.k = list[0]->k;
    for (uint32_t i = 0; i < count; i++) {
        out.n += list[i]->n;
    }
    const size_t row_bytes = out.k * (e4m3 ? sizeof(uint8_t) : sizeof(uint16_t));
    void *weights;
    void *biases;
    void *scales = NULL;
    out.w = reserve(p, out.n * row_bytes, &weights);
    out.bias = (const float *)reserve(p, out.n * sizeof(float), &biases);
    if (e4m3) {
        out.scale = (const float *)reserve(p, out.n * sizeof(float), &scales);
    }
    size_t row = 0;
    for (uint32_t i = 0; i < count && weights != NULL; i++) {
        const struct device_matmul *matmul = list[i];
        const void *from = e4m3 ? (const void *)matmul->e4m3 : (const void *)matmul->weights;
        memcpy((uint8_t *)weights + row * row_bytes, from, matmul->n * row_bytes);
        memcpy((float *)biases + row, matmul->bias, matmul->n * sizeof(float));
        if (e4m3) {
            memcpy((float *)scales + row, matmul->scale, matmul->n * sizeof(float));
        }
        row += matmul->n;
    }
    return out;
}

static struct module_matmul put(struct packer *p, const struct device_matmul *matmul)
{
    return put_stack(p, &matmul, 1);
}

static void put_part(struct packer *p, const struct device_part *from, int index, uint32_t patch,
                     struct module_part *to)
{
    to->shape = shape_part_of(index, patch);
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
    to->window = from->joint != 0 && model->reach != 0;
    to->qkv = put(p, &from->qkv);
    to->o = put(p, &from->o);
    to->fc1 = put(p, &from->fc1);
    to->fc2 = put(p, &from->fc2);
    if (to->window) {
        return;
    }
    to->tq = put(p, &from->tq);
    to->to = put(p, &from->to);
    to->norm_weight = put_floats(p, from->norm_weight, d);
    to->norm_bias = put_floats(p, from->norm_bias, d);
    const size_t kv = (size_t)model->kv_heads * model->head_dim;
    to->tbias = put_floats(p, from->tbias, (size_t)model->heads * model->window);
    to->null_k = put_floats(p, from->null_k, kv);
    to->null_v = put_floats(p, from->null_v, kv);
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

/* The products of K and V, a run of layers of one type each; check_model has seen that there are no
 * more runs than places. */
static void put_memories(struct packer *p, const struct device_model *model,
                         struct module_weights *out)
{
    out->memory_count = 0;
    for (uint32_t layer = 0; layer < model->layers;) {
        const struct device_matmul *run[2 * DEVICE_LAYERS_MAX] = {NULL};
        const bool e4m3 = module_block_e4m3(&model->blocks[layer]);
        struct module_memory *to = &out->memory[out->memory_count++];
        uint32_t count = 0;
        to->first_layer = layer;
        for (; layer < model->layers && module_block_e4m3(&model->blocks[layer]) == e4m3; layer++) {
            run[count++] = &model->blocks[layer].tk;
            run[count++] = &model->blocks[layer].tv;
        }
        to->matmul = put_stack(p, run, count);
    }
}

static void put_model(struct packer *p, const struct device_model *model,
                      struct module_weights *out)
{
    out->features = put_floats(p, model->features, (size_t)model->steps * DEVICE_FEATURES);
    out->step_weights = put_floats(p, model->weight, (size_t)model->steps * model->steps);
    out->bytes = put_bytes(p);
    out->time1 = put(p, &model->time1);
    out->time2 = put(p, &model->time2);
    const struct device_matmul *mods[] = {&model->ada, &model->final, &model->part[0].mod,
                                          &model->part[1].mod};
    out->mod = put_stack(p, mods, 4);
    put_memories(p, model, out);
    out->pos = put_floats(p, model->pos, (size_t)model->tokens * model->width);
    out->table = put_tables(p, model);
    for (int i = 0; i < SHAPE_PARTS; i++) {
        put_part(p, &model->part[i], i, model->patch, &out->part[i]);
    }
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        put_block(p, model, &model->blocks[layer], &out->blocks[layer]);
    }
}

/* Every head's pairs have the same range of frequencies as those of one of 32 numbers, 0.6. */
static double rotary_ratio(uint32_t head_dim)
{
    return head_dim == 32 ? 0.6 : exp(log(0.6) * 32 / head_dim);
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
    out->tokens = model->tokens;
    out->heads = model->heads;
    out->kv_heads = model->kv_heads;
    out->head_dim = model->head_dim;
    out->reach = model->reach;
    out->past = model->past;
    out->query = model->heads * model->head_dim;
    out->kv = model->kv_heads * model->head_dim;
    out->page_type = model->pages_e4m3 != 0 ? GPU_E4M3 : GPU_BF16;
    out->page_shape = {model->layers, model->tokens, model->kv_heads, model->head_dim,
                       model->pages_e4m3 != 0 ? 1u : (uint32_t)sizeof(uint16_t)};
    out->page = page_layout_of(&out->page_shape);
    out->rotary_ratio = rotary_ratio(model->head_dim);
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        if (module_block_e4m3(&model->blocks[layer])) {
            out->packed = out->query > 4 * model->width ? out->query : 4 * model->width;
        }
    }
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
