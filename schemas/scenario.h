/*
 * Scenario: one concrete driving situation, fully resolved (no parameters, no file references).
 *
 * The record behind schemas/scenario.schema.json: every member below has a JSON member of the same
 * name unless a comment says otherwise. Metres, seconds, radians; x east, y north, headings
 * counter-clockwise from +x; a pose is that of the centre of the object's box. Arrays live in the
 * arena of the `struct scenario_document` that owns the record; a decoded scenario is immutable.
 */
#ifndef SWERVE_SCHEMAS_SCENARIO_H
#define SWERVE_SCHEMAS_SCENARIO_H

#include "base/geom.h"
#include "schemas/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- map ---- */

enum lane_kind { LANE_DRIVING = 0, LANE_SHOULDER, LANE_CYCLE, LANE_SIDEWALK, LANE_KIND_COUNT };
enum marking { MARKING_NONE = 0, MARKING_DASHED, MARKING_SOLID, MARKING_COUNT };

/* Accelerations that drivers take in bends where the surface gives more, and how they slow down for
 * them: traffic does, and importers start ego no faster where a file gives no speed. */
#define BEND_LAT_ACCEL_MPS2 3.0
#define BEND_DECEL_MPS2 2.0

struct lane {
    char id[LIMIT_ID_BYTES];
    enum lane_kind kind;      /* "driving" (default), "shoulder", "cycle", "sidewalk" */
    uint32_t point_count;     /* >= 2 */
    struct vec2 *centre_line; /* [point_count], in the direction of travel; JSON [[x,y],..] */
    double *width_m;          /* [point_count]; JSON: one number or one per point */
    double speed_limit_mps;   /* 0: none posted */
    int32_t left;             /* index of the neighbouring lane, -1: none; JSON: lane id */
    int32_t right;
    bool left_opposite; /* that neighbour runs the other way */
    bool right_opposite;
    uint32_t successor_count;
    uint32_t *successors;      /* lane indices; JSON: lane ids; cycles are legal (roundabouts) */
    enum marking left_marking; /* "none", "dashed", "solid" (default) */
    enum marking right_marking;
    bool intersection; /* part of a junction */
};

struct polygon {
    uint32_t point_count; /* >= 3, simple, either orientation */
    struct vec2 *points;  /* JSON [[x,y],..] */
};

/* A patch of road with its own friction: water, ice, oil. */
struct surface {
    char kind[LIMIT_ID_BYTES]; /* "water", "ice", "oil", "gravel", "snow" */
    double friction;           /* tyre-road coefficient, (0, 1.2] */
    struct polygon area;
};

/* Lights of a traffic signal. */
enum traffic_light {
    TRAFFIC_LIGHT_RED = 0,
    TRAFFIC_LIGHT_RED_YELLOW, /* about to turn green */
    TRAFFIC_LIGHT_YELLOW,     /* about to turn red */
    TRAFFIC_LIGHT_GREEN,
    TRAFFIC_LIGHT_OFF, /* dark or flashing: nobody is told anything */
    TRAFFIC_LIGHT_COUNT
};

struct signal_phase {
    enum traffic_light light; /* JSON "light": "red", "red_yellow", "yellow", "green", "off" */
    double duration_s;
};

/* Signs that regulate priority at a stop line: 206, 205, 306 of the Vienna convention's states; and
 * what holds there without a plate: the crossing road has priority, or whoever comes from the
 * right. */
enum traffic_sign {
    TRAFFIC_SIGN_NONE = 0, /* a traffic light */
    TRAFFIC_SIGN_STOP,
    TRAFFIC_SIGN_YIELD,
    TRAFFIC_SIGN_PRIORITY,       /* holds nobody; others are told by signs of their own */
    TRAFFIC_SIGN_GIVE_WAY,       /* no plate: a road of lower rank */
    TRAFFIC_SIGN_GIVE_WAY_RIGHT, /* no plate: priority to the right */
    /* No plate: turns across oncoming traffic. Its lanes are those on which one turns, and their
     * lines lie where they begin. */
    TRAFFIC_SIGN_GIVE_WAY_ONCOMING,
    TRAFFIC_SIGN_COUNT
};

