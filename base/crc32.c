#include "base/crc32.h"

uint32_t crc32_of(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t table[256];
    uint32_t crc = 0xFFFFFFFF;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = value >> 1 ^ ((value & 1) != 0 ? 0xEDB88320 : 0);
        }
        table[i] = value;
    }
    for (size_t i = 0; i < bytes; i++) {
        crc = crc >> 8 ^ table[(crc ^ at[i]) & 0xFF];
    }
    return ~crc;
}
