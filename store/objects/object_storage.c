/*
 * Object storage over libcurl. See object_storage.h.
 *
 * A body's SHA-256 is signed with its request, so what arrives is what was sent or is refused.
 */
#include "store/objects/object_storage.h"

#include "base/check.h"
#include "base/sha256.h"
#include "schemas/limits.h"
#include "store/curl/curl_call.h"
#include "store/objects/object_keys.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    URL_BYTES = 2048,
    TRIES = 6,
    FIRST_PAUSE_MS = 125, /* doubled each time: 3.9 s in all */
    CONNECT_MS = 10000,
    SLOW_BYTES_PER_S = 1024, /* slower than this for so long is given up */
    SLOW_S = 30,
    WHOLE_MS = 900000,   /* of one try, whatever its pace */
    REPEAT_MS = 60000,   /* tries that took longer together are not repeated */
    ANSWER_BYTES = 2048, /* of a refusal, for its sentence; the rest is not waited for */
    NAME_BYTES = 128,
};

static const char scheme[] = "s3://";
static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

struct object_storage {
    char base_url[URL_BYTES]; /* ENDPOINT/BUCKET/PREFIX/ */
    char place[URL_BYTES];    /* for people */
    char signer[NAME_BYTES];  /* what libcurl needs to know: "aws:amz:REGION:s3" */
    char ca_file[LIMIT_PATH_BYTES];
    bool here; /* no proxy in between */
    struct curl_pool handles;
};

/* ---- opening ---- */

bool object_storage_is_url(const char *text)
{
    return strncmp(text, scheme, sizeof scheme - 1) == 0;
}

static const char *variable_of(const char *first, const char *second, const char *otherwise)
{
    const char *value = getenv(first);
    if (value == NULL || value[0] == '\0') {
        value = getenv(second);
    }
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static enum status name_check(const char *url, struct error *error)
{
    const char *name = url + sizeof scheme - 1;
    size_t bucket = strcspn(name, "/");
    size_t bytes = strlen(name);
    bool good = bucket >= 3 && bucket <= 63 && strspn(name, name_characters) == bytes &&
                strstr(name, "//") == NULL && strstr(name, "/.") == NULL && bytes < LIMIT_ID_BYTES;
    return good ? STATUS_OK
                : error_set(error, STATUS_USAGE,
                            "%.300s: expected s3://BUCKET or s3://BUCKET/PREFIX of letters, "
                            "digits and \"._-\", %d characters at most",
                            url, LIMIT_ID_BYTES - 1);
}

static enum status find_endpoint(struct object_storage *storage, const char *url,
                                 struct error *error)
{
    char aws[NAME_BYTES];
    const char *region = variable_of("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");

    if (strlen(region) >= NAME_BYTES / 2 || strspn(region, name_characters) != strlen(region)) {
        return error_set(error, STATUS_USAGE, "AWS_REGION: expected a region's name, found %.100s",
                         region);
    }
    snprintf(aws, sizeof aws, "https://s3.%s.amazonaws.com", region);
    snprintf(storage->signer, sizeof storage->signer, "aws:amz:%s:s3", region);
    const char *endpoint = variable_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", aws);
    bool clear = strncasecmp(endpoint, "https://", 8) != 0;
    size_t bytes = strlen(endpoint);
    bytes -= bytes > 0 && endpoint[bytes - 1] == '/' ? 1 : 0;
    if ((clear && strncasecmp(endpoint, "http://", 7) != 0) || strpbrk(endpoint, "@?# ") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "AWS_ENDPOINT_URL: expected https://HOST[:PORT], found %.300s", endpoint);
    }
    storage->here = curl_call_host_is_here(endpoint);
    if (clear && !storage->here) {
        return error_set(error, STATUS_USAGE,
                         "%.400s: artifacts would travel in the clear; use https://, or a tunnel "
                         "to a port of this machine",
                         endpoint);
    }
    const char *name = url + sizeof scheme - 1;
    size_t name_bytes = strlen(name);
    int used = snprintf(storage->base_url, sizeof storage->base_url, "%.*s/%s%s", (int)bytes,
                        endpoint, name, name[name_bytes - 1] == '/' ? "" : "/");
    snprintf(storage->place, sizeof storage->place, "%s at %.*s", url, (int)bytes, endpoint);
    return used < URL_BYTES - NAME_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT, "AWS_ENDPOINT_URL: it is too long");
}

enum status object_storage_open(const char *url, struct object_storage **out, struct error *error)
{
    TRY(name_check(url, error));
    struct object_storage *storage = calloc(1, sizeof *storage);
    TRY(memory_check(storage, error, "%s: out of memory", url));
    curl_pool_init(&storage->handles);
    curl_call_init();
    snprintf(storage->ca_file, sizeof storage->ca_file, "%s",
             variable_of("AWS_CA_BUNDLE", "AWS_CA_BUNDLE", ""));
    enum status status = find_endpoint(storage, url, error);
    if (status != STATUS_OK) {
        object_storage_close(storage);
        return status;
    }
    *out = storage;
    return STATUS_OK;
}

