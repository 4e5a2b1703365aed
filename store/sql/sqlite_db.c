/*
 * Connections, statements and error sentences on top of SQLite. See sqlite_db.h.
 *
 * Every result code passes through note_code, which remembers whether the disk has failed: after a
 * failed write or fsync nobody knows what reached the disk, so the owner must stop writing.
 */
#include "store/sql/sqlite_db.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "schemas/limits.h"
#include "store/api/store_path.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    WAL_KEPT_BYTES = 64 << 20, /* a log that grew larger is cut back when it is reset */
    WRITER_CACHE_KIB = 32768,
    READER_CACHE_KIB = 8192,
    LIMIT_STEPS = 1000, /* of SQLite's machine between two looks at the clock: some 20 us */
};

static const struct db_driver sqlite_driver;

struct sqlite_db {
    struct db base; /* first */
    sqlite3 *handle;
    struct sqlite3_stmt *statements[STATEMENT_COUNT];
    const struct sqlite_db_probe *probe; /* NULL outside tests */
    int64_t limit_ms;                    /* of a query; 0: none */
    int64_t until_ns;                    /* of CLOCK_MONOTONIC, when it is over */
    atomic_bool interrupted;
    int wal_pages;
    bool failed;
    char path[LIMIT_PATH_BYTES];
};

static struct sqlite_db *sqlite_of(struct db *db)
{
    return (struct sqlite_db *)db;
}

static const struct sqlite_db *sqlite_of_const(const struct db *db)
{
    return (const struct sqlite_db *)db;
}

static bool disk_failure(int code)
{
    int primary = code & 0xff;
    return primary == SQLITE_IOERR || primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
}

static int note_code(struct sqlite_db *db, int code)
{
    if (disk_failure(code) && (code & 0xff) != SQLITE_NOTADB) {
        db->failed = true;
    }
    return code;
}

static enum status damaged(const struct sqlite_db *db, const char *how, struct error *error)
{
    return error_set(error, STATUS_STORE,
                     "%s: the database file is damaged (%s); nothing more is written to it. "
                     "Restore a backup, or move it away with its -wal file and recover what can be "
                     "read: sqlite3 DAMAGED .recover | sqlite3 %s",
                     db->path, how, db->path);
}

/* The limit of this process on the size of a file, in words; SQLite tells it as a failing disk. */
static const char *size_limit(char out[96])
{
    struct rlimit limit;
    out[0] = '\0';
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        snprintf(out, 96, ", or a file reached this process's limit of %llu bytes (ulimit -f)",
                 (unsigned long long)limit.rlim_cur);
    }
    return out;
}

/* The sentence for a result code; `db->handle` may be NULL. */
static enum status fail(struct sqlite_db *db, int code, struct error *error)
{
    const char *text = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
    char limit[96];

    note_code(db, code);
    switch (code & 0xff) {
    case SQLITE_FULL:
        return error_set(error, STATUS_IO,
                         "%s: the disk is full%s; nothing of this operation was stored. Free some "
                         "space and try again",
                         db->path, size_limit(limit));
    case SQLITE_IOERR:
        return error_set(error, STATUS_IO, "%s: the disk failed (%s, code %d)%s", db->path,
                         sqlite3_errstr(code), code, size_limit(limit));
    case SQLITE_NOMEM:
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", db->path);
    case SQLITE_INTERRUPT:
        if (atomic_load(&db->interrupted)) {
            return error_set(error, STATUS_BUSY, "%s: the store's server is stopping, try again",
                             db->path);
        }
        return error_set(error, STATUS_TIMEOUT,
                         "%s: the answer took longer than %lld ms and was given up; ask for less "
                         "(one suite, one job, a smaller page)",
                         db->path, (long long)db->limit_ms);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(error, STATUS_BUSY,
                         "%s: another process has the database open for writing", db->path);
    case SQLITE_TOOBIG:
        return error_set(error, STATUS_LIMIT, "%s: a value is too large to be stored", db->path);
    case SQLITE_NOTADB:
        return error_set(error, STATUS_STORE, "%s: this is not a job store (not an SQLite file)",
                         db->path);
    case SQLITE_CORRUPT:
        return damaged(db, text, error);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: {
        int cause = db->handle != NULL ? sqlite3_system_errno(db->handle) : 0;
        if (store_path_is_read_only(db->path)) {
            return store_path_say_read_only(db->path, "folder", db->path, errno, error);
        }
        return error_set(error, STATUS_STORE, "%s: cannot open the job store for writing (%s)",
                         db->path, cause != 0 ? strerror(cause) : text);
    }
    default:
        return error_set(error, STATUS_STORE, "%s: %s (SQLite code %d)", db->path, text, code);
    }
}

