/*
 * The claim loop: what is claimed and begun, the rounds, and a store that falls silent. One thread
 * simulates and talks to the store between ticks; the lease keeper's thread renews the lease. Jobs
 * leave through claim_loop_report.c.
 */
#include "worker/run/claim_loop_internal.h"

#include "base/units.h"
#include "worker/run/revision.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    JOBS_MAX = LIMIT_CLAIM_JOBS, /* running at a time, however many slots: one heartbeat's worth */
    JOBS_FIRST = 8,              /* of the first claim */
    NARROW_JOBS = 4,             /* per rollout that goes on at a time, where these are few */
    IDLE_WAIT_MS = 300,          /* long poll while there is nothing to do; see the config */
    QUEUED_MS_MAX = 30000,       /* that a drain waits for queued jobs without anything moving */
    IDLE_DOUBLINGS_MAX = 3,      /* of that, while all there is are jobs that do not start here */
    CLAIM_REST_MS = 50,          /* after a claim that found nothing, while jobs run */
    OFFLINE_PAUSE_MS = 20,       /* between looks, when there is nothing to do without the store */
    REPORT_PERIOD_MS = 200,
    STUCK_LIMIT_MS_MIN = 30000,
    STUCK_DEADLINES = 20,
};

/* Of compressed pages per learned world. */
#define SPILL_BYTES_MAX (UINT64_C(8) << 30)

/* ---- taking work ---- */

/* The runner for a leased job; its planner is not tried again when it did not start before. */
static enum status get_runner(struct claim_loop *loop, const struct job_lease *lease,
                              const struct rig *rig, struct runner **runner, struct error *error)
{
    struct store_planner planner;
    unstarted_planner(&lease->spec, &planner);
    if (unstarted_has(&loop->unstarted, &planner)) {
        *error = loop->unstarted.why;
        return STATUS_PLANNER;
    }
    unstarted_world(&lease->spec, &planner);
    if (unstarted_has(&loop->unstarted, &planner)) {
        *error = loop->unstarted.why;
        return STATUS_DEVICE;
    }
    const struct error *refused = unstarted_refused(&loop->unstarted, &lease->spec, rig);
    if (refused != NULL) {
        *error = *refused;
        return STATUS_CONFLICT;
    }
    enum status status = runner_cache_get(&loop->cache, &lease->spec, rig, runner, error);
    if (status == STATUS_CONFLICT) {
        unstarted_refuse(&loop->unstarted, &lease->spec, rig, error);
    }
    return status;
}

/* Compares a job with its scenario and this worker: what it says is its submitter's word until
 * here. Results of another simulation (MISMATCH: others may have it), or of another scenario than
 * the job names, would be false; too many or too few are refused by the store, with everything that
 * is completed beside them. */
static enum status check_spec(const struct claim_loop_config *config, const struct job_spec *spec,
                              const struct scenario *scenario, struct error *error)
{
    if (spec->revision[0] != '\0' && strcmp(spec->revision, revision_hash) != 0) {
        return error_set(
            error, STATUS_MISMATCH,
            "it asks for simulation revision %.12s, and this worker's is %.12s: start workers of "
            "that release, or submit again with the release of the workers",
            spec->revision, revision_hash);
    }
    if (strcmp(spec->scenario_id, scenario->id) != 0) {
        return error_set(error, STATUS_CONFLICT,
                         "its scenario is \"%s\", the job says \"%s\"; submit again", scenario->id,
                         spec->scenario_id);
    }
    bool made = job_has_maker(spec);
    bool golden = strcmp(spec->makes, JOB_MAKES_GOLDEN) == 0;
    if (spec->makes[0] != '\0' && !(made && config->make_clip != NULL) &&
        !(golden && config->pack_golden != NULL)) {
        return error_set(error, STATUS_CONFLICT, "it makes \"%s\", which this worker cannot",
                         spec->makes);
    }
    if (!made && spec->rollout_count != 1 + scenario->branch_count) {
        return error_set(error, STATUS_CONFLICT,
                         "scenario \"%s\" has %u rollouts, the job says %u; submit again",
                         scenario->id, 1 + scenario->branch_count, spec->rollout_count);
    }
    return STATUS_OK;
}

