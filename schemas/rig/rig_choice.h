/*
 * Choice: which sensors of a rig a planner looks through, and how their pictures are packed. It is
 * the text of a planner's welcome in version 4 of the protocol (schemas/planner.md):
 *
 *   {"sensors": ["front", {"id": "left", "encoding": "jpeg:90"}, "bev"], "rig": {..}}
 *
 * "rig" is the planner's own, in place of the one that it was offered.
 */
#ifndef SWERVE_SCHEMAS_RIG_CHOICE_H
#define SWERVE_SCHEMAS_RIG_CHOICE_H

#include "schemas/rig/rig.h"

enum rig_sensor_kind { RIG_CAMERA = 0, RIG_LIDAR, RIG_GRID };

struct rig_chosen {
    enum rig_sensor_kind kind;
    uint32_t index;        /* of a camera or a lidar in the rig */
    uint32_t jpeg_quality; /* 1 to 100; 0: plain bytes */
};

struct rig_choice {
    uint32_t count;
    struct rig_chosen sensors[RIG_SENSORS_MAX];
};

/* `rig`: in, what was offered; out, what the sensors are of. Both are written on success only.
 * `source` is for messages. Refuses ids that the rig does not have, and one twice. */
enum status rig_choice_decode(const char *source, const char *text, size_t bytes, struct rig *rig,
                              struct rig_choice *out, struct error *error);

const char *rig_chosen_id(const struct rig *rig, const struct rig_chosen *chosen);

/* Columns and rows of a picture; of the grid its cells; of a lidar azimuths and elevations. */
void rig_chosen_size(const struct rig *rig, const struct rig_chosen *chosen, uint32_t *width,
                     uint32_t *height);

/* Frames that it takes in a tick: of a lidar a turn is one. */
uint32_t rig_chosen_frames(const struct rig *rig, const struct rig_chosen *chosen);

/* Greatest number of bytes of one frame, and of all of a tick. */
size_t rig_chosen_bytes(const struct rig *rig, const struct rig_chosen *chosen);
size_t rig_chosen_tick_bytes(const struct rig *rig, const struct rig_chosen *chosen);

#endif
