/*
 * Rays: cameras of a rig that roll, pitch or bend light. A table says where each pixel looks; sky
 * and ground are looked up along it, and faces are cut until their edges are straight in the image.
 * Which surface is nearest is decided by the distance along the ray, whose inverse is linear in the
 * direction for a plane, whatever the lens.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/sensors/raster_camera.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEND_PIXELS 0.3  /* an edge that bends less, on the canvas, is straight */
#define WIDE_COSINE 0.94 /* an edge that spans more than 20 degrees is cut anyway */

#define RAY_MAX_M 420.0 /* of the ground, to the side */
#define STEP_MAX_M 8.0

enum { CUTS_MAX = 7 };

_Static_assert((int)RAY_MAX_M + 4 * (int)STEP_MAX_M + 50 <= GROUND_REACH_TILES * (int)RASTER_TILE_M,
               "samples lie in the tiles around ego, wherever the camera is on it");

/* ---- the table ---- */

static struct vec3 turned(const double (*m)[3], double x, double y, double z)
{
    return (struct vec3){m[0][0] * x + m[0][1] * y + m[0][2] * z,
                         m[1][0] * x + m[1][1] * y + m[1][2] * z,
                         m[2][0] * x + m[2][1] * y + m[2][2] * z};
}

static void axes_init(const struct rig_pose *pose, struct raster_rays *rays)
{
    double sr;
    double cr;
    double sp;
    double cp;
    double sy;
    double cy;
    dmath_sincos(pose->roll_rad, &sr, &cr);
    dmath_sincos(pose->pitch_rad, &sp, &cp);
    dmath_sincos(pose->yaw_rad, &sy, &cy);
    const double m[3][3] = {{cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr},
                            {sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr},
                            {-sp, cp * sr, cp * cr}};
    rays->ahead = turned(m, 1.0, 0.0, 0.0);
    rays->right = turned(m, 0.0, -1.0, 0.0);
    rays->down = turned(m, 0.0, 0.0, -1.0);
    rays->origin = (struct vec3){pose->x_m, pose->y_m, pose->z_m};
}

/* Whether raster_level draws it. */
static bool looks_level(const struct rig_camera *camera, bool straight)
{
    const struct rig_lens *lens = &camera->lens;
    double side = camera->width / 2.0 / lens->fx;
    return straight && isnan(lens->max_angle_rad) && camera->pose.roll_rad == 0.0 &&
           camera->pose.pitch_rad == 0.0 && lens->fx == lens->fy && camera->height % 2 == 0 &&
           lens->cx == (camera->width - 1) / 2.0 && lens->cy == (camera->height - 1) / 2.0 &&
           side < 8.0;
}

static void fill_table(const struct raster_rays *rays, struct ray *out)
{
    for (int32_t row = 0; row < rays->rows; row++) {
        for (int32_t col = 0; col < rays->cols; col++) {
            struct ray *ray = &out[(size_t)row * (size_t)rays->cols + (size_t)col];
            struct vec3 d;
            if (!lens_direction(&rays->lens, col, row, &d)) {
                *ray = (struct ray){0};
                continue;
            }
            ray->x = (float)(d.x * rays->right.x + d.y * rays->down.x + d.z * rays->ahead.x);
            ray->y = (float)(d.x * rays->right.y + d.y * rays->down.y + d.z * rays->ahead.y);
            ray->z = (float)(d.x * rays->right.z + d.y * rays->down.z + d.z * rays->ahead.z);
        }
    }
}

enum status raster_rays_create(const struct rig_camera *camera, uint32_t stream,
                               struct raster_rays **out, struct error *error)
{
    struct raster_rays *rays = calloc(1, sizeof *rays);
    *out = NULL;
    TRY(memory_check(rays, error, "no memory for camera %s", camera->id));
    rays->rows = camera->height;
    rays->cols = camera->width;
    axes_init(&camera->pose, rays);
    rays->level = (struct raster_level){
        .calibration = {camera->pose.x_m, camera->pose.y_m, camera->pose.z_m, camera->pose.yaw_rad,
                        2.0 * dmath_atan(camera->width / 2.0 / dmath_max(camera->lens.fx, 1e-3))},
        .rows = camera->height,
        .cols = camera->width,
        .stream = stream,
    };
    enum status status = lens_init(camera, &rays->lens, error);
    rays->is_level = status == STATUS_OK && looks_level(camera, rays->lens.straight);
    if (status == STATUS_OK && !rays->is_level) {
        size_t pixels = (size_t)rays->rows * (size_t)rays->cols;
        rays->rays = malloc(pixels * sizeof *rays->rays);
        status = memory_check(rays->rays, error, "no memory for the %zu directions of camera %s",
                              pixels, camera->id);
        if (status == STATUS_OK) {
            fill_table(rays, rays->rays);
        }
    }
    if (status != STATUS_OK) {
        raster_rays_destroy(rays);
        return status;
    }
    *out = rays;
    return STATUS_OK;
}

