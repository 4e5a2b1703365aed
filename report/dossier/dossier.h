/*
 * Dossier: what a store and a suite can say to somebody who is to judge how far results may be
 * believed: what was examined, results with their uncertainty, the envelope that was reached,
 * coverage, protocols, and what is missing; then the argument of docs/credibility.md. Markdown, of
 * which dossier_html() makes a page.
 *
 * Everything that is a figure comes from the store or the suite; nothing is typed in. The same
 * store and suite give the same bytes: no date, no host.
 */
#ifndef SWERVE_REPORT_DOSSIER_DOSSIER_H
#define SWERVE_REPORT_DOSSIER_DOSSIER_H

#include "report/risk/risk.h"
#include "report/summary.h"
#include "report/traceability/traceability.h"
#include "scenarios/coverage/coverage.h"
#include "scenarios/protocol/protocol.h"

#include <stdio.h>

struct dossier_request {
    const char *suite_path;
    const struct suite *suite;
    const struct coverage *coverage;
    struct protocol_register *protocols; /* NULL: no chapter on protocols */
    const char *store_url;               /* NULL: no results */
    const char *store_suite;             /* id in the store */
    const struct summary *summary;       /* of that suite; NULL: no results */
    const struct risk_study *studies;    /* of the summary; NULL: no chapter on risk */
    uint32_t study_count;
    const struct trace_matrix *traceability; /* NULL: no chapter on it */
    const char *version;
    const char *revision; /* of this binary's simulation sources */
    int64_t written_s;    /* wall clock, seconds since 1970 */
    FILE *out;
};

/* Writes all chapters; errors of the stream are the caller's to look for. */
enum status dossier_write(const struct dossier_request *request, struct error *error);

/* The Markdown of dossier_write() as a page of its own: *out is malloc'ed, the caller's. */
enum status dossier_html(const char *title, const char *text, char **out, size_t *bytes,
                         struct error *error);

/* ---- dossier_results.c ---- */

/* Part of the suite that the store has. */
struct dossier_match {
    uint32_t driven;     /* concrete scenarios with a main line that has a result */
    uint32_t flagged;    /* of the others, with a main line that was flagged or is invalid */
    uint32_t foreign;    /* main lines of scenarios that this suite file does not have */
    uint32_t revisions;  /* distinct ones among the results */
    bool other_revision; /* a result of other simulation sources than this binary's */
    bool learned;
    bool nominal;   /* every result has seed 0 */
    uint8_t *state; /* [entry_count]: 2 driven, 1 flagged, 0 neither; owned */
};

enum status dossier_match_find(const struct dossier_request *request, struct dossier_match *out,
                               struct error *error);
void dossier_match_finish(struct dossier_match *match);

void dossier_write_identity(const struct dossier_request *request,
                            const struct dossier_match *match);
void dossier_write_results(const struct dossier_request *request);
void dossier_write_envelope(const struct dossier_request *request);

#endif
