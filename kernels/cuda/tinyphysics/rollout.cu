/*
 * The rollout kernel. A thread has a column of each product, for all rows of the window, so that a
 * weight is read once, by neighbours from neighbouring places, and the rows come from shared memory
 * to all threads at once. Only the draw's sum runs in one thread, because its order is part of the
 * answer; other blocks of the multiprocessor go on meanwhile. Loops with divisions are not
 * unrolled: each has a slow path that is called.
 *
 * Arithmetic: kernels/ref/nn_causal.c and nn_gemm.c (one chain of fused multiply-adds, k
 * ascending), engine/tinyphysics/tinyphysics_episode.c.
 */
#include "base/dmath_inline.h"
#include "kernels/cuda/common/act.cuh"
#include "kernels/cuda/tinyphysics/rollout.h"
#include "kernels/nn_causal_internal.h"

enum {
    THREADS = 128,
    CONTEXT = TINYPHYSICS_CONTEXT,
    WIDTH = TINYPHYSICS_WIDTH,
    HALF = TINYPHYSICS_HALF,
    MLP = TINYPHYSICS_MLP,
    HEADS = TINYPHYSICS_HEADS,
    HEAD = WIDTH / HEADS,
    COLUMNS = TINYPHYSICS_COLUMNS,
    BINS = TINYPHYSICS_BINS,
    LANES = NN_LANES,
    SUMS = 64, /* partial sums of the draw: eight of each eighth of the bins */
};

static_assert((int)WIDTH == (int)THREADS, "a thread has a column");
static_assert((int)HEAD == (int)NN_CAUSAL_HEAD, "of a head");

struct scratch {
    float x[CONTEXT][WIDTH];
    float normed[CONTEXT][WIDTH]; /* or what attention found */
    float means[CONTEXT];
    float inverses[CONTEXT]; /* of deviations */
    union {
        float hidden[CONTEXT][MLP];
        struct {
            float qkv[CONTEXT][COLUMNS];
            float weights[HEADS][CONTEXT][CONTEXT]; /* of attention */
            float inverse[HEADS][CONTEXT];
        };
        float lanes[CONTEXT][LANES];
        struct { /* of the last token; the names end in what they are of */
            float q_last[WIDTH];
            float q_pool[HEADS][WIDTH];
            float lanes_pool[HEADS * CONTEXT][LANES];
            float weights_pool[HEADS][CONTEXT];
            float inverse_pool[HEADS];
            float pooled[HEADS][WIDTH];
        };
        struct {
            float logits[BINS];
            float parts[THREADS];
            float total;
            double sums[BINS];
        };
    };
    float inputs[CONTEXT][TINYPHYSICS_INPUTS];
    uint32_t tokens[CONTEXT];
};

/* ---- the network ---- */

