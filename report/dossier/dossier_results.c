/*
 * Chapters of the dossier that come from outcomes.
 */
#include "report/dossier/dossier.h"
#include "report/page/metrics.h"
#include "report/page/page.h"

#include "base/check.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LISTED_MAX = 200, DISTINCT_MAX = 32, DATE_BYTES = 64 };

static bool is_main(const struct kept_outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && outcome->audit_of == 0;
}

/* ---- the suite and the store ---- */

struct hashed {
    const char *hash;
    uint32_t entry;
};

static int compare_hashed(const void *a, const void *b)
{
    return strcmp(((const struct hashed *)a)->hash, ((const struct hashed *)b)->hash);
}

static void match_outcome(const struct dossier_request *request, const struct hashed *hashes,
                          const struct kept_outcome *outcome, struct dossier_match *match)
{
    struct hashed key = {.hash = outcome->scenario_hash};
    const struct hashed *found =
        bsearch(&key, hashes, request->suite->entry_count, sizeof *hashes, compare_hashed);
    match->learned = match->learned || outcome->model_hash[0] != '\0';
    match->nominal = match->nominal && outcome->seed == 0;
    match->other_revision =
        match->other_revision || strcmp(outcome->revision, request->revision) != 0;
    if (found == NULL) {
        match->foreign++;
        return;
    }
    uint8_t state = summary_is_sample(outcome) ? 2 : 1;
    uint8_t *kept = &match->state[found->entry];
    *kept = *kept > state ? *kept : state;
}

enum status dossier_match_find(const struct dossier_request *request, struct dossier_match *out,
                               struct error *error)
{
    uint32_t count = request->suite->entry_count;
    struct hashed *hashes = calloc(count + 1, sizeof *hashes);
    *out = (struct dossier_match){.nominal = true, .state = calloc(count + 1, 1)};
    if (hashes == NULL || out->state == NULL) {
        free(hashes);
        dossier_match_finish(out);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", request->suite_path);
    }
    for (uint32_t i = 0; i < count; i++) {
        hashes[i] = (struct hashed){request->suite->entries[i].document->hash, i};
    }
    qsort(hashes, count, sizeof *hashes, compare_hashed);
    for (uint32_t i = 0; request->summary != NULL && i < request->summary->outcome_count; i++) {
        if (is_main(&request->summary->outcomes[i])) {
            match_outcome(request, hashes, &request->summary->outcomes[i], out);
        }
    }
    free(hashes);
    for (uint32_t i = 0; i < count; i++) {
        out->driven += out->state[i] == 2;
        out->flagged += out->state[i] == 1;
    }
    return STATUS_OK;
}

void dossier_match_finish(struct dossier_match *match)
{
    free(match->state);
    match->state = NULL;
}

/* ---- identity ---- */

typedef void (*field)(const struct kept_outcome *outcome, char out[LIMIT_SPEC_BYTES]);

static void planner_of(const struct kept_outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%.900s (%.12s)", outcome->planner, outcome->planner_hash);
}

static void world_of(const struct kept_outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%s on %s%s%.12s%s%s", tier_names[outcome->tier],
             outcome->backend, outcome->model_hash[0] != '\0' ? ", model " : "",
             outcome->model_hash, outcome->sampler[0] != '\0' ? ", " : "", outcome->sampler);
}

static void revision_of(const struct kept_outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%.12s", outcome->revision);
}

static void seed_of(const struct kept_outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%llu", (unsigned long long)outcome->seed);
}

/* The distinct texts of a field over main lines, in order of appearance. */
static void write_distinct(const struct dossier_request *request, const char *name, field read)
{
    static char seen[DISTINCT_MAX][LIMIT_SPEC_BYTES];
    uint32_t count = 0;
    bool more = false;
    for (uint32_t i = 0; i < request->summary->outcome_count; i++) {
        char text[LIMIT_SPEC_BYTES];
        const struct kept_outcome *outcome = &request->summary->outcomes[i];
        if (!is_main(outcome)) {
            continue;
        }
        uint32_t at = 0;
        read(outcome, text);
        while (at < count && strcmp(seen[at], text) != 0) {
            at++;
        }
        more = more || at == DISTINCT_MAX;
        if (at == count && count < DISTINCT_MAX) {
            memcpy(seen[count++], text, sizeof text);
        }
    }
    fprintf(request->out, "| %s | ", name);
    for (uint32_t i = 0; i < count; i++) {
        markdown_print(request->out, "%s%s", i > 0 ? "; " : "", seen[i]);
    }
    fputs(more ? "; and more |\n" : " |\n", request->out);
}

/* ", WORD 2026-11-23 23:50 UTC", or nothing of a time that no calendar has. */
static const char *date_text(const char *word, int64_t seconds, char out[DATE_BYTES])
{
    char date[DATE_BYTES];
    time_t at = (time_t)seconds;
    struct tm utc;
    bool known = seconds > 0 && gmtime_r(&at, &utc) != NULL &&
                 strftime(date, sizeof date, "%Y-%m-%d %H:%M", &utc) > 0;
    snprintf(out, DATE_BYTES, known ? ", %s%.20s UTC" : "", word, date);
    return out;
}

