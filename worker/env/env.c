/*
 * The C ABI over environments: checks what comes from outside, steps all drives together.
 *
 * The world is stepped by one thread (a learned one by its own); acting and looking, which is most
 * of the work, are shared by several. Scenarios are prepared when first driven and kept until the
 * handle is closed.
 */
#include "worker/env/env_internal.h"
#include "worker/env/env_scene.h"

#include "base/check.h"
#include "schemas/outcome_json.h"
#include "worker/models/sampler.h"
#include "worker/run/outcome_build.h"
#include "worker/run/revision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCEL_LIMIT_MPS2 50.0 /* as of planners, see worker/planner */
#define STEER_LIMIT_RAD 2.0

struct swerve_env_state {
    const struct swerve_env *env; /* whose scenarios and world it is of */
    struct env_drive drive;
    void *world_state;
    uint32_t scenario;
};

int env_answer(enum status status, const struct error *error, char *text, uint32_t bytes)
{
    if (status != STATUS_OK && bytes > 0) {
        snprintf(text, bytes, "%s", error->text);
    }
    return (int)status;
}

locale_t env_locale_enter(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return uselocale(plain); /* 0 changes nothing */
}

void env_locale_leave(locale_t before)
{
    locale_t plain = uselocale(before);
    if (plain != before && plain != LC_GLOBAL_LOCALE) {
        freelocale(plain);
    }
}

const char *swerve_env_revision(void)
{
    return revision_hash;
}

uint32_t swerve_env_sensors(const struct swerve_env *env, uint32_t index,
                            struct swerve_env_sensor *out)
{
    if (out != NULL && index < env->choice.count) {
        const struct rig_chosen *chosen = &env->choice.sensors[index];
        *out = (struct swerve_env_sensor){.id = rig_chosen_id(&env->rig, chosen),
                                          .is_grid = chosen->kind == RIG_GRID,
                                          .rows = env->sensor_rows[index]};
        rig_chosen_size(&env->rig, chosen, &out->width, &out->height);
    }
    return env->choice.count;
}

uint32_t swerve_env_scenarios(const struct swerve_env *env)
{
    return env->suite->entry_count;
}

const char *swerve_env_scenario(const struct swerve_env *env, uint32_t index,
                                uint32_t *horizon_ticks)
{
    if (index >= env->suite->entry_count) {
        return NULL;
    }
    const struct scenario *scenario = &env->suite->entries[index].document->scenario;
    if (horizon_ticks != NULL) {
        *horizon_ticks = scenario->horizon_ticks;
    }
    return scenario->id;
}

const double *swerve_env_controls(const struct swerve_env *env, uint32_t index, uint32_t *count)
{
    _Static_assert(sizeof(struct controls_row) == SWERVE_ENV_CONTROLS * sizeof(double),
                   "rows are handed on as they are");
    const struct controls_log *log =
        index < env->suite->entry_count
            ? &env->suite->entries[index].document->scenario.controls.log
            : NULL;
    if (log == NULL || log->count <= CONTROLS_CONTEXT) {
        *count = 0;
        return NULL;
    }
    *count = log->count - CONTROLS_CONTEXT;
    return &log->rows[CONTROLS_CONTEXT].target_mps2;
}

void swerve_env_rows(const struct swerve_env *env, struct swerve_env_rows *out)
{
    const struct env_arrays *rows = &env->rows;
    *out = (struct swerve_env_rows){
        .actions = rows->actions,
        .ego = rows->ego,
        .route = rows->route,
        .bev = rows->bev,
        .cameras = rows->cameras,
        .advance_m = rows->advance_m,
        .contact = rows->contact,
        .end = rows->end,
        .tick = rows->tick,
        .scenario = rows->scenario,
        .seed = rows->seed,
    };
}

const struct scene *env_scene(const struct swerve_env *env, uint32_t index)
{
    return env->ops->slot_scene(env->world, index);
}

bool env_picture(const struct swerve_env *env, uint32_t index, const struct raster_rays *rays,
                 uint8_t *rgb)
{
    struct world_sight sight;
    if (env->ops->slot_sight == NULL) {
        return false;
    }
    env->ops->slot_sight(env->world, index, &sight);
    raster_rays_draw(sight.layers, sight.scenario, env->ops->slot_scene(env->world, index),
                     sight.seed, rays, rgb);
    return true;
}

