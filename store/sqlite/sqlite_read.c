/*
 * Looking: what can be read from the store, each call in one read transaction on a connection of
 * its own, so that it sees one moment and never holds up the writer.
 */
#include "base/check.h"
#include "store/sqlite/records.h"
#include "store/sqlite/sqlite_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTCOMES_MAX = 1000,
    PAGE_LOOKS_MAX = 10000, /* rows behind one page: some 30 ms */
    RARE_JOBS_MAX = 1000,   /* of a scenario whose outcomes are sorted rather than met on the way */
};

enum status sqlite_read_scenario(struct store *base, const char *hash, char **body, size_t *bytes,
                                 struct error *error)
{
    struct db *db;
    char *copy = NULL;
    size_t found_bytes = 0;
    bool found = false;
    struct sqlite_store *store = sqlite_store_of(base);
    TRY(sqlite_store_read_begin(base, &db, error));
    struct query query = query_begin(db, STATEMENT_SCENARIO_BODY);
    query_text(&query, hash);
    found = query_row(&query);
    if (found) {
        const void *data = query_column_blob(&query, 0, &found_bytes);
        copy = malloc(found_bytes + 1);
        if (copy != NULL) {
            if (found_bytes > 0) {
                memcpy(copy, data, found_bytes);
            }
            copy[found_bytes] = '\0';
        }
    }
    enum status status = query_end(&query, error);
    sqlite_store_read_end(store, db);
    if (status == STATUS_OK && !found) {
        status = error_set(error, STATUS_NOT_FOUND, "the store has no scenario %.64s", hash);
    } else if (status == STATUS_OK && copy == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory for a scenario");
    }
    if (status != STATUS_OK) {
        free(copy);
        return status;
    }
    *body = copy;
    *bytes = found_bytes;
    return STATUS_OK;
}

/* Hosts that could not start a planner of the suite, and what one of them said. */
static enum status read_unstarted(struct db *db, int64_t suite, struct store_suite_status *out,
                                  struct error *error)
{
    char worker_id[LIMIT_ID_BYTES] = "";
    char said[OUTCOME_ERROR_BYTES] = "";
    struct query query = query_begin(db, STATEMENT_UNSTARTED_SUITE);

    query_int(&query, suite);
    if (query_row(&query)) {
        out->unstarted_hosts = query_column_int(&query, 0);
        query_column_text(&query, 1, worker_id, sizeof worker_id);
        query_column_text(&query, 2, said, sizeof said);
    }
    if (out->unstarted_hosts > 0) {
        snprintf(out->unstarted, sizeof out->unstarted, "%s: %.*s", worker_id,
                 (int)strcspn(said, "\r\n"), said);
    }
    return query_end(&query, error);
}

static enum status read_status(struct db *db, const char *suite_id, struct store_suite_status *out,
                               struct error *error)
{
    int64_t suite = 0;
    int column = 1;
    struct query counters = query_begin(db, STATEMENT_SUITE_STATUS);

    memset(out, 0, sizeof *out);
    query_text(&counters, suite_id);
    if (query_row(&counters)) {
        suite = query_column_int(&counters, 0);
        for (int i = 0; i < JOB_STATE_COUNT; i++) {
            out->jobs[i] = query_column_int(&counters, column++);
        }
        out->memoised_jobs = query_column_int(&counters, column++);
        out->rollouts_total = query_column_int(&counters, column++);
        for (int i = 0; i < VERDICT_COUNT; i++) {
            out->rollouts[i] = query_column_int(&counters, column++);
        }
        out->ticks = query_column_int(&counters, column++);
        out->prefix_ticks_saved = query_column_int(&counters, column++);
        out->metres_mm = query_column_int(&counters, column++);
        out->rollouts_audit = query_column_int(&counters, column++);
        out->submitted_s = query_column_int(&counters, column);
    }
    TRY(query_end(&counters, error));
    if (suite == 0) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no suite \"%s\"", suite_id);
    }
    struct query cost = query_begin(db, STATEMENT_LEDGER_COST);
    query_int(&cost, suite);
    if (query_row(&cost)) {
        out->device_ns = query_column_int(&cost, 0);
        out->cost_uusd = query_column_int(&cost, 1);
        out->mflop = query_column_int(&cost, 2);
    }
    enum status status = query_end(&cost, error);
    THEN(status, read_unstarted(db, suite, out, error));
    THEN(status, stats_read_progress(db, suite, out, error));
    if (status != STATUS_OK || out->jobs[JOB_DEAD] == 0) {
        return status;
    }
    struct query audits = query_begin(db, STATEMENT_AUDITS_DEAD);
    query_int(&audits, suite);
    if (query_row(&audits)) {
        out->audits_dead = query_column_int(&audits, 0);
    }
    return query_end(&audits, error);
}

