/*
 * The report of an evaluation. See model_report.h.
 *
 * The store believed the client that brought the report, and it may be of any version of this
 * program: members are looked for, never relied on. Terminal and page are written by the same
 * calls, so that they cannot disagree.
 */
#include "cli/model/model_report.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/model/model_store.h"
#include "report/report_html.h"
#include "worker/versions/versions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 8, CELL_BYTES = 256, WIDE_CELL = 48, SIGNATURES = 2 };

struct sheet {
    struct html *html; /* NULL: text on stdout */
};

struct findings {
    struct model_version version;
    struct model_event evaluated; /* id 0: it never was */
    struct model_event decided;   /* the last move after that; id 0: none */
    json_t *report;               /* owned; NULL: it cannot be read */
};

/* ---- a sheet: terminal or page ---- */

static void sheet_heading(const struct sheet *sheet, const char *text)
{
    if (sheet->html != NULL) {
        html_format(sheet->html, "<h2>%s</h2>\n", text);
    } else {
        text_print(stdout, "\n%s\n", text);
    }
}

static void sheet_fact(const struct sheet *sheet, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void sheet_fact(const struct sheet *sheet, const char *name, const char *format, ...)
{
    char value[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (sheet->html != NULL) {
        html_format(sheet->html, "<tr><th>%s</th><td class=\"wrap\">%s</td></tr>\n", name, value);
    } else {
        text_print(stdout, "  %-14s %s\n", name, value);
    }
}

static void sheet_begin(const struct sheet *sheet)
{
    if (sheet->html != NULL) {
        html_raw(sheet->html, "<div class=\"card scroll\"><table>\n");
    }
}

static void sheet_end(const struct sheet *sheet)
{
    if (sheet->html != NULL) {
        html_raw(sheet->html, "</table></div>\n");
    }
}

/* One row; of a page the first cell of a verdict is coloured. */
static void sheet_row(const struct sheet *sheet, bool head, char cells[CELLS_MAX][CELL_BYTES],
                      const int *widths, uint32_t count)
{
    const char *tag = head ? "th" : "td";
    if (sheet->html != NULL) {
        html_raw(sheet->html, "<tr>");
        for (uint32_t i = 0; i < count; i++) {
            const char *class = strlen(cells[i]) > WIDE_CELL               ? " class=\"wrap\""
                                : !head && strcmp(cells[i], "passed") == 0 ? " class=\"good\""
                                : !head && i == 0 && widths[0] > 0         ? " class=\"bad\""
                                                                           : "";
            html_raw(sheet->html, "<");
            html_raw(sheet->html, tag);
            html_raw(sheet->html, class);
            html_format(sheet->html, ">%s</%s>", cells[i], tag);
        }
        html_raw(sheet->html, "</tr>\n");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        int width = widths[i] < 0 ? -widths[i] : widths[i];
        text_print(stdout, "  %-*s", i + 1 < count ? width : 0, cells[i]);
    }
    text_print(stdout, "\n");
}

/* ---- what is in a report ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static void put_number(char cell[CELL_BYTES], const json_t *object, const char *name, double scale,
                       const char *unit)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_number(value)) {
        snprintf(cell, CELL_BYTES, "%.*f%s", json_is_integer(value) ? 0 : 1,
                 scale * json_number_value(value), unit);
    } else {
        snprintf(cell, CELL_BYTES, "-");
    }
}

static void write_slices(const struct sheet *sheet, const json_t *report)
{
    static const int widths[] = {22, 36, 7, 9, 7, 6, 9, 10};
    static char heads[CELLS_MAX][CELL_BYTES] = {"verdict", "slice", "agree",     "at least",
                                                "band",    "opt.",  "scenarios", "incumbent"};
    const json_t *slices = json_object_get(report, "slices");
    const json_t *slice;
    size_t i;
    sheet_heading(sheet, "Agreement with the teacher");
    sheet_begin(sheet);
    sheet_row(sheet, true, heads, widths, 8);
    json_array_foreach (slices, i, slice) {
        char cells[CELLS_MAX][CELL_BYTES] = {""};
        snprintf(cells[0], CELL_BYTES, "%s", text_of(slice, "result"));
        snprintf(cells[1], CELL_BYTES, "%s", text_of(slice, "slice"));
        put_number(cells[2], slice, "agreement", 100.0, "%");
        put_number(cells[3], slice, "low", 100.0, "%");
        put_number(cells[4], slice, "band", 100.0, "%");
        put_number(cells[5], slice, "optimistic", 1.0, "");
        put_number(cells[6], slice, "scenarios", 1.0, "");
        put_number(cells[7], slice, "incumbent", 100.0, "%");
        sheet_row(sheet, false, cells, widths, 8);
    }
    sheet_end(sheet);
}

static void put_pair(char cell[CELL_BYTES], const json_t *measures, const char *name)
{
    const json_t *pair = json_object_get(measures, name);
    const json_t *candidate = json_object_get(pair, "candidate");
    const json_t *incumbent = json_object_get(pair, "incumbent");
    snprintf(cell, CELL_BYTES, "-");
    if (json_is_number(candidate) && json_is_number(incumbent)) {
        snprintf(cell, CELL_BYTES, "%.3f/%.3f", json_number_value(candidate),
                 json_number_value(incumbent));
    } else if (json_is_number(candidate)) {
        snprintf(cell, CELL_BYTES, "%.3f", json_number_value(candidate));
    }
}

/* A row of measures: of a slice (with the Frechet distance) or of a span of time. */
static void write_measures(const struct sheet *sheet, const json_t *row, const char *name)
{
    static const int widths[] = {-34, 11, 11, 11, 11, 11, 11, 11};
    static const char *const measures[] = {"occupancy", "area",  "permanence", "kinematics",
                                           "camera",    "views", "frechet"};
    char cells[CELLS_MAX][CELL_BYTES];
    snprintf(cells[0], CELL_BYTES, "%s", name);
    for (int i = 0; i < 7; i++) {
        if (row == NULL) {
            snprintf(cells[1 + i], CELL_BYTES, "%s", measures[i]);
        } else {
            put_pair(cells[1 + i], json_object_get(row, "measures"), measures[i]);
        }
    }
    sheet_row(sheet, row == NULL, cells, widths, 8);
}

static void write_conditioning(const struct sheet *sheet, const json_t *conditioning)
{
    char heading[CELL_BYTES];
    const json_t *row;
    size_t i;
    snprintf(heading, sizeof heading,
             "Frozen seeds, %s: trusted for %g s by its drift, its file says %g s",
             text_of(conditioning, "conditioning"),
             json_number_value(json_object_get(conditioning, "trusted_s")),
             json_number_value(json_object_get(conditioning, "stated_s")));
    sheet_heading(sheet, heading);
    sheet_begin(sheet);
    write_measures(sheet, NULL, "candidate/incumbent");
    json_array_foreach (json_object_get(conditioning, "slices"), i, row) {
        write_measures(sheet, row, text_of(row, "slice"));
    }
    json_array_foreach (json_object_get(conditioning, "spans"), i, row) {
        snprintf(heading, sizeof heading, "from %g s",
                 json_number_value(json_object_get(row, "from_s")));
        write_measures(sheet, row, heading);
    }
    sheet_end(sheet);
}

static void write_frozen(const struct sheet *sheet, const json_t *report)
{
    static const int widths[] = {14, 40, 0};
    const json_t *conditionings = json_object_get(json_object_get(report, "frozen"), "degrees");
    const json_t *entry;
    size_t i;
    json_array_foreach (conditionings, i, entry) {
        write_conditioning(sheet, entry);
    }
    if (json_array_size(json_object_get(report, "misses")) > 0) {
        sheet_heading(sheet, "Not passed on frozen seeds");
        sheet_begin(sheet);
        json_array_foreach (json_object_get(report, "misses"), i, entry) {
            char cells[CELLS_MAX][CELL_BYTES] = {""};
            snprintf(cells[0], CELL_BYTES, "%s", text_of(entry, "part"));
            snprintf(cells[1], CELL_BYTES, "%s", text_of(entry, "name"));
            snprintf(cells[2], CELL_BYTES, "%s", text_of(entry, "reason"));
            sheet_row(sheet, false, cells, widths, 3);
        }
        sheet_end(sheet);
    }
}

static void write_shadow(const struct sheet *sheet, const json_t *report)
{
    static const int widths[] = {-36, 28, 7, 9, 6, 5, 10, 7};
    static char heads[CELLS_MAX][CELL_BYTES] = {"slice", "beside", "agree",      "at least",
                                                "pairs", "opt.",   "no verdict", "flagged"};
    const json_t *rows = json_object_get(report, "shadow");
    const json_t *row;
    size_t i;
    if (json_array_size(rows) == 0) {
        return;
    }
    sheet_heading(sheet, "As a shadow, beside the answers that counted");
    sheet_begin(sheet);
    sheet_row(sheet, true, heads, widths, 8);
    json_array_foreach (rows, i, row) {
        char cells[CELLS_MAX][CELL_BYTES] = {""};
        snprintf(cells[0], CELL_BYTES, "%s", text_of(row, "slice"));
        snprintf(cells[1], CELL_BYTES, "%.12s (%s)", text_of(row, "beside"),
                 text_of(row, "beside_sampler"));
        put_number(cells[2], row, "agreement", 100.0, "%");
        put_number(cells[3], row, "low", 100.0, "%");
        put_number(cells[4], row, "pairs", 1.0, "");
        put_number(cells[5], row, "optimistic", 1.0, "");
        put_number(cells[6], row, "incomplete", 1.0, "");
        put_number(cells[7], row, "flagged", 1.0, "");
        sheet_row(sheet, false, cells, widths, 8);
    }
    sheet_end(sheet);
}

/* The audited jobs, of a page alone: there may be thousands. */
static void write_jobs(const struct sheet *sheet, const json_t *report)
{
    static const int widths[] = {0};
    static char heads[CELLS_MAX][CELL_BYTES] = {"job",     "scenario",      "seed",
                                                "branch",  "outcome",       "of the teacher",
                                                "verdict", "of the teacher"};
    const json_t *jobs = json_object_get(report, "jobs");
    const json_t *job;
    size_t i;
    if (sheet->html == NULL || json_array_size(jobs) == 0) {
        return;
    }
    html_format(sheet->html, "<h2>Audited jobs</h2><details><summary>%llu rollouts</summary>",
                (unsigned long long)json_array_size(jobs));
    sheet_begin(sheet);
    sheet_row(sheet, true, heads, widths, 8);
    json_array_foreach (jobs, i, job) {
        char cells[CELLS_MAX][CELL_BYTES] = {""};
        put_number(cells[0], job, "job", 1.0, "");
        snprintf(cells[1], CELL_BYTES, "%s", text_of(job, "scenario"));
        put_number(cells[2], job, "seed", 1.0, "");
        snprintf(cells[3], CELL_BYTES, "%s", text_of(job, "branch"));
        put_number(cells[4], job, "outcome", 1.0, "");
        put_number(cells[5], job, "teacher_outcome", 1.0, "");
        snprintf(cells[6], CELL_BYTES, "%s", text_of(job, "verdict"));
        snprintf(cells[7], CELL_BYTES, "%s", text_of(job, "teacher_verdict"));
        sheet_row(sheet, false, cells, widths, 8);
    }
    sheet_end(sheet);
    html_raw(sheet->html, "</details>\n");
}

static void write_decision(const struct sheet *sheet, const struct findings *findings)
{
    const struct model_event *event = &findings->decided;
    char date[CLI_DATE_BYTES];
    if (event->id == 0) {
        sheet_fact(sheet, "since then", "the version is where it was: %s",
                   model_state_names[findings->version.state]);
    } else {
        sheet_fact(sheet, "since then", "%s -> %s%s by %s, %s, event %lld%s%s",
                   model_state_names[event->from_state], model_state_names[event->to_state],
                   event->forced ? ", FORCED," : "", event->actor, cli_date(event->at_s, date),
                   (long long)event->id, event->evidence[0] != '\0' ? ": " : "", event->evidence);
    }
}

/* Bands that let everything pass have to be seen by who signs. */
static void write_bands(const struct sheet *sheet, const json_t *report)
{
    const json_t *frozen = json_object_get(report, "frozen");
    const json_t *bands = json_object_get(frozen, "bands");
    char text[1024] = "";
    size_t used = 0;
    const char *name;
    json_t *value;
    sheet_fact(sheet, "agreement", "at least %.1f%%, where safety-critical %.1f%%",
               100.0 * json_number_value(json_object_get(report, "band")),
               100.0 * json_number_value(json_object_get(report, "safety_critical_band")));
    json_object_foreach ((json_t *)(uintptr_t)bands, name, value) {
        if (used < sizeof text) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.32s %g",
                                     used > 0 ? ", " : "", name, json_number_value(value));
        }
    }
    if (bands != NULL) {
        sheet_fact(sheet, "frozen seeds", "%s", text);
        sheet_fact(sheet, "driven over", "%s, sha256 %s, by %s", text_of(frozen, "suite"),
                   text_of(frozen, "suite_hash"), text_of(frozen, "planner"));
    }
}

