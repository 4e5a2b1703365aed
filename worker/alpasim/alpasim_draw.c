/*
 * Pictures of scenes from any place, and answers, for AlpaSim's services. See alpasim_internal.h.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/jpeg/jpeg_encode.h"
#include "base/png/png_encode.h"
#include "base/rng.h"
#include "base/units.h"
#include "schemas/rig/rig.h"
#include "worker/alpasim/alpasim_internal.h"
#include "worker/run/revision.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUESTION_SPARE_BYTES = 64 << 20 }; /* that its parts take beside its own bytes */

void alpasim_moment_init(struct alpasim_moment *moment, const struct alpasim_scene *scene)
{
    const struct scenario *scenario = scene->scenario;
    memset(&moment->scene, 0, sizeof moment->scene);
    memset(moment->agents, 0, sizeof moment->agents);
    moment->scenario = *scenario;
    moment->scenario.agents = moment->agents;
    moment->scenario.agent_count = 0;
    memset(moment->scene.signal_light, TRAFFIC_LIGHT_OFF, sizeof moment->scene.signal_light);
    moment->scene.conditions = scenario->conditions;
    moment->grain = false;
}

static bool is_same(const struct rig_camera *a, const struct rig_camera *b)
{
    return a->width == b->width && a->height == b->height &&
           memcmp(&a->pose, &b->pose, sizeof a->pose) == 0 &&
           memcmp(&a->lens, &b->lens, sizeof a->lens) == 0;
}

/* Whether a camera is one that a rig may have (schemas/rig): of its size, place and lens. */
static enum status check_camera(const struct rig_camera *camera, struct error *error)
{
    struct rig *rig = calloc(2, sizeof *rig);
    TRY(memory_check(rig, error, "no memory for a camera"));
    rig->camera_count = 1;
    memcpy(rig->id, "camera", sizeof "camera");
    rig->cameras[0] = *camera;
    rig->cameras[0].rate_hz = TICK_HZ;
    memcpy(rig->cameras[0].id, "camera", sizeof "camera");
    json_t *document = rig_encode(rig);
    enum status status =
        document != NULL ? rig_decode("the camera", document, &rig[1], error)
                         : error_set(error, STATUS_BAD_INPUT, "the camera: a number is not finite");
    json_decref(document);
    free(rig);
    return status;
}

static void drop_view(struct alpasim_view *view)
{
    raster_rays_destroy(view->rays);
    *view = (struct alpasim_view){.used = 0};
}

/* The rays of a camera, made anew where it was not drawn with lately. */
static enum status view_of(struct alpasim *alpasim, const struct rig_camera *camera,
                           const struct raster_rays **out, struct error *error)
{
    struct alpasim_view *oldest = &alpasim->views[0];
    int64_t pixels = (int64_t)camera->width * camera->height;
    for (int i = 0; i < ALPASIM_VIEWS; i++) {
        struct alpasim_view *view = &alpasim->views[i];
        if (view->rays != NULL && is_same(&view->camera, camera)) {
            view->used = ++alpasim->uses;
            *out = view->rays;
            return STATUS_OK;
        }
        oldest = view->used < oldest->used ? view : oldest;
        pixels += (int64_t)view->camera.width * view->camera.height;
    }
    TRY(check_camera(camera, error));
    for (int i = 0; i < ALPASIM_VIEWS && pixels > ALPASIM_VIEWS_PIXELS; i++) {
        drop_view(&alpasim->views[i]);
    }
    drop_view(oldest);
    *oldest = (struct alpasim_view){.camera = *camera, .used = ++alpasim->uses};
    TRY(raster_rays_create(camera, 0, &oldest->rays, error));
    *out = oldest->rays;
    return STATUS_OK;
}

