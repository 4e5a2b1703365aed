/*
 * Rates. Method: the streamed sums against the formula over arrays; intervals against values that
 * Python with SciPy computed from whole arrays; Wilson's interval against the two roots of the
 * equation that it solves and against published values; and suites with a known truth, drawn again
 * and again, in which every interval must contain it about as often as it says.
 *
 *     test_rate --coverage REPETITIONS     the tables of truths, as docs/intervals.md has them
 *     test_rate --widths REPETITIONS       beside the narrowest of other methods that hold the
 *                                          truth, in the cell and whatever the truth is
 *
 * A drawn suite: logical scenarios whose numbers of cases are one of the mixes; the pass rate of a
 * logical scenario is drawn from a beta distribution about the truth, that of a case from one about
 * its logical scenario's (intraclass correlations `between` and `within`), and each seed of a case
 * passes by chance.
 */
#include "base/check.h"
#include "scheduler/rate.h"
#include "tests/harness.h"
#include "tests/scheduler/draws.h"

#include <math.h>
#include <stdlib.h>

enum { CASES_MAX = 200, CHECKED_REPETITIONS = 400 };

/* A share about `mean` whose draws have that intraclass correlation. */
static double share_about(double mean, double correlation)
{
    if (correlation <= 0 || mean <= 0 || mean >= 1) {
        return mean;
    }
    double size = (1 - correlation) / correlation;
    double a = draw_gamma(mean * size);
    double b = draw_gamma((1 - mean) * size);
    return a + b > 0 ? a / (a + b) : (double)(draw_uniform() < mean);
}

/* Numbers of cases of logical scenarios. */
enum mix {
    MIX_ONES,
    MIX_SMALL,  /* 1 to 8 */
    MIX_GRID,   /* one of `grid`, the others 1 */
    MIX_EASY,   /* the same, and the others pass always */
    MIX_SIXTHS, /* one in six 10, the others 1 */
    MIX_WIDE,   /* 1 to 200, uniform in the logarithm */
    MIX_COUNT
};
static const char *const mix_names[] = {
    "1",       "1 to 8", "200, others 1", "200, others 1 that pass", "one in six 10, others 1",
    "1 to 200"};

struct truth {
    double pass;
    int logical;
    int seeds;
    double between;
    double within;
    enum mix mix;
    int grid;
};

static int draw_cases(const struct truth *truth, int logical)
{
    int cases = 1;
    switch (truth->mix) {
    case MIX_ONES:
        return 1;
    case MIX_SMALL:
        while (cases < 8 && draw_uniform() < 0.3) {
            cases++;
        }
        return cases;
    case MIX_SIXTHS:
        return logical % 6 == 0 ? 10 : 1;
    case MIX_WIDE:
        return (int)exp(draw_uniform() * log(CASES_MAX + 1));
    default:
        return logical == 0 ? truth->grid : 1;
    }
}

/* Returns the mean over the cases of what is true of each. */
static double draw_suite(const struct truth *truth, struct rate *rate)
{
    double sum = 0;
    double all = 0;
    *rate = (struct rate){0};
    for (int l = 0; l < truth->logical; l++) {
        int cases = draw_cases(truth, l);
        double pass = truth->mix == MIX_EASY && l > 0 ? 1 : truth->pass;
        double at = share_about(pass, truth->between);
        sum += pass * cases;
        all += cases;
        for (int c = 0; c < cases; c++) {
            double here = truth->seeds == 1 ? at : share_about(at, truth->within);
            for (int s = 0; s < truth->seeds; s++) {
                rate_add(rate, l + 1, l * CASES_MAX + c + 1, draw_uniform() < here);
            }
        }
    }
    return sum / all;
}

/* Coverage of the truth by the interval, in percent, and its mean width. */
static double coverage(const struct truth *truth, int repetitions, double *width)
{
    int covered = 0;
    *width = 0;
    for (int i = 0; i < repetitions; i++) {
        struct rate rate;
        double pass = draw_suite(truth, &rate);
        struct rate_estimate at = rate_estimate(&rate);
        covered += at.low - 1e-9 <= pass && pass <= at.high + 1e-9;
        *width += (at.high - at.low) / repetitions;
    }
    return 100.0 * covered / repetitions;
}

/* ---- widths beside other methods ---- */

