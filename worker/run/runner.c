/*
 * The lockstep loop: what happens in one tick, in which order. See runner_internal.h for the
 * invariants and for the parts that live elsewhere.
 */
#include "worker/run/runner_internal.h"

#include "base/check.h"
#include "engine/worlds/foreign.h"
#include "engine/worlds/world.h"
#include "worker/given/pictures.h"
#include "worker/models/health_world.h"
#include "worker/planner/planner_spec.h"
#include "worker/run/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening and closing ---- */

/* Number of rollouts that go on at a time. A device steps all its slots for the price of one; a
 * model on the CPU takes as long for a tick of each, so there the first jobs end the sooner, for
 * the same throughput, the fewer go on beside them: a few, for planners that answer in batches. A
 * world of the user's that keeps few states is driven depth first, so many rollouts at a time. */
static uint32_t width_of(const struct runner_config *config, bool on_device)
{
    bool ours = config->world->tier >= TIER_STUDENT && config->foreign == NULL;
    uint32_t most = RUNNER_CPU_WIDTH * (config->thread_count > 0 ? config->thread_count : 1);
    uint32_t kept = config->foreign != NULL ? config->foreign->declared.states_max : 0;
    if (kept > 0 && kept < config->slot_count) {
        return kept;
    }
    return ours && !on_device && most < config->slot_count ? most : config->slot_count;
}

/* Slots, sessions and what a tick needs per slot. False: out of memory; runner_destroy frees what
 * was allocated. */
static bool allocate(struct runner *runner, uint32_t n)
{
    /* Branches in every slot and wherever they may be parked, and as many main lines as slots;
     * where these are more, branches wait for their sessions. */
    uint32_t sessions = 2 * n + RUNNER_PARKED_MAX;
    runner->slot_count = n;
    runner->session_count = sessions;
    runner->slots = calloc(n, sizeof *runner->slots);
    runner->actions = calloc(n, sizeof *runner->actions);
    runner->active = calloc(n, sizeof *runner->active);
    runner->stepped = calloc(n, sizeof *runner->stepped);
    runner->observations = calloc(n, sizeof *runner->observations);
    runner->around = calloc(n, sizeof *runner->around);
    runner->shown = calloc(n, sizeof *runner->shown);
    runner->views = calloc(n, sizeof *runner->views);
    runner->answers = calloc(n, sizeof *runner->answers);
    runner->failed = calloc(n, sizeof *runner->failed);
    runner->slot_of_query = calloc(n, sizeof *runner->slot_of_query);
    runner->free_sessions = calloc(sessions, sizeof *runner->free_sessions);
    if (runner->slots == NULL || runner->actions == NULL || runner->active == NULL ||
        runner->stepped == NULL || runner->observations == NULL || runner->around == NULL ||
        runner->shown == NULL || runner->views == NULL || runner->answers == NULL ||
        runner->failed == NULL || runner->slot_of_query == NULL || runner->free_sessions == NULL) {
        return false;
    }
    /* Filled so that session 0 is handed out first. */
    for (uint32_t i = 0; i < sessions; i++) {
        runner->free_sessions[i] = sessions - 1 - i;
    }
    runner->free_session_count = sessions;
    return true;
}

