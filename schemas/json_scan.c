/*
 * JSON records without a document. See json_scan.h.
 *
 * Invariant: the scanner never reads at or beyond `end`, and believes nothing that it has not
 * compared with what the grammar (RFC 8259) and the field's table allow.
 */
#include "schemas/json_scan.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 18,       /* of an integer: never overflows */
    NUMBER_BYTES_MAX = 40, /* of a double with 17 digits, and more */
    TEXT_BYTES_MIN = 4096,
};

/* ---- reading ---- */

bool json_scan_literal(struct json_scan *scan, const char *expected)
{
    size_t bytes = strlen(expected);
    if ((size_t)(scan->end - scan->at) < bytes || memcmp(scan->at, expected, bytes) != 0) {
        return false;
    }
    scan->at += bytes;
    return true;
}

static bool scan_char(struct json_scan *scan, char expected)
{
    if (scan->at == scan->end || *scan->at != expected) {
        return false;
    }
    scan->at++;
    return true;
}

static bool scan_key(struct json_scan *scan, const char *name, bool first)
{
    return (first || scan_char(scan, ',')) && scan_char(scan, '"') &&
           json_scan_literal(scan, name) && json_scan_literal(scan, "\":");
}

/* The bytes between two quotes, when all of them stand for themselves. */
static bool scan_string(struct json_scan *scan, const char **text, size_t *bytes)
{
    if (!scan_char(scan, '"')) {
        return false;
    }
    const char *begin = scan->at;
    const char *at = begin;
    while (at < scan->end && *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\') {
        at++;
    }
    *text = begin;
    *bytes = (size_t)(at - begin);
    scan->at = at;
    return scan_char(scan, '"');
}

static bool scan_text(struct json_scan *scan, char *out, size_t capacity)
{
    const char *text;
    size_t bytes;
    if (!scan_string(scan, &text, &bytes) || bytes >= capacity) {
        return false;
    }
    memcpy(out, text, bytes);
    memset(out + bytes, 0, capacity - bytes);
    return true;
}

static bool scan_choice(struct json_scan *scan, const char *const *names, size_t count, int *out)
{
    const char *text;
    size_t bytes;
    if (!scan_string(scan, &text, &bytes)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == bytes && memcmp(names[i], text, bytes) == 0) {
            *out = (int)i;
            return true;
        }
    }
    return false;
}

static size_t scan_digits(struct json_scan *scan)
{
    const char *begin = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9') {
        scan->at++;
    }
    return (size_t)(scan->at - begin);
}

/* An integer within the bounds; nothing that could go on as a fraction. */
static bool scan_integer(struct json_scan *scan, int64_t min, int64_t max, int64_t *out)
{
    bool negative = scan_char(scan, '-');
    const char *begin = scan->at;
    size_t digits = scan_digits(scan);
    if (digits == 0 || digits > DIGITS_MAX || (digits > 1 && *begin == '0') ||
        (scan->at < scan->end && (*scan->at == '.' || *scan->at == 'e' || *scan->at == 'E'))) {
        return false;
    }
    int64_t value = 0;
    for (const char *at = begin; at < scan->at; at++) {
        value = value * 10 + (*at - '0');
    }
    value = negative ? -value : value;
    *out = value;
    return value >= min && value <= max;
}

/* A number with a fraction or an exponent is converted as jansson does, by strtod; one without is
 * an integer to jansson, and converted as one. */
static bool scan_number(struct json_scan *scan, double *out)
{
    char copy[NUMBER_BYTES_MAX];
    struct json_scan start = *scan;
    int64_t integer = 0;
    if (scan_integer(scan, INT64_MIN, INT64_MAX, &integer)) {
        *out = (double)integer;
        return true;
    }
    *scan = start;
    (void)scan_char(scan, '-');
    const char *begin = scan->at;
    size_t digits = scan_digits(scan);
    if (digits == 0 || (digits > 1 && *begin == '0')) {
        return false;
    }
    bool real = false;
    if (scan_char(scan, '.')) {
        real = scan_digits(scan) > 0;
        if (!real) {
            return false;
        }
    }
    if (scan_char(scan, 'e') || scan_char(scan, 'E')) {
        (void)(scan_char(scan, '-') || scan_char(scan, '+'));
        real = scan_digits(scan) > 0;
    }
    size_t bytes = (size_t)(scan->at - start.at);
    if (!real || bytes >= sizeof copy) {
        return false;
    }
    memcpy(copy, start.at, bytes);
    copy[bytes] = '\0';
    char *end = NULL;
    *out = strtod(copy, &end);
    return end == copy + bytes && isfinite(*out);
}