void raster_rays_destroy(struct raster_rays *rays)
{
    if (rays != NULL) {
        free(rays->rays);
        free(rays);
    }
}

/* ---- sky and ground ---- */

/* The direction of a pixel, or of the nearest one in the image. */
static const struct ray *ray_at(const struct raster_rays *rays, int32_t row, int32_t col)
{
    row = row < 0 ? 0 : row >= rays->rows ? rays->rows - 1 : row;
    col = col < 0 ? 0 : col >= rays->cols ? rays->cols - 1 : col;
    return &rays->rays[(size_t)row * (size_t)rays->cols + (size_t)col];
}

static float slope_of(const struct ray *ray)
{
    return ray->z / sqrtf(ray->x * ray->x + ray->y * ray->y + 1e-9f);
}

/* Slope of a third of a pixel's height, or width in an image that lies on its side. */
static float slope_step(const struct raster_rays *rays, int32_t row, int32_t col)
{
    float across = slope_of(ray_at(rays, row, col + 1)) - slope_of(ray_at(rays, row, col - 1));
    float down = slope_of(ray_at(rays, row + 1, col)) - slope_of(ray_at(rays, row - 1, col));
    float step = sqrtf(across * across + down * down) / (2 * CAMERA_SCALE);
    return step > 1e-6f ? step : 1e-6f;
}

static void draw_sky(const struct picture *picture, const struct raster_rays *rays, int32_t row,
                     const struct patch *patch, struct rgb *out)
{
    float up[PICTURE_TILE_COLS];
    struct sky sky = {.cols = patch->cols};
    float least = INFINITY;
    for (int32_t i = 0; i < patch->cols; i++) {
        int32_t col = patch->first_col + i;
        const struct ray *ray = ray_at(rays, row, col);
        float slope = ray->z > 0.0f ? slope_of(ray) : 0.0f;
        float step = slope_step(rays, row, col);
        double azimuth_rad =
            dmath_wrap_angle(picture->sky.yaw_rad + dmath_atan2((double)ray->y, (double)ray->x));
        sky_column_at(picture, azimuth_rad, step, i, &sky.columns);
        up[i] = slope / step;
        least = slope < least ? slope : least;
    }
    sky.skyline_max = sky_skyline_max(&sky.columns, sky.cols);
    sky_colours(picture, &sky, up, least, out);
}

/* Place where a ray meets the ground, in ego's frame; beyond the map's reach along its direction
 * there.
 */
static bool meets_ground(const struct raster_rays *rays, const struct ray *ray, struct vec2 *out)
{
    if (!(ray->z < 0.0f)) {
        return false;
    }
    double distance = rays->origin.z / -(double)ray->z;
    double side = sqrt((double)ray->x * ray->x + (double)ray->y * ray->y);
    distance = dmath_min(distance, RAY_MAX_M / dmath_max(side, 1e-9));
    *out = (struct vec2){rays->origin.x + ray->x * distance, rays->origin.y + ray->y * distance};
    return true;
}

static double length_of(struct vec2 v)
{
    return sqrt(v.x_m * v.x_m + v.y_m * v.y_m);
}

/* A third of a step on the ground, no longer than what keeps samples within the tiles around ego.
 */
static struct vec2 third(struct vec2 step)
{
    double length = length_of(step) / CAMERA_SCALE;
    double scale = (length > STEP_MAX_M ? STEP_MAX_M / length : 1.0) / CAMERA_SCALE;
    return (struct vec2){step.x_m * scale, step.y_m * scale};
}

