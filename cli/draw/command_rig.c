/*
 * swerve rig: the sensors that a rig.json declares, checked, told and looked through.
 */
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/draw/draw_choice.h"
#include "cli/draw/rig_nuscenes.h"
#include "report/draw/draw_rig.h"
#include "schemas/rig/rig.h"

#include <stdlib.h>
#include <string.h>

struct rig_command {
    const char *store_url;
    const char *scenario;
    const char *output;
    const char *sample, *rear_axle;
    int64_t outcome, tick, seed;
    bool json;
};

static const double degrees = 180.0 / PI_RAD;

static void print_camera(const struct rig_camera *camera)
{
    const struct rig_lens *lens = &camera->lens;
    const struct rig_pose *pose = &camera->pose;
    text_print(stdout, "%-16s %4d x %-4d %-8s %5.0f Hz", camera->id, camera->width, camera->height,
               lens_model_names[lens->model], camera->rate_hz);
    text_print(stdout, "  at (%.2f, %.2f, %.2f) m, roll %.1f, pitch %.1f, yaw %.1f degrees",
               pose->x_m, pose->y_m, pose->z_m, pose->roll_rad * degrees, pose->pitch_rad * degrees,
               pose->yaw_rad * degrees);
    if (camera->shutter != SHUTTER_GLOBAL) {
        text_print(stdout, "; %s, %.1f ms", rig_shutter_names[camera->shutter], camera->shutter_ms);
    }
    text_print(stdout, "\n");
}

static enum status print_rig(const struct rig *rig, bool json, struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    TRY(rig_hash(rig, hash, error));
    if (json) {
        return cli_write_json(rig_encode(rig), error);
    }
    text_print(stdout, "rig %s: %u cameras, %u lidars%s, %.1f MB of images at a time, %s%.12s\n",
               rig->id, rig->camera_count, rig->lidar_count, rig->bev ? ", the grid" : "",
               (double)rig_bytes(rig) / 1e6, hash[0] != '\0' ? "hash " : "the built-in one", hash);
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        print_camera(&rig->cameras[i]);
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        const struct rig_lidar *lidar = &rig->lidars[i];
        text_print(stdout, "%-16s lidar, %d azimuths of %u elevations, to %g m\n", lidar->id,
                   lidar->azimuths, lidar->elevation_count, lidar->range_m);
    }
    return STATUS_OK;
}

static enum status draw_outcome(const struct rig_command *command, const struct rig *rig,
                                struct error *error)
{
    struct store *store = NULL;
    struct outcome *outcome = malloc(sizeof *outcome);
    TRY(memory_check(outcome, error, "no memory for an outcome"));
    enum status status = cli_store_open(command->store_url, &store, error);
    THEN(status, cli_outcome_find(store, command->outcome, outcome, error));
    THEN(status,
         draw_rig_tick(rig, store, outcome, (uint32_t)command->tick, command->output, error));
    cli_store_close(store);
    free(outcome);
    return status;
}

static enum status draw_suite(const struct rig_command *command, const struct rig *rig,
                              const char *path, struct error *error)
{
    struct suite *suite = NULL;
    const struct scenario *scenario = NULL;
    TRY(cli_suite_load(path, &suite, error));
    enum status status = draw_choose(suite, command->scenario, &scenario, error);
    THEN(status, draw_rig_start(rig, scenario, (uint64_t)command->seed, command->output, error));
    suite_destroy(suite);
    return status;
}

/* All that is wrong with the file is said, the last of it by the caller. */
static enum status rig_of(const char *name, struct rig *out, struct error *error)
{
    static struct errors errors; /* large */
    if (strcmp(name, "swerve") == 0) {
        rig_swerve(out);
        return STATUS_OK;
    }
    enum status status = rig_read(name, out, &errors, error);
    THEN(status, draw_rig_check(name, out, &errors, error));
    if (status == STATUS_OK || errors.count == 0) {
        return status;
    }
    bool listed = errors_have(&errors, error->text);
    for (uint32_t i = 0; i + listed < errors.count; i++) {
        text_print(stderr, "swerve: %s\n", errors.items[i].text);
    }
    if (listed) {
        *error = errors.items[errors.count - 1];
    }
    return status;
}

