/*
 * swerve status, report, cancel: questions and orders about the suites of a store.
 */
#include "cli/careful_answers.h"
#include "cli/cli.h"
#include "report/draw/draw_frames.h"
#include "report/report.h"
#include "report/summary.h"

#include "base/array.h"
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "store/api/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUITES_MAX = 1000, HASH_DIGITS_MIN = 6 };

struct suite_query {
    const char *store_url;
    const char *suite; /* NULL: the newest, or all for `status` */
    const char *report;
    bool json;
    /* Of `status`: suites that are meant, NULL: any; and one line a rate instead of all. */
    const char *name;
    const char *tag;
    const char *planner; /* its spec, or how its hash begins */
    bool trend;
};

#define QUERY_ROWS(query)                                                                        \
    {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &(query).store_url}, \
    {                                                                                            \
        "--json", NULL, "print one JSON object", .flag = &(query).json                           \
    }

enum { PLANNER_RATES_MAX = 256 };

/* Rates of a suite of several planners. */
struct planner_rates {
    uint32_t count;
    struct store_planner_mains rows[PLANNER_RATES_MAX];
};

static json_t *row_json(const struct store_mains *mains)
{
    json_t *row = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "scenarios", (json_int_t)mains->scenarios,
        "logical_scenarios", (json_int_t)mains->logical, "no_answer", (json_int_t)mains->no_answer,
        "cancelled", (json_int_t)mains->cancelled, "waiting", (json_int_t)mains->waiting, "rate",
        json_finite_new(mains->rate), "if_missing_fail", json_finite_new(mains->worst),
        "if_missing_pass", json_finite_new(mains->best));
    for (int v = 0; v < VERDICT_COUNT; v++) {
        json_object_set_new(row, verdict_names[v], json_integer((json_int_t)mains->verdicts[v]));
    }
    return row;
}

/* By tier, as pass_rates of `run --json`; "pass_rate" where there is one planner and one tier; of
 * several planners by planner, then tier. */
static void mains_json(json_t *json, const struct store_suite_status *status,
                       const struct planner_rates *rates)
{
    json_t *by_tier = json_object();
    json_t *by_planner = json_object();
    int rated = 0;
    double rate = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        const struct store_mains *mains = &status->mains[tier];
        if (mains->scenarios + progress_lacking(mains) > 0) {
            json_object_set_new(by_tier, tier_names[tier], row_json(mains));
            rated++;
            rate = mains->rate;
        }
    }
    for (uint32_t i = 0; i < rates->count; i++) {
        const struct store_planner_mains *row = &rates->rows[i];
        if (json_object_get(by_planner, row->planner) == NULL) {
            json_object_set_new(by_planner, row->planner, json_object());
        }
        json_object_set_new(json_object_get(by_planner, row->planner), tier_names[row->tier],
                            row_json(&row->mains));
    }
    json_object_set_new(json, "main_lines", by_tier);
    json_object_set_new(json, "main_lines_by_planner", by_planner);
    json_object_set_new(json, "pass_rate", rated == 1 ? json_finite_new(rate) : json_null());
}

