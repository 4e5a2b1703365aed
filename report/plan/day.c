/*
 * A day, simulated event by event. See day.h.
 */
#include "report/plan/day.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/units.h"
#include "scheduler/audit.h"
#include "schemas/job_context.h"
#include "store/api/store.h"
#include "store/api/trust.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, CHUNK = 256, SLOTS_A_DAY = 96, WALL_S = 1700000000, START_S = 1000 };

#define POLL_S 30.0
#define WHOLE_DAY "day" /* the suite of a day that has a budget */
#define SLOT_S (PLAN_DAY_S / SLOTS_A_DAY)

enum phase { STARTING, IDLE, BUSY, GONE };

struct machine {
    enum plan_pool pool;
    enum phase phase;
    double at_s;   /* when something happens to it */
    double lost_s; /* when it vanishes */
    double begun_s;
    uint32_t life;
    int64_t claim_id;
    uint32_t lease_count;
    struct job_lease leases[BATCH];
    char id[LIMIT_ID_BYTES];
};

struct simulation {
    const struct day_inputs *inputs;
    struct day *day;
    struct store *store;
    struct clock clock;
    _Atomic int64_t now_ns; /* the store's committing thread reads it */
    double now_s;           /* of the day */
    uint64_t drawn;
    uint32_t machine_count;
    struct machine *machines;
    double *submitted_s; /* by job id */
    int64_t job_max;
    double *waits[PLAN_POOL_COUNT];
    int64_t wait_count[PLAN_POOL_COUNT];
    int64_t done_in_slot[SLOTS_A_DAY + 1]; /* the student's */
    int64_t serial;
    char scenario_hash[SHA256_HEX_BYTES];
    char digest[SHA256_HEX_BYTES];
    struct outcome outcomes[BATCH]; /* of the machine whose jobs end */
    struct job_completion completions[BATCH];
};

static int64_t clock_of(void *context)
{
    const struct simulation *day = context;
    return day->now_ns;
}

static int64_t wall_of(void *context)
{
    return clock_of(context) + (int64_t)(WALL_S - START_S) * NS_PER_S;
}

static double draw(struct simulation *day)
{
    day->drawn = rng_mix(day->drawn + 1);
    return (double)(day->drawn >> 11) * 0x1p-53;
}

/* Chains an event into the digest. */
static void note(struct simulation *day, const char *what, int64_t id)
{
    char text[SHA256_HEX_BYTES + 96];
    int bytes = snprintf(text, sizeof text, "%s %.6f %s %lld", day->digest, day->now_s, what,
                         (long long)id);
    sha256_hex(text, (size_t)bytes, day->digest);
}

/* ---- submissions ---- */

static uint32_t ticks_of(const struct job_spec *spec)
{
    return (uint32_t)strtoul(spec->scenario_id + 1, NULL, 10);
}

static enum tier draw_tier(struct simulation *day)
{
    double at = draw(day);
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        at -= day->inputs->plan.share[tier];
        if (at < 0.0) {
            return (enum tier)tier;
        }
    }
    return TIER_OBJECT;
}

static void fill_spec(struct simulation *day, const char *suite, enum tier tier,
                      struct job_spec *spec)
{
    const struct day_inputs *inputs = day->inputs;
    char name[64];
    uint32_t ticks = inputs->lengths[(uint32_t)(draw(day) * inputs->length_count)];
    int bytes = snprintf(name, sizeof name, "%llu %lld", (unsigned long long)inputs->seed,
                         (long long)++day->serial);
    memset(spec, 0, sizeof *spec);
    sha256_hex(name, (size_t)bytes, spec->key);
    snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "t%u", ticks);
    memcpy(spec->scenario_hash, day->scenario_hash, sizeof spec->scenario_hash);
    snprintf(spec->planner, sizeof spec->planner, "simulated");
    snprintf(spec->planner_hash, sizeof spec->planner_hash, "simulated");
    snprintf(spec->pool, sizeof spec->pool, "%s", plan_pool_names[plan_pool_of(tier)]);
    spec->tier = tier;
    snprintf(spec->backend, sizeof spec->backend, "simulated");
    snprintf(spec->revision, sizeof spec->revision, "simulated");
    spec->seed = (uint64_t)day->serial;
    spec->rollout_count = 1;
    spec->attempts_max = 20;
    if (tier == TIER_STUDENT) {
        snprintf(spec->escalate_pool, sizeof spec->escalate_pool, "%s",
                 plan_pool_names[PLAN_TEACHER]);
        spec->escalate_tier = TIER_TEACHER;
    }
}

