/*
 * Codec of what version 3 of the exec protocol adds: maps, surroundings, trajectories. See
 * planner_wire.h.
 *
 * Records travel as they are in memory, which schemas/planner.h lays out without padding. Who reads
 * them checks every count against the bytes that are there before it believes it.
 */
#include "worker/wire/planner_wire.h"

#include "base/check.h"
#include "schemas/limits.h"

#include <string.h>

/* One array of a map: its bytes in the frame, and where it is in memory. */
struct part {
    size_t count;
    size_t record_bytes;
    const void *from;
};

enum { MAP_PARTS = 8 };

static void list_parts(const struct swerve_map *map, struct part out[MAP_PARTS])
{
    const struct part parts[MAP_PARTS] = {
        {map->lane_count, sizeof *map->lanes, map->lanes},
        {map->point_count, sizeof *map->points, map->points},
        {map->link_count, sizeof *map->links, map->links},
        {map->area_count, sizeof *map->areas, map->areas},
        {map->vertex_count, sizeof *map->vertices, map->vertices},
        {map->stop_line_count, sizeof *map->stop_lines, map->stop_lines},
        {map->signal_count, sizeof *map->signals, map->signals},
        {map->route_count, sizeof *map->route, map->route},
    };
    memcpy(out, parts, sizeof parts);
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

size_t wire_map_bytes(const struct swerve_map *map)
{
    struct part parts[MAP_PARTS];
    size_t bytes = sizeof(struct wire_map);
    list_parts(map, parts);
    for (int i = 0; i < MAP_PARTS; i++) {
        bytes += padded(parts[i].count * parts[i].record_bytes);
    }
    return bytes;
}

uint8_t *wire_map_encode(uint8_t *to, const struct swerve_map *map, uint32_t objects_source)
{
    struct part parts[MAP_PARTS];
    const struct wire_map head = {
        .lane_count = map->lane_count,
        .point_count = map->point_count,
        .link_count = map->link_count,
        .area_count = map->area_count,
        .vertex_count = map->vertex_count,
        .stop_line_count = map->stop_line_count,
        .signal_count = map->signal_count,
        .route_count = map->route_count,
        .goal_x_m = map->goal_x_m,
        .goal_y_m = map->goal_y_m,
        .goal_radius_m = map->goal_radius_m,
        .objects_source = objects_source,
    };
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    list_parts(map, parts);
    for (int i = 0; i < MAP_PARTS; i++) {
        size_t bytes = parts[i].count * parts[i].record_bytes;
        if (bytes > 0) {
            memcpy(to, parts[i].from, bytes);
        }
        memset(to + bytes, 0, padded(bytes) - bytes);
        to += padded(bytes);
    }
    return to;
}

/* ---- decode ---- */

/* Whether [first, first + count) lies within an array of `of`. */
static bool within(uint32_t first, uint32_t count, uint32_t of)
{
    return first <= of && count <= of - first;
}

static bool lanes_hold(const struct swerve_map *map)
{
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct swerve_map_lane *lane = &map->lanes[i];
        if (!within(lane->first_point, lane->point_count, map->point_count) ||
            !within(lane->first_successor, lane->successor_count, map->link_count) ||
            !within(lane->first_predecessor, lane->predecessor_count, map->link_count) ||
            lane->left < -1 || lane->left >= (int64_t)map->lane_count || lane->right < -1 ||
            lane->right >= (int64_t)map->lane_count ||
            memchr(lane->id, '\0', sizeof lane->id) == NULL) {
            return false;
        }
    }
    for (uint32_t i = 0; i < map->link_count; i++) {
        if (map->links[i] >= map->lane_count) {
            return false;
        }
    }
    for (uint32_t i = 0; i < map->route_count; i++) {
        if (map->route[i] >= map->lane_count) {
            return false;
        }
    }
    return true;
}

static bool rest_holds(const struct swerve_map *map)
{
    for (uint32_t i = 0; i < map->area_count; i++) {
        if (!within(map->areas[i].first_vertex, map->areas[i].vertex_count, map->vertex_count)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < map->stop_line_count; i++) {
        const struct swerve_map_stop_line *line = &map->stop_lines[i];
        if (line->lane < 0 || line->lane >= (int64_t)map->lane_count || line->signal < -1 ||
            line->signal >= (int64_t)map->signal_count) {
            return false;
        }
    }
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct swerve_map_signal *signal = &map->signals[i];
        if (!within(signal->first_lane, signal->lane_count, map->link_count) ||
            !within(signal->first_stop_line, signal->lane_count, map->stop_line_count) ||
            memchr(signal->id, '\0', sizeof signal->id) == NULL) {
            return false;
        }
    }
    return true;
}

