/*
 * Machine: what callers of the engine need to know of this one, without seeing the kernels.
 */
#ifndef SWERVE_ENGINE_BENCH_MACHINE_H
#define SWERVE_ENGINE_BENCH_MACHINE_H

#include <stdint.h>

/* The instruction sets that model_open should use here: enum cpu_flag bits. */
uint32_t machine_cpu_flags(void);

#endif
