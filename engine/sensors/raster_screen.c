/*
 * Screen: turns what solids are made of into commands for a canvas (kernels/draw_list_camera.h):
 * convex faces are lit, clipped at the near plane and projected once per picture, however many
 * bands or machines draw them.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

#include <math.h>

#define NEAR_M 0.2

/* A face on the screen. */
struct projected {
    uint32_t count;
    struct screen_point points[SCREEN_POINTS_MAX];
    double inverse_depth, du, dv; /* 1/depth = inverse_depth + u * du + v * dv */
    struct screen_rows rows;
};

struct vec3 camera_transform(const struct camera_view *view, struct vec3 point)
{
    double dx = point.x - view->origin.x;
    double dy = point.y - view->origin.y;
    return (struct vec3){
        .x = dx * view->sin_yaw - dy * view->cos_yaw,
        .y = view->origin.z - point.z,
        .z = dx * view->cos_yaw + dy * view->sin_yaw,
    };
}

static struct vec3 cross(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static struct vec3 minus(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static double dot(struct vec3 a, struct vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static uint32_t clip_near(const struct vec3 *in, uint32_t count, struct vec3 *out)
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

/* The rows between two heights on the canvas, a row more on either side, among `rows`. */
static struct screen_rows rows_between(double low, double high, struct screen_rows rows)
{
    return (struct screen_rows){(int32_t)dmath_clamp(low, rows.first, rows.end),
                                (int32_t)dmath_clamp(high + 1.0, rows.first, rows.end)};
}

/* False when the face looks away, lies behind the camera, beside the canvas or outside the rows. */
static bool project(const struct painter *painter, struct screen_rows rows, const struct face *face,
                    bool both_sides, struct projected *out)
{
    const struct camera_view *view = &painter->picture.view;
    struct vec3 points[FACE_POINTS_MAX];
    struct vec3 clipped[SCREEN_POINTS_MAX];
    for (uint32_t i = 0; i < face->count; i++) {
        points[i] = camera_transform(view, face->points[i]);
    }
    struct vec3 normal = cross(minus(points[1], points[0]), minus(points[2], points[0]));
    double offset = dot(normal, points[0]);
    if (!both_sides && offset >= 0) {
        return false;
    }
    if (fabs(offset) < 1e-12) {
        return false; /* edge on */
    }
    out->count = clip_near(points, face->count, clipped);
    if (out->count < 3) {
        return false;
    }
    const struct screen_point middle = camera_view_middle(view);
    double left = INFINITY;
    double right = -INFINITY;
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t i = 0; i < out->count; i++) {
        double u = clipped[i].x / clipped[i].z * view->focal + middle.u;
        double v = clipped[i].y / clipped[i].z * view->focal + middle.v;
        out->points[i] = (struct screen_point){u, v};
        left = dmath_min(left, u);
        right = dmath_max(right, u);
        low = dmath_min(low, v);
        high = dmath_max(high, v);
    }
    out->du = normal.x / view->focal / offset;
    out->dv = normal.y / view->focal / offset;
    out->inverse_depth = normal.z / offset - out->du * middle.u - out->dv * middle.v;
    out->rows = rows_between(low - 0.5, high, rows);
    return out->rows.first < out->rows.end && left < view->cols * CAMERA_SCALE && right > 0;
}

/* Colour of a face under the mood, faded at its mean distance. */
static struct rgb light_face(const struct painter *painter, const struct face *face)
{
    const struct picture *picture = &painter->picture;
    const struct mood *mood = &picture->mood;
    struct vec3 middle = {0, 0, 0};
    for (uint32_t i = 0; i < face->count; i++) {
        middle.x += face->points[i].x / face->count;
        middle.y += face->points[i].y / face->count;
        middle.z += face->points[i].z / face->count;
    }
    struct vec3 from = minus(middle, picture->view.origin);
    double distance = sqrt(dot(from, from));
    if (face->glows) {
        return mood_fade(mood, face->colour, distance * 0.5);
    }
    struct vec3 n =
        cross(minus(face->points[1], face->points[0]), minus(face->points[2], face->points[0]));
    double length = sqrt(dot(n, n));
    n = (struct vec3){n.x / length, n.y / length, n.z / length};
    struct vec3 sun = {
        mood->sun_direction.x * picture->ego_cos + mood->sun_direction.y * picture->ego_sin,
        -mood->sun_direction.x * picture->ego_sin + mood->sun_direction.y * picture->ego_cos,
        mood->sun_direction.z,
    };
    float towards = (float)dmath_max(dot(n, sun), 0.0);
    float sky = (float)(0.82 + 0.18 * n.z); /* faces that look up see more of the sky */
    struct rgb light = rgb_add(rgb_times(mood->ambient, sky), rgb_times(mood->sun, towards));
    double facing = dmath_max(-dot(n, from) / dmath_max(distance, 0.1), 0.0);
    double lamp = mood_headlight(mood, middle.x, middle.y) * (0.35 + 0.65 * facing);
    light = rgb_add(light, rgb_times((struct rgb){0.95f, 0.9f, 0.78f}, (float)lamp));
    return mood_fade(mood, rgb_scale(face->colour, light), distance);
}

/* ---- the list ---- */

struct screen_list screen_list_of(const struct screen *screen)
{
    return (struct screen_list){screen->commands, screen->points, screen->command_count};
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

static void push(struct screen *screen, struct screen_command command, struct screen_rows rows,
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

void screen_add_fill(const struct painter *painter, struct screen_rows rows,
                     const struct face *face)
{
    struct projected on_screen;
    if (!project(painter, rows, face, false, &on_screen)) {
        return;
    }
    const struct screen_command command = {
        .kind = SCREEN_FILL,
        .colour = light_face(painter, face),
        .inverse_depth = on_screen.inverse_depth,
        .du = on_screen.du,
        .dv = on_screen.dv,
    };
    push(painter->screen, command, on_screen.rows, on_screen.points, on_screen.count);
}

void screen_add_shadow(const struct painter *painter, struct screen_rows rows,
                       const struct face *face, float strength)
{
    struct projected on_screen;
    if (!project(painter, rows, face, true, &on_screen)) {
        return;
    }
    const struct screen_command command = {
        .kind = SCREEN_SHADOW,
        .colour = {1.0f - strength, 0.0f, 0.0f},
    };
    push(painter->screen, command, on_screen.rows, on_screen.points, on_screen.count);
}

void screen_add_glow(const struct painter *painter, struct screen_rows rows, struct vec3 point,
                     double radius_m, struct rgb colour)
{
    const struct camera_view *view = &painter->picture.view;
    const struct screen_point centre = camera_view_middle(view);
    struct vec3 p = camera_transform(view, point);
    if (p.z < 0.5) {
        return;
    }
    int32_t cols = view->cols * CAMERA_SCALE;
    double u = p.x / p.z * view->focal + centre.u;
    double v = p.y / p.z * view->focal + centre.v;
    double radius = radius_m / p.z * view->focal + 1.5;
    if (!(u + radius > 0 && u - radius < cols && radius < cols)) {
        return;
    }
    rows = rows_between(v - radius - 1.0, v + radius + 1.0, rows);
    if (rows.first >= rows.end) {
        return;
    }
    const struct screen_point middle = {u, v};
    const struct screen_command command = {
        .kind = SCREEN_GLOW,
        .colour =
            rgb_times(colour, (float)dmath_exp(-painter->picture.mood.haze_per_m * p.z * 0.5)),
        /* A metre of slack, so that the lamp's own vehicle does not swallow its glow. */
        .inverse_depth = 1.0 / dmath_max(p.z - 1.0, 0.2),
        .du = radius,
    };
    push(painter->screen, command, rows, &middle, 1);
}
