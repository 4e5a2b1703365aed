/*
 * Camera layouts, described for a device that draws them (kernels/drawing_camera.h): what sky and
 * ground are drawn from, and the agents as commands. layout.c draws the same on the CPU.
 */
#include "engine/layout_internal.h"
#include "engine/raster_camera.h"
#include "engine/stage_internal.h"
#include "kernels/drawing_camera.h"

#include <string.h>

enum { DESCRIBED_ALIGN = 16 };

_Static_assert(sizeof(struct drawing_cameras) % sizeof(double) == 0 &&
                   sizeof(struct screen_command) % sizeof(double) == 0,
               "commands and points are aligned behind the head");

bool layout_describe_cameras(const struct stage *stage, const struct scene *scene,
                             enum layout_degree degree, size_t bytes_max,
                             struct drawing_cameras *out, size_t *bytes)
{
    struct scene canonical;
    struct screen_command commands[SCREEN_COMMANDS];
    struct screen_point points[SCREEN_POINTS];
    struct screen screen = {
        .commands = commands,
        .points = points,
        .commands_max = SCREEN_COMMANDS,
        .points_max = SCREEN_POINTS,
        .rows = {0, CANVAS_ROWS},
    };
    struct drawing_cameras head;
    memset(&head, 0, sizeof head);
    layout_canonical(scene, degree, &canonical);
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (!raster_camera_prepare(stage->layers, stage->scenario, &canonical,
                                   (enum camera_index)camera, &head.pictures[camera], &screen)) {
            return false;
        }
        head.commands[camera + 1] = screen.command_count;
    }
    head.command_count = screen.command_count;
    head.point_count = screen.point_count;
    size_t used = drawing_cameras_bytes(head.command_count, head.point_count);
    size_t rounded = (used + DESCRIBED_ALIGN - 1) / DESCRIBED_ALIGN * DESCRIBED_ALIGN;
    if (rounded > bytes_max) {
        return false;
    }
    uint8_t *at = (uint8_t *)out;
    size_t command_bytes = head.command_count * sizeof commands[0];
    size_t point_bytes = head.point_count * sizeof points[0];
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, commands, command_bytes);
    memcpy(at + sizeof head + command_bytes, points, point_bytes);
    memset(at + used, 0, rounded - used);
    *bytes = rounded;
    return true;
}
