/*
 * rig.json: what is read is written and read back the same, defaults are those that rig.h says,
 * mistakes are named with their place, and the built-in rig hashes to nothing.
 */
#include "schemas/rig/rig_choice.h"

#include "base/check.h"
#include "schemas/json_read.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

static const char whole[] =
    "{\"id\": \"r\", \"bev\": true, \"cameras\": [{\"id\": \"a\", \"width\": 640, \"height\": 400,"
    " \"rate_hz\": 30, \"shutter\": \"rolling_left\", \"shutter_ms\": 20,"
    " \"pose\": {\"x_m\": 1, \"y_m\": -0.5, \"z_m\": 1.4, \"roll_rad\": 0.1},"
    " \"lens\": {\"fx\": 400, \"fy\": 401, \"cx\": 300, \"k\": [0.1, 0, 0.3], \"p\": [0, 0.01]}},"
    " {\"id\": \"b\", \"width\": 64, \"height\": 40, \"pose\": {\"x_m\": 0, \"y_m\": 0, \"z_m\": "
    "2},"
    " \"lens\": {\"model\": \"ftheta\", \"angle_to_pixels\": [0, 500], \"max_angle_rad\": 1}}],"
    " \"lidars\": [{\"id\": \"l\", \"pose\": {\"x_m\": 0, \"y_m\": 0, \"z_m\": 2}, \"azimuths\": "
    "900,"
    " \"elevations_rad\": [-0.1, 0], \"range_m\": 100}]}";

static enum status decode(const char *text, struct rig *out, struct error *error)
{
    json_t *root = NULL;
    EXPECT_OK(json_read_text("rig.json", text, strlen(text), &root, error), *error);
    enum status status = rig_decode("rig.json", root, out, error);
    json_decref(root);
    return status;
}

static void what_is_read_is_written(void)
{
    struct error error;
    struct rig *rig = malloc(2 * sizeof *rig);
    CHECK(rig != NULL);
    EXPECT_OK(decode(whole, rig, &error), error);
    const struct rig_camera *a = &rig->cameras[0];
    const struct rig_camera *b = &rig->cameras[1];
    EXPECT(rig->camera_count == 2 && rig->lidar_count == 1 && rig->bev);
    EXPECT(a->shutter == SHUTTER_ROLLING_LEFT && a->rate_hz == 30 && a->pose.roll_rad == 0.1);
    EXPECT(a->lens.fy == 401 && a->lens.cx == 300 && a->lens.cy == 199.5 && a->lens.k[2] == 0.3);
    EXPECT(a->lens.p[1] == 0.01 && isnan(a->lens.max_angle_rad));
    EXPECT(b->lens.model == LENS_FTHETA && b->lens.angle_to_pixels[1] == 500);
    EXPECT(b->rate_hz == 10 && b->shutter == SHUTTER_GLOBAL && b->lens.max_angle_rad == 1);
    EXPECT(rig->lidars[0].elevation_count == 2 && rig->lidars[0].azimuths == 900);
    EXPECT(rig_bytes(rig) == 3 * (640 * 400 + 64 * 40));
    json_t *first = rig_encode(rig);
    EXPECT_OK(rig_decode("again", first, rig + 1, &error), error);
    json_t *second = rig_encode(rig + 1);
    EXPECT(first != NULL && json_equal(first, second));
    json_decref(second);
    json_decref(first);
    free(rig);
}

static void the_builtin_rig_has_no_hash(void)
{
    char hash[SHA256_HEX_BYTES];
    struct error error;
    struct rig *rig = malloc(sizeof *rig);
    CHECK(rig != NULL);
    rig_swerve(rig);
    EXPECT_OK(rig_hash(rig, hash, &error), error);
    EXPECT(hash[0] == '\0');
    rig->cameras[0].pose.z_m = 1.6;
    EXPECT_OK(rig_hash(rig, hash, &error), error);
    EXPECT(strlen(hash) == 64);
    free(rig);
}

/* The text of `whole` with one piece replaced. */
static void mistakes_are_named(void)
{
    static const struct {
        const char *was, *is, *said;
    } cases[] = {
        {"\"fx\": 400", "\"f\": 400", "$.cameras[0].lens: unknown member \"f\""},
        {"\"fx\": 400, ", "", "$.cameras[0].lens.fx"},
        {"\"rate_hz\": 30", "\"rate_hz\": 25", "$.cameras[0].rate_hz: expected a multiple of 10"},
        {"\"shutter_ms\": 20", "\"shutter_ms\": 40", "$.cameras[0].shutter_ms: expected at most"},
        {"rolling_left", "rolling", "$.cameras[0].shutter"},
        {"\"width\": 640", "\"width\": 5000", "$.cameras[0].width"},
        {"\"z_m\": 1.4, ", "\"z_m\": 0, ", "$.cameras[0].pose.z_m"},
        {"\"id\": \"b\"", "\"id\": \"a\"", "different ids, found a twice"},
        {"\"id\": \"a\"", "\"id\": \"../a\"", "$.cameras[0].id: expected letters"},
        {"\"angle_to_pixels\": [0, 500], ", "\"fx\": 3, ", "$.cameras[1].lens"},
        {"\"azimuths\": 900", "\"azimuths\": 0", "$.lidars[0].azimuths"},
        {"[-0.1, 0]", "[-0.1, 90]", "$.lidars[0].elevations_rad[1]"},
    };
    struct rig *rig = malloc(sizeof *rig);
    CHECK(rig != NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[sizeof whole + 64];
        struct error error;
        const char *at = strstr(whole, cases[i].was);
        CHECK(at != NULL);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, cases[i].is,
                 at + strlen(cases[i].was));
        EXPECT(decode(text, rig, &error) != STATUS_OK);
        if (strstr(error.text, cases[i].said) == NULL ||
            strncmp(error.text, "rig.json: ", 10) != 0) {
            TEST_FAIL("case %zu: %s", i, error.text);
        }
    }
    struct error error;
    EXPECT(decode("{\"id\": \"r\"}", rig, &error) == STATUS_BAD_INPUT);
    free(rig);
}

