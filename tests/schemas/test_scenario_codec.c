/*
 * Scenario codec. Method: random records over every member and kind are encoded, decoded and
 * compared member by member, storyboards by their canonical texts, which are compared of all.
 */
#include "base/rng.h"
#include "base/units.h"
#include "schemas/scenario_json.h"
#include "schemas/storyboard/storyboard.h"
#include "schemas/storyboard/storyboard_paths.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { SAMPLES = 400 };

static uint64_t seed;
static uint32_t draws;

static double uniform(double low, double high)
{
    return low + rng_uniform(seed, RNG_STREAM_TEST, draws++, 0) * (high - low);
}

static uint32_t below(uint32_t count)
{
    return (uint32_t)uniform(0, count);
}

static bool coin(void)
{
    return below(2) == 1;
}

static void *take(struct arena *arena, size_t count, size_t size)
{
    void *memory = arena_alloc(arena, count, size);
    EXPECT(memory != NULL);
    return memory;
}

/* ---- random records ---- */

static void grow_id(char id[LIMIT_ID_BYTES], const char *kind, uint32_t index)
{
    snprintf(id, LIMIT_ID_BYTES, "%s/%u=%u.,+:-", kind, index, below(1000));
}

static struct vec2 grow_point(void)
{
    return (struct vec2){uniform(-1e5, 1e5), uniform(-1e5, 1e5)};
}

static struct vec2 *grow_points(struct arena *arena, uint32_t count)
{
    struct vec2 *points = take(arena, count, sizeof *points);
    for (uint32_t i = 0; i < count; i++) {
        points[i] = grow_point();
    }
    return points;
}

static struct polygon *grow_polygons(struct arena *arena, uint32_t count)
{
    struct polygon *polygons = take(arena, count, sizeof *polygons);
    for (uint32_t i = 0; i < count; i++) {
        polygons[i].point_count = 3 + below(4);
        polygons[i].points = grow_points(arena, polygons[i].point_count);
    }
    return polygons;
}

static uint32_t *grow_indices(struct arena *arena, uint32_t count, uint32_t limit)
{
    uint32_t *indices = take(arena, count, sizeof *indices);
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = below(limit);
    }
    return indices;
}

static void grow_lane(struct arena *arena, uint32_t index, uint32_t count, struct lane *lane)
{
    grow_id(lane->id, "lane", index);
    lane->kind = (enum lane_kind)below(LANE_KIND_COUNT);
    lane->point_count = 2 + below(5);
    lane->centre_line = grow_points(arena, lane->point_count);
    lane->width_m = take(arena, lane->point_count, sizeof *lane->width_m);
    bool same = coin();
    for (uint32_t i = 0; i < lane->point_count; i++) {
        lane->width_m[i] = same && i > 0 ? lane->width_m[0] : uniform(0.5, 50);
    }
    lane->speed_limit_mps = coin() ? 0 : uniform(0, 100);
    lane->left = (int32_t)below(count + 1) - 1;
    lane->right = (int32_t)below(count + 1) - 1;
    lane->left_opposite = coin();
    lane->right_opposite = coin();
    lane->successor_count = below(4);
    lane->successors = grow_indices(arena, lane->successor_count, count);
    lane->left_marking = (enum marking)below(MARKING_COUNT);
    lane->right_marking = (enum marking)below(MARKING_COUNT);
    lane->intersection = coin();
}

static void grow_signal(struct arena *arena, uint32_t index, uint32_t lanes,
                        struct traffic_signal *signal)
{
    grow_id(signal->id, "signal", index);
    signal->lane_count = 1 + below(3);
    signal->lanes = grow_indices(arena, signal->lane_count, lanes);
    signal->stop_m = uniform(0, 1000);
    if (index == 1 && coin()) { /* never the first: interventions need a light */
        signal->sign = (enum traffic_sign)(TRAFFIC_SIGN_STOP + below(TRAFFIC_SIGN_COUNT - 1));
        signal->repeats = true;
        return;
    }
    signal->offset_s = uniform(0, 3600);
    signal->repeats = coin();
    signal->phase_count = 1 + below(4);
    signal->phases = take(arena, signal->phase_count, sizeof *signal->phases);
    for (uint32_t i = 0; i < signal->phase_count; i++) {
        signal->phases[i].light = (enum traffic_light)below(TRAFFIC_LIGHT_COUNT);
        signal->phases[i].duration_s = uniform(0.1, 3600);
    }
}

