/*
 * Opening a database to look at it. See keep_database.h.
 */
#include "store/keep/keep_database.h"

#include "store/api/store_path.h"
#include "store/postgres/postgres_store.h"

#include <string.h>

enum status keep_database_find(const char *store, int64_t wait_ms, struct keep_database *out,
                               struct error *error)
{
    memset(out, 0, sizeof *out);
    out->options.wait_ms = wait_ms;
    out->check.options = &out->options;
    out->check.summary = &out->summary;
    out->check.path = out->path;
    return postgres_store_is_url(store) ? postgres_store_look(store, out->url, sizeof out->url,
                                                              out->path, &out->check.db, error)
                                        : store_path_resolve(store, out->path, error);
}

enum status keep_database_begin(struct keep_database *database, struct error *error)
{
    struct db *db = database->check.db;

    if (database->url[0] == '\0') {
        return check_begin(&database->check, error);
    }
    /* Behind the savepoint, a statement that fails leaves the others their transaction. */
    TRY(query_simple(db, STATEMENT_READ_BEGIN, error));
    return query_simple(db, STATEMENT_SAVEPOINT, error);
}

void keep_database_close(struct keep_database *database)
{
    db_close(database->check.db);
    database->check.db = NULL;
}
