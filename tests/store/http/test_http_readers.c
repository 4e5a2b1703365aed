/*
 * Those who only read, and those who work.
 *
 * Goal: no statement reads a table through; a page of outcomes looks at a bounded number of rows
 * and says how to go on; a query is given up when it takes too long or the server stops; turns are
 * fair to tokens; workers' calls do not wait for readers, whatever these do; a cancel leaves room
 * for others; sums that are kept equal those that are counted. Method: the query planner's own
 * words for every kept statement; a store filled by a script; readers' connections that the test
 * itself holds, beside requests over TCP.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/server/http_readers.h"
#include "store/server/server.h"
#include "store/server/tokens.h"
#include "store/sql/sql_store.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/faults/invariants.h"
#include "tests/store/http/http_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[160];
static struct store *store;
static struct error error;

static void open_store(void)
{
    static int serial;
    snprintf(path, sizeof path, "%s/%d.db", support_directory(), ++serial);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
}

/* ---- plans ---- */

/* Tables that grow with what a fleet does, by the names that statements give them. */
static bool is_large(const char *name)
{
    static const char *const names[] = {
        "jobs",   "j", "job_specs",     "s", "r",         "outcomes", "o",        "attempts", "a",
        "ledger", "l", "memo_outcomes", "m", "scenarios", "x",        "prefixes", "contexts", "c"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static struct query explain(struct db *db, enum statement statement)
{
    char text[16384];
    char *sql = statement_text(statement);
    EXPECT(sql != NULL);
    int bytes = snprintf(text, sizeof text, "EXPLAIN QUERY PLAN %s", sql);
    free(sql);
    EXPECT(bytes > 0 && (size_t)bytes < sizeof text);
    return query_begin_sql(db, text);
}

static void every_statement_has_an_index(void)
{
    struct db *db = NULL;
    open_store();
    store->ops->close(store);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        struct query query = explain(db, (enum statement)i);
        while (query_row(&query)) {
            char detail[256];
            char name[32] = "";
            query_column_text(&query, 3, detail, sizeof detail);
            /* Of `swerve check`, on a connection of its own. */
            bool alone = i >= STATEMENT_CHECK_SUITES && i <= STATEMENT_CHECK_ARTIFACTS;
            /* Of the jobs that are leased now: no others are in that index. */
            bool leased = (i == STATEMENT_LEASED_WORKERS || i == STATEMENT_LEASED_OF_POOL ||
                           i == STATEMENT_DEMAND || i == STATEMENT_RUNNING_OF_SUITE) &&
                          strstr(detail, "INDEX jobs_leased") != NULL;
            /* Of an administrator, once in a while: what all planners have driven. */
            bool rare = i == STATEMENT_REDRIVE_UNDRIVEN || i == STATEMENT_REDRIVE_UNSTARTED;
            if (sscanf(detail, "SCAN %31s", name) == 1 && is_large(name) && !leased && !alone &&
                !rare) {
                TEST_FAIL("%s\n# %s", detail, statement_pattern((enum statement)i));
            }
        }
        EXPECT_OK(query_end(&query, &error), error);
    }
    db_close(db);
}

/* Goal: a submission's cost does not grow with the jobs that its scenario or planner has already.
 */
static void known_jobs_are_found_by_their_key(void)
{
    static const enum statement statements[] = {STATEMENT_SPEC_FIND, STATEMENT_MEMO_FIND,
                                                STATEMENT_AUDITED_FIND, STATEMENT_FREEZE_MOOT};
    struct db *db = NULL;
    open_store();
    store->ops->close(store);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        int found = 0;
        struct query query = explain(db, statements[i]);
        while (query_row(&query)) {
            char detail[256];
            query_column_text(&query, 3, detail, sizeof detail);
            if (strstr(detail, "SEARCH s ") != NULL) {
                EXPECT(strstr(detail, "key=?") != NULL);
                found++;
            }
        }
        EXPECT_OK(query_end(&query, &error), error);
        EXPECT(found > 0);
    }
    db_close(db);
}

/* ---- pages ---- */

enum { JOBS = 6000, BRANCHES = 4 };

/* JOBS done jobs of BRANCHES outcomes each in suite 1, "big"; every hundredth job is "rare", of
 * the others the first half "early", the second "late"; the last outcome of all failed. Suite 2,
 * "taken", took over every tenth. */
