/*
 * Planner: the C ABI between Swerve and the software under test. Builtin planners, shared objects
 * (`plugin:FILE.so`) and the process adapter (`exec:CMD`) all implement this one table.
 *
 * Batched: one act() call carries every rollout that is due, one query each. A *session* is one
 * rollout's memory inside the planner, named by a small integer that the worker chooses. Sessions
 * are independent: an answer may depend on its own session's history and on nothing else, or
 * replays and forks will not reproduce (Swerve compares and says so).
 *
 * A plugin lives in the worker's process. When it crashes, or a call does not return for a long
 * time (planner.md), the worker is lost; its jobs are run again, and alone once they were lost
 * twice.
 *
 * Version 3 adds what planners of the field expect: lists of objects, a vector map, and answers as
 * trajectories. It changes no record of versions 1 and 2: what is new comes in records of its own
 * beside them (surroundings, answers), or at the end of one that is passed by address.
 *
 * Version 4 adds the sensors of a rig (schemas/rig/rig.schema.json) of any size, picked by their
 * ids. It too changes no record of the versions before.
 *
 * A plugin exports `const struct swerve_planner_ops *swerve_planner_entry(void)`. This header is
 * self-contained: C11 or C++11, libc types only. Units: metres, seconds, radians; x ahead, y left.
 */
#ifndef SWERVE_SCHEMAS_PLANNER_H
#define SWERVE_SCHEMAS_PLANNER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SWERVE_PLANNER_ABI_VERSION 4u /* of this header; plugins of 1 to 3 run unchanged */

enum { SWERVE_ROUTE_POINTS = 32 }; /* spaced SWERVE_ROUTE_STEP_M apart, from ego's foot point on */
#define SWERVE_ROUTE_STEP_M 4.0

enum {
    SWERVE_TRAJECTORY_POINTS = 80, /* of one answer, at most */
    SWERVE_HISTORY_TICKS = 50,     /* that a planner may ask for, at most */
    SWERVE_MAP_ID_BYTES = 64,      /* terminator included */
};

enum swerve_planner_wants {
    SWERVE_WANTS_BEV = 1,
    SWERVE_WANTS_CAMERAS = 2,
    /* Version 2, for planners with an open_on. The grid and the images stay on the device that the
     * world runs on: `bev` and `camera` are addresses there, of the same bytes. Where the world
     * runs on none, the planner is refused, or with HOST_ELSE given host memory. */
    SWERVE_WANTS_DEVICE = 4,
    SWERVE_WANTS_HOST_ELSE = 8,
    /* Version 3, for planners with a plan. */
    SWERVE_WANTS_OBJECTS = 16,   /* other road users as a list, where the world has one */
    SWERVE_WANTS_SEEN = 32,      /* of these only what ego's sensors see in this tick */
    SWERVE_WANTS_MAP = 64,       /* once per episode */
    SWERVE_WANTS_SIGNALS = 128,  /* what the map's signals show, true and wherever they are */
    SWERVE_WANTS_CONTROLS = 256, /* the rows of a log of the controls challenge, once per episode */
};

/* Memory that holds an instance's observations. Borrowed during open_on(). */
struct swerve_place {
    int32_t device;      /* as the device's runtime numbers them in this process; -1: host memory */
    const char *backend; /* "cuda:sm_90"; "cpu" in host memory */
};

/* One logged or expert sample, world frame. */
struct swerve_log_point {
    double t_s, x_m, y_m, heading_rad, speed_mps;
};

/* ---- version 3: map ---- */

enum swerve_lane_kind {
    SWERVE_LANE_DRIVING = 0,
    SWERVE_LANE_SHOULDER,
    SWERVE_LANE_CYCLE,
    SWERVE_LANE_SIDEWALK,
};
enum swerve_marking { SWERVE_MARKING_NONE = 0, SWERVE_MARKING_DASHED, SWERVE_MARKING_SOLID };
enum swerve_lane_flags {
    SWERVE_LANE_INTERSECTION = 1,  /* part of a junction */
    SWERVE_LANE_LEFT_OPPOSITE = 2, /* the neighbour on this side runs the other way */
    SWERVE_LANE_RIGHT_OPPOSITE = 4,
    SWERVE_LANE_ON_ROUTE = 8, /* of ego */
};