static bool scan_f64(struct json_scan *scan, double *out)
{
    if (json_scan_literal(scan, "null")) {
        *out = NAN;
        return true;
    }
    if (json_scan_literal(scan, "\"inf\"")) {
        *out = INFINITY;
        return true;
    }
    if (json_scan_literal(scan, "\"-inf\"")) {
        *out = -INFINITY;
        return true;
    }
    return scan_number(scan, out);
}

static bool scan_u32(struct json_scan *scan, int64_t max, void *place)
{
    int64_t value = 0;
    bool good = scan_integer(scan, 0, max, &value);
    *(uint32_t *)place = (uint32_t)value;
    return good;
}

static bool scan_bool(struct json_scan *scan, void *place)
{
    bool yes = json_scan_literal(scan, "true");
    *(bool *)place = yes;
    return yes || json_scan_literal(scan, "false");
}

static bool scan_bits(struct json_scan *scan, const struct json_field *field, uint32_t *out)
{
    uint32_t bits = 0;
    if (!scan_char(scan, '[')) {
        return false;
    }
    while (!scan_char(scan, ']')) {
        int bit = 0;
        if ((bits != 0 && !scan_char(scan, ',')) ||
            !scan_choice(scan, field->names, field->name_count, &bit) || (bits >> bit & 1) != 0) {
            return false;
        }
        bits |= UINT32_C(1) << bit;
    }
    *out = bits;
    return true;
}

static bool scan_field(struct json_scan *scan, const struct json_field *field, void *place)
{
    int64_t value = 0;
    int index = 0;
    bool good;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return scan_text(scan, place, field->bytes);
    case JSON_FIELD_I64:
        return scan_integer(scan, INT64_MIN, INT64_MAX, place);
    case JSON_FIELD_U64:
        good = scan_integer(scan, 0, INT64_MAX, &value); /* text: the other way */
        *(uint64_t *)place = (uint64_t)value;
        return good;
    case JSON_FIELD_I32:
        good = scan_integer(scan, INT32_MIN, INT32_MAX, &value);
        *(int32_t *)place = (int32_t)value;
        return good;
    case JSON_FIELD_U32:
        return scan_u32(scan, UINT32_MAX, place);
    case JSON_FIELD_U32_OR_NULL:
        if (json_scan_literal(scan, "null")) {
            *(uint32_t *)place = UINT32_MAX;
            return true;
        }
        return scan_u32(scan, UINT32_MAX - 1, place);
    case JSON_FIELD_F64:
        return scan_f64(scan, place);
    case JSON_FIELD_BOOL:
        return scan_bool(scan, place);
    case JSON_FIELD_NAME:
        good = scan_choice(scan, field->names, field->name_count, &index);
        *(unsigned *)place = (unsigned)index;
        return good;
    case JSON_FIELD_BITS:
        return scan_bits(scan, field, place);
    case JSON_FIELD_RECORD:
        return scan_char(scan, '{') && json_scan_fields(scan, field->list, place) &&
               scan_char(scan, '}');
    }
    return false;
}

bool json_scan_fields(struct json_scan *scan, const struct json_field_list *list, void *record)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        if (!scan_key(scan, field->name, i == 0) ||
            !scan_field(scan, field, (char *)record + field->offset)) {
            return false;
        }
    }
    return true;
}

/* ---- writing ---- */

/* Room for `bytes` more; NULL when memory ran out. */
static char *reserve(struct json_text *text, size_t bytes)
{
    if (text->capacity - text->bytes < bytes && !text->failed) {
        size_t capacity = 2 * text->capacity + bytes + TEXT_BYTES_MIN;
        char *grown = realloc(text->data, capacity);
        if (grown != NULL) {
            text->data = grown;
            text->capacity = capacity;
        } else {
            text->failed = true;
        }
    }
    return text->failed ? NULL : text->data + text->bytes;
}

static void write_bytes(struct json_text *text, const char *from, size_t bytes)
{
    char *to = reserve(text, bytes);
    if (to != NULL) {
        memcpy(to, from, bytes);
        text->bytes += bytes;
    }
}

void json_write_literal(struct json_text *text, const char *literal)
{
    write_bytes(text, literal, strlen(literal));
}

