/*
 * Gates of `run`. See gate_options.h.
 */
#include "cli/gate_options.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/cli.h"
#include "report/meters.h"
#include "schemas/json_read.h"
#include "schemas/json_record.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `run --json` names each outcome, so a large suite's is larger than other documents. */
enum { BASELINE_BYTES_MAX = 128 << 20, METERS_MAX = 10000 };

/* Share by which it may be dearer or slower than the baseline of --gate-cost. */
#define COST_MARGIN 0.05

/* Rates are sums of quotients: what differs by less is equal. */
#define RATE_SLACK 1e-9

/* ---- options ---- */

static enum status unknown_kind(const char *kind, struct error *error)
{
    char kinds[256] = "";
    size_t used = 0;
    for (int i = 0; i < SUMMARY_GROUPS; i++) {
        used += (size_t)snprintf(kinds + used, sizeof kinds - used, "%s%s", i > 0 ? ", " : "",
                                 summary_groups[i]);
        CHECK(used < sizeof kinds);
    }
    return error_set(error, STATUS_USAGE,
                     "--gate-slice: expected a kind of slice (%s), found \"%s\"", kinds, kind);
}

/* KIND=VALUE>=FRACTION; a value may hold any of these characters but the last ">=". */
static enum status read_slice(const char *text, struct gate_slice *out, struct error *error)
{
    const char *equals = strchr(text, '=');
    const char *bound = NULL;
    for (const char *at = text; (at = strstr(at, ">=")) != NULL; at += 2) {
        bound = at;
    }
    if (equals == NULL || bound == NULL || bound <= equals || equals == text ||
        (size_t)(equals - text) >= sizeof out->group ||
        (size_t)(bound - equals) > sizeof out->value) {
        return error_set(error, STATUS_USAGE,
                         "--gate-slice: expected KIND=VALUE>=FRACTION, such as weather=fog>=0.9, "
                         "found \"%s\"",
                         text);
    }
    snprintf(out->group, sizeof out->group, "%.*s", (int)(equals - text), text);
    if (!summary_has_group(out->group)) {
        return unknown_kind(out->group, error);
    }
    snprintf(out->value, sizeof out->value, "%.*s", (int)(bound - equals - 1), equals + 1);
    return cli_parse_share("--gate-slice", bound + 2, &out->rate, error);
}

static enum status check_object(const struct json_cursor *cursor, struct error *error)
{
    return json_is_object(cursor->value)
               ? STATUS_OK
               : json_fail(cursor, error,
                           "expected an object, as `swerve run --json` prints, found none");
}

/* Rates by tier. A rate that is no number would be a gate that is always met. */
static enum status check_rates(const struct json_cursor *rates, bool *rated, struct error *error)
{
    const char *tier;
    json_t *ignored;
    TRY(check_object(rates, error));
    json_object_foreach ((json_t *)(uintptr_t)rates->value, tier, ignored) {
        struct json_cursor rate = json_cursor_member(rates, tier);
        double value = -1;
        int known = 0;
        while (known < TIER_COUNT && strcmp(tier_names[known], tier) != 0) {
            known++;
        }
        if (known == TIER_COUNT) {
            return json_fail(&rate, error, "expected the name of a world");
        }
        TRY(check_object(&rate, error));
        TRY(json_member_number(&rate, "rate", false, 0, 1, &value, error));
        *rated = *rated || value >= 0;
    }
    return STATUS_OK;
}

/* Value of a row that is judged; *rated: it has a rate. */
static enum status check_row(const struct json_cursor *row, bool *rated, struct error *error)
{
    const char *planner;
    json_t *ignored;
    *rated = false;
    TRY(check_object(row, error));
    struct json_cursor rates = json_cursor_member(row, "pass_rates");
    TRY(check_rates(&rates, rated, error));
    struct json_cursor planners = json_cursor_member(row, "pass_rates_by_planner");
    if (!json_cursor_present(&planners)) {
        return STATUS_OK;
    }
    TRY(check_object(&planners, error));
    json_object_foreach ((json_t *)(uintptr_t)planners.value, planner, ignored) {
        struct json_cursor of = json_cursor_member(&planners, planner);
        TRY(check_rates(&of, rated, error));
    }
    return STATUS_OK;
}

