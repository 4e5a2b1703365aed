/*
 * CommonRoad import: one file to one scenario document per planning problem.
 *
 * Map and obstacles are read once; each problem then gets ego, its agents, route and slices. Every
 * document is loaded before it is handed out, so what import_commonroad() returns always loads.
 */
#include "scenarios/import/commonroad.h"

#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/import.h"
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double REVERSES_MPS = 0.1; /* slower is noise */

enum {
    PROBLEMS_MAX = 256,
    PROBLEM_ID_BASE_BYTES = 40, /* of an id, before a problem's number */
    BENCHMARK_KEPT_BYTES = 16,  /* of a benchmark's id, at least, before a file's stem */
};

/* A BMW 320i, the passenger car of CommonRoad's vehicle models; the format does not say what ego
 * is. */
static const struct ego ego_vehicle = {
    .length_m = 4.508, .width_m = 1.61, .height_m = 1.42, .wheelbase_m = 2.579};

struct import {
    struct cr_context context;
    const struct xml_element *root;
    struct cr_map map;
    struct cr_obstacles obstacles;
    struct cr_notes file_notes;
    char id[LIMIT_ID_BYTES];
    uint32_t problem_count;
};

/* ---- header ---- */

/* The id of the file's scenarios: the benchmark's, and the file's stem where it differs, because
 * public files share benchmark ids. What does not fit loses its benchmark's end and its stem's
 * beginning: copies of one file are told apart at the end of their names. */
static void name_import(struct import *import, const char *benchmark)
{
    const char *slash = strrchr(import->context.name, '/');
    const char *file = slash != NULL ? slash + 1 : import->context.name;
    size_t stem = strlen(file);
    char text[LIMIT_ID_BYTES];
    if (benchmark == NULL || benchmark[0] == '\0') {
        cr_make_id(file, import->id);
        return;
    }
    if (stem > 4 && strcmp(file + stem - 4, ".xml") == 0) {
        stem -= 4;
    }
    if (stem == 0 || (strlen(benchmark) == stem && strncmp(benchmark, file, stem) == 0)) {
        cr_make_id(benchmark, import->id);
        return;
    }
    uint32_t problems = xml_count(import->root, CR_PLANNING_PROBLEM);
    size_t room = problems > 1 ? PROBLEM_ID_BASE_BYTES : LIMIT_ID_BYTES - 1;
    size_t kept = stem < room - BENCHMARK_KEPT_BYTES - 1 ? stem : room - BENCHMARK_KEPT_BYTES - 1;
    snprintf(text, sizeof text, "%.*s-%.*s", (int)(room - kept - 1), benchmark, (int)kept,
             file + stem - kept);
    cr_make_id(text, import->id);
}

static enum status read_header(struct import *import, const char *root_name)
{
    const struct xml_element *root = import->root;
    struct cr_context *context = &import->context;
    if (root->tag != CR_COMMON_ROAD) {
        return error_set(context->error, STATUS_BAD_INPUT,
                         "%s: line %u: expected a root element <commonRoad>, found <%.64s>",
                         context->name, root->line, root_name);
    }
    const char *version = xml_attribute(root, "commonRoadVersion");
    if (version == NULL || (strcmp(version, "2018b") != 0 && strcmp(version, "2020a") != 0)) {
        return cr_fail(context, root, STATUS_BAD_INPUT,
                       "expected commonRoadVersion \"2018b\" or \"2020a\", found %s%.32s%s",
                       version != NULL ? "\"" : "", version != NULL ? version : "none",
                       version != NULL ? "\"" : "");
    }
    context->is_2018b = strcmp(version, "2018b") == 0;
    const char *step = xml_attribute(root, "timeStepSize");
    if (step == NULL || !cr_parse_number(step, &context->dt_s) ||
        !(context->dt_s >= 1e-3 && context->dt_s <= 10)) {
        return cr_fail(context, root, STATUS_BAD_INPUT,
                       "expected a timeStepSize of 0.001 to 10 seconds, found \"%.64s\"",
                       step != NULL ? step : "");
    }
    name_import(import, xml_attribute(root, "benchmarkID"));
    return STATUS_OK;
}

/* ---- ego and time ---- */

