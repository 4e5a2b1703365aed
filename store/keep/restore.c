/*
 * The way back from a backup. See backup.h.
 *
 * Artifacts come first: they are named by their contents, so those of the backup and of a store
 * that is replaced do not meet; nobody collects them meanwhile. Then the database is copied beside
 * the path, synced, and renamed. A log at the path would be applied to whatever database is found
 * there, so a store that is replaced is owned and closed cleanly first, and must then have none.
 */
#include "store/keep/backup.h"
#include "store/keep/keep_files.h"

#include "store/api/store_path.h"
#include "store/artifacts/artifacts.h"
#include "store/check/check_internal.h"
#include "store/sql/migrate.h"
#include "store/sql/ownership.h"
#include "store/sql/sqlite_db.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct restore {
    const struct keep_options *options;
    struct keep_summary *summary;
    bool exists;                        /* a store, to be replaced */
    char path[LIMIT_PATH_BYTES];        /* the real one */
    char database[KEEP_PATH_BYTES];     /* of the backup */
    char from[KEEP_PATH_BYTES + 16];    /* its artifacts */
    char coming[LIMIT_PATH_BYTES + 16]; /* PATH.restoring */
    int artifacts_lock;
};

static void step(const struct restore *restore)
{
    if (restore->options->step != NULL) {
        restore->options->step(restore->options->context);
    }
}

static enum status check_backup(struct restore *restore, const char *backup, struct error *error)
{
    enum keep_place place;
    struct store_check_options check = {.found = restore->options->found,
                                        .context = restore->options->context};

    TRY(keep_look(backup, &place, error));
    if (place != KEEP_BACKUP) {
        return error_set(error, place == KEEP_ABSENT ? STATUS_NOT_FOUND : STATUS_BAD_INPUT,
                         "%s: expected a backup, found %s", backup,
                         place == KEEP_ABSENT    ? "nothing"
                         : place == KEEP_PARTIAL ? "one that was not finished"
                                                 : "none (no " KEEP_MARKER ")");
    }
    snprintf(restore->database, sizeof restore->database, "%s/" KEEP_DATABASE, backup);
    snprintf(restore->from, sizeof restore->from, "%s.artifacts", restore->database);
    TRY(store_check(restore->database, &check, &restore->summary->check, error));
    if (restore->summary->check.faults > 0 && !restore->options->allow_faults) {
        return error_set(error, STATUS_STORE,
                         "%s: the backup has %" PRId64
                         " faults; nothing was restored (--allow-faults restores it all the same)",
                         backup, restore->summary->check.faults);
    }
    return STATUS_OK;
}

static enum status refuse_log(const struct restore *restore, const char *why, struct error *error)
{
    return error_set(error, STATUS_CONFLICT,
                     "%s-wal is there: %s. A log is applied to whatever database lies beside it; "
                     "move both away, or restore to another path",
                     restore->path, why);
}

static bool log_there(const struct restore *restore)
{
    char log[LIMIT_PATH_BYTES + 8];
    struct stat info;
    snprintf(log, sizeof log, "%s-wal", restore->path);
    return lstat(log, &info) == 0 && info.st_size > 0;
}

/* The store that is there is owned, and its log copied into it and gone. */
static enum status settle_old(struct restore *restore, struct ownership **ownership,
                              struct error *error)
{
    struct db *db = NULL;
    TRY(ownership_take(restore->path, ownership, error));
    enum status status = sqlite_db_open(restore->path, SQLITE_DB_WRITER, &db, error);
    THEN(status, migrate_check(db, restore->path, error));
    THEN(status, sqlite_db_use_wal(db, error));
    THEN(status, db_checkpoint(db, error));
    db_close(db);
    if (status == STATUS_OK && log_there(restore)) {
        status = refuse_log(restore, "another program has the store open", error);
    }
    return status;
}

static enum status look_at_target(struct restore *restore, struct ownership **ownership,
                                  struct error *error)
{
    struct stat info;

    restore->exists = lstat(restore->path, &info) == 0;
    if (!restore->exists) {
        return log_there(restore) ? refuse_log(restore, "its database is not", error) : STATUS_OK;
    }
    if (!restore->options->replace) {
        return error_set(error, STATUS_CONFLICT,
                         "%s is there already; name another path, or --replace it", restore->path);
    }
    return settle_old(restore, ownership, error);
}

