/*
 * CPU flags: which instruction sets the kernels may use on this machine.
 *
 * Every kernel family fills its table from a flag word that its caller passes in, so a test or a
 * benchmark masks an instruction set away by clearing a bit; there is no global to set.
 */
#ifndef SWERVE_KERNELS_CPU_H
#define SWERVE_KERNELS_CPU_H

#include <stdint.h>

enum cpu_flag {
    CPU_FLAG_AVX2 = 1,         /* AVX2 and FMA together */
    CPU_FLAG_AVX512 = 2,       /* F, BW, DQ and VL together */
    CPU_FLAG_AMX = 4,          /* tiles with bfloat16 */
    CPU_FLAG_AVX512_BF16 = 8,  /* products of bfloat16 pairs; all tile machines have them */
    CPU_FLAG_AVX512_VNNI = 16, /* products of four bytes */
    CPU_FLAG_ALL = 31,         /* kernels of the last three need CPU_FLAG_AVX512 too */
};

/* Features that processor and operating system support: a set of enum cpu_flag. Asks the kernel to
 * let this process use tiles; where it refuses, there are none. */
uint32_t cpu_flags_detect(void);

#endif
