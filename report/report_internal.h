/*
 * Inside the report: what its sections share. report.c runs them in reading order over one plan
 * (report_plan.c), which decides beforehand what gets a card, so that links can point both ways.
 *
 * Invariant: a section fails only for want of memory or when the store fails; a drive that cannot
 * be redrawn (its trace is gone or damaged) becomes a note in its card.
 */
#ifndef SWERVE_REPORT_REPORT_INTERNAL_H
#define SWERVE_REPORT_REPORT_INTERNAL_H

#include "report/page/metrics.h"
#include "report/page/page.h"
#include "report/report.h"
#include "report/report_drive.h"

/* Limits of a report; the rest is counted in a note. */
enum {
    REPORT_FAILURE_CARDS_MAX = 60,
    REPORT_FAILURE_ROWS_MAX = 300,
    REPORT_FANOUT_CARDS_MAX = 40,
    REPORT_FANOUT_BRANCHES_MAX = 12, /* of one fanout, with frames */
    REPORT_SLICE_ROWS_MAX = 200,     /* of one slice */
    REPORT_TABLE_ROWS_MAX = 5000,
    REPORT_TABLE_ROWS_SHOWN = 200, /* the script shows the others when asked */
    REPORT_DEAD_ROWS_MAX = 100,
    REPORT_SCENARIOS_MAX = 5000,     /* scenarios read to name their branches */
    REPORT_PICTURE_BYTES = 23 << 18, /* once the file is this big, cards go without pictures */
    REPORT_DRIVES_BYTES = 2 << 20    /* no further drive for the player beyond this */
};

/* One job: a main line with its branches, and what the report makes of it. */
struct report_job {
    uint32_t first; /* its outcomes: summary->outcomes[first .. first + count) */
    uint32_t count;
    int32_t main;     /* index among the outcomes, -1: none */
    uint32_t changed; /* branches whose verdict is not the main line's */
    uint32_t rescues; /* branches that pass although the main line does not */
    bool flagged;     /* evidence, not a result: no card here */
    bool failure;     /* a main line that did not pass */
    bool repeat;      /* its main line ended as another seed's: told there */
    bool failure_card;
    bool fanout_card;
    bool played;           /* its drives are in the file */
    uint16_t rescue_kinds; /* bit per enum intervention_kind */
};

/* Branches by what they change first. */
struct report_kind {
    int64_t branches;
    int64_t passed;
    int64_t rescued; /* pass, main line did not */
    int64_t broke;   /* do not pass, main line did */
};

struct report_plan {
    uint32_t job_count;
    struct report_job *jobs; /* owned */
    struct report_kind kinds[INTERVENE_COUNT];
    uint32_t mains; /* main lines */
    uint32_t branches;
    uint32_t failures;             /* main lines that did not pass */
    uint32_t failures_with_branch; /* of these, with at least one branch that counts */
    uint32_t failures_rescued;     /* of these, with a branch that passes */
    uint32_t fanouts;
    uint32_t degraded; /* jobs that ask about perception, answered without a learned world */
    uint32_t played;   /* rollouts whose drives are in the file */
    bool truncated;    /* more scenarios than REPORT_SCENARIOS_MAX: kinds are of the first */
};

struct report {
    struct html html;
    struct page page;   /* writes into html */
    struct html drives; /* what the player reads, written behind the page */
    struct store *store;
    const char *store_url; /* NULL: not to be shown */
    const char *suite_id;
    const struct summary *summary;
    struct report_plan plan;
    struct report_drive drive;
    struct report_careful *careful; /* NULL: nobody to ask */
    uint32_t pictures_left_out;     /* cards */
};

/* ---- report_plan.c ---- */

enum status report_plan_make(struct report *report, struct error *error);
void report_plan_finish(struct report_plan *plan);

/* The job of outcome `index`; every outcome has one. */
const struct report_job *report_job_of(const struct report *report, uint32_t index);

/* ---- report_words.c ---- */

void report_chips(struct html *html, const struct kept_outcome *outcome);
void report_intervention(struct html *html, const struct scenario *scenario,
                         const struct intervention *what);
void report_key_figures(struct html *html, const struct kept_outcome *outcome);

/* Table of the criteria that the scenario applies: required, measured, met or not. */
void report_criteria(struct page *page, const struct scenario *scenario,
                     const struct kept_outcome *outcome);

/* <code> with a command that works on the report's store: `swerve WHAT ID [--store ..]`, and behind
 * it an option or "". */
void report_command(struct report *report, const char *what, int64_t id, const char *option);

/* Name of the place where a job with a fanout card shows this outcome; returns out. */
enum { REPORT_ANCHOR_BYTES = 32 };
const char *report_anchor(const struct report_job *job, const struct kept_outcome *outcome,
                          char out[REPORT_ANCHOR_BYTES]);

/* Whether ego itself does something else, in the planner's place. */
bool report_is_own(enum intervention_kind kind);

/* Words for a contact: "contact at ego's front". */
const char *report_contact(enum collision_kind kind);

/* The planner's last words, if any. */
void report_planner_error(struct html *html, const struct kept_outcome *outcome);
/* Other text that it wrote in that rollout, folded away; nothing when it wrote nothing. */
void report_planner_output(struct html *html, const struct report_drive *drive, int32_t rollout,
                           const struct kept_outcome *outcome);

/* Opens the drive of an outcome. *there is false, with a note written, when it cannot be redrawn;
 * report_scenario() then tells whether at least its scenario could be read. */
enum status report_open(struct report *report, const struct kept_outcome *outcome, bool *there,
                        struct error *error);

/* The scenario of the outcome of the last report_open(), NULL: not readable. */
const struct scenario *report_scenario(const struct report *report);

/* Whether there is room for more pictures. */
bool report_pictures(struct report *report);

/* ---- report_careful.c ---- */

/* A paragraph where there is something to ask. */
enum status report_card_careful(struct report *report, const struct scenario *scenario,
                                const struct kept_outcome *outcome, struct error *error);

/* ---- report_player.c ---- */

/* Packs the drives that the player shows; before the sections. */
enum status report_drives(struct report *report, struct error *error);

/* A button that plays the outcome, where its drive is in the file. */
void report_play(struct html *html, const struct report_job *job,
                 const struct kept_outcome *outcome);

/* ---- sections ---- */

void report_head(struct report *report);   /* report_head.c: title, the whole in words, tiles */
void report_slices(struct report *report); /* report_slices.c */
void report_cost(struct report *report);   /* report_slices.c */
void report_tiers(struct report *report);  /* report_learned.c, within the cost */
void report_flags(struct report *report);  /* report_learned.c; nothing without learned worlds */
void report_audit(struct report *report);  /* report_learned.c; nothing without an audit */
enum status report_notes(struct report *report, struct error *error);    /* report_head.c */
enum status report_failures(struct report *report, struct error *error); /* report_failures.c */
enum status report_fanouts(struct report *report, struct error *error);  /* report_fanouts.c */
void report_rollouts(struct report *report);                             /* report_table.c */

#endif