enum status sqlite_read_suite_status(struct store *base, const char *suite_id,
                                     struct store_suite_status *out, struct error *error)
{
    struct db *db;
    struct store_suite_status found;
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_store_read_begin(base, &db, error);

    if (status == STATUS_OK) {
        status = read_status(db, suite_id, &found, error);
        sqlite_store_read_end(store, db);
    }
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}

enum status sqlite_read_suites(struct store *base, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                               uint32_t *count, struct error *error)
{
    struct db *db;
    uint32_t found = 0;
    struct sqlite_store *store = sqlite_store_of(base);
    TRY(sqlite_store_read_begin(base, &db, error));
    struct query query = query_begin(db, STATEMENT_SUITES);
    query_int(&query, max);
    while (found < max && query_row(&query)) {
        query_column_text(&query, 0, ids[found++], LIMIT_ID_BYTES);
    }
    enum status status = query_end(&query, error);
    sqlite_store_read_end(store, db);
    if (status == STATUS_OK) {
        *count = found;
    }
    return status;
}

/* ---- outcomes ---- */

/* Names are looked up by these numbers. A file that was edited may hold any. */
static enum status check_numbers(const struct outcome *outcome, struct error *error)
{
    if ((unsigned)outcome->tier >= TIER_COUNT || (unsigned)outcome->verdict >= VERDICT_COUNT ||
        (unsigned)outcome->metrics.collision_kind >= COLLISION_KIND_COUNT) {
        return error_set(error, STATUS_STORE,
                         "outcome %" PRId64 ": tier %d, verdict %d or collision kind %d is none "
                         "that there is; the store was edited or is damaged",
                         outcome->id, (int)outcome->tier, (int)outcome->verdict,
                         (int)outcome->metrics.collision_kind);
    }
    return STATUS_OK;
}

/* Reads one outcome as its job `job_id` reports it. False in *matches: the filter drops it. */
static enum status read_outcome(struct db *db, const struct store_outcome_filter *filter,
                                int64_t outcome_id, int64_t job_id, struct outcome *out,
                                bool *matches, struct error *error)
{
    enum status numbers = STATUS_OK;
    struct query query = query_begin(db, STATEMENT_OUTCOME_GET);

    query_int(&query, outcome_id);
    query_int(&query, job_id);
    query_text(&query, filter->scenario_id);
    query_int(&query, filter->by_verdict ? (int64_t)filter->verdict : -1);
    *matches = query_row(&query);
    if (*matches) {
        memset(out, 0, sizeof *out);
        record_outcome_read(&query, out);
        *matches =
            (filter->suite_id[0] == '\0' || strcmp(out->suite_id, filter->suite_id) == 0) &&
            (!filter->main_lines || out->branch_id[0] == '\0') &&
            (!filter->by_slice || strcmp(out->slice[filter->slice_kind], filter->slice_value) == 0);
        numbers = check_numbers(out, error);
    }
    enum status status = query_end(&query, numbers == STATUS_OK ? error : NULL);
    return numbers == STATUS_OK ? status : numbers;
}

/* A search for outcomes: the filter, and what it names. */
struct search {
    const struct store_outcome_filter *filter;
    int64_t suite;       /* 0: all */
    bool rare;           /* few jobs are of the filter's scenario */
    uint32_t looks_left; /* rows that it may look at */
};

/* Is the filter's scenario rare enough that all its outcomes can be sorted? Of one that is not, a
 * walk through the others finds a page soon. */
static enum status find_rare(struct db *db, struct search *search, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_SCENARIO_JOBS);

    query_text(&query, search->filter->scenario_id);
    query_int(&query, RARE_JOBS_MAX + 1);
    if (query_row(&query)) {
        search->rare = query_column_int(&query, 0) <= RARE_JOBS_MAX;
    }
    return query_end(&query, error);
}

