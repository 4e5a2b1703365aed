/*
 * Scenarios as services of AlpaSim: what SensorsimService tells and draws, over a connection, and
 * what it refuses.
 */
#include "base/check.h"
#include "base/jpeg/jpeg_decode.h"
#include "schemas/proto/sensorsim.pb-c.h"
#include "tests/harness.h"
#include "tests/worker/dream_server.h"
#include "tests/worker/jobs.h"
#include "worker/contract/contract_camera.h"
#include "worker/grpc/grpc.h"

enum { WIDTH = 96, HEIGHT = 64, WAIT_MS = 60000 };

#define SERVICE "/nre.grpc.protos.sensorsim.SensorsimService/"

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
    EXPECT_OK(grpc_open(server.address, WAIT_MS, &client, &error), error);
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
    struct contract_camera placed, there;
};

/* `agent` stands 10 m ahead of the camera; NULL: nobody. */
static void question_fill(struct picture_question *out, const char *id, const char *agent)
{
    struct rig_camera at = camera;
    struct rig_camera box = camera;
    memset(out, 0, sizeof *out);
    at.pose.x_m = 50;
    at.pose.y_m = 3.5;
    box.pose = (struct rig_pose){.x_m = 60, .y_m = 3.5, .z_m = 0.75};
    contract_camera_fill(&out->placed, &at, 0, true);
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

int main(void)
{
    return TEST_RUN(TEST(cameras_are_those_that_rigs_may_have),
                    TEST(lenses_without_a_limit_see_everything),
                    TEST(pictures_show_whom_a_question_places), TEST(it_tells_what_there_is),
                    TEST(what_it_does_not_have_is_said));
}
