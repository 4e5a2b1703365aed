/*
 * Brier scores and their table. See calibration.h.
 */
#include "scheduler/calibration.h"

#include "base/check.h"

#include <math.h>

void calibration_add(struct calibration *calibration, int64_t logical_key, int64_t case_key,
                     double probability, double other, bool failed)
{
    double came = failed ? 1.0 : 0.0;
    double error = (probability - came) * (probability - came);
    double beside = error - (other - came) * (other - came);
    bool missing = isnan(beside);
    CHECK(missing || (probability >= 0.0 && probability <= 1.0 && other >= 0.0 && other <= 1.0));
    rate_add(&calibration->error, logical_key, case_key, missing ? NAN : error);
    rate_add(&calibration->more, logical_key, case_key, missing ? NAN : fmax(beside, 0.0));
    rate_add(&calibration->less, logical_key, case_key, missing ? NAN : fmax(-beside, 0.0));
    if (missing) {
        return;
    }
    int bin = (int)(probability * CALIBRATION_BINS);
    bin = bin < CALIBRATION_BINS ? bin : CALIBRATION_BINS - 1;
    calibration->forecasts++;
    calibration->failed += failed;
    calibration->bins[bin].forecasts++;
    calibration->bins[bin].failed += failed;
    calibration->bins[bin].said += probability;
}

struct rate_estimate calibration_score(const struct calibration *calibration)
{
    return rate_estimate(&calibration->error);
}

struct rate_difference calibration_beside(const struct calibration *calibration)
{
    return rate_difference(&calibration->more, &calibration->less);
}
