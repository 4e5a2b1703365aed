/*
 * swerve draw: a scenario before it is driven, in words and as a picture.
 */
#include "cli/cli.h"
#include "cli/draw/draw_choice.h"
#include "report/draw/draw_scenario.h"
#include "report/draw/painter.h"

#include "base/file.h"
#include "base/text.h"
#include "scenarios/scenarios.h"

#include <stdlib.h>

static enum status write_picture(const struct scenario *scenario, const char *path,
                                 struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    bool svg;
    TRY(painter_kind("--output", path, &svg, error));
    TRY(draw_scenario_picture(scenario, svg, &data, &bytes, error));
    enum status status = file_replace(path, data, bytes, 0644, error);
    free(data);
    if (status == STATUS_OK) {
        text_print(stdout, "picture: %s\n", path);
    }
    return status;
}

static enum status draw(const struct suite *suite, const char *id, const char *output,
                        struct error *error)
{
    const struct scenario *scenario = NULL;
    TRY(draw_choose(suite, id, &scenario, error));
    TRY(draw_scenario_print(scenario, stdout, error));
    if (id == NULL && suite->entry_count > 1) {
        text_print(stdout, "the first of %u scenarios; --scenario ID draws another\n",
                   suite->entry_count);
    }
    return output != NULL ? write_picture(scenario, output, error) : STATUS_OK;
}

int command_draw(int argc, char **argv)
{
    const char *output = NULL;
    const char *id = NULL;
    const struct cli_option rows[] = {
        {"--output", "FILE", "also as a picture: FILE.png or FILE.svg (-o)", .text = &output},
        {"--scenario", "ID", "which of a suite, by the beginning of its id", .text = &id},
    };
    const struct cli_command command = {
        "draw",
        "SCENARIO|SUITE [-o FILE.png|svg]",
        "Shows a scenario before it is driven: map, route, goal, agents, paths, triggers.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *path;
    struct error error;
    CLI_PARSE(&command, argc, argv, &path, NULL);
    struct suite *suite = NULL;
    enum status status = cli_suite_load(path, &suite, &error);
    THEN(status, draw(suite, id, output, &error));
    suite_destroy(suite);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
