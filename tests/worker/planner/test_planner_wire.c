/*
 * Goal: the codec reads exactly what the protocol says and nothing beyond the bytes it was given.
 * Method: frames built here by hand from the documented layout, then every truncation, every single
 * flipped byte and random noise; decoders must give a status, write only on success, and stay
 * inside a buffer that ends where the bytes end (AddressSanitizer watches it).
 */
#include "base/check.h"
#include "base/rng.h"
#include "schemas/observation.h"
#include "tests/harness.h"
#include "worker/wire/planner_wire.h"

#include <stdlib.h>

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint32_t get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static double get_f64(const uint8_t *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* A copy that ends where the bytes end. */
static uint8_t *exact(const uint8_t *bytes, size_t count)
{
    uint8_t *copy = calloc(1, count > 0 ? count : 1);
    if (count > 0) {
        memcpy(copy, bytes, count);
    }
    return copy;
}

static size_t make_actions(uint8_t *out, uint32_t count, const struct swerve_observation *seen)
{
    put_u32(out, count);
    put_u32(out + 4, 24);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *at = out + 8 + 24 * (size_t)i;
        double accel = 0.5 * i;
        double steer = -0.25 * i;
        put_u32(at, seen[i].session);
        put_u32(at + 4, i % 2);
        memcpy(at + 8, &accel, 8);
        memcpy(at + 16, &steer, 8);
    }
    return 8 + 24 * (size_t)count;
}

static void hello_has_the_documented_layout(void)
{
    uint8_t frame[512];
    EXPECT_INT(wire_hello_bytes(NULL), 16 + 216);
    wire_hello_encode(frame, 9, 5, 750, 3, NULL);
    EXPECT(memcmp(frame, "SWPL", 4) == 0);
    EXPECT_INT(get_u32(frame + 4), 1);
    EXPECT_INT(get_u32(frame + 8), 216);
    EXPECT_INT(get_u32(frame + 12), 9);
    const uint8_t *hello = frame + 16;
    static const uint32_t expected[14] = {1,
                                          5,
                                          WIRE_SLOT_BYTES,
                                          0,
                                          BEV_BYTES,
                                          BEV_BYTES + CAMERA_BYTES,
                                          BEV_BYTES + 2 * CAMERA_BYTES,
                                          BEV_CHANNELS,
                                          BEV_ROWS,
                                          BEV_COLS,
                                          CAMERA_ROWS,
                                          CAMERA_COLS,
                                          750,
                                          SWERVE_ROUTE_POINTS};
    for (int i = 0; i < 14; i++) {
        EXPECT_INT(get_u32(hello + 4 * i), expected[i]);
    }
    EXPECT_NEAR(get_f64(hello + 64), SWERVE_ROUTE_STEP_M, 0.0);
    EXPECT_NEAR(get_f64(hello + 72), BEV_CELL_M, 0.0);
    EXPECT_NEAR(get_f64(hello + 80), BEV_X_MIN_M, 0.0);
    EXPECT_NEAR(get_f64(hello + 88), BEV_Y_MIN_M, 0.0);
    EXPECT_NEAR(get_f64(hello + 96 + 40 + 32), camera_calibrations[1].hfov_rad, 0.0);
    EXPECT_INT(get_u32(hello + 56), 3);
    EXPECT_INT(get_u32(hello + 60), 4);
    EXPECT_INT(wire_hello_bytes("{}"), 16 + 216 + 2);
    wire_hello_encode(frame, 9, 5, 750, 3, "{}");
    EXPECT_INT(get_u32(frame + 8), 218);
    EXPECT_INT(get_u32(hello + 56), 3 | WIRE_RIG);
    EXPECT(memcmp(hello + 216, "{}", 2) == 0);
}

