/*
 * Stderr of an exec planner, told apart by session. See planner_output.h.
 *
 * Bytes come in pieces of any size, so a label is read by a small machine whose state outlives a
 * piece. What looked like a label and is none is put back as text.
 */
#include "worker/planner/planner_output.h"

#include "base/check.h"
#include "worker/wire/planner_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_DIGITS_MAX = 9, LINE_BYTES = 1024, DROPPED_BYTES = 64 };

struct session_text {
    size_t total_bytes;
    char ring[PLANNER_OUTPUT_BYTES];
    char line[LINE_BYTES]; /* the line under way, for the listener */
    size_t line_bytes;
};

enum reading { LINE_START, LABEL, TEXT };

struct planner_output {
    uint32_t session_count;
    struct session_text **sessions; /* [session_count], owned; NULL: it said nothing yet */
    int32_t speaker;
    enum reading reading;
    int32_t owner; /* of the line under way */
    char label[LABEL_DIGITS_MAX + 1];
    size_t label_digits;
    planner_output_line *told;
    void *context;
    size_t total_bytes;
    char tail[PLANNER_OUTPUT_TAIL_BYTES]; /* ring */
};

enum status planner_output_create(uint32_t session_count, struct planner_output **out,
                                  struct error *error)
{
    struct planner_output *output = calloc(1, sizeof *output);
    TRY(memory_check(output, error, "planner output: out of memory"));
    output->session_count = session_count;
    output->speaker = PLANNER_OUTPUT_NOBODY;
    output->sessions = calloc(session_count, sizeof(struct session_text *));
    if (output->sessions == NULL) {
        free(output);
        return error_set(error, STATUS_NO_MEMORY, "planner output: out of memory");
    }
    *out = output;
    return STATUS_OK;
}

void planner_output_destroy(struct planner_output *output)
{
    if (output == NULL) {
        return;
    }
    for (uint32_t i = 0; i < output->session_count; i++) {
        free(output->sessions[i]);
    }
    free((void *)output->sessions);
    free(output);
}

void planner_output_speaker(struct planner_output *output, int32_t session)
{
    output->speaker = session;
}

void planner_output_listen(struct planner_output *output, planner_output_line *told, void *context)
{
    output->told = told;
    output->context = context;
}

/* NULL where memory is short: the output is for people, no rollout fails for want of it. */
static struct session_text *session_text(struct planner_output *output, int32_t session)
{
    if (session < 0) {
        return NULL;
    }
    struct session_text **place = &output->sessions[session];
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
    }
    return *place;
}

static void tell(struct planner_output *output, struct session_text *text, char byte)
{
    if (output->told == NULL) {
        return;
    }
    if (byte != '\n') {
        text->line[text->line_bytes++] = byte;
    }
    if (byte == '\n' || text->line_bytes == LINE_BYTES) {
        output->told(output->context, (uint32_t)output->owner, text->line, text->line_bytes);
        text->line_bytes = 0;
    }
}

static void put_byte(struct planner_output *output, char byte)
{
    byte = byte != '\0' ? byte : '?';
    output->tail[output->total_bytes++ % PLANNER_OUTPUT_TAIL_BYTES] = byte;
    struct session_text *text = session_text(output, output->owner);
    if (text != NULL) {
        text->ring[text->total_bytes++ % PLANNER_OUTPUT_BYTES] = byte;
        tell(output, text, byte);
    }
}

/* It was no label: what was taken for one is text of whoever speaks. */
static void put_label_back(struct planner_output *output)
{
    output->owner = output->speaker;
    put_byte(output, PLANNER_OUTPUT_MARK);
    for (size_t i = 0; i < output->label_digits; i++) {
        put_byte(output, output->label[i]);
    }
    output->reading = TEXT;
}

/* True: the byte belonged to a label. */
static bool read_label(struct planner_output *output, char byte)
{
    if (byte >= '0' && byte <= '9' && output->label_digits < LABEL_DIGITS_MAX) {
        output->label[output->label_digits++] = byte;
        return true;
    }
    output->label[output->label_digits] = '\0';
    long session = strtol(output->label, NULL, 10);
    if (byte == ' ' && output->label_digits > 0 && session < (long)output->session_count) {
        output->owner = (int32_t)session;
        output->reading = TEXT;
        return true;
    }
    put_label_back(output);
    return false;
}

void planner_output_put(struct planner_output *output, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (output->reading == LINE_START) {
            output->owner = output->speaker;
            output->reading = bytes[i] == PLANNER_OUTPUT_MARK ? LABEL : TEXT;
            output->label_digits = 0;
            if (output->reading == LABEL) {
                continue;
            }
        }
        if (output->reading == LABEL && read_label(output, bytes[i])) {
            continue;
        }
        put_byte(output, bytes[i]);
        output->reading = bytes[i] == '\n' ? LINE_START : TEXT;
    }
}

static size_t unroll(const char *ring, size_t ring_bytes, size_t total, size_t kept, char *text)
{
    for (size_t i = 0; i < kept; i++) {
        text[i] = ring[(total - kept + i) % ring_bytes];
    }
    text[kept] = '\0';
    return kept;
}

void planner_output_tail(const struct planner_output *output, char *text)
{
    size_t total = output->total_bytes;
    size_t kept = total < PLANNER_OUTPUT_TAIL_BYTES ? total : PLANNER_OUTPUT_TAIL_BYTES;
    unroll(output->tail, PLANNER_OUTPUT_TAIL_BYTES, total, kept, text);
}

size_t planner_output_session(const struct planner_output *output, uint32_t session, char *text)
{
    CHECK(session < output->session_count);
    const struct session_text *from = output->sessions[session];
    text[0] = '\0';
    if (from == NULL) {
        return 0;
    }
    if (from->total_bytes <= PLANNER_OUTPUT_BYTES) {
        return unroll(from->ring, PLANNER_OUTPUT_BYTES, from->total_bytes, from->total_bytes, text);
    }
    size_t kept = PLANNER_OUTPUT_BYTES - DROPPED_BYTES;
    int head = snprintf(text, DROPPED_BYTES, "(%zu bytes before this were not kept)\n",
                        from->total_bytes - kept);
    CHECK(head > 0 && head < DROPPED_BYTES);
    unroll(from->ring, PLANNER_OUTPUT_BYTES, from->total_bytes, kept, text + head);
    /* Not from the middle of a UTF-8 character. */
    char *start = text + head;
    size_t skip = 0;
    while (skip < kept && ((unsigned char)start[skip] & 0xC0) == 0x80) {
        skip++;
    }
    memmove(start, start + skip, kept - skip + 1);
    return (size_t)head + kept - skip;
}

void planner_output_clear(struct planner_output *output, uint32_t session)
{
    CHECK(session < output->session_count);
    struct session_text *text = output->sessions[session];
    if (text != NULL) {
        text->total_bytes = 0;
        text->line_bytes = 0;
    }
}

void planner_output_last_line(const char *text, char *line, size_t bytes)
{
    size_t end = strlen(text);
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' ')) {
        end--;
    }
    size_t start = end;
    while (start > 0 && text[start - 1] != '\n') {
        start--;
    }
    if (end - start >= bytes) {
        start = end - (bytes - 1) + 2;
        while (start < end && ((unsigned char)text[start] & 0xC0) == 0x80) {
            start++; /* not into the middle of a UTF-8 character */
        }
        memcpy(line, "..", 2);
        line += 2;
        bytes -= 2;
    }
    wire_error_text((const uint8_t *)text + start, end - start, line, bytes);
}
