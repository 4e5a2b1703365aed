/*
 * Knowledge of a tick before its first step, see context.h and engine/model.md. One thread per
 * position, token or four noise values; nothing is shared between threads, so no order exists that
 * bits could depend on. The formulas are those of engine/learned/forward_context.c.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/context.h"
#include "kernels/nn.h"

enum { THREADS = 128 };

static dim3 grid_of(uint32_t items, uint32_t slots)
{
    return dim3((items + THREADS - 1) / THREADS, slots);
}

/* A byte as the network sees it. */
GPU_FN float byte_value(uint8_t byte)
{
    return (float)(byte / 127.5 - 1.0);
}

GPU_FN uint16_t byte_act(uint8_t byte)
{
    return gpu_act_bf16(byte_value(byte));
}

/* ---- what the records say ---- */

__global__ void __launch_bounds__(THREADS) k_unpack(struct context_slots s)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= s.count) {
        return;
    }
    const struct device_slot *slot = &s.slots[i];
    s.active[i] = slot->active;
    s.keys[i] = slot->active ? slot->seed : 0;
    s.ticks[i] = slot->active ? slot->tick : 0;
    s.write[i] = slot->active ? (int32_t)slot->write_page : -1;
    for (uint32_t page = 0; page < s.window; page++) {
        bool there = slot->active && page < slot->page_count;
        s.table[(size_t)i * s.window + page] = there ? (int32_t)slot->page[page] : -1;
    }
    for (uint32_t step = 0; step < s.steps; step++) {
        bool runs = slot->active && step >= slot->skipped;
        size_t row = s.steps - slot->skipped - 1;
        s.runs[(size_t)step * s.count + i] = runs;
        s.weights[(size_t)step * s.count + i] =
            runs ? s.step_weights[row * s.steps + step - slot->skipped] : 0.0f;
    }
}

void context_unpack(const struct context_slots *s, void *stream)
{
    LAUNCH(k_unpack, grid_of(s->count, 1), dim3(THREADS), 0, (cudaStream_t)stream, *s);
}

/* ---- conditions ---- */

__global__ void __launch_bounds__(THREADS)
    k_conditions(struct context_slots s, const float *features, uint16_t *rows)
{
    enum { COLS = DEVICE_COND + DEVICE_FEATURES };
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t slot = blockIdx.y;
    uint32_t step = i / COLS;
    uint32_t col = i % COLS;
    if (step >= s.steps || !s.slots[slot].active || step < s.slots[slot].skipped) {
        return;
    }
    uint32_t skipped = s.slots[slot].skipped;
    uint32_t time = (step - skipped) * s.steps / (s.steps - skipped);
    float x = col < DEVICE_COND ? s.slots[slot].cond[col]
                                : features[time * DEVICE_FEATURES + col - DEVICE_COND];
    rows[(size_t)slot * s.steps * COLS + i] = gpu_act_bf16(x);
}

void context_conditions(const struct context_slots *s, const float *features, uint16_t *rows,
                        void *stream)
{
    LAUNCH(k_conditions, grid_of(s->steps * (DEVICE_COND + DEVICE_FEATURES), s->count),
           dim3(THREADS), 0, (cudaStream_t)stream, *s, features, rows);
}

/* ---- places ---- */

/* The first half of the pairs turns with pu, the second with pv; 2 * ratio^p. */
GPU_FN void turn_pair(const struct context_places *p, size_t token, uint32_t pair, double pu,
                      double pv)
{
    double frequency = 2.0;
    for (uint32_t i = 0; i < pair % (p->pairs / 2); i++) {
        frequency *= p->ratio;
    }
    double sine;
    double cosine;
    sincos((pair < p->pairs / 2 ? pu : pv) * frequency, &sine, &cosine);
    p->cosine[token * p->pairs + pair] = (float)cosine;
    p->sine[token * p->pairs + pair] = (float)sine;
}

/* Distance on the ground of a camera token's row, in strides: given for patches of a stride, on a
 * line between their middles and beyond them as at the ends. */
