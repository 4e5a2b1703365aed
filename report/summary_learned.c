/*
 * Learned tiers in a summary: who answered for what was flagged, how audited rollouts
 * agree with their audit jobs, what went into it and how well the machine was used.
 */
#include "report/summary.h"

#include "base/array.h"
#include "base/units.h"
#include "scheduler/day.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- flags ---- */

bool summary_is_caught(const struct kept_outcome *outcome)
{
    return outcome->health_check[0] != '\0' && outcome->verdict != VERDICT_INVALID &&
           (outcome->branch_id[0] == '\0' || outcome->ticks > outcome->prefix_ticks);
}

bool summary_is_learned(const struct kept_outcome *outcome)
{
    return outcome->tier >= TIER_STUDENT &&
           (outcome->ticks > outcome->prefix_ticks || summary_is_caught(outcome));
}

/* The rollout that was run instead of a flagged one. Outcomes come by id, so it follows. */
static int32_t answer_of(const struct summary *summary, uint32_t index)
{
    const struct kept_outcome *flagged = &summary->outcomes[index];
    for (uint32_t i = index + 1; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (outcome->parent_job_id == flagged->job_id &&
            strcmp(outcome->branch_id, flagged->branch_id) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

bool summary_is_answered(const struct summary *summary, uint32_t index)
{
    return summary->outcomes[index].verdict == VERDICT_FLAGGED && answer_of(summary, index) >= 0;
}

static enum status find_flags(struct summary *summary, struct error *error)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        count += summary_is_caught(&summary->outcomes[i]);
    }
    summary->flags = calloc(count > 0 ? count : 1, sizeof *summary->flags);
    TRY(memory_check(summary->flags, error, "summary: out of memory"));
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        if (summary_is_caught(&summary->outcomes[i])) {
            summary->flags[summary->flag_count++] =
                (struct summary_flag){.outcome = i, .answer = answer_of(summary, i)};
        }
    }
    return STATUS_OK;
}

/* ---- agreement ---- */

static const char *const agreement_groups[] = {"scenario_type",   "road",  "weather",
                                               "light",           "actor", "geography",
                                               "safety_critical", "day",   "all"};
enum { AGREEMENT_GROUPS = sizeof agreement_groups / sizeof *agreement_groups };

/* Value of the pair in the group; `day` has room for a day's text. */
static const char *pair_value(const struct agreement_pair *pair, const char *group,
                              char day[DAY_TEXT_BYTES])
{
    const struct outcome *outcome = pair->student;
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        if (strcmp(slice_names[i], group) == 0) {
            return outcome->slice[i];
        }
    }
    if (strcmp(group, "all") == 0) {
        return "all";
    }
    if (strcmp(group, "day") == 0) {
        return day_text(day_of_ms(pair->teacher->at_ms), day);
    }
    return outcome->safety_critical ? "true" : "false";
}

static int group_rank(const char *group)
{
    int rank = 0;
    while (strcmp(agreement_groups[rank], group) != 0) {
        rank++;
    }
    return rank;
}

static int compare_agreement(const void *a, const void *b)
{
    const struct summary_agreement *x = a;
    const struct summary_agreement *y = b;
    int rank = group_rank(x->group) - group_rank(y->group);
    return rank != 0 ? rank : strcmp(x->value, y->value);
}

static struct agreement *agreement_row(struct summary *summary, uint32_t capacity,
                                       const char *group, const char *value)
{
    for (uint32_t i = 0; i < summary->agreement_count; i++) {
        struct summary_agreement *row = &summary->agreement[i];
        if (strcmp(row->group, group) == 0 && strcmp(row->value, value) == 0) {
            return &row->agreement;
        }
    }
    if (summary->agreement_count == capacity) {
        return NULL;
    }
    struct summary_agreement *row = &summary->agreement[summary->agreement_count++];
    *row = (struct summary_agreement){0};
    snprintf(row->group, sizeof row->group, "%s", group);
    snprintf(row->value, sizeof row->value, "%s", value);
    return &row->agreement;
}