/* Halves upon halves, as nn_lanes_sum. */
GPU_FN float lanes_sum(float *lanes)
{
    for (uint32_t half = LANES / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

/* Means and 1 / deviations of the rows of x. */
GPU_FN void deviations(struct scratch *s, uint32_t rows)
{
    const uint32_t t = threadIdx.x;
#pragma unroll 1
    for (uint32_t at = t; at < rows * LANES; at += THREADS) {
        float sum = 0.0f;
        for (uint32_t i = at % LANES; i < WIDTH; i += LANES) {
            sum += s->x[at / LANES][i];
        }
        s->lanes[at / LANES][at % LANES] = sum;
    }
    __syncthreads();
    if (t < rows) {
        s->means[t] = lanes_sum(s->lanes[t]) / (float)WIDTH;
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t at = t; at < rows * LANES; at += THREADS) {
        float sum = 0.0f;
        for (uint32_t i = at % LANES; i < WIDTH; i += LANES) {
            const float d = s->x[at / LANES][i] - s->means[at / LANES];
            sum = __fmaf_rn(d, d, sum);
        }
        s->lanes[at / LANES][at % LANES] = sum;
    }
    __syncthreads();
    if (t < rows) {
        const float variance = lanes_sum(s->lanes[t]) / (float)WIDTH;
        s->inverses[t] = 1.0f / sqrtf(variance + NN_CAUSAL_EPSILON);
    }
    __syncthreads();
}

GPU_FN void norm(const struct tinyphysics_norm *n, struct scratch *s, uint32_t rows)
{
    const uint32_t t = threadIdx.x;
    deviations(s, rows);
#pragma unroll 1
    for (uint32_t r = 0; r < rows; r++) {
        s->normed[r][t] =
            __fmaf_rn((s->x[r][t] - s->means[r]) * s->inverses[r], n->scale[t], n->shift[t]);
    }
    __syncthreads();
}

/* from + a token's state * column `i` of a matrix [TINYPHYSICS_INPUTS][columns]. */
GPU_FN float add_state(float from, const float *state, const float *matrix, uint32_t columns,
                       uint32_t i)
{
#pragma unroll
    for (uint32_t k = 0; k < TINYPHYSICS_INPUTS; k++) {
        from = __fmaf_rn(state[k], matrix[(size_t)k * columns + i], from);
    }
    return from;
}

/* Rows, and block 0's queries, keys and values. */
GPU_FN void enter(const struct tinyphysics_weights *w, const struct tinyphysics_entry *e,
                  struct scratch *s)
{
    for (uint32_t at = threadIdx.x; at < CONTEXT * HALF; at += THREADS) {
        const uint32_t t = at / HALF;
        const uint32_t i = at % HALF;
        const float y = add_state(w->state_bias[i], s->inputs[t], w->state[0], HALF, i);
        s->x[t][i] = y + w->positions[t][i];
        s->x[t][HALF + i] = w->bins[s->tokens[t]][i] + w->positions[t][HALF + i];
    }
    __syncthreads();
    deviations(s, CONTEXT);
    for (uint32_t i = threadIdx.x; i < COLUMNS; i += THREADS) {
#pragma unroll 4
        for (uint32_t t = 0; t < CONTEXT; t++) {
            const float bin = e->bins[s->tokens[t]][i];
            const float y =
                add_state(bin, s->inputs[t], e->state[0], COLUMNS, i) + e->positions[t][i];
            s->qkv[t][i] = __fmaf_rn(y, s->inverses[t], e->shift[i]);
        }
    }
    __syncthreads();
}

/* sum[r] = row r of a [ROWS][k] times column `column` of w [k][n]. */
template <int ROWS>
GPU_FN void product(const float *a, const float *w, uint32_t n, uint32_t k, uint32_t column,
                    float sum[ROWS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sum[r] = 0.0f;
    }
    for (uint32_t i = 0; i < k; i += 4) {
        const float w0 = w[(size_t)i * n + column];
        const float w1 = w[(size_t)(i + 1) * n + column];
        const float w2 = w[(size_t)(i + 2) * n + column];
        const float w3 = w[(size_t)(i + 3) * n + column];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float4 x = *(const float4 *)(a + (size_t)r * k + i);
            sum[r] = __fmaf_rn(x.x, w0, sum[r]);
            sum[r] = __fmaf_rn(x.y, w1, sum[r]);
            sum[r] = __fmaf_rn(x.z, w2, sum[r]);
            sum[r] = __fmaf_rn(x.w, w3, sum[r]);
        }
    }
}

GPU_FN float exponential(float x)
{
    x = -NN_EXP_LIMIT > x ? -NN_EXP_LIMIT : x;
    const float shifted = __fmaf_rn(x, NN_EXP_LOG2E, NN_EXP_MAGIC);
    const float f = __fmaf_rn(x, NN_EXP_LOG2E, -(shifted - NN_EXP_MAGIC));
    float p = __fmaf_rn(NN_EXP_C5, f, NN_EXP_C4);
    p = __fmaf_rn(p, f, NN_EXP_C3);
    p = __fmaf_rn(p, f, NN_EXP_C2);
    p = __fmaf_rn(p, f, NN_EXP_C1);
    p = __fmaf_rn(p, f, 1.0f);
    return p * __uint_as_float((__float_as_uint(shifted) + 127) << 23);
}

/* weights[0 .. query] = those of the products that are there. Returns 1 / their sum. */
GPU_FN float weigh(float *weights, uint32_t query)
{
    float largest = -INFINITY;
    float lanes[LANES];
#pragma unroll 1
    for (uint32_t j = 0; j <= query; j++) {
        weights[j] *= NN_LOGIT_SCALE;
        largest = weights[j] > largest ? weights[j] : largest;
    }
#pragma unroll
    for (int i = 0; i < LANES; i++) {
        lanes[i] = 0.0f;
    }
#pragma unroll
    for (int j = 0; j < CONTEXT; j++) {
        if (j <= (int)query) {
            weights[j] = exponential(weights[j] - largest);
            lanes[j % LANES] += weights[j];
        }
    }
#pragma unroll
    for (int half = LANES / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return 1.0f / lanes[0];
}

/* Weights of one query of one head, and 1 / their sum. */
GPU_FN void attend(struct scratch *s, uint32_t head, uint32_t query)
{
    const float *q = s->qkv[query] + head * HEAD;
#pragma unroll 1
    for (uint32_t j = 0; j <= query; j++) {
        const float *k = s->qkv[j] + WIDTH + head * HEAD;
        float sum = 0.0f;
        for (uint32_t c = 0; c < HEAD; c++) {
            sum = __fmaf_rn(q[c], k[c], sum);
        }
        s->weights[head][query][j] = sum;
    }
    s->inverse[head][query] = weigh(s->weights[head][query], query);
}

/* Attention of all tokens; what they find takes the place of their norms. */
GPU_FN void attention(struct scratch *s)
{
    const uint32_t head = threadIdx.x / HEAD;
    if (threadIdx.x < HEADS * CONTEXT) {
        attend(s, threadIdx.x / CONTEXT, threadIdx.x % CONTEXT);
    }
    __syncthreads();
    for (uint32_t query = 0; query < CONTEXT; query++) {
        float sum = 0.0f;
        for (uint32_t j = 0; j <= query; j++) {
            sum = __fmaf_rn(s->weights[head][query][j], s->qkv[j][2 * WIDTH + threadIdx.x], sum);
        }
        s->normed[query][threadIdx.x] = sum * s->inverse[head][query];
    }
    __syncthreads();
}

/* Weights of the last token's queries, each multiplied by its head's keys, over all norms (struct
 * nn_causal_pool). */
GPU_FN void pool_weights(struct scratch *s)
{
    const uint32_t t = threadIdx.x;
#pragma unroll 1
    for (uint32_t at = t; at < HEADS * CONTEXT * LANES; at += THREADS) {
        const uint32_t pair = at / LANES;
        float sum = 0.0f;
        for (uint32_t i = at % LANES; i < WIDTH; i += LANES) {
            sum = __fmaf_rn(s->q_pool[pair / CONTEXT][i], s->normed[pair % CONTEXT][i], sum);
        }
        s->lanes_pool[pair][at % LANES] = sum;
    }
    __syncthreads();
    if (t < HEADS * CONTEXT) {
        s->weights_pool[t / CONTEXT][t % CONTEXT] = lanes_sum(s->lanes_pool[t]);
    }
    __syncthreads();
    if (t < HEADS) {
        s->inverse_pool[t] = weigh(s->weights_pool[t], CONTEXT - 1);
    }
    __syncthreads();
}

/* Attention of the last token over all norms; what it finds takes the place of the first norm. */
GPU_FN void attention_last(const struct tinyphysics_block *block, struct scratch *s)
{
    const uint32_t t = threadIdx.x;
    float sum[1];
    product<1>(s->normed[CONTEXT - 1], block->qkv[0], COLUMNS, WIDTH, t, sum);
    s->q_last[t] = sum[0];
    __syncthreads();
    for (uint32_t head = 0; head < HEADS; head++) {
        const float *keys = block->qkv[t] + WIDTH + head * HEAD;
        sum[0] = 0.0f;
        for (uint32_t i = 0; i < HEAD; i++) {
            sum[0] = __fmaf_rn(s->q_last[head * HEAD + i], keys[i], sum[0]);
        }
        s->q_pool[head][t] = sum[0];
    }
    __syncthreads();
    pool_weights(s);
    for (uint32_t head = 0; head < HEADS; head++) {
        sum[0] = 0.0f;
        for (uint32_t j = 0; j < CONTEXT; j++) {
            sum[0] = __fmaf_rn(s->weights_pool[head][j], s->normed[j][t], sum[0]);
        }
        s->pooled[head][t] = sum[0] * s->inverse_pool[head];
    }
    __syncthreads();
    product<1>(s->pooled[t / HEAD], block->qkv[0], COLUMNS, WIDTH, 2 * WIDTH + t, sum);
    s->normed[0][t] = sum[0];
    __syncthreads();
}

/* x += attention's output, then x += MLP. */
template <int ROWS>
GPU_FN void finish_block(const struct tinyphysics_block *block, struct scratch *s)
{
    const uint32_t t = threadIdx.x;
    float sum[ROWS];
    product<ROWS>(s->normed[0], block->attention_out[0], WIDTH, WIDTH, t, sum);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        s->x[r][t] += sum[r];
    }
    __syncthreads();
    norm(&block->mlp_norm, s, ROWS);
    for (uint32_t column = t; column < MLP; column += THREADS) {
        product<ROWS>(s->normed[0], block->up[0], MLP, WIDTH, column, sum);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float cube = sum[r] * sum[r] * NN_GELU_CUBE;
            const float argument = __fmaf_rn(cube, sum[r], sum[r]) * NN_GELU_FACTOR;
            s->hidden[r][column] = gpu_logistic_times(sum[r], argument);
        }
    }
    __syncthreads();
    product<ROWS>(s->hidden[0], block->down[0], WIDTH, MLP, t, sum);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        s->x[r][t] += sum[r];
    }
    __syncthreads();
}