static enum status bring_artifact(struct restore *restore, const char *to_artifacts,
                                  const char *hash, struct error *error)
{
    char from[KEEP_PATH_BYTES];
    char to[KEEP_PATH_BYTES];
    char name[KEEP_PATH_BYTES];
    struct stat source;
    struct stat target;
    int64_t bytes = 0;

    keep_artifact_path(restore->from, hash, from);
    keep_artifact_path(to_artifacts, hash, to);
    if (lstat(from, &source) != 0 || !S_ISREG(source.st_mode)) {
        return STATUS_OK; /* a fault that was allowed */
    }
    restore->summary->artifacts++;
    keep_mark_drop(to_artifacts, hash);
    /* One that is there may be the damage for which the backup is brought back. */
    if (lstat(to, &target) == 0 && S_ISREG(target.st_mode) && target.st_size == source.st_size &&
        keep_same(from, to)) {
        return STATUS_OK;
    }
    snprintf(name, sizeof name, "%s/%.2s", to_artifacts, hash);
    TRY(keep_directory(name, error));
    snprintf(name, sizeof name, "%s/unfinished/restore", to_artifacts);
    TRY(keep_copy(from, name, to, &bytes, error));
    restore->summary->copied++;
    restore->summary->copied_bytes += bytes;
    step(restore);
    return STATUS_OK;
}

static enum status bring_directory(struct restore *restore, const char *to_artifacts,
                                   unsigned first, struct error *error)
{
    char path[KEEP_PATH_BYTES + 32];
    char hash[SHA256_HEX_BYTES];
    char digits[4];
    DIR *directory = NULL;
    enum status status = STATUS_OK;

    snprintf(digits, sizeof digits, "%02x", first & 0xff);
    snprintf(path, sizeof path, "%s/%s", restore->from, digits);
    TRY(keep_directory_read(path, &directory, error));
    for (struct dirent *entry = directory != NULL ? readdir(directory) : NULL;
         entry != NULL && status == STATUS_OK; entry = readdir(directory)) {
        if (keep_artifact_named(entry->d_name, digits, hash)) {
            status = bring_artifact(restore, to_artifacts, hash, error);
        } else if (keep_mark_named(entry->d_name, digits, hash)) {
            status = keep_mark_copy(restore->from, to_artifacts, hash, error);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return status;
}

static enum status bring_artifacts(struct restore *restore, struct error *error)
{
    enum status status = STATUS_OK;
    struct artifacts *artifacts = calloc(1, sizeof *artifacts);

    TRY(memory_check(artifacts, error, "restore: out of memory"));
    status = artifacts_open(restore->path, artifacts, error);
    THEN(status, keep_lock(artifacts->path, true,
                           "a backup is made of the store there, its artifacts are collected, or "
                           "another one is restored",
                           &restore->artifacts_lock, error));
    for (unsigned first = 0; first < 256 && status == STATUS_OK; first++) {
        status = bring_directory(restore, artifacts->path, first, error);
    }
    free(artifacts);
    return status;
}

static enum status put_in_place(struct restore *restore, struct error *error)
{
    char parent[LIMIT_PATH_BYTES];
    char unfinished[LIMIT_PATH_BYTES + 32];

    snprintf(parent, sizeof parent, "%s", restore->path);
    char *slash = strrchr(parent, '/');
    slash[slash == parent ? 1 : 0] = '\0';
    snprintf(unfinished, sizeof unfinished, "%s.part", restore->coming);
    TRY(keep_copy(restore->database, unfinished, restore->coming, &restore->summary->database_bytes,
                  error));
    step(restore);
    TRY(keep_sync(parent, error));
    step(restore);
    if (renameat2(AT_FDCWD, restore->coming, AT_FDCWD, restore->path,
                  restore->exists ? 0 : RENAME_NOREPLACE) != 0) {
        return error_set(error, STATUS_IO, "%s: cannot take the place of %s: %s", restore->coming,
                         restore->path, strerror(errno));
    }
    step(restore);
    return keep_sync(parent, error);
}

enum status keep_restore(const char *backup, const char *store_path,
                         const struct keep_options *options, struct keep_summary *out,
                         struct error *error)
{
    struct ownership *ownership = NULL;
    struct restore restore = {.options = options, .summary = out, .artifacts_lock = -1};

    memset(out, 0, sizeof *out);
    if (strlen(backup) >= LIMIT_PATH_BYTES - 32) {
        return error_set(error, STATUS_USAGE, "restore: the backup's path is too long");
    }
    TRY(store_path_resolve(store_path, restore.path, error));
    snprintf(restore.coming, sizeof restore.coming, "%s.restoring", restore.path);
    TRY(check_backup(&restore, backup, error));
    enum status status = look_at_target(&restore, &ownership, error);
    THEN(status, bring_artifacts(&restore, error));
    THEN(status, put_in_place(&restore, error));
    if (restore.artifacts_lock >= 0) {
        close(restore.artifacts_lock);
    }
    ownership_release(ownership);
    return status;
}
