/*
 * builtin:pdm plans in the manner of PDM-Closed (Dauner, Hallgarten, Geiger, Chitta, "Parting with
 * Misconceptions about Learning-based Vehicle Motion Planning", CoRL 2023), the rule-based winner
 * of nuPlan's 2023 challenge: proposals along the route, each simulated for 4 s, scored as nuPlan
 * scores, the best one driven; the brakes where even that one would hit something within 2 s.
 *
 *   proposals  three offsets (0, 1 m left and right) x shares of the speed limit (1 to 0.2, and
 *              0: to wait)
 *   policy     IDM behind whom a constant velocity will put in the way, and at red lights
 *   simulation kinematic bicycle, pure pursuit of the shifted route; the first step is the answer
 *   score      no at-fault contact x on the route's own lanes x (5 progress + 5 TTC + 4 limit
 *              + 2 comfort) / 16
 *
 * It is not their program: theirs tracks with an LQR, looks at the drivable area of the whole map
 * and goes round parked cars within the same 1 m. Memory is fixed; nothing is kept between ticks
 * but the last acceleration.
 */
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/builtin/planner_builtin_follow.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/geom.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 20, OFFSETS = 3, SPEEDS = 6, NEAR_MAX = 48, TTC_LOOKS = 3 };

#define STEP_S 0.2
#define OFFSET_M 1.0
#define LOOK_M 110.0                   /* objects farther off are no part of the next 4 s */
#define MARGIN_M 0.25                  /* beside ego's body, in which somebody is a leader */
#define EDGE_M 0.1                     /* that a corner may stand out; 0.3 in scoring */
#define LEAVE_GAIN 0.02                /* by which an offset must beat the centre */
#define REAR_COS (-0.8660254037844387) /* of 150 degrees: contacts behind are not ego's fault */
#define TTC_LOOK_S 0.3
#define BRAKE_WITHIN_S 2.0
#define BRAKE_MPS2 8.0
#define DECEL_MAX_MPS2 6.0 /* of a proposal */
#define OVERSPEED_MPS 2.23 /* nuPlan's tolerance */
#define COMFORT_ACCEL_MPS2 2.4
#define COMFORT_DECEL_MPS2 4.05
#define COMFORT_LATERAL_MPS2 4.89
#define STOPPED_MPS 0.05

struct pdm_session {
    double wheelbase_m, length_m, width_m;
    struct planner_halts halts;
};

struct pdm {
    struct planner_builtin base;
    struct planner_manners manners;
    struct pdm_session sessions[];
};

/* An object near ego, ego frame, as a constant velocity moves it. */
struct mover {
    double x_m, y_m, cosine, sine, vx_mps, vy_mps;
    double half_length_m, half_width_m, radius_m;
    bool stands;
    /* Along the route at each step. */
    bool on_route[STEPS];
    double rear_m[STEPS], offset_m[STEPS], across_m[STEPS], along_mps[STEPS];
};

/* Data that all proposals of a tick share. */
struct outlook {
    const struct pdm *self;
    struct pdm_session *session;
    const struct swerve_observation *seen;
    double limit_mps, allowed_mps;
    double stop_m; /* of the nearest stop line that holds, along the route; 1e9: none */
    uint32_t count;
    struct mover movers[NEAR_MAX];
};

/* Ego in the simulation; ego frame of this tick. */
struct simulated {
    double x_m, y_m, heading_rad, speed_mps, s_m, offset_m;
};

struct proposal {
    double accel_mps2, steer_rad; /* of the first step */
    double progress_m;
    double contact_s; /* first at-fault contact; 1e9: none */
    bool off_road, short_ttc, uncomfortable;
    double overspeed_m; /* over the limit, integrated */
};

static int pdm_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    struct planner_manners manners = {.headway_s = 1.5,
                                      .speed_factor = 1.0,
                                      .min_gap_m = 1.5,
                                      .accel_mps2 = 1.5,
                                      .decel_mps2 = 3.0};
    const struct planner_parameter parameters[] = {
        {"headway_s", 0.3, 5.0, &manners.headway_s},
        {"speed_factor", 0.2, 1.5, &manners.speed_factor},
    };
    if (planner_config_read(config, parameters, COUNT_OF(parameters), error_text, error_bytes) !=
        0) {
        return 1;
    }
    struct pdm *self = planner_builtin_create(sizeof *self, sizeof self->sessions[0], session_count,
                                              error_text, error_bytes);
    if (self == NULL) {
        return 1;
    }
    self->manners = manners;
    *planner = self;
    return 0;
}

