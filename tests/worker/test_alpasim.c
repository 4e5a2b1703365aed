/*
 * Scenarios as services of AlpaSim: what SensorsimService tells and draws, over a connection, and
 * what it refuses; and whom TrafficService drives.
 */
#include "base/check.h"
#include "base/jpeg/jpeg_decode.h"
#include "schemas/proto/sensorsim.pb-c.h"
#include "schemas/proto/traffic.pb-c.h"
#include "tests/harness.h"
#include "tests/worker/dream_server.h"
#include "tests/worker/jobs.h"
#include "worker/contract/contract_camera.h"
#include "worker/grpc/grpc.h"

enum { WIDTH = 96, HEIGHT = 64, WAIT_MS = 60000 };

#define SERVICE "/nre.grpc.protos.sensorsim.SensorsimService/"
#define TRAFFIC "/traffic.TrafficService/"

static struct dream_server server;
static struct jobs_scenario scene;
static struct scenario_document document;
static struct grpc_client *client;
static struct rig_camera camera;

static void begin(void)
{
    struct error error;
    jobs_scenario_init(&scene, "services/straight", 20);
    jobs_prepared(&scene);
    memset(&document, 0, sizeof document);
    document.scenario = scene.scenario;
    dream_server_start(&server, &document);
    EXPECT_OK(grpc_open(server.address, WAIT_MS, NULL, &client, &error), error);
    camera = (struct rig_camera){.id = "front", .width = WIDTH, .height = HEIGHT, .rate_hz = 10};
    camera.pose = (struct rig_pose){.x_m = 1.5, .z_m = 1.5};
    camera.lens = (struct rig_lens){.model = LENS_FTHETA,
                                    .cx = 47.5,
                                    .cy = 31.5,
                                    .angle_to_pixels = {0, 60},
                                    .max_angle_rad = 1.2};
}

static void end(void)
{
    grpc_close(client);
    dream_server_stop(&server);
    jobs_scenario_finish(&scene);
}

/* A call, whose status must be `code`; the caller frees it. */
static struct grpc_call *ask(const char *method, const ProtobufCMessage *question, int code)
{
    struct error error;
    struct grpc_call *call = NULL;
    size_t bytes = question != NULL ? protobuf_c_message_get_packed_size(question) : 0;
    uint8_t *packed = malloc(bytes + 1);
    EXPECT(packed != NULL);
    if (question != NULL) {
        protobuf_c_message_pack(question, packed);
    }
    EXPECT_OK(grpc_begin(client, method, packed, bytes, NULL, &call, &error), error);
    EXPECT_OK(grpc_wait(&client, 1, WAIT_MS, &error), error);
    free(packed);
    if (grpc_call_code(call) != code) {
        TEST_FAIL("%s: %s: %s", method, grpc_call_code_name(call), grpc_call_sentence(call));
    }
    return call;
}

/* A question for a picture from a place, of the scenario's frame. */
struct picture_question {
    Sim__Render render;
    Sim__PosePair sensor, agent;
    Sim__DynamicObject object;
    Sim__DynamicObject *objects[1];
    struct rig_camera at; /* whose lens `placed` points to */
    struct contract_camera placed, there;
};

/* `agent` stands 10 m ahead of the camera; NULL: nobody. */
static void question_fill(struct picture_question *out, const char *id, const char *agent)
{
    struct rig_camera box = camera;
    memset(out, 0, sizeof *out);
    out->at = camera;
    out->at.pose.x_m = 50;
    out->at.pose.y_m = 3.5;
    box.pose = (struct rig_pose){.x_m = 60, .y_m = 3.5, .z_m = 0.75};
    contract_camera_fill(&out->placed, &out->at, 0, true);
    contract_camera_fill(&out->there, &box, 0, false);
    sim__render__init(&out->render);
    sim__pose_pair__init(&out->sensor);
    sim__pose_pair__init(&out->agent);
    sim__dynamic_object__init(&out->object);
    out->sensor.start = &out->placed.pose;
    out->agent.start = &out->there.pose;
    out->object.pose = &out->agent;
    out->object.track_id = (char *)(uintptr_t)(agent != NULL ? agent : "");
    out->objects[0] = &out->object;
    out->render.scene_id = (char *)(uintptr_t)id;
    out->render.camera = &out->placed.spec;
    out->render.sensor_pose = &out->sensor;
    out->render.objects = out->objects;
    out->render.n_objects = agent != NULL;
    out->render.format = 2;
}

