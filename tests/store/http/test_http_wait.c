/*
 * Claims that wait at a server over the embedded store.
 *
 * Goal: a waiting claim costs the writer next to nothing and is woken by work; a fence, a server
 * that stops and a worker that is told to stop end it, and no job is leased to a claim that nobody
 * waits for any more, or that was delivered before.
 * Method: claims for a minute in threads of their own, which a test that takes minutes would show
 * to hang; the store's own count of operations; and many races between work and a stop, after which
 * every job must be queued or known to the worker.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/client/http_client.h"
#include "store/client/retry.h"
#include "store/wire/http_wire.h"
#include "tests/store/http/http_site.h"
#include "tests/store/http/http_stack.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stop; /* of the workers */

static void begin(void)
{
    atomic_store(&stop, false);
    site_start();
}

static struct store *connect_worker(void)
{
    struct error error;
    struct store *store = NULL;
    const struct store_config config = {.stop = &stop};
    EXPECT_OK(store_http_open(site.url, &config, &store, &error), error);
    return store;
}

/* A claim for a minute in a thread of its own. */
struct waiting {
    struct store *store;
    struct store_worker worker;
    pthread_t thread;
    enum status status;
    struct error error;
    struct job_lease lease;
    uint32_t count;
};

static void *claim_long(void *context)
{
    struct waiting *waiting = context;
    int64_t ttl_ms = 0;
    waiting->status =
        waiting->store->ops->claim(waiting->store, &waiting->worker, 1, HTTP_WAIT_MS_MAX,
                                   &waiting->lease, &waiting->count, &ttl_ms, &waiting->error);
    return NULL;
}

static void wait_begin(struct waiting *waiting, struct store *store, const char *worker_id)
{
    memset(waiting, 0, sizeof *waiting);
    waiting->store = store;
    waiting->worker = (struct store_worker){.pool = "bulk", .device = "cpu"};
    snprintf(waiting->worker.worker_id, LIMIT_ID_BYTES, "%s", worker_id);
    CHECK(pthread_create(&waiting->thread, NULL, claim_long, waiting) == 0);
}

static void wait_end(struct waiting *waiting)
{
    pthread_join(waiting->thread, NULL);
}

static struct store_stats stats_now(void)
{
    struct error error;
    static struct store_stats stats;
    EXPECT_OK(site.behind->ops->stats(site.behind, &stats, &error), error);
    return stats;
}

/* Until `count` workers have a lease, which is to say that their claims have begun. */
static void until_waiting(int64_t count)
{
    while (stats_now().workers_alive < count) {
        sched_yield();
    }
}

static void work_wakes_the_claim(void)
{
    enum { WORKERS = 20 };
    static struct waiting waiting[WORKERS];
    begin();
    struct store *store = connect_worker();
    for (int i = 0; i < WORKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        wait_begin(&waiting[i], store, name);
    }
    until_waiting(WORKERS);
    int64_t before = stats_now().operations;
    for (int i = 0; i < 3; i++) { /* slices in which the server looks after its waiting claims */
        nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
    }
    EXPECT(stats_now().operations - before < WORKERS);
    submit_jobs(store, 0, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        wait_end(&waiting[i]);
        EXPECT_OK(waiting[i].status, waiting[i].error);
        EXPECT_INT(waiting[i].count, 1);
    }
    store->ops->close(store);
    site_stop();
}

static void a_fence_ends_the_claim(void)
{
    static struct waiting waiting;
    struct error error;
    struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    begin();
    struct store *store = connect_worker();
    wait_begin(&waiting, store, "w");
    until_waiting(1);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    wait_end(&waiting);
    EXPECT_INT(waiting.status, STATUS_STALE);
    submit_jobs(store, 0, 1);
    const struct store_worker other = {.worker_id = "v", .pool = "bulk", .device = "cpu"};
    EXPECT_OK(store->ops->claim(store, &other, 1, 0, &lease, &count, &ttl_ms, &error), error);
    EXPECT_INT(count, 1);
    store->ops->close(store);
    site_stop();
}

static void a_stopping_server_ends_the_claim(void)
{
    static struct waiting waiting;
    begin();
    struct store *store = connect_worker();
    wait_begin(&waiting, store, "w");
    until_waiting(1);
    store_server_stop(site.server);
    atomic_store(&stop, true); /* else it would be asked for again */
    site.server = NULL;
    wait_end(&waiting);
    EXPECT_INT(waiting.count, 0);
    store->ops->close(store);
    site_stop();
}