/* From a pixel's place on the ground to the next column's or row's. */
static struct vec2 ground_to_next(const struct raster_rays *rays, int32_t row, int32_t col,
                                  int32_t down, int32_t right, struct vec2 from)
{
    struct vec2 to;
    if (row + down < rays->rows && col + right < rays->cols &&
        meets_ground(rays, ray_at(rays, row + down, col + right), &to)) {
        return (struct vec2){to.x_m - from.x_m, to.y_m - from.y_m};
    }
    if (row - down >= 0 && col - right >= 0 &&
        meets_ground(rays, ray_at(rays, row - down, col - right), &to)) {
        return (struct vec2){from.x_m - to.x_m, from.y_m - to.y_m};
    }
    return (struct vec2){0.0, 0.0};
}

/* A pixel of the ground. */
struct spot {
    struct vec2 at;             /* ego's frame */
    struct vec2 right, down;    /* to the next canvas column and row */
    double footprint_m, step_m; /* their lengths */
};

static struct ground_sum sum_spot(struct ground *ground, const struct picture *picture,
                                  const struct spot *spot)
{
    const struct ground_place *place = &picture->ground;
    const double c = picture->ego_cos;
    const double s = picture->ego_sin;
    int32_t depths = (int32_t)dmath_clamp(spot->step_m + 0.5, 1.0, GROUND_DEPTHS_MAX);
    struct ground_sum sum = {0};
    for (int32_t r = 0; r < CAMERA_SCALE; r++) {
        for (int32_t k = 0; k < depths; k++) {
            double down = r - 1 + (k + 0.5) / depths - 0.5;
            double x = spot->at.x_m - spot->right.x_m + down * spot->down.x_m;
            double y = spot->at.y_m - spot->right.y_m + down * spot->down.y_m;
            struct ground_line line = {
                .x = ground_position(place->ego_x + x * c - y * s),
                .y = ground_position(place->ego_y + x * s + y * c),
                .dx = ground_step(spot->right.x_m * c - spot->right.y_m * s),
                .dy = ground_step(spot->right.x_m * s + spot->right.y_m * c),
            };
            ground_line_look(&line, spot->footprint_m, r, k, depths);
            ground_add(&ground->map, ground->tiles, &line, 0, &sum);
        }
    }
    return sum;
}

static struct rgb ground_colour_of(struct ground *ground, const struct picture *picture,
                                   const struct raster_rays *rays, const struct ground_row *shared,
                                   const struct ray *ray, const struct spot *spot)
{
    const struct ground_sum sum = sum_spot(ground, picture, spot);
    float x_m = (float)spot->at.x_m;
    float y_m = (float)spot->at.y_m;
    float world_x = x_m * shared->ego_cos - y_m * shared->ego_sin;
    float world_y = x_m * shared->ego_sin + y_m * shared->ego_cos;
    float side = sqrtf(ray->x * ray->x + ray->y * ray->y);
    float distance_m = (float)rays->origin.z / -ray->z * side;
    struct ground_noise patches = shared->patches;
    struct ground_noise grain = shared->grain;
    double fine = ground_grain(spot->footprint_m);
    patches.amplitude = ground_patches_left(spot->step_m);
    grain.amplitude = (float)fine * ground_grain_left(spot->step_m);
    const struct ground_tone tone = {
        .patches = ground_noise_at(&patches, world_x, world_y),
        .grain = fine > 0.0 ? ground_noise_at(&grain, world_x, world_y) : 0.0f,
        .lamp = mood_headlight_at(shared->headlights, x_m, y_m),
        .mirror = ground_mirror_at(shared, distance_m),
        .left = mood_decay(shared->haze_per_m * distance_m),
    };
    return ground_finish(&picture->mood, picture->ground.light, &sum, tone);
}

static bool spot_make(const struct raster_rays *rays, int32_t row, int32_t col, struct spot *out)
{
    if (!meets_ground(rays, ray_at(rays, row, col), &out->at)) {
        return false;
    }
    out->right = third(ground_to_next(rays, row, col, 0, 1, out->at));
    out->down = third(ground_to_next(rays, row, col, 1, 0, out->at));
    out->footprint_m = length_of(out->right);
    out->step_m = length_of(out->down);
    return true;
}