static void fill(void)
{
    char sql[8192];
    struct db *db = NULL;
    open_store();
    store->ops->close(store);
    snprintf(
        sql, sizeof sql,
        "BEGIN;"
        "INSERT INTO suites (id, name, weight, jobs_done, rollouts_total, rollouts_pass,"
        " rollouts_fail, ticks, metres_mm) VALUES (1, 'big', 1, %1$d, 4 * %1$d, 4 * %1$d - 1, 1, "
        "36 * %1$d,"
        " 200 * %1$d);"
        "INSERT INTO pools (id, name) VALUES (1, 'bulk');"
        "INSERT INTO workers (id, name, pool, device) VALUES (1, 'w', 1, 'cpu');"
        "INSERT INTO contexts VALUES (1, 'p', 'h', 'bulk', 1, '', '', 'cpu', 'r', 1);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %1$d)"
        " INSERT INTO jobs (id, suite, pool, state, priority, rollouts, epoch, attempts, worker)"
        " SELECT i, 1, 1, 2, 0, 4, 1, 1, 1 FROM n;"
        "INSERT INTO job_specs (job, suite, key, scenario_id, context, seed, attempts_max)"
        " SELECT id, 1, 'k' || id, CASE WHEN id %% 100 = 0 THEN 'rare' WHEN id <= %1$d / 2"
        " THEN 'early' ELSE 'late' END, 1, id, 3 FROM jobs;"
        "INSERT INTO attempts (job, epoch, worker, pool, device, tier, ending, device_ns,"
        " metres_mm, price_uusd_per_hour, cost_uusd)"
        " SELECT id, 1, 1, 1, 'cpu', 1, 0, 0, 0, 40000, 0 FROM jobs;"
        "INSERT INTO accounts VALUES (1, 'cpu', 40000, 0);"
        "INSERT INTO ledger VALUES (1, 1, 'cpu', 1, 0, 0, %1$d, 0, 0, 0, 0);"
        "INSERT INTO ledger_totals VALUES (1, 'cpu', 1, 0, 0, %1$d, 0, 0, 0, 0);"
        "INSERT INTO outcomes (job, epoch, suite, context, branch_id, verdict, reasons, ticks,"
        " prefix_ticks, metres_mm, device_ns, trace_hash, artifact_hash, weather, light, road,"
        " geography, actor, scenario_type, safety_critical, error, intervention_count,"
        " collision_count, collision_agent, collision_kind, at_fault, goal_reached)"
        " SELECT id, 1, 1, 1, 'b' || b, id = %1$d AND b = 4, 128 * (id = %1$d AND b = 4), 9, 0, "
        "50, 0, "
        "'', '', '', '',"
        " '', '', '', '', 0, '', 0, 0, -1, 0, 0, 1 FROM jobs CROSS JOIN"
        " (SELECT 1 AS b UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4);"
        "INSERT INTO suites (id, name, weight, jobs_done, jobs_memoised, rollouts_total,"
        " rollouts_pass, rollouts_fail)"
        " VALUES (2, 'taken', 1, %1$d / 10, %1$d / 10, 4 * %1$d / 10, 4 * %1$d / 10 - 1, 1);"
        "INSERT INTO jobs (id, suite, pool, state, priority, rollouts, memo_of)"
        " SELECT 10000 + id, 2, 1, 2, 0, 4, id FROM jobs WHERE id %% 10 = 0;"
        "INSERT INTO job_specs (job, suite, key, scenario_id, context, seed, attempts_max)"
        " SELECT 10000 + job, 2, key, scenario_id, 1, seed, 3 FROM job_specs"
        " WHERE job %% 10 = 0;"
        "INSERT INTO memo_outcomes SELECT 2, id, 10000 + job FROM outcomes WHERE job %% 10 = 0;"
        "INSERT INTO suite_planners VALUES (1, 'p'), (2, 'p');"
        "INSERT INTO pool_jobs VALUES (1, 2, %1$d + %1$d / 10); COMMIT",
        JOBS);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
}

