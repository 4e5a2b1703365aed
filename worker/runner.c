/*
 * The lockstep loop. Invariants: a rollout is in exactly one place: a slot (`slots`), or the
 * waiting list (parked, or not started), or the isolated list; a job is in `jobs` until every
 * rollout of it is finished, then in `done`. Nothing here depends on slot numbers, so neither do
 * results.
 */
#include "worker/runner.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNNER_PARKED_MAX = 64 }; /* waiting branches; beyond that a branch re-runs its prefix */

struct list {
    struct rollout *head;
    struct rollout *tail;
};

struct runner {
    struct runner_config config;
    char planner_spec[LIMIT_SPEC_BYTES];
    struct world *world;
    struct planner *planner;
    uint32_t wants;
    uint32_t slot_count;
    struct rollout **slots; /* [slot_count], NULL: free */
    uint32_t active_count;
    uint32_t *free_sessions; /* stack */
    uint32_t free_session_count;
    uint32_t parked_count;
    struct list waiting;   /* parked branches come first */
    struct list isolated;  /* to be run alone, solo, fresh planner each */
    struct rollout *alone; /* the isolated rollout that is running */
    struct job_run *jobs;
    struct job_run *done;
    struct runner_stats stats;
    /* per tick, [slot_count] */
    struct action *actions;
    uint8_t *active;
    struct swerve_observation *observations;
    struct swerve_action *answers;
    uint8_t *failed;
    uint32_t *slot_of_query;
};

static void list_push_back(struct list *list, struct rollout *rollout)
{
    rollout->next = NULL;
    if (list->tail != NULL) {
        list->tail->next = rollout;
    } else {
        list->head = rollout;
    }
    list->tail = rollout;
}

static void list_push_front(struct list *list, struct rollout *rollout)
{
    rollout->next = list->head;
    list->head = rollout;
    if (list->tail == NULL) {
        list->tail = rollout;
    }
}

static struct rollout *list_pop(struct list *list)
{
    struct rollout *rollout = list->head;
    if (rollout != NULL) {
        list->head = rollout->next;
        if (list->head == NULL) {
            list->tail = NULL;
        }
        rollout->next = NULL;
    }
    return rollout;
}

static const struct world_ops *ops(const struct runner *runner)
{
    return runner->config.world;
}

/* ---- opening and closing ---- */

static enum status open_planner(struct runner *runner, struct error *error)
{
    struct planner_config config = runner->config.planner_config;
    config.session_count = runner->slot_count + RUNNER_PARKED_MAX;
    enum status status = planner_open(runner->planner_spec, &config, &runner->planner, error);
    if (status != STATUS_OK) {
        return status;
    }
    runner->wants = planner_wants(runner->planner);
    return STATUS_OK;
}

enum status runner_create(const struct runner_config *config, struct runner **out,
                          struct error *error)
{
    CHECK(config->slot_count >= 1 && config->slot_count <= LIMIT_SLOTS);
    struct runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "runner: out of memory");
    }
    uint32_t n = config->slot_count;
    runner->config = *config;
    runner->slot_count = n;
    snprintf(runner->planner_spec, sizeof runner->planner_spec, "%s", config->planner);
    runner->slots = calloc(n, sizeof *runner->slots);
    runner->actions = calloc(n, sizeof *runner->actions);
    runner->active = calloc(n, sizeof *runner->active);
    runner->observations = calloc(n, sizeof *runner->observations);
    runner->answers = calloc(n, sizeof *runner->answers);
    runner->failed = calloc(n, sizeof *runner->failed);
    runner->slot_of_query = calloc(n, sizeof *runner->slot_of_query);
    runner->free_sessions = calloc(n + RUNNER_PARKED_MAX, sizeof *runner->free_sessions);
    enum status status = STATUS_OK;
    if (runner->slots == NULL || runner->actions == NULL || runner->active == NULL ||
        runner->observations == NULL || runner->answers == NULL || runner->failed == NULL ||
        runner->slot_of_query == NULL || runner->free_sessions == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "runner: out of memory");
        goto fail;
    }
    /* Filled so that session 0 is handed out first. */
    for (uint32_t i = 0; i < n + RUNNER_PARKED_MAX; i++) {
        runner->free_sessions[i] = n + RUNNER_PARKED_MAX - 1 - i;
    }
    runner->free_session_count = n + RUNNER_PARKED_MAX;
    const struct world_config world_config = {.slot_count = n};
    status = config->world->open(&world_config, &runner->world, error);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = open_planner(runner, error);
    if (status != STATUS_OK) {
        goto fail;
    }
    *out = runner;
    return STATUS_OK;
