/*
 * Ticks for which a branch prescribes fewer steps of a learned world's sampler, as a drive does
 * that was saved at the wheel. A job has one sampler, that of its main line, so an outcome's own
 * does not tell them.
 */
#ifndef SWERVE_REPORT_TRUST_SKIPPED_H
#define SWERVE_REPORT_TRUST_SKIPPED_H

#include "store/api/store.h"

/* Ticks of the branch, of the first `ticks`, which leave out steps; "" is the main line, which
 * leaves out none. NOT_FOUND: the store has lost the scenario; BAD_INPUT: it cannot be read. */
enum status skipped_find(struct store *store, const char *scenario_hash, const char *branch_id,
                         uint32_t ticks, uint32_t *out, struct error *error);

#endif
