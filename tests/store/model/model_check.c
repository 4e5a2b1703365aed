/*
 * Comparing the model with everything that a store shows. See model.h.
 */
#include "tests/store/model/model.h"

#include "base/check.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTCOME_PAGE = 64, LEDGER_ROWS_MAX = 256 };

static const char *const end_names[END_COUNT] = {
    "done", "flagged", "failed", "released", "lost", "stale",
};

/* ---- jobs ---- */

bool model_check_job(struct model *model, const struct store_job *job)
{
    const struct model_job *expected = model_job(model, job->id);

    if (expected == NULL) {
        return model_differ(model, "the store has a job %" PRId64 " that nobody submitted",
                            job->id);
    }
    const char *worker = expected->worker >= 0 ? model->workers[expected->worker].id : "";
    if (job->state != expected->state || job->epoch != expected->epoch ||
        job->attempts != expected->attempts || strcmp(job->worker_id, worker) != 0) {
        return model_differ(
            model,
            "job %" PRId64 " is %s, epoch %" PRId64 ", attempts %" PRIu32 ", worker \"%s\"; "
            "expected %s, %" PRId64 ", %" PRId64 ", \"%s\"",
            job->id, job_state_names[job->state], job->epoch, job->attempts, job->worker_id,
            job_state_names[expected->state], expected->epoch, expected->attempts, worker);
    }
    char named[SHA256_HEX_BYTES];
    model_version_hash(expected->version > 0 ? expected->version : 0, named);
    if ((expected->version >= 0) != (strcmp(job->spec.model_hash, named) == 0)) {
        return model_differ(model, "job %" PRId64 " (%s) names model %.12s, not %s", job->id,
                            job_state_names[job->state], job->spec.model_hash,
                            expected->version >= 0 ? model_versions[expected->version] : "its own");
    }
    if ((!expected->moved && strcmp(job->spec.key, expected->key) != 0) ||
        job->spec.seed != expected->seed ||
        strcmp(job->spec.suite_id, model->suites[expected->suite]) != 0 ||
        job->spec.parent_job_id != expected->parent ||
        strcmp(job->spec.pool, model_pools[expected->pool]) != 0) {
        return model_differ(model, "job %" PRId64 " is not as it was submitted", job->id);
    }
    if ((job->freeze != 0) != (expected->answered || expected->in_flight || expected->moot)) {
        return model_differ(model,
                            "job %" PRId64 " says that freeze %" PRId64 " concerns it; it was"
                            " %s",
                            job->id, job->freeze,
                            expected->answered    ? "given to the teacher"
                            : expected->in_flight ? "on its way"
                            : expected->moot      ? "an audit of what the teacher answers"
                                                  : "never in a frozen slice");
    }
    return true;
}

static bool check_partials(struct model *model, struct store *store)
{
    struct error error;
    uint32_t count = 0;
    bool good = true;
    struct outcome *outcomes = calloc(MODEL_ROLLOUTS_MAX + 1, sizeof *outcomes);

    CHECK(outcomes != NULL);
    for (int i = 0; i < model->job_count && good; i++) {
        int64_t id = model->jobs[i].id;
        bool had = false;
        for (int k = 0; k < MODEL_ROLLOUTS_MAX; k++) {
            had = had || model->jobs[i].partials[k].epoch != 0;
        }
        if (!had && i % 8 != 0) {
            continue; /* now and then is enough */
        }
        enum status status =
            store->ops->partials(store, id, outcomes, MODEL_ROLLOUTS_MAX + 1, &count, &error);
        good = status == STATUS_OK
                   ? model_partials(model, id, outcomes, count)
                   : model_differ(model, "partial outcomes of job %" PRId64 ": %s", id, error.text);
    }
    free(outcomes);
    return good;
}

static bool check_jobs(struct model *model, struct store *store)
{
    struct error error;
    struct store_job *job = calloc(1, sizeof *job);
    bool good = true;

    CHECK(job != NULL);
    for (int i = 0; i < model->job_count && good; i++) {
        enum status status = store->ops->job(store, model->jobs[i].id, job, &error);
        good = status == STATUS_OK
                   ? model_check_job(model, job)
                   : model_differ(model, "job %" PRId64 ": %s", model->jobs[i].id, error.text);
    }
    free(job);
    return good;
}

/* ---- outcomes ---- */

