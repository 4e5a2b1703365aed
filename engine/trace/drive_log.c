/*
 * Entries of a drive's log. See drive_log.h.
 *
 * A file is the magic, then entries: struct entry_head and its payload. Numbers are those of the
 * machine; a log is of one revision, and of machines of one byte order, which the magic tells.
 */
#include "engine/trace/drive_log.h"

#include "base/check.h"
#include "base/file.h"
#include "engine/sensors/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

static const uint64_t magic = 0x32676f6c2d777300; /* "\0sw-log2" */

enum { KIND_HEAD = 0, PACK_LEVEL = 1 };

struct entry_head {
    uint32_t kind;
    uint32_t bytes;               /* of the payload */
    uint8_t digest[SHA256_BYTES]; /* of the one before, kind, bytes and payload */
};

struct tick_entry {
    struct action action;
    uint64_t observation_digest;
    uint32_t skipped;
    uint32_t stats_bytes; /* of the frame statistics behind this */
};

struct back_entry {
    uint32_t target;
    uint32_t keep;
};

/* Frames are packed each by itself: their sizes stand in front. */
struct frames_entry {
    uint32_t count;
    uint32_t bytes[DRIVE_LOG_FRAMES_MAX];
};

struct drive_log {
    int fd;
    size_t bytes; /* of the file */
    uint8_t digest[SHA256_BYTES];
    char *path;
    char *data; /* what was there at opening; NULL: nothing */
    size_t data_bytes;
    size_t at;        /* of the next entry to be read */
    uint8_t *scratch; /* [SCRATCH_BYTES], for frames that are packed */
};

#define FRAME_BOUND ZSTD_COMPRESSBOUND((size_t)FRAME_BYTES)
#define SCRATCH_BYTES (sizeof(struct frames_entry) + DRIVE_LOG_FRAMES_MAX * FRAME_BOUND)
#define STATS_BYTES_MIN offsetof(struct frame_stats, agents)

/* ---- writing ---- */

static void chain(uint8_t digest[SHA256_BYTES], const struct entry_head *head, const void *payload)
{
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, digest, SHA256_BYTES);
    sha256_update(&hash, &head->kind, sizeof head->kind);
    sha256_update(&hash, &head->bytes, sizeof head->bytes);
    sha256_update(&hash, payload, head->bytes);
    sha256_final(&hash, digest);
}

static enum status append(struct drive_log *log, uint32_t kind, const void *payload, size_t bytes,
                          struct error *error)
{
    struct entry_head head = {.kind = kind, .bytes = (uint32_t)bytes};
    uint8_t digest[SHA256_BYTES];
    if (log->bytes + sizeof head + bytes > DRIVE_LOG_BYTES_MAX) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %d bytes", log->path,
                         DRIVE_LOG_BYTES_MAX);
    }
    memcpy(digest, log->digest, sizeof digest);
    chain(digest, &head, payload);
    memcpy(head.digest, digest, sizeof digest);
    if (!file_write_at(log->fd, &head, sizeof head, (off_t)log->bytes) ||
        !file_write_at(log->fd, payload, bytes, (off_t)(log->bytes + sizeof head))) {
        return error_set(error, STATUS_IO, "%s: cannot be written: %s", log->path, strerror(errno));
    }
    memcpy(log->digest, digest, sizeof digest);
    log->bytes += sizeof head + bytes;
    return STATUS_OK;
}

enum status drive_log_tick(struct drive_log *log, struct action action, uint32_t skipped,
                           uint64_t observation_digest, const struct frame_stats *frame_stats,
                           struct error *error)
{
    uint8_t payload[sizeof(struct tick_entry) + sizeof *frame_stats];
    struct tick_entry entry = {
        .action = action, .observation_digest = observation_digest, .skipped = skipped};
    if (frame_stats != NULL) {
        CHECK(frame_stats->agent_count <= AGENT_GATES_MAX);
        entry.stats_bytes =
            (uint32_t)(STATS_BYTES_MIN + frame_stats->agent_count * sizeof frame_stats->agents[0]);
        memcpy(payload + sizeof entry, frame_stats, entry.stats_bytes);
    }
    memcpy(payload, &entry, sizeof entry);
    return append(log, DRIVE_LOG_TICK, payload, sizeof entry + entry.stats_bytes, error);
}

