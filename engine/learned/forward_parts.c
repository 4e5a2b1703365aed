/*
 * Parts of a forward pass: work shared out over rows and tokens, products, gathers and scatters of
 * patches, probes. See forward_internal.h.
 */
#include "engine/learned/forward_internal.h"

#include "base/check.h"

#include <string.h>

static void rows_entry(void *context, uint32_t first, uint32_t end)
{
    struct workspace *w = context;
    for (uint32_t row = first; row < end;) {
        struct part_space *p = &w->part[row < WINDOW_SIDE ? PART_BEV : PART_CAMERA];
        uint32_t local = p == &w->part[PART_BEV] ? row : row - WINDOW_SIDE;
        uint32_t start = local % p->rows;
        uint32_t count = p->rows - start < end - row ? p->rows - start : end - row;
        w->row_work(w, p, local / p->rows, start, start + count);
        row += count;
    }
}

void forward_rows(struct workspace *w, void (*work)(struct workspace *w, struct part_space *p,
                                                    uint32_t image, uint32_t first, uint32_t end))
{
    w->row_work = work;
    threads_run(w->threads, IMAGE_ROWS, 8, rows_entry, w);
}

static void tokens_entry(void *context, uint32_t first, uint32_t end)
{
    struct workspace *w = context;
    w->token_work(w, first, end);
}

void forward_tokens(struct workspace *w,
                    void (*work)(struct workspace *w, uint32_t first, uint32_t end))
{
    /* One chunk per thread, so that each passes over the weights once; 16 rows are a tile. */
    uint32_t share = (w->token_count - 1) / threads_count(w->threads) + 1;
    w->token_work = work;
    threads_run(w->threads, w->token_count, (share + 15) / 16 * 16, tokens_entry, w);
}

struct nn_gemm forward_gemm(const struct model_matmul *matmul, uint32_t rows, const void *a)
{
    return (struct nn_gemm){
        .m = rows,
        .n = matmul->n,
        .k = matmul->k,
        .a = a,
        .lda = matmul->k,
        .b = matmul->packed,
        .bias = matmul->bias,
        .epilogue = NN_STORE,
        .ldc = matmul->n,
    };
}

void forward_take_activations(struct workspace *w, const struct model_matmul *matmul,
                              struct nn_gemm *g, uint32_t token, uint32_t first, uint32_t end)
{
    if (matmul->int8 || matmul->e4m3) {
        int8_t *q = w->int8 + token * w->int8_stride;
        struct nn_int8_row *rows = w->int8_rows + token;
        (matmul->e4m3 ? w->kernels->to_e4m3 : w->kernels->to_int8)(g->a, g->k, q, w->int8_stride,
                                                                   rows, first, end);
        g->a = q;
        g->lda = w->int8_stride;
        g->rows = rows;
    }
}

void forward_multiply(const struct workspace *w, const struct model_matmul *matmul,
                      const struct nn_gemm *g, uint32_t first, uint32_t end)
{
    (matmul->e4m3   ? w->kernels->gemm_e4m3
     : matmul->int8 ? w->kernels->gemm_int8
                    : w->kernels->gemm)(g, first, end);
}

void forward_matmul(struct workspace *w, const struct model_matmul *matmul, struct nn_gemm *g,
                    uint32_t token, uint32_t first, uint32_t end)
{
    forward_take_activations(w, matmul, g, token, first, end);
    forward_multiply(w, matmul, g, first, end);
}

void forward_conv(const struct workspace *w, const struct model_matmul *matmul,
                  const struct nn_conv *c, uint32_t first, uint32_t end)
{
    (matmul->int8 ? w->kernels->conv3x3_int8 : w->kernels->conv3x3)(c, first, end);
}

/* Element of the map where line `line` of a patch begins. */
static size_t patch_line(const struct part_space *p, uint32_t channels, uint32_t token,
                         uint32_t line)
{
    uint32_t within = token % p->image_tokens;
    return map_at(p, token / p->image_tokens, within / p->token_cols * p->patch + line,
                  within % p->token_cols * p->patch, channels);
}

void forward_gather(struct workspace *w, struct part_space *p, const void *map, uint32_t channels,
                    uint32_t token)
{
    size_t bytes = (size_t)p->patch * channels * w->act_bytes;
    uint8_t *patch = (uint8_t *)p->patches + (size_t)token * p->patch * bytes;
    for (uint32_t line = 0; line < p->patch; line++) {
        size_t from = patch_line(p, channels, token, line) * w->act_bytes;
        memcpy(patch + line * bytes, (const uint8_t *)map + from, bytes);
    }
}

void forward_scatter(struct workspace *w, struct part_space *p, void *map, uint32_t channels,
                     uint32_t token)
{
    size_t bytes = (size_t)p->patch * channels * w->act_bytes;
    const uint8_t *patch = (const uint8_t *)p->patches + (size_t)token * p->patch * bytes;
    for (uint32_t line = 0; line < p->patch; line++) {
        size_t to = patch_line(p, channels, token, line) * w->act_bytes;
        memcpy((uint8_t *)map + to, patch + line * bytes, bytes);
    }
}

void forward_mark_phase(struct workspace *w, const char *name)
{
    if (w->output->mark != NULL) {
        w->output->mark(w->output->probe_context, name);
    }
}

void forward_probe_floats(struct workspace *w, const char *name, const float *values, size_t count)
{
    if (w->output->probe != NULL) {
        w->output->probe(w->output->probe_context, w->step, name, values, count);
    }
}

void forward_floats(const struct workspace *w, const void *act, size_t first, size_t count,
                    float *out)
{
    if (w->act_bytes == sizeof(float)) {
        memcpy(out, (const float *)act + first, count * sizeof *out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)((const uint16_t *)act)[first + i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

void forward_probe_act(struct workspace *w, const char *name, const void *values, size_t count)
{
    if (w->output->probe != NULL) {
        forward_floats(w, values, 0, count, w->probe);
        forward_probe_floats(w, name, w->probe, count);
    }
}

void forward_probe_map(struct workspace *w, const char *name, const struct part_space *p,
                       const void *map, uint32_t channels)
{
    if (w->output->probe == NULL) {
        return;
    }
    size_t line = (size_t)p->cols * channels;
    size_t done = 0;
    for (uint32_t image = 0; image < p->images; image++) {
        for (uint32_t row = 0; row < p->rows; row++, done += line) {
            forward_floats(w, map, map_at(p, image, row, 0, channels), line, w->probe + done);
        }
    }
    forward_probe_floats(w, name, w->probe, done);
}
