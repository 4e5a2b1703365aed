/*
 * Goal: the life of a worker against a real embedded store: everything claimed ends exactly once as
 * done, dead, cancelled or queued again, with outcomes, artifacts and cost to match, whatever goes
 * wrong on the way.
 * Method: small suites; a store in front of the embedded one that meddles at a given call (claims a
 * job away, cancels, shortens the lease, raises the stop flag) and counts completions by kind.
 */
#include "engine/trace/trace.h"
#include "tests/claim_ids.h"
#include "tests/worker/shop.h"
#include "worker/run/claim_loop.h"

#include "base/check.h"
#include "engine/worlds/world.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#define MOODY "plugin:" PLUGIN_MOODY "?good"

static const char *const smoke = SWERVE_SOURCE_ROOT "/scenarios/smoke.json";

/* ---- the store that meddles ---- */

enum trick { TRICK_NONE, TRICK_STEAL, TRICK_CANCEL, TRICK_EXPIRE, TRICK_STOP };

struct meddler {
    struct store base;
    struct store_ops ops;
    struct store *inner;
    enum trick trick; /* played at the first claim that brings jobs */
    bool played;
    atomic_bool mute; /* heartbeats fail */
    const char *suite_id;
    atomic_bool *stop;
    int64_t completions[COMPLETION_KIND_COUNT];
    int64_t claims;
    int64_t stop_at;   /* this claim; 0: never */
    int64_t stop_done; /* after so many jobs that are done; 0: never */
    int64_t open_deadline_ms;
    int64_t wait_ms_max;
    int64_t idle_wait_ms;
    /* From call number silent_from on (heartbeats not counted; 0: never) nothing is answered, until
     * one heartbeat was not. */
    int silent_from;
    int calls;
    bool takes_nothing; /* no completion is answered, heartbeats are */
    int lost_answers;   /* of claims that leased jobs, still to come */
    atomic_bool silent;
    int64_t grace_ms;
    int64_t offline_limit_ms;
    const struct logger *logger; /* NULL: none */
    struct store_worker worker;
    bool leave_unstarted;
    int full_from; /* from this artifact on there is no space for one; 0: never */
    int vanishes;  /* this artifact is gone again at once; 0: none */
    int puts;
};

/* Whether this call is not answered. */
static bool falls_silent(struct meddler *m, struct error *error)
{
    bool begins = ++m->calls == m->silent_from;
    if (begins) {
        atomic_store(&m->silent, true);
    }
    if (begins || atomic_load(&m->silent)) { /* a heartbeat may have come in between */
        error_set(error, STATUS_TIMEOUT, "no answer");
        return true;
    }
    return false;
}

static void steal(struct meddler *m, const struct store_worker *worker, uint32_t count)
{
    struct store_worker thief = *worker;
    struct job_lease leases[LIMIT_CLAIM_JOBS];
    struct error error;
    uint32_t stolen = 0;
    int64_t ttl_ms;
    snprintf(thief.worker_id, sizeof thief.worker_id, "thief");
    EXPECT_OK(m->inner->ops->worker_gone(m->inner, worker->worker_id, &error), error);
    EXPECT_OK(m->inner->ops->claim(m->inner, &thief, fresh_claim_id(), count, 0, leases, &stolen,
                                   &ttl_ms, &error),
              error);
    EXPECT_INT(stolen, count);
    for (uint32_t i = 0; i < stolen; i++) {
        struct job_completion back = {
            .job_id = leases[i].job_id, .epoch = leases[i].epoch, .kind = COMPLETION_RELEASED};
        struct store_completion_result result;
        snprintf(back.worker_id, sizeof back.worker_id, "thief");
        EXPECT_OK(m->inner->ops->complete(m->inner, &back, 1, &result, &error), error);
        EXPECT_INT(result.status, STATUS_OK);
    }
}

static enum status meddle_claim(struct store *store, const struct store_worker *worker,
                                int64_t *claim_id, uint32_t max, int64_t wait_ms,
                                struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                                struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    if (falls_silent(m, error)) {
        return STATUS_TIMEOUT;
    }
    int64_t next_id = *claim_id;
    enum status status = m->inner->ops->claim(m->inner, worker, &next_id, max, wait_ms, leases,
                                              count, ttl_ms, error);
    if (status == STATUS_OK && *count > 0 && m->lost_answers > 0) {
        m->lost_answers--;
        *count = 0;
        return error_set(error, STATUS_TIMEOUT, "no answer");
    }
    *claim_id = status == STATUS_OK ? next_id : *claim_id;
    m->claims++;
    m->wait_ms_max = wait_ms > m->wait_ms_max ? wait_ms : m->wait_ms_max;
    if (m->claims == m->stop_at) {
        atomic_store(m->stop, true);
    }
    if (status != STATUS_OK || *count == 0 || m->played) {
        return status;
    }
    int64_t cancelled;
    m->played = true;
    switch (m->trick) {
    case TRICK_STEAL:
        steal(m, worker, *count);
        break;
    case TRICK_CANCEL:
        return m->inner->ops->cancel(m->inner, m->suite_id, &cancelled, error);
    case TRICK_EXPIRE:
        *ttl_ms = 1; /* and no heartbeat is answered until jobs come back */
        break;
    case TRICK_STOP:
        atomic_store(m->stop, true);
        break;
    default:
        break;
    }
    return status;
}

static enum status meddle_heartbeat(struct store *store, const struct store_worker *worker,
                                    const struct store_progress *progress, uint32_t count,
                                    int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                    struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    if (atomic_load(&m->mute) || atomic_exchange(&m->silent, false)) {
        return error_set(error, STATUS_TIMEOUT, "no answer");
    }
    return m->inner->ops->heartbeat(m->inner, worker, progress, count, cancelled, cancelled_count,
                                    ttl_ms, error);
}

static enum status meddle_complete(struct store *store, const struct job_completion *completions,
                                   uint32_t count, struct store_completion_result *results,
                                   struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    if (falls_silent(m, error)) {
        return STATUS_TIMEOUT;
    }
    if (m->takes_nothing) {
        return error_set(error, STATUS_TIMEOUT, "the disk is full");
    }
    for (uint32_t i = 0; i < count; i++) {
        m->completions[completions[i].kind]++;
        if (completions[i].kind == COMPLETION_RELEASED) {
            atomic_store(&m->mute, false);
        }
    }
    if (m->stop_done > 0 && m->completions[COMPLETION_DONE] >= m->stop_done) {
        atomic_store(m->stop, true);
    }
    return m->inner->ops->complete(m->inner, completions, count, results, error);
}

static enum status meddle_scenario_get(struct store *store, const char *hash, char **body,
                                       size_t *bytes, struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    if (falls_silent(m, error)) {
        return STATUS_TIMEOUT;
    }
    return m->inner->ops->scenario_get(m->inner, hash, body, bytes, error);
}

