/*
 * WOMD import: a scene of the Waymo Open Motion Dataset in the JSON that GPUDrive and PufferDrive
 * read, to a scenario document: ego is the recording vehicle, with its drive as its log, and every
 * other track follows its own log (in the object world: drives by IDM along it).
 *
 * Sources: the format, as GPUDrive's data_utils/process_waymo_files.py writes it; types of lanes
 * and lights, waymo_open_dataset/protos/map.proto. What the format does not have (widths, links and
 * neighbours of lanes, speed limits) is made up as docs/womd.md says.
 *
 * Invariant: what is handed out has been loaded once, and loads again.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_WOMD_WOMD_H
#define SWERVE_SCENARIOS_IMPORT_WOMD_WOMD_H

#include "base/geom.h"
#include "base/status.h"
#include "schemas/json_read.h"
#include "schemas/limits.h"
#include "schemas/scenario.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* One scenario in (*texts)[0], malloc'ed as the array is. `bytes` <= LIMIT_DOCUMENT_BYTES. */
enum status import_womd(const char *name, const char *json, size_t bytes, char ***texts,
                        size_t *count, struct error *error);

/* ---- within the room ---- */

enum { WOMD_SAMPLES_MAX = 4096 };
#define WOMD_COORDINATE_MAX_M 1e7

/* Notes on what the import left out or made up, for the scenario's source. */
struct womd_notes {
    uint32_t lanes_dropped;
    uint32_t lanes_thinned;
    uint32_t tracks_dropped; /* never seen, or over ego all the time */
    uint32_t tracks_far;     /* further from ego than as many as a scenario may have */
    uint32_t tracks_later;
    uint32_t tracks_parted; /* the parts behind the first */
    uint32_t tracks_of_ego;
    uint32_t speeds_taken;    /* tracks whose own do not fit their places */
    uint32_t tracks_touching; /* for which a drive on ego's recording does not pass */
    uint32_t boxes_shrunk;
    uint32_t reversing; /* samples of ego, and those before and after a jump */
    uint32_t gaps_bridged;
    uint32_t lights_dropped;
    bool path_lane; /* ego's own path became a lane */
};

struct womd_context {
    const char *name;
    struct vec2 origin; /* of the scenario, in the file's coordinates */
    uint32_t first;     /* sample at which the scenario starts */
    struct womd_notes notes;
    struct error *error;
};

/* A line that has a lane's id. */
struct womd_lane {
    char id[LIMIT_ID_BYTES];
    uint32_t point_count;
    struct vec2 *points; /* owned */
};

struct womd_lanes {
    uint32_t count;
    uint32_t point_total;
    struct womd_lane *items; /* owned */
};

void womd_lanes_finish(struct womd_lanes *lanes);

/* One object with its valid samples from the context's first on, times from there. */
struct womd_track {
    char id[LIMIT_ID_BYTES];
    char type[LIMIT_ID_BYTES];
    double length_m;
    double width_m;
    double height_m;
    bool speeds_taken; /* from its places */
    uint32_t count;
    struct trajectory_point *points; /* owned, with room for one more; NULL: never read */
};

/* Speeds are negative where it reverses. */
enum status womd_track_read(struct womd_context *context, const struct json_cursor *object,
                            struct womd_track *out);
/* Its longest stretch without reversing or a jump, by samples. */
void womd_track_keep_forwards(struct womd_track *track);
/* To ego, between both places at one time; INFINITY: never there together. */
double womd_track_nearest_m(const struct womd_track *ego, const struct womd_track *track);
/* Whether it is ego, recorded a second time. */
bool womd_track_is_ego(const struct womd_track *ego, const struct womd_track *track);
/* Number of stretches in which it was not seen between two samples. */
uint32_t womd_track_gaps(const struct womd_track *track);
/* Samples of its first part: up to a jump, or to a gap in which a straight line would touch ego's
 * drive. What comes then is somebody else, or came there by another way. */
uint32_t womd_track_part(const struct womd_track *ego, const struct womd_track *track);
/* Settles when and how large it is beside ego's drive. Fewer than two points: it is left out. */
void womd_track_place(struct womd_context *context, const struct womd_track *ego,
                      struct womd_track *track);

/* An object with x and y, moved to the scenario's origin. */
enum status womd_point(const struct womd_context *context, const struct json_cursor *cursor,
                       struct vec2 *out);

/* The map as a document writes it, a new reference, and the lanes in it. */
enum status womd_map(struct womd_context *context, const struct json_cursor *roads, json_t **map,
                     struct womd_lanes *lanes);

/* Adds the signals of "tl_states" to the map, from sample `first` on. */
enum status womd_signals(struct womd_context *context, const struct json_cursor *states,
                         uint32_t first, const struct womd_lanes *lanes, json_t *map);

#endif
