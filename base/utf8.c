/*
 * The table of well-formed sequences. See utf8.h.
 */
#include "base/utf8.h"

#include <string.h>

size_t utf8_sequence_bytes(const unsigned char *text, size_t bytes)
{
    unsigned char first = text[0];
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length;
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xc2 && first <= 0xdf) {
        length = 2;
    } else if (first >= 0xe0 && first <= 0xef) {
        length = 3;
        low = first == 0xe0 ? 0xa0 : 0x80;
        high = first == 0xed ? 0x9f : 0xbf;
    } else if (first >= 0xf0 && first <= 0xf4) {
        length = 4;
        low = first == 0xf0 ? 0x90 : 0x80;
        high = first == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
    if (bytes < length || text[1] < low || text[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (text[i] < 0x80 || text[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

bool utf8_valid(const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t bytes = utf8_sequence_bytes((const unsigned char *)text, left);
        if (bytes == 0) {
            return false;
        }
        text += bytes;
        left -= bytes;
    }
    return true;
}

void utf8_repair(char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t bytes = utf8_sequence_bytes((const unsigned char *)text, left);
        if (bytes == 0) {
            *text = '?';
            bytes = 1;
        }
        text += bytes;
        left -= bytes;
    }
}
