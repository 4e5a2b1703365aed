/*
 * Whatever the roles of a fleet may call, a store fits together after it.
 *
 * Goal: no call, of whatever role, honest or hostile, brings about what `swerve check` calls
 * damage, or keeps a backup from being made; and none is answered with a failure of the store.
 * Method: random calls (property.h) against the embedded store, against a server with a token for
 * each role, and against PostgreSQL, in plays of some hundred calls, each over an empty store. The
 * store is checked every so many calls and where the play ends; of a play that fails, the calls
 * since the last good check are played again, a check behind each, so that it is named.
 *
 *   test_store_property BACKEND CALLS [SEED]     sqlite, http, postgresql
 *
 * SWERVE_TEST_TRACE: each call is printed, with its answer.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/keep/backup.h"
#include "store/keep/keep_check.h"
#include "store/server/server.h"
#include "store/server/tokens.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"
#include "tests/store/property/property.h"
#ifdef SWERVE_WITH_POSTGRES
#include "store/postgres/postgres_store.h"
#include "tests/store/postgres/postgres_site.h"
#endif

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAY_CALLS = 500, CHECK_EVERY = 50, REOPEN_EVERY = 170, WHY_BYTES = 3000 };

struct site {
    const char *backend; /* "sqlite", "http", "postgresql" */
    int serial;
    char path[160]; /* of the database; PostgreSQL: its URL is longer */
    char url[512];
    struct manual_clock clock;
    struct store *behind;
    struct store_server *server;
    struct token_guard *guard;
    char tokens[PROPERTY_ROLE_COUNT][240]; /* files */
    struct property_config config;
#ifdef SWERVE_WITH_POSTGRES
    struct postgres_site postgres;
#endif
};

static struct site site;
static struct error error;

static bool is(const char *backend)
{
    return strcmp(site.backend, backend) == 0;
}

/* ---- stores ---- */

