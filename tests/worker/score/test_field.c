/*
 * Scores of the field. Method: vectors that NAVSIM's own functions made of random subscores and
 * signals (tests/vectors/navsim_vectors.py), to be met within 1e-6, and flags exactly; and
 * properties: a score is within 0 to 1, rises with each part, and follow-up scenes count by their
 * distance alone.
 */
#include "tests/harness.h"
#include "worker/score/field/field.h"
#include "worker/score/field/plans.h"

#include "base/rng.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TOLERANCE 1e-6
enum { WORD_BYTES = 32 };

static FILE *vectors;
static int plans_agreed[2]; /* pairs that do not, and that do */

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

/* Reads a plan and what it becomes when it is driven; true: extended comfort has such plans. */
static void check_drive(uint32_t count, double wheelbase_m, struct swerve_observation *ego,
                        struct swerve_answer *answer)
{
    struct tracker_drive drive;
    double row[7];
    for (int i = 0; i < 7; i++) {
        row[i] = number();
    }
    *ego = (struct swerve_observation){.x_m = row[0] + wheelbase_m / 2 * cos(row[2]),
                                       .y_m = row[1] + wheelbase_m / 2 * sin(row[2]),
                                       .heading_rad = row[2],
                                       .speed_mps = row[3],
                                       .accel_mps2 = row[4],
                                       .yaw_rate_rps = row[5],
                                       .steer_rad = row[6]};
    answer->point_count = count;
    for (uint32_t i = 0; i < count; i++) {
        double x_m = number();
        double y_m = number();
        double heading_rad = number();
        answer->points[i] = (struct swerve_trajectory_point){
            0.1 * (i + 1), x_m + wheelbase_m / 2 * cos(heading_rad),
            y_m + wheelbase_m / 2 * sin(heading_rad), heading_rad, 0.0};
    }
    const struct tracker_ego now = {ego->x_m,       ego->y_m,       ego->heading_rad,
                                    ego->speed_mps, ego->steer_rad, wheelbase_m};
    EXPECT(!tracker_simulate(&now, row[4], row[5], answer->points, count - 1, &drive));
    EXPECT(tracker_simulate(&now, row[4], row[5], answer->points, count, &drive));
    for (int i = 0; i < TRACKER_DRIVE_SAMPLES; i++) {
        EXPECT(is_close(drive.accel_mps2[i], number()));
        EXPECT(fabs(remainder(drive.heading_rad[i] - number(), 2 * PI_RAD)) < TOLERANCE);
    }
}

static void check_plan(uint32_t count)
{
    struct plans plans = {0};
    struct swerve_observation ego[2];
    struct swerve_answer answers[2];
    double wheelbase_m = number();
    for (uint32_t i = 0; i < 2; i++) {
        check_drive(count, wheelbase_m, &ego[i], &answers[i]);
        plans_add(&plans, i * PLANS_APART_TICKS, &ego[i], wheelbase_m, &answers[i]);
    }
    double agreed = number();
    plans_agreed[agreed == 1]++;
    EXPECT(plans_comfort(&plans) == agreed);
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
        {"lane", check_lane}, {"direction", check_direction}, {"stage", check_stage},
        {"plan", check_plan}};
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
    EXPECT(plans_agreed[0] > 1 && plans_agreed[1] > 1);
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
                                .extended_comfort = NAN,
                                .total_cost = NAN};
    field_scores_of(&outcome, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 9.5 / 14));
    metrics->extended_comfort = 0.25;
    field_scores_of(&outcome, scores);
    EXPECT(is_close(scores[FIELD_PDMS], 7.5 / 12) && is_close(scores[FIELD_EPDMS], 10.0 / 16));
    metrics->extended_comfort = NAN;
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

/* Only pairs 0.5 s apart count, of plans of 4 s between which nothing else drove. */
static void plans_are_compared_half_a_second_apart(void)
{
    const struct swerve_observation ego = {.speed_mps = 10};
    struct swerve_answer answer = {.point_count = 2};
    struct plans plans = {0};
    EXPECT(isnan(plans_comfort(&plans)));
    for (uint32_t tick = 0; tick < 40; tick++) {
        double far_m = tick == 25 ? 60 : 40; /* one plan speeds up */
        answer.points[0] = (struct swerve_trajectory_point){2, far_m / 2, 0, 0, 10};
        answer.points[1] = (struct swerve_trajectory_point){tick == 35 ? 3.9 : 4, far_m, 0, 0, 10};
        if (tick == 12) {
            plans_break(&plans); /* 10 and 15 are no pair */
        }
        plans_add(&plans, tick, &ego, 3, &answer);
    }
    EXPECT_INT(plans.pairs, 5); /* 0-5, 5-10, 15-20, 20-25, 25-30 */
    EXPECT_INT(plans.agreed, 3);
    answer.point_count = 0;
    plans_add(&plans, 40, &ego, 3, &answer);
    EXPECT(!plans.has_last && plans_comfort(&plans) == 0.6);
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
    EXPECT(isnan(field_stages_score(&stages, &outcomes[0])));
    outcomes[1].metrics.stage_distance_m = 0;
    outcomes[1].metrics.stage_epdms = 0.8;
    outcomes[2].metrics.stage_distance_m = sqrt(0.2); /* weighs exp(-1) of it */
    outcomes[2].metrics.stage_epdms = 0.4;
    outcomes[3].metrics.stage_distance_m = 0;
    outcomes[3].metrics.stage_epdms = 0;
    outcomes[3].verdict = VERDICT_FLAGGED; /* has no result */
    for (int i = 0; i < 4; i++) {
        field_stages_add(&stages, &outcomes[i]);
    }
    EXPECT_INT(stages.count, 2);
    double expected = 15.0 / 16 * (0.8 + 0.4 * exp(-1)) / (1 + exp(-1));
    EXPECT(is_close(field_stages_score(&stages, &outcomes[0]), expected));
    outcomes[0].verdict = VERDICT_INVALID;
    EXPECT(isnan(field_stages_score(&stages, &outcomes[0])));
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
                    TEST(an_outcome_has_scores_of_the_field), TEST(scenes_count_by_their_distance),
                    TEST(plans_are_compared_half_a_second_apart),
                    TEST(branches_are_a_second_stage));
}