fail:
    runner_destroy(runner);
    return status;
}

static void drop_session(struct runner *runner, struct rollout *rollout)
{
    if (rollout->has_session) {
        if (planner_alive(runner->planner)) {
            planner_end(runner->planner, rollout->session);
        }
        runner->free_sessions[runner->free_session_count++] = rollout->session;
        rollout->has_session = false;
    }
}

/* Takes the rollout out of its slot or parking place; it keeps its own memory. */
static void vacate(struct runner *runner, struct rollout *rollout)
{
    if (rollout->slot >= 0) {
        ops(runner)->slot_release(runner->world, (uint32_t)rollout->slot);
        runner->slots[rollout->slot] = NULL;
        runner->active_count--;
        rollout->slot = -1;
    }
    if (rollout->parked != NULL) {
        ops(runner)->slot_state_drop(runner->world, rollout->parked);
        free(rollout->parked);
        rollout->parked = NULL;
        runner->parked_count--;
    }
    drop_session(runner, rollout);
}

static void discard(struct runner *runner, struct rollout *rollout)
{
    vacate(runner, rollout);
    if (rollout == runner->alone) {
        runner->alone = NULL;
    }
    rollout_destroy(rollout);
}

static void discard_list(struct runner *runner, struct list *list)
{
    struct rollout *rollout;
    while ((rollout = list_pop(list)) != NULL) {
        discard(runner, rollout);
    }
}

/* Drops the rollouts of one job from a list, keeping the order of the others. */
static void purge_list(struct runner *runner, struct list *list, const struct job_run *job)
{
    struct list kept = {0};
    struct rollout *rollout;
    while ((rollout = list_pop(list)) != NULL) {
        if (rollout->job == job) {
            discard(runner, rollout);
        } else {
            list_push_back(&kept, rollout);
        }
    }
    *list = kept;
}

static void purge_job(struct runner *runner, const struct job_run *job)
{
    purge_list(runner, &runner->waiting, job);
    purge_list(runner, &runner->isolated, job);
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->slots[i] != NULL && runner->slots[i]->job == job) {
            discard(runner, runner->slots[i]);
        }
    }
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
    for (uint32_t i = 0; i < runner->slot_count && runner->slots != NULL; i++) {
        if (runner->slots[i] != NULL) {
            discard(runner, runner->slots[i]);
        }
    }
    discard_list(runner, &runner->waiting);
    discard_list(runner, &runner->isolated);
    destroy_jobs(runner->jobs);
    destroy_jobs(runner->done);
    planner_close(runner->planner);
    ops(runner)->close(runner->world);
    free(runner->slots);
    free(runner->actions);
    free(runner->active);
    free(runner->observations);
    free(runner->answers);
    free(runner->failed);
    free(runner->slot_of_query);
    free(runner->free_sessions);
    free(runner);
}

/* ---- starting rollouts ---- */

static int32_t find_free_slot(const struct runner *runner)
{
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->slots[i] == NULL) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void occupy(struct runner *runner, struct rollout *rollout, int32_t slot)
{
    rollout->slot = slot;
    runner->slots[slot] = rollout;
    runner->active_count++;
}

static bool take_session(struct runner *runner, struct rollout *rollout)
{
    if (runner->free_session_count == 0) {
        return false;
    }
    rollout->session = runner->free_sessions[--runner->free_session_count];
    rollout->has_session = true;
    return true;
}

/* The attempt at this job broke for a reason that is not the planner's (memory, a world that
 * refuses). */
static void fail_job(struct job_run *job, const struct error *error)
{
    if (job->failure == STATUS_OK) {
        job->failure = error->status;
        snprintf(job->error, sizeof job->error, "%s", error->text);
    }
}

static void planner_died(struct runner *runner, const struct error *error);
static void end_rollout(struct runner *runner, struct rollout *rollout, uint32_t ticks,
                        const char *error);