const struct scenario_document *env_document(const struct swerve_env *env, uint32_t index)
{
    return env->suite->entries[index].document;
}

/* ---- driving ---- */

static enum status check_index(const struct swerve_env *env, uint32_t index, struct error *error)
{
    return index < env->count
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "environments: expected an index below %u, found %u", env->count, index);
}

static enum status reset_one(struct swerve_env *env, uint32_t index, uint32_t scenario,
                             uint64_t seed, struct error *error)
{
    if (env->prepared[scenario] == NULL) {
        TRY(prepared_create(&env->suite->entries[scenario].document->scenario,
                            &env->prepared[scenario], error));
    }
    env_drive_drop(env, index);
    env->rows.scenario[index] = scenario;
    return env_drive_begin(env, index, env->prepared[scenario], seed, error);
}

static enum status reset_all(struct swerve_env *env, uint32_t count, const uint32_t *which,
                             const uint32_t *scenarios, const uint64_t *seeds, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(check_index(env, which[i], error));
        if (scenarios[i] >= env->suite->entry_count) {
            return error_set(error, STATUS_USAGE,
                             "environments: expected a scenario below %u, found %u",
                             env->suite->entry_count, scenarios[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(reset_one(env, which[i], scenarios[i], seeds[i], error));
    }
    return STATUS_OK;
}

int swerve_env_reset(struct swerve_env *env, uint32_t count, const uint32_t *which,
                     const uint32_t *scenarios, const uint64_t *seeds, char *error_text,
                     uint32_t error_bytes)
{
    struct error error;
    return env_answer(reset_all(env, count, which, scenarios, seeds, &error), &error, error_text,
                      error_bytes);
}

/* Which environments are stepped; their actions may be. */
static enum status choose_active(struct swerve_env *env, const uint8_t *idle, struct error *error)
{
    for (uint32_t i = 0; i < env->count; i++) {
        const double *row = env->rows.actions + (size_t)2 * i;
        env->active[i] = env->rows.end[i] == SWERVE_ENV_GOES_ON && (idle == NULL || idle[i] == 0);
        if (env->active[i] &&
            !(fabs(row[0]) <= ACCEL_LIMIT_MPS2 && fabs(row[1]) <= STEER_LIMIT_RAD)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "environment %u: expected an acceleration within %g m/s2 and an angle "
                             "within %g rad, found %g and %g",
                             i, ACCEL_LIMIT_MPS2, STEER_LIMIT_RAD, row[0], row[1]);
        }
    }
    return STATUS_OK;
}

static void act_some(void *context, uint32_t first, uint32_t end)
{
    struct swerve_env *env = context;
    for (uint32_t i = first; i < end; i++) {
        if (env->active[i]) {
            env_drive_act(env, i);
        }
    }
}

static void look_some(void *context, uint32_t first, uint32_t end)
{
    struct swerve_env *env = context;
    for (uint32_t i = first; i < end; i++) {
        if (env->active[i]) {
            env_drive_look(env, i);
        }
    }
}

int swerve_env_step(struct swerve_env *env, const uint8_t *idle, char *error_text,
                    uint32_t error_bytes)
{
    struct error error;
    enum status status = choose_active(env, idle, &error);
    for (uint32_t i = 0; i < env->count && env->skip_steps > 0; i++) {
        if (env->active[i]) {
            THEN(status, env_skip(env, i, env->skip_steps, &error));
        }
    }
    if (status != STATUS_OK) {
        return env_answer(status, &error, error_text, error_bytes);
    }
    uint32_t chunk = env->count / (4 * threads_count(env->threads)) + 1;
    threads_run(env->threads, env->count, chunk, act_some, env);
    env->ops->step(env->world, env->reached, env->active);
    threads_run(env->threads, env->count, chunk, look_some, env);
    for (uint32_t i = 0; i < env->count; i++) {
        if (env->drives[i].out_of_memory) {
            env_drive_drop(env, i);
            status = error_set(&error, STATUS_NO_MEMORY, "environment %u: out of memory", i);
        }
    }
    return env_answer(status, &error, error_text, error_bytes);
}

enum status env_skip(struct swerve_env *env, uint32_t index, uint32_t steps, struct error *error)
{
    CHECK(index < env->count && env->rows.end[index] == SWERVE_ENV_GOES_ON);
    if (env->ops->slot_skip != NULL) {
        TRY(env->ops->slot_skip(env->world, index, steps, error));
    } else if (steps > 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "environment %u: expected no steps to be left out of world %s, which has "
                         "none, found %u",
                         index, env->ops->name, steps);
    }
    env->drives[index].skipped = steps;
    return STATUS_OK;
}