enum status drive_log_frames(struct drive_log *log, const uint8_t *const *frames, uint32_t count,
                             struct error *error)
{
    struct frames_entry entry = {.count = count};
    size_t bytes = sizeof entry;
    CHECK(count <= DRIVE_LOG_FRAMES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        size_t packed =
            ZSTD_compress(log->scratch + bytes, FRAME_BOUND, frames[i], FRAME_BYTES, PACK_LEVEL);
        CHECK(!ZSTD_isError(packed)); /* there is room for the worst */
        entry.bytes[i] = (uint32_t)packed;
        bytes += packed;
    }
    memcpy(log->scratch, &entry, sizeof entry);
    return append(log, DRIVE_LOG_FRAMES, log->scratch, bytes, error);
}

enum status drive_log_back(struct drive_log *log, uint32_t target, bool keep, struct error *error)
{
    const struct back_entry entry = {target, keep};
    return append(log, DRIVE_LOG_BACK, &entry, sizeof entry, error);
}

/* ---- opening ---- */

static void close_file(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

/* Takes the descriptor (-1: none), which is closed where this fails. */
static enum status make(const char *path, int fd, struct drive_log **out, struct error *error)
{
    struct drive_log *log = calloc(1, sizeof *log);
    char *copy = strdup(path);
    uint8_t *scratch = malloc(SCRATCH_BYTES);
    if (log == NULL || copy == NULL || scratch == NULL) {
        free(log);
        free(copy);
        free(scratch);
        close_file(fd);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory for a drive's log", path);
    }
    log->fd = fd;
    log->path = copy;
    log->scratch = scratch;
    *out = log;
    return STATUS_OK;
}

/* Takes a log's file for this one alone. Another process may have removed it since it was opened,
 * to make room: then it has no name any more, and what is written would be lost. */
static enum status claim(const struct drive_log *log, struct error *error)
{
    struct stat status;
    bool locked = flock(log->fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != ESTALE) {
        return errno == EWOULDBLOCK ? error_set(error, STATUS_BUSY,
                                                "%s: somebody goes on with this drive", log->path)
                                    : error_set(error, STATUS_IO, "%s: cannot be locked: %s",
                                                log->path, strerror(errno));
    }
    if (!locked || fstat(log->fd, &status) != 0 || status.st_nlink == 0) {
        return error_set(error, STATUS_NOT_FOUND, "%s: was removed as it was opened", log->path);
    }
    return STATUS_OK;
}

enum status drive_log_create(const char *path, const struct drive_log_head *head,
                             struct drive_log **out, struct error *error)
{
    bool in_memory = path == NULL;
    int fd = !in_memory ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                        : memfd_create("drive", MFD_CLOEXEC);
    path = in_memory ? "drive" : path;
    if (fd < 0) {
        return error_set(error, STATUS_IO, "%s: cannot be made: %s", path, strerror(errno));
    }
    struct drive_log *log = NULL;
    TRY(make(path, fd, &log, error));
    enum status status = in_memory ? STATUS_OK : claim(log, error);
    if (status == STATUS_OK && !file_write_at(fd, &magic, sizeof magic, 0)) {
        status = error_set(error, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    log->bytes = sizeof magic;
    THEN(status, append(log, KIND_HEAD, head, sizeof *head, error));
    if (status != STATUS_OK) {
        (in_memory ? drive_log_close : drive_log_remove)(log);
        return status;
    }
    *out = log;
    return STATUS_OK;
}

/* The entry at log->at, where a whole one is. */
static bool peek(const struct drive_log *log, struct entry_head *head, const char **payload)
{
    size_t left = log->data_bytes - log->at;
    if (left < sizeof *head) {
        return false;
    }
    memcpy(head, log->data + log->at, sizeof *head);
    *payload = log->data + log->at + sizeof *head;
    return head->bytes <= left - sizeof *head;
}

static bool is_tick(const char *payload, size_t bytes)
{
    struct tick_entry entry;
    if (bytes < sizeof entry) {
        return false;
    }
    memcpy(&entry, payload, sizeof entry);
    size_t agents = entry.stats_bytes - STATS_BYTES_MIN;
    if (bytes != sizeof entry + entry.stats_bytes ||
        (entry.stats_bytes != 0 &&
         (entry.stats_bytes < STATS_BYTES_MIN || agents % sizeof(struct agent_stats) != 0 ||
          agents / sizeof(struct agent_stats) > AGENT_GATES_MAX))) {
        return false;
    }
    bool good = true;
    for (size_t at = sizeof entry + STATS_BYTES_MIN; at < bytes; at += sizeof(struct agent_stats)) {
        good = good && (payload[at + offsetof(struct agent_stats, vru)] & ~1) == 0; /* a bool */
    }
    return good;
}

static bool is_frames(const char *payload, size_t bytes)
{
    struct frames_entry entry;
    if (bytes < sizeof entry) {
        return false;
    }
    memcpy(&entry, payload, sizeof entry);
    size_t all = sizeof entry;
    for (uint32_t i = 0; entry.count <= DRIVE_LOG_FRAMES_MAX && i < entry.count; i++) {
        all += entry.bytes[i];
    }
    return entry.count >= 1 && entry.count <= DRIVE_LOG_FRAMES_MAX && all == bytes;
}

static bool is_whole(const struct entry_head *head, const char *payload)
{
    switch (head->kind) {
    case KIND_HEAD:
        return head->bytes == sizeof(struct drive_log_head);
    case DRIVE_LOG_TICK:
        return is_tick(payload, head->bytes);
    case DRIVE_LOG_FRAMES:
        return is_frames(payload, head->bytes);
    case DRIVE_LOG_BACK:
        return head->bytes == sizeof(struct back_entry);
    default:
        return false;
    }
}

/* Reads all entries: what is behind the last whole one is cut off. */
static enum status check_entries(struct drive_log *log, struct error *error)
{
    struct entry_head head;
    const char *payload;
    log->at = sizeof magic;
    while (peek(log, &head, &payload)) {
        bool first = log->at == sizeof magic;
        uint8_t digest[SHA256_BYTES];
        memcpy(digest, log->digest, sizeof digest);
        chain(digest, &head, payload);
        if (memcmp(digest, head.digest, sizeof digest) != 0 || first != (head.kind == KIND_HEAD) ||
            !is_whole(&head, payload)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: byte %zu: expected an entry of a drive's log with its digest, "
                             "found another",
                             log->path, log->at);
        }
        memcpy(log->digest, digest, sizeof digest);
        log->at += sizeof head + head.bytes;
    }
    if (log->at == sizeof magic) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: byte %zu: expected a drive's log, found its "
                         "end",
                         log->path, log->data_bytes);
    }
    log->bytes = log->data_bytes = log->at;
    return log->fd < 0 || ftruncate(log->fd, (off_t)log->bytes) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: cannot be cut to its last whole entry: %s",
                           log->path, strerror(errno));
}