/* A memoised job shows the result of one job with its key, and of the same one for ever. */
static void settle_source(const struct model *model, struct model_job *job,
                          const struct outcome *outcome)
{
    for (int i = 0; i < model->job_count && job->outcome_epoch == 0; i++) {
        const struct model_job *source = &model->jobs[i];
        if (source->state == JOB_DONE && !source->memoised && !source->moved &&
            strcmp(source->key, job->key) == 0 && source->outcome_epoch == outcome->epoch &&
            strcmp(source->token, outcome->trace_hash) == 0) {
            job->outcome_epoch = source->outcome_epoch;
            memcpy(job->token, source->token, sizeof job->token);
            for (uint32_t k = 0; k < job->outcome_count; k++) {
                job->outcomes[k].at = source->outcomes[k].at;
            }
        }
    }
}

static bool check_outcome(struct model *model, const struct outcome *outcome, uint32_t seen[])
{
    struct model_job *job = model_job(model, outcome->job_id);

    if (job == NULL || seen[job - model->jobs] >= job->outcome_count) {
        return model_differ(model, "job %" PRId64 " (%s) has an outcome that it should not have",
                            outcome->job_id, job != NULL ? job_state_names[job->state] : "unknown");
    }
    const struct model_outcome *expected = &job->outcomes[seen[job - model->jobs]++];
    if (job->memoised) {
        settle_source(model, job, outcome);
    }
    if (outcome->epoch != job->outcome_epoch || strcmp(outcome->trace_hash, job->token) != 0) {
        return model_differ(model,
                            "job %" PRId64 " shows the outcome of %s, epoch %" PRId64
                            "; the accepted one is %s, epoch %" PRId64,
                            job->id, outcome->trace_hash, outcome->epoch, job->token,
                            job->outcome_epoch);
    }
    if (job->version >= 0 && model_version_named(outcome->model_hash) != job->version) {
        return model_differ(model, "job %" PRId64 " was leased for %s, model %.12s answered it",
                            job->id, model_versions[job->version], outcome->model_hash);
    }
    /* A result stands for its question: taken over or not. */
    if (strcmp(outcome->planner, job->planner) != 0 || outcome->seed != job->seed ||
        strcmp(outcome->scenario_id, job->scenario_id) != 0 || outcome->tier != job->tier) {
        return model_differ(model,
                            "job %" PRId64 " (planner %s, scenario %s) shows a result of "
                            "planner %s, scenario %s",
                            job->id, job->planner, job->scenario_id, outcome->planner,
                            outcome->scenario_id);
    }
    if (outcome->verdict != expected->verdict || outcome->ticks != expected->ticks ||
        outcome->metres_mm != expected->metres_mm || !model_time_fits(&expected->at, outcome) ||
        (outcome->audit_of != 0) != (job->audit || job->repeats >= 0) ||
        outcome->shadow != (job->repeats >= 0) || outcome->parent_job_id != job->parent ||
        (job->repeats >= 0 && outcome->audit_of != model->jobs[job->repeats].id)) {
        return model_differ(model, "job %" PRId64 ": an outcome is not as it was reported",
                            job->id);
    }
    return true;
}

static bool check_outcomes(struct model *model, struct store *store, int suite)
{
    uint32_t seen[MODEL_JOBS_MAX] = {0};
    struct error error;
    uint32_t count = OUTCOME_PAGE;
    bool good = true;
    struct store_outcome_filter filter = {.limit = OUTCOME_PAGE};
    struct outcome *page = calloc(OUTCOME_PAGE, sizeof *page);

    CHECK(page != NULL);
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", model->suites[suite]);
    while (good && count == OUTCOME_PAGE) {
        if (store->ops->outcomes(store, &filter, page, &count, &error) != STATUS_OK) {
            good = model_differ(model, "outcomes of %s: %s", filter.suite_id, error.text);
        }
        for (uint32_t i = 0; i < count && good; i++) {
            good = check_outcome(model, &page[i], seen);
            filter.after_id = page[i].id;
        }
    }
    for (int i = 0; i < model->job_count && good; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->suite == suite && seen[i] != job->outcome_count) {
            good =
                model_differ(model, "job %" PRId64 " (%s) shows %" PRIu32 " outcomes of %" PRIu32,
                             job->id, job_state_names[job->state], seen[i], job->outcome_count);
        }
    }
    free(page);
    return good;
}

/* ---- money ---- */

