/*
 * The store in SQL: opening on a medium, closing, and who may use which connection when. The medium
 * opens its database, then the writer thread begins. Close goes the other way; it waits for the
 * calls in progress.
 */
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include "base/check.h"
#include "base/units.h"
#include "store/sql/models.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LEASE_TTL_MS = 15000,
    BACKOFF_MS = 1000,
    BILL_SLACK_MS = 100,
    PLANNER_HOSTS = 2,  /* see store_config */
    LOOK_MS_MAX = 2000, /* a single answer to those who only read */
};

/* ---- calls in progress ---- */

enum status sql_store_enter(struct sql_store *store, struct error *error)
{
    enum status status = STATUS_OK;

    pthread_mutex_lock(&store->mutex);
    if (store->closing) {
        status = error_set(error, STATUS_CANCELLED, "the store is being closed");
    } else {
        store->calls++;
    }
    pthread_mutex_unlock(&store->mutex);
    return status;
}

void sql_store_leave(struct sql_store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->calls--;
    if (store->closing && store->calls == 0) {
        pthread_cond_broadcast(&store->changed);
    }
    pthread_mutex_unlock(&store->mutex);
}

bool sql_store_await(struct sql_store *store, int64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = SQL_STORE_AWAY_PAUSE_MS * NS_PER_MS};

    nanosleep(&pause, NULL);
    pthread_mutex_lock(&store->mutex);
    bool closing = store->closing;
    pthread_mutex_unlock(&store->mutex);
    return !closing && clock_now_ns(clock_system()) < until_ns;
}

/* An operation, and how it bears others beside it. */
struct store_run {
    bool beside;
    bool takes;
    uint32_t jobs;
    group_operation run;
    group_operation finish;
};

static enum status run_once(struct sql_store *store, const struct store_run *how, void *context,
                            struct error *error)
{
    return how->beside ? group_commit_run_beside(store->group, how->run, how->finish, how->takes,
                                                 how->jobs, context, error)
                       : group_commit_run(store->group, how->run, context, error);
}

static enum status run_until(struct sql_store *store, const struct store_run *how, void *context,
                             struct error *error)
{
    int64_t until_ns = clock_now_ns(clock_system()) + SQL_STORE_AWAY_MS_MAX * NS_PER_MS;
    enum status status = run_once(store, how, context, error);

    while (status == STATUS_BUSY && store->medium->peers != NULL &&
           sql_store_await(store, until_ns)) {
        status = run_once(store, how, context, error);
    }
    return status;
}

enum status sql_store_run(struct sql_store *store, group_operation run, void *context,
                          struct error *error)
{
    const struct store_run how = {.run = run};
    return run_until(store, &how, context, error);
}

enum status sql_store_run_beside(struct sql_store *store, group_operation run,
                                 group_operation finish, bool takes, uint32_t jobs, void *context,
                                 struct error *error)
{
    const struct store_run how = {
        .beside = true, .takes = takes, .jobs = jobs, .run = run, .finish = finish};
    return run_until(store, &how, context, error);
}

enum status sql_store_write(struct sql_store *store, group_operation run, void *context,
                            struct error *error)
{
    enum status status = sql_store_enter(store, error);

    if (status == STATUS_OK) {
        status = sql_store_run(store, run, context, error);
        sql_store_leave(store);
    }
    return status;
}

/* ---- readers ---- */

static int free_reader(const struct sql_readers *readers)
{
    for (int i = 0; i < STORE_READERS; i++) {
        if (!readers->busy[i]) {
            return i;
        }
    }
    return -1;
}

/* Opens the reader where it is not yet, and begins a read on it. */
static enum status begin_read(struct sql_store *store, enum sql_lane lane, struct db **reader,
                              struct error *error)
{
    if (*reader == NULL) {
        TRY(store->medium->open_reader(store, reader, error));
    }
    if (lane == SQL_LANE_READ) {
        db_limit(*reader, LOOK_MS_MAX);
    }
    return query_simple(*reader, STATEMENT_READ_BEGIN, error);
}