/* A rollout from the waiting list into a free slot: restored when parked, reset when new. */
static void start(struct runner *runner, struct rollout *rollout, int32_t slot)
{
    struct error error;
    if (rollout->parked != NULL) {
        ops(runner)->slot_restore(runner->world, (uint32_t)slot, rollout->parked);
        free(rollout->parked);
        rollout->parked = NULL;
        runner->parked_count--;
        occupy(runner, rollout, slot);
        return;
    }
    CHECK(take_session(runner, rollout));
    enum status status = ops(runner)->slot_reset(runner->world, (uint32_t)slot, rollout->job->stage,
                                                 rollout->job->lease.spec.seed, &error);
    if (status != STATUS_OK) {
        fail_job(rollout->job, &error);
        discard(runner, rollout);
        return;
    }
    occupy(runner, rollout, slot);
    struct swerve_episode episode;
    rollout_episode(rollout, &episode);
    if (planner_reset(runner->planner, &episode, &error) != STATUS_OK) {
        if (planner_alive(runner->planner)) {
            end_rollout(runner, rollout, 0, error.text);
        } else {
            planner_died(runner, &error);
        }
    }
}

enum status runner_add(struct runner *runner, struct job_run *job, int32_t only,
                       struct error *error)
{
    struct rollout *first = NULL;
    int32_t branch = only == ROLLOUT_ALL ? ROLLOUT_MAIN : only;
    enum status status =
        rollout_create(job, branch, branch != ROLLOUT_MAIN, runner->wants, &first, error);
    if (status != STATUS_OK) {
        return status;
    }
    if (only != ROLLOUT_ALL) {
        /* The others count as finished so that the job ends; their results stay unfinished. */
        job->finished_count = job->rollout_count - 1;
        job->no_forks = true;
    } else if (runner->config.always_solo) {
        job->no_forks = true;
        for (uint32_t b = 0; b + 1 < job->rollout_count; b++) {
            struct rollout *solo = NULL;
            status = rollout_create(job, (int32_t)b, true, runner->wants, &solo, error);
            if (status != STATUS_OK) {
                purge_list(runner, &runner->waiting, job);
                rollout_destroy(first);
                return status;
            }
            list_push_back(&runner->waiting, solo);
        }
    }
    list_push_back(&runner->waiting, first);
    job->next = runner->jobs;
    runner->jobs = job;
    return STATUS_OK;
}

/* ---- a planner instance that died ---- */

static void isolate(struct runner *runner, struct rollout *rollout)
{
    struct error error;
    struct rollout *again = NULL;
    struct job_run *job = rollout->job;
    if (rollout_create(job, rollout->branch, rollout->branch != ROLLOUT_MAIN, runner->wants, &again,
                       &error) != STATUS_OK) {
        fail_job(job, &error);
    } else {
        /* What was simulated in vain is still paid for. */
        again->device_ns = rollout->device_ns;
        list_push_back(&runner->isolated, again);
    }
    discard(runner, rollout);
}

static bool list_has(const struct list *list, const struct job_run *job, int32_t branch)
{
    for (const struct rollout *r = list->head; r != NULL; r = r->next) {
        if (r->job == job && r->branch == branch) {
            return true;
        }
    }
    return false;
}

/* A main line in isolation does not fork: its unfinished branches follow, each alone. */
static void isolate_branches(struct runner *runner, struct job_run *job)
{
    job->no_forks = true;
    for (uint32_t b = 0; b < job->scenario->branch_count; b++) {
        if (!job->results[b + 1].finished && !list_has(&runner->isolated, job, (int32_t)b) &&
            !list_has(&runner->waiting, job, (int32_t)b)) {
            struct error error;
            struct rollout *solo = NULL;
            if (rollout_create(job, (int32_t)b, true, runner->wants, &solo, &error) != STATUS_OK) {
                fail_job(job, &error);
                return;
            }
            list_push_back(&runner->isolated, solo);
        }
    }
}

