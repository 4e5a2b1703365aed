/*
 * Folders of shards. See datagen_set.h.
 *
 * The file ".set" of a folder has the digest of the question: suite, options, planners, world, rig
 * and build. Whoever makes shards holds a lock on it.
 */
#include "worker/datagen/datagen_set.h"

#include "schemas/rig/rig.h"
#include "worker/planner/planner.h"
#include "worker/run/revision.h"

#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static enum status describe(const struct suite *suite, const struct datagen_options *options,
                            char out[SHA256_HEX_BYTES], struct error *error)
{
    const struct datagen_world *world = options->world;
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char text[512];
    char part[SHA256_HEX_BYTES] = "";
    int length = snprintf(
        text, sizeof text, "%s %s %u %u %" PRIu64 " %.17g %d %u %.80s %.64s %.64s ", revision_hash,
        suite->hash, options->clips, options->frames, options->seed, options->held_out,
        (int)options->part, options->shard_clips, world != NULL ? world->name : "object",
        world != NULL ? world->hash : "", world != NULL ? world->sampler : "");
    sha256_init(&hash);
    sha256_update(&hash, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    for (uint32_t i = 0; i < options->planner_count; i++) {
        TRY(planner_identity(options->planners[i], part, error));
        sha256_update(&hash, options->planners[i], strlen(options->planners[i]) + 1);
        sha256_update(&hash, part, sizeof part);
    }
    if (options->rig != NULL) {
        TRY(rig_hash(options->rig, part, error));
        sha256_update(&hash, part, sizeof part);
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, out);
    return STATUS_OK;
}

static bool is_shard(const char *name)
{
    return strncmp(name, "train-", 6) == 0 || strncmp(name, "heldout-", 8) == 0;
}

/* Whether a folder has shards; unfinished ones are removed, as nobody writes them any more. */
static enum status look_through(const char *directory, bool *shards, struct error *error)
{
    static const char unfinished[] = ".tmp", shard[] = ".safetensors";
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot open: %s", directory, strerror(errno));
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || !is_shard(entry->d_name)) {
            continue;
        }
        if (strcmp(dot, unfinished) == 0 && strstr(entry->d_name, shard) != NULL) {
            unlinkat(dirfd(stream), entry->d_name, 0); /* one that stays does no harm */
        }
        *shards = *shards || strcmp(dot, shard) == 0;
    }
    closedir(stream);
    return STATUS_OK;
}

static enum status take(int fd, const char *directory, const char question[SHA256_HEX_BYTES],
                        struct error *error)
{
    char found[SHA256_HEX_BYTES] = "";
    bool shards = false;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? error_set(error, STATUS_BUSY, "%s: another swerve datagen makes shards there",
                               directory)
                   : error_set(error, STATUS_IO, "%s: cannot lock: %s", directory, strerror(errno));
    }
    TRY(look_through(directory, &shards, error));
    ssize_t bytes = pread(fd, found, sizeof found - 1, 0);
    found[bytes > 0 ? bytes : 0] = '\0';
    if (strcmp(found, question) == 0) {
        return STATUS_OK;
    }
    if (shards) {
        return error_set(error, STATUS_CONFLICT,
                         "%s: holds shards of another set (of another suite, other options, "
                         "planners or another build); expected an empty folder or the same command",
                         directory);
    }
    if (pwrite(fd, question, SHA256_HEX_BYTES - 1, 0) != SHA256_HEX_BYTES - 1 || fsync(fd) != 0) {
        return error_set(error, STATUS_IO, "%s/.set: cannot write: %s", directory, strerror(errno));
    }
    return STATUS_OK;
}

enum status datagen_set_take(const struct suite *suite, const struct datagen_options *options,
                             int *fd, struct error *error)
{
    char question[SHA256_HEX_BYTES];
    char path[LIMIT_PATH_BYTES];
    TRY(describe(suite, options, question, error));
    int length = snprintf(path, sizeof path, "%s/.set", options->directory);
    if (length < 0 || (size_t)length >= sizeof path) {
        return error_set(error, STATUS_LIMIT, "%.64s..: a name longer than %d bytes",
                         options->directory, LIMIT_PATH_BYTES - 1);
    }
    int opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (opened < 0) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    enum status status = take(opened, options->directory, question, error);
    if (status != STATUS_OK) {
        close(opened);
        return status;
    }
    *fd = opened;
    return STATUS_OK;
}

void datagen_set_release(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}
