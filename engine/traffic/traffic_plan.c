/*
 * Traffic plan: which tracks a scenario's agents need, and where each of them starts.
 *
 * Lane chains: every lane continues into its first successor, so the driving lanes that agents may
 * reach (from where they start, through successors and lane changes) fall into a few chains; each
 * chain is one track and a lane change is a change of track.
 */
#include "base/array.h"
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/traffic/route_internal.h"
#include "engine/traffic/traffic.h"
#include "kernels/cpu.h"

#include <math.h>
#include <stdlib.h>

#define DRIVER_SEEN_S 1.0 /* of who was seen for less nobody knows how it drives on */
#define CHAIN_M 1500.0
#define CHAIN_OVERLAP_M 250.0 /* so that an agent sees ahead until it moves to the next chain */
#define STRAIGHT_M 50.0
#define AGENT_ROUTE_EXTENSION_M 500.0
#define LOG_EXTENSION_M 500.0
#define LOG_SPACING_M 0.5
#define TRACKS_TOTAL_MAX_M 2e6
#define IDM_HEADING_MAX_RAD (PI_RAD / 4)
#define SCRIPT_HEADING_MAX_RAD (PI_RAD / 12)

static enum status add_track(struct traffic_plan *plan, struct track *track, int32_t *index,
                             struct error *error)
{
    enum status status = array_room(&plan->tracks, plan->track_count, sizeof *plan->tracks, error);
    plan->tracks_m += track->length_m;
    if (status == STATUS_OK && plan->tracks_m > TRACKS_TOTAL_MAX_M) {
        status =
            error_set(error, STATUS_LIMIT, "the agents' paths are longer than %.0f km together",
                      TRACKS_TOTAL_MAX_M / 1000.0);
    }
    if (status != STATUS_OK) {
        track_destroy(track);
        return status;
    }
    *index = (int32_t)plan->track_count;
    plan->tracks[plan->track_count++] = track;
    return STATUS_OK;
}

static enum status finish_track(struct traffic_plan *plan, struct track_builder *builder,
                                int32_t *index, struct error *error)
{
    struct track *track;
    TRY(track_builder_finish(builder, &track, error));
    TRY(add_track(plan, track, index, error));
    return track_prepare_traffic(plan->tracks[*index], BEND_LAT_ACCEL_MPS2, BEND_DECEL_MPS2, error);
}

static enum status straight_track(struct traffic_plan *plan, struct pose start, int32_t *index,
                                  struct error *error)
{
    double s;
    double c;
    dmath_sincos(start.heading_rad, &s, &c);
    struct track_builder builder = {0};
    track_builder_add(&builder, start.x_m, start.y_m);
    track_builder_add(&builder, start.x_m + STRAIGHT_M * c, start.y_m + STRAIGHT_M * s);
    return finish_track(plan, &builder, index, error);
}

/* ---- lane chains ---- */

static int32_t next_lane(const struct map *map, int32_t lane)
{
    return map->lanes[lane].successor_count > 0 ? (int32_t)map->lanes[lane].successors[0] : -1;
}

/* Start of an agent that keeps to lanes. */
static bool agent_lane(const struct traffic_plan *plan, const struct agent *agent,
                       struct lane_position *at)
{
    bool on_foot = agent->kind == AGENT_PEDESTRIAN || agent->kind == AGENT_ANIMAL ||
                   agent->kind == AGENT_OBJECT;
    bool driven = agent->behaviour == BEHAVIOUR_IDM || agent->behaviour == BEHAVIOUR_SCRIPT;
    if (on_foot || !driven || !roadmap_locate(plan->roadmap, agent->pose, at)) {
        return false;
    }
    double limit_rad =
        agent->behaviour == BEHAVIOUR_IDM ? IDM_HEADING_MAX_RAD : SCRIPT_HEADING_MAX_RAD;
    double error_rad = fabs(at->heading_error_rad);
    return error_rad <= limit_rad || error_rad >= PI_RAD - limit_rad;
}

