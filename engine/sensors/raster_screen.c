/*
 * Screen: the list of commands for a canvas (kernels/draw_list_camera.h), and what every projection
 * of faces onto it needs.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

#define NEAR_M 0.2

uint32_t screen_clip_near(const struct vec3 *in, uint32_t count, struct vec3 *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vec3 a = in[i];
        struct vec3 b = in[(i + 1) % count];
        if (a.z >= NEAR_M) {
            out[kept++] = a;
        }
        if ((a.z >= NEAR_M) != (b.z >= NEAR_M)) {
            double t = (NEAR_M - a.z) / (b.z - a.z);
            out[kept++] = (struct vec3){a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t, NEAR_M};
        }
    }
    return kept;
}

struct screen_rows screen_rows_between(double low, double high, struct screen_rows rows)
{
    return (struct screen_rows){(int32_t)dmath_clamp(low, rows.first, rows.end),
                                (int32_t)dmath_clamp(high + 1.0, rows.first, rows.end)};
}

struct screen_list screen_list_of(const struct screen *screen)
{
    return (struct screen_list){screen->commands, screen->points, screen->command_count};
}

bool screen_reaches(const struct screen_point *points, uint32_t count, int32_t cols,
                    struct screen_rows *rows)
{
    struct screen_point least = points[0];
    struct screen_point most = points[0];
    for (uint32_t i = 1; i < count; i++) {
        least.u = dmath_min(least.u, points[i].u);
        most.u = dmath_max(most.u, points[i].u);
        least.v = dmath_min(least.v, points[i].v);
        most.v = dmath_max(most.v, points[i].v);
    }
    *rows = screen_rows_between(least.v - 0.5, most.v, *rows);
    return rows->first < rows->end && least.u < cols && most.u > 0;
}

/* Makes room; false when there is none to be had. */
static bool make_room(struct screen *screen, uint32_t points)
{
    if (screen->command_count < screen->commands_max &&
        screen->point_count + points <= screen->points_max) {
        return true;
    }
    if (screen->canvas == NULL || screen->commands_max == 0 || screen->points_max < points) {
        screen->full = true;
        return false;
    }
    const struct screen_list list = screen_list_of(screen);
    canvas_draw(screen->canvas, &list);
    screen->command_count = 0;
    screen->point_count = 0;
    return true;
}

void screen_push(struct screen *screen, struct screen_command command, struct screen_rows rows,
                 const struct screen_point *points, uint32_t count)
{
    if (!make_room(screen, count)) {
        return;
    }
    command.points = (uint8_t)count;
    command.first_row = (uint16_t)rows.first;
    command.end_row = (uint16_t)rows.end;
    command.first_point = screen->point_count;
    screen->commands[screen->command_count++] = command;
    for (uint32_t i = 0; i < count; i++) {
        screen->points[screen->point_count++] = points[i];
    }
}