/* All outcomes that fit, by pages of this backend; in how many calls of the backend's own pages. */
static uint32_t read_all(struct store *from, struct store_outcome_filter filter, uint32_t *calls)
{
    static struct outcome page[1000];
    uint32_t total = 0;
    int64_t next = 1;
    *calls = 0;
    while (next > 0) {
        uint32_t count = 0;
        next = 0;
        EXPECT_OK(from->ops->outcomes_page == NULL
                      ? from->ops->outcomes(from, &filter, page, &count, &error)
                      : from->ops->outcomes_page(from, &filter, page, &count, &next, &error),
                  error);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT(page[i].id > filter.after_id);
            EXPECT(filter.scenario_id[0] == '\0' ||
                   strcmp(page[i].scenario_id, filter.scenario_id) == 0);
            EXPECT(filter.suite_id[0] == '\0' || strcmp(page[i].suite_id, filter.suite_id) == 0);
            filter.after_id = page[i].id;
        }
        if (next == 0 && count == filter.limit) {
            next = filter.after_id; /* a full page says nothing of what follows */
        }
        EXPECT(next == 0 || next >= filter.after_id);
        filter.after_id = next;
        total += count;
        (*calls)++;
    }
    return total;
}

static void pages_are_bounded(void)
{
    static const struct {
        const char *suite;
        const char *scenario;
        int verdict;
        uint32_t found;
        uint32_t calls_min; /* in pages */
    } cases[] = {
        {"", "", -1, JOBS * BRANCHES, 24},
        {"big", "", -1, JOBS * BRANCHES, 24},
        {"taken", "", -1, JOBS * BRANCHES / 10, 3},
        {"", "nope", -1, 0, 1},
        {"big", "nope", -1, 0, 1},
        {"", "rare", -1, JOBS * BRANCHES / 100, 1},
        {"big", "rare", -1, JOBS * BRANCHES / 100, 1},
        {"taken", "rare", -1, JOBS * BRANCHES / 100, 1},
        {"", "early", -1, JOBS * BRANCHES * 99 / 200, 13},
        {"", "late", -1, JOBS * BRANCHES * 99 / 200, 13},
        {"taken", "late", -1, JOBS * BRANCHES * 9 / 200, 2},
        {"", "", VERDICT_FAIL, 1, 1},
        {"big", "", VERDICT_FAIL, 1, 1},
        {"taken", "", VERDICT_FAIL, 1, 1},
        {"", "", VERDICT_FLAGGED, 0, 1},
        {"", "late", VERDICT_FLAGGED, 0, 1},
        {"big", "rare", VERDICT_FAIL, 1, 1},
    };
    char why[256];
    uint32_t calls;
    fill();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct store_outcome_filter filter = {.limit = 1000, .by_verdict = cases[i].verdict >= 0};
        filter.verdict = filter.by_verdict ? (enum verdict)cases[i].verdict : VERDICT_PASS;
        strcpy(filter.suite_id, cases[i].suite);
        strcpy(filter.scenario_id, cases[i].scenario);
        uint32_t found = read_all(store->ops->reading(store), filter, &calls);
        if (found != cases[i].found || calls < cases[i].calls_min || calls > 30) {
            TEST_FAIL("suite \"%s\" scenario \"%s\" verdict %d: %u outcomes in %u calls",
                      cases[i].suite, cases[i].scenario, cases[i].verdict, found, calls);
        }
    }
    /* Rows that have to be walked past comes in steps; the whole call takes them all. */
    static struct outcome page[1000];
    struct store_outcome_filter late = {.limit = 1000, .scenario_id = "late"};
    uint32_t count = 9;
    int64_t next = 0;
    EXPECT_OK(store->ops->outcomes_page(store, &late, page, &count, &next, &error), error);
    EXPECT_INT(count, 0);
    EXPECT(next > 0 && next < JOBS * BRANCHES / 2);
    EXPECT_OK(store->ops->outcomes(store, &late, page, &count, &error), error);
    EXPECT_INT(count, 1000);
    EXPECT_INT(page[0].id, JOBS * BRANCHES / 2 + 1);
    store->ops->close(store);
    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("%s", why);
    }
}

/* Goal: outcomes of a job whose row was taken out by hand hide no others, wherever in a page they
 * are: the last of the first chunk (ids 997 to 1,000), a whole chunk (3,001 to 4,000), the last of
 * all. */
static void outcomes_of_no_job_hide_no_others(void)
{
    struct db *db = NULL;
    uint32_t calls;
    const struct store_outcome_filter all = {.limit = 1000};
    const struct store_outcome_filter big = {.limit = 1000, .suite_id = "big"};

    fill();
    store->ops->close(store);
    EXPECT_OK(sqlite_db_open(path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db,
                               "PRAGMA foreign_keys = OFF; DELETE FROM job_specs WHERE job = 250"
                               " OR job BETWEEN 751 AND 1000 OR job = 6000",
                               &error),
              error);
    db_close(db);
    EXPECT_OK(store_sqlite_open(path, NULL, &store, &error), error);
    EXPECT_INT(read_all(store, all, &calls), BRANCHES * (JOBS - 252));
    EXPECT_INT(read_all(store, big, &calls), BRANCHES * (JOBS - 252));
    store->ops->close(store);
}

