/*
 * swerve plugin-host FILE.so CONFIG: a plugin in a process of its own, for a worker that confines
 * planners. Not for people: it speaks frames on stdin and stdout.
 */
#include "worker/cli/cli.h"
#include "worker/planner/planner_host.h"

#include "base/text.h"

#include <stdio.h>

int command_plugin_host(int argc, char **argv)
{
    struct error error;
    if (argc != 3) {
        text_print(stderr, "swerve: plugin-host: expected a file and a configuration\n");
        return status_exit_code(STATUS_USAGE);
    }
    enum status status = planner_host_run(argv[1], argv[2], &error);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
