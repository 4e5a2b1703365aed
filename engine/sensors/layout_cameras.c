/*
 * Camera layouts, described for a device that draws them (kernels/draw_list_camera.h): what sky and
 * ground are drawn from, and the agents as commands. layout.c draws the same on the CPU.
 */
#include "engine/sensors/layout_internal.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_camera.h"
#include "kernels/draw_list.h"
#include "kernels/draw_list_camera.h"

#include <string.h>

_Static_assert(sizeof(struct draw_list_cameras) % sizeof(double) == 0 &&
                   sizeof(struct screen_command) % sizeof(double) == 0,
               "commands and points are aligned behind the head");

bool layout_describe_cameras(const struct prepared *prepared, const struct scene *scene,
                             enum conditioning conditioning, struct draw_list *draw_list)
{
    struct scene canonical;
    struct draw_list_cameras head;
    struct screen_command commands[SCREEN_COMMANDS];
    struct screen_point points[SCREEN_POINTS];
    struct screen screen = {
        .commands = commands,
        .points = points,
        .commands_max = SCREEN_COMMANDS,
        .points_max = SCREEN_POINTS,
    };
    if (conditioning == CONDITIONING_NONE) {
        return true;
    }
    memset(&head, 0, sizeof head);
    layout_canonical(scene, conditioning, &canonical);
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        if (!raster_camera_prepare(prepared->layers, prepared->scenario, &canonical,
                                   (enum camera_index)camera, &head.pictures[camera], &screen)) {
            return false;
        }
        head.commands[camera + 1] = screen.command_count;
    }
    head.command_count = screen.command_count;
    head.point_count = screen.point_count;
    uint32_t bytes = (uint32_t)draw_list_cameras_bytes(head.command_count, head.point_count);
    uint32_t whole = (bytes + DRAW_LIST_ALIGN - 1) / DRAW_LIST_ALIGN * DRAW_LIST_ALIGN;
    if (whole > DRAW_LIST_CAMERA_BYTES_MAX) {
        return false;
    }
    uint8_t *at = (uint8_t *)draw_list + draw_list->bytes;
    size_t command_bytes = head.command_count * sizeof commands[0];
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, commands, command_bytes);
    memcpy(at + sizeof head + command_bytes, points, head.point_count * sizeof points[0]);
    memset(at + bytes, 0, whole - bytes);
    draw_list->camera_at = draw_list->bytes;
    draw_list->camera_bytes = whole;
    draw_list->bytes += whole;
    return true;
}
