/*
 * Migrations, and a store's schema against those that it says it has seen. See migrate.h.
 *
 * What should be there is read from the migrations themselves (schemas/sql), so there is no second
 * list to keep.
 *
 * A migration's text is read as a list of changes, each named by the first words of a statement:
 * CREATE TABLE, INDEX; DROP; ALTER TABLE .. RENAME TO; ALTER TABLE .. ADD COLUMN. Whatever else a
 * statement does (INSERT, UPDATE) leaves names alone.
 */
#include "store/sql/migrate.h"

#include "base/check.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { WORDS_MAX = 7, NAME_BYTES = 48, CHANGES_MAX = 256 };

enum change_kind { CHANGE_MAKES, CHANGE_DROPS, CHANGE_ADDS_COLUMN };

struct change {
    enum change_kind kind;
    size_t migration; /* index in store_migrations */
    char name[NAME_BYTES];
    char column[NAME_BYTES]; /* of ADDS_COLUMN: the column; `name` is its table */
};

struct changes {
    size_t count;
    struct change list[CHANGES_MAX];
};

/* The first words of one statement. */
struct words {
    char list[WORDS_MAX][NAME_BYTES];
    int count;
};

/* ---- reading migrations ---- */

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at) || strncmp(at, "--", 2) == 0) {
        at += *at == '-' ? strcspn(at, "\n") : 1;
    }
    return at;
}

/* Takes the statement at `at`; where the next one begins, NULL at the end of the text. */
static const char *next_statement(const char *at, struct words *out)
{
    out->count = 0;
    for (at = skip_space(at); *at != '\0' && *at != ';'; at = skip_space(at)) {
        size_t bytes = 0;
        while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_') {
            bytes++;
        }
        if (bytes > 0 && out->count < WORDS_MAX) {
            CHECK(bytes < NAME_BYTES);
            memcpy(out->list[out->count], at, bytes);
            out->list[out->count++][bytes] = '\0';
        }
        if (bytes == 0) { /* a text in quotes is one thing */
            bytes = *at == '\'' ? 2 + strcspn(at + 1, "'") : 1;
        }
        at += bytes;
    }
    return *at == ';' ? at + 1 : out->count > 0 ? at : NULL;
}

static bool begins(const struct words *words, const char *first, const char *second)
{
    return strcmp(words->list[0], first) == 0 && strcmp(words->list[1], second) == 0;
}

static void add(struct changes *changes, enum change_kind kind, size_t migration, const char *name,
                const char *column)
{
    CHECK(changes->count < CHANGES_MAX);
    struct change *change = &changes->list[changes->count++];
    change->kind = kind;
    change->migration = migration;
    memcpy(change->name, name, strlen(name) + 1);
    memcpy(change->column, column, strlen(column) + 1);
}

static void read_statement(const struct words *words, size_t migration, struct changes *out)
{
    const char(*word)[NAME_BYTES] = words->list;
    if (words->count < 3) {
        return;
    }
    if (begins(words, "CREATE", "TABLE") || begins(words, "CREATE", "INDEX")) {
        add(out, CHANGE_MAKES, migration, word[2], "");
    } else if (begins(words, "CREATE", "UNIQUE") && words->count > 3) {
        add(out, CHANGE_MAKES, migration, word[3], "");
    } else if (begins(words, "DROP", "TABLE") || begins(words, "DROP", "INDEX")) {
        add(out, CHANGE_DROPS, migration, word[2], "");
    } else if (begins(words, "ALTER", "TABLE") && words->count > 5) {
        if (strcmp(word[3], "RENAME") == 0 && strcmp(word[4], "TO") == 0) {
            add(out, CHANGE_DROPS, migration, word[2], "");
            add(out, CHANGE_MAKES, migration, word[5], "");
        } else if (strcmp(word[3], "ADD") == 0) {
            add(out, CHANGE_ADDS_COLUMN, migration, word[2], word[5]);
        }
    }
}

