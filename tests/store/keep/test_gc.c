/*
 * Goal: of the artifacts, those that nothing refers to and that are old are taken, and never one
 * that somebody refers to or is about to.
 *
 * Method: what is taken and kept is compared with what was made. In the moment before an artifact
 * is taken, a completion comes to rely on it; and a thread completes jobs with artifacts that look
 * old while another one collects: whatever the order, a completion that was accepted finds its
 * artifact, which `swerve check` proves.
 */
#include "base/check.h"
#include "schemas/job_context.h"
#include "store/keep/gc.h"
#include "store/keep/keep_files.h"
#include "store/sql/sqlite_db.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/keep/keep_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 86400, ORPHANS = 12, JOBS = 60 };

static char root[64];
static char path[128];
static char artifacts[160];
static struct error error;
static struct keep_gc_summary summary;
static const struct keep_gc_options dry = {.older_than_s = DAY_S};
static const struct keep_gc_options apply = {.apply = true, .older_than_s = DAY_S};

static void fresh(void)
{
    EXPECT_OK(keep_remove_tree(root, &error), error);
    EXPECT_OK(keep_directory(root, &error), error);
    snprintf(path, sizeof path, "%s/store.db", root);
    snprintf(artifacts, sizeof artifacts, "%s/store.db.artifacts", root);
}

/* The file looks as if nobody had come near it for two days. */
static void make_old(const char *hash)
{
    char file[KEEP_PATH_BYTES];
    struct timespec times[2] = {{.tv_sec = time(NULL) - 2 * DAY_S}, {.tv_sec = 0}};
    times[1] = times[0];
    keep_artifact_path(artifacts, hash, file);
    utimensat(AT_FDCWD, file, times, 0); /* one that was taken is gone */
}

static bool there(const char *hash)
{
    char file[KEEP_PATH_BYTES];
    keep_artifact_path(artifacts, hash, file);
    return access(file, F_OK) == 0;
}

static void put(struct store *store, int number, bool old, char hash[SHA256_HEX_BYTES])
{
    char text[64];
    int bytes = snprintf(text, sizeof text, "what nobody wants, %d", number);
    EXPECT_OK(store->ops->artifact_put(store, text, (size_t)bytes, hash, &error), error);
    if (old) {
        make_old(hash);
    }
}

static void old_unwanted_artifacts_are_taken(void)
{
    char orphans[ORPHANS][SHA256_HEX_BYTES];
    char hash[SHA256_HEX_BYTES];

    fresh();
    struct store *store = keep_open(path);
    EXPECT(keep_finish_suite(store, 0));
    for (int i = 0; i < KEEP_SUITE_JOBS; i++) {
        keep_artifact_hash(0, i, hash);
        make_old(hash);
    }
    for (int i = 0; i < ORPHANS; i++) {
        put(store, i, i % 3 != 0, orphans[i]);
    }
    for (int round = 0; round < 2; round++) { /* one that only looks changes nothing */
        EXPECT_OK(keep_gc(path, &dry, &summary, &error), error);
        EXPECT_INT(summary.referenced.files, KEEP_SUITE_JOBS);
        EXPECT_INT(summary.young.files, ORPHANS / 3);
        EXPECT_INT(summary.old.files, ORPHANS - ORPHANS / 3);
        EXPECT_INT(summary.taken.files, 0);
    }
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error); /* beside the store's owner */
    EXPECT_INT(summary.taken.files, ORPHANS - ORPHANS / 3);
    EXPECT_INT(summary.taken.bytes, summary.old.bytes);
    for (int i = 0; i < ORPHANS; i++) {
        EXPECT_INT(there(orphans[i]), i % 3 == 0);
    }
    put(store, 1, false, hash); /* one that was taken can come again */
    EXPECT(there(hash));
    store->ops->close(store);
    EXPECT_INT(keep_faults(path, NULL, NULL), 0);
}

/* ---- completions beside it ---- */

static struct store *busy;
static struct job_lease leases[JOBS];
static struct store_worker worker = {.pool = "bulk", .device = "cpu", .worker_id = "keeper"};

