/*
 * Counting. Rows are few (slice values), so they are found linearly and sorted once.
 */
#include "report/summary.h"
#include "report/meters.h"

#include "base/array.h"
#include "base/units.h"
#include "schemas/scenario_json.h"
#include "store/api/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMMARY_LEDGER_ROWS_MAX = 256 };

const char *const summary_groups[SUMMARY_GROUPS] = {
    "scenario_type",   "road", "weather", "light", "actor", "geography",
    "safety_critical", "tier", "model",   "given", "rig",   "planner"};

static int group_rank(const char *group)
{
    for (int i = 0; i < SUMMARY_GROUPS; i++) {
        if (strcmp(summary_groups[i], group) == 0) {
            return i;
        }
    }
    return SUMMARY_GROUPS;
}

bool summary_has_group(const char *group)
{
    return group_rank(group) < SUMMARY_GROUPS;
}

static int compare_rows(const void *a, const void *b)
{
    const struct summary_row *x = a;
    const struct summary_row *y = b;
    int rank = group_rank(x->group) - group_rank(y->group);
    return rank != 0 ? rank : strcmp(x->value, y->value);
}

struct summary_row *summary_row_make(struct summary *summary, const char *group, const char *value)
{
    const struct summary_row *found = summary_row_find(summary, group, value);
    if (found != NULL) {
        return &summary->rows[found - summary->rows];
    }
    if (array_room(&summary->rows, summary->row_count, sizeof *summary->rows, NULL) != STATUS_OK) {
        return NULL;
    }
    struct summary_row *row = &summary->rows[summary->row_count++];
    *row = (struct summary_row){0};
    snprintf(row->group, sizeof row->group, "%s", group);
    snprintf(row->value, sizeof row->value, "%s", value);
    return row;
}

/* ---- rows ---- */

void summary_add_work(struct summary_work *work, const struct kept_outcome *outcome, int64_t ticks,
                      double usd)
{
    work->ticks += ticks;
    work->metres_mm += outcome->metres_mm;
    work->device_ns += outcome->device_ns;
    work->mflop += outcome->mflop;
    work->usd += usd;
    if (outcome->peak_mflops > 0) {
        double device_s = (double)outcome->device_ns / (double)NS_PER_S;
        work->peaked_flop += (double)outcome->mflop * 1e6;
        work->peak_flop += (double)outcome->peak_mflops * 1e6 * device_s;
    }
}

double summary_mfu(const struct summary_work *work)
{
    return work->peak_flop > 0 ? work->peaked_flop / work->peak_flop : NAN;
}

void summary_add_counts(struct summary_row *row, const struct kept_outcome *outcome, double usd)
{
    row->verdicts[outcome->verdict]++;
    row->mains[outcome->verdict] += outcome->branch_id[0] == '\0';
    row->main_total += summary_is_sample(outcome);
    row->main_passed += summary_is_sample(outcome) && outcome->verdict == VERDICT_PASS;
    bool flagged = outcome->verdict == VERDICT_FLAGGED;
    struct summary_work *work = flagged ? &row->flagged : &row->work;
    summary_add_work(work, outcome, (int64_t)outcome->ticks - outcome->prefix_ticks, usd);
    row->prefix_ticks += flagged ? 0 : outcome->prefix_ticks;
    row->learned += summary_is_learned(outcome);
    row->caught += outcome->tier >= TIER_STUDENT && summary_is_caught(outcome);
}

static double device_usd(int64_t device_ns, int64_t price_uusd_per_hour)
{
    return (double)device_ns / (double)NS_PER_HOUR * (double)price_uusd_per_hour /
           (double)UUSD_PER_USD;
}

enum { OUTCOME_ROWS = SLICE_KIND_COUNT + 6 };

