/*
 * The outcome table as CSV, and as JSON rows for converters.
 *
 * Texts are other people's, and tables are looked at: what a terminal would obey, hide or reorder
 * is spelled out, and no cell is a formula (report/csv_cell.h). In JSON that keeps its
 * meaning.
 */
#include "report/export/export.h"
#include "report/export/export_table.h"

#include "base/text.h"
#include "report/csv_cell.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    const struct export_request *request;
    struct export_table table;
    uint32_t parameters; /* where they begin, the last columns */
    /* The parameters' part of a row, for the scenario that the row before was of. */
    char scenario_id[LIMIT_ID_BYTES];
    char *tail; /* owned; NULL: none yet */
    size_t tail_bytes;
};

static void put_real(double value, FILE *out)
{
    char text[TEXT_REAL_BYTES];
    fwrite_unlocked(text, 1, text_real(value, text), out);
}

static void put_integer(int64_t value, FILE *out)
{
    char text[24];
    char *at = text + sizeof text;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        *--at = '-';
    }
    fwrite_unlocked(at, 1, (size_t)(text + sizeof text - at), out);
}

/* False: out of memory. */
static bool put_csv_value(const json_t *value, FILE *out)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return csv_cell_put(json_string_value(value), out);
    case JSON_INTEGER:
        put_integer(json_integer_value(value), out);
        break;
    case JSON_REAL:
        put_real(json_real_value(value), out);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        fputs(json_is_true(value) ? "true" : "false", out);
        break;
    default: /* no value */
        break;
    }
    return true;
}

/* Plain texts and numbers, as most cells are, without a detour. False: it is something else, and
 * nothing was written. */
static bool put_common(const struct export_column *column, const struct outcome *outcome, FILE *out)
{
    const struct json_field *field = column->field;
    const char *text = column->slice >= 0 ? outcome->slice[column->slice] : NULL;
    if (field != NULL) {
        const void *place = (const char *)export_record(column, outcome) + field->offset;
        bool maybe = field->optional || (column->within != NULL && column->within->optional);
        if (maybe) { /* one that is not known is no number */
            return false;
        }
        if (field->kind == JSON_FIELD_I64) {
            put_integer(*(const int64_t *)place, out);
            return true;
        }
        if (field->kind == JSON_FIELD_F64 && isfinite(*(const double *)place)) {
            put_real(*(const double *)place, out);
            return true;
        }
        text = field->kind == JSON_FIELD_TEXT ? place : NULL;
    }
    return text != NULL && csv_cell_put(text, out);
}

static enum status put_cells(const struct writer *writer, uint32_t begin, uint32_t end,
                             const struct outcome *outcome, FILE *out, struct error *error)
{
    for (uint32_t i = begin; i < end; i++) {
        const struct export_column *column = &writer->table.columns[i];
        if (i > 0) {
            putc_unlocked(',', out);
        }
        if (put_common(column, outcome, out)) {
            continue;
        }
        json_t *value = export_value(&writer->table, i, outcome);
        TRY(memory_check(value, error, "export: out of memory"));
        bool put = put_csv_value(value, out);
        json_decref(value);
        if (!put) {
            return error_set(error, STATUS_NO_MEMORY, "export: out of memory");
        }
    }
    return STATUS_OK;
}

/* Rows that follow each other are mostly of one scenario: its parameters are read once. */
static enum status make_tail(struct writer *writer, const struct outcome *outcome,
                             struct error *error)
{
    free(writer->tail);
    writer->tail = NULL;
    FILE *out = open_memstream(&writer->tail, &writer->tail_bytes);
    TRY(memory_check(out, error, "export: out of memory"));
    enum status status =
        put_cells(writer, writer->parameters, writer->table.count, outcome, out, error);
    if (fclose(out) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_NO_MEMORY, "export: out of memory");
    }
    memcpy(writer->scenario_id, outcome->scenario_id, sizeof writer->scenario_id);
    return status;
}

static enum status write_csv_row(void *context, const struct outcome *outcome, struct error *error)
{
    struct writer *writer = context;
    FILE *out = writer->request->out;
    TRY(put_cells(writer, 0, writer->parameters, outcome, out, error));
    if (writer->parameters < writer->table.count) {
        if (writer->tail == NULL || strcmp(writer->scenario_id, outcome->scenario_id) != 0) {
            TRY(make_tail(writer, outcome, error));
        }
        fwrite_unlocked(writer->tail, 1, writer->tail_bytes, out);
    }
    putc_unlocked('\n', out);
    return ferror(out) ? export_stream_check(writer->request, error) : STATUS_OK;
}

static enum status write_json(const struct writer *writer, json_t *json, struct error *error)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    TRY(memory_check(text, error, "export: out of memory"));
    bool bad = text_put(writer->request->out, text) < 0 || fputc('\n', writer->request->out) == EOF;
    int why = errno;
    free(text);
    return bad ? error_set(error, STATUS_IO, "%s: cannot write: %s", writer->request->place,
                           strerror(why))
               : STATUS_OK;
}

static enum status write_json_row(void *context, const struct outcome *outcome, struct error *error)
{
    struct writer *writer = context;
    json_t *row = json_array();
    for (uint32_t i = 0; i < writer->table.count; i++) {
        if (json_array_append_new(row, export_value(&writer->table, i, outcome)) != 0) {
            json_decref(row);
            row = NULL;
            break;
        }
    }
    return write_json(writer, row, error);
}

enum status export_csv(const struct export_request *request, struct error *error)
{
    struct writer writer = {.request = request};
    TRY(export_table_make(request, &writer.table, error));
    bool put = true;
    while (writer.parameters < writer.table.count &&
           writer.table.columns[writer.parameters].parameter == NULL) {
        writer.parameters++;
    }
    for (uint32_t i = 0; i < writer.table.count; i++) {
        if (i > 0) {
            fputc(',', request->out);
        }
        put = csv_cell_put(writer.table.columns[i].name, request->out) && put;
    }
    fputc('\n', request->out);
    enum status status =
        put ? store_outcomes_each(request->store, request->suite_id, write_csv_row, &writer, error)
            : error_set(error, STATUS_NO_MEMORY, "export: out of memory");
    free(writer.tail);
    export_table_finish(&writer.table);
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}

enum status export_rows(const struct export_request *request, struct error *error)
{
    struct writer writer = {.request = request};
    enum status status = export_table_make(request, &writer.table, error);
    json_t *columns = json_array();
    for (uint32_t i = 0; status == STATUS_OK && i < writer.table.count; i++) {
        const struct export_column *column = &writer.table.columns[i];
        json_array_append_new(columns, json_pack("{s:s, s:s}", "name", column->name, "type",
                                                 export_type_names[column->type]));
    }
    if (status == STATUS_OK) {
        status = write_json(&writer, json_pack("{s:O}", "columns", columns), error);
    }
    THEN(status,
         store_outcomes_each(request->store, request->suite_id, write_json_row, &writer, error));
    json_decref(columns);
    export_table_finish(&writer.table);
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}