static void claim_jobs_of_a_suite(void)
{
    static struct job_spec specs[JOBS];
    static struct store_submit_result results[JOBS];
    int64_t ttl_ms = 0;
    uint32_t count = 0;

    memset(specs, 0, sizeof specs);
    for (int i = 0; i < JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "k-%d", i);
        snprintf(specs[i].scenario_id, sizeof specs[i].scenario_id, "s-%d", i);
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 3;
    }
    EXPECT_OK(busy->ops->submit(busy, "suite", 1, specs, JOBS, results, &error), error);
    EXPECT_OK(
        busy->ops->claim(busy, &worker, fresh_claim_id(), JOBS, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, JOBS);
}

static enum status complete(int job, const char *hash)
{
    struct error why;
    struct outcome outcome = {.verdict = VERDICT_PASS, .ticks = 1};
    struct store_completion_result result = {.status = STATUS_OK};
    struct job_completion completion = {.job_id = leases[job].job_id,
                                        .epoch = leases[job].epoch,
                                        .worker_id = "keeper",
                                        .device_ns = 1,
                                        .outcomes = &outcome,
                                        .outcome_count = 1};
    job_context_copy(&leases[job].spec, &outcome);
    memcpy(outcome.artifact_hash, hash, SHA256_HEX_BYTES);
    memcpy(completion.artifact_hash, hash, SHA256_HEX_BYTES);
    enum status status = busy->ops->complete(busy, &completion, 1, &result, &why);
    return status == STATUS_OK ? result.status : status;
}

static char wanted[SHA256_HEX_BYTES];
static enum status relied;

static void rely(void *context)
{
    (void)context;
    relied = complete(0, wanted);
}

static void one_that_is_relied_on_in_the_last_moment_stays(void)
{
    struct keep_gc_options options = apply;

    fresh();
    busy = keep_open(path);
    claim_jobs_of_a_suite();
    put(busy, 0, true, wanted);
    options.step = rely;
    relied = STATUS_IO;
    EXPECT_OK(keep_gc(path, &options, &summary, &error), error);
    EXPECT_INT(relied, STATUS_OK);
    EXPECT_INT(summary.old.files, 1);
    EXPECT_INT(summary.taken.files, 0);
    EXPECT(there(wanted));
    put(busy, 1, true, wanted);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    EXPECT_INT(complete(1, wanted), STATUS_CONFLICT); /* too late: it is gone, and that is said */
    put(busy, 1, false, wanted);
    EXPECT_INT(complete(1, wanted), STATUS_OK);
    busy->ops->close(busy);
    EXPECT_INT(keep_faults(path, NULL, NULL), 0);
}

/* A drive that was delivered before its job ended, with the picture of what made it invalid. */
static void partial_outcomes_keep_theirs(void)
{
    struct outcome outcome = {.verdict = VERDICT_INVALID, .ticks = 1, .health_check = "check"};
    struct store_completion_result result = {.status = STATUS_IO};
    struct job_completion completion = {.kind = COMPLETION_PARTIAL,
                                        .worker_id = "keeper",
                                        .device_ns = 1,
                                        .outcomes = &outcome,
                                        .outcome_count = 1};

    fresh();
    busy = keep_open(path);
    claim_jobs_of_a_suite();
    completion.job_id = leases[0].job_id;
    completion.epoch = leases[0].epoch;
    job_context_copy(&leases[0].spec, &outcome);
    put(busy, 0, true, outcome.artifact_hash);
    put(busy, 1, true, outcome.evidence_hash);
    EXPECT_OK(busy->ops->complete(busy, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_OK);
    make_old(outcome.artifact_hash);
    make_old(outcome.evidence_hash);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error);
    busy->ops->close(busy);
    EXPECT_INT(summary.referenced.files, 2);
    EXPECT_INT(summary.taken.files, 0);
}

static atomic_bool done;