/* The rows that an outcome is in, by their places. */
static enum status find_rows(struct summary *summary, const struct kept_outcome *outcome,
                             uint32_t rows[OUTCOME_ROWS], uint32_t *count, struct error *error)
{
    char model[LIMIT_SPEC_BYTES];
    snprintf(model, sizeof model, "%s %.12s %s", tier_names[outcome->tier], outcome->model_hash,
             outcome->sampler);
    const char *names[OUTCOME_ROWS][2] = {
        {"tier", tier_names[outcome->tier]},
        {"safety_critical", outcome->safety_critical ? "true" : "false"},
        {"planner", outcome->planner},
    };
    *count = 3;
    for (int i = 0; i < SLICE_KIND_COUNT; i++, (*count)++) {
        names[*count][0] = slice_names[i];
        names[*count][1] = outcome->slice[i];
    }
    if (outcome->model_hash[0] != '\0') {
        names[*count][0] = "model";
        names[(*count)++][1] = model;
    }
    if (outcome->given[0] != '\0') {
        names[*count][0] = "given";
        names[(*count)++][1] = outcome->given;
    }
    char rig[16];
    if (outcome->rig[0] != '\0') {
        snprintf(rig, sizeof rig, "%.12s", outcome->rig);
        names[*count][0] = "rig";
        names[(*count)++][1] = rig;
    }
    for (uint32_t i = 0; i < *count; i++) {
        struct summary_row *row = summary_row_make(summary, names[i][0], names[i][1]);
        TRY(memory_check(row, error, "summary: out of memory"));
        rows[i] = (uint32_t)(row - summary->rows);
    }
    return STATUS_OK;
}

/* Verdicts, work and rates of all results; each outcome's cost is known. */
static enum status count_outcomes(struct summary *summary, struct error *error)
{
    uint32_t rows[OUTCOME_ROWS];
    uint32_t found = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct summary_place *place = &summary->order[i];
        const struct kept_outcome *outcome = &summary->outcomes[place->index];
        double usd = summary->outcome_usd[place->index];
        TRY(find_rows(summary, outcome, rows, &found, error));
        summary_add_counts(&summary->total, outcome, usd);
        TRY(summary_add_rates(&summary->total, place, outcome, error));
        for (uint32_t k = 0; k < found; k++) {
            summary_add_counts(&summary->rows[rows[k]], outcome, usd);
            TRY(summary_add_rates(&summary->rows[rows[k]], place, outcome, error));
        }
        TRY(summary_add_beside(summary, place, error));
        if (outcome->verdict != VERDICT_FLAGGED) {
            summary->prefix_ticks_saved += outcome->prefix_ticks;
            /* A branch's count begins with its main line's, whose miles are not driven again. */
            summary->interventions +=
                outcome->branch_id[0] == '\0' && outcome->verdict != VERDICT_INVALID
                    ? outcome->metrics.intervention_count
                    : 0;
        }
    }
    return STATUS_OK;
}

/* Cost of each outcome's device time today, the audit jobs' too. */
static enum status price_outcomes(struct store *store, struct summary *summary, struct error *error)
{
    int64_t price_uusd = 0;
    const struct kept_outcome *priced = NULL; /* the last one whose price was looked up */
    for (uint32_t i = 0; i < summary->outcome_count + summary->audit_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (priced == NULL || strcmp(priced->pool, outcome->pool) != 0 ||
            strcmp(priced->backend, outcome->backend) != 0) {
            const char *device = strncmp(outcome->backend, "cuda", 4) == 0 ? "cuda" : "cpu";
            TRY(store->ops->price_get(store, outcome->pool, device, &price_uusd, error));
            priced = outcome;
        }
        summary->outcome_usd[i] = device_usd(outcome->device_ns, price_uusd);
    }
    return STATUS_OK;
}

static enum status add_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct summary *summary = context;
    if (outcome->shadow) {
        return STATUS_OK; /* counts nowhere; `swerve agreement` shows it */
    }
    struct kept_outcome kept = kept_outcome_of(outcome);
    TRY(array_room(&summary->outcomes, summary->outcome_count, sizeof kept, error));
    TRY(kept_texts_take(&summary->texts, &kept, error));
    summary->outcomes[summary->outcome_count++] = kept;
    return STATUS_OK;
}

