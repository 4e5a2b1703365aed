/*
 * Who may ask a server for what, and how much it takes.
 *
 * Goal: every route answers exactly the roles that it is for; a worker's token acts for its own
 * workers alone, of its pool; whoever may not ask is told so before the body is read; every limit
 * is answered with its code. Method: requests byte by byte over TCP to a server on the embedded
 * store. The roles are those of the API's description.
 */
#include "base/check.h"
#include "store/check/check.h"
#include "store/server/http_routes.h"
#include "store/server/server.h"
#include "store/sql/sqlite_db.h"
#include "store/wire/http_wire.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPLY_BYTES = 1 << 17 };

static struct {
    char path[160];
    char tokens[170];
    char texts[TOKEN_ROLE_COUNT][TOKEN_SECRET_BYTES]; /* one per role; the worker's is for "bulk" */
    char teacher[TOKEN_SECRET_BYTES];                 /* a worker's for "teacher" */
    struct store *store;
    struct token_guard *guard;
    struct store_server *server;
    int port;
    int serial;
    bool read_only;
    bool open; /* without tokens */
    uint32_t planners_kept_max;
} site;

static char reply[REPLY_BYTES];

static void make_token(const char *name, enum token_role role, const char *pool,
                       char text[TOKEN_SECRET_BYTES])
{
    struct error error;
    struct token token = {.role = role};
    strcpy(token.name, name);
    strcpy(token.pool, pool);
    EXPECT_OK(tokens_add(site.tokens, &token, text, &error), error);
}

/* Serves the database that is there. */
static void site_serve(size_t connections_max, size_t peer_max)
{
    struct error error;
    struct tcp_place place;
    int fd = -1;
    EXPECT_OK(store_sqlite_open(site.path, NULL, &site.store, &error), error);
    EXPECT_OK(token_guard_create(site.tokens, clock_system(), NULL, &site.guard, &error), error);
    EXPECT_OK(tcp_listen("127.0.0.1:0", &fd, &place, &error), error);
    site.port = atoi(strrchr(place.text, ':') + 1);
    const struct store_server_options options = {
        .guard = site.open ? NULL : site.guard,
        .connections_max = connections_max,
        .peer_connections_max = peer_max,
        .read_only = site.read_only,
        .planners_kept_max = site.planners_kept_max,
    };
    EXPECT_OK(store_server_start_with(site.store, fd, NULL, &options, &site.server, &error), error);
}

static void site_start(size_t connections_max, size_t peer_max)
{
    snprintf(site.path, sizeof site.path, "%s/%d.db", support_directory(), ++site.serial);
    snprintf(site.tokens, sizeof site.tokens, "%s.tokens", site.path);
    for (int role = 0; role < TOKEN_ROLE_COUNT; role++) {
        make_token(token_role_names[role], (enum token_role)role,
                   role == TOKEN_ROLE_WORKER ? "bulk" : "", site.texts[role]);
    }
    make_token("other", TOKEN_ROLE_WORKER, "teacher", site.teacher);
    site_serve(connections_max, peer_max);
}

static void site_stop(void)
{
    store_server_stop(site.server);
    token_guard_destroy(site.guard);
    site.store->ops->close(site.store);
}

static int dial(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)site.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

/* One request on a connection of its own; token NULL: none is sent. `more`: further header lines.
 */
static int ask_with(const char *method, const char *path, const char *token, const char *more,
                    const void *body, size_t bytes)
{
    char *text = malloc(bytes + strlen(path) + 1024);
    CHECK(text != NULL);
    int count =
        sprintf(text, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s", method, path,
                site.open ? "127.0.0.1" : "x", token != NULL ? "Authorization: Bearer " : "",
                token != NULL ? token : "", token != NULL ? "\r\n" : "", more);
    count += sprintf(text + count, "Content-Length: %zu\r\n\r\n", bytes);
    memcpy(text + count, body, bytes);
    int fd = dial();
    int code = support_request(fd, text, (size_t)count + bytes, reply, sizeof reply);
    close(fd);
    free(text);
    return code;
}

static int ask(const char *method, const char *path, const char *token, const char *body)
{
    return ask_with(method, path, token, "", body, strlen(body));
}

/* The answer has the length of a body that does not come: it ends with the connection. */
static int ask_head(const char *path, const char *token)
{
    return ask_with("HEAD", path, token, "Connection: close\r\n", "", 0);
}

static void fill_path(const char *pattern, char out[256])
{
    size_t used = 0;
    for (; *pattern != '\0'; pattern++) {
        out[used++] = (char)(*pattern == '*' ? '1' : *pattern);
    }
    out[used] = '\0';
}

/* ---- roles ---- */

enum { ROUTES_MAX = 64 };

/* A route as the API's description has it. */
static struct {
    char method[8];
    char pattern[128];
    char roles[8]; /* r read, s submit, w worker, a admin, d driver, - nobody needs a token */
} expected[ROUTES_MAX];
static size_t expected_count;

/* Roles as a line of the description lists them, "read, submit". */
static void expect_route(const char *method, const char *path, const char *roles)
{
    size_t used = 0;
    size_t count = 0;
    CHECK(expected_count < ROUTES_MAX && strlen(path) < sizeof expected->pattern);
    for (size_t i = 0; method[i] != '\0'; i++) {
        expected[expected_count].method[i] = (char)toupper(method[i]);
    }
    for (; *path != ':'; path++) {
        path += *path == '{' ? strcspn(path, "}") : 0;
        expected[expected_count].pattern[used++] = (char)(*path == '}' ? '*' : *path);
    }
    for (int role = 0; role < TOKEN_ROLE_COUNT; role++) {
        if (strstr(roles, token_role_names[role]) != NULL) {
            expected[expected_count].roles[count++] = "rswad"[role];
        }
    }
    if (count == 0) {
        strcpy(expected[expected_count].roles, "-");
    }
    expected_count++;
}

static void read_description(const char *description)
{
    char line[512];
    char path[256] = "";
    char method[8] = "";
    FILE *file = fopen(description, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "  /", 3) == 0) {
            snprintf(path, sizeof path, "%.255s", line + 2);
        } else if (strncmp(line, "    ", 4) == 0 && line[4] != ' ') {
            sscanf(line, " %7[a-z]", method);
        } else if (strncmp(line, "      x-roles: [", 16) == 0) {
            expect_route(method, path, line + 16);
        }
    }
    fclose(file);
}

