/*
 * Extract: one tick of tracking. Predict every box by its velocity; draw the returns that the
 * predicted scene would give (occlusion included); compare them with the generated ones inside each
 * agent's gate. The velocity channels there correct the velocity, the difference of the two
 * centroids corrects the place, so that a half-seen box is not dragged towards its visible side.
 * Only the returns of the face that looks most at the sensor count: a long side that is just coming
 * into view would move the centroid by metres. Agents with no visible return keep their velocity.
 */
#include "engine/sensors/extract.h"

#include "base/dmath.h"
#include "base/units.h"
#include "engine/sensors/layout_internal.h"

#include <math.h>
#include <stddef.h>

#define GATE_M 1.0            /* around the predicted box */
#define FACE_DEPTH_M 1.0      /* returns lie this deep behind a face */
#define VISIBLE_CELLS 0.4     /* expected returns that count as in view */
#define SEEN_SHARE 0.25       /* of the expected returns, for "it is there" */
#define PLACE_GAIN 0.5        /* of the centroids' difference */
#define PLACE_STEP_MAX_M 0.75 /* per tick */
#define VELOCITY_GAIN 0.5
#define TURN_GAIN 0.3
#define TURN_SPEED_MIN_MPS 1.0 /* slower ones keep their heading */

/* Returns in one gate, in the anchor's frame. */
struct returns {
    double weight; /* cells */
    double u_m, v_m;
    double velocity_u, velocity_v;
};

/* A box in the anchor's frame, and which of the returns are its own. */
struct body {
    struct box box;
    double reach_m;   /* radius of the circumscribed circle */
    struct vec2 face; /* unit vector towards the face that looks most at the sensor */
    double face_m;    /* from the centre to FACE_DEPTH_M behind that face */
    bool vru;
};

static bool is_vru(enum agent_kind kind)
{
    return kind == AGENT_PEDESTRIAN || kind == AGENT_CYCLIST || kind == AGENT_MOTORCYCLE ||
           kind == AGENT_ANIMAL;
}

/* Whether a sensor sees at least so much of each agent. */
static void find_visible(const struct window_planes *expected, uint32_t agent_count, bool *visible)
{
    uint32_t sum[LIMIT_AGENTS + 1] = {0};
    for (int32_t cell = 0; cell < WINDOW_PLANE; cell++) {
        sum[expected->owner[cell]] += expected->occupancy[cell];
    }
    for (uint32_t i = 0; i < agent_count; i++) {
        visible[i] = sum[i + 1] >= VISIBLE_CELLS * 255.0;
    }
}

void extract_start(const struct prepared *prepared, const struct anchor *anchor,
                   struct window window, struct window_planes *expected, struct scene *scene,
                   struct extract_track *tracks)
{
    bool visible[LIMIT_AGENTS];
    layout_planes(prepared, scene, anchor, window, expected);
    find_visible(expected, scene->agent_count, visible);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *agent = &scene->agents[i];
        double s;
        double c;
        dmath_sincos(agent->pose.heading_rad, &s, &c);
        tracks[i] = (struct extract_track){agent->speed_mps * c, agent->speed_mps * s, 0};
        scene->agents[i].present = agent->present && visible[i];
    }
}

static struct body body_of(const struct anchor *anchor, const struct agent *agent, struct pose pose,
                           struct vec2 sensor)
{
    double l = agent->length_m;
    double w = agent->width_m;
    struct body body = {
        .box = box_make(anchor_local(anchor, pose), l, w),
        .reach_m = 0.5 * sqrt(l * l + w * w),
        .vru = is_vru(agent->kind),
    };
    double c = body.box.cos_heading;
    double s = body.box.sin_heading;
    double dx = sensor.x_m - body.box.center.x_m;
    double dy = sensor.y_m - body.box.center.y_m;
    double along = c * dx + s * dy;
    double across = c * dy - s * dx;
    if (fabs(along) - l / 2 >= fabs(across) - w / 2) {
        double sign = along < 0.0 ? -1.0 : 1.0;
        body.face = (struct vec2){sign * c, sign * s};
        body.face_m = l / 2 - FACE_DEPTH_M;
    } else {
        double sign = across < 0.0 ? -1.0 : 1.0;
        body.face = (struct vec2){-sign * s, sign * c};
        body.face_m = w / 2 - FACE_DEPTH_M;
    }
    return body;
}

static bool behind_face(const struct body *body, struct vec2 at)
{
    double x = at.x_m - body->box.center.x_m;
    double y = at.y_m - body->box.center.y_m;
    return x * body->face.x_m + y * body->face.y_m < body->face_m;
}

