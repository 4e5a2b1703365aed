/*
 * swerve import usdz, swerve export usdz, swerve rig from-usdz: scenes of AlpaSim, through the
 * adapter in Python that the binary carries (scripts/adapters/usdz_scene.py): ZIP and Parquet are
 * read by Python and pyarrow.
 */
#include "base/embedded.h"
#include "cli/cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WORDS_MAX = 12, EXIT_NO_PROGRAM = 127 };

extern const struct embedded_text adapter_texts[];
extern char **environ;

struct usdz_options {
    const char *output, *rig, *map;
};

/* Runs the adapter. Not OK: python3 is not there, or the adapter failed and said why on stderr. */
static enum status run_adapter(const char *const *words, uint32_t count, struct error *error)
{
    char *argv[WORDS_MAX + 4] = {"python3", "-c", (char *)(uintptr_t)adapter_texts[0].text};
    pid_t pid = 0;
    int how = 0;
    for (uint32_t i = 0; i < count; i++) {
        argv[3 + i] = (char *)(uintptr_t)words[i];
    }
    int failure = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (failure != 0) {
        return error_set(error, STATUS_IO, "usdz: cannot start python3, which reads scenes: %s",
                         strerror(failure));
    }
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(how) && WEXITSTATUS(how) == EXIT_NO_PROGRAM) {
        return error_set(error, STATUS_IO, "usdz: cannot start python3, which reads scenes");
    }
    if (WIFSIGNALED(how)) {
        return error_set(error, STATUS_IO, "%s: not done: python3 was ended by signal %d", words[0],
                         WTERMSIG(how));
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "%s: not done, as is said above", words[0]);
}

/* Adds an option with its value, where there is one. */
static void add(const char **words, uint32_t *count, const char *option, const char *value)
{
    if (value != NULL) {
        words[(*count)++] = option;
        words[(*count)++] = value;
    }
}

/* One file into another, which options->output names; `pack`: the word that says so, or NULL. */
static int turn(const struct cli_command *command, int argc, char **argv,
                const struct usdz_options *options, const char *pack)
{
    const char *words[WORDS_MAX] = {NULL};
    struct error error;
    uint32_t count = 1;
    CLI_PARSE(command, argc, argv, words, NULL);
    if (options->output == NULL) {
        error_set(&error, STATUS_USAGE, "%s: expected -o %s", command->name,
                  command->options[0].value);
        return cli_fail(&error);
    }
    if (pack != NULL) {
        words[count++] = pack;
    }
    add(words, &count, "-o", options->output);
    add(words, &count, "--rig", options->rig);
    add(words, &count, "--map", options->map);
    return run_adapter(words, count, &error) == STATUS_OK ? 0 : cli_fail(&error);
}

int command_import_usdz(int argc, char **argv)
{
    struct usdz_options options = {.output = NULL};
    const struct cli_option rows[] = {
        {"--output", "OUT.json", "the scenario, also -o", .text = &options.output},
        {"--rig", "RIG.json", "where its cameras go, as a rig", .text = &options.rig},
        {"--map", "MAP.json", "map of the scenario in the place of the scene's lanes",
         .text = &options.map},
    };
    const struct cli_command command = {
        "import usdz",
        "SCENE.usdz -o OUT.json [--rig RIG.json] [--map MAP.json]",
        "Turns a scene of AlpaSim into a scenario whose ego has a log, and a rig (python3; "
        "pyarrow\n"
        "for the scene's lanes).",
        CLI_ROWS(rows, 1, 1),
    };
    return turn(&command, argc, argv, &options, NULL);
}

int command_export_usdz(int argc, char **argv)
{
    struct usdz_options options = {.output = NULL};
    const struct cli_option rows[] = {
        {"--output", "OUT.usdz", "the scene, also -o", .text = &options.output},
        {"--rig", "RIG.json", "its cameras (none)", .text = &options.rig},
    };
    const struct cli_command command = {
        "export usdz",
        "SCENARIO.json -o OUT.usdz [--rig RIG.json]",
        "Packs a scenario whose ego has a log as a scene of AlpaSim (python3; pyarrow for lanes).",
        CLI_ROWS(rows, 1, 1),
    };
    return turn(&command, argc, argv, &options, "--pack");
}

enum status cli_rig_from_usdz(const char *scene, struct error *error)
{
    const char *const words[] = {scene, "--rig-only", "-o", "-"};
    return run_adapter(words, 4, error);
}
