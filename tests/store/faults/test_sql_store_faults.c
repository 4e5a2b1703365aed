/*
 * The store on a disk that fails, and short of descriptors, locks and sockets.
 *
 * Method: the disk (disk.h) lets the Nth call of some kind fail, once or from then on. A fixed
 * script of calls is played for N = 1, 2, .. until it runs through. After each, with the disk well
 * again: what was acknowledged is there, what was not is there as a whole or not at all, every
 * invariant of the file holds, and the store goes on.
 *
 * SWERVE_TEST_LONG plays every N, otherwise some, and sanitizers fewer.
 */
#include "schemas/job_context.h"
#include "store/api/store.h"
#include "store/ownership/owner.h"
#include "store/sql/group_commit.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/faults/disk.h"
#include "tests/store/faults/invariants.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- the script ---- */

enum { JOBS = 6, ROUNDS = 2 };

static char directory[64];
static char path[128];
static int serial;
static struct store *store;
static struct error error;
static const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
static struct job_spec specs[JOBS];
static struct store_submit_result submitted[JOBS];
static struct job_lease leases[JOBS];
static struct outcome outcome;
static struct outcome found[64];
static struct job_completion completion;
static struct store_completion_result completed;
static struct store_job job;

/* Answers that the script got, and its tries. */
static struct {
    bool submitted[ROUNDS];
    int64_t job_ids[ROUNDS][JOBS];
    int64_t done[ROUNDS * JOBS];
    int done_count;
    int refused;
    char artifact[SHA256_HEX_BYTES];
} said;

static void new_path(void)
{
    snprintf(path, sizeof path, "%s/%d.db", directory, serial++);
}

static void remove_path(void)
{
    char command[200];
    disk_is_well();
    snprintf(command, sizeof command, "rm -rf '%s'*", path);
    EXPECT_INT(system(command), 0);
}

static void make_specs(int round)
{
    memset(specs, 0, sizeof specs);
    for (int i = 0; i < JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "k-%d-%d", round, i);
        snprintf(specs[i].scenario_id, sizeof specs[i].scenario_id, "s-%d", i);
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 5;
    }
}

static void play_round(int round)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    uint8_t data[5000];

    make_specs(round);
    /* A budget that some of the jobs spend, and the next round raises. */
    if (store->ops->submit_as(store, NULL, "suite", 1, SUITE_MINING, 1 + round, specs, JOBS,
                              submitted, &error) == STATUS_OK) {
        said.submitted[round] = true;
        for (int i = 0; i < JOBS; i++) {
            said.job_ids[round][i] = submitted[i].job_id;
        }
    } else {
        said.refused++;
    }
    memset(data, round, sizeof data);
    if (store->ops->artifact_put(store, data, sizeof data, said.artifact, &error) != STATUS_OK) {
        said.artifact[0] = '\0';
    }
    if (store->ops->claim(store, &worker, fresh_claim_id(), JOBS / 2, 0, leases, &count, &ttl_ms,
                          &error) != STATUS_OK) {
        said.refused++;
        count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        memset(&completion, 0, sizeof completion);
        completion.job_id = leases[i].job_id;
        completion.epoch = leases[i].epoch;
        strcpy(completion.worker_id, "w");
        completion.kind = i % 3 == 2 ? COMPLETION_RELEASED : COMPLETION_DONE;
        completion.device_ns = 12345678;
        if (completion.kind == COMPLETION_DONE) {
            memcpy(completion.artifact_hash, said.artifact, sizeof said.artifact);
            job_context_copy(&leases[i].spec, &outcome);
            completion.outcomes = &outcome;
            completion.outcome_count = 1;
        }
        if (store->ops->complete(store, &completion, 1, &completed, &error) != STATUS_OK) {
            said.refused++;
        } else if (completed.status == STATUS_OK && completion.kind == COMPLETION_DONE) {
            said.done[said.done_count++] = completion.job_id;
        }
    }
}

