/*
 * Checks that take arithmetic: every outcome against its digest, what suites count of them, and
 * whether money adds up. One pass over each table, with a few numbers per suite.
 */
#include "base/array.h"
#include "base/check.h"
#include "base/units.h"
#include "store/check/check_internal.h"
#include "store/door/invariants.h"
#include "store/sql/ledger.h"
#include "store/sql/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts of a suite's outcomes as stored, and what they are found to be. */
enum {
    COUNT_PASS = 0, /* verdicts in the order of enum verdict */
    COUNT_FAIL,
    COUNT_PLANNER_ERROR,
    COUNT_FLAGGED,
    COUNT_INVALID,
    COUNT_AUDIT,
    COUNT_TICKS,
    COUNT_PREFIX_TICKS,
    COUNT_METRES,
    COUNT_DIGESTED,
    COUNTS
};

static const char *const count_names[COUNTS] = {
    "rollouts_pass",
    "rollouts_fail",
    "rollouts_planner_error",
    "rollouts_flagged",
    "rollouts_invalid",
    "rollouts_audit",
    "ticks",
    "prefix_ticks_saved",
    "metres_mm",
    "outcomes_digested",
};

struct suite_sum {
    int64_t id;
    char name[LIMIT_ID_BYTES];
    int64_t said[COUNTS];
    int64_t found[COUNTS];
    struct digest said_digest;
    struct digest found_digest;
};

struct suite_sums {
    struct suite_sum *rows; /* ascending id */
    size_t count;
};

static int compare_sums(const void *a, const void *b)
{
    int64_t left = ((const struct suite_sum *)a)->id;
    int64_t right = ((const struct suite_sum *)b)->id;
    return (left > right) - (left < right);
}

static struct suite_sum *sum_of(const struct suite_sums *sums, int64_t id)
{
    const struct suite_sum key = {.id = id};
    if (sums->count == 0) {
        return NULL;
    }
    return bsearch(&key, sums->rows, sums->count, sizeof key, compare_sums);
}

/* Takes the suite's own digest, its tenant's name and when it was submitted. *digested: a suite
 * with a digest came before. */
static void compare_suite(struct check *check, struct query *query, const struct suite_sum *sum,
                          bool *digested, struct digest *out)
{
    char tenant[LIMIT_ID_BYTES];
    char place[128];
    struct digest found;
    struct digest said;
    bool undigested = query_column_is_null(query, query->column);

    record_digest_take(query, &said);
    query_take_text(query, tenant, sizeof tenant);
    digest_suite(sum->name, tenant, query_take_int(query), &found);
    if (undigested && !*digested) { /* submitted before suites had digests */
        return;
    }
    *digested = true;
    digest_add(out, &said);
    if (memcmp(said.bytes, found.bytes, sizeof said.bytes) != 0) {
        snprintf(place, sizeof place, "suite %s", sum->name);
        check_fault(check, "suite digest", place,
                    "its name, tenant or time of submission is not what was stored");
    }
}

/* Adds the suite to the store's digest, and shows it to who asks. */
static enum status show_suite(struct check *check, const struct suite_sum *sum,
                              const struct digest *digest, struct error *error)
{
    struct store_check_suite suite = {.outcomes = sum->said[COUNT_DIGESTED], .digest = *digest};
    digest_add(&check->summary->digest, digest);
    memcpy(suite.name, sum->name, sizeof suite.name);
    return check->options->suite != NULL
               ? check->options->suite(check->options->context, &suite, error)
               : STATUS_OK;
}

static enum status read_suites(struct check *check, struct suite_sums *sums, struct error *error)
{
    struct query query = query_begin(check->db, STATEMENT_CHECK_SUITES);
    enum status status = STATUS_OK;
    bool digested = false;

