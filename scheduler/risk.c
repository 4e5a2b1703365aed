/*
 * The posterior of a rate, by a grid over the shared beta distribution and draws of everything
 * below it. See risk.h.
 *
 * Priors: Jeffreys' for the shared mean, uniform in the logarithm for the shared size between
 * SIZE_LEAST (a logical scenario fails always or never) and SIZE_MOST (all are alike).
 */
#include "scheduler/risk.h"

#include "base/array.h"
#include "scheduler/rate.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

#define HALF_PI 1.5707963267948966
#define TWO_PI 6.283185307179586
#define SIZE_LEAST 0.3
#define SIZE_MOST 300.0
#define SCALE_FIRST 1e-3
#define SCALE_MOST 1e15
/* A precision is asked of jobs only where exposures leave that much room. */
#define FLOOR_SHARE 0.9

enum { MEANS = 60, SIZES = 24, CELLS = MEANS * SIZES, PLAN_DRAWS = 1000, BISECTIONS = 10 };

/* ---- draws ---- */

struct draws {
    uint64_t state;
};

static double uniform(struct draws *draws)
{
    return ((double)(rng_mix(++draws->state) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct draws *draws)
{
    double radius = sqrt(-2 * log(uniform(draws)));
    return radius * cos(TWO_PI * uniform(draws));
}

/* The logarithm of a gamma variate (Marsaglia, Tsang, ACM Trans. Math. Software 26, 2000): small
 * shapes give values that no double holds. */
static double log_gamma_draw(struct draws *draws, double shape)
{
    double boost = shape < 1 ? log(uniform(draws)) / shape : 0;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
    for (;;) {
        double x = normal(draws);
        double v = 1 + x / sqrt(9 * d);
        v = v * v * v;
        if (v > 0 && log(uniform(draws)) < 0.5 * x * x + d - d * v + d * log(v)) {
            return boost + log(d * v);
        }
    }
}

static double beta_draw(struct draws *draws, double a, double b)
{
    double x = log_gamma_draw(draws, a);
    double y = log_gamma_draw(draws, b);
    return 1 / (1 + exp(y - x));
}

/* ---- the shared distribution ---- */

/* Strata with the same counts. */
struct group {
    double draws;
    double events;
    double times;
};

struct shared {
    double cumulated[CELLS]; /* posterior probability up to a cell */
    double size;             /* posterior mean */
};

static double cell_size(int index)
{
    return SIZE_LEAST * pow(SIZE_MOST / SIZE_LEAST, (index + 0.5) / SIZES);
}

static double cell_mean(double index)
{
    double sine = sin(HALF_PI * index / MEANS);
    return sine * sine;
}

static double log_beta(double a, double b)
{
    return lgamma(a) + lgamma(b) - lgamma(a + b);
}

static uint32_t group_strata(const struct risk_input *input, struct group *groups)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        const struct risk_stratum *at = &input->strata[i];
        uint32_t g = 0;
        while (g < count && (groups[g].draws != at->draws || groups[g].events != at->events)) {
            g++;
        }
        if (at->draws > 0 && g == count) {
            groups[count++] = (struct group){at->draws, at->events, 0};
        }
        groups[g].times += at->draws > 0;
    }
    return count;
}

static void learn_shared(const struct group *groups, uint32_t count, struct shared *out)
{
    double most = -INFINITY;
    double sum = 0;
    for (int c = 0; c < CELLS; c++) {
        double mean = cell_mean(c / SIZES + 0.5);
        double size = cell_size(c % SIZES);
        double a = mean * size;
        double b = (1 - mean) * size;
        double prior = log_beta(a, b);
        out->cumulated[c] = 0;
        for (uint32_t g = 0; g < count; g++) {
            const struct group *at = &groups[g];
            out->cumulated[c] +=
                at->times * (log_beta(a + at->events, b + at->draws - at->events) - prior);
        }
        most = fmax(most, out->cumulated[c]);
    }
    out->size = 0;
    for (int c = 0; c < CELLS; c++) {
        double share = exp(out->cumulated[c] - most);
        out->size += share * cell_size(c % SIZES);
        sum += share;
        out->cumulated[c] = sum;
    }
    out->size /= sum;
    for (int c = 0; c < CELLS; c++) {
        out->cumulated[c] /= sum;
    }
}

