/*
 * Faces: turns what solids are made of into commands on the screen (raster_screen.c): convex faces
 * are lit, clipped at the near plane and projected once per picture, however many bands or machines
 * draw them. Cameras that do not look level have raster_rays.c for the projection.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

#include <math.h>

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
    struct vec3 normal =
        vec3_cross(vec3_minus(points[1], points[0]), vec3_minus(points[2], points[0]));
    double offset = vec3_dot(normal, points[0]);
    if (!both_sides && offset >= 0) {
        return false;
    }
    if (fabs(offset) < 1e-12) {
        return false; /* edge on */
    }
    out->count = screen_clip_near(points, face->count, clipped);
    if (out->count < 3) {
        return false;
    }
    const struct screen_point middle = camera_view_middle(view);
    for (uint32_t i = 0; i < out->count; i++) {
        double u = clipped[i].x / clipped[i].z * view->focal + middle.u;
        double v = clipped[i].y / clipped[i].z * view->focal + middle.v;
        out->points[i] = (struct screen_point){u, v};
    }
    out->du = normal.x / view->focal / offset;
    out->dv = normal.y / view->focal / offset;
    out->inverse_depth = normal.z / offset - out->du * middle.u - out->dv * middle.v;
    out->rows = rows;
    return screen_reaches(out->points, out->count, view->cols * CAMERA_SCALE, &out->rows);
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
    struct vec3 from = vec3_minus(middle, picture->view.origin);
    double distance = sqrt(vec3_dot(from, from));
    if (face->glows) {
        return mood_fade(mood, face->colour, distance * 0.5);
    }
    struct vec3 n = vec3_cross(vec3_minus(face->points[1], face->points[0]),
                               vec3_minus(face->points[2], face->points[0]));
    double length = sqrt(vec3_dot(n, n));
    n = (struct vec3){n.x / length, n.y / length, n.z / length};
    struct vec3 sun = {
        mood->sun_direction.x * picture->ego_cos + mood->sun_direction.y * picture->ego_sin,
        -mood->sun_direction.x * picture->ego_sin + mood->sun_direction.y * picture->ego_cos,
        mood->sun_direction.z,
    };
    float towards = (float)dmath_max(vec3_dot(n, sun), 0.0);
    float sky = (float)(0.82 + 0.18 * n.z); /* faces that look up see more of the sky */
    struct rgb light = rgb_add(rgb_times(mood->ambient, sky), rgb_times(mood->sun, towards));
    double facing = dmath_max(-vec3_dot(n, from) / dmath_max(distance, 0.1), 0.0);
    double lamp = mood_headlight(mood, middle.x, middle.y) * (0.35 + 0.65 * facing);
    light = rgb_add(light, rgb_times((struct rgb){0.95f, 0.9f, 0.78f}, (float)lamp));
    return mood_fade(mood, rgb_scale(face->colour, light), distance);
}

void face_add_fill(const struct painter *painter, struct screen_rows rows, const struct face *face)
{
    struct screen_command command = {.kind = SCREEN_FILL};
    struct projected on_screen;
    if (painter->rays != NULL) {
        command.colour = light_face(painter, face);
        rays_add_face(painter, rows, face, &command);
        return;
    }
    if (!project(painter, rows, face, false, &on_screen)) {
        return;
    }
    command.colour = light_face(painter, face);
    command.inverse_depth = on_screen.inverse_depth;
    command.du = on_screen.du;
    command.dv = on_screen.dv;
    screen_push(painter->screen, command, on_screen.rows, on_screen.points, on_screen.count);
}

void face_add_shadow(const struct painter *painter, struct screen_rows rows,
                     const struct face *face, float strength)
{
    const struct screen_command command = {
        .kind = SCREEN_SHADOW,
        .colour = {1.0f - strength, 0.0f, 0.0f},
    };
    struct projected on_screen;
    if (painter->rays != NULL) {
        rays_add_face(painter, rows, face, &command);
        return;
    }
    if (!project(painter, rows, face, true, &on_screen)) {
        return;
    }
    screen_push(painter->screen, command, on_screen.rows, on_screen.points, on_screen.count);
}

void face_add_glow(const struct painter *painter, struct screen_rows rows, struct vec3 point,
                   double radius_m, struct rgb colour)
{
    if (painter->rays != NULL) {
        rays_add_glow(painter, rows, point, radius_m, colour);
        return;
    }
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
    rows = screen_rows_between(v - radius - 1.0, v + radius + 1.0, rows);
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
    screen_push(painter->screen, command, rows, &middle, 1);
}
