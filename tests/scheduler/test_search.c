/*
 * Search. Method: properties over seeds (strata of a latin hypercube, draws within the range, equal
 * seeds equal points), failing regions and boundaries that are known in closed form, which sampling
 * must reach and halving must enclose, and clusters against their definition.
 */
#include "base/rng.h"
#include "scheduler/search.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

enum { SEEDS = 50, POINTS = 40, CHOICES = 3 };

static uint64_t state;

static double uniform(void)
{
    return (double)(rng_mix(++state) >> 11) * 0x1p-53;
}

/* Two numbers and a choice. */
static const struct search_space space = {.count = 3,
                                          .dimensions = {{0}, {.choice_count = CHOICES}, {0}}};

static bool is_within(const struct search_point *point)
{
    double choice = point->at[1];
    return point->at[0] >= 0 && point->at[0] <= 1 && point->at[2] >= 0 && point->at[2] <= 1 &&
           choice >= 0 && choice < CHOICES && choice == floor(choice);
}

static void a_latin_hypercube_takes_every_part_of_a_range_once(void)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct search_point points[POINTS];
        uint32_t parts[2][POINTS] = {{0}};
        uint32_t choices[CHOICES] = {0};
        search_latin(&space, seed, POINTS, points);
        for (int i = 0; i < POINTS; i++) {
            EXPECT(is_within(&points[i]));
            parts[0][(int)(points[i].at[0] * POINTS)]++;
            parts[1][(int)(points[i].at[2] * POINTS)]++;
            choices[(int)points[i].at[1]]++;
        }
        for (int i = 0; i < POINTS; i++) {
            EXPECT_INT(parts[0][i], 1);
            EXPECT_INT(parts[1][i], 1);
        }
        for (int c = 0; c < CHOICES; c++) {
            EXPECT(choices[c] == POINTS / CHOICES || choices[c] == POINTS / CHOICES + 1);
        }
    }
}

static void a_seed_gives_its_points_again_and_others_give_others(void)
{
    struct search_point one[POINTS];
    struct search_point again[POINTS];
    struct search_point other[POINTS];
    struct search_draw draw;
    search_latin(&space, 5, POINTS, one);
    search_latin(&space, 5, POINTS, again);
    search_latin(&space, 6, POINTS, other);
    EXPECT(memcmp(one[0].at, again[0].at, sizeof(double) * 3) == 0);
    EXPECT(memcmp(one[0].at, other[0].at, sizeof(double) * 3) != 0);
    search_draw_init(&space, &draw);
    for (uint32_t i = 0; i < POINTS; i++) {
        struct search_point a = search_draw_point(&space, &draw, 5, 2, i);
        struct search_point b = search_draw_point(&space, &draw, 5, 2, i);
        struct search_point next = search_draw_point(&space, &draw, 5, 3, i);
        EXPECT(is_within(&a));
        EXPECT(memcmp(a.at, b.at, sizeof(double) * 3) == 0);
        EXPECT(a.at[0] != next.at[0]);
    }
}

/* A ball of radius 0.08 in one choice of three: 0.7% of the space. */
static double ball_margin(const struct search_point *point)
{
    double x = point->at[0] - 0.83;
    double y = point->at[2] - 0.21;
    return sqrt(x * x + y * y) - 0.08 + (point->at[1] == 2 ? 0.0 : 0.3);
}

static void generations_reach_a_small_region_that_fails(void)
{
    uint32_t reached = 0;
    uint32_t failing_last = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct search_sample samples[POINTS * 4];
        struct search_point points[POINTS];
        struct search_draw draw;
        uint32_t count = 0;
        uint32_t failing = 0;
        search_draw_init(&space, &draw);
        search_latin(&space, seed, POINTS, points);
        for (uint32_t generation = 0; generation < 4; generation++) {
            failing = 0;
            for (uint32_t i = 0; i < POINTS; i++, count++) {
                samples[count].point = generation == 0
                                           ? points[i]
                                           : search_draw_point(&space, &draw, seed, generation, i);
                EXPECT(is_within(&samples[count].point));
                samples[count].margin = ball_margin(&samples[count].point);
                failing += samples[count].margin < 0;
            }
            search_draw_learn(&space, &draw, samples, count);
        }
        reached += failing > 0;
        failing_last += failing;
    }
    EXPECT(reached >= SEEDS * 9 / 10);
    EXPECT(failing_last > SEEDS * POINTS / 4); /* even draws alone: 1 in 140 */
}

