/*
 * Studies for people (terminal, Markdown) and for programs (JSON), from the same figures.
 */
#include "report/risk/risk.h"

#include "schemas/json_record.h"
#include "schemas/scenario_json.h"

#include "base/text.h"
#include "report/page/page.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limits of the intervals, as SPEED.md has them. */
#define COVERAGE_TEXT                                                                        \
    "In drawn suites with a known truth such an interval holds it in 93 to 98%% (of killed " \
    "and injured, in 92 to 99%%)"

enum { CONTRIBUTORS_SHOWN = 10, FOREIGN_SHOWN = 8, JOBS_SHOWN = 20, FIGURE_BYTES = 32 };

static const char crashes_text[] =
    "Exposures are crashes of human drivers: a rate says what would be left of these crashes, were "
    "they the suite's scenarios; it is no forecast of crashes on the road.";
static const char encounters_text[] =
    "A rate covers the situations that have an exposure and no others, weighted as the file says; "
    "what the suite does not have is not in it.";

static const char *basis_text(const struct risk_study *study)
{
    return study->file->basis == EXPOSURE_CRASHES ? crashes_text : encounters_text;
}

static double per_hour(const struct risk_study *study, double per_million_km)
{
    return per_million_km * study->file->mean_speed_kmh / 1e6;
}

static const char *figure(double value, char out[FIGURE_BYTES])
{
    if (isnan(value)) {
        return strcpy(out, "-");
    }
    snprintf(out, FIGURE_BYTES, value > 0 && value < 1e-9 ? "under 1e-9" : "%.3g", value);
    return out;
}

/* Expected events per million km that come from a logical scenario. */
static double contribution(const struct risk_study *study, uint32_t index, enum risk_event event)
{
    const struct risk_logical *at = &study->logical[index];
    return study->file->classes[at->class_index].rate.rate * at->weight * at->probability[event];
}

/* ---- orders ---- */

struct ranked {
    uint32_t index;
    double value;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    return x->value != y->value ? (x->value < y->value ? 1 : -1)
                                : (x->index > y->index) - (x->index < y->index);
}

/* Logical scenarios by contribution, or by jobs; NULL: out of memory. */
static struct ranked *rank_logical(const struct risk_study *study, bool by_jobs)
{
    struct ranked *ranked = calloc((size_t)study->logical_count + 1, sizeof *ranked);
    for (uint32_t i = 0; ranked != NULL && i < study->logical_count; i++) {
        double value = by_jobs ? study->logical[i].jobs : contribution(study, i, study->plan_event);
        ranked[i] = (struct ranked){i, value};
    }
    if (ranked != NULL) {
        qsort(ranked, study->logical_count, sizeof *ranked, compare_ranked);
    }
    return ranked;
}

static uint32_t undriven(const struct risk_study *study)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < study->logical_count; i++) {
        count += study->logical[i].draws[RISK_FAIL] == 0;
    }
    return count;
}

/* By name, because a name that is mistyped in the exposures is one that nothing drives. */
static void print_undriven(const struct risk_study *study, FILE *out)
{
    uint32_t shown = 0;
    text_print(out, "not driven, though with an exposure, so taken to be like the others: ");
    for (uint32_t i = 0; i < study->logical_count && shown < FOREIGN_SHOWN; i++) {
        if (study->logical[i].draws[RISK_FAIL] == 0) {
            text_print(out, "%s%s", shown++ > 0 ? ", " : "", study->logical[i].name);
        }
    }
    text_print(out, "%s (%u logical scenario%s)\n", undriven(study) > shown ? " .." : "",
               undriven(study), undriven(study) == 1 ? "" : "s");
}

uint32_t risk_unverified(const struct risk_study *study)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < study->file->class_count; c++) {
        count += !study->file->classes[c].verified;
    }
    return count;
}

/* Classes of which more than the rate is known. */
static uint32_t inexact(const struct risk_study *study)
{
    uint32_t count = 0;
    for (uint32_t c = 0; c < study->file->class_count; c++) {
        const struct risk_class *rate = &study->file->classes[c].rate;
        count += rate->low > 0 || rate->count > 0;
    }
    return count;
}