static enum status meddle_artifact_put(struct store *store, const void *data, size_t bytes,
                                       char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    if (falls_silent(m, error)) {
        return STATUS_TIMEOUT;
    }
    m->puts++;
    if (m->full_from > 0 && m->puts >= m->full_from) {
        return error_set(error, STATUS_IO, "No space left on device");
    }
    if (m->puts == m->vanishes) {
        sha256_hex(data, bytes, hash);
        return STATUS_OK;
    }
    return m->inner->ops->artifact_put(m->inner, data, bytes, hash, error);
}

static enum status meddle_job(struct store *store, int64_t job_id, struct store_job *out,
                              struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    return m->inner->ops->job(m->inner, job_id, out, error);
}

static enum status meddle_artifact_get(struct store *store, const char *hash, void **data,
                                       size_t *bytes, struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    return falls_silent(m, error) ? STATUS_TIMEOUT
                                  : m->inner->ops->artifact_get(m->inner, hash, data, bytes, error);
}

static enum status meddle_partials(struct store *store, int64_t job_id, struct outcome *out,
                                   uint32_t max, uint32_t *count, struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    if (falls_silent(m, error)) {
        return STATUS_TIMEOUT;
    }
    return m->inner->ops->partials(m->inner, job_id, out, max, count, error);
}

static enum status meddle_awaited(struct store *store, const struct store_worker *worker,
                                  int64_t since_ms, struct store_awaited *out, struct error *error)
{
    struct meddler *m = (struct meddler *)store;
    return m->inner->ops->awaited(m->inner, worker, since_ms, out, error);
}

/* Calls that a worker needs of a store, no more: any other call would crash. */
static void meddler_init(struct meddler *m, struct store *inner, enum trick trick)
{
    memset(m, 0, sizeof *m);
    m->inner = inner;
    m->trick = trick;
    atomic_store(&m->mute, trick == TRICK_EXPIRE);
    m->ops = (struct store_ops){.name = "meddler",
                                .claim = meddle_claim,
                                .heartbeat = meddle_heartbeat,
                                .complete = meddle_complete,
                                .scenario_get = meddle_scenario_get,
                                .artifact_put = meddle_artifact_put,
                                .artifact_get = meddle_artifact_get,
                                .partials = meddle_partials,
                                .awaited = meddle_awaited,
                                .job = meddle_job};
    m->base.ops = &m->ops;
    m->worker = (struct store_worker){.worker_id = "worker", .pool = "bulk", .device = "cpu"};
}

/* Partial outcomes have a test of their own. A rollout that is kept while its job goes on is told
 * of before the last of its cost is known, which is the job's alone then. */
enum { KEEP_NEVER_MS = 24 * 3600 * 1000 };

static enum status try_work(struct meddler *m, uint32_t slots, bool drain, atomic_bool *stop,
                            struct claim_loop_stats *stats, struct error *error)
{
    const struct claim_loop_config config = {
        .store = &m->base,
        .worker = m->worker,
        .slot_count = slots,
        .drain = drain,
        .leave_unstarted = m->leave_unstarted,
        .grace_ms = m->grace_ms,
        .planner_config = {.open_deadline_ms = m->open_deadline_ms},
        .offline_limit_ms = m->offline_limit_ms,
        .logger = m->logger,
        .idle_wait_ms = m->idle_wait_ms,
        .keep_every_ms = KEEP_NEVER_MS,
        .stop = stop,
    };
    m->stop = stop;
    return claim_loop_run(&config, stats, error);
}

/* Runs a worker over the meddler until it ends. */
static struct claim_loop_stats work(struct meddler *m, uint32_t slots, bool drain,
                                    atomic_bool *stop)
{
    struct claim_loop_stats stats = {0};
    struct error error;
    EXPECT_OK(try_work(m, slots, drain, stop, &stats, &error), error);
    return stats;
}

static struct claim_loop_stats drain(struct meddler *m, uint32_t slots)
{
    atomic_bool stop = false;
    return work(m, slots, true, &stop);
}

static void send(struct shop *shop, struct order *order, const char *path,
                 const struct submission_options *options)
{
    struct error error;
    order_build(order, path, options);
    EXPECT_OK(submission_send(&order->submission, shop->store, 10, &error), error);
}

/* Every outcome of a suite; returns how many. */
static uint32_t outcomes_of(struct shop *shop, const char *suite_id, struct outcome *out,
                            uint32_t max)
{
    struct store_outcome_filter filter = {.limit = max};
    struct error error;
    uint32_t count = 0;
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite_id);
    EXPECT_OK(shop->store->ops->outcomes(shop->store, &filter, out, &count, &error), error);
    return count;
}

static int64_t ledger_device_ns(struct shop *shop, int64_t *attempts)
{
    struct store_ledger_row rows[32];
    struct error error;
    uint32_t count = 0;
    int64_t device_ns = 0;
    EXPECT_OK(shop->store->ops->ledger(shop->store, NULL, rows, 32, &count, &error), error);
    *attempts = 0;
    for (uint32_t i = 0; i < count; i++) {
        device_ns += rows[i].totals.device_ns;
        *attempts += rows[i].totals.attempts;
    }
    return device_ns;
}

/* ---- tests ---- */

