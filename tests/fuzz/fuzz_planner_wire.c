/*
 * Fuzz target: everything an exec planner can send. The input is a stream of frames as the worker
 * would read it; the first byte chooses the batch and the sequence number, so that valid frames are
 * in reach, those with trajectories too, which the trackers then follow. Decoders must refuse or
 * accept, never read beyond the bytes, and write only on success.
 */
#include "base/check.h"
#include "worker/tracker/tracker.h"
#include "worker/wire/planner_wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 16 };

/* Everything that a program may ask for: nothing that lives on a device. */
enum {
    ON_THE_WIRE = SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS | SWERVE_WANTS_OBJECTS |
                  SWERVE_WANTS_SEEN | SWERVE_WANTS_MAP | SWERVE_WANTS_SIGNALS |
                  SWERVE_WANTS_CONTROLS,
};

/* Whatever points a planner sends, the tracker refuses them with a sentence or answers with
 * numbers. */
static void follow(const struct swerve_answer *answer)
{
    const struct tracker_ego ego = {.speed_mps = 9.0, .steer_rad = 0.1, .wheelbase_m = 2.8};
    char text[160] = "";
    if (answer->point_count == 0) {
        return;
    }
    if (!tracker_check(&ego, answer->points, answer->point_count, text, sizeof text)) {
        CHECK(text[0] != '\0');
        return;
    }
    for (int tracker = 0; tracker < SWERVE_TRACKER_COUNT; tracker++) {
        struct swerve_action action =
            tracker_follow((enum swerve_tracker)tracker, &ego, answer->points, answer->point_count);
        CHECK(isfinite(action.accel_mps2) && isfinite(action.steer_rad));
    }
}

/* Bytes that a process which runs a plugin reads of the worker. Every index of a map that was taken
 * is followed. */
static void read_scene(const uint8_t *bytes, size_t size)
{
    struct swerve_map map;
    struct swerve_surroundings around;
    uint32_t source;
    double sum = 0.0;
    if (wire_map_decode(bytes, size, &map, &source)) {
        for (uint32_t i = 0; i < map.lane_count; i++) {
            const struct swerve_map_lane *lane = &map.lanes[i];
            for (uint32_t k = 0; k < lane->point_count; k++) {
                sum += map.points[lane->first_point + k].x_m;
            }
            for (uint32_t k = 0; k < lane->successor_count; k++) {
                sum += map.lanes[map.links[lane->first_successor + k]].speed_limit_mps;
            }
        }
    }
    const uint8_t *at = bytes;
    while (wire_around_decode(&at, bytes + size, &around)) {
        for (uint32_t i = 0; i < around.object_count; i++) {
            sum += around.objects[i].x_m;
        }
    }
    volatile double seen = sum;
    (void)seen;
}

static void decode_payload(const uint8_t *bytes, size_t size, uint32_t count)
{
    struct swerve_observation seen[SESSIONS];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        seen[i].session = i;
    }
    static struct swerve_answer answers[SESSIONS];
    uint8_t failed[SESSIONS];
    memset(failed, 0xee, sizeof failed);
    struct error error = {STATUS_OK, ""};
    if (wire_actions_decode(bytes, size, count, seen, answers, failed, &error) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            CHECK(failed[i] <= 1);
        }
    } else {
        CHECK(failed[0] == 0xee && error.text[0] != '\0');
    }
    if (wire_plans_decode(bytes, size, count, seen, answers, failed, &error) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            follow(&answers[i]);
        }
    }
    struct wire_greeting greeting = {.wants = 9999};
    if (wire_welcome_decode(bytes, size, &greeting, &error) == STATUS_OK) {
        CHECK((greeting.wants & ~ON_THE_WIRE) == 0);
        CHECK(strlen(greeting.name) <= WIRE_NAME_BYTES_MAX);
        CHECK(greeting.tracker < SWERVE_TRACKER_COUNT);
        CHECK(strlen(greeting.loaded) == 0 || strlen(greeting.loaded) == WIRE_LOADED_BYTES);
    } else {
        CHECK(greeting.wants == 9999 && greeting.name[0] == '\0');
    }
    read_scene(bytes, size);
    char text[64];
    wire_error_text(bytes, size, text, sizeof text);
    CHECK(strlen(text) < sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    uint32_t count = 1 + data[0] % SESSIONS;
    uint32_t sequence = data[0] / SESSIONS;
    data++;
    size--;
    while (size >= sizeof(struct wire_header)) {
        struct wire_header header;
        struct error error = {STATUS_OK, ""};
        if (wire_header_decode(data, sequence,
                               wire_answer_bytes_max(PLANNER_WIRE_VERSION_NEWEST, count), &header,
                               &error) != STATUS_OK) {
            CHECK(error.text[0] != '\0');
            return 0;
        }
        data += sizeof header;
        size -= sizeof header;
        if (header.payload_bytes > size) {
            return 0;
        }
        /* A copy of its own, so that AddressSanitizer sees a single byte too far. */
        uint8_t *copy = malloc(header.payload_bytes > 0 ? header.payload_bytes : 1);
        CHECK(copy != NULL);
        memcpy(copy, data, header.payload_bytes);
        decode_payload(copy, header.payload_bytes, count);
        free(copy);
        data += header.payload_bytes;
        size -= header.payload_bytes;
        sequence++;
    }
    return 0;
}