static void check_roles(const char *method, const char *pattern, const char *roles)
{
    static const char letters[] = "rswad";
    char path[256];
    char wrong[TOKEN_SECRET_BYTES];
    fill_path(pattern, path);
    bool open = strcmp(roles, "-") == 0;
    int code = ask(method, path, NULL, "");
    if ((code == 401) == open || (!open && strstr(reply, "WWW-Authenticate: Bearer") == NULL)) {
        TEST_FAIL("%s %s without a token: found %d", method, path, code);
    }
    memcpy(wrong, site.texts[TOKEN_ROLE_ADMIN], sizeof wrong);
    wrong[20] = wrong[20] == 'a' ? 'b' : 'a';
    code = ask(method, path, wrong, "");
    if ((code == 401) == open) {
        TEST_FAIL("%s %s with a wrong token: found %d", method, path, code);
    }
    for (int role = 0; role < TOKEN_ROLE_COUNT; role++) {
        bool may = open || strchr(roles, letters[role]) != NULL;
        code = ask(method, path, site.texts[role], "");
        if (code == 0 || code == 401 || (code == 403) == may || code == 405) {
            TEST_FAIL("%s %s as %s: found %d", method, path, token_role_names[role], code);
        }
    }
}

/* Whether the server's table has the route. */
static bool is_served(const char *method, const char *pattern)
{
    size_t i = 0;
    while (i < HTTP_METRICS_ROUTES_MAX && (strcmp(http_route_method(i), method) != 0 ||
                                           strcmp(http_route_pattern(i), pattern) != 0)) {
        i++;
    }
    return i < HTTP_METRICS_ROUTES_MAX;
}

static void every_route_knows_its_roles(void)
{
    size_t routes = 0;
    site.planners_kept_max = 1; /* or files of planners would be nobody's */
    site_start(0, 0);
    while (strcmp(http_route_method(routes), "other") != 0) {
        routes++;
    }
    EXPECT_INT(routes, expected_count);
    for (size_t i = 0; i < expected_count; i++) {
        if (!is_served(expected[i].method, expected[i].pattern)) {
            TEST_FAIL("%s %s: described, and not served", expected[i].method, expected[i].pattern);
        }
        check_roles(expected[i].method, expected[i].pattern, expected[i].roles);
    }
    /* A thing that is not there is not told to strangers. */
    EXPECT_INT(ask("GET", "/v1/nothing", NULL, ""), 401);
    EXPECT_INT(ask("GET", "/v1/nothing", site.texts[TOKEN_ROLE_READ], ""), 404);
    EXPECT_INT(ask("DELETE", "/v1/suites", site.texts[TOKEN_ROLE_READ], ""), 405);
    EXPECT_CONTAINS(reply, "Allow: GET, HEAD\r\n");
    /* HEAD is a GET without a body. */
    EXPECT_INT(ask_head("/", NULL), 200);
    EXPECT_INT(ask_head("/v1/suites", NULL), 401);
    EXPECT_INT(ask_head("/v1/suites", site.texts[TOKEN_ROLE_READ]), 200);
    EXPECT_CONTAINS(reply, "Content-Length: ");
    EXPECT_INT(ask_head("/v1/completions", site.texts[TOKEN_ROLE_ADMIN]), 405);
    site_stop();
    site.planners_kept_max = 0;
}

/* Of a server that only shows: GET as ever, anything else for nobody, administrators included. The
 * log names people, so it is not shown either, and no worker attaches. */
static void expect_only_shown(const char *method, const char *pattern, const char *token)
{
    char path[256];
    fill_path(pattern, path);
    bool looks = strcmp(method, "GET") == 0 && strcmp(pattern, "/v1/log") != 0 &&
                 strcmp(pattern, "/v1/sessions/worker") != 0;
    int code = ask(method, path, token, "");
    if (code == 0 || (code == 403) == looks) {
        TEST_FAIL("%s %s of a server that only shows: found %d", method, path, code);
    }
}

static void a_server_that_shows_changes_nothing(void)
{
    site.planners_kept_max = 1;
    for (int open = 0; open < 2; open++) {
        site.read_only = true;
        site.open = open == 1;
        site_start(0, 0);
        for (size_t i = 0; i < expected_count; i++) {
            expect_only_shown(expected[i].method, expected[i].pattern,
                              site.open ? NULL : site.texts[TOKEN_ROLE_ADMIN]);
        }
        EXPECT_INT(ask("POST", "/v1/suites/s/cancel", NULL, "{}"), site.open ? 403 : 401);
        site_stop();
    }
    site.read_only = false;
    site.open = false;
    site.planners_kept_max = 0;
}

/* ---- pools ---- */

/* A job by key and pool. */
#define JOB_JSON                                                                           \
    "{\"key\":\"%s\",\"scenario_id\":\"s\",\"planner\":\"p\",\"pool\":\"%s\","             \
    "\"tier\":\"object\",\"backend\":\"cpu\",\"seed\":1,\"rollout_count\":1,"              \
    "\"attempts_max\":3,\"scenario_hash\":\"\",\"planner_hash\":\"\",\"model_hash\":\"\"," \
    "\"sampler\":\"\",\"revision\":\"\",\"priority\":0,\"parent_job_id\":0,"               \
    "\"prefix_key\":\"\",\"audit_key\":\"\",\"suite_id\":\"\"}"

static void submit_one(const char *key, const char *pool)
{
    char body[1024];
    snprintf(body, sizeof body, "{\"jobs\":[" JOB_JSON "]}", key, pool);
    if (ask("POST", "/v1/suites/suite/jobs", site.texts[TOKEN_ROLE_SUBMIT], body) != 200) {
        TEST_FAIL("submit: %s", reply);
    }
}

