/*
 * swerve import controls: logs of comma.ai's controls challenge as scenarios of the tinyphysics
 * world, one for each file, and a suite that lists them (docs/controls.md).
 *
 * The rows lie in the scenario, as they are after the challenge's own conversions, so that a job
 * needs nothing but its scenario and the model. Rows that no controller is ever shown are left out.
 */
#include "cli/cli.h"
#include "cli/controls/controls_files.h"

#include "base/dmath.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ARGUMENTS_MAX = 256,
    PLAN_ROWS = 49, /* that a controller is shown beyond the last that costs */
    ROWS_MAX = CONTROLS_COST_END + PLAN_ROWS,
};

#define ROAD_BEHIND_M 20.0
#define ROAD_AHEAD_M 200.0
#define DRIVE_MAX_M 99000.0 /* coordinates of scenarios end at 100 km */

struct import_controls {
    const char *out;
    const char *cost; /* --cost; NULL: none */
    double cost_max;  /* of it */
    char folder[LIMIT_PATH_BYTES];
    const char *base; /* last step of `folder` */
    json_t *list;     /* of the suite's entries */
    json_t *taken;    /* ids so far */
    bool made;        /* the folder was not there before */
};

/* The file's stem, with characters that ids cannot hold replaced. */
static void make_id(const char *path, char id[LIMIT_ID_BYTES])
{
    const char *slash = strrchr(path, '/');
    snprintf(id, LIMIT_ID_BYTES, "%s", slash != NULL ? slash + 1 : path);
    char *dot = strrchr(id, '.');
    if (dot != NULL && dot != id) {
        *dot = '\0';
    }
    for (char *at = id; *at != '\0'; at++) {
        const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                           (*at >= '0' && *at <= '9') || *at == '_' || *at == '-';
        if (!plain && (at == id || strchr(".=,+:", *at) == NULL)) {
            *at = '_';
        }
    }
}

static json_t *rows_json(const struct controls_log *log, uint32_t count)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct controls_row *row = &log->rows[i];
        json_array_append_new(rows, json_pack("[f, f, f, f, f]", row->target_mps2,
                                              row->roll_lataccel_mps2, row->v_ego_mps,
                                              row->a_ego_mps2, row->steer));
    }
    return rows;
}

static uint32_t end_of(const struct controls_log *log)
{
    return log->count < CONTROLS_COST_END ? log->count : CONTROLS_COST_END;
}

/* Length of the log's drive, which a scenario's road must hold. */
static enum status measure(const char *path, const struct controls_log *log, double *length_m,
                           struct error *error)
{
    *length_m = 0.0;
    for (uint32_t i = CONTROLS_CONTEXT; i < end_of(log); i++) {
        *length_m += dmath_max(log->rows[i].v_ego_mps, 0.0) * TICK_S;
    }
    return *length_m <= DRIVE_MAX_M
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "%s: vEgo: expected a drive of at most %.0f m, found %.0f", path,
                           DRIVE_MAX_M, *length_m);
}

/* A straight road that is as long as the log drives. */
static json_t *scenario_json(const struct import_controls *import, const char *id, const char *path,
                             const struct controls_log *log, double length_m, uint32_t seed)
{
    const uint32_t end = end_of(log);
    const uint32_t count = log->count < ROWS_MAX ? log->count : ROWS_MAX;
    json_t *road = json_pack("{s:s, s:[[f, f], [f, f]], s:f}", "id", "road", "centre_line",
                             -ROAD_BEHIND_M, 0.0, length_m + ROAD_AHEAD_M, 0.0, "width_m", 3.5);
    json_t *scenario = json_pack(
        "{s:s, s:s, s:{s:s, s:[o]}, s:{s:{s:f, s:f, s:f}, s:f, s:[s]}, s:{s:s}, s:f, "
        "s:{s:i, s:o}}",
        "id", id, "title", "A log of the controls challenge", "map", "id", id, "lanes", road, "ego",
        "pose", "x_m", 0.0, "y_m", 0.0, "heading_rad", 0.0, "speed_mps",
        dmath_clamp(log->rows[CONTROLS_CONTEXT].v_ego_mps, 0.0, 100.0), "route", "road", "slices",
        "scenario_type", "controls", "horizon_s", (end - CONTROLS_CONTEXT) / 10.0, "controls",
        "seed", (int)seed, "rows", rows_json(log, count));
    json_t *source = json_string(strlen(path) < LIMIT_TEXT_BYTES ? path : id);
    json_object_set_new(scenario, "source", source);
    if (import->cost != NULL) {
        json_object_set_new(scenario, "criteria",
                            json_pack("{s:f}", "total_cost_max", import->cost_max));
    }
    return scenario;
}

static enum status write_json(const char *path, const json_t *value, size_t flags,
                              struct error *error)
{
    char *text = json_dumps(value, flags | JSON_REAL_PRECISION(17));
    TRY(memory_check(text, error, "%s: out of memory", path));
    enum status status = file_replace(path, text, strlen(text), 0644, error);
    free(text);
    return status;
}