static enum status check_baseline(const struct json_cursor *top, struct error *error)
{
    const char *group;
    const char *value;
    json_t *values;
    json_t *ignored;
    bool rated;
    TRY(check_row(top, &rated, error));
    if (!rated) { /* any run would be as good */
        return json_fail(top, error, "expected a rate in \"pass_rates\", found none");
    }
    struct json_cursor slices = json_cursor_member(top, "by_slice");
    TRY(check_object(&slices, error));
    json_object_foreach ((json_t *)(uintptr_t)slices.value, group, values) {
        struct json_cursor kind = json_cursor_member(&slices, group);
        TRY(check_object(&kind, error));
        json_object_foreach (values, value, ignored) {
            struct json_cursor row = json_cursor_member(&kind, value);
            TRY(check_row(&row, &rated, error));
        }
    }
    return STATUS_OK;
}

static enum status read_baseline(struct gate_options *options, struct error *error)
{
    enum status status =
        json_read_file(options->baseline, BASELINE_BYTES_MAX, &options->earlier, error);
    if (status == STATUS_OK) {
        const struct json_cursor top = json_cursor_root(options->baseline, options->earlier);
        status = check_baseline(&top, error);
    }
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, "--gate-baseline");
}

/* A figure that is none would be a gate that is always met. */
static enum status check_meter(const struct json_cursor *row, struct error *error)
{
    static const char *const names[] = {"pool", "device", "tier", "model", "sampler"};
    double value;
    TRY(check_object(row, error));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_cursor text = json_cursor_member(row, names[i]);
        if (!json_is_string(text.value)) {
            return json_fail(row, error, "expected a text \"%s\", found none", names[i]);
        }
    }
    if (!json_is_null(json_object_get(row->value, "usd_per_mile"))) { /* stood still */
        TRY(json_member_number(row, "usd_per_mile", true, 0, 1e12, &value, error));
    }
    const struct json_cursor ticks = json_cursor_member(row, "tick_ms");
    TRY(check_object(&ticks, error));
    return json_member_number(&ticks, "p99", true, 0, 1e12, &value, error);
}

/* Meters of an earlier run; what has none is no baseline of costs. */
static enum status read_metered(struct gate_options *options, struct error *error)
{
    enum status status =
        json_read_file(options->cost, BASELINE_BYTES_MAX, &options->metered, error);
    if (status == STATUS_OK) {
        const struct json_cursor top = json_cursor_root(options->cost, options->metered);
        const struct json_cursor list = json_cursor_member(&top, "meters");
        size_t count = 0;
        status = json_is_array(list.value)
                     ? json_array_begin(&list, 1, METERS_MAX, &count, error)
                     : json_fail(&top, error,
                                 "expected \"meters\", as `swerve run --json` prints, found none");
        for (size_t i = 0; status == STATUS_OK && i < count; i++) {
            const struct json_cursor row = json_cursor_element(&list, i);
            status = check_meter(&row, error);
        }
    }
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, "--gate-cost");
}

enum status gate_options_read(struct gate_options *options, struct error *error)
{
    options->asked = options->all || options->rate_text != NULL || options->slice_texts.count > 0 ||
                     options->baseline != NULL || options->cost != NULL;
    /* A slice or a baseline alone asks nothing of the whole. */
    bool parts =
        options->slice_texts.count > 0 || options->baseline != NULL || options->cost != NULL;
    options->rate = options->all || !parts ? 1.0 : 0.0;
    if (options->rate_text != NULL) {
        double rate;
        TRY(cli_parse_share("--gate-rate", options->rate_text, &rate, error));
        options->rate =
            options->all ? 1.0 : rate; /* --gate asks for all, whatever else is asked for */
    }
    if (options->margin_text != NULL && options->baseline == NULL) {
        return error_set(
            error, STATUS_USAGE,
            "--gate-margin: expected --gate-baseline beside it, whose rates it loosens");
    }
    if (options->margin_text != NULL) {
        TRY(cli_parse_share("--gate-margin", options->margin_text, &options->margin, error));
    }
    for (uint32_t i = 0; i < options->slice_texts.count; i++) {
        TRY(read_slice(options->slice_texts.values[i], &options->slices[i], error));
    }
    TRY(options->baseline != NULL ? read_baseline(options, error) : STATUS_OK);
    return options->cost != NULL ? read_metered(options, error) : STATUS_OK;
}

void gate_options_finish(struct gate_options *options)
{
    json_decref(options->earlier);
    options->earlier = NULL;
    json_decref(options->metered);
    options->metered = NULL;
}

/* ---- judging ---- */

/* Sentences so far. A gate whose sentence was lost would be met. */
struct judging {
    json_t *missed;
    bool failed; /* memory ran out */
};

