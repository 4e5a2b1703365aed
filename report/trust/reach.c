/*
 * Counting a suite's logical scenarios by slice. See reach.h.
 */
#include "report/trust/reach.h"

#include "base/array.h"
#include "base/text.h"
#include "report/page/page.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

enum {
    POWER_DRAWS_MAX = 1000,
    NAMED_MAX = 12
}; /* slices that are beyond reach and decide nothing */

static const double shares[] = {0.97, 0.99};

bool reach_has(const struct scenario *scenario, const struct trust_slice *slice)
{
    struct slices slices;
    for (uint32_t i = 0; i <= scenario->branch_count; i++) {
        scenario_slices(scenario, i, &slices);
        if (trust_find_slice(slice, 1, &slices) != NULL) {
            return true;
        }
    }
    return false;
}

static int compare_entries(const void *a, const void *b)
{
    return scenario_id_compare_logical((*(const struct scenario *const *)a)->id,
                                       (*(const struct scenario *const *)b)->id);
}

bool reach_can(const struct reach_row *row)
{
    return row->needed >= 0 && row->logical >= row->needed;
}

static double highest_band(const struct trust_policy *policy, bool safety_critical)
{
    const struct gate_bands bands = trust_gate_bands(policy);
    double band = 0.0;
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        double of = gate_band(&bands, (enum gate_property)p, safety_critical);
        band = of > band ? of : band;
    }
    return band;
}

static enum status add_row(struct reach *reach, const struct trust_policy *policy,
                           const struct trust_slice *slice, struct error *error)
{
    for (uint32_t i = 0; i < reach->count; i++) {
        if (trust_slice_equal(&reach->rows[i].slice, slice)) {
            return STATUS_OK;
        }
    }
    TRY(array_room(&reach->rows, reach->count, sizeof *reach->rows, error));
    double band = highest_band(policy, slice->safety_critical);
    reach->rows[reach->count++] = (struct reach_row){.slice = *slice,
                                                     .decides = trust_decides(policy, slice),
                                                     .band = band,
                                                     .needed = looks_needed(1.0, band)};
    return STATUS_OK;
}

static enum status add_values(struct reach *reach, const struct trust_policy *policy,
                              const struct scenario *scenario, struct error *error)
{
    for (uint32_t i = 0; i <= scenario->branch_count; i++) {
        struct slices slices;
        scenario_slices(scenario, i, &slices);
        for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
            struct trust_slice slice = {.safety_critical = false};
            memcpy(slice.value[kind], slices.value[kind], sizeof slice.value[kind]);
            TRY(add_row(reach, policy, &slice, error));
        }
    }
    return STATUS_OK;
}

static enum status add_rows(struct reach *reach, const struct trust_policy *policy,
                            const struct scenario *const *scenarios, uint32_t count,
                            struct error *error)
{
    bool critical = false;
    for (uint32_t i = 0; i < count; i++) {
        critical |= scenarios[i]->slices.safety_critical;
    }
    TRY(add_row(reach, policy, &(struct trust_slice){.safety_critical = false}, error));
    TRY(critical ? add_row(reach, policy, &(struct trust_slice){.safety_critical = true}, error)
                 : STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        TRY(add_values(reach, policy, scenarios[i], error));
    }
    for (uint32_t i = 0; i < policy->crossed_count; i++) {
        TRY(add_row(reach, policy, &policy->crossed[i], error));
    }
    for (uint32_t i = 0; i < policy->decides_count; i++) {
        TRY(add_row(reach, policy, &policy->decides[i], error));
    }
    return STATUS_OK;
}

static void count_logical(struct reach_row *row, const struct scenario *const *scenarios,
                          uint32_t count)
{
    bool counted = false;
    for (uint32_t i = 0; i < count; i++) {
        counted =
            counted && scenario_id_compare_logical(scenarios[i - 1]->id, scenarios[i]->id) == 0;
        if (!counted && reach_has(scenarios[i], &row->slice)) {
            row->logical++;
            counted = true;
        }
    }
}

