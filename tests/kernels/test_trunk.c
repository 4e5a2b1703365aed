/*
 * The list of a world step's operations: its cost against shapes counted by hand, alone and by
 * ranks; what cannot be is refused with a sentence.
 * Of a served model, the list against the engine's own count of a tick (engine/learned/model.c) is
 * in tests/engine/test_bench_plan.c.
 */
#include "kernels/trunk/trunk.h"

#include "base/check.h"
#include "tests/harness.h"

/* By hand: 12,848 tokens, 28 layers, four steps; kernels/trunk/trunk.h says what is in a
 * layer. */
static void the_cost_of_student_3b_is_that_of_its_shapes(void)
{
    const struct trunk_config *config = trunk_config_find("student-3b");
    const double tokens = 3 * 3600.0 + 2048.0;
    const double d = 3072.0;
    const double kv = 1024.0;
    const double layer = d * (d + 2 * kv) + 3 * d * d + 2 * d * 9216.0;
    const double commit = 2 * kv * d * 28.0 + 64.0 * d;
    const double step = 28.0 * layer + 2 * 64.0 * d;
    const double modulation = 4.0 * (256.0 * d + d * d + 8 * d * d);
    const double squares = 21.0 * (3 * 3600.0 * 3600.0 + 2048.0 * 2048.0) + 7.0 * tokens * tokens;
    struct trunk_cost cost;
    struct trunk_cost share;
    struct device_text why;
    EXPECT_INT(trunk_cost_of(config, 0, &cost, &why), DEVICE_OK);
    EXPECT_NEAR(cost.matmul_flop / (2.0 * (tokens * (4 * step + commit) + modulation)), 1.0, 1e-12);
    EXPECT_NEAR(cost.attention_flop / (4.0 * 4.0 * d * squares), 1.0, 1e-12);
    EXPECT_NEAR(cost.temporal_flop / (4.0 * 4.0 * 28.0 * tokens * d * 12.0), 1.0, 1e-12);
    EXPECT(cost.parameters > 2.9e9 && cost.parameters < 3.2e9);
    printf("# student-3b: %.3f G parameters, %.1f TFLOP of products (%.1f in fp8), %.1f of "
           "attention, %.2f of the past; %.2f GB weights, %.2f GB workspace, %.3f GB a page, %u "
           "launches\n",
           cost.parameters / 1e9, cost.matmul_flop / 1e12, cost.matmul_fp8_flop / 1e12,
           cost.attention_flop / 1e12, cost.temporal_flop / 1e12, (double)cost.weight_bytes / 1e9,
           (double)cost.workspace_bytes / 1e9, (double)cost.page_bytes / 1e9, cost.launches);
    EXPECT_INT(trunk_cost_of(config, 8, &share, &why), DEVICE_OK);
    EXPECT_NEAR(share.attention_flop * 8 / cost.attention_flop, 1.0, 1e-12);
    EXPECT_NEAR(share.temporal_flop * 8 / cost.temporal_flop, 1.0, 1e-12);
    EXPECT_NEAR((double)share.page_bytes * 8 / (double)cost.page_bytes, 1.0, 1e-3);
    /* By layer and step q, k, v of its tokens and back, less what stays with the rank. */
    EXPECT_NEAR(share.all_to_all_bytes * 8 / (4 * 28 * tokens * (2 * d + 2 * kv) * 2 * 7 / 8), 1.0,
                1e-12);
    EXPECT_INT(trunk_cost_of(config, 5, &share, &why), DEVICE_FAULT_INPUT);
}

static void count_kinds(void *context, const struct trunk_op *op)
{
    ((uint32_t *)context)[op->kind]++;
}

/* A layer's launches by hand; two exchanges of each layer where ranks share the work. */
static void the_list_has_each_operation_once(void)
{
    const struct trunk_config *config = trunk_config_find("student-3b");
    struct device_text why;
    for (uint32_t ranks = 0; ranks <= 4; ranks += 4) {
        uint32_t found[TRUNK_KIND_COUNT] = {0};
        struct trunk trunk;
        EXPECT_INT(trunk_prepare(config, 0, ranks, &trunk, &why), DEVICE_OK);
        trunk_plan(&trunk, &(struct trunk_sink){count_kinds, found});
        EXPECT_INT(found[TRUNK_MATMUL], 4 + 4 * (28 * 6 + 2) + 1 + 28);
        EXPECT_INT(found[TRUNK_ATTENTION], 4 * 28);
        EXPECT_INT(found[TRUNK_TEMPORAL], 4 * 28);
        EXPECT_INT(found[TRUNK_RESIDUAL], 4 * (1 + 3 * 28));
        EXPECT_INT(found[TRUNK_ACTIVATE], 4 * 3 * 28);
        EXPECT_INT(found[TRUNK_PAGE_STORE], 28);
        EXPECT_INT(found[TRUNK_ALL_TO_ALL], ranks > 0 ? 4 * 28 * 2 : 0);
        EXPECT_INT(found[TRUNK_HEADS_OUT], ranks > 0 ? 4 * 28 : 0);
        EXPECT_INT(found[TRUNK_CONV] + found[TRUNK_PATCHES], 0);
    }
}

static void what_cannot_be_is_refused(void)
{
    static const struct {
        size_t member;
        uint32_t value;
        const char *sentence;
    } cases[] = {
        {offsetof(struct trunk_config, layers), 65, "layers are not 1 to 64"},
        {offsetof(struct trunk_config, steps), 0, "steps are not 1 to 64"},
        {offsetof(struct trunk_config, window), 17, "over 16 pages"},
        {offsetof(struct trunk_config, width), 80, "do not suit the kernels"},
        {offsetof(struct trunk_config, view_count), 8, "more than 7"},
        {offsetof(struct trunk_config, past), 4, "further back"},
        {offsetof(struct trunk_config, reach), 4, "of served models alone"},
        {offsetof(struct trunk_config, kv_heads), 3, "a divisor of 32 tokens, 4 heads and 3"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trunk_config config = *trunk_config_find("toy");
        struct trunk trunk;
        struct device_text why;
        memcpy((uint8_t *)&config + cases[i].member, &cases[i].value, sizeof cases[i].value);
        EXPECT_INT(trunk_prepare(&config, 0, 2, &trunk, &why), DEVICE_FAULT_INPUT);
        EXPECT_CONTAINS(why.text, cases[i].sentence);
    }
}

int main(void)
{
    return TEST_RUN(TEST(the_cost_of_student_3b_is_that_of_its_shapes),
                    TEST(the_list_has_each_operation_once), TEST(what_cannot_be_is_refused));
}