/* Reads place, speed (negative: backwards) and time. *start_s: ego's time in the file. */
static enum status read_ego(struct import *import, const struct xml_element *problem,
                            struct ego *ego, double *start_s)
{
    const struct cr_context *context = &import->context;
    const struct xml_element *state;
    struct vec2 at;
    double step = 0;
    double speed = 0;
    TRY(cr_required(context, problem, CR_INITIAL_STATE, &state));
    TRY(cr_position(context, state, &import->map, &at));
    *ego = ego_vehicle;
    ego->pose = (struct pose){at.x_m, at.y_m, NAN};
    TRY(cr_child_heading(context, state, &ego->pose.heading_rad));
    TRY(cr_child_value(context, state, CR_VELOCITY, -CR_SPEED_MAX_MPS, CR_SPEED_MAX_MPS, &speed));
    TRY(cr_child_value(context, state, CR_TIME, 0, 1e7, &step));
    *start_s = step * context->dt_s;
    ego->speed_mps = speed;
    if (!isnan(ego->pose.heading_rad)) {
        return STATUS_OK;
    }
    /* No orientation: that of the lane. */
    double nearest = INFINITY;
    for (uint32_t i = 0; i < import->map.map.lane_count; i++) {
        const struct lane *lane = &import->map.map.lanes[i];
        struct polyline_projection p = polyline_project(lane->centre_line, lane->point_count, at);
        if (p.distance_m < nearest) {
            nearest = p.distance_m;
            ego->pose.heading_rad = p.heading_rad;
        }
    }
    return STATUS_OK;
}

/* The problem is over when the last goal's time is; without one, when the recording is. */
static enum status read_horizon(struct import *import, const struct xml_element *problem,
                                double start_s, uint32_t *ticks)
{
    struct cr_context *context = &import->context;
    double end_s = -1;
    const struct xml_element *goal = xml_child(problem, CR_GOAL_STATE);
    for (; goal != NULL; goal = xml_next(goal)) {
        const struct xml_element *time = xml_child(goal, CR_TIME);
        double step;
        if (time != NULL) {
            TRY(cr_value_end(context, time, 0, 1e7, &step));
            end_s = dmath_max(end_s, step * context->dt_s);
        }
    }
    if (end_s <= start_s) {
        end_s = import->obstacles.end_s;
    }
    double exact = (end_s - start_s) / TICK_S;
    double whole = ceil(exact - 1e-6);
    if (!(whole >= 1)) {
        return cr_fail(context, problem, STATUS_BAD_INPUT,
                       "expected a goal time or a trajectory after the start at %g s, found none",
                       start_s);
    }
    if (whole > LIMIT_HORIZON_TICKS) {
        whole = LIMIT_HORIZON_TICKS;
        cr_note(context, CR_NOTE_HORIZON_CUT);
    }
    *ticks = (uint32_t)whole;
    return STATUS_OK;
}

/* ---- documents ---- */

static void set_id(const struct import *import, const struct xml_element *problem,
                   struct scenario *scenario)
{
    char number[LIMIT_ID_BYTES];
    const char *id = xml_attribute(problem, "id");
    if (import->problem_count == 1) {
        memcpy(scenario->id, import->id, sizeof scenario->id);
        return;
    }
    cr_make_id(id != NULL ? id : "", number);
    snprintf(scenario->id, sizeof scenario->id, "%.*s-pp%.18s", PROBLEM_ID_BASE_BYTES, import->id,
             number);
}

/* Lanes are shared with the other problems; a lane's kind may change for ego, so they are copied.
 */
