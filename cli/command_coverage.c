/*
 * swerve coverage: which part of an operational design domain a suite lies in.
 */
#include "cli/cli.h"
#include "scenarios/coverage/coverage.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { LIST_BYTES = 512 };

/* Pairs of attributes that are printed unless others are asked for. */
static const struct {
    enum odd_attribute a, b;
} crossed_default[] = {
    {ODD_ROAD_TYPE, ODD_PRECIPITATION}, {ODD_ROAD_TYPE, ODD_ILLUMINATION},
    {ODD_AGENT, ODD_ILLUMINATION},      {ODD_AGENT, ODD_PRECIPITATION},
    {ODD_AGENT, ODD_ROAD_TYPE},         {ODD_JUNCTION, ODD_AGENT},
};

static void print_values(const struct coverage *coverage)
{
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        const struct odd_axis *axis = &odd_axes[a];
        text_print(stdout, "  %-14s", axis->name);
        for (uint32_t i = 0; i < axis->count; i++) {
            uint32_t count = coverage->count[a][i];
            if (count > 0) {
                text_print(stdout, " %s %u", axis->values[i], count);
            }
        }
        bool any = false;
        for (uint32_t i = 0; i < axis->count; i++) {
            if (coverage->count[a][i] == 0) {
                text_print(stdout, "%s%s", any ? " " : "; none: ", axis->values[i]);
                any = true;
            }
        }
        text_print(stdout, "\n");
    }
}

static void print_crossed(const struct coverage *coverage, enum odd_attribute a,
                          enum odd_attribute b)
{
    uint32_t covered;
    uint32_t all;
    coverage_crossed(coverage, a, b, &covered, &all);
    text_print(stdout, "  %s x %s: %u of %u; none:", odd_axes[a].name, odd_axes[b].name, covered,
               all);
    for (uint32_t i = 0; i < odd_axes[a].count; i++) {
        for (uint32_t k = 0; k < odd_axes[b].count; k++) {
            if (coverage->pair[a][i][b][k] == 0) {
                text_print(stdout, " %s/%s", odd_axes[a].values[i], odd_axes[b].values[k]);
            }
        }
    }
    text_print(stdout, "\n");
}

static void print_logical(const struct coverage_logical *logical)
{
    text_print(stdout, "  %.*s, %s: %u concrete, %u points", (int)logical->id_bytes, logical->id,
               logical->file, logical->concrete, logical->points);
    for (uint32_t i = 0; i < logical->parameter_count; i++) {
        const struct coverage_parameter *parameter = &logical->parameters[i];
        if (parameter->distinct == 1) {
            text_print(stdout, "; %s only %s", parameter->name, parameter->values[0]);
        } else if (parameter->words) {
            text_print(stdout, "; %s", parameter->name);
            for (uint32_t k = 0; k < parameter->distinct; k++) {
                text_print(stdout, " %s", parameter->values[k]);
            }
        } else {
            text_print(stdout, "; %s %g to %g, %u values", parameter->name, parameter->least,
                       parameter->most, parameter->distinct);
        }
    }
    text_print(stdout, "\n");
}

/* "a,b" to two attributes. */
static enum status read_cross(const char *text, enum odd_attribute *a, enum odd_attribute *b,
                              struct error *error)
{
    char name[LIST_BYTES];
    const char *comma = strchr(text, ',');
    snprintf(name, sizeof name, "%.*s", comma != NULL ? (int)(comma - text) : 0, text);
    int first = odd_attribute_find(name);
    int second = comma != NULL ? odd_attribute_find(comma + 1) : -1;
    if (first >= 0 && second >= 0 && first != second) {
        *a = (enum odd_attribute)first;
        *b = (enum odd_attribute)second;
        return STATUS_OK;
    }
    size_t used = 0;
    char list[LIST_BYTES] = "";
    for (int i = 0; i < ODD_ATTRIBUTE_COUNT; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, " %s", odd_axes[i].name);
    }
    return error_set(error, STATUS_USAGE, "--cross: expected two attributes A,B of%s; found %s",
                     list, text);
}

static void print_coverage(const struct suite *suite, const struct coverage *coverage,
                           const struct cli_texts *crosses)
{
    struct error error;
    uint32_t covered;
    uint32_t all;
    text_print(stdout, "%s: %u concrete scenarios of %u logical ones\n", suite->id,
               coverage->scenarios, coverage->logical_count);
    coverage_values(coverage, &covered, &all);
    text_print(stdout, "values of attributes (ISO 34503, BSI PAS 1883): %u of %u\n", covered, all);
    print_values(coverage);
    coverage_pairs(coverage, &covered, &all);
    text_print(stdout, "pairs of values: %u of %u (all in --json)\n", covered, all);
    for (uint32_t i = 0; i < crosses->count; i++) {
        enum odd_attribute a;
        enum odd_attribute b;
        if (read_cross(crosses->values[i], &a, &b, &error) == STATUS_OK) {
            print_crossed(coverage, a, b);
        }
    }
    for (size_t i = 0; crosses->count == 0 && i < COUNT_OF(crossed_default); i++) {
        print_crossed(coverage, crossed_default[i].a, crossed_default[i].b);
    }
    text_print(stdout, "parameters of logical scenarios:\n");
    for (uint32_t i = 0; i < coverage->logical_count; i++) {
        print_logical(&coverage->logical[i]);
    }
    text_print(stdout, "never covered, because no scenario can say it:\n");
    for (size_t i = 0; odd_not_expressible[i] != NULL; i++) {
        text_print(stdout, "  %s\n", odd_not_expressible[i]);
    }
}

int command_coverage(int argc, char **argv)
{
    bool json = false;
    struct cli_texts crosses = {.max = CLI_TEXTS_MAX};
    const struct cli_option rows[] = {
        {"--cross", "A,B", "print this pair of attributes instead of the usual ones; repeatable",
         .texts = &crosses},
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "coverage",
        "SUITE",
        "Says which part of an operational design domain a suite covers; runs nothing.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *path;
    uint32_t count = 0;
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, &path, &count);
    struct suite *suite = NULL;
    struct coverage *coverage = NULL;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < crosses.count && status == STATUS_OK; i++) {
        enum odd_attribute a;
        enum odd_attribute b;
        status = read_cross(crosses.values[i], &a, &b, &error);
    }
    THEN(status, cli_suite_load(path, &suite, &error));
    THEN(status, coverage_load(suite, &coverage, &error));
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (json) {
        code = cli_print_json(coverage_json(coverage));
    } else {
        print_coverage(suite, coverage, &crosses);
    }
    coverage_destroy(coverage);
    suite_destroy(suite);
    return code;
}
