/*
 * Store benchmark. See bench.h.
 */
#include "store/bench/bench.h"

#include "base/clock.h"
#include "base/units.h"
#include "store/api/digest.h"
#include "store/api/store.h"
#include "store/bench/bench_parts.h"
#include "store/sql/lease.h"
#include "store/sql/ledger.h"
#include "store/sql/records.h"
#include "store/sql/sqlite_db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_PAGES = 1000 }; /* as the store's writer: checkpoint beyond that */

static const char worker_name[] = "bench-worker";
static const char suite_name[] = "bench";
static const char store_name[] = "bench_store";
static const char bare_name[] = "bench_bare";

struct bench {
    struct bench_place place;
    uint32_t jobs; /* per round */
    uint32_t batch;
    int64_t claim_id;
    struct store *store;
    struct db *bare;
    struct job_lease *leases;
    struct job_completion *completions;
    struct store_completion_result *results;
    struct outcome *outcome;
};

/* ---- one side: the store ---- */

static enum status store_round(struct bench *bench, struct error *error)
{
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    enum status status = STATUS_OK;
    int64_t ttl_ms = 0;

    strcpy(worker.worker_id, worker_name);
    for (uint32_t done = 0; done < bench->jobs && status == STATUS_OK;) {
        uint32_t count = 0;
        status = bench->store->ops->claim(bench->store, &worker, &bench->claim_id, bench->batch, 0,
                                          bench->leases, &count, &ttl_ms, error);
        if (status == STATUS_OK && count == 0) {
            return error_set(error, STATUS_STORE, "the benchmark ran out of jobs");
        }
        for (uint32_t i = 0; i < count; i++) {
            bench_make_completion(&bench->completions[i], &bench->leases[i], worker_name,
                                  bench->outcome);
        }
        THEN(status, bench->store->ops->complete(bench->store, bench->completions, count,
                                                 bench->results, error));
        done += count;
    }
    return status;
}

/* ---- the other side: the same statements ---- */

/* Of STATEMENT_SUITE_COUNT, but for the digest: id, two counts of jobs and rollouts, five sums. */
enum {
    SUITE_COUNTS = 1 + JOB_STATE_COUNT + 2 + VERDICT_COUNT + 5,
    SUITE_DIGESTED = SUITE_COUNTS - 1
};

static void bind_ints(struct query *query, const int64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        query_int(query, values[i]);
    }
}

static enum status bare_find(struct db *db, enum statement statement, const char *text, int64_t *id,
                             struct error *error)
{
    struct query query = query_begin(db, statement);

