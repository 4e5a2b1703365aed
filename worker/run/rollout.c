/*
 * One rollout's state: creation, forking, looking, ending. No scheduling here; see runner.c.
 */
#include "worker/run/rollout.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/worlds/world.h"
#include "worker/models/health_world.h"
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/run/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status job_run_create(const struct job_lease *lease, struct prepared *prepared,
                           struct job_run **out, struct error *error)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct job_run *job = calloc(1, sizeof *job);
    struct rollout_result *results = calloc(1 + scenario->branch_count, sizeof *results);
    if (job == NULL || results == NULL) {
        free(job);
        free(results);
        return error_set(error, STATUS_NO_MEMORY, "job %lld: out of memory",
                         (long long)lease->job_id);
    }
    job->lease = *lease;
    job->scenario = scenario;
    job->prepared = prepared_ref(prepared);
    job->rollout_count = 1 + scenario->branch_count;
    job->results = results;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        trace_init(&results[i].trace, scenario->agent_count);
        results[i].parent = -1;
    }
    *out = job;
    return STATUS_OK;
}

void job_run_destroy(struct job_run *job)
{
    if (job == NULL) {
        return;
    }
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        trace_finish(&job->results[i].trace);
        free(job->results[i].snapshot);
        free(job->results[i].kept);
    }
    given_map_destroy(job->map);
    drive_log_close(job->past);
    free(job->controls);
    prepared_unref(job->prepared);
    free(job->results);
    free(job);
}

enum status job_run_keep(struct job_run *job, uint32_t rollout, const struct outcome *outcome,
                         struct error *error)
{
    struct rollout_result *result = &job->results[rollout];
    CHECK(result->finished && result->kept == NULL);
    result->kept = malloc(sizeof *result->kept);
    if (result->kept == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "job %lld: out of memory",
                         (long long)job->lease.job_id);
    }
    *result->kept = *outcome;
    return STATUS_OK;
}

uint32_t job_run_rollout_of(const struct job_run *job, const char *branch_id)
{
    uint32_t i = branch_id[0] == '\0' ? 0 : 1;
    while (i > 0 && i < job->rollout_count &&
           strcmp(job->scenario->branches[i - 1].id, branch_id) != 0) {
        i++;
    }
    return i;
}

enum status job_run_restore(struct job_run *job, const struct outcome *outcomes, uint32_t count,
                            struct error *error)
{
    for (uint32_t k = 0; k < count; k++) {
        const struct outcome *outcome = &outcomes[k];
        uint32_t i = job_run_rollout_of(job, outcome->branch_id);
        if (i == job->rollout_count || job->results[i].finished) {
            return error_set(error, STATUS_STORE,
                             "job %lld: the store keeps an outcome of branch \"%s\", which is none "
                             "of the scenario's or is there twice; see swerve check",
                             (long long)job->lease.job_id, outcome->branch_id);
        }
        struct rollout_result *result = &job->results[i];
        result->started = true;
        result->finished = true;
        result->verdict = outcome->verdict;
        result->reasons = outcome->reasons;
        result->metrics = outcome->metrics;
        result->ticks = outcome->ticks;
        result->prefix_ticks = outcome->prefix_ticks;
        memcpy(result->trace_hash, outcome->trace_hash, sizeof result->trace_hash);
        memcpy(result->error, outcome->error, sizeof result->error);
        job->finished_count++;
        TRY(job_run_keep(job, i, outcome, error));
        if (outcome->verdict == VERDICT_INVALID) {
            result->invalid = result->kept->health_check;
            result->invalid_tick = outcome->health_tick;
            result->invalid_value = outcome->health_value;
            result->invalid_threshold = outcome->health_threshold;
        }
    }
    return STATUS_OK;
}

