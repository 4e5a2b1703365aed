/*
 * CommonRoad import: agents of one scenario, made of the file's obstacles.
 *
 * A scenario begins at its planning problem's time: motions are cut to its horizon and their times
 * count from its start. Of more obstacles than a scenario holds, those nearest to ego's start stay.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/commonroad.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a log beyond the horizon, at most, unless a sample is there. */
static const double TAIL_S = 1.0;
static const double BOUNDARY_HANDICAP_M = 1e6;

struct candidate {
    const struct cr_obstacle *obstacle;
    double distance_m; /* closest to ego's start within the horizon */
    uint32_t index;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    if (left->distance_m != right->distance_m) {
        return left->distance_m < right->distance_m ? -1 : 1;
    }
    return (left->index > right->index) - (left->index < right->index);
}

static int compare_indices(const void *a, const void *b)
{
    const struct candidate *left = a;
    const struct candidate *right = b;
    return (left->index > right->index) - (left->index < right->index);
}

static double closest_m(const struct cr_obstacle *obstacle, double start_s, double end_s,
                        struct pose ego)
{
    double closest = INFINITY;
    if (!obstacle->moves) {
        double x = obstacle->pose.x_m - ego.x_m;
        double y = obstacle->pose.y_m - ego.y_m;
        return sqrt(x * x + y * y) + (obstacle->boundary ? BOUNDARY_HANDICAP_M : 0);
    }
    for (uint32_t i = 0; i < obstacle->point_count; i++) {
        const struct trajectory_point *p = &obstacle->points[i];
        if (p->t_s >= start_s - 1e-9 && p->t_s <= end_s) {
            double x = p->x_m - ego.x_m;
            double y = p->y_m - ego.y_m;
            closest = dmath_min(closest, sqrt(x * x + y * y));
        }
    }
    return closest;
}

static struct trajectory_point interpolate(const struct trajectory_point *a,
                                           const struct trajectory_point *b, double t_s)
{
    double t = (t_s - a->t_s) / (b->t_s - a->t_s);
    return (struct trajectory_point){
        .t_s = t_s,
        .x_m = a->x_m + t * (b->x_m - a->x_m),
        .y_m = a->y_m + t * (b->y_m - a->y_m),
        .heading_rad = a->heading_rad + t * dmath_wrap_angle(b->heading_rad - a->heading_rad),
        .speed_mps = a->speed_mps + t * (b->speed_mps - a->speed_mps),
    };
}

/* The samples from start_s to the first one at or after end_s; times from start_s. */
static enum status cut_motion(struct cr_context *context, const struct cr_obstacle *obstacle,
                              double start_s, double end_s, struct trajectory *out)
{
    uint32_t first = 0;
    uint32_t last = obstacle->point_count - 1;
    while (first < last && obstacle->points[first].t_s < start_s - 1e-9) {
        first++;
    }
    while (last > first && obstacle->points[last - 1].t_s >= end_s - 1e-9) {
        last--;
    }
    if (obstacle->points[first].t_s < start_s - 1e-9 || obstacle->points[first].t_s > end_s) {
        return STATUS_OK; /* not there within the horizon */
    }
    bool enters = first > 0 && obstacle->points[first].t_s > start_s + 1e-9;
    uint32_t count = last - first + 1 + (enters ? 1 : 0);
    struct trajectory_point *points = cr_alloc(context, count + 1, sizeof *points);
    if (points == NULL) {
        return STATUS_LIMIT;
    }
    uint32_t at = 0;
    if (enters) {
        points[at++] = interpolate(&obstacle->points[first - 1], &obstacle->points[first], start_s);
    }
    memcpy(points + at, obstacle->points + first, (last - first + 1) * sizeof *points);
    if (last > first && points[at + last - first].t_s > end_s + TAIL_S) {
        points[at + last - first] =
            interpolate(&obstacle->points[last - 1], &obstacle->points[last], end_s + TAIL_S);
    }
    if (count == 1) { /* its last moment; a document needs two samples */
        points[1] = points[0];
        points[1].t_s += context->dt_s;
        count = 2;
    }
    uint32_t stride = (count + LIMIT_TRAJECTORY_POINTS - 2) / (LIMIT_TRAJECTORY_POINTS - 1);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i % stride == 0 || i + 1 == count) {
            points[kept] = points[i];
            points[kept].t_s = dmath_max(points[i].t_s - start_s, 0);
            kept++;
        }
    }
    if (stride > 1) {
        cr_note(context, CR_NOTE_SAMPLES_THINNED);
    }
    *out = (struct trajectory){kept, points};
    return STATUS_OK;
}

