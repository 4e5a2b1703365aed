/*
 * builtin:r157 drives as the competent and careful human of UN Regulation No. 157 (ALKS) would: the
 * performance model of Annex 4, Appendix 3 (a driver who perceives, judges, reacts, brakes), or
 * with fsm=1 the fuzzy safety model (Mattas et al., Accident Analysis and Prevention 148, 2020),
 * the other model that the regulation allows. Figures are the regulation's; where it leaves a rule
 * open this one is that of the authors' public program (JRC-FSM) and of esmini's controller, as
 * worker/planner/builtin/R157.md says.
 *
 * Between conflicts it follows its lane and its leader by IDM, braking no harder than comfort, and
 * knows only what ego's sensors see. It never leaves its lane. Memory is fixed per session.
 */
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/builtin/planner_builtin_follow.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { KNOWN_MAX = 48 }; /* objects ahead that a driver keeps in mind */

#define G_MPS2 9.81
/* ---- the careful driver ---- */
#define WANDER_M 0.375    /* what a vehicle may stray without meaning it */
#define PERCEPTION_M 0.72 /* how far it comes while its cut-in is perceived: 0.4 s at 1.8 m/s */
#define JUDGE_S 0.4       /* risk evaluation time */
#define REACTION_S 0.75   /* from then to the brakes */
#define CRITICAL_TTC_S 2.0
#define CRITICAL_THW_S 2.0 /* of a cut-out and of a leader that brakes */
#define LEADER_DECEL_MPS2 5.0
#define RELEASE_MPS2 0.4 /* the foot off the accelerator */
#define DRIVER_MAX_MPS2 (0.774 * G_MPS2)
#define JERK_MPS3 12.65 /* all of it within 0.6 s */
#define AEB_MAX_MPS2 (0.85 * G_MPS2)
#define AEB_TTC_S 1.5
#define AEB_COVER_M 0.1 /* tolerance of full overlap */
/* ---- the fuzzy model ---- */
#define FSM_COMFORT_MPS2 4.0
#define FSM_MAX_MPS2 6.0
#define FSM_LEADER_MPS2 7.0
#define FSM_STANDING_M 2.0 /* margin_dist */
#define FSM_SAFE_M 2.0     /* margin_safe_dist */
#define FSM_LATERAL_S 0.1
/* ---- between conflicts ---- */
#define CRUISE_DECEL_MAX_MPS2 4.0
#define MARGIN_M 0.3
#define DRIFT_MPS 0.05 /* lateral speeds below are standing still */

/* Memory of an object. */
struct known {
    uint32_t id;
    uint32_t tick;      /* last seen; 0: the place is free (ticks count from 1 here) */
    double from_m;      /* offset at which its drift towards ego began */
    double perceived_s; /* since its conflict is perceived; < 0: it is not */
    double revealed_s;  /* since it was first seen in ego's lane; < 0: never */
    double braking_s;   /* since it brakes hard; < 0: it does not */
};

enum phase { PHASE_NONE = 0, PHASE_REACT, PHASE_BRAKE };

struct r157_session {
    double wheelbase_m, length_m, width_m;
    double start_mps; /* < 0: before the first tick */
    double accel_mps2;
    double phase_s; /* in this phase */
    enum phase phase;
    bool aeb;
    struct planner_halts halts;
    struct known known[KNOWN_MAX];
};

struct r157 {
    struct planner_builtin base;
    struct planner_manners manners;
    bool fsm, aeb, cruise;
    double perception_s; /* 0: by distance */
    struct r157_session sessions[];
};

/* One object ahead, as a driver sees it. */
struct sight {
    double gap_m, lead_mps, lead_mps2; /* box to box along the route; its speed along it */
    double offset_m, towards_mps;      /* beside ego; how fast it comes nearer sideways */
    double clearance_m;                /* box to ego's path sideways; negative: overlap */
    double half_across_m;
    double length_m;
    bool in_lane, person;
};