static void grow_map(struct arena *arena, struct map *map)
{
    static const char *const kinds[] = {"water", "ice", "oil", "gravel", "snow"};
    if (coin()) {
        grow_id(map->id, "map", 0);
    }
    map->lane_count = 1 + below(5);
    map->lanes = take(arena, map->lane_count, sizeof *map->lanes);
    for (uint32_t i = 0; i < map->lane_count; i++) {
        grow_lane(arena, i, map->lane_count, &map->lanes[i]);
    }
    map->drivable_count = below(3);
    map->drivable = grow_polygons(arena, map->drivable_count);
    map->crosswalk_count = below(3);
    map->crosswalks = grow_polygons(arena, map->crosswalk_count);
    map->surface_count = below(3);
    map->surfaces = take(arena, map->surface_count, sizeof *map->surfaces);
    for (uint32_t i = 0; i < map->surface_count; i++) {
        strcpy(map->surfaces[i].kind, kinds[below(5)]);
        map->surfaces[i].friction = uniform(0.01, 1.2);
        map->surfaces[i].area = *grow_polygons(arena, 1);
    }
    map->signal_count = below(3);
    map->signals = take(arena, map->signal_count, sizeof *map->signals);
    for (uint32_t i = 0; i < map->signal_count; i++) {
        grow_signal(arena, i, map->lane_count, &map->signals[i]);
    }
}

static struct pose grow_pose(void)
{
    return (struct pose){uniform(-1e5, 1e5), uniform(-1e5, 1e5), uniform(-6.28, 6.28)};
}

static struct trajectory grow_trajectory(struct arena *arena)
{
    struct trajectory trajectory = {.point_count = 2 + below(6)};
    trajectory.points = take(arena, trajectory.point_count, sizeof *trajectory.points);
    double t_s = uniform(0, 3);
    for (uint32_t i = 0; i < trajectory.point_count; i++) {
        struct vec2 p = grow_point();
        trajectory.points[i] =
            (struct trajectory_point){t_s, p.x_m, p.y_m, uniform(-6.28, 6.28), uniform(0, 150)};
        t_s += uniform(1e-6, 2);
    }
    return trajectory;
}

static void grow_ego(struct arena *arena, const struct map *map, struct ego *ego)
{
    ego->pose = grow_pose();
    ego->speed_mps = uniform(0, 100);
    ego->length_m = uniform(0.5, 50);
    ego->width_m = uniform(0.3, 10);
    ego->height_m = uniform(0.3, 10);
    ego->wheelbase_m = uniform(0.3, 40);
    ego->route_count = below(4);
    ego->route = grow_indices(arena, ego->route_count, map->lane_count);
    ego->goal_bounds = (struct goal_bounds){(double)NAN, (double)NAN, (double)NAN,
                                            (double)NAN, (double)NAN, (double)NAN};
    if (coin()) {
        ego->has_goal = true;
        ego->goal = grow_point();
        ego->goal_radius_m = uniform(0.1, 1000);
        double low = uniform(0, 300);
        double speed = uniform(-100, 50);
        double heading = uniform(-6, 0);
        if (coin()) {
            ego->goal_bounds.time_min_s = low;
        }
        if (coin()) {
            ego->goal_bounds.time_max_s = low + uniform(0, 300);
        }
        if (coin()) {
            ego->goal_bounds.speed_min_mps = speed;
            ego->goal_bounds.speed_max_mps = speed + uniform(0, 50);
        }
        if (coin()) {
            ego->goal_bounds.heading_min_rad = heading;
            ego->goal_bounds.heading_max_rad = heading + uniform(0, 6);
        }
        if (coin()) {
            ego->goal_area.point_count = 3 + below(3);
            ego->goal_area.points =
                arena_alloc(arena, ego->goal_area.point_count, sizeof *ego->goal_area.points);
            for (uint32_t i = 0; i < ego->goal_area.point_count; i++) {
                ego->goal_area.points[i] = grow_point();
            }
        }
    }
    ego->dynamics = (enum dynamics)below(DYNAMICS_COUNT);
    ego->brake_delay_s = below(11) * TICK_S;
    ego->steer_delay_s = below(11) * TICK_S;
    if (coin()) {
        ego->log = grow_trajectory(arena);
    }
}

static void grow_manoeuvre(struct arena *arena, struct manoeuvre *manoeuvre)
{
    manoeuvre->kind = (enum manoeuvre_kind)below(MANOEUVRE_COUNT);
    manoeuvre->trigger.kind = (enum trigger_kind)below(TRIGGER_COUNT);
    manoeuvre->trigger.value = uniform(0, 1000);
    if (manoeuvre->kind == MANOEUVRE_SPEED || manoeuvre->kind == MANOEUVRE_PATH) {
        manoeuvre->speed_mps = uniform(0, 100);
        manoeuvre->rate_mps2 = uniform(0.01, 50);
    }
    if (manoeuvre->kind == MANOEUVRE_LANE_CHANGE) {
        manoeuvre->offset_m = uniform(-50, 50);
        manoeuvre->duration_s = uniform(0.1, 60);
    }
    if (manoeuvre->kind == MANOEUVRE_PATH) {
        manoeuvre->path_count = 2 + below(5);
        manoeuvre->path = grow_points(arena, manoeuvre->path_count);
    }
}

