/*
 * One play: what the world of a seed is like, what fate does to it, the quiet tail, and what must
 * be true in the end. See fleet.h.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAIL_NS_MAX (3600 * NS_PER_S) /* after the last fault everything must be done by then */
#define START_NS (1000 * NS_PER_S)

/* ---- what clients were told ---- */

void fleet_leased(struct fleet *fleet, const struct process *process, const struct job_lease *lease)
{
    for (uint32_t i = 0; i < fleet->leased_count; i++) {
        if (fleet->leased[i].job_id == lease->job_id && fleet->leased[i].epoch == lease->epoch) {
            sim_violation(&fleet->sim,
                          "%s was handed job %" PRId64 " epoch %" PRId64 ", as somebody was before",
                          process->name, lease->job_id, lease->epoch);
        }
    }
    CHECK(fleet->leased_count < FLEET_LEASED_MAX);
    fleet->leased[fleet->leased_count++] = (struct leased){lease->job_id, lease->epoch};
}

void fleet_acknowledged(struct fleet *fleet, const struct job_spec *spec, int64_t job_id)
{
    CHECK(fleet->ack_count < FLEET_ACKS_MAX);
    struct ack *ack = &fleet->acks[fleet->ack_count++];
    ack->job_id = job_id;
    memcpy(ack->suite_id, spec->suite_id, sizeof ack->suite_id);
    memcpy(ack->key, spec->key, sizeof ack->key);
}

void fleet_told(struct fleet *fleet, const struct job_completion *completion, enum status status)
{
    if (completion->kind == COMPLETION_DONE) {
        CHECK(fleet->told_count < FLEET_LEASED_MAX);
        fleet->told[fleet->told_count++] =
            (struct told){completion->job_id, completion->epoch, status == STATUS_OK};
    }
}

/* A result that counts is there, one that does not is not. The model's jobs are the store's here:
 * they have just been compared. */
static void check_told(struct fleet *fleet)
{
    for (uint32_t i = 0; i < fleet->told_count; i++) {
        const struct told *told = &fleet->told[i];
        const struct model_job *job = model_job(fleet->model, told->job_id);
        bool there = job != NULL && job->state == JOB_DONE && job->outcome_epoch == told->epoch;
        if (there != told->counts) {
            sim_violation(&fleet->sim,
                          "the result of job %" PRId64 " epoch %" PRId64 " was %s, but is%s there",
                          told->job_id, told->epoch, told->counts ? "accepted" : "refused as stale",
                          there ? "" : " not");
        }
    }
}

static void check_acks(struct fleet *fleet)
{
    struct error error;
    struct store *store = fleet->server.store;
    struct store_job *job = calloc(1, sizeof *job);

    CHECK(job != NULL);
    for (uint32_t i = 0; i < fleet->ack_count && !fleet->sim.failed; i++) {
        const struct ack *ack = &fleet->acks[i];
        if (store->ops->job(store, ack->job_id, job, &error) != STATUS_OK ||
            (!fleet->follows && !fleet->freezes && strcmp(job->spec.key, ack->key) != 0) ||
            strcmp(job->spec.suite_id, ack->suite_id) != 0) {
            sim_violation(&fleet->sim,
                          "the submit of key %.24s to %s was acknowledged as job %" PRId64
                          ", which is not there",
                          ack->key, ack->suite_id, ack->job_id);
        }
    }
    free(job);
}

/* ---- processes come and go ---- */

static void start_worker(void *context, int64_t pool)
{
    struct fleet *fleet = context;
    if (!fleet->stopping && fleet->process_count < FLEET_PROCESSES_MAX - 16) {
        worker_start(fleet, (int)pool);
    }
}

static void start_submitter(void *context, int64_t suite)
{
    struct fleet *fleet = context;
    if (!fleet->stopping) {
        submitter_start(fleet, (int)suite);
    }
}

