/*
 * Knowledge of a tick before its first step (engine/model.md, "Context" to "Rotary"): context maps,
 * residual base, noise, modulations, the tokens' places. Bytes become numbers through tables, so
 * the only arithmetic here is that of a few values per token, position and step.
 */
#include "engine/learned/forward_internal.h"
#include "engine/learned/forward_past.h"

#include "base/dmath.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

/* The first half of the pairs turns with pu, the second with pv. */
static void turn_token(struct workspace *w, uint32_t token, double pu, double pv)
{
    const uint32_t pairs = w->heads.dim / 2;
    /* 0.6 for NN_HEAD: every dimension has the same range of frequencies. */
    const double ratio =
        w->heads.dim == NN_HEAD ? 0.6 : dmath_exp(dmath_log(0.6) * NN_HEAD / w->heads.dim);
    double frequency = 2.0;
    for (uint32_t p = 0; p < pairs / 2; p++, frequency *= ratio) {
        for (uint32_t axis = 0; axis < 2; axis++) {
            double sine;
            double cosine;
            dmath_sincos((axis == 0 ? pu : pv) * frequency, &sine, &cosine);
            size_t at = (size_t)token * pairs + axis * (pairs / 2) + p;
            w->sine[at] = (float)sine;
            w->cosine[at] = (float)cosine;
        }
    }
}

void forward_tables(struct workspace *w)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        w->act_fp32[byte] = (float)(byte / 127.5 - 1.0);
    }
    w->kernels->to_act(w->act_fp32,
                       w->act_bytes == sizeof(float) ? (void *)w->act_fp32 : (void *)w->act_bf16,
                       256);
    const struct part_space *p = &w->part[PART_BEV];
    const double unit = (double)p->patch / WINDOW_PATCH;
    for (uint32_t token = 0; token < p->tokens; token++) {
        turn_token(w, token, (token / p->token_cols + 0.5) * unit,
                   (token % p->token_cols + 0.5) * unit);
    }
}

void forward_bytes(const struct workspace *w, const uint8_t *bytes, uint32_t count, void *out,
                   size_t at)
{
    if (w->act_bytes == sizeof(float)) {
        float *to = (float *)out + at;
        for (uint32_t i = 0; i < count; i++) {
            to[i] = w->act_fp32[bytes[i]];
        }
    } else {
        uint16_t *to = (uint16_t *)out + at;
        for (uint32_t i = 0; i < count; i++) {
            to[i] = w->act_bf16[bytes[i]];
        }
    }
}

/* ---- conditions ---- */

void forward_conditions(struct workspace *w)
{
    const struct model *model = w->model;
    const struct nn_kernels *kernels = w->kernels;
    uint32_t steps = w->steps;
    for (uint32_t step = 0; step < steps; step++) {
        const float *features = model->features[model_time(&model->config, steps, step)];
        uint8_t *row =
            (uint8_t *)w->cond + (size_t)step * (COND_COUNT + MODEL_FEATURES) * w->act_bytes;
        kernels->to_act(w->input->cond, row, COND_COUNT);
        kernels->to_act(features, row + COND_COUNT * w->act_bytes, MODEL_FEATURES);
    }
    struct nn_gemm g = forward_gemm(&model->time1, steps, w->cond);
    g.epilogue = NN_SILU_ACT;
    g.out = w->hidden;
    kernels->gemm(&g, 0, steps);
    g = forward_gemm(&model->time2, steps, w->hidden);
    g.epilogue = NN_SILU_ACT; /* e = silu(c) */
    g.out = w->e;
    kernels->gemm(&g, 0, steps);
    const struct model_matmul *matmuls[] = {&model->ada, &model->final, &model->part[PART_BEV].mod,
                                            &model->part[PART_CAMERA].mod};
    float *outs[] = {w->ada, w->final, w->part[PART_BEV].mod, w->part[PART_CAMERA].mod};
    for (int i = 0; i < 4; i++) {
        g = forward_gemm(matmuls[i], steps, w->e);
        g.c = outs[i];
        kernels->gemm(&g, 0, steps);
    }
}

