/*
 * Readiness. Goal: /readyz says whether the store answers, to anybody, without telling strangers
 * about its files; however many ask, the store is asked once a second; one that hangs is told as
 * such at once. Method: a fake store that fails or blocks, and a database that is taken away.
 */
#include "store/server/http_ready.h"
#include "tests/store/http/http_stack.h"

#include <pthread.h>
#include <unistd.h>

static struct error error;
static char reply[8192];

static int ask(const char *socket_path, const char *path)
{
    char text[256];
    int bytes = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    int fd = support_connect(socket_path);
    int code = support_request(fd, text, (size_t)bytes, reply, sizeof reply);
    close(fd);
    return code;
}

static void it_is_asked_once_a_second(void)
{
    static struct stack stack;
    stack_start(&stack);
    int calls = atomic_load(&stack.control.calls);
    EXPECT_INT(ask(stack.socket_path, "/readyz"), 200);
    EXPECT(strstr(reply, "{\"ok\":true}") != NULL);
    int64_t start_ns = clock_now_ns(clock_system());
    int most = 1;
    for (int i = 0; i < 50; i++) {
        EXPECT_INT(ask(stack.socket_path, "/readyz"), 200);
    }
    most += (int)((clock_now_ns(clock_system()) - start_ns) / 1000000000) + 1;
    int asked = atomic_load(&stack.control.calls) - calls;
    EXPECT(asked >= 1 && asked <= most);
    stack_stop(&stack);
}

static void a_store_that_fails_is_not_ready(void)
{
    static struct stack stack;
    stack_start(&stack);
    atomic_store(&stack.control.fail_calls, 1);
    EXPECT_INT(ask(stack.socket_path, "/readyz"), 503);
    EXPECT(strstr(reply, "Retry-After") != NULL);
    EXPECT_INT(ask(stack.socket_path, "/healthz"), 200); /* the server is there all the same */
    stack_stop(&stack);
}

