/*
 * OpenDRIVE: a network to a scenario in which ego drives alone.
 *
 *   network -> ego's way (from, to) -> the part of the network near it -> scenario document
 *
 * Coordinates stay those of the file unless they are too far from zero for the worlds; then whole
 * metres are subtracted. The document is loaded before it is handed out.
 */
#include "base/dmath.h"
#include "base/text.h"
#include "base/units.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/import/opendrive/opendrive_internal.h"
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAY_LANES_MAX = 4096 };

static const double BEND_GRIP_SHARE = 0.5; /* friction_use of worker/METRICS.md */
static const double START_M = 5.0;         /* from where a lane begins to ego's centre */
static const double AHEAD_M = 500.0;       /* of lanes that are followed where no goal is given */
static const double GOAL_SHARE = 0.6;      /* of them up to the goal */
static const double BEYOND_M = 250.0;  /* of lanes that are followed beyond a goal that is given */
static const double CLEARANCE_M = 5.0; /* from ego's centre to where lanes end */
static const double GOAL_RADIUS_M = 5.0;
static const double SPEED_MPS = 13.89; /* where nothing is posted */
static const double WIDTH_MIN_M = 1.5; /* of a lane that ego is put on */
static const double WAY_MIN_M = 2.0;
static const double WAY_STEP_M = 5.0;
static const double RETURN_M = 30.0;     /* nearer to its start a way is closed */
static const double BEND_MIN_M = 1.0;    /* places nearer to each other say nothing of a bend */
static const double AVERAGE_SHARE = 0.6; /* of the speed, for the horizon */
static const double SETTLE_S = 10.0;

/* Ego's way: where it begins and ends, and what it comes past. */
struct way {
    uint32_t from_lane;
    double from_s_m;
    uint32_t to_lane;
    double to_s_m;
    double length_m;    /* to the goal */
    double ahead_m;     /* to where the lanes end, or further than ego comes */
    double limit_mps;   /* the highest on it */
    double bend2_m2ps2; /* square of the speed at which its bends can still be slowed down for */
    double hold2_m2ps2; /* .. and at which the surface still holds in them */
    double bend_m;      /* how far along it the last place is that bends were looked at .. */
    double bend_rad;    /* .. and its heading */
    bool junction;
    struct vec2 low;
    struct vec2 high;
};

struct importer {
    const struct opendrive_network *network;
    const struct opendrive_options *options;
    struct arena *arena;
    struct error *error;
    struct way way;
    struct opendrive_map map;
};

/* ---- addresses ---- */

static enum status refuse(const struct importer *importer, const char *option,
                          const struct opendrive_address *address, const char *expected)
{
    return error_set(importer->error, STATUS_BAD_INPUT, "%s: %s %s,%d,%g: expected %s",
                     importer->network->name, option, address->road, address->lane_id, address->s_m,
                     expected);
}

static enum status find_address(const struct importer *importer, const char *option,
                                const struct opendrive_address *address, uint32_t *lane)
{
    const struct opendrive_network *network = importer->network;
    char expected[128];
    uint32_t road = opendrive_road_find(network, address->road);
    if (road == OPENDRIVE_NONE) {
        snprintf(expected, sizeof expected, "one of the file's %u roads, the first is \"%.40s\"",
                 network->road_count, network->roads[0].id);
        return refuse(importer, option, address, expected);
    }
    if (!(address->s_m >= 0 && address->s_m <= network->roads[road].length_m)) {
        snprintf(expected, sizeof expected, "a place within the road's %g m",
                 network->roads[road].length_m);
        return refuse(importer, option, address, expected);
    }
    uint32_t found = opendrive_lane_find(network, road, address->s_m, address->lane_id);
    if (found == OPENDRIVE_NONE) {
        const struct opendrive_section *section =
            &network->sections[opendrive_section_at(network, road, address->s_m)];
        snprintf(expected, sizeof expected, "a lane that is there: %u to the left, %u to the right",
                 section->left_count, section->right_count);
        return refuse(importer, option, address, expected);
    }
    if (network->lanes[found].type != OPENDRIVE_LANE_DRIVING) {
        snprintf(expected, sizeof expected, "a lane to drive on, found one of type \"%.40s\"",
                 network->lanes[found].type_name);
        return refuse(importer, option, address, expected);
    }
    *lane = found;
    return STATUS_OK;
}

