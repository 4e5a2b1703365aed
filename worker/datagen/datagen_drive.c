/*
 * One recorded drive of a world. An unruly one overrides the planner for random spells
 * (late or hard braking, speeding up, drifting out of the lane, swerving), so that a learned world
 * sees what follows from them; between spells the planner recovers as well as it can.
 */
#include "worker/datagen/datagen.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "worker/run/rollout.h"

#include <stdio.h>

/* Separates these numbers from those that planners draw under the same seed. */
#define SPELL_KEY UINT64_C(0x5370656C6C730001)
#define SPELL_CHANCE 0.04 /* per tick without one */

enum spell_kind {
    SPELL_COAST = 0,
    SPELL_BRAKE,
    SPELL_RUSH,
    SPELL_DRIFT,
    SPELL_SWERVE,
    SPELL_COUNT
};

struct spell {
    enum spell_kind kind;
    uint32_t first;
    uint32_t end; /* exclusive; at or before the present tick: none */
    double strength;
};

static double between(double low, double high, double share)
{
    return low + (high - low) * share;
}

/* Begins a spell now and then. */
static void spell_update(struct spell *spell, uint64_t seed, const struct scene *scene)
{
    uint32_t tick = scene->tick;
    uint64_t key = rng_mix(seed ^ SPELL_KEY);
    if (tick < spell->end || rng_uniform(key, RNG_STREAM_PLANNER, tick, 0) >= SPELL_CHANCE) {
        return;
    }
    double length = rng_uniform(key, RNG_STREAM_PLANNER, tick, 2);
    double size = rng_uniform(key, RNG_STREAM_PLANNER, tick, 3);
    double sign = rng_uniform(key, RNG_STREAM_PLANNER, tick, 4) < 0.5 ? -1.0 : 1.0;
    double speed = dmath_max(scene->ego.speed_mps, 3.0);
    spell->kind = (enum spell_kind)(SPELL_COUNT * rng_uniform(key, RNG_STREAM_PLANNER, tick, 1));
    spell->first = tick;
    spell->end = tick + (uint32_t)between(8, 30, length);
    switch (spell->kind) {
    case SPELL_BRAKE:
        spell->strength = between(-3.0, -9.0, size);
        break;
    case SPELL_RUSH:
        spell->strength = between(1.0, 3.5, size);
        break;
    case SPELL_DRIFT: /* a steady lateral acceleration of 0.3 to 1.5 m/s2 */
        spell->strength = sign * dmath_min(between(0.8, 4.2, size) / (speed * speed), 0.1);
        break;
    case SPELL_SWERVE:
        spell->strength = sign * dmath_min(between(4.0, 14.0, size) / (speed * speed), 0.35);
        break;
    case SPELL_COAST:
    case SPELL_COUNT:
        spell->strength = 0.0;
        break;
    }
}

static struct action spell_apply(const struct spell *spell, uint32_t tick, struct action action)
{
    if (tick >= spell->end) {
        return action;
    }
    switch (spell->kind) {
    case SPELL_COAST:
        action.accel_mps2 = 0.0;
        break;
    case SPELL_BRAKE:
    case SPELL_RUSH:
        action.accel_mps2 = spell->strength;
        break;
    case SPELL_DRIFT:
        action.steer_rad = spell->strength;
        break;
    case SPELL_SWERVE: {
        double share = (double)(tick - spell->first) / (spell->end - spell->first);
        action.steer_rad += spell->strength * dmath_sin(2 * PI_RAD * share);
        break;
    }
    case SPELL_COUNT:
        break;
    }
    return action;
}

/* Asks the planner; false when it gave no answer, which ends the drive. */
static bool ask(struct rollout *rollout, const struct world *world, const struct scene *scene,
                const struct drive_plan *plan, struct action *action, enum status *status,
                struct error *error)
{
    struct swerve_observation observation;
    struct swerve_action answer = {0};
    uint8_t failed = 0;
    rollout_observe(rollout, world, scene, &observation, NULL);
    *status =
        planner_plan(plan->planner, 1, &observation, &rollout->around, &answer, &failed, error);
    *action = (struct action){answer.accel_mps2, answer.steer_rad};
    if (*status == STATUS_OK && failed && plan->fault != NULL) {
        snprintf(*plan->fault, sizeof *plan->fault, "tick %u: %s", scene->tick,
                 planner_session_error(plan->planner, 0));
    }
    return *status == STATUS_OK && !failed;
}

static enum status drive_loop(struct world *world, struct rollout *rollout,
                              const struct drive_plan *plan, struct scene *scenes, uint32_t *count,
                              struct error *error)
{
    enum status status = STATUS_OK;
    struct spell spell = {0};
    uint32_t horizon = rollout->job->scenario->horizon_ticks;
    const uint8_t active = 1;
    *count = 0;
    while (scenes == NULL || *count < DRIVE_TICKS_MAX) {
        const struct scene *scene = world->ops->slot_scene(world, 0);
        score_update(rollout->score, scene);
        if (scenes != NULL) {
            scenes[*count] = *scene;
        }
        if (plan->looked != NULL) {
            plan->looked(plan->context, world, scene);
        }
        ++*count;
        struct action action;
        bool ended = score_ended(rollout->score) && plan->stepped == NULL;
        if (scene->tick >= horizon || ended) {
            break;
        }
        if (plan->goes_on != NULL && !plan->goes_on(plan->context)) {
            status = error_set(error, STATUS_CANCELLED, "drive: ended at tick %u", scene->tick);
            break;
        }
        if (!ask(rollout, world, scene, plan, &action, &status, error)) {
            break;
        }
        if (plan->unruly) {
            spell_update(&spell, plan->seed, scene);
            action = spell_apply(&spell, scene->tick, action);
        }
        if (world->ops->slot_commit != NULL) {
            world->ops->slot_commit(world, 0, &action);
        }
        world->ops->step(world, &action, &active);
        if (plan->stepped != NULL) {
            plan->stepped(plan->context, &action);
        }
    }
    return status;
}

static enum status begin(struct world *world, struct rollout *rollout,
                         const struct drive_plan *plan, struct error *error)
{
    struct swerve_episode episode;
    rollout->slot = 0;
    rollout->session = 0;
    rollout_episode(rollout, &episode);
    if (plan->has_conditions) {
        const struct intervention change = {
            .kind = INTERVENE_CONDITIONS, .agent = -1, .conditions = plan->conditions};
        TRY(world->ops->slot_intervene(world, 0, &change, error));
    }
    return planner_reset(plan->planner, &episode, error);
}

enum status drive_record(struct world *world, struct prepared *prepared,
                         const struct drive_plan *plan, struct scene *scenes, uint32_t *count,
                         struct error *error)
{
    const struct job_lease lease = {.spec = {.seed = plan->seed}};
    struct job_run *job = NULL;
    struct rollout *rollout = NULL;
    TRY(world->ops->slot_reset(world, 0, prepared, plan->seed, error));
    enum status status = job_run_create(&lease, prepared, &job, error);
    if (status == STATUS_OK) {
        job->objects_of_world = given_of_world(world->ops->tier, CONDITIONING_AGENTS);
    }
    THEN(status, rollout_create(job, ROLLOUT_MAIN, false, plan->planner_wants, &rollout, error));
    THEN(status, begin(world, rollout, plan, error));
    if (status == STATUS_OK) {
        status = drive_loop(world, rollout, plan, scenes, count, error);
        planner_end(plan->planner, 0);
    }
    rollout_destroy(rollout);
    job_run_destroy(job);
    world->ops->slot_release(world, 0);
    return status;
}
