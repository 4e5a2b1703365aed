/*
 * Tracks: resampling, evaluation and projection. The tangent of a sample is that of the chord
 * between its neighbours, which is second-order accurate on arcs and rounds off sharp vertices over
 * one step; between samples position, tangent and heading are interpolated linearly.
 */
#include "engine/traffic/track.h"

#include "base/array.h"
#include "base/check.h"
#include "base/dmath.h"

#include <math.h>
#include <stdlib.h>

#define POINT_SPACING_MIN_M 0.001
#define SPEED_CAP_MIN_MPS 2.0
#define NEWTON_STEPS_MAX 5
#define NEWTON_LAST_STEP_M 0.25

void track_builder_add(struct track_builder *builder, double x_m, double y_m)
{
    if (builder->failed) {
        return;
    }
    if (builder->count > 0) {
        struct vec2 last = builder->points[builder->count - 1];
        double dx = x_m - last.x_m;
        double dy = y_m - last.y_m;
        double distance = sqrt(dx * dx + dy * dy);
        if (distance < POINT_SPACING_MIN_M) {
            return;
        }
        builder->length_m += distance;
    }
    builder->failed =
        array_room(&builder->points, builder->count, sizeof *builder->points, NULL) != STATUS_OK;
    if (!builder->failed) {
        builder->points[builder->count++] = (struct vec2){x_m, y_m};
    }
}

void track_builder_lane(struct track_builder *builder, int32_t lane)
{
    if (builder->failed) {
        return;
    }
    if (builder->span_count > 0 && builder->spans[builder->span_count - 1].lane == lane) {
        return;
    }
    builder->failed =
        array_room(&builder->spans, builder->span_count, sizeof *builder->spans, NULL) != STATUS_OK;
    if (!builder->failed) {
        builder->spans[builder->span_count++] = (struct track_span){builder->length_m, lane};
    }
}

void track_builder_discard(struct track_builder *builder)
{
    free(builder->points);
    free(builder->spans);
    *builder = (struct track_builder){0};
}

static void sample_positions(struct track *track, const struct track_builder *builder)
{
    uint32_t segment = 0;
    double start_m = 0.0;
    struct vec2 a = builder->points[0];
    struct vec2 b = builder->points[1];
    double segment_m = sqrt((b.x_m - a.x_m) * (b.x_m - a.x_m) + (b.y_m - a.y_m) * (b.y_m - a.y_m));
    for (uint32_t i = 0; i < track->count; i++) {
        double s = i * track->step_m;
        while (s > start_m + segment_m && segment + 2 < builder->count) {
            start_m += segment_m;
            segment++;
            a = builder->points[segment];
            b = builder->points[segment + 1];
            segment_m = sqrt((b.x_m - a.x_m) * (b.x_m - a.x_m) + (b.y_m - a.y_m) * (b.y_m - a.y_m));
        }
        double t = dmath_min((s - start_m) / segment_m, 1.0);
        track->samples[i].x_m = a.x_m + t * (b.x_m - a.x_m);
        track->samples[i].y_m = a.y_m + t * (b.y_m - a.y_m);
    }
}

static void sample_tangents(struct track *track)
{
    double previous_rad = 0.0;
    for (uint32_t i = 0; i < track->count; i++) {
        const struct track_sample *a = &track->samples[i > 0 ? i - 1 : 0];
        const struct track_sample *b = &track->samples[i + 1 < track->count ? i + 1 : i];
        struct track_sample *sample = &track->samples[i];
        double dx = b->x_m - a->x_m;
        double dy = b->y_m - a->y_m;
        double length = sqrt(dx * dx + dy * dy);
        if (length > 0) {
            sample->ux = dx / length;
            sample->uy = dy / length;
        } else { /* the path folds back onto itself exactly here */
            sample->ux = i > 0 ? a->ux : 1.0;
            sample->uy = i > 0 ? a->uy : 0.0;
        }
        double heading = dmath_atan2(sample->uy, sample->ux);
        if (i > 0) {
            heading = previous_rad + dmath_wrap_angle(heading - previous_rad);
        }
        sample->heading_rad = heading;
        previous_rad = heading;
    }
}

static void index_spans(struct track *track)
{
    uint32_t span = 0;
    for (uint32_t i = 0; i < track->count; i++) {
        while (span + 1 < track->span_count && track->spans[span + 1].s_m <= i * track->step_m) {
            span++;
        }
        track->sample_span[i] = span;
    }
}

