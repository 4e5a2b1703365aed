/*
 * Artifacts piece by piece. See artifacts.h.
 *
 * Memory per transfer is what zstd needs for its window (a few MiB at this level, at most 8 MiB for
 * a frame that somebody else made) and two blocks, whatever the artifact's size. The file is the
 * same kind as that of artifacts_put: one zstd frame that says its size.
 */
#include "store/artifacts/artifacts_internal.h"
#include "store/artifacts/zstd_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { BLOCK_BYTES = 128 << 10 };

/* ---- writing ---- */

struct artifact_writer {
    struct artifacts *artifacts;
    char temporary[ARTIFACT_TEMPORARY_BYTES];
    int fd;
    struct sha256 hash;
    size_t announced_bytes;
    size_t received_bytes;
    ZSTD_CCtx *compressor; /* NULL: the input is packed, and the following counts */
    ZSTD_DCtx *expander;
    uint8_t head[ZSTD_FRAME_HEAD_BYTES]; /* held back until the frame's size is known */
    size_t head_bytes;
    bool sized;            /* the head has been read */
    bool ended;            /* so has the frame */
    size_t content_bytes;  /* that the frame says */
    size_t expanded_bytes; /* so far */
    uint8_t block[BLOCK_BYTES];
};

static void free_writer(struct artifact_writer *writer)
{
    if (writer != NULL) {
        ZSTD_freeCCtx(writer->compressor);
        ZSTD_freeDCtx(writer->expander);
        free(writer);
    }
}

static struct artifact_writer *create_writer(size_t bytes, bool packed)
{
    struct artifact_writer *writer = malloc(sizeof *writer);
    if (writer == NULL) {
        return NULL;
    }
    memset(writer, 0, offsetof(struct artifact_writer, block));
    bool good;
    if (packed) {
        writer->expander = zstd_frame_expander();
        good = writer->expander != NULL;
    } else {
        writer->compressor = ZSTD_createCCtx();
        good = writer->compressor != NULL &&
               !ZSTD_isError(ZSTD_CCtx_setParameter(writer->compressor, ZSTD_c_compressionLevel,
                                                    ZSTD_FRAME_COMPRESSION_LEVEL)) &&
               !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(writer->compressor, bytes));
    }
    if (!good) {
        free_writer(writer);
        return NULL;
    }
    return writer;
}

enum status artifact_writer_open(struct artifacts *artifacts, size_t bytes, bool packed,
                                 struct artifact_writer **out, struct error *error)
{
    if (bytes > LIMIT_ARTIFACT_BYTES) {
        return error_set(error, STATUS_LIMIT, "an artifact has at most %d bytes, this one has %zu",
                         LIMIT_ARTIFACT_BYTES, bytes);
    }
    struct artifact_writer *writer = create_writer(bytes, packed);
    TRY(memory_check(writer, error, "out of memory for an artifact of %zu bytes", bytes));
    writer->artifacts = artifacts;
    writer->announced_bytes = bytes;
    sha256_init(&writer->hash);
    enum status status =
        artifacts_create_unfinished(artifacts, &writer->fd, writer->temporary, error);
    if (status != STATUS_OK) {
        free_writer(writer);
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
        TRY(artifacts_write_all(writer->fd, writer->temporary, writer->block, out.pos, error));
        if (mode == ZSTD_e_end ? left == 0 : in.pos == in.size) {
            return STATUS_OK;
        }
    }
}

