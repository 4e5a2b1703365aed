/*
 * Schema versions. See postgres_schema.h.
 *
 * A version is one transaction: the migration's text, and its number in swerve_schema. Invariant:
 * the tables are those of the number, whoever was killed in between.
 */
#include "store/postgres/postgres_schema.h"

#include "base/check.h"
#include "schemas/limits.h"
#include "store/objects/object_storage.h"
#include "store/postgres/dialect.h"
#include "store/postgres/postgres_db.h"
#include "store/sql/migrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tables and functions that only this database needs. The planned ticks of a scenario are those of
 * SCENARIO_TICKS (store/statements/statements.h), its horizon is SCENARIO_HORIZON. */
static const char first[] =
    "CREATE TABLE IF NOT EXISTS swerve_schema (version BIGINT PRIMARY KEY);"
    "CREATE TABLE IF NOT EXISTS swerve_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS worker_leases ("
    " worker TEXT COLLATE \"C\" PRIMARY KEY, until_ns BIGINT NOT NULL);"
    "CREATE INDEX IF NOT EXISTS worker_leases_until ON worker_leases (until_ns);"
    "CREATE OR REPLACE FUNCTION swerve_scenario_ticks(body BYTEA) RETURNS BIGINT"
    " LANGUAGE plpgsql IMMUTABLE AS $$"
    " DECLARE document JSONB; horizon DOUBLE PRECISION; branches DOUBLE PRECISION;"
    " BEGIN"
    "  IF length(body) > 1048576 THEN RETURN 0; END IF;"
    "  document := CAST(convert_from(body, 'UTF8') AS JSONB);"
    "  horizon := COALESCE(round(10 * CAST(document ->> 'horizon_s' AS NUMERIC)), 0);"
    "  SELECT COALESCE(SUM(GREATEST(0, horizon - CASE jsonb_typeof(e.value) WHEN 'object'"
    "   THEN COALESCE(CAST(e.value ->> 'at_tick' AS DOUBLE PRECISION), 0) ELSE horizon END)), 0)"
    "   INTO branches FROM jsonb_array_elements(document -> 'branches') AS e(value);"
    "  RETURN GREATEST(0, LEAST(1000000000, CAST(trunc(horizon + branches) AS BIGINT)));"
    " EXCEPTION WHEN OTHERS THEN RETURN 0;"
    " END $$;"
    "CREATE OR REPLACE FUNCTION swerve_scenario_horizon(body BYTEA) RETURNS BIGINT"
    " LANGUAGE plpgsql IMMUTABLE AS $$"
    " BEGIN"
    "  IF length(body) > 1048576 THEN RETURN 0; END IF;"
    "  RETURN COALESCE(CAST(round(10 * CAST(CAST(convert_from(body, 'UTF8') AS JSONB) ->> "
    "'horizon_s'"
    "   AS NUMERIC)) AS BIGINT), 0);"
    " EXCEPTION WHEN OTHERS THEN RETURN 0;"
    " END $$";

/* References that a table which was written again has lost. */
static const char references_again[] =
    "ALTER TABLE memo_outcomes DROP CONSTRAINT IF EXISTS memo_outcomes_outcome_fkey,"
    " ADD CONSTRAINT memo_outcomes_outcome_fkey FOREIGN KEY (outcome) REFERENCES outcomes (id)";

/* SQLite's indexes end with the row's id, in whose order pages are read; here it has to be said.
 * Looked at behind migrations alone: another one of these needs a migration. */
static const char *const indexes_by_id[] = {
    "outcomes_by_suite ON outcomes (suite, id)",
    "outcomes_by_suite_verdict ON outcomes (suite, verdict, id)",
    "outcomes_by_verdict ON outcomes (verdict, id)",
    "outcomes_by_job ON outcomes (job, id)",
    "outcomes_by_own_scenario ON outcomes (scenario_id, id) WHERE scenario_id IS NOT NULL",
    "job_specs_by_scenario ON job_specs (scenario_id, job)",
    "jobs_open ON jobs (suite, id) WHERE state <= 1",
    "jobs_leased ON jobs (worker, id) WHERE state = 1",
};