/* Point where traffic enters the lane: its s, and +1 or -1 for the way on. */
static double entry_s_m(const struct opendrive_network *network, uint32_t lane, double *way)
{
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    *way = network->lanes[lane].against ? -1 : 1;
    return network->lanes[lane].against ? section->end_m : section->s_m;
}

/* The longest driving lane outside junctions that leads on, or the longest there is. */
static enum status choose_start(struct importer *importer)
{
    const struct opendrive_network *network = importer->network;
    uint32_t best = OPENDRIVE_NONE;
    double best_m = 0;
    for (uint32_t i = 0; i < network->lane_count; i++) {
        const struct opendrive_lane *lane = &network->lanes[i];
        const struct opendrive_section *section = &network->sections[lane->section];
        double length_m = section->end_m - section->s_m;
        double middle_m = (section->end_m + section->s_m) / 2;
        bool inside = network->roads[lane->road].junction != OPENDRIVE_NONE;
        double rank_m = (inside ? 1e-3 : 1) * length_m + (lane->next_count > 0 ? AHEAD_M : 0);
        if (lane->type == OPENDRIVE_LANE_DRIVING && rank_m > best_m &&
            opendrive_lane_width_m(network, i, middle_m) >= WIDTH_MIN_M) {
            best = i;
            best_m = rank_m;
        }
    }
    if (best == OPENDRIVE_NONE) {
        return error_set(importer->error, STATUS_BAD_INPUT,
                         "%s: expected a lane to drive on that is %g m wide, found none",
                         network->name, WIDTH_MIN_M);
    }
    double way;
    const struct opendrive_section *section = &network->sections[network->lanes[best].section];
    double start_m = dmath_min(START_M, (section->end_m - section->s_m) / 2);
    importer->way.from_lane = best;
    importer->way.from_s_m = entry_s_m(network, best, &way);
    opendrive_walk_lane(network, &importer->way.from_lane, &importer->way.from_s_m, start_m,
                        OPENDRIVE_STRAIGHT);
    return STATUS_OK;
}

/* ---- the way ---- */

/* Notes the bend from the last place to this one, at_m along the way: there ego must be as slow as
 * traffic would be. */
static void note_bend(struct way *way, double heading_rad, double at_m)
{
    double step_m = at_m - way->bend_m;
    if (step_m < BEND_MIN_M) {
        return;
    }
    double curvature = fabs(dmath_wrap_angle(heading_rad - way->bend_rad)) / step_m;
    if (curvature > 1e-6) {
        double slowed2 = 2 * BEND_DECEL_MPS2 * way->bend_m;
        way->bend2_m2ps2 = dmath_min(way->bend2_m2ps2, BEND_LAT_ACCEL_MPS2 / curvature + slowed2);
        way->hold2_m2ps2 =
            dmath_min(way->hold2_m2ps2, BEND_GRIP_SHARE * GRAVITY_MPS2 / curvature + slowed2);
    }
    way->bend_m = at_m;
    way->bend_rad = heading_rad;
}

static double travel_heading_rad(const struct opendrive_network *network, uint32_t lane,
                                 double heading_rad)
{
    return dmath_wrap_angle(heading_rad + (network->lanes[lane].against ? PI_RAD : 0));
}

/* Takes a place that is at_m along the way; in the order of the way. */
static void pass(struct importer *importer, uint32_t lane, double s_m, double at_m)
{
    struct way *way = &importer->way;
    const struct opendrive_network *network = importer->network;
    struct pose pose = opendrive_lane_pose(network, lane, s_m, 0);
    way->low.x_m = dmath_min(way->low.x_m, pose.x_m);
    way->low.y_m = dmath_min(way->low.y_m, pose.y_m);
    way->high.x_m = dmath_max(way->high.x_m, pose.x_m);
    way->high.y_m = dmath_max(way->high.y_m, pose.y_m);
    way->junction =
        way->junction || network->roads[network->lanes[lane].road].junction != OPENDRIVE_NONE;
    note_bend(way, travel_heading_rad(network, lane, pose.heading_rad), at_m);
    double limit_mps = opendrive_speed_limit_mps(network, lane, s_m);
    way->limit_mps = dmath_max(way->limit_mps, limit_mps > 0 ? limit_mps : SPEED_MPS);
}

