/*
 * The model of a job store. See model.h.
 */
#include "tests/store/model/model.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/job_context.h"
#include "store/sql/lease.h"
#include "store/turns/handback.h"
#include "store/turns/turns.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const model_pools[MODEL_POOLS] = {"bulk", "teacher"};
const char *const model_devices[MODEL_DEVICES] = {"cpu", "cuda"};
const char *const model_versions[MODEL_VERSIONS] = {"v1", "v2", "v3"};

#define BACKOFF_NS_MAX (60 * NS_PER_S)

bool model_differ(struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(model->why, sizeof model->why, format, args);
    va_end(args);
    return false;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    CHECK(false);
    return -1;
}

void model_price_set(struct model *model, const char *pool, const char *device, int64_t price)
{
    int p = name_index(model_pools, MODEL_POOLS, pool);
    int d = name_index(model_devices, MODEL_DEVICES, device);

    for (int i = 0; i < model->price_count; i++) {
        const struct model_price *known = &model->prices[i];
        if (known->pool == p && known->device == d && known->uusd_per_hour == price) {
            model->price_now[p][d] = i;
            return;
        }
    }
    CHECK(model->price_count < MODEL_PRICES_MAX);
    model->prices[model->price_count] = (struct model_price){p, d, price};
    model->price_now[p][d] = model->price_count++;
}

void model_init(struct model *model, int64_t ttl_ns, int64_t backoff_ns)
{
    memset(model, 0, sizeof *model);
    model->ttl_ns = ttl_ns;
    model->opening_ns = INT64_MAX;
    model->backoff_ns = backoff_ns;
    model->version_state[0] = MODEL_PROMOTED;
    /* The prices that a new store comes with: schemas/sql/0001_initial.sql. */
    for (int pool = 0; pool < MODEL_POOLS; pool++) {
        model_price_set(model, model_pools[pool], "cpu", 40000);
        model_price_set(model, model_pools[pool], "cuda", 2000000);
    }
    for (int i = 0; i < MODEL_TENANTS; i++) {
        model->weights[MODEL_SUITES_MAX + i] = 1;
    }
}

/* ---- finding ---- */

/* ---- slices that are frozen ---- */

const char *const model_weathers[MODEL_WEATHERS] = {"clear", "rain", "fog"};

void model_weather_hash(int weather, char out[SHA256_HEX_BYTES])
{
    char body[1024];
    int bytes = snprintf(body, sizeof body, MODEL_WEATHER_BODY, model_weathers[weather]);
    sha256_hex(body, (size_t)bytes, out);
}

struct model_version model_teacher(void)
{
    struct model_version teacher = {
        .tier = TIER_TEACHER, .precision = "bf16", .sampler = "many/bf16"};
    sha256_hex("mt", 2, teacher.hash);
    return teacher;
}

struct trust_event model_freeze_of(int weather)
{
    const struct model_version teacher = model_teacher();
    struct trust_event event = {.kind = TRUST_FREEZE, .student_sampler = "few/bf16"};
    model_version_hash(0, event.student_hash);
    memcpy(event.teacher_hash, teacher.hash, sizeof event.teacher_hash);
    memcpy(event.teacher_sampler, teacher.sampler, sizeof event.teacher_sampler);
    snprintf(event.slice.value[SLICE_WEATHER], LIMIT_ID_BYTES, "%s", model_weathers[weather]);
    return event;
}

static int version_now(const struct model *model, const struct model_job *job);
static void follow(const struct model *model, struct model_job *job);

/* Every scenario has a branch that ends in fog (MODEL_WEATHER_BODY): it belongs to that slice, too.
 */
static bool is_frozen(const struct model *model, const struct model_job *job)
{
    return job->weather >= 0 &&
           (model->freezes[job->weather] != 0 || model->freezes[MODEL_BRANCH_WEATHER] != 0) &&
           job->tier == TIER_STUDENT && !job->audit && job->repeats < 0 && !job->evaluates &&
           version_now(model, job) == 0;
}

/* Nobody repeats the teacher. */
static bool is_moot(const struct model *model, const struct model_job *job)
{
    return job->audit && model->jobs[job->audited].answered;
}

bool model_is_strayed(const struct model *model, const struct model_job *job)
{
    return job->state == JOB_QUEUED && (is_frozen(model, job) || is_moot(model, job));
}

static void drop_audit(struct model_job *job)
{
    job->state = JOB_CANCELLED;
    job->moot = true;
    job->due_ns = job->delay_ns = 0;
    memset(job->partials, 0, sizeof job->partials);
}

static int64_t model_cost(const struct model_job *job);

/* A job becomes the teacher's: who is late with it answers for the student. */
static void answer_instead(struct model *model, struct model_job *job)
{
    job->tier = TIER_TEACHER;
    job->pool = 1;
    job->version = -1;
    job->follows = false; /* nobody has promoted a teacher */
    job->answered = true;
    job->in_flight = false;
    job->claim_id = 0;
    memcpy(job->key, job->teacher, sizeof job->key);
    memset(job->partials, 0, sizeof job->partials);
    model->cost_max[1] = max_i64(model->cost_max[1], model_cost(job));
}

bool model_trusted(struct model *model, const struct trust_event *event,
                   const struct trust_event *done, enum status status)
{
    bool holds = event->kind == TRUST_FREEZE;
    for (int i = 0; i < MODEL_WEATHERS; i++) {
        holds |= event->kind == TRUST_THAW && model->freezes[i] == event->freeze;
    }
    if (status != STATUS_OK) { /* a freeze that a death took away, and no other has its number */
        return (status == STATUS_NOT_FOUND && !holds) ||
               model_differ(model, "event of trust failed: %s", status_name(status));
    }
    for (int i = 0; i < MODEL_WEATHERS; i++) {
        bool here = event->kind == TRUST_FREEZE
                        ? strcmp(event->slice.value[SLICE_WEATHER], model_weathers[i]) == 0
                        : event->freeze == model->freezes[i];
        if (here && event->kind == TRUST_FREEZE && model->freezes[i] != 0 &&
            model->freezes[i] != done->id) {
            return model_differ(model, "%s is frozen twice: %" PRId64 " and %" PRId64,
                                model_weathers[i], model->freezes[i], done->id);
        }
        model->freezes[i] = !here ? model->freezes[i] : event->kind == TRUST_FREEZE ? done->id : 0;
    }
    for (int i = 0; event->kind == TRUST_FREEZE && i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        follow(model, job);
        if (model_is_strayed(model, job) && job->audit) { /* behind what it repeats */
            drop_audit(job);
        } else if (model_is_strayed(model, job)) {
            answer_instead(model, job);
        } else if (is_frozen(model, job) && job->state == JOB_LEASED) {
            job->in_flight = true;
        }
    }
    return true;
}

bool model_strayed_found(struct model *model, const struct store_job *job)
{
    struct model_job *known = model_job(model, job->id);
    bool strayed = model_is_strayed(model, known);
    if (strayed && known->audit && job->state == JOB_CANCELLED) {
        drop_audit(known);
    } else if (strayed && !known->audit && job->spec.tier == TIER_TEACHER) {
        answer_instead(model, known);
    }
    return true;
}

struct model_job *model_job(struct model *model, int64_t job_id)
{
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].id == job_id) {
            return &model->jobs[i];
        }
    }
    return NULL;
}

int model_suite(const struct model *model, const char *suite_id)
{
    for (int i = 0; i < model->suite_count; i++) {
        if (strcmp(model->suites[i], suite_id) == 0) {
            return i;
        }
    }
    return -1;
}

