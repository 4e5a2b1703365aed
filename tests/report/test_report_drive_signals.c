/*
 * Goal: the document of a drive says where lights hold traffic and what they showed.
 * Method: one straight lane with a signal of two phases, driven by hand: its text, for the main
 * line and for a branch that turns the light, from the start and from the middle.
 */
#include "report/drive_signals.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

static struct vec2 points[] = {{0, 0}, {100, 0}};
static double widths[] = {4, 4};
static uint32_t lanes[] = {0};
static struct signal_phase phases[] = {{TRAFFIC_LIGHT_GREEN, 2.0}, {TRAFFIC_LIGHT_RED, 3.0}};
static struct lane lane = {.point_count = 2, .centre_line = points, .width_m = widths};
static struct traffic_signal signal_ = {.lane_count = 1,
                                        .lanes = lanes,
                                        .stop_m = 1.0,
                                        .repeats = true,
                                        .phase_count = 2,
                                        .phases = phases};
static struct intervention turn = {
    .kind = INTERVENE_SIGNAL, .tick = 10, .agent = -1, .light = TRAFFIC_LIGHT_YELLOW};
static struct branch branch = {.id = "turns", .intervention_count = 1, .interventions = &turn};

static struct scenario scenario_make(void)
{
    return (struct scenario){
        .map = {.lane_count = 1, .lanes = &lane, .signal_count = 1, .signals = &signal_},
        .branch_count = 1,
        .branches = &branch};
}

/* Fails unless the text has `expected` in it; frees it. */
static void expect(struct json_text *text, const char *expected)
{
    char *whole = malloc(text->bytes + 1);
    EXPECT(whole != NULL && !text->failed);
    memcpy(whole, text->data, text->bytes);
    whole[text->bytes] = '\0';
    EXPECT_CONTAINS(whole, expected);
    free(whole);
    free(text->data);
}

static void stop_lines_lie_across_their_lanes(void)
{
    struct scenario scenario = scenario_make();
    struct json_text text = {0};
    drive_signals_map(&text, &scenario.map);
    expect(&text, ",\"signals\":[{\"lines\":[[99.00,2.00,99.00,-2.00]]}]");
}

static void lights_are_told_where_they_change(void)
{
    static const struct {
        const char *branch;
        uint32_t first, count;
        const char *expected;
    } cases[] = {
        {"", 0, 81, "[[[0,\"green\"],[20,\"red\"],[50,\"green\"],[70,\"red\"]]]"},
        {"", 30, 10, "[[[30,\"red\"]]]"},
        {"turns", 0, 81, "[[[0,\"green\"],[10,\"yellow\"]]]"},
        {"turns", 12, 5, "[[[12,\"yellow\"]]]"},
        {"", 0, 0, "[[]]"},
    };
    struct scenario scenario = scenario_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct json_text text = {0};
        drive_signals_rollout(&text, &scenario, cases[i].branch, cases[i].first, cases[i].count);
        expect(&text, cases[i].expected);
    }
}

static void branches_say_what_they_change(void)
{
    struct scenario scenario = scenario_make();
    struct json_text text = {0};
    drive_interventions(&text, &scenario, "turns");
    expect(&text, "[{\"tick\":10,\"kind\":\"signal\",\"agent\":-1}]");
    text = (struct json_text){0};
    drive_interventions(&text, &scenario, "");
    expect(&text, "\"interventions\":[]");
}

int main(void)
{
    return TEST_RUN(TEST(stop_lines_lie_across_their_lanes),
                    TEST(lights_are_told_where_they_change), TEST(branches_say_what_they_change));
}
