/*
 * Plans of world models: the sums that the design rests on, from the list of operations; a served
 * model's list against the engine's own count of a tick; figures of GPUs that follow from each
 * other; what has no kernel in the table of machine code is refused by name.
 *
 * Argument: kernels/cuda/machine_code.txt.
 */
#include "engine/bench/bench_plan.h"

#include "base/check.h"
#include "base/file.h"
#include "engine/learned/model_internal.h"
#include "kernels/trunk/trunk.h"
#include "tests/harness.h"

#include <stdlib.h>

static char *table;

/* A configuration with views of 12,000 tokens. */
static struct trunk_config with_12000_tokens(const char *name)
{
    struct trunk_config config = *trunk_config_find(name);
    config.view_rows = 50;
    config.view_cols = 70;
    config.bev_rows = 30;
    config.bev_cols = 50;
    return config;
}

static struct bench_plan plan_of(const struct trunk_config *config, uint32_t ranks)
{
    struct bench_plan plan;
    struct error error;
    EXPECT_OK(bench_plan_of(config, ranks, table, &plan, &error), error);
    return plan;
}

/* 2 x 30e9 x 12e3 = 0.72 PFLOP of products a pass, and 22 in thirty. */
static void a_teacher_is_22_petaflop_a_frame(void)
{
    const struct trunk_config config = with_12000_tokens("teacher-30b");
    struct trunk_cost cost;
    struct device_text why;
    EXPECT_INT(trunk_cost_of(&config, 0, &cost, &why), DEVICE_OK);
    EXPECT_NEAR(cost.parameters / 30e9, 1.0, 0.01);
    double pass = 2.0 * cost.parameters * 12e3;
    EXPECT_NEAR(pass / 0.72e15, 1.0, 0.01);
    EXPECT_NEAR(30.0 * pass / 22e15, 1.0, 0.02);
    /* The list has less: modulation and places of tokens are no products of tokens, and the page's
     * keys and values are made once. */
    printf("# %.2f PFLOP of products a frame\n", cost.matmul_flop / 1e15);
    EXPECT(cost.matmul_flop < 30.0 * pass && cost.matmul_flop > 0.94 * 30.0 * pass);
}

/* 12 frames x 12e3 tokens x 57 KB = 8.2 GB, (80 - 4) / 8.2 = 9; the scales of a page's numbers,
 * which that sum leaves out, take the ninth. */
static void a_window_is_8_gigabytes(void)
{
    const struct trunk_config config = with_12000_tokens("student-3b");
    const struct bench_plan plan = plan_of(&config, 0);
    double token = 28 * 2 * 8 * 128.0;
    double scales = 28 * 2 * 8 * 4.0;
    EXPECT_NEAR(token / 57e3, 1.0, 0.01);
    EXPECT_NEAR(plan.window_bytes / (12 * 12e3 * (token + scales)), 1.0, 1e-3);
    double numbers = plan.window_bytes * token / (token + scales);
    EXPECT_NEAR(numbers / 8.2e9, 1.0, 0.01);
    EXPECT_INT(bench_plan_slots(80e9, 4e9, numbers), 9);
    EXPECT_INT(bench_plan_slots(80e9, 4e9, plan.window_bytes), 8);
    EXPECT_INT(bench_plan_slots(3e9, 4e9, numbers), 0);
}

/* 7.4e13 / 4 / 0.8e15 = 23 ms, and 56 exchanges of 0.3 ms = 16: 39 one by one, 25 to 28 in chunks.
 */
