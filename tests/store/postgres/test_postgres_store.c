/*
 * A store in PostgreSQL where something is amiss: set-ups that fail, schemas with odd names, a
 * server that goes away, and strangers who lock rows, swallow them, stand in between or bring an
 * older copy back.
 *
 * Method: one server of the test's own; each case plants what a site may do, by SQL of its own, and
 * asks the store's calls for their answers. What is waited for is a row's or a lock's state.
 */
#include "tests/harness.h"

#include "base/check.h"
#include "base/sha256.h"
#include "base/units.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_store.h"
#include "store/sql/sql_store.h"
#include "tests/store/postgres/postgres_jobs.h"
#include "tests/store/postgres/postgres_site.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct postgres_site site;
static struct error error;
static int serial;

/* ---- places ---- */

struct place {
    char url[512];   /* of a schema of its own, artifacts included */
    char plain[512]; /* without these, for connections of a stranger's */
};

static struct place fresh_place(void)
{
    struct place place;
    CHECK(postgres_site_schema(&site, ++serial, place.url, sizeof place.url));
    snprintf(place.plain, sizeof place.plain, "%.*s",
             (int)(strstr(place.url, "&artifacts") - place.url), place.url);
    return place;
}

static struct store *open_at(const char *url)
{
    struct store *store = NULL;
    EXPECT_OK(postgres_store_open(url, NULL, &store, &error), error);
    return store;
}

static struct db *stranger(const struct place *place)
{
    struct db *db = NULL;
    EXPECT_OK(postgres_db_open(place->plain, NULL, &db, &error), error);
    return db;
}

static void script(struct db *db, const char *sql)
{
    EXPECT_OK(postgres_db_script(db, sql, &error), error);
}

static int64_t number(struct db *db, const char *sql)
{
    int64_t value = -1;
    struct query query = query_begin_sql(db, sql);
    if (query_row(&query)) {
        value = query_column_int(&query, 0);
    }
    EXPECT_OK(query_end(&query, &error), error);
    return value;
}

/* ---- set-ups ---- */

static int64_t tables_of(const struct place *place)
{
    struct db *db = stranger(place);
    int64_t count = number(db, "SELECT COUNT(*) FROM pg_class c JOIN pg_namespace n ON n.oid ="
                               " c.relnamespace WHERE n.nspname = current_schema()");
    db_close(db);
    return count;
}

/* Goal: a set-up whose artifacts' folder is not there, cannot be written or is none leaves nothing,
 * so the next one, with the right folder, is the first. */
static void a_set_up_that_fails_keeps_nothing(void)
{
    char url[1024];
    char file[256];
    struct store *store = NULL;
    struct place place = fresh_place();

    snprintf(url, sizeof url, "%s&artifacts=%s/mistyped", place.plain, site.directory);
    EXPECT(postgres_store_open(url, NULL, &store, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "mistyped");
    EXPECT_INT(tables_of(&place), 0);

    snprintf(file, sizeof file, "%s/a-file", site.directory);
    fclose(fopen(file, "w"));
    snprintf(url, sizeof url, "%s&artifacts=%s", place.plain, file);
    EXPECT(postgres_store_open(url, NULL, &store, &error) != STATUS_OK);
    EXPECT_INT(tables_of(&place), 0);

    EXPECT_INT(postgres_store_open(place.plain, NULL, &store, &error), STATUS_USAGE);
    EXPECT_INT(tables_of(&place), 0);

    store = open_at(place.url);
    store->ops->close(store);
    store = open_at(place.plain);
    store->ops->close(store);
}

/* Goal: %XX in artifacts= is what it is in the rest of a URL, and a bad one is refused. */
static void artifacts_are_decoded(void)
{
    static const char *const bad[] = {"/srv%2", "/srv%zz", "/srv%00x", "/srv%"};
    char folder[256];
    char url[1024];
    struct stat info;
    struct place place = fresh_place();
    struct store *store = NULL;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        snprintf(url, sizeof url, "%s&artifacts=%s", place.plain, bad[i]);
        EXPECT_INT(postgres_store_open(url, NULL, &store, &error), STATUS_USAGE);
        EXPECT_CONTAINS(error.text, "hexadecimal");
    }
    snprintf(folder, sizeof folder, "%s/a & b%%", site.directory);
    EXPECT(mkdir(folder, 0755) == 0);
    snprintf(url, sizeof url, "%s&artifacts=%s%%2Fa%%20%%26%%20b%%25", place.plain, site.directory);
    store = open_at(url);
    store->ops->close(store);
    snprintf(folder, sizeof folder, "%s/a & b%%/swerve.artifacts", site.directory);
    EXPECT(stat(folder, &info) == 0 && S_ISDIR(info.st_mode));
}