static enum status keep_time(struct simulation *day, int64_t id, double at_s, struct error *error)
{
    if (id >= day->job_max) {
        int64_t more = day->job_max * 2 > id + 1024 ? day->job_max * 2 : id + 1024;
        double *grown = realloc(day->submitted_s, (size_t)more * sizeof *grown);
        TRY(memory_check(grown, error, "plan: out of memory"));
        day->submitted_s = grown;
        day->job_max = more;
    }
    day->submitted_s[id] = at_s;
    return STATUS_OK;
}

static enum status send(struct simulation *day, const char *suite, const struct job_spec *specs,
                        uint32_t count, struct error *error)
{
    struct store_submit_result results[2 * CHUNK];
    const double budget_uusd =
        strcmp(suite, WHOLE_DAY) == 0
            ? ceil(day->inputs->budget_usd * day->day->fraction * (double)UUSD_PER_USD)
            : 0.0;
    TRY(day->store->ops->submit_as(day->store, NULL, suite, 1, SUITE_CLASS_SAME,
                                   (int64_t)budget_uusd, specs, count, results, error));
    for (uint32_t i = 0; i < count; i++) {
        TRY(keep_time(day, results[i].job_id, day->now_s, error));
        note(day, "submit", results[i].job_id);
    }
    return STATUS_OK;
}

static bool is_frozen_now(const struct simulation *day)
{
    const struct day_inputs *inputs = day->inputs;
    double hour = day->now_s / 3600.0;
    return hour >= inputs->freeze_from_h && hour < inputs->freeze_from_h + inputs->freeze_hours;
}

/* `only`: TIER_COUNT, or what all of them are. */
static enum status submit_jobs(struct simulation *day, const char *suite, int64_t jobs,
                               enum tier only, struct error *error)
{
    const struct plan_inputs *plan = &day->inputs->plan;
    struct job_spec *specs = calloc(2 * CHUNK, sizeof *specs);
    TRY(memory_check(specs, error, "plan: out of memory"));
    enum status status = STATUS_OK;
    uint32_t count = 0;
    for (int64_t i = 0; i < jobs && status == STATUS_OK; i++) {
        enum tier tier = only == TIER_COUNT ? draw_tier(day) : only;
        bool frozen =
            tier == TIER_STUDENT && (draw(day) < plan->frozen_share ||
                                     (is_frozen_now(day) && draw(day) < day->inputs->freeze_share));
        fill_spec(day, suite, frozen ? TIER_TEACHER : tier, &specs[count++]);
        day->day->frozen += frozen;
        day->day->jobs++;
        const struct job_spec *spec = &specs[count - 1];
        if (spec->tier == TIER_STUDENT && trust_audit_sampled(spec->key, plan->audit_rate)) {
            struct job_spec *audit = &specs[count++];
            *audit = *spec;
            job_escalation_clear(audit);
            job_key_audit(spec->key, audit->key);
            memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
            snprintf(audit->pool, sizeof audit->pool, "%s", plan_pool_names[PLAN_TEACHER]);
            audit->tier = TIER_TEACHER;
            day->day->audits++;
        }
        if (count >= 2 * CHUNK - 1 || i + 1 == jobs) {
            status = send(day, suite, specs, count, error);
            count = 0;
        }
    }
    free(specs);
    for (uint32_t i = 0; i < day->machine_count; i++) {
        struct machine *machine = &day->machines[i];
        machine->at_s = machine->phase == IDLE ? day->now_s : machine->at_s;
    }
    return status;
}

/* ---- machines ---- */

