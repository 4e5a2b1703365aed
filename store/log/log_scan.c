/*
 * Reading a write-ahead log frame by frame. See log_scan.h.
 *
 * A frame's checksum continues that of the frame before it, the first one's that of the header. So
 * a frame behind a bad one can still be verified against its predecessor's stored checksum, and a
 * log whose header is damaged against either of the two checksums that the header gives.
 */
#include "store/log/log_scan.h"

#include "schemas/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 32,
    FRAME_BYTES = 24, /* in front of each page */
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 65536,
    MAGIC = 0x377f0682, /* the lowest bit: checksums of big-endian words */
    VERSION = 3007000,
    SALT_BITS_MAX = 2, /* salts that differ in so few bits are the same ones, damaged */
    LOOK_FRAMES = 4,   /* at the beginning, to find out how a log without its header is laid out */
};

struct checksum {
    uint32_t a;
    uint32_t b;
};

struct frame {
    uint32_t page;
    uint32_t commit; /* pages of the database after it; 0: not the last of its transaction */
    uint32_t salts[2];
    struct checksum stored;
    bool chained; /* its checksum continues the stored one of the frame before it */
};

struct log {
    int fd;
    int database_fd;
    const char *path;
    uint8_t header[HEADER_BYTES];
    uint32_t page_bytes;
    bool big_endian;
    bool header_good;
    uint32_t salts[2]; /* of this generation */
    struct checksum seed;
    int64_t slots; /* whole frames that fit into the file */
    uint8_t *buffer;
    struct frame *frames; /* slots */
};

/* ---- bytes ---- */

