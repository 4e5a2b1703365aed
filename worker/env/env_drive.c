/*
 * One drive of an environment: what worker/run/runner.c does with a rollout in a tick, in the same
 * order, with the caller's action in place of the planner's answer. test_worker_env holds the two
 * to the same bits.
 */
#include "worker/env/env_internal.h"

#include "worker/models/health_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void borrow_pictures(const struct swerve_env *env, uint32_t index, struct rollout *rollout)
{
    bool has_rows = index < env->count;
    rollout->wants = env->wants;
    if (has_rows && env->rows.bev != NULL) {
        rollout->bev = env->rows.bev + (size_t)index * BEV_BYTES;
    }
    if (has_rows && env->rows.cameras != NULL) {
        rollout->cameras = env->rows.cameras + (size_t)index * CAMERA_COUNT * CAMERA_BYTES;
    }
}

void env_drive_finish(struct env_drive *drive)
{
    if (drive->rollout != NULL) {
        drive->rollout->bev = NULL; /* of the rows */
        drive->rollout->cameras = NULL;
    }
    rollout_destroy(drive->rollout);
    job_run_destroy(drive->job);
    *drive = (struct env_drive){0};
}

enum status env_drive_begin(struct swerve_env *env, uint32_t index, struct prepared *prepared,
                            uint64_t seed, struct error *error)
{
    struct env_drive drive = {0};
    struct job_lease lease = {.epoch = 1, .attempt = 1};
    const struct scenario *scenario = prepared_scenario(prepared);
    lease.spec.seed = seed;
    lease.spec.tier = env->ops->tier;
    memcpy(lease.spec.scenario_id, scenario->id, sizeof lease.spec.scenario_id);
    if (env->model != NULL) {
        snprintf(lease.spec.model_hash, sizeof lease.spec.model_hash, "%s", env->model->hash);
        model_sampler(env->model->model, env->conditioning, lease.spec.sampler);
        snprintf(lease.spec.backend, sizeof lease.spec.backend, "%s", env->backend);
    }
    memcpy(lease.spec.rig, env->rig_hash, sizeof lease.spec.rig);
    enum status status = job_run_create(&lease, prepared, &drive.job, error);
    if (status == STATUS_OK) {
        drive.job->sensors = env->sensors;
    }
    THEN(status, rollout_create(drive.job, ROLLOUT_MAIN, false, 0, &drive.rollout, error));
    THEN(status, env->ops->slot_reset(env->world, index, prepared, seed, error));
    if (status != STATUS_OK) {
        env_drive_finish(&drive);
        return status;
    }
    drive.rollout->slot = (int32_t)index;
    drive.rollout->session = index;
    borrow_pictures(env, index, drive.rollout);
    given_text(env->wants | sensors_wants(env->sensors), SWERVE_OBJECTS_NONE,
               drive.job->given); /* the rollout draws none itself */
    env->drives[index] = drive;
    env->rows.end[index] = SWERVE_ENV_GOES_ON;
    env->rows.seed[index] = seed;
    env_drive_look(env, index);
    return STATUS_OK;
}

void env_drive_drop(struct swerve_env *env, uint32_t index)
{
    if (env->drives[index].rollout != NULL) {
        env->ops->slot_release(env->world, index);
        env_drive_finish(&env->drives[index]);
        env->rows.end[index] = SWERVE_ENV_EMPTY;
    }
}

enum status env_drive_copy(const struct swerve_env *env, const struct env_drive *from,
                           uint32_t index, struct env_drive *out, struct error *error)
{
    struct env_drive copy = {.touched = from->touched,
                             .skipped = from->skipped,
                             .steps_least = from->steps_least,
                             .steps_most = from->steps_most,
                             .by_previous = from->by_previous};
    TRY(job_run_create(&from->job->lease, from->job->prepared, &copy.job, error));
    copy.job->sensors = env->sensors;
    /* Of another job, and without pictures of its own. */
    struct rollout parent = *from->rollout;
    parent.job = copy.job;
    parent.wants = 0;
    parent.bev = NULL;
    parent.cameras = NULL;
    uint32_t tick = parent.trace.first_tick + parent.trace.tick_count;
    enum status status = rollout_fork(&parent, ROLLOUT_MAIN, tick, &copy.rollout, error);
    if (status != STATUS_OK) {
        env_drive_finish(&copy);
        return status;
    }
    memcpy(copy.job->given, from->job->given, sizeof copy.job->given);
    copy.rollout->prefix_ticks = 0; /* a drive in its own right */
    copy.rollout->observation_digest = from->rollout->observation_digest;
    copy.rollout->slot = (int32_t)index;
    copy.rollout->session = index;
    borrow_pictures(env, index, copy.rollout);
    *out = copy;
    return STATUS_OK;
}

