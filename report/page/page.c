/*
 * Headings, facts and tables in three forms. See page.h.
 */
#include "report/page/page.h"

#include "base/check.h"
#include "report/page/format.h"
#include "report/page/metrics.h"

#include <stdlib.h>
#include <string.h>

/* ---- words of a form ---- */

enum { WORDS_BYTES = 16384 };

/* Words of a cell or a heading in a form; cut where they do not fit. */
struct words {
    enum page_form form;
    bool unknown; /* a number in it is none */
    size_t bytes;
    size_t room; /* behind them, of the terminator too */
    char text[WORDS_BYTES];
};

static void begin_words(struct words *words, enum page_form form)
{
    words->form = form;
    words->unknown = false;
    words->bytes = 0;
    words->room = WORDS_BYTES;
    words->text[0] = '\0';
}

static void put(void *context, const char *text, size_t bytes)
{
    struct words *words = context;
    if (bytes >= words->room) {
        words->room = 0;
        return;
    }
    memcpy(words->text + words->bytes, text, bytes);
    words->bytes += bytes;
    words->room -= bytes;
    words->text[words->bytes] = '\0';
}

static size_t spell_terminal(const char *text, bool within, char out[FORMAT_SPELLED_BYTES])
{
    (void)within;
    return format_spell(text, TEXT_LINE, out);
}

/* An underscore within a word is none of emphasis. */
static size_t spell_markdown(const char *text, bool within, char out[FORMAT_SPELLED_BYTES])
{
    char shown[FORMAT_SPELLED_BYTES];
    size_t bytes = format_spell(text, TEXT_LINE, shown);
    for (const char *at = shown; *at != '\0'; at++) {
        if (strchr(within ? "\\`*[]<>|#&~" : "\\`*_[]<>|#&~", *at) != NULL) {
            *out++ = '\\';
        }
        *out++ = *at;
    }
    *out = '\0';
    return bytes;
}

static void put_unknown(void *context)
{
    struct words *words = context;
    words->unknown = true;
}

/* Widths line numbers up in a terminal alone. */
static const struct format_writer writers[] = {
    [PAGE_TERMINAL] = {put, spell_terminal, put_unknown, false},
    [PAGE_HTML] = {put, html_spell, put_unknown, true},
    [PAGE_MARKDOWN] = {put, spell_markdown, put_unknown, true},
};

static const char *write_words(struct words *words, enum page_form form, const char *format,
                               const char *ends, va_list *args)
{
    begin_words(words, form);
    return format_write(format, ends, args, &writers[words->form], words);
}

static void page_put(struct page *page, const char *text)
{
    if (page->form == PAGE_HTML) {
        html_raw(page->html, text);
    } else {
        fputs(text, page->out);
    }
}

void markdown_print(FILE *out, const char *format, ...)
{
    struct words words;
    va_list args;
    va_start(args, format);
    write_words(&words, PAGE_MARKDOWN, format, "", &args);
    va_end(args);
    fputs(words.text, out);
}

/* ---- headings ---- */

void page_html(struct page *page, const char *markup)
{
    if (page->form == PAGE_HTML) {
        html_raw(page->html, markup);
    }
}

void page_heading(struct page *page, const char *format, ...)
{
    static const char *const begin[] = {"\n", "<h2>", "\n## "};
    static const char *const end[] = {"\n", "</h2>\n", "\n\n"};
    struct words words;
    va_list args;
    va_start(args, format);
    write_words(&words, page->form, format, "", &args);
    va_end(args);
    page_put(page, begin[page->form]);
    page_put(page, words.text);
    page_put(page, end[page->form]);
}

/* ---- tables ---- */

static void put_sized(struct page *page, const struct page_column *column, const char *text)
{
    fprintf(page->out, "%*s%*s", column->gap, "", column->number ? column->width : -column->width,
            text);
}

/* The head of a column: what follows gap, kind and width; returns where it ends. */
static const char *write_head(struct page *page, const struct page_column *column, const char *at,
                              va_list *args)
{
    struct words words[2];
    bool metric = *at == '?';
    at = write_words(&words[0], page->form, at + metric, "|=", args);
    bool two = *at == '=';
    at = two ? write_words(&words[1], page->form, at + 1, "|", args) : at;
    const char *text = words[two].text;
    switch (page->form) {
    case PAGE_TERMINAL:
        if (!page->headless) {
            put_sized(page, column, words[0].text);
        }
        break;
    case PAGE_HTML:
        if (metric) {
            html_raw(page->html, column->number ? "<th class=\"n\">" : "<th>");
            report_metric(page->html, words[0].text, text);
            html_raw(page->html, "</th>");
        } else if (!page->headless) {
            html_raw(page->html, column->number ? "<th class=\"n\">" : "<th>");
            html_raw(page->html, text);
            html_raw(page->html, "</th>");
        }
        break;
    case PAGE_MARKDOWN:
        fprintf(page->out, text[0] != '\0' ? " %s |" : "%s |", text);
        break;
    }
    return at;
}