static struct model_job *job_of_key(struct model *model, int suite, const char *key)
{
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].suite == suite &&
            (strcmp(model->jobs[i].key, key) == 0 || strcmp(model->jobs[i].asked, key) == 0)) {
            return &model->jobs[i];
        }
    }
    return NULL;
}

static const struct model_job *done_with_key(const struct model *model, const char *key)
{
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].state == JOB_DONE && !model->jobs[i].moved &&
            strcmp(model->jobs[i].key, key) == 0) {
            return &model->jobs[i];
        }
    }
    return NULL;
}

static struct model_attempt *attempt_of(struct model *model, const struct model_job *job,
                                        int64_t epoch)
{
    for (int i = model->attempt_count - 1; i >= 0; i--) {
        struct model_attempt *attempt = &model->attempts[i];
        if (&model->jobs[attempt->job] == job && attempt->epoch == epoch) {
            return attempt;
        }
    }
    return NULL;
}

static int worker_index(const struct model *model, const char *worker_id)
{
    for (int i = 0; i < model->worker_count; i++) {
        if (strcmp(model->workers[i].id, worker_id) == 0) {
            return i;
        }
    }
    return -1;
}

static struct model_worker *worker_known(struct model *model, const struct store_worker *worker)
{
    int index = worker_index(model, worker->worker_id);
    if (index < 0) {
        CHECK(model->worker_count < MODEL_WORKERS_MAX);
        index = model->worker_count++;
        struct model_worker *added = &model->workers[index];
        memset(added, 0, sizeof *added);
        memcpy(added->id, worker->worker_id, sizeof added->id);
        added->pool = name_index(model_pools, MODEL_POOLS, worker->pool);
        added->device = name_index(model_devices, MODEL_DEVICES, worker->device);
    }
    return &model->workers[index];
}

bool model_terminal(const struct model_job *job)
{
    return job->state != JOB_QUEUED && job->state != JOB_LEASED;
}

bool model_all_terminal(const struct model *model)
{
    for (int i = 0; i < model->job_count; i++) {
        if (!model_terminal(&model->jobs[i])) {
            return false;
        }
    }
    return true;
}

static bool left_alone(const struct store_worker *worker, const struct model_job *job)
{
    for (uint32_t i = 0; i < worker->without_count; i++) {
        if (strcmp(worker->without[i].planner, job->planner) == 0) {
            return true;
        }
    }
    return false;
}

uint32_t model_claimable_by(const struct model *model, const struct store_worker *worker, int pool,
                            int suite)
{
    uint32_t count = 0;
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        count += job->state == JOB_QUEUED && job->due_ns == 0 && job->pool == pool &&
                 job->repeats < 0 && !is_frozen(model, job) && (suite < 0 || job->suite == suite) &&
                 !left_alone(worker, job);
    }
    return count;
}

/* Jobs of shadows that a claim gets which finds nothing else. */
static uint32_t shadows_claimable(const struct model *model, const struct store_worker *worker,
                                  int pool)
{
    uint32_t count = 0;
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        count += job->state == JOB_QUEUED && job->due_ns == 0 && job->pool == pool &&
                 job->repeats >= 0 && !left_alone(worker, job);
    }
    return count;
}

uint32_t model_claimable(const struct model *model, int pool, int suite)
{
    const struct store_worker anybody = {.worker_id = ""};
    return model_claimable_by(model, &anybody, pool, suite);
}

/* ---- attempts that end ---- */

static int64_t claim_time(const struct model *model)
{
    return max_i64(model->now_ns + model->wall_ns, 1);
}

/* Of the device time that is asked for, what can be charged. */
static int64_t billed(const struct model *model, int64_t claimed_ns, int64_t asked_ns)
{
    int64_t age_ns = max_i64(claim_time(model) - claimed_ns, 0);
    int64_t most_ns = age_ns + age_ns / 64 + model->bill_slack_ns;
    return model->bill_slack_ns == 0 || asked_ns <= most_ns ? asked_ns : most_ns;
}

int model_party(const char *worker_id)
{
    return atoi(worker_id + 1) % 2;
}

static bool one_party(const struct model *model, int a, int b)
{
    return !model->parties ||
           model_party(model->workers[a].id) == model_party(model->workers[b].id);
}

/* The partial outcome of a rollout that the job's worker is shown; NULL: none. */
static const struct model_partial *partial_shown(const struct model *model,
                                                 const struct model_job *job, uint32_t rollout)
{
    const struct model_partial *partial = &job->partials[rollout];
    return partial->epoch != 0 && one_party(model, partial->worker, job->worker) ? partial : NULL;
}

static struct model_attempt *attempt_add(struct model *model, const struct model_job *job,
                                         enum model_end end)
{
    CHECK(model->attempt_count < MODEL_ATTEMPTS_MAX);
    struct model_attempt *attempt = &model->attempts[model->attempt_count++];
    *attempt = (struct model_attempt){
        .job = (int)(job - model->jobs),
        .epoch = job->epoch,
        .worker = job->worker,
        .end = end,
        .claimed_ns = job->claimed_ns,
        .pool = job->pool,
        .tier = job->tier,
        .price = model->price_now[job->pool][model->workers[job->worker].device],
    };
    return attempt;
}

static void attempt_lost(struct model *model, struct model_job *job, enum job_state to, bool alone)
{
    struct model_attempt *attempt = attempt_add(model, job, END_LOST);
    attempt->device_ns = job->progress_ns;
    attempt->metres_mm = job->progress_mm;
    attempt->mflop = job->progress_mflop;
    job->lost++;
    int64_t lost_max = alone ? JOB_LOST_POISON + LEASE_LOST_ALONE_MAX : LEASE_LOST_MAX;
    job->state = to == JOB_QUEUED && job->lost >= lost_max ? JOB_DEAD : to;
    job->due_ns = 0;
    job->delay_ns = 0;
}

static uint32_t lose_jobs(struct model *model, int worker)
{
    uint32_t held = 0;
    for (int i = 0; i < model->job_count; i++) {
        held += model->jobs[i].state == JOB_LEASED && model->jobs[i].worker == worker;
    }
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->state == JOB_LEASED && job->worker == worker) {
            attempt_lost(model, job, JOB_QUEUED, held == 1);
        }
    }
    return held;
}

static void note_waiting(struct model *model)
{
    for (int i = 0; model->classed && i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->state == JOB_QUEUED && job->due_ns == 0 && job->repeats < 0) {
            model->waited_ns[job->pool][model->tenants[job->suite]][model->classes[job->suite]] =
                model->now_ns;
        }
    }
}

void model_time(struct model *model, int64_t now_ns)
{
    note_waiting(model); /* until the call before this one */
    model->now_ns = now_ns;
    for (int i = 0; i < model->worker_count; i++) {
        struct model_worker *worker = &model->workers[i];
        bool ended = worker->until_ns <= now_ns &&
                     (!model->goes_on || now_ns >= model->restart_ns + model->ttl_ns);
        if (worker->leased && ended && lose_jobs(model, i) == 0) {
            worker->leased = false;
        }
    }
    while (model->opening_ns <= now_ns) {
        bool silent = false;
        for (int i = 0; i < model->worker_count; i++) {
            bool counts = model->workers[i].leased && model->workers[i].unheard;
            model->workers[i].openings += counts;
            silent |= counts;
        }
        model->opening_ns = silent ? model->opening_ns + model->ttl_ns / LEASE_PARTS : INT64_MAX;
    }
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->state == JOB_QUEUED && job->due_ns > 0 && job->due_ns <= now_ns) {
            job->due_ns = 0;
            job->delay_ns = 0;
        }
    }
}

void model_stalled(struct model *model, int64_t stalled_ns)
{
    model->restart_ns += stalled_ns;
    model->opening_ns += model->opening_ns < INT64_MAX ? stalled_ns : 0;
    for (int i = 0; i < model->worker_count; i++) {
        model->workers[i].until_ns += model->workers[i].leased ? stalled_ns : 0;
    }
}