static void progress_json(json_t *json, const struct store_suite_status *status,
                          const struct planner_rates *rates)
{
    char text[32] = "";
    struct tm parts;
    time_t submitted = (time_t)status->submitted_s;
    if (submitted > 0 && gmtime_r(&submitted, &parts) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    json_object_set_new(json, "planner", json_string(status->planner));
    json_object_set_new(json, "planner_count", json_integer((json_int_t)status->planner_count));
    json_object_set_new(json, "submitted", submitted > 0 ? json_string(text) : json_null());
    mains_json(json, status, rates);
    json_object_set_new(json, "ticks_planned", json_integer((json_int_t)status->ticks_planned));
    json_object_set_new(json, "ticks_ended", json_integer((json_int_t)status->ticks_ended));
    json_object_set_new(json, "ticks_running", json_integer((json_int_t)status->ticks_running));
    json_object_set_new(json, "eta_s",
                        status->eta_ms >= 0 && store_jobs_open(status) > 0
                            ? json_real((double)status->eta_ms / 1e3)
                            : json_null());
}

/* The next of names with ", " between them, *bytes long, behind which *at goes on; NULL: none. */
static const char *next_name(const char **at, size_t *bytes)
{
    const char *name = *at;
    *bytes = strcspn(name, ",");
    *at += *bytes;
    *at += strspn(*at, ", ");
    return *bytes > 0 ? name : NULL;
}

static json_t *names_json(const char *names)
{
    json_t *list = json_array();
    const char *name;
    size_t bytes;
    while ((name = next_name(&names, &bytes)) != NULL) {
        json_array_append_new(list, json_stringn(name, bytes));
    }
    return list;
}

static void labels_json(json_t *json, const struct store_suite_status *status)
{
    json_object_set_new(json, "planner_hash", json_string(status->planner_hash));
    json_object_set_new(json, "rig", json_string(status->rig));
    json_object_set_new(json, "commit", json_string(status->commit));
    json_object_set_new(json, "note", json_string(status->note));
    json_object_set_new(json, "tags", names_json(status->tags));
    json_object_set_new(json, "baselines", names_json(status->baselines));
}

static json_t *status_json(const char *id, const struct store_suite_status *status,
                           const struct planner_rates *rates)
{
    json_t *json = json_object();
    json_object_set_new(json, "suite", json_string(id));
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        json_object_set_new(json, job_state_names[i], json_integer((json_int_t)status->jobs[i]));
    }
    json_object_set_new(json, "rollouts", json_integer((json_int_t)status->rollouts_total));
    for (int i = 0; i < VERDICT_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "rollouts_%s", verdict_names[i]);
        json_object_set_new(json, name, json_integer((json_int_t)status->rollouts[i]));
    }
    json_object_set_new(json, "rollouts_audit", json_integer((json_int_t)status->rollouts_audit));
    json_object_set_new(json, "audits_dead", json_integer((json_int_t)status->audits_dead));
    json_object_set_new(json, "unstarted_hosts", json_integer((json_int_t)status->unstarted_hosts));
    json_object_set_new(json, "unstarted", json_string(status->unstarted));
    progress_json(json, status, rates);
    labels_json(json, status);
    json_object_set_new(json, "tflop", json_real((double)status->mflop / 1e6));
    json_object_set_new(json, "miles",
                        json_real((double)status->metres_mm / (double)MM_PER_M / M_PER_MILE));
    json_object_set_new(json, "billed_usd",
                        json_real((double)status->cost_uusd / (double)UUSD_PER_USD));
    summary_budget_json(status, json);
    json_object_set_new(json, "class", json_string(suite_class_names[status->of_class]));
    json_object_set_new(json, "jobs_handed_back",
                        json_integer((json_int_t)status->jobs_handed_back));
    return json;
}

/* A rate, and what it would be with all that has no result failed, or passed. */
static void rate_line(const char *planner, enum tier tier, const struct store_mains *mains)
{
    if (mains->scenarios + progress_lacking(mains) - mains->waiting == 0) { /* nothing ended */
        return;
    }
    text_print(stdout, "  %s%s%s: main lines of %lld scenario%s, of %lld logical", planner,
               planner[0] != '\0' ? ", " : "", tier_names[tier], (long long)mains->scenarios,
               mains->scenarios == 1 ? "" : "s", (long long)mains->logical);
    if (mains->scenarios > 0) {
        text_print(stdout, ", pass in %.1f%%", 100 * mains->rate);
    }
    if (progress_lacking(mains) > 0) {
        const int64_t lacking[SUMMARY_LACK_COUNT] = {
            mains->verdicts[VERDICT_FLAGGED], mains->verdicts[VERDICT_INVALID], mains->no_answer,
            mains->cancelled, mains->waiting};
        char names[SUMMARY_SEEDS_BYTES];
        text_print(stdout, "; %lld without a result (%s): %.1f%% to %.1f%%",
                   (long long)progress_lacking(mains), summary_lacking_text(lacking, names),
                   100 * mains->worst, 100 * mains->best);
    }
    text_print(stdout, "\n");
}