static void a_suite_is_done_with_all_its_outcomes(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    static struct outcome outcomes[200];
    shop_open(&shop, 0);
    send(&shop, &order, smoke, order_options("builtin:reference", 0));
    meddler_init(&m, shop.store, TRICK_NONE);
    struct claim_loop_stats stats = drain(&m, 5);
    EXPECT_INT(stats.jobs, order.submission.job_count);
    EXPECT_INT(stats.stale, 0);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
    EXPECT_INT(status.ticks, stats.ticks);
    uint32_t count = outcomes_of(&shop, order.submission.suite_id, outcomes, 200);
    EXPECT_INT(count, order.submission.rollout_count);
    int64_t device_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        device_ns += outcomes[i].device_ns;
        shop_expect_trace(&shop, &outcomes[i]);
    }
    int64_t attempts;
    EXPECT_INT(ledger_device_ns(&shop, &attempts), device_ns);
    EXPECT_INT(attempts, order.submission.job_count);
    /* Another suite over the same work finds it done. */
    struct order again;
    order_build(&again, smoke, order_options("builtin:reference", 0));
    snprintf(again.submission.suite_id, LIMIT_ID_BYTES, "other");
    for (uint32_t i = 0; i < again.submission.job_count; i++) {
        snprintf(again.submission.specs[i].suite_id, LIMIT_ID_BYTES, "other");
    }
    struct error error;
    EXPECT_OK(submission_send(&again.submission, shop.store, 10, &error), error);
    EXPECT_INT(again.submission.memoised_count, again.submission.job_count);
    EXPECT_INT(drain(&m, 5).ticks, 0);
    order_finish(&again);
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: a job that says what is not so ends dead by itself; the worker and its other jobs go on. */
static void a_job_that_lies_harms_nobody(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct store_job dead[4];
    uint32_t count = 0;
    struct error error;
    shop_open(&shop, 0);
    order_build(&order, smoke, order_options("builtin:reference", 0));
    struct job_spec *specs = order.submission.specs;
    specs[0].rollout_count += 3; /* this one is not even taken */
    EXPECT_INT(submission_send(&order.submission, shop.store, 10, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "found 4");
    specs[0].rollout_count -= 3;
    snprintf(specs[1].scenario_id, sizeof specs[1].scenario_id, "another");
    EXPECT_OK(submission_send(&order.submission, shop.store, 10, &error), error);
    meddler_init(&m, shop.store, TRICK_NONE);
    EXPECT_INT(drain(&m, 5).jobs, order.submission.job_count - 1);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count - 1);
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, order.submission.suite_id, 0, dead, 4, &count,
                                         &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_CONTAINS(dead[0].error, "the job says \"another\"");
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: a job of another revision among others is never the job's fault, however often it is met
 * while they are driven: none of its attempts is used up. */
static void a_job_of_another_revision_waits(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct claim_loop_stats stats = {0};
    struct store_job *job = calloc(1, sizeof *job);
    struct error error;
    atomic_bool stop = false;
    CHECK(job != NULL);
    shop_open(&shop, 0);
    order_build(&order, smoke, order_options("builtin:reference", 12));
    memset(order.submission.specs[0].revision, 'a', SHA256_HEX_BYTES - 1);
    EXPECT_OK(submission_send(&order.submission, shop.store, 10, &error), error);
    meddler_init(&m, shop.store, TRICK_NONE);
    EXPECT_INT(try_work(&m, 2, true, &stop, &stats, &error), STATUS_MISMATCH);
    EXPECT_CONTAINS(error.text, "revision aaaaaaaaaaaa");
    EXPECT_OK(shop.store->ops->job(shop.store, 1, job, &error), error);
    EXPECT_INT(job->state, JOB_QUEUED);
    EXPECT_INT(job->attempts, 0);
    EXPECT_INT(stats.jobs, order.submission.job_count - 1);
    free(job);
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: jobs of a claim whose answer was lost are driven, once, by the worker that does not know
 * of them yet. */
static void a_lost_answer_costs_nothing(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    int64_t attempts = 0;
    shop_open(&shop, 1500); /* a heartbeat, which shows that the store answers, each third of it */
    send(&shop, &order, smoke, order_options("builtin:reference", 0));
    meddler_init(&m, shop.store, TRICK_NONE);
    m.lost_answers = 3;
    m.offline_limit_ms = 60000;
    struct claim_loop_stats stats = drain(&m, 5);
    EXPECT_INT(m.lost_answers, 0);
    EXPECT_INT(stats.jobs, order.submission.job_count);
    EXPECT_INT(stats.stale, 0);
    EXPECT_INT(shop_status(&shop, order.submission.suite_id).jobs[JOB_DONE],
               order.submission.job_count);
    ledger_device_ns(&shop, &attempts);
    EXPECT_INT(attempts, order.submission.job_count);
    order_finish(&order);
    shop_close(&shop);
}

/* A logged car that jumps 60 m is no believable world, and there is no teacher to ask. */
static void a_flagged_job_is_dead_with_its_evidence(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct outcome outcomes[8];
    struct store_job dead;
    struct error error;
    char path[256];
    uint32_t count = 0;
    shop_open(&shop, 0);
    shop_scenario(&shop, "jump", "5",
                  "{'id':'ghost','kind':'car','behaviour':'replay','trajectory':"
                  "[[0,200,0,0,10],[2,220,0,0,10],[2.05,280,0,0,10],[9,300,0,0,10]]}",
                  "{'id':'early','at_tick':5,'interventions':[{'kind':'ego_maintain'}]}", path);
    struct submission_options options = *order_options("builtin:maintain", 1);
    options.policy.choice = WORLD_REPLAY;
    send(&shop, &order, path, &options);
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 4);
    EXPECT_INT(m.completions[COMPLETION_FLAGGED], 1);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DEAD], 1);
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, order.submission.suite_id, 0, &dead, 1, &count,
                                         &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_CONTAINS(dead.error, "teleport");
    EXPECT_CONTAINS(dead.error, "agent 0");
    EXPECT_INT(outcomes_of(&shop, order.submission.suite_id, outcomes, 8), 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(outcomes[i].verdict, VERDICT_FLAGGED);
        EXPECT_CONTAINS(outcomes[i].error, "teleport");
        EXPECT(outcomes[i].artifact_hash[0] != '\0');
    }
    order_finish(&order);
    shop_close(&shop);
}

/* A Python planner of one file in the shop, and the spec that starts it. */
static void write_planner(const struct shop *shop, const char *act, char spec[LIMIT_SPEC_BYTES])
{
    char path[256];
    char text[512];
    snprintf(text, sizeof text,
             "import sys\nsys.path.insert(0, '%s/scripts')\nimport swerve_planner\n"
             "class P(swerve_planner.Planner):\n    def act(self, seen):\n        %s\n"
             "swerve_planner.run(P)\n",
             SWERVE_SOURCE_ROOT, act);
    shop_write(shop, "planner.py", text, path);
    snprintf(spec, LIMIT_SPEC_BYTES, "exec:python3 %s", path);
}

/* Two suites were submitted with two contents of one planner file, and the first content is there
 * when the worker comes: the second suite must not be driven by it, though a runner of the same
 * command line is open, or its results would be stored under a planner that never ran. */
static void a_planner_that_changed_does_not_drive(void)
{
    struct shop shop;
    struct order first;
    struct order second;
    struct meddler m;
    struct store_job dead;
    struct outcome outcomes[8];
    struct error error;
    char path[256];
    char spec[LIMIT_SPEC_BYTES];
    uint32_t count = 0;
    shop_open_strict(&shop, 0, 1);
    shop_scenario(&shop, "drive", "3", "", "", path);
    write_planner(&shop, "return 1.0, 0.0", spec);
    send(&shop, &first, path, order_options(spec, 2));
    write_planner(&shop, "return -1.0, 0.0", spec);
    order_build(&second, path, order_options(spec, 2));
    snprintf(second.submission.suite_id, LIMIT_ID_BYTES, "second");
    for (uint32_t i = 0; i < second.submission.job_count; i++) {
        snprintf(second.submission.specs[i].suite_id, LIMIT_ID_BYTES, "second");
    }
    EXPECT_OK(submission_send(&second.submission, shop.store, 10, &error), error);
    EXPECT_INT(second.submission.memoised_count, 0);
    write_planner(&shop, "return 1.0, 0.0", spec);
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 4);
    EXPECT_INT(shop_status(&shop, first.submission.suite_id).jobs[JOB_DONE], 2);
    EXPECT_INT(shop_status(&shop, "second").jobs[JOB_DEAD], 2);
    EXPECT_INT(outcomes_of(&shop, "second", outcomes, 8), 0);
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, "second", 0, &dead, 1, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_CONTAINS(dead.error, spec);
    /* A client that lies among the user's own files counts among what the planner imports.
     */
    EXPECT_CONTAINS(dead.error, "its files changed");
    EXPECT_CONTAINS(dead.error, " since the job was submitted (expected hash ");
    EXPECT_CONTAINS(dead.error, "; submit again");
    order_finish(&first);
    order_finish(&second);
    shop_close(&shop);
}

