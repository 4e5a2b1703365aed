/*
 * Rows of shadows out of a table of agreement. See model_shadow.h.
 */
#include "cli/model/model_shadow.h"

#include "base/text.h"
#include "scheduler/trust.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status model_shadow_read(struct store *store, struct table *out, struct error *error)
{
    struct pairs pairs = {0};
    struct trust_policy *policy = malloc(sizeof *policy);
    TRY(memory_check(policy, error, "model: out of memory"));
    *policy = trust_policy_default();
    enum status status = pairs_read(store, &pairs, error);
    THEN(status, table_make(&pairs, policy, out, error));
    pairs_finish(&pairs);
    free(policy);
    return status;
}

static bool is_shadow_of(const struct table_row *row, const struct model_version *version)
{
    return row->shadow && strcmp(row->student.hash, version->hash) == 0 &&
           strcmp(row->student.sampler, version->sampler) == 0;
}

static bool is_whole(const struct table_row *row)
{
    return trust_slice_equal(&row->verdict.slice, &(struct trust_slice){0});
}

struct gate_shadow model_shadow_whole(const struct table *table,
                                      const struct model_version *version,
                                      const struct model_version *beside)
{
    struct gate_shadow found = {.low = 0.0};
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        if (is_shadow_of(row, version) && is_whole(row) &&
            strcmp(row->teacher_hash, beside->hash) == 0 &&
            strcmp(row->teacher_sampler, beside->sampler) == 0) {
            found = (struct gate_shadow){
                .pairs = row->pairs,
                .incomplete = row->incomplete,
                .low = row->rate[GATE_VERDICT].low,
                .flagged = row->student_flagged,
                .flagged_answers = row->teacher_flagged,
            };
        }
    }
    return found;
}

void model_shadow_print(const struct table *table, const struct model_version *version,
                        FILE *stream)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        const struct rate_estimate *rate = &row->rate[GATE_VERDICT];
        if (!is_shadow_of(row, version) || !is_whole(row)) {
            continue;
        }
        text_print(stream, "  as a shadow, beside %.12s (%s): ", row->teacher_hash,
                   row->teacher_sampler);
        if (row->pairs > 0) {
            text_print(stream, "%.1f%% (%.0f to %.0f) of %lld verdicts are the same; ",
                       100.0 * rate->value, rate_down(100 * rate->low, 1),
                       rate_up(100 * rate->high, 1), (long long)row->pairs);
        }
        text_print(stream,
                   "it passed %lld that failed, failed %lld that passed; %lld without a verdict, "
                   "%lld flagged (%lld of those that counted)\n",
                   (long long)row->optimistic, (long long)row->pessimistic,
                   (long long)row->incomplete, (long long)row->student_flagged,
                   (long long)row->teacher_flagged);
    }
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *model_shadow_json(const struct table *table, const struct model_version *version)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        const struct rate_estimate *rate = &row->rate[GATE_VERDICT];
        char slice[TRUST_SLICE_TEXT_BYTES];
        if (!is_shadow_of(row, version)) {
            continue;
        }
        json_t *entry = json_pack(
            "{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "slice",
            trust_slice_text(&row->verdict.slice, slice), "beside", row->teacher_hash,
            "beside_sampler", row->teacher_sampler, "pairs", (json_int_t)row->pairs, "agreement",
            number(rate->value), "low", number(rate->low), "high", number(rate->high), "optimistic",
            (json_int_t)row->optimistic, "pessimistic", (json_int_t)row->pessimistic, "incomplete",
            (json_int_t)row->incomplete, "flagged", (json_int_t)row->student_flagged,
            "flagged_answers", (json_int_t)row->teacher_flagged);
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
