/*
 * Goal: planners of version 3 are given what is there, or of that what sensors see, and never more
 * than their outcome says.
 * Method: a motorway with cars placed by hand: lists against the scene; a car behind a truck, in
 * fog and under dark sensors; yaw rates and accelerations against the motion; the map against the
 * scenario's, its borders against widths.
 */
#include "tests/worker/rig.h"
#include "worker/given/given.h"

#include "base/check.h"
#include "engine/traffic/signals.h"

#include <math.h>

static const struct swerve_object *find(const struct swerve_surroundings *around, uint32_t id)
{
    for (uint32_t i = 0; i < around->object_count; i++) {
        if (around->objects[i].id == id) {
            return &around->objects[i];
        }
    }
    return NULL;
}

/* Ego at 0; a truck 20 m ahead (0), a car hidden behind it (1), one far away on the left (2), one
 * behind ego (3). */
static void open_scene(struct stand *rig)
{
    rig_motorway(rig, 3, (struct pose){100, 0, 0}, 10, 4, 100);
    rig->scenario.agents[0].kind = AGENT_TRUCK;
    rig->scenario.agents[0].length_m = 12;
    rig->scenario.agents[0].width_m = 2.5;
    rig->scenario.agents[0].height_m = 3.5;
    rig_start(rig);
    rig_agent(rig, 0, (struct pose){130, 0, 0}, 9);
    rig_agent(rig, 1, (struct pose){145, 0, 0}, 9);
    rig_agent(rig, 2, (struct pose){190, 7, 0}, 12);
    rig_agent(rig, 3, (struct pose){70, 3.5, 0}, 11);
}

static void sources_follow_world_and_wants(void)
{
    static const struct {
        uint32_t wants;
        enum swerve_objects_source world, given;
        const char *text;
    } cases[] = {
        {0, SWERVE_OBJECTS_TRUE, SWERVE_OBJECTS_NONE, "route"},
        {SWERVE_WANTS_BEV, SWERVE_OBJECTS_TRUE, SWERVE_OBJECTS_NONE, "bev"},
        {16, SWERVE_OBJECTS_TRUE, SWERVE_OBJECTS_TRUE, "objects:true"},
        {16 | 32, SWERVE_OBJECTS_TRUE, SWERVE_OBJECTS_SEEN, "objects:seen"},
        {16, SWERVE_OBJECTS_GENERATED, SWERVE_OBJECTS_GENERATED, "objects:generated"},
        {16 | 32, SWERVE_OBJECTS_GENERATED, SWERVE_OBJECTS_GENERATED, "objects:generated"},
        {16 | 64, SWERVE_OBJECTS_NONE, SWERVE_OBJECTS_NONE, "objects:none,map"},
        {3 | 16 | 64 | 128, SWERVE_OBJECTS_GENERATED, SWERVE_OBJECTS_GENERATED,
         "bev,cameras,objects:generated,map,signals"},
    };
    EXPECT_INT(given_of_world(TIER_OBJECT, CONDITIONING_AGENTS), SWERVE_OBJECTS_TRUE);
    EXPECT_INT(given_of_world(TIER_STUDENT, CONDITIONING_AGENTS), SWERVE_OBJECTS_NONE);
    EXPECT_INT(given_of_world(TIER_TEACHER, CONDITIONING_MAP), SWERVE_OBJECTS_GENERATED);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[LIMIT_ID_BYTES];
        enum swerve_objects_source source = given_source(cases[i].wants, cases[i].world);
        EXPECT_INT(source, cases[i].given);
        given_text(cases[i].wants, source, text);
        EXPECT_TEXT(text, cases[i].text);
    }
}