static enum status allocate(struct job_run *job, uint32_t wants, struct rollout **out,
                            struct error *error)
{
    struct rollout *rollout = calloc(1, sizeof *rollout);
    if (rollout == NULL) {
        goto no_memory;
    }
    rollout->job = job;
    rollout->slot = -1;
    rollout->score = malloc(score_bytes(job->scenario->horizon_ticks, job->scenario->agent_count));
    if (rollout->score == NULL) {
        goto no_memory;
    }
    rollout->wants = wants;
    bool here = (wants & SWERVE_WANTS_DEVICE) == 0;
    if (here && (wants & SWERVE_WANTS_BEV) != 0) {
        rollout->bev = calloc(1, BEV_BYTES);
        if (rollout->bev == NULL) {
            goto no_memory;
        }
    }
    if (here && (wants & SWERVE_WANTS_CAMERAS) != 0) {
        rollout->cameras = calloc(CAMERA_COUNT, CAMERA_BYTES);
        if (rollout->cameras == NULL) {
            goto no_memory;
        }
    }
    if (job->sensors != NULL && shots_create(job->sensors, &rollout->shots, error) != STATUS_OK) {
        rollout_destroy(rollout);
        return error->status;
    }
    if ((wants & (SWERVE_WANTS_OBJECTS | SWERVE_WANTS_SIGNALS)) != 0) {
        rollout->given = malloc(sizeof *rollout->given);
        if (rollout->given == NULL) {
            goto no_memory;
        }
        given_init(rollout->given);
    }
    *out = rollout;
    return STATUS_OK;
no_memory:
    rollout_destroy(rollout);
    return error_set(error, STATUS_NO_MEMORY, "rollout: out of memory");
}

/* The log from tick 0 on, without the steering that was logged. */
static enum status give_controls(struct job_run *job, struct error *error)
{
    const struct controls_log *log = &job->scenario->controls.log;
    if (job->controls != NULL) {
        return STATUS_OK;
    }
    job->controls = calloc(log->count - CONTROLS_CONTEXT, sizeof *job->controls);
    TRY(memory_check(job->controls, error, "job %lld: no memory for its log",
                     (long long)job->lease.job_id));
    for (uint32_t i = CONTROLS_CONTEXT; i < log->count; i++) {
        const struct controls_row *row = &log->rows[i];
        job->controls[i - CONTROLS_CONTEXT] = (struct swerve_controls_row){
            row->target_mps2, row->roll_lataccel_mps2, row->v_ego_mps, row->a_ego_mps2};
    }
    return STATUS_OK;
}

/* Before the branch's takeover, so that there is nothing yet to be copied. */
static enum status make_stage(struct rollout *rollout, struct error *error)
{
    const struct branch *branch = rollout_branch(rollout);
    if (branch == NULL || !stage_is(rollout->job->scenario, branch)) {
        return STATUS_OK;
    }
    rollout->stage = stage_create(rollout->job->prepared, branch);
    return memory_check(rollout->stage, error, "rollout: out of memory");
}

enum status rollout_create(struct job_run *job, int32_t branch, bool solo, uint32_t wants,
                           struct rollout **out, struct error *error)
{
    struct rollout *rollout = NULL;
    if (job->scenario->map.signal_count == 0) {
        wants &= ~(uint32_t)SWERVE_WANTS_SIGNALS; /* nothing more is shown than without */
    }
    if (job->scenario->controls.log.count == 0) {
        wants &= ~(uint32_t)SWERVE_WANTS_CONTROLS;
    }
    if ((wants & SWERVE_WANTS_CONTROLS) != 0) {
        TRY(give_controls(job, error));
    }
    if ((wants & SWERVE_WANTS_MAP) != 0 && job->map == NULL) {
        TRY(given_map_create(job->prepared, &job->map, error));
    }
    job->objects_source = given_source(wants, job->objects_of_world);
    given_text(wants | sensors_wants(job->sensors), job->objects_source, job->given);
    if (job->chunks[0] != '\0') {
        size_t used = strlen(job->given);
        CHECK(used + strlen(job->chunks) < sizeof job->given);
        strcpy(job->given + used, job->chunks);
    }
    TRY(allocate(job, wants, &rollout, error));
    rollout->branch = branch;
    rollout->solo = solo;
    rollout->score = score_init(rollout->score, job->prepared);
    rollout->route_s_m = -1.0;
    rollout->bev_time_ns = -1;
    for (int i = 0; i < CAMERA_COUNT; i++) {
        rollout->camera_time_ns[i] = -1;
    }
    actuation_init(&rollout->actuation, job->lease.spec.seed);
    trace_init(&rollout->trace, job->scenario->agent_count);
    if (make_stage(rollout, error) != STATUS_OK) {
        rollout_destroy(rollout);
        return STATUS_NO_MEMORY;
    }
    rollout->trace.keyframes.period_ticks = job->keyframes_period_ticks;
    trace_expect_pictures(&rollout->trace, job->keyframes_period_ticks,
                          1 + job->scenario->branch_count);
    rollout->trace.reel.room = job->filmed ? &job->film_room_bytes : NULL;
    *out = rollout;
    return STATUS_OK;
}

