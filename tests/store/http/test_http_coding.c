/*
 * Artifacts as zstd frames on the wire.
 *
 * Goal: what is given packed is the file as it lies there and unpacks to the artifact; what is
 * taken packed is stored as it came if and only if it is one frame of the artifact in the path,
 * within the limits; whoever knows nothing of it sees the artifact as before; a damaged file is
 * never given. Method: a server over an embedded store, requests byte by byte, and a client whose
 * calls are looked at on their way.
 */
#include "base/check.h"
#include "store/artifacts/zstd_frame.h"
#include "store/client/http_client.h"
#include "store/client/http_transport.h"
#include "store/wire/http_coding.h"
#include "store/wire/http_wire.h"
#include "tests/harness.h"
#include "tests/store/http/http_site.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { REPLY_BYTES = 4 << 20, CONTENT_BYTES = 300000 };

static char reply[REPLY_BYTES];

/* Bytes that pack to about a third. */
static uint8_t *make_content(size_t bytes)
{
    uint8_t *content = malloc(bytes + 1);
    CHECK(content != NULL);
    for (size_t i = 0; i < bytes; i++) {
        content[i] = (uint8_t)((i * 2654435761u >> 13) % 7 * (i % 300 < 200));
    }
    return content;
}

/* One request with a body; where the reply's own body begins. */
static const char *call(const char *method, const char *hash, const char *headers, const void *body,
                        size_t bytes, int *code, size_t *reply_bytes)
{
    char *text = malloc(bytes + 1024);
    CHECK(text != NULL);
    int count = snprintf(text, 1024,
                         "%s /v1/artifacts/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n",
                         method, hash, headers, bytes);
    if (bytes > 0) {
        memcpy(text + count, body, bytes);
    }
    int fd = support_connect(site.socket_path);
    *code = support_request(fd, text, (size_t)count + bytes, reply, sizeof reply);
    close(fd);
    free(text);
    const char *end = strstr(reply, "\r\n\r\n");
    const char *length = strcasestr(reply, "content-length:");
    CHECK(end != NULL && length != NULL && length < end);
    *reply_bytes = strtoul(length + 15, NULL, 10);
    return end + 4;
}

static int put(const char *hash, const char *headers, const void *body, size_t bytes)
{
    int code = 0;
    size_t reply_bytes = 0;
    call("PUT", hash, headers, body, bytes, &code, &reply_bytes);
    return code;
}

enum { FILE_PATH_BYTES = 400 };

static void file_path(const char *hash, char out[FILE_PATH_BYTES])
{
    snprintf(out, FILE_PATH_BYTES, "%s.artifacts/%.2s/%s.zst", site.path, hash, hash);
}