/* Unpacks a piece of the frame into the hash. */
static enum status expand(struct artifact_writer *writer, const void *data, size_t bytes,
                          struct error *error)
{
    ZSTD_inBuffer in = {.src = data, .size = bytes, .pos = 0};
    bool full = false; /* the block was: there may be more to come out of what went in */
    while (!writer->ended && (in.pos < in.size || full)) {
        ZSTD_outBuffer out = {.dst = writer->block, .size = sizeof writer->block, .pos = 0};
        size_t left = ZSTD_decompressStream(writer->expander, &out, &in);
        if (ZSTD_isError(left) && ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation) {
            return error_set(error, STATUS_NO_MEMORY, "out of memory for an artifact");
        }
        if (ZSTD_isError(left)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "artifact: expected a zstd frame, found one that does not unpack (%s)",
                             ZSTD_getErrorName(left));
        }
        if (out.pos > writer->content_bytes - writer->expanded_bytes) {
            return error_set(
                error, STATUS_BAD_INPUT,
                "artifact: expected the %zu bytes that the zstd frame says, found more",
                writer->content_bytes);
        }
        writer->expanded_bytes += out.pos;
        sha256_update(&writer->hash, writer->block, out.pos);
        full = out.pos == out.size;
        writer->ended = left == 0;
    }
    if (in.pos < in.size) {
        return error_set(error, STATUS_BAD_INPUT,
                         "artifact: expected one zstd frame, found more behind its end");
    }
    return STATUS_OK;
}

/* The frame's head is complete, or all that there is. */
static enum status read_head(struct artifact_writer *writer, struct error *error)
{
    TRY(zstd_frame_size("artifact", writer->head, writer->head_bytes, writer->announced_bytes,
                        LIMIT_ARTIFACT_BYTES, &writer->content_bytes, error));
    writer->sized = true;
    return expand(writer, writer->head, writer->head_bytes, error);
}

static enum status take_packed(struct artifact_writer *writer, const uint8_t *data, size_t bytes,
                               struct error *error)
{
    enum status status = artifacts_write_all(writer->fd, writer->temporary, data, bytes, error);
    if (status == STATUS_OK && !writer->sized) {
        size_t take = sizeof writer->head - writer->head_bytes;
        take = bytes < take ? bytes : take;
        memcpy(writer->head + writer->head_bytes, data, take);
        writer->head_bytes += take;
        data += take;
        bytes -= take;
        if (writer->head_bytes == sizeof writer->head) {
            status = read_head(writer, error);
        }
    }
    return status == STATUS_OK && bytes > 0 ? expand(writer, data, bytes, error) : status;
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
    if (writer->compressor == NULL) {
        return bytes > 0 ? take_packed(writer, data, bytes, error) : STATUS_OK;
    }
    sha256_update(&writer->hash, data, bytes);
    return compress(writer, data, bytes, ZSTD_e_continue, error);
}

void artifact_writer_abort(struct artifact_writer *writer)
{
    if (writer != NULL) {
        close(writer->fd);
        unlink(writer->temporary); /* a failure to do so is cleaned up at the next open */
        free_writer(writer);
    }
}

/* Everything has come; the frame that it makes, or made, is complete. */
static enum status end_frame(struct artifact_writer *writer, struct error *error)
{
    if (writer->compressor != NULL) {
        return compress(writer, NULL, 0, ZSTD_e_end, error);
    }
    enum status status = writer->sized ? STATUS_OK : read_head(writer, error);
    if (status == STATUS_OK && !writer->ended) {
        return error_set(error, STATUS_BAD_INPUT,
                         "artifact: expected a whole zstd frame, found its first %zu bytes",
                         writer->received_bytes);
    }
    return status;
}

