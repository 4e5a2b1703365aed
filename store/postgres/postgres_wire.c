/*
 * Values as PostgreSQL sends them. See postgres_wire.h.
 */
#include "store/postgres/postgres_wire.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { NUMERIC_BASE = 10000 };

uint64_t postgres_wire_uint(const char *data, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value = value << 8 | (uint8_t)data[i];
    }
    return value;
}

int64_t postgres_wire_numeric(const char *data)
{
    int digits = (int16_t)postgres_wire_uint(data, 2);
    int weight = (int16_t)postgres_wire_uint(data + 2, 2);
    bool negative = postgres_wire_uint(data + 4, 2) == 0x4000;
    int64_t value = 0;

    for (int i = 0; i <= weight; i++) {
        int64_t digit = i < digits ? (int16_t)postgres_wire_uint(data + 8 + 2 * i, 2) : 0;
        if (value > (INT64_MAX - digit) / NUMERIC_BASE) {
            return negative ? INT64_MIN : INT64_MAX;
        }
        value = value * NUMERIC_BASE + digit;
    }
    return negative ? -value : value;
}

double postgres_wire_double(const char *data, int bytes)
{
    uint64_t bits = postgres_wire_uint(data, bytes);
    double value = 0.0;

    if (bytes == 4) {
        uint32_t narrow = (uint32_t)bits;
        float single = 0.0F;
        memcpy(&single, &narrow, sizeof single);
        return (double)single;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum status postgres_wire_status(const char *state, bool lost)
{
    static const struct {
        const char
            *state; /* or how it begins: https://www.postgresql.org/docs/15/errcodes-appendix */
        enum status status;
    } classes[] = {
        {"08", STATUS_BUSY},         {"57P", STATUS_BUSY},
        {"40001", STATUS_BUSY},      {"40P01", STATUS_BUSY},
        {"23505", STATUS_BUSY},      {"25P03", STATUS_BUSY},
        {"57014", STATUS_TIMEOUT},   {"53100", STATUS_IO},
        {"53200", STATUS_NO_MEMORY}, {"53300", STATUS_BUSY},
        {"22021", STATUS_BAD_INPUT}, {"22P05", STATUS_BAD_INPUT},
        {"58", STATUS_IO},           {POSTGRES_LOCK_TIMEOUT, STATUS_BUSY},
    };

    for (size_t i = 0; i < COUNT_OF(classes); i++) {
        if (strncmp(state, classes[i].state, strlen(classes[i].state)) == 0) {
            return classes[i].status;
        }
    }
    return lost ? STATUS_BUSY : STATUS_STORE;
}

void postgres_wire_cut(char *url, const char *name, char *value, size_t value_bytes)
{
    char *at = strchr(url, '?');

    value[0] = '\0';
    while (at != NULL) {
        char *text = at + 1;
        size_t bytes = strcspn(text, "&");
        size_t name_bytes = strlen(name);
        if (strncmp(text, name, name_bytes) == 0 && text[name_bytes] == '=') {
            snprintf(value, value_bytes, "%.*s", (int)(bytes - name_bytes - 1),
                     text + name_bytes + 1);
            if (text[bytes] == '&') {
                memmove(text, text + bytes + 1, strlen(text + bytes + 1) + 1);
            } else {
                *at = '\0';
            }
            return;
        }
        at = strchr(text, '&');
    }
}

bool postgres_wire_decode(char *value)
{
    char *to = value;

    for (const char *at = value; *at != '\0'; at++) {
        int byte = (unsigned char)*at;
        if (*at == '%') {
            int high = text_hex_digit((unsigned char)at[1]);
            int low = high >= 0 ? text_hex_digit((unsigned char)at[2]) : -1;
            byte = low >= 0 ? high * 16 + low : 0;
            at += 2;
        }
        if (byte == 0) {
            return false;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    return true;
}
