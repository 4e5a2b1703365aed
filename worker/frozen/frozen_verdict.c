/*
 * Verdicts over frozen seeds, and how they are written: as JSON and as tables.
 */
#include "worker/frozen/frozen.h"

#include "base/text.h"
#include "schemas/json_record.h"

#include <math.h>
#include <string.h>

#define TICK_S 0.1

struct judge {
    void (*missed)(void *context, const struct frozen_miss *miss);
    void *context;
};

static void miss_slice(const struct judge *judge, const struct frozen_slice *slice,
                       const char *conditioning, enum frozen_measure measure)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    struct frozen_miss miss = {.part = "frozen seeds"};
    snprintf(miss.name, sizeof miss.name, "%.300s", trust_slice_text(&slice->slice, name));
    snprintf(miss.reason, sizeof miss.reason, "%s, %s: %.4f beside the incumbent's %.4f",
             conditioning, frozen_measure_names[measure],
             frozen_slice_value(slice, FROZEN_CANDIDATE, measure),
             frozen_slice_value(slice, FROZEN_INCUMBENT, measure));
    judge->missed(judge->context, &miss);
}

static void judge_slices(const struct judge *judge, const struct frozen_conditioning *results,
                         const char *name, const struct frozen_bands *bands)
{
    for (uint32_t s = 0; s < results->slice_count; s++) {
        for (int i = 0; i < FROZEN_MEASURES; i++) {
            enum frozen_measure measure = (enum frozen_measure)i;
            if (frozen_worse(bands,
                             frozen_slice_value(&results->slices[s], FROZEN_CANDIDATE, measure),
                             frozen_slice_value(&results->slices[s], FROZEN_INCUMBENT, measure))) {
                miss_slice(judge, &results->slices[s], name, measure);
                break; /* one is enough for the slice */
            }
        }
    }
}

static double span_begin_s(uint32_t span)
{
    return span > 0 ? TICK_S * frozen_span_ticks[span - 1] : 0.0;
}

/* Whether a span begins within the horizon for which the model says it is trusted. */
static bool is_used(const struct frozen_conditioning *results, uint32_t span)
{
    return span == 0 || frozen_span_ticks[span - 1] < results->stated_ticks;
}

static void judge_spans(const struct judge *judge, const struct frozen_conditioning *results,
                        const char *name, const struct frozen_bands *bands)
{
    struct frozen_miss miss = {.part = "drift"};
    for (uint32_t span = 0; span < FROZEN_SPANS && is_used(results, span); span++) {
        for (int i = 0; i < FROZEN_MEASURES; i++) {
            double candidate = frozen_mean(&results->spans[FROZEN_CANDIDATE][span][i]);
            double incumbent = frozen_mean(&results->spans[FROZEN_INCUMBENT][span][i]);
            if (frozen_worse(bands, candidate, incumbent)) {
                snprintf(miss.name, sizeof miss.name, "%s from %g s", name, span_begin_s(span));
                snprintf(miss.reason, sizeof miss.reason, "%s: %.4f beside the incumbent's %.4f",
                         frozen_measure_names[i], candidate, incumbent);
                judge->missed(judge->context, &miss);
                break;
            }
        }
    }
}

static uint32_t horizon_of(const struct frozen_conditioning *results, enum frozen_side side,
                           const struct frozen_bands *bands)
{
    struct frozen_mean spans[FROZEN_SPANS][FROZEN_MEASURES];
    memcpy(spans, results->spans[side], sizeof spans);
    return frozen_horizon(bands, results->longest_ticks, spans);
}

static void judge_horizon(const struct judge *judge, const struct frozen_conditioning *results,
                          const char *name, const struct frozen_bands *bands)
{
    struct frozen_miss miss = {.part = "drift"};
    uint32_t derived = horizon_of(results, FROZEN_CANDIDATE, bands);
    if (derived < results->stated_ticks) {
        snprintf(miss.name, sizeof miss.name, "%s", name);
        snprintf(miss.reason, sizeof miss.reason,
                 "trusted for %g s by its drift, its file says %g s%s", TICK_S * derived,
                 TICK_S * results->stated_ticks,
                 derived == results->longest_ticks ? "; no drive lasted longer" : "");
        judge->missed(judge->context, &miss);
    }
}