static void start_machine(struct simulation *day, struct machine *machine, double ready_s)
{
    double rate = day->inputs->losses_per_hour;
    machine->life++;
    snprintf(machine->id, sizeof machine->id, "w%u-%u", (unsigned)(machine - day->machines),
             machine->life);
    machine->claim_id = 1;
    machine->lease_count = 0;
    machine->phase = STARTING;
    machine->at_s = ready_s;
    machine->lost_s =
        rate > 0.0 ? ready_s - log(1.0 - draw(day)) * 3600.0 / rate : (double)INFINITY;
}

static enum status claim(struct simulation *day, struct machine *machine, struct error *error)
{
    struct store_worker worker = {.device = "card"};
    int64_t ttl_ms = 0;
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", machine->id);
    snprintf(worker.pool, sizeof worker.pool, "%s", plan_pool_names[machine->pool]);
    snprintf(worker.host, sizeof worker.host, "%s", machine->id);
    uint32_t most = machine->pool == PLAN_CPU ? BATCH : 1; /* one fills a card */
    TRY(day->store->ops->claim(day->store, &worker, &machine->claim_id, most, 0, machine->leases,
                               &machine->lease_count, &ttl_ms, error));
    if (machine->lease_count == 0) {
        machine->phase = IDLE;
        machine->at_s = day->now_s + POLL_S; /* what failed comes back after a delay */
        return STATUS_OK;
    }
    machine->phase = BUSY;
    machine->begun_s = day->now_s;
    machine->at_s = day->now_s;
    for (uint32_t i = 0; i < machine->lease_count; i++) {
        const struct job_lease *lease = &machine->leases[i];
        int64_t *count = &day->wait_count[machine->pool];
        if (lease->attempt == 1 && *count < DAY_JOBS_MAX * 2) {
            day->waits[machine->pool][(*count)++] = day->now_s - day->submitted_s[lease->job_id];
        }
        machine->at_s += ticks_of(&lease->spec) * day->inputs->plan.tick_s[lease->spec.tier];
        note(day, "claim", lease->job_id);
    }
    return STATUS_OK;
}

static void fill_completion(struct simulation *day, const struct machine *machine, uint32_t index,
                            struct job_completion *completion, struct outcome *outcome)
{
    const struct plan_inputs *plan = &day->inputs->plan;
    const struct job_lease *lease = &machine->leases[index];
    const struct job_spec *spec = &lease->spec;
    uint32_t ticks = ticks_of(spec);
    double at = draw(day);
    bool failed = at < plan->failed_share;
    bool flagged = !failed && spec->tier == TIER_STUDENT && draw(day) < plan->flag_rate;
    memset(completion, 0, sizeof *completion);
    completion->job_id = lease->job_id;
    completion->epoch = lease->epoch;
    memcpy(completion->worker_id, machine->id, sizeof completion->worker_id);
    completion->kind = failed ? COMPLETION_FAILED : flagged ? COMPLETION_FLAGGED : COMPLETION_DONE;
    completion->device_ns = (int64_t)(ticks * plan->tick_s[spec->tier] * (double)NS_PER_S);
    completion->metres_mm = (int64_t)(ticks * plan->metres_per_tick * 1000.0);
    if (completion->kind == COMPLETION_FAILED) {
        return;
    }
    memset(outcome, 0, sizeof *outcome);
    job_context_copy(spec, outcome);
    outcome->ticks = ticks;
    if (flagged) {
        outcome->verdict = VERDICT_FLAGGED;
        snprintf(outcome->health_check, sizeof outcome->health_check, "simulated");
    }
    outcome->metres_mm = completion->metres_mm;
    outcome->device_ns = completion->device_ns;
    completion->outcomes = outcome;
    completion->outcome_count = 1;
}

/* When the budget was spent, and what that has cancelled so far. */
static enum status look_at_budget(struct simulation *day, struct error *error)
{
    struct store_suite_status suite;
    TRY(day->store->ops->suite_status(day->store, WHOLE_DAY, &suite, error));
    if (suite.stopped_by_budget && isnan(day->day->stopped_h)) {
        day->day->stopped_h = day->now_s / 3600.0;
        note(day, "budget", suite.jobs[JOB_CANCELLED]);
    }
    day->day->cancelled = suite.jobs[JOB_CANCELLED];
    return STATUS_OK;
}

