/*
 * Scoring, the flow: score_update derives ego's view of the tick, then feeds each metric;
 * score_finish closes the books and compares with the scenario's criteria. The metrics with more
 * than a few lines live in score_collision.c, score_ttc.c, score_comfort.c, score_lanes.c and
 * guardian.c.
 *
 * Invariant: nothing here depends on anything but the prepared scenario and the scenes given, in
 * order.
 */
#include "worker/score/score.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/sensors/visible.h"
#include "worker/score/score_internal.h"

#include <math.h>
#include <string.h>

/* nuPlan's parameters; sources in worker/METRICS.md. */
#define OFF_DRIVABLE_MAX_M 0.3
#define WRONG_WAY_COMPLIANT_M 2.0
#define WRONG_WAY_VIOLATION_M 6.0
#define OVERSPEED_SCALE_MPS 2.23
#define LATACCEL_WEIGHT 50.0 /* of the controls challenge */
#define PROGRESS_FLOOR_M 0.1
#define TIME_SLACK_S 1e-6
enum { CENTRE_RUN_TICKS = 20 }; /* CENTRE_RUN_S */

/* Swerve's free flow, used where neither a figure nor a log says what progress to expect. */
#define STANDING_START_MPS 1.0
#define STANDING_START_ACCEL_MPS2 1.0
#define STANDING_START_SPEED_MPS (30.0 * MPS_PER_KPH)

/* ---- life cycle ---- */

size_t score_bytes(uint32_t horizon_ticks, uint32_t agent_count)
{
    size_t samples = (size_t)horizon_ticks + 1;
    size_t bytes = sizeof(struct score) + sizeof(double) * (agent_count + SIGNAL_COUNT * samples) +
                   agent_count;
    size_t align = _Alignof(max_align_t);
    return (bytes + align - 1) / align * align;
}

static double half_diagonal_m(double length_m, double width_m)
{
    return 0.5 * sqrt(length_m * length_m + width_m * width_m);
}

/* Distance an undisturbed driver would cover: at the initial speed, or the posted limit if that is
 * lower; from standstill with gentle acceleration up to the limit (30 km/h where none is posted).
 */
static double free_flow_m(const struct score *score, double start_s_m, double horizon_s)
{
    const struct scenario *scenario = score->scenario;
    int32_t lane = route_lane_at(score->route, start_s_m);
    double limit_mps = lane >= 0 ? scenario->map.lanes[lane].speed_limit_mps : 0;
    double speed_mps = scenario->ego.speed_mps;
    if (speed_mps > STANDING_START_MPS) {
        return (limit_mps > 0 ? dmath_min(speed_mps, limit_mps) : speed_mps) * horizon_s;
    }
    double target_mps = limit_mps > 0 ? limit_mps : STANDING_START_SPEED_MPS;
    double rising_s =
        dmath_clamp((target_mps - speed_mps) / STANDING_START_ACCEL_MPS2, 0.0, horizon_s);
    double risen_mps = speed_mps + STANDING_START_ACCEL_MPS2 * rising_s;
    return 0.5 * (speed_mps + risen_mps) * rising_s + risen_mps * (horizon_s - rising_s);
}

/* Progress of the logged drive along the route within the horizon. */
static double log_progress_m(const struct score *score, double horizon_s)
{
    const struct trajectory *log = &score->scenario->ego.log;
    const struct trajectory_point *first = &log->points[0];
    double start_s_m = route_project(score->route, (struct vec2){first->x_m, first->y_m}, -1).s_m;
    double s_m = start_s_m;
    for (uint32_t i = 1; i < log->point_count; i++) {
        const struct trajectory_point *a = &log->points[i - 1];
        const struct trajectory_point *b = &log->points[i];
        if (a->t_s >= horizon_s) {
            break;
        }
        double share = dmath_min(1.0, (horizon_s - a->t_s) / (b->t_s - a->t_s));
        struct vec2 point = {a->x_m + share * (b->x_m - a->x_m),
                             a->y_m + share * (b->y_m - a->y_m)};
        s_m = route_project(score->route, point, s_m).s_m;
    }
    return s_m - start_s_m;
}

