/*
 * Request bodies. See request_body.h.
 */
#include "store/server/request_body.h"

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
static void release_body(struct request_body *request_body)
{
    if (request_body->writer != NULL) {
        artifact_writer_abort(request_body_release(request_body));
    }
    atomic_fetch_sub(&request_body->budget->bytes, request_body->capacity);
    free(request_body->body);
    request_body->body = NULL;
    request_body->body_bytes = 0;
    request_body->capacity = 0;
}

struct artifact_writer *request_body_release(struct request_body *request_body)
{
    struct artifact_writer *writer = request_body->writer;
    request_body->writer = NULL;
    atomic_fetch_sub(&request_body->budget->uploads, 1);
    return writer;
}

bool http_download_take(struct http_budget *budget, bool reader)
{
    if (reader && !http_budget_take(&budget->reader_downloads, 1, HTTP_READER_DOWNLOADS_MAX)) {
        return false;
    }
    bool taken = http_budget_take(&budget->downloads, 1, HTTP_DOWNLOADS_MAX);
    if (!taken && reader) {
        atomic_fetch_sub(&budget->reader_downloads, 1);
    }
    return taken;
}

void http_download_give(struct http_budget *budget, bool reader)
{
    atomic_fetch_sub(&budget->downloads, 1);
    if (reader) {
        atomic_fetch_sub(&budget->reader_downloads, 1);
    }
}

void request_body_refuse(struct request_body *request_body, enum status status, int code,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_setv(&request_body->error, status, format, args);
    va_end(args);
    request_body->refused = true;
    request_body->code = code;
    release_body(request_body);
}

void request_body_stream(struct request_body *request_body, struct store *store, size_t bytes,
                         bool packed)
{
    struct artifact_writer *writer = NULL;
    if (!http_budget_take(&request_body->budget->uploads, 1, HTTP_UPLOADS_MAX)) {
        request_body_refuse(request_body, STATUS_BUSY, 0,
                            "artifact: %d uploads are in progress, try again", HTTP_UPLOADS_MAX);
        return;
    }
    if (store->ops->artifact_write(store, bytes, packed, &writer, &request_body->error) !=
        STATUS_OK) {
        atomic_fetch_sub(&request_body->budget->uploads, 1);
        request_body->refused = true;
        return;
    }
    request_body->writer = writer;
}

/* Room for `bytes` more, within what all requests may hold together. */
static enum status grow(struct request_body *request_body, size_t bytes)
{
    size_t need = request_body->body_bytes + bytes + 1;
    if (need <= request_body->capacity) {
        return STATUS_OK;
    }
    size_t capacity = request_body->capacity * 2 > need ? request_body->capacity * 2 : need;
    size_t more = capacity - request_body->capacity;
    if (!http_budget_take(&request_body->budget->bytes, more, HTTP_BUFFERED_BYTES_MAX)) {
        return STATUS_BUSY;
    }
    char *grown = realloc(request_body->body, capacity);
    if (grown == NULL) {
        atomic_fetch_sub(&request_body->budget->bytes, more);
        return STATUS_NO_MEMORY;
    }
    request_body->body = grown;
    request_body->capacity = capacity;
    return STATUS_OK;
}

bool request_body_worth_reading(const struct request_body *request_body, unsigned long long bytes)
{
    size_t limit = request_body->body_max > 0 ? request_body->body_max : HTTP_JSON_BYTES_MAX;
    return bytes / DISCARD_FACTOR <= limit;
}

bool request_body_take(struct request_body *request_body, const char *data, size_t bytes)
{
    request_body->received_bytes += bytes;
    if (request_body->refused || request_body->body_max == 0) {
        return request_body_worth_reading(request_body, request_body->received_bytes);
    }
    if (request_body->writer != NULL) {
        struct error error;
        enum status status = artifact_writer_write(request_body->writer, data, bytes, &error);
        if (status != STATUS_OK) {
            request_body_refuse(request_body, status, 0, "%s", error.text);
        }
        return true;
    }
    if (bytes > request_body->body_max - request_body->body_bytes) {
        request_body_refuse(request_body, STATUS_LIMIT, 0,
                            "request body: longer than the %zu bytes that this path takes",
                            request_body->body_max);
        return true;
    }
    enum status status = grow(request_body, bytes);
    if (status != STATUS_OK) {
        request_body_refuse(request_body, status, 0,
                            "request body: the server holds too many bodies, try again");
        return true;
    }
    memcpy(request_body->body + request_body->body_bytes, data, bytes);
    request_body->body_bytes += bytes;
    request_body->body[request_body->body_bytes] = '\0';
    return true;
}

void request_body_finish(struct request_body *request_body)
{
    release_body(request_body);
}
