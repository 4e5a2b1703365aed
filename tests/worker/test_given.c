/*
 * Goal: planners of version 3 are given what is there, or of that what sensors see, and never more
 * than their outcome says; those of version 4 every frame that their sensors take, with its times.
 * Method: a motorway with cars placed by hand: lists against the scene; a car behind a truck, in
 * fog and under dark sensors; yaw rates and accelerations against the motion; the map against the
 * scenario's, its borders against widths; frames of cameras of two rates, of a shutter that rolls
 * and of a lidar against where two poles are at the moments that the planner is told.
 */
#include "tests/worker/rig.h"
#include "worker/given/given.h"
#include "worker/given/sensors.h"

#include "base/check.h"
#include "engine/traffic/signals.h"

#include <malloc.h>
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
        {2 | GIVEN_LIDARS, SWERVE_OBJECTS_TRUE, SWERVE_OBJECTS_NONE, "cameras,lidars"},
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

/* ---- sensors of a rig ---- */

enum { EYE_WIDTH = 320, EYE_HEIGHT = 200, EYE_BYTES = EYE_WIDTH * EYE_HEIGHT * 3 };

/* A drive in the replay world, and the sensors that look at it. */
struct eye {
    struct stand stand;
    struct world *world;
    struct sensors *sensors;
    struct shots *shots;
};

/* A pole that is driven along by its log, at 10 m/s for a second. */
static void add_pole(struct eye *eye, uint32_t index, struct pose from)
{
    struct agent *agent = &eye->stand.scenario.agents[index];
    struct trajectory *log = &agent->trajectory;
    const struct pose to = rig_moved(from, 10.0);
    agent->kind = AGENT_OBJECT;
    agent->behaviour = BEHAVIOUR_REPLAY;
    agent->length_m = agent->width_m = 0.4;
    agent->height_m = 3.0;
    agent->pose = from;
    agent->speed_mps = 10.0;
    log->point_count = 2;
    log->points = arena_alloc(&eye->stand.arena, 2, sizeof *log->points);
    CHECK(log->points != NULL);
    log->points[0] = (struct trajectory_point){0, from.x_m, from.y_m, from.heading_rad, 10.0};
    log->points[1] = (struct trajectory_point){1, to.x_m, to.y_m, to.heading_rad, 10.0};
}

/* Ego stands. With poles, at 0.5 s one crosses its way 10 m ahead, another passes 10 m to its left.
 */
static void eye_open(struct eye *eye, const struct rig *rig, const char *choice, bool poles)
{
    const struct world_config config = {.slot_count = 1};
    struct error error = {0};
    struct rig of = *rig;
    struct rig_choice chosen;
    rig_motorway(&eye->stand, 3, (struct pose){100, 0, 0}, 0, poles ? 2 : 0, 100);
    if (poles) {
        add_pole(eye, 0, (struct pose){110, -5, PI_RAD / 2});
        add_pole(eye, 1, (struct pose){95, 10, 0});
    }
    rig_start(&eye->stand);
    EXPECT_OK(rig_choice_decode("test", choice, strlen(choice), &of, &chosen, &error), error);
    EXPECT_OK(world_replay_ops.open(&config, &eye->world, &error), error);
    EXPECT_OK(world_replay_ops.slot_reset(eye->world, 0, eye->stand.prepared, 7, &error), error);
    EXPECT_OK(sensors_create(&of, &chosen, &world_replay_ops, &eye->sensors, &error), error);
    EXPECT_OK(shots_create(eye->sensors, &eye->shots, &error), error);
}

/* What is shown at the present tick. */
static struct swerve_sensors eye_look(struct eye *eye, uint32_t dark)
{
    struct error error = {0};
    const int64_t now_ns = world_replay_ops.slot_scene(eye->world, 0)->tick * TICK_NS;
    EXPECT_OK(shots_take(eye->shots, eye->world, 0, dark, now_ns, &error), error);
    return shots_show(eye->shots);
}

static void eye_step(struct eye *eye)
{
    const struct action stand = {0};
    const uint8_t active = 1;
    world_replay_ops.step(eye->world, &stand, &active);
}

