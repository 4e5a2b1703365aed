/*
 * Strict JSON reading. jansson parses; this file adds bounds, paths and sentences.
 */
#include "schemas/json_read.h"

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_TEXT_BYTES = 384,
    KEYS_LISTED_MAX = 24,
    DIGITS_SHORT = 15, /* a number of so many bytes has no digit too many */
};

/* Nesting and the number of containers are checked on the raw text first: jansson's own limit of
 * depth is far above ours, and each pair of brackets costs it a hundred bytes or more. */
static enum status check_structure(const char *file, const char *text, size_t bytes,
                                   struct error *error)
{
    int depth = 0;
    size_t containers = 0;
    size_t line = 1;
    bool in_text = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '\n') {
            line++;
        }
        if (in_text) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_text = false;
            }
        } else if (c == '"') {
            in_text = true;
        } else if (c == '[' || c == '{') {
            if (++containers > LIMIT_JSON_CONTAINERS) {
                return error_set(error, STATUS_LIMIT,
                                 "%s: line %zu: expected at most %d objects and arrays, found more",
                                 file, line, LIMIT_JSON_CONTAINERS);
            }
            if (++depth > LIMIT_JSON_DEPTH) {
                return error_set(error, STATUS_LIMIT,
                                 "%s: line %zu: expected at most %d nested levels, found more",
                                 file, line, LIMIT_JSON_DEPTH);
            }
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return STATUS_OK;
}

/* ---- memory ---- */

/* jansson drops bytes of a token or of a key that it has no memory for and goes on: what it then
 * returns, an error, a value or a text, is about something else; and where it dropped a closing
 * quote, it reads and writes beyond the token. So while a text is read, the first allocation that
 * fails gets a reserve, which is large enough for any token of the text, and the text ends there.
 * It is handed out byte by byte, so that nothing comes after. */
struct watch {
    const char *text;
    size_t bytes;
    char *reserve;
    size_t reserve_bytes;
    bool failed;
};

/* The thread's; NULL outside jansson's longer calls. */
static _Thread_local struct watch *watch;

static void *watched_malloc(size_t bytes)
{
    void *data = malloc(bytes);

    if (data == NULL && watch != NULL) {
        if (!watch->failed && bytes <= watch->reserve_bytes) {
            data = watch->reserve;
        }
        watch->failed = true;
    }
    return data;
}

static void watched_free(void *data)
{
    if (watch == NULL || data != watch->reserve) {
        free(data);
    }
}

static size_t next_byte(void *out, size_t capacity, void *context)
{
    struct watch *from = context;

    if (capacity == 0 || from->bytes == 0 || from->failed) {
        return 0;
    }
    *(char *)out = *from->text++;
    from->bytes--;
    return 1;
}

/* Before any thread could be inside jansson. */
__attribute__((constructor)) static void set_allocation(void)
{
    json_set_alloc_funcs(watched_malloc, watched_free);
}

/* NO_MEMORY, or OK with *value, NULL for a text that is not JSON. */
static enum status parse(const char *text, size_t bytes, json_t **value, json_error_t *json_error)
{
    enum { SMALLEST_BYTES = 64 };
    /* jansson doubles its buffer for tokens when it is full. */
    size_t reserve_bytes = 2 * bytes + SMALLEST_BYTES;
    struct watch from = {.text = text,
                         .bytes = bytes,
                         .reserve = malloc(reserve_bytes),
                         .reserve_bytes = reserve_bytes};

    if (from.reserve == NULL) {
        return STATUS_NO_MEMORY;
    }
    watch = &from;
    json_t *found =
        json_load_callback(next_byte, &from, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, json_error);
    if (from.failed) {
        json_decref(found);
        found = NULL;
    }
    watch = NULL;
    free(from.reserve);
    *value = found;
    return from.failed ? STATUS_NO_MEMORY : STATUS_OK;
}

/* ---- texts and files ---- */

enum status json_read_text(const char *file, const char *text, size_t bytes, json_t **root,
                           struct error *error)
{
    json_error_t json_error;
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: line 1: expected JSON, found a byte order mark (BOM) first: save the "
                         "file as UTF-8 without one",
                         file);
    }
    TRY(check_structure(file, text, bytes, error));
    json_t *value = NULL;
    if (parse(text, bytes, &value, &json_error) != STATUS_OK) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory while parsing", file);
    }
    if (value == NULL) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: line %d, column %d: expected JSON, found: %s", file, json_error.line,
                         json_error.column, json_error.text);
    }
    *root = value;
    return STATUS_OK;
}