/* Members first_* and *_count say which part of the map's arrays belongs to a lane. */
struct swerve_map_lane {
    char id[SWERVE_MAP_ID_BYTES];      /* as the scenario has it, terminated */
    uint32_t kind;                     /* enum swerve_lane_kind */
    uint32_t flags;                    /* enum swerve_lane_flags */
    uint32_t first_point, point_count; /* of points, in the direction of travel; at least 2 */
    uint32_t first_successor, successor_count; /* of links: indices of lanes */
    uint32_t first_predecessor, predecessor_count;
    int32_t left, right;                  /* neighbouring lanes, -1: none */
    uint32_t left_marking, right_marking; /* enum swerve_marking */
    double speed_limit_mps;               /* 0: none posted */
};

struct swerve_map_point {      /* world frame */
    double x_m, y_m;           /* centre */
    double left_x_m, left_y_m; /* border */
    double right_x_m, right_y_m;
};

enum swerve_area_kind { SWERVE_AREA_CROSSING = 0, SWERVE_AREA_DRIVABLE };
struct swerve_map_area {                 /* a polygon */
    uint32_t kind;                       /* enum swerve_area_kind */
    uint32_t first_vertex, vertex_count; /* of vertices */
    uint32_t reserved;
};
struct swerve_map_vertex {
    double x_m, y_m;
};

/* Line at which traffic on a lane stops. */
struct swerve_map_stop_line {
    double left_x_m, left_y_m, right_x_m, right_y_m;
    int32_t lane;
    int32_t signal; /* that it belongs to, -1: none */
};

enum swerve_sign {
    SWERVE_SIGN_NONE = 0,
    SWERVE_SIGN_STOP,
    SWERVE_SIGN_YIELD,
    SWERVE_SIGN_PRIORITY,          /* the lanes have the right of way */
    SWERVE_SIGN_GIVE_WAY,          /* no plate: as at a yield sign */
    SWERVE_SIGN_GIVE_WAY_RIGHT,    /* no plate: to whom comes from the right */
    SWERVE_SIGN_GIVE_WAY_ONCOMING, /* no plate: its lanes turn across oncoming traffic */
};
struct swerve_map_signal { /* a traffic light, or a sign */
    char id[SWERVE_MAP_ID_BYTES];
    uint32_t first_lane, lane_count; /* of links: lanes that it controls */
    uint32_t first_stop_line; /* of stop_lines: one for each of these lanes, in their order */
    uint32_t sign;            /* enum swerve_sign */
};

struct swerve_map {
    uint32_t lane_count, point_count, link_count, area_count, vertex_count, stop_line_count;
    uint32_t signal_count;
    uint32_t route_count;
    double goal_x_m, goal_y_m, goal_radius_m; /* radius 0: the scenario has no goal */
    const struct swerve_map_lane *lanes;
    const struct swerve_map_point *points;
    const uint32_t *links;
    const struct swerve_map_area *areas;
    const struct swerve_map_vertex *vertices;
    const struct swerve_map_stop_line *stop_lines;
    const struct swerve_map_signal *signals;
    const uint32_t *route; /* lanes that ego is to drive, in order */
};

/* A row of a log of the controls challenge (docs/controls.md): what its controllers call target,
 * state and, of the rows that follow, future plan. */
struct swerve_controls_row {
    double target_mps2, roll_lataccel_mps2, v_ego_mps, a_ego_mps2;
};