static void grow_agent(struct arena *arena, const struct map *map, uint32_t index,
                       struct agent *agent)
{
    grow_id(agent->id, "agent", index);
    agent->kind = (enum agent_kind)below(AGENT_KIND_COUNT);
    agent->length_m = uniform(0.05, 50);
    agent->width_m = uniform(0.05, 50);
    agent->height_m = uniform(0.01, 20);
    agent->pose = grow_pose();
    agent->speed_mps = uniform(0, 150);
    agent->hidden = coin();
    agent->low = coin();
    agent->behaviour = (enum behaviour_kind)below(BEHAVIOUR_COUNT);
    if (agent->behaviour == BEHAVIOUR_IDM || agent->behaviour == BEHAVIOUR_REPLAY) {
        agent->idm =
            (struct idm){uniform(0.1, 100), uniform(0, 10), uniform(0, 50), uniform(0.1, 10),
                         uniform(0.1, 10),  uniform(0, 1),  coin(),         coin()};
    }
    if (agent->behaviour == BEHAVIOUR_REPLAY || (agent->behaviour != BEHAVIOUR_STATIC && coin())) {
        agent->trajectory = grow_trajectory(arena);
    }
    if (agent->behaviour == BEHAVIOUR_SCRIPT) {
        agent->manoeuvre_count = below(5);
        agent->manoeuvres = take(arena, agent->manoeuvre_count, sizeof *agent->manoeuvres);
        for (uint32_t i = 0; i < agent->manoeuvre_count; i++) {
            grow_manoeuvre(arena, &agent->manoeuvres[i]);
        }
    }
    if (agent->behaviour == BEHAVIOUR_IDM) {
        agent->route_count = below(4);
        agent->route = grow_indices(arena, agent->route_count, map->lane_count);
    }
}

static struct conditions grow_conditions(void)
{
    return (struct conditions){(enum weather)below(WEATHER_COUNT), (enum light)below(LIGHT_COUNT),
                               uniform(0.01, 1.2), uniform(1, 1000)};
}

static void grow_intervention(struct arena *arena, const struct scenario *scenario, uint32_t tick,
                              struct intervention *it)
{
    *it = (struct intervention){.agent = -1, .tick = tick};
    do {
        it->kind = (enum intervention_kind)below(INTERVENE_COUNT);
    } while ((it->kind >= INTERVENE_AGENT_BRAKE && it->kind <= INTERVENE_AGENT_APPEAR &&
              scenario->agent_count == 0) ||
             (it->kind == INTERVENE_SIGNAL && scenario->map.signal_count == 0));
    if (it->kind >= INTERVENE_AGENT_BRAKE && it->kind <= INTERVENE_AGENT_APPEAR) {
        it->agent = (int32_t)below(scenario->agent_count);
        scenario->agents[it->agent].hidden |= it->kind == INTERVENE_AGENT_APPEAR;
    }
    switch (it->kind) {
    case INTERVENE_EGO_BRAKE:
    case INTERVENE_AGENT_BRAKE:
        it->decel_mps2 = uniform(0.1, 12);
        break;
    case INTERVENE_EGO_SWERVE:
        it->offset_m = uniform(-20, 20);
        it->duration_s = uniform(0.1, 60);
        break;
    case INTERVENE_AGENT_CUT_IN:
        it->duration_s = uniform(0.1, 60);
        break;
    case INTERVENE_EGO_ACTIONS:
        it->action_count = 1 + below(5);
        it->actions = take(arena, it->action_count, sizeof *it->actions);
        for (uint32_t i = 0; i < it->action_count; i++) {
            it->actions[i] = (struct action){uniform(-20, 20), uniform(-1.5, 1.5)};
        }
        break;
    case INTERVENE_CONDITIONS:
        it->conditions = grow_conditions();
        break;
    case INTERVENE_STACK_LATENCY:
        it->latency_ms = uniform(0, 10000);
        it->jitter_ms = uniform(0, 10000);
        break;
    case INTERVENE_STACK_DROPOUT:
        it->sensors = 1 + below(SENSOR_ALL);
        it->duration_s = uniform(0.1, 600);
        break;
    case INTERVENE_SIGNAL:
        it->signal = 0;
        it->light = (enum traffic_light)below(TRAFFIC_LIGHT_COUNT);
        break;
    case INTERVENE_TRAFFIC:
        it->traffic = (enum traffic_model)below(TRAFFIC_MODEL_COUNT);
        it->draw = below(UINT32_MAX);
        break;
    default:
        break;
    }
}

static void grow_branches(struct arena *arena, struct scenario *scenario)
{
    scenario->branch_count = below(4);
    scenario->branches = take(arena, scenario->branch_count, sizeof *scenario->branches);
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        struct branch *branch = &scenario->branches[b];
        grow_id(branch->id, "branch", b);
        branch->at_tick = below(scenario->horizon_ticks);
        branch->intervention_count = 1 + below(4);
        branch->interventions =
            take(arena, branch->intervention_count, sizeof *branch->interventions);
        uint32_t tick = branch->at_tick;
        for (uint32_t i = 0; i < branch->intervention_count; i++) {
            tick += below(scenario->horizon_ticks - tick);
            grow_intervention(arena, scenario, tick, &branch->interventions[i]);
        }
    }
}