/* Draws into rgb [HEIGHT][WIDTH][3]. */
static void draw(const char *agent, uint8_t *rgb)
{
    struct picture_question question;
    struct error error;
    size_t bytes = 0;
    question_fill(&question, scene.scenario.id, agent);
    struct grpc_call *call = ask(SERVICE "render_rgb", &question.render.base, GRPC_OK);
    const uint8_t *reply = grpc_call_reply(call, &bytes);
    Sim__RenderAnswer *said = sim__render_answer__unpack(NULL, bytes, reply);
    EXPECT(said != NULL);
    EXPECT_OK(jpeg_decode(said->image.data, said->image.len, WIDTH, HEIGHT, rgb, &error), error);
    sim__render_answer__free_unpacked(said, NULL);
    grpc_call_free(client, call);
}

static void pictures_show_whom_a_question_places(void)
{
    static uint8_t empty[HEIGHT * WIDTH * 3], with[HEIGHT * WIDTH * 3], again[HEIGHT * WIDTH * 3];
    uint32_t middle = 0, corner = 0;
    begin();
    draw(NULL, empty);
    draw(scene.scenario.agents[0].id, with);
    draw(scene.scenario.agents[0].id, again);
    EXPECT(memcmp(with, again, sizeof with) == 0);
    for (int row = 0; row < HEIGHT; row++) {
        for (int col = 0; col < WIDTH; col++) {
            const size_t at = 3 * (size_t)(row * WIDTH + col);
            bool differs = abs(with[at] - empty[at]) > 24 || abs(with[at + 2] - empty[at + 2]) > 24;
            bool near = abs(row - 33) < 6 && abs(col - 48) < 8;
            middle += differs && near;
            corner += differs && (row < 8 || col < 16 || col >= WIDTH - 16);
        }
    }
    EXPECT(middle > 40); /* the car, 10 m ahead */
    EXPECT_INT(corner, 0);
    end();
}

static void it_tells_what_there_is(void)
{
    Sim__OfScene which = SIM__OF_SCENE__INIT;
    size_t bytes = 0;
    begin();
    struct grpc_call *call = ask(SERVICE "get_available_scenes", NULL, GRPC_OK);
    const uint8_t *reply = grpc_call_reply(call, &bytes);
    Sim__Scenes *scenes = sim__scenes__unpack(NULL, bytes, reply);
    EXPECT(scenes != NULL && scenes->n_scene_ids == 1);
    EXPECT(strcmp(scenes->scene_ids[0], "services/straight") == 0);
    sim__scenes__free_unpacked(scenes, NULL);
    grpc_call_free(client, call);
    which.scene_id = scene.scenario.id;
    call = ask(SERVICE "get_available_cameras", &which.base, GRPC_OK);
    reply = grpc_call_reply(call, &bytes);
    Sim__Cameras *cameras = sim__cameras__unpack(NULL, bytes, reply);
    EXPECT(cameras != NULL && cameras->n_cameras == 3); /* of the built-in rig */
    EXPECT(strcmp(cameras->cameras[1]->logical_id, "front") == 0);
    sim__cameras__free_unpacked(cameras, NULL);
    grpc_call_free(client, call);
    call = ask(SERVICE "get_available_trajectories", &which.base, GRPC_OK);
    reply = grpc_call_reply(call, &bytes);
    Sim__Trajectories *driven = sim__trajectories__unpack(NULL, bytes, reply);
    EXPECT(driven != NULL && driven->n_trajectories == 1);
    const Ego__Vec3 *start = driven->trajectories[0]->trajectory->poses[0]->pose->vec;
    EXPECT_NEAR(start->x, 50 - scene.scenario.ego.wheelbase_m / 2, 1e-4);
    sim__trajectories__free_unpacked(driven, NULL);
    grpc_call_free(client, call);
    end();
}