/* Whoever brought the event named the report: it may be another version's. */
static void write_mismatch(const struct sheet *sheet, const struct findings *findings)
{
    const struct model_version *version = &findings->version;
    const json_t *report = findings->report;
    const json_t *passed = json_object_get(report, "passed");
    if (report == NULL) {
        return;
    }
    if (strcmp(text_of(report, "model"), version->name) != 0 ||
        strcmp(text_of(report, "hash"), version->hash) != 0 ||
        strcmp(text_of(report, "sampler"), version->sampler) != 0) {
        sheet_fact(sheet, "NOT ITS REPORT", "it is of \"%s\", %s, sha256 %s",
                   text_of(report, "model"), text_of(report, "sampler"), text_of(report, "hash"));
    }
    if (!json_is_boolean(passed) || json_is_true(passed) != findings->evaluated.passed) {
        sheet_fact(sheet, "NOT ITS RESULT", "the report says %s",
                   json_is_true(passed) ? "passed" : "not passed");
    }
}

static long long number_of(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

/* Ground of the verdicts, and what they do not see. Reports of before do not say the latter. */
static void write_ground(const struct sheet *sheet, const json_t *report)
{
    const json_t *judged = json_object_get(report, "jobs_judged");
    const json_t *version;
    char both[64] = "";
    size_t i;
    if (json_is_integer(judged)) {
        snprintf(both, sizeof both, ", %lld with a verdict on both sides",
                 (long long)json_integer_value(judged));
    }
    sheet_fact(sheet, "rests on", "%llu audited rollouts%s; %lld frozen drives",
               (unsigned long long)json_array_size(json_object_get(report, "jobs")), both,
               number_of(json_object_get(report, "frozen"), "drives"));
    json_array_foreach (json_object_get(report, "flags"), i, version) {
        sheet_fact(sheet, "flagged", "%lld of %lld main lines of %s, which are in no agreement",
                   number_of(version, "flagged"), number_of(version, "main_lines"),
                   text_of(version, "version"));
    }
}

static void write_facts(const struct sheet *sheet, const struct findings *findings)
{
    const struct model_version *version = &findings->version;
    const struct model_event *event = &findings->evaluated;
    const json_t *report = findings->report;
    char at[CLI_DATE_BYTES];
    char until[CLI_DATE_BYTES];
    sheet_begin(sheet);
    sheet_fact(sheet, "result", "%s: %s", event->passed ? "passed" : "NOT PASSED", event->evidence);
    write_mismatch(sheet, findings);
    sheet_fact(sheet, "version", "%s, %s, sha256 %s", version->name, version->sampler,
               version->hash);
    sheet_fact(sheet, "made from", "%s; data: %s",
               version->parents[0] != '\0' ? version->parents : "-",
               version->data_note[0] != '\0' ? version->data_note : "-");
    if (event->against[0] != '\0') {
        sheet_fact(sheet, "against", "%s, %s, sha256 %s", event->against,
                   text_of(report, "against_sampler"), text_of(report, "against_hash"));
    } else {
        sheet_fact(sheet, "against", "no version");
    }
    sheet_fact(sheet, "policy", "%s%s",
               text_of(report, "policy_hash")[0] != '\0' ? "sha256 " : "the built-in bands",
               text_of(report, "policy_hash"));
    write_bands(sheet, report);
    sheet_fact(sheet, "evaluated", "%s by the store's clock, after outcome %lld, by %s",
               cli_date(event->at_s, at), (long long)event->after_outcome, event->actor);
    if (event->passed) { /* one that did not pass counts for nothing */
        bool past = event->expires_s <= clock_wall_ns(clock_system()) / NS_PER_S;
        sheet_fact(sheet, "counts until", "%s%s", cli_date(event->expires_s, until),
                   past ? ", which is past" : "");
    }
    write_ground(sheet, report);
    sheet_fact(sheet, "this report", "event %lld, sha256 %s", (long long)event->id,
               event->report_hash);
    write_decision(sheet, findings);
    sheet_end(sheet);
}

/* Room for names: what is signed is the report of that hash. */
static void write_signatures(const struct sheet *sheet, const struct findings *findings)
{
    sheet_heading(sheet, "Signed");
    if (sheet->html != NULL) {
        html_format(sheet->html,
                    "<p>I have read this report (sha256 %s) and agree with what was decided on "
                    "it.</p>\n",
                    findings->evaluated.report_hash);
    }
    for (int i = 0; i < SIGNATURES; i++) {
        if (sheet->html != NULL) {
            html_raw(sheet->html,
                     "<div class=\"tiles\" style=\"grid-template-columns: 2fr 1fr 2fr\">"
                     "<div class=\"tile\"><span>name</span><b>&nbsp;</b></div>"
                     "<div class=\"tile\"><span>date</span><b>&nbsp;</b></div>"
                     "<div class=\"tile\"><span>signature</span><b>&nbsp;</b></div></div>\n");
        } else {
            text_print(stdout, "  name ______________________  date ____________  signature "
                               "______________________\n");
        }
    }
}

static void write_all(const struct sheet *sheet, const struct findings *findings)
{
    write_facts(sheet, findings);
    if (findings->report == NULL) {
        sheet_heading(sheet, "The store has no report that can be read beside the event");
    } else {
        write_slices(sheet, findings->report);
        write_shadow(sheet, findings->report);
        write_frozen(sheet, findings->report);
        write_jobs(sheet, findings->report);
    }
    write_signatures(sheet, findings);
}

static enum status write_page(const struct findings *findings, const char *path,
                              struct error *error)
{
    struct html html = {0};
    const struct sheet sheet = {&html};
    char title[LIMIT_ID_BYTES + 32];
    snprintf(title, sizeof title, "Evaluation of %s", findings->version.name);
    html_begin(&html, title);
    html_format(&html,
                "<header><h1>%s</h1><p class=\"soft\">Report of the gate before a model "
                "answers</p></header><main>\n",
                title);
    write_all(&sheet, findings);
    html_raw(&html, "</main>\n");
    html_end(&html);
    enum status status =
        html.failed ? error_set(error, STATUS_NO_MEMORY, "report: out of memory") : STATUS_OK;
    THEN(status, file_replace(path, html.text, html.bytes, 0644, error));
    html_finish(&html);
    return status;
}

static enum status write_json(const struct findings *findings, struct error *error)
{
    json_t *decided = findings->decided.id != 0
                          ? json_record_encode(&model_event_fields, &findings->decided, NULL)
                          : json_null();
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:O?}", "version",
                  json_record_encode(&model_version_fields, &findings->version, NULL), "evaluated",
                  json_record_encode(&model_event_fields, &findings->evaluated, NULL), "decided",
                  decided, "report", findings->report);
    return cli_write_json(object, error);
}

