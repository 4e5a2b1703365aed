/*
 * Disagreements as a suite: the scenarios, with their seeds, on whose verdict student and teacher
 * differ, main lines and branches, to be looked at, or to be driven by `datagen` for training.
 */
#ifndef SWERVE_REPORT_TRUST_DISAGREEMENTS_H
#define SWERVE_REPORT_TRUST_DISAGREEMENTS_H

#include "report/trust/pairs.h"

/* Writes suite.json and the scenarios beside it into a directory, which is made where there is
 * none; *count scenarios. Without any, nothing is written. */
enum status disagreements_write(const struct pairs *pairs, struct store *store,
                                const char *directory, uint32_t *count, struct error *error);

#endif
