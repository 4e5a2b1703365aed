/*
 * swerve import usdz, swerve export usdz, swerve rig from-usdz: scenes of AlpaSim, through the
 * adapter in Python that the binary carries (scripts/adapters/usdz_scene.py): ZIP and Parquet are
 * read by Python and pyarrow. The adapter turns one form into the other and touches no file but the
 * scene that it reads: what it makes is checked here as any scenario and rig, and then written.
 */
#include "base/embedded.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/draw/draw_rig.h"
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"
#include "schemas/json_read.h"
#include "schemas/rig/rig.h"
#include "schemas/scenario_json.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 8, EXIT_NO_PROGRAM = 127 };

extern const struct embedded_text adapter_texts[];
extern char **environ;

struct usdz_options {
    const char *output, *rig, *map;
};

/* Starts the adapter and waits for it. Not OK: python3 is not there, or the adapter failed and said
 * why on stderr. */
static enum status run_adapter(const char *const *words, const posix_spawn_file_actions_t *actions,
                               struct error *error)
{
    char *argv[WORDS_MAX + 4] = {"python3", "-c", (char *)(uintptr_t)adapter_texts[0].text};
    pid_t pid = 0;
    int how = 0;
    for (uint32_t i = 0; i < WORDS_MAX && words[i] != NULL; i++) {
        argv[3 + i] = (char *)(uintptr_t)words[i];
    }
    int failure = posix_spawnp(&pid, argv[0], actions, NULL, argv, environ);
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
        return error_set(error, STATUS_IO, "%s: not done: python3 was ended by signal %d", words[1],
                         WTERMSIG(how));
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "%s: not done, as is said above", words[1]);
}

/* Takes what the adapter makes of `words` (a verb, a file, options) and of `given` (NULL: nothing):
 * malloc'ed. Both lie in memory, so that neither side waits for the other. */
static enum status adapt(const char *const *words, const char *given, char **made, size_t *bytes,
                         struct error *error)
{
    char path[64];
    posix_spawn_file_actions_t actions;
    int in = memfd_create("swerve-usdz-in", MFD_CLOEXEC);
    int out = memfd_create("swerve-usdz-out", MFD_CLOEXEC);
    enum status status = STATUS_OK;
    if (in < 0 || out < 0 || (given != NULL && !file_write_at(in, given, strlen(given), 0)) ||
        posix_spawn_file_actions_init(&actions) != 0) {
        status = error_set(error, STATUS_IO, "usdz: no memory for a file: %s", strerror(errno));
    } else {
        posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        status = run_adapter(words, &actions, error);
        posix_spawn_file_actions_destroy(&actions);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", out);
    THEN(status, file_read(path, LIMIT_ARTIFACT_BYTES, made, bytes, error));
    close(in);
    close(out);
    return status;
}

/* A rig as `swerve rig check` wants it. */
static enum status check_rig(const char *name, const json_t *json, struct error *error)
{
    struct rig *rig = malloc(sizeof *rig);
    TRY(memory_check(rig, error, "%s: out of memory", name));
    enum status status = rig_decode(name, json, rig, error);
    THEN(status, draw_rig_check(name, rig, NULL, error));
    free(rig);
    return status;
}

/* A scenario as `swerve validate` wants it of a file of that name. */
static enum status check_scenario(const char *name, const json_t *json, struct error *error)
{
    struct scenario_document *document = NULL;
    const struct json_cursor root = json_cursor_root(name, json);
    enum status status = scenario_load_written(&root, NULL, &document, error);
    scenario_destroy(document);
    return status;
}

static enum status put_json(const char *path, const json_t *json, struct error *error)
{
    char *text = json_compact_text(json);
    TRY(memory_check(text, error, "%s: out of memory", path));
    enum status status =
        strlen(text) <= LIMIT_DOCUMENT_BYTES
            ? cli_put_text(path, text, strlen(text), error)
            : error_set(error, STATUS_LIMIT, "%s: expected at most %d bytes, found %zu", path,
                        LIMIT_DOCUMENT_BYTES, strlen(text));
    free(text);
    return status;
}

/* Reads a scene by the adapter's verb: {"scenario", "rig", "said"}. */
static enum status read_scene(const char *const *words, json_t **out, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    enum status status = adapt(words, NULL, &text, &bytes, error);
    THEN(status, json_read_text(words[1], text, bytes, out, error));
    free(text);
    return status;
}

/* Both files are looked at before one of them is written. */
static enum status import_scene(const char *scene, const struct usdz_options *options,
                                struct error *error)
{
    const char *words[WORDS_MAX] = {"import", scene, options->map};
    json_t *made = NULL;
    TRY(read_scene(words, &made, error));
    const json_t *scenario = json_object_get(made, "scenario");
    const json_t *rig = json_object_get(made, "rig");
    enum status status = check_scenario(options->output, scenario, error);
    if (status == STATUS_OK && options->rig != NULL) {
        status = check_rig(options->rig, rig, error);
    }
    if (status != STATUS_OK) {
        error_prefix(error, "%s: nothing is written", scene);
    }
    if (status == STATUS_OK && options->rig != NULL) {
        status = put_json(options->rig, rig, error);
    }
    THEN(status, put_json(options->output, scenario, error));
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %s\n", options->output,
                   json_string_value(json_object_get(made, "said")));
    }
    json_decref(made);
    return status;
}

