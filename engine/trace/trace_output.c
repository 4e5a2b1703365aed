/*
 * Planners' own output in trace artifacts. See trace_output.h.
 *
 * The reader checks order and sizes once; trace_reader_output() then walks without looking again.
 */
#include "engine/trace/trace_output.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

void trace_keep_output(struct trace *trace, const char *text, size_t bytes)
{
    CHECK(bytes <= TRACE_OUTPUT_BYTES_MAX);
    free(trace->output);
    trace->output = bytes > 0 ? malloc(bytes) : NULL;
    trace->output_bytes = trace->output != NULL ? (uint32_t)bytes : 0;
    if (trace->output != NULL) {
        memcpy(trace->output, text, bytes);
    }
}

size_t trace_output_bytes(const struct trace *const *traces, uint32_t count, size_t room)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes +=
            traces[i]->output_bytes > 0 ? sizeof(struct trace_output) + traces[i]->output_bytes : 0;
    }
    bytes += bytes > 0 ? sizeof(struct trace_output_header) : 0;
    return bytes <= room ? bytes : 0;
}

void trace_output_pack(const struct trace *const *traces, uint32_t count, size_t bytes,
                       uint8_t *out)
{
    struct trace_output_header header = {.text_count = 0};
    if (bytes == 0) {
        return;
    }
    uint8_t *at = out + sizeof header;
    for (uint32_t i = 0; i < count; i++) {
        const struct trace_output text = {i, traces[i]->output_bytes};
        if (text.bytes == 0) {
            continue;
        }
        memcpy(at, &text, sizeof text);
        memcpy(at + sizeof text, traces[i]->output, text.bytes);
        at += sizeof text + text.bytes;
        header.text_count++;
    }
    memcpy(header.magic, TRACE_OUTPUT_MAGIC, sizeof header.magic);
    memcpy(out, &header, sizeof header);
    CHECK((size_t)(at - out) == bytes);
}

enum status trace_output_read(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                              struct error *error)
{
    struct trace_output_header header;
    size_t used = sizeof header;
    int64_t last = -1;
    if (bytes == 0) {
        return STATUS_OK;
    }
    if (bytes < sizeof header || memcmp(data, TRACE_OUTPUT_MAGIC, sizeof header.magic) != 0) {
        return error_set(error, STATUS_BAD_INPUT, "trace: %zu bytes after the last rollout", bytes);
    }
    memcpy(&header, data, sizeof header);
    for (uint32_t i = 0; i < header.text_count; i++) {
        struct trace_output text = {0};
        if (bytes - used >= sizeof text) {
            memcpy(&text, data + used, sizeof text);
            used += sizeof text;
        }
        if (text.bytes == 0 || text.bytes > TRACE_OUTPUT_BYTES_MAX || text.bytes > bytes - used ||
            (int64_t)text.rollout <= last || text.rollout >= reader->header.rollout_count) {
            return error_set(error, STATUS_BAD_INPUT,
                             "trace: planner text %u: %u bytes of rollout %u do not fit", i,
                             text.bytes, text.rollout);
        }
        last = text.rollout;
        used += text.bytes;
    }
    if (used != bytes) {
        return error_set(error, STATUS_BAD_INPUT, "trace: %zu bytes after the planner's texts",
                         bytes - used);
    }
    reader->output = data + sizeof header;
    reader->output_count = header.text_count;
    return STATUS_OK;
}

const char *trace_reader_output(const struct trace_reader *reader, int32_t rollout, uint32_t *bytes)
{
    *bytes = 0;
    /* Parents have smaller indices, so this walk ends. */
    while (rollout >= 0 && reader->rollouts[rollout].header.tick_count == 0 &&
           reader->rollouts[rollout].header.parent >= 0) {
        rollout = reader->rollouts[rollout].header.parent;
    }
    const uint8_t *at = reader->output;
    for (uint32_t i = 0; i < reader->output_count; i++) {
        struct trace_output text;
        memcpy(&text, at, sizeof text);
        at += sizeof text;
        if ((int64_t)text.rollout == rollout) {
            *bytes = text.bytes;
            return (const char *)at;
        }
        at += text.bytes;
    }
    return NULL;
}
