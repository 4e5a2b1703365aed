/*
 * Simulated worker processes: one fiber that claims, works and completes, one that sends
 * heartbeats, as worker/run/claim_loop.c and worker/run/lease_keeper.c do it; the work itself is
 * waiting.
 *
 * What a job's rollouts say follows from its key alone, as the product promises: so two suites that
 * ask the same question get the same verdicts, whoever answers.
 */
#include "base/sha256.h"
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "schemas/job_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 6, HOSTS = 4 };

struct held {
    struct job_lease lease;
    int64_t start_ns; /* by the worker's clock */
    int64_t need_ns;
    bool cancelled;
    bool known[MODEL_ROLLOUTS_MAX]; /* partial outcomes that the store has */
};

struct worker {
    struct process *process;
    struct store_worker identity;
    int64_t expires_ns; /* of the lease, by the worker's clock */
    int64_t ttl_ms;
    uint32_t capacity;
    int64_t claim_id;     /* of the next claim */
    uint32_t claim_room;  /* most jobs that were asked for under that id */
    double fails;         /* chance that an attempt breaks */
    double releases;      /* chance that a job is handed back */
    bool stubborn;        /* goes on with jobs although its lease is over */
    bool badly_set_up[2]; /* planner p0, p1 does not start on this host */
    struct store_planner without[2];
    bool beating;
    char opened[SHA256_HEX_BYTES]; /* the first model that it was asked for */
    uint32_t held_count;
    struct held held[HELD_MAX];
    struct job_completion completions[HELD_MAX];
    struct outcome outcomes[HELD_MAX][MODEL_ROLLOUTS_MAX];
    struct store_completion_result results[HELD_MAX];
};

static uint64_t key_hash(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *key != '\0'; key++) {
        hash = (hash ^ (uint8_t)*key) * UINT64_C(0x100000001b3);
    }
    return rng_mix(hash);
}

/* ---- what was done ---- */

/* Every eighth worker asks for an hour, whatever it has done. Others' clocks are set forwards, so
 * that they ask for more than can be, too. */
static int64_t cost_ns(const struct worker *worker, const struct held *held)
{
    if (atoi(worker->identity.worker_id + 1) % 8 == 3) {
        return NS_PER_HOUR;
    }
    int64_t worked_ns = process_now(worker->process) - held->start_ns;
    return worked_ns > 0 ? worked_ns / 2 + 1 : 1;
}

/* Worlds with a model compute. */
static int64_t mflop_of(const struct held *held, int64_t device_ns)
{
    return held->lease.spec.tier >= TIER_STUDENT ? device_ns / 1000 : 0;
}

/* The model that answers: of a worker with the bug, the first that it was asked for. */
static const char *opened_model(struct worker *worker, const struct job_spec *spec)
{
    const struct bug *bug = worker->process->fleet->bug;
    if (bug == NULL || !bug->old_version || !spec->follows) {
        return spec->model_hash;
    }
    if (worker->opened[0] == '\0') {
        memcpy(worker->opened, spec->model_hash, sizeof worker->opened);
    }
    return worker->opened;
}

static void fill_outcome(struct worker *worker, const struct held *held, uint32_t index,
                         bool flagged, struct outcome *outcome)
{
    const struct job_spec *spec = &held->lease.spec;
    uint64_t hash = rng_mix(key_hash(spec->key) + index);

    memset(outcome, 0, sizeof *outcome);
    job_context_copy(spec, outcome);
    memcpy(outcome->model_hash, opened_model(worker, spec), sizeof outcome->model_hash);
    if (index > 0) {
        snprintf(outcome->branch_id, sizeof outcome->branch_id, "b%" PRIu32, index);
    }
    outcome->verdict = flagged          ? VERDICT_FLAGGED
                       : hash % 10 == 0 ? VERDICT_PLANNER_ERROR
                       : hash % 11 == 0 ? VERDICT_INVALID
                       : hash % 3 == 0  ? VERDICT_FAIL
                                        : VERDICT_PASS;
    outcome->ticks = 5 + (uint32_t)(hash % 5); /* of nine */
    outcome->prefix_ticks = index > 0 ? 4 : 0;
    outcome->metres_mm = 1000 + (int64_t)(hash % 20000);
    outcome->metrics.distance_m = (double)outcome->metres_mm * 1e-3;
    outcome->device_ns = 1000;
    outcome->reasons = outcome->verdict == VERDICT_FAIL ? REASON_DISTANCE : 0;
    if (outcome->verdict == VERDICT_PLANNER_ERROR) {
        snprintf(outcome->error, sizeof outcome->error, "exited");
    }
    if (outcome->verdict == VERDICT_INVALID) {
        snprintf(outcome->health_check, sizeof outcome->health_check, "overlap");
        outcome->health_tick = 3;
    }
    if (flagged) {
        snprintf(outcome->health_check, sizeof outcome->health_check, "frozen");
    }
    char attempt[LIMIT_ID_BYTES + 64];
    int bytes = snprintf(attempt, sizeof attempt, "%s-%" PRId64 "-%" PRId64,
                         worker->identity.worker_id, held->lease.job_id, held->lease.epoch);
    sha256_hex(attempt, (size_t)bytes, outcome->trace_hash);
}