static int count_of(const char *part)
{
    int count = 0;
    for (const char *at = reply; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

static void expect_log(const char *query, int entries)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/log%s", query);
    EXPECT_INT(ask("GET", path, site.texts[TOKEN_ROLE_ADMIN], ""), 200);
    EXPECT_INT(count_of("\"id\":"), entries);
}

static int claim(const char *worker, const char *pool, const char *token)
{
    char path[128];
    char body[128];
    snprintf(path, sizeof path, "/v1/workers/%s/claim", worker);
    snprintf(body, sizeof body, "{\"pool\":\"%s\",\"device\":\"cpu\",\"max\":1,\"claim_id\":1}",
             pool);
    return ask("POST", path, token, body);
}

static int complete(const char *worker, int job, const char *token)
{
    char body[1024];
    snprintf(body, sizeof body,
             "{\"completions\":[{\"job_id\":%d,\"epoch\":1,\"worker_id\":\"%s\",\"kind\":"
             "\"released\",\"device_ns\":0,\"metres_mm\":0,\"mflop\":0,\"artifact_hash\":\"\","
             "\"escalate_pool\":\"\",\"escalate_tier\":\"replay\",\"escalate_model_hash\":\"\","
             "\"escalate_sampler\":\"\",\"escalate_key\":\"\",\"error\":\"\",\"outcomes\":[]}]}",
             job, worker);
    return ask("POST", "/v1/completions", token, body);
}

static int heartbeat(const char *worker, const char *pool, const char *token)
{
    char path[128];
    char body[128];
    snprintf(path, sizeof path, "/v1/workers/%s/heartbeat", worker);
    snprintf(body, sizeof body, "{\"pool\":\"%s\",\"device\":\"cpu\",\"progress\":[]}", pool);
    return ask("POST", path, token, body);
}

static void orders_are_logged_with_their_token(void)
{
    const char *admin = site.texts[TOKEN_ROLE_ADMIN];
    struct db *db = NULL;
    struct error error;

    site_start(0, 0);
    submit_one("a", "bulk");
    EXPECT_INT(ask("POST", "/v1/suites/suite/cancel", site.texts[TOKEN_ROLE_READ], "{}"), 403);
    EXPECT_INT(ask("PUT", "/v1/prices/bulk/cpu", admin, "{\"price\":-1}"), 400);
    EXPECT_INT(ask("POST", "/v1/suites/nope/cancel", admin, "{}"), 404);
    EXPECT_INT(ask("POST", "/v1/suites/suite/cancel", admin, "{}"), 200);
    EXPECT_INT(claim("w", "bulk", site.texts[TOKEN_ROLE_WORKER]), 200);
    expect_log("", 4); /* neither what was refused nor what workers do */
    EXPECT_INT(count_of("POST /v1/suites/*/jobs"), 1);
    EXPECT_INT(count_of("\"role\":\"submit\""), 1);
    EXPECT_INT(count_of("\"role\":\"admin\""), 3);
    EXPECT_INT(count_of("\"subject\":\"bulk cpu\""), 1);
    EXPECT_INT(count_of("\"subject\":\"nope\""), 1);
    EXPECT_INT(count_of("\"code\":200"), 2);
    EXPECT_INT(count_of("\"code\":400"), 1);
    EXPECT_INT(count_of("\"code\":404"), 1);
    for (int role = 0; role < TOKEN_ROLE_COUNT; role++) {
        EXPECT_INT(count_of(site.texts[role] + 4), 0); /* the secret behind its prefix */
    }
    expect_log("?after=1&max=2", 2);
    EXPECT_INT(count_of("\"id\":2") + count_of("\"id\":3"), 2);
    store_server_stop(site.server);
    site.store->ops->close(site.store);
    token_guard_destroy(site.guard);
    /* Entries beyond the newest AUDIT_ROWS_MAX go with the next one. */
    EXPECT_OK(sqlite_db_open(site.path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db,
                               "INSERT INTO audit_log SELECT id + 200000, at_s, name, role, action,"
                               " subject, code FROM audit_log WHERE id = 3",
                               &error),
              error);
    db_close(db);
    site_serve(0, 0);
    EXPECT_INT(ask("POST", "/v1/suites/suite/cancel", admin, "{}"), 200);
    expect_log("", 2); /* 200003 and 200004; 4 is as far away as the first that goes */
    EXPECT_INT(count_of("\"id\":20000"), 2);
    site_stop();
}

static void workers_act_for_their_own_pool(void)
{
    site_start(0, 0);
    const char *bulk = site.texts[TOKEN_ROLE_WORKER];
    submit_one("b", "bulk");
    submit_one("t", "teacher");
    EXPECT_INT(claim("wb", "teacher", bulk), 403);
    EXPECT_CONTAINS(reply, "pool");
    EXPECT_INT(claim("wb", "bulk", bulk), 200);
    EXPECT_CONTAINS(reply, "\"job_id\":1");
    EXPECT_INT(claim("wt", "teacher", site.teacher), 200);
    EXPECT_CONTAINS(reply, "\"job_id\":2");
    /* Neither may speak for the other's worker, whatever pool it claims to be of. */
    EXPECT_INT(heartbeat("wt", "teacher", bulk), 403);
    EXPECT_INT(heartbeat("wt", "bulk", bulk), 403);
    EXPECT_INT(claim("wt", "bulk", bulk), 403);
    EXPECT_INT(complete("wt", 2, bulk), 403);
    EXPECT_INT(ask("POST", "/v1/workers/wt/gone", bulk, "{}"), 403);
    /* With its own worker's id, another pool's job is not its to end. */
    EXPECT_INT(complete("wb", 2, bulk), 200);
    EXPECT_CONTAINS(reply, "\"stale\"");
    /* Their own still works. */
    EXPECT_INT(heartbeat("wt", "teacher", site.teacher), 200);
    EXPECT_INT(complete("wt", 2, site.teacher), 200);
    EXPECT_CONTAINS(reply, "\"ok\"");
    EXPECT_INT(ask("POST", "/v1/workers/wb/gone", bulk, "{}"), 200);
    EXPECT_INT(complete("wb", 1, site.texts[TOKEN_ROLE_ADMIN]), 200);
    /* One of a tenant is for its sessions: jobs are no tenant's. */
    char bound[TOKEN_SECRET_BYTES];
    struct error error;
    struct token token = {
        .role = TOKEN_ROLE_WORKER, .name = "ours", .pool = "bulk", .tenant = "acme"};
    EXPECT_OK(tokens_add(site.tokens, &token, bound, &error), error);
    submit_one("c", "bulk");
    EXPECT_INT(claim("wo", "bulk", bound), 403);
    EXPECT_CONTAINS(reply, "serves its sessions alone");
    EXPECT_INT(heartbeat("wo", "bulk", bound), 403);
    EXPECT_INT(ask("GET", "/v1/models", bound, ""), 403);
    EXPECT_INT(ask("GET", "/v1/sessions/worker", bound, ""), 404); /* this server relays none */
    site_stop();
}

/* Goal: of two tokens of one pool neither speaks for the other's workers, also after the server was
 * started again and after one of them was renewed; an administrator speaks for all. */
static void leases_belong_to_their_token(void)
{
    char second[TOKEN_SECRET_BYTES];
    char renewed[TOKEN_SECRET_BYTES];
    struct error error;
    site_start(0, 0);
    const char *first = site.texts[TOKEN_ROLE_WORKER];
    make_token("second", TOKEN_ROLE_WORKER, "bulk", second);
    submit_one("a", "bulk");
    submit_one("b", "bulk");
    EXPECT_INT(heartbeat("w1", "bulk", first), 200);
    /* Known by a heartbeat alone, it is the first token's already. */
    EXPECT_INT(heartbeat("w1", "bulk", second), 403);
    EXPECT_CONTAINS(reply, "another token");
    EXPECT_INT(claim("w1", "bulk", second), 403);
    EXPECT_INT(claim("w1", "bulk", first), 200);
    EXPECT_CONTAINS(reply, "\"job_id\":1");
    for (int start = 0; start < 2; start++) {
        EXPECT_INT(heartbeat("w1", "bulk", second), 403);
        EXPECT_INT(claim("w1", "bulk", second), 403);
        EXPECT_INT(complete("w1", 1, second), 403);
        EXPECT_CONTAINS(reply, "another token");
        EXPECT_INT(ask("POST", "/v1/workers/w1/gone", second, "{}"), 403);
        EXPECT_INT(heartbeat("w1", "bulk", first), 200);
        EXPECT_INT(claim("w1", "bulk", first), 200); /* the same claim again */
        EXPECT_CONTAINS(reply, "\"job_id\":1");
        if (start == 0) { /* another server on the same database */
            site_stop();
            site_serve(0, 0);
        }
    }
    /* A token that is renewed keeps its name, and with it its workers. */
    make_token("worker", TOKEN_ROLE_WORKER, "bulk", renewed);
    EXPECT_INT(heartbeat("w1", "bulk", renewed), 200);
    EXPECT_INT(complete("w1", 1, renewed), 200);
    EXPECT_CONTAINS(reply, "\"ok\"");
    /* Workers of nobody's token: the machine's own, an administrator's. */
    struct store_worker local = {.worker_id = "w2", .pool = "bulk", .device = "cpu"};
    struct job_lease lease;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    EXPECT_OK(site.store->ops->claim(site.store, &local, fresh_claim_id(), 1, 0, &lease, &count,
                                     &ttl_ms, &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_INT(heartbeat("w2", "bulk", first), 403);
    EXPECT_INT(ask("POST", "/v1/workers/w2/gone", second, "{}"), 403);
    EXPECT_INT(ask("POST", "/v1/workers/w1/gone", site.texts[TOKEN_ROLE_ADMIN], "{}"), 200);
    site_stop();
}

static void revoke_all(const char *name)
{
    struct error error;
    uint32_t count = 0;
    EXPECT_OK(tokens_revoke(site.tokens, name, &count, &error), error);
}

static void script(const char *sql)
{
    struct db *db = NULL;
    struct error error;
    EXPECT_OK(sqlite_db_open(site.path, SQLITE_DB_WRITER, &db, &error), error);
    EXPECT_OK(sqlite_db_script(db, sql, &error), error);
    db_close(db);
}

/* Goal: a token that got its name when all others of that name were revoked speaks for none of
 * their workers; one that took over while another was live goes on doing so when that is gone. */
static void a_name_is_no_token(void)
{
    char renewed[TOKEN_SECRET_BYTES];
    char later[TOKEN_SECRET_BYTES];
    char id[TOKEN_ID_BYTES];
    struct token_list *list = malloc(sizeof *list);
    struct error error;
    CHECK(list != NULL);
    site_start(0, 0);
    submit_one("a", "bulk");
    EXPECT_INT(claim("w1", "bulk", site.texts[TOKEN_ROLE_WORKER]), 200);
    EXPECT_CONTAINS(reply, "\"job_id\":1");
    EXPECT_OK(tokens_read(site.tokens, list, &error), error);
    memcpy(id, list->tokens[TOKEN_ROLE_WORKER].id, sizeof id);
    make_token("worker", TOKEN_ROLE_WORKER, "bulk", renewed);
    revoke_all(id);
    EXPECT_INT(heartbeat("w1", "bulk", site.texts[TOKEN_ROLE_WORKER]), 401);
    EXPECT_INT(heartbeat("w1", "bulk", renewed), 200);
    revoke_all("worker");
    make_token("worker", TOKEN_ROLE_WORKER, "bulk", later);
    for (int start = 0; start < 2; start++) {
        EXPECT_INT(heartbeat("w1", "bulk", later), 403);
        EXPECT_CONTAINS(reply, "another token");
        EXPECT_INT(claim("w1", "bulk", later), 403);
        EXPECT_INT(complete("w1", 1, later), 403);
        EXPECT_INT(ask("POST", "/v1/workers/w1/gone", later, "{}"), 403);
        site_stop();
        site_serve(0, 0);
    }
    site_stop();
    free(list);
}

/* Goal: a worker that claimed before ids were kept, known by its token's name, is taken over by the
 * first token of that name that claims for it, and is that one's from then on. */
static void workers_of_before_ids_are_found_by_name(void)
{
    char later[TOKEN_SECRET_BYTES];
    char second[TOKEN_SECRET_BYTES];
    site_start(0, 0);
    make_token("second", TOKEN_ROLE_WORKER, "bulk", second);
    submit_one("a", "bulk");
    EXPECT_INT(claim("w1", "bulk", site.texts[TOKEN_ROLE_WORKER]), 200);
    site_stop();
    script("UPDATE workers SET token = NULL, holder = 'worker'");
    site_serve(0, 0);
    EXPECT_INT(heartbeat("w1", "bulk", second), 403);
    EXPECT_INT(claim("w1", "bulk", second), 403);
    EXPECT_INT(claim("w1", "bulk", site.texts[TOKEN_ROLE_ADMIN]), 200); /* takes nothing over */
    EXPECT_INT(claim("w1", "bulk", site.texts[TOKEN_ROLE_WORKER]), 200);
    EXPECT_CONTAINS(reply, "\"job_id\":1");
    revoke_all("worker");
    make_token("worker", TOKEN_ROLE_WORKER, "bulk", later);
    EXPECT_INT(claim("w1", "bulk", later), 403);
    site_stop();
    site_serve(0, 0);
    EXPECT_INT(claim("w1", "bulk", later), 403);
    site_stop();
}

/* A client with that token, in a file of its own. */
static struct store *connect_as(const char *text)
{
    static int serial;
    char path[256];
    char url[64];
    struct error error;
    struct store *client = NULL;
    snprintf(path, sizeof path, "%s/token-%d", support_directory(), ++serial);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", site.port);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fprintf(file, "%s\n", text) > 0 && fclose(file) == 0);
    CHECK(chmod(path, 0600) == 0);
    const struct store_config config = {.token_file = path};
    EXPECT_OK(store_open(url, &config, &client, &error), error);
    return client;
}

static struct job_lease claim_one(struct store *client, const char *worker_id)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    struct job_lease lease;
    struct error error;
    int64_t claim_id = 1;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    strcpy(worker.worker_id, worker_id);
    EXPECT_OK(client->ops->claim(client, &worker, &claim_id, 1, 0, &lease, &count, &ttl_ms, &error),
              error);
    EXPECT_INT(count, 1);
    return lease;
}

/* Outcomes of rollouts from the first on. */
static void send_outcomes(struct store *client, const char *worker_id,
                          const struct job_lease *lease, enum completion_kind kind, uint32_t count)
{
    static struct outcome outcomes[4];
    struct store_completion_result result;
    struct error error;
    struct job_completion completion = {.job_id = lease->job_id,
                                        .epoch = lease->epoch,
                                        .kind = kind,
                                        .outcomes = outcomes,
                                        .outcome_count = count};
    char artifact[SHA256_HEX_BYTES];
    EXPECT_OK(client->ops->artifact_put(client, worker_id, strlen(worker_id), artifact, &error),
              error);
    strcpy(completion.worker_id, worker_id);
    for (uint32_t i = 0; i < count; i++) {
        outcomes[i] = (struct outcome){
            .tier = lease->spec.tier, .seed = lease->spec.seed, .verdict = VERDICT_PASS};
        strcpy(outcomes[i].scenario_id, lease->spec.scenario_id);
        strcpy(outcomes[i].planner, lease->spec.planner);
        strcpy(outcomes[i].pool, lease->spec.pool);
        strcpy(outcomes[i].backend, lease->spec.backend);
        if (i > 0) {
            snprintf(outcomes[i].branch_id, sizeof outcomes[i].branch_id, "b%u", i);
        }
        memset(outcomes[i].trace_hash, worker_id[1], sizeof outcomes[i].trace_hash - 1);
        memcpy(outcomes[i].artifact_hash, artifact, sizeof outcomes[i].artifact_hash);
    }
    EXPECT_OK(client->ops->complete(client, &completion, 1, &result, &error), error);
    EXPECT_INT(result.status, STATUS_OK);
}

static uint32_t partials_of(struct store *client, int64_t job_id)
{
    static struct outcome outcomes[4];
    struct error error;
    uint32_t count = 0;
    EXPECT_OK(client->ops->partials(client, job_id, outcomes, 4, &count, &error), error);
    return count;
}

static void expect_hidden(struct store *client, int64_t job_id)
{
    static struct outcome outcomes[4];
    static struct store_job job;
    struct error error;
    uint32_t count = 0;
    EXPECT_INT(client->ops->job(client, job_id, &job, &error), STATUS_STALE);
    EXPECT_CONTAINS(error.text, "is not held by a worker of the token");
    EXPECT_INT(client->ops->partials(client, job_id, outcomes, 4, &count, &error), STATUS_STALE);
}

/* Goal: a worker whose token is not the next one's leaves nothing to it, whatever it hands over
 * before it says that it is gone; nobody looks at jobs that other tokens hold, or other pools; and
 * the store is whole. */
static void jobs_are_shown_to_their_holders(void)
{
    static struct store_job job;
    char second[TOKEN_SECRET_BYTES];
    char other[TOKEN_SECRET_BYTES];
    struct error error;
    struct store_submit_result submitted;
    struct store_check_summary summary;
    const struct store_check_options options = {.skip_artifacts = true};
    const struct job_spec spec = {.key = "k",
                                  .scenario_id = "a",
                                  .planner = "p",
                                  .pool = "bulk",
                                  .tier = TIER_OBJECT,
                                  .backend = "cpu",
                                  .rollout_count = 4,
                                  .attempts_max = 3};
    site_start(0, 0);
    make_token("second", TOKEN_ROLE_WORKER, "bulk", second);
    memcpy(other, site.teacher, sizeof other);
    EXPECT_OK(site.store->ops->submit(site.store, "s", 1, &spec, 1, &submitted, &error), error);
    struct store *attacker = connect_as(site.texts[TOKEN_ROLE_WORKER]);
    struct store *honest = connect_as(second);
    struct store *teacher = connect_as(other);
    int64_t id = submitted.job_id;
    expect_hidden(attacker, id); /* nobody's yet */
    struct job_lease lease = claim_one(attacker, "w1");
    send_outcomes(attacker, "w1", &lease, COMPLETION_PARTIAL, 3);
    EXPECT_INT(partials_of(attacker, id), 3);
    expect_hidden(honest, id);
    EXPECT_OK(attacker->ops->worker_gone(attacker, "w1", &error), error);
    EXPECT_INT(partials_of(attacker, id), 3); /* held last */
    lease = claim_one(honest, "w2");
    EXPECT_INT(lease.epoch, 2);
    EXPECT_INT(partials_of(honest, id), 0);
    EXPECT_OK(honest->ops->job(honest, id, &job, &error), error);
    expect_hidden(attacker, id);
    expect_hidden(teacher, id);
    EXPECT_INT(ask("GET", "/v1/jobs/1", site.texts[TOKEN_ROLE_WORKER], ""), 403);
    EXPECT_INT(ask("GET", "/v1/jobs/1/partials", site.texts[TOKEN_ROLE_WORKER], ""), 403);
    EXPECT_INT(ask("GET", "/v1/jobs/1", site.texts[TOKEN_ROLE_READ], ""), 200);
    send_outcomes(honest, "w2", &lease, COMPLETION_DONE, 4);
    EXPECT_INT(partials_of(honest, id), 0);
    struct store_outcome_filter filter = {.limit = 10};
    static struct outcome outcomes[10];
    uint32_t count = 0;
    EXPECT_OK(site.store->ops->outcomes(site.store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_INT(outcomes[i].trace_hash[0], '2');
    }
    attacker->ops->close(attacker);
    honest->ops->close(honest);
    teacher->ops->close(teacher);
    site_stop();
    EXPECT_OK(store_check(site.path, &options, &summary, &error), error);
    EXPECT_INT(summary.faults, 0);
}

struct waiting {
    struct store *client;
    uint32_t count;
    enum status status;
    struct error error;
};

static void *claim_and_wait(void *context)
{
    struct waiting *waiting = context;
    const struct store_worker worker = {.worker_id = "w1", .pool = "bulk", .device = "cpu"};
    struct job_lease lease;
    int64_t claim_id = 1;
    int64_t ttl_ms = 0;
    waiting->status =
        waiting->client->ops->claim(waiting->client, &worker, &claim_id, 1, HTTP_WAIT_MS_MAX,
                                    &lease, &waiting->count, &ttl_ms, &waiting->error);
    return NULL;
}

/* Goal: a claim that waits when its token is revoked leases nothing of what comes then. */
static void revoked_tokens_lease_nothing(void)
{
    static struct store_stats stats;
    struct waiting waiting = {.count = 0};
    struct store_suite_status status;
    struct error error;
    pthread_t thread;
    site_start(0, 0);
    waiting.client = connect_as(site.texts[TOKEN_ROLE_WORKER]);
    EXPECT_INT(pthread_create(&thread, NULL, claim_and_wait, &waiting), 0);
    while (stats.workers_alive == 0) { /* until it has found nothing */
        EXPECT_OK(site.store->ops->stats(site.store, &stats, &error), error);
    }
    revoke_all("worker");
    submit_one("a", "bulk");
    pthread_join(thread, NULL);
    EXPECT_INT(waiting.status, STATUS_STORE);
    EXPECT_CONTAINS(waiting.error.text, "revoked");
    EXPECT_OK(site.store->ops->suite_status(site.store, "suite", &status, &error), error);
    EXPECT_INT(status.jobs[JOB_QUEUED], 1);
    waiting.client->ops->close(waiting.client);
    site_stop();
}

/* ---- limits ---- */

/* The server answers and closes although almost nothing of the announced body has come. */
/* Jobs of a suite that say for whom they are; NULL: nothing. */
static int submit_for(const char *token, const char *suite, const char *key, const char *tenant)
{
    char path[64];
    char body[1024];
    char said[128] = "";
    if (tenant != NULL) {
        snprintf(said, sizeof said, "\"tenant\":\"%s\",", tenant);
    }
    snprintf(path, sizeof path, "/v1/suites/%s/jobs", suite);
    snprintf(body, sizeof body, "{%s\"jobs\":[" JOB_JSON "]}", said, key, "bulk");
    return ask("POST", path, token, body);
}

/* Goal: that a student answers where it is frozen is for administrators to ask. */
static void evaluations_are_an_administrators(void)
{
    char body[1024];
    site_start(0, 0);
    int bytes = snprintf(body, sizeof body, "{\"jobs\":[" JOB_JSON, "e", "bulk");
    snprintf(body + bytes - 1, sizeof body - (size_t)bytes + 1, ",\"evaluates\":true}]}");
    EXPECT_INT(ask("POST", "/v1/suites/e/jobs", site.texts[TOKEN_ROLE_SUBMIT], body), 403);
    EXPECT_CONTAINS(reply, "job 0 evaluates a student: expected a token of the role admin");
    EXPECT_INT(ask("POST", "/v1/suites/e/jobs", site.texts[TOKEN_ROLE_ADMIN], body), 400);
    EXPECT_CONTAINS(reply, "job 0 evaluates: expected a student's"); /* which this is not */
    site_stop();
}

static void make_submitter(const char *name, const char *tenant, char text[TOKEN_SECRET_BYTES])
{
    struct error error;
    struct token token = {.role = TOKEN_ROLE_SUBMIT};
    strcpy(token.name, name);
    strcpy(token.tenant, tenant);
    EXPECT_OK(tokens_add(site.tokens, &token, text, &error), error);
}

/* Goal: who submits does so for the tenant of the token, whatever is asked for: no other name, no
 * other's suite, no weight or quota of one's own. */
static void submitters_speak_for_their_tenant(void)
{
    char acme[TOKEN_SECRET_BYTES];
    char beta[TOKEN_SECRET_BYTES];
    char worker[TOKEN_SECRET_BYTES];
    char tenant[LIMIT_ID_BYTES];
    struct error error;
    site_start(0, 0);
    make_submitter("ann", "acme", acme);
    make_submitter("bob", "beta", beta);
    struct token wrong = {.role = TOKEN_ROLE_READ, .name = "w", .tenant = "acme"};
    EXPECT_INT(tokens_add(site.tokens, &wrong, worker, &error), STATUS_USAGE);
    wrong = (struct token){.role = TOKEN_ROLE_SUBMIT, .name = "bob", .tenant = "acme"};
    EXPECT_INT(tokens_add(site.tokens, &wrong, worker, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "tenant beta");

    EXPECT_INT(submit_for(acme, "a", "k", NULL), 200);
    EXPECT_OK(site.store->ops->suite_tenant(site.store, "a", tenant, &error), error);
    EXPECT_TEXT(tenant, "acme");
    EXPECT_INT(submit_for(acme, "a", "k", "acme"), 200);
    EXPECT_INT(submit_for(beta, "a", "l", NULL), 409);
    EXPECT_INT(submit_for(beta, "a", "l", "acme"), 403);
    EXPECT_CONTAINS(reply, "submits for tenant beta");
    EXPECT_INT(submit_for(beta, "b", "l", "acme"), 403);
    EXPECT_INT(submit_for(beta, "b", "l", ""), 403);
    EXPECT_INT(site.store->ops->suite_tenant(site.store, "b", tenant, &error), STATUS_NOT_FOUND);
    EXPECT_INT(submit_for(site.texts[TOKEN_ROLE_SUBMIT], "a", "l", NULL), 409);
    EXPECT_INT(submit_for(site.texts[TOKEN_ROLE_SUBMIT], "c", "l", "acme"), 403);
    EXPECT_INT(submit_for(site.texts[TOKEN_ROLE_SUBMIT], "c", "l", NULL), 200);
    EXPECT_INT(submit_for(acme, "c", "l", NULL), 409);
    EXPECT_INT(ask("POST", "/v1/suites/a/cancel", beta, "{}"), 403);
    EXPECT_INT(ask("POST", "/v1/suites/a/cancel", site.texts[TOKEN_ROLE_SUBMIT], "{}"), 403);
    EXPECT_INT(ask("PUT", "/v1/tenants/acme", acme, "{\"name\":\"acme\",\"weight\":100}"), 403);
    EXPECT_INT(submit_for(site.texts[TOKEN_ROLE_ADMIN], "a", "m", "beta"), 409);

    /* A quota that is reached, and who may raise it. */
    static const char few[] = "{\"name\":\"acme\",\"weight\":2,\"jobs_queued_max\":1,"
                              "\"uusd_day_max\":0,\"uusd_month_max\":0}";
    EXPECT_INT(ask("PUT", "/v1/tenants/acme", site.texts[TOKEN_ROLE_ADMIN], few), 200);
    EXPECT_INT(ask("PUT", "/v1/tenants/beta", site.texts[TOKEN_ROLE_ADMIN], few), 409);
    EXPECT_INT(ask("PUT", "/v1/tenants/beta", site.texts[TOKEN_ROLE_ADMIN], "{\"weight\":2}"), 400);
    /* A setting that a body leaves out stays as it is. */
    EXPECT_INT(ask("PUT", "/v1/tenants/acme", site.texts[TOKEN_ROLE_ADMIN], "{\"name\":\"acme\"}"),
               200);
    EXPECT_INT(submit_for(acme, "a", "m", NULL), 403);
    EXPECT_CONTAINS(reply, "may have 1 jobs queued and has 1");
    EXPECT_INT(submit_for(acme, "a", "k", NULL), 200); /* nothing new */
    EXPECT_INT(ask("GET", "/v1/tenants", acme, ""), 200);
    EXPECT_CONTAINS(reply, "\"jobs_queued\":1");
    EXPECT_INT(ask("GET", "/metrics", site.texts[TOKEN_ROLE_READ], ""), 200);
    EXPECT_CONTAINS(reply, "swerve_tenant_jobs_queued{tenant=\"acme\"} 1");
    EXPECT_CONTAINS(reply, "swerve_tenant_weight{tenant=\"acme\"} 2");
    EXPECT_INT(ask("POST", "/v1/suites/a/cancel", acme, "{}"), 200);
    site_stop();
}

/* PUT of files with this sum; `hash` is the planner's. */
static int keep(const char *token, const char *suite, const char *hash, const char *files,
                const char *sum)
{
    char path[300];
    snprintf(path, sizeof path, "/v1/suites/%s/planners/%s?sha256=%s", suite, hash, sum);
    return ask("PUT", path, token, files);
}

/* Goal: files of planners are kept where the server was told to, as many as it may, and read by
 * their suite's tenant alone, on every way to them. */
static void files_of_planners_are_their_tenants(void)
{
    char acme[TOKEN_SECRET_BYTES];
    char beta[TOKEN_SECRET_BYTES];
    char sum[SHA256_HEX_BYTES];
    char other[SHA256_HEX_BYTES];
    char path[300];
    const char *const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    sha256_hex("files", 5, sum);
    sha256_hex("more", 4, other);
    site_start(0, 0);
    make_submitter("ann", "acme", acme);
    make_submitter("bob", "beta", beta);
    EXPECT_INT(submit_for(acme, "a", "k", NULL), 200);
    EXPECT_INT(submit_for(beta, "b", "l", NULL), 200);
    EXPECT_INT(keep(acme, "a", hash, "files", sum), 403); /* nobody has asked for it */
    EXPECT_CONTAINS(reply, "keeps no files of planners (swerve serve --keep-planners N)");
    site_stop();
    site.planners_kept_max = 1;
    site_serve(0, 0);

    EXPECT_INT(keep(beta, "a", hash, "files", sum), 403);
    EXPECT_CONTAINS(reply, "belongs to another tenant");
    EXPECT_INT(keep(acme, "none", hash, "files", sum), 404);
    EXPECT_INT(keep(site.texts[TOKEN_ROLE_WORKER], "a", hash, "files", sum), 403);
    EXPECT_INT(keep(site.texts[TOKEN_ROLE_READ], "a", hash, "files", sum), 403);
    EXPECT_INT(keep(acme, "a", hash, "files", other), 400); /* another file than is named */
    EXPECT_CONTAINS(reply, "sha256: expected that of the body");
    EXPECT_INT(keep(acme, "a", hash, "files", ""), 400);
    EXPECT_INT(keep(acme, "a", "no-hash", "files", sum), 400);
    EXPECT_INT(keep(acme, "a", hash, "files", sum), 200);
    EXPECT_INT(keep(acme, "a", hash, "files", sum), 200);
    EXPECT_INT(keep(beta, "b", hash, "more", other), 403); /* it has as many as it may */
    EXPECT_CONTAINS(reply, "keeps files of at most 1 planners");
    char *large = calloc(1, LABEL_FILES_BYTES + 2);
    CHECK(large != NULL);
    memset(large, 'x', LABEL_FILES_BYTES + 1);
    EXPECT_INT(keep(acme, "a", hash, large, sum), 413);
    free(large);

    snprintf(path, sizeof path, "/v1/suites/a/planners/%s", hash);
    EXPECT_INT(ask("GET", path, acme, ""), 200);
    EXPECT_CONTAINS(reply, "files");
    EXPECT_INT(ask("GET", path, site.texts[TOKEN_ROLE_ADMIN], ""), 200);
    EXPECT_INT(ask("GET", path, beta, ""), 403);
    EXPECT_INT(ask("GET", path, site.texts[TOKEN_ROLE_READ], ""), 403); /* of no tenant */
    EXPECT_INT(ask("GET", path, site.texts[TOKEN_ROLE_WORKER], ""), 403);
    snprintf(path, sizeof path, "/v1/suites/b/planners/%s", hash);
    EXPECT_INT(ask("GET", path, beta, ""), 404); /* of one's own suite, what it keeps alone */
    snprintf(path, sizeof path, "/v1/artifacts/%s", sum);
    for (int role = 0; role < TOKEN_ROLE_COUNT; role++) {
        EXPECT_INT(ask("GET", path, site.texts[role], ""), 403);
    }
    EXPECT_INT(ask("GET", "/v1/labels?kind=files", acme, ""), 403);
    site_stop();
    site.planners_kept_max = 0;
}

static void expect_early_answer(const char *request, int expected_code)
{
    int fd = dial();
    char rest[64];
    int code = support_request(fd, request, strlen(request), reply, sizeof reply);
    if (code != expected_code) {
        TEST_FAIL("expected %d, found %d: %s", expected_code, code, reply);
    }
    EXPECT_INT(recv(fd, rest, sizeof rest, 0) > 0, 0);
    close(fd);
}

static void refusals_do_not_wait_for_bodies(void)
{
    char request[1024];
    site_start(0, 0);
    expect_early_answer(
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n", 401);
    snprintf(request, sizeof request,
             "POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
             "Content-Length: 60000000\r\n\r\n",
             site.texts[TOKEN_ROLE_READ]);
    expect_early_answer(request, 403);
    snprintf(request, sizeof request,
             "PUT /v1/artifacts/%064d HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
             "Transfer-Encoding: chunked\r\n\r\n",
             1, site.texts[TOKEN_ROLE_WORKER]);
    expect_early_answer(request, 411);
    snprintf(request, sizeof request,
             "PUT /v1/artifacts/%064d HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
             "Content-Length: 9000000000\r\n\r\n",
             1, site.texts[TOKEN_ROLE_WORKER]);
    expect_early_answer(request, 413);
    site_stop();
}

/* Connections up to the limit are served, those beyond it are told why, and one that ends makes
 * room for another. */
static void crowd(size_t server_max, size_t peer_max, int code)
{
    enum { MEMBERS = 3 };
    char request[256];
    int fds[MEMBERS];
    site_start(server_max, peer_max);
    snprintf(request, sizeof request,
             "GET /v1/health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n",
             site.texts[TOKEN_ROLE_READ]);
    for (int i = 0; i < MEMBERS; i++) {
        fds[i] = dial();
        EXPECT_INT(support_request(fds[i], request, strlen(request), reply, sizeof reply), 200);
    }
    int late = dial();
    EXPECT_INT(support_request(late, request, strlen(request), reply, sizeof reply), code);
    EXPECT_CONTAINS(reply, "Retry-After: 1\r\n");
    EXPECT_CONTAINS(reply, "Connection: close\r\n");
    close(late);
    close(fds[0]);
    do { /* until the server has noticed */
        fds[0] = dial();
        int found = support_request(fds[0], request, strlen(request), reply, sizeof reply);
        if (found == 200) {
            break;
        }
        EXPECT_INT(found, code);
        close(fds[0]);
    } while (true);
    for (int i = 0; i < MEMBERS; i++) {
        close(fds[i]);
    }
    site_stop();
}

static void too_many_connections_are_told(void)
{
    crowd(3, 0, 503);
}

static void too_many_connections_of_one_address_are_told(void)
{
    crowd(0, 3, 429);
}

/* ---- artifacts ---- */

static int count_unfinished(void)
{
    char name[200];
    int count = 0;
    snprintf(name, sizeof name, "%s.artifacts/unfinished", site.path);
    DIR *directory = opendir(name);
    CHECK(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

static void artifacts_go_through_the_disk(void)
{
    enum { BYTES = 3 << 20 };
    char hash[SHA256_HEX_BYTES];
    char path[128];
    struct error error;
    void *stored = NULL;
    size_t stored_bytes = 0;
    uint8_t *data = malloc(BYTES);
    CHECK(data != NULL);
    uint32_t state = 1;
    for (size_t i = 0; i < BYTES; i++) {
        state = state * 1664525U + 1013904223U;
        data[i] = (uint8_t)(state >> 24 & (i < BYTES / 2 ? 0xff : 3));
    }
    site_start(0, 0);
    const char *token = site.texts[TOKEN_ROLE_WORKER];
    static const size_t sizes[] = {0, 1, 131072, BYTES};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        sha256_hex(data, sizes[i], hash);
        snprintf(path, sizeof path, "/v1/artifacts/%s", hash);
        EXPECT_INT(ask_with("PUT", path, token, "", data, sizes[i]), 200);
        EXPECT_INT(ask_with("PUT", path, token, "", data, sizes[i]), 200); /* repeating is free */
        EXPECT_OK(site.store->ops->artifact_get(site.store, hash, &stored, &stored_bytes, &error),
                  error);
        EXPECT_INT(stored_bytes, sizes[i]);
        EXPECT(memcmp(stored, data, sizes[i]) == 0);
        free(stored);
    }
    hash[0] = hash[0] == '0' ? '1' : '0';
    snprintf(path, sizeof path, "/v1/artifacts/%s", hash);
    EXPECT_INT(ask_with("PUT", path, token, "", data, BYTES), 400);
    EXPECT_CONTAINS(reply, "hash in the path");
    EXPECT_INT(ask("GET", path, token, ""), 404);
    EXPECT_INT(ask("PUT", "/v1/artifacts/short", token, "x"), 400);
    /* A client that goes away half-way leaves nothing. */
    char request[512];
    int count = snprintf(request, sizeof request,
                         "PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                         "Content-Length: 1000\r\n\r\nabc",
                         path, token);
    int fd = dial();
    CHECK(send(fd, request, (size_t)count, MSG_NOSIGNAL) == count);
    close(fd);
    store_server_stop(site.server); /* waits for the request's end */
    site.server = NULL;
    EXPECT_INT(count_unfinished(), 0);
    site_stop();
    free(data);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2); /* where the API is described */
    read_description(argv[1]);
    return TEST_RUN(
        TEST(every_route_knows_its_roles), TEST(a_server_that_shows_changes_nothing),
        TEST(orders_are_logged_with_their_token), TEST(workers_act_for_their_own_pool),
        TEST(leases_belong_to_their_token), TEST(jobs_are_shown_to_their_holders),
        TEST(revoked_tokens_lease_nothing), TEST(a_name_is_no_token),
        TEST(workers_of_before_ids_are_found_by_name), TEST(evaluations_are_an_administrators),
        TEST(submitters_speak_for_their_tenant), TEST(files_of_planners_are_their_tenants),
        TEST(refusals_do_not_wait_for_bodies), TEST(too_many_connections_are_told),
        TEST(too_many_connections_of_one_address_are_told), TEST(artifacts_go_through_the_disk));
}