/* Goal: a job that names another rig than its drive has, or one with which its planner does not
 * start, fails alone: whoever submits writes both, and the planner's other jobs are driven. */
static void a_rig_is_the_jobs_own_fault(void)
{
    static const char text[] =
        "{\"id\": \"one\", \"cameras\": [{\"id\": \"front\", \"width\": 64, \"height\": 48,"
        " \"pose\": {\"x_m\": 1, \"y_m\": 0, \"z_m\": 1.5}, \"lens\": {\"fx\": 40}}]}";
    struct shop shop;
    struct order orders[2];
    struct meddler m;
    struct store_job dead[8];
    struct error error;
    char path[256];
    uint32_t count = 0;
    json_t *rig = json_loads(text, 0, NULL);
    shop_open(&shop, 0);
    shop_scenario(&shop, "drive", "3", "", "", path);
    order_build(&orders[0], path, order_options("builtin:reference", 3));
    memset(orders[0].submission.specs[0].rig, '0', SHA256_HEX_BYTES - 1);
    struct submission_options options = *order_options("builtin:reference", 2);
    EXPECT_OK(suite_load(path, &orders[1].suite, &error), error);
    EXPECT_OK(suite_set_rig(orders[1].suite, rig, &error), error);
    EXPECT_OK(submission_build(orders[1].suite, &options, &orders[1].submission, &error), error);
    for (int i = 1; i >= 0; i--) {
        EXPECT_OK(submission_send(&orders[i].submission, shop.store, 10, &error), error);
    }
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 4);
    EXPECT_INT(shop_status(&shop, orders[0].submission.suite_id).jobs[JOB_DONE], 2);
    EXPECT_INT(shop_status(&shop, orders[1].submission.suite_id).jobs[JOB_DEAD], 2);
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, orders[0].submission.suite_id, 0, dead, 8,
                                         &count, &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_CONTAINS(dead[0].error, "expected the rig 000000000000 of the job");
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, orders[1].submission.suite_id, 0, dead, 8,
                                         &count, &error),
              error);
    EXPECT_INT(count, 2);
    EXPECT_CONTAINS(dead[0].error, "knows the grid and the cameras of the built-in rig alone");
    json_decref(rig);
    order_finish(&orders[0]);
    order_finish(&orders[1]);
    shop_close(&shop);
}

/* The error that it raised reaches the outcome, with its tick, said once. */
static void a_planner_that_raises_leaves_its_traceback(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct outcome outcome;
    char path[256];
    char spec[LIMIT_SPEC_BYTES];
    shop_open(&shop, 0);
    shop_scenario(&shop, "drive", "3", "", "", path);
    write_planner(&shop, "return (1.0 / (5 - seen.tick), 0.0)", spec);
    send(&shop, &order, path, order_options(spec, 1));
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 1);
    EXPECT_INT(outcomes_of(&shop, order.submission.suite_id, &outcome, 1), 1);
    EXPECT_INT(outcome.verdict, VERDICT_PLANNER_ERROR);
    EXPECT(strncmp(outcome.error, "tick 5: the planner marked", 26) == 0);
    EXPECT_CONTAINS(outcome.error, "\nstderr: tick 5: act() raised\nTraceback");
    EXPECT_CONTAINS(outcome.error, "ZeroDivisionError");
    order_finish(&order);
    shop_close(&shop);
}

/* Far more jobs fail at once than fit one batch of completions; each is tried twice, then dead, and
 * a drain does not end before. */
static void what_fails_is_tried_again_and_then_dead(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct store_job dead;
    struct error error;
    char path[256];
    uint32_t count = 0;
    int64_t attempts;
    shop_open_strict(&shop, 0, 1); /* a host on which it does not start is believed */
    shop_scenario(&shop, "one", "3", SHOP_LEAD, "", path);
    /* The plugin refuses a config that starts with a digit. */
    send(&shop, &order, path, order_options("plugin:" PLUGIN_MOODY "?1", 50));
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 64);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DEAD], 50);
    EXPECT_INT(m.completions[COMPLETION_UNSTARTED], 100);
    ledger_device_ns(&shop, &attempts);
    EXPECT_INT(attempts, 100);
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, order.submission.suite_id, 0, &dead, 1, &count,
                                         &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_INT(dead.attempts, 2);
    EXPECT_CONTAINS(dead.error, "config");
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: a drain does not end while a worker that has gone holds jobs: it waits for its lease to
 * end, drives them, and leaves nothing. For one that is alive it does not wait until it has done
 * them. */
static void a_drain_waits_for_those_who_have_gone(void)
{
    enum { TTL_MS = 1500, HELD = 4 };
    struct shop shop;
    struct order order;
    struct meddler m;
    struct error error;
    static struct job_lease leases[HELD];
    const struct store_worker other = {.worker_id = "other", .pool = "bulk", .device = "cpu"};
    char path[256];
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t claim_id = 1;
    int64_t attempts;
    shop_open(&shop, TTL_MS);
    shop_scenario(&shop, "one", "0.1", SHOP_LEAD, "", path);
    send(&shop, &order, path, order_options("builtin:reference", 10));
    EXPECT_OK(shop.store->ops->claim(shop.store, &other, &claim_id, HELD, 0, leases, &count,
                                     &ttl_ms, &error),
              error);
    EXPECT_INT(count, HELD);
    meddler_init(&m, shop.store, TRICK_NONE);
    EXPECT_INT(drain(&m, 8).jobs, 10);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], 10);
    ledger_device_ns(&shop, &attempts);
    EXPECT_INT(attempts, 10 + HELD);
    order_finish(&order);
    shop_close(&shop);
}

struct living {
    struct store *store;
    atomic_bool stop;
};

static void *go_on_living(void *context)
{
    struct living *living = context;
    const struct store_worker other = {.worker_id = "other", .pool = "bulk", .device = "cpu"};
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    struct error error;
    int64_t ttl_ms = 0;
    while (!atomic_load(&living->stop)) {
        CHECK(living->store->ops->heartbeat(living->store, &other, NULL, 0, NULL, NULL, &ttl_ms,
                                            &error) == STATUS_OK);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void a_drain_ends_beside_the_living(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct error error;
    struct living living = {.store = NULL};
    static struct job_lease lease;
    const struct store_worker other = {.worker_id = "other", .pool = "bulk", .device = "cpu"};
    char path[256];
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t claim_id = 1;
    pthread_t thread;
    shop_open(&shop, 24 * 3600 * 1000); /* were it waited for, this test would not end */
    shop_scenario(&shop, "one", "0.1", SHOP_LEAD, "", path);
    send(&shop, &order, path, order_options("builtin:reference", 3));
    EXPECT_OK(shop.store->ops->claim(shop.store, &other, &claim_id, 1, 0, &lease, &count, &ttl_ms,
                                     &error),
              error);
    living.store = shop.store;
    EXPECT_INT(pthread_create(&thread, NULL, go_on_living, &living), 0);
    meddler_init(&m, shop.store, TRICK_NONE);
    EXPECT_INT(drain(&m, 8).jobs, 2);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_LEASED], 1);
    atomic_store(&living.stop, true);
    pthread_join(thread, NULL);
    order_finish(&order);
    shop_close(&shop);
}

