/*
 * Meters: what miles took, by pool, device, tier and model: miles per device-hour, dollars per
 * mile, model FLOP utilisation, and percentiles of ticks and rollouts. All that was driven counts,
 * audit jobs and flagged rollouts too: a meter says how the machines do, not what the planner did.
 */
#ifndef SWERVE_REPORT_METERS_H
#define SWERVE_REPORT_METERS_H

#include "report/summary.h"

enum { METER_QUANTILES = 3 }; /* p50, p95, p99 */
extern const double meter_quantiles[METER_QUANTILES];
extern const char *const meter_quantile_names[METER_QUANTILES]; /* "p50", .. */

struct meter {
    char pool[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES]; /* "cpu", "cuda:NVIDIA .." */
    enum tier tier;
    char model_hash[SHA256_HEX_BYTES]; /* "": the world has none */
    char sampler[LIMIT_ID_BYTES];
    int64_t rollouts; /* also those that simulated no tick of their own, which are in no figure */
    struct summary_work work;
    double pages_free_min; /* share of frame pages that was free at the fullest; NAN: it has none */
    double tick_ms[METER_QUANTILES];   /* of rollouts' mean ticks, by nearest rank */
    double rollout_s[METER_QUANTILES]; /* device time of what a rollout drove itself */
};

/* *out [*count] is to be freed; by pool, device, tier and model. */
enum status meters_of(const struct summary *summary, struct meter **out, uint32_t *count,
                      struct error *error);

/* Fewer than a tenth of the frame pages were left: pages of parked branches are moved away soon. */
bool meter_pages_short(const struct meter *meter);

/* NAN: nothing was driven. */
double meter_miles_per_hour(const struct meter *meter); /* of device time */
double meter_usd_per_mile(const struct meter *meter);

/* A meter as tables show it. */
enum { METER_TRIPLE_BYTES = METER_QUANTILES * SUMMARY_MONEY_BYTES };
struct meter_words {
    char model[LIMIT_ID_BYTES]; /* hash and sampler, shortened */
    char miles_per_hour[SUMMARY_MONEY_BYTES];
    char usd[SUMMARY_MONEY_BYTES]; /* per 1,000 miles */
    char mfu[16];
    char pages_free[16];
    char tick_ms[METER_TRIPLE_BYTES]; /* "0.02 / 0.03 / 0.03" */
    char rollout_s[METER_TRIPLE_BYTES];
};
void meter_words_of(const struct meter *meter, struct meter_words *out);

/* "meters" of `run --json`; new reference or NULL. */
json_t *meters_json(const struct summary *summary);
void meters_print(const struct summary *summary, FILE *stream);

/* Sentences about meters that are worse than those of an earlier `run --json` by more than `margin`
 * (0.05: 5%) in dollars per mile or p99 of ticks, appended to `missed`. A meter is compared with
 * that of its pool, device and tier, of the same model where there is one; one without is a
 * sentence of its own. False: out of memory. */
bool meters_compare(const struct summary *summary, const json_t *earlier, double margin,
                    json_t *missed);

#endif