/* Knowledge of a planner when a rollout begins. Pointers are valid during reset() only. */
struct swerve_episode {
    uint32_t session;
    uint32_t horizon_ticks;
    uint64_t seed;
    double tick_s;
    const char *scenario_id;
    const char *prompt;
    double ego_length_m, ego_width_m, ego_wheelbase_m;
    uint32_t log_count; /* expert drive, 0 where none exists */
    const struct swerve_log_point *log;
    /* ---- version 3 ---- */
    const struct swerve_map *map; /* NULL: not asked for */
    uint32_t objects_source;      /* enum swerve_objects_source of the whole rollout */
    uint32_t controls_count;      /* 0: not asked for, or the scenario has no such log */
    const struct swerve_controls_row *controls; /* [controls_count]: row i is about tick i */
};

/* One point of the route ahead, ego frame. */
struct swerve_route_point {
    float x_m, y_m;
    float speed_limit_mps; /* 0: none posted */
    float left_m, right_m; /* distance from the centre line to the edge of ego's own lane */
    float adjacent_left_m; /* how much further left same-direction lanes reach, 0: none */
    float adjacent_right_m;
};

/* Pointers are valid during act() only. What was to be written there has been written before the
 * call; on a device too, for every stream. What the planner queued on a device to read them has
 * finished when act() returns. */
struct swerve_observation {
    uint32_t session;
    uint32_t tick;
    int64_t time_ns;     /* simulated, since the start of the rollout */
    int64_t bev_time_ns; /* when the grid was taken; older than time_ns while it drops out */
    int64_t camera_time_ns[3];
    double x_m, y_m, heading_rad; /* world frame */
    double speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad;
    uint32_t route_count;
    const struct swerve_route_point *route;
    const uint8_t *bev;       /* [BEV_CHANNELS][BEV_ROWS][BEV_COLS] or NULL: see observation.h */
    const uint8_t *camera[3]; /* [CAMERA_ROWS][CAMERA_COLS][3] or NULL: left, front, right */
};

struct swerve_action {
    double accel_mps2;
    double steer_rad; /* front-wheel angle, left positive */
};

/* ---- version 3: objects, history, trajectories ---- */

enum swerve_object_kind {
    SWERVE_OBJECT_CAR = 0,
    SWERVE_OBJECT_VAN,
    SWERVE_OBJECT_TRUCK,
    SWERVE_OBJECT_BUS,
    SWERVE_OBJECT_MOTORCYCLE,
    SWERVE_OBJECT_CYCLIST,
    SWERVE_OBJECT_PEDESTRIAN,
    SWERVE_OBJECT_ANIMAL,
    SWERVE_OBJECT_OTHER, /* debris, cones, barriers, furniture */
    SWERVE_OBJECT_KIND_COUNT
};

/* Another road user or thing; world frame. */
struct swerve_object {
    uint32_t id;   /* the same in every tick of the rollout and of its branches */
    uint32_t kind; /* enum swerve_object_kind */
    double length_m, width_m, height_m;
    double x_m, y_m, heading_rad; /* of the box's centre */
    double vx_mps, vy_mps;
    double ax_mps2, ay_mps2;
    double yaw_rate_rps;
};

/* Origin of a list of objects. It is part of every outcome (schemas/planner.md). */
enum swerve_objects_source {
    SWERVE_OBJECTS_NONE = 0,  /* not asked for, or the world has no list: it is empty */
    SWERVE_OBJECTS_TRUE,      /* all that are there: privileged */
    SWERVE_OBJECTS_SEEN,      /* of these, what a sensor of ego sees; true figures of them */
    SWERVE_OBJECTS_GENERATED, /* found in the frames that a learned world generated */
};

enum swerve_signal_light {
    SWERVE_SIGNAL_OFF = 0,
    SWERVE_SIGNAL_RED,
    SWERVE_SIGNAL_RED_YELLOW,
    SWERVE_SIGNAL_GREEN,
    SWERVE_SIGNAL_YELLOW,
    SWERVE_SIGNAL_STOP_SIGN, /* it is no light but a sign, and never shows anything else */
    SWERVE_SIGNAL_YIELD_SIGN,
    SWERVE_SIGNAL_PRIORITY_SIGN,
    SWERVE_SIGNAL_GIVE_WAY, /* no plate */
    SWERVE_SIGNAL_GIVE_WAY_RIGHT,
    SWERVE_SIGNAL_GIVE_WAY_ONCOMING,
};
struct swerve_signal_state {
    uint32_t signal; /* index in the map */
    uint32_t light;  /* enum swerve_signal_light */
    /* From ego's front edge along its route to the signal's next stop line; negative: its route
     * crosses none of them any more. */
    double stop_ahead_m;
};