void object_storage_close(struct object_storage *storage)
{
    if (storage == NULL) {
        return;
    }
    curl_pool_finish(&storage->handles);
    free(storage);
}

const char *object_storage_place(const struct object_storage *storage)
{
    return storage->place;
}

/* ---- one request ---- */

struct request {
    const char *method;
    const char *key;
    int fd;           /* of the body that is sent, or that is to come; -1: none */
    curl_off_t bytes; /* of the body that is sent; -1: none is */
    size_t bytes_max; /* of the body that is to come */
    char hash[SHA256_HEX_BYTES];
    CURL *handle;
    long code;         /* out: HTTP code, 0: none came */
    size_t taken;      /* out: bytes of the body that came */
    bool too_long;     /* out */
    bool cut;          /* out: enough came of an answer that is no object */
    int file_error;    /* out: errno of the file */
    curl_off_t length; /* out: of the object, as the answer says; -1: it does not */
    int64_t spent_ms;  /* out: of all tries */
    char answer[ANSWER_BYTES];
    size_t answer_bytes;
};

static size_t give_body(char *out, size_t size, size_t count, void *context)
{
    struct request *request = context;
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
    const struct request *request = context;
    return lseek(request->fd, offset, from) == offset ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static bool write_body(struct request *request, const char *data, size_t bytes)
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
    struct request *request = context;
    size_t bytes = size * count;

    curl_easy_getinfo(request->handle, CURLINFO_RESPONSE_CODE, &request->code);
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

/* The first option that cannot be set (curl copies strings) stands for all. */
#define SET(option, value)                                      \
    do {                                                        \
        if (code == CURLE_OK) {                                 \
            code = curl_easy_setopt(handle, (option), (value)); \
        }                                                       \
    } while (0)

static CURLcode set_options(const struct object_storage *storage, const struct object_keys *keys,
                            struct request *request, const struct curl_slist *headers)
{
    CURL *handle = request->handle;
    CURLcode code = CURLE_OK;
    char url[URL_BYTES];

    snprintf(url, sizeof url, "%s%s", storage->base_url, request->key);
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
    SET(CURLOPT_AWS_SIGV4, storage->signer);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, take_body);
    SET(CURLOPT_WRITEDATA, request);
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
    if (storage->here) {
        SET(CURLOPT_PROXY, "");
    }
    if (storage->ca_file[0] != '\0') {
        SET(CURLOPT_CAINFO, storage->ca_file);
        SET(CURLOPT_CAPATH, NULL);
    }
    return code;
}

#undef SET

static bool append(struct curl_slist **headers, const char *name, const char *value)
{
    char line[OBJECT_SESSION_BYTES + NAME_BYTES];
    snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, line);
    explicit_bzero(line, sizeof line);
    *headers = longer != NULL ? longer : *headers;
    return longer != NULL;
}

static CURLcode send_request(const struct object_storage *storage, const struct object_keys *keys,
                             struct request *request)
{
    struct curl_slist *headers = NULL;
    bool good =
        append(&headers, "x-amz-content-sha256", request->hash) &&
        (keys->session[0] == '\0' || append(&headers, "x-amz-security-token", keys->session)) &&
        (request->bytes < 0 || append(&headers, "Content-Type", "application/zstd"));

    /* Forgets what the handle's last request said; should there be no memory for that,
     * setting options fails, too. */
    curl_easy_reset(request->handle);
    request->code = 0;
    request->taken = request->answer_bytes = 0;
    request->cut = false;
    CURLcode code = good ? set_options(storage, keys, request, headers) : CURLE_OUT_OF_MEMORY;
    if (code == CURLE_OK) {
        curl_off_t us = 0;
        code = curl_call_perform(request->handle);
        curl_easy_getinfo(request->handle, CURLINFO_RESPONSE_CODE, &request->code);
        curl_easy_getinfo(request->handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &request->length);
        curl_easy_getinfo(request->handle, CURLINFO_TOTAL_TIME_T, &us);
        request->spent_ms += us / 1000;
        code = request->cut ? CURLE_OK : code; /* its head has said all */
    }
    request->answer[request->answer_bytes] = '\0';
    curl_slist_free_all(headers);
    return code;
}

/* ---- requests until one is answered ---- */

/* Text between <NAME> and </NAME>, without more XML than that; "": there is none. It goes to
 * people's terminals. */
static void member_of(const char *answer, const char *name, char out[NAME_BYTES])
{
    char begin[NAME_BYTES];
    snprintf(begin, sizeof begin, "<%s>", name);
    const char *at = strstr(answer, begin);
    out[0] = '\0';
    if (at != NULL) {
        at += strlen(begin);
        snprintf(out, NAME_BYTES, "%.*s", (int)strcspn(at, "<"), at);
    }
    for (; *out != '\0'; out++) {
        *out = *out >= ' ' && *out <= '~' ? *out : '?';
    }
}

