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

enum { CUTS_MAX = 7 };

/* ---- the table ---- */

static struct vec3 turned(const double (*m)[3], double x, double y, double z)
{
    return (struct vec3){m[0][0] * x + m[0][1] * y + m[0][2] * z,
                         m[1][0] * x + m[1][1] * y + m[1][2] * z,
                         m[2][0] * x + m[2][1] * y + m[2][2] * z};
}

void rays_axes(const struct rig_pose *pose, struct vec3 *ahead, struct vec3 *left, struct vec3 *up)
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
    *ahead = turned(m, 1.0, 0.0, 0.0);
    *left = turned(m, 0.0, 1.0, 0.0);
    *up = turned(m, 0.0, 0.0, 1.0);
}

static struct vec3 opposite(struct vec3 v)
{
    return (struct vec3){-v.x, -v.y, -v.z};
}

static void axes_init(const struct rig_pose *pose, struct raster_rays *rays)
{
    struct vec3 left;
    struct vec3 up;
    rays_axes(pose, &rays->ahead, &left, &up);
    rays->right = opposite(left);
    rays->down = opposite(up);
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

void rays_sky_init(const struct picture *picture, struct sky_ring *out)
{
    out->made = true;
    for (int32_t i = 0; i < SKY_RING; i++) {
        double azimuth_rad = ((i + 0.5) / SKY_RING * 2.0 - 1.0) * PI_RAD;
        out->skyline[i] = (float)sky_skyline(azimuth_rad, picture->sky.town);
        out->halo[i] = sky_halo(picture, azimuth_rad);
    }
}

/* Row of a tile and what lies a column beside it; nothing is seen outside the image. */
static void look_along(const struct painter *painter, const struct patch *patch, int32_t row,
                       struct ray_row *out)
{
    const struct raster_rays *rays = painter->rays;
    const float origin[3] = {(float)rays->origin.x, (float)rays->origin.y, (float)rays->origin.z};
    struct ray line[RAY_COLS] = {0};
    int32_t kept = row < 0 ? 0 : row >= rays->rows ? rays->rows - 1 : row;
    for (int32_t i = 0; i < patch->cols + 2; i++) {
        int32_t col = patch->first_col + i - 1;
        col = col < 0 ? 0 : col >= rays->cols ? rays->cols - 1 : col;
        line[i] = rays->rays[(size_t)kept * (size_t)rays->cols + (size_t)col];
    }
    painter->layers->rows.look(line, origin, out);
    /* Beside the image lie copies of its edge, to which there is no step on the ground. */
    if (kept != row) {
        memset(out->hits, 0, sizeof out->hits);
    }
    if (patch->first_col == 0) {
        out->hits[0] = 0.0f;
    }
    if (patch->first_col + patch->cols == rays->cols) {
        out->hits[patch->cols + 1] = 0.0f;
    }
}

/* Flat cell: what a pixel in it sees, if no larger than it. */
struct flat {
    int32_t x, y; /* of half a texel */
    bool flat;
    struct ground_share share;
};

#define FLAT_MAX_M (1.0 / 6.0) /* canvas pixels; an image pixel is half a metre then */

/* Adds all samples of a pixel. */
static void sum_spot(struct ground *ground, const struct ray_spots *spots, int32_t i,
                     struct ground_sums *sums)
{
    int32_t depths = (int32_t)dmath_clamp((double)spots->step_m[i] + 0.5, 1.0, GROUND_DEPTHS_MAX);
    struct ground_sum sum = {0};
    for (int32_t r = 0; r < CAMERA_SCALE; r++) {
        for (int32_t k = 0; k < depths; k++) {
            double down = r - 1 + (k + 0.5) / depths - 0.5;
            struct ground_line line = {
                .x = spots->x[i] - spots->right_x[i] + (int32_t)(down * spots->down_x[i]),
                .y = spots->y[i] - spots->right_y[i] + (int32_t)(down * spots->down_y[i]),
                .dx = spots->right_x[i],
                .dy = spots->right_y[i],
            };
            ground_line_look(&line, (double)spots->footprint_m[i], r, k, depths);
            ground_add(&ground->map, ground->tiles, &line, 0, &sum);
        }
    }
    for (int k = 0; k < 4; k++) {
        sums->off[k][i] = sum.off[k];
        sums->on[k][i] = sum.on[k];
    }
    sums->paint[i] = sum.paint;
}

/* Whether a pixel lies in a flat cell; *last: what the one before found. */
static bool in_flat(struct ground *ground, const struct ray_spots *spots, int32_t i,
                    struct flat *last)
{
    enum { HALF_BITS = GROUND_TEXEL_BITS - 1 };
    if ((double)spots->footprint_m[i] > FLAT_MAX_M || (double)spots->step_m[i] > FLAT_MAX_M) {
        return false;
    }
    int32_t x = spots->x[i] >> HALF_BITS;
    int32_t y = spots->y[i] >> HALF_BITS;
    if (x != last->x || y != last->y) {
        struct ground_line line = {0};
        const struct ground_cell cell =
            ground_cell_at(&ground->map, ground->tiles, spots->x[i], spots->y[i]);
        ground_line_look(&line, (double)spots->footprint_m[i], 0, 0, 1);
        line.weight = 1.0f;
        line.blend = 0.0f; /* no paint is near */
        last->x = x;
        last->y = y;
        last->flat = ground_cell_is_flat(&cell, &line);
        last->share =
            ground_share_at(&ground->map, ground->tiles, &line, spots->x[i], spots->y[i], &cell);
    }
    return last->flat;
}

static void sum_spots(struct ground *ground, const struct ray_spots *spots, const float *hits,
                      int32_t cols, struct ground_sums *sums)
{
    struct flat last = {.x = INT32_MIN, .y = INT32_MIN};
    for (int32_t i = 0; i < cols; i++) {
        if (!(hits[i] > 0.0f)) {
            continue;
        }
        if (!in_flat(ground, spots, i, &last)) {
            sum_spot(ground, spots, i, sums);
            continue;
        }
        for (int k = 0; k < 4; k++) {
            sums->off[k][i] = last.share.off[k] * last.share.off_weight;
            sums->on[k][i] = last.share.on[k] * last.share.on_weight;
        }
    }
}

/* Ground of a row, between its neighbours. */
static void draw_ground(const struct painter *painter, struct ground *ground,
                        const struct ground_row *shared, const struct ray_row *rows, int32_t cols,
                        struct rgb_row *out)
{
    const struct picture_kernels *kernels = &painter->layers->rows;
    struct ground_sums sums = {0};
    struct ground_places places;
    struct ray_spots spots;
    kernels->spots(&painter->picture, &rows[0], &rows[1], &rows[2], cols, &places, &spots);
    sum_spots(ground, &spots, &rows[1].hits[1], cols, &sums);
    kernels->ground(&painter->picture, shared, &sums, &places, cols, out);
}

static void draw_sky(const struct painter *painter, const struct ray_row *rows, int32_t cols,
                     struct rgb_row *out)
{
    const struct picture_kernels *kernels = &painter->layers->rows;
    struct sky_columns columns;
    float up[PICTURE_TILE_COLS];
    if (!painter->ring->made) {
        rays_sky_init(&painter->picture, painter->ring);
    }
    float least = kernels->sky_columns(&painter->picture, painter->ring, &rows[0], &rows[1],
                                       &rows[2], cols, &columns, up);
    const struct sky_row own = {&columns, up, least, sky_skyline_max(&columns, cols)};
    kernels->sky(&painter->picture, &own, cols, out);
}

void rays_backdrop(const struct painter *painter, struct ground *ground, const struct patch *patch,
                   struct backdrop *out)
{
    struct ray_row rows[CAMERA_BAND_ROWS + 2];
    struct ground_row shared;
    ground_row_begin(&painter->picture, &shared);
    for (int32_t i = 0; i < patch->rows + 2; i++) {
        look_along(painter, patch, patch->first_row + i - 1, &rows[i]);
    }
    for (int32_t i = 0; i < patch->rows; i++) {
        const float *hits = &rows[i + 1].hits[1];
        struct rgb_row *colours = &out->rows[i];
        int32_t ground_cols = 0;
        for (int32_t k = 0; k < patch->cols; k++) {
            ground_cols += hits[k] > 0.0f;
        }
        if (ground_cols < patch->cols) {
            draw_sky(painter, &rows[i], patch->cols, colours);
        }
        if (ground_cols > 0) {
            struct rgb_row under;
            bool all = ground_cols == patch->cols;
            draw_ground(painter, ground, &shared, &rows[i], patch->cols, all ? colours : &under);
            for (int32_t k = 0; k < patch->cols && !all; k++) {
                if (hits[k] > 0.0f) {
                    colours->r[k] = under.r[k];
                    colours->g[k] = under.g[k];
                    colours->b[k] = under.b[k];
                }
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