static void end_texts(struct drive_log_head *head)
{
    head->revision[sizeof head->revision - 1] = '\0';
    head->world[sizeof head->world - 1] = '\0';
    head->scenario[sizeof head->scenario - 1] = '\0';
    head->scenario_hash[sizeof head->scenario_hash - 1] = '\0';
    head->model_hash[sizeof head->model_hash - 1] = '\0';
    head->sampler[sizeof head->sampler - 1] = '\0';
    head->bounds_hash[sizeof head->bounds_hash - 1] = '\0';
}

/* Checks what was read, and takes the head off. The log is closed where that fails. */
static enum status begin_reading(struct drive_log *log, struct drive_log_head *head,
                                 struct drive_log **out, struct error *error)
{
    struct entry_head first;
    const char *payload;
    uint64_t found = 0;
    enum status status = STATUS_OK;
    if (log->data_bytes >= sizeof found) {
        memcpy(&found, log->data, sizeof found);
    }
    if (found != magic) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "%s: byte 0: expected a drive's log of version 2, found another file",
                           log->path);
    }
    THEN(status, check_entries(log, error));
    if (status != STATUS_OK) {
        drive_log_close(log);
        return status;
    }
    log->at = sizeof magic;
    CHECK(peek(log, &first, &payload));
    memcpy(head, payload, sizeof *head);
    end_texts(head);
    log->at += sizeof first + first.bytes;
    *out = log;
    return STATUS_OK;
}