static bool holds_jobs(const struct model *model, int worker)
{
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].state == JOB_LEASED && model->jobs[i].worker == worker) {
            return true;
        }
    }
    return false;
}

bool model_bears_peer(const struct model *model, int64_t now_ns)
{
    bool bears = true;
    for (int i = 0; i < model->job_count && bears; i++) {
        const struct model_job *job = &model->jobs[i];
        bears = job->state != JOB_QUEUED || job->due_ns <= now_ns + job->delay_ns;
    }
    return bears;
}

void model_restart(struct model *model, int64_t now_ns)
{
    model->restart_ns = now_ns;
    for (int i = 0; i < model->worker_count; i++) {
        struct model_worker *worker = &model->workers[i];
        worker->leased = holds_jobs(model, i);
        worker->unheard = worker->leased;
        int64_t left = worker->openings < LEASE_PARTS ? LEASE_PARTS - worker->openings : 0;
        worker->until_ns = now_ns + model->ttl_ns / LEASE_PARTS * left;
    }
    model->opening_ns = model->goes_on ? INT64_MAX : now_ns + model->ttl_ns / LEASE_PARTS;
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->state == JOB_QUEUED && job->due_ns > 0) {
            int64_t due_ns = now_ns + job->delay_ns;
            job->due_ns = model->goes_on && job->due_ns < due_ns ? job->due_ns : due_ns;
        }
    }
    memset(model->races, 0, sizeof model->races); /* a restart forgives debts */
    memset(model->waited_ns, 0, sizeof model->waited_ns);
}

static void renew(struct model *model, struct model_worker *worker)
{
    int64_t until_ns = model->now_ns + model->ttl_ns;
    if (!worker->leased || worker->until_ns < until_ns) {
        worker->until_ns = until_ns;
    }
    worker->leased = true;
    worker->unheard = false;
    worker->openings = 0;
}

/* ---- versions of a model ---- */

void model_version_hash(int version, char out[SHA256_HEX_BYTES])
{
    sha256_hex(model_versions[version], strlen(model_versions[version]), out);
}

int model_version_named(const char *hash)
{
    char known[SHA256_HEX_BYTES];
    for (int i = 0; i < MODEL_VERSIONS; i++) {
        model_version_hash(i, known);
        if (strcmp(known, hash) == 0) {
            return i;
        }
    }
    return -1;
}

static int version_in(const struct model *model, enum model_state state)
{
    for (int i = 0; i < MODEL_VERSIONS; i++) {
        if (model->version_state[i] == state) {
            return i;
        }
    }
    return -1;
}

/* Of a queued job that follows: the one that its tier points to. */
static int version_now(const struct model *model, const struct model_job *job)
{
    int canary = version_in(model, MODEL_CANARY);
    if (!model->versioned || !job->follows || job->state != JOB_QUEUED) {
        return job->version;
    }
    return canary >= 0 && (int64_t)job->percentile < model->version_percent[canary]
               ? canary
               : version_in(model, MODEL_PROMOTED);
}

/* A queued job becomes that of the version that its tier points to; what another one has finished
 * of it is gone. */
static void follow(const struct model *model, struct model_job *job)
{
    int assigned = version_now(model, job);
    if (assigned != job->version) {
        job->version = assigned;
        job->in_flight = false; /* what was on its way was another */
        job->moved = true;
        job->claim_id = 0; /* who is late with it answers for another */
        memset(job->partials, 0, sizeof job->partials);
    }
}

/* ---- shadows ---- */

/* The version with a share, -1: none has. */
static int shadow_version(const struct model *model)
{
    for (int i = 0; i < MODEL_VERSIONS; i++) {
        if (model->version_state[i] == MODEL_SHADOW && model->version_percent[i] > 0) {
            return i;
        }
    }
    return -1;
}

/* The shadow drives a job again that follows, is in its share, is not its own (of a submitter who
 * read the pointer before it moved), and that it has not been given yet. */
static void cast_shadow(struct model *model, int repeats)
{
    const struct model_job *of = &model->jobs[repeats];
    int version = shadow_version(model);

    if (!model->versioned || version < 0 || !of->follows || of->state != JOB_QUEUED ||
        of->version == version ||
        (int64_t)of->shadow_percentile >= model->version_percent[version]) {
        return;
    }
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].repeats == repeats && model->jobs[i].version == version) {
            return;
        }
    }
    CHECK(model->job_count < MODEL_JOBS_MAX);
    struct model_job *job = &model->jobs[model->job_count++];
    *job = (struct model_job){.suite = of->suite,
                              .pool = of->pool,
                              .tier = of->tier,
                              .seed = of->seed,
                              .rollouts = of->rollouts,
                              .attempts_max = of->attempts_max,
                              .version = version,
                              .repeats = repeats,
                              .worker = -1};
    memcpy(job->planner, of->planner, sizeof job->planner);
    memcpy(job->scenario_id, of->scenario_id, sizeof job->scenario_id);
}

bool model_shadow_found(struct model *model, const struct store_job *found)
{
    const struct job_spec *spec = &found->spec;
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->id == 0 && strcmp(model->suites[job->suite], spec->suite_id) == 0 &&
            strcmp(job->planner, spec->planner) == 0 && job->seed == spec->seed &&
            strcmp(job->scenario_id, spec->scenario_id) == 0 && job->tier == spec->tier &&
            model_version_named(spec->model_hash) == job->version) {
            job->id = found->id;
            memcpy(job->key, spec->key, sizeof job->key);
            return true;
        }
    }
    return model_differ(model, "the store has a job %" PRId64 " that nobody submitted", found->id);
}

bool model_shadows_found(struct model *model)
{
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->id == 0) {
            return model_differ(model, "%s is a shadow, and does not drive job %" PRId64 " again",
                                model_versions[job->version], model->jobs[job->repeats].id);
        }
    }
    return true;
}

int64_t model_last_id(const struct model *model)
{
    int64_t last = 0;
    for (int i = 0; i < model->job_count; i++) {
        last = max_i64(last, model->jobs[i].id);
    }
    return last;
}

static void cancel_job(struct model *model, struct model_job *job)
{
    if (job->state == JOB_LEASED) {
        attempt_lost(model, job, JOB_CANCELLED, false);
    }
    job->state = JOB_CANCELLED;
    job->due_ns = 0;
    job->delay_ns = 0;
}

/* ---- moves ---- */

static bool may_move(const struct model *model, int version, const struct model_event *event)
{
    enum model_state from = model->version_state[version];
    enum model_state to = event->to_state;
    int canary = version_in(model, MODEL_CANARY);
    int shadow = shadow_version(model);

    return from != MODEL_PROMOTED &&
           !(from == MODEL_RETIRED && (to == MODEL_CANARY || to == MODEL_SHADOW)) &&
           !(to == MODEL_CANARY && canary >= 0 && canary != version) &&
           !(to == MODEL_SHADOW && event->canary_percent > 0 && shadow >= 0 && shadow != version);
}

/* A version has come to be a shadow or has left that state: jobs that wait get jobs of its own, or
 * all of its own that are open end. */
static void move_shadow(struct model *model, int version)
{
    bool casts = shadow_version(model) == version;
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (casts) {
            cast_shadow(model, i);
        } else if (job->repeats >= 0 && job->version == version && !model_terminal(job)) {
            cancel_job(model, job);
        }
    }
}

