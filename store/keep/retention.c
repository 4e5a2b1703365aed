/*
 * Retention policies and what they say of a store's artifacts. See retention.h.
 */
#include "store/keep/retention.h"

#include "schemas/json_read.h"
#include "schemas/scenario_json.h"
#include "store/artifacts/artifacts_internal.h"
#include "store/sql/db.h"

#include <stdlib.h>
#include <string.h>

#define RETENTION_FORMAT "swerve-retention/1"

enum { POLICY_BYTES_MAX = 1 << 20 };

/* ---- the policy ---- */

/* One name or a list of them, as bits. */
static enum status read_names(const struct json_cursor *rule, const char *key,
                              const char *const *names, size_t names_count, uint32_t *bits,
                              struct error *error)
{
    struct json_cursor list = json_cursor_member(rule, key);
    size_t count = 0;
    int choice = 0;

    if (!json_cursor_present(&list)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(&list, 1, names_count, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor name = json_cursor_element(&list, i);
        TRY(json_value_choice(&name, names, names_count, &choice, error));
        *bits |= UINT32_C(1) << choice;
    }
    return STATUS_OK;
}

static enum status read_rule(const struct json_cursor *cursor, struct retention_rule *out,
                             struct error *error)
{
    const char *keys[SLICE_KIND_COUNT + 5] = {"keep_days", "verdict", "tier", "safety_critical"};
    struct retention_rule rule = {.safety_critical = -1, .keep_days = RETENTION_FOR_EVER};
    struct json_cursor days = json_cursor_member(cursor, "keep_days");
    int64_t number = 0;
    int word = 0;
    bool flag = false;

    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        keys[4 + kind] = slice_names[kind];
    }
    TRY(json_object_begin(cursor, keys, error));
    TRY(read_names(cursor, "verdict", verdict_names, VERDICT_COUNT, &rule.verdicts, error));
    TRY(read_names(cursor, "tier", tier_names, TIER_COUNT, &rule.tiers, error));
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        struct json_cursor value = json_cursor_member(cursor, slice_names[kind]);
        TRY(json_member_text(cursor, slice_names[kind], false, rule.slice[kind],
                             sizeof rule.slice[kind], error));
        if (json_cursor_present(&value) && rule.slice[kind][0] == '\0') {
            return json_fail(&value, error, "expected a value, found an empty text");
        }
    }
    /* A misspelt word would keep nothing. The other kinds are the scenarios' own. */
    TRY(json_member_choice(cursor, "weather", false, weather_names, WEATHER_COUNT, &word, error));
    TRY(json_member_choice(cursor, "light", false, light_names, LIGHT_COUNT, &word, error));
    if (json_object_get(cursor->value, "safety_critical") != NULL) {
        TRY(json_member_bool(cursor, "safety_critical", true, &flag, error));
        rule.safety_critical = flag;
    }
    if (!json_is_null(days.value)) { /* null: for ever */
        TRY(json_member_integer(cursor, "keep_days", true, 0, RETENTION_DAYS_MAX, &number, error));
        rule.keep_days = (int32_t)number;
    }
    *out = rule;
    return STATUS_OK;
}

static enum status read_policy(const struct json_cursor *cursor, struct retention_policy *out,
                               struct error *error)
{
    static const char *const keys[] = {"$schema", "format", "rules", NULL};
    char format[LIMIT_ID_BYTES] = "";
    struct json_cursor rules = json_cursor_member(cursor, "rules");

    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "format", true, format, sizeof format, error));
    if (strcmp(format, RETENTION_FORMAT) != 0) {
        return json_fail(cursor, error, "expected format \"" RETENTION_FORMAT "\", found \"%s\"",
                         format);
    }
    TRY(json_array_begin(&rules, 1, RETENTION_RULES_MAX, &out->count, error));
    for (size_t i = 0; i < out->count; i++) {
        struct json_cursor rule = json_cursor_element(&rules, i);
        TRY(read_rule(&rule, &out->rules[i], error));
    }
    return STATUS_OK;
}

enum status retention_policy_load(const char *path, struct retention_policy *out,
                                  struct error *error)
{
    json_t *root = NULL;

