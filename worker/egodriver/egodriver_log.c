/*
 * Messages that a session was sent, for forks, and what its driver told. See egodriver_internal.h.
 */
#include "worker/egodriver/egodriver_internal.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The first of a session is small: many are sent no pictures. */
enum { BLOCK_FIRST_BYTES = 1 << 16, BLOCK_BYTES = 1 << 20, BLOCK_ALIGN = 16 };

struct ego_block {
    uint32_t references; /* its messages, and whoever makes them in it */
    size_t bytes, used;  /* with this head */
};

static size_t aligned(size_t bytes)
{
    return (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

/* With room for `bytes` at least. */
static struct ego_block *block_make(size_t bytes, size_t room)
{
    room = bytes > room ? bytes : room;
    struct ego_block *block =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED) {
        return NULL;
    }
    *block = (struct ego_block){1, room, aligned(sizeof *block)};
    return block;
}

static void block_free(struct ego_block *block)
{
    if (block != NULL && --block->references == 0) {
        munmap(block, block->bytes);
    }
}

void ego_block_leave(struct ego_block **block)
{
    block_free(*block);
    *block = NULL;
}

struct ego_message *ego_message_make(struct ego_block **block, enum ego_call call, size_t bytes)
{
    const size_t head = aligned(sizeof(struct ego_block));
    const size_t taken = aligned(sizeof(struct ego_message) + bytes);
    if (*block != NULL && (*block)->references == 1) {
        (*block)->used = head; /* none of its messages is left */
    }
    if (*block == NULL || taken > (*block)->bytes - (*block)->used) {
        struct ego_block *made =
            block_make(head + taken, *block != NULL ? BLOCK_BYTES : BLOCK_FIRST_BYTES);
        if (made == NULL) {
            return NULL;
        }
        block_free(*block);
        *block = made;
    }
    struct ego_message *message = (void *)((uint8_t *)*block + (*block)->used);
    (*block)->used += taken;
    (*block)->references++;
    *message = (struct ego_message){.references = 1, .call = call, .block = *block, .bytes = bytes};
    return message;
}

void ego_message_free(struct ego_message *message)
{
    if (message != NULL && --message->references == 0) {
        block_free(message->block);
    }
}

static void forget(struct ego_log *log)
{
    for (uint32_t i = 0; i < log->count; i++) {
        ego_message_free(log->messages[i]);
    }
    free(log->messages);
    log->messages = NULL;
    log->count = 0;
}

void ego_log_clear(struct ego_log *log)
{
    forget(log);
    log->bytes = 0;
}

bool ego_log_is_whole(const struct ego_log *log)
{
    return log->bytes <= EGODRIVER_LOG_BYTES_MAX;
}

enum status ego_log_add(struct ego_log *log, struct ego_message *message, struct error *error)
{
    TRY(array_room(&log->messages, log->count, sizeof(struct ego_message *), error));
    log->messages[log->count++] = message;
    log->bytes += message->bytes;
    return STATUS_OK;
}

void ego_log_bound(struct ego_log *log, uint64_t bytes_max)
{
    if (log->bytes > bytes_max) {
        forget(log);
    }
}

enum status ego_log_copy(const struct ego_log *from, struct ego_log *to, struct error *error)
{
    ego_log_clear(to);
    for (uint32_t i = 0; i < from->count; i++) {
        from->messages[i]->references++;
        enum status status = ego_log_add(to, from->messages[i], error);
        if (status != STATUS_OK) {
            ego_message_free(from->messages[i]);
            ego_log_clear(to);
            return status;
        }
    }
    to->bytes = from->bytes; /* also of one that is not whole */
    return STATUS_OK;
}

/* A line of at most EGODRIVER_TOLD_LINE_BYTES, its end included. */
static size_t line_write(char *line, uint32_t tick, const uint8_t *data, size_t bytes)
{
    enum { END_BYTES = 40 }; /* room for the longest end, and a byte's four characters */
    size_t used = (size_t)snprintf(line, EGODRIVER_TOLD_LINE_BYTES, "drive %u: ", tick);
    size_t i = 0;
    for (; i < bytes && used + END_BYTES < EGODRIVER_TOLD_LINE_BYTES; i++) {
        bool plain = data[i] >= ' ' && data[i] <= '~' && data[i] != '\\';
        used += (size_t)snprintf(line + used, EGODRIVER_TOLD_LINE_BYTES - used,
                                 plain ? "%c" : "\\x%02x", data[i]);
    }
    return used + (size_t)snprintf(line + used, EGODRIVER_TOLD_LINE_BYTES - used,
                                   i < bytes ? " .. of %zu bytes\n" : "\n", bytes);
}

void ego_told_add(struct ego_told *told, uint32_t tick, const uint8_t *data, size_t bytes)
{
    char line[EGODRIVER_TOLD_LINE_BYTES];
    if (bytes == 0) {
        return;
    }
    size_t line_bytes = line_write(line, tick, data, bytes);
    while (told->bytes + line_bytes > EGODRIVER_TOLD_BYTES) {
        size_t oldest = strcspn(told->text, "\n") + 1;
        told->bytes -= oldest;
        memmove(told->text, told->text + oldest, told->bytes + 1);
    }
    memcpy(told->text + told->bytes, line, line_bytes + 1);
    told->bytes += line_bytes;
}