static double expected_progress_m(const struct score *score)
{
    const struct scenario *scenario = score->scenario;
    double horizon_s = scenario->horizon_ticks * TICK_S;
    if (!isnan(scenario->criteria.expected_progress_m)) {
        return scenario->criteria.expected_progress_m;
    }
    if (scenario->ego.log.point_count >= 2) {
        return log_progress_m(score, horizon_s);
    }
    struct vec2 start = {scenario->ego.pose.x_m, scenario->ego.pose.y_m};
    double start_s_m = route_project(score->route, start, -1).s_m;
    double left_m = dmath_max(0.0, score->route_end_s_m - start_s_m);
    return dmath_min(left_m, free_flow_m(score, start_s_m, horizon_s));
}

struct score *score_init(void *memory, const struct prepared *prepared)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct score *score = memory;
    memset(memory, 0, score_bytes(scenario->horizon_ticks, scenario->agent_count));
    *score = (struct score){
        .prepared = prepared,
        .scenario = scenario,
        .roadmap = prepared_roadmap(prepared),
        .route = prepared_route(prepared),
        .sample_capacity = scenario->horizon_ticks + 1,
        .agent_count = scenario->agent_count,
        .ego_radius_m = half_diagonal_m(scenario->ego.length_m, scenario->ego.width_m),
        .min_distance_m = INFINITY,
        .min_ttc_s = INFINITY,
        .impact_speed_mps = NAN,
        .collision_tick = UINT32_MAX,
        .collision_agent = -1,
    };
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        score_agent_radii(score)[i] =
            half_diagonal_m(scenario->agents[i].length_m, scenario->agents[i].width_m);
    }
    score->route_end_s_m = route_length_m(score->route);
    if (scenario->ego.has_goal) {
        score->route_end_s_m = dmath_min(score->route_end_s_m,
                                         route_project(score->route, scenario->ego.goal, -1).s_m);
    }
    score->expected_progress_m = expected_progress_m(score);
    return score;
}

struct score *score_init_rest(void *memory, const struct prepared *prepared, uint32_t tick)
{
    struct score *score = score_init(memory, prepared);
    CHECK(tick < score->scenario->horizon_ticks);
    score->expected_progress_m *= 1.0 - (double)tick / score->scenario->horizon_ticks;
    return score;
}

void score_copy(struct score *to, const struct score *from)
{
    CHECK(to->prepared == from->prepared);
    *to = *from;
    memcpy(score_agent_radii(to), score_agent_radii(from), from->agent_count * sizeof(double));
    memcpy(score_touched(to), score_touched(from), from->agent_count);
    for (enum signal signal = 0; signal < SIGNAL_COUNT; signal++) {
        memcpy(score_signal(to, signal), score_signal(from, signal),
               from->sample_count * sizeof(double));
    }
}

/* ---- the tick as the metrics see it ---- */

