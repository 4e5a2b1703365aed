/*
 * Scores of the field. Method: vectors that NAVSIM's own functions made of random subscores
 * (tests/vectors/navsim_vectors.py), to be met within 1e-6; and
 * properties: a score is within 0 to 1, rises with each part, and follow-up scenes count by their
 * distance alone.
 */
#include "schemas/field/field.h"
#include "tests/harness.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-6
enum { WORD_BYTES = 32, SAMPLES_MAX = 256 };

static FILE *vectors;

static double number(void)
{
    double value;
    EXPECT(fscanf(vectors, "%lf", &value) == 1);
    return value;
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= TOLERANCE;
}

static void check_pdm(uint32_t count)
{
    double expected[SAMPLES_MAX][3];
    struct field_parts parts[SAMPLES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        number(); /* metres; the score takes their share */
        parts[i].no_at_fault_collision = number();
        parts[i].drivable_area = number();
        parts[i].driving_direction = number();
        parts[i].traffic_light = number();
        parts[i].ttc = number();
        parts[i].lane_keeping = number();
        parts[i].history_comfort = number();
        parts[i].extended_comfort = number();
        for (int k = 0; k < 3; k++) {
            expected[i][k] = number();
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct field_parts alone = parts[i];
        parts[i].progress = expected[i][0];
        alone.progress = expected[i][0];
        alone.extended_comfort = NAN;
        EXPECT(is_close(field_epdms(&alone), expected[i][1]));
        EXPECT(is_close(field_epdms(&parts[i]), expected[i][2]));
    }
}

static void check_stage(uint32_t count)
{
    double x[SAMPLES_MAX];
    double y[SAMPLES_MAX];
    double score[SAMPLES_MAX];
    double expected[SAMPLES_MAX];
    double weights[SAMPLES_MAX];
    double end_x = number();
    double end_y = number();
    for (uint32_t i = 0; i < count; i++) {
        x[i] = number();
        y[i] = number();
        score[i] = number();
        expected[i] = number();
    }
    field_stage_weights(end_x, end_y, x, y, count, weights);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(is_close(weights[i], expected[i]));
    }
    double first = number();
    EXPECT(is_close(field_two_stage(first, score, weights, count), number()));
}

static void the_original_answers_the_same(void)
{
    static const struct {
        const char *name;
        void (*check)(uint32_t count);
    } checks[] = {{"pdm", check_pdm}, {"stage", check_stage}};
    int seen[sizeof checks / sizeof *checks] = {0};
    char name[WORD_BYTES];
    unsigned count;
    vectors = fopen(FIELD_VECTORS, "r");
    EXPECT(vectors != NULL);
    while (fscanf(vectors, "%31s", name) == 1) { /* others' rows are passed over */
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
            if (strcmp(checks[i].name, name) == 0) {
                EXPECT(fscanf(vectors, "%u", &count) == 1 && count > 0 && count <= SAMPLES_MAX);
                checks[i].check(count);
                seen[i]++;
            }
        }
    }
    EXPECT(feof(vectors));
    fclose(vectors);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        EXPECT(seen[i] >= 4);
    }
}

static uint64_t state;

static double uniform(void)
{
    return (double)(rng_mix(++state) >> 11) * 0x1p-53;
}

static void scores_rise_with_every_part(void)
{
    for (int trial = 0; trial < 5000; trial++) {
        struct field_parts parts;
        double values[FIELD_PARTS];
        for (int k = 0; k < FIELD_PARTS; k++) {
            values[k] = uniform();
        }
        memcpy(&parts, values, sizeof parts);
        double pdms = field_pdms(&parts);
        double epdms = field_epdms(&parts);
        EXPECT(pdms >= 0 && pdms <= 1 && epdms >= 0 && epdms <= 1);
        int k = (int)(FIELD_PARTS * uniform());
        values[k] += (1 - values[k]) * uniform();
        memcpy(&parts, values, sizeof parts);
        EXPECT(field_pdms(&parts) >= pdms && field_epdms(&parts) >= epdms);
    }
    const struct field_parts best = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    EXPECT(field_pdms(&best) == 1 && field_epdms(&best) == 1);
}

/* Parts that EPDMS counts and PDMS does not: direction, lights and lane keeping; who has no score.
 */
