/*
 * Parts that the store's benchmarks share. See bench_parts.h.
 */
#include "store/bench/bench_parts.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "schemas/job_context.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_store.h"
#include "store/sql/sqlite_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FSYNC_SAMPLES = 41 };

int64_t bench_percentile(int64_t *samples, size_t count, unsigned percent)
{
    if (count == 0) {
        return 0;
    }
    qsort(samples, count, sizeof samples[0], array_compare_int64);
    return samples[count * percent / 100 < count ? count * percent / 100 : count - 1];
}

double bench_median(double *samples, size_t count)
{
    qsort(samples, count, sizeof samples[0], array_compare_double);
    return samples[count / 2];
}

double bench_cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* ---- the disk ---- */

enum status bench_fsync_p50(const char *directory, int64_t *p50_ns, struct error *error)
{
    char path[LIMIT_PATH_BYTES + 32];
    char page[4096];
    int64_t samples[FSYNC_SAMPLES];
    enum status status = STATUS_OK;

    memset(page, 0x5a, sizeof page);
    snprintf(path, sizeof path, "%s/bench-fsync", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    for (int i = 0; i < FSYNC_SAMPLES; i++) {
        int64_t start_ns = clock_monotonic_ns();
        if (write(fd, page, sizeof page) != (ssize_t)sizeof page || fdatasync(fd) != 0) {
            status = error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
            break;
        }
        samples[i] = clock_monotonic_ns() - start_ns;
    }
    close(fd);
    unlink(path);
    if (status == STATUS_OK) {
        *p50_ns = bench_percentile(samples, FSYNC_SAMPLES, 50);
    }
    return status;
}

/* ---- the jobs ---- */

void bench_make_spec(struct job_spec *spec, const char *suite, uint32_t serial)
{
    char text[32];

    memset(spec, 0, sizeof *spec);
    int bytes = snprintf(text, sizeof text, "bench %u", serial);
    sha256_hex(text, (size_t)bytes, spec->key);
    snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
    strcpy(spec->scenario_id, "cut_in_from_left"); /* all ask the same: one outcome answers them */
    strcpy(spec->planner, "builtin:reference");
    memcpy(spec->planner_hash, spec->key, sizeof spec->planner_hash);
    memset(spec->planner_hash, 'a', 64);
    strcpy(spec->pool, "bulk");
    spec->tier = TIER_OBJECT;
    strcpy(spec->backend, "cpu");
    memset(spec->revision, 'b', 64);
    spec->rollout_count = 1;
    spec->attempts_max = 3;
}

void bench_make_outcome(struct outcome *outcome, const struct job_spec *spec)
{
    memset(outcome, 0, sizeof *outcome);
    job_context_copy(spec, outcome);
    outcome->verdict = VERDICT_PASS;
    outcome->ticks = 150;
    outcome->metres_mm = 123456;
    outcome->device_ns = 15 * NS_PER_MS;
    memset(outcome->trace_hash, 'c', 64);
    strcpy(outcome->slice[0], "clear");
    strcpy(outcome->slice[1], "day");
    strcpy(outcome->slice[2], "motorway");
    strcpy(outcome->slice[3], "europe");
    strcpy(outcome->slice[4], "car");
    strcpy(outcome->slice[5], "cut_in");
    outcome->metrics.score = 0.93;
    outcome->metrics.min_ttc_s = 1.75;
    outcome->metrics.min_distance_m = 4.2;
    outcome->metrics.progress_m = 123.4;
    outcome->metrics.distance_m = 123.456;
    outcome->metrics.speed_max_mps = 13.9;
    outcome->metrics.collision_tick = UINT32_MAX;
    outcome->metrics.collision_agent = -1;
}

void bench_make_completion(struct job_completion *completion, const struct job_lease *lease,
                           const char *worker_id, struct outcome *outcome)
{
    memset(completion, 0, sizeof *completion);
    completion->job_id = lease->job_id;
    completion->epoch = lease->epoch;
    snprintf(completion->worker_id, sizeof completion->worker_id, "%s", worker_id);
    completion->kind = COMPLETION_DONE;
    completion->device_ns = 15 * NS_PER_MS;
    completion->metres_mm = 123456;
    completion->outcome_count = 1;
    completion->outcomes = outcome;
}

enum status bench_submit(struct store *store, const char *suite, uint32_t first, uint32_t count,
                         struct error *error)
{
    struct job_spec *specs = calloc(BENCH_SUBMIT_CHUNK, sizeof *specs);
    struct store_submit_result *results = calloc(BENCH_SUBMIT_CHUNK, sizeof *results);
    enum status status = STATUS_OK;

