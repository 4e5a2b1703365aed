/*
 * Texts in PostgreSQL's words. See dialect.h.
 *
 * Method: one pass over a text, word by word, into a buffer that grows; quoted texts are copied as
 * they are. A few statements that mean something else there have texts of their own.
 */
#include "store/postgres/dialect.h"

#include "base/check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- a text that grows ---- */

struct text {
    char *data; /* NULL: out of memory, from then on */
    size_t count;
    size_t capacity;
};

static void text_init(struct text *text, size_t hint)
{
    *text = (struct text){.capacity = hint + 64};
    text->data = malloc(text->capacity);
    if (text->data != NULL) {
        text->data[0] = '\0';
    }
}

static void text_add(struct text *text, const char *part, size_t bytes)
{
    if (text->data != NULL && text->count + bytes + 1 > text->capacity) {
        text->capacity = (text->count + bytes + 1) * 2;
        char *grown = realloc(text->data, text->capacity);
        if (grown == NULL) {
            free(text->data);
        }
        text->data = grown;
    }
    if (text->data != NULL) {
        memcpy(text->data + text->count, part, bytes);
        text->count += bytes;
        text->data[text->count] = '\0';
    }
}

static void text_put(struct text *text, const char *part)
{
    text_add(text, part, strlen(part));
}

/* ---- statements ---- */

/* Words for lists in JSON, and those of `swerve check`. Behind a text's lengths: it holds no byte
 * of 0 there, and strpos of an empty text is 1. */
static const struct {
    const char *from;
    const char *to;
} phrases[] = {
    {"json_array_length(", "jsonb_array_length("},
    {"json_extract(outcome, '$.artifact_hash')", "(CAST(outcome AS JSON) ->> 'artifact_hash')"},
    {"json_extract(outcome, '$.evidence_hash')", "(CAST(outcome AS JSON) ->> 'evidence_hash')"},
    {"json_extract(partial_outcomes.outcome, '$.evidence_hash')",
     "(CAST(partial_outcomes.outcome AS JSON) ->> 'evidence_hash')"},
    /* One that is none is an error there, behind which nothing is known of references. */
    {"WHERE json_valid(outcome)", ""},
    {"json_extract(e.value, '$[0]')", "(e.value ->> 0)"},
    {"json_extract(e.value, '$[1]')", "(e.value ->> 1)"},
    {"json_extract(e.value, '$[2]')", "CAST(e.value ->> 2 AS BIGINT)"},
    {"json_extract(e.value, '$[3]')", "(e.value ->> 3)"},
    {"json_extract(e.value, '$[4]')", "(e.value ->> 4)"},
    {"json_extract(e.value, '$[5]')", "(e.value ->> 5)"},
    {"json_extract(e.value, '$[6]')", "(e.value ->> 6)"},
    {"length(CAST(", "octet_length(CAST("},
    {" AS BLOB)", " AS TEXT)"},
    {"instr(", "strpos("},
    {", char(0)) > 0", ", '') < 0"},
    {SCENARIO_TICKS("b.body"), "swerve_scenario_ticks(b.body)"},
    {SCENARIO_HORIZON("b.body"), "swerve_scenario_horizon(b.body)"},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static size_t word_bytes(const char *at)
{
    size_t bytes = 0;
    while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_') {
        bytes++;
    }
    return bytes;
}

/* Behind "CROSS JOIN": a table, perhaps its alias, and ON. */
static bool joins_on(const char *at)
{
    for (int word = 0; word < 3; word++) {
        at += strspn(at, " ");
        if (begins(at, "ON ")) {
            return true;
        }
        at += word_bytes(at);
    }
    return false;
}

/* Behind "MIN(": two values, not the column of a group. */
static bool takes_two(const char *at)
{
    int depth = 1;

    for (; *at != '\0' && depth > 0; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at == ',' && depth == 1) {
            return true;
        }
    }
    return false;
}

/* "substr(TEXT, -length(PART) - 1)", the end of a text, as long as a part and one more. NULL: it is
 * another one. */
static const char *take_end(struct text *out, const char *at)
{
    static const char middle[] = ", -length(";
    static const char last[] = ") - 1)";
    const char *text = at + strlen("substr(");
    size_t text_bytes = strcspn(text, "(),");
    const char *part = text + text_bytes + strlen(middle);

    if (!begins(text + text_bytes, middle) || !begins(part + strcspn(part, "()"), last)) {
        return NULL;
    }
    text_put(out, "right(");
    text_add(out, text, text_bytes);
    text_put(out, ", length(");
    text_add(out, part, strcspn(part, "()"));
    text_put(out, ") + 1)");
    return part + strcspn(part, "()") + strlen(last);
}

