/*
 * World models behind AlpaSim's WorldModelService: what is sent, a server that keeps one session,
 * and each fault of a server found by the check that is made for it.
 */
#include "base/check.h"
#include "engine/worlds/foreign.h"
#include "scenarios/scenarios.h"
#include "schemas/scenario_json.h"
#include "tests/harness.h"
#include "tests/worker/dream_server.h"
#include "tests/worker/jobs.h"
#include "worker/models/health_bounds.h"
#include "worker/omnidreams/omnidreams_internal.h"
#include "worker/omnidreams/omnidreams_map.h"
#include "worker/world/world_check.h"
#include "worker/world/world_source.h"

/* Ticks of a check: pictures fade after the first second. */
enum { TICKS = 9, TICKS_FADE = 16, HORIZON = 12, HORIZON_BOX = 20, WAIT_MS = 60000 };

static struct dream_server server;
static struct jobs_scenario scene;
static struct scenario_document document;
static struct rig rig;
static char binding[160];
static const char *const bindings[] = {binding};
static struct planner_confinement confinement = {.omnidreams = {bindings, 1, false}};
static struct world_source *source;
static double box_x_m; /* where a container stands in ego's way; 0: nowhere */

static void make_rig(uint32_t cameras)
{
    memset(&rig, 0, sizeof rig);
    snprintf(rig.id, sizeof rig.id, "dream");
    rig.camera_count = cameras;
    for (uint32_t i = 0; i < cameras; i++) {
        struct rig_camera *camera = &rig.cameras[i];
        *camera = (struct rig_camera){
            .width = 96, .height = 64, .rate_hz = 30, .pose = {.x_m = 1.5, .z_m = 1.5}};
        snprintf(camera->id, sizeof camera->id, "camera_%u", i);
        camera->pose.yaw_rad = 1.5 * i;
        camera->lens = (struct rig_lens){.model = LENS_FTHETA,
                                         .cx = 47.5,
                                         .cy = 31.5,
                                         .angle_to_pixels = {0, 60},
                                         .max_angle_rad = 1.2};
    }
}

/* A server, a scenario with two branches, and the world that the server makes. */
static void begin(uint32_t cameras, enum dream_manner manner, const char *spec)
{
    struct error error;
    const struct world_source_options how = {
        .confinement = &confinement, .start_ms = WAIT_MS, .step_ms = WAIT_MS};
    make_rig(cameras);
    jobs_scenario_init(&scene, "dreams/straight", box_x_m > 0 ? HORIZON_BOX : HORIZON);
    if (box_x_m > 0) {
        struct agent *box = maps_agent(&scene.scenario, 3, AGENT_OBJECT, BEHAVIOUR_STATIC,
                                       (struct pose){box_x_m, 3.5, 0}, 0);
        box->width_m = box->height_m = 3;
    }
    jobs_branch(&scene, 4, INTERVENE_EGO_BRAKE)->decel_mps2 = 3;
    jobs_branch(&scene, 7, INTERVENE_EGO_MAINTAIN);
    jobs_prepared(&scene);
    memset(&document, 0, sizeof document);
    document.scenario = scene.scenario;
    dream_server_start(&server, &document);
    server.manner = (int)manner;
    snprintf(binding, sizeof binding, "od=%s", server.address);
    EXPECT_OK(world_source_open(spec, &how, &source, &error), error);
}

static void end(void)
{
    world_source_close(source);
    source = NULL;
    dream_server_stop(&server);
    jobs_scenario_finish(&scene);
}

/* ---- the world by itself ---- */

static void check(struct world_check *out, uint32_t ticks)
{
    struct error error;
    const struct health_bounds bounds = health_bounds_builtin();
    const struct foreign *foreign = world_source_foreign(source);
    const struct world_check_options options = {
        .ops = foreign_world_ops(foreign, TIER_STUDENT),
        .config = {.foreign = foreign, .thread_count = 1, .rig = &rig},
        .exact = true,
        .bounds = &bounds,
        .prepared = scene.prepared,
        .ticks = ticks,
    };
    EXPECT_OK(world_check_run(&options, out, &error), error);
}

/* The row of a check, "": it was not made. */
static const char *row_of(const struct world_check *found, const char *name, int *verdict)
{
    for (uint32_t i = 0; i < found->row_count; i++) {
        if (strcmp(found->rows[i].name, name) == 0) {
            *verdict = (int)found->rows[i].verdict;
            return found->rows[i].text;
        }
    }
    *verdict = WORLD_CHECK_SKIPPED;
    return "";
}

static void one_that_keeps_its_word_passes_every_check(void)
{
    struct world_check found;
    begin(1, DREAM_GOOD, "omnidreams:od?chunk=8");
    const struct swerve_world_declared *declared = &world_source_foreign(source)->declared;
    EXPECT_INT(declared->chunk_frames, 8);
    EXPECT_INT(declared->first_frames, 5);
    EXPECT_INT(declared->rate_hz, 30);
    EXPECT_INT(declared->states_max, 1);
    check(&found, TICKS);
    for (uint32_t i = 0; i < found.row_count; i++) {
        if (found.rows[i].verdict != WORLD_CHECK_OK) {
            TEST_FAIL("%s: %s", found.rows[i].name, found.rows[i].text);
        }
    }
    EXPECT_INT(found.row_count, 9);
    end();
}

