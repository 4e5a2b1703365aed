/*
 * Looking: what can be read from the store, each call in one read transaction on a connection of
 * its own, so that it sees one moment and never holds up the writer.
 */
#include "base/check.h"
#include "base/sha256.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTCOMES_MAX = 1000,
    PAGE_LOOKS_MAX = 10000, /* rows behind one page: some 30 ms */
    RARE_JOBS_MAX = 1000,   /* of a scenario whose outcomes are sorted rather than met on the way */
};

enum status sql_read_begin(struct store *base, enum statement statement, struct query *query,
                           struct error *error)
{
    struct db *db;
    TRY(sql_store_read_begin(base, &db, error));
    *query = query_begin(db, statement);
    return STATUS_OK;
}

enum status sql_read_end(struct store *base, struct query *query, struct error *error)
{
    struct db *db = query->db;
    enum status status = query_end(query, error);
    sql_store_read_end(sql_store_of(base), db);
    return status;
}

enum status sql_read_rows_end(struct store *base, struct query *query, uint32_t found,
                              uint32_t *count, struct error *error)
{
    TRY(sql_read_end(base, query, error));
    *count = found;
    return STATUS_OK;
}

/* ---- bodies of scenarios: a long map is kept once, apart from those that have it ---- */

enum { MAP_BYTES_MIN = 16 << 10 };

static const char nothing[] = "null"; /* in place of a map */
enum { NOTHING_BYTES = sizeof nothing - 1 };

/* Bytes of an object that begins a text, up to its closing brace; 0: it has none. */
static size_t object_bytes(const char *text, size_t bytes)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (quoted && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (quoted) {
            continue;
        } else if (text[i] == '{') {
            depth++;
        } else if (text[i] == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

static bool find_map(const char *body, size_t bytes, size_t *from, size_t *map_bytes)
{
    static const char mark[] = ",\"map\":{";
    const char *found = bytes >= MAP_BYTES_MIN ? memmem(body, bytes, mark, sizeof mark - 1) : NULL;
    if (found == NULL) {
        return false;
    }
    *from = (size_t)(found - body) + sizeof mark - 2;
    *map_bytes = object_bytes(body + *from, bytes - *from);
    return *map_bytes >= MAP_BYTES_MIN;
}

static enum status bring_map(struct db *db, const char *text, size_t bytes, int64_t *id,
                             struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    sha256_hex(text, bytes, hash);
    TRY(record_find(db, STATEMENT_MAP_FIND, hash, id, error));
    if (*id != 0) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_MAP_INSERT);
    query_text(&query, hash);
    query_blob(&query, text, bytes);
    TRY(query_run(&query, error));
    *id = db_last_id(db);
    return STATUS_OK;
}

static enum status insert(struct db *db, const char *hash, const char *body, size_t bytes,
                          int64_t tenant, int64_t map, size_t map_at, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_SCENARIO_INSERT);
    query_text(&query, hash);
    query_blob(&query, body, bytes);
    query_int_or_null(&query, tenant);
    query_int_or_null(&query, map);
    query_int_or_null(&query, (int64_t)map_at);
    return query_run(&query, error);
}

enum status record_scenario_insert(struct db *db, const char *hash, const char *body, size_t bytes,
                                   int64_t tenant, struct error *error)
{
    size_t from;
    size_t map_bytes;
    int64_t map = 0;
    if (!find_map(body, bytes, &from, &map_bytes)) {
        return insert(db, hash, body, bytes, tenant, 0, 0, error);
    }
    TRY(bring_map(db, body + from, map_bytes, &map, error));
    size_t left = bytes - from - map_bytes;
    char *rest = malloc(from + NOTHING_BYTES + left);
    TRY(memory_check(rest, error, "out of memory for a scenario"));
    memcpy(rest, body, from);
    memcpy(rest + from, nothing, NOTHING_BYTES);
    memcpy(rest + from + NOTHING_BYTES, body + from + map_bytes, left);
    enum status status =
        insert(db, hash, rest, from + NOTHING_BYTES + left, tenant, map, from, error);
    free(rest);
    return status;
}