GPU_FN double row_reach(double row, uint32_t patch)
{
    const double reach[4] = {8.0, 5.0, 2.5, 1.0};
    double at = (row + 0.5) * patch / SHAPE_STRIDE - 0.5;
    if (at <= 0.0) {
        return reach[0];
    }
    uint32_t before = (uint32_t)at;
    return before >= 3 ? reach[3]
                       : reach[before] + (reach[before + 1] - reach[before]) * (at - before);
}

/* Place of a token, in strides of the window. */
GPU_FN void token_place(const struct device_slot *slot, const struct context_places *p,
                        uint32_t token, double *pu, double *pv)
{
    const double unit = (double)p->bev.patch / SHAPE_STRIDE;
    if (token < p->bev.tokens) {
        *pu = (token / p->bev.token_cols + 0.5) * unit;
        *pv = (token % p->bev.token_cols + 0.5) * unit;
        return;
    }
    uint32_t camera = (token - p->bev.tokens) / p->camera.image_tokens;
    uint32_t within = (token - p->bev.tokens) % p->camera.image_tokens;
    uint32_t col = within % p->camera.token_cols;
    const double patch = p->camera.patch;
    double bearing =
        slot->ego[2] + p->camera_yaw_rad[camera] - atan((2.0 * patch * col + patch - 48.0) / 62.55);
    double reach = row_reach(within / p->camera.token_cols, p->camera.patch);
    double sine;
    double cosine;
    sincos(bearing, &sine, &cosine);
    *pu = slot->ego[0] / SHAPE_STRIDE - slot->window[0] + reach * cosine;
    *pv = slot->ego[1] / SHAPE_STRIDE - slot->window[1] + reach * sine;
}

GPU_FN int16_t token_row(const struct device_slot *slot, const struct shape_part *bev,
                         uint32_t page, uint32_t token)
{
    if (token >= bev->tokens) {
        return (int16_t)token;
    }
    const int32_t side = (int32_t)bev->token_cols;
    const int64_t stride = SHAPE_STRIDE / bev->patch;
    int64_t row = token / side + ((int64_t)slot->window[0] - slot->page_window[page][0]) * stride;
    int64_t col = token % side + ((int64_t)slot->window[1] - slot->page_window[page][1]) * stride;
    bool there = row >= 0 && row < side && col >= 0 && col < side;
    return there ? (int16_t)(row * side + col) : (int16_t)-1;
}

__global__ void __launch_bounds__(THREADS) k_places(struct context_slots s, struct context_places p)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const struct device_slot *slot = &s.slots[blockIdx.y];
    const uint32_t tokens = p.bev.tokens + p.camera.tokens;
    if (i >= tokens * p.pairs || !slot->active) {
        return;
    }
    uint32_t token = i / p.pairs;
    uint32_t pair = i % p.pairs;
    double pu;
    double pv;
    token_place(slot, &p, token, &pu, &pv);
    turn_pair(&p, (size_t)blockIdx.y * tokens + token, pair, pu, pv);
    /* The thread's pair number serves as a page number: there are as many. */
    if (pair < s.window) {
        p.index[((size_t)blockIdx.y * s.window + pair) * tokens + token] =
            pair < slot->page_count ? token_row(slot, &p.bev, pair, token) : (int16_t)-1;
    }
}

static_assert((int)DEVICE_PAGES_MAX <= (int)DEVICE_HEAD_MIN / 2, "k_places uses one for the other");

void context_places_fill(const struct context_slots *s, const struct context_places *p,
                         void *stream)
{
    LAUNCH(k_places, grid_of((p->bev.tokens + p->camera.tokens) * p->pairs, s->count),
           dim3(THREADS), 0, (cudaStream_t)stream, *s, *p);
}

/* ---- context maps and base ---- */

