/*
 * The plain kernels, see plain.h. No shared memory, no communication between threads but integer
 * counts, so that each reads like its formula in engine/model.md.
 */
#include "kernels/cuda/gpu.h"

#include "kernels/cuda/number.cuh"
#include "kernels/cuda/plain.h"

enum {
    THREADS = 128,
    GROUP = 4, /* outputs of one thread, to read inputs less often */
    LANES = 8, /* partial sums of an output: term k adds to k % LANES */
};

static dim3 grid_of(uint32_t items, uint32_t slots)
{
    return dim3((items + THREADS - 1) / THREADS, slots);
}

GPU_FN float silu_of(float x)
{
    return x / (1.0f + expf(-x));
}

/* Adds a . w[j] over count terms (a multiple of LANES) to the partial sums of output j; the rows of
 * w are `stride` apart. A product of two bf16 is exact in single precision, so a term is rounded
 * once, fused or not. */
GPU_FN void dot_group(const uint16_t *a, const uint16_t *w, size_t stride, uint32_t count,
                      float sums[GROUP][LANES])
{
    for (uint32_t k = 0; k < count; k += LANES) {
        for (uint32_t j = 0; j < GROUP; j++) {
            for (uint32_t l = 0; l < LANES; l++) {
                sums[j][l] +=
                    gpu_bf16_to_float(a[k + l]) * gpu_bf16_to_float(w[j * stride + k + l]);
            }
        }
    }
}

/* Halves first. */
GPU_FN float lanes_sum(float lanes[LANES])
{
    for (uint32_t half = LANES / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

/* ---- products ---- */

__global__ void __launch_bounds__(THREADS) k_plain_gemm(struct plain_gemm g)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t groups = g.n / GROUP;
    uint32_t slot = blockIdx.y;
    if (i >= g.slot_rows * groups || !g.slots[slot].active) {
        return;
    }
    uint32_t row = i / groups;
    uint32_t first = i % groups * GROUP;
    float sums[GROUP][LANES] = {};
    dot_group(g.a + slot * g.a_stride + (size_t)row * g.k, g.w + (size_t)first * g.k, g.k, g.k,
              sums);
    for (uint32_t j = 0; j < GROUP; j++) {
        uint32_t n = first + j;
        size_t at = slot * g.out_stride + (size_t)row * g.n + n;
        float y = lanes_sum(sums[j]) + (g.bias != NULL ? g.bias[n] : 0.0f);
        if (g.epilogue == PLAIN_STORE) {
            g.c[at] = y;
        } else if (g.epilogue == PLAIN_ADD) {
            g.c[at] = fmaf(g.gate != NULL ? g.gate[slot * g.gate_stride + n] : 1.0f, y, g.c[at]);
        } else {
            g.out[at] = gpu_act_bf16(g.epilogue == PLAIN_SILU_ACT ? silu_of(y) : y);
        }
    }
}

void plain_gemm_launch(const struct plain_gemm *g, void *stream)
{
    LAUNCH(k_plain_gemm, grid_of(g->slot_rows * (g->n / GROUP), g->slot_count), dim3(THREADS), 0,
           (cudaStream_t)stream, *g);
}

/* ---- convolutions ---- */

GPU_FN void conv_sums(const struct plain_conv *c, size_t corner, uint32_t first,
                      float sums[GROUP][LANES])
{
    uint32_t depth = c->in_channels[0] + (c->in_count > 1 ? c->in_channels[1] : 0);
    for (uint32_t tap = 0; tap < 9; tap++) {
        size_t position = corner + tap / 3 * (c->part.cols + 2) + tap % 3;
        const uint16_t *w = c->w + ((size_t)first * 9 + tap) * depth;
        for (uint32_t i = 0; i < c->in_count; i++) {
            dot_group(c->in[i] + position * c->in_channels[i], w, (size_t)9 * depth,
                      c->in_channels[i], sums);
            w += c->in_channels[i];
        }
    }
}

GPU_FN float conv_finish(const struct plain_conv *c, uint32_t slot, size_t flat, uint32_t o,
                         float sum)
{
    float y = sum + c->bias[o];
    if (c->add != NULL) {
        y += c->add[flat * c->out_channels + o];
    }
    if (c->scale != NULL) {
        size_t at = slot * c->mod_stride + o;
        y = fmaf(y, 1.0f + c->scale[at], c->shift[at]);
    }
    return c->silu ? silu_of(y) : y;
}

__global__ void __launch_bounds__(THREADS) k_plain_conv(struct plain_conv c)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t groups = c.out_channels / GROUP;
    uint32_t positions = c.part.images * c.part.rows * c.part.cols;
    uint32_t slot = blockIdx.y;
    if (i >= positions * groups || !c.slots[slot].active) {
        return;
    }
    uint32_t position = i / groups;
    uint32_t first = i % groups * GROUP;
    uint32_t line = position / c.part.cols;
    /* of the 3 x 3 neighbourhood's first corner in the bordered map */
    size_t corner = (((size_t)slot * c.part.images + line / c.part.rows) * (c.part.rows + 2) +
                     line % c.part.rows) *
                        (c.part.cols + 2) +
                    position % c.part.cols;
    size_t flat = (size_t)slot * positions + position;
    float sums[GROUP][LANES] = {};
    conv_sums(&c, corner, first, sums);
    for (uint32_t j = 0; j < GROUP; j++) {
        float y = conv_finish(&c, slot, flat, first + j, lanes_sum(sums[j]));
        if (c.out_f32 != NULL) {
            c.out_f32[flat * c.out_channels + first + j] = y;
        } else {
            size_t centre = corner + c.part.cols + 3;
            c.out[centre * c.out_channels + first + j] = gpu_act_bf16(y);
        }
    }
}

