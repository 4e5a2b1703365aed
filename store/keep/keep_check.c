/*
 * Checking a store wherever it is. See keep_check.h.
 */
#include "store/keep/keep_check.h"

#include "store/keep/keep_database.h"
#include "store/objects/object_storage.h"
#include "store/postgres/postgres_references.h"
#include "store/postgres/postgres_store.h"

#include <string.h>

static void on_reference(void *context, const char *place, const char *parent)
{
    check_fault(context, "reference", place, "refers to a row of %s that is not there", parent);
}

static void on_loose(void *context, const char *table, const char *name)
{
    check_fault(
        context, "reference", table,
        "its constraint %s is not enforced (NOT VALID): rows were not looked at when it was "
        "made",
        name);
}

/* Artifacts in a bucket stay unread. */
static void choose_artifacts(struct check *check, const char *path)
{
    bool bucket = object_storage_is_url(path);

    check->beside = bucket ? NULL : path;
    if (bucket && !check->options->skip_artifacts) {
        check_note(check, "bucket", path,
                   "artifacts in a bucket are not read here: compare them by its own means");
    }
}

static enum status check_postgres(struct keep_database *database, const char *name,
                                  const struct store_check_options *options,
                                  struct store_check_summary *out, struct error *error)
{
    static const struct postgres_references_visit visit = {on_reference, on_loose};
    struct check_references references = {.rows = NULL};
    struct check *check = &database->check;
    int64_t begun_s = (int64_t)time(NULL);

    check->options = options;
    check->summary = out;
    check->path = name;
    choose_artifacts(check, database->path);
    TRY(keep_database_begin(database, error));
    enum status status =
        postgres_references(check->db, options->findings_max, &visit, check, error);
    THEN(status, check_rows(check, &references, error));
    keep_database_close(database);
    THEN(status, check_files(check, &references, begun_s, error));
    check_references_finish(&references);
    return status;
}

enum status keep_check(const char *store, const struct store_check_options *options,
                       struct store_check_summary *out, struct error *error)
{
    struct keep_database database;
    struct store_check_options chosen = *options;

    if (!postgres_store_is_url(store)) {
        return store_check(store, options, out, error);
    }
    memset(out, 0, sizeof *out);
    chosen.findings_max = options->findings_max > 0 ? options->findings_max : CHECK_FINDINGS_MAX;
    enum status status = keep_database_find(store, options->wait_ms, &database, error);
    THEN(status, check_postgres(&database, store, &chosen, out, error));
    keep_database_close(&database);
    return status;
}