static void draw_shared(const struct shared *shared, struct draws *draws, double *mean,
                        double *size)
{
    double at = uniform(draws);
    int low = 0;
    int high = CELLS - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (shared->cumulated[middle] < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *mean = cell_mean(low / SIZES + uniform(draws));
    *size = cell_size(low % SIZES);
}

/* ---- exposures ---- */

static double log_spread(const struct risk_class *class)
{
    return class->low > 0 && class->high > class->low
               ? (log(class->high) - log(class->low)) / (2 * RATE_Z95)
               : 0;
}

/* Jeffreys' prior for what was counted. The log-normal distribution has the rate as its mean: about
 * it as the median the sum of many rates would be drawn too high. */
static double draw_exposure(const struct risk_class *class, struct draws *draws)
{
    if (class->count > 0) {
        return class->rate * exp(log_gamma_draw(draws, class->count + 0.5)) / class->count;
    }
    double spread = log_spread(class);
    return spread > 0 ? class->rate * exp(spread * (normal(draws) - spread / 2)) : class->rate;
}

static double exposure_variance(const struct risk_class *class)
{
    double square = class->rate * class->rate;
    double spread = log_spread(class);
    return class->count > 0 ? square / class->count : square * expm1(spread * spread);
}

static double variance(const double *values, uint32_t count)
{
    double mean = 0;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        mean += values[i] / count;
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += (values[i] - mean) * (values[i] - mean);
    }
    return sum / count;
}

static double quantile(const double *sorted, uint32_t count, double at)
{
    double place = at * (count - 1);
    uint32_t below = (uint32_t)place;
    uint32_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

/* ---- harm ---- */

static double event_count(const struct risk_input *input)
{
    double events = 0;
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        events += input->strata[i].events;
    }
    return events;
}

/* Mean harm of an event over all strata; 1 where there was no event to tell. */
static double pooled_harm(const struct risk_input *input)
{
    double events = event_count(input);
    double harm = 0;
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        harm += input->strata[i].harm;
    }
    return events > 0 ? harm / events : 1;
}

/* Draws how strata harm: each that had events gets a weight, cumulated here (Rubin, The Bayesian
 * bootstrap, Annals of Statistics 9, 1981), and last one that none was like. */
static void draw_weights(const struct risk_input *input, struct draws *draws, double *cumulated)
{
    double sum = 0;
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        sum += input->strata[i].events > 0 ? -log(uniform(draws)) : 0;
        cumulated[i] = sum;
    }
    cumulated[input->stratum_count] = sum - log(uniform(draws));
}

/* Mean harm of the events of some stratum, drawn by the weights. One that none was like has a
 * Pareto distribution above their mean: few events seldom show the worst. */
static double draw_any_harm(const struct risk_input *input, const double *cumulated, double pooled,
                            struct draws *draws)
{
    double at = uniform(draws) * cumulated[input->stratum_count];
    uint32_t i = 0;
    while (i < input->stratum_count && cumulated[i] < at) {
        i++;
    }
    return i < input->stratum_count ? input->strata[i].harm / input->strata[i].events
                                    : fmin(pooled / uniform(draws), 1);
}

/* Of a stratum: its own events, beside one event as in any other. */
static double draw_harm(const struct risk_input *input, uint32_t index, const double *cumulated,
                        double pooled, struct draws *draws)
{
    const struct risk_stratum *at = &input->strata[index];
    double own = at->events > 0 ? beta_draw(draws, at->events, 1) : 0;
    double any = draw_any_harm(input, cumulated, pooled, draws);
    return own > 0 ? own * at->harm / at->events + (1 - own) * any : any;
}

/* Harm that is to be expected of an event of a stratum; 1 where events are what counts. */
static double expected_harm(const struct risk_input *input, uint32_t index, double pooled)
{
    const struct risk_stratum *at = &input->strata[index];
    return input->harms ? (at->harm + pooled) / (at->events + 1) : 1;
}