/* Workers of earlier versions say who answers instead: what they were told. */
static void escalate(struct worker *worker, struct job_completion *completion,
                     const struct job_spec *spec)
{
    if (sim_chance(&worker->process->fleet->sim, 0.5)) {
        return;
    }
    memcpy(completion->escalate_pool, spec->escalate_pool, sizeof completion->escalate_pool);
    completion->escalate_tier = spec->escalate_tier;
    memcpy(completion->escalate_model_hash, spec->escalate_model_hash,
           sizeof completion->escalate_model_hash);
    memcpy(completion->escalate_sampler, spec->escalate_sampler,
           sizeof completion->escalate_sampler);
}

/* Fewer than the ticks of any scenario may take ego, to which completions are cut. */
static int64_t metres_of(int64_t device_ns)
{
    int64_t mm = device_ns / NS_PER_MS;
    return mm < 24000 ? mm : 24000;
}

static void fill_completion(struct worker *worker, const struct held *held, uint32_t index,
                            enum completion_kind kind)
{
    struct job_completion *completion = &worker->completions[index];
    bool with_outcomes = kind == COMPLETION_DONE || kind == COMPLETION_FLAGGED;

    memset(completion, 0, sizeof *completion);
    completion->job_id = held->lease.job_id;
    completion->epoch = held->lease.epoch;
    memcpy(completion->worker_id, worker->identity.worker_id, sizeof completion->worker_id);
    completion->kind = kind;
    completion->device_ns = cost_ns(worker, held);
    completion->metres_mm = metres_of(completion->device_ns);
    completion->mflop = mflop_of(held, completion->device_ns);
    if (kind == COMPLETION_FLAGGED) {
        escalate(worker, completion, &held->lease.spec);
    }
    if (kind == COMPLETION_FAILED || kind == COMPLETION_UNSTARTED) {
        snprintf(completion->error, sizeof completion->error, "simulated failure");
    }
    completion->outcomes = worker->outcomes[index];
    completion->outcome_count = with_outcomes ? held->lease.spec.rollout_count : 0;
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        fill_outcome(worker, held, i, kind == COMPLETION_FLAGGED, &worker->outcomes[index][i]);
    }
}

/* In the quiet tail somebody has set every host up. */
static bool cannot_start(const struct worker *worker, const struct held *held)
{
    size_t last = strlen(held->lease.spec.planner) - 1;
    return !worker->process->fleet->quiet &&
           worker->badly_set_up[held->lease.spec.planner[last] == '1'];
}

static enum completion_kind kind_of(struct worker *worker, const struct held *held)
{
    struct sim *sim = &worker->process->fleet->sim;
    bool student = held->lease.spec.tier == TIER_STUDENT;
    bool audit = held->lease.spec.audit_key[0] != '\0';

    if (held->cancelled || sim_chance(sim, worker->releases)) {
        return COMPLETION_RELEASED;
    }
    if (cannot_start(worker, held)) {
        return COMPLETION_UNSTARTED;
    }
    if (sim_chance(sim, worker->fails)) {
        return COMPLETION_FAILED;
    }
    uint64_t hash = key_hash(held->lease.spec.key);
    return (student && hash % 3 == 0) || (audit && hash % 8 == 0) ? COMPLETION_FLAGGED
                                                                  : COMPLETION_DONE;
}

/* ---- completing ---- */

static void drop_held(struct worker *worker, const struct job_completion *completion)
{
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (worker->held[i].lease.job_id == completion->job_id &&
            worker->held[i].lease.epoch == completion->epoch) {
            worker->held[i] = worker->held[--worker->held_count];
            return;
        }
    }
}

