/*
 * Bills of attempts: device time, held against the age of their claims by the store's clock.
 *
 * Goal: no worker bills more time than has passed since it claimed the job, whichever way it says
 * so, and nothing that an honest one asks for is cut down. Method: time is the test's; workers ask
 * for an hour.
 */
#include "base/units.h"
#include "schemas/job_context.h"
#include "store/sql/ledger.h"
#include "store/sql/sql_store.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/manual_clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { TTL_MS = 15000 };

#define ASKED_NS NS_PER_HOUR

static char directory[] = "/tmp/swerve-bills-XXXXXX";
static char path[128];
static int serial;
static struct manual_clock manual;
static struct store *store;
static struct error error;
static struct job_lease lease;
static struct logger logger = {.fd = -1, .level = LOG_WARNING, .name = "test"};

static void open_store(void)
{
    const struct store_config config = {
        .clock = &manual.clock, .lease_ttl_ms = TTL_MS, .logger = &logger};
    EXPECT_OK(sql_store_open_stepped(path, &config, &store, &error), error);
}

static void pass_ms(int64_t ms)
{
    manual_clock_advance(&manual, ms * NS_PER_MS);
    sql_store_tick(sql_store_of(store));
}

static void claim(const char *worker_id)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms;
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", worker_id);
    EXPECT_OK(
        store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, &lease, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 1);
}

/* A new store with one job, which "w" has claimed. */
static void begin_rollouts(uint32_t rollouts)
{
    struct store_submit_result result;
    const struct job_spec spec = {.key = "key",
                                  .suite_id = "s",
                                  .scenario_id = "a",
                                  .planner = "p",
                                  .pool = "bulk",
                                  .backend = "cpu",
                                  .rollout_count = rollouts,
                                  .attempts_max = 9};
    snprintf(path, sizeof path, "%s/%d.db", directory, serial++);
    manual_clock_init(&manual);
    open_store();
    EXPECT_OK(store->ops->submit(store, "s", 1, &spec, 1, &result, &error), error);
    claim("w");
}

static void begin(void)
{
    begin_rollouts(1);
}

static enum status complete(int64_t epoch, int64_t device_ns)
{
    struct store_completion_result result;
    struct job_completion completion = {.job_id = lease.job_id,
                                        .epoch = epoch,
                                        .worker_id = "w",
                                        .kind = COMPLETION_FAILED,
                                        .device_ns = device_ns};
    EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
    return result.status;
}

/* All that was charged. */
static int64_t charged_ns(void)
{
    struct store_ledger_row rows[8];
    uint32_t count = 0;
    int64_t sum = 0;
    EXPECT_OK(store->ops->ledger(store, NULL, rows, 8, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        sum += rows[i].totals.device_ns;
    }
    return sum;
}

/* The most that an attempt of this age bills: a 64th more and 100 ms. */
static int64_t most_ns(int64_t age_ms)
{
    return (age_ms * 65 / 64 + 100) * NS_PER_MS;
}

static void finish(void)
{
    store->ops->close(store);
}

static void completions_bill_no_more_than_has_passed(void)
{
    char text[512] = "";
    snprintf(path, sizeof path, "%s/log", directory);
    logger.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    begin();
    pass_ms(6400);
    EXPECT_INT(complete(lease.epoch, ASKED_NS), STATUS_OK);
    EXPECT_INT(charged_ns(), most_ns(6400));
    EXPECT(pread(logger.fd, text, sizeof text - 1, 0) > 0);
    EXPECT_CONTAINS(text, "asked for 3600.000 s of device time 6.400 s after it had claimed");
    finish();
    close(logger.fd);
    logger.fd = -1;
}

/* Goal: outcomes of a job take no more device time together than its attempts were charged, also
 * where an attempt before has kept some of them; what honest ones say stays. */
static void outcomes_take_no_more_than_is_charged(void)
{
    static const int64_t asked_ms[][2] = {
        {ASKED_NS / NS_PER_MS, ASKED_NS / NS_PER_MS}, {6000, ASKED_NS / NS_PER_MS}, {3000, 400}};
    const struct store_outcome_filter filter = {.limit = 9};
    static struct outcome sent[2];
    static struct outcome found[9];
    for (int attempts = 1; attempts < 3; attempts++) {
        for (size_t i = 0; i < sizeof asked_ms / sizeof *asked_ms; i++) {
            struct store_completion_result result;
            struct job_completion completion = {.worker_id = "w", .outcomes = sent};
            uint32_t count = 0;
            begin_rollouts(2);
            if (attempts == 2) {
                pass_ms(640);
                EXPECT_INT(complete(lease.epoch, ASKED_NS), STATUS_OK);
                pass_ms(60000);
                claim("w");
            }
            pass_ms(6400);
            completion.job_id = lease.job_id;
            completion.epoch = lease.epoch;
            completion.outcome_count = 2;
            for (int k = 0; k < 2; k++) {
                job_context_copy(&lease.spec, &sent[k]);
                sent[k].verdict = VERDICT_PASS;
                sent[k].device_ns = asked_ms[i][k] * NS_PER_MS;
                snprintf(sent[k].branch_id, sizeof sent[k].branch_id, "%s", k == 0 ? "" : "b");
                completion.device_ns += sent[k].device_ns;
            }
            EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
            EXPECT_INT(result.status, STATUS_OK);
            EXPECT_OK(store->ops->outcomes(store, &filter, found, &count, &error), error);
            EXPECT_INT(count, 2);
            int64_t sum_ns = found[0].device_ns + found[1].device_ns;
            EXPECT_INT(sum_ns, i == 2 ? 3400 * NS_PER_MS : charged_ns());
            EXPECT(found[0].device_ns == (i == 0 ? sum_ns : sent[0].device_ns));
            finish();
        }
    }
}

static void what_has_passed_is_charged(void)
{
    begin();
    pass_ms(6400);
    EXPECT_INT(complete(lease.epoch, 6400 * NS_PER_MS), STATUS_OK);
    EXPECT_INT(charged_ns(), 6400 * NS_PER_MS);
    finish();
}

/* Time that a heartbeat has reported is charged when the worker vanishes. */
static void heartbeats_report_no_more_than_has_passed(void)
{
    const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    int64_t cancelled[1];
    uint32_t count = 0;
    int64_t ttl_ms;
    begin();
    pass_ms(3200);
    const struct store_progress progress = {
        .job_id = lease.job_id, .epoch = lease.epoch, .device_ns = ASKED_NS};
    EXPECT_OK(
        store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error),
        error);
    pass_ms(TTL_MS + 1);
    EXPECT_INT(charged_ns(), most_ns(3200));
    finish();
}