    query_text(&query, text);
    if (query_row(&query)) {
        *id = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

/* The counters of the suite and of its pool; jobs move between two states. */
static enum status bare_count(struct db *db, const int64_t values[SUITE_COUNTS], int64_t pool,
                              enum job_state from, enum job_state to, struct error *error)
{
    struct digest digest = {.bytes = {0}};
    bool digested = values[SUITE_DIGESTED] != 0;
    if (digested) {
        struct query get = query_begin(db, STATEMENT_SUITE_DIGEST);
        query_int(&get, values[0]);
        if (query_row(&get)) {
            record_digest_take(&get, &digest);
        }
        TRY(query_end(&get, error));
    }
    struct query query = query_begin(db, STATEMENT_SUITE_COUNT);
    bind_ints(&query, values, SUITE_COUNTS);
    if (digested) {
        query_blob(&query, digest.bytes, sizeof digest.bytes);
    } else {
        query_null(&query);
    }
    TRY(query_run(&query, error));
    struct query jobs = query_begin(db, STATEMENT_POOL_COUNT);
    bind_ints(&jobs, (const int64_t[]){pool, from, values[1 + from], to, values[1 + to]}, 5);
    return query_run(&jobs, error);
}

static enum status bare_claim(struct db *db, uint32_t batch, int64_t *ids, int64_t *epochs,
                              uint32_t *count, struct error *error)
{
    int64_t pool = 0;
    int64_t worker = 0;
    uint32_t found = 0;
    TRY(query_simple(db, STATEMENT_BEGIN, error));
    TRY(bare_find(db, STATEMENT_POOL_FIND, "bulk", &pool, error));
    TRY(bare_find(db, STATEMENT_WORKER_FIND, worker_name, &worker, error));
    struct query run = query_begin(db, STATEMENT_READY_RUN);
    bind_ints(&run, (const int64_t[]){pool, 1, batch}, 3);
    while (found < batch && query_row(&run)) {
        struct job_lease lease;
        record_read(&run, RECORD_LEASE, &lease);
        ids[found] = lease.job_id;
        epochs[found++] = lease.epoch + 1;
    }
    enum status status = query_end(&run, error);
    for (uint32_t i = 0; i < found && status == STATUS_OK; i++) {
        struct query lease = query_begin(db, STATEMENT_JOB_LEASE);
        bind_ints(&lease, (const int64_t[]){ids[i], epochs[i], 1, worker, epochs[i], 1}, 6);
        status = query_run(&lease, error);
    }
    if (status == STATUS_OK && found > 0) {
        struct query claim = query_begin(db, STATEMENT_WORKER_CLAIM);
        bind_ints(&claim, (const int64_t[]){worker, ids[0]}, 2);
        status = query_run(&claim, error);
    }
    if (status == STATUS_OK) {
        status = bare_count(db, (const int64_t[SUITE_COUNTS]){1, -(int64_t)found, found}, pool,
                            JOB_QUEUED, JOB_LEASED, error);
    }
    *count = found;
    return status == STATUS_OK ? query_simple(db, STATEMENT_COMMIT, error) : status;
}

static enum status bare_outcome(struct db *db, int64_t job_id, const struct outcome *outcome,
                                struct error *error)
{
    struct query query = query_begin(db, STATEMENT_OUTCOME_INSERT);

    bind_ints(&query, (const int64_t[]){job_id, 1, 1, 1}, 4);
    query_text(&query, "");
    query_blob(&query, outcome->trace_hash, sizeof(struct digest));
    for (int i = 0; i < 5; i++) { /* of health */
        query_null(&query);
    }
    query_null(&query); /* when */
    record_write(&query, RECORD_OUTCOME, outcome);
    return query_run(&query, error);
}

static enum status bare_complete_job(struct db *db, int64_t job_id, int64_t epoch,
                                     const struct outcome *outcome, struct error *error)
{
    struct lease_job held;
    TRY(lease_job_get(db, job_id, &held, error));
    struct query end = query_begin(db, STATEMENT_JOB_END);
    bind_ints(&end, (const int64_t[]){job_id, JOB_DONE, 1, 0, 0, 0}, 6);
    TRY(query_run(&end, error));
    struct query attempt = query_begin(db, STATEMENT_ATTEMPT_INSERT);
    bind_ints(&attempt, (const int64_t[]){job_id, epoch, 1, 1}, 4);
    query_text(&attempt, "cpu");
    bind_ints(&attempt, (const int64_t[]){TIER_OBJECT, ATTEMPT_DONE, 15 * NS_PER_MS, 123456}, 4);
    bind_ints(&attempt, (const int64_t[]){0, 40000, 0}, 3);
    query_null(&attempt);
    query_null(&attempt);
    query_null(&attempt);
    query_int(&attempt, 1); /* when it was claimed */
    TRY(query_run(&attempt, error));
    return bare_outcome(db, job_id, outcome, error);
}

static enum status bare_money(struct db *db, int64_t count, struct error *error)
{
    struct query price = query_begin(db, STATEMENT_PRICE_GET);
    query_text(&price, "bulk");
    query_text(&price, "cpu");
    TRY(query_run(&price, error));
    struct query entry = query_begin(db, STATEMENT_LEDGER_ADD);
    bind_ints(&entry, (const int64_t[]){1, 1}, 2);
    query_text(&entry, "cpu");
    bind_ints(&entry,
              (const int64_t[]){TIER_OBJECT, 0, ATTEMPT_DONE, count, count, count, 0, count}, 8);
    TRY(query_run(&entry, error));
    struct query total = query_begin(db, STATEMENT_LEDGER_TOTAL_ADD);
    query_int(&total, 1);
    query_text(&total, "cpu");
    bind_ints(&total,
              (const int64_t[]){TIER_OBJECT, 0, ATTEMPT_DONE, count, count, count, 0, count}, 8);
    TRY(query_run(&total, error));
    struct query part = query_begin(db, STATEMENT_PROGRESS_COUNT);
    bind_ints(&part, (const int64_t[]){1, 1, TIER_OBJECT, -count, count, 0, count}, 7);
    TRY(query_run(&part, error));
    struct query get = query_begin(db, STATEMENT_ACCOUNT_GET);
    query_int(&get, 1);
    query_text(&get, "cpu");
    query_int(&get, 40000);
    TRY(query_run(&get, error));
    struct query set = query_begin(db, STATEMENT_ACCOUNT_SET);
    query_int(&set, 1);
    query_text(&set, "cpu");
    bind_ints(&set, (const int64_t[]){40000, count}, 2);
    return query_run(&set, error);
}

static enum status bare_complete(struct db *db, const int64_t *ids, const int64_t *epochs,
                                 uint32_t count, const struct outcome *outcome, struct error *error)
{
    int64_t done = count;
    TRY(query_simple(db, STATEMENT_BEGIN, error));

    for (uint32_t i = 0; i < count; i++) {
        TRY(bare_complete_job(db, ids[i], epochs[i], outcome, error));
    }
    TRY(bare_money(db, done, error));
    const int64_t changes[SUITE_COUNTS] = {
        1, 0, -done, done, 0, 0, 0, 0, 0, done, [SUITE_DIGESTED] = done};
    TRY(bare_count(db, changes, 1, JOB_LEASED, JOB_DONE, error));
    return query_simple(db, STATEMENT_COMMIT, error);
}

static enum status bare_round(struct bench *bench, struct error *error)
{
    int64_t ids[LIMIT_CLAIM_JOBS];
    int64_t epochs[LIMIT_CLAIM_JOBS];
    enum status status = STATUS_OK;
    int checkpoint_pages = LOG_PAGES;

    for (uint32_t done = 0; done < bench->jobs && status == STATUS_OK;) {
        uint32_t count = 0;
        status = bare_claim(bench->bare, bench->batch, ids, epochs, &count, error);
        if (status == STATUS_OK && count == 0) {
            return error_set(error, STATUS_STORE, "the benchmark ran out of jobs");
        }
        THEN(status, bare_complete(bench->bare, ids, epochs, count, bench->outcome, error));
        int pages = db_wal_pages(bench->bare);
        if (status == STATUS_OK && pages >= checkpoint_pages) {
            status = db_checkpoint(bench->bare, error);
        }
        done += count;
    }
    return status;
}

/* ---- both ---- */

static void finish(struct bench *bench)
{
    if (bench->store != NULL) {
        bench->store->ops->close(bench->store);
    }
    db_close(bench->bare);
    bench_place_remove(&bench->place, store_name);
    bench_place_remove(&bench->place, bare_name);
    free(bench->leases);
    free(bench->completions);
    free(bench->results);
    free(bench->outcome);
    free(bench);
}

/* The bare side's database is made by the store: jobs, and one job done, so that the suite, the
 * pool, the worker and the ledger's rows are there. */
static enum status prepare(struct bench *bench, struct error *error)
{
    struct store *other = NULL;
    uint32_t total = bench->jobs * (STORE_BENCH_ROUNDS + 1) + LIMIT_CLAIM_JOBS;
    uint32_t jobs = bench->jobs;
    uint32_t batch = bench->batch;
    enum status status = bench_place_open(&bench->place, store_name, true, &bench->store, error);

    THEN(status, bench_place_open(&bench->place, bare_name, true, &other, error));
    THEN(status, bench_submit(bench->store, suite_name, 0, total, error));
    THEN(status, bench_submit(other, suite_name, 0, total, error));
    struct job_spec spec;
    bench_make_spec(&spec, suite_name, 0);
    bench_make_outcome(bench->outcome, &spec);
    bench->jobs = 1;
    bench->batch = 1;
    for (int side = 0; side < 2 && status == STATUS_OK; side++) {
        struct store *mine = bench->store;
        bench->store = side == 0 ? mine : other;
        status = store_round(bench, error);
        bench->store = mine;
    }
    bench->jobs = jobs;
    bench->batch = batch;
    if (other != NULL) {
        other->ops->close(other);
    }
    return status == STATUS_OK ? bench_place_db(&bench->place, bare_name, &bench->bare, error)
                               : status;
}

static enum status run_rounds(struct bench *bench, struct store_bench_result *result,
                              struct error *error)
{
    double store_rates[STORE_BENCH_ROUNDS];
    double bare_rates[STORE_BENCH_ROUNDS];
    double ratios[STORE_BENCH_ROUNDS];
    double cpu[3][STORE_BENCH_ROUNDS]; /* store, bare, ratio */
    enum status status = STATUS_OK;

    for (int round = -1; round < STORE_BENCH_ROUNDS && status == STATUS_OK; round++) {
        double start_us = bench_cpu_us();
        int64_t start_ns = clock_monotonic_ns();
        status = store_round(bench, error);
        int64_t middle_ns = clock_monotonic_ns();
        double middle_us = bench_cpu_us();
        THEN(status, bare_round(bench, error));
        int64_t end_ns = clock_monotonic_ns();
        if (round >= 0) { /* the first one warms up */
            store_rates[round] = bench->jobs / ((double)(middle_ns - start_ns) / NS_PER_S);
            bare_rates[round] = bench->jobs / ((double)(end_ns - middle_ns) / NS_PER_S);
            ratios[round] = store_rates[round] / bare_rates[round];
            cpu[0][round] = (middle_us - start_us) / bench->jobs;
            cpu[1][round] = (bench_cpu_us() - middle_us) / bench->jobs;
            cpu[2][round] = cpu[0][round] / cpu[1][round];
        }
    }
    if (status == STATUS_OK) {
        result->store_jobs_per_s = bench_median(store_rates, STORE_BENCH_ROUNDS);
        result->bare_jobs_per_s = bench_median(bare_rates, STORE_BENCH_ROUNDS);
        result->ratio = bench_median(ratios, STORE_BENCH_ROUNDS);
        result->store_cpu_us = bench_median(cpu[0], STORE_BENCH_ROUNDS);
        result->bare_cpu_us = bench_median(cpu[1], STORE_BENCH_ROUNDS);
        result->cpu_ratio = bench_median(cpu[2], STORE_BENCH_ROUNDS);
    }
    return status;
}

enum status store_bench(const struct bench_place *place, uint32_t jobs, uint32_t batch,
                        struct store_bench_result *out, struct error *error)
{
    struct store_bench_result result = {.batch = batch};
    struct bench *bench = calloc(1, sizeof *bench);

    if (bench == NULL || jobs < 1 || batch < 1 || batch > LIMIT_CLAIM_JOBS) {
        free(bench);
        return error_set(error, STATUS_LIMIT, "a store benchmark has batches of 1 to %d",
                         LIMIT_CLAIM_JOBS);
    }
    bench->jobs = (jobs + batch - 1) / batch * batch;
    bench->batch = batch;
    bench->claim_id = 1;
    bench->place = *place;
    bench->leases = calloc(batch, sizeof *bench->leases);
    bench->completions = calloc(batch, sizeof *bench->completions);
    bench->results = calloc(batch, sizeof *bench->results);
    bench->outcome = calloc(1, sizeof *bench->outcome);
    enum status status = STATUS_OK;
    if (bench->leases == NULL || bench->completions == NULL || bench->results == NULL ||
        bench->outcome == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory for the store benchmark");
    }
    THEN(status, prepare(bench, error));
    THEN(status, bench_fsync_p50(place->directory, &result.fsync_p50_ns, error));
    THEN(status, run_rounds(bench, &result, error));
    finish(bench);
    if (status == STATUS_OK) {
        *out = result;
    }
    return status;
}
