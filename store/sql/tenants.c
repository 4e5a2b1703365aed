/*
 * Tenants in SQL. See tenants.h.
 *
 * What a tenant has queued is the sum of its suites' counters; what it has spent is kept by the
 * day, in the transactions that book it. So a submission looks at a few rows of its own tenant.
 */
#include "store/sql/tenants.h"

#include "base/check.h"
#include "base/units.h"
#include "store/sql/models.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS_PER_DAY = 86400, SETTINGS = 7 };

int64_t tenants_day(const struct clock *clock)
{
    return clock_wall_ns(clock) / NS_PER_S / SECONDS_PER_DAY;
}

/* The first day of the month of a day. */
static int64_t month_begin(int64_t day)
{
    time_t time = (time_t)(day * SECONDS_PER_DAY);
    struct tm utc;
    return gmtime_r(&time, &utc) != NULL ? day - (utc.tm_mday - 1) : day;
}

/* Members behind the name are the settings, in the order of enum tenant_setting. */
static int64_t setting_of(const struct tenant *tenant, uint32_t index)
{
    return *(const int64_t *)((const char *)tenant + tenant_fields.fields[1 + index].offset);
}

/* Writes those that are named. */
static enum status write_settings(struct db *db, const struct tenant *tenant, uint32_t settings,
                                  struct error *error)
{
    struct query query = query_begin(db, STATEMENT_TENANT_SET);

    query_text(&query, tenant->name);
    for (uint32_t i = 0; i < SETTINGS; i++) {
        if ((settings >> i & 1) != 0) {
            query_int(&query, setting_of(tenant, i));
        } else {
            query_null(&query);
        }
    }
    return query_run(&query, error);
}

/* The number of the tenant with that name, made where it is new. */
static enum status find_tenant(struct db *db, const char *name, int64_t *id, struct error *error)
{
    struct tenant tenant = {.weight = 0};
    if (strlen(name) >= sizeof tenant.name) { /* cut, it would be another one's */
        return error_set(error, STATUS_LIMIT,
                         "tenant \"%.80s..\": expected a name of at most %zu bytes, found %zu",
                         name, sizeof tenant.name - 1, strlen(name));
    }
    TRY(record_find(db, STATEMENT_TENANT_FIND, name, id, error));
    if (*id != 0) {
        return STATUS_OK;
    }
    snprintf(tenant.name, sizeof tenant.name, "%s", name);
    TRY(tenant_check(&tenant, 0, error));
    TRY(write_settings(db, &tenant, 0, error));
    return record_find(db, STATEMENT_TENANT_FIND, name, id, error);
}

/* ---- suites ---- */

/* Whoever submits speaks for the suite's tenant. */
static enum status check_asked(const struct tenants_suite *suite, struct error *error)
{
    if (suite->asked == NULL || strcmp(suite->asked, suite->name) == 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_MISMATCH, "suite \"%s\" is %s%s%s, and this submission %s%s%s",
                     suite->suite_id, suite->name[0] != '\0' ? "tenant \"" : "nobody's",
                     suite->name, suite->name[0] != '\0' ? "\"'s" : "",
                     suite->asked[0] != '\0' ? "tenant \"" : "nobody's", suite->asked,
                     suite->asked[0] != '\0' ? "\"'s" : "");
}

static enum status insert_suite(struct db *db, const struct clock *clock,
                                struct tenants_suite *suite, int64_t *id, struct error *error)
{
    int64_t tenant = 0;
    if (suite->asked != NULL && suite->asked[0] != '\0') {
        TRY(find_tenant(db, suite->asked, &tenant, error));
        snprintf(suite->name, sizeof suite->name, "%s", suite->asked);
    }
    struct digest digest;
    int64_t submitted_s = clock_wall_ns(clock) / NS_PER_S;
    digest_suite(suite->suite_id, suite->name, submitted_s, &digest);
    struct query insert = query_begin(db, STATEMENT_SUITE_INSERT);
    query_text(&insert, suite->suite_id);
    query_int(&insert, suite->weight);
    query_int(&insert, submitted_s);
    query_int_or_null(&insert, tenant);
    query_blob(&insert, digest.bytes, sizeof digest.bytes);
    query_int(&insert, suite->of_class != SUITE_CLASS_SAME ? suite->of_class : SUITE_REGRESSION);
    enum status status = query_run(&insert, error);
    *id = db_last_id(db);
    return status;
}