/* Its runner has no room here now, or its planner does not start here. */
static void give_back(struct claim_loop *loop, const struct job_lease *lease,
                      const struct error *why)
{
    if (why->status == STATUS_PLANNER) {
        claim_loop_hand_back_unstarted(loop, lease, why);
        return;
    }
    claim_loop_pending_add(loop, lease)->kind = COMPLETION_RELEASED;
    loop->runners_full = true;
}

/* Starts one leased job, or reports why it cannot start. */
static void begin(struct claim_loop *loop, const struct job_lease *lease)
{
    struct error error;
    struct prepared *prepared = NULL;
    struct runner *runner = NULL;
    struct job_run *job = NULL;
    int64_t start_ns = clock_thread_cpu_ns(loop->clock);
    if (loop->unstarted.count > 0 && atomic_load(loop->config->stop)) {
        /* Whoever ends the worker waits for as long as it tries planners that do not start. */
        claim_loop_pending_add(loop, lease)->kind = COMPLETION_RELEASED;
        return;
    }
    enum status status = prepared_cache_get(loop->prepared_scenarios, loop->config->store,
                                            lease->spec.scenario_hash, &prepared, &error);
    THEN(status, check_spec(loop->config, &lease->spec, prepared_scenario(prepared), &error));
    if (status == STATUS_OK && job_has_maker(&lease->spec)) {
        if (claim_loop_clip_add(loop, lease, prepared, &error) != STATUS_OK) {
            claim_loop_end_broken(loop, claim_loop_pending_add(loop, lease), lease, error.status,
                                  error.text);
        }
        return;
    }
    if (status == STATUS_OK) {
        status = get_runner(loop, lease, prepared_scenario(prepared)->rig, &runner, &error);
        if (status == STATUS_BUSY || status == STATUS_PLANNER) {
            prepared_cache_put(loop->prepared_scenarios, prepared);
            give_back(loop, lease, &error);
            return;
        }
        if (status == STATUS_OK && runner == NULL) {
            prepared_cache_put(loop->prepared_scenarios, prepared);
            claim_loop_wait(loop, lease);
            return;
        }
    }
    THEN(status, job_run_create(lease, prepared, &job, &error));
    if (status == STATUS_OK) {
        /* Making the scenario ready is part of what the job costs. */
        job->results[0].device_ns = clock_thread_cpu_ns(loop->clock) - start_ns;
        job->handed_ns = clock_now_ns(loop->clock);
        job->filmed = lease->spec.makes[0] != '\0';
        job->film_room_bytes = LIMIT_ARTIFACT_BYTES;
        job->partial_refused = loop->keeps_nothing;
        status = claim_loop_restore(loop, job, &error);
    }
    if (status == STATUS_OK) {
        status = runner_add(runner, job, ROLLOUT_ALL, &error);
    }
    if (status == STATUS_TIMEOUT) {
        /* The store fell silent before the job had begun: nobody's fault. */
        claim_loop_pending_add(loop, lease)->kind = COMPLETION_RELEASED;
    } else if (status != STATUS_OK) {
        claim_loop_end_broken(loop, claim_loop_pending_add(loop, lease), lease, status, error.text);
    }
    if (status != STATUS_OK) {
        job_run_destroy(job);
        if (prepared != NULL) {
            prepared_cache_put(loop->prepared_scenarios, prepared);
        }
    }
}

/* Begins the jobs that waited for a planner which has started, or failed to; hands back those that
 * were given up, and all of them when they go back or the worker is to end. */
static enum status begin_waiting(struct claim_loop *loop, struct error *error)
{
    enum status status = STATUS_OK;
    uint32_t count = loop->waiting_count;
    bool back = loop->waiting_goes_back || atomic_load(loop->config->stop);
    bool due = runner_cache_settle(&loop->cache) || back;
    for (uint32_t i = 0; i < count && !due; i++) {
        due = loop->waiting[i].given_up;
    }
    loop->waiting_goes_back = false;
    if (!due) {
        return STATUS_OK;
    }
    loop->waiting_count = 0;
    loop->nothing_ns = 0; /* what was left alone may be claimed again */
    loop->idle_doublings = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct claim_waiting waiting = loop->waiting[i];
        THEN(status, claim_loop_make_room(loop, error));
        if (status != STATUS_OK) {
            loop->waiting[loop->waiting_count] = waiting;
            loop->waiting[loop->waiting_count++].given_up = waiting.given_up || back;
        } else if (waiting.given_up || back) {
            claim_loop_pending_add(loop, &waiting.lease)->kind = COMPLETION_RELEASED;
        } else {
            begin(loop, &waiting.lease);
        }
    }
    return status;
}