static void miss(struct judging *judging, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void miss(struct judging *judging, const char *format, ...)
{
    char text[LIMIT_SPEC_BYTES + 1536];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    judging->failed =
        json_array_append_new(judging->missed, json_text_new(text, sizeof text)) != 0 ||
        judging->failed;
}

/* ", planner NAME" of a row with several; else "". */
static const char *planner_text(const struct summary_row *row, const struct summary_part *part,
                                char out[LIMIT_SPEC_BYTES + 16])
{
    snprintf(out, LIMIT_SPEC_BYTES + 16, "%s%s", row->planners ? ", planner " : "",
             row->planners ? part->planner : "");
    return out;
}

static void judge_slices(const struct gate_options *options, const struct summary *summary,
                         struct judging *judging)
{
    for (uint32_t i = 0; i < options->slice_texts.count; i++) {
        const struct gate_slice *slice = &options->slices[i];
        const struct summary_row *row = summary_row_find(summary, slice->group, slice->value);
        const struct summary_part *lowest = row != NULL ? summary_row_lowest(row) : NULL;
        double rate = lowest != NULL ? rate_estimate(&lowest->rate).value : (double)NAN;
        char planner[LIMIT_SPEC_BYTES + 16];
        if (lowest == NULL) {
            miss(judging, "%s=%s: no main line of the suite is in this slice", slice->group,
                 slice->value);
        } else if (rate < slice->rate - RATE_SLACK) {
            miss(judging, "%s=%s: %.1f%% of main lines passed, %.1f%% wanted%s", slice->group,
                 slice->value, 100 * rate, 100 * slice->rate, planner_text(row, lowest, planner));
        }
    }
}

/* Who drove, and what it was shown, is no part of the question: another planner's run may be the
 * baseline. */
static bool is_asked_of(const char *group)
{
    return strcmp(group, "given") != 0 && strcmp(group, "rig") != 0;
}

/* A planner's main lines in one world (NULL: it has none) beside an earlier rate. */
static void judge_part(const struct gate_options *options, const char *name, const char *tier,
                       const struct summary_row *row, const struct summary_part *part,
                       const json_t *earlier, struct judging *judging)
{
    const json_t *known = json_object_get(earlier, "rate");
    double before = json_is_number(known) ? json_number_value(known) : (double)NAN;
    struct rate_estimate at = {.value = NAN};
    char planner[LIMIT_SPEC_BYTES + 16] = "";
    if (isnan(before)) {
        return;
    }
    if (part != NULL) {
        at = rate_estimate(&part->rate);
        planner_text(row, part, planner);
    }
    int64_t cases = json_integer_value(json_object_get(earlier, "scenarios"));
    if (isnan(at.value)) {
        miss(judging, "%s: no main line in the %s world, the baseline has some%s", name, tier,
             planner);
    } else if (at.value < before - options->margin - RATE_SLACK) {
        miss(judging, "%s: %.1f%% of main lines passed in the %s world, %.1f%% in the baseline%s",
             name, 100 * at.value, tier, 100 * before, planner);
    } else if (at.cases < cases) {
        miss(judging,
             "%s: %lld scenarios have a result in the %s world, %lld in the baseline: what is "
             "missing is not known to pass%s",
             name, (long long)at.cases, tier, (long long)cases, planner);
    }
}

/* Each world of a row beside what the earlier run had in it, for each planner. Where the earlier
 * run had one planner it is the baseline of all. */
static void judge_row(const struct gate_options *options, const char *name,
                      const struct summary_row *row, const json_t *earlier, struct judging *judging)
{
    const json_t *planners = json_object_get(earlier, "pass_rates_by_planner");
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        const json_t *known =
            json_object_get(json_object_get(earlier, "pass_rates"), tier_names[tier]);
        bool any = false;
        for (uint32_t i = 0; row != NULL && i < row->part_count; i++) {
            const struct summary_part *part = &row->parts[i];
            const json_t *of =
                planners != NULL
                    ? json_object_get(json_object_get(planners, part->planner), tier_names[tier])
                    : known;
            if (part->tier == (enum tier)tier) {
                any = true;
                judge_part(options, name, tier_names[tier], row, part, of, judging);
            }
        }
        if (!any) {
            judge_part(options, name, tier_names[tier], row, NULL, known, judging);
        }
    }
}

static void judge_baseline(const struct gate_options *options, const struct summary *summary,
                           struct judging *judging)
{
    const char *group;
    const char *value;
    json_t *values;
    json_t *row;
    judge_row(options, "all", &summary->total, options->earlier, judging);
    json_object_foreach (json_object_get(options->earlier, "by_slice"), group, values) {
        if (!is_asked_of(group)) {
            continue;
        }
        json_object_foreach (values, value, row) {
            char name[LIMIT_SPEC_BYTES];
            snprintf(name, sizeof name, "%.60s=%.200s", group, value);
            judge_row(options, name, summary_row_find(summary, group, value), row, judging);
        }
    }
}