/* A traffic light or sign for the traffic on some lanes, each of which ends behind its stop line.
 */
struct traffic_signal {
    char id[LIMIT_ID_BYTES];
    enum traffic_sign sign; /* JSON "sign": "stop" ..; such a one has no phases and is off */
    uint32_t lane_count;
    uint32_t *lanes;      /* indices; JSON: lane ids */
    double stop_m;        /* from the stop line to the lanes' ends, default 1 */
    double offset_s;      /* how far into its phases the signal is at the start */
    bool repeats;         /* after the last phase the first; else the last one stays (a log) */
    uint32_t phase_count; /* >= 1; of a sign 0 */
    struct signal_phase *phases;
};

struct map {
    char id[LIMIT_ID_BYTES];
    uint32_t lane_count;
    struct lane *lanes;
    uint32_t drivable_count; /* extra drivable areas besides the driving, shoulder, cycle lanes */
    struct polygon *drivable;
    uint32_t crosswalk_count;
    struct polygon *crosswalks;
    uint32_t surface_count;
    struct surface *surfaces;
    uint32_t signal_count;
    struct traffic_signal *signals;
};

/* ---- motion ---- */

/* A logged or prescribed motion, strictly increasing in time; any sampling, interpolated to ticks.
 */
struct trajectory_point {
    double t_s;
    double x_m;
    double y_m;
    double heading_rad;
    double speed_mps; /* >= 0 */
};

struct trajectory {
    uint32_t point_count;            /* 0: none */
    struct trajectory_point *points; /* JSON [[t,x,y,heading,speed],..] */
};

enum trigger_kind {
    TRIGGER_TIME = 0,     /* value: seconds since start */
    TRIGGER_EGO_DISTANCE, /* value: box distance agent-ego in metres falls below */
    TRIGGER_EGO_TTA,      /* value: ego's time to reach the agent's position along ego's heading, at
                             ego's present speed, falls below (seconds) */
    TRIGGER_EGO_PASSED,   /* value: agent's centre is more than this many metres behind ego's centre
                           */
    TRIGGER_AFTER,        /* value: seconds since the previous manoeuvre of this agent completed */
    TRIGGER_COUNT
};

struct trigger {
    enum trigger_kind
        kind; /* JSON "when": "time", "ego_distance", "ego_tta", "ego_passed", "after" */
    double value;
};

enum manoeuvre_kind {
    MANOEUVRE_SPEED = 0,   /* change speed to speed_mps at rate_mps2 (> 0 both ways) */
    MANOEUVRE_LANE_CHANGE, /* shift by offset_m (left positive) within duration_s, quintic profile
                            */
    MANOEUVRE_PATH,        /* leave the lane and follow path at speed_mps, rate_mps2 */
    MANOEUVRE_APPEAR,      /* become present (an agent with "hidden": true) */
    MANOEUVRE_VANISH,      /* stop being present */
    MANOEUVRE_COUNT
};

struct manoeuvre {
    struct trigger trigger;
    enum manoeuvre_kind kind; /* JSON "do": "speed", "lane_change", "path", "appear", "vanish" */
    double speed_mps;
    double rate_mps2;
    double offset_m;
    double duration_s;
    uint32_t path_count;
    struct vec2 *path;
};

/* Intelligent Driver Model and MOBIL parameters; see engine/object for the formulas and sources. */
struct idm {
    double desired_speed_mps;
    double time_headway_s;
    double min_gap_m;
    double accel_max_mps2;
    double decel_comfort_mps2;
    double politeness; /* MOBIL p */
    bool lane_changes; /* MOBIL on */
    bool sees_ego;     /* false: a distracted driver who ignores ego */
};

/* ---- agents ---- */

enum agent_kind {
    AGENT_CAR = 0,
    AGENT_VAN,
    AGENT_TRUCK,
    AGENT_BUS,
    AGENT_MOTORCYCLE,
    AGENT_CYCLIST,
    AGENT_PEDESTRIAN,
    AGENT_ANIMAL,
    AGENT_OBJECT, /* debris, cones, barriers, furniture */
    AGENT_KIND_COUNT
};

