/*
 * Fuzz target: artifact files, which a disk may damage and a stranger may replace. The input stands
 * in the place of an artifact's file: reading it must give the bytes of its name or say that it is
 * damaged, and never unpack beyond the limit. The name is that of the unpacked input where a
 * plain decompression (bounded by 1 MiB) gives one, so that what is whole is accepted. The input is
 * also what a client sends as a packed artifact: it is stored if and only if it is one whole frame.
 *
 * Works in a scratch directory below /dev/shm, which is removed at the end.
 */
#include "base/check.h"
#include "store/artifacts/artifacts.h"
#include "store/artifacts/zstd_frame.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { PLAIN_BYTES_MAX = 1 << 20 };

static char directory[64];
static char path[2 * LIMIT_PATH_BYTES];
static struct artifacts artifacts;

static void clean_up(void)
{
    char text[LIMIT_PATH_BYTES + 16];
    snprintf(text, sizeof text, "%s/unfinished", artifacts.path);
    rmdir(text);
    rmdir(artifacts.path);
    rmdir(directory);
}

static void prepare(void)
{
    struct error error = {0};
    char store_path[80];
    if (directory[0] != '\0') {
        return;
    }
    snprintf(directory, sizeof directory, "/dev/shm/swerve-fuzz-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
    snprintf(store_path, sizeof store_path, "%s/db", directory);
    CHECK(artifacts_open(store_path, &artifacts, &error) == STATUS_OK);
    atexit(clean_up);
}

static void put_file(const char *hash, const uint8_t *data, size_t bytes)
{
    snprintf(path, sizeof path, "%s/%.2s", artifacts.path, hash);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%.2s/%s.zst", artifacts.path, hash, hash);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK(write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
}

static void remove_file(const char *hash)
{
    unlink(path);
    snprintf(path, sizeof path, "%s/%.2s", artifacts.path, hash);
    rmdir(path);
}

/* Piece by piece it is the same, or damaged in the same way. */
static void check_pieces(const char *hash, enum status expected, const uint8_t *plain,
                         size_t plain_bytes)
{
    struct error error = {0};
    struct artifact_reader *reader = NULL;
    bool packed = false;
    uint8_t piece[1000];
    size_t bytes = 0;
    size_t count = 0;
    size_t used = 0;
    enum status status = artifact_reader_open(&artifacts, hash, &packed, &reader, &bytes, &error);
    CHECK((status == STATUS_OK) == (expected == STATUS_OK));
    if (status != STATUS_OK) {
        CHECK(status == STATUS_IO && strstr(error.text, "damaged") != NULL);
        return;
    }
    CHECK(bytes == plain_bytes);
    do {
        CHECK(artifact_reader_read(reader, piece, sizeof piece, &count, &error) == STATUS_OK);
        CHECK(count <= plain_bytes - used && memcmp(piece, plain + used, count) == 0);
        used += count;
    } while (count > 0);
    CHECK(used == plain_bytes);
    artifact_reader_close(reader);
}

/* The input as an upload, in pieces of a size that it decides itself. */
static enum status upload(const uint8_t *data, size_t bytes, const char *hash)
{
    struct error error = {0};
    struct artifact_writer *writer = NULL;
    size_t piece = 1 + (bytes > 0 ? data[bytes / 2] : 0);
    enum status status = artifact_writer_open(&artifacts, bytes, true, &writer, &error);
    CHECK(status == STATUS_OK);
    for (size_t at = 0; status == STATUS_OK && at < bytes; at += piece) {
        size_t take = piece < bytes - at ? piece : bytes - at;
        status = artifact_writer_write(writer, data + at, take, &error);
    }
    if (status != STATUS_OK) {
        artifact_writer_abort(writer);
    } else {
        status = artifact_writer_finish(writer, hash, &error);
    }
    CHECK(status == STATUS_OK || error.text[0] != '\0');
    return status;
}

static void check_upload(const uint8_t *data, size_t bytes)
{
    char hash[SHA256_HEX_BYTES];
    struct error error = {0};
    void *plain = NULL;
    void *found = NULL;
    size_t plain_bytes = 0;
    size_t found_bytes = 0;
    bool packed = true;
    struct artifact_reader *reader = NULL;
    enum status expected =
        zstd_frame_unpack("input", data, bytes, PLAIN_BYTES_MAX, &plain, &plain_bytes, &error);
    if (expected == STATUS_LIMIT) {
        return; /* whether it is what it says would take too long to find out */
    }
    CHECK(expected == STATUS_OK || expected == STATUS_BAD_INPUT);
    sha256_hex(expected == STATUS_OK ? plain : data, expected == STATUS_OK ? plain_bytes : bytes,
               hash);
    CHECK(upload(data, bytes, hash) == expected);
    if (expected != STATUS_OK) {
        return;
    }
    CHECK(artifacts_get(&artifacts, hash, &found, &found_bytes, &error) == STATUS_OK);
    CHECK(found_bytes == plain_bytes && memcmp(found, plain, plain_bytes) == 0);
    CHECK(artifact_reader_open(&artifacts, hash, &packed, &reader, &found_bytes, &error) ==
          STATUS_OK);
    CHECK(packed == (bytes < plain_bytes) && found_bytes == (packed ? bytes : plain_bytes));
    artifact_reader_close(reader);
    snprintf(path, sizeof path, "%s/%.2s/%s.zst", artifacts.path, hash, hash);
    remove_file(hash);
    free(found);
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t plain[PLAIN_BYTES_MAX];
    char hash[SHA256_HEX_BYTES];
    struct error error = {0};
    void *found = NULL;
    size_t found_bytes = 0;
    prepare();
    size_t plain_bytes = ZSTD_decompress(plain, sizeof plain, data, bytes);
    bool unpacks = bytes > 0 && !ZSTD_isError(plain_bytes);
    sha256_hex(unpacks ? plain : data, unpacks ? plain_bytes : bytes, hash);
    put_file(hash, data, bytes);
    enum status status = artifacts_get(&artifacts, hash, &found, &found_bytes, &error);
    if (status == STATUS_OK) {
        CHECK(unpacks && found_bytes == plain_bytes && memcmp(found, plain, plain_bytes) == 0);
        free(found);
    } else {
        CHECK(status == STATUS_IO && strstr(error.text, "damaged") != NULL);
    }
    check_pieces(hash, status, plain, plain_bytes);
    remove_file(hash);
    check_upload(data, bytes);
    return 0;
}