static enum status finish_jobs(struct simulation *day, struct machine *machine, struct error *error)
{
    struct job_completion *completions = day->completions;
    struct store_completion_result results[BATCH];
    struct day_pool *pool = &day->day->pools[machine->pool];
    for (uint32_t i = 0; i < machine->lease_count; i++) {
        fill_completion(day, machine, i, &completions[i], &day->outcomes[i]);
    }
    TRY(day->store->ops->complete(day->store, completions, machine->lease_count, results, error));
    for (uint32_t i = 0; i < machine->lease_count; i++) {
        bool ended = completions[i].kind != COMPLETION_FAILED;
        note(day, completion_kind_names[completions[i].kind], completions[i].job_id);
        pool->attempts++;
        pool->jobs += ended;
        if (results[i].escalated_job_id > 0) {
            TRY(keep_time(day, results[i].escalated_job_id, day->now_s, error));
            day->day->flagged++;
        }
        if (machine->pool == PLAN_STUDENT && completions[i].kind == COMPLETION_DONE) {
            day->done_in_slot[(int)(day->now_s / SLOT_S)]++;
        }
    }
    pool->busy_s += day->now_s - machine->begun_s;
    machine->lease_count = 0;
    return day->inputs->budget_usd > 0.0 ? look_at_budget(day, error) : STATUS_OK;
}

/* Ends what a machine was at, and begins the next. */
static enum status step(struct simulation *day, struct machine *machine, struct error *error)
{
    if (machine->phase != GONE && machine->lost_s <= day->now_s) {
        struct day_pool *pool = &day->day->pools[machine->pool];
        pool->losses++;
        pool->attempts += machine->phase == BUSY ? machine->lease_count : 0;
        pool->busy_s += machine->phase == BUSY ? day->now_s - machine->begun_s : 0.0;
        note(day, "lost", machine - day->machines);
        machine->phase = GONE;
        machine->at_s = day->now_s + day->inputs->lease_s;
        machine->lost_s = (double)INFINITY;
        return STATUS_OK;
    }
    if (machine->phase == GONE) {
        enum status status = day->store->ops->worker_gone(day->store, machine->id, error);
        status = status == STATUS_NOT_FOUND ? STATUS_OK : status; /* it never claimed */
        start_machine(day, machine, day->now_s + day->inputs->start_s);
        return status;
    }
    if (machine->phase == BUSY) {
        TRY(finish_jobs(day, machine, error));
    }
    return claim(day, machine, error);
}

/* ---- the day ---- */

/* The machine to which something happens next, before `until_s`. */
static struct machine *next_machine(struct simulation *day, double until_s, double *at_s)
{
    struct machine *next = NULL;
    *at_s = until_s;
    for (uint32_t i = 0; i < day->machine_count; i++) {
        struct machine *machine = &day->machines[i];
        double at = machine->at_s < machine->lost_s ? machine->at_s : machine->lost_s;
        if (at < *at_s) {
            *at_s = at;
            next = machine;
        }
    }
    return next;
}

static void set_time(struct simulation *day, double at_s)
{
    day->now_s = at_s > day->now_s ? at_s : day->now_s;
    day->now_ns = (int64_t)(day->now_s * (double)NS_PER_S) + (int64_t)START_S * NS_PER_S;
}

static enum status roll_back(struct simulation *day, struct error *error)
{
    const struct day_inputs *inputs = day->inputs;
    int64_t jobs = 0;
    int until = (int)(day->now_s / SLOT_S);
    int from = until - (int)(inputs->rollback_hours * 3600.0 / SLOT_S);
    for (int slot = from > 0 ? from : 0; slot < until; slot++) {
        jobs += day->done_in_slot[slot];
    }
    day->day->redriven = jobs;
    note(day, "rollback", jobs);
    return jobs > 0 ? submit_jobs(day, "rollback", jobs, TIER_STUDENT, error) : STATUS_OK;
}

