/*
 * Making a backup. See backup.h.
 */
#include "store/keep/backup.h"

#include "base/check.h"
#include "base/file.h"
#include "store/api/store_path.h"
#include "store/artifacts/artifacts_internal.h"
#include "store/check/check_internal.h"
#include "store/keep/keep_files.h"
#include "store/sql/ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct backup {
    const struct keep_options *options;
    struct keep_summary *summary;
    enum keep_place before; /* at dest */
    int64_t linked;         /* artifacts that the backup before lent */
    bool compare;           /* take nothing for whole by its size */
    int part_lock;
    int artifacts_lock;
    char store[LIMIT_PATH_BYTES];     /* the real path */
    char dest[LIMIT_PATH_BYTES];      /* without slashes at its end */
    char part[KEEP_PATH_BYTES];       /* DEST.part */
    char database[KEEP_PATH_BYTES];   /* in it */
    char artifacts[KEEP_PATH_BYTES];  /* in it */
    char unfinished[KEEP_PATH_BYTES]; /* in it */
};

static void step(const struct backup *backup)
{
    if (backup->options->step != NULL) {
        backup->options->step(backup->options->context);
    }
}

static enum status name_paths(struct backup *backup, const char *store_path, const char *dest,
                              struct error *error)
{
    size_t bytes = strlen(dest);

    while (bytes > 1 && dest[bytes - 1] == '/') {
        bytes--;
    }
    if (bytes == 0 || bytes >= LIMIT_PATH_BYTES - 32) {
        return error_set(error, STATUS_USAGE, "backup: expected a directory of 1 to %d bytes",
                         LIMIT_PATH_BYTES - 33);
    }
    snprintf(backup->dest, sizeof backup->dest, "%.*s", (int)bytes, dest);
    const char *slash = strrchr(backup->dest, '/');
    const char *last = slash != NULL ? slash + 1 : backup->dest;
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0 || last[0] == '\0') {
        return error_set(error, STATUS_USAGE,
                         "%s: expected the name of a directory, which is replaced as a whole",
                         backup->dest);
    }
    snprintf(backup->part, sizeof backup->part, "%s.part", backup->dest);
    snprintf(backup->database, sizeof backup->database, "%.*s.part/" KEEP_DATABASE, (int)bytes,
             dest);
    snprintf(backup->artifacts, sizeof backup->artifacts, "%.*s.part/" KEEP_DATABASE ".artifacts",
             (int)bytes, dest);
    snprintf(backup->unfinished, sizeof backup->unfinished,
             "%.*s.part/" KEEP_DATABASE ".artifacts/unfinished", (int)bytes, dest);
    return store_path_resolve(store_path, backup->store, error);
}

static bool lies_in(const char *path, const char *folder)
{
    size_t bytes = strlen(folder);
    return strncmp(path, folder, bytes) == 0 && (path[bytes] == '/' || path[bytes] == '\0');
}

/* A backup takes the place of what is at DEST, which must not be what it is made of. */
static enum status refuse_own_place(const struct backup *backup, struct error *error)
{
    char dest[LIMIT_PATH_BYTES];
    char other[LIMIT_PATH_BYTES + 16];
    struct error why;

    if (store_path_resolve(backup->dest, dest, &why) != STATUS_OK) {
        return STATUS_OK; /* nothing can be created there either, which is said then */
    }
    snprintf(other, sizeof other, "%s.part", dest);
    if (lies_in(backup->store, dest) || lies_in(backup->store, other)) {
        return error_set(error, STATUS_USAGE,
                         "%s: the store lies in the directory that the backup would replace, and "
                         "would go with it; name another directory",
                         backup->store);
    }
    snprintf(other, sizeof other, "%s.artifacts", backup->store);
    return lies_in(dest, other)
               ? error_set(error, STATUS_USAGE,
                           "%s: the directory is that of the store's own artifacts; name another "
                           "one",
                           backup->dest)
               : STATUS_OK;
}

