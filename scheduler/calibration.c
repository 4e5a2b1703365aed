/*
 * Brier scores and their table. See calibration.h.
 */
#include "scheduler/calibration.h"

#include "base/check.h"

#include <math.h>

/* Adds a drive to the mean of its case, and the case to its cluster. */
static void add_beside(struct calibration *calibration, struct paired_cluster *cluster,
                       int64_t case_key, double beside)
{
    if (case_key != calibration->case_key) {
        calibration->case_key = case_key;
        calibration->case_drives = 0;
        calibration->case_mean = 0.0;
        cluster->cases += 1.0;
    }
    double mean = calibration->case_mean +
                  (beside - calibration->case_mean) / (double)++calibration->case_drives;
    cluster->sum += mean - calibration->case_mean;
    calibration->case_mean = mean;
}

void calibration_add(struct calibration *calibration, int64_t logical_key, int64_t case_key,
                     double probability, double other, bool failed)
{
    double came = failed ? 1.0 : 0.0;
    double error = (probability - came) * (probability - came);
    double beside = error - (other - came) * (other - came);
    bool missing = isnan(beside);
    CHECK(missing || (probability >= 0.0 && probability <= 1.0 && other >= 0.0 && other <= 1.0));
    CHECK(logical_key >= 1 && logical_key <= calibration->cluster_max);
    rate_add(&calibration->error, logical_key, case_key, missing ? NAN : error);
    if (missing) {
        return;
    }
    add_beside(calibration, &calibration->clusters[logical_key - 1], case_key, beside);
    int bin = (int)(probability * CALIBRATION_BINS);
    bin = bin < CALIBRATION_BINS ? bin : CALIBRATION_BINS - 1;
    calibration->forecasts++;
    calibration->failed += failed;
    calibration->bins[bin].forecasts++;
    calibration->bins[bin].failed += failed;
    calibration->bins[bin].said += probability;
}

double calibration_score(const struct calibration *calibration)
{
    return rate_estimate(&calibration->error).value;
}

struct paired_mean calibration_beside(const struct calibration *calibration)
{
    return paired_mean(calibration->clusters, calibration->cluster_max);
}
