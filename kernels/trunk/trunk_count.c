/*
 * Costs of a world step: a sink of trunk_plan that adds up operations and bytes. See trunk.h.
 *
 * Counts come from the sizes of the weights and from the list of launches alone, the one that runs;
 * so they need neither weights nor a device.
 */
#include "kernels/trunk/trunk.h"

const char *trunk_kind_name(enum trunk_kind kind)
{
    static const char *const names[TRUNK_KIND_COUNT] = {
        "product", "attention",  "temporal",  "residual",    "activate", "rotate",
        "norm",    "page store", "heads out", "heads in",    "exchange", "table",
        "noise",   "euler",      "convert",   "convolution", "patches",  "gather"};
    return names[kind];
}

/* ---- one operation ---- */

/* Number of pairs of places at most `reach` apart in a row of so many. */
static double pairs_within(uint32_t count, uint32_t reach)
{
    double pairs = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t last = count - 1 - i;
        pairs += 1.0 + (i < reach ? i : reach) + (last < reach ? last : reach);
    }
    return pairs;
}

/* Pairs of a query and a key, all pages there. */
static double attention_pairs(const struct gpu_attention *a)
{
    const struct gpu_grid *g = &a->grid;
    double pairs = pairs_within(g->rows, g->reach_rows) * pairs_within(g->cols, g->reach_cols) *
                   (1.0 + g->past);
    for (uint32_t r = 0; r < a->range_count; r++) {
        pairs += (double)a->range[r].count * a->range[r].count;
    }
    return pairs;
}

static double conv_positions(const struct gpu_conv *c)
{
    return (double)c->slots * c->images * c->rows * c->cols;
}

double trunk_op_flop(const struct trunk_op *op)
{
    const struct gpu_attention *a = &op->attention;
    const struct gpu_temporal *t = &op->temporal;
    const struct gpu_conv *c = &op->conv;
    switch (op->kind) {
    case TRUNK_MATMUL:
        return 2.0 * op->matmul.rows * op->matmul.n * op->matmul.k;
    case TRUNK_ATTENTION:
        return 4.0 * a->items * a->heads * a->head_dim * attention_pairs(a);
    case TRUNK_TEMPORAL:
        return 4.0 * t->tokens * t->heads * t->head_dim * (t->page_count + op->own_keys);
    case TRUNK_CONV:
        return 2.0 * 9.0 * conv_positions(c) * c->out_channels *
               (c->in_channels[0] + c->in_channels[1]);
    default:
        return 0.0;
    }
}

/* Queries and outputs, and keys and values of the present and of each past frame. */
static double attention_bytes(const struct gpu_attention *a)
{
    const double tokens = a->grid.rows != 0 ? (double)a->grid.rows * a->grid.cols : a->kv_tokens;
    return 4.0 * tokens * a->head_dim * (a->heads + a->kv_heads * (1.0 + a->grid.past));
}

static double temporal_bytes(const struct gpu_temporal *t)
{
    const double scale = t->kv_type == GPU_E4M3 ? sizeof(float) : 0.0; /* of a head */
    const double pages = 2.0 * t->page_count * t->kv_heads *
                         (t->head_dim * (double)trunk_type_bytes(t->kv_type) + scale);
    return (double)t->tokens * (4.0 * t->heads * t->head_dim + pages);
}

/* Maps of bf16, and weights. */
static double conv_bytes(const struct gpu_conv *c)
{
    double channels = c->in_channels[0] + c->in_channels[1];
    return 2.0 *
           (conv_positions(c) * (channels + c->out_channels) + 9.0 * channels * c->out_channels);
}

double trunk_op_bytes(const struct trunk_op *op)
{
    const struct gpu_gemm *g = &op->matmul;
    const struct gpu_residual *r = &op->residual;
    const struct gpu_page_store *s = &op->page_store;
    const struct gpu_patches *p = &op->patches;
    const struct gpu_gather *past = &op->gather;
    switch (op->kind) {
    case TRUNK_MATMUL:
        return (double)trunk_type_bytes(g->type) * g->k * ((double)g->rows + g->n) +
               (double)g->rows * g->n * (g->epilogue == NN_STORE ? 4 : 2);
    case TRUNK_ATTENTION:
        return attention_bytes(&op->attention);
    case TRUNK_TEMPORAL:
        return temporal_bytes(&op->temporal);
    case TRUNK_RESIDUAL:
        return (double)r->rows * r->width *
               (double)(trunk_type_bytes(r->in_type) + 2 + trunk_type_bytes(r->x_type) +
                        trunk_type_bytes(r->out_type));
    case TRUNK_ACTIVATE:
        return (double)op->activate.rows * op->activate.width *
               (2 + (double)trunk_type_bytes(op->activate.out_type));
    case TRUNK_ROTATE:
        return (double)op->rotate.rows * op->rotate.width *
               (2 + (double)trunk_type_bytes(op->rotate.type));
    case TRUNK_PAGE_STORE:
        return 2.0 * s->rows * s->heads * s->head_dim * (2 + (double)trunk_type_bytes(s->type));
    case TRUNK_CONV:
        return conv_bytes(&op->conv);
    case TRUNK_PATCHES:
        return 2.0 * p->images * p->rows * p->cols * p->channels * p->element_bytes;
    case TRUNK_GATHER: /* keys and values, read and written */
        return 2.0 * past->tokens * past->page_count * past->heads * past->head_dim *
               (2 + (double)trunk_type_bytes(past->type));
    default:
        return 0.0; /* the rest is below a thousandth of a step */
    }
}

/* ---- a step ---- */

struct counter {
    const struct trunk *t;
    struct trunk_cost *out;
};

static void count_op(void *context, const struct trunk_op *op)
{
    const struct counter *counter = context;
    struct trunk_cost *out = counter->out;
    const double flop = trunk_op_flop(op);
    out->launches++;
    out->moved_bytes += trunk_op_bytes(op);
    if (op->kind == TRUNK_ATTENTION) {
        out->attention_flop += flop;
    } else if (op->kind == TRUNK_TEMPORAL) {
        out->temporal_flop += flop;
    } else if (op->kind == TRUNK_ALL_TO_ALL) {
        out->all_to_all_bytes += (double)op->all_to_all.bytes_each * (counter->t->ranks - 1);
    } else {
        const bool fp8 = op->kind == TRUNK_MATMUL && op->matmul.type == GPU_E4M3;
        out->matmul_flop += flop;
        out->matmul_fp8_flop += fp8 ? flop : 0.0;
    }
}

void trunk_count(const struct trunk *t, struct trunk_cost *out)
{
    *out = (struct trunk_cost){
        .parameters = t->parameters,
        .weight_bytes = t->weight_bytes,
        .workspace_bytes = t->workspace_bytes,
        .page_bytes = t->page.page_bytes,
    };
    struct counter counter = {t, out};
    trunk_plan(t, &(struct trunk_sink){count_op, &counter});
}

int trunk_cost_of(const struct trunk_config *config, uint32_t ranks, struct trunk_cost *out,
                  struct device_text *why)
{
    struct trunk t;
    int fault = trunk_prepare(config, 0, ranks, &t, why);
    if (fault == DEVICE_OK) {
        trunk_count(&t, out);
    }
    return fault;
}
