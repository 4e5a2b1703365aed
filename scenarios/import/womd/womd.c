/*
 * WOMD import: ego, agents and the document. See womd.h.
 */
#include "scenarios/import/womd/womd.h"

#include "base/array.h"
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"
#include "schemas/scenario_id.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBJECTS_MAX = 4096, PARTS_MAX = 16 };
#define TRUCK_M 7.0          /* vehicles from here on */
#define WHEELBASE_SHARE 0.58 /* of a car's length; the file does not say */
#define PATH_WIDTH_M 4.0
#define PATH_AHEAD_M 60.0
#define PATH_STEP_M 1.0
#define FORWARDS_MIN_S 1.0 /* of a drive that reverses before or after */

struct import {
    struct womd_context context;
    const json_t *root;
    char dataset[LIMIT_ID_BYTES]; /* where another one wrote this form; "": the dataset's own */
    char geography[LIMIT_ID_BYTES];
    uint32_t sdc; /* ego's object */
    struct womd_track ego;
    struct womd_lanes lanes;
    json_t *map;
    json_t *agents;
};

/* ---- agents ---- */

static const char *kind_of(const struct womd_track *track)
{
    if (strcmp(track->type, "vehicle") == 0) {
        return track->length_m >= TRUCK_M ? "truck" : "car";
    }
    if (strcmp(track->type, "pedestrian") == 0) {
        return "pedestrian";
    }
    return strcmp(track->type, "cyclist") == 0 ? "cyclist" : "object";
}

static json_t *trajectory_json(const struct womd_track *track)
{
    json_t *json = json_array();
    for (uint32_t i = 0; i < track->count; i++) {
        const struct trajectory_point *p = &track->points[i];
        json_array_append_new(json, json_pack("[f, f, f, f, f]", p->t_s, p->x_m, p->y_m,
                                              p->heading_rad, fabs(p->speed_mps)));
    }
    return json;
}

static double end_s(const struct import *import)
{
    return import->ego.points[import->ego.count - 1].t_s;
}

static void add_part(struct import *import, struct womd_track *track)
{
    struct womd_notes *notes = &import->context.notes;
    if (womd_track_is_ego(&import->ego, track)) {
        notes->tracks_of_ego++;
        return;
    }
    if (json_array_size(import->agents) == LIMIT_AGENTS) {
        notes->tracks_far++;
        return;
    }
    notes->gaps_bridged += womd_track_gaps(track);
    womd_track_place(&import->context, &import->ego, track);
    if (track->count < 2) {
        notes->tracks_dropped++;
        return;
    }
    const struct trajectory_point *p = &track->points[0];
    json_array_append_new(
        import->agents,
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:o, s:{s:f, s:f, s:f}, s:f}", "id", track->id,
                  "kind", kind_of(track), "behaviour", "replay", "length_m", track->length_m,
                  "width_m", track->width_m, "height_m", track->height_m, "trajectory",
                  trajectory_json(track), "pose", "x_m", p->x_m, "y_m", p->y_m, "heading_rad",
                  p->heading_rad, "speed_mps", fabs(p->speed_mps)));
}

/* An agent for each part of the track, the last one first: placing a part may write behind it. */
static void add_agent(struct import *import, struct womd_track *track)
{
    struct womd_notes *notes = &import->context.notes;
    uint32_t starts[PARTS_MAX] = {0};
    uint32_t count = 1;
    for (uint32_t at = 0; count < PARTS_MAX; count++) {
        struct womd_track rest = *track;
        rest.points += at;
        rest.count -= at;
        at += womd_track_part(&import->ego, &rest);
        if (at >= track->count) {
            break;
        }
        starts[count] = at;
    }
    notes->speeds_taken += track->speeds_taken;
    notes->tracks_parted += count - 1;
    for (uint32_t end = track->count; count-- > 0; end = starts[count]) {
        struct womd_track part = *track;
        part.points += starts[count];
        part.count = end - starts[count];
        if (count > 0) {
            snprintf(part.id, sizeof part.id, "%.50s_%u", track->id, count + 1);
        }
        add_part(import, &part);
    }
}

/* Distance of each object from ego's drive while both are there; ego's own: INFINITY. */
static enum status read_distances(struct import *import, const struct json_cursor *objects,
                                  double *nearest_m)
{
    for (uint32_t i = 0; i < json_array_size(objects->value); i++) {
        struct json_cursor object = json_cursor_element(objects, i);
        struct womd_track track = {.count = 0};
        enum status status =
            i != import->sdc ? womd_track_read(&import->context, &object, &track) : STATUS_OK;
        nearest_m[i] = i != import->sdc ? womd_track_nearest_m(&import->ego, &track) : INFINITY;
        free(track.points);
        TRY(status);
    }
    return STATUS_OK;
}

