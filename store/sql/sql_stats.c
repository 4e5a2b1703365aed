/*
 * Figures of the embedded store for a server: counts for its metrics and its dashboard, and
 * whose worker a worker is; and the log of who ordered what of it.
 *
 * Jobs are counted as they change state (pool_jobs), so asking costs little.
 */
#include "base/check.h"
#include "base/units.h"
#include "schemas/scenario.h"
#include "store/api/progress.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_LOOKS_MAX = 10000 }; /* outcomes behind one page of slices: some 50 ms */

struct owner_call {
    struct sql_store *store;
    const char *worker_id;
    struct store_worker_owner *out;
};

/* A worker that was heard of, but never claimed, is known to the leases alone. */
static enum status find_owner_op(struct db *db, void *context, struct error *error)
{
    struct owner_call *call = context;
    const struct lease *lease = leases_find(&call->store->leases, call->worker_id);
    (void)db;
    (void)error;
    if (lease != NULL) {
        call->out->holder = lease->holder;
    }
    return STATUS_OK;
}

enum status stats_worker_owner(struct store *base, const char *worker_id,
                               struct store_worker_owner *out, struct error *error)
{
    struct query query;
    struct store_worker_owner found = {.pool = ""};
    struct sql_store *store = sql_store_of(base);
    TRY(sql_read_begin(base, STATEMENT_WORKER_OWNER, &query, error));
    query_text(&query, worker_id);
    if (query_row(&query)) {
        query_column_text(&query, 0, found.pool, sizeof found.pool);
        lease_holder_read(&query, 1, &found.holder);
    }
    enum status status = sql_read_end(base, &query, error);
    if (status == STATUS_OK && found.pool[0] == '\0') {
        struct owner_call call = {.store = store, .worker_id = worker_id, .out = &found};
        status = sql_store_write(store, find_owner_op, &call, error);
    }
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}

enum status stats_commits_lost(struct store *base, int64_t *count, struct error *error)
{
    struct query query;
    int64_t lost = 0;
    TRY(sql_read_begin(base, STATEMENT_LOG_LOST, &query, error));
    if (query_row(&query)) {
        lost = query_column_int(&query, 0);
    }
    TRY(sql_read_end(base, &query, error));
    *count = lost;
    return STATUS_OK;
}

/* The entry of a pool; pools beyond the table share its last one. */
static struct store_pool_jobs *pool_entry(struct store_stats *stats, const char *pool)
{
    uint32_t count = stats->pool_count;
    if (count > 0 && strcmp(stats->pools[count - 1].pool, pool) == 0) {
        return &stats->pools[count - 1];
    }
    if (count == STORE_STATS_POOLS_MAX) {
        struct store_pool_jobs *last = &stats->pools[count - 1];
        memcpy(last->pool, "other", sizeof "other");
        return last;
    }
    struct store_pool_jobs *entry = &stats->pools[stats->pool_count++];
    memset(entry, 0, sizeof *entry);
    memcpy(entry->pool, pool, strlen(pool) + 1); /* as long as the column is read */
    return entry;
}

static enum status count_jobs(struct store *base, struct store_stats *out, struct error *error)
{
    struct query query;
    char last[LIMIT_ID_BYTES] = "";
    TRY(sql_read_begin(base, STATEMENT_POOL_JOBS, &query, error));
    while (query_row(&query)) {
        char pool[LIMIT_ID_BYTES];
        int64_t state = query_column_int(&query, 1);
        query_column_text(&query, 0, pool, sizeof pool);
        struct store_pool_jobs *entry = pool_entry(out, pool);
        if (state >= 0 && state < JOB_STATE_COUNT) {
            entry->jobs[state] += query_column_int(&query, 2);
        }
        if (strcmp(pool, last) != 0) { /* once for a pool's rows */
            entry->handed_back += query_column_int(&query, 3);
            memcpy(last, pool, sizeof last);
        }
    }
    return sql_read_end(base, &query, error);
}

/* Leases belong to the writer thread. */
static enum status count_workers_op(struct db *db, void *context, struct error *error)
{
    struct sql_store *store = ((void **)context)[0];
    int64_t *count = ((void **)context)[1];
    (void)db;
    (void)error;
    *count = (int64_t)store->leases.count;
    return STATUS_OK;
}

