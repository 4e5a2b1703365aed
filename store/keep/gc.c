/*
 * Collecting artifacts. See gc.h.
 */
#include "store/keep/gc.h"

#include "store/artifacts/artifacts_internal.h"
#include "store/keep/keep_database.h"
#include "store/keep/keep_files.h"
#include "store/keep/retention.h"
#include "store/objects/object_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { S_PER_DAY = 86400 };

struct gc {
    const struct keep_gc_options *options;
    struct keep_gc_summary *summary;
    struct check_references references;
    struct retention_table retained;
    int64_t now_s;
    int64_t before_s; /* changed earlier than this: old */
    const char *store;
    struct keep_database database;
    char artifacts[LIMIT_PATH_BYTES + 16];
};

static enum status read_references(struct gc *gc, struct error *error)
{
    struct keep_database *from = &gc->database;
    struct check_references *references = &gc->references;
    enum status status = keep_database_begin(from, error);

    THEN(status, check_references_read(&from->check, references, error));
    if (status == STATUS_OK && from->summary.faults == 0 && gc->options->policy != NULL) {
        status = retention_table_read(from->check.db, gc->options->policy, &gc->retained, error);
    }
    /* A crash must not bring back references to what was taken. */
    if (status == STATUS_OK && from->summary.faults == 0) {
        status = db_durable(from->check.db, error);
    }
    memcpy(gc->summary->met, gc->retained.met, sizeof gc->summary->met);
    if (status == STATUS_OK && from->summary.faults > 0) {
        return error_set(error, STATUS_STORE,
                         "%s: some rows name artifacts by what is no name, or cannot be read, so "
                         "it is not known what is referred to; nothing was taken%s",
                         gc->store,
                         from->url[0] != '\0' ? "" : ". `swerve check --store` says which");
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

/* The newest time of change of what may go; INT64_MIN: it has to stay. */
static int64_t limit_of(const struct gc *gc, const struct check_reference *reference)
{
    if (reference == NULL) {
        return gc->before_s;
    }
    int32_t days = retention_table_days(&gc->retained, reference->hash);
    if (days == RETENTION_FOR_EVER) {
        return INT64_MIN;
    }
    int64_t kept_s = gc->now_s - (int64_t)days * S_PER_DAY;
    return kept_s < gc->before_s ? kept_s : gc->before_s;
}

/* Only collectors make marks, and there is one at a time. */
static void drop_mark(int directory, const char *name)
{
    char mark[ARTIFACT_MARK_BYTES];
    artifacts_mark_path(name, mark);
    unlinkat(directory, mark, 0);
}

/* Takes the file, unless somebody has come to rely on it since it was listed. */
static enum status take(struct gc *gc, int directory, const char *path, const char *name,
                        int64_t limit_s, struct error *error)
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
        (int64_t)info.st_mtime < limit_s) {
        if (unlinkat(directory, name, 0) == 0) {
            add(&gc->summary->taken, &info);
        } else if (errno != ENOENT) {
            status = cannot("remove an artifact from", path, error);
        }
    } else {
        drop_mark(directory, name);
    }
    flock(directory, LOCK_UN);
    return status;
}

static bool is_marked(int directory, const char *name)
{
    char mark[ARTIFACT_MARK_BYTES];
    struct stat info;
    artifacts_mark_path(name, mark);
    return fstatat(directory, mark, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode);
}

/* Counts one entry; `pass` 0 marks what is referred to and goes, 1 takes, but nothing that was not
 * marked, and drops marks beside what stays: they would only excuse another loss. */
