/*
 * Judging and telling slices. See model_slices.h.
 */
#include "cli/model/model_slices.h"

#include "base/text.h"
#include "report/summary.h"
#include "schemas/json_record.h"

#include <math.h>
#include <string.h>

bool model_slices_is_of(const struct table_row *row, const struct model_version *version)
{
    return !row->shadow && strcmp(row->student.hash, version->hash) == 0 &&
           strcmp(row->student.sampler, version->sampler) == 0;
}

/* The incumbent's row for the same slice and teacher, or NULL. */
static const struct table_row *incumbent_row(const struct model_slices *slices,
                                             const struct table_row *row)
{
    for (uint32_t i = 0; slices->incumbent != NULL && i < slices->table->count; i++) {
        const struct table_row *other = &slices->table->rows[i];
        if (model_slices_is_of(other, slices->incumbent) &&
            strcmp(other->teacher_hash, row->teacher_hash) == 0 &&
            trust_slice_equal(&other->verdict.slice, &row->verdict.slice)) {
            return other;
        }
    }
    return NULL;
}

static uint32_t reported(const struct model_slices *slices)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < slices->table->count; i++) {
        const struct table_row *row = &slices->table->rows[i];
        count += model_slices_is_of(row, slices->version) &&
                 !trust_decides(slices->policy, &row->verdict.slice);
    }
    return count;
}

struct table_judgement model_slices_judge(const struct model_slices *slices,
                                          const struct table_row *row)
{
    const struct table_row *other = incumbent_row(slices, row);
    return table_judge(slices->policy, row,
                       other != NULL ? other->measure[GATE_VERDICT].value : (double)NAN,
                       reported(slices));
}

static json_t *measures_json(const struct model_slices *slices, const struct table_row *row)
{
    const struct gate_bands bands = trust_gate_bands(slices->policy);
    json_t *measures = json_object();
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        double band = gate_band(&bands, (enum gate_property)p, row->verdict.slice.safety_critical);
        json_object_set_new(measures, gate_property_names[p],
                            json_pack("{s:o, s:f, s:f}", "agreement",
                                      json_finite_new(row->measure[p].value), "low",
                                      row->measure[p].low, "band", band));
    }
    return measures;
}

json_t *model_slices_json(const struct model_slices *slices, const struct table_row *row,
                          const struct table_judgement *judged)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    const struct gate_measure *measure = &row->measure[judged->property];
    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:f, s:o, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
                     "slice", trust_slice_text(&row->verdict.slice, name), "teacher",
                     row->teacher_hash, "decides", judged->decides, "result",
                     gate_result_names[judged->result], "property",
                     gate_property_names[judged->property], "band", judged->band, "agreement",
                     json_finite_new(measure->value), "low", measure->low, "pairs",
                     (json_int_t)row->pairs, "scenarios", (json_int_t)measure->draws, "optimistic",
                     (json_int_t)row->optimistic, "teacher_wrong", (json_int_t)row->teacher_wrong,
                     "scenarios_needed", (json_int_t)judged->needed, "incumbent",
                     json_finite_new(judged->incumbent), "measures", measures_json(slices, row));
}

void model_slices_print(const struct table_row *row, const struct table_judgement *judged,
                        FILE *stream)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    const struct gate_measure *measure = &row->measure[judged->property];
    bool verdicts = judged->property == GATE_VERDICT;
    text_print(stream, "%-20s %-34s ", gate_result_names[judged->result],
               trust_slice_text(&row->verdict.slice, name));
    if (measure->draws == 0) {
        text_print(stream, "no rollout has a verdict on both sides\n");
        return;
    }
    text_print(stream,
               "agree%s%s %5.1f%%, at least %5.1f%% of %.1f%%; opt. %lld; teacher wrong "
               "%lld; %lld scenario%s, ",
               verdicts ? "" : " on ", verdicts ? "" : gate_property_names[judged->property],
               100.0 * measure->value, rate_down(100 * measure->low, 0.1), 100.0 * judged->band,
               (long long)row->optimistic, (long long)row->teacher_wrong, (long long)measure->draws,
               summary_plural(measure->draws));
    if (judged->needed < 0) {
        text_print(stream, "no number of them will do\n");
    } else {
        text_print(stream, "needs %lld\n", (long long)judged->needed);
    }
}