/* Everything acknowledged is in the store. */
static void check_said(void)
{
    uint32_t count = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; said.submitted[round] && i < JOBS; i++) {
            EXPECT_OK(store->ops->job(store, said.job_ids[round][i], &job, &error), error);
        }
    }
    for (int i = 0; i < said.done_count; i++) {
        struct store_outcome_filter filter = {.limit = 8, .job_id = said.done[i]};
        EXPECT_OK(store->ops->job(store, said.done[i], &job, &error), error);
        EXPECT_INT(job.state, JOB_DONE);
        EXPECT_OK(store->ops->outcomes(store, &filter, found, &count, &error), error);
        EXPECT_INT(count, 1);
        if (found[0].artifact_hash[0] != '\0') {
            void *data = NULL;
            size_t bytes = 0;
            EXPECT_OK(
                store->ops->artifact_get(store, found[0].artifact_hash, &data, &bytes, &error),
                error);
            free(data);
        }
    }
}

/* With the disk well again, the whole script runs to the end. */
static void finish_all(void)
{
    uint32_t count = 1;
    int64_t ttl_ms = 0;

    for (int round = 0; round < ROUNDS; round++) {
        make_specs(round);
        EXPECT_OK(store->ops->submit_as(store, NULL, "suite", 1, SUITE_CLASS_SAME,
                                        STORE_BUDGET_UUSD_MAX, specs, JOBS, submitted, &error),
                  error);
    }
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    while (count > 0) {
        EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), JOBS, 0, leases, &count,
                                    &ttl_ms, &error),
                  error);
        for (uint32_t i = 0; i < count; i++) {
            memset(&completion, 0, sizeof completion);
            completion.job_id = leases[i].job_id;
            completion.epoch = leases[i].epoch;
            strcpy(completion.worker_id, "w");
            job_context_copy(&leases[i].spec, &outcome);
            completion.outcomes = &outcome;
            completion.outcome_count = 1;
            EXPECT_OK(store->ops->complete(store, &completion, 1, &completed, &error), error);
            EXPECT_INT(completed.status, STATUS_OK);
        }
    }
    struct store_suite_status status;
    EXPECT_OK(store->ops->suite_status(store, "suite", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_DONE], ROUNDS * JOBS);
    EXPECT_INT(status.rollouts[VERDICT_PASS], ROUNDS * JOBS);
}

struct fault {
    unsigned calls;
    int code;
    bool by_path; /* through ownership's lock, socket and server, not the embedded backend alone */
};

enum { BY_PATH_DEADLINE_MS = 200 };

static enum status open_face(const struct fault *fault)
{
    return fault->by_path ? store_shared_open(path, NULL, store_sqlite_open, BY_PATH_DEADLINE_MS,
                                              &store, &error)
                          : store_sqlite_open(path, NULL, &store, &error);
}

/* Looking, while the disk is ill, answers or says why not. */
static void look_around(void)
{
    struct store_suite_status status;
    uint32_t count = 0;
    void *data = NULL;
    size_t bytes = 0;
    struct store_outcome_filter filter = {.limit = 8};

    error.text[0] = '\0';
    EXPECT(store->ops->suite_status(store, "suite", &status, &error) == STATUS_OK ||
           strlen(error.text) > 10);
    error.text[0] = '\0';
    EXPECT(store->ops->outcomes(store, &filter, found, &count, &error) == STATUS_OK ||
           strlen(error.text) > 10);
    error.text[0] = '\0';
    if (said.artifact[0] != '\0' &&
        store->ops->artifact_get(store, said.artifact, &data, &bytes, &error) != STATUS_OK) {
        EXPECT(strlen(error.text) > 10);
        data = NULL;
    }
    free(data);
}