/* Moves the audit jobs behind the results; both keep their order. */
static enum status part_audits(struct summary *summary, struct error *error)
{
    uint32_t count = summary->outcome_count;
    uint32_t results = 0;
    uint32_t audits = 0;
    for (uint32_t i = 0; i < count; i++) {
        audits += summary->outcomes[i].audit_of != 0;
    }
    struct kept_outcome *kept = malloc((audits > 0 ? audits : 1) * sizeof *kept);
    summary->outcome_usd = calloc(count > 0 ? count : 1, sizeof *summary->outcome_usd);
    if (kept == NULL || summary->outcome_usd == NULL) {
        free(kept);
        return error_set(error, STATUS_NO_MEMORY, "summary: out of memory");
    }
    audits = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (summary->outcomes[i].audit_of != 0) {
            kept[audits++] = summary->outcomes[i];
        } else if (results++ != i) {
            summary->outcomes[results - 1] = summary->outcomes[i];
        }
    }
    if (audits > 0) {
        memcpy(summary->outcomes + results, kept, audits * sizeof *kept);
    }
    free(kept);
    summary->outcome_count = results;
    summary->audit_count = audits;
    return STATUS_OK;
}

static enum status load_ledger(struct store *store, const char *suite_id, struct summary *summary,
                               struct error *error)
{
    summary->ledger = calloc(SUMMARY_LEDGER_ROWS_MAX, sizeof *summary->ledger);
    summary->ledger_usd = calloc(SUMMARY_LEDGER_ROWS_MAX, sizeof *summary->ledger_usd);
    if (summary->ledger == NULL || summary->ledger_usd == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "summary: out of memory");
    }
    enum status status = store->ops->ledger(store, suite_id, summary->ledger,
                                            SUMMARY_LEDGER_ROWS_MAX, &summary->ledger_count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < summary->ledger_count; i++) {
        const struct store_ledger_row *row = &summary->ledger[i];
        int64_t price_uusd = 0;
        status = store->ops->price_get(store, row->pool, row->device, &price_uusd, error);
        summary->ledger_usd[i] = device_usd(row->totals.device_ns, price_uusd);
    }
    return status;
}

/* With several planners, parts of all rows but theirs are named after them. */
static void note_planners(struct summary *summary)
{
    struct summary_row *rows[] = {summary->rows, summary->parameter_rows};
    const uint32_t counts[] = {summary->row_count, summary->parameter_row_count};
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < counts[k]; i++) {
            rows[k][i].planners =
                summary->total.planners && strcmp(rows[k][i].group, "planner") != 0;
        }
    }
}

enum status summary_load(struct store *store, const char *suite_id, struct summary *out,
                         struct error *error)
{
    struct summary summary = {0};
    enum status status = store_outcomes_each(store, suite_id, add_outcome, &summary, error);
    THEN(status, part_audits(&summary, error));
    THEN(status, summary_order(&summary, error));
    THEN(status, load_ledger(store, suite_id, &summary, error));
    THEN(status, store->ops->suite_status(store, suite_id, &summary.status, error));
    THEN(status, price_outcomes(store, &summary, error));
    THEN(status, summary_load_undriven(store, suite_id, &summary, error));
    THEN(status, summary_order_undriven(&summary, error));
    THEN(status, count_outcomes(&summary, error));
    THEN(status, summary_add_undriven(store, &summary, error));
    THEN(status, summary_parameters(&summary, error));
    THEN(status, summary_learned(&summary, error));
    if (status != STATUS_OK) {
        summary_finish(&summary);
        return status;
    }
    snprintf(summary.total.group, sizeof summary.total.group, "all");
    note_planners(&summary);
    for (uint32_t i = 0; i < summary.row_count; i++) {
        const struct summary_row *row = &summary.rows[i];
        if (strcmp(row->group, "tier") == 0 && row->work.ticks > 0) {
            summary.prefix_usd_saved +=
                row->work.usd / (double)row->work.ticks * (double)row->prefix_ticks;
        }
    }
    if (summary.row_count > 0) {
        qsort(summary.rows, summary.row_count, sizeof *summary.rows, compare_rows);
    }
    *out = summary;
    return STATUS_OK;
}

static void free_rows(struct summary_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(rows[i].parts);
    }
    free(rows);
}

