/*
 * swerve correlate: how far ego's models and reactive traffic go from recorded drives.
 */
#include "cli/cli.h"
#include "report/correlate/correlate.h"

#include <stdio.h>

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

int command_correlate(int argc, char **argv)
{
    bool json = false;
    const struct cli_option rows[] = {
        {"--json", NULL, "print one JSON object", .flag = &json},
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
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = add_suite(&correlate, paths[i], &error);
    }
    if (status == STATUS_OK && correlate.scenes == 0) {
        status = error_set(&error, STATUS_BAD_INPUT,
                           "%s: expected scenarios with recorded vehicles (ego's \"log\", agents "
                           "with a \"trajectory\"), found none",
                           paths[0]);
    }
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    if (json) {
        return cli_print_json(correlate_json(&correlate));
    }
    correlate_print(&correlate, stdout);
    return 0;
}
