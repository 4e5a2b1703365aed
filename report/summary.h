/*
 * Summary: outcomes counted by slice, tier and planner, with what they cost. What the terminal,
 * --json and the HTML report show all comes from here, so they cannot disagree.
 *
 * Verdict counts cover every rollout. Pass rates cover main lines only: a branch answers "what if",
 * it is not another sample of how the planner drives. A rate belongs to one planner in one tier,
 * since worlds are not comparable draws; each scenario counts once in it, with the mean of its
 * seeds, and the interval takes logical scenarios for what is drawn (scheduler/rate.h). Beside it
 * stands what has no result, flagged, invalid or without an answer, and the range of the rate over
 * it as failures and as passes.
 *
 * Results are what counts: a flagged rollout is evidence, and what it drove is kept apart from what
 * results drove, its cost too. An audit job is a second opinion: it is in no row, only in
 * the agreement and on the bill.
 */
#ifndef SWERVE_REPORT_SUMMARY_H
#define SWERVE_REPORT_SUMMARY_H

#include "report/outcomes.h"
#include "scheduler/agreement.h"
#include "scheduler/rate.h"
#include "schemas/scenario.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdio.h>

/* Use of time and money by driving. */
struct summary_work {
    int64_t ticks; /* simulated, shared prefixes once */
    int64_t metres_mm;
    int64_t device_ns;
    int64_t mflop; /* of learned worlds, counted from the shapes of the model */
    /* For MFU, of those whose machine's peak is known: operations, and what a core or the GPU of
     * that machine could have done in their device time. */
    double peaked_flop;
    double peak_flop;
    double usd; /* device_ns at today's price of its pool; the ledger has the bill */
};

/* Main lines without a result, by what became of them. */
enum summary_lack {
    SUMMARY_FLAGGED,
    SUMMARY_INVALID,
    SUMMARY_NO_ANSWER, /* the job is dead */
    SUMMARY_CANCELLED, /* by somebody, or by the suite's budget */
    SUMMARY_WAITING,   /* or being driven */
    SUMMARY_LACK_COUNT
};

/* A main line that has no outcome: its job is dead, was cancelled, or is not done yet. */
struct summary_undriven {
    int64_t job_id, parent_job_id;
    enum summary_lack lack;
    enum tier tier;
    uint64_t seed;
    const char *scenario_id, *scenario_hash, *planner; /* the summary's */
    const char *error;                                 /* a dead job's last one */
    bool counted;                                      /* in the rates */
};

/* Main lines of one planner in one tier. */
struct summary_part {
    const char *planner; /* the summary's */
    enum tier tier;
    struct rate rate; /* of those that pass; missing: the ones without a result */
    int64_t lacking[SUMMARY_LACK_COUNT];
    struct rate guardian[2]; /* of those that fail, that pass: the ones in which it fires */
};

struct summary_row {
    char group[LIMIT_ID_BYTES]; /* "weather", .., "tier", "model", "planner", "safety_critical" */
    char value[LIMIT_SPEC_BYTES];
    int64_t verdicts[VERDICT_COUNT];
    int64_t mains[VERDICT_COUNT]; /* of these, main lines */
    int64_t main_total;           /* main lines that ended in pass, fail or planner_error */
    int64_t main_passed;
    bool planners; /* of several: parts are named after theirs */
    uint32_t part_count;
    struct summary_part *parts;  /* owned by the summary; by planner, then tier */
    struct rate flag_rate;       /* of rollouts in learned worlds that a health check caught */
    int64_t prefix_ticks;        /* not simulated again: shared with a branch's main line */
    struct summary_work work;    /* of results */
    struct summary_work flagged; /* of rollouts that were flagged, and of those of the same job */
    int64_t learned;             /* rollouts that learned worlds drove, flagged ones included */
    int64_t caught;              /* of these, those in which a health check fired */
};

/* A parameter that grids of the suite vary. */
struct summary_parameter {
    char name[LIMIT_ID_BYTES];
    uint32_t first; /* of its rows in parameter_rows */
    uint32_t count; /* 0: more than SUMMARY_PARAMETER_VALUES_MAX values */
};

/* A job that a health check ended, and who answered instead. */
struct summary_flag {
    uint32_t outcome; /* the rollout in which the check fired */
    int32_t answer;   /* the same rollout of the job that replaced it, -1: nothing has answered */
};

