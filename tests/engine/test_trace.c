/*
 * Goal: what was recorded can be read back exactly, a branch through its parents too; the hash is
 * that of the ticks from 0 on whichever way they were recorded; an artifact from anywhere never
 * crashes or loops the reader.
 * Method: random traces of a main line and forks packed and read; every truncation and thousands of
 * random mutations of an artifact read in full.
 */
#include "base/rng.h"
#include "engine/trace/trace.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { AGENTS = 3, MAIN_TICKS = 30, FORK_TICK = 12, BRANCH_TICKS = 9 };

static struct scene scene_of(uint64_t key, uint32_t tick)
{
    struct scene scene = {.tick = tick, .agent_count = AGENTS};
    uint32_t n = 0;
    double *numbers = &scene.ego.pose.x_m;
    for (; n < sizeof scene.ego / sizeof(double); n++) {
        numbers[n] = rng_uniform(key, RNG_STREAM_TEST, tick, n) - 0.5;
    }
    scene.conditions = (struct conditions){(enum weather)(tick % WEATHER_COUNT),
                                           (enum light)(tick % LIGHT_COUNT), 0.5, 80.0};
    for (uint32_t i = 0; i < AGENTS; i++) {
        scene.agents[i].pose.x_m = rng_uniform(key, RNG_STREAM_TEST, tick, n++);
        scene.agents[i].pose.y_m = rng_uniform(key, RNG_STREAM_TEST, tick, n++);
        scene.agents[i].speed_mps = rng_uniform(key, RNG_STREAM_TEST, tick, n++);
        scene.agents[i].present = (tick + i) % 3 != 0;
    }
    return scene;
}

static void append(struct trace *trace, uint64_t key, uint32_t tick)
{
    struct error error;
    struct scene scene = scene_of(key, tick);
    const struct trace_extra extra = {.action = {0.25 * tick, -0.5 * tick},
                                      .sensors_dark = tick % 16,
                                      .guardian = tick % 2,
                                      .observation_digest = key + tick};
    EXPECT_OK(trace_append(trace, &scene, &extra, &error), error);
}

struct artifact {
    struct trace main_line;
    struct trace branch;
    struct trace never; /* a branch whose main line ended before its fork */
    uint8_t *data;
    size_t bytes;
};

static void artifact_init(struct artifact *a)
{
    static const char *const ids[] = {"", "brake", "late"};
    static const int32_t parents[] = {-1, 0, 0};
    struct error error;
    trace_init(&a->main_line, AGENTS);
    trace_init(&a->never, AGENTS);
    for (uint32_t t = 0; t < MAIN_TICKS; t++) {
        if (t == FORK_TICK) {
            trace_fork(&a->branch, &a->main_line, t);
        }
        append(&a->main_line, 1, t);
    }
    for (uint32_t t = FORK_TICK; t < FORK_TICK + BRANCH_TICKS; t++) {
        append(&a->branch, 2, t);
    }
    const struct trace *traces[] = {&a->main_line, &a->branch, &a->never};
    EXPECT_OK(trace_pack(traces, ids, parents, 3, &a->data, &a->bytes, &error), error);
}

static void artifact_finish(struct artifact *a)
{
    trace_finish(&a->main_line);
    trace_finish(&a->branch);
    trace_finish(&a->never);
    free(a->data);
}

static void expect_scene(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                         uint64_t key)
{
    struct scene found;
    struct trace_tick at;
    struct scene expected = scene_of(key, tick);
    EXPECT(trace_reader_scene(reader, rollout, tick, &found, &at));
    EXPECT_INT(found.tick, tick);
    EXPECT(memcmp(&found.ego, &expected.ego, sizeof found.ego) == 0);
    EXPECT_INT(found.conditions.weather, expected.conditions.weather);
    EXPECT_INT(found.conditions.light, expected.conditions.light);
    EXPECT_INT(found.agent_count, AGENTS);
    for (uint32_t i = 0; i < AGENTS; i++) {
        EXPECT(memcmp(&found.agents[i].pose, &expected.agents[i].pose, sizeof(struct pose)) == 0);
        EXPECT_INT(found.agents[i].present, expected.agents[i].present);
    }
    EXPECT_NEAR(at.action_accel_mps2, 0.25 * tick, 0);
    EXPECT_NEAR(at.action_steer_rad, -0.5 * tick, 0);
    EXPECT_INT(at.sensors_dark, tick % 16);
    EXPECT_INT(at.guardian, tick % 2);
    EXPECT(at.observation_digest == key + tick);
}

