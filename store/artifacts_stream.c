/*
 * Artifacts piece by piece. See artifacts.h.
 *
 * Memory per transfer is what zstd needs for its window (a few MiB at this level) and two blocks,
 * whatever the artifact's size. The file is the same as that of artifacts_put: one zstd frame that
 * says its size.
 */
#include "store/artifacts_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { BLOCK_BYTES = 128 << 10, FRAME_HEADER_BYTES_MAX = 18 /* RFC 8878, section 3.1.1.1 */ };

/* ---- writing ---- */

struct artifact_writer {
    struct artifacts *artifacts;
    char temporary[ARTIFACT_TEMPORARY_BYTES];
    int fd;
    ZSTD_CCtx *compressor;
    struct sha256 hash;
    size_t announced_bytes;
    size_t received_bytes;
    uint8_t block[BLOCK_BYTES];
};

enum status artifact_writer_open(struct artifacts *artifacts, size_t bytes,
                                 struct artifact_writer **out, struct error *error)
{
    if (bytes > LIMIT_ARTIFACT_BYTES) {
        return error_set(error, STATUS_LIMIT, "an artifact has at most %d bytes, this one has %zu",
                         LIMIT_ARTIFACT_BYTES, bytes);
    }
    struct artifact_writer *writer = malloc(sizeof *writer);
    ZSTD_CCtx *compressor = ZSTD_createCCtx();
    if (writer == NULL || compressor == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel,
                                            ARTIFACT_COMPRESSION_LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(compressor, bytes))) {
        ZSTD_freeCCtx(compressor);
        free(writer);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for an artifact of %zu bytes",
                         bytes);
    }
    writer->artifacts = artifacts;
    writer->compressor = compressor;
    writer->announced_bytes = bytes;
    writer->received_bytes = 0;
    sha256_init(&writer->hash);
    enum status status =
        artifacts_create_unfinished(artifacts, &writer->fd, writer->temporary, error);
    if (status != STATUS_OK) {
        ZSTD_freeCCtx(compressor);
        free(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

/* Compresses the input and writes what comes out; `mode` ends the frame or not. */
static enum status compress(struct artifact_writer *writer, const void *data, size_t bytes,
                            ZSTD_EndDirective mode, struct error *error)
{
    ZSTD_inBuffer in = {.src = data, .size = bytes, .pos = 0};
    for (;;) {
        ZSTD_outBuffer out = {.dst = writer->block, .size = sizeof writer->block, .pos = 0};
        size_t left = ZSTD_compressStream2(writer->compressor, &out, &in, mode);
        if (ZSTD_isError(left)) {
            return error_set(error, STATUS_NO_MEMORY, "cannot compress an artifact: %s",
                             ZSTD_getErrorName(left));
        }
        enum status status =
            artifacts_write_all(writer->fd, writer->temporary, writer->block, out.pos, error);
        if (status != STATUS_OK) {
            return status;
        }
        if (mode == ZSTD_e_end ? left == 0 : in.pos == in.size) {
            return STATUS_OK;
        }
    }
}

enum status artifact_writer_write(struct artifact_writer *writer, const void *data, size_t bytes,
                                  struct error *error)
{
    if (bytes > writer->announced_bytes - writer->received_bytes) {
        return error_set(error, STATUS_LIMIT,
                         "artifact: expected the %zu bytes announced, found "
                         "more",
                         writer->announced_bytes);
    }
    writer->received_bytes += bytes;
    sha256_update(&writer->hash, data, bytes);
    return compress(writer, data, bytes, ZSTD_e_continue, error);
}

static void free_writer(struct artifact_writer *writer)
{
    ZSTD_freeCCtx(writer->compressor);
    free(writer);
}

void artifact_writer_abort(struct artifact_writer *writer)
{
    if (writer != NULL) {
        close(writer->fd);
        unlink(writer->temporary); /* a failure to do so is cleaned up at the next open */
        free_writer(writer);
    }
}

enum status artifact_writer_finish(struct artifact_writer *writer, const char *hash,
                                   struct error *error)
{
    uint8_t digest[SHA256_BYTES];
    char found[SHA256_HEX_BYTES];
    sha256_final(&writer->hash, digest);
    sha256_to_hex(digest, found);
    enum status status = STATUS_OK;
    if (writer->received_bytes != writer->announced_bytes) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "artifact: expected the %zu bytes announced, found %zu",
                           writer->announced_bytes, writer->received_bytes);
    } else if (strcmp(found, hash) != 0) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "artifact: expected bytes with the hash in the path, found %s", found);
    } else {
        status = compress(writer, NULL, 0, ZSTD_e_end, error);
    }
    if (status != STATUS_OK) {
        artifact_writer_abort(writer);
        return status;
    }
    status = artifacts_finish(writer->artifacts, writer->fd, writer->temporary, hash, error);
    free_writer(writer);
    return status;
}

/* ---- reading ---- */

struct artifact_reader {
    char path[ARTIFACT_NAME_BYTES];
    int fd;
    ZSTD_DCtx *expander;
    size_t bytes;       /* of the artifact, as the frame says */
    size_t given_bytes; /* since the file was last begun */
    ZSTD_inBuffer in;   /* what is left of the block */
    uint8_t block[BLOCK_BYTES];
};