/* Sums that the attempts on one row of the ledger add up to. */
static struct ledger_totals add_up(const struct model *model, int suite, int pool, int device,
                                   enum tier tier, bool audit, bool shadow, enum model_end end)
{
    struct ledger_totals totals = {0};

    for (int i = 0; i < model->attempt_count; i++) {
        const struct model_attempt *attempt = &model->attempts[i];
        const struct model_job *job = &model->jobs[attempt->job];
        if (job->suite != suite || attempt->pool != pool || attempt->tier != tier ||
            job->audit != audit || (job->repeats >= 0) != shadow ||
            model->workers[attempt->worker].device != device || attempt->end != end) {
            continue;
        }
        totals.attempts++;
        totals.device_ns += attempt->device_ns;
        totals.metres_mm += attempt->metres_mm;
        totals.mflop += attempt->mflop;
    }
    return totals;
}

static int named(const char *const *names, int count, const char *name)
{
    int i = 0;
    while (i < count && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

static bool check_ledger_row(struct model *model, int suite, const struct store_ledger_row *row)
{
    int pool = named(model_pools, MODEL_POOLS, row->pool);
    int device = named(model_devices, MODEL_DEVICES, row->device);
    int end = named(end_names, END_COUNT, row->end);

    if (pool == MODEL_POOLS || device == MODEL_DEVICES || end == END_COUNT) {
        return model_differ(model, "ledger: unknown row %s, %s, %s", row->pool, row->device,
                            row->end);
    }
    struct ledger_totals sum =
        add_up(model, suite, pool, device, row->tier, row->audit, row->shadow, (enum model_end)end);
    if (sum.attempts != row->totals.attempts || sum.device_ns != row->totals.device_ns ||
        sum.metres_mm != row->totals.metres_mm || sum.mflop != row->totals.mflop) {
        return model_differ(
            model,
            "ledger of %s, pool %s, %s, %s, %s%s: %" PRId64 " attempts, %" PRId64 " ns, %" PRId64
            " mm, %" PRId64 " Mflop; the attempts add up to %" PRId64 ", %" PRId64 ", %" PRId64
            ", %" PRId64,
            model->suites[suite], row->pool, row->device, tier_names[row->tier], row->end,
            row->shadow  ? " (shadow)"
            : row->audit ? " (audit)"
                         : "",
            row->totals.attempts, row->totals.device_ns, row->totals.metres_mm, row->totals.mflop,
            sum.attempts, sum.device_ns, sum.metres_mm, sum.mflop);
    }
    return true;
}

/* By the definition in store/sql/ledger.h: for each price, the floor of what its attempts cost.
 */
static int64_t owed_uusd(const struct model *model)
{
    int64_t owed = 0;

    for (int p = 0; p < model->price_count; p++) {
        __int128 total = 0;
        for (int i = 0; i < model->attempt_count; i++) {
            if (model->attempts[i].price == p) {
                total += (__int128)model->attempts[i].device_ns * model->prices[p].uusd_per_hour;
            }
        }
        owed += (int64_t)(total / NS_PER_HOUR);
    }
    return owed;
}

static bool check_ledger(struct model *model, struct store *store)
{
    struct error error;
    int64_t attempts = 0;
    int64_t billed = 0;
    bool good = true;
    struct store_ledger_row *rows = calloc(LEDGER_ROWS_MAX, sizeof *rows);

    CHECK(rows != NULL);
    for (int suite = 0; suite < model->suite_count && good; suite++) {
        uint32_t count = 0;
        if (store->ops->ledger(store, model->suites[suite], rows, LEDGER_ROWS_MAX, &count,
                               &error) != STATUS_OK) {
            good = model_differ(model, "ledger of %s: %s", model->suites[suite], error.text);
        }
        for (uint32_t i = 0; i < count && good; i++) {
            good = check_ledger_row(model, suite, &rows[i]);
            attempts += rows[i].totals.attempts;
            billed += rows[i].totals.cost_uusd;
        }
    }
    free(rows);
    if (good && attempts != model->attempt_count) {
        return model_differ(model, "the ledger counts %" PRId64 " attempts, there were %d",
                            attempts, model->attempt_count);
    }
    int64_t owed = owed_uusd(model);
    if (good && owed != billed) {
        return model_differ(model, "the ledger bills %" PRId64 " uusd, the attempts cost %" PRId64,
                            billed, owed);
    }
    return good;
}

/* ---- suites ---- */

static void count_job(const struct model_job *job, struct store_suite_status *sum)
{
    sum->jobs[job->state]++;
    sum->memoised_jobs += job->memoised;
    sum->audits_dead += job->audit && job->state == JOB_DEAD;
    sum->rollouts_total += job->parent == 0 && !job->audit ? job->rollouts : 0;
    if (!job->memoised) {
        bool open = job->state == JOB_QUEUED || job->state == JOB_LEASED;
        sum->ticks_planned += MODEL_SCENARIO_TICKS;
        sum->ticks_ended += open ? 0 : MODEL_SCENARIO_TICKS;
    }
    for (uint32_t i = 0; i < job->outcome_count; i++) {
        const struct model_outcome *outcome = &job->outcomes[i];
        if (job->audit) {
            sum->rollouts_audit++;
            continue;
        }
        sum->rollouts[outcome->verdict]++;
        if (job->state == JOB_DONE && !job->memoised) {
            sum->ticks += (int64_t)outcome->ticks - outcome->prefix_ticks;
            sum->prefix_ticks_saved += outcome->prefix_ticks;
            sum->metres_mm += outcome->metres_mm;
        }
    }
}

/* Hosts that could not start a planner of the suite. */
static int64_t unstarted_hosts(const struct model *model, int suite)
{
    int64_t hosts = 0;
    for (int i = 0; i < model->unstarted_count; i++) {
        bool counted = model->unstarted[i].suite != suite;
        for (int k = 0; k < i; k++) {
            counted |= model->unstarted[k].suite == suite &&
                       strcmp(model->unstarted[k].host, model->unstarted[i].host) == 0;
        }
        hosts += !counted;
    }
    return hosts;
}

/* Whether it ended so, dead or cancelled, and nothing says how its main line ended. */
static bool without_answer(const struct model_job *job, enum job_state state)
{
    bool answered = job->state != state || job->audit;
    for (uint32_t i = 0; i < job->outcome_count; i++) {
        answered |= job->outcomes[i].main_line;
    }
    return !answered;
}

/* Main lines by verdict: at most what all rollouts are, and of dead jobs `lost` have none, of
 * cancelled ones `cancelled`; of a suite that is open they may be a second old. */
static bool mains_fit(const struct store_suite_status *sum, const struct store_suite_status *status,
                      int64_t lost, int64_t cancelled)
{
    int64_t dead = 0;
    bool open = sum->jobs[JOB_QUEUED] + sum->jobs[JOB_LEASED] > 0;
    for (int v = 0; v < VERDICT_COUNT && !open; v++) {
        int64_t mains = 0;
        for (int tier = 0; tier < TIER_COUNT; tier++) {
            mains += status->mains[tier].verdicts[v];
            dead += v == 0 ? status->mains[tier].no_answer : 0;
            cancelled -= v == 0 ? status->mains[tier].cancelled : 0;
        }
        if (mains > sum->rollouts[v]) {
            return false;
        }
    }
    return open || status->planner_count != 1 || (dead == lost && cancelled == 0);
}

bool model_check_status(struct model *model, const char *suite_id,
                        const struct store_suite_status *status)
{
    struct store_suite_status sum = {0};
    int64_t lost = 0;
    int64_t cancelled = 0;
    int64_t released = 0;
    int suite = model_suite(model, suite_id);

    if (suite < 0) {
        return model_differ(model, "the store knows of suite %s, nobody submitted it", suite_id);
    }
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].suite == suite && model->jobs[i].repeats < 0 && !model->jobs[i].moot) {
            count_job(&model->jobs[i], &sum);
            lost += without_answer(&model->jobs[i], JOB_DEAD);
            cancelled += without_answer(&model->jobs[i], JOB_CANCELLED);
        }
    }
    for (int i = 0; i < model->attempt_count; i++) {
        const struct model_job *job = &model->jobs[model->attempts[i].job];
        if (job->suite == suite && job->repeats < 0) {
            sum.device_ns += model->attempts[i].device_ns;
            sum.mflop += model->attempts[i].mflop;
            released += model->attempts[i].end == END_RELEASED;
        }
    }
    sum.unstarted_hosts = unstarted_hosts(model, suite);
    memcpy(sum.unstarted, status->unstarted, sizeof sum.unstarted);
    if (!mains_fit(&sum, status, lost, cancelled)) {
        return model_differ(model, "main lines of %s are not those of its jobs", suite_id);
    }
    if (status->jobs_handed_back < 0 || status->jobs_handed_back > released) {
        return model_differ(model, "jobs of %s were handed back %" PRId64 " times, of %" PRId64,
                            suite_id, status->jobs_handed_back, released);
    }
    memcpy(sum.mains, status->mains, sizeof sum.mains);
    memcpy(sum.planner, status->planner, sizeof sum.planner);
    sum.planner_count = status->planner_count;
    sum.submitted_s = status->submitted_s;
    sum.of_class =
        model->classes[suite] != SUITE_CLASS_SAME ? model->classes[suite] : SUITE_REGRESSION;
    sum.jobs_handed_back = status->jobs_handed_back;
    memcpy(sum.planner_hash, status->planner_hash, sizeof sum.planner_hash);
    memcpy(sum.rig, status->rig, sizeof sum.rig);
    sum.ticks_planned = status->ticks_planned;
    sum.ticks_ended = status->ticks_ended;
    sum.ticks_running = status->ticks_running;
    sum.eta_ms = status->eta_ms;       /* an estimate */
    sum.cost_uusd = status->cost_uusd; /* exact over all suites only: see check_ledger */
    if (memcmp(&sum, status, sizeof sum) == 0) {
        return true;
    }
    return model_differ(
        model,
        "status of %s: queued %" PRId64 ", leased %" PRId64 ", done %" PRId64 ", cancelled %" PRId64
        ", rollouts %" PRId64 " (pass %" PRId64 ", audit %" PRId64 "), memoised %" PRId64
        ", ticks %" PRId64 ", %" PRId64 " ns; expected %" PRId64 ", %" PRId64 ", %" PRId64
        ", %" PRId64 ", %" PRId64 " (%" PRId64 ", %" PRId64 "), %" PRId64 ", %" PRId64 ", %" PRId64,
        suite_id, status->jobs[JOB_QUEUED], status->jobs[JOB_LEASED], status->jobs[JOB_DONE],
        status->jobs[JOB_CANCELLED], status->rollouts_total, status->rollouts[VERDICT_PASS],
        status->rollouts_audit, status->memoised_jobs, status->ticks, status->device_ns,
        sum.jobs[JOB_QUEUED], sum.jobs[JOB_LEASED], sum.jobs[JOB_DONE], sum.jobs[JOB_CANCELLED],
        sum.rollouts_total, sum.rollouts[VERDICT_PASS], sum.rollouts_audit, sum.memoised_jobs,
        sum.ticks, sum.device_ns);
}

