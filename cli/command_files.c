/*
 * swerve validate and swerve import: files, looked at before anything is submitted. Imports are
 * handed over to swerve-import beside this binary, so that no reader of foreign formats runs where
 * stores, leases and tokens are (scenarios/import/program). Logs of the controls challenge are read
 * here, by the code that `swerve controls` drives them with.
 */
#include "cli/cli.h"
#include "cli/protocol_options.h"
#include "engine/sensors/prepared.h"
#include "scenarios/json_place.h"
#include "scenarios/plausible/plausible.h"
#include "scenarios/scenarios.h"
#include "schemas/scenario_id.h"
#include "worker/models/models.h"
#include "worker/planner/planner.h"

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 4096 };

/* As a submission would: a planner that cannot run is a mistake of the suite. */
static enum status check_planners(const struct suite *suite, struct errors *errors,
                                  struct error *error)
{
    const char *const *checked = NULL; /* entries share their suite's list */
    uint32_t before = errors_count(errors);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        for (uint32_t k = 0; entry->planners != checked && k < entry->planner_count; k++) {
            if (planner_spec_check(entry->planners[k], error) != STATUS_OK) {
                error_prefix(error, "%s", entry->place);
                TRY(errors_keep(errors, error->status, error));
            }
        }
        checked = entry->planners;
    }
    return errors_end(errors, before, error);
}

/* Has the engine prepare each scenario, as before a drive: paths and maps may be longer or wider
 * than it takes. */
static enum status check_prepared(const struct suite *suite, struct errors *errors,
                                  struct error *error)
{
    struct prepared *last = NULL; /* scenarios of a suite often share their map */
    uint32_t before = errors_count(errors);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < suite->entry_count && status == STATUS_OK; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        struct prepared *prepared = NULL;
        status = prepared_create_like(&entry->document->scenario, &last, last != NULL ? 1 : 0,
                                      &prepared, error);
        if (status == STATUS_OK) {
            prepared_unref(last);
            last = prepared;
        } else if (status != STATUS_NO_MEMORY) {
            error_prefix(error, "%s", entry->file);
            status = errors_keep(errors, status, error);
        }
    }
    prepared_unref(last);
    TRY(status);
    return errors_end(errors, before, error);
}

/* For how long the student that is found here is trusted in the conditioning `agents`; more than
 * any scenario lasts where there is none. */
static uint32_t trusted_ticks(void)
{
    struct error error;
    struct models *models = NULL;
    const struct models_model *model = NULL;
    uint32_t ticks = LIMIT_HORIZON_TICKS;
    if (models_open(NULL, NULL, &models, &error) == STATUS_OK &&
        models_available(models, TIER_STUDENT) &&
        models_promoted(models, TIER_STUDENT, NN_BF16, &model, &error) == STATUS_OK) {
        ticks = model->config->horizon_ticks[CONDITIONING_AGENTS];
    }
    models_close(models);
    return ticks;
}

static void warn(json_t *warnings, bool json, const char *text)
{
    json_array_append_new(warnings, json_string(text));
    if (!json) {
        text_print(stderr, "warning: %s\n", text);
    }
}

/* Name of the first parameter in which two points of a grid differ. */
static void varied_name(const struct scenario_document *a, const struct scenario_document *b,
                        char out[LIMIT_ID_BYTES])
{
    json_t *of_a = json_loads(a->parameters != NULL ? a->parameters : "{}", 0, NULL);
    json_t *of_b = json_loads(b->parameters != NULL ? b->parameters : "{}", 0, NULL);
    const char *name;
    json_t *value;
    snprintf(out, LIMIT_ID_BYTES, "NAME");
    json_object_foreach (of_a, name, value) {
        if (!json_equal(value, json_object_get(of_b, name))) {
            snprintf(out, LIMIT_ID_BYTES, "%s", name);
            break;
        }
    }
    json_decref(of_a);
    json_decref(of_b);
}

/* Points of a grid whose id has {name} places are logical scenarios each, and an interval of a rate
 * takes them for independent draws. */