static bool is_compared(const struct frozen_parity *parity, uint32_t stratum)
{
    return parity->frames[stratum] > 0;
}

uint32_t frozen_parity_judge(const struct frozen_parity *parity, const struct frozen_bands *bands,
                             void (*missed)(void *context, const struct frozen_miss *miss),
                             void *context)
{
    uint32_t verdicts = 0;
    for (uint32_t s = 0; s < FROZEN_STRATA; s++) {
        const struct frozen_stratum stratum = frozen_stratum_of(s);
        for (uint32_t i = 0; is_compared(parity, s) && i < parity->layer_count; i++) {
            const struct frozen_layer *layer = &parity->layers[i];
            const struct frozen_parity_worst *worst = &layer->worst[s];
            struct frozen_miss miss = {.part = "layers"};
            verdicts++;
            if (worst->cosine >= bands->cosine_least && worst->error <= bands->error_max) {
                continue;
            }
            snprintf(miss.name, sizeof miss.name, "%s, %s, %s: %s", weather_names[stratum.weather],
                     light_names[stratum.light], conditioning_names[stratum.conditioning],
                     layer->name);
            snprintf(miss.reason, sizeof miss.reason,
                     "cosine %.5f of %.5f at least, error %.4f of %.4f at most", worst->cosine,
                     bands->cosine_least, worst->error, bands->error_max);
            missed(context, &miss);
        }
    }
    return verdicts;
}

static void count_miss(void *context, const struct frozen_miss *miss)
{
    uint32_t *count = context;
    (void)miss;
    ++*count;
}

uint32_t frozen_parity_missed(const struct frozen_parity *parity, const struct frozen_bands *bands)
{
    uint32_t count = 0;
    frozen_parity_judge(parity, bands, count_miss, &count);
    return count;
}

uint32_t frozen_judge(const struct frozen *frozen, const struct frozen_bands *bands,
                      void (*missed)(void *context, const struct frozen_miss *miss), void *context)
{
    const struct judge judge = {missed, context};
    uint32_t verdicts = 0;
    for (int c = 0; c < CONDITIONING_COUNT; c++) {
        const struct frozen_conditioning *results = &frozen->conditionings[c];
        if (!results->driven) {
            continue;
        }
        judge_slices(&judge, results, conditioning_names[c], bands);
        judge_spans(&judge, results, conditioning_names[c], bands);
        judge_horizon(&judge, results, conditioning_names[c], bands);
        verdicts += results->slice_count + 1;
        for (uint32_t span = 0; span < FROZEN_SPANS && is_used(results, span); span++) {
            verdicts++;
        }
    }
    return verdicts + frozen_parity_judge(&frozen->parity, bands, missed, context);
}

/* ---- written ---- */

static json_t *pair_json(double candidate, double incumbent)
{
    return json_pack("{s:o, s:o}", "candidate", json_finite_new(candidate), "incumbent",
                     json_finite_new(incumbent));
}

static json_t *slices_json(const struct frozen_conditioning *results)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < results->slice_count; s++) {
        const struct frozen_slice *slice = &results->slices[s];
        char name[TRUST_SLICE_TEXT_BYTES];
        json_t *measures = json_object();
        for (int i = 0; i < FROZEN_MEASURES; i++) {
            enum frozen_measure measure = (enum frozen_measure)i;
            json_object_set_new(measures, frozen_measure_names[i],
                                pair_json(frozen_slice_value(slice, FROZEN_CANDIDATE, measure),
                                          frozen_slice_value(slice, FROZEN_INCUMBENT, measure)));
        }
        json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:o}", "slice",
                                              trust_slice_text(&slice->slice, name), "drives",
                                              (json_int_t)slice->drives, "ticks",
                                              (json_int_t)slice->features[FROZEN_RECORDED].count,
                                              "measures", measures));
    }
    return list;
}

