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
#include "store/keep/gc.h"
#include "store/keep/keep_database.h"
#include "store/keep/keep_files.h"
#include "store/postgres/dialect.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_store.h"
#include "store/sql/sql_store.h"
#include "tests/store/manual_clock.h"
#include "tests/store/postgres/postgres_jobs.h"
#include "tests/store/postgres/postgres_site.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PEERS = 2,
    WORKERS = 4,
    JOBS = 240,
    BATCH = 4,
    KILL_EVERY = 40, /* completed jobs */
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
    case STATEMENT_CHECK_MAPS:
    case STATEMENT_CHECK_MODELS:
    case STATEMENT_CHECK_MODEL_EVENTS:
    case STATEMENT_CHECK_RETAINED:
    case STATEMENT_CHECK_GOLDENS:
    case STATEMENT_CHECK_TRUST:
    case STATEMENT_CHECK_PINS:
    case STATEMENT_CHECK_ARTIFACTS:
    case STATEMENT_MODEL_EVENT_NEXT: /* the greatest ids, and those in redrives */
    case STATEMENT_TRUST_NEXT:
    case STATEMENT_REDRIVE_NEWEST:
    case STATEMENT_REDRIVE_AUTHOR: /* a row per worker; an administrator's order */
    case STATEMENT_REDRIVE_COUNT:
    case STATEMENT_REDRIVE_FLOOR: /* a row per order of an administrator's */
    case STATEMENT_REDRIVE_UNDRIVEN:
    case STATEMENT_REDRIVE_UNSTARTED:
    case STATEMENT_REDRIVE_PARTIALS: /* of jobs that go on */
    case STATEMENT_LEDGER_BOOKED:    /* a row per pool, device, tier and ending */
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

/* A line of a plan that reads a table that grows with what a fleet does, from end to end: the next
 * one would say what its index is asked for. */
static bool scans_large(const char *line, const char *next)
{
    static const char *const indexes[] = {"jobs_pkey",     "job_specs_", "attempts_pkey",
                                          "memo_outcomes", "outcomes_",  "partial_outcomes"};
    bool large = false;

    for (size_t i = 0; i < COUNT_OF(indexes); i++) {
        const char *found = strstr(line, indexes[i]);
        large |= found != NULL && found > line + 6 && strncmp(found - 6, "using ", 6) == 0;
    }
    return large && strstr(next, "Index Cond") == NULL;
}

