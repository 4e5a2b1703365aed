/*
 * Labels of suites in SQL (store/api/labels.h): the table labels.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/door/invariants.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <string.h>

struct label_call {
    struct sql_store *store;
    struct label label;
};

/* Whether the suite has the label already, and how many of its kind. */
static enum status find_label(struct db *db, const struct label *label, int64_t suite, bool *known,
                              int64_t *count, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_LABELS_OF_SUITE);
    query_int(&query, suite);
    *known = false;
    *count = 0;
    while (query_row(&query)) {
        char text[LABEL_BYTES];
        if (query_take_int(&query) == (int64_t)label->kind) {
            query_take_text(&query, text, sizeof text);
            *known = *known || strcmp(text, label->text) == 0;
            ++*count;
        }
    }
    return query_end(&query, error);
}

/* Takes away what the label replaces: the suite's own note or commit, or the baseline of that name.
 */
static enum status drop_replaced(struct db *db, const struct label *label, int64_t suite,
                                 struct error *error)
{
    enum label_kind kind = label->kind;
    if (kind == LABEL_TAG || kind == LABEL_FILES) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, kind == LABEL_BASELINE ? STATEMENT_LABEL_LEAVE_NAME
                                                                : STATEMENT_LABEL_LEAVE_SUITE);
    query_int(&query, (int64_t)kind);
    if (kind == LABEL_BASELINE) {
        query_text(&query, label->text);
    }
    query_int(&query, suite);
    return query_run(&query, error);
}

static enum status label_add_op(struct db *db, void *context, struct error *error)
{
    struct label_call *call = context;
    const struct label *label = &call->label;
    int64_t suite = 0;
    int64_t count = 0;
    bool known = false;
    TRY(record_find_suite(db, label->suite, &suite, error));
    TRY(find_label(db, label, suite, &known, &count, error));
    if (known) {
        return STATUS_OK;
    }
    if (count >= LABELS_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "suite %s: has %d labels \"%s\", and may have no more", label->suite,
                         LABELS_MAX, label_kind_names[label->kind]);
    }
    TRY(drop_replaced(db, label, suite, error));
    call->label.at_s = clock_wall_ns(call->store->clock) / NS_PER_S;
    TRY(invariants_check(&invariants_label, label, error));
    struct query insert = query_begin(db, STATEMENT_LABEL_ADD);
    query_int(&insert, suite);
    query_int(&insert, (int64_t)label->kind);
    query_text(&insert, label->text);
    query_int(&insert, label->at_s);
    return query_run(&insert, error);
}

enum status labels_add(struct store *base, const struct label *label, struct error *error)
{
    struct label_call call = {.store = sql_store_of(base), .label = *label};
    bool there = true;
    TRY(label_check(label, error));
    const char *artifact = label->text + SHA256_HEX_BYTES;
    if (label->kind == LABEL_FILES) {
        TRY(artifacts_exists(&call.store->artifacts, artifact, &there, error));
    }
    if (!there) {
        return error_set(error, STATUS_CONFLICT,
                         "files: artifact %.12s is not in the store; put it there first", artifact);
    }
    return sql_store_write(call.store, label_add_op, &call, error);
}

static enum status label_drop_op(struct db *db, void *context, struct error *error)
{
    const struct label *label = context;
    int64_t suite = 0;
    TRY(record_find_suite(db, label->suite, &suite, error));
    struct query query = query_begin(db, STATEMENT_LABEL_DROP);
    query_int(&query, suite);
    query_int(&query, (int64_t)label->kind);
    query_text(&query, label->text);
    return query_run(&query, error);
}

enum status labels_drop(struct store *base, const struct label *label, struct error *error)
{
    struct label given = *label;
    TRY(label_check(label, error));
    if (label->kind == LABEL_COMMIT || label->kind == LABEL_FILES) {
        return error_set(error, STATUS_BAD_INPUT,
                         "label: expected a tag, a note or a baseline, found \"%s\", which says "
                         "how the suite came to be",
                         label_kind_names[label->kind]);
    }
    return sql_store_write(sql_store_of(base), label_drop_op, &given, error);
}