enum status rollout_fork(const struct rollout *parent, int32_t branch, uint32_t tick,
                         struct rollout **out, struct error *error)
{
    struct rollout *rollout = NULL;
    TRY(allocate(parent->job, parent->wants, &rollout, error));
    rollout->branch = branch;
    rollout->prefix_ticks = tick;
    rollout->skipped = parent->skipped;
    rollout->route_s_m = parent->route_s_m;
    rollout->actuation = parent->actuation;
    rollout->health = parent->health;
    rollout->validity = parent->validity;
    rollout->score = score_init(rollout->score, parent->job->prepared);
    score_copy(rollout->score, parent->score);
    trace_fork(&rollout->trace, &parent->trace, tick);
    if (make_stage(rollout, error) != STATUS_OK) {
        rollout_destroy(rollout);
        return STATUS_NO_MEMORY;
    }
    rollout->plans = parent->plans;
    rollout->bev_time_ns = parent->bev_time_ns;
    memcpy(rollout->camera_time_ns, parent->camera_time_ns, sizeof rollout->camera_time_ns);
    if (parent->given != NULL) {
        *rollout->given = *parent->given;
    }
    if (parent->bev != NULL) {
        memcpy(rollout->bev, parent->bev, BEV_BYTES);
    }
    if (parent->cameras != NULL) {
        memcpy(rollout->cameras, parent->cameras, (size_t)CAMERA_COUNT * CAMERA_BYTES);
    }
    if (parent->shots != NULL) {
        shots_copy(rollout->shots, parent->shots);
    }
    *out = rollout;
    return STATUS_OK;
}

void rollout_destroy(struct rollout *rollout)
{
    if (rollout == NULL) {
        return;
    }
    trace_finish(&rollout->trace);
    free(rollout->score);
    stage_destroy(rollout->stage);
    checkpoint_destroy(rollout->checkpoint);
    free(rollout->given);
    free(rollout->bev);
    free(rollout->cameras);
    shots_destroy(rollout->shots);
    free(rollout);
}

const struct branch *rollout_branch(const struct rollout *rollout)
{
    return rollout->branch == ROLLOUT_MAIN ? NULL
                                           : &rollout->job->scenario->branches[rollout->branch];
}

void rollout_episode(const struct rollout *rollout, struct swerve_episode *out)
{
    const struct scenario *scenario = rollout->job->scenario;
    _Static_assert(sizeof(struct swerve_log_point) == sizeof(struct trajectory_point),
                   "a log is handed to planners as it is stored");
    *out = (struct swerve_episode){
        .session = rollout->session,
        .horizon_ticks = scenario->horizon_ticks,
        .seed = rollout->job->lease.spec.seed,
        .tick_s = TICK_S,
        .scenario_id = scenario->id,
        .prompt = scenario->prompt,
        .ego_length_m = scenario->ego.length_m,
        .ego_width_m = scenario->ego.width_m,
        .ego_wheelbase_m = scenario->ego.wheelbase_m,
        .log_count = scenario->ego.log.point_count,
        .log = (const struct swerve_log_point *)scenario->ego.log.points,
        .map = rollout->job->map != NULL ? given_map_of(rollout->job->map) : NULL,
        .objects_source = (uint32_t)rollout->job->objects_source,
        .controls_count =
            rollout->job->controls != NULL ? scenario->controls.log.count - CONTROLS_CONTEXT : 0,
        .controls = rollout->job->controls,
    };
}

