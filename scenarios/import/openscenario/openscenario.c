/*
 * OpenSCENARIO import: a file, or each point of a distribution, to one scenario document.
 *
 * The network becomes the map, cut to where anybody drives; entities become agents whose behaviour
 * is the storyboard; the chosen one becomes ego. Every document is loaded before it is handed out,
 * so what import_openscenario() returns always loads.
 */
#include "scenarios/import/openscenario/openscenario.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"
#include "scenarios/import/openscenario/osc_internal.h"
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"
#include "schemas/scenario_id.h"
#include "schemas/storyboard/storyboard_paths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HORIZON_DEFAULT_S 30.0
#define MARGIN_M 150.0
#define APRON_M 300.0 /* half the side of the drivable area where a file has no road */

enum { NOTES_BYTES = 16 << 10, LEFT_OUT_BYTES = 40 };

/* ---- end ---- */

/* The file's own end where it is a time, else 30 s. */
static enum status read_horizon(struct osc_context *context)
{
    const struct osc_element *storyboard = osc_child(context->root, "Storyboard");
    const struct osc_element *stop =
        storyboard != NULL ? osc_child(storyboard, "StopTrigger") : NULL;
    double end_s = NAN;
    context->horizon_s = context->options->horizon_s;
    const struct osc_element *group = stop != NULL ? osc_child(stop, "ConditionGroup") : NULL;
    for (; group != NULL; group = osc_next(group)) {
        const struct osc_element *condition = osc_child(group, "Condition");
        const struct osc_element *by =
            condition != NULL ? osc_child(condition, "ByValueCondition") : NULL;
        const struct osc_element *time =
            by != NULL ? osc_child(by, "SimulationTimeCondition") : NULL;
        if (time != NULL && osc_next(condition) == NULL) {
            double value = NAN;
            TRY(osc_number(context, time, "value", true, -1e5, 1e9, &value));
            end_s = isnan(end_s) || value < end_s ? value : end_s;
        } else {
            osc_note(context, group,
                     "what stops the storyboard beside a time does not end the "
                     "scenario");
        }
    }
    if (!isnan(context->horizon_s)) {
        return STATUS_OK;
    }
    end_s = end_s > 0 ? end_s : HORIZON_DEFAULT_S;
    double longest_s = LIMIT_HORIZON_TICKS / 10.0;
    if (end_s > longest_s) {
        osc_note(context, storyboard, "the scenario ends after 10 minutes");
    }
    context->horizon_s = dmath_clamp(ceil(end_s * 10 - 1e-6) / 10, 0.1, longest_s);
    return STATUS_OK;
}

/* ---- map and ego ---- */

/* Roads that the points of a distribution share, as long as they name the same file. */
struct osc_roads {
    char path[LIMIT_PATH_BYTES];
    struct opendrive_network *network; /* owned; NULL: none so far */
    struct osc_tracks *tracks;         /* owned */
    struct story_paths *paths;         /* written before; owned */
    struct arena arena;                /* of the map */
    bool is_cut;
    struct opendrive_cut cut; /* that the map is made for */
    struct opendrive_map map;
    json_t *written; /* owned; NULL: in no document so far */
};

static void map_drop(struct osc_roads *roads)
{
    arena_finish(&roads->arena);
    json_decref(roads->written);
    roads->written = NULL;
    roads->is_cut = false;
    arena_init(&roads->arena, OSC_ARENA_BYTES);
}

static void roads_drop(struct osc_roads *roads)
{
    opendrive_destroy(roads->network);
    roads->network = NULL;
    osc_tracks_clear(roads->tracks);
    map_drop(roads);
}

