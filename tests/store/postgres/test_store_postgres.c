/*
 * The store in PostgreSQL, what the conformance suite does not see: texts and plans of statements,
 * URLs, several processes on one database, and a server that is killed.
 *
 * Method: one server of the test's own (postgres_site.h) for all cases. "Processes" are stores that
 * this process opens beside one another: they share nothing but the database. Nothing is timed:
 * time is simulated where leases end, and the server is killed by how much has been done.
 */
#include "tests/harness.h"

#include "base/check.h"
#include "base/units.h"
#include "store/artifacts/artifacts.h"
#include "store/postgres/dialect.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_store.h"
#include "tests/store/manual_clock.h"
#include "tests/store/postgres/postgres_site.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    PEERS = 2,
    WORKERS = 4,
    JOBS = 240,
    BATCH = 4,
    KILL_EVERY = 40, /* completed jobs */
    PARAMETERS_MAX = 64,
    TTL_MS = 15000,
};

static struct postgres_site site;
static struct error error;
static int serial;

static void fresh_url(char *url, int bytes)
{
    EXPECT(postgres_site_schema(&site, ++serial, url, bytes));
}

static struct store *open_at(const char *url, const struct store_config *config)
{
    struct store *store = NULL;
    EXPECT_OK(postgres_store_open(url, config, &store, &error), error);
    return store;
}

/* ---- statements ---- */

/* Tables that are read as a whole: they hold a row per pool, model or what was never told from. */
static bool reads_whole(enum statement statement)
{
    switch ((int)statement) {
    case STATEMENT_CHECK_SUITES:
    case STATEMENT_CHECK_OUTCOMES:
    case STATEMENT_CHECK_PARTIALS:
    case STATEMENT_CHECK_MEMOS:
    case STATEMENT_CHECK_ATTEMPTS:
    case STATEMENT_CHECK_ACCOUNTS:
    case STATEMENT_CHECK_SCENARIOS:
    case STATEMENT_CHECK_MODELS:
    case STATEMENT_CHECK_MODEL_EVENTS:
    case STATEMENT_LOG_LOST: /* one row per damaged log, which PostgreSQL's stores do not have */
        return true;
    default:
        return false;
    }
}

static int parameters_of(const char *text)
{
    int most = 0;

    for (const char *at = strchr(text, '$'); at != NULL; at = strchr(at + 1, '$')) {
        int number = atoi(at + 1);
        most = number > most ? number : most;
    }
    return most;
}

/* Prepares the statement, and looks for tables that no index narrows down in its plan. */
static void explain(const char *url, enum statement statement)
{
    static char sql[16384];
    static char explained[512];
    char line[512];
    struct db *db = NULL;
    char *text = dialect_statement(statement);

    EXPECT(text != NULL);
    snprintf(
        sql, sizeof sql,
        "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE one AS %s",
        text);
    int parameters = parameters_of(text);
    free(text);
    EXPECT_OK(postgres_db_open(url, NULL, &db, &error), error);
    enum status status = postgres_db_script(db, sql, &error);
    int bytes = snprintf(explained, sizeof explained, "EXPLAIN (COSTS OFF) EXECUTE one%s",
                         parameters > 0 ? "(" : "");
    for (int i = 0; i < parameters; i++) {
        bytes += snprintf(explained + bytes, sizeof explained - (size_t)bytes, "NULL%s",
                          i + 1 < parameters ? "," : ")");
    }
    if (status != STATUS_OK) {
        db_close(db);
        TEST_FAIL("%s\n# %s", error.text, sql);
    }
    bool whole = false;
    struct query query = query_begin_sql(db, explained);
    while (query_row(&query)) {
        query_column_text(&query, 0, line, sizeof line);
        whole |= strstr(line, "Seq Scan") != NULL;
    }
    status = query_end(&query, &error);
    db_close(db);
    EXPECT_OK(status, error);
    if (whole && !reads_whole(statement)) {
        TEST_FAIL("reads a whole table: %s", sql);
    }
}