enum method {
    METHOD_OURS,
    METHOD_KISH,     /* Wilson of what the weights are worth */
    METHOD_KISH_CC,  /* .. corrected for continuity */
    METHOD_PLAIN,    /* Wilson of the linearised variance, with L - 1 degrees of freedom */
    METHOD_PLAIN_CC, /* .. corrected for continuity */
    METHOD_COUNT
};
static const char *const method_names[METHOD_COUNT] = {"ours", "Kish, Wilson", "Kish, corrected",
                                                       "L - 1, Wilson", "L - 1, corrected"};

static void ends_of(enum method method, const struct rate *rate, double *low, double *high)
{
    struct rate closed = *rate;
    struct rate_estimate at = rate_estimate(rate);
    rate_add(&closed, INT64_MAX, INT64_MAX, NAN); /* closes what is open */
    double cases = (double)at.cases;
    double squares = closed.square_sum[2] - 2 * at.value * closed.square_sum[1] +
                     at.value * at.value * closed.square_sum[0];
    double draws = cases * cases / closed.square_sum[0];
    if (method >= METHOD_PLAIN && squares > 1e-9) {
        double count = (double)at.logical;
        double variance = squares / (cases * cases) * count / fmax(count - 1, 1);
        double t = rate_t95(fmax(count - 1, 1));
        draws = at.value * (1 - at.value) / variance * RATE_Z95 * RATE_Z95 / (t * t);
    }
    if (method == METHOD_OURS) {
        *low = at.low;
        *high = at.high;
    } else if (method == METHOD_KISH || method == METHOD_PLAIN) {
        rate_wilson(at.value, draws, RATE_Z95, low, high);
    } else {
        rate_interval(at.value, draws, low, high);
    }
}

/* Methods in one cell: whether they hold the truth in 93% of the suites, and how wide. */
struct tried {
    bool valid[METHOD_COUNT];
    double width[METHOD_COUNT];
};

static struct tried try_methods(const struct truth *truth, int repetitions)
{
    struct tried out = {0};
    int covered[METHOD_COUNT] = {0};
    for (int i = 0; i < repetitions; i++) {
        struct rate rate;
        double pass = draw_suite(truth, &rate);
        for (enum method m = 0; m < METHOD_COUNT; m++) {
            double low;
            double high;
            ends_of(m, &rate, &low, &high);
            covered[m] += low - 1e-9 <= pass && pass <= high + 1e-9;
            out.width[m] += (high - low) / repetitions;
        }
    }
    for (enum method m = 0; m < METHOD_COUNT; m++) {
        out.valid[m] = covered[m] >= 0.93 * repetitions;
    }
    return out;
}

/* Ratio of our width to the narrowest of the methods that are valid, ours included. */
static double width_ratio(const struct tried *tried, const bool valid[METHOD_COUNT])
{
    double least = tried->width[METHOD_OURS];
    for (enum method m = 0; m < METHOD_COUNT; m++) {
        least = valid[m] ? fmin(least, tried->width[m]) : least;
    }
    return tried->width[METHOD_OURS] / least;
}

/* Coverage of the true difference by its interval: two planners on the same cases,
 * the second better by `gain` where the first fails, worse by `loss` where it passes. */
static double difference_coverage(const struct truth *truth, double gain, double loss,
                                  int repetitions)
{
    int covered = 0;
    double expected = (1 - truth->pass) * gain - truth->pass * loss;
    for (int i = 0; i < repetitions; i++) {
        struct rate gains = {0};
        struct rate losses = {0};
        for (int l = 0; l < truth->logical; l++) {
            double at = share_about(truth->pass, truth->between);
            for (int c = 0; c < 2; c++) {
                double here = share_about(at, truth->within);
                bool first = draw_uniform() < here;
                bool second = first ? draw_uniform() >= loss : draw_uniform() < gain;
                rate_add(&gains, l + 1, l * 2 + c + 1, second && !first);
                rate_add(&losses, l + 1, l * 2 + c + 1, first && !second);
            }
        }
        struct rate_difference at = rate_difference(&gains, &losses);
        covered += at.low <= expected && expected <= at.high;
    }
    return 100.0 * covered / repetitions;
}

static const int sizes[] = {3, 5, 10, 20, 50, 100, 145};

/* Coverage of the difference where whole logical scenarios change, that share of them and for the
 * better with probability `up`: 0.5 is no difference. */