/* Some jobs leave traces; artifacts are there before the completion that names them. */
static bool put_trace(struct worker *worker, struct job_completion *completion)
{
    struct store *store = worker->process->link;
    struct error error;
    char body[128];
    char hash[SHA256_HEX_BYTES];
    int bytes = snprintf(body, sizeof body, "trace of %s", worker->outcomes[0][0].trace_hash);

    if (store->ops->artifact_put(store, body, (size_t)bytes, hash, &error) != STATUS_OK) {
        return false;
    }
    memcpy(completion->artifact_hash, hash, sizeof hash);
    memcpy(worker->outcomes[0][0].artifact_hash, hash, sizeof hash);
    return true;
}

/* The planner of a job that was excused is not claimed for any more. */
static void leave_alone(struct worker *worker, const struct job_completion *completion,
                        const struct store_completion_result *result)
{
    struct store_worker *identity = &worker->identity;
    for (uint32_t i = 0; result->excused && i < worker->held_count; i++) {
        const struct job_lease *lease = &worker->held[i].lease;
        bool known = false;
        for (uint32_t k = 0; k < identity->without_count; k++) {
            known |= strcmp(worker->without[k].planner, lease->spec.planner) == 0;
        }
        if (lease->job_id == completion->job_id && lease->epoch == completion->epoch && !known) {
            struct store_planner *added = &worker->without[identity->without_count++];
            memcpy(added->planner, lease->spec.planner, sizeof added->planner);
            memcpy(added->planner_hash, lease->spec.planner_hash, sizeof added->planner_hash);
            identity->without = worker->without;
        }
    }
}

/* Sends the first `count` completions until they are answered. */
static bool flush(struct task *task, struct worker *worker, uint32_t count)
{
    struct store *store = worker->process->link;
    struct sim *sim = &worker->process->fleet->sim;
    struct error error;

    if (worker->completions[0].kind == COMPLETION_DONE && sim_chance(sim, 0.1) &&
        !put_trace(worker, &worker->completions[0])) {
        return !worker->process->dead;
    }
    for (;;) {
        enum status status =
            store->ops->complete(store, worker->completions, count, worker->results, &error);
        if (worker->process->dead) {
            return false;
        }
        if (status == STATUS_OK) {
            break;
        }
        sim_log(sim, worker->process->name, "complete: %s", error.text);
        if (sim_chance(sim, 0.3)) {
            process_kill(worker->process); /* as a worker that finds no store */
            return false;
        }
        if (!task_sleep(task, sim_between(sim, 100, 5000) * NS_PER_MS)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        leave_alone(worker, &worker->completions[i], &worker->results[i]);
        fleet_told(worker->process->fleet, &worker->completions[i], worker->results[i].status);
        drop_held(worker, &worker->completions[i]);
    }
    /* Somebody forgot that it was answered. */
    if (sim_chance(sim, 0.05) && task_sleep(task, sim_between(sim, 0, 9000) * NS_PER_MS)) {
        store->ops->complete(store, worker->completions, count, worker->results, &error);
    }
    return !worker->process->dead;
}

static bool hand_back(struct task *task, struct worker *worker)
{
    uint32_t count = worker->held_count;
    for (uint32_t i = 0; i < count; i++) {
        fill_completion(worker, &worker->held[i], i, COMPLETION_RELEASED);
    }
    return count == 0 || flush(task, worker, count);
}

/* Hands over what is finished of a job while that goes on; whether it is answered or not, the job
 * goes on, too. */
static bool hand_over(struct worker *worker, struct held *held)
{
    struct sim *sim = &worker->process->fleet->sim;
    struct store *store = worker->process->link;
    struct job_completion *completion = &worker->completions[0];
    uint32_t rollouts = held->lease.spec.rollout_count;
    struct error error;

    fill_completion(worker, held, 0, COMPLETION_PARTIAL);
    for (uint32_t i = 0; i < rollouts && completion->outcome_count + 1 < rollouts; i++) {
        if (!held->known[i] && sim_chance(sim, 0.5)) {
            fill_outcome(worker, held, i, false, &worker->outcomes[0][completion->outcome_count++]);
        }
    }
    if (completion->outcome_count == 0) {
        return true;
    }
    enum status status =
        store->ops->artifact_put(store, "traces", 6, completion->artifact_hash, &error);
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        memcpy(worker->outcomes[0][i].artifact_hash, completion->artifact_hash,
               sizeof completion->artifact_hash);
    }
    THEN(status, store->ops->complete(store, completion, 1, worker->results, &error));
    if (worker->process->dead) {
        return false;
    }
    if (status != STATUS_OK) {
        sim_log(sim, worker->process->name, "partial: %s", error.text);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < completion->outcome_count; i++) {
        held->known[model_rollout(&worker->outcomes[0][i])] = true;
    }
    return true;
}

