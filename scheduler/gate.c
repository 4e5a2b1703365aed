/*
 * Judging slices. See gate.h.
 */
#include "scheduler/gate.h"

#include <math.h>

const char *const gate_property_names[GATE_PROPERTIES] = {"verdict", "collision", "at_fault",
                                                          "intervention", "comfort"};
const char *const gate_result_names[GATE_RESULT_COUNT] = {"passed", "not shown", "below its band",
                                                          "optimistic", "worse than incumbent"};

double gate_band(const struct gate_bands *bands, enum gate_property property, bool safety_critical)
{
    if (property != GATE_VERDICT) {
        return bands->property[property];
    }
    return safety_critical ? bands->safety_critical_band : bands->band;
}

struct gate_measure gate_measure(const struct looks *looks, double band)
{
    return (struct gate_measure){.draws = looks_draws(looks),
                                 .value = looks_mean(looks),
                                 .low = looks_low(looks),
                                 .above = looks_above(looks, band),
                                 .below = looks_below(looks, band)};
}

/* Whether something is asked of a property. */
static bool is_asked(const struct gate_bands *bands, const struct gate_agreement *slice, int p)
{
    return p == GATE_VERDICT || gate_band(bands, (enum gate_property)p, slice->safety_critical) > 0;
}

enum gate_result gate_judge(const struct gate_bands *bands, const struct gate_agreement *slice,
                            enum gate_property *property)
{
    *property = GATE_VERDICT;
    if (slice->safety_critical && slice->optimistic > 0) {
        return GATE_OPTIMISTIC;
    }
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        if (is_asked(bands, slice, p) && slice->measure[p].below >= log(bands->below)) {
            *property = (enum gate_property)p;
            return GATE_BELOW;
        }
    }
    if (slice->measure[GATE_VERDICT].value < slice->incumbent - bands->worse_max) {
        return GATE_WORSE; /* never where one is not known */
    }
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        if (is_asked(bands, slice, p) && !(slice->measure[p].above >= log(LOOKS_EVIDENCE))) {
            *property = (enum gate_property)p;
            return GATE_NOT_SHOWN;
        }
    }
    return GATE_PASSED;
}

enum gate_result gate_judge_shadow(const struct gate_shadow_bands *bands,
                                   const struct gate_shadow *shadow)
{
    double driven = (double)(shadow->pairs + shadow->incomplete);
    double worse = (double)(shadow->flagged - shadow->flagged_answers) / driven;
    if (shadow->pairs < bands->jobs || shadow->pairs == 0) {
        return GATE_NOT_SHOWN;
    }
    if (!(shadow->low >= bands->band)) {
        return GATE_BELOW;
    }
    return worse > bands->flagged_worse ? GATE_WORSE : GATE_PASSED;
}