void rays_backdrop(const struct picture *picture, const struct raster_rays *rays,
                   struct ground *ground, const struct patch *patch, struct backdrop *out)
{
    struct ground_row shared;
    ground_row_begin(picture, &shared);
    for (int32_t i = 0; i < patch->rows; i++) {
        int32_t row = patch->first_row + i;
        struct rgb *colours = out->colour[i];
        bool sky = false;
        for (int32_t k = 0; k < patch->cols; k++) {
            sky = sky || ray_at(rays, row, patch->first_col + k)->z >= 0.0f;
        }
        if (sky) {
            draw_sky(picture, rays, row, patch, colours);
        }
        for (int32_t k = 0; k < patch->cols; k++) {
            const struct ray *ray = ray_at(rays, row, patch->first_col + k);
            struct spot spot;
            if (spot_make(rays, row, patch->first_col + k, &spot)) {
                colours[k] = ground_colour_of(ground, picture, rays, &shared, ray, &spot);
            } else if (rays_blind(ray)) {
                colours[k] = (struct rgb){0, 0, 0};
            }
        }
    }
}

/* ---- faces ---- */

/* A corner, in the camera's frame, and where it lands on the canvas. */
struct corner {
    struct vec3 at;
    struct screen_point point;
    bool seen;
};

/* State of cutting a face. */
struct cutting {
    const struct painter *painter;
    const struct screen_command *command;
    struct screen_rows rows;
};

static struct vec3 in_camera(const struct raster_rays *rays, struct vec3 point)
{
    struct vec3 d = vec3_minus(point, rays->origin);
    return (struct vec3){vec3_dot(d, rays->right), vec3_dot(d, rays->down),
                         vec3_dot(d, rays->ahead)};
}

static struct corner corner_make(const struct raster_rays *rays, struct vec3 at)
{
    struct corner corner = {.at = at};
    double u;
    double v;
    corner.seen = lens_project(&rays->lens, at, &u, &v);
    if (corner.seen) {
        corner.point = (struct screen_point){(u + 0.5) * CAMERA_SCALE, (v + 0.5) * CAMERA_SCALE};
    }
    return corner;
}

static struct vec3 middle_of(struct vec3 a, struct vec3 b)
{
    return (struct vec3){0.5 * (a.x + b.x), 0.5 * (a.y + b.y), 0.5 * (a.z + b.z)};
}

/* Whether an edge is not straight in the image, or partly out of it. It says the same of both faces
 * that share the edge, so that no gap opens between them. */
static bool edge_bends(const struct raster_rays *rays, const struct corner *a,
                       const struct corner *b)
{
    double lengths = vec3_dot(a->at, a->at) * vec3_dot(b->at, b->at);
    double cosine = lengths > 0.0 ? vec3_dot(a->at, b->at) / sqrt(lengths) : -1.0;
    if (cosine < WIDE_COSINE || a->seen != b->seen) {
        return true;
    }
    if (!a->seen) {
        return false;
    }
    const struct corner middle = corner_make(rays, middle_of(a->at, b->at));
    if (!middle.seen) {
        return true;
    }
    /* Distance of the middle to the line, whatever its place along it. */
    double du = b->point.u - a->point.u;
    double dv = b->point.v - a->point.v;
    double length = sqrt(du * du + dv * dv);
    double off = (middle.point.u - a->point.u) * dv - (middle.point.v - a->point.v) * du;
    return length > 1.0 && fabs(off) > BEND_PIXELS * length;
}

static void push_polygon(const struct cutting *cutting, const struct corner *corners,
                         uint32_t count)
{
    const struct raster_rays *rays = cutting->painter->rays;
    struct screen_point points[SCREEN_POINTS_MAX];
    struct screen_rows rows = cutting->rows;
    for (uint32_t i = 0; i < count; i++) {
        if (!corners[i].seen) {
            return;
        }
        points[i] = corners[i].point;
    }
    if (screen_reaches(points, count, rays->cols * CAMERA_SCALE, &rows)) {
        screen_push(cutting->painter->screen, *cutting->command, rows, points, count);
    }
}

/* Cuts a triangle at the middles of the edges that bend. */
static void cut(const struct cutting *cutting, struct corner a, struct corner b, struct corner c,
                int depth)
{
    const struct raster_rays *rays = cutting->painter->rays;
    bool ab = depth < CUTS_MAX && edge_bends(rays, &a, &b);
    bool bc = depth < CUTS_MAX && edge_bends(rays, &b, &c);
    bool ca = depth < CUTS_MAX && edge_bends(rays, &c, &a);
    int bent = ab + bc + ca;
    if (bent == 0) {
        push_polygon(cutting, (struct corner[]){a, b, c}, 3);
        return;
    }
    /* Turned so that ab bends, and where two do, ca does not. */
    while (!ab || (bent == 2 && ca)) {
        const struct corner first = a;
        bool bends = ab;
        a = b;
        b = c;
        c = first;
        ab = bc;
        bc = ca;
        ca = bends;
    }
    const struct corner m = corner_make(rays, middle_of(a.at, b.at));
    if (bent == 1) {
        cut(cutting, a, m, c, depth + 1);
        cut(cutting, m, b, c, depth + 1);
        return;
    }
    const struct corner n = corner_make(rays, middle_of(b.at, c.at));
    cut(cutting, m, b, n, depth + 1);
    if (bent == 2) {
        cut(cutting, a, m, n, depth + 1);
        cut(cutting, a, n, c, depth + 1);
        return;
    }
    const struct corner o = corner_make(rays, middle_of(c.at, a.at));
    cut(cutting, a, m, o, depth + 1);
    cut(cutting, m, n, o, depth + 1);
    cut(cutting, o, n, c, depth + 1);
}

