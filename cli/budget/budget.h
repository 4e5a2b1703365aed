/*
 * The budget of a suite: what --budget says, and what the suite is expected to cost.
 */
#ifndef SWERVE_CLI_BUDGET_BUDGET_H
#define SWERVE_CLI_BUDGET_BUDGET_H

#include "worker/submission/submission.h"

#include <jansson.h>

/* Row of a command's option table. */
#define BUDGET_OPTION_ROW(text_)                                                                 \
    {                                                                                            \
        "--budget", "USD",                                                                       \
            "what the suite may cost: at that its waiting jobs are cancelled, running ones end", \
            .text = &(text_)                                                                     \
    }

/* Dollars with up to six decimals as micro-dollars; NULL: 0. */
enum status budget_read(const char *text, int64_t *uusd, struct error *error);

/* Members `budget_usd` and `forecast_usd` (negative, null: no measure yet) of a JSON object. */
void budget_put(int64_t budget_uusd, int64_t forecast_uusd, json_t *json);

/* Says on stderr, of a suite that was sent, what its budget is and what it is expected to cost:
 * what is booked, and planned ticks that wait, by the store's newest rollouts of the same tier,
 * pool and planner (of others where it has none): mean device time of a tick, at the prices in
 * force. Nothing of a suite without a budget. `at_once`: jobs that may run at one time; 0: not
 * known. *forecast_uusd -1: jobs wait of a tier and pool of which nobody has a measure. The
 * submission's first page is at hand again. */
enum status budget_tell(struct store *store, struct submission *submission, int64_t at_once,
                        int64_t *forecast_uusd, struct error *error);

#endif
