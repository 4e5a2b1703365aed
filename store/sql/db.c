/*
 * Calls through the table of a database's driver. See db.h.
 *
 * Nothing is decided here: what a NULL or an empty value means is the same for every driver, the
 * rest is the driver's.
 */
#include "store/sql/db.h"

#include "base/check.h"

void db_close(struct db *db)
{
    if (db != NULL) {
        db->driver->close(db);
    }
}

void db_limit(struct db *db, int64_t limit_ms)
{
    db->driver->limit(db, limit_ms);
}

void db_interrupt(struct db *db)
{
    db->driver->interrupt(db);
}

bool db_in_transaction(const struct db *db)
{
    return db->driver->in_transaction(db);
}

bool db_failed(const struct db *db)
{
    return db->driver->failed(db);
}

bool db_shares(const struct db *db)
{
    return db->driver->shares;
}

int64_t db_last_id(const struct db *db)
{
    return db->driver->last_id(db);
}

int64_t db_changes(const struct db *db)
{
    return db->driver->changes(db);
}

int db_wal_pages(const struct db *db)
{
    return db->driver->wal_pages(db);
}

enum status db_checkpoint(struct db *db, struct error *error)
{
    return db->driver->checkpoint(db, error);
}

enum status db_durable(struct db *db, struct error *error)
{
    return db->driver->durable != NULL ? db->driver->durable(db, error) : STATUS_OK;
}

struct query query_begin(struct db *db, enum statement statement)
{
    CHECK((int)statement >= 0 && statement < STATEMENT_COUNT);
    return db->driver->begin(db, statement);
}

struct query query_begin_sql(struct db *db, const char *sql)
{
    return db->driver->begin_sql(db, sql);
}

void query_int(struct query *query, int64_t value)
{
    query->db->driver->bind_int(query, value);
}

void query_real(struct query *query, double value)
{
    query->db->driver->bind_real(query, value);
}

void query_text(struct query *query, const char *text)
{
    query->db->driver->bind_text(query, text);
}

void query_blob(struct query *query, const void *data, size_t bytes)
{
    query->db->driver->bind_blob(query, data, bytes);
}

void query_null(struct query *query)
{
    query->db->driver->bind_null(query);
}

void query_int_or_null(struct query *query, int64_t value)
{
    if (value == 0) {
        query_null(query);
    } else {
        query_int(query, value);
    }
}

void query_text_or_null(struct query *query, const char *text)
{
    if (text[0] == '\0') {
        query_null(query);
    } else {
        query_text(query, text);
    }
}

bool query_row(struct query *query)
{
    query->column = 0;
    return query->db->driver->row(query);
}

bool query_column_is_null(const struct query *query, int column)
{
    return query->db->driver->column_is_null(query, column);
}

int64_t query_column_int(const struct query *query, int column)
{
    return query->db->driver->column_int(query, column);
}

double query_column_real(const struct query *query, int column)
{
    return query->db->driver->column_real(query, column);
}

void query_column_text(struct query *query, int column, char *out, size_t capacity)
{
    query->db->driver->column_text(query, column, out, capacity);
}

int64_t query_take_int(struct query *query)
{
    return query_column_int(query, query->column++);
}

void query_take_text(struct query *query, char *out, size_t capacity)
{
    query_column_text(query, query->column++, out, capacity);
}

bool query_column_overflow(struct query *query)
{
    return query->db->driver->column_overflow(query);
}

const void *query_column_blob(const struct query *query, int column, size_t *bytes)
{
    return query->db->driver->column_blob(query, column, bytes);
}

enum status query_end(struct query *query, struct error *error)
{
    return query->db->driver->end(query, error);
}

enum status query_run(struct query *query, struct error *error)
{
    while (query_row(query)) {
    }
    return query_end(query, error);
}

enum status query_send(struct query *query, struct error *error)
{
    if (query->db->driver->send == NULL) {
        return query_run(query, error);
    }
    query->db->driver->send(query);
    return query_end(query, error);
}

enum status query_simple(struct db *db, enum statement statement, struct error *error)
{
    struct query query = query_begin(db, statement);
    return query_run(&query, error);
}
