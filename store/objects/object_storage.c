/*
 * Object storage over libcurl. See object_storage.h.
 *
 * An answer of 200 proves little: consoles, proxies and web servers give it to whatever is asked.
 * So nothing is stored before a probe has been written and read, what is stored is looked at again,
 * and what only seems to be there is not.
 */
#include "store/objects/object_storage.h"

#include "base/check.h"
#include "store/objects/object_request.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    STORE_TRIES = 3,   /* of a put whose object is another's in between */
    PROBE_BYTES = 128, /* at most, of a probe's content */
};

static const char scheme[] = "s3://";
static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

struct object_storage {
    struct object_place place;
    pthread_mutex_t mutex;
    bool probed; /* under the mutex: a probe has come back as it was written */
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
    char aws[OBJECT_NAME_BYTES];
    const char *region = variable_of("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1");

    if (strlen(region) >= OBJECT_NAME_BYTES / 2 ||
        strspn(region, name_characters) != strlen(region)) {
        return error_set(error, STATUS_USAGE, "AWS_REGION: expected a region's name, found %.100s",
                         region);
    }
    snprintf(aws, sizeof aws, "https://s3.%s.amazonaws.com", region);
    snprintf(storage->place.signer, sizeof storage->place.signer, "aws:amz:%s:s3", region);
    const char *endpoint = variable_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", aws);
    bool clear = strncasecmp(endpoint, "https://", 8) != 0;
    size_t bytes = strlen(endpoint);
    bytes -= bytes > 0 && endpoint[bytes - 1] == '/' ? 1 : 0;
    if ((clear && strncasecmp(endpoint, "http://", 7) != 0) || strpbrk(endpoint, "@?# ") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "AWS_ENDPOINT_URL: expected https://HOST[:PORT], found %.300s", endpoint);
    }
    storage->place.here = curl_call_host_is_here(endpoint);
    if (clear && !storage->place.here) {
        return error_set(error, STATUS_USAGE,
                         "%.400s: artifacts would travel in the clear; use https://, or a tunnel "
                         "to a port of this machine",
                         endpoint);
    }
    const char *name = url + sizeof scheme - 1;
    size_t name_bytes = strlen(name);
    int used = snprintf(storage->place.base_url, sizeof storage->place.base_url, "%.*s/%s%s",
                        (int)bytes, endpoint, name, name[name_bytes - 1] == '/' ? "" : "/");
    snprintf(storage->place.text, sizeof storage->place.text, "%s at %.*s", url, (int)bytes,
             endpoint);
    return used < OBJECT_URL_BYTES - OBJECT_NAME_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT, "AWS_ENDPOINT_URL: it is too long");
}

static enum status find_authorities(struct object_storage *storage, struct error *error)
{
    const char *path = variable_of("AWS_CA_BUNDLE", "AWS_CA_BUNDLE", "");
    int bytes = snprintf(storage->place.ca_file, sizeof storage->place.ca_file, "%s", path);
    return bytes < LIMIT_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT,
                           "AWS_CA_BUNDLE: expected a path of at most %d bytes, found %d",
                           LIMIT_PATH_BYTES - 1, bytes);
}

enum status object_storage_open(const char *url, struct object_storage **out, struct error *error)
{
    TRY(name_check(url, error));
    struct object_storage *storage = calloc(1, sizeof *storage);
    TRY(memory_check(storage, error, "%s: out of memory", url));
    curl_pool_init(&storage->place.handles);
    pthread_mutex_init(&storage->mutex, NULL);
    curl_call_init();
    enum status status = find_endpoint(storage, url, error);
    THEN(status, find_authorities(storage, error));
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
    curl_pool_finish(&storage->place.handles);
    pthread_mutex_destroy(&storage->mutex);
    free(storage);
}

const char *object_storage_place(const struct object_storage *storage)
{
    return storage->place.text;
}

/* ---- reading ---- */

