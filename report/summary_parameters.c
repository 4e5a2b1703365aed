/*
 * Counting by the values that a grid varied. They are in the ids of its scenarios
 * (schemas/scenario_id.h), so that they need no slice of their own in any file.
 *
 * A parameter that never varies says what its logical scenario says already and has no rows; one of
 * more than SUMMARY_PARAMETER_VALUES_MAX values is a range, whose rows would be a list of its
 * rollouts: it is named without them.
 */
#include "report/summary.h"

#include "base/array.h"
#include "schemas/scenario_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* Numbers by size and before texts. */
static int compare_values(const char *a, const char *b)
{
    double x = 0;
    double y = 0;
    bool number_a = read_number(a, &x);
    bool number_b = read_number(b, &y);
    if (number_a != number_b) {
        return number_a ? -1 : 1;
    }
    int order = number_a ? (x > y) - (x < y) : 0;
    return order != 0 ? order : strcmp(a, b);
}

static int compare_rows(const void *a, const void *b)
{
    const struct summary_row *x = a;
    const struct summary_row *y = b;
    int order = strcmp(x->group, y->group);
    return order != 0 ? order : compare_values(x->value, y->value);
}

static int compare_parameters(const void *a, const void *b)
{
    const struct summary_parameter *x = a;
    const struct summary_parameter *y = b;
    return strcmp(x->name, y->name);
}

static struct summary_row *find_row(const struct summary *summary, const char *name,
                                    const char *value)
{
    for (uint32_t i = 0; i < summary->parameter_row_count; i++) {
        struct summary_row *row = &summary->parameter_rows[i];
        if (strcmp(row->group, name) == 0 && strcmp(row->value, value) == 0) {
            return row;
        }
    }
    return NULL;
}

static enum status find_parameter(struct summary *summary, const char *name,
                                  struct summary_parameter **out, struct error *error)
{
    for (uint32_t i = 0; i < summary->parameter_count; i++) {
        *out = &summary->parameters[i];
        if (strcmp((*out)->name, name) == 0) {
            return STATUS_OK;
        }
    }
    TRY(array_room(&summary->parameters, summary->parameter_count, sizeof *summary->parameters,
                   error));
    *out = &summary->parameters[summary->parameter_count++];
    **out = (struct summary_parameter){.count = 0};
    snprintf((*out)->name, sizeof(*out)->name, "%s", name);
    return STATUS_OK;
}

/* Terminated copies: an id bounds both. */
static void copy_parameter(const struct scenario_id_parameter *parameter, char name[LIMIT_ID_BYTES],
                           char value[LIMIT_ID_BYTES])
{
    snprintf(name, LIMIT_ID_BYTES, "%.*s", (int)parameter->name_bytes, parameter->name);
    snprintf(value, LIMIT_ID_BYTES, "%.*s", (int)parameter->value_bytes, parameter->value);
}

static enum status note_values(struct summary *summary, const char *scenario_id,
                               struct error *error)
{
    char name[LIMIT_ID_BYTES];
    char value[LIMIT_ID_BYTES];
    struct scenario_id_parameter parameter;
    struct summary_parameter *found;
    const char *at = scenario_id_parameters(scenario_id);
    while (scenario_id_next(&at, &parameter)) {
        copy_parameter(&parameter, name, value);
        TRY(find_parameter(summary, name, &found, error));
        if (found->count > SUMMARY_PARAMETER_VALUES_MAX || find_row(summary, name, value) != NULL) {
            continue;
        }
        if (++found->count > SUMMARY_PARAMETER_VALUES_MAX) {
            continue;
        }
        TRY(array_room(&summary->parameter_rows, summary->parameter_row_count,
                       sizeof *summary->parameter_rows, error));
        struct summary_row *row = &summary->parameter_rows[summary->parameter_row_count++];
        *row = (struct summary_row){.main_total = 0};
        snprintf(row->group, sizeof row->group, "%s", name);
        snprintf(row->value, sizeof row->value, "%s", value);
    }
    return STATUS_OK;
}

/* Keeps the rows of parameters that vary over a countable few values, in order. */
static void keep_varied(struct summary *summary)
{
    uint32_t rows = 0;
    uint32_t kept = 0;
    if (summary->parameter_row_count == 0) {
        return;
    }
    qsort(summary->parameters, summary->parameter_count, sizeof *summary->parameters,
          compare_parameters);
    qsort(summary->parameter_rows, summary->parameter_row_count, sizeof *summary->parameter_rows,
          compare_rows);
    uint32_t from = 0;
    for (uint32_t i = 0; i < summary->parameter_count; i++) {
        struct summary_parameter parameter = summary->parameters[i];
        bool listed = parameter.count > 1 && parameter.count <= SUMMARY_PARAMETER_VALUES_MAX;
        bool varies = parameter.count > 1;
        parameter.first = rows;
        parameter.count = 0;
        for (; from < summary->parameter_row_count &&
               strcmp(summary->parameter_rows[from].group, parameter.name) == 0;
             from++) {
            if (listed) {
                summary->parameter_rows[rows++] = summary->parameter_rows[from];
                parameter.count++;
            }
        }
        if (varies) {
            summary->parameters[kept++] = parameter;
        }
    }
    summary->parameter_count = kept;
    summary->parameter_row_count = rows;
}

enum status summary_parameters(struct summary *summary, struct error *error)
{
    char name[LIMIT_ID_BYTES];
    char value[LIMIT_ID_BYTES];
    struct scenario_id_parameter parameter;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        TRY(note_values(summary, summary->outcomes[i].scenario_id, error));
    }
    keep_varied(summary);
    for (uint32_t i = 0; i < summary->outcome_count && summary->parameter_row_count > 0; i++) {
        const struct summary_place *place = &summary->order[i];
        const struct kept_outcome *outcome = &summary->outcomes[place->index];
        const char *at = scenario_id_parameters(outcome->scenario_id);
        while (scenario_id_next(&at, &parameter)) {
            copy_parameter(&parameter, name, value);
            struct summary_row *row = find_row(summary, name, value);
            if (row != NULL) {
                summary_add_counts(row, outcome, summary->outcome_usd[place->index]);
                TRY(summary_add_rates(row, place, outcome, error));
            }
        }
    }
    return STATUS_OK;
}

json_t *summary_parameters_json(const struct summary *summary)
{
    json_t *json = json_object();
    for (uint32_t i = 0; i < summary->parameter_count; i++) {
        const struct summary_parameter *parameter = &summary->parameters[i];
        json_t *values = json_object();
        for (uint32_t k = 0; k < parameter->count; k++) {
            const struct summary_row *row = &summary->parameter_rows[parameter->first + k];
            json_object_set_new(values, row->value, summary_row_json(row));
        }
        json_object_set_new(json, parameter->name, values);
    }
    return json;
}
