/*
 * The embedded backend of the store: opening, closing, and who may use which connection when.
 *
 * Order at open: own the file, look at it without changing it (a newer schema or damage is left
 * alone), make what was found durable, switch to write-ahead logging, migrate, give leases and
 * backoffs a new start, then the writer thread. Close goes the other way; it waits for the calls in
 * progress.
 */
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include "base/check.h"
#include "base/units.h"
#include "store/api/store_path.h"
#include "store/log/log_renew.h"
#include "store/log/log_scan.h"
#include "store/sql/migrate.h"
#include "store/sql/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LEASE_TTL_MS = 15000,
    BACKOFF_MS = 1000,
    BILL_SLACK_MS = 100,
    PLANNER_HOSTS = 2, /* see store_config */
    CHECKED_BYTES_MAX = 64 << 20,
    LOG_HEADER_BYTES = 32,
    LOG_FRAME_BYTES = 24, /* in front of each page */
    ALONE_TRIES = 10,     /* whether others are connected to a database whose log was left */
    ALONE_PAUSE_MS = 10,  /* between two tries: they may just be leaving */
    LOOK_MS_MAX = 2000,   /* a single answer to those who only read */
    AWAY_MS_MAX = 30000,  /* that a database of others may be away, and the pauses between tries */
    AWAY_PAUSE_MS = 20,
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

/* False: it stays away, or the store is being closed. */
static bool await_database(struct sql_store *store, int64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = AWAY_PAUSE_MS * NS_PER_MS};

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
    group_operation run;
    group_operation finish;
};

static enum status run_once(struct sql_store *store, const struct store_run *how, void *context,
                            struct error *error)
{
    return how->beside ? group_commit_run_beside(store->group, how->run, how->finish, how->takes,
                                                 context, error)
                       : group_commit_run(store->group, how->run, context, error);
}

static enum status run_until(struct sql_store *store, const struct store_run *how, void *context,
                             struct error *error)
{
    int64_t until_ns = clock_now_ns(clock_system()) + AWAY_MS_MAX * NS_PER_MS;
    enum status status = run_once(store, how, context, error);

