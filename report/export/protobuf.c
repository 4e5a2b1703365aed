/*
 * Wire format of Protocol Buffers. A message's length stands before it and is known after it: one
 * byte is left free for it, and a longer length moves the content.
 */
#include "report/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };
enum { VARINT_BYTES_MAX = 10, FIRST_BYTES = 4096 };

/* Room for `bytes` more; NULL where memory is short, now or before. */
static uint8_t *room(struct protobuf *buffer, size_t bytes)
{
    if (buffer->failed) {
        return NULL;
    }
    if (buffer->capacity_bytes - buffer->bytes < bytes) {
        size_t capacity =
            buffer->capacity_bytes < FIRST_BYTES ? FIRST_BYTES : buffer->capacity_bytes;
        while (capacity - buffer->bytes < bytes) {
            capacity *= 2;
        }
        uint8_t *data = realloc(buffer->data, capacity);
        if (data == NULL) {
            buffer->failed = true;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity_bytes = capacity;
    }
    return buffer->data + buffer->bytes;
}

static size_t encode_varint(uint64_t value, uint8_t out[VARINT_BYTES_MAX])
{
    size_t count = 0;
    while (value >= 0x80) {
        out[count++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[count++] = (uint8_t)value;
    return count;
}

static void put_varint(struct protobuf *buffer, uint64_t value)
{
    uint8_t *at = room(buffer, VARINT_BYTES_MAX);
    if (at != NULL) {
        buffer->bytes += encode_varint(value, at);
    }
}

static void put_bytes(struct protobuf *buffer, const void *data, size_t bytes)
{
    uint8_t *at = room(buffer, bytes);
    if (at != NULL && bytes > 0) {
        memcpy(at, data, bytes);
        buffer->bytes += bytes;
    }
}

static void put_tag(struct protobuf *buffer, uint32_t field, enum wire wire)
{
    put_varint(buffer, (uint64_t)field << 3 | (uint64_t)wire);
}

void protobuf_finish(struct protobuf *buffer)
{
    free(buffer->data);
    *buffer = (struct protobuf){0};
}

void protobuf_clear(struct protobuf *buffer)
{
    buffer->bytes = 0;
}

void protobuf_number(struct protobuf *buffer, uint32_t field, uint64_t value)
{
    put_tag(buffer, field, WIRE_VARINT);
    put_varint(buffer, value);
}

void protobuf_double(struct protobuf *buffer, uint32_t field, double value)
{
    uint64_t bits;
    uint8_t bytes[sizeof bits];
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(bits >> (8 * i));
    }
    put_tag(buffer, field, WIRE_FIXED64);
    put_bytes(buffer, bytes, sizeof bytes);
}

void protobuf_text(struct protobuf *buffer, uint32_t field, const char *text)
{
    size_t bytes = strlen(text);
    put_tag(buffer, field, WIRE_LENGTH);
    put_varint(buffer, bytes);
    put_bytes(buffer, text, bytes);
}

size_t protobuf_begin(struct protobuf *buffer, uint32_t field)
{
    put_tag(buffer, field, WIRE_LENGTH);
    put_bytes(buffer, "", 1);
    return buffer->bytes;
}

void protobuf_end(struct protobuf *buffer, size_t begin)
{
    uint8_t length[VARINT_BYTES_MAX];
    if (room(buffer, VARINT_BYTES_MAX) == NULL) {
        return;
    }
    size_t content = buffer->bytes - begin;
    size_t bytes = encode_varint(content, length);
    memmove(buffer->data + begin - 1 + bytes, buffer->data + begin, content);
    memcpy(buffer->data + begin - 1, length, bytes);
    buffer->bytes += bytes - 1;
}
