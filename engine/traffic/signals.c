/*
 * Traffic signals. See signals.h.
 */
#include "engine/traffic/signals.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_SLACK_S 1e-6   /* ticks are multiples of 0.1 s, which sums of phases miss by less */
#define ALONG_MAX_RAD 0.6   /* a track that crosses a stop line otherwise is other traffic */
#define BEGIN_M 0.01        /* from a turning lane's beginning to the line there */
#define ROUTE_SEARCH_M 20.0 /* how far a track's lane may begin from where its span says */

enum traffic_light signal_light_at(const struct traffic_signal *signal, double time_s)
{
    double t_s = time_s + signal->offset_s + TIME_SLACK_S;
    double cycle_s = 0.0;
    if (signal->sign != TRAFFIC_SIGN_NONE) {
        return TRAFFIC_LIGHT_OFF;
    }
    for (uint32_t i = 0; i < signal->phase_count; i++) {
        cycle_s += signal->phases[i].duration_s;
    }
    if (signal->repeats) {
        t_s -= cycle_s * floor(t_s / cycle_s);
    }
    for (uint32_t i = 0; i + 1 < signal->phase_count; i++) {
        if (t_s < signal->phases[i].duration_s) {
            return signal->phases[i].light;
        }
        t_s -= signal->phases[i].duration_s;
    }
    return signal->phases[signal->phase_count - 1].light;
}

void signals_update(const struct map *map, struct scene *scene)
{
    for (uint32_t i = 0; i < map->signal_count; i++) {
        scene->signal_light[i] =
            scene->signal_held[i] != 0
                ? (uint8_t)(scene->signal_held[i] - 1)
                : (uint8_t)signal_light_at(&map->signals[i], scene->tick * TICK_S);
    }
}

void signals_hold(const struct map *map, uint32_t signal, enum traffic_light light,
                  struct scene *scene)
{
    scene->signal_held[signal] = (uint8_t)(light + 1);
    signals_update(map, scene);
}

void signals_recorded(const struct scenario *scenario, const char *branch_id, struct scene *scene)
{
    memset(scene->signal_held, 0, sizeof scene->signal_held);
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        const struct branch *branch = &scenario->branches[b];
        for (uint32_t i = 0; strcmp(branch->id, branch_id) == 0 && i < branch->intervention_count;
             i++) {
            const struct intervention *what = &branch->interventions[i];
            if (what->kind == INTERVENE_SIGNAL && what->tick <= scene->tick) {
                scene->signal_held[what->signal] = (uint8_t)(what->light + 1);
            }
        }
    }
    signals_update(&scenario->map, scene);
}

struct stop_line signal_stop_line(const struct roadmap *roadmap,
                                  const struct traffic_signal *signal, uint32_t index)
{
    int32_t lane = (int32_t)signal->lanes[index];
    double length_m = roadmap_lane_length_m(roadmap, lane);
    double s_m = signal->sign == TRAFFIC_SIGN_GIVE_WAY_ONCOMING
                     ? dmath_min(BEGIN_M, length_m)
                     : dmath_max(length_m - signal->stop_m, 0.0);
    struct pose middle = roadmap_lane_pose(roadmap, lane, s_m, 0.0);
    double half_m = roadmap_lane_width_m(roadmap, lane, s_m) / 2;
    struct pose left = roadmap_lane_pose(roadmap, lane, s_m, half_m);
    struct pose right = roadmap_lane_pose(roadmap, lane, s_m, -half_m);
    return (struct stop_line){middle, {left.x_m, left.y_m}, {right.x_m, right.y_m}};
}

/* ---- stops along tracks ---- */

/* Whether traffic on the track that is at `at` when it reaches the line is the line's traffic. */
static bool crosses(const struct track *track, struct track_position at,
                    const struct stop_line *line)
{
    struct track_pose foot = track_at(track, at.s_m);
    double width_x = line->left.x_m - line->right.x_m;
    double width_y = line->left.y_m - line->right.y_m;
    double dx = foot.x_m - line->pose.x_m;
    double dy = foot.y_m - line->pose.y_m;
    return at.s_m > 0.0 && at.s_m < track->length_m &&
           4.0 * (dx * dx + dy * dy) < width_x * width_x + width_y * width_y &&
           fabs(dmath_wrap_angle(foot.heading_rad - line->pose.heading_rad)) < ALONG_MAX_RAD;
}

