/*
 * Frames of foreign worlds in both forms. To the EGO form a raster is resampled as the observation
 * of a shipped model is; back from it, for health's measures, cells are taken as they are nearest.
 */
#include "base/dmath.h"
#include "engine/worlds/foreign_internal.h"

#include <math.h>
#include <string.h>

#define CELL_M 0.5
#define PATCH_M 8.0
#define NO_VELOCITY 128

uint32_t foreign_bev_bytes(enum swerve_world_form form)
{
    return form == SWERVE_WORLD_FORM_EGO ? (uint32_t)BEV_BYTES : (uint32_t)FRAME_BEV_BYTES;
}

uint32_t foreign_cameras_bytes(enum swerve_world_form form)
{
    return form == SWERVE_WORLD_FORM_EGO ? (uint32_t)(CAMERA_COUNT * CAMERA_BYTES)
                                         : (uint32_t)FRAME_CAMERA_BYTES;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

struct foreign_layout foreign_layout_of(enum swerve_world_form form)
{
    struct foreign_layout layout = {
        .bev_bytes = foreign_bev_bytes(form),
        .cameras_bytes = foreign_cameras_bytes(form),
    };
    size_t both = aligned((size_t)layout.bev_bytes + layout.cameras_bytes);
    layout.frame = layout.raster + both;
    layout.guard = layout.frame + both;
    layout.agents = layout.guard + FOREIGN_GUARD_BYTES;
    layout.agents_guard =
        layout.agents + aligned(SWERVE_WORLD_AGENTS * sizeof(struct swerve_world_agent));
    layout.stride = layout.agents_guard + FOREIGN_GUARD_BYTES;
    return layout;
}

void foreign_to_ego(const struct foreign_slot *slot, enum conditioning conditioning,
                    struct window window, const uint8_t *frame, uint8_t *out)
{
    layout_observe_bev(slot->drive.prepared, &slot->drive.scene, &slot->anchor, window,
                       conditioning, frame, out);
    for (int i = 0; i < CAMERA_COUNT; i++) {
        layout_camera_unpack(frame + FRAME_BEV_BYTES +
                                 (size_t)i * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS,
                             out + BEV_BYTES + (size_t)i * CAMERA_BYTES);
    }
}

/* One cell of the window, from the grid around ego. */
static void take_cell(const uint8_t *bev, double x_m, double y_m, int sub, uint8_t *position)
{
    static const int to[BEV_CHANNELS] = {FRAME_OCCUPANCY, FRAME_UNSEEN, FRAME_DRIVABLE,
                                         FRAME_MARKING};
    double row = floor((x_m - BEV_X_MIN_M) / BEV_CELL_M);
    double col = floor((y_m - BEV_Y_MIN_M) / BEV_CELL_M);
    bool inside = row >= 0.0 && row < BEV_ROWS && col >= 0.0 && col < BEV_COLS;
    size_t cell = inside ? (size_t)row * BEV_COLS + (size_t)col : 0;
    for (int channel = 0; channel < BEV_CHANNELS; channel++) {
        uint8_t outside = channel == BEV_UNSEEN ? 255 : 0;
        position[to[channel] + sub] = inside ? bev[(size_t)channel * BEV_CELLS + cell] : outside;
    }
}

void foreign_from_ego(const struct foreign_slot *slot, struct window window, const uint8_t *shown,
                      uint8_t *frame)
{
    struct pose ego = anchor_local(&slot->anchor, slot->drive.scene.ego.pose);
    double s, c;
    dmath_sincos(ego.heading_rad, &s, &c);
    memset(frame, 0, FRAME_BEV_BYTES);
    for (int row = 0; row < 2 * WINDOW_SIDE; row++) {
        double du = window.i * PATCH_M + (row + 0.5) * CELL_M - ego.x_m;
        for (int col = 0; col < 2 * WINDOW_SIDE; col++) {
            double dv = window.j * PATCH_M + (col + 0.5) * CELL_M - ego.y_m;
            size_t place = (size_t)(row / 2) * WINDOW_SIDE + (size_t)(col / 2);
            uint8_t *position = frame + place * FRAME_BEV_CHANNELS;
            take_cell(shown, c * du + s * dv, c * dv - s * du, 2 * (row & 1) + (col & 1), position);
            position[FRAME_VELOCITY] = position[FRAME_VELOCITY + 1] = NO_VELOCITY;
        }
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        layout_camera_pack(shown + BEV_BYTES + (size_t)i * CAMERA_BYTES,
                           frame + FRAME_BEV_BYTES +
                               (size_t)i * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS);
    }
}