/* Adds the first main lines that did not pass to a sentence. */
static void name_lost(const struct summary *summary, char *text, size_t capacity)
{
    enum { NAMED_MAX = 3 };
    int64_t lost = 0;
    size_t used = strlen(text);
    for (uint32_t i = 0; i < summary->outcome_count && used < capacity; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (outcome->verdict == VERDICT_PASS || !summary_names(summary, i)) {
            continue;
        }
        if (lost++ < NAMED_MAX) {
            used +=
                (size_t)snprintf(text + used, capacity - used, "%s%s (%s)", lost == 1 ? ": " : ", ",
                                 outcome->scenario_id, verdict_names[outcome->verdict]);
        }
    }
    for (uint32_t i = 0; i < summary->undriven_count && used < capacity; i++) {
        if (lost++ < NAMED_MAX) {
            used += (size_t)snprintf(text + used, capacity - used, "%s%s (%s)",
                                     lost == 1 ? ": " : ", ", summary->undriven[i].scenario_id,
                                     summary_lack_names[summary->undriven[i].lack]);
        }
    }
    if (lost > NAMED_MAX && used < capacity) {
        snprintf(text + used, capacity - used, " and %lld more", (long long)(lost - NAMED_MAX));
    }
}

/* The whole: its lowest rate, and what has no result. */
static void judge_all(const struct gate_options *options, const struct summary *summary,
                      struct judging *judging)
{
    const struct summary_part *lowest = summary_row_lowest(&summary->total);
    double rate = lowest != NULL ? rate_estimate(&lowest->rate).value : 0.0;
    char planner[LIMIT_SPEC_BYTES + 16] = "";
    char text[LIMIT_SPEC_BYTES + 1024] = "";
    char names[SUMMARY_SEEDS_BYTES];
    int64_t lacking[SUMMARY_LACK_COUNT];
    int64_t missing = summary_lacking(summary, lacking);
    bool low = rate < options->rate - RATE_SLACK;
    if (!low && missing == 0) {
        return;
    }
    if (options->rate > 0 && low) {
        snprintf(text, sizeof text, "%.1f%% of main lines passed, %.1f%% wanted%s", 100 * rate,
                 100 * options->rate,
                 lowest != NULL ? planner_text(&summary->total, lowest, planner) : "");
    }
    if (missing > 0) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%lld main line%s without a result (%.100s)",
                 used > 0 ? "; " : "", (long long)missing, summary_plural(missing),
                 summary_lacking_text(lacking, names));
        if (lowest != NULL) {
            used = strlen(text);
            snprintf(text + used, sizeof text - used, ", %.1f%% had they failed%s",
                     100 * rate_estimate(&lowest->rate).worst,
                     low ? "" : ", and no gate is met with any");
        }
    }
    name_lost(summary, text, sizeof text);
    miss(judging, "%s", text);
}

json_t *gate_missed(const struct gate_options *options, const struct summary *summary)
{
    struct judging judging = {.missed = json_array()};
    if (!options->asked) {
        return judging.missed;
    }
    judge_all(options, summary, &judging);
    judge_slices(options, summary, &judging);
    if (options->earlier != NULL) {
        judge_baseline(options, summary, &judging);
    }
    if (options->metered != NULL) {
        judging.failed = !meters_compare(summary, options->metered, COST_MARGIN, judging.missed) ||
                         judging.failed;
    }
    if (judging.failed) {
        json_decref(judging.missed);
        judging.missed = NULL;
    }
    return judging.missed;
}

int gate_tell(const json_t *missed, bool json)
{
    if (missed == NULL) {
        text_print(stderr, "swerve: out of memory for what the gate missed\n");
        return status_exit_code(STATUS_NO_MEMORY);
    }
    size_t i;
    json_t *sentence;
    json_array_foreach (missed, i, sentence) {
        text_print(stderr, "swerve: gate not met: %s\n", json_string_value(sentence));
    }
    if (json_array_size(missed) == 0 && !json) {
        text_print(stdout, "gate met\n");
    }
    return json_array_size(missed) == 0 ? 0 : status_exit_code(STATUS_MISMATCH);
}

void gate_put(const struct gate_options *options, json_t *missed, json_t *json)
{
    bool met = missed != NULL && json_array_size(missed) == 0;
    json_object_set_new(json, "gate_met", options->asked ? json_boolean(met) : json_null());
    json_object_set(json, "gate_missed", missed);
}