static uint32_t word_at(const uint8_t *bytes, bool big_endian)
{
    return big_endian ? (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
                            (uint32_t)bytes[2] << 8 | bytes[3]
                      : (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 |
                            (uint32_t)bytes[1] << 8 | bytes[0];
}

static uint32_t stored_word(const uint8_t *bytes)
{
    return word_at(bytes, true);
}

/* bytes: a multiple of 8. */
static struct checksum checksum_of(struct checksum sum, const uint8_t *data, size_t bytes,
                                   bool big_endian)
{
    for (size_t i = 0; i < bytes; i += 8) {
        sum.a += word_at(data + i, big_endian) + sum.b;
        sum.b += word_at(data + i + 4, big_endian) + sum.a;
    }
    return sum;
}

static bool equal(struct checksum left, struct checksum right)
{
    return left.a == right.a && left.b == right.b;
}

static enum status io_error(const struct log *log, struct error *error)
{
    return error_set(error, STATUS_IO, "%s: cannot read the log: %s", log->path, strerror(errno));
}

/* Fewer than `bytes` at the end of the file. -1: errno. */
static ssize_t read_at(int fd, uint8_t *out, size_t bytes, int64_t offset)
{
    size_t used = 0;

    while (used < bytes) {
        ssize_t got = pread(fd, out + used, bytes - used, offset + (int64_t)used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static int64_t offset_of(const struct log *log, int64_t slot)
{
    return HEADER_BYTES + slot * (int64_t)(FRAME_BYTES + log->page_bytes);
}

/* ---- frames ---- */

/* Reads the frame in `slot` (from 0) into the buffer. False: errno. */
static bool load(const struct log *log, int64_t slot, struct frame *out)
{
    size_t bytes = FRAME_BYTES + log->page_bytes;

    if (read_at(log->fd, log->buffer, bytes, offset_of(log, slot)) != (ssize_t)bytes) {
        errno = errno != 0 ? errno : EIO;
        return false;
    }
    *out = (struct frame){.page = stored_word(log->buffer),
                          .commit = stored_word(log->buffer + 4),
                          .salts = {stored_word(log->buffer + 8), stored_word(log->buffer + 12)},
                          .stored = {stored_word(log->buffer + 16), stored_word(log->buffer + 20)}};
    return true;
}

/* The frame in the buffer continues `seed`. */
static bool continues(const struct log *log, const struct frame *frame, struct checksum seed)
{
    struct checksum sum = checksum_of(seed, log->buffer, 8, log->big_endian);
    sum = checksum_of(sum, log->buffer + FRAME_BYTES, log->page_bytes, log->big_endian);
    return frame->page != 0 && equal(sum, frame->stored);
}

static bool same_generation(const struct log *log, const struct frame *frame)
{
    return __builtin_popcount(log->salts[0] ^ frame->salts[0]) +
               __builtin_popcount(log->salts[1] ^ frame->salts[1]) <=
           SALT_BITS_MAX;
}

/* ---- the header ---- */

static bool plausible_page(uint32_t bytes)
{
    return bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX && (bytes & (bytes - 1)) == 0;
}

static void read_header(struct log *log)
{
    const uint8_t *header = log->header;
    struct checksum stored = {stored_word(header + 24), stored_word(header + 28)};

    log->big_endian = (header[3] & 1) != 0;
    log->page_bytes = stored_word(header + 8);
    log->salts[0] = stored_word(header + 16);
    log->salts[1] = stored_word(header + 20);
    log->seed = stored;
    log->header_good =
        (stored_word(header) & ~1u) == MAGIC && stored_word(header + 4) == VERSION &&
        plausible_page(log->page_bytes) &&
        equal(stored, checksum_of((struct checksum){0, 0}, header, 24, log->big_endian));
}

/* Without a good header: whether the log's first frames fit the layout that is set, from one of the
 * checksums of the header or from one another; if so, salts and seed are taken from them. */
static bool fits(struct log *log, int64_t bytes)
{
    struct checksum computed =
        checksum_of((struct checksum){0, 0}, log->header, 24, log->big_endian);
    struct checksum stored = {stored_word(log->header + 24), stored_word(log->header + 28)};
    struct frame frame;
    struct frame before = {.page = 0};

    for (int64_t slot = 0; slot < LOOK_FRAMES && offset_of(log, slot + 1) <= bytes; slot++) {
        if (!load(log, slot, &frame)) {
            return false;
        }
        bool found = slot == 0 ? continues(log, &frame, stored) || continues(log, &frame, computed)
                               : continues(log, &frame, before.stored);
        if (found) {
            memcpy(log->salts, frame.salts, sizeof log->salts);
            log->seed = slot == 0 && continues(log, &frame, computed) ? computed : stored;
            return true;
        }
        before = frame;
    }
    return false;
}

static bool find_layout(struct log *log, int64_t bytes)
{
    if (log->header_good) {
        return true;
    }
    for (uint32_t page = PAGE_BYTES_MIN; page <= PAGE_BYTES_MAX; page *= 2) {
        for (int big_endian = 0; big_endian < 2; big_endian++) {
            log->page_bytes = page;
            log->big_endian = big_endian == 1;
            if (fits(log, bytes)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- counting ---- */

static enum status load_all(struct log *log, struct error *error)
{
    struct checksum before = log->seed;

    for (int64_t slot = 0; slot < log->slots; slot++) {
        struct frame *frame = &log->frames[slot];
        errno = 0;
        if (!load(log, slot, frame)) {
            return io_error(log, error);
        }
        frame->chained = same_generation(log, frame) && continues(log, frame, before);
        before = frame->stored;
    }
    return STATUS_OK;
}

/* As SQLite does. */
static void count_taken(const struct log *log, struct log_scan *out)
{
    int64_t slot = 0;

    while (log->header_good && slot < log->slots && log->frames[slot].chained &&
           memcmp(log->frames[slot].salts, log->salts, sizeof log->salts) == 0) {
        if (log->frames[slot].commit != 0) {
            out->frames = slot + 1;
            out->commits++;
        }
        slot++;
    }
    if (slot < log->slots) {
        out->first_bad = slot + 1;
    }
}

static void count_discarded(const struct log *log, struct log_scan *out, int64_t *last_commit)
{
    for (int64_t slot = out->first_bad - 1; slot >= 0 && slot < log->slots; slot++) {
        if (!same_generation(log, &log->frames[slot])) {
            continue;
        }
        out->discarded++;
        if (log->frames[slot].commit != 0) {
            out->discarded_commits++;
            *last_commit = slot;
        }
    }
    if (out->discarded == 0) {
        out->first_bad = 0; /* what is there is the log's past */
    } else {
        out->bytes = log->header_good ? offset_of(log, out->frames) : 0;
    }
}

/* Commits among the discarded that were acknowledged: behind which another transaction was begun.
 * Its first frame continues the commit's checksum; where that frame is damaged too, a later commit
 * whose frame is whole tells as much. A commit's frame that is itself not whole tells nothing:
 * where the disk was full, a transaction that was given up leaves its last frames, the end of which
 * was never written, behind the shorter one that was written in its place. */
static int64_t count_acknowledged(const struct log *log, int64_t first)
{
    int64_t count = 0;
    bool whole_behind = false;

    for (int64_t slot = log->slots - 1; slot >= first; slot--) {
        const struct frame *frame = &log->frames[slot];
        if (frame->commit == 0 || !same_generation(log, frame)) {
            continue;
        }
        bool continued = slot + 1 < log->slots && log->frames[slot + 1].chained;
        count += whole_behind || continued;
        whole_behind |= frame->chained;
    }
    return count;
}

/* ---- what has been copied already ---- */

struct version {
    uint32_t page;
    int64_t slot;
};

static int by_page_and_slot(const void *left, const void *right)
{
    const struct version *a = left;
    const struct version *b = right;
    return a->page != b->page ? (a->page > b->page) - (a->page < b->page)
                              : (a->slot > b->slot) - (a->slot < b->slot);
}

static bool in_database(const struct log *log, const struct version *version, uint8_t *page)
{
    struct frame frame;
    int64_t offset = (int64_t)(version->page - 1) * log->page_bytes;

    return load(log, version->slot, &frame) &&
           read_at(log->database_fd, page, log->page_bytes, offset) == (ssize_t)log->page_bytes &&
           memcmp(page, log->buffer + FRAME_BYTES, log->page_bytes) == 0;
}

/* *copied: the database holds what the verified frames from `first` to `last` left of each page. */
static enum status look_copied(const struct log *log, int64_t first, int64_t last, bool *copied,
                               struct error *error)
{
    size_t count = 0;
    struct version *versions = calloc((size_t)(last - first + 1), sizeof *versions);
    uint8_t *page = malloc(log->page_bytes);

    if (versions == NULL || page == NULL) {
        free(versions);
        free(page);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", log->path);
    }
    for (int64_t slot = first; slot <= last; slot++) {
        if (log->frames[slot].chained) {
            versions[count++] = (struct version){log->frames[slot].page, slot};
        }
    }
    qsort(versions, count, sizeof *versions, by_page_and_slot);
    bool all = count > 0;
    for (size_t i = 0; i < count && all; i++) {
        bool newest = i + 1 == count || versions[i + 1].page != versions[i].page;
        all = !newest || in_database(log, &versions[i], page);
    }
    *copied = all;
    free(versions);
    free(page);
    return STATUS_OK;
}

/* ---- the whole ---- */

static enum status scan_open(struct log *log, int64_t bytes, struct log_scan *out,
                             struct error *error)
{
    int64_t last_commit = -1;
    bool copied = false;

    out->bytes = bytes;
    log->buffer = malloc(FRAME_BYTES + PAGE_BYTES_MAX);
    TRY(memory_check(log->buffer, error, "%s: out of memory", log->path));
    if (read_at(log->fd, log->header, HEADER_BYTES, 0) < 0) {
        return io_error(log, error);
    }
    read_header(log);
    if (!find_layout(log, bytes)) {
        return STATUS_OK; /* nothing in it is a frame */
    }
    log->slots = (bytes - HEADER_BYTES) / (FRAME_BYTES + log->page_bytes);
    log->frames = calloc((size_t)log->slots + 1, sizeof *log->frames);
    TRY(memory_check(log->frames, error, "%s: out of memory", log->path));
    TRY(load_all(log, error));
    count_taken(log, out);
    count_discarded(log, out, &last_commit);
    /* Behind frames that are taken, a copy in the database does not help: older pages hide it. */
    if (out->discarded_commits > 0 && out->frames == 0) {
        TRY(look_copied(log, out->first_bad - 1, last_commit, &copied, error));
    }
    if (out->discarded_commits > 0 && !copied) {
        out->lost_commits = count_acknowledged(log, out->first_bad - 1);
        out->in_doubt = true;
    }
    return STATUS_OK;
}

enum status log_scan(const char *store_path, int database_fd, struct log_scan *out,
                     struct error *error)
{
    char path[LIMIT_PATH_BYTES + 8];
    struct stat info;
    struct log_scan scan = {.frames = 0};
    struct log log = {.path = path, .database_fd = database_fd};
    enum status status = STATUS_OK;

    snprintf(path, sizeof path, "%s-wal", store_path);
    log.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (log.fd < 0 && errno != ENOENT) {
        return io_error(&log, error);
    }
    if (log.fd >= 0 && fstat(log.fd, &info) == 0 && info.st_size > HEADER_BYTES) {
        status = scan_open(&log, info.st_size, &scan, error);
    }
    free(log.buffer);
    free(log.frames);
    if (log.fd >= 0) {
        close(log.fd);
    }
    if (status == STATUS_OK) {
        *out = scan;
    }
    return status;
}

bool log_scan_sentence(const struct log_scan *scan, char text[512])
{
    if (!scan->in_doubt) {
        return false;
    }
    if (scan->lost_commits > 0) {
        snprintf(text, 512,
                 "the log is damaged at frame %" PRId64 ": %" PRId64 " frames with %" PRId64
                 " commits were discarded, and at least %" PRId64
                 " of these commits had been acknowledged. What they held is lost; submit the "
                 "suites again (what is there is not run twice)",
                 scan->first_bad, scan->discarded, scan->discarded_commits, scan->lost_commits);
    } else {
        snprintf(text, 512,
                 "the last commit in the log is not whole (frame %" PRId64 "): %" PRId64
                 " frames were discarded. After a loss of power it had not been acknowledged; "
                 "otherwise the log is damaged and this commit is lost: submit the last suite "
                 "again",
                 scan->first_bad, scan->discarded);
    }
    return true;
}
