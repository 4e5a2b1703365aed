/*
 * Expressions of OpenSCENARIO: "$name" and "${...}" with + - * / %, comparisons, and, or, not,
 * parentheses, and the functions of 1.1 and later.
 *
 * Text is read once from left to right by recursive descent; nesting and length are bounded.
 * Invariant: a result is finite, or the evaluation fails with a sentence.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NESTING_MAX = 64 };

struct reader {
    const struct osc_scope *scope;
    const char *at;
    int depth;
    bool failed;
    char *message;
    size_t message_bytes;
};

bool osc_parse_number(const char *text, double *out)
{
    char *end;
    while (isspace((unsigned char)*text)) {
        text++;
    }
    if (*text == '\0' || !(isdigit((unsigned char)*text) || strchr("+-.", *text) != NULL)) {
        return false;
    }
    double value = strtod(text, &end);
    while (isspace((unsigned char)*end)) {
        end++;
    }
    if (*end != '\0' || end == text || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

static double __attribute__((format(printf, 2, 3)))
fail(struct reader *reader, const char *format, ...)
{
    if (!reader->failed) {
        va_list args;
        va_start(args, format);
        vsnprintf(reader->message, reader->message_bytes, format, args);
        va_end(args);
    }
    reader->failed = true;
    return 0.0;
}

static const char *lookup(const struct osc_scope *scope, const char *name, size_t bytes)
{
    for (; scope != NULL; scope = scope->outer) {
        for (uint32_t i = 0; i < scope->count; i++) {
            const char *item = scope->items[i].name;
            if (strlen(item) == bytes && memcmp(item, name, bytes) == 0) {
                return scope->items[i].value;
            }
        }
    }
    return NULL;
}

static size_t name_bytes(const char *text)
{
    size_t bytes = 0;
    while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_' || text[bytes] == '.' ||
           (unsigned char)text[bytes] >= 0x80) {
        bytes++;
    }
    return bytes;
}

static void skip(struct reader *reader)
{
    while (isspace((unsigned char)*reader->at)) {
        reader->at++;
    }
}

static bool take(struct reader *reader, const char *token)
{
    size_t bytes = strlen(token);
    skip(reader);
    if (strncmp(reader->at, token, bytes) != 0 ||
        (isalpha((unsigned char)token[0]) && name_bytes(reader->at) != bytes)) {
        return false;
    }
    reader->at += bytes;
    return true;
}

static double power(struct reader *reader, double base, double exponent)
{
    if (exponent == floor(exponent) && fabs(exponent) <= 64) {
        double result = 1.0;
        for (int i = 0; i < (int)fabs(exponent); i++) {
            result *= base;
        }
        return exponent < 0 ? 1.0 / result : result;
    }
    return base > 0.0 ? dmath_exp(exponent * dmath_log(base))
                      : fail(reader, "expected a base above 0 for pow, found %g", base);
}

static double or_value(struct reader *reader);

static double call(struct reader *reader, const char *name, size_t bytes)
{
    static const char *const names[] = {"round", "floor", "ceil", "sqrt", "abs",  "sign",
                                        "sin",   "cos",   "tan",  "asin", "acos", "atan",
                                        "pow",   "min",   "max",  "atan2"};
    size_t which = 0;
    while (which < 16 &&
           (strlen(names[which]) != bytes || strncmp(names[which], name, bytes) != 0)) {
        which++;
    }
    if (which == 16) {
        return fail(reader, "expected a function of OpenSCENARIO, found %.*s", (int)bytes, name);
    }
    double a = or_value(reader);
    double b = 0.0;
    if (which >= 12 && !take(reader, ",")) {
        return fail(reader, "expected two arguments of %s, found one", names[which]);
    }
    if (which >= 12) {
        b = or_value(reader);
    }
    if (!take(reader, ")")) {
        return fail(reader, "expected ) after the arguments of %s, found \"%.20s\"", names[which],
                    reader->at);
    }
    switch (which) {
    case 0:
        return floor(a + 0.5);
    case 1:
        return floor(a);
    case 2:
        return ceil(a);
    case 3:
        return a >= 0 ? sqrt(a) : fail(reader, "expected at least 0 for sqrt, found %g", a);
    case 4:
        return fabs(a);
    case 5:
        return (a > 0) - (a < 0);
    case 6:
        return dmath_sin(a);
    case 7:
        return dmath_cos(a);
    case 8:
        return dmath_tan(a);
    case 9:
        return dmath_atan2(a, sqrt(dmath_max(1 - a * a, 0)));
    case 10:
        return dmath_atan2(sqrt(dmath_max(1 - a * a, 0)), a);
    case 11:
        return dmath_atan(a);
    case 12:
        return power(reader, a, b);
    case 13:
        return dmath_min(a, b);
    case 14:
        return dmath_max(a, b);
    default:
        return dmath_atan2(a, b);
    }
}

static double name_value(struct reader *reader, const char *value, const char *name, size_t bytes)
{
    double number;
    if (value == NULL) {
        return fail(reader, "expected the name of a parameter, found %.*s", (int)bytes, name);
    }
    if (osc_parse_number(value, &number)) {
        return number;
    }
    if (strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0) {
        return strcasecmp(value, "true") == 0;
    }
    return fail(reader, "expected a number in $%.*s, found \"%.60s\"", (int)bytes, name, value);
}

static double atom(struct reader *reader)
{
    if (++reader->depth > NESTING_MAX) {
        return fail(reader, "expected at most %d nested parts, found more", NESTING_MAX);
    }
    double value = 0.0;
    skip(reader);
    if (take(reader, "(")) {
        value = or_value(reader);
        if (!take(reader, ")")) {
            value = fail(reader, "expected ), found \"%.20s\"", reader->at);
        }
    } else if (take(reader, "-")) {
        value = -atom(reader);
    } else if (take(reader, "+")) {
        value = atom(reader);
    } else if (take(reader, "not") || take(reader, "!")) {
        value = atom(reader) == 0.0;
    } else if (*reader->at == '$') {
        const char *name = ++reader->at;
        bool braces = *name == '{';
        name += braces;
        size_t bytes = name_bytes(name);
        reader->at = name + bytes + (braces && name[bytes] == '}');
        value = name_value(reader, lookup(reader->scope, name, bytes), name, bytes);
    } else if (isdigit((unsigned char)*reader->at) || *reader->at == '.') {
        char *end;
        value = strtod(reader->at, &end);
        reader->at = end;
    } else {
        const char *name = reader->at;
        size_t bytes = name_bytes(name);
        reader->at += bytes;
        if (bytes > 0 && take(reader, "(")) {
            value = call(reader, name, bytes);
        } else if (bytes == 2 && strncmp(name, "pi", 2) == 0) {
            value = PI_RAD;
        } else if (bytes == 4 && strncmp(name, "true", 4) == 0) {
            value = 1.0;
        } else if (bytes == 5 && strncmp(name, "false", 5) == 0) {
            value = 0.0;
        } else {
            value = fail(reader, "expected a number, $name or function, found \"%.20s\"", name);
        }
    }
    reader->depth--;
    return value;
}

static double product(struct reader *reader)
{
    double value = atom(reader);
    while (!reader->failed) {
        bool times = take(reader, "*");
        bool over = !times && take(reader, "/");
        bool rest = !times && !over && take(reader, "%");
        if (!times && !over && !rest) {
            break;
        }
        double by = atom(reader);
        if (times) {
            value *= by;
        } else if (by == 0.0) {
            return fail(reader, "expected a divisor other than 0, found 0");
        } else {
            value = over ? value / by : value - by * trunc(value / by);
        }
    }
    return value;
}

static double sum(struct reader *reader)
{
    double value = product(reader);
    while (!reader->failed) {
        if (take(reader, "+")) {
            value += product(reader);
        } else if (take(reader, "-")) {
            value -= product(reader);
        } else {
            break;
        }
    }
    return value;
}

static double comparison(struct reader *reader)
{
    double value = sum(reader);
    if (reader->failed) {
        return 0.0;
    }
    if (take(reader, "<=")) {
        return value <= sum(reader);
    }
    if (take(reader, ">=")) {
        return value >= sum(reader);
    }
    if (take(reader, "==")) {
        return value == sum(reader);
    }
    if (take(reader, "!=")) {
        return value != sum(reader);
    }
    if (take(reader, "<")) {
        return value < sum(reader);
    }
    return take(reader, ">") ? value > sum(reader) : value;
}

static double and_value(struct reader *reader)
{
    double value = comparison(reader);
    while (!reader->failed && (take(reader, "and") || take(reader, "&&"))) {
        double other = comparison(reader);
        value = value != 0.0 && other != 0.0;
    }
    return value;
}

static double or_value(struct reader *reader)
{
    double value = and_value(reader);
    while (!reader->failed && (take(reader, "or") || take(reader, "||"))) {
        double other = and_value(reader);
        value = value != 0.0 || other != 0.0;
    }
    return value;
}

bool osc_evaluate(const struct osc_scope *scope, const char *text, char out[OSC_VALUE_BYTES],
                  char *message, size_t message_bytes)
{
    if (text[0] != '$') {
        snprintf(out, OSC_VALUE_BYTES, "%s", text);
        return true;
    }
    if (text[1] != '{') {
        size_t bytes = name_bytes(text + 1);
        const char *value = lookup(scope, text + 1, bytes);
        if (text[1 + bytes] != '\0' || value == NULL) {
            snprintf(message, message_bytes, "expected the name of a parameter, found %.80s", text);
            return false;
        }
        snprintf(out, OSC_VALUE_BYTES, "%s", value);
        return true;
    }
    struct reader reader = {
        .scope = scope, .at = text + 2, .message = message, .message_bytes = message_bytes};
    double value = or_value(&reader);
    if (!reader.failed && !take(&reader, "}")) {
        fail(&reader, "expected } or an operator, found \"%.20s\"", reader.at);
    }
    skip(&reader);
    if (!reader.failed && *reader.at != '\0') {
        fail(&reader, "expected nothing after }, found \"%.20s\"", reader.at);
    }
    if (!reader.failed && !isfinite(value)) {
        fail(&reader, "expected a finite number, found %g", value);
    }
    if (!reader.failed) {
        snprintf(out, OSC_VALUE_BYTES, "%.17g", value);
    }
    return !reader.failed;
}
