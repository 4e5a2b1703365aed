/*
 * Storyboard: what agents do when, as OpenSCENARIO tells it: events that wait for conditions and
 * start actions. The record behind "storyboard" of a scenario; engine/story runs it.
 *
 * An actor moves on a path (a polyline with arc lengths, in its direction of travel) at an offset
 * to its left. Its position is that of its reference point (of a car: the middle of the rear axle);
 * the box's centre lies reference_m ahead of it. Actors whose agent is -1 stand for ego, which a
 * planner drives: conditions look at it, actions do not move it. All references are indices that
 * decoding has checked. Arrays live in the arena of the scenario's document.
 */
#ifndef SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_H
#define SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_H

#include "base/geom.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LIMIT_STORY_ACTORS = 48,
    LIMIT_STORY_PATHS = 512,
    LIMIT_STORY_PATH_POINTS = 8192, /* of one path */
    LIMIT_STORY_CONDITIONS = 192,
    LIMIT_STORY_ACTIONS = 128,
    LIMIT_STORY_EVENTS = 96,
    LIMIT_STORY_GROUPS = 16, /* of a trigger, and conditions of a group */
    LIMIT_STORY_STEPS = 64,  /* of a speed profile */
    LIMIT_STORY_WAYS = 16,   /* of an action */
    LIMIT_STORY_VARIABLES = 64,
};

#define STORY_EGO (-1)

struct story_point {
    double s_m; /* arc length, ascending */
    double x_m;
    double y_m;
    double heading_rad; /* unwrapped along the path */
    double t_s;         /* of a timed path, ascending; else 0 */
};

struct story_path {
    uint32_t point_count;       /* >= 2 */
    struct story_point *points; /* JSON [[s,x,y,heading],..], of a timed path [[s,x,y,heading,t],..]
                                 */
    bool timed;
    int32_t next;         /* path that goes on where this one ends; -1: straight on */
    double next_s_m;      /* where on it */
    double next_offset_m; /* how far to its left */
};

struct story_actor {
    int32_t agent; /* index, STORY_EGO: ego; JSON: agent id, absent: ego */
    uint32_t path; /* where it starts; of ego: what distances along its road are measured on */
    double s_m;
    double offset_m;
    double heading_rad; /* relative to the path */
    double speed_mps;
    double reference_m;    /* from the reference point forward to the box's centre */
    double accel_max_mps2; /* bounds of its speed actions */
    double decel_max_mps2;
    double speed_max_mps;
};

enum story_rule {
    STORY_GREATER = 0,
    STORY_GREATER_EQUAL,
    STORY_LESS,
    STORY_LESS_EQUAL,
    STORY_EQUAL,
    STORY_NOT_EQUAL,
    STORY_RULE_COUNT
};

enum story_edge {
    STORY_EDGE_NONE = 0,
    STORY_EDGE_RISING,
    STORY_EDGE_FALLING,
    STORY_EDGE_EITHER,
    STORY_EDGE_COUNT
};

enum story_condition_kind {
    STORY_TIME = 0,          /* seconds since the start */
    STORY_STATE,             /* state of an event or, with action, of one of its actions */
    STORY_DISTANCE,          /* actor to a point */
    STORY_RELATIVE_DISTANCE, /* actor to another */
    STORY_HEADWAY,           /* the same over the actor's speed; only while it moves */
    STORY_TTC,               /* distance over closing speed, to another or to a point */
    STORY_SPEED,
    STORY_RELATIVE_SPEED, /* actor's minus other's */
    STORY_ACCELERATION,
    STORY_STANDSTILL, /* for at least value seconds; no rule */
    STORY_TRAVELLED,  /* at least value metres; no rule */
    STORY_REACH,      /* within value metres of a point; no rule */
    STORY_COLLISION,  /* boxes overlap, other's or any of a type; no rule */
    STORY_CONSTANT,   /* value is not 0; no rule */
    STORY_ANGLE,      /* heading within tolerance_rad of value, to other's, or along: its path's */
    STORY_CLEARANCE,  /* other is not within ahead_m and behind_m along the actor's path, low_m to
                         high_m left of it; same_way: and going the actor's way; no rule */
    STORY_OFF_ROAD,   /* the reference point is on no lane and no drivable area, for at least value
                         seconds; looked at each tick; no rule */
    STORY_ROAD_END,   /* at the end of its path, which nothing goes on from, for at least value
                         seconds; no rule */
    STORY_VARIABLE,   /* what a variable was last set to, else its first value */
    STORY_CONDITION_COUNT
};

enum story_measure {
    STORY_EUCLIDEAN = 0,
    STORY_LONGITUDINAL, /* along the actor's heading, or along its path where `along` */
    STORY_LATERAL,      /* of speeds and accelerations: part along and across the actor */
    STORY_MEASURE_COUNT
};

enum story_state_kind {
    STORY_STANDBY = 0,
    STORY_RUNNING,
    STORY_COMPLETE, /* and from then on */
    STORY_STARTS,   /* the moment of its start */
    STORY_ENDS,     /* of its regular end */
    STORY_STOPS,    /* of its end by an overwriting event or a stop trigger */
    STORY_STATE_COUNT
};

/* Entities that a collision may be with. */
enum story_type { STORY_OTHER = 0, STORY_VEHICLE, STORY_PEDESTRIAN, STORY_MISC, STORY_TYPE_COUNT };

