/*
 * Strict JSON reading on top of jansson: every error names the file, the JSON path, what was
 * expected and what was found. Used by every decoder (documents, HTTP bodies, artifacts' metadata).
 *
 * A cursor is a value plus where it stands; child cursors point at their parent, so the path costs
 * nothing until an error needs it. Cursors live on the stack, values are borrowed from the root.
 * Decoders call json_object_begin() with the full list of legal keys, so unknown keys are errors.
 */
#ifndef SWERVE_SCHEMAS_JSON_READ_H
#define SWERVE_SCHEMAS_JSON_READ_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_cursor {
    const char *file;                 /* for messages */
    const json_t *value;              /* NULL: the member is absent */
    const struct json_cursor *parent; /* NULL: root */
    const char *key;                  /* member name, or NULL for an array element */
    size_t index;
};

/* Reads at most limit_bytes from a file or memory; duplicate keys, trailing text, bad UTF-8,
 * numbers out of range and nesting beyond LIMIT_JSON_DEPTH are errors. *root is owned by the caller
 * (json_decref). */
enum status json_read_file(const char *path, size_t limit_bytes, json_t **root,
                           struct error *error);
enum status json_read_text(const char *file, const char *text, size_t bytes, json_t **root,
                           struct error *error);

struct json_cursor json_cursor_root(const char *file, const json_t *value);

/* Member `key` of an object cursor, or a cursor whose value is NULL. The key is borrowed. */
struct json_cursor json_cursor_member(const struct json_cursor *object, const char *key);

/* Element of an array cursor; index < json_array_size. */
struct json_cursor json_cursor_element(const struct json_cursor *array, size_t index);

static inline bool json_cursor_present(const struct json_cursor *cursor)
{
    return cursor->value != NULL;
}

/* "STATUS_BAD_INPUT: file: $.map.lanes[3].width_m: <text>". */
enum status json_fail(const struct json_cursor *cursor, struct error *error, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));
/* The same with another status (STATUS_LIMIT). */
enum status json_fail_status(const struct json_cursor *cursor, enum status status,
                             struct error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "file: $.scenarios[3]" of the cursor in front of an error that was set elsewhere, unless it
 * begins with that file or would not fit; returns its status. */
enum status json_prefix(const struct json_cursor *cursor, struct error *error);

/* The value is an object and has no key outside `keys` (NULL-terminated); the error suggests the
 * nearest key, or lists them where they are few. */
enum status json_object_begin(const struct json_cursor *cursor, const char *const *keys,
                              struct error *error);

/* The value is no object that lacks `key` and has a member that may be a slip of it. For where a
 * missing member would be noticed by its consequences, before the keys are checked. */
enum status json_refuse_slip(const struct json_cursor *cursor, const char *key,
                             struct error *error);

/* The value is an array of min..max elements (a count over max is STATUS_LIMIT). */
enum status json_array_begin(const struct json_cursor *cursor, size_t min, size_t max,
                             size_t *count, struct error *error);

/* The json_value_* readers require the value to be present and right. Bounds are inclusive. */
enum status json_value_number(const struct json_cursor *cursor, double min, double max, double *out,
                              struct error *error);
/* An angle in radians from -2 pi to 2 pi; the error says so, since degrees are what it is for. */
enum status json_value_angle(const struct json_cursor *cursor, double *out, struct error *error);
enum status json_value_integer(const struct json_cursor *cursor, int64_t min, int64_t max,
                               int64_t *out, struct error *error);
enum status json_value_bool(const struct json_cursor *cursor, bool *out, struct error *error);
/* Copies at most capacity - 1 bytes; longer text is STATUS_LIMIT; embedded NUL is an error. */
enum status json_value_text(const struct json_cursor *cursor, char *out, size_t capacity,
                            struct error *error);
/* Index of the text in `names`; the error lists the choices. */
enum status json_value_choice(const struct json_cursor *cursor, const char *const *names,
                              size_t count, int *out, struct error *error);

/* The json_member_* readers leave *out alone (the caller's default) when the member is absent and
 * `required` is false. */
enum status json_member_number(const struct json_cursor *object, const char *key, bool required,
                               double min, double max, double *out, struct error *error);
enum status json_member_angle(const struct json_cursor *object, const char *key, bool required,
                              double *out, struct error *error);
enum status json_member_integer(const struct json_cursor *object, const char *key, bool required,
                                int64_t min, int64_t max, int64_t *out, struct error *error);
enum status json_member_bool(const struct json_cursor *object, const char *key, bool required,
                             bool *out, struct error *error);
enum status json_member_text(const struct json_cursor *object, const char *key, bool required,
                             char *out, size_t capacity, struct error *error);
enum status json_member_choice(const struct json_cursor *object, const char *key, bool required,
                               const char *const *names, size_t count, int *out,
                               struct error *error);

/* Canonical text of a value: sorted keys, no spaces, 17 significant digits; malloc'ed, owned by the
 * caller; NULL when memory runs out. Equal values give equal text, so it can be hashed. */
char *json_canonical_text(const json_t *value);
/* Members in their own order, numbers in the fewest digits that read back as the same ones: what is
 * sent; what people may look at. */
char *json_compact_text(const json_t *value);
char *json_indented_text(const json_t *value);

#endif
