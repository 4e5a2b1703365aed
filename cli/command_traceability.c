/*
 * swerve traceability: hazard, triggering condition, requirement, scenario, outcome.
 */
#include "cli/cli.h"
#include "report/traceability/traceability.h"

#include "base/file.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGISTER_DEFAULT "traceability_register"

enum format { FORMAT_TABLE = 0, FORMAT_CSV, FORMAT_MARKDOWN, FORMAT_JSON, FORMAT_COUNT };
static const char *const format_names[FORMAT_COUNT] = {"table", "csv", "markdown", "json"};

struct traceability_options {
    const char *path;
    const char *items; /* the register */
    const char *store_url;
    const char *suite; /* in the store; NULL: the newest */
    const char *format_text;
    const char *output;
    enum format format;
};

static enum status read_summary(const struct traceability_options *options, struct summary *summary,
                                struct error *error)
{
    struct store *store = NULL;
    char id[LIMIT_ID_BYTES];
    TRY(cli_store_open(options->store_url, &store, error));
    enum status status = cli_suite_id(store, options->store_url, options->suite, id, error);
    THEN(status, summary_load(store, id, summary, error));
    store->ops->close(store);
    return status;
}

/* False: out of memory. */
static bool write_matrix(const struct trace_matrix *matrix, enum format format, FILE *out)
{
    if (format == FORMAT_CSV) {
        return trace_matrix_csv(matrix, out);
    }
    if (format == FORMAT_MARKDOWN) {
        trace_matrix_markdown(matrix, out);
    } else if (format == FORMAT_TABLE) {
        trace_matrix_print(matrix, out);
    } else {
        json_t *json = trace_matrix_json(matrix);
        if (json != NULL) {
            json_dumpf(json, out, JSON_INDENT(1));
            fputc('\n', out);
        }
        json_decref(json);
    }
    return true;
}

static enum status put_matrix(const struct traceability_options *options,
                              const struct trace_matrix *matrix, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    TRY(memory_check(out, error, "traceability: out of memory"));
    bool written = write_matrix(matrix, options->format, out);
    enum status status =
        fclose(out) == 0 && written ? STATUS_OK : memory_check(NULL, error, "traceability");
    THEN(status, cli_put_text(options->output, text, bytes, error));
    free(text);
    return status;
}

static enum status trace(const struct traceability_options *options, struct error *error)
{
    static struct summary summary;
    char found[LIMIT_PATH_BYTES];
    struct suite *suite = NULL;
    struct trace_register *items = NULL;
    struct trace_matrix matrix;
    enum status status = cli_suite_load(options->path, &suite, error);
    THEN(status, trace_register_load(cli_suite_path(options->items, found), &items, error));
    bool read = status == STATUS_OK && options->store_url != NULL;
    if (read) {
        status = read_summary(options, &summary, error);
        read = status == STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = trace_matrix_make(items, suite, read ? &summary : NULL, &matrix, error);
        if (status == STATUS_OK) {
            status = put_matrix(options, &matrix, error);
            trace_matrix_finish(&matrix);
        }
    }
    if (read) {
        summary_finish(&summary);
    }
    trace_register_destroy(items);
    suite_destroy(suite);
    return status;
}

int command_traceability(int argc, char **argv)
{
    struct traceability_options options = {.items = REGISTER_DEFAULT};
    const struct cli_option rows[] = {
        {"--register", "FILE", "hazards, conditions, requirements (the library's)",
         .text = &options.items},
        {"--store", "URL", "with the results of this job store", .text = &options.store_url},
        {"--suite", "ID", "of the store's suites (the newest)", .text = &options.suite},
        {"--format", "NAME", "table (the default), csv, markdown, json",
         .text = &options.format_text},
        {"--output", "FILE", "write there instead of to stdout", .text = &options.output},
    };
    const struct cli_command command = {
        "traceability",
        "SUITE [options]",
        "Hazards, triggering conditions and requirements, the scenarios that try them, and "
        "results.",
        CLI_ROWS(rows, 1, 1),
    };
    struct error error;
    CLI_PARSE(&command, argc, argv, &options.path, NULL);
    while (options.format_text != NULL && options.format < FORMAT_COUNT &&
           strcmp(format_names[options.format], options.format_text) != 0) {
        options.format++;
    }
    if (options.format == FORMAT_COUNT) {
        error_set(&error, STATUS_USAGE, "--format: expected table, csv, markdown or json; found %s",
                  options.format_text);
        return cli_fail(&error);
    }
    return trace(&options, &error) == STATUS_OK ? 0 : cli_fail(&error);
}
