/*
 * The whole of a check, and what it says. See check.h.
 */
#include "base/clock.h"
#include "base/units.h"
#include "store/check/check_internal.h"
#include "store/sql/migrate.h"
#include "store/sql/ownership.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BUSY_PAUSE_MS = 50 };

/* ---- findings ---- */

/* Number of this kind that there were before; this one is counted. */
static int64_t count_kind(struct check *check, const char *kind)
{
    for (size_t i = 0; i < check->kind_count; i++) {
        if (strcmp(check->kinds[i].kind, kind) == 0) {
            return check->kinds[i].count++;
        }
    }
    if (check->kind_count < CHECK_KINDS_MAX) {
        check->kinds[check->kind_count].kind = kind;
        check->kinds[check->kind_count++].count = 1;
    }
    return 0;
}

static void report(struct check *check, bool note, const char *kind, const char *place,
                   const char *format, va_list args)
{
    struct store_check_finding finding = {.note = note, .kind = kind};
    struct error printable;

    *(note ? &check->summary->notes : &check->summary->faults) += 1;
    if (count_kind(check, kind) >= check->options->findings_max || check->options->found == NULL) {
        return;
    }
    error_set(&printable, STATUS_STORE, "%s", place);
    snprintf(finding.place, sizeof finding.place, "%.127s", printable.text);
    error_setv(&printable, STATUS_STORE, format, args);
    snprintf(finding.text, sizeof finding.text, "%.511s", printable.text);
    check->options->found(check->options->context, &finding);
}

void check_fault(struct check *check, const char *kind, const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(check, false, kind, place, format, args);
    va_end(args);
}

void check_note(struct check *check, const char *kind, const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(check, true, kind, place, format, args);
    va_end(args);
}

enum status check_statement(struct check *check, const char *what, enum status status,
                            const struct error *why, struct error *error)
{
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (status != STATUS_STORE && status != STATUS_LIMIT && status != STATUS_IO) {
        *error = *why;
        return status;
    }
    check_fault(check, "unreadable", check->path, "%s could not be looked at: %s", what, why->text);
    /* A failure may undo the transaction: then whoever began it has left a savepoint. */
    return db_shares(check->db) ? query_simple(check->db, STATEMENT_ROLLBACK_TO, error) : STATUS_OK;
}

/* ---- pages and references ---- */

enum status check_integrity(struct check *check, struct error *error)
{
    char sql[64];
    char line[512];
    struct error why;
    enum status status;

    snprintf(sql, sizeof sql, "PRAGMA integrity_check(%" PRIu32 ")", check->options->findings_max);
    struct query pages = query_begin_sql(check->db, sql);
    while (query_row(&pages)) {
        size_t bytes;
        const char *text = query_column_blob(&pages, 0, &bytes);
        snprintf(line, sizeof line, "%.*s", (int)bytes, text != NULL ? text : "");
        if (strcmp(line, "ok") != 0) {
            check_fault(check, "integrity", check->path, "%s", line);
        }
    }
    status = query_end(&pages, &why);
    TRY(check_statement(check, "the file's integrity", status, &why, error));
    struct query keys = query_begin_sql(check->db, "PRAGMA foreign_key_check");
    while (query_row(&keys)) {
        char table[64];
        char parent[64];
        query_column_text(&keys, 0, table, sizeof table);
        query_column_text(&keys, 2, parent, sizeof parent);
        snprintf(line, sizeof line, "%s row %" PRId64, table, query_column_int(&keys, 1));
        check_fault(check, "reference", line, "refers to a row of %s that is not there", parent);
    }
    status = query_end(&keys, &why);
    return check_statement(check, "references between rows", status, &why, error);
}

/* ---- the whole ---- */