enum status json_read_file(const char *path, size_t limit_bytes, json_t **root, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    enum status status = file_read(path, limit_bytes, &text, &bytes, error);
    if (status == STATUS_OK) {
        status = json_read_text(path, text, bytes, root, error);
        free(text);
    }
    return status;
}

struct json_cursor json_cursor_root(const char *file, const json_t *value)
{
    return (struct json_cursor){.file = file, .value = value};
}

struct json_cursor json_cursor_member(const struct json_cursor *object, const char *key)
{
    return (struct json_cursor){
        .file = object->file,
        .value = json_object_get(object->value, key),
        .parent = object,
        .key = key,
    };
}

struct json_cursor json_cursor_element(const struct json_cursor *array, size_t index)
{
    return (struct json_cursor){
        .file = array->file,
        .value = json_array_get(array->value, index),
        .parent = array,
        .index = index,
    };
}

/* Writes "$.a.b[3]" into text; the chain is at most LIMIT_JSON_DEPTH long. */
static void write_path(const struct json_cursor *cursor, char *text, size_t capacity)
{
    const struct json_cursor *chain[LIMIT_JSON_DEPTH + 1];
    size_t count = 0;
    for (; cursor->parent != NULL && count < COUNT_OF(chain); cursor = cursor->parent) {
        chain[count++] = cursor;
    }
    size_t used = (size_t)snprintf(text, capacity, "$");
    while (count > 0 && used < capacity) {
        const struct json_cursor *step = chain[--count];
        int wrote = step->key != NULL
                        ? snprintf(text + used, capacity - used, ".%s", step->key)
                        : snprintf(text + used, capacity - used, "[%zu]", step->index);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static enum status fail_va(const struct json_cursor *cursor, enum status status,
                           struct error *error, const char *format, va_list args)
{
    char path[PATH_TEXT_BYTES];
    struct error local = {0};
    struct error *target = error != NULL ? error : &local;
    write_path(cursor, path, sizeof path);
    error_setv(target, status, format, args);
    return error_prefix(target, "%s: %s", cursor->file, path);
}

enum status json_fail(const struct json_cursor *cursor, struct error *error, const char *format,
                      ...)
{
    va_list args;
    va_start(args, format);
    enum status status = fail_va(cursor, STATUS_BAD_INPUT, error, format, args);
    va_end(args);
    return status;
}

enum status json_fail_status(const struct json_cursor *cursor, enum status status,
                             struct error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_va(cursor, status, error, format, args);
    va_end(args);
    return status;
}

enum status json_prefix(const struct json_cursor *cursor, struct error *error)
{
    char path[PATH_TEXT_BYTES];
    size_t bytes = strlen(cursor->file);
    if (error == NULL) {
        return STATUS_BAD_INPUT;
    }
    write_path(cursor, path, sizeof path);
    if ((strncmp(error->text, cursor->file, bytes) == 0 && error->text[bytes] == ':') ||
        bytes + strlen(path) + strlen(error->text) + 5 > sizeof error->text) {
        return error->status;
    }
    return error_prefix(error, "%s: %s", cursor->file, path);
}

/* Kind of a value, for "found ..": a text is quoted, cut where it is long. */
struct found {
    char text[64];
};

static struct found found_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",     [JSON_INTEGER] = "an integer",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true or false", [JSON_FALSE] = "true or false",
        [JSON_NULL] = "null",
    };
    struct found found;
    if (value == NULL) {
        snprintf(found.text, sizeof found.text, "nothing");
    } else if (json_is_string(value)) {
        snprintf(found.text, sizeof found.text, "text \"%.40s\"", json_string_value(value));
    } else {
        snprintf(found.text, sizeof found.text, "%s", names[json_typeof(value)]);
    }
    return found;
}

enum status json_refuse_slip(const struct json_cursor *cursor, const char *key, struct error *error)
{
    const char *const keys[] = {key, NULL};
    const char *found;
    json_t *value;
    if (json_object_get(cursor->value, key) != NULL) {
        return STATUS_OK;
    }
    json_object_foreach ((json_t *)(uintptr_t)cursor->value, found, value) {
        if (text_nearest(found, keys) != NULL) {
            return json_fail(cursor, error, "unknown member \"%.64s\"; did you mean \"%s\"?", found,
                             key);
        }
    }
    return STATUS_OK;
}

