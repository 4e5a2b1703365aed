/*
 * Stores for the tests of keeping house. See keep_support.h.
 */
#include "tests/store/keep/keep_support.h"

#include "base/check.h"
#include "schemas/job_context.h"
#include "store/keep/keep_files.h"
#include "tests/claim_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static pid_t made_by;

static void remove_directory(void)
{
    struct error error;
    if (getpid() == made_by) { /* children that a test ends leave by _exit */
        keep_remove_tree(directory, &error);
    }
}

const char *keep_directory_new(void)
{
    snprintf(directory, sizeof directory, "/tmp/swerve-keep-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    made_by = getpid();
    atexit(remove_directory);
    return directory;
}

struct store *keep_open(const char *path)
{
    /* Nobody sends heartbeats here, and a machine may be slow. */
    const struct store_config config = {.lease_ttl_ms = 3600000};
    struct store *store = NULL;
    struct error error;
    if (store_sqlite_open(path, &config, &store, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    return store;
}

static int contents(int suite, int job, char out[64])
{
    return snprintf(out, 64, "the trace of job %d of suite %d", job, suite);
}

void keep_artifact_hash(int suite, int job, char hash[SHA256_HEX_BYTES])
{
    char text[64];
    int bytes = contents(suite, job, text);
    sha256_hex(text, (size_t)bytes, hash);
}

static bool submit(struct store *store, int number, const char *suite)
{
    struct error error;
    struct store_submit_result results[KEEP_SUITE_JOBS];
    struct job_spec *specs = calloc(KEEP_SUITE_JOBS, sizeof *specs);

    CHECK(specs != NULL);
    for (int i = 0; i < KEEP_SUITE_JOBS; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "k-%d-%d", number, i);
        snprintf(specs[i].scenario_id, sizeof specs[i].scenario_id, "s-%d", i);
        strcpy(specs[i].pool, "bulk");
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 3;
    }
    enum status status =
        store->ops->submit(store, suite, 1, specs, KEEP_SUITE_JOBS, results, &error);
    free(specs);
    return status == STATUS_OK;
}

static bool finish_job(struct store *store, int number, int job, const char *worker_id,
                       const struct job_lease *lease)
{
    struct error error;
    char text[64];
    struct outcome outcome = {.verdict = VERDICT_PASS, .ticks = 10};
    struct store_completion_result result;
    struct job_completion completion = {.job_id = lease->job_id,
                                        .epoch = lease->epoch,
                                        .device_ns = 1000,
                                        .outcomes = &outcome,
                                        .outcome_count = 1};
    int bytes = contents(number, job, text);
    if (store->ops->artifact_put(store, text, (size_t)bytes, completion.artifact_hash, &error) !=
        STATUS_OK) {
        return false;
    }
    job_context_copy(&lease->spec, &outcome);
    memcpy(outcome.artifact_hash, completion.artifact_hash, sizeof outcome.artifact_hash);
    snprintf(completion.worker_id, sizeof completion.worker_id, "%s", worker_id);
    return store->ops->complete(store, &completion, 1, &result, &error) == STATUS_OK &&
           result.status == STATUS_OK;
}

bool keep_finish_suite(struct store *store, int number)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu", .worker_id = "keeper"};
    struct error error;
    char suite[32];
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    struct job_lease *leases = calloc(KEEP_SUITE_JOBS, sizeof *leases);

    CHECK(leases != NULL);
    snprintf(suite, sizeof suite, "suite-%d", number);
    bool good = submit(store, number, suite) &&
                store->ops->claim(store, &worker, fresh_claim_id(), KEEP_SUITE_JOBS, 0, leases,
                                  &count, &ttl_ms, &error) == STATUS_OK &&
                count == KEEP_SUITE_JOBS;
    for (uint32_t i = 0; i < count && good; i++) {
        good = finish_job(store, number, (int)i, worker.worker_id, &leases[i]);
    }
    free(leases);
    return good;
}

static void on_finding(void *context, const struct store_check_finding *finding)
{
    (void)context;
    if (!finding->note) {
        printf("# %s: %s\n", finding->place, finding->text);
    }
}

int keep_faults(const char *path, struct digest *digest, int64_t *outcomes)
{
    struct store_check_summary summary;
    struct error error;
    const struct store_check_options options = {.found = on_finding};

    if (store_check(path, &options, &summary, &error) != STATUS_OK) {
        printf("# %s\n", error.text);
        return -1;
    }
    if (digest != NULL) {
        *digest = summary.digest;
    }
    if (outcomes != NULL) {
        *outcomes = summary.outcomes;
    }
    return (int)summary.faults;
}