static enum status search_begin(struct db *db, struct search *search, struct error *error)
{
    const struct store_outcome_filter *filter = search->filter;

    if (filter->suite_id[0] != '\0') {
        TRY(record_find(db, STATEMENT_SUITE_FIND, filter->suite_id, &search->suite, error));
        if (search->suite == 0) {
            return error_set(error, STATUS_NOT_FOUND, "the store has no suite \"%s\"",
                             filter->suite_id);
        }
    }
    if (filter->scenario_id[0] != '\0') {
        TRY(find_rare(db, search, error));
    }
    return STATUS_OK;
}

/* Ids that may fit, ascending, from the index that leaves the fewest. */
static struct query outcome_ids(struct db *db, const struct search *search)
{
    const struct store_outcome_filter *filter = search->filter;
    bool one = filter->outcome_id > 0 && filter->outcome_id > filter->after_id;
    bool suite = search->suite != 0;
    enum statement statement =
        filter->job_id != 0 ? STATEMENT_OUTCOME_IDS_JOB
        : search->rare
            ? (suite ? STATEMENT_OUTCOME_IDS_SUITE_SCENARIO : STATEMENT_OUTCOME_IDS_SCENARIO)
        : filter->by_verdict
            ? (suite ? STATEMENT_OUTCOME_IDS_SUITE_VERDICT : STATEMENT_OUTCOME_IDS_VERDICT)
        : suite ? STATEMENT_OUTCOME_IDS_SUITE
                : STATEMENT_OUTCOME_IDS_ALL;
    struct query query = query_begin(db, statement);

    query_int(&query, one ? filter->outcome_id - 1 : filter->after_id);
    if (statement == STATEMENT_OUTCOME_IDS_JOB) {
        query_int(&query, filter->job_id);
        return query;
    }
    if (search->rare) {
        query_text(&query, filter->scenario_id);
    }
    if (suite) {
        query_int(&query, search->suite);
    }
    if (statement == STATEMENT_OUTCOME_IDS_VERDICT ||
        statement == STATEMENT_OUTCOME_IDS_SUITE_VERDICT) {
        query_int(&query, (int64_t)filter->verdict);
    }
    return query;
}

/* *next: where a search that has looked at enough goes on; 0: at the end, or the page is full. */
static enum status read_outcomes(struct db *db, struct search *search, struct outcome *out,
                                 uint32_t *count, int64_t *next, struct error *error)
{
    const struct store_outcome_filter *filter = search->filter;
    uint32_t found = 0;
    int64_t stopped_at = 0;
    TRY(search_begin(db, search, error));
    enum status status = STATUS_OK;
    struct query ids = outcome_ids(db, search);
    while (status == STATUS_OK && found < filter->limit && stopped_at == 0 && query_row(&ids)) {
        int64_t id = query_column_int(&ids, 0);
        bool matches = false;
        if (filter->outcome_id != 0 && id != filter->outcome_id) {
            break;
        }
        status =
            read_outcome(db, filter, id, query_column_int(&ids, 1), &out[found], &matches, error);
        found += matches ? 1 : 0;
        search->looks_left--;
        stopped_at = search->looks_left == 0 && found < filter->limit ? id : 0;
    }
    if (status != STATUS_OK) {
        query_end(&ids, NULL);
        return status;
    }
    status = query_end(&ids, error);
    if (status == STATUS_OK) {
        *count = found;
        *next = stopped_at;
    }
    return status;
}

static enum status search_outcomes(struct store *base, struct search *search, struct outcome *out,
                                   uint32_t *count, int64_t *next, struct error *error)
{
    struct db *db;
    uint32_t limit = search->filter->limit;

    if (limit < 1 || limit > OUTCOMES_MAX) {
        return error_set(error, STATUS_LIMIT, "1 to %d outcomes can be read at once, not %" PRIu32,
                         OUTCOMES_MAX, limit);
    }
    enum status status = sqlite_store_read_begin(base, &db, error);
    if (status == STATUS_OK) {
        status = read_outcomes(db, search, out, count, next, error);
        sqlite_store_read_end(sqlite_store_of(base), db);
    }
    return status;
}