enum status runner_create(const struct runner_config *config, struct runner **out,
                          struct error *error)
{
    CHECK(config->slot_count >= 1 && config->slot_count <= LIMIT_SLOTS);
    struct runner *runner = calloc(1, sizeof *runner);
    TRY(memory_check(runner, error, "runner: out of memory"));
    runner->config = *config;
    snprintf(runner->planner_spec, sizeof runner->planner_spec, "%s", config->planner);
    runner->guardian_acts = planner_spec_guarded(config->planner);
    snprintf(runner->planner_hash, sizeof runner->planner_hash, "%s",
             config->planner_hash != NULL ? config->planner_hash : "");
    enum status status = STATUS_OK;
    if (!allocate(runner, config->slot_count) || !runner_keep_rig(runner)) {
        status = error_set(error, STATUS_NO_MEMORY, "runner: out of memory");
        goto fail;
    }
    if (config->bounds == NULL) {
        runner->builtin_bounds = health_bounds_builtin();
        runner->config.bounds = &runner->builtin_bounds;
    }
    const struct world_config world_config = {
        .slot_count = config->slot_count,
        .model = config->model,
        .previous = config->previous,
        .conditioning = config->conditioning,
        .device = config->device,
        .thread_count = config->thread_count,
        .host_bytes_max = WORLD_HOST_DEFAULT,
        .spill = config->spill,
        .foreign = config->foreign,
        .picture_bounds = runner->config.bounds->pictures,
        .picture_tally = config->picture_tally,
    };
    runner->on_device = config->device != NULL && config->device->ops != NULL;
    if (runner->on_device && config->world->views_open != NULL) {
        snprintf(runner->backend, sizeof runner->backend, "%s", config->device->backend);
        runner->place = (struct swerve_place){(int32_t)config->device->index, runner->backend};
    }
    runner->width = width_of(config, runner->on_device);
    runner->config.device = NULL; /* lent for this call */
    status = config->world->open(&world_config, &runner->world, error);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = runner_start_planner(runner, error);
    if (status != STATUS_OK) {
        status = error->status = runner_start_failed(config, status);
        goto fail;
    }
    if (config->overlap && config->slot_count > 1) {
        status = runner_stepper_open(runner, error);
        if (status != STATUS_OK) {
            goto fail;
        }
    }
    *out = runner;
    return STATUS_OK;
fail:
    runner_destroy(runner);
    return status;
}

static void destroy_jobs(struct job_run *job)
{
    while (job != NULL) {
        struct job_run *next = job->next;
        job_run_destroy(job);
        job = next;
    }
}

void runner_destroy(struct runner *runner)
{
    if (runner == NULL) {
        return;
    }
    runner_stepper_close(runner);
    for (uint32_t i = 0; i < runner->slot_count && runner->slots != NULL; i++) {
        if (runner->slots[i] != NULL) {
            runner_discard(runner, runner->slots[i]);
        }
    }
    runner_discard_list(runner, &runner->waiting);
    runner_discard_list(runner, &runner->isolated);
    destroy_jobs(runner->jobs);
    destroy_jobs(runner->done);
    runner_abandon_start(runner);
    planner_close(runner->planner);
    runner_ops(runner)->close(runner->world);
    sensors_destroy(runner->sensors);
    free(runner->rig);
    free(runner->slots);
    free(runner->actions);
    free(runner->active);
    free(runner->stepped);
    free(runner->observations);
    free(runner->around);
    free(runner->shown);
    free(runner->views);
    free(runner->answers);
    free(runner->failed);
    free(runner->slot_of_query);
    free(runner->free_sessions);
    free(runner);
}

/* ---- starting rollouts ---- */

static void end_rollout(struct runner *runner, struct rollout *rollout, uint32_t ticks,
                        const char *error);

/* A rollout from the waiting list into a free slot: restored when parked, reset when new. */
static void start(struct runner *runner, struct rollout *rollout, int32_t slot)
{
    struct error error;
    if (rollout->parked != NULL) {
        runner_unpark(runner, rollout, slot);
        return;
    }
    runner_take_session(runner, rollout);
    enum status status =
        runner_ops(runner)->slot_reset(runner->world, (uint32_t)slot, rollout->job->prepared,
                                       rollout->job->lease.spec.seed, &error);
    if (status != STATUS_OK) {
        runner_fail_job(rollout->job, &error);
        runner_discard(runner, rollout);
        return;
    }
    runner_occupy(runner, rollout, slot);
    if (runner->config.checkpoint_ns > 0 && runner_ops(runner)->slot_retrace != NULL) {
        checkpoint_create(rollout);
    }
    struct swerve_episode episode;
    rollout_episode(rollout, &episode);
    if (planner_reset(runner->planner, &episode, &error) != STATUS_OK) {
        if (planner_alive(runner->planner)) {
            end_rollout(runner, rollout, 0, error.text);
        } else {
            runner_planner_died(runner, &error);
        }
    }
}