/* Every rollout with a session in the dead instance is run again alone. */
static void planner_died(struct runner *runner, const struct error *error)
{
    log_event(runner->config.logger, LOG_WARNING, "%s: %s; running its rollouts again one by one",
              runner->planner_spec, error->text);
    if (runner->alone != NULL) {
        struct rollout *guilty = runner->alone;
        char text[OUTCOME_ERROR_BYTES];
        const char *tail = planner_stderr_tail(runner->planner);
        snprintf(text, sizeof text, "%s%s%s", error->text, tail[0] != '\0' ? "\nstderr: " : "",
                 tail);
        uint32_t tick = guilty->slot >= 0
                            ? ops(runner)->slot_scene(runner->world, (uint32_t)guilty->slot)->tick
                            : 0;
        rollout_finish(guilty, tick, text);
        discard(runner, guilty);
    }
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->slots[i] != NULL) {
            isolate(runner, runner->slots[i]);
        }
    }
    struct list kept = {0};
    struct rollout *rollout;
    while ((rollout = list_pop(&runner->waiting)) != NULL) {
        if (rollout->has_session) {
            isolate(runner, rollout);
        } else {
            list_push_back(&kept, rollout);
        }
    }
    runner->waiting = kept;
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        if (!job->no_forks && list_has(&runner->isolated, job, ROLLOUT_MAIN)) {
            isolate_branches(runner, job);
        }
    }
    planner_close(runner->planner);
    runner->planner = NULL;
}

static void reopen_planner(struct runner *runner)
{
    struct error error;
    runner->stats.planner_restarts++;
    if (open_planner(runner, &error) == STATUS_OK) {
        return;
    }
    /* It started before and does not now: an operating fault. The attempts fail and are retried. */
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        fail_job(job, &error);
    }
    discard_list(runner, &runner->waiting);
    discard_list(runner, &runner->isolated);
}

/* ---- one tick ---- */

static void fill_slots(struct runner *runner)
{
    if (runner->planner == NULL) {
        reopen_planner(runner);
        if (runner->planner == NULL) {
            return;
        }
    }
    if (runner->isolated.head != NULL || runner->alone != NULL) {
        if (runner->alone == NULL && runner->active_count == 0) {
            runner->alone = list_pop(&runner->isolated);
            start(runner, runner->alone, find_free_slot(runner));
        }
        return;
    }
    int32_t slot;
    while (runner->planner != NULL && runner->waiting.head != NULL &&
           (slot = find_free_slot(runner)) >= 0) {
        if (runner->waiting.head->parked == NULL && runner->free_session_count == 0) {
            return;
        }
        start(runner, list_pop(&runner->waiting), slot);
    }
}

/* Queues a branch to be run from tick 0: there is no place to park it. */
static void run_solo_later(struct runner *runner, struct job_run *job, int32_t branch)
{
    struct error error;
    struct rollout *solo = NULL;
    if (rollout_create(job, branch, true, runner->wants, &solo, &error) != STATUS_OK) {
        fail_job(job, &error);
        return;
    }
    list_push_back(&runner->waiting, solo);
}

static void fork_branch(struct runner *runner, struct rollout *parent, int32_t branch,
                        uint32_t tick)
{
    struct error error;
    struct rollout *rollout = NULL;
    int32_t slot = find_free_slot(runner);
    if (runner->free_session_count == 0 ||
        (slot < 0 && runner->parked_count == RUNNER_PARKED_MAX)) {
        run_solo_later(runner, parent->job, branch);
        return;
    }
    void *state = NULL;
    if (slot < 0) {
        state = malloc(ops(runner)->slot_state_bytes(runner->world));
        if (state == NULL) {
            run_solo_later(runner, parent->job, branch);
            return;
        }
    }
    if (rollout_fork(parent, branch, tick, &rollout, &error) != STATUS_OK) {
        free(state);
        fail_job(parent->job, &error);
        return;
    }
    CHECK(take_session(runner, rollout));
    runner->stats.forks++;
    if (slot >= 0) {
        ops(runner)->slot_fork(runner->world, (uint32_t)parent->slot, (uint32_t)slot);
        occupy(runner, rollout, slot);
    } else {
        ops(runner)->slot_save(runner->world, (uint32_t)parent->slot, state);
        rollout->parked = state;
        runner->parked_count++;
        runner->stats.parks++;
        list_push_front(&runner->waiting, rollout);
    }
    if (planner_fork(runner->planner, parent->session, rollout->session, &error) == STATUS_OK) {
        return;
    }
    if (!planner_alive(runner->planner)) {
        planner_died(runner, &error);
        return;
    }
    /* The planner cannot copy this session: the branch pays for its own prefix. */
    if (slot < 0) {
        list_pop(&runner->waiting);
    }
    struct job_run *job = parent->job;
    discard(runner, rollout);
    run_solo_later(runner, job, branch);
}