/* Up to two levels more or less in every colour of a picture, of the seed alone. */
static void add_grain(uint8_t *rgb, size_t bytes, uint64_t seed)
{
    uint64_t state = rng_mix(seed);
    for (size_t i = 0; i < bytes; i++) {
        if (i % 16 == 0) {
            state = rng_mix(state + i);
        }
        const int value = rgb[i] + (int)((state >> (4 * (i % 16))) & 15) % 5 - 2;
        rgb[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* A picture as a file. */
static enum status encode(const uint8_t *rgb, const struct rig_camera *camera, uint32_t format,
                          uint32_t quality, uint8_t **file, size_t *bytes, struct error *error)
{
    const uint32_t width = (uint32_t)camera->width, height = (uint32_t)camera->height;
    if (format == ALPASIM_PNG) {
        return png_encode_quick(rgb, width, height, file, bytes, error);
    }
    const size_t room = (size_t)width * height * 3 + 65536;
    uint8_t *to = malloc(room);
    TRY(memory_check(to, error, "no memory for a picture"));
    enum status status = jpeg_encode(rgb, width, height, quality, to, room, bytes, error);
    if (status != STATUS_OK) {
        free(to);
        return status;
    }
    *file = to;
    return STATUS_OK;
}

enum status alpasim_draw(struct alpasim *alpasim, struct alpasim_scene *scene,
                         const struct alpasim_moment *moment, const struct rig_camera *camera,
                         uint64_t seed, uint32_t format, uint32_t quality, uint8_t **file,
                         size_t *bytes, struct error *error)
{
    const struct raster_rays *rays = NULL;
    TRY(alpasim_prepare(alpasim, scene, error));
    TRY(view_of(alpasim, camera, &rays, error));
    uint8_t *rgb = calloc((size_t)camera->width * (size_t)camera->height, 3);
    TRY(memory_check(rgb, error, "no memory for a picture"));
    raster_rays_draw(prepared_layers(scene->prepared), &moment->scenario, &moment->scene, seed,
                     rays, rgb);
    if (moment->grain) {
        add_grain(rgb, (size_t)camera->width * (size_t)camera->height * 3, seed);
    }
    enum status status = encode(rgb, camera, format, quality, file, bytes, error);
    free(rgb);
    return status;
}

/* ---- answers ---- */

struct alpasim_scene *alpasim_find(struct alpasim *alpasim, const char *id,
                                   struct grpc_answer *answer)
{
    for (uint32_t i = 0; i < alpasim->scene_count; i++) {
        if (strcmp(alpasim->scenes[i].scenario->id, id) == 0) {
            return &alpasim->scenes[i];
        }
    }
    alpasim_refuse(answer, GRPC_NOT_FOUND, "no scene %.80s here; there are %u, the first %s", id,
                   alpasim->scene_count,
                   alpasim->scene_count > 0 ? alpasim->scenes[0].scenario->id : "none");
    return NULL;
}

enum status alpasim_prepare(struct alpasim *alpasim, struct alpasim_scene *scene,
                            struct error *error)
{
    struct prepared *ready[ALPASIM_PREPARED] = {NULL};
    struct alpasim_scene *oldest = NULL;
    uint32_t count = 0;
    scene->used = ++alpasim->uses;
    if (scene->prepared != NULL) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < alpasim->scene_count; i++) {
        struct alpasim_scene *other = &alpasim->scenes[i];
        if (other->prepared != NULL) {
            ready[count++] = other->prepared;
            oldest = oldest == NULL || other->used < oldest->used ? other : oldest;
        }
    }
    TRY(prepared_create_like(scene->scenario, ready, count, &scene->prepared, error));
    if (count == ALPASIM_PREPARED) {
        prepared_unref(oldest->prepared);
        oldest->prepared = NULL;
    }
    return STATUS_OK;
}

int alpasim_code(enum status status)
{
    return status == STATUS_NO_MEMORY ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT;
}

bool alpasim_late(struct grpc_answer *answer)
{
    const bool late = clock_monotonic_ns() > answer->deadline_ns;
    if (late) {
        alpasim_refuse(answer, GRPC_DEADLINE_EXCEEDED, "nobody waits for the answer any more");
    }
    return late;
}

void alpasim_refuse(struct grpc_answer *answer, int code, const char *format, ...)
{
    va_list args;
    answer->code = code;
    va_start(args, format);
    vsnprintf(answer->sentence, sizeof answer->sentence, format, args);
    va_end(args);
}

void alpasim_answer(struct grpc_answer *answer, const ProtobufCMessage *message)
{
    answer->bytes = protobuf_c_message_get_packed_size(message);
    answer->message = malloc(answer->bytes + 1);
    if (answer->message == NULL) {
        answer->bytes = 0;
        alpasim_refuse(answer, GRPC_INTERNAL, "out of memory");
        return;
    }
    protobuf_c_message_pack(message, answer->message);
}

void alpasim_version_fill(struct alpasim_version *out)
{
    ego__version__init(&out->version);
    ego__api_version__init(&out->api);
    snprintf(out->id, sizeof out->id, "swerve-object-%.12s", revision_hash);
    out->version.version_id = out->id;
    out->version.api = &out->api;
}

bool alpasim_dispatch(struct alpasim *alpasim, const struct alpasim_method *rows,
                      const char *method, const uint8_t *message, size_t bytes,
                      struct grpc_answer *answer)
{
    struct contract_memory memory;
    while (rows->name != NULL && strcmp(rows->name, method) != 0) {
        rows++;
    }
    if (rows->name == NULL) {
        return false;
    }
    contract_memory_init(&memory, bytes + QUESTION_SPARE_BYTES);
    ProtobufCMessage *read =
        protobuf_c_message_unpack(rows->kind, &memory.allocator, bytes, message);
    if (read == NULL) {
        alpasim_refuse(answer, GRPC_INVALID_ARGUMENT,
                       "the question to %s is no message of its kind", method);
        return true;
    }
    rows->serve(alpasim, read, answer);
    protobuf_c_message_free_unpacked(read, &memory.allocator);
    return true;
}
