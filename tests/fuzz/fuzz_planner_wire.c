/*
 * Fuzz target: everything an exec planner can send. The input is a stream of frames as the worker
 * would read it; the first byte chooses the batch and the sequence number, so that valid frames are
 * in reach. Decoders must refuse or accept, never read beyond the bytes, and write only on success.
 */
#include "base/check.h"
#include "worker/planner/planner_wire.h"

#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 16 };

static void decode_payload(const uint8_t *bytes, size_t size, uint32_t count)
{
    struct swerve_observation seen[SESSIONS];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        seen[i].session = i;
    }
    struct swerve_action actions[SESSIONS];
    uint8_t failed[SESSIONS];
    memset(failed, 0xee, sizeof failed);
    struct error error = {STATUS_OK, ""};
    if (wire_actions_decode(bytes, size, count, seen, actions, failed, &error) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            CHECK(failed[i] <= 1);
        }
    } else {
        CHECK(failed[0] == 0xee && error.text[0] != '\0');
    }
    struct wire_greeting greeting = {.wants = 99};
    if (wire_welcome_decode(bytes, size, &greeting, &error) == STATUS_OK) {
        CHECK(greeting.wants <= 3 && strlen(greeting.name) <= WIRE_NAME_BYTES_MAX);
        CHECK(strlen(greeting.loaded) == 0 || strlen(greeting.loaded) == WIRE_LOADED_BYTES);
    } else {
        CHECK(greeting.wants == 99 && greeting.name[0] == '\0');
    }
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
        if (wire_header_decode(data, sequence, wire_answer_bytes_max(count), &header, &error) !=
            STATUS_OK) {
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