    while (status == STATUS_BUSY && store->medium->peers != NULL &&
           await_database(store, until_ns)) {
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
                                 group_operation finish, bool takes, void *context,
                                 struct error *error)
{
    const struct store_run how = {.beside = true, .takes = takes, .run = run, .finish = finish};
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
    int64_t until_ns = clock_now_ns(clock_system()) + AWAY_MS_MAX * NS_PER_MS;
    while (status == STATUS_BUSY && store->medium->peers != NULL &&
           await_database(store, until_ns)) {
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

static enum status intact(void *context, int log_pages, struct error *error)
{
    const struct sql_store *store = context;
    int64_t bytes =
        log_pages > 0 ? LOG_HEADER_BYTES + log_pages * (LOG_FRAME_BYTES + store->page_bytes) : 0;

    return ownership_check(store->ownership, bytes, error);
}

void sql_store_wake(struct sql_store *store)
{
    pthread_mutex_lock(&store->mutex);
    store->ready_generation++;
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

/* The file's connection comes last: it checkpoints. */
static void finish_file(struct sql_store *store)
{
    struct error error;

    if (store->db != NULL && ownership_check(store->ownership, 0, &error) != STATUS_OK) {
        log_event(store->logger, LOG_ERROR, "%s", error.text);
        sqlite_db_abandon(store->db); /* what lies at the path now is not ours */
    }
    db_close(store->db);
    ownership_release(store->ownership);
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
    free(store->claim_times.rows);
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
    .partials = sql_read_partials,
    .suite_status = sql_read_suite_status,
    .suites = sql_read_suites,
    .outcomes = sql_read_outcomes,
    .job = sql_read_job,
    .dead_jobs = sql_read_dead_jobs,
    .ledger = ledger_rows,
    .price_set = ledger_price_set,
    .price_get = ledger_price_get,
    .commits_lost = stats_commits_lost,
    .demand = stats_demand,
    .submit_as = lifecycle_submit_as,
    .tenants = tenants_page,
    .tenant_set = tenants_set,
    .suite_tenant = tenants_of_suite,
    .scenarios_page = look_scenarios_page,
    .cancel = lifecycle_cancel,
    .model_add = models_add,
    .models = models_page,
    .model_event = models_event,
    .model_events = models_events_page,
    .trust_event = freezes_event,
    .trust_events = freezes_events_page,
    .golden_add = models_golden_add,
    .goldens = models_goldens,
    .golden_drop = models_golden_drop,
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

/* The file is a store of this program's. Leaves it open, and as it was. */
static enum status look_at(struct sql_store *store, struct error *error)
{
    enum status status = sqlite_db_open(store->path, SQLITE_DB_WRITER, &store->db, error);
    return status == STATUS_OK ? migrate_check(store->db, store->path, error) : status;
}

/* Findings while a store is being opened. */
struct opening {
    struct log_scan log; /* what the log that was left holds, zeros without one */
    bool shared;         /* a log was left, and another program has it open */
};

/* The file is a whole store. Where its log is damaged, every index is compared, and the log is kept
 * before anything changes. */
static enum status check_whole(struct sql_store *store, struct db *db, const struct log_scan *log,
                               struct error *error)
{
    if (!log->in_doubt) {
        return sqlite_db_quick_check(db, error);
    }
    enum status status = sqlite_db_check(db, error);
    return status == STATUS_OK ? log_keep(store->path, error) : status;
}

/* Looks at a file with a log that was left, and renews the log when nobody else is connected. */
static enum status renew(struct sql_store *store, struct opening *opening, struct error *error)
{
    struct db *db = NULL;
    enum status status = sqlite_db_open(store->path, SQLITE_DB_ALONE, &db, error);

    opening->shared = status == STATUS_BUSY;
    if (status != STATUS_OK) {
        return status == STATUS_BUSY ? STATUS_OK : status;
    }
    status = migrate_check(db, store->path, error);
    THEN(status, log_scan(store->path, ownership_file(store->ownership), &opening->log, error));
    if (status == STATUS_OK) { /* only a file that is known to be a whole store is changed */
        status = check_whole(store, db, &opening->log, error);
    }
    THEN(status, log_renew(store->path, opening->log.bytes, error));
    db_close(db);
    return status;
}

static enum status renew_when_alone(struct sql_store *store, struct opening *opening,
                                    struct error *error)
{
    const struct timespec pause = {.tv_nsec = ALONE_PAUSE_MS * NS_PER_MS};
    enum status status = renew(store, opening, error);

    for (int i = 1; i < ALONE_TRIES && status == STATUS_OK && opening->shared; i++) {
        nanosleep(&pause, NULL);
        status = renew(store, opening, error);
    }
    return status;
}

/* Opens the file and looks at it: whole where it was not closed cleanly (a log was left) or is so
 * small that this takes a few hundred milliseconds at most. */
static enum status open_checked(struct sql_store *store, struct opening *opening,
                                struct error *error)
{
    struct stat info;
    bool left = log_left(store->path);
    bool check =
        stat(store->path, &info) == 0 && info.st_size > 0 && info.st_size < CHECKED_BYTES_MAX;

    if (left) {
        TRY(renew_when_alone(store, opening, error));
    }
    TRY(look_at(store, error));
    if (opening->shared) {
        TRY(log_scan(store->path, ownership_file(store->ownership), &opening->log, error));
    }
    if (opening->shared || (check && !left)) {
        TRY(check_whole(store, store->db, &opening->log, error));
    }
    return STATUS_OK;
}

/* A log that could not be renewed is copied into the database, so that it begins anew. */
static enum status begin_anew(struct sql_store *store, struct error *error)
{
    log_event(store->logger, LOG_WARNING,
              "%s: another program has the database open, so the log that was left is copied into "
              "it instead of being renewed",
              store->path);
    return db_checkpoint(store->db, error);
}

/* The loss by a damaged log is said to whoever opens the store, and kept in it. */
static enum status note_losses(struct sql_store *store, const struct log_scan *log,
                               struct error *error)
{
    char text[512];

    if (!log_scan_sentence(log, text)) {
        return STATUS_OK;
    }
    log_event(store->logger, LOG_ERROR, "%.300s: %s. The log was kept as %.100s-wal-damaged",
              store->path, text, strrchr(store->path, '/') + 1);
    struct query query = query_begin(store->db, STATEMENT_LOG_LOSS_ADD);
    query_int(&query, log->discarded);
    query_int(&query, log->discarded_commits);
    query_int(&query, log->lost_commits);
    return query_run(&query, error);
}

static enum status open_database(struct sql_store *store, struct error *error)
{
    struct opening opening = {.shared = false};
    enum status status = open_checked(store, &opening, error);

    THEN(status, sqlite_db_use_wal(store->db, error));
    if (status == STATUS_OK && opening.shared) {
        status = begin_anew(store, error);
    }
    THEN(status, migrate_apply(store->db, store->path, store->logger, error));
    THEN(status, note_losses(store, &opening.log, error));
    THEN(status, artifacts_open(store->path, &store->artifacts, error));
    THEN(status, lease_restart(store, error));
    THEN(status, sqlite_db_scalar(store->db, "PRAGMA page_size", &store->page_bytes, error));
    return status == STATUS_OK ? ownership_watch(store->ownership, error) : status;
}

/* The file belongs to this process from here on. */
static enum status own(struct sql_store *store, const char *path, struct error *error)
{
    char shm[LIMIT_PATH_BYTES + 8];
    struct stat info;
    TRY(store_path_resolve(path, store->path, error));
    TRY(store->intent != STORE_MAKE ? store_path_check(store->path, error) : STATUS_OK);
    TRY(ownership_take(store->path, &store->ownership, error));
    if (stat(store->path, &info) == 0 && info.st_size == 0) {
        /* A new file; shared memory at its name is of one that was removed, whose owner may live.
         */
        snprintf(shm, sizeof shm, "%s-shm", store->path);
        unlink(shm);
    }
    return STATUS_OK;
}

static enum status open_file(struct sql_store *store, void *path, struct error *error)
{
    enum status status = own(store, path, error);
    return status == STATUS_OK ? open_database(store, error) : status;
}

static enum status open_file_reader(struct sql_store *store, struct db **out, struct error *error)
{
    return sqlite_db_open(store->path, SQLITE_DB_READER, out, error);
}

static const struct store_medium file_medium = {
    .name = "sqlite",
    .open = open_file,
    .open_reader = open_file_reader,
    .intact = intact,
    .finish = finish_file,
};

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
    pthread_condattr_t monotonic;
    struct sql_store *store = calloc(1, sizeof *store);

    TRY(memory_check(store, error, "out of memory for a store"));
    store->medium = medium;
    store->medium_context = context;
    store->ops = store_sql_ops;
    store->ops.name = medium->name;
    for (int lane = 0; lane < SQL_LANE_COUNT; lane++) {
        store->backends[lane] = (struct sql_backend){
            .store = {&store->ops}, .owner = store, .lane = (enum sql_lane)lane};
    }
    configure(store, config);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->changed, &monotonic);
    pthread_cond_init(&store->ready, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    store->claim_times.rows =
        calloc(CLAIM_TIME_BUCKETS * CLAIM_TIME_WAYS, sizeof *store->claim_times.rows);
    enum status status = memory_check(store->claim_times.rows, error, "out of memory for a store");
    THEN(status, medium->open(store, context, error));
    THEN(status, (stepped ? group_commit_create_stepped : group_commit_create)(
                     store->db, store->clock, store->logger, &hooks, &store->group, error));
    if (status != STATUS_OK) {
        finish(store);
        return status;
    }
    *out = &store->backends[SQL_LANE_WORK].store;
    return STATUS_OK;
}

/* The path is only borrowed while opening. */
static enum status open_path(const char *path, const struct store_config *config, bool stepped,
                             struct store **out, struct error *error)
{
    size_t path_bytes = strlen(path);

    if (path_bytes == 0 || path_bytes >= LIMIT_PATH_BYTES - 32) {
        return error_set(error, STATUS_LIMIT, "the store's path must have 1 to %d bytes",
                         LIMIT_PATH_BYTES - 33);
    }
    return sql_store_open_medium(&file_medium, (void *)(uintptr_t)path, config, stepped, out,
                                 error);
}

enum status store_sqlite_open(const char *path, const struct store_config *config,
                              struct store **out, struct error *error)
{
    return open_path(path, config, false, out, error);
}

enum status sql_store_open_stepped(const char *path, const struct store_config *config,
                                   struct store **out, struct error *error)
{
    return open_path(path, config, true, out, error);
}

void sql_store_tick(struct sql_store *store)
{
    group_commit_tick(store->group);
}
