/*
 * Goal: ego fails for a red light exactly where it passes a stop line on red, and for a stop sign
 * where it passes one without having stood before it.
 * Method: ego drives straight over, beside, short of and against a stop line while the light is one
 * or the other, changes in the very tick, or is held by an intervention.
 */
#include "engine/traffic/signals.h"
#include "tests/worker/rig.h"

#define STOP_X_M 600.0 /* lanes end at 1,000 m */

static uint32_t red_lane = 0;
static struct signal_phase red_phase = {TRAFFIC_LIGHT_RED, 1.0};

/* Ego's front edge 5 m short of the line of lane 0 at tick 0, 10 m/s; no criteria but the lights.
 */
static void begin(struct stand *rig, struct traffic_signal *signal, struct signal_phase *phases,
                  uint32_t phase_count, double y_m, double heading_rad)
{
    double front_m = heading_rad == 0.0 ? STOP_X_M - 5.0 - EGO_LENGTH_M / 2 : STOP_X_M + 5.0;
    *signal = (struct traffic_signal){.lane_count = 1,
                                      .lanes = &red_lane,
                                      .stop_m = 1000.0 - STOP_X_M,
                                      .phase_count = phase_count,
                                      .phases = phases};
    rig_init(rig);
    maps_motorway(&rig->arena, &rig->scenario.map, 3, 1000);
    rig->scenario.map.signal_count = 1;
    rig->scenario.map.signals = signal;
    rig_scenario(rig, (struct pose){front_m, y_m, heading_rad}, 10, 0, 60);
    rig->scenario.criteria = (struct criteria){.obey_signals = true,
                                               .min_ttc_s = NAN,
                                               .min_distance_m = NAN,
                                               .impact_speed_max_mps = NAN,
                                               .progress_min = NAN,
                                               .score_min = NAN,
                                               .speed_max_mps = NAN,
                                               .expected_progress_m = NAN};
    rig_start(rig);
}

static void drive(struct stand *rig, uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks; i++) {
        signals_update(&rig->scenario.map, &rig->scene);
        rig_drive(rig, 1);
    }
}

static uint32_t reasons_after(struct signal_phase *phases, uint32_t count, double y_m,
                              double heading_rad, uint32_t ticks)
{
    struct stand rig;
    struct traffic_signal signal;
    begin(&rig, &signal, phases, count, y_m, heading_rad);
    drive(&rig, ticks);
    double light = rig_metrics(&rig)->traffic_light;
    uint32_t reasons = rig.reasons;
    EXPECT_INT(light == 0, (reasons & REASON_RED_LIGHT) != 0);
    rig_finish(&rig);
    return reasons;
}

static void red_lights_stop_ego(void)
{
    for (int light = 0; light < TRAFFIC_LIGHT_COUNT; light++) {
        struct signal_phase phase = {(enum traffic_light)light, 1.0};
        bool stops = light == TRAFFIC_LIGHT_RED || light == TRAFFIC_LIGHT_RED_YELLOW;
        /* The front is at the line after 5 ticks. */
        EXPECT_INT(reasons_after(&phase, 1, 0.0, 0.0, 8), stops ? REASON_RED_LIGHT : 0);
        EXPECT_INT(reasons_after(&phase, 1, 0.0, 0.0, 5), 0);
    }
    EXPECT_INT(reasons_after(&red_phase, 1, 1.7, 0.0, 8), REASON_RED_LIGHT); /* in lane 0 */
    EXPECT_INT(reasons_after(&red_phase, 1, 1.8, 0.0, 8), 0);                /* in lane 1 */
    EXPECT_INT(reasons_after(&red_phase, 1, 0.0, PI_RAD, 12), 0); /* against the traffic */
}

/* The light turns while ego is in front of the line: yellow and green before it is fine. */
static void the_light_at_the_line_counts(void)
{
    for (uint32_t turn = 1; turn < 10; turn++) {
        struct signal_phase late_red[] = {{TRAFFIC_LIGHT_YELLOW, turn * TICK_S},
                                          {TRAFFIC_LIGHT_RED, 1.0}};
        struct signal_phase late_green[] = {{TRAFFIC_LIGHT_RED, turn * TICK_S},
                                            {TRAFFIC_LIGHT_GREEN, 1.0}};
        /* Passed between ticks 4 and 5 (or on 5): red at both is a fault. */
        EXPECT_INT(reasons_after(late_red, 2, 0.0, 0.0, 10), turn <= 4 ? REASON_RED_LIGHT : 0);
        EXPECT_INT(reasons_after(late_green, 2, 0.0, 0.0, 10), turn >= 6 ? REASON_RED_LIGHT : 0);
    }
}

static void interventions_and_criteria_count(void)
{
    struct stand rig;
    struct traffic_signal signal;
    struct signal_phase green = {TRAFFIC_LIGHT_GREEN, 1.0};
    begin(&rig, &signal, &green, 1, 0.0, 0.0);
    signals_hold(&rig.scenario.map, 0, TRAFFIC_LIGHT_RED, &rig.scene);
    drive(&rig, 8);
    rig_metrics(&rig);
    EXPECT_INT(rig.reasons, REASON_RED_LIGHT);
    EXPECT_INT(rig.verdict, VERDICT_FAIL);
    rig.scenario.criteria.obey_signals = false;
    rig_metrics(&rig);
    EXPECT_INT(rig.reasons, 0);
    rig_finish(&rig);
}

/* Ego comes 10 m/s fast, stands for a tick with its front `gap_m` before the line at `stand_mps`,
 * and goes on. */
static uint32_t reasons_at_sign(enum traffic_sign sign, double gap_m, double y_m, double stand_mps)
{
    struct stand rig;
    struct traffic_signal signal;
    begin(&rig, &signal, NULL, 0, 0.0, 0.0);
    signal.sign = sign;
    double front_m[] = {-9.0, -gap_m, -gap_m / 2, 3.0, 6.0};
    double speed_mps[] = {10.0, stand_mps, 2.0, 5.0, 5.0};
    for (uint32_t i = 0; i < sizeof front_m / sizeof front_m[0]; i++) {
        rig.scene.ego.pose = (struct pose){STOP_X_M + front_m[i] - EGO_LENGTH_M / 2, y_m, 0.0};
        rig.scene.ego.speed_mps = speed_mps[i];
        drive(&rig, 1);
    }
    rig_metrics(&rig);
    uint32_t reasons = rig.reasons;
    rig_finish(&rig);
    return reasons;
}

static void stop_signs_are_stopped_at(void)
{
    EXPECT_INT(reasons_at_sign(TRAFFIC_SIGN_STOP, 1.0, 0.0, 0.0), 0);
    EXPECT_INT(reasons_at_sign(TRAFFIC_SIGN_STOP, 3.9, 0.0, 0.09), 0);
    EXPECT_INT(reasons_at_sign(TRAFFIC_SIGN_STOP, 4.1, 0.0, 0.0), REASON_STOP_SIGN); /* too early */
    EXPECT_INT(reasons_at_sign(TRAFFIC_SIGN_STOP, 1.0, 0.0, 0.11), REASON_STOP_SIGN); /* rolling */
    EXPECT_INT(reasons_at_sign(TRAFFIC_SIGN_STOP, 1.0, 3.5, 3.0), 0); /* of another lane */
    EXPECT_INT(reasons_at_sign(TRAFFIC_SIGN_YIELD, 1.0, 0.0, 3.0), 0);
}

int main(void)
{
    return TEST_RUN(TEST(red_lights_stop_ego), TEST(the_light_at_the_line_counts),
                    TEST(interventions_and_criteria_count), TEST(stop_signs_are_stopped_at));
}