    while (status == STATUS_OK && query_row(&query)) {
        status = array_room(&sums->rows, sums->count, sizeof *sums->rows, error);
        if (status != STATUS_OK) {
            break;
        }
        struct suite_sum *sum = &sums->rows[sums->count++];
        memset(sum, 0, sizeof *sum);
        sum->id = query_take_int(&query);
        query_take_text(&query, sum->name, sizeof sum->name);
        for (int i = 0; i < COUNTS; i++) {
            sum->said[i] = query_take_int(&query);
        }
        record_digest_take(&query, &sum->said_digest);
        struct digest whole = sum->said_digest;
        compare_suite(check, &query, sum, &digested, &whole);
        status = show_suite(check, sum, &whole, error);
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    check->summary->suites = (int64_t)sums->count;
    return status == STATUS_OK ? ended : status;
}

/* ---- outcomes ---- */

static void compare_digest(struct check *check, const struct query *query, int column,
                           const struct outcome *outcome, const struct job_spec *spec,
                           struct suite_sum *sum)
{
    char place[64];
    size_t bytes = 0;
    struct digest found;

    if (query_column_is_null(query, column)) {
        check->summary->outcomes_undigested++;
        return;
    }
    const void *said = query_column_blob(query, column, &bytes);
    bool fits = digest_outcome_fits(outcome, spec, said, bytes, &found);
    if (sum != NULL) {
        sum->found[COUNT_DIGESTED]++;
        digest_add_outcome(&sum->found_digest, &found, outcome->id);
    }
    if (!fits) {
        snprintf(place, sizeof place, "outcome %" PRId64, outcome->id);
        check_fault(check, "digest", place,
                    "is not what was stored (scenario %s%s%s, seed %" PRIu64 ", job %" PRId64
                    "): its digest is of other figures, or its job's spec was changed",
                    outcome->scenario_id, outcome->branch_id[0] != '\0' ? ", branch " : "",
                    outcome->branch_id, outcome->seed, outcome->job_id);
    }
}

static void count_outcome(struct suite_sum *sum, const struct outcome *outcome, int64_t kind)
{
    if (kind != LEDGER_RESULT) {
        sum->found[COUNT_AUDIT] += kind == LEDGER_AUDIT;
        return;
    }
    if ((unsigned)outcome->verdict < VERDICT_COUNT) { /* what else there is, is told elsewhere */
        sum->found[COUNT_PASS + outcome->verdict]++;
    }
    if (outcome->verdict != VERDICT_FLAGGED) {
        sum->found[COUNT_TICKS] += (int64_t)outcome->ticks - outcome->prefix_ticks;
        sum->found[COUNT_PREFIX_TICKS] += outcome->prefix_ticks;
        sum->found[COUNT_METRES] += outcome->metres_mm;
    }
}

static enum status read_spec(struct check *check, int64_t job_id, struct job_spec *spec,
                             struct error *error)
{
    struct query query = query_begin(check->db, STATEMENT_CHECK_SPEC);

    memset(spec, 0, sizeof *spec);
    query_int(&query, job_id);
    if (query_row(&query)) {
        record_read(&query, RECORD_SPEC, spec);
    }
    query_column_overflow(&query); /* its digest will differ */
    return query_end(&query, error);
}

static void compare_members(struct check *check, const struct outcome *outcome)
{
    char place[64];
    struct error why;

    if (invariants_outcome_agrees(outcome, &why) != STATUS_OK) {
        snprintf(place, sizeof place, "outcome %" PRId64, outcome->id);
        check_fault(check, "outcome", place, "contradicts itself: %s", why.text);
    }
}

static enum status read_outcomes(struct check *check, const struct suite_sums *sums,
                                 struct error *error)
{
    char place[64];
    struct outcome outcome;
    struct job_spec spec = {0}; /* of job 0, which nobody has */
    int64_t spec_job = 0;
    enum status status = STATUS_OK;
    struct query query = query_begin(check->db, STATEMENT_CHECK_OUTCOMES);

