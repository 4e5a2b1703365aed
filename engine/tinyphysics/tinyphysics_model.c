/*
 * The network of tinyphysics: weights from the file, packed for the kernels of this machine, and
 * one step of it.
 */
#include "engine/tinyphysics/tinyphysics_model.h"

#include "base/check.h"
#include "engine/tinyphysics/onnx_file.h"
#include "engine/tinyphysics/tinyphysics_entry.h"
#include "kernels/nn.h"
#include "kernels/nn_causal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    WIDTH = TINYPHYSICS_WIDTH,
    HALF = TINYPHYSICS_HALF,
    HEADS = TINYPHYSICS_HEADS,
    HEAD = WIDTH / HEADS,
    COLUMNS = TINYPHYSICS_COLUMNS,
    MLP = TINYPHYSICS_MLP,
    BLOCKS = TINYPHYSICS_BLOCKS,
    CONTEXT = TINYPHYSICS_CONTEXT,
    BINS = TINYPHYSICS_BINS,
    /* Windows that go through a block together. A block's weights (786 KB) are read from far away
     * once for a batch, and lie in the second-level cache (of 2 MiB) beside one chunk's rows. */
    CHUNK = 12,
    ROWS = CHUNK * CONTEXT,
    LARGE_PAGE = 2 << 20,
};

struct norm {
    _Alignas(64) float scale[WIDTH];
    _Alignas(64) float shift[WIDTH];
};

/* Weights as nn_kernels.pack left them. Block 0 has no qkv: its rows are made of images. The last
 * one has that of its queries alone, and two matrices for each head: a query becomes what all
 * tokens' norms are multiplied by, and the mean of the norms the mean of the values. */
struct block {
    struct norm attention_norm, mlp_norm;
    void *qkv;           /* [384][128]: queries, keys, values */
    void *q;             /* [128][128] */
    void *keys[HEADS];   /* [128][32], turned */
    void *values[HEADS]; /* [32][128] */
    void *attention_out; /* [128][128] */
    void *up;            /* [512][128] */
    void *down;          /* [128][512] */
};

struct tinyphysics_model {
    struct tinyphysics_outside outside; /* logits NULL: the network is this one */
    struct nn_kernels nn;
    struct nn_causal_kernels causal;
    float state_bias[HALF];
    float state[TINYPHYSICS_INPUTS][HALF];
    float bins[BINS][HALF];
    float positions[CONTEXT][WIDTH];
    struct tinyphysics_entry *entry;
    struct block blocks[BLOCKS];
    struct norm last_norm;
    void *head;      /* [1024][128] */
    uint8_t *memory; /* of the entry and of all packed weights */
};

struct tinyphysics_workspace {
    _Alignas(64) float x[TINYPHYSICS_BATCH * CONTEXT * WIDTH];
    /* Of one chunk. */
    _Alignas(64) float normed[ROWS * WIDTH];
    _Alignas(64) float qkv[ROWS * COLUMNS];
    _Alignas(64) float attended[ROWS * WIDTH];
    _Alignas(64) float hidden[ROWS * MLP];
    _Alignas(64) uint16_t act[ROWS * MLP]; /* what a product takes, where that is not float */
    /* Of the last tokens. */
    _Alignas(64) float q[CHUNK * WIDTH];
    _Alignas(64) float pool_q[CHUNK * HEADS * WIDTH];
    _Alignas(64) float pooled[TINYPHYSICS_BATCH * HEADS * WIDTH];
    _Alignas(64) float last_attended[TINYPHYSICS_BATCH * WIDTH];
    _Alignas(64) float logits[TINYPHYSICS_BATCH * BINS];
};
_Static_assert((int)TINYPHYSICS_BATCH *HEADS <= (int)ROWS,
               "the last tokens go through a block as one chunk");
_Static_assert((int)HEADS == (int)NN_CAUSAL_HEADS && (int)HEAD == (int)NN_CAUSAL_HEAD &&
                   (int)TINYPHYSICS_INPUTS == (int)NN_CAUSAL_NUMBERS,
               "the kernels are made for this network");

/* ---- the file ---- */