static void lists_hold_what_is_there(void)
{
    struct stand rig;
    static struct given_objects given;
    struct swerve_surroundings around;
    open_scene(&rig);
    rig.scene.agents[3].present = false;
    given_init(&given);
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_TRUE, &rig.scenario, &rig.scene,
               SENSOR_ALL, &around);
    EXPECT_INT(around.object_count, 3);
    EXPECT_INT(around.objects_time_ns, 0);
    EXPECT(find(&around, 3) == NULL);
    const struct swerve_object *truck = find(&around, 0);
    EXPECT_INT(truck->kind, SWERVE_OBJECT_TRUCK);
    EXPECT(truck->length_m == 12 && truck->height_m == 3.5 && truck->x_m == 130);
    EXPECT(truck->vx_mps == 9 && truck->vy_mps == 0 && truck->yaw_rate_rps == 0);
    /* A tick later it has turned, and brakes. */
    rig.scene.tick++;
    rig.scene.agents[0].pose.heading_rad = 0.02;
    rig.scene.agents[0].accel_mps2 = -3;
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_TRUE, &rig.scenario, &rig.scene, 0,
               &around);
    truck = find(&around, 0);
    EXPECT_NEAR(truck->yaw_rate_rps, 0.2, 1e-12);
    EXPECT_NEAR(truck->ax_mps2, -3 * cos(0.02) - 9 * 0.2 * sin(0.02), 1e-9);
    EXPECT_NEAR(truck->ay_mps2, -3 * sin(0.02) + 9 * 0.2 * cos(0.02), 1e-9);
    EXPECT_INT(around.objects_time_ns, 100000000);
    /* Nothing is known of a turn that nobody looked at. */
    rig.scene.tick += 2;
    rig.scene.agents[0].pose.heading_rad = 0.5;
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_TRUE, &rig.scenario, &rig.scene, 0,
               &around);
    EXPECT(find(&around, 0)->yaw_rate_rps == 0);
    given_init(&given);
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_NONE, &rig.scenario, &rig.scene, 0,
               &around);
    EXPECT_INT(around.object_count, 0);
    rig_finish(&rig);
}

static void what_is_hidden_is_not_seen(void)
{
    struct stand rig;
    static struct given_objects given;
    struct swerve_surroundings around;
    open_scene(&rig);
    given_init(&given);
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_SEEN, &rig.scenario, &rig.scene, 0,
               &around);
    EXPECT_INT(around.object_count, 3);
    EXPECT(find(&around, 1) == NULL); /* behind the truck */
    EXPECT(find(&around, 3) != NULL); /* the lidar looks backwards too */
    /* Cameras alone: not backwards. */
    rig.scene.tick++;
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_SEEN, &rig.scenario, &rig.scene,
               SENSOR_LIDAR, &around);
    EXPECT_INT(around.object_count, 2);
    EXPECT(find(&around, 3) == NULL && find(&around, 0) != NULL && find(&around, 2) != NULL);
    /* The right camera alone sees nothing of what is ahead and to the left. */
    rig.scene.tick++;
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_SEEN, &rig.scenario, &rig.scene,
               SENSOR_LIDAR | SENSOR_CAMERA_FRONT | SENSOR_CAMERA_LEFT, &around);
    EXPECT_INT(around.object_count, 0);
    /* Fog. */
    rig.scene.tick++;
    rig.scene.conditions.visibility_m = 50;
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_SEEN, &rig.scenario, &rig.scene, 0,
               &around);
    EXPECT_INT(around.object_count, 2);
    EXPECT(find(&around, 2) == NULL);
    /* All dark: the last list stays, with its time, whatever happens. */
    rig.scene.tick++;
    rig.scene.agents[0].pose.x_m = 140;
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_SEEN, &rig.scenario, &rig.scene,
               SENSOR_ALL, &around);
    EXPECT_INT(around.object_count, 2);
    EXPECT_INT(around.objects_time_ns, 300000000);
    EXPECT(find(&around, 0)->x_m == 130);
    /* From the start on: nothing, and no time. */
    given_init(&given);
    given_look(&given, SWERVE_WANTS_OBJECTS, SWERVE_OBJECTS_SEEN, &rig.scenario, &rig.scene,
               SENSOR_ALL, &around);
    EXPECT(around.object_count == 0 && around.objects_time_ns == -1);
    rig_finish(&rig);
}