static bool is_measured(const struct frozen_conditioning *results, uint32_t span)
{
    int64_t count = 0;
    for (int i = 0; i < FROZEN_MEASURES; i++) {
        count += results->spans[FROZEN_CANDIDATE][span][i].count;
    }
    return count > 0;
}

static json_t *spans_json(const struct frozen_conditioning *results)
{
    json_t *list = json_array();
    for (uint32_t span = 0; span < FROZEN_SPANS; span++) {
        json_t *measures = is_measured(results, span) ? json_object() : NULL;
        for (int i = 0; i < FROZEN_FRECHET && measures != NULL; i++) {
            json_object_set_new(measures, frozen_measure_names[i],
                                pair_json(frozen_mean(&results->spans[FROZEN_CANDIDATE][span][i]),
                                          frozen_mean(&results->spans[FROZEN_INCUMBENT][span][i])));
        }
        if (measures != NULL) {
            json_array_append_new(list, json_pack("{s:f, s:o, s:o}", "from_s", span_begin_s(span),
                                                  "until_s",
                                                  span + 1 < FROZEN_SPANS
                                                      ? json_real(TICK_S * frozen_span_ticks[span])
                                                      : json_null(),
                                                  "measures", measures));
        }
    }
    return list;
}

static json_t *bands_json(const struct frozen_bands *bands)
{
    json_t *json = json_pack("{s:f, s:f, s:f}", "worse", bands->worse_max, "cosine",
                             bands->cosine_least, "error", bands->error_max);
    for (int i = 0; i < FROZEN_FRECHET; i++) {
        json_object_set_new(json, frozen_measure_names[i], json_real(bands->least[i]));
    }
    return json;
}

json_t *frozen_parity_json(const struct frozen_parity *parity)
{
    json_t *layers = json_array();
    for (uint32_t s = 0; s < FROZEN_STRATA; s++) {
        const struct frozen_stratum stratum = frozen_stratum_of(s);
        for (uint32_t i = 0; is_compared(parity, s) && i < parity->layer_count; i++) {
            const struct frozen_parity_worst *worst = &parity->layers[i].worst[s];
            json_array_append_new(
                layers,
                json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:o}", "name", parity->layers[i].name,
                          "conditioning", conditioning_names[stratum.conditioning], "weather",
                          weather_names[stratum.weather], "light", light_names[stratum.light],
                          "frames", (json_int_t)parity->frames[s], "cosine", worst->cosine, "error",
                          json_finite_new(worst->error)));
        }
    }
    return layers;
}

json_t *frozen_json(const struct frozen *frozen, const struct frozen_bands *bands)
{
    json_t *conditionings = json_array();
    for (int c = 0; c < CONDITIONING_COUNT; c++) {
        const struct frozen_conditioning *results = &frozen->conditionings[c];
        if (!results->driven) {
            continue;
        }
        json_array_append_new(
            conditionings,
            json_pack("{s:s, s:f, s:f, s:f, s:f, s:o, s:o, s:o}", "conditioning",
                      conditioning_names[c], "longest_s", TICK_S * results->longest_ticks,
                      "stated_s", TICK_S * results->stated_ticks, "trusted_s",
                      TICK_S * horizon_of(results, FROZEN_CANDIDATE, bands), "incumbent_trusted_s",
                      TICK_S * horizon_of(results, FROZEN_INCUMBENT, bands), "alike",
                      json_finite_new(frozen_mean(&results->alike)), "slices", slices_json(results),
                      "spans", spans_json(results)));
    }
    return json_pack(
        "{s:o, s:s, s:o, s:I, s:I, s:o, s:o, s:o}", "suite",
        json_text_new(frozen->suite, sizeof frozen->suite), "suite_hash", frozen->suite_hash,
        "planner", json_text_new(frozen->planner, sizeof frozen->planner), "drives",
        (json_int_t)frozen->drives, "ticks", (json_int_t)frozen->ticks, "bands", bands_json(bands),
        "degrees", conditionings, "layers", frozen_parity_json(&frozen->parity));
}