/* Takes one piece of a statement; where the next begins. */
static const char *query_piece(struct text *out, const char *at)
{
    static const char list[] = "json_each(?";

    if (begins(at, "CROSS JOIN") && joins_on(at + strlen("CROSS JOIN"))) {
        return at + strlen("CROSS ");
    }
    if (begins(at, "MIN(") && takes_two(at + strlen("MIN("))) {
        text_put(out, "LEAST(");
        return at + strlen("MIN(");
    }
    if (begins(at, list)) {
        size_t digits = strspn(at + strlen(list), "0123456789");
        text_put(out, "jsonb_array_elements(CAST($");
        text_add(out, at + strlen(list), digits);
        text_put(out, " AS JSONB)) AS e(value)");
        at += strlen(list) + digits;
        return at + strlen(") e");
    }
    for (size_t i = 0; i < COUNT_OF(phrases); i++) {
        if (begins(at, phrases[i].from)) {
            text_put(out, phrases[i].to);
            return at + strlen(phrases[i].from);
        }
    }
    const char *behind = begins(at, "substr(") ? take_end(out, at) : NULL;
    if (behind != NULL) {
        return behind;
    }
    if (begins(at, " IS NOT ") && !begins(at, " IS NOT NULL")) {
        text_put(out, " IS DISTINCT FROM ");
        return at + strlen(" IS NOT ");
    }
    size_t bytes = word_bytes(at);
    if (*at == '?') {
        text_put(out, "$");
    } else if (*at == '\'' || *at == '"') { /* a text, or a name */
        const char end[] = {*at, '\0'};
        bytes = 1 + strcspn(at + 1, end);
        bytes += at[bytes] != '\0';
        text_add(out, at, bytes);
    } else {
        bytes = bytes > 0 ? bytes : 1;
        text_add(out, at, bytes);
    }
    return at + (*at == '?' ? 1 : bytes);
}

/* Rows of these tables have an id that the caller asks for. */
static bool gives_id(const char *sql)
{
    static const char *const tables[] = {"suites ",    "pools ",     "prefixes ", "contexts ",
                                         "scenarios ", "workers ",   "jobs ",     "outcomes ",
                                         "models ",    "audit_log ", "maps "};
    static const char insert[] = "INSERT INTO ";

    for (size_t i = 0; i < COUNT_OF(tables) && begins(sql, insert); i++) {
        if (begins(sql + strlen(insert), tables[i])) {
            return true;
        }
    }
    return false;
}

char *dialect_query(const char *sql)
{
    struct text out;

    text_init(&out, strlen(sql));
    for (const char *at = sql; *at != '\0';) {
        at = query_piece(&out, at);
    }
    if (gives_id(sql)) {
        text_put(&out, " RETURNING id");
    }
    return out.data;
}

/* Statements that are not a matter of words. */
static const char *own_text(enum statement statement)
{
    switch ((int)statement) {
    case STATEMENT_READ_BEGIN:
        return "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    case STATEMENT_SCENARIO_INSERT:
        return "INSERT INTO scenarios (hash, body, tenant, ticks, map, map_at)"
               " VALUES ($1, $2, $3, swerve_scenario_ticks($2), $4, $5) RETURNING id";
    case STATEMENT_MEMO_LINK:
        return "INSERT INTO memo_outcomes (suite, outcome, job)"
               " SELECT CAST($2 AS BIGINT), id, CAST($3 AS BIGINT) FROM outcomes WHERE job = $1";
    case STATEMENT_SCHEMA_COLUMN:
        return "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(quote_ident($1))"
               " AND attname = $2 AND attnum > 0 AND NOT attisdropped";
    case STATEMENT_UNSTARTED_SUITE:
        return "SELECT (SELECT COUNT(DISTINCT host) FROM unstarted WHERE suite = $1), w.name,"
               " t.error FROM unstarted t JOIN workers w ON w.id = t.worker"
               " WHERE t.suite = $1 LIMIT 1";
    default:
        return NULL;
    }
}

/* Rows that a writer reads for changing. Such a lock bears references to the row beside it. Suites
 * with claimable jobs are read without: to step over jobs that others hold takes tens of
 * microseconds each, and whether a suite has one for this process shows at its head. */
static const char *lock_clause(enum statement statement)
{
    switch ((int)statement) {
    case STATEMENT_READY_HEAD:
    case STATEMENT_READY_HEAD_WITHOUT:
    case STATEMENT_READY_HEAD_FROM:
    case STATEMENT_READY_RUN:
    case STATEMENT_READY_RUN_WITHOUT:
    case STATEMENT_READY_RUN_FROM:
    case STATEMENT_AFFINE_RUN:
    case STATEMENT_AFFINE_RUN_WITHOUT:
    case STATEMENT_SHADOW_RUN:
    case STATEMENT_SHADOW_RUN_WITHOUT:
        return " FOR NO KEY UPDATE OF j SKIP LOCKED";
    case STATEMENT_JOB_HELD:
    case STATEMENT_JOB_PROGRESS_GET:
        return " FOR NO KEY UPDATE OF j";
    case STATEMENT_WORKER_FIND:
    case STATEMENT_TENANT_LIMITED:
        return " FOR NO KEY UPDATE";
    default:
        return "";
    }
}

