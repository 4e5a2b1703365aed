/*
 * Search: points to drive. See search.h.
 */
#include "scheduler/search.h"

#include "base/check.h"
#include "base/rng.h"

#include <math.h>

#define MARGIN_TTC_S 3.0
#define MARGIN_DISTANCE_M 10.0
#define MARGIN_IMPACT_MPS 20.0 /* what counts as hard as it gets */

#define ELITE_SHARE 0.1
#define LEARNING_RATE 0.7   /* [Rubinstein, Kroese], smoothing: 0.7 to 0.9 */
#define DEVIATION_MIN 0.02  /* of the range: keeps a generation from being one point */
#define DEVIATION_FIRST 0.3 /* about that of an even draw, 1 / sqrt(12) */
enum { ELITE_MIN = 3, EVEN_ONE_IN = 4, BELL_TERMS = 12 };

double search_margin(enum verdict verdict, const struct metrics *metrics)
{
    if (verdict == VERDICT_FAIL) {
        double impact = metrics->impact_speed_mps;
        return isfinite(impact) && impact > 0.0 ? -1.0 - fmin(1.0, impact / MARGIN_IMPACT_MPS)
                                                : -1.0;
    }
    if (verdict != VERDICT_PASS) {
        return NAN;
    }
    /* Both may be infinite: nobody was near. */
    double time = fmin(1.0, fmax(0.0, metrics->min_ttc_s) / MARGIN_TTC_S);
    double room = fmin(1.0, fmax(0.0, metrics->min_distance_m) / MARGIN_DISTANCE_M);
    double margin = isnan(time) ? room : isnan(room) ? time : fmin(time, room);
    return fmax(margin, 1e-6);
}

/* ---- drawing ---- */

/* Uniform in [0, 1): words of a counter that no other draw of the search has. */
static double uniform(uint64_t seed, uint32_t generation, uint32_t index, uint32_t dimension,
                      uint32_t term)
{
    const uint32_t counter[4] = {generation, index, dimension, term};
    uint32_t words[4];
    rng_philox(rng_mix(seed), counter, words);
    return (double)words[0] * 0x1p-32;
}

static void shuffle(uint32_t *items, uint32_t count, uint64_t seed, uint32_t dimension)
{
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t other = (uint32_t)(uniform(seed, UINT32_MAX, i, dimension, 0) * (i + 1));
        uint32_t kept = items[i];
        items[i] = items[other];
        items[other] = kept;
    }
}

void search_latin(const struct search_space *space, uint64_t seed, uint32_t count,
                  struct search_point *out)
{
    uint32_t order[SEARCH_LATIN_MAX];
    CHECK(count >= 1 && count <= SEARCH_LATIN_MAX);
    for (uint32_t d = 0; d < space->count; d++) {
        uint32_t choices = space->dimensions[d].choice_count;
        for (uint32_t i = 0; i < count; i++) {
            order[i] = i;
        }
        shuffle(order, count, seed, d);
        for (uint32_t i = 0; i < count; i++) {
            double within = uniform(seed, UINT32_MAX, i, d, 1);
            out[i].at[d] = choices > 0 ? (double)(order[i] % choices)
                                       : ((double)order[i] + within) / (double)count;
        }
    }
}

void search_draw_init(const struct search_space *space, struct search_draw *draw)
{
    *draw = (struct search_draw){.mean = {0}};
    for (uint32_t d = 0; d < space->count; d++) {
        uint32_t choices = space->dimensions[d].choice_count;
        CHECK(choices <= SEARCH_CHOICES_MAX);
        draw->mean[d] = 0.5;
        draw->deviation[d] = DEVIATION_FIRST;
        for (uint32_t c = 0; c < choices; c++) {
            draw->weight[d][c] = 1.0 / choices;
        }
    }
}

static double draw_choice(const double *weights, uint32_t count, double u)
{
    double sum = 0.0;
    for (uint32_t c = 0; c + 1 < count; c++) {
        sum += weights[c];
        if (u < sum) {
            return c;
        }
    }
    return count - 1;
}

/* A sum of twelve uniforms less six has mean 0 and variance 1 and needs no logarithm; what falls
 * outside the range is reflected at its end. */
static double draw_bell(double mean, double deviation, uint64_t seed, uint32_t generation,
                        uint32_t index, uint32_t dimension)
{
    double sum = -0.5 * BELL_TERMS;
    for (uint32_t t = 0; t < BELL_TERMS; t++) {
        sum += uniform(seed, generation, index, dimension, 1 + t);
    }
    double x = mean + deviation * sum;
    x = x < 0.0 ? -x : x;
    x = x > 1.0 ? 2.0 - x : x;
    return fmin(1.0, fmax(0.0, x));
}

struct search_point search_draw_point(const struct search_space *space,
                                      const struct search_draw *draw, uint64_t seed,
                                      uint32_t generation, uint32_t index)
{
    struct search_point point = {.at = {0}};
    bool even = index % EVEN_ONE_IN == EVEN_ONE_IN - 1;
    for (uint32_t d = 0; d < space->count; d++) {
        uint32_t choices = space->dimensions[d].choice_count;
        double u = uniform(seed, generation, index, d, 0);
        if (choices > 0) {
            point.at[d] =
                even ? (double)(uint32_t)(u * choices) : draw_choice(draw->weight[d], choices, u);
        } else {
            point.at[d] =
                even ? u : draw_bell(draw->mean[d], draw->deviation[d], seed, generation, index, d);
        }
    }
    return point;
}

/* ---- learning ---- */

/* Number of samples before sample i: smaller margins, equal ones in their order. */
static uint32_t rank_of(const struct search_sample *samples, uint32_t count, uint32_t i)
{
    uint32_t before = 0;
    for (uint32_t j = 0; j < count; j++) {
        const double margin = samples[j].margin;
        before += margin < samples[i].margin || (j < i && margin == samples[i].margin);
    }
    return before;
}