/* Sensors are read as they were written; no directory leads out of its slot. */
static void slots_are_read_as_they_were_written(void)
{
    static const uint8_t pictures[2][64] = {{1, 2, 3}, {4, 5, 6}};
    const size_t planes[2] = {64, 5000};
    const struct swerve_sensor list[2] = {
        {.id = "a",
         .width = 4,
         .height = 5,
         .count = 1,
         .frames = pictures[0],
         .bytes = {60},
         .time_ns = {7}},
        {.id = "b",
         .format = SWERVE_FORMAT_JPEG,
         .count = 2,
         .frames = pictures[1],
         .stride = 32,
         .bytes = {32, 9},
         .time_ns = {8, 9},
         .shutter_ns = 3,
         .shutter = 1},
    };
    const struct swerve_sensors sensors = {.count = 2, .sensors = list};
    const size_t bytes = wire_slot_bytes(2, planes);
    uint8_t *slot = calloc(1, bytes);
    struct swerve_sensor out[2];
    uint32_t count = 0;
    EXPECT_INT(bytes, 4096 + 4096 + 8192);
    wire_slot_write(slot, planes, &sensors);
    EXPECT_INT(get_u32(slot), 2);
    EXPECT_INT(get_u32(slot + 4), 248);
    EXPECT_INT(get_u32(slot + 16 + 248 + 64), 8192); /* the second sensor's offset */
    EXPECT(wire_slot_read(slot, bytes, out, 2, &count));
    EXPECT_INT(count, 2);
    EXPECT_TEXT(out[1].id, "b");
    EXPECT_INT(out[1].time_ns[1], 9);
    EXPECT_INT(out[1].shutter, 1);
    EXPECT(memcmp(out[0].frames, pictures[0], 60) == 0);
    EXPECT(memcmp(out[1].frames + 32, pictures[1] + 32, 9) == 0);
    EXPECT(!wire_slot_read(slot, bytes, out, 1, &count));
    EXPECT(!wire_slot_read(slot, 8192, out, 2, &count));
    for (size_t at = 0; at < 16 + 2 * 248; at++) { /* AddressSanitizer watches what is read */
        uint8_t kept = slot[at];
        slot[at] ^= 0x80;
        if (wire_slot_read(slot, bytes, out, 2, &count)) {
            for (uint32_t i = 0; i < count; i++) {
                for (uint32_t k = 0; k < out[i].count; k++) {
                    EXPECT(out[i].frames + k * out[i].stride + out[i].bytes[k] <= slot + bytes);
                }
            }
        }
        slot[at] = kept;
    }
    free(slot);
}

static void act_has_the_documented_layout(void)
{
    struct swerve_route_point route[2] = {{.x_m = 1.0f}, {.adjacent_right_m = 7.0f}};
    uint8_t grid = 0;
    struct swerve_observation seen[2] = {
        {.session = 3,
         .tick = 4,
         .time_ns = -5,
         .bev_time_ns = 6,
         .camera_time_ns = {7, 8, 9},
         .x_m = 1.5,
         .steer_rad = 2.5,
         .route_count = 2,
         .route = route,
         .bev = &grid,
         .camera = {NULL, NULL, &grid}},
        {.session = 1},
    };
    uint8_t frame[16 + 8 + 2048];
    EXPECT_INT(wire_act_bytes(2), sizeof frame);
    wire_act_encode(frame, 1, SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS, 2, seen);
    const uint8_t *record = frame + 24;
    EXPECT_INT(get_u32(frame + 8), sizeof frame - 16);
    EXPECT_INT(get_u32(frame + 16), 2);
    EXPECT_INT(get_u32(frame + 20), 1024);
    EXPECT_INT(get_u32(record), 3);
    EXPECT_INT(get_u32(record + 4), 4);
    EXPECT_INT((int32_t)get_u32(record + 8), -5);
    EXPECT_INT(get_u32(record + 16), 6);
    EXPECT_INT(get_u32(record + 40), 9);
    EXPECT_NEAR(get_f64(record + 48), 1.5, 0.0);
    EXPECT_NEAR(get_f64(record + 104), 2.5, 0.0);
    EXPECT_INT(get_u32(record + 112), 2);
    EXPECT_INT(get_u32(record + 116), 1 | 8);
    float value;
    memcpy(&value, record + 120 + 28 + 24, sizeof value);
    EXPECT_NEAR(value, 7.0, 0.0);
    EXPECT_INT(get_u32(record + 1024), 1);
    EXPECT_INT(get_u32(record + 1024 + 116), 0);
    /* A part that was not asked for is not announced. */
    wire_act_encode(frame, 1, SWERVE_WANTS_CAMERAS, 2, seen);
    EXPECT_INT(get_u32(record + 116), 8);
    wire_act_encode(frame, 1, 0, 2, seen);
    EXPECT_INT(get_u32(record + 116), 0);
}

