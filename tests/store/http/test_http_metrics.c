/*
 * The text of /metrics.
 *
 * Goal: a scraper of the exposition format 0.0.4 understands every line, whatever names clients
 * have chosen, and the figures are those of what happened.
 * Method: a strict parser of the format, written from its description, over what a server on the
 * embedded store says after known traffic.
 */
#include "base/check.h"
#include "store/server/server.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/http/http_site.h"

#include <ctype.h>
#include <stdlib.h>

enum { SAMPLES_MAX = 4096, TEXT_BYTES = 1 << 20, LABELS_BYTES = 512 };

/* ---- the parser ---- */

struct sample {
    char name[96];
    char labels[LABELS_BYTES]; /* between the braces, but for le */
    char le[32];
    double value;
};

static struct {
    struct sample samples[SAMPLES_MAX];
    size_t count;
    char family[96]; /* whose samples come now */
    char type[16];
    char seen[128][96]; /* families so far */
    size_t seen_count;
} parsed;

static bool is_name(const char *text, bool colons)
{
    if (isdigit((unsigned char)text[0]) || text[0] == '\0') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (!isalnum((unsigned char)*text) && *text != '_' && !(colons && *text == ':')) {
            return false;
        }
    }
    return true;
}

/* "# HELP name text", "# TYPE name type": the first opens a family, the second follows it. */
static void parse_comment(const char *line)
{
    char word[8];
    char name[96];
    int used = 0;
    if (sscanf(line, "# %7s %95s%n", word, name, &used) != 2 || !is_name(name, true)) {
        TEST_FAIL("not a comment of the format: %s", line);
    }
    if (strcmp(word, "HELP") == 0) {
        for (size_t i = 0; i < parsed.seen_count; i++) {
            if (strcmp(parsed.seen[i], name) == 0) {
                TEST_FAIL("a family comes twice: %s", name);
            }
        }
        CHECK(parsed.seen_count < 128);
        strcpy(parsed.seen[parsed.seen_count++], name);
        strcpy(parsed.family, name);
        parsed.type[0] = '\0';
        return;
    }
    EXPECT_TEXT(word, "TYPE");
    EXPECT_TEXT(name, parsed.family);
    EXPECT(sscanf(line + used, " %15s", parsed.type) == 1);
    EXPECT(strcmp(parsed.type, "counter") == 0 || strcmp(parsed.type, "gauge") == 0 ||
           strcmp(parsed.type, "histogram") == 0);
    bool total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
    EXPECT_INT(total, strcmp(parsed.type, "counter") == 0);
}

/* {name="value",..}: returns what follows the brace. */
static const char *parse_labels(const char *at, struct sample *sample)
{
    size_t used = 0;
    at++;
    while (*at != '}') {
        char name[64];
        char value[256];
        size_t bytes = strcspn(at, "=");
        size_t length = 0;
        EXPECT(bytes < sizeof name && at[bytes] == '=' && at[bytes + 1] == '"');
        memcpy(name, at, bytes);
        name[bytes] = '\0';
        EXPECT(is_name(name, false));
        at += bytes + 2;
        while (*at != '"') {
            EXPECT(*at != '\0' && length + 1 < sizeof value);
            if (*at == '\\') {
                at++;
                EXPECT(*at == '\\' || *at == '"' || *at == 'n');
                value[length++] = (char)(*at == 'n' ? '\n' : *at);
            } else {
                value[length++] = *at;
            }
            at++;
        }
        value[length] = '\0';
        at++;
        if (strcmp(name, "le") == 0) {
            snprintf(sample->le, sizeof sample->le, "%.31s", value);
        } else {
            used += (size_t)snprintf(sample->labels + used, sizeof sample->labels - used, "%s=%s;",
                                     name, value);
            EXPECT(used < sizeof sample->labels);
        }
        EXPECT(*at == ',' || *at == '}');
        at += *at == ',' ? 1 : 0;
    }
    return at + 1;
}