bool model_version_moved(struct model *model, const struct model_event *event, enum status status)
{
    int version = name_index(model_versions, MODEL_VERSIONS, event->model);
    enum model_state from = model->version_state[version];
    bool same = from == event->to_state && model->version_percent[version] == event->canary_percent;
    bool may = may_move(model, version, event);

    if (status != (same || may ? STATUS_OK : STATUS_CONFLICT)) {
        return model_differ(model, "%s from %s to %s: %s", event->model, model_state_names[from],
                            model_state_names[event->to_state], status_name(status));
    }
    if (status != STATUS_OK || same) {
        return true;
    }
    if (event->to_state == MODEL_PROMOTED) {
        model->version_state[version_in(model, MODEL_PROMOTED)] = MODEL_RETIRED;
    }
    model->version_state[version] = event->to_state;
    model->version_percent[version] = event->canary_percent;
    bool pointed = from == MODEL_CANARY || event->to_state == MODEL_CANARY ||
                   event->to_state == MODEL_PROMOTED;
    for (int i = 0; i < model->job_count && pointed; i++) {
        follow(model, &model->jobs[i]);
    }
    if (from == MODEL_SHADOW || event->to_state == MODEL_SHADOW) {
        move_shadow(model, version);
    }
    return true;
}

/* ---- submitting ---- */

/* By the rule of store/turns/turns.h, written down again. */
static int64_t model_cost(const struct model_job *job)
{
    switch (job->tier) {
    case TIER_STUDENT:
        return 128 * (int64_t)job->rollouts;
    case TIER_TEACHER:
        return 512 * (int64_t)job->rollouts;
    default:
        return job->rollouts;
    }
}

static int weather_of(const struct job_spec *spec)
{
    char hash[SHA256_HEX_BYTES];
    int found = -1;
    for (int i = 0; i < MODEL_WEATHERS; i++) {
        model_weather_hash(i, hash);
        found = strcmp(hash, spec->scenario_hash) == 0 ? i : found;
    }
    return found;
}

/* The teacher's job that a student's of a frozen slice is submitted as. */
static bool submitted_instead(const struct model *model, const struct job_spec *spec,
                              struct job_spec *out)
{
    const struct model_version teacher = model_teacher();
    const struct model_job asked = {.weather = weather_of(spec),
                                    .tier = spec->tier,
                                    .audit = spec->audit_key[0] != '\0',
                                    .repeats = -1,
                                    .evaluates = spec->evaluates,
                                    .version = model_version_named(spec->model_hash)};
    *out = *spec;
    if (is_frozen(model, &asked)) {
        trust_job_move(&teacher, out);
        out->follows = false;
        return true;
    }
    return false;
}

static struct model_job *job_add(struct model *model, int suite, const struct job_spec *spec,
                                 int64_t id)
{
    const struct model_job *source = done_with_key(model, spec->key);

    CHECK(model->job_count < MODEL_JOBS_MAX);
    struct model_job *job = &model->jobs[model->job_count++];
    memset(job, 0, sizeof *job);
    job->id = id;
    job->suite = suite;
    job->pool = name_index(model_pools, MODEL_POOLS, spec->pool);
    job->tier = spec->tier;
    memcpy(job->key, spec->key, sizeof job->key);
    snprintf(job->planner, sizeof job->planner, "%.60s", spec->planner);
    memcpy(job->scenario_id, spec->scenario_id, sizeof job->scenario_id);
    job->seed = spec->seed;
    job->rollouts = spec->rollout_count;
    int64_t *cost_max = &model->cost_max[job->pool];
    *cost_max = model_cost(job) > *cost_max ? model_cost(job) : *cost_max;
    job->attempts_max = spec->attempts_max;
    job->parent = spec->parent_job_id;
    job->audit = spec->audit_key[0] != '\0';
    if (job->audit) {
        const struct model_job *audited = job_of_key(model, suite, spec->audit_key);
        CHECK(audited != NULL);
        job->audited = (int)(audited - model->jobs);
    }
    job->evaluates = spec->evaluates;
    job->follows = spec->follows;
    job->version = model_version_named(spec->model_hash);
    job->percentile = model_job_percentile(spec);
    job->shadow_percentile = model_job_shadow_percentile(spec);
    job->repeats = -1;
    job->worker = -1;
    job->weather = weather_of(spec);
    memcpy(job->asked, spec->key, sizeof job->asked);
    if (job->tier == TIER_STUDENT) {
        const struct model_version teacher = model_teacher();
        struct job_spec moved = *spec;
        trust_job_move(&teacher, &moved);
        memcpy(job->teacher, moved.key, sizeof job->teacher);
    }
    job->escalates = spec->escalate_pool[0] != '\0';
    job_escalation_take(spec, &job->successor);
    job_key_make(&job->successor, job_key_fresh(spec));
    job->successor.parent_job_id = id;
    job->successor.evaluates = job->successor.follows = false; /* no teacher's version moves */
    if (source != NULL) {
        job->state = JOB_DONE;
        job->memoised = true; /* of which of several, the first look shows */
        job->outcome_count = source->outcome_count;
        memcpy(job->outcomes, source->outcomes, sizeof job->outcomes);
    }
    return job;
}

static bool submit_one(struct model *model, int suite, const struct job_spec *asked,
                       const struct store_submit_result *result)
{
    struct job_spec instead;
    const struct job_spec *spec = asked;
    const struct model_job *own = job_of_key(model, suite, spec->key);
    bool frozen = own == NULL && submitted_instead(model, asked, &instead);
    spec = frozen ? &instead : asked;
    own = frozen ? job_of_key(model, suite, spec->key) : own;
    if (own == NULL && asked->audit_key[0] != '\0') { /* nobody repeats the teacher */
        const struct model_job *audited = job_of_key(model, suite, asked->audit_key);
        own = audited != NULL && audited->answered ? audited : NULL;
        if (own != NULL) {
            return (result->existed && result->job_id == own->id) ||
                   model_differ(model,
                                "an audit of job %" PRId64 " was taken, which the teacher"
                                " answers",
                                own->id);
        }
    }
    bool memoised = own != NULL ? own->memoised : done_with_key(model, spec->key) != NULL;

    if (result->existed != (own != NULL) || result->memoised != memoised || result->lost) {
        return model_differ(model,
                            "submit of key %.20s to %s: expected existed %d, memoised %d; found "
                            "%d, %d (lost %d)",
                            spec->key, model->suites[suite], own != NULL, memoised, result->existed,
                            result->memoised, result->lost);
    }
    if (own != NULL && own->id != result->job_id) {
        return model_differ(model, "submit of key %.20s: it is job %" PRId64 ", not %" PRId64,
                            spec->key, own->id, result->job_id);
    }
    if (own == NULL && model_job(model, result->job_id) != NULL) {
        return model_differ(model, "submit of key %.20s: job %" PRId64 " is another one", spec->key,
                            result->job_id);
    }
    if (own == NULL) {
        struct model_job *job = job_add(model, suite, spec, result->job_id);
        job->answered = frozen;
        memcpy(job->asked, asked->key, sizeof job->asked);
        cast_shadow(model, model->job_count - 1);
    }
    return true;
}

static int64_t tenant_queued(const struct model *model, int tenant)
{
    int64_t count = 0;
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        count +=
            job->state == JOB_QUEUED && job->repeats < 0 && model->tenants[job->suite] == tenant;
    }
    return count;
}