void summary_finish(struct summary *summary)
{
    free(summary->total.parts);
    free_rows(summary->rows, summary->row_count);
    free_rows(summary->parameter_rows, summary->parameter_row_count);
    free(summary->undriven);
    free(summary->undriven_order);
    free(summary->parameters);
    free(summary->outcomes);
    kept_texts_finish(&summary->texts);
    free(summary->outcome_usd);
    free(summary->order);
    free(summary->same_as);
    free(summary->flags);
    free(summary->agreement);
    free(summary->pairs);
    free(summary->audited);
    free(summary->ledger);
    free(summary->ledger_usd);
    *summary = (struct summary){0};
}

double summary_miles(const struct summary_row *row)
{
    return (double)row->work.metres_mm / (double)MM_PER_M / M_PER_MILE;
}

const struct summary_row *summary_row_find(const struct summary *summary, const char *group,
                                           const char *value)
{
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (strcmp(row->group, group) == 0 && strcmp(row->value, value) == 0) {
            return row;
        }
    }
    return NULL;
}

const struct summary_row *summary_tier(const struct summary *summary, enum tier tier)
{
    return summary_row_find(summary, "tier", tier_names[tier]);
}

const char *summary_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *summary_plain_text(const char *name, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "%s", name);
    for (char *at = out; (at = strchr(at, '_')) != NULL;) {
        *at = ' ';
    }
    return out;
}

int64_t summary_unfinished(const struct summary *summary)
{
    return store_jobs_open(&summary->status);
}

const char *summary_none_failed_text(const struct summary *summary)
{
    if (summary->total.main_total == 0) {
        return "No main line has a result.";
    }
    bool whole = summary_unfinished(summary) + progress_unanswered(&summary->status) == 0;
    return whole ? "Every main line passed." : "Every main line that has a result passed.";
}

int64_t summary_made(const struct summary *summary)
{
    int64_t made = 0;
    for (uint32_t i = 0; i < summary->audit_count; i++) {
        const struct kept_outcome *at = &summary->outcomes[summary->outcome_count + i];
        made += at->audit_of == at->job_id;
    }
    return made;
}

/* Decimals that leave three significant digits. */
static int decimals(double value)
{
    enum { DECIMALS_MAX = 18 };
    if (!(value > 0)) {
        return 2;
    }
    double wanted = 2 - floor(log10(value));
    return wanted < 0 ? 0 : wanted > DECIMALS_MAX ? DECIMALS_MAX : (int)wanted;
}

const char *summary_number_text(double value, char out[SUMMARY_MONEY_BYTES])
{
    if (isfinite(value)) {
        snprintf(out, SUMMARY_MONEY_BYTES, "%.*f", decimals(value), value);
    } else {
        snprintf(out, SUMMARY_MONEY_BYTES, "-");
    }
    return out;
}

const char *summary_usd_text(double usd, char out[SUMMARY_MONEY_BYTES])
{
    snprintf(out, SUMMARY_MONEY_BYTES, "$%.*f", usd < 0.01 ? decimals(usd) : 2, usd);
    return out;
}

const char *summary_uusd_text(int64_t uusd, char out[SUMMARY_MONEY_BYTES])
{
    snprintf(out, SUMMARY_MONEY_BYTES, "$%lld.%06lld", (long long)(uusd / UUSD_PER_USD),
             (long long)(uusd % UUSD_PER_USD));
    return out;
}

const char *summary_amount_text(int64_t uusd, char out[SUMMARY_MONEY_BYTES])
{
    bool cents = uusd % (UUSD_PER_USD / 100) == 0;
    return cents ? summary_usd_text((double)uusd / (double)UUSD_PER_USD, out)
                 : summary_uusd_text(uusd, out);
}

const char *summary_bill_text(const struct summary *summary, char out[SUMMARY_MONEY_BYTES])
{
    bool driven = false;
    for (uint32_t i = 0; i < summary->ledger_count; i++) {
        driven = driven || summary->ledger_usd[i] > 0;
    }
    if (driven && summary->status.cost_uusd == 0) {
        snprintf(out, SUMMARY_MONEY_BYTES, "under $0.000001");
        return out;
    }
    return summary_uusd_text(summary->status.cost_uusd, out);
}

const char *summary_rate_text(double usd, double miles, char out[SUMMARY_MONEY_BYTES])
{
    if (!(miles > 0)) {
        snprintf(out, SUMMARY_MONEY_BYTES, "-");
        return out;
    }
    double rate = 1000.0 * usd / miles;
    snprintf(out, SUMMARY_MONEY_BYTES, "$%.*f", decimals(rate), rate);
    return out;
}