    while (status == STATUS_OK && query_row(&query)) {
        memset(&outcome, 0, sizeof outcome);
        record_read(&query, RECORD_OUTCOME, &outcome);
        struct suite_sum *sum = sum_of(sums, query_take_int(&query));
        int64_t kind = query_take_int(&query);
        check->summary->outcomes++;
        if (query_column_overflow(&query)) {
            snprintf(place, sizeof place, "outcome %" PRId64, outcome.id);
            check_fault(check, "outcome", place, "has a text longer than any that is stored");
        }
        compare_members(check, &outcome);
        if (spec_job != outcome.job_id) {
            status = read_spec(check, outcome.job_id, &spec, error);
            spec_job = outcome.job_id;
        }
        if (sum != NULL) {
            count_outcome(sum, &outcome, kind);
        }
        compare_digest(check, &query, query.column, &outcome, &spec, sum);
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    return status == STATUS_OK ? ended : status;
}

/* Those of jobs that go on: each is what was stored, of an attempt that there was. */
static enum status read_partials(struct check *check, struct error *error)
{
    char place[64];
    struct outcome outcome;
    struct job_spec spec = {0}; /* of job 0, which nobody has */
    int64_t spec_job = 0;
    enum status status = STATUS_OK;
    struct query query = query_begin(check->db, STATEMENT_CHECK_PARTIALS);

    while (status == STATUS_OK && query_row(&query)) {
        struct error why;
        int64_t job_id = query_column_int(&query, 0);
        if (spec_job != job_id) {
            status = read_spec(check, job_id, &spec, error);
            spec_job = job_id;
        }
        enum status read =
            status == STATUS_OK ? record_partial_read(&query, &spec, &outcome, &why) : STATUS_OK;
        if (read == STATUS_STORE) {
            snprintf(place, sizeof place, "job %" PRId64, job_id);
            check_fault(check, "partial", place, "%s", why.text);
        } else if (read != STATUS_OK) {
            *error = why;
            status = read;
        }
        query_column_overflow(&query);
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    return status == STATUS_OK ? ended : status;
}

/* Results that were taken over count in the suite that took them. */
static enum status read_memos(struct check *check, const struct suite_sums *sums,
                              struct error *error)
{
    struct query query = query_begin(check->db, STATEMENT_CHECK_MEMOS);

    while (query_row(&query)) {
        struct suite_sum *sum = sum_of(sums, query_column_int(&query, 0));
        int64_t verdict = query_column_int(&query, 2);
        if (sum != NULL && verdict >= 0 && verdict < VERDICT_COUNT) {
            int64_t kind = query_column_int(&query, 1);
            int64_t count = kind == LEDGER_SHADOW ? 0 : query_column_int(&query, 3);
            sum->found[kind == LEDGER_AUDIT ? COUNT_AUDIT : COUNT_PASS + verdict] += count;
        }
    }
    return query_end(&query, error);
}

static void compare_suites(struct check *check, const struct suite_sums *sums)
{
    for (size_t i = 0; i < sums->count; i++) {
        const struct suite_sum *sum = &sums->rows[i];
        char place[128];
        snprintf(place, sizeof place, "suite %s", sum->name);
        for (int k = 0; k < COUNTS; k++) {
            if (sum->said[k] != sum->found[k]) {
                check_fault(check, "counter", place,
                            "counts %s as %" PRId64 ", its outcomes say %" PRId64, count_names[k],
                            sum->said[k], sum->found[k]);
            }
        }
        if (memcmp(&sum->said_digest, &sum->found_digest, sizeof sum->said_digest) != 0) {
            check_fault(check, "suite digest", place,
                        "its digest is not that of its outcomes: one of them was changed, added, "
                        "taken out or numbered anew");
        }
    }
}

enum status check_outcomes(struct check *check, struct error *error)
{
    struct suite_sums sums = {.rows = NULL};
    struct error why;
    enum status status = read_suites(check, &sums, &why);