bool model_submit_as(struct model *model, int tenant, const char *suite_id, uint32_t weight,
                     const struct job_spec *specs, uint32_t count,
                     const struct store_submit_result *results, enum status status)
{
    int64_t most = model->jobs_queued_max[tenant];
    int64_t before = tenant_queued(model, tenant);
    if (status == STATUS_LIMIT && most > 0 && before + (int64_t)count > most) {
        model->refused++;
        return true; /* nothing has changed, as later calls show */
    }
    int suite = model_suite(model, suite_id);
    if (suite < 0 && status == STATUS_OK) {
        model->tenants[model->suite_count] = tenant;
    }
    if (!model_submit(model, suite_id, weight, specs, count, results, status)) {
        return false;
    }
    int64_t after = tenant_queued(model, tenant);
    return most == 0 || after <= most || after == before ||
           model_differ(model, "submit to %s: tenant %d has %" PRId64 " jobs queued of %" PRId64,
                        suite_id, tenant, after, most);
}

void model_class(struct model *model, const char *suite_id, enum suite_class of_class)
{
    int suite = model_suite(model, suite_id);
    if (suite >= 0 && of_class != SUITE_CLASS_SAME) {
        model->classes[suite] = of_class;
        model->classed = true;
    }
}

bool model_submit(struct model *model, const char *suite_id, uint32_t weight,
                  const struct job_spec *specs, uint32_t count,
                  const struct store_submit_result *results, enum status status)
{
    int suite = model_suite(model, suite_id);

    if (status != STATUS_OK) {
        return model_differ(model, "submit to %s failed: %s", suite_id, status_name(status));
    }
    if (suite < 0) {
        CHECK(model->suite_count < MODEL_SUITES_MAX);
        suite = model->suite_count++;
        snprintf(model->suites[suite], LIMIT_ID_BYTES, "%s", suite_id);
    }
    model->weights[suite] = weight;
    for (uint32_t i = 0; i < count; i++) {
        if (!submit_one(model, suite, &specs[i], &results[i])) {
            return false;
        }
    }
    return true;
}

/* ---- working ---- */

/* Whether a job of a higher class and the same tenant waits in its pool, or did at the store's last
 * look. */
static bool has_to_yield(const struct model *model, const struct model_job *job)
{
    bool found = false;
    const enum suite_class own = model->classes[job->suite];
    for (int k = 0; k < SUITE_CLASS_COUNT; k++) {
        int64_t waited_ns = model->waited_ns[job->pool][model->tenants[job->suite]][k];
        found |= suite_class_rank((enum suite_class)k) < suite_class_rank(own) && waited_ns != 0 &&
                 model->now_ns - waited_ns <= HANDBACK_LOOK_NS + model->stall_ns;
    }
    return found;
}

/* Whether the store may ask for one of the jobs that a heartbeat reported. */
static bool may_ask_back(struct model *model, const struct model_worker *known,
                         const struct store_progress *progress, uint32_t count, int64_t id)
{
    struct model_job *job = model_job(model, id);
    bool reported = false;
    for (uint32_t i = 0; i < count; i++) {
        reported |= progress[i].job_id == id && job != NULL && progress[i].epoch == job->epoch;
    }
    if (!reported || job->state != JOB_LEASED || job->repeats >= 0 ||
        &model->workers[job->worker] != known || !has_to_yield(model, job)) {
        return false;
    }
    bool anew = job->asked_back != job->epoch;
    job->asked_back = job->epoch;
    job->asked_times += anew;
    model->asked_back += anew;
    return job->asked_times <= HANDBACK_TIMES_MAX;
}

bool model_heartbeat(struct model *model, const struct store_worker *worker,
                     const struct store_progress *progress, uint32_t count,
                     const int64_t *cancelled, uint32_t cancelled_count)
{
    uint32_t listed = 0;
    struct model_worker *known = worker_known(model, worker);

    renew(model, known);
    for (uint32_t i = 0; i < count; i++) {
        struct model_job *job = model_job(model, progress[i].job_id);
        bool valid = job != NULL && !model_terminal(job) && job->epoch == progress[i].epoch &&
                     job->worker >= 0 && &model->workers[job->worker] == known;
        if (!valid && (listed >= cancelled_count || cancelled[listed] != progress[i].job_id)) {
            return model_differ(model,
                                "heartbeat of %s: job %" PRId64 " epoch %" PRId64
                                " cannot count any more, but is not listed",
                                known->id, progress[i].job_id, progress[i].epoch);
        }
        listed += !valid;
        if (valid && job->state == JOB_LEASED) {
            job->progress_ns =
                max_i64(job->progress_ns, billed(model, job->claimed_ns, progress[i].device_ns));
            job->progress_mm = max_i64(job->progress_mm, progress[i].metres_mm);
            job->progress_mflop = max_i64(job->progress_mflop, progress[i].mflop);
        }
    }
    note_waiting(model);
    while (listed < cancelled_count &&
           may_ask_back(model, known, progress, count, cancelled[listed])) {
        listed++;
    }
    if (listed != cancelled_count) {
        return model_differ(model,
                            "heartbeat of %s: %" PRIu32 " jobs listed as cancelled, not %" PRIu32,
                            known->id, cancelled_count, listed);
    }
    return true;
}

/* Two parties that both have claimable jobs get shares by weight: in any such stretch deficit
 * round-robin keeps their costs per weight within a quantum, plus what each may have taken in
 * advance: up to a quantum and a job of deficit, or TURNS_DEBT quanta and a job with affinity.
 */
static int64_t race_limit(const struct model *model, int pool)
{
    int64_t ahead = TURNS_QUANTUM + model->cost_max[pool];
    if (model->affinity) {
        ahead += TURNS_DEBT * TURNS_QUANTUM + model->cost_max[pool];
    }
    return TURNS_QUANTUM + 2 * ahead;
}

/* Do they share by weight? Suites of one tenant, and tenants without a limit of what is leased. */
static bool races(const struct model *model, int i, int j)
{
    if (i >= MODEL_SUITES_MAX && j >= MODEL_SUITES_MAX &&
        (model->units_max[i - MODEL_SUITES_MAX] > 0 ||
         model->units_max[j - MODEL_SUITES_MAX] > 0)) {
        return false;
    }
    bool suites = i < model->suite_count && j < model->suite_count;
    return i != j && (suites ? model->tenants[i] == model->tenants[j] &&
                                   model->classes[i] == model->classes[j]
                             : i >= MODEL_SUITES_MAX && j >= MODEL_SUITES_MAX);
}

static uint32_t party_claimable_by(const struct model *model, const struct store_worker *worker,
                                   int pool, int party)
{
    uint32_t count = 0;
    if (party < MODEL_SUITES_MAX) {
        return model_claimable_by(model, worker, pool, party);
    }
    for (int i = 0; i < model->suite_count; i++) {
        if (model->tenants[i] == party - MODEL_SUITES_MAX) {
            count += model_claimable_by(model, worker, pool, i);
        }
    }
    return count;
}

/* A job of i for a worker that leaves all jobs of j alone: what i was behind by it has got, but it
 * is not ahead for it. */
static void race_alone(struct model *model, int i, int j, const struct model_job *job)
{
    struct model_race *race = &model->races[job->pool];
    int64_t even = race->served[j][i] / model->weights[j] * model->weights[i];
    int64_t with = race->served[i][j] + model_cost(job);

    if (race->served[i][j] < even) {
        race->served[i][j] = with < even ? with : even;
    }
}

static bool party_claimed(struct model *model, const struct store_worker *worker, int i,
                          const struct model_job *job)
{
    struct model_race *race = &model->races[job->pool];

    for (int j = 0; j < MODEL_PARTIES; j++) {
        if (!races(model, i, j)) {
            continue;
        }
        if (party_claimable_by(model, worker, job->pool, j) == 0) {
            race_alone(model, i, j, job);
            continue;
        }
        race->served[i][j] += model_cost(job);
        int64_t lead =
            race->served[i][j] / model->weights[i] - race->served[j][i] / model->weights[j];
        model->race_max = lead > model->race_max ? lead : model->race_max;
        if (lead > race_limit(model, job->pool)) {
            return model_differ(model,
                                "party %d got jobs of cost %" PRId64 ", %d only %" PRId64
                                ", while both had jobs for pool %s (weights %" PRId64 ", %" PRId64
                                ", bound %" PRId64 " a weight)",
                                i, race->served[i][j], j, race->served[j][i],
                                model_pools[job->pool], model->weights[i], model->weights[j],
                                race_limit(model, job->pool));
        }
    }
    return true;
}