enum behaviour_kind {
    BEHAVIOUR_STATIC = 0, /* never moves */
    BEHAVIOUR_IDM,        /* follows its lane (or `route`) with IDM, changes lane with MOBIL */
    BEHAVIOUR_REPLAY,     /* a logged trajectory; in the object world, IDM along the logged path */
    BEHAVIOUR_SCRIPT,     /* keeps speed along lane or heading, then its manoeuvres in order */
    BEHAVIOUR_STORYBOARD, /* an actor of the scenario's storyboard */
    BEHAVIOUR_COUNT
};

struct agent {
    char id[LIMIT_ID_BYTES];
    enum agent_kind
        kind; /* "car", "van", "truck", "bus", "motorcycle", "cyclist", "pedestrian", .. */
    double length_m;
    double width_m;
    double height_m;
    struct pose pose;
    double speed_mps;
    bool hidden; /* not present until a manoeuvre or branch makes it appear */
    bool low;    /* flat enough for a lidar ray to pass over it (debris); still solid to the car */
    enum behaviour_kind behaviour;
    struct idm idm; /* used by IDM, and by REPLAY in the object world */
    struct trajectory trajectory;
    uint32_t manoeuvre_count;
    struct manoeuvre *manoeuvres;
    uint32_t route_count;
    uint32_t *route; /* lane indices an IDM agent follows; JSON: lane ids */
};

/* ---- ego ---- */

/* Further conditions at the tick at which ego is at its goal. NAN: not asked for. */
struct goal_bounds {
    double time_min_s; /* since the start */
    double time_max_s;
    double speed_min_mps;
    double speed_max_mps;
    double heading_min_rad; /* from the one to the other, counter-clockwise */
    double heading_max_rad;
};

#define EGO_DELAY_MAX_S 1.0

/* Models of ego's body; engine/traffic/ego_model.h and single_track.h. */
enum dynamics { DYNAMICS_KINEMATIC = 0, DYNAMICS_SINGLE_TRACK, DYNAMICS_COUNT };

struct ego {
    struct pose pose;
    double speed_mps;
    double length_m;
    double width_m;
    double height_m;
    double wheelbase_m;
    uint32_t route_count; /* >= 1 after loading: from JSON "route" or searched to "goal" */
    uint32_t *route;      /* lane indices; consecutive: successor or same-direction neighbour */
    bool has_goal;
    struct vec2 goal; /* JSON "goal": {"x_m","y_m","radius_m","area", and the bounds} */
    double goal_radius_m;
    struct polygon goal_area; /* in place of the circle; point_count 0: none */
    struct goal_bounds goal_bounds;
    enum dynamics dynamics; /* "kinematic" (default), "single_track" */
    double brake_delay_s;   /* dead times before a command begins to act, whole ticks */
    double steer_delay_s;
    struct trajectory log; /* the recorded or expert drive, optional; builtin:log follows it */
};

/* ---- conditions, slices, criteria ---- */

enum weather {
    WEATHER_CLEAR = 0,
    WEATHER_RAIN,
    WEATHER_HEAVY_RAIN,
    WEATHER_FOG,
    WEATHER_SNOW,
    WEATHER_COUNT
};
enum light { LIGHT_DAY = 0, LIGHT_DUSK, LIGHT_NIGHT, LIGHT_COUNT };

struct conditions {
    enum weather weather; /* "clear", "rain", "heavy_rain", "fog", "snow" */
    enum light light;     /* "day", "dusk", "night" */
    double friction;      /* (0, 1.2]; default by weather: 1.0, 0.7, 0.6, 0.9, 0.35 */
    double visibility_m;  /* lidar and camera range; default by weather: 200, 120, 80, 50, 80 */
};

enum slice_kind {
    SLICE_WEATHER = 0,
    SLICE_LIGHT,
    SLICE_ROAD,      /* "motorway", "urban", "rural", "junction", "roundabout", "parking" .. */
    SLICE_GEOGRAPHY, /* "europe", "north_america", "asia", "africa", "oceania" .. */
    SLICE_ACTOR,     /* "car", "truck", "pedestrian", "child", "cyclist", "animal", "object" .. */
    SLICE_SCENARIO_TYPE, /* "aeb_ccrs", "cut_in", "wrong_way" .. */
    SLICE_KIND_COUNT
};

