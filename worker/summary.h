/*
 * Summary: outcomes counted by slice, tier and planner, with what they cost. What the terminal,
 * --json and the HTML report show all comes from here, so they cannot disagree.
 *
 * Verdict counts cover every rollout. The pass rate with its interval covers main lines only: a
 * branch answers "what if", it is not another sample of how the planner drives. Nor is a seed that
 * changes nothing: main lines of one scenario and planner with the same verdict and trace hash are
 * one sample.
 */
#ifndef SWERVE_WORKER_SUMMARY_H
#define SWERVE_WORKER_SUMMARY_H

#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "store/store.h"

#include <jansson.h>
#include <stdio.h>

struct summary_row {
    char group[LIMIT_ID_BYTES]; /* "weather", .., "tier", "planner", "safety_critical" */
    char value[LIMIT_SPEC_BYTES];
    int64_t verdicts[VERDICT_COUNT];
    int64_t main_total; /* distinct main lines that ended in pass, fail or planner_error */
    int64_t main_passed;
    int64_t main_repeats; /* main lines identical to one that is counted in main_total */
    int64_t main_repeats_passed;
    int64_t ticks;        /* simulated, shared prefixes once */
    int64_t prefix_ticks; /* not simulated again: shared with a branch's main line */
    int64_t metres_mm;    /* as ticks */
    int64_t device_ns;
    double usd; /* device_ns at today's price of its pool; the ledger has the bill */
};

struct summary {
    struct summary_row total;
    uint32_t row_count;
    struct summary_row *rows; /* owned; grouped, groups in slice order, values sorted */
    int64_t prefix_ticks_saved;
    double prefix_usd_saved; /* those ticks at the mean cost of a tick of their tier */
    int64_t interventions;
    uint32_t outcome_count;
    struct outcome *outcomes; /* owned; ascending id */
    uint32_t *same_as;        /* owned; index of the first identical main line, else its own;
                               * NULL: nothing repeats */
    /* Of the (scenario, planner) pairs with more than one main line: */
    int64_t seed_groups;
    int64_t seed_drives;   /* main lines, repeats included */
    int64_t seed_distinct; /* of these, distinct */
    uint32_t ledger_count;
    struct store_ledger_row *ledger; /* owned */
    double *ledger_usd;              /* owned; device_ns of each ledger row at today's price, as
                                      * `usd` above; NULL without a ledger */
    struct store_suite_status status;
};

/* Reads every outcome of a suite and counts. */
enum status summary_load(struct store *store, const char *suite_id, struct summary *out,
                         struct error *error);
void summary_finish(struct summary *summary);

/* Wilson score interval (Wilson 1927) at 95%; total 0 gives 0..1. */
void summary_wilson(int64_t passed, int64_t total, double *low, double *high);

/* Whether another seed is known to change what a planner does. */
bool summary_seeds_matter(const struct summary *summary);

/* Whether outcome `index` repeats an earlier main line bit for bit. */
bool summary_is_repeat(const struct summary *summary, uint32_t index);

double summary_miles(const struct summary_row *row);

/* Money for people, the same in the terminal and in the report. An amount: cents, or below a cent
 * down to the ledger's micro-dollar. A rate: three significant digits per mile, below a tenth of a
 * cent per million miles ("$1.04/M mi"); "-" without miles. Both return `out`. */
enum { SUMMARY_MONEY_BYTES = 48 };
const char *summary_usd_text(double usd, char out[SUMMARY_MONEY_BYTES]);
const char *summary_rate_text(double usd, double miles, char out[SUMMARY_MONEY_BYTES]);

/* The contract of `run --json` and `report --json`, without wall_s and store. New reference or
 * NULL. */
json_t *summary_json(const struct summary *summary);

/* Tables for a person, to a stream. */
void summary_print(const struct summary *summary, FILE *stream);

/* Main lines that did not pass: verdict, reasons, a planner's last error; identical drives once. */
void summary_print_failures(const struct summary *summary, FILE *stream);

/* The dead jobs of the suite, if any, each with the first line of its last error. */
enum status summary_print_dead(struct store *store, const char *suite_id,
                               const struct summary *summary, FILE *stream, struct error *error);

#endif