static int r157_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                     uint32_t error_bytes)
{
    double fsm = 0.0;
    double aeb = 1.0;
    double cruise = 1.0;
    double perception_s = 0.0;
    struct planner_manners manners = {.headway_s = 2.0,
                                      .speed_factor = 1.0,
                                      .min_gap_m = 2.0,
                                      .accel_mps2 = 2.0,
                                      .decel_mps2 = 2.0};
    const struct planner_parameter parameters[] = {
        {"fsm", 0.0, 1.0, &fsm},
        {"aeb", 0.0, 1.0, &aeb},
        {"cruise", 0.0, 1.0, &cruise},
        {"perception_s", 0.0, 2.0, &perception_s},
        {"headway_s", 0.3, 5.0, &manners.headway_s},
        {"speed_factor", 0.2, 1.5, &manners.speed_factor},
    };
    if (planner_config_read(config, parameters, COUNT_OF(parameters), error_text, error_bytes) !=
        0) {
        return 1;
    }
    struct r157 *self = planner_builtin_create(sizeof *self, sizeof self->sessions[0],
                                               session_count, error_text, error_bytes);
    if (self == NULL) {
        return 1;
    }
    self->manners = manners;
    self->fsm = fsm >= 0.5;
    self->aeb = aeb >= 0.5;
    self->cruise = cruise >= 0.5;
    self->perception_s = perception_s;
    *planner = self;
    return 0;
}

static int r157_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                      uint32_t error_bytes)
{
    struct r157 *self = planner;
    if (episode->objects_source == SWERVE_OBJECTS_NONE) {
        snprintf(error_text, error_bytes,
                 "it drives by a list of objects, and this world has none (expected the object or "
                 "replay world, or a learned one with --layout map or none)");
        return 1;
    }
    self->sessions[episode->session] =
        (struct r157_session){.wheelbase_m = episode->ego_wheelbase_m,
                              .length_m = episode->ego_length_m,
                              .width_m = episode->ego_width_m,
                              .start_mps = -1.0};
    return 0;
}

/* ---- what is seen ---- */

/* False: it is not ahead. */
static bool look(const struct r157_session *session, const struct planner_route *route,
                 const struct swerve_object *object, struct sight *out)
{
    struct planner_place at;
    if (!planner_place_find(route, object->x_m, object->y_m, object->heading_rad, &at)) {
        return false;
    }
    struct planner_half half = planner_place_half(&at, object->length_m, object->width_m);
    double sine;
    double cosine;
    dmath_sincos(route->seen->heading_rad + at.route_rad, &sine, &cosine);
    double side_mps = cosine * object->vy_mps - sine * object->vx_mps;
    *out = (struct sight){
        .gap_m = at.s_m - half.along_m - 0.5 * session->length_m,
        .lead_mps = cosine * object->vx_mps + sine * object->vy_mps,
        .lead_mps2 = cosine * object->ax_mps2 + sine * object->ay_mps2,
        .offset_m = at.offset_m,
        .towards_mps = at.offset_m > 0.0 ? -side_mps : side_mps,
        .clearance_m = fabs(at.offset_m) - half.across_m - 0.5 * session->width_m,
        .half_across_m = half.across_m,
        .length_m = 2.0 * half.along_m,
        .in_lane = at.offset_m < at.left_m && -at.offset_m < at.right_m,
        .person = object->kind == SWERVE_OBJECT_PEDESTRIAN ||
                  object->kind == SWERVE_OBJECT_CYCLIST || object->kind == SWERVE_OBJECT_ANIMAL,
    };
    return at.s_m + half.along_m > 0.5 * session->length_m;
}

/* The place of an object in memory: its own, a free one, or that of the one unseen for longest. */
static struct known *recall(struct r157_session *session, uint32_t id, uint32_t tick,
                            const struct sight *sight)
{
    struct known *oldest = &session->known[0];
    for (uint32_t i = 0; i < KNOWN_MAX; i++) {
        struct known *known = &session->known[i];
        if (known->tick != 0 && known->id == id) {
            known->tick = tick;
            return known;
        }
        oldest = known->tick < oldest->tick ? known : oldest;
    }
    *oldest = (struct known){id, tick, sight->offset_m, -1.0, -1.0, -1.0};
    return oldest;
}

