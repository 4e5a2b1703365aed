/*
 * Lessons: the scenarios that a student's successor is trained on. Those in which it was flagged,
 * or on whose verdict it differs from its teacher or from the object world, and for each of them
 * some healthy ones of the same slices, so that it does not unlearn what it can. Logical scenarios
 * that are held out end the training; cases and seeds of one resemble each other, so they are all
 * on one side.
 */
#ifndef SWERVE_REPORT_TRUST_LESSONS_H
#define SWERVE_REPORT_TRUST_LESSONS_H

#include "report/trust/pairs.h"

/* More are drawn by their hashes: one suite takes LIMIT_SUITE_SCENARIOS in all. */
enum { LESSONS_DIFFERING_MAX = LIMIT_SUITE_SCENARIOS / 2 };

struct lessons_options {
    const char *student_hash; /* of whom audits count, in whatever precision */
    uint32_t healthy;         /* scenarios for each that differs */
    double held_out;          /* share of the logical scenarios, 0 to 1 */
};

struct lesson {
    const struct pairs_pair *pair; /* borrowed */
    bool differs;                  /* the scenario, in this seed or another */
    bool held_out;
};

struct lessons {
    uint32_t count;
    struct lesson *lessons; /* owned; by scenario's hash */
    uint32_t differing;     /* scenarios */
    uint32_t healthy;
    uint32_t families; /* logical scenarios */
    uint32_t families_held_out;
};

/* Audits, and behind them drives that were flagged (pairs_pair_of_answer(), no shadow). Whether one
 * differs: it was flagged, its verdict is not the object world's or, where that did not answer, the
 * teacher's. */
bool lessons_differs(const struct pairs_pair *pair);

/* The share of hashes of logical scenarios, so that one stays on its side in every store and in the
 * next retraining; but each side has a logical scenario, and one that differs is trained on.
 * NOT_FOUND: no audit of the student differs, or all are of one logical scenario. */
enum status lessons_choose(const struct pairs *pairs, const struct lessons_options *options,
                           struct lessons *out, struct error *error);
void lessons_finish(struct lessons *lessons); /* zeroed ones too */

#endif
