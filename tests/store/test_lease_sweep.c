/*
 * The sweep of leases that have ended, in a store whose rows do not all fit together.
 *
 * Goal: rows of one worker that cannot be written hold up nobody else's jobs, and nothing is said
 * to be queued again that is not in the database. Method: three workers hold jobs and vanish; rows
 * of the second are broken while the store is closed. Time is the test's, there is no thread.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/sql/sql_store.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/manual_clock.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TTL_MS = 15000, WORKERS = 3, JOBS = 3 };

static char directory[] = "/tmp/swerve-sweep-XXXXXX";
static char path[128];
static int serial;
static struct manual_clock manual;
static struct store *store;
static struct error error;
static struct logger logger = {.level = LOG_DEBUG, .name = "test"};

static void open_store(void)
{
    const struct store_config config = {
        .clock = &manual.clock, .lease_ttl_ms = TTL_MS, .logger = &logger};
    EXPECT_OK(sql_store_open_stepped(path, &config, &store, &error), error);
}

static void script(const char *sql)
{
    struct db *db = NULL;
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

static void submit(const char *suite, const char *key)
{
    struct store_submit_result result;
    struct job_spec spec = {.scenario_id = "a",
                            .planner = "p",
                            .pool = "bulk",
                            .backend = "cpu",
                            .rollout_count = 1,
                            .attempts_max = 9};
    snprintf(spec.suite_id, sizeof spec.suite_id, "%s", suite);
    snprintf(spec.key, sizeof spec.key, "%s", key);
    EXPECT_OK(store->ops->submit(store, suite, 1, &spec, 1, &result, &error), error);
}

/* Job i + 1 of suite "s<i>" is worker "w<i>"'s, for i of 0 to 2; so is job 4 + i, of suite "t". */
static void prepare(void)
{
    static struct job_lease leases[WORKERS];
    struct store_worker worker = {.pool = "bulk"};
    uint32_t count;
    int64_t ttl_ms;

    snprintf(path, sizeof path, "%s/%d.db", directory, serial++);
    logger.fd = memfd_create("log", MFD_CLOEXEC);
    CHECK(logger.fd >= 0);
    manual_clock_init(&manual);
    open_store();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < WORKERS; i++) {
            char suite[8] = "t";
            char key[16];
            if (round == 0) {
                snprintf(suite, sizeof suite, "s%d", i);
            }
            snprintf(key, sizeof key, "key-%d-%d", round, i);
            submit(suite, key);
            snprintf(worker.worker_id, sizeof worker.worker_id, "w%d", i);
            snprintf(worker.device, sizeof worker.device, "%s", i == 1 ? "cuda" : "cpu");
            EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, leases, &count,
                                        &ttl_ms, &error),
                      error);
            EXPECT_INT(count, 1);
            EXPECT_INT(leases[0].job_id, 1 + i + WORKERS * round);
        }
    }
    store->ops->close(store);
}

/* Whose lease has ended, all at once. */
static void let_leases_end(void)
{
    manual_clock_advance(&manual, (TTL_MS + 1) * NS_PER_MS);
    sql_store_tick(sql_store_of(store));
}

static enum job_state state_of(int id)
{
    char sql[64];
    int64_t state = -1;
    snprintf(sql, sizeof sql, "SELECT state FROM jobs WHERE id = %d", id);
    EXPECT_OK(sqlite_db_scalar(sql_store_of(store)->db, sql, &state, &error), error);
    return (enum job_state)state;
}

