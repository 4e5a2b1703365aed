/*
 * Processor time of the client of a world model: chunks of a rig's cameras from a server. Prints
 * milliseconds a chunk, and of that what decoding its pictures takes.
 *
 * Usage: omnidreams_client ADDRESS CHUNKS RIG.json SUITE
 */
#include "base/jpeg/jpeg_decode.h"
#include "base/jpeg/jpeg_encode.h"
#include "engine/worlds/foreign.h"
#include "scenarios/scenarios.h"
#include "schemas/rig/rig.h"
#include "worker/planner/planner.h"
#include "worker/world/world_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_MS = 600000, BODIES = 32, QUALITY = 90, STEP_MM = 300 };

static struct rig rig;

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Memory of a chunk: frames of each camera, then bodies. */
struct place {
    uint8_t *memory;
    size_t bytes, bodies;
    struct swerve_world_chunk chunk;
};

static bool place_make(struct place *place, uint32_t frames)
{
    size_t at = 0;
    for (uint32_t c = 0; c < rig.camera_count; c++) {
        place->chunk.frames[c] = at;
        at += (size_t)rig.cameras[c].width * (size_t)rig.cameras[c].height * 3 * frames;
    }
    place->bodies = (at + 63) / 64 * 64;
    place->bytes = place->bodies + frames * BODIES * sizeof(struct swerve_world_body);
    place->memory = calloc(1, place->bytes);
    place->chunk.bodies = place->bodies;
    place->chunk.camera_count = rig.camera_count;
    return place->memory != NULL;
}

/* Poses and bodies of the next frames. */
static void place_fill(struct place *place, const struct ego *ego, uint32_t first, uint32_t count,
                       uint32_t rate_hz)
{
    struct swerve_world_body *bodies = (void *)(place->memory + place->bodies);
    place->chunk.first_frame = first;
    place->chunk.frame_count = count;
    place->chunk.body_count = BODIES;
    for (uint32_t f = 0; f < count; f++) {
        const double ahead_m = (first + f) * (STEP_MM / 1e3);
        place->chunk.poses[f] =
            (struct swerve_world_pose){(double)(first + f) / rate_hz, ego->pose.x_m + ahead_m,
                                       ego->pose.y_m, ego->pose.heading_rad, 9};
        for (uint32_t i = 0; i < BODIES; i++) {
            bodies[f * BODIES + i] = (struct swerve_world_body){
                1, AGENT_CAR, ego->pose.x_m + 30 + 8.0 * i, ego->pose.y_m + 4, 0, 0, 4.5, 1.8, 1.5};
        }
    }
}

/* Milliseconds of processor that decoding the newest frames takes, as JPEG of the same quality. */
static double decoding_ms(const struct place *place, uint32_t frames, struct error *error)
{
    double sum_ms = 0;
    for (uint32_t c = 0; c < rig.camera_count; c++) {
        const uint32_t width = (uint32_t)rig.cameras[c].width;
        const uint32_t height = (uint32_t)rig.cameras[c].height;
        const size_t room = (size_t)width * height * 3 + 65536;
        uint8_t *file = malloc(room);
        uint8_t *rgb = malloc(room);
        size_t bytes = 0;
        for (uint32_t f = 0; f < frames && file != NULL && rgb != NULL; f++) {
            const uint8_t *frame =
                place->memory + place->chunk.frames[c] + (size_t)f * width * height * 3;
            if (jpeg_encode(frame, width, height, QUALITY, file, room, &bytes, error) !=
                STATUS_OK) {
                return -1;
            }
            double start_ms = processor_ms();
            if (jpeg_decode(file, bytes, width, height, rgb, error) != STATUS_OK) {
                return -1;
            }
            sum_ms += processor_ms() - start_ms;
        }
        free(file);
        free(rgb);
    }
    return sum_ms;
}

static enum status measure(const struct foreign *foreign, const struct suite *suite,
                           uint32_t chunks, struct error *error)
{
    const struct swerve_world_declared *as = &foreign->declared;
    const struct scenario *scenario = &suite->entries[0].document->scenario;
    struct swerve_world_declared declared;
    struct place place = {.memory = NULL};
    struct prepared *prepared = NULL;
    char *text = NULL;
    char why[400] = "";
    void *world = NULL;
    double used_ms = 0, decoded_ms = 0;
    if (!place_make(&place, as->chunk_frames)) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory");
    }
    TRY(rig_text(&rig, &text, error));
    TRY(prepared_create(scenario, &prepared, error));
    const struct swerve_world_setup setup = {.abi_version = 2,
                                             .state_count = 1,
                                             .batch_max = 1,
                                             .thread_count = 1,
                                             .config = "",
                                             .memory = place.memory,
                                             .memory_bytes = place.bytes,
                                             .memory_fd = -1,
                                             .host = foreign->host,
                                             .rig = text};
    if (foreign->ops->open(&world, &setup, &declared, why, sizeof why) != 0) {
        return error_set(error, STATUS_DEVICE, "%s", why);
    }
    foreign->meet(world, prepared);
    place_fill(&place, &scenario->ego, 0, 1, as->rate_hz);
    int failed = foreign->ops->reset_rig(world, &place.chunk, why, sizeof why);
    uint32_t first = 1;
    for (uint32_t i = 0; i <= chunks && failed == 0; i++) {
        const uint32_t count = i == 0 ? as->first_frames : as->chunk_frames;
        struct swerve_world_made made = {0};
        place_fill(&place, &scenario->ego, first, count, as->rate_hz);
        double start_ms = processor_ms();
        failed = foreign->ops->step_rig(world, 1, &place.chunk, &made, why, sizeof why);
        used_ms += i > 0 ? processor_ms() - start_ms : 0;
        decoded_ms += i > 0 ? decoding_ms(&place, count, error) : 0;
        first += count;
    }
    foreign->ops->close(world);
    prepared_unref(prepared);
    free(text);
    free(place.memory);
    printf("%.3f %.3f\n", used_ms / chunks, decoded_ms / chunks);
    return failed == 0 ? STATUS_OK : error_set(error, STATUS_DEVICE, "%s", why);
}

int main(int argc, char **argv)
{
    char binding[300];
    const char *const bindings[] = {binding};
    const struct planner_confinement places = {.omnidreams = {bindings, 1, false}};
    const struct world_source_options how = {
        .confinement = &places, .start_ms = WAIT_MS, .step_ms = WAIT_MS, .patient = true};
    struct world_source *source = NULL;
    struct suite *suite = NULL;
    struct error error;
    if (argc != 5) {
        fprintf(stderr, "usage: omnidreams_client ADDRESS CHUNKS RIG.json SUITE\n");
        return 2;
    }
    snprintf(binding, sizeof binding, "od=%s", argv[1]);
    enum status status = rig_read(argv[3], &rig, NULL, &error);
    THEN(status, suite_load(argv[4], &suite, &error));
    THEN(status, world_source_open("omnidreams:od?chunk=8", &how, &source, &error));
    THEN(status, measure(world_source_foreign(source), suite, (uint32_t)strtoul(argv[2], NULL, 10),
                         &error));
    world_source_close(source);
    suite_destroy(suite);
    if (status != STATUS_OK) {
        fprintf(stderr, "omnidreams_client: %s\n", error.text);
        return 1;
    }
    return 0;
}
