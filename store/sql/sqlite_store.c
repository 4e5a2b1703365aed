/*
 * The store in a file of SQLite's: its medium. Opening looks at the log that was left behind, takes
 * the file as its owner, and brings its schema forward. See sql_store.h.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/api/store_path.h"
#include "store/log/log_renew.h"
#include "store/log/log_scan.h"
#include "store/sql/migrate.h"
#include "store/sql/sql_store.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECKED_BYTES_MAX = 64 << 20,
    LOG_HEADER_BYTES = 32,
    LOG_FRAME_BYTES = 24, /* in front of each page */
    ALONE_TRIES = 10,     /* whether others are connected to a database whose log was left */
    ALONE_PAUSE_MS = 10,  /* between two tries: they may just be leaving */
};

static enum status intact(void *context, int log_pages, struct error *error)
{
    const struct sql_store *store = context;
    int64_t bytes =
        log_pages > 0 ? LOG_HEADER_BYTES + log_pages * (LOG_FRAME_BYTES + store->page_bytes) : 0;

    return ownership_check(store->ownership, bytes, error);
}

/* The file's connection comes last: it checkpoints. */
static void finish_file(struct sql_store *store)
{
    struct error error;

    if (store->db != NULL && ownership_check(store->ownership, 0, &error) != STATUS_OK) {
        log_event(store->logger, LOG_ERROR, "%s", error.text);
        sqlite_db_abandon(store->db); /* what lies at the path now is not ours */
    }
    db_close(store->db);
    ownership_release(store->ownership);
}

/* ---- open ---- */

/* The file is a store of this program's. Leaves it open, and as it was. */
static enum status look_at(struct sql_store *store, struct error *error)
{
    enum status status = sqlite_db_open(store->path, SQLITE_DB_WRITER, &store->db, error);
    return status == STATUS_OK ? migrate_check(store->db, store->path, error) : status;
}

/* Findings while a store is being opened. */
struct opening {
    struct log_scan log; /* what the log that was left holds, zeros without one */
    bool shared;         /* a log was left, and another program has it open */
};

/* The file is a whole store. Where its log is damaged, every index is compared, and the log is kept
 * before anything changes. */
static enum status check_whole(struct sql_store *store, struct db *db, const struct log_scan *log,
                               struct error *error)
{
    if (!log->in_doubt) {
        return sqlite_db_quick_check(db, error);
    }
    enum status status = sqlite_db_check(db, error);
    return status == STATUS_OK ? log_keep(store->path, error) : status;
}

/* Looks at a file with a log that was left, and renews the log when nobody else is connected. */
static enum status renew(struct sql_store *store, struct opening *opening, struct error *error)
{
    struct db *db = NULL;
    enum status status = sqlite_db_open(store->path, SQLITE_DB_ALONE, &db, error);

    opening->shared = status == STATUS_BUSY;
    if (status != STATUS_OK) {
        return status == STATUS_BUSY ? STATUS_OK : status;
    }
    status = migrate_check(db, store->path, error);
    THEN(status, log_scan(store->path, ownership_file(store->ownership), &opening->log, error));
    if (status == STATUS_OK) { /* only a file that is known to be a whole store is changed */
        status = check_whole(store, db, &opening->log, error);
    }
    THEN(status, log_renew(store->path, opening->log.bytes, error));
    db_close(db);
    return status;
}

static enum status renew_when_alone(struct sql_store *store, struct opening *opening,
                                    struct error *error)
{
    const struct timespec pause = {.tv_nsec = ALONE_PAUSE_MS * NS_PER_MS};
    enum status status = renew(store, opening, error);

    for (int i = 1; i < ALONE_TRIES && status == STATUS_OK && opening->shared; i++) {
        nanosleep(&pause, NULL);
        status = renew(store, opening, error);
    }
    return status;
}

/* Opens the file and looks at it: whole where it was not closed cleanly (a log was left) or is so
 * small that this takes a few hundred milliseconds at most. */
static enum status open_checked(struct sql_store *store, struct opening *opening,
                                struct error *error)
{
    struct stat info;
    bool left = log_left(store->path);
    bool check =
        stat(store->path, &info) == 0 && info.st_size > 0 && info.st_size < CHECKED_BYTES_MAX;

