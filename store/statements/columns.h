/*
 * Columns of records: which members of a stored record are columns of its table, and what is read
 * for the others. The members themselves, their order and their kinds are those of the record's
 * JSON table, so that texts of statements, binding and reading (records.h) cannot drift apart.
 *
 * Texts name a record by a mark, which statement_text replaces:
 *   {outcome}        what its members are read as, in their order
 *   {outcome names}  the columns that are written
 *   {outcome ?8}     a parameter for each of those, from ?8 on
 */
#ifndef SWERVE_STORE_STATEMENTS_COLUMNS_H
#define SWERVE_STORE_STATEMENTS_COLUMNS_H

#include "schemas/json_record.h"

#include <stddef.h>
#include <stdio.h>

enum record {
    RECORD_CONTEXT = 0, /* what jobs have alike, of a struct job_spec */
    RECORD_SPEC,
    RECORD_LEASE,
    RECORD_OUTCOME,
    RECORD_TENANT,
    RECORD_MODEL,
    RECORD_MODEL_EVENT,
    RECORD_GOLDEN,
    RECORD_LABEL,
    RECORD_TRUST,      /* an event of trust as stored */
    RECORD_TRUST_TOLD, /* .. and what is told of it */
    RECORD_COUNT
};

/* A member that is no column of that name in the record's table. */
struct column {
    size_t offset;    /* of the member in the record */
    const char *name; /* of its column; NULL: it is not written */
    const char *sql;  /* what it is read as, where it is not written */
};

struct columns {
    const char *mark;
    const char *table; /* its alias in statements */
    const struct json_field_list *fields;
    const struct column *others; /* in the order of their offsets, by which they are found */
    size_t other_count;
};

extern const struct columns record_columns[RECORD_COUNT];

/* The row of the member at this offset; NULL: it is a column of its own name. */
const struct column *columns_other(const struct columns *columns, size_t offset);

/* Writes what stands for a mark's text, without its braces. */
void columns_put(FILE *out, const char *mark, size_t bytes);

#endif