static void four_ranks_hide_most_of_what_they_exchange(void)
{
    const struct trunk_config config = with_12000_tokens("student-3b");
    const struct bench_plan plan = plan_of(&config, 4);
    double pass = 2.0 * plan.parameters * plan.tokens;
    EXPECT_NEAR(pass / 7.4e13, 1.0, 0.02);
    EXPECT_INT(plan.exchanges, 4 * 56);
    double compute_s = pass / 4 / 0.8e15;
    double exchange_s = plan.exchanges / 4.0 * 0.3e-3;
    EXPECT_NEAR(compute_s, 23.1e-3, 0.5e-3);
    EXPECT_NEAR(bench_plan_chunked(compute_s, exchange_s, 1), 39.9e-3, 0.5e-3);
    double chunked_s = bench_plan_chunked(compute_s, exchange_s, 4);
    EXPECT(chunked_s > 25e-3 && chunked_s < 28e-3);
    for (int i = 0; i < BENCH_PLAN_DEVICES; i++) {
        const struct bench_plan_device *device = &plan.devices[i];
        EXPECT(device->runs == 0 ||
               (device->exchange_s > 0.0 && device->chunked_s < device->step_s &&
                device->chunked_s > device->compute_s));
    }
}

/* Counts by hand, apart from each other, of the kernels that were: 1,755 launches, 396 TFLOP, 429
 * GB and 569 ms (531 by their machine code). End blocks in fp8 are 16 launches more, X in bf16 53
 * GB less; queries are turned beside the keys, which is 17.7 GB more: 4 x 28 x 12,848 x 24 x 128 x
 * 4 bytes; scales of pages are 1.1 GB: 4 x 28 x 12 x 12,848 x 8 x 2 x 4 bytes. */
static void the_plan_of_student_3b_is_what_was_counted_by_hand(void)
{
    const struct bench_plan plan = plan_of(trunk_config_find("student-3b"), 0);
    const struct bench_plan_device *h200 = &plan.devices[1];
    double flop = 0.0;
    double bytes = 0.0;
    double seconds = 0.0;
    uint32_t launches = 0;
    for (uint32_t i = 0; i < plan.row_count; i++) {
        flop += plan.rows[i].flop;
        bytes += plan.rows[i].bytes;
        launches += plan.rows[i].launches;
        seconds += plan.rows[i].on[1].s;
    }
    EXPECT_INT(plan.launches, 1771);
    EXPECT_INT(launches, plan.launches);
    EXPECT_NEAR(plan.flop / 396e12, 1.0, 1e-3);
    EXPECT_NEAR(plan.bytes / 391.2e9, 1.0, 1e-3);
    EXPECT_NEAR(flop / plan.flop, 1.0, 1e-9);
    EXPECT_NEAR(bytes / plan.bytes, 1.0, 1e-9);
    EXPECT_NEAR(seconds / h200->step_s, 1.0, 1e-9);
    EXPECT(strcmp(h200->name, "H200") == 0);
    EXPECT(h200->step_s > 0.40 && h200->step_s < 0.46);
    /* $2.50 an hour, 30 mph, ten steps a second */
    EXPECT_NEAR(h200->usd_per_mile / (2.5 / 3600.0 * h200->step_s * 1200.0), 1.0, 1e-9);
    EXPECT_INT(plan.devices[4].runs, 0); /* an A100 has no e4m3 */
    EXPECT(plan.devices[4].step_s == 0.0 && plan.devices[4].slots == 0);
}

static const struct model_config served = {
    .name = "served",
    .tier = TIER_STUDENT,
    .width = 64,
    .layers = 3,
    .bev_channels = 64,
    .camera_channels = 32,
    .window = 5,
    .steps = 2,
    .schedule = {0.0, 0.5, 1.0},
    .joint = {true, false, true},
    .patch = 4,
    .heads = 4,
    .kv_heads = 2,
    .head_dim = 32,
    .type = MODEL_E4M3,
    .reference_layers = 1,
};

/* A served model of the large one's size: pages of e4m3 leave room for more slots, windows in place
 * of joint attention are faster, three steps of them faster still. */
