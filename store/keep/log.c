/*
 * Reading the audit log. See log.h.
 */
#include "store/keep/log.h"

#include "store/keep/keep_database.h"
#include "store/sql/sql_store.h"

enum status keep_log(const char *store, int64_t after_id, int64_t wait_ms,
                     enum status (*visit)(void *context, const struct store_audit *entry,
                                          struct error *error),
                     void *context, struct error *error)
{
    struct keep_database database;
    struct store_audit entry;
    struct error why;
    enum status status = keep_database_find(store, wait_ms, &database, error);

    THEN(status, keep_database_begin(&database, error));
    if (status == STATUS_OK) {
        struct query query = query_begin(database.check.db, STATEMENT_AUDIT_PAGE);
        query_int(&query, after_id);
        query_int(&query, AUDIT_ROWS_MAX);
        while (status == STATUS_OK && query_row(&query)) {
            audit_row(&query, &entry);
            status = visit(context, &entry, error);
        }
        enum status ended = query_end(&query, &why);
        if (status == STATUS_OK && ended != STATUS_OK) {
            *error = why;
            status = ended;
        }
    }
    keep_database_close(&database);
    return status;
}