/* An earlier tick, as it was shown then. */
struct swerve_moment {
    uint32_t tick;
    uint32_t object_count;
    int64_t time_ns;
    double x_m, y_m, heading_rad; /* ego */
    double speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad;
    const struct swerve_object *objects;
};

/* Members of version 3's observation beside the sensors. Pointers are valid during plan() only.
 */
struct swerve_surroundings {
    uint32_t objects_source; /* enum swerve_objects_source */
    uint32_t object_count;
    const struct swerve_object *objects;
    int64_t objects_time_ns; /* older than time_ns while every sensor that sees them is dark */
    uint32_t signal_count;
    uint32_t history_count;
    const struct swerve_signal_state *signals;
    const struct swerve_moment *history; /* oldest first; fewer than asked for at the start */
};

struct swerve_trajectory_point {
    double t_s;                              /* from this tick on */
    double x_m, y_m, heading_rad, speed_mps; /* of ego's box centre, world frame */
};

/* Follower of a trajectory, stated in schemas/planner.md. */
enum swerve_tracker {
    SWERVE_TRACKER_LQR = 0, /* nuPlan's, with its parameters */
    SWERVE_TRACKER_PURSUIT, /* pure pursuit, and the speed by a proportional term */
    SWERVE_TRACKER_COUNT
};

/* A trajectory where point_count > 0: times rise, from 0 or later; else the action. */
struct swerve_answer {
    struct swerve_action action;
    uint32_t point_count; /* at most SWERVE_TRAJECTORY_POINTS */
    uint32_t reserved;    /* 0 */
    struct swerve_trajectory_point points[SWERVE_TRAJECTORY_POINTS];
};

/* ---- version 4: sensors of a rig ---- */

enum {
    SWERVE_SENSOR_ID_BYTES = 48, /* terminator included */
    SWERVE_SENSOR_FRAMES = 12,   /* of one tick, at most */
};

enum swerve_sensor_format {
    SWERVE_FORMAT_RGB8 = 0, /* [height][width][3], row 0 at the top */
    SWERVE_FORMAT_JPEG,     /* a JPEG file */
    SWERVE_FORMAT_GRID,     /* [BEV_CHANNELS][height][width]: see observation.h */
    SWERVE_FORMAT_POINTS,   /* struct swerve_point, of a lidar of width azimuths and height rings */
    SWERVE_FORMAT_COUNT
};

/* Return of a beam of a lidar, in the lidar's own frame (x ahead, y left, z up) at its moment. */
struct swerve_point {
    float x_m, y_m, z_m;
    uint8_t intensity; /* share of the light that comes back, of 255 */
    uint8_t ring;      /* which elevation of the rig */
    uint16_t time_2us; /* since the turn began, in units of 2 us */
};

/* Frames that one sensor has taken since the tick before, the newest last; at a drive's first tick
 * there is one. A lidar's frame is a turn. A sensor that is dark keeps what it took last. */
struct swerve_sensor {
    char id[SWERVE_SENSOR_ID_BYTES];
    uint32_t format; /* enum swerve_sensor_format */
    uint32_t width, height;
    uint32_t count;        /* of frames */
    const uint8_t *frames; /* frame i begins at i * stride */
    uint64_t stride;
    uint32_t bytes[SWERVE_SENSOR_FRAMES];  /* of each frame */
    int64_t time_ns[SWERVE_SENSOR_FRAMES]; /* when its last row was taken, or the turn ended,
                                              simulated; -1: never, and the frame is black */
    int64_t shutter_ns; /* from the first row, or the turn's beginning, to that; 0: all at once */
    uint32_t shutter;   /* which row is the first: 1 top, 2 bottom, 3 left, 4 right; 0: none is */
    uint32_t reserved[3];
};

