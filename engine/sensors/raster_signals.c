/*
 * Traffic lights and signs, drawn: heads and plates on posts for the cameras, stop lines that hold
 * traffic for the grid, at stop signs always.
 * A head stands to the right of each lane that its signal controls, at the stop line, and looks at
 * the traffic that it is for. What a light shows is the scene's; one that the scene does not know
 * (TRAFFIC_LIGHT_COUNT) is not drawn at all.
 */
#include "base/dmath.h"
#include "engine/sensors/raster.h"
#include "engine/sensors/raster_camera.h"
#include "engine/sensors/raster_view.h"

#include <math.h>
#include <stdlib.h>

#define ASIDE_M 0.6 /* from the lane's border to the post */
#define POST_M 0.06 /* half of its width */
#define HEAD_LOW_M 2.2
#define HEAD_HIGH_M 3.3
#define HEAD_M 0.2 /* half of its width */
#define LAMP_M 0.14
#define SIGN_M 0.4  /* from a plate's middle to its corners */
#define FACE_M 0.12 /* from the post's middle to the housing's front */
#define RANGE_M 120.0
#define LINE_STEP_M 0.25

enum { LAMPS = 3 };

enum status raster_heads_create(const struct map *map, struct raster_head **out, uint32_t *count,
                                struct error *error)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < map->signal_count; i++) {
        lanes += map->signals[i].lane_count;
    }
    *out = NULL;
    *count = 0;
    if (lanes == 0) {
        return STATUS_OK;
    }
    struct raster_head *heads = calloc(lanes, sizeof *heads);
    TRY(memory_check(heads, error, "no memory to draw the signals of map %s", map->id));
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        for (uint32_t k = 0; k < signal->lane_count; k++) {
            const struct lane *lane = &map->lanes[signal->lanes[k]];
            double length_m = polyline_length_m(lane->centre_line, lane->point_count);
            double s_m = dmath_max(length_m - signal->stop_m, 0.0);
            double half_m = 0.5 * lane->width_m[lane->point_count - 1];
            struct raster_head *head = &heads[(*count)++];
            head->signal = i;
            head->sign = signal->sign;
            head->line = polyline_pose_at(lane->centre_line, lane->point_count, s_m, 0.0);
            head->half_m = half_m;
            dmath_sincos(head->line.heading_rad, &head->sine, &head->cosine);
        }
    }
    *out = heads;
    return STATUS_OK;
}

/* ---- cameras ---- */

/* A head in ego's frame: c, s its traffic's direction. */
struct standing {
    const struct painter *painter;
    struct screen_rows rows;
    double x, y, c, s;
};

/* `along` with the traffic, `left` to its left. */
static struct vec3 at(const struct standing *head, double along, double left, double z)
{
    return (struct vec3){head->x + along * head->c - left * head->s,
                         head->y + along * head->s + left * head->c, z};
}

/* An upright rectangle across the traffic's way; `towards` it looks at the traffic. */
static void plate(const struct standing *head, double along, double half_width, double low,
                  double high, bool towards, struct rgb colour)
{
    double first = towards ? half_width : -half_width;
    struct face face = {.count = 4,
                        .points = {at(head, along, first, low), at(head, along, -first, low),
                                   at(head, along, -first, high), at(head, along, first, high)},
                        .colour = colour};
    face_add_fill(head->painter, head->rows, &face);
}

/* The sides of a box that the plates leave open. */
static void flank(const struct standing *head, double half_along, double left, double low,
                  double high, struct rgb colour)
{
    double first = left > 0 ? half_along : -half_along;
    struct face face = {.count = 4,
                        .points = {at(head, first, left, low), at(head, -first, left, low),
                                   at(head, -first, left, high), at(head, first, left, high)},
                        .colour = colour};
    face_add_fill(head->painter, head->rows, &face);
}

