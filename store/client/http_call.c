/*
 * One exchange of the HTTP client. See http_call.h.
 */
#include "store/client/http_call.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "schemas/json_record.h"
#include "store/artifacts/zstd_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RETRY_AFTER_MS_MAX = 5000 };

static void add_parts(struct http_path *path, const char *format, va_list args)
{
    for (const char *at = format; *at != '\0'; at++) {
        char piece[24] = {*at};
        if (strncmp(at, "%s", 2) == 0) {
            CHECK(http_percent_encode(va_arg(args, const char *), path->text, sizeof path->text));
            at += 1;
            continue;
        }
        if (strncmp(at, "%lld", 4) == 0) {
            snprintf(piece, sizeof piece, "%lld", va_arg(args, long long));
            at += 3;
        }
        size_t used = strlen(path->text);
        CHECK(used + strlen(piece) < sizeof path->text);
        strcpy(path->text + used, piece);
    }
}

void http_path_make(struct http_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    path->text[0] = '\0';
    add_parts(path, format, args);
    va_end(args);
}

void http_path_add(struct http_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_parts(path, format, args);
    va_end(args);
}

void http_path_key(struct http_path *path, const char *key)
{
    size_t used = strlen(path->text);
    char begin = strchr(path->text, '?') == NULL ? '?' : '&';
    int bytes = snprintf(path->text + used, sizeof path->text - used, "%c%s=", begin, key);
    CHECK(bytes > 0 && (size_t)bytes < sizeof path->text - used);
}

/* Waits as long as an overloaded server asked for, and a little longer that a crowd does not come
 * back in step; bounded, because the caller has a deadline of its own and looks at it in between.
 */
static void wait_as_told(int64_t retry_ms)
{
    int64_t now_ns = clock_now_ns(clock_system());
    int64_t wait_ns = (retry_ms < RETRY_AFTER_MS_MAX ? retry_ms : RETRY_AFTER_MS_MAX) * NS_PER_MS;
    wait_ns += (int64_t)(rng_mix((uint64_t)now_ns) % (uint64_t)(wait_ns / 4 + 1));
    struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
    nanosleep(&wait, NULL);
}

/* Sends the call; a code other than 200 becomes the status that the server named. A server that
 * cannot answer now (503), or that we ask too often (429), did nothing. */
static enum status perform(struct http_transport *transport, struct http_call *call,
                           struct error *error)
{
    enum status status = http_transport_call(transport, call, error);
    if (status != STATUS_OK || call->code == 200) {
        return status;
    }
    char what[LIMIT_TEXT_BYTES];
    snprintf(what, sizeof what, "%s %.200s", call->method, call->path);
    if (call->code == 500 && call->reply_bytes == 0) {
        free(call->reply);
        call->reply = NULL;
        return error_set(error, HTTP_LOST, "%s: the store had no memory for its answer", what);
    }
    status = http_error_decode(what, call->code, call->reply, call->reply_bytes, error);
    free(call->reply);
    call->reply = NULL;
    if (call->code == 503 || call->code == 429) {
        wait_as_told(call->retry_ms);
        return HTTP_UNREACHED;
    }
    /* Gateways answer so on behalf of a server that they lost. */
    return (call->code == 502 || call->code == 504) && status == STATUS_STORE ? HTTP_LOST : status;
}

enum status http_exchange_json(struct http_transport *transport, struct http_call *call,
                               json_t *body, json_t **root, struct error *error)
{
    char *text = NULL;
    if (strcmp(call->method, "GET") != 0) {
        text = body != NULL ? json_compact_text(body) : NULL;
        json_decref(body);
        TRY(memory_check(text, error, "%s: out of memory for a request", call->path));
        call->body = text;
        call->body_bytes = strlen(text);
        if (call->body_bytes > HTTP_JSON_BYTES_MAX) {
            free(text);
            return error_set(error, STATUS_LIMIT,
                             "%s: expected a request of at most %d bytes, found %zu", call->path,
                             HTTP_JSON_BYTES_MAX, call->body_bytes);
        }
    }
    call->json = true;
    call->reply_max = HTTP_JSON_BYTES_MAX;
    enum status status = perform(transport, call, error);
    free(text);
    TRY(status);
    status = json_read_text(call->path, call->reply, call->reply_bytes, root, error);
    free(call->reply);
    return status;
}

