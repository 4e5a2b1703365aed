/*
 * A suite as JUnit XML. A case is a main line, whether it was driven or not; branches are what-ifs,
 * and audit jobs second opinions. One that was flagged, and that the teacher was asked for instead,
 * is the teacher's case.
 */
#include "report/export/export.h"

#include "base/units.h"
#include "report/page/junit.h"
#include "report/summary.h"

/* The command that drives this outcome again. */
static void put_replay(const struct export_request *request, const struct kept_outcome *outcome)
{
    const char *url = request->store_url;
    junit_print(request->out, "swerve replay %lld%s%s%s", (long long)outcome->id,
                url != NULL ? " --store " : "", url != NULL ? url : "",
                outcome_world_option(outcome->sampler));
}

static void put_body(const struct export_request *request, const struct kept_outcome *outcome)
{
    FILE *out = request->out;
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
        put_replay(request, outcome);
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
    put_replay(request, outcome);
    junit_print(out, "</failure>\n");
}

static void put_case(const struct export_request *request, const struct kept_outcome *outcome)
{
    FILE *out = request->out;
    junit_print(out,
                "  <testcase classname=\"%s\" name=\"%s [%s, %s, seed %llu]\" time=\"%.1f\"%s>\n",
                outcome->suite_id, outcome->scenario_id, outcome->planner,
                tier_names[outcome->tier], (unsigned long long)outcome->seed,
                outcome->ticks * TICK_S, outcome->verdict == VERDICT_PASS ? "/" : "");
    if (outcome->verdict != VERDICT_PASS) {
        put_body(request, outcome);
        junit_print(out, "  </testcase>\n");
    }
}

static void put_undriven(const struct export_request *request, const struct summary *summary,
                         const struct summary_undriven *undriven)
{
    char budget[SUMMARY_BUDGET_BYTES] = "";
    if (undriven->lack == SUMMARY_CANCELLED && summary->status.stopped_by_budget) {
        summary_budget_text(&summary->status, budget);
    }
    junit_print(request->out,
                "  <testcase classname=\"%s\" name=\"%s [%s, %s, seed %llu]\" time=\"0.0\">\n"
                "   <error type=\"no_result\" message=\"%s%s%s\">%s</error>\n  </testcase>\n",
                request->suite_id, undriven->scenario_id, undriven->planner,
                tier_names[undriven->tier], (unsigned long long)undriven->seed,
                summary_lack_names[undriven->lack], budget[0] != '\0' ? ": " : "", budget,
                undriven->error);
}

static void put_suite(const struct export_request *request, const struct summary *summary)
{
    struct junit_counts counts = {.tests = summary->undriven_count,
                                  .errors = summary->undriven_count};
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (summary_names(summary, i)) {
            counts.tests++;
            counts.failures += outcome->verdict == VERDICT_FAIL;
            counts.errors += outcome->verdict == VERDICT_PLANNER_ERROR;
            counts.skipped += !verdict_is_result(outcome->verdict);
            counts.time_s += outcome->ticks * TICK_S;
        }
    }
    junit_begin(request->out, request->suite_id, &counts);
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        if (summary_names(summary, i)) {
            put_case(request, &summary->outcomes[i]);
        }
    }
    for (uint32_t i = 0; i < summary->undriven_count; i++) {
        put_undriven(request, summary, &summary->undriven[i]);
    }
    junit_end(request->out);
}

enum status export_junit(const struct export_request *request, struct error *error)
{
    struct summary summary;
    TRY(summary_load(request->store, request->suite_id, &summary, error));
    put_suite(request, &summary);
    summary_finish(&summary);
    return export_stream_check(request, error);
}