static enum status drive_day(struct simulation *day, int64_t jobs, struct error *error)
{
    const struct day_inputs *inputs = day->inputs;
    double weights = 0.0;
    double sent = 0.0;
    for (int hour = 0; hour < DAY_HOURS; hour++) {
        weights += inputs->hours[hour];
    }
    int rollback =
        inputs->rollback_hours > 0.0 ? (int)(inputs->rollback_at_h * 3600.0 / SLOT_S) : SLOTS_A_DAY;
    for (int slot = 0; slot < SLOTS_A_DAY; slot++) {
        char suite[32];
        snprintf(suite, sizeof suite, inputs->budget_usd > 0.0 ? WHOLE_DAY : "slot-%d", slot);
        set_time(day, slot * SLOT_S);
        double before = sent;
        sent += (double)jobs * inputs->hours[slot * DAY_HOURS / SLOTS_A_DAY] / weights /
                (SLOTS_A_DAY / DAY_HOURS);
        int64_t count = llround(sent) - llround(before);
        TRY(count > 0 ? submit_jobs(day, suite, count, TIER_COUNT, error) : STATUS_OK);
        TRY(slot == rollback ? roll_back(day, error) : STATUS_OK);
        double at_s = 0.0;
        struct machine *machine = next_machine(day, (slot + 1) * SLOT_S, &at_s);
        while (machine != NULL) {
            set_time(day, at_s);
            TRY(step(day, machine, error));
            machine = next_machine(day, (slot + 1) * SLOT_S, &at_s);
        }
    }
    set_time(day, PLAN_DAY_S);
    return inputs->budget_usd > 0.0 ? look_at_budget(day, error) : STATUS_OK;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static enum status sum_up(struct simulation *day, struct error *error)
{
    struct store_ledger_row rows[64];
    struct store_demand demand[16];
    uint32_t row_count = 0;
    uint32_t demand_count = 0;
    TRY(day->store->ops->ledger(day->store, NULL, rows, 64, &row_count, error));
    TRY(day->store->ops->demand(day->store, demand, 16, &demand_count, error));
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        struct day_pool *pool = &day->day->pools[i];
        int64_t count = day->wait_count[i];
        double sum = 0.0;
        qsort(day->waits[i], (size_t)count, sizeof(double), by_size);
        for (int64_t w = 0; w < count; w++) {
            sum += day->waits[i][w];
        }
        if (count > 0) {
            pool->wait_mean_s = sum / (double)count;
            pool->wait_p50_s = day->waits[i][(count - 1) / 2];
            pool->wait_p99_s = day->waits[i][(count * 99 + 99) / 100 - 1];
            pool->wait_max_s = day->waits[i][count - 1];
        }
        for (uint32_t m = 0; m < day->machine_count; m++) {
            const struct machine *machine = &day->machines[m];
            bool at_work = (int)machine->pool == i && machine->phase == BUSY;
            pool->busy_s += at_work ? PLAN_DAY_S - machine->begun_s : 0.0;
        }
        for (uint32_t r = 0; r < row_count; r++) {
            bool ours = strcmp(rows[r].pool, plan_pool_names[i]) == 0;
            pool->usd_ledger += ours ? (double)rows[r].totals.cost_uusd / (double)UUSD_PER_USD : 0;
        }
        for (uint32_t d = 0; d < demand_count; d++) {
            bool ours = strcmp(demand[d].pool, plan_pool_names[i]) == 0;
            pool->queued += ours ? demand[d].jobs_queued : 0;
        }
        const struct plan_pool_size *size = &day->inputs->sized.pools[i];
        double planned_s = size->device_s * day->day->fraction;
        pool->load = pool->cards > 0 ? pool->busy_s / PLAN_DAY_S / (double)pool->cards : 0.0;
        pool->load_planned = pool->cards > 0 ? planned_s / PLAN_DAY_S / (double)pool->cards : 0.0;
        pool->usd = (double)pool->cards * DAY_HOURS * day->inputs->plan.usd_per_hour[i];
        pool->usd_planned = planned_s / 3600.0 * day->inputs->plan.usd_per_hour[i];
    }
    memcpy(day->day->digest, day->digest, sizeof day->digest);
    return STATUS_OK;
}