void fleet_worker_ended(struct fleet *fleet, struct process *process,
                        const struct store_worker *worker)
{
    struct sim *sim = &fleet->sim;
    int64_t pool = strcmp(worker->pool, model_pools[0]) == 0 ? 0 : 1;

    if (fleet->stopping) {
        return;
    }
    sim_log(sim, process->name, "has ended");
    if (process->dead && sim_chance(sim, 0.4)) {
        operator_gone(fleet, worker->worker_id); /* its parent saw it die */
    }
    sim_at(sim, sim->now_ns + sim_between(sim, 100, 20000) * NS_PER_MS, start_worker, fleet, pool);
}

void fleet_submitter_ended(struct fleet *fleet, struct process *process, int suite)
{
    struct sim *sim = &fleet->sim;
    if (fleet->stopping) {
        return;
    }
    if (process->dead) {
        sim_at(sim, sim->now_ns + sim_between(sim, 100, 20000) * NS_PER_MS, start_submitter, fleet,
               suite);
    } else {
        fleet->submitting--;
    }
}

/* ---- fate ---- */

/* Now and then a planner does not start on one host, seldom on any. */
static void draw_hosts(struct fleet *fleet)
{
    for (int i = 0; i < 2; i++) {
        fleet->badly_set_up[i] = sim_chance(&fleet->sim, 0.3)   ? 1u << sim_draw(&fleet->sim, 4)
                                 : sim_chance(&fleet->sim, 0.1) ? 15
                                                                : 0;
    }
}

/* Seeds differ in which faults they know at all: rare combinations come up that way. */
static double some(struct sim *sim, double chance)
{
    return sim_chance(sim, 0.6) ? chance : 0;
}

static void draw_faults(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    fleet->faults = (struct faults){
        .request_lost = some(sim, 0.04),
        .reply_lost = some(sim, 0.06),
        .duplicated = some(sim, 0.05),
        .late_claim = some(sim, 0.05),
        .claim_lost = some(sim, 0.1),
        .proxied = some(sim, 0.2),
        .slow = some(sim, 0.05),
        .crash = some(sim, 0.025),
        .disk_slow = some(sim, 0.02),
        .worker_crash = some(sim, 0.08),
        .worker_pause = some(sim, 0.15),
        .partition = some(sim, 0.15),
        .server_crash = some(sim, 0.02),
        .clock_jump = some(sim, 0.08),
        .cancel = sim_chance(sim, 0.25) ? 0.03 : 0,
        .false_gone = sim_chance(sim, 0.3) ? 0.15 : 0,
    };
}

static bool is_alive(const struct process *process)
{
    bool busy = false;
    for (const struct task *task = process->tasks; task != NULL; task = task->next) {
        busy |= !task->ended;
    }
    return busy && !process->dead;
}

/* A living worker, or now and then a submitter; NULL: there is none. */
static struct process *draw_process(struct fleet *fleet)
{
    struct process *living[FLEET_PROCESSES_MAX];
    uint64_t count = 0;

    for (int i = 0; i < fleet->process_count; i++) {
        struct process *process = fleet->processes[i];
        bool worker = process->name[0] == 'w' || process->name[0] == 't';
        bool submitter = process->name[0] == 's' && sim_chance(&fleet->sim, 0.3);
        if ((worker || submitter) && is_alive(process)) {
            living[count++] = process;
        }
    }
    return count > 0 ? living[sim_draw(&fleet->sim, count)] : NULL;
}

static void heal(void *context, int64_t argument)
{
    struct process *process = context;
    (void)argument;
    process->deaf = false;
    process->mute = false;
}

static void jump_clock(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    struct server *server = &fleet->server;
    int64_t by_ns = sim_between(sim, -20000, 40000) * NS_PER_MS;

    if (sim_clock_now(&server->clock) + by_ns > NS_PER_S && server->busy_until_ns <= sim->now_ns) {
        server->clock.offset_ns += by_ns;
        sim_log(sim, "server", "its clock is set by %.3f s", (double)by_ns / 1e9);
    }
}