static void column(const struct standing *head, double half_along, double half_width, double low,
                   double high, struct rgb colour)
{
    plate(head, -half_along, half_width, low, high, true, colour);
    plate(head, half_along, half_width, low, high, false, colour);
    flank(head, half_along, half_width, low, high, colour);
    flank(head, half_along, -half_width, low, high, colour);
}

static void lamp(const struct standing *head, double z, struct rgb colour, bool lit)
{
    struct face face = {.count = 8, .colour = colour, .glows = lit};
    for (int i = 0; i < 8; i++) {
        double sine;
        double cosine;
        dmath_sincos((i + 0.5) * (PI_RAD / 4), &sine, &cosine);
        /* Counter-clockwise for who comes: their right is the head's left. */
        face.points[i] = at(head, -FACE_M - 0.01, -LAMP_M * cosine, z + LAMP_M * sine);
    }
    face_add_fill(head->painter, head->rows, &face);
    if (lit && head->x * head->c + head->y * head->s > 0.0) { /* seen from the front */
        face_add_glow(head->painter, head->rows, at(head, -FACE_M - 0.02, 0.0, z), 0.35,
                      rgb_times(colour, 0.6f));
    }
}

static void draw_head(const struct standing *head, enum traffic_light light)
{
    static const struct rgb post = {0.42f, 0.43f, 0.44f};
    static const struct rgb housing = {0.06f, 0.06f, 0.06f};
    static const struct rgb lit[LAMPS] = {
        {1.0f, 0.12f, 0.08f}, {1.0f, 0.72f, 0.10f}, {0.15f, 1.0f, 0.35f}};
    static const bool shows[TRAFFIC_LIGHT_COUNT][LAMPS] = {
        [TRAFFIC_LIGHT_RED] = {true, false, false},
        [TRAFFIC_LIGHT_RED_YELLOW] = {true, true, false},
        [TRAFFIC_LIGHT_YELLOW] = {false, true, false},
        [TRAFFIC_LIGHT_GREEN] = {false, false, true},
    };
    column(head, POST_M, POST_M, 0.0, HEAD_LOW_M, post);
    column(head, FACE_M, HEAD_M, HEAD_LOW_M, HEAD_HIGH_M, housing);
    for (int i = 0; i < LAMPS; i++) {
        double z = HEAD_HIGH_M - (i + 0.5) * (HEAD_HIGH_M - HEAD_LOW_M) / LAMPS;
        bool on = shows[light][i];
        lamp(head, z, on ? lit[i] : rgb_times(lit[i], 0.18f), on);
    }
}

/* The plate of priority roads: a yellow square in a white one, both on a corner. */
static void draw_diamond(const struct standing *head, double front, double z)
{
    static const struct rgb colours[] = {{0.92f, 0.92f, 0.92f}, {0.93f, 0.72f, 0.06f}};
    for (int i = 0; i < 2; i++) {
        double half_m = i == 0 ? SIGN_M : 0.65 * SIGN_M;
        double before = front - 0.005 * i;
        struct face face = {
            .count = 4,
            .colour = colours[i],
            .points = {at(head, before, 0.0, z - half_m), at(head, before, -half_m, z),
                       at(head, before, 0.0, z + half_m), at(head, before, half_m, z)}};
        face_add_fill(head->painter, head->rows, &face);
    }
}