static double maybe(double low, double high)
{
    return coin() ? NAN : uniform(low, high);
}

static struct story_path grow_story_path(struct arena *arena, uint32_t paths)
{
    struct story_path path = {
        .point_count = (coin() ? 2 : 64) + below(4), .timed = coin(), .next = -1};
    path.points = take(arena, path.point_count, sizeof *path.points);
    for (uint32_t i = 0; i < path.point_count; i++) {
        path.points[i] =
            (struct story_point){10.0 * i + uniform(0, 9), uniform(-1e6, 1e6), uniform(-1e6, 1e6),
                                 uniform(-7, 7), path.timed ? i + uniform(0, 0.9) : 0.0};
    }
    if (coin()) {
        path.next = (int32_t)below(paths);
        path.next_s_m = uniform(-1e6, 1e6);
        path.next_offset_m = uniform(-1e4, 1e4);
    }
    return path;
}

/* An actor for each agent that a storyboard moves; conditions, actions and events of kinds that
 * refer to little. What only the engine looks at may be anything within its bounds. */
static void grow_storyboard(struct arena *arena, struct scenario *scenario)
{
    struct storyboard *board = take(arena, 1, sizeof *board);
    *board = (struct storyboard){
        .path_count = 1 + below(3), .condition_count = 3, .action_count = 3, .event_count = 3};
    board->paths = take(arena, board->path_count, sizeof *board->paths);
    for (uint32_t i = 0; i < board->path_count; i++) {
        board->paths[i] = grow_story_path(arena, board->path_count);
    }
    board->actors = take(arena, scenario->agent_count + 1, sizeof *board->actors);
    for (int32_t i = STORY_EGO; i < (int32_t)scenario->agent_count; i++) {
        if (i == STORY_EGO || scenario->agents[i].behaviour == BEHAVIOUR_STORYBOARD) {
            board->actors[board->actor_count++] = (struct story_actor){i,
                                                                       below(board->path_count),
                                                                       uniform(-1e6, 1e6),
                                                                       uniform(-1e4, 1e4),
                                                                       uniform(-7, 7),
                                                                       uniform(-200, 200),
                                                                       uniform(-20, 20),
                                                                       uniform(0.01, 1e4),
                                                                       uniform(0.01, 1e4),
                                                                       uniform(0, 200)};
        }
    }
    board->conditions = take(arena, board->condition_count, sizeof *board->conditions);
    board->conditions[0] = (struct story_condition){STORY_TIME,
                                                    (enum story_rule)below(STORY_RULE_COUNT),
                                                    (enum story_edge)below(STORY_EDGE_COUNT),
                                                    .actor = -1,
                                                    .other = -1,
                                                    .event = -1,
                                                    .action = -1,
                                                    .variable = -1,
                                                    .value = uniform(-1e6, 1e6),
                                                    .delay_s = uniform(0, 1e5)};
    board->conditions[1] =
        (struct story_condition){STORY_STATE,
                                 .state = (enum story_state_kind)below(STORY_STATE_COUNT),
                                 .actor = -1,
                                 .other = -1,
                                 .event = 0,
                                 .action = coin() ? 0 : -1,
                                 .variable = -1,
                                 .along = coin(),
                                 .tolerance_rad = uniform(0, 100)};
    board->variable_count = 1 + below(3);
    board->variables = take(arena, board->variable_count, sizeof *board->variables);
    for (uint32_t i = 0; i < board->variable_count; i++) {
        board->variables[i] = uniform(-1e6, 1e6);
    }
    board->conditions[2] =
        (struct story_condition){.kind = STORY_VARIABLE,
                                 .actor = -1,
                                 .other = -1,
                                 .event = -1,
                                 .action = -1,
                                 .variable = (int32_t)below(board->variable_count),
                                 .value = uniform(-1e6, 1e6)};
    board->actions = take(arena, board->action_count, sizeof *board->actions);
    for (uint32_t i = 0; i < board->action_count; i++) {
        struct story_way *ways = take(arena, 1, sizeof *ways);
        *ways = (struct story_way){uniform(-1e6, 1e6), (int32_t)below(2) - 1, uniform(-1e4, 1e4)};
        board->actions[i] =
            (struct story_action){.kind = STORY_DO_WAIT,
                                  .actor = -1,
                                  .other = -1,
                                  .path = -1,
                                  .variable = -1,
                                  .value = uniform(0, 1e6),
                                  .time_s = coin() ? (double)NAN : uniform(0, 1e4),
                                  .scale = uniform(1e-3, 1e3),
                                  .accel_mps2 = coin() ? (double)INFINITY : uniform(1, 9),
                                  .decel_mps2 = (double)INFINITY,
                                  .speed_max_mps = uniform(0, 200),
                                  .ways_on = 0,
                                  .way_count = coin(),
                                  .ways = ways};
    }
    board->actions[2].kind = STORY_DO_SET;
    board->actions[2].variable = (int32_t)below(board->variable_count);
    board->actions[2].set_to = uniform(-1e6, 1e6);
    board->events = take(arena, board->event_count, sizeof *board->events);
    uint32_t first = below(board->condition_count);
    for (uint32_t i = 0; i < board->event_count; i++) {
        struct story_group *group = take(arena, 1, sizeof *group);
        *group = (struct story_group){1, grow_indices(arena, 1, board->condition_count)};
        group->conditions[0] = (first + i) % board->condition_count; /* each in one place */
        board->events[i] =
            (struct story_event){.parent = i > 0 ? 0 : -1,
                                 .group = below(3),
                                 .priority = (enum story_priority)below(STORY_PRIORITY_COUNT),
                                 .repeats = 1 + below(9),
                                 .start = {coin(), group},
                                 .action_count = i,
                                 .actions = grow_indices(arena, i, board->action_count)};
    }
    scenario->storyboard = board;
}

