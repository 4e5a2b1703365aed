/*
 * Goal: builtin:reference avoids what a good driver avoids and brakes for nothing else. Method:
 * closed loop on drive.h after Euro NCAP's AEB protocols (car-to-car rear; pedestrians and
 * cyclists, near and far side, from behind parked cars, along the road) at 10 to 60 km/h, and
 * drives that must stay undisturbed: free roads, bends, oncoming and parallel traffic, rain and
 * snow.
 */
#include "tests/harness.h"
#include "tests/worker/drive.h"

static struct planner *reference;

static double kph(double value)
{
    return value * MPS_PER_KPH;
}

static void run(struct drive *drive, uint32_t ticks)
{
    struct error error = {0};
    struct swerve_episode episode = drive_episode(drive, 0);
    EXPECT_OK(planner_reset(reference, &episode, &error), error);
    drive_run(drive, reference, ticks);
}

#define EXPECT_AVOIDED(drive, name, speed_kph)                                  \
    do {                                                                        \
        if ((drive)->collided) {                                                \
            TEST_FAIL("%s at %d km/h: hit at %.1f m/s", name, (int)(speed_kph), \
                      (drive)->impact_mps);                                     \
        }                                                                       \
    } while (0)

/* ---- car to car ---- */

static void stationary_car(void)
{
    for (int speed = 10; speed <= 130; speed += 10) {
        struct drive *drive = drive_create(kph(speed), kph(speed), 0.0);
        drive_add(drive, (struct pose){speed < 20 ? 40.0 : 120.0, 0.0, 0.0}, 4.5, 1.8, 0.0);
        run(drive, 300);
        EXPECT_AVOIDED(drive, "CCRs", speed);
        EXPECT(drive->scene.ego.speed_mps == 0.0);
        EXPECT(drive->clearance_min_m < 6.0); /* it does not stop half a street away either */
        if (speed <= 70) {
            EXPECT(drive->accel_min_mps2 > -4.05); /* seen from afar: comfortably */
            EXPECT(drive->jerk_max_mps3 < 4.13);
        }
        drive_destroy(drive);
    }
}

static void slower_car(void)
{
    for (int speed = 30; speed <= 130; speed += 20) {
        struct drive *drive = drive_create(kph(speed), kph(speed), 0.0);
        drive_add(drive, (struct pose){100.0, 0.0, 0.0}, 4.5, 1.8, kph(20));
        run(drive, 250);
        EXPECT_AVOIDED(drive, "CCRm", speed);
        EXPECT(drive->scene.ego.speed_mps > kph(19));
        drive_destroy(drive);
    }
}

static void braking_car(void)
{
    for (int gap = 12; gap <= 40; gap += 28) {
        for (int decel = 2; decel <= 6; decel += 4) {
            struct drive *drive = drive_create(kph(50), kph(50), 0.0);
            struct drive_agent *lead =
                drive_add(drive, (struct pose){gap + 4.55, 0.0, 0.0}, 4.5, 1.8, kph(50));
            lead->event_s = 1.0;
            lead->accel_mps2 = -decel;
            run(drive, 150);
            EXPECT_AVOIDED(drive, "CCRb", 50);
            drive_destroy(drive);
        }
    }
}

static void following(void)
{
    struct drive *drive = drive_create(kph(50), kph(60), 0.0);
    drive_add(drive, (struct pose){30.0, 0.0, 0.0}, 4.5, 1.8, kph(40));
    run(drive, 600);
    EXPECT(!drive->collided);
    EXPECT_NEAR(drive->scene.ego.speed_mps, kph(40), 0.1);
    double gap = drive->scene.agents[0].pose.x_m - drive->scene.ego.pose.x_m - 4.55;
    EXPECT(gap > 1.0 * kph(40) && gap < 3.0 * kph(40));
    EXPECT(drive->accel_min_mps2 > -4.05 && drive->jerk_max_mps3 < 4.13);
    drive_destroy(drive);
}