static void reset_carries_log_and_texts(void)
{
    struct swerve_log_point log[2] = {{.t_s = 1.0}, {.speed_mps = 9.0}};
    struct swerve_episode episode = {.session = 2,
                                     .seed = 0x0102030405060708u,
                                     .scenario_id = "abc",
                                     .prompt = "de",
                                     .log_count = 2,
                                     .log = log};
    size_t bytes = wire_reset_bytes(&episode);
    EXPECT_INT(bytes, 16 + 64 + 80 + 5);
    uint8_t *frame = malloc(bytes);
    wire_reset_encode(frame, 1, &episode);
    EXPECT_INT(get_u32(frame + 16), 2);
    EXPECT_INT(get_u32(frame + 24), 0x05060708);
    EXPECT_INT(get_u32(frame + 28), 0x01020304);
    EXPECT_INT(get_u32(frame + 16 + 48), 2);
    EXPECT_INT(get_u32(frame + 16 + 52), 3);
    EXPECT_INT(get_u32(frame + 16 + 56), 2);
    EXPECT_NEAR(get_f64(frame + 80 + 72), 9.0, 0.0);
    EXPECT(memcmp(frame + 160, "abcde", 5) == 0);
    free(frame);
    /* Absent texts are empty. */
    struct swerve_episode bare = {.session = 1};
    EXPECT_INT(wire_reset_bytes(&bare), 80);
    /* Rows stand at a multiple of 8 bytes of the payload, behind whatever texts there are. */
    struct swerve_controls_row rows[2] = {{.target_mps2 = 0.1}, {.a_ego_mps2 = -0.3}};
    episode.controls_count = 2;
    episode.controls = rows;
    bytes = wire_reset_bytes(&episode);
    EXPECT_INT(bytes, 16 + 64 + 80 + 8 + 64);
    frame = malloc(bytes);
    wire_reset_encode(frame, 1, &episode);
    EXPECT(memcmp(frame + 160, "abcde\0\0\0", 8) == 0);
    EXPECT_NEAR(get_f64(frame + 168), 0.1, 0.0);
    EXPECT_NEAR(get_f64(frame + 168 + 56), -0.3, 0.0);
    free(frame);
}

static void actions_survive_only_whole(void)
{
    struct swerve_observation seen[3] = {{.session = 7}, {.session = 0}, {.session = 2}};
    uint8_t payload[128];
    size_t bytes = make_actions(payload, 3, seen);
    for (size_t cut = 0; cut <= bytes + 1; cut++) {
        uint8_t *copy = exact(payload, cut);
        struct swerve_answer answers[3] = {{.action = {9, 9}}};
        uint8_t failed[3] = {5, 5, 5};
        struct error error = {0};
        enum status status = wire_actions_decode(copy, cut, 3, seen, answers, failed, &error);
        free(copy);
        EXPECT_INT(status, cut == bytes ? STATUS_OK : STATUS_PLANNER);
        if (status == STATUS_OK) {
            EXPECT_NEAR(answers[2].action.accel_mps2, 1.0, 0.0);
            EXPECT_NEAR(answers[2].action.steer_rad, -0.5, 0.0);
            EXPECT_INT(failed[1], 1);
        } else {
            EXPECT(answers[0].action.accel_mps2 == 9 && failed[0] == 5 && error.text[0] != '\0');
        }
    }
}