    THEN(status, read_outcomes(check, &sums, &why));
    THEN(status, read_memos(check, &sums, &why));
    THEN(status, read_partials(check, &why));
    if (status == STATUS_OK) {
        compare_suites(check, &sums);
    }
    free(sums.rows);
    if (check->summary->outcomes_undigested > 0) {
        check_note(check, "undigested", check->path,
                   "%" PRId64 " outcomes were stored before outcomes had digests: a change of "
                   "their figures shows only where it contradicts a counter, or in a replay",
                   check->summary->outcomes_undigested);
    }
    return check_statement(check, "outcomes", status, &why, error);
}

/* ---- money ---- */

/* An attempt costs its time at its price, give or take the remainder that its account carried, once
 * for each time that it was charged. */
static void check_cost(struct check *check, const struct query *query)
{
    char place[96];
    int64_t device_ns = query_column_int(query, 2);
    int64_t price = query_column_int(query, 5);
    int64_t cost = query_column_int(query, 6);
    __int128 owed = (__int128)device_ns * price;
    __int128 paid = (__int128)cost * NS_PER_HOUR;
    __int128 apart = owed > paid ? owed - paid : paid - owed;

    check->summary->attempts++;
    snprintf(place, sizeof place, "job %" PRId64 ", attempt %" PRId64, query_column_int(query, 0),
             query_column_int(query, 1));
    if (device_ns < 0 || device_ns > LEDGER_ATTEMPT_NS_MAX || query_column_int(query, 3) < 0 ||
        query_column_int(query, 4) < 0 || price < 0 || cost < 0) {
        check_fault(check, "attempt", place, "holds a number beyond what there is");
    } else if (apart > (__int128)2 * NS_PER_HOUR) {
        check_fault(check, "money", place,
                    "cost %" PRId64 " uusd for %" PRId64 " ns at %" PRId64
                    " uusd per hour, which is not their product",
                    cost, device_ns, price);
    }
}

static void check_account(struct check *check, struct query *query)
{
    char place[160];
    char device[LIMIT_ID_BYTES];
    int64_t price = query_column_int(query, 2);
    int64_t carry = query_column_int(query, 5);
    __int128 owed = (__int128)query_column_int(query, 3) * price;
    __int128 paid = (__int128)query_column_int(query, 4) * NS_PER_HOUR + carry;

    query_column_text(query, 1, device, sizeof device);
    query_column_overflow(query);
    snprintf(place, sizeof place, "account of pool %" PRId64 ", %s at %" PRId64 " uusd per hour",
             query_column_int(query, 0), device, price);
    if (query_column_is_null(query, 5)) {
        check_fault(check, "money", place, "is not there, and attempts were charged to it");
    } else if (owed != paid || carry < 0 || carry >= NS_PER_HOUR) {
        check_fault(check, "money", place,
                    "does not add up: %" PRId64 " ns cost %" PRId64
                    " uusd with a remainder of %" PRId64,
                    query_column_int(query, 3), query_column_int(query, 4), carry);
    }
}

enum status check_money(struct check *check, struct error *error)
{
    struct error why;
    struct query attempts = query_begin(check->db, STATEMENT_CHECK_ATTEMPTS);

    while (query_row(&attempts)) {
        check_cost(check, &attempts);
    }
    enum status status = query_end(&attempts, &why);
    TRY(check_statement(check, "attempts", status, &why, error));
    struct query accounts = query_begin(check->db, STATEMENT_CHECK_ACCOUNTS);
    while (query_row(&accounts)) {
        check_account(check, &accounts);
    }
    status = query_end(&accounts, &why);
    TRY(check_statement(check, "accounts", status, &why, error));
    struct query jobs = query_begin_sql(check->db, "SELECT COUNT(*) FROM jobs");
    if (query_row(&jobs)) {
        check->summary->jobs = query_column_int(&jobs, 0);
    }
    status = query_end(&jobs, &why);
    return check_statement(check, "accounts", status, &why, error);
}

/* ---- scenarios ---- */

/* Holds the hash in a row (id, hash, body) against that of the body; `what` the row is. */
static void check_hash(struct check *check, struct query *query, const char *what, const void *body,
                       size_t bytes)
{
    char said[SHA256_HEX_BYTES];
    char found[SHA256_HEX_BYTES];
    char place[64];
    query_column_text(query, 1, said, sizeof said);
    query_column_overflow(query);
    sha256_hex(body, bytes, found);
    if (strcmp(said, found) != 0) {
        snprintf(place, sizeof place, "%s %" PRId64, what, query_column_int(query, 0));
        check_fault(check, "scenario", place, "has hash %.64s and a text of hash %s", said, found);
    }
}

/* By its hash a map is found for further scenarios. */
static enum status check_maps(struct check *check, struct error *error)
{
    struct error why;
    struct query query = query_begin(check->db, STATEMENT_CHECK_MAPS);

