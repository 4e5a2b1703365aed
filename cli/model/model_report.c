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
#include "report/page/page.h"
#include "worker/versions/versions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 32, PAIR_BYTES = 64, SIGNATURES = 2 };

struct findings {
    struct model_version version;
    struct model_event evaluated; /* id 0: it never was */
    struct model_event decided;   /* the last move after that; id 0: none */
    json_t *report;               /* owned; NULL: it cannot be read */
};

/* ---- what is in a report ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* A number of an object; NAN: it has none. */
static double figure(const json_t *object, const char *name, double scale)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? scale * json_number_value(value) : (double)NAN;
}

/* A table in a page, behind its heading. */
static void open_table(struct page *page, const char *heading)
{
    page_heading(page, "%s", heading);
    page_html(page, "<div class=\"card scroll\">");
}

static void close_table(struct page *page)
{
    page_table_end(page);
    page_html(page, "</div>");
}

static void write_slices(struct page *page, const json_t *report)
{
    const json_t *slice;
    size_t i;
    open_table(page, "Agreement with the teacher");
    page_table(
        page, "",
        "  22 verdict|  8|  36 slice|  12 agree on|  7 agree|  9 at least|  7 band|  6 opt.|  "
        "9 t. wrong|  9 scenarios|  incumbent");
    json_array_foreach (json_object_get(report, "slices"), i, slice) {
        bool passed = strcmp(text_of(slice, "result"), "passed") == 0;
        bool decides = !json_is_false(json_object_get(slice, "decides")); /* once all did */
        page_row(page, "{%s}%s|%s|{wrap}%s|%s|%.1f%%|%.1f%%|%.1f%%|%.0f|%.0f|%.0f|%.1f%%",
                 passed    ? "good"
                 : decides ? "bad"
                           : "",
                 text_of(slice, "result"), decides ? "decides" : "", text_of(slice, "slice"),
                 text_of(slice, "property"), figure(slice, "agreement", 100.0),
                 figure(slice, "low", 100.0), figure(slice, "band", 100.0),
                 figure(slice, "optimistic", 1.0), figure(slice, "teacher_wrong", 1.0),
                 figure(slice, "scenarios", 1.0), figure(slice, "incumbent", 100.0));
    }
    close_table(page);
}

static const char *pair_text(const json_t *row, const char *name, char out[PAIR_BYTES])
{
    const json_t *pair = json_object_get(json_object_get(row, "measures"), name);
    double candidate = figure(pair, "candidate", 1.0);
    double incumbent = figure(pair, "incumbent", 1.0);
    snprintf(out, PAIR_BYTES,
             isnan(candidate)   ? "-"
             : isnan(incumbent) ? "%.3f"
                                : "%.3f/%.3f",
             candidate, incumbent);
    return out;
}

/* Measures of a slice (with the Frechet distance) or of a span of time. */
static void write_measures(struct page *page, const json_t *row, const char *name)
{
    char text[7][PAIR_BYTES];
    page_row(page, "{wrap}%s|%s|%s|%s|%s|%s|%s|%s", name, pair_text(row, "occupancy", text[0]),
             pair_text(row, "area", text[1]), pair_text(row, "permanence", text[2]),
             pair_text(row, "kinematics", text[3]), pair_text(row, "camera", text[4]),
             pair_text(row, "views", text[5]), pair_text(row, "frechet", text[6]));
}

static void write_conditioning(struct page *page, const json_t *conditioning)
{
    char text[LIMIT_TEXT_BYTES];
    const json_t *row;
    size_t i;
    snprintf(text, sizeof text,
             "Frozen seeds, %s: trusted for %g s by its drift, its file says %g s",
             text_of(conditioning, "conditioning"), figure(conditioning, "trusted_s", 1.0),
             figure(conditioning, "stated_s", 1.0));
    open_table(page, text);
    page_table(page, "",
               "  34 candidate/incumbent|  11 occupancy|  11 area|  11 permanence|  11 kinematics|"
               "  11 camera|  11 views|  frechet");
    json_array_foreach (json_object_get(conditioning, "slices"), i, row) {
        write_measures(page, row, text_of(row, "slice"));
    }
    json_array_foreach (json_object_get(conditioning, "spans"), i, row) {
        snprintf(text, sizeof text, "from %g s", figure(row, "from_s", 1.0));
        write_measures(page, row, text);
    }
    close_table(page);
}

