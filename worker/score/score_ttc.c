/*
 * Time to collision after nuPlan's "TTC within bound": ego and agents go on at their present speed
 * and heading; the first 0.1 s step at which their boxes touch. See worker/METRICS.md.
 */
#include "worker/score/score_internal.h"

#include <math.h>

#define STOPPED_MPS 0.005
#define COS2_30_DEG 0.75
/* Steps and interval ends are compared with this slack, in steps, so that a touch that falls on a
 * step is found whatever the rounding of the world's rotation. */
#define STEP_SLACK 1e-9

struct interval {
    double low;
    double high;
};

/* Narrows an interval of time to when |start + rate * t| <= reach. */
static void narrow(struct interval *when, double start, double rate, double reach)
{
    if (rate == 0) {
        if (fabs(start) > reach) {
            *when = (struct interval){INFINITY, -INFINITY};
        }
        return;
    }
    double t0 = (-reach - start) / rate;
    double t1 = (reach - start) / rate;
    when->low = fmax(when->low, fmin(t0, t1));
    when->high = fmin(when->high, fmax(t0, t1));
}

/* Both axes of box a, for b at `offset` from it moving away with `rate`. */
static void narrow_by_axes_of(struct interval *when, const struct box *a, const struct box *b,
                              struct vec2 offset, struct vec2 rate)
{
    double c = fabs(a->cos_heading * b->cos_heading + a->sin_heading * b->sin_heading);
    double s = fabs(a->cos_heading * b->sin_heading - a->sin_heading * b->cos_heading);
    narrow(when, offset.x_m * a->cos_heading + offset.y_m * a->sin_heading,
           rate.x_m * a->cos_heading + rate.y_m * a->sin_heading,
           a->half_length_m + b->half_length_m * c + b->half_width_m * s);
    narrow(when, -offset.x_m * a->sin_heading + offset.y_m * a->cos_heading,
           -rate.x_m * a->sin_heading + rate.y_m * a->cos_heading,
           a->half_width_m + b->half_length_m * s + b->half_width_m * c);
}

double ttc_boxes_s(const struct box *a, struct vec2 a_velocity_mps, const struct box *b,
                   struct vec2 b_velocity_mps)
{
    struct interval when = {TTC_STEP_S, TTC_STEPS * TTC_STEP_S};
    struct vec2 offset = {b->center.x_m - a->center.x_m, b->center.y_m - a->center.y_m};
    struct vec2 rate = {b_velocity_mps.x_m - a_velocity_mps.x_m,
                        b_velocity_mps.y_m - a_velocity_mps.y_m};
    narrow_by_axes_of(&when, a, b, offset, rate);
    narrow_by_axes_of(&when, b, a, offset, rate);
    if (when.low > when.high + STEP_SLACK) {
        return INFINITY;
    }
    double step = ceil(when.low / TTC_STEP_S - STEP_SLACK);
    return step <= when.high / TTC_STEP_S + STEP_SLACK ? step * TTC_STEP_S : INFINITY;
}

/* nuPlan: an agent counts when it is ahead (bearing below 30 degrees from the rear axle); beside
 * ego only while ego is in several lanes or in a junction; behind (above 150 degrees) never. */
static bool relevant(struct score *score, const struct agent_view *agent)
{
    const struct ego_view *ego = &score->ego;
    double x_m = agent->state->pose.x_m - ego->rear_axle.x_m;
    double y_m = agent->state->pose.y_m - ego->rear_axle.y_m;
    double along_m = x_m * ego->box.cos_heading + y_m * ego->box.sin_heading;
    bool in_cone = along_m * along_m > COS2_30_DEG * (x_m * x_m + y_m * y_m);
    if (in_cone) {
        return along_m > 0;
    }
    return ego_in_several_lanes(score) || ego_in_intersection(score);
}

double ttc_agent_s(struct score *score, struct agent_view *agent)
{
    const struct ego_view *ego = &score->ego;
    if (ego->speed_mps <= STOPPED_MPS) {
        return INFINITY;
    }
    /* The bounding circles cannot meet within the horizon. */
    double speed_mps = agent->state->speed_mps;
    double bound_m = agent->reach_m + (ego->speed_mps + fabs(speed_mps)) * (TTC_STEPS * TTC_STEP_S);
    if (agent->distance2_m2 > bound_m * bound_m || !relevant(score, agent)) {
        return INFINITY;
    }
    const struct box *box = agent_view_box(agent);
    struct vec2 velocity = {speed_mps * box->cos_heading, speed_mps * box->sin_heading};
    return ttc_boxes_s(&ego->box, ego->velocity, box, velocity);
}