enum status track_builder_finish(struct track_builder *builder, struct track **out,
                                 struct error *error)
{
    enum status status;
    struct track *track = NULL;
    if (builder->failed) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a path");
        goto fail;
    }
    if (builder->count < 2) {
        status = error_set(error, STATUS_BAD_INPUT, "a path needs two points apart");
        goto fail;
    }
    if (!(builder->length_m <= TRACK_LENGTH_MAX_M)) {
        status = error_set(error, STATUS_LIMIT, "a path of %.0f km is longer than %.0f km",
                           builder->length_m / 1000.0, TRACK_LENGTH_MAX_M / 1000.0);
        goto fail;
    }
    track = calloc(1, sizeof *track);
    if (track == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for a path");
        goto fail;
    }
    double steps = dmath_max(1.0, floor(builder->length_m / TRACK_STEP_M + 0.5));
    track->count = (uint32_t)steps + 1;
    track->length_m = builder->length_m;
    track->step_m = builder->length_m / steps;
    track->inverse_step = steps / builder->length_m;
    track->samples = calloc(track->count, sizeof *track->samples);
    track->sample_span = calloc(track->count, sizeof *track->sample_span);
    if (track->samples == NULL || track->sample_span == NULL) {
        status =
            error_set(error, STATUS_NO_MEMORY, "no memory for a path of %.0f m", builder->length_m);
        goto fail;
    }
    track->span_count = builder->span_count;
    track->spans = builder->spans;
    builder->spans = NULL;
    sample_positions(track, builder);
    sample_tangents(track);
    index_spans(track);
    track_builder_discard(builder);
    *out = track;
    return STATUS_OK;
fail:
    track_builder_discard(builder);
    track_destroy(track);
    return status;
}

void track_destroy(struct track *track)
{
    if (track != NULL) {
        free(track->samples);
        free(track->spans);
        free(track->sample_span);
        free(track->speed_cap_mps);
        free(track->bend_rad);
        free(track);
    }
}

enum status track_prepare_traffic(struct track *track, double lat_accel_mps2, double decel_mps2,
                                  struct error *error)
{
    uint32_t count = track->count;
    track->speed_cap_mps = calloc(count, sizeof *track->speed_cap_mps);
    track->bend_rad = calloc(count, sizeof *track->bend_rad);
    if (track->speed_cap_mps == NULL || track->bend_rad == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a path of %.0f m",
                         track->length_m);
    }
    /* Curvature over three samples on either side, so that one kinked vertex counts as a bend of
     * that length and not as a corner. Then v^2 <= v_next^2 + 2 b ds, from the far end. */
    double next = 1e9;
    for (uint32_t k = count; k-- > 0;) {
        uint32_t low = k >= 3 ? k - 3 : 0;
        uint32_t high = k + 3 < count ? k + 3 : count - 1;
        double turn = fabs(track->samples[high].heading_rad - track->samples[low].heading_rad);
        double curvature = turn / (6.0 * track->step_m);
        double cap2 = curvature > 1e-6 ? lat_accel_mps2 / curvature : 1e9;
        cap2 = dmath_max(cap2, SPEED_CAP_MIN_MPS * SPEED_CAP_MIN_MPS);
        next = dmath_min(cap2, next + 2.0 * decel_mps2 * track->step_m);
        track->speed_cap_mps[k] = (float)sqrt(next);
    }
    /* The sum of |turns| bounds the deviation within the window, and slides in O(1). */
    uint32_t window = (uint32_t)(TRACK_BEND_M / track->step_m) + 1;
    double turned = 0.0; /* sum of |turns| over the window ahead of k */
    for (uint32_t k = count; k-- > 0;) {
        if (k + 1 < count) {
            turned += fabs(track->samples[k + 1].heading_rad - track->samples[k].heading_rad);
        }
        if (k + window + 1 < count) {
            turned -= fabs(track->samples[k + window + 1].heading_rad -
                           track->samples[k + window].heading_rad);
        }
        track->bend_rad[k] = (float)dmath_max(turned, 0.0);
    }
    return STATUS_OK;
}