static void fork_due_branches(struct runner *runner, uint32_t slot)
{
    struct rollout *parent = runner->slots[slot];
    if (parent == NULL || parent->branch != ROLLOUT_MAIN || parent->job->no_forks) {
        return;
    }
    struct job_run *job = parent->job;
    uint32_t tick = ops(runner)->slot_scene(runner->world, slot)->tick;
    for (uint32_t b = 0; b < job->scenario->branch_count; b++) {
        if (job->scenario->branches[b].at_tick == tick && !job->results[b + 1].started) {
            job->results[b + 1].started = true;
            fork_branch(runner, parent, (int32_t)b, tick);
            if (runner->planner == NULL) {
                return;
            }
        }
    }
}

/* False when the rollout ended here because its scenario's intervention cannot be applied. */
static bool apply_interventions(struct runner *runner, struct rollout *rollout)
{
    const struct branch *branch = rollout_branch(rollout);
    if (branch == NULL) {
        return true;
    }
    const struct scene *scene = ops(runner)->slot_scene(runner->world, (uint32_t)rollout->slot);
    while (rollout->next_intervention < branch->intervention_count &&
           branch->interventions[rollout->next_intervention].tick <= scene->tick) {
        const struct intervention *what = &branch->interventions[rollout->next_intervention++];
        if (stack_intervene(&rollout->stack, what, scene, stage_route(rollout->job->stage))) {
            continue;
        }
        struct error error;
        if (ops(runner)->slot_intervene(runner->world, (uint32_t)rollout->slot, what, &error) !=
            STATUS_OK) {
            fail_job(rollout->job, &error);
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
    struct job_run *job = rollout->job;
    bool main_line = rollout->branch == ROLLOUT_MAIN;
    rollout_finish(rollout, ticks, error);
    discard(runner, rollout);
    if (main_line) {
        end_main_line(job);
    }
}

static void record(struct rollout *rollout, const struct scene *scene, struct action action)
{
    const struct trace_extra extra = {
        .action = action,
        .sensors_dark = stack_sensors_dark(&rollout->stack, scene->tick),
        .guardian = score_guardian_active(rollout->score),
        .observation_digest = rollout->observation_digest,
    };
    struct error error;
    if (trace_append(&rollout->trace, scene, &extra, &error) != STATUS_OK) {
        fail_job(rollout->job, &error);
    }
}

/* Scores the scene, checks its health and ends the rollout when it is over. True: it goes on. */
static bool look(struct runner *runner, struct rollout *rollout)
{
    const struct scene *scene = ops(runner)->slot_scene(runner->world, (uint32_t)rollout->slot);
    struct health_verdict health;
    if (!health_update(&rollout->health, scene, &health)) {
        struct job_run *job = rollout->job;
        bool main_line = rollout->branch == ROLLOUT_MAIN;
        rollout_flag(rollout, scene->tick, &health);
        discard(runner, rollout);
        if (main_line) {
            end_main_line(job);
        }
        return false;
    }
    score_update(rollout->score, scene);
    if (scene->tick >= rollout->job->scenario->horizon_ticks || score_ended(rollout->score)) {
        record(rollout, scene, (struct action){0});
        end_rollout(runner, rollout, scene->tick, "");
        return false;
    }
    return true;
}

/* Phase 1: everything that happens before the planner is asked. New branches join in the same tick.
 */
static void prepare(struct runner *runner)
{
    for (uint32_t i = 0; i < runner->slot_count && runner->planner != NULL; i++) {
        fork_due_branches(runner, i);
    }
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (rollout == NULL) {
            continue;
        }
        if (rollout->job->cancelled || rollout->job->failure != STATUS_OK ||
            !apply_interventions(runner, rollout)) {
            discard(runner, rollout);
            continue;
        }
        look(runner, rollout);
    }
}

/* Phase 2: one batched question to the planner. False when its instance died. */
static bool ask(struct runner *runner, uint32_t *count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (rollout != NULL) {
            rollout_observe(rollout, runner->world, ops(runner)->slot_scene(runner->world, i),
                            runner->wants, &runner->observations[n]);
            runner->slot_of_query[n++] = i;
        }
    }
    *count = n;
    if (n == 0) {
        return true;
    }
    struct error error;
    memset(runner->failed, 0, n);
    if (planner_act(runner->planner, n, runner->observations, runner->answers, runner->failed,
                    &error) != STATUS_OK) {
        planner_died(runner, &error);
        return false;
    }
    return true;
}