/* As many as a scenario may have, the nearest to ego's drive, in the order of the file. */
static enum status read_agents(struct import *import, const struct json_cursor *objects)
{
    size_t count = json_array_size(objects->value);
    double *nearest_m = calloc(2 * count, sizeof *nearest_m);
    double *sorted_m = nearest_m + count;
    enum status status =
        memory_check(nearest_m, import->context.error, "%s: out of memory", import->context.name);
    bool many = count > LIMIT_AGENTS;
    if (many) {
        THEN(status, read_distances(import, objects, nearest_m));
    }
    if (many && status == STATUS_OK) {
        memcpy(sorted_m, nearest_m, count * sizeof *sorted_m);
        qsort(sorted_m, count, sizeof *sorted_m, array_compare_double);
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct json_cursor object = json_cursor_element(objects, i);
        struct womd_track track = {.count = 0};
        if (i == import->sdc) {
            continue;
        }
        bool far = many && nearest_m[i] > sorted_m[LIMIT_AGENTS - 1];
        if (far || json_array_size(import->agents) >= LIMIT_AGENTS) {
            import->context.notes.tracks_far++;
            continue;
        }
        status = womd_track_read(&import->context, &object, &track);
        if (status == STATUS_OK) {
            add_agent(import, &track);
        }
        free(track.points);
    }
    free(nearest_m);
    return status;
}

/* ---- ego ---- */

/* Drops what comes before and after the longest stretch forwards, and moves the origin of places
 * and times to its beginning. */
static enum status begin_forwards(struct import *import, const struct json_cursor *object)
{
    struct womd_context *context = &import->context;
    struct womd_track *ego = &import->ego;
    uint32_t seen = ego->count;
    womd_track_keep_forwards(ego);
    if (seen < 2 || ego->count < 2) {
        return json_fail(object, context->error,
                         seen < 2 ? "expected at least two valid samples of the recording vehicle, "
                                    "found fewer"
                                  : "expected a recording vehicle that goes forwards, found one "
                                    "that reverses");
    }
    double duration_s = ego->points[ego->count - 1].t_s - ego->points[0].t_s;
    if (ego->count < seen && duration_s < FORWARDS_MIN_S) {
        return json_fail(object, context->error,
                         "expected a recording vehicle that goes forwards for %g s, which ego can "
                         "follow, found one that reverses but for %g s",
                         FORWARDS_MIN_S, duration_s);
    }
    double start_s = ego->points[0].t_s;
    context->first = (uint32_t)floor(start_s / TICK_S + 0.5);
    context->origin = (struct vec2){floor(ego->points[0].x_m), floor(ego->points[0].y_m)};
    context->notes.reversing = seen - ego->count;
    for (uint32_t i = 0; i < ego->count; i++) {
        ego->points[i].t_s -= start_s;
        ego->points[i].x_m -= context->origin.x_m;
        ego->points[i].y_m -= context->origin.y_m;
    }
    return STATUS_OK;
}

/* Which object, and from when on. */
static enum status find_ego(struct import *import, const struct json_cursor *objects)
{
    struct json_cursor top = json_cursor_root(import->context.name, import->root);
    struct json_cursor metadata = json_cursor_member(&top, "metadata");
    struct error *error = import->context.error;
    size_t count;
    int64_t sdc = 0;
    TRY(json_array_begin(objects, 1, OBJECTS_MAX, &count, error));
    if (!json_is_object(metadata.value)) {
        return json_fail(&metadata, error,
                         "expected an object with sdc_track_index, the recording vehicle");
    }
    TRY(json_member_integer(&metadata, "sdc_track_index", true, 0, (int64_t)count - 1, &sdc,
                            error));
    import->sdc = (uint32_t)sdc;
    struct json_cursor object = json_cursor_element(objects, import->sdc);
    TRY(womd_track_read(&import->context, &object, &import->ego));
    import->context.notes.gaps_bridged += womd_track_gaps(&import->ego);
    import->context.notes.speeds_taken += import->ego.speeds_taken;
    return begin_forwards(import, &object);
}

static json_t *ego_json(const struct import *import, bool path_lane)
{
    const struct womd_track *ego = &import->ego;
    const struct trajectory_point *p = &ego->points[0];
    json_t *json =
        json_pack("{s:{s:f, s:f, s:f}, s:f, s:f, s:f, s:f, s:f, s:o}", "pose", "x_m", p->x_m, "y_m",
                  p->y_m, "heading_rad", p->heading_rad, "speed_mps", p->speed_mps, "length_m",
                  ego->length_m, "width_m", ego->width_m, "height_m", ego->height_m, "wheelbase_m",
                  dmath_max(WHEELBASE_SHARE * ego->length_m, 0.5), "log", trajectory_json(ego));
    if (path_lane) {
        json_object_set_new(json, "route", json_pack("[s]", "ego_path"));
    } else {
        const struct trajectory_point *last = &ego->points[ego->count - 1];
        json_object_set_new(
            json, "goal",
            json_pack("{s:f, s:f, s:f}", "x_m", last->x_m, "y_m", last->y_m, "radius_m", 5.0));
    }
    return json;
}

