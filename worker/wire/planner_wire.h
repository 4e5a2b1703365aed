/*
 * Planner wire: the bytes that travel between the worker and an exec planner. The protocol is
 * documented for implementers in schemas/planner.md; this is its codec. Pure: memory to memory.
 *
 * A welcome chooses the version: 1, in whose frames nothing has changed since, 3, which adds what
 * planner.h adds with its version 3, or 4, which adds the sensors of a rig.
 *
 * A frame is a 16-byte header and a payload, everything little-endian. The worker asks, the planner
 * answers each question with one frame that repeats its sequence number. Decoders take bytes from
 * an untrusted process: they read nothing beyond the given length, write only on success, and say
 * what was expected and what was found.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_WIRE_H
#define SWERVE_WORKER_PLANNER_PLANNER_WIRE_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/planner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLANNER_WIRE_MAGIC 0x4c505753u /* "SWPL" */
#define PLANNER_WIRE_VERSION 1u        /* that every hello begins with */
#define PLANNER_WIRE_VERSION_PLANS 3u  /* maps, objects and trajectories; there is no 2 */
#define PLANNER_WIRE_VERSION_NEWEST 4u /* that a welcome may choose: sensors of a rig */

enum planner_wire_type {
    WIRE_HELLO = 1,   /* worker: struct wire_hello, rig */
    WIRE_WELCOME = 2, /* planner: struct wire_welcome, name, loaded, choice */
    WIRE_RESET = 3,   /* worker: struct wire_reset, log, map, scenario id, prompt, controls */
    WIRE_DONE = 4,    /* planner, to RESET and FORK: empty */
    WIRE_ACT = 5,     /* worker: struct wire_act, count * struct wire_query */
    WIRE_ACTIONS = 6, /* planner: struct wire_act, count * struct wire_answer */
    WIRE_FORK = 7,    /* worker: struct wire_fork */
    WIRE_END = 8,     /* worker: struct wire_end; not answered */
    WIRE_ERROR = 9,   /* planner, instead of any answer: UTF-8 text */
    WIRE_BYE = 10,    /* worker: empty; not answered, the planner exits */
};

enum {
    WIRE_NAME_BYTES_MAX = 63,
    WIRE_ERROR_BYTES_MAX = 4096,
    WIRE_WELCOME_BYTES_MAX = 256 << 10, /* a rig of its own included */
    WIRE_SLOT_BYTES = 131072, /* of shared memory per session: grid, three images, padding */
    WIRE_ROUTE_POINTS = SWERVE_ROUTE_POINTS,
    WIRE_LOADED_BYTES = SHA256_HEX_BYTES - 1,
};

/* A page: planes of version 4 begin at multiples of it. */
#define WIRE_PLANE_BYTES 4096u

enum wire_feature {
    WIRE_LABELS = 1, /* labels of sessions on stderr (worker/planner/planner_output.h) */
    WIRE_LOADED = 2, /* a welcome may say what was loaded */
    WIRE_RIG = 4, /* behind the hello, to its end, stands rig.json; else it is the built-in rig */
};

struct wire_header {
    uint32_t magic;
    uint32_t type;
    uint32_t payload_bytes;
    uint32_t sequence;
};

struct wire_camera {
    double x_m, y_m, z_m, yaw_rad, hfov_rad;
};

struct wire_hello {
    uint32_t version;
    uint32_t session_count;
    uint32_t slot_bytes;       /* session i's slot starts at i * slot_bytes */
    uint32_t bev_offset;       /* within a slot */
    uint32_t camera_offset[3]; /* within a slot: left, front, right */
    uint32_t bev_channels, bev_rows, bev_cols;
    uint32_t camera_rows, camera_cols;
    uint32_t tick_deadline_ms;
    uint32_t route_points_max;
    uint32_t features;       /* enum wire_feature: what this worker understands */
    uint32_t version_newest; /* 0 before there was one */
    double route_step_m;
    double bev_cell_m, bev_x_min_m, bev_y_min_m;
    struct wire_camera cameras[3];
};

struct wire_welcome {
    uint16_t version; /* 1, 3 or 4 */
    uint16_t tracker; /* enum swerve_tracker; 0 in version 1 */
    uint32_t wants;
    uint32_t name_bytes;
    uint32_t loaded_bytes; /* 0, or WIRE_LOADED_BYTES: SHA-256 in hex of what it loaded */
};

struct wire_reset {
    uint32_t session;
    uint32_t horizon_ticks;
    uint64_t seed;
    double tick_s;
    double ego_length_m, ego_width_m, ego_wheelbase_m;
    uint32_t log_count; /* struct swerve_log_point each: five doubles */
    uint32_t scenario_id_bytes;
    uint32_t prompt_bytes;
    uint32_t map_bytes; /* between log and scenario id, a multiple of 8; 0: none */
};
/* From version 3 on: behind the prompt, filled up to 8 bytes, the rows of swerve_controls_row, to
 * the end of the frame; where there are none nothing is filled up. */

