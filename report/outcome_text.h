/*
 * One outcome for people, in about ten lines: what happened, when and with whom, what would have
 * saved it, and which commands look further.
 */
#ifndef SWERVE_REPORT_OUTCOME_TEXT_H
#define SWERVE_REPORT_OUTCOME_TEXT_H

#include "schemas/careful/careful.h"
#include "store/api/store.h"

#include <stdio.h>

/* Knowledge besides the outcome; NULL or 0: nothing. */
struct outcome_text {
    struct store *store;
    const char *store_url;
    const struct careful *careful;
    uint32_t skipped_ticks; /* that left out steps of a sampler by their scenario; 0: none */
    int64_t handed_back;    /* times that its job made way, and the suite for which, last */
    const char *handed_back_for;
};

/* A scenario or a trace that the store has lost is said in its line. NO_MEMORY, errors of the
 * store. */
enum status outcome_text_print(const struct outcome_text *text, const struct outcome *outcome,
                               FILE *stream, struct error *error);

/* Fate of futures: "from 3.2 s: P(fail) 4% [0-30%], pass"; returns `out`. */
enum { FUTURES_TEXT_BYTES = 96 };
const char *outcome_text_futures(const struct outcome_futures *futures,
                                 char out[FUTURES_TEXT_BYTES]);

#endif