static char *with_lock(enum statement statement, char *text)
{
    const char *lock = lock_clause(statement);

    if (text == NULL || lock[0] == '\0') {
        return text;
    }
    size_t bytes = strlen(text);
    char *locking = realloc(text, bytes + strlen(lock) + 1);
    if (locking == NULL) {
        free(text);
        return NULL;
    }
    memcpy(locking + bytes, lock, strlen(lock) + 1);
    return locking;
}

char *dialect_statement_as(enum statement statement, const char *sql)
{
    return with_lock(statement, dialect_query(sql));
}

char *dialect_statement(enum statement statement)
{
    const char *own = own_text(statement);
    char *sql = own != NULL ? NULL : statement_text(statement);
    char *text = own != NULL ? strdup(own) : sql != NULL ? dialect_query(sql) : NULL;
    free(sql);
    return with_lock(statement, text);
}

bool dialect_writes_row(const char *text)
{
    static const char *const keys[] = {" WHERE id = $1", " WHERE job = $1 AND epoch = $2"};
    size_t bytes = strlen(text);

    if (begins(text, "INSERT INTO ")) {
        const char *change = strstr(text, " DO UPDATE SET ");
        bool stays = change != NULL && strstr(change, " WHERE ") != NULL; /* as it may be */
        return strstr(text, " DO NOTHING") == NULL && !stays &&
               (strstr(text, ") VALUES (") != NULL || begins(text, "INSERT INTO memo_outcomes "));
    }
    for (size_t i = 0; i < COUNT_OF(keys) && begins(text, "UPDATE "); i++) {
        size_t key_bytes = strlen(keys[i]);
        if (bytes > key_bytes && strcmp(text + bytes - key_bytes, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- migrations ---- */

static const struct {
    const char *from;
    const char *to;
} types[] = {
    {"INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
    {"INTEGER", "BIGINT"},
    {"REAL", "DOUBLE PRECISION"},
    {"BLOB", "BYTEA"},
    {"TEXT", "TEXT COLLATE \"C\""},
};

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at) || begins(at, "--")) {
        at += *at == '-' ? strcspn(at, "\n") : 1;
    }
    return at;
}

/* One piece of a migration's statement, which is no comment. */
static const char *migration_piece(struct text *out, const char *at)
{
    size_t bytes = word_bytes(at);

    if (begins(at, "x'")) {
        size_t digits = strcspn(at + 2, "'");
        text_put(out, "'\\x");
        text_add(out, at + 2, digits);
        text_put(out, "'");
        return at + digits + 3;
    }
    for (size_t i = 0; i < COUNT_OF(types) && bytes > 0; i++) {
        size_t length = strlen(types[i].from);
        if (begins(at, types[i].from) && word_bytes(at + length) == 0) {
            text_put(out, types[i].to);
            return at + length;
        }
    }
    return bytes > 0 ? (text_add(out, at, bytes), at + bytes) : query_piece(out, at);
}

/* Of a table: everything behind its columns is SQLite's. */
static const char *take_table(struct text *out, const char *at)
{
    int depth = 0;

    while (*at != '\0' && *at != ';') {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        bool last = *at == ')' && depth == 0;
        at = migration_piece(out, at);
        at = skip_space(at) > at ? (text_put(out, " "), skip_space(at)) : at;
        if (last) {
            return at + strcspn(at, ";");
        }
    }
    return at;
}

/* A statement that makes nothing: it changes rows, or copies them. */
static bool moves_rows(const char *at)
{
    size_t bytes = strcspn(at, ";");
    const char *values = strstr(at, " VALUES");

    return begins(at, "UPDATE ") ||
           (begins(at, "INSERT ") && (values == NULL || values > at + bytes));
}

static const char *skip_statement(const char *at)
{
    while (*at != '\0' && *at != ';') {
        at += *at == '\'' ? strcspn(at + 1, "'") + 2 : begins(at, "--") ? strcspn(at, "\n") : 1;
    }
    return at;
}

char *dialect_migration(const char *sql, bool fresh)
{
    struct text out;
    const char *at = skip_space(sql);

    text_init(&out, strlen(sql) * 2);
    while (*at != '\0') {
        if (fresh && moves_rows(at)) {
            at = skip_statement(at);
        } else if (begins(at, "CREATE TABLE")) {
            at = take_table(&out, at);
        } else {
            bool drops = begins(at, "DROP TABLE");
            while (*at != '\0' && *at != ';') {
                const char *next = migration_piece(&out, at);
                at = skip_space(next);
                text_put(&out, at > next ? " " : "");
            }
            /* References to the table come back with the one that takes its place. */
            text_put(&out, drops ? " CASCADE" : "");
        }
        text_put(&out, ";\n");
        at = skip_space(at + (*at == ';' ? 1 : 0));
    }
    return out.data;
}