/* Flipping any bit outside the numbers themselves must be noticed. */
static void actions_notice_every_changed_byte(void)
{
    struct swerve_observation seen[2] = {{.session = 4}, {.session = 1}};
    uint8_t payload[64];
    size_t bytes = make_actions(payload, 2, seen);
    for (size_t i = 0; i < bytes; i++) {
        bool number = i >= 8 && (i - 8) % 24 >= 8;
        bool mark = i >= 8 && (i - 8) % 24 == 4;
        for (int bit = 0; bit < 8; bit++) {
            uint8_t changed[64];
            memcpy(changed, payload, bytes);
            changed[i] ^= (uint8_t)(1 << bit);
            struct swerve_answer answers[2];
            uint8_t failed[2];
            struct error error;
            enum status status =
                wire_actions_decode(changed, bytes, 2, seen, answers, failed, &error);
            EXPECT_INT(status, number || (mark && bit == 0) ? STATUS_OK : STATUS_PLANNER);
        }
    }
}

static void headers_are_strict(void)
{
    uint8_t header[16];
    struct wire_header out;
    struct error error;
    memcpy(header, "SWPL", 4);
    put_u32(header + 4, WIRE_ACTIONS);
    put_u32(header + 8, 100);
    put_u32(header + 12, 77);
    EXPECT_OK(wire_header_decode(header, 77, 100, &out, &error), error);
    EXPECT_INT(out.type, WIRE_ACTIONS);
    EXPECT_INT(out.payload_bytes, 100);
    EXPECT_INT(wire_header_decode(header, 78, 100, &out, &error), STATUS_PLANNER);
    EXPECT_INT(wire_header_decode(header, 77, 99, &out, &error), STATUS_PLANNER);
    for (uint32_t type = 0; type < 300; type++) {
        bool right =
            type == WIRE_WELCOME || type == WIRE_DONE || type == WIRE_ACTIONS || type == WIRE_ERROR;
        put_u32(header + 4, type);
        EXPECT_INT(wire_header_decode(header, 77, 100, &out, &error),
                   right ? STATUS_OK : STATUS_PLANNER);
    }
    put_u32(header + 4, WIRE_DONE);
    for (int i = 0; i < 32; i++) {
        header[i / 8] ^= (uint8_t)(1 << (i % 8));
        EXPECT_INT(wire_header_decode(header, 77, 100, &out, &error), STATUS_PLANNER);
        header[i / 8] ^= (uint8_t)(1 << (i % 8));
    }
}

static void welcome_survives_only_whole(void)
{
    uint8_t payload[16 + 63 + 64];
    struct error error;
    memset(payload, 'd', sizeof payload);
    for (uint32_t name_bytes = 0; name_bytes <= 63 + 64; name_bytes++) {
        bool loaded = name_bytes > 63;
        uint32_t whole = loaded ? name_bytes - 64 : name_bytes;
        put_u32(payload, 1);
        put_u32(payload + 4, 3);
        put_u32(payload + 8, whole);
        put_u32(payload + 12, loaded ? 64 : 0);
        for (size_t cut = 0; cut <= sizeof payload; cut++) {
            uint8_t *copy = exact(payload, cut);
            struct wire_greeting greeting = {.wants = 99, .name = "untouched"};
            enum status status = wire_welcome_decode(copy, cut, &greeting, &error);
            free(copy);
            EXPECT_INT(status, cut == 16 + name_bytes ? STATUS_OK : STATUS_PLANNER);
            EXPECT_INT(greeting.wants, status == STATUS_OK ? 3 : 99);
            EXPECT_INT(strlen(greeting.name), status == STATUS_OK ? whole : 9);
            EXPECT_INT(strlen(greeting.loaded), status == STATUS_OK && loaded ? 64 : 0);
        }
    }
    struct wire_greeting greeting;
    for (size_t at = 16; at < sizeof payload; at++) { /* a name of 63, then the hash */
        payload[at] = at < 16 + 63 ? '\n' : 'g';
        EXPECT_INT(wire_welcome_decode(payload, sizeof payload, &greeting, &error), STATUS_PLANNER);
        payload[at] = 'd';
    }
    put_u32(payload + 12, 63);
    EXPECT_INT(wire_welcome_decode(payload, sizeof payload - 1, &greeting, &error), STATUS_PLANNER);
}

