/*
 * Goal: a learned tier's artifact shows what was generated: the right frames, from the right
 * rollout, within its bounds; other tiers have no keyframes; no hash depends on one; a set of
 * keyframes from anywhere never crashes the reader. Method: the object world under a learned tier's
 * name is driven with branches; its frames, which can be redrawn, are compared with the keyframes.
 * Damaged sections are read.
 */
#include "base/jpeg/jpeg_decode.h"
#include "base/rng.h"
#include "engine/sensors/raster.h"
#include "engine/worlds/world.h"
#include "schemas/rig/rig.h"
#include "tests/worker/jobs.h"
#include "tests/worker/pack_all.h"

enum { HORIZON = 60, FORK_TICK = 22 };

struct drive {
    struct jobs_scenario scenario;
    struct job_run *job;
    uint8_t *data;
    size_t bytes;
    struct trace_reader reader;
};

/* Two small cameras of a rig, whose pictures say the tick and the camera. */
enum { SIDE = 16 };
static const struct rig two_eyes = {.id = "two",
                                    .camera_count = 2,
                                    .cameras = {{.id = "near", .width = SIDE, .height = SIDE},
                                                {.id = "far", .width = SIDE, .height = SIDE}}};

static const struct rig *rig_made(const struct world *world)
{
    (void)world;
    return &two_eyes;
}

static uint8_t level_of(uint32_t tick, uint32_t camera)
{
    return (uint8_t)(40 + 2 * tick + 90 * camera);
}

static const uint8_t *slot_frame(const struct world *world, uint32_t slot, uint32_t camera,
                                 uint32_t back)
{
    static uint8_t rgb[SIDE * SIDE * 3];
    EXPECT_INT(back, 0);
    memset(rgb, level_of(world->ops->slot_scene(world, slot)->tick, camera), sizeof rgb);
    return rgb;
}

static struct world_ops ops; /* of the drive's world */

static enum status open_double(const struct world_config *config, struct world **out,
                               struct error *error)
{
    TRY(world_object_ops.open(config, out, error));
    (*out)->ops = &ops;
    return STATUS_OK;
}

static void drive_init(struct drive *drive, enum tier tier)
{
    struct error error;
    ops = world_object_ops;
    ops.tier = tier;
    ops.open = open_double;
    if (tier == TIER_STUDENT) {
        ops.rig_made = rig_made;
        ops.slot_frame = slot_frame;
    }
    jobs_scenario_init(&drive->scenario, "film", HORIZON);
    jobs_branch(&drive->scenario, FORK_TICK, INTERVENE_EGO_BRAKE)->decel_mps2 = 5;
    jobs_prepared(&drive->scenario);
    drive->job = jobs_run_one(&ops, "builtin:maintain", &drive->scenario, 3, 2, false, NULL);
    EXPECT_OK(pack_all(drive->job, &drive->data, &drive->bytes, &error), error);
    EXPECT_OK(trace_reader_init(&drive->reader, drive->data, drive->bytes, &error), error);
}

static void drive_finish(struct drive *drive)
{
    trace_reader_finish(&drive->reader);
    free(drive->data);
    job_run_destroy(drive->job);
    jobs_scenario_finish(&drive->scenario);
}

/* The frame found for `tick` is of `expected`, and shows what the sensors saw then. */
static void expect_frame(const struct drive *drive, int32_t rollout, uint32_t tick,
                         uint32_t expected)
{
    static struct trace_keyframe frame;
    static struct trace_keyframe drawn;
    static uint8_t bev[BEV_BYTES];
    static uint8_t camera[CAMERA_BYTES];
    struct error error;
    struct raster_layers *layers = NULL;
    struct scene scene;
    const struct scenario *scenario = &drive->scenario.scenario;
    EXPECT(trace_reader_keyframes(&drive->reader, rollout, tick, &frame));
    EXPECT_INT(frame.tick, expected);
    EXPECT(trace_reader_scene(&drive->reader, rollout, expected, &scene, NULL));
    EXPECT_OK(raster_layers_create(&scenario->map, &layers, &error), error);
    raster_bev(layers, scenario, &scene, 3, bev);
    raster_camera(layers, scenario, &scene, 3, CAMERA_FRONT, camera);
    keyframes_encode(bev, camera, &drawn);
    EXPECT(memcmp(frame.bev, drawn.bev, sizeof frame.bev) == 0);
    EXPECT(memcmp(frame.camera, drawn.camera, sizeof frame.camera) == 0);
    raster_layers_destroy(layers);
}