static void what_it_does_not_have_is_said(void)
{
    struct picture_question question;
    begin();
    question_fill(&question, "services/nowhere", NULL);
    struct grpc_call *call = ask(SERVICE "render_rgb", &question.render.base, GRPC_NOT_FOUND);
    EXPECT(strstr(grpc_call_sentence(call), "no scene services/nowhere here") != NULL);
    grpc_call_free(client, call);
    question_fill(&question, scene.scenario.id, "nobody");
    call = ask(SERVICE "render_rgb", &question.render.base, GRPC_NOT_FOUND);
    EXPECT(strstr(grpc_call_sentence(call), "has no agent nobody") != NULL);
    grpc_call_free(client, call);
    question_fill(&question, scene.scenario.id, NULL);
    question.render.format = 5;
    call = ask(SERVICE "render_rgb", &question.render.base, GRPC_INVALID_ARGUMENT);
    grpc_call_free(client, call);
    question_fill(&question, scene.scenario.id, NULL);
    question.placed.quat.w = NAN;
    call = ask(SERVICE "render_rgb", &question.render.base, GRPC_INVALID_ARGUMENT);
    EXPECT(strstr(grpc_call_sentence(call), "is not finite") != NULL);
    grpc_call_free(client, call);
    call = ask(SERVICE "render_lidar", NULL, GRPC_UNIMPLEMENTED);
    grpc_call_free(client, call);
    call = ask("/some.other.Service/method", NULL, GRPC_UNIMPLEMENTED);
    grpc_call_free(client, call);
    end();
}

static void expect_refused(struct picture_question *question, const char *why)
{
    struct grpc_call *call =
        ask(SERVICE "render_rgb", &question->render.base, GRPC_INVALID_ARGUMENT);
    EXPECT_CONTAINS(grpc_call_sentence(call), why);
    grpc_call_free(client, call);
}

/* Cameras that no rig may have are refused before anything is drawn with them. */
static void cameras_are_those_that_rigs_may_have(void)
{
    static double steep[2] = {-1.2e308, 1e308};
    struct picture_question question;
    begin();
    question_fill(&question, scene.scenario.id, NULL);
    question.placed.vec.z = -1;
    expect_refused(&question, "z_m: expected a number from 0.05 to 20");
    question_fill(&question, scene.scenario.id, NULL);
    question.placed.vec.x = 2e7F;
    expect_refused(&question, "is more than 1,000 km away");
    question_fill(&question, scene.scenario.id, NULL);
    question.placed.ftheta.angle_to_pixels = steep;
    question.placed.ftheta.n_angle_to_pixels = 2;
    expect_refused(&question, "angle_to_pixels");
    question_fill(&question, scene.scenario.id, NULL);
    question.placed.spec.width = 1;
    expect_refused(&question, "width: expected an integer from 2 to 4096");
    end();
}

/* The file of a picture of a size, the caller's. */
static uint8_t *picture_of(uint32_t width, uint32_t height, size_t *file_bytes)
{
    struct picture_question question;
    size_t bytes = 0;
    question_fill(&question, scene.scenario.id, scene.scenario.agents[0].id);
    question.render.width = width;
    question.render.height = height;
    struct grpc_call *call = ask(SERVICE "render_rgb", &question.render.base, GRPC_OK);
    const uint8_t *reply = grpc_call_reply(call, &bytes);
    Sim__RenderAnswer *said = sim__render_answer__unpack(NULL, bytes, reply);
    EXPECT(said != NULL);
    uint8_t *file = malloc(said->image.len);
    EXPECT(file != NULL);
    memcpy(file, said->image.data, said->image.len);
    *file_bytes = said->image.len;
    sim__render_answer__free_unpacked(said, NULL);
    grpc_call_free(client, call);
    return file;
}