static void an_outcome_has_scores_of_the_field(void)
{
    struct outcome outcome = {.verdict = VERDICT_PASS};
    struct metrics *metrics = &outcome.metrics;
    double scores[FIELD_SCORE_COUNT];
    *metrics = (struct metrics){.no_at_fault_collision = 1,
                                .drivable_area = 1,
                                .driving_direction = 1,
                                .traffic_light = 1,
                                .progress = 0.5,
                                .ttc = 1,
                                .lane_keeping = 1,
                                .extended_comfort = NAN,
                                .total_cost = NAN};
    field_scores_of(outcome.verdict, &outcome.metrics, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 9.5 / 14));
    metrics->extended_comfort = 0.25;
    field_scores_of(outcome.verdict, &outcome.metrics, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 10.0 / 16));
    metrics->extended_comfort = NAN;
    metrics->driving_direction = 0.5;
    metrics->lane_keeping = 0;
    field_scores_of(outcome.verdict, &outcome.metrics, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 3.75 / 14));
    metrics->traffic_light = 0;
    field_scores_of(outcome.verdict, &outcome.metrics, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && scores[FIELD_EPDMS] == 0);
    metrics->no_at_fault_collision = 0;
    metrics->lane_keeping = NAN; /* an older outcome */
    field_scores_of(outcome.verdict, &outcome.metrics, scores);
    EXPECT(scores[FIELD_PDMS] == 0 && isnan(scores[FIELD_EPDMS]));
    metrics->lane_keeping = 1;
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        bool scored = verdict == VERDICT_PASS || verdict == VERDICT_FAIL;
        outcome.verdict = (enum verdict)verdict;
        field_scores_of(outcome.verdict, &outcome.metrics, scores);
        EXPECT(isnan(scores[FIELD_PDMS]) != scored && isnan(scores[FIELD_EPDMS]) != scored);
    }
    outcome.verdict = VERDICT_PASS;
    metrics->total_cost = 80; /* a log of the controls challenge */
    field_scores_of(outcome.verdict, &outcome.metrics, scores);
    EXPECT(isnan(scores[FIELD_PDMS]) && isnan(scores[FIELD_EPDMS]));
}

/* The main line's score times the mean of its follow-up scenes' by their distance. */
static void branches_are_a_second_stage(void)
{
    struct field_stages stages = {0};
    struct outcome outcomes[4];
    for (int i = 0; i < 4; i++) {
        outcomes[i] = (struct outcome){.verdict = VERDICT_PASS};
        outcomes[i].metrics = (struct metrics){.no_at_fault_collision = 1,
                                               .drivable_area = 1,
                                               .driving_direction = 1,
                                               .progress = 1,
                                               .ttc = 1,
                                               .comfort = 1,
                                               .lane_keeping = 1,
                                               .traffic_light = 1,
                                               .total_cost = NAN,
                                               .extended_comfort = 0.5, /* EPDMS 15 / 16 */
                                               .stage_distance_m = NAN,
                                               .stage_epdms = NAN};
    }
    EXPECT(isnan(field_stages_score(&stages, outcomes[0].verdict, &outcomes[0].metrics)));
    outcomes[1].metrics.stage_distance_m = 0;
    outcomes[1].metrics.stage_epdms = 0.8;
    outcomes[2].metrics.stage_distance_m = sqrt(0.2); /* weighs exp(-1) of it */
    outcomes[2].metrics.stage_epdms = 0.4;
    outcomes[3].metrics.stage_distance_m = 0;
    outcomes[3].metrics.stage_epdms = 0;
    outcomes[3].verdict = VERDICT_FLAGGED; /* has no result */
    for (int i = 0; i < 4; i++) {
        field_stages_add(&stages, outcomes[i].verdict, &outcomes[i].metrics);
    }
    EXPECT_INT(stages.count, 2);
    double expected = 15.0 / 16 * (0.8 + 0.4 * exp(-1)) / (1 + exp(-1));
    EXPECT(
        is_close(field_stages_score(&stages, outcomes[0].verdict, &outcomes[0].metrics), expected));
    outcomes[0].verdict = VERDICT_INVALID;
    EXPECT(isnan(field_stages_score(&stages, outcomes[0].verdict, &outcomes[0].metrics)));
}

static void scenes_count_by_their_distance(void)
{
    for (int trial = 0; trial < 1000; trial++) {
        double x[4];
        double y[4];
        double weights[4];
        double sum = 0;
        double spread = trial % 2 == 0 ? 1 : 100;
        for (int i = 0; i < 4; i++) {
            x[i] = spread * (uniform() - 0.5);
            y[i] = spread * (uniform() - 0.5);
        }
        field_stage_weights(0, 0, x, y, 4, weights);
        for (int i = 0; i < 4; i++) {
            sum += weights[i];
            for (int k = 0; k < 4; k++) {
                bool nearer = x[i] * x[i] + y[i] * y[i] < x[k] * x[k] + y[k] * y[k];
                EXPECT(!nearer || weights[i] >= weights[k]);
            }
        }
        EXPECT(is_close(sum, 1));
    }
}

int main(void)
{
    return TEST_RUN(TEST(the_original_answers_the_same), TEST(scores_rise_with_every_part),
                    TEST(an_outcome_has_scores_of_the_field), TEST(scenes_count_by_their_distance),
                    TEST(branches_are_a_second_stage));
}