/* Whether one lane goes on where the other ends, as a map's lanes must. */
static bool goes_on(const struct opendrive_network *network, uint32_t lane, uint32_t next)
{
    double way;
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    double end_m = network->lanes[lane].against ? section->s_m : section->end_m;
    struct pose a = opendrive_lane_pose(network, lane, end_m, 0);
    struct pose b = opendrive_lane_pose(network, next, entry_s_m(network, next, &way), 0);
    return lane == next ||
           (a.x_m - b.x_m) * (a.x_m - b.x_m) + (a.y_m - b.y_m) * (a.y_m - b.y_m) < 1;
}

/* Straight on for at most max_m from a place at_m along the way, until there are no lanes or ego
 * comes back to where it began. The place is changed; returns the metres. */
static double follow(struct importer *importer, uint32_t *lane, double *s_m, double at_m,
                     double max_m)
{
    const struct way *way = &importer->way;
    const struct opendrive_network *network = importer->network;
    struct pose start = opendrive_lane_pose(network, way->from_lane, way->from_s_m, 0);
    double length_m = 0;
    for (double rest_m = 0; length_m < max_m && rest_m <= 0;) {
        uint32_t next = *lane;
        double next_s_m = *s_m;
        rest_m = opendrive_walk_lane(network, &next, &next_s_m, WAY_STEP_M, OPENDRIVE_STRAIGHT);
        struct pose pose = opendrive_lane_pose(network, next, next_s_m, 0);
        double x_m = pose.x_m - start.x_m;
        double y_m = pose.y_m - start.y_m;
        bool back = length_m > RETURN_M && x_m * x_m + y_m * y_m < RETURN_M * RETURN_M;
        if (back || !goes_on(network, *lane, next)) {
            break;
        }
        length_m += WAY_STEP_M - rest_m;
        *lane = next;
        *s_m = next_s_m;
        pass(importer, next, next_s_m, at_m + length_m);
    }
    return length_m;
}

/* To a goal that leaves some of the lanes ahead for the rest of the drive. */
static enum status go_straight(struct importer *importer)
{
    struct way *way = &importer->way;
    uint32_t lane = way->from_lane;
    double s_m = way->from_s_m;
    way->ahead_m = follow(importer, &lane, &s_m, 0, AHEAD_M);
    way->length_m = GOAL_SHARE * way->ahead_m;
    way->to_lane = way->from_lane;
    way->to_s_m = way->from_s_m;
    opendrive_walk_lane(importer->network, &way->to_lane, &way->to_s_m, way->length_m,
                        OPENDRIVE_STRAIGHT);
    return STATUS_OK;
}

/* By the shortest way to the goal. */
static enum status go_there(struct importer *importer)
{
    const struct opendrive_network *network = importer->network;
    struct way *way = &importer->way;
    uint32_t *lanes = arena_alloc(importer->arena, WAY_LANES_MAX, sizeof *lanes);
    TRY(memory_check(lanes, importer->error, "%s: out of memory", network->name));
    uint32_t count = opendrive_route(network, way->from_lane, way->to_lane, lanes, WAY_LANES_MAX);
    double way_on;
    entry_s_m(network, way->to_lane, &way_on);
    if (count == 0 || (count == 1 && way_on * (way->to_s_m - way->from_s_m) <= 0)) {
        return refuse(importer, "to", &importer->options->to,
                      "a place that driving lanes lead to from where ego starts");
    }
    double s_m = way->from_s_m;
    for (uint32_t i = 0; i < count; i++) {
        const struct opendrive_lane *lane = &network->lanes[lanes[i]];
        const struct opendrive_section *section = &network->sections[lane->section];
        double end_m = lane->against ? section->s_m : section->end_m;
        if (i + 1 < count && network->lanes[lanes[i + 1]].section == lane->section) {
            continue; /* a change of lane, at once */
        }
        end_m = i + 1 == count ? way->to_s_m : end_m;
        end_m = lane->against ? dmath_min(end_m, s_m) : dmath_max(end_m, s_m);
        double length_m = opendrive_lane_way_m(network, lanes[i], s_m, end_m);
        uint32_t steps = (uint32_t)(length_m / WAY_STEP_M) + 1;
        for (uint32_t k = 0; k <= steps; k++) {
            pass(importer, lanes[i], s_m + (end_m - s_m) * k / steps,
                 way->length_m + length_m * k / steps);
        }
        way->length_m += length_m;
        s_m = i + 1 < count ? entry_s_m(network, lanes[i + 1], &way_on) : end_m;
    }
    uint32_t lane = way->to_lane;
    s_m = way->to_s_m;
    way->ahead_m = way->length_m + follow(importer, &lane, &s_m, way->length_m, BEYOND_M);
    return STATUS_OK;
}

