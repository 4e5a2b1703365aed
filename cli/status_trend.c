/*
 * Rates of runs over time. See status_trend.h.
 */
#include "cli/status_trend.h"

#include "base/array.h"
#include "base/text.h"
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct status_trend_row {
    char suite[LIMIT_ID_BYTES]; /* its id */
    char name[LIMIT_ID_BYTES];  /* that its runs have in common */
    char planner[LIMIT_SPEC_BYTES];
    char planner_hash[SHA256_HEX_BYTES];
    char rig[SHA256_HEX_BYTES];
    char commit[LABEL_BYTES];
    char note[LABEL_BYTES];
    int64_t submitted_s;
    enum tier tier;
    struct store_mains mains;
    bool printed;
};

/* "NAME-78370180" is a run of NAME; of other ids the whole. */
static void run_name(const char *id, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "%s", id);
    for (char *at = strrchr(out, '-'); at != NULL; at = strrchr(out, '-')) {
        *at = '\0';
        if (cli_is_run_of(id, out)) {
            return;
        }
    }
    snprintf(out, LIMIT_ID_BYTES, "%s", id);
}

static enum status add_row(struct status_trend *trend, const char *suite_id,
                           const struct store_suite_status *status, const char *planner,
                           enum tier tier, const struct store_mains *mains, struct error *error)
{
    if (mains->scenarios == 0) {
        return STATUS_OK;
    }
    TRY(array_room(&trend->rows, trend->count, sizeof *trend->rows, error));
    struct status_trend_row *row = &trend->rows[trend->count++];
    *row = (struct status_trend_row){
        .submitted_s = status->submitted_s, .tier = tier, .mains = *mains};
    snprintf(row->suite, sizeof row->suite, "%s", suite_id);
    run_name(suite_id, row->name);
    snprintf(row->planner, sizeof row->planner, "%s", planner);
    memcpy(row->planner_hash, status->planner_hash, sizeof row->planner_hash);
    memcpy(row->rig, status->rig, sizeof row->rig);
    memcpy(row->commit, status->commit, sizeof row->commit);
    memcpy(row->note, status->note, sizeof row->note);
    return STATUS_OK;
}

enum status status_trend_add(struct status_trend *trend, const char *suite_id,
                             const struct store_suite_status *status,
                             const struct store_planner_mains *planners, uint32_t planner_count,
                             struct error *error)
{
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        TRY(add_row(trend, suite_id, status, status->planner, (enum tier)tier, &status->mains[tier],
                    error));
    }
    for (uint32_t i = 0; i < planner_count; i++) {
        TRY(add_row(trend, suite_id, status, planners[i].planner, planners[i].tier,
                    &planners[i].mains, error));
    }
    return STATUS_OK;
}

static bool is_one_series(const struct status_trend_row *a, const struct status_trend_row *b)
{
    return a->tier == b->tier && strcmp(a->name, b->name) == 0 &&
           strcmp(a->planner, b->planner) == 0 && strcmp(a->rig, b->rig) == 0;
}

static void print_row(const struct status_trend_row *row, double before)
{
    char date[CLI_DATE_BYTES];
    char moved[16] = "-";
    char range[24] = "-";
    if (isfinite(before)) {
        snprintf(moved, sizeof moved, "%+.1f", 100 * (row->mains.rate - before));
    }
    if (row->mains.best > row->mains.worst) {
        snprintf(range, sizeof range, "%.1f to %.1f%%", 100 * row->mains.worst,
                 100 * row->mains.best);
    }
    text_print(stdout, "  %-23s  %-32s  %-12.12s  %-12.12s  %5lld  %6.1f%%  %6s  %s%s%s\n",
               cli_date(row->submitted_s, date), row->suite,
               row->planner_hash[0] != '\0' ? row->planner_hash : "-",
               row->commit[0] != '\0' ? row->commit : "-", (long long)row->mains.scenarios,
               100 * row->mains.rate, moved, range, row->note[0] != '\0' ? "  " : "", row->note);
}

static void print_series(const struct status_trend *trend, uint32_t first)
{
    const struct status_trend_row *head = &trend->rows[first];
    double before = NAN;
    text_print(stdout, "%s, %s, ", head->name, head->planner);
    if (head->rig[0] != '\0') {
        text_print(stdout, "rig %.12s, ", head->rig);
    }
    text_print(stdout, "world %s\n", tier_names[head->tier]);
    for (uint32_t i = first; i < trend->count; i++) {
        struct status_trend_row *row = &trend->rows[i];
        if (!row->printed && is_one_series(row, head)) {
            print_row(row, before);
            before = row->mains.rate;
            row->printed = true;
        }
    }
}

void status_trend_print(const struct status_trend *trend)
{
    text_print(stdout, "  %-23s  %-32s  %-12s  %-12s  %5s  %7s  %6s  %s\n", "submitted", "run",
               "planner", "commit", "count", "pass", "points", "range, where some have no result");
    for (uint32_t i = 0; i < trend->count; i++) {
        if (!trend->rows[i].printed) {
            print_series(trend, i);
        }
    }
}

void status_trend_finish(struct status_trend *trend)
{
    free(trend->rows);
    *trend = (struct status_trend){0};
}
