/*
 * Scores of the field. Method: vectors that NAVSIM's own functions made of random subscores and
 * signals (tests/vectors/navsim_vectors.py), to be met within 1e-6, and flags exactly; and
 * properties: a score is within 0 to 1, rises with each part, and follow-up scenes count by their
 * distance alone.
 */
#include "tests/harness.h"
#include "worker/score/field/field.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-6
enum { WORD_BYTES = 32 };

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
    double progress[FIELD_SAMPLES_MAX] = {0};
    double product[FIELD_SAMPLES_MAX] = {0};
    double normalised[FIELD_SAMPLES_MAX];
    double expected[FIELD_SAMPLES_MAX][3];
    struct field_parts parts[FIELD_SAMPLES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        progress[i] = number();
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
        product[i] = parts[i].no_at_fault_collision * parts[i].drivable_area *
                     parts[i].driving_direction * parts[i].traffic_light;
    }
    field_normalise_progress(progress, product, count, normalised);
    for (uint32_t i = 0; i < count; i++) {
        struct field_parts alone = parts[i];
        parts[i].progress = normalised[i];
        alone.progress = normalised[i];
        alone.extended_comfort = NAN;
        EXPECT(is_close(normalised[i], expected[i][0]));
        EXPECT(is_close(field_epdms(&alone), expected[i][1]));
        EXPECT(is_close(field_epdms(&parts[i]), expected[i][2]));
    }
}

static void check_comfort(uint32_t count)
{
    double rows[4][FIELD_SAMPLES_MAX];
    bool within[FIELD_COMFORTS];
    double step_s = number();
    for (uint32_t i = 0; i < count; i++) {
        for (int k = 0; k < 4; k++) {
            rows[k][i] = number();
        }
    }
    const struct field_signals signals = {count, step_s, rows[0], rows[1], rows[2], rows[3]};
    field_comfort(&signals, within);
    for (int k = 0; k < FIELD_COMFORTS; k++) {
        EXPECT_INT(within[k], (int)number());
    }
}

static void check_extended(uint32_t count)
{
    double rows[2][2][FIELD_SAMPLES_MAX];
    double differences[FIELD_DIFFERENCES];
    double step_s = number();
    for (int plan = 0; plan < 2; plan++) {
        for (uint32_t i = 0; i < count; i++) {
            rows[plan][0][i] = number();
            rows[plan][1][i] = number();
        }
    }
    const struct field_signals now = {count, step_s, NULL, NULL, rows[0][0], rows[0][1]};
    const struct field_signals before = {count, step_s, NULL, NULL, rows[1][0], rows[1][1]};
    bool within = field_extended_comfort(&now, &before, differences);
    for (int k = 0; k < FIELD_DIFFERENCES; k++) {
        EXPECT(is_close(differences[k], number()));
    }
    EXPECT_INT(within, (int)number());
}

static void check_lane(uint32_t count)
{
    double deviation[FIELD_SAMPLES_MAX];
    bool junction[FIELD_SAMPLES_MAX];
    double step_s = number();
    double score = number();
    for (uint32_t i = 0; i < count; i++) {
        deviation[i] = number();
        junction[i] = number() != 0;
    }
    EXPECT(field_lane_keeping(deviation, junction, count, step_s) == score);
}

static void check_direction(uint32_t count)
{
    double oncoming[FIELD_SAMPLES_MAX];
    double step_s = number();
    double score = number();
    for (uint32_t i = 0; i < count; i++) {
        oncoming[i] = number();
    }
    EXPECT(field_driving_direction(oncoming, count, step_s) == score);
}

static void check_stage(uint32_t count)
{
    double x[FIELD_SAMPLES_MAX];
    double y[FIELD_SAMPLES_MAX];
    double score[FIELD_SAMPLES_MAX];
    double expected[FIELD_SAMPLES_MAX];
    double weights[FIELD_SAMPLES_MAX];
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
    } checks[] = {
        {"pdm", check_pdm},   {"comfort", check_comfort},     {"extended", check_extended},
        {"lane", check_lane}, {"direction", check_direction}, {"stage", check_stage}};
    int seen[sizeof checks / sizeof *checks] = {0};
    char name[WORD_BYTES];
    unsigned count;
    vectors = fopen(FIELD_VECTORS, "r");
    EXPECT(vectors != NULL);
    while (fscanf(vectors, "%31s %u", name, &count) == 2) {
        EXPECT(count > 0 && count <= FIELD_SAMPLES_MAX);
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
            if (strcmp(checks[i].name, name) == 0) {
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

static void what_the_human_fails_is_forgiven(void)
{
    struct field_parts parts = {0, 0, 0.5, 0, 0.3, 0, 0, 0, 0};
    const struct field_parts human = {0, 1, 0, 1, 0.5, 0, 1, 0, 0};
    field_forgive(&parts, &human);
    EXPECT(parts.no_at_fault_collision == 1 && parts.drivable_area == 0);
    EXPECT(parts.driving_direction == 1 && parts.traffic_light == 0 && parts.progress == 0.3);
    EXPECT(parts.ttc == 1 && parts.lane_keeping == 0 && parts.history_comfort == 1);
    EXPECT(parts.extended_comfort == 0);
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
                                .total_cost = NAN};
    field_scores_of(&outcome, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 9.5 / 14));
    metrics->driving_direction = 0.5;
    metrics->lane_keeping = 0;
    field_scores_of(&outcome, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 3.75 / 14));
    metrics->traffic_light = 0;
    field_scores_of(&outcome, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && scores[FIELD_EPDMS] == 0);
    metrics->no_at_fault_collision = 0;
    metrics->lane_keeping = NAN; /* an older outcome */
    field_scores_of(&outcome, scores);
    EXPECT(scores[FIELD_PDMS] == 0 && isnan(scores[FIELD_EPDMS]));
    metrics->lane_keeping = 1;
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
        bool scored = verdict == VERDICT_PASS || verdict == VERDICT_FAIL;
        outcome.verdict = (enum verdict)verdict;
        field_scores_of(&outcome, scores);
        EXPECT(isnan(scores[FIELD_PDMS]) != scored && isnan(scores[FIELD_EPDMS]) != scored);
    }
    outcome.verdict = VERDICT_PASS;
    metrics->total_cost = 80; /* a log of the controls challenge */
    field_scores_of(&outcome, scores);
    EXPECT(isnan(scores[FIELD_PDMS]) && isnan(scores[FIELD_EPDMS]));
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
                    TEST(what_the_human_fails_is_forgiven),
                    TEST(an_outcome_has_scores_of_the_field), TEST(scenes_count_by_their_distance));
}
