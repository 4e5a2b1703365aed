/*
 * Canvas: projects convex faces into a camera and fills them row by row against a depth buffer.
 * 1/depth is linear on the screen for a plane, so the depth test needs no division per pixel.
 * Image pixels are taken over from the backdrop when a face first reaches them.
 */
#include "base/dmath.h"
#include "engine/raster_camera.h"

#include <math.h>

#define NEAR_M 0.2

/* A face on the screen: clipped at the near plane, in canvas pixels. */
struct projected {
    uint32_t count;
    double u[FACE_POINTS_MAX + 1];
    double v[FACE_POINTS_MAX + 1];
    double inverse_depth, du, dv; /* 1/depth = inverse_depth + u * du + v * dv */
    int32_t first_row, end_row;   /* of the band, those that it may reach */
};

/* Spreads one image pixel of the backdrop over its samples. */
static void take_over(struct canvas *canvas, int32_t row, int32_t col)
{
    struct rgb colour = canvas->backdrop->colour[canvas->first_row / CAMERA_SCALE + row][col];
    for (int32_t r = row * CAMERA_SCALE; r < (row + 1) * CAMERA_SCALE; r++) {
        for (int32_t c = col * CAMERA_SCALE; c < (col + 1) * CAMERA_SCALE; c++) {
            canvas->colour[r][c] = colour;
            canvas->inverse_depth[r][c] = 0.0f;
        }
    }
    canvas->touched[row][col] = true;
    canvas->any_touched = true;
}

/* To be called before samples first..end - 1 of a canvas row are read or written. */
static void touch(struct canvas *canvas, int32_t r, int32_t first, int32_t end)
{
    int32_t row = r / CAMERA_SCALE;
    int32_t end_col = (end + CAMERA_SCALE - 1) / CAMERA_SCALE;
    for (int32_t col = first / CAMERA_SCALE; col < end_col; col++) {
        if (!canvas->touched[row][col]) {
            take_over(canvas, row, col);
        }
    }
}

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

/* False when the face looks away, lies behind the camera or outside the band. */
static bool project(const struct painter *painter, const struct face *face, bool both_sides,
                    struct projected *out)
{
    struct vec3 points[FACE_POINTS_MAX];
    struct vec3 clipped[FACE_POINTS_MAX + 1];
    for (uint32_t i = 0; i < face->count; i++) {
        points[i] = camera_transform(&painter->view, face->points[i]);
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
    double focal = painter->view.focal;
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t i = 0; i < out->count; i++) {
        out->u[i] = clipped[i].x / clipped[i].z * focal + CANVAS_COLS / 2.0;
        out->v[i] = clipped[i].y / clipped[i].z * focal + CANVAS_ROWS / 2.0;
        low = dmath_min(low, out->v[i]);
        high = dmath_max(high, out->v[i]);
    }
    out->du = normal.x / focal / offset;
    out->dv = normal.y / focal / offset;
    out->inverse_depth =
        normal.z / offset - out->du * (CANVAS_COLS / 2.0) - out->dv * (CANVAS_ROWS / 2.0);
    low = dmath_clamp(low - painter->canvas->first_row - 0.5, 0.0, CANVAS_BAND);
    high = dmath_clamp(high - painter->canvas->first_row + 0.5, 0.0, CANVAS_BAND);
    out->first_row = (int32_t)low;
    out->end_row = (int32_t)high;
    return out->first_row < out->end_row;
}

/* Columns whose centre the face covers on canvas row `row`. */
static bool row_span(const struct projected *face, double row, int32_t *first, int32_t *end)
{
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t i = 0, j = face->count - 1; i < face->count; j = i++) {
        double va = face->v[j];
        double vb = face->v[i];
        if ((va > row) != (vb > row)) {
            double u = face->u[j] + (row - va) / (vb - va) * (face->u[i] - face->u[j]);
            low = dmath_min(low, u);
            high = dmath_max(high, u);
        }
    }
    if (!(low < high)) {
        return false;
    }
    *first = (int32_t)(dmath_clamp(low, 0.0, CANVAS_COLS) + 0.5);
    *end = (int32_t)(dmath_clamp(high, 0.0, CANVAS_COLS) + 0.5);
    return *first < *end;
}