/* Goal: a schema whose name needs quotes is one like any other: set up, worked in by two processes
 * that wake each other, opened again. */
static void names_of_schemas_may_need_quotes(void)
{
    static const struct {
        const char *quoted; /* as in SQL */
        const char *option; /* the same behind search_path=, in a URL */
    } names[] = {
        {"\"Fleet-A\"", "%22Fleet-A%22"},
        {"\"two words\"", "%22two%5C%20words%22"},
        {"\"a\"\"b'c$d\"", "%22a%22%22b%27c%24d%22"},
        {"\"select\"", "%22select%22"},
    };
    char sql[COUNT_OF(names)][256]; /* kept by their addresses */
    char url[1024];
    struct place home = fresh_place();
    struct db *db = stranger(&home);

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct store *peers[2];
        struct job_lease lease;
        uint32_t count = 0;
        int64_t claim_id = 1;
        int64_t ttl_ms = 0;
        char create[256];
        snprintf(create, sizeof create, "CREATE SCHEMA %s", names[i].quoted);
        script(db, create);
        snprintf(url, sizeof url,
                 "postgresql://swerve@/postgres?host=%s&options=-csearch_path%%3D%s&artifacts=%s",
                 site.directory, names[i].option, site.directory);
        peers[0] = open_at(url);
        peers[1] = open_at(url);
        jobs_submit(peers[0], 1);
        struct store_worker worker = jobs_worker("w");
        EXPECT_OK(peers[1]->ops->claim(peers[1], &worker, &claim_id, 1, 30000, &lease, &count,
                                       &ttl_ms, &error),
                  error);
        EXPECT_INT(count, 1);
        peers[0]->ops->close(peers[0]);
        peers[1]->ops->close(peers[1]);
        peers[0] = open_at(url);
        peers[0]->ops->close(peers[0]);
        snprintf(sql[i], sizeof sql[i], "SELECT COUNT(*) FROM %s.jobs WHERE state = 1",
                 names[i].quoted);
        struct query query = query_begin_sql(db, sql[i]);
        EXPECT(query_row(&query));
        EXPECT_INT(query_column_int(&query, 0), 1);
        EXPECT_OK(query_end(&query, &error), error);
    }
    db_close(db);
    snprintf(url, sizeof url,
             "postgresql://swerve@/postgres?host=%s&options=-csearch_path%%3DFleet-A&artifacts=%s",
             site.directory, site.directory);
    struct store *store = NULL;
    EXPECT(postgres_store_open(url, NULL, &store, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "search path");
}

/* ---- connections that end ---- */

/* A call that another thread makes, and that has to wait for a lock of this one's. */
struct waiting {
    struct store *store;
    enum status (*call)(struct waiting *waiting);
    struct store_suite_status status;
    uint32_t count;
    enum status result;
    struct error error;
    pthread_t thread;
};

static enum status call_status(struct waiting *waiting)
{
    return waiting->store->ops->suite_status(waiting->store, "suite", &waiting->status,
                                             &waiting->error);
}

static enum status call_suites(struct waiting *waiting)
{
    static char ids[4][LIMIT_ID_BYTES];
    return waiting->store->ops->suites(waiting->store, ids, 4, &waiting->count, &waiting->error);
}

static enum status call_ledger(struct waiting *waiting)
{
    static struct store_ledger_row rows[16];
    return waiting->store->ops->ledger(waiting->store, "suite", rows, 16, &waiting->count,
                                       &waiting->error);
}

