/*
 * Migrations. See migrate.h.
 */
#include "store/sql/migrate.h"

#include <inttypes.h>
#include <stdio.h>

enum { APPLICATION_ID = 0x53575256 }; /* "SWRV": PRAGMA application_id, read by file(1) */

enum status migrate_check(struct db *db, const char *path, struct error *error)
{
    int64_t version = 0;
    int64_t application = 0;
    int64_t tables = 0;
    TRY(sqlite_db_scalar(db, "PRAGMA user_version", &version, error));
    TRY(sqlite_db_scalar(db, "PRAGMA application_id", &application, error));
    TRY(sqlite_db_scalar(db, "SELECT COUNT(*) FROM sqlite_schema", &tables, error));
    if (tables > 0 && application != APPLICATION_ID) {
        return error_set(error, STATUS_STORE,
                         "%s: this SQLite file is not a job store; name another path", path);
    }
    if (version < 0 || version > (int64_t)store_migrations_count) {
        return error_set(error, STATUS_STORE,
                         "%s: the store has schema version %" PRId64 ", this program knows up to "
                         "%zu; it was left as it is, open it with a newer program",
                         path, version, store_migrations_count);
    }
    return tables > 0 ? schema_check(db, path, version, error) : STATUS_OK;
}

static enum status apply_one(struct db *db, size_t index, struct error *error)
{
    char stamp[128];
    struct error ignored;
    TRY(sqlite_db_script(db, "BEGIN IMMEDIATE", error));
    enum status status = sqlite_db_script(db, store_migrations[index].text, error);
    if (status == STATUS_OK) {
        snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %zu",
                 APPLICATION_ID, index + 1);
        status = sqlite_db_script(db, stamp, error);
    }
    THEN(status, sqlite_db_script(db, "COMMIT", error));
    if (status != STATUS_OK && db_in_transaction(db)) {
        sqlite_db_script(db, "ROLLBACK", &ignored); /* the first error is the one to report */
    }
    return status;
}

enum status migrate_apply(struct db *db, const char *path, const struct logger *logger,
                          struct error *error)
{
    int64_t version = 0;
    enum status status = sqlite_db_scalar(db, "PRAGMA user_version", &version, error);

    for (size_t i = (size_t)version; status == STATUS_OK && i < store_migrations_count; i++) {
        status = apply_one(db, i, error);
        if (status == STATUS_OK) {
            log_event(logger, LOG_INFO, "%s: applied %s", path, store_migrations[i].name);
        } else {
            error_prefix(error, "%s", store_migrations[i].name);
        }
    }
    return status;
}
