/*
 * Cells of CSV that hold other people's text: planners, scenarios, reasons, registers.
 *
 * Spreadsheets run a cell that begins with = + - or @, or with one of them behind a tab, a carriage
 * return or a line feed, as a formula (OWASP, "CSV Injection"; the full-width forms likewise). Such
 * a text gets an apostrophe in front, which a spreadsheet takes off again. So does one that begins
 * with apostrophes before such a character, so that readers can take one off: docs/export.md has
 * the rule. Numbers are written by who writes them, and are left alone.
 */
#ifndef SWERVE_REPORT_CSV_CELL_H
#define SWERVE_REPORT_CSV_CELL_H

#include <stdbool.h>
#include <stdio.h>

/* Quoted where it has to be; what a terminal would obey or hide is spelled out (base/text.h).
 * False: out of memory. */
bool csv_cell_put(const char *text, FILE *out);

/* Whether the text would be run. */
bool csv_cell_is_formula(const char *text);

#endif
