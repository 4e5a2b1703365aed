/*
 * Digests: what shows that a stored outcome is still the one that was stored.
 *
 * An outcome's digest is the SHA-256 of everything that the store keeps of it, the identity of its
 * job included, in a form of its own (names and values), not that of the file: so it does not
 * depend on how rows refer to one another. Members that are empty (0, false, "") are left out, so
 * that members that are added later leave older digests as they were.
 *
 * A suite's digest is the sum (mod 2^256) of the digests of (outcome's digest, its id): made up in
 * the transaction that stores the outcome, whatever the order, and without looking at the others.
 *
 * These are no signatures: who can write the file and knows this header can write digests that fit.
 * They show accidents, and edits by everybody else; a suite's digest that was noted elsewhere shows
 * any.
 */
#ifndef SWERVE_STORE_API_DIGEST_H
#define SWERVE_STORE_API_DIGEST_H

#include "base/sha256.h"
#include "schemas/job.h"
#include "schemas/outcome.h"
#include "store/api/models.h"
#include "store/api/trust.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct digest {
    uint8_t bytes[SHA256_BYTES];
};

/* The outcome as it is read back under its own job, whose spec is `spec`. Its id and what the
 * store derives from other rows (parent_job_id, audit_of, shadow) are not part of it; nor is the
 * key of the job that an audit job repeats, which changes when that one moves to another model, nor
 * who answers if the job is flagged, which may be filled in later. */
void digest_outcome(const struct outcome *outcome, const struct job_spec *spec, struct digest *out);
/* Whether said[bytes] is its digest: as *found, or as earlier versions made it, with that key or
 * without the time; then *found is that one. */
bool digest_outcome_fits(const struct outcome *outcome, const struct job_spec *spec,
                         const void *said, size_t bytes, struct digest *found);

/* A version of a model but for where it is in its life, and an event with its id. */
void digest_model(const struct model_version *version, struct digest *out);
void digest_golden(const struct golden_set *set, struct digest *out);
void digest_model_event(const struct model_event *event, struct digest *out);
void digest_trust_event(const struct trust_event *event, struct digest *out);

/* Of a suite: its name, whose it is ("": nobody's) and when it was submitted. */
void digest_suite(const char *name, const char *tenant, int64_t submitted_s, struct digest *out);

/* Adds an outcome to a suite's digest, which begins as zeros. */
void digest_add_outcome(struct digest *suite, const struct digest *outcome, int64_t outcome_id);
/* Takes one away that was added. */
void digest_remove_outcome(struct digest *suite, const struct digest *outcome, int64_t outcome_id);
/* Adds a part of a suite's digest. */
void digest_add(struct digest *suite, const struct digest *part);

#endif