/* Distance by which same-direction driving lanes reach beyond this one on a side (0: left, 1:
 * right). */
static double adjacent_m(const struct map *map, int32_t lane, int side)
{
    const struct lane *own = &map->lanes[lane];
    int32_t next = side == 0 ? own->left : own->right;
    bool opposite = side == 0 ? own->left_opposite : own->right_opposite;
    if (next < 0 || opposite || map->lanes[next].kind != LANE_DRIVING) {
        return 0.0;
    }
    return map->lanes[next].width_m[0];
}

static void fill_route(struct rollout *rollout, const struct scene *scene)
{
    const struct prepared *prepared = rollout->job->prepared;
    const struct route *route = prepared_route(prepared);
    const struct map *map = roadmap_map(prepared_roadmap(prepared));
    const struct pose *ego = &scene->ego.pose;
    double s;
    double c;
    dmath_sincos(ego->heading_rad, &s, &c);
    for (int i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        double s_m = rollout->route_s_m + i * SWERVE_ROUTE_STEP_M;
        struct pose at = route_pose_at(route, s_m, 0.0);
        double dx = at.x_m - ego->x_m;
        double dy = at.y_m - ego->y_m;
        int32_t lane = route_lane_at(route, s_m);
        /* Width at the lane's start serves: lanes here change width slowly, and the route's own
         * arc length is not the lane's. */
        double half_m = lane >= 0 ? map->lanes[lane].width_m[0] / 2 : 1.75;
        rollout->route_points[i] = (struct swerve_route_point){
            .x_m = (float)(c * dx + s * dy),
            .y_m = (float)(-s * dx + c * dy),
            .speed_limit_mps = lane >= 0 ? (float)map->lanes[lane].speed_limit_mps : 0.0f,
            .left_m = (float)half_m,
            .right_m = (float)half_m,
            .adjacent_left_m = lane >= 0 ? (float)adjacent_m(map, lane, 0) : 0.0f,
            .adjacent_right_m = lane >= 0 ? (float)adjacent_m(map, lane, 1) : 0.0f,
        };
    }
}

/* Draws what its sensors see into the rollout's own pictures. */
static void see(struct rollout *rollout, const struct world *world, uint32_t dark,
                struct swerve_observation *out)
{
    const bool returns_alone = (rollout->wants & PLANNER_WANTS_RETURNS) != 0;
    struct observation_buffers buffers = {
        .bev = dark & SENSOR_LIDAR ? NULL : rollout->bev,
        .returns_alone = returns_alone && (rollout->wants & PLANNER_WATCHED) == 0,
    };
    rollout->observation_digest = 0;
    out->bev = rollout->bev;
    for (int i = 0; i < CAMERA_COUNT && rollout->cameras != NULL; i++) {
        uint8_t *camera = rollout->cameras + (size_t)i * CAMERA_BYTES;
        out->camera[i] = camera;
        buffers.camera[i] = dark & (uint32_t)SENSOR_CAMERA_LEFT << i ? NULL : camera;
    }
    if (rollout->bev == NULL && rollout->cameras == NULL) {
        return;
    }
    world->ops->slot_observe(world, (uint32_t)rollout->slot, &buffers);
    if (rollout->bev != NULL) {
        rollout->observation_digest = returns_alone ? trace_digest_returns(rollout->bev)
                                                    : trace_digest(1, rollout->bev, BEV_BYTES);
    }
    if (rollout->cameras != NULL) {
        rollout->observation_digest = trace_digest(rollout->observation_digest, rollout->cameras,
                                                   (size_t)CAMERA_COUNT * CAMERA_BYTES);
    }
}

