/*
 * Scenario decoding: the whole document, ego, conditions, slices and criteria, and the helpers that
 * the parts share (scenario_parts.h). Encoding is in scenario_encode.c.
 *
 * Invariant: *out is written only when the whole document was right.
 */
#include "schemas/scenario_json.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_members.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum status decode_slices(const struct json_cursor *cursor, struct scenario *out,
                                 struct error *error);
static enum status decode_criteria(const struct json_cursor *cursor, struct criteria *out,
                                   struct error *error);
static enum status decode_horizon(const struct json_cursor *root, uint32_t *ticks,
                                  struct error *error);
static enum status decode_ego(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              struct ego *out);

static enum status decode_texts(const struct json_cursor *root, struct scenario *out,
                                struct error *error)
{
    TRY(decode_id(root, "id", true, out->id, error));
    TRY(json_member_text(root, "title", false, out->title, sizeof out->title, error));
    TRY(json_member_text(root, "source", false, out->source, sizeof out->source, error));
    TRY(json_member_text(root, "prompt", false, out->prompt, sizeof out->prompt, error));
    return json_member_text(root, "invalid", false, out->invalid, sizeof out->invalid, error);
}

enum status scenario_decode(const char *file, const json_t *root, struct arena *arena,
                            struct scenario *out, struct error *error)
{
    return scenario_decode_all(file, root, arena, out, NULL, error);
}

/* Members of the road and things on it: routes, agents and branches name lanes and one another, so
 * nothing is looked at that rests on a part with mistakes. */
static enum status decode_scene(const struct json_cursor *top, struct scenario_decoder *decoder,
                                struct scenario *out)
{
    struct error *error = decoder->error;
    struct json_cursor part = json_cursor_member(top, "map");
    TRY(decoder->shared->map != NULL ? adopt_map(&part, decoder, &out->map)
                                     : decode_map(&part, decoder, &out->map));
    uint32_t before = errors_count(decoder->errors);
    part = json_cursor_member(top, "ego");
    TRY(errors_keep(decoder->errors, decode_ego(&part, decoder, &out->ego), error));
    part = json_cursor_member(top, "agents");
    TRY(errors_keep(decoder->errors, decode_agents(&part, decoder, out), error));
    TRY(errors_end(decoder->errors, before, error)); /* a storyboard rests on the agents */
    part = json_cursor_member(top, "storyboard");
    TRY(errors_keep(decoder->errors, decode_storyboard(&part, decoder, out), error));
    part = json_cursor_member(top, "controls");
    TRY(errors_keep(decoder->errors, decode_controls(&part, decoder, out), error));
    return errors_end(decoder->errors, before, error);
}

static enum status decode_surroundings(const struct json_cursor *top,
                                       struct scenario_decoder *decoder, struct scenario *out)
{
    struct error *error = decoder->error;
    struct json_cursor part = json_cursor_member(top, "conditions");
    uint32_t before = errors_count(decoder->errors);
    conditions_defaults(WEATHER_CLEAR, &out->conditions);
    if (json_cursor_present(&part)) {
        struct conditions base = out->conditions;
        TRY(errors_keep(decoder->errors, decode_conditions(&part, &base, &out->conditions, error),
                        error));
    }
    part = json_cursor_member(top, "slices");
    TRY(errors_keep(decoder->errors, decode_slices(&part, out, error), error));
    part = json_cursor_member(top, "rig");
    TRY(errors_keep(decoder->errors, decode_rig(&part, decoder, &out->rig), error));
    part = json_cursor_member(top, "criteria");
    TRY(errors_keep(decoder->errors, decode_criteria(&part, &out->criteria, error), error));
    part = json_cursor_member(top, "traceability");
    TRY(errors_keep(decoder->errors, decode_traceability(&part, decoder, out->links), error));
    return errors_end(decoder->errors, before, error);
}

static enum status decode_head(const struct json_cursor *top, struct scenario_decoder *decoder,
                               struct scenario *out)
{
    static const char *const keys[] = {
        "id",           "title",      "source",   "prompt",    "invalid",  "map",      "ego",
        "agents",       "conditions", "slices",   "horizon_s", "question", "criteria", "branches",
        "traceability", "storyboard", "controls", "rig",       NULL};
    struct errors *errors = decoder->errors;
    struct error *error = decoder->error;
    uint32_t before = errors_count(errors);
    int question = QUESTION_PLANNING;
    TRY(errors_keep(errors, json_object_begin(top, keys, error), error));
    TRY(errors_keep(errors, decode_texts(top, out, error), error));
    TRY(errors_keep(errors, decode_horizon(top, &out->horizon_ticks, error), error));
    TRY(errors_keep(errors,
                    json_member_choice(top, "question", false, question_names, QUESTION_COUNT,
                                       &question, error),
                    error));
    out->question = (enum question)question;
    return errors_end(errors, before, error);
}