enum status http_ask(struct http_transport *transport, const char *method,
                     const struct http_path *path, json_t *body, json_t **root, struct error *error)
{
    struct http_call call = {.method = method, .path = path->text};
    return http_exchange_json(transport, &call, body, root, error);
}

static enum status put_bytes(struct http_transport *transport, const struct http_path *path,
                             const void *data, size_t bytes, bool packed, struct error *error)
{
    struct http_call call = {
        .method = "PUT",
        .path = path->text,
        .body = data,
        .body_bytes = bytes,
        .packed = packed,
        .reply_max = HTTP_JSON_BYTES_MAX,
    };
    TRY(perform(transport, &call, error));
    free(call.reply);
    return STATUS_OK;
}

enum status http_put_bytes(struct http_transport *transport, const struct http_path *path,
                           const void *data, size_t bytes, struct error *error)
{
    return put_bytes(transport, path, data, bytes, false, error);
}

enum status http_put_packed(struct http_transport *transport, const struct http_path *path,
                            const void *data, size_t bytes, struct error *error)
{
    void *frame = NULL;
    size_t frame_bytes = 0;
    TRY(zstd_frame_pack(path->text, data, bytes, &frame, &frame_bytes, error));
    enum status status = frame != NULL ? put_bytes(transport, path, frame, frame_bytes, true, error)
                                       : put_bytes(transport, path, data, bytes, false, error);
    free(frame);
    return status;
}

enum status http_get_bytes(struct http_transport *transport, const struct http_path *path,
                           size_t max, char **data, size_t *bytes, struct error *error)
{
    struct http_call call = {.method = "GET", .path = path->text, .reply_max = max};
    TRY(perform(transport, &call, error));
    *data = call.reply;
    *bytes = call.reply_bytes;
    return STATUS_OK;
}

enum status http_get_packed(struct http_transport *transport, const struct http_path *path,
                            size_t max, void **data, size_t *bytes, struct error *error)
{
    struct http_call call = {
        .method = "GET", .path = path->text, .accepts_packed = true, .reply_max = max};
    enum status status = perform(transport, &call, error);
    if (status != STATUS_OK || !call.reply_packed) {
        *data = status == STATUS_OK ? call.reply : NULL;
        *bytes = call.reply_bytes;
        return status;
    }
    status = zstd_frame_unpack(path->text, call.reply, call.reply_bytes, max, data, bytes, error);
    free(call.reply);
    if (status == STATUS_OK || status == STATUS_NO_MEMORY) {
        return status;
    }
    if (error != NULL) {
        error->status = STATUS_IO; /* it is not the caller's input that is bad */
    }
    return STATUS_IO;
}

enum status http_take_list(const char *path, json_t *root, const char *name,
                           const struct wire_codec *codec, void *records, size_t max,
                           uint32_t *count, struct error *error)
{
    struct json_cursor cursor = json_cursor_root(path, root);
    const char *const keys[] = {name, NULL};
    enum status status = json_object_begin(&cursor, keys, error);
    if (status == STATUS_OK) {
        struct json_cursor list = json_cursor_member(&cursor, name);
        status = wire_list_decode(codec, &list, records, max, count, error);
    }
    json_decref(root);
    return status;
}

enum status http_take_integer(const char *path, json_t *root, const char *name, int64_t *out,
                              struct error *error)
{
    struct json_cursor cursor = json_cursor_root(path, root);
    const char *const keys[] = {name, NULL};
    enum status status = json_object_begin(&cursor, keys, error);
    THEN(status, json_member_integer(&cursor, name, true, INT64_MIN, INT64_MAX, out, error));
    json_decref(root);
    return status;
}

enum status http_take_record(const char *path, json_t *root, const struct wire_codec *codec,
                             void *record, struct error *error)
{
    struct json_cursor cursor = json_cursor_root(path, root);
    void *scratch = calloc(1, codec->bytes);
    enum status status = memory_check(scratch, error, "%s: out of memory", path);
    THEN(status, wire_decode(codec, &cursor, scratch, error));
    if (status == STATUS_OK) {
        memcpy(record, scratch, codec->bytes);
    }
    free(scratch);
    json_decref(root);
    return status;
}
