/*
 * Brier scores and their table. See calibration.h.
 */
#include "scheduler/calibration.h"

#include "base/check.h"

#include <math.h>

/* ---- forecasts ---- */

const char *const forecast_answer_names[FORECAST_ANSWERS] = {"undecided", "pass", "fail"};

struct forecast_share forecast_share_of(uint32_t passed, uint32_t failed)
{
    struct forecast_share share = {.value = NAN, .low = 0.0, .high = 1.0};
    double drives = (double)passed + failed;
    if (drives > 0) {
        share.value = failed / drives;
        rate_interval(share.value, drives, &share.low, &share.high);
    }
    return share;
}

struct forecast_share forecast_share_over(const struct forecast_share *models, uint32_t count)
{
    struct forecast_share all = {.value = NAN, .low = count > 0 ? 1.0 : 0.0, .high = count == 0};
    double sum = 0.0;
    uint32_t with_verdicts = 0;
    for (uint32_t m = 0; m < count; m++) {
        all.low = fmin(all.low, models[m].low);
        all.high = fmax(all.high, models[m].high);
        if (!isnan(models[m].value)) {
            sum += models[m].value;
            with_verdicts++;
        }
    }
    all.value = with_verdicts > 0 ? sum / with_verdicts : NAN;
    return all;
}

struct forecast_share forecast_kept(const struct outcome_futures *futures)
{
    const struct forecast_share models[] = {
        forecast_share_of(futures->idm_passed, futures->idm_failed),
        forecast_share_of(futures->drivers_passed, futures->drivers_failed),
        forecast_share_of(futures->constant_passed, futures->constant_failed),
    };
    return forecast_share_over(models, COUNT_OF(models));
}

enum forecast_answer forecast_answer(const struct forecast_share *share)
{
    return share->high < 0.5  ? FORECAST_PASS
           : share->low > 0.5 ? FORECAST_FAIL
                              : FORECAST_UNDECIDED;
}

bool forecast_says(enum forecast_answer answer, enum verdict verdict)
{
    return (answer == FORECAST_PASS && verdict == VERDICT_PASS) ||
           (answer == FORECAST_FAIL && verdict == VERDICT_FAIL);
}

enum forecast_answer forecast_settles(const struct outcome_futures *futures, enum verdict own)
{
    const struct forecast_share share = forecast_kept(futures);
    const enum forecast_answer answer = forecast_answer(&share);
    return forecast_says(answer, own) ? answer : FORECAST_UNDECIDED;
}

uint32_t forecast_draws_decisive(void)
{
    uint32_t draws = 0;
    double low = 0.0;
    double high = 1.0;
    while (high >= 0.5) {
        draws++;
        rate_interval(0.0, draws, &low, &high);
    }
    return draws;
}

/* ---- calibration ---- */

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