static void view_ego(struct score *score, const struct scene *scene)
{
    const struct ego *record = &score->scenario->ego;
    const struct ego_state *state = &scene->ego;
    struct ego_view *ego = &score->ego;
    struct box box = box_make(state->pose, record->length_m, record->width_m);
    double hint_s_m = score->sample_count == 0 ? -1 : ego->route_s_m;
    struct polyline_projection on_route = route_project(score->route, box.center, hint_s_m);
    /* The axles are taken to lie evenly about the centre of the box. */
    double rear_m = record->wheelbase_m / 2;
    *ego = (struct ego_view){
        .box = box,
        .rear_axle = {box.center.x_m - rear_m * box.cos_heading,
                      box.center.y_m - rear_m * box.sin_heading},
        .velocity = {state->speed_mps * box.cos_heading, state->speed_mps * box.sin_heading},
        .speed_mps = state->speed_mps,
        .accel_mps2 = state->accel_mps2,
        .yaw_rate_rps = state->yaw_rate_rps,
        .route_s_m = on_route.s_m,
        .route_offset_m = on_route.offset_m,
        .several_lanes = -1,
        .in_intersection = -1,
    };
    box_corners(&ego->box, ego->corners);
    for (int i = 0; i < 4; i++) {
        ego->off_drivable_m =
            dmath_max(ego->off_drivable_m, roadmap_off_drivable_m(score->roadmap, ego->corners[i]));
    }
    roadmap_locate(score->roadmap, state->pose, &ego->lane);
    double friction = roadmap_friction(score->roadmap, box.center, scene->conditions.friction);
    guardian_brakes(friction, &ego->brake_mps2, &ego->lead_brake_mps2);
}

/* ---- metrics of ego alone ---- */

static void record_signals(struct score *score, const struct scene *scene)
{
    uint32_t i = score->sample_count;
    double lon = scene->ego.accel_mps2;
    double lat = scene->ego.lat_accel_mps2;
    double *heading = score_signal(score, SIGNAL_HEADING);
    score_signal(score, SIGNAL_LON_ACCEL)[i] = lon;
    score_signal(score, SIGNAL_LAT_ACCEL)[i] = lat;
    score_signal(score, SIGNAL_ACCEL)[i] = sqrt(lon * lon + lat * lat);
    heading[i] =
        i == 0 ? scene->ego.pose.heading_rad
               : heading[i - 1] + dmath_wrap_angle(scene->ego.pose.heading_rad - heading[i - 1]);
}

/* Net movement along the lane's direction over the last second; against it counts. */
static void update_direction(struct score *score, const struct scene *scene, struct vec2 moved)
{
    const struct lane_position *lane = &score->ego.lane;
    double along_m = 0.0;
    if (lane->lane >= 0) {
        enum lane_kind kind = score->scenario->map.lanes[lane->lane].kind;
        if (kind == LANE_DRIVING || kind == LANE_SHOULDER) {
            double s;
            double c;
            dmath_sincos(scene->ego.pose.heading_rad - lane->heading_error_rad, &s, &c);
            along_m = moved.x_m * c + moved.y_m * s;
        }
    }
    score->along_lane_m[score->sample_count % DIRECTION_WINDOW_TICKS] = along_m;
    double sum_m = 0.0;
    for (uint32_t k = 1; k <= DIRECTION_WINDOW_TICKS; k++) {
        sum_m += score->along_lane_m[(score->sample_count + k) % DIRECTION_WINDOW_TICKS];
    }
    score->wrong_way_max_m = dmath_max(score->wrong_way_max_m, -sum_m);
}

/* Whether ego is where the goal is, and all else that the goal asks for holds now. Comparisons with
 * NAN are false, so what is absent never fails. */
static bool at_goal(const struct score *score, const struct scene *scene)
{
    const struct ego *record = &score->scenario->ego;
    const struct goal_bounds *bounds = &record->goal_bounds;
    const struct polygon *area = &record->goal_area;
    double time_s = scene->tick * TICK_S;
    double speed_mps = scene->ego.speed_mps;
    if (time_s < bounds->time_min_s - TIME_SLACK_S || time_s > bounds->time_max_s + TIME_SLACK_S ||
        speed_mps < bounds->speed_min_mps || speed_mps > bounds->speed_max_mps) {
        return false;
    }
    double width_rad = bounds->heading_max_rad - bounds->heading_min_rad;
    if (width_rad < 2.0 * PI_RAD) {
        double turned_rad = dmath_wrap_angle(scene->ego.pose.heading_rad - bounds->heading_min_rad);
        if ((turned_rad < 0.0 ? turned_rad + 2.0 * PI_RAD : turned_rad) > width_rad) {
            return false;
        }
    }
    struct vec2 center = score->ego.box.center;
    if (area->point_count > 0) {
        return polygon_contains(area->points, area->point_count, center);
    }
    double x_m = center.x_m - record->goal.x_m;
    double y_m = center.y_m - record->goal.y_m;
    return x_m * x_m + y_m * y_m <= record->goal_radius_m * record->goal_radius_m;
}

