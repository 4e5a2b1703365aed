/*
 * Machine: what callers of the engine need to know of this one, without seeing the kernels.
 */
#ifndef SWERVE_ENGINE_BENCH_MACHINE_H
#define SWERVE_ENGINE_BENCH_MACHINE_H

#include "kernels/nn.h"

#include <stddef.h>
#include <stdint.h>

/* What model_open should be given here: the instruction sets of the tables whose products were the
 * fastest just now (kernels/nn_peak.h), whose bits are those of any others. Takes about a
 * millisecond. */
struct machine_choice {
    uint32_t cpu_flags; /* enum cpu_flag */
    double peak_flops;  /* multiplications and additions a second of one core by these */
};
struct machine_choice machine_choose(enum nn_precision precision);

/* Its instruction sets alone. */
uint32_t machine_cpu_flags(enum nn_precision precision);

/* Multiplications and additions per second of one core by the best of all instructions that this
 * machine has for a precision, from registers; takes some 10 ms a table. */
double machine_peak_flops(enum nn_precision precision);

/* A sentence for people: which table of each precision is the fastest here, and what each reaches.
 */
void machine_describe(char *text, size_t text_bytes);

#endif
