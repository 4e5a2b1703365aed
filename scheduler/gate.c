/*
 * Judging slices, and planning how much they take. See gate.h.
 */
#include "scheduler/gate.h"

#include "scheduler/rate.h"

#include <math.h>

const char *const gate_result_names[GATE_RESULT_COUNT] = {"passed", "not shown", "below its band",
                                                          "optimistic", "worse than incumbent"};

enum gate_result gate_judge(const struct gate_bands *bands, const struct gate_agreement *slice)
{
    double band = slice->safety_critical ? bands->safety_critical_band : bands->band;

    if (slice->safety_critical && slice->optimistic > 0) {
        return GATE_OPTIMISTIC;
    }
    if (slice->share < slice->incumbent - bands->worse_max) { /* false where one is not known */
        return GATE_WORSE;
    }
    if (slice->low >= band) {
        return GATE_PASSED;
    }
    return slice->share <= band ? GATE_BELOW : GATE_NOT_SHOWN;
}

int64_t gate_draws_needed(double share, double band)
{
    int64_t low = 1;
    int64_t high = INT64_C(1) << 40;
    double lower = 0.0;
    double upper = 0.0;

    share = isnan(share) ? 1.0 : share;
    if (band <= 0.0) {
        return 1;
    }
    if (share <= band) {
        return -1;
    }
    while (low < high) { /* the lower end rises with the draws */
        int64_t middle = low + (high - low) / 2;
        rate_interval(share, (double)middle, &lower, &upper);
        if (lower >= band) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    rate_interval(share, (double)low, &lower, &upper);
    return lower >= band ? low : -1;
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