void plain_conv_launch(const struct plain_conv *c, void *stream)
{
    LAUNCH(k_plain_conv,
           grid_of(shape_positions(&c->part) * (c->out_channels / GROUP), c->slot_count),
           dim3(THREADS), 0, (cudaStream_t)stream, *c);
}

/* ---- rows ---- */

__global__ void __launch_bounds__(THREADS) k_plain_norm(struct plain_norm n)
{
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t slot = blockIdx.y;
    if (row >= n.slot_rows || !n.slots[slot].active) {
        return;
    }
    const float *x = n.x + ((size_t)slot * n.slot_rows + row) * n.width;
    uint16_t *out = n.out + ((size_t)slot * n.slot_rows + row) * n.width;
    float sum = 0.0f;
    for (uint32_t i = 0; i < n.width; i++) {
        sum += x[i];
    }
    float mean = sum / (float)n.width;
    float squares = 0.0f;
    for (uint32_t i = 0; i < n.width; i++) {
        float d = x[i] - mean;
        squares = fmaf(d, d, squares);
    }
    float inverse = 1.0f / sqrtf(squares / (float)n.width + NUMBER_NORM_EPSILON);
    for (uint32_t i = 0; i < n.width; i++) {
        float y = (x[i] - mean) * inverse;
        if (n.scale != NULL) {
            size_t at = slot * n.mod_stride + i;
            y = fmaf(y, n.one + n.scale[at], n.shift[at]);
        }
        out[i] = gpu_act_bf16(y);
    }
}

void plain_norm_launch(const struct plain_norm *n, void *stream)
{
    LAUNCH(k_plain_norm, grid_of(n->slot_rows, n->slot_count), dim3(THREADS), 0,
           (cudaStream_t)stream, *n);
}

__global__ void __launch_bounds__(THREADS)
    k_plain_table(const struct device_slot *slots, const float *ada, size_t ada_stride,
                  const float *own, uint32_t layers, uint32_t row, float *table)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t slot = blockIdx.y;
    if (i < layers * row && slots[slot].active) {
        table[(size_t)slot * layers * row + i] = ada[slot * ada_stride + i % row] + own[i];
    }
}