/* The weights [k][n] of a MatMul node. */
static enum status read_product(const struct onnx_file *file, const char *node, uint32_t k,
                                uint32_t n, float *out, struct error *error)
{
    char name[ONNX_NAME_BYTES];
    const uint32_t dims[] = {k, n};
    TRY(onnx_file_weights(file, node, "MatMul", name, error));
    return onnx_file_floats(file, name, dims, 2, out, error);
}

static enum status read_norm(const struct onnx_file *file, const char *prefix,
                             struct tinyphysics_norm *norm, struct error *error)
{
    char name[ONNX_NAME_BYTES];
    const uint32_t dims[] = {WIDTH};
    snprintf(name, sizeof name, "transformer.%s.weight", prefix);
    TRY(onnx_file_floats(file, name, dims, 1, norm->scale, error));
    snprintf(name, sizeof name, "transformer.%s.bias", prefix);
    return onnx_file_floats(file, name, dims, 1, norm->shift, error);
}

static enum status read_block(const struct onnx_file *file, uint32_t index,
                              struct tinyphysics_block *block, struct error *error)
{
    char name[ONNX_NAME_BYTES / 2];
    snprintf(name, sizeof name, "h.%u.attn.layer_norm", index);
    TRY(read_norm(file, name, &block->attention_norm, error));
    snprintf(name, sizeof name, "h.%u.mlp.layer_norm", index);
    TRY(read_norm(file, name, &block->mlp_norm, error));
    snprintf(name, sizeof name, "/h.%u/attn/c_attn/MatMul", index);
    TRY(read_product(file, name, WIDTH, 3 * WIDTH, block->qkv[0], error));
    snprintf(name, sizeof name, "/h.%u/attn/c_proj/MatMul", index);
    TRY(read_product(file, name, WIDTH, WIDTH, block->attention_out[0], error));
    snprintf(name, sizeof name, "/h.%u/mlp/c_fc/MatMul", index);
    TRY(read_product(file, name, WIDTH, MLP, block->up[0], error));
    snprintf(name, sizeof name, "/h.%u/mlp/c_proj/MatMul", index);
    return read_product(file, name, MLP, WIDTH, block->down[0], error);
}

static enum status read_all(const struct onnx_file *file, struct tinyphysics_weights *w,
                            struct error *error)
{
    const uint32_t bias[] = {HALF};
    const uint32_t bins[] = {BINS, HALF};
    const uint32_t positions[] = {CONTEXT, WIDTH};
    TRY(onnx_file_floats(file, "transformer.wt_embedding.bias", bias, 1, w->state_bias, error));
    TRY(read_product(file, "/wt_embedding/MatMul", TINYPHYSICS_INPUTS, HALF, w->state[0], error));
    TRY(onnx_file_floats(file, "transformer.wt2_embedding.weight", bins, 2, w->bins[0], error));
    TRY(onnx_file_floats(file, "transformer.wp_embedding.weight", positions, 2, w->positions[0],
                         error));
    for (uint32_t i = 0; i < BLOCKS; i++) {
        TRY(read_block(file, i, &w->blocks[i], error));
    }
    TRY(read_norm(file, "layer_norm_f", &w->last_norm, error));
    return read_product(file, "/lm_head/MatMul", WIDTH, BINS, w->head[0], error);
}

enum status tinyphysics_weights_load(const char *path, struct tinyphysics_weights *weights,
                                     struct error *error)
{
    struct onnx_file file = {0};
    enum status status = onnx_file_open(path, &file, error);
    THEN(status, read_all(&file, weights, error));
    onnx_file_close(&file);
    return status;
}

/* ---- the model ---- */

/* Memory in large pages where the system has some: weights and rows are some 7 MiB that every step
 * goes through, more than there are small pages whose places a processor keeps. */
