/*
 * Entry of tinyphysics: what a token's state, bin and position bring to the queries, keys and
 * values of block 0, computed once from the weights, for CPU and device alike.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_ENTRY_H
#define SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_ENTRY_H

#include "kernels/tinyphysics.h"

/* Some 25 million multiply-adds. */
void tinyphysics_entry_make(const struct tinyphysics_weights *weights,
                            struct tinyphysics_entry *entry);

#endif