struct world_cost env_cost(const struct swerve_env *env)
{
    struct world_cost cost = {0};
    if (env->ops->cost != NULL) {
        env->ops->cost(env->world, &cost);
    }
    return cost;
}

/* ---- copies ---- */

static enum status check_goes_on(const struct swerve_env *env, uint32_t index, struct error *error)
{
    TRY(check_index(env, index, error));
    return env->rows.end[index] == SWERVE_ENV_GOES_ON
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "environment %u: expected a drive that goes on, found %s", index,
                           env->rows.end[index] == SWERVE_ENV_EMPTY ? "none: reset it first"
                                                                    : "one that has ended");
}

static void copy_row(void *rows, size_t bytes, uint32_t from, uint32_t to)
{
    if (rows != NULL) {
        memcpy((uint8_t *)rows + to * bytes, (const uint8_t *)rows + from * bytes, bytes);
    }
}

static enum status fork_env(struct swerve_env *env, uint32_t from, uint32_t to, struct error *error)
{
    struct env_arrays *rows = &env->rows;
    struct env_drive copy;
    TRY(check_goes_on(env, from, error));
    TRY(check_index(env, to, error));
    if (from == to) {
        return STATUS_OK;
    }
    TRY(env_drive_copy(env, &env->drives[from], to, &copy, error));
    env_drive_drop(env, to);
    env->ops->slot_fork(env->world, from, to);
    env->drives[to] = copy;
    copy_row(rows->ego, SWERVE_ENV_EGO * sizeof *rows->ego, from, to);
    copy_row(rows->route, sizeof(struct swerve_route_point[SWERVE_ROUTE_POINTS]), from, to);
    copy_row(rows->bev, BEV_BYTES, from, to);
    copy_row(rows->cameras, (size_t)CAMERA_COUNT * CAMERA_BYTES, from, to);
    for (uint32_t i = 0; i < env->choice.count; i++) {
        copy_row(env->sensor_rows[i], rig_chosen_bytes(&env->rig, &env->choice.sensors[i]), from,
                 to);
    }
    copy_row(rows->advance_m, sizeof *rows->advance_m, from, to);
    copy_row(rows->contact, 1, from, to);
    copy_row(rows->end, 1, from, to);
    copy_row(rows->tick, sizeof *rows->tick, from, to);
    copy_row(rows->scenario, sizeof *rows->scenario, from, to);
    copy_row(rows->seed, sizeof *rows->seed, from, to);
    return STATUS_OK;
}

int swerve_env_fork(struct swerve_env *env, uint32_t from, uint32_t to, char *error_text,
                    uint32_t error_bytes)
{
    struct error error;
    return env_answer(fork_env(env, from, to, &error), &error, error_text, error_bytes);
}

static enum status save_env(struct swerve_env *env, uint32_t from, struct swerve_env_state **out,
                            struct error *error)
{
    TRY(check_goes_on(env, from, error));
    struct swerve_env_state *state = calloc(1, sizeof *state);
    TRY(memory_check(state, error, "environments: out of memory"));
    state->env = env;
    state->scenario = env->rows.scenario[from];
    state->world_state = malloc(env->ops->slot_state_bytes(env->world));
    enum status status =
        memory_check(state->world_state, error, "environments: out of memory for a state");
    THEN(status, env_drive_copy(env, &env->drives[from], env->count, &state->drive, error));
    if (status != STATUS_OK) {
        free(state->world_state);
        free(state);
        return status;
    }
    env->ops->slot_save(env->world, from, state->world_state);
    *out = state;
    return STATUS_OK;
}