/* Phase 3: answers become actions and are recorded; then one step of the world. */
static void drive(struct runner *runner, uint32_t count)
{
    memset(runner->active, 0, runner->slot_count);
    for (uint32_t q = 0; q < count; q++) {
        uint32_t slot = runner->slot_of_query[q];
        struct rollout *rollout = runner->slots[slot];
        const struct scene *scene = ops(runner)->slot_scene(runner->world, slot);
        if (runner->failed[q]) {
            char text[OUTCOME_ERROR_BYTES];
            snprintf(text, sizeof text, "tick %u: %s", scene->tick,
                     planner_session_error(runner->planner, rollout->session));
            record(rollout, scene, (struct action){0});
            end_rollout(runner, rollout, scene->tick, text);
            continue;
        }
        const struct action answer = {runner->answers[q].accel_mps2, runner->answers[q].steer_rad};
        rollout->action =
            stack_drive(&rollout->stack, &answer, scene, stage_route(rollout->job->stage),
                        rollout->job->scenario->ego.wheelbase_m, rollout->route_s_m);
        record(rollout, scene, rollout->action);
        runner->actions[slot] = rollout->action;
        runner->active[slot] = 1;
    }
    ops(runner)->step(runner->world, runner->actions, runner->active);
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->active[i]) {
            const struct pose *now = &ops(runner)->slot_scene(runner->world, i)->ego.pose;
            double dx = now->x_m - runner->slots[i]->health.ego_pose.x_m;
            double dy = now->y_m - runner->slots[i]->health.ego_pose.y_m;
            runner->slots[i]->distance_m += sqrt(dx * dx + dy * dy);
            runner->stats.ticks++;
        }
    }
}

/* Shares the processor time of a tick equally among the rollouts that took part. */
static void charge(struct runner *runner, int64_t elapsed_ns)
{
    uint32_t left = runner->active_count;
    for (uint32_t i = 0; i < runner->slot_count && left > 0; i++) {
        if (runner->slots[i] != NULL) {
            int64_t share_ns = elapsed_ns / left;
            runner->slots[i]->device_ns += share_ns;
            elapsed_ns -= share_ns;
            left--;
        }
    }
}

static void collect_done(struct runner *runner)
{
    struct job_run **link = &runner->jobs;
    while (*link != NULL) {
        struct job_run *job = *link;
        bool broken = job->cancelled || job->failure != STATUS_OK;
        if (broken) {
            purge_job(runner, job);
        }
        if (broken || job->finished_count == job->rollout_count) {
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
    int64_t start_ns = clock_thread_cpu_ns(runner->config.clock);
    uint32_t count = 0;
    fill_slots(runner);
    prepare(runner);
    if (runner->planner != NULL && ask(runner, &count)) {
        drive(runner, count);
    }
    charge(runner, clock_thread_cpu_ns(runner->config.clock) - start_ns);
    collect_done(runner);
}

uint32_t runner_free_slots(const struct runner *runner)
{
    uint32_t taken = runner->active_count;
    for (const struct rollout *r = runner->waiting.head; r != NULL; r = r->next) {
        taken++;
    }
    for (const struct rollout *r = runner->isolated.head; r != NULL; r = r->next) {
        taken++;
    }
    return taken >= runner->slot_count ? 0 : runner->slot_count - taken;
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

void runner_cancel(struct runner *runner, int64_t job_id)
{
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        if (job->lease.job_id == job_id) {
            job->cancelled = true;
        }
    }
}

uint32_t runner_progress(const struct runner *runner, struct runner_progress *out, uint32_t max)
{
    uint32_t count = 0;
    for (const struct job_run *job = runner->jobs; job != NULL && count < max; job = job->next) {
        struct runner_progress *entry = &out[count++];
        *entry = (struct runner_progress){.job_id = job->lease.job_id, .epoch = job->lease.epoch};
        for (uint32_t i = 0; i < job->rollout_count; i++) {
            entry->device_ns += job->results[i].device_ns;
            entry->metres_mm += job->results[i].metres_mm;
        }
        for (uint32_t i = 0; i < runner->slot_count; i++) {
            const struct rollout *rollout = runner->slots[i];
            if (rollout != NULL && rollout->job == job) {
                entry->device_ns += rollout->device_ns;
                entry->metres_mm += (int64_t)(rollout->distance_m * 1000.0);
            }
        }
    }
    return count;
}

const struct runner_stats *runner_stats(const struct runner *runner)
{
    return &runner->stats;
}
