/*
 * Traffic lights, interventions and plans in the document of a drive. See drive_signals.h.
 */
#include "report/drive_signals.h"

#include "engine/traffic/signals.h"
#include "report/report_drive.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>

void drive_signals_line(const struct map *map, const struct traffic_signal *signal, uint32_t k,
                        struct vec2 line[2])
{
    const struct lane *lane = &map->lanes[signal->lanes[k]];
    double length_m = polyline_length_m(lane->centre_line, lane->point_count);
    double s_m = fmax(length_m - signal->stop_m, 0.0);
    double half_m = lane->width_m[lane->point_count - 1] / 2;
    for (int end = 0; end < 2; end++) {
        struct pose at = polyline_pose_at(lane->centre_line, lane->point_count, s_m,
                                          end == 0 ? half_m : -half_m);
        line[end] = (struct vec2){at.x_m, at.y_m};
    }
}

void drive_signals_map(struct json_text *text, const struct map *map)
{
    char line[160];
    json_write_literal(text, ",\"signals\":[");
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        json_write_literal(text, i > 0 ? ",{\"lines\":[" : "{\"lines\":[");
        for (uint32_t k = 0; k < signal->lane_count; k++) {
            struct vec2 stop[2];
            drive_signals_line(map, signal, k, stop);
            snprintf(line, sizeof line, "%s[%.2f,%.2f,%.2f,%.2f]", k > 0 ? "," : "", stop[0].x_m,
                     stop[0].y_m, stop[1].x_m, stop[1].y_m);
            json_write_literal(text, line);
        }
        json_write_literal(text, "]}");
    }
    json_write_literal(text, "]");
}

void drive_signals_rollout(struct json_text *text, const struct scenario *scenario,
                           const char *branch_id, uint32_t first_tick, uint32_t count)
{
    struct scene scratch = {.tick = 0};
    char line[64];
    json_write_literal(text, ",\"signals\":[");
    for (uint32_t i = 0; i < scenario->map.signal_count; i++) {
        int last = -1;
        json_write_literal(text, i > 0 ? ",[" : "[");
        if (scenario->map.signals[i].sign != TRAFFIC_SIGN_NONE) {
            enum traffic_sign sign = scenario->map.signals[i].sign;
            snprintf(line, sizeof line, "[%u,\"%s%s\"]]", first_tick, traffic_sign_names[sign],
                     sign < TRAFFIC_SIGN_GIVE_WAY ? "_sign" : "");
            json_write_literal(text, line);
            continue;
        }
        for (uint32_t tick = first_tick; tick - first_tick < count; tick++) {
            scratch.tick = tick;
            signals_recorded(scenario, branch_id, &scratch);
            int light = scratch.signal_light[i];
            if (light != last) {
                snprintf(line, sizeof line, "%s[%u,\"%s\"]", last >= 0 ? "," : "", tick,
                         traffic_light_names[light]);
                json_write_literal(text, line);
                last = light;
            }
        }
        json_write_literal(text, "]");
    }
    json_write_literal(text, "]");
}

void drive_interventions(struct json_text *text, const struct scenario *scenario,
                         const char *branch_id)
{
    char line[160];
    const char *comma = "";
    json_write_literal(text, ",\"interventions\":[");
    const struct branch *branch = report_branch(scenario, branch_id);
    for (uint32_t i = 0; branch != NULL && i < branch->intervention_count; i++) {
        const struct intervention *what = &branch->interventions[i];
        snprintf(line, sizeof line, "%s{\"tick\":%u,\"kind\":\"%s\",\"agent\":%d}", comma,
                 what->tick, intervention_names[what->kind], what->agent);
        json_write_literal(text, line);
        comma = ",";
    }
    json_write_literal(text, "]");
}

/* ---- plans ---- */

static long whole(float value, double unit)
{
    return lround((double)value * unit);
}

static void put_plan(struct json_text *text, const struct trace_plan_view *plan, bool first)
{
    char line[64];
    snprintf(line, sizeof line, "%s[%u", first ? "" : ",", plan->head.tick);
    json_write_literal(text, line);
    for (uint32_t i = 0; i < plan->head.point_count; i++) {
        snprintf(line, sizeof line, ",%ld,%ld", whole(plan->points[i].x_m, 100),
                 whole(plan->points[i].y_m, 100));
        json_write_literal(text, line);
    }
    json_write_literal(text, "]");
}

static void put_perceived(struct json_text *text, const struct trace_plan_view *plan, bool first)
{
    char line[128];
    snprintf(line, sizeof line, "%s[%u", first ? "" : ",", plan->head.tick);
    json_write_literal(text, line);
    for (uint32_t i = 0; i < plan->head.object_count; i++) {
        const struct trace_plan_object *object = &plan->objects[i];
        snprintf(line, sizeof line, ",[%ld,%ld,%ld,%ld,%ld]", whole(object->x_m, 100),
                 whole(object->y_m, 100), whole(object->heading_rad, 1000),
                 whole(object->length_m, 100), whole(object->width_m, 100));
        json_write_literal(text, line);
    }
    json_write_literal(text, "]");
}

void drive_plans(struct json_text *text, const struct trace_reader *reader, int32_t rollout)
{
    struct trace_plan_view plan;
    for (int pass = 0; pass < 2; pass++) {
        bool first = true;
        for (size_t at = 0; trace_reader_plan_next(reader, rollout, &at, &plan);) {
            if ((pass == 0 ? plan.head.point_count : plan.head.object_count) == 0) {
                continue;
            }
            json_write_literal(text, !first ? "" : pass == 0 ? ",\"plans\":[" : ",\"perceived\":[");
            (pass == 0 ? put_plan : put_perceived)(text, &plan, first);
            first = false;
        }
        json_write_literal(text, first ? "" : "]");
    }
}
