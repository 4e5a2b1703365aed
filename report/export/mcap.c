/*
 * MCAP records. A record is its opcode, the bytes of its content as u64, and the content; numbers
 * are little-endian, a string is its bytes as u32 and the bytes, a map its bytes as u32 and its
 * entries.
 */
#include "report/export/mcap.h"

#include "base/check.h"
#include "base/crc32.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static const uint8_t magic[8] = {0x89, 'M', 'C', 'A', 'P', '0', '\r', '\n'};

enum opcode {
    OP_HEADER = 0x01,
    OP_FOOTER = 0x02,
    OP_SCHEMA = 0x03,
    OP_CHANNEL = 0x04,
    OP_MESSAGE = 0x05,
    OP_CHUNK = 0x06,
    OP_MESSAGE_INDEX = 0x07,
    OP_CHUNK_INDEX = 0x08,
    OP_STATISTICS = 0x0B,
    OP_METADATA = 0x0C,
    OP_METADATA_INDEX = 0x0D,
    OP_SUMMARY_OFFSET = 0x0E,
    OP_DATA_END = 0x0F,
};

enum { ZSTD_LEVEL = 3 };

struct buffer {
    uint8_t *data; /* owned */
    size_t bytes;
    size_t capacity_bytes;
};

/* Places of one channel's messages in the open chunk. */
struct channel {
    struct buffer index; /* (time, offset) pairs */
    uint64_t messages;
    uint32_t sequence;
};

struct mcap {
    FILE *out;
    const char *place;
    enum status status; /* the first failure */
    int cause;          /* errno of it */
    uint64_t written;   /* bytes */
    uint16_t channel_count;
    struct channel channels[MCAP_CHANNELS_MAX];
    struct buffer schemas;         /* records, for the first chunk and the summary */
    struct buffer channel_records; /* of the channels, likewise */
    struct buffer chunk;           /* records, uncompressed */
    uint64_t chunk_first_ns;
    uint64_t chunk_last_ns;
    bool chunk_has_messages;
    struct buffer chunk_indexes;    /* records for the summary */
    struct buffer metadata_indexes; /* likewise */
    uint32_t chunk_count;
    uint32_t metadata_count;
    uint64_t message_count;
    uint64_t first_ns;
    uint64_t last_ns;
};

static void fail(struct mcap *file, enum status status)
{
    if (file->status == STATUS_OK) {
        file->status = status;
        file->cause = errno;
    }
}

static void put(struct mcap *file, struct buffer *buffer, const void *data, size_t bytes)
{
    if (file->status != STATUS_OK || bytes == 0) {
        return;
    }
    if (bytes > buffer->capacity_bytes - buffer->bytes) {
        size_t capacity = 2 * (buffer->bytes + bytes);
        uint8_t *grown = realloc(buffer->data, capacity);
        if (grown == NULL) {
            fail(file, STATUS_NO_MEMORY);
            return;
        }
        buffer->data = grown;
        buffer->capacity_bytes = capacity;
    }
    memcpy(buffer->data + buffer->bytes, data, bytes);
    buffer->bytes += bytes;
}

static void put_number(struct mcap *file, struct buffer *buffer, uint64_t value, size_t bytes)
{
    uint8_t text[8];
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (uint8_t)(value >> (8 * i));
    }
    put(file, buffer, text, bytes);
}

static void put_bytes(struct mcap *file, struct buffer *buffer, const void *data, size_t bytes)
{
    put_number(file, buffer, bytes, 4);
    put(file, buffer, data, bytes);
}

static void put_text(struct mcap *file, struct buffer *buffer, const char *text)
{
    put_bytes(file, buffer, text, strlen(text));
}

/* Appends a record of `content`, which is emptied. */
static void put_record(struct mcap *file, struct buffer *to, enum opcode opcode,
                       struct buffer *content)
{
    put_number(file, to, (uint64_t)opcode, 1);
    put_number(file, to, content->bytes, 8);
    put(file, to, content->data, content->bytes);
    free(content->data);
    *content = (struct buffer){0};
}

/* Writes a buffer to the stream and empties it. */
static void flush(struct mcap *file, struct buffer *buffer)
{
    if (file->status == STATUS_OK && buffer->bytes > 0 &&
        fwrite(buffer->data, 1, buffer->bytes, file->out) != buffer->bytes) {
        fail(file, STATUS_IO);
    }
    file->written += buffer->bytes;
    buffer->bytes = 0;
}

static void write_record(struct mcap *file, enum opcode opcode, struct buffer *content)
{
    struct buffer record = {0};
    put_record(file, &record, opcode, content);
    flush(file, &record);
    free(record.data);
}

