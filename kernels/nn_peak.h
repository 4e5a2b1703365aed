/*
 * Peak of the machine: multiply-adds in registers alone. It is the ceiling beside which benchmarks
 * put the network kernels, and it says which of the tables that give the same bits is the fastest
 * here: an instruction that a processor has may run at half the rate of those that it replaces.
 */
#ifndef SWERVE_KERNELS_NN_PEAK_H
#define SWERVE_KERNELS_NN_PEAK_H

#include "base/clock.h"
#include "kernels/nn.h"

/* Runs the products' instruction of this precision and these flags (enum cpu_flag) `rounds` times
 * in several independent chains; returns the multiplications and additions done. The caller times
 * it. */
double nn_peak_run(enum nn_precision precision, uint32_t flags, uint32_t rounds);

enum { NN_PEAK_TABLES_MAX = 4, NN_PEAK_TURNS = 5 };

/* Tables of one precision, narrowest instruction set first; of NN_INT8 what that has of its own. */
struct nn_peaks {
    uint32_t count;
    struct nn_peak_table {
        const char *name; /* nn_kernels.name */
        uint32_t flags;   /* nn_kernels_init chooses it by these */
        double flops;     /* multiplications and additions per second of one core */
    } tables[NN_PEAK_TABLES_MAX];
};

/* Runs the loop of each table that `flags` allow, in turns, and keeps each one's best by the
 * thread's processor time. NN_PEAK_TURNS turns take about a millisecond. */
void nn_peak_race(enum nn_precision precision, uint32_t flags, uint32_t turns,
                  const struct clock *clock, struct nn_peaks *out);

/* What the fastest reaches. */
double nn_peak_best(const struct nn_peaks *race);

/* Index of the fastest. Of tables within a twentieth of it the widest: that needs fewer
 * instructions around its products. */
uint32_t nn_peak_winner(const struct nn_peaks *race);

/* The flags with which nn_kernels_init takes the fastest tables here: of NN_INT8 those of its own
 * members and of NN_BF16's. Bits do not depend on them. *peak_flops: what the fastest of the
 * precision reached. */
uint32_t nn_peak_flags(enum nn_precision precision, uint32_t flags, const struct clock *clock,
                       double *peak_flops);

#endif