struct placed_pair {
    struct agreement_pair pair;
    uint32_t at; /* of the student, in summary->order */
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed_pair *x = a;
    const struct placed_pair *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Puts the pairs into the order of rates: placed[pair_count] is written. at[]: places of the
 * audited. */
static void order_pairs(struct summary *summary, const uint32_t *at, struct placed_pair *placed)
{
    for (uint32_t p = 0; p < summary->pair_count; p++) {
        const struct outcome *student = summary->pairs[p].student;
        placed[p] = (struct placed_pair){summary->pairs[p], at[student - summary->audited]};
    }
    qsort(placed, summary->pair_count, sizeof *placed, compare_placed);
    for (uint32_t p = 0; p < summary->pair_count; p++) {
        summary->pairs[p] = placed[p].pair;
    }
}

/* The audit jobs' outcomes, and in front of them those that they repeat, whole; *at: places of the
 * latter in summary->order, for the caller to free. */
static enum status collect_audited(struct summary *summary, uint32_t **at, uint32_t *count,
                                   struct error *error)
{
    const struct kept_outcome *audits = summary->outcomes + summary->outcome_count;
    int64_t *jobs = calloc(summary->audit_count, sizeof *jobs);
    TRY(memory_check(jobs, error, "summary: out of memory"));
    for (uint32_t i = 0; i < summary->audit_count; i++) {
        jobs[i] = audits[i].audit_of;
    }
    qsort(jobs, summary->audit_count, sizeof *jobs, array_compare_int64);
    uint32_t repeated = 0;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < summary->outcome_count && status == STATUS_OK; i++) {
        const struct kept_outcome *kept = &summary->outcomes[summary->order[i].index];
        if (bsearch(&kept->job_id, jobs, summary->audit_count, sizeof *jobs, array_compare_int64) !=
            NULL) {
            status = array_room(&summary->audited, repeated, sizeof *summary->audited, error);
            THEN(status, array_room(at, repeated, sizeof **at, error));
            if (status == STATUS_OK) {
                (*at)[repeated] = i;
                kept_outcome_whole(kept, &summary->audited[repeated++]);
            }
        }
    }
    free(jobs);
    *count = repeated;
    for (uint32_t i = 0; i < summary->audit_count && status == STATUS_OK; i++, ++*count) {
        status = array_room(&summary->audited, *count, sizeof *summary->audited, error);
        if (status == STATUS_OK) {
            kept_outcome_whole(&audits[i], &summary->audited[*count]);
        }
    }
    return status;
}

/* Pairs in the order of rates; placed[audit_count] is overwritten. */
static enum status join_pairs(struct summary *summary, struct placed_pair *placed,
                              struct error *error)
{
    uint32_t *at = NULL;
    uint32_t count = 0;
    enum status status = collect_audited(summary, &at, &count, error);
    const struct outcome **scratch = calloc(count > 0 ? count : 1, sizeof *scratch);
    THEN(status, memory_check(scratch, error, "summary: out of memory"));
    if (status == STATUS_OK) {
        summary->audited_count = count;
        summary->pair_count = agreement_join(summary->audited, count, scratch, summary->pairs);
        order_pairs(summary, at, placed);
    }
    free(scratch);
    free(at);
    return status;
}

static enum status count_agreement(struct summary *summary, struct error *error)
{
    /* A pair has one value in each group. */
    uint32_t capacity = summary->audit_count * AGREEMENT_GROUPS;
    summary->pairs = calloc(summary->audit_count, sizeof *summary->pairs);
    summary->agreement = calloc(capacity, sizeof *summary->agreement);
    struct placed_pair *placed = calloc(summary->audit_count, sizeof *placed);
    bool whole = summary->pairs != NULL && summary->agreement != NULL && placed != NULL;
    enum status status = memory_check(whole ? placed : NULL, error, "summary: out of memory");
    THEN(status, join_pairs(summary, placed, error));
    if (status != STATUS_OK) {
        free(placed);
        return status;
    }
    for (uint32_t p = 0; p < summary->pair_count; p++) {
        for (int g = 0; g < AGREEMENT_GROUPS; g++) {
            char day[DAY_TEXT_BYTES];
            const char *group = agreement_groups[g];
            const char *value = pair_value(&summary->pairs[p], group, day);
            struct agreement *row = agreement_row(summary, capacity, group, value);
            if (row != NULL) {
                const struct summary_place *place = &summary->order[placed[p].at];
                agreement_add(row, &summary->pairs[p], place->logical_key, place->case_key);
            }
        }
    }
    free(placed);
    qsort(summary->agreement, summary->agreement_count, sizeof *summary->agreement,
          compare_agreement);
    return STATUS_OK;
}