static struct idm driver_of(const struct agent *agent)
{
    double fastest = 0;
    for (uint32_t i = 0; i < agent->trajectory.point_count; i++) {
        fastest = dmath_max(fastest, agent->trajectory.points[i].speed_mps);
    }
    return (struct idm){
        .desired_speed_mps = fastest >= 0.1 ? fastest : 50 * MPS_PER_KPH,
        .time_headway_s = 1.5,
        .min_gap_m = 2.0,
        .accel_max_mps2 = 1.5,
        .decel_comfort_mps2 = 2.0,
        .politeness = 0.3,
        .lane_changes = true,
        .sees_ego = true,
    };
}

static enum status make_agent(struct cr_context *context, const struct cr_obstacle *obstacle,
                              double start_s, double end_s, struct scenario *scenario)
{
    struct agent *agent = &scenario->agents[scenario->agent_count];
    struct trajectory motion = {0};
    if (obstacle->moves) {
        TRY(cut_motion(context, obstacle, start_s, end_s, &motion));
        if (motion.point_count == 0) {
            return STATUS_OK;
        }
    }
    memcpy(agent->id, obstacle->id, sizeof agent->id);
    agent->kind = obstacle->kind;
    agent->length_m = obstacle->length_m;
    agent->width_m = obstacle->width_m;
    agent->height_m = obstacle->height_m;
    agent->behaviour = obstacle->moves ? BEHAVIOUR_REPLAY : BEHAVIOUR_STATIC;
    agent->pose = obstacle->pose;
    agent->trajectory = motion;
    if (obstacle->moves) {
        const struct trajectory_point *p = &motion.points[0];
        agent->pose = (struct pose){p->x_m, p->y_m, p->heading_rad};
        agent->speed_mps = p->speed_mps;
    }
    agent->idm = driver_of(agent);
    scenario->agent_count++;
    return STATUS_OK;
}

enum status cr_agents_make(struct cr_context *context, const struct cr_obstacles *obstacles,
                           double start_s, struct scenario *scenario)
{
    double end_s = start_s + scenario->horizon_ticks * TICK_S;
    struct candidate *candidates = cr_alloc(context, obstacles->count, sizeof *candidates);
    scenario->agents = cr_alloc(context, LIMIT_AGENTS, sizeof *scenario->agents);
    if (candidates == NULL || scenario->agents == NULL) {
        return STATUS_LIMIT;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < obstacles->count; i++) {
        double distance = closest_m(&obstacles->items[i], start_s, end_s, scenario->ego.pose);
        if (isfinite(distance)) {
            candidates[count++] = (struct candidate){&obstacles->items[i], distance, i};
        }
    }
    if (count > LIMIT_AGENTS) {
        qsort(candidates, count, sizeof *candidates, compare_candidates);
        for (uint32_t i = LIMIT_AGENTS; i < count; i++) {
            cr_note(context, CR_NOTE_FAR_AGENT);
        }
        count = LIMIT_AGENTS;
        qsort(candidates, count, sizeof *candidates, compare_indices);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(make_agent(context, candidates[i].obstacle, start_s, end_s, scenario));
    }
    return STATUS_OK;
}