/* Goal: a main line that ended before its first tick, and the branch that shares its end, have no
 * ticks. */
static void a_drive_without_ticks_ends_where_it_begins(void)
{
    static const char *const ids[] = {"", "brake"};
    static const int32_t parents[] = {-1, 0};
    struct trace_reader reader;
    struct error error;
    struct trace empty[2];
    uint8_t *data = NULL;
    size_t bytes = 0;
    trace_init(&empty[0], AGENTS);
    trace_init(&empty[1], AGENTS);
    const struct trace *traces[] = {&empty[0], &empty[1]};
    EXPECT_OK(trace_pack(traces, ids, parents, 2, &data, &bytes, &error), error);
    EXPECT_OK(trace_reader_init(&reader, data, bytes, &error), error);
    for (int32_t r = 0; r < 2; r++) {
        EXPECT_INT(trace_reader_end_tick(&reader, r), 0);
        EXPECT_INT(trace_reader_last_tick(&reader, r), 0);
    }
    trace_reader_finish(&reader);
    free(data);
}

static void what_was_recorded_is_read_back(void)
{
    struct artifact a;
    struct trace_reader reader;
    struct error error;
    struct scene scene;
    artifact_init(&a);
    EXPECT_OK(trace_reader_init(&reader, a.data, a.bytes, &error), error);
    EXPECT_INT(trace_reader_find(&reader, ""), 0);
    EXPECT_INT(trace_reader_find(&reader, "brake"), 1);
    EXPECT_INT(trace_reader_find(&reader, "late"), 2);
    EXPECT_INT(trace_reader_find(&reader, "other"), -1);
    EXPECT_INT(trace_reader_last_tick(&reader, 0), MAIN_TICKS - 1);
    EXPECT_INT(trace_reader_last_tick(&reader, 1), FORK_TICK + BRANCH_TICKS - 1);
    EXPECT_INT(trace_reader_last_tick(&reader, 2), MAIN_TICKS - 1);
    for (uint32_t t = 0; t < MAIN_TICKS; t++) {
        expect_scene(&reader, 0, t, 1);
        expect_scene(&reader, 2, t, 1);
        if (t < FORK_TICK + BRANCH_TICKS) {
            expect_scene(&reader, 1, t, t < FORK_TICK ? 1 : 2);
        } else {
            EXPECT(!trace_reader_scene(&reader, 1, t, &scene, NULL));
        }
    }
    EXPECT(!trace_reader_scene(&reader, 0, MAIN_TICKS, &scene, NULL));
    EXPECT(!trace_reader_scene(&reader, 2, UINT32_MAX, &scene, NULL));
    trace_reader_finish(&reader);
    artifact_finish(&a);
}

/* The hash of schemas/trace.h, computed from the artifact; forked or recorded from tick 0. */
/* A branch that never forked is shown by the pictures of the main line, whose end it shares. */
static void keyframes_are_of_who_has_the_tick(void)
{
    static const char *const ids[] = {"", "late"};
    static const int32_t parents[] = {-1, 0};
    struct trace_reader reader;
    struct trace_keyframe found;
    struct error error;
    struct trace traces[2];
    uint8_t *data = NULL;
    size_t bytes = 0;
    trace_init(&traces[0], AGENTS);
    trace_init(&traces[1], AGENTS);
    for (uint32_t t = 0; t < MAIN_TICKS; t++) {
        append(&traces[0], 1, t);
    }
    struct keyframes *kept = &traces[0].keyframes;
    *kept = (struct keyframes){calloc(1, sizeof *kept->frames), 1, KEYFRAMES_PERIOD_MIN_TICKS};
    kept->frames[0].tick = MAIN_TICKS - 1;
    const struct trace *list[] = {&traces[0], &traces[1]};
    EXPECT_OK(trace_pack(list, ids, parents, 2, &data, &bytes, &error), error);
    EXPECT_OK(trace_reader_init(&reader, data, bytes, &error), error);
    for (int32_t r = 0; r < 2; r++) {
        EXPECT(trace_reader_keyframes(&reader, r, MAIN_TICKS + 20, &found));
        EXPECT_INT(found.tick, MAIN_TICKS - 1);
        EXPECT_INT(trace_reader_owner(&reader, r, 3), 0);
    }
    trace_reader_finish(&reader);
    trace_finish(&traces[0]);
    trace_finish(&traces[1]);
    free(data);
}