static void rate_lines(const char *id, const struct store_suite_status *status,
                       const struct planner_rates *rates)
{
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        rate_line("", (enum tier)tier, &status->mains[tier]);
    }
    for (uint32_t i = 0; i < rates->count; i++) {
        rate_line(rates->rows[i].planner, rates->rows[i].tier, &rates->rows[i].mains);
    }
    if (rates->count == PLANNER_RATES_MAX) {
        text_print(stdout, "  further rates: swerve report %s\n", id);
    }
}

/* Whose planner, since when, how far. */
static void progress_line(const struct store_suite_status *status)
{
    char text[PROGRESS_TEXT_BYTES];
    char date[CLI_DATE_BYTES];
    text_print(stdout, "  %s", status->planner_count > 0 ? status->planner : "no planner yet");
    if (status->planner_count > 1) {
        text_print(stdout, " and %lld more", (long long)status->planner_count - 1);
    }
    if (status->submitted_s > 0) {
        text_print(stdout, "  since %s", cli_date(status->submitted_s, date));
    }
    if (store_jobs_open(status) > 0 && status->ticks_planned > 0) {
        text_print(stdout, "  %.0f%% of ticks", floor(100.0 * progress_share(status)));
    }
    if (store_jobs_open(status) > 0) {
        text_print(stdout, "  ETA %s", progress_eta_text(status->eta_ms, text));
    }
    text_print(stdout, "\n");
}

/* Labels of the run, and where it came from. */
static void label_line(const struct store_suite_status *status)
{
    const struct {
        const char *what, *text;
    } rows[] = {{"baseline", status->baselines},
                {"tags", status->tags},
                {"commit", status->commit},
                {"note", status->note}};
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].text[0] != '\0') {
            text_print(stdout, "  %s: %s", rows[i].what, rows[i].text);
            any = true;
        }
    }
    if (any) {
        text_print(stdout, "\n");
    }
}

static void status_line(const char *id, const struct store_suite_status *status,
                        const struct planner_rates *rates)
{
    text_print(stdout, "%-48s", id);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (status->jobs[i] > 0) {
            text_print(stdout, "  %lld %s", (long long)status->jobs[i], job_state_names[i]);
        }
    }
    if (status->rollouts[VERDICT_INVALID] > 0) {
        text_print(stdout, "  %lld rollout%s invalid", (long long)status->rollouts[VERDICT_INVALID],
                   summary_plural(status->rollouts[VERDICT_INVALID]));
    }
    if (status->rollouts_audit > 0) {
        text_print(stdout, "  %lld rollout%s in no rate: audits, futures, goldens, clips",
                   (long long)status->rollouts_audit, summary_plural(status->rollouts_audit));
    }
    char bill[SUMMARY_MONEY_BYTES];
    text_print(stdout, "  %.2f miles  bill: %s\n",
               (double)status->metres_mm / (double)MM_PER_M / M_PER_MILE,
               summary_uusd_text(status->cost_uusd, bill));
    progress_line(status);
    if (status->of_class != SUITE_REGRESSION && status->of_class != SUITE_CLASS_SAME) {
        text_print(stdout, "  class %s\n", suite_class_names[status->of_class]);
    }
    if (status->jobs_handed_back > 0) {
        text_print(stdout, "  handed back %lld time%s for suites of a higher class\n",
                   (long long)status->jobs_handed_back, summary_plural(status->jobs_handed_back));
    }
    if (status->budget_uusd > 0) {
        char budget[SUMMARY_BUDGET_BYTES];
        text_print(stdout, "  %s\n", summary_budget_text(status, budget));
    }
    label_line(status);
    rate_lines(id, status, rates);
    if (status->unstarted_hosts > 0 && store_jobs_open(status) > 0) {
        text_print(stdout, "  a planner does not start on %lld host%s, such as %s\n",
                   (long long)status->unstarted_hosts, status->unstarted_hosts == 1 ? "" : "s",
                   status->unstarted);
    }
}