/* First and last cell whose centre lies within reach of `center_m`; empty when last < first. */
static void cell_range(double center_m, double reach_m, int32_t patch, int32_t *first,
                       int32_t *last)
{
    double low = (center_m - reach_m - patch * WINDOW_PATCH_M) / BEV_CELL_M;
    double high = (center_m + reach_m - patch * WINDOW_PATCH_M) / BEV_CELL_M;
    *first = (int32_t)dmath_clamp(floor(low), 0, WINDOW_CELLS);
    *last = (int32_t)dmath_clamp(floor(high), -1, WINDOW_CELLS - 1);
}

/* Whether a point in the gate of `self` lies in another body's box. */
static bool taken(const struct body *bodies, const uint32_t *near, uint32_t near_count,
                  struct vec2 point)
{
    for (uint32_t k = 0; k < near_count; k++) {
        if (box_contains(&bodies[near[k]].box, point)) {
            return true;
        }
    }
    return false;
}

static void add_return(double weight, struct vec2 at, struct returns *sum)
{
    sum->weight += weight;
    sum->u_m += weight * at.x_m;
    sum->v_m += weight * at.y_m;
}

/* A cell of the frame, as far as it is of the body's sort. */
static void add_generated(const uint8_t *bev, int32_t row, int32_t col, bool vru, struct vec2 at,
                          struct returns *sum)
{
    const uint8_t *position =
        bev + ((size_t)(row >> 1) * WINDOW_SIDE + (size_t)(col >> 1)) * FRAME_BEV_CHANNELS;
    int sub = 2 * (row & 1) + (col & 1);
    int all = position[FRAME_OCCUPANCY + sub];
    int soft = position[FRAME_VRU + sub];
    double weight = (vru ? soft : all > soft ? all - soft : 0) / 255.0;
    add_return(weight, at, sum);
    sum->velocity_u += weight * (position[FRAME_VELOCITY] - 128) / 4.0;
    sum->velocity_v += weight * (position[FRAME_VELOCITY + 1] - 128) / 4.0;
}

static void average(struct returns *sum)
{
    if (sum->weight > 0.0) {
        sum->u_m /= sum->weight;
        sum->v_m /= sum->weight;
        sum->velocity_u /= sum->weight;
        sum->velocity_v /= sum->weight;
    }
}

/* Generated and expected returns in the gate of agent `self`. */
static void gather(const struct body *bodies, const uint32_t *near, uint32_t near_count,
                   uint32_t self, struct window window, const uint8_t *generated,
                   const struct window_planes *expected, struct returns *found, struct returns *due)
{
    const struct body *body = &bodies[self];
    struct box gate = body->box;
    int32_t row0, row1, col0, col1;
    gate.half_length_m += GATE_M;
    gate.half_width_m += GATE_M;
    cell_range(gate.center.x_m, body->reach_m + 2 * GATE_M, window.i, &row0, &row1);
    cell_range(gate.center.y_m, body->reach_m + 2 * GATE_M, window.j, &col0, &col1);
    *found = *due = (struct returns){0};
    for (int32_t row = row0; row <= row1; row++) {
        for (int32_t col = col0; col <= col1; col++) {
            size_t cell = (size_t)row * WINDOW_CELLS + (size_t)col;
            struct vec2 at = {
                WINDOW_PATCH_M * window.i + (row + 0.5) * BEV_CELL_M,
                WINDOW_PATCH_M * window.j + (col + 0.5) * BEV_CELL_M,
            };
            if (behind_face(body, at)) {
                continue;
            }
            if (expected->owner[cell] == self + 1) {
                add_return(expected->occupancy[cell] / 255.0, at, due);
            }
            if (box_contains(&gate, at) && !taken(bodies, near, near_count, at)) {
                add_generated(generated, row, col, body->vru, at, found);
            }
        }
    }
    average(found);
    average(due);
}

/* Turns towards the direction of motion; a reversing vehicle keeps its rear in front. */
static void turn(struct agent_state *agent, const struct extract_track *track)
{
    double s;
    double c;
    dmath_sincos(agent->pose.heading_rad, &s, &c);
    double along = track->vx_mps * c + track->vy_mps * s;
    double speed = sqrt(track->vx_mps * track->vx_mps + track->vy_mps * track->vy_mps);
    if (speed >= TURN_SPEED_MIN_MPS) {
        double sign = along < 0.0 ? -1.0 : 1.0;
        double heading = dmath_atan2(sign * track->vy_mps, sign * track->vx_mps);
        double error = dmath_wrap_angle(heading - agent->pose.heading_rad);
        agent->pose.heading_rad = dmath_wrap_angle(agent->pose.heading_rad + TURN_GAIN * error);
        dmath_sincos(agent->pose.heading_rad, &s, &c);
        along = track->vx_mps * c + track->vy_mps * s;
    }
    agent->accel_mps2 = (along - agent->speed_mps) / TICK_S;
    agent->speed_mps = along;
}

