/*
 * Requests over libcurl. See object_request.h.
 *
 * A body's SHA-256 is signed with its request, so what arrives is what was sent or is refused.
 */
#include "store/objects/object_request.h"

#include "store/objects/object_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 6,
    FIRST_PAUSE_MS = 125, /* doubled each time: 3.9 s in all */
    CONNECT_MS = 10000,
    SLOW_BYTES_PER_S = 1024, /* slower than this for so long is given up */
    SLOW_S = 30,
    WHOLE_MS = 900000, /* of one try, whatever its pace */
    REPEAT_MS = 60000, /* tries that took longer together are not repeated */
};

/* ---- one try ---- */

static size_t give_body(char *out, size_t size, size_t count, void *context)
{
    struct object_request *request = context;
    ssize_t got = read(request->fd, out, size * count);
    while (got < 0 && errno == EINTR) {
        got = read(request->fd, out, size * count);
    }
    if (got < 0) {
        request->file_error = errno;
        return CURL_READFUNC_ABORT;
    }
    return (size_t)got;
}

static int rewind_body(void *context, curl_off_t offset, int from)
{
    const struct object_request *request = context;
    return lseek(request->fd, offset, from) == offset ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static bool write_body(struct object_request *request, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(request->fd, data, bytes);
        if (written < 0 && errno != EINTR) {
            request->file_error = errno;
            return false;
        }
        if (written > 0) {
            data += written;
            bytes -= (size_t)written;
        }
    }
    return true;
}

/* The object of a good answer goes to the file, the sentence of another is kept: its beginning,
 * for an answer may have no end. */
static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct object_request *request = context;
    size_t bytes = size * count;

    curl_easy_getinfo(request->handle, CURLINFO_RESPONSE_CODE, &request->code);
    if (request->code == 200 && request->measures) {
        request->taken += bytes;
        request->cut = request->taken > request->bytes_max;
        return request->cut ? 0 : bytes;
    }
    if (request->code != 200 || request->fd < 0 || request->bytes >= 0) {
        size_t room = sizeof request->answer - 1 - request->answer_bytes;
        size_t part = bytes < room ? bytes : room;
        memcpy(request->answer + request->answer_bytes, data, part);
        request->answer_bytes += part;
        request->cut = part < bytes;
        return request->cut ? 0 : bytes;
    }
    request->too_long = bytes > request->bytes_max - request->taken;
    if (request->too_long || !write_body(request, data, bytes)) {
        return 0;
    }
    request->taken += bytes;
    return bytes;
}

static size_t take_header(char *line, size_t size, size_t count, void *context)
{
    static const char name[] = "ETag:";
    struct object_request *request = context;
    size_t bytes = size * count;

    if (bytes > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0) {
        /* Some write it in quotes at one time and without them at another. */
        const char *value = line + sizeof name - 1;
        size_t rest = bytes - (sizeof name - 1);
        while (rest > 0 && strchr(" \"", *value) != NULL) {
            value++;
            rest--;
        }
        while (rest > 0 && strchr(" \"\r\n", value[rest - 1]) != NULL) {
            rest--;
        }
        snprintf(request->tag, sizeof request->tag, "%.*s", (int)rest, value);
    }
    return bytes;
}

/* The first option that cannot be set (curl copies strings) stands for all. */
#define SET(option, value)                                      \
    do {                                                        \
        if (code == CURLE_OK) {                                 \
            code = curl_easy_setopt(handle, (option), (value)); \
        }                                                       \
    } while (0)

static CURLcode set_options(const struct object_place *place, const struct object_keys *keys,
                            struct object_request *request, const struct curl_slist *headers)
{
    CURL *handle = request->handle;
    CURLcode code = CURLE_OK;
    char url[OBJECT_URL_BYTES];