static int pdm_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    struct pdm *self = planner;
    if (episode->objects_source == SWERVE_OBJECTS_NONE) {
        snprintf(error_text, error_bytes,
                 "it drives by a list of objects, and this world has none (expected the object or "
                 "replay world, or a learned one with --layout map or none)");
        return 1;
    }
    self->sessions[episode->session] = (struct pdm_session){.wheelbase_m = episode->ego_wheelbase_m,
                                                            .length_m = episode->ego_length_m,
                                                            .width_m = episode->ego_width_m};
    return 0;
}

/* ---- what is around ---- */

/* Places of a mover at each step of the simulation, along the route. */
static void forecast(const struct planner_route *route, const struct swerve_object *object,
                     struct mover *mover)
{
    for (uint32_t k = 0; k < STEPS; k++) {
        struct planner_place at;
        double t_s = k * STEP_S;
        mover->on_route[k] =
            planner_place_find(route, object->x_m + t_s * object->vx_mps,
                               object->y_m + t_s * object->vy_mps, object->heading_rad, &at);
        if (mover->on_route[k]) {
            double sine;
            double cosine;
            struct planner_half half = planner_place_half(&at, object->length_m, object->width_m);
            dmath_sincos(at.route_rad, &sine, &cosine);
            mover->rear_m[k] = at.s_m - half.along_m;
            mover->offset_m[k] = at.offset_m;
            mover->across_m[k] = half.across_m;
            mover->along_mps[k] = mover->vx_mps * cosine + mover->vy_mps * sine;
        }
    }
}

static void look_around(struct outlook *outlook, const struct swerve_surroundings *around)
{
    const struct swerve_observation *seen = outlook->seen;
    struct planner_route route;
    planner_route_take(seen, &route);
    double sine = route.sine;
    double cosine = route.cosine;
    for (uint32_t i = 0; i < around->object_count && outlook->count < NEAR_MAX; i++) {
        const struct swerve_object *object = &around->objects[i];
        double dx = object->x_m - seen->x_m;
        double dy = object->y_m - seen->y_m;
        if (dx * dx + dy * dy > LOOK_M * LOOK_M) {
            continue;
        }
        struct mover *mover = &outlook->movers[outlook->count++];
        double half_l = 0.5 * object->length_m;
        double half_w = 0.5 * object->width_m;
        *mover = (struct mover){
            .x_m = cosine * dx + sine * dy,
            .y_m = cosine * dy - sine * dx,
            .vx_mps = cosine * object->vx_mps + sine * object->vy_mps,
            .vy_mps = cosine * object->vy_mps - sine * object->vx_mps,
            .half_length_m = half_l,
            .half_width_m = half_w,
            .radius_m = sqrt(half_l * half_l + half_w * half_w),
            .stands = object->vx_mps * object->vx_mps + object->vy_mps * object->vy_mps <
                      STOPPED_MPS * STOPPED_MPS,
        };
        dmath_sincos(object->heading_rad - seen->heading_rad, &mover->sine, &mover->cosine);
        forecast(&route, object, mover);
    }
    outlook->stop_m = 1e9;
    for (uint32_t i = 0; i < around->signal_count; i++) {
        const struct swerve_signal_state *signal = &around->signals[i];
        double gap_m = signal->stop_ahead_m;
        double needed_mps2 = seen->speed_mps * seen->speed_mps / (2.0 * dmath_max(gap_m, 0.1));
        bool red = signal->light == SWERVE_SIGNAL_RED ||
                   signal->light == SWERVE_SIGNAL_RED_YELLOW ||
                   (signal->light == SWERVE_SIGNAL_YELLOW && needed_mps2 < 0.5 * DECEL_MAX_MPS2) ||
                   planner_sign_holds(seen, around, signal, outlook->session->length_m,
                                      outlook->session->width_m, &outlook->session->halts);
        if (red && gap_m > 0.0) {
            outlook->stop_m =
                dmath_min(outlook->stop_m, gap_m + 0.5 * outlook->session->length_m + 0.5);
        }
    }
}

/* ---- simulation ---- */