/* A server's fault, the row that finds it and a part of its sentence. */
static void fault_is_found(enum dream_manner manner, const char *row, const char *part)
{
    struct world_check found;
    int verdict = WORLD_CHECK_OK;
    begin(1, manner, "omnidreams:od?chunk=8");
    check(&found, manner == DREAM_FADES ? TICKS_FADE : TICKS);
    const char *text = row_of(&found, row, &verdict);
    if (verdict != WORLD_CHECK_BAD || strstr(text, part) == NULL) {
        for (uint32_t i = 0; i < found.row_count; i++) {
            printf("# %s %d %s\n", found.rows[i].name, (int)found.rows[i].verdict,
                   found.rows[i].text);
        }
        TEST_FAIL("manner %d: expected \"%s\" of %s, found \"%s\"", (int)manner, part, row, text);
    }
    end();
}

static void each_fault_is_found_by_its_check(void)
{
    static const struct {
        enum dream_manner manner;
        const char *row, *part;
    } rows[] = {
        {DREAM_NOISY, "repeats", "differs from the same rollout alone"},
        {DREAM_FADES, "frames", "camera_0"},
        {DREAM_FREEZES, "frames", "camera_0, frame 16: frozen"},
        {DREAM_BLACK, "frames", "camera_0, frame 6"},
        {DREAM_SMALL, "frames", "planes of 9216 bytes, expected 18432"},
        {DREAM_FEW, "frames", "camera_0: 4 frames, expected 5"},
        {DREAM_BABBLES, "frames", "is no VideoChunkReturn"},
        {DREAM_REFUSES, "frames",
         "the server answers start_session with FAILED_PRECONDITION: the model is still loading"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fault_is_found(rows[i].manner, rows[i].row, rows[i].part);
    }
}

/* ---- drives ---- */

static struct job_run *drive_once(uint64_t seed, bool solo)
{
    struct error error;
    struct runner *runner = NULL;
    struct job_run *job = NULL;
    const struct foreign *foreign = world_source_foreign(source);
    const struct runner_config config = {
        .world = foreign_world_ops(foreign, TIER_STUDENT),
        .planner = "builtin:maintain",
        .planner_config = {.tick_deadline_ms = WAIT_MS},
        .rig = &rig,
        .foreign = foreign,
        .slot_count = 4,
        .thread_count = 1,
        .always_solo = solo,
        .clock = clock_system(),
    };
    enum status status = runner_create(&config, &runner, &error);
    if (status == STATUS_IO) {
        return NULL; /* nobody is there: as claims have it, the job goes back */
    }
    EXPECT_OK(status, error);
    jobs_add(runner, &scene, 0, seed);
    jobs_run(runner, &job, 1);
    runner_destroy(runner);
    return job;
}

static void branches_are_what_they_are_alone_with_one_session(void)
{
    begin(4, DREAM_GOOD, "omnidreams:od?chunk=12&prompt=a road");
    struct job_run *forked = drive_once(0, false);
    EXPECT_INT(server.seed != 0, 1); /* a seed of 0 lets the server choose */
    struct job_run *alone = drive_once(0, true);
    jobs_expect_same(forked, alone);
    for (uint32_t i = 0; i < forked->rollout_count; i++) {
        const struct rollout_result *result = &forked->results[i];
        if (result->verdict == VERDICT_FLAGGED || result->ticks != HORIZON) {
            TEST_FAIL("rollout %u, %u ticks: %s", i, result->ticks, result->error);
        }
    }
    job_run_destroy(forked);
    job_run_destroy(alone);
    end();
}

/* Obstacles fill the picture when ego drives into them: the planner's fault, not the world's. */
static void a_picture_that_an_obstacle_fills_is_healthy(void)
{
    box_x_m = 70;
    begin(1, DREAM_GOOD, "omnidreams:od");
    box_x_m = 0;
    struct job_run *job = drive_once(7, false);
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        if (job->results[i].verdict == VERDICT_FLAGGED) {
            TEST_FAIL("rollout %u: %s", i, job->results[i].error);
        }
    }
    EXPECT_INT(job->results[0].verdict, VERDICT_FAIL);
    job_run_destroy(job);
    end();
}

static void noise_makes_branches_evidence(void)
{
    begin(1, DREAM_NOISY, "omnidreams:od");
    struct job_run *job = drive_once(3, false);
    bool flagged = false;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        const struct rollout_result *result = &job->results[i];
        flagged = flagged || (result->verdict == VERDICT_FLAGGED &&
                              strstr(result->error, "past made anew") != NULL);
    }
    EXPECT(flagged);
    job_run_destroy(job);
    end();
}

