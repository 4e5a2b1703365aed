/*
 * Lines of sight. See visible.h.
 */
#include "engine/sensors/visible.h"

#include "base/geom.h"

#include <math.h>

#define LOW_HEIGHT_M 0.6
/* A point lies this share of the way from the outline to the centre, so that a box that touches
 * another does not hide its whole edge. */
#define INWARDS 0.02

enum { OUTLINE_POINTS = 8 };

bool visible_is_low(const struct agent *agent)
{
    return agent->low || agent->height_m < LOW_HEIGHT_M;
}

/* Whether a box lies across a line of sight. */
static bool hides(const struct box *box, struct vec2 from, struct vec2 to)
{
    struct vec2 corners[4];
    box_corners(box, corners);
    for (int i = 0; i < 4; i++) {
        if (segments_intersect(corners[i], corners[(i + 1) % 4], from, to)) {
            return true;
        }
    }
    return false;
}

static bool in_sight(const struct scenario *scenario, const struct scene *scene, uint32_t agent,
                     struct vec2 sensor, struct vec2 point)
{
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent *other = &scenario->agents[i];
        const struct agent_state *state = &scene->agents[i];
        if (i == agent || !state->present || visible_is_low(other)) {
            continue;
        }
        struct box box = box_make(state->pose, other->length_m, other->width_m);
        if (hides(&box, sensor, point)) {
            return false;
        }
    }
    return true;
}

bool visible_agent(const struct scenario *scenario, const struct scene *scene, uint32_t agent)
{
    const struct agent_state *state = &scene->agents[agent];
    const struct agent *record = &scenario->agents[agent];
    struct vec2 sensor = {scene->ego.pose.x_m, scene->ego.pose.y_m};
    struct vec2 corners[4];
    if (!state->present) {
        return false;
    }
    struct box box = box_make(state->pose, record->length_m, record->width_m);
    box_corners(&box, corners);
    for (int i = 0; i < OUTLINE_POINTS; i++) {
        struct vec2 a = corners[i / 2];
        struct vec2 b = corners[(i / 2 + i % 2) % 4];
        struct vec2 edge = {(a.x_m + b.x_m) / 2, (a.y_m + b.y_m) / 2};
        struct vec2 point = {edge.x_m + INWARDS * (box.center.x_m - edge.x_m),
                             edge.y_m + INWARDS * (box.center.y_m - edge.y_m)};
        double dx_m = point.x_m - sensor.x_m;
        double dy_m = point.y_m - sensor.y_m;
        double visibility_m = scene->conditions.visibility_m;
        if (dx_m * dx_m + dy_m * dy_m <= visibility_m * visibility_m &&
            in_sight(scenario, scene, agent, sensor, point)) {
            return true;
        }
    }
    return false;
}
