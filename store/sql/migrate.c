/*
 * Migrations. See migrate.h.
 */
#include "store/sql/migrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { APPLICATION_ID = 0x53575256 }; /* "SWRV": PRAGMA application_id, read by file(1) */

/* SQLite takes a file of one byte for an empty one, and writes over it. */
static bool single_byte(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size == 1;
}

enum status migrate_check(struct db *db, const char *path, struct error *error)
{
    int64_t version = 0;
    int64_t application = 0;
    int64_t tables = 0;
    TRY(sqlite_db_scalar(db, "PRAGMA user_version", &version, error));
    TRY(sqlite_db_scalar(db, "PRAGMA application_id", &application, error));
    TRY(sqlite_db_scalar(db, "SELECT COUNT(*) FROM sqlite_schema", &tables, error));
    /* Ours gets its tables, version and number in one transaction. */
    bool empty = tables == 0 && application == 0 && version == 0 && !single_byte(path);
    if (!empty && application != APPLICATION_ID) {
        return error_set(error, STATUS_STORE, "%s: this file is not a job store; name another path",
                         path);
    }
    if (version < 0 || version > (int64_t)store_migrations_count) {
        return error_set(error, STATUS_STORE,
                         "%s: the store has schema version %" PRId64 ", this program knows up to "
                         "%zu; it was left as it is, open it with a newer program",
                         path, version, store_migrations_count);
    }
    return tables > 0 ? schema_check(db, path, version, error) : STATUS_OK;
}

/* Applies a text in a transaction of its own, whereby the file comes to a version. */
static enum status apply(struct db *db, const struct embedded_text *text, size_t version,
                         struct error *error)
{
    char stamp[128];
    struct error ignored;
    TRY(sqlite_db_script(db, "BEGIN IMMEDIATE", error));
    enum status status = sqlite_db_script(db, text->text, error);
    if (status == STATUS_OK) {
        snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %zu",
                 APPLICATION_ID, version);
        status = sqlite_db_script(db, stamp, error);
    }
    THEN(status, sqlite_db_script(db, "COMMIT", error));
    if (status != STATUS_OK && db_in_transaction(db)) {
        sqlite_db_script(db, "ROLLBACK", &ignored); /* the first error is the one to report */
    }
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, "%s", text->name);
}

enum status migrate_apply(struct db *db, const char *path, const struct logger *logger,
                          struct error *error)
{
    int64_t version = 0;
    TRY(sqlite_db_scalar(db, "PRAGMA user_version", &version, error));

    if (version == 0) {
        TRY(apply(db, &store_whole_schema[0], store_migrations_count, error));
        log_event(logger, LOG_INFO, "%s: made with schema version %zu", path,
                  store_migrations_count);
        return STATUS_OK;
    }
    for (size_t i = (size_t)version; i < store_migrations_count; i++) {
        TRY(apply(db, &store_migrations[i], i + 1, error));
        log_event(logger, LOG_INFO, "%s: applied %s", path, store_migrations[i].name);
    }
    return STATUS_OK;
}
