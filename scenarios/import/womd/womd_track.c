/*
 * WOMD import: recorded tracks, and when they are there beside ego's own recording.
 *
 * Who stood was there before it was seen, unless ego drove where it would have stood; everybody
 * else is there only while seen. Measured boxes are a little larger than bodies, so that neighbours
 * overlap: those that touch ego's drive are made smaller by up to SHRINK_MAX_M. Invariant: what
 * still touches it is counted, and nothing does at the start.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/recorded.h"
#include "scenarios/import/womd/womd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN_M 0.05
#define SIZE_MAX_M 40.0
#define SPEED_MAX_MPS 100.0
#define PARKED_M 1.0     /* who stays within that .. */
#define PARKED_MPS 0.5   /* .. at no more than that on the mean stands */
#define REVERSES_MPS 0.1 /* backwards; slower is noise */

/* The track as a box that moves. */
static struct recorded body(const struct womd_track *track)
{
    return (struct recorded){{track->count, track->points}, track->length_m, track->width_m};
}

/* ---- reading ---- */

static enum status read_size(struct womd_context *context, const struct json_cursor *object,
                             struct womd_track *out)
{
    struct error *error = context->error;
    out->height_m = 1.5;
    TRY(json_member_number(object, "length", true, 0, SIZE_MAX_M, &out->length_m, error));
    TRY(json_member_number(object, "width", true, 0, SIZE_MAX_M, &out->width_m, error));
    TRY(json_member_number(object, "height", false, -SIZE_MAX_M, SIZE_MAX_M, &out->height_m,
                           error));
    out->length_m = dmath_max(out->length_m, SIZE_MIN_M);
    out->width_m = dmath_max(out->width_m, SIZE_MIN_M);
    out->height_m = dmath_clamp(out->height_m, 0.3, 6.0);
    return STATUS_OK;
}

/* The four lists of an object, equally long. */
struct samples {
    struct json_cursor position;
    struct json_cursor heading;
    struct json_cursor velocity;
    struct json_cursor valid;
    size_t count;
};

static enum status read_lists(struct womd_context *context, const struct json_cursor *object,
                              struct samples *out)
{
    static const char *const names[] = {"position", "heading", "velocity", "valid"};
    struct json_cursor *lists[] = {&out->position, &out->heading, &out->velocity, &out->valid};
    struct error *error = context->error;
    size_t counts[COUNT_OF(names)];
    size_t most = 0; /* lists of one length */
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        *lists[i] = json_cursor_member(object, names[i]);
        TRY(json_array_begin(lists[i], 1, WOMD_SAMPLES_MAX, &counts[i], error));
        size_t alike = 0;
        for (size_t k = 0; k <= i; k++) {
            alike += counts[k] == counts[i];
        }
        out->count = alike > most ? counts[i] : out->count;
        most = alike > most ? alike : most;
    }
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (counts[i] != out->count) {
            return json_fail(lists[i], error,
                             "expected %zu elements, as many as the track's other lists have, "
                             "found %zu",
                             out->count, counts[i]);
        }
    }
    return STATUS_OK;
}

static enum status read_sample(struct womd_context *context, const struct samples *samples,
                               uint32_t i, struct trajectory_point *out)
{
    struct error *error = context->error;
    struct json_cursor position = json_cursor_element(&samples->position, i);
    struct json_cursor heading = json_cursor_element(&samples->heading, i);
    struct json_cursor velocity = json_cursor_element(&samples->velocity, i);
    struct vec2 at;
    double x = 0;
    double y = 0;
    TRY(womd_point(context, &position, &at));
    TRY(json_value_number(&heading, -100, 100, &out->heading_rad, error));
    TRY(json_member_number(&velocity, "x", true, -SPEED_MAX_MPS, SPEED_MAX_MPS, &x, error));
    TRY(json_member_number(&velocity, "y", true, -SPEED_MAX_MPS, SPEED_MAX_MPS, &y, error));
    out->heading_rad = dmath_wrap_angle(out->heading_rad);
    out->x_m = at.x_m;
    out->y_m = at.y_m;
    double along_mps = x * dmath_cos(out->heading_rad) + y * dmath_sin(out->heading_rad);
    out->speed_mps = along_mps < -REVERSES_MPS ? along_mps : sqrt(x * x + y * y);
    out->t_s = ((double)i - (double)context->first) * TICK_S;
    return STATUS_OK;
}