enum status mcap_create(FILE *out, const char *place, struct mcap **result, struct error *error)
{
    struct mcap *file = calloc(1, sizeof *file);
    TRY(memory_check(file, error, "%s: out of memory", place));
    file->out = out;
    file->place = place;
    struct buffer start = {0};
    struct buffer header = {0};
    put(file, &start, magic, sizeof magic);
    put_text(file, &header, ""); /* no profile */
    put_text(file, &header, "swerve");
    put_record(file, &start, OP_HEADER, &header);
    flush(file, &start);
    free(start.data);
    *result = file;
    return STATUS_OK;
}

uint16_t mcap_channel(struct mcap *file, const char *topic, const char *schema, const char *text)
{
    CHECK(file->channel_count < MCAP_CHANNELS_MAX && file->message_count == 0);
    uint16_t id = ++file->channel_count; /* schema 0 means none */
    struct buffer content = {0};
    put_number(file, &content, id, 2);
    put_text(file, &content, schema);
    put_text(file, &content, "jsonschema");
    put_text(file, &content, text);
    put_record(file, &file->schemas, OP_SCHEMA, &content);
    put_number(file, &content, id, 2);
    put_number(file, &content, id, 2);
    put_text(file, &content, topic);
    put_text(file, &content, "json");
    put_number(file, &content, 0, 4); /* no metadata */
    put_record(file, &file->channel_records, OP_CHANNEL, &content);
    return id;
}

/* The message indexes after a chunk, and its entry in the summary. */
static void write_indexes(struct mcap *file, uint64_t chunk_start, uint64_t chunk_bytes,
                          size_t packed_bytes)
{
    struct buffer entry = {0};
    struct buffer offsets = {0};
    uint64_t index_start = file->written;
    for (uint16_t i = 0; i < file->channel_count; i++) {
        struct channel *channel = &file->channels[i];
        if (channel->index.bytes == 0) {
            continue;
        }
        struct buffer index = {0};
        put_number(file, &offsets, i + 1, 2);
        put_number(file, &offsets, file->written, 8);
        put_number(file, &index, i + 1, 2);
        put_bytes(file, &index, channel->index.data, channel->index.bytes);
        write_record(file, OP_MESSAGE_INDEX, &index);
        channel->index.bytes = 0;
    }
    put_number(file, &entry, file->chunk_first_ns, 8);
    put_number(file, &entry, file->chunk_last_ns, 8);
    put_number(file, &entry, chunk_start, 8);
    put_number(file, &entry, chunk_bytes, 8);
    put_bytes(file, &entry, offsets.data, offsets.bytes);
    put_number(file, &entry, file->written - index_start, 8);
    put_text(file, &entry, "zstd");
    put_number(file, &entry, packed_bytes, 8);
    put_number(file, &entry, file->chunk.bytes, 8);
    put_record(file, &file->chunk_indexes, OP_CHUNK_INDEX, &entry);
    free(offsets.data);
}

static void write_chunk(struct mcap *file)
{
    size_t bound = ZSTD_compressBound(file->chunk.bytes);
    void *packed = malloc(bound);
    if (packed == NULL) {
        fail(file, STATUS_NO_MEMORY);
        return;
    }
    size_t packed_bytes =
        ZSTD_compress(packed, bound, file->chunk.data, file->chunk.bytes, ZSTD_LEVEL);
    if (ZSTD_isError(packed_bytes)) {
        fail(file, STATUS_NO_MEMORY);
    } else {
        struct buffer content = {0};
        uint64_t start = file->written;
        put_number(file, &content, file->chunk_first_ns, 8);
        put_number(file, &content, file->chunk_last_ns, 8);
        put_number(file, &content, file->chunk.bytes, 8);
        put_number(file, &content, crc32_of(file->chunk.data, file->chunk.bytes), 4);
        put_text(file, &content, "zstd");
        put_number(file, &content, packed_bytes, 8);
        put(file, &content, packed, packed_bytes);
        write_record(file, OP_CHUNK, &content);
        write_indexes(file, start, file->written - start, packed_bytes);
        file->chunk_count++;
    }
    file->chunk.bytes = 0;
    file->chunk_has_messages = false;
    free(packed);
}

void mcap_message(struct mcap *file, uint16_t channel, uint64_t time_ns, const void *data,
                  size_t bytes)
{
    CHECK(channel >= 1 && channel <= file->channel_count);
    if (file->status != STATUS_OK) {
        return;
    }
    struct channel *of = &file->channels[channel - 1];
    if (file->message_count == 0) { /* declared where the first message needs it */
        put(file, &file->chunk, file->schemas.data, file->schemas.bytes);
        put(file, &file->chunk, file->channel_records.data, file->channel_records.bytes);
        file->first_ns = time_ns;
    }
    if (!file->chunk_has_messages) {
        file->chunk_first_ns = time_ns;
        file->chunk_has_messages = true;
    }
    put_number(file, &of->index, time_ns, 8);
    put_number(file, &of->index, file->chunk.bytes, 8);
    struct buffer content = {0};
    put_number(file, &content, channel, 2);
    put_number(file, &content, of->sequence++, 4);
    put_number(file, &content, time_ns, 8);
    put_number(file, &content, time_ns, 8);
    put(file, &content, data, bytes);
    put_record(file, &file->chunk, OP_MESSAGE, &content);
    of->messages++;
    file->message_count++;
    file->chunk_last_ns = time_ns;
    file->last_ns = time_ns;
    if (file->chunk.bytes >= MCAP_CHUNK_BYTES) {
        write_chunk(file);
    }
}