static enum status look_at(struct gc *gc, int directory, const char *path, const char *name,
                           const char *digits, int pass, bool *marked, struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    struct stat info;

    if (keep_mark_named(name, digits, hash)) { /* of rows that are gone, too */
        if (pass == 1 && check_references_find(&gc->references, hash) == NULL) {
            unlinkat(directory, name, 0);
        }
        return STATUS_OK;
    }
    if (!keep_artifact_named(name, digits, hash) ||
        fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return STATUS_OK; /* check speaks of what is no artifact */
    }
    const struct check_reference *reference = check_references_find(&gc->references, hash);
    int64_t limit_s = limit_of(gc, reference);
    bool goes = (int64_t)info.st_mtime < limit_s;
    if (pass == 0) {
        add(reference != NULL ? goes ? &gc->summary->expired : &gc->summary->referenced
            : goes            ? &gc->summary->old
                              : &gc->summary->young,
            &info);
        if (!goes || reference == NULL || !gc->options->apply) {
            return STATUS_OK;
        }
        *marked = true;
        return artifacts_mark(directory, name, NULL) ? STATUS_OK
                                                     : cannot("mark an artifact in", path, error);
    }
    if (goes && (reference == NULL || is_marked(directory, name))) {
        return take(gc, directory, path, name, limit_s, error);
    }
    drop_mark(directory, name);
    return STATUS_OK;
}

static enum status pass_over(struct gc *gc, DIR *directory, const char *path, const char *digits,
                             int pass, struct error *error)
{
    enum status status = STATUS_OK;
    bool marked = false;

    rewinddir(directory);
    errno = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL && status == STATUS_OK;
         errno = 0, entry = readdir(directory)) {
        status = look_at(gc, dirfd(directory), path, entry->d_name, digits, pass, &marked, error);
    }
    if (status == STATUS_OK && errno != 0) {
        status = cannot("read the directory", path, error);
    }
    if (status == STATUS_OK && marked && fsync(dirfd(directory)) != 0) {
        status = cannot("sync the directory", path, error);
    }
    return status;
}

static enum status collect_directory(struct gc *gc, unsigned first, struct error *error)
{
    char path[KEEP_PATH_BYTES];
    char digits[4];

    snprintf(digits, sizeof digits, "%02x", first & 0xff);
    snprintf(path, sizeof path, "%s/%s", gc->artifacts, digits);
    DIR *directory = NULL;
    TRY(keep_directory_read(path, &directory, error));
    if (directory == NULL) {
        return STATUS_OK;
    }
    enum status status = pass_over(gc, directory, path, digits, 0, error);
    if (status == STATUS_OK && gc->options->apply) {
        status = pass_over(gc, directory, path, digits, 1, error);
    }
    closedir(directory);
    return status;
}

static enum status collect(struct gc *gc, struct error *error)
{
    int lock = -1;
    TRY(keep_lock(gc->artifacts, true, "a backup is being made, or artifacts are being collected",
                  &lock, error));
    gc->now_s = (int64_t)time(NULL);
    gc->before_s = gc->now_s - gc->options->older_than_s;
    enum status status = read_references(gc, error); /* after the time: see gc.h */
    keep_database_close(&gc->database);
    for (unsigned first = 0; first < 256 && status == STATUS_OK; first++) {
        status = collect_directory(gc, first, error);
    }
    check_references_finish(&gc->references);
    retention_table_finish(&gc->retained);
    if (lock >= 0) {
        close(lock);
    }
    return status;
}

enum status keep_gc(const char *store, const struct keep_gc_options *options,
                    struct keep_gc_summary *out, struct error *error)
{
    struct gc gc = {.options = options, .summary = out, .store = store};

    memset(out, 0, sizeof *out);
    if (options->older_than_s < KEEP_GC_OLDER_MIN_S) {
        return error_set(error, STATUS_LIMIT,
                         "artifacts younger than %d s may be those of completions under way: "
                         "expected an age of that at least, found %" PRId64,
                         KEEP_GC_OLDER_MIN_S, options->older_than_s);
    }
    enum status status = keep_database_find(store, options->wait_ms, &gc.database, error);
    if (status == STATUS_OK && object_storage_is_url(gc.database.path)) {
        status = error_set(error, STATUS_USAGE,
                           "%s: artifacts in a bucket are not collected (docs/postgresql.md)",
                           gc.database.path);
    }
    snprintf(gc.artifacts, sizeof gc.artifacts, "%s.artifacts", gc.database.path);
    THEN(status, collect(&gc, error));
    keep_database_close(&gc.database);
    return status;
}