static enum status read_int(struct db *db, const char *sql, int64_t *out, struct error *error)
{
    struct query query = query_begin_sql(db, sql);

    *out = 0;
    if (query_row(&query)) {
        *out = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

static enum status apply_one(struct db *db, size_t index, bool fresh, struct error *error)
{
    char stamp[96];
    char *text = dialect_migration(store_migrations[index].text, fresh);
    TRY(memory_check(text, error, "out of memory for a migration"));
    enum status status = postgres_db_script(db, text, error);

    free(text);
    if (status != STATUS_OK) {
        return error_prefix(error, "%s", store_migrations[index].name);
    }
    snprintf(stamp, sizeof stamp, "INSERT INTO swerve_schema (version) VALUES (%zu)", index + 1);
    return postgres_db_script(db, stamp, error);
}

/* Makes the indexes anew that lack the id: of a new schema, and where a migration made them. */
static enum status order_indexes(struct db *db, struct error *error)
{
    char sql[512];

    for (size_t i = 0; i < COUNT_OF(indexes_by_id); i++) {
        const char *index = indexes_by_id[i];
        int bytes = (int)strcspn(index, " ");
        const char *columns = strchr(index, '(');
        int length = (int)strcspn(columns, ")") + 1;
        snprintf(sql, sizeof sql,
                 "DO $$ BEGIN IF strpos(pg_get_indexdef(CAST('%.*s' AS REGCLASS)), '%.*s') = 0 THEN"
                 " DROP INDEX %.*s; CREATE INDEX %s; END IF; END $$",
                 bytes, index, length, columns, bytes, index, index);
        TRY(postgres_db_script(db, sql, error));
    }
    return STATUS_OK;
}

/* A search path may name schemas that are not there, as one does whose quotes were forgotten. */
static enum status check_named(struct db *db, struct error *error)
{
    int64_t none = 0;
    char path[256] = "";
    struct query query =
        query_begin_sql(db, "SELECT CASE WHEN current_schema() IS NULL THEN 1 ELSE 0 END,"
                            " CAST(left(current_setting('search_path'), 200) AS TEXT)");
    if (query_row(&query)) {
        none = query_column_int(&query, 0);
        query_column_text(&query, 1, path, sizeof path);
    }
    TRY(query_end(&query, error));
    return none != 0
               ? error_set(error, STATUS_STORE,
                           "the PostgreSQL database has none of the schemas on the search path, "
                           "which is %s; make one (CREATE SCHEMA), or name another by "
                           "?options=-csearch_path%%3DNAME (a name with capitals or signs needs "
                           "its quotes, %%22NAME%%22)",
                           path)
               : STATUS_OK;
}

static enum status apply_all(struct db *db, const struct logger *logger, struct error *error)
{
    int64_t version = 0;
    int64_t strange = 0;
    TRY(check_named(db, error));
    TRY(read_int(db,
                 "SELECT COUNT(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                 " WHERE n.nspname = current_schema() AND c.relname = 'jobs'"
                 " AND NOT EXISTS (SELECT 1 FROM pg_class s"
                 " WHERE s.relnamespace = c.relnamespace AND s.relname = 'swerve_schema')",
                 &strange, error));
    if (strange > 0) {
        return error_set(error, STATUS_STORE,
                         "the PostgreSQL schema has a table \"jobs\" that is not Swerve's; name "
                         "another database, or a schema by ?options=-csearch_path%%3DNAME");
    }
    TRY(postgres_db_script(db, first, error));
    TRY(read_int(db, "SELECT COALESCE(MAX(version), 0) FROM swerve_schema", &version, error));
    if (version > (int64_t)store_migrations_count) {
        return error_set(error, STATUS_STORE,
                         "the PostgreSQL database has schema version %" PRId64
                         ", this program knows up to %zu; it was left as it is, open it with a "
                         "newer program",
                         version, store_migrations_count);
    }
    if (version == (int64_t)store_migrations_count) {
        return STATUS_OK;
    }
    bool fresh = version == 0;
    for (size_t i = (size_t)version; i < store_migrations_count; i++) {
        TRY(apply_one(db, i, fresh, error));
        log_event(logger, LOG_INFO, "PostgreSQL: applied %s", store_migrations[i].name);
    }
    TRY(order_indexes(db, error));
    return postgres_db_script(db, references_again, error);
}

/* ---- settings ---- */

static enum status read_artifacts(struct db *db, const char *given, char *out, size_t capacity,
                                  struct error *error)
{
    struct query kept =
        query_begin_sql(db, "SELECT value FROM swerve_settings WHERE name = 'artifacts'");
    out[0] = '\0';
    if (query_row(&kept)) {
        query_column_text(&kept, 0, out, capacity);
    }
    TRY(query_end(&kept, error));
    if (out[0] == '\0') {
        return error_set(error, STATUS_USAGE,
                         "store: a new PostgreSQL store needs a folder for its artifacts that all "
                         "its processes share, or a bucket: postgresql://..?artifacts=/FOLDER or "
                         "artifacts=s3://BUCKET/PREFIX");
    }
    if (given[0] != '\0' && strcmp(given, out) != 0) {
        return error_set(error, STATUS_CONFLICT,
                         "store: the artifacts of this database are in %.400s, not in %.400s", out,
                         given);
    }
    return STATUS_OK;
}

static enum status keep_artifacts(struct db *db, const char *given, char *out, size_t capacity,
                                  struct error *error)
{
    if (given[0] != '\0') {
        struct query keep =
            query_begin_sql(db, "INSERT INTO swerve_settings (name, value) VALUES ('artifacts', ?1)"
                                " ON CONFLICT (name) DO NOTHING");
        query_text(&keep, given);
        TRY(query_run(&keep, error));
    }
    return read_artifacts(db, given, out, capacity, error);
}

/* ---- the whole ---- */

/* Inside the transaction of all: what was set up half was not set up. */
static enum status set_up(struct db *db, const struct postgres_schema_setup *setup,
                          struct error *error)
{
    char folder[LIMIT_PATH_BYTES - 32];
    TRY(postgres_db_script(db, "SET LOCAL client_min_messages = warning", error));
    TRY(apply_all(db, setup->logger, error));
    TRY(keep_artifacts(db, setup->artifacts, folder, sizeof folder, error));
    return setup->place(setup->context, folder, error);
}

enum status postgres_schema_apply(struct db *db, const struct postgres_schema_setup *setup,
                                  struct error *error)
{
    struct error ignored;
    const char *given = setup->artifacts;
    TRY(given[0] != '\0' && given[0] != '/' && !object_storage_is_url(given)
            ? error_set(error, STATUS_USAGE,
                        "store: artifacts=%.300s: expected a path that begins with /, or "
                        "s3://BUCKET/PREFIX",
                        given)
            : STATUS_OK);
    /* Also takes the lock of all writers of this schema. */
    TRY(query_simple(db, STATEMENT_BEGIN, error));
    enum status status = set_up(db, setup, error);

    if (status != STATUS_OK) {
        query_simple(db, STATEMENT_ROLLBACK, &ignored);
        return status;
    }
    return query_simple(db, STATEMENT_COMMIT, error);
}

enum status postgres_schema_check(struct db *db, struct error *error)
{
    int64_t tables = 0;
    TRY(read_int(db, "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('swerve_schema')",
                 &tables, error));
    return tables > 0 ? STATUS_OK
                      : error_set(error, STATUS_STORE, "the PostgreSQL schema holds no store");
}

enum status postgres_schema_look(struct db *db, const char *given, char *out, size_t capacity,
                                 struct error *error)
{
    int64_t version = 0;
    TRY(postgres_schema_check(db, error));
    TRY(read_int(db, "SELECT COALESCE(MAX(version), 0) FROM swerve_schema", &version, error));
    if (version != (int64_t)store_migrations_count) {
        return error_set(error, STATUS_STORE,
                         "the PostgreSQL database has schema version %" PRId64
                         " and this program reads %zu; `swerve status` brings an older one forward",
                         version, store_migrations_count);
    }
    return read_artifacts(db, given, out, capacity, error);
}