struct slices {
    char value[SLICE_KIND_COUNT][LIMIT_ID_BYTES]; /* JSON members: weather, light, road, .. */
    bool safety_critical;
};

/* Criteria that the rollout must satisfy to pass. An absent criterion is not applied; a number that
 * is NAN is absent. JSON member names as here. */
struct criteria {
    bool no_at_fault_collision;  /* default true */
    bool no_collision;           /* default false: any contact fails */
    bool stay_drivable;          /* default true: no corner 0.3 m or more off */
    bool right_direction;        /* default true: driving-direction metric > 0 */
    bool reach_goal;             /* default false */
    bool comfortable;            /* default false */
    bool obey_signals;           /* default true: ego's front passes no stop line on red */
    double min_ttc_s;            /* smallest TTC allowed */
    double min_distance_m;       /* smallest clearance to any agent allowed */
    double impact_speed_max_mps; /* relative speed at a contact, when contact itself may pass */
    double progress_min;         /* fraction of the expected progress, 0..1 */
    double score_min;            /* nuPlan-style score, 0..1 */
    double speed_max_mps;        /* ego may not be faster at any tick */
    double expected_progress_m;  /* what counts as progress 1.0; NAN: from log or free flow */
    double total_cost_max;       /* of a log of the controls challenge */
};

/* Values where a document says nothing. */
struct criteria criteria_default(void);

/* ---- branches ---- */

enum intervention_kind {
    INTERVENE_EGO_BRAKE = 0, /* decel_mps2, steering as the lane needs */
    INTERVENE_EGO_SWERVE,    /* offset_m (left positive) within duration_s, then straight on */
    INTERVENE_EGO_MAINTAIN,  /* keep speed and lane */
    INTERVENE_EGO_ACTIONS,   /* given sequence, one per tick, the last one held */
    INTERVENE_EGO_PLANNER,   /* back to the planner */
    INTERVENE_AGENT_BRAKE,   /* agent, decel_mps2 */
    INTERVENE_AGENT_CUT_IN,  /* agent into ego's lane within duration_s */
    INTERVENE_AGENT_APPEAR,  /* a "hidden" agent becomes present */
    INTERVENE_CONDITIONS,    /* weather, light, friction, visibility change */
    INTERVENE_STACK_LATENCY, /* action arrives latency_ms late, +- uniform jitter_ms */
    INTERVENE_STACK_DROPOUT, /* sensors stay dark for duration_s */
    INTERVENE_SIGNAL,        /* a signal shows a light from now on */
    INTERVENE_TRAFFIC,       /* traffic, draw: who is there goes on as a traffic model has it */
    INTERVENE_COUNT
};

/* Who moves the agents from an INTERVENE_TRAFFIC on (engine/sensors/foresee.h). */
enum traffic_model {
    TRAFFIC_MODEL_WRITTEN = 0, /* as the scenario says, varied by another seed */
    TRAFFIC_MODEL_IDM,         /* the default driver, its plans unknown */
    TRAFFIC_MODEL_DRIVERS,     /* drivers that differ */
    TRAFFIC_MODEL_CONSTANT,    /* acceleration and rate of turn go on */
    TRAFFIC_MODEL_TOKENS,      /* a network adds to the default driver (engine/worlds/tokens.h) */
    TRAFFIC_MODEL_COUNT
};

enum sensor_mask {
    SENSOR_LIDAR = 1,
    SENSOR_CAMERA_LEFT = 2,
    SENSOR_CAMERA_FRONT = 4,
    SENSOR_CAMERA_RIGHT = 8,
    SENSOR_ALL = 15
};

/* Action of ego for one tick. */
struct action {
    double
        accel_mps2; /* longitudinal, along ego's heading; physics clamps to tyres and drivetrain */
    double steer_rad; /* front-wheel angle, left positive; physics limits angle and rate */
};

