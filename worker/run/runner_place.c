/*
 * Places of rollouts: slots, sessions, parking, lists. Nothing here decides anything; it keeps the
 * counts right whichever way a rollout leaves.
 */
#include "worker/run/runner_internal.h"

#include "base/check.h"
#include "worker/run/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

struct job_run *runner_jobs(const struct runner *runner)
{
    return runner->jobs;
}

const struct trace *runner_main_trace(const struct runner *runner, const struct job_run *job)
{
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        const struct rollout *rollout = runner->slots[i];
        if (rollout != NULL && rollout->job == job && rollout->branch == ROLLOUT_MAIN) {
            return &rollout->trace;
        }
    }
    for (const struct rollout *r = runner->waiting.head; r != NULL; r = r->next) {
        if (r->job == job && r->branch == ROLLOUT_MAIN) {
            return &r->trace;
        }
    }
    return &job->results[0].trace;
}

struct rollout *runner_checkpoint_due(const struct runner *runner, const struct job_run *job,
                                      int64_t period_ns)
{
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (rollout != NULL && !runner->active[i] && rollout->job == job &&
            rollout->checkpoint != NULL && checkpoint_due(rollout, period_ns)) {
            return rollout;
        }
    }
    return NULL;
}

bool runner_drives_past(const struct runner *runner, const struct job_run *job)
{
    return job->results[0].kept != NULL &&
           (runner_main_trace(runner, job) != &job->results[0].trace ||
            rollout_list_has(&runner->isolated, job, ROLLOUT_MAIN));
}

/* ---- lists ---- */

void rollout_list_push_back(struct rollout_list *list, struct rollout *rollout)
{
    rollout->next = NULL;
    if (list->tail != NULL) {
        list->tail->next = rollout;
    } else {
        list->head = rollout;
    }
    list->tail = rollout;
}

struct rollout *rollout_list_pop(struct rollout_list *list)
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

void rollout_list_remove(struct rollout_list *list, struct rollout *rollout)
{
    struct rollout *before = NULL;
    struct rollout *at = list->head;
    while (at != rollout) {
        before = at;
        at = at->next;
    }
    *(before == NULL ? &list->head : &before->next) = rollout->next;
    if (list->tail == rollout) {
        list->tail = before;
    }
    rollout->next = NULL;
}

bool rollout_list_has(const struct rollout_list *list, const struct job_run *job, int32_t branch)
{
    for (const struct rollout *r = list->head; r != NULL; r = r->next) {
        if (r->job == job && r->branch == branch) {
            return true;
        }
    }
    return false;
}

/* ---- slots and sessions ---- */

int32_t runner_find_free_slot(const struct runner *runner)
{
    for (uint32_t i = 0; runner->active_count < runner->width && i < runner->slot_count; i++) {
        if (runner->slots[i] == NULL) {
            return (int32_t)i;
        }
    }
    return -1;
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
    return taken >= runner->width ? 0 : runner->width - taken;
}

void runner_occupy(struct runner *runner, struct rollout *rollout, int32_t slot)
{
    CHECK(runner->slots[slot] == NULL && rollout->slot < 0);
    rollout->slot = slot;
    runner->slots[slot] = rollout;
    runner->active_count++;
}

static void leave_slot(struct runner *runner, struct rollout *rollout)
{
    runner_ops(runner)->slot_release(runner->world, (uint32_t)rollout->slot);
    runner->slots[rollout->slot] = NULL;
    runner->active[rollout->slot] = 0;
    runner->active_count--;
    rollout->slot = -1;
}

void runner_take_session(struct runner *runner, struct rollout *rollout)
{
    /* Held by runner_next() and by runner_fork_due(). */
    CHECK(runner->free_session_count > 0 && !rollout->has_session);
    rollout->session = runner->free_sessions[--runner->free_session_count];
    rollout->has_session = true;
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

/* ---- parking ---- */

static void forget_parked(struct runner *runner, struct rollout *rollout)
{
    free(rollout->parked);
    rollout->parked = NULL;
    if (rollout->branch != ROLLOUT_MAIN) {
        runner->parked_branch_count--;
    }
}

static void remember_parked(struct runner *runner, struct rollout *rollout, void *state)
{
    rollout->parked = state;
    runner->stats.parks++;
    if (rollout->branch != ROLLOUT_MAIN) {
        runner->parked_branch_count++;
    }
}

static int rank_of(const struct job_run *job)
{
    return suite_class_rank(job->lease.of_class);
}

/* Whether `a` goes on before `b`: higher classes first, there what is under way before what has not
 * begun, and earlier jobs first. */
static bool goes_before(const struct rollout *a, const struct rollout *b)
{
    bool under_way = a->parked != NULL;
    if (rank_of(a->job) != rank_of(b->job)) {
        return rank_of(a->job) < rank_of(b->job);
    }
    return under_way != (b->parked != NULL) ? under_way : a->job->order < b->job->order;
}

void runner_wait(struct runner *runner, struct rollout *rollout)
{
    struct rollout_list *list = &runner->waiting;
    struct rollout *before = NULL;
    struct rollout *at = list->head;
    while (at != NULL && !goes_before(rollout, at)) {
        before = at;
        at = at->next;
    }
    rollout->next = at;
    *(before == NULL ? &list->head : &before->next) = rollout;
    if (at == NULL) {
        list->tail = rollout;
    }
}

void runner_wait_parked(struct runner *runner, struct rollout *rollout, void *state)
{
    remember_parked(runner, rollout, state);
    runner_wait(runner, rollout);
}

bool runner_park(struct runner *runner, struct rollout *rollout)
{
    void *state = malloc(runner_ops(runner)->slot_state_bytes(runner->world));
    if (state == NULL) {
        return false;
    }
    runner_ops(runner)->slot_save(runner->world, (uint32_t)rollout->slot, state);
    leave_slot(runner, rollout);
    runner_wait_parked(runner, rollout, state);
    return true;
}

/* Whether a job makes way for another one: it is of a lower class, or arrived later. */
static bool comes_after(const struct job_run *job, const struct job_run *other)
{
    int ranks = rank_of(job) - rank_of(other);
    return ranks != 0 ? ranks > 0 : job->order > other->order;
}

/* Whether a branch would find a session, and room to wait in where `more` branches are parked
 * before it. */
static bool has_fork_place(const struct runner *runner, uint32_t more)
{
    return runner->free_session_count > 0 && runner->parked_branch_count + more < RUNNER_PARKED_MAX;
}

/* Parks the rollout of the job that comes last, of those after `job`; a branch where `room`. */
static int32_t make_way(struct runner *runner, const struct job_run *job, bool of_lower_class,
                        bool room)
{
    struct rollout *latest = NULL;
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (rollout != NULL && !runner->active[i] && (room || rollout->branch == ROLLOUT_MAIN) &&
            comes_after(rollout->job, latest == NULL ? job : latest->job) &&
            (!of_lower_class || rank_of(rollout->job) > rank_of(job))) {
            latest = rollout;
        }
    }
    return latest != NULL && runner_park(runner, latest) ? runner_find_free_slot(runner) : -1;
}

