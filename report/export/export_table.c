/*
 * The outcome table's columns and values. See export_table.h.
 */
#include "report/export/export_table.h"

#include "base/array.h"

#include "schemas/field/field.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS_MAX = 1000 };

const char *const export_type_names[EXPORT_TYPE_COUNT] = {"int64", "uint64", "double", "bool",
                                                          "string"};

static const char logical_name[] = "logical_scenario";
static const char parameter_prefix[] = "parameter_";

static enum export_type field_type(const struct json_field *field)
{
    switch (field->kind) {
    case JSON_FIELD_I64:
    case JSON_FIELD_I32:
    case JSON_FIELD_U32:
    case JSON_FIELD_U32_OR_NULL:
        return EXPORT_INT64;
    case JSON_FIELD_U64:
        return EXPORT_UINT64;
    case JSON_FIELD_F64:
        return EXPORT_DOUBLE;
    case JSON_FIELD_BOOL:
        return EXPORT_BOOL;
    case JSON_FIELD_TEXT:
    case JSON_FIELD_NAME:
    case JSON_FIELD_BITS:
    case JSON_FIELD_RECORD: /* not of the lists that become columns */
        break;
    }
    return EXPORT_STRING;
}

/* A number as CSV and every table format read it, the whole of the text. */
static bool parse_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && strspn(text, "+-.0123456789eE") == strlen(text);
}

/* Terminated copy of a parameter's value; ids bound its length. */
static void copy_value(const struct scenario_id_parameter *parameter, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "%.*s", (int)parameter->value_bytes, parameter->value);
}

static enum status append(struct export_table *table, const struct export_column *column,
                          struct error *error)
{
    TRY(array_room(&table->columns, table->count, sizeof *column, error));
    table->columns[table->count++] = *column;
    return STATUS_OK;
}

/* The member of an outcome that is a record of these; NULL: they are its own. */
static const struct json_field *record_of(const struct json_field_list *list)
{
    for (size_t i = 0; i < outcome_record.count; i++) {
        if (outcome_record.fields[i].list == list) {
            return &outcome_record.fields[i];
        }
    }
    return NULL;
}

const void *export_record(const struct export_column *column, const struct outcome *outcome)
{
    return (const char *)outcome + (column->within != NULL ? column->within->offset : 0);
}

static enum status append_fields(struct export_table *table, const struct json_field_list *list,
                                 const char *prefix, struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        struct export_column column = {
            .field = &list->fields[i], .within = record_of(list), .slice = -1};
        column.type = field_type(column.field);
        snprintf(column.name, sizeof column.name, "%s%s", prefix, column.field->name);
        TRY(append(table, &column, error));
    }
    return STATUS_OK;
}

static enum status append_rest(struct export_table *table, struct error *error)
{
    struct export_column reasons = {
        .name = "reasons", .type = EXPORT_STRING, .slice = -1, .reasons = true};
    struct export_column logical = {.type = EXPORT_STRING, .slice = -1};
    snprintf(logical.name, sizeof logical.name, "%s", logical_name);
    enum status status = append(table, &logical, error);
    THEN(status, append(table, &reasons, error));
    for (int i = 0; status == STATUS_OK && i < SLICE_KIND_COUNT; i++) {
        struct export_column slice = {.type = EXPORT_STRING, .slice = i};
        snprintf(slice.name, sizeof slice.name, "slice_%s", slice_names[i]);
        status = append(table, &slice, error);
    }
    return status;
}

/* Notes the parameters of one scenario among the columns. */
static enum status note_parameters(void *context, const char *scenario_id, struct error *error)
{
    struct export_table *parameters = context;
    struct scenario_id_parameter parameter;
    const char *at = scenario_id_parameters(scenario_id);
    while (scenario_id_next(&at, &parameter)) {
        struct export_column column = {.type = EXPORT_DOUBLE, .slice = -1};
        char value[LIMIT_ID_BYTES];
        double number;
        uint32_t i = 0;
        snprintf(column.name, sizeof column.name, "%s%.*s", parameter_prefix,
                 (int)parameter.name_bytes, parameter.name);
        while (i < parameters->count && strcmp(parameters->columns[i].name, column.name) != 0) {
            i++;
        }
        if (i == PARAMETERS_MAX) {
            return error_set(error, STATUS_LIMIT, "export: expected at most %d parameters",
                             PARAMETERS_MAX);
        }
        if (i == parameters->count) {
            TRY(append(parameters, &column, error));
        }
        copy_value(&parameter, value);
        if (!parse_number(value, &number)) {
            parameters->columns[i].type = EXPORT_STRING;
        }
    }
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct export_column *)a)->name, ((const struct export_column *)b)->name);
}

