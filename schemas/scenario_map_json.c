/*
 * Scenario decoding: the map (lanes, polygons, surfaces).
 */
#include "schemas/scenario_members.h"

#include <string.h>

enum status map_decode(const char *file, const json_t *root, struct arena *arena, struct map *out,
                       struct error *error)
{
    struct scenario_decoder decoder = {.arena = arena, .error = error};
    struct json_cursor top = json_cursor_root(file, root);
    return decode_map(&top, &decoder, out);
}

static enum status count_map_points(const struct json_cursor *cursor, uint32_t count,
                                    struct scenario_decoder *decoder)
{
    decoder->map_points += count;
    if (decoder->map_points > LIMIT_MAP_POINTS) {
        return json_fail_status(cursor, STATUS_LIMIT, decoder->error,
                                "expected at most %d points in one map, found more",
                                LIMIT_MAP_POINTS);
    }
    return STATUS_OK;
}

static enum status decode_width(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                struct lane *out)
{
    double same = 3.5;
    size_t count;
    out->width_m = decoder_alloc(decoder, cursor, out->point_count, sizeof *out->width_m);
    if (out->width_m == NULL) {
        return STATUS_LIMIT;
    }
    if (json_is_array(cursor->value)) {
        TRY(json_array_begin(cursor, 0, LIMIT_LANE_POINTS, &count, decoder->error));
        if (count != out->point_count) {
            return json_fail(cursor, decoder->error,
                             "expected one width per point of the centre line (%u), found %zu",
                             out->point_count, count);
        }
        for (size_t i = 0; i < count; i++) {
            struct json_cursor element = json_cursor_element(cursor, i);
            TRY(json_value_number(&element, 0.5, 50.0, &out->width_m[i], decoder->error));
        }
        return STATUS_OK;
    }
    if (json_cursor_present(cursor)) {
        TRY(json_value_number(cursor, 0.5, 50.0, &same, decoder->error));
    }
    for (uint32_t i = 0; i < out->point_count; i++) {
        out->width_m[i] = same;
    }
    return STATUS_OK;
}

/* Everything of a lane but its links, which need all ids. */
static enum status decode_lane(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                               void *element)
{
    struct lane *out = element;
    struct error *error = decoder->error;
    out->kind = LANE_DRIVING;
    out->left_marking = out->right_marking = MARKING_SOLID;
    TRY(members_begin(cursor, &lane_members, MEMBER_KINDS_ALL, error));
    TRY(decode_id(cursor, "id", true, out->id, error));
    TRY(members_decode(cursor, &lane_members, MEMBER_KINDS_ALL, out, error));
    struct json_cursor part = json_cursor_member(cursor, "centre_line");
    TRY(decode_points(&part, 2, LIMIT_LANE_POINTS, decoder, &out->point_count, &out->centre_line));
    TRY(count_map_points(&part, out->point_count, decoder));
    part = json_cursor_member(cursor, "width_m");
    return decode_width(&part, decoder, out);
}

static enum status decode_neighbour(const struct json_cursor *cursor, const char *key,
                                    struct scenario_decoder *decoder, int32_t *out)
{
    struct json_cursor member = json_cursor_member(cursor, key);
    uint32_t index;
    *out = -1;
    if (!json_cursor_present(&member) || json_is_null(member.value)) {
        return STATUS_OK;
    }
    TRY(id_index_find(&decoder->lanes, &member, "a lane", &index, decoder->error));
    *out = (int32_t)index;
    return STATUS_OK;
}

static enum status decode_links(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                struct lane *out)
{
    TRY(decode_neighbour(cursor, "left", decoder, &out->left));
    TRY(decode_neighbour(cursor, "right", decoder, &out->right));
    struct json_cursor list = json_cursor_member(cursor, "successors");
    return decode_list(&list, 0, LIMIT_LANE_LINKS, decoder, decode_lane_id, sizeof *out->successors,
                       &out->successors, &out->successor_count);
}