enum status summary_learned(struct summary *summary, struct error *error)
{
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        summary->in_flight += outcome->in_flight;
        summary->frozen_answers += outcome->freeze != 0 && !outcome->in_flight;
    }
    enum status status = find_flags(summary, error);
    if (status == STATUS_OK && summary->audit_count > 0) {
        status = count_agreement(summary, error);
    }
    return status;
}

/* ---- what it took ---- */

struct summary_overhead summary_overhead(const struct summary *summary, enum tier tier)
{
    struct summary_overhead sum = {0};
    for (uint32_t i = 0; i < summary->ledger_count; i++) {
        const struct store_ledger_row *row = &summary->ledger[i];
        double usd = summary->ledger_usd[i];
        if (row->tier != tier || row->shadow) {
            continue;
        }
        if (row->audit) {
            sum.audit_usd += usd;
            sum.audit_uusd += row->totals.cost_uusd;
            sum.audit_attempts += row->totals.attempts;
        } else if (strcmp(row->end, "flagged") == 0) {
            sum.flagged_usd += usd;
            sum.flagged_uusd += row->totals.cost_uusd;
            sum.flagged_attempts += row->totals.attempts;
        } else if (strcmp(row->end, "done") == 0) {
            sum.done_usd += usd;
        } else {
            sum.failed_usd += usd;
            sum.failed_uusd += row->totals.cost_uusd;
            sum.failed_attempts += row->totals.attempts;
        }
    }
    return sum;
}

/* Cost of results that no attempt of the suite's drove: they are older than the suite. */
static double taken_usd(const struct summary *summary, enum tier tier)
{
    const struct store_suite_status *status = &summary->status;
    double usd = 0.0;
    for (uint32_t i = 0; i < summary->outcome_count && status->memoised_jobs > 0; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        bool taken = outcome->at_ms < status->submitted_s * 1000;
        bool counts = outcome->tier == tier && outcome->verdict != VERDICT_FLAGGED;
        usd += taken && counts ? summary->outcome_usd[i] : 0.0;
    }
    return usd;
}

/* ---- JSON ---- */

static json_t *work_json(const struct summary_work *work)
{
    return json_pack("{s:I, s:I, s:I, s:f, s:f}", "ticks", (json_int_t)work->ticks, "metres_mm",
                     (json_int_t)work->metres_mm, "device_ns", (json_int_t)work->device_ns, "tflop",
                     (double)work->mflop / 1e6, "usd", work->usd);
}

bool summary_tier_cost(const struct summary *summary, enum tier tier, struct summary_tier_cost *out)
{
    static const struct summary_row nothing;
    struct summary_overhead over = summary_overhead(summary, tier);
    const struct summary_row *row = summary_tier(summary, tier);
    if (row == NULL && over.flagged_attempts + over.failed_attempts + over.audit_attempts == 0) {
        return false;
    }
    row = row != NULL ? row : &nothing;
    double device_s = (double)row->work.device_ns / (double)NS_PER_S;
    *out = (struct summary_tier_cost){
        .row = row,
        .device_s = device_s,
        .tick_ms = row->work.ticks > 0 ? 1000 * device_s / (double)row->work.ticks : NAN,
        .mfu = summary_mfu(&row->work),
        .miles = summary_miles(row),
        .with_retries_usd =
            taken_usd(summary, tier) + over.done_usd + over.flagged_usd + over.failed_usd,
        .over = over,
    };
    return true;
}

/* Adds what a tier took to its member of "by_tier", which it makes for a tier without results. */
static bool tier_json(const struct summary *summary, enum tier tier, json_t *by_tier)
{
    struct summary_tier_cost cost;
    json_t *json = json_object_get(by_tier, tier_names[tier]);
    if (!summary_tier_cost(summary, tier, &cost)) {
        return true;
    }
    const struct summary_row *row = cost.row;
    if (json == NULL) {
        json = summary_row_json(row);
        if (json_object_set_new(by_tier, tier_names[tier], json) != 0) {
            return false;
        }
    }
    json_object_set_new(json, "device_ns", json_integer((json_int_t)row->work.device_ns));
    json_object_set_new(json, "tflop", json_real((double)row->work.mflop / 1e6));
    if (!isnan(cost.mfu)) {
        json_object_set_new(json, "mfu", json_real(cost.mfu));
    }
    json_object_set_new(json, "flagged_work", work_json(&row->flagged));
    json_object_set_new(json, "flagged_usd", json_real(cost.over.flagged_usd));
    json_object_set_new(json, "failed_usd", json_real(cost.over.failed_usd));
    json_object_set_new(json, "audit_usd", json_real(cost.over.audit_usd));
    return true;
}