static int64_t rollouts(const struct summary_row *row)
{
    int64_t sum = 0;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        sum += row->verdicts[v];
    }
    return sum;
}

/* ---- JSON ---- */

static json_t *rate_json(const struct rate *rate)
{
    struct rate_estimate at = rate_estimate(rate);
    json_t *json = json_pack("{s:I, s:I, s:I, s:f, s:f}", "drives", (json_int_t)at.drives,
                             "scenarios", (json_int_t)at.cases, "logical_scenarios",
                             (json_int_t)at.logical, "low", at.low, "high", at.high);
    if (json != NULL && at.cases > 0) {
        json_object_set_new(json, "rate", json_real(at.value));
    }
    return json;
}

/* The rate of a part, with what has no result. */
static json_t *part_json(const struct summary_part *part)
{
    static const char *const names[SUMMARY_LACK_COUNT] = {"flagged", "invalid", "no_answer",
                                                          "cancelled", "waiting"};
    struct rate_estimate at = rate_estimate(&part->rate);
    json_t *json = rate_json(&part->rate);
    for (int k = 0; k < SUMMARY_LACK_COUNT && at.missing > 0; k++) {
        json_object_set_new(json, names[k], json_integer((json_int_t)part->lacking[k]));
    }
    if (at.missing > 0) {
        json_object_set_new(json, "if_missing_fail", json_real(at.worst));
        json_object_set_new(json, "if_missing_pass", json_real(at.best));
    }
    return json;
}

/* {"object": {..}}; of a row of several planners for each of them. */
static json_t *parts_json(const struct summary_row *row, bool planners)
{
    json_t *json = json_object();
    for (uint32_t i = 0; i < row->part_count && planners == row->planners; i++) {
        const struct summary_part *part = &row->parts[i];
        json_t *of = json;
        if (planners && (of = json_object_get(json, part->planner)) == NULL) {
            of = json_object();
            json_object_set_new(json, part->planner, of);
        }
        json_object_set_new(of, tier_names[part->tier], part_json(part));
    }
    return json;
}

json_t *summary_row_json(const struct summary_row *row)
{
    double miles = summary_miles(row);
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "rollouts",
                  (json_int_t)rollouts(row), "passed", (json_int_t)row->verdicts[VERDICT_PASS],
                  "failed", (json_int_t)row->verdicts[VERDICT_FAIL], "flagged",
                  (json_int_t)row->verdicts[VERDICT_FLAGGED], "invalid",
                  (json_int_t)row->verdicts[VERDICT_INVALID], "errors",
                  (json_int_t)row->verdicts[VERDICT_PLANNER_ERROR], "main_rollouts",
                  (json_int_t)row->main_total, "main_passed", (json_int_t)row->main_passed, "ticks",
                  (json_int_t)row->work.ticks, "miles", miles, "usd", row->work.usd);
    if (json_object_set_new(json, "pass_rates", parts_json(row, false)) != 0 ||
        (row->planners &&
         json_object_set_new(json, "pass_rates_by_planner", parts_json(row, true)) != 0)) {
        json_decref(json);
        return NULL;
    }
    /* Tiers and planners are not mixed: with several, only pass_rates has rates. */
    if (summary_row_rates(row) == 1 && !row->planners) {
        struct rate_estimate at = rate_estimate(&summary_row_lowest(row)->rate);
        json_object_set_new(json, "pass_rate", json_real(at.value));
        json_object_set_new(json, "pass_rate_low", json_real(at.low));
        json_object_set_new(json, "pass_rate_high", json_real(at.high));
    }
    if (miles > 0) {
        json_object_set_new(json, "usd_per_mile", json_real(row->work.usd / miles));
    }
    return json;
}

static json_t *ledger_json(const struct summary *summary)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < summary->ledger_count; i++) {
        const struct store_ledger_row *row = &summary->ledger[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I}", "pool", row->pool,
                      "device", row->device, "tier", tier_names[row->tier], "end", row->end,
                      "audit", row->audit, "shadow", row->shadow, "attempts",
                      (json_int_t)row->totals.attempts, "device_ns",
                      (json_int_t)row->totals.device_ns, "metres_mm",
                      (json_int_t)row->totals.metres_mm, "mflop", (json_int_t)row->totals.mflop,
                      "cost_uusd", (json_int_t)row->totals.cost_uusd));
    }
    return list;
}

