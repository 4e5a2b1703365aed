/*
 * Ticks of a planner behind the egodriver contract, for scripts/compare/egodriver_client.py:
 * ADDRESS, TICKS, RIG.json and a JPEG file for each of its cameras. Prints the milliseconds of
 * processor that this process took a tick (messages, HTTP/2, the answer, the tracker), of a session
 * that may be forked, and of one that is not.
 */
#include "base/units.h"
#include "worker/planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM_TICKS = 20, PICTURE_BYTES_MAX = 4 << 20, ROUTE_STEP_M = 4 };

static struct rig rig;
static struct swerve_sensor sensors[RIG_CAMERAS_MAX];

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static enum status picture_read(const char *path, uint32_t camera, struct error *error)
{
    uint8_t *data = malloc(PICTURE_BYTES_MAX);
    FILE *file = fopen(path, "rb");
    size_t bytes = file != NULL && data != NULL ? fread(data, 1, PICTURE_BYTES_MAX, file) : 0;
    struct swerve_sensor *sensor = &sensors[camera];
    if (file != NULL) {
        fclose(file);
    }
    if (bytes == 0) {
        free(data);
        return error_set(error, STATUS_IO, "%s: expected a JPEG file, found nothing", path);
    }
    *sensor = (struct swerve_sensor){.format = SWERVE_FORMAT_JPEG, .count = 1, .frames = data};
    sensor->bytes[0] = (uint32_t)bytes;
    snprintf(sensor->id, sizeof sensor->id, "%s", rig.cameras[camera].id);
    return STATUS_OK;
}

static enum status drive(struct planner *planner, bool forks, uint32_t ticks, double *tick_ms,
                         struct error *error)
{
    struct swerve_route_point route[SWERVE_ROUTE_POINTS] = {{.x_m = 0}};
    const struct swerve_sensors shown = {.count = rig.camera_count, .sensors = sensors};
    const struct swerve_episode episode = {.horizon_ticks = WARM_TICKS + ticks,
                                           .tick_s = 0.1,
                                           .scenario_id = "client",
                                           .prompt = "",
                                           .ego_length_m = 4.5,
                                           .ego_width_m = 1.9,
                                           .ego_wheelbase_m = 2.8};
    double start_ms = 0;
    for (int i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        route[i].x_m = (float)(ROUTE_STEP_M * i);
    }
    TRY(planner_reset(planner, &episode, error));
    if (!forks) {
        planner_end_forks(planner, 0);
    }
    for (uint32_t tick = 0; tick < WARM_TICKS + ticks; tick++) {
        struct swerve_action action;
        uint8_t failed = 0;
        const struct swerve_observation seen = {.tick = tick,
                                                .time_ns = (int64_t)tick * TICK_NS,
                                                .x_m = 0.5 * tick,
                                                .speed_mps = 5,
                                                .route_count = SWERVE_ROUTE_POINTS,
                                                .route = route};
        for (uint32_t i = 0; i < rig.camera_count; i++) {
            sensors[i].time_ns[0] = seen.time_ns;
        }
        start_ms = tick == WARM_TICKS ? processor_ms() : start_ms;
        TRY(planner_drive(planner, 1, &seen, NULL, &shown, &action, &failed, error));
        if (failed != 0) {
            return error_set(error, STATUS_PLANNER, "%s", planner_session_error(planner, 0));
        }
    }
    *tick_ms = (processor_ms() - start_ms) / ticks;
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct error error;
    struct planner *planner = NULL;
    char binding[200];
    const char *const bindings[] = {binding};
    const struct planner_confinement places = {.egodrivers = {bindings, 1, false}};
    const struct planner_config config = {.session_count = 1,
                                          .tick_deadline_ms = 60000,
                                          .open_deadline_ms = 60000,
                                          .confinement = &places,
                                          .rig = &rig};
    double tick_ms[2] = {0};
    if (argc < 5) {
        fprintf(stderr, "usage: egodriver_client ADDRESS TICKS RIG.json PICTURE.jpeg ..\n");
        return 2;
    }
    snprintf(binding, sizeof binding, "policy=%s", argv[1]);
    enum status status = rig_read(argv[3], &rig, NULL, &error);
    if (status == STATUS_OK && argc != 4 + (int)rig.camera_count) {
        status = error_set(&error, STATUS_USAGE, "expected a picture for each camera of the rig");
    }
    for (uint32_t i = 0; status == STATUS_OK && i < rig.camera_count; i++) {
        status = picture_read(argv[4 + i], i, &error);
    }
    THEN(status, planner_open("egodriver:policy", &config, &planner, &error));
    for (int i = 0; i < 2; i++) {
        THEN(status,
             drive(planner, i == 0, (uint32_t)strtoul(argv[2], NULL, 10), &tick_ms[i], &error));
    }
    planner_close(planner);
    for (uint32_t i = 0; i < rig.camera_count; i++) {
        free((void *)(uintptr_t)sensors[i].frames);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "egodriver_client: %s\n", error.text);
        return 1;
    }
    printf("%.6f %.6f\n", tick_ms[0], tick_ms[1]);
    return 0;
}