char *record_scenario_body(const struct query *query, int column, size_t *bytes)
{
    size_t body_bytes = 0;
    size_t map_bytes = 0;
    const char *body = query_column_blob(query, column, &body_bytes);
    int64_t map_at = query_column_int(query, column + 1);
    const char *map = query_column_blob(query, column + 2, &map_bytes);
    size_t from = map != NULL && map_at > 0 && (size_t)map_at + NOTHING_BYTES <= body_bytes
                      ? (size_t)map_at
                      : body_bytes;
    size_t rest = from < body_bytes ? from + NOTHING_BYTES : body_bytes;
    map_bytes = from < body_bytes ? map_bytes : 0;
    char *whole = malloc(from + map_bytes + (body_bytes - rest) + 1);
    if (whole == NULL) {
        return NULL;
    }
    if (from > 0) {
        memcpy(whole, body, from);
    }
    if (map_bytes > 0) {
        memcpy(whole + from, map, map_bytes);
    }
    if (rest < body_bytes) {
        memcpy(whole + from + map_bytes, body + rest, body_bytes - rest);
    }
    *bytes = from + map_bytes + (body_bytes - rest);
    whole[*bytes] = '\0';
    return whole;
}

enum status sql_read_scenario(struct store *base, const char *hash, char **body, size_t *bytes,
                              struct error *error)
{
    struct query query;
    char *copy = NULL;
    size_t found_bytes = 0;
    bool found = false;
    TRY(sql_read_begin(base, STATEMENT_SCENARIO_BODY, &query, error));
    query_text(&query, hash);
    found = query_row(&query);
    if (found) {
        copy = record_scenario_body(&query, 0, &found_bytes);
    }
    enum status status = sql_read_end(base, &query, error);
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
        out->unstarted_hosts = query_take_int(&query);
        query_take_text(&query, worker_id, sizeof worker_id);
        query_take_text(&query, said, sizeof said);
    }
    if (out->unstarted_hosts > 0) {
        snprintf(out->unstarted, sizeof out->unstarted, "%s: %.*s", worker_id,
                 (int)strcspn(said, "\r\n"), said);
    }
    return query_end(&query, error);
}

static enum status read_status(struct sql_store *store, struct db *db, const char *suite_id,
                               struct store_suite_status *out, struct error *error)
{
    int64_t suite = 0;
    struct query counters = query_begin(db, STATEMENT_SUITE_STATUS);

    memset(out, 0, sizeof *out);
    query_text(&counters, suite_id);
    if (query_row(&counters)) {
        suite = query_take_int(&counters);
        for (int i = 0; i < JOB_STATE_COUNT; i++) {
            out->jobs[i] = query_take_int(&counters);
        }
        out->memoised_jobs = query_take_int(&counters);
        out->rollouts_total = query_take_int(&counters);
        for (int i = 0; i < VERDICT_COUNT; i++) {
            out->rollouts[i] = query_take_int(&counters);
        }
        out->ticks = query_take_int(&counters);
        out->prefix_ticks_saved = query_take_int(&counters);
        out->metres_mm = query_take_int(&counters);
        out->rollouts_audit = query_take_int(&counters);
        out->submitted_s = query_take_int(&counters);
        out->budget_uusd = query_take_int(&counters);
        out->stopped_by_budget = query_take_int(&counters) != 0;
        out->of_class = (enum suite_class)query_take_int(&counters);
        out->jobs_handed_back = query_take_int(&counters);
    }
    TRY(query_end(&counters, error));
    if (suite == 0) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no suite \"%s\"", suite_id);
    }
    struct query cost = query_begin(db, STATEMENT_LEDGER_COST);
    query_int(&cost, suite);
    if (query_row(&cost)) {
        out->device_ns = query_take_int(&cost);
        out->cost_uusd = query_take_int(&cost);
        out->mflop = query_take_int(&cost);
    }
    enum status status = query_end(&cost, error);
    THEN(status, read_unstarted(db, suite, out, error));
    THEN(status, stats_read_progress(store, db, suite, out, error));
    THEN(status, labels_read(db, suite, out, error));
    THEN(status, mains_read(store, db, suite, out, error));
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

enum status sql_read_suite_status(struct store *base, const char *suite_id,
                                  struct store_suite_status *out, struct error *error)
{
    struct db *db;
    struct store_suite_status found;
    struct sql_store *store = sql_store_of(base);
    enum status status = sql_store_read_begin(base, &db, error);

    if (status == STATUS_OK) {
        status = read_status(store, db, suite_id, &found, error);
        sql_store_read_end(store, db);
    }
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}

