/*
 * The outcome table as CSV, and as JSON rows for converters.
 *
 * Texts are other people's, and tables are looked at: what a terminal would obey, hide or reorder
 * is spelled out (base/text.h). In JSON that keeps its meaning.
 */
#include "worker/export/export.h"
#include "worker/export/export_table.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct writer {
    const struct export_request *request;
    struct export_table table;
};

enum { SPELLED_BYTES_MAX = 6 }; /* of one byte, "\\u001b" */

/* Letters, digits and the like, which most values are. */
static bool is_plain(const char *text)
{
    while (*text >= ' ' && *text <= '~' && *text != ',' && *text != '"') {
        text++;
    }
    return *text == '\0';
}

/* False: out of memory. */
static bool put_csv_text(const char *text, FILE *out)
{
    if (is_plain(text)) {
        fputs(text, out);
        return true;
    }
    size_t capacity = strlen(text) * SPELLED_BYTES_MAX + 1;
    char *spelled = malloc(capacity);
    if (spelled == NULL) {
        return false;
    }
    text_escape(text, TEXT_LINES, spelled, capacity);
    const char *quote = strpbrk(spelled, ",\"\n") != NULL ? "\"" : "";
    fputs(quote, out);
    for (const char *at = spelled; *at != '\0'; at++) {
        if (*at == '"') {
            fputc('"', out);
        }
        fputc(*at, out);
    }
    fputs(quote, out);
    free(spelled);
    return true;
}

/* The fewest digits that read back as the same number. */
static void put_real(double value, FILE *out)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, out);
}

/* False: out of memory. */
static bool put_csv_value(const json_t *value, FILE *out)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return put_csv_text(json_string_value(value), out);
    case JSON_INTEGER:
        fprintf(out, "%lld", (long long)json_integer_value(value));
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

static enum status write_csv_row(void *context, const struct outcome *outcome, struct error *error)
{
    struct writer *writer = context;
    FILE *out = writer->request->out;
    TRY(export_table_row(&writer->table, outcome, error));
    for (uint32_t i = 0; i < writer->table.count; i++) {
        json_t *value = export_value(&writer->table, i, outcome);
        TRY(memory_check(value, error, "export: out of memory"));
        if (i > 0) {
            fputc(',', out);
        }
        bool put = put_csv_value(value, out);
        json_decref(value);
        if (!put) {
            return error_set(error, STATUS_NO_MEMORY, "export: out of memory");
        }
    }
    fputc('\n', out);
    return ferror(out) ? export_stream_check(writer->request, error) : STATUS_OK;
}

static enum status write_json(const struct writer *writer, json_t *json, struct error *error)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    TRY(memory_check(text, error, "export: out of memory"));
    bool bad = text_put(writer->request->out, text) < 0 || fputc('\n', writer->request->out) == EOF;
    free(text);
    return bad ? error_set(error, STATUS_IO, "%s: cannot write", writer->request->place)
               : STATUS_OK;
}

static enum status write_json_row(void *context, const struct outcome *outcome, struct error *error)
{
    struct writer *writer = context;
    TRY(export_table_row(&writer->table, outcome, error));
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
    for (uint32_t i = 0; i < writer.table.count; i++) {
        if (i > 0) {
            fputc(',', request->out);
        }
        put = put_csv_text(writer.table.columns[i].name, request->out) && put;
    }
    fputc('\n', request->out);
    enum status status =
        put ? store_outcomes_each(request->store, request->suite_id, write_csv_row, &writer, error)
            : error_set(error, STATUS_NO_MEMORY, "export: out of memory");
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