    snprintf(url, sizeof url, "%s%s", place->base_url, request->key);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES_PER_S);
    SET(CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    SET(CURLOPT_TIMEOUT_MS, (long)WHOLE_MS);
    SET(CURLOPT_USERNAME, keys->id);
    SET(CURLOPT_PASSWORD, keys->secret);
    SET(CURLOPT_AWS_SIGV4, place->signer);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, request);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, request);
    SET(CURLOPT_SEEKFUNCTION, rewind_body);
    SET(CURLOPT_SEEKDATA, request);
    SET(CURLOPT_READFUNCTION, give_body);
    SET(CURLOPT_READDATA, request);
    if (request->bytes >= 0) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, request->bytes);
    } else if (strcmp(request->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else {
        SET(CURLOPT_HTTPGET, 1L);
    }
    return code == CURLE_OK ? curl_call_trust(handle, place->here, place->ca_file) : code;
}

#undef SET

static bool append(struct curl_slist **headers, const char *name, const char *value)
{
    char line[OBJECT_SESSION_BYTES + OBJECT_NAME_BYTES];
    snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, line);
    explicit_bzero(line, sizeof line);
    *headers = longer != NULL ? longer : *headers;
    return longer != NULL;
}

static void keep_text(CURL *handle, CURLINFO which, char out[OBJECT_NAME_BYTES])
{
    char *text = NULL;
    curl_easy_getinfo(handle, which, &text);
    snprintf(out, OBJECT_NAME_BYTES, "%s", text != NULL ? text : "");
}

static CURLcode send_request(const struct object_place *place, const struct object_keys *keys,
                             struct object_request *request)
{
    struct curl_slist *headers = NULL;
    bool good =
        append(&headers, "x-amz-content-sha256", request->hash) &&
        (keys->session[0] == '\0' || append(&headers, "x-amz-security-token", keys->session)) &&
        (request->bytes < 0 || append(&headers, "Content-Type", OBJECT_CONTENT_TYPE));

    /* Forgets what the handle's last request said; should there be no memory for that,
     * setting options fails, too. */
    curl_easy_reset(request->handle);
    request->code = 0;
    request->taken = request->answer_bytes = 0;
    request->tag[0] = '\0';
    request->cut = false;
    CURLcode code = good ? set_options(place, keys, request, headers) : CURLE_OUT_OF_MEMORY;
    if (code == CURLE_OK) {
        curl_off_t us = 0;
        code = curl_call_perform(request->handle);
        curl_easy_getinfo(request->handle, CURLINFO_RESPONSE_CODE, &request->code);
        curl_easy_getinfo(request->handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &request->length);
        curl_easy_getinfo(request->handle, CURLINFO_TOTAL_TIME_T, &us);
        keep_text(request->handle, CURLINFO_CONTENT_TYPE, request->type);
        keep_text(request->handle, CURLINFO_REDIRECT_URL, request->onward);
        request->spent_ms += us / 1000;
        code = request->cut ? CURLE_OK : code; /* its head has said all */
    }
    request->answer[request->answer_bytes] = '\0';
    curl_slist_free_all(headers);
    return code;
}

/* ---- requests until one is answered ---- */

/* It goes to people's terminals. */
static void make_plain(char *text)
{
    for (; *text != '\0'; text++) {
        *text = *text >= ' ' && *text <= '~' ? *text : '?';
    }
}

/* Text between <NAME> and </NAME>, without more XML than that; "": there is none. */
static void member_of(const char *answer, const char *name, char out[OBJECT_NAME_BYTES])
{
    char begin[OBJECT_NAME_BYTES];
    snprintf(begin, sizeof begin, "<%s>", name);
    const char *at = strstr(answer, begin);
    out[0] = '\0';
    if (at != NULL) {
        at += strlen(begin);
        snprintf(out, OBJECT_NAME_BYTES, "%.*s", (int)strcspn(at, "<"), at);
    }
    make_plain(out);
}

/* An answer that has no code of object storage: a web page, a proxy's refusal, nothing. */
static void describe(const struct object_request *request, char *out, size_t capacity)
{
    char begin[OBJECT_NAME_BYTES];
    char type[OBJECT_NAME_BYTES];
    snprintf(begin, sizeof begin, "%.*s", (int)strcspn(request->answer, "\r\n"), request->answer);
    begin[64] = '\0';
    make_plain(begin);
    snprintf(type, sizeof type, "%.64s", request->type);
    make_plain(type);
    snprintf(out, capacity, "%s%s%s%s%s", type[0] != '\0' ? " " : "", type,
             begin[0] != '\0' ? " \"" : "", begin, begin[0] != '\0' ? "\"" : "");
}

#define NO_STORAGE                                                                         \
    "object storage does not answer so; AWS_ENDPOINT_URL must name its API, and not, for " \
    "instance, "                                                                           \
    "its console"