/* Shares of what is told of contacts and deaths that no contact stands behind. */
enum { UNSEEN_BYTES = 320 };
static const char *unseen_text(const struct risk_study *study, char out[UNSEEN_BYTES])
{
    const struct risk_estimate *fatal = &study->estimates[RISK_FATAL];
    snprintf(out, UNSEEN_BYTES,
             "from situations without a contact: %.0f%% of \"%s\", %.0f%% of \"%s\"%s",
             100 * study->estimates[RISK_CONTACT].unseen_share, risk_event_texts[RISK_CONTACT],
             100 * fatal->unseen_share, risk_event_texts[RISK_FATAL],
             isnan(fatal->value) ? "; without any contact nothing tells how severe one would be"
             : isnan(study->estimates[RISK_VRU_SEVERE].value)
                 ? "; without a contact with somebody outside a car nothing tells how severe one "
                   "would be"
                 : "");
    return out;
}

static void write_events(const struct risk_study *study, struct page *page)
{
    char text[5][FIGURE_BYTES];
    page_table(page, "",
               "  24 per million km| #10 median| #23 95%% interval| #12 observed| #10 per hour");
    for (int e = 0; e < RISK_EVENT_COUNT; e++) {
        const struct risk_estimate *at = &study->estimates[e];
        page_row(page, "%s|%s|%s to %9s|%s|%s", risk_event_texts[e], figure(at->value, text[0]),
                 figure(at->low, text[1]), figure(at->high, text[2]), figure(at->observed, text[3]),
                 figure(per_hour(study, at->value), text[4]));
    }
}

/* ---- terminal ---- */

static void print_events(const struct risk_study *study, FILE *out)
{
    struct page page = {.form = PAGE_TERMINAL, .out = out};
    write_events(study, &page);
    char unseen[UNSEEN_BYTES];
    text_print(out, "  %s\n", unseen_text(study, unseen));
    text_print(out, "  " COVERAGE_TEXT "\n");
    text_print(out, "  of %.4g exposed situations per million km; ", study->exposed);
    if (inexact(study) == 0) {
        text_print(out, "exposures are taken as exact: the file gives no intervals\n");
    } else {
        text_print(out,
                   "%u of %u exposures have an interval, which makes %.0f%% of the spread of "
                   "\"%s\"\n",
                   inexact(study), study->file->class_count,
                   100 * study->estimates[study->plan_event].exposure_share,
                   risk_event_texts[study->plan_event]);
    }
}

static void print_contributors(const struct risk_study *study, FILE *out)
{
    struct ranked *ranked = rank_logical(study, false);
    enum risk_event event = study->plan_event;
    double sum = 0;
    for (uint32_t i = 0; ranked != NULL && i < study->logical_count; i++) {
        sum += ranked[i].value;
    }
    text_print(out, "\n  %-34s %-26s %6s %8s %8s   (\"%s\")\n", "where it comes from", "class",
               "share", "expected", "seen", risk_event_texts[event]);
    for (uint32_t i = 0; ranked != NULL && i < study->logical_count && i < CONTRIBUTORS_SHOWN;
         i++) {
        const struct risk_logical *at = &study->logical[ranked[i].index];
        text_print(out, "  %-34s %-26s %5.1f%% %7.1f%% %4.3g of %.0f\n", at->name,
                   study->file->classes[at->class_index].id,
                   sum > 0 ? 100 * ranked[i].value / sum : 0, 100 * at->probability[event],
                   at->events[event], at->draws[event]);
    }
    free(ranked);
}

static void print_contacts(const struct risk_study *study, const struct summary *summary, FILE *out)
{
    if (study->contact_count == 0) {
        return;
    }
    text_print(out, "\n  %-40s %-10s %11s %12s %12s %8s %8s\n", "contacts", "with", "impact km/h",
               "delta-v ego", "other km/h", "AIS 4+", "fatal");
    for (uint32_t i = 0; i < study->contact_count; i++) {
        const struct risk_contact *at = &study->contacts[i];
        const struct severity_harm *worst = &at->worst;
        if (!summary_is_repeat(summary, at->outcome)) {
            text_print(out, "  %-40s %-10s %11.1f %12.1f %12.1f %7.1f%% %7.1f%%%s\n",
                       summary->outcomes[at->outcome].scenario_id, agent_kind_names[worst->partner],
                       3.6 * worst->impact_mps, 3.6 * worst->ego_delta_mps,
                       3.6 * worst->other_delta_mps, 100 * at->vru_severe, 100 * at->fatal,
                       worst->outside ? "  outside" : "");
        }
    }
    if (study->outside > 0) {
        text_print(out, "  outside: a curve was used beyond what it was fitted to (%u drives)\n",
                   study->outside);
    }
    if (study->untraced > 0) {
        text_print(out, "  %u contacts have no recording: taken at the outcome's impact speed\n",
                   study->untraced);
    }
}