static void parse_sample(const char *line)
{
    struct sample *sample = &parsed.samples[parsed.count++];
    size_t bytes = strcspn(line, "{ ");
    char *end = NULL;
    CHECK(parsed.count < SAMPLES_MAX);
    memset(sample, 0, sizeof *sample);
    EXPECT(bytes < sizeof sample->name);
    memcpy(sample->name, line, bytes);
    EXPECT(is_name(sample->name, true));
    const char *suffix = sample->name + strlen(parsed.family);
    bool of_family = strncmp(sample->name, parsed.family, strlen(parsed.family)) == 0;
    bool histogram = strcmp(parsed.type, "histogram") == 0;
    bool good = histogram ? strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_sum") == 0 ||
                                strcmp(suffix, "_count") == 0
                          : suffix[0] == '\0';
    if (!of_family || parsed.type[0] == '\0' || !good) {
        TEST_FAIL("not of the family %s: %s", parsed.family, line);
    }
    const char *at = line + bytes;
    at = *at == '{' ? parse_labels(at, sample) : at;
    EXPECT(*at == ' ');
    sample->value = strtod(at + 1, &end);
    EXPECT(end != at + 1 && *end == '\0');
    for (size_t i = 0; i + 1 < parsed.count; i++) {
        const struct sample *other = &parsed.samples[i];
        if (strcmp(other->name, sample->name) == 0 && strcmp(other->labels, sample->labels) == 0 &&
            strcmp(other->le, sample->le) == 0) {
            TEST_FAIL("a series comes twice: %s", line);
        }
    }
}

static double find(const char *name, const char *labels)
{
    for (size_t i = 0; i < parsed.count; i++) {
        if (strcmp(parsed.samples[i].name, name) == 0 &&
            strcmp(parsed.samples[i].labels, labels) == 0 && parsed.samples[i].le[0] == '\0') {
            return parsed.samples[i].value;
        }
    }
    return NAN;
}

/* Buckets rise, in bounds and in counts; the last is +Inf and is what _count says. */
static void check_histograms(void)
{
    for (size_t i = 0; i < parsed.count; i++) {
        const struct sample *bucket = &parsed.samples[i];
        const struct sample *next = &parsed.samples[i + 1];
        if (bucket->le[0] == '\0') {
            continue;
        }
        EXPECT(i + 1 < parsed.count);
        if (next->le[0] != '\0' && strcmp(next->labels, bucket->labels) == 0) {
            EXPECT(strtod(next->le, NULL) > strtod(bucket->le, NULL));
            EXPECT(next->value >= bucket->value);
            continue;
        }
        char name[110];
        EXPECT_TEXT(bucket->le, "+Inf");
        snprintf(name, sizeof name, "%.*s_count", (int)strlen(bucket->name) - 7, bucket->name);
        EXPECT(find(name, bucket->labels) == bucket->value);
    }
}

static void parse(char *text)
{
    memset(&parsed, 0, sizeof parsed);
    EXPECT(text[0] != '\0' && text[strlen(text) - 1] == '\n');
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n');
        *end = '\0';
        if (line[0] == '#') {
            parse_comment(line);
        } else {
            parse_sample(line);
        }
        line = end + 1;
    }
    check_histograms();
}

/* ---- the server ---- */

static char reply[TEXT_BYTES];

static int ask(const char *method, const char *path, const char *body)
{
    return support_call(site.socket_path, method, path, body, reply, sizeof reply);
}