/* Asks what earlier attempts at a job have finished. */
static bool ask_partials(struct worker *worker, struct held *held)
{
    struct store *store = worker->process->link;
    struct outcome *found = calloc(MODEL_ROLLOUTS_MAX, sizeof *found);
    struct error error;
    uint32_t count = 0;

    CHECK(found != NULL);
    enum status status =
        store->ops->partials(store, held->lease.job_id, found, MODEL_ROLLOUTS_MAX, &count, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < count && !worker->process->dead; i++) {
        held->known[model_rollout(&found[i])] = true;
    }
    free(found);
    return !worker->process->dead;
}

static bool finish_jobs(struct task *task, struct worker *worker)
{
    struct sim *sim = &worker->process->fleet->sim;
    int64_t now_ns = process_now(worker->process);
    uint32_t count = 0;

    if (now_ns > worker->expires_ns && !worker->stubborn) {
        sim_log(sim, worker->process->name, "has lost its lease");
        return hand_back(task, worker);
    }
    for (uint32_t i = 0; i < worker->held_count; i++) {
        if (worker->held[i].lease.spec.rollout_count > 1 && sim_chance(sim, 0.2) &&
            !hand_over(worker, &worker->held[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < worker->held_count; i++) {
        const struct held *held = &worker->held[i];
        if (held->cancelled || now_ns - held->start_ns >= held->need_ns ||
            cannot_start(worker, held)) {
            fill_completion(worker, held, count++, kind_of(worker, held));
        }
    }
    return count == 0 || flush(task, worker, count);
}

/* ---- claiming ---- */

static bool claim_jobs(struct task *task, struct worker *worker, uint32_t *got)
{
    struct job_lease *leases = calloc(HELD_MAX, sizeof *leases);
    struct fleet *fleet = worker->process->fleet;
    struct store *store = worker->process->link;
    struct error error;
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    int64_t sent_ns = process_now(worker->process);
    uint32_t room = (uint32_t)sim_between(&fleet->sim, 1, worker->capacity - worker->held_count);
    uint32_t max = worker->claim_room > room ? worker->claim_room : room;
    int64_t claim_id = worker->claim_id;

    CHECK(leases != NULL);
    worker->claim_room = max;
    worker->identity.without_count = fleet->quiet ? 0 : worker->identity.without_count;
    enum status status = store->ops->claim(store, &worker->identity, &worker->claim_id, max, 0,
                                           leases, &count, &ttl_ms, &error);
    *got = 0;
    worker->claim_room = worker->claim_id != claim_id ? 0 : max;
    worker->claim_id += status != STATUS_OK && fleet->bug != NULL && fleet->bug->new_claim_ids;
    if (!worker->process->dead && status == STATUS_OK) {
        worker->ttl_ms = ttl_ms;
        int64_t expires_ns = sent_ns + ttl_ms * NS_PER_MS;
        worker->expires_ns = expires_ns > worker->expires_ns ? expires_ns : worker->expires_ns;
        for (uint32_t i = 0; i < count; i++) {
            fleet_leased(fleet, worker->process, &leases[i]);
            worker->held[worker->held_count++] = (struct held){
                .lease = leases[i],
                .start_ns = process_now(worker->process),
                .need_ns = sim_between(&fleet->sim, 100, fleet->job_ms_max) * NS_PER_MS,
            };
        }
        *got = count;
        for (uint32_t i = worker->held_count - count;
             i < worker->held_count && !worker->process->dead; i++) {
            struct held *held = &worker->held[i];
            /* Some workers do not ask, as those of earlier versions. */
            if (held->lease.epoch > 1 && held->lease.spec.rollout_count > 1 &&
                sim_chance(&fleet->sim, 0.7)) {
                ask_partials(worker, held);
            }
        }
    } else if (!worker->process->dead) {
        sim_log(&fleet->sim, worker->process->name, "claim: %s", error.text);
    }
    free(leases);
    (void)task;
    return !worker->process->dead;
}

static void keep_lease(struct task *task)
{
    struct worker *worker = task->context;
    struct process *process = worker->process;
    struct store_progress progress[HELD_MAX];
    int64_t cancelled[HELD_MAX];
    struct error error;

    while (task_sleep(task, worker->ttl_ms * NS_PER_MS / 4) && worker->beating) {
        uint32_t cancelled_count = 0;
        uint32_t count = worker->held_count;
        int64_t sent_ns = process_now(process);
        int64_t ttl_ms = 0;
        for (uint32_t i = 0; i < count; i++) {
            int64_t ns = cost_ns(worker, &worker->held[i]);
            progress[i] = (struct store_progress){.job_id = worker->held[i].lease.job_id,
                                                  .epoch = worker->held[i].lease.epoch,
                                                  .device_ns = ns,
                                                  .metres_mm = metres_of(ns),
                                                  .mflop = mflop_of(&worker->held[i], ns)};
        }
        enum status status =
            process->link->ops->heartbeat(process->link, &worker->identity, progress, count,
                                          cancelled, &cancelled_count, &ttl_ms, &error);
        if (process->dead || status != STATUS_OK) {
            continue;
        }
        int64_t expires_ns = sent_ns + ttl_ms * NS_PER_MS;
        worker->expires_ns = expires_ns > worker->expires_ns ? expires_ns : worker->expires_ns;
        for (uint32_t c = 0; c < cancelled_count; c++) {
            for (uint32_t i = 0; i < worker->held_count; i++) {
                worker->held[i].cancelled |= worker->held[i].lease.job_id == cancelled[c];
            }
        }
    }
}

static void work(struct task *task)
{
    struct worker *worker = task->context;
    struct process *process = worker->process;
    struct sim *sim = &process->fleet->sim;
    int64_t ends_ns = process_now(process) + sim_between(sim, 20, 500) * NS_PER_S;
    bool going = true;

    while (going) {
        uint32_t got = 0;
        if (worker->held_count < worker->capacity &&
            (worker->held_count == 0 || sim_chance(sim, 0.3))) {
            going = claim_jobs(task, worker, &got);
        }
        if (going && worker->held_count == 0) {
            going = task_sleep(task, sim_between(sim, 200, 4000) * NS_PER_MS);
        } else if (going) {
            going = task_sleep(task, sim_between(sim, 100, 1500) * NS_PER_MS) &&
                    finish_jobs(task, worker);
        }
        if (going && !process->fleet->quiet && process_now(process) > ends_ns) {
            hand_back(task, worker); /* drained, as a machine that is given back */
            going = false;
        }
    }
    worker->beating = false;
    fleet_worker_ended(process->fleet, process, &worker->identity);
}

void worker_start(struct fleet *fleet, int pool)
{
    struct worker *worker = calloc(1, sizeof *worker);
    struct sim *sim = &fleet->sim;

    CHECK(worker != NULL);
    snprintf(worker->identity.worker_id, sizeof worker->identity.worker_id, "%c%d",
             pool == 0 ? 'w' : 't', ++fleet->worker_lives);
    snprintf(worker->identity.pool, sizeof worker->identity.pool, "%s", model_pools[pool]);
    snprintf(worker->identity.device, sizeof worker->identity.device, "%s",
             model_devices[sim_draw(sim, MODEL_DEVICES)]);
    worker->process = process_create(fleet, worker->identity.worker_id);
    worker->process->state = worker;
    worker->capacity = (uint32_t)sim_between(sim, 1, HELD_MAX);
    worker->fails = sim_chance(sim, 0.5) ? 0.15 : 0;
    worker->releases = sim_chance(sim, 0.3) ? 0.1 : 0;
    worker->stubborn = sim_chance(sim, 0.4);
    uint32_t host = (uint32_t)sim_draw(sim, HOSTS);
    snprintf(worker->identity.host, sizeof worker->identity.host, "host%" PRIu32, host);
    for (int i = 0; i < 2; i++) {
        worker->badly_set_up[i] = (fleet->badly_set_up[i] >> host & 1) != 0;
    }
    worker->ttl_ms = 4000;
    worker->claim_id = 1;
    worker->beating = true;
    sim_log(sim, worker->process->name, "starts, capacity %" PRIu32 ", %s%s", worker->capacity,
            worker->identity.device, worker->stubborn ? ", stubborn" : "");
    process_start(worker->process, work, worker);
    process_start(worker->process, keep_lease, worker);
}