static void set_limits(sqlite3 *handle)
{
    static const struct {
        int limit;
        int value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, LIMIT_DOCUMENT_BYTES + (1 << 20)},
        {SQLITE_LIMIT_SQL_LENGTH, 1 << 17},
        {SQLITE_LIMIT_COLUMN, 128},
        {SQLITE_LIMIT_EXPR_DEPTH, 64},
        {SQLITE_LIMIT_COMPOUND_SELECT, 11},
        {SQLITE_LIMIT_FUNCTION_ARG, 16},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 128},
        {SQLITE_LIMIT_VARIABLE_NUMBER, 128},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        sqlite3_limit(handle, limits[i].limit, limits[i].value);
    }
}

/* Not 0: the query is given up. */
static int on_progress(void *context)
{
    struct sqlite_db *db = context;
    return atomic_load(&db->interrupted) || clock_monotonic_ns() > db->until_ns;
}

static void driver_limit(struct db *base, int64_t limit_ms)
{
    struct sqlite_db *db = sqlite_of(base);
    db->limit_ms = limit_ms;
    db->until_ns = clock_monotonic_ns() + limit_ms * NS_PER_MS;
    atomic_store(&db->interrupted, false);
    sqlite3_progress_handler(db->handle, limit_ms > 0 ? LIMIT_STEPS : 0, on_progress, db);
}

static void driver_interrupt(struct db *base)
{
    struct sqlite_db *db = sqlite_of(base);
    atomic_store(&db->interrupted, true);
}

static int on_commit(void *context, sqlite3 *handle, const char *name, int pages)
{
    struct sqlite_db *db = context;
    (void)handle;
    (void)name;
    db->wal_pages = pages;
    if (db->probe != NULL) {
        db->probe->committed(db->probe->context);
    }
    return SQLITE_OK;
}

/* Nobody asks how much memory SQLite has; to count it, every allocation would take a lock that all
 * connections share. Too late where the process uses the library already, which costs that time. */
static void configure_library(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int open_handle(struct sqlite_db *db, enum sqlite_db_mode mode)
{
    static pthread_once_t configured = PTHREAD_ONCE_INIT;
    pthread_once(&configured, configure_library);
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (mode == SQLITE_DB_READER   ? SQLITE_OPEN_READONLY
                 : mode == SQLITE_DB_WRITER ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                            : SQLITE_OPEN_READWRITE);
    int code = sqlite3_open_v2(db->path, &db->handle, flags, NULL);

    if (code != SQLITE_OK) {
        return code;
    }
    set_limits(db->handle);
    sqlite3_busy_timeout(db->handle, 0);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    /* Also replaces the automatic checkpoint: when to do one is the writer thread's decision. */
    sqlite3_wal_hook(db->handle, on_commit, db);
    return SQLITE_OK;
}

static void driver_close(struct db *base)
{
    struct sqlite_db *db = sqlite_of(base);
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(db->statements[i]);
    }
    CHECK(sqlite3_close(db->handle) == SQLITE_OK); /* anything else is a statement left open */
    free(db);
}

enum status sqlite_db_log_check(const char *path, struct error *error)
{
    char log[LIMIT_PATH_BYTES + 8];
    struct stat info;

    snprintf(log, sizeof log, "%s-wal", path);
    if (stat(log, &info) != 0 || info.st_size == 0) {
        return STATUS_OK;
    }
    bool there = stat(path, &info) == 0;
    if (there && info.st_size > 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_STORE,
                     "%s is there: its database %s. It holds work that was acknowledged, and was "
                     "left as it is; put its database beside it, or move it away",
                     log, there ? "is empty" : "is not");
}