/* A rig with cameras; none where no file is named. */
static enum status read_rig(const char *path, struct rig *rig, struct error *error)
{
    if (path == NULL) {
        return STATUS_OK;
    }
    TRY(rig_read(path, rig, NULL, error));
    TRY(draw_rig_check(path, rig, NULL, error));
    return rig->camera_count > 0 ? STATUS_OK
                                 : error_set(error, STATUS_BAD_INPUT,
                                             "%s: $.cameras: expected a camera, found none", path);
}

/* Packs a scenario as the engine has it: its map resolved, its defaults written out. */
static enum status pack(const char *name, const struct scenario *scenario,
                        const struct usdz_options *options, struct rig *rig, struct error *error)
{
    const char *words[WORDS_MAX] = {"export", name};
    size_t bytes = 0;
    char *made = NULL;
    json_t *json =
        json_pack("{s:o, s:o}", "scenario", scenario_encode(scenario), "rig", rig_encode(rig));
    char *text = json != NULL ? json_compact_text(json) : NULL;
    enum status status = memory_check(text, error, "%s: out of memory", name);
    THEN(status, adapt(words, text, &made, &bytes, error));
    THEN(status, cli_put_text(options->output, made, bytes, error));
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %u cameras, %u lanes\n", options->output, rig->camera_count,
                   scenario->map.lane_count);
    }
    json_decref(json);
    free(text);
    free(made);
    return status;
}

static enum status export_scene(const char *given, const struct usdz_options *options,
                                struct error *error)
{
    struct suite *suite = NULL;
    struct rig *rig = calloc(1, sizeof *rig);
    TRY(memory_check(rig, error, "%s: out of memory", given));
    enum status status = cli_suite_load(given, &suite, error);
    const struct scenario *scenario = NULL;
    if (status == STATUS_OK && suite->entry_count != 1) {
        status =
            error_set(error, STATUS_BAD_INPUT, "%s: expected one scenario, found a suite of %u",
                      given, suite->entry_count);
    } else if (status == STATUS_OK) {
        scenario = &suite->entries[0].document->scenario;
    }
    if (scenario != NULL && scenario->ego.log.point_count < 2) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "%s: $.ego.log: expected a drive of 2 points or more, found %u", given,
                           scenario->ego.log.point_count);
    }
    THEN(status, read_rig(options->rig, rig, error));
    THEN(status, pack(given, scenario, options, rig, error));
    suite_destroy(suite);
    free(rig);
    return status;
}

/* One file into another, which options->output names. */
static int turn(const struct cli_command *command, int argc, char **argv,
                const struct usdz_options *options,
                enum status (*how)(const char *file, const struct usdz_options *options,
                                   struct error *error))
{
    const char *file = NULL;
    struct error error;
    CLI_PARSE(command, argc, argv, &file, NULL);
    if (options->output == NULL) {
        error_set(&error, STATUS_USAGE, "%s: expected -o %s", command->name,
                  command->options[0].value);
        return cli_fail(&error);
    }
    return how(file, options, &error) == STATUS_OK ? 0 : cli_fail(&error);
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
    return turn(&command, argc, argv, &options, import_scene);
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
        "Packs a scenario whose ego has a log as a scene of AlpaSim (python3 with pyarrow).",
        CLI_ROWS(rows, 1, 1),
    };
    return turn(&command, argc, argv, &options, export_scene);
}

enum status cli_rig_from_usdz(const char *scene, struct error *error)
{
    const char *const words[WORDS_MAX] = {"rig", scene};
    json_t *made = NULL;
    TRY(read_scene(words, &made, error));
    json_t *rig = json_object_get(made, "rig");
    enum status status = check_rig(scene, rig, error);
    THEN(status, cli_write_json(json_incref(rig), error));
    json_decref(made);
    return status;
}