static enum status read_pages(struct store *base, struct store_stats *out, struct error *error)
{
    struct query query;
    uint32_t found = 0;
    TRY(sql_read_begin(base, STATEMENT_PAGES_USED, &query, error));
    query_int(&query, STORE_DEMAND_ROLLOUTS);
    query_int(&query, STORE_STATS_PAGES_MAX);
    while (found < STORE_STATS_PAGES_MAX && query_row(&query)) {
        struct store_pool_pages *row = &out->pages[found];
        query_column_text(&query, 0, row->pool, sizeof row->pool);
        int64_t tier = query_column_int(&query, 1);
        row->used_percent = query_column_int(&query, 2);
        row->tier = tier >= 0 && tier < TIER_COUNT ? (enum tier)tier : TIER_OBJECT;
        found += row->tier == (enum tier)tier; /* another one was edited in */
    }
    return sql_read_rows_end(base, &query, found, &out->pages_count, error);
}

enum status stats_read(struct store *base, struct store_stats *out, struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    memset(out, 0, sizeof *out);
    void *context[] = {store, &out->workers_alive};
    TRY(sql_store_write(store, count_workers_op, context, error));
    TRY(count_jobs(base, out, error));
    TRY(read_pages(base, out, error));
    group_commit_stats(store->group, out);
    return STATUS_OK;
}

/* ---- how far a suite is ---- */

enum { PARTS_MAX = 64 }; /* pools times tiers of one suite; further ones are not looked at */

static enum status read_planners(struct db *db, int64_t suite, struct store_suite_status *out,
                                 struct error *error)
{
    struct query query = query_begin(db, STATEMENT_PLANNERS_OF_SUITE);
    query_int(&query, suite);
    out->planner_count = 0;
    while (query_row(&query)) {
        if (out->planner_count == 0) {
            query_column_text(&query, 0, out->planner, sizeof out->planner);
        }
        out->planner_count++;
    }
    TRY(query_end(&query, error));
    query = query_begin(db, STATEMENT_CONTEXT_OF_SUITE);
    query_int(&query, suite);
    if (query_row(&query)) {
        query_column_text(&query, 0, out->planner_hash, sizeof out->planner_hash);
        query_column_text(&query, 1, out->rig, sizeof out->rig);
    }
    if (out->planner_count != 1) {
        out->planner_hash[0] = '\0';
    }
    return query_end(&query, error);
}

/* The pace that a part had in the newest other suite. */
static enum status read_elsewhere(struct db *db, int64_t suite, struct progress_part *part,
                                  struct error *error)
{
    struct query query = query_begin(db, STATEMENT_PROGRESS_ELSEWHERE);
    query_int(&query, part->pool);
    query_int(&query, (int64_t)part->tier);
    query_int(&query, suite);
    if (query_row(&query)) {
        part->other_ticks = query_column_int(&query, 0);
        part->other_wall_ns = query_column_int(&query, 1);
    }
    return query_end(&query, error);
}

/* Progress of the jobs that are being driven. */
static enum status read_running(struct db *db, int64_t suite, int64_t now_ns,
                                struct progress_part *parts, uint32_t count,
                                struct store_suite_status *out, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_RUNNING_OF_SUITE);
    query_int(&query, suite);
    while (query_row(&query)) {
        int64_t pool = query_take_int(&query);
        enum tier tier = (enum tier)query_take_int(&query);
        for (uint32_t i = 0; i < count; i++) {
            if (parts[i].pool == pool && parts[i].tier == tier) {
                int64_t ticks = query_take_int(&query);
                parts[i].ticks_running = ticks < parts[i].ticks_open ? ticks : parts[i].ticks_open;
                parts[i].running_ns = now_ns - query_take_int(&query);
                out->ticks_running += parts[i].ticks_running;
                break;
            }
        }
    }
    return query_end(&query, error);
}