/* A log that is long enough for the horizon, which it shortens. */
static void grow_controls(struct arena *arena, struct scenario *scenario)
{
    struct controls_log *log = &scenario->controls.log;
    scenario->horizon_ticks = 1 + below(CONTROLS_COST_END - CONTROLS_CONTEXT);
    scenario->controls.seed = below(10000);
    log->count = scenario->horizon_ticks + CONTROLS_CONTEXT;
    log->count = log->count < LIMIT_CONTROLS_ROWS_MIN ? LIMIT_CONTROLS_ROWS_MIN : log->count;
    log->rows = take(arena, log->count, sizeof *log->rows);
    for (uint32_t i = 0; i < log->count; i++) {
        log->rows[i] = (struct controls_row){uniform(-1e6, 1e6), uniform(-1, 1), uniform(-1, 50),
                                             uniform(-9, 9), uniform(-2, 2)};
    }
}

static void grow_scenario(struct arena *arena, struct scenario *scenario)
{
    bool storyboard = false;
    *scenario = (struct scenario){.horizon_ticks = 1 + below(LIMIT_HORIZON_TICKS)};
    grow_id(scenario->id, "scenario", 0);
    snprintf(scenario->title, sizeof scenario->title, "T\xc3\xa4st \"%u\"", below(100));
    snprintf(scenario->prompt, sizeof scenario->prompt, "line one\nline two");
    scenario->question = (enum question)below(QUESTION_COUNT);
    grow_map(arena, &scenario->map);
    grow_ego(arena, &scenario->map, &scenario->ego);
    scenario->agent_count = below(4);
    scenario->agents = take(arena, scenario->agent_count, sizeof *scenario->agents);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        grow_agent(arena, &scenario->map, i, &scenario->agents[i]);
        storyboard |= scenario->agents[i].behaviour == BEHAVIOUR_STORYBOARD;
    }
    if (storyboard) {
        grow_storyboard(arena, scenario);
    }
    if (below(8) == 0) {
        grow_controls(arena, scenario);
    }
    scenario->conditions = grow_conditions();
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        grow_id(scenario->slices.value[i], "slice", (uint32_t)i);
    }
    scenario->slices.safety_critical = coin();
    scenario->criteria =
        (struct criteria){coin(),      coin(),      coin(),        coin(),        coin(),
                          coin(),      coin(),      maybe(0, 3),   maybe(0, 100), maybe(0, 9),
                          maybe(0, 1), maybe(0, 1), maybe(0, 100), maybe(1, 1e5), maybe(0, 1e9)};
    grow_branches(arena, scenario);
}

/* ---- comparison, member by member ---- */

#define SAME(member) EXPECT(a->member == b->member)
#define SAME_TEXT(member) EXPECT_TEXT(b->member, a->member)
#define SAME_ARRAY(count, array)                                                               \
    do {                                                                                       \
        EXPECT(a->count == b->count);                                                          \
        EXPECT(a->count == 0 || memcmp(a->array, b->array, a->count * sizeof *a->array) == 0); \
    } while (0)
#define SAME_OR_ABSENT(member)                         \
    EXPECT(a->criteria.member == b->criteria.member || \
           (isnan(a->criteria.member) && isnan(b->criteria.member)))
/* Plain numbers without padding. */
#define SAME_BYTES(member) EXPECT(memcmp(&a->member, &b->member, sizeof a->member) == 0)

static void expect_same_lane(const struct lane *a, const struct lane *b)
{
    SAME_TEXT(id);
    SAME(kind);
    SAME_ARRAY(point_count, centre_line);
    SAME_ARRAY(point_count, width_m);
    SAME(speed_limit_mps);
    SAME(left);
    SAME(right);
    SAME(left_opposite);
    SAME(right_opposite);
    SAME_ARRAY(successor_count, successors);
    SAME(left_marking);
    SAME(right_marking);
    SAME(intersection);
}

static void expect_same_polygons(uint32_t count, const struct polygon *left,
                                 const struct polygon *right)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct polygon *a = &left[i];
        const struct polygon *b = &right[i];
        SAME_ARRAY(point_count, points);
    }
}