static void *large_alloc(size_t bytes)
{
    const size_t whole = (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    void *memory = aligned_alloc(LARGE_PAGE, whole);
    if (memory != NULL) {
        (void)madvise(memory, whole, MADV_HUGEPAGE); /* refused: small pages */
    }
    return memory;
}

struct packer {
    struct tinyphysics_model *model;
    float *turned; /* room for the largest matrix */
    uint8_t *next; /* free memory for packed weights */
};

static size_t packed_bytes(const struct nn_kernels *nn, uint32_t n, uint32_t k)
{
    return (nn->packed_bytes(n, k) + 63) / 64 * 64;
}

static size_t model_bytes(const struct nn_kernels *nn)
{
    const size_t block = packed_bytes(nn, WIDTH, WIDTH) + packed_bytes(nn, MLP, WIDTH) +
                         packed_bytes(nn, WIDTH, MLP);
    const size_t heads = HEADS * (packed_bytes(nn, WIDTH, HEAD) + packed_bytes(nn, HEAD, WIDTH));
    return sizeof(struct tinyphysics_entry) + BLOCKS * block +
           (BLOCKS - 2) * packed_bytes(nn, COLUMNS, WIDTH) + packed_bytes(nn, WIDTH, WIDTH) +
           heads + packed_bytes(nn, BINS, WIDTH);
}

/* Packs w[n][k]. */
static void *pack_turned(struct packer *packer, const float *w, uint32_t n, uint32_t k)
{
    const struct nn_kernels *nn = &packer->model->nn;
    void *packed = packer->next;
    nn->pack(w, n, k, packed);
    packer->next += packed_bytes(nn, n, k);
    return packed;
}

/* Packs columns first .. first + n - 1 of w [k][columns]. */
static void *pack(struct packer *packer, const float *w, uint32_t first, uint32_t n, uint32_t k,
                  uint32_t columns)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < k; j++) {
            packer->turned[(size_t)i * k + j] = w[(size_t)j * columns + first + i];
        }
    }
    return pack_turned(packer, packer->turned, n, k);
}

/* The last block's attention: queries, and each head's keys and values. */
static void pack_last(struct packer *packer, const struct tinyphysics_block *from,
                      struct block *block)
{
    block->q = pack(packer, from->qkv[0], 0, WIDTH, WIDTH, COLUMNS);
    for (uint32_t h = 0; h < HEADS; h++) {
        for (uint32_t i = 0; i < WIDTH; i++) {
            memcpy(packer->turned + (size_t)i * HEAD, from->qkv[i] + WIDTH + h * HEAD,
                   HEAD * sizeof(float));
        }
        block->keys[h] = pack_turned(packer, packer->turned, WIDTH, HEAD);
        block->values[h] = pack(packer, from->qkv[0], 2 * WIDTH + h * HEAD, HEAD, WIDTH, COLUMNS);
    }
}

static void copy_norm(struct norm *to, const struct tinyphysics_norm *from)
{
    memcpy(to->scale, from->scale, sizeof to->scale);
    memcpy(to->shift, from->shift, sizeof to->shift);
}

static void pack_all(struct packer *packer, const struct tinyphysics_weights *w)
{
    struct tinyphysics_model *model = packer->model;
    model->entry = (void *)packer->next;
    packer->next += sizeof *model->entry;
    tinyphysics_entry_make(w, model->entry);
    memcpy(model->state_bias, w->state_bias, sizeof model->state_bias);
    memcpy(model->state, w->state, sizeof model->state);
    memcpy(model->bins, w->bins, sizeof model->bins);
    memcpy(model->positions, w->positions, sizeof model->positions);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const struct tinyphysics_block *from = &w->blocks[i];
        struct block *block = &model->blocks[i];
        copy_norm(&block->attention_norm, &from->attention_norm);
        copy_norm(&block->mlp_norm, &from->mlp_norm);
        if (i == BLOCKS - 1) {
            pack_last(packer, from, block);
        } else if (i > 0) {
            block->qkv = pack(packer, from->qkv[0], 0, COLUMNS, WIDTH, COLUMNS);
        }
        block->attention_out = pack(packer, from->attention_out[0], 0, WIDTH, WIDTH, WIDTH);
        block->up = pack(packer, from->up[0], 0, MLP, WIDTH, MLP);
        block->down = pack(packer, from->down[0], 0, WIDTH, MLP, WIDTH);
    }
    copy_norm(&model->last_norm, &w->last_norm);
    model->head = pack(packer, w->head[0], 0, BINS, WIDTH, BINS);
}