static void warn_apart(const struct suite *suite, bool json, json_t *warnings)
{
    for (uint32_t i = 0, next; i < suite->entry_count; i = next) {
        const struct suite_entry *entry = &suite->entries[i];
        char text[512];
        for (next = i + 1; next < suite->entry_count; next++) {
            if (strcmp(suite->entries[next].place, entry->place) != 0) {
                break;
            }
        }
        if (next - i > 1 && scenario_id_parameters(entry->document->scenario.id)[0] == '\0') {
            char name[LIMIT_ID_BYTES];
            varied_name(entry->document, suite->entries[i + 1].document, name);
            snprintf(text, sizeof text,
                     "%s: the points of one grid count as %u logical scenarios, which makes "
                     "intervals narrower than they are known; an \"id\" such as "
                     "\"x/%s={%s}\" keeps them one",
                     entry->place, next - i, name, name);
            warn(warnings, json, text);
        }
    }
}

/* Entry and list that a sentence is about. */
struct doubt {
    const struct suite_entry *entry;
    json_t *warnings;
    bool json;
};

static void tell_doubt(void *context, const char *text)
{
    const struct doubt *doubt = context;
    char line[1024];
    snprintf(line, sizeof line, "%s: scenario %s: %s", doubt->entry->file,
             doubt->entry->document->scenario.id, text);
    warn(doubt->warnings, doubt->json, line);
}

/* Demands of a scenario about perception that a learned world cannot meet: to last longer than
 * the model is trusted (a submission refuses that unless it is told what to do), or lights. */
static json_t *warn_beyond(const struct suite *suite, bool json)
{
    json_t *warnings = json_array();
    uint32_t trusted = 0; /* not asked yet */
    warn_apart(suite, json, warnings);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        const struct scenario *scenario = &entry->document->scenario;
        char text[512];
        struct doubt doubt = {.entry = entry, .warnings = warnings, .json = json};
        plausible_check(scenario, tell_doubt, &doubt);
        if (scenario->question != QUESTION_PERCEPTION) {
            continue;
        }
        trusted = trusted > 0 ? trusted : trusted_ticks();
        if (scenario->horizon_ticks > trusted) {
            snprintf(text, sizeof text,
                     "%s: scenario %s lasts %g s, the student is trusted for %g s; submit it with "
                     "--horizon clip or route",
                     entry->file, scenario->id, scenario->horizon_ticks / 10.0, trusted / 10.0);
            warn(warnings, json, text);
        }
        if (scenario->map.signal_count > 0) {
            snprintf(
                text, sizeof text,
                "%s: scenario %s asks about perception and has traffic signals: learned worlds "
                "show no lights, the object world does",
                entry->file, scenario->id);
            warn(warnings, json, text);
        }
    }
    return warnings;
}

/* Says one error, with its line and column where it has a place; as JSON for the list. */
static json_t *tell_error(const struct error *error, bool json)
{
    struct json_place place;
    bool placed = json_place_find(error->text, &place);
    if (!json && placed && place.path[0] != '\0') {
        text_print(stderr, "swerve: %s (%s:%zu:%zu)\n", error->text, place.file, place.line,
                   place.column);
    } else if (!json) {
        text_print(stderr, "swerve: %s\n", error->text);
    }
    json_t *told = json_pack("{s:s}", "text", error->text);
    if (placed) {
        json_t *where =
            json_pack("{s:s, s:s, s:I, s:I}", "file", place.file, "path", place.path, "line",
                      (json_int_t)place.line, "column", (json_int_t)place.column);
        json_object_update(told, where);
        json_decref(where);
    }
    return told;
}

/* A file that cannot be used: all of its errors, or the one that is not about it. */
static json_t *tell_errors(const char *path, const struct errors *errors, const struct error *error,
                           bool json)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < errors->count; i++) {
        json_array_append_new(list, tell_error(&errors->items[i], json));
    }
    if (!errors->more && !errors_have(errors, error->text)) {
        json_array_append_new(list, tell_error(error, json));
    }
    if (!json && errors->more) {
        text_print(stderr, "swerve: %s: these are the first %d errors, there are more\n", path,
                   ERRORS_MAX);
    }
    return json_pack("{s:s, s:b, s:s, s:o, s:b}", "file", path, "valid", 0, "error",
                     errors->count > 0 ? errors->items[0].text : error->text, "errors", list,
                     "more_errors", (int)errors->more);
}