static void find_events(void *context, const struct model_event *event)
{
    struct findings *findings = context;
    if (event->kind == MODEL_EVALUATED) {
        findings->evaluated = *event;
        findings->decided = (struct model_event){.id = 0};
    } else if (event->kind == MODEL_MOVED && findings->evaluated.id != 0) {
        findings->decided = *event;
    }
}

enum status model_report(const char *name, const char *html, bool json, struct store *store,
                         struct error *error)
{
    struct findings findings = {.report = NULL};
    const struct sheet terminal = {NULL};
    void *data = NULL;
    size_t bytes = 0;
    TRY(versions_named(store, name, &findings.version, error));
    TRY(model_store_each_event(store, name, find_events, &findings, error));
    if (findings.evaluated.id == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "model \"%s\" was never evaluated: swerve model evaluate", name);
    }
    if (findings.evaluated.report_hash[0] != '\0') {
        TRY(store->ops->artifact_get(store, findings.evaluated.report_hash, &data, &bytes, error));
        findings.report = json_loadb(data, bytes, 0, NULL);
        free(data);
    }
    enum status status = STATUS_OK;
    if (html != NULL) {
        status = write_page(&findings, html, error);
    }
    if (json) {
        THEN(status, write_json(&findings, error));
    } else if (html == NULL) {
        text_print(stdout, "Evaluation of %s\n", findings.version.name);
        write_all(&terminal, &findings);
    }
    json_decref(findings.report);
    return status;
}