enum status tinyphysics_model_make(const struct tinyphysics_weights *weights,
                                   enum nn_precision precision, uint32_t flags,
                                   struct tinyphysics_model **out, struct error *error)
{
    CHECK(precision == NN_FP32 || precision == NN_BF16);
    struct tinyphysics_model *model = aligned_alloc(_Alignof(struct norm), sizeof *model);
    struct packer packer = {.model = model};
    TRY(memory_check(model, error, "no memory for the model tinyphysics"));
    memset(model, 0, sizeof *model);
    nn_kernels_init(&model->nn, precision, flags);
    nn_causal_kernels_init(&model->causal, flags);
    packer.next = model->memory = large_alloc(model_bytes(&model->nn));
    packer.turned = aligned_alloc(64, sizeof weights->head);
    enum status status = memory_check(model->memory, error, "no memory for tinyphysics");
    THEN(status, memory_check(packer.turned, error, "no memory for tinyphysics"));
    if (status == STATUS_OK) {
        pack_all(&packer, weights);
        *out = model;
    } else {
        tinyphysics_model_free(model);
    }
    free(packer.turned);
    return status;
}

enum status tinyphysics_model_outside(const struct tinyphysics_outside *outside, uint32_t flags,
                                      struct tinyphysics_model **out, struct error *error)
{
    struct tinyphysics_model *model = aligned_alloc(_Alignof(struct norm), sizeof *model);
    TRY(memory_check(model, error, "no memory for a model of the controls challenge"));
    memset(model, 0, sizeof *model);
    model->outside = *outside;
    nn_causal_kernels_init(&model->causal, flags); /* for what is drawn from the logits */
    *out = model;
    return STATUS_OK;
}

enum status tinyphysics_model_load(const char *path, enum nn_precision precision, uint32_t flags,
                                   struct tinyphysics_model **out, struct error *error)
{
    struct tinyphysics_weights *weights = malloc(sizeof *weights);
    TRY(memory_check(weights, error, "no memory to read %s", path));
    enum status status = tinyphysics_weights_load(path, weights, error);
    THEN(status, tinyphysics_model_make(weights, precision, flags, out, error));
    free(weights);
    return status;
}

void tinyphysics_model_free(struct tinyphysics_model *model)
{
    if (model != NULL) {
        free(model->memory);
        free(model);
    }
}

enum status tinyphysics_workspace_make(struct tinyphysics_workspace **workspace,
                                       struct error *error)
{
    *workspace = large_alloc(sizeof **workspace);
    return memory_check(*workspace, error, "no memory for tinyphysics");
}

void tinyphysics_workspace_free(struct tinyphysics_workspace *workspace)
{
    free(workspace);
}

/* ---- one step ---- */

/* Rows and block 0's queries, keys and values of `count` windows. */
static void enter(const struct tinyphysics_model *model, const struct tinyphysics_window *windows,
                  uint32_t count, float *x, float *qkv)
{
    const struct tinyphysics_entry *entry = model->entry;
    const struct nn_causal_entry e = {
        .half = HALF,
        .columns = COLUMNS,
        .rows = {model->state_bias, model->state[0], model->bins[0], model->positions[0]},
        .images = {entry->state[0], entry->bins[0], entry->positions[0], entry->shift},
    };
    for (size_t i = 0; i < count; i++) {
        model->causal.enter(&e, windows[i].inputs, windows[i].tokens, CONTEXT,
                            x + i * CONTEXT * WIDTH, qkv + i * CONTEXT * COLUMNS);
    }
}

/* The rows of `a` as products take them. */
static const void *act_rows(const struct tinyphysics_model *model, struct tinyphysics_workspace *w,
                            const float *a, size_t count)
{
    if (model->nn.precision == NN_FP32) {
        return a;
    }
    model->nn.to_act(a, w->act, count);
    return w->act;
}

/* c = a b, or c += a b; rows of k floats, and of n. */
static void product(const struct tinyphysics_model *model, struct tinyphysics_workspace *w,
                    const float *a, const void *b, uint32_t rows, uint32_t n, uint32_t k,
                    enum nn_epilogue epilogue, float *c)
{
    const struct nn_gemm g = {.m = rows,
                              .n = n,
                              .k = k,
                              .a = act_rows(model, w, a, (size_t)rows * k),
                              .lda = k,
                              .b = b,
                              .epilogue = epilogue,
                              .c = c,
                              .ldc = n};
    model->nn.gemm(&g, 0, rows);
}