static void samples_without_a_result_teach_nothing(void)
{
    struct search_sample samples[4] = {{.margin = NAN}, {.margin = NAN}};
    struct search_draw draw;
    struct search_draw before;
    search_draw_init(&space, &draw);
    before = draw;
    search_draw_learn(&space, &draw, samples, 2);
    EXPECT(memcmp(&draw, &before, sizeof draw) == 0);
    samples[2] = (struct search_sample){.point = {{0.9, 1, 0.1}}, .margin = -1};
    search_draw_learn(&space, &draw, samples, 3);
    EXPECT(draw.mean[0] > 0.7 && draw.mean[2] < 0.3 && draw.weight[1][1] > 0.7);
}

/* Failing where a linear function of the numbers is below a threshold: a line crosses the boundary
 * once, at a place that is known. */
static void a_line_encloses_a_known_boundary(void)
{
    for (int trial = 0; trial < 2000; trial++) {
        double a = uniform() - 0.5;
        double b = uniform() - 0.5;
        double resolution = 0.001 + 0.1 * uniform();
        struct search_point from = {{uniform(), 1, uniform()}};
        double limit = a * from.at[0] + b * from.at[2] + 0.2 * uniform() * fabs(a);
        bool high = uniform() < 0.5;
        struct search_line line = search_line_along(&from, 0, high);
        struct search_point next;
        int drives = 0;
        while (search_line_next(&line, &next)) {
            double margin = a * next.at[0] + b * next.at[2] <= limit ? -1 : 1;
            search_line_take(&space, &line, margin, resolution);
            EXPECT(next.at[1] == 1 && next.at[2] == from.at[2]);
            drives++;
        }
        EXPECT(drives <= 2 + (int)ceil(log2(1 / resolution)));
        double end = a * (high ? 1 : 0) + b * from.at[2];
        if (line.state == SEARCH_LINE_ALL_FAIL) {
            EXPECT(end <= limit);
            continue;
        }
        EXPECT(line.state == SEARCH_LINE_FOUND && end > limit);
        double truth = (limit - b * from.at[2]) / a;
        double least = fmin(line.failing.at[0], line.passing.at[0]);
        double most = fmax(line.failing.at[0], line.passing.at[0]);
        EXPECT(least <= truth + 1e-12 && truth <= most + 1e-12 && most - least <= resolution);
    }
}

static void what_cannot_be_driven_bounds_a_line(void)
{
    struct search_point from = {{0.5, 0, 0.5}};
    struct search_line line = search_line_along(&from, 2, true);
    struct search_point next;
    while (search_line_next(&line, &next)) {
        search_line_take(&space, &line, next.at[2] > 0.75 ? NAN : -1, 0.01);
    }
    EXPECT(line.state == SEARCH_LINE_FOUND && fabs(line.failing.at[2] - 0.75) <= 0.01);
}

static void the_closest_pair_is_of_one_choice(void)
{
    for (int trial = 0; trial < 300; trial++) {
        struct search_sample samples[20];
        uint32_t failing = 0;
        uint32_t passing = 0;
        double least = INFINITY;
        for (int i = 0; i < 20; i++) {
            samples[i].point = (struct search_point){{uniform(), floor(3 * uniform()), uniform()}};
            samples[i].margin = uniform() < 0.1 ? NAN : uniform() - 0.5;
        }
        bool found = search_closest_pair(&space, samples, 20, &failing, &passing);
        for (int i = 0; i < 20; i++) {
            for (int j = 0; j < 20; j++) {
                if (samples[i].margin < 0 && samples[j].margin > 0 &&
                    samples[i].point.at[1] == samples[j].point.at[1]) {
                    least =
                        fmin(least, fmax(fabs(samples[i].point.at[0] - samples[j].point.at[0]),
                                         fabs(samples[i].point.at[2] - samples[j].point.at[2])));
                }
            }
        }
        EXPECT(found == isfinite(least));
        if (found) {
            EXPECT(samples[failing].margin < 0 && samples[passing].margin > 0);
            EXPECT(search_same_choices(&space, &samples[failing].point, &samples[passing].point));
            EXPECT(search_distance(&space, &samples[failing].point, &samples[passing].point) ==
                   least);
        }
    }
}