/* Colour of a face under the mood, faded at its mean distance. */
static struct rgb light_face(const struct painter *painter, const struct face *face)
{
    const struct mood *mood = &painter->mood;
    struct vec3 middle = {0, 0, 0};
    for (uint32_t i = 0; i < face->count; i++) {
        middle.x += face->points[i].x / face->count;
        middle.y += face->points[i].y / face->count;
        middle.z += face->points[i].z / face->count;
    }
    struct vec3 from = minus(middle, painter->view.origin);
    double distance = sqrt(dot(from, from));
    if (face->glows) {
        return mood_fade(mood, face->colour, distance * 0.5);
    }
    struct vec3 n =
        cross(minus(face->points[1], face->points[0]), minus(face->points[2], face->points[0]));
    double length = sqrt(dot(n, n));
    n = (struct vec3){n.x / length, n.y / length, n.z / length};
    struct vec3 sun = {
        mood->sun_direction.x * painter->ego_cos + mood->sun_direction.y * painter->ego_sin,
        -mood->sun_direction.x * painter->ego_sin + mood->sun_direction.y * painter->ego_cos,
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

void canvas_fill(const struct painter *painter, const struct face *face)
{
    struct projected on_screen;
    if (!project(painter, face, false, &on_screen)) {
        return;
    }
    struct canvas *canvas = painter->canvas;
    struct rgb colour = light_face(painter, face);
    for (int32_t r = on_screen.first_row; r < on_screen.end_row; r++) {
        double v = canvas->first_row + r + 0.5;
        int32_t first;
        int32_t end;
        if (!row_span(&on_screen, v, &first, &end)) {
            continue;
        }
        touch(canvas, r, first, end);
        double start = on_screen.inverse_depth + on_screen.dv * v;
        for (int32_t c = first; c < end; c++) {
            float inverse = (float)(start + on_screen.du * (c + 0.5));
            if (inverse > canvas->inverse_depth[r][c]) {
                canvas->inverse_depth[r][c] = inverse;
                canvas->colour[r][c] = colour;
            }
        }
    }
}

void canvas_shadow(const struct painter *painter, const struct face *face, float strength)
{
    struct projected on_screen;
    if (!project(painter, face, true, &on_screen)) {
        return;
    }
    struct canvas *canvas = painter->canvas;
    for (int32_t r = on_screen.first_row; r < on_screen.end_row; r++) {
        int32_t first;
        int32_t end;
        if (!row_span(&on_screen, canvas->first_row + r + 0.5, &first, &end)) {
            continue;
        }
        touch(canvas, r, first, end);
        for (int32_t c = first; c < end; c++) {
            canvas->colour[r][c] = rgb_times(canvas->colour[r][c], 1.0f - strength);
        }
    }
}

void canvas_glow(const struct painter *painter, struct vec3 point, double radius_m,
                 struct rgb colour)
{
    struct canvas *canvas = painter->canvas;
    struct vec3 p = camera_transform(&painter->view, point);
    if (p.z < 0.5) {
        return;
    }
    double u = p.x / p.z * painter->view.focal + CANVAS_COLS / 2.0;
    double v = p.y / p.z * painter->view.focal + CANVAS_ROWS / 2.0;
    double radius = radius_m / p.z * painter->view.focal + 1.5;
    if (!(u + radius > 0 && u - radius < CANVAS_COLS && radius < CANVAS_COLS)) {
        return;
    }
    int32_t first = (int32_t)dmath_clamp(u - radius, 0.0, CANVAS_COLS);
    int32_t end = (int32_t)dmath_clamp(u + radius + 1.0, 0.0, CANVAS_COLS);
    colour = rgb_times(colour, (float)dmath_exp(-painter->mood.haze_per_m * p.z * 0.5));
    for (int32_t r = 0; r < CANVAS_BAND; r++) {
        double dv = canvas->first_row + r + 0.5 - v;
        if (dv * dv > radius * radius) {
            continue;
        }
        touch(canvas, r, first, end);
        for (int32_t c = first; c < end; c++) {
            double du = c + 0.5 - u;
            double q = 1.0 - (du * du + dv * dv) / (radius * radius);
            /* A metre of slack, so that the lamp's own vehicle does not swallow its glow. */
            if (q > 0 && canvas->inverse_depth[r][c] < 1.0 / dmath_max(p.z - 1.0, 0.2)) {
                canvas->colour[r][c] =
                    rgb_add(canvas->colour[r][c], rgb_times(colour, (float)(q * q * q)));
            }
        }
    }
}
