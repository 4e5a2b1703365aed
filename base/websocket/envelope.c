/*
 * Envelopes. See envelope.h.
 */
#include "base/websocket/envelope.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t take(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static bool is_text(const unsigned char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        size_t step = text[at] != '\0' ? utf8_sequence_bytes(text + at, bytes - at) : 0;
        if (step == 0) {
            return false;
        }
        at += step;
    }
    return true;
}

enum status envelope_read(const void *data, size_t bytes, struct envelope *out, struct error *error)
{
    const uint8_t *at = data;
    if (bytes < ENVELOPE_HEAD_BYTES) {
        return error_set(error, STATUS_BAD_INPUT, "envelope: expected %d bytes or more, found %zu",
                         ENVELOPE_HEAD_BYTES, bytes);
    }
    uint64_t kind = take(at + 8, 4);
    uint64_t text_bytes = take(at + 12, 4);
    size_t left = bytes - ENVELOPE_HEAD_BYTES;
    if (kind == 0 || kind >= ENVELOPE_KINDS) {
        return error_set(error, STATUS_BAD_INPUT,
                         "envelope: expected a kind from 1 to %d, found %" PRIu64,
                         ENVELOPE_KINDS - 1, kind);
    }
    if (text_bytes > left || (text_bytes < left && kind != ENVELOPE_SHOW)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "envelope of kind %" PRIu64 ": expected a text of %" PRIu64
                         " bytes, found %zu bytes behind its head",
                         kind, text_bytes, left);
    }
    const uint8_t *text = at + ENVELOPE_HEAD_BYTES;
    if (!is_text(text, (size_t)text_bytes)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "envelope of kind %" PRIu64 ": expected a text in UTF-8", kind);
    }
    *out = (struct envelope){
        .session = take(at, 8),
        .kind = (enum envelope_kind)kind,
        .text = (const char *)text,
        .text_bytes = (size_t)text_bytes,
        .bytes = text + text_bytes,
        .byte_count = left - (size_t)text_bytes,
    };
    return STATUS_OK;
}

void *envelope_make(const struct envelope *envelope, size_t *bytes)
{
    *bytes = ENVELOPE_HEAD_BYTES + envelope->text_bytes + envelope->byte_count;
    uint8_t *out = malloc(*bytes);
    if (out == NULL) {
        return NULL;
    }
    put(out, envelope->session, 8);
    put(out + 8, envelope->kind, 4);
    put(out + 12, envelope->text_bytes, 4);
    if (envelope->text_bytes > 0) {
        memcpy(out + ENVELOPE_HEAD_BYTES, envelope->text, envelope->text_bytes);
    }
    if (envelope->byte_count > 0) {
        memcpy(out + ENVELOPE_HEAD_BYTES + envelope->text_bytes, envelope->bytes,
               envelope->byte_count);
    }
    return out;
}

char *envelope_text(const struct envelope *envelope)
{
    char *text = malloc(envelope->text_bytes + 1);
    if (text != NULL) {
        memcpy(text, envelope->text, envelope->text_bytes);
        text[envelope->text_bytes] = '\0';
    }
    return text;
}