/* As many as there are slots; fewer where a world goes on with few at a time, and before it is
 * known which worlds will: a job that only waits here is lost with the worker like one that runs.
 */
static uint32_t jobs_max(const struct claim_loop *loop)
{
    uint32_t most = loop->config->slot_count < JOBS_MAX ? loop->config->slot_count : JOBS_MAX;
    bool known = false;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        const struct runner *runner = loop->cache.entries[i].open.runner;
        if (runner == NULL) {
            continue;
        }
        uint32_t width = runner_width(runner);
        known = true;
        if (runner_busy(runner) && width < loop->config->slot_count && NARROW_JOBS * width < most) {
            most = NARROW_JOBS * width;
        }
    }
    return known || most < JOBS_FIRST ? most : JOBS_FIRST;
}

/* Jobs whose planners start leave their slots to others. */
static uint32_t begun(const struct claim_loop *loop)
{
    uint32_t begun = loop->running_count - loop->waiting_count;
    uint32_t starting = runner_cache_starting(&loop->cache);
    return begun > starting ? begun - starting : 0;
}

/* Few enough jobs are running for another claim to be worth its commit, and it could be begun. */
static bool wants_jobs(struct claim_loop *loop)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX && loop->runners_full; i++) {
        const struct runner *runner = loop->cache.entries[i].open.runner;
        loop->runners_full = runner == NULL || runner_busy(runner) || runner_starts(runner, 0);
    }
    if (claim_loop_paused(loop)) {
        return false;
    }
    int64_t rest_ns = (int64_t)(CLAIM_REST_MS << loop->idle_doublings) * NS_PER_MS;
    if (loop->running_count > 0 && clock_now_ns(loop->clock) < loop->nothing_ns + rest_ns) {
        return false; /* a claim costs as much as dozens of ticks, and there is one a round */
    }
    if (loop->alone) {
        return loop->running_count == 0;
    }
    uint32_t most = loop->made_way ? jobs_max(loop) - 1 : jobs_max(loop) / 2;
    return !loop->runners_full && loop->running_count < JOBS_MAX && begun(loop) <= most;
}

static bool is_poison(const struct job_lease *lease)
{
    return lease->lost >= JOB_LOST_POISON;
}

/* Keeps poison jobs and other jobs apart: of what was just claimed, the jobs to begin stay in front
 * of loop->leases, the others are handed back before any of them can be lost. While there may be
 * poison jobs, one job is claimed at a time, and only when nothing else is held. */
static enum status set_apart(struct claim_loop *loop, uint32_t *count, struct error *error)
{
    uint32_t poison = 0;
    for (uint32_t i = 0; i < *count; i++) {
        poison += is_poison(&loop->leases[i]) ? 1 : 0;
    }
    loop->alone = poison > 0;
    if (poison == 0) {
        return STATUS_OK;
    }
    /* Only poison jobs, and nothing runs: the first of them can begin now. */
    bool begin_first = poison == *count && loop->running_count == *count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        if ((begin_first && i == 0) || !is_poison(&loop->leases[i])) {
            loop->leases[kept++] = loop->leases[i];
        } else {
            claim_loop_pending_add(loop, &loop->leases[i])->kind = COMPLETION_RELEASED;
        }
    }
    *count = kept;
    return claim_loop_flush(loop, error);
}

/* Number of jobs to claim: whatever becomes of them can be noted without asking the store first. */
static uint32_t claim_room(const struct claim_loop *loop)
{
    uint32_t most = jobs_max(loop);
    uint32_t at_work = begun(loop);
    uint32_t room = most > at_work ? most - at_work : 1;
    uint32_t notes = CLAIM_LOOP_COMPLETION_BATCH - loop->pending_count;
    uint32_t more = JOBS_MAX - loop->running_count;
    room = room > notes ? notes : room;
    room = room > more ? more : room;
    return loop->alone ? 1 : room;
}

/* One claim; for no fewer jobs than before under its id: one that has not been answered, or that
 * comes twice and late, may have leased as many. */
