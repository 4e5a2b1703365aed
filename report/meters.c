/*
 * Meters of a suite. See meters.h.
 */
#include "report/meters.h"
#include "report/page/page.h"

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/json_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE_BYTES = 512 };
#define PAGES_FREE_LEAST 0.1

const double meter_quantiles[METER_QUANTILES] = {0.5, 0.95, 0.99};
const char *const meter_quantile_names[METER_QUANTILES] = {"p50", "p95", "p99"};

static uint32_t own_ticks(const struct kept_outcome *outcome)
{
    return outcome->ticks > outcome->prefix_ticks ? outcome->ticks - outcome->prefix_ticks : 0;
}

static bool is_metered(const struct kept_outcome *outcome)
{
    return own_ticks(outcome) > 0 && outcome->device_ns > 0;
}

static int compare_key(const struct kept_outcome *a, const struct kept_outcome *b)
{
    int order = strcmp(a->pool, b->pool);
    order = order != 0 ? order : strcmp(a->backend, b->backend);
    order = order != 0 ? order : (int)a->tier - (int)b->tier;
    order = order != 0 ? order : strcmp(a->model_hash, b->model_hash);
    return order != 0 ? order : strcmp(a->sampler, b->sampler);
}

/* One rollout in the order of its meter; usd rides along. */
struct entry {
    const struct kept_outcome *outcome;
    double usd;
};

static int compare_entries(const void *a, const void *b)
{
    return compare_key(((const struct entry *)a)->outcome, ((const struct entry *)b)->outcome);
}

/* Nearest rank; sorts. */
static void quantiles(double *values, uint32_t count, double out[METER_QUANTILES])
{
    qsort(values, count, sizeof *values, array_compare_double);
    for (int i = 0; i < METER_QUANTILES; i++) {
        double rank = ceil(meter_quantiles[i] * count);
        out[i] = values[rank >= 1.0 ? (uint32_t)rank - 1 : 0];
    }
}

/* All of one key are its rollouts; what never began, as a branch whose main line ended before, or
 * was not measured has no share in its figures. */
static struct meter meter_make(const struct entry *entries, uint32_t count, double *scratch)
{
    const struct kept_outcome *first = entries[0].outcome;
    struct meter meter = {.tier = first->tier, .rollouts = count};
    snprintf(meter.pool, sizeof meter.pool, "%s", first->pool);
    snprintf(meter.device, sizeof meter.device, "%s", first->backend);
    snprintf(meter.model_hash, sizeof meter.model_hash, "%s", first->model_hash);
    snprintf(meter.sampler, sizeof meter.sampler, "%s", first->sampler);
    uint32_t pages_used_percent = 0;
    uint32_t measured = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct kept_outcome *outcome = entries[i].outcome;
        if (!is_metered(outcome)) {
            continue;
        }
        summary_add_work(&meter.work, outcome, own_ticks(outcome), entries[i].usd);
        if (outcome->pages_used_percent > pages_used_percent) {
            pages_used_percent = outcome->pages_used_percent;
        }
        scratch[measured++] = (double)outcome->device_ns / own_ticks(outcome) / (double)NS_PER_MS;
    }
    quantiles(scratch, measured, meter.tick_ms);
    meter.pages_free_min =
        pages_used_percent > 0 ? (100.0 - (double)pages_used_percent) / 100.0 : NAN;
    measured = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_metered(entries[i].outcome)) {
            scratch[measured++] = (double)entries[i].outcome->device_ns / (double)NS_PER_S;
        }
    }
    quantiles(scratch, measured, meter.rollout_s);
    return meter;
}

enum status meters_of(const struct summary *summary, struct meter **out, uint32_t *count,
                      struct error *error)
{
    uint32_t all = summary->outcome_count + summary->audit_count;
    struct entry *entries = calloc(all + 1, sizeof *entries);
    double *scratch = calloc(all + 1, sizeof *scratch);
    struct meter *meters = NULL;
    uint32_t used = 0;
    uint32_t made = 0;
    enum status status = entries != NULL && scratch != NULL
                             ? STATUS_OK
                             : error_set(error, STATUS_NO_MEMORY, "meters: out of memory");
    for (uint32_t i = 0; status == STATUS_OK && i < all; i++) {
        double usd = summary->outcome_usd != NULL ? summary->outcome_usd[i] : 0.0;
        entries[used++] = (struct entry){&summary->outcomes[i], usd};
    }
    if (used > 0) {
        qsort(entries, used, sizeof *entries, compare_entries);
    }
    for (uint32_t first = 0, end; status == STATUS_OK && first < used; first = end) {
        bool measured = is_metered(entries[first].outcome);
        for (end = first + 1; end < used && compare_entries(&entries[first], &entries[end]) == 0;) {
            measured = is_metered(entries[end++].outcome) || measured;
        }
        if (!measured) {
            continue;
        }
        status = array_room(&meters, made, sizeof *meters, error);
        if (status == STATUS_OK) {
            meters[made++] = meter_make(entries + first, end - first, scratch);
        }
    }
    free(entries);
    free(scratch);
    if (status != STATUS_OK) {
        free(meters);
        return status;
    }
    *out = meters;
    *count = made;
    return STATUS_OK;
}