enum status tenants_suite(struct db *db, const struct clock *clock, struct tenants_suite *suite,
                          int64_t *id, struct error *error)
{
    int64_t weight = 0;
    enum suite_class was = SUITE_REGRESSION;
    struct query find = query_begin(db, STATEMENT_SUITE_FIND);

    *id = 0;
    suite->name[0] = '\0';
    suite->budget_uusd = 0;
    query_text(&find, suite->suite_id);
    if (query_row(&find)) {
        *id = query_column_int(&find, 0);
        weight = query_column_int(&find, 1);
        if (!query_column_is_null(&find, 2)) {
            query_column_text(&find, 3, suite->name, sizeof suite->name);
        }
        suite->budget_uusd = query_column_int(&find, 4);
        was = (enum suite_class)query_column_int(&find, 5);
    }
    TRY(query_end(&find, error));
    if (*id == 0) {
        return insert_suite(db, clock, suite, id, error);
    }
    TRY(check_asked(suite, error));
    enum suite_class of_class = suite->of_class != SUITE_CLASS_SAME ? suite->of_class : was;
    if (weight == (int64_t)suite->weight && of_class == was) {
        return STATUS_OK;
    }
    struct query update = query_begin(db, STATEMENT_SUITE_WEIGHT);
    query_int(&update, *id);
    query_int(&update, suite->weight);
    query_int(&update, of_class);
    return query_run(&update, error);
}

enum { KNOWN_CHUNK = 16 }; /* jobs that are read at once */

/* A job that a budget cancelled, never claimed, under a key that some suite has a result of. */
struct cancelled_job {
    int64_t id;
    int64_t pool;
    int64_t ticks;
    bool audit;
    struct job_spec spec;
};

static enum status read_cancelled(struct db *db, int64_t suite, int64_t after,
                                  struct cancelled_job jobs[KNOWN_CHUNK], uint32_t *count,
                                  struct error *error)
{
    struct query query = query_begin(db, STATEMENT_BUDGET_KNOWN);

    query_int(&query, suite);
    query_int(&query, after);
    query_int(&query, KNOWN_CHUNK);
    *count = 0;
    while (*count < KNOWN_CHUNK && query_row(&query)) {
        struct cancelled_job *job = &jobs[(*count)++];
        job->id = query_take_int(&query);
        job->pool = query_take_int(&query);
        job->ticks = query_take_int(&query);
        job->audit = query_take_int(&query) != 0;
        record_read(&query, RECORD_SPEC, &job->spec);
    }
    return query_end(&query, error);
}

/* A result that answers the job as it would be claimed now: not where a freeze or a change of
 * version has given its question to another model since. */
static enum status find_answer(struct sql_store *store, struct db *db, const struct job_spec *spec,
                               int64_t *source, struct error *error)
{
    struct model_version version;
    struct job_spec now = *spec;
    bool found = false;
    int64_t freeze = 0;
    *source = 0;
    TRY(freezes_find(store, spec, &freeze, error));
    TRY(spec->follows ? models_answering(db, spec->tier, spec, &version, &found, error)
                      : STATUS_OK);
    bool moves = found && model_job_move(&version, &now);
    return freeze != 0 || moves ? STATUS_OK : question_known(store, db, spec, source, error);
}

static enum status take_one(struct tally *tally, int64_t suite, const struct cancelled_job *job,
                            int64_t source, struct error *error)
{
    const struct tally_part part = {
        .suite = suite, .pool = job->pool, .tier = job->spec.tier, .ticks = -job->ticks};
    struct query take = query_begin(tally->db, STATEMENT_BUDGET_TAKE);
    query_int(&take, job->id);
    query_int(&take, source);
    TRY(query_run(&take, error));
    TRY(question_take(tally, suite, job->id, source, job->audit ? LEDGER_AUDIT : LEDGER_RESULT,
                      error));
    TRY(tally_move(tally, suite, job->pool, JOB_CANCELLED, JOB_DONE, error));
    return tally_progress(tally, &part, error);
}

/* A budget paid for the drives of its suite; what others have driven since costs nothing. */
static enum status take_known(struct sql_store *store, struct tally *tally, int64_t suite,
                              struct error *error)
{
    struct cancelled_job *jobs = malloc(KNOWN_CHUNK * sizeof *jobs);
    enum status status = memory_check(jobs, error, "budget: out of memory for cancelled jobs");
    uint32_t count = KNOWN_CHUNK;
    int64_t after = 0;