/* ---- files of planners ---- */

enum status labels_planner_keep(struct store *base, const char *suite, const char *planner_hash,
                                const void *data, size_t bytes, struct error *error)
{
    struct label label = {.kind = LABEL_FILES};
    struct store_suite_status known;
    char artifact[SHA256_HEX_BYTES];
    if (bytes > LABEL_FILES_BYTES) {
        return error_set(error, STATUS_LIMIT, "files of a planner: expected at most %d MiB",
                         LABEL_FILES_BYTES >> 20);
    }
    TRY(base->ops->suite_status(base, suite, &known, error)); /* before anything is put down */
    TRY(base->ops->artifact_put(base, data, bytes, artifact, error));
    snprintf(label.suite, sizeof label.suite, "%s", suite);
    snprintf(label.text, sizeof label.text, "%s %s", planner_hash, artifact);
    return labels_add(base, &label, error);
}

enum status labels_planner_kept(struct store *base, const char *suite, const char *planner_hash,
                                void **data, size_t *bytes, struct error *error)
{
    const size_t hash_bytes = SHA256_HEX_BYTES - 1;
    struct query query;
    char artifact[SHA256_HEX_BYTES] = "";
    bool named = strlen(planner_hash) == hash_bytes;
    TRY(sql_read_begin(base, STATEMENT_FILES_OF_SUITE, &query, error));
    query_text(&query, suite);
    while (query_row(&query)) {
        char text[LABEL_BYTES];
        query_column_text(&query, 0, text, sizeof text);
        if (named && artifact[0] == '\0' && strncmp(text, planner_hash, hash_bytes) == 0) {
            snprintf(artifact, sizeof artifact, "%s", text + hash_bytes + 1);
        }
    }
    TRY(sql_read_end(base, &query, error));
    return artifact[0] != '\0'
               ? base->ops->artifact_get(base, artifact, data, bytes, error)
               : error_set(error, STATUS_NOT_FOUND, "suite %s: keeps no files of planner %.12s",
                           suite, planner_hash);
}

enum status labels_page(struct store *base, const char *kind, int64_t after_id, struct label *out,
                        uint32_t max, uint32_t *count, struct error *error)
{
    struct query query;
    int64_t number = -1; /* any */
    for (int i = 0; kind != NULL && i < LABEL_KIND_COUNT; i++) {
        number = strcmp(kind, label_kind_names[i]) == 0 ? i : number;
    }
    if (kind != NULL && number < 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "labels: expected tag, note, baseline, commit or files, found \"%.40s\"",
                         kind);
    }
    TRY(sql_read_begin(base, kind != NULL ? STATEMENT_LABELS_OF_KIND : STATEMENT_LABELS, &query,
                       error));
    query_int(&query, after_id);
    query_int(&query, max);
    if (kind != NULL) {
        query_int(&query, number);
    }
    uint32_t found = record_read_rows(&query, RECORD_LABEL, sizeof *out, out, max);
    return sql_read_rows_end(base, &query, found, count, error);
}

/* Adds a name to a list of them. */
static void add_name(char *list, size_t bytes, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
}

enum status labels_read(struct db *db, int64_t suite, struct store_suite_status *out,
                        struct error *error)
{
    struct query query = query_begin(db, STATEMENT_LABELS_OF_SUITE);
    query_int(&query, suite);
    while (query_row(&query)) {
        char text[LABEL_BYTES];
        int64_t kind = query_take_int(&query);
        query_take_text(&query, text, sizeof text);
        switch (kind) {
        case LABEL_TAG:
            add_name(out->tags, sizeof out->tags, text);
            break;
        case LABEL_BASELINE:
            add_name(out->baselines, sizeof out->baselines, text);
            break;
        case LABEL_NOTE:
            memcpy(out->note, text, sizeof out->note);
            break;
        case LABEL_COMMIT:
            memcpy(out->commit, text, sizeof out->commit);
            break;
        default:
            break;
        }
    }
    return query_end(&query, error);
}