    while (query_row(&query)) {
        size_t bytes = 0;
        const void *body = query_column_blob(&query, 2, &bytes);
        check_hash(check, &query, "map", body != NULL ? body : "", bytes);
    }
    enum status status = query_end(&query, &why);
    return check_statement(check, "maps", status, &why, error);
}

enum status check_scenarios(struct check *check, struct error *error)
{
    struct error why;
    struct query query = query_begin(check->db, STATEMENT_CHECK_SCENARIOS);

    while (query_row(&query)) {
        size_t bytes = 0;
        char *body = record_scenario_body(&query, 2, &bytes);
        if (body == NULL) {
            query_end(&query, NULL);
            return error_set(error, STATUS_NO_MEMORY, "out of memory for a scenario");
        }
        check_hash(check, &query, "scenario", body, bytes);
        free(body);
    }
    enum status status = query_end(&query, &why);
    TRY(check_statement(check, "scenarios", status, &why, error));
    return check_maps(check, error);
}

/* ---- models ---- */

/* Records that are stored with a digest, and the names of their rows. */
static const struct digested {
    enum statement statement; /* id, digest, record */
    enum record record;
    const char *what;
    const char *one;
    const char *of;
} digested[] = {
    {STATEMENT_CHECK_MODELS, RECORD_MODEL, "models", "model", ""},
    {STATEMENT_CHECK_MODEL_EVENTS, RECORD_MODEL_EVENT, "events of models", "event", " of models"},
    {STATEMENT_CHECK_TRUST, RECORD_TRUST, "events of trust", "event", " of trust"},
    {STATEMENT_CHECK_GOLDENS, RECORD_GOLDEN, "goldens", "golden", ""},
};

static void read_digest(struct query *query, enum record kind, struct digest *out)
{
    union {
        struct model_version model;
        struct model_event model_event;
        struct trust_event trust;
        struct golden_set golden;
    } record;
    memset(&record, 0, sizeof record);
    record_read(query, kind, &record);
    switch ((int)kind) {
    case RECORD_MODEL:
        digest_model(&record.model, out);
        break;
    case RECORD_MODEL_EVENT:
        digest_model_event(&record.model_event, out);
        break;
    case RECORD_TRUST:
        digest_trust_event(&record.trust, out);
        break;
    default:
        digest_golden(&record.golden, out);
        break;
    }
}

static enum status check_digests(struct check *check, const struct digested *of,
                                 struct error *error)
{
    struct error why;
    struct query rows = query_begin(check->db, of->statement);

    while (query_row(&rows)) {
        struct digest found;
        char place[64];
        size_t bytes = 0;
        int64_t id = query_take_int(&rows);
        const void *said = query_column_blob(&rows, rows.column++, &bytes);
        read_digest(&rows, of->record, &found);
        if (bytes != sizeof found.bytes || memcmp(said, found.bytes, bytes) != 0) {
            snprintf(place, sizeof place, "%s %" PRId64 "%s", of->one, id, of->of);
            check_fault(check, "digest", place, "is not what was stored: its digest is of others");
        }
    }
    enum status status = query_end(&rows, &why);
    return check_statement(check, of->what, status, &why, error);
}

enum status check_models(struct check *check, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(digested); i++) {
        TRY(check_digests(check, &digested[i], error));
    }
    return STATUS_OK;
}
