/*
 * Columns of the outcome table, the same for every table format: members of the outcome by
 * their names in JSON, "reasons", metrics, "health_" and
 * the measure, futures, "slice_" and the slice, "parameter_" and the grid's parameter.
 */
#ifndef SWERVE_REPORT_EXPORT_EXPORT_TABLE_H
#define SWERVE_REPORT_EXPORT_EXPORT_TABLE_H

#include "report/export/export.h"
#include "schemas/json_record.h"

#include <stdbool.h>

enum export_type {
    EXPORT_INT64 = 0,
    EXPORT_UINT64,
    EXPORT_DOUBLE,
    EXPORT_BOOL,
    EXPORT_STRING,
    EXPORT_TYPE_COUNT
};

extern const char *const export_type_names[EXPORT_TYPE_COUNT];

struct export_column {
    char name[LIMIT_ID_BYTES + 16];
    enum export_type type;
    /* One of: a member of the outcome, a slice, a parameter, reasons, a score of the field, the
     * logical scenario. */
    const struct json_field *field;
    const struct json_field *within; /* the outcome's record that `field` is of; NULL: itself */
    int slice;                       /* -1: none */
    const char *parameter;           /* NULL: none; points into `name` */
    bool reasons;                    /* names, joined by ";" */
    int score;                       /* enum field_score + 1; 0: none */
};

struct export_table {
    uint32_t count;
    struct export_column *columns; /* owned */
};

/* Asks the store for the scenarios of the jobs, to learn which parameters there are and whether all
 * values of one are numbers. Parameters are the last columns, in the order of their names. LIMIT:
 * more than 1,000 of them. */
enum status export_table_make(const struct export_request *request, struct export_table *out,
                              struct error *error);
void export_table_finish(struct export_table *table);

/* The record that the column's member is of. */
const void *export_record(const struct export_column *column, const struct outcome *outcome);

/* A column's value of that outcome as JSON (json_record.h: infinities are texts, NaN is null); a
 * new reference, NULL when memory runs out. */
json_t *export_value(const struct export_table *table, uint32_t index,
                     const struct outcome *outcome);

#endif
