/*
 * Places of the numbers of a warpgroup's product in the registers of its threads (PTX ISA, wgmma
 * fragments): what the emulator computes with, and what is compared with CUTLASS's headers.
 */
#ifndef SWERVE_TESTS_SIMT_WGMMA_FRAGMENTS_H
#define SWERVE_TESTS_SIMT_WGMMA_FRAGMENTS_H

#include "base/both.h"

#include <stdint.h>

/* Of D[64][n]: where number i of thread 0 to 127 lies. */
BOTH_FN uint32_t wgmma_sum_row(uint32_t thread, uint32_t i)
{
    return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}

BOTH_FN uint32_t wgmma_sum_column(uint32_t thread, uint32_t i)
{
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

/* Of A[64][16] in registers: the first of the two numbers of register i, 0 to 3. */
BOTH_FN uint32_t wgmma_operand_row(uint32_t thread, uint32_t i)
{
    return thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
}

BOTH_FN uint32_t wgmma_operand_column(uint32_t thread, uint32_t i)
{
    return thread % 4 * 2 + i / 2 * 8;
}

#endif