static double time_to(double gap_m, double closing_mps)
{
    return closing_mps > 1e-3 ? dmath_max(gap_m, 0.0) / closing_mps : 1e9;
}

/* Counts a clock on while `on`, and puts it back otherwise. */
static void run_clock(double *clock_s, bool on)
{
    *clock_s = !on ? -1.0 : *clock_s < 0.0 ? 0.0 : *clock_s + TICK_S;
}

/* ---- the careful driver ---- */

/* Whether the driver has perceived that this one comes or is in the way. Someone else's lane is
 * left for ego's when the centre has strayed further than wandering does, and then some. */
static bool perceive(const struct r157 *self, struct known *known, const struct sight *sight)
{
    run_clock(&known->revealed_s, sight->in_lane || sight->clearance_m < 0.0);
    run_clock(&known->braking_s, sight->lead_mps2 < -LEADER_DECEL_MPS2);
    if (known->perceived_s < 0.0 && sight->towards_mps < DRIFT_MPS) {
        known->from_m = sight->offset_m;
    }
    double strayed_m = fabs(known->from_m) - fabs(sight->offset_m);
    bool by_time = self->perception_s > 0.0;
    bool comes = sight->person
                     ? sight->towards_mps > DRIFT_MPS &&
                           sight->clearance_m < sight->towards_mps * (CRITICAL_TTC_S + JUDGE_S)
                     : strayed_m > WANDER_M + (by_time ? 0.0 : PERCEPTION_M);
    bool inside = known->perceived_s >= 0.0 && (sight->in_lane || sight->clearance_m < 0.0);
    run_clock(&known->perceived_s, comes || inside);
    double judge_s = sight->person ? JUDGE_S : by_time ? self->perception_s : 0.0;
    bool cut_in = known->perceived_s >= judge_s - 1e-9;
    return cut_in || known->revealed_s >= JUDGE_S - 1e-9;
}

static bool is_critical(const struct known *known, const struct sight *sight, double speed_mps)
{
    double closing_mps = speed_mps - sight->lead_mps;
    bool brakes =
        known->braking_s >= JUDGE_S - 1e-9 && time_to(sight->gap_m, speed_mps) < CRITICAL_THW_S;
    bool revealed = sight->lead_mps < 0.5 && known->revealed_s >= JUDGE_S - 1e-9 &&
                    time_to(sight->gap_m, speed_mps) < CRITICAL_THW_S;
    return brakes || revealed || time_to(sight->gap_m, closing_mps) < CRITICAL_TTC_S;
}

/* Full overlap of the fronts: one lies inside the other's width. */
static bool covers(const struct r157_session *session, const struct sight *sight)
{
    double narrow_m = dmath_min(session->width_m, 2.0 * sight->half_across_m);
    return -sight->clearance_m > narrow_m - AEB_COVER_M;
}

static void start(struct r157_session *session, enum phase phase)
{
    session->phase = phase;
    session->phase_s = 0.0;
}

/* Acceleration under the model; `cruise` while there is no conflict. */
static double careful(struct r157_session *session, bool critical, bool over, double cruise_mps2)
{
    if (session->phase == PHASE_NONE && critical) {
        start(session, PHASE_REACT);
    } else if (session->phase == PHASE_REACT && session->phase_s > REACTION_S - 1e-9) {
        start(session, critical ? PHASE_BRAKE : PHASE_NONE);
    } else if (session->phase == PHASE_BRAKE && over) {
        start(session, PHASE_NONE);
    }
    session->phase_s += TICK_S;
    if (session->aeb) {
        return dmath_max(dmath_min(session->accel_mps2, 0.0) - TICK_S * JERK_MPS3, -AEB_MAX_MPS2);
    }
    switch (session->phase) {
    case PHASE_REACT:
        return dmath_min(dmath_min(session->accel_mps2, cruise_mps2), -RELEASE_MPS2);
    case PHASE_BRAKE:
        return dmath_max(dmath_min(session->accel_mps2, 0.0) - TICK_S * JERK_MPS3,
                         -DRIVER_MAX_MPS2);
    case PHASE_NONE:
        break;
    }
    return cruise_mps2;
}