static void read_migrations(struct changes *out)
{
    struct words words;

    out->count = 0;
    for (size_t i = 0; i < store_migrations_count; i++) {
        const char *at = store_migrations[i].text;
        while ((at = next_statement(at, &words)) != NULL) {
            read_statement(&words, i, out);
        }
    }
}

/* Is there a table or index of this name once `version` migrations have been applied? */
static bool made_until(const struct changes *changes, const char *name, int64_t version)
{
    bool there = false;

    for (size_t i = 0; i < changes->count; i++) {
        const struct change *change = &changes->list[i];
        if ((int64_t)change->migration < version && change->kind != CHANGE_ADDS_COLUMN &&
            strcmp(change->name, name) == 0) {
            there = change->kind == CHANGE_MAKES;
        }
    }
    return there;
}

static bool ever_made(const struct changes *changes, const char *name)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->list[i].kind == CHANGE_MAKES && strcmp(changes->list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- the file ---- */

/* The file has the table or index that the change makes, or the column. */
static enum status look_for(struct db *db, const struct change *change, bool *found,
                            struct error *error)
{
    bool column = change->kind == CHANGE_ADDS_COLUMN;
    struct query query =
        query_begin(db, column ? STATEMENT_SCHEMA_COLUMN : STATEMENT_SCHEMA_OBJECT);

    query_text(&query, change->name);
    if (column) {
        query_text(&query, change->column);
    }
    *found = query_row(&query);
    return query_end(&query, error);
}

static enum status lowered(const char *path, int64_t version, size_t index, const char *what,
                           struct error *error)
{
    return error_set(error, STATUS_STORE,
                     "%s: the store says schema version %" PRId64 ", but it has \"%s\" of version "
                     "%zu (%s): its user_version was lowered by another program. Nothing was "
                     "changed; restore a backup, or set PRAGMA user_version to what it was",
                     path, version, what, index + 1, store_migrations[index].name);
}

static enum status missing(const char *path, int64_t version, size_t index, const char *what,
                           struct error *error)
{
    return error_set(error, STATUS_STORE,
                     "%s: the store says schema version %" PRId64
                     ", but \"%s\" of version %zu (%s) "
                     "is missing: another program changed its schema or its user_version. Nothing "
                     "was changed; restore a backup",
                     path, version, what, index + 1, store_migrations[index].name);
}

/* A table that one migration makes is there if it has been applied, and not if it has not. */
static enum status check_change(struct db *db, const char *path, int64_t version,
                                const struct changes *changes, const struct change *change,
                                struct error *error)
{
    bool column = change->kind == CHANGE_ADDS_COLUMN;
    bool applied = (int64_t)change->migration < version;
    bool expected = made_until(changes, change->name, version) && (applied || !column);
    bool found = false;

    if (change->kind == CHANGE_DROPS) {
        return STATUS_OK;
    }
    enum status status = look_for(db, change, &found, error);
    const char *what = column ? change->column : change->name;
    if (status == STATUS_OK && !applied && found && !expected) {
        return lowered(path, version, change->migration, what, error);
    }
    if (status == STATUS_OK && applied && !found && expected) {
        return missing(path, version, change->migration, what, error);
    }
    return status;
}

/* Whatever no migration makes. Tables that SQLite keeps for itself begin with "sqlite_". */
static enum status check_foreign(struct db *db, const char *path, const struct changes *changes,
                                 struct error *error)
{
    char names[512] = "";
    size_t used = 0;
    struct query query = query_begin(db, STATEMENT_SCHEMA_LIST);

    while (query_row(&query)) {
        char type[16];
        char name[128];
        size_t bytes = 0;
        query_column_text(&query, 0, type, sizeof type);
        const char *text = query_column_blob(&query, 1, &bytes);
        snprintf(name, sizeof name, "%.*s", (int)bytes, text != NULL ? text : "");
        bool ours = strcmp(type, "table") == 0 || strcmp(type, "index") == 0;
        if ((!ours || !ever_made(changes, name)) && used < sizeof names - 1) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s \"%s\"",
                                     used > 0 ? ", " : "", type, name);
        }
    }
    enum status status = query_end(&query, error);
    if (status == STATUS_OK && used > 0) {
        return error_set(error, STATUS_STORE,
                         "%s: the store holds what is not its own: %s. Triggers and indexes of "
                         "others would act inside its transactions. Nothing was changed; drop "
                         "them, or keep them in a database of their own",
                         path, names);
    }
    return status;
}

