/*
 * A store in a directory of its own for the tests that submit and run real suites. The embedded
 * backend, without server and lock; a short backoff.
 */
#ifndef SWERVE_TESTS_WORKER_SHOP_H
#define SWERVE_TESTS_WORKER_SHOP_H

#include "engine/trace/trace.h"
#include "tests/harness.h"
#include "worker/submission/submission.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* In place of libc's, for SQLite too: these tests are about what is stored, those of
 * tests/store/faults about what outlives a loss of power, and a disk that others write to takes
 * most of their time. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

struct shop {
    char directory[64];
    struct store *store;
};

static inline void shop_path(const struct shop *shop, const char *name, char out[256])
{
    snprintf(out, 256, "%s/%s", shop->directory, name);
}

/* .. where one host on which a planner does not start is enough to blame it, when planner_hosts is
 * 1; 0: the store's own choice. */
static inline void shop_open_strict(struct shop *shop, int64_t lease_ttl_ms, uint32_t planner_hosts)
{
    const struct store_config config = {
        .backoff_ms = 1, .lease_ttl_ms = lease_ttl_ms, .planner_hosts = planner_hosts};
    struct error error;
    char path[256];
    snprintf(shop->directory, sizeof shop->directory, "/tmp/swerve-worker-XXXXXX");
    EXPECT(mkdtemp(shop->directory) != NULL);
    shop_path(shop, "jobs.db", path);
    EXPECT_OK(store_sqlite_open(path, &config, &shop->store, &error), error);
}

static inline void shop_open(struct shop *shop, int64_t lease_ttl_ms)
{
    shop_open_strict(shop, lease_ttl_ms, 0);
}

static inline void shop_close(struct shop *shop)
{
    char command[128];
    shop->store->ops->close(shop->store);
    snprintf(command, sizeof command, "rm -rf '%s'", shop->directory);
    EXPECT_INT(system(command), 0);
}

/* Writes a text file into the shop's directory; its path in `path`. */
static inline void shop_write(const struct shop *shop, const char *name, const char *text,
                              char path[256])
{
    shop_path(shop, name, path);
    FILE *stream = fopen(path, "w");
    EXPECT(stream != NULL);
    EXPECT(fputs(text, stream) >= 0 && fclose(stream) == 0);
}

struct order {
    struct suite *suite;
    struct submission submission;
};

static inline const struct submission_options *order_options(const char *planner, uint32_t seeds)
{
    static struct submission_options options;
    options = (struct submission_options){
        .planner = planner, .backend = "cpu", .seed_count = seeds, .attempts_max = 2};
    return &options;
}

static inline void order_build(struct order *order, const char *path,
                               const struct submission_options *options)
{
    struct error error;
    EXPECT_OK(suite_load(path, &order->suite, &error), error);
    EXPECT_OK(submission_build(order->suite, options, &order->submission, &error), error);
}

static inline void order_finish(struct order *order)
{
    submission_finish(&order->submission);
    suite_destroy(order->suite);
}

static inline struct store_suite_status shop_status(const struct shop *shop, const char *suite_id)
{
    struct store_suite_status status;
    struct error error;
    EXPECT_OK(shop->store->ops->suite_status(shop->store, suite_id, &status, &error), error);
    return status;
}

/* The outcome's artifact is a trace that can be read at every tick, those before its fork included;
 * together they are what was hashed. */
static inline void shop_expect_trace(const struct shop *shop, const struct outcome *outcome)
{
    struct error error;
    struct trace_reader reader;
    void *data = NULL;
    size_t bytes = 0;
    EXPECT_OK(
        shop->store->ops->artifact_get(shop->store, outcome->artifact_hash, &data, &bytes, &error),
        error);
    EXPECT_OK(trace_reader_init(&reader, data, bytes, &error), error);
    int32_t rollout = trace_reader_find(&reader, outcome->branch_id);
    EXPECT(rollout >= 0);
    EXPECT_INT(trace_reader_last_tick(&reader, rollout), outcome->ticks);
    struct sha256 hash;
    char text[SHA256_HEX_BYTES];
    sha256_init(&hash);
    for (uint32_t tick = 0; tick <= outcome->ticks; tick++) {
        struct trace_tick at;
        struct trace_agent agents[LIMIT_AGENTS];
        EXPECT(trace_reader_tick(&reader, rollout, tick, &at, agents));
        sha256_update(&hash, &at, sizeof at);
        sha256_update(&hash, agents, reader.header.agent_count * sizeof *agents);
    }
    uint8_t digest[SHA256_BYTES];
    sha256_final(&hash, digest);
    sha256_to_hex(digest, text);
    EXPECT_TEXT(text, outcome->trace_hash);
    trace_reader_finish(&reader);
    free(data);
}

/* A small scenario in single quotes on a straight road; %s: id, horizon, agents, branches. */
#define SHOP_SCENARIO                                                                       \
    "{'id':'%s','map':{'lanes':[{'id':'east','centre_line':[[0,0],[9000,0]],'width_m':3.5," \
    "'speed_limit_mps':15}]},'ego':{'pose':{'lane':'east','s_m':20},'speed_mps':12,"        \
    "'route':['east']},'horizon_s':%s,'agents':[%s],'branches':[%s]}"
#define SHOP_LEAD \
    "{'id':'lead','kind':'car','pose':{'lane':'east','s_m':70},'speed_mps':10,'behaviour':'idm'}"

static inline void shop_scenario(const struct shop *shop, const char *id, const char *horizon_s,
                                 const char *agents, const char *branches, char path[256])
{
    char text[4096];
    char name[80];
    snprintf(text, sizeof text, SHOP_SCENARIO, id, horizon_s, agents, branches);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    snprintf(name, sizeof name, "%s.json", id);
    shop_write(shop, name, text, path);
}

#endif