/* A sensor that has been dark from the first tick on shows what buffers begin with. */
static enum view_update look_of(uint32_t dark, int64_t time_ns)
{
    return dark == 0 ? VIEW_DRAW : time_ns >= 0 ? VIEW_KEEP : VIEW_CLEAR;
}

/* The same in its session's view; times are still those of the last look. */
static void see_there(const struct rollout *rollout, const struct world *world, uint32_t dark,
                      struct swerve_observation *out, struct world_view *view)
{
    struct observation_buffers there;
    CHECK(view != NULL); /* who wants the device gives one */
    world->ops->view_address(world, rollout->session, &there);
    *view = (struct world_view){
        .slot = (uint32_t)rollout->slot,
        .view = rollout->session,
        .bev = look_of(dark & SENSOR_LIDAR, rollout->bev_time_ns),
    };
    out->bev = there.bev;
    for (int i = 0; i < CAMERA_COUNT; i++) {
        out->camera[i] = there.camera[i];
        view->cameras[i] =
            look_of(dark & (uint32_t)SENSOR_CAMERA_LEFT << i, rollout->camera_time_ns[i]);
    }
}

/* Surroundings of ego, for planners of version 3. */
static void look_around(struct rollout *rollout, const struct scene *scene, uint32_t dark)
{
    rollout->around = (struct swerve_surroundings){0};
    rollout->objects_digest = 0;
    if (rollout->given == NULL) {
        return;
    }
    given_look(rollout->given, rollout->wants, rollout->job->objects_source, rollout->job->scenario,
               scene, dark, &rollout->around);
    if (rollout->around.signal_count > 0) {
        given_stops(rollout->given, rollout->job->prepared,
                    rollout->route_s_m + rollout->job->scenario->ego.length_m / 2);
    }
    rollout->objects_digest =
        trace_digest(1, (const uint8_t *)rollout->around.objects,
                     rollout->around.object_count * sizeof rollout->around.objects[0]);
    rollout->objects_digest =
        trace_digest(rollout->objects_digest, (const uint8_t *)rollout->around.signals,
                     rollout->around.signal_count * sizeof rollout->around.signals[0]);
}

/* When the sensors that the planner wants were last seen by. */
static void set_times(struct rollout *rollout, uint32_t dark, int64_t now_ns)
{
    if ((rollout->wants & SWERVE_WANTS_BEV) != 0 && !(dark & SENSOR_LIDAR)) {
        rollout->bev_time_ns = now_ns;
    }
    for (int i = 0; i < CAMERA_COUNT && (rollout->wants & SWERVE_WANTS_CAMERAS) != 0; i++) {
        if (!(dark & (uint32_t)SENSOR_CAMERA_LEFT << i)) {
            rollout->camera_time_ns[i] = now_ns;
        }
    }
}

void rollout_observe(struct rollout *rollout, const struct world *world, const struct scene *scene,
                     struct swerve_observation *out, struct world_view *view)
{
    uint32_t dark = actuation_sensors_dark(&rollout->actuation, scene->tick);
    int64_t now_ns = (int64_t)scene->tick * TICK_NS;
    struct vec2 at = {scene->ego.pose.x_m, scene->ego.pose.y_m};
    rollout->route_s_m =
        route_project(prepared_route(rollout->job->prepared), at, rollout->route_s_m).s_m;
    fill_route(rollout, scene);
    const struct ego_state *ego = &scene->ego;
    *out = (struct swerve_observation){
        .session = rollout->session,
        .tick = scene->tick,
        .time_ns = now_ns,
        .x_m = ego->pose.x_m,
        .y_m = ego->pose.y_m,
        .heading_rad = ego->pose.heading_rad,
        .speed_mps = ego->speed_mps,
        .accel_mps2 = ego->accel_mps2,
        .lat_accel_mps2 = ego->lat_accel_mps2,
        .yaw_rate_rps = ego->yaw_rate_rps,
        .steer_rad = ego->steer_rad,
        .route_count = SWERVE_ROUTE_POINTS,
        .route = rollout->route_points,
    };
    if ((rollout->wants & SWERVE_WANTS_DEVICE) != 0) {
        see_there(rollout, world, dark, out, view);
    } else {
        see(rollout, world, dark, out);
    }
    look_around(rollout, scene, dark);
    set_times(rollout, dark, now_ns);
    out->bev_time_ns = rollout->bev_time_ns;
    memcpy(out->camera_time_ns, rollout->camera_time_ns, sizeof out->camera_time_ns);
}