static void learned_tiers_keep_keyframes(void)
{
    struct drive drive;
    drive_init(&drive, TIER_STUDENT);
    EXPECT_INT(drive.job->results[0].ticks, HORIZON);
    EXPECT_INT(drive.reader.keyframes_count, 13 + 8); /* 0, 5, .. 60; 25, 30, .. 60 */
    expect_frame(&drive, 0, 0, 0);
    expect_frame(&drive, 0, 21, 20);
    expect_frame(&drive, 0, 38, 40);
    expect_frame(&drive, 0, 1000, HORIZON);
    expect_frame(&drive, 1, 21, 20); /* before the fork: the main line's */
    expect_frame(&drive, 1, 23, 25); /* after it: its own */
    expect_frame(&drive, 1, HORIZON, HORIZON);
    drive_finish(&drive);
}

static void other_tiers_are_not_and_hashes_agree(void)
{
    struct drive kept;
    struct drive plain;
    static struct trace_keyframe frame;
    drive_init(&kept, TIER_TEACHER);
    drive_init(&plain, TIER_OBJECT);
    EXPECT_INT(plain.reader.keyframes_count, 0);
    EXPECT(!trace_reader_keyframes(&plain.reader, 0, 0, &frame));
    EXPECT(plain.bytes < kept.bytes);
    EXPECT(memcmp(plain.data, kept.data, plain.bytes) == 0);
    jobs_expect_same(kept.job, plain.job);
    drive_finish(&kept);
    drive_finish(&plain);
}

static void few_bits_are_close(void)
{
    static uint8_t bev[BEV_BYTES];
    static uint8_t camera[CAMERA_BYTES];
    static uint8_t bev_back[BEV_BYTES];
    static uint8_t camera_back[CAMERA_BYTES];
    static struct trace_keyframe frame;
    for (uint32_t i = 0; i < BEV_BYTES; i++) {
        bev[i] = (uint8_t)(rng_uniform(1, RNG_STREAM_TEST, 0, i) * 256);
    }
    for (uint32_t i = 0; i < CAMERA_BYTES; i++) {
        camera[i] = (uint8_t)(rng_uniform(1, RNG_STREAM_TEST, 1, i) * 256);
    }
    camera[0] = camera[1] = camera[2] = 255;
    keyframes_encode(bev, camera, &frame);
    keyframes_decode_bev(&frame, bev_back);
    keyframes_decode_camera(&frame, camera_back);
    for (uint32_t c = 0; c < BEV_CHANNELS; c++) {
        for (uint32_t row = 0; row < TRACE_KEYFRAME_ROWS; row++) {
            for (uint32_t col = 0; col < BEV_COLS; col++) {
                uint32_t i = c * BEV_CELLS + (TRACE_KEYFRAME_FIRST_ROW + row) * BEV_COLS + col;
                EXPECT(abs(bev[i] - bev_back[i]) <= 8);
            }
        }
    }
    for (uint32_t i = 0; i < CAMERA_BYTES; i++) {
        EXPECT(abs(camera[i] - camera_back[i]) <= 4);
    }
    EXPECT_INT(camera_back[0], 255);
}

/* However long and wide a job is, its keyframes keep within what an artifact can hold. */
static void keyframes_are_bounded(void)
{
    static const uint32_t horizons[] = {1, 50, 200, 300, 6000};
    static const uint32_t branches[] = {0, 1, 15, 256};
    for (size_t h = 0; h < COUNT_OF(horizons); h++) {
        for (size_t b = 0; b < COUNT_OF(branches); b++) {
            const struct scenario scenario = {
                .horizon_ticks = horizons[h], .branch_count = branches[b], .agent_count = 20};
            uint32_t period = trace_keyframes_period_ticks(&scenario);
            uint64_t ticks_bytes = trace_artifact_bytes_max(&scenario);
            if (period == 0) {
                EXPECT(ticks_bytes > LIMIT_ARTIFACT_BYTES - KEYFRAMES_JOB_BYTES_MAX);
                continue;
            }
            uint64_t frames = horizons[h] / period + 2;
            uint64_t bytes = (1 + branches[b]) * frames * sizeof(struct trace_keyframe) +
                             sizeof(struct trace_keyframe_header);
            EXPECT(period >= KEYFRAMES_PERIOD_MIN_TICKS);
            EXPECT(bytes <= KEYFRAMES_JOB_BYTES_MAX);
            EXPECT(ticks_bytes + bytes <= LIMIT_ARTIFACT_BYTES);
        }
    }
    const struct scenario usual = {.horizon_ticks = 150, .branch_count = 15, .agent_count = 10};
    EXPECT_INT(trace_keyframes_period_ticks(&usual), KEYFRAMES_PERIOD_MIN_TICKS);
}