enum status womd_track_read(struct womd_context *context, const struct json_cursor *object,
                            struct womd_track *out)
{
    struct samples samples;
    bool valid = false;
    int64_t id = 0;
    struct error *error = context->error;
    if (!json_is_object(object->value)) {
        return json_fail(object, error, "expected an object, a track");
    }
    TRY(json_member_integer(object, "id", false, -1, INT64_C(1) << 53, &id, error));
    TRY(json_member_text(object, "type", true, out->type, sizeof out->type, error));
    /* Ids repeat in some files, places in the list do not. */
    snprintf(out->id, sizeof out->id, "track%zu_%lld", object->index, (long long)id);
    TRY(read_size(context, object, out));
    TRY(read_lists(context, object, &samples));
    out->points = calloc(samples.count + 1, sizeof *out->points);
    TRY(memory_check(out->points, error, "%s: out of memory", context->name));
    for (uint32_t i = context->first; i < samples.count; i++) {
        struct json_cursor cursor = json_cursor_element(&samples.valid, i);
        TRY(json_value_bool(&cursor, &valid, error));
        if (valid) {
            TRY(read_sample(context, &samples, i, &out->points[out->count++]));
        }
    }
    struct trajectory drive = {out->count, out->points};
    if (!recorded_speeds_fit(&drive)) {
        recorded_take_speeds(&drive);
        out->speeds_taken = true;
    }
    return STATUS_OK;
}

void womd_track_keep_forwards(struct womd_track *track)
{
    uint32_t best = 0;
    uint32_t best_count = 0;
    for (uint32_t from = 0, to; from<track->count; from = to> from ? to : from + 1) {
        const struct trajectory rest = {track->count - from, track->points + from};
        uint32_t end = from + recorded_jump(&rest);
        for (to = from; to < end && track->points[to].speed_mps >= 0; to++) {
        }
        if (to - from > best_count) {
            best = from;
            best_count = to - from;
        }
    }
    memmove(track->points, track->points + best, best_count * sizeof *track->points);
    track->count = best_count;
}

/* Whether it was not seen between a sample and the one before. */
static bool is_gap(const struct womd_track *track, uint32_t sample)
{
    return track->points[sample].t_s - track->points[sample - 1].t_s > 1.5 * TICK_S;
}

uint32_t womd_track_gaps(const struct womd_track *track)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < track->count; i++) {
        count += is_gap(track, i);
    }
    return count;
}

uint32_t womd_track_part(const struct womd_track *ego, const struct womd_track *track)
{
    const struct recorded own = body(ego);
    const struct recorded other = body(track);
    uint32_t jump = recorded_jump(&other.drive);
    for (uint32_t i = 1; i < jump; i++) {
        struct recorded bridge = {{2, track->points + i - 1}, track->length_m, track->width_m};
        if (is_gap(track, i) && !isnan(recorded_touches_at_s(&own, &bridge, 0))) {
            return i;
        }
    }
    return jump;
}

/* ---- beside ego ---- */

bool womd_track_is_ego(const struct womd_track *ego, const struct womd_track *track)
{
    const struct recorded own = body(ego);
    const struct recorded other = body(track);
    return track->count > 0 && recorded_is_same(&own, &other);
}