static size_t file_bytes(const char *hash, void *out, size_t capacity)
{
    char path[FILE_PATH_BYTES];
    file_path(hash, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t got = read(fd, out, capacity);
    close(fd);
    CHECK(got >= 0 && (size_t)got < capacity);
    return (size_t)got;
}

static void headers_are_understood(void)
{
    static const char *const yes[] = {"zstd",       "ZSTD",          "gzip, zstd",
                                      "zstd;q=1",   "zstd; q=0.001", "gzip;q=1.0,zstd ;q=0.5",
                                      "a,b , zstd", "zstd ,x"};
    static const char *const no[] = {
        "",        "identity", "zstd;q=0", "zstd;q=0.000", "zst",      "zstd2",    "xzstd",    "*",
        "zstd;q=", "zstd;",    "zstd;p=1", ",,",           "gzip;q=1", "zstd;q=x", "zstd;q=,1"};
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        if (!http_coding_accepted(yes[i])) {
            TEST_FAIL("\"%s\" was not taken for zstd", yes[i]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(no); i++) {
        if (http_coding_accepted(no[i])) {
            TEST_FAIL("\"%s\" was taken for zstd", no[i]);
        }
    }
    EXPECT(!http_coding_accepted(NULL));
    EXPECT_INT(http_coding_of(NULL), HTTP_CODING_IDENTITY);
    EXPECT_INT(http_coding_of("identity"), HTTP_CODING_IDENTITY);
    EXPECT_INT(http_coding_of("Zstd"), HTTP_CODING_ZSTD);
    EXPECT_INT(http_coding_of("gzip"), HTTP_CODING_OTHER);
    EXPECT_INT(http_coding_of("zstd, zstd"), HTTP_CODING_OTHER);
    EXPECT_INT(http_coding_of(""), HTTP_CODING_OTHER);
}

/* A client that takes zstd gets the stored file; one that does not gets the artifact. */
static void files_are_given_as_they_are(void)
{
    struct error error;
    char hash[SHA256_HEX_BYTES];
    static uint8_t file[CONTENT_BYTES + 1000];
    uint8_t *content = make_content(CONTENT_BYTES);
    int code = 0;
    size_t bytes = 0;
    site_start();
    EXPECT_OK(site.behind->ops->artifact_put(site.behind, content, CONTENT_BYTES, hash, &error),
              error);
    size_t stored = file_bytes(hash, file, sizeof file);
    const char *body = call("GET", hash, "Accept-Encoding: gzip, zstd\r\n", NULL, 0, &code, &bytes);
    EXPECT_INT(code, 200);
    EXPECT(strcasestr(reply, "Content-Encoding: zstd\r\n") != NULL);
    EXPECT(strcasestr(reply, "Vary: Accept-Encoding\r\n") != NULL);
    EXPECT(bytes == stored && stored < CONTENT_BYTES / 2 && memcmp(body, file, bytes) == 0);
    static const char *const others[] = {"", "Accept-Encoding: gzip\r\n",
                                         "Accept-Encoding: zstd;q=0\r\n"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        body = call("GET", hash, others[i], NULL, 0, &code, &bytes);
        EXPECT_INT(code, 200);
        EXPECT(strcasestr(reply, "Content-Encoding:") == NULL);
        EXPECT(strcasestr(reply, "Vary: Accept-Encoding\r\n") != NULL);
        EXPECT(bytes == CONTENT_BYTES && memcmp(body, content, bytes) == 0);
    }
    /* A body that does not get shorter stays as it is. */
    EXPECT_OK(site.behind->ops->artifact_put(site.behind, "abc", 3, hash, &error), error);
    body = call("GET", hash, "Accept-Encoding: zstd\r\n", NULL, 0, &code, &bytes);
    EXPECT(code == 200 && bytes == 3 && memcmp(body, "abc", 3) == 0);
    EXPECT(strcasestr(reply, "Content-Encoding:") == NULL);
    site_stop();
    free(content);
}

static void frames_are_stored_as_they_come(void)
{
    static const size_t sizes[] = {0, 1, 100, CONTENT_BYTES, 3000000};
    static uint8_t file[REPLY_BYTES];
    site_start();
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct error error;
        char hash[SHA256_HEX_BYTES];
        uint8_t *content = make_content(sizes[i]);
        size_t bound = ZSTD_compressBound(sizes[i]);
        uint8_t *frame = malloc(bound);
        CHECK(frame != NULL);
        size_t frame_bytes = ZSTD_compress(frame, bound, content, sizes[i], 9);
        sha256_hex(content, sizes[i], hash);
        EXPECT_INT(put(hash, "Content-Encoding: zstd\r\n", frame, frame_bytes), 200);
        EXPECT_INT(put(hash, "Content-Encoding: ZSTD\r\n", frame, frame_bytes), 200); /* again */
        EXPECT(file_bytes(hash, file, sizeof file) == frame_bytes &&
               memcmp(file, frame, frame_bytes) == 0);
        void *back = NULL;
        size_t bytes = 0;
        EXPECT_OK(site.behind->ops->artifact_get(site.behind, hash, &back, &bytes, &error), error);
        EXPECT(bytes == sizes[i] && memcmp(back, content, bytes) == 0);
        EXPECT_INT(put(hash, "Content-Encoding: identity\r\n", content, sizes[i]), 200);
        free(back);
        free(frame);
        free(content);
    }
    site_stop();
}

/* A frame of `content` with one parameter of the compressor changed. */
static size_t frame_with(ZSTD_cParameter parameter, int value, const void *content, size_t bytes,
                         uint8_t *out, size_t capacity)
{
    ZSTD_CCtx *compressor = ZSTD_createCCtx();
    CHECK(compressor != NULL &&
          !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, parameter, value)));
    size_t found = ZSTD_compress2(compressor, out, capacity, content, bytes);
    CHECK(!ZSTD_isError(found));
    ZSTD_freeCCtx(compressor);
    return found;
}