/* Whether a track without lanes takes this one to its end: others begin where it does. */
static bool goes_along(const struct roadmap *roadmap, const struct track *track, int32_t lane)
{
    double end_m = roadmap_lane_length_m(roadmap, lane);
    struct pose end = roadmap_lane_pose(roadmap, lane, end_m, 0.0);
    struct vec2 place = {end.x_m, end.y_m};
    struct track_position at = track_project_window(track, place, 0.0, track->length_m);
    double heading_rad = track_at(track, at.s_m).heading_rad;
    return fabs(at.offset_m) < roadmap_lane_width_m(roadmap, lane, end_m) / 2 &&
           fabs(dmath_wrap_angle(heading_rad - end.heading_rad)) < ALONG_MAX_RAD;
}

/* The places where a track crosses the stop lines of a signal; writes them where `out` is not NULL.
 */
static uint32_t stops_of(const struct roadmap *roadmap, const struct track *track, uint32_t index,
                         struct track_stop *out)
{
    const struct traffic_signal *signal = &roadmap_map(roadmap)->signals[index];
    bool turns = signal->sign == TRAFFIC_SIGN_GIVE_WAY_ONCOMING;
    uint32_t count = 0;
    for (uint32_t i = 0; i < signal->lane_count; i++) {
        struct stop_line line = signal_stop_line(roadmap, signal, i);
        int32_t lane = (int32_t)signal->lanes[i];
        struct vec2 middle = {line.pose.x_m, line.pose.y_m};
        /* A track may pass a lane several times (a block, a roundabout): once per span. */
        for (uint32_t k = 0; k < track->span_count; k++) {
            if (track->spans[k].lane != lane) {
                continue;
            }
            double begin_m = track->spans[k].s_m - ROUTE_SEARCH_M;
            double end_m = k + 1 < track->span_count ? track->spans[k + 1].s_m : track->length_m;
            struct track_position at =
                track_project_window(track, middle, begin_m, end_m + ROUTE_SEARCH_M);
            if (crosses(track, at, &line)) {
                if (out != NULL) {
                    out[count] = (struct track_stop){at.s_m, index};
                }
                count++;
            }
        }
        if (track->span_count == 0) { /* a logged path */
            struct track_position at = track_project_window(track, middle, 0.0, track->length_m);
            if (crosses(track, at, &line) && (!turns || goes_along(roadmap, track, lane))) {
                if (out != NULL) {
                    out[count] = (struct track_stop){at.s_m, index};
                }
                count++;
            }
        }
    }
    return count;
}

enum status track_stops_create(const struct roadmap *roadmap, struct track *const *tracks,
                               uint32_t track_count, struct track_stops *out, struct error *error)
{
    uint32_t signals = roadmap_map(roadmap)->signal_count;
    uint32_t count = 0;
    *out = (struct track_stops){0};
    if (signals == 0) {
        return STATUS_OK;
    }
    for (uint32_t t = 0; t < track_count; t++) {
        for (uint32_t i = 0; i < signals; i++) {
            count += stops_of(roadmap, tracks[t], i, NULL);
        }
    }
    struct track_stops made = {.first = calloc((size_t)track_count + 1, sizeof *made.first),
                               .stops = calloc((size_t)count + 1, sizeof *made.stops)};
    if (made.first == NULL || made.stops == NULL) {
        track_stops_finish(&made);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the tracks' stop lines");
    }
    count = 0;
    for (uint32_t t = 0; t < track_count; t++) {
        made.first[t] = count;
        for (uint32_t i = 0; i < signals; i++) {
            count += stops_of(roadmap, tracks[t], i, &made.stops[count]);
        }
    }
    made.first[track_count] = count;
    *out = made;
    return STATUS_OK;
}

void track_stops_finish(struct track_stops *stops)
{
    free(stops->first);
    free(stops->stops);
    *stops = (struct track_stops){0};
}