/* ---- places ---- */

/* Focal length in columns of the 96-column image, as engine/model.md rounds it. */
#define CAMERA_FOCAL 62.55

/* Distance on the ground, in units of WINDOW_PATCH, of a camera token's row: given for the rows of
 * tokens of WINDOW_PATCH, on a line between their middles and beyond them as at the ends. */
static double row_reach(uint32_t row, uint32_t patch)
{
    enum { ROWS = FRAME_CAMERA_ROWS / WINDOW_PATCH };
    static const double reach[ROWS] = {8.0, 5.0, 2.5, 1.0};
    double at = (row + 0.5) * patch / WINDOW_PATCH - 0.5;
    if (at <= 0.0) {
        return reach[0];
    }
    uint32_t before = (uint32_t)at;
    if (before + 1 >= ROWS) {
        return reach[ROWS - 1];
    }
    return reach[before] + (reach[before + 1] - reach[before]) * (at - before);
}

/* A camera token lies on the ground along the ray of its centre column. */
static void turn_cameras(struct workspace *w)
{
    const struct part_space *p = &w->part[PART_CAMERA];
    const struct pose *ego = &w->input->ego;
    double u = ego->x_m / WINDOW_PATCH - w->input->window.i;
    double v = ego->y_m / WINDOW_PATCH - w->input->window.j;
    for (uint32_t camera = 0; camera < CAMERA_COUNT; camera++) {
        for (uint32_t col = 0; col < p->token_cols; col++) {
            double bearing = ego->heading_rad + camera_calibrations[camera].yaw_rad -
                             dmath_atan((2.0 * p->patch * col + p->patch - 48.0) / CAMERA_FOCAL);
            double sine;
            double cosine;
            dmath_sincos(bearing, &sine, &cosine);
            for (uint32_t row = 0; row < p->rows / p->patch; row++) {
                uint32_t token =
                    p->first_token + camera * p->image_tokens + row * p->token_cols + col;
                double reach = row_reach(row, p->patch);
                turn_token(w, token, u + reach * cosine, v + reach * sine);
            }
        }
    }
}

/* Place of each token's patch of the world in a page. */
static void place_tokens(struct workspace *w, uint32_t page)
{
    const int32_t side = (int32_t)w->part[PART_BEV].token_cols;
    const int64_t stride = WINDOW_PATCH / w->part[PART_BEV].patch; /* tokens of a window's step */
    int64_t di = ((int64_t)w->input->window.i - w->input->pages[page].window.i) * stride;
    int64_t dj = ((int64_t)w->input->window.j - w->input->pages[page].window.j) * stride;
    int16_t *index = w->index[page];
    for (int32_t token = 0; token < side * side; token++) {
        int64_t row = token / side + di;
        int64_t col = token % side + dj;
        bool there = row >= 0 && row < side && col >= 0 && col < side;
        index[token] = there ? (int16_t)(row * side + col) : -1;
    }
    for (uint32_t token = w->part[PART_CAMERA].first_token; token < w->token_count; token++) {
        index[token] = (int16_t)token;
    }
}

void forward_geometry(struct workspace *w)
{
    turn_cameras(w);
    for (uint32_t page = 0; page < w->input->page_count; page++) {
        place_tokens(w, page);
    }
}

/* ---- context maps and base ---- */

enum {
    CONTEXT_PREVIOUS = 0,
    CONTEXT_BEFORE = CONTEXT_PREVIOUS + FRAME_BEV_CHANNELS,
    CONTEXT_BEFORE_FIRST = 8, /* channels 0..7 of the frame before, then 20 and 21 */
    CONTEXT_BEFORE_CHANNELS = 10,
    CONTEXT_LAYOUT = CONTEXT_BEFORE + CONTEXT_BEFORE_CHANNELS,
    CONTEXT_GEOMETRY = CONTEXT_LAYOUT + FRAME_BEV_CHANNELS,
    CONTEXT_GEOMETRY_CHANNELS = 8, /* five, two validities, a zero */
};