static void the_hash_is_that_of_all_ticks(void)
{
    struct artifact a;
    struct trace solo;
    char forked[SHA256_HEX_BYTES];
    char whole[SHA256_HEX_BYTES];
    char plain[SHA256_HEX_BYTES];
    artifact_init(&a);
    trace_init(&solo, AGENTS);
    for (uint32_t t = 0; t < FORK_TICK + BRANCH_TICKS; t++) {
        append(&solo, t < FORK_TICK ? 1 : 2, t);
    }
    trace_hash_hex(&a.branch, forked);
    trace_hash_hex(&solo, whole);
    sha256_hex(solo.data, solo.bytes, plain);
    EXPECT_TEXT(forked, whole);
    EXPECT_TEXT(whole, plain);
    trace_hash_hex(&a.main_line, forked);
    sha256_hex(a.main_line.data, a.main_line.bytes, plain);
    EXPECT_TEXT(forked, plain);
    EXPECT(strcmp(forked, whole) != 0);
    trace_finish(&solo);
    artifact_finish(&a);
}

/* Reads everything that an accepted artifact offers. */
static void read_all(const struct trace_reader *reader)
{
    for (uint32_t r = 0; r < reader->header.rollout_count; r++) {
        uint32_t bytes = 0;
        char text[TRACE_OUTPUT_BYTES_MAX];
        const char *output = trace_reader_output(reader, (int32_t)r, &bytes);
        if (output != NULL) {
            EXPECT(bytes <= sizeof text);
            memcpy(text, output, bytes);
        }
        uint32_t last = trace_reader_last_tick(reader, (int32_t)r);
        EXPECT(last <= 2 * LIMIT_HORIZON_TICKS);
        for (uint32_t t = 0; t <= last + 1; t++) {
            struct scene scene;
            if (trace_reader_scene(reader, (int32_t)r, t, &scene, NULL)) {
                EXPECT_INT(scene.tick, t);
                EXPECT(scene.agent_count <= LIMIT_AGENTS);
                EXPECT(scene.conditions.weather < WEATHER_COUNT);
            } else {
                /* Ticks are without holes, so a missing one is past the end, or nothing is there.
                 */
                EXPECT(t == last + 1 || last == 0);
            }
        }
    }
}

/* Copies to the heap, so that the sanitizer sees a read past the end. */
static bool survives(const uint8_t *data, size_t bytes)
{
    struct trace_reader reader;
    struct error error = {0};
    uint8_t *copy = malloc(bytes > 0 ? bytes : 1);
    EXPECT(copy != NULL);
    memcpy(copy, data, bytes);
    enum status status = trace_reader_init(&reader, copy, bytes, &error);
    if (status == STATUS_OK) {
        read_all(&reader);
        trace_reader_finish(&reader);
    } else {
        EXPECT(error.text[0] != '\0');
    }
    free(copy);
    return status == STATUS_OK;
}

static void a_truncated_artifact_is_refused(void)
{
    struct artifact a;
    artifact_init(&a);
    EXPECT(survives(a.data, a.bytes));
    for (size_t bytes = 0; bytes < a.bytes; bytes++) {
        EXPECT(!survives(a.data, bytes));
    }
    artifact_finish(&a);
}