static enum status call_claim(struct claim_loop *loop, int64_t wait_ms, uint32_t *count,
                              int64_t *ttl_ms, struct error *error)
{
    struct store *store = loop->config->store;
    struct store_worker worker = loop->config->worker;
    uint32_t room = claim_room(loop);
    int64_t claim_id = 0;
    enum status status = STATUS_OK;
    worker.without = loop->without;
    worker.without_count = claim_loop_leave_alone(loop);
    if (room < loop->claim_room) {
        room = loop->claim_room;
        status = claim_loop_flush(loop, error); /* room for notes, as there was */
    }
    while (status == STATUS_OK && *count == 0 && claim_id != loop->claim_id) {
        claim_id = loop->claim_id; /* a new one without leases: those of the last have ended */
        loop->claim_room = room;
        status = store->ops->claim(store, &worker, &loop->claim_id, room, wait_ms, loop->leases,
                                   count, ttl_ms, error);
    }
    loop->claim_room = claim_id != loop->claim_id ? 0 : loop->claim_room;
    return status;
}

static enum status claim(struct claim_loop *loop, bool *nothing, struct error *error)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t wait_ms = 0;
    if (loop->running_count == 0 &&
        (!loop->config->drain || loop->awaits || loop->queued_count > 0)) {
        wait_ms = loop->idle_wait_ms << loop->idle_doublings;
        /* That nothing is held: it may be long until the next time. */
        claim_loop_report_to_keeper(loop);
    }
    int64_t sent_ns = clock_now_ns(loop->clock);
    TRY(call_claim(loop, wait_ms, &count, &ttl_ms, error));
    lease_keeper_renewed(loop->keeper, sent_ns, ttl_ms);
    loop->silent_ns = count > 0 ? 0 : loop->silent_ns;
    *nothing = count == 0;
    loop->nothing_ns = *nothing ? clock_now_ns(loop->clock) : 0;
    loop->made_way = false;
    /* A claim that leaves jobs alone looks at all of them: not so often. */
    bool idle = count == 0 && (loop->waiting_count > 0 ||
                               (loop->running_count == 0 && loop->unstarted.count > 0));
    loop->idle_doublings = !idle                                       ? 0
                           : loop->idle_doublings < IDLE_DOUBLINGS_MAX ? loop->idle_doublings + 1
                                                                       : IDLE_DOUBLINGS_MAX;
    loop->running_count += count;
    enum status status = set_apart(loop, &count, error);
    if (status != STATUS_OK && status != STATUS_TIMEOUT) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        begin(loop, &loop->leases[i]);
    }
    return status == STATUS_OK ? claim_loop_make_room(loop, error) : status;
}

/* ---- the loop ---- */

static void tell_keeper(struct claim_loop *loop)
{
    if (clock_now_ns(loop->clock) - loop->reported_ns < REPORT_PERIOD_MS * NS_PER_MS) {
        return;
    }
    claim_loop_report_to_keeper(loop);
    struct lease_keeper_stop stops[LIMIT_CLAIM_JOBS];
    uint32_t count = lease_keeper_stopped(loop->keeper, stops, LIMIT_CLAIM_JOBS);
    for (uint32_t i = 0; i < count; i++) {
        claim_loop_give_up(loop, stops[i].job_id, stops[i].epoch);
    }
}

static bool tick_all(struct claim_loop *loop)
{
    bool busy = false;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (loop->cache.entries[i].open.runner != NULL &&
            runner_busy(loop->cache.entries[i].open.runner)) {
            runner_tick(loop->cache.entries[i].open.runner);
            busy = busy || !runner_starts(loop->cache.entries[i].open.runner, 0);
        }
    }
    return busy;
}

/* Whether the time is over for which what runs may go on, once the loop was asked to leave. */
static bool has_to_leave(struct claim_loop *loop)
{
    int64_t now_ns = clock_now_ns(loop->clock);
    if (loop->leaves_ns == 0) {
        loop->leaves_ns = now_ns + loop->config->grace_ms * NS_PER_MS;
    }
    return now_ns >= loop->leaves_ns;
}

/* Between two ticks of a clip: what a round does beside it, but for new jobs and results. False:
 * the clip is cancelled, the lease lost, or the worker leaves. */