static void cut_in(void)
{
    for (int speed = 50; speed <= 130; speed += 40) {
        struct drive *drive = drive_create(kph(speed), kph(speed), 0.0);
        struct drive_agent *other =
            drive_add(drive, (struct pose){25.0, 3.5, 0.0}, 4.5, 1.8, kph(speed - 20));
        other->event_s = 1.5;
        other->shift_m = -3.5;
        other->shift_s = 3.0;
        run(drive, 200);
        EXPECT_AVOIDED(drive, "cut-in", speed);
        drive_destroy(drive);
    }
}

/* ---- vulnerable road users ---- */

/* Someone who crosses so that an ego which keeps its speed hits them `share` of the way across its
 * front, 6 s after the start. */
static struct drive *crossing(int speed_kph, double from_m, double walk_kph, double share,
                              double length_m, double width_m)
{
    struct drive *drive = drive_create(kph(speed_kph), kph(speed_kph), 0.0);
    double side = from_m < 0 ? 1.0 : -1.0;
    double reach = fabs(from_m) + (share - 0.5) * drive->scenario.ego.width_m;
    double x = 0.5 * drive->scenario.ego.length_m + kph(speed_kph) * 6.0;
    struct drive_agent *walker =
        drive_add(drive, (struct pose){x, from_m, side * PI_RAD / 2}, length_m, width_m, 0.0);
    walker->event_s = 6.0 - reach / kph(walk_kph);
    walker->speed_to_mps = kph(walk_kph);
    return drive;
}

static void crossing_pedestrians_and_cyclists(void)
{
    static const struct {
        const char *name;
        double from_m, speed_kph, share, length_m, width_m;
    } cases[] = {
        {"CPNA-25", -4.0, 5.0, 0.25, 0.5, 0.5}, {"CPNA-75", -4.0, 5.0, 0.75, 0.5, 0.5},
        {"CPFA-50", 6.0, 8.0, 0.5, 0.5, 0.5},   {"CBNA-50", -15.0, 15.0, 0.5, 1.8, 0.6},
        {"CBFA-50", 17.0, 20.0, 0.5, 1.8, 0.6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int speed = 10; speed <= 60; speed += 10) {
            struct drive *drive = crossing(speed, cases[i].from_m, cases[i].speed_kph,
                                           cases[i].share, cases[i].length_m, cases[i].width_m);
            run(drive, 150);
            EXPECT_AVOIDED(drive, cases[i].name, speed);
            /* It goes on once the way is free. */
            EXPECT(drive->scene.ego.speed_mps > 0.5 * kph(speed));
            drive_destroy(drive);
        }
    }
}

static void child_from_behind_parked_cars(void)
{
    for (int speed = 20; speed <= 60; speed += 10) {
        struct drive *drive = crossing(speed, -4.0, 5.0, 0.5, 0.35, 0.35);
        double x = drive->scene.agents[0].pose.x_m;
        drive_add(drive, (struct pose){x - 3.5, -2.85, 0.0}, 4.5, 1.8, 0.0);
        drive_add(drive, (struct pose){x - 9.0, -2.85, 0.0}, 4.5, 1.8, 0.0);
        /* Timed by ego's approach, because ego slows down for the parked cars. */
        drive->moves[0].event_s = 1e9;
        drive->moves[0].event_ttc_s = 4.0 / kph(5.0);
        run(drive, 250);
        EXPECT_AVOIDED(drive, "CPNCO-50", speed);
        drive_destroy(drive);
    }
}

static void along_the_road(void)
{
    for (int speed = 20; speed <= 60; speed += 10) {
        for (int cyclist = 0; cyclist <= 1; cyclist++) {
            struct drive *drive = drive_create(kph(speed), kph(speed), 0.0);
            drive_add(drive, (struct pose){90.0, -0.45 * cyclist, 0.0}, cyclist ? 1.8 : 0.5, 0.6,
                      kph(cyclist ? 15 : 5));
            run(drive, 250);
            EXPECT_AVOIDED(drive, cyclist ? "CBLA" : "CPLA", speed);
            EXPECT(drive->accel_min_mps2 > -4.05);
            drive_destroy(drive);
        }
    }
}