static void expect_same_signal(const struct traffic_signal *a, const struct traffic_signal *b)
{
    SAME_TEXT(id);
    SAME_ARRAY(lane_count, lanes);
    SAME(sign);
    SAME(stop_m);
    SAME(offset_s);
    SAME(repeats);
    SAME(phase_count);
    for (uint32_t i = 0; i < a->phase_count; i++) {
        EXPECT(a->phases[i].light == b->phases[i].light);
        EXPECT(a->phases[i].duration_s == b->phases[i].duration_s);
    }
}

static void expect_same_map(const struct map *a, const struct map *b)
{
    SAME_TEXT(id);
    SAME(lane_count);
    SAME(drivable_count);
    SAME(crosswalk_count);
    SAME(surface_count);
    for (uint32_t i = 0; i < a->lane_count; i++) {
        expect_same_lane(&a->lanes[i], &b->lanes[i]);
    }
    expect_same_polygons(a->drivable_count, a->drivable, b->drivable);
    expect_same_polygons(a->crosswalk_count, a->crosswalks, b->crosswalks);
    for (uint32_t i = 0; i < a->surface_count; i++) {
        EXPECT_TEXT(b->surfaces[i].kind, a->surfaces[i].kind);
        EXPECT(a->surfaces[i].friction == b->surfaces[i].friction);
        expect_same_polygons(1, &a->surfaces[i].area, &b->surfaces[i].area);
    }
    EXPECT(a->signal_count == b->signal_count);
    for (uint32_t i = 0; i < a->signal_count; i++) {
        expect_same_signal(&a->signals[i], &b->signals[i]);
    }
}

static void expect_same_ego(const struct ego *a, const struct ego *b)
{
    SAME_BYTES(pose);
    SAME(speed_mps);
    SAME(length_m);
    SAME(width_m);
    SAME(height_m);
    SAME(wheelbase_m);
    SAME_ARRAY(route_count, route);
    SAME(has_goal);
    SAME_BYTES(goal);
    SAME(goal_radius_m);
    SAME_ARRAY(goal_area.point_count, goal_area.points);
    EXPECT(memcmp(&a->goal_bounds, &b->goal_bounds, sizeof a->goal_bounds) == 0);
    SAME(dynamics);
    SAME(brake_delay_s);
    SAME(steer_delay_s);
    SAME_ARRAY(log.point_count, log.points);
}

static void expect_same_idm(const struct idm *a, const struct idm *b)
{
    SAME(desired_speed_mps);
    SAME(time_headway_s);
    SAME(min_gap_m);
    SAME(accel_max_mps2);
    SAME(decel_comfort_mps2);
    SAME(politeness);
    SAME(lane_changes);
    SAME(sees_ego);
}

static void expect_same_manoeuvre(const struct manoeuvre *a, const struct manoeuvre *b)
{
    SAME(trigger.kind);
    SAME(trigger.value);
    SAME(kind);
    SAME(speed_mps);
    SAME(rate_mps2);
    SAME(offset_m);
    SAME(duration_s);
    SAME_ARRAY(path_count, path);
}

static void expect_same_agent(const struct agent *a, const struct agent *b)
{
    SAME_TEXT(id);
    SAME(kind);
    SAME(length_m);
    SAME(width_m);
    SAME(height_m);
    SAME_BYTES(pose);
    SAME(speed_mps);
    SAME(hidden);
    SAME(low);
    SAME(behaviour);
    if (a->behaviour == BEHAVIOUR_IDM || a->behaviour == BEHAVIOUR_REPLAY) {
        expect_same_idm(&a->idm, &b->idm);
    }
    SAME_ARRAY(trajectory.point_count, trajectory.points);
    SAME(manoeuvre_count);
    for (uint32_t i = 0; i < a->manoeuvre_count; i++) {
        expect_same_manoeuvre(&a->manoeuvres[i], &b->manoeuvres[i]);
    }
    SAME_ARRAY(route_count, route);
}

static void expect_same_conditions(const struct conditions *a, const struct conditions *b)
{
    SAME(weather);
    SAME(light);
    SAME(friction);
    SAME(visibility_m);
}

static void expect_same_intervention(const struct intervention *a, const struct intervention *b)
{
    SAME(kind);
    SAME(tick);
    SAME(agent);
    SAME(decel_mps2);
    SAME(offset_m);
    SAME(duration_s);
    SAME(latency_ms);
    SAME(jitter_ms);
    SAME(sensors);
    SAME(signal);
    SAME(light);
    expect_same_conditions(&a->conditions, &b->conditions);
    SAME_ARRAY(action_count, actions);
}