/* The ticks themselves are not kept, only their hash goes on. */
static void record(struct swerve_env *env, struct env_drive *drive, const struct scene *scene,
                   struct action action, uint32_t skipped)
{
    struct error ignored;
    struct rollout *rollout = drive->rollout;
    const struct trace_extra extra = {
        .action = action,
        .sensors_dark = actuation_sensors_dark(&rollout->actuation, scene->tick),
        .guardian = score_guardian_active(rollout->score),
        .skipped = skipped,
        .observation_digest = rollout->observation_digest,
    };
    if (!env->hashes) {
        rollout->trace.tick_count++;
        return;
    }
    if (trace_append(&rollout->trace, scene, &extra, &ignored) != STATUS_OK) {
        drive->out_of_memory = true;
    }
    rollout->trace.bytes = 0;
}

/* Whether the tick that is being made, or was made last, is the previous model's. */
static bool is_by_previous(const struct swerve_env *env, const struct env_drive *drive)
{
    return env->model != NULL && model_skips_past(env->model->model, drive->skipped);
}

static void count_steps(const struct swerve_env *env, struct env_drive *drive, bool first)
{
    if (env->model == NULL) {
        return;
    }
    bool by_previous = is_by_previous(env, drive);
    uint32_t steps = by_previous ? env->previous->config->steps -
                                       model_previous_skips(env->model->model, drive->skipped)
                                 : env->model->config->steps - drive->skipped;
    drive->by_previous = by_previous || (drive->by_previous && !first);
    drive->steps_least = first || steps < drive->steps_least ? steps : drive->steps_least;
    drive->steps_most = first || steps > drive->steps_most ? steps : drive->steps_most;
}

void env_drive_act(struct swerve_env *env, uint32_t index)
{
    struct env_drive *drive = &env->drives[index];
    struct rollout *rollout = drive->rollout;
    const struct scene *scene = env->ops->slot_scene(env->world, index);
    const double *row = env->rows.actions + (size_t)2 * index;
    const struct action answer = {row[0], row[1]};
    rollout->action =
        actuation_drive(&rollout->actuation, &answer, scene, prepared_route(rollout->job->prepared),
                        rollout->job->scenario->ego.wheelbase_m, rollout->route_s_m);
    record(env, drive, scene, rollout->action, drive->skipped);
    count_steps(env, drive, scene->tick == 0);
    env->reached[index] = rollout->action;
}

/* The newest frame of each chosen sensor into its row. */
static void show_sensors(struct swerve_env *env, uint32_t index,
                         const struct swerve_observation *seen)
{
    struct env_drive *drive = &env->drives[index];
    struct swerve_sensors shown;
    struct error ignored;
    if (rollout_shoot(drive->rollout, env->world, seen, &shown, &ignored) != STATUS_OK) {
        drive->out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < shown.count; i++) {
        const struct swerve_sensor *sensor = &shown.sensors[i];
        const uint32_t newest = sensor->count - 1;
        memcpy(env->sensor_rows[i] + index * sensor->stride,
               sensor->frames + newest * sensor->stride, sensor->bytes[newest]);
    }
}