/* An outcome among those of its logical scenario and case; keys as rate_add() takes them. */
struct summary_place {
    uint32_t index;
    int64_t logical_key;
    int64_t case_key;
};

/* Audit jobs and what they repeat, counted over one slice value or over all. */
struct summary_agreement {
    char group[LIMIT_ID_BYTES]; /* as summary_row; the last one is "all" */
    char value[LIMIT_SPEC_BYTES];
    struct agreement agreement;
};

struct summary {
    struct summary_row total;
    uint32_t row_count;
    struct summary_row *rows; /* owned; grouped, groups in slice order, values sorted */
    uint32_t parameter_count;
    struct summary_parameter *parameters; /* owned; by name */
    uint32_t parameter_row_count;
    struct summary_row *parameter_rows; /* owned; `group`: the parameter; numbers by size */
    int64_t prefix_ticks_saved;
    double prefix_usd_saved; /* those ticks at the mean cost of a tick of their tier */
    int64_t interventions;   /* onsets of the guardian, of main lines */
    uint32_t undriven_count;
    struct summary_undriven *undriven;        /* owned; of no audit; dead ones first, by job */
    struct summary_undriven **undriven_order; /* owned; by case */
    uint32_t outcome_count;
    struct kept_outcome *outcomes; /* owned; ascending id; audit jobs follow after outcome_count */
    struct kept_texts texts;       /* of the outcomes */
    double *outcome_usd;           /* owned; of each, as summary_work.usd; NULL: not known */
    uint32_t audit_count;
    struct summary_place *order; /* owned; results by logical scenario, then case */
    uint32_t *same_as;     /* owned; the first main line of the same scenario, planner and tier with
                            * the same verdict and reasons, else its own: lists name it once */
    int64_t seeded_cases;  /* scenarios, by planner, with more than one main line */
    int64_t seeded_drives; /* their main lines */
    int64_t seeded_still;  /* of these scenarios, those in which all or none passed */
    int64_t frozen_answers; /* rollouts that a freeze gave to the teacher */
    int64_t in_flight;      /* rollouts of the student's that were on their way when one came */
    uint32_t flag_count;
    struct summary_flag *flags;          /* owned */
    uint32_t agreement_count;            /* 0: nothing was audited */
    struct summary_agreement *agreement; /* owned; grouped like rows */
    uint32_t pair_count;
    struct agreement_pair *pairs; /* owned; into audited */
    struct outcome *audited;      /* owned; the audit jobs' outcomes, and those that they repeat */
    uint32_t audited_count;
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

/* Adds an outcome, which cost `usd`, to the counts of a row. */
void summary_add_counts(struct summary_row *row, const struct kept_outcome *outcome, double usd);

enum { SUMMARY_SEEDS_BYTES = 400, SUMMARY_MONEY_BYTES = 48 }; /* texts */

/* ---- summary_causes.c ---- */

/* Reads the main lines that have no outcome; outcomes and status are there. */
enum status summary_load_undriven(struct store *store, const char *suite_id,
                                  struct summary *summary, struct error *error);

/* The main lines without a result that no other job answers for, by what became of them (NULL: not
 * asked): terminal, JSON, gates, exit codes and files for CI all have them from here. One that was
 * flagged, and whose answer has no outcome, is one, and counts as what that is. Returns how many.
 */
int64_t summary_lacking(const struct summary *summary, int64_t lacking[SUMMARY_LACK_COUNT]);
/* Whether outcome `index` is one of them. */
bool summary_lacks(const struct summary *summary, uint32_t index);
/* Whether outcome `index` is a main line that lists name: all but a flagged one for which another
 * job answers, or was to answer, which they name instead. */
bool summary_names(const struct summary *summary, uint32_t index);

/* One of them in words: "without an answer"; and all as "2 invalid, 1 flagged"; "": there are none.
 */
extern const char *const summary_lack_names[SUMMARY_LACK_COUNT];
const char *summary_lacking_text(const int64_t lacking[SUMMARY_LACK_COUNT],
                                 char out[SUMMARY_SEEDS_BYTES]);

enum { SUMMARY_INVALID_MAX = 12 };

struct summary_invalid {
    char check[LIMIT_ID_BYTES]; /* that did not hold */
    int64_t rollouts;
    int64_t mains;    /* of these, main lines */
    uint32_t example; /* the first such outcome */
};

/* Invalid rollouts by check, most frequent first. Returns how many rows were filled. */
uint32_t summary_invalid_checks(const struct summary *summary,
                                struct summary_invalid out[SUMMARY_INVALID_MAX]);
int64_t summary_invalid_mains(const struct summary *summary);
/* Prints nothing where all is valid. */
void summary_print_invalid(const struct summary *summary, FILE *stream);
json_t *summary_invalid_json(const struct summary *summary);

enum { SUMMARY_ERRORS_MAX = 16, SUMMARY_ERRORS_SHOWN = 3 };

/* Main lines that the planner failed in with the same words, whatever the tick; what another seed
 * repeats counts once. */
struct summary_error {
    const char *words; /* borrowed from the summary */
    int64_t mains;
    uint32_t example; /* the first such outcome */
};

/* The first SUMMARY_ERRORS_MAX different errors, most frequent first. Returns how many there are.
 */
uint32_t summary_errors(const struct summary *summary,
                        struct summary_error out[SUMMARY_ERRORS_MAX]);
/* That of outcome `index` among them; NULL: no main line that the planner failed in, or one of an
 * error that is not among them. */
const struct summary_error *summary_error_of(const struct summary *summary,
                                             const struct summary_error *errors, uint32_t count,
                                             uint32_t index);
/* Whether outcome `index` is a main line that the planner failed in. */
bool summary_is_error(const struct summary *summary, uint32_t index);

/* ---- summary_parameters.c ---- */

enum { SUMMARY_PARAMETER_VALUES_MAX = 64 };

/* Fills parameters and their rows; outcomes are ordered and priced. */
enum status summary_parameters(struct summary *summary, struct error *error);

/* "by_parameter"; a parameter of too many values is an empty object. New reference or NULL. */
json_t *summary_parameters_json(const struct summary *summary);

/* ---- summary_field.c ---- */

/* Figures by which the field compares, over the main lines of a planner in a tier. */
struct summary_field {
    int64_t drives;
    int64_t collisions; /* agents touched */
    int64_t at_fault;   /* drives with a contact that was ego's fault */
    double metres;
    double nuplan; /* means; NAN: of none */
    double pdms;
    double epdms;
    double extended_comfort;
    double two_stage;
    int64_t planned;  /* drives with extended comfort */
    int64_t staged;   /* drives with EPDMS in two stages */
    int64_t scored;   /* drives with nuPlan's score and PDMS */
    int64_t extended; /* .. with EPDMS: of older ones lane keeping is not known */
    int64_t logs;     /* of the controls challenge, which have costs in place of scores */
    double lataccel_cost, jerk_cost, total_cost; /* sums */
};
/* Of one planner. */
void summary_field(const struct summary *summary, const char *planner,
                   struct summary_field rows[TIER_COUNT]);
json_t *summary_field_json(const struct summary *summary);
void summary_print_field(const struct summary *summary, FILE *stream);

/* ---- summary_rates.c ---- */

/* A main line that has a result. */
bool summary_is_sample(const struct kept_outcome *outcome);

/* Fills order, same_as and the counts of seeds from the outcomes. */
enum status summary_order(struct summary *summary, struct error *error);

/* Adds an outcome to the rates of a row; in the order of summary->order. */
enum status summary_add_rates(struct summary_row *row, const struct summary_place *place,
                              const struct kept_outcome *outcome, struct error *error);

/* Fills undriven_order. */
enum status summary_order_undriven(struct summary *summary, struct error *error);
/* Adds what was not driven of an outcome's case, in its tier, to the rates of the whole, of tiers,
 * planners and slices, which are the outcome's, if that has not been done. */
enum status summary_add_beside(struct summary *summary, const struct summary_place *place,
                               struct error *error);
/* Adds the cases of which nothing was driven at all; their slices are those of their scenarios, and
 * not known where the store has none of them, or one that is of another version. */
enum status summary_add_undriven(struct store *store, struct summary *summary, struct error *error);

/* The row, made where it is not there; NULL: out of memory. */
struct summary_row *summary_row_make(struct summary *summary, const char *group, const char *value);

/* Whether outcome `index` ended as an earlier main line of its scenario did. */
bool summary_is_repeat(const struct summary *summary, uint32_t index);

/* In how many parts the row has a rate, and the part in which it is lowest, NULL: none. */
int summary_row_rates(const struct summary_row *row);
const struct summary_part *summary_row_lowest(const struct summary_row *row);

/* The part of a planner (NULL: the first) in a tier, or NULL. */
const struct summary_part *summary_row_part(const struct summary_row *row, const char *planner,
                                            enum tier tier);

/* For the terminal and the report; all return `out`. A rate with its interval; "-" without cases.
 */
const char *summary_interval_text(const struct rate_estimate *at, char out[SUMMARY_MONEY_BYTES]);

/* The largest logical scenario's share of the rate, where it is a quarter or more; else "". */
const char *summary_weight_text(const struct rate_estimate *at, char out[SUMMARY_MONEY_BYTES]);

/* Conclusion of the suite in a sentence: how many main lines failed, by what most of them, how many
 * have no result, what is not finished. Returns out. */
enum { SUMMARY_CONCLUSION_BYTES = 400 };
const char *summary_conclusion_text(const struct summary *summary,
                                    char out[SUMMARY_CONCLUSION_BYTES]);

/* Seeds, as a sentence; "": no scenario was driven more than once. */
const char *summary_seeds_text(const struct summary *summary, char out[SUMMARY_SEEDS_BYTES]);

/* Name of a part: its tier, behind its planner where the row has several. */
enum { SUMMARY_PART_BYTES = LIMIT_SPEC_BYTES + 16 };
const char *summary_part_text(const struct summary_row *row, const struct summary_part *part,
                              char out[SUMMARY_PART_BYTES]);

/* The range of a part's rate over what main lines without a result might have been; "": all have
 * one. */
const char *summary_range_text(const struct summary_part *part, char out[SUMMARY_SEEDS_BYTES]);

#define SUMMARY_PURPOSE_TEXT                                                                \
    "The suite's scenarios were chosen, not drawn from traffic: a rate over them compares " \
    "planners, it is not a probability of failure on the road."

/* Names that rows are grouped by, in the order of the tables. */
enum { SUMMARY_GROUPS = 12 };
extern const char *const summary_groups[SUMMARY_GROUPS];
bool summary_has_group(const char *group);

/* ---- figures ---- */

/* The ending of a counted noun: "" or "s". */
const char *summary_plural(int64_t count);

/* One of our own names ("at_fault_collision") in prose; returns out. */
const char *summary_plain_text(const char *name, char out[LIMIT_ID_BYTES]);

/* Jobs of the suite that wait or run: no figure has them. */
int64_t summary_unfinished(const struct summary *summary);

/* The sentence of results in which nothing failed: a flagged or dead job, one that was cancelled
 * and one that waits did not pass. */
const char *summary_none_failed_text(const struct summary *summary);

/* Rollouts of jobs that were driven for what they make, goldens or clips, and not for a verdict. */
int64_t summary_made(const struct summary *summary);

double summary_miles(const struct summary_row *row);

/* Adds what an outcome took, of which so many ticks are its own. */
void summary_add_work(struct summary_work *work, const struct kept_outcome *outcome, int64_t ticks,
                      double usd);

/* Model FLOP utilisation: operations over what a core or the GPU of the machine that drove could
 * have done in their device time at its peak, which stands in the outcome; NAN where none has one.
 */
double summary_mfu(const struct summary_work *work);

/* The row of a group's value ("weather", "rain"), that of a tier; NULL: there is none. */
const struct summary_row *summary_row_find(const struct summary *summary, const char *group,
                                           const char *value);
const struct summary_row *summary_tier(const struct summary *summary, enum tier tier);

/* Whether a health check fired in this rollout itself: not in the main line that it shares to its
 * end, and not in another rollout of the job. */
bool summary_is_caught(const struct kept_outcome *outcome);

/* Whether a learned world drove any of this rollout itself: not when its planner died before the
 * first tick, and not a branch that ended in the past that it shares. */
bool summary_is_learned(const struct kept_outcome *outcome);

/* Cost of a tier's attempts that gave no result (flagged, failed, lost, stale), and its audit
 * jobs: device time at today's price, and what the ledger booked, which is what tables show. */
struct summary_overhead {
    double done_usd; /* of the attempts that gave results, without what earlier ones had kept */
    double flagged_usd;
    double failed_usd; /* failed, lost, stale, released */
    double audit_usd;
    int64_t flagged_uusd;
    int64_t failed_uusd;
    int64_t audit_uusd;
    int64_t flagged_attempts;
    int64_t failed_attempts;
    int64_t audit_attempts;
};
struct summary_overhead summary_overhead(const struct summary *summary, enum tier tier);

/* Use of a tier, as every table shows it. False: nothing, so that it has no row. A tier that
 * gave no result may have cost something all the same: a teacher that drove nothing but audit jobs.
 */
struct summary_tier_cost {
    const struct summary_row *row; /* its results; all zero without any */
    double device_s;
    double tick_ms; /* NaN without ticks */
    double mfu;     /* NaN: see summary_mfu */
    double miles;
    double with_retries_usd; /* every attempt once, but for audits, and results taken over */
    struct summary_overhead over;
};
bool summary_tier_cost(const struct summary *summary, enum tier tier,
                       struct summary_tier_cost *out);

/* Figures for people, the same in the terminal and in the report; all return `out`. A number has
 * three significant digits, however small ("-": not finite). An amount of money has cents, or below
 * a cent three significant digits. A rate is always in dollars per 1,000 miles, so that the figures
 * of a column compare at a glance; "-" without miles. */
const char *summary_number_text(double value, char out[SUMMARY_MONEY_BYTES]);
const char *summary_usd_text(double usd, char out[SUMMARY_MONEY_BYTES]);
const char *summary_rate_text(double usd, double miles, char out[SUMMARY_MONEY_BYTES]);

/* Bookings of the ledger, to the last micro-dollar: its rows add up to its total. */
const char *summary_uusd_text(int64_t uusd, char out[SUMMARY_MONEY_BYTES]);

/* The suite's bill in the same spelling; "under $0.000001" when all that was driven fell short of a
 * micro-dollar. */
const char *summary_bill_text(const struct summary *summary, char out[SUMMARY_MONEY_BYTES]);

/* An amount that somebody set, exactly: "$25.00", below or between cents with all six decimals. */
const char *summary_amount_text(int64_t uusd, char out[SUMMARY_MONEY_BYTES]);

/* "budget of $25.00", and " spent" behind it where that stopped the suite; where running jobs then
 * cost more, with what it came to: "budget of $25.00 spent ($25.310200 in all)". */
enum { SUMMARY_BUDGET_BYTES = 96 };
const char *summary_budget_text(const struct store_suite_status *status,
                                char out[SUMMARY_BUDGET_BYTES]);

/* The same as members `budget_usd` and `stopped_by_budget`; a suite without a budget has none. */
void summary_budget_json(const struct store_suite_status *status, json_t *json);

/* The contract of `run --json` and `report --json`, without wall_s and store. New reference or
 * NULL. */
json_t *summary_json(const struct summary *summary);

/* The figures of one row, as "by_slice" and "by_tier" hold them. New reference or NULL. */
json_t *summary_row_json(const struct summary_row *row);

/* ---- summary_learned.c ---- */

/* Whether another job gave the result of a flagged outcome. */
bool summary_is_answered(const struct summary *summary, uint32_t index);

/* Fills flags and agreement from the outcomes. */
enum status summary_learned(struct summary *summary, struct error *error);

/* "by_tier" members of learned tiers, "flags", "audit"; false: out of memory. */
bool summary_learned_json(const struct summary *summary, json_t *json);

/* ---- summary_print.c ---- */

/* Tables for a person, to a stream, and which jobs are not in them. */
void summary_print(const struct summary *summary, FILE *stream);

/* The first of the main lines in which the planner failed, with what it said: before tables, which
 * mean little then. Prints nothing where it did not. */
void summary_print_planner_errors(const struct summary *summary, FILE *stream);

/* Main lines that did not pass: verdict, reasons, a planner's last error; the same drive once. */
void summary_print_failures(const struct summary *summary, FILE *stream);

/* The dead jobs of the suite, if any, each with the first line of its last error. */
enum status summary_print_dead(struct store *store, const char *suite_id,
                               const struct summary *summary, FILE *stream, struct error *error);

#endif
