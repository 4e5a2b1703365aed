/*
 * Records of one fixed size in a sparse file: what compression saves is never written, and a
 * dropped record gives its blocks back. See spill.h.
 *
 * The owner's thread writes, reads and drops; one other may peek. They share the table of records,
 * under the mutex, and the file. Each has a scratch of its own. A record that is dropped, even
 * written again, while it is peeked at gives something that nobody uses.
 */
#include "worker/run/spill.h"

#include "base/array.h"
#include "base/file.h"
#include "schemas/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

enum { SPILL_LEVEL = 1, SPILL_BLOCK = 4096, SPILL_RECORDS_MAX = 1 << 24 };

struct spill_record {
    uint32_t packed_bytes; /* 0: free */
    uint32_t plain_bytes;
    uint32_t next_free; /* index + 1, 0: end */
};

/* Buffers to unpack a record, one for each thread. */
struct unpacker {
    uint8_t *packed; /* [record_bytes] */
    ZSTD_DCtx *context;
};

struct spill {
    struct spill_ops ops;
    char directory[LIMIT_PATH_BYTES];
    uint64_t bytes_max;
    int fd; /* -1 until the first write */
    size_t record_bytes;
    ZSTD_CCtx *packer;
    struct unpacker owner; /* its buffer is the packer's too */
    struct unpacker peeker;
    pthread_mutex_t mutex; /* of the records; only the owner writes them */
    struct spill_record *records;
    uint32_t record_count;
    uint32_t free_head; /* index + 1, 0: none */
    struct spill_stats stats;
};

static void unpacker_finish(struct unpacker *unpacker)
{
    free(unpacker->packed);
    ZSTD_freeDCtx(unpacker->context);
    *unpacker = (struct unpacker){0};
}

static bool unpacker_init(struct unpacker *unpacker, size_t bytes)
{
    unpacker->packed = malloc(bytes);
    unpacker->context = ZSTD_createDCtx();
    return unpacker->packed != NULL && unpacker->context != NULL;
}

static void close_file(struct spill *spill)
{
    if (spill->fd >= 0) {
        close(spill->fd);
        spill->fd = -1;
    }
    unpacker_finish(&spill->owner);
    unpacker_finish(&spill->peeker);
    ZSTD_freeCCtx(spill->packer);
    spill->packer = NULL;
}

/* The size of records is that of the first page's worst case: pages of a world are all alike. */
static bool open_file(struct spill *spill, size_t bytes)
{
    char path[LIMIT_PATH_BYTES + 32];
    size_t bound = ZSTD_compressBound(bytes);
    spill->record_bytes = (bound + SPILL_BLOCK - 1) / SPILL_BLOCK * SPILL_BLOCK;
    spill->packer = ZSTD_createCCtx();
    if (spill->packer != NULL && unpacker_init(&spill->owner, spill->record_bytes) &&
        unpacker_init(&spill->peeker, spill->record_bytes)) {
        snprintf(path, sizeof path, "%s/swerve-spill-XXXXXX", spill->directory);
        spill->fd = mkostemp(path, O_CLOEXEC);
    }
    if (spill->fd < 0) {
        close_file(spill);
        return false;
    }
    unlink(path);
    return true;
}

