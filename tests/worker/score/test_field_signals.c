/*
 * Extended comfort and the run off a lane's centre. Method: vectors that NAVSIM's own functions
 * made of random signals (tests/vectors/navsim_vectors.py), to be met within 1e-6, and flags
 * exactly; pairs of plans by hand.
 */
#include "tests/harness.h"
#include "worker/score/field/field_signals.h"
#include "worker/score/field/plans.h"
#include "worker/score/score_internal.h"

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
    const struct field_signals now = {count, step_s, rows[0][0], rows[0][1]};
    const struct field_signals before = {count, step_s, rows[1][0], rows[1][1]};
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
    struct centre_run run = {0};
    for (uint32_t i = 0; i < count; i++) {
        centre_run_add(&run, deviation[i], junction[i], (uint32_t)ceil(CENTRE_RUN_S / step_s));
    }
    EXPECT(run.kept_off == (score == 0));
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

static void the_original_answers_the_same(void)
{
    static const struct {
        const char *name;
        void (*check)(uint32_t count);
    } checks[] = {{"extended", check_extended}, {"lane", check_lane}, {"plan", check_plan}};
    int seen[sizeof checks / sizeof *checks] = {0};
    char name[WORD_BYTES];
    unsigned count;
    vectors = fopen(FIELD_VECTORS, "r");
    EXPECT(vectors != NULL);
    while (fscanf(vectors, "%31s", name) == 1) { /* others' rows are passed over */
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
            if (strcmp(checks[i].name, name) == 0) {
                EXPECT(fscanf(vectors, "%u", &count) == 1 && count > 0 &&
                       count <= FIELD_SAMPLES_MAX);
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

int main(void)
{
    return TEST_RUN(TEST(the_original_answers_the_same),
                    TEST(plans_are_compared_half_a_second_apart));
}