/* AlpaSim asks for pictures of another size than its cameras have: they see the same. */
static void pictures_have_the_size_that_is_asked_for(void)
{
    static const struct rig_lens lenses[2][3] = {
        {{.model = LENS_PINHOLE, .fx = 60, .fy = 60, .cx = 47.5, .cy = 30, .max_angle_rad = NAN},
         {.model = LENS_FISHEYE, .fx = 60, .fy = 60, .cx = 47.5, .cy = 30, .k = {0.01}},
         {.model = LENS_FTHETA, .cx = 47.5, .cy = 30, .angle_to_pixels = {0, 60, 0, 2}}},
        {{.model = LENS_PINHOLE, .fx = 120, .fy = 120, .cx = 95.5, .cy = 60.5},
         {.model = LENS_FISHEYE, .fx = 120, .fy = 120, .cx = 95.5, .cy = 60.5, .k = {0.01}},
         {.model = LENS_FTHETA, .cx = 95.5, .cy = 60.5, .angle_to_pixels = {0, 120, 0, 4}}}};
    struct picture_question question;
    begin();
    for (int i = 0; i < 3; i++) {
        size_t bytes[2] = {0};
        uint8_t *files[2] = {NULL};
        for (int large = 0; large < 2; large++) {
            camera.width = WIDTH << large;
            camera.height = HEIGHT << large;
            camera.lens = lenses[large][i];
            camera.lens.max_angle_rad = i == 0 ? (double)NAN : 1.4;
            files[large] = picture_of(WIDTH, HEIGHT, &bytes[large]);
        }
        EXPECT(bytes[0] == bytes[1] && memcmp(files[0], files[1], bytes[0]) == 0);
        free(files[0]);
        free(files[1]);
    }
    question_fill(&question, scene.scenario.id, NULL);
    question.render.width = WIDTH;
    question.render.height = HEIGHT / 2;
    expect_refused(&question, "has a lens f-theta, which is scaled alike across and down alone");
    question.render.width = 5000;
    expect_refused(&question, "has no size from 1 to 4096 pixels");
    end();
}

/* A pinhole and lenses without a limit see to their corners. */
static void lenses_without_a_limit_see_everything(void)
{
    static uint8_t rgb[HEIGHT * WIDTH * 3];
    static const struct rig_lens lenses[] = {
        {.model = LENS_PINHOLE, .fx = 60, .fy = 60, .cx = 47.5, .cy = 31.5, .max_angle_rad = NAN},
        {.model = LENS_FISHEYE, .fx = 60, .fy = 60, .cx = 47.5, .cy = 31.5, .max_angle_rad = NAN},
        {.model = LENS_FTHETA,
         .cx = 47.5,
         .cy = 31.5,
         .angle_to_pixels = {0, 60},
         .max_angle_rad = NAN},
    };
    begin();
    for (size_t i = 0; i < COUNT_OF(lenses); i++) {
        uint32_t dark = 0;
        camera.lens = lenses[i];
        draw(NULL, rgb);
        for (size_t at = 0; at < sizeof rgb; at += 3) {
            dark += rgb[at] + rgb[at + 1] + rgb[at + 2] < 24;
        }
        EXPECT_INT(dark, 0);
    }
    end();
}

/* ---- traffic ---- */

enum { POSES = 61, OBJECTS = 4, STEP_US = 100000, BEGIN_US = 5000000, HANDOVER = 2 };

/* Objects along x from a place on, at a speed, from BEGIN_US on. */
struct traffic_object {
    Traf__Logged logged;
    Ego__Trajectory path;
    Ego__PoseAtTime *list[POSES];
    struct contract_pose poses[POSES];
};

struct traffic_question {
    Traf__Start start;
    Traf__Logged *list[OBJECTS];
    struct traffic_object objects[OBJECTS];
};

static struct traffic_question asked;

static void object_fill(struct traffic_object *out, const char *id, uint32_t poses,
                        struct vec2 from, double speed_mps)
{
    traf__logged__init(&out->logged);
    ego__trajectory__init(&out->path);
    for (uint32_t i = 0; i < poses; i++) {
        contract_pose_fill(&out->poses[i], BEGIN_US + i * (uint64_t)STEP_US,
                           from.x_m + 0.1 * i * speed_mps, from.y_m, 0.75, 0);
        out->list[i] = &out->poses[i].at;
    }
    out->path.poses = out->list;
    out->path.n_poses = poses;
    out->logged.object_id = (char *)(uintptr_t)id;
    out->logged.trajectory = &out->path;
}