void plain_table(const struct device_slot *slots, uint32_t slot_count, const float *ada,
                 size_t ada_stride, const float *own, uint32_t layers, uint32_t width, float *table,
                 void *stream)
{
    LAUNCH(k_plain_table, grid_of(layers * 6 * width, slot_count), dim3(THREADS), 0,
           (cudaStream_t)stream, slots, ada, ada_stride, own, layers, 6 * width, table);
}

__global__ void __launch_bounds__(THREADS)
    k_plain_start(const struct device_slot *slots, const float *pos, uint32_t count, float *x)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && slots[blockIdx.y].active) {
        x[(size_t)blockIdx.y * count + i] = pos[i];
    }
}

void plain_start(const struct device_slot *slots, uint32_t slot_count, const float *pos,
                 uint32_t count, float *x, void *stream)
{
    LAUNCH(k_plain_start, grid_of(count, slot_count), dim3(THREADS), 0, (cudaStream_t)stream, slots,
           pos, count, x);
}

__global__ void __launch_bounds__(THREADS) k_plain_patches(struct plain_patches p)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; /* a position in the order of patches */
    uint32_t slot = blockIdx.y;
    uint32_t positions = p.part.tokens * SHAPE_PATCH_POSITIONS;
    if (i >= positions || !p.slots[slot].active) {
        return;
    }
    uint32_t token = i / SHAPE_PATCH_POSITIONS;
    uint32_t within = i % SHAPE_PATCH_POSITIONS;
    uint32_t image = token / p.part.image_tokens;
    uint32_t local = token % p.part.image_tokens;
    uint32_t row = local / p.part.token_cols * SHAPE_PATCH + within / SHAPE_PATCH;
    uint32_t col = local % p.part.token_cols * SHAPE_PATCH + within % SHAPE_PATCH;
    size_t at =
        (((size_t)slot * p.part.images + image) * (p.part.rows + 2) + row + 1) * (p.part.cols + 2) +
        col + 1;
    uint4 *map = (uint4 *)(p.map + at * p.channels);
    uint4 *rows = (uint4 *)(p.rows + ((size_t)slot * positions + i) * p.channels);
    for (uint32_t c = 0; c < p.channels / 8; c++) {
        if (p.back) {
            map[c] = rows[c];
        } else {
            rows[c] = map[c];
        }
    }
}

void plain_patches_launch(const struct plain_patches *p, void *stream)
{
    LAUNCH(k_plain_patches, grid_of(p->part.tokens * SHAPE_PATCH_POSITIONS, p->slot_count),
           dim3(THREADS), 0, (cudaStream_t)stream, *p);
}

/* ---- attention ---- */

/* A head's 32 numbers of token `row`, rounded; the rotary turn first where cosine is not NULL. */
GPU_FN void load_head(const float *x, const float *cosine, const float *sine, float out[SHAPE_HEAD])
{
    for (uint32_t p = 0; p < SHAPE_ROTARY; p++) {
        float a = x[2 * p];
        float b = x[2 * p + 1];
        if (cosine != NULL) {
            out[2 * p] = number_round(fmaf(a, cosine[p], -(b * sine[p])));
            out[2 * p + 1] = number_round(fmaf(b, cosine[p], a * sine[p]));
        } else {
            out[2 * p] = number_round(a);
            out[2 * p + 1] = number_round(b);
        }
    }
}

GPU_FN float dot_head(const float a[SHAPE_HEAD], const float b[SHAPE_HEAD])
{
    float sum = 0.0f;
    for (uint32_t c = 0; c < SHAPE_HEAD; c++) {
        sum = fmaf(a[c], b[c], sum);
    }
    return sum;
}