/* ---- limits of time ---- */

/* Minutes of work for SQLite. */
static const char endless[] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                              " WHERE i < 10000000000) SELECT SUM(i) FROM n";

static void *run_endless(void *context)
{
    struct db *db = context;
    static struct error found;
    int64_t sum;
    sqlite_db_scalar(db, endless, &sum, &found);
    return &found;
}

static void long_queries_are_given_up(void)
{
    struct db *db;
    pthread_t thread;
    void *found;
    int64_t sum;
    open_store();
    struct store *reading = store->ops->reading(store);
    EXPECT_OK(sql_store_read_begin(reading, &db, &error), error);
    EXPECT_INT(sqlite_db_scalar(db, endless, &sum, &error), STATUS_TIMEOUT);
    EXPECT_CONTAINS(error.text, "ask for less");
    sql_store_read_end(sql_store_of(store), db);
    /* The connection is as good as before, and a server that stops does not wait for the limit. */
    EXPECT_OK(sql_store_read_begin(reading, &db, &error), error);
    CHECK(pthread_create(&thread, NULL, run_endless, db) == 0);
    store->ops->reading_end(store);
    CHECK(pthread_join(thread, &found) == 0);
    EXPECT_INT(((struct error *)found)->status, STATUS_BUSY);
    EXPECT_CONTAINS(((struct error *)found)->text, "stopping");
    sql_store_read_end(sql_store_of(store), db);
    EXPECT_OK(sql_store_read_begin(reading, &db, &error), error);
    EXPECT_OK(sqlite_db_scalar(db, "SELECT COUNT(*) FROM jobs", &sum, &error), error);
    sql_store_read_end(sql_store_of(store), db);
    store->ops->close(store);
}

/* ---- turns ---- */

struct looker {
    struct http_readers *readers;
    const char *token;
    int64_t wait_ms;
    atomic_int *order;
    int turn; /* in which order it came; -1: it was refused */
    int code;
    pthread_t thread;
};

static void *look_once(void *context)
{
    struct looker *looker = context;
    struct http_reader reader;
    struct error refused;
    looker->turn = -1;
    if (http_readers_enter(looker->readers, &reader, looker->token, looker->wait_ms, &looker->code,
                           &refused) == STATUS_OK) {
        looker->turn = atomic_fetch_add(looker->order, 1);
        http_readers_leave(looker->readers, &reader);
    }
    return NULL;
}

static void start_looker(struct looker *looker, struct http_readers *readers, const char *token,
                         int64_t wait_ms, atomic_int *order, uint32_t waiting)
{
    *looker =
        (struct looker){.readers = readers, .token = token, .wait_ms = wait_ms, .order = order};
    CHECK(pthread_create(&looker->thread, NULL, look_once, looker) == 0);
    for (uint32_t found = 0; found < waiting;) {
        found = 0;
        pthread_mutex_lock(&readers->mutex);
        for (struct http_reader *each = readers->first; each != NULL; each = each->next) {
            found++;
        }
        pthread_mutex_unlock(&readers->mutex);
        sched_yield();
    }
}