/* Plays the script with the Nth call failing. False: it ran through without meeting the fault. */
static bool play(const struct fault *fault, int64_t at, bool forever)
{
    char why[256];

    new_path();
    memset(&said, 0, sizeof said);
    error.text[0] = '\0';
    disk_fail(fault->calls, at, forever, fault->code);
    if (open_face(fault) == STATUS_OK) {
        for (int round = 0; round < ROUNDS; round++) {
            play_round(round);
            look_around();
        }
        bool hit = disk_fail_hits() > 0;
        disk_is_well();
        if (hit && said.refused > 0 && !forever &&
            (fault->code == ENOSPC || fault->code == DISK_SHORT)) {
            /* Space was short for a moment; the store goes on, unless a sync met the shortage. */
            make_specs(0);
            if (store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error) !=
                STATUS_OK) {
                EXPECT_CONTAINS(error.text, "stopped writing");
            }
        }
        store->ops->close(store);
    } else {
        EXPECT(disk_fail_hits() > 0);
        EXPECT(strlen(error.text) > 10);
        disk_is_well();
    }
    bool met = disk_fail_hits() > 0;
    EXPECT_OK(open_face(fault), error);
    check_said();
    finish_all();
    check_said();
    store->ops->close(store);
    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("call %d fails %s: %s", (int)at, forever ? "for ever" : "once", why);
    }
    remove_path();
    return met;
}

/* Every call, or those of opening the file and then one in so many: others for other faults, and
 * others each day. */
static void play_all(const struct fault *fault)
{
    enum { DAY_S = 86400, OPENING = 8 };
    int64_t step = getenv("SWERVE_TEST_LONG") != NULL ? 1 : test_rounds(37, 149);
    int64_t today = time(NULL) / DAY_S % step;
    int64_t plays = 0;
    int64_t calls = 0;

    for (int forever = 0; forever < 2; forever++) {
        int64_t at = 1 + (step > 1 ? (fault->code + forever) & 3 : 0);
        while (play(fault, at, forever == 1)) {
            at += at < OPENING ? 1 : at == OPENING ? 1 + today : step;
            plays++;
        }
        calls = at - 1;
    }
    printf("# %lld calls, %lld plays, day %lld of %lld\n", (long long)calls, (long long)plays,
           (long long)today, (long long)step);
    EXPECT(plays > 8);
}

/* Goal: no failure of any call at any time, single or lasting, loses or doubles anything. */
static void disks_that_are_full(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_CHANGE, .code = ENOSPC});
}

static void disks_that_are_broken(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_CHANGE, .code = EIO});
}

static void writes_that_are_short(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_WRITE, .code = DISK_SHORT});
}

static void syncs_that_fail(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_SYNC, .code = EIO});
}

static void reads_that_fail(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_READ, .code = EIO});
}

static void descriptors_that_run_out(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_OPEN, .code = EMFILE});
}

/* Goal: the same for the process that owns the path and serves it: lock, socket, server. */
static void owners_on_failing_machines(void)
{
    play_all(&(struct fault){.calls = DISK_CALL_ANY, .code = EIO, .by_path = true});
    play_all(&(struct fault){.calls = DISK_CALL_LOCK | DISK_CALL_SOCKET | DISK_CALL_OPEN,
                             .code = EMFILE,
                             .by_path = true});
}

/* Goal: a file system whose locks keep nobody out is refused, and nothing is left open. */
static void locks_that_only_pretend_are_refused(void)
{
    new_path();
    disk_pretend_locks(true);
    EXPECT_INT(store_sqlite_open(path, NULL, &store, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "grants the same lock twice");
    disk_pretend_locks(false);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    store->ops->close(store);
    remove_path();
}

/* Goal: a full disk is a clear answer, and the store goes on once there is space. */
static void space_comes_back(void)
{
    new_path();
    memset(&said, 0, sizeof said);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    make_specs(0);
    /* Only the log's writes fail; the sync is not reached. */
    disk_fail(DISK_CALL_CHANGE, 1, true, ENOSPC);
    EXPECT_INT(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), STATUS_IO);
    EXPECT_CONTAINS(error.text, "disk is full");
    disk_is_well();
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), error);
    EXPECT(!submitted[0].existed);
    store->ops->close(store);
    remove_path();
}

/* Goal: after the disk has failed the store refuses to write, says why, still reads, and is well
 * when it is opened again. */
