/*
 * Request bodies. See http_intake.h.
 */
#include "store/server/http_intake.h"

#include "store/wire/http_wire.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { DISCARD_FACTOR = 4 /* larger refused bodies are cut off instead of read */ };

bool http_budget_take(atomic_size_t *used, size_t count, size_t max)
{
    size_t before = atomic_load(used);
    do {
        if (count > max || before > max - count) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(used, &before, before + count));
    return true;
}

/* Lets go of what has come so far. */
static void release_body(struct http_intake *intake)
{
    if (intake->writer != NULL) {
        artifact_writer_abort(http_intake_release(intake));
    }
    atomic_fetch_sub(&intake->budget->bytes, intake->capacity);
    free(intake->body);
    intake->body = NULL;
    intake->body_bytes = 0;
    intake->capacity = 0;
}

struct artifact_writer *http_intake_release(struct http_intake *intake)
{
    struct artifact_writer *writer = intake->writer;
    intake->writer = NULL;
    atomic_fetch_sub(&intake->budget->uploads, 1);
    return writer;
}

bool http_download_take(struct http_budget *budget, bool looks)
{
    if (looks && !http_budget_take(&budget->look_downloads, 1, HTTP_LOOK_DOWNLOADS_MAX)) {
        return false;
    }
    bool taken = http_budget_take(&budget->downloads, 1, HTTP_DOWNLOADS_MAX);
    if (!taken && looks) {
        atomic_fetch_sub(&budget->look_downloads, 1);
    }
    return taken;
}

void http_download_give(struct http_budget *budget, bool looks)
{
    atomic_fetch_sub(&budget->downloads, 1);
    if (looks) {
        atomic_fetch_sub(&budget->look_downloads, 1);
    }
}

void http_intake_refuse(struct http_intake *intake, enum status status, int code,
                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_setv(&intake->error, status, format, args);
    va_end(args);
    intake->refused = true;
    intake->code = code;
    release_body(intake);
}

void http_intake_stream(struct http_intake *intake, struct store *store, size_t bytes, bool packed)
{
    struct artifact_writer *writer = NULL;
    if (!http_budget_take(&intake->budget->uploads, 1, HTTP_UPLOADS_MAX)) {
        http_intake_refuse(intake, STATUS_BUSY, 0,
                           "artifact: %d uploads are in progress, try again", HTTP_UPLOADS_MAX);
        return;
    }
    if (store->ops->artifact_write(store, bytes, packed, &writer, &intake->error) != STATUS_OK) {
        atomic_fetch_sub(&intake->budget->uploads, 1);
        intake->refused = true;
        return;
    }
    intake->writer = writer;
}

/* Room for `bytes` more, within what all requests may hold together. */
static enum status grow(struct http_intake *intake, size_t bytes)
{
    size_t need = intake->body_bytes + bytes + 1;
    if (need <= intake->capacity) {
        return STATUS_OK;
    }
    size_t capacity = intake->capacity * 2 > need ? intake->capacity * 2 : need;
    size_t more = capacity - intake->capacity;
    if (!http_budget_take(&intake->budget->bytes, more, HTTP_BUFFERED_BYTES_MAX)) {
        return STATUS_BUSY;
    }
    char *grown = realloc(intake->body, capacity);
    if (grown == NULL) {
        atomic_fetch_sub(&intake->budget->bytes, more);
        return STATUS_NO_MEMORY;
    }
    intake->body = grown;
    intake->capacity = capacity;
    return STATUS_OK;
}

bool http_intake_worth_reading(const struct http_intake *intake, unsigned long long bytes)
{
    size_t limit = intake->body_max > 0 ? intake->body_max : HTTP_JSON_BYTES_MAX;
    return bytes / DISCARD_FACTOR <= limit;
}

bool http_intake_take(struct http_intake *intake, const char *data, size_t bytes)
{
    intake->received_bytes += bytes;
    if (intake->refused || intake->body_max == 0) {
        return http_intake_worth_reading(intake, intake->received_bytes);
    }
    if (intake->writer != NULL) {
        struct error error;
        enum status status = artifact_writer_write(intake->writer, data, bytes, &error);
        if (status != STATUS_OK) {
            http_intake_refuse(intake, status, 0, "%s", error.text);
        }
        return true;
    }
    if (bytes > intake->body_max - intake->body_bytes) {
        http_intake_refuse(intake, STATUS_LIMIT, 0,
                           "request body: longer than the %zu bytes that this path takes",
                           intake->body_max);
        return true;
    }
    enum status status = grow(intake, bytes);
    if (status != STATUS_OK) {
        http_intake_refuse(intake, status, 0,
                           "request body: the server holds too many bodies, try again");
        return true;
    }
    memcpy(intake->body + intake->body_bytes, data, bytes);
    intake->body_bytes += bytes;
    intake->body[intake->body_bytes] = '\0';
    return true;
}

void http_intake_finish(struct http_intake *intake)
{
    release_body(intake);
}