enum status drive_log_open(const char *path, struct drive_log_head *head, struct drive_log **out,
                           struct error *error)
{
    struct drive_log *log = NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return error_set(error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: cannot be opened: %s", path, strerror(errno));
    }
    TRY(make(path, fd, &log, error));
    enum status status = claim(log, error);
    THEN(status, file_read(path, DRIVE_LOG_BYTES_MAX, &log->data, &log->data_bytes, error));
    if (status != STATUS_OK) {
        drive_log_close(log);
        return status;
    }
    return begin_reading(log, head, out, error);
}

enum status drive_log_read(const char *name, const void *data, size_t bytes,
                           struct drive_log_head *head, struct drive_log **out, struct error *error)
{
    struct drive_log *log = NULL;
    TRY(make(name, -1, &log, error));
    log->data = malloc(bytes + 1);
    if (log->data == NULL) {
        drive_log_close(log);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory for a drive's log", name);
    }
    memcpy(log->data, data, bytes);
    log->data_bytes = bytes;
    return begin_reading(log, head, out, error);
}

enum status drive_log_contents(const struct drive_log *log, char **data, size_t *bytes,
                               struct error *error)
{
    char *all = malloc(log->bytes);
    TRY(memory_check(all, error, "drive: out of memory for its log"));
    for (size_t at = 0; at < log->bytes;) {
        ssize_t count = pread(log->fd, all + at, log->bytes - at, (off_t)at);
        if (count <= 0) {
            free(all);
            return error_set(error, STATUS_IO, "%s: byte %zu: cannot be read: %s", log->path, at,
                             count == 0 ? "its end" : strerror(errno));
        }
        at += (size_t)count;
    }
    *data = all;
    *bytes = log->bytes;
    return STATUS_OK;
}

void drive_log_close(struct drive_log *log)
{
    if (log != NULL) {
        close_file(log->fd);
        free(log->path);
        free(log->data);
        free(log->scratch);
        free(log);
    }
}

void drive_log_remove(struct drive_log *log)
{
    if (log != NULL) {
        unlink(log->path);
        drive_log_close(log);
    }
}

/* ---- reading ---- */

bool drive_log_next(struct drive_log *log, struct drive_log_entry *out)
{
    struct entry_head head;
    struct tick_entry tick;
    struct frames_entry frames;
    struct back_entry back;
    const char *payload;
    if (log->data == NULL || !peek(log, &head, &payload)) {
        return false;
    }
    log->at += sizeof head + head.bytes;
    *out = (struct drive_log_entry){.kind = (enum drive_log_kind)head.kind};
    if (head.kind == DRIVE_LOG_TICK) {
        memcpy(&tick, payload, sizeof tick);
        out->action = tick.action;
        out->skipped = tick.skipped;
        out->observation_digest = tick.observation_digest;
        memcpy(&out->frame_stats, payload + sizeof tick, tick.stats_bytes);
        out->frame_stats.agent_count =
            tick.stats_bytes > 0
                ? (uint32_t)((tick.stats_bytes - STATS_BYTES_MIN) / sizeof(struct agent_stats))
                : 0;
    } else if (head.kind == DRIVE_LOG_FRAMES) {
        memcpy(&frames, payload, sizeof frames);
        out->frame_count = frames.count;
        out->packed = (const uint8_t *)payload;
        out->packed_bytes = head.bytes;
    } else {
        memcpy(&back, payload, sizeof back);
        out->target = back.target;
        out->keep = back.keep != 0;
    }
    return true;
}

enum status drive_log_frame(struct drive_log *log, const struct drive_log_entry *entry,
                            uint32_t back, uint8_t *frame, struct error *error)
{
    struct frames_entry frames;
    size_t at = sizeof frames;
    CHECK(back < entry->frame_count);
    memcpy(&frames, entry->packed, sizeof frames);
    for (uint32_t i = 0; i < back; i++) {
        at += frames.bytes[i];
    }
    size_t bytes = ZSTD_decompress(frame, FRAME_BYTES, entry->packed + at, frames.bytes[back]);
    return bytes == FRAME_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "%s: expected a frame of %d bytes, packed, found another", log->path,
                           FRAME_BYTES);
}
