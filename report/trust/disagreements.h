/*
 * Disagreements as a suite: the scenarios, with their seeds, on whose verdict student and teacher
 * differ, or a tier and all steps, main lines and branches, to be looked at, or to be driven by
 * `datagen` for training.
 */
#ifndef SWERVE_REPORT_TRUST_DISAGREEMENTS_H
#define SWERVE_REPORT_TRUST_DISAGREEMENTS_H

#include "report/trust/pairs.h"

/* Writes suite.json and the scenarios beside it into a directory, which is made where there is
 * none; *count scenarios. Without any, nothing is written. */
enum status disagreements_write(const struct pairs *pairs, struct store *store,
                                const char *directory, uint32_t *count, struct error *error);

/* The same of these pairs (list[count], sorted on return), as a suite of that id and title. */
enum status disagreements_write_list(const struct pairs_pair **list, uint32_t count,
                                     struct store *store, const char *directory, const char *id,
                                     const char *title, uint32_t *scenarios, struct error *error);

#endif