/* A red octagon, a white triangle that stands on its tip, a diamond. */
static void draw_sign(const struct standing *head, enum traffic_sign sign)
{
    static const struct rgb post = {0.42f, 0.43f, 0.44f};
    static const struct rgb red = {0.78f, 0.06f, 0.08f};
    static const struct rgb white = {0.92f, 0.92f, 0.92f};
    double z = SIGN_M + HEAD_LOW_M;
    double front = -POST_M - 0.01;
    column(head, POST_M, POST_M, 0.0, z, post);
    if (sign == TRAFFIC_SIGN_PRIORITY) {
        draw_diamond(head, front, z);
        return;
    }
    struct face face = {.count = 8, .colour = red};
    for (int i = 0; i < 8; i++) {
        double sine;
        double cosine;
        dmath_sincos((i + 0.5) * (PI_RAD / 4), &sine, &cosine);
        face.points[i] = at(head, front, -SIGN_M * cosine, z + SIGN_M * sine);
    }
    if (sign == TRAFFIC_SIGN_YIELD) {
        face = (struct face){.count = 3,
                             .colour = white,
                             .points = {at(head, front, 0.0, z - SIGN_M),
                                        at(head, front, -SIGN_M, z + 0.7 * SIGN_M),
                                        at(head, front, SIGN_M, z + 0.7 * SIGN_M)}};
    }
    face_add_fill(head->painter, head->rows, &face);
}

void signals_draw(const struct painter *painter, const struct raster_layers *layers,
                  const struct scene *scene)
{
    const struct picture *picture = &painter->picture;
    double range_m = dmath_min(scene->conditions.visibility_m, RANGE_M);
    for (uint32_t i = 0; i < layers->head_count; i++) {
        const struct raster_head *head = &layers->heads[i];
        enum traffic_light light = (enum traffic_light)scene->signal_light[head->signal];
        double aside_m = head->half_m + ASIDE_M;
        double dx = head->line.x_m + aside_m * head->sine - scene->ego.pose.x_m;
        double dy = head->line.y_m - aside_m * head->cosine - scene->ego.pose.y_m;
        bool plate = head->sign < TRAFFIC_SIGN_GIVE_WAY;
        if (light >= TRAFFIC_LIGHT_COUNT || !plate || dx * dx + dy * dy > range_m * range_m) {
            continue;
        }
        struct standing standing = {
            .painter = painter,
            .rows = painter->screen->rows,
            .x = dx * picture->ego_cos + dy * picture->ego_sin,
            .y = dy * picture->ego_cos - dx * picture->ego_sin,
            .c = head->cosine * picture->ego_cos + head->sine * picture->ego_sin,
            .s = head->sine * picture->ego_cos - head->cosine * picture->ego_sin,
        };
        if (head->sign != TRAFFIC_SIGN_NONE) {
            draw_sign(&standing, head->sign);
        } else {
            draw_head(&standing, light);
        }
    }
}

/* ---- the grid ---- */

void raster_stop_lines(const struct raster_layers *layers, const struct scene *scene,
                       const struct raster_view *view, uint8_t *marking)
{
    for (uint32_t i = 0; i < layers->head_count; i++) {
        const struct raster_head *head = &layers->heads[i];
        enum traffic_light light = (enum traffic_light)scene->signal_light[head->signal];
        bool red = light == TRAFFIC_LIGHT_RED || light == TRAFFIC_LIGHT_RED_YELLOW ||
                   (head->sign == TRAFFIC_SIGN_STOP && light < TRAFFIC_LIGHT_COUNT);
        if (!red && light != TRAFFIC_LIGHT_YELLOW) {
            continue;
        }
        for (double left_m = -head->half_m; left_m <= head->half_m; left_m += LINE_STEP_M) {
            double dx = head->line.x_m - left_m * head->sine - view->sensor.x_m;
            double dy = head->line.y_m + left_m * head->cosine - view->sensor.y_m;
            double x = dx * view->cos_heading + dy * view->sin_heading - view->x_min_m;
            double y = dy * view->cos_heading - dx * view->sin_heading - view->y_min_m;
            if (x >= 0.0 && x < BEV_ROWS * BEV_CELL_M && y >= 0.0 && y < BEV_COLS * BEV_CELL_M) {
                uint8_t *cell =
                    &marking[(int32_t)(x / BEV_CELL_M) * BEV_COLS + (int32_t)(y / BEV_CELL_M)];
                uint8_t value = red ? 255 : 128;
                *cell = *cell > value ? *cell : value;
            }
        }
    }
}