static enum status index_lanes(const struct json_cursor *list, struct scenario_decoder *decoder,
                               const struct map *map)
{
    return id_index_build(&decoder->lanes, list, decoder, map->lanes, map->lane_count,
                          sizeof *map->lanes, offsetof(struct lane, id));
}

static enum status decode_lanes(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                struct map *out)
{
    TRY(decode_list(cursor, 1, LIMIT_LANES, decoder, decode_lane, sizeof *out->lanes, &out->lanes,
                    &out->lane_count));
    TRY(index_lanes(cursor, decoder, out));
    uint32_t before = errors_count(decoder->errors);
    for (uint32_t i = 0; i < out->lane_count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        TRY(errors_keep(decoder->errors, decode_links(&element, decoder, &out->lanes[i]),
                        decoder->error));
    }
    return errors_end(decoder->errors, before, decoder->error);
}

static enum status decode_polygon(const struct json_cursor *cursor,
                                  struct scenario_decoder *decoder, void *element)
{
    struct polygon *out = element;
    TRY(decode_points(cursor, 3, LIMIT_LANE_POINTS, decoder, &out->point_count, &out->points));
    return count_map_points(cursor, out->point_count, decoder);
}

static enum status decode_polygons(const struct json_cursor *map, const char *key,
                                   struct scenario_decoder *decoder, uint32_t *count,
                                   struct polygon **polygons)
{
    struct json_cursor list = json_cursor_member(map, key);
    return decode_list(&list, 0, LIMIT_POLYGONS, decoder, decode_polygon, sizeof **polygons,
                       polygons, count);
}

static enum status decode_surface(const struct json_cursor *cursor,
                                  struct scenario_decoder *decoder, void *element)
{
    static const char *const kinds[] = {"water", "ice", "oil", "gravel", "snow"};
    static const double friction[] = {0.5, 0.15, 0.25, 0.55, 0.3};
    struct surface *out = element;
    int kind;
    TRY(members_begin(cursor, &surface_members, MEMBER_KINDS_ALL, decoder->error));
    TRY(json_member_choice(cursor, "kind", true, kinds, 5, &kind, decoder->error));
    strcpy(out->kind, kinds[kind]);
    out->friction = friction[kind];
    TRY(members_decode(cursor, &surface_members, MEMBER_KINDS_ALL, out, decoder->error));
    struct json_cursor area = json_cursor_member(cursor, "area");
    return decode_polygon(&area, decoder, &out->area);
}

enum status decode_map(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                       struct map *out)
{
    static const char *const keys[] = {"id",       "lanes",   "drivable", "crosswalks",
                                       "surfaces", "signals", NULL};
    struct map map = {0};
    TRY(json_object_begin(cursor, keys, decoder->error));
    TRY(decode_id(cursor, "id", false, map.id, decoder->error));
    struct json_cursor lanes = json_cursor_member(cursor, "lanes");
    TRY(decode_lanes(&lanes, decoder, &map));
    TRY(decode_polygons(cursor, "drivable", decoder, &map.drivable_count, &map.drivable));
    TRY(decode_polygons(cursor, "crosswalks", decoder, &map.crosswalk_count, &map.crosswalks));
    struct json_cursor surfaces = json_cursor_member(cursor, "surfaces");
    TRY(decode_list(&surfaces, 0, LIMIT_POLYGONS, decoder, decode_surface, sizeof *map.surfaces,
                    &map.surfaces, &map.surface_count));
    struct json_cursor signals = json_cursor_member(cursor, "signals");
    TRY(decode_signals(&signals, decoder, &map));
    *out = map;
    return STATUS_OK;
}

enum status adopt_map(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                      struct map *out)
{
    struct json_cursor lanes = json_cursor_member(cursor, "lanes");
    struct json_cursor signals = json_cursor_member(cursor, "signals");
    TRY(index_lanes(&lanes, decoder, decoder->shared->map));
    TRY(index_signals(&signals, decoder, decoder->shared->map));
    *out = *decoder->shared->map;
    return STATUS_OK;
}