/* Version, wants and tracker that belong together, and those that do not. */
static void welcome_chooses_a_version(void)
{
    static const struct {
        uint32_t version, wants, tracker;
        bool right;
    } cases[] = {
        {1, 3, 0, true},    {1, 256, 0, false}, {1, 3, 1, false},  {2, 3, 0, false},
        {3, 3, 1, true},    {3, 16, 0, true},   {3, 496, 1, true}, {3, 32, 0, false},
        {3, 512, 0, false}, {3, 4, 0, false},   {3, 16, 2, false}, {4, 16, 1, true},
        {4, 1, 0, false},   {4, 2, 0, false},   {5, 0, 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint8_t payload[16];
        struct wire_greeting greeting;
        struct error error;
        put_u32(payload, cases[i].version | cases[i].tracker << 16);
        put_u32(payload + 4, cases[i].wants);
        put_u32(payload + 8, 0);
        put_u32(payload + 12, 0);
        EXPECT_INT(wire_welcome_decode(payload, sizeof payload, &greeting, &error),
                   cases[i].right ? STATUS_OK : STATUS_PLANNER);
        if (cases[i].right) {
            EXPECT_INT(greeting.tracker, cases[i].tracker);
        }
    }
}

/* Two plans: an action, and a trajectory of three points. */
static size_t make_plans(uint8_t *payload, uint32_t point_count)
{
    const struct wire_act act = {2, sizeof(struct wire_plan)};
    const struct wire_plan plans[2] = {{.session = 4, .accel_mps2 = 1.5, .steer_rad = -0.25},
                                       {.session = 1, .point_count = point_count}};
    size_t bytes = sizeof act + sizeof plans;
    memcpy(payload, &act, sizeof act);
    memcpy(payload + sizeof act, plans, sizeof plans);
    for (uint32_t i = 0; i < point_count; i++) {
        const struct swerve_trajectory_point point = {0.1 * i, i, -1.0, 0.5, 8.0};
        memcpy(payload + bytes, &point, sizeof point);
        bytes += sizeof point;
    }
    return bytes;
}

static void plans_survive_only_whole(void)
{
    struct swerve_observation seen[2] = {{.session = 4}, {.session = 1}};
    static uint8_t payload[8192];
    static struct swerve_answer answers[2];
    uint8_t failed[2];
    struct error error;
    size_t bytes = make_plans(payload, 3);
    for (size_t cut = 0; cut <= bytes + 1; cut++) {
        uint8_t *copy = exact(payload, cut);
        memset(answers, 0, sizeof answers);
        enum status status = wire_plans_decode(copy, cut, 2, seen, answers, failed, &error);
        free(copy);
        EXPECT_INT(status, cut == bytes ? STATUS_OK : STATUS_PLANNER);
        EXPECT_INT(answers[1].point_count, cut == bytes ? 3 : 0);
    }
    EXPECT_NEAR(answers[1].points[2].x_m, 0.0, 0.0);
    EXPECT_OK(wire_plans_decode(payload, bytes, 2, seen, answers, failed, &error), error);
    EXPECT_NEAR(answers[0].action.accel_mps2, 1.5, 0.0);
    EXPECT_NEAR(answers[1].points[2].x_m, 2.0, 0.0);
    bytes = make_plans(payload, SWERVE_TRAJECTORY_POINTS);
    EXPECT_OK(wire_plans_decode(payload, bytes, 2, seen, answers, failed, &error), error);
    bytes = make_plans(payload, SWERVE_TRAJECTORY_POINTS + 1);
    EXPECT_INT(wire_plans_decode(payload, bytes, 2, seen, answers, failed, &error), STATUS_PLANNER);
    EXPECT(strstr(error.text, "at most 80 points, found 81") != NULL);
}

/* A map comes back as it was; one whose counts or indices lie does not. */
static void maps_survive_only_whole(void)
{
    static const struct swerve_map_lane lanes[2] = {
        {.id = "a", .point_count = 2, .successor_count = 1, .left = -1, .right = 1},
        {.id = "b",
         .first_point = 1,
         .point_count = 1,
         .first_predecessor = 1,
         .predecessor_count = 1,
         .left = 0,
         .right = -1},
    };
    static const struct swerve_map_point points[2] = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
    static const uint32_t links[2] = {1, 0};
    static const uint32_t route[1] = {1};
    const struct swerve_map map = {.lane_count = 2,
                                   .point_count = 2,
                                   .link_count = 2,
                                   .route_count = 1,
                                   .goal_radius_m = 3.0,
                                   .lanes = lanes,
                                   .points = points,
                                   .links = links,
                                   .route = route};
    static _Alignas(8) uint8_t changed[1024];
    uint8_t *bytes = malloc(wire_map_bytes(&map));
    size_t size = wire_map_bytes(&map);
    struct swerve_map out;
    uint32_t source = 0;
    EXPECT(size <= sizeof changed);
    EXPECT(wire_map_encode(bytes, &map, 2) == bytes + size);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = exact(bytes, cut);
        EXPECT(!wire_map_decode(copy, cut, &out, &source));
        free(copy);
    }
    EXPECT(wire_map_decode(bytes, size, &out, &source));
    EXPECT_INT(source, 2);
    EXPECT_INT(out.route[0], 1);
    EXPECT(memcmp(out.lanes, lanes, sizeof lanes) == 0 && out.goal_radius_m == 3.0);
    /* Any index of a lane or link that leads out. */
    static const size_t counts_at[] = {80, 84, 88, 92, 96}; /* first_point, .. within the lane */
    for (size_t i = 0; i < COUNT_OF(counts_at); i++) {
        memcpy(changed, bytes, size);
        put_u32(changed + sizeof(struct wire_map) + counts_at[i], 0xfffffff0u);
        EXPECT(!wire_map_decode(changed, size, &out, &source));
    }
    memcpy(changed, bytes, size);
    put_u32(changed + sizeof(struct wire_map) + sizeof lanes + sizeof points, 2); /* a link */
    EXPECT(!wire_map_decode(changed, size, &out, &source));
    free(bytes);
}