/* Ego stands in the way of the car that is behind it on its lane; a stranger; a truck. */
static void traffic_fill(void)
{
    memset(&asked, 0, sizeof asked);
    traf__start__init(&asked.start);
    object_fill(&asked.objects[0], "EGO", POSES, (struct vec2){90, 0}, 0);
    object_fill(&asked.objects[1], scene.scenario.agents[2].id, 10, (struct vec2){31, 0}, 18);
    object_fill(&asked.objects[2], "stranger", 10, (struct vec2){10, 20}, 5);
    object_fill(&asked.objects[3], scene.scenario.agents[1].id, 10, (struct vec2){60, 7}, 14);
    for (int i = 0; i < OBJECTS; i++) {
        asked.list[i] = &asked.objects[i].logged;
    }
    asked.start.session_uuid = (char *)(uintptr_t) "one";
    asked.start.scene_id = scene.scenario.id;
    asked.start.objects = asked.list;
    asked.start.n_objects = OBJECTS;
    asked.start.handover_time_us = BEGIN_US + HANDOVER * STEP_US;
}

/* Asks for a step with news of ego, or NULL; the answer is the caller's. */
static Traf__Simulated *simulate_with(uint64_t time_us, Traf__Update *update)
{
    Traf__Simulate question = TRAF__SIMULATE__INIT;
    size_t bytes = 0;
    question.updates = &update;
    question.n_updates = update != NULL;
    question.session_uuid = asked.start.session_uuid;
    question.time_query_us = time_us;
    struct grpc_call *call = ask(TRAFFIC "simulate", &question.base, GRPC_OK);
    const uint8_t *reply = grpc_call_reply(call, &bytes);
    Traf__Simulated *said = traf__simulated__unpack(NULL, bytes, reply);
    EXPECT(said != NULL);
    grpc_call_free(client, call);
    return said;
}

static Traf__Simulated *simulate(uint64_t time_us)
{
    return simulate_with(time_us, NULL);
}

static double x_of(const Traf__Simulated *said, size_t index, const char *id, uint64_t time_us)
{
    EXPECT(index < said->n_updates && strcmp(said->updates[index]->object_id, id) == 0);
    EXPECT(said->updates[index]->trajectory->n_poses == 1);
    EXPECT(said->updates[index]->trajectory->poses[0]->timestamp_us == time_us);
    return (double)said->updates[index]->trajectory->poses[0]->pose->vec->x;
}

static void traffic_reacts_to_an_ego_that_somebody_else_drives(void)
{
    double x_m[2] = {0};
    begin();
    for (int round = 0; round < 2; round++) { /* the second session is the same */
        traffic_fill();
        grpc_call_free(client, ask(TRAFFIC "start_session", &asked.start.base, GRPC_OK));
        grpc_call_free(client, ask(TRAFFIC "start_session", &asked.start.base, 6));
        uint64_t at_us = BEGIN_US + STEP_US / 2;
        Traf__Simulated *said = simulate(at_us);
        EXPECT_INT(said->n_updates, OBJECTS - 1);
        EXPECT_NEAR(x_of(said, 0, "agent2", at_us), 31.9, 1e-4); /* before the handover: the log */
        EXPECT_NEAR(x_of(said, 1, "stranger", at_us), 10.25, 1e-4);
        traf__simulated__free_unpacked(said, NULL);
        at_us = BEGIN_US + 60 * STEP_US;
        said = simulate(at_us);
        EXPECT_INT(said->n_updates, OBJECTS - 2); /* the stranger's log is over */
        x_m[round] = x_of(said, 0, "agent2", at_us);
        EXPECT(x_m[round] > 60 && x_m[round] < 90 - 4); /* it stopped behind ego */
        EXPECT(x_of(said, 1, "agent1", at_us) > 60 + 6 * 10);
        traf__simulated__free_unpacked(said, NULL);
        grpc_call_free(client, ask(TRAFFIC "close_session", &asked.start.base, GRPC_OK));
    }
    EXPECT(x_m[0] == x_m[1]);
    end();
}

