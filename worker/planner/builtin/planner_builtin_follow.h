/*
 * Following: what builtin planners with a list of objects share. Places along the route, the
 * Intelligent Driver Model behind a leader or a stop line, and the speed that limits and bends
 * allow.
 *
 * Pure functions of an observation and of what a session keeps of signs; deterministic math alone.
 */
#ifndef SWERVE_WORKER_PLANNER_BUILTIN_PLANNER_BUILTIN_FOLLOW_H
#define SWERVE_WORKER_PLANNER_BUILTIN_PLANNER_BUILTIN_FOLLOW_H

#include "schemas/planner.h"

#include <stdbool.h>

/* Something on the route, measured along it from ego's foot point. */
struct planner_place {
    double s_m, offset_m;   /* left positive */
    double cosine, sine;    /* of a heading relative to the route's */
    double route_rad;       /* the route's direction there, ego frame */
    double left_m, right_m; /* to the borders of ego's lane there */
};

/* The route of one observation, for many places on it. */
struct planner_route {
    const struct swerve_observation *seen; /* borrowed */
    double cosine, sine;                   /* of ego's heading */
    double x_m[SWERVE_ROUTE_POINTS], y_m[SWERVE_ROUTE_POINTS];
    double dx_m[SWERVE_ROUTE_POINTS], dy_m[SWERVE_ROUTE_POINTS]; /* to the next point */
    double reach_m[SWERVE_ROUTE_POINTS];                         /* the next is no farther */
    /* All points lie within these; and whether no two pieces turn by more than 60 degrees, none of
     * them without a length. */
    double x_low_m, x_high_m, y_low_m, y_high_m;
    bool gentle;
};
void planner_route_take(const struct swerve_observation *seen, struct planner_route *out);

/* The foot of a point (world frame) on the route ahead, with the direction of a heading there.
 * False: it lies behind ego's foot point or past the route's end. */
bool planner_place_find(const struct planner_route *route, double x_m, double y_m,
                        double heading_rad, struct planner_place *out);

/* Whether an object surely stays so far from the route for a time that planner_place_find finds no
 * place whose offset is within reach_m. False says nothing. */
bool planner_route_misses(const struct planner_route *route, const struct swerve_object *object,
                          double time_s, double reach_m);

/* Half of what a box takes along and across the route. */
struct planner_half {
    double along_m, across_m;
};
struct planner_half planner_place_half(const struct planner_place *at, double length_m,
                                       double width_m);

/* Parameters of a driver. */
struct planner_manners {
    double headway_s;
    double speed_factor; /* times the limit */
    double min_gap_m;
    double accel_mps2, decel_mps2; /* comfortable ones */
};

#define PLANNER_NO_LIMIT_MPS 13.9

/* IDM's acceleration behind a leader (Treiber, Hennecke, Helbing, Phys. Rev. E 62, 2000). */
double planner_idm_behind(const struct planner_manners *manners, double speed_mps, double gap_m,
                          double lead_mps);

/* IDM's acceleration on a free road; not below -decel_mps2. */
double planner_idm_free(const struct planner_manners *manners, double speed_mps,
                        double allowed_mps);

/* A session's memory of signs: the stop sign that ego has stood at, + 1; 0: none. */
struct planner_halts {
    uint32_t stood_at;
};

/* Whether a sign has ego stop or wait at its line: a stop sign until ego has stood there, slower
 * than 0.1 m/s and within 4 m; any of those that have others go first while an object on the list,
 * going straight on, comes to the route behind the line within 6.5 s; where ego turns across
 * oncoming traffic, one that comes towards it, within 4.1 s (engine/traffic/traffic_signs.c names
 * the source). To be asked once a tick for every signal. */
bool planner_sign_holds(const struct swerve_observation *seen,
                        const struct swerve_surroundings *around,
                        const struct swerve_signal_state *signal, double length_m, double width_m,
                        struct planner_halts *halts);

/* Acceleration that signals ask for: at red a stop, at yellow where it takes less than 3 m/s2, at
 * signs that hold; front edges stop on the line. */
double planner_idm_signals(const struct planner_manners *manners,
                           const struct swerve_observation *seen,
                           const struct swerve_surroundings *around, double length_m,
                           double width_m, struct planner_halts *halts);

/* The speed that limits and bends ahead allow; `unposted_mps` where there is no limit. */
double planner_allowed_mps(const struct planner_manners *manners,
                           const struct swerve_observation *seen, double unposted_mps);

#endif
