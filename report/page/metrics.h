/*
 * Metrics in the words of pages: a name with its definition as a tooltip, and all definitions.
 */
#ifndef SWERVE_REPORT_PAGE_METRICS_H
#define SWERVE_REPORT_PAGE_METRICS_H

#include "report/page/html.h"

/* Limits of the intervals, as docs/intervals.md has them. */
#define METRIC_INTERVAL_TEXT                                                                      \
    "In drawn suites with a known truth the 95% interval of a pass rate holds it in 94 to 100%: " \
    "more often than it says where few logical scenarios fail or one holds much of the weight."

/* `text` with the metric's definition as its tooltip; text is ours, not the user's. */
void report_metric(struct html *html, const char *metric, const char *text);

void report_definitions(struct html *html);

#endif
