/*
 * Inputs of token traffic's network, in the driver's own frame, of the order of 1. See tokens.h.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/sensors/foresee.h"
#include "engine/worlds/tokens.h"

#include <math.h>
#include <string.h>

enum { NEAREST = 6, WAY_POINTS = 6 };

#define REACH_M 150.0
#define AHEAD_M 120.0
#define BEHIND_M 60.0
#define BESIDE_M 1.9 /* of the driver's own line: in its way */
#define CAP_MOST_MPS 40.0
#define CAP_M 60
#define UNPOSTED_MPS (50.0 / 3.6)

static const double way_m[WAY_POINTS] = {5, 10, 20, 30, 45, 60};

struct body {
    double x_m, y_m;
    double ux, uy;
    double speed_mps;
    double accel_mps2;
    double half_length_m;
    bool present;
};

/* Somebody in the driver's own frame. */
struct nearby {
    double distance2;
    double ahead_m, left_m;
    double ahead_mps, left_mps; /* relative */
};

struct look {
    const struct traffic_plan *plan;
    const struct scene *scene;
    const struct agent_motion *motion;
    const struct agent_motion *own;
    const struct track *track;
    struct body self;
    double ahead_m; /* gaps along the way */
    double behind_m;
    struct body ahead;
    struct body behind;
    uint32_t near_count;
    struct nearby near[NEAREST];
};

struct row {
    uint32_t count;
    float *x;
};

static void put(struct row *row, double value, double most)
{
    row->x[row->count++] = (float)dmath_clamp(value, -most, most);
}

/* Agent i; behind the last agent: ego. */
static struct body body_of(const struct look *look, uint32_t i)
{
    const struct scenario *scenario = look->plan->scenario;
    struct body out;
    if (i == look->scene->agent_count) {
        const struct ego_state *ego = &look->scene->ego;
        out = (struct body){ego->pose.x_m,
                            ego->pose.y_m,
                            0,
                            0,
                            ego->speed_mps,
                            ego->accel_mps2,
                            scenario->ego.length_m / 2,
                            true};
        dmath_sincos(ego->pose.heading_rad, &out.uy, &out.ux);
        return out;
    }
    const struct agent_state *state = &look->scene->agents[i];
    return (struct body){state->pose.x_m,
                         state->pose.y_m,
                         look->motion[i].ux,
                         look->motion[i].uy,
                         state->speed_mps,
                         state->accel_mps2,
                         scenario->agents[i].length_m / 2,
                         state->present};
}

/* Insertion by distance. */
static void note_near(struct look *look, struct nearby nearby)
{
    uint32_t k = look->near_count;
    if (k == NEAREST) {
        if (nearby.distance2 >= look->near[NEAREST - 1].distance2) {
            return;
        }
        k--;
    } else {
        look->near_count++;
    }
    for (; k > 0 && look->near[k - 1].distance2 > nearby.distance2; k--) {
        look->near[k] = look->near[k - 1];
    }
    look->near[k] = nearby;
}

static void note_on_way(struct look *look, const struct body *other, const struct nearby *nearby)
{
    const struct body *self = &look->self;
    struct track_position at = track_project_near(
        look->track, (struct vec2){other->x_m, other->y_m}, look->own->s_m + nearby->ahead_m);
    double way = at.s_m - look->own->s_m;
    double apart_m = other->half_length_m + self->half_length_m;
    if (fabs(at.offset_m - look->own->offset_m) > BESIDE_M ||
        at.ux * other->ux + at.uy * other->uy < 0.5 ||
        fabs(way) > 1.3 * sqrt(nearby->distance2) + 3.0) {
        return;
    }
    if (way > 0.0 && way - apart_m < look->ahead_m) {
        look->ahead_m = way - apart_m;
        look->ahead = *other;
    } else if (way < 0.0 && -way - apart_m < look->behind_m) {
        look->behind_m = -way - apart_m;
        look->behind = *other;
    }
}

static void look_around(struct look *look, uint32_t self_index)
{
    const struct body *self = &look->self;
    for (uint32_t j = 0; j <= look->scene->agent_count; j++) {
        struct body other = body_of(look, j);
        double dx = other.x_m - self->x_m;
        double dy = other.y_m - self->y_m;
        double distance2 = dx * dx + dy * dy;
        if (j == self_index || !other.present || distance2 > REACH_M * REACH_M) {
            continue;
        }
        double vx = other.speed_mps * other.ux - self->speed_mps * self->ux;
        double vy = other.speed_mps * other.uy - self->speed_mps * self->uy;
        struct nearby nearby = {distance2, dx * self->ux + dy * self->uy,
                                dy * self->ux - dx * self->uy, vx * self->ux + vy * self->uy,
                                vy * self->ux - vx * self->uy};
        note_near(look, nearby);
        note_on_way(look, &other, &nearby);
    }
}