enum status artifact_writer_finish(struct artifact_writer *writer, const char *hash,
                                   struct error *error)
{
    uint8_t digest[SHA256_BYTES];
    char found[SHA256_HEX_BYTES];
    enum status status = STATUS_OK;
    if (writer->received_bytes != writer->announced_bytes) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "artifact: expected the %zu bytes announced, found %zu",
                           writer->announced_bytes, writer->received_bytes);
    } else {
        status = end_frame(writer, error);
    }
    if (status == STATUS_OK) {
        sha256_final(&writer->hash, digest);
        sha256_to_hex(digest, found);
        if (strcmp(found, hash) != 0) {
            status =
                error_set(error, STATUS_BAD_INPUT,
                          "artifact: expected bytes with the hash in the path, found %s", found);
        }
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
    bool packed;        /* gives the file as it is */
    size_t bytes;       /* of the artifact, as the frame says, or of the file */
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

/* As much of the block as fits; an empty one only at the file's end. */
static void copy_block(struct artifact_reader *reader, ZSTD_outBuffer *out)
{
    size_t bytes = reader->in.size - reader->in.pos;
    bytes = bytes < out->size - out->pos ? bytes : out->size - out->pos;
    memcpy((uint8_t *)out->dst + out->pos, (const uint8_t *)reader->in.src + reader->in.pos, bytes);
    reader->in.pos += bytes;
    out->pos += bytes;
}

enum status artifact_reader_read(struct artifact_reader *reader, void *out, size_t capacity,
                                 size_t *count, struct error *error)
{
    size_t left = reader->bytes - reader->given_bytes;
    ZSTD_outBuffer buffer = {.dst = out, .size = capacity < left ? capacity : left, .pos = 0};
    while (buffer.pos < buffer.size) {
        bool end = false;
        if (reader->in.pos == reader->in.size) {
            TRY(fill(reader, &end, error));
        }
        size_t result = 0;
        if (reader->packed) {
            copy_block(reader, &buffer);
        } else {
            result = ZSTD_decompressStream(reader->expander, &buffer, &reader->in);
        }
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
    uint8_t header[ZSTD_FRAME_HEAD_BYTES];
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
    TRY(memory_check(piece, error, "%s: out of memory", reader->path));
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

/* From here on the reader gives the file as it is, if that is shorter. */
static enum status give_packed(struct artifact_reader *reader, struct error *error)
{
    struct stat info;
    if (fstat(reader->fd, &info) != 0) {
        return artifacts_io_error(error, "look at the artifact", reader->path);
    }
    reader->packed = (size_t)info.st_size < reader->bytes;
    if (reader->packed) {
        reader->bytes = (size_t)info.st_size;
    }
    return STATUS_OK;
}

static struct artifact_reader *create_reader(void)
{
    struct artifact_reader *reader = malloc(sizeof *reader);
    ZSTD_DCtx *expander = ZSTD_createDCtx();
    if (reader == NULL || expander == NULL) {
        ZSTD_freeDCtx(expander);
        free(reader);
        return NULL;
    }
    reader->expander = expander;
    reader->packed = false;
    reader->fd = -1;
    return reader;
}

enum status artifacts_verify(int fd, const char *path, const char *hash, struct error *error)
{
    struct artifact_reader *reader = create_reader();
    TRY(memory_check(reader, error, "out of memory for an artifact"));
    snprintf(reader->path, sizeof reader->path, "%s", path);
    reader->fd = fd;
    enum status status = read_size(reader, error);
    THEN(status, rewind_reader(reader, error));
    THEN(status, verify(reader, hash, error));
    reader->fd = -1; /* the caller's */
    artifact_reader_close(reader);
    return status;
}

enum status artifact_reader_open(const struct artifacts *artifacts, const char *hash, bool *packed,
                                 struct artifact_reader **out, size_t *bytes, struct error *error)
{
    TRY(artifacts_check_hash(hash, error));
    struct artifact_reader *reader = create_reader();
    TRY(memory_check(reader, error, "out of memory for an artifact"));
    artifacts_file_path(artifacts, hash, reader->path);
    enum status status = artifacts_file_open(artifacts, reader->path, &reader->fd, error);
    THEN(status, read_size(reader, error));
    THEN(status, rewind_reader(reader, error));
    THEN(status, verify(reader, hash, error));
    THEN(status, rewind_reader(reader, error));
    if (status == STATUS_OK && *packed) {
        status = give_packed(reader, error);
    }
    if (status != STATUS_OK) {
        artifact_reader_close(reader);
        return status;
    }
    *out = reader;
    *packed = reader->packed;
    *bytes = reader->bytes;
    return STATUS_OK;
}
