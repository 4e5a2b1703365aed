/*
 * Chapters of the dossier that come from outcomes.
 */
#include "report/dossier/dossier.h"

#include "base/check.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LISTED_MAX = 200, DISTINCT_MAX = 32 };

void dossier_put(const char *text, FILE *out)
{
    char shown[4 * LIMIT_SPEC_BYTES];
    text_escape(text, TEXT_LINE, shown, sizeof shown);
    for (const char *at = shown; *at != '\0'; at++) {
        if (strchr("\\`*[]<>|#&~", *at) != NULL) {
            fputc('\\', out);
        }
        fputc(*at, out);
    }
}

static bool is_main(const struct outcome *outcome)
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
                          const struct outcome *outcome, struct dossier_match *match)
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

typedef void (*field)(const struct outcome *outcome, char out[LIMIT_SPEC_BYTES]);

static void planner_of(const struct outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%.900s (%.12s)", outcome->planner, outcome->planner_hash);
}

static void world_of(const struct outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%s on %s%s%.12s%s%s", tier_names[outcome->tier],
             outcome->backend, outcome->model_hash[0] != '\0' ? ", model " : "",
             outcome->model_hash, outcome->sampler[0] != '\0' ? ", " : "", outcome->sampler);
}

static void revision_of(const struct outcome *outcome, char out[LIMIT_SPEC_BYTES])
{
    snprintf(out, LIMIT_SPEC_BYTES, "%.12s", outcome->revision);
}

static void seed_of(const struct outcome *outcome, char out[LIMIT_SPEC_BYTES])
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
        const struct outcome *outcome = &request->summary->outcomes[i];
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
        fputs(i > 0 ? "; " : "", request->out);
        dossier_put(seen[i], request->out);
    }
    fputs(more ? "; and more |\n" : " |\n", request->out);
}

/* ", WORD 2026-11-23 23:50 UTC", or nothing of a time that no calendar has. */
static void put_date(const char *word, int64_t seconds, FILE *out)
{
    char date[32];
    time_t at = (time_t)seconds;
    struct tm utc;
    if (seconds > 0 && gmtime_r(&at, &utc) != NULL &&
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &utc) > 0) {
        fprintf(out, ", %s%s UTC", word, date);
    }
}

void dossier_write_identity(const struct dossier_request *request,
                            const struct dossier_match *match)
{
    FILE *out = request->out;
    fputs("\n## What was examined\n\n| | |\n|---|---|\n| suite | ", out);
    dossier_put(request->suite_path, out);
    fprintf(out, ", %u concrete scenarios of %u logical ones |\n| content of the suite | %s |\n",
            request->suite->entry_count, request->coverage->logical_count, request->suite->hash);
    fprintf(out, "| written by | swerve %s, simulation sources %.12s", request->version,
            request->revision);
    put_date("", request->written_s, out);
    fputs(" |\n", out);
    if (request->summary == NULL) {
        fputs("| results | none: no store was named |\n", out);
        return;
    }
    fputs("| results | suite ", out);
    dossier_put(request->store_suite, out);
    fputs(" of store ", out);
    dossier_put(request->store_url, out);
    put_date("submitted ", request->summary->status.submitted_s, out);
    fputs(" |\n", out);
    write_distinct(request, "planner", planner_of);
    write_distinct(request, "world", world_of);
    write_distinct(request, "simulation sources of the results", revision_of);
    write_distinct(request, "seeds", seed_of);
    fprintf(
        out,
        "| scenarios of the suite with a result | %u of %u |\n| made again, bit for bit | `swerve "
        "replay --all --store URL` |\n",
        match->driven, request->suite->entry_count);
}

/* ---- results ---- */

static void write_rate(const struct dossier_request *request, const struct summary_row *row,
                       int tier)
{
    struct rate_estimate at = rate_estimate(&row->rate[tier]);
    FILE *out = request->out;
    if (at.cases == 0) {
        return;
    }
    fputs("| ", out);
    dossier_put(row->group, out);
    fputs(row->value[0] != '\0' ? " " : "", out);
    dossier_put(row->value, out);
    fprintf(out, " | %s | %.1f%% | %.1f to %.1f%% | %.1f to %.1f%% | %lld | %lld | %lld | %lld |\n",
            tier_names[tier], 100 * at.value, rate_down(100 * at.low, 0.1),
            rate_up(100 * at.high, 0.1), 100 * at.worst, 100 * at.best, (long long)at.drives,
            (long long)at.cases, (long long)at.logical, (long long)at.missing);
}

/* All rows of a group, or the whole; a rate for each world. */
static void write_rates(const struct dossier_request *request, const char *group)
{
    const struct summary *summary = request->summary;
    for (int tier = 0; tier < TIER_COUNT && group == NULL; tier++) {
        write_rate(request, &summary->total, tier);
    }
    for (uint32_t i = 0; i < summary->row_count && group != NULL; i++) {
        for (int tier = 0; tier < TIER_COUNT && strcmp(summary->rows[i].group, group) == 0;
             tier++) {
            write_rate(request, &summary->rows[i], tier);
        }
    }
}

static void write_not_passed(const struct dossier_request *request)
{
    const struct summary *summary = request->summary;
    FILE *out = request->out;
    uint32_t listed = 0;
    uint32_t all = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct outcome *outcome = &summary->outcomes[i];
        if (!is_main(outcome) || outcome->verdict == VERDICT_PASS || all++ >= LISTED_MAX) {
            continue;
        }
        fputs(listed++ == 0 ? "\nMain lines that did not pass:\n\n"
                              "| scenario | seed | verdict | why | again |\n|---|---|---|---|---|\n"
                            : "",
              out);
        fputs("| ", out);
        dossier_put(outcome->scenario_id, out);
        fprintf(out, " | %llu | %s | ", (unsigned long long)outcome->seed,
                verdict_names[outcome->verdict]);
        char reasons[REASONS_TEXT_BYTES];
        fputs(reasons_text(outcome->reasons, ", ", reasons), out);
        dossier_put(outcome->health_check, out);
        fprintf(out, " | `swerve replay %lld` |\n", (long long)outcome->id);
    }
    if (all == 0) {
        fputs("\nEvery main line passed.\n", out);
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
    fputs("\n## Results and their uncertainty\n\n", out);
    if (summary == NULL) {
        fputs("None: no store was named.\n", out);
        return;
    }
    fputs(SUMMARY_PURPOSE_TEXT
          " Each scenario counts once; the interval takes logical scenarios for what is drawn; "
          "the range takes what has no result for failed, and for passed. Worlds are not "
          "pooled. " SUMMARY_COVERAGE_TEXT " Each drive: `swerve show --all --store URL`.\n",
          out);
    summary_seeds_text(summary, seeds);
    fprintf(out, "%s%s%s", seeds[0] != '\0' ? "\n" : "", seeds, seeds[0] != '\0' ? "\n" : "");
    fputs("\n| group | world | passed | 95% interval | range | drives | scenarios | logical | no "
          "result |\n|---|---|---|---|---|---|---|---|---|\n",
          out);
    write_rates(request, NULL);
    for (size_t i = 0; i < COUNT_OF(groups); i++) {
        write_rates(request, groups[i]);
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

static void reach(struct envelope *envelope, const struct outcome *outcome)
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
        const struct outcome *outcome = &request->summary->outcomes[i];
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
