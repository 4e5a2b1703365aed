/*
 * The embedded store under kill -9.
 *
 * Method: a child process opens the store, submits, claims and completes, and reports each
 * acknowledged call through a pipe; the parent reads a random number of reports and kills it, again
 * and again over the same file. After each kill: every invariant of the file holds and everything
 * acknowledged is there. In the end the rest is worked off: each job is done exactly once.
 */
#include "base/rng.h"
#include "schemas/job_context.h"
#include "store/api/store.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/faults/invariants.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES = 25, SUITES = 4, JOBS = 80, BATCH = 5, REPORTS_MAX = 100000 };

enum report_kind { REPORT_SUBMITTED = 1, REPORT_CLAIMED, REPORT_DONE };

struct report {
    int32_t kind;
    int32_t suite;
    int64_t job_id;
    int64_t epoch;
};

static char path[128];
static struct error error;
static struct job_spec specs[JOBS];
static struct store_submit_result submitted[JOBS];
static struct job_lease leases[BATCH];
static struct outcome outcomes[BATCH];
static struct outcome found[8];
static struct job_completion completions[BATCH];
static struct store_completion_result completed[BATCH];
static struct store_job job;

static struct report reports[REPORTS_MAX];
static size_t report_count;

/* ---- the child ---- */

static void make_specs(int suite)
{
    memset(specs, 0, sizeof specs);
    for (int i = 0; i < JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "k-%d-%d", suite, i);
        snprintf(specs[i].scenario_id, sizeof specs[i].scenario_id, "s-%d", i);
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 100;
    }
}

static void report(int fd, enum report_kind kind, int suite, int64_t job_id, int64_t epoch)
{
    struct report record = {.kind = kind, .suite = suite, .job_id = job_id, .epoch = epoch};
    if (fd >= 0 && write(fd, &record, sizeof record) != (ssize_t)sizeof record) {
        _exit(3);
    }
}

static bool submit_suite(struct store *store, int suite, int fd)
{
    char name[32];
    snprintf(name, sizeof name, "suite-%d", suite);
    make_specs(suite);
    if (store->ops->submit(store, name, 1, specs, JOBS, submitted, &error) != STATUS_OK) {
        return false;
    }
    report(fd, REPORT_SUBMITTED, suite, submitted[0].job_id, 0);
    return true;
}

/* Claims and completes one batch; false on error. *count of it. */
static bool work_batch(struct store *store, const char *worker_id, int fd, uint32_t *count)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    int64_t ttl_ms = 0;

    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", worker_id);
    if (store->ops->claim(store, &worker, fresh_claim_id(), BATCH, 0, leases, count, &ttl_ms,
                          &error) != STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < *count; i++) {
        report(fd, REPORT_CLAIMED, 0, leases[i].job_id, leases[i].epoch);
        memset(&completions[i], 0, sizeof completions[i]);
        completions[i].job_id = leases[i].job_id;
        completions[i].epoch = leases[i].epoch;
        memcpy(completions[i].worker_id, worker.worker_id, sizeof worker.worker_id);
        completions[i].device_ns = 1000 + leases[i].job_id;
        job_context_copy(&leases[i].spec, &outcomes[i]);
        completions[i].outcomes = &outcomes[i];
        completions[i].outcome_count = 1;
    }
    if (*count > 0 &&
        store->ops->complete(store, completions, *count, completed, &error) != STATUS_OK) {
        return false;
    }
    for (uint32_t i = 0; i < *count; i++) {
        if (completed[i].status == STATUS_OK) {
            report(fd, REPORT_DONE, 0, leases[i].job_id, leases[i].epoch);
        }
    }
    return true;
}

static _Noreturn void live(int life, int fd)
{
    struct store *store = NULL;
    char worker_id[32];
    uint32_t count = 1;

    if (store_sqlite_open(path, NULL, &store, &error) != STATUS_OK) {
        _exit(2);
    }
    for (int i = 0; i < 3 && life > 0; i++) { /* those who died before */
        snprintf(worker_id, sizeof worker_id, "life-%d", life - 1 - i);
        if (store->ops->worker_gone(store, worker_id, &error) != STATUS_OK) {
            _exit(2);
        }
    }
    snprintf(worker_id, sizeof worker_id, "life-%d", life);
    for (int round = 0; count > 0; round++) {
        if (round < SUITES && !submit_suite(store, (life + round) % SUITES, fd)) {
            _exit(2);
        }
        if (!work_batch(store, worker_id, fd, &count)) {
            _exit(2);
        }
    }
    store->ops->close(store);
    /* Out of work: wait for the end rather than meet the reader with an exit it did not ask for. */
    close(fd);
    for (;;) {
        pause();
    }
}