/* One query of one head: the maximum first, then weights and their sum. */
__global__ void __launch_bounds__(THREADS) k_plain_attention(struct plain_attention a)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t slot = blockIdx.y;
    uint32_t heads = a.width / SHAPE_HEAD;
    if (i >= DEVICE_TOKENS * heads || !a.slots[slot].active) {
        return;
    }
    uint32_t token = i / heads;
    size_t offset = (size_t)(i % heads) * SHAPE_HEAD;
    uint32_t view =
        token < SHAPE_TOKENS_BEV ? 0 : 1 + (token - SHAPE_TOKENS_BEV) / SHAPE_TOKENS_CAMERA;
    uint32_t first = 0;
    uint32_t end = DEVICE_TOKENS;
    if (!a.joint) {
        first = view == 0 ? 0 : SHAPE_TOKENS_BEV + (view - 1) * SHAPE_TOKENS_CAMERA;
        end = first + (view == 0 ? SHAPE_TOKENS_BEV : SHAPE_TOKENS_CAMERA);
    }
    size_t base = (size_t)slot * DEVICE_TOKENS;
    size_t stride = 3 * (size_t)a.width;
    float q[SHAPE_HEAD];
    float k[SHAPE_HEAD];
    float logits[DEVICE_TOKENS];
    load_head(a.qkv + (base + token) * stride + offset, a.cosine + (base + token) * SHAPE_ROTARY,
              a.sine + (base + token) * SHAPE_ROTARY, q);
    float maximum = -NUMBER_FLOAT_MAX;
    for (uint32_t j = first; j < end; j++) {
        load_head(a.qkv + (base + j) * stride + a.width + offset,
                  a.cosine + (base + j) * SHAPE_ROTARY, a.sine + (base + j) * SHAPE_ROTARY, k);
        logits[j] = dot_head(q, k) * NUMBER_LOGIT_SCALE;
        maximum = logits[j] > maximum ? logits[j] : maximum;
    }
    float sum = 0.0f;
    float out[SHAPE_HEAD] = {0};
    for (uint32_t j = first; j < end; j++) {
        float weight = expf(logits[j] - maximum);
        sum += weight;
        weight = number_round(weight);
        const float *v = a.qkv + (base + j) * stride + 2 * a.width + offset;
        for (uint32_t c = 0; c < SHAPE_HEAD; c++) {
            out[c] = fmaf(weight, number_round(v[c]), out[c]);
        }
    }
    for (uint32_t c = 0; c < SHAPE_HEAD; c++) {
        a.out[(base + token) * a.width + offset + c] = gpu_act_bf16(out[c] * (1.0f / sum));
    }
}

void plain_attention_launch(const struct plain_attention *a, void *stream)
{
    LAUNCH(k_plain_attention, grid_of(DEVICE_TOKENS * (a->width / SHAPE_HEAD), a->slot_count),
           dim3(THREADS), 0, (cudaStream_t)stream, *a);
}

/* K of this layer in a page; V follows after 216 rows. */
GPU_FN const uint16_t *page_keys(const struct plain_temporal *t, const struct device_slot *slot,
                                 uint32_t page)
{
    return (const uint16_t *)(t->arena + slot->page[page] * t->page_bytes + DEVICE_FRAME_BYTES) +
           (size_t)2 * t->layer * DEVICE_TOKENS * t->width;
}