struct bad {
    const char *what;
    const char *headers;
    const uint8_t *body;
    size_t bytes;
    int code;
};

static void expect_refused(const char *hash, const struct bad *bad)
{
    char path[FILE_PATH_BYTES];
    int code = put(hash, bad->headers, bad->body, bad->bytes);
    if (code != bad->code) {
        TEST_FAIL("%s: expected %d, found %d: %.600s", bad->what, bad->code, code, reply);
    }
    EXPECT_CONTAINS(reply, "\"text\"");
    if (code == 415) {
        EXPECT(strcasestr(reply, "Accept-Encoding: zstd\r\n") != NULL);
    }
    file_path(hash, path);
    EXPECT(access(path, F_OK) != 0);
    snprintf(path, sizeof path, "%s.artifacts/unfinished", site.path);
    EXPECT(rmdir(path) == 0 && mkdir(path, 0777) == 0); /* it was empty */
}

static void bad_frames_are_refused(void)
{
    enum { WIDE_BYTES = 17 << 20, EMPTY_BLOCKS = 200 };
    static const char zstd[] = "Content-Encoding: zstd\r\n";
    static uint8_t whole[CONTENT_BYTES], twice[2 * CONTENT_BYTES], unsized[CONTENT_BYTES];
    static uint8_t wide[WIDE_BYTES / 100], liar[CONTENT_BYTES], more[CONTENT_BYTES];
    static uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
    /* Single segment, eight bytes of size: 2^40. */
    static uint8_t huge[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0};
    /* One byte of size: 1; then nothing but empty blocks that are not the last. */
    static uint8_t bloated[6 + 3 * EMPTY_BLOCKS] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 1};
    char hash[SHA256_HEX_BYTES];
    uint8_t *content = make_content(CONTENT_BYTES);
    uint8_t *noughts = calloc(1, WIDE_BYTES);
    CHECK(noughts != NULL);
    sha256_hex(content, CONTENT_BYTES, hash);
    size_t size = ZSTD_compress(whole, sizeof whole, content, CONTENT_BYTES, 3);
    memcpy(twice, whole, size);
    memcpy(twice + size, whole, size);
    size_t unsized_bytes =
        frame_with(ZSTD_c_contentSizeFlag, 0, content, CONTENT_BYTES, unsized, sizeof unsized);
    size_t wide_bytes = frame_with(ZSTD_c_windowLog, 24, noughts, WIDE_BYTES, wide, sizeof wide);
    memcpy(liar, whole, size); /* four bytes of size behind the descriptors */
    liar[6] = (uint8_t)(liar[6] - 1);
    memcpy(more, whole, size);
    more[6] = (uint8_t)(more[6] + 1);
    const struct bad table[] = {
        {"no frame", zstd, content, CONTENT_BYTES, 400},
        {"nothing", zstd, content, 0, 400},
        {"three bytes", zstd, whole, 3, 400},
        {"a head alone", zstd, whole, 18, 400},
        {"cut off", zstd, whole, size - 1, 400},
        {"two frames", zstd, twice, 2 * size, 400},
        {"a byte behind", zstd, twice, size + 1, 400},
        {"skippable", zstd, skippable, sizeof skippable, 400},
        {"no size", zstd, unsized, unsized_bytes, 400},
        {"a smaller size", zstd, liar, size, 400},
        {"a larger size", zstd, more, size, 400},
        {"too large", zstd, huge, sizeof huge, 413},
        {"empty blocks", zstd, bloated, sizeof bloated, 400},
        {"a wide window", zstd, wide, wide_bytes, 400},
        {"packed, unsaid", "", whole, size, 400},
        {"said, not packed", zstd, content, CONTENT_BYTES, 400},
        {"unknown", "Content-Encoding: gzip\r\n", whole, size, 415},
        {"empty coding", "Content-Encoding:\r\n", whole, size, 415},
        {"twice packed", "Content-Encoding: zstd, zstd\r\n", whole, size, 415},
        {"two headers", "Content-Encoding: zstd\r\nContent-Encoding: identity\r\n", whole, size,
         415},
    };
    site_start();
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        expect_refused(hash, &table[i]);
    }
    char other[SHA256_HEX_BYTES];
    sha256_hex("other", 5, other);
    expect_refused(other, &(struct bad){"another's name", zstd, whole, size, 400});
    /* Every byte of the frame matters, or the artifact is the same. */
    for (size_t at = 0; at < size; at += 1 + size / 300) {
        whole[at] ^= 0x10;
        int code = put(hash, zstd, whole, size);
        EXPECT(code == 400 || code == 413);
        whole[at] ^= 0x10;
    }
    EXPECT_INT(put(hash, zstd, whole, size), 200);
    site_stop();
    free(noughts);
    free(content);
}