enum status sql_read_suites(struct store *base, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                            uint32_t *count, struct error *error)
{
    struct query query;
    uint32_t found = 0;
    TRY(sql_read_begin(base, STATEMENT_SUITES, &query, error));
    query_int(&query, max);
    while (found < max && query_row(&query)) {
        query_column_text(&query, 0, ids[found++], LIMIT_ID_BYTES);
    }
    return sql_read_rows_end(base, &query, found, count, error);
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
        TRY(record_find_suite(db, filter->suite_id, &search->suite, error));
    }
    if (filter->scenario_id[0] != '\0') {
        TRY(find_rare(db, search, error));
    }
    return STATUS_OK;
}

/* Every outcome is wanted, or who wants it looks at each. */
static bool plain(const struct store_outcome_filter *filter)
{
    return filter->job_id == 0 && !filter->by_verdict && filter->scenario_id[0] == '\0';
}

/* The index that leaves the fewest. */
static enum statement statement_of(const struct search *search)
{
    const struct store_outcome_filter *filter = search->filter;
    bool suite = search->suite != 0;

    if (filter->job_id != 0) {
        return STATEMENT_OUTCOMES_JOB;
    }
    if (plain(filter)) {
        return suite ? STATEMENT_OUTCOMES_EACH_SUITE : STATEMENT_OUTCOMES_EACH;
    }
    if (search->rare) {
        return suite ? STATEMENT_OUTCOMES_SUITE_SCENARIO : STATEMENT_OUTCOMES_SCENARIO;
    }
    if (filter->by_verdict) {
        return suite ? STATEMENT_OUTCOMES_SUITE_VERDICT : STATEMENT_OUTCOMES_VERDICT;
    }
    return suite ? STATEMENT_OUTCOMES_SUITE : STATEMENT_OUTCOMES_ALL;
}

/* The next few outcomes that may fit, ascending. */
static struct query outcomes_after(struct db *db, const struct search *search, int64_t after,
                                   uint32_t chunk)
{
    const struct store_outcome_filter *filter = search->filter;
    bool one = filter->outcome_id > after;
    struct query query = query_begin(db, statement_of(search));

    query_int(&query, one ? filter->outcome_id - 1 : after);
    query_int(&query, chunk);
    if (!plain(filter)) {
        query_text(&query, filter->scenario_id);
        query_int(&query, filter->by_verdict ? (int64_t)filter->verdict : -1);
    }
    if (filter->job_id != 0 || search->suite != 0) {
        query_int(&query, filter->job_id != 0 ? filter->job_id : search->suite);
    }
    return query;
}

/* Findings of a search so far. */
struct findings {
    struct outcome *out;
    uint32_t found;
    int64_t after;      /* id of the outcome that was looked at last */
    int64_t stopped_at; /* 0: the search has looked at less than it may */
    bool more;
};

static bool matches(const struct store_outcome_filter *filter, const struct outcome *outcome)
{
    return (filter->scenario_id[0] == '\0' ||
            strcmp(outcome->scenario_id, filter->scenario_id) == 0) &&
           (!filter->by_verdict || outcome->verdict == filter->verdict) &&
           (filter->suite_id[0] == '\0' || strcmp(outcome->suite_id, filter->suite_id) == 0) &&
           (!filter->main_lines || outcome->branch_id[0] == '\0') &&
           (!filter->by_slice ||
            strcmp(outcome->slice[filter->slice_kind], filter->slice_value) == 0);
}

/* One row of STATEMENT_OUTCOMES_*. */
static enum status look_at(struct query *row, const struct search *search, struct findings *to,
                           uint32_t *looked, struct error *error)
{
    const struct store_outcome_filter *filter = search->filter;
    struct outcome *outcome = &to->out[to->found];

    to->after = query_take_int(row);
    bool each = query_column_is_null(row, row->column);
    uint32_t all = (uint32_t)query_take_int(row);
    *looked = each ? *looked + 1 : all;
    if (filter->outcome_id != 0 && to->after != filter->outcome_id) {
        to->more = false;
        return STATUS_OK;
    }
    if (query_take_int(row) != 0) { /* all that belongs to it is there */
        memset(outcome, 0, sizeof *outcome);
        record_read(row, RECORD_OUTCOME, outcome);
        bool fits = matches(filter, outcome);
        TRY(fits ? check_numbers(outcome, error) : STATUS_OK);
        to->found += fits ? 1 : 0;
    }
    to->more = to->found < filter->limit;
    return STATUS_OK;
}

