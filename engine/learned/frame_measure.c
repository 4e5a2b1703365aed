/*
 * Frame statistics: loops over two frames and a layout, and what their sums say; see
 * frame_measure.h.
 */
#include "engine/learned/frame_measure.h"

#include "kernels/agent_sums.h"

#include <math.h>
#include <stdlib.h>

/* ---- sums ---- */

static const uint8_t *position_at(const uint8_t *frame, int32_t row, int32_t col)
{
    return frame + ((size_t)row * WINDOW_SIDE + (size_t)col) * FRAME_BEV_CHANNELS;
}

static int64_t channel_sum(const uint8_t *frame, int channel)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < WINDOW_POSITIONS; i++) {
        const uint8_t *position = frame + (size_t)i * FRAME_BEV_CHANNELS + channel;
        sum += (int32_t)position[0] + position[1] + position[2] + position[3];
    }
    return sum;
}

/* Both frames in the world's cells: only where both windows reach. */
static void sum_bev_change(const struct frame_measure_input *input, struct frame_sums *sums)
{
    int32_t down = (input->window.i - input->before_window.i) * WINDOW_PATCH;
    int32_t right = (input->window.j - input->before_window.j) * WINDOW_PATCH;
    int64_t sum = 0;
    int64_t count = 0;
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
                sum += abs((int)now[s] - then[FRAME_OCCUPANCY + s]);
            }
            count += 4;
        }
    }
    sums->bev_change = sum;
    sums->bev_compared = count;
}

static void sum_overlap(const uint8_t *frame, const uint8_t *layout, struct frame_sums *sums)
{
    int64_t both = 0;
    int64_t either = 0;
    for (int32_t i = 0; i < WINDOW_POSITIONS; i++) {
        const uint8_t *a = frame + (size_t)i * FRAME_BEV_CHANNELS + FRAME_OCCUPANCY;
        const uint8_t *b = layout + (size_t)i * FRAME_BEV_CHANNELS + FRAME_OCCUPANCY;
        for (int s = 0; s < 4; s++) {
            both += a[s] < b[s] ? a[s] : b[s];
            either += a[s] < b[s] ? b[s] : a[s];
        }
    }
    sums->both = both;
    sums->either = either;
}

static bool any_return(const uint8_t *position)
{
    return (position[0] | position[1] | position[2] | position[3] | position[4] | position[5] |
            position[6] | position[7]) != 0;
}

/* Entry where the layout has nothing near; most positions are empty. */
static void sum_surplus(const uint8_t *frame, const uint8_t *layout, struct frame_sums *sums)
{
    for (int32_t i = 0; i < WINDOW_POSITIONS; i++) {
        if (!any_return(frame + (size_t)i * FRAME_BEV_CHANNELS)) {
            continue;
        }
        for (int s = 0; s < 4; s++) {
            int32_t row = 2 * (i / WINDOW_SIDE) + (s >> 1);
            int32_t col = 2 * (i % WINDOW_SIDE) + (s & 1);
            sums->surplus += agent_surplus(frame, layout, row, col, false);
            sums->surplus_vru += agent_surplus(frame, layout, row, col, true);
        }
    }
}

static int64_t camera_change(const uint8_t *now, const uint8_t *then)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < FRAME_CAMERA_BYTES; i++) {
        sum += abs((int)now[i] - then[i]);
    }
    return sum;
}

static void sum_products(const uint8_t *a, const uint8_t *b, struct frame_sums *sums)
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
    sums->x = (int64_t)sa;
    sums->y = (int64_t)sb;
    sums->xx = (int64_t)saa;
    sums->yy = (int64_t)sbb;
    sums->xy = (int64_t)sab;
}

/* The same of what differs between left and right alone, each picture minus its mirror image: a
 * bright sky over dark ground is alike in both, and hides a mirrored camera. */
static void sum_side_products(const uint8_t *a, const uint8_t *b, struct frame_sums *sums)
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
    sums->side_xx = saa;
    sums->side_yy = sbb;
    sums->side_xy = sab;
}

void frame_measure_sum(const struct frame_measure_input *input, struct frame_sums *sums)
{
    const uint8_t *cameras = input->frame + FRAME_BEV_BYTES;
    *sums = (struct frame_sums){
        .occupancy = channel_sum(input->frame, FRAME_OCCUPANCY),
        .vru = channel_sum(input->frame, FRAME_VRU),
    };
    if (input->before != NULL) {
        sum_bev_change(input, sums);
        sums->camera_change = camera_change(cameras, input->before + FRAME_BEV_BYTES);
    }
    if (input->layout != NULL && input->conditioning == CONDITIONING_AGENTS) {
        sums->layout = channel_sum(input->layout, FRAME_OCCUPANCY);
        sum_overlap(input->frame, input->layout, sums);
        sum_surplus(input->frame, input->layout, sums);
    }
    if (input->layout != NULL && input->conditioning != CONDITIONING_NONE) {
        sum_products(cameras, input->layout + FRAME_BEV_BYTES, sums);
        sum_side_products(cameras, input->layout + FRAME_BEV_BYTES, sums);
    }
}

/* ---- what they say ---- */

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

/* The worse of the two. */
static double camera_correlation(const struct frame_sums *sums)
{
    double whole = pearson(FRAME_CAMERA_BYTES, (double)sums->x, (double)sums->y, (double)sums->xx,
                           (double)sums->yy, (double)sums->xy);
    double sides =
        pearson(1.0, 0.0, 0.0, (double)sums->side_xx, (double)sums->side_yy, (double)sums->side_xy);
    return isnan(sides) || whole < sides ? whole : sides;
}

/* A sum of bytes that stand for 0..1. */
static double cells(int64_t sum)
{
    return (double)sum / 255.0;
}

void frame_measure_conclude(const struct frame_sums *sums, enum conditioning given,
                            struct frame_stats *frame_stats)
{
    bool agents = given == CONDITIONING_AGENTS;
    bool cameras = given != CONDITIONING_NONE;
    double iou = sums->either > 0 ? (double)sums->both / (double)sums->either : 1.0;
    frame_stats->occupancy_cells = cells(sums->occupancy);
    frame_stats->vru_cells = cells(sums->vru);
    frame_stats->bev_change = sums->bev_compared > 0
                                  ? (double)sums->bev_change / (255.0 * (double)sums->bev_compared)
                                  : 0.0;
    frame_stats->camera_change = (double)sums->camera_change / (255.0 * FRAME_CAMERA_BYTES);
    frame_stats->layout_cells = agents ? cells(sums->layout) : (double)NAN;
    frame_stats->layout_iou = agents ? iou : (double)NAN;
    frame_stats->surplus_cells = agents ? cells(sums->surplus) : (double)NAN;
    frame_stats->surplus_vru_cells = agents ? cells(sums->surplus_vru) : (double)NAN;
    frame_stats->camera_layout_corr = cameras ? camera_correlation(sums) : (double)NAN;
}

void frame_measure(const struct frame_measure_input *input, struct frame_stats *frame_stats)
{
    struct frame_sums sums;
    frame_measure_sum(input, &sums);
    frame_measure_conclude(&sums, input->layout != NULL ? input->conditioning : CONDITIONING_NONE,
                           frame_stats);
}