/* By tier, with several planners by planner first: of main lines that fail, and of those that pass,
 * the ones in which the guardian fires. */
static json_t *guardian_json(const struct summary *summary)
{
    const struct summary_row *total = &summary->total;
    json_t *json = json_object();
    for (uint32_t i = 0; i < total->part_count; i++) {
        const struct rate *rates = total->parts[i].guardian;
        char name[SUMMARY_PART_BYTES];
        if (rates[0].drives + rates[1].drives > 0) {
            json_object_set_new(json, summary_part_text(total, &total->parts[i], name),
                                json_pack("{s:o, s:o}", "fires_in_failing", rate_json(&rates[0]),
                                          "fires_in_passing", rate_json(&rates[1])));
        }
    }
    return json;
}

json_t *summary_json(const struct summary *summary)
{
    json_t *json = summary_row_json(&summary->total);
    json_t *by_slice = json_object();
    json_t *by_tier = json_object();
    json_t *by_planner = json_object();
    json_t *by_model = json_object();
    json_t *ids = json_array();
    if (json == NULL || by_slice == NULL || by_tier == NULL || by_planner == NULL ||
        by_model == NULL || ids == NULL) {
        json_decref(json);
        json_decref(by_slice);
        json_decref(by_tier);
        json_decref(by_planner);
        json_decref(by_model);
        json_decref(ids);
        return NULL;
    }
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (strcmp(row->group, "tier") == 0) {
            json_object_set_new(by_tier, row->value, summary_row_json(row));
        } else if (strcmp(row->group, "planner") == 0) {
            json_object_set_new(by_planner, row->value, summary_row_json(row));
        } else if (strcmp(row->group, "model") == 0) {
            json_object_set_new(by_model, row->value, summary_row_json(row));
        } else {
            json_t *group = json_object_get(by_slice, row->group);
            if (group == NULL) {
                group = json_object();
                json_object_set_new(by_slice, row->group, group);
            }
            json_object_set_new(group, row->value, summary_row_json(row));
        }
    }
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        json_array_append_new(ids, json_integer((json_int_t)summary->outcomes[i].id));
    }
    json_object_set_new(json, "prefix_ticks_saved",
                        json_integer((json_int_t)summary->prefix_ticks_saved));
    json_object_set_new(json, "prefix_usd_saved", json_real(summary->prefix_usd_saved));
    json_object_set_new(json, "guardian_interventions",
                        json_integer((json_int_t)summary->interventions));
    json_object_set_new(json, "invalid_checks", summary_invalid_json(summary));
    json_object_set_new(json, "field", summary_field_json(summary));
    json_object_set_new(json, "guardian", guardian_json(summary));
    json_object_set_new(json, "dead_jobs",
                        json_integer((json_int_t)summary->status.jobs[JOB_DEAD]));
    json_object_set_new(json, "unfinished_jobs",
                        json_integer((json_int_t)summary_unfinished(summary)));
    json_object_set_new(json, "cancelled_jobs",
                        json_integer((json_int_t)summary->status.jobs[JOB_CANCELLED]));
    json_object_set_new(json, "memoised_jobs",
                        json_integer((json_int_t)summary->status.memoised_jobs));
    json_object_set_new(json, "billed_usd",
                        json_real((double)summary->status.cost_uusd / (double)UUSD_PER_USD));
    summary_budget_json(&summary->status, json);
    json_object_set_new(json, "by_slice", by_slice);
    json_object_set_new(json, "by_parameter", summary_parameters_json(summary));
    json_object_set_new(json, "by_tier", by_tier);
    json_object_set_new(json, "by_planner", by_planner);
    json_object_set_new(json, "by_model", by_model);
    json_object_set_new(json, "ledger", ledger_json(summary));
    json_object_set_new(json, "meters", meters_json(summary));
    json_object_set_new(json, "outcomes", ids);
    if (!summary_learned_json(summary, json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}