/* Choices of the built-in rig and of one that a planner brings: what they are, or what is wrong. */
static void choices_name_sensors(void)
{
    static const struct {
        const char *text;
        const char *said; /* NULL: it is right */
        uint32_t count;
        size_t bytes; /* of the last one's frame */
    } cases[] = {
        {"{\"sensors\": []}", NULL, 0, 0},
        {"{\"sensors\": [\"bev\", \"front\"]}", NULL, 2, 64 * 96 * 3},
        {"{\"sensors\": [{\"id\": \"left\", \"encoding\": \"rgb\"}]}", NULL, 1, 64 * 96 * 3},
        {"{\"sensors\": [{\"id\": \"left\", \"encoding\": \"jpeg:1\"}]}", NULL, 1,
         64 * 96 * 3 + 2048},
        {"{\"sensors\": [\"eye\"], \"rig\": {\"id\": \"r\", \"cameras\": [{\"id\": \"eye\", "
         "\"width\": 40, \"height\": 30, \"pose\": {\"x_m\": 1, \"y_m\": 0, \"z_m\": 1}, \"lens\": "
         "{\"fx\": 20}}]}}",
         NULL, 1, 40 * 30 * 3},
        {"{\"sensors\": [\"eye\", \"roof\"], \"rig\": {\"id\": \"r\", \"cameras\": [{\"id\": "
         "\"eye\", "
         "\"width\": 40, \"height\": 30, \"pose\": {\"x_m\": 1, \"y_m\": 0, \"z_m\": 1}, \"lens\": "
         "{\"fx\": 20}}], \"lidars\": [{\"id\": \"roof\", \"pose\": {\"x_m\": 1, \"y_m\": 0, "
         "\"z_m\": 2}, "
         "\"azimuths\": 360, \"elevations_rad\": [0.1, -0.1], \"range_m\": 50}]}}",
         NULL, 2, 360 * 2 * 16},
        {"[]", "welcome: $: expected", 0, 0},
        {"{\"sensors\": [\"eye\"]}",
         "$.sensors[0]: expected a sensor of the rig swerve (bev, left, front, right), found "
         "\"eye\"",
         0, 0},
        {"{\"sensors\": [\"left\", \"left\"]}", "$.sensors[1]: expected each sensor once", 0, 0},
        {"{\"sensors\": [{\"id\": \"left\", \"encoding\": \"jpeg:0\"}]}",
         "$.sensors[0].encoding: expected \"rgb\", or \"jpeg:\"", 0, 0},
        {"{\"sensors\": [{\"id\": \"left\", \"encoding\": \"jpeg:90x\"}]}", "encoding", 0, 0},
        {"{\"sensors\": [{\"id\": \"bev\", \"encoding\": \"jpeg:90\"}]}", "is no picture", 0, 0},
        {"{\"sensors\": [], \"rig\": {\"id\": \"r\"}}", "expected a camera", 0, 0},
        {"{\"sensors\": [\"a\"], \"more\": 1}", "more", 0, 0},
    };
    struct rig *rig = malloc(sizeof *rig);
    CHECK(rig != NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rig_choice choice = {.count = 99};
        struct error error = {0};
        rig_swerve(rig);
        enum status status = rig_choice_decode("welcome", cases[i].text, strlen(cases[i].text), rig,
                                               &choice, &error);
        if (cases[i].said != NULL) {
            EXPECT(status != STATUS_OK);
            EXPECT_CONTAINS(error.text, cases[i].said);
            EXPECT_INT(choice.count, 99);
            EXPECT_TEXT(rig->id, "swerve");
        } else {
            EXPECT_OK(status, error);
            EXPECT_INT(choice.count, cases[i].count);
            EXPECT_INT(choice.count > 0 ? rig_chosen_bytes(rig, &choice.sensors[choice.count - 1])
                                        : 0,
                       cases[i].bytes);
        }
    }
    free(rig);
}

int main(void)
{
    return TEST_RUN(TEST(what_is_read_is_written), TEST(choices_name_sensors),
                    TEST(the_builtin_rig_has_no_hash), TEST(mistakes_are_named));
}