enum status object_storage_get(struct object_storage *storage, const char *key, size_t bytes_max,
                               int fd, struct error *error)
{
    struct object_request request = object_request_reading("GET", key);
    request.bytes_max = bytes_max;
    request.fd = fd;
    return object_request_send(&storage->place, &request, error);
}

/* Whether an answer of 200 begins as each of our objects does (RFC 8878, 3.1.1). */
static bool begins_as_frame(const struct object_request *request)
{
    static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    return request->answer_bytes >= sizeof magic &&
           memcmp(request->answer, magic, sizeof magic) == 0;
}

/* Looks for the object by HEAD. That has no body, so whoever refuses it or sends it elsewhere says
 * no code, and a web server answers well whatever is asked for: those are asked again, by GET.
 * *length: -1 where the answer does not say it. NOT_FOUND. */
static enum status look(struct object_storage *storage, const char *key, struct object_request *out,
                        struct error *error)
{
    *out = object_request_reading("HEAD", key);
    enum status status = object_request_send(&storage->place, out, error);
    bool good = status == STATUS_OK &&
                strncmp(out->type, OBJECT_CONTENT_TYPE, sizeof OBJECT_CONTENT_TYPE - 1) == 0;
    bool refused = status == STATUS_IO && out->code >= 300 && out->code < 500 && out->code != 429;
    if (!refused && (good || status != STATUS_OK || out->length == 0)) {
        return status;
    }
    *out = object_request_reading("GET", key);
    TRY(object_request_send(&storage->place, out, error));
    return begins_as_frame(out) ? STATUS_OK
                                : error_set(error, STATUS_NOT_FOUND, "%s: %s is no artifact",
                                            storage->place.text, key);
}