static void a_stop_ends_the_claim(void)
{
    static struct waiting waiting;
    struct error error;
    struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    begin();
    struct store *store = connect_worker();
    wait_begin(&waiting, store, "w");
    until_waiting(1);
    atomic_store(&stop, true);
    wait_end(&waiting);
    EXPECT_OK(waiting.status, waiting.error);
    EXPECT_INT(waiting.count, 0);
    submit_jobs(store, 0, 1);
    EXPECT_OK(store->ops->worker_leases(store, "w", 0, &lease, 1, &count, &error), error);
    EXPECT_INT(count, 0);
    /* Told to stop or not: what does not wait is answered. */
    EXPECT_OK(store->ops->claim(store, &waiting.worker, 1, 0, &lease, &count, &ttl_ms, &error),
              error);
    EXPECT_INT(count, 1);
    store->ops->close(store);
    site_stop();
}

static void wake_up(int number)
{
    (void)number;
}

/* Work and the stop come at the same time: whatever is leased is known to the worker. */
static void no_job_is_lost_to_a_stop(void)
{
    enum { RACES = 60 };
    static struct waiting waiting;
    int taken = 0;
    const struct store_worker next = {.worker_id = "next", .pool = "bulk", .device = "cpu"};
    const struct sigaction action = {.sa_handler = wake_up};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    begin();
    struct store *submitter = connect_to(site.url);
    for (int race = 0; race < RACES; race++) {
        struct error error;
        struct job_lease lease;
        uint32_t count = 0;
        int64_t ttl_ms = 0;
        char name[16];
        atomic_store(&stop, false);
        struct store *store = connect_worker();
        snprintf(name, sizeof name, "w%d", race);
        wait_begin(&waiting, store, name);
        until_waiting(1);
        if (race % 3 > 0) { /* as a signal does to a worker */
            atomic_store(&stop, true);
            pthread_kill(waiting.thread, SIGUSR1);
        }
        for (int i = 0; i < race % 3 * race * 10; i++) {
            sched_yield();
        }
        submit_jobs(submitter, race, 1);
        atomic_store(&stop, true);
        wait_end(&waiting);
        EXPECT_OK(waiting.status, waiting.error);
        taken += (int)waiting.count;
        EXPECT_OK(submitter->ops->worker_leases(submitter, name, 0, &lease, 1, &count, &error),
                  error);
        EXPECT_INT(count, waiting.count);
        if (count == 0) { /* it is there for the next one */
            EXPECT_OK(
                submitter->ops->claim(submitter, &next, 1, 0, &lease, &count, &ttl_ms, &error),
                error);
            EXPECT_INT(count, 1);
        }
        EXPECT_OK(submitter->ops->worker_gone(submitter, name, &error), error);
        int64_t cancelled = 0; /* the job comes back to nobody */
        EXPECT_OK(submitter->ops->cancel(submitter, make_spec(race).suite_id, &cancelled, &error),
                  error);
        EXPECT_INT(cancelled, 1);
        store->ops->close(store);
    }
    printf("# %d of %d jobs were faster than the stop\n", taken, RACES);
    submitter->ops->close(submitter);
    site_stop();
}

/* ---- claims that are delivered twice ---- */

/* A raw client behind a link; its machine runs since `running_ns`. */
struct proxied {
    struct http_transport *transport;
    struct clock clock;
    int64_t running_ns;
    struct store *client;
    int doubled; /* how many claims are left to deliver twice */
};

static int64_t running(void *context)
{
    return ((struct proxied *)context)->running_ns;
}

/* Hands out the answer to what came second. */
static enum status carry_twice(void *context, struct http_call *call, struct error *error)
{
    struct proxied *proxied = context;
    if (strstr(call->path, "/claim") != NULL && proxied->doubled > 0) {
        struct http_call first = *call;
        proxied->doubled--;
        EXPECT_OK(http_transport_call(proxied->transport, &first, error), *error);
        EXPECT_INT(first.code, 200);
        free(first.reply);
    }
    return http_transport_call(proxied->transport, call, error);
}

static enum status find_client(void *context, bool lost, struct store **inner, struct error *error)
{
    (void)lost;
    (void)error;
    *inner = ((struct proxied *)context)->client;
    return STATUS_OK;
}

static void describe_client(void *context, char *text, size_t capacity)
{
    (void)context;
    snprintf(text, capacity, "the server");
}

static void close_client(void *context)
{
    struct proxied *proxied = context;
    proxied->client->ops->close(proxied->client);
    http_transport_destroy(proxied->transport);
}