    while (status == STATUS_OK && count == KNOWN_CHUNK) {
        status = read_cancelled(tally->db, suite, after, jobs, &count, error);
        for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
            int64_t source = 0;
            after = jobs[i].id;
            status = find_answer(store, tally->db, &jobs[i].spec, &source, error);
            if (source != 0) {
                THEN(status, take_one(tally, suite, &jobs[i], source, error));
            }
        }
    }
    free(jobs);
    return status;
}

enum status tenants_budget(struct sql_store *store, struct tally *tally, int64_t id,
                           const struct tenants_suite *suite, int64_t *queued, struct error *error)
{
    bool spent = true;
    *queued = 0;
    if (suite->asked_uusd > 0 && suite->asked_uusd != suite->budget_uusd) {
        TRY(tally_budget_set(tally, id, suite->asked_uusd, &spent, error));
        TRY(take_known(store, tally, id, error));
        TRY(spent ? STATUS_OK : tally_budget_resume(tally, id, queued, error));
    }
    store->made_ready |= *queued > 0;
    bool any = suite->asked_uusd > 0 || suite->budget_uusd > 0;
    return any ? tally_budget(tally, id, error) : STATUS_OK;
}

enum status tenants_spend(const struct tally *tally, const struct tally_entry *entry,
                          struct error *error)
{
    if (entry->kind == LEDGER_SHADOW || entry->no_tenant) {
        return STATUS_OK;
    }
    struct query query = query_begin(tally->db, STATEMENT_TENANT_SPEND);
    query_int(&query, entry->suite);
    query_int(&query, tally->day);
    query_int(&query, entry->totals.cost_uusd);
    return query_send(&query, error);
}

enum status tenants_units(struct db *db, int64_t tenant, bool ended, int64_t units,
                          struct error *error)
{
    struct query query = query_begin(db, STATEMENT_TENANT_UNITS);
    query_int(&query, tenant);
    query_int(&query, ended ? 1 : 0);
    query_int(&query, units);
    return query_send(&query, error);
}

enum status tenants_hold(struct db *db, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_TENANT_LIMITED);
    while (query_row(&query)) {
    }
    return query_end(&query, error);
}

enum status tenants_flush(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->tenant_count * 2 && status == STATUS_OK; i++) {
        const struct tally_tenant *tenant = &tally->tenants[i / 2];
        if (tenant->units[i % 2] != 0) {
            status =
                tenants_units(tally->db, tenant->tenant, i % 2 == 1, tenant->units[i % 2], error);
        }
    }
    tally->tenant_count = 0;
    return status;
}

enum status tenants_count(struct tally *tally, int64_t tenant, bool ended, int64_t units,
                          struct error *error)
{
    uint32_t at = 0;
    if (tenant == 0) {
        return STATUS_OK;
    }
    while (at < tally->tenant_count && tally->tenants[at].tenant != tenant) {
        at++;
    }
    if (at == TALLY_TENANTS) {
        TRY(tenants_flush(tally, error));
        at = 0;
    }
    if (at == tally->tenant_count) {
        tally->tenants[tally->tenant_count++] = (struct tally_tenant){.tenant = tenant};
    }
    tally->tenants[at].units[ended ? 1 : 0] += units;
    return STATUS_OK;
}

enum status tenants_lease_end(struct sql_store *store, struct tally *tally, int64_t tenant,
                              const struct job_spec *spec, struct error *error)
{
    store->made_ready |= store->held && tenant != 0;
    store->held &= tenant == 0;
    return tenants_count(tally, tenant, true, turns_cost(spec->tier, spec->rollout_count), error);
}

/* ---- looking ---- */

static struct query page_begin(struct db *db, const struct clock *clock, enum statement statement,
                               const char *name)
{
    int64_t day = tenants_day(clock);
    struct query query = query_begin(db, statement);
    query_text(&query, name);
    query_int(&query, day);
    query_int(&query, month_begin(day));
    return query;
}

/* The tenant as it stands; version 0: there is none of that name. */
static enum status read_one(struct db *db, const struct clock *clock, const char *name,
                            struct tenant *out, struct error *error)
{
    struct query query = page_begin(db, clock, STATEMENT_TENANT_ONE, name);

    memset(out, 0, sizeof *out);
    if (query_row(&query)) {
        record_read(&query, RECORD_TENANT, out);
    }
    return query_end(&query, error);
}

struct set_call {
    const struct clock *clock;
    const struct tenant *tenant;
    uint32_t settings;
};