enum status scenario_decode_all(const char *file, const json_t *root, struct arena *arena,
                                struct scenario *out, struct errors *errors, struct error *error)
{
    const struct scenario_shared none = {0};
    return scenario_decode_on(file, root, &none, arena, out, errors, error);
}

enum status scenario_decode_on(const char *file, const json_t *root,
                               const struct scenario_shared *shared, struct arena *arena,
                               struct scenario *out, struct errors *errors, struct error *error)
{
    static const char *const no_keys[] = {NULL};
    struct scenario scenario = {.question = QUESTION_PLANNING};
    struct scenario_decoder decoder = {
        .arena = arena, .error = error, .errors = errors, .shared = shared, .scenario = &scenario};
    struct json_cursor top = json_cursor_root(file, root);
    uint32_t before = errors_count(errors);
    if (!json_is_object(root)) {
        return json_object_begin(&top, no_keys, error);
    }
    TRY(errors_keep(errors, decode_head(&top, &decoder, &scenario), error));
    TRY(errors_keep(errors, decode_scene(&top, &decoder, &scenario), error));
    TRY(errors_keep(errors, decode_surroundings(&top, &decoder, &scenario), error));
    /* Branches rest on all of these. */
    TRY(errors_end(errors, before, error));
    struct json_cursor branches = json_cursor_member(&top, "branches");
    TRY(decode_branches(&branches, &decoder, &scenario));
    *out = scenario;
    return STATUS_OK;
}

static enum status decode_horizon(const struct json_cursor *root, uint32_t *ticks,
                                  struct error *error)
{
    double horizon_s;
    TRY(json_member_number(root, "horizon_s", true, 0.1, LIMIT_HORIZON_TICKS / 10.0, &horizon_s,
                           error));
    double rounded = floor(horizon_s * 10.0 + 0.5);
    if (fabs(horizon_s * 10.0 - rounded) > 1e-6) {
        struct json_cursor member = json_cursor_member(root, "horizon_s");
        return json_fail(&member, error, "expected a multiple of 0.1 s, found %g", horizon_s);
    }
    *ticks = (uint32_t)rounded;
    return STATUS_OK;
}

/* Ends of a range in order, the ends of a turn both or neither. */
static enum status check_goal_bounds(const struct json_cursor *cursor,
                                     const struct goal_bounds *bounds, struct error *error)
{
    const struct {
        const char *low_key, *high_key;
        double low, high;
    } ranges[] = {
        {"time_min_s", "time_max_s", bounds->time_min_s, bounds->time_max_s},
        {"speed_min_mps", "speed_max_mps", bounds->speed_min_mps, bounds->speed_max_mps},
        {"heading_min_rad", "heading_max_rad", bounds->heading_min_rad, bounds->heading_max_rad},
    };
    if (isnan(bounds->heading_min_rad) != isnan(bounds->heading_max_rad)) {
        return json_fail(cursor, error,
                         "expected both \"heading_min_rad\" and \"heading_max_rad\", found one");
    }
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        if (ranges[i].low > ranges[i].high) {
            struct json_cursor member = json_cursor_member(cursor, ranges[i].high_key);
            return json_fail(&member, error, "expected at least %s, %g, found %g",
                             ranges[i].low_key, ranges[i].low, ranges[i].high);
        }
    }
    return STATUS_OK;
}

static enum status decode_goal(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                               struct ego *out)
{
    struct error *error = decoder->error;
    out->goal_bounds = (struct goal_bounds){NAN, NAN, NAN, NAN, NAN, NAN};
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    out->goal_radius_m = 5.0;
    TRY(members_read(cursor, &goal_members, out, error));
    struct json_cursor area = json_cursor_member(cursor, "area");
    if (json_cursor_present(&area)) {
        TRY(decode_points(&area, 3, LIMIT_LANE_POINTS, decoder, &out->goal_area.point_count,
                          &out->goal_area.points));
    }
    TRY(check_goal_bounds(cursor, &out->goal_bounds, error));
    out->has_goal = true;
    return STATUS_OK;
}