static void expect_start_refused(int code, const char *why)
{
    struct grpc_call *call = ask(TRAFFIC "start_session", &asked.start.base, code);
    EXPECT_CONTAINS(grpc_call_sentence(call), why);
    grpc_call_free(client, call);
}

static void traffic_refuses_what_it_cannot_drive(void)
{
    Traf__Simulate question = TRAF__SIMULATE__INIT;
    char long_id[65] = "";
    begin();
    memset(long_id, 'x', 64);
    question.session_uuid = (char *)(uintptr_t) "one";
    grpc_call_free(client, ask(TRAFFIC "simulate", &question.base, GRPC_NOT_FOUND));
    traffic_fill();
    asked.start.n_objects = 0;
    expect_start_refused(GRPC_INVALID_ARGUMENT, "1 to 1024 objects, found \"one\" of 3 and 0");
    traffic_fill();
    asked.start.session_uuid = long_id;
    expect_start_refused(GRPC_INVALID_ARGUMENT, "expected a session_uuid of 1 to 63 bytes");
    traffic_fill();
    asked.objects[2].logged.object_id = long_id;
    expect_start_refused(GRPC_INVALID_ARGUMENT, "an object_id of at most 63 bytes, found 64");
    traffic_fill();
    asked.objects[0].path.n_poses = 0;
    expect_start_refused(GRPC_INVALID_ARGUMENT, "expected poses of EGO");
    traffic_fill();
    asked.objects[0].poses[3].vec.x = NAN;
    expect_start_refused(GRPC_INVALID_ARGUMENT, "object EGO: pose 3 is not finite");
    traffic_fill();
    asked.objects[2].poses[4].at.timestamp_us = 0;
    expect_start_refused(GRPC_INVALID_ARGUMENT, "pose 4 is not later than the one before");
    traffic_fill();
    asked.start.scene_id = (char *)(uintptr_t) "services/nowhere";
    expect_start_refused(GRPC_NOT_FOUND, "no scene services/nowhere here");
    traffic_fill();
    grpc_call_free(client, ask(TRAFFIC "start_session", &asked.start.base, GRPC_OK));
    question.time_query_us = BEGIN_US + POSES * (uint64_t)STEP_US; /* ego is not known so far */
    grpc_call_free(client, ask(TRAFFIC "simulate", &question.base, GRPC_INVALID_ARGUMENT));
    traf__simulated__free_unpacked(simulate(BEGIN_US + 10 * STEP_US), NULL);
    question.time_query_us = BEGIN_US; /* it is past */
    grpc_call_free(client, ask(TRAFFIC "simulate", &question.base, GRPC_INVALID_ARGUMENT));
    end();
}

enum { NEWS = 40000, NEWS_MAX = 96000 };

/* News of ego that are refused leave its path as it was, and what is past is not kept: four times
 * 40,000 poses are taken, where 96,000 are kept at most. */