static bool clip_goes_on(void *context)
{
    struct claim_loop *loop = context;
    tick_all(loop);
    tell_keeper(loop);
    bool leaves = atomic_load(loop->config->stop) && has_to_leave(loop);
    return !leaves && !loop->clips->cancelled && !lease_keeper_lost(loop->keeper);
}

/* Cancels what runs, so that it comes back as released; used to drain and when the lease is lost.
 */
static void hand_back(struct claim_loop *loop)
{
    loop->clips_go_back = true;
    loop->waiting_goes_back = loop->waiting_count > 0;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (loop->cache.entries[i].open.runner != NULL) {
            runner_cancel_all(loop->cache.entries[i].open.runner);
        }
    }
}

/* Whether jobs may come back that nobody else sees to, once there is nothing to claim: a drain
 * waits for them. Workers that are alive are heard of in every third of a lease. */
static enum status await_jobs(struct claim_loop *loop, struct error *error)
{
    const struct claim_loop_config *config = loop->config;
    struct store *store = config->store;
    struct store_awaited found = {.jobs_silent = 0};
    int64_t now_ns = clock_now_ns(loop->clock);
    loop->drained_ns = loop->drained_ns != 0 ? loop->drained_ns : now_ns;
    if (store->ops->awaited != NULL) {
        enum status status = store->ops->awaited(
            store, &config->worker, (now_ns - loop->drained_ns) / NS_PER_MS, &found, error);
        bool unable = status == STATUS_USAGE || status == STATUS_NOT_FOUND; /* an earlier server */
        TRY(unable ? STATUS_OK : status);
    }
    loop->awaits = found.jobs_silent > 0 || found.jobs_delayed > 0;
    if (found.jobs_silent > 0 && !loop->awaits_told) {
        loop->awaits_told = true;
        log_event(config->logger, LOG_ERROR,
                  "nothing is left to claim; waits up to %" PRId64 " s for %" PRId64
                  " jobs of workers that may have gone",
                  (found.silent_ms + 999) / 1000, found.jobs_silent);
    }
    return STATUS_OK;
}

/* Jobs of the pool that are queued although a claim found none: another transaction holds their
 * rows at this moment, or they wait for a delay, or for their tenant's limit. A drain stays for
 * them, as long as something moves. A store or a token that cannot say ends it as it is. */
static enum status queued_left(struct claim_loop *loop, bool *left, struct error *error)
{
    const struct claim_loop_config *config = loop->config;
    struct store_demand rows[STORE_DEMAND_ROWS_MAX];
    int64_t now_ns = clock_now_ns(loop->clock);
    int64_t queued = 0;
    int64_t leased = 0;
    uint32_t count = 0;
    *left = false;
    if (config->store->ops->demand == NULL || loop->unstarted.count > 0) {
        return STATUS_OK;
    }
    enum status status =
        config->store->ops->demand(config->store, rows, STORE_DEMAND_ROWS_MAX, &count, error);
    if (status != STATUS_OK) {
        return status == STATUS_TIMEOUT ? status : STATUS_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        bool own = strcmp(rows[i].pool, config->worker.pool) == 0;
        queued += own ? rows[i].jobs_queued : 0;
        leased += own ? rows[i].jobs_leased : 0;
    }
    if (queued != loop->queued_count || leased > 0) {
        loop->queued_count = queued;
        loop->queued_ns = now_ns;
    }
    *left = queued > 0;
    return *left && now_ns - loop->queued_ns > QUEUED_MS_MAX * NS_PER_MS
               ? error_set(error, STATUS_BUSY,
                           "%lld jobs of pool \"%s\" are queued and could not be claimed for %d s: "
                           "another transaction holds them, or their tenant's limit does",
                           (long long)queued, config->worker.pool, QUEUED_MS_MAX / 1000)
               : STATUS_OK;
}

/* With nothing to claim but jobs that do not start here, whoever is to report that ends. */
static enum status stuck_here(struct claim_loop *loop, bool *stuck, struct error *error)
{
    enum status status = STATUS_OK;
    *stuck = false;
    if (loop->config->leave_unstarted && loop->unstarted.count > 0) {
        status = unstarted_left(&loop->unstarted, loop->config->store, error);
        *stuck = status == STATUS_PLANNER || status == STATUS_DEVICE;
    }
    return *stuck ? STATUS_OK : status;
}

