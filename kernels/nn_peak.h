/*
 * Peak of the machine: multiply-adds in registers alone, the ceiling beside which
 * benchmarks put the network kernels.
 */
#ifndef SWERVE_KERNELS_NN_PEAK_H
#define SWERVE_KERNELS_NN_PEAK_H

#include "kernels/nn.h"

/* Runs the products' instruction of this precision and these flags (enum cpu_flag) `rounds` times
 * in several independent chains; returns the multiplications and additions done. The caller times
 * it. */
double nn_peak_run(enum nn_precision precision, uint32_t flags, uint32_t rounds);

#endif