int swerve_env_save(struct swerve_env *env, uint32_t from, struct swerve_env_state **out,
                    char *error_text, uint32_t error_bytes)
{
    struct error error;
    return env_answer(save_env(env, from, out, &error), &error, error_text, error_bytes);
}

static enum status restore_env(struct swerve_env *env, struct swerve_env_state *state, uint32_t to,
                               struct error *error)
{
    struct env_drive copy;
    TRY(check_index(env, to, error));
    if (state->env != env) {
        return error_set(error, STATUS_USAGE,
                         "environment %u: expected a state that was saved with this handle, found "
                         "another's",
                         to);
    }
    TRY(env_drive_copy(env, &state->drive, to, &copy, error));
    env_drive_drop(env, to);
    env->ops->slot_restore(env->world, to, state->world_state); /* which consumes it */
    env->ops->slot_save(env->world, to, state->world_state);
    env->drives[to] = copy;
    env->rows.scenario[to] = state->scenario;
    env->rows.end[to] = SWERVE_ENV_GOES_ON;
    env->rows.contact[to] = 0;
    env->rows.advance_m[to] = 0.0;
    env_drive_show(env, to);
    return STATUS_OK;
}

int swerve_env_restore(struct swerve_env *env, struct swerve_env_state *state, uint32_t to,
                       char *error_text, uint32_t error_bytes)
{
    struct error error;
    return env_answer(restore_env(env, state, to, &error), &error, error_text, error_bytes);
}

void swerve_env_state_free(struct swerve_env *env, struct swerve_env_state *state)
{
    if (state == NULL) {
        return;
    }
    env->ops->slot_state_drop(env->world, state->world_state);
    env_drive_finish(&state->drive);
    free(state->world_state);
    free(state);
}

/* ---- outcomes ---- */

static enum status outcome_env(const struct swerve_env *env, uint32_t index, char *json,
                               uint32_t bytes, struct error *error)
{
    TRY(check_index(env, index, error));
    if (env->rows.end[index] == SWERVE_ENV_GOES_ON || env->rows.end[index] == SWERVE_ENV_EMPTY) {
        return error_set(error, STATUS_CONFLICT, "environment %u: its drive has not ended", index);
    }
    struct outcome *outcome = calloc(1, sizeof *outcome);
    TRY(memory_check(outcome, error, "environments: out of memory"));
    outcome_build(env->drives[index].job, 0, outcome);
    if (env->model != NULL && outcome->ticks > 0) {
        const struct env_drive *drive = &env->drives[index];
        model_sampler_taking(env->model->model, env->conditioning, drive->steps_least,
                             drive->steps_most, outcome->sampler);
        if (drive->by_previous) {
            sampler_add_previous(outcome->sampler, env->previous->hash);
        }
    }
    snprintf(outcome->revision, sizeof outcome->revision, "%s", revision_hash);
    snprintf(outcome->scenario_hash, sizeof outcome->scenario_hash, "%s",
             env_document(env, env->rows.scenario[index])->hash);
    outcome->metres_mm = (int64_t)floor(outcome->metrics.distance_m * (double)MM_PER_M + 0.5);
    json_t *object = outcome_encode(outcome);
    free(outcome);
    TRY(memory_check(object, error, "environments: out of memory"));
    size_t length = json_dumpb(object, json, bytes, JSON_COMPACT);
    json_decref(object);
    if (length == 0 || length >= bytes) {
        return error_set(error, STATUS_LIMIT,
                         "environment %u: its outcome has %zu bytes, there is "
                         "room for %u",
                         index, length, bytes);
    }
    json[length] = '\0';
    return STATUS_OK;
}

int swerve_env_outcome(const struct swerve_env *env, uint32_t index, char *json, uint32_t bytes,
                       char *error_text, uint32_t error_bytes)
{
    struct error error;
    return env_answer(outcome_env(env, index, json, bytes, &error), &error, error_text,
                      error_bytes);
}