static double miles_of(const struct meter *meter)
{
    return (double)meter->work.metres_mm / 1000.0 / M_PER_MILE;
}

bool meter_pages_short(const struct meter *meter)
{
    return meter->pages_free_min < PAGES_FREE_LEAST; /* NAN is not */
}

double meter_miles_per_hour(const struct meter *meter)
{
    double hours = (double)meter->work.device_ns / (double)NS_PER_S / 3600.0;
    return miles_of(meter) / hours;
}

double meter_usd_per_mile(const struct meter *meter)
{
    return meter->work.metres_mm > 0 ? meter->work.usd / miles_of(meter) : NAN;
}

static json_t *quantiles_json(const double values[METER_QUANTILES])
{
    json_t *object = json_object();
    for (int i = 0; i < METER_QUANTILES; i++) {
        json_object_set_new(object, meter_quantile_names[i], json_finite_new(values[i]));
    }
    return object;
}

json_t *meters_json(const struct summary *summary)
{
    struct meter *meters = NULL;
    uint32_t count = 0;
    struct error ignored;
    if (meters_of(summary, &meters, &count, &ignored) != STATUS_OK) {
        return NULL;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct meter *meter = &meters[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:o}",
                      "pool", meter->pool, "device", meter->device, "tier", tier_names[meter->tier],
                      "model", meter->model_hash, "sampler", meter->sampler, "rollouts",
                      (json_int_t)meter->rollouts, "miles", miles_of(meter), "device_s",
                      (double)meter->work.device_ns / (double)NS_PER_S, "miles_per_device_hour",
                      json_finite_new(meter_miles_per_hour(meter)), "usd_per_mile",
                      json_finite_new(meter_usd_per_mile(meter)), "mfu",
                      json_finite_new(summary_mfu(&meter->work)), "pages_free_min",
                      json_finite_new(meter->pages_free_min), "tick_ms",
                      quantiles_json(meter->tick_ms), "rollout_s",
                      quantiles_json(meter->rollout_s)));
    }
    free(meters);
    return list;
}

static void model_text(const struct meter *meter, char out[LIMIT_ID_BYTES])
{
    const char *slash = strchr(meter->sampler, '/');
    snprintf(out, LIMIT_ID_BYTES, meter->model_hash[0] != '\0' ? "%.8s %.40s" : "-",
             meter->model_hash, slash != NULL ? slash + 1 : meter->sampler);
}

/* "0.02 / 0.03 / 0.03" */
static void triple_text(const double values[METER_QUANTILES], char out[METER_TRIPLE_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < METER_QUANTILES; i++) {
        char text[SUMMARY_MONEY_BYTES];
        used += (size_t)snprintf(out + used, METER_TRIPLE_BYTES - used, "%s%s", i > 0 ? " / " : "",
                                 summary_number_text(values[i], text));
    }
}

void meter_words_of(const struct meter *meter, struct meter_words *out)
{
    char text[SUMMARY_MONEY_BYTES];
    model_text(meter, out->model);
    snprintf(out->miles_per_hour, sizeof out->miles_per_hour, "%s",
             summary_number_text(meter_miles_per_hour(meter), text));
    snprintf(out->usd, sizeof out->usd, "%s",
             summary_rate_text(meter->work.usd, miles_of(meter), text));
    double mfu = summary_mfu(&meter->work);
    snprintf(out->mfu, sizeof out->mfu, isnan(mfu) ? "-" : "%.0f%%", 100.0 * mfu);
    snprintf(out->pages_free, sizeof out->pages_free, isnan(meter->pages_free_min) ? "-" : "%.0f%%",
             100.0 * meter->pages_free_min);
    triple_text(meter->tick_ms, out->tick_ms);
    triple_text(meter->rollout_s, out->rollout_s);
}

static void print_shortage(const struct meter *meter, FILE *stream)
{
    if (meter_pages_short(meter)) {
        text_print(
            stream,
            "FRAME PAGES of pool %s, %s: %.0f%% were free at the fullest, under %.0f%%: pages "
            "of parked branches are moved out of the world's memory\n",
            meter->pool, tier_names[meter->tier], 100.0 * meter->pages_free_min,
            100.0 * PAGES_FREE_LEAST);
    }
}