static enum status fail_unknown_member(const struct json_cursor *cursor, const char *key,
                                       const char *const *keys, struct error *error)
{
    const char *nearest = text_nearest(key, keys);
    char list[512] = "";
    size_t used = 0;
    size_t count = 0;
    if (nearest != NULL) {
        return json_fail(cursor, error, "unknown member \"%.64s\"; did you mean \"%s\"?", key,
                         nearest);
    }
    while (keys[count] != NULL) {
        count++;
    }
    if (count == 0 || count > KEYS_LISTED_MAX) {
        return json_fail(cursor, error, "unknown member \"%.64s\"", key);
    }
    for (size_t i = 0; i < count && used < sizeof list; i++) {
        int wrote =
            snprintf(list + used, sizeof list - used, "%s\"%s\"", i > 0 ? ", " : "", keys[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return json_fail(cursor, error, "unknown member \"%.64s\"; legal are %s", key, list);
}

enum status json_object_begin(const struct json_cursor *cursor, const char *const *keys,
                              struct error *error)
{
    if (!json_is_object(cursor->value)) {
        return json_fail(cursor, error, "expected an object, found %s",
                         found_name(cursor->value).text);
    }
    const char *key;
    json_t *member;
    json_object_foreach ((json_t *)(uintptr_t)cursor->value, key, member) {
        const char *const *legal = keys;
        while (*legal != NULL && strcmp(*legal, key) != 0) {
            legal++;
        }
        if (*legal == NULL) {
            return fail_unknown_member(cursor, key, keys, error);
        }
    }
    return STATUS_OK;
}

enum status json_array_begin(const struct json_cursor *cursor, size_t min, size_t max,
                             size_t *count, struct error *error)
{
    if (!json_is_array(cursor->value)) {
        return json_fail(cursor, error, "expected an array, found %s",
                         found_name(cursor->value).text);
    }
    size_t found = json_array_size(cursor->value);
    if (found < min) {
        return json_fail(cursor, error, "expected at least %zu elements, found %zu", min, found);
    }
    if (found > max) {
        return json_fail_status(cursor, STATUS_LIMIT, error,
                                "expected at most %zu elements, found %zu", max, found);
    }
    *count = found;
    return STATUS_OK;
}

enum status json_value_number(const struct json_cursor *cursor, double min, double max, double *out,
                              struct error *error)
{
    if (!json_is_number(cursor->value)) {
        return json_fail(cursor, error, "expected a number, found %s",
                         found_name(cursor->value).text);
    }
    double value = json_number_value(cursor->value);
    if (!(value >= min && value <= max)) {
        return json_fail(cursor, error, "expected a number from %g to %g, found %g", min, max,
                         value);
    }
    *out = value;
    return STATUS_OK;
}

enum status json_value_angle(const struct json_cursor *cursor, double *out, struct error *error)
{
    if (!json_is_number(cursor->value)) {
        return json_fail(cursor, error, "expected a number, found %s",
                         found_name(cursor->value).text);
    }
    double value = json_number_value(cursor->value);
    if (!(fabs(value) <= 2 * PI_RAD)) {
        return json_fail(cursor, error,
                         "expected radians from -2 pi to 2 pi, found %g (90 degrees is 1.571)",
                         value);
    }
    *out = value;
    return STATUS_OK;
}

enum status json_value_integer(const struct json_cursor *cursor, int64_t min, int64_t max,
                               int64_t *out, struct error *error)
{
    if (!json_is_integer(cursor->value)) {
        return json_fail(cursor, error, "expected an integer, found %s",
                         found_name(cursor->value).text);
    }
    int64_t value = json_integer_value(cursor->value);
    if (value < min || value > max) {
        return json_fail(cursor, error, "expected an integer from %lld to %lld, found %lld",
                         (long long)min, (long long)max, (long long)value);
    }
    *out = value;
    return STATUS_OK;
}

enum status json_value_bool(const struct json_cursor *cursor, bool *out, struct error *error)
{
    if (!json_is_boolean(cursor->value)) {
        return json_fail(cursor, error, "expected true or false, found %s",
                         found_name(cursor->value).text);
    }
    *out = json_is_true(cursor->value);
    return STATUS_OK;
}

enum status json_value_text(const struct json_cursor *cursor, char *out, size_t capacity,
                            struct error *error)
{
    if (!json_is_string(cursor->value)) {
        return json_fail(cursor, error, "expected text, found %s", found_name(cursor->value).text);
    }
    size_t bytes = json_string_length(cursor->value);
    const char *text = json_string_value(cursor->value);
    if (bytes >= capacity) {
        return json_fail_status(cursor, STATUS_LIMIT, error,
                                "expected at most %zu bytes of text, found %zu", capacity - 1,
                                bytes);
    }
    if (strlen(text) != bytes) {
        return json_fail(cursor, error, "expected text without NUL characters");
    }
    memcpy(out, text, bytes + 1);
    return STATUS_OK;
}

enum status json_value_choice(const struct json_cursor *cursor, const char *const *names,
                              size_t count, int *out, struct error *error)
{
    if (!json_is_string(cursor->value)) {
        return json_fail(cursor, error, "expected text, found %s", found_name(cursor->value).text);
    }
    const char *text = json_string_value(cursor->value);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (int)i;
            return STATUS_OK;
        }
    }
    char choices[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof choices; i++) {
        int wrote = snprintf(choices + used, sizeof choices - used, "%s\"%s\"", i > 0 ? ", " : "",
                             names[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return json_fail(cursor, error, "expected one of %s, found \"%.64s\"", choices, text);
}

/* Absent and optional: the caller's default stands. */
#define SKIP_ABSENT(cursor)                             \
    if (!required && !json_cursor_present(&(cursor))) { \
        return STATUS_OK;                               \
    }

enum status json_member_number(const struct json_cursor *object, const char *key, bool required,
                               double min, double max, double *out, struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    SKIP_ABSENT(member)
    return json_value_number(&member, min, max, out, error);
}

enum status json_member_angle(const struct json_cursor *object, const char *key, bool required,
                              double *out, struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    SKIP_ABSENT(member)
    return json_value_angle(&member, out, error);
}

enum status json_member_integer(const struct json_cursor *object, const char *key, bool required,
                                int64_t min, int64_t max, int64_t *out, struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    SKIP_ABSENT(member)
    return json_value_integer(&member, min, max, out, error);
}

enum status json_member_bool(const struct json_cursor *object, const char *key, bool required,
                             bool *out, struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    SKIP_ABSENT(member)
    return json_value_bool(&member, out, error);
}

enum status json_member_text(const struct json_cursor *object, const char *key, bool required,
                             char *out, size_t capacity, struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    SKIP_ABSENT(member)
    return json_value_text(&member, out, capacity, error);
}

enum status json_member_choice(const struct json_cursor *object, const char *key, bool required,
                               const char *const *names, size_t count, int *out,
                               struct error *error)
{
    struct json_cursor member = json_cursor_member(object, key);
    SKIP_ABSENT(member)
    return json_value_choice(&member, names, count, out, error);
}

/* Reals in the fewest digits that read back, where they stand: they get no longer by it. Integers
 * stay, and so does what text_real would write as one. */
static void shorten_reals(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        size_t bytes = strspn(from, "+-.0123456789eE");
        char digits[TEXT_REAL_BYTES];
        if (*from == '"') { /* to its end, over what is escaped */
            for (bytes = 1; from[bytes] != '"'; bytes += from[bytes] == '\\' ? 2 : 1) {
            }
            bytes++;
        } else if (bytes > DIGITS_SHORT && memchr(from, '.', bytes) != NULL) {
            size_t shorter = text_real(strtod(from, NULL), digits);
            if (shorter < bytes && strpbrk(digits, ".e") != NULL) {
                memcpy(to, digits, shorter);
                to += shorter;
                from += bytes;
                continue;
            }
        }
        bytes = bytes > 0 ? bytes : 1;
        memmove(to, from, bytes);
        to += bytes;
        from += bytes;
    }
    *to = '\0';
}

static char *dump(const json_t *value, size_t flags)
{
    struct watch writing = {.reserve = NULL}; /* here it does without */

    watch = &writing;
    char *text = json_dumps(value, flags | JSON_REAL_PRECISION(17));
    watch = NULL;
    if (writing.failed) {
        free(text);
        return NULL;
    }
    return text;
}

char *json_canonical_text(const json_t *value)
{
    return dump(value, JSON_SORT_KEYS | JSON_ENCODE_ANY | JSON_COMPACT);
}

static char *dump_short(const json_t *value, size_t flags)
{
    char *text = dump(value, flags);
    if (text != NULL) {
        shorten_reals(text);
    }
    return text;
}

char *json_compact_text(const json_t *value)
{
    return dump_short(value, JSON_ENCODE_ANY | JSON_COMPACT);
}

char *json_indented_text(const json_t *value)
{
    return dump_short(value, JSON_INDENT(1));
}