/* ---- keyframes from anywhere ---- */

static bool accepted(const uint8_t *data, size_t bytes)
{
    struct trace_reader reader;
    struct error error = {0};
    uint8_t *copy = malloc(bytes);
    EXPECT(copy != NULL);
    memcpy(copy, data, bytes);
    enum status status = trace_reader_init(&reader, copy, bytes, &error);
    if (status == STATUS_OK) {
        static struct trace_keyframe frame;
        static struct trace_picture_view views[TRACE_CAMERAS_MAX];
        for (uint32_t t = 0; t < 2 * HORIZON; t += 7) {
            for (int32_t r = 0; r < 2; r++) {
                trace_reader_keyframes(&reader, r, t, &frame);
                uint32_t count = trace_reader_pictures(&reader, r, t, views);
                for (uint32_t i = 0; i < count; i++) {
                    EXPECT(views[i].jpeg + views[i].head.bytes <= copy + bytes);
                }
            }
        }
        trace_reader_finish(&reader);
    } else {
        EXPECT(error.text[0] != '\0');
    }
    free(copy);
    return status == STATUS_OK;
}

static size_t section_of_pictures(const struct drive *drive)
{
    return sizeof(struct trace_pictures_header) + drive->reader.pictures_bytes;
}

static void damaged_keyframes_are_refused(void)
{
    struct drive drive;
    drive_init(&drive, TIER_STUDENT);
    size_t keyframes = sizeof(struct trace_keyframe_header) +
                       drive.reader.keyframes_count * sizeof(struct trace_keyframe);
    size_t end = drive.bytes - section_of_pictures(&drive);
    size_t start = end - keyframes;
    EXPECT(accepted(drive.data, drive.bytes));
    EXPECT(accepted(drive.data, end));   /* no pictures .. */
    EXPECT(accepted(drive.data, start)); /* .. and no keyframes at all */
    for (size_t bytes = start + 1; bytes < end; bytes += bytes < start + 64 ? 1 : 9973) {
        EXPECT(!accepted(drive.data, bytes));
    }
    static const struct {
        size_t at;
        uint8_t value;
    } faults[] = {
        {0, 'X'},       /* magic */
        {8, 0xFF},      /* number of frames */
        {11, 0x80},     /* so many that bytes would overflow */
        {16, 2},        /* a rollout that is not there */
        {16 + 4, 0x99}, /* the first frame after the second */
    };
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        uint8_t kept = drive.data[start + faults[i].at];
        drive.data[start + faults[i].at] = faults[i].value;
        EXPECT(!accepted(drive.data, drive.bytes));
        drive.data[start + faults[i].at] = kept;
    }
    EXPECT(accepted(drive.data, drive.bytes));
    drive_finish(&drive);
}

/* ---- pictures of cameras ---- */

/* Each camera's picture of a keyframe's tick, at its own size, is what the world made. */
static void worlds_that_make_pictures_of_a_rig_keep_them(void)
{
    static struct trace_picture_view views[TRACE_CAMERAS_MAX];
    uint8_t kept[SIDE * SIDE * 3];
    struct drive drive;
    struct error error;
    drive_init(&drive, TIER_STUDENT);
    static const struct {
        int32_t rollout;
        uint32_t asked, tick;
    } places[] = {{0, 0, 0}, {0, 38, 40}, {1, 21, 20}, {1, 23, 25}, {1, 1000, HORIZON}};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        EXPECT_INT(trace_reader_pictures(&drive.reader, places[i].rollout, places[i].asked, views),
                   2);
        for (uint32_t c = 0; c < 2; c++) {
            const struct trace_picture *head = &views[c].head;
            EXPECT_INT(head->tick, places[i].tick);
            EXPECT(strcmp(head->id, two_eyes.cameras[c].id) == 0);
            EXPECT_OK(jpeg_decode(views[c].jpeg, head->bytes, SIDE, SIDE, kept, &error), error);
            for (size_t k = 0; k < sizeof kept; k++) {
                EXPECT(abs(kept[k] - level_of(places[i].tick, c)) <= 2);
            }
            EXPECT(jpeg_decode(views[c].jpeg, head->bytes, SIDE + 1, SIDE, kept, &error) ==
                   STATUS_BAD_INPUT);
            EXPECT(jpeg_decode(views[c].jpeg, 20, SIDE, SIDE, kept, &error) == STATUS_BAD_INPUT);
        }
    }
    drive_finish(&drive);
    drive_init(&drive, TIER_TEACHER); /* of the built-in rig: keyframes alone */
    EXPECT_INT(trace_reader_pictures(&drive.reader, 0, 0, views), 0);
    drive_finish(&drive);
}