static void make_token(int role)
{
    static const struct {
        const char *name;
        enum token_role role;
        const char *pool;
        const char *tenant;
    } roles[PROPERTY_ROLE_COUNT] = {
        [PROPERTY_ADMIN] = {"admin", TOKEN_ROLE_ADMIN, "", ""},
        [PROPERTY_READ] = {"read", TOKEN_ROLE_READ, "", ""},
        [PROPERTY_SUBMIT] = {"submit", TOKEN_ROLE_SUBMIT, "", ""},
        [PROPERTY_SUBMIT_TENANT] = {"tenant", TOKEN_ROLE_SUBMIT, "", "acme"},
        [PROPERTY_WORKER] = {"w1", TOKEN_ROLE_WORKER, "bulk", ""},
        [PROPERTY_WORKER_OTHER] = {"w2", TOKEN_ROLE_WORKER, "bulk", ""},
        [PROPERTY_TEACHER] = {"w3", TOKEN_ROLE_WORKER, "teacher", ""},
    };
    struct token token = {.role = roles[role].role,
                          .created_s = clock_wall_ns(clock_system()) / NS_PER_S};
    char text[TOKEN_SECRET_BYTES];
    char file[200];
    snprintf(token.name, sizeof token.name, "%s", roles[role].name);
    snprintf(token.pool, sizeof token.pool, "%s", roles[role].pool);
    snprintf(token.tenant, sizeof token.tenant, "%s", roles[role].tenant);
    snprintf(file, sizeof file, "%s.tokens", site.path);
    EXPECT_OK(tokens_add(file, &token, text, &error), error);
    snprintf(site.tokens[role], sizeof site.tokens[role], "%s.%s", site.path, token.name);
    int fd = open(site.tokens[role], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static void open_server(const struct store_config *config)
{
    struct tcp_place place;
    char url[TCP_PLACE_BYTES + 16];
    char file[200];
    int fd = -1;
    snprintf(file, sizeof file, "%s.tokens", site.path);
    EXPECT_OK(token_guard_create(file, clock_system(), NULL, &site.guard, &error), error);
    EXPECT_OK(tcp_listen("127.0.0.1:0", &fd, &place, &error), error);
    const struct store_server_options options = {.guard = site.guard};
    EXPECT_OK(store_server_start_with(site.behind, fd, config, &options, &site.server, &error),
              error);
    snprintf(url, sizeof url, "http://%s", place.text);
    for (int role = 0; role < PROPERTY_ROLE_COUNT; role++) {
        const struct store_config client = {.token_file = site.tokens[role]};
        EXPECT_OK(store_http_open(url, &client, &site.config.stores[role], &error), error);
    }
}

static void open_site(void)
{
    const struct store_config config = {
        .clock = &site.clock.clock, .lease_ttl_ms = 15000, .backoff_ms = 1000};
#ifdef SWERVE_WITH_POSTGRES
    if (is("postgresql")) {
        EXPECT_OK(postgres_store_open(site.url, &config, &site.behind, &error), error);
    }
#endif
    if (!is("postgresql")) {
        EXPECT_OK(store_sqlite_open(site.path, &config, &site.behind, &error), error);
    }
    for (int role = 0; role < PROPERTY_ROLE_COUNT; role++) {
        site.config.stores[role] = site.behind;
    }
    if (is("http")) {
        open_server(&config);
    }
}

static void close_site(void)
{
    for (int role = 0; role < PROPERTY_ROLE_COUNT && is("http"); role++) {
        site.config.stores[role]->ops->close(site.config.stores[role]);
    }
    store_server_stop(site.server);
    token_guard_destroy(site.guard);
    site.server = NULL;
    site.guard = NULL;
    site.behind->ops->close(site.behind);
}

/* An empty store. */
static void fresh_site(uint64_t seed)
{
    site.serial++;
    snprintf(site.path, sizeof site.path, "%s/%d.db", support_directory(), site.serial);
    manual_clock_init(&site.clock);
    site.config = (struct property_config){.clock = &site.clock, .seed = seed, .raw = !is("http")};
    for (int role = 0; role < PROPERTY_ROLE_COUNT && is("http"); role++) {
        make_token(role);
    }
#ifdef SWERVE_WITH_POSTGRES
    if (is("postgresql")) {
        EXPECT(postgres_site_schema(&site.postgres, site.serial, site.url, sizeof site.url));
    }
#endif
    open_site();
}

static void remove_site(void)
{
    char command[400];
    close_site();
    snprintf(command, sizeof command, "rm -rf %s*", site.path);
    CHECK(is("postgresql") || system(command) == 0);
}

/* ---- checks ---- */

static void on_finding(void *context, const struct store_check_finding *finding)
{
    char *why = context;
    if (!finding->note && why[0] == '\0') {
        snprintf(why, WHY_BYTES, "check: %s: %s: %s", finding->kind, finding->place, finding->text);
    }
}

/* False: `why` says what does not hold. */
static bool holds(char *why)
{
    struct store_check_summary summary;
    const struct store_check_options options = {.found = on_finding, .context = why};
    const char *store = site.path;
#ifdef SWERVE_WITH_POSTGRES
    store = is("postgresql") ? site.url : store;
#endif
    why[0] = '\0';
    if (keep_check(store, &options, &summary, &error) != STATUS_OK) {
        snprintf(why, WHY_BYTES, "check: %s", error.text);
    }
    return why[0] == '\0';
}

static bool backs_up(char *why)
{
    struct keep_summary summary;
    const struct keep_options options = {.wait_ms = 1000};
    char place[200];
    snprintf(place, sizeof place, "%s.backup", site.path);
    if (is("postgresql")) {
        return true;
    }
    if (keep_backup(site.path, place, &options, &summary, &error) != STATUS_OK) {
        snprintf(why, WHY_BYTES, "backup: %s", error.text);
        return false;
    }
    return true;
}

/* ---- plays ---- */

/* Plays the seed's calls and checks behind every `every`th from call `from` on. The number of the
 * call that failed, or 0. */
static uint64_t play(uint64_t seed, uint64_t calls, uint64_t from, uint64_t every,
                     uint64_t *accepted, char *why)
{
    uint64_t failed = 0;
    fresh_site(seed);
    struct property_play *play = property_begin(&site.config);
    for (uint64_t i = 1; i <= calls && failed == 0; i++) {
        bool good = property_step(play, !is("http"));
        if (getenv("SWERVE_TEST_TRACE") != NULL) {
            printf("# %" PRIu64 " %s\n", i, property_last(play));
        }
        if (!good) {
            snprintf(why, WHY_BYTES, "the store failed");
            failed = i;
        } else if (i >= from && (i % every == 0 || i == calls) && !holds(why)) {
            failed = i;
        }
        if (failed == 0 && i % REOPEN_EVERY == 0) {
            close_site();
            open_site();
            property_stores(play, &site.config);
        }
    }
    failed = failed == 0 && !backs_up(why) ? calls : failed;
    if (failed != 0) {
        size_t used = strlen(why);
        snprintf(why + used, WHY_BYTES - used, " (behind %.1500s)", property_last(play));
    }
    *accepted += property_accepted(play);
    property_end(play);
    remove_site();
    return failed;
}

static void play_all(uint64_t calls, uint64_t seed)
{
    char why[WHY_BYTES] = "";
    uint64_t accepted = 0;
    uint64_t ignored = 0;
    uint64_t every = CHECK_EVERY;
    for (uint64_t done = 0; done < calls; done += PLAY_CALLS, seed++) {
        uint64_t failed = play(seed, PLAY_CALLS, 1, every, &accepted, why);
        uint64_t named =
            failed == 0 ? 0
                        : play(seed, failed, failed > every ? failed - every : 1, 1, &ignored, why);
        if (failed != 0) {
            TEST_FAIL("seed %" PRIu64 ", call %" PRIu64 ": %s", seed, named != 0 ? named : failed,
                      why);
        }
    }
    printf("# %s: %" PRIu64 " calls, %" PRIu64 " of them accepted\n", site.backend, calls,
           accepted);
}

static uint64_t calls_wanted;
static uint64_t first_seed;

static void stores_fit_together_whatever_is_called(void)
{
    play_all(calls_wanted, first_seed);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    site.backend = argv[1];
    calls_wanted = strtoull(argv[2], NULL, 10);
    first_seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
#ifdef SWERVE_WITH_POSTGRES
    if (is("postgresql")) {
        site.postgres.forgetful = true;
        if (!postgres_site_installed(&site.postgres)) {
            printf("1..0 # SKIP no PostgreSQL server is installed (scripts/setup test)\n");
            return getenv("CI") != NULL ? 1 : 0;
        }
        CHECK(postgres_site_make(&site.postgres));
    }
#endif
    int failed = TEST_RUN(TEST(stores_fit_together_whatever_is_called));
#ifdef SWERVE_WITH_POSTGRES
    if (is("postgresql")) {
        postgres_site_remove(&site.postgres);
    }
#endif
    return failed;
}
