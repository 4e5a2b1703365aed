/*
 * Fuzz target: the HTTP routes. The input is a conversation: requests of the form "METHOD URI",
 * line feed, body, with an ASCII record separator (0x1e) between two; each goes to http_route as a
 * complete request, over one fake store; "~" before the method says that an artifact comes packed.
 * Every reply must be there, be well-formed, and never be the server's own fault.
 *
 * SWERVE_FUZZ_STORE names the path of a scratch database: then the conversations of one run go to
 * an SQLite store instead, and what one leaves behind the next one finds.
 */
#include "base/check.h"
#include "store/server/http_routes.h"
#include "store/wire/http_wire.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/store/http/fake_store.h"

#include <stdlib.h>
#include <string.h>

enum { REQUESTS_MAX = 12, SEPARATOR = 0x1e };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

/* Bytes of the first request, its separator not counted. */
static size_t request_bytes(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = bytes > 0 ? memchr(data, SEPARATOR, bytes) : NULL;
    return end != NULL ? (size_t)(end - data) : bytes;
}

/* Start of its body; its end when it has none. */
static size_t body_start(const uint8_t *data, size_t bytes)
{
    const uint8_t *line = bytes > 0 ? memchr(data, '\n', bytes) : NULL;
    return line != NULL ? (size_t)(line - data) + 1 : bytes;
}

/* Mutates the body of one request, or the bytes of the whole. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"",     "bulk", "key-0", "object",
                                        "done", "w",    "s",     "9007199254740993"};
    size_t at = 0;
    size_t length = request_bytes(data, bytes);
    for (unsigned skip = seed / 4 % REQUESTS_MAX; skip > 0 && at + length < bytes; skip--) {
        at += length + 1;
        length = request_bytes(data + at, bytes - at);
    }
    size_t start = at + body_start(data + at, length);
    size_t end = at + length;
    if (seed % 4 == 0 || start >= end || max < bytes) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    size_t tail = bytes - end;
    uint8_t *copy = malloc(tail + 1);
    CHECK(copy != NULL);
    memcpy(copy, data + end, tail);
    size_t changed =
        json_mutate(data + start, end - start, max - start - tail, seed, texts, COUNT_OF(texts));
    memcpy(data + start + changed, copy, tail);
    free(copy);
    return start + changed + tail;
}

static void check_reply(const struct http_reply *reply)
{
    static const int codes[] = {200, 400, 404, 405, 409, 413};
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        known = known || reply->code == codes[i];
    }
    CHECK(known && (reply->data != NULL || reply->stream != NULL));
    if (reply->content != HTTP_CONTENT_JSON) {
        CHECK(reply->code == 200);
        return;
    }
    struct error error = {0};
    json_t *root = NULL;
    CHECK(json_read_text("reply", reply->data, reply->bytes, &root, &error) == STATUS_OK);
    CHECK(json_is_object(root));
    json_decref(root);
    if (reply->code != 200) {
        enum status status =
            http_error_decode("reply", reply->code, reply->data, reply->bytes, &error);
        CHECK(status != STATUS_OK && error.text[0] != '\0');
    }
}

static void send_request(const struct http_context *context, const uint8_t *data, size_t bytes)
{
    char method[16] = "";
    char uri[HTTP_URI_BYTES_MAX] = "";
    size_t start = body_start(data, bytes);
    size_t line = start > 0 && data[start - 1] == '\n' ? start - 1 : start;
    bool packed = line > 0 && data[0] == '~';
    data += packed;
    start -= packed;
    line -= packed;
    bytes -= packed;
    const uint8_t *space = line > 0 ? memchr(data, ' ', line) : NULL;
    size_t method_bytes = space != NULL ? (size_t)(space - data) : line;
    size_t uri_bytes = space != NULL ? line - method_bytes - 1 : 0;
    if (method_bytes >= sizeof method || uri_bytes >= sizeof uri) {
        return; /* the server refuses them before the routes see them */
    }
    memcpy(method, data, method_bytes);
    if (uri_bytes > 0) {
        memcpy(uri, space + 1, uri_bytes);
    }
    size_t body_bytes = bytes - start;
    struct http_match match;
    http_route_find(method, uri, &match);
    if (body_bytes > http_route_body_max(match.route)) {
        body_bytes = 0; /* likewise: a path that takes no body gets none */
    }
    char *body = NULL;
    if (body_bytes > 0) {
        body = malloc(body_bytes);
        CHECK(body != NULL);
        memcpy(body, data + start, body_bytes);
    }
    const struct http_request request = {.method = method,
                                         .uri = uri,
                                         .match = &match,
                                         .body = body,
                                         .body_bytes = body_bytes,
                                         .packed = packed && http_route_takes_artifact(match.route),
                                         .accepts_packed = packed,
                                         .peer_fd = -1};
    struct http_reply reply;
    http_route(context, &request, &reply);
    check_reply(&reply);
    artifact_reader_close(reply.stream);
    free(reply.data);
    free(body);
}

/* The store of one conversation, or of all of them. */
static struct store *open_store(bool *keep)
{
    static struct store *lasting;
    struct store *store = NULL;
    struct error error = {0};
    const char *path = getenv("SWERVE_FUZZ_STORE");
    *keep = path != NULL;
    if (path == NULL) {
        CHECK(fake_store_open(NULL, &store, &error) == STATUS_OK);
        return store;
    }
    if (lasting == NULL) {
        CHECK(store_sqlite_open(path, NULL, &lasting, &error) == STATUS_OK);
    }
    return lasting;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const atomic_bool stopping = true; /* so that claims do not wait for jobs */
    bool keep;
    struct http_context context = {
        .store = open_store(&keep), .clock = clock_system(), .stopping = &stopping};
    for (int i = 0; i < REQUESTS_MAX && bytes > 0; i++) {
        size_t length = request_bytes(data, bytes);
        size_t step = length < bytes ? length + 1 : length;
        send_request(&context, data, length);
        data += step;
        bytes -= step;
    }
    if (!keep) {
        context.store->ops->close(context.store);
    }
    return 0;
}