double womd_track_nearest_m(const struct womd_track *ego, const struct womd_track *track)
{
    const struct trajectory drive = {track->count, track->points};
    double nearest2 = INFINITY;
    uint32_t cursor = 0;
    struct pose pose;
    for (uint32_t i = 0; i < ego->count && track->count > 0; i++) {
        const struct trajectory_point *e = &ego->points[i];
        if (recorded_at(&drive, e->t_s, &cursor, &pose)) {
            double x = pose.x_m - e->x_m;
            double y = pose.y_m - e->y_m;
            nearest2 = dmath_min(nearest2, x * x + y * y);
        }
    }
    return sqrt(nearest2);
}

static bool stands(const struct womd_track *track)
{
    double sum_mps = 0;
    for (uint32_t i = 0; i < track->count; i++) {
        double x = track->points[i].x_m - track->points[0].x_m;
        double y = track->points[i].y_m - track->points[0].y_m;
        sum_mps += fabs(track->points[i].speed_mps);
        if (sqrt(x * x + y * y) > PARKED_M) {
            return false;
        }
    }
    return sum_mps <= PARKED_MPS * track->count;
}

/* A recording of one who stands is noise about a place: two samples at it. */
static void settle(struct womd_track *track, double from_s, double to_s)
{
    struct trajectory_point at = track->points[track->count / 2];
    at.speed_mps = 0;
    at.t_s = from_s;
    track->points[0] = at;
    at.t_s = to_s;
    track->points[1] = at; /* there is room for one more than were read */
    track->count = 2;
}

/* A track of one sample is there at that tick alone. */
static void go_on_half_a_tick(struct womd_track *track)
{
    struct trajectory_point at = track->points[0];
    double way_m = at.speed_mps * TICK_S / 2;
    at.x_m += way_m * dmath_cos(at.heading_rad);
    at.y_m += way_m * dmath_sin(at.heading_rad);
    at.t_s += TICK_S / 2;
    track->points[track->count++] = at;
}

/* Makes it smaller where that is enough to keep it off ego's drive. */
static bool shrink(const struct womd_track *ego, struct womd_track *track, uint32_t *shrunk)
{
    const struct recorded own = body(ego);
    const struct recorded other = body(track);
    double by_m = recorded_shrink_m(&own, &other);
    if (isnan(by_m)) {
        return false;
    }
    track->length_m = dmath_max(track->length_m - by_m, SIZE_MIN_M);
    track->width_m = dmath_max(track->width_m - by_m, SIZE_MIN_M);
    *shrunk += by_m > 0;
    return true;
}

static double touches_at_s(const struct womd_track *ego, const struct womd_track *track)
{
    const struct recorded own = body(ego);
    const struct recorded other = body(track);
    return recorded_touches_at_s(&own, &other, 0);
}

/* Drops the samples that would have it touch ego at the very start. */
static void begin_later(struct womd_context *context, const struct womd_track *ego,
                        struct womd_track *track)
{
    uint32_t dropped = 0;
    while (track->count > 1 && track->points[0].t_s <= 1e-9) {
        if (touches_at_s(ego, track) > 1e-9) {
            break;
        }
        dropped = 1;
        memmove(track->points, track->points + 1, --track->count * sizeof *track->points);
    }
    context->notes.tracks_later += dropped;
}

void womd_track_place(struct womd_context *context, const struct womd_track *ego,
                      struct womd_track *track)
{
    if (track->count == 0) {
        return;
    }
    uint32_t *shrunk = &context->notes.boxes_shrunk;
    double from_s = track->points[0].t_s;
    double to_s = track->points[track->count - 1].t_s;
    bool parked = stands(track);
    if (parked) {
        settle(track, 0, ego->points[ego->count - 1].t_s + TICK_S);
        if (shrink(ego, track, shrunk)) {
            return;
        }
        settle(track, from_s, dmath_max(to_s, from_s + TICK_S / 2));
    } else if (track->count == 1) {
        go_on_half_a_tick(track);
    }
    if (!shrink(ego, track, shrunk)) {
        begin_later(context, ego, track);
        context->notes.tracks_touching += track->count > 1 && !isnan(touches_at_s(ego, track));
    }
}
