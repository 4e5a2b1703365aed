/*
 * Inside of scoring: the running state of one rollout and the pieces that score.c calls each tick.
 *
 * A score is one flat block without pointers into itself, so that a fork is a copy: the struct,
 * then per agent a radius and a "touched" mark, then per tick four signals for the comfort filter.
 * Everything else is computed online. Definitions and sources: worker/METRICS.md.
 */
#ifndef SWERVE_WORKER_SCORE_SCORE_INTERNAL_H
#define SWERVE_WORKER_SCORE_SCORE_INTERNAL_H

#include "base/geom.h"
#include "engine/traffic/roadmap.h"
#include "worker/score/score.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum { DIRECTION_WINDOW_TICKS = 10 /* 1 s */, CORNER_LANES_MAX = 16 };

/* Signals kept per tick, see score_signal(). */
enum signal {
    SIGNAL_LON_ACCEL = 0, /* m/s2 */
    SIGNAL_LAT_ACCEL,
    SIGNAL_ACCEL,   /* magnitude of the two */
    SIGNAL_HEADING, /* rad, unwrapped */
    SIGNAL_COUNT
};

/* Ego at the current tick, derived once and shared by all metrics. */
struct ego_view {
    struct box box;
    struct vec2 corners[4];
    struct vec2 rear_axle;
    struct vec2 velocity; /* m/s */
    double speed_mps;
    double accel_mps2;
    double yaw_rate_rps;
    double route_s_m;
    double route_offset_m;
    struct lane_position lane;
    double off_drivable_m; /* worst corner */
    double brake_mps2;     /* what the tyres give here, see guardian.c */
    double lead_brake_mps2;
    /* Answered on demand, because most ticks need neither: -1 not asked, else 0 or 1. */
    int8_t several_lanes;
    int8_t in_intersection;
};

/* An agent at the current tick; the box is built on demand. */
struct agent_view {
    uint32_t index;
    const struct agent *record;
    const struct agent_state *state;
    struct vec2 offset; /* its centre minus ego's */
    double distance2_m2;
    double reach_m; /* sum of both bounding radii */
    bool has_box;
    struct box box;
};

/* Samples on end more than 0.5 m off the centre line of the route; those in a junction neither
 * count nor end a run. */
#define CENTRE_RUN_S 2.0 /* NAVSIM's, see worker/METRICS.md */
#define CENTRE_DEVIATION_MAX_M 0.5
struct centre_run {
    uint32_t samples;
    bool kept_off; /* for `most` samples, once */
};

struct score {
    /* fixed at init */
    const struct prepared *prepared;
    const struct scenario *scenario;
    const struct roadmap *roadmap;
    const struct route *route;
    uint32_t sample_capacity;
    uint32_t agent_count;
    double ego_radius_m;
    double expected_progress_m;
    double route_end_s_m; /* where the route proper ends */

    /* running */
    uint32_t sample_count;
    uint32_t last_tick;
    struct vec2 last_center;
    double route_start_s_m;
    double distance_m;
    double speed_max_mps;
    double overspeed_sum_mps;
    double wrong_way_max_m;                      /* furthest against the lane in any window, >= 0 */
    double along_lane_m[DIRECTION_WINDOW_TICKS]; /* ring by tick */
    double off_drivable_max_m;
    double min_distance_m;
    double min_ttc_s;
    double impact_speed_mps; /* of the first contact; NAN: none */
    double impact_speed_max_mps;
    uint32_t collision_count;
    uint32_t collision_tick;
    int32_t collision_agent;
    enum collision_kind collision_kind;
    bool at_fault;
    bool goal_reached;
    struct centre_run centre;
    bool ran_red_light;
    bool ran_stop_sign;
    uint64_t red_signals;   /* a bit each: red at the last tick */
    uint64_t stopped_at;    /* stop signs that ego stood at before it last passed their lines */
    struct vec2 last_front; /* middle of ego's front edge then */
    bool has_last_front;
    bool ended;
    bool guardian_active;
    bool guardian_acts; /* judges down to standstill, so that ego does not creep on */
    uint32_t intervention_count;
    struct ego_view ego; /* of the last tick */
    struct {             /* of a log of the controls challenge, in the reference's order */
        double miss, jerk, last_mps2;
        uint32_t count; /* rows that cost so far */
    } controls;
};

/* ---- the block behind the struct ---- */