/* A lane along what ego drove and straight on: for scenes whose lanes do not lead there. */
static void add_path_lane(struct import *import, json_t *map)
{
    const struct womd_track *ego = &import->ego;
    json_t *line = json_array();
    struct vec2 last = {ego->points[0].x_m, ego->points[0].y_m};
    double heading = ego->points[0].heading_rad;
    /* Its front may be past where it stands; the lane begins behind it. */
    struct vec2 begin = {last.x_m - 10.0 * dmath_cos(heading),
                         last.y_m - 10.0 * dmath_sin(heading)};
    json_array_append_new(line, json_pack("[f, f]", begin.x_m, begin.y_m));
    json_array_append_new(line, json_pack("[f, f]", last.x_m, last.y_m));
    for (uint32_t i = 1; i < ego->count && json_array_size(line) < LIMIT_LANE_POINTS - 2; i++) {
        const struct trajectory_point *p = &ego->points[i];
        double ahead = (p->x_m - last.x_m) * dmath_cos(p->heading_rad) +
                       (p->y_m - last.y_m) * dmath_sin(p->heading_rad);
        if (ahead >= PATH_STEP_M) {
            last = (struct vec2){p->x_m, p->y_m};
            heading = p->heading_rad;
            json_array_append_new(line, json_pack("[f, f]", last.x_m, last.y_m));
        }
    }
    json_array_append_new(line, json_pack("[f, f]", last.x_m + PATH_AHEAD_M * dmath_cos(heading),
                                          last.y_m + PATH_AHEAD_M * dmath_sin(heading)));
    json_array_append_new(json_object_get(map, "lanes"),
                          json_pack("{s:s, s:o, s:f, s:s, s:s}", "id", "ego_path", "centre_line",
                                    line, "width_m", PATH_WIDTH_M, "left_marking", "none",
                                    "right_marking", "none"));
}

/* ---- the document ---- */

static void make_id(const struct import *import, char out[LIMIT_ID_BYTES])
{
    const char *given = json_string_value(json_object_get(import->root, "scenario_id"));
    const char *slash = strrchr(import->context.name, '/');
    const char *text = given != NULL && given[0] != '\0' ? given
                       : slash != NULL                   ? slash + 1
                                                         : import->context.name;
    char named[LIMIT_TEXT_BYTES];
    snprintf(named, sizeof named, "%s%.100s", import->dataset[0] != '\0' ? "log_" : "womd_", text);
    scenario_id_make(named, "", out);
}

static void write_source(const struct import *import, char out[LIMIT_TEXT_BYTES])
{
    const struct womd_notes *notes = &import->context.notes;
    int used = snprintf(out, LIMIT_TEXT_BYTES, "%s; origin %.0f %.0f",
                        import->dataset[0] != '\0' ? import->dataset
                                                   : "Waymo Open Motion Dataset, JSON of GPUDrive",
                        import->context.origin.x_m, import->context.origin.y_m);
    const struct {
        uint32_t count;
        const char *what;
    } rows[] = {
        {notes->lanes_dropped, "lanes left out"},
        {notes->lanes_thinned, "lanes thinned"},
        {notes->tracks_dropped, "tracks left out"},
        {notes->gaps_bridged, "gaps bridged"},
        {notes->lights_dropped, "lights left out"},
        {notes->tracks_far, "tracks beyond the nearest 256 left out"},
        {notes->boxes_shrunk, "boxes made smaller beside ego's"},
        {notes->tracks_later, "tracks begin when they are off ego"},
        {notes->tracks_touching, "tracks touch ego's recording"},
        {notes->tracks_parted, "tracks parted where they jump or a gap leads over ego"},
        {notes->tracks_of_ego, "tracks of ego itself left out"},
        {notes->speeds_taken, "tracks with speeds of their places, which their own do not fit"},
        {notes->reversing, "samples left out before and after ego reverses or jumps"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].count > 0 && used < LIMIT_TEXT_BYTES) {
            used += snprintf(out + used, LIMIT_TEXT_BYTES - (size_t)used, "; %u %s", rows[i].count,
                             rows[i].what);
        }
    }
    if (notes->path_lane && used < LIMIT_TEXT_BYTES) {
        snprintf(out + used, LIMIT_TEXT_BYTES - (size_t)used, "; ego's path is a lane");
    }
}