enum status stats_read_progress(const struct sql_store *store, struct db *db, int64_t suite,
                                struct store_suite_status *out, struct error *error)
{
    struct progress_part parts[PARTS_MAX];
    uint32_t count = 0;
    enum status status = read_planners(db, suite, out, error);
    struct query query = query_begin(db, STATEMENT_PROGRESS_OF_SUITE);
    query_int(&query, suite);
    while (status == STATUS_OK && count < PARTS_MAX && query_row(&query)) {
        struct progress_part *part = &parts[count++];
        memset(part, 0, sizeof *part);
        part->pool = query_take_int(&query);
        part->tier = (enum tier)query_take_int(&query);
        part->jobs_open = query_take_int(&query);
        part->ticks = query_take_int(&query);
        part->ticks_open = query_take_int(&query);
        part->wall_ns = query_take_int(&query);
        out->ticks_planned += part->ticks;
        out->ticks_ended += part->ticks - part->ticks_open;
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    THEN(status, ended);
    if (out->jobs[JOB_LEASED] > 0) {
        THEN(status, read_running(db, suite, claim_time_ns(store), parts, count, out, error));
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        bool begun = parts[i].ticks > parts[i].ticks_open && parts[i].wall_ns > 0;
        status = begun || parts[i].jobs_open == 0 ? STATUS_OK
                                                  : read_elsewhere(db, suite, &parts[i], error);
    }
    /* Jobs that no host starts have no end in sight. */
    bool stuck = out->unstarted_hosts > 0 && out->jobs[JOB_LEASED] == 0;
    out->eta_ms = stuck ? -1 : progress_eta_ms(parts, count);
    return status;
}

/* ---- the dashboard ---- */

enum status look_suites_page(struct store *base, const char *after, char (*ids)[LIMIT_ID_BYTES],
                             uint32_t max, uint32_t *count, struct error *error)
{
    struct query query;
    uint32_t found = 0;
    if (after[0] == '\0') {
        return sql_read_suites(base, ids, max, count, error);
    }
    TRY(sql_read_begin(base, STATEMENT_SUITES_OLDER, &query, error));
    query_text(&query, after);
    query_int(&query, max);
    while (found < max && query_row(&query)) {
        query_column_text(&query, 0, ids[found++], LIMIT_ID_BYTES);
    }
    return sql_read_rows_end(base, &query, found, count, error);
}

/* The place of a (planner, tier, kind, value), made where there is none; there is room for another.
 */
static struct store_slice *slice_entry(struct store_slice *slices, uint32_t *count,
                                       const char *planner, enum tier tier, uint32_t kind,
                                       const char *value)
{
    for (uint32_t i = 0; i < *count; i++) {
        struct store_slice *slice = &slices[i];
        if (slice->kind == kind && slice->tier == tier && strcmp(slice->value, value) == 0 &&
            strcmp(slice->planner, planner) == 0) {
            return slice;
        }
    }
    CHECK(*count < STORE_SLICES_MAX);
    struct store_slice *slice = &slices[(*count)++];
    memset(slice, 0, sizeof *slice);
    slice->kind = kind;
    slice->tier = tier;
    memcpy(slice->planner, planner, strlen(planner) + 1);
    memcpy(slice->value, value, strlen(value) + 1);
    return slice;
}

/* Slices that one outcome is counted in: a value of each kind, and all. */
enum { SLICES_A_ROW = SLICE_KIND_COUNT + 1 };

/* One row of SLICE_COLUMNS; there is room for SLICES_A_ROW more. */
static void count_slices(struct query *query, struct store_slice *slices, uint32_t *count)
{
    enum { AUDIT = 1, VERDICT, BRANCH, PLANNER, TIER, SLICES, OTHER = SLICES + SLICE_KIND_COUNT };
    char planner[LIMIT_SPEC_BYTES];
    char branch[LIMIT_ID_BYTES];
    int64_t verdict = query_column_int(query, VERDICT);
    int64_t tier = query_column_int(query, TIER);
    int64_t kind_of_job = query_column_int(query, AUDIT);
    bool audit = kind_of_job != LEDGER_RESULT;
    query_column_text(query, BRANCH, branch, sizeof branch);
    query_column_text(query, PLANNER, planner, sizeof planner);
    if (verdict < 0 || verdict >= VERDICT_COUNT || tier < 0 || tier >= TIER_COUNT) {
        return; /* the store was edited: `swerve check` says so */
    }
    bool paired = kind_of_job == LEDGER_AUDIT && verdict <= VERDICT_FAIL &&
                  !query_column_is_null(query, OTHER);
    for (uint32_t kind = 0; kind <= SLICE_KIND_COUNT; kind++) {
        char value[LIMIT_ID_BYTES] = "";
        if (kind < SLICE_KIND_COUNT) {
            query_column_text(query, SLICES + (int)kind, value, sizeof value);
        }
        bool has_none = kind < SLICE_KIND_COUNT && value[0] == '\0';
        struct store_slice *slice =
            has_none ? NULL : slice_entry(slices, count, planner, (enum tier)tier, kind, value);
        if (slice != NULL && !audit) {
            (branch[0] == '\0' ? slice->rollouts : slice->branches)[verdict]++;
        } else if (slice != NULL && paired) {
            slice->audited++;
            slice->agreed += query_column_int(query, OTHER) == verdict;
        }
    }
}

static enum status read_slices(struct db *db, const char *suite_id, int64_t after,
                               struct store_slice *out, uint32_t *count, int64_t *next,
                               struct error *error)
{
    int64_t suite = 0;
    int64_t last = 0;
    uint32_t looks = 0;
    uint32_t found = 0;
    TRY(record_find_suite(db, suite_id, &suite, error));
    struct query query = query_begin(db, STATEMENT_SLICES_OF_SUITE);
    query_int(&query, after);
    query_int(&query, suite);
    query_int(&query, SLICE_LOOKS_MAX);
    bool full = false;
    while (!full && query_row(&query)) {
        last = query_column_int(&query, 0);
        count_slices(&query, out, &found);
        looks++;
        full = found + SLICES_A_ROW > STORE_SLICES_MAX; /* the next one might not fit */
    }
    TRY(query_end(&query, error));
    *count = found;
    *next = full || looks == SLICE_LOOKS_MAX ? last : 0;
    return STATUS_OK;
}

enum status look_slices_page(struct store *base, const char *suite_id, int64_t after,
                             struct store_slice *out, uint32_t *count, int64_t *next,
                             struct error *error)
{
    struct db *db;
    TRY(sql_store_read_begin(base, &db, error));
    enum status status = read_slices(db, suite_id, after, out, count, next, error);
    sql_store_read_end(sql_store_of(base), db);
    return status;
}

/* The live workers whose names come next. */
struct workers_call {
    struct sql_store *store;
    const char *after;
    struct store_live_worker *out;
    uint32_t max;
    uint32_t count;
};

/* Keeps the `max` least names above `after`, in order. */
static enum status list_workers_op(struct db *db, void *context, struct error *error)
{
    struct workers_call *call = context;
    const struct leases *leases = &call->store->leases;
    (void)db;
    (void)error;
    for (size_t i = 0; i < leases->count; i++) {
        const char *name = leases->rows[i].worker_id;
        bool full = call->count == call->max;
        if (strcmp(name, call->after) <= 0 ||
            (full && (call->max == 0 || strcmp(name, call->out[call->max - 1].worker_id) > 0))) {
            continue;
        }
        uint32_t at = full ? call->max - 1 : call->count++;
        for (; at > 0 && strcmp(call->out[at - 1].worker_id, name) > 0; at--) {
            memcpy(call->out[at].worker_id, call->out[at - 1].worker_id, LIMIT_ID_BYTES);
        }
        memcpy(call->out[at].worker_id, name, LIMIT_ID_BYTES);
    }
    return STATUS_OK;
}

enum status stats_workers_page(struct store *base, const char *after, struct store_live_worker *out,
                               uint32_t max, uint32_t *count, struct error *error)
{
    struct db *db;
    struct sql_store *store = sql_store_of(base);
    struct workers_call call = {.store = store, .after = after, .out = out, .max = max};
    enum status status = STATUS_OK;
    memset(out, 0, max * sizeof *out);
    TRY(sql_store_write(store, list_workers_op, &call, error));
    TRY(sql_store_read_begin(base, &db, error));
    for (uint32_t i = 0; i < call.count && status == STATUS_OK; i++) {
        struct query query = query_begin(db, STATEMENT_WORKER_LIVE);
        query_text(&query, out[i].worker_id);
        if (query_row(&query)) {
            query_take_text(&query, out[i].pool, sizeof out[i].pool);
            query_take_text(&query, out[i].device, sizeof out[i].device);
            query_take_text(&query, out[i].host, sizeof out[i].host);
            out[i].jobs = query_take_int(&query);
        }
        status = query_end(&query, error);
    }
    sql_store_read_end(store, db);
    if (status == STATUS_OK) {
        *count = call.count;
    }
    return status;
}

/* ---- what waits ---- */

/* Device time of one rollout per tick. */
struct tick_seen {
    uint32_t row;
    int64_t ns;
};

/* The row of a pool and tier, made where there is none; NULL: they are too many. */
static struct store_demand *demand_row(struct store_demand *rows, uint32_t max, uint32_t *count,
                                       const char *pool, int64_t tier)
{
    for (uint32_t i = 0; i < *count; i++) {
        if ((int64_t)rows[i].tier == tier && strcmp(rows[i].pool, pool) == 0) {
            return &rows[i];
        }
    }
    if (*count == max || tier < 0 || tier >= TIER_COUNT) {
        return NULL;
    }
    struct store_demand *row = &rows[(*count)++];
    memset(row, 0, sizeof *row);
    memcpy(row->pool, pool, strlen(pool) + 1); /* as long as the column is read */
    row->tier = (enum tier)tier;
    return row;
}

static enum status read_queues(struct db *db, int64_t now_s, struct store_demand *rows,
                               uint32_t max, uint32_t *count, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_DEMAND);
    query_int(&query, max);
    while (query_row(&query)) {
        char pool[LIMIT_ID_BYTES];
        query_column_text(&query, 0, pool, sizeof pool);
        struct store_demand *row = demand_row(rows, max, count, pool, query_column_int(&query, 1));
        if (row == NULL) {
            continue;
        }
        row->jobs_queued = query_column_int(&query, 2);
        row->jobs_leased = query_column_int(&query, 3);
        row->ticks_queued = query_column_int(&query, 4);
        int64_t since_s = query_column_is_null(&query, 5) ? now_s : query_column_int(&query, 5);
        /* 0: submitted before the store kept it; nobody knows. */
        row->age_ms = since_s > 0 && since_s < now_s ? (now_s - since_s) * 1000 : 0;
    }
    return query_end(&query, error);
}