static void noise_is_refused_or_harmless(void)
{
    struct swerve_observation seen[8] = {{.session = 0}};
    uint64_t state = 42;
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[256];
        for (size_t i = 0; i < sizeof bytes; i += 8) {
            state = rng_mix(state + 1);
            memcpy(bytes + i, &state, 8);
        }
        size_t cut = state % sizeof bytes;
        uint8_t *copy = exact(bytes, cut);
        struct swerve_answer answers[8];
        uint8_t failed[8];
        struct error error;
        struct wire_greeting greeting;
        char text[32];
        EXPECT_INT(wire_actions_decode(copy, cut, 1 + state % 8, seen, answers, failed, &error),
                   STATUS_PLANNER);
        EXPECT_INT(wire_plans_decode(copy, cut, 1 + state % 8, seen, answers, failed, &error),
                   STATUS_PLANNER);
        EXPECT_INT(wire_welcome_decode(copy, cut, &greeting, &error), STATUS_PLANNER);
        wire_error_text(copy, cut, text, sizeof text);
        EXPECT(strlen(text) < sizeof text);
        for (size_t i = 0; text[i] != '\0'; i++) {
            EXPECT((uint8_t)text[i] >= 0x20);
        }
        free(copy);
    }
}

int main(void)
{
    return TEST_RUN(TEST(hello_has_the_documented_layout), TEST(act_has_the_documented_layout),
                    TEST(reset_carries_log_and_texts), TEST(actions_survive_only_whole),
                    TEST(actions_notice_every_changed_byte), TEST(headers_are_strict),
                    TEST(slots_are_read_as_they_were_written), TEST(welcome_survives_only_whole),
                    TEST(welcome_chooses_a_version), TEST(plans_survive_only_whole),
                    TEST(maps_survive_only_whole), TEST(noise_is_refused_or_harmless));
}