/* Every rollout that is not finished, each alone from tick 0. */
static enum status add_solo(struct runner *runner, struct job_run *job, struct error *error)
{
    job->no_forks = true;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        struct rollout *solo = NULL;
        if (job->results[i].finished) {
            continue;
        }
        enum status status =
            rollout_create(job, (int32_t)i - 1, i > 0, runner->wants, &solo, error);
        if (status != STATUS_OK) {
            runner_purge_list(runner, &runner->waiting, job);
            return status;
        }
        runner_wait(runner, solo);
    }
    return STATUS_OK;
}

enum status runner_add(struct runner *runner, struct job_run *job, int32_t only,
                       struct error *error)
{
    struct rollout *first = NULL;
    job->order = ++runner->orders;
    job->sensors = runner->sensors;
    job->objects_of_world = given_of_world(runner_ops(runner)->tier, runner->config.conditioning);
    given_chunks(runner->config.foreign, job->chunks);
    job->keyframes_period_ticks =
        runner_ops(runner)->tier >= TIER_STUDENT ? trace_keyframes_period_ticks(job->scenario) : 0;
    if (only != ROLLOUT_ALL) {
        TRY(rollout_create(job, only, only != ROLLOUT_MAIN, runner->wants, &first, error));
        /* The others count as finished so that the job ends; their results stay unfinished. */
        job->finished_count = job->rollout_count - 1;
        job->no_forks = true;
        runner_wait(runner, first);
    } else if (runner->config.always_solo) {
        TRY(add_solo(runner, job, error));
    } else if (job->finished_count < job->rollout_count) {
        TRY(rollout_create(job, ROLLOUT_MAIN, false, runner->wants, &first, error));
        runner_wait(runner, first);
    }
    job->next = runner->jobs;
    runner->jobs = job;
    return STATUS_OK;
}

/* ---- one tick ---- */

static void fill_slots(struct runner *runner)
{
    if (runner->waiting.head == NULL && runner->isolated.head == NULL) {
        return;
    }
    if (runner->planner == NULL) {
        runner_reopen_planner(runner);
        if (runner->planner == NULL) {
            return;
        }
    }
    if (runner->isolated.head != NULL || runner->alone != NULL) {
        if (runner->alone == NULL && runner->active_count == 0) {
            runner->alone = rollout_list_pop(&runner->isolated);
            start(runner, runner->alone, runner_find_free_slot(runner));
        }
        return;
    }
    int32_t slot;
    struct rollout *next;
    while (runner->planner != NULL && (next = runner_next(runner)) != NULL &&
           (slot = runner_slot_for(runner, next)) >= 0) {
        rollout_list_remove(&runner->waiting, next);
        start(runner, next, slot);
    }
}

/* Tells the world which parked rollouts go on next, so that it fetches what they need while the
 * planner and the world's step take their time. At most as many as there are slots to go on in. */
static void look_ahead(struct runner *runner)
{
    const struct world_ops *ops = runner_ops(runner);
    const struct rollout *next = runner->waiting.head;
    bool more = ops->slot_state_prefetch != NULL;
    for (uint32_t i = 0; more && i < runner->width && next != NULL && next->parked != NULL;
         i++, next = next->next) {
        more = ops->slot_state_prefetch(runner->world, next->parked);
    }
}

/* False when the rollout ended here because its scenario's intervention cannot be applied. */
static bool apply_interventions(struct runner *runner, struct rollout *rollout)
{
    const struct branch *branch = rollout_branch(rollout);
    if (branch == NULL) {
        return true;
    }
    const struct scene *scene =
        runner_ops(runner)->slot_scene(runner->world, (uint32_t)rollout->slot);
    while (rollout->next_intervention < branch->intervention_count &&
           branch->interventions[rollout->next_intervention].tick <= scene->tick) {
        const struct intervention *what = &branch->interventions[rollout->next_intervention++];
        if (actuation_intervene(&rollout->actuation, what, scene,
                                prepared_route(rollout->job->prepared))) {
            continue;
        }
        struct error error;
        if (runner_ops(runner)->slot_intervene(runner->world, (uint32_t)rollout->slot, what,
                                               &error) != STATUS_OK) {
            runner_fail_job(rollout->job, &error);
            return false;
        }
    }
    return true;
}