static void eye_close(struct eye *eye)
{
    shots_destroy(eye->shots);
    sensors_destroy(eye->sensors);
    world_replay_ops.close(eye->world);
    rig_finish(&eye->stand);
}

static struct rig_camera eye_camera(const char *id, double rate_hz, enum rig_shutter shutter,
                                    double shutter_ms)
{
    struct rig_camera camera = {.width = EYE_WIDTH,
                                .height = EYE_HEIGHT,
                                .rate_hz = rate_hz,
                                .shutter = shutter,
                                .shutter_ms = shutter_ms,
                                .pose = {.z_m = 1.5},
                                .lens = {.fx = 200.0,
                                         .fy = 200.0,
                                         .cx = (EYE_WIDTH - 1) / 2.0,
                                         .cy = (EYE_HEIGHT - 1) / 2.0,
                                         .max_angle_rad = NAN}};
    snprintf(camera.id, sizeof camera.id, "%s", id);
    return camera;
}

/* Cameras of 10 and 30 Hz, one with a rolling shutter, and a lidar. */
static const struct rig *eye_rig(void)
{
    static struct rig rig = {.id = "eyes", .camera_count = 3, .lidar_count = 1};
    rig.cameras[0] = eye_camera("slow", 10, SHUTTER_GLOBAL, 0);
    rig.cameras[1] = eye_camera("fast", 30, SHUTTER_GLOBAL, 0);
    rig.cameras[2] = eye_camera("rolling", 20, SHUTTER_ROLLING_TOP, 45);
    rig.lidars[0] = (struct rig_lidar){.id = "roof",
                                       .rate_hz = 10,
                                       .pose = {0.5, 0.25, 1.9, 0, 0, 0},
                                       .azimuths = 3600,
                                       .elevation_count = 16,
                                       .range_m = 60};
    for (int i = 0; i < 16; i++) {
        rig.lidars[0].elevations_rad[i] = 0.05 - 0.02 * i;
    }
    return &rig;
}

/* The newest frame of a fast camera is the slow one's; packed ones are of the same number. */
static void fast_cameras_give_every_frame(void)
{
    struct eye eye;
    eye_open(&eye, eye_rig(),
             "{\"sensors\": [\"slow\", \"fast\", {\"id\": \"rolling\", "
             "\"encoding\": \"jpeg:90\"}]}",
             true);
    for (uint32_t tick = 0; tick < 4; tick++) {
        const struct swerve_sensors shown = eye_look(&eye, 0);
        const struct swerve_sensor *slow = &shown.sensors[0];
        const struct swerve_sensor *fast = &shown.sensors[1];
        const struct swerve_sensor *packed = &shown.sensors[2];
        EXPECT_INT(slow->count, 1);
        EXPECT_INT(fast->count, tick == 0 ? 1 : 3);
        EXPECT_INT(packed->count, tick == 0 ? 1 : 2);
        EXPECT(memcmp(fast->frames + (fast->count - 1) * fast->stride, slow->frames, EYE_BYTES) ==
               0);
        for (uint32_t i = 0; i < fast->count; i++) {
            EXPECT_INT(fast->bytes[i], EYE_BYTES);
            EXPECT_NEAR((double)fast->time_ns[i], 1e8 * tick - (fast->count - 1 - i) * (1e8 / 3.0),
                        1.0);
            EXPECT(i == 0 || memcmp(fast->frames + i * fast->stride,
                                    fast->frames + (i - 1) * fast->stride, EYE_BYTES) != 0);
        }
        for (uint32_t i = 0; i < packed->count; i++) {
            const uint8_t *file = packed->frames + i * packed->stride;
            EXPECT(file[0] == 0xFF && file[1] == 0xD8 && file[packed->bytes[i] - 1] == 0xD9);
        }
        eye_step(&eye);
    }
    eye_close(&eye);
}

