/*
 * Opening and closing environments: a world, a suite, and rows for what they show. See env.h.
 */
#include "engine/bench/machine.h"
#include "worker/env/env_internal.h"
#include "worker/env/env_scene.h"

#include "base/check.h"
#include "worker/models/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool allocate(struct swerve_env *env)
{
    uint32_t n = env->count;
    struct env_arrays *rows = &env->rows;
    env->prepared = calloc(env->suite->entry_count, sizeof(struct prepared *));
    env->drives = calloc(n, sizeof *env->drives);
    env->reached = calloc(n, sizeof *env->reached);
    env->active = calloc(n, 1);
    rows->actions = calloc(n, 2 * sizeof *rows->actions);
    rows->ego = calloc(n, SWERVE_ENV_EGO * sizeof *rows->ego);
    rows->route = calloc(n, sizeof(struct swerve_route_point[SWERVE_ROUTE_POINTS]));
    rows->advance_m = calloc(n, sizeof *rows->advance_m);
    rows->contact = calloc(n, 1);
    rows->end = malloc(n);
    rows->tick = calloc(n, sizeof *rows->tick);
    rows->scenario = calloc(n, sizeof *rows->scenario);
    rows->seed = calloc(n, sizeof *rows->seed);
    rows->bev = env->wants & SWERVE_WANTS_BEV ? calloc(n, BEV_BYTES) : NULL;
    rows->cameras =
        env->wants & SWERVE_WANTS_CAMERAS ? calloc(n, (size_t)CAMERA_COUNT * CAMERA_BYTES) : NULL;
    if (rows->end != NULL) {
        memset(rows->end, SWERVE_ENV_EMPTY, n);
    }
    return env->prepared && env->drives && env->reached && env->active && rows->actions &&
           rows->ego && rows->route && rows->advance_m && rows->contact && rows->end &&
           rows->tick && rows->scenario && rows->seed &&
           (rows->bev || !(env->wants & SWERVE_WANTS_BEV)) &&
           (rows->cameras || !(env->wants & SWERVE_WANTS_CAMERAS));
}

static enum status check_config(const struct swerve_env_config *config, bool learned,
                                struct error *error)
{
    if (config->abi_version != SWERVE_ENV_ABI_VERSION) {
        return error_set(error, STATUS_USAGE, "environments: expected ABI version %u, found %u",
                         SWERVE_ENV_ABI_VERSION, config->abi_version);
    }
    if (config->count < 1 || config->count > SWERVE_ENV_COUNT_MAX) {
        return error_set(error, STATUS_USAGE,
                         "environments: expected a count from 1 to %d, found %u",
                         SWERVE_ENV_COUNT_MAX, config->count);
    }
    if (config->threads > THREADS_MAX) {
        return error_set(error, STATUS_USAGE, "environments: expected at most %d threads, found %u",
                         THREADS_MAX, config->threads);
    }
    if (config->suite == NULL || (config->world == NULL && !learned)) {
        return error_set(error, STATUS_USAGE, "environments: expected a world and a suite");
    }
    return STATUS_OK;
}

static enum status choose_world(struct swerve_env *env, const char *name, struct error *error)
{
    const struct world_ops *worlds[] = {&world_object_ops, &world_replay_ops};
    for (size_t i = 0; i < COUNT_OF(worlds); i++) {
        if (strcmp(worlds[i]->name, name) == 0) {
            env->ops = worlds[i];
            const struct world_config config = {.slot_count = env->count};
            return env->ops->open(&config, &env->world, error);
        }
    }
    return error_set(error, STATUS_USAGE, "environments: expected world object or replay, found %s",
                     name);
}

static enum status check_scenario(const struct swerve_env *env, const struct scenario *scenario,
                                  struct error *error)
{
    TRY(env->ops->accepts(scenario, error));
    return scenario->horizon_ticks <= env->horizon_ticks
               ? STATUS_OK
               : error_set(
                     error, STATUS_BAD_INPUT,
                     "scenario %s: expected at most %u ticks, for which the model is trusted, "
                     "found %u",
                     scenario->id, env->horizon_ticks, scenario->horizon_ticks);
}

static enum status check_suite(const struct swerve_env *env, struct error *error)
{
    for (uint32_t i = 0; i < env->suite->entry_count; i++) {
        const struct suite_entry *entry = &env->suite->entries[i];
        if (check_scenario(env, &entry->document->scenario, error) != STATUS_OK) {
            return error_prefix(error, "%s", entry->place != NULL ? entry->place : entry->file);
        }
    }
    return env->suite->entry_count > 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "suite %s: has no scenario", env->suite->id);
}