/* Corrects one agent by what its gate shows; returns how far the returns were off. */
static double correct(const struct anchor *anchor, const struct returns *found,
                      const struct returns *due, struct agent_state *agent,
                      struct extract_track *track)
{
    double c = anchor->cos_heading;
    double s = anchor->sin_heading;
    double vx = c * found->velocity_u - s * found->velocity_v;
    double vy = s * found->velocity_u + c * found->velocity_v;
    double du = found->u_m - due->u_m;
    double dv = found->v_m - due->v_m;
    double off_m = sqrt(du * du + dv * dv);
    double gain = PLACE_GAIN;
    if (gain * off_m > PLACE_STEP_MAX_M) {
        gain = PLACE_STEP_MAX_M / off_m;
    }
    agent->pose.x_m += gain * (c * du - s * dv);
    agent->pose.y_m += gain * (s * du + c * dv);
    track->vx_mps += VELOCITY_GAIN * (vx - track->vx_mps);
    track->vy_mps += VELOCITY_GAIN * (vy - track->vy_mps);
    return off_m;
}

/* Every present agent to its predicted place; its body there. */
static void predict(const struct scenario *scenario, const struct anchor *anchor,
                    struct scene *scene, const struct extract_track *tracks, struct body *bodies)
{
    struct pose ego = anchor_local(anchor, scene->ego.pose);
    struct vec2 sensor = {ego.x_m, ego.y_m};
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct agent_state *agent = &scene->agents[i];
        if (agent->present && scenario->agents[i].behaviour != BEHAVIOUR_STATIC) {
            agent->pose.x_m += tracks[i].vx_mps * TICK_S;
            agent->pose.y_m += tracks[i].vy_mps * TICK_S;
        }
        bodies[i] = body_of(anchor, &scenario->agents[i], agent->pose, sensor);
    }
}

static uint32_t neighbours(const struct scene *scene, const struct body *bodies, uint32_t self,
                           uint32_t *near)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < scene->agent_count; k++) {
        double du = bodies[k].box.center.x_m - bodies[self].box.center.x_m;
        double dv = bodies[k].box.center.y_m - bodies[self].box.center.y_m;
        double reach_m = bodies[k].reach_m + bodies[self].reach_m + 2 * GATE_M;
        if (k != self && scene->agents[k].present && du * du + dv * dv < reach_m * reach_m) {
            near[count++] = k;
        }
    }
    return count;
}

struct extract_frame_stats extract_step(const struct prepared *prepared,
                                        const struct anchor *anchor, struct window window,
                                        const uint8_t *frame_bev, struct window_planes *expected,
                                        struct scene *scene, struct extract_track *tracks)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct extract_frame_stats frame_stats = {0};
    struct body bodies[LIMIT_AGENTS];
    uint32_t near[LIMIT_AGENTS];
    predict(scenario, anchor, scene, tracks, bodies);
    layout_planes(prepared, scene, anchor, window, expected);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct agent_state *agent = &scene->agents[i];
        struct extract_track *track = &tracks[i];
        if (!agent->present) {
            continue;
        }
        struct returns found;
        struct returns due;
        bool is_static = scenario->agents[i].behaviour == BEHAVIOUR_STATIC;
        uint32_t near_count = neighbours(scene, bodies, i, near);
        gather(bodies, near, near_count, i, window, frame_bev, expected, &found, &due);
        if (due.weight >= VISIBLE_CELLS && found.weight >= SEEN_SHARE * due.weight) {
            track->missed_ticks = 0;
            if (!is_static) {
                frame_stats.jump_m =
                    dmath_max(frame_stats.jump_m, correct(anchor, &found, &due, agent, track));
            }
        } else if (due.weight >= VISIBLE_CELLS) {
            track->missed_ticks++;
            frame_stats.vanished += track->missed_ticks == EXTRACT_LOST_TICKS;
            agent->present = is_static || track->missed_ticks < EXTRACT_GONE_TICKS;
        }
        if (!is_static) {
            turn(agent, track);
        }
    }
    return frame_stats;
}