/* c[row][head] = a[row][head] b[head]; k floats of a head, and n. */
static void head_products(const struct tinyphysics_model *model, struct tinyphysics_workspace *w,
                          const float *a, void *const b[HEADS], uint32_t rows, uint32_t n,
                          uint32_t k, float *c)
{
    const size_t bytes = nn_act_bytes(model->nn.precision);
    const uint8_t *act = act_rows(model, w, a, (size_t)rows * HEADS * k);
    for (uint32_t h = 0; h < HEADS; h++) {
        const struct nn_gemm g = {.m = rows,
                                  .n = n,
                                  .k = k,
                                  .a = act + h * k * bytes,
                                  .lda = (size_t)HEADS * k,
                                  .b = b[h],
                                  .epilogue = NN_STORE,
                                  .c = c + (size_t)h * n,
                                  .ldc = (size_t)HEADS * n};
        model->nn.gemm(&g, 0, rows);
    }
}

static void normalise(const struct tinyphysics_model *model, const struct norm *norm,
                      const float *x, float *out, uint32_t rows)
{
    model->causal.norm(x, WIDTH, norm->scale, norm->shift, out, rows);
}

/* x += attention, then x += MLP, of `rows` tokens whose heads' outputs are in `attended`. */
static void finish_block(const struct tinyphysics_model *model, const struct block *block,
                         struct tinyphysics_workspace *w, const float *attended, float *x,
                         uint32_t rows)
{
    product(model, w, attended, block->attention_out, rows, WIDTH, WIDTH, NN_ADD_GATED, x);
    normalise(model, &block->mlp_norm, x, w->normed, rows);
    product(model, w, w->normed, block->up, rows, MLP, WIDTH, NN_STORE, w->hidden);
    model->causal.gelu(w->hidden, (size_t)rows * MLP);
    product(model, w, w->hidden, block->down, rows, WIDTH, MLP, NN_ADD_GATED, x);
}

/* Attention and MLP of the `count` windows of a chunk, whose queries, keys and values are there. */
static void attend_block(const struct tinyphysics_model *model, const struct block *block,
                         struct tinyphysics_workspace *w, float *x, uint32_t count)
{
    const struct nn_causal attention = {
        .tokens = CONTEXT,
        .heads = HEADS,
        .q = w->qkv,
        .q_stride = COLUMNS,
        .k = w->qkv + WIDTH,
        .v = w->qkv + 2 * WIDTH,
        .kv_stride = COLUMNS,
        .out = w->attended,
    };
    model->causal.attention(&attention, 0, count);
    finish_block(model, block, w, w->attended, x, count * CONTEXT);
}

static void run_block(const struct tinyphysics_model *model, const struct block *block,
                      struct tinyphysics_workspace *w, float *x, uint32_t count)
{
    const uint32_t rows = count * CONTEXT;
    normalise(model, &block->attention_norm, x, w->normed, rows);
    product(model, w, w->normed, block->qkv, rows, COLUMNS, WIDTH, NN_STORE, w->qkv);
    attend_block(model, block, w, x, count);
}

/* The attention of the last block on a chunk, for the last tokens: what each head makes of the
 * norms to `pooled`, they themselves to `last`, which may be rows of x that were read before. */
static void attend_last(const struct tinyphysics_model *model, const struct block *block,
                        struct tinyphysics_workspace *w, const float *x, uint32_t count,
                        float *pooled, float *last)
{
    const struct nn_causal_pool pool = {
        .tokens = CONTEXT, .width = WIDTH, .q = w->pool_q, .x = w->normed, .out = pooled};
    normalise(model, &block->attention_norm, x, w->normed, count * CONTEXT);
    for (uint32_t i = 0; i < count; i++) {
        const size_t from = ((size_t)i * CONTEXT + CONTEXT - 1) * WIDTH;
        memcpy(w->attended + (size_t)i * WIDTH, w->normed + from, WIDTH * sizeof(float));
        memmove(last + (size_t)i * WIDTH, x + from, WIDTH * sizeof(float));
    }
    product(model, w, w->attended, block->q, count, WIDTH, WIDTH, NN_STORE, w->q);
    head_products(model, w, w->q, block->keys, count, WIDTH, HEAD, w->pool_q);
    model->causal.pool(&pool, 0, count);
}