static bool race_claimed(struct model *model, const struct store_worker *worker,
                         const struct model_job *job)
{
    if (job->repeats >= 0) { /* shadows race nobody */
        return true;
    }
    return party_claimed(model, worker, job->suite, job) &&
           party_claimed(model, worker, MODEL_SUITES_MAX + model->tenants[job->suite], job);
}

/* A stretch ends when one of the two has nothing to claim, or changes its weight. */
static void race_settle(struct model *model, int pool)
{
    const struct store_worker anybody = {.worker_id = ""};
    for (int i = 0; i < MODEL_PARTIES; i++) {
        if (party_claimable_by(model, &anybody, pool, i) > 0) {
            continue;
        }
        for (int j = 0; j < MODEL_PARTIES; j++) {
            model->races[pool].served[i][j] = 0;
            model->races[pool].served[j][i] = 0;
        }
    }
}

static bool lease_matches(struct model *model, struct model_job *job,
                          const struct model_worker *worker, const struct job_lease *lease)
{
    if (job->state != JOB_QUEUED || job->due_ns != 0 || job->pool != worker->pool) {
        return model_differ(
            model, "claim of %s got job %" PRId64 ", which is %s, due %" PRId64 ", of pool %s",
            worker->id, job->id, job_state_names[job->state], job->due_ns, model_pools[job->pool]);
    }
    if (lease->epoch != job->epoch + 1 || lease->attempt != job->attempts + 1 ||
        lease->lost != job->lost) {
        return model_differ(model,
                            "claim of %s got job %" PRId64 " with epoch %" PRId64
                            ", attempt %" PRIu32 ", lost %" PRIu32 "; expected %" PRId64
                            ", %" PRId64 ", %" PRId64,
                            worker->id, job->id, lease->epoch, lease->attempt, lease->lost,
                            job->epoch + 1, job->attempts + 1, job->lost);
    }
    follow(model, job);
    if (model_version_named(lease->spec.model_hash) != job->version) {
        return model_differ(model, "claim of %s: job %" PRId64 " is leased for model %.12s, not %s",
                            worker->id, job->id, lease->spec.model_hash,
                            job->version >= 0 ? model_versions[job->version] : "its own");
    }
    if ((!job->moved && strcmp(lease->spec.key, job->key) != 0) || lease->spec.seed != job->seed ||
        lease->spec.tier != job->tier || lease->spec.parent_job_id != job->parent ||
        (lease->spec.audit_key[0] != '\0') != (job->audit || job->repeats >= 0) ||
        strcmp(lease->spec.suite_id, model->suites[job->suite]) != 0 ||
        lease->spec.rollout_count != job->rollouts) {
        return model_differ(model, "claim of %s: job %" PRId64 " is not as it was submitted",
                            worker->id, job->id);
    }
    return true;
}

bool model_claim_late(const struct model *model, const char *worker_id, int64_t claim_id)
{
    int worker = worker_index(model, worker_id);
    return worker >= 0 && claim_id < model->workers[worker].claim_id;
}

/* Of the leases of a claim that have not ended the one with the next higher id; NULL: no more. */
static const struct model_job *next_leased(const struct model *model, int worker, int64_t claim_id,
                                           const struct model_job *last)
{
    const struct model_job *next = NULL;
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->state == JOB_LEASED && job->worker == worker && job->claim_id == claim_id &&
            (last == NULL || job->id > last->id) && (next == NULL || job->id < next->id)) {
            next = job;
        }
    }
    return next;
}

/* A claim that had its turn: the leases that it made and that have not ended, and no others, if it
 * asks for as many. */
static bool claimed_again(struct model *model, struct model_worker *known, int64_t claim_id,
                          uint32_t max, const struct job_lease *leases, uint32_t count,
                          enum status status)
{
    const struct model_job *job = NULL;
    uint32_t found = 0;

    while ((job = next_leased(model, (int)(known - model->workers), claim_id, job)) != NULL) {
        if (status == STATUS_OK &&
            (found >= count || leases[found].job_id != job->id ||
             leases[found].epoch != job->epoch || leases[found].attempt != job->attempts)) {
            return model_differ(model,
                                "claim %" PRId64 " of %s again: job %" PRId64 " epoch %" PRId64
                                " is not in the answer",
                                claim_id, known->id, job->id, job->epoch);
        }
        found++;
    }
    model->claims_again += found > 0 ? 1 : 0;
    model->claims_late += claim_id < known->claim_id ? 1 : 0;
    return (status == STATUS_OK ? found == count : found > max) ||
           model_differ(model,
                        "claim %" PRId64 " of %s again, for %" PRIu32 ": %" PRIu32
                        " jobs, not %" PRIu32 ", %s",
                        claim_id, known->id, max, count, found, status_name(status));
}

/* Units that a tenant has leased, and in *jobs of how many jobs. */
static int64_t tenant_units(const struct model *model, int tenant, int *jobs)
{
    int64_t units = 0;
    *jobs = 0;
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->state == JOB_LEASED && job->repeats < 0 && model->tenants[job->suite] == tenant) {
            units += model_cost(job);
            (*jobs)++;
        }
    }
    return units;
}

/* The dearest job of a tenant that the claim could still get, but for limits; 0: none. */
static int64_t dearest_left(const struct model *model, const struct store_worker *worker, int pool,
                            int tenant)
{
    int64_t dearest = 0;
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        bool left = job->state == JOB_QUEUED && job->due_ns == 0 && job->pool == pool &&
                    job->repeats < 0 && model->tenants[job->suite] == tenant &&
                    !left_alone(worker, job);
        dearest = left ? max_i64(dearest, model_cost(job)) : dearest;
    }
    return dearest;
}

/* After a claim: no tenant has more leased than it may, but for a single job; and where the claim
 * got less than there was, what is left is of tenants for whose next job there was no room. */
static bool limits_hold(struct model *model, const struct store_worker *worker, int pool, bool less)
{
    for (int tenant = 0; tenant < MODEL_TENANTS; tenant++) {
        int jobs;
        int64_t room = model->units_max[tenant] - tenant_units(model, tenant, &jobs);
        bool limited = model->units_max[tenant] > 0;
        if (limited && room < 0 && jobs > 1) {
            return model_differ(model, "claim of %s: tenant %d has %" PRId64 " units too many",
                                worker->worker_id, tenant, -room);
        }
        int64_t dearest = dearest_left(model, worker, pool, tenant);
        if (less && dearest > 0 && (!limited || jobs == 0 || dearest <= room)) {
            return model_differ(model,
                                "claim of %s left a job of tenant %d, which costs at most %" PRId64
                                " and has room for %" PRId64,
                                worker->worker_id, tenant, dearest, limited ? room : INT64_MAX);
        }
    }
    model->held += less ? 1 : 0;
    return true;
}