/* Sensors of one observation, in the order in which they were picked. Valid during drive() only. */
struct swerve_sensors {
    uint32_t count;
    uint32_t reserved;
    const struct swerve_sensor *sensors;
};

/* Offer to a planner when it is opened; valid during open_rig() only. */
struct swerve_offer {
    const char *rig;    /* rig.json of the job's sensors, terminated */
    const char *config; /* as in open */
    uint32_t session_count;
    uint32_t choice_bytes; /* room of choice */
    char *choice; /* out: JSON, terminated: {"sensors": ["front", {"id": "left", "encoding":
                     "jpeg:90"}], "rig": {..}}; "rig" where the planner has one of its own */
};

/* All functions return 0 on success; on failure they return non-zero and, where given, write a
 * terminated sentence to error_text. Calls on one instance never overlap. */
struct swerve_planner_ops {
    uint32_t abi_version; /* SWERVE_PLANNER_ABI_VERSION; what came with a later one is not read */
    uint32_t wants;       /* enum swerve_planner_wants */
    const char *name;
    /* Creates an instance for session numbers below session_count. `config` is the text after
     * "?" in the planner spec, "" if none. */
    int (*open)(void **planner, const char *config, uint32_t session_count, char *error_text,
                uint32_t error_bytes);
    void (*close)(void *planner);
    int (*reset)(void *planner, const struct swerve_episode *episode, char *error_text,
                 uint32_t error_bytes);
    /* failed[i] != 0 marks an answer that could not be given; the others stay valid. */
    int (*act)(void *planner, uint32_t count, const struct swerve_observation *observations,
               struct swerve_action *actions, uint8_t *failed, char *error_text,
               uint32_t error_bytes);
    /* Makes session `to` an independent copy of session `from`. NULL: sessions hold no memory that
     * act() depends on, so nothing needs copying. */
    int (*fork)(void *planner, uint32_t from, uint32_t to, char *error_text, uint32_t error_bytes);
    /* The rollout ended; the session number will be reused. May be NULL. */
    void (*end)(void *planner, uint32_t session);
    /* ---- version 2 ---- */
    /* Called in place of open, which may be NULL then; NULL: observations lie in host memory. */
    int (*open_on)(void **planner, const struct swerve_place *place, const char *config,
                   uint32_t session_count, char *error_text, uint32_t error_bytes);
    /* ---- version 3 ---- */
    /* Called in place of act, which may be NULL then. Arrays are parallel. answers[i] begins as
     * an action that is not a number, without points. NULL: act is called, and wants has no bit of
     * version 3. */
    int (*plan)(void *planner, uint32_t count, const struct swerve_observation *observations,
                const struct swerve_surroundings *surroundings, struct swerve_answer *answers,
                uint8_t *failed, char *error_text, uint32_t error_bytes);
    uint32_t history_ticks; /* earlier ticks to be shown, at most SWERVE_HISTORY_TICKS */
    uint32_t tracker;       /* enum swerve_tracker of its trajectories */
    /* ---- version 4 ---- */
    /* Called in place of open and open_on, which may be NULL then; needs drive. wants has neither
     * BEV nor CAMERAS: sensors are those of the choice. */
    int (*open_rig)(void **planner, const struct swerve_offer *offer, char *error_text,
                    uint32_t error_bytes);
    /* Called in place of plan, with the sensors of each observation; needs open_rig. */
    int (*drive)(void *planner, uint32_t count, const struct swerve_observation *observations,
                 const struct swerve_surroundings *surroundings,
                 const struct swerve_sensors *sensors, struct swerve_answer *answers,
                 uint8_t *failed, char *error_text, uint32_t error_bytes);
};

typedef const struct swerve_planner_ops *(*swerve_planner_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
