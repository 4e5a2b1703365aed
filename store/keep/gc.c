/*
 * Collecting artifacts. See gc.h.
 */
#include "store/keep/gc.h"

#include "store/keep/keep_files.h"
#include "store/sqlite/check_internal.h"
#include "store/sqlite/store_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct gc {
    const struct keep_gc_options *options;
    struct keep_gc_summary *summary;
    struct check_references references;
    int64_t before_s; /* changed earlier than this: old */
    char store[LIMIT_PATH_BYTES];
    char artifacts[LIMIT_PATH_BYTES + 16];
};

static void found_silent(void *context, const struct store_check_finding *finding)
{
    (void)context;
    (void)finding;
}

static enum status read_references(struct gc *gc, struct error *error)
{
    struct store_check_summary summary = {.faults = 0};
    const struct store_check_options quiet = {
        .wait_ms = gc->options->wait_ms, .findings_max = 1, .found = found_silent};
    struct check check = {.options = &quiet, .summary = &summary, .path = gc->store};
    enum status status = check_begin(&check, error);

    THEN(status, check_references_read(&check, &gc->references, error));
    db_close(check.db);
    if (status == STATUS_OK && summary.faults > 0) {
        return error_set(error, STATUS_STORE,
                         "%s: some rows name artifacts by what is no name, or cannot be read, so "
                         "it is not known what is referred to; nothing was taken. `swerve check "
                         "--store %s` says which",
                         gc->store, gc->store);
    }
    return status;
}

static void add(struct keep_gc_count *count, const struct stat *info)
{
    count->files++;
    count->bytes += info->st_size;
}

static enum status cannot(const char *what, const char *path, struct error *error)
{
    return error_set(error, STATUS_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* Takes the file, unless somebody has come to rely on it since it was listed. */
static enum status take(struct gc *gc, int directory, const char *path, const char *name,
                        struct error *error)
{
    struct stat info;
    enum status status = STATUS_OK;

    if (gc->options->step != NULL) {
        gc->options->step(gc->options->context);
    }
    while (flock(directory, LOCK_EX) != 0) {
        if (errno != EINTR) {
            return cannot("lock the directory", path, error);
        }
    }
    if (fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        (int64_t)info.st_mtime < gc->before_s) {
        if (unlinkat(directory, name, 0) == 0) {
            add(&gc->summary->taken, &info);
        } else if (errno != ENOENT) {
            status = cannot("remove an artifact from", path, error);
        }
    }
    flock(directory, LOCK_UN);
    return status;
}

static enum status look_at(struct gc *gc, int directory, const char *path, const char *name,
                           const char *digits, struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    struct stat info;

    if (!keep_artifact_named(name, digits, hash) ||
        fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return STATUS_OK; /* check speaks of what is no artifact */
    }
    if (check_references_find(&gc->references, hash) != NULL) {
        add(&gc->summary->referenced, &info);
        return STATUS_OK;
    }
    if ((int64_t)info.st_mtime >= gc->before_s) {
        add(&gc->summary->young, &info);
        return STATUS_OK;
    }
    add(&gc->summary->old, &info);
    return gc->options->apply ? take(gc, directory, path, name, error) : STATUS_OK;
}

static enum status collect_directory(struct gc *gc, unsigned first, struct error *error)
{
    char path[KEEP_PATH_BYTES];
    char digits[4];
    enum status status = STATUS_OK;

    snprintf(digits, sizeof digits, "%02x", first & 0xff);
    snprintf(path, sizeof path, "%s/%s", gc->artifacts, digits);
    DIR *directory = NULL;
    TRY(keep_directory_read(path, &directory, error));
    if (directory == NULL) {
        return STATUS_OK;
    }
    errno = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL && status == STATUS_OK;
         errno = 0, entry = readdir(directory)) {
        status = look_at(gc, dirfd(directory), path, entry->d_name, digits, error);
    }
    if (status == STATUS_OK && errno != 0) {
        status = cannot("read the directory", path, error);
    }
    closedir(directory);
    return status;
}

enum status keep_gc(const char *store_path, const struct keep_gc_options *options,
                    struct keep_gc_summary *out, struct error *error)
{
    struct gc gc = {.options = options, .summary = out, .references = {.rows = NULL}};
    int lock = -1;

    memset(out, 0, sizeof *out);
    if (options->older_than_s < KEEP_GC_OLDER_MIN_S) {
        return error_set(error, STATUS_LIMIT,
                         "artifacts younger than %d s may be those of completions under way: "
                         "expected an age of that at least, found %" PRId64,
                         KEEP_GC_OLDER_MIN_S, options->older_than_s);
    }
    TRY(store_path_resolve(store_path, gc.store, error));
    snprintf(gc.artifacts, sizeof gc.artifacts, "%s.artifacts", gc.store);
    TRY(keep_lock(gc.artifacts, true, "a backup is being made, or artifacts are being collected",
                  &lock, error));
    gc.before_s = (int64_t)time(NULL) - options->older_than_s;
    enum status status = read_references(&gc, error); /* after the time: see gc.h */
    for (unsigned first = 0; first < 256 && status == STATUS_OK; first++) {
        status = collect_directory(&gc, first, error);
    }
    check_references_finish(&gc.references);
    if (lock >= 0) {
        close(lock);
    }
    return status;
}