/* Of an attempt that was lost, before and after somebody else has claimed the job. */
static void late_ones_bill_no_more_than_has_passed(void)
{
    for (int claimed_again = 0; claimed_again < 2; claimed_again++) {
        begin();
        int64_t epoch = lease.epoch;
        pass_ms(TTL_MS + 1000);
        if (claimed_again) {
            claim("other");
        }
        EXPECT_INT(complete(epoch, ASKED_NS), claimed_again ? STATUS_STALE : STATUS_OK);
        EXPECT_INT(charged_ns(), most_ns(TTL_MS + 1000));
        finish();
    }
}

/* Attempts that are older than the store's opening, by their own completion and as lost ones that
 * somebody else has claimed since. */
static void caps_outlive_the_opening(void)
{
    for (int claimed_again = 0; claimed_again < 2; claimed_again++) {
        begin();
        int64_t epoch = lease.epoch;
        finish();
        manual_clock_advance(&manual, 60 * NS_PER_S);
        open_store();
        pass_ms(20000);
        if (claimed_again) {
            claim("other");
            finish();
            open_store();
        }
        EXPECT_INT(complete(epoch, ASKED_NS), claimed_again ? STATUS_STALE : STATUS_OK);
        EXPECT_INT(charged_ns(), most_ns(60000 + 20000));
        finish();
    }
}

static void script(const char *sql)
{
    struct db *db = NULL;
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

/* Leases that an older program made say no time: nothing is known to have passed. */
static void claims_at_unknown_times_bill_nothing(void)
{
    begin();
    pass_ms(6400);
    finish();
    script("UPDATE jobs SET claimed_ns = NULL");
    open_store();
    pass_ms(6400);
    EXPECT_INT(complete(lease.epoch, ASKED_NS), STATUS_OK);
    EXPECT_INT(charged_ns(), 0);
    finish();
}

/* A clock that went back makes nobody pay. */
static void clocks_that_go_back_charge_nothing_below_zero(void)
{
    begin();
    manual_clock_advance(&manual, -500 * NS_PER_S);
    EXPECT_INT(complete(lease.epoch, ASKED_NS), STATUS_OK);
    EXPECT_INT(charged_ns(), most_ns(0));
    finish();
}

/* Figures of outcomes have the bounds of bills, so that their sums do. */
static void outcomes_beyond_all_bounds_are_refused(void)
{
    static struct outcome outcome;
    struct store_completion_result result;
    begin();
    struct job_completion completion = {.job_id = lease.job_id,
                                        .epoch = lease.epoch,
                                        .worker_id = "w",
                                        .outcomes = &outcome,
                                        .outcome_count = 1};
    job_context_copy(&lease.spec, &outcome);
    outcome.device_ns = LEDGER_ATTEMPT_NS_MAX + 1;
    EXPECT_INT(store->ops->complete(store, &completion, 1, &result, &error), STATUS_BAD_INPUT);
    outcome.device_ns = LEDGER_ATTEMPT_NS_MAX;
    EXPECT_OK(store->ops->complete(store, &completion, 1, &result, &error), error);
    finish();
}

int main(void)
{
    char command[160];

    if (mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    int failed = TEST_RUN(
        TEST(completions_bill_no_more_than_has_passed), TEST(outcomes_take_no_more_than_is_charged),
        TEST(what_has_passed_is_charged), TEST(heartbeats_report_no_more_than_has_passed),
        TEST(late_ones_bill_no_more_than_has_passed), TEST(caps_outlive_the_opening),
        TEST(claims_at_unknown_times_bill_nothing),
        TEST(clocks_that_go_back_charge_nothing_below_zero),
        TEST(outcomes_beyond_all_bounds_are_refused));
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command) != 0 ? 1 : failed;
}