/* Only artifacts travel packed. */
static void other_bodies_come_as_they_are(void)
{
    static const char *const requests[] = {
        "POST /v1/suites/s/cancel HTTP/1.1\r\nHost: x\r\nContent-Encoding: zstd\r\n"
        "Content-Length: 2\r\n\r\n{}",
        "PUT /v1/scenarios/abc HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
        "Content-Length: 2\r\n\r\n{}",
    };
    site_start();
    int fd = support_connect(site.socket_path);
    for (size_t i = 0; i < COUNT_OF(requests); i++) { /* on one connection, which goes on */
        EXPECT_INT(support_request(fd, requests[i], strlen(requests[i]), reply, sizeof reply), 415);
        EXPECT_CONTAINS(reply, "Content-Encoding: expected none");
    }
    close(fd);
    site_stop();
}

static void damaged_files_are_not_given(void)
{
    struct error error;
    static uint8_t file[CONTENT_BYTES];
    char path[FILE_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    uint8_t *content = make_content(CONTENT_BYTES);
    int code = 0;
    size_t bytes = 0;
    site_start();
    EXPECT_OK(site.behind->ops->artifact_put(site.behind, content, CONTENT_BYTES, hash, &error),
              error);
    size_t stored = file_bytes(hash, file, sizeof file);
    file_path(hash, path);
    for (size_t at = 0; at < stored; at += 1 + stored / 50) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        uint8_t wrong = (uint8_t)(file[at] ^ 4);
        CHECK(fd >= 0 && pwrite(fd, &wrong, 1, (off_t)at) == 1);
        const char *body = call("GET", hash, "Accept-Encoding: zstd\r\n", NULL, 0, &code, &bytes);
        if (code == 200) { /* bits that mean nothing: what is given is right all the same */
            void *unpacked = NULL;
            size_t size = 0;
            EXPECT_OK(zstd_frame_unpack("t", body, bytes, CONTENT_BYTES, &unpacked, &size, &error),
                      error);
            EXPECT(size == CONTENT_BYTES && memcmp(unpacked, content, size) == 0);
            free(unpacked);
        } else {
            EXPECT_INT(code, 500);
            EXPECT_CONTAINS(reply, "damaged");
        }
        CHECK(pwrite(fd, &file[at], 1, (off_t)at) == 1 && close(fd) == 0);
    }
    CHECK(truncate(path, (off_t)stored - 1) == 0);
    call("GET", hash, "Accept-Encoding: zstd\r\n", NULL, 0, &code, &bytes);
    EXPECT_INT(code, 500);
    site_stop();
    free(content);
}

/* ---- the client ---- */

