/*
 * Claims that wait at a server over the embedded store.
 *
 * Goal: a waiting claim costs the writer next to nothing and is woken by work; a server that stops
 * and a worker that is told to stop end it; no job is leased to a claim that nobody waits for any
 * more, and a claim that is delivered twice leases once.
 * Method: claims for a minute in threads of their own, which a test that takes minutes would show
 * to hang; the store's own count of operations; and many races between work and a stop, after which
 * every job must be queued or known to the worker.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/wire/http_wire.h"
#include "tests/claim_ids.h"
#include "tests/store/http/http_site.h"
#include "tests/store/http/http_stack.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
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
    int64_t claim_id;
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
    waiting->status = waiting->store->ops->claim(
        waiting->store, &waiting->worker, &waiting->claim_id, 1, HTTP_WAIT_MS_MAX, &waiting->lease,
        &waiting->count, &ttl_ms, &waiting->error);
    return NULL;
}

static void wait_begin(struct waiting *waiting, struct store *store, const char *worker_id)
{
    memset(waiting, 0, sizeof *waiting);
    waiting->store = store;
    waiting->claim_id = 1;
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

/* Of the suite of submit_jobs' job `index`. */
static int64_t leased_jobs(int index)
{
    struct error error;
    struct store_suite_status status;
    EXPECT_OK(
        site.behind->ops->suite_status(site.behind, make_spec(index).suite_id, &status, &error),
        error);
    return status.jobs[JOB_LEASED];
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

/* A client that hung up while it waited for a job gets none: the job goes to the next. */
static void a_claim_of_a_client_that_left_takes_no_job(void)
{
    static const char body[] =
        "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":1,\"wait_ms\":60000,\"claim_id\":1}";
    char text[512];
    struct error error;
    struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    begin();
    int bytes = snprintf(text, sizeof text,
                         "POST /v1/workers/gone/claim HTTP/1.1\r\nHost: x\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         sizeof body - 1, body);
    int fd = support_connect(site.socket_path);
    EXPECT(send(fd, text, (size_t)bytes, MSG_NOSIGNAL) == bytes);
    until_waiting(1);
    close(fd);
    struct store *store = connect_worker();
    submit_jobs(store, 0, 1);
    const struct store_worker other = {.worker_id = "here", .pool = "bulk", .device = "cpu"};
    EXPECT_OK(store->ops->claim(store, &other, fresh_claim_id(), 1, 5000, &lease, &count, &ttl_ms,
                                &error),
              error);
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
    EXPECT_INT(leased_jobs(0), 0);
    /* Told to stop or not: what does not wait is answered. */
    EXPECT_OK(store->ops->claim(store, &waiting.worker, &waiting.claim_id, 1, 0, &lease, &count,
                                &ttl_ms, &error),
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
        EXPECT_INT(leased_jobs(race), waiting.count);
        if (waiting.count == 0) { /* it is there for the next one */
            EXPECT_OK(submitter->ops->claim(submitter, &next, fresh_claim_id(), 1, 0, &lease,
                                            &count, &ttl_ms, &error),
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

static void claim_raw(int64_t claim_id, char reply[8192])
{
    char body[128];
    snprintf(body, sizeof body, "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":2,\"claim_id\":%d}",
             (int)claim_id);
    EXPECT_INT(support_call(site.socket_path, "POST", "/v1/workers/w/claim", body, reply, 8192),
               200);
}

/* Body of an answer: the head has the second in which it was sent. */
static const char *body_of(const char reply[8192])
{
    const char *head_end = strstr(reply, "\r\n\r\n");

    EXPECT(head_end != NULL);
    return head_end != NULL ? head_end + 4 : reply;
}

/* The second answer is the first one, by another server too; a claim that comes late, when the
 * worker has had leases under a higher id, leases nothing. */
static void a_claim_delivered_twice_leases_once(void)
{
    static char first[8192];
    static char second[8192];
    begin();
    submit_jobs(site.behind, 0, 6);
    claim_raw(7, first);
    EXPECT(strstr(first, "\"next_claim_id\":8") != NULL);
    claim_raw(7, second);
    EXPECT_TEXT(body_of(second), body_of(first));
    EXPECT_INT(leased_jobs(0), 2);
    site_again();
    claim_raw(7, second);
    EXPECT_TEXT(body_of(second), body_of(first));
    claim_raw(9, second);
    claim_raw(8, first);
    EXPECT_INT(leased_jobs(0), 4);
    EXPECT(strstr(first, "{\"leases\":[]") != NULL);
    EXPECT(strstr(first, "\"next_claim_id\":10") != NULL);
    site_stop();
}

int main(void)
{
    return TEST_RUN(TEST(work_wakes_the_claim), TEST(a_claim_of_a_client_that_left_takes_no_job),
                    TEST(a_stopping_server_ends_the_claim), TEST(a_stop_ends_the_claim),
                    TEST(no_job_is_lost_to_a_stop), TEST(a_claim_delivered_twice_leases_once));
}