/* A change that is repeated has been made already, and its version is the past. */
static bool is_made(const struct set_call *call, const struct tenant *now)
{
    bool made = now->version > 0;

    for (uint32_t i = 0; i < SETTINGS; i++) {
        made = made && ((call->settings >> i & 1) == 0 ||
                        setting_of(call->tenant, i) == setting_of(now, i));
    }
    return made;
}

static enum status set_op(struct db *db, void *context, struct error *error)
{
    const struct set_call *call = context;
    struct tenant now;

    if ((call->settings & TENANT_VERSION) != 0) {
        TRY(read_one(db, call->clock, call->tenant->name, &now, error));
        if (now.version != call->tenant->version) {
            return is_made(call, &now)
                       ? STATUS_OK
                       : error_set(error, STATUS_CONFLICT,
                                   "tenant \"%s\": expected version %" PRId64 ", found %" PRId64
                                   ": somebody has set it since",
                                   call->tenant->name, call->tenant->version, now.version);
        }
    }
    return write_settings(db, call->tenant, call->settings, error);
}

enum status tenants_set(struct store *base, const struct tenant *tenant, uint32_t settings,
                        struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    struct set_call call = {.clock = store->clock, .tenant = tenant, .settings = settings};
    TRY(tenant_check(tenant, settings, error));
    return sql_store_write(store, set_op, &call, error);
}

enum status tenants_page(struct store *base, const char *after, struct tenant *out, uint32_t max,
                         uint32_t *count, struct error *error)
{
    struct db *db;
    struct sql_store *store = sql_store_of(base);
    TRY(sql_store_read_begin(base, &db, error));
    struct query query = page_begin(db, store->clock, STATEMENT_TENANT_PAGE, after);

    query_int(&query, max);
    uint32_t found = record_read_rows(&query, RECORD_TENANT, sizeof *out, out, max);
    return sql_read_rows_end(base, &query, found, count, error);
}

enum status tenants_allow(struct db *db, const struct clock *clock,
                          const struct tenants_suite *suite, int64_t jobs_new, struct error *error)
{
    struct tenant tenant;
    if (suite->name[0] == '\0') {
        return STATUS_OK;
    }
    TRY(read_one(db, clock, suite->name, &tenant, error));
    return tenant_quota_check(&tenant, jobs_new, error);
}

enum status tenants_bring(struct db *db, const struct clock *clock, const char *name, size_t bytes,
                          int64_t *id, struct error *error)
{
    struct tenant tenant = {.weight = 0};
    struct tally tally;
    TRY(find_tenant(db, name, id, error));
    tally_init(&tally, db, clock);
    TRY(tally_books(&tally, error));
    struct query add = query_begin(db, STATEMENT_TENANT_BRING);
    query_int(&add, *id);
    query_int(&add, (int64_t)bytes);
    TRY(query_run(&add, error));
    struct query query = query_begin(db, STATEMENT_TENANT_BROUGHT);
    query_int(&query, *id);
    if (query_row(&query)) {
        tenant.scenario_bytes_max = query_column_int(&query, 0);
        tenant.scenario_bytes = query_column_int(&query, 1);
    }
    TRY(query_end(&query, error));
    snprintf(tenant.name, sizeof tenant.name, "%s", name);
    return tenant_scenario_check(&tenant, (int64_t)bytes, error);
}

enum status tenants_of_suite(struct store *base, const char *suite_id, char name[LIMIT_ID_BYTES],
                             struct error *error)
{
    struct query query;
    char found[LIMIT_ID_BYTES] = "";
    TRY(sql_read_begin(base, STATEMENT_SUITE_FIND, &query, error));
    query_text(&query, suite_id);
    bool there = query_row(&query);
    if (there && !query_column_is_null(&query, 2)) {
        query_column_text(&query, 3, found, sizeof found);
    }
    TRY(sql_read_end(base, &query, error));
    if (!there) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no suite \"%s\"", suite_id);
    }
    memcpy(name, found, sizeof found);
    return STATUS_OK;
}

enum status tenants_sessions(struct store *base, const char *name, int64_t *most,
                             struct error *error)
{
    struct query query;
    int64_t found = 0;
    TRY(sql_read_begin(base, STATEMENT_TENANT_SESSIONS, &query, error));
    query_text(&query, name);
    if (query_row(&query)) {
        found = query_column_int(&query, 0);
    }
    TRY(sql_read_end(base, &query, error));
    *most = found;
    return STATUS_OK;
}
