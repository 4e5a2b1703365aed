/*
 * The gate for claims.
 *
 * Goal: after a fence no claim that it covers is or comes inside the store; others pass.
 * Method: one thread holds a claim inside, another fences; then claims below, above and of another
 * worker are tried.
 */
#include "store/http_gate.h"

#include "base/check.h"
#include "tests/harness.h"

#include <stdatomic.h>
#include <string.h>

struct gate_test {
    struct http_gate gate;
    struct http_gate_claim claim;
    atomic_int fenced;
};

static void *fence_worker(void *context)
{
    struct gate_test *test = context;
    http_gate_fence(&test->gate, "w", 5);
    atomic_store(&test->fenced, 1);
    return NULL;
}

static void a_fence_waits_for_running_claims_and_stops_late_ones(void)
{
    static struct gate_test test;
    struct http_gate_claim late = {.worker_id = "w", .sequence = 4};
    struct http_gate_claim next = {.worker_id = "w", .sequence = 6};
    struct http_gate_claim other = {.worker_id = "v", .sequence = 1};
    pthread_t thread;
    memset(&test, 0, sizeof test);
    http_gate_init(&test.gate);
    test.claim = (struct http_gate_claim){.worker_id = "w", .sequence = 5};
    EXPECT(http_gate_begin(&test.gate, &test.claim));
    EXPECT(http_gate_enter(&test.gate, &test.claim));
    CHECK(pthread_create(&thread, NULL, fence_worker, &test) == 0);
    bool cancelled = false;
    while (!cancelled) { /* until the fence has seen the claim */
        pthread_mutex_lock(&test.gate.mutex);
        cancelled = test.claim.cancelled;
        pthread_mutex_unlock(&test.gate.mutex);
    }
    EXPECT_INT(test.fenced, 0);
    http_gate_leave(&test.gate, &test.claim);
    pthread_join(thread, NULL);
    EXPECT(!http_gate_enter(&test.gate, &test.claim));
    http_gate_end(&test.gate, &test.claim);
    EXPECT(!http_gate_begin(&test.gate, &late));
    EXPECT(http_gate_begin(&test.gate, &next) && http_gate_enter(&test.gate, &next));
    EXPECT(http_gate_begin(&test.gate, &other) && http_gate_enter(&test.gate, &other));
    http_gate_leave(&test.gate, &next);
    http_gate_end(&test.gate, &next);
    http_gate_leave(&test.gate, &other);
    http_gate_end(&test.gate, &other);
    http_gate_finish(&test.gate);
}

int main(void)
{
    return TEST_RUN(TEST(a_fence_waits_for_running_claims_and_stops_late_ones));
}