/* Middle of the pixels of a row that differ; -1: none. */
static double middle_of(const uint8_t *found, const uint8_t *expected, int32_t row)
{
    double sum = 0.0;
    double count = 0.0;
    for (int32_t col = 0; col < EYE_WIDTH; col++) {
        int change = 0;
        for (int k = 0; k < 3; k++) {
            const int at = (row * EYE_WIDTH + col) * 3 + k;
            change += abs(found[at] - expected[at]);
        }
        sum += change * col;
        count += change;
    }
    return count > 100.0 ? sum / count : -1.0;
}

/* Each row of every frame shows the pole where it is at the row's time by what the planner is told.
 */
static void shutters_roll_by_the_times_told(void)
{
    struct eye eye;
    struct eye empty;
    int rows = 0;
    eye_open(&eye, eye_rig(), "{\"sensors\": [\"rolling\"]}", true);
    eye_open(&empty, eye_rig(), "{\"sensors\": [\"rolling\"]}", false);
    for (uint32_t tick = 0; tick <= 6; tick++) {
        const struct swerve_sensor *found = eye_look(&eye, 0).sensors;
        const struct swerve_sensor *without = eye_look(&empty, 0).sensors;
        EXPECT_INT(found->shutter, 1);
        EXPECT_INT(found->shutter_ns, 45000000);
        for (uint32_t i = 0; i < found->count && tick >= 4; i++) {
            for (int32_t row = 72; row < 118; row++) { /* above the foot and its shadow */
                double back = 1.0 - row / (EYE_HEIGHT - 1.0);
                double time_s =
                    ((double)found->time_ns[i] - back * (double)found->shutter_ns) / 1e9;
                double y_m = 10.0 * time_s - 5.0;
                if (fabs(y_m) > 0.6) { /* its side shows, too */
                    continue;
                }
                double u = 159.5 - y_m / (10.0 - 0.2) * 200.0;
                EXPECT_NEAR(middle_of(found->frames + i * found->stride,
                                      without->frames + i * without->stride, row),
                            u, 0.5);
                rows++;
            }
        }
        eye_step(&eye);
        eye_step(&empty);
    }
    EXPECT_INT(rows, 2 * 46);
    eye_close(&eye);
    eye_close(&empty);
}

/* Points lie on the road and on the sides of poles that face the lidar, at the moment told. */
static void points_lie_where_bodies_are_at_their_time(void)
{
    struct eye eye;
    int on_poles = 0;
    eye_open(&eye, eye_rig(), "{\"sensors\": [\"roof\"]}", true);
    for (uint32_t tick = 0; tick <= 5; tick++) {
        const struct swerve_sensor *found = eye_look(&eye, 0).sensors;
        const struct swerve_point *points =
            (const struct swerve_point *)(const void *)found->frames;
        const uint32_t count = found->bytes[0] / sizeof *points;
        EXPECT_INT(found->format, SWERVE_FORMAT_POINTS);
        EXPECT_INT(found->shutter_ns, TICK_NS);
        EXPECT_INT(found->time_ns[0], tick * TICK_NS);
        EXPECT(count > 10000 && count <= found->width * found->height);
        for (uint32_t i = 0; i < count && tick == 5; i++) {
            const double time_s = 0.4 + points[i].time_2us * 2e-6;
            const double x = (double)points[i].x_m + 0.5;
            const double y = (double)points[i].y_m + 0.25;
            const double z = (double)points[i].z_m + 1.9;
            const double slack_m = 10.0 * 4.0 / 3600 * 0.1 + 1e-3; /* half a band of azimuths */
            EXPECT(points[i].ring < 16);
            if (fabs(z) < 1e-3) {
                continue;
            }
            if (y > 5.0) { /* the one that passes */
                EXPECT(fabs(y - 9.8) < 1e-3 || y > 9.8);
                EXPECT(fabs(x - (10.0 * time_s - 5.0)) < 0.2 + slack_m);
            } else {
                EXPECT(fabs(x - 9.8) < 1e-3 || x > 9.8);
                EXPECT(fabs(y - (10.0 * time_s - 5.0)) < 0.2 + slack_m);
            }
            on_poles++;
        }
        eye_step(&eye);
    }
    EXPECT(on_poles > 200);
    eye_close(&eye);
}