/* The frame of a slot's page `page` at a position of the present window; NULL: not there. */
GPU_FN const uint8_t *past_bev(const struct context_slots *s, const struct device_slot *slot,
                               uint32_t page, int32_t row, int32_t col)
{
    if (page >= slot->page_count) {
        return NULL;
    }
    int64_t r = row + ((int64_t)slot->window[0] - slot->page_window[page][0]) * SHAPE_STRIDE;
    int64_t c = col + ((int64_t)slot->window[1] - slot->page_window[page][1]) * SHAPE_STRIDE;
    if (r < 0 || r >= SHAPE_BEV_SIDE || c < 0 || c >= SHAPE_BEV_SIDE) {
        return NULL;
    }
    return s->arena + slot->page[page] * s->page_bytes +
           (r * SHAPE_BEV_SIDE + c) * SHAPE_BEV_CHANNELS;
}

GPU_FN void put_bytes(const uint8_t *bytes, uint32_t count, uint16_t *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = bytes != NULL ? byte_act(bytes[i]) : (uint16_t)0;
    }
}

GPU_FN void put_geometry(const struct device_slot *slot, int32_t row, int32_t col, bool valid0,
                         bool valid1, uint16_t *out)
{
    float du = (float)((double)slot->window[0] * SHAPE_STRIDE + row + 0.5 - slot->ego[0]);
    float dv = (float)((double)slot->window[1] * SHAPE_STRIDE + 0.5 - slot->ego[1] + col);
    float r = sqrtf(du * du + dv * dv);
    r = r > 1e-3f ? r : 1e-3f;
    const float values[8] = {du / 64.0f, dv / 64.0f,    r / 64.0f,     du / r,
                             dv / r,     (float)valid0, (float)valid1, 0.0f};
    for (uint32_t i = 0; i < 8; i++) {
        out[i] = gpu_act_bf16(values[i]);
    }
}

__global__ void __launch_bounds__(THREADS)
    k_context_bev(struct context_slots s, struct shape_part part, uint16_t *map, float *base)
{
    uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (position >= SHAPE_BEV_POSITIONS || !slot->active) {
        return;
    }
    int32_t row = (int32_t)(position / SHAPE_BEV_SIDE);
    int32_t col = (int32_t)(position % SHAPE_BEV_SIDE);
    const uint8_t *layout =
        s.layouts + (size_t)blockIdx.y * DEVICE_FRAME_BYTES + (size_t)position * SHAPE_BEV_CHANNELS;
    const uint8_t *past[2] = {past_bev(&s, slot, 0, row, col), past_bev(&s, slot, 1, row, col)};
    uint16_t *out =
        map + (((size_t)blockIdx.y * (part.rows + 2) + row + 1) * (part.cols + 2) + col + 1) *
                  part.context_channels;
    put_bytes(past[0], SHAPE_BEV_CHANNELS, out);
    put_bytes(past[1], 8, out + 22);
    put_bytes(past[1] != NULL ? past[1] + 20 : NULL, 2, out + 30);
    put_bytes(layout, SHAPE_BEV_CHANNELS, out + 32);
    put_geometry(slot, row, col, past[0] != NULL, past[1] != NULL, out + 54);
    out[62] = 0;
    out[63] = 0;
    float *to = base + ((size_t)blockIdx.y * SHAPE_BEV_POSITIONS + position) * SHAPE_BEV_CHANNELS;
    for (uint32_t i = 0; i < SHAPE_BEV_CHANNELS; i++) {
        to[i] = byte_value(layout[i]);
    }
}

