/*
 * The table of what stored numbers and texts may be.
 *
 * Goal: what a check finds is what the door refuses, member by member; no sum of what workers may
 * report overflows; stores of earlier versions, whose names the door would not let in, go on.
 * Method: each member that a table has is set beyond its range in a stored row; attempts that bill
 * all that one can, more of them than an integer holds; names put into the database from outside.
 */
#include "store/door/invariants.h"

#include "base/check.h"
#include "base/units.h"
#include "store/api/store.h"
#include "store/check/check.h"
#include "store/keep/backup.h"
#include "store/sql/sqlite_db.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"
#include "tests/store/manual_clock.h"

#include <inttypes.h>
#include <stdlib.h>

static char path[160];
static int serial;
static struct manual_clock manual;
static struct store *store;
static struct error error;
static struct job_spec specs[256];
static struct store_submit_result submitted[256];
static struct job_lease leases[256];
static struct job_completion completions[256];
static struct store_completion_result completed[256];

static void open_store(bool fresh)
{
    /* Nobody beats here. */
    const struct store_config config = {.clock = &manual.clock, .lease_ttl_ms = INT64_C(1) << 40};
    if (fresh) {
        manual_clock_init(&manual);
        snprintf(path, sizeof path, "%s/%d.db", support_directory(), serial++);
    }
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
}

static void close_store(void)
{
    store->ops->close(store);
}

static void run_sql(const char *sql)
{
    struct db *db = NULL;
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

struct found {
    int64_t count;
    char text[4000]; /* the first of them */
};

static void on_finding(void *context, const struct store_check_finding *finding)
{
    struct found *found = context;
    if (!finding->note) {
        size_t used = strlen(found->text);
        found->count++;
        snprintf(found->text + used, sizeof found->text - used, "%s: %s\n", finding->place,
                 finding->text);
    }
}

static struct found check(void)
{
    struct found found = {.count = 0};
    struct store_check_summary summary;
    const struct store_check_options options = {
        .skip_artifacts = true, .findings_max = 100, .found = on_finding, .context = &found};
    EXPECT_OK(store_check(path, &options, &summary, &error), error);
    return found;
}

static void submit(const char *suite, int first, uint32_t count)
{
    memset(specs, 0, count * sizeof *specs);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "key-%d", first + (int)i);
        strcpy(specs[i].scenario_id, "s");
        strcpy(specs[i].planner, "builtin:p");
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 1;
    }
    EXPECT_OK(store->ops->submit(store, suite, 1, specs, count, submitted, &error), error);
}

static uint32_t claim(uint32_t max)
{
    const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), max, 0, leases, &count, &ttl_ms,
                                &error),
              error);
    return count;
}

/* ---- sums ---- */

/* 9,300 attempts, each of which bills all that one can after eleven days: device time, metres and
 * operations are more than an integer holds. */
static void no_bill_overflows_a_sum(void)
{
    enum { JOBS = 9300, BATCH = 186 };
    struct keep_summary summary;
    const struct keep_options options = {.wait_ms = 1000};
    struct store_ledger_row rows[4];
    uint32_t count = 0;
    char place[200];
    open_store(true);
    for (int first = 0; first < JOBS; first += BATCH) {
        submit("a", first, BATCH);
    }
    for (int done = 0; done < JOBS; done += BATCH) {
        EXPECT_INT(claim(BATCH), BATCH);
        manual_clock_advance(&manual, LEDGER_ATTEMPT_NS_MAX);
        for (int i = 0; i < BATCH; i++) {
            completions[i] = (struct job_completion){.job_id = leases[i].job_id,
                                                     .epoch = leases[i].epoch,
                                                     .worker_id = "w",
                                                     .kind = COMPLETION_FAILED,
                                                     .device_ns = LEDGER_ATTEMPT_NS_MAX,
                                                     .metres_mm = LEDGER_ATTEMPT_MM_MAX,
                                                     .mflop = LEDGER_ATTEMPT_MFLOP_MAX};
        }
        EXPECT_OK(store->ops->complete(store, completions, BATCH, completed, &error), error);
    }
    EXPECT_OK(store->ops->ledger(store, NULL, rows, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(rows[0].totals.attempts, JOBS);
    EXPECT(rows[0].totals.device_ns == INT64_MAX); /* the sum of the attempts, to the last one */
    EXPECT(rows[0].totals.mflop == INT64_MAX);
    EXPECT(rows[0].totals.metres_mm == LEDGER_ATTEMPT_MM_MAX * JOBS);
    close_store();
    struct found found = check();
    if (found.count > 0) {
        TEST_FAIL("%s", found.text);
    }
    snprintf(place, sizeof place, "%s.backup", path);
    EXPECT_OK(keep_backup(path, place, &options, &summary, &error), error);
}

/* Operations are no more than the device time has room for. */
static void operations_take_their_time(void)
{
    struct store_ledger_row rows[4];
    uint32_t count = 0;
    open_store(true);
    submit("a", 0, 1);
    EXPECT_INT(claim(1), 1);
    completions[0] = (struct job_completion){.job_id = leases[0].job_id,
                                             .epoch = leases[0].epoch,
                                             .worker_id = "w",
                                             .kind = COMPLETION_FAILED,
                                             .device_ns = 1000,
                                             .mflop = LEDGER_ATTEMPT_MFLOP_MAX};
    EXPECT_OK(store->ops->complete(store, completions, 1, completed, &error), error);
    EXPECT_OK(store->ops->ledger(store, NULL, rows, 4, &count, &error), error);
    EXPECT_INT(rows[0].totals.mflop, (INT64_C(1000) + LEDGER_MFLOP_SLACK_NS) * LEDGER_MFLOP_PER_NS);
    close_store();
    EXPECT_INT(check().count, 0);
}

/* ---- rows beyond the table ---- */

static int64_t read_one(const char *column)
{
    struct db *db = NULL;
    char sql[100];
    int64_t value = 0;
    snprintf(sql, sizeof sql, "SELECT %s FROM outcomes", column);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_READER, &db, &error), error);
    EXPECT_OK(sqlite_db_scalar(db, sql, &value, &error), error);
    db_close(db);
    return value;
}