void mcap_metadata(struct mcap *file, const char *name, const char *const *pairs)
{
    struct buffer content = {0};
    struct buffer map = {0};
    struct buffer index = {0};
    for (; pairs[0] != NULL; pairs += 2) {
        put_text(file, &map, pairs[0]);
        put_text(file, &map, pairs[1]);
    }
    put_text(file, &content, name);
    put_bytes(file, &content, map.data, map.bytes);
    free(map.data);
    uint64_t start = file->written;
    write_record(file, OP_METADATA, &content);
    put_number(file, &index, start, 8);
    put_number(file, &index, file->written - start, 8);
    put_text(file, &index, name);
    put_record(file, &file->metadata_indexes, OP_METADATA_INDEX, &index);
    file->metadata_count++;
}

static void put_statistics(struct mcap *file, struct buffer *to)
{
    struct buffer content = {0};
    struct buffer counts = {0};
    for (uint16_t i = 0; i < file->channel_count; i++) {
        put_number(file, &counts, i + 1, 2);
        put_number(file, &counts, file->channels[i].messages, 8);
    }
    put_number(file, &content, file->message_count, 8);
    put_number(file, &content, file->channel_count, 2); /* schemas */
    put_number(file, &content, file->channel_count, 4);
    put_number(file, &content, 0, 4); /* attachments */
    put_number(file, &content, file->metadata_count, 4);
    put_number(file, &content, file->chunk_count, 4);
    put_number(file, &content, file->first_ns, 8);
    put_number(file, &content, file->last_ns, 8);
    put_bytes(file, &content, counts.data, counts.bytes);
    put_record(file, to, OP_STATISTICS, &content);
    free(counts.data);
}

/* One group of the summary, with its place for the offsets. */
static void write_group(struct mcap *file, enum opcode opcode, struct buffer *group,
                        struct buffer *offsets)
{
    struct buffer entry = {0};
    if (group->bytes == 0) {
        return;
    }
    put_number(file, &entry, (uint64_t)opcode, 1);
    put_number(file, &entry, file->written, 8);
    put_number(file, &entry, group->bytes, 8);
    put_record(file, offsets, OP_SUMMARY_OFFSET, &entry);
    flush(file, group);
}

static void write_summary(struct mcap *file)
{
    struct buffer statistics = {0};
    struct buffer offsets = {0};
    struct buffer footer = {0};
    uint64_t summary_start = file->written;
    put_statistics(file, &statistics);
    write_group(file, OP_SCHEMA, &file->schemas, &offsets);
    write_group(file, OP_CHANNEL, &file->channel_records, &offsets);
    write_group(file, OP_STATISTICS, &statistics, &offsets);
    write_group(file, OP_METADATA_INDEX, &file->metadata_indexes, &offsets);
    write_group(file, OP_CHUNK_INDEX, &file->chunk_indexes, &offsets);
    uint64_t offsets_start = file->written;
    flush(file, &offsets);
    put_number(file, &footer, summary_start, 8);
    put_number(file, &footer, offsets_start, 8);
    put_number(file, &footer, 0, 4); /* no CRC of the summary */
    write_record(file, OP_FOOTER, &footer);
    free(statistics.data);
    free(offsets.data);
}

enum status mcap_finish(struct mcap *file, struct error *error)
{
    struct buffer end = {0};
    if (file->chunk_has_messages) {
        write_chunk(file);
    }
    put_number(file, &end, 0, 4); /* no CRC of the data: each chunk has its own */
    write_record(file, OP_DATA_END, &end);
    write_summary(file);
    put(file, &end, magic, sizeof magic);
    flush(file, &end);
    free(end.data);
    enum status status = file->status;
    if (status == STATUS_NO_MEMORY) {
        error_set(error, status, "%s: out of memory", file->place);
    } else if (status != STATUS_OK) {
        error_set(error, status, "%s: cannot write: %s", file->place, strerror(file->cause));
    }
    for (uint16_t i = 0; i < file->channel_count; i++) {
        free(file->channels[i].index.data);
    }
    free(file->schemas.data);
    free(file->channel_records.data);
    free(file->chunk.data);
    free(file->chunk_indexes.data);
    free(file->metadata_indexes.data);
    free(file);
    return status;
}