/* The connection is of no use any more. */
static void drop_reader(struct sql_store *store, struct db **kept, struct db **reader)
{
    pthread_mutex_lock(&store->mutex);
    *kept = NULL; /* whoever interrupts readers looks here */
    pthread_mutex_unlock(&store->mutex);
    db_close(*reader);
    *reader = NULL;
}

enum status sql_store_read_begin(struct store *base, struct db **db, struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    enum sql_lane lane = ((struct sql_backend *)base)->lane;
    struct sql_readers *readers = &store->readers[lane];
    TRY(sql_store_enter(store, error));
    enum status status =
        store->medium->intact != NULL ? store->medium->intact(store, 0, error) : STATUS_OK;
    if (status != STATUS_OK) {
        sql_store_leave(store);
        return status;
    }
    pthread_mutex_lock(&store->mutex);
    int index = free_reader(readers);
    while (index < 0) {
        pthread_cond_wait(&store->changed, &store->mutex);
        index = free_reader(readers);
    }
    readers->busy[index] = true;
    struct db *reader = readers->db[index];
    pthread_mutex_unlock(&store->mutex);
    status = begin_read(store, lane, &reader, error);
    int64_t until_ns = clock_now_ns(clock_system()) + SQL_STORE_AWAY_MS_MAX * NS_PER_MS;
    while (status == STATUS_BUSY && store->medium->peers != NULL &&
           sql_store_await(store, until_ns)) {
        drop_reader(store, &readers->db[index], &reader);
        status = begin_read(store, lane, &reader, error);
    }
    /* Others look through the table when they end their reads. */
    pthread_mutex_lock(&store->mutex);
    readers->db[index] = reader;
    if (status != STATUS_OK) {
        readers->busy[index] = false;
        pthread_cond_broadcast(&store->changed);
    }
    pthread_mutex_unlock(&store->mutex);
    if (status != STATUS_OK) {
        sql_store_leave(store);
        return status;
    }
    *db = reader;
    return STATUS_OK;
}

void sql_store_read_end(struct sql_store *store, struct db *db)
{
    struct error error;
    db_limit(db, 0);
    bool ended = query_simple(db, STATEMENT_COMMIT, &error) == STATUS_OK;

    if (!ended) {
        log_event(store->logger, LOG_WARNING, "end of a read: %s", error.text);
    }
    pthread_mutex_lock(&store->mutex);
    for (int i = 0; i < SQL_LANE_COUNT * STORE_READERS; i++) {
        struct sql_readers *readers = &store->readers[i / STORE_READERS];
        if (readers->db[i % STORE_READERS] == db) {
            readers->busy[i % STORE_READERS] = false;
            readers->db[i % STORE_READERS] = ended ? db : NULL;
        }
    }
    if (!ended) { /* it would go on seeing the past, and keep the log from being reset */
        db_close(db);
    }
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->mutex);
    sql_store_leave(store);
}

static struct store *reading(struct store *base)
{
    return &sql_store_of(base)->backends[SQL_LANE_READ].store;
}

static void reading_end(struct store *base)
{
    struct sql_store *store = sql_store_of(base);
    struct sql_readers *readers = &store->readers[SQL_LANE_READ];

    pthread_mutex_lock(&store->mutex);
    for (int i = 0; i < STORE_READERS; i++) {
        if (readers->busy[i] && readers->db[i] != NULL) {
            db_interrupt(readers->db[i]);
        }
    }
    pthread_mutex_unlock(&store->mutex);
}

/* ---- the writer's hooks ---- */

void sql_store_wake(struct sql_store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->ready_generation++;
    store->ready_ns = clock_now_ns(store->clock);
    pthread_cond_broadcast(&store->ready);
    pthread_mutex_unlock(&store->mutex);
}