static void strike_process(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    const struct faults *faults = &fleet->faults;
    struct process *process = draw_process(fleet);

    if (process == NULL) {
        return;
    }
    if (sim_chance(sim, faults->worker_crash)) {
        process_kill(process);
    } else if (sim_chance(sim, faults->worker_pause)) {
        int64_t ns = sim_between(sim, 500, 30000) * NS_PER_MS;
        process->paused_until_ns = sim->now_ns + ns;
        sim_log(sim, process->name, "is suspended for %.1f s", (double)ns / 1e9);
    } else if (sim_chance(sim, faults->partition)) {
        int64_t ns = sim_between(sim, 500, 30000) * NS_PER_MS;
        uint64_t kind = sim_draw(sim, 3);
        process->deaf = kind != 0;
        process->mute = kind != 1;
        sim_log(sim, process->name, "is cut off (%s) for %.1f s",
                kind == 0   ? "its requests"
                : kind == 1 ? "its replies"
                            : "both ways",
                (double)ns / 1e9);
        sim_at(sim, sim->now_ns + ns, heal, process, 0);
    } else if (sim_chance(sim, faults->false_gone)) {
        operator_gone(fleet, process->name);
    }
}

/* A version moves; the last one is mostly a shadow, and stays one for a while. */
static void move_version(struct fleet *fleet)
{
    static const enum model_state states[] = {MODEL_CANARY,   MODEL_CANARY,    MODEL_PROMOTED,
                                              MODEL_PROMOTED, MODEL_CANDIDATE, MODEL_SHADOW};
    struct sim *sim = &fleet->sim;
    int version = (int)sim_draw(sim, MODEL_VERSIONS);
    bool last = version == MODEL_VERSIONS - 1;
    enum model_state to = last && sim_chance(sim, 0.8) ? MODEL_SHADOW : states[sim_draw(sim, 6)];

    operator_version(fleet, version, to, sim_chance(sim, 0.3) ? 100 : sim_between(sim, 1, 100));
}

static void strike(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    char suite_id[LIMIT_ID_BYTES];

    strike_process(fleet);
    if (sim_chance(sim, fleet->faults.server_crash)) {
        server_crash(&fleet->server);
    }
    if (sim_chance(sim, fleet->faults.clock_jump)) {
        jump_clock(fleet);
    }
    if (sim_chance(sim, fleet->faults.cancel)) {
        snprintf(suite_id, sizeof suite_id, "suite-%d",
                 (int)sim_draw(sim, (uint64_t)fleet->suites));
        operator_cancel(fleet, suite_id);
    }
    if (fleet->follows && sim_chance(sim, fleet->faults.versions)) {
        move_version(fleet);
    }
    if (fleet->freezes && sim_chance(sim, fleet->faults.trust)) {
        operator_trust(fleet, (int)sim_draw(sim, MODEL_WEATHERS));
        operator_floor(fleet, fleet->audit_rate * (double)sim_draw(sim, 4) / 3.0);
    }
    if (sim_chance(sim, 0.02)) {
        operator_price(fleet, (int)sim_draw(sim, MODEL_POOLS), (int)sim_draw(sim, MODEL_DEVICES),
                       sim_between(sim, 1, 3) * 1234567);
    }
}

static void begin_tail(struct fleet *fleet)
{
    fleet->quiet = true;
    memset(&fleet->faults, 0, sizeof fleet->faults);
    for (int i = 0; i < fleet->process_count; i++) {
        fleet->processes[i]->paused_until_ns = 0;
        heal(fleet->processes[i], 0);
    }
    sim_log(&fleet->sim, "fate", "rests from now on");
}

static void stop(struct fleet *fleet)
{
    fleet->stopping = true;
    for (int i = 0; i < fleet->process_count; i++) {
        process_kill(fleet->processes[i]);
    }
}