static double families_coverage(const struct truth *truth, double share, double up, int repetitions)
{
    int covered = 0;
    double expected = share * (2 * up - 1);
    for (int i = 0; i < repetitions; i++) {
        struct rate gains = {0};
        struct rate losses = {0};
        for (int l = 0; l < truth->logical; l++) {
            int cases = draw_cases(truth, l);
            bool changes = draw_uniform() < share;
            bool better = draw_uniform() < up;
            for (int c = 0; c < cases; c++) {
                rate_add(&gains, l + 1, l * CASES_MAX + c + 1, changes && better);
                rate_add(&losses, l + 1, l * CASES_MAX + c + 1, changes && !better);
            }
        }
        struct rate_difference at = rate_difference(&gains, &losses);
        covered += at.low <= expected && expected <= at.high;
    }
    return 100.0 * covered / repetitions;
}

static void families_table(int repetitions)
{
    static const double shares[] = {0.1, 0.3, 0.6};
    static const enum mix mixes[] = {MIX_ONES, MIX_SMALL, MIX_WIDE};
    printf(
        "\n| logical scenarios | of these change | 1, either way | 1 to 8 | 1 to 200 | 1, a fifth "
        "for the better | 1 to 8 | 1 to 200 |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t k = 2; k < COUNT_OF(sizes); k++) {
        for (size_t s = 0; s < COUNT_OF(shares); s++) {
            printf("| %d | %.0f%% |", sizes[k], 100 * shares[s]);
            for (int i = 0; i < 6; i++) {
                struct truth truth = {.logical = sizes[k], .mix = mixes[i % 3]};
                printf(" %.1f |",
                       families_coverage(&truth, shares[s], i < 3 ? 0.5 : 0.2, repetitions));
            }
            printf("\n");
        }
    }
}

static const double passes[] = {0.5, 0.7, 0.9, 0.95, 0.98, 0.99};
/* Seeds, and correlations between and within. */
static const double ways[][3] = {{1, 0, 0}, {1, 0.1, 0}, {1, 0.4, 0}, {10, 0.4, 0.98}};

/* Prints the least over the ways, a column each pass rate. */
static void coverage_row(enum mix mix, int logical, int repetitions, int count[3])
{
    double mean_width = 0;
    printf("| %s | %d |", mix_names[mix], logical);
    for (size_t p = 0; p < COUNT_OF(passes); p++) {
        double least = 100;
        for (size_t w = 0; w < COUNT_OF(ways); w++) {
            struct truth truth = {passes[p],  logical, (int)ways[w][0], ways[w][1],
                                  ways[w][2], mix,     CASES_MAX};
            double width;
            double at = coverage(&truth, repetitions, &width);
            count[at < 93 ? 0 : at <= 97 ? 1 : 2]++;
            least = fmin(least, at);
            mean_width += width / COUNT_OF(passes) / COUNT_OF(ways);
        }
        printf(" %.1f |", least);
    }
    printf(" %.3f |\n", mean_width);
    fflush(stdout);
}

/* One grid beside logical scenarios that pass always. */
static void grids_table(int repetitions)
{
    static const int grids[] = {8, 12, 24, 50, 100, 200};
    printf("| grid | beside 20, covered | mean width | beside 144, covered | mean width |\n"
           "|---|---|---|---|---|\n");
    for (size_t g = 0; g < COUNT_OF(grids); g++) {
        struct truth truth = {0.9, 21, 1, 0.4, 0, MIX_EASY, grids[g]};
        double width[2];
        double few = coverage(&truth, repetitions, &width[0]);
        truth.logical = 145;
        double many = coverage(&truth, repetitions, &width[1]);
        printf("| %d | %.1f | %.3f | %.1f | %.3f |\n", grids[g], few, width[0], many, width[1]);
    }
}

