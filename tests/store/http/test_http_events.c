/*
 * Goal: followers that come and go do not keep the others waiting for news; one whose token is
 * revoked gets no more.
 * Method: a store whose overview is another one each time it is asked; a follower that stays, and
 * a crowd of one that comes back as soon as it has left, until there is news. The test ends at once
 * where the thread asks at its pace, and never where each newcomer makes it wait anew.
 */
#include "base/clock.h"
#include "base/units.h"
#include "store/server/http_events.h"
#include "tests/harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS (30 * NS_PER_S)

static enum status no_suites(struct store *store, const char *after, char (*ids)[LIMIT_ID_BYTES],
                             uint32_t max, uint32_t *count, struct error *error)
{
    (void)store;
    (void)after;
    (void)ids;
    (void)max;
    (void)error;
    *count = 0;
    return STATUS_OK;
}

/* Asked by the thread of the events alone. */
static enum status other_stats(struct store *store, struct store_stats *out, struct error *error)
{
    static int64_t asked;
    (void)store;
    (void)error;
    memset(out, 0, sizeof *out);
    out->workers_alive = ++asked;
    return STATUS_OK;
}

static enum status none_lost(struct store *store, int64_t *count, struct error *error)
{
    (void)store;
    (void)error;
    *count = 0;
    return STATUS_OK;
}

static void newcomers_do_not_hold_up_the_news(void)
{
    static const struct store_ops ops = {
        .suites_page = no_suites, .stats = other_stats, .commits_lost = none_lost};
    static struct http_events events;
    static struct http_readers readers;
    struct store store = {&ops};
    struct http_follower *stays = NULL;
    struct http_follower *comes = NULL;
    struct error error;
    const struct token other = {.name = "b"};
    char text[4096];
    int code = 0;
    http_readers_init(&readers);
    EXPECT_OK(http_events_start(&events, &store, &readers, &error), error);
    EXPECT_OK(http_events_follow(&events, NULL, NULL, &stays, &code, &error), error);
    while (http_events_ready(stays) || stays->seen == 0) {
        EXPECT(http_events_read(stays, text, sizeof text) > 0);
    }
    int64_t end_ns = clock_now_ns(clock_system()) + PATIENCE_NS;
    while (!http_events_ready(stays)) {
        EXPECT(clock_now_ns(clock_system()) < end_ns);
        EXPECT_OK(http_events_follow(&events, NULL, &other, &comes, &code, &error), error);
        http_events_leave(comes);
        sched_yield();
    }
    http_events_leave(stays);
    http_events_stop(&events);
    http_events_finish(&events);
    http_readers_finish(&readers);
}

static void a_revoked_token_follows_no_more(void)
{
    static const struct store_ops ops = {
        .suites_page = no_suites, .stats = other_stats, .commits_lost = none_lost};
    static struct http_events events;
    static struct http_readers readers;
    struct store store = {&ops};
    struct http_follower *follower = NULL;
    struct token_guard *guard = NULL;
    struct token token = {.role = TOKEN_ROLE_READ, .name = "r"};
    struct token grant;
    struct error error;
    char directory[] = "/tmp/swerve-events-XXXXXX";
    char path[64];
    char lock[80];
    char secret[TOKEN_SECRET_BYTES];
    char header[TOKEN_SECRET_BYTES + 16];
    char text[4096];
    uint32_t count = 0;
    int code = 0;
    EXPECT(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/tokens", directory);
    snprintf(lock, sizeof lock, "%s.lock", path);
    EXPECT_OK(tokens_add(path, &token, secret, &error), error);
    EXPECT_OK(token_guard_create(path, clock_system(), NULL, &guard, &error), error);
    snprintf(header, sizeof header, "Bearer %s", secret);
    EXPECT(token_guard_admit(guard, header, &grant));
    http_readers_init(&readers);
    EXPECT_OK(http_events_start(&events, &store, &readers, &error), error);
    EXPECT_OK(http_events_follow(&events, guard, &grant, &follower, &code, &error), error);
    EXPECT(http_events_read(follower, text, sizeof text) > 0);
    EXPECT_OK(tokens_revoke(path, "r", &count, &error), error);
    EXPECT_INT(http_events_read(follower, text, sizeof text), 0);
    http_events_leave(follower);
    http_events_stop(&events);
    http_events_finish(&events);
    http_readers_finish(&readers);
    token_guard_destroy(guard);
    unlink(path);
    unlink(lock);
    rmdir(directory);
}

int main(void)
{
    return TEST_RUN(TEST(newcomers_do_not_hold_up_the_news), TEST(a_revoked_token_follows_no_more));
}
