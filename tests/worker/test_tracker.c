/*
 * Goal: the trackers do what schemas/planner.md states of them.
 * Method: nuPlan's LQR against nuplan-devkit's own answers on recorded drives
 * (tests/vectors/tracker_lqr.txt, to 1e-6); both trackers follow a circle and a stop under a
 * kinematic bicycle and stay near; answers turn with the world; checks name what is wrong.
 */
#include "tests/harness.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "worker/tracker/tracker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 80 };

static void lqr_equals_nuplans(void)
{
    FILE *file = fopen(VECTORS, "r");
    EXPECT(file != NULL);
    struct tracker_ego ego;
    uint32_t count;
    double accel;
    double rate;
    uint32_t cases = 0;
    double worst = 0.0;
    while (fscanf(file, " case %lf %lf %lf %lf %lf %lf %u %lf %lf", &ego.wheelbase_m, &ego.x_m,
                  &ego.y_m, &ego.heading_rad, &ego.speed_mps, &ego.steer_rad, &count, &accel,
                  &rate) == 9) {
        struct swerve_trajectory_point points[POINTS];
        char text[160];
        EXPECT(count <= POINTS);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT_INT(fscanf(file, "%lf %lf %lf %lf %lf", &points[i].t_s, &points[i].x_m,
                              &points[i].y_m, &points[i].heading_rad, &points[i].speed_mps),
                       5);
        }
        EXPECT(tracker_check(&ego, points, count, text, sizeof text));
        struct tracker_command command = tracker_lqr(&ego, points, count);
        EXPECT_NEAR(command.accel_mps2, accel, 1e-6);
        EXPECT_NEAR(command.steer_rate_rps, rate, 1e-6);
        worst = dmath_max(worst, fabs(command.accel_mps2 - accel));
        worst = dmath_max(worst, fabs(command.steer_rate_rps - rate));
        cases++;
    }
    EXPECT(feof(file));
    fclose(file);
    EXPECT_INT(cases, 36);
    printf("# %u cases, largest difference %.1e\n", cases, worst);
}

/* ---- in closed loop ---- */

/* Point of a reference at a time: a circle of 40 m at 10 m/s, or a stop within 4 s from 10 m/s. */
static struct swerve_trajectory_point reference_at(bool circle, double t_s)
{
    if (circle) {
        double angle_rad = 10.0 * t_s / 40.0;
        return (struct swerve_trajectory_point){t_s, 40.0 * sin(angle_rad),
                                                40.0 * (1.0 - cos(angle_rad)), angle_rad, 10.0};
    }
    double t = dmath_min(t_s, 4.0);
    return (struct swerve_trajectory_point){t_s, 10.0 * t - 1.25 * t * t, 0.0, 0.0, 10.0 - 2.5 * t};
}

/* Ego under the kinematic bicycle of nuPlan, without lags. */
static void move(struct tracker_ego *ego, struct swerve_action action)
{
    double back_m = ego->wheelbase_m / 2;
    double x_m = ego->x_m - back_m * cos(ego->heading_rad);
    double y_m = ego->y_m - back_m * sin(ego->heading_rad);
    ego->steer_rad = dmath_clamp(action.steer_rad, -0.6, 0.6);
    x_m += TICK_S * ego->speed_mps * cos(ego->heading_rad);
    y_m += TICK_S * ego->speed_mps * sin(ego->heading_rad);
    ego->heading_rad += TICK_S * ego->speed_mps * tan(ego->steer_rad) / ego->wheelbase_m;
    ego->speed_mps = fmax(0.0, ego->speed_mps + TICK_S * action.accel_mps2);
    ego->x_m = x_m + back_m * cos(ego->heading_rad);
    ego->y_m = y_m + back_m * sin(ego->heading_rad);
}

/* Largest distance from the reference's line over the last half of 10 s. */
static double follow(enum swerve_tracker tracker, bool circle, struct tracker_ego *ego)
{
    double worst_m = 0.0;
    *ego = (struct tracker_ego){.y_m = 0.5, .speed_mps = 10.0, .wheelbase_m = 2.8};
    for (int tick = 0; tick < 100; tick++) {
        struct swerve_trajectory_point points[41];
        char text[160];
        for (int i = 0; i <= 40; i++) {
            points[i] = reference_at(circle, TICK_S * (tick + i));
            points[i].t_s = TICK_S * i;
        }
        EXPECT(tracker_check(ego, points, 41, text, sizeof text));
        move(ego, tracker_follow(tracker, ego, points, 41));
        double off_m = circle ? fabs(hypot(ego->x_m, ego->y_m - 40.0) - 40.0) : fabs(ego->y_m);
        worst_m = tick >= 50 ? fmax(worst_m, off_m) : 0.0;
    }
    return worst_m;
}