static void update_ego_metrics(struct score *score, const struct scene *scene)
{
    const struct ego_view *ego = &score->ego;
    const struct ego *record = &score->scenario->ego;
    struct vec2 moved = {0, 0};
    if (score->sample_count == 0) {
        score->route_start_s_m = ego->route_s_m;
    } else {
        moved.x_m = ego->box.center.x_m - score->last_center.x_m;
        moved.y_m = ego->box.center.y_m - score->last_center.y_m;
    }
    score->last_center = ego->box.center;
    score->distance_m += sqrt(moved.x_m * moved.x_m + moved.y_m * moved.y_m);
    score->speed_max_mps = dmath_max(score->speed_max_mps, ego->speed_mps);
    score->off_drivable_max_m = dmath_max(score->off_drivable_max_m, ego->off_drivable_m);
    update_direction(score, scene, moved);
    double limit_mps = ego_speed_limit_mps(score);
    if (limit_mps > 0 && ego->speed_mps > limit_mps) {
        score->overspeed_sum_mps += ego->speed_mps - limit_mps;
    }
    const int32_t lane = route_lane_at(score->route, ego->route_s_m);
    centre_run_add(&score->centre, fabs(ego->route_offset_m),
                   lane >= 0 && score->scenario->map.lanes[lane].intersection, CENTRE_RUN_TICKS);
    if (record->has_goal) {
        score->goal_reached = score->goal_reached || at_goal(score, scene);
    } else {
        score->goal_reached = score->goal_reached || ego->route_s_m >= score->route_end_s_m;
    }
}

/* ---- metrics with agents ---- */

static void update_agents(struct score *score, const struct scene *scene)
{
    bool hit_at_fault = false;
    bool unsafe = false;
    double ttc_s = INFINITY;
    const double *radii = score_agent_radii(score);
    const uint8_t *touched = score_touched(score);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *state = &scene->agents[i];
        if (!state->present || touched[i] != 0) {
            continue;
        }
        struct vec2 offset = {state->pose.x_m - score->ego.box.center.x_m,
                              state->pose.y_m - score->ego.box.center.y_m};
        struct agent_view agent = {
            .index = i,
            .record = &score->scenario->agents[i],
            .state = state,
            .offset = offset,
            .distance2_m2 = offset.x_m * offset.x_m + offset.y_m * offset.y_m,
            .reach_m = score->ego_radius_m + radii[i],
        };
        enum contact contact = collision_update(score, &agent, scene->tick);
        if (contact != CONTACT_NONE) {
            hit_at_fault = hit_at_fault || contact == CONTACT_AT_FAULT;
            continue;
        }
        ttc_s = dmath_min(ttc_s, ttc_agent_s(score, &agent));
        unsafe = unsafe ||
                 (guardian_agent_unsafe(score, &agent) && visible_agent(score->scenario, scene, i));
    }
    score->min_ttc_s = dmath_min(score->min_ttc_s, hit_at_fault ? 0.0 : ttc_s);
    guardian_update(score, unsafe, guardian_leaves_road(score));
}

/* Costs of the controls challenge: the simulator's row of a tick is CONTROLS_CONTEXT - 1 on, since
 * tick 0 shows the last row of the context. */
