/*
 * A server over the fake store on a Unix socket in this process, and the jobs and outcomes that the
 * HTTP tests send through it.
 */
#ifndef SWERVE_TESTS_STORE_HTTP_HTTP_STACK_H
#define SWERVE_TESTS_STORE_HTTP_HTTP_STACK_H

#include "base/check.h"
#include "schemas/job_context.h"
#include "store/server/http_server.h"
#include "tests/harness.h"
#include "tests/store/http/fake_store.h"
#include "tests/store/http/http_support.h"

#include <stdlib.h>
#include <string.h>

struct stack {
    struct fake_control control;
    struct store *fake;
    struct store_server *server;
    char socket_path[100];
    char url[128];
};

static inline void stack_start_with(struct stack *stack, const struct store_server_options *options)
{
    struct error error;
    memset(stack, 0, sizeof *stack);
    snprintf(stack->socket_path, sizeof stack->socket_path, "%s/s.sock", support_directory());
    snprintf(stack->url, sizeof stack->url, "unix:%s", stack->socket_path);
    EXPECT_OK(fake_store_open(&stack->control, &stack->fake, &error), error);
    int fd = support_listen(stack->socket_path);
    EXPECT_OK(store_server_start_with(stack->fake, fd, NULL, options, &stack->server, &error),
              error);
}

static inline void stack_start(struct stack *stack)
{
    const struct store_server_options options = {0};
    stack_start_with(stack, &options);
}

static inline void stack_stop(struct stack *stack)
{
    store_server_stop(stack->server);
    stack->fake->ops->close(stack->fake);
}

static inline struct store *connect_to(const char *url)
{
    struct error error;
    struct store *store = NULL;
    EXPECT_OK(store_http_open(url, NULL, &store, &error), error);
    return store;
}

static inline struct job_spec make_spec(int number)
{
    struct job_spec spec = {
        .suite_id = "s/1 ?&%\xc3\xa9",
        .scenario_id = "cut_in",
        .planner = "exec:python3 \"p.py\"",
        .pool = "bulk",
        .tier = TIER_OBJECT,
        .backend = "cpu",
        .seed = UINT64_MAX - (uint64_t)number,
        .priority = -3,
        .rollout_count = 2,
        .attempts_max = 3,
    };
    snprintf(spec.key, sizeof spec.key, "key-%d", number);
    return spec;
}

static inline struct outcome make_outcome(const struct job_lease *lease)
{
    struct outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    outcome.job_id = lease->job_id;
    outcome.epoch = lease->epoch;
    memcpy(outcome.suite_id, lease->spec.suite_id, sizeof outcome.suite_id);
    job_context_copy(&lease->spec, &outcome);
    outcome.verdict = VERDICT_FAIL;
    outcome.reasons = REASON_SCORE;
    outcome.reasons = REASON_TTC | REASON_SPEED;
    outcome.metrics.min_ttc_s = INFINITY;
    outcome.metrics.impact_speed_mps = NAN;
    outcome.metrics.score = 1.0 / 3.0;
    outcome.metrics.collision_tick = UINT32_MAX;
    strcpy(outcome.error, "stderr: \xff\xfe broken");
    return outcome;
}

static inline void submit_jobs(struct store *store, int first, uint32_t count)
{
    struct error error;
    struct job_spec *specs = calloc(count, sizeof *specs);
    struct store_submit_result *results = calloc(count, sizeof *results);
    CHECK(specs != NULL && results != NULL);
    for (uint32_t i = 0; i < count; i++) {
        specs[i] = make_spec(first + (int)i);
    }
    EXPECT_OK(store->ops->submit(store, specs[0].suite_id, 1, specs, count, results, &error),
              error);
    free(specs);
    free(results);
}

/* A worker's whole little life: submits `jobs` jobs, claims and completes them. */
static inline void live(struct store *store, uint32_t jobs)
{
    struct error error;
    struct job_lease leases[8];
    uint32_t count = 0;
    int64_t ttl_ms;
    uint32_t completed = 0;
    int64_t claim_id = 1;
    submit_jobs(store, 0, jobs);
    struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    EXPECT_OK(store->ops->heartbeat(store, &worker, NULL, 0, NULL, &count, &ttl_ms, &error), error);
    while (completed < jobs) {
        struct outcome outcomes[8];
        struct job_completion completions[8];
        struct store_completion_result results[8];
        memset(completions, 0, sizeof completions);
        EXPECT_OK(
            store->ops->claim(store, &worker, &claim_id, 3, 0, leases, &count, &ttl_ms, &error),
            error);
        if (count == 0) {
            TEST_FAIL("%u of %u jobs are leased to a worker that does not know", jobs - completed,
                      jobs);
        }
        for (uint32_t i = 0; i < count; i++) {
            outcomes[i] = make_outcome(&leases[i]);
            completions[i].job_id = leases[i].job_id;
            completions[i].epoch = leases[i].epoch;
            completions[i].device_ns = 10;
            completions[i].outcome_count = 1;
            completions[i].outcomes = &outcomes[i];
            strcpy(completions[i].worker_id, "w");
        }
        EXPECT_OK(store->ops->complete(store, completions, count, results, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT_INT(results[i].status, STATUS_OK);
        }
        completed += count;
    }
}

#endif