static void both_follow(void)
{
    for (int tracker = 0; tracker < SWERVE_TRACKER_COUNT; tracker++) {
        struct tracker_ego ego;
        double circle_m = follow((enum swerve_tracker)tracker, true, &ego);
        EXPECT_NEAR(ego.speed_mps, 10.0, 0.3);
        double stop_m = follow((enum swerve_tracker)tracker, false, &ego);
        printf("# tracker %d: %.2f m off a circle, %.2f m off a straight, stops at %.2f m\n",
               tracker, circle_m, stop_m, ego.x_m);
        EXPECT(circle_m < 0.5 && stop_m < 0.5);
        EXPECT_NEAR(ego.x_m, 20.0, 3.0);
        EXPECT(ego.speed_mps < 0.2);
    }
}

/* Turning and moving everything changes no answer, and the mirror image turns the wheel over. */
static void answers_know_no_direction(void)
{
    for (int tracker = 0; tracker < SWERVE_TRACKER_COUNT; tracker++) {
        for (int mirror = 0; mirror < 2; mirror++) {
            struct swerve_trajectory_point points[30];
            struct swerve_trajectory_point turned[30];
            struct tracker_ego ego = {1.0, -0.4, 0.1, 8.0, 0.05, 2.8};
            struct tracker_ego there = ego;
            double sign = mirror ? -1.0 : 1.0;
            double c = cos(2.0);
            double s = sin(2.0);
            for (int i = 0; i < 30; i++) {
                points[i] = reference_at(true, 0.2 * i);
                turned[i] = points[i];
                turned[i].x_m = 300.0 + c * points[i].x_m - s * sign * points[i].y_m;
                turned[i].y_m = -50.0 + s * points[i].x_m + c * sign * points[i].y_m;
                turned[i].heading_rad = sign * points[i].heading_rad + 2.0 - 4.0 * PI_RAD;
            }
            there.x_m = 300.0 + c * ego.x_m - s * sign * ego.y_m;
            there.y_m = -50.0 + s * ego.x_m + c * sign * ego.y_m;
            there.heading_rad = sign * ego.heading_rad + 2.0;
            there.steer_rad *= sign;
            struct swerve_action a = tracker_follow((enum swerve_tracker)tracker, &ego, points, 30);
            struct swerve_action b =
                tracker_follow((enum swerve_tracker)tracker, &there, turned, 30);
            EXPECT_NEAR(a.accel_mps2, b.accel_mps2, 1e-9);
            EXPECT_NEAR(a.steer_rad, sign * b.steer_rad, 1e-9);
        }
    }
}

static void checks_name_the_fault(void)
{
    struct tracker_ego ego = {.speed_mps = 5.0, .wheelbase_m = 2.8};
    struct swerve_trajectory_point points[POINTS + 1];
    char text[160];
    for (int i = 0; i <= POINTS; i++) {
        points[i] = (struct swerve_trajectory_point){0.1 * i, 0.5 * i, 0.0, 0.0, 5.0};
    }
    EXPECT(tracker_check(&ego, points, POINTS, text, sizeof text));
    EXPECT(!tracker_check(&ego, points, 0, text, sizeof text) && strstr(text, "found 0") != NULL);
    EXPECT(!tracker_check(&ego, points, POINTS + 1, text, sizeof text) &&
           strstr(text, "found 81") != NULL);
    EXPECT(!tracker_check(&ego, points, 3, text, sizeof text) && strstr(text, "0.3 s") != NULL);
    double *const members[] = {&points[7].t_s, &points[7].x_m, &points[7].y_m,
                               &points[7].heading_rad, &points[7].speed_mps};
    const double wrong[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e300, -1e300};
    for (size_t m = 0; m < COUNT_OF(members); m++) {
        double right = *members[m];
        for (size_t w = 0; w < COUNT_OF(wrong); w++) {
            *members[m] = wrong[w];
            EXPECT(!tracker_check(&ego, points, POINTS, text, sizeof text));
            EXPECT(strstr(text, "point 7") != NULL || strstr(text, "point 8") != NULL);
        }
        *members[m] = right;
    }
    points[7].t_s = points[6].t_s; /* does not rise */
    EXPECT(!tracker_check(&ego, points, POINTS, text, sizeof text));
    EXPECT(strstr(text, "point 7: expected t_s above") != NULL);
    points[7].t_s = 0.7;
    points[0].t_s = -0.1;
    EXPECT(!tracker_check(&ego, points, POINTS, text, sizeof text));
}

int main(void)
{
    return TEST_RUN(TEST(lqr_equals_nuplans), TEST(both_follow), TEST(answers_know_no_direction),
                    TEST(checks_name_the_fault));
}