/* The main line is over: branches that have not forked by now share its end. */
static void end_main_line(struct job_run *job)
{
    if (job->no_forks) {
        return;
    }
    for (uint32_t b = 0; b < job->scenario->branch_count; b++) {
        if (!job->results[b + 1].started) {
            rollout_result_share(job, (int32_t)b);
        }
    }
}

static void end_rollout(struct runner *runner, struct rollout *rollout, uint32_t ticks,
                        const char *error)
{
    runner_keep_output(runner, rollout);
    struct job_run *job = rollout->job;
    bool main_line = rollout->branch == ROLLOUT_MAIN;
    rollout_finish(rollout, ticks, error);
    runner_discard(runner, rollout);
    if (main_line) {
        end_main_line(job);
    }
}

/* `last`: the rollout ends here. */
static void record(struct runner *runner, struct rollout *rollout, const struct scene *scene,
                   struct action action, bool last)
{
    const struct trace_extra extra = {
        .action = action,
        .sensors_dark = actuation_sensors_dark(&rollout->actuation, scene->tick),
        .guardian = score_guardian_active(rollout->score),
        .skipped = last ? 0 : rollout->skipped,
        .observation_digest = rollout_shown_digest(rollout),
    };
    const uint32_t slot = (uint32_t)rollout->slot;
    struct error error;
    if (trace_append(&rollout->trace, scene, &extra, &error) != STATUS_OK ||
        runner_film(runner, rollout, last, &error) != STATUS_OK ||
        pictures_keep(&rollout->trace, runner->world, slot, scene->tick, last, &error) !=
            STATUS_OK) {
        runner_fail_job(rollout->job, &error);
    }
}

/* Frame that a learned world shows now, for people to look at; NULL when memory is short or the
 * frame can be redrawn from the trace. */
static uint8_t *take_snapshot(const struct runner *runner, const struct rollout *rollout)
{
    if (runner_ops(runner)->slot_frame_stats == NULL) {
        return NULL;
    }
    uint8_t *snapshot = malloc(BEV_BYTES + (size_t)CAMERA_COUNT * CAMERA_BYTES);
    if (snapshot != NULL) {
        struct observation_buffers buffers = {.bev = snapshot};
        for (int i = 0; i < CAMERA_COUNT; i++) {
            buffers.camera[i] = snapshot + BEV_BYTES + (size_t)i * CAMERA_BYTES;
        }
        runner_ops(runner)->slot_observe(runner->world, (uint32_t)rollout->slot, &buffers);
    }
    return snapshot;
}

/* Every check of this tick; *out is written when the answer is false. */
static bool healthy(struct runner *runner, struct rollout *rollout, const struct scene *scene,
                    struct health_verdict *out)
{
    const struct world_ops *ops = runner_ops(runner);
    double statistic[MEASURE_COUNT];
    bool learned = ops->slot_frame_stats != NULL;
    bool well = health_update(&rollout->health, rollout->job->scenario, scene, !learned, out);
    if (!well || !learned) {
        return well;
    }
    const struct frame_stats *frame_stats =
        ops->slot_frame_stats(runner->world, (uint32_t)rollout->slot);
    health_world_measure(&rollout->health.world, frame_stats, statistic);
    if (runner->config.observe_health != NULL) {
        runner->config.observe_health(runner->config.observe_context, frame_stats, statistic);
        return true;
    }
    return health_world_judge(&rollout->health.world, frame_stats, statistic,
                              runner_bounds(runner, rollout), runner->config.conditioning, out);
}

/* Whether what happens is still within what the models hold for; the first fault stays. */
static void check_validity(const struct runner *runner, struct rollout *rollout,
                           const struct scene *scene)
{
    bool learned = runner_ops(runner)->slot_frame_stats != NULL;
    bool true_agents = !learned || runner->config.conditioning == CONDITIONING_AGENTS;
    if (rollout->validity.check == VALIDITY_OK && !score_touched_any(rollout->score)) {
        validity_update(&rollout->validity, rollout->job->prepared, scene,
                        runner_ops(runner)->tier == TIER_REPLAY, true_agents);
    }
}

