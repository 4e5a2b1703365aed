/*
 * Measures of a store by which a scenario goes to one of two tiers that could answer it alike
 * (scheduler/route.h).
 */
#ifndef SWERVE_CLI_BUDGET_MARKET_H
#define SWERVE_CLI_BUDGET_MARKET_H

#include "worker/submission/submission.h"

/* Micro-dollars that a nanosecond costs from now on in a tier and pool, by the store's ledger
 * `rows` [count] and the prices in force; negative: it was never driven there. */
enum status market_rate(struct store *store, const struct store_ledger_row *rows, uint32_t count,
                        enum tier tier, const char *pool, double *rate, struct error *error);

/* Prices and backlogs of the student and the teacher as the store has measured them; zeros where it
 * has not. `urgent` and `contrary` stay. */
enum status market_read(struct store *store, struct route_market *market, struct error *error);

/* submission_build(), by options->policy.market. A suite that the store (NULL: none) has already,
 * answered the other way round, is built as it was sent: a price that moved since turns nothing
 * around, so that the same command goes on. */
enum status market_build(const struct suite *suite, const struct submission_options *options,
                         struct store *store, struct submission *out, struct error *error);

#endif