static int coverage_table(int repetitions)
{
    int count[3] = {0};
    printf("| cases | logical scenarios | 0.50 | 0.70 | 0.90 | 0.95 | 0.98 | 0.99 | mean width |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    for (enum mix mix = 0; mix < MIX_COUNT; mix++) {
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            coverage_row(mix, sizes[k], repetitions, count);
        }
    }
    printf("\n%d cells below 93, %d within 93 to 97, %d above\n\n", count[0], count[1], count[2]);
    grids_table(repetitions);
    printf("\n| first passes | gain | loss | logical scenarios | difference covered |\n"
           "|---|---|---|---|---|\n");
    static const double changes[][3] = {
        {0.9, 0.5, 0.02}, {0.9, 0.1, 0.1}, {0.7, 0.3, 0.1}, {0.5, 0.2, 0.2}};
    for (size_t c = 0; c < COUNT_OF(changes); c++) {
        for (size_t k = 3; k < COUNT_OF(sizes); k++) {
            struct truth truth = {changes[c][0], sizes[k], 1, 0.1, 0.5, MIX_SMALL, 0};
            printf("| %.2f | %.2f | %.2f | %d | %.1f |\n", changes[c][0], changes[c][1],
                   changes[c][2], sizes[k],
                   difference_coverage(&truth, changes[c][1], changes[c][2], repetitions));
        }
    }
    families_table(repetitions);
    return 0;
}

/* Cells of one mix and number of logical scenarios, which a suite shows; pass rates and
 * correlations it does not. */
enum { UNKNOWNS = COUNT_OF(passes) * COUNT_OF(ways) };

/* Sums over the rows of a mix: [0] beside the methods that are valid in the cell, [1] beside those
 * that are in all cells of the row. */
struct widths {
    double sum[2];
    double greatest[2];
    int wide[2];
};

static void widths_row(enum mix mix, int logical, int repetitions, struct widths *out,
                       int misses[METHOD_COUNT], int rows[METHOD_COUNT])
{
    struct tried cells[UNKNOWNS];
    bool always[METHOD_COUNT];
    memset(always, true, sizeof always);
    for (size_t i = 0; i < UNKNOWNS; i++) {
        const double *way = ways[i % COUNT_OF(ways)];
        struct truth truth = {
            passes[i / COUNT_OF(ways)], logical, (int)way[0], way[1], way[2], mix, CASES_MAX};
        cells[i] = try_methods(&truth, repetitions);
        for (enum method m = 0; m < METHOD_COUNT; m++) {
            misses[m] += !cells[i].valid[m];
            always[m] = always[m] && cells[i].valid[m];
        }
    }
    for (size_t i = 0; i < UNKNOWNS; i++) {
        double ratios[2] = {width_ratio(&cells[i], cells[i].valid), width_ratio(&cells[i], always)};
        for (int k = 0; k < 2; k++) {
            out->sum[k] += ratios[k];
            out->greatest[k] = fmax(out->greatest[k], ratios[k]);
            out->wide[k] += ratios[k] > 1.25;
        }
    }
    for (enum method m = 0; m < METHOD_COUNT; m++) {
        rows[m] += always[m];
    }
}

static int widths_table(int repetitions)
{
    int misses[METHOD_COUNT] = {0};
    int rows[METHOD_COUNT] = {0};
    const int cells = (int)(COUNT_OF(sizes) * UNKNOWNS);
    printf(
        "| cases | valid in the cell: mean ratio | greatest | above 1.25, of %d | valid whatever "
        "the truth: mean ratio | greatest | above 1.25 |\n|---|---|---|---|---|---|---|\n",
        cells);
    for (enum mix mix = 0; mix < MIX_COUNT; mix++) {
        struct widths sums = {0};
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            widths_row(mix, sizes[k], repetitions, &sums, misses, rows);
        }
        printf("| %s | %.2f | %.2f | %d | %.2f | %.2f | %d |\n", mix_names[mix],
               sums.sum[0] / cells, sums.greatest[0], sums.wide[0], sums.sum[1] / cells,
               sums.greatest[1], sums.wide[1]);
        fflush(stdout);
    }
    printf(
        "\ncells, of %d, in which the truth is held in less than 93%%, and rows, of %d, of which "
        "that is none:",
        cells * MIX_COUNT, (int)COUNT_OF(sizes) * MIX_COUNT);
    for (enum method m = 0; m < METHOD_COUNT; m++) {
        printf(" %s %d, %d%s", method_names[m], misses[m], rows[m],
               m + 1 < METHOD_COUNT ? ";" : "\n");
    }
    return 0;
}

