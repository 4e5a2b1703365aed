/*
 * Arbiter: answers of the object world, kept while a store is followed, so that a pair finds the
 * one to its question whether that came before it or after. Memory is fixed: 16 bytes an answer.
 * Where there is no room the oldest of those that share its place goes, so of more than some
 * million answers old ones are forgotten.
 */
#ifndef SWERVE_REPORT_TRUST_ARBITER_H
#define SWERVE_REPORT_TRUST_ARBITER_H

#include "report/trust/pairs.h"

struct arbiter;

/* *out is the caller's. NO_MEMORY. */
enum status arbiter_create(struct arbiter **out, struct error *error);
void arbiter_destroy(struct arbiter *arbiter); /* accepts NULL */
void arbiter_clear(struct arbiter *arbiter);

/* Takes an outcome up if it is the object world's own; of one question the newest stays, so
 * outcomes come by ascending id. */
void arbiter_add(struct arbiter *arbiter, const struct outcome *outcome);

/* Fills pair->object where the question was answered. Distances and progress are not kept. */
void arbiter_ask(const struct arbiter *arbiter, struct pairs_pair *pair);

#endif