enum status rollout_shoot(struct rollout *rollout, const struct world *world,
                          const struct swerve_observation *observation, struct swerve_sensors *out,
                          struct error *error)
{
    const uint32_t dark = actuation_sensors_dark(&rollout->actuation, observation->tick);
    *out = (struct swerve_sensors){0};
    if (rollout->shots == NULL) {
        return STATUS_OK;
    }
    TRY(shots_take(rollout->shots, world, (uint32_t)rollout->slot, dark, observation->time_ns,
                   error));
    rollout->observation_digest = shots_digest(rollout->shots);
    *out = shots_show(rollout->shots);
    return STATUS_OK;
}

void rollout_charge(struct rollout *rollout)
{
    struct rollout_result *result = &rollout->job->results[rollout->branch + 1];
    result->device_ns += rollout->device_ns;
    result->metres_mm += (int64_t)floor(rollout->distance_m * (double)MM_PER_M + 0.5);
    result->flop += rollout->flop;
    if (rollout->pages_used_percent > result->pages_used_percent) {
        result->pages_used_percent = rollout->pages_used_percent;
    }
    result->peak_flops = rollout->peak_flops;
    rollout->device_ns = 0;
    rollout->distance_m = 0.0;
    rollout->flop = 0.0;
}

/* The trace is the result's from now on. */
static void take_trace(struct rollout *rollout, struct rollout_result *result)
{
    trace_finish(&result->trace);
    result->trace = rollout->trace;
    trace_init(&rollout->trace, rollout->trace.agent_count);
}

/* NULL: the store keeps its outcome already. */
static struct rollout_result *own_result(struct rollout *rollout, uint32_t ticks)
{
    struct rollout_result *result = &rollout->job->results[rollout->branch + 1];
    if (result->kept != NULL) {
        take_trace(rollout, result);
        return NULL;
    }
    CHECK(!result->finished);
    result->finished = true;
    result->ticks = ticks;
    result->prefix_ticks = rollout->prefix_ticks;
    result->parent = rollout->branch != ROLLOUT_MAIN && !rollout->solo ? 0 : -1;
    rollout_charge(rollout);
    health_world_drive(&rollout->health.world, &result->drive_health);
    trace_hash_hex(&rollout->trace, result->trace_hash);
    take_trace(rollout, result);
    rollout->job->finished_count++;
    return result;
}

void rollout_plan(struct rollout *rollout, const struct swerve_observation *observation,
                  const struct swerve_answer *answer)
{
    const double wheelbase_m = rollout->job->scenario->ego.wheelbase_m;
    if (rollout->actuation.override != NULL) {
        plans_break(&rollout->plans);
    } else {
        plans_add(&rollout->plans, observation->tick, observation, wheelbase_m, answer);
    }
    trace_keep_plan(&rollout->trace, observation->tick,
                    (struct vec2){observation->x_m, observation->y_m}, answer, &rollout->around);
    if (rollout->stage != NULL) {
        stage_plan(rollout->stage, observation->tick, observation, answer);
    }
}

/* All that is measured of a drive. */
static void measure(const struct rollout *rollout, struct rollout_result *result)
{
    score_finish(rollout->score, &result->metrics, &result->verdict, &result->reasons);
    result->metrics.extended_comfort = plans_comfort(&rollout->plans);
    if (rollout->stage != NULL) {
        stage_finish(rollout->stage, &result->metrics.stage_distance_m,
                     &result->metrics.stage_epdms);
    }
}