static bool check_suites(struct model *model, struct store *store)
{
    char ids[MODEL_SUITES_MAX + 1][LIMIT_ID_BYTES];
    uint32_t count = 0;
    struct error error;
    struct store_suite_status status;

    if (store->ops->suites(store, ids, MODEL_SUITES_MAX + 1, &count, &error) != STATUS_OK ||
        (int)count != model->suite_count) {
        return model_differ(model, "the store lists %" PRIu32 " suites, %d were submitted", count,
                            model->suite_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (store->ops->suite_status(store, ids[i], &status, &error) != STATUS_OK) {
            return model_differ(model, "status of %s: %s", ids[i], error.text);
        }
        if (!model_check_status(model, ids[i], &status)) {
            return false;
        }
    }
    return true;
}

static bool check_versions(struct model *model, struct store *store)
{
    struct model_version versions[MODEL_VERSIONS + 1];
    struct error error;
    uint32_t count = 0;

    if (store->ops->models(store, "", versions, MODEL_VERSIONS + 1, &count, &error) != STATUS_OK ||
        count != MODEL_VERSIONS) {
        return model_differ(model, "the store has %" PRIu32 " versions", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct model_version *version = &versions[i]; /* by name */
        int64_t percent = model->version_percent[i];
        if (version->state != model->version_state[i] || version->canary_percent != percent) {
            return model_differ(model, "version %s is %s at %" PRId64 "%%, expected %s at %" PRId64,
                                version->name, model_state_names[version->state],
                                version->canary_percent, model_state_names[model->version_state[i]],
                                percent);
        }
    }
    return true;
}

bool model_check_store(struct model *model, struct store *store)
{
    if (model->versioned && !check_versions(model, store)) {
        return false;
    }
    bool good = check_suites(model, store) && check_jobs(model, store) &&
                check_partials(model, store) && check_ledger(model, store);

    for (int suite = 0; suite < model->suite_count && good; suite++) {
        good = check_outcomes(model, store, suite);
    }
    return good;
}
