/*
 * Columns of rows, which come in binary form. See postgres_internal.h.
 */
#include "store/postgres/postgres_internal.h"
#include "store/postgres/postgres_wire.h"

#include <libpq-fe.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool postgres_column_is_null(const struct query *query, int column)
{
    const struct postgres_query *use = postgres_use_of(query);
    return PQgetisnull(use->result, use->row, column) != 0;
}

int64_t postgres_column_int(const struct query *query, int column)
{
    const struct postgres_query *use = postgres_use_of(query);
    const char *data = PQgetvalue(use->result, use->row, column);

    if (postgres_column_is_null(query, column)) {
        return 0;
    }
    switch (PQftype(use->result, column)) {
    case TYPE_BOOL:
        return data[0] != 0;
    case TYPE_INT2:
        return (int16_t)postgres_wire_uint(data, 2);
    case TYPE_INT4:
        return (int32_t)postgres_wire_uint(data, 4);
    case TYPE_INT8:
        return (int64_t)postgres_wire_uint(data, 8);
    case TYPE_FLOAT4:
    case TYPE_FLOAT8:
        return (int64_t)postgres_wire_double(data, PQgetlength(use->result, use->row, column));
    case TYPE_NUMERIC:
        return postgres_wire_numeric(data);
    default: /* as SQLite reads a text */
        return strtoll(data, NULL, 10);
    }
}

double postgres_column_real(const struct query *query, int column)
{
    const struct postgres_query *use = postgres_use_of(query);
    Oid type = PQftype(use->result, column);

    if (postgres_column_is_null(query, column)) {
        return (double)NAN;
    }
    return type == TYPE_FLOAT8 || type == TYPE_FLOAT4
               ? postgres_wire_double(PQgetvalue(use->result, use->row, column),
                                      PQgetlength(use->result, use->row, column))
               : (double)postgres_column_int(query, column);
}

void postgres_column_text(struct query *query, int column, char *out, size_t capacity)
{
    const struct postgres_query *use = postgres_use_of(query);
    size_t bytes = (size_t)PQgetlength(use->result, use->row, column);

    if (bytes >= capacity) {
        query->code = CODE_TOO_BIG;
        bytes = 0;
    }
    memcpy(out, PQgetvalue(use->result, use->row, column), bytes);
    out[bytes] = '\0';
}

bool postgres_column_overflow(struct query *query)
{
    bool overflow = query->code == CODE_TOO_BIG;
    query->code = overflow ? CODE_ROW : query->code;
    return overflow;
}

const void *postgres_column_blob(const struct query *query, int column, size_t *bytes)
{
    const struct postgres_query *use = postgres_use_of(query);
    *bytes = (size_t)PQgetlength(use->result, use->row, column);
    return postgres_column_is_null(query, column) ? NULL
                                                  : PQgetvalue(use->result, use->row, column);
}