/* Geometry and validity of a line's positions, as floats. */
static void bev_geometry(const struct workspace *w, uint32_t row, const struct past_line past[2],
                         float out[WINDOW_SIDE][CONTEXT_GEOMETRY_CHANNELS])
{
    const struct forward_input *input = w->input;
    double u = (double)input->window.i * WINDOW_PATCH + row + 0.5 - input->ego.x_m;
    double v = (double)input->window.j * WINDOW_PATCH + 0.5 - input->ego.y_m;
    float du = (float)u;
    for (int32_t col = 0; col < WINDOW_SIDE; col++) {
        float dv = (float)(v + col);
        float r = sqrtf(du * du + dv * dv);
        r = r > 1e-3f ? r : 1e-3f;
        const float values[CONTEXT_GEOMETRY_CHANNELS] = {
            du / 64.0f,
            dv / 64.0f,
            r / 64.0f,
            du / r,
            dv / r,
            (float)past_has(&past[0], col),
            (float)past_has(&past[1], col),
        };
        memcpy(out[col], values, sizeof values);
    }
}

static void bev_context_line(struct workspace *w, struct part_space *p, uint32_t row)
{
    size_t act = w->act_bytes;
    float geometry[WINDOW_SIDE][CONTEXT_GEOMETRY_CHANNELS];
    float geometry_act[WINDOW_SIDE][CONTEXT_GEOMETRY_CHANNELS]; /* room for either type */
    const struct past_line past[2] = {past_bev(w->input, 0, row), past_bev(w->input, 1, row)};
    const uint8_t *given = w->given + (size_t)row * WINDOW_SIDE * FRAME_BEV_CHANNELS;
    size_t at = map_at(p, 0, row, 0, CONTEXT_BEV_CHANNELS);
    bev_geometry(w, row, past, geometry);
    w->kernels->to_act(geometry[0], geometry_act, WINDOW_SIDE * CONTEXT_GEOMETRY_CHANNELS);
    for (int32_t col = 0; col < WINDOW_SIDE; col++, at += CONTEXT_BEV_CHANNELS) {
        int32_t byte = col * FRAME_BEV_CHANNELS;
        uint8_t *to = (uint8_t *)p->context + at * act;
        if (past_has(&past[0], col)) {
            forward_bytes(w, past[0].line + byte, FRAME_BEV_CHANNELS, p->context, at);
        } else {
            memset(to, 0, FRAME_BEV_CHANNELS * act);
        }
        if (past_has(&past[1], col)) {
            const uint8_t *before = past[1].line + byte;
            size_t first = at + CONTEXT_BEFORE;
            forward_bytes(w, before, CONTEXT_BEFORE_FIRST, p->context, first);
            forward_bytes(w, before + FRAME_VELOCITY, 2, p->context, first + CONTEXT_BEFORE_FIRST);
        } else {
            memset(to + CONTEXT_BEFORE * act, 0, CONTEXT_BEFORE_CHANNELS * act);
        }
        forward_bytes(w, given + byte, FRAME_BEV_CHANNELS, p->context, at + CONTEXT_LAYOUT);
        memcpy(to + CONTEXT_GEOMETRY * act,
               (const uint8_t *)geometry_act + col * CONTEXT_GEOMETRY_CHANNELS * act,
               CONTEXT_GEOMETRY_CHANNELS * act);
    }
}

static void base_values(const struct workspace *w, const uint8_t *bytes, uint32_t count, float *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = w->act_fp32[bytes[i]];
    }
}

enum { CONTEXT_PLACE_CHANNELS = CONTEXT_CAMERA_CHANNELS - 2 * FRAME_CAMERA_CHANNELS };

