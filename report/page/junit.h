/*
 * JUnit XML, in the form that CI systems read: testsuites, testsuite, testcase with failure, error
 * or skipped. Whoever writes one counts its cases first, as the head says how many there are.
 */
#ifndef SWERVE_REPORT_PAGE_JUNIT_H
#define SWERVE_REPORT_PAGE_JUNIT_H

#include <stdint.h>
#include <stdio.h>

struct junit_counts {
    uint64_t tests; /* all cases, those below among them */
    uint64_t failures;
    uint64_t errors;
    uint64_t skipped;
    double time_s; /* NAN: not said */
};

/* Markup with values: a format of report/page/format.h, whose texts may come from anywhere. */
void junit_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What stands before the cases, and behind them. */
void junit_begin(FILE *out, const char *name, const struct junit_counts *counts);
void junit_end(FILE *out);

#endif