static json_t *validate_one(const char *path, bool json, struct protocol_session *protocols,
                            int *code)
{
    static struct errors errors; /* large, and one file is looked at at a time */
    struct error error;
    struct suite *suite = NULL;
    char found[LIMIT_PATH_BYTES];
    enum status status = suite_check(cli_suite_path(path, found), &suite, &errors, &error);
    THEN(status, check_planners(suite, &errors, &error));
    THEN(status, check_prepared(suite, &errors, &error));
    if (status != STATUS_OK) {
        suite_destroy(suite);
        *code = status_exit_code(status);
        return tell_errors(path, &errors, &error, json);
    }
    protocol_session_check(protocols, suite);
    uint32_t rollouts = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        rollouts += 1 + suite->entries[i].document->scenario.branch_count;
    }
    if (!json) {
        text_print(stdout, "%s: ok, %u scenario%s, %u rollout%s per seed and planner\n", path,
                   suite->entry_count, suite->entry_count == 1 ? "" : "s", rollouts,
                   rollouts == 1 ? "" : "s");
    }
    json_t *result = json_pack("{s:s, s:b, s:i, s:i, s:o}", "file", path, "valid", 1, "scenarios",
                               (int)suite->entry_count, "rollouts", (int)rollouts, "warnings",
                               warn_beyond(suite, json));
    suite_destroy(suite);
    return result;
}

static int validate_files(const char *const *files, uint32_t count, bool json,
                          struct protocol_session *protocols)
{
    int code = 0;
    json_t *results = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(results, validate_one(files[i], json, protocols, &code));
    }
    json_t *result = json_pack("{s:o}", "files", results);
    int protocol_code = protocol_session_finish(protocols, result);
    code = code != 0 ? code : protocol_code;
    if (json) {
        int print_code = cli_print_json(result);
        return code != 0 ? code : print_code;
    }
    json_decref(result);
    return code;
}

int command_validate(int argc, char **argv)
{
    bool json = false;
    const char *register_path = NULL;
    const struct cli_option rows[] = {
        {"--protocols", "REGISTER",
         "compare scenarios named after test protocols with this register of the protocols' values",
         .text = &register_path},
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "validate",
        "FILE...",
        "Checks scenario and suite files, submits nothing. Says up to 20 errors of each file, "
        "with\n"
        "line and column, and goes on to the next.",
        CLI_ROWS(rows, 1, FILES_MAX),
    };
    static const char *files[FILES_MAX];
    uint32_t count = 0;
    int code = 0;
    CLI_PARSE(&command, argc, argv, files, &count);
    struct error error;
    struct protocol_session protocols;
    code = protocol_session_open(register_path, json, &protocols, &error) == STATUS_OK
               ? validate_files(files, count, json, &protocols)
               : cli_fail(&error);
    protocol_session_close(&protocols);
    return code;
}

/* Of the environment an importer needs what its loader and a sanitizer read, and no secret. */
static void keep_environment(char *kept[], size_t capacity)
{
    static const char *const names[] = {
        "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS="};
    size_t count = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        for (size_t i = 0; i < COUNT_OF(names) && count + 1 < capacity; i++) {
            if (strncmp(*entry, names[i], strlen(names[i])) == 0) {
                kept[count++] = *entry;
            }
        }
    }
    kept[count] = NULL;
}

int command_import(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "controls") == 0) { /* has options of its own */
        return command_import_controls(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "usdz") == 0) {
        return command_import_usdz(argc - 1, argv + 1);
    }
    char folder[PATH_MAX];
    char path[PATH_MAX + sizeof "/swerve-import"];
    char *environment[16];
    struct error error;
    char *slash = file_program(folder, sizeof folder) ? strrchr(folder, '/') : NULL;
    snprintf(path, sizeof path, "%.*s/swerve-import", slash != NULL ? (int)(slash - folder) : 0,
             folder);
    keep_environment(environment, COUNT_OF(environment));
    argv[0] = path;
    execve(path, argv, environment);
    error_set(&error, STATUS_IO,
              "import: %s: cannot start the importers, a program that lies beside swerve: %s", path,
              strerror(errno));
    return cli_fail(&error);
}
