/*
 * Bodies of scenarios and their maps. See scenario_body.h.
 */
#include "store/sql/scenario_body.h"

#include "base/sha256.h"
#include "store/sql/records.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_BYTES_MIN = 16 << 10 };

static const char nothing[] = "null"; /* in place of a map */
enum { NOTHING_BYTES = sizeof nothing - 1 };

/* Bytes of an object that begins a text, up to its closing brace; 0: it has none. */
static size_t object_bytes(const char *text, size_t bytes)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        if (quoted && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (quoted) {
            continue;
        } else if (text[i] == '{') {
            depth++;
        } else if (text[i] == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

bool scenario_body_find_map(const char *body, size_t bytes, size_t *from, size_t *map_bytes)
{
    static const char mark[] = ",\"map\":{";
    const char *found = bytes >= MAP_BYTES_MIN ? memmem(body, bytes, mark, sizeof mark - 1) : NULL;
    if (found == NULL) {
        return false;
    }
    *from = (size_t)(found - body) + sizeof mark - 2;
    *map_bytes = object_bytes(body + *from, bytes - *from);
    return *map_bytes >= MAP_BYTES_MIN;
}

static enum status bring_map(struct db *db, const char *text, size_t bytes, int64_t *id,
                             struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    sha256_hex(text, bytes, hash);
    TRY(record_find(db, STATEMENT_MAP_FIND, hash, id, error));
    if (*id != 0) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_MAP_INSERT);
    query_text(&query, hash);
    query_blob(&query, text, bytes);
    TRY(query_run(&query, error));
    *id = db_last_id(db);
    return STATUS_OK;
}

static enum status insert(struct db *db, const char *hash, const char *body, size_t bytes,
                          int64_t tenant, int64_t map, size_t map_at, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_SCENARIO_INSERT);
    query_text(&query, hash);
    query_blob(&query, body, bytes);
    query_int_or_null(&query, tenant);
    query_int_or_null(&query, map);
    query_int_or_null(&query, (int64_t)map_at);
    return query_run(&query, error);
}

enum status scenario_body_insert(struct db *db, const char *hash, const char *body, size_t bytes,
                                 int64_t tenant, struct error *error)
{
    size_t from;
    size_t map_bytes;
    int64_t map = 0;
    if (!scenario_body_find_map(body, bytes, &from, &map_bytes)) {
        return insert(db, hash, body, bytes, tenant, 0, 0, error);
    }
    TRY(bring_map(db, body + from, map_bytes, &map, error));
    size_t left = bytes - from - map_bytes;
    char *rest = malloc(from + NOTHING_BYTES + left);
    TRY(memory_check(rest, error, "out of memory for a scenario"));
    memcpy(rest, body, from);
    memcpy(rest + from, nothing, NOTHING_BYTES);
    memcpy(rest + from + NOTHING_BYTES, body + from + map_bytes, left);
    enum status status =
        insert(db, hash, rest, from + NOTHING_BYTES + left, tenant, map, from, error);
    free(rest);
    return status;
}

char *scenario_body_read(const struct query *query, int column, size_t *bytes)
{
    size_t body_bytes = 0;
    size_t map_bytes = 0;
    const char *body = query_column_blob(query, column, &body_bytes);
    int64_t map_at = query_column_int(query, column + 1);
    const char *map = query_column_blob(query, column + 2, &map_bytes);
    size_t from = map != NULL && map_at > 0 && (size_t)map_at + NOTHING_BYTES <= body_bytes
                      ? (size_t)map_at
                      : body_bytes;
    size_t rest = from < body_bytes ? from + NOTHING_BYTES : body_bytes;
    map_bytes = from < body_bytes ? map_bytes : 0;
    char *whole = malloc(from + map_bytes + (body_bytes - rest) + 1);
    if (whole == NULL) {
        return NULL;
    }
    if (from > 0) {
        memcpy(whole, body, from);
    }
    if (map_bytes > 0) {
        memcpy(whole + from, map, map_bytes);
    }
    if (rest < body_bytes) {
        memcpy(whole + from + map_bytes, body + rest, body_bytes - rest);
    }
    *bytes = from + map_bytes + (body_bytes - rest);
    whole[*bytes] = '\0';
    return whole;
}