/* One of two planners does not start: its jobs lose no attempt to a host alone, and are not claimed
 * again and again; the other planner's are done, and the worker ends with the reason. On a second
 * host the planner is at fault, and its jobs die of it. */
static void a_planner_that_does_not_start_is_left_to_others(void)
{
    for (int drained = 0; drained < 2; drained++) {
        struct shop shop;
        struct order order;
        struct meddler m;
        struct claim_loop_stats stats;
        struct error error;
        atomic_bool stop = false;
        char path[256];
        shop_open(&shop, 0);
        shop_scenario(&shop, "one", "0.1", SHOP_LEAD, "", path);
        shop_write(&shop, "suite.json",
                   "{\"id\":\"host\",\"seeds\":32,\"planners\":[\"" MOODY
                   "\",\"plugin:" PLUGIN_MOODY "?1\"],\"scenarios\":[{\"file\":\"one.json\"}]}",
                   path);
        send(&shop, &order, path, order_options("", 0));
        meddler_init(&m, shop.store, TRICK_NONE);
        m.leave_unstarted = drained == 0;
        EXPECT_INT(try_work(&m, 64, drained != 0, &stop, &stats, &error), STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, "config");
        EXPECT_CONTAINS(error.text, "no attempt was charged");
        struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_DONE], 32);
        EXPECT_INT(status.jobs[JOB_QUEUED], 32);
        EXPECT_INT(status.unstarted_hosts, 1);
        EXPECT_CONTAINS(status.unstarted, "worker: planner");
        EXPECT_INT(m.completions[COMPLETION_FAILED], 0);
        EXPECT(m.completions[COMPLETION_UNSTARTED] <= 32);
        EXPECT(m.claims < 32);
        /* Another life of the worker, on the same host. */
        strcpy(m.worker.worker_id, "again");
        strcpy(m.worker.host, "worker");
        EXPECT_INT(try_work(&m, 64, true, &stop, &stats, &error), STATUS_PLANNER);
        EXPECT_INT(shop_status(&shop, order.submission.suite_id).jobs[JOB_QUEUED], 32);
        strcpy(m.worker.worker_id, "second");
        strcpy(m.worker.host, "elsewhere");
        EXPECT_OK(try_work(&m, 64, true, &stop, &stats, &error), error);
        status = shop_status(&shop, order.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_DEAD], 32);
        EXPECT_INT(status.jobs[JOB_QUEUED], 0);
        order_finish(&order);
        shop_close(&shop);
    }
}

/* Planners whose start takes for ever, the first one or the one after a death: jobs of others are
 * claimed and driven meanwhile, and whoever ends the worker does not wait. */
static void a_start_keeps_nobody_waiting(void)
{
    enum { FOR_EVER_MS = 3600 * 1000, OTHERS = 40 };
    for (int dies = 0; dies < 2; dies++) {
        struct shop shop;
        struct order slow;
        struct order good;
        struct meddler m;
        char path[256];
        char spec[LIMIT_SPEC_BYTES] = "exec:/bin/sleep 3600";
        atomic_bool stop = false;
        shop_open(&shop, 0);
        shop_scenario(&shop, "one", "3", SHOP_LEAD, "", path);
        if (dies != 0) {
            snprintf(spec, sizeof spec,
                     "exec:/usr/bin/python3 -S " SWERVE_SOURCE_ROOT
                     "/tests/worker/bad_planners/late.py %s/gone",
                     shop.directory);
        }
        send(&shop, &slow, path, order_options(spec, 20));
        send(&shop, &good, path, order_options(MOODY, OTHERS));
        meddler_init(&m, shop.store, TRICK_NONE);
        m.open_deadline_ms = FOR_EVER_MS;
        m.stop_done = OTHERS;
        work(&m, 8, false, &stop);
        EXPECT_INT(shop_status(&shop, good.submission.suite_id).jobs[JOB_DONE], OTHERS);
        EXPECT_INT(shop_status(&shop, slow.submission.suite_id).jobs[JOB_QUEUED], 20);
        EXPECT(m.completions[COMPLETION_RELEASED] >= 1);
        EXPECT_INT(m.completions[COMPLETION_UNSTARTED] + m.completions[COMPLETION_FAILED], 0);
        /* A claim while it starts leaves its jobs alone: only the first one brought some. */
        EXPECT(dies != 0 || m.completions[COMPLETION_RELEASED] <= 8);
        order_finish(&slow);
        order_finish(&good);
        shop_close(&shop);
    }
}

/* The second claim fills the batch of completions with failures in the very tick in which the jobs
 * of the first one end. */
static void a_full_batch_meets_finished_jobs(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    char path[256];
    shop_open_strict(&shop, 0, 1);
    shop_scenario(&shop, "one", "0.1", SHOP_LEAD, "", path);
    shop_write(&shop, "suite.json",
               "{\"id\":\"mix\",\"seeds\":32,\"planners\":[\"" MOODY "\",\"plugin:" PLUGIN_MOODY
               "?1\"],\"scenarios\":[{\"file\":\"one.json\"}]}",
               path);
    send(&shop, &order, path, order_options("", 0));
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 64);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], 32);
    EXPECT_INT(status.jobs[JOB_DEAD], 32);
    order_finish(&order);
    shop_close(&shop);
}

/* A branch that orders about an agent that is not there breaks the attempt, not the worker. */
static void a_refusing_world_fails_the_job_only(void)
{
    struct shop shop;
    struct order bad;
    struct order good;
    struct meddler m;
    char path[256];
    shop_open(&shop, 0);
    shop_scenario(&shop, "bad", "4",
                  "{'id':'late','kind':'car','hidden':true,'behaviour':'script','speed_mps':5,"
                  "'manoeuvres':[{'when':'time','value':60,'do':'appear'}],'pose':{"
                  "'lane':'east','s_m':90}}",
                  "{'id':'b','at_tick':5,'interventions':[{'kind':'agent_brake','agent':'late',"
                  "'decel_mps2':3}]}",
                  path);
    send(&shop, &bad, path, order_options("builtin:maintain", 1));
    send(&shop, &good, smoke, order_options("builtin:maintain", 1));
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 8);
    struct store_suite_status status = shop_status(&shop, bad.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DEAD], 1);
    EXPECT_INT(m.completions[COMPLETION_FAILED], 2);
    status = shop_status(&shop, good.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], good.submission.job_count);
    order_finish(&bad);
    order_finish(&good);
    shop_close(&shop);
}