void dossier_write_identity(const struct dossier_request *request,
                            const struct dossier_match *match)
{
    struct page page = {.form = PAGE_MARKDOWN, .out = request->out};
    char place[LIMIT_PATH_BYTES];
    char date[DATE_BYTES];
    page_heading(&page, "What was examined");
    page_table(&page, "", "|");
    page_row(&page, "suite|%s, %u concrete scenarios of %u logical ones", request->suite_path,
             request->suite->entry_count, request->coverage->logical_count);
    page_row(&page, "content of the suite|%s", request->suite->hash);
    page_row(&page, "written by|swerve %s, simulation sources %.12s%s", request->version,
             request->revision, date_text("", request->written_s, date));
    if (request->summary == NULL) {
        page_row(&page, "results|none: no store was named");
        return;
    }
    page_row(&page, "results|suite %s of store %s%s", request->store_suite, request->store_url,
             date_text("submitted ", request->summary->status.submitted_s, date));
    write_distinct(request, "planner", planner_of);
    write_distinct(request, "world", world_of);
    write_distinct(request, "simulation sources of the results", revision_of);
    write_distinct(request, "seeds", seed_of);
    page_row(&page, "scenarios of the suite with a result|%u of %u", match->driven,
             request->suite->entry_count);
    page_row(&page, "made again, bit for bit|`swerve replay --all --store %s`",
             text_shell_word(request->store_url, place, sizeof place));
}

/* ---- results ---- */

static void write_rate(struct page *page, const struct summary_row *row)
{
    for (uint32_t i = 0; i < row->part_count; i++) {
        const struct summary_part *part = &row->parts[i];
        struct rate_estimate at = rate_estimate(&part->rate);
        char name[SUMMARY_PART_BYTES];
        page_row(
            page,
            "%s%s%s|%s|%.1f%%|%.1f to %.1f%%|%.1f to %.1f%%|%lld|%lld|%lld|%lld|%lld|%lld|%lld|"
            "%lld",
            row->group, row->value[0] != '\0' ? " " : "", row->value,
            summary_part_text(row, part, name), 100 * at.value, rate_down(100 * at.low, 0.1),
            rate_up(100 * at.high, 0.1), 100 * at.worst, 100 * at.best, (long long)at.drives,
            (long long)at.cases, (long long)at.logical, (long long)part->lacking[SUMMARY_FLAGGED],
            (long long)part->lacking[SUMMARY_INVALID], (long long)part->lacking[SUMMARY_NO_ANSWER],
            (long long)part->lacking[SUMMARY_CANCELLED], (long long)part->lacking[SUMMARY_WAITING]);
    }
}

/* All rows of a group, or the whole; a rate for each planner and world. */
static void write_rates(struct page *page, const struct summary *summary, const char *group)
{
    if (group == NULL) {
        write_rate(page, &summary->total);
        return;
    }
    for (uint32_t i = 0; i < summary->row_count; i++) {
        if (strcmp(summary->rows[i].group, group) == 0) {
            write_rate(page, &summary->rows[i]);
        }
    }
}

static void write_not_passed(const struct dossier_request *request)
{
    const struct summary *summary = request->summary;
    FILE *out = request->out;
    struct page page = {.form = PAGE_MARKDOWN, .out = out};
    uint32_t listed = 0;
    uint32_t all = 0;
    char place[LIMIT_PATH_BYTES];
    const char *store = text_shell_word(request->store_url, place, sizeof place);
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (!is_main(outcome) || outcome->verdict == VERDICT_PASS || all++ >= LISTED_MAX) {
            continue;
        }
        if (listed++ == 0) {
            fputs("\nMain lines that did not pass:\n\n", out);
            page_table(&page, "", "scenario|seed|planner|verdict|why|again");
        }
        char reasons[REASONS_TEXT_BYTES];
        page_row(&page, "%s|%llu|%s|%s|%s%s|`swerve replay %lld --store %s%s`",
                 outcome->scenario_id, (unsigned long long)outcome->seed, outcome->planner,
                 verdict_names[outcome->verdict], reasons_text(outcome->reasons, ", ", reasons),
                 outcome->health_check, (long long)outcome->id, store,
                 outcome_world_option(outcome->sampler));
    }
    if (all == 0) {
        fprintf(out, "\n%s\n", summary_none_failed_text(summary));
    } else if (all > listed) {
        fprintf(out, "\nand %u more.\n", all - listed);
    }
}

