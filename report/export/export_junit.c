/*
 * A suite as JUnit XML. A case is a main line; branches are what-ifs, and audit jobs second
 * opinions.
 */
#include "report/export/export.h"

#include "base/units.h"
#include "report/page/junit.h"

struct junit {
    const struct export_request *request;
    uint64_t cases[VERDICT_COUNT];
    double time_s;
};

static bool is_case(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && outcome->audit_of == 0;
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
    junit_print(junit->request->out, "swerve replay %lld%s%s%s", (long long)outcome->id,
                url != NULL ? " --store " : "", url != NULL ? url : "",
                outcome_world_option(outcome->sampler));
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
        junit_print(out,
                    "   <skipped message=\"flagged by health check %s at tick %u: no result\"/>\n",
                    outcome->health_check, outcome->health_tick);
        return;
    case VERDICT_INVALID:
        junit_print(out, "   <skipped message=\"%s\"/>\n", outcome->error);
        return;
    case VERDICT_PLANNER_ERROR:
        junit_print(out, "   <error type=\"planner_error\" message=\"the planner failed\">%s&#10;",
                    outcome->error);
        put_replay(junit, outcome);
        junit_print(out, "</error>\n");
        return;
    default:
        break;
    }
    junit_print(
        out,
        "   <failure type=\"%s\" message=\"%s\">%s&#10;score %.3f, progress %.1f m, speed at most "
        "%.1f m/s&#10;",
        verdict_names[outcome->verdict], reasons, reasons, outcome->metrics.score,
        outcome->metrics.progress_m, outcome->metrics.speed_max_mps);
    put_replay(junit, outcome);
    junit_print(out, "</failure>\n");
}

static enum status put_case(void *context, const struct outcome *outcome, struct error *error)
{
    const struct junit *junit = context;
    FILE *out = junit->request->out;
    if (!is_case(outcome)) {
        return STATUS_OK;
    }
    junit_print(out,
                "  <testcase classname=\"%s\" name=\"%s [%s, %s, seed %llu]\" time=\"%.1f\"%s>\n",
                outcome->suite_id, outcome->scenario_id, outcome->planner,
                tier_names[outcome->tier], (unsigned long long)outcome->seed,
                outcome->ticks * TICK_S, outcome->verdict == VERDICT_PASS ? "/" : "");
    if (outcome->verdict != VERDICT_PASS) {
        put_body(junit, outcome);
        junit_print(out, "  </testcase>\n");
    }
    return ferror(out) ? export_stream_check(junit->request, error) : STATUS_OK;
}

enum status export_junit(const struct export_request *request, struct error *error)
{
    struct junit junit = {.request = request};
    TRY(store_outcomes_each(request->store, request->suite_id, count_case, &junit, error));
    struct junit_counts counts = {
        .errors = junit.cases[VERDICT_PLANNER_ERROR],
        .skipped = junit.cases[VERDICT_FLAGGED] + junit.cases[VERDICT_INVALID],
        .time_s = junit.time_s,
    };
    for (int i = 0; i < VERDICT_COUNT; i++) {
        counts.tests += junit.cases[i];
    }
    counts.failures = counts.tests - counts.errors - counts.skipped - junit.cases[VERDICT_PASS];
    junit_begin(request->out, request->suite_id, &counts);
    enum status status =
        store_outcomes_each(request->store, request->suite_id, put_case, &junit, error);
    junit_end(request->out);
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}
