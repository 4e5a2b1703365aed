/*
 * Messages that a session was sent, for forks, and what its driver told. See egodriver_internal.h.
 */
#include "worker/egodriver/egodriver_internal.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ego_message_free(struct ego_message *message)
{
    if (message != NULL && --message->references == 0) {
        free(message);
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