/* The plane of a face as 1/distance = command . direction; false where it looks away or lies edge
 * on. */
static bool set_plane(const struct raster_rays *rays, const struct face *face,
                      struct screen_command *command)
{
    const struct vec3 *p = face->points;
    struct vec3 normal = vec3_cross(vec3_minus(p[1], p[0]), vec3_minus(p[2], p[0]));
    double offset = vec3_dot(normal, vec3_minus(p[0], rays->origin));
    if (fabs(offset) < 1e-12 || (command->kind == SCREEN_FILL && offset >= 0.0)) {
        return false;
    }
    command->inverse_depth = normal.x / offset;
    command->du = normal.y / offset;
    command->dv = normal.z / offset;
    return true;
}

void rays_add_face(const struct painter *painter, struct screen_rows rows, const struct face *face,
                   const struct screen_command *command)
{
    const struct raster_rays *rays = painter->rays;
    struct screen_command plane = *command;
    struct vec3 points[SCREEN_POINTS_MAX];
    struct vec3 clipped[SCREEN_POINTS_MAX];
    struct corner corners[SCREEN_POINTS_MAX];
    uint32_t count = face->count;
    if (!set_plane(rays, face, &plane)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        points[i] = in_camera(rays, face->points[i]);
    }
    const struct vec3 *kept = points;
    if (rays->lens.model.model == LENS_PINHOLE) {
        count = screen_clip_near(points, count, clipped);
        kept = clipped;
    }
    if (count < 3) {
        return;
    }
    const struct cutting cutting = {painter, &plane, rows};
    bool bends = false;
    for (uint32_t i = 0; i < count; i++) {
        corners[i] = corner_make(rays, kept[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        bends = bends || edge_bends(rays, &corners[i], &corners[(i + 1) % count]);
    }
    if (!bends) {
        push_polygon(&cutting, corners, count);
        return;
    }
    for (uint32_t i = 2; i < count; i++) {
        cut(&cutting, corners[0], corners[i - 1], corners[i], 0);
    }
}

void rays_add_glow(const struct painter *painter, struct screen_rows rows, struct vec3 point,
                   double radius_m, struct rgb colour)
{
    const struct raster_rays *rays = painter->rays;
    const struct vec3 at = in_camera(rays, point);
    const struct corner middle = corner_make(rays, at);
    double distance = sqrt(vec3_dot(at, at));
    if (!middle.seen || distance < 0.5) {
        return;
    }
    /* The lens's scale there: how far a step to the side lands. */
    const struct corner aside =
        corner_make(rays, (struct vec3){at.x, at.y + 0.01 * distance, at.z});
    if (!aside.seen) {
        return;
    }
    double du = aside.point.u - middle.point.u;
    double dv = aside.point.v - middle.point.v;
    double radius = radius_m * sqrt(du * du + dv * dv) / (0.01 * distance) + 1.5;
    int32_t cols = rays->cols * CAMERA_SCALE;
    if (!(middle.point.u + radius > 0 && middle.point.u - radius < cols && radius < cols)) {
        return;
    }
    rows = screen_rows_between(middle.point.v - radius - 1.0, middle.point.v + radius + 1.0, rows);
    if (rows.first < rows.end) {
        const struct screen_command command = {
            .kind = SCREEN_GLOW,
            .colour = rgb_times(
                colour, (float)dmath_exp(-painter->picture.mood.haze_per_m * distance * 0.5)),
            .inverse_depth = 1.0 / dmath_max(distance - 1.0, 0.2),
            .du = radius,
        };
        screen_push(painter->screen, command, rows, &middle.point, 1);
    }
}