/* A dead time is a whole number of ticks, because commands are. */
static enum status check_delay(const struct json_cursor *ego, const char *key, double delay_s,
                               struct error *error)
{
    double ticks = floor(delay_s / TICK_S + 0.5);
    if (fabs(delay_s - ticks * TICK_S) > 1e-9) {
        struct json_cursor member = json_cursor_member(ego, key);
        return json_fail(&member, error, "expected a multiple of 0.1 s, found %g", delay_s);
    }
    return STATUS_OK;
}

static enum status decode_ego(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              struct ego *out)
{
    struct error *error = decoder->error;
    TRY(members_begin(cursor, &ego_members, MEMBER_KINDS_ALL, error));
    *out = (struct ego){.length_m = 4.8, .width_m = 1.9, .height_m = 1.5, .wheelbase_m = 2.8};
    struct json_cursor part = json_cursor_member(cursor, "pose");
    TRY(decode_pose(&part, &out->pose, error));
    TRY(members_decode(cursor, &ego_members, MEMBER_KINDS_ALL, out, error));
    TRY(check_delay(cursor, "brake_delay_s", out->brake_delay_s, error));
    TRY(check_delay(cursor, "steer_delay_s", out->steer_delay_s, error));
    part = json_cursor_member(cursor, "route");
    TRY(decode_route(&part, 1, decoder, &out->route_count, &out->route));
    part = json_cursor_member(cursor, "goal");
    TRY(decode_goal(&part, decoder, out));
    part = json_cursor_member(cursor, "log");
    return decode_trajectory(&part, decoder, &out->log);
}

void conditions_defaults(enum weather weather, struct conditions *out)
{
    static const double friction[WEATHER_COUNT] = {1.0, 0.7, 0.6, 0.9, 0.35};
    static const double visibility_m[WEATHER_COUNT] = {200, 120, 80, 50, 80};
    out->weather = weather;
    out->friction = friction[weather];
    out->visibility_m = visibility_m[weather];
}

enum status decode_conditions(const struct json_cursor *cursor, const struct conditions *base,
                              struct conditions *out, struct error *error)
{
    struct conditions conditions = *base;
    struct json_cursor weather = json_cursor_member(cursor, "weather");
    TRY(members_begin(cursor, &conditions_members, MEMBER_KINDS_ALL, error));
    if (json_cursor_present(&weather)) {
        TRY(member_decode(cursor, &conditions_members, "weather", &conditions, error));
        conditions_defaults(conditions.weather, &conditions);
    }
    TRY(members_decode(cursor, &conditions_members, MEMBER_KINDS_ALL, &conditions, error));
    *out = conditions;
    return STATUS_OK;
}

/* Weather and light are what the conditions say unless the document files it elsewhere. */
static enum status decode_slices(const struct json_cursor *cursor, struct scenario *out,
                                 struct error *error)
{
    static const char *const keys[] = {
        "weather", "light", "road", "geography", "actor", "scenario_type", "safety_critical", NULL};
    struct slices *slices = &out->slices;
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        strcpy(slices->value[i], "unspecified");
    }
    strcpy(slices->value[SLICE_WEATHER], weather_names[out->conditions.weather]);
    strcpy(slices->value[SLICE_LIGHT], light_names[out->conditions.light]);
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(cursor, keys, error));
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        TRY(decode_id(cursor, slice_names[i], false, slices->value[i], error));
    }
    return json_member_bool(cursor, "safety_critical", false, &slices->safety_critical, error);
}

void scenario_slices(const struct scenario *scenario, uint32_t rollout, struct slices *out)
{
    const struct branch *branch = rollout > 0 ? &scenario->branches[rollout - 1] : NULL;
    const struct conditions *end = &scenario->conditions;
    for (uint32_t i = 0; branch != NULL && i < branch->intervention_count; i++) {
        const struct intervention *intervention = &branch->interventions[i];
        end = intervention->kind == INTERVENE_CONDITIONS ? &intervention->conditions : end;
    }
    *out = scenario->slices; /* which may file a condition under a word of their own */
    if (end->weather != scenario->conditions.weather) {
        strcpy(out->value[SLICE_WEATHER], weather_names[end->weather]);
    }
    if (end->light != scenario->conditions.light) {
        strcpy(out->value[SLICE_LIGHT], light_names[end->light]);
    }
}

