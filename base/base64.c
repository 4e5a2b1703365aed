#include "base/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_bytes(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

void base64_encode(const void *data, size_t bytes, char *out)
{
    const uint8_t *in = data;
    size_t i = 0;
    for (; i + 2 < bytes; i += 3) {
        uint32_t word = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
        *out++ = digits[word >> 18];
        *out++ = digits[word >> 12 & 63];
        *out++ = digits[word >> 6 & 63];
        *out++ = digits[word & 63];
    }
    if (i < bytes) {
        uint32_t word = (uint32_t)in[i] << 16 | (i + 1 < bytes ? (uint32_t)in[i + 1] << 8 : 0);
        *out++ = digits[word >> 18];
        *out++ = digits[word >> 12 & 63];
        *out++ = i + 1 < bytes ? digits[word >> 6 & 63] : '=';
        *out++ = '=';
    }
    *out = '\0';
}