/* Puts the sentence of an earlier death behind the error. */
static void keep_death(struct rollout_result *result, const char *death)
{
    size_t bytes = strlen(result->error);
    if (death[0] != '\0' && bytes + 1 < sizeof result->error) {
        snprintf(result->error + bytes, sizeof result->error - bytes, "%s%s", bytes > 0 ? "\n" : "",
                 death);
    }
}

/* The verdict and its words; result->error is "". */
static void conclude(struct rollout *rollout, struct rollout_result *result, const char *error)
{
    if (error[0] != '\0') {
        result->verdict = VERDICT_PLANNER_ERROR;
        result->reasons = 0;
        snprintf(result->error, sizeof result->error, "%s", error);
        return;
    }
    if (rollout->validity.check == VALIDITY_OK &&
        score_cut_short(rollout->score, result->reasons)) {
        validity_cut_short(&rollout->validity, result->metrics.collision_tick,
                           result->metrics.collision_agent, result->metrics.impact_speed_mps);
    }
    if (rollout->validity.check != VALIDITY_OK) {
        const struct validity *validity = &rollout->validity;
        result->verdict = VERDICT_INVALID;
        result->reasons = 0;
        result->invalid = validity_check_names[validity->check];
        result->invalid_tick = validity->tick;
        result->invalid_value = validity->value;
        result->invalid_threshold = validity->threshold;
        validity_sentence(validity, rollout->job->scenario, result->error, sizeof result->error);
    }
}

void rollout_finish(struct rollout *rollout, uint32_t ticks, const char *error)
{
    char death[OUTCOME_ERROR_BYTES];
    struct rollout_result *result = own_result(rollout, ticks);
    if (result == NULL) {
        return;
    }
    measure(rollout, result);
    memcpy(death, result->error, sizeof death);
    result->error[0] = '\0';
    conclude(rollout, result, error);
    keep_death(result, death);
}

static void health_sentence(const struct health_verdict *health, char *text, size_t bytes)
{
    char where[32] = "ego or the world";
    if (health->check == HEALTH_WORLD) {
        snprintf(text, bytes, "health: world at tick %u: %s", health->tick, health->said);
        return;
    }
    if (health->agent >= 0) {
        snprintf(where, sizeof where, "agent %d", health->agent);
    }
    if (health->check == HEALTH_NOT_FINITE) {
        snprintf(text, bytes,
                 "health: not_finite at tick %u, %s: its state has a NaN or an infinity",
                 health->tick, where);
        return;
    }
    snprintf(text, bytes, "health: %s at tick %u, %s: found %g, expected at %s %g",
             health_check_names[health->check], health->tick, where, health->value,
             health->value < health->threshold ? "least" : "most", health->threshold);
}

void rollout_flag(struct rollout *rollout, uint32_t ticks, const struct health_verdict *health,
                  uint8_t *snapshot)
{
    char death[OUTCOME_ERROR_BYTES];
    struct rollout_result *result = own_result(rollout, ticks);
    if (result == NULL) {
        free(snapshot);
        return;
    }
    measure(rollout, result);
    result->verdict = VERDICT_FLAGGED;
    result->reasons = 0;
    result->health = *health;
    result->snapshot = snapshot;
    memcpy(death, result->error, sizeof death);
    health_sentence(health, result->error, sizeof result->error);
    keep_death(result, death);
}

void rollout_result_share(struct job_run *job, int32_t branch)
{
    const struct rollout_result *main_line = &job->results[0];
    struct rollout_result *result = &job->results[branch + 1];
    CHECK(main_line->finished && !result->finished);
    struct trace empty = result->trace;
    *result = *main_line;
    result->trace = empty;
    result->snapshot = NULL; /* the main line keeps it for both */
    result->kept = NULL;
    result->parent = 0;
    result->prefix_ticks = main_line->ticks;
    result->device_ns = 0;
    result->metres_mm = 0;
    result->flop = 0.0;
    result->pages_used_percent = 0;
    result->peak_flops = 0.0;
    job->finished_count++;
}
