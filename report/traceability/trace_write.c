/*
 * The matrix for people (terminal, Markdown), spreadsheets (CSV) and programs (JSON).
 */
#include "report/traceability/traceability.h"
#include "schemas/scenario_json.h"

#include "base/text.h"
#include "report/csv_cell.h"
#include "report/page/page.h"

#include <string.h>

static const char *const kind_texts[TRACE_KIND_COUNT] = {"hazard", "triggering condition",
                                                         "requirement"};

static const struct trace_item *item_of(const struct trace_matrix *matrix,
                                        const struct trace_row *row, int kind)
{
    return row->item[kind] == UINT32_MAX ? NULL : &matrix->items->items[kind][row->item[kind]];
}

static const char *verdict_of(const struct trace_matrix *matrix, const struct trace_result *result)
{
    if (matrix->summary == NULL) {
        return "not asked";
    }
    if (result->driven == 0) {
        return result->concrete > 0 ? "no result" : "no scenario";
    }
    if (result->failed > 0) {
        return "fail";
    }
    return result->passed < result->concrete ? "pass in part" : "pass";
}

/* The planners of several whose results these are, as a sentence; else nothing. */
static void put_planners(const struct trace_matrix *matrix, FILE *out,
                         void (*put)(FILE *, const char *, const char *))
{
    const struct summary_row *total = matrix->summary != NULL ? &matrix->summary->total : NULL;
    if (total == NULL || !total->planners) {
        return;
    }
    for (uint32_t i = 0; i < total->part_count; i++) {
        const char *planner = total->parts[i].planner;
        if (i == 0 || strcmp(total->parts[i - 1].planner, planner) != 0) {
            put(out, i == 0 ? "Passed means with each of " : ", ", planner);
        }
    }
    fputs(".\n", out);
}

static void put_text(FILE *out, const char *before, const char *planner)
{
    text_print(out, "%s%s", before, planner);
}

static void put_markdown(FILE *out, const char *before, const char *planner)
{
    markdown_print(out, "%s%s", before, planner);
}

static uint32_t uncovered(const struct trace_matrix *matrix, int kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < matrix->items->count[kind]; i++) {
        count += matrix->totals[kind][i].concrete == 0;
    }
    return count;
}

/* ---- terminal ---- */

static void print_kind(const struct trace_matrix *matrix, int kind, FILE *out)
{
    text_print(out, "%ss: %u, without a scenario %u\n", kind_texts[kind],
               matrix->items->count[kind], uncovered(matrix, kind));
    for (uint32_t i = 0; i < matrix->items->count[kind]; i++) {
        const struct trace_item *item = &matrix->items->items[kind][i];
        const struct trace_result *at = &matrix->totals[kind][i];
        text_print(out, "  %-16s %4u scenarios", item->id, at->concrete);
        if (matrix->summary != NULL) {
            text_print(out, ", %4u driven, %4u pass", at->driven, at->passed);
        }
        text_print(out, "  %-12s %s\n", verdict_of(matrix, at), item->text);
    }
}

void trace_matrix_print(const struct trace_matrix *matrix, FILE *out)
{
    text_print(out, "%s against %s: %u paths\n", matrix->suite->id, matrix->items->title,
               matrix->row_count);
    put_planners(matrix, out, put_text);
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        print_kind(matrix, k, out);
    }
    text_print(out, "%u of %u concrete scenarios name no hazard, condition or requirement\n",
               matrix->unlinked, matrix->suite->entry_count);
}

/* ---- CSV ---- */

static bool put_item(const struct trace_item *item, FILE *out)
{
    bool put = csv_cell_put(item != NULL ? item->id : "", out);
    fputc(',', out);
    put = csv_cell_put(item != NULL ? item->text : "", out) && put;
    fputc(',', out);
    return put;
}

/* An item that no scenario has: a row with nothing behind it. */
static bool put_gap(const struct trace_matrix *matrix, int kind, uint32_t index, FILE *out)
{
    bool put = true;
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        put = put_item(k == kind ? &matrix->items->items[kind][index] : NULL, out) && put;
    }
    fputs(",0,0,0,no scenario,\n", out);
    return put;
}

bool trace_matrix_csv(const struct trace_matrix *matrix, FILE *out)
{
    char name[LIMIT_ID_BYTES];
    bool put = true;
    fputs("hazard,hazard_text,triggering_condition,triggering_condition_text,requirement,"
          "requirement_text,scenario,concrete,driven,passed,verdict,failed_outcome\n",
          out);
    for (uint32_t r = 0; r < matrix->row_count; r++) {
        const struct trace_row *row = &matrix->rows[r];
        for (int k = 0; k < TRACE_KIND_COUNT; k++) {
            put = put_item(item_of(matrix, row, k), out) && put;
        }
        put = csv_cell_put(trace_row_scenario(matrix, row, name), out) && put;
        fprintf(out, ",%u,%u,%u,%s,", row->result.concrete, row->result.driven, row->result.passed,
                verdict_of(matrix, &row->result));
        if (row->result.failure > 0) {
            fprintf(out, "%lld", (long long)row->result.failure);
        }
        fputs("\n", out);
    }
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        for (uint32_t i = 0; i < matrix->items->count[k]; i++) {
            if (matrix->totals[k][i].concrete == 0) {
                put = put_gap(matrix, k, i, out) && put;
            }
        }
    }
    return put;
}

/* ---- Markdown ---- */