/* Every second or so: fate, the server's timer, and whether it is over. */
static void beat(void *context, int64_t argument)
{
    struct fleet *fleet = context;
    struct sim *sim = &fleet->sim;

    if (fleet->stopping) {
        return;
    }
    bool over = fleet->submitting == 0 && model_all_terminal(fleet->model);
    if (!fleet->quiet && (over || sim->now_ns >= fleet->end_ns)) {
        fleet->end_ns = sim->now_ns;
        begin_tail(fleet);
    }
    if (!fleet->quiet) {
        strike(fleet);
    }
    if (fleet->server.up && fleet->server.busy_until_ns <= sim->now_ns) {
        server_tick(&fleet->server);
        if (argument % 40 == 39) {
            server_compare(&fleet->server, "looking at everything");
        }
    }
    if (fleet->quiet && sim->now_ns - fleet->end_ns > TAIL_NS_MAX) {
        sim_violation(sim, "an hour after the last fault there are jobs that are not done");
    }
    if (fleet->quiet && fleet->server.up && over) {
        stop(fleet);
        return;
    }
    sim_at(sim, sim->now_ns + sim_between(sim, 500, 1500) * NS_PER_MS, beat, fleet, argument + 1);
}

/* ---- a play ---- */

const char *const fleet_tenants[MODEL_TENANTS] = {"", "acme", "beta"};

static void draw_world(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    struct model *model = fleet->model;

    model_init(model, sim_between(sim, 4, 15) * NS_PER_S, sim_between(sim, 100, 2000) * NS_PER_MS);
    model->bill_slack_ns = NS_PER_S;
    model->parties = true;
    model->affinity = sim_chance(sim, 0.5);
    model->rollouts_max = (uint32_t)sim_between(sim, 1, 3);
    fleet->one_tier = sim_chance(sim, 0.2);
    fleet->suites = (int)sim_between(sim, fleet->one_tier ? 2 : 1, 3);
    fleet->batches = fleet->one_tier ? 2 : (int)sim_between(sim, 1, 4);
    fleet->batch_jobs = (uint32_t)sim_between(sim, 2, fleet->one_tier ? 24 : 8);
    static const int64_t job_ms_max[] = {1000, 4000, 25000};
    fleet->checkpoint_pages = (int)sim_between(sim, 10, 400);
    fleet->job_ms_max = job_ms_max[sim_draw(sim, 3)];
    fleet->audit_rate = sim_chance(sim, 0.5) ? 0.4 : 0;
    for (int i = 0; i < fleet->suites; i++) {
        fleet->weights[i] = (uint32_t)sim_between(sim, 1, 3);
        const uint64_t seed = fleet->options->seed;
        fleet->tenants[i] = seed % 2 == 1 ? fleet_tenants[i % MODEL_TENANTS] : NULL;
        fleet->classes[i] =
            seed % 4 >= 2 ? (enum suite_class)(1 + (seed / 4 + (uint64_t)i) % 3) : SUITE_CLASS_SAME;
    }
    fleet->submitting = fleet->suites;
    fleet->end_ns = sim->now_ns + sim_between(sim, 30, 240) * NS_PER_S;
    draw_faults(fleet);
    draw_hosts(fleet);
    bool both = fleet->options->seed % 6 == 5;
    fleet->follows = !fleet->one_tier && (both || fleet->options->seed % 3 == 0);
    fleet->faults.versions = fleet->follows ? 0.15 : 0;
    fleet->freezes = !fleet->one_tier && (both || fleet->options->seed % 3 == 1);
    fleet->faults.trust = fleet->freezes ? 0.1 : 0;
    model->versioned = true;
}