/* The foot of a point of ego's frame on the route. */
static void find_foot(const struct swerve_observation *seen, struct simulated *ego)
{
    double best = 1e300;
    for (uint32_t i = 0; i + 1 < seen->route_count; i++) {
        const struct swerve_route_point *a = &seen->route[i];
        double dx = (double)a[1].x_m - (double)a->x_m;
        double dy = (double)a[1].y_m - (double)a->y_m;
        double squared = dx * dx + dy * dy;
        if (squared < 1e-9) {
            continue;
        }
        double px = ego->x_m - (double)a->x_m;
        double py = ego->y_m - (double)a->y_m;
        double share = dmath_clamp((px * dx + py * dy) / squared, 0.0, 1.0);
        double ex = px - share * dx;
        double ey = py - share * dy;
        double distance = ex * ex + ey * ey;
        if (distance < best) {
            best = distance;
            ego->s_m = (i + share) * SWERVE_ROUTE_STEP_M;
            ego->offset_m = (py * dx - px * dy) / sqrt(squared);
        }
    }
}

/* IDM's acceleration at a step, towards `wanted_mps`. */
static double policy(const struct outlook *outlook, const struct simulated *ego, uint32_t step,
                     double offset_m, double wanted_mps)
{
    const struct planner_manners *manners = &outlook->self->manners;
    const struct pdm_session *session = outlook->session;
    double accel_mps2 = planner_idm_free(manners, ego->speed_mps, wanted_mps);
    double front_m = ego->s_m + 0.5 * session->length_m;
    double low_m = dmath_min(offset_m, ego->offset_m) - 0.5 * session->width_m - MARGIN_M;
    double high_m = dmath_max(offset_m, ego->offset_m) + 0.5 * session->width_m + MARGIN_M;
    for (uint32_t i = 0; i < outlook->count; i++) {
        const struct mover *mover = &outlook->movers[i];
        double off = mover->offset_m[step];
        double across = mover->across_m[step];
        double gap_m = mover->rear_m[step] - front_m;
        bool ahead = mover->on_route[step] && gap_m > -mover->radius_m;
        if (ahead && off - across < high_m && off + across > low_m) {
            accel_mps2 = dmath_min(accel_mps2, planner_idm_behind(manners, ego->speed_mps, gap_m,
                                                                  mover->along_mps[step]));
        }
    }
    if (outlook->stop_m < 1e8) {
        accel_mps2 =
            dmath_min(accel_mps2, planner_idm_behind(manners, ego->speed_mps,
                                                     outlook->stop_m - front_m + 1.0, 0.0));
    }
    return dmath_clamp(accel_mps2, -DECEL_MAX_MPS2, manners->accel_mps2);
}

/* Front-wheel angle towards the route, shifted. */
static double steer(const struct outlook *outlook, const struct simulated *ego, double offset_m)
{
    double ahead_m = dmath_clamp(0.9 * ego->speed_mps, 5.0, 30.0);
    struct planner_point target = planner_route_at(outlook->seen, ego->s_m + ahead_m, offset_m);
    double sine;
    double cosine;
    dmath_sincos(ego->heading_rad, &sine, &cosine);
    double dx = target.x_m - ego->x_m;
    double dy = target.y_m - ego->y_m;
    return planner_pursue((struct planner_point){cosine * dx + sine * dy, cosine * dy - sine * dx},
                          outlook->session->wheelbase_m);
}

/* A kinematic bicycle about the box's centre. */
static void move(const struct outlook *outlook, struct simulated *ego, double accel_mps2,
                 double steer_rad)
{
    double next_mps = dmath_max(ego->speed_mps + accel_mps2 * STEP_S, 0.0);
    double mean_mps = 0.5 * (ego->speed_mps + next_mps);
    double slip_rad = dmath_atan(0.5 * dmath_tan(steer_rad));
    double sine;
    double cosine;
    dmath_sincos(ego->heading_rad + slip_rad, &sine, &cosine);
    ego->x_m += mean_mps * STEP_S * cosine;
    ego->y_m += mean_mps * STEP_S * sine;
    ego->heading_rad +=
        mean_mps * STEP_S * dmath_sin(slip_rad) / (0.5 * outlook->session->wheelbase_m);
    ego->speed_mps = next_mps;
}

/* ---- scoring ---- */

static struct box body_at(const struct outlook *outlook, const struct simulated *ego)
{
    const struct pose pose = {ego->x_m, ego->y_m, ego->heading_rad};
    return box_make(pose, outlook->session->length_m, outlook->session->width_m);
}

