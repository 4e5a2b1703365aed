/*
 * Tiles (AMX): configuration and the few operations that the network kernels use. Tile registers
 * belong to the thread; a kernel configures them when it starts and releases them before it
 * returns, so it may run on any thread and the operating system need not save them.
 */
#ifndef SWERVE_KERNELS_X86_NN_TILES_AMX_H
#define SWERVE_KERNELS_X86_NN_TILES_AMX_H

#if defined(__AMX_BF16__) || defined(__AMXBF16__) /* gcc, older clang */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum {
    TILE_ROWS = 16,
    TILE_COLUMNS = 16, /* floats of a row of sums */
    TILE_BYTES = 1024,
    TILE_ROW_BYTES = 64,
};

/* Intel SDM vol. 1, "Intel AMX tile configuration". */
struct tile_configuration {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Plain stores to what `memory` points at must not move past a tile operation, which the compiler
 * does not see as reading memory. */
static inline void tiles_fence(const void *memory)
{
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* Tiles 0 to 5 of `rows` rows (sums and left operands), 6 and 7 of 16 (right operands). */
static inline void tiles_configure(uint32_t rows)
{
    _Alignas(64) struct tile_configuration configuration;
    memset(&configuration, 0, sizeof configuration);
    configuration.palette = 1;
    for (int i = 0; i < 8; i++) {
        configuration.row_bytes[i] = TILE_ROW_BYTES;
        configuration.rows[i] = i < 6 ? (uint8_t)rows : TILE_ROWS;
    }
    tiles_fence(&configuration);
    _tile_loadconfig(&configuration);
}

#endif

#endif
