/*
 * Lanes are drawn as the quads of their segments in view, joined; then markings; then what lies on
 * the road. Colours are those of the report's light theme.
 */
#include "report/draw/draw_scene.h"

#include "report/drive_signals.h"

#include <math.h>
#include <stdlib.h>

enum { POLYGON_POINTS_MAX = 4096 };

const struct colour draw_ground = {0xee, 0xf1, 0xee, 1};
const struct colour draw_ink = {0x17, 0x20, 0x2b, 1};
const struct colour draw_soft = {0x5d, 0x69, 0x75, 1};
const struct colour draw_ego = {0x23, 0x62, 0xc9, 1};
const struct colour draw_goal = {0x1a, 0x8f, 0x5a, 1};
const struct colour draw_route = {0x23, 0x62, 0xc9, 0.22F};
const struct colour draw_contact = {0xc8, 0x35, 0x2b, 1};
const struct colour draw_guardian = {0xb0, 0x76, 0x00, 1};

static const struct colour lane_colours[LANE_KIND_COUNT] = {
    [LANE_DRIVING] = {0xc3, 0xca, 0xd1, 1},
    [LANE_SHOULDER] = {0xd4, 0xd9, 0xde, 1},
    [LANE_CYCLE] = {0xcf, 0xd9, 0xcf, 1},
    [LANE_SIDEWALK] = {0xe4, 0xe0, 0xd6, 1},
};
static const struct colour marking = {0xff, 0xff, 0xff, 1};
static const struct colour crosswalk = {0xff, 0xff, 0xff, 0.5F};
static const struct colour surface = {0x23, 0x62, 0xc9, 0.25F};

struct draw_view draw_view_make(struct vec2 center, double turn_rad, double scale, double x,
                                double y, double width, double height)
{
    return (struct draw_view){
        .center = center,
        .sine = sin(turn_rad),
        .cosine = cos(turn_rad),
        .scale = scale,
        .x = x,
        .y = y,
        .reach_m = hypot(width, height) / scale,
    };
}

struct vec2 draw_view_point(const struct draw_view *view, struct vec2 place)
{
    double x = place.x_m - view->center.x_m;
    double y = place.y_m - view->center.y_m;
    return (struct vec2){view->x + view->scale * (view->cosine * x - view->sine * y),
                         view->y - view->scale * (view->sine * x + view->cosine * y)};
}

struct colour draw_agent_colour(enum agent_kind kind)
{
    switch (kind) {
    case AGENT_PEDESTRIAN:
    case AGENT_CYCLIST:
    case AGENT_MOTORCYCLE:
    case AGENT_ANIMAL:
        return (struct colour){0xc8, 0x35, 0x2b, 1};
    case AGENT_OBJECT:
        return (struct colour){0x8a, 0x6d, 0x3b, 1};
    default:
        return (struct colour){0x55, 0x61, 0x6d, 1};
    }
}

static bool far(const struct draw_view *view, struct vec2 a, struct vec2 b)
{
    double reach = view->reach_m;
    return fmin(a.x_m, b.x_m) > view->center.x_m + reach ||
           fmax(a.x_m, b.x_m) < view->center.x_m - reach ||
           fmin(a.y_m, b.y_m) > view->center.y_m + reach ||
           fmax(a.y_m, b.y_m) < view->center.y_m - reach;
}

struct vec2 draw_lane_border(const struct lane *lane, uint32_t point, double side)
{
    const struct vec2 *line = lane->centre_line;
    uint32_t a = point > 0 ? point - 1 : 0;
    uint32_t b = point + 1 < lane->point_count ? point + 1 : point;
    double x_m = line[b].x_m - line[a].x_m;
    double y_m = line[b].y_m - line[a].y_m;
    double length_m = hypot(x_m, y_m);
    double shift = length_m > 0 ? side * lane->width_m[point] / 2 / length_m : 0;
    return (struct vec2){line[point].x_m - y_m * shift, line[point].y_m + x_m * shift};
}

static void draw_lane(struct painter *painter, const struct draw_view *view,
                      const struct lane *lane, bool surface_pass)
{
    double thin = fmax(0.14 * view->scale, 1);
    for (uint32_t i = 0; i + 1 < lane->point_count; i++) {
        struct vec2 corner[4];
        if (far(view, lane->centre_line[i], lane->centre_line[i + 1])) {
            continue;
        }
        for (uint32_t k = 0; k < 4; k++) { /* left, left ahead, right ahead, right */
            struct vec2 border = draw_lane_border(lane, k % 3 == 0 ? i : i + 1, k < 2 ? 1 : -1);
            corner[k] = draw_view_point(view, border);
        }
        if (surface_pass) {
            painter_polygon(painter, corner, 4, lane_colours[lane->kind]);
            /* The seam between two quads. */
            painter_line(painter, &corner[1], 2, 1, 0, lane_colours[lane->kind]);
            continue;
        }
        const struct vec2 right[2] = {corner[3], corner[2]};
        if (lane->left_marking != MARKING_NONE) {
            painter_line(painter, corner, 2, thin,
                         lane->left_marking == MARKING_DASHED ? 3 * view->scale : 0, marking);
        }
        if (lane->right_marking != MARKING_NONE) {
            painter_line(painter, right, 2, thin,
                         lane->right_marking == MARKING_DASHED ? 3 * view->scale : 0, marking);
        }
    }
}