    memset(out, 0, sizeof *out);
    TRY(json_read_file(path, POLICY_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(path, root);
    enum status status = read_policy(&cursor, out, error);
    json_decref(root);
    return status;
}

static bool has(uint32_t bits, int number)
{
    return bits == 0 || (number >= 0 && number < 32 && (bits >> number & 1) != 0);
}

static bool meets(const struct retention_rule *rule, const struct retention_subject *subject)
{
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (rule->slice[kind][0] != '\0' && strcmp(rule->slice[kind], subject->slice[kind]) != 0) {
            return false;
        }
    }
    return has(rule->verdicts, subject->verdict) && has(rule->tiers, subject->tier) &&
           (rule->safety_critical < 0 || rule->safety_critical == (int)subject->safety_critical);
}

size_t retention_rule_of(const struct retention_policy *policy,
                         const struct retention_subject *subject)
{
    size_t rule = 0;
    while (rule < policy->count && !meets(&policy->rules[rule], subject)) {
        rule++;
    }
    return rule;
}

/* ---- by artifact ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct retention_row *left = a;
    const struct retention_row *right = b;
    return memcmp(left->hash, right->hash, sizeof left->hash);
}

/* Each hash once, with the longest time that anything asks for it. */
static void fold(struct retention_table *table)
{
    size_t last = 0;

    if (table->count == 0) {
        return;
    }
    qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
    for (size_t i = 1; i < table->count; i++) {
        if (compare_rows(&table->rows[last], &table->rows[i]) != 0) {
            table->rows[++last] = table->rows[i];
        } else if (table->rows[i].days > table->rows[last].days) {
            table->rows[last].days = table->rows[i].days;
        }
    }
    table->count = last + 1;
}

static enum status add(struct retention_table *table, const char *hash, int32_t days,
                       struct error *error)
{
    struct retention_row row = {.days = days};
    struct error why;

    if (artifacts_check_hash(hash, &why) != STATUS_OK) {
        return STATUS_OK; /* the collector refuses such a store before it asks */
    }
    artifacts_hash_bytes(hash, row.hash);
    if (table->count == table->capacity) {
        fold(table); /* a job's outcomes share one */
    }
    if (table->count * 2 >= table->capacity) {
        size_t capacity = table->capacity == 0 ? 1024 : table->capacity * 2;
        struct retention_row *grown = realloc(table->rows, capacity * sizeof *table->rows);
        TRY(memory_check(grown, error, "retention: out of memory"));
        table->rows = grown;
        table->capacity = capacity;
    }
    table->rows[table->count++] = row;
    return STATUS_OK;
}

static enum status add_outcome(struct retention_table *table, struct query *query,
                               const struct retention_policy *policy, struct error *error)
{
    struct retention_subject subject;
    char trace[SHA256_HEX_BYTES];
    char evidence[SHA256_HEX_BYTES];

    query_column_text(query, 0, trace, sizeof trace);
    query_column_text(query, 1, evidence, sizeof evidence);
    subject.verdict = (int)query_column_int(query, 2);
    subject.tier = (int)query_column_int(query, 3);
    subject.safety_critical = query_column_int(query, 4) != 0;
    subject.audited = query_column_int(query, 5) != 0;
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        query_column_text(query, 6 + kind, subject.slice[kind], sizeof subject.slice[kind]);
    }
    size_t rule = retention_rule_of(policy, &subject);
    int32_t days = rule < policy->count && !subject.audited ? policy->rules[rule].keep_days
                                                            : RETENTION_FOR_EVER;
    table->met[rule]++;
    TRY(add(table, trace, days, error));
    return add(table, evidence, days, error);
}

static enum status read_rows(struct db *db, enum statement statement,
                             const struct retention_policy *policy, struct retention_table *out,
                             struct error *error)
{
    struct error why;
    enum status status = STATUS_OK;
    struct query query = query_begin(db, statement);

    while (status == STATUS_OK && query_row(&query)) {
        char hash[SHA256_HEX_BYTES];
        if (statement == STATEMENT_CHECK_RETAINED) {
            status = add_outcome(out, &query, policy, error);
        } else {
            query_column_text(&query, 0, hash, sizeof hash);
            status = add(out, hash, RETENTION_FOR_EVER, error);
        }
    }
    enum status ended = query_end(&query, &why);
    if (status == STATUS_OK && ended != STATUS_OK) {
        *error = why;
        status = ended;
    }
    return status;
}

enum status retention_table_read(struct db *db, const struct retention_policy *policy,
                                 struct retention_table *out, struct error *error)
{
    TRY(read_rows(db, STATEMENT_CHECK_RETAINED, policy, out, error));
    TRY(read_rows(db, STATEMENT_CHECK_PINS, policy, out, error));
    fold(out);
    return STATUS_OK;
}

int32_t retention_table_days(const struct retention_table *table, const uint8_t *hash)
{
    struct retention_row key = {.days = 0};
    memcpy(key.hash, hash, sizeof key.hash);
    const struct retention_row *found =
        table->count == 0
            ? NULL
            : bsearch(&key, table->rows, table->count, sizeof *table->rows, compare_rows);
    return found == NULL ? RETENTION_FOR_EVER : found->days;
}

void retention_table_finish(struct retention_table *table)
{
    free(table->rows);
    table->rows = NULL;
}