/* Sums over the elite: of a number and its square, and how often each choice occurs. */
struct elite {
    uint32_t count;
    double sum[SEARCH_DIMENSIONS_MAX];
    double squares[SEARCH_DIMENSIONS_MAX];
    uint32_t chosen[SEARCH_DIMENSIONS_MAX][SEARCH_CHOICES_MAX];
};

static void elite_add(const struct search_space *space, const struct search_point *point,
                      struct elite *elite)
{
    elite->count++;
    for (uint32_t d = 0; d < space->count; d++) {
        elite->sum[d] += point->at[d];
        elite->squares[d] += point->at[d] * point->at[d];
        elite->chosen[d][(uint32_t)point->at[d] % SEARCH_CHOICES_MAX]++;
    }
}

void search_draw_learn(const struct search_space *space, struct search_draw *draw,
                       const struct search_sample *samples, uint32_t count)
{
    struct elite elite = {.count = 0};
    uint32_t results = 0;
    for (uint32_t i = 0; i < count; i++) {
        results += !isnan(samples[i].margin);
    }
    uint32_t wanted = (uint32_t)(ELITE_SHARE * results);
    wanted = wanted < ELITE_MIN ? ELITE_MIN : wanted;
    for (uint32_t i = 0; i < count; i++) {
        if (!isnan(samples[i].margin) && rank_of(samples, count, i) < wanted) {
            elite_add(space, &samples[i].point, &elite);
        }
    }
    if (elite.count == 0) {
        return;
    }
    double n = elite.count;
    for (uint32_t d = 0; d < space->count; d++) {
        double mean = elite.sum[d] / n;
        double deviation = sqrt(fmax(0.0, elite.squares[d] / n - mean * mean));
        draw->mean[d] += LEARNING_RATE * (mean - draw->mean[d]);
        draw->deviation[d] += LEARNING_RATE * (deviation - draw->deviation[d]);
        draw->deviation[d] = fmax(DEVIATION_MIN, draw->deviation[d]);
        for (uint32_t c = 0; c < space->dimensions[d].choice_count; c++) {
            draw->weight[d][c] += LEARNING_RATE * (elite.chosen[d][c] / n - draw->weight[d][c]);
        }
    }
}

/* ---- lines ---- */

bool search_same_choices(const struct search_space *space, const struct search_point *a,
                         const struct search_point *b)
{
    for (uint32_t d = 0; d < space->count; d++) {
        if (space->dimensions[d].choice_count > 0 && a->at[d] != b->at[d]) {
            return false;
        }
    }
    return true;
}

double search_distance(const struct search_space *space, const struct search_point *a,
                       const struct search_point *b)
{
    double most = 0.0;
    for (uint32_t d = 0; d < space->count; d++) {
        if (space->dimensions[d].choice_count == 0) {
            most = fmax(most, fabs(a->at[d] - b->at[d]));
        }
    }
    return most;
}

bool search_closest_pair(const struct search_space *space, const struct search_sample *samples,
                         uint32_t count, uint32_t *failing, uint32_t *passing)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < count && samples[i].margin < 0.0; j++) {
            if (samples[j].margin > 0.0 &&
                search_same_choices(space, &samples[i].point, &samples[j].point)) {
                double distance = search_distance(space, &samples[i].point, &samples[j].point);
                if (distance < least) {
                    least = distance;
                    *failing = i;
                    *passing = j;
                }
            }
        }
    }
    return least < INFINITY;
}

struct search_line search_line_along(const struct search_point *failing, uint32_t dimension,
                                     bool high)
{
    struct search_line line = {
        .state = SEARCH_LINE_PROBE, .failing = *failing, .passing = *failing};
    line.passing.at[dimension] = high ? 1.0 : 0.0;
    if (failing->at[dimension] == line.passing.at[dimension]) {
        line.state = SEARCH_LINE_ALL_FAIL; /* it is the end itself that fails */
    }
    return line;
}

static enum search_line_state halve_or_end(const struct search_space *space,
                                           const struct search_line *line, double resolution)
{
    return search_distance(space, &line->failing, &line->passing) <= resolution ? SEARCH_LINE_FOUND
                                                                                : SEARCH_LINE_HALVE;
}

struct search_line search_line_between(const struct search_space *space,
                                       const struct search_point *failing,
                                       const struct search_point *passing, double resolution)
{
    struct search_line line = {.failing = *failing, .passing = *passing};
    line.state = halve_or_end(space, &line, resolution);
    return line;
}

bool search_line_next(const struct search_line *line, struct search_point *out)
{
    if (line->state == SEARCH_LINE_PROBE) {
        *out = line->passing;
        return true;
    }
    if (line->state != SEARCH_LINE_HALVE) {
        return false;
    }
    /* Choices are equal at both ends, and so is their mean. */
    for (uint32_t d = 0; d < SEARCH_DIMENSIONS_MAX; d++) {
        out->at[d] = 0.5 * (line->failing.at[d] + line->passing.at[d]);
    }
    return true;
}

void search_line_take(const struct search_space *space, struct search_line *line, double margin,
                      double resolution)
{
    struct search_point middle;
    CHECK(line->state == SEARCH_LINE_PROBE || line->state == SEARCH_LINE_HALVE);
    if (line->state == SEARCH_LINE_PROBE && margin < 0.0) {
        line->state = SEARCH_LINE_ALL_FAIL;
        return;
    }
    if (line->state == SEARCH_LINE_HALVE) {
        search_line_next(line, &middle);
        *(margin < 0.0 ? &line->failing : &line->passing) = middle;
    }
    line->state = halve_or_end(space, line, resolution);
}