static void update_controls(struct score *score, const struct scene *scene)
{
    const struct controls_log *log = &score->scenario->controls.log;
    const uint32_t row = scene->tick + CONTROLS_CONTEXT - 1;
    const double now_mps2 = scene->ego.lat_accel_mps2;
    if (row < CONTROLS_FIRST_COST || row >= CONTROLS_COST_END || row >= log->count) {
        return;
    }
    const double miss = log->rows[row].target_mps2 - now_mps2;
    score->controls.miss += miss * miss;
    if (score->controls.count > 0) {
        const double jerk = (now_mps2 - score->controls.last_mps2) / TICK_S;
        score->controls.jerk += jerk * jerk;
    }
    score->controls.last_mps2 = now_mps2;
    score->controls.count++;
}

static void compose_controls(const struct score *score, struct metrics *out)
{
    const uint32_t count = score->controls.count;
    out->lataccel_cost = NAN;
    out->jerk_cost = NAN;
    out->total_cost = NAN;
    if (count >= 2) {
        out->lataccel_cost = score->controls.miss / count * 100.0;
        out->jerk_cost = score->controls.jerk / (count - 1) * 100.0;
        out->total_cost = out->lataccel_cost * LATACCEL_WEIGHT + out->jerk_cost;
    }
}

void score_update(struct score *score, const struct scene *scene)
{
    CHECK(score->sample_count < score->sample_capacity);
    CHECK(score->sample_count == 0 || scene->tick == score->last_tick + 1);
    CHECK(scene->agent_count <= score->agent_count);
    view_ego(score, scene);
    record_signals(score, scene);
    update_ego_metrics(score, scene);
    score_signals_update(score, scene);
    update_agents(score, scene);
    update_controls(score, scene);
    score->last_tick = scene->tick;
    score->sample_count++;
}

bool score_guardian_active(const struct score *score)
{
    return score->guardian_active;
}

void score_guardian_act(struct score *score)
{
    score->guardian_acts = true;
}

double score_guardian_brake_mps2(const struct score *score)
{
    return score->ego.brake_mps2;
}

bool score_ended(const struct score *score)
{
    return score->ended;
}

bool score_touched_any(const struct score *score)
{
    return score->collision_count > 0;
}

bool score_cut_short(const struct score *score, uint32_t reasons)
{
    const uint32_t later = REASON_GOAL_NOT_REACHED | REASON_PROGRESS | REASON_SCORE;
    return score->ended && !score->at_fault && reasons != 0 && (reasons & ~later) == 0;
}

/* ---- closing ---- */

/* nuPlan's ratio, floored so that standing still where the expert stood still is full progress. */
static double progress_ratio(double progress_m, double expected_m)
{
    if (progress_m < -PROGRESS_FLOOR_M) {
        return 0.0;
    }
    return dmath_min(1.0, dmath_max(progress_m, PROGRESS_FLOOR_M) /
                              dmath_max(expected_m, PROGRESS_FLOOR_M));
}

static double speed_limit_score(const struct score *score)
{
    if (score->sample_count < 2) {
        return 1.0;
    }
    double duration_s = (score->sample_count - 1) * TICK_S;
    double loss = score->overspeed_sum_mps * TICK_S / (OVERSPEED_SCALE_MPS * duration_s);
    return dmath_max(0.0, 1.0 - loss);
}

static double direction_score(double wrong_way_m)
{
    if (wrong_way_m < WRONG_WAY_COMPLIANT_M) {
        return 1.0;
    }
    return wrong_way_m < WRONG_WAY_VIOLATION_M ? 0.5 : 0.0;
}