/* Goal: PostgreSQL understands every statement, and answers it by an index. */
static void statements_have_indexes(void)
{
    char url[512];
    char plain[512];

    fresh_url(url, sizeof url);
    struct store *store = open_at(url, NULL);
    store->ops->close(store);
    snprintf(plain, sizeof plain, "%.*s", (int)(strstr(url, "&artifacts") - url), url);
    for (int i = STATEMENT_READ_BEGIN + 1; i < STATEMENT_COUNT; i++) {
        if (!dialect_lacks((enum statement)i)) {
            explain(plain, (enum statement)i);
        }
    }
}

/* ---- URLs ---- */

/* Goal: no password on a command line, and none in a sentence; what is missing is said. */
static void urls_are_checked(void)
{
    static const struct {
        const char *url;
        enum status status;
        const char *says;
    } cases[] = {
        {"postgresql://me:secret@/a?host=/nowhere", STATUS_USAGE, "pgpass"},
        {"postgresql:///a?password=secret&host=/nowhere", STATUS_USAGE, "pgpass"},
        {"postgresql:///a?host=/nowhere&secret=1", STATUS_USAGE, "libpq cannot read"},
        {"postgresql:///a?artifacts=/tmp&host=/nowhere", STATUS_BUSY, "does not answer"},
    };
    char url[512];
    char plain[512];
    struct store *store = NULL;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT_INT(postgres_store_open(cases[i].url, NULL, &store, &error), cases[i].status);
        EXPECT_CONTAINS(error.text, cases[i].says);
        EXPECT(strstr(error.text, "secret") == NULL);
    }
    fresh_url(url, sizeof url);
    snprintf(plain, sizeof plain, "%.*s", (int)(strstr(url, "&artifacts") - url), url);
    EXPECT_INT(postgres_store_open(plain, NULL, &store, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, "artifacts=");
    store = open_at(url, NULL);
    store->ops->close(store);
    store = open_at(plain, NULL); /* the database says it from now on */
    store->ops->close(store);
    snprintf(plain + strlen(plain), sizeof plain - strlen(plain), "&artifacts=/elsewhere");
    EXPECT_INT(postgres_store_open(plain, NULL, &store, &error), STATUS_CONFLICT);
}

/* ---- connections ---- */

struct waiter {
    struct postgres_clock clock;
    struct db *db;
    struct error error;
    enum status status;
    int64_t then_ns; /* when its turn came, by the database's clock */
    atomic_bool done;
};

static void *wait_for_turn(void *context)
{
    struct waiter *waiter = context;

    waiter->status = query_simple(waiter->db, STATEMENT_BEGIN, &waiter->error);
    waiter->then_ns = clock_now_ns(&waiter->clock.clock);
    THEN(waiter->status, query_simple(waiter->db, STATEMENT_COMMIT, &waiter->error));
    atomic_store(&waiter->done, true);
    return NULL;
}