/* Probability of its event, of a probability of harm. */
static double event_probability(double probability, double harm)
{
    return harm > 0 ? fmin(probability / harm, 1) : 0;
}

/* ---- rates ---- */

/* One draw of the rate, with the pooled harm; adds the probabilities that it came from.
 * cumulated[stratum_count + 1] is scratch. */
static double draw_rate(const struct risk_input *input, const struct shared *shared, double pooled,
                        struct draws *draws, double *exposures, double *probability,
                        double *cumulated)
{
    double mean;
    double size;
    double rate = 0;
    draw_shared(shared, draws, &mean, &size);
    if (input->harms) {
        draw_weights(input, draws, cumulated);
    }
    for (uint32_t c = 0; c < input->class_count; c++) {
        exposures[c] = draw_exposure(&input->classes[c], draws);
    }
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        const struct risk_stratum *at = &input->strata[i];
        double p =
            beta_draw(draws, mean * size + at->events, (1 - mean) * size + at->draws - at->events);
        p *= input->harms ? draw_harm(input, i, cumulated, pooled, draws) : 1;
        probability[i] += p;
        rate += exposures[at->class_index] * at->weight * p;
    }
    return rate;
}

/* The variance of the rate that comes from exposures alone. */
static double class_variance(const struct risk_input *input, const double *probability)
{
    double sum = 0;
    for (uint32_t c = 0; c < input->class_count; c++) {
        double share = 0;
        for (uint32_t i = 0; i < input->stratum_count; i++) {
            share +=
                input->strata[i].class_index == c ? input->strata[i].weight * probability[i] : 0;
        }
        sum += exposure_variance(&input->classes[c]) * share * share;
    }
    return sum;
}

static void observe(const struct risk_input *input, const double *probability,
                    struct risk_estimate *out)
{
    double all = 0;
    double unseen = 0;
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        const struct risk_stratum *at = &input->strata[i];
        double exposure = input->classes[at->class_index].rate * at->weight;
        if (at->draws > 0) {
            out->observed += exposure * (input->harms ? at->harm : at->events) / at->draws;
        } else {
            out->missed += exposure;
        }
        all += exposure * probability[i];
        unseen += at->events > 0 ? 0 : exposure * probability[i];
    }
    out->unseen_share = all > 0 ? unseen / all : 0;
}

enum status risk_estimate(const struct risk_input *input, struct risk_estimate *out,
                          double *probability, struct error *error)
{
    uint32_t count = input->draw_count > 0 ? input->draw_count : RISK_DRAWS;
    uint32_t strata = input->stratum_count;
    double *rates =
        calloc((size_t)count + input->class_count + 2 * (size_t)strata + 2, sizeof *rates);
    struct group *groups = calloc((size_t)strata + 1, sizeof *groups);
    struct shared *shared = malloc(sizeof *shared);
    if (rates == NULL || groups == NULL || shared == NULL) {
        free(rates);
        free(groups);
        free(shared);
        return error_set(error, STATUS_NO_MEMORY, "risk: out of memory");
    }
    double *exposures = rates + count;
    double *means = exposures + input->class_count;
    struct draws draws = {.state = rng_mix(input->key)};
    *out = (struct risk_estimate){0};
    double pooled = pooled_harm(input);
    learn_shared(groups, group_strata(input, groups), shared);
    for (uint32_t d = 0; d < count; d++) {
        rates[d] = draw_rate(input, shared, pooled, &draws, exposures, means, means + strata);
    }
    qsort(rates, count, sizeof *rates, array_compare_double);
    for (uint32_t i = 0; i < strata; i++) {
        means[i] /= count;
        if (probability != NULL) {
            probability[i] = means[i];
        }
    }
    out->value = quantile(rates, count, 0.5);
    out->low = quantile(rates, count, 0.025);
    out->high = quantile(rates, count, 0.975);
    if (input->harms && event_count(input) == 0) {
        /* No event, no harm: what may be is as much as there may be events. */
        out->value = NAN;
        out->low = 0;
    }
    out->size = shared->size;
    double from_exposure = class_variance(input, means);
    double all = variance(rates, count);
    out->exposure_share = all > 0 ? fmin(from_exposure / all, 1) : 0;
    observe(input, means, out);
    free(rates);
    free(groups);
    free(shared);
    return STATUS_OK;
}

