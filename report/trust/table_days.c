/*
 * Agreement by day, for people and as JSON. See table.h.
 */
#include "base/text.h"
#include "report/page/page.h"
#include "report/trust/table.h"
#include "schemas/json_record.h"

static json_t *day_json(const struct day_agreement *day)
{
    char text[DAY_TEXT_BYTES];
    return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:I}", "day", day_text(day->day, text),
                     "pairs", (json_int_t)day->pairs, "agree", (json_int_t)day->agree, "rate",
                     json_finite_new(day->rate.value), "low", json_finite_new(day->rate.low),
                     "high", json_finite_new(day->rate.high), "optimistic",
                     (json_int_t)day->optimistic);
}

bool table_put_days(json_t *json, const struct table_row *row, int64_t max)
{
    json_t *list = json_array();
    int64_t older = row->days->older;
    bool good = list != NULL;
    for (uint32_t i = 0; good && i < row->days->count; i++) {
        if (i < max) {
            good = json_array_append_new(list, day_json(&row->days->days[i])) == 0;
        } else {
            older += row->days->days[i].pairs;
        }
    }
    good = json_put(json, "by_day", list) && good;
    good = json_put(json, "older_pairs", json_integer(older)) && good;
    return json_put(json, "undated_pairs", json_integer(row->days->not_known)) && good;
}

static void print_row(const struct table_row *row, struct page *page)
{
    char slice[TRUST_SLICE_TEXT_BYTES];
    char date[DAY_TEXT_BYTES];
    trust_slice_text(&row->verdict.slice, slice);
    for (uint32_t i = 0; i < row->days->count; i++) {
        const struct day_agreement *day = &row->days->days[i];
        page_row(page, "%s|%s|%lld|%lld|%.1f%% (%.0f to %.0f)|%lld", i == 0 ? slice : "",
                 day_text(day->day, date), (long long)day->pairs, (long long)day->agree,
                 100.0 * day->rate.value, rate_down(100.0 * day->rate.low, 1),
                 rate_up(100.0 * day->rate.high, 1), (long long)day->optimistic);
    }
    if (row->days->older > 0) {
        page_row(page, "%s|older|%lld", "", (long long)row->days->older);
    }
    if (row->days->not_known > 0) {
        page_row(page, "%s|not known|%lld", row->days->count == 0 ? slice : "",
                 (long long)row->days->not_known);
    }
}

void table_days_print(const struct table *table, FILE *stream)
{
    struct page page = {.out = stream};
    const struct table_row *before = NULL;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        if (before == NULL || !table_same_models(row, before)) {
            text_print(stream, "\nby day (UTC), %s %.12s (%s), %s %.12s\n",
                       row->shadow ? "shadow" : "student", row->student.hash, row->student.sampler,
                       row->shadow ? "beside" : "teacher", row->teacher_hash);
            page_table(&page, "",
                       "30 slice| 10 day| #6 pairs| #6 same|  20 same verdict (95%%)| #5 opt.");
        }
        before = row;
        print_row(row, &page);
    }
}