static enum status find_way(struct importer *importer)
{
    const struct opendrive_options *options = importer->options;
    struct way *way = &importer->way;
    way->low = (struct vec2){INFINITY, INFINITY};
    way->high = (struct vec2){-INFINITY, -INFINITY};
    if (options->from.road != NULL) {
        TRY(find_address(importer, "from", &options->from, &way->from_lane));
        way->from_s_m = options->from.s_m;
    } else {
        TRY(choose_start(importer));
    }
    struct pose start = opendrive_lane_pose(importer->network, way->from_lane, way->from_s_m, 0);
    way->bend2_m2ps2 = INFINITY;
    way->hold2_m2ps2 = INFINITY;
    way->bend_rad = travel_heading_rad(importer->network, way->from_lane, start.heading_rad);
    pass(importer, way->from_lane, way->from_s_m, 0);
    if (options->to.road == NULL) {
        return go_straight(importer);
    }
    TRY(find_address(importer, "to", &options->to, &way->to_lane));
    way->to_s_m = options->to.s_m;
    return go_there(importer);
}

/* ---- the scenario ---- */

static struct pose travel_pose(const struct importer *importer, uint32_t lane, double s_m,
                               struct vec2 origin)
{
    struct pose pose = opendrive_lane_pose(importer->network, lane, s_m, 0);
    return (struct pose){pose.x_m - origin.x_m, pose.y_m - origin.y_m,
                         travel_heading_rad(importer->network, lane, pose.heading_rad)};
}

static void name_scenario(const struct importer *importer, struct scenario *scenario)
{
    const char *slash = strrchr(importer->network->name, '/');
    const char *file = slash != NULL ? slash + 1 : importer->network->name;
    size_t stem = strlen(file);
    char text[LIMIT_ID_BYTES];
    if (stem > 5 && strcmp(file + stem - 5, ".xodr") == 0) {
        stem -= 5;
    }
    snprintf(text, sizeof text, "%.*s", (int)(stem < 60 ? stem : 60), file);
    cr_make_id(text, scenario->id);
    snprintf(scenario->title, sizeof scenario->title, "OpenDRIVE %.60s", scenario->id);
    snprintf(scenario->prompt, sizeof scenario->prompt, "Ego drives alone over roads of %.60s.",
             scenario->id);
}

static const char *road_slice(const struct importer *importer)
{
    const struct opendrive_network *network = importer->network;
    const char *type = network->roads[network->lanes[importer->way.from_lane].road].type_name;
    if (importer->way.junction) {
        return "junction";
    }
    if (strcmp(type, "motorway") == 0 || strcmp(type, "rural") == 0) {
        return type;
    }
    return strncmp(type, "town", 4) == 0 || strncmp(type, "low", 3) == 0 ? "urban" : "unspecified";
}

static void fill_slices(const struct importer *importer, struct slices *slices)
{
    strcpy(slices->value[SLICE_WEATHER], "clear");
    strcpy(slices->value[SLICE_LIGHT], "day");
    snprintf(slices->value[SLICE_ROAD], LIMIT_ID_BYTES, "%s", road_slice(importer));
    strcpy(slices->value[SLICE_GEOGRAPHY], "unspecified");
    strcpy(slices->value[SLICE_ACTOR], "none");
    strcpy(slices->value[SLICE_SCENARIO_TYPE], "opendrive");
}