static void a_failed_disk_stops_writing(void)
{
    struct store_suite_status status;

    new_path();
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    make_specs(0);
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), error);
    make_specs(1);
    disk_fail(DISK_CALL_CHANGE, 1, false, EIO);
    EXPECT_INT(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), STATUS_IO);
    disk_is_well();
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error),
                   STATUS_STORE);
        EXPECT_CONTAINS(error.text, "stopped writing");
    }
    EXPECT_OK(store->ops->suite_status(store, "suite", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_QUEUED], JOBS);
    store->ops->close(store);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), error);
    store->ops->close(store);
    remove_path();
}

/* ---- group commit ---- */

enum { THREADS = 8, OPERATIONS = 100 };

struct insertion {
    int64_t id;
    bool fails;
};

static enum status insert_number(struct db *db, void *context, struct error *why)
{
    const struct insertion *insertion = context;
    struct query query = query_begin_sql(db, "INSERT INTO numbers (id) VALUES (?1)");

    query_int(&query, insertion->id);
    enum status status = query_run(&query, why);
    if (status == STATUS_OK && insertion->fails) {
        return error_set(why, STATUS_CONFLICT, "on purpose");
    }
    return status;
}

static enum status no_sweep(struct db *db, void *context, int64_t now_ns, int64_t *next_ns,
                            struct error *why)
{
    (void)db, (void)context, (void)now_ns, (void)next_ns, (void)why;
    return STATUS_OK;
}

static void no_commit(void *context)
{
    (void)context;
}

static void no_stall(void *context, int64_t stalled_ns)
{
    (void)context, (void)stalled_ns;
}

struct inserter {
    struct group_commit *group;
    int first;
    int wrong;
};

static void *insert_numbers(void *context)
{
    struct inserter *inserter = context;

    for (int i = 0; i < OPERATIONS; i++) {
        struct insertion insertion = {.id = inserter->first + i, .fails = i % 5 == 4};
        struct error why;
        enum status status = group_commit_run(inserter->group, insert_number, &insertion, &why);
        inserter->wrong += status != (insertion.fails ? STATUS_CONFLICT : STATUS_OK);
    }
    return NULL;
}

static const struct group_commit_hooks group_hooks = {
    .sweep = no_sweep, .committed = no_commit, .stalled = no_stall};

static struct group_commit *open_group(struct db **db)
{
    struct group_commit *group = NULL;

    new_path();
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, db, &error), error);
    EXPECT_OK(sqlite_db_use_wal(*db, &error), error);
    EXPECT_OK(sqlite_db_script(*db, "CREATE TABLE numbers (id INTEGER PRIMARY KEY)", &error),
              error);
    EXPECT_OK(group_commit_create(*db, clock_system(), NULL, &group_hooks, &group, &error), error);
    return group;
}

/* An operation that ends so many jobs, and when it ran. */
struct turn {
    struct group_commit *group;
    uint32_t jobs;
    int64_t wait_for; /* operations that have to be queued before it goes on */
    atomic_int *begun;
    int *turns;
    int turn;
};

static enum status take_turn(struct db *db, void *context, struct error *why)
{
    struct turn *turn = context;
    struct store_stats stats = {.waiting = 0};

    (void)db, (void)why;
    atomic_store(turn->begun, 1);
    while (turn->wait_for > stats.waiting) {
        sched_yield();
        group_commit_stats(turn->group, &stats);
    }
    turn->turn = ++*turn->turns;
    return STATUS_OK;
}

static void *run_turn(void *context)
{
    struct turn *turn = context;
    struct error why;

    EXPECT_OK(group_commit_run_beside(turn->group, take_turn, NULL, false, turn->jobs, turn, &why),
              why);
    return NULL;
}

/* Goal: what queues up while somebody writes shares commits, what is short goes first, and a
 * transaction ends a bounded number of jobs. Method: the first operation waits for the others. */