struct criteria criteria_default(void)
{
    return (struct criteria){
        .no_at_fault_collision = true,
        .stay_drivable = true,
        .right_direction = true,
        .obey_signals = true,
        .min_ttc_s = NAN,
        .min_distance_m = NAN,
        .impact_speed_max_mps = NAN,
        .progress_min = NAN,
        .score_min = NAN,
        .speed_max_mps = NAN,
        .expected_progress_m = NAN,
        .total_cost_max = NAN,
    };
}

static enum status decode_criteria(const struct json_cursor *cursor, struct criteria *out,
                                   struct error *error)
{
    *out = criteria_default();
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    return members_read(cursor, &criteria_members, out, error);
}

/* ---- shared by the parts ---- */

void *decoder_alloc(struct scenario_decoder *decoder, const struct json_cursor *cursor,
                    size_t count, size_t size)
{
    void *memory = arena_alloc(decoder->arena, count, size);
    if (memory == NULL) {
        json_fail_status(cursor, STATUS_LIMIT, decoder->error,
                         "expected a scenario of at most %zu bytes in memory, found more",
                         decoder->arena->limit_bytes);
    }
    return memory;
}

static bool id_character(char c, bool first)
{
    return scenario_id_plain(c) || (!first && c != '\0' && strchr(SCENARIO_ID_MARKS, c) != NULL);
}

enum status scenario_decode_id(const struct json_cursor *cursor, char out[LIMIT_ID_BYTES],
                               struct error *error)
{
    char id[LIMIT_ID_BYTES];
    TRY(json_value_text(cursor, id, sizeof id, error));
    size_t bytes = strlen(id);
    for (size_t i = 0; i < bytes; i++) {
        if (!id_character(id[i], i == 0)) {
            return json_fail(cursor, error,
                             "expected an id of letters, digits and _ . / = , + : - (the first one "
                             "a letter, digit, _ or -), found \"%s\"",
                             id);
        }
    }
    if (bytes == 0) {
        return json_fail(cursor, error, "expected an id, found empty text");
    }
    if (text_name_check("id", id, sizeof id, NULL) != STATUS_OK) {
        return json_fail(cursor, error,
                         "expected an id without a step \".\" or \"..\" between slashes, found "
                         "\"%s\"",
                         id);
    }
    memcpy(out, id, sizeof id);
    return STATUS_OK;
}

enum status decode_id(const struct json_cursor *object, const char *key, bool required,
                      char out[LIMIT_ID_BYTES], struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    if (!required && !json_cursor_present(&member)) {
        return STATUS_OK;
    }
    return scenario_decode_id(&member, out, error);
}

