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
    BINS = TINYPHYSICS_BINS,
    LANES = NN_LANES,
    SUMS = 64, /* partial sums of the draw: eight of each eighth of the bins */
};

static_assert((int)WIDTH == (int)THREADS, "a thread has a column");
static_assert((int)HEAD == (int)NN_CAUSAL_HEAD, "of a head");

struct scratch {
    float x[CONTEXT][WIDTH];
    float normed[CONTEXT][WIDTH]; /* or what attention found */
    union {
        float hidden[CONTEXT][MLP];
        struct {
            float qkv[CONTEXT][3 * WIDTH];
            float weights[HEADS][CONTEXT][CONTEXT]; /* of attention */
            float inverse[HEADS][CONTEXT];
        };
        struct {
            float lanes[CONTEXT][LANES];
            float means[CONTEXT];
            float inverses[CONTEXT];
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

GPU_FN void embed(const struct tinyphysics_weights *w, struct scratch *s)
{
    for (uint32_t at = threadIdx.x; at < CONTEXT * HALF; at += THREADS) {
        const uint32_t t = at / HALF;
        const uint32_t i = at % HALF;
        const float *in = s->inputs[t];
        const float y = in[0] * w->state[0][i] + in[1] * w->state[1][i] + in[2] * w->state[2][i] +
                        in[3] * w->state[3][i];
        s->x[t][i] = y + w->state_bias[i] + w->positions[t][i];
        s->x[t][HALF + i] = w->bins[s->tokens[t]][i] + w->positions[t][HALF + i];
    }
    __syncthreads();
}

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

GPU_FN void norm(const struct tinyphysics_norm *n, struct scratch *s, uint32_t rows)
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
#pragma unroll 1
    for (uint32_t r = 0; r < rows; r++) {
        s->normed[r][t] =
            __fmaf_rn((s->x[r][t] - s->means[r]) * s->inverses[r], n->scale[t], n->shift[t]);
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

/* Weights of one query of one head, and 1 / their sum. */
GPU_FN void attend(struct scratch *s, uint32_t head, uint32_t query)
{
    float *weights = s->weights[head][query];
    const float *q = s->qkv[query] + head * HEAD;
    float largest = -INFINITY;
    float lanes[LANES];
#pragma unroll 1
    for (uint32_t j = 0; j <= query; j++) {
        const float *k = s->qkv[j] + WIDTH + head * HEAD;
        float sum = 0.0f;
        for (uint32_t c = 0; c < HEAD; c++) {
            sum = __fmaf_rn(q[c], k[c], sum);
        }
        weights[j] = sum * NN_LOGIT_SCALE;
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
    s->inverse[head][query] = 1.0f / lanes[0];
}

/* Of the queries `first` to the last; what they find becomes rows 0 .. of `normed`. */
GPU_FN void attention(struct scratch *s, uint32_t first)
{
    const uint32_t queries = CONTEXT - first;
    const uint32_t head = threadIdx.x / HEAD;
    if (threadIdx.x < HEADS * queries) {
        attend(s, threadIdx.x / queries, first + threadIdx.x % queries);
    }
    __syncthreads();
    for (uint32_t query = first; query < CONTEXT; query++) {
        float sum = 0.0f;
        for (uint32_t j = 0; j <= query; j++) {
            sum = __fmaf_rn(s->weights[head][query][j], s->qkv[j][2 * WIDTH + threadIdx.x], sum);
        }
        s->normed[query - first][threadIdx.x] = sum * s->inverse[head][query];
    }
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

/* The logits of the last token of the window in `inputs` and `tokens`. */
GPU_FN void forward(const struct tinyphysics_weights *w, struct scratch *s)
{
    const uint32_t t = threadIdx.x;
    float last[1];
    embed(w, s);
#pragma unroll 1
    for (uint32_t i = 0; i < TINYPHYSICS_BLOCKS; i++) {
        const struct tinyphysics_block *block = &w->blocks[i];
        norm(&block->attention_norm, s, CONTEXT);
        for (uint32_t column = t; column < 3 * WIDTH; column += THREADS) {
            float sum[CONTEXT];
            product<CONTEXT>(s->normed[0], block->qkv[0], 3 * WIDTH, WIDTH, column, sum);
#pragma unroll
            for (int r = 0; r < CONTEXT; r++) {
                s->qkv[r][column] = sum[r];
            }
        }
        __syncthreads();
        if (i < TINYPHYSICS_BLOCKS - 1) {
            attention(s, 0);
            finish_block<CONTEXT>(block, s);
        }
    }
    attention(s, CONTEXT - 1); /* nothing but the last token counts from here on */
    s->x[0][t] = s->x[CONTEXT - 1][t];
    __syncthreads();
    finish_block<1>(&w->blocks[TINYPHYSICS_BLOCKS - 1], s);
    norm(&w->last_norm, s, 1);
    for (uint32_t column = t; column < BINS; column += THREADS) {
        product<1>(s->normed[0], w->head[0], BINS, WIDTH, column, last);
        s->logits[column] = last[0];
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
            forward(r.weights, s);
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