    if (specs == NULL || results == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory for the benchmark's jobs");
    }
    for (uint32_t done = 0; done < count && status == STATUS_OK;) {
        uint32_t chunk = count - done < BENCH_SUBMIT_CHUNK ? count - done : BENCH_SUBMIT_CHUNK;
        for (uint32_t i = 0; i < chunk; i++) {
            bench_make_spec(&specs[i], suite, first + done + i);
        }
        status = store->ops->submit(store, suite, 1, specs, chunk, results, error);
        done += chunk;
    }
    free(specs);
    free(results);
    return status;
}

/* ---- places ---- */

static void file_path(const struct bench_place *place, const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%.*s/%.32s.db", LIMIT_PATH_BYTES - 1, place->directory, name);
}

static void remove_files(const char *path)
{
    static const char *const files[] = {"", "-wal", "-shm"};
    static const char *const directories[] = {".artifacts/unfinished", ".artifacts"};
    char name[2 * LIMIT_PATH_BYTES + 64];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, files[i]);
        unlink(name);
    }
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, directories[i]);
        rmdir(name);
    }
}

/* Connection parameters of the schema. */
static void schema_url(const struct bench_place *place, const char *name, char *url, size_t bytes)
{
    snprintf(url, bytes, "%s%coptions=-csearch_path%%3D%s", place->url,
             strchr(place->url, '?') != NULL ? '&' : '?', name);
}

static enum status drop_schema(const struct bench_place *place, const char *name, bool anew,
                               struct error *error)
{
    char sql[256];
    struct db *db = NULL;
    TRY(postgres_db_open(place->url, NULL, &db, error));

    snprintf(sql, sizeof sql, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS %s CASCADE",
             name);
    enum status status = postgres_db_script(db, sql, error);
    snprintf(sql, sizeof sql, "CREATE SCHEMA %s", name);
    THEN(status, anew ? postgres_db_script(db, sql, error) : STATUS_OK);
    db_close(db);
    return status;
}

enum status bench_place_open(const struct bench_place *place, const char *name, bool fresh,
                             struct store **out, struct error *error)
{
    /* Workers send no heartbeats here, and thousands of them wait longer than a lease lasts. */
    const struct store_config config = {.lease_ttl_ms = 3600 * 1000};
    char path[2 * LIMIT_PATH_BYTES];
    char directory[LIMIT_PATH_BYTES];

    if (place->url == NULL) {
        file_path(place, name, path, sizeof path);
        if (fresh) {
            remove_files(path);
        }
        return store_sqlite_open(path, &config, out, error);
    }
    if (realpath(place->directory, directory) == NULL) {
        return error_set(error, STATUS_IO, "%s: %s", place->directory, strerror(errno));
    }
    TRY(fresh ? drop_schema(place, name, true, error) : STATUS_OK);
    schema_url(place, name, path, sizeof path);
    size_t bytes = strlen(path);
    snprintf(path + bytes, sizeof path - bytes, "&artifacts=%s", directory);
    return postgres_store_open(path, &config, out, error);
}

enum status bench_place_db(const struct bench_place *place, const char *name, struct db **out,
                           struct error *error)
{
    static char url[2 * LIMIT_PATH_BYTES]; /* borrowed until close: one at a time */

    if (place->url == NULL) {
        file_path(place, name, url, sizeof url);
        TRY(sqlite_db_open(url, SQLITE_DB_WRITER, out, error));
        return sqlite_db_use_wal(*out, error);
    }
    schema_url(place, name, url, sizeof url);
    return postgres_db_open(url, NULL, out, error);
}

void bench_place_remove(const struct bench_place *place, const char *name)
{
    char path[2 * LIMIT_PATH_BYTES];
    struct error ignored;

    if (place->url == NULL) {
        file_path(place, name, path, sizeof path);
        remove_files(path);
    } else {
        drop_schema(place, name, false, &ignored);
        snprintf(path, sizeof path, "%s/swerve", place->directory);
        remove_files(path);
    }
}