static void traffic_bounds_what_it_keeps(void)
{
    static Ego__PoseAtTime poses[NEWS], *list[NEWS_MAX + 1];
    Traf__Update update = TRAF__UPDATE__INIT;
    Ego__Trajectory path = EGO__TRAJECTORY__INIT;
    Traf__Simulate question = TRAF__SIMULATE__INIT;
    Traf__Update *updates[] = {&update};
    begin();
    traffic_fill();
    grpc_call_free(client, ask(TRAFFIC "start_session", &asked.start.base, GRPC_OK));
    struct contract_pose *there = &asked.objects[0].poses[0];
    update.object_id = (char *)(uintptr_t) "EGO";
    update.trajectory = &path;
    path.poses = list;
    question.session_uuid = asked.start.session_uuid;
    question.time_query_us = BEGIN_US;
    question.updates = updates;
    question.n_updates = 1;
    for (size_t i = 0; i <= NEWS_MAX; i++) {
        list[i] = &there->at;
    }
    for (path.n_poses = 2; path.n_poses <= NEWS_MAX + 1; path.n_poses += NEWS_MAX - 1) {
        struct grpc_call *call = ask(TRAFFIC "simulate", &question.base, GRPC_INVALID_ARGUMENT);
        EXPECT_CONTAINS(grpc_call_sentence(call), path.n_poses == 2
                                                      ? "pose 1 is not later"
                                                      : "at most 96000 poses more, found 96001");
        grpc_call_free(client, call);
    }
    traf__simulated__free_unpacked(simulate(BEGIN_US + STEP_US / 2), NULL);
    path.n_poses = NEWS;
    for (uint64_t step = 0; step < 4; step++) {
        for (size_t i = 0; i < NEWS; i++) {
            ego__pose_at_time__init(&poses[i]);
            poses[i].pose = &there->pose;
            poses[i].timestamp_us = BEGIN_US + step * STEP_US + 2 * i + 1;
            list[i] = &poses[i];
        }
        traf__simulated__free_unpacked(simulate_with(poses[NEWS - 1].timestamp_us, &update), NULL);
    }
    list[0] = &poses[NEWS - 1];
    path.n_poses = 1;
    poses[NEWS - 1].timestamp_us = BEGIN_US + 4 * STEP_US; /* what is not past stays */
    traf__simulated__free_unpacked(simulate_with(BEGIN_US + 3 * STEP_US + 5, &update), NULL);
    end();
}

/* An answer with a scene's picture, which is the caller's. */
static struct grpc_answer answer_of(struct alpasim *alpasim, const char *id)
{
    struct picture_question question;
    question_fill(&question, id, NULL);
    const size_t bytes = protobuf_c_message_get_packed_size(&question.render.base);
    uint8_t *packed = malloc(bytes);
    EXPECT(packed != NULL);
    protobuf_c_message_pack(&question.render.base, packed);
    struct grpc_answer answer = {.deadline_ns = INT64_MAX};
    alpasim_serve(alpasim, SERVICE "render_rgb", packed, bytes, &answer);
    free(packed);
    if (answer.code != GRPC_OK) {
        TEST_FAIL("%s: %s", id, answer.sentence);
    }
    return answer;
}

/* More scenes and lenses than are kept ready, in turns: each is drawn as the first time. */
static void scenes_and_lenses_come_and_go(void)
{
    enum { SCENES = 40 };
    static struct scenario_document documents[SCENES];
    static struct suite_entry entries[SCENES];
    struct grpc_answer first[SCENES];
    const struct rig rig = {.camera_count = 0};
    struct alpasim *alpasim = NULL;
    struct error error;
    begin();
    for (int i = 0; i < SCENES; i++) {
        documents[i] = document;
        snprintf(documents[i].scenario.id, sizeof documents[i].scenario.id, "scene-%d", i);
        entries[i] = (struct suite_entry){.document = &documents[i]};
    }
    const struct suite suite = {.entry_count = SCENES, .entries = entries};
    EXPECT_OK(alpasim_create(&suite, &rig, &alpasim, &error), error);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < SCENES; i++) {
            camera.width = WIDTH + 2 * (i % 20);
            struct grpc_answer answer = answer_of(alpasim, documents[i].scenario.id);
            if (turn == 0) {
                first[i] = answer;
                continue;
            }
            EXPECT_INT(answer.bytes, first[i].bytes);
            EXPECT(memcmp(answer.message, first[i].message, answer.bytes) == 0);
            free(answer.message);
            free(first[i].message);
        }
    }
    alpasim_destroy(alpasim);
    end();
}

int main(void)
{
    return TEST_RUN(
        TEST(cameras_are_those_that_rigs_may_have), TEST(pictures_have_the_size_that_is_asked_for),
        TEST(lenses_without_a_limit_see_everything), TEST(pictures_show_whom_a_question_places),
        TEST(it_tells_what_there_is), TEST(what_it_does_not_have_is_said),
        TEST(traffic_reacts_to_an_ego_that_somebody_else_drives),
        TEST(traffic_refuses_what_it_cannot_drive), TEST(traffic_bounds_what_it_keeps),
        TEST(scenes_and_lenses_come_and_go));
}
