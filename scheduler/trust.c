/*
 * Monitors and what they decide. See trust.h.
 */
#include "scheduler/trust.h"

#include "scheduler/rate.h"

#include <math.h>
#include <string.h>

/* One side of the band's interval errs once in 10,000 looks. */
#define BAND_Z 3.719
#define BAND_SCENARIOS_MIN 20

const char *const trust_alarm_names[TRUST_ALARM_COUNT] = {"quiet", "trend", "band"};

static bool below_band(const struct trust_monitor *monitor, double band)
{
    double low;
    double high;
    double scenarios = (double)monitor->scenarios;
    rate_wilson(1 - (double)monitor->bad_scenarios / scenarios, scenarios, BAND_Z, &low, &high);
    return monitor->scenarios >= BAND_SCENARIOS_MIN && high < band;
}

/* Replaces what the scenario counted since the sum was 0 by its latest job. */
static void count_scenario(struct trust_monitor *monitor, struct trust_seen *seen, double ratio,
                           bool bad)
{
    bool again = seen->any && seen->rise == monitor->rises;
    monitor->scenarios += !seen->any;
    monitor->bad_scenarios += bad - (seen->any && seen->bad);
    monitor->sum += ratio - (again ? seen->counts : 0.0);
    *seen = (struct trust_seen){true, bad, monitor->rises, ratio};
    if (monitor->sum <= 0.0) {
        monitor->sum = 0.0;
        monitor->rises++;
    }
}

void trust_monitor_add(struct trust_monitor *monitor, struct trust_seen *seen,
                       const struct trust_shift *shift, double false_alarm_jobs, double band,
                       bool bad, int64_t outcome_id, int64_t at_ms)
{
    double ratio = bad ? log(shift->shifted / shift->healthy)
                       : log((1.0 - shift->shifted) / (1.0 - shift->healthy));
    monitor->jobs++;
    monitor->bad += bad;
    count_scenario(monitor, seen, ratio, bad);
    if (monitor->alarm != TRUST_QUIET) {
        return;
    }
    if (monitor->sum >= log(false_alarm_jobs)) {
        monitor->alarm = TRUST_TREND;
    } else if (below_band(monitor, band)) {
        monitor->alarm = TRUST_BAND;
    }
    if (monitor->alarm != TRUST_QUIET) {
        monitor->alarm_jobs = monitor->jobs;
        monitor->alarm_outcome = outcome_id;
        monitor->alarm_at_ms = at_ms;
    }
}

struct stability_sums {
    double before;
    double after;
    double values; /* that occur at all */
};

static struct stability_sums stability_sums(const int64_t *before, const int64_t *after,
                                            uint32_t count)
{
    struct stability_sums sums = {0};
    for (uint32_t i = 0; i < count; i++) {
        sums.before += (double)before[i];
        sums.after += (double)after[i];
        sums.values += before[i] + after[i] > 0;
    }
    return sums;
}

double trust_stability_index(const int64_t *before, const int64_t *after, uint32_t count)
{
    struct stability_sums sums = stability_sums(before, after, count);
    double index = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double p = (before[i] > 0 ? (double)before[i] : 0.5) / sums.before;
        double q = (after[i] > 0 ? (double)after[i] : 0.5) / sums.after;
        index += before[i] + after[i] > 0 ? (q - p) * log(q / p) : 0.0;
    }
    return index;
}

double trust_stability_noise(const int64_t *before, const int64_t *after, uint32_t count)
{
    struct stability_sums sums = stability_sums(before, after, count);
    return (sums.values - 1.0) * (1.0 / sums.before + 1.0 / sums.after);
}

static bool of_slice(const struct trust_slice *slice, const struct trust_fact *fact)
{
    return trust_slice_has(slice, (const char(*)[LIMIT_ID_BYTES])fact->slice,
                           fact->safety_critical);
}

bool trust_is_thawed(const struct trust_policy *policy, const struct trust_fact *fact)
{
    for (uint32_t i = 0; i < policy->thaw_count; i++) {
        if (fact->outcome_id <= policy->thaws[i].after_outcome &&
            of_slice(&policy->thaws[i].slice, fact)) {
            return true;
        }
    }
    return false;
}

/* Runs the monitor over what no frozen slice explains. */
static void run_monitor(const struct trust_policy *policy, const struct trust_fact *facts,
                        uint32_t fact_count, const bool *used, struct trust_seen *seen,
                        struct trust_verdict *verdict)
{
    memset(&verdict->monitor, 0, sizeof verdict->monitor);
    memset(seen, 0, fact_count * sizeof *seen);
    for (uint32_t i = 0; i < fact_count; i++) {
        if (!used[i] && of_slice(&verdict->slice, &facts[i])) {
            double band =
                verdict->slice.safety_critical ? policy->safety_critical_band : policy->band;
            trust_monitor_add(&verdict->monitor, &seen[facts[i].logical], &policy->disagreement,
                              policy->false_alarm_jobs, band, !facts[i].agrees, facts[i].outcome_id,
                              facts[i].at_ms);
        }
    }
}

/* Sickness of a slice at the least. */
static double lower_share(const struct trust_monitor *monitor)
{
    double low;
    double high;
    double scenarios = (double)monitor->scenarios;
    rate_wilson((double)monitor->bad_scenarios / scenarios, scenarios, RATE_Z95, &low, &high);
    return low;
}

/* The sounding slice that explains most, or `count`. */
static uint32_t pick(const struct trust_verdict *verdicts, uint32_t count)
{
    uint32_t best = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!verdicts[i].frozen && verdicts[i].monitor.alarm != TRUST_QUIET &&
            (best == count ||
             lower_share(&verdicts[i].monitor) > lower_share(&verdicts[best].monitor))) {
            best = i;
        }
    }
    return best;
}

uint32_t trust_judge(const struct trust_policy *policy, const struct trust_fact *facts,
                     uint32_t fact_count, struct trust_verdict *verdicts, uint32_t count,
                     bool *used, struct trust_seen *seen)
{
    uint32_t frozen = 0;
    for (uint32_t i = 0; i < fact_count; i++) {
        used[i] = trust_is_thawed(policy, &facts[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        verdicts[i].frozen = false;
    }
    for (;;) {
        for (uint32_t i = 0; i < count; i++) {
            if (!verdicts[i].frozen) {
                run_monitor(policy, facts, fact_count, used, seen, &verdicts[i]);
            }
        }
        uint32_t next = pick(verdicts, count);
        if (next == count) {
            return frozen;
        }
        verdicts[next].frozen = true;
        frozen++;
        for (uint32_t i = 0; i < fact_count; i++) {
            used[i] = used[i] || of_slice(&verdicts[next].slice, &facts[i]);
        }
    }
}