static void on_commit(void *context)
{
    struct sql_store *store = context;

    if (store->made_ready) {
        store->made_ready = false;
        sql_store_wake(store);
    }
}

/* Processes whose claims wait are told of jobs with the commit that makes them claimable. */
static enum status before_commit(struct db *db, void *context, struct error *error)
{
    const struct sql_store *store = context;
    return store->made_ready ? store->medium->peers->announce(db, error) : STATUS_OK;
}

/* ---- the table ---- */

static enum status put_artifact(struct store *base, const void *data, size_t bytes,
                                char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    enum status status = sql_store_enter(store, error);

    if (status == STATUS_OK) {
        status = artifacts_put(&store->artifacts, data, bytes, hash, error);
        sql_store_leave(store);
    }
    return status;
}

static enum status get_artifact(struct store *base, const char *hash, void **data, size_t *bytes,
                                struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    enum status status = sql_store_enter(store, error);

    if (status == STATUS_OK) {
        status = artifacts_get(&store->artifacts, hash, data, bytes, error);
        sql_store_leave(store);
    }
    return status;
}

static enum status write_artifact(struct store *base, size_t bytes, bool packed,
                                  struct artifact_writer **out, struct error *error)
{
    return artifact_writer_open(&sql_store_of(base)->artifacts, bytes, packed, out, error);
}

static enum status read_artifact(struct store *base, const char *hash, bool *packed,
                                 struct artifact_reader **out, size_t *bytes, struct error *error)
{
    return artifact_reader_open(&sql_store_of(base)->artifacts, hash, packed, out, bytes, error);
}