/* ---- the fuzzy model ---- */

/* Share of a distance between unsafe (1) and safe (0). */
static double share(double distance_m, double unsafe_m, double safe_m)
{
    if (distance_m > safe_m) {
        return 0.0;
    }
    return distance_m < unsafe_m ? 1.0 : (distance_m - safe_m) / (unsafe_m - safe_m);
}

/* Proactive: were the leader to brake now. */
static double proactive(double gap_m, double v, double lead_mps)
{
    double leader_m = lead_mps * lead_mps / (2.0 * FSM_LEADER_MPS2);
    double before_m = v * REACTION_S - leader_m;
    return share(gap_m - FSM_STANDING_M, before_m + v * v / (2.0 * FSM_MAX_MPS2),
                 before_m + v * v / (2.0 * FSM_COMFORT_MPS2) + FSM_SAFE_M);
}

/* Critical: as both go on now, ego's acceleration included. */
static double critical_share(double gap_m, double v, double lead_mps, double accel_mps2)
{
    double a = dmath_max(accel_mps2, -FSM_COMFORT_MPS2);
    double then_mps = v + a * REACTION_S;
    if (v <= lead_mps) {
        return 0.0;
    }
    if (then_mps < lead_mps) {
        double closing = v - lead_mps;
        return gap_m < closing * closing / dmath_max(fabs(2.0 * accel_mps2), 1e-6) ? 1.0 : 0.0;
    }
    double before_m = (v + 0.5 * a * REACTION_S - lead_mps) * REACTION_S;
    double left = then_mps - lead_mps;
    return share(gap_m, before_m + left * left / (2.0 * FSM_MAX_MPS2),
                 before_m + left * left / (2.0 * FSM_COMFORT_MPS2));
}

/* Deceleration that the model asks for because of one object; 0: none. */
static double fuzzy_demand(const struct r157_session *session,
                           const struct swerve_observation *seen, const struct sight *sight)
{
    double v = seen->speed_mps;
    double closing_mps = v - sight->lead_mps;
    if (sight->clearance_m > 0.0 && !sight->in_lane) {
        double gross_m = sight->gap_m + sight->length_m + session->length_m;
        if (sight->towards_mps < DRIFT_MPS || closing_mps <= 0.0 ||
            sight->clearance_m / sight->towards_mps > gross_m / closing_mps + FSM_LATERAL_S) {
            return 0.0;
        }
    }
    if (sight->gap_m <= 0.0) {
        return 0.0;
    }
    double critical = critical_share(sight->gap_m, v, sight->lead_mps, seen->accel_mps2);
    return critical > 0.0 ? critical * (FSM_MAX_MPS2 - FSM_COMFORT_MPS2) + FSM_COMFORT_MPS2
                          : proactive(sight->gap_m, v, sight->lead_mps) * FSM_COMFORT_MPS2;
}

static double fuzzy(struct r157_session *session, double demand_mps2, double cruise_mps2)
{
    if (demand_mps2 <= 0.0) {
        start(session, PHASE_NONE);
        return cruise_mps2;
    }
    if (session->phase == PHASE_NONE) {
        start(session, PHASE_REACT);
    }
    bool reacts = session->phase_s < REACTION_S - 1e-9;
    session->phase_s += TICK_S;
    if (reacts) {
        return dmath_min(dmath_min(session->accel_mps2, 0.0), cruise_mps2);
    }
    double accel_mps2 = dmath_max(session->accel_mps2 - JERK_MPS3 * TICK_S, -demand_mps2);
    return dmath_min(accel_mps2, cruise_mps2);
}

/* ---- one tick ---- */

/* Sum of a tick's objects. */
struct conflict {
    bool critical;      /* some object is, to the careful driver */
    bool closing;       /* on any that is perceived and near */
    double demand_mps2; /* of the fuzzy model */
    double follow_mps2; /* IDM's, behind whom the driver knows */
};

