/*
 * A scene on a painter: the road from above, boxes of vehicles, paths; in metres, through a view.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_SCENE_H
#define SWERVE_REPORT_DRAW_DRAW_SCENE_H

#include "report/draw/painter.h"
#include "schemas/scenario.h"

/* Metres to pixels: turned about `center`, which is shown at (x, y). */
struct draw_view {
    struct vec2 center;
    double sine, cosine; /* of the turn; 0, 1: east to the right */
    double scale;        /* pixels a metre */
    double x, y;
    double reach_m; /* nothing farther from the centre is seen */
};

/* A view of `width` x `height` pixels from (left, 0). turn_rad: pi/2 - heading has a heading up. */
struct draw_view draw_view_make(struct vec2 center, double turn_rad, double scale, double x,
                                double y, double width, double height);
struct vec2 draw_view_point(const struct draw_view *view, struct vec2 place);

extern const struct colour draw_ground, draw_ink, draw_soft, draw_ego, draw_goal, draw_route,
    draw_contact, draw_guardian;

/* Of an agent: road users that are easily hurt in red, vehicles grey, things brown. */
struct colour draw_agent_colour(enum agent_kind kind);

/* A point of a lane's left (side 1) or right (-1) border: its centre line moved to that side. */
struct vec2 draw_lane_border(const struct lane *lane, uint32_t point, double side);

void draw_map(struct painter *painter, const struct draw_view *view, const struct map *map);
/* The stop lines of its signals, in the colours of their lights[signal_count]; one that is not
 * known (TRAFFIC_LIGHT_COUNT) is left out. */
void draw_signals(struct painter *painter, const struct draw_view *view, const struct map *map,
                  const uint8_t *lights);
void draw_route_lanes(struct painter *painter, const struct draw_view *view,
                      const struct scenario *scenario);
void draw_goal_area(struct painter *painter, const struct draw_view *view, const struct ego *ego);
void draw_path(struct painter *painter, const struct draw_view *view, const struct vec2 *points,
               uint32_t count, double width, double dash, struct colour colour);
/* With a mark where it heads. alpha of fill 0: an outline alone. */
void draw_box(struct painter *painter, const struct draw_view *view, struct pose pose,
              double length_m, double width_m, struct colour fill, struct colour outline);

#endif