/* Grown by the paths that actors start on, as far as they may get. */
static struct opendrive_cut area_of(const struct osc_context *context)
{
    struct opendrive_cut cut = {.low = {INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY}};
    for (uint32_t i = 0; i < context->entity_count; i++) {
        const struct osc_entity *entity = &context->entities[i];
        const struct story_path *path = &context->board.paths[entity->path.index];
        for (uint32_t k = 0; k < path->point_count && entity->placed; k++) {
            double x_m = path->points[k].x_m;
            double y_m = path->points[k].y_m;
            cut.low.x_m = dmath_min(cut.low.x_m, x_m);
            cut.low.y_m = dmath_min(cut.low.y_m, y_m);
            cut.high.x_m = dmath_max(cut.high.x_m, x_m);
            cut.high.y_m = dmath_max(cut.high.y_m, y_m);
        }
    }
    cut.low.x_m -= MARGIN_M;
    cut.low.y_m -= MARGIN_M;
    cut.high.x_m += MARGIN_M;
    cut.high.y_m += MARGIN_M;
    return cut;
}

/* Without a road: a lane ahead of ego on open ground. */
static enum status open_ground(struct osc_context *context, struct scenario *scenario)
{
    const struct osc_entity *ego = context->ego;
    struct map *map = &scenario->map;
    struct lane *lane = osc_alloc(context, 1, sizeof *lane);
    struct polygon *area = osc_alloc(context, 1, sizeof *area);
    struct vec2 *points = osc_alloc(context, 6, sizeof *points);
    double *widths = osc_alloc(context, 2, sizeof *widths);
    double s;
    double c;
    if (lane == NULL || area == NULL || points == NULL || widths == NULL) {
        return STATUS_LIMIT;
    }
    dmath_sincos(ego->pose.heading_rad, &s, &c);
    double x_m = ego->pose.x_m;
    double y_m = ego->pose.y_m;
    points[0] = (struct vec2){x_m - 20 * c, y_m - 20 * s};
    points[1] = (struct vec2){x_m + APRON_M * c, y_m + APRON_M * s};
    points[2] = (struct vec2){x_m - APRON_M, y_m - APRON_M};
    points[3] = (struct vec2){x_m + APRON_M, y_m - APRON_M};
    points[4] = (struct vec2){x_m + APRON_M, y_m + APRON_M};
    points[5] = (struct vec2){x_m - APRON_M, y_m + APRON_M};
    widths[0] = widths[1] = 3.5;
    *lane = (struct lane){.id = "ground",
                          .point_count = 2,
                          .centre_line = points,
                          .width_m = widths,
                          .left = -1,
                          .right = -1};
    *area = (struct polygon){.point_count = 4, .points = points + 2};
    map->lane_count = 1;
    map->lanes = lane;
    map->drivable_count = 1;
    map->drivable = area;
    osc_note(context, context->root, "the file has no road: ego drives on open ground");
    return STATUS_OK;
}

static enum status cut_roads(struct osc_context *context)
{
    struct osc_roads *roads = context->roads;
    struct opendrive_cut cut = area_of(context);
    if (roads->is_cut && opendrive_cut_same(context->network, &roads->cut, &cut)) {
        return STATUS_OK;
    }
    map_drop(roads);
    roads->cut = cut;
    enum status status =
        opendrive_map_make(context->network, &cut, &roads->arena, &roads->map, context->error);
    roads->is_cut = status == STATUS_OK;
    return status;
}

/* Tells what was left out or repaired in the roads. */
static enum status note_roads(struct osc_context *context)
{
    const struct osc_element *network = osc_child(context->root, "RoadNetwork");
    char list[LIMIT_TEXT_BYTES];
    char text[LIMIT_TEXT_BYTES + 16];
    opendrive_notes_write(context->roads->map.notes, list, sizeof list);
    snprintf(text, sizeof text, "roads: %s", list);
    const char *copy = arena_copy_text(context->arena, text, strlen(text));
    if (copy == NULL) {
        return STATUS_LIMIT;
    }
    if (list[0] != '\0') {
        osc_note(context, osc_child(network, "LogicFile"), copy);
    }
    return STATUS_OK;
}