/* Looks at the next few: `chunk` of them, if there are so many. */
static enum status read_chunk(struct db *db, struct search *search, uint32_t chunk,
                              struct findings *to, struct error *error)
{
    uint32_t looked = 0;
    enum status status = STATUS_OK;
    struct query rows = outcomes_after(db, search, to->after, chunk);

    while (status == STATUS_OK && to->more && query_row(&rows)) {
        status = look_at(&rows, search, to, &looked, error);
    }
    search->looks_left -= looked < search->looks_left ? looked : search->looks_left;
    to->more &= looked == chunk;
    if (to->more && search->looks_left == 0) {
        to->stopped_at = to->after;
        to->more = false;
    }
    enum status ended = query_end(&rows, status == STATUS_OK ? error : NULL);
    return status == STATUS_OK ? ended : status;
}

/* As many as are asked for; where some are left out, more, so that a search has few steps. */
static uint32_t chunk_of(const struct search *search, const struct findings *findings)
{
    uint32_t chunk = findings->after == search->filter->after_id ? search->filter->limit
                                                                 : STATEMENT_OUTCOMES_CHUNK;
    chunk = chunk < STATEMENT_OUTCOMES_CHUNK ? chunk : STATEMENT_OUTCOMES_CHUNK;
    return chunk < search->looks_left ? chunk : search->looks_left;
}

/* *next: where a search that has looked at enough goes on; 0: at the end, or the page is full. */
static enum status read_outcomes(struct db *db, struct search *search, struct outcome *out,
                                 uint32_t *count, int64_t *next, struct error *error)
{
    struct findings findings = {.out = out, .after = search->filter->after_id};
    findings.more = search->filter->limit > 0;
    TRY(search_begin(db, search, error));

    while (findings.more) {
        TRY(read_chunk(db, search, chunk_of(search, &findings), &findings, error));
    }
    *count = findings.found;
    *next = findings.stopped_at;
    return STATUS_OK;
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
    enum status status = sql_store_read_begin(base, &db, error);
    if (status == STATUS_OK) {
        status = read_outcomes(db, search, out, count, next, error);
        /* Who reads on from an id must not have seen one that a crash then gives to another. */
        if (status == STATUS_OK && *count > 0) {
            status = db_durable(db, error);
        }
        sql_store_read_end(sql_store_of(base), db);
    }
    return status;
}

enum status sql_read_outcomes(struct store *base, const struct store_outcome_filter *filter,
                              struct outcome *out, uint32_t *count, struct error *error)
{
    int64_t next = 0;
    struct search search = {.filter = filter, .looks_left = UINT32_MAX};
    return search_outcomes(base, &search, out, count, &next, error);
}

enum status look_scenarios_page(struct store *base, const char *suite_id, int64_t *after,
                                store_scenario_visit *visit, void *context, struct error *error)
{
    struct db *db;
    int64_t suite = 0;
    int64_t next = 0;
    struct sql_store *store = sql_store_of(base);
    TRY(sql_store_read_begin(base, &db, error));
    enum status status =
        suite_id != NULL ? record_find_suite(db, suite_id, &suite, error) : STATUS_OK;
    if (status == STATUS_OK) {
        char id[LIMIT_ID_BYTES];
        struct query query = query_begin(db, STATEMENT_SCENARIO_IDS);
        query_int(&query, *after);
        query_int(&query, suite);
        while (status == STATUS_OK && query_row(&query)) {
            query_column_text(&query, 0, id, sizeof id);
            next = query_column_int(&query, 1);
            status = id[0] != '\0' ? visit(context, id, error) : STATUS_OK;
        }
        enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
        status = status == STATUS_OK ? ended : status;
    }
    sql_store_read_end(store, db);
    if (status == STATUS_OK) {
        *after = next;
    }
    return status;
}

enum status look_outcomes_page(struct store *base, const struct store_outcome_filter *filter,
                               struct outcome *out, uint32_t *count, int64_t *next,
                               struct error *error)
{
    struct search search = {.filter = filter, .looks_left = PAGE_LOOKS_MAX};
    return search_outcomes(base, &search, out, count, next, error);
}

/* ---- jobs ---- */