/* Somebody may have opened the backup that is there to work in it: that work is nowhere else. */
static enum status refuse_open_backup(const struct backup *backup, struct error *error)
{
    char database[KEEP_PATH_BYTES];
    char log[KEEP_PATH_BYTES + 8];
    struct stat info;

    snprintf(database, sizeof database, "%s/" KEEP_DATABASE, backup->dest);
    snprintf(log, sizeof log, "%s-wal", database);
    return ownership_look(database).owned || (lstat(log, &info) == 0 && info.st_size > 0)
               ? error_set(error, STATUS_CONFLICT,
                           "%s: this backup is in use as a store, and what is done in it would go "
                           "with it; stop who has it open, or name another directory",
                           database)
               : STATUS_OK;
}

static enum status write_marker(const struct backup *backup, bool complete, struct error *error)
{
    char path[KEEP_PATH_BYTES + 16];
    char digest[SHA256_HEX_BYTES];
    char created[32];
    char text[1024];
    const struct keep_summary *summary = backup->summary;
    time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    sha256_to_hex(summary->check.digest.bytes, digest);
    int bytes =
        snprintf(text, sizeof text,
                 "{\"swerve_backup\": 1, \"complete\": %s, \"created\": \"%s\", \"suites\": "
                 "%" PRId64 ", \"jobs\": %" PRId64 ", \"outcomes\": %" PRId64
                 ", \"artifacts\": %" PRId64 ", \"faults\": %" PRId64 ", \"digest\": \"%s\"}\n",
                 complete ? "true" : "false", created, summary->check.suites, summary->check.jobs,
                 summary->check.outcomes, summary->artifacts, summary->check.faults, digest);
    snprintf(path, sizeof path, "%s/" KEEP_MARKER, backup->part);
    return file_replace(path, text, (size_t)bytes, 0644, error);
}

static enum status refuse(const char *path, struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: expected nothing, an empty directory or a backup, found something else, "
                     "which is left as it is",
                     path);
}

/* The place to write to: DEST.part, with its lock and its marker. */
static enum status take_part(struct backup *backup, struct error *error)
{
    enum keep_place place;
    TRY(keep_look(backup->dest, &backup->before, error));
    if (backup->before == KEEP_FOREIGN) {
        return refuse(backup->dest, error);
    }
    TRY(refuse_own_place(backup, error));
    TRY(keep_look(backup->part, &place, error));
    if (place == KEEP_FOREIGN) {
        return refuse(backup->part, error);
    }
    TRY(keep_directory(backup->part, error));
    TRY(keep_lock(backup->part, true, "another backup is being made there", &backup->part_lock,
                  error));
    step(backup);
    TRY(keep_drop_rests(backup->part, error));
    TRY(write_marker(backup, false, error));
    step(backup);
    TRY(keep_directory(backup->artifacts, error));
    return keep_directory(backup->unfinished, error);
}

/* Removes what an earlier attempt copied, and what SQLite keeps beside it. */
static enum status drop_database(const struct backup *backup, struct error *error)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[KEEP_PATH_BYTES + 16];

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        snprintf(path, sizeof path, "%s%s", backup->database, ends[i]);
        if (unlink(path) != 0 && errno != ENOENT) {
            return error_set(error, STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
        }
    }
    return STATUS_OK;
}

/* One moment of the store: its database here, and what it refers to. */
static enum status copy_database(struct backup *backup, struct check_references *references,
                                 struct error *error)
{
    struct store_check_summary unused = {.faults = 0};
    const struct store_check_options quiet = {.wait_ms = backup->options->wait_ms};
    struct check check = {.options = &quiet, .summary = &unused, .path = backup->store};
    struct stat info;