/* A sensor that is dark keeps its frames and times; a branch begins with them, and goes on alike.
 */
static void dark_sensors_and_forks_keep_frames(void)
{
    struct eye eye;
    struct error error = {0};
    struct shots *fork = NULL;
    eye_open(&eye, eye_rig(), "{\"sensors\": [\"fast\", \"roof\"]}", true);
    const struct swerve_sensor *shown = eye_look(&eye, SENSOR_CAMERA_FRONT | SENSOR_LIDAR).sensors;
    EXPECT_INT(shown[0].time_ns[0], -1);
    EXPECT_INT(shown[0].bytes[0], EYE_BYTES);
    EXPECT_INT(shown[1].time_ns[0], -1);
    EXPECT_INT(shown[1].bytes[0], 0);
    eye_step(&eye);
    shown = eye_look(&eye, 0).sensors;
    EXPECT_INT(shown[0].count, 3);
    EXPECT(shown[1].bytes[0] > 0);
    const uint64_t lit = shots_digest(eye.shots);
    EXPECT_OK(shots_create(eye.sensors, &fork, &error), error);
    shots_copy(fork, eye.shots);
    eye_step(&eye);
    shown = eye_look(&eye, SENSOR_CAMERA_FRONT | SENSOR_LIDAR).sensors;
    EXPECT_INT(shown[0].count, 3);
    EXPECT_INT(shown[0].time_ns[2], TICK_NS);
    EXPECT_INT(shown[1].time_ns[0], TICK_NS);
    EXPECT(shots_digest(eye.shots) == lit);
    EXPECT(shots_digest(fork) == lit);
    EXPECT(memcmp(shots_show(fork).sensors[0].frames, shown[0].frames, 3 * (size_t)EYE_BYTES) == 0);
    shown = eye_look(&eye, 0).sensors; /* the same tick again, lit */
    EXPECT_OK(shots_take(fork, eye.world, 0, 0, 2 * TICK_NS, &error), error);
    EXPECT(shots_digest(eye.shots) != lit && shots_digest(eye.shots) == shots_digest(fork));
    shots_destroy(fork);
    eye_close(&eye);
}

/* Cameras of 4K that nobody chose take no memory. */
static void what_is_not_chosen_takes_nothing(void)
{
    static struct rig rig = {.id = "many", .camera_count = RIG_CAMERAS_MAX};
    const size_t chosen_bytes = (size_t)EYE_BYTES;
    struct eye eye;
    for (int i = 0; i < RIG_CAMERAS_MAX; i++) {
        rig.cameras[i] = eye_camera("small", 120, SHUTTER_GLOBAL, 0);
        if (i > 0) {
            snprintf(rig.cameras[i].id, sizeof rig.cameras[i].id, "large%d", i);
            rig.cameras[i].width = rig.cameras[i].height = RIG_SIDE_MAX;
        }
    }
    rig.cameras[0].rate_hz = 10;
    const struct mallinfo2 before = mallinfo2();
    eye_open(&eye, &rig, "{\"sensors\": [\"small\"]}", false);
    eye_look(&eye, 0);
    const struct mallinfo2 after = mallinfo2();
    const size_t taken =
        after.uordblks + after.hblkhd - before.uordblks - before.hblkhd; /* 0 under a sanitizer */
    EXPECT(taken < ((size_t)64 << 20) + 32 * chosen_bytes);
    EXPECT_INT(shots_show(eye.shots).count, 1);
    eye_close(&eye);
}

int main(void)
{
    return TEST_RUN(
        TEST(sources_follow_world_and_wants), TEST(lists_hold_what_is_there),
        TEST(what_is_hidden_is_not_seen), TEST(maps_are_the_scenarios),
        TEST(signals_say_where_they_stop_ego), TEST(fast_cameras_give_every_frame),
        TEST(shutters_roll_by_the_times_told), TEST(points_lie_where_bodies_are_at_their_time),
        TEST(dark_sensors_and_forks_keep_frames), TEST(what_is_not_chosen_takes_nothing));
}
