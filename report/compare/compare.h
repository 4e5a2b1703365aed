/*
 * Compare: two planners, models or revisions on the same scenarios. Rollouts are joined on
 * scenario, branch, seed and world; what changed is listed with the commands that drive both again,
 * and judged by scheduler/paired.h and scheduler/rate.h.
 *
 * A rollout without a result on either side (flagged, invalid, not driven), or whose scenario's
 * text differs between the sides, is counted and not compared. Such a main line that passed with A
 * is a lost pass, which a gate fails on, and the range of a side's rate has it as a failure and as
 * a pass. Tests and intervals are over main lines: a branch asks "what if", it is no further drive
 * of the planner. A planner that fails counts as not passing, and has neither scores nor costs.
 */
#ifndef SWERVE_REPORT_COMPARE_COMPARE_H
#define SWERVE_REPORT_COMPARE_COMPARE_H

#include "base/status.h"
#include "report/page/page.h"
#include "scheduler/paired.h"
#include "scheduler/rate.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- sides: compare_side.c ---- */

/* Fields that a comparison keeps of an outcome. */
struct compare_rollout {
    int64_t id;
    uint64_t seed;
    enum tier tier;
    enum verdict verdict;
    uint32_t reasons;
    bool safety_critical;
    double measure[14]; /* by enum compare_measure */
    char scenario_id[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES];
    char branch_id[LIMIT_ID_BYTES];
    char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES];
};

struct compare_side {
    struct store *store;   /* borrowed */
    const char *store_url; /* as the user named it */
    char suite_id[LIMIT_ID_BYTES];
    char planner[LIMIT_SPEC_BYTES];
    char planner_hash[SHA256_HEX_BYTES]; /* of the last rollout, and so below */
    char model_hash[SHA256_HEX_BYTES];
    char revision[SHA256_HEX_BYTES];
    char rig[SHA256_HEX_BYTES]; /* of all its rollouts; "": the built-in one */
    uint32_t count;
    struct compare_rollout *rollouts; /* owned; sorted by key, one for each */
    uint32_t superseded;              /* older rollouts of the same key */
    int64_t undriven;                 /* jobs of the suite without an outcome */
};

/* Reads the results of one planner of a suite. planner NULL: the suite's only one; USAGE names them
 * when there are several. NOT_FOUND: the suite has no results (of that planner). */
enum status compare_side_load(struct compare_side *side, const char *planner, struct error *error);
void compare_side_finish(struct compare_side *side);

/* Order of scenario, branch, seed, tier. */
int compare_rollout_order(const struct compare_rollout *a, const struct compare_rollout *b);

/* ---- the comparison: compare.c ---- */

#define COMPARE_TTC_MOST_S 3.0 /* how far the metric looks ahead */

enum compare_measure {
    COMPARE_SCORE,
    COMPARE_PROGRESS,
    COMPARE_COMFORT,
    COMPARE_MIN_DISTANCE, /* m; infinite where no agent was present: not compared */
    COMPARE_MIN_TTC,      /* s, at most its horizon of 3 */
    COMPARE_JERK,         /* m/s3 */
    COMPARE_PDMS,         /* NAVSIM's, as the next: worker/METRICS.md */
    COMPARE_EPDMS,
    COMPARE_EXTENDED_COMFORT, /* NAN where successive plans were not compared */
    COMPARE_AT_FAULT,         /* share of drives with a contact that was ego's fault */
    COMPARE_TWO_STAGE,        /* of main lines: EPDMS in two stages */
    COMPARE_LATACCEL_COST,    /* of logs of the controls challenge, as the next two */
    COMPARE_JERK_COST,
    COMPARE_TOTAL_COST,
    COMPARE_MEASURE_COUNT
};

extern const char *const compare_measure_names[COMPARE_MEASURE_COUNT];

/* Main lines of one slice value, or all of them. */
struct compare_row {
    char group[LIMIT_ID_BYTES]; /* "all", "world", "weather", .. */
    char value[LIMIT_ID_BYTES];
    int64_t mains;
    int64_t fixed;  /* B passes, A did not */
    int64_t broken; /* A passed, B does not */
    struct rate_estimate a;
    struct rate_estimate b;
    struct rate_difference difference; /* its interval reaches 0 where the own test finds nothing */
    double p;                          /* exact, over clusters; slices: after Holm */
    double p_least;                    /* that as many changed clusters could have, before Holm */
    uint32_t changed;                  /* clusters in which something changed */
};

struct compare_pair {
    uint32_t a; /* index into the side's rollouts */
    uint32_t b;
};

/* Reasons why what passed with A has no result with B that could be compared. */
enum compare_loss_kind {
    COMPARE_LOST_INVALID,
    COMPARE_LOST_FLAGGED,
    COMPARE_LOST_MISSING, /* no answer, or not driven */
    COMPARE_LOST_CHANGED, /* the scenario's text is another */
    COMPARE_LOSS_COUNT
};
extern const char *const compare_loss_names[COMPARE_LOSS_COUNT];

struct compare_loss {
    uint32_t a; /* index into A's rollouts: a main line that passed */
    uint32_t b; /* into B's; UINT32_MAX: it has none */
    enum compare_loss_kind kind;
};