static void expect_same_scenario(const struct scenario *a, const struct scenario *b)
{
    SAME_TEXT(id);
    SAME_TEXT(title);
    SAME_TEXT(source);
    SAME_TEXT(prompt);
    expect_same_map(&a->map, &b->map);
    expect_same_ego(&a->ego, &b->ego);
    SAME(agent_count);
    for (uint32_t i = 0; i < a->agent_count; i++) {
        expect_same_agent(&a->agents[i], &b->agents[i]);
    }
    expect_same_conditions(&a->conditions, &b->conditions);
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        SAME_TEXT(slices.value[i]);
    }
    SAME(slices.safety_critical);
    SAME(horizon_ticks);
    SAME(question);
    SAME(criteria.no_at_fault_collision);
    SAME(criteria.no_collision);
    SAME(criteria.stay_drivable);
    SAME(criteria.right_direction);
    SAME(criteria.reach_goal);
    SAME(criteria.comfortable);
    SAME(criteria.obey_signals);
    SAME_OR_ABSENT(min_ttc_s);
    SAME_OR_ABSENT(min_distance_m);
    SAME_OR_ABSENT(impact_speed_max_mps);
    SAME_OR_ABSENT(progress_min);
    SAME_OR_ABSENT(score_min);
    SAME_OR_ABSENT(speed_max_mps);
    SAME_OR_ABSENT(expected_progress_m);
    SAME_OR_ABSENT(total_cost_max);
    SAME(controls.seed);
    SAME_ARRAY(controls.log.count, controls.log.rows);
    SAME(branch_count);
    for (uint32_t i = 0; i < a->branch_count; i++) {
        EXPECT_TEXT(b->branches[i].id, a->branches[i].id);
        EXPECT_INT(b->branches[i].at_tick, a->branches[i].at_tick);
        EXPECT_INT(b->branches[i].intervention_count, a->branches[i].intervention_count);
        for (uint32_t k = 0; k < a->branches[i].intervention_count; k++) {
            expect_same_intervention(&a->branches[i].interventions[k],
                                     &b->branches[i].interventions[k]);
        }
    }
}

/* Goal: decode(encode(x)) is x, also through canonical text, which is then the same text. */
static void random_records_come_back(void)
{
    for (seed = 1; seed <= SAMPLES; seed++) {
        struct arena arena;
        struct scenario scenario;
        struct scenario decoded;
        struct error error = {0};
        draws = 0;
        arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
        grow_scenario(&arena, &scenario);
        json_t *json = scenario_encode(&scenario);
        EXPECT(json != NULL);
        char *text = json_canonical_text(json);
        json_decref(json);
        EXPECT(text != NULL);
        EXPECT_OK(json_read_text("sample", text, strlen(text), &json, &error), error);
        EXPECT_OK(scenario_decode("sample", json, &arena, &decoded, &error), error);
        json_decref(json);
        expect_same_scenario(&scenario, &decoded);
        json = scenario_encode(&decoded);
        char *again = json_canonical_text(json);
        json_decref(json);
        EXPECT_TEXT(again, text);
        free(again);
        free(text);
        arena_finish(&arena);
    }
}

/* Decodes a document on what earlier ones had and expects its text once more; returns the JSON of
 * its first path. */
static json_t *expect_text_on(const struct scenario_shared *shared, const struct scenario *scenario,
                              const char *text)
{
    struct arena arena;
    struct scenario decoded;
    struct error error = {0};
    json_t *json = scenario_encode_on(scenario, shared);
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    EXPECT_OK(scenario_decode_on("shared", json, shared, &arena, &decoded, NULL, &error), error);
    json_t *again = scenario_encode_on(&decoded, shared);
    char *again_text = json_canonical_text(again);
    EXPECT_TEXT(again_text, text);
    json_t *paths = json_object_get(json_object_get(again, "storyboard"), "paths");
    json_t *first = json_incref(json_array_get(paths, 0));
    free(again_text);
    json_decref(again);
    json_decref(json);
    arena_finish(&arena);
    return first;
}

/* Goal: a scenario has the same text where paths were kept of it and of others before, a long path
 * that was kept is not encoded again, and a path that goes on in one that a document lacks is
 * refused there as it is without. */
static void shared_paths_change_no_text(void)
{
    struct story_paths *paths = story_paths_create(false);
    const struct scenario_shared shared = {.paths = paths};
    uint32_t kept = 0;
    EXPECT(paths != NULL);
    for (seed = 1; seed <= SAMPLES / 4; seed++) {
        struct arena arena;
        struct scenario scenario;
        draws = 0;
        arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
        grow_scenario(&arena, &scenario);
        json_t *json = scenario_encode(&scenario);
        char *text = json_canonical_text(json);
        json_t *first = expect_text_on(&shared, &scenario, text);
        json_t *second = expect_text_on(&shared, &scenario, text);
        bool is_long =
            scenario.storyboard != NULL && scenario.storyboard->paths[0].point_count >= 64;
        EXPECT(!is_long || first == second);
        kept += is_long;
        if (is_long && scenario.storyboard->paths[0].next > 0) {
            struct scenario decoded;
            struct error error = {0};
            json_t *root = scenario_encode_on(&scenario, &shared);
            json_t *list = json_object_get(json_object_get(root, "storyboard"), "paths");
            while (json_array_size(list) > 1) {
                json_array_remove(list, 1);
            }
            EXPECT(scenario_decode_on("less", root, &shared, &arena, &decoded, NULL, &error) !=
                   STATUS_OK);
            EXPECT_CONTAINS(error.text, "less: $.storyboard.paths[0].next");
            json_decref(root);
        }
        json_decref(first);
        json_decref(second);
        json_decref(json);
        free(text);
        arena_finish(&arena);
    }
    EXPECT(kept > 5);
    story_paths_unref(paths);
}