__global__ void __launch_bounds__(THREADS)
    k_context_camera(struct context_slots s, struct shape_part part, uint16_t *map, float *base)
{
    uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (position >= SHAPE_CAMERAS * SHAPE_CAMERA_POSITIONS || !slot->active) {
        return;
    }
    uint32_t image = position / SHAPE_CAMERA_POSITIONS;
    uint32_t row = position % SHAPE_CAMERA_POSITIONS / SHAPE_CAMERA_COLS;
    uint32_t col = position % SHAPE_CAMERA_COLS;
    size_t byte = SHAPE_BEV_BYTES + (size_t)position * SHAPE_CAMERA_CHANNELS;
    const uint8_t *layout = s.layouts + (size_t)blockIdx.y * DEVICE_FRAME_BYTES + byte;
    const uint8_t *past =
        slot->page_count > 0 ? s.arena + slot->page[0] * s.page_bytes + byte : NULL;
    size_t at =
        (((size_t)blockIdx.y * part.images + image) * (part.rows + 2) + row + 1) * (part.cols + 2) +
        col + 1;
    uint16_t *out = map + at * part.context_channels;
    put_bytes(past, SHAPE_CAMERA_CHANNELS, out);
    put_bytes(layout, SHAPE_CAMERA_CHANNELS, out + 12);
    out[24] = gpu_act_bf16(((float)row + 0.5f) / 16.0f - 1.0f);
    out[25] = gpu_act_bf16(((float)col + 0.5f) / 24.0f - 1.0f);
    out[26] = gpu_act_bf16(past != NULL ? 1.0f : 0.0f);
    for (uint32_t i = 27; i < 32; i++) {
        out[i] = 0;
    }
    float *to = base + ((size_t)blockIdx.y * SHAPE_CAMERAS * SHAPE_CAMERA_POSITIONS + position) *
                           SHAPE_CAMERA_CHANNELS;
    for (uint32_t i = 0; i < SHAPE_CAMERA_CHANNELS; i++) {
        to[i] = byte_value(slot->conditioning == 0 ? layout[i]
                           : past != NULL          ? past[i]
                                                   : (uint8_t)128);
    }
}

void context_fill(const struct context_slots *s, const struct shape_part *part, uint16_t *map,
                  float *base, void *stream)
{
    dim3 grid = grid_of(shape_positions(part), s->count);
    if (part->images == 1) {
        LAUNCH(k_context_bev, grid, dim3(THREADS), 0, (cudaStream_t)stream, *s, *part, map, base);
    } else {
        LAUNCH(k_context_camera, grid, dim3(THREADS), 0, (cudaStream_t)stream, *s, *part, map,
               base);
    }
}

/* ---- tokens ---- */

__global__ void __launch_bounds__(THREADS)
    k_spread(struct context_slots s, const float *values, uint32_t count, float *x)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && s.slots[blockIdx.y].active) {
        x[(size_t)blockIdx.y * count + i] = values[i];
    }
}

void context_spread(const struct context_slots *s, const float *values, uint32_t values_count,
                    float *x, void *stream)
{
    LAUNCH(k_spread, grid_of(values_count, s->count), dim3(THREADS), 0, (cudaStream_t)stream, *s,
           values, values_count, x);
}

/* ---- pages ---- */

/* Eight numbers of a head, which is `lanes` threads', to bytes of e4m3; returns their scale. A head
 * below NN_INT8_LEAST is zero with scale 0, one that is not finite zero with scale NaN. */
GPU_FN float head_to_e4m3(const uint4 &bf16, uint32_t lanes, uint2 *out)
{
    const uint32_t word[4] = {bf16.x, bf16.y, bf16.z, bf16.w};
    uint32_t largest = 0; /* bits of a magnitude, which order as numbers do */
    for (int i = 0; i < 4; i++) {
        largest = max(largest, max(word[i] << 16 & 0x7fffffffu, word[i] & 0x7fff0000u));
    }
    for (uint32_t by = lanes / 2; by > 0; by /= 2) {
        largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, (int)by));
    }
    const float size = __uint_as_float(largest);
    const bool finite = largest < 0x7f800000u;
    *out = make_uint2(0, 0);
    if (!finite || size < NN_INT8_LEAST) {
        return finite ? 0.0f : __uint_as_float(0x7fc00000u);
    }
    const float inverse = 448.0f / size;
    uint32_t pair[4];
    for (int i = 0; i < 4; i++) {
        pair[i] = gpu_e4m3_from_floats(__uint_as_float(word[i] << 16) * inverse,
                                       __uint_as_float(word[i] & 0xffff0000u) * inverse);
    }
    *out = make_uint2(pair[0] | pair[1] << 16, pair[2] | pair[3] << 16);
    return size / 448.0f;
}

