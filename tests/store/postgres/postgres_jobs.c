/*
 * Jobs for tests. See postgres_jobs.h.
 */
#include "tests/store/postgres/postgres_jobs.h"

#include "base/check.h"
#include "base/sha256.h"
#include "base/units.h"
#include "schemas/job_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JOBS_MAX = 256 };

void jobs_submit(struct store *store, uint32_t count)
{
    jobs_submit_as(store, NULL, count);
}

static const char body[] = "{\"id\":\"a\"}";

void jobs_fill_spec(struct job_spec *spec, uint32_t index)
{
    memset(spec, 0, sizeof *spec);
    snprintf(spec->key, sizeof spec->key, "k-%" PRIu32, index);
    snprintf(spec->suite_id, sizeof spec->suite_id, "suite");
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%" PRIu32, index);
    sha256_hex(body, sizeof body - 1, spec->scenario_hash);
    strcpy(spec->planner, "builtin:reference");
    strcpy(spec->planner_hash, "p");
    strcpy(spec->pool, "bulk");
    strcpy(spec->backend, "cpu");
    strcpy(spec->revision, "r");
    spec->tier = TIER_OBJECT;
    spec->seed = index;
    spec->rollout_count = 1;
    spec->attempts_max = 3;
}

void jobs_submit_as(struct store *store, const char *tenant, uint32_t count)
{
    static struct job_spec specs[JOBS_MAX];
    static struct store_submit_result results[JOBS_MAX];
    char hash[SHA256_HEX_BYTES];
    struct error error;

    sha256_hex(body, sizeof body - 1, hash);
    CHECK(store->ops->scenario_put(store, hash, body, sizeof body - 1, &error) == STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        jobs_fill_spec(&specs[i], i);
    }
    CHECK((tenant == NULL ? store->ops->submit(store, "suite", 1, specs, count, results, &error)
                          : store->ops->submit_as(store, tenant, "suite", 1, SUITE_CLASS_SAME, 0,
                                                  specs, count, results, &error)) == STATUS_OK);
}

struct store_worker jobs_worker(const char *name)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", name);
    return worker;
}

void jobs_fill_done(struct job_completion *completion, struct outcome *outcome,
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
    job_context_copy(&lease->spec, outcome);
    outcome->ticks = 1;
    outcome->metres_mm = 1000;
}

int64_t jobs_attempts_ended(struct store *store, const char *end)
{
    struct store_ledger_row rows[16];
    uint32_t count = 0;
    int64_t attempts = 0;
    struct error error;

    CHECK(store->ops->ledger(store, "suite", rows, 16, &count, &error) == STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        attempts += strcmp(rows[i].end, end) == 0 ? rows[i].totals.attempts : 0;
    }
    return attempts;
}