static bool claimed_new(struct model *model, struct model_worker *known,
                        const struct store_worker *worker, int64_t claim_id, uint32_t max,
                        const struct job_lease *leases, uint32_t count)
{
    uint32_t results = model_claimable_by(model, worker, known->pool, -1);
    uint32_t there = results > 0 ? results : shadows_claimable(model, worker, known->pool);
    uint32_t expected = there < max ? there : max;

    race_settle(model, known->pool);
    if (count > expected || (count < expected && results == 0)) {
        return model_differ(
            model, "claim of %s for %" PRIu32 " got %" PRIu32 " jobs; %" PRIu32 " could be claimed",
            known->id, max, count, there);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct model_job *job = model_job(model, leases[i].job_id);
        if (job == NULL) {
            return model_differ(model, "claim of %s got job %" PRId64 ", which nobody submitted",
                                known->id, leases[i].job_id);
        }
        if (results > 0 && job->repeats >= 0) {
            return model_differ(model, "claim of %s got job %" PRId64 " of a shadow before others",
                                known->id, job->id);
        }
        if (left_alone(worker, job)) {
            return model_differ(model, "claim of %s got job %" PRId64 ", whose planner it left out",
                                known->id, job->id);
        }
        if (!lease_matches(model, job, known, &leases[i]) || !race_claimed(model, worker, job)) {
            return false;
        }
        job->state = JOB_LEASED;
        job->epoch++;
        job->attempts++;
        job->worker = (int)(known - model->workers);
        job->claim_id = claim_id;
        job->claimed_ns = claim_time(model);
        known->claim_id = claim_id;
        job->progress_ns = 0;
        job->progress_mm = 0;
        job->progress_mflop = 0;
    }
    race_settle(model, known->pool);
    return results == 0 || limits_hold(model, worker, known->pool, count < expected);
}

bool model_claim(struct model *model, const struct store_worker *worker, int64_t claim_id,
                 uint32_t max, const struct job_lease *leases, uint32_t count, int64_t next_id,
                 enum status status)
{
    struct model_worker *known = worker_known(model, worker);
    bool again = claim_id <= known->claim_id;

    if (again
            ? !claimed_again(model, known, claim_id, max, leases, count, status)
            : status != STATUS_OK && !model_differ(model, "claim %" PRId64 " of %s, a new one: %s",
                                                   claim_id, known->id, status_name(status))) {
        return false;
    }
    if (status != STATUS_OK) {
        return true; /* and nothing else */
    }
    if (known->host[0] == '\0') { /* what the first claim says */
        snprintf(known->host, sizeof known->host, "%s",
                 worker->host[0] != '\0' ? worker->host : worker->worker_id);
    }
    renew(model, known);
    if (!again && !claimed_new(model, known, worker, claim_id, max, leases, count)) {
        return false;
    }
    int64_t expected = again || count > 0 ? known->claim_id + 1 : claim_id;
    return next_id == expected ||
           model_differ(model, "claim %" PRId64 " of %s: the next one is %" PRId64 ", not %" PRId64,
                        claim_id, known->id, next_id, expected);
}

/* ---- completing ---- */

static struct model_time taken_in(const struct model *model)
{
    int64_t wall_ns = model->now_ns + model->wall_ns;
    return (struct model_time){wall_ns / NS_PER_MS, (wall_ns + model->stall_ns) / NS_PER_MS};
}

bool model_time_fits(const struct model_time *time, const struct outcome *outcome)
{
    return outcome->at_ms >= time->first_ms && outcome->at_ms <= time->last_ms;
}

/* By the flagged job's row, whatever the flag says. */
static bool escalate(struct model *model, const struct model_job *job, int64_t escalated)
{
    struct job_spec spec = job->successor;
    struct model_job *known = job_of_key(model, job->suite, spec.key);

    if (known != NULL || escalated <= 0 || model_job(model, escalated) != NULL) {
        return (known != NULL && known->id == escalated) ||
               model_differ(model, "job %" PRId64 " was flagged; its successor cannot be %" PRId64,
                            job->id, escalated);
    }
    job_add(model, job->suite, &spec, escalated);
    return true;
}

static void take_outcomes(const struct model *model, struct model_job *job,
                          const struct job_completion *completion)
{
    job->outcome_epoch = completion->epoch;
    job->outcome_count = completion->outcome_count;
    CHECK(completion->outcome_count <= MODEL_ROLLOUTS_MAX);
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        const struct outcome *outcome = &completion->outcomes[i];
        memcpy(job->token, outcome->trace_hash, sizeof job->token);
        const struct model_partial *partial = partial_shown(model, job, model_rollout(outcome));
        job->outcomes[i] = (struct model_outcome){
            .at = partial != NULL ? partial->at : taken_in(model),
            .main_line = outcome->branch_id[0] == '\0',
            .verdict = completion->kind == COMPLETION_FLAGGED ? VERDICT_FLAGGED : outcome->verdict,
            .ticks = outcome->ticks,
            .prefix_ticks = outcome->prefix_ticks,
            .metres_mm = outcome->metres_mm,
        };
    }
}

static void charge(const struct model *model, struct model_attempt *attempt,
                   const struct job_completion *completion)
{
    attempt->device_ns =
        max_i64(attempt->device_ns, billed(model, attempt->claimed_ns, completion->device_ns));
    attempt->metres_mm = max_i64(attempt->metres_mm, completion->metres_mm);
    attempt->mflop = max_i64(attempt->mflop, completion->mflop);
}

/* Forgets that the host could not start the planner; how many others could not. */
static int forget_unstarted(struct model *model, const char *planner, const char *host)
{
    int others = 0;
    int kept = 0;
    for (int i = 0; i < model->unstarted_count; i++) {
        struct model_unstarted *row = &model->unstarted[i];
        bool same = strcmp(row->planner, planner) == 0;
        if (same && strcmp(row->host, host) == 0) {
            continue;
        }
        others += same;
        model->unstarted[kept++] = *row;
    }
    model->unstarted_count = kept;
    return others;
}

static bool ever_driven(const struct model *model, const char *planner)
{
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if ((job->state == JOB_DONE || job->state == JOB_FLAGGED) &&
            strcmp(job->planner, planner) == 0) {
            return true;
        }
    }
    return false;
}

/* The job's worker could not start its planner. Whether it is the planner's fault. */
static bool note_unstarted(struct model *model, const struct model_job *job)
{
    const char *host = model->workers[job->worker].host;
    int others = forget_unstarted(model, job->planner, host);
    CHECK(model->unstarted_count < MODEL_UNSTARTED_MAX);
    struct model_unstarted *row = &model->unstarted[model->unstarted_count++];
    memcpy(row->planner, job->planner, sizeof row->planner);
    memcpy(row->host, host, sizeof row->host);
    row->suite = job->suite;
    return others + 1 >= MODEL_PLANNER_HOSTS && !ever_driven(model, job->planner);
}

