/*
 * JUnit XML, in the form that CI systems read (testsuites, testsuite, testcase with failure, error
 * or skipped). A case is a main line; branches are what-ifs, and audit jobs second opinions.
 */
#include "report/export/export.h"

#include "base/units.h"
#include "report/page/html.h"

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

static void put(void *out, const char *text, size_t bytes)
{
    fwrite(text, 1, bytes, out);
}

/* Text from anywhere as XML: what XML cannot hold is spelled out. */
static size_t spell(const char *text, bool within, char out[FORMAT_SPELLED_BYTES])
{
    if (*text == '\n' || *text == '\'') {
        strcpy(out, *text == '\n' ? "&#10;" : "'");
        return 1;
    }
    return html_spell(text, within, out);
}

__attribute__((format(printf, 2, 3))) static void print(const struct junit *junit,
                                                        const char *format, ...)
{
    static const struct format_writer writer = {.put = put, .spell = spell};
    va_list args;
    va_start(args, format);
    format_write(format, "", &args, &writer, junit->request->out);
    va_end(args);
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
    const char *url = junit->request->store_url;
    print(junit, "swerve replay %lld%s%s", (long long)outcome->id, url != NULL ? " --store " : "",
          url != NULL ? url : "");
}

static void put_body(const struct junit *junit, const struct outcome *outcome)
{
    char text[REASONS_TEXT_BYTES];
    const char *reasons = reasons_text(outcome->reasons, ", ", text);
    switch (outcome->verdict) {
    case VERDICT_PASS:
        return;
    case VERDICT_FLAGGED:
        print(junit, "   <skipped message=\"flagged by health check %s at tick %u: no result\"/>\n",
              outcome->health_check, outcome->health_tick);
        return;
    case VERDICT_INVALID:
        print(junit, "   <skipped message=\"%s\"/>\n", outcome->error);
        return;
    case VERDICT_PLANNER_ERROR:
        print(junit, "   <error type=\"planner_error\" message=\"the planner failed\">%s&#10;",
              outcome->error);
        put_replay(junit, outcome);
        print(junit, "</error>\n");
        return;
    default:
        break;
    }
    print(
        junit,
        "   <failure type=\"%s\" message=\"%s\">%s&#10;score %.3f, progress %.1f m, speed at most "
        "%.1f m/s&#10;",
        verdict_names[outcome->verdict], reasons, reasons, outcome->metrics.score,
        outcome->metrics.progress_m, outcome->metrics.speed_max_mps);
    put_replay(junit, outcome);
    print(junit, "</failure>\n");
}

static enum status put_case(void *context, const struct outcome *outcome, struct error *error)
{
    const struct junit *junit = context;
    FILE *out = junit->request->out;
    if (!is_case(outcome)) {
        return STATUS_OK;
    }
    print(junit, "  <testcase classname=\"%s\" name=\"%s [%s, %s, seed %llu]\" time=\"%.1f\"%s>\n",
          outcome->suite_id, outcome->scenario_id, outcome->planner, tier_names[outcome->tier],
          (unsigned long long)outcome->seed, outcome->ticks * TICK_S,
          outcome->verdict == VERDICT_PASS ? "/" : "");
    if (outcome->verdict != VERDICT_PASS) {
        put_body(junit, outcome);
        print(junit, "  </testcase>\n");
    }
    return ferror(out) ? export_stream_check(junit->request, error) : STATUS_OK;
}

enum status export_junit(const struct export_request *request, struct error *error)
{
    struct junit junit = {.request = request};
    TRY(store_outcomes_each(request->store, request->suite_id, count_case, &junit, error));
    uint64_t all = 0;
    for (int i = 0; i < VERDICT_COUNT; i++) {
        all += junit.cases[i];
    }
    uint64_t errors = junit.cases[VERDICT_PLANNER_ERROR];
    uint64_t skipped = junit.cases[VERDICT_FLAGGED] + junit.cases[VERDICT_INVALID];
    uint64_t failures = all - errors - skipped - junit.cases[VERDICT_PASS];
    print(&junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    for (int i = 0; i < 2; i++) {
        print(&junit, i == 0 ? "<testsuites name=\"%s\" " : " <testsuite name=\"%s\" ",
              request->suite_id);
        print(&junit,
              "tests=\"%llu\" failures=\"%llu\" errors=\"%llu\" skipped=\"%llu\" "
              "time=\"%.1f\">\n",
              (unsigned long long)all, (unsigned long long)failures, (unsigned long long)errors,
              (unsigned long long)skipped, junit.time_s);
    }
    enum status status =
        store_outcomes_each(request->store, request->suite_id, put_case, &junit, error);
    print(&junit, " </testsuite>\n</testsuites>\n");
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}