void meters_print(const struct summary *summary, FILE *stream)
{
    struct page page = {.out = stream};
    struct meter *meters = NULL;
    uint32_t count = 0;
    struct error ignored;
    if (meters_of(summary, &meters, &count, &ignored) != STATUS_OK) {
        return;
    }
    if (count > 0) {
        fputc('\n', stream);
        page_table(&page, "",
                   "12 pool| 8 tier| 6 device| 22 model| #9 miles/h| #12 $/1000 miles| #5 MFU| #6 "
                   "pages| #22 ms/tick p50/p95/p99| #22 s/rollout p50/p95/p99");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct meter_words words;
        meter_words_of(&meters[i], &words);
        page_row(&page, "  %s|%s|%.6s|%s|%s|%s|%s|%s|%s|%s", meters[i].pool,
                 tier_names[meters[i].tier], meters[i].device, words.model, words.miles_per_hour,
                 words.usd, words.mfu, words.pages_free, words.tick_ms, words.rollout_s);
    }
    for (uint32_t i = 0; i < count; i++) {
        print_shortage(&meters[i], stream);
    }
    free(meters);
}

/* ---- beside an earlier run ---- */

static bool text_is(const json_t *object, const char *name, const char *text)
{
    const char *found = json_string_value(json_object_get(object, name));
    return found != NULL && strcmp(found, text) == 0;
}

static const json_t *find_earlier(const json_t *list, const struct meter *meter)
{
    const json_t *found = NULL;
    const json_t *row;
    size_t i;
    json_array_foreach (list, i, row) {
        if (text_is(row, "pool", meter->pool) && text_is(row, "device", meter->device) &&
            text_is(row, "tier", tier_names[meter->tier])) {
            bool same =
                text_is(row, "model", meter->model_hash) && text_is(row, "sampler", meter->sampler);
            if (same) {
                return row;
            }
            found = found == NULL ? row : found;
        }
    }
    return found;
}

static bool compare_figure(const struct meter *meter, const char *what, double now,
                           const json_t *before, double margin, json_t *missed)
{
    char text[SENTENCE_BYTES];
    char number[32];
    char model[LIMIT_ID_BYTES];
    double was = json_number_value(before);
    if (!json_is_number(before) || now <= was * (1.0 + margin)) {
        return true; /* not of what is no number: who stands still costs, and has no $/mile */
    }
    snprintf(number, sizeof number, isnan(now) ? "none, for nothing moved" : "%.4g", now);
    model_text(meter, model);
    snprintf(text, sizeof text,
             "%s, pool %s, %s on %s, model %s: %s; the baseline's %.4g and %g%% more are allowed",
             what, meter->pool, tier_names[meter->tier], meter->device, model, number, was,
             100.0 * margin);
    return json_array_append_new(missed, json_text_new(text, sizeof text)) == 0;
}

/* A meter that cannot be compared may be what is dearer: a teacher that answers what the baseline's
 * student did. */
static bool miss_stranger(const struct meter *meter, json_t *missed)
{
    char text[SENTENCE_BYTES];
    char model[LIMIT_ID_BYTES];
    model_text(meter, model);
    snprintf(
        text, sizeof text,
        "pool %s, %s on %s, model %s: %lld rollouts, and no meter of the baseline has this pool, "
        "tier and device",
        meter->pool, tier_names[meter->tier], meter->device, model, (long long)meter->rollouts);
    return json_array_append_new(missed, json_text_new(text, sizeof text)) == 0;
}

bool meters_compare(const struct summary *summary, const json_t *earlier, double margin,
                    json_t *missed)
{
    const json_t *list = json_object_get(earlier, "meters");
    struct meter *meters = NULL;
    uint32_t count = 0;
    uint32_t compared = 0;
    struct error ignored;
    bool good = meters_of(summary, &meters, &count, &ignored) == STATUS_OK;
    for (uint32_t i = 0; good && i < count; i++) {
        const json_t *row = find_earlier(list, &meters[i]);
        const json_t *ticks = json_object_get(row, "tick_ms");
        compared += row != NULL;
        good = row != NULL || miss_stranger(&meters[i], missed);
        good = good &&
               compare_figure(&meters[i], "$/mile", meter_usd_per_mile(&meters[i]),
                              json_object_get(row, "usd_per_mile"), margin, missed) &&
               compare_figure(&meters[i], "ms/tick p99", meters[i].tick_ms[2],
                              json_object_get(ticks, "p99"), margin, missed);
    }
    if (good && compared == 0) { /* a gate that compared nothing is not met */
        good = json_array_append_new(
                   missed, json_string("no meter of this run has its pool, device and tier in the "
                                       "baseline of --gate-cost")) == 0;
    }
    free(meters);
    return good;
}
