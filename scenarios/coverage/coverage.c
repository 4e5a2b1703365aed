/*
 * Counting what the scenarios of a suite cover.
 */
#include "scenarios/coverage/coverage.h"

#include "base/array.h"
#include "schemas/scenario_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISTINCT_MAX = 4096 };

/* ---- values and pairs ---- */

static void count_tags(struct coverage *coverage, const struct scenario *scenario)
{
    uint32_t tags[ODD_ATTRIBUTE_COUNT];
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        tags[a] = odd_tags(scenario, (enum odd_attribute)a);
    }
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        for (uint32_t i = 0; i < odd_axes[a].count; i++) {
            if ((tags[a] >> i & 1) == 0) {
                continue;
            }
            coverage->count[a][i]++;
            for (int b = 0; b < ODD_ATTRIBUTE_COUNT; b++) {
                for (uint32_t k = 0; k < odd_axes[b].count; k++) {
                    coverage->pair[a][i][b][k] += tags[b] >> k & 1;
                }
            }
        }
    }
}

void coverage_values(const struct coverage *coverage, uint32_t *covered, uint32_t *all)
{
    *covered = *all = 0;
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        for (uint32_t i = 0; i < odd_axes[a].count; i++) {
            *covered += coverage->count[a][i] > 0;
            (*all)++;
        }
    }
}

void coverage_crossed(const struct coverage *coverage, enum odd_attribute a, enum odd_attribute b,
                      uint32_t *covered, uint32_t *all)
{
    *covered = 0;
    *all = odd_axes[a].count * odd_axes[b].count;
    for (uint32_t i = 0; i < odd_axes[a].count; i++) {
        for (uint32_t k = 0; k < odd_axes[b].count; k++) {
            *covered += coverage->pair[a][i][b][k] > 0;
        }
    }
}

void coverage_pairs(const struct coverage *coverage, uint32_t *covered, uint32_t *all)
{
    *covered = *all = 0;
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        for (int b = a + 1; b < ODD_ATTRIBUTE_COUNT; b++) {
            uint32_t cells;
            uint32_t hit;
            coverage_crossed(coverage, (enum odd_attribute)a, (enum odd_attribute)b, &hit, &cells);
            *covered += hit;
            *all += cells;
        }
    }
}

/* ---- parameters ---- */

static struct coverage_logical *find_logical(struct coverage *coverage,
                                             const struct suite_entry *entry)
{
    const char *id = entry->document->scenario.id;
    size_t bytes = scenario_id_logical_bytes(id);
    for (uint32_t i = coverage->logical_count; i-- > 0;) {
        const struct coverage_logical *logical = &coverage->logical[i];
        if (logical->id_bytes == bytes && memcmp(logical->id, id, bytes) == 0) {
            return &coverage->logical[i];
        }
    }
    struct coverage_logical *added = &coverage->logical[coverage->logical_count++];
    added->id = id;
    added->id_bytes = bytes;
    added->file = entry->file;
    added->seen = json_object();
    return added->seen != NULL ? added : NULL;
}