int32_t runner_make_way(struct runner *runner, const struct job_run *job)
{
    return make_way(runner, job, false, runner->parked_branch_count < RUNNER_PARKED_MAX);
}

/* A rollout with a session goes on, but for a main line that would find no place for its next
 * branch. One without leaves a session for every branch that may be parked yet: so main lines hold
 * two sessions a slot at the most, and where none is free some branch has one, and ends. */
static bool may_go_on(const struct runner *runner, const struct rollout *rollout)
{
    return rollout->has_session
               ? !rollout->wants_place || has_fork_place(runner, 0)
               : runner->free_session_count + runner->parked_branch_count > RUNNER_PARKED_MAX;
}

struct rollout *runner_next(const struct runner *runner)
{
    struct rollout *next = runner->waiting.head;
    while (next != NULL && !may_go_on(runner, next)) {
        next = next->next;
    }
    return next;
}

int32_t runner_slot_for(struct runner *runner, const struct rollout *rollout)
{
    int32_t slot = runner_find_free_slot(runner);
    /* A world that keeps few states makes the others again, which takes longer than to wait. */
    bool parks = runner->config.foreign == NULL || runner->config.foreign->declared.states_max == 0;
    /* A branch that is parked must not take the place that a main line comes back for. */
    bool room = rollout->wants_place ? has_fork_place(runner, 1)
                                     : runner->parked_branch_count < RUNNER_PARKED_MAX;
    return slot >= 0 || !parks ? slot : make_way(runner, rollout->job, true, room);
}

void runner_unpark(struct runner *runner, struct rollout *rollout, int32_t slot)
{
    runner_ops(runner)->slot_restore(runner->world, (uint32_t)slot, rollout->parked);
    forget_parked(runner, rollout);
    rollout->wants_place = false;
    runner_occupy(runner, rollout, slot);
}

/* ---- leaving ---- */

void runner_discard(struct runner *runner, struct rollout *rollout)
{
    if (rollout->slot >= 0) {
        leave_slot(runner, rollout);
    }
    if (rollout->parked != NULL) {
        runner_ops(runner)->slot_state_drop(runner->world, rollout->parked);
        forget_parked(runner, rollout);
    }
    drop_session(runner, rollout);
    if (rollout == runner->alone) {
        runner->alone = NULL;
    }
    rollout_charge(rollout);
    rollout_destroy(rollout);
}

void runner_discard_list(struct runner *runner, struct rollout_list *list)
{
    struct rollout *rollout;
    while ((rollout = rollout_list_pop(list)) != NULL) {
        runner_discard(runner, rollout);
    }
}

void runner_purge_list(struct runner *runner, struct rollout_list *list, const struct job_run *job)
{
    struct rollout_list kept = {0};
    struct rollout *rollout;
    while ((rollout = rollout_list_pop(list)) != NULL) {
        if (rollout->job == job) {
            runner_discard(runner, rollout);
        } else {
            rollout_list_push_back(&kept, rollout);
        }
    }
    *list = kept;
}

void runner_purge_job(struct runner *runner, const struct job_run *job)
{
    runner_purge_list(runner, &runner->waiting, job);
    runner_purge_list(runner, &runner->isolated, job);
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->slots[i] != NULL && runner->slots[i]->job == job) {
            runner_discard(runner, runner->slots[i]);
        }
    }
}

void runner_fail_job(struct job_run *job, const struct error *error)
{
    if (job->failure == STATUS_OK) {
        job->failure = error->status;
        snprintf(job->error, sizeof job->error, "%s", error->text);
    }
}

/* ---- what it has cost ---- */

static void add_progress(struct runner_progress *entry, const struct job_run *job,
                         const struct rollout *rollout)
{
    if (rollout != NULL && rollout->job == job) {
        entry->device_ns += rollout->device_ns;
        entry->metres_mm += (int64_t)(rollout->distance_m * 1000.0);
        entry->flop += rollout->flop;
        entry->ticks += rollout->trace.tick_count;
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
            entry->flop += job->results[i].flop;
            entry->ticks += job->results[i].trace.tick_count;
        }
        for (uint32_t i = 0; i < runner->slot_count; i++) {
            add_progress(entry, job, runner->slots[i]);
        }
        for (const struct rollout *r = runner->waiting.head; r != NULL; r = r->next) {
            add_progress(entry, job, r);
        }
    }
    return count;
}
