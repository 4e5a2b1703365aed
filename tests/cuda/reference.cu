/*
 * Reference kernels: the heavy operations of a step as simply as they can be written, one thread
 * per number or per few numbers, no shared memory and no communication, so that each reads like its
 * formula in engine/model.md. They take the same descriptions as the fast ones (kernels.h,
 * matrix.h), of which they know the cases that a world model needs: bf16 activations and weights,
 * tiles and fp8 not at all. On a device they are what the fast kernels are compared with in place;
 * under the emulator they make a whole tick affordable. A module that is linked with this file has
 * them.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/module/module.cuh"
#include "kernels/cuda/student/shape.h"
#include "kernels/nn_internal.h"

#include <float.h>

enum {
    THREADS = 128,
    GROUP = 4,  /* outputs of one thread, to read inputs less often */
    PLACES = 2, /* positions of one thread of a convolution, to read weights less often */
    TOKENS_MAX = 256,
    HEAD = 32, /* numbers of one */
    LANES = 8, /* partial sums of an output (gpu_sums8): term k adds to k % LANES */
};

static dim3 grid_of(uint32_t items, uint32_t slots)
{
    return dim3((items + THREADS - 1) / THREADS, slots);
}

/* A float as a product sees it. */
GPU_FN float act_round(float x)
{
    return gpu_bf16_to_float(gpu_act_bf16(x));
}

GPU_FN float silu_of(float x)
{
    return x / (1.0f + expf(-x));
}

/* Adds a . w[j] over count terms (a multiple of LANES) to the partial sums of output j; the rows of
 * w are `stride` apart. A product of two bf16 is exact in single precision, so a term is rounded
 * once, fused or not. */
GPU_FN void dot_group(const uint16_t *a, const uint16_t *w, size_t stride, uint32_t count,
                      gpu_sums8 sums[GROUP])
{
    for (uint32_t k = 0; k < count; k += LANES) {
        for (uint32_t j = 0; j < GROUP; j++) {
            gpu_multiply_add8(sums[j], a + k, w + j * stride + k);
        }
    }
}

