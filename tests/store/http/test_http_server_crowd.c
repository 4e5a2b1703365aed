/*
 * The HTTP server and client when much happens at once or something ends.
 *
 * Goal: waiting claims do not starve others; a server that stops finishes what it began; an answer
 * that is lost, whichever it is, changes nothing in the end.
 * Method: many clients on threads; a relay that drops the Nth answer, for every N.
 */
#include "store/wire/http_wire.h"
#include "tests/claim_ids.h"
#include "tests/store/http/http_stack.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- many clients ---- */

enum { CROWD = 300, CROWD_JOBS = 3000 };

struct crowd {
    const char *url;
    atomic_int next_worker;
    atomic_int completed;
    atomic_int failed;
    atomic_int waiting;
    int64_t wait_ms;
    int target;
};

static void *crowd_member(void *context)
{
    struct crowd *crowd = context;
    struct error error;
    struct store *store = NULL;
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "w%d",
             atomic_fetch_add(&crowd->next_worker, 1));
    if (store_http_open(crowd->url, NULL, &store, &error) != STATUS_OK) {
        fprintf(stderr, "# %s\n", error.text);
        atomic_fetch_add(&crowd->failed, 1);
        return NULL;
    }
    while (atomic_load(&crowd->completed) < crowd->target) {
        struct job_lease lease;
        uint32_t count = 0;
        int64_t ttl_ms;
        atomic_fetch_add(&crowd->waiting, 1);
        enum status status = store->ops->claim(store, &worker, fresh_claim_id(), 1, crowd->wait_ms,
                                               &lease, &count, &ttl_ms, &error);
        atomic_fetch_sub(&crowd->waiting, 1);
        if (status == STATUS_OK && count == 1) {
            struct outcome outcome = make_outcome(&lease);
            struct job_completion completion = {.job_id = lease.job_id,
                                                .epoch = lease.epoch,
                                                .outcome_count = 1,
                                                .outcomes = &outcome};
            struct store_completion_result result;
            memcpy(completion.worker_id, worker.worker_id, sizeof completion.worker_id);
            status = store->ops->complete(store, &completion, 1, &result, &error);
            if (status == STATUS_OK && result.status == STATUS_OK) {
                atomic_fetch_add(&crowd->completed, 1);
            }
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "# %s\n", error.text);
            atomic_fetch_add(&crowd->failed, 1);
            break;
        }
    }
    store->ops->close(store);
    return NULL;
}

/* Long polls of all workers at once, jobs trickling in: every job is done once, and the submitter
 * is never shut out. */
static void three_hundred_workers_share_the_work(void)
{
    static struct stack stack;
    pthread_t threads[CROWD];
    stack_start(&stack);
    static struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    crowd.url = stack.url;
    crowd.wait_ms = 400;
    crowd.target = CROWD_JOBS;
    for (int i = 0; i < CROWD; i++) {
        CHECK(pthread_create(&threads[i], NULL, crowd_member, &crowd) == 0);
    }
    struct store *store = connect_to(stack.url);
    for (int i = 0; i < CROWD_JOBS; i += 100) {
        submit_jobs(store, i, 100);
    }
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_INT(crowd.failed, 0);
    EXPECT_INT(crowd.completed, CROWD_JOBS);
    struct store_suite_status status;
    struct error error;
    EXPECT_OK(store->ops->suite_status(store, make_spec(0).suite_id, &status, &error), error);
    EXPECT_INT(status.jobs[JOB_DONE], CROWD_JOBS);
    EXPECT_INT(status.rollouts[VERDICT_FAIL], CROWD_JOBS);
    store->ops->close(store);
    stack_stop(&stack);
}

/* ---- stopping ---- */

struct asker {
    const char *url;
    enum status status;
    struct store_suite_status suite;
    atomic_int done;
};

static void *ask_status(void *context)
{
    struct asker *asker = context;
    struct error error;
    struct store *store = NULL;
    asker->status = store_http_open(asker->url, NULL, &store, &error);
    if (asker->status == STATUS_OK) {
        asker->status =
            store->ops->suite_status(store, make_spec(0).suite_id, &asker->suite, &error);
        store->ops->close(store);
    }
    atomic_store(&asker->done, 1);
    return NULL;
}

static void *stop_server(void *context)
{
    struct stack *stack = context;
    store_server_stop(stack->server);
    return NULL;
}