/* Most lanes by type: 1 is a freeway (MapElementIds of the file's writer). */
static const char *road_of(const struct import *import)
{
    size_t i;
    json_t *road;
    int freeway = 0;
    int other = 0;
    json_array_foreach (json_object_get(import->root, "roads"), i, road) {
        const char *type = json_string_value(json_object_get(road, "type"));
        if (type != NULL && strcmp(type, "lane") == 0) {
            bool is = json_integer_value(json_object_get(road, "map_element_id")) == 1;
            freeway += is;
            other += !is;
        }
    }
    return freeway > other ? "motorway" : "urban";
}

/* Whom ego shares the road with that needs most care. */
static const char *actor_of(const struct import *import)
{
    static const char *const order[] = {"pedestrian", "cyclist", "truck", "car", "object"};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        size_t i;
        json_t *agent;
        json_array_foreach (import->agents, i, agent) {
            if (strcmp(json_string_value(json_object_get(agent, "kind")), order[k]) == 0) {
                return order[k];
            }
        }
    }
    return "none";
}

/* The document, loaded: with the file's lanes alone, or with ego's own path as a lane. */
static enum status build(struct import *import, bool path_lane, struct scenario_document **out)
{
    char id[LIMIT_ID_BYTES];
    char source[LIMIT_TEXT_BYTES];
    json_t *map = json_deep_copy(import->map);
    import->context.notes.path_lane = path_lane;
    if (path_lane && map != NULL) {
        add_path_lane(import, map);
    }
    make_id(import, id);
    write_source(import, source);
    /* Widths and edges are not the file's, so nobody is judged by them. */
    json_t *document = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:O, s:f, s:{s:s, s:s, s:s, s:s}, s:{s:b, s:b}}", "id", id,
        "title", "Recorded drive", "source", source, "question", "regression", "map", map, "ego",
        ego_json(import, path_lane), "agents", import->agents, "horizon_s", end_s(import), "slices",
        "road", road_of(import), "geography", import->geography, "actor", actor_of(import),
        "scenario_type", "recorded", "criteria", "stay_drivable", 0, "right_direction", 0);
    TRY(memory_check(document, import->context.error, "%s: out of memory", import->context.name));
    struct json_cursor written = json_cursor_root(import->context.name, document);
    enum status status = scenario_load_written(&written, NULL, out, import->context.error);
    json_decref(document);
    return status;
}

static enum status hand_out(struct import *import, char ***texts, size_t *count)
{
    struct scenario_document *document = NULL;
    enum status status = build(import, false, &document);
    if (status == STATUS_BAD_INPUT) {
        status = build(import, true, &document);
    }
    if (status != STATUS_OK) {
        return status == STATUS_BAD_INPUT ? error_prefix(import->context.error,
                                                         "%s: expected a scene that makes a "
                                                         "scenario, found one that does not",
                                                         import->context.name)
                                          : status;
    }
    char **list = malloc(sizeof *list);
    char *text = strdup(document->canonical);
    scenario_destroy(document);
    if (list == NULL || text == NULL) {
        free(list);
        free(text);
        return error_set(import->context.error, STATUS_NO_MEMORY, "%s: out of memory",
                         import->context.name);
    }
    list[0] = text;
    *texts = list;
    *count = 1;
    return STATUS_OK;
}

/* Members that the dataset's own scenes do not have. */
static enum status read_origin(struct import *import, const struct json_cursor *top)
{
    struct error *error = import->context.error;
    snprintf(import->geography, sizeof import->geography, "north_america");
    TRY(json_member_text(top, "dataset", false, import->dataset, sizeof import->dataset, error));
    return json_member_text(top, "geography", false, import->geography, sizeof import->geography,
                            error);
}

enum status import_womd(const char *name, const char *json, size_t bytes, char ***texts,
                        size_t *count, struct error *error)
{
    json_t *root = NULL;
    struct import import = {.context = {.name = name, .error = error}};
    TRY(json_read_text(name, json, bytes, &root, error));
    import.root = root;
    import.agents = json_array();
    struct json_cursor top = json_cursor_root(name, root);
    struct json_cursor objects = json_cursor_member(&top, "objects");
    struct json_cursor roads = json_cursor_member(&top, "roads");
    struct json_cursor states = json_cursor_member(&top, "tl_states");
    enum status status = json_is_object(root)
                             ? memory_check(import.agents, error, "%s: out of memory", name)
                             : json_fail(&top, error, "expected an object, a scene");
    THEN(status, read_origin(&import, &top));
    THEN(status, find_ego(&import, &objects));
    THEN(status, womd_map(&import.context, &roads, &import.map, &import.lanes));
    THEN(status,
         womd_signals(&import.context, &states, import.context.first, &import.lanes, import.map));
    THEN(status, read_agents(&import, &objects));
    THEN(status, hand_out(&import, texts, count));
    free(import.ego.points);
    womd_lanes_finish(&import.lanes);
    json_decref(import.map);
    json_decref(import.agents);
    json_decref(root);
    return status;
}