static void put_kind(const struct trace_matrix *matrix, int kind, const char *level, FILE *out)
{
    struct page page = {.form = PAGE_MARKDOWN, .out = out};
    fprintf(out, "\n%s %c%ss\n\n", level, kind_texts[kind][0] - 'a' + 'A', kind_texts[kind] + 1);
    page_table(&page, "", "id|text|source|scenarios|driven|pass|");
    for (uint32_t i = 0; i < matrix->items->count[kind]; i++) {
        const struct trace_item *item = &matrix->items->items[kind][i];
        const struct trace_result *at = &matrix->totals[kind][i];
        page_row(&page, "%s|%s|%s|%u|%u|%u|%s", item->id, item->text, item->source, at->concrete,
                 at->driven, at->passed, verdict_of(matrix, at));
    }
}

static void put_register(const struct trace_matrix *matrix, FILE *out)
{
    markdown_print(out,
                   "\n\nRegister: %s. %u of %u concrete scenarios name nothing of it. \"No "
                   "scenario\" marks what is not covered.\n",
                   matrix->items->title, matrix->unlinked, matrix->suite->entry_count);
    put_planners(matrix, out, put_markdown);
}

void trace_matrix_chapter(const struct trace_matrix *matrix, FILE *out)
{
    fputs("\n## Traceability", out);
    put_register(matrix, out);
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        put_kind(matrix, k, "###", out);
    }
}

void trace_matrix_markdown(const struct trace_matrix *matrix, FILE *out)
{
    struct page page = {.form = PAGE_MARKDOWN, .out = out};
    char name[LIMIT_ID_BYTES];
    char failure[LIMIT_SPEC_BYTES + 32];
    markdown_print(out, "# Traceability: %s", matrix->suite->title);
    put_register(matrix, out);
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        put_kind(matrix, k, "##", out);
    }
    page_heading(&page, "Matrix");
    page_table(&page, "",
               "hazard|triggering condition|requirement|scenario|concrete|driven|pass||fails in");
    for (uint32_t r = 0; r < matrix->row_count; r++) {
        const struct trace_row *row = &matrix->rows[r];
        const char *id[TRACE_KIND_COUNT];
        for (int k = 0; k < TRACE_KIND_COUNT; k++) {
            const struct trace_item *item = item_of(matrix, row, k);
            id[k] = item != NULL ? item->id : "-";
        }
        bool named = matrix->summary != NULL && matrix->summary->total.planners;
        snprintf(failure, sizeof failure, "%lld%s%s", (long long)row->result.failure,
                 named && row->result.failure > 0 ? " " : "",
                 named && row->result.failure > 0 ? row->result.failure_planner : "");
        page_row(&page, "%s|%s|%s|%s|%u|%u|%u|%s|%s", id[TRACE_HAZARD], id[TRACE_HAZARD + 1],
                 id[TRACE_HAZARD + 2], trace_row_scenario(matrix, row, name), row->result.concrete,
                 row->result.driven, row->result.passed, verdict_of(matrix, &row->result),
                 row->result.failure > 0 ? failure : "");
    }
}

/* ---- JSON ---- */

static json_t *result_json(const struct trace_matrix *matrix, const struct trace_result *result)
{
    json_t *json = json_pack("{s:i, s:i, s:i, s:s}", "concrete", (int)result->concrete, "driven",
                             (int)result->driven, "passed", (int)result->passed, "verdict",
                             verdict_of(matrix, result));
    if (json != NULL && result->failure > 0) {
        json_object_set_new(json, "failed_outcome", json_integer(result->failure));
    }
    return json;
}

static json_t *item_json(const struct trace_matrix *matrix, int kind, uint32_t index)
{
    const struct trace_item *item = &matrix->items->items[kind][index];
    json_t *json = result_json(matrix, &matrix->totals[kind][index]);
    json_object_set_new(json, "id", json_string(item->id));
    json_object_set_new(json, "text", json_string(item->text));
    if (item->source[0] != '\0') {
        json_object_set_new(json, "source", json_string(item->source));
    }
    if (item->hazard_count > 0) {
        json_t *hazards = json_array();
        for (uint32_t i = 0; i < item->hazard_count; i++) {
            const struct trace_item *hazard = &matrix->items->items[TRACE_HAZARD][item->hazards[i]];
            json_array_append_new(hazards, json_string(hazard->id));
        }
        json_object_set_new(json, "hazards", hazards);
    }
    return json;
}

json_t *trace_matrix_json(const struct trace_matrix *matrix)
{
    static const char *const singular[TRACE_KIND_COUNT] = {"hazard", "triggering_condition",
                                                           "requirement"};
    char name[LIMIT_ID_BYTES];
    json_t *json = json_pack("{s:s, s:s, s:i, s:i}", "suite", matrix->suite->id, "register",
                             matrix->items->title, "concrete", (int)matrix->suite->entry_count,
                             "unlinked", (int)matrix->unlinked);
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < matrix->items->count[k]; i++) {
            json_array_append_new(list, item_json(matrix, k, i));
        }
        json_object_set_new(json, trace_kind_names[k], list);
    }
    json_t *rows = json_array();
    for (uint32_t r = 0; r < matrix->row_count; r++) {
        const struct trace_row *row = &matrix->rows[r];
        json_t *at = result_json(matrix, &row->result);
        for (int k = 0; k < TRACE_KIND_COUNT; k++) {
            const struct trace_item *item = item_of(matrix, row, k);
            json_object_set_new(at, singular[k],
                                item != NULL ? json_string(item->id) : json_null());
        }
        json_object_set_new(at, "scenario", json_string(trace_row_scenario(matrix, row, name)));
        json_array_append_new(rows, at);
    }
    json_object_set_new(json, "matrix", rows);
    return json;
}
