/*
 * OpenDRIVE: attributes of elements to numbers, within bounds, and what an error says of a place.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const od_tag_names[OD_TAG_COUNT] = {
    "OpenDRIVE",
    "arc",
    "border",
    "center",
    "connection",
    "control",
    "controller",
    "cornerLocal",
    "cornerRoad",
    "elevation",
    "elevationProfile",
    "geoReference",
    "geometry",
    "header",
    "junction",
    "lane",
    "laneLink",
    "laneOffset",
    "laneSection",
    "lanes",
    "lateralProfile",
    "left",
    "line",
    "link",
    "object",
    "objects",
    "offset",
    "outline",
    "outlines",
    "paramPoly3",
    "planView",
    "poly3",
    "predecessor",
    "priority",
    "right",
    "road",
    "roadMark",
    "shape",
    "signal",
    "signalReference",
    "signals",
    "speed",
    "spiral",
    "successor",
    "superelevation",
    "type",
    "validity",
    "width",
};

enum status od_fail(const struct od_reader *reader, const struct xml_element *element,
                    enum status status, const char *format, ...)
{
    struct error local = {0};
    struct error *error = reader->error != NULL ? reader->error : &local;
    va_list args;
    va_start(args, format);
    error_setv(error, status, format, args);
    va_end(args);
    return error_prefix(error, "%s: line %u: <%s>", reader->network->name, element->line,
                        element->tag >= 0 ? od_tag_names[element->tag] : "root");
}

void *od_alloc(const struct od_reader *reader, size_t count, size_t size)
{
    void *memory = arena_alloc(&reader->network->arena, count, size);
    if (memory == NULL) {
        error_set(reader->error, STATUS_LIMIT,
                  "%s: expected a network of at most %d bytes in memory, found more",
                  reader->network->name, OPENDRIVE_ARENA_BYTES);
    }
    return memory;
}

const char *od_copy(const struct od_reader *reader, const char *text)
{
    const char *source = text != NULL ? text : "";
    size_t bytes = strlen(source);
    char *copy = od_alloc(reader, bytes + 1, 1);
    if (copy != NULL) {
        memcpy(copy, source, bytes);
    }
    return copy;
}

/* The text without white space around it; false where it is longer than any number. */
static bool trim(const char *text, char out[64])
{
    size_t start = strspn(text, " \t\r\n");
    size_t bytes = strlen(text + start);
    while (bytes > 0 && strchr(" \t\r\n", text[start + bytes - 1]) != NULL) {
        bytes--;
    }
    if (bytes == 0 || bytes >= 64) {
        return false;
    }
    memcpy(out, text + start, bytes);
    out[bytes] = '\0';
    return true;
}