/* Halves first. */
GPU_FN float lanes_sum(gpu_sums8 &lanes)
{
    for (uint32_t half = LANES / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

/* ---- products ---- */

__global__ void __launch_bounds__(THREADS) k_reference_gemm(struct gpu_gemm g)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t groups = g.n / GROUP;
    uint32_t item = blockIdx.y;
    if (i >= g.rows * groups || (g.active != NULL && !g.active[item])) {
        return;
    }
    uint32_t row = i / groups;
    uint32_t first = i % groups * GROUP;
    gpu_sums8 sums[GROUP] = {};
    dot_group((const uint16_t *)g.a + item * g.a_item + row * g.lda,
              (const uint16_t *)g.b + (size_t)first * g.k, g.k, g.k, sums);
    for (uint32_t j = 0; j < GROUP; j++) {
        uint32_t n = first + j;
        size_t at = item * g.c_item + row * g.ldc + n;
        float y = lanes_sum(sums[j]) + (g.bias != NULL ? g.bias[n] : 0.0f);
        if (g.epilogue == NN_STORE) {
            g.c[at] = y;
        } else if (g.epilogue == NN_ADD_GATED) {
            g.c[at] = fmaf(g.gate != NULL ? g.gate[item * g.gate_item + n] : 1.0f, y, g.c[at]);
        } else {
            ((uint16_t *)g.out)[at] = gpu_act_bf16(g.epilogue == NN_SILU_ACT ? silu_of(y) : y);
        }
    }
}

/* n % 4 == 0, k % 8 == 0; rows of a and b begin at multiples of 16 bytes, as those of maps do. */
static void launch_gemm(const struct gpu_gemm *g, void *stream)
{
    LAUNCH(k_reference_gemm, grid_of(g->rows * (g->n / GROUP), g->items), dim3(THREADS), 0,
           (cudaStream_t)stream, *g);
}

/* ---- convolutions ---- */

/* A position of the outputs. */
struct place {
    size_t flat;   /* among those of all slots */
    size_t corner; /* of its 3 x 3 neighbourhood in the bordered map */
};

GPU_FN struct place place_at(const struct gpu_conv *c, uint32_t slot, uint32_t position)
{
    uint32_t line = position / c->cols;
    size_t row = ((size_t)slot * c->images + line / c->rows) * (c->rows + 2) + line % c->rows;
    return {(size_t)slot * c->images * c->rows * c->cols + position,
            row * (c->cols + 2) + position % c->cols};
}

GPU_FN void conv_sums(const struct gpu_conv *c, const struct place places[PLACES], uint32_t first,
                      gpu_sums8 sums[PLACES][GROUP])
{
    uint32_t depth = c->in_channels[0] + (c->in_count > 1 ? c->in_channels[1] : 0);
    for (uint32_t tap = 0; tap < 9; tap++) {
        size_t from = tap / 3 * (c->cols + 2) + tap % 3;
        const uint16_t *w = (const uint16_t *)c->w + ((size_t)first * 9 + tap) * depth;
        for (uint32_t i = 0; i < c->in_count; i++) {
            uint32_t channels = c->in_channels[i];
            const uint16_t *in = (const uint16_t *)c->in[i] + from * channels;
            for (uint32_t k = 0; k < channels; k += LANES) {
                for (uint32_t p = 0; p < PLACES; p++) {
                    for (uint32_t j = 0; j < GROUP; j++) {
                        gpu_multiply_add8(sums[p][j], in + places[p].corner * channels + k,
                                          w + j * (size_t)9 * depth + k);
                    }
                }
            }
            w += channels;
        }
    }
}

GPU_FN float conv_finish(const struct gpu_conv *c, uint32_t slot, size_t flat, uint32_t o,
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

__global__ void __launch_bounds__(THREADS) k_reference_conv(struct gpu_conv c)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t groups = c.out_channels / GROUP;
    uint32_t positions = c.images * c.rows * c.cols;
    uint32_t slot = blockIdx.y;
    uint32_t position = i / groups * PLACES;
    if (position >= positions || (c.active != NULL && !c.active[slot])) {
        return;
    }
    uint32_t first = i % groups * GROUP;
    struct place places[PLACES]; /* the last one again where they end */
    for (uint32_t p = 0; p < PLACES; p++) {
        places[p] = place_at(&c, slot, min(position + p, positions - 1));
    }
    gpu_sums8 sums[PLACES][GROUP] = {};
    conv_sums(&c, places, first, sums);
    for (uint32_t p = 0; p < PLACES && position + p < positions; p++) {
        for (uint32_t j = 0; j < GROUP; j++) {
            float y = conv_finish(&c, slot, places[p].flat, first + j, lanes_sum(sums[p][j]));
            if (c.out_f32 != NULL) {
                c.out_f32[places[p].flat * c.out_channels + first + j] = y;
            } else {
                size_t centre = places[p].corner + c.cols + 3;
                ((uint16_t *)c.out)[centre * c.out_channels + first + j] = gpu_act_bf16(y);
            }
        }
    }
}

/* GPU_BF16 */
static void launch_conv(const struct gpu_conv *c, void *stream)
{
    LAUNCH(
        k_reference_conv,
        grid_of((c->images * c->rows * c->cols + PLACES - 1) / PLACES * (c->out_channels / GROUP),
                c->slots),
        dim3(THREADS), 0, (cudaStream_t)stream, *c);
}

/* ---- rows ---- */

__global__ void __launch_bounds__(THREADS) k_reference_norm(struct gpu_norm n)
{
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n.rows) {
        return;
    }
    const float *x = (const float *)n.x + (size_t)row * n.width;
    uint16_t *out = (uint16_t *)n.out + (size_t)row * n.width;
    size_t group = n.group_rows == 0 ? 0 : row / n.group_rows * n.group_stride;
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
    float inverse = 1.0f / sqrtf(squares / (float)n.width + NN_NORM_EPSILON);
    for (uint32_t i = 0; i < n.width; i++) {
        float y = (x[i] - mean) * inverse;
        if (n.scale != NULL) {
            y = fmaf(y, n.one + n.scale[group + i], n.shift[group + i]);
        }
        out[i] = gpu_act_bf16(y);
    }
}

/* GPU_F32 to GPU_BF16 */
static void launch_norm(const struct gpu_norm *n, void *stream)
{
    LAUNCH(k_reference_norm, grid_of(n->rows, 1), dim3(THREADS), 0, (cudaStream_t)stream, *n);
}

/* ---- attention ---- */

/* A head's 32 numbers, rounded. */
GPU_FN void load_head(const float *x, float out[HEAD])
{
    for (uint32_t c = 0; c < HEAD; c++) {
        out[c] = act_round(x[c]);
    }
}

GPU_FN void load_head(const uint16_t *x, float out[HEAD])
{
    for (uint32_t c = 0; c < HEAD; c++) {
        out[c] = gpu_bf16_to_float(x[c]);
    }
}

GPU_FN float dot_head(const float a[HEAD], const float b[HEAD])
{
    float sum = 0.0f;
    for (uint32_t c = 0; c < HEAD; c++) {
        sum = fmaf(a[c], b[c], sum);
    }
    return sum;
}

/* The range that a token is in; ranges cover all tokens. */
GPU_FN struct gpu_range range_of(const struct gpu_attention *a, uint32_t token)
{
    uint32_t i = 0;
    while (token >= a->range[i].first + a->range[i].count) {
        i++;
    }
    return a->range[i];
}