    TRY(drop_database(backup, error));
    enum status status = check_begin(&check, error);
    THEN(status, check_references_read(&check, references, error));
    THEN(status, sqlite_db_copy(check.db, backup->database, error));
    db_close(check.db);
    if (status == STATUS_OK && stat(backup->database, &info) == 0) {
        backup->summary->database_bytes = info.st_size;
    }
    step(backup);
    return status;
}

static bool same_size(const char *path, const struct stat *as)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == as->st_size;
}

/* One artifact; one that is not there is the check's to find. */
static enum status copy_artifact(struct backup *backup, const char *hash, struct error *error)
{
    char from[KEEP_PATH_BYTES];
    char kept[KEEP_PATH_BYTES];
    char to[KEEP_PATH_BYTES];
    char part[KEEP_PATH_BYTES + 8];
    char store[LIMIT_PATH_BYTES + 16];
    char before[LIMIT_PATH_BYTES + 32];
    int64_t bytes = 0;
    struct stat info;

    snprintf(store, sizeof store, "%s.artifacts", backup->store);
    snprintf(before, sizeof before, "%s/" KEEP_DATABASE ".artifacts", backup->dest);
    keep_artifact_path(store, hash, from);
    keep_artifact_path(before, hash, kept);
    keep_artifact_path(backup->artifacts, hash, to);
    if (lstat(from, &info) != 0) {
        return keep_mark_copy(store, backup->artifacts, hash, error);
    }
    keep_mark_drop(backup->artifacts, hash); /* of an earlier attempt */
    backup->summary->artifacts++;
    if (same_size(to, &info) && (!backup->compare || keep_same(from, to))) {
        return STATUS_OK;
    }
    snprintf(part, sizeof part, "%s/%.2s", backup->artifacts, hash);
    TRY(keep_directory(part, error));
    unlink(to); /* of another size: what a loss of power left */
    if (!backup->compare && same_size(kept, &info) && link(kept, to) == 0) {
        backup->linked++;
        return STATUS_OK;
    }
    snprintf(part, sizeof part, "%s/copy", backup->unfinished);
    TRY(keep_copy(from, part, to, &bytes, error));
    backup->summary->copied++;
    backup->summary->copied_bytes += bytes;
    return STATUS_OK;
}

/* Removes what an earlier attempt brought and this moment does not refer to. */
static enum status drop_strays(struct backup *backup, struct check_references *references,
                               struct error *error)
{
    for (unsigned first = 0; first < 256; first++) {
        char path[KEEP_PATH_BYTES + 8];
        snprintf(path, sizeof path, "%s/%02x", backup->artifacts, first);
        DIR *directory = NULL;
        TRY(keep_directory_read(path, &directory, error));
        for (struct dirent *entry = directory != NULL ? readdir(directory) : NULL; entry != NULL;
             entry = readdir(directory)) {
            char hash[SHA256_HEX_BYTES];
            struct error why;
            snprintf(hash, sizeof hash, "%.64s", entry->d_name);
            if (entry->d_name[0] != '.' && (artifacts_check_hash(hash, &why) != STATUS_OK ||
                                            check_references_find(references, hash) == NULL)) {
                unlinkat(dirfd(directory), entry->d_name, 0);
            }
        }
        if (directory != NULL) {
            closedir(directory);
        }
    }
    return STATUS_OK;
}

static enum status copy_artifacts(struct backup *backup, struct check_references *references,
                                  struct error *error)
{
    TRY(drop_strays(backup, references, error));
    for (size_t i = 0; i < references->count; i++) {
        char hash[SHA256_HEX_BYTES];
        sha256_to_hex(references->rows[i].hash, hash);
        TRY(copy_artifact(backup, hash, error));
        step(backup);
    }
    rmdir(backup->unfinished); /* a store makes it anew */
    return STATUS_OK;
}

static enum status check_copy(struct backup *backup, struct check_references *references,
                              struct error *error)
{
    struct store_check_options check = {.found = backup->linked > 0 ? NULL : backup->options->found,
                                        .context = backup->options->context};
    struct error ignored;