static void write_frozen(struct page *page, const json_t *report)
{
    const json_t *conditionings = json_object_get(json_object_get(report, "frozen"), "degrees");
    const json_t *entry;
    size_t i;
    json_array_foreach (conditionings, i, entry) {
        write_conditioning(page, entry);
    }
    if (json_array_size(json_object_get(report, "misses")) > 0) {
        open_table(page, "Not passed on frozen seeds");
        page_table(page, "", "  14|  40|  ");
        json_array_foreach (json_object_get(report, "misses"), i, entry) {
            page_row(page, "{bad}%s|%s|%s", text_of(entry, "part"), text_of(entry, "name"),
                     text_of(entry, "reason"));
        }
        close_table(page);
    }
}

static void write_shadow(struct page *page, const json_t *report)
{
    const json_t *rows = json_object_get(report, "shadow");
    const json_t *row;
    size_t i;
    if (json_array_size(rows) == 0) {
        return;
    }
    open_table(page, "As a shadow, beside the answers that counted");
    page_table(page, "",
               "  36 slice|  28 beside|  7 agree|  9 at least|  6 pairs|  5 opt.|  10 no verdict|  "
               "flagged");
    json_array_foreach (rows, i, row) {
        page_row(page, "{wrap}%s|%.12s (%s)|%.1f%%|%.1f%%|%.0f|%.0f|%.0f|%.0f",
                 text_of(row, "slice"), text_of(row, "beside"), text_of(row, "beside_sampler"),
                 figure(row, "agreement", 100.0), figure(row, "low", 100.0),
                 figure(row, "pairs", 1.0), figure(row, "optimistic", 1.0),
                 figure(row, "incomplete", 1.0), figure(row, "flagged", 1.0));
    }
    close_table(page);
}

/* The audited jobs, of HTML alone: there may be thousands. */
static void write_jobs(struct page *page, const json_t *report)
{
    const json_t *jobs = json_object_get(report, "jobs");
    const json_t *job;
    size_t i;
    if (page->form != PAGE_HTML || json_array_size(jobs) == 0) {
        return;
    }
    html_format(page->html,
                "<h2>Audited jobs</h2><details><summary>%llu rollouts</summary><div class=\"card "
                "scroll\">",
                (unsigned long long)json_array_size(jobs));
    page_table(page, "", "job|scenario|seed|branch|outcome|of the teacher|verdict|of the teacher");
    json_array_foreach (jobs, i, job) {
        page_row(page, "%.0f|{wrap}%s|%.0f|%s|%.0f|%.0f|%s|%s", figure(job, "job", 1.0),
                 text_of(job, "scenario"), figure(job, "seed", 1.0), text_of(job, "branch"),
                 figure(job, "outcome", 1.0), figure(job, "teacher_outcome", 1.0),
                 text_of(job, "verdict"), text_of(job, "teacher_verdict"));
    }
    close_table(page);
    html_raw(page->html, "</details>\n");
}

static void write_decision(struct page *page, const struct findings *findings)
{
    const struct model_event *event = &findings->decided;
    char date[CLI_DATE_BYTES];
    if (event->id == 0) {
        page_row(page, "since then|the version is where it was: %s",
                 model_state_names[findings->version.state]);
    } else {
        page_row(page, "since then|%s -> %s%s by %s, %s, event %lld%s%s",
                 model_state_names[event->from_state], model_state_names[event->to_state],
                 event->forced ? ", FORCED," : "", event->actor, cli_date(event->at_s, date),
                 (long long)event->id, event->evidence[0] != '\0' ? ": " : "", event->evidence);
    }
}

/* Bands that let everything pass have to be seen by who signs. */
static void write_bands(struct page *page, const json_t *report)
{
    const json_t *frozen = json_object_get(report, "frozen");
    const json_t *bands = json_object_get(frozen, "bands");
    char text[1024] = "";
    size_t used = 0;
    const char *name;
    json_t *value;
    page_row(page, "agreement|at least %.1f%%, where safety-critical %.1f%%",
             100.0 * json_number_value(json_object_get(report, "band")),
             100.0 * json_number_value(json_object_get(report, "safety_critical_band")));
    json_object_foreach ((json_t *)(uintptr_t)bands, name, value) {
        if (used < sizeof text) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.32s %g",
                                     used > 0 ? ", " : "", name, json_number_value(value));
        }
    }
    if (bands != NULL) {
        page_row(page, "frozen seeds|%s", text);
        page_row(page, "driven over|%s, sha256 %s, by %s", text_of(frozen, "suite"),
                 text_of(frozen, "suite_hash"), text_of(frozen, "planner"));
    }
}

/* Whoever brought the event named the report: it may be another version's. */
static void write_mismatch(struct page *page, const struct findings *findings)
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
        page_row(page, "NOT ITS REPORT|it is of \"%s\", %s, sha256 %s", text_of(report, "model"),
                 text_of(report, "sampler"), text_of(report, "hash"));
    }
    if (!json_is_boolean(passed) || json_is_true(passed) != findings->evaluated.passed) {
        page_row(page, "NOT ITS RESULT|the report says %s",
                 json_is_true(passed) ? "passed" : "not passed");
    }
}