/* Scores the scene, checks its health and ends the rollout when it is over. True: it goes on. */
static bool look(struct runner *runner, struct rollout *rollout)
{
    const struct scene *scene =
        runner_ops(runner)->slot_scene(runner->world, (uint32_t)rollout->slot);
    struct health_verdict health;
    if (runner_is_cut_off(runner, rollout)) {
        runner_discard(runner, rollout);
        return false;
    }
    if (!healthy(runner, rollout, scene, &health)) {
        struct job_run *job = rollout->job;
        bool main_line = rollout->branch == ROLLOUT_MAIN;
        runner_keep_output(runner, rollout);
        rollout_flag(rollout, scene->tick, &health, take_snapshot(runner, rollout));
        runner_discard(runner, rollout);
        if (main_line) {
            end_main_line(job);
        }
        return false;
    }
    if (runner->guardian_acts) {
        score_guardian_act(rollout->score);
    }
    score_update(rollout->score, scene);
    if (rollout->stage != NULL) {
        stage_update(rollout->stage, scene);
    }
    check_validity(runner, rollout, scene);
    const char *full = rollout->job->film_fault;
    if (scene->tick >= rollout->job->scenario->horizon_ticks || score_ended(rollout->score) ||
        full[0] != '\0') {
        record(runner, rollout, scene, (struct action){0}, true);
        end_rollout(runner, rollout, scene->tick, full);
        return false;
    }
    return true;
}

/* Phase 1: everything that happens before the planner is asked. New branches join in the same tick.
 */
static void prepare(struct runner *runner)
{
    for (uint32_t i = 0; i < runner->slot_count && runner->planner != NULL; i++) {
        if (runner_turn_of(runner, i)) {
            runner_fork_due(runner, i);
        }
    }
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (rollout == NULL || !runner_turn_of(runner, i)) {
            continue;
        }
        if (rollout->job->cancelled || rollout->job->failure != STATUS_OK ||
            !apply_interventions(runner, rollout)) {
            runner_discard(runner, rollout);
            continue;
        }
        look(runner, rollout);
    }
}

/* Draws the views of the queries. False: the device failed, and the attempts with it; that is no
 * fault of the planner's, and nothing that a teacher could judge. */
static bool draw_views(struct runner *runner, uint32_t count)
{
    struct error error;
    if (!runner_observes_on_device(runner)) {
        return true;
    }
    enum status status =
        runner_ops(runner)->views_draw(runner->world, runner->views, count, &error);
    for (uint32_t q = 0; q < count; q++) {
        struct rollout *rollout = runner->slots[runner->slot_of_query[q]];
        rollout->observation_digest = runner->views[q].digest;
        if (status != STATUS_OK) {
            runner_fail_job(rollout->job, &error);
        }
    }
    return status == STATUS_OK;
}

/* Fills the queries, one for each rollout that has a slot. False: memory ran out, and attempts
 * broke with it. */
static bool observe(struct runner *runner, uint32_t *count)
{
    struct error error;
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        const uint32_t n = *count;
        if (rollout == NULL || !runner_turn_of(runner, i)) {
            continue;
        }
        rollout_observe(rollout, runner->world, runner_ops(runner)->slot_scene(runner->world, i),
                        &runner->observations[n], &runner->views[n]);
        if (rollout_shoot(rollout, runner->world, &runner->observations[n], &runner->shown[n],
                          &error) != STATUS_OK) {
            runner_fail_job(rollout->job, &error);
            return false;
        }
        runner->around[n] = rollout->around;
        runner->slot_of_query[n] = i;
        *count = n + 1;
    }
    return true;
}

/* Phase 2: one batched question to the planner, while the world steps the other half of the slots
 * where they are in two. False when it could not be put, or its instance died. */
static bool ask(struct runner *runner, uint32_t *count)
{
    struct error error;
    enum status status = STATUS_OK;
    bool seen = runner->planner != NULL && observe(runner, count) &&
                (*count == 0 || draw_views(runner, *count));
    if (runner->stepper != NULL) {
        runner_step_begin(runner);
    }
    if (seen && *count > 0) {
        memset(runner->failed, 0, *count);
        status = planner_drive(runner->planner, *count, runner->observations, runner->around,
                               runner->sensors != NULL ? runner->shown : NULL, runner->answers,
                               runner->failed, &error);
    }
    if (runner->stepper != NULL) {
        runner_step_end(runner);
    }
    if (status != STATUS_OK) {
        runner_planner_died(runner, &error);
    }
    return seen && status == STATUS_OK;
}