/* More planners than a worker keeps open: all are served, and not by releasing jobs in circles. */
static void many_planners_take_turns(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    char path[256];
    char text[4096] = "{\"id\":\"many\",\"seeds\":2,\"planners\":[";
    shop_open(&shop, 0);
    shop_scenario(&shop, "one", "3", SHOP_LEAD, "", path);
    for (int i = 0; i < 20; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s\"" MOODY ",%d\"", i > 0 ? "," : "", i);
    }
    strcat(text, "],\"scenarios\":[{\"file\":\"one.json\"}]}");
    shop_write(&shop, "suite.json", text, path);
    send(&shop, &order, path, order_options("", 0));
    EXPECT_INT(order.submission.job_count, 40);
    meddler_init(&m, shop.store, TRICK_NONE);
    drain(&m, 32);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], 40);
    EXPECT_INT(m.completions[COMPLETION_DONE], 40);
    EXPECT(m.completions[COMPLETION_RELEASED] <= 160);
    EXPECT(m.claims <= 40);
    order_finish(&order);
    shop_close(&shop);
}

/* ---- tricks ---- */

/* Jobs that take a while: 40 s each under a planner that looks at the lidar. */
/* Goal: a worker without a job's model charges it no attempt, takes no more of that world's jobs,
 * does the others and says what is left; so does any number of such workers. */
static void a_world_that_is_missing_is_left_to_others(void)
{
    for (int drained = 0; drained < 2; drained++) {
        struct shop shop;
        struct order order;
        struct meddler m;
        struct claim_loop_stats stats;
        struct error error;
        struct store_job job;
        atomic_bool stop = false;
        char path[256];
        shop_open(&shop, 0);
        shop_scenario(&shop, "one", "0.1", SHOP_LEAD, "", path);
        order_build(&order, path, order_options("builtin:reference", 60));
        for (uint32_t i = 0; i < order.submission.job_count; i += 2) {
            struct job_spec *spec = &order.submission.specs[i];
            spec->tier = TIER_STUDENT;
            snprintf(spec->model_hash, sizeof spec->model_hash, "elsewhere");
            snprintf(spec->sampler, sizeof spec->sampler, "agents/euler4/bf16");
        }
        EXPECT_OK(submission_send(&order.submission, shop.store, 10, &error), error);
        for (int host = 0; host < 3; host++) {
            meddler_init(&m, shop.store, TRICK_NONE);
            m.leave_unstarted = drained == 0;
            snprintf(m.worker.worker_id, sizeof m.worker.worker_id, "worker%d", host);
            snprintf(m.worker.host, sizeof m.worker.host, "host%d", host);
            EXPECT_INT(try_work(&m, 64, drained != 0, &stop, &stats, &error), STATUS_DEVICE);
            EXPECT_CONTAINS(error.text, "has no models");
            EXPECT_CONTAINS(error.text, "no attempt was charged");
            struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
            EXPECT_INT(status.jobs[JOB_DONE], 30);
            EXPECT_INT(status.jobs[JOB_QUEUED], 30);
            EXPECT_INT(m.completions[COMPLETION_FAILED], 0);
            EXPECT(m.completions[COMPLETION_RELEASED] > 0);
            EXPECT(m.completions[COMPLETION_RELEASED] <= 64);
            EXPECT(m.claims < 32);
        }
        EXPECT_OK(shop.store->ops->job(shop.store, 1, &job, &error), error);
        EXPECT_INT(job.attempts, 0);
        /* One that stays for what may come asks ever less often. */
        meddler_init(&m, shop.store, TRICK_NONE);
        m.idle_wait_ms = 1;
        m.stop_at = 30;
        EXPECT_OK(try_work(&m, 64, false, &stop, &stats, &error), error);
        EXPECT_INT(m.wait_ms_max, 8);
        order_finish(&order);
        shop_close(&shop);
    }
}

static void send_long(struct shop *shop, struct order *order, uint32_t seeds)
{
    char path[256];
    shop_scenario(shop, "long", "300", SHOP_LEAD, "", path);
    send(shop, order, path, order_options("builtin:reference", seeds));
}

static void a_stolen_job_is_stale_and_ends_once(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    static struct outcome outcomes[200];
    shop_open(&shop, 0);
    send(&shop, &order, smoke, order_options("builtin:maintain", 0));
    meddler_init(&m, shop.store, TRICK_STEAL);
    struct claim_loop_stats stats = drain(&m, 4);
    EXPECT_INT(stats.stale, 4); /* as many as the first claim brought */
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
    EXPECT_INT(outcomes_of(&shop, order.submission.suite_id, outcomes, 200),
               order.submission.rollout_count);
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: a worker with free slots does not ask for more at each tick. Method: two claims while jobs
 * may be left and one at the end, and between them as many as the time of the drives has rests. */
static void an_empty_claim_is_not_repeated_each_tick(void)
{
    enum { REST_MS = 50, OTHER_CLAIMS = 6 };
    struct shop shop;
    struct order order;
    struct meddler m;
    shop_open(&shop, 0);
    send_long(&shop, &order, 1);
    meddler_init(&m, shop.store, TRICK_NONE);
    int64_t start_ns = clock_now_ns(clock_system());
    struct claim_loop_stats stats = drain(&m, 16);
    int64_t rests = (clock_now_ns(clock_system()) - start_ns) / (REST_MS * NS_PER_MS);
    EXPECT_INT(stats.jobs, 1);
    EXPECT(m.claims <= OTHER_CLAIMS + rests);
    order_finish(&order);
    shop_close(&shop);
}

static void a_lost_lease_hands_the_jobs_back(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct outcome outcomes[8];
    shop_open(&shop, 0);
    send_long(&shop, &order, 3);
    meddler_init(&m, shop.store, TRICK_EXPIRE);
    struct claim_loop_stats stats = drain(&m, 3);
    EXPECT_INT(m.completions[COMPLETION_RELEASED], 3);
    EXPECT_INT(m.completions[COMPLETION_DONE], 3);
    EXPECT_INT(stats.jobs, 3);
    EXPECT_INT(outcomes_of(&shop, order.submission.suite_id, outcomes, 8), 3);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], 3);
    order_finish(&order);
    shop_close(&shop);
}

static void a_stop_releases_what_runs(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    atomic_bool stop = false;
    struct store_job job;
    struct error error;
    shop_open(&shop, 0);
    send_long(&shop, &order, 3);
    meddler_init(&m, shop.store, TRICK_STOP);
    struct claim_loop_stats stats = work(&m, 3, false, &stop);
    EXPECT_INT(stats.jobs, 0);
    EXPECT_INT(m.completions[COMPLETION_RELEASED], 3);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_QUEUED], 3);
    EXPECT_OK(shop.store->ops->job(shop.store, 1, &job, &error), error);
    EXPECT_INT(job.attempts, 0);
    int64_t attempts;
    EXPECT(ledger_device_ns(&shop, &attempts) > 0); /* a tick was simulated, and is paid for */
    order_finish(&order);
    shop_close(&shop);
}

static void what_ends_within_the_grace_is_reported(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    atomic_bool stop = false;
    shop_open(&shop, 0);
    send(&shop, &order, smoke, order_options("builtin:maintain", 0));
    meddler_init(&m, shop.store, TRICK_STOP);
    m.grace_ms = 600000;
    struct claim_loop_stats stats = work(&m, 4, false, &stop);
    EXPECT_INT(stats.jobs, 4);
    EXPECT_INT(m.claims, 1);
    EXPECT_INT(m.completions[COMPLETION_RELEASED], 0);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], 4);
    EXPECT_INT(status.jobs[JOB_QUEUED], order.submission.job_count - 4);
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: a disk without space for artifacts costs no job an attempt, whichever artifact is the first
 * that does not fit; the worker says why it ends, and what it gave back is run when there is space.
 */