void dossier_write_results(const struct dossier_request *request)
{
    const struct summary *summary = request->summary;
    FILE *out = request->out;
    static const char *const groups[] = {"planner",   "safety_critical", "road",
                                         "weather",   "light",           "actor",
                                         "geography", "scenario_type"};
    char seeds[SUMMARY_SEEDS_BYTES];
    char place[LIMIT_PATH_BYTES];
    struct page page = {.form = PAGE_MARKDOWN, .out = out};
    fputs("\n## Results and their uncertainty\n\n", out);
    if (summary == NULL) {
        fputs("None: no store was named.\n", out);
        return;
    }
    fputs(SUMMARY_PURPOSE_TEXT
          " Each scenario counts once; the interval takes logical scenarios for what is drawn; "
          "the range takes what has no result for failed, and for passed; what was never driven is "
          "in the row of all alone, not in those of slices. Worlds and planners are not "
          "pooled. " METRIC_INTERVAL_TEXT " Each drive: `swerve show --all --store ",
          out);
    markdown_print(out, "%s`.\n", text_shell_word(request->store_url, place, sizeof place));
    summary_seeds_text(summary, seeds);
    fprintf(out, "%s%s%s", seeds[0] != '\0' ? "\n" : "", seeds, seeds[0] != '\0' ? "\n" : "");
    fputs("\n", out);
    page_table(&page, "",
               "group|world|passed|95%% interval|range|drives|scenarios|logical|flagged|invalid|"
               "no answer|cancelled|not finished");
    write_rates(&page, summary, NULL);
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        write_rates(&page, summary, groups[i]);
    }
    fputs("\nRollouts, branches included:", out);
    for (int i = 0; i < VERDICT_COUNT; i++) {
        fprintf(out, "%s %lld %s", i > 0 ? "," : "", (long long)summary->total.verdicts[i],
                verdict_names[i]);
    }
    fputs(".\n", out);
    write_not_passed(request);
}

/* ---- envelope ---- */

struct envelope {
    uint32_t rollouts;
    uint64_t ticks;
    double speed_max_mps;
    double accel_min_mps2;
    double jerk_max_mps3;
};

static void reach(struct envelope *envelope, const struct kept_outcome *outcome)
{
    const struct metrics *metrics = &outcome->metrics;
    envelope->rollouts++;
    envelope->ticks += outcome->ticks;
    envelope->speed_max_mps = fmax(envelope->speed_max_mps, metrics->speed_max_mps);
    envelope->accel_min_mps2 = fmin(envelope->accel_min_mps2, metrics->accel_min_mps2);
    envelope->jerk_max_mps3 = fmax(envelope->jerk_max_mps3, metrics->jerk_max_mps3);
}

static void write_invalid(const struct dossier_request *request)
{
    struct summary_invalid rows[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(request->summary, rows);
    fputs(count == 0 ? "No rollout was invalid.\n" : "Invalid rollouts, by check:", request->out);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(request->out, "%s %s %lld (%lld main lines)", i > 0 ? "," : "", rows[i].check,
                (long long)rows[i].rollouts, (long long)rows[i].mains);
    }
    fputs(count > 0 ? ".\n" : "", request->out);
}

void dossier_write_envelope(const struct dossier_request *request)
{
    const struct suite *suite = request->suite;
    FILE *out = request->out;
    double friction[2] = {INFINITY, -INFINITY};
    double sight_m[2] = {INFINITY, -INFINITY};
    double speed_mps[2] = {INFINITY, -INFINITY};
    uint32_t horizon = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        friction[0] = fmin(friction[0], scenario->conditions.friction);
        friction[1] = fmax(friction[1], scenario->conditions.friction);
        sight_m[0] = fmin(sight_m[0], scenario->conditions.visibility_m);
        sight_m[1] = fmax(sight_m[1], scenario->conditions.visibility_m);
        speed_mps[0] = fmin(speed_mps[0], scenario->ego.speed_mps);
        speed_mps[1] = fmax(speed_mps[1], scenario->ego.speed_mps);
        horizon = scenario->horizon_ticks > horizon ? scenario->horizon_ticks : horizon;
    }
    fprintf(
        out,
        "\n## Envelope that was reached\n\nScenarios: friction %.2f to %.2f (patches apart), "
        "visibility %.0f to %.0f m, ego's speed at the start %.0f to %.0f km/h, up to %.0f s.\n",
        friction[0], friction[1], sight_m[0], sight_m[1], 3.6 * speed_mps[0], 3.6 * speed_mps[1],
        horizon / 10.0);
    struct envelope reached = {0};
    uint32_t count = request->summary != NULL ? request->summary->outcome_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kept_outcome *outcome = &request->summary->outcomes[i];
        if (outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL) {
            reach(&reached, outcome);
        }
    }
    if (reached.rollouts > 0) {
        fprintf(out,
                "Results: %u rollouts, %llu ticks, speed up to %.0f km/h, braking (smoothed) up to "
                "%.1f m/s2, jerk (smoothed) up to %.1f m/s3.\n",
                reached.rollouts, (unsigned long long)reached.ticks, 3.6 * reached.speed_max_mps,
                -reached.accel_min_mps2, reached.jerk_max_mps3);
    }
    if (request->summary != NULL) {
        write_invalid(request);
    }
}