/* The guardian that acts brakes as hard as it counts on; who steers goes on steering. What a branch
 * does in the planner's place is not overridden. */
static void guard(const struct runner *runner, struct rollout *rollout)
{
    if (runner->guardian_acts && rollout->actuation.override == NULL &&
        score_guardian_active(rollout->score)) {
        rollout->action.accel_mps2 =
            fmin(rollout->action.accel_mps2, -score_guardian_brake_mps2(rollout->score));
    }
}

/* Phase 3: answers become actions and are recorded. */
static void drive(struct runner *runner, uint32_t count)
{
    for (uint32_t q = 0; q < count; q++) {
        uint32_t slot = runner->slot_of_query[q];
        struct rollout *rollout = runner->slots[slot];
        const struct scene *scene = runner_ops(runner)->slot_scene(runner->world, slot);
        if (runner->failed[q]) {
            char text[OUTCOME_ERROR_BYTES];
            runner_fault_text(runner, rollout, scene->tick,
                              planner_session_error(runner->planner, rollout->session), text);
            record(runner, rollout, scene, (struct action){0}, true);
            end_rollout(runner, rollout, scene->tick, text);
            continue;
        }
        const struct swerve_answer *said = planner_answer(runner->planner, q);
        if (said != NULL) {
            rollout_plan(rollout, &runner->observations[q], said);
        }
        const struct action answer = {runner->answers[q].accel_mps2, runner->answers[q].steer_rad};
        rollout->action = actuation_drive(
            &rollout->actuation, &answer, scene, prepared_route(rollout->job->prepared),
            rollout->job->scenario->ego.wheelbase_m, rollout->route_s_m);
        guard(runner, rollout);
        runner_commit(runner, rollout, scene->tick);
        record(runner, rollout, scene, rollout->action, false);
        runner->actions[slot] = rollout->action;
        runner->active[slot] = 1;
    }
}

static void collect_done(struct runner *runner)
{
    struct job_run **link = &runner->jobs;
    while (*link != NULL) {
        struct job_run *job = *link;
        bool broken = job->cancelled || job->failure != STATUS_OK;
        if (broken) {
            runner_purge_job(runner, job);
        }
        if (broken ||
            (job->finished_count == job->rollout_count && !runner_drives_past(runner, job))) {
            *link = job->next;
            job->next = runner->done;
            runner->done = job;
        } else {
            link = &job->next;
        }
    }
}

void runner_tick(struct runner *runner)
{
    int64_t start_ns = runner_meter_ns(runner);
    uint32_t count = 0;
    fill_slots(runner);
    prepare(runner);
    look_ahead(runner);
    if (ask(runner, &count)) {
        drive(runner, count);
        if (runner->stepper == NULL) {
            runner_step_begin(runner);
            runner_step_end(runner);
        }
    }
    runner->turn = !runner->turn;
    runner_charge(runner, runner_meter_ns(runner) - start_ns + runner_step_ns(runner));
    collect_done(runner);
}

const char *runner_planner_loaded(const struct runner *runner)
{
    return runner->planner != NULL ? planner_loaded(runner->planner) : "";
}

uint32_t runner_width(const struct runner *runner)
{
    return runner->width;
}

bool runner_busy(const struct runner *runner)
{
    return runner->jobs != NULL;
}

struct job_run *runner_take(struct runner *runner)
{
    struct job_run *job = runner->done;
    if (job != NULL) {
        runner->done = job->next;
        job->next = NULL;
    }
    return job;
}

void runner_cancel(struct runner *runner, int64_t job_id, int64_t epoch)
{
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        if (job->lease.job_id == job_id && job->lease.epoch == epoch) {
            job->cancelled = true;
        }
    }
}

void runner_cancel_all(struct runner *runner)
{
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        job->cancelled = true;
    }
    collect_done(runner);
}

const struct runner_stats *runner_stats(const struct runner *runner)
{
    return &runner->stats;
}
