/*
 * Scores of the field of an outcome. See export_field.h.
 */
#include "worker/export/export_field.h"

#include "base/units.h"
#include "worker/score/field/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const export_field_names[EXPORT_FIELD_COUNT] = {"pdms", "lane_keeping", "epdms"};

static void drop_route(struct export_field *field)
{
    route_destroy(field->route);
    roadmap_destroy(field->roadmap);
    field->route = NULL;
    field->roadmap = NULL;
    field->scenario_hash[0] = '\0';
}

void export_field_finish(struct export_field *field)
{
    drop_route(field);
    report_drive_close(&field->drive);
}

/* The route points into the map of the drive's scenario. */
static enum status open_drive(struct export_field *field, struct store *store,
                              const struct outcome *outcome, struct error *error)
{
    bool same = strcmp(field->scenario_hash, outcome->scenario_hash) == 0;
    if (!same) {
        drop_route(field);
    }
    TRY(report_drive_open(&field->drive, store, outcome, error));
    if (same) {
        return STATUS_OK;
    }
    const struct scenario *scenario = &field->drive.document->scenario;
    TRY(roadmap_create(&scenario->map, &field->roadmap, error));
    TRY(route_create(field->roadmap, scenario->ego.route, scenario->ego.route_count,
                     scenario->ego.pose, &field->route, error));
    memcpy(field->scenario_hash, outcome->scenario_hash, sizeof field->scenario_hash);
    return STATUS_OK;
}

/* Deviation from the centre line of the route, tick by tick. */
static enum status lane_keeping(const struct export_field *field, int32_t rollout, double *out,
                                struct error *error)
{
    const struct trace_reader *reader = &field->drive.reader;
    const struct map *map = roadmap_map(field->roadmap);
    uint32_t last = trace_reader_last_tick(reader, rollout);
    double *deviation_m = calloc((size_t)last + 1, sizeof *deviation_m);
    bool *in_junction = calloc((size_t)last + 1, sizeof *in_junction);
    uint32_t count = 0;
    double hint_s_m = -1.0;
    bool full = deviation_m != NULL && in_junction != NULL;
    for (uint32_t tick = 0; full && tick <= last; tick++) {
        struct trace_agent agents[LIMIT_AGENTS];
        struct trace_tick at;
        if (!trace_reader_tick(reader, rollout, tick, &at, agents)) {
            continue;
        }
        struct polyline_projection foot =
            route_project(field->route, (struct vec2){at.x_m, at.y_m}, hint_s_m);
        int32_t lane = route_lane_at(field->route, foot.s_m);
        hint_s_m = foot.s_m;
        in_junction[count] = lane >= 0 && map->lanes[lane].intersection;
        deviation_m[count++] = fabs(foot.offset_m);
    }
    if (full) {
        *out = count > 0 ? field_lane_keeping(deviation_m, in_junction, count, TICK_S) : NAN;
    }
    free(deviation_m);
    free(in_junction);
    return full ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "export: out of memory");
}

/* 0 where ego passed a red light, NAN where nobody looked. */
static double traffic_light(const struct scenario *scenario, const struct outcome *outcome)
{
    bool lights = false;
    for (uint32_t i = 0; i < scenario->map.signal_count; i++) {
        lights = lights || scenario->map.signals[i].sign == TRAFFIC_SIGN_NONE;
    }
    if (lights && !scenario->criteria.obey_signals) {
        return NAN;
    }
    return (outcome->reasons & REASON_RED_LIGHT) != 0 ? 0.0 : 1.0;
}

enum status export_field_read(struct export_field *field, struct store *store,
                              const struct outcome *outcome, double values[EXPORT_FIELD_COUNT],
                              struct error *error)
{
    const struct metrics *metrics = &outcome->metrics;
    for (int i = 0; i < EXPORT_FIELD_COUNT; i++) {
        values[i] = NAN;
    }
    if ((outcome->verdict != VERDICT_PASS && outcome->verdict != VERDICT_FAIL) ||
        isfinite(metrics->total_cost)) {
        return STATUS_OK;
    }
    values[EXPORT_FIELD_PDMS] = field_pdms_of(metrics);
    if (outcome->artifact_hash[0] == '\0') {
        return STATUS_OK;
    }
    enum status status = open_drive(field, store, outcome, error);
    if (status == STATUS_NOT_FOUND) { /* the artifact has expired */
        return STATUS_OK;
    }
    int32_t rollout = status == STATUS_OK ? report_drive_rollout(&field->drive, outcome) : -1;
    if (status != STATUS_OK || rollout < 0) {
        return status;
    }
    TRY(lane_keeping(field, rollout, &values[EXPORT_FIELD_LANE_KEEPING], error));
    const struct field_parts parts = {
        .no_at_fault_collision = metrics->no_at_fault_collision,
        .drivable_area = metrics->drivable_area,
        .driving_direction = metrics->driving_direction,
        .traffic_light = traffic_light(&field->drive.document->scenario, outcome),
        .progress = metrics->progress,
        .ttc = metrics->ttc,
        .lane_keeping = values[EXPORT_FIELD_LANE_KEEPING],
        .history_comfort = metrics->comfort,
        .extended_comfort = NAN, /* drives keep no plans to compare */
    };
    values[EXPORT_FIELD_EPDMS] = field_epdms(&parts);
    return STATUS_OK;
}