static enum status open_learned(struct swerve_env *env, const struct env_learned *learned,
                                struct error *error)
{
    const struct models_model *model = learned->model;
    env->ops = world_ops_for_tier(model->config->tier);
    env->model = model;
    env->previous = learned->previous;
    env->conditioning = learned->conditioning;
    const struct world_config config = {
        .slot_count = env->count,
        .model = model->model,
        .previous = learned->previous != NULL ? learned->previous->model : NULL,
        .conditioning = learned->conditioning,
        .device = learned->device,
        .thread_count = learned->threads,
    };
    if (learned->device != NULL) {
        snprintf(env->backend, sizeof env->backend, "%s", learned->device->backend);
    }
    return env->ops->open(&config, &env->world, error);
}

/* ---- models of their own ---- */

/* The promoted model of the tier that the world is called after. */
static enum status open_tier(struct swerve_env *env, const struct swerve_env_model *choice,
                             enum tier tier, uint32_t threads, struct error *error)
{
    enum nn_precision precision = NN_BF16;
    struct env_learned learned = {.threads = threads};
    char sampler[LIMIT_ID_BYTES];
    if (choice->precision != NULL) {
        TRY(models_parse_precision(choice->precision, &precision, error));
    }
    if (choice->layout != NULL) {
        TRY(models_parse_conditioning(choice->layout, &learned.conditioning, error));
    }
    TRY(models_open(choice->models, NULL, &env->models, error));
    if (!models_available(env->models, tier)) {
        return models_missing(choice->models, tier, error);
    }
    TRY(models_promoted(env->models, tier, precision, &learned.model, error));
    model_sampler(learned.model->model, learned.conditioning, sampler);
    TRY(sampler_skip(sampler, choice->skip_steps, error));
    env->skip_steps = choice->skip_steps;
    env->horizon_ticks = model_horizon_ticks(learned.model->config, learned.conditioning);
    return open_learned(env, &learned, error);
}

/* The simulator of the controls challenge (docs/controls.md). */
static enum status open_controls(struct swerve_env *env, const struct swerve_env_model *choice,
                                 uint32_t threads, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    enum nn_precision precision = NN_FP32;
    if (choice->layout != NULL || choice->skip_steps != 0) {
        return error_set(error, STATUS_USAGE,
                         "environments: expected neither layout nor steps of a sampler of the "
                         "world tinyphysics, found %s",
                         choice->layout != NULL ? choice->layout : "steps");
    }
    if (choice->precision != NULL) {
        TRY(models_parse_precision(choice->precision, &precision, error));
    }
    if (precision == NN_INT8) {
        return error_set(error, STATUS_USAGE,
                         "environments: expected precision fp32 or bf16 of the world tinyphysics, "
                         "found int8");
    }
    models_directory(choice->models, path);
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/tinyphysics.onnx");
    TRY(tinyphysics_model_load(path, precision, machine_cpu_flags(precision), &env->controls,
                               error));
    env->foreign.host = env->controls;
    env->foreign.declared.horizon_ticks = CONTROLS_COST_END - CONTROLS_CONTEXT;
    env->ops = &world_tinyphysics_ops;
    const struct world_config config = {
        .slot_count = env->count, .thread_count = threads, .foreign = &env->foreign};
    return env->ops->open(&config, &env->world, error);
}

static enum status open_model(struct swerve_env *env, const struct swerve_env_config *config,
                              const struct swerve_env_model *choice, struct error *error)
{
    if (strcmp(config->world, "tinyphysics") == 0) {
        return open_controls(env, choice, config->threads, error);
    }
    for (int tier = TIER_STUDENT; tier <= TIER_TEACHER; tier++) {
        if (strcmp(config->world, tier_names[tier]) == 0) {
            return open_tier(env, choice, (enum tier)tier, config->threads, error);
        }
    }
    return error_set(error, STATUS_USAGE,
                     "environments: expected world student, teacher or tinyphysics, found %s",
                     config->world);
}

/* ---- sensors of a rig ---- */

/* Text of a choice of sensors. */
struct choice_text {
    const char *text;
    size_t bytes;
};

/* Sensors of a rig, and room for their frames. */
static enum status open_sensors(struct swerve_env *env, const struct choice_text *choice,
                                struct error *error)
{
    rig_swerve(&env->rig);
    TRY(rig_choice_decode("sensors", choice->text, choice->bytes, &env->rig, &env->choice, error));
    for (uint32_t i = 0; i < env->choice.count; i++) {
        const struct rig_chosen *chosen = &env->choice.sensors[i];
        if (chosen->kind == RIG_LIDAR || chosen->jpeg_quality > 0) {
            return error_set(error, STATUS_USAGE,
                             "environments: expected cameras as plain bytes, or the grid, found %s "
                             "%s of the rig %s",
                             chosen->kind == RIG_LIDAR ? "lidar" : "JPEG of camera",
                             rig_chosen_id(&env->rig, chosen), env->rig.id);
        }
    }
    if (env->choice.count == 0 || env->wants != 0) {
        return error_set(error, STATUS_USAGE,
                         "environments: expected sensors of the rig %s, or grid and cameras of the "
                         "built-in one, found %s",
                         env->rig.id, env->wants != 0 ? "both" : "none");
    }
    TRY(rig_hash(&env->rig, env->rig_hash, error));
    TRY(sensors_create(&env->rig, &env->choice, env->ops, &env->sensors, error));
    for (uint32_t i = 0; i < env->choice.count; i++) {
        env->sensor_rows[i] =
            calloc(env->count, rig_chosen_bytes(&env->rig, &env->choice.sensors[i]));
        TRY(memory_check(env->sensor_rows[i], error,
                         "environments: out of memory for %u frames of %s", env->count,
                         rig_chosen_id(&env->rig, &env->choice.sensors[i])));
    }
    return STATUS_OK;
}