static enum status make_map(struct osc_context *context, struct scenario *scenario)
{
    if (context->network == NULL) {
        return open_ground(context, scenario);
    }
    TRY(cut_roads(context));
    TRY(note_roads(context));
    const struct opendrive_map *map = &context->roads->map;
    if (map->map.lane_count == 0) {
        return open_ground(context, scenario);
    }
    scenario->map = map->map;
    TRY(osc_ego_route(context, map, &scenario->ego));
    TRY(osc_ego_in_lane(&scenario->map, &scenario->ego)
            ? STATUS_OK
            : osc_ego_own_lane(context, &scenario->map, &scenario->ego));
    return osc_ego_note_end(context);
}

/* Behind the end of ego's lanes no goal is reached. */
static enum status check_goal(struct osc_context *context)
{
    const struct osc_path *path = &context->ego->path;
    const struct story_path *way = &context->board.paths[path->index];
    double left_m = way->points[way->point_count - 1].s_m - path->start_s_m;
    return path->lane_count == 0 || context->options->goal_m <= left_m
               ? STATUS_OK
               : osc_fail(context, context->ego->element,
                          "expected a --goal of at most %.0f m, so far ego's lanes lead, found %g",
                          floor(left_m), context->options->goal_m);
}

static enum status make_ego(struct osc_context *context, struct scenario *scenario)
{
    const struct osc_entity *entity = context->ego;
    struct ego *ego = &scenario->ego;
    double s;
    double c;
    dmath_sincos(entity->pose.heading_rad, &s, &c);
    *ego = (struct ego){
        .pose = {entity->pose.x_m + entity->centre_x_m * c,
                 entity->pose.y_m + entity->centre_x_m * s, entity->pose.heading_rad},
        .speed_mps = dmath_max(entity->speed_mps, 0),
        .length_m = entity->length_m,
        .width_m = entity->width_m,
        .height_m = entity->height_m,
        .wheelbase_m = dmath_clamp(entity->wheelbase_m, 0.5, entity->length_m),
        .dynamics = entity->single_track ? DYNAMICS_SINGLE_TRACK : DYNAMICS_KINEMATIC,
    };
    ego->goal_bounds = (struct goal_bounds){NAN, NAN, NAN, NAN, NAN, NAN};
    if (entity->speed_mps < 0) {
        return osc_fail(context, entity->element, "expected ego to start forwards, found %g m/s",
                        entity->speed_mps);
    }
    if (!isnan(context->options->goal_m)) {
        TRY(check_goal(context));
        struct pose goal = osc_path_pose(&context->board, entity->path.index,
                                         entity->path.start_s_m + context->options->goal_m);
        ego->has_goal = true;
        ego->goal = (struct vec2){goal.x_m, goal.y_m};
        ego->goal_radius_m = 5;
        scenario->criteria.reach_goal = true;
    }
    return STATUS_OK;
}

/* ---- agents ---- */