enum status sqlite_db_open(const char *path, enum sqlite_db_mode mode, struct db **out,
                           struct error *error)
{
    static const char settings[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA mmap_size = 0;"
                                   "PRAGMA secure_delete = OFF;"
                                   "PRAGMA cell_size_check = ON;";
    /* The library may have been built to read names as URIs; a path is only ever a path. */
    const char *prefix = strncmp(path, "file:", 5) == 0 || path[0] == ':' ? "./" : "";
    struct sqlite_db *db = calloc(1, sizeof *db);

    TRY(memory_check(db, error, "%s: out of memory", path));
    db->base.driver = &sqlite_driver;
    int bytes = snprintf(db->path, sizeof db->path, "%s%s", prefix, path);
    if (path[0] == '\0' || bytes < 0 || (size_t)bytes >= sizeof db->path - 16) {
        free(db);
        return error_set(error, STATUS_LIMIT, "the store's path must have 1 to %d bytes",
                         LIMIT_PATH_BYTES - 17);
    }
    enum status log = sqlite_db_log_check(path, error);
    if (log != STATUS_OK) {
        free(db);
        return log;
    }
    int code = open_handle(db, mode);
    if (code == SQLITE_OK && mode == SQLITE_DB_ALONE) {
        /* Before anything is read: the log is opened with the lock, or not at all. */
        code = sqlite3_exec(db->handle,
                            "PRAGMA locking_mode = EXCLUSIVE; SELECT COUNT(*) FROM sqlite_schema",
                            NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_exec(db->handle, settings, NULL, NULL, NULL);
    }
    if (code == SQLITE_OK) {
        char cache[64];
        snprintf(cache, sizeof cache, "PRAGMA cache_size = -%d",
                 mode == SQLITE_DB_WRITER ? WRITER_CACHE_KIB : READER_CACHE_KIB);
        code = sqlite3_exec(db->handle, cache, NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        enum status status = fail(db, code, error);
        driver_close(&db->base);
        return status;
    }
    *out = &db->base;
    return STATUS_OK;
}

void sqlite_db_set_probe(struct db *base, const struct sqlite_db_probe *probe)
{
    struct sqlite_db *db = sqlite_of(base);
    /* Statements that were prepared from other texts are prepared again. */
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(db->statements[i]);
        db->statements[i] = NULL;
    }
    db->probe = probe;
}

enum status sqlite_db_use_wal(struct db *base, struct error *error)
{
    struct sqlite_db *db = sqlite_of(base);
    char mode[16] = "";
    char kept[64];
    struct query query = query_begin_sql(base, "PRAGMA journal_mode = WAL");

    if (query_row(&query)) {
        query_column_text(&query, 0, mode, sizeof mode);
    }
    enum status status = query_end(&query, error);
    if (status == STATUS_OK && strcmp(mode, "wal") != 0) {
        status = error_set(error, STATUS_STORE,
                           "%s: the file system does not support write-ahead logging (journal mode "
                           "is %s); put the store on a local disk",
                           db->path, mode);
    }
    if (status != STATUS_OK) {
        return status;
    }
    snprintf(kept, sizeof kept, "PRAGMA journal_size_limit = %d", WAL_KEPT_BYTES);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return sqlite_db_script(base, kept, error);
}

void sqlite_db_abandon(struct db *base)
{
    struct sqlite_db *db = sqlite_of(base);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

enum status sqlite_db_script(struct db *base, const char *sql, struct error *error)
{
    struct sqlite_db *db = sqlite_of(base);
    int code = note_code(db, sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
    return code == SQLITE_OK ? STATUS_OK : fail(db, code, error);
}

enum status sqlite_db_scalar(struct db *base, const char *sql, int64_t *out, struct error *error)
{
    int64_t value = 0;
    struct query query = query_begin_sql(base, sql);

    if (query_row(&query)) {
        value = query_column_int(&query, 0);
    }
    TRY(query_end(&query, error));
    *out = value;
    return STATUS_OK;
}

/* A check calls a page that it had no memory to read a finding like any other, and names the code.
 */
static bool found_no_memory(const char *finding)
{
    static const char *const before[] = {"error code=", "error code "};

    for (size_t i = 0; i < COUNT_OF(before); i++) {
        const char *at = strstr(finding, before[i]);
        long code = at != NULL ? strtol(at + strlen(before[i]), NULL, 10) : SQLITE_OK;
        if (code == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM) {
            return true;
        }
    }
    return false;
}

/* PRAGMA quick_check or integrity_check up to its first finding, which may stand behind a line that
 * names the database. */
static enum status run_check(struct sqlite_db *db, const char *pragma, struct error *error)
{
    char finding[256] = "";
    struct query integrity = query_begin_sql(&db->base, pragma);

    if (query_row(&integrity)) {
        const void *text = query_column_blob(&integrity, 0, &(size_t){0});
        snprintf(finding, sizeof finding, "%s", text != NULL ? (const char *)text : "");
    }
    enum status status = query_end(&integrity, error);
    if (status != STATUS_OK || strcmp(finding, "ok") == 0) {
        return status;
    }
    if (found_no_memory(finding)) {
        return fail(db, SQLITE_NOMEM, error);
    }
    char *line = strncmp(finding, "*** in", 6) == 0 ? strchr(finding, '\n') : NULL;
    line = line != NULL ? line + 1 : finding;
    line[strcspn(line, "\n")] = '\0';
    return damaged(db, line, error);
}

enum status sqlite_db_quick_check(struct db *base, struct error *error)
{
    return run_check(sqlite_of(base), "PRAGMA quick_check(1)", error);
}

enum status sqlite_db_check(struct db *base, struct error *error)
{
    struct sqlite_db *db = sqlite_of(base);
    TRY(run_check(db, "PRAGMA integrity_check(1)", error));
    struct query keys = query_begin_sql(base, "PRAGMA foreign_key_check");
    bool dangling = query_row(&keys);
    TRY(query_end(&keys, error));
    if (dangling) {
        return error_set(error, STATUS_STORE, "%s: a reference between rows is broken", db->path);
    }
    return STATUS_OK;
}

static bool driver_in_transaction(const struct db *base)
{
    const struct sqlite_db *db = sqlite_of_const(base);
    return sqlite3_get_autocommit(db->handle) == 0;
}

static bool driver_failed(const struct db *base)
{
    const struct sqlite_db *db = sqlite_of_const(base);
    return db->failed;
}

static int64_t driver_last_id(const struct db *base)
{
    const struct sqlite_db *db = sqlite_of_const(base);
    return sqlite3_last_insert_rowid(db->handle);
}

static int64_t driver_changes(const struct db *base)
{
    const struct sqlite_db *db = sqlite_of_const(base);
    return sqlite3_changes64(db->handle);
}

static int driver_wal_pages(const struct db *base)
{
    const struct sqlite_db *db = sqlite_of_const(base);
    return db->wal_pages;
}

static enum status driver_checkpoint(struct db *base, struct error *error)
{
    struct sqlite_db *db = sqlite_of(base);
    int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    note_code(db, code);
    /* Busy means that a reader still needs the log; the next one will get further. */
    return code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY ? STATUS_OK : fail(db, code, error);
}

/* ---- copies ---- */

static int copy_pages(struct db *db, sqlite3 *target)
{
    int code = sqlite3_exec(target, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL,
                            NULL, NULL);
    sqlite3_backup *copy = code == SQLITE_OK
                               ? sqlite3_backup_init(target, "main", sqlite_of(db)->handle, "main")
                               : NULL;

    if (copy == NULL) {
        return code != SQLITE_OK ? code : sqlite3_errcode(target);
    }
    code = sqlite3_backup_step(copy, -1);
    int finished = sqlite3_backup_finish(copy);
    return code == SQLITE_DONE ? finished : code;
}

/* `sql` on a connection of its own to the target; without one, the pages. */
static enum status in_target(struct db *db, const char *path, const char *sql, struct error *error)
{
    struct sqlite_db target = {.handle = NULL};
    snprintf(target.path, sizeof target.path, "%s", path);
    int code = sqlite3_open_v2(path, &target.handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_EXRESCODE,
                               NULL);
    if (code == SQLITE_OK) {
        code = sql != NULL ? sqlite3_exec(target.handle, sql, NULL, NULL, NULL)
                           : copy_pages(db, target.handle);
    }
    enum status status = code == SQLITE_OK ? STATUS_OK : fail(&target, code, error);
    sqlite3_close(target.handle);
    return status;
}

enum status sqlite_db_copy(struct db *db, const char *path, struct error *error)
{
    TRY(in_target(db, path, NULL, error));
    /* The pages say that there is a log; the copy is to be one file. */
    return in_target(db, path, "PRAGMA journal_mode = DELETE", error);
}

/* ---- queries ---- */

static struct query query_of(struct sqlite_db *db, struct sqlite3_stmt *statement, int code)
{
    return (struct query){.db = &db->base,
                          .statement = statement,
                          .next = 1,
                          .code = note_code(db, code),
                          .kept = false};
}

static struct query driver_begin(struct db *base, enum statement statement)
{
    struct sqlite_db *db = sqlite_of(base);
    int code = SQLITE_OK;

    if (db->statements[statement] == NULL) {
        char *text = statement_text(statement);
        const char *sql = text;
        if (text != NULL && db->probe != NULL) {
            sql = db->probe->text(db->probe->context, statement, text);
        }
        code = sql != NULL ? sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                                &db->statements[statement], NULL)
                           : SQLITE_NOMEM;
        free(text);
    }
    struct query query = query_of(db, db->statements[statement], code);
    query.kept = true;
    return query;
}

static struct query driver_begin_sql(struct db *base, const char *sql)
{
    struct sqlite_db *db = sqlite_of(base);
    struct sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v3(db->handle, sql, -1, 0, &statement, NULL);
    return query_of(db, statement, code);
}

static void bound(struct query *query, int code)
{
    query->next++;
    if (query->code == SQLITE_OK) {
        query->code = code;
    }
}

static void driver_bind_int(struct query *query, int64_t value)
{
    bound(query, sqlite3_bind_int64(query->statement, query->next, value));
}

static void driver_bind_real(struct query *query, double value)
{
    bound(query, sqlite3_bind_double(query->statement, query->next, value));
}

static void driver_bind_text(struct query *query, const char *text)
{
    bound(query, sqlite3_bind_text(query->statement, query->next, text, -1, SQLITE_STATIC));
}

static void driver_bind_blob(struct query *query, const void *data, size_t bytes)
{
    bound(query, sqlite3_bind_blob64(query->statement, query->next, data, bytes, SQLITE_STATIC));
}

static void driver_bind_null(struct query *query)
{
    bound(query, sqlite3_bind_null(query->statement, query->next));
}

static bool driver_row(struct query *query)
{
    if (query->code != SQLITE_OK && query->code != SQLITE_ROW) {
        return false;
    }
    query->code = note_code(sqlite_of(query->db), sqlite3_step(query->statement));
    return query->code == SQLITE_ROW;
}

static bool driver_column_is_null(const struct query *query, int column)
{
    return sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

static int64_t driver_column_int(const struct query *query, int column)
{
    return sqlite3_column_int64(query->statement, column);
}

static double driver_column_real(const struct query *query, int column)
{
    return driver_column_is_null(query, column) ? (double)NAN
                                                : sqlite3_column_double(query->statement, column);
}

static void driver_column_text(struct query *query, int column, char *out, size_t capacity)
{
    const unsigned char *text = sqlite3_column_text(query->statement, column);
    size_t bytes = text != NULL ? (size_t)sqlite3_column_bytes(query->statement, column) : 0;

    if (bytes >= capacity) {
        query->code = SQLITE_TOOBIG;
        bytes = 0;
    }
    if (bytes > 0) {
        memcpy(out, text, bytes);
    }
    out[bytes] = '\0';
}

static bool driver_column_overflow(struct query *query)
{
    bool overflow = query->code == SQLITE_TOOBIG;
    query->code = overflow ? SQLITE_ROW : query->code;
    return overflow;
}

static const void *driver_column_blob(const struct query *query, int column, size_t *bytes)
{
    const void *data = sqlite3_column_blob(query->statement, column);
    *bytes = (size_t)sqlite3_column_bytes(query->statement, column);
    return data;
}

static enum status driver_end(struct query *query, struct error *error)
{
    int code = query->code;
    int end = SQLITE_OK;
    enum status status = STATUS_OK;

    if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
        status = fail(sqlite_of(query->db), code, error);
    }
    /* The end repeats the code of a step that failed. After a good one it tells of a column that
     * could not be read: there was no memory, and a NULL was handed out instead. */
    if (query->kept && query->statement != NULL) {
        end = sqlite3_reset(query->statement);
        sqlite3_clear_bindings(query->statement);
    } else {
        end = sqlite3_finalize(query->statement);
    }
    query->statement = NULL;
    return status == STATUS_OK && end != SQLITE_OK ? fail(sqlite_of(query->db), end, error)
                                                   : status;
}

static const struct db_driver sqlite_driver = {
    .name = "sqlite",
    .close = driver_close,
    .limit = driver_limit,
    .interrupt = driver_interrupt,
    .in_transaction = driver_in_transaction,
    .failed = driver_failed,
    .last_id = driver_last_id,
    .changes = driver_changes,
    .wal_pages = driver_wal_pages,
    .checkpoint = driver_checkpoint,
    .begin = driver_begin,
    .begin_sql = driver_begin_sql,
    .bind_int = driver_bind_int,
    .bind_real = driver_bind_real,
    .bind_text = driver_bind_text,
    .bind_blob = driver_bind_blob,
    .bind_null = driver_bind_null,
    .row = driver_row,
    .column_is_null = driver_column_is_null,
    .column_int = driver_column_int,
    .column_real = driver_column_real,
    .column_text = driver_column_text,
    .column_overflow = driver_column_overflow,
    .column_blob = driver_column_blob,
    .end = driver_end,
};