static void turns_are_fair(void)
{
    enum { CROWD = 8 };
    static struct http_readers readers;
    struct http_reader held[HTTP_READERS_RUNNING_MAX];
    struct looker crowd[CROWD];
    struct looker single;
    atomic_int order = 0;
    int code = 0;
    http_readers_init(&readers);
    for (int i = 0; i < HTTP_READERS_RUNNING_MAX; i++) {
        EXPECT_OK(http_readers_enter(&readers, &held[i], "greedy", 0, &code, &error), error);
    }
    /* Nobody gets a turn now: whoever does not wait is told so. */
    struct http_reader late;
    EXPECT_INT(http_readers_enter(&readers, &late, "greedy", 1, &code, &error), STATUS_BUSY);
    EXPECT_INT(code, 0);
    for (uint32_t i = 0; i < CROWD; i++) {
        start_looker(&crowd[i], &readers, "greedy", 60000, &order, i + 1);
    }
    start_looker(&single, &readers, "modest", 60000, &order, CROWD + 1);
    http_readers_leave(&readers, &held[0]);
    CHECK(pthread_join(single.thread, NULL) == 0);
    EXPECT_INT(single.turn, 0); /* it came last */
    for (int i = 1; i < HTTP_READERS_RUNNING_MAX; i++) {
        http_readers_leave(&readers, &held[i]);
    }
    for (int i = 0; i < CROWD; i++) {
        CHECK(pthread_join(crowd[i].thread, NULL) == 0);
        EXPECT(crowd[i].turn > 0);
    }
    /* A stop ends the waiting, and nobody begins. */
    for (int i = 0; i < HTTP_READERS_RUNNING_MAX; i++) {
        EXPECT_OK(http_readers_enter(&readers, &held[i], "greedy", 0, &code, &error), error);
    }
    start_looker(&single, &readers, "modest", 60000, &order, 1);
    http_readers_stop(&readers);
    CHECK(pthread_join(single.thread, NULL) == 0);
    EXPECT_INT(single.turn, -1);
    for (int i = 0; i < HTTP_READERS_RUNNING_MAX; i++) {
        http_readers_leave(&readers, &held[i]);
    }
    EXPECT_INT(http_readers_enter(&readers, &late, "modest", 0, &code, &error), STATUS_BUSY);
    http_readers_finish(&readers);
}

/* ---- workers beside readers ---- */

static struct {
    struct token_guard *guard;
    struct store_server *server;
    char reader[TOKEN_SECRET_BYTES];
    char worker[TOKEN_SECRET_BYTES];
    int port;
} site;

static void make_token(const char *tokens, enum token_role role, char text[TOKEN_SECRET_BYTES])
{
    struct token token = {.role = role};
    strcpy(token.name, token_role_names[role]);
    strcpy(token.pool, role == TOKEN_ROLE_WORKER ? "bulk" : "");
    EXPECT_OK(tokens_add(tokens, &token, text, &error), error);
}