static bool id_taken(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        if (strcmp(scenario->agents[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Middle of a part of an entity's box, ahead of its reference point. */
static double part_middle_m(const struct osc_entity *entity, uint32_t part)
{
    return entity->centre_x_m + ((part + 0.5) / entity->parts - 0.5) * entity->length_m;
}

/* Boxes that stand for one that is too long are of no actor but for one: who is made of several
 * stands still, and nothing asks how near its box is. */
static enum status check_parts(struct osc_context *context, const struct osc_entity *entity)
{
    const struct storyboard *board = &context->board;
    int32_t self = (int32_t)entity->actor;
    bool fits = entity->speed_mps == 0;
    for (uint32_t i = 0; i < board->action_count; i++) {
        const struct story_action *action = &board->actions[i];
        fits = fits && action->actor != self && !(action->other == self && action->freespace);
    }
    for (uint32_t i = 0; i < board->condition_count; i++) {
        const struct story_condition *at = &board->conditions[i];
        bool about = at->actor == self || at->other == self;
        fits = fits && !(at->kind == STORY_COLLISION && (about || at->type == STORY_MISC)) &&
               !(about && (at->freespace || at->kind == STORY_CLEARANCE));
    }
    if (!fits) {
        return osc_fail(context, entity->element,
                        "expected a box of at most 50 m of an object that moves, or whose box is "
                        "asked for, found %g m",
                        entity->length_m);
    }
    return osc_note_made(context, entity->element,
                         "the box of \"%.60s\" is %u boxes, one behind the other: it is too long "
                         "for one",
                         entity->name, entity->parts);
}

/* Adds the agent of one part; the part next to the reference point is the actor's. */
static enum status add_agent(struct osc_context *context, const struct osc_entity *entity,
                             uint32_t part, bool moved, struct scenario *scenario)
{
    struct story_actor *actor = &context->board.actors[entity->actor];
    double middle_m = part_middle_m(entity, part);
    double s;
    double c;
    if (scenario->agent_count == LIMIT_AGENTS) {
        return osc_fail(context, entity->element, "expected at most %d boxes, found more",
                        LIMIT_AGENTS);
    }
    struct agent *agent = &scenario->agents[scenario->agent_count];
    dmath_sincos(entity->pose.heading_rad, &s, &c);
    *agent = (struct agent){
        .kind = entity->kind,
        .length_m = entity->length_m / entity->parts,
        .width_m = entity->width_m,
        .height_m = entity->height_m,
        .pose = {entity->pose.x_m + middle_m * c, entity->pose.y_m + middle_m * s,
                 entity->pose.heading_rad},
        .speed_mps = dmath_max(entity->speed_mps, 0),
        .hidden = !entity->present,
        .behaviour = moved ? BEHAVIOUR_STORYBOARD : BEHAVIOUR_STATIC,
    };
    char id[LIMIT_ID_BYTES];
    scenario_id_make(entity->name, "", id);
    memcpy(agent->id, id, sizeof id);
    for (int number = 2; id_taken(scenario, agent->id); number++) {
        snprintf(agent->id, sizeof agent->id, "%.50s-%d", id, number);
    }
    if (moved) {
        actor->agent = (int32_t)scenario->agent_count;
        actor->reference_m = middle_m;
    }
    scenario->agent_count++;
    return !moved || strcmp(agent->id, entity->name) == 0
               ? STATUS_OK
               : osc_note_made(context, entity->element, "entity \"%.60s\" is agent \"%s\"",
                               entity->name, agent->id);
}

static enum status make_agents(struct osc_context *context, struct scenario *scenario)
{
    scenario->agents = osc_alloc(context, LIMIT_AGENTS, sizeof *scenario->agents);
    if (scenario->agents == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < context->entity_count; i++) {
        const struct osc_entity *entity = &context->entities[i];
        uint32_t own = 0;
        if (entity->is_ego) {
            continue;
        }
        for (uint32_t k = 1; k < entity->parts; k++) {
            double nearest_m = fabs(part_middle_m(entity, own));
            own = fabs(part_middle_m(entity, k)) < nearest_m ? k : own;
        }
        TRY(entity->parts > 1 ? check_parts(context, entity) : STATUS_OK);
        TRY(add_agent(context, entity, own, true, scenario));
        for (uint32_t k = 0; k < entity->parts; k++) {
            TRY(k != own ? add_agent(context, entity, k, false, scenario) : STATUS_OK);
        }
    }
    return STATUS_OK;
}

/* Boxes that overlap ego at the start would be refused: what stands in it is not there. */
static enum status clear_ego(struct osc_context *context, struct scenario *scenario)
{
    const struct ego *ego = &scenario->ego;
    struct box own = box_make(ego->pose, ego->length_m, ego->width_m);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        struct agent *agent = &scenario->agents[i];
        struct box box = box_make(agent->pose, agent->length_m, agent->width_m);
        if (!agent->hidden && box_overlap(&own, &box)) {
            agent->hidden = true;
            TRY(osc_note_made(context, context->ego->element,
                              "agent \"%s\" overlaps ego at the start: it is not there",
                              agent->id));
        }
    }
    return STATUS_OK;
}

/* ---- documents ---- */

/* Import of a file: what its scenarios have alike. */
struct osc_import {
    const struct osc_options *options;
    struct osc_roads *roads;
    import_take *take;
    void *taker;
    char *notes; /* [NOTES_BYTES] */
};

static void name_scenario(const struct osc_context *context, const char *suffix,
                          struct scenario *scenario)
{
    const char *slash = strrchr(context->path, '/');
    const char *base = slash != NULL ? slash + 1 : context->path;
    char stem[LIMIT_ID_BYTES];
    size_t bytes = strlen(base);
    bytes -= bytes > 5 && strcmp(base + bytes - 5, ".xosc") == 0 ? 5 : 0;
    char text[LIMIT_PATH_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)(bytes < 200 ? bytes : 200), base);
    scenario_id_make(text, "", stem);
    size_t room = LIMIT_ID_BYTES - 1 - strlen(suffix);
    snprintf(scenario->id, sizeof scenario->id, "%.*s%s", (int)room, stem, suffix);
    char shown[201]; /* names of files may hold any bytes, documents are UTF-8 */
    text_escape(base, TEXT_LINE, shown, sizeof shown);
    snprintf(scenario->title, sizeof scenario->title, "OpenSCENARIO %s", shown);
    snprintf(scenario->source, sizeof scenario->source, "%s", shown);
}

static enum status make_scenario(struct osc_context *context, const char *suffix,
                                 struct scenario *scenario)
{
    *scenario = (struct scenario){.question = QUESTION_PLANNING, .criteria = criteria_default()};
    name_scenario(context, suffix, scenario);
    scenario->conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    snprintf(scenario->slices.value[SLICE_WEATHER], LIMIT_ID_BYTES, "clear");
    snprintf(scenario->slices.value[SLICE_LIGHT], LIMIT_ID_BYTES, "day");
    for (int i = SLICE_ROAD; i < SLICE_KIND_COUNT; i++) {
        snprintf(scenario->slices.value[i], LIMIT_ID_BYTES, "unspecified");
    }
    snprintf(scenario->slices.value[SLICE_SCENARIO_TYPE], LIMIT_ID_BYTES, "openscenario");
    scenario->criteria.no_collision = true;
    scenario->horizon_ticks = (uint32_t)floor(context->horizon_s * 10 + 0.5);
    TRY(make_agents(context, scenario));
    snprintf(scenario->slices.value[SLICE_ACTOR], LIMIT_ID_BYTES, "%s", osc_actor_slice(scenario));
    TRY(osc_ego_fit_bend(context));
    TRY(make_ego(context, scenario));
    TRY(clear_ego(context, scenario));
    TRY(make_map(context, scenario));
    scenario->storyboard = &context->board;
    return STATUS_OK;
}

static enum status alloc_board(struct osc_context *context)
{
    struct storyboard *board = &context->board;
    board->paths = osc_alloc(context, LIMIT_STORY_PATHS, sizeof *board->paths);
    board->actors = osc_alloc(context, LIMIT_STORY_ACTORS, sizeof *board->actors);
    board->conditions = osc_alloc(context, LIMIT_STORY_CONDITIONS, sizeof *board->conditions);
    board->actions = osc_alloc(context, LIMIT_STORY_ACTIONS, sizeof *board->actions);
    board->events = osc_alloc(context, LIMIT_STORY_EVENTS, sizeof *board->events);
    return board->paths != NULL && board->actors != NULL && board->conditions != NULL &&
                   board->actions != NULL && board->events != NULL
               ? STATUS_OK
               : STATUS_LIMIT;
}

static enum status load_network(struct osc_context *context)
{
    const struct osc_element *network = osc_child(context->root, "RoadNetwork");
    const struct osc_element *file = network != NULL ? osc_child(network, "LogicFile") : NULL;
    const char *relative = file != NULL ? osc_attribute(file, "filepath") : NULL;
    char path[LIMIT_PATH_BYTES];
    if (relative == NULL || relative[0] == '\0') {
        return STATUS_OK;
    }
    const char *name = relative + strlen(relative);
    while (name > relative && name[-1] != '/' && name[-1] != '\\') {
        name--;
    }
    /* CARLA's scenarios name a town. */
    osc_find_path(context, relative, strchr(name, '.') == NULL ? ".xodr" : "", path);
    struct osc_roads *roads = context->roads;
    if (roads->network == NULL || strcmp(roads->path, path) != 0) {
        roads_drop(roads);
        if (opendrive_load_file(path, &roads->network, context->error) != STATUS_OK) {
            error_prefix(context->error, "%s: line %u: <LogicFile>", file->file, file->line);
            return STATUS_BAD_INPUT;
        }
        memcpy(roads->path, path, sizeof path);
    }
    context->network = roads->network;
    struct vec2 origin = roads->network->origin;
    return origin.x_m == 0 && origin.y_m == 0
               ? STATUS_OK
               : osc_note_made(context, file,
                               "the roads begin far from zero: (%.0f, %.0f) m are subtracted from "
                               "their coordinates and from those of the file",
                               origin.x_m, origin.y_m);
}

static void write_notes(const struct osc_context *context, char *out)
{
    size_t used = strlen(out);
    uint32_t left_out = context->notes_left_out;
    for (uint32_t i = 0; i < context->note_count; i++) {
        const struct osc_note *note = &context->notes[i];
        char line[LIMIT_PATH_BYTES + 256];
        char times[32] = "";
        if (note->count > 1) {
            snprintf(times, sizeof times, " (%u times)", note->count);
        }
        snprintf(line, sizeof line, "%s: line %u: %s%s\n", note->file, note->line, note->text,
                 times);
        if (strstr(out, line) != NULL) {
            continue;
        }
        if (strlen(line) + LEFT_OUT_BYTES > NOTES_BYTES - used) {
            left_out++;
            continue;
        }
        used += (size_t)snprintf(out + used, NOTES_BYTES - used, "%s", line);
    }
    if (left_out > 0 && used + LEFT_OUT_BYTES <= NOTES_BYTES) {
        snprintf(out + used, LEFT_OUT_BYTES, "and %u further notes\n", left_out);
    }
}

/* The scenario as a document; the map is the roads' but where ego has a lane of its own. */
static enum status hand_out(struct osc_context *context, const struct scenario *scenario,
                            const struct osc_import *import)
{
    struct osc_roads *roads = context->roads;
    bool shared = roads->is_cut && scenario->map.lanes == roads->map.map.lanes;
    json_t *own = NULL;
    json_t *document;
    enum status status =
        scenario_write_json(context->path, scenario, shared ? &roads->written : &own, roads->paths,
                            &document, context->error);
    json_decref(own);
    TRY(status);
    return import->take(import->taker, document, context->error);
}

/* One scenario with some parameters set. */
static enum status import_one(const struct osc_import *import, const char *path,
                              const struct osc_parameter *overrides, uint32_t override_count,
                              const char *suffix, struct error *error)
{
    struct arena arena;
    struct osc_context *context = calloc(1, sizeof *context);
    struct scenario scenario;
    TRY(memory_check(context, error, "%s: out of memory", path));
    arena_init(&arena, OSC_ARENA_BYTES);
    context->arena = &arena;
    context->error = error;
    context->path = path;
    context->options = import->options;
    context->roads = import->roads;
    context->tracks = import->roads->tracks;
    enum status status = osc_document_load(context, overrides, override_count);
    THEN(status, alloc_board(context));
    THEN(status, read_horizon(context));
    THEN(status, load_network(context));
    THEN(status, osc_entities_read(context));
    THEN(status, osc_init_read(context));
    THEN(status, osc_story_read(context));
    THEN(status, make_scenario(context, suffix, &scenario));
    THEN(status, hand_out(context, &scenario, import));
    if (status == STATUS_OK) {
        write_notes(context, import->notes);
    }
    arena_finish(&arena);
    free(context);
    return status;
}

/* Which point of the grid an index is: the last axis varies fastest. */
static enum status import_point(const struct osc_import *import, const struct osc_grid *grid,
                                const char *stem, uint64_t index, struct error *error)
{
    struct osc_parameter *overrides = calloc(OSC_PARAMETERS_MAX, sizeof *overrides);
    char suffix[LIMIT_ID_BYTES];
    uint32_t count = 0;
    uint64_t left = index;
    TRY(memory_check(overrides, error, "%s: out of memory", grid->scenario_path));
    for (uint32_t i = grid->axis_count; i-- > 0;) {
        const struct osc_axis *axis = &grid->axes[i];
        const struct osc_row *row = &axis->rows[left % axis->row_count];
        left /= axis->row_count;
        if (row->count > OSC_PARAMETERS_MAX - count) {
            free(overrides);
            return error_set(error, STATUS_LIMIT,
                             "%s: expected a distribution of at most %d parameters, found more",
                             grid->scenario_path, OSC_PARAMETERS_MAX);
        }
        for (uint32_t k = 0; k < row->count; k++) {
            overrides[count++] = row->items[k];
        }
    }
    snprintf(suffix, sizeof suffix, "/%.30s=%llu", stem, (unsigned long long)index + 1);
    enum status status = import_one(import, grid->scenario_path, overrides, count, suffix, error);
    free(overrides);
    return status == STATUS_OK
               ? status
               : error_prefix(error, "combination %llu of %llu", (unsigned long long)index + 1,
                              (unsigned long long)grid->count);
}

/* The distribution of a file, if it is one; *grid->axes is NULL else. */
static enum status read_grid(struct osc_context *context, struct osc_grid *grid)
{
    TRY(osc_document_load(context, NULL, 0));
    const struct osc_element *distribution = osc_child(context->root, "ParameterValueDistribution");
    return distribution != NULL ? osc_grid_read(context, distribution, grid) : STATUS_OK;
}

/* The point that is taken of the part-th of `parts` stretches of a grid, the same each time; drawn,
 * because every so many points the last axes would have the same values. */
static uint64_t point_of_part(uint64_t points, uint64_t parts, uint64_t part)
{
    uint64_t first = points * part / parts;
    uint64_t next = points * (part + 1) / parts;
    return first + rng_mix(part) % (next - first);
}

/* A scenario, or one for each point of the grid, or of each part of it. */
static enum status import_points(const struct osc_import *import, const char *path,
                                 const struct osc_grid *grid, struct error *error)
{
    const char *slash = strrchr(path, '/');
    char stem[LIMIT_ID_BYTES];
    if (grid->axes == NULL) {
        return import_one(import, path, NULL, 0, "", error);
    }
    scenario_id_make(slash != NULL ? slash + 1 : path, "", stem);
    uint64_t some = import->options->combinations;
    uint64_t taken = some != 0 && some < grid->count ? some : grid->count;
    for (uint64_t i = 0; i < taken; i++) {
        TRY(import_point(import, grid, stem, point_of_part(grid->count, taken, i), error));
    }
    return STATUS_OK;
}

enum status import_openscenario(const char *path, const struct osc_options *options,
                                import_take *take, void *taker, char **notes, struct error *error)
{
    struct arena arena;
    struct osc_grid grid = {0};
    struct osc_roads roads = {
        .path = "", .tracks = osc_tracks_create(), .paths = story_paths_create(false)};
    struct error local = {0};
    error = error != NULL ? error : &local;
    struct osc_context *context = calloc(1, sizeof *context);
    char *lines = calloc(1, NOTES_BYTES);
    arena_init(&arena, OSC_ARENA_BYTES);
    arena_init(&roads.arena, OSC_ARENA_BYTES);
    enum status status =
        context == NULL || lines == NULL || roads.tracks == NULL || roads.paths == NULL
            ? error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path)
            : STATUS_OK;
    if (status == STATUS_OK) {
        *context =
            (struct osc_context){.arena = &arena, .error = error, .path = path, .options = options};
        status = read_grid(context, &grid);
    }
    const struct osc_import import = {options, &roads, take, taker, lines};
    THEN(status, import_points(&import, path, &grid, error));
    if (status == STATUS_OK) {
        *notes = lines;
    } else {
        free(lines);
    }
    roads_drop(&roads);
    free(roads.tracks);
    story_paths_unref(roads.paths);
    arena_finish(&roads.arena);
    arena_finish(&arena);
    free(context);
    return status;
}