struct track_pose track_at(const struct track *track, double s_m)
{
    double at = s_m * track->inverse_step;
    uint32_t last = track->count - 1;
    if (at < 0.0 || at >= (double)last) {
        const struct track_sample *end = &track->samples[at < 0.0 ? 0 : last];
        double past = at < 0.0 ? s_m : s_m - track->length_m;
        return (struct track_pose){end->x_m + past * end->ux, end->y_m + past * end->uy, end->ux,
                                   end->uy, end->heading_rad};
    }
    uint32_t i = (uint32_t)at;
    double t = at - i;
    const struct track_sample *a = &track->samples[i];
    const struct track_sample *b = a + 1;
    struct track_pose pose = {
        .x_m = a->x_m + t * (b->x_m - a->x_m),
        .y_m = a->y_m + t * (b->y_m - a->y_m),
        .ux = a->ux + t * (b->ux - a->ux),
        .uy = a->uy + t * (b->uy - a->uy),
        .heading_rad = a->heading_rad + t * (b->heading_rad - a->heading_rad),
    };
    return pose;
}

struct track_position track_project_near(const struct track *track, struct vec2 point,
                                         double s_guess_m)
{
    double s = s_guess_m;
    struct track_sample at;
    double dx;
    double dy;
    for (int k = 0; k < NEWTON_STEPS_MAX; k++) {
        track_frame_at(track, s, &at);
        dx = point.x_m - at.x_m;
        dy = point.y_m - at.y_m;
        double along = dx * at.ux + dy * at.uy;
        s += along;
        if (fabs(along) < NEWTON_LAST_STEP_M) {
            break;
        }
    }
    return (struct track_position){
        .s_m = s, .offset_m = at.ux * dy - at.uy * dx, .ux = at.ux, .uy = at.uy};
}

/* Projection onto the chord i .. i+1, or its straight extension at either end of the table. */
static double project_chord(const struct track *track, uint32_t i, struct vec2 point,
                            struct track_position *out)
{
    const struct track_sample *a = &track->samples[i];
    const struct track_sample *b = a + 1;
    double cx = b->x_m - a->x_m;
    double cy = b->y_m - a->y_m;
    double chord2 = cx * cx + cy * cy;
    double dx = point.x_m - a->x_m;
    double dy = point.y_m - a->y_m;
    double t = chord2 > 0 ? (dx * cx + dy * cy) / chord2 : 0.0;
    t = dmath_clamp(t, i == 0 ? -1e9 : 0.0, i + 2 == track->count ? 1e9 : 1.0);
    double blend = dmath_clamp(t, 0.0, 1.0);
    double ex = dx - t * cx;
    double ey = dy - t * cy;
    out->s_m = (i + t) * track->step_m;
    out->ux = a->ux + blend * (b->ux - a->ux);
    out->uy = a->uy + blend * (b->uy - a->uy);
    double side = cx * dy - cy * dx;
    double distance = sqrt(ex * ex + ey * ey);
    out->offset_m = side < 0 ? -distance : distance;
    return distance;
}

struct track_position track_project_window(const struct track *track, struct vec2 point,
                                           double low_m, double high_m)
{
    enum { STRIDE = 4 };
    uint32_t low = track_sample_index(track, low_m);
    uint32_t high = track_sample_index(track, high_m);
    uint32_t nearest = low;
    double nearest2 = INFINITY;
    for (uint32_t i = low; i <= high; i += STRIDE) {
        double dx = point.x_m - track->samples[i].x_m;
        double dy = point.y_m - track->samples[i].y_m;
        double d2 = dx * dx + dy * dy;
        if (d2 < nearest2) {
            nearest2 = d2;
            nearest = i;
        }
    }
    uint32_t first = nearest >= STRIDE + 1 ? nearest - STRIDE - 1 : 0;
    uint32_t last = nearest + STRIDE < track->count - 2 ? nearest + STRIDE : track->count - 2;
    struct track_position best = {0};
    double best_distance = INFINITY;
    for (uint32_t i = first; i <= last; i++) {
        struct track_position position;
        double distance = project_chord(track, i, point, &position);
        if (distance < best_distance) {
            best_distance = distance;
            best = position;
        }
    }
    return best;
}

int32_t track_lane_at(const struct track *track, double s_m)
{
    if (track->span_count == 0) {
        return -1;
    }
    uint32_t span = track->sample_span[track_sample_index(track, s_m)];
    while (span + 1 < track->span_count && track->spans[span + 1].s_m <= s_m) {
        span++;
    }
    return track->spans[span].lane;
}