/* Eight numbers per thread; a head is 4, 8 or 16 threads of a warp. */
__global__ void __launch_bounds__(THREADS)
    k_store_memory(struct context_slots s, struct context_memory m)
{
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (!slot->active) {
        return;
    }
    const uint32_t width = m.shape.kv_heads * m.shape.head_dim;
    const uint32_t eighths = width / 8;
    const uint32_t number = blockIdx.x * blockDim.x + threadIdx.x;
    const bool there = number < 2 * m.shape.layers * m.shape.tokens * eighths;
    const uint32_t i = there ? number : 0; /* a warp's threads go on together */
    const uint32_t layer = i / (2 * m.shape.tokens * eighths);
    const uint32_t which = i / (m.shape.tokens * eighths) % 2; /* 1: V */
    const uint32_t token = i / eighths % m.shape.tokens;
    const uint32_t col = i % eighths * 8;
    const size_t row =
        (((size_t)blockIdx.y * m.shape.tokens + token) * m.shape.layers + layer) * 2 + which;
    const uint4 from = *(const uint4 *)(m.kv + row * width + col);
    uint8_t *to = s.arena + slot->write_page * s.page_bytes + DEVICE_FRAME_BYTES +
                  layer * m.layout.layer_bytes;
    uint8_t *numbers = to + (which ? m.layout.v : m.layout.k) +
                       ((size_t)token * width + col) * m.shape.number_bytes;
    if (m.shape.number_bytes == 2) {
        if (there) {
            *(uint4 *)numbers = from;
        }
        return;
    }
    uint2 bytes;
    const float scale = head_to_e4m3(from, m.shape.head_dim / 8, &bytes);
    if (there) {
        *(uint2 *)numbers = bytes;
    }
    if (there && col % m.shape.head_dim == 0) {
        float *scales = (float *)(to + (which ? m.layout.v_scale : m.layout.k_scale));
        scales[token * m.shape.kv_heads + col / m.shape.head_dim] = scale;
    }
}

void context_store_memory(const struct context_slots *s, const struct context_memory *m,
                          void *stream)
{
    const struct page_shape *p = &m->shape;
    LAUNCH(k_store_memory,
           grid_of(2 * p->layers * p->tokens * (p->kv_heads * p->head_dim / 8), s->count),
           dim3(THREADS), 0, (cudaStream_t)stream, *s, *m);
}

__global__ void __launch_bounds__(THREADS) k_copy_frames(struct context_slots s, uint8_t *frames)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (i >= DEVICE_FRAME_BYTES / 16 || !slot->active || !slot->deliver) {
        return;
    }
    ((uint4 *)(frames + (size_t)blockIdx.y * DEVICE_FRAME_BYTES))[i] =
        ((const uint4 *)(s.arena + slot->write_page * s.page_bytes))[i];
}

static_assert((int)DEVICE_FRAME_BYTES % 16 == 0, "frames are copied in 16-byte pieces");

__global__ void __launch_bounds__(THREADS) k_draw(struct context_slots s)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (i >= DEVICE_FRAME_BYTES / 16 || !slot->active || slot->skipped < s.steps) {
        return;
    }
    ((uint4 *)(s.arena + slot->write_page * s.page_bytes))[i] =
        ((const uint4 *)(s.layouts + (size_t)blockIdx.y * DEVICE_FRAME_BYTES))[i];
}

void context_draw(const struct context_slots *s, void *stream)
{
    LAUNCH(k_draw, grid_of(DEVICE_FRAME_BYTES / 16, s->count), dim3(THREADS), 0,
           (cudaStream_t)stream, *s);
}

void context_copy_frames(const struct context_slots *s, uint8_t *frames, void *stream)
{
    LAUNCH(k_copy_frames, grid_of(DEVICE_FRAME_BYTES / 16, s->count), dim3(THREADS), 0,
           (cudaStream_t)stream, *s, frames);
}