/* Begins a map; its arrays follow in the order of the counts, each filled up to 8 bytes. */
struct wire_map {
    uint32_t lane_count, point_count, link_count, area_count, vertex_count, stop_line_count;
    uint32_t signal_count, route_count;
    double goal_x_m, goal_y_m, goal_radius_m;
    uint32_t objects_source; /* of the episode */
    uint32_t reserved;
};

struct wire_act {
    uint32_t count;
    uint32_t record_bytes; /* sizeof(struct wire_query) or sizeof(struct wire_answer) */
};

enum wire_present { WIRE_PRESENT_BEV = 1, WIRE_PRESENT_CAMERA_LEFT = 2 /* front 4, right 8 */ };

struct wire_query {
    uint32_t session;
    uint32_t tick;
    int64_t time_ns;
    int64_t bev_time_ns;
    int64_t camera_time_ns[3];
    double x_m, y_m, heading_rad;
    double speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad;
    uint32_t route_count;
    uint32_t present;                  /* enum wire_present: which parts of the slot are filled */
    float route[WIRE_ROUTE_POINTS][7]; /* members of struct swerve_route_point in order */
    uint32_t reserved[2];
};

/* From version 3 on: after the queries one of these for each, in their order, with its objects and
 * its signals behind it. */
struct wire_around {
    uint32_t objects_source;
    uint32_t object_count;
    uint32_t signal_count;
    uint32_t reserved;
    int64_t objects_time_ns;
};

struct wire_answer {
    uint32_t session;
    uint32_t failed; /* 0 or 1 */
    double accel_mps2;
    double steer_rad;
};

/* From version 3 on; the points of all answers follow the records, in their order. */
struct wire_plan {
    uint32_t session;
    uint32_t failed;
    double accel_mps2;
    double steer_rad;
    uint32_t point_count;
    uint32_t reserved;
};

/* Version 4: a slot begins with this and `count` times struct wire_sensor, then the planes. It has
 * SWERVE_SHM_BYTES / session_count bytes. */
struct wire_directory {
    uint32_t count;
    uint32_t record_bytes; /* sizeof(struct wire_sensor) */
    uint64_t reserved;
};

/* Members of struct swerve_sensor, with a place in the slot where that has an address. */
struct wire_sensor {
    char id[SWERVE_SENSOR_ID_BYTES];
    uint32_t format, width, height;
    uint32_t count;
    uint64_t offset; /* of the first frame, from the slot's beginning */
    uint64_t stride;
    uint32_t bytes[SWERVE_SENSOR_FRAMES];
    int64_t time_ns[SWERVE_SENSOR_FRAMES];
    int64_t shutter_ns;
    uint32_t shutter;
    uint32_t reserved[3];
};

struct wire_fork {
    uint32_t from;
    uint32_t to;
};

struct wire_end {
    uint32_t session;
    uint32_t reserved;
};

_Static_assert(sizeof(struct wire_header) == 16, "wire layout");
_Static_assert(sizeof(struct wire_hello) == 216, "wire layout");
_Static_assert(sizeof(struct wire_welcome) == 16, "wire layout");
_Static_assert(sizeof(struct wire_reset) == 64, "wire layout");
_Static_assert(sizeof(struct wire_act) == 8, "wire layout");
_Static_assert(sizeof(struct wire_query) == 1024, "wire layout");
_Static_assert(sizeof(struct wire_answer) == 24, "wire layout");
_Static_assert(sizeof(struct wire_map) == 64, "wire layout");
_Static_assert(sizeof(struct wire_around) == 24, "wire layout");
_Static_assert(sizeof(struct wire_plan) == 32, "wire layout");
_Static_assert(sizeof(struct wire_directory) == 16, "wire layout");
_Static_assert(sizeof(struct wire_sensor) == 248, "wire layout");
_Static_assert(sizeof(struct swerve_map_lane) == 120, "wire layout");
_Static_assert(sizeof(struct swerve_map_point) == 48, "wire layout");
_Static_assert(sizeof(struct swerve_map_area) == 16, "wire layout");
_Static_assert(sizeof(struct swerve_map_stop_line) == 40, "wire layout");
_Static_assert(sizeof(struct swerve_map_signal) == 80, "wire layout");
_Static_assert(sizeof(struct swerve_object) == 96, "wire layout");
_Static_assert(sizeof(struct swerve_signal_state) == 16, "wire layout");
_Static_assert(sizeof(struct swerve_trajectory_point) == 40, "wire layout");
_Static_assert(sizeof(struct swerve_route_point) == 28, "wire layout");
_Static_assert(sizeof(struct swerve_log_point) == 40, "wire layout");
_Static_assert(sizeof(struct swerve_controls_row) == 32, "wire layout");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are copied, not swapped");

/* ---- worker to planner: return the frame's bytes, header included ---- */

