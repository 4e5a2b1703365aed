/*
 * Signs: loops over two frames; see signs.h.
 */
#include "engine/signs.h"

#include <math.h>
#include <stdlib.h>

static const uint8_t *position_at(const uint8_t *frame, int32_t row, int32_t col)
{
    return frame + ((size_t)row * WINDOW_SIDE + (size_t)col) * FRAME_BEV_CHANNELS;
}

static double cells(const uint8_t *frame, int channel)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < WINDOW_POSITIONS; i++) {
        const uint8_t *position = frame + (size_t)i * FRAME_BEV_CHANNELS + channel;
        sum += (uint32_t)position[0] + position[1] + position[2] + position[3];
    }
    return (double)sum / 255.0;
}

/* Both frames in the world's cells: only where both windows reach. */
static double bev_change(const struct signs_input *input)
{
    int32_t down = (input->window.i - input->before_window.i) * WINDOW_PATCH;
    int32_t right = (input->window.j - input->before_window.j) * WINDOW_PATCH;
    uint64_t sum = 0;
    uint64_t count = 0;
    for (int32_t row = 0; row < WINDOW_SIDE; row++) {
        if (row + down < 0 || row + down >= WINDOW_SIDE) {
            continue;
        }
        int32_t first = right < 0 ? -right : 0;
        int32_t end = right > 0 ? WINDOW_SIDE - right : WINDOW_SIDE;
        for (int32_t col = first; col < end; col++) {
            const uint8_t *now = position_at(input->frame, row, col) + FRAME_OCCUPANCY;
            const uint8_t *then = position_at(input->before, row + down, col + right);
            for (int s = 0; s < 4; s++) {
                sum += (uint64_t)abs((int)now[s] - then[FRAME_OCCUPANCY + s]);
            }
            count += 4;
        }
    }
    return count > 0 ? (double)sum / (255.0 * (double)count) : 0.0;
}

static double camera_change(const uint8_t *now, const uint8_t *then)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < FRAME_CAMERA_BYTES; i++) {
        sum += (uint64_t)abs((int)now[i] - then[i]);
    }
    return (double)sum / (255.0 * FRAME_CAMERA_BYTES);
}

static double overlap(const uint8_t *frame, const uint8_t *layout)
{
    uint64_t both = 0;
    uint64_t either = 0;
    for (int32_t i = 0; i < WINDOW_POSITIONS; i++) {
        const uint8_t *a = frame + (size_t)i * FRAME_BEV_CHANNELS + FRAME_OCCUPANCY;
        const uint8_t *b = layout + (size_t)i * FRAME_BEV_CHANNELS + FRAME_OCCUPANCY;
        for (int s = 0; s < 4; s++) {
            both += a[s] < b[s] ? a[s] : b[s];
            either += a[s] < b[s] ? b[s] : a[s];
        }
    }
    return either > 0 ? (double)both / (double)either : 1.0;
}

/* Pearson's correlation from sums over n values; NAN when the layout is uniform, -1 when only the
 * cameras are: they show nothing of what there is. */
static double pearson(double n, double sa, double sb, double saa, double sbb, double sab)
{
    double va = saa - sa * sa / n;
    double vb = sbb - sb * sb / n;
    if (!(vb > 0.0)) {
        return (double)NAN;
    }
    return va > 0.0 ? (sab - sa * sb / n) / sqrt(va * vb) : -1.0;
}

static double correlation(const uint8_t *a, const uint8_t *b)
{
    uint64_t sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (int32_t i = 0; i < FRAME_CAMERA_BYTES; i++) {
        uint32_t x = a[i];
        uint32_t y = b[i];
        sa += x;
        sb += y;
        saa += x * x;
        sbb += y * y;
        sab += x * y;
    }
    return pearson(FRAME_CAMERA_BYTES, (double)sa, (double)sb, (double)saa, (double)sbb,
                   (double)sab);
}

/* The same of what differs between left and right alone, each picture minus its mirror image: a
 * bright sky over dark ground is alike in both, and hides a mirrored camera. */
static double side_correlation(const uint8_t *a, const uint8_t *b)
{
    int64_t saa = 0, sbb = 0, sab = 0;
    for (int32_t row = 0; row < CAMERA_COUNT * FRAME_CAMERA_ROWS; row++) {
        for (int32_t col = 0; col < FRAME_CAMERA_COLS; col++) {
            int32_t here = (row * FRAME_CAMERA_COLS + col) * FRAME_CAMERA_CHANNELS;
            int32_t there =
                (row * FRAME_CAMERA_COLS + FRAME_CAMERA_COLS - 1 - col) * FRAME_CAMERA_CHANNELS;
            for (int32_t c = 0; c < FRAME_CAMERA_CHANNELS; c++) {
                /* channel 3 s + rgb; the sub-pixel beside s is s ^ 1 */
                int32_t beside = (c / 3 ^ 1) * 3 + c % 3;
                int32_t x = (int32_t)a[here + c] - a[there + beside];
                int32_t y = (int32_t)b[here + c] - b[there + beside];
                saa += x * x;
                sbb += y * y;
                sab += x * y;
            }
        }
    }
    return pearson(1.0, 0.0, 0.0, (double)saa, (double)sbb, (double)sab);
}

/* The worse of the two. */
static double camera_correlation(const uint8_t *cameras, const uint8_t *layout)
{
    double whole = correlation(cameras, layout);
    double sides = side_correlation(cameras, layout);
    return isnan(sides) || whole < sides ? whole : sides;
}

void signs_measure(const struct signs_input *input, struct world_signs *signs)
{
    const uint8_t *cameras = input->frame + FRAME_BEV_BYTES;
    bool given_agents = input->layout != NULL && input->degree == LAYOUT_AGENTS;
    bool given_cameras = input->layout != NULL && input->degree != LAYOUT_NONE;
    signs->occupancy_cells = cells(input->frame, FRAME_OCCUPANCY);
    signs->vru_cells = cells(input->frame, FRAME_VRU);
    signs->bev_change = input->before != NULL ? bev_change(input) : 0.0;
    signs->camera_change =
        input->before != NULL ? camera_change(cameras, input->before + FRAME_BEV_BYTES) : 0.0;
    signs->layout_cells = given_agents ? cells(input->layout, FRAME_OCCUPANCY) : (double)NAN;
    signs->layout_iou = given_agents ? overlap(input->frame, input->layout) : (double)NAN;
    signs->camera_layout_corr =
        given_cameras ? camera_correlation(cameras, input->layout + FRAME_BEV_BYTES) : (double)NAN;
}