static enum status call_claim(struct waiting *waiting)
{
    static struct job_lease leases[4];
    struct store_worker worker = jobs_worker("waiting");
    int64_t claim_id = 1;
    int64_t ttl_ms = 0;
    return waiting->store->ops->claim(waiting->store, &worker, &claim_id, 4, 0, leases,
                                      &waiting->count, &ttl_ms, &waiting->error);
}

static enum status call_price(struct waiting *waiting)
{
    return waiting->store->ops->price_set(waiting->store, "bulk", "cpu", 1, &waiting->error);
}

static void *wait_main(void *context)
{
    struct waiting *waiting = context;
    waiting->result = waiting->call(waiting);
    return NULL;
}

static void begin_waiting(struct waiting *waiting, struct store *store,
                          enum status (*call)(struct waiting *waiting))
{
    *waiting = (struct waiting){.store = store, .call = call};
    EXPECT(pthread_create(&waiting->thread, NULL, wait_main, waiting) == 0);
}

/* Answer of the query when it is neither nothing (0) nor `before`. */
static int64_t await_other(struct db *db, const char *sql, int64_t before)
{
    const struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    int64_t until_ns = clock_now_ns(clock_system()) + 60 * NS_PER_S;
    int64_t now = before;
    while (now <= 0 || now == before) {
        EXPECT(clock_now_ns(clock_system()) < until_ns);
        nanosleep(&pause, NULL);
        now = number(db, sql);
    }
    return now;
}

/* The process of the server that waits for a lock, and since when, in microseconds. */
static const char waiter_sql[] = "SELECT COALESCE(MAX(pid), 0) FROM pg_locks WHERE NOT granted";
static const char since_sql[] = "SELECT CAST(COALESCE(MAX(extract(epoch FROM waitstart)), 0) * 1e6"
                                " AS BIGINT) FROM pg_locks WHERE NOT granted";

/* Goal: a call whose connection ends in its middle, with all others of its process, begins anew:
 * readers as writers. */
static void calls_outlive_their_connections(void)
{
    static const struct {
        const char *table; /* that the call waits for, behind its first statement */
        enum status (*call)(struct waiting *waiting);
    } cases[] = {
        {"ledger", call_status}, {"suites", call_suites}, {"ledger", call_ledger},
        {"prices", call_claim},  {"prices", call_price},
    };
    struct place place = fresh_place();
    struct store *store = open_at(place.url);
    struct db *db = stranger(&place);
    struct db *looker = stranger(&place); /* transactions see activity as it was at first */

    jobs_submit(store, 4);
    script(looker, "SET application_name = looker");
    script(db, "SET application_name = locker");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct waiting waiting;
        char sql[128];
        snprintf(sql, sizeof sql, "BEGIN; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", cases[i].table);
        script(db, sql);
        begin_waiting(&waiting, store, cases[i].call);
        int64_t waiter = await_other(looker, waiter_sql, 0);
        for (int times = 0; times < 2; times++) {
            script(looker, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                           " WHERE application_name LIKE 'swerve%'");
            waiter = await_other(looker, waiter_sql, waiter);
        }
        script(db, "COMMIT");
        pthread_join(waiting.thread, NULL);
        EXPECT_OK(waiting.result, waiting.error);
    }
    store->ops->close(store);
    db_close(db);
    db_close(looker);
}

/* ---- locks of strangers ---- */

/* Goal: who waits for a lock that a stranger holds is told by whom, and goes on when he has gone;
 * others of the store are waited for. */