static void red_light_runner(void)
{
    for (int speed = 30; speed <= 60; speed += 30) {
        struct drive *drive = crossing(speed, kph(50) * 6.0, 50.0, 0.5, 4.5, 1.8);
        run(drive, 150);
        EXPECT_AVOIDED(drive, "red light runner", speed);
        drive_destroy(drive);
    }
}

/* ---- nothing to brake for ---- */

static void undisturbed(struct drive *drive, const char *name, double speed_min_mps)
{
    run(drive, 250);
    if (drive->collided || drive->command_min_mps2 < -0.6 ||
        drive->scene.ego.speed_mps < speed_min_mps) {
        TEST_FAIL("%s: collided %d, lowest command %.2f m/s2, final speed %.2f m/s", name,
                  drive->collided, drive->command_min_mps2, drive->scene.ego.speed_mps);
    }
    EXPECT(drive->jerk_max_mps3 < 4.13);
    EXPECT(drive->offset_max_m < 0.3);
    drive_destroy(drive);
}

static void no_false_braking(void)
{
    static const enum weather weathers[] = {WEATHER_CLEAR, WEATHER_RAIN, WEATHER_HEAVY_RAIN,
                                            WEATHER_SNOW};
    for (int i = 0; i < 4; i++) {
        for (uint64_t seed = 1; seed <= 12; seed++) {
            struct drive *drive = drive_create(13.0, 13.9, 0.0);
            drive->scene.conditions.weather = weathers[i];
            drive->scene.conditions.visibility_m = i == 0 ? 200.0 : 90.0;
            drive->seed = seed;
            undisturbed(drive, "free road", 13.5);
        }
    }
    undisturbed(drive_create(12.0, 13.9, 150.0), "left bend", 13.5);
    undisturbed(drive_create(12.0, 13.9, -150.0), "right bend", 13.5);
    undisturbed(drive_create(25.0, kph(100), 0.0), "motorway", kph(97));
    struct drive *drive = drive_create(kph(100), kph(100), 0.0);
    for (int i = 0; i < 6; i++) {
        drive_add(drive, (struct pose){-10.0 + 30.0 * i, i % 2 ? 3.5 : -3.5, 0.0}, 4.5, 1.8,
                  kph(100));
    }
    undisturbed(drive, "parallel traffic", kph(97));
    for (int bend = -1; bend <= 1; bend++) {
        drive = drive_create(13.0, 13.9, bend * 150.0);
        for (int i = 0; i < 8; i++) {
            struct pose pose = drive_pose(drive, 40.0 + 45.0 * i, 3.5);
            pose.heading_rad += PI_RAD;
            /* Cars of drive.h go straight on: oncoming traffic moves on the straight road only. */
            drive_add(drive, pose, 4.5, 1.8, bend == 0 ? 13.9 : 0.0);
            drive->scenario.agents[i].low = bend != 0; /* hides nothing */
        }
        undisturbed(drive, bend == 0 ? "oncoming traffic" : "cars beside a bend", 13.0);
    }
}

/* ---- the rest ---- */

static void limits_and_bends_are_respected(void)
{
    struct drive *drive = drive_create(20.0, 12.0, 0.0);
    run(drive, 200);
    EXPECT_NEAR(drive->scene.ego.speed_mps, 12.0, 0.3);
    EXPECT(drive->accel_min_mps2 > -4.05 && drive->jerk_max_mps3 < 4.13);
    drive_destroy(drive);
    drive = drive_create(8.0, 14.0, 25.0);
    run(drive, 150);
    EXPECT_NEAR(drive->scene.ego.speed_mps, sqrt(2.0 * 25.0), 0.3);
    EXPECT(drive->offset_max_m < 0.4);
    drive_destroy(drive);
}