    if (left) {
        TRY(renew_when_alone(store, opening, error));
    }
    TRY(look_at(store, error));
    if (opening->shared) {
        TRY(log_scan(store->path, ownership_file(store->ownership), &opening->log, error));
    }
    if (opening->shared || (check && !left)) {
        TRY(check_whole(store, store->db, &opening->log, error));
    }
    return STATUS_OK;
}

/* A log that could not be renewed is copied into the database, so that it begins anew. */
static enum status begin_anew(struct sql_store *store, struct error *error)
{
    log_event(store->logger, LOG_WARNING,
              "%s: another program has the database open, so the log that was left is copied into "
              "it instead of being renewed",
              store->path);
    return db_checkpoint(store->db, error);
}

/* The loss by a damaged log is said to whoever opens the store, and kept in it. */
static enum status note_losses(struct sql_store *store, const struct log_scan *log,
                               struct error *error)
{
    char text[512];

    if (!log_scan_sentence(log, text)) {
        return STATUS_OK;
    }
    log_event(store->logger, LOG_ERROR, "%.300s: %s. The log was kept as %.100s-wal-damaged",
              store->path, text, strrchr(store->path, '/') + 1);
    struct query query = query_begin(store->db, STATEMENT_LOG_LOSS_ADD);
    query_int(&query, log->discarded);
    query_int(&query, log->discarded_commits);
    query_int(&query, log->lost_commits);
    return query_run(&query, error);
}

static enum status open_database(struct sql_store *store, struct error *error)
{
    struct opening opening = {.shared = false};
    enum status status = open_checked(store, &opening, error);

    THEN(status, sqlite_db_use_wal(store->db, error));
    if (status == STATUS_OK && opening.shared) {
        status = begin_anew(store, error);
    }
    THEN(status, migrate_apply(store->db, store->path, store->logger, error));
    THEN(status, note_losses(store, &opening.log, error));
    THEN(status, artifacts_open(store->path, &store->artifacts, error));
    THEN(status, lease_restart(store, error));
    THEN(status, redrive_restart(store, error));
    THEN(status, sqlite_db_scalar(store->db, "PRAGMA page_size", &store->page_bytes, error));
    return status == STATUS_OK ? ownership_watch(store->ownership, error) : status;
}

/* The file belongs to this process from here on. */
static enum status own(struct sql_store *store, const char *path, struct error *error)
{
    char shm[LIMIT_PATH_BYTES + 8];
    struct stat info;
    TRY(store_path_resolve(path, store->path, error));
    TRY(store->intent != STORE_MAKE ? store_path_check(store->path, error) : STATUS_OK);
    TRY(ownership_take(store->path, &store->ownership, error));
    if (stat(store->path, &info) == 0 && info.st_size == 0) {
        /* A new file; shared memory at its name is of one that was removed, whose owner may live.
         */
        snprintf(shm, sizeof shm, "%s-shm", store->path);
        unlink(shm);
    }
    return STATUS_OK;
}

static enum status open_file(struct sql_store *store, void *path, struct error *error)
{
    enum status status = own(store, path, error);
    return status == STATUS_OK ? open_database(store, error) : status;
}

static enum status open_file_reader(struct sql_store *store, struct db **out, struct error *error)
{
    return sqlite_db_open(store->path, SQLITE_DB_READER, out, error);
}

static const struct store_medium file_medium = {
    .name = "sqlite",
    .open = open_file,
    .open_reader = open_file_reader,
    .intact = intact,
    .finish = finish_file,
};

/* The path is only borrowed while opening. */
static enum status open_path(const char *path, const struct store_config *config, bool stepped,
                             struct store **out, struct error *error)
{
    size_t path_bytes = strlen(path);

    if (path_bytes == 0 || path_bytes >= LIMIT_PATH_BYTES - 32) {
        return error_set(error, STATUS_LIMIT, "the store's path must have 1 to %d bytes",
                         LIMIT_PATH_BYTES - 33);
    }
    return sql_store_open_medium(&file_medium, (void *)(uintptr_t)path, config, stepped, out,
                                 error);
}

enum status store_sqlite_open(const char *path, const struct store_config *config,
                              struct store **out, struct error *error)
{
    return open_path(path, config, false, out, error);
}

enum status sql_store_open_stepped(const char *path, const struct store_config *config,
                                   struct store **out, struct error *error)
{
    return open_path(path, config, true, out, error);
}