static void strangers_with_locks_are_named(void)
{
    static const char lock[] = "SELECT pg_advisory_lock(1398232662, hashtext(current_schema()))";
    struct postgres_clock clock;
    struct db *writer = NULL;
    struct place place = fresh_place();
    struct store *store = open_at(place.url);
    struct db *db = stranger(&place);

    jobs_submit(store, 2);
    postgres_clock_init(&clock);
    EXPECT_OK(postgres_db_open(place.plain, &clock, &writer, &error), error);
    script(db, "SET application_name = 'somebody''s tool'");
    script(db, lock);
    EXPECT_INT(query_simple(writer, STATEMENT_BEGIN, &error), STATUS_BUSY);
    EXPECT_CONTAINS(error.text, "somebody's tool");
    EXPECT_CONTAINS(error.text, "advisory lock");
    EXPECT_CONTAINS(error.text, "user swerve");
    script(db, "SELECT pg_advisory_unlock_all(); BEGIN; SELECT * FROM jobs FOR UPDATE");
    EXPECT_OK(query_simple(writer, STATEMENT_BEGIN, &error), error);
    script(writer, "SET LOCAL lock_timeout = 200");
    EXPECT_INT(postgres_db_script(writer, "UPDATE jobs SET state = 5", &error), STATUS_BUSY);
    EXPECT_CONTAINS(error.text, "somebody's tool");
    EXPECT_CONTAINS(error.text, "locks of table jobs");
    script(db, "COMMIT");
    EXPECT_OK(query_simple(writer, STATEMENT_BEGIN, &error), error);
    EXPECT_OK(query_simple(writer, STATEMENT_COMMIT, &error), error);

    struct waiting waiting;
    script(db, "SET application_name = swerve");
    script(db, lock);
    begin_waiting(&waiting, store, call_price);
    int64_t since = await_other(db, since_sql, 0);
    await_other(db, since_sql, since); /* its time was over, and it waits on */
    script(db, "SELECT pg_advisory_unlock_all()");
    pthread_join(waiting.thread, NULL);
    EXPECT_OK(waiting.result, waiting.error);
    db_close(writer);
    db_close(db);
    store->ops->close(store);
}

/* ---- older copies ---- */

static void shell(const char *format)
{
    char command[512];
    snprintf(command, sizeof command, format, site.directory, site.directory);
    EXPECT(system(command) == 0);
}

/* Goal: a process that was told of kept work refuses a server that has not got it, for good, while
 * one that begins anew works with what is there. */
static void an_older_copy_is_refused(void)
{
    struct place place = fresh_place();
    struct store *store = open_at(place.url);
    struct store_suite_status status;

    EXPECT_OK(store->ops->price_set(store, "bulk", "cpu", 1, &error), error);
    postgres_site_kill(&site);
    EXPECT(postgres_site_start(&site)); /* what it had been told is in this one */
    EXPECT_OK(store->ops->price_set(store, "bulk", "cpu", 2, &error), error);
    postgres_site_stop(&site);
    shell("cp -a '%s/data' '%s/older'");
    EXPECT(postgres_site_start(&site));
    jobs_submit(store, 40);
    postgres_site_stop(&site);
    shell("cd '%s' && rm -rf data && mv older data && cd '%s'");
    EXPECT(postgres_site_start(&site));
    for (int times = 0; times < 2; times++) {
        EXPECT_INT(store->ops->price_set(store, "bulk", "cpu", 3, &error), STATUS_STORE);
        EXPECT_CONTAINS(error.text, "older copy");
        EXPECT_CONTAINS(error.text, "swerve check");
    }
    store->ops->close(store);
    store = open_at(place.url);
    EXPECT_INT(store->ops->suite_status(store, "suite", &status, &error), STATUS_NOT_FOUND);
    jobs_submit(store, 40);
    store->ops->close(store);
}

/* ---- rows that somebody swallows ---- */

/* A job's life from its submission on; the first error ends it. */
static enum status live(struct store *store, const char *name)
{
    struct job_lease lease;
    struct job_completion completion;
    struct outcome outcome;
    struct store_completion_result result;
    struct store_submit_result submitted;
    struct store_worker worker = jobs_worker(name);
    int64_t claim_id = 1;
    int64_t ttl_ms = 0;
    int64_t cancelled[8];
    uint32_t count = 0;
    char body[64];
    char hash[SHA256_HEX_BYTES];
    struct job_spec spec;