/* Queries, keys and values of all rows. */
GPU_FN void project(const struct tinyphysics_block *block, struct scratch *s)
{
    for (uint32_t column = threadIdx.x; column < COLUMNS; column += THREADS) {
        float sum[CONTEXT];
        product<CONTEXT>(s->normed[0], block->qkv[0], COLUMNS, WIDTH, column, sum);
#pragma unroll
        for (int r = 0; r < CONTEXT; r++) {
            s->qkv[r][column] = sum[r];
        }
    }
    __syncthreads();
}

/* The logits of the last token of the window in `inputs` and `tokens`. */
GPU_FN void forward(const struct tinyphysics_weights *w, const struct tinyphysics_entry *e,
                    struct scratch *s)
{
    const struct tinyphysics_block *last = &w->blocks[TINYPHYSICS_BLOCKS - 1];
    const uint32_t t = threadIdx.x;
    float logit[1];
    enter(w, e, s);
#pragma unroll 1
    for (const struct tinyphysics_block *block = w->blocks; block < last; block++) {
        if (block > w->blocks) {
            norm(&block->attention_norm, s, CONTEXT);
            project(block, s);
        }
        attention(s);
        finish_block<CONTEXT>(block, s);
    }
    norm(&last->attention_norm, s, CONTEXT);
    attention_last(last, s);
    s->x[0][t] = s->x[CONTEXT - 1][t]; /* nothing but the last token counts from here on */
    __syncthreads();
    finish_block<1>(last, s);
    norm(&w->last_norm, s, 1);
    for (uint32_t column = t; column < BINS; column += THREADS) {
        product<1>(s->normed[0], w->head[0], BINS, WIDTH, column, logit);
        s->logits[column] = logit[0];
    }
    __syncthreads();
}