static enum status judge(const struct object_storage *storage, const struct request *request,
                         CURLcode code, struct error *error)
{
    char name[NAME_BYTES];
    char text[NAME_BYTES];

    if (request->too_long) {
        return error_set(error, STATUS_LIMIT, "%s: %s: expected at most %zu bytes", storage->place,
                         request->key, request->bytes_max);
    }
    if (request->file_error != 0) {
        return error_set(error, STATUS_IO, "%s: %s: the file here: %s", storage->place,
                         request->key, strerror(request->file_error));
    }
    if (code == CURLE_OUT_OF_MEMORY) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", storage->place);
    }
    if (code != CURLE_OK) {
        return error_set(error, STATUS_IO, "%s: %s %s: %s", storage->place, request->method,
                         request->key, curl_easy_strerror(code));
    }
    member_of(request->answer, "Code", name);
    /* One that says nothing of a bucket is about the object; a HEAD says nothing at all. */
    if (request->code == 404 && strcmp(name, "NoSuchBucket") != 0) {
        return error_set(error, STATUS_NOT_FOUND, "%s: there is no %s", storage->place,
                         request->key);
    }
    if (request->code == 200) {
        return STATUS_OK;
    }
    member_of(request->answer, "Message", text);
    return error_set(error, STATUS_IO, "%s: %s %s: HTTP %ld%s%s%s%s", storage->place,
                     request->method, request->key, request->code, name[0] != '\0' ? " " : "", name,
                     text[0] != '\0' ? ": " : "", text);
}

/* Whether the same request may be answered well in a moment. */
static bool is_passing(const struct request *request, CURLcode code)
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
static bool begin_file(struct request *request)
{
    bool good = request->fd < 0 || ((request->bytes >= 0 || ftruncate(request->fd, 0) == 0) &&
                                    lseek(request->fd, 0, SEEK_SET) == 0);
    request->file_error = good ? 0 : errno;
    return good;
}

static enum status call(struct object_storage *storage, struct request *request,
                        struct error *error)
{
    struct object_keys keys;
    CURLcode code = CURLE_OK;
    enum status status = object_keys_read(&keys, error);

    if (status == STATUS_OK) {
        request->handle = curl_pool_take(&storage->handles);
        status = memory_check(request->handle, error, "%s: out of memory", storage->place);
    }
    if (status == STATUS_OK) {
        for (int attempt = 0; attempt < TRIES; attempt++) {
            if (attempt > 0) {
                pause_before(attempt);
            }
            code = begin_file(request) ? send_request(storage, &keys, request) : CURLE_OK;
            if (!is_passing(request, code)) {
                break;
            }
        }
        status = judge(storage, request, code, error);
        curl_easy_reset(request->handle); /* it knows the keys */
        curl_pool_give(&storage->handles, request->handle);
    }
    explicit_bzero(&keys, sizeof keys);
    return status;
}

/* ---- the three of them ---- */

static enum status hash_file(struct request *request, const char *place, struct error *error)
{
    uint8_t digest[SHA256_BYTES];
    struct sha256 sum;
    char block[16384];
    ssize_t got = 1;

    sha256_init(&sum);
    request->bytes = 0;
    while (got > 0) {
        got = pread(request->fd, block, sizeof block, request->bytes);
        if (got < 0 && errno == EINTR) {
            got = 1;
            continue;
        }
        if (got < 0) {
            return error_set(error, STATUS_IO, "%s: %s: cannot read the file: %s", place,
                             request->key, strerror(errno));
        }
        sha256_update(&sum, block, (size_t)got);
        request->bytes += got;
    }
    sha256_final(&sum, digest);
    sha256_to_hex(digest, request->hash);
    return STATUS_OK;
}

enum status object_storage_put(struct object_storage *storage, const char *key, int fd,
                               struct error *error)
{
    struct request request = {.method = "PUT", .key = key, .fd = fd};
    TRY(hash_file(&request, storage->place, error));
    return call(storage, &request, error);
}

enum status object_storage_get(struct object_storage *storage, const char *key, size_t bytes_max,
                               int fd, struct error *error)
{
    struct request request = {
        .method = "GET", .key = key, .fd = fd, .bytes = -1, .bytes_max = bytes_max};
    sha256_hex("", 0, request.hash);
    return call(storage, &request, error);
}

enum status object_storage_exists(struct object_storage *storage, const char *key, bool *exists,
                                  struct error *error)
{
    struct request request = {.method = "HEAD", .key = key, .fd = -1, .bytes = -1};
    sha256_hex("", 0, request.hash);
    enum status status = call(storage, &request, error);
    *exists = status == STATUS_OK && request.length != 0; /* an empty one was cut off */
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