/* The bound is three standard deviations of the repetitions below 93. */
static void intervals_cover_the_truth(void)
{
    static const struct truth truths[] = {
        {0.99, 10, 1, 0, 0, MIX_ONES, 0},        {0.5, 20, 1, 0.1, 0, MIX_SMALL, 0},
        {0.5, 100, 10, 0.4, 0.98, MIX_SMALL, 0}, {0.9, 10, 10, 0.4, 0.98, MIX_SMALL, 0},
        {0.95, 20, 10, 0.1, 0.98, MIX_SMALL, 0}, {0.95, 145, 1, 0.4, 0, MIX_SMALL, 0},
        {0.99, 10, 1, 0, 0, MIX_SMALL, 0},       {0.7, 20, 1, 0.4, 0, MIX_GRID, 200},
        {0.9, 3, 1, 0.4, 0, MIX_GRID, 200},      {0.9, 21, 1, 0.4, 0, MIX_EASY, 200},
        {0.9, 21, 1, 0.4, 0, MIX_EASY, 24},      {0.9, 145, 1, 0.4, 0, MIX_EASY, 12},
        {0.7, 145, 1, 0.4, 0, MIX_EASY, 12},     {0.5, 60, 1, 0.4, 0, MIX_SIXTHS, 0},
        {0.9, 60, 1, 0.4, 0, MIX_SIXTHS, 0},     {0.98, 60, 10, 0.4, 0.98, MIX_SIXTHS, 0},
        {0.95, 50, 1, 0.4, 0, MIX_WIDE, 0},      {0.99, 100, 1, 0.4, 0, MIX_WIDE, 0},
    };
    double width;
    draws_state = 1;
    for (size_t i = 0; i < COUNT_OF(truths); i++) {
        EXPECT(coverage(&truths[i], CHECKED_REPETITIONS, &width) >= 89.2);
    }
    /* Nothing makes it wide where many of like size fail. */
    struct truth plain = {0.5, 100, 1, 0.1, 0, MIX_SMALL, 0};
    EXPECT(coverage(&plain, CHECKED_REPETITIONS, &width) <= 98.5 && width < 0.2);
    struct truth two = {0.9, 100, 1, 0.1, 0.5, MIX_SMALL, 0};
    EXPECT(difference_coverage(&two, 0.5, 0.02, CHECKED_REPETITIONS) >= 89.2);
    struct truth families = {.logical = 50, .mix = MIX_SMALL};
    EXPECT(families_coverage(&families, 0.6, 0.5, CHECKED_REPETITIONS) >= 89.2);
    families = (struct truth){.logical = 10, .mix = MIX_ONES};
    EXPECT(families_coverage(&families, 0.6, 0.5, CHECKED_REPETITIONS) >= 89.2);
}

/* A run of logical scenarios that each have that many cases, of which so many pass. */
struct run {
    int logical;
    int cases;
    int passes;
};

static void intervals_are_those_of_scipy(void)
{
    static const struct {
        struct run runs[4];
        double low;
        double high;
    } known[] = {
        {{{1, 200, 158}}, 0.01943, 1.00000},
        {{{1, 200, 158}, {20, 1, 1}}, 0.04125, 1.00000},
        {{{1, 200, 200}, {20, 1, 1}}, 0.08625, 1.00000},
        {{{1, 24, 19}, {20, 1, 1}}, 0.25715, 1.00000},
        {{{5, 10, 10}, {5, 10, 6}, {45, 1, 1}, {5, 1, 0}}, 0.69345, 0.91991},
        {{{10, 10, 9}, {48, 1, 1}, {2, 1, 0}}, 0.80823, 0.97200},
        {{{36, 1, 1}, {4, 1, 0}}, 0.75404, 0.96747},
        {{{20, 4, 4}, {10, 4, 2}, {10, 2, 0}}, 0.58922, 0.81463},
        {{{3, 1, 1}}, 0.30999, 1.00000},
        {{{30, 10, 5}, {30, 10, 7}}, 0.55857, 0.64008},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        struct rate rate = {0};
        int64_t logical = 0;
        for (size_t r = 0; r < COUNT_OF(known[i].runs); r++) {
            const struct run *run = &known[i].runs[r];
            for (int l = 0; l < run->logical; l++) {
                logical++;
                for (int c = 0; c < run->cases; c++) {
                    rate_add(&rate, logical, logical * CASES_MAX + c, c < run->passes);
                }
            }
        }
        struct rate_estimate at = rate_estimate(&rate);
        EXPECT_NEAR(at.low, known[i].low, 0.005);
        EXPECT_NEAR(at.high, known[i].high, 0.005);
    }
}