static void stops_within_sight_in_fog(void)
{
    struct drive *drive = drive_create(20.0, 33.0, 0.0);
    drive->scene.conditions.weather = WEATHER_FOG;
    drive->scene.conditions.visibility_m = 50.0;
    drive->grip_mps2 = 0.9 * 9.81;
    drive_add(drive, (struct pose){300.0, 0.0, 0.0}, 4.5, 1.8, 0.0);
    run(drive, 400);
    EXPECT_AVOIDED(drive, "standing car in fog", 70);
    EXPECT(drive->scene.ego.speed_mps == 0.0);
    drive_destroy(drive);
}

static void steers_round_a_standing_obstacle(void)
{
    for (int left = 0; left <= 1; left++) {
        struct drive *drive = drive_create(kph(50), kph(50), 0.0);
        drive->adjacent_left_m = left ? 3.5 : 0.0;
        drive->adjacent_right_m = left ? 0.0 : 3.5;
        drive_add(drive, (struct pose){110.0, 0.0, 0.0}, 1.8, 0.9, 0.0);
        run(drive, 300);
        EXPECT_AVOIDED(drive, "couch", 50);
        EXPECT(drive->scene.ego.pose.x_m > 130.0);
        EXPECT_NEAR(drive->scene.ego.pose.y_m, 0.0, 0.2); /* and back */
        EXPECT(drive->clearance_min_m > 0.4);
        drive_destroy(drive);
    }
    /* Not where the neighbouring lane is taken. */
    struct drive *drive = drive_create(kph(50), kph(50), 0.0);
    drive->adjacent_left_m = 3.5;
    drive_add(drive, (struct pose){110.0, 0.0, 0.0}, 1.8, 0.9, 0.0);
    drive_add(drive, (struct pose){110.0, 3.5, 0.0}, 4.5, 1.8, 0.0);
    run(drive, 300);
    EXPECT(!drive->collided && drive->scene.ego.speed_mps == 0.0);
    drive_destroy(drive);
}

static void slows_down_when_the_lidar_is_dark(void)
{
    struct drive *drive = drive_create(15.0, 15.0, 0.0);
    drive_add(drive, (struct pose){70.0, 0.0, 0.0}, 4.5, 1.8, 0.0);
    run(drive, 20);
    drive->bev_dark = true; /* the last grid showed the car */
    drive_run(drive, reference, 100);
    EXPECT_AVOIDED(drive, "dark lidar", 54);
    drive_destroy(drive);
    drive = drive_create(15.0, 15.0, 0.0);
    run(drive, 10);
    drive->bev_dark = true;
    drive_run(drive, reference, 100);
    EXPECT(drive->scene.ego.speed_mps < 3.0);
    drive_destroy(drive);
}

static void starts_off_behind_a_leader(void)
{
    struct drive *drive = drive_create(0.0, kph(50), 0.0);
    struct drive_agent *lead = drive_add(drive, (struct pose){8.0, 0.0, 0.0}, 4.5, 1.8, 0.0);
    lead->event_s = 3.0;
    lead->accel_mps2 = 1.5;
    run(drive, 30);
    EXPECT(drive->scene.ego.speed_mps < 0.5);
    drive_run(drive, reference, 120);
    EXPECT(!drive->collided && drive->scene.ego.speed_mps > 8.0);
    drive_destroy(drive);
}

int main(void)
{
    struct planner_config config = {.session_count = 1};
    struct error error;
    if (planner_open("builtin:reference", &config, &reference, &error) != STATUS_OK) {
        printf("Bail out! %s\n", error.text);
        return 1;
    }
    int result =
        TEST_RUN(TEST(stationary_car), TEST(slower_car), TEST(braking_car), TEST(following),
                 TEST(cut_in), TEST(crossing_pedestrians_and_cyclists),
                 TEST(child_from_behind_parked_cars), TEST(along_the_road), TEST(red_light_runner),
                 TEST(no_false_braking), TEST(limits_and_bends_are_respected),
                 TEST(stops_within_sight_in_fog), TEST(steers_round_a_standing_obstacle),
                 TEST(slows_down_when_the_lidar_is_dark), TEST(starts_off_behind_a_leader));
    planner_close(reference);
    return result;
}