static inline double *score_agent_radii(const struct score *score)
{
    return (double *)(uintptr_t)(score + 1);
}

/* [sample_capacity] values of a signal; the first sample_count are filled. */
static inline double *score_signal(const struct score *score, enum signal signal)
{
    return score_agent_radii(score) + score->agent_count + (size_t)signal * score->sample_capacity;
}

/* [agent_count]: 1 once ego has touched the agent. */
static inline uint8_t *score_touched(const struct score *score)
{
    return (uint8_t *)score_signal(score, SIGNAL_COUNT);
}

/* ---- shared helpers (score.c) ---- */

static inline const struct box *agent_view_box(struct agent_view *agent)
{
    if (!agent->has_box) {
        agent->box = box_make(agent->state->pose, agent->record->length_m, agent->record->width_m);
        agent->has_box = true;
    }
    return &agent->box;
}

/* ---- lanes (score_lanes.c) ---- */

/* Whether ego's footprint is not in one driving lane or in lanes that follow one another (nuPlan's
 * "multiple lanes or non-drivable area"). */
bool ego_in_several_lanes(struct score *score);
/* Whether ego's rear axle is in a lane that is part of a junction. */
bool ego_in_intersection(struct score *score);
/* Posted limit where ego is, 0: none. In a junction, the highest of the lanes before and after the
 * junction lanes that contain ego, as nuPlan has it. */
double ego_speed_limit_mps(const struct score *score);

/* Takes a sample; `most`: how many on end cost lane keeping. */
void centre_run_add(struct centre_run *run, double deviation_m, bool in_junction, uint32_t most);

/* ---- signals (score_signals.c) ---- */

static_assert(LIMIT_SIGNALS <= 64, "red_signals has a bit per signal");

/* Notes whether ego passes a stop line on red. */
void score_signals_update(struct score *score, const struct scene *scene);

/* ---- collisions (score_collision.c) ---- */

/* The kind of a contact, tested in this order: ego stopped, other stopped, other behind, ego's
 * front edge touched, else lateral. */
enum collision_kind collision_classify(const struct ego_view *ego, const struct box *agent,
                                       double agent_speed_mps);

enum contact { CONTACT_NONE = 0, CONTACT_NOT_AT_FAULT, CONTACT_AT_FAULT };

/* Updates the clearance to an agent that has not been touched before and, if this is the contact,
 * the collision record. */
enum contact collision_update(struct score *score, struct agent_view *agent, uint32_t tick);

/* ---- time to collision (score_ttc.c) ---- */

#define TTC_STEP_S 0.1
enum { TTC_STEPS = 30 };

/* The first of 0.1, 0.2 .. 3.0 s at which the boxes, moved along at constant velocity, touch;
 * INFINITY if none. Closed form of the stepwise search: on each of the four separating axes the
 * boxes overlap during one interval of time. */
double ttc_boxes_s(const struct box *a, struct vec2 a_velocity_mps, const struct box *b,
                   struct vec2 b_velocity_mps);

/* TTC to one agent by nuPlan's rules of relevance; INFINITY when irrelevant. */
double ttc_agent_s(struct score *score, struct agent_view *agent);

/* ---- comfort (score_comfort.c) ---- */

struct comfort {
    bool comfortable;
    double lon_accel_min_mps2;
    double lon_accel_max_mps2;
    double lat_accel_max_mps2; /* absolute values from here on */
    double lon_jerk_max_mps3;
    double jerk_max_mps3; /* of the acceleration's magnitude */
    double yaw_rate_max_rps;
    double yaw_accel_max_rps2;
};

/* Filters the recorded signals. sample_count >= 1. */
struct comfort comfort_measure(const struct score *score);

/* ---- guardian (guardian.c) ---- */

/* Braking that ego and a vehicle ahead can be trusted to reach and not to exceed, from friction. */
void guardian_brakes(double friction, double *ego_mps2, double *lead_mps2);
/* Whether this agent makes the present motion of ego unsafe (RSS). */
bool guardian_agent_unsafe(const struct score *score, struct agent_view *agent);
/* Whether ego is outside the drivable area or will be within 1 s at constant turn rate. */
bool guardian_leaves_road(const struct score *score);
/* Closes the tick: counts the onset of an override. */
void guardian_update(struct score *score, bool agent_unsafe, bool leaves_road);

#endif
