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

/* Asks what driving all of the submission's jobs would cost by the store's newest rollouts of the
 * same tier and pool: median device time of a tick, at what their pool's device time was booked at.
 * -1: jobs are of a tier and pool of which none is. The submission's first page is at hand again.
 */
enum status budget_forecast(struct store *store, struct submission *submission, int64_t *uusd,
                            struct error *error);

/* Members `budget_usd` and `forecast_usd` (null: no measure yet) of a JSON object. */
void budget_put(int64_t budget_uusd, int64_t forecast_uusd, json_t *json);

/* Says both to people, on stderr. */
enum status budget_tell(struct store *store, struct submission *submission, int64_t *forecast_uusd,
                        struct error *error);

#endif