static void scrape(void)
{
    EXPECT_INT(ask("GET", "/metrics", ""), 200);
    EXPECT_CONTAINS(reply, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    parse(strstr(reply, "\r\n\r\n") + 4);
}

/* Pools may have any name; this one has everything that needs escaping. */
static const char odd_pool[] = "a\"b\\c d";

static void work(void)
{
    struct error error;
    struct store_submit_result results[3];
    struct store_completion_result ends[2];
    struct job_lease lease;
    struct job_spec specs[3];
    struct job_completion completions[2];
    struct store_worker worker = {.worker_id = "w", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms;
    memset(specs, 0, sizeof specs);
    memset(completions, 0, sizeof completions);
    for (int i = 0; i < 3; i++) {
        snprintf(specs[i].key, sizeof specs[i].key, "%d", i);
        strcpy(specs[i].suite_id, "suite");
        strcpy(specs[i].scenario_id, "scenario");
        strcpy(specs[i].pool, odd_pool);
        strcpy(specs[i].backend, "cpu");
        specs[i].tier = TIER_OBJECT;
        specs[i].rollout_count = 1;
        specs[i].attempts_max = 2;
    }
    strcpy(worker.pool, odd_pool);
    EXPECT_OK(site.behind->ops->submit(site.behind, "suite", 1, specs, 3, results, &error), error);
    EXPECT_OK(site.behind->ops->claim(site.behind, &worker, fresh_claim_id(), 1, 0, &lease, &count,
                                      &ttl_ms, &error),
              error);
    EXPECT_INT(count, 1);
    for (int i = 0; i < 2; i++) {
        completions[i].job_id = lease.job_id;
        completions[i].epoch = lease.epoch;
        completions[i].kind = COMPLETION_FAILED;
        completions[i].device_ns = 50000000;
        completions[i].metres_mm = 2500;
        completions[i].mflop = 7;
        strcpy(completions[i].worker_id, "w");
    }
    EXPECT_OK(site.behind->ops->complete(site.behind, completions, 1, ends, &error), error);
    EXPECT_OK(site.behind->ops->claim(site.behind, &worker, fresh_claim_id(), 1, 0, &lease, &count,
                                      &ttl_ms, &error),
              error);
    EXPECT_INT(count, 1); /* the second job */
}

static void a_scraper_understands_it(void)
{
    site_start();
    work();
    for (int i = 0; i < 5; i++) {
        EXPECT_INT(ask("GET", "/v1/suites", ""), 200);
    }
    EXPECT_INT(ask("GET", "/v1/suites/none", ""), 404);
    EXPECT_INT(ask("GET", "/nothing", ""), 404);
    EXPECT_INT(ask("DELETE", "/nothing/else", ""), 404);
    do { /* times are counted when the answer has gone out, which may be after it was read */
        scrape();
    } while (find("swerve_http_request_seconds_count", "method=GET;route=/v1/suites;") != 5);
    EXPECT_INT(find("swerve_http_requests_total", "method=GET;route=/v1/suites;code=200;"), 5);
    EXPECT_INT(find("swerve_http_requests_total", "method=GET;route=/v1/suites/*;code=404;"), 1);
    EXPECT_INT(find("swerve_http_requests_total", "method=other;route=other;code=404;"), 2);
    EXPECT_INT(find("swerve_http_connections", "phase=handling;"), 1);
    EXPECT_INT(find("swerve_store_jobs", "pool=a\"b\\c d;state=queued;"), 2);
    EXPECT_INT(find("swerve_store_jobs", "pool=a\"b\\c d;state=leased;"), 1);
    EXPECT_INT(find("swerve_store_workers", ""), 1);
    EXPECT_INT(find("swerve_store_completions_total", "result=accepted;"), 1);
    EXPECT_INT(find("swerve_store_completions_total", "result=stale;"), 0);
    const char *row = "pool=a\"b\\c d;device=cpu;tier=object;audit=false;end=failed;";
    EXPECT_INT(find("swerve_ledger_attempts_total", row), 1);
    EXPECT_NEAR(find("swerve_ledger_device_seconds_total", row), 0.05, 1e-9);
    EXPECT_NEAR(find("swerve_ledger_metres_total", row), 2.5, 1e-9);
    EXPECT_NEAR(find("swerve_ledger_flop_total", row), 7e6, 1e-3);
    EXPECT(find("swerve_store_group_operations_sum", "") >= 4);
    EXPECT(find("swerve_store_commit_seconds_count", "") >= 4);
    site_stop();
}

static void an_empty_store_has_metrics(void)
{
    site_start();
    scrape();
    EXPECT_INT(find("swerve_store_workers", ""), 0);
    EXPECT_INT(find("swerve_http_buffered_bytes", ""), 0);
    site_stop();
}

/* Paths of a client's choosing make no new series. */
static void clients_cannot_add_series(void)
{
    char path[64];
    site_start();
    scrape();
    size_t before = parsed.count;
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof path, "/v1/suites/x%d", i);
        EXPECT_INT(ask("GET", path, ""), 404);
        snprintf(path, sizeof path, "/x%d", i);
        EXPECT_INT(ask(i % 2 == 0 ? "GET" : "PATCH", path, ""), 404);
    }
    scrape();
    EXPECT(parsed.count - before < 3 * 16); /* three routes' worth of codes and buckets */
    site_stop();
}

int main(void)
{
    return TEST_RUN(TEST(a_scraper_understands_it), TEST(an_empty_store_has_metrics),
                    TEST(clients_cannot_add_series));
}