/* Whether ego's box, moved on by `on_s`, meets a mover then, and by ego's fault. */
static bool hits(const struct outlook *outlook, const struct simulated *ego, const struct box *box,
                 double t_s, double on_s)
{
    struct box moved = *box;
    double reach_m = 0.5 * (outlook->session->length_m + outlook->session->width_m);
    moved.center.x_m += on_s * ego->speed_mps * box->cos_heading;
    moved.center.y_m += on_s * ego->speed_mps * box->sin_heading;
    for (uint32_t i = 0; i < outlook->count; i++) {
        const struct mover *mover = &outlook->movers[i];
        double x_m = mover->x_m + (t_s + on_s) * mover->vx_mps;
        double y_m = mover->y_m + (t_s + on_s) * mover->vy_mps;
        double dx = x_m - moved.center.x_m;
        double dy = y_m - moved.center.y_m;
        double near_m = reach_m + mover->radius_m;
        if (dx * dx + dy * dy > near_m * near_m) {
            continue;
        }
        struct box other = {
            {x_m, y_m}, mover->cosine, mover->sine, mover->half_length_m, mover->half_width_m};
        /* The bearing from ego's rear axle, as in scoring. */
        double rear_m = 0.5 * outlook->session->wheelbase_m;
        double ahead = dx * box->cos_heading + dy * box->sin_heading + rear_m;
        double beside = dy * box->cos_heading - dx * box->sin_heading;
        bool behind = ahead < REAR_COS * sqrt(ahead * ahead + beside * beside);
        if ((mover->stands || !behind) && box_overlap(&moved, &other)) {
            return true;
        }
    }
    return false;
}

/* Whether a corner stands out of the lanes of ego's direction. */
static bool off_road(const struct outlook *outlook, const struct simulated *ego)
{
    const struct swerve_observation *seen = outlook->seen;
    struct box box = body_at(outlook, ego);
    struct vec2 corners[4];
    box_corners(&box, corners);
    for (int i = 0; i < 4; i++) {
        struct simulated corner = {.x_m = corners[i].x_m, .y_m = corners[i].y_m};
        find_foot(seen, &corner);
        double station = corner.s_m / SWERVE_ROUTE_STEP_M;
        uint32_t from = (uint32_t)dmath_clamp(station, 0.0, seen->route_count - 2.0);
        for (uint32_t k = from; k < from + 2; k++) {
            const struct swerve_route_point *at = &seen->route[k];
            if (corner.offset_m > (double)at->left_m + (double)at->adjacent_left_m + EDGE_M ||
                corner.offset_m < -(double)at->right_m - (double)at->adjacent_right_m - EDGE_M) {
                return true;
            }
        }
    }
    return false;
}

static void judge(const struct outlook *outlook, const struct simulated *ego, uint32_t step,
                  struct proposal *out)
{
    double t_s = step * STEP_S;
    struct box box = body_at(outlook, ego);
    if (ego->speed_mps > STOPPED_MPS && out->contact_s > 1e8 &&
        hits(outlook, ego, &box, t_s, 0.0)) {
        out->contact_s = t_s;
    }
    for (int look = 1; look <= TTC_LOOKS && !out->short_ttc && ego->speed_mps > STOPPED_MPS;
         look++) {
        out->short_ttc = hits(outlook, ego, &box, t_s, look * TTC_LOOK_S);
    }
    out->off_road = out->off_road || (step % 2 == 0 && off_road(outlook, ego));
    out->overspeed_m += STEP_S * dmath_max(ego->speed_mps - outlook->limit_mps, 0.0);
}