static void begin(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    int64_t bulk = sim_between(sim, 1, 3);

    for (int i = 0; i < fleet->suites; i++) {
        sim_at(sim, sim->now_ns + sim_between(sim, 0, 5000) * NS_PER_MS, start_submitter, fleet, i);
    }
    for (int64_t i = 0; i < bulk; i++) {
        sim_at(sim, sim->now_ns + sim_between(sim, 0, 9000) * NS_PER_MS, start_worker, fleet, 0);
    }
    sim_at(sim, sim->now_ns + sim_between(sim, 0, 9000) * NS_PER_MS, start_worker, fleet, 1);
    sim_at(sim, sim->now_ns + NS_PER_S, beat, fleet, 0);
}

static void check_end(struct fleet *fleet)
{
    char why[512];

    if (fleet->server.store != NULL) {
        server_compare(&fleet->server, "at the end");
        check_acks(fleet);
        check_told(fleet);
    }
    server_close(&fleet->server);
    if (!medium_holds(&fleet->server, why, sizeof why) && !fleet->sim.failed) {
        sim_violation(&fleet->sim, "at the end, the database: %s", why);
    }
}

static void finish(struct fleet *fleet)
{
    for (int i = 0; i < fleet->process_count; i++) {
        process_destroy(fleet->processes[i]);
    }
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        free(fleet->swapped[i]);
    }
    sim_finish(&fleet->sim);
    free(fleet->model);
    free(fleet);
}

static void count_figures(const struct fleet *fleet, struct fleet_figures *figures)
{
    const struct model *model = fleet->model;

    figures->events = fleet->sim.events;
    figures->requests = fleet->requests;
    figures->deaths = fleet->deaths;
    figures->deaths_in_calls = fleet->deaths_in_calls;
    figures->intrusions = fleet->intrusions;
    figures->takings = fleet->takings;
    figures->moves = fleet->moves;
    figures->trusted = fleet->events;
    figures->claims_again = model->claims_again;
    figures->claims_late = model->claims_late;
    figures->asked_back = model->asked_back;
    figures->processes = fleet->process_count;
    figures->jobs = model->job_count;
    figures->attempts = model->attempt_count;
    figures->race_max = model->race_max;
    for (int i = 0; i < model->job_count; i++) {
        figures->states[model->jobs[i].state]++;
        figures->memoised += model->jobs[i].memoised;
        figures->audits += model->jobs[i].audit;
        figures->answered += model->jobs[i].answered;
        figures->in_flight += model->jobs[i].in_flight;
        figures->shadows += model->jobs[i].repeats >= 0;
        figures->shadows_done += model->jobs[i].repeats >= 0 && model->jobs[i].state == JOB_DONE;
    }
    for (int i = 0; i < model->attempt_count; i++) {
        figures->ends[model->attempts[i].end]++;
    }
}

void fleet_play(const struct fleet_options *options, struct fleet_result *result)
{
    char path[FLEET_PATH_BYTES];
    struct fleet *fleet = calloc(1, sizeof *fleet);

    CHECK(fleet != NULL);
    fleet->model = malloc(sizeof *fleet->model);
    CHECK(fleet->model != NULL);
    fleet->options = options;
    fleet->bug = options->bug;
    sim_init(&fleet->sim, options->seed, options->trace);
    fleet->sim.now_ns = START_NS;
    draw_world(fleet);
    snprintf(path, sizeof path, "%s/fleet.db", options->directory);
    server_open(&fleet->server, fleet, path);
    begin(fleet);
    while (!fleet->sim.failed && !fleet->stopping && sim_step(&fleet->sim)) {
    }
    stop(fleet);
    while (sim_step(&fleet->sim)) { /* fibers end, messages are dropped */
    }
    check_end(fleet);
    memset(result, 0, sizeof *result);
    result->failed = fleet->sim.failed;
    result->digest = fleet->sim.digest;
    count_figures(fleet, &result->figures);
    memcpy(result->why, fleet->sim.why, sizeof result->why);
    finish(fleet);
}