enum status sqlite_read_outcomes(struct store *base, const struct store_outcome_filter *filter,
                                 struct outcome *out, uint32_t *count, struct error *error)
{
    int64_t next = 0;
    struct search search = {.filter = filter, .looks_left = UINT32_MAX};
    return search_outcomes(base, &search, out, count, &next, error);
}

enum status look_outcomes_page(struct store *base, const struct store_outcome_filter *filter,
                               struct outcome *out, uint32_t *count, int64_t *next,
                               struct error *error)
{
    struct search search = {.filter = filter, .looks_left = PAGE_LOOKS_MAX};
    return search_outcomes(base, &search, out, count, next, error);
}

/* ---- jobs ---- */

enum status sqlite_read_job(struct store *base, int64_t job_id, struct store_job *out,
                            struct error *error)
{
    struct db *db;
    struct store_job job;
    struct sqlite_store *store = sqlite_store_of(base);
    TRY(sqlite_store_read_begin(base, &db, error));
    struct query query = query_begin(db, STATEMENT_JOB_GET);
    query_int(&query, job_id);
    bool found = query_row(&query);
    if (found) {
        memset(&job, 0, sizeof job);
        record_job_read(&query, &job);
    }
    enum status status = query_end(&query, error);
    sqlite_store_read_end(store, db);
    if (status == STATUS_OK && !found) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no job %" PRId64, job_id);
    }
    if (status == STATUS_OK) {
        *out = job;
    }
    return status;
}

/* The job's spec; its digest is part of each outcome's. */
static enum status read_spec(struct db *db, int64_t job_id, struct job_spec *spec,
                             struct error *error)
{
    struct query query = query_begin(db, STATEMENT_CHECK_SPEC);

    memset(spec, 0, sizeof *spec);
    query_int(&query, job_id);
    bool found = query_row(&query);
    if (found) {
        record_spec_read(&query, 0, spec);
    }
    enum status status = query_end(&query, error);
    if (status == STATUS_OK && !found) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no job %" PRId64, job_id);
    }
    return status;
}

static enum status read_partials(struct db *db, int64_t job_id, struct outcome *out, uint32_t max,
                                 uint32_t *count, struct error *error)
{
    struct job_spec spec;
    uint32_t found = 0;
    TRY(read_spec(db, job_id, &spec, error));
    enum status status = STATUS_OK;
    struct query query = query_begin(db, STATEMENT_PARTIALS_OF_JOB);
    query_int(&query, job_id);
    query_int(&query, max);
    while (status == STATUS_OK && found < max && query_row(&query)) {
        status = record_partial_read(&query, &spec, &out[found++], error);
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    if (status == STATUS_OK && ended == STATUS_OK) {
        *count = found;
    }
    return status == STATUS_OK ? ended : status;
}

enum status sqlite_read_partials(struct store *base, int64_t job_id, struct outcome *out,
                                 uint32_t max, uint32_t *count, struct error *error)
{
    struct db *db;
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_store_read_begin(base, &db, error);

    if (status == STATUS_OK) {
        status = read_partials(db, job_id, out, max, count, error);
        sqlite_store_read_end(store, db);
    }
    return status;
}

enum status sqlite_read_dead_jobs(struct store *base, const char *suite_id, int64_t after_id,
                                  struct store_job *out, uint32_t max, uint32_t *count,
                                  struct error *error)
{
    struct db *db;
    int64_t suite = 0;
    struct sqlite_store *store = sqlite_store_of(base);
    TRY(sqlite_store_read_begin(base, &db, error));
    enum status status = record_find(db, STATEMENT_SUITE_FIND, suite_id, &suite, error);
    if (status == STATUS_OK && suite == 0) {
        status = error_set(error, STATUS_NOT_FOUND, "the store has no suite \"%s\"", suite_id);
    }
    if (status == STATUS_OK) {
        struct query query = query_begin(db, STATEMENT_DEAD_JOBS);
        uint32_t found = 0;
        query_int(&query, suite);
        query_int(&query, after_id);
        query_int(&query, max);
        while (found < max && query_row(&query)) {
            memset(&out[found], 0, sizeof out[found]);
            record_job_read(&query, &out[found++]);
        }
        status = query_end(&query, error);
        if (status == STATUS_OK) {
            *count = found;
        }
    }
    sqlite_store_read_end(store, db);
    return status;
}