/* One query of one head: the maximum first, then weights and their sum. */
__global__ void __launch_bounds__(THREADS)
    k_reference_attention(struct gpu_attention a, uint32_t tokens)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t item = blockIdx.y;
    if (i >= tokens * a.heads || (a.active != NULL && !a.active[item])) {
        return;
    }
    uint32_t token = i / a.heads;
    size_t offset = (size_t)(i % a.heads) * HEAD;
    const struct gpu_range range = range_of(&a, token);
    const size_t first = item * a.kv_item + range.first * a.kv_row + offset;
    const uint16_t *keys = (const uint16_t *)a.k + first;
    const uint16_t *values = (const uint16_t *)a.v + first;
    float q[HEAD];
    float k[HEAD];
    float logits[TOKENS_MAX];
    load_head((const uint16_t *)a.q + item * a.q_item + token * a.q_row + offset, q);
    float maximum = -FLT_MAX;
    for (uint32_t j = 0; j < range.count; j++) {
        load_head(keys + j * a.kv_row, k);
        logits[j] = dot_head(q, k) * NN_LOGIT_SCALE;
        maximum = logits[j] > maximum ? logits[j] : maximum;
    }
    float sum = 0.0f;
    float out[HEAD] = {0};
    for (uint32_t j = 0; j < range.count; j++) {
        float weight = expf(logits[j] - maximum);
        sum += weight;
        weight = act_round(weight);
        for (uint32_t c = 0; c < HEAD; c++) {
            out[c] = fmaf(weight, gpu_bf16_to_float(values[j * a.kv_row + c]), out[c]);
        }
    }
    uint16_t *to = (uint16_t *)a.out + item * a.out_item + token * a.out_row + offset;
    for (uint32_t c = 0; c < HEAD; c++) {
        to[c] = gpu_act_bf16(out[c] * (1.0f / sum));
    }
}

/* Ranges of at most 256 tokens, head_dim 32, heads not shared. */
static void launch_attention(const struct gpu_attention *a, void *stream)
{
    uint32_t tokens = 0;
    for (uint32_t i = 0; i < a->range_count; i++) {
        tokens += a->range[i].count;
    }
    LAUNCH(k_reference_attention, grid_of(tokens * a->heads, a->items), dim3(THREADS), 0,
           (cudaStream_t)stream, *a, tokens);
}

/* ---- attention over the past ---- */

/* A head's row of a page, or NULL when token has no place in it. */
GPU_FN const uint16_t *page_row(const struct gpu_temporal *t, uint32_t item, uint32_t page,
                                uint32_t token, size_t matrix_offset)
{
    int32_t number = t->pages.table[(size_t)item * t->pages.table_stride + page];
    int32_t row = t->index[((size_t)item * t->page_count + page) * t->tokens + token];
    if (number < 0 || row < 0) {
        return NULL;
    }
    return (const uint16_t *)(t->pages.arena + number * t->pages.page_bytes + matrix_offset) +
           row * t->kv_row;
}

GPU_FN void add_weighted(float weight, const uint16_t *row, const float *sink, float *sum,
                         float out[HEAD])
{
    *sum += weight;
    weight = act_round(weight);
    for (uint32_t c = 0; c < HEAD; c++) {
        float v = row != NULL ? gpu_bf16_to_float(row[c]) : act_round(sink[c]);
        out[c] = fmaf(weight, v, out[c]);
    }
}

__global__ void __launch_bounds__(THREADS) k_reference_temporal(struct gpu_temporal t)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t item = blockIdx.y;
    if (i >= t.tokens * t.heads || (t.active != NULL && !t.active[item])) {
        return;
    }
    uint32_t token = i / t.heads;
    uint32_t head = i % t.heads;
    size_t offset = (size_t)head * HEAD;
    float q[HEAD];
    float k[HEAD];
    float logits[GPU_PAGES_MAX];
    load_head((const float *)t.q + item * t.q_item + token * t.q_row + offset, q);
    load_head(t.null_k + offset, k);
    float sink = dot_head(q, k) * NN_LOGIT_SCALE;
    float maximum = sink;
    for (uint32_t p = 0; p < t.page_count; p++) {
        const uint16_t *row = page_row(&t, item, p, token, t.pages.k_offset);
        if (row != NULL) {
            load_head(row + offset, k);
            logits[p] = fmaf(dot_head(q, k), NN_LOGIT_SCALE, t.bias[head * t.bias_stride + p]);
            maximum = logits[p] > maximum ? logits[p] : maximum;
        }
    }
    float sum = 0.0f;
    float out[HEAD] = {0};
    for (uint32_t p = 0; p < t.page_count; p++) {
        const uint16_t *row = page_row(&t, item, p, token, t.pages.v_offset);
        if (row != NULL) {
            add_weighted(expf(logits[p] - maximum), row + offset, NULL, &sum, out);
        }
    }
    add_weighted(expf(sink - maximum), NULL, t.null_v + offset, &sum, out);
    uint16_t *to = (uint16_t *)t.out + item * t.out_item + token * t.out_row + offset;
    for (uint32_t c = 0; c < HEAD; c++) {
        to[c] = gpu_act_bf16(out[c] * (1.0f / sum));
    }
}

/* q GPU_F32, pages GPU_BF16, head_dim 32, heads not shared, with index, bias and sink. */
static void launch_temporal(const struct gpu_temporal *t, void *stream)
{
    LAUNCH(k_reference_temporal, grid_of(t->tokens * t->heads, t->items), dim3(THREADS), 0,
           (cudaStream_t)stream, *t);
}

const struct module_kernels *module_kernels_reference(void)
{
    static const struct module_kernels kernels = {launch_gemm, launch_conv, launch_norm,
                                                  launch_attention, launch_temporal};
    return &kernels;
}
