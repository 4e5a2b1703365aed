/*
 * Pages in three forms. Goal: one call says the same in a terminal, as HTML and as Markdown, and no
 * text from anywhere is markup or moves a column. Method: a small table with a hostile name, an
 * unknown number and a class, written in each form and compared whole.
 */
#include "base/check.h"
#include "report/page/page.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOSTILE "<b>_|\x1b"

static void write_table(struct page *page)
{
    page_heading(page, "Of %s", HOSTILE);
    page_table(page, " id=\"t\"", "  10 name| #8 short=long name| #6 ?MFU|%s", "last");
    page_row(page, "[%s]%s|{%s}%lld|%5.1f%%|%.2s", "total", HOSTILE, "bad", 12LL, 50.0, "abc");
    page_row(page, "[%s]%s|{%s}%lld|%5.1f%%|%-4s", "", "b", "", 3LL, (double)NAN, "d");
    page_table_end(page);
    page_table(page, "", "  14| ");
    page_row(page, "fact|%s is %4.1f", "a", 2.0);
    page_table_end(page);
}

/* The table in a form whose texts go to a stream; the caller's. */
static char *streamed(enum page_form form)
{
    char *text = NULL;
    size_t bytes = 0;
    struct page page = {.form = form, .out = open_memstream(&text, &bytes)};
    CHECK(page.out != NULL);
    write_table(&page);
    CHECK(fclose(page.out) == 0);
    return text;
}

static void a_terminal_lines_columns_up(void)
{
    char *text = streamed(PAGE_TERMINAL);
    EXPECT_TEXT(text, "\nOf <b>_|\\u001b\n"
                      "  name          short    MFUlast\n"
                      "  <b>_|\\u001b       12  50.0%ab\n"
                      "  b                 3      -d   \n"
                      "  fact           a is  2.0\n");
    free(text);
}

static void html_has_classes_and_definitions(void)
{
    struct html html = {0};
    struct page page = {.form = PAGE_HTML, .html = &html};
    write_table(&page);
    EXPECT(!html.failed);
    EXPECT_CONTAINS(html.text, "<h2>Of &lt;b&gt;_|\\u001b</h2>\n"
                               "<table id=\"t\"><thead><tr><th>name</th><th class=\"n\">long "
                               "name</th><th class=\"n\"><abbr title=\"Model FLOP");
    EXPECT_CONTAINS(html.text, ">MFU</abbr></th><th>last</th></tr></thead><tbody>"
                               "<tr class=\"total\"><td>&lt;b&gt;_|\\u001b</td><td class=\"n bad\">"
                               "12</td><td class=\"n\">50.0%</td><td>ab</td></tr>"
                               "<tr><td>b</td><td class=\"n\">3</td><td class=\"n soft\">&ndash;"
                               "</td><td>d</td></tr></tbody></table>"
                               "<table><tbody><tr><th>fact</th><td class=\"wrap\">a is 2.0</td>"
                               "</tr></tbody></table>");
    html_finish(&html);
}

static void markdown_escapes_its_marks(void)
{
    char *text = streamed(PAGE_MARKDOWN);
    EXPECT_TEXT(text, "\n## Of \\<b\\>\\_\\|\\\\u001b\n\n"
                      "| name | long name | MFU | last |\n|---|---:|---:|---|\n"
                      "| \\<b\\>\\_\\|\\\\u001b | 12 | 50.0% | ab |\n"
                      "| b | 3 | - | d |\n"
                      "| | |\n|---|---|\n"
                      "| fact | a is 2.0 |\n");
    free(text);
}

int main(void)
{
    return TEST_RUN(TEST(a_terminal_lines_columns_up), TEST(html_has_classes_and_definitions),
                    TEST(markdown_escapes_its_marks));
}