/* ---- the parent ---- */

static bool read_report(int fd)
{
    char *to = (char *)&reports[report_count];
    size_t used = 0;

    while (used < sizeof(struct report)) {
        ssize_t got = read(fd, to + used, sizeof(struct report) - used);
        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
    }
    report_count++;
    return true;
}

/* One life: returns the child's wait status. */
static int run_life(int life, size_t reports_until_death)
{
    int ends[2];
    int status = 0;

    EXPECT_INT(pipe(ends), 0);
    /* One page of reports: the child cannot run far ahead of its death. */
    EXPECT(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        close(ends[0]);
        live(life, ends[1]);
    }
    close(ends[1]);
    size_t until = report_count + reports_until_death;
    while (report_count < until && report_count < REPORTS_MAX && read_report(ends[0])) {
    }
    kill(child, SIGKILL);
    while (report_count < REPORTS_MAX && read_report(ends[0])) { /* what it said before it died */
    }
    close(ends[0]);
    EXPECT_INT(waitpid(child, &status, 0), child);
    return status;
}

static void check_reports(struct store *store, size_t first)
{
    for (size_t i = first; i < report_count; i++) {
        const struct report *said = &reports[i];
        struct store_outcome_filter filter = {.limit = 8, .job_id = said->job_id};
        uint32_t count = 0;
        EXPECT_OK(store->ops->job(store, said->job_id, &job, &error), error);
        if (said->kind == REPORT_CLAIMED) {
            EXPECT(job.epoch >= said->epoch);
        } else if (said->kind == REPORT_DONE) {
            EXPECT_INT(job.state, JOB_DONE);
            EXPECT_INT(job.epoch, said->epoch);
            EXPECT_OK(store->ops->outcomes(store, &filter, found, &count, &error), error);
            EXPECT_INT(count, 1);
        }
    }
}

/* Goal: no acknowledged call is lost and none counts twice, wherever the process is killed. */
static void killed_processes_lose_nothing(void)
{
    struct store *store = NULL;
    struct store_suite_status status;
    struct store_config patient = {.lease_ttl_ms = 1};
    char why[256];
    size_t first = 0;
    uint32_t count = 0;

    for (int life = 0; life < LIVES; life++) {
        int end = run_life(life, rng_mix((uint64_t)life + 100) % 40);
        EXPECT(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
        if (access(path, F_OK) != 0) {
            continue; /* it did not get that far */
        }
        EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
        check_reports(store, life % 5 == 4 ? 0 : first);
        first = report_count;
        store->ops->close(store);
        if (!invariants_hold(path, why, sizeof why)) {
            TEST_FAIL("life %d: %s", life, why);
        }
    }
    EXPECT(report_count > 100);
    printf("# %d killed, %zu acknowledged calls\n", LIVES, report_count);

    EXPECT_OK(store_sqlite_open(path, &patient, &store, &error), error);
    for (int suite = 0; suite < SUITES; suite++) {
        EXPECT(submit_suite(store, suite, -1));
    }
    for (int life = 0; life < LIVES; life++) {
        char worker_id[32];
        snprintf(worker_id, sizeof worker_id, "life-%d", life);
        EXPECT_OK(store->ops->worker_gone(store, worker_id, &error), error);
    }
    do {
        EXPECT(work_batch(store, "last", -1, &count));
    } while (count > 0);
    check_reports(store, 0);
    for (int suite = 0; suite < SUITES; suite++) {
        char name[32];
        snprintf(name, sizeof name, "suite-%d", suite);
        EXPECT_OK(store->ops->suite_status(store, name, &status, &error), error);
        EXPECT_INT(status.jobs[JOB_DONE], JOBS);
        EXPECT_INT(status.rollouts[VERDICT_PASS], JOBS);
    }
    store->ops->close(store);
    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("in the end: %s", why);
    }
}

int main(void)
{
    char directory[] = "/tmp/swerve-crash-XXXXXX";
    char command[128];

    if (mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    snprintf(path, sizeof path, "%s/store.db", directory);
    int failed = TEST_RUN(TEST(killed_processes_lose_nothing));
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0 ? failed : 1;
}