static void write_source(const struct importer *importer, double speed_mps,
                         char out[LIMIT_TEXT_BYTES])
{
    const char *slash = strrchr(importer->network->name, '/');
    char notes[LIMIT_TEXT_BYTES];
    char file[61]; /* names of files may hold any bytes, documents are UTF-8 */
    const struct opendrive_map *map = &importer->map;
    uint32_t dropped = map->beyond_limit + map->right_of_way.dropped;
    char lights[160] = "";
    size_t used = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < importer->map.map.signal_count; i++) {
        count += importer->map.map.signals[i].sign == TRAFFIC_SIGN_NONE;
    }
    if (count > 0) {
        used = (size_t)snprintf(lights, sizeof lights, "; %u traffic lights without phases, off",
                                count);
    }
    if (map->right_of_way.gave_way > 0) {
        used += (size_t)snprintf(lights + used, sizeof lights - used,
                                 "; %u lanes give way without a sign", map->right_of_way.gave_way);
    }
    if (dropped > 0) {
        snprintf(lights + used, sizeof lights - used, "; %u lights or signs beyond 64 left out",
                 dropped);
    }
    text_escape(slash != NULL ? slash + 1 : importer->network->name, TEXT_LINE, file, sizeof file);
    char bend[64] = "";
    double hold_mps = sqrt(importer->way.hold2_m2ps2);
    if (speed_mps > hold_mps) {
        snprintf(bend, sizeof bend, "; ego's bend holds %.1f m/s (--fit-speed)", hold_mps);
    }
    used = (size_t)snprintf(out, LIMIT_TEXT_BYTES, "OpenDRIVE, %s%s%s", file, lights, bend);
    opendrive_notes_write(map->notes, notes, LIMIT_TEXT_BYTES - used - 2);
    snprintf(out + used, LIMIT_TEXT_BYTES - used, "%s%s", notes[0] != '\0' ? "; " : "", notes);
}

/* Time to come to the goal at part of the limit, but not to drive off the lanes' ends at all of it.
 */
static double enough_s(const struct way *way, double speed_mps)
{
    double fastest_mps = dmath_max(dmath_max(way->limit_mps, speed_mps), 1);
    double slow_s = way->length_m / (AVERAGE_SHARE * fastest_mps) + SETTLE_S;
    double room_s = (way->ahead_m - CLEARANCE_M) / fastest_mps;
    double least_s = way->length_m / fastest_mps + 1;
    return dmath_min(slow_s, dmath_max(room_s, least_s));
}

static void set_ego(const struct importer *importer, struct vec2 origin, struct scenario *scenario)
{
    const struct way *way = &importer->way;
    const struct opendrive_options *options = importer->options;
    double limit_mps = opendrive_speed_limit_mps(importer->network, way->from_lane, way->from_s_m);
    double speed_mps = limit_mps > 0 ? dmath_min(limit_mps, 36) : SPEED_MPS;
    speed_mps = dmath_min(speed_mps, sqrt(way->bend2_m2ps2));
    speed_mps = isnan(options->speed_mps) ? speed_mps : options->speed_mps;
    speed_mps = options->fit_speed ? dmath_min(speed_mps, sqrt(way->hold2_m2ps2)) : speed_mps;
    struct pose goal = travel_pose(importer, way->to_lane, way->to_s_m, origin);
    scenario->ego = (struct ego){
        .pose = travel_pose(importer, way->from_lane, way->from_s_m, origin),
        .speed_mps = speed_mps,
        .length_m = 4.8,
        .width_m = 1.9,
        .height_m = 1.5,
        .wheelbase_m = 2.8,
        .has_goal = true,
        .goal = {goal.x_m, goal.y_m},
        .goal_radius_m = dmath_min(GOAL_RADIUS_M, way->length_m / 2),
        .goal_bounds = {NAN, NAN, NAN, NAN, NAN, NAN},
    };
    double horizon_s = isnan(options->horizon_s) ? enough_s(way, speed_mps) : options->horizon_s;
    scenario->horizon_ticks =
        (uint32_t)dmath_clamp(ceil(horizon_s / TICK_S - 1e-6), 1, LIMIT_HORIZON_TICKS);
}

/* The box around the way, and what is subtracted where it is far from zero. */
static struct opendrive_cut cut_around(const struct importer *importer)
{
    const struct way *way = &importer->way;
    double reach_m = importer->options->reach_m;
    struct opendrive_cut cut = {{way->low.x_m - reach_m, way->low.y_m - reach_m},
                                {way->high.x_m + reach_m, way->high.y_m + reach_m},
                                {0, 0},
                                false};
    double far_m = dmath_max(dmath_max(fabs(cut.low.x_m), fabs(cut.low.y_m)),
                             dmath_max(fabs(cut.high.x_m), fabs(cut.high.y_m)));
    if (far_m > OD_ORIGIN_MOVE_M) {
        cut.origin = (struct vec2){floor(way->low.x_m), floor(way->low.y_m)};
    }
    cut.priority_to_the_right = importer->options->priority_to_the_right;
    return cut;
}