static int by_row_and_ns(const void *a, const void *b)
{
    const struct tick_seen *left = a;
    const struct tick_seen *right = b;
    if (left->row != right->row) {
        return left->row < right->row ? -1 : 1;
    }
    return (left->ns > right->ns) - (left->ns < right->ns);
}

/* Each row's percentile, from what rollouts took: its own ones follow one another, in order. */
static void set_percentiles(struct store_demand *rows, const struct tick_seen *seen,
                            uint32_t seen_count)
{
    for (uint32_t first = 0; first < seen_count;) {
        struct store_demand *row = &rows[seen[first].row];
        uint32_t rollouts = (uint32_t)row->rollouts_seen;
        row->tick_p99_ns = seen[first + (rollouts * 99 + 99) / 100 - 1].ns;
        first += rollouts;
    }
}

static enum status read_ticks(struct db *db, struct store_demand *rows, uint32_t max,
                              uint32_t *count, struct error *error)
{
    int64_t ticks[STORE_DEMAND_ROWS_MAX] = {0};
    int64_t ns[STORE_DEMAND_ROWS_MAX] = {0};
    uint32_t seen_count = 0;
    struct tick_seen *seen = calloc(STORE_DEMAND_ROLLOUTS, sizeof *seen);
    TRY(memory_check(seen, error, "demand: out of memory"));
    struct query query = query_begin(db, STATEMENT_DEMAND_TICKS);
    query_int(&query, STORE_DEMAND_ROLLOUTS);
    while (seen_count < STORE_DEMAND_ROLLOUTS && query_row(&query)) {
        char pool[LIMIT_ID_BYTES];
        query_column_text(&query, 0, pool, sizeof pool);
        int64_t took_ns = query_column_int(&query, 2);
        int64_t own = query_column_int(&query, 3);
        const int64_t most = INT64_MAX / STORE_DEMAND_ROLLOUTS; /* sums of so many fit */
        struct store_demand *row =
            own > 0 && own < most && took_ns >= 0 && took_ns < most
                ? demand_row(rows, max, count, pool, query_column_int(&query, 1))
                : NULL;
        if (row == NULL) {
            continue; /* nothing of its own was driven, or the store was edited */
        }
        size_t at = (size_t)(row - rows);
        seen[seen_count++] = (struct tick_seen){(uint32_t)at, took_ns / own};
        row->rollouts_seen++;
        ticks[at] += own;
        ns[at] += took_ns;
    }
    enum status status = query_end(&query, error);
    for (uint32_t i = 0; i < *count && status == STATUS_OK; i++) {
        rows[i].tick_ns = ticks[i] > 0 ? ns[i] / ticks[i] : 0;
    }
    qsort(seen, seen_count, sizeof *seen, by_row_and_ns);
    if (status == STATUS_OK) {
        set_percentiles(rows, seen, seen_count);
    }
    free(seen);
    return status;
}