/* Meaning of a lost lease: others may run these jobs by now, so nothing more is spent on them. */
static void check_lease(struct claim_loop *loop)
{
    if (lease_keeper_lost(loop->keeper)) {
        log_event(loop->config->logger, LOG_WARNING, "lease lost: handing back %u jobs",
                  loop->running_count);
        hand_back(loop);
    }
}

/* One round: work for the slots, a tick of everything, results to the store. *over: a drain has
 * nothing left to do. */
static enum status round_of(struct claim_loop *loop, bool claiming, bool *over, struct error *error)
{
    bool nothing = false; /* an empty claim says so */
    bool offline = false;
    bool busy = false;
    enum status status = claim_loop_check_offline(loop, &offline, error);
    if (status == STATUS_OK && !offline && claiming && wants_jobs(loop)) {
        status = claim_loop_note_offline(loop, claim(loop, &nothing, error), error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (loop->offline_ns == 0) {
        TRY(claim_loop_note_offline(loop, begin_waiting(loop, error), error));
    }
    busy = tick_all(loop);
    if (loop->offline_ns == 0) {
        status = claim_loop_note_offline(
            loop, claim_loop_clip_make(loop, clip_goes_on, &busy, error), error);
    }
    if (loop->offline_ns == 0 && status == STATUS_OK) {
        status = claim_loop_note_offline(
            loop, claim_loop_collect(loop, !busy || loop->made_way, error), error);
    }
    if (loop->offline_ns == 0 && status == STATUS_OK) {
        status = claim_loop_note_offline(loop, claim_loop_hand_over(loop, false, error), error);
    }
    check_lease(loop);
    tell_keeper(loop);
    if (status != STATUS_OK) {
        return status;
    }
    if ((loop->offline_ns != 0 || claim_loop_paused(loop)) && !busy) {
        const struct timespec pause = {.tv_nsec = OFFLINE_PAUSE_MS * NS_PER_MS};
        nanosleep(&pause, NULL);
    } else if (!busy) {
        runner_cache_wait(&loop->cache, OFFLINE_PAUSE_MS);
    }
    if (loop->running_count > 0) {
        loop->drained_ns = 0;
        loop->awaits = loop->awaits_told = loop->looked_again = false;
    }
    *over = !busy && loop->running_count == 0 && (nothing || !claiming);
    if (*over && claiming && loop->config->drain) {
        status = claim_loop_note_offline(loop, await_jobs(loop, error), error);
        *over = status == STATUS_OK && loop->offline_ns == 0 && !loop->awaits;
        if (*over) {
            bool queued = false;
            status = claim_loop_note_offline(loop, queued_left(loop, &queued, error), error);
            *over = status == STATUS_OK && loop->offline_ns == 0 && !queued;
        }
        /* Jobs whose delay ended between the claim and the question were in neither: once more. */
        bool again = *over && !loop->looked_again;
        loop->looked_again = *over;
        *over = *over && !again;
    } else if (*over && claiming) {
        status = claim_loop_note_offline(loop, stuck_here(loop, over, error), error);
    }
    return status;
}

static enum status run(struct claim_loop *loop, struct error *error)
{
    const struct claim_loop_config *config = loop->config;
    enum status status = STATUS_OK;
    bool over = false;
    while (status == STATUS_OK && loop->refusal.status == STATUS_OK && !atomic_load(config->stop) &&
           !(over && (config->drain || config->leave_unstarted))) {
        status = round_of(loop, true, &over, error);
    }
    /* Asked to leave: what can be finished in time is. */
    while (status == STATUS_OK && loop->refusal.status == STATUS_OK && loop->running_count > 0 &&
           !has_to_leave(loop)) {
        status = round_of(loop, false, &over, error);
    }
    if (status == STATUS_OK && loop->offline_ns == 0) {
        status = claim_loop_hand_over(loop, true, error);
    }
    if (status == STATUS_OK) {
        hand_back(loop);
        status = claim_loop_clip_make(loop, clip_goes_on, &over, error);
        THEN(status, begin_waiting(loop, error));
        THEN(status, claim_loop_collect(loop, true, error));
    }
    if (status == STATUS_OK && !atomic_load(config->stop)) {
        status = unstarted_left(&loop->unstarted, config->store, error);
    }
    if (status == STATUS_OK && loop->refusal.status != STATUS_OK) {
        *error = loop->refusal;
        status = error->status;
    }
    return status;
}

static void loop_finish(struct claim_loop *loop)
{
    /* Job runs inside runners hold stages of the cache: take them out first. */
    hand_back(loop);
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        struct job_run *job;
        if (loop->cache.entries[i].open.runner == NULL) {
            continue;
        }
        while ((job = runner_take(loop->cache.entries[i].open.runner)) != NULL) {
            claim_loop_drop_job(loop, job);
        }
    }
    while (loop->unsent_count > 0) {
        claim_loop_drop_job(loop, loop->unsent[--loop->unsent_count]);
    }
    claim_loop_clips_drop(loop);
    runner_cache_finish(&loop->cache);
    loop->stats.ticks += loop->cache.ticks;
    loop->stats.forks += loop->cache.forks;
    if (loop->cache.batches > 0) {
        log_event(loop->config->logger, LOG_INFO,
                  "device: %llu graphs captured, %llu ticks of all slots, %.1f MB up, %.1f MB down",
                  (unsigned long long)loop->cache.captures, (unsigned long long)loop->cache.batches,
                  (double)loop->cache.up_bytes / 1e6, (double)loop->cache.down_bytes / 1e6);
    }
    claim_loop_pending_clear(loop);
    lease_keeper_stop(loop->keeper);
    prepared_cache_destroy(loop->prepared_scenarios);
    free(loop->leases);
    free(loop->waiting);
}

/* A plugin lives in this process and has no deadline but the keeper's. */
static void watch(void *context, const char *planner)
{
    const struct claim_loop *loop = context;
    lease_keeper_watch(loop->keeper, planner);
}
static int64_t stuck_limit_ms(const struct claim_loop_config *config)
{
    if (config->stuck_limit_ms > 0) {
        return config->stuck_limit_ms;
    }
    int64_t limit_ms = STUCK_DEADLINES * config->planner_config.tick_deadline_ms;
    return limit_ms > STUCK_LIMIT_MS_MIN ? limit_ms : STUCK_LIMIT_MS_MIN;
}

enum status claim_loop_run(const struct claim_loop_config *config, struct claim_loop_stats *stats,
                           struct error *error)
{
    struct claim_loop *loop = calloc(1, sizeof *loop);
    TRY(memory_check(loop, error, "worker: out of memory"));
    loop->config = config;
    loop->clock = clock_system();
    /* A drain looks in between for what may come back. */
    loop->idle_wait_ms =
        config->idle_wait_ms > 0 && !config->drain ? config->idle_wait_ms : IDLE_WAIT_MS;
    loop->cache.source = (struct runner_source){
        .models = config->models,
        .world_for_tier = config->world_for_tier,
        .planner_config = config->planner_config,
        .slot_count = config->slot_count,
        .thread_count = config->thread_count,
        .overlap = config->overlap,
        .start_apart = true,
        .device = config->device,
        .spill_bytes_max = config->spill_bytes_max > 0 ? config->spill_bytes_max : SPILL_BYTES_MAX,
        .checkpoint_ns = claim_loop_checkpoint_ns(config),
        .always_solo = config->solo,
        .clock = loop->clock,
        .logger = config->logger,
    };
    loop->cache.source.planner_config.watch = watch;
    loop->cache.source.planner_config.watch_context = loop;
    loop->claim_id = 1;
    loop->leases = calloc(LIMIT_CLAIM_JOBS, sizeof *loop->leases);
    loop->waiting = calloc(LIMIT_CLAIM_JOBS, sizeof *loop->waiting);
    loop->prepared_scenarios = prepared_cache_create();
    enum status status = STATUS_OK;
    if (loop->leases == NULL || loop->waiting == NULL || loop->prepared_scenarios == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "worker: out of memory");
    }
    THEN(status, lease_keeper_start(config->store, &config->worker, stuck_limit_ms(config),
                                    loop->clock, config->logger, &loop->keeper, error));
    THEN(status, run(loop, error));
    loop_finish(loop);
    if (loop->failed_count > CLAIM_LOOP_FAILURES_TOLD) {
        log_event(config->logger, LOG_ERROR, "%u more attempts failed",
                  loop->failed_count - CLAIM_LOOP_FAILURES_TOLD);
    }
    *stats = loop->stats;
    free(loop);
    return status;
}
