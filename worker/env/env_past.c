/*
 * Pasts: a drive goes through ticks that were driven before, in this process or another one, and
 * comes out as it was then: judged, hashed and remembered alike, without a network being asked.
 */
#include "worker/env/env_internal.h"
#include "worker/env/env_scene.h"

#include "base/check.h"

struct env_past env_past(const struct swerve_env *env, uint32_t index)
{
    CHECK(env->drives[index].rollout != NULL);
    struct env_past past = {.observation_digest = env->drives[index].rollout->observation_digest};
    if (env->model != NULL) {
        past.world.frame_stats = env->ops->slot_frame_stats(env->world, index);
    }
    return past;
}

bool env_generates(const struct swerve_env *env)
{
    return env->model != NULL;
}

const uint8_t *env_memory(const struct swerve_env *env, uint32_t index, uint32_t back)
{
    return env->ops->slot_memory != NULL ? env->ops->slot_memory(env->world, index, back) : NULL;
}

static enum status step_world(struct swerve_env *env, uint32_t index, const struct env_past *past,
                              struct error *error)
{
    if (env->model == NULL) {
        for (uint32_t i = 0; i < env->count; i++) {
            env->active[i] = i == index;
        }
        env->ops->step(env->world, env->reached, env->active);
        return STATUS_OK;
    }
    return env->ops->slot_retrace(env->world, index, &env->reached[index], &past->world, error);
}

/* Judges the tick, and looks where there is something to be seen. */
static void look(struct swerve_env *env, uint32_t index, bool sees)
{
    struct rollout *rollout = env->drives[index].rollout;
    uint8_t *bev = rollout->bev;
    uint8_t *cameras = rollout->cameras;
    if (!sees) {
        rollout->bev = NULL;
        rollout->cameras = NULL;
    }
    env_drive_look(env, index);
    rollout->bev = bev;
    rollout->cameras = cameras;
}

enum status env_retrace(struct swerve_env *env, uint32_t index, const struct env_past *past,
                        struct error *error)
{
    struct env_drive *drive = &env->drives[index];
    bool sees = env->model == NULL || past->world.frame != NULL;
    CHECK(index < env->count && env->rows.end[index] == SWERVE_ENV_GOES_ON);
    env_drive_act(env, index);
    TRY(step_world(env, index, past, error));
    look(env, index, sees);
    if (drive->out_of_memory) {
        env_drive_drop(env, index);
        return error_set(error, STATUS_NO_MEMORY, "environment %u: out of memory", index);
    }
    if (sees && drive->rollout->observation_digest != past->observation_digest) {
        return error_set(error, STATUS_BAD_INPUT,
                         "environment %u: expected what was seen at tick %u, digest %016llx, found "
                         "%016llx",
                         index, env->rows.tick[index], (unsigned long long)past->observation_digest,
                         (unsigned long long)drive->rollout->observation_digest);
    }
    drive->rollout->observation_digest = past->observation_digest;
    return STATUS_OK;
}
