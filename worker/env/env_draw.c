/*
 * Recordings drawn again: the pictures of a tick, from the scenario and what the trace says of it,
 * as the report redraws them (report/report_drive.c).
 */
#include "worker/env/env_internal.h"

#include "base/check.h"
#include "engine/sensors/raster.h"
#include "engine/traffic/signals.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct swerve_env_drawing {
    struct scenario_document *document;
    struct raster_layers *layers;
    uint64_t seed;
};

static enum status open_drawing(const char *scenario, uint64_t bytes, uint64_t seed,
                                struct swerve_env_drawing **out, struct error *error)
{
    struct swerve_env_drawing *drawing = calloc(1, sizeof *drawing);
    TRY(memory_check(drawing, error, "drawing: out of memory"));
    drawing->seed = seed;
    enum status status =
        scenario_load_text("scenario", scenario, (size_t)bytes, &drawing->document, error);
    if (status == STATUS_OK) {
        status = raster_layers_create(&drawing->document->scenario.map, &drawing->layers, error);
    }
    if (status != STATUS_OK) {
        swerve_env_drawing_close(drawing);
        return status;
    }
    *out = drawing;
    return STATUS_OK;
}

int swerve_env_drawing_open(const char *scenario, uint64_t bytes, uint64_t seed,
                            struct swerve_env_drawing **out, char *error_text, uint32_t error_bytes)
{
    struct error error;
    locale_t before = env_locale_enter();
    enum status status = open_drawing(scenario, bytes, seed, out, &error);
    env_locale_leave(before);
    return env_answer(status, &error, error_text, error_bytes);
}

void swerve_env_drawing_close(struct swerve_env_drawing *drawing)
{
    if (drawing != NULL) {
        raster_layers_destroy(drawing->layers);
        scenario_destroy(drawing->document);
        free(drawing);
    }
}

static enum status find_name(const char *what, const char *name, const char *const *names,
                             uint32_t count, uint32_t *out, struct error *error)
{
    for (uint32_t i = 0; name != NULL && i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT, "drawing: %s: found %s, which is none", what,
                     name != NULL ? name : "nothing");
}

static bool all_finite(const double *values, uint32_t count)
{
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
        all = all && isfinite(values[i]);
    }
    return all;
}

static enum status scene_of(const struct scenario *scenario, const struct swerve_env_moment *moment,
                            struct scene *scene, struct error *error)
{
    uint32_t weather = 0;
    uint32_t light = 0;
    TRY(find_name("weather", moment->weather, weather_names, WEATHER_COUNT, &weather, error));
    TRY(find_name("light", moment->light, light_names, LIGHT_COUNT, &light, error));
    if (moment->agent_count > scenario->agent_count) {
        return error_set(error, STATUS_BAD_INPUT, "drawing: expected at most %u agents, found %u",
                         scenario->agent_count, moment->agent_count);
    }
    if (!all_finite(moment->ego, SWERVE_ENV_EGO) || !(moment->visibility_m > 0)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "drawing: expected a finite ego and a visibility above 0");
    }
    const double *ego = moment->ego;
    memset(scene, 0, sizeof *scene);
    scene->tick = moment->tick;
    scene->agent_count = scenario->agent_count;
    scene->ego =
        (struct ego_state){{ego[0], ego[1], ego[2]}, ego[3], ego[4], ego[5], ego[6], ego[7]};
    scene->conditions = (struct conditions){.weather = (enum weather)weather,
                                            .light = (enum light)light,
                                            .friction = scenario->conditions.friction,
                                            .visibility_m = moment->visibility_m};
    for (uint32_t i = 0; i < moment->agent_count; i++) {
        const double *agent = moment->agents + (size_t)4 * i;
        if (all_finite(agent, 4)) {
            scene->agents[i] = (struct agent_state){
                .pose = {agent[0], agent[1], agent[2]}, .speed_mps = agent[3], .present = true};
        }
    }
    return STATUS_OK;
}

static enum status draw(const struct swerve_env_drawing *drawing,
                        const struct swerve_env_moment *moment, uint8_t *bev, uint8_t *cameras,
                        struct error *error)
{
    const struct scenario *scenario = &drawing->document->scenario;
    struct scene *scene = malloc(sizeof *scene);
    TRY(memory_check(scene, error, "drawing: out of memory"));
    enum status status = scene_of(scenario, moment, scene, error);
    if (status == STATUS_OK) {
        signals_recorded(scenario, "", scene);
    }
    if (status == STATUS_OK && bev != NULL) {
        raster_bev(drawing->layers, scenario, scene, drawing->seed, bev);
    }
    for (int i = 0; i < CAMERA_COUNT && status == STATUS_OK && cameras != NULL; i++) {
        raster_camera(drawing->layers, scenario, scene, drawing->seed, (enum camera_index)i,
                      cameras + (size_t)i * CAMERA_BYTES);
    }
    free(scene);
    return status;
}

int swerve_env_draw(const struct swerve_env_drawing *drawing,
                    const struct swerve_env_moment *moment, uint8_t *bev, uint8_t *cameras,
                    char *error_text, uint32_t error_bytes)
{
    struct error error;
    return env_answer(draw(drawing, moment, bev, cameras, &error), &error, error_text, error_bytes);
}