enum status sql_read_job(struct store *base, int64_t job_id, struct store_job *out,
                         struct error *error)
{
    struct query query;
    struct store_job job;
    TRY(sql_read_begin(base, STATEMENT_JOB_GET, &query, error));
    query_int(&query, job_id);
    bool found = query_row(&query);
    if (found) {
        memset(&job, 0, sizeof job);
        record_job_read(&query, &job);
    }
    TRY(sql_read_end(base, &query, error));
    if (!found) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no job %" PRId64, job_id);
    }
    *out = job;
    return STATUS_OK;
}

static enum status read_partials(struct db *db, int64_t job_id, struct outcome *out, uint32_t max,
                                 uint32_t *count, struct error *error)
{
    struct job_spec spec; /* its digest is part of each outcome's */
    uint32_t found = 0;
    bool known = false;
    enum status status = STATUS_OK;
    TRY(record_spec_get(db, job_id, &spec, &known, error));
    if (!known) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no job %" PRId64, job_id);
    }
    struct query query = query_begin(db, STATEMENT_PARTIALS_OF_JOB);
    query_int(&query, job_id);
    query_int(&query, max);
    while (status == STATUS_OK && found < max && query_row(&query)) {
        struct error why;
        status = record_partial_read(&query, &spec, &out[found], &why);
        found += status == STATUS_OK;
        if (status == STATUS_STORE) { /* a check tells of it; its rollout is driven anew */
            status = STATUS_OK;
        } else if (status != STATUS_OK) {
            status = error_set(error, status, "%s", why.text);
        }
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    if (status == STATUS_OK && ended == STATUS_OK) {
        *count = found;
    }
    return status == STATUS_OK ? ended : status;
}

enum status sql_read_partials(struct store *base, int64_t job_id, struct outcome *out, uint32_t max,
                              uint32_t *count, struct error *error)
{
    struct db *db;
    struct sql_store *store = sql_store_of(base);
    enum status status = sql_store_read_begin(base, &db, error);

    if (status == STATUS_OK) {
        status = read_partials(db, job_id, out, max, count, error);
        sql_store_read_end(store, db);
    }
    return status;
}

/* Jobs of a suite in a state. */
static enum status read_jobs(struct store *base, const char *suite_id, enum job_state state,
                             int64_t after_id, struct store_job *out, uint32_t max, uint32_t *count,
                             struct error *error)
{
    struct db *db;
    int64_t suite = 0;
    /* There are indexes of all but those that have their answers. */
    enum statement statement = state == JOB_DEAD        ? STATEMENT_DEAD_JOBS
                               : state == JOB_CANCELLED ? STATEMENT_CANCELLED_JOBS
                               : state <= JOB_LEASED    ? STATEMENT_JOBS_OPEN_IN
                                                        : STATEMENT_JOBS_IN_STATE;
    struct sql_store *store = sql_store_of(base);
    TRY(sql_store_read_begin(base, &db, error));
    enum status status = record_find_suite(db, suite_id, &suite, error);
    if (status == STATUS_OK) {
        struct query query = query_begin(db, statement);
        uint32_t found = 0;
        query_int(&query, suite);
        query_int(&query, after_id);
        query_int(&query, max);
        if (statement == STATEMENT_JOBS_OPEN_IN || statement == STATEMENT_JOBS_IN_STATE) {
            query_int(&query, state);
        }
        while (found < max && query_row(&query)) {
            memset(&out[found], 0, sizeof out[found]);
            record_job_read(&query, &out[found++]);
        }
        status = query_end(&query, error);
        if (status == STATUS_OK) {
            *count = found;
        }
    }
    sql_store_read_end(store, db);
    return status;
}

enum status sql_read_dead_jobs(struct store *base, const char *suite_id, int64_t after_id,
                               struct store_job *out, uint32_t max, uint32_t *count,
                               struct error *error)
{
    return read_jobs(base, suite_id, JOB_DEAD, after_id, out, max, count, error);
}

enum status sql_read_jobs_in_state(struct store *base, const char *suite_id, const char *state,
                                   int64_t after_id, struct store_job *out, uint32_t max,
                                   uint32_t *count, struct error *error)
{
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (state != NULL && strcmp(state, job_state_names[i]) == 0) {
            return read_jobs(base, suite_id, (enum job_state)i, after_id, out, max, count, error);
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "jobs of suite %s: state: expected queued, leased, done, flagged, dead or "
                     "cancelled, found \"%.40s\"",
                     suite_id, state != NULL ? state : "");
}