static void judge(const struct r157 *self, struct r157_session *session,
                  const struct planner_route *route, const struct swerve_object *object,
                  struct conflict *conflict)
{
    const struct swerve_observation *seen = route->seen;
    struct sight sight;
    double speed_mps = seen->speed_mps;
    if (!look(session, route, object, &sight)) {
        return;
    }
    struct known *known = recall(session, object->id, seen->tick + 1, &sight);
    bool perceived = perceive(self, known, &sight);
    bool ahead = perceived || sight.in_lane || sight.clearance_m < MARGIN_M;
    double closing_mps = speed_mps - sight.lead_mps;
    conflict->demand_mps2 = dmath_max(conflict->demand_mps2, fuzzy_demand(session, seen, &sight));
    if (ahead) {
        conflict->follow_mps2 =
            dmath_min(conflict->follow_mps2,
                      planner_idm_behind(&self->manners, speed_mps, sight.gap_m, sight.lead_mps));
    }
    if (!perceived) {
        return;
    }
    conflict->critical = conflict->critical || is_critical(known, &sight, speed_mps);
    conflict->closing =
        conflict->closing || (closing_mps > 0.1 && sight.gap_m < 2.0 + 2.0 * speed_mps);
    session->aeb = session->aeb || (self->aeb && !self->fsm && covers(session, &sight) &&
                                    time_to(sight.gap_m, closing_mps) < AEB_TTC_S);
}

static struct swerve_action drive(const struct r157 *self, struct r157_session *session,
                                  const struct swerve_observation *seen,
                                  const struct swerve_surroundings *around)
{
    const struct planner_manners *manners = &self->manners;
    if (session->start_mps < 0.0) {
        session->start_mps = dmath_max(seen->speed_mps, 0.0);
        session->accel_mps2 = seen->accel_mps2;
    }
    double unposted_mps = dmath_max(session->start_mps, 1.0);
    double cruise_mps2 = planner_idm_free(manners, seen->speed_mps,
                                          planner_allowed_mps(manners, seen, unposted_mps));
    struct conflict conflict = {.follow_mps2 = manners->accel_mps2};
    struct planner_route route;
    planner_route_take(seen, &route);
    for (uint32_t i = 0; i < around->object_count; i++) {
        judge(self, session, &route, &around->objects[i], &conflict);
    }
    cruise_mps2 =
        dmath_min(cruise_mps2, planner_idm_signals(manners, seen, around, session->length_m,
                                                   session->width_m, &session->halts));
    cruise_mps2 = dmath_min(cruise_mps2, conflict.follow_mps2);
    cruise_mps2 = dmath_max(cruise_mps2, -CRUISE_DECEL_MAX_MPS2);
    cruise_mps2 = self->cruise ? cruise_mps2 : 0.0;
    bool over = !conflict.closing || seen->speed_mps < 0.01;
    session->aeb = session->aeb && !over;
    session->accel_mps2 = self->fsm ? fuzzy(session, conflict.demand_mps2, cruise_mps2)
                                    : careful(session, conflict.critical, over, cruise_mps2);
    return (struct swerve_action){session->accel_mps2,
                                  planner_keep_lane(seen, session->wheelbase_m, 0.0)};
}

static int r157_plan(void *planner, uint32_t count, const struct swerve_observation *observations,
                     const struct swerve_surroundings *surroundings, struct swerve_answer *answers,
                     uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    struct r157 *self = planner;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        failed[i] = observations[i].route_count < 2;
        if (!failed[i]) {
            answers[i].action = drive(self, &self->sessions[observations[i].session],
                                      &observations[i], &surroundings[i]);
        }
    }
    return 0;
}

const struct swerve_planner_ops planner_builtin_r157_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .wants = SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SEEN | SWERVE_WANTS_SIGNALS,
    .name = "r157",
    .open = r157_open,
    .close = free,
    .reset = r157_reset,
    .plan = r157_plan,
    .fork = planner_builtin_fork,
};