static bool read_at(int fd, uint8_t *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t got = pread(fd, data, bytes, at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        data += got;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Index + 1 of a free record, 0: none. */
static uint32_t take_record(struct spill *spill)
{
    if (spill->free_head != 0) {
        uint32_t handle = spill->free_head;
        spill->free_head = spill->records[handle - 1].next_free;
        return handle;
    }
    if (spill->record_count == SPILL_RECORDS_MAX) {
        return 0;
    }
    pthread_mutex_lock(&spill->mutex);
    uint32_t handle = 0;
    if (array_room(&spill->records, spill->record_count, sizeof *spill->records, NULL) ==
        STATUS_OK) {
        spill->records[spill->record_count] = (struct spill_record){0};
        handle = ++spill->record_count;
    }
    pthread_mutex_unlock(&spill->mutex);
    return handle;
}

static off_t place(const struct spill *spill, uint64_t handle)
{
    return (off_t)((handle - 1) * spill->record_bytes);
}

static void give_back(struct spill *spill, uint64_t handle)
{
    /* Without support for holes the blocks are kept for the next record. */
    fallocate(spill->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place(spill, handle),
              (off_t)spill->record_bytes);
    pthread_mutex_lock(&spill->mutex);
    spill->records[handle - 1] = (struct spill_record){.next_free = spill->free_head};
    pthread_mutex_unlock(&spill->mutex);
    spill->free_head = (uint32_t)handle;
}

static uint64_t spill_write(void *context, const void *data, size_t bytes)
{
    struct spill *spill = context;
    uint32_t handle = 0;
    if (bytes == 0 || bytes > UINT32_MAX || (spill->fd < 0 && !open_file(spill, bytes))) {
        spill->stats.refused++;
        return 0;
    }
    size_t packed = ZSTD_compressCCtx(spill->packer, spill->owner.packed, spill->record_bytes, data,
                                      bytes, SPILL_LEVEL);
    if (!ZSTD_isError(packed) && spill->stats.stored_bytes + packed <= spill->bytes_max) {
        handle = take_record(spill);
    }
    if (handle == 0) {
        spill->stats.refused++;
        return 0;
    }
    if (!file_write_at(spill->fd, spill->owner.packed, packed, place(spill, handle))) {
        give_back(spill, handle);
        spill->stats.refused++;
        return 0;
    }
    pthread_mutex_lock(&spill->mutex);
    spill->records[handle - 1] =
        (struct spill_record){.packed_bytes = (uint32_t)packed, .plain_bytes = (uint32_t)bytes};
    pthread_mutex_unlock(&spill->mutex);
    spill->stats.records++;
    spill->stats.stored_bytes += packed;
    return handle;
}

static const struct spill_record *held(const struct spill *spill, uint64_t handle)
{
    if (handle == 0 || handle > spill->record_count ||
        spill->records[handle - 1].packed_bytes == 0) {
        return NULL;
    }
    return &spill->records[handle - 1];
}

static void spill_drop(void *context, uint64_t handle)
{
    struct spill *spill = context;
    const struct spill_record *record = held(spill, handle);
    if (record != NULL) {
        spill->stats.records--;
        spill->stats.stored_bytes -= record->packed_bytes;
        give_back(spill, handle);
    }
}

static bool unpack(const struct spill *spill, uint64_t handle, const struct spill_record *record,
                   struct unpacker *unpacker, void *data, size_t bytes)
{
    return record->plain_bytes == bytes &&
           read_at(spill->fd, unpacker->packed, record->packed_bytes, place(spill, handle)) &&
           ZSTD_decompressDCtx(unpacker->context, data, bytes, unpacker->packed,
                               record->packed_bytes) == bytes;
}

static bool spill_read(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct spill *spill = context;
    const struct spill_record *record = held(spill, handle);
    if (record == NULL) {
        return false;
    }
    bool good = unpack(spill, handle, record, &spill->owner, data, bytes);
    spill_drop(spill, handle);
    return good;
}

static bool spill_peek(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct spill *spill = context;
    pthread_mutex_lock(&spill->mutex);
    const struct spill_record *found = held(spill, handle);
    const struct spill_record record = found != NULL ? *found : (struct spill_record){0};
    pthread_mutex_unlock(&spill->mutex);
    return found != NULL && unpack(spill, handle, &record, &spill->peeker, data, bytes);
}

enum status spill_create(const char *directory, uint64_t bytes_max, struct spill **out,
                         struct error *error)
{
    const char *environment = getenv("TMPDIR");
    struct spill *spill = calloc(1, sizeof *spill);
    TRY(memory_check(spill, error, "spill: out of memory"));
    if (directory == NULL) {
        directory = environment != NULL && environment[0] != '\0' ? environment : "/tmp";
    }
    if (strlen(directory) >= sizeof spill->directory) {
        free(spill);
        return error_set(error, STATUS_LIMIT, "spill: the directory's path is too long");
    }
    snprintf(spill->directory, sizeof spill->directory, "%s", directory);
    spill->bytes_max = bytes_max;
    spill->fd = -1;
    pthread_mutex_init(&spill->mutex, NULL);
    spill->ops = (struct spill_ops){
        .context = spill,
        .write = spill_write,
        .read = spill_read,
        .drop = spill_drop,
        .peek = spill_peek,
    };
    *out = spill;
    return STATUS_OK;
}

void spill_destroy(struct spill *spill)
{
    if (spill == NULL) {
        return;
    }
    close_file(spill);
    pthread_mutex_destroy(&spill->mutex);
    free(spill->records);
    free(spill);
}

const struct spill_ops *spill_ops_of(struct spill *spill)
{
    return &spill->ops;
}

struct spill_stats spill_stats(const struct spill *spill)
{
    return spill->stats;
}
