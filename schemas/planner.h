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
 * A plugin exports `const struct swerve_planner_ops *swerve_planner_entry(void)`. This header is
 * self-contained: C11 or C++11, libc types only. Units: metres, seconds, radians; x ahead, y left.
 */
#ifndef SWERVE_SCHEMAS_PLANNER_H
#define SWERVE_SCHEMAS_PLANNER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SWERVE_PLANNER_ABI_VERSION 2u /* of this header; plugins of version 1 run unchanged */

enum { SWERVE_ROUTE_POINTS = 32 }; /* spaced SWERVE_ROUTE_STEP_M apart, from ego's foot point on */
#define SWERVE_ROUTE_STEP_M 4.0

enum swerve_planner_wants {
    SWERVE_WANTS_BEV = 1,
    SWERVE_WANTS_CAMERAS = 2,
    /* Version 2, for planners with an open_on. The grid and the images stay on the device that the
     * world runs on: `bev` and `camera` are addresses there, of the same bytes. Where the world
     * runs on none, the planner is refused, or with HOST_ELSE given host memory. */
    SWERVE_WANTS_DEVICE = 4,
    SWERVE_WANTS_HOST_ELSE = 8,
};

/* Where an instance's observations lie. Borrowed during open_on(). */
struct swerve_place {
    int32_t device;      /* as the device's runtime numbers them in this process; -1: host memory */
    const char *backend; /* "cuda:sm_90"; "cpu" in host memory */
};

/* One logged or expert sample, world frame. */
struct swerve_log_point {
    double t_s, x_m, y_m, heading_rad, speed_mps;
};

/* What a planner may know when a rollout begins. Pointers are valid during reset() only. */
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
};

typedef const struct swerve_planner_ops *(*swerve_planner_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
