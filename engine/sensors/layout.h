/*
 * Layout: the world-anchored window of a learned world, and what is given to the model in it (see
 * engine/model.md for every definition). Used by the learned worlds and by the data generator, so
 * that training and driving see the same numbers.
 */
#ifndef SWERVE_ENGINE_SENSORS_LAYOUT_H
#define SWERVE_ENGINE_SENSORS_LAYOUT_H

#include "engine/sensors/conditioning.h"
#include "engine/sensors/prepared.h"
#include "schemas/observation.h"
#include "schemas/scene.h"

#include <stdint.h>

enum {
    WINDOW_PATCHES = 12, /* per side */
    WINDOW_PATCH = 8,    /* positions per side of a patch */
    WINDOW_SIDE = 96,    /* positions per side */
    WINDOW_POSITIONS = WINDOW_SIDE * WINDOW_SIDE,
    FRAME_BEV_CHANNELS = 22,
    FRAME_BEV_BYTES = WINDOW_POSITIONS * FRAME_BEV_CHANNELS,
    FRAME_CAMERA_ROWS = 32,
    FRAME_CAMERA_COLS = 48,
    FRAME_CAMERA_POSITIONS = FRAME_CAMERA_ROWS * FRAME_CAMERA_COLS, /* of one camera */
    FRAME_CAMERA_CHANNELS = 12,
    FRAME_CAMERA_BYTES = CAMERA_COUNT * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS,
    FRAME_BYTES = FRAME_BEV_BYTES + FRAME_CAMERA_BYTES,
    COND_COUNT = 64,
};

enum frame_channel {
    FRAME_OCCUPANCY = 0,
    FRAME_VRU = 4,
    FRAME_UNSEEN = 8,
    FRAME_DRIVABLE = 12,
    FRAME_MARKING = 16,
    FRAME_VELOCITY = 20,
};

struct anchor {
    struct pose pose;
    double cos_heading;
    double sin_heading;
};

struct window {
    int32_t i; /* patches along u */
    int32_t j; /* along v */
};

struct anchor anchor_make(struct pose pose);
/* A world pose in the anchor's frame; heading wrapped to (-pi, pi]. */
struct pose anchor_local(const struct anchor *anchor, struct pose pose);
/* `ego` in the anchor's frame. */
struct window window_of(struct pose ego);

/* The noise-free BEV of the scene: bev[FRAME_BEV_BYTES], all 22 channels, lidar at ego. */
void layout_bev(const struct prepared *prepared, const struct scene *scene,
                const struct anchor *anchor, struct window window, enum conditioning conditioning,
                uint8_t *bev);

/* Draw list from which a device draws the same, its cameras left out: the list has room of
 * DRAW_LIST_BYTES_MAX, and names the prepared scenario's map `map`. False: there is more than fits;
 * then it describes no agents, and cameras may still be added to it. */
struct draw_list; /* kernels/draw_list.h */
bool layout_describe(const struct prepared *prepared, const struct scene *scene,
                     const struct anchor *anchor, struct window window,
                     enum conditioning conditioning, uint32_t map, struct draw_list *draw_list);

/* Camera layouts: cameras[FRAME_CAMERA_BYTES]. */
void layout_cameras(const struct prepared *prepared, const struct scene *scene,
                    enum conditioning conditioning, uint8_t *cameras);

/* Adds what a device draws the camera layouts from to a draw list that has nothing for them yet.
 * False: there is more than fits, and the draw list is as it was. */
bool layout_describe_cameras(const struct prepared *prepared, const struct scene *scene,
                             enum conditioning conditioning, struct draw_list *draw_list);

/* The conditions vector, conditioning included; before: ego one tick earlier (the same at tick 0).
 */
void layout_conditions(const struct prepared *prepared, const struct scene *scene,
                       const struct ego_state *before, const struct anchor *anchor,
                       struct window window, enum conditioning conditioning,
                       float cond[COND_COUNT]);

/* Recording by the sensors of the scene: the layout plus range noise, dropout, reflectivity,
 * weather returns (BEV) and the object world's cameras with weather, light and sensor noise. The
 * training target; depends on (scene, seed, tick) alone. Both outputs may be NULL. */
void layout_sensed(const struct prepared *prepared, const struct scene *scene, uint64_t seed,
                   const struct anchor *anchor, struct window window, uint8_t *bev,
                   uint8_t *cameras);

/* 64 x 96 RGB image <-> [32][48][12] of one camera. */
void layout_camera_pack(const uint8_t *image, uint8_t *packed);
void layout_camera_unpack(const uint8_t *packed, uint8_t *image);

/* From a committed frame in its window to the observation around ego: occupancy and unseen
 * resampled bilinearly, drivable and marking from the map (agents, map) or from the frame (none).
 * out[BEV_BYTES]. Outside the window: unseen. */
void layout_observe_bev(const struct prepared *prepared, const struct scene *scene,
                        const struct anchor *anchor, struct window window,
                        enum conditioning conditioning, const uint8_t *frame_bev, uint8_t *out);

struct raster_window; /* kernels/raster.h */

/* Of it, what is not in the frame: drivable area and markings [2][BEV_CELLS] from the map; or where
 * the map is sampled for it. */
void layout_observe_map(const struct prepared *prepared, const struct scene *scene, uint8_t *out);
void layout_observe_window(const struct prepared *prepared, const struct scene *scene,
                           struct raster_window *window);

/* Of it, where the frame is looked at: row and column of the observation's first cell in the
 * window's cells, a border of two of them included, and steps along the observation's rows and
 * columns; in 2^-16 cells between cell centres. kernels/device.h has the same numbers. */
struct layout_walk {
    int64_t row, col;
    int64_t row_per_row, col_per_row;
    int64_t row_per_col, col_per_col;
};
struct layout_walk layout_walk(const struct scene *scene, const struct anchor *anchor,
                               struct window window);

#endif