/* Pictures that outgrow their room: every other one goes, never the newest; where not even two
 * have room, all. */
static void pictures_are_thinned_out(void)
{
    static const uint8_t jpeg[1000];
    const struct trace_picture one = {.width = 8, .height = 8, .bytes = sizeof jpeg, .id = "a"};
    const size_t size = sizeof one + sizeof jpeg;
    struct trace trace;
    struct error error;
    trace_init(&trace, 0);
    trace_expect_pictures(&trace, 5, 1);
    trace.pictures.room_bytes = 10 * size;
    for (uint32_t tick = 0; tick <= 113; tick++) {
        if (trace_wants_pictures(&trace, tick, tick == 113)) {
            struct trace_picture head = one;
            head.tick = tick;
            EXPECT_OK(trace_keep_picture(&trace, &head, jpeg, &error), error);
        }
    }
    uint32_t ticks[16];
    EXPECT_INT(trace.pictures.count * size, trace.pictures.bytes);
    EXPECT_INT(trace.pictures.count, 7);
    for (uint32_t i = 0; i < trace.pictures.count; i++) {
        struct trace_picture head;
        memcpy(&head, trace.pictures.data + i * size, sizeof head);
        ticks[i] = head.tick;
    }
    for (uint32_t i = 0; i < 6; i++) {
        EXPECT_INT(ticks[i], 20 * i);
    }
    EXPECT_INT(ticks[6], 113);
    trace.pictures.room_bytes = size - 1;
    EXPECT_OK(trace_keep_picture(&trace, &one, jpeg, &error), error);
    EXPECT_INT(trace.pictures.bytes, 0);
    EXPECT(!trace_wants_pictures(&trace, 0, true));
    trace_finish(&trace);
}

static void damaged_pictures_are_refused(void)
{
    struct drive drive;
    drive_init(&drive, TIER_STUDENT);
    size_t start = drive.bytes - section_of_pictures(&drive);
    for (size_t bytes = start + 1; bytes < drive.bytes; bytes += bytes < start + 200 ? 1 : 797) {
        EXPECT(!accepted(drive.data, bytes));
    }
    static const struct {
        size_t at;
        uint8_t value;
    } faults[] = {
        {0, 'X'},        /* magic */
        {8, 0xFF},       /* number of pictures */
        {16, 2},         /* a rollout that is not there */
        {16 + 4, 0x99},  /* the first tick after the second */
        {16 + 8, 5},     /* the first camera after the second */
        {16 + 8, 200},   /* a camera beyond the limit */
        {16 + 13, 0xFF}, /* too wide */
        {16 + 16, 0},    /* without a row */
        {16 + 23, 0xFF}, /* longer than all */
        {16 + 24, '\n'}, /* a name that cannot be printed */
    };
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        uint8_t kept = drive.data[start + faults[i].at];
        drive.data[start + faults[i].at] = faults[i].value;
        EXPECT(!accepted(drive.data, drive.bytes));
        drive.data[start + faults[i].at] = kept;
    }
    EXPECT(accepted(drive.data, drive.bytes));
    drive_finish(&drive);
}

int main(void)
{
    return TEST_RUN(TEST(learned_tiers_keep_keyframes), TEST(other_tiers_are_not_and_hashes_agree),
                    TEST(few_bits_are_close), TEST(keyframes_are_bounded),
                    TEST(damaged_keyframes_are_refused),
                    TEST(worlds_that_make_pictures_of_a_rig_keep_them),
                    TEST(pictures_are_thinned_out), TEST(damaged_pictures_are_refused));
}