/* ---- stopping ---- */

/* Draws that each stratum gets when exposure times spread is worth `scale` draws. */
static double spread_jobs(const struct risk_input *input, const double *probability, double scale,
                          double *jobs)
{
    double sum = 0;
    double pooled = pooled_harm(input);
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        const struct risk_stratum *at = &input->strata[i];
        double harm = expected_harm(input, i, pooled);
        double p = event_probability(probability[i], harm);
        double wanted =
            scale * input->classes[at->class_index].rate * at->weight * harm * sqrt(p * (1 - p));
        jobs[i] = fmin(ceil(fmax(wanted - at->draws, 0)), RISK_JOBS_MOST);
        sum += jobs[i];
    }
    return sum;
}

double risk_precision(const struct risk_estimate *estimate)
{
    return estimate->value > 0 ? (estimate->high - estimate->low) / 2 / estimate->value : INFINITY;
}

/* The precision that is to be expected after the jobs: each has the value that is expected now. */
static enum status foresee(const struct risk_input *input, const double *probability,
                           const double *jobs, struct risk_stratum *strata, double *precision,
                           struct error *error)
{
    struct risk_estimate at;
    struct risk_input then = *input;
    then.strata = strata;
    then.draw_count = PLAN_DRAWS;
    double pooled = pooled_harm(input);
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        double harm = expected_harm(input, i, pooled);
        strata[i] = input->strata[i];
        strata[i].draws += jobs[i];
        strata[i].events += jobs[i] * event_probability(probability[i], harm);
        strata[i].harm += jobs[i] * probability[i];
    }
    TRY(risk_estimate(&then, &at, NULL, error));
    *precision = risk_precision(&at);
    return STATUS_OK;
}

/* The least scale of spread_jobs() at which the precision is to be expected. */
static enum status find_scale(const struct risk_input *input, const double *probability,
                              double precision, double *jobs, struct risk_stratum *strata,
                              double *scale, struct error *error)
{
    double low = 0;
    double high = SCALE_FIRST;
    double found = INFINITY;
    while (found > precision && high < SCALE_MOST) {
        low = high;
        high *= 8;
        spread_jobs(input, probability, high, jobs);
        TRY(foresee(input, probability, jobs, strata, &found, error));
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = low > 0 ? sqrt(low * high) : high / 2;
        spread_jobs(input, probability, middle, jobs);
        TRY(foresee(input, probability, jobs, strata, &found, error));
        high = found <= precision ? middle : high;
        low = found <= precision ? low : middle;
    }
    *scale = high;
    return STATUS_OK;
}

enum status risk_plan(const struct risk_input *input, const struct risk_estimate *estimate,
                      const double *probability, double precision, struct risk_plan *out,
                      double *jobs, struct error *error)
{
    double scale = 0;
    struct risk_stratum *strata = calloc((size_t)input->stratum_count + 1, sizeof *strata);
    TRY(memory_check(strata, error, "risk: out of memory"));
    *out = (struct risk_plan){.precision = precision};
    for (uint32_t i = 0; i < input->stratum_count; i++) {
        jobs[i] = RISK_JOBS_MOST;
    }
    enum status status = foresee(input, probability, jobs, strata, &out->reachable, error);
    out->enough = status == STATUS_OK && out->reachable < FLOOR_SHARE * precision;
    out->precision = out->enough ? precision : out->reachable / FLOOR_SHARE;
    spread_jobs(input, probability, 0, jobs);
    if (status == STATUS_OK && risk_precision(estimate) > out->precision) {
        status = find_scale(input, probability, out->precision, jobs, strata, &scale, error);
        out->jobs = spread_jobs(input, probability, scale, jobs);
    }
    free(strata);
    return status;
}