static void draw_area(struct painter *painter, const struct draw_view *view,
                      const struct polygon *area, struct colour colour)
{
    struct vec2 *points = malloc(area->point_count * sizeof *points);
    if (points == NULL || area->point_count > POLYGON_POINTS_MAX) {
        painter->failed = painter->failed || points == NULL;
        free(points);
        return;
    }
    for (uint32_t i = 0; i < area->point_count; i++) {
        points[i] = draw_view_point(view, area->points[i]);
    }
    painter_polygon(painter, points, area->point_count, colour);
    free(points);
}

void draw_map(struct painter *painter, const struct draw_view *view, const struct map *map)
{
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        draw_area(painter, view, &map->drivable[i], lane_colours[LANE_DRIVING]);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < map->lane_count; i++) {
            draw_lane(painter, view, &map->lanes[i], pass == 0);
        }
    }
    for (uint32_t i = 0; i < map->crosswalk_count; i++) {
        draw_area(painter, view, &map->crosswalks[i], crosswalk);
    }
    for (uint32_t i = 0; i < map->surface_count; i++) {
        draw_area(painter, view, &map->surfaces[i].area, surface);
    }
}

void draw_signals(struct painter *painter, const struct draw_view *view, const struct map *map,
                  const uint8_t *lights)
{
    static const struct colour colours[TRAFFIC_LIGHT_COUNT] = {
        [TRAFFIC_LIGHT_RED] = {0xd0, 0x21, 0x21, 1},
        [TRAFFIC_LIGHT_RED_YELLOW] = {0xd8, 0x6b, 0x10, 1},
        [TRAFFIC_LIGHT_YELLOW] = {0xe6, 0xb0, 0x00, 1},
        [TRAFFIC_LIGHT_GREEN] = {0x1a, 0x9a, 0x4a, 1},
        [TRAFFIC_LIGHT_OFF] = {0x60, 0x66, 0x6c, 1},
    };
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        for (uint32_t k = 0; lights[i] < TRAFFIC_LIGHT_COUNT && k < signal->lane_count; k++) {
            struct vec2 line[2];
            drive_signals_line(map, signal, k, line);
            enum traffic_light shown = (enum traffic_light)lights[i];
            if (signal->sign == TRAFFIC_SIGN_STOP || signal->sign == TRAFFIC_SIGN_PRIORITY) {
                shown =
                    signal->sign == TRAFFIC_SIGN_STOP ? TRAFFIC_LIGHT_RED : TRAFFIC_LIGHT_YELLOW;
            }
            draw_path(painter, view, line, 2, fmax(0.8 * view->scale, 3),
                      signal->sign == TRAFFIC_SIGN_NONE ? 0 : 0.6 * view->scale, colours[shown]);
        }
    }
}

void draw_path(struct painter *painter, const struct draw_view *view, const struct vec2 *points,
               uint32_t count, double width, double dash, struct colour colour)
{
    struct vec2 *shown = malloc((size_t)(count > 0 ? count : 1) * sizeof *shown);
    if (shown == NULL) {
        painter->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        shown[i] = draw_view_point(view, points[i]);
    }
    painter_line(painter, shown, count, width, dash, colour);
    free(shown);
}

void draw_route_lanes(struct painter *painter, const struct draw_view *view,
                      const struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        const struct lane *lane = &scenario->map.lanes[scenario->ego.route[i]];
        draw_path(painter, view, lane->centre_line, lane->point_count, 1.6 * view->scale, 0,
                  draw_route);
    }
}

void draw_goal_area(struct painter *painter, const struct draw_view *view, const struct ego *ego)
{
    if (ego->has_goal && ego->goal_area.point_count > 0) {
        struct colour shade = draw_goal;
        shade.alpha = 0.25F;
        draw_area(painter, view, &ego->goal_area, shade);
    } else if (ego->has_goal) {
        painter_circle(painter, draw_view_point(view, ego->goal),
                       fmax(ego->goal_radius_m * view->scale, 3), 2, draw_goal);
    }
}

void draw_box(struct painter *painter, const struct draw_view *view, struct pose pose,
              double length_m, double width_m, struct colour fill, struct colour outline)
{
    struct box box =
        box_make(pose, fmax(length_m, 3 / view->scale), fmax(width_m, 3 / view->scale));
    struct vec2 corner[5];
    box_corners(&box, corner);
    for (int i = 0; i < 4; i++) {
        corner[i] = draw_view_point(view, corner[i]);
    }
    corner[4] = corner[0];
    if (fill.alpha > 0) {
        painter_polygon(painter, corner, 4, fill);
    }
    painter_line(painter, corner, 5, 1.3, 0, outline);
    /* Front-left and front-right are corners 0 and 3. */
    const struct vec2 nose[3] = {
        {corner[0].x_m * 0.7 + corner[1].x_m * 0.3, corner[0].y_m * 0.7 + corner[1].y_m * 0.3},
        {(corner[0].x_m + corner[3].x_m) / 2, (corner[0].y_m + corner[3].y_m) / 2},
        {corner[3].x_m * 0.7 + corner[2].x_m * 0.3, corner[3].y_m * 0.7 + corner[2].y_m * 0.3},
    };
    painter_line(painter, nose, 3, 1.3, 0, outline);
}