static int64_t count_waiting(struct db *db)
{
    struct query query = query_begin_sql(
        db, "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
    int64_t count = query_row(&query) ? query_column_int(&query, 0) : 0;

    EXPECT_OK(query_end(&query, &error), error);
    return count;
}

/* Goal: a writer that has waited for its turn reads the time of its turn, not the one at which it
 * began to wait: what it bills, and when its leases end, would be that much too early. */
static void who_waits_has_the_time_of_his_turn(void)
{
    static struct waiter second;
    struct postgres_clock clock;
    struct db *first = NULL;
    struct db *looker = NULL;
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    pthread_t thread;
    char url[512];

    fresh_url(url, sizeof url);
    *strstr(url, "&artifacts") = '\0';
    postgres_clock_init(&clock);
    postgres_clock_init(&second.clock);
    EXPECT_OK(postgres_db_open(url, NULL, &looker, &error), error);
    EXPECT_OK(postgres_db_open(url, &clock, &first, &error), error);
    EXPECT_OK(postgres_db_open(url, &second.clock, &second.db, &error), error);
    EXPECT_OK(query_simple(first, STATEMENT_BEGIN, &error), error);
    EXPECT_INT(pthread_create(&thread, NULL, wait_for_turn, &second), 0);
    while (count_waiting(looker) == 0 && !atomic_load(&second.done)) {
        nanosleep(&pause, NULL);
    }
    int64_t before_ns = clock_now_ns(&clock.clock);
    EXPECT_OK(query_simple(first, STATEMENT_COMMIT, &error), error);
    pthread_join(thread, NULL);
    EXPECT_OK(second.status, second.error);
    EXPECT(second.then_ns >= before_ns);
    db_close(second.db);
    db_close(first);
    db_close(looker);
}

static void expect_setting(struct db *db, const char *sql, const char *value)
{
    char found[64] = "";
    struct query query = query_begin_sql(db, sql);

    if (query_row(&query)) {
        query_column_text(&query, 0, found, sizeof found);
    }
    EXPECT_OK(query_end(&query, &error), error);
    EXPECT_TEXT(found, value);
}

/* Goal: what a site has chosen for its own transactions does not change ours: a writer must see
 * what was committed while it waited for its turn. */
static void defaults_of_a_site_do_not_count(void)
{
    static const char defaults[] = "%20-cdefault_transaction_isolation%3Dserializable"
                                   "%20-cdefault_transaction_read_only%3Don";
    struct postgres_clock clock;
    struct db *db = NULL;
    char url[512];
    char given[768];

    fresh_url(url, sizeof url);
    int head = (int)(strstr(url, "&artifacts") - url);
    snprintf(given, sizeof given, "%.*s%s%s", head, url, defaults, url + head);
    struct store *store = open_at(given, NULL);
    store->ops->close(store);
    given[(size_t)head + sizeof defaults - 1] = '\0';
    postgres_clock_init(&clock);
    EXPECT_OK(postgres_db_open(given, &clock, &db, &error), error);
    EXPECT_OK(query_simple(db, STATEMENT_BEGIN, &error), error);
    expect_setting(db, "SELECT current_setting('transaction_isolation')", "read committed");
    expect_setting(db, "SELECT current_setting('transaction_read_only')", "off");
    EXPECT_OK(query_simple(db, STATEMENT_COMMIT, &error), error);
    db_close(db);
}

/* Goal: a reader whose connection is lost is not connected anew below the thread that may interrupt
 * it; the store drops it. */
static void a_limit_makes_no_connection(void)
{
    struct db *db = NULL;
    char url[512];

    fresh_url(url, sizeof url);
    *strstr(url, "&artifacts") = '\0';
    EXPECT_OK(postgres_db_open(url, NULL, &db, &error), error);
    db_limit(db, 60000);
    EXPECT_OK(query_simple(db, STATEMENT_READ_BEGIN, &error), error);
    postgres_site_kill(&site);
    EXPECT(postgres_site_start(&site));
    struct query query = query_begin_sql(db, "SELECT 1");
    EXPECT(!query_row(&query));
    EXPECT_INT(query_end(&query, &error), STATUS_BUSY);
    db_limit(db, 0);
    EXPECT_INT(postgres_db_connection(db), 1);
    EXPECT_INT(query_simple(db, STATEMENT_COMMIT, &error), STATUS_BUSY);
    db_close(db);
}

/* ---- jobs ---- */

static void submit(struct store *store, uint32_t count)
{
    static const char body[] = "{\"id\":\"a\"}";
    static struct job_spec specs[JOBS];
    static struct store_submit_result results[JOBS];
    char hash[SHA256_HEX_BYTES];

    sha256_hex(body, sizeof body - 1, hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, body, sizeof body - 1, &error), error);
    memset(specs, 0, sizeof specs);
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &specs[i];
        snprintf(spec->key, sizeof spec->key, "k-%" PRIu32, i);
        snprintf(spec->suite_id, sizeof spec->suite_id, "suite");
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%" PRIu32, i);
        memcpy(spec->scenario_hash, hash, sizeof hash);
        strcpy(spec->planner, "builtin:reference");
        strcpy(spec->planner_hash, "p");
        strcpy(spec->pool, "bulk");
        strcpy(spec->backend, "cpu");
        strcpy(spec->revision, "r");
        spec->tier = TIER_OBJECT;
        spec->seed = i;
        spec->rollout_count = 1;
        spec->attempts_max = 3;
    }
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, count, results, &error), error);
}