static long long number_of(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

/* Ground of the verdicts, and what they do not see. Reports of before do not say the latter. */
static void write_ground(struct page *page, const json_t *report)
{
    const json_t *judged = json_object_get(report, "jobs_judged");
    const json_t *version;
    char both[64] = "";
    size_t i;
    if (json_is_integer(judged)) {
        snprintf(both, sizeof both, ", %lld with a verdict on both sides",
                 (long long)json_integer_value(judged));
    }
    page_row(page, "rests on|%llu audited rollouts%s; %lld frozen drives",
             (unsigned long long)json_array_size(json_object_get(report, "jobs")), both,
             number_of(json_object_get(report, "frozen"), "drives"));
    json_array_foreach (json_object_get(report, "flags"), i, version) {
        page_row(page, "flagged|%lld of %lld main lines of %s, which are in no agreement",
                 number_of(version, "flagged"), number_of(version, "main_lines"),
                 text_of(version, "version"));
    }
}

static void write_facts(struct page *page, const struct findings *findings)
{
    const struct model_version *version = &findings->version;
    const struct model_event *event = &findings->evaluated;
    const json_t *report = findings->report;
    char at[CLI_DATE_BYTES];
    char until[CLI_DATE_BYTES];
    page_html(page, "<div class=\"card scroll\">");
    page_table(page, "", "  14| ");
    page_row(page, "result|%s: %s", event->passed ? "passed" : "NOT PASSED", event->evidence);
    write_mismatch(page, findings);
    page_row(page, "version|%s, %s, sha256 %s", version->name, version->sampler, version->hash);
    page_row(page, "made from|%s; data: %s", version->parents[0] != '\0' ? version->parents : "-",
             version->data_note[0] != '\0' ? version->data_note : "-");
    if (event->against[0] != '\0') {
        page_row(page, "against|%s, %s, sha256 %s", event->against,
                 text_of(report, "against_sampler"), text_of(report, "against_hash"));
    } else {
        page_row(page, "against|no version");
    }
    page_row(page, "policy|%s%s",
             text_of(report, "policy_hash")[0] != '\0' ? "sha256 " : "the built-in bands",
             text_of(report, "policy_hash"));
    write_bands(page, report);
    page_row(page, "evaluated|%s by the store's clock, after outcome %lld, by %s",
             cli_date(event->at_s, at), (long long)event->after_outcome, event->actor);
    if (event->passed) { /* one that did not pass counts for nothing */
        bool past = event->expires_s <= clock_wall_ns(clock_system()) / NS_PER_S;
        page_row(page, "counts until|%s%s", cli_date(event->expires_s, until),
                 past ? ", which is past" : "");
    }
    write_ground(page, report);
    page_row(page, "this report|event %lld, sha256 %s", (long long)event->id, event->report_hash);
    write_decision(page, findings);
    close_table(page);
}

/* Room for names: what is signed is the report of that hash. */
static void write_signatures(struct page *page, const struct findings *findings)
{
    page_heading(page, "Signed");
    if (page->form == PAGE_HTML) {
        html_format(page->html,
                    "<p>I have read this report (sha256 %s) and agree with what was decided on "
                    "it.</p>\n",
                    findings->evaluated.report_hash);
    }
    for (int i = 0; i < SIGNATURES; i++) {
        if (page->form == PAGE_HTML) {
            html_raw(page->html,
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

static void write_all(struct page *page, const struct findings *findings)
{
    write_facts(page, findings);
    if (findings->report == NULL) {
        page_heading(page, "The store has no report that can be read beside the event");
    } else {
        write_slices(page, findings->report);
        write_shadow(page, findings->report);
        write_frozen(page, findings->report);
        write_jobs(page, findings->report);
    }
    write_signatures(page, findings);
}

static enum status write_page(const struct findings *findings, const char *path,
                              struct error *error)
{
    struct html html = {0};
    struct page page = {.form = PAGE_HTML, .html = &html};
    char title[LIMIT_ID_BYTES + 32];
    snprintf(title, sizeof title, "Evaluation of %s", findings->version.name);
    html_begin(&html, title);
    html_format(&html,
                "<header><h1>%s</h1><p class=\"soft\">Report of the gate before a model "
                "answers</p></header><main>\n",
                title);
    write_all(&page, findings);
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
    struct page terminal = {.form = PAGE_TERMINAL, .out = stdout};
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