void env_drive_show(struct swerve_env *env, uint32_t index)
{
    struct rollout *rollout = env->drives[index].rollout;
    const struct scene *scene = env->ops->slot_scene(env->world, index);
    struct swerve_observation seen;
    struct world_view unused;
    _Static_assert(sizeof rollout->route_points[0] == SWERVE_ENV_ROUTE * sizeof(float) &&
                       (int)SWERVE_ENV_ROUTE_POINTS == (int)SWERVE_ROUTE_POINTS,
                   "route points are handed on as they are");
    _Static_assert((int)SWERVE_ENV_BEV_BYTES == (int)BEV_BYTES &&
                       (int)SWERVE_ENV_CAMERA_BYTES == (int)CAMERA_COUNT * (int)CAMERA_BYTES,
                   "pictures are handed on as they are");
    rollout_observe(rollout, env->world, scene, &seen, &unused);
    if (env->sensors != NULL) {
        show_sensors(env, index, &seen);
    }
    const double ego[SWERVE_ENV_EGO] = {seen.x_m,          seen.y_m,        seen.heading_rad,
                                        seen.speed_mps,    seen.accel_mps2, seen.lat_accel_mps2,
                                        seen.yaw_rate_rps, seen.steer_rad};
    memcpy(env->rows.ego + (size_t)index * SWERVE_ENV_EGO, ego, sizeof ego);
    memcpy(env->rows.route + (size_t)index * SWERVE_ENV_ROUTE_POINTS * SWERVE_ENV_ROUTE,
           rollout->route_points, sizeof rollout->route_points);
    env->rows.tick[index] = scene->tick;
    env->rows.seed[index] = rollout->job->lease.spec.seed;
}

/* Every check of this tick, as the runner's; *out is written when the answer is false. */
static bool healthy(const struct swerve_env *env, uint32_t index, const struct scene *scene,
                    struct health_verdict *out)
{
    struct rollout *rollout = env->drives[index].rollout;
    double statistic[MEASURE_COUNT];
    bool learned = env->ops->slot_frame_stats != NULL;
    bool well = health_update(&rollout->health, rollout->job->scenario, scene, !learned, out);
    if (!well || !learned) {
        return well;
    }
    const struct frame_stats *frame_stats = env->ops->slot_frame_stats(env->world, index);
    health_world_measure(&rollout->health.world, frame_stats, statistic);
    static const struct health_bounds none; /* of a world without pictures nothing is compared */
    const struct models_model *maker =
        is_by_previous(env, &env->drives[index]) ? env->previous : env->model;
    return health_world_judge(&rollout->health.world, frame_stats, statistic,
                              maker != NULL ? &maker->bounds : &none, env->conditioning, out);
}

/* End of the drive at this tick, SWERVE_ENV_GOES_ON: not. */
static enum swerve_env_end judge(struct swerve_env *env, uint32_t index, const struct scene *scene)
{
    struct env_drive *drive = &env->drives[index];
    struct rollout *rollout = drive->rollout;
    struct health_verdict health;
    if (!healthy(env, index, scene, &health)) {
        rollout_flag(rollout, scene->tick, &health, NULL);
        return SWERVE_ENV_SICK;
    }
    score_update(rollout->score, scene);
    if (rollout->validity.check == VALIDITY_OK && !score_touched_any(rollout->score)) {
        validity_update(&rollout->validity, rollout->job->prepared, scene,
                        env->ops->tier == TIER_REPLAY,
                        env->model == NULL || env->conditioning == CONDITIONING_AGENTS);
    }
    bool over = scene->tick >= rollout->job->scenario->horizon_ticks;
    if (!over && !score_ended(rollout->score)) {
        return SWERVE_ENV_GOES_ON;
    }
    bool collision = score_ended(rollout->score);
    record(env, drive, scene, (struct action){0}, 0);
    rollout_finish(rollout, scene->tick, "");
    if (!env->hashes) {
        rollout->job->results[0].trace_hash[0] = '\0';
    }
    return collision ? SWERVE_ENV_COLLISION : SWERVE_ENV_HORIZON;
}

void env_drive_look(struct swerve_env *env, uint32_t index)
{
    struct env_drive *drive = &env->drives[index];
    const struct scene *scene = env->ops->slot_scene(env->world, index);
    double before_m = drive->rollout->route_s_m; /* below 0 at the start */
    env->rows.end[index] = (uint8_t)judge(env, index, scene);
    bool touched = score_touched_any(drive->rollout->score);
    env->rows.contact[index] = touched && !drive->touched;
    drive->touched = touched;
    env_drive_show(env, index);
    env->rows.advance_m[index] = scene->tick == 0 ? 0.0 : drive->rollout->route_s_m - before_m;
}