static void print_plan(const struct risk_study *study, FILE *out)
{
    const struct risk_plan *plan = &study->plan;
    const struct risk_estimate *at = &study->estimates[study->plan_event];
    if (isnan(at->value)) {
        text_print(out, "\n  of \"%s\" nothing is known yet", risk_event_texts[study->plan_event]);
    } else {
        text_print(out, "\n  \"%s\" is known to +-%.0f%% of its value",
                   risk_event_texts[study->plan_event], 100 * risk_precision(at));
    }
    if (!plan->enough) {
        text_print(out, "; exposures alone leave +-%.0f%%, so no more can be had than +-%.0f%%",
                   100 * plan->reachable, 100 * plan->precision);
    }
    if (plan->jobs >= RISK_JOBS_MOST) {
        text_print(out, ": no number of jobs reaches +-%.0f%%\n", 100 * plan->precision);
        return;
    }
    if (plan->jobs == 0) {
        text_print(out, ": no further jobs are needed for +-%.0f%%\n", 100 * plan->precision);
    } else {
        text_print(out, "; for +-%.0f%% drive %.0f further concrete scenarios:\n",
                   100 * plan->precision, plan->jobs);
    }
    struct ranked *ranked = rank_logical(study, true);
    for (uint32_t i = 0; ranked != NULL && i < study->logical_count && ranked[i].value > 0; i++) {
        if (i == JOBS_SHOWN) {
            text_print(out, "    and others (--json has all)\n");
            break;
        }
        text_print(out, "    %8.0f %s\n", ranked[i].value, study->logical[ranked[i].index].name);
    }
    free(ranked);
}

void risk_study_print(const struct risk_study *study, const struct summary *summary, FILE *out)
{
    text_print(out, "risk of %s in %s; exposures: %s\n", study->planner, tier_names[study->tier],
               study->file->title);
    print_events(study, out);
    print_contributors(study, out);
    print_contacts(study, summary, out);
    if (study->planned) {
        print_plan(study, out);
    }
    text_print(out, "\n%s\n", basis_text(study));
    text_print(out,
               "%u of %u classes rest on figures that were not read where they were published\n",
               risk_unverified(study), study->file->class_count);
    if (undriven(study) > 0) {
        print_undriven(study, out);
    }
    if (study->unknown > 0) {
        text_print(out, "%lld flagged or invalid drives say nothing and are left out\n",
                   (long long)study->unknown);
    }
    for (uint32_t i = 0; i < study->foreign_count && i < FOREIGN_SHOWN; i++) {
        text_print(out, "%s%s", i == 0 ? "without an exposure, in no rate: " : ", ",
                   study->foreign[i]);
    }
    if (study->foreign_count > 0) {
        text_print(out, "%s (%u logical scenario%s)\n",
                   study->foreign_count > FOREIGN_SHOWN ? " .." : "", study->foreign_count,
                   study->foreign_count == 1 ? "" : "s");
    }
}

/* ---- Markdown ---- */

void risk_study_markdown(const struct risk_study *study, FILE *out)
{
    struct ranked *ranked = rank_logical(study, false);
    struct page page = {.form = PAGE_MARKDOWN, .out = out};
    fputs("\n", out);
    write_events(study, &page);
    char unseen[UNSEEN_BYTES];
    fprintf(out, "\n%c%s. " COVERAGE_TEXT ".\n", toupper(unseen_text(study, unseen)[0]),
            unseen + 1);
    fprintf(out,
            "\n%s Of %u classes of situations %u rest on figures that were not read where they "
            "were published. %u logical scenarios with an exposure were not driven; %u that were "
            "driven have none and are in no rate.\n",
            basis_text(study), study->file->class_count, risk_unverified(study), undriven(study),
            study->foreign_count);
    fprintf(out, "\nMost of \"%s\" comes from", risk_event_texts[study->plan_event]);
    for (uint32_t i = 0; ranked != NULL && i < study->logical_count && i < CONTRIBUTORS_SHOWN / 2;
         i++) {
        fprintf(out, "%s `%s` (%.2g)", i > 0 ? "," : "", study->logical[ranked[i].index].name,
                ranked[i].value);
    }
    fputs(".\n", out);
    free(ranked);
}