struct post {
    struct http_call seen; /* pointers are not valid any more */
    uint8_t packed[CONTENT_BYTES];
    const void *answer;
    size_t answer_bytes;
    bool answer_packed;
};

static enum status carry(void *context, struct http_call *call, struct error *error)
{
    struct post *post = context;
    (void)error;
    post->seen = *call;
    if (call->body_bytes > 0 && call->body_bytes <= sizeof post->packed) {
        memcpy(post->packed, call->body, call->body_bytes);
    }
    call->code = 200;
    call->reply = malloc(post->answer_bytes + 1);
    CHECK(call->reply != NULL);
    memcpy(call->reply, post->answer, post->answer_bytes);
    call->reply[post->answer_bytes] = '\0';
    call->reply_bytes = post->answer_bytes;
    call->reply_packed = post->answer_packed;
    return STATUS_OK;
}

static void the_client_packs(void)
{
    static struct post post;
    struct error error;
    struct store *store = NULL;
    char hash[SHA256_HEX_BYTES];
    void *data = NULL;
    void *frame = NULL;
    size_t bytes = 0;
    size_t frame_bytes = 0;
    uint8_t *content = make_content(CONTENT_BYTES);
    const struct http_carrier carrier = {.call = carry, .context = &post};
    EXPECT_OK(http_client_open_over(&carrier, NULL, &store, &error), error);
    post.answer = "{}";
    post.answer_bytes = 2;
    EXPECT_OK(store->ops->artifact_put(store, content, CONTENT_BYTES, hash, &error), error);
    EXPECT(post.seen.packed && post.seen.body_bytes < CONTENT_BYTES / 2);
    EXPECT_OK(zstd_frame_unpack("t", post.packed, post.seen.body_bytes, CONTENT_BYTES, &data,
                                &bytes, &error),
              error);
    EXPECT(bytes == CONTENT_BYTES && memcmp(data, content, bytes) == 0);
    free(data);
    EXPECT_OK(store->ops->artifact_put(store, "abc", 3, hash, &error), error);
    EXPECT(!post.seen.packed && post.seen.body_bytes == 3);

    sha256_hex(content, CONTENT_BYTES, hash);
    EXPECT_OK(zstd_frame_pack("t", content, CONTENT_BYTES, &frame, &frame_bytes, &error), error);
    post.answer = frame;
    post.answer_bytes = frame_bytes;
    post.answer_packed = true;
    EXPECT_OK(store->ops->artifact_get(store, hash, &data, &bytes, &error), error);
    EXPECT(post.seen.accepts_packed);
    EXPECT(bytes == CONTENT_BYTES && memcmp(data, content, bytes) == 0);
    free(data);
    /* Damage on the way is seen, packed or not. */
    for (size_t at = 0; at < frame_bytes; at += 1 + frame_bytes / 100) {
        ((uint8_t *)frame)[at] ^= 1;
        enum status status = store->ops->artifact_get(store, hash, &data, &bytes, &error);
        EXPECT(status == STATUS_IO ||
               (status == STATUS_OK && memcmp(data, content, CONTENT_BYTES) == 0));
        if (status == STATUS_OK) {
            free(data);
        }
        ((uint8_t *)frame)[at] ^= 1;
    }
    post.answer_bytes = 0;
    EXPECT_INT(store->ops->artifact_get(store, hash, &data, &bytes, NULL), STATUS_IO);
    post.answer = content;
    post.answer_bytes = CONTENT_BYTES;
    post.answer_packed = false;
    EXPECT_OK(store->ops->artifact_get(store, hash, &data, &bytes, &error), error);
    EXPECT(memcmp(data, content, CONTENT_BYTES) == 0);
    free(data);
    store->ops->close(store);
    free(frame);
    free(content);
}

int main(void)
{
    return TEST_RUN(TEST(headers_are_understood), TEST(files_are_given_as_they_are),
                    TEST(frames_are_stored_as_they_come), TEST(bad_frames_are_refused),
                    TEST(other_bodies_come_as_they_are), TEST(damaged_files_are_not_given),
                    TEST(the_client_packs));
}
