/*
 * Headings, facts and tables in three forms. See page.h.
 */
#include "report/page/page.h"

#include "base/check.h"
#include "report/page/format.h"
#include "report/page/metrics.h"

#include <stdlib.h>
#include <string.h>

enum { FACT_WIDTH = 14 };

/* ---- words of a form ---- */

struct words {
    enum page_form form;
    struct html text;
    bool unknown; /* a number in it is none */
};

static void put(void *context, const char *text, size_t bytes)
{
    struct words *words = context;
    html_bytes(&words->text, text, bytes);
}

/* Markdown takes no underscore within a word for emphasis. */
static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void put_text(void *context, const char *text, size_t most)
{
    struct words *words = context;
    if (words->form == PAGE_HTML) {
        html_text_part(&words->text, text, most);
        return;
    }
    bool before = false;
    for (size_t left = strnlen(text, most); left > 0;) {
        char shown[FORMAT_SHOWN_BYTES];
        size_t bytes = format_character(text, TEXT_LINE, shown);
        for (const char *at = shown; *at != '\0'; at++) {
            bool mark = words->form == PAGE_MARKDOWN &&
                        (strchr("\\`*[]<>|#&~", *at) != NULL ||
                         (*at == '_' && !(before && left > 1 && is_of_word(text[1]))));
            html_raw(&words->text, mark ? "\\" : "");
            html_bytes(&words->text, at, 1);
        }
        before = is_of_word(*text);
        bytes = bytes < left ? bytes : left;
        text += bytes;
        left -= bytes;
    }
}

static void put_unknown(void *context)
{
    struct words *words = context;
    words->unknown = true;
}

/* Widths line numbers up in a terminal alone. */
static const struct format_writer writers[] = {
    [PAGE_TERMINAL] = {put, put_text, put_unknown, false},
    [PAGE_HTML] = {put, put_text, put_unknown, true},
    [PAGE_MARKDOWN] = {put, put_text, put_unknown, true},
};

static const char *write_words(struct words *words, const char *format, const char *ends,
                               va_list *args)
{
    return format_write(format, ends, args, &writers[words->form], words);
}

static const char *text_of(const struct words *words)
{
    return words->text.text != NULL ? words->text.text : "";
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
    struct words words = {.form = PAGE_MARKDOWN};
    va_list args;
    va_start(args, format);
    write_words(&words, format, "", &args);
    va_end(args);
    fputs(text_of(&words), out);
    html_finish(&words.text);
}

/* ---- headings ---- */

void page_html(struct page *page, const char *markup)
{
    if (page->form == PAGE_HTML) {
        html_raw(page->html, markup);
    }
}

void page_heading(struct page *page, const char *text)
{
    static const char *const begin[] = {"\n", "<h2>", "\n## "};
    static const char *const end[] = {"\n", "</h2>\n", "\n\n"};
    struct words words = {.form = page->form};
    put_text(&words, text, SIZE_MAX);
    page_put(page, begin[page->form]);
    page_put(page, text_of(&words));
    page_put(page, end[page->form]);
    html_finish(&words.text);
}

void page_fact(struct page *page, const char *name, const char *format, ...)
{
    static const char *const begin[] = {"  ", "<tr><th>", "| "};
    static const char *const middle[] = {" ", "</th><td class=\"wrap\">", " | "};
    static const char *const end[] = {"\n", "</td></tr>", " |\n"};
    struct words words = {.form = page->form};
    va_list args;
    va_start(args, format);
    page_put(page, begin[page->form]);
    page_put(page, name);
    for (size_t i = strlen(name); page->form == PAGE_TERMINAL && i < FACT_WIDTH; i++) {
        page_put(page, " ");
    }
    page_put(page, middle[page->form]);
    write_words(&words, format, "", &args);
    page_put(page, text_of(&words));
    page_put(page, end[page->form]);
    va_end(args);
    html_finish(&words.text);
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
    struct words words[2] = {{.form = page->form}, {.form = page->form}};
    bool metric = *at == '?';
    at = write_words(&words[0], at + metric, "|=", args);
    bool two = *at == '=';
    at = two ? write_words(&words[1], at + 1, "|", args) : at;
    const char *text = text_of(&words[two]);
    switch (page->form) {
    case PAGE_TERMINAL:
        if (!page->headless) {
            put_sized(page, column, text_of(&words[0]));
        }
        break;
    case PAGE_HTML:
        if (metric) {
            html_raw(page->html, column->number ? "<th class=\"n\">" : "<th>");
            report_metric(page->html, text_of(&words[0]), text);
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
    html_finish(&words[0].text);
    html_finish(&words[1].text);
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
        return format;
    }
    return write_words(out, format + 1, brackets + 1, args) + 1;
}

/* One cell, up to its bar; returns where that is. */
static const char *write_cell(struct page *page, const struct page_column *column,
                              const char *format, va_list *args)
{
    static const char *const unknown[] = {"-", "&ndash;", "-"};
    struct words class = {.form = PAGE_HTML};
    struct words words = {.form = page->form};
    format = read_class(format, "{}", args, &class);
    format = write_words(&words, format, "|", args);
    const char *text = words.unknown ? unknown[page->form] : text_of(&words);
    const char *more = words.unknown ? "soft" : text_of(&class);
    switch (page->form) {
    case PAGE_TERMINAL:
        put_sized(page, column, text);
        break;
    case PAGE_HTML:
        html_raw(page->html, column->number || more[0] != '\0' ? "<td class=\"" : "<td");
        html_raw(page->html, column->number ? "n" : "");
        html_raw(page->html, column->number && more[0] != '\0' ? " " : "");
        html_raw(page->html, more);
        html_raw(page->html, column->number || more[0] != '\0' ? "\">" : ">");
        html_raw(page->html, text);
        html_raw(page->html, "</td>");
        break;
    case PAGE_MARKDOWN:
        fprintf(page->out, " %s |", text);
        break;
    }
    html_finish(&class.text);
    html_finish(&words.text);
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
    struct words class = {.form = PAGE_HTML};
    va_list args;
    va_start(args, format);
    format = read_class(format, "[]", &args, &class);
    page_row_begin(page, text_of(&class));
    write_cells(page, 0, format, &args);
    va_end(args);
    page_row_end(page);
    html_finish(&class.text);
}

void page_table_end(struct page *page)
{
    page_html(page, "</tbody></table>");
}
