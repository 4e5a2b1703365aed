/*
 * Costs of a full-scale model: parameters, bytes, operations. See scale.h.
 *
 * Counts come from the sizes of the weights and from the list of launches alone, the one that runs;
 * so they need neither weights nor a device.
 */
#include "kernels/cuda/scale/scale.cuh"

#include <stdio.h>
#include <stdlib.h>

static double matmul_parameters(const struct scale_matmul &p)
{
    return (double)p.n * p.k;
}

static double parameters(const struct scale *s)
{
    const struct scale_config &c = s->config;
    const struct scale_weights &w = s->weights;
    double sum = matmul_parameters(w.time1) + matmul_parameters(w.time2) +
                 matmul_parameters(w.ada) + matmul_parameters(w.final) +
                 matmul_parameters(w.embed) + matmul_parameters(w.unembed) +
                 matmul_parameters(w.memory) + (double)s->all_tokens * c.width;
    for (uint32_t layer = 0; layer < c.layers; layer++) {
        const struct scale_block &b = w.block[layer];
        sum += matmul_parameters(b.qkv) + matmul_parameters(b.o) + matmul_parameters(b.tq) +
               matmul_parameters(b.to) + matmul_parameters(b.fc1) + matmul_parameters(b.fc2) +
               matmul_parameters(b.kv) + 6.0 * c.width;
        sum += scale_layer_window(&c, layer) ? 0.0 : 2.0 * c.width + (double)c.heads * c.window;
    }
    return sum;
}

/* Queries and outputs, and keys and values of the present and of each page. */
static double attention_bytes(const struct gpu_attention *a)
{
    const double tokens = a->grid.rows != 0 ? (double)a->grid.rows * a->grid.cols : a->kv_tokens;
    const double number = (double)scale_type_bytes(a->kv_type);
    const double scale = a->kv_type == GPU_E4M3 ? sizeof(float) : 0.0;
    return tokens * (2.0 * 2.0 * a->heads * a->head_dim +
                     2.0 * a->kv_heads * (a->head_dim * number + scale) * (1.0 + a->grid.past));
}

/* Bytes of what an operation reads and writes, each operand once: what must pass through memory
 * where nothing of it is cached. */
static double op_bytes(const struct scale_op *op)
{
    if (op->kind == SCALE_MATMUL) {
        const struct gpu_gemm &g = op->matmul;
        double in = (double)scale_type_bytes(g.type) * g.k * ((double)g.rows + g.n);
        return in + (double)g.rows * g.n * (g.epilogue == NN_STORE ? 4 : 2);
    }
    if (op->kind == SCALE_ATTENTION) {
        return attention_bytes(&op->attention);
    }
    if (op->kind == SCALE_TEMPORAL) {
        const struct gpu_temporal &t = op->temporal;
        double pages = 2.0 * t.page_count * t.kv_heads * (double)scale_type_bytes(t.kv_type);
        return (double)t.tokens * t.head_dim * (4.0 * t.heads + pages);
    }
    if (op->kind == SCALE_RESIDUAL) {
        const struct gpu_residual &r = op->residual;
        return (double)r.rows * r.width * (4 + 2 + 4 + (double)scale_type_bytes(r.out_type));
    }
    if (op->kind == SCALE_ACTIVATE) {
        const struct gpu_activate &a = op->activate;
        return (double)a.rows * a.width * (2 + (double)scale_type_bytes(a.out_type));
    }
    if (op->kind == SCALE_ROTATE) {
        return 4.0 * op->rotate.rows * op->rotate.heads * op->rotate.head_dim;
    }
    if (op->kind == SCALE_PAGE_STORE) {
        const struct gpu_page_store &p = op->page_store;
        return 2.0 * p.rows * p.heads * p.head_dim * (2 + (double)scale_type_bytes(p.type));
    }
    return 0.0; /* the rest is below a thousandth of a step */
}

extern "C" uint32_t scale_uses_wgmma(const struct scale *s)
{
    bool uses = false;
    for (uint32_t i = 0; i < s->op_count; i++) {
        const struct scale_op *op = &s->ops[i];
        uses |= op->kind == SCALE_ATTENTION && op->attention.wgmma != 0 &&
                gpu_attention_wgmma_suits(&op->attention) != 0;
    }
    return uses ? 1 : 0;
}

extern "C" void scale_count(const struct scale *s, struct scale_cost *out)
{
    *out = {};
    out->parameters = parameters(s);
    out->weight_bytes = s->weight_bytes;
    out->workspace_bytes = s->workspace_bytes;
    out->page_bytes = s->page.page_bytes;
    out->launches = s->op_count;
    for (uint32_t i = 0; i < s->op_count; i++) {
        const struct scale_op *op = &s->ops[i];
        out->moved_bytes += op_bytes(op);
        if (op->kind == SCALE_MATMUL) {
            double flop = 2.0 * op->matmul.rows * op->matmul.n * op->matmul.k;
            out->matmul_flop += flop;
            out->matmul_fp8_flop += op->matmul.type == GPU_E4M3 ? flop : 0.0;
        } else if (op->kind == SCALE_ATTENTION) {
            out->attention_flop += gpu_attention_flop(&op->attention);
        } else if (op->kind == SCALE_TEMPORAL) {
            const struct gpu_temporal &t = op->temporal;
            out->temporal_flop += 4.0 * t.tokens * t.heads * t.head_dim * t.page_count;
        } else if (op->kind == SCALE_ALL_TO_ALL) {
            out->all_to_all_bytes += (double)op->all_to_all.bytes_each * (s->ranks - 1);
        }
    }
}

extern "C" int scale_cost_of(const struct scale_config *config, uint32_t ranks,
                             struct scale_cost *out, struct device_text *why)
{
    struct scale_options options = {};
    options.page_count = config->window + 1;
    options.all_to_all.ranks = ranks;
    auto *s = static_cast<struct scale *>(calloc(1, sizeof(struct scale)));
    if (s == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for a plan");
        return DEVICE_FAULT_MEMORY;
    }
    int fault = scale_prepare(s, config, &options, why);
    if (fault == DEVICE_OK) {
        scale_count(s, out);
    }
    free(s->ops);
    free(s);
    return fault;
}