static void print_cell(FILE *stream, double candidate, double incumbent)
{
    char text[32] = "-";
    if (!isnan(candidate) && !isnan(incumbent)) {
        snprintf(text, sizeof text, "%.3f/%.3f", candidate, incumbent);
    } else if (!isnan(candidate)) {
        snprintf(text, sizeof text, "%.3f", candidate);
    }
    text_print(stream, " %12s", text);
}

static void print_conditioning(const struct frozen_conditioning *results, const char *name,
                               const struct frozen_bands *bands, FILE *stream)
{
    text_print(stream, "\nconditioning %s: trusted for %g s by its drift, its file says %g s", name,
               TICK_S * horizon_of(results, FROZEN_CANDIDATE, bands),
               TICK_S * results->stated_ticks);
    if (results->alike.count > 0) {
        text_print(stream, "; the incumbent by its own for %g s; both draw the same to %.3f",
                   TICK_S * horizon_of(results, FROZEN_INCUMBENT, bands),
                   frozen_mean(&results->alike));
    }
    text_print(stream, "\n%-14s", "span");
    for (int i = 0; i < FROZEN_FRECHET; i++) {
        text_print(stream, " %12s", frozen_measure_names[i]);
    }
    text_print(stream, "\n");
    for (uint32_t span = 0; span < FROZEN_SPANS; span++) {
        if (!is_measured(results, span)) {
            continue;
        }
        char label[32];
        snprintf(label, sizeof label, "from %g s", span_begin_s(span));
        text_print(stream, "%-14s", label);
        for (int i = 0; i < FROZEN_FRECHET; i++) {
            print_cell(stream, frozen_mean(&results->spans[FROZEN_CANDIDATE][span][i]),
                       frozen_mean(&results->spans[FROZEN_INCUMBENT][span][i]));
        }
        text_print(stream, "\n");
    }
}

/* The worst layer of each stratum. */
void frozen_parity_print(const struct frozen_parity *parity, FILE *stream)
{
    if (parity->layer_count == 0) {
        return;
    }
    text_print(stream, "\n%u layers beside single precision, the worst of each:\n",
               parity->layer_count);
    text_print(stream, "%-34s %8s %8s %8s\n", "weather, light, conditioning", "frames", "cosine",
               "error");
    for (uint32_t s = 0; s < FROZEN_STRATA; s++) {
        const struct frozen_stratum stratum = frozen_stratum_of(s);
        double cosine = 1.0;
        double error = 0.0;
        char name[64];
        for (uint32_t i = 0; i < parity->layer_count; i++) {
            cosine = fmin(cosine, parity->layers[i].worst[s].cosine);
            error = fmax(error, parity->layers[i].worst[s].error);
        }
        snprintf(name, sizeof name, "%s, %s, %s", weather_names[stratum.weather],
                 light_names[stratum.light], conditioning_names[stratum.conditioning]);
        if (is_compared(parity, s)) {
            text_print(stream, "%-34s %8lld %8.5f %8.4f\n", name, (long long)parity->frames[s],
                       cosine, error);
        }
    }
}

void frozen_print(const struct frozen *frozen, const struct frozen_bands *bands, FILE *stream)
{
    text_print(stream,
               "\nfrozen seeds: %lld drives, %lld ticks; measures (candidate/incumbent) "
               "from 0 to 1, 1 is best\n",
               (long long)frozen->drives, (long long)frozen->ticks);
    for (int c = 0; c < CONDITIONING_COUNT; c++) {
        if (frozen->conditionings[c].driven) {
            print_conditioning(&frozen->conditionings[c], conditioning_names[c], bands, stream);
        }
    }
    frozen_parity_print(&frozen->parity, stream);
}