static void *collect(void *context)
{
    struct error why;
    struct keep_gc_summary found;
    int64_t *taken = context;
    while (!atomic_load(&done)) {
        if (keep_gc(path, &apply, &found, &why) != STATUS_OK) {
            *taken = -1;
            break;
        }
        *taken += found.taken.files;
    }
    return NULL;
}

static void accepted_completions_keep_their_artifacts(void)
{
    pthread_t thread;
    int64_t taken = 0;
    int64_t outcomes = 0;
    bool good = true;

    fresh();
    busy = keep_open(path);
    claim_jobs_of_a_suite();
    atomic_store(&done, false);
    CHECK(pthread_create(&thread, NULL, collect, &taken) == 0);
    for (int i = 0; i < JOBS && good; i++) {
        char hash[SHA256_HEX_BYTES];
        enum status status = STATUS_CONFLICT;
        for (int again = 0; again < 1000 && status == STATUS_CONFLICT; again++) {
            put(busy, i, again < 999, hash);
            status = complete(i, hash);
        }
        good = status == STATUS_OK;
    }
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    busy->ops->close(busy);
    EXPECT(good);
    EXPECT(taken >= 0);
    EXPECT_INT(keep_faults(path, NULL, &outcomes), 0);
    EXPECT_INT(outcomes, JOBS);
}

/* ---- ends and refusals ---- */

static void end(void *context)
{
    int *left = context;
    if (--*left == 0) {
        _exit(9);
    }
}

static void one_that_ends_leaves_a_whole_store(void)
{
    char hash[SHA256_HEX_BYTES];
    int left = 3;
    int state = 0;

    fresh();
    struct store *store = keep_open(path);
    EXPECT(keep_finish_suite(store, 0));
    for (int i = 0; i < ORPHANS; i++) {
        put(store, i, true, hash);
    }
    store->ops->close(store);
    pid_t child = fork();
    if (child == 0) {
        const struct keep_gc_options options = {
            .apply = true, .older_than_s = DAY_S, .step = end, .context = &left};
        keep_gc(path, &options, &summary, &error);
        _exit(0);
    }
    EXPECT(child > 0 && waitpid(child, &state, 0) == child);
    EXPECT(WIFEXITED(state) && WEXITSTATUS(state) == 9);
    EXPECT_INT(keep_faults(path, NULL, NULL), 0);
    EXPECT_OK(keep_gc(path, &apply, &summary, &error), error); /* its lock went with it */
    EXPECT_INT(summary.taken.files, ORPHANS - 2);
}

static void what_is_not_known_is_not_taken(void)
{
    char hash[SHA256_HEX_BYTES];
    struct keep_gc_options hasty = apply;
    struct db *db = NULL;
    int lock = -1;

    fresh();
    struct store *store = keep_open(path);
    EXPECT(keep_finish_suite(store, 0));
    put(store, 0, true, hash);
    store->ops->close(store);
    hasty.older_than_s = KEEP_GC_OLDER_MIN_S - 1;
    EXPECT_INT(keep_gc(path, &hasty, &summary, &error), STATUS_LIMIT);
    EXPECT_OK(keep_lock(artifacts, false, "a test", &lock, &error), error); /* as a backup does */
    EXPECT_INT(keep_gc(path, &apply, &summary, &error), STATUS_BUSY);
    close(lock);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(
        sqlite_db_script(db, "UPDATE outcomes SET artifact_hash = 'no name' WHERE id = 1", &error),
        error);
    db_close(db);
    EXPECT_INT(keep_gc(path, &apply, &summary, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "swerve check");
    EXPECT(there(hash));
}

int main(void)
{
    snprintf(root, sizeof root, "%s", keep_directory_new());
    return TEST_RUN(TEST(old_unwanted_artifacts_are_taken),
                    TEST(one_that_is_relied_on_in_the_last_moment_stays),
                    TEST(partial_outcomes_keep_theirs),
                    TEST(accepted_completions_keep_their_artifacts),
                    TEST(one_that_ends_leaves_a_whole_store), TEST(what_is_not_known_is_not_taken));
}