static enum status print_nuscenes(const struct rig_command *command, const char *folder,
                                  struct rig *rig, struct error *error)
{
    double rear_axle_m = RIG_NUSCENES_AXLE_M;
    if (command->rear_axle != NULL && !cli_real(command->rear_axle, 0.0, 10.0, &rear_axle_m)) {
        return error_set(error, STATUS_USAGE, "--rear-axle: expected 0 to 10 m, found \"%s\"",
                         command->rear_axle);
    }
    TRY(rig_nuscenes_read(folder, command->sample, rear_axle_m, rig, error));
    TRY(draw_rig_check(folder, rig, NULL, error));
    text_print(stderr,
               "swerve: %u cameras, %u lidars, at 10 Hz; no radars. Moved by %.3f m from the rear "
               "axle to the middle of ego's box (--rear-axle)\n",
               rig->camera_count, rig->lidar_count, rear_axle_m);
    return cli_write_json(rig_encode(rig), error);
}

static enum status run(const struct rig_command *command, const char *const *arguments,
                       uint32_t count, const char *usage, struct error *error)
{
    const char *verb = arguments[0];
    bool drawing = strcmp(verb, "draw") == 0;
    bool importing = strcmp(verb, "from-nuscenes") == 0;
    bool recorded = command->outcome >= 0;
    if (strcmp(verb, "from-usdz") == 0 && count == 2) {
        return cli_rig_from_usdz(arguments[1], error);
    }
    if ((!drawing && !importing && strcmp(verb, "show") != 0 && strcmp(verb, "check") != 0) ||
        count != (drawing && !recorded ? 3u : 2u)) {
        return error_set(error, STATUS_USAGE, "rig: expected %s", usage);
    }
    if (command->tick > LIMIT_HORIZON_TICKS) {
        return error_set(error, STATUS_USAGE, "--tick: expected at most %d, found %lld",
                         LIMIT_HORIZON_TICKS, (long long)command->tick);
    }
    struct rig *rig = malloc(sizeof *rig);
    TRY(memory_check(rig, error, "no memory for a rig"));
    enum status status = importing ? print_nuscenes(command, arguments[1], rig, error)
                                   : rig_of(arguments[1], rig, error);
    if (status != STATUS_OK || importing) {
        free(rig);
        return status;
    }
    if (drawing) {
        status = recorded ? draw_outcome(command, rig, error)
                          : draw_suite(command, rig, arguments[2], error);
    } else if (strcmp(verb, "show") == 0) {
        status = print_rig(rig, command->json, error);
    } else {
        text_print(stdout, "%s: ok, %u cameras, %u lidars\n", arguments[1], rig->camera_count,
                   rig->lidar_count);
    }
    free(rig);
    return status;
}

int command_rig(int argc, char **argv)
{
    struct rig_command options = {.output = "rig", .outcome = -1, .seed = 1};
    const struct cli_option rows[] = {
        {"--output", "DIR", "where SENSOR.png of each camera and lidar goes (rig) (-o)",
         .text = &options.output, .verbs = "draw"},
        {"--scenario", "ID", "which of a suite, by the beginning of its id",
         .text = &options.scenario, .verbs = "draw"},
        {"--seed", "N", "of the scenario's first moment (1)", .number = &options.seed,
         .verbs = "draw"},
        {"--outcome", "ID", "a recorded drive instead", .number = &options.outcome,
         .verbs = "draw"},
        {"--tick", "N", "which tick of it (0)", .number = &options.tick, .verbs = "draw"},
        {"--store", "URL", "its job store ($SWERVE_STORE, else swerve.db)",
         .text = &options.store_url, .verbs = "draw"},
        {"--sample", "TOKEN", "whose sensors (the first one's)", .text = &options.sample,
         .verbs = "from-nuscenes"},
        {"--rear-axle", "METRES", "from it to the middle of ego's box (1.294)",
         .text = &options.rear_axle, .verbs = "from-nuscenes"},
        {"--json", NULL, "print the rig as JSON, all members written", .flag = &options.json,
         .verbs = "show"},
    };
    const struct cli_command command = {
        "rig",
        "show|check RIG | draw RIG SUITE | draw RIG --outcome ID | from-nuscenes DIR | from-usdz "
        "SCENE",
        "Sensors that a rig.json declares: what they are, and what they see. RIG: a file, or "
        "\"swerve\", the built-in rig. from-nuscenes prints one of the tables in a folder such as "
        "v1.0-mini, from-usdz one of a scene of AlpaSim.",
        CLI_ROWS(rows, 2, 3),
    };
    const char *arguments[3] = {NULL, NULL, NULL};
    uint32_t count = 0;
    struct error error;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    enum status status = run(&options, arguments, count, command.usage, &error);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
