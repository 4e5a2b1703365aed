/*
 * JSON records without a document. See json_scan.h.
 *
 * Invariant: what is taken is what the grammar (RFC 8259) and the field's table allow.
 */
#include "schemas/json_scan.h"

#include "base/check.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES_MAX = 64, /* of an enumeration's name */
    TEXT_BYTES_MIN = 4096,
};

/* ---- reading ---- */

static bool take_text(struct scan *scan, char *out, size_t capacity)
{
    size_t length = 0;
    bool good = scan_string(scan, out, capacity, &length);
    if (good) {
        memset(out + length, 0, capacity - length); /* equal records have equal bytes */
    }
    return good;
}

static bool take_choice(struct scan *scan, const struct json_field *field, unsigned *out)
{
    char name[NAME_BYTES_MAX];
    if (!scan_string(scan, name, sizeof name, NULL)) {
        return false;
    }
    for (size_t i = 0; i < field->name_count; i++) {
        if (strcmp(field->names[i], name) == 0) {
            *out = (unsigned)i;
            return true;
        }
    }
    return false;
}

/* A number without fraction and exponent is an integer to jansson: the other way. */
static bool take_f64(struct scan *scan, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"null", NAN}, {"\"inf\"", INFINITY}, {"\"-inf\"", -INFINITY}};
    const char *start = scan->text + scan->at;
    if (scan->at < scan->bytes && (*start == 'n' || *start == '"')) {
        size_t i = 0;
        while (i < COUNT_OF(words) && !scan_literal(scan, words[i].text)) {
            i++;
        }
        *out = i < COUNT_OF(words) ? words[i].value : 0.0;
        return i < COUNT_OF(words);
    }
    if (!scan_number(scan, out)) {
        return false;
    }
    size_t bytes = (size_t)(scan->text + scan->at - start);
    return isfinite(*out) &&
           (memchr(start, '.', bytes) != NULL || memchr(start, 'e', bytes) != NULL ||
            memchr(start, 'E', bytes) != NULL);
}

static bool take_bits(struct scan *scan, const struct json_field *field, uint32_t *out)
{
    uint32_t bits = 0;
    if (!scan_literal(scan, "[")) {
        return false;
    }
    for (bool first = true; scan_element(scan, &first);) {
        unsigned bit = 0;
        if (!take_choice(scan, field, &bit) || (bits >> bit & 1) != 0) {
            return false;
        }
        bits |= UINT32_C(1) << bit;
    }
    *out = bits;
    return scan->status == STATUS_OK;
}

static bool take_field(struct scan *scan, const struct json_field *field, void *place)
{
    int64_t value = 0;
    bool good = true;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        return take_text(scan, place, field->bytes);
    case JSON_FIELD_I64:
        return scan_signed(scan, INT64_MIN, INT64_MAX, place);
    case JSON_FIELD_U64:
        return scan_integer(scan, place); /* text: the other way */
    case JSON_FIELD_I32:
        good = scan_signed(scan, INT32_MIN, INT32_MAX, &value);
        *(int32_t *)place = (int32_t)value;
        return good;
    case JSON_FIELD_U32_OR_NULL:
        value = UINT32_MAX;
        good = scan_literal(scan, "null") || scan_signed(scan, 0, UINT32_MAX - 1, &value);
        *(uint32_t *)place = (uint32_t)value;
        return good;
    case JSON_FIELD_U32:
        good = scan_signed(scan, 0, UINT32_MAX, &value);
        *(uint32_t *)place = (uint32_t)value;
        return good;
    case JSON_FIELD_F64:
        return take_f64(scan, place);
    case JSON_FIELD_BOOL:
        *(bool *)place = scan_literal(scan, "true");
        return *(bool *)place || scan_literal(scan, "false");
    case JSON_FIELD_NAME:
        return take_choice(scan, field, place);
    case JSON_FIELD_BITS:
        return take_bits(scan, field, place);
    case JSON_FIELD_RECORD:
        return scan_literal(scan, "{") && json_scan_fields(scan, field->list, place) &&
               scan_literal(scan, "}");
    }
    return false;
}

/* Behind `"name":`. */
static bool take_key(struct scan *scan, const char *name)
{
    const char *at = scan->text + scan->at;
    size_t bytes = strlen(name);
    if (scan->bytes - scan->at < bytes + 3 || at[0] != '"' || memcmp(at + 1, name, bytes) != 0 ||
        at[bytes + 1] != '"' || at[bytes + 2] != ':') {
        return false;
    }
    scan->at += bytes + 3;
    return true;
}

bool json_scan_fields(struct scan *scan, const struct json_field_list *list, void *record)
{
    bool first = true;
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        char *place = (char *)record + field->offset;
        size_t before = scan->at;
        bool there = (first || (scan->at < scan->bytes && scan_literal(scan, ","))) &&
                     take_key(scan, field->name);
        if (!there && field->optional) {
            scan->at = before;
            memset(place, 0, field->bytes);
            continue;
        }
        if (!there || !take_field(scan, field, place)) {
            return false;
        }
        first = false;
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
    size_t at = sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    write_bytes(text, digits + at, sizeof digits - at);
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
    char digits[TEXT_REAL_BYTES];
    if (isnan(value)) {
        json_write_literal(text, "null");
    } else if (isinf(value)) {
        json_write_literal(text, value > 0 ? "\"inf\"" : "\"-inf\"");
    } else {
        write_bytes(text, digits, text_real(value, digits));
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
    case JSON_FIELD_I32:
    case JSON_FIELD_U32:
        json_write_integer(text, json_field_integer(field, place));
        break;
    case JSON_FIELD_U64:
        write_u64(text, *(const uint64_t *)place);
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