static enum status make_scenario(struct importer *importer, struct scenario *scenario)
{
    TRY(find_way(importer));
    if (importer->way.length_m < WAY_MIN_M) {
        return error_set(importer->error, STATUS_BAD_INPUT,
                         "%s: expected at least %g m of way for ego, found %g",
                         importer->network->name, WAY_MIN_M, importer->way.length_m);
    }
    struct opendrive_cut cut = cut_around(importer);
    TRY(opendrive_map_make(importer->network, &cut, importer->arena, &importer->map,
                           importer->error));
    *scenario = (struct scenario){.question = QUESTION_PLANNING, .criteria = criteria_default()};
    scenario->criteria.reach_goal = true;
    scenario->map = importer->map.map;
    scenario->conditions = (struct conditions){
        .weather = WEATHER_CLEAR, .light = LIGHT_DAY, .friction = 1, .visibility_m = 200};
    name_scenario(importer, scenario);
    set_ego(importer, cut.origin, scenario);
    fill_slices(importer, &scenario->slices);
    write_source(importer, scenario->ego.speed_mps, scenario->source);
    return STATUS_OK;
}

enum status import_opendrive(const char *name, const char *xml, size_t bytes,
                             const struct opendrive_options *options, char **text,
                             struct error *error)
{
    struct error local = {0};
    struct opendrive_network *network = NULL;
    struct arena arena;
    struct scenario scenario;
    TRY(opendrive_load(name, xml, bytes, &network, error));
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    struct importer importer = {.network = network,
                                .options = options,
                                .arena = &arena,
                                .error = error != NULL ? error : &local};
    enum status status = make_scenario(&importer, &scenario);
    THEN(status, scenario_write_text(network->name, &scenario, text, importer.error));
    arena_finish(&arena);
    opendrive_destroy(network);
    return status;
}

/* ---- notes ---- */

void opendrive_notes_write(const uint32_t notes[OPENDRIVE_NOTE_COUNT], char *out, size_t capacity)
{
    static const char *const texts[OPENDRIVE_NOTE_COUNT] = {
        [OPENDRIVE_NOTE_ELEVATION] = "elevation ignored",
        [OPENDRIVE_NOTE_SUPERELEVATION] = "superelevation ignored",
        [OPENDRIVE_NOTE_OBJECT] = "objects left out",
        [OPENDRIVE_NOTE_GAP] = "gaps in reference lines",
        [OPENDRIVE_NOTE_LENGTH] = "curves stretched to their length",
        [OPENDRIVE_NOTE_ROAD_LENGTH] = "roads of another length than their reference line",
        [OPENDRIVE_NOTE_LINK] = "links to nothing",
        [OPENDRIVE_NOTE_LINK_FOUND] = "links added where lanes touch",
        [OPENDRIVE_NOTE_WIDTH] = "lanes without a width",
        [OPENDRIVE_NOTE_LANE_TYPE] = "lanes of unknown type left out",
        [OPENDRIVE_NOTE_SIGNAL] = "signals beyond their road put at its end",
        [OPENDRIVE_NOTE_SIGN] = "signals of other types left out",
        [OPENDRIVE_NOTE_LIGHT] = "traffic lights without lanes left out",
        [OPENDRIVE_NOTE_LANE] = "lanes that cross themselves or have no length left out",
        [OPENDRIVE_NOTE_SUCCESSOR] = "successors that begin elsewhere left out",
        [OPENDRIVE_NOTE_CROSSWALK] = "crosswalks left out",
    };
    size_t at = 0;
    out[0] = '\0';
    for (int i = OPENDRIVE_NOTE_COUNT - 1; i >= 0; i--) {
        char note[80];
        if (notes[i] == 0) {
            continue;
        }
        int bytes =
            snprintf(note, sizeof note, "%s%s (%u)", at > 0 ? ", " : "", texts[i], notes[i]);
        if (at + (size_t)bytes + 1 > capacity) {
            return;
        }
        memcpy(out + at, note, (size_t)bytes + 1);
        at += (size_t)bytes;
    }
}