/* The last block: of every window one row is left in x. */
static void run_last_block(const struct tinyphysics_model *model, const struct block *block,
                           struct tinyphysics_workspace *w, uint32_t count)
{
    const uint32_t part = tinyphysics_part(count, CHUNK);
    for (uint32_t i = 0; i < count; i += part) {
        const uint32_t left = count - i < part ? count - i : part;
        attend_last(model, block, w, w->x + (size_t)i * CONTEXT * WIDTH, left,
                    w->pooled + (size_t)i * HEADS * WIDTH, w->x + (size_t)i * WIDTH);
    }
    head_products(model, w, w->pooled, block->values, count, HEAD, WIDTH, w->last_attended);
    finish_block(model, block, w, w->last_attended, w->x, count);
}

static void run_network(const struct tinyphysics_model *model,
                        struct tinyphysics_workspace *workspace,
                        const struct tinyphysics_window *windows, uint32_t count)
{
    const uint32_t part = tinyphysics_part(count, CHUNK);
    for (uint32_t b = 0; b < BLOCKS - 1; b++) {
        for (uint32_t i = 0; i < count; i += part) {
            const uint32_t left = count - i < part ? count - i : part;
            float *x = workspace->x + (size_t)i * CONTEXT * WIDTH;
            if (b == 0) {
                enter(model, windows + i, left, x, workspace->qkv);
                attend_block(model, &model->blocks[b], workspace, x, left);
            } else {
                run_block(model, &model->blocks[b], workspace, x, left);
            }
        }
    }
    run_last_block(model, &model->blocks[BLOCKS - 1], workspace, count);
    normalise(model, &model->last_norm, workspace->x, workspace->normed, count);
    product(model, workspace, workspace->normed, model->head, count, BINS, WIDTH, NN_STORE,
            workspace->logits);
}

static enum status run_outside(const struct tinyphysics_model *model,
                               struct tinyphysics_workspace *workspace,
                               const struct tinyphysics_window *windows, uint32_t count,
                               struct error *error)
{
    const struct tinyphysics_outside *outside = &model->outside;
    TRY(outside->logits(outside->context, windows, count, workspace->logits, error));
    for (uint32_t i = 0; i < count * BINS; i++) {
        if (!isfinite(workspace->logits[i])) {
            return error_set(error, STATUS_DEVICE, "logit %u of window %u is %g", i % BINS,
                             i / BINS, (double)workspace->logits[i]);
        }
    }
    return STATUS_OK;
}

enum status tinyphysics_model_logits(const struct tinyphysics_model *model,
                                     struct tinyphysics_workspace *workspace,
                                     const struct tinyphysics_window *windows, uint32_t count,
                                     const float **logits, struct error *error)
{
    CHECK(count >= 1 && count <= TINYPHYSICS_BATCH);
    if (model->outside.logits != NULL) {
        TRY(run_outside(model, workspace, windows, count, error));
    } else {
        run_network(model, workspace, windows, count);
    }
    *logits = workspace->logits;
    return STATUS_OK;
}

void tinyphysics_model_weights(const struct tinyphysics_model *model, const float *logits,
                               float temperature, float *weights)
{
    model->causal.weights(logits, temperature, weights, BINS);
}

double tinyphysics_model_flop(void)
{
    const double mlp = 2.0 * WIDTH * MLP;
    const double rest = (double)WIDTH * WIDTH + mlp; /* of a token in a block, without qkv */
    const double qkv = (double)COLUMNS * WIDTH;
    const double pairs = CONTEXT * (CONTEXT + 1) / 2.0;
    const double entry = (TINYPHYSICS_INPUTS + 1.0) * (COLUMNS + HALF);
    const double last = 3.0 * WIDTH * WIDTH + rest + 2.0 * HEADS * WIDTH * CONTEXT;
    return 2.0 * ((entry + rest) * CONTEXT + (BLOCKS - 2) * (rest + qkv) * CONTEXT +
                  (BLOCKS - 1) * 2.0 * WIDTH * pairs + last + (double)WIDTH * BINS);
}