bool od_parse_number(const char *text, double *out)
{
    char plain[64];
    char *end;
    if (!trim(text, plain) || strspn(plain, "0123456789+-.eE") != strlen(plain)) {
        return false; /* also keeps out what strtod takes besides decimals: hex, inf, nan */
    }
    double value = strtod(plain, &end);
    if (*end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

bool od_parse_int(const char *text, int32_t *out)
{
    double value;
    if (!od_parse_number(text, &value) || fabs(value) > 1e9 || value != floor(value)) {
        return false;
    }
    *out = (int32_t)value;
    return true;
}

enum status od_optional(const struct od_reader *reader, const struct xml_element *element,
                        const char *attribute, double min, double max, double *out)
{
    const char *text = xml_attribute(element, attribute);
    double value;
    if (text == NULL || text[0] == '\0') {
        return STATUS_OK;
    }
    if (!od_parse_number(text, &value)) {
        return od_fail(reader, element, STATUS_BAD_INPUT, "%s: expected a number, found \"%.64s\"",
                       attribute, text);
    }
    if (!(value >= min && value <= max)) {
        return od_fail(reader, element, STATUS_BAD_INPUT, "%s: expected %g to %g, found %g",
                       attribute, min, max, value);
    }
    *out = value;
    return STATUS_OK;
}

enum status od_number(const struct od_reader *reader, const struct xml_element *element,
                      const char *attribute, double min, double max, double *out)
{
    const char *text = "";
    TRY(od_text(reader, element, attribute, &text));
    return od_optional(reader, element, attribute, min, max, out);
}

enum status od_int(const struct od_reader *reader, const struct xml_element *element,
                   const char *attribute, int32_t *out)
{
    const char *text = "";
    TRY(od_text(reader, element, attribute, &text));
    if (!od_parse_int(text, out)) {
        return od_fail(reader, element, STATUS_BAD_INPUT,
                       "%s: expected a whole number, found \"%.64s\"", attribute, text);
    }
    return STATUS_OK;
}

enum status od_text(const struct od_reader *reader, const struct xml_element *element,
                    const char *attribute, const char **out)
{
    const char *text = xml_attribute(element, attribute);
    if (text == NULL || text[0] == '\0') {
        return od_fail(reader, element, STATUS_BAD_INPUT,
                       "expected an attribute \"%s\", found none", attribute);
    }
    *out = text;
    return STATUS_OK;
}

enum status od_required(const struct od_reader *reader, const struct xml_element *element,
                        enum od_tag tag, const struct xml_element **out)
{
    const struct xml_element *child = xml_child(element, (int)tag);
    if (child == NULL) {
        return od_fail(reader, element, STATUS_BAD_INPUT, "expected a <%s> in it, found none",
                       od_tag_names[tag]);
    }
    *out = child;
    return STATUS_OK;
}

static int compare_cubics(const void *a, const void *b)
{
    double left = ((const struct opendrive_cubic *)a)->s_m;
    double right = ((const struct opendrive_cubic *)b)->s_m;
    return left < right ? -1 : left > right;
}

enum status od_cubics(const struct od_reader *reader, const struct xml_element *parent,
                      enum od_tag tag, const char *key, double from_m, struct opendrive_cubics *out)
{
    uint32_t count = parent != NULL ? xml_count(parent, (int)tag) : 0;
    if (count == 0) {
        return STATUS_OK;
    }
    struct opendrive_cubic *items = od_alloc(reader, count, sizeof *items);
    if (items == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *element = xml_child(parent, (int)tag);
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++, element = xml_next(element)) {
        struct opendrive_cubic *item = &items[i];
        TRY(od_number(reader, element, key, -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &item->s_m));
        TRY(od_optional(reader, element, "a", -OD_WIDTH_MAX_M, OD_WIDTH_MAX_M, &item->a));
        TRY(od_optional(reader, element, "b", -OD_COEFFICIENT_MAX, OD_COEFFICIENT_MAX, &item->b));
        TRY(od_optional(reader, element, "c", -OD_COEFFICIENT_MAX, OD_COEFFICIENT_MAX, &item->c));
        TRY(od_optional(reader, element, "d", -OD_COEFFICIENT_MAX, OD_COEFFICIENT_MAX, &item->d));
        item->s_m += from_m;
        sorted = sorted && (i == 0 || items[i - 1].s_m <= item->s_m);
    }
    if (!sorted) {
        qsort(items, count, sizeof *items, compare_cubics);
    }
    *out = (struct opendrive_cubics){count, items};
    return STATUS_OK;
}

double od_cubics_at(const struct opendrive_cubics *cubics, double s_m, double end_m, double *slope)
{
    uint32_t low = 0;
    uint32_t high = cubics->count;
    *slope = 0;
    if (cubics->count == 0) {
        return 0;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (cubics->items[middle].s_m <= s_m && cubics->items[middle].s_m < end_m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct opendrive_cubic *item = &cubics->items[low];
    double ds = s_m - item->s_m;
    if (ds < 0) {
        return item->a;
    }
    *slope = item->b + ds * (2 * item->c + ds * 3 * item->d);
    return item->a + ds * (item->b + ds * (item->c + ds * item->d));
}

static int compare_speeds(const void *a, const void *b)
{
    double left = ((const struct opendrive_speed *)a)->s_m;
    double right = ((const struct opendrive_speed *)b)->s_m;
    return left < right ? -1 : left > right;
}

void od_speeds_sort(struct opendrive_speed *speeds, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (speeds[i].s_m < speeds[i - 1].s_m) {
            qsort(speeds, count, sizeof *speeds, compare_speeds);
            return;
        }
    }
}

const struct xml_element *od_first(const struct xml_element *element, enum od_tag tag,
                                   const char *key)
{
    const struct xml_element *first = xml_child(element, (int)tag);
    double first_m = INFINITY;
    for (const struct xml_element *at = first; at != NULL; at = xml_next(at)) {
        const char *text = xml_attribute(at, key);
        double s_m = 0;
        if ((text == NULL || od_parse_number(text, &s_m)) && s_m < first_m) {
            first = at;
            first_m = s_m;
        }
    }
    return first;
}

enum status od_speed(const struct od_reader *reader, const struct xml_element *element, double *out)
{
    const char *unit = xml_attribute(element, "unit");
    const char *text = "";
    double value = 0;
    TRY(od_text(reader, element, "max", &text));
    if (strcmp(text, "no limit") == 0 || strcmp(text, "undefined") == 0) {
        *out = 0;
        return STATUS_OK;
    }
    TRY(od_number(reader, element, "max", 0, 1e6, &value));
    if (unit == NULL || unit[0] == '\0' || strcmp(unit, "m/s") == 0) {
        *out = value;
    } else if (strcmp(unit, "km/h") == 0 || strcmp(unit, "kmh") == 0) {
        *out = value * MPS_PER_KPH;
    } else if (strcmp(unit, "mph") == 0) {
        *out = value * 0.44704;
    } else {
        return od_fail(reader, element, STATUS_BAD_INPUT,
                       "unit: expected \"m/s\", \"km/h\" or \"mph\", found \"%.32s\"", unit);
    }
    return STATUS_OK;
}