/* The part of the fleet that is simulated, and its machines. */
static enum status make_machines(struct simulation *day, int64_t *jobs, struct error *error)
{
    const struct day_inputs *inputs = day->inputs;
    const struct plan_inputs *plan = &inputs->plan;
    double all =
        plan->miles_per_day * PLAN_METRES_PER_MILE / plan->metres_per_tick / plan->ticks_per_job;
    double fraction = all > (double)inputs->jobs_max ? (double)inputs->jobs_max / all : 1.0;
    int64_t cards[PLAN_POOL_COUNT];
    int64_t total = 0;
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        double wanted = (double)inputs->sized.pools[i].cards * fraction;
        cards[i] = wanted <= 0.0 ? 0 : wanted < 1.0 ? 1 : llround(wanted);
        total += cards[i];
        day->day->pools[i].cards = cards[i];
    }
    if (total > DAY_WORKERS_MAX) {
        return error_set(
            error, STATUS_LIMIT,
            "plan: expected at most %d simulated cards, found %lld; simulate fewer jobs",
            DAY_WORKERS_MAX, (long long)total);
    }
    day->machines = calloc((size_t)total + 1, sizeof *day->machines);
    TRY(memory_check(day->machines, error, "plan: out of memory"));
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        for (int64_t n = 0; n < cards[i]; n++) {
            struct machine *machine = &day->machines[day->machine_count++];
            machine->pool = (enum plan_pool)i;
            start_machine(day, machine, 0.0);
        }
    }
    day->day->fraction = fraction;
    *jobs = llround(all * fraction);
    return STATUS_OK;
}

static enum status open_store(struct simulation *day, struct error *error)
{
    static const char body[] = "{\"id\":\"simulated\"}";
    const struct store_config config = {.clock = &day->clock,
                                        .lease_ttl_ms = 7 * (int64_t)PLAN_DAY_S * 1000,
                                        .bill_slack_ms = (int64_t)PLAN_DAY_S * 1000};
    day->clock = (struct clock){
        .now_ns = clock_of, .wall_ns = wall_of, .thread_cpu_ns = clock_of, .context = day};
    set_time(day, 0.0);
    TRY(store_sqlite_open(day->inputs->store_path, &config, &day->store, error));
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        TRY(day->store->ops->price_set(
            day->store, plan_pool_names[i], "card",
            llround(day->inputs->plan.usd_per_hour[i] * (double)UUSD_PER_USD), error));
    }
    sha256_hex(body, sizeof body - 1, day->scenario_hash);
    return day->store->ops->scenario_put(day->store, day->scenario_hash, body, sizeof body - 1,
                                         error);
}

enum status day_simulate(const struct day_inputs *inputs, struct day *out, struct error *error)
{
    int64_t jobs = 0;
    memset(out, 0, sizeof *out);
    out->stopped_h = (double)NAN;
    struct simulation *day = calloc(1, sizeof *day);
    TRY(memory_check(day, error, "plan: out of memory"));
    day->inputs = inputs;
    day->day = out;
    day->drawn = inputs->seed;
    enum status status = STATUS_OK;
    for (int i = 0; i < PLAN_POOL_COUNT && status == STATUS_OK; i++) {
        day->waits[i] = calloc(DAY_JOBS_MAX * 2, sizeof(double));
        status = memory_check(day->waits[i], error, "plan: out of memory");
    }
    THEN(status, make_machines(day, &jobs, error));
    THEN(status, open_store(day, error));
    THEN(status, drive_day(day, jobs, error));
    THEN(status, sum_up(day, error));
    if (day->store != NULL) {
        day->store->ops->close(day->store);
    }
    for (int i = 0; i < PLAN_POOL_COUNT; i++) {
        free(day->waits[i]);
    }
    free(day->submitted_s);
    free(day->machines);
    free(day);
    return status;
}