enum status object_request_stranger(const struct object_place *place,
                                    const struct object_request *request, const char *what,
                                    enum status status, struct error *error)
{
    char shown[3 * OBJECT_NAME_BYTES];
    describe(request, shown, sizeof shown);
    return error_set(error, status, "%.600s: %s %s: HTTP %ld%s: " NO_STORAGE, place->text,
                     request->key, what, request->code, shown);
}

static enum status judge(const struct object_place *place, const struct object_request *request,
                         CURLcode code, struct error *error)
{
    char name[OBJECT_NAME_BYTES];
    char text[OBJECT_NAME_BYTES];
    char shown[3 * OBJECT_NAME_BYTES];
    bool sends = request->bytes >= 0;

    if (request->too_long) {
        return error_set(error, STATUS_LIMIT, "%s: %s: expected at most %zu bytes", place->text,
                         request->key, request->bytes_max);
    }
    if (request->file_error != 0) {
        return error_set(error, STATUS_IO, "%s: %s: the file here: %s", place->text, request->key,
                         strerror(request->file_error));
    }
    if (code == CURLE_OUT_OF_MEMORY) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", place->text);
    }
    if (code != CURLE_OK) {
        return error_set(error, STATUS_IO, "%s: %s %s: %s", place->text, request->method,
                         request->key, curl_easy_strerror(code));
    }
    member_of(request->answer, "Code", name);
    /* One that says nothing of a bucket is about the object; a HEAD says nothing at all. */
    if (request->code == 404 && !sends && strcmp(name, "NoSuchBucket") != 0) {
        return error_set(error, STATUS_NOT_FOUND, "%s: there is no %s", place->text, request->key);
    }
    if (request->code == 200) {
        return STATUS_OK;
    }
    member_of(request->answer, "Message", text);
    snprintf(shown, sizeof shown, "%s%s", request->onward[0] != '\0' ? " to " : "",
             request->onward);
    make_plain(shown);
    if (name[0] == '\0') {
        describe(request, shown + strlen(shown), sizeof shown - strlen(shown));
        return error_set(error, STATUS_IO, "%.600s: %s %s: HTTP %ld%s: " NO_STORAGE, place->text,
                         request->method, request->key, request->code, shown);
    }
    return error_set(error, STATUS_IO, "%s: %s %s: HTTP %ld%s %s%s%s", place->text, request->method,
                     request->key, request->code, shown, name, text[0] != '\0' ? ": " : "", text);
}

/* Whether the same request may be answered well in a moment. */
static bool is_passing(const struct object_request *request, CURLcode code)
{
    if (request->file_error != 0 || request->too_long || code == CURLE_OUT_OF_MEMORY ||
        code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
        return false;
    }
    return request->spent_ms < REPEAT_MS &&
           (code != CURLE_OK || request->code >= 500 || request->code == 429);
}

static void pause_before(int attempt)
{
    int64_t ms = (int64_t)FIRST_PAUSE_MS << (attempt - 1);
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* Whatever an attempt left in the file, or read of it, is taken back before the next one. */
static bool begin_file(struct object_request *request)
{
    bool good = request->fd < 0 || ((request->bytes >= 0 || ftruncate(request->fd, 0) == 0) &&
                                    lseek(request->fd, 0, SEEK_SET) == 0);
    request->file_error = good ? 0 : errno;
    return good;
}

enum status object_request_send(struct object_place *place, struct object_request *request,
                                struct error *error)
{
    struct object_keys keys;
    CURLcode code = CURLE_OK;
    enum status status = object_keys_read(&keys, error);

    if (status == STATUS_OK) {
        request->handle = curl_pool_take(&place->handles);
        status = memory_check(request->handle, error, "%s: out of memory", place->text);
    }
    if (status == STATUS_OK) {
        for (int attempt = 0; attempt < TRIES; attempt++) {
            if (attempt > 0) {
                pause_before(attempt);
            }
            code = begin_file(request) ? send_request(place, &keys, request) : CURLE_OK;
            if (!is_passing(request, code)) {
                break;
            }
        }
        status = judge(place, request, code, error);
        curl_easy_reset(request->handle); /* it knows the keys */
        curl_pool_give(&place->handles, request->handle);
    }
    explicit_bzero(&keys, sizeof keys);
    return status;
}

struct object_request object_request_reading(const char *method, const char *key)
{
    struct object_request request = {.method = method, .key = key, .fd = -1, .bytes = -1};
    sha256_hex("", 0, request.hash);
    return request;
}