static struct store_worker worker_named(const char *name)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", name);
    return worker;
}

static void fill_done(struct job_completion *completion, struct outcome *outcome,
                      const struct job_lease *lease, const char *worker_id)
{
    memset(completion, 0, sizeof *completion);
    memset(outcome, 0, sizeof *outcome);
    completion->job_id = lease->job_id;
    completion->epoch = lease->epoch;
    completion->kind = COMPLETION_DONE;
    completion->device_ns = NS_PER_MS;
    completion->outcomes = outcome;
    completion->outcome_count = 1;
    snprintf(completion->worker_id, sizeof completion->worker_id, "%s", worker_id);
    memcpy(outcome->scenario_id, lease->spec.scenario_id, sizeof outcome->scenario_id);
    memcpy(outcome->scenario_hash, lease->spec.scenario_hash, sizeof outcome->scenario_hash);
    memcpy(outcome->planner, lease->spec.planner, sizeof outcome->planner);
    memcpy(outcome->planner_hash, lease->spec.planner_hash, sizeof outcome->planner_hash);
    memcpy(outcome->pool, lease->spec.pool, sizeof outcome->pool);
    memcpy(outcome->backend, lease->spec.backend, sizeof outcome->backend);
    memcpy(outcome->revision, lease->spec.revision, sizeof outcome->revision);
    outcome->tier = lease->spec.tier;
    outcome->seed = lease->spec.seed;
    outcome->ticks = 1;
    outcome->metres_mm = 1000;
}

static int64_t attempts_ended(struct store *store, const char *end)
{
    struct store_ledger_row rows[16];
    uint32_t count = 0;
    int64_t attempts = 0;

    EXPECT_OK(store->ops->ledger(store, "suite", rows, 16, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        attempts += strcmp(rows[i].end, end) == 0 ? rows[i].totals.attempts : 0;
    }
    return attempts;
}

/* ---- several processes ---- */

/* Goal: time limits that a site has set for every connection do not end a writer's wait for its
 * turn, and what is acknowledged is on the disk. */
static void limits_of_a_site_do_not_count(void)
{
    static const struct {
        const char *name;
        const char *value;
    } expected[] = {
        {"statement_timeout", "0"}, {"lock_timeout", "0"}, {"synchronous_commit", "on"}};
    char url[1024];
    char sql[COUNT_OF(expected)][128];
    char found[64];
    struct db *db = NULL;

    fresh_url(url, sizeof url);
    snprintf(strstr(url, "&artifacts"), 300, "%s",
             "%20-cstatement_timeout%3D5000%20-clock_timeout%3D3000%20-csynchronous_commit%3Doff");
    EXPECT_OK(postgres_db_open(url, NULL, &db, &error), error);
    enum status status = query_simple(db, STATEMENT_BEGIN, &error);
    for (size_t i = 0; i < COUNT_OF(expected) && status == STATUS_OK; i++) {
        snprintf(sql[i], sizeof sql[i], "SELECT current_setting('%s')", expected[i].name);
        struct query query = query_begin_sql(db, sql[i]);
        if (query_row(&query)) {
            query_column_text(&query, 0, found, sizeof found);
        }
        status = query_end(&query, &error);
        if (status == STATUS_OK && strcmp(found, expected[i].value) != 0) {
            status = error_set(&error, STATUS_STORE, "%s is %s", expected[i].name, found);
        }
    }
    db_close(db);
    EXPECT_OK(status, error);
}

/* Goal: a process that opens the database leaves alone what another is writing. */
static void processes_share_artifacts(void)
{
    static const char trace[] = "a trace, which comes in two pieces";
    char url[512];
    char hash[SHA256_HEX_BYTES];
    struct artifact_writer *writer = NULL;
    void *data = NULL;
    size_t bytes = 0;

    fresh_url(url, sizeof url);
    sha256_hex(trace, sizeof trace - 1, hash);
    struct store *a = open_at(url, NULL);
    EXPECT_OK(a->ops->artifact_write(a, sizeof trace - 1, false, &writer, &error), error);
    EXPECT_OK(artifact_writer_write(writer, trace, 7, &error), error);
    struct store *b = open_at(url, NULL);
    EXPECT_OK(artifact_writer_write(writer, trace + 7, sizeof trace - 8, &error), error);
    EXPECT_OK(artifact_writer_finish(writer, hash, &error), error);
    EXPECT_OK(b->ops->artifact_get(b, hash, &data, &bytes, &error), error);
    bool same = bytes == sizeof trace - 1 && memcmp(data, trace, bytes) == 0;
    free(data);
    EXPECT(same);
    b->ops->close(b);
    a->ops->close(a);
}

static uint32_t claim_at(struct store *store, const char *name, int64_t *claim_id,
                         struct job_lease *leases, uint32_t max)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_named(name);

    EXPECT_OK(store->ops->claim(store, &worker, claim_id, max, 0, leases, &count, &ttl_ms, &error),
              error);
    return count;
}

