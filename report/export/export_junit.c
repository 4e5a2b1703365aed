/*
 * JUnit XML, in the form that CI systems read (testsuites, testsuite, testcase with failure, error
 * or skipped). A case is a main line; branches are what-ifs, and audit jobs second opinions.
 */
#include "report/export/export.h"

#include "base/text.h"
#include "base/units.h"

#include <string.h>

struct junit {
    const struct export_request *request;
    uint64_t cases[VERDICT_COUNT];
    double time_s;
};

static bool is_case(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && outcome->audit_of == 0;
}

/* Text from anywhere as XML: what XML cannot hold is spelled out. */
static void put_xml(const char *text, FILE *out)
{
    char shown[4 * OUTCOME_ERROR_BYTES];
    text_escape(text, TEXT_LINES, shown, sizeof shown);
    for (const char *at = shown; *at != '\0'; at++) {
        switch (*at) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\n':
            fputs("&#10;", out);
            break;
        default:
            fputc(*at, out);
            break;
        }
    }
}

static enum status count_case(void *context, const struct outcome *outcome, struct error *error)
{
    struct junit *junit = context;
    (void)error;
    if (is_case(outcome)) {
        junit->cases[outcome->verdict]++;
        junit->time_s += outcome->ticks * TICK_S;
    }
    return STATUS_OK;
}

/* The command that drives this outcome again. */
static void put_replay(const struct junit *junit, const struct outcome *outcome)
{
    FILE *out = junit->request->out;
    fprintf(out, "swerve replay %lld", (long long)outcome->id);
    if (junit->request->store_url != NULL) {
        fputs(" --store ", out);
        put_xml(junit->request->store_url, out);
    }
}

static void put_body(const struct junit *junit, const struct outcome *outcome)
{
    FILE *out = junit->request->out;
    char text[REASONS_TEXT_BYTES];
    const char *reasons = reasons_text(outcome->reasons, ", ", text);
    switch (outcome->verdict) {
    case VERDICT_PASS:
        return;
    case VERDICT_FLAGGED:
        fputs("   <skipped message=\"flagged by health check ", out);
        put_xml(outcome->health_check, out);
        fprintf(out, " at tick %u: no result\"/>\n", outcome->health_tick);
        return;
    case VERDICT_INVALID:
        fputs("   <skipped message=\"", out);
        put_xml(outcome->error, out);
        fputs("\"/>\n", out);
        return;
    case VERDICT_PLANNER_ERROR:
        fputs("   <error type=\"planner_error\" message=\"the planner failed\">", out);
        put_xml(outcome->error, out);
        fputs("&#10;", out);
        put_replay(junit, outcome);
        fputs("</error>\n", out);
        return;
    default:
        break;
    }
    fprintf(out, "   <failure type=\"%s\" message=\"", verdict_names[outcome->verdict]);
    fprintf(out, "%s\">%s", reasons, reasons);
    fprintf(out, "&#10;score %.3f, progress %.1f m, speed at most %.1f m/s&#10;",
            outcome->metrics.score, outcome->metrics.progress_m, outcome->metrics.speed_max_mps);
    put_replay(junit, outcome);
    fputs("</failure>\n", out);
}

static enum status put_case(void *context, const struct outcome *outcome, struct error *error)
{
    const struct junit *junit = context;
    FILE *out = junit->request->out;
    if (!is_case(outcome)) {
        return STATUS_OK;
    }
    fputs("  <testcase classname=\"", out);
    put_xml(outcome->suite_id, out);
    fputs("\" name=\"", out);
    put_xml(outcome->scenario_id, out);
    fputs(" [", out);
    put_xml(outcome->planner, out);
    fprintf(out, ", %s, seed %llu]\" time=\"%.1f\"", tier_names[outcome->tier],
            (unsigned long long)outcome->seed, outcome->ticks * TICK_S);
    fputs(outcome->verdict == VERDICT_PASS ? "/>\n" : ">\n", out);
    if (outcome->verdict != VERDICT_PASS) {
        put_body(junit, outcome);
        fputs("  </testcase>\n", out);
    }
    return ferror(out) ? export_stream_check(junit->request, error) : STATUS_OK;
}

enum status export_junit(const struct export_request *request, struct error *error)
{
    struct junit junit = {.request = request};
    FILE *out = request->out;
    TRY(store_outcomes_each(request->store, request->suite_id, count_case, &junit, error));
    uint64_t all = 0;
    for (int i = 0; i < VERDICT_COUNT; i++) {
        all += junit.cases[i];
    }
    uint64_t errors = junit.cases[VERDICT_PLANNER_ERROR];
    uint64_t skipped = junit.cases[VERDICT_FLAGGED] + junit.cases[VERDICT_INVALID];
    uint64_t failures = all - errors - skipped - junit.cases[VERDICT_PASS];
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    for (int i = 0; i < 2; i++) {
        fputs(i == 0 ? "<testsuites name=\"" : " <testsuite name=\"", out);
        put_xml(request->suite_id, out);
        fprintf(out,
                "\" tests=\"%llu\" failures=\"%llu\" errors=\"%llu\" skipped=\"%llu\" "
                "time=\"%.1f\">\n",
                (unsigned long long)all, (unsigned long long)failures, (unsigned long long)errors,
                (unsigned long long)skipped, junit.time_s);
    }
    enum status status =
        store_outcomes_each(request->store, request->suite_id, put_case, &junit, error);
    fputs(" </testsuite>\n</testsuites>\n", out);
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}
