/*
 * The dossier as a page: the Markdown that dossier_write() makes, in the style of the reports.
 *
 * Only what the dossier writes is understood: headings, paragraphs, lists, tables, indented code, a
 * rule; bold, code, links and escapes within a line. Anything else is text. Links are shown as
 * their words: the pages that they lead to are not in the file. Every character of the text goes
 * through html_text, so that nothing in it becomes markup.
 */
#include "report/dossier/dossier.h"
#include "report/page/html.h"

#include <stdlib.h>
#include <string.h>

enum block { BLOCK_NONE = 0, BLOCK_PARAGRAPH, BLOCK_LIST, BLOCK_TABLE, BLOCK_CODE };

enum { CELL_LONG = 40 }; /* characters; from there on a cell breaks its line */

struct page {
    struct html *html;
    enum block block;
    bool header; /* the next row of a table is its first */
    bool bare;   /* the table has no headings: names and values, which all break their lines */
};

static const char *const block_ends[] = {"", "</p>\n", "</li></ul>\n", "</tbody></table></div>\n",
                                         "</pre>\n"};

static void block_close(struct page *page)
{
    html_raw(page->html, block_ends[page->block]);
    page->block = BLOCK_NONE;
}

static void put_char(struct html *html, char c)
{
    const char text[2] = {c, '\0'};
    html_text(html, text);
}

/* The first `mark` before `end` that nothing escapes; NULL: there is none. */
static const char *find_mark(const char *at, const char *end, const char *mark)
{
    size_t bytes = strlen(mark);
    for (; at + bytes <= end; at++) {
        if (*at == '\\' && mark[0] != '`') {
            at++;
        } else if (memcmp(at, mark, bytes) == 0) {
            return at;
        }
    }
    return NULL;
}

/* Words of a line up to the first of what is nested in them, which has none of its own. */
static void write_plain(struct html *html, const char *at, const char *end)
{
    for (; at < end; at++) {
        at += *at == '\\' && at + 1 < end;
        put_char(html, *at);
    }
}

static void write_inline(struct html *html, const char *at, const char *end)
{
    while (at < end) {
        const char *close = NULL;
        const char *target = NULL;
        if (*at == '`' && (close = find_mark(at + 1, end, "`")) != NULL) {
            html_raw(html, "<code>");
            for (at++; at < close; at++) {
                put_char(html, *at);
            }
            html_raw(html, "</code>");
            at = close + 1;
        } else if (end - at > 2 && memcmp(at, "**", 2) == 0 &&
                   (close = find_mark(at + 2, end, "**")) != NULL) {
            html_raw(html, "<b>");
            write_plain(html, at + 2, close);
            html_raw(html, "</b>");
            at = close + 2;
        } else if (*at == '[' && (close = find_mark(at + 1, end, "](")) != NULL &&
                   (target = find_mark(close + 2, end, ")")) != NULL) {
            write_plain(html, at + 1, close);
            at = target + 1;
        } else {
            at += *at == '\\' && at + 1 < end;
            put_char(html, *at++);
        }
    }
}

static void write_row(struct page *page, const char *at, const char *end)
{
    const char *cell = page->header ? "th" : "td";
    html_raw(page->html, page->header ? "<thead><tr>" : "<tr>");
    for (at++; at < end;) {
        const char *close = find_mark(at, end, "|");
        const char *last = close != NULL ? close : end;
        bool wraps = page->bare || last - at > CELL_LONG;
        html_format(page->html, wraps ? "<%s class=\"wrap\">" : "<%s>", cell);
        while (at < last && *at == ' ') {
            at++;
        }
        while (last > at && last[-1] == ' ') {
            last--;
        }
        write_inline(page->html, at, last);
        html_format(page->html, "</%s>", cell);
        at = close != NULL ? close + 1 : end;
    }
    html_raw(page->html, page->header ? "</tr></thead><tbody>\n" : "</tr>\n");
    page->header = false;
}

static void block_open(struct page *page, enum block block, const char *text)
{
    if (page->block != block) {
        block_close(page);
        html_raw(page->html, text);
        page->block = block;
    }
}

static void write_table_line(struct page *page, const char *at, const char *end)
{
    if (page->block != BLOCK_TABLE) {
        block_open(page, BLOCK_TABLE, "<div class=\"scroll\"><table>");
        page->header = true;
        page->bare = false;
    }
    if (strspn(at, "|-: ") < (size_t)(end - at)) {
        write_row(page, at, end);
    } else if (page->header) { /* empty: what comes next is no header */
        html_raw(page->html, "<tbody>\n");
        page->header = false;
        page->bare = true;
    }
}

static void write_line(struct page *page, const char *at, const char *end)
{
    struct html *html = page->html;
    size_t bytes = (size_t)(end - at);
    size_t level = strspn(at, "#");
    if (bytes == 0) {
        block_close(page);
    } else if (level > 0 && level <= 6 && at[level] == ' ') {
        block_close(page);
        html_format(html, "<h%d>", (int)level);
        write_inline(html, at + level + 1, end);
        html_format(html, "</h%d>\n", (int)level);
    } else if (bytes == 3 && memcmp(at, "---", 3) == 0) {
        block_close(page);
        html_raw(html, "<hr>\n");
    } else if (*at == '|') {
        write_table_line(page, at, end);
    } else if (bytes > 2 && memcmp(at, "* ", 2) == 0) {
        html_raw(html, page->block == BLOCK_LIST ? "</li>\n" : "");
        block_open(page, BLOCK_LIST, "<ul>");
        html_raw(html, "<li>");
        write_inline(html, at + 2, end);
    } else if (bytes > 4 && memcmp(at, "    ", 4) == 0 && page->block != BLOCK_LIST) {
        block_open(page, BLOCK_CODE, "<pre>");
        for (at += 4; at < end; at++) {
            put_char(html, *at);
        }
        html_raw(html, "\n");
    } else {
        if (page->block == BLOCK_LIST || page->block == BLOCK_PARAGRAPH) {
            html_raw(html, " ");
        } else {
            block_open(page, BLOCK_PARAGRAPH, "<p>");
        }
        while (at < end && *at == ' ') {
            at++;
        }
        write_inline(html, at, end);
    }
}

enum status dossier_html(const char *title, const char *text, char **out, size_t *bytes,
                         struct error *error)
{
    struct html html = {0};
    struct page page = {.html = &html};
    html_begin(&html, title);
    html_raw(&html, "<header></header><main>\n");
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        write_line(&page, text, text + length);
        text += length + (text[length] == '\n');
    }
    block_close(&page);
    html_raw(&html, "</main>");
    html_end(&html);
    if (html.failed) {
        html_finish(&html);
        return error_set(error, STATUS_NO_MEMORY, "dossier: out of memory");
    }
    *out = html.text;
    *bytes = html.bytes;
    return STATUS_OK;
}
