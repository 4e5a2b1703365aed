/*
 * Records to and from JSON objects by table: each member of a record is one line that says its
 * name, type and place, so that encoder and strict decoder cannot drift apart. Members that need
 * more (lists) are added by the codec that owns the record.
 *
 * JSON forms: text is UTF-8 (a byte that is not part of well-formed UTF-8, as planners write to
 * stderr, becomes one '?', so text never outgrows its bound); a double is a number with 17
 * significant digits, which reads back exactly, or null for NaN, "inf", "-inf"; a 64-bit unsigned
 * is an integer up to 2^53 and decimal text above, because most readers hold numbers as doubles.
 */
#ifndef SWERVE_SCHEMAS_JSON_RECORD_H
#define SWERVE_SCHEMAS_JSON_RECORD_H

#include "base/status.h"
#include "schemas/json_read.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_field_kind {
    JSON_FIELD_TEXT = 0,
    JSON_FIELD_I64,
    JSON_FIELD_U64,
    JSON_FIELD_I32,
    JSON_FIELD_U32,
    JSON_FIELD_U32_OR_NULL, /* UINT32_MAX is null */
    JSON_FIELD_F64,
    JSON_FIELD_BOOL,
    JSON_FIELD_NAME,  /* an enum by its name */
    JSON_FIELD_BITS,  /* a set of bits in a uint32_t: an array of their names, each once */
    JSON_FIELD_RECORD /* an object of the members of `list` */
};

struct json_field {
    const char *name;
    enum json_field_kind kind;
    size_t offset;
    size_t bytes;             /* text: capacity, terminator included */
    const char *const *names; /* enums and sets: [name_count], contiguous from 0 */
    size_t name_count;
    const struct json_field_list *list; /* of a record */
    bool optional; /* there only where it is neither zero nor empty: absent, it is read as that */
    bool
        younger; /* a number that rows of earlier versions have not: NaN, which digests leave out */
};

/* A record's table. */
struct json_field_list {
    const struct json_field *fields;
    size_t count;
};

#define JSON_FIELD(record, member, field_kind)                                     \
    {                                                                              \
        .name = #member, .kind = (field_kind), .offset = offsetof(record, member), \
        .bytes = sizeof(((record *)0)->member)                                     \
    }
#define JSON_FIELD_OPTIONAL(record, member, field_kind)                            \
    {                                                                              \
        .name = #member, .kind = (field_kind), .offset = offsetof(record, member), \
        .bytes = sizeof(((record *)0)->member), .optional = true                   \
    }
#define JSON_FIELD_YOUNGER(record, member)                                           \
    {                                                                                \
        .name = #member, .kind = JSON_FIELD_F64, .offset = offsetof(record, member), \
        .bytes = sizeof(double), .younger = true                                     \
    }
/* One of an array of numbers; what else there is to say of it may follow. */
#define JSON_FIELD_COUNT(count_name, index, ...)                                           \
    {                                                                                      \
        .name = (count_name), .kind = JSON_FIELD_I64, .offset = (index) * sizeof(int64_t), \
        .bytes = sizeof(int64_t), ##__VA_ARGS__                                            \
    }
#define JSON_FIELD_ENUM(record, member, text_names, text_count)                                   \
    {                                                                                             \
        .name = #member, .kind = JSON_FIELD_NAME, .offset = offsetof(record, member),             \
        .bytes = sizeof(((record *)0)->member), .names = (text_names), .name_count = (text_count) \
    }

#define JSON_FIELD_SET(record, member, text_names, text_count)                        \
    {                                                                                 \
        .name = #member, .kind = JSON_FIELD_BITS, .offset = offsetof(record, member), \
        .names = (text_names), .name_count = (text_count)                             \
    }

/* Members at member_offset that JSON keeps in an object of their own. */
#define JSON_FIELD_OBJECT(member_name, member_offset, field_list)                    \
    {                                                                                \
        .name = (member_name), .kind = JSON_FIELD_RECORD, .offset = (member_offset), \
        .list = (field_list)                                                         \
    }

/* The same of a record that is left out where all of it is zero. */
#define JSON_FIELD_OBJECT_OPTIONAL(record, member, field_list)                          \
    {                                                                                   \
        .name = #member, .kind = JSON_FIELD_RECORD, .offset = offsetof(record, member), \
        .bytes = sizeof(((record *)0)->member), .list = (field_list), .optional = true  \
    }

/* The list of a table of fields. */
#define JSON_FIELD_LIST(fields)                     \
    {                                               \
        (fields), sizeof(fields) / sizeof *(fields) \
    }

/* Most fields and extra keys of one record together. */
enum { JSON_RECORD_KEYS_MAX = 56 };

/* A new object with one member per field, optional ones where there is something; NULL when memory
 * runs out. Members equal to those of
 * `common` (may be NULL) are left out. */
json_t *json_record_encode(const struct json_field_list *list, const void *record,
                           const void *common);

/* Reads an object of exactly these members plus `extra_keys` (NULL-terminated; may be NULL), which
 * the caller reads itself. required: every field that is not optional must be there; else absent
 * ones are left alone.
 * The record may be partly written on failure: decode into a scratch record. */
enum status json_record_decode(const struct json_field_list *list, const char *const *extra_keys,
                               bool required, const struct json_cursor *cursor, void *record,
                               struct error *error);

/* A number that is no double, a name, a set or a bool, at its place: of an unsigned 64-bit one its
 * bits. Setting one keeps what the member has room for. */
int64_t json_field_integer(const struct json_field *field, const void *place);
void json_field_set_integer(const struct json_field *field, void *place, int64_t value);

/* One member of a record: its JSON value (a new reference; NULL when memory runs out), reading it
 * from one, and whether two records agree on it. Numbers that are equal are the same, and so are
 * two NaN. */
json_t *json_record_value(const struct json_field *field, const void *record);
enum status json_record_take(const struct json_field *field, const struct json_cursor *cursor,
                             void *record, struct error *error);
bool json_record_same(const struct json_field *field, const void *a, const void *b);
/* Whether an encoder leaves the member out: it is optional, and zero or empty. */
bool json_record_omits(const struct json_field *field, const void *record);

/* A JSON string of at most capacity - 1 bytes of `text`, made well-formed as above; NULL when
 * memory runs out. */
json_t *json_text_new(const char *text, size_t capacity);

/* A JSON number; null where the value is none that JSON has. */
json_t *json_finite_new(double value);

/* Sets a member, taking over the reference; false when `value` is NULL or memory runs out. */
bool json_put(json_t *object, const char *key, json_t *value);

#endif
