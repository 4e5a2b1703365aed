/*
 * Packing and reading recordings. See golden_recording.h.
 */
#include "worker/golden/golden_recording.h"

#include "worker/run/outcome_build.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct recording_header) == 16, "recording layout");

/* ---- packing ---- */

/* Every tick of what was picked has its frame; *bytes: of sizes and frames. */
static enum status measure(const struct job_run *job, const uint32_t *picked, uint32_t count,
                           size_t *bytes, struct error *error)
{
    *bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct trace *trace = &job->results[picked[i]].trace;
        if (trace->reel.count != trace->tick_count) {
            return error_set(error, STATUS_CONFLICT,
                             "golden: scenario %s: expected a frame for each of %u ticks, found %u",
                             job->scenario->id, trace->tick_count, trace->reel.count);
        }
        *bytes += trace->reel.bytes + trace->reel.count * sizeof(uint32_t);
    }
    return STATUS_OK;
}

static uint8_t *put(uint8_t *at, const void *data, size_t bytes)
{
    if (bytes > 0) { /* of no ticks there is no memory either */
        memcpy(at, data, bytes);
    }
    return at + bytes;
}

static enum status join(const struct job_run *job, const uint32_t *picked, uint32_t count,
                        const uint8_t *traces, size_t trace_bytes, uint8_t **data, size_t *bytes,
                        struct error *error)
{
    const struct recording_header header = {.magic = RECORDING_MAGIC, .trace_bytes = trace_bytes};
    size_t reels = 0;
    TRY(measure(job, picked, count, &reels, error));
    *bytes = sizeof header + trace_bytes + reels;
    if (*bytes > LIMIT_ARTIFACT_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "golden: scenario %s: its recording takes %zu MiB, expected at most %d; "
                         "use a shorter horizon or fewer branches",
                         job->scenario->id, *bytes >> 20, LIMIT_ARTIFACT_BYTES >> 20);
    }
    *data = malloc(*bytes);
    TRY(memory_check(*data, error, "golden: out of memory"));
    uint8_t *at = put(*data, &header, sizeof header);
    at = put(at, traces, trace_bytes);
    for (uint32_t i = 0; i < count; i++) {
        const struct reel *reel = &job->results[picked[i]].trace.reel;
        at = put(at, reel->sizes, reel->count * sizeof(uint32_t));
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct reel *reel = &job->results[picked[i]].trace.reel;
        at = put(at, reel->data, reel->bytes);
    }
    return STATUS_OK;
}

enum status recording_pack(const struct job_run *job, uint8_t **data, size_t *bytes,
                           struct error *error)
{
    uint32_t picked[1 + LIMIT_BRANCHES];
    uint8_t *traces = NULL;
    size_t trace_bytes = 0;
    uint32_t count = outcome_pick(job, &job->results[0].trace, picked);
    TRY(outcome_pack_traces(job, &job->results[0].trace, picked, count, &traces, &trace_bytes,
                            error));
    enum status status = join(job, picked, count, traces, trace_bytes, data, bytes, error);
    free(traces);
    return status;
}

/* ---- reading ---- */

static enum status damaged(struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT,
                     "golden: expected a recording (%s), found something else or a part of one",
                     RECORDING_MAGIC);
}

/* Finds where each frame lies; `at` is behind the trace. */
static enum status read_frames(struct recording *recording, const uint8_t *at, size_t bytes,
                               struct error *error)
{
    const struct trace_reader *reader = &recording->reader;
    size_t count = 0;
    recording->first = calloc((size_t)reader->header.rollout_count + 1, sizeof(uint32_t));
    TRY(memory_check(recording->first, error, "golden: out of memory"));
    for (uint32_t i = 0; i < reader->header.rollout_count; i++) {
        recording->first[i] = (uint32_t)count;
        count += reader->rollouts[i].header.tick_count;
    }
    if (count > bytes / sizeof(uint32_t)) {
        return damaged(error);
    }
    recording->offsets = calloc(count + 1, sizeof *recording->offsets);
    TRY(memory_check(recording->offsets, error, "golden: out of memory"));
    recording->frames = at + count * sizeof(uint32_t);
    size_t left = bytes - count * sizeof(uint32_t);
    for (size_t i = 0; i < count; i++) {
        uint32_t size;
        memcpy(&size, at + i * sizeof size, sizeof size);
        if (size > left) {
            return damaged(error);
        }
        left -= size;
        recording->offsets[i + 1] = recording->offsets[i] + size;
    }
    return left == 0 ? STATUS_OK : damaged(error);
}

static enum status open_parts(struct recording *recording, size_t bytes, struct error *error)
{
    struct recording_header header;
    const uint8_t *data = recording->data;
    if (bytes < sizeof header) {
        return damaged(error);
    }
    memcpy(&header, data, sizeof header);
    if (memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0 ||
        header.trace_bytes > bytes - sizeof header) {
        return damaged(error);
    }
    size_t behind = sizeof header + (size_t)header.trace_bytes;
    TRY(trace_reader_init(&recording->reader, data + sizeof header, (size_t)header.trace_bytes,
                          error));
    return read_frames(recording, data + behind, bytes - behind, error);
}

enum status recording_open(void *data, size_t bytes, struct recording *out, struct error *error)
{
    *out = (struct recording){.data = data};
    enum status status = open_parts(out, bytes, error);
    if (status != STATUS_OK) {
        recording_close(out);
    }
    return status;
}

void recording_close(struct recording *recording)
{
    trace_reader_finish(&recording->reader);
    free(recording->first);
    free(recording->offsets);
    free(recording->data);
    *recording = (struct recording){.data = NULL};
}

/* The packed frame of a tick; NULL: there is none. */
static const uint8_t *frame_of(const struct recording *recording, int32_t rollout, uint32_t tick,
                               size_t *bytes)
{
    const struct trace_reader *reader = &recording->reader;
    rollout = trace_reader_owner(reader, rollout, tick);
    if (rollout < 0) {
        return NULL;
    }
    const struct trace_rollout_header *header = &reader->rollouts[rollout].header;
    if (tick - header->first_tick >= header->tick_count) {
        return NULL;
    }
    const size_t *at = &recording->offsets[recording->first[rollout] + (tick - header->first_tick)];
    *bytes = at[1] - at[0];
    return recording->frames + at[0];
}

bool recording_frame(const struct recording *recording, int32_t rollout, uint32_t tick,
                     unsigned parts, uint8_t *frame)
{
    size_t bytes;
    const uint8_t *packed = frame_of(recording, rollout, tick, &bytes);
    return packed != NULL && reel_unpack(packed, bytes, parts, frame);
}

bool recording_shot(const struct recording *recording, int32_t rollout, uint32_t tick,
                    uint32_t camera, uint32_t jpeg_quality, struct world_shot *out,
                    const uint8_t **frames)
{
    size_t bytes;
    size_t left = 0;
    const uint8_t *packed = frame_of(recording, rollout, tick, &bytes);
    const uint8_t *at = packed != NULL ? reel_added(packed, bytes, &left) : NULL;
    while (at != NULL && left >= sizeof *out) {
        memcpy(out, at, sizeof *out);
        at += sizeof *out;
        left -= sizeof *out;
        size_t behind = 0;
        for (uint32_t k = 0; k < out->count && k < WORLD_SHOT_FRAMES; k++) {
            behind += out->bytes[k];
        }
        if (out->count > WORLD_SHOT_FRAMES || behind > left) {
            return false;
        }
        if (out->camera == camera && out->jpeg_quality == jpeg_quality) {
            *frames = at;
            return true;
        }
        at += behind;
        left -= behind;
    }
    return false;
}
