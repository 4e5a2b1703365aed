/*
 * The table-driven codec. See json_record.h for the JSON forms.
 */
#include "schemas/json_record.h"

#include "base/check.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest integer up to which a double holds every integer. */
static const uint64_t double_integer_max = UINT64_C(1) << 53;

json_t *json_text_new(const char *text, size_t capacity)
{
    size_t bytes = strnlen(text, capacity - 1);
    json_t *value = json_stringn(text, bytes);
    if (value != NULL) {
        return value; /* the usual case: well-formed, nothing to copy */
    }
    char *copy = malloc(bytes + 1);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    utf8_repair(copy);
    value = json_stringn(copy, bytes);
    free(copy);
    return value;
}

json_t *json_finite_new(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

bool json_put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static json_t *encode_f64(const void *place)
{
    double value;
    memcpy(&value, place, sizeof value);
    if (isnan(value)) {
        return json_null();
    }
    if (isinf(value)) {
        return json_string(value > 0 ? "inf" : "-inf");
    }
    return json_real(value);
}

static json_t *encode_u64(const void *place)
{
    uint64_t value;
    memcpy(&value, place, sizeof value);
    if (value <= double_integer_max) {
        return json_integer((json_int_t)value);
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    return json_string(digits);
}

static json_t *encode_bits(const struct json_field *field, uint32_t bits)
{
    json_t *array = json_array();
    for (size_t bit = 0; array != NULL && bit < field->name_count; bit++) {
        if ((bits >> bit & 1) != 0 &&
            json_array_append_new(array, json_string(field->names[bit])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

int64_t json_field_integer(const struct json_field *field, const void *place)
{
    switch (field->kind) {
    case JSON_FIELD_I64:
    case JSON_FIELD_U64:
        return *(const int64_t *)place;
    case JSON_FIELD_I32:
        return *(const int32_t *)place;
    case JSON_FIELD_BOOL:
        return *(const uint8_t *)place; /* in a record that came from elsewhere, any */
    default:
        return *(const uint32_t *)place;
    }
}

void json_field_set_integer(const struct json_field *field, void *place, int64_t value)
{
    switch (field->kind) {
    case JSON_FIELD_I64:
    case JSON_FIELD_U64:
        *(int64_t *)place = value;
        break;
    case JSON_FIELD_BOOL:
        *(bool *)place = value != 0;
        break;
    default:
        *(uint32_t *)place = (uint32_t)value;
        break;
    }
}

static json_t *encode_field(const struct json_field *field, const void *place)
{
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return json_text_new(place, field->bytes);
    case JSON_FIELD_I64:
    case JSON_FIELD_I32:
    case JSON_FIELD_U32:
        return json_integer(json_field_integer(field, place));
    case JSON_FIELD_U64:
        return encode_u64(place);
    case JSON_FIELD_U32_OR_NULL: {
        uint32_t value = *(const uint32_t *)place;
        return value == UINT32_MAX ? json_null() : json_integer(value);
    }
    case JSON_FIELD_F64:
        return encode_f64(place);
    case JSON_FIELD_BOOL:
        return json_boolean(*(const bool *)place);
    case JSON_FIELD_NAME: {
        unsigned index = *(const unsigned *)place;
        CHECK(index < field->name_count);
        return json_string(field->names[index]);
    }
    case JSON_FIELD_BITS:
        return encode_bits(field, *(const uint32_t *)place);
    case JSON_FIELD_RECORD:
        return json_record_encode(field->list, place, NULL);
    }
    return NULL;
}

bool json_record_omits(const struct json_field *field, const void *record)
{
    const char *place = (const char *)record + field->offset;
    size_t zeroes = 0;
    if (!field->optional || field->kind == JSON_FIELD_TEXT) {
        return field->optional && place[0] == '\0';
    }
    while (zeroes < field->bytes && place[zeroes] == 0) {
        zeroes++;
    }
    return zeroes == field->bytes;
}

static bool same(const struct json_field *field, const void *a, const void *b)
{
    if (field->kind == JSON_FIELD_TEXT) {
        return strncmp(a, b, field->bytes) == 0;
    }
    return memcmp(a, b, field->bytes) == 0;
}

json_t *json_record_value(const struct json_field *field, const void *record)
{
    return encode_field(field, (const char *)record + field->offset);
}

bool json_record_same(const struct json_field *field, const void *a, const void *b)
{
    const char *left = (const char *)a + field->offset;
    const char *right = (const char *)b + field->offset;
    if (field->kind == JSON_FIELD_F64) {
        double of_left;
        double of_right;
        memcpy(&of_left, left, sizeof of_left);
        memcpy(&of_right, right, sizeof of_right);
        return of_left == of_right || (isnan(of_left) && isnan(of_right));
    }
    return same(field, left, right);
}

json_t *json_record_encode(const struct json_field_list *list, const void *record,
                           const void *common)
{
    json_t *object = json_object();
    for (size_t i = 0; object != NULL && i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        const void *place = (const char *)record + field->offset;
        if (json_record_omits(field, record) &&
            (common == NULL || json_record_omits(field, common))) {
            continue;
        }
        if (common != NULL && same(field, place, (const char *)common + field->offset)) {
            continue;
        }
        if (!json_put(object, field->name, encode_field(field, place))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static enum status decode_f64(const struct json_cursor *cursor, double *out, struct error *error)
{
    if (json_is_null(cursor->value)) {
        *out = NAN;
        return STATUS_OK;
    }
    if (json_is_string(cursor->value)) {
        static const char *const infinities[] = {"inf", "-inf"};
        int sign;
        TRY(json_value_choice(cursor, infinities, 2, &sign, error));
        *out = sign == 0 ? INFINITY : -INFINITY;
        return STATUS_OK;
    }
    return json_value_number(cursor, -INFINITY, INFINITY, out, error);
}

static enum status decode_u64(const struct json_cursor *cursor, uint64_t *out, struct error *error)
{
    if (!json_is_string(cursor->value)) {
        int64_t value;
        TRY(json_value_integer(cursor, 0, INT64_MAX, &value, error));
        *out = (uint64_t)value;
        return STATUS_OK;
    }
    char digits[24];
    TRY(json_value_text(cursor, digits, sizeof digits, error));
    char *end = digits;
    errno = 0;
    unsigned long long value = strtoull(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || errno != 0) {
        return json_fail(cursor, error, "expected decimal digits up to 2^64 - 1, found \"%s\"",
                         digits);
    }
    *out = value;
    return STATUS_OK;
}

static enum status decode_integer(const struct json_field *field, const struct json_cursor *cursor,
                                  void *place, struct error *error)
{
    int64_t value = 0;
    bool narrow = field->kind != JSON_FIELD_I64;
    bool is_signed = field->kind == JSON_FIELD_I64 || field->kind == JSON_FIELD_I32;
    int64_t min = !is_signed ? 0 : narrow ? INT32_MIN : INT64_MIN;
    int64_t max = !narrow ? INT64_MAX : is_signed ? INT32_MAX : UINT32_MAX;
    if (field->kind == JSON_FIELD_U32_OR_NULL) {
        max = UINT32_MAX - 1;
        if (json_is_null(cursor->value)) {
            *(uint32_t *)place = UINT32_MAX;
            return STATUS_OK;
        }
    }
    TRY(json_value_integer(cursor, min, max, &value, error));
    json_field_set_integer(field, place, value);
    return STATUS_OK;
}

static enum status decode_bits(const struct json_field *field, const struct json_cursor *cursor,
                               uint32_t *out, struct error *error)
{
    size_t count;
    uint32_t bits = 0;
    TRY(json_array_begin(cursor, 0, field->name_count, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        int bit = 0;
        TRY(json_value_choice(&element, field->names, field->name_count, &bit, error));
        if ((bits >> bit & 1) != 0) {
            return json_fail(&element, error, "expected each name once, found \"%s\" again",
                             field->names[bit]);
        }
        bits |= UINT32_C(1) << bit;
    }
    *out = bits;
    return STATUS_OK;
}

static enum status decode_field(const struct json_field *field, const struct json_cursor *cursor,
                                void *place, struct error *error)
{
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        memset(place, 0, field->bytes); /* equal records have equal bytes */
        return json_value_text(cursor, place, field->bytes, error);
    case JSON_FIELD_U64:
        return decode_u64(cursor, place, error);
    case JSON_FIELD_F64:
        return decode_f64(cursor, place, error);
    case JSON_FIELD_BOOL:
        return json_value_bool(cursor, place, error);
    case JSON_FIELD_NAME: {
        int index;
        TRY(json_value_choice(cursor, field->names, field->name_count, &index, error));
        *(unsigned *)place = (unsigned)index;
        return STATUS_OK;
    }
    case JSON_FIELD_BITS:
        return decode_bits(field, cursor, place, error);
    case JSON_FIELD_RECORD:
        return json_record_decode(field->list, NULL, true, cursor, place, error);
    default:
        return decode_integer(field, cursor, place, error);
    }
}

enum status json_record_take(const struct json_field *field, const struct json_cursor *cursor,
                             void *record, struct error *error)
{
    return decode_field(field, cursor, (char *)record + field->offset, error);
}

enum status json_record_decode(const struct json_field_list *list, const char *const *extra_keys,
                               bool required, const struct json_cursor *cursor, void *record,
                               struct error *error)
{
    const char *keys[JSON_RECORD_KEYS_MAX + 1];
    size_t key_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        CHECK(key_count < JSON_RECORD_KEYS_MAX);
        keys[key_count++] = list->fields[i].name;
    }
    for (; extra_keys != NULL && *extra_keys != NULL; extra_keys++) {
        CHECK(key_count < JSON_RECORD_KEYS_MAX);
        keys[key_count++] = *extra_keys;
    }
    keys[key_count] = NULL;
    TRY(json_object_begin(cursor, keys, error));
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        struct json_cursor member = json_cursor_member(cursor, field->name);
        if (json_cursor_present(&member) || (required && !field->optional)) {
            TRY(json_record_take(field, &member, record, error));
        } else if (required) {
            memset((char *)record + field->offset, 0, field->bytes);
        }
    }
    return STATUS_OK;
}