/* Prepares the statement, and looks for tables that no index narrows down in its plan. */
static void explain(const char *url, enum statement statement)
{
    static char sql[16384];
    static char explained[1024];
    char line[512];
    char above[512] = "";
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
        whole |= strstr(line, "Seq Scan") != NULL || scans_large(above, line);
        memcpy(above, line, sizeof above);
    }
    whole |= scans_large(above, "");
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
        bool of_sqlite = i == STATEMENT_SCHEMA_LIST || i == STATEMENT_SCHEMA_OBJECT;
        if (!of_sqlite) {
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

static int64_t count_waiting(struct db *db, const char *sort)
{
    struct query query =
        query_begin_sql(db, "SELECT COUNT(*) FROM pg_locks WHERE locktype = ?1 AND NOT granted");
    query_text(&query, sort);
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
    while (count_waiting(looker, "advisory") == 0 && !atomic_load(&second.done)) {
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
    /* Dates are the database's too: this machine's clock may be an hour off. */
    atomic_fetch_add(&clock.offset_ns, INT64_C(3600) * NS_PER_S);
    EXPECT(clock_wall_ns(&clock.clock) - clock_wall_ns(clock_system()) > 3599 * NS_PER_S);
    EXPECT_OK(query_simple(db, STATEMENT_BEGIN, &error), error);
    EXPECT(llabs(clock_wall_ns(&clock.clock) - clock_wall_ns(clock_system())) < 60 * NS_PER_S);
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

/* ---- several processes ---- */

/* Goal: time limits that a site has set for every connection do not end a writer's wait for its
 * turn, and what is acknowledged is on the disk. */
static void limits_of_a_site_do_not_count(void)
{
    static const struct {
        const char *name;
        const char *value;
    } expected[] = {
        {"statement_timeout", "0"}, {"lock_timeout", "25s"}, {"synchronous_commit", "on"}};
    char url[1024];
    char sql[COUNT_OF(expected)][128];
    char found[64];
    struct db *db = NULL;

    fresh_url(url, sizeof url);
    snprintf(strstr(url, "&artifacts"), 300, "%s",
             "%20-cstatement_timeout%3D5000%20-clock_timeout%3D3000%20-csynchronous_commit%3Doff");
    EXPECT_OK(postgres_db_open(url, NULL, &db, &error), error);
    enum status status = STATUS_OK;
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
    struct store_worker worker = jobs_worker(name);

    EXPECT_OK(store->ops->claim(store, &worker, claim_id, max, 0, leases, &count, &ttl_ms, &error),
              error);
    return count;
}

/* ---- keeping house ---- */

enum { KEPT = 36, FAIL_DAYS = 30, PASS_DAYS = 7, DAY_S = 86400 };

/* An artifact, old enough for its rule or not; a third are of failed drives, a third of passed
 * ones, and nothing refers to the rest. */
struct kept {
    int days;
    char hash[SHA256_HEX_BYTES];
};

static void keep_one(struct store *store, const char *artifacts, int i, struct kept *out)
{
    static const int days[] = {0, 1, PASS_DAYS - 1, PASS_DAYS + 1, FAIL_DAYS - 1, FAIL_DAYS + 1};
    char text[32];
    char file[KEEP_PATH_BYTES];
    int bytes = snprintf(text, sizeof text, "trace %d", i);

    out->days = days[i / 3 % (int)COUNT_OF(days)];
    EXPECT_OK(store->ops->artifact_put(store, text, (size_t)bytes, out->hash, &error), error);
    const struct timespec then = {.tv_sec = time(NULL) - (time_t)out->days * DAY_S - 60};
    const struct timespec times[2] = {then, then};
    keep_artifact_path(artifacts, out->hash, file);
    EXPECT_INT(utimensat(AT_FDCWD, file, times, 0), 0);
}

static void finish_one(struct store *store, const struct job_lease *lease, int job,
                       const struct kept *kept)
{
    struct job_completion completion;
    struct outcome outcome;
    struct store_completion_result result = {.status = STATUS_IO};

    jobs_fill_done(&completion, &outcome, lease, "keeper");
    outcome.verdict = job % 2 == 0 ? VERDICT_FAIL : VERDICT_PASS;
    outcome.reasons = job % 2 == 0 ? REASON_SCORE : 0;
    memcpy(outcome.artifact_hash, kept->hash, sizeof kept->hash);
    memcpy(completion.artifact_hash, kept->hash, sizeof kept->hash);
    EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_OK);
}

static bool goes(const struct kept *kept, int i, bool policy)
{
    int days = i % 3 == 2 ? 0 : i % 3 == 0 ? FAIL_DAYS : PASS_DAYS;
    return kept->days > days && (i % 3 == 2 || policy);
}

static void expect_kept(const char *artifacts, const struct kept *kept, bool policy)
{
    char file[KEEP_PATH_BYTES];

    for (int i = 0; i < KEPT; i++) {
        keep_artifact_path(artifacts, kept[i].hash, file);
        EXPECT_INT(access(file, F_OK) != 0, goes(&kept[i], i, policy));
    }
}

/* Goal: the collector takes what nothing in the database refers to, and by a policy what is past
 * its days, beside an open store; and nothing where a row names what cannot be an artifact. A long
 * statement that is given up leaves its connection as it was. Method: a model of what goes. */
static void artifacts_are_collected(void)
{
    static struct kept kept[KEPT];
    static struct job_lease leases[KEPT];
    static struct keep_database database;
    struct retention_policy policy = {
        .rules = {{.verdicts = 1 << VERDICT_FAIL, .safety_critical = -1, .keep_days = FAIL_DAYS},
                  {.safety_critical = -1, .keep_days = PASS_DAYS}},
        .count = 2};
    struct keep_gc_options options = {.apply = true, .older_than_s = KEEP_GC_OLDER_MIN_S};
    struct keep_gc_summary summary;
    char artifacts[LIMIT_PATH_BYTES + 16];
    char url[512];
    int64_t claim_id = 1;

    fresh_url(url, sizeof url);
    EXPECT_INT(keep_gc(url, &options, &summary, &error), STATUS_STORE); /* there is none yet */
    struct store *store = open_at(url, NULL);
    EXPECT_OK(keep_database_find(url, 0, &database, &error), error);
    snprintf(artifacts, sizeof artifacts, "%s.artifacts", database.path);
    for (int i = 0; i < KEPT; i++) {
        keep_one(store, artifacts, i, &kept[i]);
    }
    jobs_submit(store, KEPT / 3 * 2);
    EXPECT_INT(claim_at(store, "keeper", &claim_id, leases, KEPT), KEPT / 3 * 2);
    for (int job = 0; job < KEPT / 3 * 2; job++) {
        finish_one(store, &leases[job], job, &kept[job / 2 * 3 + job % 2]);
    }
    for (int i = 0; i < KEPT; i++) { /* completions have asked for them */
        keep_one(store, artifacts, i, &kept[i]);
    }
    EXPECT_OK(keep_gc(url, &options, &summary, &error), error);
    expect_kept(artifacts, kept, false);
    EXPECT_INT(summary.referenced.files, KEPT / 3 * 2);
    options.policy = &policy;
    EXPECT_OK(keep_gc(url, &options, &summary, &error), error);
    expect_kept(artifacts, kept, true);
    EXPECT_INT(summary.met[0], KEPT / 3);
    EXPECT_INT(summary.met[1], KEPT / 3);

    EXPECT_OK(keep_database_begin(&database, &error), error);
    struct query rows = query_begin(database.check.db, STATEMENT_CHECK_ARTIFACTS);
    EXPECT(query_row(&rows) && query_row(&rows));
    EXPECT_OK(query_end(&rows, &error), error);
    EXPECT_OK(query_simple(database.check.db, STATEMENT_ROLLBACK, &error), error);
    EXPECT_OK(postgres_db_script(database.check.db,
                                 "UPDATE outcomes SET artifact_hash = 'none' WHERE id ="
                                 " (SELECT MIN(id) FROM outcomes)",
                                 &error),
              error);
    keep_database_close(&database);
    for (int i = 0; i < KEPT; i++) {
        keep_one(store, artifacts, i, &kept[i]);
    }
    EXPECT_INT(keep_gc(url, &options, &summary, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "nothing was taken");
    store->ops->close(store);
}

static void heartbeat_at(struct store *store, const char *name)
{
    int64_t ttl_ms = 0;
    struct store_worker worker = jobs_worker(name);
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
    jobs_submit(a, 3);
    EXPECT_INT(claim_at(a, "w", &claim_a, leases, 2), 2);
    struct job_lease first = leases[0];
    jobs_fill_done(&completion, &outcome, &leases[1], "w");
    EXPECT_OK(b->ops->complete(b, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_OK);
    /* Heard of by b alone: a does not end it. */
    for (int i = 0; i < 4; i++) {
        manual_clock_advance(&clock, TTL_MS / 2 * NS_PER_MS);
        heartbeat_at(b, "w");
        heartbeat_at(a, "other");
    }
    EXPECT_INT(jobs_attempts_ended(a, "lost"), 0);
    EXPECT_INT(claim_at(b, "v", &claim_b, leases, 8), 1);
    jobs_fill_done(&completion, &outcome, &leases[0], "v");
    EXPECT_OK(a->ops->complete(a, &completion, 1, &result, &error), error);
    /* The process that it spoke with goes, and so does it. */
    b->ops->close(b);
    manual_clock_advance(&clock, (TTL_MS + 1) * NS_PER_MS);
    EXPECT_INT(claim_at(a, "v", &claim_b, leases, 8), 1);
    EXPECT_INT(leases[0].job_id, first.job_id);
    EXPECT_INT(leases[0].epoch, first.epoch + 1);
    EXPECT_INT(jobs_attempts_ended(a, "lost"), 1);
    jobs_fill_done(&completion, &outcome, &first, "w");
    EXPECT_OK(a->ops->complete(a, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_STALE);
    a->ops->close(a);
}

/* Goal: a worker bills no more time than has passed since its claim, at whichever process: by a
 * heartbeat when it vanishes, by its completion, and by one that comes too late. */
static void bills_are_capped_at_any_process(void)
{
    enum { AGE_MS = 6400, MOST_MS = AGE_MS * 65 / 64 + 100 };
    char url[512];
    struct manual_clock clock;
    struct store_config config = {.clock = &clock.clock, .lease_ttl_ms = TTL_MS};
    static struct job_lease leases[3];
    static struct job_completion completion;
    static struct outcome outcome;
    struct store_completion_result result;
    struct store_suite_status status;
    const struct store_worker worker = jobs_worker("w");
    int64_t cancelled[1];
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t claim_id = 1;

    fresh_url(url, sizeof url);
    manual_clock_init(&clock);
    struct store *a = open_at(url, &config);
    jobs_submit(a, 2);
    EXPECT_INT(claim_at(a, "w", &claim_id, leases, 2), 2);
    a->ops->close(a);
    manual_clock_advance(&clock, AGE_MS * NS_PER_MS);
    struct store *b = open_at(url, &config);
    jobs_fill_done(&completion, &outcome, &leases[0], "w");
    completion.device_ns = NS_PER_HOUR;
    EXPECT_OK(b->ops->complete(b, &completion, 1, &result, &error), error);
    EXPECT_OK(b->ops->suite_status(b, "suite", &status, &error), error);
    EXPECT_INT(status.device_ns, MOST_MS * NS_PER_MS);
    const struct store_progress progress = {
        .job_id = leases[1].job_id, .epoch = leases[1].epoch, .device_ns = NS_PER_HOUR};
    EXPECT_OK(b->ops->heartbeat(b, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error),
              error);
    EXPECT_OK(b->ops->worker_gone(b, "w", &error), error);
    EXPECT_OK(b->ops->suite_status(b, "suite", &status, &error), error);
    EXPECT_INT(status.device_ns, 2 * MOST_MS * NS_PER_MS);
    a = open_at(url, &config);
    int64_t other_id = 1;
    EXPECT_INT(claim_at(a, "v", &other_id, &leases[2], 1), 1);
    jobs_fill_done(&completion, &outcome, &leases[1], "w");
    completion.device_ns = NS_PER_HOUR;
    EXPECT_OK(a->ops->complete(a, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_STALE);
    EXPECT_OK(b->ops->suite_status(b, "suite", &status, &error), error);
    EXPECT_INT(status.device_ns, 2 * MOST_MS * NS_PER_MS);
    b->ops->close(b);
    a->ops->close(a);
}

/* The same claim of the same worker, at two processes. */
struct twin_claim {
    struct store *store;
    int64_t claim_id;
    struct job_lease *leases;
    uint32_t count;
    enum status status;
    struct error error;
};

static void *claim_as_twin(void *context)
{
    struct twin_claim *twin = context;
    struct store_worker worker = jobs_worker("twin");
    int64_t ttl_ms = 0;

    twin->status = twin->store->ops->claim(twin->store, &worker, &twin->claim_id, 4, 0,
                                           twin->leases, &twin->count, &ttl_ms, &twin->error);
    return NULL;
}

struct waiting_claim {
    struct store *store;
    uint32_t count;
    enum status status;
    struct error error;
};

static void *claim_and_wait(void *context)
{
    struct waiting_claim *waiting = context;
    struct store_worker worker = jobs_worker("waiting");
    struct job_lease leases[1];
    int64_t claim_id = 1;
    int64_t ttl_ms = 0;

    waiting->status =
        waiting->store->ops->claim(waiting->store, &worker, &claim_id, 1, 24 * 3600 * 1000, leases,
                                   &waiting->count, &ttl_ms, &waiting->error);
    return NULL;
}

/* Goal: a claim that waits at one process is woken by a submission at another. Its own next look is
 * hours away, so without word from the other this test does not end. */
static void processes_wake_each_other(void)
{
    const struct store_config config = {.lease_ttl_ms = 24 * 3600 * 1000};
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct waiting_claim waiting = {.count = 0};
    struct store_worker_owner owner = {.pool = ""};
    pthread_t thread;
    char url[512];

    fresh_url(url, sizeof url);
    waiting.store = open_at(url, &config);
    struct store *other = open_at(url, &config);
    EXPECT_INT(pthread_create(&thread, NULL, claim_and_wait, &waiting), 0);
    while (other->ops->worker_owner(other, "waiting", &owner, &error) != STATUS_OK ||
           owner.pool[0] == '\0') {
        nanosleep(&pause, NULL); /* until its first look, which found nothing, is in the database */
    }
    jobs_submit(other, 1);
    pthread_join(thread, NULL);
    EXPECT_OK(waiting.status, waiting.error);
    EXPECT_INT(waiting.count, 1);
    other->ops->close(other);
    waiting.store->ops->close(waiting.store);
}

/* Goal: what a worker has claimed is found again whichever process he asks, also when both are
 * asked at one time: his jobs are those of one claim. */
static void one_claim_is_one_at_any_process(void)
{
    enum { ROUNDS = 12 };
    static struct job_lease leases[2][4];
    struct store *stores[2];
    char url[512];

    fresh_url(url, sizeof url);
    stores[0] = open_at(url, NULL);
    stores[1] = open_at(url, NULL);
    jobs_submit(stores[0], 4 * ROUNDS);
    for (int round = 0; round < ROUNDS; round++) {
        struct twin_claim twins[2];
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            twins[i] =
                (struct twin_claim){.store = stores[i], .claim_id = round + 1, .leases = leases[i]};
            EXPECT_INT(pthread_create(&threads[i], NULL, claim_as_twin, &twins[i]), 0);
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
            EXPECT_OK(twins[i].status, twins[i].error);
            EXPECT_INT(twins[i].count, 4);
        }
        for (int i = 0; i < 4; i++) {
            EXPECT_INT(leases[0][i].job_id, leases[1][i].job_id);
        }
    }
    stores[1]->ops->close(stores[1]);
    stores[0]->ops->close(stores[0]);
}

/* Calls of one process at one time: a heartbeat, behind which a claim and then completions
 * queue up. */
struct crowded {
    struct store *store;
    char taker[LIMIT_ID_BYTES];
    struct job_completion done[3];
    struct outcome outcomes[3];
    struct store_completion_result results[3];
    struct job_lease lease;
    uint32_t count; /* jobs that the claim got */
    pthread_t threads[3];
    enum status status[3];
    struct error errors[3];
};

static void *crowd_heartbeat(void *context)
{
    struct crowded *crowded = context;
    struct store_worker worker = jobs_worker("alive");
    int64_t ttl_ms = 0;
    crowded->status[0] = crowded->store->ops->heartbeat(crowded->store, &worker, NULL, 0, NULL,
                                                        NULL, &ttl_ms, &crowded->errors[0]);
    return NULL;
}

static void *crowd_claim(void *context)
{
    struct crowded *crowded = context;
    struct store_worker worker = jobs_worker(crowded->taker);
    int64_t claim_id = 1;
    int64_t ttl_ms = 0;
    crowded->status[1] =
        crowded->store->ops->claim(crowded->store, &worker, &claim_id, 1, 0, &crowded->lease,
                                   &crowded->count, &ttl_ms, &crowded->errors[1]);
    return NULL;
}

static void *crowd_complete(void *context)
{
    struct crowded *crowded = context;
    crowded->status[2] = crowded->store->ops->complete(crowded->store, crowded->done, 3,
                                                       crowded->results, &crowded->errors[2]);
    return NULL;
}

/* Until so many wait for a lock of this sort. */
static void await_locks(struct db *db, const char *sort, int64_t expected)
{
    const struct timespec pause = {.tv_nsec = NS_PER_MS};

    while (count_waiting(db, sort) != expected) {
        nanosleep(&pause, NULL);
    }
}

/* Operations that wait at a store, once they have been as many for `still_ms`, and as many as
 * `expected` unless that is negative. */
static int64_t await_waiting(struct crowded *crowded, int64_t expected, int still_ms)
{
    enum { TRIES_MAX = 60000 };
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct store_stats *stats = calloc(1, sizeof *stats);
    int64_t waiting = -1;
    int still = 0;

    EXPECT(stats != NULL);
    for (int tries = 0; still < still_ms || (expected >= 0 && waiting != expected); tries++) {
        EXPECT(tries < TRIES_MAX);
        nanosleep(&pause, NULL);
        group_commit_stats(sql_store_of(crowded->store)->group, stats);
        still = stats->waiting == waiting ? still + 1 : 0;
        waiting = stats->waiting;
    }
    free(stats);
    return waiting;
}

/* Queues the three up, in this order. The writer waits for its turn with the heartbeat, which then
 * waits no more, or with a sweep that was due, behind which the heartbeat does. */
static void crowd(struct crowded *crowded, struct db *holder, int64_t waiting)
{
    static void *(*const calls[3])(void *) = {crowd_heartbeat, crowd_claim, crowd_complete};
    int64_t before = 0;

    for (int64_t i = 0; i < 3; i++) {
        EXPECT_INT(pthread_create(&crowded->threads[i], NULL, calls[i], crowded), 0);
        if (i == 0) {
            await_locks(holder, "advisory", waiting);
            before = await_waiting(crowded, -1, 200);
        } else {
            await_waiting(crowded, before + i, 1);
        }
    }
}

static void expect_silence(FILE *log)
{
    char line[512] = "";

    rewind(log);
    char *said = fgets(line, sizeof line, log);
    fclose(log);
    if (said != NULL) {
        TEST_FAIL("%s", line);
    }
}

/* Who has the writers' turn, and keeps the jobs locked until he gives both back. */
static struct db *hold_jobs(const char *url, const struct job_lease *jobs)
{
    char plain[512];
    char sql[256];
    struct db *holder = NULL;

    snprintf(plain, sizeof plain, "%.*s", (int)(strstr(url, "&artifacts") - url), url);
    EXPECT_OK(postgres_db_open(plain, NULL, &holder, &error), error);
    snprintf(sql, sizeof sql,
             "SET idle_in_transaction_session_timeout = 0;"
             " SELECT pg_advisory_lock(1398232662, hashtext(current_schema())); BEGIN;"
             " SELECT 1 FROM jobs WHERE id IN (%" PRId64 ", %" PRId64 ") FOR UPDATE",
             jobs[0].job_id, jobs[1].job_id);
    EXPECT_OK(postgres_db_script(holder, sql, &error), error);
    return holder;
}

static void give_turn(struct db *holder)
{
    EXPECT_OK(
        postgres_db_script(
            holder, "SELECT pg_advisory_unlock(1398232662, hashtext(current_schema()))", &error),
        error);
}

static void crowd_join(struct crowded *crowded)
{
    for (int i = 0; i < 3; i++) {
        pthread_join(crowded->threads[i], NULL);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(crowded->status[i], crowded->errors[i]);
        EXPECT_INT(crowded->results[i].status, STATUS_OK);
    }
    EXPECT_INT(crowded->count, 0); /* what was queued is done */
}

/* Goal: processes that claim and complete the same jobs at one time do not wait for each other.
 * Method: a worker that is given up has two jobs, which are queued again; it completes both at each
 * of two processes, behind a claim in the same transaction that would take one of them. Each call
 * completes a job in front that a third connection keeps locked until both have come so far: were
 * the claims first, each process would hold by then what the other completes next. */
static void claims_do_not_hold_what_others_complete(void)
{
    static struct crowded crowds[2];
    static const char *const busy_names[2] = {"busy-0", "busy-1"};
    struct job_lease late[2];
    struct job_lease busy[2];
    FILE *log = tmpfile();
    EXPECT(log != NULL);
    const struct logger logger = {.fd = fileno(log), .level = LOG_WARNING, .name = "store"};
    const struct store_config config = {.lease_ttl_ms = 3600000, .logger = &logger};
    char url[512];

    fresh_url(url, sizeof url);
    crowds[0].store = open_at(url, &config);
    crowds[1].store = open_at(url, &config);
    struct store *store = crowds[0].store;
    jobs_submit(store, 4);
    EXPECT_INT(claim_at(store, "late", &(int64_t){1}, late, 2), 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(claim_at(store, busy_names[i], &(int64_t){1}, &busy[i], 1), 1);
    }
    EXPECT_OK(store->ops->worker_gone(store, "late", &error), error);
    struct db *holder = hold_jobs(url, busy);
    for (int i = 0; i < 2; i++) {
        struct crowded *crowded = &crowds[i];
        snprintf(crowded->taker, sizeof crowded->taker, "taker-%d", i);
        jobs_fill_done(&crowded->done[0], &crowded->outcomes[0], &busy[i], busy_names[i]);
        for (int k = 0; k < 2; k++) {
            jobs_fill_done(&crowded->done[k + 1], &crowded->outcomes[k + 1], &late[k], "late");
        }
        crowd(crowded, holder, i + 1);
    }
    give_turn(holder);
    await_locks(holder, "transactionid", 2);
    EXPECT_OK(postgres_db_script(holder, "ROLLBACK", &error), error);
    crowd_join(&crowds[0]);
    crowd_join(&crowds[1]);
    EXPECT_INT(jobs_attempts_ended(store, "done"), 4);
    EXPECT_INT(jobs_attempts_ended(store, "lost"), 0);
    db_close(holder);
    crowds[1].store->ops->close(crowds[1].store);
    store->ops->close(store);
    expect_silence(log);
}

/* Goal: claims of one transaction step over what another process holds, take the others in order of
 * priority and age, and say that none is left; the next transaction sees what is free again.
 * Method: four claims queue up behind a heartbeat that waits for its turn, beside a connection that
 * keeps the two oldest of five jobs locked; the youngest has the highest priority. */
static void claims_step_over_what_others_hold(void)
{
    enum { CLAIMS = 4, JOBS_HERE = 5 };
    static struct crowded crowds[CLAIMS];
    static const int64_t expected[CLAIMS] = {5, 3, 4, 0};
    struct job_lease held[2] = {{.job_id = 1}, {.job_id = 2}};
    pthread_t heartbeat;
    char url[512];

    fresh_url(url, sizeof url);
    struct store *store = open_at(url, &(struct store_config){.lease_ttl_ms = 3600000});
    jobs_submit(store, JOBS_HERE);
    struct db *holder = hold_jobs(url, held);
    EXPECT_OK(postgres_db_script(holder,
                                 "UPDATE jobs SET priority = 7 WHERE id = 5;"
                                 " COMMIT; BEGIN;"
                                 " SELECT 1 FROM jobs WHERE id <= 2 FOR UPDATE",
                                 &error),
              error);
    crowds[0].store = store;
    EXPECT_INT(pthread_create(&heartbeat, NULL, crowd_heartbeat, &crowds[0]), 0);
    await_locks(holder, "advisory", 1);
    int64_t before = await_waiting(&crowds[0], -1, 200);
    for (int i = 0; i < CLAIMS; i++) {
        crowds[i].store = store;
        snprintf(crowds[i].taker, sizeof crowds[i].taker, "taker-%d", i);
        EXPECT_INT(pthread_create(&crowds[i].threads[1], NULL, crowd_claim, &crowds[i]), 0);
        await_waiting(&crowds[0], before + i + 1, 1);
    }
    give_turn(holder);
    for (int i = 0; i < CLAIMS; i++) {
        pthread_join(crowds[i].threads[1], NULL);
        EXPECT_OK(crowds[i].status[1], crowds[i].errors[1]);
        EXPECT_INT(crowds[i].count, expected[i] != 0 ? 1 : 0);
        EXPECT_INT(crowds[i].count == 0 ? 0 : crowds[i].lease.job_id, expected[i]);
    }
    pthread_join(heartbeat, NULL);
    EXPECT_OK(crowds[0].status[0], crowds[0].errors[0]);
    /* Knowledge of the last one is kept for those that would come in its transaction. */
    EXPECT_INT(sql_store_of(store)->claim_places.count, 1);
    EXPECT(sql_store_of(store)->claim_places.rows[0].end);
    EXPECT_OK(postgres_db_script(holder, "ROLLBACK", &error), error);
    for (int64_t id = 1; id <= 2; id++) {
        struct job_lease lease;
        EXPECT_INT(claim_at(store, "late", &(int64_t){id}, &lease, 1), 1);
        EXPECT_INT(lease.job_id, id);
    }
    db_close(holder);
    store->ops->close(store);
}

/* A worker that claims of a tenant with a limit and finishes what it got, over and over. */
struct limited_worker {
    struct store *store;
    char name[LIMIT_ID_BYTES];
    int64_t done;
    int64_t most; /* units that it ever saw leased */
    enum status status;
    struct error error;
};

static enum status drive_limited(struct limited_worker *worker, int64_t *claim_id, bool *more)
{
    struct job_lease lease;
    struct job_completion completion;
    struct outcome outcome;
    struct store_completion_result result;
    struct store_suite_status suite;
    struct tenant tenant;
    struct store *store = worker->store;
    struct store_worker who = jobs_worker(worker->name);
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    TRY(store->ops->claim(store, &who, claim_id, 1, 0, &lease, &count, &ttl_ms, &worker->error));
    TRY(store->ops->tenants(store, "", &tenant, 1, &(uint32_t){0}, &worker->error));
    worker->most = tenant.units_leased > worker->most ? tenant.units_leased : worker->most;
    if (count > 0) {
        jobs_fill_done(&completion, &outcome, &lease, worker->name);
        worker->done++;
        return store->ops->complete(store, &completion, 1, &result, &worker->error);
    }
    TRY(store->ops->suite_status(store, "suite", &suite, &worker->error));
    *more = suite.jobs[JOB_QUEUED] > 0;
    return STATUS_OK;
}

static void *work_under_a_limit(void *context)
{
    struct limited_worker *worker = context;
    int64_t claim_id = 1;
    bool more = true;
    while (more && worker->status == STATUS_OK) {
        worker->status = drive_limited(worker, &claim_id, &more);
    }
    return NULL;
}

/* Goal: what a tenant may have leased at once holds over processes that claim at one time, and does
 * not keep any of its jobs from being done. */
static void limits_hold_between_processes(void)
{
    enum { CREW = 6, DUE = 60, LIMIT = 2 };
    struct limited_worker workers[CREW];
    const struct tenant limited = {.name = "acme", .weight = 1, .units_leased_max = LIMIT};
    struct store *stores[2];
    pthread_t threads[CREW];
    int64_t done = 0;
    char url[512];

    fresh_url(url, sizeof url);
    stores[0] = open_at(url, NULL);
    stores[1] = open_at(url, NULL);
    EXPECT_OK(stores[0]->ops->tenant_set(stores[0], &limited, TENANT_SETTINGS, &error), error);
    jobs_submit_as(stores[0], "acme", DUE);
    for (int i = 0; i < CREW; i++) {
        workers[i] = (struct limited_worker){.store = stores[i % 2]};
        snprintf(workers[i].name, sizeof workers[i].name, "worker-%d", i);
        EXPECT_INT(pthread_create(&threads[i], NULL, work_under_a_limit, &workers[i]), 0);
    }
    for (int i = 0; i < CREW; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_OK(workers[i].status, workers[i].error);
        EXPECT(workers[i].most <= LIMIT);
        done += workers[i].done;
    }
    EXPECT_INT(done, DUE);
    stores[1]->ops->close(stores[1]);
    stores[0]->ops->close(stores[0]);
}

/* One job, done at the worker's first claim. */
static enum status do_one(struct store *store, const char *name, int64_t *claim_id)
{
    struct job_lease lease;
    struct job_completion completion;
    struct outcome outcome;
    struct store_completion_result result;

    EXPECT_INT(claim_at(store, name, claim_id, &lease, 1), 1);
    jobs_fill_done(&completion, &outcome, &lease, name);
    return store->ops->complete(store, &completion, 1, &result, &error);
}

/* Goal: a row that is there every time is not waited for. Method: an index that allows one attempt
 * for each device. */
static void rows_made_twice_for_ever_are_an_error(void)
{
    char url[512];
    char plain[512];
    struct db *db = NULL;
    int64_t claim_id = 1;

    fresh_url(url, sizeof url);
    snprintf(plain, sizeof plain, "%.*s", (int)(strstr(url, "&artifacts") - url), url);
    struct store *store = open_at(url, NULL);
    jobs_submit(store, 2);
    EXPECT_OK(do_one(store, "w", &claim_id), error);
    EXPECT_OK(postgres_db_open(plain, NULL, &db, &error), error);
    EXPECT_OK(postgres_db_script(db, "CREATE UNIQUE INDEX planted ON attempts (device)", &error),
              error);
    db_close(db);
    EXPECT_INT(do_one(store, "w", &claim_id), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "planted");
    store->ops->close(store);
}

static atomic_int syncs_failing;

/* libpq's, whose place the test program takes: now and then there is no memory. */
struct pg_conn;
int PQpipelineSync(struct pg_conn *connection);
int PQpipelineSync(struct pg_conn *connection)
{
    int (*real)(struct pg_conn *) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "PQpipelineSync");
    return atomic_load(&syncs_failing) > 0 && atomic_fetch_sub(&syncs_failing, 1) > 0
               ? 0
               : real(connection);
}

/* Goal: a pipeline that finds no memory for its end fails its transaction alone. Method: the call
 * fails once in the completion of each of two jobs, which is then repeated. */
static void a_pipeline_without_memory_fails_one_transaction(void)
{
    char url[512];
    int64_t claim_id = 1;
    struct job_lease leases[2];
    struct job_completion completion;
    struct outcome outcome;
    struct store_completion_result result;

    fresh_url(url, sizeof url);
    struct store *store = open_at(url, NULL);
    jobs_submit(store, 2);
    EXPECT_INT(claim_at(store, "w", &claim_id, leases, 2), 2);
    for (int i = 0; i < 2; i++) {
        jobs_fill_done(&completion, &outcome, &leases[i], "w");
        atomic_store(&syncs_failing, 1);
        EXPECT(store->ops->complete(store, &completion, 1, &result, &error) != STATUS_OK);
        EXPECT_INT(atomic_load(&syncs_failing), 0);
        EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
        EXPECT_INT(result.status, STATUS_OK);
    }
    EXPECT_INT(jobs_attempts_ended(store, "done"), 2);
    store->ops->close(store);
}

/* ---- a server that is killed ---- */

/* Goal: outcomes that somebody was shown are there after a crash of the server. Method: a commit
 * that waits for no disk, as that of a process that dies before its message, is read; then the
 * server is killed. */
static void what_was_read_outlives_a_crash(void)
{
    enum { TIMES = 4 };
    const struct store_config config = {.lease_ttl_ms = 3600000};
    const struct store_outcome_filter filter = {.limit = 1};
    char url[512];
    char plain[512];
    char sql[128];
    struct outcome outcome;
    uint32_t count = 0;
    int64_t claim_id = 1;

    fresh_url(url, sizeof url);
    snprintf(plain, sizeof plain, "%.*s", (int)(strstr(url, "&artifacts") - url), url);
    struct store *store = open_at(url, &config);
    jobs_submit(store, 1);
    EXPECT_OK(do_one(store, "w", &claim_id), error);
    for (int i = 1; i <= TIMES; i++) {
        struct db *db = NULL;
        EXPECT_OK(postgres_db_open(plain, NULL, &db, &error), error);
        snprintf(sql, sizeof sql, "SET synchronous_commit = off; UPDATE outcomes SET ticks = %d",
                 100 + i);
        EXPECT_OK(postgres_db_script(db, sql, &error), error);
        EXPECT_OK(store->ops->outcomes(store, &filter, &outcome, &count, &error), error);
        postgres_site_kill(&site);
        db_close(db);
        EXPECT_INT(outcome.ticks, 100 + i);
        EXPECT(postgres_site_start(&site));
        struct store *again = open_at(url, &config);
        EXPECT_OK(again->ops->outcomes(again, &filter, &outcome, &count, &error), error);
        EXPECT_INT(count, 1);
        EXPECT_INT(outcome.ticks, 100 + i);
        again->ops->close(again);
        store->ops->close(store);
        store = open_at(url, &config);
    }
    store->ops->close(store);
}

static struct store *peers[PEERS];
static atomic_int completed;
static atomic_bool broken;

static bool work_once(struct store *store, const char *name, int64_t *claim_id)
{
    struct job_lease leases[BATCH];
    struct job_completion done[BATCH];
    struct outcome outcomes[BATCH];
    struct store_completion_result results[BATCH];
    struct store_worker worker = jobs_worker(name);
    struct error why;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    enum status status =
        store->ops->claim(store, &worker, claim_id, BATCH, 0, leases, &count, &ttl_ms, &why);

    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        jobs_fill_done(&done[i], &outcomes[i], &leases[i], name);
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

static atomic_bool all_done;
static int followed[JOBS]; /* outcomes that the follower has seen, by job */

/* Reads outcomes as they come, page by page, as those do who keep sums of them. */
static void *follow(void *context)
{
    static struct outcome page[64];
    struct store *store = context;
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    struct store_outcome_filter filter = {.limit = 64};
    struct error why;
    bool last = false;

    while (!last) {
        bool ending = atomic_load(&all_done);
        uint32_t count = 0;
        if (store->ops->outcomes(store, &filter, page, &count, &why) != STATUS_OK) {
            count = 0; /* the server is away: the same page again */
            last = atomic_load(&broken);
        } else {
            last = ending && count == 0;
        }
        for (uint32_t i = 0; i < count; i++) {
            filter.after_id = page[i].id;
            followed[page[i].seed]++;
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Goal: through kills of the server, nothing is lost, nothing is done twice, the ledger is exact. A
 * commit whose answer was lost is found again by the claim's id, or as a completion that was
 * accepted. And outcomes come in the order of their ids: who follows them misses none. */
static void nothing_is_lost_when_the_server_is_killed(void)
{
    /* Longer than the test, however long a machine takes to start a server again. */
    const struct store_config config = {.lease_ttl_ms = 3600000};
    char url[512];
    pthread_t threads[WORKERS];
    pthread_t follower;
    int numbers[WORKERS];
    struct store_suite_status status;

    fresh_url(url, sizeof url);
    for (int i = 0; i < PEERS; i++) {
        peers[i] = open_at(url, &config);
    }
    jobs_submit(peers[0], JOBS);
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        EXPECT_INT(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    EXPECT_INT(pthread_create(&follower, NULL, follow, peers[1]), 0);
    int kills = kill_on();
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&all_done, true);
    pthread_join(follower, NULL);
    EXPECT(!atomic_load(&broken));
    for (int i = 0; i < JOBS; i++) {
        EXPECT_INT(followed[i], 1);
    }
    EXPECT(kills == (JOBS - 1) / KILL_EVERY);
    EXPECT_OK(peers[1]->ops->suite_status(peers[1], "suite", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_DONE], JOBS);
    EXPECT_INT(status.rollouts[VERDICT_PASS], JOBS);
    EXPECT_INT(status.metres_mm, JOBS * 1000);
    EXPECT_INT(status.device_ns, JOBS * NS_PER_MS);
    EXPECT_INT(jobs_attempts_ended(peers[0], "done"), JOBS);
    EXPECT_INT(jobs_attempts_ended(peers[0], "lost"), 0);
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
                       TEST(artifacts_are_collected), TEST(processes_share_leases),
                       TEST(bills_are_capped_at_any_process), TEST(limits_hold_between_processes),
                       TEST(processes_wake_each_other), TEST(one_claim_is_one_at_any_process),
                       TEST(claims_step_over_what_others_hold),
                       TEST(claims_do_not_hold_what_others_complete),
                       TEST(rows_made_twice_for_ever_are_an_error),
                       TEST(a_pipeline_without_memory_fails_one_transaction),
                       TEST(what_was_read_outlives_a_crash),
                       TEST(nothing_is_lost_when_the_server_is_killed))
            : 1;
    postgres_site_remove(&site);
    return failed;
}
