/*
 * Two sides and what their difference means. See rollback.h.
 */
#include "scheduler/rollback.h"

#include <math.h>
#include <stdio.h>

#define BUCKET_RATIO 1.04
#define BUCKET_FIRST_NS 1e4

const char *const rollback_cause_names[ROLLBACK_CAUSE_COUNT] = {
    "none", "agreement", "flags", "cost", "tick time", "disagreements in a row", "flags in a row"};

struct rollback_policy rollback_policy_default(void)
{
    return (struct rollback_policy){
        .samples = 1000,
        .worse = 0.01,
        .cost_worse = 0.01,
        .ticks_worse = 0.2,
        .runs = 5,
        .run_jobs = 20,
        .run_share = 0.2,
    };
}

static void add_share(const struct rollback_policy *policy, struct rollback_share *share, bool bad)
{
    share->jobs++;
    share->bad += bad;
    share->run_jobs++;
    share->run_bad += bad;
    if (share->run_jobs >= policy->run_jobs) {
        bool over = (double)share->run_bad > policy->run_share * (double)share->run_jobs;
        share->runs = over ? share->runs + 1 : 0;
        share->run_jobs = share->run_bad = 0;
    }
}

static int bucket_of(double ns)
{
    double bucket = ceil(log(ns / BUCKET_FIRST_NS) / log(BUCKET_RATIO));
    return !(bucket > 0.0) ? 0 : bucket >= ROLLBACK_BUCKETS ? ROLLBACK_BUCKETS - 1 : (int)bucket;
}

void rollback_add_drive(const struct rollback_policy *policy, struct rollback_side *side,
                        bool flagged, int64_t device_ns, int64_t metres_mm, int64_t ticks)
{
    struct rollback_cost *cost = &side->cost;
    double ns = (double)device_ns;
    double mm = (double)metres_mm;
    add_share(policy, &side->flags, flagged);
    cost->jobs++;
    cost->ns += ns;
    cost->mm += mm;
    cost->ns2 += ns * ns;
    cost->mm2 += mm * mm;
    cost->ns_mm += ns * mm;
    if (ticks > 0 && device_ns > 0) {
        side->timed++;
        side->ticks[bucket_of(ns / (double)ticks)]++;
    }
}

void rollback_add_audit(const struct rollback_policy *policy, struct rollback_side *side,
                        bool agrees)
{
    add_share(policy, &side->agreement, !agrees);
}

double rollback_bad_share(const struct rollback_share *share)
{
    return share->jobs > 0 ? (double)share->bad / (double)share->jobs : NAN;
}

double rollback_ns_per_m(const struct rollback_cost *cost)
{
    return cost->mm > 0.0 ? 1000.0 * cost->ns / cost->mm : NAN;
}

double rollback_tick_ns(const struct rollback_side *side, double quantile)
{
    double rank = ceil(quantile * (double)side->timed);
    double below = 0.0;
    for (int i = 0; i < ROLLBACK_BUCKETS; i++) {
        below += (double)side->ticks[i];
        if (below >= rank && below > 0.0) {
            return BUCKET_FIRST_NS * pow(BUCKET_RATIO, i);
        }
    }
    return NAN;
}

/* ---- beyond the limit and beyond chance ---- */

/* Shares with one good and one bad job added to each side, whose interval holds at few bad ones too
 * (Agresti and Caffo, The American Statistician 54, 2000). */
static bool share_worse(const struct rollback_policy *policy, const struct rollback_share *canary,
                        const struct rollback_share *incumbent)
{
    if (canary->jobs < policy->samples || incumbent->jobs < policy->samples ||
        !(rollback_bad_share(canary) - rollback_bad_share(incumbent) > policy->worse)) {
        return false;
    }
    double n = (double)canary->jobs + 2.0;
    double m = (double)incumbent->jobs + 2.0;
    double p = ((double)canary->bad + 1.0) / n;
    double q = ((double)incumbent->bad + 1.0) / m;
    return p - q > ROLLBACK_Z * sqrt(p * (1.0 - p) / n + q * (1.0 - q) / m);
}

/* Relative variance of a ratio of sums (Cochran, Sampling Techniques, 1977, section 6.4). */
static double ratio_variance(const struct rollback_cost *cost)
{
    double n = (double)cost->jobs;
    double ratio = cost->ns / cost->mm;
    double squares = cost->ns2 - 2.0 * ratio * cost->ns_mm + ratio * ratio * cost->mm2;
    return fmax(squares, 0.0) * n / ((n - 1.0) * cost->ns * cost->ns);
}

