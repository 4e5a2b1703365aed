/*
 * swerve export: what a store holds, for other tools (report/export).
 */
#include "cli/cli.h"
#include "report/draw/draw_rig.h"
#include "report/export/export.h"

#include "base/check.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum source { SOURCE_TABLE, SOURCE_SUITE, SOURCE_OUTCOME };

static const struct format {
    const char *name;
    enum source source;
    enum status (*write)(const struct export_request *request, struct error *error); /* NULL: below
                                                                                      */
} formats[] = {
    {"csv", SOURCE_TABLE, export_csv},     {"jsonl", SOURCE_TABLE, export_rows},
    {"parquet", SOURCE_TABLE, NULL},       {"arrow", SOURCE_TABLE, NULL},
    {"junit", SOURCE_SUITE, export_junit}, {"markdown", SOURCE_SUITE, export_markdown},
    {"mcap", SOURCE_OUTCOME, NULL},        {"osi", SOURCE_OUTCOME, NULL},
};

struct export_options {
    const char *store_url;
    const char *suite;
    const char *format;
    const char *output;
    const char *rig;
    int64_t outcome; /* 0: none */
    bool field;
};

static const struct format *find_format(const char *name)
{
    for (size_t i = 0; name != NULL && i < COUNT_OF(formats); i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

static enum status check_options(const struct export_options *options, const struct format *format,
                                 struct error *error)
{
    if (format == NULL) {
        return error_set(
            error, STATUS_USAGE,
            "--format: expected csv, jsonl, parquet, arrow, junit, markdown, mcap or osi, "
            "found \"%s\"",
            options->format != NULL ? options->format : "");
    }
    if ((format->source == SOURCE_OUTCOME) != (options->outcome != 0)) {
        return error_set(error, STATUS_USAGE,
                         format->source == SOURCE_OUTCOME
                             ? "export --format %s: expected the number of one OUTCOME"
                             : "export --format %s: expected no OUTCOME; --suite chooses a suite",
                         format->name);
    }
    if (options->field && format->source != SOURCE_TABLE) {
        return error_set(error, STATUS_USAGE,
                         "--field: expected a table (csv, jsonl, parquet, arrow), found %s",
                         format->name);
    }
    if (options->rig != NULL && strcmp(format->name, "mcap") != 0) {
        return error_set(error, STATUS_USAGE, "--rig: expected --format mcap, found %s",
                         format->name);
    }
    if (options->output == NULL && format->write == NULL) {
        return error_set(error, STATUS_USAGE, "export --format %s: expected -o FILE", format->name);
    }
    return STATUS_OK;
}

/* The suite of a format that is about one: the one named, else the newest. */
static enum status choose_suite(const struct export_options *options, const struct format *format,
                                struct store *store, char id[LIMIT_ID_BYTES],
                                struct export_request *request, struct error *error)
{
    request->suite_id = options->suite;
    if (format->source != SOURCE_SUITE || options->suite != NULL) {
        return STATUS_OK;
    }
    request->suite_id = id;
    return cli_suite_id(store, request->store_url, NULL, id, error);
}

static enum status write_format(const struct export_options *options, const struct format *format,
                                const struct export_request *request, const char *path,
                                struct error *error)
{
    static struct outcome outcome;
    if (format->write != NULL) {
        return format->write(request, error);
    }
    if (format->source == SOURCE_TABLE) {
        return export_arrow(request, format->name, path, error);
    }
    enum status status = cli_outcome_find(request->store, options->outcome, &outcome, error);
    bool osi = strcmp(format->name, "osi") == 0;
    THEN(status,
         osi ? export_osi(request, &outcome, error) : export_mcap(request, &outcome, error));
    return status;
}

struct chosen {
    const struct export_options *options;
    const struct format *format;
};

static enum status write_chosen(const void *context, const struct export_request *request,
                                const char *path, struct error *error)
{
    const struct chosen *chosen = context;
    return write_format(chosen->options, chosen->format, request, path, error);
}

static enum status run_export(const struct export_options *options, const struct format *format,
                              struct error *error)
{
    char suite[LIMIT_ID_BYTES];
    struct store *store = NULL;
    struct export_request request = {.store_url = cli_store_url(options->store_url),
                                     .field = options->field};
    static struct rig rig;
    if (options->rig != NULL) {
        TRY(rig_read(options->rig, &rig, NULL, error));
        TRY(draw_rig_check(options->rig, &rig, NULL, error));
        request.rig = &rig;
    }
    TRY(cli_store_open(options->store_url, &store, error));
    request.store = store;
    enum status status = choose_suite(options, format, store, suite, &request, error);
    if (status == STATUS_OK && request.suite_id != NULL) { /* a name that nobody gave is an error */
        struct store_suite_status ignored;
        status = store->ops->suite_status(store, request.suite_id, &ignored, error);
    }
    if (status == STATUS_OK && options->output == NULL) {
        request.out = stdout;
        request.place = "stdout";
        status = write_format(options, format, &request, NULL, error);
        if (status == STATUS_IO && errno == EPIPE) {
            status = STATUS_OK; /* who took what they wanted and left, as head does */
        }
    } else if (status == STATUS_OK) {
        const struct chosen chosen = {options, format};
        status = export_to_file(&request, options->output, write_chosen, &chosen, error);
    }
    store->ops->close(store);
    return status;
}

int command_export(int argc, char **argv)
{
    struct export_options options = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &options.store_url},
        {"--suite", "ID", "only this suite's (junit, markdown: else the newest)",
         .text = &options.suite},
        {"--format", "NAME", "csv, jsonl, parquet, arrow, junit, markdown, mcap, osi",
         .text = &options.format},
        {"--field", NULL, "tables: pdms and epdms too", .flag = &options.field},
        {"--rig", "FILE",
         "mcap: whose sensors are drawn again (those of the scenario's rig, where it was driven "
         "with)",
         .text = &options.rig},
        {"--output", "FILE", "where to write, also -o; csv, jsonl, junit, markdown: else stdout",
         .text = &options.output},
    };
    const struct cli_command command = {
        "export",
        "[OUTCOME] --format NAME [-o FILE]\n"
        "       swerve export usdz SCENARIO.json -o OUT.usdz [--rig RIG.json]",
        "Outcomes as a table (csv, jsonl, parquet, arrow), a suite for a CI system (junit, "
        "markdown),\n"
        "or the drive of one OUTCOME (mcap, osi). usdz: a scenario as a scene of AlpaSim.",
        CLI_ROWS(rows, 0, 1),
    };
    const char *argument = NULL;
    uint32_t count = 0;
    struct error error;
    enum status status = STATUS_OK;
    if (argc > 1 && strcmp(argv[1], "usdz") == 0) { /* of a file, with options of its own */
        return command_export_usdz(argc - 1, argv + 1);
    }
    CLI_PARSE(&command, argc, argv, &argument, &count);
    const struct format *format = find_format(options.format);
    if (count == 1) {
        status = cli_parse_id(argument, &options.outcome, &error);
    }
    THEN(status, check_options(&options, format, &error));
    THEN(status, run_export(&options, format, &error));
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