/* Ten seeds that repeat one drive narrow nothing, and an interval of drives would be wrong. */
static void seeds_of_one_drive_narrow_nothing(void)
{
    struct rate ten = {0};
    for (int l = 0; l < 60; l++) {
        double value = l % 6 != 0;
        for (int s = 0; s < 10; s++) {
            rate_add(&ten, l + 1, l + 1, value);
        }
    }
    struct rate_estimate at = rate_estimate(&ten);
    double low;
    double high;
    rate_wilson(5.0 / 6 - 0.5 / 60, 60, RATE_Z95, &low, &high);
    EXPECT_INT(at.drives, 600);
    EXPECT_INT(at.cases, 60);
    EXPECT(at.low < low + 0.01);
}

/* The lower end by the definition: V's correction is the trace of the squared weights between the
 * matrices that take the mean away. */
static double low_end(const double *y, const double *n, int count, double p, double drives)
{
    double cases = 0;
    double squares = 0;
    double fourths = 0;
    double weights = 0;
    double trace = 0;
    double part[2] = {0};
    double part_squares[2] = {0};
    for (int l = 0; l < count; l++) {
        cases += n[l];
        part[0] += y[l];
        part[1] += n[l] - y[l];
        part_squares[0] += y[l] * y[l];
        part_squares[1] += (n[l] - y[l]) * (n[l] - y[l]);
    }
    for (int l = 0; l < count; l++) {
        double w = n[l] / cases;
        double e = y[l] / cases - p * w;
        squares += e * e;
        fourths += e * e * e * e;
        weights += w * w;
        for (int k = 0; k < count; k++) {
            trace += w * w * pow((l == k) - n[k] / cases, 2);
        }
    }
    double low;
    double high;
    double t = rate_t95(fmin(squares * squares / fourths, 1 / weights) - 1);
    double draws = fmin(p * (1 - p) / (squares * weights / trace), drives);
    double least = fmin(part[0] * cases / part_squares[0], part[1] * cases / part_squares[1]);
    draws = fmax(draws * RATE_Z95 * RATE_Z95 / (t * t), fmin(least, 1 / weights));
    rate_wilson(p - 0.5 / draws, draws, RATE_Z95, &low, &high);
    return low;
}

static void streamed_sums_are_the_formula(void)
{
    for (draws_state = 3; draws_state < 400; draws_state++) {
        enum { LOGICAL = 12 };
        double y[LOGICAL] = {0};
        double n[LOGICAL] = {0};
        double total = 0;
        double cases = 0;
        double worst = 0;
        double best = 0;
        struct rate rate = {0};
        for (int l = 0; l < LOGICAL; l++) {
            int count = 1 + (int)(draw_uniform() * 4);
            for (int c = 0; c < count; c++) {
                int seeds = 1 + (int)(draw_uniform() * 3);
                double sum = 0;
                for (int s = 0; s < seeds; s++) {
                    double value = draw_uniform() < 0.6;
                    sum += value;
                    rate_add(&rate, l + 1, l * 10 + c + 1, value);
                }
                bool lacks = draw_uniform() < 0.2;
                if (lacks) {
                    rate_add(&rate, l + 1, l * 10 + c + 1, NAN);
                }
                worst += sum / (seeds + lacks);
                best += (sum + lacks) / (seeds + lacks);
                y[l] += sum / seeds;
                n[l]++;
                total += sum / seeds;
                cases++;
            }
        }
        struct rate_estimate at = rate_estimate(&rate);
        double p = total / cases;
        EXPECT_NEAR(at.low, low_end(y, n, LOGICAL, p, (double)at.drives), 1e-9);
        EXPECT_INT(at.logical, LOGICAL);
    }
}

static void ends_say_what_is_known(void)
{
    struct rate none = {0};
    struct rate_estimate at = rate_estimate(&none);
    EXPECT(isnan(at.value) && at.low == 0 && at.high == 1);
    struct rate all = {0};
    for (int l = 0; l < 40; l++) {
        for (int c = 0; c < 5; c++) {
            rate_add(&all, l + 1, l * 5 + c + 1, 1);
        }
    }
    at = rate_estimate(&all);
    double low;
    double high;
    rate_wilson(1 - 0.5 / 40, 40, RATE_Z95, &low, &high);
    EXPECT_NEAR(at.low, low, 1e-12); /* 40 draws, not 200 */
    EXPECT(at.value == 1 && at.high == 1);
    rate_add(&all, 41, 1000, NAN); /* a case of which nothing is known */
    at = rate_estimate(&all);
    EXPECT_INT(at.cases, 200);
    EXPECT_INT(at.missing, 1);
    EXPECT_NEAR(at.worst, 200.0 / 201, 1e-12);
    EXPECT(at.best == 1);
    struct rate_difference same = rate_difference(&none, &none);
    EXPECT(isnan(same.value) && same.low == -1 && same.high == 1);
}

