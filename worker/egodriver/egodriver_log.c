/*
 * What a session was sent, for forks. See egodriver_internal.h.
 */
#include "worker/egodriver/egodriver_internal.h"

#include "base/array.h"

#include <stdlib.h>

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
    log->bytes += message->bytes;
    if (!ego_log_is_whole(log)) {
        forget(log);
        ego_message_free(message);
        return STATUS_OK;
    }
    TRY(array_room(&log->messages, log->count, sizeof(struct ego_message *), error));
    log->messages[log->count++] = message;
    return STATUS_OK;
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
    return STATUS_OK;
}