/* A request that the store is working on when the server stops is answered. */
static void stopping_answers_what_was_begun(void)
{
    static struct stack stack;
    static struct asker asker;
    pthread_t ask_thread;
    pthread_t stop_thread;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    submit_jobs(store, 0, 5);
    memset(&asker, 0, sizeof asker);
    asker.url = stack.url;
    atomic_store(&stack.control.block, 1);
    CHECK(pthread_create(&ask_thread, NULL, ask_status, &asker) == 0);
    while (atomic_load(&stack.control.blocked) == 0) {
        sched_yield();
    }
    CHECK(pthread_create(&stop_thread, NULL, stop_server, &stack) == 0);
    /* The idle connection of `store` is closed by the stop, and new ones get no answer. */
    EXPECT_INT(asker.done, 0);
    atomic_store(&stack.control.block, 0);
    pthread_join(ask_thread, NULL);
    pthread_join(stop_thread, NULL);
    EXPECT_INT(asker.status, STATUS_OK);
    EXPECT_INT(asker.suite.jobs[JOB_QUEUED], 5);
    store->ops->close(store);
    stack.fake->ops->close(stack.fake);
}

static void *claim_long(void *context)
{
    struct crowd *crowd = context;
    struct error error;
    int fd = support_connect(crowd->url + 5);
    char reply[4096];
    static atomic_int claim_id;
    char body[128];
    char text[512];
    int bytes = sprintf(
        body, "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":1,\"wait_ms\":60000,\"claim_id\":%d}",
        atomic_fetch_add(&claim_id, 1) + 1);
    int count = sprintf(
        text, "POST /v1/workers/w/claim HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", bytes,
        body);
    (void)error;
    int code = support_request(fd, text, (size_t)count, reply, sizeof reply);
    close(fd);
    if (code != 200 || strstr(reply, "\"leases\":[]") == NULL) {
        fprintf(stderr, "# long claim: %d %s\n", code, reply);
        atomic_fetch_add(&crowd->failed, 1);
    }
    return NULL;
}

/* Claims that could wait for a minute end with an empty answer. */
static void stopping_ends_long_polls(void)
{
    static struct stack stack;
    static struct crowd crowd;
    pthread_t threads[32];
    stack_start(&stack);
    memset(&crowd, 0, sizeof crowd);
    crowd.url = stack.url;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        CHECK(pthread_create(&threads[i], NULL, claim_long, &crowd) == 0);
    }
    while (atomic_load(&stack.control.claim_calls) < (int)COUNT_OF(threads)) {
        sched_yield();
    }
    store_server_stop(stack.server);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_INT(crowd.failed, 0);
    stack.fake->ops->close(stack.fake);
}

/* ---- lost answers ---- */

/* For N = 1, 2, ..: lose the Nth answer (and once also the next one); all jobs are done exactly
 * once, and none stays with a worker that does not know of it. */
static void any_lost_answer_changes_nothing(void)
{
    char relay_path[100];
    char url[128];
    snprintf(relay_path, sizeof relay_path, "%s/relay.sock", support_directory());
    snprintf(url, sizeof url, "unix:%s", relay_path);
    for (int losses = 1; losses <= 2; losses++) {
        bool clean = false;
        for (int lose = 1; !clean; lose++) {
            static struct stack stack;
            stack_start(&stack);
            struct support_relay *relay =
                support_relay_start(relay_path, stack.socket_path, lose, losses);
            struct store *store = connect_to(url);
            live(store, 8);
            store->ops->close(store);
            clean = support_relay_answers(relay) < lose;
            support_relay_stop(relay);
            struct store_suite_status status;
            struct store_ledger_row row;
            uint32_t rows;
            struct error error;
            EXPECT_OK(
                stack.fake->ops->suite_status(stack.fake, make_spec(0).suite_id, &status, &error),
                error);
            EXPECT_INT(status.jobs[JOB_DONE], 8);
            EXPECT_INT(status.rollouts[VERDICT_FAIL], 8);
            EXPECT_OK(stack.fake->ops->ledger(stack.fake, NULL, &row, 1, &rows, &error), error);
            EXPECT_INT(row.totals.attempts, 8);
            EXPECT_INT(row.totals.device_ns, 80);
            stack_stop(&stack);
            EXPECT(lose < 1000);
        }
    }
}

/* The store's own errors are answers, not losses: they come back at once and once. */
static void errors_of_the_store_are_not_repeated(void)
{
    static struct stack stack;
    struct error error;
    struct store_job job;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    atomic_store(&stack.control.fail_calls, 1);
    EXPECT_INT(store->ops->job(store, 1, &job, &error), STATUS_STORE);
    EXPECT_TEXT(error.text, "fake: store");
    EXPECT_INT(store->ops->job(store, 1, &job, &error), STATUS_NOT_FOUND);
    EXPECT_INT(stack.control.calls, 2);
    store->ops->close(store);
    stack_stop(&stack);
}

int main(void)
{
    return TEST_RUN(TEST(three_hundred_workers_share_the_work),
                    TEST(stopping_answers_what_was_begun), TEST(stopping_ends_long_polls),
                    TEST(any_lost_answer_changes_nothing),
                    TEST(errors_of_the_store_are_not_repeated));
}