static void short_operations_go_first(void)
{
    enum { TURNS = 7 };
    static const uint32_t jobs[TURNS] = {1, 600, 600, 5000, 400, 0, 0};
    struct db *db = NULL;
    struct group_commit *group = open_group(&db);
    struct turn turns[TURNS];
    pthread_t threads[TURNS];
    struct store_stats before;
    struct store_stats after;
    struct insertion first = {.id = 1}; /* and the sweep that follows an opening */
    atomic_int begun = 0;
    int count = 0;

    EXPECT_OK(group_commit_run(group, insert_number, &first, &error), error);
    group_commit_stats(group, &before);
    for (int i = 0; i < TURNS; i++) {
        turns[i] = (struct turn){.group = group,
                                 .jobs = jobs[i],
                                 .wait_for = i == 0 ? TURNS - 1 : 0,
                                 .begun = &begun,
                                 .turns = &count};
        EXPECT_INT(pthread_create(&threads[i], NULL, run_turn, &turns[i]), 0);
        do { /* one after the other; with the last one the first goes on */
            sched_yield();
            group_commit_stats(group, &after);
        } while (i == 0 ? atomic_load(&begun) == 0 : i < TURNS - 1 && after.waiting < i);
    }
    for (int i = 0; i < TURNS; i++) {
        pthread_join(threads[i], NULL);
    }
    group_commit_stats(group, &after);
    group_commit_destroy(group);
    EXPECT_INT(turns[0].turn, 1);
    EXPECT_INT(turns[5].turn, 2);
    EXPECT_INT(turns[6].turn, 3);
    for (int i = 1; i < 5; i++) { /* in their order */
        EXPECT_INT(turns[i].turn, 3 + i);
    }
    EXPECT_INT(after.commits - before.commits, 5); /* the first; 600 with the short ones; 600; .. */
    db_close(db);
    remove_path();
}

/* Goal: operations of many threads are done; one that fails takes nothing with it and leaves
 * nothing behind. */
static void operations_of_many_threads(void)
{
    struct db *db = NULL;
    struct inserter inserters[THREADS];
    pthread_t threads[THREADS];
    int64_t count = 0;

    struct group_commit *group = open_group(&db);
    int64_t syncs = disk_sync_count();
    for (int i = 0; i < THREADS; i++) {
        inserters[i] = (struct inserter){.group = group, .first = 1 + i * OPERATIONS};
        EXPECT_INT(pthread_create(&threads[i], NULL, insert_numbers, &inserters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    syncs = disk_sync_count() - syncs;
    group_commit_destroy(group);
    for (int i = 0; i < THREADS; i++) {
        EXPECT_INT(inserters[i].wrong, 0);
    }
    EXPECT_OK(sqlite_db_scalar(db, "SELECT COUNT(*) FROM numbers", &count, &error), error);
    EXPECT_INT(count, THREADS * OPERATIONS * 4 / 5);
    EXPECT_OK(
        sqlite_db_scalar(db, "SELECT COUNT(*) FROM numbers WHERE (id - 1) % 5 = 4", &count, &error),
        error);
    EXPECT_INT(count, 0);
    printf("# %lld syncs for %d operations\n", (long long)syncs, THREADS * OPERATIONS);
    EXPECT(syncs > 0);
    db_close(db);
    remove_path();
}

int main(void)
{
    /* In memory where possible: the disk's pace is not what is tested here. */
    strcpy(directory, access("/dev/shm", W_OK) == 0 ? "/dev/shm/swerve-faults-XXXXXX"
                                                    : "/tmp/swerve-faults-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    disk_mount(directory);
    outcome.verdict = VERDICT_PASS;
    int failed = TEST_RUN(TEST(operations_of_many_threads), TEST(short_operations_go_first),
                          TEST(space_comes_back), TEST(locks_that_only_pretend_are_refused),
                          TEST(a_failed_disk_stops_writing), TEST(disks_that_are_full),
                          TEST(disks_that_are_broken), TEST(writes_that_are_short),
                          TEST(syncs_that_fail), TEST(reads_that_fail),
                          TEST(descriptors_that_run_out), TEST(owners_on_failing_machines));
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0 ? failed : 1;
}