static int write_one(const char *socket_path, const char *path, const char *body)
{
    char text[512];
    int bytes = snprintf(text, sizeof text,
                         "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         path, strlen(body), body);
    int fd = support_connect(socket_path);
    int code = support_request(fd, text, (size_t)bytes, reply, sizeof reply);
    close(fd);
    return code;
}

/* A full disk reads: what cannot be written is told by the calls that fail, and by /readyz until
 * one like them was written, or for a while. Workers are asked to come back, people are not. */
static void a_full_disk_is_told(void)
{
    static struct stack stack;
    const struct store_server_options options = {.asks_again = true};
    const char *beat = "/v1/workers/w/heartbeat";
    const char *body = "{\"pool\":\"bulk\",\"device\":\"cpu\",\"progress\":[]}";
    stack_start_with(&stack, &options);
    EXPECT_INT(write_one(stack.socket_path, beat, body), 200);
    atomic_store(&stack.control.fail_as, STATUS_IO);
    atomic_store(&stack.control.fail_calls, 1);
    EXPECT_INT(write_one(stack.socket_path, beat, body), 503);
    EXPECT(strstr(reply, "Retry-After") != NULL);
    EXPECT_INT(ask(stack.socket_path, "/readyz"), 503);
    EXPECT_INT(ask(stack.socket_path, "/healthz"), 200);
    EXPECT_INT(write_one(stack.socket_path, beat, body), 200);
    EXPECT_INT(ask(stack.socket_path, "/readyz"), 200);
    atomic_store(&stack.control.fail_calls, 1);
    EXPECT_INT(write_one(stack.socket_path, "/v1/suites/s/cancel", "{}"), 500);
    EXPECT_INT(write_one(stack.socket_path, beat, body), 200); /* another kind ends nothing */
    EXPECT_INT(ask(stack.socket_path, "/readyz"), 503);
    EXPECT_INT(write_one(stack.socket_path, "/v1/suites/s/cancel", "{}"), 200);
    EXPECT_INT(ask(stack.socket_path, "/readyz"), 200);
    stack_stop(&stack);
}

/* Workers of one command, whose owner looks after them, are not asked to come again. */
static void a_full_disk_ends_its_own(void)
{
    static struct stack stack;
    stack_start(&stack);
    atomic_store(&stack.control.fail_as, STATUS_IO);
    atomic_store(&stack.control.fail_calls, 1);
    EXPECT_INT(write_one(stack.socket_path, "/v1/workers/w/heartbeat",
                         "{\"pool\":\"bulk\",\"device\":\"cpu\",\"progress\":[]}"),
               500);
    stack_stop(&stack);
}

/* A failure that nobody repeats counts for a while. */
static void a_failed_write_is_forgotten(void)
{
    struct http_ready ready;
    struct store *store = NULL;
    struct error full = {.status = STATUS_IO, .text = "the disk is full"};
    char path[200];
    snprintf(path, sizeof path, "%s/full.db", support_directory());
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    http_ready_init(&ready);
    http_ready_wrote(&ready, "complete", &full);
    EXPECT_INT(http_ready_check(&ready, store, &error), STATUS_IO);
    EXPECT_TEXT(error.text, "the disk is full");
    ready.unwritten_ns -= HTTP_READY_UNWRITTEN_MS * (int64_t)1000000;
    EXPECT_OK(http_ready_check(&ready, store, &error), error);
    http_ready_finish(&ready);
    store->ops->close(store);
}

/* A file's owner finds out by itself. */
static void a_database_that_is_gone_is_told(void)
{
    struct http_ready ready;
    struct store *store = NULL;
    char path[200];
    snprintf(path, sizeof path, "%s/gone.db", support_directory());
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    http_ready_init(&ready);
    EXPECT_OK(http_ready_check(&ready, store, &error), error);
    EXPECT_INT(unlink(path), 0);
    ready.heard_ns -= 2 * HTTP_READY_FRESH_MS * (int64_t)1000000; /* as if it had been then */
    EXPECT_INT(http_ready_check(&ready, store, &error), STATUS_STORE);
    EXPECT(strstr(error.text, "was removed") != NULL);
    http_ready_finish(&ready);
    store->ops->close(store);
}

/* ---- a store that hangs ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int entered;

static enum status hang(struct store *store, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                        uint32_t *count, struct error *why)
{
    (void)store;
    (void)ids;
    (void)max;
    (void)why;
    atomic_fetch_add(&entered, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    *count = 0;
    return STATUS_OK;
}

static struct http_ready hanging;
static const struct store_ops hang_ops = {.suites = hang};
static struct store hang_store = {&hang_ops};

static void *ask_hanging(void *context)
{
    struct error why;
    *(enum status *)context = http_ready_check(&hanging, &hang_store, &why);
    return NULL;
}

static void a_store_that_hangs_is_told_at_once(void)
{
    enum status status = STATUS_STORE;
    pthread_t thread;
    http_ready_init(&hanging);
    pthread_mutex_lock(&gate);
    CHECK(pthread_create(&thread, NULL, ask_hanging, &status) == 0);
    while (atomic_load(&entered) == 0) {
    }
    EXPECT_INT(http_ready_check(&hanging, &hang_store, &error), STATUS_BUSY);
    EXPECT(strstr(error.text, "has not answered for") != NULL);
    EXPECT_INT(atomic_load(&entered), 1);
    pthread_mutex_unlock(&gate);
    pthread_join(thread, NULL);
    EXPECT_INT(status, STATUS_OK);
    EXPECT_OK(http_ready_check(&hanging, &hang_store, &error), error);
    http_ready_finish(&hanging);
}

int main(void)
{
    return TEST_RUN(TEST(it_is_asked_once_a_second), TEST(a_store_that_fails_is_not_ready),
                    TEST(a_full_disk_is_told), TEST(a_full_disk_ends_its_own),
                    TEST(a_failed_write_is_forgotten), TEST(a_database_that_is_gone_is_told),
                    TEST(a_store_that_hangs_is_told_at_once));
}