__global__ void __launch_bounds__(THREADS) k_plain_temporal(struct plain_temporal t)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t heads = t.width / SHAPE_HEAD;
    const struct device_slot *slot = &t.slots[blockIdx.y];
    if (i >= DEVICE_TOKENS * heads || !slot->active) {
        return;
    }
    uint32_t token = i / heads;
    uint32_t head = i % heads;
    size_t offset = (size_t)head * SHAPE_HEAD;
    size_t row = ((size_t)blockIdx.y * DEVICE_TOKENS + token) * t.width + offset;
    const int16_t *index = t.index + (size_t)blockIdx.y * DEVICE_PAGES_MAX * DEVICE_TOKENS + token;
    float q[SHAPE_HEAD];
    float k[SHAPE_HEAD];
    float logits[DEVICE_PAGES_MAX];
    load_head(t.q + row, NULL, NULL, q);
    load_head(t.null_k + offset, NULL, NULL, k);
    float sink = dot_head(q, k) * NUMBER_LOGIT_SCALE;
    float maximum = sink;
    for (uint32_t p = 0; p < slot->page_count; p++) {
        int32_t place = index[(size_t)p * DEVICE_TOKENS];
        if (place >= 0) {
            const uint16_t *keys = page_keys(&t, slot, p) + (size_t)place * t.width + offset;
            for (uint32_t c = 0; c < SHAPE_HEAD; c++) {
                k[c] = gpu_bf16_to_float(keys[c]);
            }
            logits[p] = fmaf(dot_head(q, k), NUMBER_LOGIT_SCALE, t.bias[head * t.bias_stride + p]);
            maximum = logits[p] > maximum ? logits[p] : maximum;
        }
    }
    float sum = 0.0f;
    float out[SHAPE_HEAD] = {0};
    for (uint32_t p = 0; p <= slot->page_count; p++) {
        bool last = p == slot->page_count; /* the sink */
        int32_t place = last ? 0 : index[(size_t)p * DEVICE_TOKENS];
        if (place < 0) {
            continue;
        }
        float weight = expf((last ? sink : logits[p]) - maximum);
        sum += weight;
        weight = number_round(weight);
        const uint16_t *values =
            last ? NULL
                 : page_keys(&t, slot, p) + ((size_t)DEVICE_TOKENS + place) * t.width + offset;
        for (uint32_t c = 0; c < SHAPE_HEAD; c++) {
            float v = last ? number_round(t.null_v[offset + c]) : gpu_bf16_to_float(values[c]);
            out[c] = fmaf(weight, v, out[c]);
        }
    }
    for (uint32_t c = 0; c < SHAPE_HEAD; c++) {
        t.out[row + c] = gpu_act_bf16(out[c] * (1.0f / sum));
    }
}

void plain_temporal_launch(const struct plain_temporal *t, void *stream)
{
    LAUNCH(k_plain_temporal, grid_of(DEVICE_TOKENS * (t->width / SHAPE_HEAD), t->slot_count),
           dim3(THREADS), 0, (cudaStream_t)stream, *t);
}

/* ---- the sampler ---- */

__global__ void __launch_bounds__(THREADS) k_plain_euler(struct plain_euler e)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t positions = e.part.images * e.part.rows * e.part.cols;
    if (i >= positions * e.part.channels || !e.slots[blockIdx.y].active) {
        return;
    }
    size_t at = (size_t)blockIdx.y * positions * e.part.channels + i;
    size_t o =
        ((size_t)blockIdx.y * positions + i / e.part.channels) * SHAPE_LATENT + i % e.part.channels;
    float target = e.base[at] + e.o[o];
    e.x[at] = e.weight == 1.0f ? target : fmaf(target - e.x[at], e.weight, e.x[at]);
}

void plain_euler_launch(const struct plain_euler *e, void *stream)
{
    LAUNCH(k_plain_euler, grid_of(shape_positions(&e->part) * e->part.channels, e->slot_count),
           dim3(THREADS), 0, (cudaStream_t)stream, *e);
}

__global__ void __launch_bounds__(THREADS) k_plain_quantise(struct plain_quantise q)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t count = q.part.images * q.part.rows * q.part.cols * q.part.channels;
    const struct device_slot *slot = &q.slots[blockIdx.y];
    if (i >= count || !slot->active) {
        return;
    }
    float x = q.x[(size_t)blockIdx.y * count + i];
    float magnitude = fabsf(x);
    uint8_t *out = q.arena + slot->write_page * q.page_bytes + q.part.first_element + i;
    if (!(magnitude <= NUMBER_FLOAT_MAX)) {
        atomicAdd(&q.counts[blockIdx.y].not_finite, 1u);
        *out = 128;
        return;
    }
    if (magnitude > NUMBER_SATURATION) {
        atomicAdd(&q.counts[blockIdx.y].saturated, 1u);
    }
    float clamped = x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x;
    int32_t byte = (int32_t)fmaf(clamped, 127.5f, 128.0f); /* at least 0.5: truncation is floor */
    *out = (uint8_t)(byte > 255 ? 255 : byte);
}

void plain_quantise_launch(const struct plain_quantise *q, void *stream)
{
    LAUNCH(k_plain_quantise, grid_of(shape_positions(&q->part) * q->part.channels, q->slot_count),
           dim3(THREADS), 0, (cudaStream_t)stream, *q);
}