static void heartbeat_at(struct store *store, const char *name)
{
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_named(name);

    EXPECT_OK(store->ops->heartbeat(store, &worker, NULL, 0, NULL, NULL, &ttl_ms, &error), error);
}

/* Goal: a worker may speak with any process, its lease is one; when the process that it spoke with
 * is gone with it, another ends its lease; what it completes after that is stale. */
static void processes_share_leases(void)
{
    char url[512];
    struct manual_clock clock;
    struct store_config config = {.clock = &clock.clock, .lease_ttl_ms = TTL_MS};
    static struct job_lease leases[8];
    static struct job_completion completion;
    static struct outcome outcome;
    struct store_completion_result result;
    int64_t claim_a = 1;
    int64_t claim_b = 1;

    fresh_url(url, sizeof url);
    manual_clock_init(&clock);
    struct store *a = open_at(url, &config);
    struct store *b = open_at(url, &config);
    submit(a, 3);
    EXPECT_INT(claim_at(a, "w", &claim_a, leases, 2), 2);
    struct job_lease first = leases[0];
    fill_done(&completion, &outcome, &leases[1], "w");
    EXPECT_OK(b->ops->complete(b, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_OK);
    /* Heard of by b alone: a does not end it. */
    for (int i = 0; i < 4; i++) {
        manual_clock_advance(&clock, TTL_MS / 2 * NS_PER_MS);
        heartbeat_at(b, "w");
        heartbeat_at(a, "other");
    }
    EXPECT_INT(attempts_ended(a, "lost"), 0);
    EXPECT_INT(claim_at(b, "v", &claim_b, leases, 8), 1);
    fill_done(&completion, &outcome, &leases[0], "v");
    EXPECT_OK(a->ops->complete(a, &completion, 1, &result, &error), error);
    /* The process that it spoke with goes, and so does it. */
    b->ops->close(b);
    manual_clock_advance(&clock, (TTL_MS + 1) * NS_PER_MS);
    EXPECT_INT(claim_at(a, "v", &claim_b, leases, 8), 1);
    EXPECT_INT(leases[0].job_id, first.job_id);
    EXPECT_INT(leases[0].epoch, first.epoch + 1);
    EXPECT_INT(attempts_ended(a, "lost"), 1);
    fill_done(&completion, &outcome, &first, "w");
    EXPECT_OK(a->ops->complete(a, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_STALE);
    a->ops->close(a);
}

/* ---- a server that is killed ---- */

static struct store *peers[PEERS];
static atomic_int completed;
static atomic_bool broken;

static bool work_once(struct store *store, const char *name, int64_t *claim_id)
{
    struct job_lease leases[BATCH];
    struct job_completion done[BATCH];
    struct outcome outcomes[BATCH];
    struct store_completion_result results[BATCH];
    struct store_worker worker = worker_named(name);
    struct error why;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    enum status status =
        store->ops->claim(store, &worker, claim_id, BATCH, 0, leases, &count, &ttl_ms, &why);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        fill_done(&done[i], &outcomes[i], &leases[i], name);
    }
    THEN(status, store->ops->complete(store, done, count, results, &why));
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = results[i].status;
    }
    if (status != STATUS_OK) {
        printf("# %s: %s\n", name, status == STATUS_STALE ? "a completion is stale" : why.text);
        atomic_store(&broken, true);
    }
    atomic_fetch_add(&completed, (int)count);
    return status == STATUS_OK && count > 0;
}