struct intervention {
    enum intervention_kind kind; /* JSON "kind": "ego_brake", "ego_swerve", .. as the enum names */
    uint32_t tick;               /* absolute; >= the branch's at_tick */
    int32_t agent;               /* index, -1: none; JSON: agent id */
    double decel_mps2;
    double offset_m;
    double duration_s;
    double latency_ms;
    double jitter_ms;
    uint32_t signal;            /* index in the map; JSON: signal id */
    enum traffic_light light;   /* JSON "light" */
    enum traffic_model traffic; /* JSON "model" */
    uint32_t draw;              /* which future of the model; 0: its nominal one */
    uint32_t sensors;           /* enum sensor_mask; JSON list of "lidar", "camera_left", .. */
    struct conditions conditions;
    uint32_t action_count;
    struct action *actions; /* JSON [[accel,steer],..] */
    uint32_t skipped_count; /* at most action_count */
    uint8_t *skipped; /* JSON "skipped_steps": [n,..], of the tick of each action so many steps of
                         a learned world's sampler are left out; 0 where there are none */
};

struct branch {
    char id[LIMIT_ID_BYTES];
    uint32_t at_tick;            /* the fork: ticks before it are shared with the main line */
    uint32_t intervention_count; /* >= 1, ordered by tick */
    struct intervention *interventions;
};

/* ---- traceability ---- */

/* Why a scenario is there, in the terms of ISO 21448: ids, whose texts a register has. */
enum trace_kind {
    TRACE_HAZARD = 0, /* JSON "traceability": {"hazards", "triggering_conditions",
                         "requirements"}, lists of ids, where there are any */
    TRACE_CONDITION,
    TRACE_REQUIREMENT,
    TRACE_KIND_COUNT
};

struct trace_links {
    uint32_t count;
    char (*ids)[LIMIT_ID_BYTES];
};

/* ---- a log of the controls challenge ---- */

/* One row at 10 Hz. Signs are the simulator's: steer is positive to the right. */
struct controls_row {
    double target_mps2;        /* lateral acceleration asked for */
    double roll_lataccel_mps2; /* of the road's roll: g sin(roll) */
    double v_ego_mps, a_ego_mps2;
    double steer; /* logged, -2 .. 2 after clipping */
};

struct controls_log {
    uint32_t count;
    struct controls_row *rows; /* JSON [[target, roll, v, a, steer],..] */
};

enum {
    CONTROLS_CONTEXT = 20,     /* rows that the simulator begins with: tick 0 is about this row */
    CONTROLS_FIRST_COST = 100, /* row from which on the controller steers, and pays */
    CONTROLS_COST_END = 500,   /* row after the last that costs */
};

/* Drive of the tinyphysics world (docs/controls.md). */
struct controls {
    uint32_t seed; /* of the generator, below 10,000: the log's path decides it */
    struct controls_log log;
};

/* ---- the whole ---- */

/* Which tier can answer: a logged scene again, planning behaviour, or perception in the loop. */
enum question { QUESTION_REGRESSION = 0, QUESTION_PLANNING, QUESTION_PERCEPTION, QUESTION_COUNT };

struct storyboard; /* schemas/storyboard/storyboard.h */
struct rig;        /* schemas/rig/rig.h */

struct scenario {
    char id[LIMIT_ID_BYTES]; /* unique within a suite after expansion */
    char title[LIMIT_TEXT_BYTES];
    char source[LIMIT_TEXT_BYTES]; /* protocol or file it was written from */
    char prompt[LIMIT_PROMPT_BYTES];
    char invalid[LIMIT_TEXT_BYTES]; /* why its rollouts mean nothing (importers say so); "": they
                                       do. JSON only where there is something to say */
    struct trace_links links[TRACE_KIND_COUNT];
    struct map map;
    struct ego ego;
    uint32_t agent_count;
    struct agent *agents;
    struct storyboard *storyboard; /* NULL: none */
    const struct rig *rig;         /* that planners are offered; NULL: the built-in one */
    struct controls controls;      /* log.count 0: none */
    struct conditions conditions;
    struct slices slices;
    uint32_t horizon_ticks; /* JSON "horizon_s", a multiple of the 0.1 s tick */
    enum question question; /* "regression", "planning" (default), "perception" */
    struct criteria criteria;
    uint32_t branch_count;
    struct branch *branches;
};

#endif