/* By text, then by position, so that of two equal ids the later one is reported. */
static int compare_entries(const void *a, const void *b)
{
    const struct id_entry *left = a;
    const struct id_entry *right = b;
    int order = strcmp(left->id, right->id);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

enum status id_index_build(struct id_index *index, const struct json_cursor *list,
                           struct scenario_decoder *decoder, const void *records, uint32_t count,
                           size_t bytes, size_t id_offset)
{
    index->entries = decoder_alloc(decoder, list, count, sizeof *index->entries);
    if (index->entries == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < count; i++) {
        index->entries[i] = (struct id_entry){(const char *)records + i * bytes + id_offset, i};
    }
    index->count = count;
    qsort(index->entries, index->count, sizeof *index->entries, compare_entries);
    for (uint32_t i = 0; i + 1 < index->count; i++) {
        const struct id_entry *a = &index->entries[i];
        const struct id_entry *b = &index->entries[i + 1];
        if (strcmp(a->id, b->id) == 0) {
            struct json_cursor element = json_cursor_element(list, b->index);
            struct json_cursor member = json_cursor_member(&element, "id");
            return json_fail(&member, decoder->error,
                             "expected an id of its own, found \"%s\" as in element %u", b->id,
                             a->index);
        }
    }
    return STATUS_OK;
}

static int compare_key(const void *key, const void *entry)
{
    return strcmp(key, ((const struct id_entry *)entry)->id);
}

enum status id_index_find(const struct id_index *index, const struct json_cursor *cursor,
                          const char *what, uint32_t *out, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    TRY(scenario_decode_id(cursor, id, error));
    const struct id_entry *entry = NULL;
    if (index->count > 0) {
        entry = bsearch(id, index->entries, index->count, sizeof *index->entries, compare_key);
    }
    if (entry == NULL) {
        return json_fail(cursor, error, "expected the id of %s, found \"%s\", which there is not",
                         what, id);
    }
    *out = entry->index;
    return STATUS_OK;
}

enum status decode_point(const struct json_cursor *cursor, struct vec2 *out, struct error *error)
{
    size_t count;
    TRY(json_array_begin(cursor, 2, 2, &count, error));
    struct json_cursor x = json_cursor_element(cursor, 0);
    struct json_cursor y = json_cursor_element(cursor, 1);
    TRY(json_value_number(&x, -1e5, 1e5, &out->x_m, error));
    return json_value_number(&y, -1e5, 1e5, &out->y_m, error);
}

enum status decode_list(const struct json_cursor *cursor, uint32_t min, uint32_t max,
                        struct scenario_decoder *decoder, element_decoder decode, size_t bytes,
                        void *list, uint32_t *count)
{
    size_t found;
    if (min == 0 && !json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(cursor, min, max, &found, decoder->error));
    char *elements = decoder_alloc(decoder, cursor, found, bytes);
    if (elements == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(list, &elements, sizeof elements);
    uint32_t before = errors_count(decoder->errors);
    for (size_t i = 0; i < found; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        TRY(errors_keep(decoder->errors, decode(&element, decoder, elements + i * bytes),
                        decoder->error));
    }
    TRY(errors_end(decoder->errors, before, decoder->error));
    *count = (uint32_t)found;
    return STATUS_OK;
}

static enum status decode_point_of(const struct json_cursor *cursor,
                                   struct scenario_decoder *decoder, void *out)
{
    return decode_point(cursor, out, decoder->error);
}

enum status decode_points(const struct json_cursor *cursor, uint32_t min, uint32_t max,
                          struct scenario_decoder *decoder, uint32_t *count, struct vec2 **points)
{
    struct errors *errors = decoder->errors;
    decoder->errors = NULL; /* one mistake of a line stands for all its points */
    enum status status =
        decode_list(cursor, min, max, decoder, decode_point_of, sizeof **points, points, count);
    decoder->errors = errors;
    return status;
}

enum status decode_pose(const struct json_cursor *cursor, struct pose *out, struct error *error)
{
    return members_read(cursor, &pose_members, out, error);
}

static enum status decode_trajectory_point(const struct json_cursor *cursor,
                                           struct trajectory_point *out, struct error *error)
{
    const struct {
        double min, max;
        double *value;
    } columns[] = {{0, 10000, &out->t_s},
                   {-1e5, 1e5, &out->x_m},
                   {-1e5, 1e5, &out->y_m},
                   {-2 * PI_RAD, 2 * PI_RAD, &out->heading_rad},
                   {0, 150, &out->speed_mps}};
    size_t count;
    TRY(json_array_begin(cursor, COUNT_OF(columns), COUNT_OF(columns), &count, error));
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        if (columns[i].value == &out->heading_rad) {
            TRY(json_value_angle(&element, &out->heading_rad, error));
            continue;
        }
        TRY(json_value_number(&element, columns[i].min, columns[i].max, columns[i].value, error));
    }
    return STATUS_OK;
}

enum status decode_trajectory(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              struct trajectory *out)
{
    size_t count;
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(cursor, 2, LIMIT_TRAJECTORY_POINTS, &count, decoder->error));
    struct trajectory_point *points = decoder_alloc(decoder, cursor, count, sizeof *points);
    if (points == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        TRY(decode_trajectory_point(&element, &points[i], decoder->error));
        if (i > 0 && points[i].t_s <= points[i - 1].t_s) {
            struct json_cursor time = json_cursor_element(&element, 0);
            return json_fail(&time, decoder->error, "expected a time after %g s, found %g",
                             points[i - 1].t_s, points[i].t_s);
        }
    }
    *out = (struct trajectory){.point_count = (uint32_t)count, .points = points};
    return STATUS_OK;
}

enum status decode_lane_id(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                           void *out)
{
    return id_index_find(&decoder->lanes, cursor, "a lane", out, decoder->error);
}

enum status decode_route(const struct json_cursor *cursor, uint32_t min,
                         struct scenario_decoder *decoder, uint32_t *count, uint32_t **route)
{
    return !json_cursor_present(cursor) ? STATUS_OK
                                        : decode_list(cursor, min, LIMIT_ROUTE_LANES, decoder,
                                                      decode_lane_id, sizeof **route, route, count);
}