/* Losses by damaged logs, whoever owns the store and whenever it was opened. */
static enum status commits_lost(struct store *store, int64_t *count, struct error *error)
{
    *count = 0;
    enum status status = store->ops->commits_lost(store, count, error);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status; /* an older server does not say */
}

static bool has_name(const char *names, const char *wanted)
{
    const char *name;
    size_t bytes;
    while ((name = next_name(&names, &bytes)) != NULL) {
        if (bytes == strlen(wanted) && strncmp(name, wanted, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_meant(const struct suite_query *query, const struct store_suite_status *status)
{
    bool tagged = query->tag == NULL || has_name(status->tags, query->tag);
    if (query->planner == NULL || !tagged || strcmp(query->planner, status->planner) == 0) {
        return tagged;
    }
    size_t bytes = strlen(query->planner);
    return bytes >= HASH_DIGITS_MIN && strncmp(status->planner_hash, query->planner, bytes) == 0;
}

/* ---- rates over time ---- */

/* One series for each suite, planner, rig and world, whose rates can be held against each other.
 * Suites are one where they are runs of one name. */
struct trend {
    uint32_t count;
    struct trend_row *rows; /* owned */
};

struct trend_row {
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

static enum status add_row(struct trend *trend, const char *suite_id,
                           const struct store_suite_status *status, const char *planner,
                           enum tier tier, const struct store_mains *mains, struct error *error)
{
    if (mains->scenarios == 0) {
        return STATUS_OK;
    }
    TRY(array_room(&trend->rows, trend->count, sizeof *trend->rows, error));
    struct trend_row *row = &trend->rows[trend->count++];
    *row = (struct trend_row){.submitted_s = status->submitted_s, .tier = tier, .mains = *mains};
    snprintf(row->suite, sizeof row->suite, "%s", suite_id);
    cli_run_name(suite_id, row->name);
    snprintf(row->planner, sizeof row->planner, "%s", planner);
    memcpy(row->planner_hash, status->planner_hash, sizeof row->planner_hash);
    memcpy(row->rig, status->rig, sizeof row->rig);
    memcpy(row->commit, status->commit, sizeof row->commit);
    memcpy(row->note, status->note, sizeof row->note);
    return STATUS_OK;
}

/* Takes the rates of a run, to be called from the oldest to the newest: those of its status, and of
 * a suite of several planners each one's. */
static enum status trend_add(struct trend *trend, const char *suite_id,
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

static bool is_one_series(const struct trend_row *a, const struct trend_row *b)
{
    return a->tier == b->tier && strcmp(a->name, b->name) == 0 &&
           strcmp(a->planner, b->planner) == 0 && strcmp(a->rig, b->rig) == 0;
}

static void print_row(const struct trend_row *row, double before)
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

static void print_series(const struct trend *trend, uint32_t first)
{
    const struct trend_row *head = &trend->rows[first];
    double before = NAN;
    text_print(stdout, "%s, %s, ", head->name, head->planner);
    if (head->rig[0] != '\0') {
        text_print(stdout, "rig %.12s, ", head->rig);
    }
    text_print(stdout, "world %s\n", tier_names[head->tier]);
    for (uint32_t i = first; i < trend->count; i++) {
        struct trend_row *row = &trend->rows[i];
        if (!row->printed && is_one_series(row, head)) {
            print_row(row, before);
            before = row->mains.rate;
            row->printed = true;
        }
    }
}

/* Series behind each other, named, oldest rate first, and how far each moved. */
static void print_trend(const struct trend *trend)
{
    text_print(stdout, "  %-23s  %-32s  %-12s  %-12s  %5s  %7s  %6s  %s\n", "submitted", "run",
               "planner", "commit", "count", "pass", "points", "range, where some have no result");
    for (uint32_t i = 0; i < trend->count; i++) {
        if (!trend->rows[i].printed) {
            print_series(trend, i);
        }
    }
}

/* ---- suites that are meant ---- */

/* Asks for the suites that are meant, and shows each: newest first, of a trend last. */
static enum status show_suites(const struct suite_query *query, struct store *store,
                               char (*ids)[LIMIT_ID_BYTES], uint32_t count, json_t *list,
                               struct planner_rates *rates, struct trend *trend,
                               struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *id = ids[query->trend ? count - 1 - i : i];
        struct store_suite_status suite;
        if (query->name != NULL && !cli_is_run_of(id, query->name)) {
            continue;
        }
        TRY(store->ops->suite_status(store, id, &suite, error));
        if (!is_meant(query, &suite)) {
            continue;
        }
        rates->count = 0;
        if (suite.planner_count > 1) {
            enum status told =
                store->ops->mains(store, id, rates->rows, PLANNER_RATES_MAX, &rates->count, error);
            if (told != STATUS_OK && told != STATUS_NOT_FOUND) { /* an earlier server has none */
                return told;
            }
        }
        if (query->json) {
            json_array_append_new(list, status_json(id, &suite, rates));
        } else if (query->trend) {
            TRY(trend_add(trend, id, &suite, rates->rows, rates->count, error));
        } else {
            status_line(id, &suite, rates);
        }
    }
    return STATUS_OK;
}

static enum status print_status(const struct suite_query *query, struct store *store,
                                struct error *error)
{
    static char ids[SUITES_MAX][LIMIT_ID_BYTES];
    uint32_t count = 0;
    enum status status = STATUS_OK;
    if (query->suite != NULL) {
        status = cli_suite_id(store, cli_store_url(query->store_url), query->suite, ids[0], error);
        count = 1;
    } else {
        status = store->ops->suites(store, ids, SUITES_MAX, &count, error);
    }
    json_t *list = json_array();
    struct planner_rates *rates = malloc(sizeof *rates);
    THEN(status, memory_check(rates, error, "status: out of memory"));
    struct trend trend = {0};
    THEN(status, show_suites(query, store, ids, count, list, rates, &trend, error));
    if (status == STATUS_OK && query->trend && !query->json) {
        print_trend(&trend);
    }
    free(trend.rows);
    free(rates);
    int64_t lost = 0;
    THEN(status, commits_lost(store, &lost, error));
    if (status == STATUS_OK && !query->json && lost > 0) {
        text_print(stdout,
                   "damaged logs took %lld acknowledged commits away: what they held is lost, and "
                   "can be submitted again (`swerve check` says more)\n",
                   (long long)lost);
    }
    if (status == STATUS_OK && query->json) {
        status = cli_write_json(
            json_pack("{s:O, s:I}", "suites", list, "commits_lost", (json_int_t)lost), error);
    }
    json_decref(list);
    return status;
}

static enum status print_report(const struct suite_query *query, struct store *store,
                                struct error *error)
{
    char id[LIMIT_ID_BYTES];
    struct summary summary = {0};
    struct careful_answers answers = careful_answers_begin();
    const char *url = cli_store_url(query->store_url);
    enum status status = cli_suite_id(store, url, query->suite, id, error);
    if (status == STATUS_OK && query->report != NULL) {
        status = report_check(query->report, error);
    }
    THEN(status, summary_load(store, id, &summary, error));
    if (status == STATUS_OK && query->report != NULL) {
        status = report_write(store, cli_store_url(query->store_url), id, &summary,
                              &answers.careful, draw_frames, query->report, error);
    }
    json_t *careful = NULL;
    if (status == STATUS_OK && query->json) {
        status = careful_answers_json(&answers, store, &summary, &careful, error);
    }
    if (status == STATUS_OK && query->json) {
        json_t *json = summary_json(&summary);
        if (json != NULL) {
            json_object_set(json, "careful", careful);
            json_object_set_new(json, "suite", json_string(id));
            json_object_set_new(json, "store", json_string(cli_store_url(query->store_url)));
        }
        status = cli_write_json(json, error);
    } else if (status == STATUS_OK) {
        summary_print(&summary, stdout);
        status = summary_print_dead(store, id, &summary, stdout, error);
        text_print(stdout, "\nsuite %s\n", id);
        if (query->report != NULL) {
            text_print(stdout, "report: %s\n", query->report);
        }
    }
    json_decref(careful);
    careful_answers_end(&answers);
    summary_finish(&summary);
    return status;
}

static enum status cancel_suite(const struct suite_query *query, struct store *store,
                                struct error *error)
{
    int64_t count = 0;
    TRY(store->ops->cancel(store, query->suite, &count, error));
    if (query->json) {
        return cli_write_json(
            json_pack("{s:s, s:I}", "suite", query->suite, "cancelled", (json_int_t)count), error);
    }
    text_print(stdout, "%s: %lld jobs cancelled\n", query->suite, (long long)count);
    return STATUS_OK;
}

static int with_store(const struct suite_query *query,
                      enum status (*act)(const struct suite_query *, struct store *,
                                         struct error *))
{
    struct error error;
    struct store *store = NULL;
    enum status status = cli_store_open(query->store_url, &store, &error);
    THEN(status, act(query, store, &error));
    cli_store_close(store);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}

int command_status(int argc, char **argv)
{
    struct suite_query query = {0};
    const struct cli_option rows[] = {
        QUERY_ROWS(query),
        {"--name", "NAME", "runs of this name (run --name)", .text = &query.name},
        {"--tag", "NAME", "runs with this tag (run --tag)", .text = &query.tag},
        {"--planner", "SPEC|HASH", "runs of this planner, or of one whose hash begins so",
         .text = &query.planner},
        {"--trend", NULL, "rates of one suite, planner, rig and world behind each other",
         .flag = &query.trend},
    };
    const struct cli_command command = {
        "status",
        "[SUITE] [--name NAME] [--tag NAME] [--planner SPEC] [--trend] --store URL",
        "Suites of a store and how far they are: the newest 1,000, or those of them that are "
        "meant.",
        CLI_ROWS(rows, 0, 1),
    };
    CLI_PARSE(&command, argc, argv, &query.suite, NULL);
    return with_store(&query, print_status);
}

int command_report(int argc, char **argv)
{
    struct suite_query query = {0};
    const struct cli_option rows[] = {
        QUERY_ROWS(query),
        {"--report", "FILE.html", "write the self-contained report", .text = &query.report},
        {"--output", "FILE.html", "the same, also -o", .text = &query.report},
    };
    const struct cli_command command = {
        "report",
        "[SUITE] --store URL",
        "Tables and report of a suite (the newest).",
        CLI_ROWS(rows, 0, 1),
    };
    CLI_PARSE(&command, argc, argv, &query.suite, NULL);
    return with_store(&query, print_report);
}

int command_cancel(int argc, char **argv)
{
    struct suite_query query = {0};
    const struct cli_option rows[] = {QUERY_ROWS(query)};
    const struct cli_command command = {
        "cancel",
        "SUITE --store URL",
        "Cancels what a suite has not finished.",
        CLI_ROWS(rows, 1, 1),
    };
    CLI_PARSE(&command, argc, argv, &query.suite, NULL);
    return with_store(&query, cancel_suite);
}