/* ---- JSON ---- */

static json_t *estimate_json(const struct risk_study *study, enum risk_event event)
{
    const struct risk_estimate *at = &study->estimates[event];
    return json_pack("{s:o, s:f, s:f, s:f, s:o, s:f, s:f, s:f}", "per_million_km",
                     json_finite_new(at->value), "low", at->low, "high", at->high, "observed",
                     at->observed, "per_hour", json_finite_new(per_hour(study, at->value)),
                     "not_driven_per_million_km", at->missed, "exposure_share", at->exposure_share,
                     "unseen_share", at->unseen_share);
}

static json_t *logical_json(const struct risk_study *study, uint32_t index)
{
    const struct risk_logical *at = &study->logical[index];
    const struct exposure_class *class = &study->file->classes[at->class_index];
    json_t *json =
        json_pack("{s:s, s:s, s:f, s:b, s:I, s:f}", "scenario", at->name, "class", class->id,
                  "exposure_per_million_km", class->rate.rate * at->weight, "verified",
                  class->verified, "drives", (json_int_t)at->drives, "cases", at->draws[RISK_FAIL]);
    for (int e = 0; e < RISK_EVENT_COUNT; e++) {
        json_object_set_new(json, risk_event_names[e],
                            json_pack("{s:f, s:f, s:f, s:f}", "probability", at->probability[e],
                                      "events", at->events[e], "cases", at->draws[e],
                                      "per_million_km",
                                      contribution(study, index, (enum risk_event)e)));
    }
    if (study->planned) {
        json_object_set_new(json, "jobs", json_real(at->jobs));
    }
    return json;
}

static json_t *contact_json(const struct risk_contact *at, const struct summary *summary)
{
    return json_pack("{s:I, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:b}", "outcome",
                     (json_int_t)summary->outcomes[at->outcome].id, "scenario",
                     summary->outcomes[at->outcome].scenario_id, "with",
                     agent_kind_names[at->worst.partner], "contacts", (int)at->count, "impact_mps",
                     at->worst.impact_mps, "ego_delta_v_mps", at->worst.ego_delta_mps,
                     "other_delta_v_mps", at->worst.other_delta_mps, "vru_severe", at->vru_severe,
                     "fatal", at->fatal, "outside", at->worst.outside);
}

json_t *risk_study_json(const struct risk_study *study, const struct summary *summary)
{
    json_t *events = json_object();
    json_t *logical = json_array();
    json_t *contacts = json_array();
    json_t *foreign = json_array();
    for (int e = 0; e < RISK_EVENT_COUNT; e++) {
        json_object_set_new(events, risk_event_names[e], estimate_json(study, (enum risk_event)e));
    }
    for (uint32_t i = 0; i < study->logical_count; i++) {
        json_array_append_new(logical, logical_json(study, i));
    }
    for (uint32_t i = 0; i < study->contact_count; i++) {
        json_array_append_new(contacts, contact_json(&study->contacts[i], summary));
    }
    for (uint32_t i = 0; i < study->foreign_count; i++) {
        json_array_append_new(foreign, json_string(study->foreign[i]));
    }
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:f, s:o, s:o, s:o, s:o, s:I}", "planner", study->planner, "tier",
        tier_names[study->tier], "basis", exposure_basis_names[study->file->basis], "exposures",
        study->file->title, "exposed_per_million_km", study->exposed, "events", events,
        "logical_scenarios", logical, "contacts", contacts, "without_exposure", foreign,
        "without_result", (json_int_t)study->unknown);
    if (json != NULL && study->planned) {
        json_object_set_new(json, "plan",
                            json_pack("{s:s, s:f, s:o, s:o, s:b}", "event",
                                      risk_event_names[study->plan_event], "jobs", study->plan.jobs,
                                      "precision", json_finite_new(study->plan.precision),
                                      "reachable", json_finite_new(study->plan.reachable), "enough",
                                      study->plan.enough));
    }
    return json;
}