static void windows_and_fewer_steps_shorten_the_step(void)
{
    struct model_config config = served;
    config.width = 3072;
    config.layers = 28;
    config.window = 12;
    config.patch = 1;
    config.heads = 24;
    config.kv_heads = 8;
    config.head_dim = 128;
    for (uint32_t layer = 0; layer < config.layers; layer++) {
        config.joint[layer] = layer % 4 == 3;
    }
    struct trunk_config trunk = bench_plan_trunk(&config);
    const struct bench_plan joint = plan_of(&trunk, 0);
    config.pages = MODEL_E4M3;
    const struct trunk_config halved = bench_plan_trunk(&config);
    const struct bench_plan pages = plan_of(&halved, 0);
    EXPECT(pages.page_bytes < 0.54 * joint.page_bytes && pages.bytes < joint.bytes);
    EXPECT(pages.devices[1].slots > joint.devices[1].slots);
    trunk.reach = 8;
    trunk.past = 3;
    const struct bench_plan windows = plan_of(&trunk, 0);
    trunk.steps = 1;
    const struct bench_plan fewer = plan_of(&trunk, 0);
    printf("# on an H200 %.0f ms jointly, %.0f with windows, %.0f in one step of two\n",
           joint.devices[1].step_s * 1e3, windows.devices[1].step_s * 1e3,
           fewer.devices[1].step_s * 1e3);
    EXPECT(windows.flop < joint.flop && windows.devices[1].step_s < joint.devices[1].step_s);
    EXPECT(fewer.devices[1].step_s < 0.6 * windows.devices[1].step_s);
    EXPECT(windows.page_bytes == joint.page_bytes && windows.parameters < joint.parameters);
}

/* The engine counts from its weights, the plan from its list. */
static void the_list_of_a_served_model_has_the_engines_operations(void)
{
    static const uint32_t patches[] = {8, 4, 4, 8};
    for (uint32_t i = 0; i < COUNT_OF(patches); i++) {
        struct model_config config = served;
        struct model *model;
        struct error error;
        config.patch = patches[i];
        config.reach = i < 2 ? 0 : 8 - i;
        config.past = i < 2 ? 0 : i;
        const struct model_open_options options = {.precision = NN_BF16};
        EXPECT_OK(model_random(&config, &options, 1, &model, &error), error);
        const struct trunk_config trunk = bench_plan_trunk(model_config(model));
        const struct bench_plan plan = plan_of(&trunk, 0);
        EXPECT_INT(plan.tokens, model_tokens(model_config(model)));
        EXPECT_NEAR(plan.flop / model_tick_flop(model, 0), 1.0, 1e-12);
        model_close(model);
    }
}

static void what_has_no_kernel_is_refused(void)
{
    struct bench_plan plan;
    struct error error;
    struct model_config config = served;
    config.head_dim = 16;
    struct trunk_config trunk = bench_plan_trunk(&config);
    EXPECT_INT(bench_plan_of(&trunk, 0, table, &plan, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "range_kernel<16> of sm_90a");
    trunk = bench_plan_trunk(&served);
    EXPECT_INT(bench_plan_of(&trunk, 3, table, &plan, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, "expected a divisor of 864 tokens, 4 heads and 2");
    EXPECT_INT(bench_plan_of(&trunk, 0, "", &plan, &error), STATUS_BAD_INPUT);
    EXPECT_INT(bench_plan_make(NULL, "no such file", 0, table, &plan, &error), STATUS_NOT_FOUND);
}

int main(int argc, char **argv)
{
    size_t bytes;
    struct error error;
    if (argc != 2 || file_read(argv[1], 1 << 16, &table, &bytes, &error) != STATUS_OK) {
        return 2;
    }
    int code = TEST_RUN(TEST(a_teacher_is_22_petaflop_a_frame), TEST(a_window_is_8_gigabytes),
                        TEST(four_ranks_hide_most_of_what_they_exchange),
                        TEST(the_plan_of_student_3b_is_what_was_counted_by_hand),
                        TEST(windows_and_fewer_steps_shorten_the_step),
                        TEST(the_list_of_a_served_model_has_the_engines_operations),
                        TEST(what_has_no_kernel_is_refused));
    free(table);
    return code;
}