struct story_condition {
    enum story_condition_kind kind; /* JSON "is" */
    enum story_rule rule;
    enum story_edge edge;
    enum story_measure measure;
    enum story_state_kind state;
    enum story_type type;
    int32_t actor;
    int32_t other;
    int32_t event;
    int32_t action;
    int32_t variable; /* -1: none */
    bool freespace;   /* between boxes, else between reference points */
    bool along;
    double value;
    double delay_s;
    double x_m;
    double y_m;
    double tolerance_rad;
    bool same_way;
    double ahead_m;
    double behind_m;
    double low_m;
    double high_m;
};

enum story_shape { STORY_STEP = 0, STORY_LINEAR, STORY_CUBIC, STORY_SINUSOIDAL, STORY_SHAPE_COUNT };

enum story_by {
    STORY_BY_TIME = 0,
    STORY_BY_DISTANCE,
    STORY_BY_RATE,
    STORY_BY_ACCEL,
    STORY_BY_COUNT
};

enum story_action_kind {
    STORY_DO_SPEED = 0,   /* to target_mps, or to other's speed * factor + target_mps */
    STORY_DO_PROFILE,     /* speeds reached one after the other */
    STORY_DO_LATERAL,     /* to target_m left of `path` (-1: the present one), with other: of it */
    STORY_DO_FOLLOW,      /* a path from its s_m on; one with times at its times, from start_s on */
    STORY_DO_GAP,         /* keeps `value` metres (or seconds) behind other, or ahead of it */
    STORY_DO_SYNCHRONISE, /* reach (x, y) when other reaches (other_x, other_y); target as of speed
                           */
    STORY_DO_PLACE,       /* at s_m, offset_m of path at once */
    STORY_DO_PATH,        /* goes on along path from where it is */
    STORY_DO_SHOW,
    STORY_DO_HIDE,
    STORY_DO_WAIT, /* value seconds: what nobody here carries out but others wait for */
    STORY_DO_SET,  /* a variable to set_to, at once; of nobody */
    STORY_ACTION_COUNT
};

/* Path and target of a lateral action for an actor that is at from_s_m or beyond when it starts. */
struct story_way {
    double from_s_m; /* ascending */
    int32_t path;    /* -1: the present one */
    double target_m;
};

struct story_action {
    enum story_action_kind kind; /* JSON "do" */
    int32_t actor;
    int32_t other;
    int32_t path;
    int32_t variable; /* -1: none */
    enum story_shape shape;
    enum story_by by;
    bool continuous; /* never complete */
    bool freespace;
    bool absolute;   /* times of a path are the scenario's, else since the action's start */
    bool relative;   /* follow: the path is laid from the actor's place and heading at the start */
    bool ends_speed; /* synchronise: arrive at target_mps */
    double target_mps;
    double target_m;
    double factor;
    double set_to;
    double value;  /* of `by`, gap or wait */
    double time_s; /* gap in seconds, in place of value; NAN: none */
    double s_m;
    double offset_m;
    double heading_rad;
    double start_s; /* added to a path's times */
    double scale;   /* of a path's times */
    double x_m;
    double y_m;
    double other_x_m;
    double other_y_m;
    double tolerance_m;
    double other_tolerance_m;
    double steady_m; /* the last of the way at target_mps */
    double accel_mps2;
    double decel_mps2;
    double speed_max_mps;
    uint32_t step_count; /* of a profile */
    struct vec2 *steps;  /* x: seconds since the one before, y: m/s; JSON [[s, mps],..] */
    int32_t ways_on;     /* path that from_s_m of `ways` are on; -1: there are none */
    uint32_t way_count;
    struct story_way *ways; /* in place of path and target_m, further on; JSON [[s, path, m],..] */
};

struct story_group {
    uint32_t count;       /* all of them hold */
    uint32_t *conditions; /* each in one group alone, because it has a memory */
};

struct story_trigger {
    uint32_t count; /* one of the groups holds; 0: at once (a start), never (a stop) */
    struct story_group *groups;
};

enum story_priority { STORY_OVERWRITE = 0, STORY_SKIP, STORY_PARALLEL, STORY_PRIORITY_COUNT };

/* An event, or with parent -1 an act: it waits, holds others, and moves nobody. */
struct story_event {
    int32_t parent; /* an earlier one */
    uint32_t group; /* events of one manoeuvre have the same; priorities are among them */
    enum story_priority priority;
    uint32_t repeats; /* how often it may run, >= 1 */
    struct story_trigger start;
    struct story_trigger stop; /* of an act */
    uint32_t action_count;
    uint32_t *actions;
};

struct storyboard {
    uint32_t path_count;
    struct story_path *paths;
    uint32_t actor_count;
    struct story_actor *actors;
    uint32_t condition_count;
    struct story_condition *conditions;
    uint32_t action_count;
    struct story_action *actions;
    uint32_t event_count;
    struct story_event *events;
    uint32_t variable_count;
    double *variables; /* their first values */
};

/* Points of paths that it looks at in one step, at most: 52 ms a tick at 4 ns a point. */
#define LIMIT_STORY_VISITS ((uint64_t)1 << 18)
/* map_points: of all lanes and drivable areas, looked at once a tick by each that asks for them. */
uint64_t storyboard_visits(const struct storyboard *board, uint64_t map_points);

#endif
