/*
 * Goal: what a grid wrote into a scenario's id is read back, and nothing else is taken for it.
 * Method: ids as suites make them, and ids that only look like them.
 */
#include "schemas/scenario_id.h"
#include "tests/harness.h"

static size_t count_parameters(const char *id)
{
    struct scenario_id_parameter parameter;
    const char *at = scenario_id_parameters(id);
    size_t count = 0;
    while (scenario_id_next(&at, &parameter)) {
        count++;
    }
    return count;
}

static void grid_ids_have_parameters(void)
{
    const char *id = "ncap/cut_in/gap_m=12.5,light=night";
    struct scenario_id_parameter parameter;
    const char *at = scenario_id_parameters(id);
    EXPECT_INT(scenario_id_logical_bytes(id), strlen("ncap/cut_in"));
    EXPECT(scenario_id_next(&at, &parameter));
    EXPECT_INT(parameter.name_bytes, 5);
    EXPECT(memcmp(parameter.name, "gap_m", 5) == 0);
    EXPECT_INT(parameter.value_bytes, 4);
    EXPECT(memcmp(parameter.value, "12.5", 4) == 0);
    EXPECT(scenario_id_next(&at, &parameter));
    EXPECT(memcmp(parameter.value, "night", 5) == 0);
    EXPECT(!scenario_id_next(&at, &parameter));
}

static void other_ids_have_none(void)
{
    static const char *const ids[] = {
        "",       "cut_in",  "ncap/cut_in", "a=1",     "x/a=",    "x/=1",
        "x/a=1,", "x/a=1,b", "x/a=1=2",     "x/a=1/b", "x/a b=1", "/",
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        EXPECT_INT(count_parameters(ids[i]), 0);
        EXPECT_INT(scenario_id_logical_bytes(ids[i]), strlen(ids[i]));
    }
    EXPECT_INT(count_parameters("/a=1"), 1);
    EXPECT_INT(scenario_id_logical_bytes("/a=1"), 0);
}

int main(void)
{
    return TEST_RUN(TEST(grid_ids_have_parameters), TEST(other_ids_have_none));
}