static enum status count_pool_workers(struct store *base, struct store_demand *rows, uint32_t count,
                                      struct error *error)
{
    enum { PAGE = 256 };
    char after[LIMIT_ID_BYTES] = "";
    uint32_t found = PAGE;
    enum status status = STATUS_OK;
    struct store_live_worker *page = calloc(PAGE, sizeof *page);
    TRY(memory_check(page, error, "demand: out of memory"));
    while (status == STATUS_OK && found == PAGE) {
        status = stats_workers_page(base, after, page, PAGE, &found, error);
        found = status == STATUS_OK ? found : 0;
        for (uint32_t i = 0; i < found * count; i++) {
            const struct store_live_worker *worker = &page[i / count];
            bool ours = strcmp(worker->pool, rows[i % count].pool) == 0;
            rows[i % count].workers_alive += ours;
            rows[i % count].workers_busy += ours && worker->jobs > 0;
        }
        if (found > 0) {
            memcpy(after, page[found - 1].worker_id, sizeof after);
        }
    }
    free(page);
    return status;
}

enum status stats_demand(struct store *base, struct store_demand *rows, uint32_t max,
                         uint32_t *count, struct error *error)
{
    struct db *db;
    struct sql_store *store = sql_store_of(base);
    uint32_t found = 0;
    max = max < STORE_DEMAND_ROWS_MAX ? max : STORE_DEMAND_ROWS_MAX;
    TRY(sql_store_read_begin(base, &db, error));
    enum status status =
        read_queues(db, clock_wall_ns(store->clock) / NS_PER_S, rows, max, &found, error);
    THEN(status, read_ticks(db, rows, max, &found, error));
    sql_store_read_end(store, db);
    THEN(status, count_pool_workers(base, rows, found, error));
    if (status == STATUS_OK) {
        *count = found;
    }
    return status;
}