static void expect_defaults(const struct scenario *s)
{
    EXPECT_INT(s->horizon_ticks, 10);
    EXPECT_INT(s->question, QUESTION_PLANNING);
    EXPECT(s->ego.length_m == 4.8 && s->ego.width_m == 1.9 && s->ego.wheelbase_m == 2.8);
    EXPECT(s->map.lanes[0].width_m[1] == 3.5 && s->map.lanes[0].left == -1);
    EXPECT_INT(s->map.lanes[0].left_marking, MARKING_SOLID);
    EXPECT(s->conditions.friction == 0.35 && s->conditions.visibility_m == 80);
    EXPECT_TEXT(s->slices.value[SLICE_WEATHER], "snow");
    EXPECT_TEXT(s->slices.value[SLICE_LIGHT], "day");
    EXPECT_TEXT(s->slices.value[SLICE_ROAD], "unspecified");
    EXPECT(s->criteria.no_at_fault_collision && !s->criteria.no_collision);
    EXPECT(isnan(s->criteria.score_min) && isnan(s->criteria.expected_progress_m));
    const struct agent *truck = &s->agents[0];
    EXPECT(truck->length_m == 10 && truck->width_m == 2.5 && truck->height_m == 3.5);
    EXPECT(truck->idm.desired_speed_mps == 12 && truck->idm.time_headway_s == 1.5);
    EXPECT(truck->idm.lane_changes && truck->idm.sees_ego);
    const struct agent *log = &s->agents[1];
    EXPECT(log->pose.x_m == 5 && log->speed_mps == 3 && log->idm.desired_speed_mps == 4);
    const struct intervention *snow = &s->branches[0].interventions[0];
    EXPECT_INT(snow->tick, 7);
    EXPECT_INT(snow->conditions.weather, WEATHER_FOG);
    EXPECT(snow->conditions.visibility_m == 50);
}

/* Goal: the documented defaults. */
static void defaults_are_as_documented(void)
{
    static const char text[] =
        "{\"id\":\"s\",\"horizon_s\":1,\"map\":{\"lanes\":[{\"id\":\"a\",\"centre_line\":"
        "[[0,0],[9,0]]}]},\"ego\":{\"pose\":{\"x_m\":0,\"y_m\":0,\"heading_rad\":0},\"route\":"
        "[\"a\"]},\"agents\":[{\"id\":\"t\",\"kind\":\"truck\",\"behaviour\":\"idm\","
        "\"speed_mps\":12,\"pose\":{\"x_m\":0,\"y_m\":0,\"heading_rad\":0}},{\"id\":\"l\","
        "\"kind\":\"car\",\"behaviour\":\"replay\",\"trajectory\":[[0,5,6,0,3],[1,8,6,0,4]]}],"
        "\"conditions\":{\"weather\":\"snow\"},\"branches\":[{\"id\":\"b\",\"at_tick\":7,"
        "\"interventions\":[{\"kind\":\"conditions\",\"conditions\":{\"weather\":\"fog\"}}]}]}";
    struct arena arena;
    struct scenario scenario;
    struct error error = {0};
    json_t *json;
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    EXPECT_OK(json_read_text("text", text, sizeof text - 1, &json, &error), error);
    EXPECT_OK(scenario_decode("text", json, &arena, &scenario, &error), error);
    expect_defaults(&scenario);
    json_decref(json);
    arena_finish(&arena);
}

/* Goal: a scenario that does not fit its arena is refused, at any size of arena, and leaks or
 * touches nothing (sanitizers look). */
static void small_arenas_are_refused(void)
{
    struct arena source;
    struct scenario scenario;
    seed = 7;
    draws = 0;
    arena_init(&source, LIMIT_SCENARIO_ARENA_BYTES);
    grow_scenario(&source, &scenario);
    json_t *json = scenario_encode(&scenario);
    EXPECT(json != NULL);
    bool fitted = false;
    for (size_t bytes = 16; !fitted; bytes += 64) {
        struct arena arena;
        struct scenario decoded;
        struct error error = {0};
        arena_init(&arena, bytes);
        enum status status = scenario_decode("small", json, &arena, &decoded, &error);
        fitted = status == STATUS_OK;
        if (!fitted) {
            EXPECT_INT(status, STATUS_LIMIT);
            EXPECT_CONTAINS(error.text, "small: $");
        }
        arena_finish(&arena);
    }
    json_decref(json);
    arena_finish(&source);
}

int main(void)
{
    return TEST_RUN(TEST(random_records_come_back), TEST(shared_paths_change_no_text),
                    TEST(defaults_are_as_documented), TEST(small_arenas_are_refused));
}