/* Origin of a world, the first that is there: a model of the caller's, one of the handle's
 * own, or the world that the configuration names; and sensors of a rig, or none. */
struct source {
    const struct env_learned *learned;
    const struct swerve_env_model *model;
    const struct choice_text *sensors;
};

static enum status open_world(struct swerve_env *env, const struct swerve_env_config *config,
                              const struct source *source, struct error *error)
{
    return source->learned != NULL ? open_learned(env, source->learned, error)
           : source->model != NULL ? open_model(env, config, source->model, error)
                                   : choose_world(env, config->world, error);
}

static enum status open_env(const struct swerve_env_config *config, const struct source *source,
                            struct swerve_env **out, struct error *error)
{
    TRY(check_config(config, source->learned != NULL, error));
    struct swerve_env *env = calloc(1, sizeof *env);
    TRY(memory_check(env, error, "environments: out of memory"));
    env->count = config->count;
    env->horizon_ticks = UINT32_MAX;
    env->wants = config->wants & (SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS);
    env->hashes = (config->wants & SWERVE_ENV_HASH) != 0;
    enum status status = open_world(env, config, source, error);
    THEN(status, suite_load(config->suite, &env->suite, error));
    THEN(status, check_suite(env, error));
    THEN(status, threads_create(config->threads, &env->threads, error));
    if (status == STATUS_OK && source->sensors != NULL) {
        status = open_sensors(env, source->sensors, error);
    }
    if (status == STATUS_OK && !allocate(env)) {
        status =
            error_set(error, STATUS_NO_MEMORY, "environments: out of memory for %u", config->count);
    }
    if (status != STATUS_OK) {
        swerve_env_close(env);
        return status;
    }
    *out = env;
    return STATUS_OK;
}

static int open_for_abi(const struct swerve_env_config *config, const struct source *source,
                        struct swerve_env **out, char *error_text, uint32_t error_bytes)
{
    struct error error;
    locale_t before = env_locale_enter();
    enum status status = open_env(config, source, out, &error);
    env_locale_leave(before);
    return env_answer(status, &error, error_text, error_bytes);
}

int swerve_env_open(const struct swerve_env_config *config, struct swerve_env **out,
                    char *error_text, uint32_t error_bytes)
{
    const struct source source = {.learned = NULL};
    return open_for_abi(config, &source, out, error_text, error_bytes);
}

int swerve_env_open_model(const struct swerve_env_config *config,
                          const struct swerve_env_model *model, struct swerve_env **out,
                          char *error_text, uint32_t error_bytes)
{
    const struct source source = {.model = model};
    return open_for_abi(config, &source, out, error_text, error_bytes);
}

int swerve_env_open_sensors(const struct swerve_env_config *config, const char *choice,
                            uint64_t bytes, struct swerve_env **out, char *error_text,
                            uint32_t error_bytes)
{
    const struct choice_text text = {choice, (size_t)bytes};
    const struct source source = {.sensors = &text};
    return open_for_abi(config, &source, out, error_text, error_bytes);
}

enum status env_open_learned(const struct swerve_env_config *config,
                             const struct env_learned *learned, struct swerve_env **out,
                             struct error *error)
{
    const struct source source = {.learned = learned};
    return open_env(config, &source, out, error);
}

void swerve_env_close(struct swerve_env *env)
{
    if (env == NULL) {
        return;
    }
    for (uint32_t i = 0; env->drives != NULL && i < env->count; i++) {
        env_drive_drop(env, i);
    }
    for (uint32_t i = 0; env->prepared != NULL && i < env->suite->entry_count; i++) {
        prepared_unref(env->prepared[i]);
    }
    if (env->world != NULL) {
        env->ops->close(env->world);
    }
    tinyphysics_model_free(env->controls);
    models_close(env->models);
    threads_destroy(env->threads);
    suite_destroy(env->suite);
    sensors_destroy(env->sensors);
    for (uint32_t i = 0; i < RIG_SENSORS_MAX; i++) {
        free(env->sensor_rows[i]);
    }
    struct env_arrays *rows = &env->rows;
    void *const owned[] = {env->prepared, env->drives,     env->reached,  env->active,
                           rows->actions, rows->ego,       rows->route,   rows->bev,
                           rows->cameras, rows->advance_m, rows->contact, rows->end,
                           rows->tick,    rows->scenario,  rows->seed};
    for (size_t i = 0; i < COUNT_OF(owned); i++) {
        free(owned[i]);
    }
    free(env);
}