/* The bounds are the values of p at which |share - p| is z standard deviations. */
static void wilson_solves_its_equation(void)
{
    double low;
    double high;
    for (int n = 1; n < 200; n += 7) {
        for (int hits = 0; hits <= n; hits++) {
            double p = (double)hits / n;
            rate_wilson(p, n, RATE_Z95, &low, &high);
            double ends[] = {low, high};
            EXPECT(low >= 0 && low <= p && p <= high && high <= 1);
            for (int e = 0; e < 2; e++) {
                double sigma = sqrt(ends[e] * (1 - ends[e]) / n);
                EXPECT(fabs(fabs(p - ends[e]) - RATE_Z95 * sigma) < 1e-9);
            }
        }
    }
    /* Newcombe, Statistics in Medicine 17 (1998), table I, method 3. */
    rate_wilson(81.0 / 263, 263, RATE_Z95, &low, &high);
    EXPECT(fabs(low - 0.2553) < 5e-5 && fabs(high - 0.3662) < 5e-5);
    rate_wilson(15.0 / 148, 148, RATE_Z95, &low, &high);
    EXPECT(fabs(low - 0.0624) < 5e-5 && fabs(high - 0.1605) < 5e-5);
    rate_wilson(0, 0, RATE_Z95, &low, &high);
    EXPECT(low == 0 && high == 1);
}

static void ends_are_rounded_outwards(void)
{
    EXPECT_NEAR(rate_down(91.99, 1), 91, 0);
    EXPECT_NEAR(rate_up(91.01, 1), 92, 0);
    EXPECT_NEAR(rate_down(100 * 0.95, 1), 95, 0);
    EXPECT_NEAR(rate_up(100 * 0.07, 1), 7, 0);
    EXPECT_NEAR(rate_up(-2.31, 0.1), -2.3, 1e-12);
    EXPECT_NEAR(rate_down(-2.31, 0.1), -2.4, 1e-12);
    EXPECT(!signbit(rate_up(-0.04, 0.1)));
    EXPECT_NEAR(rate_step(123.4, 3), 1, 1e-12);
    EXPECT_NEAR(rate_step(-0.0123, 2), 0.001, 1e-15);
    EXPECT_NEAR(rate_step(0, 2), 1, 0);
}

/* Tables of Student's t. */
static void quantiles_are_the_tables(void)
{
    /* The quantiles of scipy.stats.t, of whole degrees and between. */
    static const double known[][2] = {
        {0.5, 12.706204736432095}, {1, 12.706204736432095},   {1.25, 8.027951377252059},
        {1.5, 6.016663104427932},  {1.75, 4.948847849116087}, {2, 4.302652729911275},
        {2.5, 3.5746548420036808}, {3, 3.182446305284263},    {3.5, 2.9400886379827287},
        {5, 2.570581835636314},    {9, 2.2621571627409915},   {30, 2.042272456301238},
        {120, 1.9799304050824413}, {5000, 1.9604385517}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        EXPECT_NEAR(rate_t95(known[i][0]) / known[i][1], 1, 1e-9);
    }
    EXPECT_NEAR(rate_degrees(6, 6, 10), 6, 1e-12); /* six clusters, all alike */
    EXPECT_NEAR(rate_degrees(4, 16, 10), 1, 1e-12);
    EXPECT_NEAR(rate_degrees(0, 0, 10), 10, 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--coverage") == 0) {
        return coverage_table(atoi(argv[2]));
    }
    if (argc == 3 && strcmp(argv[1], "--widths") == 0) {
        return widths_table(atoi(argv[2]));
    }
    return TEST_RUN(TEST(intervals_cover_the_truth), TEST(seeds_of_one_drive_narrow_nothing),
                    TEST(streamed_sums_are_the_formula), TEST(intervals_are_those_of_scipy),
                    TEST(ends_say_what_is_known), TEST(wilson_solves_its_equation),
                    TEST(quantiles_are_the_tables), TEST(ends_are_rounded_outwards));
}