/* Main lines of both sides together, as they ended on one of them. */
struct compare_ends {
    int64_t verdicts[VERDICT_COUNT];
    int64_t missing;           /* the other side alone has it */
    int64_t changed;           /* of another text on the other side: in none of these */
    struct rate_estimate rate; /* worst, best: without a result that could be compared */
};

struct compare {
    const struct compare_side *a;
    const struct compare_side *b;
    uint32_t pair_count;
    struct compare_pair *pairs; /* owned; in order of the key */
    uint32_t flip_count;
    uint32_t *flips; /* owned; pairs whose pass or fail differs, main lines first, broken first */
    uint32_t loss_count;
    struct compare_loss *losses; /* owned; in order of the key */
    int64_t lost[COMPARE_LOSS_COUNT];
    struct compare_ends ends_a;
    struct compare_ends ends_b;
    int64_t only_a;
    int64_t only_b;
    int64_t changed;   /* the scenario's text is another */
    int64_t no_result; /* on a side: flagged or invalid */
    int64_t branch_pairs;
    int64_t branch_fixed;
    int64_t branch_broken;
    bool by_case; /* fewer than COMPARE_LOGICAL_MIN logical scenarios: each scenario is a cluster */
    struct compare_row all;
    uint32_t row_count;
    struct compare_row *rows; /* owned; slices */
    struct {
        double a; /* mean over cases */
        double b;
        int64_t cases;
        struct paired_mean difference;
    } measures[COMPARE_MEASURE_COUNT];
};

enum { COMPARE_LOGICAL_MIN = 6 };

enum status compare_make(const struct compare_side *a, const struct compare_side *b,
                         struct compare *out, struct error *error);
void compare_finish(struct compare *compare);

/* Whether a rollout passed, and whether it came to its end with the planner alive: without, it has
 * no scores and no costs. */
bool compare_drove(const struct compare_rollout *rollout);
bool compare_passed(const struct compare_rollout *rollout);

/* Limits of a gate. */
struct compare_limits {
    double margin; /* NAN: no main line may break; else how far the rate of passes may fall */
    int64_t allow_invalid; /* lost passes that are let through */
};

/* Why B is worse, as a sentence that names the first main lines; "": it is not. */
enum { COMPARE_REGRESSION_BYTES = 960 };
const char *compare_regression(const struct compare *compare, const struct compare_limits *limits,
                               char out[COMPARE_REGRESSION_BYTES]);

/* Meaning of the whole row's test for somebody who reads it, as a sentence. */
enum { COMPARE_WORDS_BYTES = 256 };
const char *compare_words(const struct compare *compare, char out[COMPARE_WORDS_BYTES]);

/* Revisions of the simulation, as a sentence where the sides have different ones; "": the same. */
enum { COMPARE_REVISIONS_BYTES = 256 };
const char *compare_revisions(const struct compare *compare, char out[COMPARE_REVISIONS_BYTES]);

/* Whether both sides are of one planner whose files have changed since A: what drives A's outcomes
 * again is then no longer A. */
bool compare_is_rewritten(const struct compare *compare);

/* Everything that whoever reads the comparison is told ahead of it, as sentences without a full
 * stop: revisions that differ, a planner that is rewritten, jobs that no outcome tells of. */
enum { COMPARE_NOTES_MAX = 3, COMPARE_NOTE_BYTES = 256 };
struct compare_notes {
    uint32_t count;
    char text[COMPARE_NOTES_MAX][COMPARE_NOTE_BYTES];
};
void compare_note(const struct compare *compare, struct compare_notes *out);

/* ---- showing it: compare_print.c, compare_html.c ---- */

/* Command that shows or drives an outcome of a side: of A, where it is rewritten, what was
 * recorded. */
enum { COMPARE_COMMAND_BYTES = 32 };
const char *compare_command(const struct compare *compare, bool of_b, int64_t id,
                            char out[COMPARE_COMMAND_BYTES]);

/* One side of a pair. */
const struct compare_rollout *compare_rollout(const struct compare *compare, uint32_t pair,
                                              bool of_b);

/* Tables in every form. That of the whole is left open for further rows. */
void compare_write_ends(const struct compare *compare, struct page *page);
void compare_write_whole(const struct compare *compare, struct page *page);
/* That of the whole with the slices in which something changed behind it; answers in how many
 * nothing did. */
uint32_t compare_write_changed(const struct compare *compare, struct page *page);
void compare_write_slices(const struct compare *compare, struct page *page);
void compare_write_measures(const struct compare *compare, struct page *page);

void compare_print(const struct compare *compare, FILE *stream);

/* New reference or NULL. */
json_t *compare_json(const struct compare *compare);

/* ---- for CI: compare_ci.c ---- */

/* Markdown for the page or the comment of a CI system: the verdict first (`regression` is that of
 * compare_regression), then rates, slices in which something changed, and what broke, was lost and
 * was fixed, with the commands that show it. */
void compare_markdown(const struct compare *compare, const char *regression, FILE *out);

/* JUnit XML: a case for each main line that both sides have a result of, and for each pass of A
 * that B has none for. What broke is a failure, a pass without a result an error; what fails with
 * both is skipped. */
void compare_junit(const struct compare *compare, FILE *out);

/* One self-contained page; frames of both sides beside each other for the first flips. */
enum status compare_html(const struct compare *compare, const char *path, struct error *error);

#endif
