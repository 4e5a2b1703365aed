/*
 * Scenarios as services of AlpaSim. See alpasim.h.
 */
#include "worker/alpasim/alpasim_internal.h"

#include "schemas/proto/sensorsim.pb-c.h"
#include "worker/contract/contract_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENSORSIM "/nre.grpc.protos.sensorsim.SensorsimService/"
#define WORLDMODEL "/omnidreams.video_model.WorldModelService/"
#define TRAFFIC "/traffic.TrafficService/"

enum status alpasim_create(const struct suite *suite, const struct rig *rig, struct alpasim **out,
                           struct error *error)
{
    struct alpasim *alpasim = calloc(1, sizeof *alpasim);
    TRY(memory_check(alpasim, error, "alpasim: out of memory"));
    alpasim->rig = rig;
    alpasim->scenes = calloc(suite->entry_count + 1, sizeof *alpasim->scenes);
    enum status status = memory_check(alpasim->scenes, error, "alpasim: out of memory");
    for (uint32_t i = 0; i < suite->entry_count && status == STATUS_OK; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        char clip[LIMIT_ID_BYTES];
        contract_clip(scenario->id, clip);
        for (uint32_t k = 0; k < i && status == STATUS_OK; k++) {
            const char *other = alpasim->scenes[k].scenario->id;
            char other_clip[LIMIT_ID_BYTES];
            contract_clip(other, other_clip);
            if (strcmp(other_clip, clip) == 0) {
                status = error_set(error, STATUS_BAD_INPUT,
                                   "suite %s: %.60s and %.60s have one name as a scene's files "
                                   "have it, %.60s",
                                   suite->id, other, scenario->id, clip);
            }
        }
        alpasim->scenes[i].scenario = scenario;
    }
    alpasim->scene_count = suite->entry_count;
    if (status != STATUS_OK) {
        alpasim_destroy(alpasim);
        return status;
    }
    *out = alpasim;
    return STATUS_OK;
}

void alpasim_destroy(struct alpasim *alpasim)
{
    if (alpasim == NULL) {
        return;
    }
    for (uint32_t i = 0; alpasim->scenes != NULL && i < alpasim->scene_count; i++) {
        prepared_unref(alpasim->scenes[i].prepared);
    }
    for (int i = 0; i < ALPASIM_VIEWS; i++) {
        raster_rays_destroy(alpasim->views[i].rays);
    }
    for (int i = 0; i < ALPASIM_SESSIONS; i++) {
        free(alpasim->sessions[i].rig);
        alpasim_traffic_end(alpasim->traffic[i]);
    }
    free(alpasim->scenes);
    free(alpasim);
}

static void get_version(struct alpasim *alpasim, const void *question, struct grpc_answer *answer)
{
    struct alpasim_version said;
    (void)alpasim;
    (void)question;
    alpasim_version_fill(&said);
    alpasim_answer(answer, &said.version.base);
}

void alpasim_serve(void *context, const char *method, const uint8_t *message, size_t bytes,
                   struct grpc_answer *answer)
{
    static const struct alpasim_method versions[] = {
        {"get_version", &sim__empty__descriptor, get_version}, {NULL, NULL, NULL}};
    struct alpasim *alpasim = context;
    const bool sensors = strncmp(method, SENSORSIM, strlen(SENSORSIM)) == 0;
    const bool model = strncmp(method, WORLDMODEL, strlen(WORLDMODEL)) == 0;
    const bool traffic = strncmp(method, TRAFFIC, strlen(TRAFFIC)) == 0;
    const char *name = strrchr(method, '/');
    name = name != NULL ? name + 1 : method;
    if (!((sensors || model) &&
          alpasim_dispatch(alpasim, versions, name, message, bytes, answer)) &&
        !(sensors && alpasim_sensorsim(alpasim, name, message, bytes, answer)) &&
        !(model && alpasim_worldmodel(alpasim, name, message, bytes, answer)) &&
        !(traffic && alpasim_traffic(alpasim, name, message, bytes, answer))) {
        alpasim_refuse(answer, GRPC_UNIMPLEMENTED, "%.120s is not served here", method);
    }
}
