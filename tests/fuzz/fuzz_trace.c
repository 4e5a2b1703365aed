/*
 * Fuzz target: traces, the artifact behind every outcome. What the reader accepts is walked through
 * completely: every rollout found by its name, every tick and scene of it, every keyframe
 * decoded.
 *
 * Traces are large and mostly numbers, so half of the mutations act on the headers alone.
 */
#include "base/check.h"
#include "engine/trace/trace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max);

enum { SCENES_MAX = 64 };

/* A random one of the 32-bit words that the reader believes, set to a number near the limits. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const uint32_t words[] = {0,
                                     1,
                                     2,
                                     3,
                                     255,
                                     256,
                                     257,
                                     LIMIT_HORIZON_TICKS,
                                     LIMIT_HORIZON_TICKS + 1,
                                     INT32_MAX,
                                     1u << 31,
                                     UINT32_MAX};
    struct trace_file_header header;
    struct trace_rollout_header rollout;
    size_t at = sizeof header;
    if (seed % 2 == 0 || bytes < sizeof header + sizeof rollout) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    memcpy(&header, data, sizeof header);
    uint64_t stride =
        sizeof(struct trace_tick) + (uint64_t)header.agent_count * sizeof(struct trace_agent);
    for (unsigned skip = seed / 2 % 4; skip > 0; skip--) {
        memcpy(&rollout, data + at, sizeof rollout);
        uint64_t next = at + sizeof rollout + rollout.tick_count * (stride % (1u << 20));
        if (next + sizeof rollout > bytes) {
            break;
        }
        at = (size_t)next;
    }
    size_t places[] = {offsetof(struct trace_file_header, rollout_count),
                       offsetof(struct trace_file_header, agent_count),
                       at + offsetof(struct trace_rollout_header, first_tick),
                       at + offsetof(struct trace_rollout_header, tick_count),
                       at + offsetof(struct trace_rollout_header, parent),
                       at + sizeof rollout};
    size_t place = places[seed / 8 % COUNT_OF(places)];
    if (place + sizeof words[0] <= bytes) {
        memcpy(data + place, &words[seed / 64 % COUNT_OF(words)], sizeof words[0]);
    }
    return bytes;
}

static void check_keyframes(const struct trace_reader *reader, int32_t rollout, uint32_t tick)
{
    static struct trace_keyframe frame;
    static uint8_t bev[BEV_BYTES];
    static uint8_t camera[CAMERA_BYTES];
    if (trace_reader_keyframes(reader, rollout, tick, &frame)) {
        keyframes_decode_bev(&frame, bev);
        keyframes_decode_camera(&frame, camera);
    }
}

static void check_rollout(const struct trace_reader *reader, int32_t index)
{
    static struct scene scene;
    const struct trace_rollout_view *view = &reader->rollouts[index];
    struct trace_tick tick;
    int32_t found = trace_reader_find(reader, view->header.branch_id);
    CHECK(found >= 0 && found <= index);
    CHECK(strcmp(reader->rollouts[found].header.branch_id, view->header.branch_id) == 0);
    uint32_t last = trace_reader_last_tick(reader, index);
    CHECK(last <= LIMIT_HORIZON_TICKS + 1);
    CHECK(!trace_reader_scene(reader, index, last + 1, &scene, NULL));
    uint32_t first = last < SCENES_MAX ? 0 : last - SCENES_MAX;
    bool recorded = false;
    for (uint32_t i = first; i <= last; i++) {
        bool there = trace_reader_scene(reader, index, i, &scene, &tick);
        /* From tick 0 on without a gap, once anything was recorded. */
        CHECK(i == first || there == recorded);
        CHECK(!there || (tick.tick == i && scene.agent_count == reader->header.agent_count));
        recorded = there;
    }
    check_keyframes(reader, index, 0);
    check_keyframes(reader, index, last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct trace_reader reader;
    struct error error = {0};
    uint8_t *copy = malloc(bytes > 0 ? bytes : 1);
    CHECK(copy != NULL);
    memcpy(copy, data, bytes);
    enum status status = trace_reader_init(&reader, copy, bytes, &error);
    if (status == STATUS_OK) {
        for (uint32_t i = 0; i < reader.header.rollout_count; i++) {
            check_rollout(&reader, (int32_t)i);
        }
        trace_reader_finish(&reader);
    } else {
        CHECK(status == error.status && strncmp(error.text, "trace: ", 7) == 0);
        CHECK(reader.rollouts == NULL);
    }
    free(copy);
    return 0;
}
