/*
 * Trace: what happened in one job, tick by tick; the artifact behind every outcome. From a trace
 * and its scenario the report redraws any frame, so pictures cost nothing while simulating.
 *
 * One artifact per job: a trace_file_header, then one rollout after the other (main line first),
 * each a trace_rollout_header followed by `tick_count` ticks, each tick a struct trace_tick and
 * `agent_count` struct trace_agent. Little-endian, no padding beyond what is declared; the store
 * compresses the whole with zstd. A branch's ticks begin at its fork; the earlier ones are the main
 * line's.
 *
 * A job of a learned tier has keyframes after its last rollout: what the model generated cannot be
 * redrawn, so a few frames are kept: a trace_keyframe_header, then `frame_count` struct
 * trace_keyframe by rollout, then by tick. Those of a branch begin at its fork, as its ticks do.
 *
 * Plans follow, where a planner answered with trajectories or was given objects that were perceived
 * (swerve_objects_source seen or generated): a trace_plan_header, then `plan_count` records by
 * rollout, then by tick, each a struct trace_plan, its points and its objects. Those of a branch
 * begin at its fork. They are for people: no hash has them.
 *
 * Pictures follow, of a world that makes pictures of a rig: what each camera saw, at the
 * camera's own size, every so many ticks and at the last one of a rollout: a trace_pictures_header,
 * then `picture_count` records by rollout, tick and camera, each a struct trace_picture and a JPEG
 * file. Those of a branch begin at its fork.
 *
 * What planners wrote to stderr follows last, where any did: a trace_output_header, then for each
 * such rollout, in order, a struct trace_output and its text. A branch's text begins at its fork.
 *
 * trace_hash of a rollout = SHA-256 over its ticks from tick 0 (the shared prefix included), each
 * exactly as encoded here: two runs with equal hashes did the same thing to the last bit.
 */
#ifndef SWERVE_SCHEMAS_TRACE_H
#define SWERVE_SCHEMAS_TRACE_H

#include "schemas/limits.h"
#include "schemas/observation.h"

#include <stdint.h>

#define TRACE_MAGIC "SWTRACE1"

/* In front of a trace artifact that has every frame behind it
 * (worker/golden/golden_recording.h). */
#define RECORDING_MAGIC "SWGOLD01"

struct recording_header {
    char magic[8];
    uint64_t trace_bytes;
};
#define TRACE_KEYFRAME_MAGIC "SWFILM01"
#define TRACE_PLAN_MAGIC "SWPLAN01"
#define TRACE_PICTURES_MAGIC "SWVIEW01"
#define TRACE_OUTPUT_MAGIC "SWTEXT01"

/* Of one rollout's text. */
enum { TRACE_OUTPUT_BYTES_MAX = 4096 };

/* Kept of a trajectory, evenly chosen, and of a list of objects. */
enum { TRACE_PLAN_POINTS_MAX = 16, TRACE_PLAN_OBJECTS_MAX = 32 };

/* Cameras that have pictures at a tick. */
enum { TRACE_CAMERAS_MAX = 16 };

/* The part of the grid that a keyframe keeps: all columns, 12 m behind ego to 52 m ahead. */
enum { TRACE_KEYFRAME_FIRST_ROW = 8, TRACE_KEYFRAME_ROWS = 128 };

struct trace_file_header {
    char magic[8];
    uint32_t rollout_count;
    uint32_t agent_count;
};

struct trace_rollout_header {
    char branch_id[LIMIT_ID_BYTES];
    uint32_t first_tick;
    uint32_t tick_count;
    int32_t parent; /* index of the rollout it forked from, -1: none */
    uint32_t reserved;
};

/* State before the tick's step, and the action that then reached the car. */
struct trace_tick {
    uint32_t tick;
    uint8_t weather;
    uint8_t light;
    uint8_t sensors_dark; /* enum sensor_mask */
    uint8_t guardian : 1; /* the guardian would have overridden */
    uint8_t skipped : 7;  /* steps of its sampler that a learned world left out of the tick's step;
                             more than it has: as slot_skip (engine/worlds/world.h) */
    float friction;
    float visibility_m;
    double x_m, y_m, heading_rad, speed_mps, accel_mps2, lat_accel_mps2, yaw_rate_rps, steer_rad;
    double action_accel_mps2, action_steer_rad;
    uint64_t observation_digest; /* of what the planner was shown; 0: it asked for no sensor */
};

struct trace_agent {
    double x_m, y_m, heading_rad, speed_mps;
    uint32_t present;
    uint32_t reserved;
};

struct trace_keyframe_header {
    char magic[8];
    uint32_t frame_count;
    uint32_t reserved;
};

/* One frame in four bits a channel (v / 17): occupancy in the high nibble of bev[0], unseen in the
 * low one; drivable and marking in bev[1]. The front camera in five, six and five bits of red,
 * green and blue, red in the highest. */
struct trace_keyframe {
    uint32_t rollout;
    uint32_t tick;
    uint8_t bev[2][TRACE_KEYFRAME_ROWS * BEV_COLS];
    uint16_t camera[CAMERA_ROWS * CAMERA_COLS];
};

struct trace_plan_header {
    char magic[8];
    uint32_t plan_count;
    uint32_t reserved;
};

/* Intent of the planner at a tick, and what it was given as perceived. */
struct trace_plan {
    uint32_t rollout;
    uint32_t tick;
    uint32_t point_count;
    uint32_t object_count;
};

/* Places are metres east and north of ego's place at that tick. */
struct trace_plan_point {
    float t_s, x_m, y_m;
};

struct trace_plan_object {
    float x_m, y_m, heading_rad, length_m, width_m;
};

struct trace_pictures_header {
    char magic[8];
    uint32_t picture_count;
    uint32_t reserved;
};

struct trace_picture {
    uint32_t rollout;
    uint32_t tick;
    uint32_t camera; /* index in the rig */
    uint32_t width, height;
    uint32_t bytes;          /* of the JPEG file */
    char id[LIMIT_ID_BYTES]; /* of the camera */
};

struct trace_output_header {
    char magic[8];
    uint32_t text_count;
    uint32_t reserved;
};

struct trace_output {
    uint32_t rollout;
    uint32_t bytes;
};

_Static_assert(sizeof(struct trace_plan_header) == 16, "trace layout");
_Static_assert(sizeof(struct trace_plan) == 16, "trace layout");
_Static_assert(sizeof(struct trace_plan_point) == 12, "trace layout");
_Static_assert(sizeof(struct trace_plan_object) == 20, "trace layout");
_Static_assert(sizeof(struct trace_pictures_header) == 16, "trace layout");
_Static_assert(sizeof(struct trace_picture) == 88, "trace layout");
_Static_assert(sizeof(struct trace_output_header) == 16, "trace layout");
_Static_assert(sizeof(struct trace_output) == 8, "trace layout");
_Static_assert(sizeof(struct trace_keyframe_header) == 16, "trace layout");
_Static_assert(sizeof(struct trace_keyframe) == 36872, "trace layout");
_Static_assert(sizeof(struct trace_file_header) == 16, "trace layout");
_Static_assert(sizeof(struct trace_rollout_header) == 80, "trace layout");
_Static_assert(sizeof(struct trace_tick) == 104, "trace layout");
_Static_assert(sizeof(struct trace_agent) == 40, "trace layout");

#endif