static json_t *flags_json(const struct summary *summary)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < summary->flag_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[summary->flags[i].outcome];
        json_t *flag = json_pack(
            "{s:I, s:I, s:s, s:s, s:s, s:s, s:i, s:s}", "outcome", (json_int_t)outcome->id, "job",
            (json_int_t)outcome->job_id, "scenario", outcome->scenario_id, "branch",
            outcome->branch_id, "tier", tier_names[outcome->tier], "check", outcome->health_check,
            "tick", (int)outcome->health_tick, "evidence", outcome->evidence_hash);
        if (flag != NULL && summary->flags[i].answer >= 0) {
            const struct kept_outcome *answer = &summary->outcomes[summary->flags[i].answer];
            json_object_set_new(flag, "answer",
                                json_pack("{s:I, s:s, s:s}", "outcome", (json_int_t)answer->id,
                                          "tier", tier_names[answer->tier], "verdict",
                                          verdict_names[answer->verdict]));
        }
        json_array_append_new(list, flag);
    }
    return list;
}

/* Pairs that agree; the rate and its interval are over scenarios. */
static json_t *share_json(const struct agreement_count *count)
{
    struct rate_estimate at = rate_estimate(&count->rate);
    json_t *json = json_pack("{s:I, s:f, s:f}", "agree", (json_int_t)count->pairs, "low", at.low,
                             "high", at.high);
    if (json != NULL && at.cases > 0) {
        json_object_set_new(json, "rate", json_real(at.value));
    }
    return json;
}

static json_t *agreement_json(const struct agreement *a)
{
    double n = (double)(a->pairs > 0 ? a->pairs : 1);
    double near = (double)(a->distance_pairs > 0 ? a->distance_pairs : 1);
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:f, s:f}", "jobs", (json_int_t)a->jobs,
        "pairs", (json_int_t)a->pairs, "incomplete", (json_int_t)a->incomplete, "verdict",
        share_json(&a->verdict), "collision", share_json(&a->collision), "at_fault",
        share_json(&a->at_fault), "interventions", share_json(&a->interventions),
        "student_only_passes", (json_int_t)a->student_only_passes, "teacher_only_passes",
        (json_int_t)a->teacher_only_passes, "distance_difference_m",
        a->distance_difference_abs_sum_m / near, "progress_difference_m",
        a->progress_difference_abs_sum_m / n);
    return json;
}

static json_t *audit_json(const struct summary *summary)
{
    json_t *json = json_object();
    for (uint32_t i = 0; i < summary->agreement_count; i++) {
        const struct summary_agreement *row = &summary->agreement[i];
        json_t *group = json_object_get(json, row->group);
        if (strcmp(row->group, "all") == 0) {
            json_object_set_new(json, "all", agreement_json(&row->agreement));
            continue;
        }
        if (group == NULL) {
            group = json_object();
            json_object_set_new(json, row->group, group);
        }
        json_object_set_new(group, row->value, agreement_json(&row->agreement));
    }
    return json;
}

bool summary_learned_json(const struct summary *summary, json_t *json)
{
    json_t *by_tier = json_object_get(json, "by_tier");
    json_t *flags = flags_json(summary);
    json_t *audit = audit_json(summary);
    bool made = flags != NULL && audit != NULL;
    for (int tier = 0; tier < TIER_COUNT && made; tier++) {
        made = tier_json(summary, (enum tier)tier, by_tier);
    }
    if (!made) {
        json_decref(flags);
        json_decref(audit);
        return false;
    }
    json_object_set_new(json, "flags", flags);
    json_object_set_new(json, "audit", audit);
    json_object_set_new(json, "freezes",
                        json_pack("{s:I, s:I}", "teacher", (json_int_t)summary->frozen_answers,
                                  "in_flight", (json_int_t)summary->in_flight));
    json_object_set_new(json, "audit_rollouts", json_integer((json_int_t)summary->audit_count));
    return true;
}
