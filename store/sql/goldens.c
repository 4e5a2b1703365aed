/*
 * Sets of goldens in SQL (store/api/models.h): the tables goldens and golden_artifacts.
 *
 * A set is known by its list, an artifact that names its recordings. All of them are there before
 * the set is, and stay until it is let go: the pins of a store (check_queries.c) read these tables.
 */
#include "store/sql/models.h"

#include "base/units.h"
#include "schemas/json_read.h"
#include "store/door/invariants.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <stdlib.h>
#include <string.h>

/* Also the number of recordings that one set may have: a suite's jobs would be more than fit an
 * artifact. */
enum { GOLDEN_RECORDINGS_MAX = 100000 };

struct golden_call {
    struct sql_store *store;
    struct golden_set set;
    char (*kept)[SHA256_HEX_BYTES]; /* [set.recordings], owned by the caller */
};

/* The recordings that the list names; the artifact of each is there. */
static enum status read_recordings(struct golden_call *call, const struct json_cursor *list,
                                   struct error *error)
{
    struct json_cursor recordings = json_cursor_member(list, "recordings");
    size_t count = 0;
    TRY(json_array_begin(&recordings, 1, GOLDEN_RECORDINGS_MAX, &count, error));
    call->kept = calloc(count, sizeof *call->kept);
    TRY(memory_check(call->kept, error, "golden: out of memory for %zu recordings", count));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor one = json_cursor_element(&recordings, i);
        int64_t bytes = 0;
        bool there = false;
        TRY(json_member_text(&one, "artifact", true, call->kept[i], sizeof call->kept[i], error));
        TRY(json_member_integer(&one, "bytes", true, 0, LIMIT_ARTIFACT_BYTES, &bytes, error));
        TRY(artifacts_exists(&call->store->artifacts, call->kept[i], &there, error));
        if (!there) {
            return error_set(error, STATUS_CONFLICT,
                             "golden \"%s\": its recording %.12s is not in the store; put it there "
                             "first",
                             call->set.name, call->kept[i]);
        }
        call->set.bytes += bytes;
    }
    call->set.recordings = (int64_t)count;
    return STATUS_OK;
}

/* Drives go by what the list says of its model, whoever looks at sets or lets them go by the set.
 */
static enum status compare_said(const struct json_cursor *list, const char *key, const char *set,
                                struct error *error)
{
    struct json_cursor said = json_cursor_member(list, key);
    if (!json_cursor_present(&said) ||
        (json_is_string(said.value) && strcmp(json_string_value(said.value), set) == 0)) {
        return STATUS_OK;
    }
    return json_fail(&said, error, "expected the set's \"%s\", found another", set);
}

static enum status golden_add_op(struct db *db, void *context, struct error *error)
{
    struct golden_call *call = context;
    struct golden_set known = {.name = ""};
    struct digest digest;
    struct query find = query_begin(db, STATEMENT_GOLDEN_FIND);

    query_text(&find, call->set.name);
    if (query_row(&find)) {
        record_read(&find, RECORD_GOLDEN, &known);
    }
    TRY(query_end(&find, error));
    if (known.name[0] != '\0') {
        return strcmp(known.hash, call->set.hash) == 0
                   ? STATUS_OK
                   : error_set(
                         error, STATUS_CONFLICT,
                         "golden \"%s\": a set of that name is in the store (%.12s); let that "
                         "one go first, or give the new one another name",
                         known.name, known.hash);
    }
    call->set.made_s = clock_wall_ns(call->store->clock) / NS_PER_S;
    TRY(invariants_check(&invariants_golden, &call->set, error));
    digest_golden(&call->set, &digest);
    struct query insert = query_begin(db, STATEMENT_GOLDEN_INSERT);
    query_blob(&insert, digest.bytes, sizeof digest.bytes);
    record_write(&insert, RECORD_GOLDEN, &call->set);
    TRY(query_run(&insert, error));
    if (db_changes(db) == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "golden \"%s\": the store has this set under another name",
                         call->set.name);
    }
    for (int64_t i = 0; i < call->set.recordings; i++) {
        struct query keep = query_begin(db, STATEMENT_GOLDEN_KEEP);
        query_text(&keep, call->set.name);
        query_text(&keep, call->kept[i]);
        TRY(query_run(&keep, error));
    }
    return STATUS_OK;
}

enum status models_golden_add(struct store *base, const struct golden_set *set, struct error *error)
{
    struct golden_call call = {.store = sql_store_of(base), .set = *set};
    void *list = NULL;
    size_t bytes = 0;
    json_t *root = NULL;
    TRY(golden_set_check(set, error));
    call.set.recordings = call.set.bytes = 0;
    bool there = false;
    TRY(artifacts_exists(&call.store->artifacts, set->hash, &there, error));
    if (!there) {
        return error_set(error, STATUS_CONFLICT,
                         "golden \"%s\": its list %.12s is not in the store; put it there first",
                         set->name, set->hash);
    }
    enum status status = base->ops->artifact_get(base, set->hash, &list, &bytes, error);
    THEN(status, json_read_text("golden", list, bytes, &root, error));
    if (status == STATUS_OK) {
        struct json_cursor cursor = json_cursor_root("golden", root);
        status = read_recordings(&call, &cursor, error);
        THEN(status, compare_said(&cursor, "model_hash", set->model_hash, error));
        THEN(status, compare_said(&cursor, "sampler", set->sampler, error));
    }
    THEN(status, sql_store_write(call.store, golden_add_op, &call, error));
    json_decref(root);
    free(call.kept);
    free(list);
    return status;
}

static enum status golden_drop_op(struct db *db, void *context, struct error *error)
{
    struct query leave = query_begin(db, STATEMENT_GOLDEN_LEAVE);
    query_text(&leave, context);
    TRY(query_run(&leave, error));
    struct query drop = query_begin(db, STATEMENT_GOLDEN_DROP);
    query_text(&drop, context);
    return query_run(&drop, error);
}

enum status models_golden_drop(struct store *base, const char *name, struct error *error)
{
    TRY(golden_name_check(name, error));
    return sql_store_write(sql_store_of(base), golden_drop_op, (void *)(uintptr_t)name, error);
}