static void maps_are_the_scenarios(void)
{
    struct stand rig;
    struct given_map *own = NULL;
    struct error error;
    open_scene(&rig);
    EXPECT_OK(given_map_create(rig.prepared, &own, &error), error);
    const struct swerve_map *map = given_map_of(own);
    const struct map *of = &rig.scenario.map;
    EXPECT_INT(map->lane_count, of->lane_count);
    EXPECT_INT(map->route_count, rig.scenario.ego.route_count);
    EXPECT((map->lanes[map->route[0]].flags & SWERVE_LANE_ON_ROUTE) != 0);
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct swerve_map_lane *lane = &map->lanes[i];
        EXPECT_TEXT(lane->id, of->lanes[i].id);
        EXPECT_INT(lane->left, of->lanes[i].left);
        EXPECT_INT(lane->successor_count, of->lanes[i].successor_count);
        EXPECT(lane->speed_limit_mps == of->lanes[i].speed_limit_mps);
        for (uint32_t k = 0; k < lane->point_count; k++) {
            const struct swerve_map_point *point = &map->points[lane->first_point + k];
            EXPECT(point->x_m == of->lanes[i].centre_line[k].x_m);
            EXPECT_NEAR(
                hypot(point->left_x_m - point->right_x_m, point->left_y_m - point->right_y_m),
                of->lanes[i].width_m[k], 1e-9);
            EXPECT(point->left_y_m > point->y_m && point->right_y_m < point->y_m);
        }
        for (uint32_t k = 0; k < lane->predecessor_count; k++) {
            const struct lane *before = &of->lanes[map->links[lane->first_predecessor + k]];
            bool leads_here = false;
            for (uint32_t m = 0; m < before->successor_count; m++) {
                leads_here = leads_here || before->successors[m] == i;
            }
            EXPECT(leads_here);
        }
    }
    given_map_destroy(own);
    rig_finish(&rig);
}

/* Signals say what they show, and how far ahead ego's route crosses their stop line. */
static void signals_say_where_they_stop_ego(void)
{
    static uint32_t lane = 0;
    static struct signal_phase red = {TRAFFIC_LIGHT_RED, 60};
    static struct traffic_signal signals[2] = {
        {.lane_count = 1, .lanes = &lane, .stop_m = 400, .phase_count = 1, .phases = &red},
        {.lane_count = 1, .lanes = &lane, .stop_m = 100, .phase_count = 1, .phases = &red},
    };
    struct stand rig;
    static struct given_objects given;
    struct swerve_surroundings around;
    rig_init(&rig);
    maps_motorway(&rig.arena, &rig.scenario.map, 2, 1000);
    rig.scenario.map.signal_count = 2;
    rig.scenario.map.signals = signals;
    rig_scenario(&rig, (struct pose){100, 0, 0}, 10, 0, 100);
    rig_start(&rig);
    signals_update(&rig.scenario.map, &rig.scene);
    signals_hold(&rig.scenario.map, 1, TRAFFIC_LIGHT_GREEN, &rig.scene);
    given_init(&given);
    given_look(&given, 0, SWERVE_OBJECTS_NONE, &rig.scenario, &rig.scene, 0, &around);
    EXPECT_INT(around.signal_count, 0);
    static const struct {
        double front_s_m, first_m, second_m;
    } cases[] = {{100, 500, 800}, {599.5, 0.5, 300.5}, {601, -1, 299}, {950, -1, -1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        given_look(&given, SWERVE_WANTS_SIGNALS, SWERVE_OBJECTS_NONE, &rig.scenario, &rig.scene, 0,
                   &around);
        given_stops(&given, rig.prepared, cases[i].front_s_m);
        EXPECT_INT(around.signal_count, 2);
        EXPECT_INT(around.signals[0].light, SWERVE_SIGNAL_RED);
        EXPECT_INT(around.signals[1].light, SWERVE_SIGNAL_GREEN);
        EXPECT_NEAR(around.signals[0].stop_ahead_m, cases[i].first_m, 1e-6);
        EXPECT_NEAR(around.signals[1].stop_ahead_m, cases[i].second_m, 1e-6);
    }
    rig_finish(&rig);
}

int main(void)
{
    return TEST_RUN(TEST(sources_follow_world_and_wants), TEST(lists_hold_what_is_there),
                    TEST(what_is_hidden_is_not_seen), TEST(maps_are_the_scenarios),
                    TEST(signals_say_where_they_stop_ego));
}