    TRY(store_check(backup->database, &check, &backup->summary->check, error));
    if (backup->summary->check.faults > 0 && backup->linked > 0) {
        /* They may be damage of the backup before, which must not go on for ever. */
        backup->linked = 0;
        backup->compare = true;
        backup->summary->artifacts = 0;
        TRY(keep_directory(backup->unfinished, error));
        TRY(copy_artifacts(backup, references, error));
        check.found = backup->options->found;
        TRY(store_check(backup->database, &check, &backup->summary->check, error));
    }
    if (backup->summary->check.faults == 0 || backup->options->allow_faults) {
        return STATUS_OK;
    }
    /* Damage that is here must not be found again by the next attempt. */
    keep_remove_tree(backup->part, &ignored);
    return error_set(
        error, STATUS_STORE,
        "%s: the copy has %" PRId64 " faults, so %s was left as it was; `swerve check "
        "--store %s` says whether the store has them, --allow-faults keeps such a copy",
        backup->store, backup->summary->check.faults, backup->dest, backup->store);
}

/* The old DEST, which may be something else by now than when it was looked at. */
static enum status remove_old(const struct backup *backup, struct error *error)
{
    enum keep_place place;
    TRY(keep_look(backup->part, &place, error));
    return place == KEEP_FOREIGN ? refuse(backup->part, error)
                                 : keep_remove_tree(backup->part, error);
}

/* DEST.part is on the disk, and becomes DEST in one step. */
static enum status put_in_place(struct backup *backup, struct error *error)
{
    char parent[LIMIT_PATH_BYTES];
    TRY(refuse_open_backup(backup, error));
    TRY(write_marker(backup, true, error));
    TRY(keep_sync(backup->part, error));
    step(backup);
    bool exchange = backup->before == KEEP_BACKUP || backup->before == KEEP_PARTIAL;
    /* A plain rename replaces nothing but an empty directory. */
    int failed = exchange
                     ? renameat2(AT_FDCWD, backup->part, AT_FDCWD, backup->dest, RENAME_EXCHANGE)
                     : rename(backup->part, backup->dest);
    if (failed != 0) {
        return error_set(error, STATUS_IO, "%s: cannot take the place of %s: %s%s", backup->part,
                         backup->dest, strerror(errno),
                         exchange && errno == EINVAL
                             ? " (a file system that cannot exchange two names, as NFS: name a "
                               "directory that is not there yet)"
                             : "");
    }
    step(backup);
    snprintf(parent, sizeof parent, "%s", backup->dest);
    char *slash = strrchr(parent, '/');
    if (slash != NULL) {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    TRY(keep_sync(slash != NULL ? parent : ".", error));
    return exchange ? remove_old(backup, error) : STATUS_OK;
}

enum status keep_backup(const char *store_path, const char *dest,
                        const struct keep_options *options, struct keep_summary *out,
                        struct error *error)
{
    char artifacts[LIMIT_PATH_BYTES + 16];
    struct check_references references = {.rows = NULL};
    struct backup backup = {
        .options = options, .summary = out, .part_lock = -1, .artifacts_lock = -1};

    memset(out, 0, sizeof *out);
    TRY(name_paths(&backup, store_path, dest, error));
    snprintf(artifacts, sizeof artifacts, "%s.artifacts", backup.store);
    enum status status = take_part(&backup, error);
    THEN(status, keep_lock(artifacts, false, "artifacts are being collected",
                           &backup.artifacts_lock, error));
    THEN(status, copy_database(&backup, &references, error));
    THEN(status, copy_artifacts(&backup, &references, error));
    THEN(status, check_copy(&backup, &references, error));
    THEN(status, put_in_place(&backup, error));
    check_references_finish(&references);
    if (backup.artifacts_lock >= 0) {
        close(backup.artifacts_lock);
    }
    if (backup.part_lock >= 0) {
        close(backup.part_lock);
    }
    return status;
}