static enum status import_log(struct import_controls *import, const char *path, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    char out[2 * LIMIT_PATH_BYTES];
    struct controls_log log = {0};
    double length_m = 0.0;
    uint32_t seed;
    make_id(path, id);
    if (json_object_get(import->taken, id) != NULL) {
        return error_set(error, STATUS_CONFLICT,
                         "%s: there is a log with the id \"%s\" before it; expected names that "
                         "differ without their folders",
                         path, id);
    }
    json_object_set_new(import->taken, id, json_true());
    TRY(controls_file_read(path, &log, &seed, error));
    enum status status = measure(path, &log, &length_m, error);
    json_t *scenario =
        status == STATUS_OK ? scenario_json(import, id, path, &log, length_m, seed) : NULL;
    controls_log_free(&log);
    TRY(status);
    TRY(memory_check(scenario, error, "%s: out of memory", path));
    snprintf(out, sizeof out, "%s/%s.json", import->folder, id);
    status = write_json(out, scenario, JSON_COMPACT, error);
    json_decref(scenario);
    snprintf(out, sizeof out, "%s/%s.json", import->base, id);
    json_t *entry = json_pack("{s:s}", "file", out);
    THEN(status, memory_check(entry, error, "%s: out of memory", path));
    return json_array_append_new(import->list, entry) == 0 || status != STATUS_OK
               ? status
               : error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
}

/* Scenarios go into a folder beside OUT.json that has its name. */
static enum status settle(struct import_controls *import, struct error *error)
{
    const size_t bytes = import->out != NULL ? strlen(import->out) : 0;
    if (bytes < 6 || bytes >= LIMIT_PATH_BYTES || strcmp(import->out + bytes - 5, ".json") != 0) {
        return error_set(error, STATUS_USAGE, "import controls: expected -o OUT.json, found \"%s\"",
                         bytes > 0 ? import->out : "");
    }
    json_t *text = json_string(import->out);
    json_decref(text);
    if (text == NULL) { /* the suite names the files */
        return error_set(error, STATUS_USAGE,
                         "import controls: -o: expected a name in UTF-8, found \"%s\"",
                         import->out);
    }
    if (import->cost != NULL && !cli_real(import->cost, 0.0, 1e9, &import->cost_max)) {
        return error_set(error, STATUS_USAGE,
                         "import controls: --cost: expected a number of 0 to 1e9, found \"%s\"",
                         import->cost);
    }
    snprintf(import->folder, sizeof import->folder, "%.*s", (int)bytes - 5, import->out);
    const char *slash = strrchr(import->folder, '/');
    import->base = slash != NULL ? slash + 1 : import->folder;
    import->made = mkdir(import->folder, 0777) == 0;
    if (!import->made && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", import->folder,
                         strerror(errno));
    }
    return STATUS_OK;
}

static enum status import_all(struct import_controls *import, const struct controls_files *files,
                              struct error *error)
{
    if (files->count > LIMIT_SUITE_SCENARIOS) {
        return error_set(error, STATUS_LIMIT,
                         "import controls: expected at most %d logs in a suite, found %u",
                         LIMIT_SUITE_SCENARIOS, files->count);
    }
    TRY(settle(import, error));
    for (uint32_t i = 0; i < files->count; i++) {
        TRY(import_log(import, files->paths[i], error));
    }
    json_t *suite = json_pack("{s:s, s:s, s:O}", "id", "controls", "title",
                              "Logs of the controls challenge", "scenarios", import->list);
    TRY(memory_check(suite, error, "%s: out of memory", import->out));
    enum status status = write_json(import->out, suite, JSON_INDENT(2), error);
    json_decref(suite);
    return status;
}

int command_import_controls(int argc, char **argv)
{
    struct import_controls import = {0};
    const struct cli_option rows[] = {
        {"--output", "OUT.json", "the suite, also -o; scenarios go into a folder of its name",
         .text = &import.out},
        {"--cost", "N", "a drive passes with a total_cost of at most N (any)",
         .text = &import.cost},
    };
    const struct cli_command command = {
        "import controls",
        "FILE.csv|FOLDER... -o OUT.json [--cost N]",
        "Turns logs of comma.ai's controls challenge into scenarios of the world tinyphysics.",
        CLI_ROWS(rows, 1, ARGUMENTS_MAX),
    };
    const char *arguments[ARGUMENTS_MAX] = {NULL};
    struct controls_files files = {0};
    struct error error;
    uint32_t count = 0;
    int code = 0;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    import.list = json_array();
    import.taken = json_object();
    enum status status = controls_files_find(arguments, count, &files, &error);
    THEN(status, import_all(&import, &files, &error));
    code = status == STATUS_OK ? 0 : cli_fail(&error);
    if (status != STATUS_OK && import.made) {
        rmdir(import.folder); /* no log came into it; with one it stays */
    }
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %u scenario%s\n", import.out, files.count,
                   files.count == 1 ? "" : "s");
    }
    controls_files_free(&files);
    json_decref(import.list);
    json_decref(import.taken);
    return code;
}