static struct coverage_parameter *find_parameter(struct coverage_logical *logical, const char *name)
{
    for (uint32_t i = 0; i < logical->parameter_count; i++) {
        if (strcmp(logical->parameters[i].name, name) == 0) {
            return &logical->parameters[i];
        }
    }
    struct coverage_parameter *added = &logical->parameters[logical->parameter_count++];
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

static bool add_value(struct coverage_parameter *parameter, const json_t *value)
{
    char text[COVERAGE_TEXT_BYTES];
    if (json_is_string(value)) {
        parameter->words = true;
        snprintf(text, sizeof text, "%s", json_string_value(value));
    } else {
        double number = json_number_value(value);
        bool first = parameter->distinct == 0;
        parameter->least = first || number < parameter->least ? number : parameter->least;
        parameter->most = first || number > parameter->most ? number : parameter->most;
        snprintf(text, sizeof text, "%.6g", number);
    }
    for (uint32_t i = 0; i < parameter->distinct; i++) {
        if (strcmp(parameter->values[i], text) == 0) {
            return true;
        }
    }
    if (parameter->distinct == DISTINCT_MAX) {
        return true;
    }
    if (array_room(&parameter->values, parameter->distinct, sizeof *parameter->values, NULL) !=
        STATUS_OK) {
        return false;
    }
    memcpy(parameter->values[parameter->distinct++], text, sizeof text);
    return true;
}

static bool add_parameters(struct coverage_logical *logical, const char *text)
{
    const char *name;
    json_t *value;
    json_t *values = json_loads(text, 0, NULL);
    bool good = values != NULL;
    if (good && json_object_get(logical->seen, text) == NULL) {
        good = json_object_set_new(logical->seen, text, json_true()) == 0;
        logical->points++;
    }
    json_object_foreach (values, name, value) {
        good = good && add_value(find_parameter(logical, name), value);
    }
    json_decref(values);
    return good;
}

enum status coverage_load(const struct suite *suite, struct coverage **out, struct error *error)
{
    struct coverage *coverage = calloc(1, sizeof *coverage);
    if (coverage != NULL) {
        coverage->logical = calloc(suite->entry_count + 1, sizeof *coverage->logical);
    }
    bool good = coverage != NULL && coverage->logical != NULL;
    for (uint32_t i = 0; good && i < suite->entry_count; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        struct coverage_logical *logical = find_logical(coverage, entry);
        count_tags(coverage, &entry->document->scenario);
        coverage->scenarios++;
        good = logical != NULL && add_parameters(logical, entry->document->parameters);
        if (logical != NULL) {
            logical->concrete++;
        }
    }
    if (!good) {
        coverage_destroy(coverage);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", suite->id);
    }
    *out = coverage;
    return STATUS_OK;
}

void coverage_destroy(struct coverage *coverage)
{
    if (coverage == NULL) {
        return;
    }
    for (uint32_t i = 0; i < coverage->logical_count; i++) {
        for (uint32_t k = 0; k < coverage->logical[i].parameter_count; k++) {
            free(coverage->logical[i].parameters[k].values);
        }
        json_decref(coverage->logical[i].seen);
    }
    free(coverage->logical);
    free(coverage);
}

/* ---- JSON ---- */

static json_t *attributes_json(const struct coverage *coverage)
{
    json_t *list = json_array();
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        json_t *values = json_object();
        for (uint32_t i = 0; i < odd_axes[a].count; i++) {
            json_object_set_new(values, odd_axes[a].values[i], json_integer(coverage->count[a][i]));
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "attribute", odd_axes[a].name,
                                              "group", odd_axes[a].group, "term", odd_axes[a].term,
                                              "scenarios", values));
    }
    return list;
}

static json_t *crossed_json(const struct coverage *coverage, int a, int b)
{
    uint32_t covered;
    uint32_t all;
    json_t *missing = json_array();
    coverage_crossed(coverage, (enum odd_attribute)a, (enum odd_attribute)b, &covered, &all);
    for (uint32_t i = 0; i < odd_axes[a].count; i++) {
        for (uint32_t k = 0; k < odd_axes[b].count; k++) {
            if (coverage->pair[a][i][b][k] == 0) {
                json_array_append_new(
                    missing, json_pack("[s, s]", odd_axes[a].values[i], odd_axes[b].values[k]));
            }
        }
    }
    return json_pack("{s:[s, s], s:i, s:i, s:o}", "attributes", odd_axes[a].name, odd_axes[b].name,
                     "covered", (int)covered, "all", (int)all, "not_covered", missing);
}

static json_t *logical_json(const struct coverage_logical *logical)
{
    json_t *parameters = json_object();
    for (uint32_t i = 0; i < logical->parameter_count; i++) {
        const struct coverage_parameter *parameter = &logical->parameters[i];
        json_t *values = json_array();
        for (uint32_t k = 0; k < parameter->distinct; k++) {
            json_array_append_new(values, json_string(parameter->values[k]));
        }
        json_t *row = json_pack("{s:o}", "values", values);
        if (!parameter->words) {
            json_object_set_new(row, "least", json_real(parameter->least));
            json_object_set_new(row, "most", json_real(parameter->most));
        }
        json_object_set_new(parameters, parameter->name, row);
    }
    return json_pack("{s:s%, s:s, s:i, s:i, s:o}", "id", logical->id, logical->id_bytes, "file",
                     logical->file, "concrete", (int)logical->concrete, "points",
                     (int)logical->points, "parameters", parameters);
}

json_t *coverage_json(const struct coverage *coverage)
{
    uint32_t values;
    uint32_t values_all;
    uint32_t pairs;
    uint32_t pairs_all;
    json_t *crossed = json_array();
    json_t *logical = json_array();
    json_t *never = json_array();
    coverage_values(coverage, &values, &values_all);
    coverage_pairs(coverage, &pairs, &pairs_all);
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        for (int b = a + 1; b < ODD_ATTRIBUTE_COUNT; b++) {
            json_array_append_new(crossed, crossed_json(coverage, a, b));
        }
    }
    for (uint32_t i = 0; i < coverage->logical_count; i++) {
        json_array_append_new(logical, logical_json(&coverage->logical[i]));
    }
    for (size_t i = 0; odd_not_expressible[i] != NULL; i++) {
        json_array_append_new(never, json_string(odd_not_expressible[i]));
    }
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "scenarios",
                     (int)coverage->scenarios, "values_covered", (int)values, "values",
                     (int)values_all, "pairs_covered", (int)pairs, "pairs", (int)pairs_all,
                     "attributes", attributes_json(coverage), "crossed", crossed, "logical",
                     logical, "not_expressible", never);
}