enum status reach_of(const struct suite *suite, const struct trust_policy *policy,
                     uint32_t ticks_max, struct reach *out, struct error *error)
{
    struct reach reach = {.count = 0};
    const struct scenario **scenarios = calloc((size_t)suite->entry_count + 1, sizeof *scenarios);
    uint32_t count = 0;
    TRY(memory_check(scenarios, error, "reach: out of memory"));
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        if (scenario->horizon_ticks <= ticks_max) {
            scenarios[count++] = scenario;
        } else {
            reach.longer++;
        }
    }
    qsort(scenarios, count, sizeof *scenarios, compare_entries);
    enum status status = add_rows(&reach, policy, scenarios, count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < reach.count; i++) {
        count_logical(&reach.rows[i], scenarios, count);
    }
    free(scenarios);
    if (status != STATUS_OK) {
        reach_finish(&reach);
        return status;
    }
    *out = reach;
    return STATUS_OK;
}

void reach_finish(struct reach *reach)
{
    free(reach->rows);
    *reach = (struct reach){.count = 0};
}

/* ---- telling ---- */

static void count_rows(const struct reach *reach, bool deciding, uint32_t *can, uint32_t *all)
{
    *can = *all = 0;
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct reach_row *row = &reach->rows[i];
        *can += (row->decides || !deciding) && reach_can(row);
        *all += row->decides || !deciding;
    }
}

static void print_deciding(const struct reach *reach, FILE *stream)
{
    struct page page = {.out = stream};
    char name[TRUST_SLICE_TEXT_BYTES];
    page_table(
        &page, "",
        "34 slice that decides| #6 band| #18 logical scenarios| #6 needs| #15 passes at 97%%| "
        "#15 passes at 99%%");
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct reach_row *row = &reach->rows[i];
        if (row->decides) {
            uint32_t draws =
                (uint32_t)(row->logical < POWER_DRAWS_MAX ? row->logical : POWER_DRAWS_MAX);
            page_row(&page, "%s|%.2f|%lld|%lld|%.0f%%|%.0f%%", trust_slice_text(&row->slice, name),
                     row->band, (long long)row->logical, (long long)row->needed,
                     100.0 * looks_power(shares[0], row->band, draws),
                     100.0 * looks_power(shares[1], row->band, draws));
        }
    }
    text_print(stream,
               "needs: logical scenarios without a disagreement; passes at 97%%: how likely "
               "a model that agrees in so many is shown to\n");
}

static void print_beyond(const struct reach *reach, FILE *stream)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    uint32_t beyond = 0;
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct reach_row *row = &reach->rows[i];
        if (reach_can(row) || row->decides) {
            continue;
        }
        if (beyond < NAMED_MAX) {
            text_print(stream, "%s%s has %lld, needs %lld", beyond == 0 ? "beyond reach: " : "; ",
                       trust_slice_text(&row->slice, name), (long long)row->logical,
                       (long long)row->needed);
        }
        beyond++;
    }
    if (beyond > NAMED_MAX) {
        text_print(stream, "; and %u more", beyond - NAMED_MAX);
    }
    if (beyond > 0) {
        text_print(stream, "\n");
    }
}

void reach_print(const struct reach *reach, FILE *stream)
{
    uint32_t can;
    uint32_t all;
    uint32_t can_decide;
    uint32_t decide;
    count_rows(reach, false, &can, &all);
    count_rows(reach, true, &can_decide, &decide);
    text_print(stream, "this suite can show %u of %u slices, %u of the %u that decide\n", can, all,
               can_decide, decide);
    if (reach->longer > 0) {
        text_print(stream, "%u scenario%s longer than the models are trusted, and not counted\n",
                   reach->longer, reach->longer == 1 ? " lasts" : "s last");
    }
    print_deciding(reach, stream);
    print_beyond(reach, stream);
    if (can < all) {
        text_print(
            stream,
            "a draw is a logical scenario: other scenarios are draws, or a suite's \"cross\" "
            "with weather and light; more cases of one are none\n");
    }
}

json_t *reach_json(const struct reach *reach)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    json_t *rows = json_array();
    uint32_t can;
    uint32_t all;
    count_rows(reach, false, &can, &all);
    for (uint32_t i = 0; i < reach->count; i++) {
        const struct reach_row *row = &reach->rows[i];
        json_array_append_new(rows, json_pack("{s:s, s:b, s:f, s:I, s:I, s:b}", "slice",
                                              trust_slice_text(&row->slice, name), "decides",
                                              row->decides, "band", row->band, "scenarios",
                                              (json_int_t)row->logical, "scenarios_needed",
                                              (json_int_t)row->needed, "can_show", reach_can(row)));
    }
    return json_pack("{s:i, s:i, s:i, s:o}", "can_show", (int)can, "slices", (int)all,
                     "longer_than_trusted", (int)reach->longer, "rows", rows);
}