static bool cost_worse(const struct rollback_policy *policy, const struct rollback_cost *canary,
                       const struct rollback_cost *incumbent)
{
    if (canary->jobs < policy->samples || incumbent->jobs < policy->samples ||
        !(canary->mm > 0.0 && incumbent->mm > 0.0 && canary->ns > 0.0 && incumbent->ns > 0.0)) {
        return false;
    }
    double ratio = rollback_ns_per_m(canary) / rollback_ns_per_m(incumbent);
    return ratio > 1.0 + policy->cost_worse &&
           log(ratio) > ROLLBACK_Z * sqrt(ratio_variance(canary) + ratio_variance(incumbent));
}

/* Ranks err by the binomial's deviation, whatever the distribution of times is. */
static bool ticks_worse(const struct rollback_policy *policy, const struct rollback_side *canary,
                        const struct rollback_side *incumbent)
{
    const double p = 0.99;
    if (canary->timed < policy->samples || incumbent->timed < policy->samples) {
        return false;
    }
    double low = p - ROLLBACK_Z * sqrt(p * (1.0 - p) / (double)canary->timed);
    double high = fmin(1.0, p + ROLLBACK_Z * sqrt(p * (1.0 - p) / (double)incumbent->timed));
    return rollback_tick_ns(canary, p) >
               (1.0 + policy->ticks_worse) * rollback_tick_ns(incumbent, p) &&
           rollback_tick_ns(canary, low) > rollback_tick_ns(incumbent, high);
}

static bool runs_over(const struct rollback_policy *policy, const struct rollback_share *canary,
                      const struct rollback_share *incumbent)
{
    return canary->runs >= policy->runs && incumbent->runs == 0;
}

enum rollback_cause rollback_decide(const struct rollback_policy *policy,
                                    const struct rollback_side *canary,
                                    const struct rollback_side *incumbent)
{
    if (runs_over(policy, &canary->agreement, &incumbent->agreement)) {
        return ROLLBACK_RUNS_DISAGREED;
    }
    if (runs_over(policy, &canary->flags, &incumbent->flags)) {
        return ROLLBACK_RUNS_FLAGGED;
    }
    if (share_worse(policy, &canary->agreement, &incumbent->agreement)) {
        return ROLLBACK_AGREEMENT;
    }
    if (share_worse(policy, &canary->flags, &incumbent->flags)) {
        return ROLLBACK_FLAGS;
    }
    if (cost_worse(policy, &canary->cost, &incumbent->cost)) {
        return ROLLBACK_COST;
    }
    return ticks_worse(policy, canary, incumbent) ? ROLLBACK_TICKS : ROLLBACK_NONE;
}

static void shares_text(const char *what, const struct rollback_share *canary,
                        const struct rollback_share *incumbent, char *out)
{
    snprintf(out, ROLLBACK_TEXT_BYTES,
             "%lld of %lld jobs %s, of the promoted version's %lld of %lld", (long long)canary->bad,
             (long long)canary->jobs, what, (long long)incumbent->bad, (long long)incumbent->jobs);
}

const char *rollback_text(enum rollback_cause cause, const struct rollback_side *canary,
                          const struct rollback_side *incumbent, char out[ROLLBACK_TEXT_BYTES])
{
    out[0] = '\0';
    if (cause == ROLLBACK_AGREEMENT || cause == ROLLBACK_RUNS_DISAGREED) {
        shares_text("disagreed with the teacher", &canary->agreement, &incumbent->agreement, out);
    } else if (cause == ROLLBACK_FLAGS || cause == ROLLBACK_RUNS_FLAGGED) {
        shares_text("were flagged", &canary->flags, &incumbent->flags, out);
    } else if (cause == ROLLBACK_COST) {
        snprintf(out, ROLLBACK_TEXT_BYTES,
                 "%.4g s of device time per km in %lld jobs, of the promoted version %.4g in %lld",
                 1e-6 * rollback_ns_per_m(&canary->cost), (long long)canary->cost.jobs,
                 1e-6 * rollback_ns_per_m(&incumbent->cost), (long long)incumbent->cost.jobs);
    } else if (cause == ROLLBACK_TICKS) {
        snprintf(out, ROLLBACK_TEXT_BYTES,
                 "99%% of %lld rollouts take at most %.3g ms per tick, the promoted version's %.3g",
                 (long long)canary->timed, 1e-6 * rollback_tick_ns(canary, 0.99),
                 1e-6 * rollback_tick_ns(incumbent, 0.99));
    }
    return out;
}
