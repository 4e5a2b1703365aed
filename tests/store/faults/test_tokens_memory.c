/*
 * Tokens when memory runs out.
 *
 * Goal: a call on the token file that finds no memory says so and leaves a file that opens exactly
 * what it opened before; a call that succeeded all the same did what it says; a guard that cannot
 * be made leaves nothing behind.
 * Method: every allocation of every call fails, the one alone and all from it on (memory.h), each
 * time on a file of the same two tokens. The address sanitizer's build watches for leaks.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/server/tokens.h"
#include "tests/harness.h"
#include "tests/store/faults/memory.h"
#include "tests/store/http/http_support.h"

#include <string.h>
#include <unistd.h>

enum { CREATED_S = 1700000000, KEPT = 2 };

static const struct logger silent = {.fd = -1, .level = LOG_ERROR, .name = "test"};
static char path[160];
static char secrets[KEPT][TOKEN_SECRET_BYTES];
static struct token_list list;

static enum status add(const char *name, char text[TOKEN_SECRET_BYTES], struct error *error)
{
    struct token token = {.role = TOKEN_ROLE_READ, .created_s = CREATED_S};
    snprintf(token.name, sizeof token.name, "%s", name);
    return tokens_add(path, &token, text, error);
}

/* A file of its own with two tokens. */
static void begin(void)
{
    static int number;
    struct error error;
    snprintf(path, sizeof path, "%s/tokens-%d", support_directory(), ++number);
    EXPECT_OK(add("first", secrets[0], &error), error);
    EXPECT_OK(add("second", secrets[1], &error), error);
}

static void end(void)
{
    char lock[180];
    snprintf(lock, sizeof lock, "%s.lock", path);
    unlink(path);
    unlink(lock);
}

static bool is_listed(const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < list.count; i++) {
        found = found || strcmp(list.tokens[i].name, name) == 0;
    }
    return found;
}

/* The file as it is now, with memory. */
static void read_again(void)
{
    struct error error;
    memset(&list, 0, sizeof list);
    EXPECT_OK(tokens_read(path, &list, &error), error);
}

/* ---- the calls; each is judged when memory is there again ---- */

static enum status read_file(struct error *error)
{
    return tokens_read(path, &list, error);
}

static void after_read(bool done)
{
    EXPECT(!done || list.count == KEPT);
    read_again();
    EXPECT_INT(list.count, KEPT);
}

static char added[TOKEN_SECRET_BYTES];

static enum status add_third(struct error *error)
{
    return add("third", added, error);
}

static void after_add(bool done)
{
    struct error error;
    read_again();
    EXPECT(is_listed("first") && is_listed("second"));
    EXPECT(is_listed("third") == done);
    if (!done) {
        EXPECT_OK(add_third(&error), error);
        read_again();
        EXPECT(is_listed("third"));
    }
}

static enum status revoke_second(struct error *error)
{
    uint32_t count = 0;
    return tokens_revoke(path, "second", &count, error);
}

static void after_revoke(bool done)
{
    struct error error;
    read_again();
    EXPECT(is_listed("first"));
    EXPECT(is_listed("second") == !done);
    if (!done) {
        EXPECT_OK(revoke_second(&error), error);
        read_again();
        EXPECT(!is_listed("second"));
    }
}

static struct token_guard *guard;

static enum status make_guard(struct error *error)
{
    guard = NULL;
    return token_guard_create(path, clock_system(), &silent, &guard, error);
}

static void after_guard(bool done)
{
    struct error error;
    struct token grant;
    char header[TOKEN_SECRET_BYTES + 8];
    EXPECT((guard != NULL) == done);
    if (!done) {
        EXPECT_OK(make_guard(&error), error);
    }
    for (int i = 0; i < KEPT; i++) {
        snprintf(header, sizeof header, "Bearer %.68s", secrets[i]);
        EXPECT(token_guard_admit(guard, header, &grant));
    }
    token_guard_destroy(guard);
}

/* ---- playing ---- */

struct game {
    const char *name;
    enum status (*call)(struct error *error);
    void (*after)(bool done);
};

/* False: the call was over before that allocation. */
static bool play(const struct game *game, int64_t at, bool forever)
{
    struct error error = {.text = ""};
    begin();
    memory_fail(at, forever);
    enum status status = game->call(&error);
    bool met = memory_is_well() > 0;
    if (status != STATUS_OK && (status != STATUS_NO_MEMORY || error.text[0] == '\0')) {
        printf("# %s, allocation %lld%s: status %d, \"%s\"\n", game->name, (long long)at,
               forever ? " and all after it" : "", (int)status, error.text);
    }
    EXPECT(status == STATUS_OK || status == STATUS_NO_MEMORY);
    EXPECT(status == STATUS_OK || error.text[0] != '\0');
    EXPECT(met || status == STATUS_OK);
    game->after(status == STATUS_OK);
    end();
    return met;
}

static void play_all(const struct game *game)
{
    int64_t plays = 0;
    for (int forever = 0; forever < 2; forever++) {
        int64_t at = 1;
        while (play(game, at, forever != 0)) {
            at++;
        }
        EXPECT(at > 1); /* else nothing failed, and nothing was tested */
        plays += at - 1;
    }
    printf("# %s: %lld plays\n", game->name, (long long)plays);
}

static void a_file_is_read_or_not(void)
{
    play_all(&(struct game){"read", read_file, after_read});
}

static void a_token_is_added_or_not(void)
{
    play_all(&(struct game){"add", add_third, after_add});
}

static void a_token_is_revoked_or_not(void)
{
    play_all(&(struct game){"revoke", revoke_second, after_revoke});
}

static void a_guard_is_made_or_not(void)
{
    play_all(&(struct game){"guard", make_guard, after_guard});
}

int main(void)
{
    return TEST_RUN(TEST(a_file_is_read_or_not), TEST(a_token_is_added_or_not),
                    TEST(a_token_is_revoked_or_not), TEST(a_guard_is_made_or_not));
}