enum status object_storage_exists(struct object_storage *storage, const char *key, int64_t bytes,
                                  bool *exists, struct error *error)
{
    struct object_request request;
    enum status status = look(storage, key, &request, error);
    *exists = status == STATUS_OK && request.length != 0 && /* an empty one was cut off */
              (bytes < 0 || request.length < 0 || request.length == bytes);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- writing ---- */

/* A storage that contradicts itself has failed. */
static enum status contradicted(enum status status, struct error *error)
{
    if (status == STATUS_MISMATCH) {
        status = error->status = STATUS_IO;
    }
    return status;
}

static enum status hash_file(struct object_request *request, const char *place, struct error *error)
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

/* Stores the file, without a look at what became of it. */
static enum status send_file(struct object_storage *storage, const char *key, int fd,
                             struct object_request *out, struct error *error)
{
    *out = (struct object_request){.method = "PUT", .key = key, .fd = fd};
    TRY(hash_file(out, storage->place.text, error));
    return object_request_send(&storage->place, out, error);
}

/* Counts the bytes of an object whose length no answer says. One that goes on beyond what was sent
 * may have no end. */
static enum status measure(struct object_storage *storage, const struct object_request *sent,
                           curl_off_t *length, struct error *error)
{
    struct object_request request = object_request_reading("GET", sent->key);
    request.measures = true;
    request.bytes_max = (size_t)sent->bytes;
    TRY(object_request_send(&storage->place, &request, error));
    *length = (curl_off_t)request.taken;
    return STATUS_OK;
}

/* The object is the one that was sent: as long, and under the ETag that storing it was answered
 * with. MISMATCH. */
static enum status check_sent(struct object_storage *storage, const struct object_request *sent,
                              struct error *error)
{
    struct object_request found;
    enum status status = look(storage, sent->key, &found, error);
    if (status == STATUS_OK && found.length < 0) {
        status = measure(storage, sent, &found.length, error);
    }
    if (status == STATUS_NOT_FOUND) {
        return error_set(error, STATUS_MISMATCH,
                         "%s: PUT %s was answered well, and it is not there", storage->place.text,
                         sent->key);
    }
    TRY(status);
    bool same = sent->tag[0] == '\0' || found.tag[0] == '\0' || strcmp(sent->tag, found.tag) == 0;
    if (found.length != sent->bytes || !same) {
        return error_set(error, STATUS_MISMATCH,
                         "%s: %s was stored with %lld bytes, and is there with %lld%s",
                         storage->place.text, sent->key, (long long)sent->bytes,
                         (long long)found.length, same ? "" : " and another ETag");
    }
    return STATUS_OK;
}

enum status object_storage_put(struct object_storage *storage, const char *key, int fd,
                               struct error *error)
{
    struct object_request request;
    TRY(object_storage_probe(storage, error));
    enum status status = STATUS_MISMATCH;
    /* Another machine may store the same artifact at this moment, packed in another way. */
    for (int i = 0; i < STORE_TRIES && status == STATUS_MISMATCH; i++) {
        TRY(send_file(storage, key, fd, &request, error));
        status = check_sent(storage, &request, error);
    }
    return contradicted(status, error);
}

/* ---- the probe ---- */

struct probe {
    char key[OBJECT_NAME_BYTES];
    char content[PROBE_BYTES];
    int out; /* a file with the content */
    int in;  /* an empty one */
};

/* One of 256 names, so that probes do not pile up where nothing is deleted, and those of two
 * processes seldom meet. */
static enum status make_probe(struct probe *probe, struct error *error)
{
    unsigned char random[32];
    char hex[SHA256_HEX_BYTES];
    probe->out = memfd_create("swerve-probe", MFD_CLOEXEC);
    probe->in = memfd_create("swerve-probe-back", MFD_CLOEXEC);
    bool good = probe->out >= 0 && probe->in >= 0 &&
                getrandom(random, sizeof random, 0) == (ssize_t)sizeof random;
    sha256_hex(random, sizeof random, hex);
    snprintf(probe->key, sizeof probe->key, "probe/%02x", random[0]);
    snprintf(probe->content, sizeof probe->content, "Swerve can write and read here: %s\n", hex);
    size_t bytes = strlen(probe->content);
    return good && write(probe->out, probe->content, bytes) == (ssize_t)bytes
               ? STATUS_OK
               : error_set(error, STATUS_IO, "a probe of object storage cannot be made: %s",
                           strerror(errno));
}

/* MISMATCH: what came back is something else. */
static enum status play_probe(struct object_storage *storage, const struct probe *probe,
                              struct error *error)
{
    char back[PROBE_BYTES] = "";
    struct object_request request;
    TRY(send_file(storage, probe->key, probe->out, &request, error));
    request = object_request_reading("GET", probe->key);
    request.bytes_max = PROBE_BYTES - 1;
    request.fd = probe->in;
    enum status status = object_request_send(&storage->place, &request, error);
    if (status != STATUS_OK && status != STATUS_LIMIT && status != STATUS_NOT_FOUND) {
        return status;
    }
    ssize_t got = pread(probe->in, back, sizeof back - 1, 0);
    if (status == STATUS_OK && got == (ssize_t)strlen(probe->content) &&
        strcmp(back, probe->content) == 0) {
        return STATUS_OK;
    }
    snprintf(request.answer, sizeof request.answer, "%s", got > 0 ? back : "");
    return object_request_stranger(&storage->place, &request,
                                   "was written there, and what was read is something else",
                                   STATUS_MISMATCH, error);
}

static enum status probe_once(struct object_storage *storage, struct error *error)
{
    struct probe probe;
    enum status status = make_probe(&probe, error);
    THEN(status, play_probe(storage, &probe, error));
    close(probe.out);
    close(probe.in);
    return status;
}

enum status object_storage_probe(struct object_storage *storage, struct error *error)
{
    pthread_mutex_lock(&storage->mutex);
    enum status status = storage->probed ? STATUS_OK : STATUS_MISMATCH;
    for (int i = 0; i < STORE_TRIES && status == STATUS_MISMATCH; i++) {
        status = probe_once(storage, error);
    }
    storage->probed = status == STATUS_OK;
    pthread_mutex_unlock(&storage->mutex);
    return contradicted(status, error);
}