static enum status check_version(struct check *check, struct error *error)
{
    int64_t version = 0;
    TRY(migrate_check(check->db, check->path, error));
    TRY(sqlite_db_scalar(check->db, "PRAGMA user_version", &version, error));
    if (version != (int64_t)store_migrations_count) {
        return error_set(error, STATUS_STORE,
                         "%s: the store has schema version %" PRId64 " and this program checks "
                         "%zu; `swerve status` brings it forward",
                         check->path, version, store_migrations_count);
    }
    return STATUS_OK;
}

enum status check_rows(struct check *check, struct check_references *references,
                       struct error *error)
{
    static enum status (*const parts[])(struct check *, struct error *) = {
        check_queries, check_questions, check_outcomes, check_money, check_models, check_scenarios,
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        TRY(parts[i](check, error));
    }
    return check_references_read(check, references, error);
}

static void say_what_is_unsaid(struct check *check)
{
    for (size_t i = 0; i < check->kind_count; i++) {
        int64_t more = check->kinds[i].count - check->options->findings_max;
        if (more > 0 && check->options->found != NULL) {
            struct store_check_finding finding = {.note = true, .kind = check->kinds[i].kind};
            snprintf(finding.place, sizeof finding.place, "%s", check->path);
            snprintf(finding.text, sizeof finding.text, "and %" PRId64 " more of this kind", more);
            check->options->found(check->options->context, &finding);
        }
    }
}

enum status check_files(struct check *check, struct check_references *references, int64_t begun_s,
                        struct error *error)
{
    if (!check->options->skip_artifacts && check->beside != NULL) {
        TRY(check_artifacts(check, references, begun_s, error));
    }
    say_what_is_unsaid(check);
    return STATUS_OK;
}

/* Begins to read; BUSY while somebody has the store to itself. */
static enum status begin(struct check *check, struct error *error)
{
    TRY(sqlite_db_open(check->path, SQLITE_DB_READER, &check->db, error));
    /* The sorted rows may be larger than memory should be. */
    TRY(sqlite_db_script(check->db, "PRAGMA temp_store = FILE; PRAGMA cache_size = -65536", error));
    TRY(query_simple(check->db, STATEMENT_READ_BEGIN, error));
    return check_version(check, error);
}

enum status check_begin(struct check *check, struct error *error)
{
    const struct timespec pause = {.tv_nsec = BUSY_PAUSE_MS * NS_PER_MS};
    int64_t end_ns = clock_now_ns(clock_system()) + check->options->wait_ms * NS_PER_MS;
    enum status status = begin(check, error);

    while (status == STATUS_BUSY && clock_now_ns(clock_system()) < end_ns) {
        db_close(check->db);
        check->db = NULL;
        nanosleep(&pause, NULL);
        status = begin(check, error);
    }
    if (status == STATUS_BUSY) {
        char who[64] = "another program";
        db_close(check->db); /* closing a descriptor of the file drops SQLite's locks */
        check->db = NULL;
        long pid = ownership_look(check->path).pid;
        if (pid > 0) {
            snprintf(who, sizeof who, "process %ld", pid);
        }
        return error_set(error, STATUS_BUSY,
                         "%.600s is in use: %s has it to itself, and had for %" PRId64
                         " s. Nothing was checked; try again when it is done",
                         check->path, who, check->options->wait_ms / 1000);
    }
    return status;
}

enum status store_check(const char *path, const struct store_check_options *options,
                        struct store_check_summary *out, struct error *error)
{
    struct store_check_options chosen = *options;
    struct check_references references = {.rows = NULL};
    struct check check = {.options = &chosen, .summary = out, .path = path, .beside = path};
    int64_t begun_s = (int64_t)time(NULL);

    memset(out, 0, sizeof *out);
    chosen.findings_max = options->findings_max > 0 ? options->findings_max : CHECK_FINDINGS_MAX;
    enum status status = check_begin(&check, error);
    THEN(status, check_integrity(&check, error));
    THEN(status, check_rows(&check, &references, error));
    db_close(check.db); /* and with it the transaction, which changed nothing */
    THEN(status, check_files(&check, &references, begun_s, error));
    check_references_finish(&references);
    return status;
}
