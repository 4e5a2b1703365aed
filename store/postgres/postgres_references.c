/*
 * References between rows. See postgres_references.h.
 *
 * The server's own list of foreign keys says what refers to what, so a new table needs nothing
 * here. Keys of one column, as all of the store's are.
 */
#include "store/postgres/postgres_references.h"

#include "store/sql/db.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

enum { SQL_BYTES = 1024 };

/* SQL that finds the rows of each key, in front of how many. */
static const char keys[] =
    "SELECT CAST(r.relname AS TEXT), CAST(p.relname AS TEXT), CAST(k.conname AS TEXT),"
    " k.convalidated, format('SELECT CAST(c.ctid AS TEXT), CAST(c.%1$I AS TEXT)"
    " FROM %2$I.%3$I c WHERE c.%1$I IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM %2$I.%4$I p WHERE p.%5$I = c.%1$I) LIMIT ', a.attname, n.nspname, r.relname,"
    " p.relname, f.attname)"
    " FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace"
    " JOIN pg_class r ON r.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid"
    " JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]"
    " JOIN pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[1]"
    " WHERE k.contype = 'f' AND n.nspname = current_schema() AND array_length(k.conkey, 1) = 1"
    " ORDER BY 1, 3";

struct key {
    char table[64];
    char parent[64];
    char name[64];
    bool valid;
    char sql[SQL_BYTES];
};

static enum status look_at(struct db *db, struct key *key, uint32_t max,
                           const struct postgres_references_visit *visit, void *context,
                           struct error *error)
{
    char sql[SQL_BYTES + 16];
    char place[192];
    char row[64];
    char value[64];

    if (!key->valid) {
        visit->loose(context, key->table, key->name);
    }
    snprintf(sql, sizeof sql, "%s%" PRIu32, key->sql, max);
    struct query query = query_begin_sql(db, sql);
    while (query_row(&query)) {
        query_column_text(&query, 0, row, sizeof row);
        query_column_text(&query, 1, value, sizeof value);
        snprintf(place, sizeof place, "%.48s row %.24s (%.48s %.48s)", key->table, row, key->parent,
                 value);
        visit->reference(context, place, key->parent);
    }
    return query_end(&query, error);
}

enum status postgres_references(struct db *db, uint32_t max,
                                const struct postgres_references_visit *visit, void *context,
                                struct error *error)
{
    struct query query = query_begin_sql(db, keys);
    enum status status = STATUS_OK;

    while (status == STATUS_OK && query_row(&query)) { /* which holds its rows */
        struct key key;
        query_column_text(&query, 0, key.table, sizeof key.table);
        query_column_text(&query, 1, key.parent, sizeof key.parent);
        query_column_text(&query, 2, key.name, sizeof key.name);
        key.valid = query_column_int(&query, 3) != 0;
        query_column_text(&query, 4, key.sql, sizeof key.sql);
        status = look_at(db, &key, max, visit, context, error);
    }
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    return status == STATUS_OK ? ended : status;
}
