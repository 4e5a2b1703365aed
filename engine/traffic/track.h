/*
 * Track: a path sampled every TRACK_STEP_M of arc length, so that "where am I at s" is one table
 * look-up and "which s is this point at" is a few steps of Newton's method. Routes, lane chains,
 * logged paths and scripted paths are all tracks. Immutable once built; not reference-counted, its
 * maker owns it.
 *
 * A track goes on straight before its first and after its last sample. Invariant: headings of the
 * samples are unwrapped, so neighbouring ones may be interpolated.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_TRACK_H
#define SWERVE_ENGINE_TRAFFIC_TRACK_H

#include "base/geom.h"
#include "base/status.h"

#include <stdint.h>

#define TRACK_STEP_M 1.0
#define TRACK_LENGTH_MAX_M 200e3

struct track_sample {
    double x_m;
    double y_m;
    double ux; /* unit tangent */
    double uy;
    double heading_rad; /* of the tangent, unwrapped along the track */
};

/* A stretch of the track that one map lane carries. */
struct track_span {
    double s_m; /* where it begins */
    int32_t lane;
};

struct track {
    uint32_t count;  /* samples, >= 2 */
    double length_m; /* arc length of the last sample; samples are length_m / (count - 1) apart */
    double step_m;
    double inverse_step;
    struct track_sample *samples; /* [count] */
    uint32_t span_count;          /* 0: no lane carries it */
    struct track_span *spans;     /* ascending s_m */
    uint32_t *sample_span;        /* [count] last span that begins at or before the sample */
    /* Optional tables for traffic, NULL where not wanted. */
    float *speed_cap_mps; /* [count] speed that bends allow here, braking ahead included */
    float *bend_rad;      /* [count] largest heading change within the next TRACK_BEND_M */
};

#define TRACK_BEND_M 160.0

/* A pose on the track with its tangent, so that callers need no trigonometry. */
struct track_pose {
    double x_m;
    double y_m;
    double ux;
    double uy;
    double heading_rad; /* unwrapped */
};

/* Arc length and lateral offset of a point; s_m is not clamped: the track goes on straight. */
struct track_position {
    double s_m;
    double offset_m; /* left positive */
    double ux;       /* tangent there */
    double uy;
};

/* Collects the points of a path before it is sampled. Zero-initialised; `failed` sticks. */
struct track_builder {
    uint32_t count;
    struct vec2 *points;
    uint32_t span_count;
    struct track_span *spans;
    double length_m;
    bool failed; /* memory ran out */
};

/* Appends a point; one closer than 1 mm to its predecessor is dropped. */
void track_builder_add(struct track_builder *builder, double x_m, double y_m);
/* From the present end on, `lane` carries the path. */
void track_builder_lane(struct track_builder *builder, int32_t lane);
/* Samples the collected points (at least 2 apart by 1 mm: CHECKed by callers through the status)
 * and empties the builder in every case. STATUS_NO_MEMORY, STATUS_BAD_INPUT when the path has no
 * length, STATUS_LIMIT beyond TRACK_LENGTH_MAX_M. */
enum status track_builder_finish(struct track_builder *builder, struct track **out,
                                 struct error *error);
void track_builder_discard(struct track_builder *builder);

void track_destroy(struct track *track); /* accepts NULL */

/* Fills speed_cap_mps and bend_rad: speed such that lateral acceleration stays below
 * lat_accel_mps2, reached by braking at decel_mps2. */
enum status track_prepare_traffic(struct track *track, double lat_accel_mps2, double decel_mps2,
                                  struct error *error);

struct track_pose track_at(const struct track *track, double s_m);

/* Position and tangent of *out alone: the inner loop of everybody who looks for a leader. */
static inline void track_frame_at(const struct track *track, double s_m, struct track_sample *out)
{
    double at = s_m * track->inverse_step;
    uint32_t last = track->count - 1;
    if (at < 0.0 || at >= (double)last) {
        const struct track_sample *end = &track->samples[at < 0.0 ? 0 : last];
        double past = at < 0.0 ? s_m : s_m - track->length_m;
        out->x_m = end->x_m + past * end->ux;
        out->y_m = end->y_m + past * end->uy;
        out->ux = end->ux;
        out->uy = end->uy;
        return;
    }
    uint32_t i = (uint32_t)at;
    double t = at - i;
    const struct track_sample *a = &track->samples[i];
    const struct track_sample *b = a + 1;
    out->x_m = a->x_m + t * (b->x_m - a->x_m);
    out->y_m = a->y_m + t * (b->y_m - a->y_m);
    out->ux = a->ux + t * (b->ux - a->ux);
    out->uy = a->uy + t * (b->uy - a->uy);
}

/* Index of the sample at or before s_m, clamped to the table. */
static inline uint32_t track_sample_index(const struct track *track, double s_m)
{
    double at = s_m * track->inverse_step;
    double last = (double)(track->count - 1);
    return at <= 0.0 ? 0 : at >= last ? track->count - 1 : (uint32_t)at;
}

/* Nearest point of the track by Newton's method from s_guess_m; right when the guess is within
 * about a curve radius. The last step goes along the tangent: exact to a few millimetres on the
 * tightest bends, to rounding on straights. */
struct track_position track_project_near(const struct track *track, struct vec2 point,
                                         double s_guess_m);
/* Nearest point within [low_m, high_m], by scan. */
struct track_position track_project_window(const struct track *track, struct vec2 point,
                                           double low_m, double high_m);

/* Lane that carries the track at s_m, -1: none. */
int32_t track_lane_at(const struct track *track, double s_m);

#endif