static struct store *connect_proxied(struct proxied *proxied, int64_t running_ns)
{
    struct error error;
    struct store *store = NULL;
    memset(proxied, 0, sizeof *proxied);
    proxied->running_ns = running_ns;
    proxied->clock = *clock_system();
    proxied->clock.now_ns = running;
    proxied->clock.context = proxied;
    const struct http_carrier carrier = {carry_twice, proxied};
    const struct store_config config = {.clock = &proxied->clock};
    const struct retry_source source = {.locate = find_client,
                                        .describe = describe_client,
                                        .close = close_client,
                                        .context = proxied};
    EXPECT_OK(http_transport_create(site.url, NULL, NULL, &proxied->transport, &error), error);
    EXPECT_OK(http_client_open_over(&carrier, &config, &proxied->client, &error), error);
    EXPECT_OK(retry_create(&source, RETRY_DEADLINE_MS, &store, &error), error);
    return store;
}

static void a_claim_delivered_twice_leases_once(void)
{
    static const char body[] = "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":2,\"sequence\":7}";
    char reply[8192];
    struct error error;
    struct job_lease leases[8];
    uint32_t count = 0;
    begin();
    submit_jobs(site.behind, 0, 6);
    EXPECT_INT(
        support_call(site.socket_path, "POST", "/v1/workers/w/claim", body, reply, sizeof reply),
        200);
    EXPECT_INT(
        support_call(site.socket_path, "POST", "/v1/workers/w/claim", body, reply, sizeof reply),
        409);
    EXPECT(strstr(reply, "\"stale\"") != NULL);
    EXPECT_OK(site.behind->ops->worker_leases(site.behind, "w", 0, leases, 8, &count, &error),
              error);
    EXPECT_INT(count, 2);
    site_stop();
}

/* The answer that it gets is a refusal: the jobs are its all the same, each once. */
static void a_worker_finds_what_a_doubled_claim_leased(void)
{
    static struct proxied proxied;
    struct error error;
    struct job_lease leases[8];
    const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t known[6];
    begin();
    submit_jobs(site.behind, 0, 6);
    struct store *store = connect_proxied(&proxied, 500 * NS_PER_S);
    for (uint32_t i = 0; i < 6; i += 2) {
        proxied.doubled = i < 4 ? 1 : 0;
        EXPECT_OK(store->ops->claim(store, &worker, 2, 0, leases, &count, &ttl_ms, &error), error);
        EXPECT_INT(count, 2);
        EXPECT(ttl_ms > 0);
        known[i] = leases[0].job_id;
        known[i + 1] = leases[1].job_id;
    }
    EXPECT_OK(site.behind->ops->worker_leases(site.behind, "w", 0, leases, 8, &count, &error),
              error);
    EXPECT_INT(count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT_INT(known[i], leases[i].job_id);
    }
    store->ops->close(store);
    site_stop();
}

/* A machine that ran for long boots: the numbers of its worker's claims, and of its fences, were
 * higher. */
static void a_worker_goes_on_after_its_machine_booted(void)
{
    static struct proxied before;
    static struct proxied after;
    struct error error;
    struct job_lease lease;
    const struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    begin();
    submit_jobs(site.behind, 0, 4);
    for (int fenced = 0; fenced < 2; fenced++) {
        struct store *store = connect_proxied(&before, 100 * 86400 * NS_PER_S);
        EXPECT_OK(store->ops->claim(store, &worker, 1, 0, &lease, &count, &ttl_ms, &error), error);
        EXPECT_INT(count, 1);
        if (fenced > 0) {
            EXPECT_OK(store->ops->worker_leases(store, "w", 0, &lease, 1, &count, &error), error);
        }
        store->ops->close(store);
        EXPECT_OK(site.behind->ops->worker_gone(site.behind, "w", &error), error);
        store = connect_proxied(&after, (20 + fenced) * NS_PER_S);
        EXPECT_OK(store->ops->claim(store, &worker, 1, 0, &lease, &count, &ttl_ms, &error), error);
        EXPECT_INT(count, 1);
        store->ops->close(store);
    }
    site_stop();
}

int main(void)
{
    return TEST_RUN(TEST(work_wakes_the_claim), TEST(a_fence_ends_the_claim),
                    TEST(a_stopping_server_ends_the_claim), TEST(a_stop_ends_the_claim),
                    TEST(no_job_is_lost_to_a_stop), TEST(a_claim_delivered_twice_leases_once),
                    TEST(a_worker_finds_what_a_doubled_claim_leased),
                    TEST(a_worker_goes_on_after_its_machine_booted));
}