    jobs_fill_spec(&spec, 0);
    snprintf(body, sizeof body, "{\"id\":\"%s\"}", name);
    sha256_hex(body, strlen(body), hash);
    snprintf(spec.suite_id, sizeof spec.suite_id, "%s", name);
    snprintf(spec.planner, sizeof spec.planner, "builtin:%s", name);
    snprintf(spec.pool, sizeof spec.pool, "%s", name);
    snprintf(worker.pool, sizeof worker.pool, "%s", name);
    memcpy(spec.scenario_hash, hash, sizeof hash);
    TRY(store->ops->price_set(store, name, "cpu", 1000, &error));
    TRY(store->ops->scenario_put(store, hash, body, strlen(body), &error));
    TRY(store->ops->submit(store, name, 1, &spec, 1, &submitted, &error));
    TRY(store->ops->claim(store, &worker, &claim_id, 1, 0, &lease, &count, &ttl_ms, &error));
    EXPECT_INT(count, 1);
    struct store_progress progress = {
        .job_id = lease.job_id, .epoch = lease.epoch, .device_ns = 1000};
    uint32_t cancelled_count = 0;
    TRY(store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &cancelled_count, &ttl_ms,
                              &error));
    jobs_fill_done(&completion, &outcome, &lease, name);
    TRY(store->ops->complete(store, &completion, 1, &result, &error));
    if (result.status != STATUS_OK) {
        error.status = result.status;
    }
    return result.status;
}

/* Goal: no trigger or rule of somebody else's makes a row of the store's vanish unseen: the call is
 * refused and names the table, nothing of it is kept, and the same is done when it is gone. */
static void swallowed_rows_are_errors(void)
{
    static const struct {
        const char *table;
        const char *when;
    } cases[] = {
        {"outcomes", "INSERT"},  {"attempts", "INSERT"},       {"jobs", "INSERT"},
        {"job_specs", "INSERT"}, {"suites", "INSERT"},         {"contexts", "INSERT"},
        {"scenarios", "INSERT"}, {"workers", "INSERT"},        {"worker_leases", "INSERT"},
        {"ledger", "INSERT"},    {"ledger_totals", "INSERT"},  {"accounts", "INSERT"},
        {"pool_jobs", "INSERT"}, {"suite_progress", "INSERT"}, {"prices", "INSERT"},
        {"jobs", "UPDATE"},      {"suites", "UPDATE"},         {"workers", "UPDATE"},
        {"pool_jobs", "UPDATE"},
    };
    char name[32];
    char sql[512];
    struct place place = fresh_place();
    struct store *store = open_at(place.url);
    struct db *db = stranger(&place);
    struct store_suite_status status;

    EXPECT_OK(live(store, "first"), error);
    script(db, "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS"
               " 'BEGIN RETURN NULL; END'");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(name, sizeof name, "case-%zu", i);
        snprintf(sql, sizeof sql,
                 "CREATE TRIGGER swallow BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION swallow()",
                 cases[i].when, cases[i].table);
        script(db, sql);
        enum status lived = live(store, name);
        if (lived != STATUS_STORE) {
            TEST_FAIL("%s on %s: %s", cases[i].when, cases[i].table, status_name(lived));
        }
        snprintf(sql, sizeof sql, "table %s did not take a row", cases[i].table);
        EXPECT_CONTAINS(error.text, sql);
        snprintf(sql, sizeof sql, "DROP TRIGGER swallow ON %s", cases[i].table);
        script(db, sql);
        snprintf(name, sizeof name, "next-%zu", i);
        EXPECT_OK(live(store, name), error);
        EXPECT_OK(store->ops->suite_status(store, name, &status, &error), error);
        EXPECT_INT(status.jobs[JOB_DONE], 1);
        EXPECT_INT(status.rollouts[VERDICT_PASS], 1);
    }
    script(db, "CREATE RULE swallow AS ON INSERT TO attempts DO INSTEAD NOTHING");
    EXPECT_INT(live(store, "ruled"), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "table attempts");
    db_close(db);
    store->ops->close(store);
}

int main(void)
{
    site.durable = true;
    if (!postgres_site_installed(&site)) {
        printf("1..0 # SKIP no PostgreSQL server is installed (scripts/setup test)\n");
        return getenv("CI") != NULL ? 1 : 0;
    }
    int failed =
        postgres_site_make(&site)
            ? TEST_RUN(TEST(a_set_up_that_fails_keeps_nothing), TEST(artifacts_are_decoded),
                       TEST(names_of_schemas_may_need_quotes),
                       TEST(calls_outlive_their_connections), TEST(strangers_with_locks_are_named),
                       TEST(an_older_copy_is_refused), TEST(swallowed_rows_are_errors))
            : 1;
    postgres_site_remove(&site);
    return failed;
}