/* ---- the draw ---- */

/* numpy.add.reduce of 1,024 floats: eight partial sums of every eighth, which are joined in pairs.
 */
GPU_FN float join_sums(float *parts)
{
#pragma unroll 1
    for (uint32_t i = 0; i < SUMS; i += 8) {
        const float *r = parts + i;
        parts[i / 8] = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    }
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) +
           ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

/* The token of a uniform number, in thread 0. */
GPU_FN uint32_t draw(struct scratch *s, double uniform)
{
    const uint32_t t = threadIdx.x;
    float largest = -INFINITY;
#pragma unroll 1
    for (uint32_t i = t; i < BINS; i += THREADS) {
        s->logits[i] = s->logits[i] / TINYPHYSICS_TEMPERATURE;
        largest = s->logits[i] > largest ? s->logits[i] : largest;
    }
    s->parts[t] = largest;
    __syncthreads();
#pragma unroll 1
    for (uint32_t i = 0; i < THREADS; i++) {
        largest = s->parts[i] > largest ? s->parts[i] : largest;
    }
#pragma unroll 1
    for (uint32_t i = t; i < BINS; i += THREADS) {
        s->logits[i] = (float)inline_exp((double)(s->logits[i] - largest));
    }
    __syncthreads();
    if (t < SUMS) {
        const float *x = s->logits + t / 8 * (BINS / 8) + t % 8;
        float sum = x[0];
        for (uint32_t i = 8; i < BINS / 8; i += 8) {
            sum += x[i];
        }
        s->parts[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        s->total = join_sums(s->parts);
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t i = t; i < BINS; i += THREADS) {
        s->logits[i] = s->logits[i] / s->total;
    }
    __syncthreads();
    if (t != 0) {
        return 0;
    }
    double sum = 0.0;
#pragma unroll 1
    for (uint32_t i = 0; i < BINS; i++) {
        sum += (double)s->logits[i];
        s->sums[i] = sum;
    }
    return tinyphysics_draw(s->sums, uniform);
}

/* ---- the drive ---- */

/* Of the row `step`: the window that ends with it. */
GPU_FN void fill_window(const struct rollout *r, size_t first, uint32_t step, struct scratch *s)
{
    const uint32_t t = threadIdx.x;
    if (t < CONTEXT) {
        const size_t row = first + step + 1 - CONTEXT + t;
        const double *state = r->rows + row * ROLLOUT_ROW_NUMBERS;
        s->inputs[t][0] = (float)r->actions[row];
        s->inputs[t][1] = (float)state[1];
        s->inputs[t][2] = (float)state[2];
        s->inputs[t][3] = (float)state[3];
        s->tokens[t] = tinyphysics_bin_of(r->lataccel[row - 1]);
    }
    __syncthreads();
}

__global__ void __launch_bounds__(THREADS, 3) rollout_kernel(struct rollout r)
{
    SHARED_DYNAMIC(struct scratch, s);
    const size_t first = (size_t)blockIdx.x * ROLLOUT_ROWS;
    const uint32_t end = r.ends[blockIdx.x];
    struct tinyphysics_pid pid = {0.0, 0.0}; /* of thread 0 */
    for (uint32_t step = CONTEXT; step < end; step++) {
        const size_t row = first + step;
        if (threadIdx.x == 0) {
            const double target = r.rows[row * ROLLOUT_ROW_NUMBERS];
            double action = tinyphysics_pid_update(&pid, target, r.lataccel[row - 1]);
            action = r.controlled ? action : 0.0;
            action = step < ROLLOUT_CONTROL ? r.rows[row * ROLLOUT_ROW_NUMBERS + 4] : action;
            r.actions[row] = both_clamp(action, -TINYPHYSICS_STEER_LIMIT, TINYPHYSICS_STEER_LIMIT);
            if (step < ROLLOUT_CONTROL) {
                r.lataccel[row] = target;
            }
        }
        __syncthreads();
        if (step >= ROLLOUT_CONTROL) {
            fill_window(&r, first, step, s);
            forward(r.weights, r.entry, s);
            const uint32_t token = draw(s, r.uniforms[row]);
            if (threadIdx.x == 0) {
                r.lataccel[row] = tinyphysics_drawn(token, r.lataccel[row - 1]);
            }
            __syncthreads();
        }
    }
}

void rollout_launch(const struct rollout *r, void *stream)
{
    LAUNCH_DYNAMIC((rollout_kernel), dim3(r->count), dim3(THREADS), sizeof(struct scratch),
                   (cudaStream_t)stream, *r);
}