void json_write_integer(struct json_text *text, int64_t value)
{
    char digits[24];
    int bytes = snprintf(digits, sizeof digits, "%lld", (long long)value);
    write_bytes(text, digits, (size_t)bytes);
}

/* By way of jansson, which knows every escape. Takes the value over. */
static void write_value(struct json_text *text, json_t *value)
{
    char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (dumped != NULL) {
        json_write_literal(text, dumped);
    } else {
        text->failed = true;
    }
    free(dumped);
    json_decref(value);
}

static void write_text(struct json_text *text, const char *value, size_t capacity)
{
    size_t bytes = strnlen(value, capacity - 1);
    size_t plain = 0;
    while (plain < bytes && value[plain] >= 0x20 && value[plain] < 0x7f && value[plain] != '"' &&
           value[plain] != '\\') {
        plain++;
    }
    if (plain < bytes) {
        write_value(text, json_text_new(value, capacity));
        return;
    }
    write_bytes(text, "\"", 1);
    write_bytes(text, value, bytes);
    write_bytes(text, "\"", 1);
}

static void write_u64(struct json_text *text, uint64_t value)
{
    /* As json_record_encode: text above what doubles hold. */
    bool quoted = value > UINT64_C(1) << 53;
    char digits[24];
    int bytes =
        snprintf(digits, sizeof digits, quoted ? "\"%llu\"" : "%llu", (unsigned long long)value);
    write_bytes(text, digits, (size_t)bytes);
}

static void write_f64(struct json_text *text, double value)
{
    char digits[NUMBER_BYTES_MAX];
    if (isnan(value)) {
        json_write_literal(text, "null");
    } else if (isinf(value)) {
        json_write_literal(text, value > 0 ? "\"inf\"" : "\"-inf\"");
    } else {
        int bytes = snprintf(digits, sizeof digits, "%.17g", value);
        write_bytes(text, digits, (size_t)bytes);
        if (strpbrk(digits, ".e") == NULL) {
            write_bytes(text, ".0", 2); /* -0 would be read as the integer 0 */
        }
    }
}

static void write_bits(struct json_text *text, const struct json_field *field, uint32_t bits)
{
    bool first = true;
    json_write_literal(text, "[");
    for (size_t bit = 0; bit < field->name_count; bit++) {
        if ((bits >> bit & 1) != 0) {
            json_write_literal(text, first ? "" : ",");
            write_text(text, field->names[bit], strlen(field->names[bit]) + 1);
            first = false;
        }
    }
    json_write_literal(text, "]");
}

static void write_field(struct json_text *text, const struct json_field *field, const void *place)
{
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        write_text(text, place, field->bytes);
        break;
    case JSON_FIELD_I64:
        json_write_integer(text, *(const int64_t *)place);
        break;
    case JSON_FIELD_U64:
        write_u64(text, *(const uint64_t *)place);
        break;
    case JSON_FIELD_I32:
        json_write_integer(text, *(const int32_t *)place);
        break;
    case JSON_FIELD_U32:
        json_write_integer(text, *(const uint32_t *)place);
        break;
    case JSON_FIELD_U32_OR_NULL:
        if (*(const uint32_t *)place == UINT32_MAX) {
            json_write_literal(text, "null");
        } else {
            json_write_integer(text, *(const uint32_t *)place);
        }
        break;
    case JSON_FIELD_F64:
        write_f64(text, *(const double *)place);
        break;
    case JSON_FIELD_BOOL:
        json_write_literal(text, *(const bool *)place ? "true" : "false");
        break;
    case JSON_FIELD_NAME: {
        unsigned index = *(const unsigned *)place;
        CHECK(index < field->name_count);
        write_text(text, field->names[index], strlen(field->names[index]) + 1);
        break;
    }
    case JSON_FIELD_BITS:
        write_bits(text, field, *(const uint32_t *)place);
        break;
    case JSON_FIELD_RECORD:
        json_write_record(text, field->list, place);
        break;
    }
}

void json_write_record(struct json_text *text, const struct json_field_list *list,
                       const void *record)
{
    json_write_literal(text, "{");
    bool first = true;
    for (size_t i = 0; i < list->count; i++) {
        if (json_record_omits(&list->fields[i], record)) {
            continue;
        }
        json_write_literal(text, first ? "\"" : ",\"");
        json_write_literal(text, list->fields[i].name);
        json_write_literal(text, "\":");
        write_field(text, &list->fields[i], (const char *)record + list->fields[i].offset);
        first = false;
    }
    json_write_literal(text, "}");
}