/* ---- the audit log ---- */

struct audit_call {
    struct sql_store *store;
    struct store_audit *entry; /* of a beginning */
    int64_t id;                /* of an end */
    int64_t code;
};

static enum status audit_begin_op(struct db *db, void *context, struct error *error)
{
    struct audit_call *call = context;
    struct store_audit *entry = call->entry;
    struct query query = query_begin(db, STATEMENT_AUDIT_ADD);

    entry->at_s = clock_wall_ns(call->store->clock) / NS_PER_S;
    query_int(&query, entry->at_s);
    query_text(&query, entry->name);
    query_text(&query, entry->role);
    query_text(&query, entry->action);
    query_text(&query, entry->subject);
    TRY(query_run(&query, error));
    entry->id = db_last_id(db);
    struct query drop = query_begin(db, STATEMENT_AUDIT_DROP);
    query_int(&drop, entry->id - AUDIT_ROWS_MAX);
    return query_run(&drop, error);
}

static enum status audit_end_op(struct db *db, void *context, struct error *error)
{
    const struct audit_call *call = context;
    struct query query = query_begin(db, STATEMENT_AUDIT_END);

    query_int(&query, call->id);
    query_int(&query, call->code);
    return query_run(&query, error);
}

enum status audit_begin(struct store *base, struct store_audit *entry, struct error *error)
{
    struct audit_call call = {.store = sql_store_of(base), .entry = entry};
    return sql_store_write(call.store, audit_begin_op, &call, error);
}

enum status audit_end(struct store *base, int64_t id, int64_t code, struct error *error)
{
    struct audit_call call = {.store = sql_store_of(base), .id = id, .code = code};
    return sql_store_write(call.store, audit_end_op, &call, error);
}

void audit_row(struct query *query, struct store_audit *out)
{
    memset(out, 0, sizeof *out);
    out->id = query_take_int(query);
    out->at_s = query_take_int(query);
    query_take_text(query, out->name, sizeof out->name);
    query_take_text(query, out->role, sizeof out->role);
    query_take_text(query, out->action, sizeof out->action);
    query_take_text(query, out->subject, sizeof out->subject);
    out->code = query_take_int(query);
}

enum status audit_page(struct store *base, int64_t after_id, struct store_audit *out, uint32_t max,
                       uint32_t *count, struct error *error)
{
    struct query query;
    uint32_t found = 0;
    TRY(sql_read_begin(base, STATEMENT_AUDIT_PAGE, &query, error));

    query_int(&query, after_id);
    query_int(&query, max);
    while (found < max && query_row(&query)) {
        audit_row(&query, &out[found++]);
    }
    return sql_read_rows_end(base, &query, found, count, error);
}