static void compose(const struct score *score, struct metrics *out)
{
    out->no_at_fault_collision = score->at_fault ? 0.0 : 1.0;
    out->drivable_area = score->off_drivable_max_m >= OFF_DRIVABLE_MAX_M ? 0.0 : 1.0;
    out->driving_direction = direction_score(score->wrong_way_max_m);
    out->progress_m = score->sample_count > 0 ? score->ego.route_s_m - score->route_start_s_m : 0;
    out->progress = progress_ratio(out->progress_m, score->expected_progress_m);
    out->making_progress = out->progress >= METRICS_MAKING_PROGRESS_MIN ? 1.0 : 0.0;
    out->ttc = score->min_ttc_s > METRICS_TTC_BOUND_S ? 1.0 : 0.0;
    out->speed_limit = speed_limit_score(score);
    out->lane_keeping = score->centre.kept_off ? 0.0 : 1.0;
    out->traffic_light = score->ran_red_light ? 0.0 : 1.0;
    out->comfort = 1.0;
    out->accel_min_mps2 = NAN;
    out->jerk_max_mps3 = NAN;
    if (score->sample_count > 0) {
        struct comfort comfort = comfort_measure(score);
        out->comfort = comfort.comfortable ? 1.0 : 0.0;
        out->accel_min_mps2 = comfort.lon_accel_min_mps2;
        out->jerk_max_mps3 = comfort.jerk_max_mps3;
    }
    out->score = metrics_score(out);
}

/* A bit per criterion that is applied and not met. A comparison with NAN is false, so an absent
 * number never fails. */
static uint32_t judge(const struct score *score, const struct metrics *metrics)
{
    const struct criteria *criteria = &score->scenario->criteria;
    const struct {
        bool broken;
        enum reason reason;
    } rules[] = {
        {criteria->no_at_fault_collision && metrics->at_fault, REASON_AT_FAULT_COLLISION},
        {criteria->no_collision && metrics->collision_count > 0, REASON_COLLISION},
        {criteria->stay_drivable && metrics->drivable_area == 0, REASON_OFF_DRIVABLE},
        {criteria->right_direction && metrics->driving_direction == 0, REASON_WRONG_DIRECTION},
        {criteria->reach_goal && !metrics->goal_reached, REASON_GOAL_NOT_REACHED},
        {criteria->comfortable && metrics->comfort == 0, REASON_UNCOMFORTABLE},
        {metrics->min_ttc_s < criteria->min_ttc_s, REASON_TTC},
        {metrics->min_distance_m < criteria->min_distance_m, REASON_DISTANCE},
        {score->impact_speed_max_mps > criteria->impact_speed_max_mps, REASON_IMPACT_SPEED},
        {metrics->progress < criteria->progress_min, REASON_PROGRESS},
        {metrics->score < criteria->score_min, REASON_SCORE},
        {metrics->speed_max_mps > criteria->speed_max_mps, REASON_SPEED},
        {criteria->obey_signals && score->ran_red_light, REASON_RED_LIGHT},
        {criteria->obey_signals && score->ran_stop_sign, REASON_STOP_SIGN},
        {metrics->total_cost > criteria->total_cost_max, REASON_COST},
    };
    uint32_t reasons = 0;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (rules[i].broken) {
            reasons |= (uint32_t)rules[i].reason;
        }
    }
    return reasons;
}

void score_finish(const struct score *score, struct metrics *metrics, enum verdict *verdict,
                  uint32_t *reasons)
{
    struct metrics out = {
        .min_ttc_s = score->min_ttc_s,
        .min_distance_m = score->min_distance_m,
        .impact_speed_mps = score->impact_speed_mps,
        .extended_comfort = NAN, /* of plans, which are not seen here */
        .stage_distance_m = NAN,
        .stage_epdms = NAN,
        .distance_m = score->distance_m,
        .speed_max_mps = score->speed_max_mps,
        .intervention_count = score->intervention_count,
        .collision_count = score->collision_count,
        .collision_tick = score->collision_tick,
        .collision_agent = score->collision_agent,
        .collision_kind = score->collision_kind,
        .at_fault = score->at_fault,
        .goal_reached = score->goal_reached,
    };
    compose(score, &out);
    compose_controls(score, &out);
    *reasons = judge(score, &out);
    *verdict = *reasons == 0 ? VERDICT_PASS : VERDICT_FAIL;
    *metrics = out;
}
