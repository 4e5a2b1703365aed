/*
 * Pages: what people read, written once and shown in a terminal, as HTML or as Markdown. A page is
 * headings, facts and tables; whoever makes one gives words and formats, and the page's form says
 * how they look. What only one form has is written beside, to the page's own `out` or `html`.
 *
 * Formats are those of report/page/format.h; a text (%s) may come from anywhere.
 */
#ifndef SWERVE_REPORT_PAGE_PAGE_H
#define SWERVE_REPORT_PAGE_PAGE_H

#include "report/page/html.h"

#include <stdio.h>

enum page_form { PAGE_TERMINAL = 0, PAGE_HTML, PAGE_MARKDOWN };

enum { PAGE_COLUMNS_MAX = 20 };

struct page {
    enum page_form form;
    FILE *out;         /* borrowed; of a terminal and of Markdown */
    struct html *html; /* borrowed; of HTML */
    int name_width;    /* of a first column without a width; in a terminal */
    /* Of the table that is open. */
    uint32_t column_count;
    bool headless;
    struct page_column {
        int gap;   /* blanks before it in a terminal */
        int width; /* characters there; 0: as wide as its words */
        bool number;
    } columns[PAGE_COLUMNS_MAX];
};

/* Markup of HTML alone. */
void page_html(struct page *page, const char *markup);

void page_heading(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens a table, in HTML with those attributes. Its columns stand between bars, each a head behind
 * what the form needs: "  #12 miles" has two blanks before it in a terminal, is a number (to the
 * right), and 12 characters wide there. Of a head "short=long" the terminal has the short one;
 * "?metric" and "?metric=words" have the metric's definition as a tooltip in HTML. A table none of
 * whose columns has a head is one of names, in its first column, and what is so called. */
void page_table(struct page *page, const char *attributes, const char *columns, ...)
    __attribute__((format(printf, 3, 4)));

/* One row: cells between bars, at most as many as columns. A cell that begins with "{CLASS}" has
 * that class in HTML, and a row "[CLASS]"; both may be formats that make nothing. Of a cell with a
 * number that is not finite nothing is shown but a dash. */
void page_row(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same in parts: cells from column `first` on; others may be written between them. */
void page_row_begin(struct page *page, const char *class);
void page_row_end(struct page *page);
void page_cells(struct page *page, uint32_t first, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void page_table_end(struct page *page);

/* Markdown with values, as html_format and text_print do for their forms. */
void markdown_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