static bool accept(struct model *model, struct model_job *job,
                   const struct job_completion *completion, struct model_attempt *before,
                   const struct store_completion_result *result)
{
    static const enum model_end ends[COMPLETION_KIND_COUNT] = {
        END_DONE, END_FLAGGED, END_FAILED, END_RELEASED, END_RELEASED, END_COUNT};
    enum completion_kind kind = completion->kind;
    if (before != NULL) {
        job->lost--;
    }
    if (kind == COMPLETION_UNSTARTED) {
        bool blamed = note_unstarted(model, job);
        kind = blamed ? COMPLETION_FAILED : COMPLETION_RELEASED;
        if (result->excused == blamed) {
            return model_differ(model, "job %" PRId64 " was not started; excused: %d, expected %d",
                                job->id, result->excused, !blamed);
        }
    }
    struct model_attempt *attempt = before;
    if (attempt == NULL) {
        attempt = attempt_add(model, job, ends[kind]);
    }
    attempt->end = ends[kind];
    charge(model, attempt, completion);
    job->due_ns = 0;
    job->delay_ns = 0;
    int64_t failures = job->attempts - job->lost;
    switch (kind) {
    case COMPLETION_DONE:
        job->state = JOB_DONE;
        take_outcomes(model, job, completion);
        break;
    case COMPLETION_FLAGGED:
        job->state = job->escalates && job->tier != TIER_TEACHER ? JOB_FLAGGED : JOB_DEAD;
        take_outcomes(model, job, completion);
        break;
    case COMPLETION_FAILED:
        job->state = failures < (int64_t)job->attempts_max ? JOB_QUEUED : JOB_DEAD;
        if (job->state == JOB_QUEUED) {
            job->delay_ns = model->backoff_ns;
            for (int64_t i = 1; i < failures && job->delay_ns < BACKOFF_NS_MAX; i++) {
                job->delay_ns *= 2;
            }
            job->delay_ns = job->delay_ns < BACKOFF_NS_MAX ? job->delay_ns : BACKOFF_NS_MAX;
            job->due_ns = model->now_ns + job->delay_ns;
        }
        break;
    default:
        job->state = JOB_QUEUED;
        job->attempts--;
        break;
    }
    if (job->state == JOB_DONE || job->state == JOB_FLAGGED) {
        forget_unstarted(model, job->planner, model->workers[job->worker].host);
    }
    attempt->escalated = job->state == JOB_FLAGGED ? result->escalated_job_id : 0;
    return job->state != JOB_FLAGGED || escalate(model, job, attempt->escalated);
}

/* ---- partial outcomes ---- */

uint32_t model_rollout(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' ? 0 : (uint32_t)(outcome->branch_id[1] - '0');
}

/* Outcomes handed over by the attempt that holds the job; the first one of a rollout stays, among
 * those of workers that one token holds. */
static void keep_partials(const struct model *model, struct model_job *job,
                          const struct job_completion *completion)
{
    job->progress_ns =
        max_i64(job->progress_ns, billed(model, job->claimed_ns, completion->device_ns));
    job->progress_mm = max_i64(job->progress_mm, completion->metres_mm);
    job->progress_mflop = max_i64(job->progress_mflop, completion->mflop);
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        const struct outcome *outcome = &completion->outcomes[i];
        uint32_t rollout = model_rollout(outcome);
        struct model_partial *partial = &job->partials[rollout];
        if (partial_shown(model, job, rollout) == NULL) {
            partial->epoch = completion->epoch;
            partial->worker = job->worker;
            partial->at = taken_in(model);
            memcpy(partial->token, outcome->trace_hash, sizeof partial->token);
        }
    }
}

bool model_partials(struct model *model, int64_t job_id, const struct outcome *outcomes,
                    uint32_t count)
{
    const struct model_job *job = model_job(model, job_id);
    uint32_t expected = 0;

    CHECK(job != NULL);
    for (uint32_t i = 0; i < MODEL_ROLLOUTS_MAX && !model_terminal(job); i++) {
        expected += partial_shown(model, job, i) != NULL;
    }
    if (count != expected) {
        return model_differ(model,
                            "job %" PRId64 " (%s) shows %" PRIu32 " partial outcomes of %" PRIu32,
                            job_id, job_state_names[job->state], count, expected);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct model_partial *partial = &job->partials[model_rollout(&outcomes[i])];
        if (partial_shown(model, job, model_rollout(&outcomes[i])) == NULL ||
            outcomes[i].job_id != job_id || outcomes[i].epoch != partial->epoch ||
            strcmp(outcomes[i].trace_hash, partial->token) != 0 ||
            !model_time_fits(&partial->at, &outcomes[i])) {
            return model_differ(model,
                                "job %" PRId64 ", branch %s: partial outcome %s of epoch %" PRId64
                                ", ms %" PRId64
                                "; the one that was accepted is %s of epoch %" PRId64
                                ", ms %" PRId64 " to %" PRId64,
                                job_id, outcomes[i].branch_id, outcomes[i].trace_hash,
                                outcomes[i].epoch, outcomes[i].at_ms, partial->token,
                                partial->epoch, partial->at.first_ms, partial->at.last_ms);
        }
    }
    return true;
}

static bool complete_one(struct model *model, const struct job_completion *completion,
                         const struct store_completion_result *result)
{
    static const enum model_end ends[COMPLETION_KIND_COUNT] = {
        END_DONE, END_FLAGGED, END_FAILED, END_RELEASED, END_RELEASED, END_COUNT};
    struct model_job *job = model_job(model, completion->job_id);
    enum status expected = STATUS_STALE;
    int64_t escalated = 0;

    CHECK(job != NULL);
    int worker = worker_index(model, completion->worker_id);
    struct model_attempt *before = attempt_of(model, job, completion->epoch);
    bool current = job->epoch == completion->epoch && job->worker == worker;
    bool in_time =
        current && (job->state == JOB_LEASED ||
                    (job->state == JOB_QUEUED && before->end == END_LOST && job->claim_id != 0));
    bool partial = completion->kind == COMPLETION_PARTIAL;
    if (partial) {
        in_time = current && job->state == JOB_LEASED;
        before = NULL; /* it neither ends an attempt nor adds to one that has ended */
    }
    if (in_time) {
        expected = STATUS_OK;
        escalated = job->repeats < 0 ? result->escalated_job_id : 0;
    } else if (before != NULL && before->worker == worker &&
               (before->end == ends[completion->kind] ||
                (completion->kind == COMPLETION_UNSTARTED && before->end == END_FAILED))) {
        expected = STATUS_OK;
        escalated = before->escalated;
        bool excused = completion->kind == COMPLETION_UNSTARTED && before->end == END_RELEASED;
        if (result->excused != excused) {
            return model_differ(model, "job %" PRId64 " was not started; replay excused: %d",
                                job->id, result->excused);
        }
    }
    if (result->status != expected || result->escalated_job_id != escalated) {
        return model_differ(model,
                            "completion (%s) of job %" PRId64 " epoch %" PRId64
                            " by %s: expected %s, successor %" PRId64 "; found %s, %" PRId64
                            " (the job is %s, epoch %" PRId64 ")",
                            completion_kind_names[completion->kind], completion->job_id,
                            completion->epoch, completion->worker_id, status_name(expected),
                            escalated, status_name(result->status), result->escalated_job_id,
                            job_state_names[job->state], job->epoch);
    }
    if (in_time && partial) {
        keep_partials(model, job, completion);
        return true;
    }
    if (in_time) {
        return accept(model, job, completion, before, result);
    }
    if (expected == STATUS_STALE && before != NULL && before->worker == worker &&
        before->end == END_LOST) {
        before->end = END_STALE;
        charge(model, before, completion);
    }
    return true;
}

bool model_complete(struct model *model, const struct job_completion *completions, uint32_t count,
                    const struct store_completion_result *results)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!complete_one(model, &completions[i], &results[i])) {
            return false;
        }
    }
    return true;
}

void model_worker_gone(struct model *model, const char *worker_id)
{
    int worker = worker_index(model, worker_id);
    if (worker >= 0) {
        model->workers[worker].until_ns = 0;
        lose_jobs(model, worker);
    }
}

bool model_cancel(struct model *model, const char *suite_id, int64_t count, enum status status)
{
    int suite = model_suite(model, suite_id);
    int64_t expected = 0;

    if ((suite < 0) != (status == STATUS_NOT_FOUND) ||
        (status != STATUS_OK && status != STATUS_NOT_FOUND)) {
        return model_differ(model, "cancel of %s: %s", suite_id, status_name(status));
    }
    if (suite < 0) {
        return true;
    }
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->suite == suite && !model_terminal(job)) {
            expected += job->repeats < 0;
            cancel_job(model, job);
        }
    }
    return count == expected ||
           model_differ(model, "cancel of %s: %" PRId64 " jobs, expected %" PRId64, suite_id, count,
                        expected);
}