static void put_own(struct row *row, const struct look *look, const struct token_driver *driver,
                    uint32_t i, uint32_t since_ticks, double idm_mps2)
{
    const struct scenario *scenario = look->plan->scenario;
    const struct track *track = look->track;
    double s_m = look->own->s_m;
    int32_t lane = track_lane_at(track, s_m);
    const struct lane *at = lane >= 0 ? &scenario->map.lanes[lane] : NULL;
    double limit_mps = at != NULL && at->speed_limit_mps > 0 ? at->speed_limit_mps : UNPOSTED_MPS;
    double desired_mps = look->plan->agents[i].driver.desired_speed_mps;
    double v = look->self.speed_mps;
    double cap_mps = CAP_MOST_MPS;
    double least_mps = CAP_MOST_MPS;
    for (int k = 0; track->speed_cap_mps != NULL && k <= CAP_M; k += 10) {
        double there_mps = (double)track->speed_cap_mps[track_sample_index(track, s_m + k)];
        cap_mps = k == 0 ? there_mps : cap_mps;
        least_mps = dmath_min(least_mps, there_mps);
    }
    double ratio2 = v / desired_mps * (v / desired_mps);
    double free_mps2 = look->plan->agents[i].driver.accel_max_mps2 * (1.0 - ratio2 * ratio2);
    double seen_mps2 = since_ticks == 0 ? driver->first_mps2 : look->self.accel_mps2;
    put(row, v / 20, 3);
    put(row, desired_mps / 20, 3);
    put(row, limit_mps / 20, 3);
    put(row, cap_mps / 20, 2);
    put(row, least_mps / 20, 2);
    put(row, seen_mps2 / 2, 6);
    put(row, idm_mps2 / 2, 6);
    put(row, driver->habit_mps2 / 2, 6);
    put(row, driver->first_mps / 20, 3);
    put(row, driver->first_mps2 / 2, 6);
    put(row, driver->first_habit_mps2 / 2, 6);
    put(row, since_ticks / 50.0, 1);
    put(row, look->self.half_length_m / 5, 3);
    put(row, scenario->agents[i].width_m / 2, 3);
    put(row, look->own->offset_m, 2);
    put(row, (free_mps2 - idm_mps2) / 2, 3);
    put(row, (desired_mps - v) / 5, 3);
    put(row, at != NULL && at->left >= 0 && !at->left_opposite, 1);
    put(row, at != NULL && at->right >= 0 && !at->right_opposite, 1);
}

static void put_others(struct row *row, const struct look *look)
{
    double v = look->self.speed_mps;
    bool ahead = look->ahead.present;
    bool behind = look->behind.present;
    put(row, ahead, 1);
    put(row, look->ahead_m / 50, 3);
    put(row, ahead ? (look->ahead.speed_mps - v) / 10 : 0, 2);
    put(row, ahead ? look->ahead.accel_mps2 / 2 : 0, 2);
    put(row, look->ahead_m / dmath_max(v, 1) / 3, 2);
    put(row, behind, 1);
    put(row, behind ? look->behind_m / 50 : 0, 2);
    put(row, behind ? (look->behind.speed_mps - v) / 10 : 0, 2);
    for (uint32_t k = 0; k < NEAREST; k++) {
        static const struct nearby nobody;
        const struct nearby *near = k < look->near_count ? &look->near[k] : &nobody;
        put(row, k < look->near_count, 1);
        put(row, near->ahead_m / 50, 3);
        put(row, near->left_m / 20, 3);
        put(row, near->ahead_mps / 10, 3);
        put(row, near->left_mps / 10, 3);
    }
}

/* The next stop line, and the way ahead. */
static void put_way(struct row *row, const struct look *look)
{
    const struct track_stops *stops = &look->plan->stops;
    const struct track_stop *next = NULL;
    double gap_m = AHEAD_M;
    int32_t track = look->own->track;
    for (uint32_t k = stops->first != NULL ? stops->first[track] : 0;
         stops->first != NULL && k < stops->first[track + 1]; k++) {
        double there_m = stops->stops[k].s_m - look->own->s_m - look->self.half_length_m;
        if (there_m > 0.0 && there_m < gap_m) {
            gap_m = there_m;
            next = &stops->stops[k];
        }
    }
    enum traffic_light light = next != NULL
                                   ? (enum traffic_light)look->scene->signal_light[next->signal]
                                   : (enum traffic_light)0;
    put(row, next != NULL, 1);
    put(row, next != NULL ? gap_m / 50 : 0, 3);
    put(row, next != NULL && (signal_stops(light) || light == TRAFFIC_LIGHT_YELLOW), 1);
    put(row, next != NULL && look->plan->scenario->map.signals[next->signal].sign != 0, 1);
    for (int k = 0; k < WAY_POINTS; k++) {
        struct track_pose at = track_at(look->track, look->own->s_m + way_m[k]);
        double dx = at.x_m - look->self.x_m;
        double dy = at.y_m - look->self.y_m;
        put(row, (dx * look->self.ux + dy * look->self.uy) / 50, 3);
        put(row, (dy * look->self.ux - dx * look->self.uy) / 50, 3);
    }
}

void token_traffic_inputs(const struct token_traffic *traffic, const struct scene *scene,
                          const struct agent_motion *motion, double idm_mps2, uint32_t i,
                          float *inputs)
{
    const struct traffic_plan *plan = foresight_traffic(traffic->foresight);
    struct row row = {0, inputs};
    struct look look = {
        .plan = plan,
        .scene = scene,
        .motion = motion,
        .own = &motion[i],
        .track = plan->tracks[motion[i].track],
        .ahead_m = AHEAD_M,
        .behind_m = BEHIND_M,
    };
    look.self = body_of(&look, i);
    look_around(&look, i);
    put_own(&row, &look, &traffic->drivers[i], i,
            scene->tick - foresight_begins(traffic->foresight), idm_mps2);
    put_others(&row, &look);
    put_way(&row, &look);
    CHECK(row.count == TOKENS_INPUTS);
}