/* `rig`: rig.json of what is offered, NULL: the built-in one. */
size_t wire_hello_bytes(const char *rig);
size_t wire_reset_bytes(const struct swerve_episode *episode);
/* Place in a reset's payload at which controls begin behind so many bytes of the rest. */
size_t wire_controls_offset(size_t payload_bytes);
size_t wire_act_bytes(uint32_t count);
/* With what is around each query: version 3. */
size_t wire_plan_bytes(uint32_t count, const struct swerve_surroundings *around);

/* `out` has room for the frame. `wants` (enum swerve_planner_wants) masks what a query says is
 * present. */
void wire_hello_encode(uint8_t *out, uint32_t sequence, uint32_t session_count,
                       uint32_t tick_deadline_ms, uint32_t features, const char *rig);
void wire_reset_encode(uint8_t *out, uint32_t sequence, const struct swerve_episode *episode);
void wire_act_encode(uint8_t *out, uint32_t sequence, uint32_t wants, uint32_t count,
                     const struct swerve_observation *observations);
void wire_plan_encode(uint8_t *out, uint32_t sequence, uint32_t wants, uint32_t count,
                      const struct swerve_observation *observations,
                      const struct swerve_surroundings *around);
size_t wire_fork_encode(uint8_t out[24], uint32_t sequence, uint32_t from, uint32_t to);
size_t wire_end_encode(uint8_t out[24], uint32_t sequence, uint32_t session);
size_t wire_bye_encode(uint8_t out[24], uint32_t sequence);

/* ---- planner to worker ---- */

/* Bytes of a slot of version 4, of sensors whose frames of a tick take at most so many bytes. */
size_t wire_slot_bytes(uint32_t count, const size_t *plane_bytes);
/* Writes a slot: the directory, and the frames behind it, each sensor's where wire_slot_bytes puts
 * it for `plane_bytes`. */
void wire_slot_write(uint8_t *slot, const size_t *plane_bytes,
                     const struct swerve_sensors *sensors);
/* Reads the directory of a slot of slot_bytes; `out` has room for `max` sensors, whose frames stay
 * where they are. False: it has more, or leads out of the slot. */
bool wire_slot_read(const uint8_t *slot, size_t slot_bytes, struct swerve_sensor *out, uint32_t max,
                    uint32_t *count);

/* Largest payload that an answer to a batch of `count` may have, by the version of the welcome. */
size_t wire_answer_bytes_max(uint32_t version, uint32_t count);

/* The first 16 bytes of an answer: right magic, a type the planner may send, `sequence` repeated,
 * payload within payload_bytes_max. */
enum status wire_header_decode(const uint8_t bytes[16], uint32_t sequence, size_t payload_bytes_max,
                               struct wire_header *out, struct error *error);

/* A planner's answer to hello. */
struct wire_greeting {
    uint32_t version; /* 1, 3 or 4 */
    uint32_t wants;
    uint32_t tracker;                   /* enum swerve_tracker; 0 in version 1 */
    char name[WIRE_NAME_BYTES_MAX + 1]; /* printable ASCII only */
    char loaded[SHA256_HEX_BYTES];      /* hex digits; "": it does not say */
    /* Of version 4, in the payload, to its end: JSON (schemas/rig/rig_choice.h). Else 0 bytes. */
    const char *choice;
    size_t choice_bytes;
};

enum status wire_welcome_decode(const uint8_t *payload, size_t bytes, struct wire_greeting *out,
                                struct error *error);

/* Answers must come in the order of the questions. Numbers are not judged here. */
enum status wire_actions_decode(const uint8_t *payload, size_t bytes, uint32_t count,
                                const struct swerve_observation *observations,
                                struct swerve_answer *answers, uint8_t *failed,
                                struct error *error);

/* The same of version 3: an action, or the points of a trajectory. Whether it can be followed is
 * not judged here. */
enum status wire_plans_decode(const uint8_t *payload, size_t bytes, uint32_t count,
                              const struct swerve_observation *observations,
                              struct swerve_answer *answers, uint8_t *failed, struct error *error);

/* ---- maps and surroundings, also for who reads them (planner_host.c) ---- */

size_t wire_map_bytes(const struct swerve_map *map); /* a multiple of 8 */
uint8_t *wire_map_encode(uint8_t *to, const struct swerve_map *map, uint32_t objects_source);
/* Points into the bytes, which are aligned as doubles are. False: sizes lie, or an index that leads
 * out of an array. */
bool wire_map_decode(const uint8_t *bytes, size_t size, struct swerve_map *out,
                     uint32_t *objects_source);
/* One query's; *at moves behind it. False: it does not fit into what is left of `end`. */
bool wire_around_decode(const uint8_t **at, const uint8_t *end, struct swerve_surroundings *out);

/* Text of a WIRE_ERROR frame for people: control bytes become blanks, cut to fit, terminated. */
void wire_error_text(const uint8_t *payload, size_t bytes, char *text, size_t text_bytes);

#endif