void artifact_reader_close(struct artifact_reader *reader)
{
    if (reader != NULL) {
        if (reader->fd >= 0) {
            close(reader->fd);
        }
        ZSTD_freeDCtx(reader->expander);
        free(reader);
    }
}

/* Refills the block; *end: the file has ended. */
static enum status fill(struct artifact_reader *reader, bool *end, struct error *error)
{
    ssize_t got = read(reader->fd, reader->block, sizeof reader->block);
    while (got < 0 && errno == EINTR) {
        got = read(reader->fd, reader->block, sizeof reader->block);
    }
    if (got < 0) {
        return artifacts_io_error(error, "read the artifact", reader->path);
    }
    reader->in = (ZSTD_inBuffer){.src = reader->block, .size = (size_t)got, .pos = 0};
    *end = got == 0;
    return STATUS_OK;
}

enum status artifact_reader_read(struct artifact_reader *reader, void *out, size_t capacity,
                                 size_t *count, struct error *error)
{
    size_t left = reader->bytes - reader->given_bytes;
    ZSTD_outBuffer buffer = {.dst = out, .size = capacity < left ? capacity : left, .pos = 0};
    while (buffer.pos < buffer.size) {
        bool end = false;
        if (reader->in.pos == reader->in.size) {
            enum status status = fill(reader, &end, error);
            if (status != STATUS_OK) {
                return status;
            }
        }
        size_t result = ZSTD_decompressStream(reader->expander, &buffer, &reader->in);
        if (ZSTD_isError(result)) {
            return artifacts_damaged(error, reader->path, "its contents do not unpack");
        }
        if (end && buffer.pos < buffer.size) {
            return artifacts_damaged(error, reader->path, "it ends early");
        }
    }
    reader->given_bytes += buffer.pos;
    *count = buffer.pos;
    return STATUS_OK;
}

/* Back to the first byte. */
static enum status rewind_reader(struct artifact_reader *reader, struct error *error)
{
    reader->given_bytes = 0;
    reader->in = (ZSTD_inBuffer){.src = reader->block, .size = 0, .pos = 0};
    ZSTD_DCtx_reset(reader->expander, ZSTD_reset_session_only);
    if (lseek(reader->fd, 0, SEEK_SET) != 0) {
        return artifacts_io_error(error, "read the artifact", reader->path);
    }
    return STATUS_OK;
}

static enum status read_size(struct artifact_reader *reader, struct error *error)
{
    uint8_t header[FRAME_HEADER_BYTES_MAX];
    ssize_t got = pread(reader->fd, header, sizeof header, 0);
    unsigned long long size =
        got > 0 ? ZSTD_getFrameContentSize(header, (size_t)got) : ZSTD_CONTENTSIZE_ERROR;
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
        return artifacts_damaged(error, reader->path, "not a zstd file");
    }
    if (size > LIMIT_ARTIFACT_BYTES) {
        return artifacts_damaged(error, reader->path, "it claims to expand beyond the limit");
    }
    reader->bytes = (size_t)size;
    return STATUS_OK;
}

/* Reads everything once and compares its hash. */
static enum status verify(struct artifact_reader *reader, const char *hash, struct error *error)
{
    uint8_t digest[SHA256_BYTES];
    char found[SHA256_HEX_BYTES];
    struct sha256 sum;
    size_t count = 1;
    uint8_t *piece = malloc(BLOCK_BYTES);
    enum status status = STATUS_OK;
    if (piece == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", reader->path);
    }
    sha256_init(&sum);
    while (status == STATUS_OK && count > 0) {
        status = artifact_reader_read(reader, piece, BLOCK_BYTES, &count, error);
        if (status == STATUS_OK) {
            sha256_update(&sum, piece, count);
        }
    }
    free(piece);
    sha256_final(&sum, digest);
    sha256_to_hex(digest, found);
    if (status == STATUS_OK && strcmp(found, hash) != 0) {
        status = artifacts_damaged(error, reader->path, "its contents are not those of its name");
    }
    return status;
}

enum status artifact_reader_open(const struct artifacts *artifacts, const char *hash,
                                 struct artifact_reader **out, size_t *bytes, struct error *error)
{
    enum status status = artifacts_check_hash(hash, error);
    if (status != STATUS_OK) {
        return status;
    }
    struct artifact_reader *reader = malloc(sizeof *reader);
    ZSTD_DCtx *expander = ZSTD_createDCtx();
    if (reader == NULL || expander == NULL) {
        ZSTD_freeDCtx(expander);
        free(reader);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for an artifact");
    }
    reader->expander = expander;
    artifacts_file_path(artifacts, hash, reader->path);
    reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0) {
        status =
            errno == ENOENT || errno == ENOTDIR
                ? error_set(error, STATUS_NOT_FOUND, "%s: there is no such artifact", reader->path)
                : artifacts_io_error(error, "open the artifact", reader->path);
    }
    if (status == STATUS_OK) {
        status = read_size(reader, error);
    }
    if (status == STATUS_OK) {
        status = rewind_reader(reader, error);
    }
    if (status == STATUS_OK) {
        status = verify(reader, hash, error);
    }
    if (status == STATUS_OK) {
        status = rewind_reader(reader, error);
    }
    if (status != STATUS_OK) {
        artifact_reader_close(reader);
        return status;
    }
    *out = reader;
    *bytes = reader->bytes;
    return STATUS_OK;
}