static void a_full_disk_charges_no_attempt(void)
{
    for (int from = 1; from <= 6; from++) {
        struct shop shop;
        struct order order;
        struct meddler m;
        static struct outcome outcomes[200];
        atomic_bool stop = false;
        struct claim_loop_stats stats = {0};
        struct error error = {0};
        shop_open(&shop, 0);
        send(&shop, &order, smoke, order_options("builtin:maintain", 0));
        meddler_init(&m, shop.store, TRICK_NONE);
        m.full_from = from;
        EXPECT_INT(try_work(&m, 3, true, &stop, &stats, &error), STATUS_IO);
        EXPECT_CONTAINS(error.text, "No space left on device");
        EXPECT_INT(stats.jobs, from - 1);
        EXPECT_INT(m.completions[COMPLETION_FAILED], 0);
        EXPECT(m.completions[COMPLETION_RELEASED] > 0);
        struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_DONE], from - 1);
        EXPECT_INT(status.jobs[JOB_QUEUED], order.submission.job_count - (uint32_t)(from - 1));
        for (uint32_t id = 1; id <= order.submission.job_count; id++) {
            struct store_job job;
            EXPECT_OK(shop.store->ops->job(shop.store, id, &job, &error), error);
            EXPECT_INT(job.attempts, job.state == JOB_DONE);
        }
        m.full_from = 0;
        stats = drain(&m, 3);
        status = shop_status(&shop, order.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
        EXPECT_INT(outcomes_of(&shop, order.submission.suite_id, outcomes, 200),
                   order.submission.rollout_count);
        order_finish(&order);
        shop_close(&shop);
    }
}

/* Goal: an artifact that vanishes before its outcomes are reported costs its job an attempt, and
 * nothing else: those reported with it are done, and the worker goes on. */
static void a_vanished_artifact_costs_one_attempt(void)
{
    for (int at = 1; at <= 4; at++) {
        struct shop shop;
        struct order order;
        struct meddler m;
        uint32_t attempts = 0;
        struct error error;
        shop_open(&shop, 0);
        send(&shop, &order, smoke, order_options("builtin:maintain", 0));
        meddler_init(&m, shop.store, TRICK_NONE);
        m.vanishes = at;
        struct claim_loop_stats stats = drain(&m, 3);
        EXPECT_INT(stats.jobs, order.submission.job_count);
        struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
        for (uint32_t id = 1; id <= order.submission.job_count; id++) {
            struct store_job job;
            EXPECT_OK(shop.store->ops->job(shop.store, id, &job, &error), error);
            attempts += job.attempts;
        }
        EXPECT_INT(attempts, order.submission.job_count + 1);
        order_finish(&order);
        shop_close(&shop);
    }
}

/* Goal: whichever call it is at which a store falls silent, no job fails, no result is lost and
 * none is charged as an attempt. Method: all of the first calls in turn. */
static void a_silent_store_costs_nothing(void)
{
    int noticed = 0;
    for (int from = 1; from <= 8; from++) {
        struct shop shop;
        struct order order;
        struct meddler m;
        shop_open(&shop, 400);
        send(&shop, &order, smoke, order_options("builtin:maintain", 0));
        meddler_init(&m, shop.store, TRICK_NONE);
        m.silent_from = from;
        m.offline_limit_ms = 600000;
        FILE *log = tmpfile();
        CHECK(log != NULL);
        const struct logger logger = {fileno(log), LOG_ERROR, "worker"}; /* without --verbose */
        m.logger = &logger;
        struct claim_loop_stats stats = drain(&m, 4);
        char said[4096] = "";
        rewind(log);
        said[fread(said, 1, sizeof said - 1, log)] = '\0';
        fclose(log);
        if (said[0] != '\0') { /* else a heartbeat ended the silence before it was noticed */
            EXPECT_CONTAINS(said, "the store is silent; going on without it");
            EXPECT_CONTAINS(said, "the store answers again after");
            noticed++;
        }
        EXPECT(m.calls > from);
        EXPECT(stats.jobs >= order.submission.job_count);
        EXPECT_INT(m.completions[COMPLETION_FAILED], 0);
        struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
        order_finish(&order);
        shop_close(&shop);
    }
    EXPECT(noticed > 0);
}

/* A worker that may not wait says at once what the store said, and charges nobody. */
static void a_silence_that_lasts_ends_the_worker(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct error error;
    struct claim_loop_stats stats;
    atomic_bool stop = false;
    shop_open(&shop, 0);
    send(&shop, &order, smoke, order_options("builtin:maintain", 0));
    meddler_init(&m, shop.store, TRICK_NONE);
    m.silent_from = 3;
    const struct claim_loop_config config = {
        .store = &m.base,
        .worker = {.worker_id = "worker", .pool = "bulk", .device = "cpu"},
        .slot_count = 4,
        .drain = true,
        .stop = &stop,
    };
    EXPECT_INT(claim_loop_run(&config, &stats, &error), STATUS_TIMEOUT);
    EXPECT_CONTAINS(error.text, "no answer");
    EXPECT_INT(m.completions[COMPLETION_FAILED], 0);
    order_finish(&order);
    shop_close(&shop);
}

/* A store that answers heartbeats and keeps no result, as with a full disk, is not waited for for
 * ever either. */
static void a_store_that_takes_nothing_ends_the_worker(void)
{
    enum { LEASE_MS = 300, LIMIT_MS = 1000 };
    struct shop shop;
    struct order order;
    struct meddler m;
    struct error error;
    struct claim_loop_stats stats;
    char path[256];
    atomic_bool stop = false;
    shop_open(&shop, LEASE_MS);
    shop_scenario(&shop, "one", "0.1", SHOP_LEAD, "", path);
    send(&shop, &order, path, order_options("builtin:maintain", 1));
    meddler_init(&m, shop.store, TRICK_NONE);
    m.takes_nothing = true;
    m.offline_limit_ms = LIMIT_MS;
    EXPECT_INT(try_work(&m, 4, true, &stop, &stats, &error), STATUS_TIMEOUT);
    EXPECT_CONTAINS(error.text, "has been silent for");
    order_finish(&order);
    shop_close(&shop);
}