static void a_server_that_dies_at_any_call_loses_no_job(void)
{
    begin(1, DREAM_GOOD, "omnidreams:od");
    struct job_run *whole = drive_once(5, false);
    EXPECT_INT(whole->failure, STATUS_OK);
    int died = 0;
    for (int at = 1;; at++) {
        server.calls = 0;
        server.dies_at = at;
        struct job_run *job = drive_once(5, false);
        bool reached = server.calls >= at;
        server.dies_at = 0;
        for (uint32_t i = 0; job != NULL && i < job->rollout_count;
             i++) { /* no evidence of anything */
            EXPECT(job->results[i].verdict != VERDICT_FLAGGED || !job->results[i].finished);
        }
        if (job != NULL && job->failure == STATUS_OK) {
            jobs_expect_same(job, whole);
        } else {
            EXPECT(job == NULL || job->failure == STATUS_IO); /* it goes back */
            died++;
        }
        if (job != NULL) {
            job_run_destroy(job);
        }
        if (!reached) {
            break;
        }
    }
    EXPECT(died > 10);
    struct job_run *again = drive_once(5, false);
    jobs_expect_same(again, whole);
    job_run_destroy(again);
    job_run_destroy(whole);
    end();
}

/* ---- specs and first frames ---- */

static void specs_are_checked(void)
{
    static const struct {
        const char *spec;
        enum status status;
    } rows[] = {
        {"omnidreams:od", STATUS_OK},
        {"omnidreams:od?fps=30&chunk=16&horizon=20&prompt=rain at night", STATUS_OK},
        {"omnidreams:", STATUS_USAGE},
        {"omnidreams:o d", STATUS_USAGE},
        {"omnidreams:od?chunk=9", STATUS_USAGE},
        {"omnidreams:od?fps=0", STATUS_USAGE},
        {"omnidreams:od?colour=red", STATUS_USAGE},
        {"omnidreams:od?rig=/nowhere/rig.json", STATUS_NOT_FOUND},
    };
    struct error error;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct omnidreams_spec spec;
        EXPECT_INT(omnidreams_parse(rows[i].spec, &spec, &error), rows[i].status);
        if (rows[i].status == STATUS_OK) {
            omnidreams_spec_finish(&spec);
        }
    }
    const struct world_source_options how = {.confinement = &confinement};
    struct world_source *none = NULL;
    EXPECT_INT(world_source_open("omnidreams:nobody", &how, &none, &error), STATUS_DEVICE);
    EXPECT(strstr(error.text, "expected --omnidreams nobody=HOST:PORT") != NULL);
}

/* Names and checks of the files of a stored ZIP; how many there are. */
static uint32_t look_into(const uint8_t *zip, size_t bytes, char names[16][96])
{
    uint32_t count = 0;
    size_t at = 0;
    while (at + 30 <= bytes && memcmp(zip + at, "PK\3\4", 4) == 0 && count < 16) {
        const uint8_t *head = zip + at;
        size_t data = head[18] | (size_t)head[19] << 8 | (size_t)head[20] << 16;
        size_t name = head[26] | (size_t)head[27] << 8;
        snprintf(names[count++], 96, "%.*s", (int)name, (const char *)head + 30);
        EXPECT(memcmp(head + 30 + name, "PAR1", 4) == 0);
        EXPECT(memcmp(head + 30 + name + data - 4, "PAR1", 4) == 0);
        at += 30 + name + data;
    }
    EXPECT(memcmp(zip + at, "PK\1\2", 4) == 0);
    EXPECT(memcmp(zip + bytes - 22, "PK\5\6", 4) == 0);
    return count;
}

static void the_map_is_a_zip_of_tables(void)
{
    struct error error;
    uint8_t *zip = NULL, *again = NULL;
    size_t bytes = 0, same = 0;
    char names[16][96];
    make_rig(1);
    jobs_scenario_init(&scene, "dreams/straight", HORIZON);
    jobs_prepared(&scene);
    EXPECT_OK(omnidreams_map(scene.prepared, &rig, &zip, &bytes, &error), error);
    EXPECT_OK(omnidreams_map(scene.prepared, &rig, &again, &same, &error), error);
    EXPECT(bytes == same && memcmp(zip, again, bytes) == 0);
    EXPECT_INT(look_into(zip, bytes, names), 4);
    static const char *const tables[] = {"calibration_estimate", "egomotion_estimate", "lane",
                                         "road_boundary"};
    for (uint32_t i = 0; i < COUNT_OF(tables); i++) {
        char expected[96];
        snprintf(expected, sizeof expected, "dreams_straight.%s.parquet", tables[i]);
        EXPECT(strcmp(names[i], expected) == 0);
    }
    free(zip);
    free(again);
    jobs_scenario_finish(&scene);
}

int main(void)
{
    return TEST_RUN(
        TEST(specs_are_checked), TEST(the_map_is_a_zip_of_tables),
        TEST(branches_are_what_they_are_alone_with_one_session),
        TEST(a_picture_that_an_obstacle_fills_is_healthy), TEST(noise_makes_branches_evidence),
        TEST(a_server_that_dies_at_any_call_loses_no_job),
        TEST(one_that_keeps_its_word_passes_every_check), TEST(each_fault_is_found_by_its_check));
}
