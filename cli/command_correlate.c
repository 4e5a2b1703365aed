/*
 * swerve correlate: how far ego's models and reactive traffic go from recorded drives.
 */
#include "cli/cli.h"
#include "engine/worlds/tokens.h"
#include "report/correlate/correlate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CORRELATE_FILES_MAX = 256 };

static enum status add_suite(struct correlate *correlate, const char *path, struct error *error)
{
    struct suite *suite = NULL;
    enum status status = cli_suite_load(path, &suite, error);
    for (uint32_t i = 0; status == STATUS_OK && i < suite->entry_count; i++) {
        status = correlate_scene(correlate, &suite->entries[i].document->scenario, error);
        if (status != STATUS_OK) {
            error_prefix(error, "%s", suite->entries[i].place);
        }
    }
    suite_destroy(suite);
    return status;
}

static enum status add_suites(struct correlate *correlate, const char **paths, uint32_t count,
                              struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(add_suite(correlate, paths[i], error));
    }
    if (correlate->scenes == 0) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "%s: expected scenarios with recorded vehicles (ego's \"log\", agents with "
            "a \"trajectory\"), found none",
            paths[0]);
    }
    return STATUS_OK;
}

/* The same, with rows written to a file where a path of one is given. */
static enum status add_with_rows(struct correlate *correlate, const char **paths, uint32_t count,
                                 const char *rows_path, struct error *error)
{
    if (rows_path == NULL) {
        return add_suites(correlate, paths, count, error);
    }
    correlate->rows = fopen(rows_path, "wb");
    if (correlate->rows == NULL) {
        return error_set(error, STATUS_IO, "cannot write %s: %s", rows_path, strerror(errno));
    }
    enum status status = add_suites(correlate, paths, count, error);
    if (fclose(correlate->rows) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_IO, "cannot write %s: %s", rows_path, strerror(errno));
    }
    return status;
}

static enum status read_samples(int64_t samples, bool tokens, struct correlate *correlate,
                                struct error *error)
{
    if (samples != 0 && (samples < CORRELATE_SAMPLES_MIN || samples > CORRELATE_SAMPLES_MAX)) {
        return error_set(error, STATUS_USAGE, "--samples: expected %d to %d, found %lld",
                         CORRELATE_SAMPLES_MIN, CORRELATE_SAMPLES_MAX, (long long)samples);
    }
    if (samples != 0 && !tokens) {
        return error_set(error, STATUS_USAGE, "--samples goes with --tokens");
    }
    correlate->samples = (uint32_t)samples;
    return STATUS_OK;
}

int command_correlate(int argc, char **argv)
{
    bool json = false;
    const char *tokens_path = NULL;
    const char *rows_path = NULL;
    int64_t samples = 0;
    const struct cli_option rows[] = {
        {"--json", NULL, "print one JSON object", .flag = &json},
        {"--tokens", "FILE", "a network that foresees too, compared (experimental)",
         .text = &tokens_path},
        {"--samples", "N", "with --tokens: draw N futures of it, and of drivers that differ",
         .number = &samples},
        {"--rows", "FILE", "write what such a network learns from, and compare nothing",
         .text = &rows_path},
    };
    const struct cli_command command = {
        "correlate",
        "SUITE...",
        "How far ego's models and reactive traffic go from the recordings in scenarios.",
        CLI_ROWS(rows, 1, CORRELATE_FILES_MAX),
    };
    const char *paths[CORRELATE_FILES_MAX];
    static struct correlate correlate;
    uint32_t count = 0;
    struct error error;
    CLI_PARSE(&command, argc, argv, paths, &count);
    struct tokens *tokens = NULL;
    enum status status = read_samples(samples, tokens_path != NULL, &correlate, &error);
    THEN(status, tokens_path == NULL ? STATUS_OK : tokens_open(tokens_path, &tokens, &error));
    correlate.tokens = tokens;
    THEN(status, add_with_rows(&correlate, paths, count, rows_path, &error));
    int code = 0;
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (json) {
        code = cli_print_json(correlate_json(&correlate));
    } else {
        correlate_print(&correlate, stdout);
    }
    tokens_close(tokens);
    return code;
}