static void cancelling_in_the_store_stops_the_rollouts(void)
{
    struct shop shop;
    struct order order;
    struct meddler m;
    struct outcome outcome;
    char path[256];
    shop_open(&shop, 200);                                       /* a heartbeat every 50 ms */
    shop_scenario(&shop, "longest", "600", SHOP_LEAD, "", path); /* heard of within 0.4 s */
    send(&shop, &order, path, order_options("builtin:reference", 16));
    meddler_init(&m, shop.store, TRICK_CANCEL);
    m.suite_id = order.submission.suite_id;
    struct claim_loop_stats stats = drain(&m, 16);
    EXPECT(stats.ticks < 16 * 6000);
    EXPECT_INT(m.completions[COMPLETION_DONE], 0);
    EXPECT_INT(m.completions[COMPLETION_RELEASED], 8); /* of the first claim */
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_CANCELLED], 16);
    EXPECT_INT(outcomes_of(&shop, order.submission.suite_id, &outcome, 1), 0);
    order_finish(&order);
    shop_close(&shop);
}

/* Longer than a call takes on a machine that does ten other things under a sanitizer. */
enum { STUCK_MS = 1500 };

/* One life of a worker in a process of its own, with its log at `log_fd`; how it ended. */
static int one_life(const char *path, int life, int log_fd,
                    const struct world_ops *(*world_for_tier)(enum tier tier))
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        const struct store_config store_config = {.backoff_ms = 1};
        const struct logger logger = {log_fd, LOG_ERROR, "worker"};
        atomic_bool stop = false;
        struct claim_loop_stats stats;
        struct error error;
        struct claim_loop_config config = {
            .worker = {.pool = "bulk", .device = "cpu"},
            .slot_count = 16,
            .drain = true,
            .stuck_limit_ms = STUCK_MS,
            .world_for_tier = world_for_tier,
            .logger = &logger,
            .stop = &stop,
        };
        snprintf(config.worker.worker_id, LIMIT_ID_BYTES, "life-%d", life);
        if (store_sqlite_open(path, &store_config, &config.store, &error) != STATUS_OK ||
            claim_loop_run(&config, &stats, &error) != STATUS_OK) {
            _exit(99);
        }
        config.store->ops->close(config.store);
        _exit(0);
    }
    int how = 0;
    CHECK(waitpid(pid, &how, 0) == pid);
    return how;
}

/* The object world, one tick of which takes longer than a planner may. */
static struct world_ops slow_ops;

static void slow_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    static bool slept;
    const struct timespec nap = {2 * STUCK_MS / 1000, 2 * STUCK_MS % 1000 * 1000000};
    if (!slept) {
        nanosleep(&nap, NULL);
    }
    slept = true;
    world_object_ops.step(world, actions, active);
}

static const struct world_ops *slow_world_for_tier(enum tier tier)
{
    slow_ops = world_object_ops;
    slow_ops.step = slow_step;
    return tier == TIER_OBJECT ? &slow_ops : world_ops_for_tier(tier);
}

/* Time that a world takes is not the planner's: the watchdog looks at its calls alone. */
static void a_slow_world_is_no_hanging_plugin(void)
{
    struct shop shop;
    struct order order;
    struct error error;
    char path[256];
    shop_open(&shop, 0);
    send(&shop, &order, smoke, order_options(MOODY, 0));
    shop_path(&shop, "jobs.db", path);
    shop.store->ops->close(shop.store);
    int how = one_life(path, 0, STDERR_FILENO, slow_world_for_tier);
    EXPECT(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    const struct store_config config = {.backoff_ms = 1};
    EXPECT_OK(store_sqlite_open(path, &config, &shop.store, &error), error);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
    order_finish(&order);
    shop_close(&shop);
}

/* A plugin that never returns from one scenario: the watchdog ends the worker and says why; after
 * two shared losses jobs run alone, three losses more and the guilty one is dead, all others done.
 */
static void a_hanging_plugin_costs_one_job(void)
{
    struct shop shop;
    struct order order;
    struct store_job dead;
    struct error error;
    char path[256];
    char log_path[256];
    uint32_t count = 0;
    int lives = 0;
    int how;
    shop_open(&shop, 0);
    send(&shop, &order, smoke, order_options("plugin:" PLUGIN_MOODY "?hang,20,following", 0));
    shop_path(&shop, "jobs.db", path);
    shop_write(&shop, "log", "", log_path);
    FILE *log = fopen(log_path, "r+");
    CHECK(log != NULL);
    do {
        char id[LIMIT_ID_BYTES];
        shop.store->ops->close(shop.store);
        how = one_life(path, lives, fileno(log), NULL);
        const struct store_config config = {.backoff_ms = 1};
        EXPECT_OK(store_sqlite_open(path, &config, &shop.store, &error), error);
        snprintf(id, sizeof id, "life-%d", lives++);
        EXPECT_OK(shop.store->ops->worker_gone(shop.store, id, &error), error);
        EXPECT(WIFEXITED(how) && (WEXITSTATUS(how) == 6 || WEXITSTATUS(how) == 0));
    } while (WEXITSTATUS(how) == 6 && lives < 50);
    EXPECT_INT(lives, 6); /* five that were lost, and one that finds the rest */
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DEAD], 1);
    EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count - 1);
    EXPECT_OK(shop.store->ops->dead_jobs(shop.store, order.submission.suite_id, 0, &dead, 1, &count,
                                         &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(dead.spec.scenario_id, "following");
    EXPECT_CONTAINS(dead.error, "5 workers vanished");
    char line[1024] = "";
    rewind(log); /* the lives wrote through the same offset */
    EXPECT(fgets(line, sizeof line, log) == line);
    EXPECT_CONTAINS(line, "hang,20,following has not returned for");
    fclose(log);
    order_finish(&order);
    shop_close(&shop);
}

int main(void)
{
    return TEST_RUN(
        TEST(a_lost_answer_costs_nothing), TEST(a_suite_is_done_with_all_its_outcomes),
        TEST(a_job_that_lies_harms_nobody), TEST(a_job_of_another_revision_waits),
        TEST(a_flagged_job_is_dead_with_its_evidence), TEST(a_planner_that_changed_does_not_drive),
        TEST(a_rig_is_the_jobs_own_fault), TEST(a_planner_that_raises_leaves_its_traceback),
        TEST(what_fails_is_tried_again_and_then_dead), TEST(a_drain_waits_for_those_who_have_gone),
        TEST(a_drain_ends_beside_the_living), TEST(a_planner_that_does_not_start_is_left_to_others),
        TEST(a_start_keeps_nobody_waiting), TEST(a_world_that_is_missing_is_left_to_others),
        TEST(a_full_batch_meets_finished_jobs), TEST(a_refusing_world_fails_the_job_only),
        TEST(many_planners_take_turns), TEST(an_empty_claim_is_not_repeated_each_tick),
        TEST(a_stolen_job_is_stale_and_ends_once), TEST(a_lost_lease_hands_the_jobs_back),
        TEST(a_stop_releases_what_runs), TEST(what_ends_within_the_grace_is_reported),
        TEST(a_full_disk_charges_no_attempt), TEST(a_vanished_artifact_costs_one_attempt),
        TEST(a_silent_store_costs_nothing), TEST(a_silence_that_lasts_ends_the_worker),
        TEST(a_store_that_takes_nothing_ends_the_worker),
        TEST(cancelling_in_the_store_stops_the_rollouts), TEST(a_slow_world_is_no_hanging_plugin),
        TEST(a_hanging_plugin_costs_one_job));
}