/* Reads one column, up to its bar, and writes its head; returns where that is. */
static const char *open_column(struct page *page, const char *at, va_list *args)
{
    CHECK(page->column_count < PAGE_COLUMNS_MAX);
    struct page_column *column = &page->columns[page->column_count++];
    column->gap = (int)strspn(at, " ");
    at += column->gap;
    column->number = *at == '#';
    at += column->number;
    size_t digits = strspn(at, "0123456789");
    bool sized = digits > 0 && strchr(" |", at[digits]) != NULL;
    column->width = sized ? atoi(at) : page->column_count == 1 ? page->name_width : 0;
    at += sized ? digits + (at[digits] == ' ') : 0;
    return write_head(page, column, at, args);
}

void page_table(struct page *page, const char *attributes, const char *columns, ...)
{
    static const char *const begin[] = {"", "><thead><tr>", "|"};
    static const char *const end[] = {"\n", "</tr></thead><tbody>", "\n|"};
    va_list args;
    va_start(args, columns);
    page->column_count = 0;
    page->headless = columns[strspn(columns, " #0123456789|")] == '\0';
    page_html(page, "<table");
    page_html(page, attributes);
    page_put(page, page->headless && page->form == PAGE_HTML ? "><tbody>" : begin[page->form]);
    for (const char *at = open_column(page, columns, &args); *at == '|';) {
        at = open_column(page, at + 1, &args);
    }
    va_end(args);
    page_put(page, page->headless && page->form != PAGE_MARKDOWN ? "" : end[page->form]);
    for (uint32_t i = 0; page->form == PAGE_MARKDOWN && i < page->column_count; i++) {
        fputs(page->columns[i].number ? "---:|" : "---|", page->out);
    }
    page_put(page, page->form == PAGE_MARKDOWN ? "\n" : "");
}

/* A class between brackets, where the format has one next; returns what follows. */
static const char *read_class(const char *format, const char *brackets, va_list *args,
                              struct words *out)
{
    if (*format != brackets[0]) {
        begin_words(out, PAGE_HTML);
        return format;
    }
    return write_words(out, PAGE_HTML, format + 1, brackets + 1, args) + 1;
}

/* Of a table without heads the first column has them, and others break their lines. */
static void put_html_cell(struct page *page, const struct page_column *column, const char *text,
                          const char *class)
{
    const char *tag = page->headless && column == page->columns ? "th" : "td";
    const char *kind = column->number ? "n" : page->headless && tag[1] == 'd' ? "wrap" : "";
    html_format(page->html, kind[0] != '\0' || class[0] != '\0' ? "<%s class=\"%s%s%s\">" : "<%s>",
                tag, kind, kind[0] != '\0' && class[0] != '\0' ? " " : "", class);
    html_raw(page->html, text);
    html_format(page->html, "</%s>", tag);
}

/* One cell, up to its bar; returns where that is. */
static const char *write_cell(struct page *page, const struct page_column *column,
                              const char *format, va_list *args)
{
    static const char *const unknown[] = {"-", "&ndash;", "-"};
    struct words class;
    struct words words;
    format = read_class(format, "{}", args, &class);
    format = write_words(&words, page->form, format, "|", args);
    const char *text = words.unknown ? unknown[page->form] : words.text;
    const char *more = words.unknown ? "soft" : class.text;
    switch (page->form) {
    case PAGE_TERMINAL:
        put_sized(page, column, text);
        break;
    case PAGE_HTML:
        put_html_cell(page, column, text, more);
        break;
    case PAGE_MARKDOWN:
        fprintf(page->out, " %s |", text);
        break;
    }
    return format;
}

static void write_cells(struct page *page, uint32_t first, const char *format, va_list *args)
{
    for (uint32_t i = first;; i++) {
        CHECK(i < page->column_count);
        format = write_cell(page, &page->columns[i], format, args);
        if (*format++ != '|') {
            return;
        }
    }
}

void page_cells(struct page *page, uint32_t first, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_cells(page, first, format, &args);
    va_end(args);
}

void page_row_begin(struct page *page, const char *class)
{
    static const char *const begin[] = {"", "<tr>", "|"};
    if (page->form == PAGE_HTML && class[0] != '\0') {
        html_format(page->html, "<tr class=\"%s\">", class);
    } else {
        page_put(page, begin[page->form]);
    }
}

void page_row_end(struct page *page)
{
    static const char *const end[] = {"\n", "</tr>", "\n"};
    page_put(page, end[page->form]);
}

void page_row(struct page *page, const char *format, ...)
{
    struct words class;
    va_list args;
    va_start(args, format);
    format = read_class(format, "[]", &args, &class);
    page_row_begin(page, class.text);
    write_cells(page, 0, format, &args);
    va_end(args);
    page_row_end(page);
}

void page_table_end(struct page *page)
{
    page_html(page, "</tbody></table>");
}