/* Log so far. */
static const char *logged(void)
{
    static char text[1 << 16];
    ssize_t bytes = pread(logger.fd, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    return text;
}

static void finish(void)
{
    store->ops->close(store);
    store = NULL;
    close(logger.fd);
}

/* Goal: whatever is broken, the other workers' jobs are queued again, those of the broken one that
 * can be as well, the log says which could not and why, and nothing aborts. */
static void a_broken_row_holds_up_nobody_else(void)
{
    static const struct {
        const char *sql;
        const char *says;
        int64_t left; /* jobs of the broken worker that stay leased */
    } cases[] = {
        {"UPDATE suites SET jobs_leased = 0 WHERE name = 's1'", "jobs_leased >= 0", 1},
        {"DELETE FROM job_specs WHERE job = 2", "job 2 has no spec", 1},
        {"DELETE FROM prices WHERE device = 'cuda'", "no price for pool \"bulk\"", 2},
        {"UPDATE jobs SET progress_ns = -5 WHERE id = 2", "cannot be charged: -5 ns", 1},
        {"UPDATE jobs SET progress_mm = 9223372036854775807 WHERE id = 2", "cannot be charged", 1},
        {"INSERT INTO accounts VALUES (1, 'cuda', 2000000, -1)", "-1 left over", 2},
        {"INSERT INTO attempts (job, epoch, worker, pool, device, tier, ending, device_ns,"
         " metres_mm, price_uusd_per_hour, cost_uusd) VALUES (2, 1, 1, 1, 'cpu', 1, 2, 0, 0, 0, 0)",
         "UNIQUE constraint failed", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        prepare();
        script(cases[i].sql);
        open_store();
        let_leases_end();
        for (int id = 1; id <= 2 * WORKERS; id++) {
            bool left = id == 2 || (id == 5 && cases[i].left == 2);
            if (state_of(id) != (left ? JOB_LEASED : JOB_QUEUED)) {
                TEST_FAIL("%s: job %d is %s", cases[i].sql, id, job_state_names[state_of(id)]);
            }
        }
        EXPECT_CONTAINS(logged(), "worker w0 is gone; 2 of its jobs are queued again");
        EXPECT_CONTAINS(logged(), "worker w2 is gone; 2 of its jobs are queued again");
        EXPECT_CONTAINS(logged(), "worker w1 is gone, and");
        EXPECT_CONTAINS(logged(), cases[i].says);
        finish();
    }
}

/* Goal: what cannot be queued again is tried again, less and less often, and succeeds when it can.
 * Method: the price that is missing is set in the end. */
static void what_is_broken_is_tried_again(void)
{
    int tries = 0;

    prepare();
    script("DELETE FROM prices WHERE device = 'cuda'");
    open_store();
    let_leases_end();
    for (int second = 0; second < 600; second++) {
        manual_clock_advance(&manual, NS_PER_S);
        sql_store_tick(sql_store_of(store));
    }
    for (const char *at = logged(); (at = strstr(at, "cannot be queued again")) != NULL; at++) {
        tries++;
    }
    EXPECT(tries >= 8 && tries <= 20);
    EXPECT_INT(state_of(2), JOB_LEASED);
    EXPECT_OK(store->ops->price_set(store, "", "cuda", 5, &error), error);
    manual_clock_advance(&manual, 64 * NS_PER_S);
    sql_store_tick(sql_store_of(store));
    EXPECT_INT(state_of(2), JOB_QUEUED);
    EXPECT_INT(state_of(5), JOB_QUEUED);
    EXPECT_CONTAINS(logged(), "worker w1 is gone; 2 of its jobs are queued again");
    finish();
}

static const char *failing_commit(void *context, enum statement statement, const char *sql)
{
    (void)context;
    return statement == STATEMENT_COMMIT ? "SELECT fails FROM nowhere" : sql;
}

static void no_commit(void *context)
{
    (void)context;
}

/* Goal: a sweep whose commit fails says nothing of what it did. */
static void only_what_is_committed_is_said(void)
{
    const struct sqlite_db_probe probe = {.text = failing_commit, .committed = no_commit};

    prepare();
    open_store();
    sqlite_db_set_probe(sql_store_of(store)->db, &probe);
    let_leases_end();
    EXPECT_CONTAINS(logged(), "sweep:");
    EXPECT(strstr(logged(), "queued again") == NULL);
    for (int id = 1; id <= 2 * WORKERS; id++) {
        EXPECT_INT(state_of(id), JOB_LEASED);
    }
    finish();
}

int main(void)
{
    char command[160];

    if (mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    int failed =
        TEST_RUN(TEST(a_broken_row_holds_up_nobody_else), TEST(what_is_broken_is_tried_again),
                 TEST(only_what_is_committed_is_said));
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command) != 0 ? 1 : failed;
}