static void a_mutated_artifact_never_crashes(void)
{
    struct artifact a;
    uint32_t refused = 0;
    artifact_init(&a);
    size_t stride = sizeof(struct trace_tick) + AGENTS * sizeof(struct trace_agent);
    size_t headers[] = {0, 16, 96 + MAIN_TICKS * stride,
                        176 + (MAIN_TICKS + BRANCH_TICKS) * stride};
    for (uint32_t i = 0; i < 6000; i++) {
        uint8_t *copy = malloc(a.bytes);
        EXPECT(copy != NULL);
        memcpy(copy, a.data, a.bytes);
        for (uint32_t k = 0; k <= i % 3; k++) {
            double where = rng_uniform(i, RNG_STREAM_TEST, k, 0);
            size_t base = headers[(i + k) % 4];
            /* Every other one in a header, where it hurts. */
            size_t at =
                i % 2 == 0 ? base + (size_t)(where * 80) : (size_t)(where * (double)a.bytes);
            static const uint8_t values[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
            copy[at < a.bytes ? at : 0] = values[(i / 7 + k) % 5];
        }
        refused += !survives(copy, a.bytes);
        free(copy);
    }
    EXPECT(refused > 500);
    artifact_finish(&a);
}

static void expect_output(const struct trace_reader *reader, int32_t rollout, const char *expected)
{
    uint32_t bytes = 0;
    const char *found = trace_reader_output(reader, rollout, &bytes);
    EXPECT_INT(bytes, strlen(expected));
    EXPECT((found == NULL) == (bytes == 0));
    EXPECT(bytes == 0 || memcmp(found, expected, bytes) == 0);
}

/* Text that planners wrote is read back, also by a branch that never began; every other length than
 * the two whole ones is refused, and no changed byte leads a reader astray. */
static void planner_output_is_kept_and_checked(void)
{
    struct artifact a;
    struct trace_reader reader;
    struct error error;
    static const char *const ids[] = {"", "brake", "late"};
    static const int32_t parents[] = {-1, 0, 0};
    artifact_init(&a);
    size_t silent_bytes = a.bytes;
    const struct trace *traces[] = {&a.main_line, &a.branch, &a.never};
    free(a.data);
    trace_keep_output(&a.main_line, "dropped", 7);
    trace_keep_output(&a.main_line, "hello\nworld\n", 12);
    EXPECT_OK(trace_pack(traces, ids, parents, 3, &a.data, &a.bytes, &error), error);
    EXPECT_INT(a.bytes, silent_bytes + sizeof(struct trace_output_header) +
                            sizeof(struct trace_output) + 12);
    EXPECT_OK(trace_reader_init(&reader, a.data, a.bytes, &error), error);
    expect_output(&reader, 0, "hello\nworld\n");
    expect_output(&reader, 1, "");
    expect_output(&reader, 2, "hello\nworld\n");
    trace_reader_finish(&reader);
    for (size_t bytes = silent_bytes; bytes < a.bytes; bytes++) {
        EXPECT(survives(a.data, bytes) == (bytes == silent_bytes));
    }
    for (size_t at = silent_bytes; at < a.bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            a.data[at] ^= (uint8_t)(1 << bit);
            survives(a.data, a.bytes);
            a.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    artifact_finish(&a);
}

/* Plans are read back, of a branch from its main line too, and change no hash; every other length
 * than the two whole ones is refused, numbers that cannot be drawn are, and no changed byte leads a
 * reader astray. */
static void plans_are_kept_and_checked(void)
{
    struct artifact a;
    struct trace_reader reader;
    struct trace_plan_view plan;
    struct error error;
    static const char *const ids[] = {"", "brake", "late"};
    static const int32_t parents[] = {-1, 0, 0};
    static const struct swerve_object object = {.x_m = 120, .y_m = -7, .length_m = 4, .width_m = 2};
    const struct swerve_surroundings seen = {
        .objects_source = SWERVE_OBJECTS_SEEN, .object_count = 1, .objects = &object};
    const struct swerve_surroundings all = {
        .objects_source = SWERVE_OBJECTS_TRUE, .object_count = 1, .objects = &object};
    struct swerve_answer answer = {.point_count = SWERVE_TRAJECTORY_POINTS};
    static const struct swerve_answer action;
    char before[SHA256_HEX_BYTES];
    char after[SHA256_HEX_BYTES];
    artifact_init(&a);
    size_t silent_bytes = a.bytes;
    const struct trace *traces[] = {&a.main_line, &a.branch, &a.never};
    free(a.data);
    for (int i = 0; i < SWERVE_TRAJECTORY_POINTS; i++) {
        answer.points[i] = (struct swerve_trajectory_point){.t_s = 0.1 * i, .x_m = 100 + i};
    }
    trace_hash_hex(&a.main_line, before);
    trace_keep_plan(&a.main_line, 1, (struct vec2){100, 1}, &answer, &seen);
    trace_keep_plan(&a.main_line, 2, (struct vec2){100, 1}, &action, &all);
    trace_keep_plan(&a.main_line, 3, (struct vec2){100, 1}, &action, &seen);
    trace_hash_hex(&a.main_line, after);
    EXPECT_TEXT(after, before);
    EXPECT_OK(trace_pack(traces, ids, parents, 3, &a.data, &a.bytes, &error), error);
    EXPECT_INT(a.bytes, silent_bytes + sizeof(struct trace_plan_header) +
                            2 * sizeof(struct trace_plan) + 2 * sizeof(struct trace_plan_object) +
                            TRACE_PLAN_POINTS_MAX * sizeof(struct trace_plan_point));
    EXPECT_OK(trace_reader_init(&reader, a.data, a.bytes, &error), error);
    for (int32_t rollout = 0; rollout < 3; rollout += 2) {
        EXPECT(trace_reader_plan(&reader, rollout, 1, &plan));
        EXPECT_INT(plan.head.point_count, TRACE_PLAN_POINTS_MAX);
        EXPECT(plan.points[0].x_m == 0 && plan.points[0].y_m == -1);
        EXPECT(plan.points[TRACE_PLAN_POINTS_MAX - 1].x_m == SWERVE_TRAJECTORY_POINTS - 1);
        EXPECT(plan.head.object_count == 1 && plan.objects[0].x_m == 20);
        EXPECT(!trace_reader_plan(&reader, rollout, 2, &plan));
        EXPECT(trace_reader_plan(&reader, rollout, 3, &plan) && plan.head.point_count == 0);
    }
    trace_reader_finish(&reader);
    for (size_t bytes = silent_bytes; bytes < a.bytes; bytes++) {
        EXPECT(survives(a.data, bytes) == (bytes == silent_bytes));
    }
    for (size_t at = silent_bytes; at < a.bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            a.data[at] ^= (uint8_t)(1 << bit);
            survives(a.data, a.bytes);
            a.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    static const float no_place = INFINITY;
    memcpy(a.data + silent_bytes + sizeof(struct trace_plan_header) + sizeof(struct trace_plan),
           &no_place, sizeof no_place);
    EXPECT(!survives(a.data, a.bytes));
    artifact_finish(&a);
}

static void a_hole_between_ticks_is_refused(void)
{
    struct artifact a;
    struct trace_rollout_header header;
    artifact_init(&a);
    size_t stride = sizeof(struct trace_tick) + AGENTS * sizeof(struct trace_agent);
    uint8_t *branch = a.data + 16 + 80 + MAIN_TICKS * stride;
    uint32_t tick = 40;
    /* The branch begins where its main line has already ended. */
    memcpy(&header, branch, sizeof header);
    header.first_tick = tick;
    memcpy(branch, &header, sizeof header);
    for (uint32_t i = 0; i < BRANCH_TICKS; i++, tick++) {
        memcpy(branch + 80 + i * stride, &tick, sizeof tick);
    }
    EXPECT(!survives(a.data, a.bytes));
    artifact_finish(&a);
    artifact_init(&a);
    tick = 7;
    memcpy(a.data + 96 + 5 * stride, &tick, sizeof tick);
    EXPECT(!survives(a.data, a.bytes));
    artifact_finish(&a);
}

/* Whoever walks a rollout up to its last tick would walk for ever. */
static void an_empty_rollout_far_beyond_the_horizon_is_refused(void)
{
    struct trace_file_header file = {.rollout_count = 1};
    struct trace_rollout_header header = {.first_tick = UINT32_MAX, .parent = -1};
    uint8_t data[sizeof file + sizeof header];
    memcpy(file.magic, TRACE_MAGIC, sizeof file.magic);
    memcpy(data, &file, sizeof file);
    memcpy(data + sizeof file, &header, sizeof header);
    EXPECT(!survives(data, sizeof data));
    memset(data + sizeof file + offsetof(struct trace_rollout_header, first_tick), 0, 4);
    EXPECT(survives(data, sizeof data));
}

static void the_digest_depends_on_every_byte(void)
{
    uint8_t data[77] = {0};
    uint64_t base = trace_digest(1, data, sizeof data);
    EXPECT(trace_digest(2, data, sizeof data) != base);
    EXPECT(trace_digest(1, data, sizeof data - 1) != base);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = 1;
        EXPECT(trace_digest(1, data, sizeof data) != base);
        data[i] = 0;
    }
}

int main(void)
{
    return TEST_RUN(TEST(what_was_recorded_is_read_back),
                    TEST(a_drive_without_ticks_ends_where_it_begins),
                    TEST(keyframes_are_of_who_has_the_tick), TEST(the_hash_is_that_of_all_ticks),
                    TEST(a_truncated_artifact_is_refused), TEST(a_mutated_artifact_never_crashes),
                    TEST(planner_output_is_kept_and_checked), TEST(plans_are_kept_and_checked),
                    TEST(a_hole_between_ticks_is_refused),
                    TEST(an_empty_rollout_far_beyond_the_horizon_is_refused),
                    TEST(the_digest_depends_on_every_byte));
}