static void margins_are_ordered_as_outcomes_are(void)
{
    struct metrics near = {.min_ttc_s = 0.4, .min_distance_m = 6, .impact_speed_mps = NAN};
    struct metrics far = {
        .min_ttc_s = INFINITY, .min_distance_m = INFINITY, .impact_speed_mps = NAN};
    struct metrics slow = {.impact_speed_mps = 2};
    struct metrics fast = {.impact_speed_mps = 60};
    EXPECT(search_margin(VERDICT_PASS, &near) > 0);
    EXPECT(search_margin(VERDICT_PASS, &far) == 1);
    EXPECT(search_margin(VERDICT_PASS, &near) < search_margin(VERDICT_PASS, &far));
    EXPECT(search_margin(VERDICT_FAIL, &far) == -1);
    EXPECT(search_margin(VERDICT_FAIL, &slow) < -1);
    EXPECT(search_margin(VERDICT_FAIL, &fast) == -2);
    EXPECT(isnan(search_margin(VERDICT_FLAGGED, &near)));
    EXPECT(isnan(search_margin(VERDICT_INVALID, &near)));
    EXPECT(isnan(search_margin(VERDICT_PLANNER_ERROR, &near)));
}

static bool may_join(const struct search_failure *a, const struct search_failure *b)
{
    return a->logical == b->logical && a->reasons == b->reasons && a->agent == b->agent &&
           (a->agent < 0 || (a->side == b->side && a->way == b->way)) &&
           abs(a->diverged_s - b->diverged_s) <= 1 && (a->diverged_s < 0) == (b->diverged_s < 0);
}

static void a_cluster_is_what_its_first_failure_says(void)
{
    for (int trial = 0; trial < 300; trial++) {
        struct search_failure failures[30];
        uint32_t cluster[30];
        uint32_t first[30];
        uint32_t next = 0;
        for (int i = 0; i < 30; i++) {
            failures[i] = (struct search_failure){
                .logical = (uint32_t)(2 * uniform()),
                .reasons = (uint32_t)(2 * uniform()),
                .agent = (int32_t)(2 * uniform()) - 1,
                .side = (enum search_side)(2 * uniform()),
                .diverged_s = (int32_t)(6 * uniform()) - 1,
            };
        }
        uint32_t count = search_cluster(failures, 30, cluster);
        for (int i = 0; i < 30; i++) {
            EXPECT(cluster[i] <= next); /* numbered as they come */
            if (cluster[i] == next) {
                for (uint32_t c = 0; c < next; c++) {
                    EXPECT(!may_join(&failures[first[c]], &failures[i]));
                }
                first[next++] = (uint32_t)i;
            }
            EXPECT(may_join(&failures[first[cluster[i]]], &failures[i]));
        }
        EXPECT_INT(count, next);
    }
}

static void contacts_are_mirrored_as_the_road_is(void)
{
    EXPECT(search_side_of(4.8, 1.9, 4, 1) == SEARCH_FRONT);
    EXPECT(search_side_of(4.8, 1.9, -4, 1) == SEARCH_BACK);
    for (int trial = 0; trial < 1000; trial++) {
        double ahead = 8 * uniform() - 4;
        double left = 4 * uniform() - 2;
        double turned = 6.2 * uniform() - 3.1;
        enum search_side side = search_side_of(4.8, 1.9, ahead, left);
        enum search_side mirrored = search_side_of(4.8, 1.9, ahead, -left);
        EXPECT((side == SEARCH_LEFT) == (mirrored == SEARCH_RIGHT));
        EXPECT((side == SEARCH_FRONT) == (mirrored == SEARCH_FRONT));
        EXPECT((search_way_of(turned) == SEARCH_FROM_LEFT) ==
               (search_way_of(-turned) == SEARCH_FROM_RIGHT));
        EXPECT(search_way_of(turned) == search_way_of(turned + 6.283185307179586));
    }
    EXPECT(search_way_of(1.57) == SEARCH_FROM_RIGHT); /* heading left, it came from the right */
}

static void a_divergence_is_where_two_series_part(void)
{
    const double a[5] = {0, 1, 2, 3, 4};
    const double b[5] = {0, 1.5, 2, 5, 4};
    EXPECT_INT(search_divergence(a, b, 5, 1.0), 3);
    EXPECT_INT(search_divergence(a, b, 5, 0.4), 1);
    EXPECT_INT(search_divergence(a, b, 3, 1.0), -1);
}

int main(void)
{
    return TEST_RUN(
        TEST(a_latin_hypercube_takes_every_part_of_a_range_once),
        TEST(a_seed_gives_its_points_again_and_others_give_others),
        TEST(generations_reach_a_small_region_that_fails),
        TEST(samples_without_a_result_teach_nothing), TEST(a_line_encloses_a_known_boundary),
        TEST(what_cannot_be_driven_bounds_a_line), TEST(the_closest_pair_is_of_one_choice),
        TEST(margins_are_ordered_as_outcomes_are), TEST(a_cluster_is_what_its_first_failure_says),
        TEST(contacts_are_mirrored_as_the_road_is), TEST(a_divergence_is_where_two_series_part));
}
