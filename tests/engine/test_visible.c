/*
 * Visible. Method: scenes whose answer a drawing gives; and random scenes against the lidar's own
 * returns: an agent that has none on the grid is out of sight, one that has some is in sight, but
 * for slivers between the points that are looked at.
 */
#include "engine/sensors/visible.h"

#include "base/rng.h"
#include "engine/sensors/raster_view.h"
#include "tests/harness.h"

enum { AGENTS = 6 };

static struct scenario scenario;
static struct agent agents[AGENTS];
static struct scene scene;

static void empty_scene(void)
{
    memset(agents, 0, sizeof agents);
    scenario = (struct scenario){.agents = agents, .agent_count = AGENTS};
    scene = (struct scene){.agent_count = AGENTS, .conditions = {.visibility_m = 200}};
}

static void put(uint32_t i, struct pose pose, double length_m, double width_m, double height_m)
{
    agents[i] = (struct agent){.length_m = length_m, .width_m = width_m, .height_m = height_m};
    scene.agents[i] = (struct agent_state){.pose = pose, .present = true};
}

static void what_stands_behind_a_box_is_hidden(void)
{
    empty_scene();
    put(0, (struct pose){30, 0, 0}, 0.6, 0.6, 1.7);
    EXPECT(visible_agent(&scenario, &scene, 0));
    put(1, (struct pose){15, 0, 0}, 8, 2.5, 3);
    EXPECT(!visible_agent(&scenario, &scene, 0));
    EXPECT(visible_agent(&scenario, &scene, 1));
    scene.agents[0].pose.y_m = 3; /* out of the shadow, whose edge is at 1.25 * 30 / 11 = 3.4 m */
    EXPECT(!visible_agent(&scenario, &scene, 0));
    scene.agents[0].pose.y_m = 3.8;
    EXPECT(visible_agent(&scenario, &scene, 0));
    scene.agents[0].pose.y_m = 0;
    agents[1].height_m = 0.3; /* one looks over it */
    EXPECT(visible_agent(&scenario, &scene, 0));
    agents[1].height_m = 3;
    scene.agents[1].present = false;
    EXPECT(visible_agent(&scenario, &scene, 0));
}

static void nothing_is_seen_beyond_the_visibility_or_absent(void)
{
    empty_scene();
    put(0, (struct pose){50, 0, 0}, 4, 2, 1.5);
    scene.conditions.visibility_m = 49;
    EXPECT(visible_agent(&scenario, &scene, 0)); /* its rear is at 48 m */
    scene.conditions.visibility_m = 47.9;
    EXPECT(!visible_agent(&scenario, &scene, 0));
    scene.conditions.visibility_m = 200;
    scene.agents[0].present = false;
    EXPECT(!visible_agent(&scenario, &scene, 0));
}

static void lidar_and_lines_of_sight_agree(void)
{
    static uint8_t occupancy[BEV_CELLS];
    static uint8_t unseen[BEV_CELLS];
    static uint16_t owner[BEV_CELLS];
    const struct raster_planes planes = {.occupancy = occupancy, .unseen = unseen, .owner = owner};
    struct raster_kernels kernels;
    uint64_t state = 9;
    raster_kernels_init(&kernels, 0);
    int seen = 0;
    int hidden = 0;
    int differ = 0;
    for (int round = 0; round < 300; round++) {
        empty_scene();
        for (uint32_t i = 0; i < AGENTS; i++) {
            double x_m = 4 + (double)(rng_mix(++state) % 2000) / 100;
            double y_m = (double)(rng_mix(++state) % 1600) / 100 - 8;
            double heading = (double)(rng_mix(++state) % 628) / 100;
            put(i, (struct pose){x_m, y_m, heading}, 3, 1.6, 1.8);
        }
        struct raster_view view = raster_view_ego(&scene.ego.pose);
        raster_lidar(&kernels, &scenario, &scene, &view, &planes);
        for (uint32_t i = 0; i < AGENTS; i++) {
            bool returns = false;
            for (uint32_t c = 0; c < BEV_CELLS && !returns; c++) {
                returns = owner[c] == i + 1;
            }
            bool visible = visible_agent(&scenario, &scene, i);
            seen += visible && returns;
            hidden += !visible && !returns;
            differ += visible != returns;
        }
    }
    EXPECT(seen > 500 && hidden > 100);
    if (differ * 20 > seen + hidden) {
        TEST_FAIL("%d of %d differ", differ, seen + hidden + differ);
    }
}

int main(void)
{
    return TEST_RUN(TEST(what_stands_behind_a_box_is_hidden),
                    TEST(nothing_is_seen_beyond_the_visibility_or_absent),
                    TEST(lidar_and_lines_of_sight_agree));
}