static void site_start(void)
{
    char tokens[170];
    struct tcp_place place;
    int fd = -1;
    fill();
    snprintf(tokens, sizeof tokens, "%s.tokens", path);
    make_token(tokens, TOKEN_ROLE_READ, site.reader);
    make_token(tokens, TOKEN_ROLE_WORKER, site.worker);
    EXPECT_OK(token_guard_create(tokens, clock_system(), NULL, &site.guard, &error), error);
    EXPECT_OK(tcp_listen("127.0.0.1:0", &fd, &place, &error), error);
    site.port = atoi(strrchr(place.text, ':') + 1);
    const struct store_server_options options = {.guard = site.guard};
    EXPECT_OK(store_server_start_with(store, fd, NULL, &options, &site.server, &error), error);
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)site.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static int send_request(const char *method, const char *target, const char *token, const char *body)
{
    char text[2048];
    int count = snprintf(text, sizeof text,
                         "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         method, target, token, strlen(body), body);
    int fd = dial();
    CHECK(send(fd, text, (size_t)count, MSG_NOSIGNAL) == count);
    return fd;
}

static int ask(const char *method, const char *target, const char *token, const char *body)
{
    static char reply[1 << 16];
    int fd = send_request(method, target, token, body);
    int code = support_request(fd, "", 0, reply, sizeof reply);
    close(fd);
    return code;
}

static void workers_do_not_wait_for_readers(void)
{
    enum { READERS = 3 * HTTP_READERS_RUNNING_MAX, ROUNDS = 20 };
    struct db *held[STORE_READERS];
    int readers[READERS];
    char body[128];
    site_start();
    /* Every connection that readers may use is taken, for as long as the test likes. */
    for (int i = 0; i < STORE_READERS; i++) {
        EXPECT_OK(sql_store_read_begin(store->ops->reading(store), &held[i], &error), error);
    }
    for (int i = 0; i < READERS; i++) {
        readers[i] = send_request("GET", i % 2 == 0 ? "/v1/outcomes?scenario=nope" : "/v1/jobs/1",
                                  site.reader, "");
    }
    for (int i = 1; i <= ROUNDS; i++) {
        EXPECT_INT(ask("POST", "/v1/workers/w/heartbeat", site.worker,
                       "{\"pool\":\"bulk\",\"device\":\"cpu\",\"progress\":[]}"),
                   200);
        snprintf(body, sizeof body,
                 "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":1,\"claim_id\":%d}", i);
        EXPECT_INT(ask("POST", "/v1/workers/w/claim", site.worker, body), 200);
        EXPECT_INT(ask("GET", "/v1/jobs/1", site.worker, ""), 200);
        EXPECT_INT(ask("GET", "/healthz", site.worker, ""), 200);
    }
    for (int i = 0; i < STORE_READERS; i++) {
        sql_store_read_end(sql_store_of(store), held[i]);
    }
    char reply[1 << 12];
    for (int i = 0; i < READERS; i++) {
        int code = support_request(readers[i], "", 0, reply, sizeof reply);
        if (code != 200 && code != 503) { /* 503: it has waited for too long by now */
            TEST_FAIL("reader %d: %d", i, code);
        }
        close(readers[i]);
    }
    store_server_stop(site.server);
    token_guard_destroy(site.guard);
    store->ops->close(store);
}

/* A client of ours follows `next` by itself. */
static void clients_read_on(void)
{
    struct store *client = NULL;
    char url[64];
    char token_file[200];
    uint32_t calls;
    site_start();
    snprintf(url, sizeof url, "http://127.0.0.1:%d", site.port);
    snprintf(token_file, sizeof token_file, "%s.secret", path);
    FILE *file = fopen(token_file, "w");
    CHECK(file != NULL && fprintf(file, "%s\n", site.reader) > 0 && fclose(file) == 0 &&
          chmod(token_file, 0600) == 0);
    const struct store_config config = {.token_file = token_file};
    EXPECT_OK(store_http_open(url, &config, &client, &error), error);
    /* Half of all outcomes have to be walked past, more than one answer looks at. */
    const struct store_outcome_filter filter = {.limit = 1000, .scenario_id = "late"};
    EXPECT_INT(read_all(client, filter, &calls), JOBS * BRANCHES * 99 / 200);
    client->ops->close(client);
    store_server_stop(site.server);
    token_guard_destroy(site.guard);
    store->ops->close(store);
}

/* ---- cancelling ---- */

static void a_cancel_leaves_room_for_others(void)
{
    enum { MANY = 1000 };
    static struct job_spec specs[MANY];
    static struct store_submit_result results[MANY];
    static struct job_lease leases[64];
    struct store_suite_status status;
    struct store_stats before;
    struct store_stats after;
    struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    int64_t cancelled = 0;
    char why[256];
    open_store();
    for (int i = 0; i < MANY; i++) {
        specs[i] = (struct job_spec){.scenario_id = "s",
                                     .planner = "p",
                                     .pool = "bulk",
                                     .backend = "cpu",
                                     .rollout_count = 1,
                                     .attempts_max = 3};
        snprintf(specs[i].key, sizeof specs[i].key, "%d", i);
    }
    EXPECT_OK(store->ops->submit(store, "a", 1, specs, MANY, results, &error), error);
    EXPECT_OK(store->ops->submit(store, "b", 1, specs, 3, results, &error), error);
    EXPECT_OK(
        store->ops->claim(store, &worker, fresh_claim_id(), 64, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT(count > 0);
    EXPECT_OK(store->ops->stats(store, &before, &error), error);
    EXPECT_OK(store->ops->cancel(store, "a", &cancelled, &error), error);
    EXPECT_OK(store->ops->stats(store, &after, &error), error);
    EXPECT_INT(cancelled, MANY);
    EXPECT(after.groups - before.groups >= 4); /* transactions, between which others get in */
    EXPECT_OK(store->ops->suite_status(store, "a", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_CANCELLED], MANY);
    EXPECT_INT(after.pools[0].jobs[JOB_CANCELLED], MANY);
    EXPECT_OK(store->ops->suite_status(store, "b", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_QUEUED] + status.jobs[JOB_LEASED], 3);
    EXPECT_OK(store->ops->cancel(store, "a", &cancelled, &error), error);
    EXPECT_INT(cancelled, 0);
    store->ops->close(store);
    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("%s", why);
    }
}

int main(void)
{
    return TEST_RUN(TEST(every_statement_has_an_index), TEST(known_jobs_are_found_by_their_key),
                    TEST(pages_are_bounded), TEST(outcomes_of_no_job_hide_no_others),
                    TEST(long_queries_are_given_up), TEST(turns_are_fair),
                    TEST(workers_do_not_wait_for_readers), TEST(clients_read_on),
                    TEST(a_cancel_leaves_room_for_others));
}
