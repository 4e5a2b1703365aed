/*
 * swerve scenario: a new scenario to begin with.
 */
#include "cli/cli.h"
#include "scenarios/skeleton/skeleton.h"

#include "base/text.h"

#include <string.h>

int command_scenario(int argc, char **argv)
{
    const struct cli_command command = {
        "scenario",
        "new FILE.json",
        "Writes a scenario to begin with, its members explained, and beside it .swerve/ with the\n"
        "schemas by which an editor (VS Code) completes and checks what you type.",
        NULL,
        0,
        2,
        2,
    };
    const char *arguments[2] = {NULL, NULL};
    struct error error;
    char word[LIMIT_PATH_BYTES];
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    if (strcmp(arguments[0], "new") != 0) {
        error_set(&error, STATUS_USAGE, "scenario: expected new, found \"%.64s\"", arguments[0]);
        return cli_fail(&error);
    }
    if (skeleton_write(arguments[1], &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    const char *path = text_shell_word(arguments[1], word, sizeof word);
    text_print(stdout, "%s\n", path);
    text_print_lines(stdout,
                     "next: swerve validate %s   what is wrong, and where\n"
                     "      swerve draw %s -o picture.svg\n"
                     "      swerve run %s\n",
                     path, path, path);
    return 0;
}