static void finish(struct sql_store *store)
{
    group_commit_destroy(store->group);
    for (int i = 0; i < SQL_LANE_COUNT * STORE_READERS; i++) {
        db_close(store->readers[i / STORE_READERS].db[i % STORE_READERS]);
    }
    store->medium->finish(store);
    leases_finish(&store->leases);
    turns_finish(&store->turns);
    freezes_finish(&store->freezes);
    record_scenarios_finish(&store->scenarios);
    pthread_cond_destroy(&store->changed);
    pthread_cond_destroy(&store->ready);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

static void close_store(struct store *base)
{
    if (base == NULL) {
        return;
    }
    struct sql_store *store = sql_store_of(base);
    pthread_mutex_lock(&store->mutex);
    store->closing = true;
    pthread_cond_broadcast(&store->changed);
    pthread_cond_broadcast(&store->ready);
    while (store->calls > 0) {
        pthread_cond_wait(&store->changed, &store->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    finish(store);
}

static enum status scenario_put(struct store *base, const char *hash, const char *body,
                                size_t bytes, struct error *error)
{
    return lifecycle_scenario_put_as(base, "", hash, body, bytes, error);
}

static const struct store_ops store_sql_ops = {
    .name = "sqlite",
    .close = close_store,
    .scenario_put = scenario_put,
    .scenario_put_as = lifecycle_scenario_put_as,
    .scenario_get = sql_read_scenario,
    .submit = lifecycle_submit,
    .heartbeat = lease_heartbeat,
    .claim = claim_jobs,
    .complete = lifecycle_complete,
    .worker_gone = lease_worker_gone,
    .awaited = lease_awaited,
    .partials = sql_read_partials,
    .suite_status = sql_read_suite_status,
    .suites = sql_read_suites,
    .outcomes = sql_read_outcomes,
    .job = sql_read_job,
    .dead_jobs = sql_read_dead_jobs,
    .jobs_in_state = sql_read_jobs_in_state,
    .mains = mains_rows,
    .ledger = ledger_rows,
    .price_set = ledger_price_set,
    .price_get = ledger_price_get,
    .commits_lost = stats_commits_lost,
    .demand = stats_demand,
    .submit_as = lifecycle_submit_as,
    .tenants = tenants_page,
    .tenant_set = tenants_set,
    .suite_tenant = tenants_of_suite,
    .tenant_sessions = tenants_sessions,
    .scenarios_page = look_scenarios_page,
    .cancel = lifecycle_cancel,
    .redrive = redrive_author,
    .redrives = redrive_count,
    .model_add = models_add,
    .models = models_page,
    .model_event = models_event,
    .model_events = models_events_page,
    .trust_event = freezes_event,
    .trust_events = freezes_events_page,
    .golden_add = models_golden_add,
    .goldens = models_goldens,
    .golden_drop = models_golden_drop,
    .label_add = labels_add,
    .label_drop = labels_drop,
    .planner_keep = labels_planner_keep,
    .planner_kept = labels_planner_kept,
    .labels = labels_page,
    .artifact_put = put_artifact,
    .artifact_get = get_artifact,
    .claimable_wait = claim_claimable_wait,
    .worker_owner = stats_worker_owner,
    .outcomes_page = look_outcomes_page,
    .reading = reading,
    .reading_end = reading_end,
    .stats = stats_read,
    .suites_page = look_suites_page,
    .slices_page = look_slices_page,
    .workers_page = stats_workers_page,
    .audit_begin = audit_begin,
    .audit_end = audit_end,
    .audit_page = audit_page,
    .artifact_write = write_artifact,
    .artifact_read = read_artifact,
};

/* ---- open ---- */

static void configure(struct sql_store *store, const struct store_config *config)
{
    static const struct store_config none;

    config = config != NULL ? config : &none;
    store->clock = config->clock != NULL ? config->clock : clock_system();
    store->intent = config->intent;
    store->logger = config->logger;
    store->lease_ttl_ns =
        (config->lease_ttl_ms > 0 ? config->lease_ttl_ms : LEASE_TTL_MS) * NS_PER_MS;
    store->planner_hosts = config->planner_hosts > 0 ? config->planner_hosts : PLANNER_HOSTS;
    store->backoff_ns = (config->backoff_ms > 0 ? config->backoff_ms : BACKOFF_MS) * NS_PER_MS;
    store->bill_slack_ns =
        (config->bill_slack_ms > 0 ? config->bill_slack_ms : BILL_SLACK_MS) * NS_PER_MS;
}

enum status sql_store_open_medium(const struct store_medium *medium, void *context,
                                  const struct store_config *config, bool stepped,
                                  struct store **out, struct error *error)
{
    struct sql_store *store = calloc(1, sizeof *store);

    TRY(memory_check(store, error, "out of memory for a store"));
    store->medium = medium;
    store->medium_context = context;
    store->plain = &store_sql_ops;
    store->ops = store_sql_ops;
    store->ops.name = medium->name;
    if (medium->adapt != NULL) {
        medium->adapt(&store->ops);
    }
    for (int lane = 0; lane < SQL_LANE_COUNT; lane++) {
        store->backends[lane] = (struct sql_backend){
            .store = {&store->ops}, .owner = store, .lane = (enum sql_lane)lane};
    }
    configure(store, config);
    pthread_mutex_init(&store->mutex, NULL);
    clock_condition_init(&store->changed);
    clock_condition_init(&store->ready);
    struct group_commit_hooks hooks = {
        .context = store,
        .sweep = lease_sweep,
        .swept = lease_swept,
        .intact = medium->intact,
        .committing = medium->peers != NULL ? before_commit : NULL,
        .committed = on_commit,
        .stalled = lease_stalled,
        .checkpoint_pages = config != NULL ? config->checkpoint_pages : 0,
    };
    enum status status = medium->open(store, context, error);
    THEN(status, (stepped ? group_commit_create_stepped : group_commit_create)(
                     store->db, store->clock, store->logger, &hooks, &store->group, error));
    if (status != STATUS_OK) {
        finish(store);
        return status;
    }
    *out = &store->backends[SQL_LANE_WORK].store;
    return STATUS_OK;
}

void sql_store_tick(struct sql_store *store)
{
    group_commit_tick(store->group);
}