static void *work(void *context)
{
    int number = *(const int *)context;
    char name[16];
    int64_t claim_id = 1;

    snprintf(name, sizeof name, "worker-%d", number);
    while (work_once(peers[number % PEERS], name, &claim_id)) {
    }
    return NULL;
}

/* Kills the server whenever so many more jobs are done, until all are. */
static int kill_on(void)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    int kills = 0;

    for (int next = KILL_EVERY; next < JOBS && !atomic_load(&broken); next += KILL_EVERY) {
        while (atomic_load(&completed) < next && !atomic_load(&broken)) {
            nanosleep(&pause, NULL);
        }
        postgres_site_kill(&site);
        kills++;
        if (!postgres_site_start(&site)) {
            atomic_store(&broken, true);
        }
    }
    return kills;
}

/* Goal: through kills of the server, nothing is lost, nothing is done twice, the ledger is exact. A
 * commit whose answer was lost is found again by the claim's id, or as a completion that was
 * accepted. */
static void nothing_is_lost_when_the_server_is_killed(void)
{
    /* Longer than the test, however long a machine takes to start a server again. */
    const struct store_config config = {.lease_ttl_ms = 3600000};
    char url[512];
    pthread_t threads[WORKERS];
    int numbers[WORKERS];
    struct store_suite_status status;

    fresh_url(url, sizeof url);
    for (int i = 0; i < PEERS; i++) {
        peers[i] = open_at(url, &config);
    }
    submit(peers[0], JOBS);
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        EXPECT_INT(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    int kills = kill_on();
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT(!atomic_load(&broken));
    EXPECT(kills == (JOBS - 1) / KILL_EVERY);
    EXPECT_OK(peers[1]->ops->suite_status(peers[1], "suite", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_DONE], JOBS);
    EXPECT_INT(status.rollouts[VERDICT_PASS], JOBS);
    EXPECT_INT(status.metres_mm, JOBS * 1000);
    EXPECT_INT(status.device_ns, JOBS * NS_PER_MS);
    EXPECT_INT(attempts_ended(peers[0], "done"), JOBS);
    EXPECT_INT(attempts_ended(peers[0], "lost"), 0);
    for (int i = 0; i < PEERS; i++) {
        peers[i]->ops->close(peers[i]);
    }
}

int main(void)
{
    if (!postgres_site_installed(&site)) {
        printf("1..0 # SKIP no PostgreSQL server is installed (scripts/setup test)\n");
        return getenv("CI") != NULL ? 1 : 0;
    }
    int failed =
        postgres_site_make(&site)
            ? TEST_RUN(TEST(urls_are_checked), TEST(statements_have_indexes),
                       TEST(who_waits_has_the_time_of_his_turn),
                       TEST(defaults_of_a_site_do_not_count), TEST(a_limit_makes_no_connection),
                       TEST(limits_of_a_site_do_not_count), TEST(processes_share_artifacts),
                       TEST(processes_share_leases),
                       TEST(nothing_is_lost_when_the_server_is_killed))
            : 1;
    postgres_site_remove(&site);
    return failed;
}