bool wire_map_decode(const uint8_t *bytes, size_t size, struct swerve_map *out,
                     uint32_t *objects_source)
{
    struct wire_map head;
    struct part parts[MAP_PARTS];
    const uint8_t *at[MAP_PARTS];
    if (size < sizeof head) {
        return false;
    }
    memcpy(&head, bytes, sizeof head);
    struct swerve_map map = {
        .lane_count = head.lane_count,
        .point_count = head.point_count,
        .link_count = head.link_count,
        .area_count = head.area_count,
        .vertex_count = head.vertex_count,
        .stop_line_count = head.stop_line_count,
        .signal_count = head.signal_count,
        .route_count = head.route_count,
        .goal_x_m = head.goal_x_m,
        .goal_y_m = head.goal_y_m,
        .goal_radius_m = head.goal_radius_m,
    };
    size_t used = sizeof head;
    list_parts(&map, parts);
    for (int i = 0; i < MAP_PARTS; i++) {
        at[i] = bytes + used;
        if (padded(parts[i].count * parts[i].record_bytes) > size - used) {
            return false;
        }
        used += padded(parts[i].count * parts[i].record_bytes);
    }
    map.lanes = (const void *)at[0];
    map.points = (const void *)at[1];
    map.links = (const void *)at[2];
    map.areas = (const void *)at[3];
    map.vertices = (const void *)at[4];
    map.stop_lines = (const void *)at[5];
    map.signals = (const void *)at[6];
    map.route = (const void *)at[7];
    if (used != size || !lanes_hold(&map) || !rest_holds(&map)) {
        return false;
    }
    *out = map;
    *objects_source = head.objects_source;
    return true;
}

bool wire_around_decode(const uint8_t **at, const uint8_t *end, struct swerve_surroundings *out)
{
    struct wire_around head;
    size_t left = (size_t)(end - *at);
    if (left < sizeof head) {
        return false;
    }
    memcpy(&head, *at, sizeof head);
    left -= sizeof head;
    if (head.object_count > left / sizeof(struct swerve_object)) {
        return false;
    }
    left -= head.object_count * sizeof(struct swerve_object);
    if (head.signal_count > left / sizeof(struct swerve_signal_state)) {
        return false;
    }
    const uint8_t *objects = *at + sizeof head;
    const uint8_t *signals = objects + head.object_count * sizeof(struct swerve_object);
    *out = (struct swerve_surroundings){
        .objects_source = head.objects_source,
        .object_count = head.object_count,
        .objects = (const void *)objects,
        .objects_time_ns = head.objects_time_ns,
        .signal_count = head.signal_count,
        .signals = (const void *)signals,
    };
    *at = signals + head.signal_count * sizeof(struct swerve_signal_state);
    return true;
}

/* ---- answers ---- */

static enum status plan_check(const struct wire_plan *plan, uint32_t index, uint32_t session,
                              struct error *error)
{
    if (plan->session != session) {
        return error_set(error, STATUS_PLANNER, "actions: record %u: expected session %u, found %u",
                         index, session, plan->session);
    }
    if (plan->failed > 1) {
        return error_set(error, STATUS_PLANNER,
                         "actions: record %u: expected failed to be 0 or 1, found %u", index,
                         plan->failed);
    }
    if (plan->point_count > SWERVE_TRAJECTORY_POINTS) {
        return error_set(error, STATUS_PLANNER,
                         "actions: record %u: expected at most %d points, found %u", index,
                         SWERVE_TRAJECTORY_POINTS, plan->point_count);
    }
    return STATUS_OK;
}

enum status wire_plans_decode(const uint8_t *payload, size_t bytes, uint32_t count,
                              const struct swerve_observation *observations,
                              struct swerve_answer *answers, uint8_t *failed, struct error *error)
{
    struct wire_act act;
    struct wire_plan plan;
    size_t points = 0;
    if (bytes < sizeof act) {
        return error_set(error, STATUS_PLANNER, "actions: expected at least %zu bytes, found %zu",
                         sizeof act, bytes);
    }
    memcpy(&act, payload, sizeof act);
    size_t left = bytes - sizeof act;
    if (act.count != count || act.record_bytes != sizeof plan || left / sizeof plan < count) {
        return error_set(error, STATUS_PLANNER,
                         "actions: expected %u records of %zu bytes, found %u of %u in a payload "
                         "of %zu",
                         count, sizeof plan, act.count, act.record_bytes, bytes);
    }
    const uint8_t *records = payload + sizeof act;
    const uint8_t *from = records + count * sizeof plan;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&plan, records + i * sizeof plan, sizeof plan);
        TRY(plan_check(&plan, i, observations[i].session, error));
        points += plan.point_count;
    }
    left -= count * sizeof plan;
    if (left != points * sizeof(struct swerve_trajectory_point)) {
        return error_set(error, STATUS_PLANNER,
                         "actions: expected %zu points in %zu bytes after the records, found %zu",
                         points, points * sizeof(struct swerve_trajectory_point), left);
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&plan, records + i * sizeof plan, sizeof plan);
        answers[i].action = (struct swerve_action){plan.accel_mps2, plan.steer_rad};
        answers[i].point_count = plan.point_count;
        size_t taken = plan.point_count * sizeof(struct swerve_trajectory_point);
        if (taken > 0) {
            memcpy(answers[i].points, from, taken);
        }
        from += taken;
        failed[i] = (uint8_t)plan.failed;
    }
    return STATUS_OK;
}