static void camera_line(struct workspace *w, struct part_space *p, uint32_t image, uint32_t row)
{
    static const uint8_t grey[FRAME_CAMERA_CHANNELS] = {128, 128, 128, 128, 128, 128,
                                                        128, 128, 128, 128, 128, 128};
    size_t act = w->act_bytes;
    bool valid = w->input->page_count > 0;
    size_t first = ((size_t)image * p->rows + row) * p->cols * FRAME_CAMERA_CHANNELS;
    const uint8_t *layout = w->input->layout_cameras + first;
    const uint8_t *before = valid ? w->input->pages[0].frame + FRAME_BEV_BYTES + first : NULL;
    size_t at = map_at(p, image, row, 0, CONTEXT_CAMERA_CHANNELS);
    for (uint32_t col = 0; col < p->cols; col++, at += CONTEXT_CAMERA_CHANNELS) {
        uint32_t byte = col * FRAME_CAMERA_CHANNELS;
        uint8_t *to = (uint8_t *)p->context + at * act;
        const float place[CONTEXT_PLACE_CHANNELS] = {
            ((float)row + 0.5f) / 16.0f - 1.0f,
            ((float)col + 0.5f) / 24.0f - 1.0f,
            valid,
        };
        if (valid) {
            forward_bytes(w, before + byte, FRAME_CAMERA_CHANNELS, p->context, at);
        } else {
            memset(to, 0, FRAME_CAMERA_CHANNELS * act);
        }
        forward_bytes(w, layout + byte, FRAME_CAMERA_CHANNELS, p->context,
                      at + FRAME_CAMERA_CHANNELS);
        w->kernels->to_act(place, to + 2 * FRAME_CAMERA_CHANNELS * act, CONTEXT_PLACE_CHANNELS);
        const uint8_t *base = w->input->conditioning == CONDITIONING_AGENTS ? layout + byte
                              : valid                                       ? before + byte
                                                                            : grey;
        base_values(w, base, FRAME_CAMERA_CHANNELS, p->base + first + byte);
    }
}

void forward_latent_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                         uint32_t end)
{
    float line[WINDOW_SIDE * FRAME_BEV_CHANNELS]; /* room for either type */
    size_t act = w->act_bytes;
    size_t count = (size_t)p->cols * p->channels;
    for (uint32_t row = first; row < end; row++) {
        const float *x = p->x + ((size_t)image * p->rows + row) * count;
        uint8_t *to = (uint8_t *)p->latent + map_at(p, image, row, 0, LATENT_CHANNELS) * act;
        w->kernels->to_act(x, line, count);
        for (uint32_t col = 0; col < p->cols; col++) {
            memcpy(to + (size_t)col * LATENT_CHANNELS * act,
                   (const uint8_t *)line + (size_t)col * p->channels * act, p->channels * act);
        }
    }
}

static void context_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                         uint32_t end)
{
    uint32_t count = p->cols * p->channels;
    for (uint32_t row = first; row < end; row++) {
        size_t element = ((size_t)image * p->rows + row) * count;
        if (p == &w->part[PART_BEV]) {
            bev_context_line(w, p, row);
            base_values(w, w->given + element, count, p->base + element);
        } else {
            camera_line(w, p, image, row);
        }
        w->kernels->noise(w->input->seed, w->input->tick, RNG_STREAM_NOISE,
                          p->first_element + (uint32_t)element, count, p->x + element);
    }
    forward_latent_rows(w, p, image, first, end);
}

static void ctx_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                     uint32_t end)
{
    const struct model_part *model = p->model;
    uint32_t channels = model->context_channels;
    const struct nn_conv c = {
        .rows = p->rows,
        .cols = p->cols,
        .in_count = 1,
        .in = {(const uint8_t *)p->context + image * map_elements(p, channels) * w->act_bytes},
        .in_channels = {channels},
        .out_channels = model->channels,
        .b = model->ctx.packed,
        .bias = model->ctx.bias,
        .out_f32 = p->add + (size_t)image * p->rows * p->cols * model->channels,
    };
    forward_conv(w, &model->ctx, &c, first, end);
}

void forward_context(struct workspace *w)
{
    w->given = w->input->layout_bev;
    if (w->input->conditioning != CONDITIONING_AGENTS) {
        motion_frame(w->input, w->motion_sums, w->motion);
        w->given = w->motion;
    }
    forward_rows(w, context_rows);
    forward_mark_phase(w, "context");
    forward_rows(w, ctx_rows);
    forward_mark_phase(w, "conv ctx");
}
