/*
 * The gate for claims.
 *
 * Goal: after a fence no claim that it covers is or comes inside the store; others pass. A number
 * of a worker passes once, in about any order; whoever begins to count elsewhere is let in; whoever
 * was forgotten for others too. Method: one thread holds a claim inside, another fences; then
 * claims below, above and of another worker are tried. A table of numbers says what is expected of
 * each.
 */
#include "store/server/claim_fence.h"

#include "base/check.h"
#include "tests/harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct gate_test {
    struct claim_fence fence;
    struct claim_fence_claim claim;
    atomic_int fenced;
};

static void *fence_worker(void *context)
{
    struct gate_test *test = context;
    claim_fence_epoch(&test->fence, "w", 5);
    atomic_store(&test->fenced, 1);
    return NULL;
}

static void a_fence_waits_for_running_claims_and_stops_late_ones(void)
{
    static struct gate_test test;
    struct claim_fence_claim late = {.worker_id = "w", .sequence = 4};
    struct claim_fence_claim next = {.worker_id = "w", .sequence = 6};
    struct claim_fence_claim other = {.worker_id = "v", .sequence = 1};
    pthread_t thread;
    memset(&test, 0, sizeof test);
    claim_fence_init(&test.fence);
    test.claim = (struct claim_fence_claim){.worker_id = "w", .sequence = 5};
    EXPECT(claim_fence_begin(&test.fence, &test.claim));
    EXPECT(claim_fence_enter(&test.fence, &test.claim));
    CHECK(pthread_create(&thread, NULL, fence_worker, &test) == 0);
    bool cancelled = false;
    while (!cancelled) { /* until the fence has seen the claim */
        pthread_mutex_lock(&test.fence.mutex);
        cancelled = test.claim.cancelled;
        pthread_mutex_unlock(&test.fence.mutex);
    }
    EXPECT_INT(test.fenced, 0);
    claim_fence_leave(&test.fence, &test.claim);
    pthread_join(thread, NULL);
    EXPECT(!claim_fence_enter(&test.fence, &test.claim));
    claim_fence_end(&test.fence, &test.claim);
    EXPECT(!claim_fence_begin(&test.fence, &late));
    EXPECT(claim_fence_begin(&test.fence, &next) && claim_fence_enter(&test.fence, &next));
    EXPECT(claim_fence_begin(&test.fence, &other) && claim_fence_enter(&test.fence, &other));
    claim_fence_leave(&test.fence, &next);
    claim_fence_end(&test.fence, &next);
    claim_fence_leave(&test.fence, &other);
    claim_fence_end(&test.fence, &other);
    claim_fence_finish(&test.fence);
}

static bool passes(struct claim_fence *fence, const char *worker_id, int64_t sequence)
{
    struct claim_fence_claim claim = {.worker_id = worker_id, .sequence = sequence};
    bool begun = claim_fence_begin(fence, &claim);
    if (begun) {
        claim_fence_end(fence, &claim);
    }
    return begun;
}

static void a_number_passes_once(void)
{
    static struct claim_fence fence;
    const int64_t far = INT64_C(30000000000); /* half a minute after a boot */
    const struct {
        const char *worker_id;
        int64_t sequence;
        bool passes;
    } steps[] = {
        {"w", 7, true},
        {"w", 7, false},
        {"v", 7, true}, /* each worker by itself */
        {"w", 9, true},
        {"w", 8, true}, /* overtaken on the way */
        {"w", 8, false},
        {"w", 9, false},
        {"w", 9 + HTTP_RUN_RECENT, true},
        {"w", 9, false},  /* just beyond what is told apart */
        {"w", 10, true},  /* the last that is */
        {"w", 6, false},  /* perhaps new, but too far behind to tell */
        {"w", far, true}, /* the next client of that name */
        {"w", far, false},
        {"w", 11, true}, /* the first one still is alive, or late */
        {"w", 11, false},
        {"w", 10 * far, true},
        {"w", 5 * far, true}, /* the machine booted: lower, and welcome */
        {"w", 5 * far, false},
        {"w", 10 * far, false},
        {"w", far + HTTP_RUN_REACH - 1, true},
        {"w", far, false},
        {"w", INT64_MAX - 1, true},
        {"w", INT64_MAX - 1, false},
        {"w", 1, false},
        {"u", 1, true},
        {"u", INT64_MAX - 1, true},
        {"u", 1, false},
    };
    claim_fence_init(&fence);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (passes(&fence, steps[i].worker_id, steps[i].sequence) != steps[i].passes) {
            TEST_FAIL("step %zu: worker %s, claim %lld: expected %s", i, steps[i].worker_id,
                      (long long)steps[i].sequence, steps[i].passes ? "to pass" : "a refusal");
        }
    }
    claim_fence_finish(&fence);
}

/* Refused while the first delivery still waits, too. */
static void a_number_in_use_is_refused(void)
{
    static struct claim_fence fence;
    struct claim_fence_claim first = {.worker_id = "w", .sequence = 3};
    claim_fence_init(&fence);
    EXPECT(claim_fence_begin(&fence, &first));
    EXPECT(!passes(&fence, "w", 3));
    EXPECT(passes(&fence, "w", 4));
    EXPECT(claim_fence_enter(&fence, &first));
    claim_fence_leave(&fence, &first);
    claim_fence_end(&fence, &first);
    EXPECT(!passes(&fence, "w", 3));
    claim_fence_finish(&fence);
}

/* A full fleet is remembered whole but for the few whose set ran over; what is remembered is
 * bounded, and the runs that are in use stay. */
static void many_workers_are_remembered(void)
{
    enum { WORKERS = 2000, RESTARTS = 10 * HTTP_RUN_WAYS };
    static struct claim_fence fence;
    char id[LIMIT_ID_BYTES];
    int forgotten = 0;
    claim_fence_init(&fence);
    for (int i = 0; i < 2 * WORKERS; i++) {
        snprintf(id, sizeof id, "host%d.example-%d", i % WORKERS / 8, i % WORKERS % 8);
        forgotten += passes(&fence, id, 5) && i >= WORKERS;
    }
    EXPECT(forgotten < WORKERS / 50);
    for (int i = 1; i <= RESTARTS; i++) {
        EXPECT(passes(&fence, "w", (int64_t)i * HTTP_RUN_REACH * 2));
        EXPECT(passes(&fence, "w", (int64_t)1 << 40 | i));
        EXPECT(!passes(&fence, "w", (int64_t)1 << 40 | i));
    }
    claim_fence_finish(&fence);
}

int main(void)
{
    return TEST_RUN(TEST(a_fence_waits_for_running_claims_and_stops_late_ones),
                    TEST(a_number_passes_once), TEST(a_number_in_use_is_refused),
                    TEST(many_workers_are_remembered));
}