static void set_one(const char *column, int64_t value)
{
    char sql[100];
    snprintf(sql, sizeof sql, "UPDATE outcomes SET %s = %" PRId64, column, value);
    run_sql(sql);
}

/* One outcome, whose numbers are then set beyond what the door lets in, one after the other. */
static void a_check_finds_what_the_door_refuses(void)
{
    static const struct {
        const char *column;
        int64_t value;
    } rows[] = {{"ticks", -1},           {"reasons", 1 << REASON_BIT_COUNT},
                {"metres_mm", -1},       {"metres_mm", OUTCOME_MM_MAX + 1},
                {"collision_agent", -2}, {"collision_kind", 6},
                {"at_fault", 2},         {"pages_used_percent", 101},
                {"peak_mflops", -1},     {"measured_ticks", -1},
                {"collision_count", -1}, {"mflop", LEDGER_ATTEMPT_MFLOP_MAX + 1}};
    struct outcome outcome = {.ticks = 10, .metrics.collision_agent = -1};
    open_store(true);
    submit("a", 0, 1);
    EXPECT_INT(claim(1), 1);
    strcpy(outcome.scenario_id, "s");
    strcpy(outcome.planner, "builtin:p");
    strcpy(outcome.pool, "bulk");
    completions[0] = (struct job_completion){.job_id = leases[0].job_id,
                                             .epoch = leases[0].epoch,
                                             .worker_id = "w",
                                             .outcomes = &outcome,
                                             .outcome_count = 1};
    EXPECT_OK(store->ops->complete(store, completions, 1, completed, &error), error);
    close_store();
    EXPECT_INT(check().count, 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char said[120];
        int64_t was = read_one(rows[i].column);
        set_one(rows[i].column, rows[i].value);
        snprintf(said, sizeof said, "has %s %" PRId64 ", expected", rows[i].column, rows[i].value);
        EXPECT_CONTAINS(check().text, said);
        set_one(rows[i].column, was);
        EXPECT_INT(check().count, 0);
    }
}

/* ---- names of earlier versions ---- */

static void old_names_are_listed_and_cancelled(void)
{
    static const char *const names[] = {"..", "a/../b", "a\nb", "\x1b[31mred"};
    char ids[8][LIMIT_ID_BYTES];
    char socket_path[200];
    char url[220];
    uint32_t count = 0;
    int64_t cancelled = 0;
    struct store_server *server = NULL;
    struct store *client = NULL;
    open_store(true);
    for (int i = 0; i < 4; i++) {
        char name[LIMIT_ID_BYTES];
        snprintf(name, sizeof name, "suite-%d", i);
        submit(name, 10 * i, 2);
    }
    close_store();
    run_sql("UPDATE suites SET name = '..' WHERE name = 'suite-0';"
            "UPDATE suites SET name = 'a/../b' WHERE name = 'suite-1';"
            "UPDATE suites SET name = 'a' || char(10) || 'b' WHERE name = 'suite-2';"
            "UPDATE suites SET name = char(27) || '[31mred' WHERE name = 'suite-3';"
            "UPDATE suites SET digest = NULL"); /* as of an earlier version */
    EXPECT_INT(check().count, 0);
    open_store(false);
    snprintf(socket_path, sizeof socket_path, "%s.s", path);
    snprintf(url, sizeof url, "unix:%s", socket_path);
    EXPECT_OK(store_server_start(store, support_listen(socket_path), NULL, &server, &error), error);
    EXPECT_OK(store_http_open(url, NULL, &client, &error), error);
    EXPECT_OK(client->ops->suites(client, ids, 8, &count, &error), error);
    EXPECT_INT(count, 4);
    for (int i = 0; i < 4; i++) {
        struct store_suite_status status;
        struct store *by = i % 2 == 0 ? client : store;
        EXPECT_TEXT(ids[3 - i], names[i]);
        EXPECT_OK(by->ops->suite_status(by, names[i], &status, &error), error);
        EXPECT_INT(status.jobs[JOB_QUEUED], 2);
        EXPECT_OK(by->ops->cancel(by, names[i], &cancelled, &error), error);
        EXPECT_INT(cancelled, 2);
    }
    client->ops->close(client);
    store_server_stop(server);
    close_store();
    EXPECT_INT(check().count, 0);
}

int main(void)
{
    return TEST_RUN(TEST(no_bill_overflows_a_sum), TEST(operations_take_their_time),
                    TEST(a_check_finds_what_the_door_refuses),
                    TEST(old_names_are_listed_and_cancelled));
}