/* The file holds what the first `version` migrations make, by name, and nothing else: a trigger
 * that another program added would run inside our transactions, and a version that was lowered by
 * hand would have a migration applied twice. STATUS_STORE names what is missing, too many or of a
 * later version, and what to do. Writes nothing. */
static enum status schema_check(struct db *db, const char *path, int64_t version,
                                struct error *error)
{
    struct changes changes;

    read_migrations(&changes);
    enum status status = check_foreign(db, path, &changes, error);
    for (size_t i = 0; i < changes.count && status == STATUS_OK; i++) {
        status = check_change(db, path, version, &changes, &changes.list[i], error);
    }
    return status;
}

/* ---- versions ---- */

enum { APPLICATION_ID = 0x53575256 }; /* "SWRV": PRAGMA application_id, read by file(1) */

/* SQLite takes a file of one byte for an empty one, and writes over it. */
static bool single_byte(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size == 1;
}

enum status migrate_check(struct db *db, const char *path, struct error *error)
{
    int64_t version = 0;
    int64_t application = 0;
    int64_t tables = 0;
    TRY(sqlite_db_scalar(db, "PRAGMA user_version", &version, error));
    TRY(sqlite_db_scalar(db, "PRAGMA application_id", &application, error));
    TRY(sqlite_db_scalar(db, "SELECT COUNT(*) FROM sqlite_schema", &tables, error));
    /* Ours gets its tables, version and number in one transaction. */
    bool empty = tables == 0 && application == 0 && version == 0 && !single_byte(path);
    if (!empty && application != APPLICATION_ID) {
        return error_set(error, STATUS_STORE, "%s: this file is not a job store; name another path",
                         path);
    }
    if (version < 0 || version > (int64_t)store_migrations_count) {
        return error_set(error, STATUS_STORE,
                         "%s: the store has schema version %" PRId64 ", this program knows up to "
                         "%zu; it was left as it is, open it with a newer program",
                         path, version, store_migrations_count);
    }
    return tables > 0 ? schema_check(db, path, version, error) : STATUS_OK;
}

/* Applies a text in a transaction of its own, whereby the file comes to a version. */
static enum status apply(struct db *db, const struct embedded_text *text, size_t version,
                         struct error *error)
{
    char stamp[128];
    struct error ignored;
    TRY(sqlite_db_script(db, "BEGIN IMMEDIATE", error));
    enum status status = sqlite_db_script(db, text->text, error);
    if (status == STATUS_OK) {
        snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %zu",
                 APPLICATION_ID, version);
        status = sqlite_db_script(db, stamp, error);
    }
    THEN(status, sqlite_db_script(db, "COMMIT", error));
    if (status != STATUS_OK && db_in_transaction(db)) {
        sqlite_db_script(db, "ROLLBACK", &ignored); /* the first error is the one to report */
    }
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, "%s", text->name);
}

enum status migrate_apply(struct db *db, const char *path, const struct logger *logger,
                          struct error *error)
{
    int64_t version = 0;
    TRY(sqlite_db_scalar(db, "PRAGMA user_version", &version, error));

    if (version == 0) {
        TRY(apply(db, &store_whole_schema[0], store_migrations_count, error));
        log_event(logger, LOG_INFO, "%s: made with schema version %zu", path,
                  store_migrations_count);
        return STATUS_OK;
    }
    for (size_t i = (size_t)version; i < store_migrations_count; i++) {
        TRY(apply(db, &store_migrations[i], i + 1, error));
        log_event(logger, LOG_INFO, "%s: applied %s", path, store_migrations[i].name);
    }
    return STATUS_OK;
}