static void simulate(const struct outlook *outlook, double offset_m, double wanted_mps,
                     struct proposal *out)
{
    struct simulated ego = {.speed_mps = dmath_max(outlook->seen->speed_mps, 0.0)};
    double last_yaw_rps = 0.0;
    *out = (struct proposal){.contact_s = 1e9};
    find_foot(outlook->seen, &ego);
    double from_m = ego.s_m;
    bool off_already = off_road(outlook, &ego);
    for (uint32_t step = 0; step < STEPS; step++) {
        double accel_mps2 = policy(outlook, &ego, step, offset_m, wanted_mps);
        double steer_rad = steer(outlook, &ego, offset_m);
        double heading_rad = ego.heading_rad;
        if (step == 0) {
            out->accel_mps2 = accel_mps2;
            out->steer_rad = steer_rad;
        }
        judge(outlook, &ego, step, out);
        move(outlook, &ego, accel_mps2, steer_rad);
        find_foot(outlook->seen, &ego);
        last_yaw_rps = (ego.heading_rad - heading_rad) / STEP_S;
        out->uncomfortable = out->uncomfortable || accel_mps2 > COMFORT_ACCEL_MPS2 ||
                             accel_mps2 < -COMFORT_DECEL_MPS2 ||
                             fabs(last_yaw_rps * ego.speed_mps) > COMFORT_LATERAL_MPS2;
    }
    out->off_road = out->off_road && !off_already;
    out->progress_m = ego.s_m - from_m;
}

static double score(const struct proposal *proposal, double best_progress_m)
{
    double progress =
        best_progress_m > 0.1 ? dmath_clamp(proposal->progress_m / best_progress_m, 0.0, 1.0) : 1.0;
    double limit = dmath_max(1.0 - proposal->overspeed_m / (OVERSPEED_MPS * STEPS * STEP_S), 0.0);
    double weighted =
        5.0 * progress + 5.0 * !proposal->short_ttc + 4.0 * limit + 2.0 * !proposal->uncomfortable;
    return proposal->contact_s < 1e8 || proposal->off_road ? 0.0 : weighted / 16.0;
}

/* ---- one tick ---- */

static struct swerve_action choose(const struct outlook *outlook)
{
    static const double offsets_m[OFFSETS] = {0.0, OFFSET_M, -OFFSET_M};
    static const double shares[SPEEDS] = {1.0, 0.8, 0.6, 0.4, 0.2, 0.0};
    struct proposal proposals[OFFSETS * SPEEDS];
    double best_progress_m = 0.0;
    for (uint32_t p = 0; p < OFFSETS * SPEEDS; p++) {
        double wanted_mps =
            dmath_min(shares[p % SPEEDS] * outlook->limit_mps, outlook->allowed_mps);
        simulate(outlook, offsets_m[p / SPEEDS], wanted_mps, &proposals[p]);
        if (score(&proposals[p], 0.0) > 0.0) {
            best_progress_m = dmath_max(best_progress_m, proposals[p].progress_m);
        }
    }
    /* If all are worth nothing: the one that meets something last. */
    uint32_t best = 0;
    for (uint32_t p = 1; p < OFFSETS * SPEEDS; p++) {
        double gain =
            score(&proposals[p], best_progress_m) - score(&proposals[best], best_progress_m);
        bool later = proposals[p].contact_s > proposals[best].contact_s + 1e-9;
        gain -= best < SPEEDS && p >= SPEEDS ? LEAVE_GAIN : 0.0;
        if (gain > 1e-9 || (gain > -1e-9 && later)) {
            best = p;
        }
    }
    struct swerve_action action = {proposals[best].accel_mps2, proposals[best].steer_rad};
    if (proposals[best].contact_s <= BRAKE_WITHIN_S) {
        action.accel_mps2 = -BRAKE_MPS2;
    }
    return action;
}

static int pdm_plan(void *planner, uint32_t count, const struct swerve_observation *observations,
                    const struct swerve_surroundings *surroundings, struct swerve_answer *answers,
                    uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    struct pdm *self = planner;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct swerve_observation *seen = &observations[i];
        struct outlook outlook = {
            .self = self, .session = &self->sessions[seen->session], .seen = seen};
        failed[i] = seen->route_count < 2;
        if (failed[i]) {
            continue;
        }
        double limit_mps = (double)seen->route[0].speed_limit_mps;
        outlook.limit_mps =
            self->manners.speed_factor * (limit_mps > 0.0 ? limit_mps : PLANNER_NO_LIMIT_MPS);
        outlook.allowed_mps = planner_allowed_mps(&self->manners, seen, PLANNER_NO_LIMIT_MPS);
        look_around(&outlook, &surroundings[i]);
        answers[i].action = choose(&outlook);
    }
    return 0;
}

const struct swerve_planner_ops planner_builtin_pdm_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .wants = SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SIGNALS,
    .name = "pdm",
    .open = pdm_open,
    .close = free,
    .reset = pdm_reset,
    .plan = pdm_plan,
    .fork = planner_builtin_fork,
};