/* Marks the lanes of interest: a work list over successors and, for lane changers, neighbours. */
static enum status mark_lanes(const struct traffic_plan *plan, uint8_t *needed, struct error *error)
{
    const struct map *map = roadmap_map(plan->roadmap);
    uint32_t *list = calloc((size_t)map->lane_count + 1, sizeof *list);
    int32_t *previous = calloc((size_t)map->lane_count + 1, sizeof *previous);
    if (list == NULL || previous == NULL) {
        free(list);
        free(previous);
        return error_set(error, STATUS_NO_MEMORY, "no memory for the agents' lanes");
    }
    uint32_t count = 0;
    bool changes = false;
    for (uint32_t i = map->lane_count; i-- > 0;) {
        previous[i] = -1;
    }
    for (uint32_t i = map->lane_count; i-- > 0;) {
        int32_t next = next_lane(map, (int32_t)i);
        if (next >= 0) {
            previous[next] = (int32_t)i;
        }
    }
    for (uint32_t i = 0; i < plan->scenario->agent_count; i++) {
        const struct agent *agent = &plan->scenario->agents[i];
        struct lane_position at;
        if (!agent_lane(plan, agent, &at) || agent->route_count > 0) {
            continue;
        }
        changes = changes || (agent->behaviour == BEHAVIOUR_IDM && agent->idm.lane_changes);
        if (!needed[at.lane]) {
            needed[at.lane] = 1;
            list[count++] = (uint32_t)at.lane;
        }
        /* A wrong-way driver comes from the lane's far end and needs what leads to it. */
        double driven_m = 0.0;
        int32_t lane = at.lane;
        while (fabs(at.heading_error_rad) > PI_RAD / 2 && driven_m < CHAIN_M &&
               previous[lane] >= 0) {
            lane = previous[lane];
            if (!needed[lane]) {
                needed[lane] = 1;
                list[count++] = (uint32_t)lane;
            }
            driven_m += roadmap_lane_length_m(plan->roadmap, lane);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        const struct lane *lane = &map->lanes[list[k]];
        int32_t reach[3] = {next_lane(map, (int32_t)list[k]),
                            changes && !lane->left_opposite ? lane->left : -1,
                            changes && !lane->right_opposite ? lane->right : -1};
        for (int i = 0; i < 3; i++) {
            if (reach[i] >= 0 && !needed[reach[i]]) {
                needed[reach[i]] = 1;
                list[count++] = (uint32_t)reach[i];
            }
        }
    }
    free(list);
    free(previous);
    return STATUS_OK;
}

/* One chain from a lane on; lanes on it that have no chain yet get this one. */
static enum status add_chain(struct traffic_plan *plan, int32_t lane, struct error *error)
{
    const struct map *map = roadmap_map(plan->roadmap);
    struct track_builder builder = {0};
    route_add_chain(&builder, plan->roadmap, lane, CHAIN_M + CHAIN_OVERLAP_M);
    int32_t index;
    enum status status = finish_track(plan, &builder, &index, error);
    if (status != STATUS_OK) {
        return error_prefix(error, "lane %s", map->lanes[lane].id);
    }
    const struct track *track = plan->tracks[index];
    for (uint32_t i = 0; i < track->span_count; i++) {
        int32_t span_lane = track->spans[i].lane;
        if (plan->lane_track[span_lane] < 0 && track->spans[i].s_m < CHAIN_M) {
            plan->lane_track[span_lane] = index;
            plan->lane_s_m[span_lane] = track->spans[i].s_m;
        }
    }
    return STATUS_OK;
}

static enum status build_chains(struct traffic_plan *plan, struct error *error)
{
    const struct map *map = roadmap_map(plan->roadmap);
    uint8_t *needed = calloc(map->lane_count, 1);
    uint8_t *fed = calloc(map->lane_count, 1); /* some needed lane leads into it */
    enum status status = STATUS_OK;
    if (needed == NULL || fed == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the agents' lanes");
        goto done;
    }
    status = mark_lanes(plan, needed, error);
    for (uint32_t i = 0; i < map->lane_count; i++) {
        int32_t next = next_lane(map, (int32_t)i);
        if (needed[i] && next >= 0) {
            fed[next] = 1;
        }
    }
    /* Heads first, so that a chain starts as far back as it can; then what is left: cycles, and
     * lanes further on than a chain reaches. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < map->lane_count && status == STATUS_OK; i++) {
            if (needed[i] && plan->lane_track[i] < 0 && (pass == 1 || !fed[i])) {
                status = add_chain(plan, (int32_t)i, error);
            }
        }
    }
done:
    free(needed);
    free(fed);
    return status;
}

/* ---- logs ---- */

/* The logged path, thinned so that a standing vehicle's jitter leaves no knots, and continued along
 * the lane it ends in (at its offset) or straight. */
static void add_log_points(const struct traffic_plan *plan, const struct agent *agent,
                           struct track_builder *builder)
{
    const struct trajectory *log = &agent->trajectory;
    for (uint32_t i = 0; i < log->point_count; i++) {
        struct vec2 p = {log->points[i].x_m, log->points[i].y_m};
        if (builder->count > 0) {
            struct vec2 last = builder->points[builder->count - 1];
            double dx = p.x_m - last.x_m;
            double dy = p.y_m - last.y_m;
            if (dx * dx + dy * dy < LOG_SPACING_M * LOG_SPACING_M) {
                continue;
            }
        }
        track_builder_add(builder, p.x_m, p.y_m);
    }
    const struct trajectory_point *end = &log->points[log->point_count - 1];
    struct pose pose = {end->x_m, end->y_m, end->heading_rad};
    double s;
    double c;
    dmath_sincos(pose.heading_rad, &s, &c);
    bool on_foot = agent->kind == AGENT_PEDESTRIAN || agent->kind == AGENT_ANIMAL;
    struct lane_position at;
    if (on_foot || !roadmap_locate(plan->roadmap, pose, &at) ||
        fabs(at.heading_error_rad) > IDM_HEADING_MAX_RAD) {
        track_builder_add(builder, pose.x_m + STRAIGHT_M * c, pose.y_m + STRAIGHT_M * s);
        return;
    }
    const struct map *map = roadmap_map(plan->roadmap);
    double until_m = builder->length_m + LOG_EXTENSION_M;
    double from_m = at.s_m + 2.0;
    int32_t lane = at.lane;
    while (lane >= 0 && builder->length_m < until_m && !builder->failed) {
        double before_m = builder->length_m;
        double length_m = roadmap_lane_length_m(plan->roadmap, lane);
        for (double at_m = from_m; at_m < length_m && builder->length_m < until_m; at_m += 2.0) {
            struct pose on = roadmap_lane_pose(plan->roadmap, lane, at_m, at.offset_m);
            track_builder_add(builder, on.x_m, on.y_m);
        }
        from_m = dmath_max(from_m - length_m, 0.0);
        lane = next_lane(map, lane);
        if (builder->length_m <= before_m && from_m <= 0.0) {
            break;
        }
    }
    if (builder->count < 2) {
        track_builder_add(builder, pose.x_m + STRAIGHT_M * c, pose.y_m + STRAIGHT_M * s);
    }
}

/* Speed along the path: on arrival at each sample, how slow it got on the way to the next one, and
 * until when it stood there. Progress only counts forward. */
static enum status profile_log(const struct trajectory *log, const struct track *track,
                               struct agent_plan *agent, struct error *error)
{
    agent->log_cell_count = track->count;
    agent->log_cells = calloc(track->count, sizeof *agent->log_cells);
    TRY(memory_check(agent->log_cells, error, "no memory for a logged speed profile"));
    const struct trajectory_point *end = &log->points[log->point_count - 1];
    for (uint32_t k = 0; k < track->count; k++) {
        agent->log_cells[k] = (struct log_cell){(float)end->speed_mps, (float)end->speed_mps, 0.0f};
    }
    double progress_m = 0.0;
    uint32_t cell = 0;
    agent->log_cells[0].speed_mps = (float)log->points[0].speed_mps;
    agent->log_cells[0].slowest_mps = (float)log->points[0].speed_mps;
    for (uint32_t i = 0; i < log->point_count; i++) {
        const struct trajectory_point *p = &log->points[i];
        struct track_position foot =
            track_project_near(track, (struct vec2){p->x_m, p->y_m}, progress_m);
        if (foot.s_m > progress_m && foot.s_m < progress_m + 100.0) {
            progress_m = foot.s_m;
        }
        uint32_t reached = track_sample_index(track, progress_m);
        while (cell < reached) {
            cell++;
            agent->log_cells[cell].speed_mps = (float)p->speed_mps;
            agent->log_cells[cell].slowest_mps = (float)p->speed_mps;
        }
        if ((float)p->speed_mps < agent->log_cells[cell].slowest_mps) {
            agent->log_cells[cell].slowest_mps = (float)p->speed_mps;
        }
        if (p->speed_mps < LOG_STANDING_MPS) {
            agent->log_cells[cell].depart_s = (float)p->t_s;
        }
    }
    if (end->speed_mps < LOG_STANDING_MPS) { /* one that ends rolling rolls on */
        agent->log_cells[cell].depart_s = INFINITY;
    }
    return STATUS_OK;
}

static enum status plan_log(struct traffic_plan *plan, const struct agent *record,
                            struct agent_plan *agent, struct error *error)
{
    struct track_builder builder = {0};
    add_log_points(plan, record, &builder);
    TRY(finish_track(plan, &builder, &agent->log_track, error));
    return profile_log(&record->trajectory, plan->tracks[agent->log_track], agent, error);
}

/* ---- agents ---- */

static struct driver make_driver(const struct idm *idm)
{
    double a = dmath_max(idm->accel_max_mps2, 0.1);
    double b = dmath_max(idm->decel_comfort_mps2, 0.1);
    return (struct driver){
        .desired_speed_mps = dmath_max(idm->desired_speed_mps, 0.0),
        .time_headway_s = dmath_max(idm->time_headway_s, 0.0),
        .min_gap_m = dmath_max(idm->min_gap_m, 0.1),
        .accel_max_mps2 = a,
        .decel_comfort_mps2 = b,
        .half_inverse_sqrt_ab = 0.5 / sqrt(a * b),
        .politeness = idm->politeness,
        .sees_ego = idm->sees_ego,
    };
}

static void place_on_track(struct traffic_plan *plan, struct agent_plan *agent, struct pose pose,
                           int32_t track, double s_guess_m)
{
    struct vec2 point = {pose.x_m, pose.y_m};
    struct track_position at = track_project_near(plan->tracks[track], point, s_guess_m);
    agent->track = track;
    agent->s_m = at.s_m;
    agent->offset_m = at.offset_m;
    double heading = track_at(plan->tracks[track], at.s_m).heading_rad;
    double error_rad = dmath_wrap_angle(pose.heading_rad - heading);
    agent->direction = fabs(error_rad) > PI_RAD / 2 ? -1 : 1;
    agent->heading_error_rad =
        agent->direction < 0 ? dmath_wrap_angle(error_rad - PI_RAD) : error_rad;
}

static enum status plan_paths(struct traffic_plan *plan, const struct agent *record,
                              struct agent_plan *agent, struct error *error)
{
    for (uint32_t i = 0; i < LIMIT_MANOEUVRES; i++) {
        agent->path_track[i] = -1;
    }
    for (uint32_t i = 0; i < record->manoeuvre_count; i++) {
        const struct manoeuvre *manoeuvre = &record->manoeuvres[i];
        if (manoeuvre->kind != MANOEUVRE_PATH) {
            continue;
        }
        struct track_builder builder = {0};
        if (manoeuvre->path_count == 1) {
            track_builder_add(&builder, record->pose.x_m, record->pose.y_m);
        }
        for (uint32_t k = 0; k < manoeuvre->path_count; k++) {
            track_builder_add(&builder, manoeuvre->path[k].x_m, manoeuvre->path[k].y_m);
        }
        enum status status = finish_track(plan, &builder, &agent->path_track[i], error);
        if (status != STATUS_OK) {
            return error_prefix(error, "manoeuvre %u", i);
        }
    }
    return STATUS_OK;
}

/* A route ends where its lanes end; it is extended so that the agent drives on. */
static enum status plan_route(struct traffic_plan *plan, const struct agent *record,
                              struct agent_plan *agent, struct error *error)
{
    double unused;
    struct track *track;
    int32_t index = -1;
    TRY(route_build_track(plan->roadmap, record->route, record->route_count, record->pose,
                          AGENT_ROUTE_EXTENSION_M, &unused, &track, error));
    TRY(add_track(plan, track, &index, error));
    TRY(track_prepare_traffic(plan->tracks[index], BEND_LAT_ACCEL_MPS2, BEND_DECEL_MPS2, error));
    track = plan->tracks[index];
    struct vec2 point = {record->pose.x_m, record->pose.y_m};
    double s_m = track_project_window(track, point, 0.0, track->length_m).s_m;
    place_on_track(plan, agent, record->pose, index, s_m);
    return STATUS_OK;
}

static bool ever_reverses(const struct agent *record)
{
    bool reverses = record->speed_mps < 0.0;
    for (uint32_t i = 0; i < record->manoeuvre_count; i++) {
        reverses = reverses || record->manoeuvres[i].speed_mps < 0.0;
    }
    return reverses;
}

bool traffic_leaves_with_log(const struct agent *record)
{
    const struct trajectory *log = &record->trajectory;
    return record->behaviour == BEHAVIOUR_REPLAY &&
           (log->point_count == 0 ||
            log->points[log->point_count - 1].t_s - log->points[0].t_s < DRIVER_SEEN_S);
}

static enum status plan_agent(struct traffic_plan *plan, uint32_t index, struct error *error)
{
    const struct agent *record = &plan->scenario->agents[index];
    struct agent_plan *agent = &plan->agents[index];
    bool on_foot = record->kind == AGENT_PEDESTRIAN || record->kind == AGENT_ANIMAL;
    bool two_wheels = record->kind == AGENT_CYCLIST || record->kind == AGENT_MOTORCYCLE;
    agent->driver = make_driver(&record->idm);
    agent->half_length_m = record->length_m / 2;
    agent->half_width_m = record->width_m / 2;
    agent->radius_m = sqrt(agent->half_length_m * agent->half_length_m +
                           agent->half_width_m * agent->half_width_m);
    /* Agents that a storyboard moves are left alone by the traffic. */
    agent->moves =
        record->behaviour != BEHAVIOUR_STATIC && record->behaviour != BEHAVIOUR_STORYBOARD;
    bool recorded = record->behaviour == BEHAVIOUR_REPLAY;
    agent->leaves = traffic_leaves_with_log(record);
    agent->exact_log = recorded && (on_foot || agent->leaves);
    agent->reactive = record->behaviour == BEHAVIOUR_IDM || (recorded && !agent->exact_log);
    agent->yielded_to = on_foot || record->kind == AGENT_CYCLIST;
    agent->keeps_offset = record->behaviour != BEHAVIOUR_IDM || two_wheels;
    agent->track = -1;
    agent->log_track = -1;
    agent->direction = 1;
    enum status status = plan_paths(plan, record, agent, error);
    if (status == STATUS_OK && record->trajectory.point_count > 0) {
        status = plan_log(plan, record, agent, error);
    }
    if (status != STATUS_OK || !agent->moves) {
        return status;
    }
    if (record->behaviour == BEHAVIOUR_REPLAY && agent->log_track >= 0) {
        agent->track = agent->log_track;
        return STATUS_OK;
    }
    struct lane_position at;
    if (record->behaviour == BEHAVIOUR_IDM && record->route_count > 0) {
        return plan_route(plan, record, agent, error);
    }
    if (!ever_reverses(record) && agent_lane(plan, record, &at)) {
        agent->driver.changes_lanes = record->behaviour == BEHAVIOUR_IDM &&
                                      record->idm.lane_changes && !two_wheels &&
                                      fabs(at.heading_error_rad) < PI_RAD / 2;
        place_on_track(plan, agent, record->pose, plan->lane_track[at.lane],
                       plan->lane_s_m[at.lane] + at.s_m);
        return STATUS_OK;
    }
    status = straight_track(plan, record->pose, &agent->track, error);
    return status;
}

enum status traffic_plan_create(const struct scenario *scenario, const struct roadmap *roadmap,
                                struct track *route_track, struct traffic_plan **out,
                                struct error *error)
{
    enum status status = STATUS_NO_MEMORY;
    struct traffic_plan *plan = calloc(1, sizeof *plan);
    uint32_t lanes = roadmap_map(roadmap)->lane_count;
    TRY(memory_check(plan, error, "no memory for the agents"));
    plan->scenario = scenario;
    plan->roadmap = roadmap;
    plan->agent_count = scenario->agent_count;
    screen_kernels_init(&plan->screen, cpu_flags_detect());
    plan->agents = calloc((size_t)scenario->agent_count + 1, sizeof *plan->agents);
    plan->lane_track = malloc(lanes * sizeof *plan->lane_track);
    plan->lane_s_m = calloc(lanes, sizeof *plan->lane_s_m);
    if (plan->agents == NULL || plan->lane_track == NULL || plan->lane_s_m == NULL ||
        array_room(&plan->tracks, 0, sizeof *plan->tracks, NULL) != STATUS_OK) {
        error_set(error, STATUS_NO_MEMORY, "no memory for the agents");
        goto fail;
    }
    plan->tracks[plan->track_count++] = route_track;
    for (uint32_t i = 0; i < lanes; i++) {
        plan->lane_track[i] = -1;
    }
    status = track_prepare_traffic(route_track, BEND_LAT_ACCEL_MPS2, BEND_DECEL_MPS2, error);
    THEN(status, build_chains(plan, error));
    for (uint32_t i = 0; i < scenario->agent_count && status == STATUS_OK; i++) {
        status = plan_agent(plan, i, error);
        if (status != STATUS_OK) {
            error_prefix(error, "agent %s", scenario->agents[i].id);
        }
    }
    THEN(status, track_stops_create(roadmap, plan->tracks, plan->track_count, &plan->stops, error));
    for (uint32_t i = 0; i < scenario->map.signal_count; i++) {
        enum traffic_sign sign = scenario->map.signals[i].sign;
        plan->has_signs = plan->has_signs || sign != TRAFFIC_SIGN_NONE;
        plan->has_turns = plan->has_turns || sign == TRAFFIC_SIGN_GIVE_WAY_ONCOMING;
    }
    if (status != STATUS_OK) {
        goto fail;
    }
    *out = plan;
    return STATUS_OK;
fail:
    traffic_plan_destroy(plan);
    return status;
}

void traffic_plan_destroy(struct traffic_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    for (uint32_t i = 1; i < plan->track_count; i++) {
        track_destroy(plan->tracks[i]);
    }
    for (uint32_t i = 0; plan->agents != NULL && i < plan->agent_count; i++) {
        free(plan->agents[i].log_cells);
    }
    track_stops_finish(&plan->stops);
    free(plan->tracks);
    free(plan->lane_track);
    free(plan->lane_s_m);
    free(plan->agents);
    free(plan);
}