static enum status copy_lanes(struct import *import, struct map *out)
{
    *out = import->map.map;
    out->lanes = cr_alloc(&import->context, out->lane_count, sizeof *out->lanes);
    if (out->lanes == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(out->lanes, import->map.map.lanes, out->lane_count * sizeof *out->lanes);
    return STATUS_OK;
}

static enum status make_scenario(struct import *import, const struct xml_element *problem,
                                 struct scenario *scenario)
{
    struct cr_context *context = &import->context;
    double start_s;
    context->notes = import->file_notes;
    *scenario = (struct scenario){.question = QUESTION_REGRESSION, .criteria = criteria_default()};
    set_id(import, problem, scenario);
    snprintf(scenario->title, sizeof scenario->title, "CommonRoad %s", scenario->id);
    TRY(copy_lanes(import, &scenario->map));
    TRY(read_ego(import, problem, &scenario->ego, &start_s));
    if (scenario->ego.speed_mps < -REVERSES_MPS) {
        snprintf(scenario->invalid, sizeof scenario->invalid,
                 "ego starts backwards at %.1f m/s, and has no reverse gear",
                 -scenario->ego.speed_mps);
    }
    scenario->ego.speed_mps = dmath_max(scenario->ego.speed_mps, 0);
    TRY(cr_signals_read(context, import->root, &import->map, start_s, &scenario->map));
    TRY(read_horizon(import, problem, start_s, &scenario->horizon_ticks));
    TRY(cr_route_find(context, problem, &import->map, start_s, scenario));
    TRY(cr_agents_make(context, &import->obstacles, start_s, scenario));
    TRY(cr_start_resolve(context, scenario));
    if (scenario->criteria.reach_goal && scenario->invalid[0] == '\0' &&
        goal_holds_at_start(&scenario->ego)) {
        snprintf(scenario->invalid, sizeof scenario->invalid,
                 "ego starts in its goal, which asks nothing of a planner");
    }
    cr_tags_read(import->root, &import->map, scenario);
    cr_source_write(context, scenario->source);
    return STATUS_OK;
}

static enum status make_documents(struct import *import, char **texts)
{
    const struct xml_element *problem = xml_child(import->root, CR_PLANNING_PROBLEM);
    for (uint32_t i = 0; i < import->problem_count; i++, problem = xml_next(problem)) {
        struct scenario scenario;
        TRY(make_scenario(import, problem, &scenario));
        TRY(scenario_write_text(import->context.name, &scenario, &texts[i], import->context.error));
    }
    return STATUS_OK;
}

static enum status read_file(struct import *import, const char *xml, size_t bytes)
{
    struct cr_context *context = &import->context;
    struct xml_document document = {0};
    TRY(xml_parse(context->name, xml, bytes, cr_tag_names, CR_TAG_COUNT, context->arena, &document,
                  context->error));
    import->root = document.root;
    TRY(read_header(import, document.root_name));
    import->problem_count = xml_count(import->root, CR_PLANNING_PROBLEM);
    if (import->problem_count == 0) {
        return cr_fail(context, import->root, STATUS_BAD_INPUT,
                       "expected at least one <planningProblem>, which says where ego starts, "
                       "found none");
    }
    if (import->problem_count > PROBLEMS_MAX) {
        return cr_fail(context, import->root, STATUS_LIMIT,
                       "expected at most %d <planningProblem>, found %u", PROBLEMS_MAX,
                       import->problem_count);
    }
    TRY(cr_map_read(context, import->root, &import->map));
    TRY(cr_obstacles_read(context, import->root, &import->map, &import->obstacles));
    import->file_notes = context->notes;
    return STATUS_OK;
}

enum status import_commonroad(const char *name, const char *xml, size_t bytes, char ***texts,
                              size_t *count, struct error *error)
{
    struct error local = {0};
    struct arena arena;
    struct import import = {.context = {.name = name, .error = error != NULL ? error : &local}};
    char **made = NULL;
    if (bytes > LIMIT_XML_BYTES) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %d bytes, found %zu", name,
                         LIMIT_XML_BYTES, bytes);
    }
    arena_init(&arena, CR_ARENA_BYTES);
    import.context.arena = &arena;
    enum status status = read_file(&import, xml, bytes);
    if (status == STATUS_OK) {
        made = calloc(import.problem_count, sizeof *made);
        status = made != NULL ? make_documents(&import, made)
                              : error_set(error, STATUS_NO_MEMORY, "%s: out of memory", name);
    }
    if (status == STATUS_OK) {
        *texts = made;
        *count = import.problem_count;
    } else {
        for (uint32_t i = 0; made != NULL && i < import.problem_count; i++) {
            free(made[i]);
        }
        free(made);
    }
    arena_finish(&arena);
    return status;
}