enum status export_table_make(const struct export_request *request, struct export_table *out,
                              struct error *error)
{
    struct export_table table = {0};
    struct export_table parameters = {0};
    enum status status = store_scenarios_each(request->store, request->suite_id, note_parameters,
                                              &parameters, error);
    THEN(status, append_fields(&table, &outcome_field_list, "", error));
    THEN(status, append_rest(&table, error));
    THEN(status, append_fields(&table, &metric_field_list, "", error));
    THEN(status, append_fields(&table, &drive_health_field_list, "health_", error));
    THEN(status, append_fields(&table, &outcome_futures_field_list, "", error));
    for (int i = 0; status == STATUS_OK && request->field && i < FIELD_SCORE_COUNT; i++) {
        struct export_column score = {.type = EXPORT_DOUBLE, .slice = -1, .score = i + 1};
        snprintf(score.name, sizeof score.name, "%s", field_score_names[i]);
        status = append(&table, &score, error);
    }
    if (parameters.count > 0) {
        qsort(parameters.columns, parameters.count, sizeof *parameters.columns, compare_names);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < parameters.count; i++) {
        status = append(&table, &parameters.columns[i], error);
    }
    export_table_finish(&parameters);
    if (status != STATUS_OK) {
        export_table_finish(&table);
        return status;
    }
    for (uint32_t i = 0; i < table.count; i++) { /* the array moves no more */
        struct export_column *column = &table.columns[i];
        if (column->field == NULL &&
            strncmp(column->name, parameter_prefix, sizeof parameter_prefix - 1) == 0) {
            column->parameter = column->name + sizeof parameter_prefix - 1;
        }
    }
    *out = table;
    return STATUS_OK;
}

void export_table_finish(struct export_table *table)
{
    free(table->columns);
    *table = (struct export_table){0};
}

static json_t *parameter_value(const struct export_column *column, const struct outcome *outcome)
{
    struct scenario_id_parameter parameter;
    const char *at = scenario_id_parameters(outcome->scenario_id);
    size_t bytes = strlen(column->parameter);
    while (scenario_id_next(&at, &parameter)) {
        char value[LIMIT_ID_BYTES];
        double number;
        if (parameter.name_bytes != bytes ||
            memcmp(parameter.name, column->parameter, bytes) != 0) {
            continue;
        }
        copy_value(&parameter, value);
        if (column->type == EXPORT_DOUBLE && parse_number(value, &number)) {
            return json_real(number);
        }
        return json_text_new(value, sizeof value);
    }
    return json_null();
}

json_t *export_value(const struct export_table *table, uint32_t index,
                     const struct outcome *outcome)
{
    const struct export_column *column = &table->columns[index];
    if (column->score > 0) {
        double scores[FIELD_SCORE_COUNT];
        field_scores_of(outcome->verdict, &outcome->metrics, scores);
        return json_finite_new(scores[column->score - 1]);
    }
    if (column->field != NULL) {
        const void *record = export_record(column, outcome);
        bool unknown = (column->type == EXPORT_INT64 && json_record_omits(column->field, record)) ||
                       (column->within != NULL && json_record_omits(column->within, outcome));
        return unknown ? json_null() : json_record_value(column->field, record);
    }
    if (column->slice >= 0) {
        return json_text_new(outcome->slice[column->slice], sizeof outcome->slice[0]);
    }
    if (column->parameter != NULL) {
        return parameter_value(column, outcome);
    }
    if (column->reasons) {
        char text[REASONS_TEXT_BYTES];
        return json_string(reasons_text(outcome->reasons, ";", text));
    }
    char logical[LIMIT_ID_BYTES];
    snprintf(logical, sizeof logical, "%.*s", (int)scenario_id_logical_bytes(outcome->scenario_id),
             outcome->scenario_id);
    return json_text_new(logical, sizeof logical);
}
